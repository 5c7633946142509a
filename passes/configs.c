/* The configurations of one op: every combination of the permutations of its groups, form by form; or in a closure those that the orders
 * known of its classes lead to (candidates.c).
 *
 * Configuration 0 is the model as it stands.  Of several with the same orders at all pins the cheapest is one.  An order that had to be
 * bent to fit the op (a block gathered, missing atoms placed) is one level above the order that it came from. */
#include "charge.h"
#include "config_perms.h"
#include <string.h>

#define MAXORDER 192   /* candidates of one class in a closure */
#define FEWORDER 8     /* orders of a class that are found without an index */
#define MAXCONFIG 6000 /* configurations of one op, in a closure */
#define MAXEVERY 50000 /* combinations of an op's permutations, where all are looked at */

/* ---- orders ---- */

/* In the index: where it is, or RL_NONE and the key under which to put it. */
static uint32_t index_find(const rl_cls *c, const uint8_t *order, uint64_t *key) {
    *key = rl_hash_bytes(order, c->natom) | 1;
    for (uint32_t i; (i = rl_hash_get(c->index, *key)) != RL_NONE; ++*key)
        if (rl_same_bytes(c->order.p[i].p, order, c->natom)) return i;
    return RL_NONE;
}

static void index_put(rl_plan *p, rl_cls *c, uint32_t i) {
    uint64_t key;
    if (!c->index) {
        c->index = rl_new(p->mem, rl_hash, 1);
        c->index->mem = p->mem;
    }
    index_find(c, c->order.p[i].p, &key);
    rl_hash_put(c->index, key, i);
}

uint32_t rl_order_find(rl_plan *p, uint32_t cls, const uint8_t *order) {
    rl_cls *c = &p->cls.p[cls];
    uint64_t key;
    if (c->order.n > FEWORDER && !c->index) /* taken over from another class */
        for (uint32_t i = 0; i < c->order.n; i++) index_put(p, c, i);
    if (c->order.n > FEWORDER) return index_find(c, order, &key);
    for (uint32_t i = 0; i < c->order.n; i++)
        if (rl_same_bytes(c->order.p[i].p, order, c->natom)) return i;
    return RL_NONE;
}

uint32_t rl_order_intern(rl_plan *p, uint32_t cls, const uint8_t *order) {
    rl_cls *c = &p->cls.p[cls];
    uint32_t known = rl_order_find(p, cls, order), n = c->order.n;
    if (known != RL_NONE) return known;
    if (n == 0) c->order.p = rl_new(p->mem, rl_order, c->order.cap = 2); /* most classes have no more */
    rl_push(p->mem, c->order, ((rl_order){rl_copy(p->mem, order, c->natom + 1u), 0}));
    for (uint32_t i = n == FEWORDER ? 0 : n; i <= n && n >= FEWORDER; i++) index_put(p, c, i);
    return n;
}

uint32_t rl_config_order(const rl_oplegal *op, const rl_config *c, uint32_t operand, uint8_t *out) {
    const rl_form *f = &op->form[c->form];
    uint32_t n = 0;
    for (uint32_t k = 0; k < RL_MAXGROUP && f->seq[operand][k] != RL_END; k++) {
        uint32_t g = f->seq[operand][k];
        for (uint32_t i = f->start[g]; i < f->start[g + 1]; i++) {
            const rl_token *t = &op->token[c->token[i]];
            for (uint32_t j = 0; j < t->natom[operand]; j++) out[n++] = t->atom[operand][j];
        }
    }
    return n;
}

/* ---- configurations ---- */

static bool cheaper(const rl_oplegal *op, const rl_config *a, const rl_config *b) {
    return a->charge != b->charge ? a->charge < b->charge : op->form[a->form].cost < op->form[b->form].cost;
}

static uint64_t key_of(const rl_oplegal *op, const uint32_t *order) {
    return rl_hash_bytes(order, op->npin * sizeof *order) | 1;
}

/* Adds a configuration; of several with the same orders at all pins the cheapest stays. Its tokens are copied. config 0 is the model as it stands, and
 * stays beside an Einsum's that is charged less, written anew. */
static void push_config(rl_plan *p, rl_oplegal *op, rl_config c, const uint32_t *order, rl_hash *seen) {
    uint32_t ntoken = op->form[c.form].start[RL_MAXGROUP], known;
    c.charge = rl_config_charge(p, op, &c);
    uint64_t h = key_of(op, order);
    bool anew = op->part && !p->restricted && c.charge < op->config.p[0].charge;
    for (; (known = rl_hash_get(seen, h)) != RL_NONE; h++)
        if (!(known == 0 && anew) && rl_same_bytes(op->pinorder.p + known * op->npin, order, op->npin * sizeof *order)) break;
    if (known == 0 && p->restricted) op->config.p[0].charge = RL_MIN(op->config.p[0].charge, c.charge);
    if (known == 0 || (known != RL_NONE && !cheaper(op, &c, &op->config.p[known]))) return;
    c.token = rl_copy(p->mem, c.token, ntoken + 1u);
    if (known != RL_NONE) {
        op->config.p[known] = c;
        return;
    }
    rl_hash_put(seen, h, op->config.n);
    rl_push(p->mem, op->config, c);
    for (uint32_t i = 0; i < op->npin; i++) rl_push(p->mem, op->pinorder, order[i]);
}

uint32_t *rl_logical_config(rl_plan *p, rl_oplegal *op) {
    if (!op->config.p) {
        op->config.p = rl_new(p->mem, rl_config, op->config.cap = 1);
        op->pinorder.p = rl_new(p->mem, uint32_t, op->pinorder.cap = RL_MAX(op->npin, 1u));
    }
    uint32_t *o = op->pinorder.p, n = 0;
    for (uint32_t i = 0; i < op->noperand; i++)
        if (op->operand[i].pin) o[n++] = rl_order_intern(p, p->cls.p[op->operand[i].cls].like, p->member[op->operand[i].tensor.i].seq);
    op->pinorder.n = n;
    op->config.n = 1;
    op->config.p[0] = (rl_config){RL_NONE, NULL, 0};
    op->config.p[0].charge = rl_config_charge(p, op, &op->config.p[0]);
    return o;
}

/* Interns the orders of a configuration; false when one would be new and its class is full. */
static bool config_orders(rl_plan *p, const rl_oplegal *op, const rl_config *c, bool full, uint32_t level, uint32_t *order, uint32_t *nchange) {
    uint8_t t[RL_MAXATOM + 1];
    RL_EACH_PIN(op, o, pin) {
        rl_config_order(op, c, o, t);
        uint32_t cls = op->operand[o].cls, i = rl_order_find(p, cls, t);
        if (i == RL_NONE && !full && p->cls.p[cls].order.n >= MAXORDER) return false;
        order[pin] = i != RL_NONE ? i : rl_order_intern(p, cls, t);
        rl_order *o1 = &p->cls.p[cls].order.p[order[pin]];
        *nchange += i == RL_NONE || level < o1->level;
        o1->level = i == RL_NONE ? level : RL_MIN(o1->level, level);
    }
    return true;
}

typedef struct {
    rl_plan *p;
    rl_oplegal *op;
    uint32_t form, maxlevel;
    bool full;
    rl_hash *seen;
    rl_arena *tmp;
    rl_sequences *lie;
    uint32_t level;        /* of what is derived from an order, unless full */
    uint32_t *order;       /* room for the orders at all pins */
    uint8_t *token;        /* and for all tokens */
    rl_hash index;         /* of what orders were found to show */
    struct { struct shown { const uint8_t *part; uint32_t n, level; } *p; uint32_t n, cap; } shown;
} collector;

/* Every combination of one permutation per group. False when the op has as many configurations as it may. */
static bool combine(collector *k, const rl_perms *set) {
    const rl_form *f = &k->op->form[k->form];
    uint32_t at[RL_MAXGROUP] = {0}, g;
    do {
        uint32_t level = k->level;
        for (g = 0; g < RL_MAXGROUP; g++) {
            memcpy(k->token + f->start[g], set[g].p[at[g]].t, f->start[g + 1] - f->start[g]);
            level = RL_MAX(level, set[g].p[at[g]].level);
        }
        rl_config c = {k->form, k->token, 0};
        if (level <= k->maxlevel && config_orders(k->p, k->op, &c, k->full, level, k->order, &k->lie->nchange)) {
            push_config(k->p, k->op, c, k->order, k->seen);
            if (!k->full && k->op->config.n >= MAXCONFIG) return false;
        }
        for (g = 0; g < RL_MAXGROUP && ++at[g] == set[g].n; g++) at[g] = 0;
    } while (g < RL_MAXGROUP);
    return true;
}

/* Is the order that the op writes, with these tokens of each group, another than `from`? */
static bool is_bent(const collector *k, uint32_t operand, const uint8_t *from, const uint8_t *part) {
    const rl_form *f = &k->op->form[k->form];
    const uint32_t *begin = k->lie->begin[operand];
    for (uint32_t i = 0; i < RL_MAXGROUP && f->seq[operand][i] != RL_END; i++) {
        uint32_t g = f->seq[operand][i];
        for (uint32_t j = begin[g]; j < begin[g + 1]; j++) {
            const rl_token *t = &k->op->token[part[j]];
            if (!rl_same_bytes(from, t->atom[operand], t->natom[operand])) return true;
            from += t->natom[operand];
        }
    }
    return false;
}

/* Was all that shows these tokens listed, at this level or below?  Else it is noted that it will be.  part stays where it is. */
static bool is_listed(collector *k, uint32_t operand, const uint8_t *part) {
    const uint32_t n = rl_part_size(k->lie, operand);
    uint64_t h = rl_hash_bytes(part, n) | 1;
    for (uint32_t i; (i = rl_hash_get(&k->index, h)) != RL_NONE; h++) {
        struct shown *x = &k->shown.p[i];
        if (x->n != n || !rl_same_bytes(x->part, part, n)) continue;
        if (x->level <= k->level) return true;
        x->level = k->level;
        return false;
    }
    rl_hash_put(&k->index, h, k->shown.n);
    rl_push(k->tmp, k->shown, ((struct shown){part, n, k->level}));
    return false;
}

/* What one order of one operand leaves open: groups that it shows are as it shows them.  An order that the op cannot write is bent: the
 * operand gets another one, which is a level above it. */
static bool from_order(collector *k, const rl_perms *all, uint32_t operand, uint32_t order, bool last) {
    const rl_form *f = &k->op->form[k->form];
    const rl_order from = k->p->cls.p[k->op->operand[operand].cls].order.p[order];
    const uint32_t *begin = k->lie->begin[operand];
    const uint8_t *part = rl_part_of(k->lie, operand, order, last);
    rl_perms set[RL_MAXGROUP];
    k->level = from.level + is_bent(k, operand, from.p, part);
    if (is_listed(k, operand, part)) return true;
    for (uint32_t g = 0; g < RL_MAXGROUP; g++) {
        uint32_t size = f->start[g + 1] - f->start[g];
        set[g] = rl_perms_showing(&all[g], size, part + begin[g], size > 1 ? begin[g + 1] - begin[g] : 0, k->tmp);
        if (set[g].n == 0) return true;
    }
    return combine(k, set);
}

static void form_configs(rl_plan *p, rl_oplegal *op, uint32_t form, bool full, uint32_t maxlevel, rl_hash *seen, rl_sequences *lie, rl_arena *tmp) {
    const rl_form *f = &op->form[form];
    rl_perms set[RL_MAXGROUP];
    collector k = {.p = p, .op = op, .form = form, .maxlevel = maxlevel, .full = full, .seen = seen, .tmp = tmp, .lie = lie,
                   .order = rl_new(tmp, uint32_t, op->npin + 1), .token = rl_new(tmp, uint8_t, f->start[RL_MAXGROUP] + 1), .index.mem = tmp};
    rl_sequences_begin(lie, f);
    for (uint32_t g = 0; g < RL_MAXGROUP; g++) set[g] = full ? rl_all_perms(lie, g) : rl_known_perms(lie, g);
    if (full) {
        combine(&k, set);
        return;
    }
    for (uint32_t o = 0; o < op->noperand; o++) {
        if (!op->operand[o].pin) continue;
        const rl_cls *c = &p->cls.p[op->operand[o].cls];
        uint32_t nway = 1 + rl_is_wide(op, o);
        for (uint32_t i = 0, n = c->order.n; i < n; i++)
            for (uint32_t last = 0; last < nway; last++)
                if (!from_order(&k, set, o, i, last != 0)) return;
    }
}

void rl_op_configs(rl_plan *p, rl_oplegal *op, bool full, uint32_t maxlevel, rl_arena *tmp) {
    rl_hash seen = {.mem = tmp};
    const uint32_t *order = rl_logical_config(p, op);
    if (op->fixed) return;
    rl_hash_put(&seen, key_of(op, order), 0);
    rl_sequences lie = rl_sequences_of(p, op, tmp);
    for (uint32_t f = 0; f < op->nform; f++) form_configs(p, op, f, full, maxlevel, &seen, &lie, tmp);
}

uint64_t rl_count_configs(const rl_oplegal *op) {
    uint64_t total = 0;
    for (uint32_t f = 0; f < op->nform; f++) {
        uint64_t n = 1;
        for (uint32_t g = 0; g < RL_MAXGROUP; g++)
            for (uint32_t k = op->form[f].start[g + 1] - op->form[f].start[g]; k > 1 && n <= MAXEVERY; k--) n *= k;
        total += n;
    }
    return total;
}

bool rl_has_few_configs(const rl_oplegal *op) { return rl_count_configs(op) <= MAXEVERY; }
