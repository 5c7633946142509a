/* The configurations of one op: every combination of the permutations of its groups, form by form; or in a closure those that the orders
 * known of its classes lead to (candidates.c).
 *
 * Configuration 0 is the model as it stands.  Of several with the same orders at all pins the cheapest is one.  An order that had to be
 * bent to fit the op (a block gathered, missing atoms placed) is one level above the order that it came from. */
#include "charge.h"
#include "configs.h"
#include <string.h>

#define MAXORDER 192   /* candidates of one class in a closure */
#define FEWORDER 8     /* orders of a class that are found without an index */
#define MAXPERM 64     /* permutations of one group in a closure */
#define MAXCONFIG 6000 /* configurations of one op, in a closure */
#define MAXEVERY 50000 /* combinations of an op's permutations, where all are looked at */

/* ---- orders ---- */

/* In the index: where it is, or RL_NONE and the key under which to put it. */
static uint32_t index_find(const rl_cls *c, const uint8_t *order, uint64_t *key)
{
    *key = rl_hash_bytes(order, c->natom) | 1;
    for (uint32_t i; (i = rl_hash_get(c->index, *key)) != RL_NONE; ++*key)
        if (memcmp(c->order.p[i].p, order, c->natom) == 0) return i;
    return RL_NONE;
}

static void index_put(rl_plan *p, rl_cls *c, uint32_t i)
{
    uint64_t key;
    if (!c->index) {
        c->index = rl_new(p->mem, rl_hash, 1);
        c->index->mem = p->mem;
    }
    index_find(c, c->order.p[i].p, &key);
    rl_hash_put(c->index, key, i);
}

static uint32_t order_find(rl_plan *p, uint32_t cls, const uint8_t *order)
{
    rl_cls *c = &p->cls.p[cls];
    uint64_t key;
    if (c->order.n > FEWORDER && !c->index) /* taken over from another class */
        for (uint32_t i = 0; i < c->order.n; i++) index_put(p, c, i);
    if (c->order.n > FEWORDER) return index_find(c, order, &key);
    for (uint32_t i = 0; i < c->order.n; i++)
        if (memcmp(c->order.p[i].p, order, c->natom) == 0) return i;
    return RL_NONE;
}

uint32_t rl_order_intern(rl_plan *p, uint32_t cls, const uint8_t *order)
{
    rl_cls *c = &p->cls.p[cls];
    uint32_t known = order_find(p, cls, order), n = c->order.n;
    if (known != RL_NONE) return known;
    if (n == 0) c->order.p = rl_new(p->mem, rl_order, c->order.cap = 2); /* most classes have no more */
    rl_push(p->mem, c->order, ((rl_order){rl_copy(p->mem, order, c->natom + 1u), 0}));
    for (uint32_t i = n == FEWORDER ? 0 : n; i <= n && n >= FEWORDER; i++) index_put(p, c, i);
    return n;
}

uint32_t rl_config_order(const rl_oplegal *op, const rl_config *c, uint32_t operand, uint8_t *out)
{
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

static bool cheaper(const rl_oplegal *op, const rl_config *a, const rl_config *b)
{
    return a->charge != b->charge ? a->charge < b->charge : op->form[a->form].cost < op->form[b->form].cost;
}

static uint64_t key_of(const rl_oplegal *op, const uint32_t *order)
{
    return rl_hash_bytes(order, op->npin * sizeof *order) | 1;
}

/* Adds a configuration; of several with the same orders at all pins the cheapest stays. Its tokens are copied. config 0 is the model as it stands. */
static void push_config(rl_plan *p, rl_oplegal *op, rl_config c, const uint32_t *order, rl_hash *seen)
{
    uint32_t ntoken = op->form[c.form].start[RL_MAXGROUP], known;
    c.charge = rl_config_charge(p, op, &c);
    uint64_t h = key_of(op, order);
    for (; (known = rl_hash_get(seen, h)) != RL_NONE; h++)
        if (memcmp(op->pinorder.p + known * op->npin, order, op->npin * sizeof *order) == 0) break;
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

uint32_t *rl_logical_config(rl_plan *p, rl_oplegal *op)
{
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

typedef struct { uint8_t t[RL_MAXATOM]; uint32_t level; } perm;
typedef struct { perm *p; uint32_t n, max; } perms;

static uint32_t factorial(uint32_t n) { return n < 2 ? 1 : n * factorial(n - 1); }

static void add_perm(perms *s, const uint8_t *t, uint32_t n, uint32_t level)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (memcmp(s->p[i].t, t, n) == 0) {
            s->p[i].level = RL_MIN(s->p[i].level, level);
            return;
        }
    if (s->n == s->max || level > RL_MAXLEVEL) return;
    memcpy(s->p[s->n].t, t, n);
    s->p[s->n++].level = level;
}

static void all_perms(perms *s, uint8_t *t, uint32_t n, uint32_t k)
{
    if (k == n) {
        memcpy(s->p[s->n++].t, t, n);
        return;
    }
    for (uint32_t i = k; i < n; i++) {
        uint8_t x = t[i];
        memmove(t + k + 1, t + k, i - k);
        t[k] = x;
        all_perms(s, t, n, k + 1);
        memmove(t + k, t + k + 1, i - k);
        t[i] = x;
    }
}

/* The group's tokens that the operand has, in the sequence in which `order` holds their first (or last) atoms. */
static uint32_t project(const rl_oplegal *op, const rl_form *f, uint32_t g, uint32_t operand, const uint8_t *order, uint32_t natom,
                        bool last, uint8_t *out)
{
    uint8_t place[256];
    uint32_t pos[RL_MAXATOM], n = 0;
    for (uint32_t i = 0; i < natom; i++) place[order[i]] = (uint8_t)i;
    for (uint32_t i = f->start[g]; i < f->start[g + 1]; i++) {
        const rl_token *t = &op->token[f->member[i]];
        if (!t->natom[operand]) continue;
        uint32_t at = place[t->atom[operand][last ? t->natom[operand] - 1 : 0]], k = n++;
        for (; k > 0 && pos[k - 1] > at; k--) {
            pos[k] = pos[k - 1];
            out[k] = out[k - 1];
        }
        pos[k] = at;
        out[k] = f->member[i];
    }
    return n;
}

/* Has a token several atoms there?  Else first and last are the same. */
static bool is_wide(const rl_oplegal *op, uint32_t operand)
{
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (op->token[t].natom[operand] > 1) return true;
    return false;
}

static bool holds(const uint8_t *t, uint32_t n, uint8_t x) { return n && memchr(t, x, n) != NULL; }

/* Tokens that an operand lacks: as in each known permutation, first, and last. */
static void complete(perms *s, const rl_form *f, uint32_t g, const uint8_t *part, uint32_t npart, uint32_t level)
{
    uint32_t size = f->start[g + 1] - f->start[g], known = s->n, n = 0;
    const uint8_t *all = f->member + f->start[g];
    uint8_t t[RL_MAXATOM];
    for (uint32_t i = 0; i < size; i++)
        if (!holds(part, npart, all[i])) t[n++] = all[i];
    memcpy(t + n, part, npart);
    add_perm(s, t, size, level);
    memcpy(t, part, npart);
    n = npart;
    for (uint32_t i = 0; i < size; i++)
        if (!holds(part, npart, all[i])) t[n++] = all[i];
    add_perm(s, t, size, level);
    for (uint32_t k = 0; k < known; k++) {
        uint32_t at = 0;
        for (uint32_t i = 0; i < size; i++) t[i] = holds(part, npart, s->p[k].t[i]) ? part[at++] : s->p[k].t[i];
        add_perm(s, t, size, level);
    }
}

/* How many of the group's tokens the operand has. */
static uint32_t count_tokens(const rl_oplegal *op, const rl_form *f, uint32_t g, uint32_t operand)
{
    uint32_t n = 0;
    for (uint32_t i = f->start[g]; i < f->start[g + 1]; i++) n += op->token[f->member[i]].natom[operand] > 0;
    return n;
}

static void known_perms(rl_plan *p, const rl_oplegal *op, const rl_form *f, uint32_t g, perms *s)
{
    uint8_t t[RL_MAXATOM];
    uint32_t size = f->start[g + 1] - f->start[g];
    add_perm(s, f->member + f->start[g], size, 0);
    for (uint32_t pass = 0; pass < 2 && size > 1; pass++) /* whole permutations first: the others are completed from them */
        for (uint32_t o = 0; o < op->noperand; o++) {
            uint32_t n = count_tokens(op, f, g, o);
            if (!op->operand[o].pin || n == 0 || (n == size) != (pass == 0)) continue;
            const rl_cls *c = &p->cls.p[op->operand[o].cls];
            uint32_t nway = 1 + is_wide(op, o);
            for (uint32_t i = 0; i < c->order.n; i++)
                for (uint32_t last = 0; last < nway; last++) {
                    project(op, f, g, o, c->order.p[i].p, c->natom, last != 0, t);
                    if (pass == 0) add_perm(s, t, size, c->order.p[i].level);
                    else complete(s, f, g, t, n, c->order.p[i].level + 1);
                }
        }
}

/* Interns the orders of a configuration; false when one would be new and its class is full. */
static bool config_orders(rl_plan *p, const rl_oplegal *op, const rl_config *c, bool full, uint32_t level, uint32_t *order)
{
    uint8_t t[RL_MAXATOM + 1];
    uint32_t n = 0;
    for (uint32_t o = 0; o < op->noperand; o++) {
        if (!op->operand[o].pin) continue;
        rl_config_order(op, c, o, t);
        uint32_t cls = op->operand[o].cls, i = order_find(p, cls, t);
        if (i == RL_NONE && !full && p->cls.p[cls].order.n >= MAXORDER) return false;
        order[n++] = i != RL_NONE ? i : rl_order_intern(p, cls, t);
        rl_order *o1 = &p->cls.p[cls].order.p[order[n - 1]];
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
    uint32_t operand, natom, level; /* the order that the rest is derived from, unless full */
    const uint8_t *from;
    uint32_t *order; /* room for the orders at all pins */
    uint8_t *token;  /* and for all tokens */
} collector;

/* Whether the configuration has another order than the one that it was derived from. */
static bool bent(const collector *k, const rl_config *c)
{
    uint8_t t[RL_MAXATOM + 1];
    rl_config_order(k->op, c, k->operand, t);
    return memcmp(t, k->from, k->natom) != 0;
}

/* Every combination of one permutation per group. False when the op has as many configurations as it may. */
static bool combine(collector *k, const perms *set)
{
    const rl_form *f = &k->op->form[k->form];
    uint32_t at[RL_MAXGROUP] = {0}, g;
    do {
        uint32_t level = k->level;
        for (g = 0; g < RL_MAXGROUP; g++) {
            memcpy(k->token + f->start[g], set[g].p[at[g]].t, f->start[g + 1] - f->start[g]);
            level = RL_MAX(level, set[g].p[at[g]].level);
        }
        rl_config c = {k->form, k->token, 0};
        if (!k->full && bent(k, &c)) level = RL_MAX(level, k->level + 1);
        if (level <= k->maxlevel && config_orders(k->p, k->op, &c, k->full, level, k->order)) {
            push_config(k->p, k->op, c, k->order, k->seen);
            if (!k->full && k->op->config.n >= MAXCONFIG) return false;
        }
        for (g = 0; g < RL_MAXGROUP && ++at[g] == set[g].n; g++) at[g] = 0;
    } while (g < RL_MAXGROUP);
    return true;
}

/* What one order of one operand leaves open: groups that it shows are as it shows them. */
static bool from_order(collector *k, const perms *all, bool last)
{
    const rl_form *f = &k->op->form[k->form];
    perms set[RL_MAXGROUP];
    uint8_t part[RL_MAXATOM];
    for (uint32_t g = 0; g < RL_MAXGROUP; g++) {
        uint32_t size = f->start[g + 1] - f->start[g], n = 0;
        set[g] = all[g];
        if (size > 1) n = project(k->op, f, g, k->operand, k->from, k->natom, last, part);
        if (n == 0) continue;
        set[g] = (perms){rl_new(k->tmp, perm, all[g].n), 0, all[g].n};
        for (uint32_t i = 0; i < all[g].n; i++) {
            uint32_t at = 0;
            for (uint32_t j = 0; j < size && at < n; j++) {
                if (all[g].p[i].t[j] == part[at]) at++;
                else if (holds(part, n, all[g].p[i].t[j])) break;
            }
            if (at == n) set[g].p[set[g].n++] = all[g].p[i];
        }
        if (set[g].n == 0) return true;
    }
    return combine(k, set);
}

static void form_configs(rl_plan *p, rl_oplegal *op, uint32_t form, bool full, uint32_t maxlevel, rl_hash *seen, rl_arena *tmp)
{
    const rl_form *f = &op->form[form];
    perms set[RL_MAXGROUP];
    collector k = {.p = p, .op = op, .form = form, .maxlevel = maxlevel, .full = full, .seen = seen, .tmp = tmp,
                   .order = rl_new(tmp, uint32_t, op->npin + 1), .token = rl_new(tmp, uint8_t, f->start[RL_MAXGROUP] + 1)};
    for (uint32_t g = 0; g < RL_MAXGROUP; g++) {
        uint32_t size = f->start[g + 1] - f->start[g];
        uint32_t max = full || size <= 4 ? factorial(size) : MAXPERM; /* 5! is more */
        set[g] = (perms){rl_new(tmp, perm, max), 0, max};
        if (full) {
            uint8_t t[RL_MAXATOM];
            memcpy(t, f->member + f->start[g], size);
            all_perms(&set[g], t, size, 0);
        } else known_perms(p, op, f, g, &set[g]);
    }
    if (full) {
        combine(&k, set);
        return;
    }
    for (uint32_t o = 0; o < op->noperand; o++) {
        if (!op->operand[o].pin) continue;
        const rl_cls *c = &p->cls.p[op->operand[o].cls];
        uint32_t nway = 1 + is_wide(op, o);
        for (uint32_t i = 0, n = c->order.n; i < n; i++) {
            k.operand = o;
            k.natom = c->natom;
            k.from = c->order.p[i].p;
            k.level = c->order.p[i].level;
            for (uint32_t last = 0; last < nway; last++)
                if (!from_order(&k, set, last != 0)) return;
        }
    }
}

void rl_op_configs(rl_plan *p, rl_oplegal *op, bool full, uint32_t maxlevel, rl_arena *tmp)
{
    rl_hash seen = {.mem = tmp};
    const uint32_t *order = rl_logical_config(p, op);
    if (op->fixed) return;
    rl_hash_put(&seen, key_of(op, order), 0);
    for (uint32_t f = 0; f < op->nform; f++) form_configs(p, op, f, full, maxlevel, &seen, tmp);
}

bool rl_has_few_configs(const rl_oplegal *op)
{
    uint64_t total = 0;
    for (uint32_t f = 0; f < op->nform; f++) {
        uint64_t n = 1;
        for (uint32_t g = 0; g < RL_MAXGROUP; g++)
            for (uint32_t k = op->form[f].start[g + 1] - op->form[f].start[g]; k > 1 && n <= MAXEVERY; k--) n *= k;
        total += n;
    }
    return total <= MAXEVERY;
}
