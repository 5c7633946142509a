/* The cheapest choice of one configuration per op (problem.md, sections 2, 3 and 5).
 *
 * Classes joined by ops that may move form components; one in which the model as it stands costs nothing is done.  For the
 * others the candidates are collected: every order, where no class has more than four atoms; else the closure of the orders
 * that fixed ops and the model itself use, carried through every op to a fixpoint.  Then solve.c finds the least total.
 *
 * Costs are lexicographic in one int64: conversions, then bytes moved, then how far ops stray from the input
 * (objective "bytes": bytes, then conversions).
 *
 * Needs: the plan of legal.  Keeps: the graph.  Leaves: rl_oplegal.chosen. */
#include "plan.h"
#include "charge.h"
#include <string.h>

#define MAXORDER 192   /* candidates of one class in a closure */
#define MAXLEVEL 1
#define BUDGET 20000   /* configurations looked at; level 0 is completed all the same */
#define MAXPERM 64     /* permutations of one group */
#define MAXCONFIG 6000 /* configurations of one op */

/* ---- orders ---- */

static uint32_t order_find(rl_plan *p, uint32_t cls, const uint8_t *order, uint64_t *key)
{
    rl_cls *c = &p->cls.p[cls];
    uint64_t h = rl_hash_bytes(order, c->natom) | 1;
    for (;; h++) {
        uint32_t i = rl_hash_get(&c->index, h);
        *key = h;
        if (i == RL_NONE || memcmp(c->order.p[i].p, order, c->natom) == 0) return i;
    }
}

uint32_t rl_order_intern(rl_plan *p, uint32_t cls, const uint8_t *order)
{
    uint64_t key;
    uint32_t i = order_find(p, cls, order, &key);
    rl_cls *c = &p->cls.p[cls];
    if (i != RL_NONE) return i;
    rl_push(p->mem, c->order, ((rl_order){rl_copy(p->mem, order, c->natom + 1u), 0}));
    rl_hash_put(&c->index, key, c->order.n - 1);
    return c->order.n - 1;
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

/* ---- demands from outside ---- */

static void add_fixed(rl_plan *p, rl_value v)
{
    if (!rl_has(v) || p->member[v.i].cls == RL_NONE || p->cls.p[p->member[v.i].cls].constant) return;
    rl_oplegal op = {.node = RL_NONODE, .fixed = true, .noperand = 1, .npin = 1, .comp = RL_NONE};
    op.operand = rl_new(p->mem, rl_operand, 1);
    op.operand[0] = (rl_operand){.tensor = v, .pin = true, .cls = p->member[v.i].cls};
    rl_push(p->mem, p->op, op);
}

static bool is_operand(const rl_oplegal *op, uint32_t slot)
{
    for (uint32_t o = 0; o < op->noperand; o++)
        if (!op->operand[o].out && op->operand[o].slot == slot) return true;
    return false;
}

/* Graph inputs and outputs, captured values, and inputs that an op reads as they are (a scale, an index). */
static void outside_demands(rl_plan *p)
{
    rl_graph *g = p->g;
    uint32_t nop = p->op.n;
    for (uint32_t i = 0; i < g->input.n; i++) add_fixed(p, g->input.p[i]);
    for (uint32_t i = 0; i < g->output.n; i++) add_fixed(p, g->output.p[i]);
    for (uint32_t i = 0; i < g->outer.n; i++) add_fixed(p, g->outer.p[i]);
    for (uint32_t k = 0; k < nop; k++) {
        const rl_nodeinfo *n = rl_nod(g, p->op.p[k].node);
        for (uint32_t i = 0; i < n->ncap; i++) add_fixed(p, n->cap[i]);
        if (p->op.p[k].fixed || rl_op_class(n->op) == RL_SHAPE) continue;
        for (uint32_t i = 0; i < n->nin; i++)
            if (!is_operand(&p->op.p[k], i) && !(n->op == RL_OP_CastLike && i == 1)) add_fixed(p, n->in[i]);
    }
    for (uint32_t k = 0; k < g->order.n; k++) { /* parameters of movement: Reshape's shape */
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (p->moving[g->order.p[k].i])
            for (uint32_t i = 1; i < n->nin; i++) add_fixed(p, n->in[i]);
    }
}

/* ---- configurations ---- */

static bool cheaper(const rl_oplegal *op, const rl_config *a, const rl_config *b)
{
    return a->charge != b->charge ? a->charge < b->charge : op->form[a->form].cost < op->form[b->form].cost;
}

/* Adds a configuration; of several with the same orders at all pins the cheapest stays. config 0 is the model as it stands. */
static void push_config(rl_plan *p, rl_oplegal *op, rl_config c, const uint32_t *order, rl_hash *seen)
{
    c.charge = rl_config_charge(p, op, &c, p->charge);
    uint64_t h = rl_hash_bytes(order, op->npin * sizeof *order) | 1;
    for (uint32_t i; (i = rl_hash_get(seen, h)) != RL_NONE; h++) {
        if (memcmp(op->pinorder.p + i * op->npin, order, op->npin * sizeof *order) != 0) continue;
        if (i > 0 && cheaper(op, &c, &op->config.p[i])) op->config.p[i] = c;
        return;
    }
    rl_hash_put(seen, h, op->config.n);
    rl_push(p->mem, op->config, c);
    for (uint32_t i = 0; i < op->npin; i++) rl_push(p->mem, op->pinorder, order[i]);
}

static void logical_config(rl_plan *p, rl_oplegal *op, rl_hash *seen)
{
    uint32_t order[64], n = 0;
    uint32_t *o = op->npin <= RL_LEN(order) ? order : rl_new(p->mem, uint32_t, op->npin);
    for (uint32_t i = 0; i < op->noperand; i++)
        if (op->operand[i].pin) o[n++] = rl_order_intern(p, op->operand[i].cls, p->member[op->operand[i].tensor.i].seq);
    op->config.n = op->pinorder.n = 0;
    push_config(p, op, (rl_config){RL_NONE, NULL, 0}, o, seen);
}

typedef struct { uint8_t t[RL_MAXATOM]; uint32_t level; } perm;
typedef struct { perm *p; uint32_t n; } perms;

static void add_perm(perms *s, const uint8_t *t, uint32_t n, uint32_t level)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (memcmp(s->p[i].t, t, n) == 0) {
            s->p[i].level = RL_MIN(s->p[i].level, level);
            return;
        }
    if (s->n == MAXPERM || level > MAXLEVEL) return;
    memcpy(s->p[s->n].t, t, n);
    s->p[s->n++].level = level;
}

static void all_perms(perms *s, uint8_t *t, uint32_t n, uint32_t k)
{
    if (k == n) {
        add_perm(s, t, n, 0);
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

static void known_perms(rl_plan *p, const rl_oplegal *op, const rl_form *f, uint32_t g, perms *s)
{
    uint8_t t[RL_MAXATOM];
    uint32_t size = f->start[g + 1] - f->start[g];
    add_perm(s, f->member + f->start[g], size, 0);
    for (uint32_t pass = 0; pass < 2; pass++) /* whole permutations first: the others are completed from them */
        for (uint32_t o = 0; o < op->noperand; o++) {
            if (!op->operand[o].pin) continue;
            const rl_cls *c = &p->cls.p[op->operand[o].cls];
            for (uint32_t i = 0; i < c->order.n; i++)
                for (uint32_t last = 0; last < 2; last++) {
                    uint32_t n = project(op, f, g, o, c->order.p[i].p, c->natom, last != 0, t);
                    if (n == 0) continue;
                    if (n == size && pass == 0) add_perm(s, t, size, c->order.p[i].level);
                    if (n < size && pass == 1) complete(s, f, g, t, n, c->order.p[i].level + 1);
                }
        }
}

/* Interns the orders of a configuration; false when one would be new and its class is full. */
static bool config_orders(rl_plan *p, const rl_oplegal *op, const rl_config *c, bool full, uint32_t level, uint32_t *order)
{
    uint8_t t[RL_MAXATOM + 1];
    uint32_t n = 0;
    uint64_t key;
    for (uint32_t o = 0; o < op->noperand; o++) {
        if (!op->operand[o].pin) continue;
        rl_config_order(op, c, o, t);
        uint32_t cls = op->operand[o].cls, i = order_find(p, cls, t, &key);
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
    uint32_t at[RL_MAXGROUP] = {0}, ntok = f->start[RL_MAXGROUP], g;
    do {
        uint32_t level = k->level;
        for (g = 0; g < RL_MAXGROUP; g++) {
            memcpy(k->token + f->start[g], set[g].p[at[g]].t, f->start[g + 1] - f->start[g]);
            level = RL_MAX(level, set[g].p[at[g]].level);
        }
        rl_config c = {k->form, k->token, 0};
        if (!k->full && bent(k, &c)) level = RL_MAX(level, k->level + 1);
        if (level <= k->maxlevel && config_orders(k->p, k->op, &c, k->full, level, k->order)) {
            c.token = rl_copy(k->p->mem, k->token, ntok + 1u);
            push_config(k->p, k->op, c, k->order, k->seen);
            if (k->op->config.n >= MAXCONFIG) return false;
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
        uint32_t size = f->start[g + 1] - f->start[g], n = project(k->op, f, g, k->operand, k->from, k->natom, last, part);
        set[g] = all[g];
        if (n == 0) continue;
        set[g] = (perms){rl_new(k->tmp, perm, all[g].n), 0};
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
        set[g] = (perms){rl_new(tmp, perm, MAXPERM), 0};
        if (full && size <= 4) {
            uint8_t t[4];
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
        for (uint32_t i = 0, n = c->order.n; i < n; i++) {
            k.operand = o;
            k.natom = c->natom;
            k.from = c->order.p[i].p;
            k.level = c->order.p[i].level;
            for (uint32_t last = 0; last < 2; last++)
                if (!from_order(&k, set, last != 0)) return;
        }
    }
}

static void op_configs(rl_plan *p, rl_oplegal *op, bool full, uint32_t maxlevel, rl_arena *tmp)
{
    rl_hash seen = {.mem = tmp};
    logical_config(p, op, &seen);
    if (op->fixed) return;
    for (uint32_t f = 0; f < op->nform; f++) form_configs(p, op, f, full, maxlevel, &seen, tmp);
}

/* ---- components ---- */

static uint32_t root(uint32_t *up, uint32_t x)
{
    while (up[x] != x) x = up[x] = up[up[x]];
    return x;
}

static bool may_move(const rl_oplegal *op) { return !op->fixed && op->npin > 0 && op->ntoken > 1; }

static void components(rl_plan *p)
{
    uint32_t *up = rl_new(p->mem, uint32_t, p->cls.n);
    for (uint32_t c = 0; c < p->cls.n; c++) up[c] = c;
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        uint32_t first = RL_NONE;
        for (uint32_t o = 0; o < op->noperand && may_move(op); o++) {
            if (!op->operand[o].pin) continue;
            if (first == RL_NONE) first = root(up, op->operand[o].cls);
            else up[root(up, op->operand[o].cls)] = first;
        }
    }
    for (uint32_t c = 0; c < p->cls.n; c++) p->cls.p[c].comp = root(up, c);
    p->ncomp = p->cls.n;
    p->active = rl_new(p->mem, bool, p->ncomp);
    for (uint32_t k = 0; k < p->op.n; k++) {
        rl_oplegal *op = &p->op.p[k];
        for (uint32_t o = 0; o < op->noperand; o++)
            if (op->operand[o].pin) op->comp = p->cls.p[op->operand[o].cls].comp;
    }
}

/* Components in which the model as it stands names two orders of one class. */
static void find_active(rl_plan *p)
{
    for (uint32_t c = 0; c < p->cls.n; c++) {
        rl_cls *cls = &p->cls.p[c];
        if (!cls->constant && cls->order.n > 1) p->active[cls->comp] = true;
    }
}

/* Grows with every order and with every level that falls. */
static uint32_t known(const rl_cls *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->order.n; i++) n += MAXLEVEL + 1 - c->order.p[i].level;
    return n;
}

/* Carries orders of up to `maxlevel` through the ops until nothing new appears, or the budget of configurations is spent. */
static void close_orders(rl_plan *p, const bool *full, uint32_t maxlevel, int64_t *budget, rl_arena *tmp)
{
    uint64_t *done = rl_new(p->mem, uint64_t, p->op.n);
    for (uint32_t sweep = 0, more = 1; more && (maxlevel == 0 || *budget > 0); sweep++) {
        more = 0;
        for (uint32_t i = 0; i < p->op.n && (maxlevel == 0 || *budget > 0); i++) {
            uint32_t k = sweep % 2 ? p->op.n - 1 - i : i; /* there and back: chains need not wait for a sweep per op */
            rl_oplegal *op = &p->op.p[k];
            uint64_t now = 1;
            if (!may_move(op) || !p->active[op->comp] || (full[op->comp] && done[k])) continue;
            for (uint32_t o = 0; o < op->noperand; o++) now += known(&p->cls.p[op->operand[o].cls]);
            if (now == done[k]) continue;
            op_configs(p, op, full[op->comp], maxlevel, tmp);
            rl_arena_free(tmp);
            *budget -= op->config.n;
            done[k] = 1;
            for (uint32_t o = 0; o < op->noperand; o++) done[k] += known(&p->cls.p[op->operand[o].cls]);
            more |= done[k] != now;
        }
    }
}

static void collect(rl_plan *p)
{
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    bool *full = rl_new(p->mem, bool, p->ncomp);
    for (uint32_t k = 0; k < p->ncomp; k++) full[k] = true;
    for (uint32_t c = 0; c < p->cls.n; c++)
        if (!p->cls.p[c].constant && p->cls.p[c].natom > 4) full[p->cls.p[c].comp] = false;
    int64_t budget = BUDGET;
    for (uint32_t level = 0; level <= MAXLEVEL; level++) close_orders(p, full, level, &budget, &tmp);
    p->large = budget < 0;
    rl_arena_free(&tmp);
}

/* ---- the problem ---- */

typedef struct { int64_t conversion, byte_shift; bool bytes_first, by_time; int64_t nop_bits; } scale;

static int64_t bits_of(double x)
{
    int64_t b = 0;
    while (x >= 1) { x /= 2; b++; }
    return b;
}

static bool charges_anything(const int64_t *charge)
{
    for (uint32_t i = 0; i < RL_NCHARGE; i++)
        if (charge[i]) return true;
    return false;
}

static scale make_scale(const rl_plan *p, bool bytes_first)
{
    double total = 1;
    for (uint32_t c = 0; c < p->cls.n; c++) total += (double)p->cls.p[c].bytes * 4;
    scale s = {.bytes_first = bytes_first, .nop_bits = bits_of(8.0 * p->op.n + 1)};
    int64_t keep = p->op.n > 20000 ? 20 : 26, have = bits_of(total);
    s.byte_shift = have > keep ? have - keep : 0;
    s.conversion = bytes_first ? bits_of(4.0 * p->cls.n + 1) : RL_MIN(have, keep);
    return s;
}

static int64_t weight_of(const scale *s, const rl_cls *c)
{
    if (s->by_time) return ((((int64_t)RL_FIXED_MOVE + c->bytes) >> s->byte_shift) + 1) << s->nop_bits;
    int64_t bytes = c->bytes >> s->byte_shift;
    if (s->bytes_first) return (((bytes > 0 ? bytes : 1) << s->conversion) + 1) << s->nop_bits;
    return (((int64_t)1 << s->conversion) + bytes) << s->nop_bits;
}

/* mild: a form is charged only for what it costs beyond the one that the model has. */
static void problem_of(rl_plan *p, const scale *s, bool mild, rl_problem *q)
{
    /* One conversion: the unit of a charge whatever the objective, since charges are ratios of time. */
    int64_t tenth = ((int64_t)1 << (s->conversion + s->nop_bits)) / 10;
    int64_t *weight = rl_new(p->mem, int64_t, p->cls.n);
    uint32_t *norder = rl_new(p->mem, uint32_t, p->cls.n);
    rl_choice *op = rl_new(p->mem, rl_choice, p->op.n);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        weight[c] = p->cls.p[c].constant ? 0 : weight_of(s, &p->cls.p[c]);
        norder[c] = RL_MAX(1u, p->cls.p[c].order.n);
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        rl_oplegal *o = &p->op.p[k];
        uint32_t *value = rl_new(p->mem, uint32_t, o->npin + 1), n = 0;
        for (uint32_t i = 0; i < o->noperand; i++)
            if (o->operand[i].pin) value[n++] = o->operand[i].cls;
        int64_t *cost = rl_new(p->mem, int64_t, o->config.n);
        if (s->by_time && o->noperand) tenth = weight_of(s, &p->cls.p[o->operand[o->noperand - 1].cls]) / 10;
        for (uint32_t c = 0; c < o->config.n; c++) {
            cost[c] = c ? 1 + o->form[o->config.p[c].form].cost : 0;
            cost[c] += tenth * (mild ? RL_MAX(0, o->config.p[c].charge - o->config.p[0].charge) : o->config.p[c].charge);
        }
        op[k] = (rl_choice){n, o->config.n, value, o->pinorder.p, cost};
    }
    *q = (rl_problem){p->cls.n, p->op.n, weight, norder, op, rl_new(p->mem, uint32_t, p->op.n)};
}

/* Conversions of an assignment, from the definition. */
static int64_t conversions(const rl_plan *p, const uint32_t *cfg, rl_arena *tmp)
{
    rl_hash seen = {.mem = tmp};
    int64_t n = 0;
    bool *any = rl_new(tmp, bool, p->cls.n);
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        uint32_t pin = 0;
        for (uint32_t o = 0; o < op->noperand; o++) {
            if (!op->operand[o].pin) continue;
            uint32_t cls = op->operand[o].cls, order = op->pinorder.p[cfg[k] * op->npin + pin++];
            uint64_t key = ((uint64_t)cls << 24 | order) + 1;
            if (rl_hash_get(&seen, key) != RL_NONE) continue;
            rl_hash_put(&seen, key, 1);
            n += any[cls];
            any[cls] = true;
        }
    }
    return n;
}

/* ---- a target with charges: is it worth it? ---- */

static bool is_matmul(const rl_graph *g, rl_node n) { return n.i != RL_NONE && rl_nod(g, n)->op == RL_OP_MatMul; }

/* What each component's movement takes: the model's own Transposes. */
static void cost_before(const rl_plan *p, double *cost)
{
    const rl_graph *g = p->g;
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (n->op != RL_OP_Transpose || !p->moving[g->order.p[k].i]) continue;
        const rl_cls *c = &p->cls.p[p->member[n->in[0].i].cls];
        const rl_valinfo *y = rl_val(g, n->out[0]);
        bool only_matmul = !y->is_output;
        for (uint32_t i = 0; i < y->nuse; i++) only_matmul &= is_matmul(g, y->use[i].node);
        cost[c->comp] += rl_move_cost(c, p->member[n->in[0].i].seq, p->member[n->out[0].i].seq, only_matmul);
    }
}

/* One order that some op names at a class. */
typedef struct { uint32_t cls, order; bool made, only_matmul; } naming;
typedef struct { naming *p; uint32_t n, cap; rl_hash index; } namings;

static void name_orders(rl_plan *p, const uint32_t *cfg, rl_arena *tmp, namings *all)
{
    all->index.mem = tmp;
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        uint32_t pin = 0;
        for (uint32_t o = 0; o < op->noperand; o++) {
            if (!op->operand[o].pin) continue;
            uint32_t cls = op->operand[o].cls, order = op->pinorder.p[cfg[k] * op->npin + pin++];
            uint64_t key = ((uint64_t)cls << 24 | order) + 1;
            uint32_t i = rl_hash_get(&all->index, key);
            if (i == RL_NONE) {
                rl_hash_put(&all->index, key, i = all->n);
                rl_push(tmp, *all, ((naming){cls, order, false, true}));
            }
            bool makes = op->operand[o].out || rl_same(op->operand[o].tensor, p->cls.p[cls].first);
            all->p[i].made |= makes && (op->operand[o].out || op->node.i == RL_NONE);
            all->p[i].only_matmul &= is_matmul(p->g, op->node);
        }
    }
}

/* What the conversions of some configurations come to, in one component. */
typedef struct { double time; int64_t count, bytes; } tally;

static tally *tally_of(rl_plan *p, const uint32_t *cfg, rl_arena *tmp)
{
    tally *t = rl_new(tmp, tally, p->ncomp);
    const uint8_t **made = rl_new(tmp, const uint8_t *, p->cls.n);
    uint32_t *first = rl_new(tmp, uint32_t, p->cls.n); /* 1 + the naming that is free */
    namings all = {0};
    name_orders(p, cfg, tmp, &all);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.p[i].made && !made[all.p[i].cls]) {
            made[all.p[i].cls] = p->cls.p[all.p[i].cls].order.p[all.p[i].order].p;
            first[all.p[i].cls] = i + 1;
        }
    for (uint32_t i = 0; i < all.n; i++) {
        rl_cls *c = &p->cls.p[all.p[i].cls];
        if (!made[all.p[i].cls] || first[all.p[i].cls] == i + 1) continue;
        t[c->comp].time += rl_move_cost(c, made[all.p[i].cls], c->order.p[all.p[i].order].p, all.p[i].only_matmul);
        t[c->comp].bytes += c->bytes;
        t[c->comp].count++;
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        if (op->comp == RL_NONE || op->noperand == 0) continue;
        t[op->comp].time += (double)(op->config.p[cfg[k]].charge - op->config.p[0].charge) / 10 *
                            (double)p->cls.p[op->operand[op->noperand - 1].cls].bytes;
    }
    return t;
}

/* Conversions are few, but not all alike.  For a target with charges the problem is solved by time and by count, with charges
 * in full and only beyond the model's own; each component takes the quickest of these that adds neither conversions nor
 * bytes, and stays as it is where none is clearly quicker than the model's own Transposes. */
static rl_status quickest(rl_plan *p, const scale *by_count, double limit, uint32_t *cfg, rl_arena *tmp)
{
    double *best = rl_new(tmp, double, p->ncomp);
    const tally *was = tally_of(p, cfg, tmp);
    rl_problem q;
    rl_solution sol;
    cost_before(p, best);
    for (uint32_t c = 0; c < p->ncomp; c++) best[c] *= RL_WORTH_IT;
    for (uint32_t way = 0; way < 4; way++) {
        scale s = *by_count;
        s.by_time = way < 2;
        problem_of(p, &s, way & 1, &q);
        RL_TRY(rl_solve(p->mem, &q, limit, &sol));
        const tally *now = tally_of(p, sol.cfg, tmp);
        bool *take = rl_new(tmp, bool, p->ncomp);
        for (uint32_t c = 0; c < p->ncomp; c++) {
            take[c] = now[c].time < best[c] && now[c].count <= was[c].count && now[c].bytes <= was[c].bytes;
            if (take[c]) best[c] = now[c].time;
        }
        for (uint32_t k = 0; k < p->op.n; k++)
            if (p->op.p[k].comp != RL_NONE && take[p->op.p[k].comp]) cfg[k] = sol.cfg[k];
    }
    return RL_OK;
}

rl_status rl_pass_assign(rl_pass_run *r)
{
    rl_plan *p = r->plan;
    rl_hash none = {.mem = r->tmp};
    r->out->improved = false;
    p->charge = rl_charges(r->opt->target ? r->opt->target : "generic");
    if (!p->charge) return rl_fail(p->g->ctx, RL_EUSAGE, "target '%s' is not known", r->opt->target);
    outside_demands(p);
    for (uint32_t k = 0; k < p->op.n; k++) {
        rl_hash seen = none;
        logical_config(p, &p->op.p[k], &seen);
    }
    components(p);
    find_active(p);
    collect(p);
    scale s = make_scale(p, r->opt->objective && strcmp(r->opt->objective, "bytes") == 0);

    double limit = r->opt->time_limit > 0 ? r->opt->time_limit : 5;
    rl_problem q;
    rl_solution sol;
    bool charged = charges_anything(p->charge) && !s.bytes_first;
    problem_of(p, &s, false, &q);
    if (charged) /* the bound is on the count, whatever the target charges */
        for (uint32_t k = 0; k < q.nop; k++) memset((int64_t *)q.op[k].cost, 0, q.op[k].ncfg * sizeof *q.op[k].cost);
    RL_TRY(rl_solve(p->mem, &q, limit, &sol));
    r->out->conv_before = conversions(p, q.start, r->tmp);
    /* The solver's bound is in scaled units: what it says of conversions is the whole units below it. */
    int64_t unit = (int64_t)1 << (s.conversion + s.nop_bits);
    r->out->conv_bound = sol.optimal ? conversions(p, sol.cfg, r->tmp) : s.bytes_first ? 0 : sol.bound / unit;
    r->out->optimal = sol.optimal;
    if (charged) {
        memset(sol.cfg, 0, p->op.n * sizeof *sol.cfg);
        RL_TRY(quickest(p, &s, limit, sol.cfg, r->tmp));
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        p->op.p[k].chosen = sol.cfg[k];
        r->out->improved |= sol.cfg[k] != 0;
    }
    r->out->conv_after = conversions(p, sol.cfg, r->tmp);
    r->large = p->large;
    return RL_OK;
}
