/* The assignment problem of a profile for the solver of passes/solve.h, and its answer.  For a value v that an op makes in layouts p and ops
 * read in layouts d:
 *
 *   one d            the move is part of what making it in p costs
 *   one p            one reader: the move is part of what reading it in d costs.  Several: a value for each d, with the orders `not moved to` and
 *                    `moved to`, that weighs what the move costs; so a layout that several readers want is moved to once
 *   one reader       a move (p, d) between the maker's value and the reader's; it costs what moving from p to d does
 *   several          a hub (p, D), D a set of layouts: the sum of the moves from p to those in D; and for each reader a gate (D, d), d in D
 *
 * Values weigh more than everything else together in the last two, so that what stands at both sides agrees. */
#include <string.h>

#include "../passes/solve.h"
#include "cmd_profile.h"

enum { SETS = 6 }; /* layouts of a value that are looked at in sets */

typedef struct { uint32_t op, pin; } rl_end;
typedef enum { IN_MAKER, IN_READER, SHARED, JOINED } coupling; /* in the order of the above; JOINED: the last two */

/* A value of the profile: who makes it and who reads it; and the layouts that may stand at both. */
typedef struct {
    struct { rl_end *p; uint32_t n, cap; } reader;
    rl_end maker;
    struct { uint32_t *p; uint32_t n, cap; } made, read;
    coupling kind;
    uint32_t first;            /* SHARED: the solver's value of read.p[0]; the others follow */
} place;

typedef struct {
    rl_profile *p;
    rl_arena *mem;
    struct { int64_t *p; uint32_t n, cap; } weight;
    struct { uint32_t *p; uint32_t n, cap; } norder;
    struct { rl_choice *p; uint32_t n, cap; } op;
    place *at;                 /* [value of the graph] */
    uint32_t **port;           /* [op][pin] the solver's value */
    bool **keep;               /* [op][configuration] false: no best choice needs it */
    uint32_t *place;           /* [op] where it is in the problem */
    int64_t heavy;
} builder;

static uint32_t index_of(const uint32_t *p, uint32_t n, uint32_t x) {
    uint32_t i = 0;
    while (i < n && p[i] != x) i++;
    return i;
}

static uint32_t new_value(builder *b, uint32_t norder, int64_t weight) {
    rl_push(b->mem, b->weight, weight);
    rl_push(b->mem, b->norder, norder);
    return b->weight.n - 1;
}

static void add_choice(builder *b, uint32_t npin, const uint32_t *value, uint32_t ncfg, const uint32_t *order, const int64_t *cost) {
    rl_choice c = {.npin = npin, .ncfg = ncfg, .value = rl_copy(b->mem, value, npin * sizeof *value), .order = order, .cost = cost};
    rl_push(b->mem, b->op, c);
}

/* ---- values ---- */

#define ADD_ONCE(mem, set, x)                                                                                        \
    do {                                                                                                             \
        if (index_of((set).p, (set).n, (x)) == (set).n) rl_push((mem), (set), (x));                                  \
    } while (0)

static void find_ends(builder *b) {
    const rl_probe *q = &b->p->probe;
    for (uint32_t i = 0; i < q->op.n; i++) {
        const rl_probe_op *o = &q->op.p[i];
        for (uint32_t k = 0; k < o->npin; k++) {
            place *a = &b->at[o->pin[k].v.i];
            if (o->pin[k].out) a->maker = (rl_end){i, k};
            else rl_push(b->mem, a->reader, ((rl_end){i, k}));
            for (uint32_t c = 0; c < o->cfg.n; c++) {
                if (!b->keep[i][c]) continue;
                if (o->pin[k].out) ADD_ONCE(b->mem, a->made, o->cfg.p[c].lay[k]);
                else ADD_ONCE(b->mem, a->read, o->cfg.p[c].lay[k]);
            }
        }
    }
}

static int64_t move_cost(const builder *b, uint32_t v, uint32_t from, uint32_t to) {
    int64_t ns = rl_probe_move_cost(&b->p->probe, v, from, to);
    return ns == INT64_MAX ? b->heavy : ns;
}

static void add_move(builder *b, uint32_t v, uint32_t from, uint32_t to) {
    const place *a = &b->at[v];
    uint32_t n = 0, *order = rl_new(b->mem, uint32_t, 2 * a->made.n * a->read.n);
    int64_t *cost = rl_new(b->mem, int64_t, a->made.n * a->read.n);
    for (uint32_t i = 0; i < a->made.n; i++)
        for (uint32_t k = 0; k < a->read.n; k++, n++) {
            order[2 * n] = i, order[2 * n + 1] = k;
            cost[n] = move_cost(b, v, a->made.p[i], a->read.p[k]);
        }
    add_choice(b, 2, (uint32_t[]){from, to}, n, order, cost);
}

static void add_gate(builder *b, const place *a, uint32_t set, uint32_t to) {
    uint32_t n = 0, *order = rl_new(b->mem, uint32_t, 2 * a->read.n << a->read.n);
    for (uint32_t d = 1; d < 1u << a->read.n; d++)
        for (uint32_t k = 0; k < a->read.n; k++)
            if (d >> k & 1) order[2 * n] = d - 1, order[2 * n++ + 1] = k;
    add_choice(b, 2, (uint32_t[]){set, to}, n, order, rl_new(b->mem, int64_t, n));
}

static void add_hub(builder *b, uint32_t v, uint32_t from, uint32_t set) {
    const place *a = &b->at[v];
    uint32_t n = 0, nset = (1u << a->read.n) - 1, *order = rl_new(b->mem, uint32_t, 2 * a->made.n * nset);
    int64_t *cost = rl_new(b->mem, int64_t, a->made.n * nset);
    for (uint32_t i = 0; i < a->made.n; i++)
        for (uint32_t d = 1; d <= nset; d++, n++) {
            order[2 * n] = i, order[2 * n + 1] = d - 1;
            for (uint32_t k = 0; k < a->read.n; k++)
                if (d >> k & 1) cost[n] = RL_MIN(rl_add(cost[n], move_cost(b, v, a->made.p[i], a->read.p[k])), b->heavy);
        }
    add_choice(b, 2, (uint32_t[]){from, set}, n, order, cost);
}

/* One layout to move from, several readers: an op that moves to none of the others. */
static void add_shared(builder *b, uint32_t v) {
    place *a = &b->at[v];
    uint32_t *value = rl_new(b->mem, uint32_t, a->read.n);
    a->kind = SHARED;
    for (uint32_t k = 0; k < a->read.n; k++) value[k] = new_value(b, 2, move_cost(b, v, a->made.p[0], a->read.p[k]));
    a->first = value[0];
    add_choice(b, a->read.n, value, 1, rl_new(b->mem, uint32_t, a->read.n), rl_new(b->mem, int64_t, 1));
}

static rl_status add_joined(builder *b, uint32_t v) {
    place *a = &b->at[v];
    uint32_t from = b->port[a->maker.op][a->maker.pin] = new_value(b, a->made.n, b->heavy), set = RL_NONE;
    a->kind = JOINED;
    if (a->reader.n > 1 && a->read.n > SETS) return rl_fail(b->p->probe.x->g->ctx, RL_ELIMIT, "a value is read in %u layouts", a->read.n);
    if (a->reader.n > 1) {
        set = new_value(b, (1u << a->read.n) - 1, b->heavy);
        add_hub(b, v, from, set);
    }
    for (uint32_t i = 0; i < a->reader.n; i++) {
        uint32_t to = new_value(b, a->read.n, b->heavy);
        b->port[a->reader.p[i].op][a->reader.p[i].pin] = to;
        if (a->reader.n == 1) add_move(b, v, from, to);
        else add_gate(b, a, set, to);
    }
    return RL_OK;
}

static rl_status add_value(builder *b, uint32_t v) {
    place *a = &b->at[v];
    if (a->maker.op == RL_NONE || !a->read.n) return RL_OK;
    if (a->read.n == 1) a->kind = IN_MAKER;
    else if (a->made.n == 1 && a->reader.n == 1) a->kind = IN_READER;
    else if (a->made.n == 1) add_shared(b, v);
    else return add_joined(b, v);
    return RL_OK;
}

/* ---- ops ---- */

/* What pin k of op i adds to a configuration with this layout: cost, and at most one order for each solver's value of its own. */
static void add_pin(builder *b, uint32_t i, uint32_t k, uint32_t lay, uint32_t *order, uint32_t *at, int64_t *cost) {
    const rl_pin *pin = &b->p->probe.op.p[i].pin[k];
    const place *a = &b->at[pin->v.i];
    if (a->kind == IN_MAKER && pin->out && a->read.n) *cost = rl_add(*cost, move_cost(b, pin->v.i, lay, a->read.p[0]));
    if (a->kind == IN_READER && !pin->out) *cost = rl_add(*cost, move_cost(b, pin->v.i, a->made.p[0], lay));
    for (uint32_t d = 0; a->kind == SHARED && !pin->out && d < a->read.n; d++) order[(*at)++] = a->read.p[d] == lay;
    if (a->kind == JOINED) order[(*at)++] = pin->out ? index_of(a->made.p, a->made.n, lay) : index_of(a->read.p, a->read.n, lay);
}

/* The solver's values at pin k of op i. */
static void find_ports(const builder *b, uint32_t i, uint32_t k, uint32_t *value, uint32_t *n) {
    const rl_pin *pin = &b->p->probe.op.p[i].pin[k];
    const place *a = &b->at[pin->v.i];
    for (uint32_t d = 0; a->kind == SHARED && !pin->out && d < a->read.n; d++) value[(*n)++] = a->first + d;
    if (a->kind == JOINED) value[(*n)++] = b->port[i][k];
}

/* Its configurations, as far as its values have a choice. */
static void add_op(builder *b, uint32_t i) {
    const rl_probe_op *o = &b->p->probe.op.p[i];
    uint32_t most = 0, n = 0, ncfg = 0, at = 0;
    for (uint32_t k = 0; k < o->npin; k++) most += RL_MAX(b->at[o->pin[k].v.i].read.n, 1u);
    uint32_t *order = rl_new(b->mem, uint32_t, most * o->cfg.n + 1), *value = rl_new(b->mem, uint32_t, most + 1);
    int64_t *cost = rl_new(b->mem, int64_t, o->cfg.n);
    for (uint32_t k = 0; k < o->npin; k++) find_ports(b, i, k, value, &n);
    for (uint32_t c = 0; c < o->cfg.n; c++) {
        if (!b->keep[i][c]) continue;
        cost[ncfg] = o->cfg.p[c].ns;
        for (uint32_t k = 0; k < o->npin; k++) add_pin(b, i, k, o->cfg.p[c].lay[k], order, &at, &cost[ncfg]);
        ncfg++;
    }
    b->place[i] = b->op.n;
    add_choice(b, n, value, ncfg, order, cost);
}

/* More than everything else together. */
static int64_t find_heavy(const rl_probe *q) {
    int64_t all = 1;
    for (uint32_t i = 0; i < q->op.n; i++) {
        int64_t most = 0;
        for (uint32_t c = 0; c < q->op.p[i].cfg.n; c++) most = RL_MAX(most, q->op.p[i].cfg.p[c].ns);
        all = rl_add(all, most);
    }
    for (uint32_t i = 0; i < q->move.n; i++) all = rl_add(all, q->move.p[i].ns);
    return all;
}

static rl_status build(builder *b, rl_problem *out) {
    const rl_probe *q = &b->p->probe;
    uint32_t nval = q->x->g->nval;
    b->heavy = find_heavy(q);
    b->at = rl_new(b->mem, place, nval);
    b->port = rl_new(b->mem, uint32_t *, q->op.n + 1);
    for (uint32_t v = 0; v < nval; v++) b->at[v].maker.op = RL_NONE;
    b->keep = rl_new(b->mem, bool *, q->op.n + 1);
    b->place = rl_new(b->mem, uint32_t, q->op.n + 1);
    for (uint32_t i = 0; i < q->op.n; i++) {
        b->port[i] = rl_new(b->mem, uint32_t, q->op.p[i].npin + 1);
        memset(b->port[i], 0xff, q->op.p[i].npin * sizeof **b->port);
        b->keep[i] = rl_new(b->mem, bool, q->op.p[i].cfg.n);
        memset(b->keep[i], true, q->op.p[i].cfg.n);
    }
    rl_profile_reduce(b->p, b->mem, b->keep);
    find_ends(b);
    for (uint32_t v = 0; v < nval; v++) RL_TRY(add_value(b, v));
    for (uint32_t i = 0; i < q->op.n; i++) add_op(b, i);
    *out = (rl_problem){.nval = b->weight.n, .nop = b->op.n, .weight = b->weight.p, .norder = b->norder.p, .op = b->op.p};
    return RL_OK;
}

static void take(uint32_t *chosen, const builder *b, const rl_solution *s) {
    for (uint32_t i = 0; i < b->p->probe.op.n; i++) {
        uint32_t c = 0, left = s->cfg[b->place[i]];
        while (!b->keep[i][c] || left--) c++;
        chosen[i] = c;
    }
}

/* ---- the best of both ---- */

/* From the definition (native_probe.h). A value of whom no maker is known costs nothing to move. */
static int64_t cost_of(const rl_probe *q, rl_arena *mem, const uint32_t *chosen) {
    uint32_t *made = rl_new(mem, uint32_t, q->x->g->nval + 1);
    bool *there = rl_new(mem, bool, (size_t)q->x->g->nval * q->lay.n + 1);
    int64_t cost = 0;
    memset(made, 0xff, q->x->g->nval * sizeof *made);
    for (uint32_t i = 0; i < q->op.n; i++) {
        const rl_probe_op *o = &q->op.p[i];
        const rl_probe_cfg *c = &o->cfg.p[chosen[i]];
        cost = rl_add(cost, c->ns);
        for (uint32_t k = 0; k < o->npin; k++) {
            uint32_t v = o->pin[k].v.i;
            bool *had = &there[(size_t)v * q->lay.n + c->lay[k]];
            if (!o->pin[k].out && !*had && made[v] != RL_NONE) cost = rl_add(cost, rl_probe_move_cost(q, v, made[v], c->lay[k]));
            if (o->pin[k].out) made[v] = c->lay[k];
            *had = true;
        }
    }
    return cost;
}

static rl_status solve(rl_arena *tmp, double seconds, rl_profile *p) {
    rl_problem problem;
    rl_solution s;
    const rl_probe *q = &p->probe;
    rl_ctx *ctx = q->x->g->ctx;
    builder b = {.p = p, .mem = tmp};
    uint32_t *solved = rl_new(tmp, uint32_t, q->op.n + 1);
    RL_TRY(build(&b, &problem));
    RL_TRY(rl_solve(tmp, &problem, seconds, &s));
    take(solved, &b, &s);
    memset(p->chosen, 0, q->op.n * sizeof *p->chosen); /* as without a plan */
    int64_t known = cost_of(q, tmp, p->chosen), cost = cost_of(q, tmp, solved);
    if (s.optimal && cost != s.cost) return rl_fail(ctx, RL_EINTERNAL, "the solver's choice costs other than it says");
    if (cost <= known) {
        memcpy(p->chosen, solved, q->op.n * sizeof *solved);
        known = cost;
    }
    int64_t bound = rl_profile_exact(q, b.keep, seconds, tmp, p->chosen, &known);
    if (known < s.bound || cost_of(q, tmp, p->chosen) != known) return rl_fail(ctx, RL_EINTERNAL, "the least cost is not the solver's");
    p->predicted = rl_add(known, q->fixed);
    p->bound = rl_add(RL_MAX(bound, s.bound), q->fixed);
    p->optimal = p->predicted == p->bound;
    p->checked = bound == known;
    return RL_OK;
}

rl_status rl_profile_solve(void *limit, rl_profile *p) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->probe.x->g->ctx);
    rl_status s = solve(&tmp, *(const double *)limit, p);
    rl_arena_free(&tmp);
    return s;
}
