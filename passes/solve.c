/* The assignment problem: from solve.h to the cover (solve_cover.h), its components, and back.
 *
 *   check      indices, signs, and that no total can overflow
 *   cover      one element per (value, order); a configuration is a set of them
 *   reduce     solve_reduce.c, solve_fold.c
 *   split      components: ops that share elements; equal components (the repeated blocks of a network) are solved once
 *   solve      solve_search.c: a quick run for each, then what is left open shares the time
 *   assemble   choices in terms of the original configurations; where nothing was proven, never worse than the start
 *
 * The total is recomputed from the definition and must equal the one that the search believes in. */
#include "solve_cover.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the definition ---- */

/* The order that the chosen configuration of op o names at pin k. */
static uint32_t named(const rl_choice *o, uint32_t cfg, uint32_t k) {
    return o->order[(size_t)cfg * o->npin + k];
}

/* Pins by value: at[beg[v]] .. are (op, pin) pairs. */
typedef struct { uint32_t op, pin; } place;
typedef struct { uint32_t *beg; place *at; } pinlist;

static pinlist pins_by_value(rl_arena *mem, const rl_problem *p) {
    uint32_t total = 0, n = 0;
    for (uint32_t o = 0; o < p->nop; o++) total += p->op[o].npin;
    uint32_t *value = rl_new(mem, uint32_t, total);
    pinlist x = {.at = rl_new(mem, place, total)};
    for (uint32_t o = 0; o < p->nop; o++)
        for (uint32_t k = 0; k < p->op[o].npin; k++, n++) {
            value[n] = p->op[o].value[k];
            x.at[n] = (place){o, k};
        }
    x.beg = rl_sort_by_key(mem, p->nval, value, x.at, total, sizeof *x.at);
    return x;
}

int64_t rl_problem_cost(const rl_problem *p, rl_arena *tmp, const uint32_t *cfg) {
    pinlist x = pins_by_value(tmp, p);
    uint32_t most = 0;
    for (uint32_t v = 0; v < p->nval; v++) most = RL_MAX(most, p->norder[v]);
    uint32_t *seen = rl_new(tmp, uint32_t, most);
    int64_t total = 0;
    for (uint32_t o = 0; o < p->nop; o++)
        if (p->op[o].cost) total += p->op[o].cost[cfg[o]];
    for (uint32_t v = 0; v < p->nval; v++) {
        uint32_t n = 0;
        for (uint32_t i = x.beg[v]; i < x.beg[v + 1]; i++) {
            uint32_t r = named(&p->op[x.at[i].op], cfg[x.at[i].op], x.at[i].pin);
            n += seen[r] != v + 1;
            seen[r] = v + 1;
        }
        if (n) total += p->weight[v] * (n - 1);
    }
    return total;
}

/* ---- check ---- */

static rl_status check_choice(rl_ctx *ctx, const rl_problem *p, uint32_t o) {
    const rl_choice *c = &p->op[o];
    if (!c->ncfg) return rl_fail(ctx, RL_EINTERNAL, "solve: op %u has no configuration", o);
    if (p->start && p->start[o] >= c->ncfg)
        return rl_fail(ctx, RL_EINTERNAL, "solve: op %u starts at configuration %u of %u", o, p->start[o], c->ncfg);
    for (uint32_t k = 0; k < c->npin; k++)
        if (c->value[k] >= p->nval)
            return rl_fail(ctx, RL_EINTERNAL, "solve: op %u pin %u: value %u of %u", o, k, c->value[k], p->nval);
    for (uint32_t i = 0; i < c->ncfg; i++) {
        for (uint32_t k = 0; k < c->npin; k++)
            if (named(c, i, k) >= p->norder[c->value[k]])
                return rl_fail(ctx, RL_EINTERNAL, "solve: op %u configuration %u pin %u: order %u of %u", o, i, k,
                               named(c, i, k), p->norder[c->value[k]]);
        if (c->cost && c->cost[i] < 0)
            return rl_fail(ctx, RL_EINTERNAL, "solve: op %u configuration %u has a negative cost", o, i);
    }
    return RL_OK;
}

/* All costs and all pins at their weights together stay below 2^62, so no sum in the solver overflows. */
static rl_status check_sums(rl_ctx *ctx, const rl_problem *p, rl_arena *tmp) {
    static const int64_t limit = INT64_C(1) << 62;
    uint32_t *npin = rl_new(tmp, uint32_t, p->nval);
    int64_t total = 0, part;
    bool over = false;
    for (uint32_t o = 0; o < p->nop; o++) {
        int64_t most = 0;
        for (uint32_t i = 0; p->op[o].cost && i < p->op[o].ncfg; i++) most = RL_MAX(most, p->op[o].cost[i]);
        over |= __builtin_add_overflow(total, most, &total) || total >= limit;
        for (uint32_t k = 0; k < p->op[o].npin; k++) npin[p->op[o].value[k]]++;
    }
    for (uint32_t v = 0; v < p->nval && !over; v++)
        over |= __builtin_mul_overflow(p->weight[v], (int64_t)RL_MIN(npin[v], p->norder[v]), &part) ||
                __builtin_add_overflow(total, part, &total) || total >= limit;
    return over ? rl_fail(ctx, RL_EINTERNAL, "solve: the costs can add up to 2^62 or more") : RL_OK;
}

static rl_status check(rl_ctx *ctx, const rl_problem *p, rl_arena *tmp) {
    for (uint32_t v = 0; v < p->nval; v++)
        if (p->weight[v] < 0) return rl_fail(ctx, RL_EINTERNAL, "solve: value %u has a negative weight", v);
    for (uint32_t o = 0; o < p->nop; o++) RL_TRY(check_choice(ctx, p, o));
    return check_sums(ctx, p, tmp);
}

/* ---- the cover ---- */

static bool counts(const rl_problem *p, uint32_t v) {
    return p->norder[v] > 1 && p->weight[v] > 0;
}

/* The elements of a configuration, sorted, without repeats. */
static void fill_set(const rl_problem *p, const rl_choice *o, uint32_t c, const uint32_t *first, uint32_t *set, uint32_t width) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < o->npin; k++) {
        if (!counts(p, o->value[k])) continue;
        uint32_t e = first[o->value[k]] + named(o, c, k), i = n;
        while (i && set[i - 1] > e) i--;
        if (i && set[i - 1] == e) continue;
        memmove(set + i + 1, set + i, (n - i) * sizeof *set);
        set[i] = e;
        n++;
    }
    while (n < width) set[n++] = RL_NONE;
}

static rl_bundle bundle_of(rl_arena *mem, const rl_problem *p, const rl_choice *o, const uint32_t *first) {
    rl_bundle b = {.ncfg = o->ncfg};
    for (uint32_t k = 0; k < o->npin; k++) b.width += counts(p, o->value[k]);
    b.elem = rl_new(mem, uint32_t, (size_t)b.ncfg * b.width);
    b.cost = rl_new(mem, int64_t, b.ncfg);
    b.orig = rl_new(mem, uint32_t, b.ncfg);
    for (uint32_t c = 0; c < b.ncfg; c++) {
        fill_set(p, o, c, first, b.elem + (size_t)c * b.width, b.width);
        b.cost[c] = o->cost ? o->cost[c] : 0;
        b.orig[c] = c;
    }
    return b;
}

rl_status rl_cover_of(rl_arena *mem, const rl_problem *p, rl_cover *out) {
    uint32_t *first = rl_new(mem, uint32_t, p->nval);
    bool *used = rl_new(mem, bool, p->nval);
    uint64_t nelem = 0;
    for (uint32_t o = 0; o < p->nop; o++)
        for (uint32_t k = 0; k < p->op[o].npin; k++) used[p->op[o].value[k]] = true;
    *out = (rl_cover){.nop = p->nop, .nval = p->nval, .slack = p->slack, .upper = p->upper ? p->upper : INT64_MAX};
    for (uint32_t v = 0; v < p->nval; v++) {
        used[v] = used[v] && counts(p, v);
        first[v] = (uint32_t)nelem;
        nelem += used[v] ? p->norder[v] : 0;
        out->base -= used[v] ? p->weight[v] : 0;
        if (nelem > UINT32_MAX / 4) return rl_fail(mem->ctx, RL_ELIMIT, "solve: more than 2^30 orders in all");
    }
    out->nelem = (uint32_t)nelem;
    out->weight = rl_new(mem, int64_t, nelem);
    out->value = rl_new(mem, uint32_t, nelem);
    for (uint32_t v = 0; v < p->nval; v++)
        for (uint32_t k = 0; used[v] && k < p->norder[v]; k++) {
            out->weight[first[v] + k] = p->weight[v];
            out->value[first[v] + k] = v;
        }
    out->op = rl_new(mem, rl_bundle, p->nop);
    for (uint32_t o = 0; o < p->nop; o++) out->op[o] = bundle_of(mem, p, &p->op[o], first);
    return RL_OK;
}

/* ---- components ---- */

typedef struct { uint32_t n, *beg, *op; } split; /* the ops of each component, in the problem's order */

static split components(rl_arena *mem, const rl_cover *p) {
    uint32_t *up = rl_new(mem, uint32_t, p->nop), *with = rl_new(mem, uint32_t, p->nelem);
    for (uint32_t o = 0; o < p->nop; o++) {
        const rl_bundle *b = &p->op[o];
        up[o] = o;
        for (size_t k = 0; b->ncfg > 1 && k < (size_t)b->ncfg * b->width; k++) {
            uint32_t e = b->elem[k];
            if (e == RL_NONE) continue;
            if (with[e]) up[rl_root(up, with[e] - 1)] = rl_root(up, o);
            with[e] = o + 1;
        }
    }
    split s = {.op = rl_new(mem, uint32_t, p->nop)};
    uint32_t *id = rl_new(mem, uint32_t, p->nop), *part = rl_new(mem, uint32_t, p->nop), n = 0;
    for (uint32_t o = 0; o < p->nop; o++) {
        if (p->op[o].ncfg < 2) continue;
        uint32_t root = rl_root(up, o);
        if (!id[root]) id[root] = ++s.n;
        part[n] = id[root] - 1;
        s.op[n++] = o;
    }
    s.beg = rl_sort_by_key(mem, s.n, part, s.op, n, sizeof *s.op);
    return s;
}

/* Numbers from 0 in order of first sight; the numbers given out are in list. */
typedef struct { uint32_t *of, *list, n; } renumber;

static uint32_t number(renumber *r, uint32_t x) {
    if (!r->of[x]) {
        r->list[r->n] = x;
        r->of[x] = ++r->n;
    }
    return r->of[x] - 1;
}

static void forget(renumber *r) {
    for (uint32_t k = 0; k < r->n; k++) r->of[r->list[k]] = 0;
    r->n = 0;
}

static void sort_set(uint32_t *set, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k && set[k] < set[k - 1]; k--) {
            uint32_t t = set[k];
            set[k] = set[k - 1];
            set[k - 1] = t;
        }
}

/* A component as a cover of its own; elements and values are numbered as they come, so that equal components look equal. */
static rl_cover extract(rl_arena *mem, const rl_cover *p, const uint32_t *op, uint32_t nop, renumber *elems, renumber *vals) {
    rl_cover q = {.nop = nop, .op = rl_new(mem, rl_bundle, nop), .slack = p->slack, .upper = p->upper};
    for (uint32_t i = 0; i < nop; i++) {
        rl_bundle b = p->op[op[i]];
        size_t n = (size_t)b.ncfg * b.width;
        b.elem = rl_copy(mem, b.elem, n * sizeof *b.elem);
        for (size_t k = 0; k < n; k++)
            if (b.elem[k] != RL_NONE) b.elem[k] = number(elems, b.elem[k]);
        for (uint32_t c = 0; c < b.ncfg; c++) sort_set(b.elem + (size_t)c * b.width, b.width);
        q.op[i] = b;
    }
    q.nelem = elems->n;
    q.weight = rl_new(mem, int64_t, q.nelem);
    q.value = rl_new(mem, uint32_t, q.nelem);
    for (uint32_t e = 0; e < q.nelem; e++) {
        q.weight[e] = p->weight[elems->list[e]];
        q.value[e] = number(vals, p->value[elems->list[e]]);
    }
    q.nval = vals->n;
    forget(elems);
    forget(vals);
    return q;
}

/* ---- equal components ---- */

typedef struct { rl_cover cover; rl_cover_choice choice; uint32_t times; } solved; /* times: so many components are equal to it */
typedef struct { rl_hash index; struct { solved *p; uint32_t n, cap; } all; } memo;

static uint64_t mix(uint64_t h, const void *p, size_t n) {
    return (h ^ rl_hash_bytes(p, n)) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t cover_hash(const rl_cover *p) {
    uint64_t h = mix(p->nop, p->weight, p->nelem * sizeof *p->weight);
    for (uint32_t o = 0; o < p->nop; o++) {
        const rl_bundle *b = &p->op[o];
        h = mix(h, b->elem, (size_t)b->ncfg * b->width * sizeof *b->elem);
        h = mix(h, b->cost, b->ncfg * sizeof *b->cost);
    }
    return h;
}

static bool cover_equal(const rl_cover *p, const rl_cover *q) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the index has covers of the memo */
    if (p->nop != q->nop || p->nelem != q->nelem || !rl_same_bytes(p->weight, q->weight, p->nelem * sizeof *p->weight)) return false;
    for (uint32_t o = 0; o < p->nop; o++) {
        const rl_bundle *a = &p->op[o], *b = &q->op[o];
        if (a->ncfg != b->ncfg || a->width != b->width || !rl_same_bytes(a->cost, b->cost, a->ncfg * sizeof *a->cost) ||
            !rl_same_bytes(a->elem, b->elem, (size_t)a->ncfg * a->width * sizeof *a->elem))
            return false;
    }
    return true;
}

/* The place in the memo of a cover equal to p. */
static uint32_t memorize(rl_arena *mem, memo *m, const rl_cover *p) {
    uint64_t h = cover_hash(p);
    for (uint32_t k; (k = rl_hash_get(&m->index, h)) != RL_NONE; h++) {
        if (!cover_equal(&m->all.p[k].cover, p)) continue;
        m->all.p[k].times++;
        return k;
    }
    rl_hash_put(&m->index, h, m->all.n);
    rl_push(mem, m->all, ((solved){*p, {0}, 1}));
    return m->all.n - 1;
}

/* What all components cost at least. */
static int64_t bound_of(const memo *m) {
    int64_t sum = 0;
    for (uint32_t k = 0; k < m->all.n; k++) sum += m->all.p[k].times * m->all.p[k].choice.bound;
    return sum;
}

/* Of x only what is cheaper than this is of interest, where all components together are known to cost no more than upper. */
static int64_t upper_of(const memo *m, const solved *x, int64_t upper) {
    if (upper == INT64_MAX) return upper;
    int64_t rest = upper - (bound_of(m) - x->times * x->choice.bound);
    return rest <= 0 ? rest : (rest - 1) / x->times + 1;
}

static int compare_sizes(const void *a, const void *b) {
    const solved *x = *(solved *const *)a, *y = *(solved *const *)b;
    return (x->cover.nop > y->cover.nop) - (x->cover.nop < y->cover.nop);
}

/* Solves the rounded component, and takes from there what is better in one place.  False where nothing is to be rounded. */
static bool solve_rounded(rl_arena *mem, solved *x, double deadline) {
    const rl_cover *p = &x->cover;
    rl_cover q;
    int64_t off;
    if (!rl_cover_round(mem, p, &q, &off)) return false;
    rl_cover_choice c = rl_cover_solve(mem, &q, false, deadline);
    int64_t cost = rl_cover_improve(mem, p, c.cfg);
    if (cost < x->choice.cost) {
        x->choice.cost = cost;
        memcpy(x->choice.cfg, c.cfg, p->nop * sizeof *c.cfg);
    }
    x->choice.bound = RL_MAX(x->choice.bound, RL_MIN(c.bound + off, x->choice.cost));
    x->choice.proven = x->choice.bound >= x->choice.cost - p->slack;
    return true;
}

/* What the quick runs left open shares the time that is left, the small ones first: what they do not use goes to the large. */
static void solve_open(rl_arena *mem, memo *m, int64_t upper, double deadline) {
    solved **open = rl_new(mem, solved *, m->all.n);
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->all.n; k++)
        if (!m->all.p[k].choice.proven) open[n++] = &m->all.p[k];
    qsort(open, n, sizeof *open, compare_sizes);
    for (uint32_t k = 0; k < n && bound_of(m) < upper; k++) {
        double now = rl_work_seconds(), until = now + (deadline - now) / (n - k);
        open[k]->cover.upper = upper_of(m, open[k], upper);
        bool told = upper < INT64_MAX && open[k]->choice.cost < open[k]->cover.upper; /* the total that is known is not the least: what is matters less */
        if (told) until = now + (until - now) / 2;
        if (!solve_rounded(mem, open[k], until)) rl_component_solve(mem, &open[k]->cover, until, &open[k]->choice);
    }
}

/* ---- all together ---- */

#define FOLD_STEPS 20000000
enum { MANY = 64 }; /* folds: one of so many elements */

rl_cover_choice rl_cover_solve(rl_arena *mem, rl_cover *p, bool folded, double deadline) {
    if (!folded) rl_cover_fold(mem, p, FOLD_STEPS, deadline, NULL); /* before what is paid is taken out, which tells the orders of an op apart */
    rl_cover_reduce(mem, p);
    for (uint32_t round = 0, n = p->nelem; round < 3 && n > p->nelem / MANY && !folded; round++) { /* few folds lead to no more */
        n = rl_cover_fold(mem, p, FOLD_STEPS, deadline, NULL);
        if (n) rl_cover_reduce(mem, p);
    }
    split s = components(mem, p);
    renumber elems = {rl_new(mem, uint32_t, p->nelem), rl_new(mem, uint32_t, p->nelem), 0};
    renumber vals = {rl_new(mem, uint32_t, p->nval), rl_new(mem, uint32_t, p->nval), 0};
    rl_cover_choice total = {rl_new(mem, uint32_t, p->nop), p->base, p->base, true};
    memo m = {.index = {.mem = mem}};
    uint32_t *which = rl_new(mem, uint32_t, s.n);
    for (uint32_t k = 0; k < s.n; k++) {
        rl_cover q = extract(mem, p, s.op + s.beg[k], s.beg[k + 1] - s.beg[k], &elems, &vals);
        which[k] = memorize(mem, &m, &q);
    }
    int64_t upper = p->upper == INT64_MAX ? INT64_MAX : p->upper - p->base;
    for (uint32_t k = 0; k < m.all.n; k++) {
        m.all.p[k].cover.upper = upper_of(&m, &m.all.p[k], upper);
        m.all.p[k].choice = rl_component_try(mem, &m.all.p[k].cover, deadline);
    }
    solve_open(mem, &m, upper, deadline);
    for (uint32_t o = 0; o < p->nop; o++) total.cfg[o] = p->op[o].orig[0];
    for (uint32_t k = 0; k < s.n; k++) {
        const rl_cover_choice *c = &m.all.p[which[k]].choice;
        total.cost += c->cost;
        total.bound += c->bound;
        total.proven &= c->proven;
        for (uint32_t i = s.beg[k]; i < s.beg[k + 1]; i++) total.cfg[s.op[i]] = p->op[s.op[i]].orig[c->cfg[i - s.beg[k]]];
    }
    return total;
}

rl_status rl_solve(rl_arena *mem, const rl_problem *p, double seconds, rl_solution *out) {
    return rl_solve_folded(mem, p, false, seconds, out);
}

rl_status rl_solve_folded(rl_arena *mem, const rl_problem *p, bool folded, double seconds, rl_solution *out) {
    rl_arena tmp;
    rl_arena_init(&tmp, mem->ctx);
    *out = (rl_solution){.cfg = rl_new(mem, uint32_t, p->nop)};
    rl_cover cover;
    rl_status status = check(mem->ctx, p, &tmp);
    if (status == RL_OK) status = rl_cover_of(&tmp, p, &cover);
    if (status == RL_OK) {
        rl_cover_choice c = rl_cover_solve(&tmp, &cover, folded, rl_work_seconds() + seconds);
        memcpy(out->cfg, c.cfg, p->nop * sizeof *c.cfg);
        out->cost = rl_problem_cost(p, &tmp, c.cfg);
        out->bound = c.bound;
        if (out->cost != c.cost)
            status = rl_fail(mem->ctx, RL_EINTERNAL, "solve: the total is %" PRId64 ", the search says %" PRId64, out->cost, c.cost);
        if (status == RL_OK && p->start) {
            int64_t cost = rl_problem_cost(p, &tmp, p->start);
            if (cost < out->bound)
                status = rl_fail(mem->ctx, RL_EINTERNAL, "solve: the start costs %" PRId64 ", below the bound %" PRId64, cost, out->bound);
            if (cost < out->cost) {
                out->cost = cost;
                memcpy(out->cfg, p->start, p->nop * sizeof *out->cfg);
            }
        }
        out->optimal = c.proven || out->cost == out->bound;
    }
    rl_arena_free(&tmp);
    return status;
}

static bool *find_held(rl_arena *mem, const rl_cover *p) {
    bool *held = rl_new(mem, bool, p->nelem);
    for (uint32_t o = 0; o < p->nop; o++)
        for (size_t k = 0; k < (size_t)p->op[o].ncfg * p->op[o].width; k++)
            if (p->op[o].elem[k] != RL_NONE) held[p->op[o].elem[k]] = true;
    return held;
}

static rl_status fold(rl_arena *mem, rl_arena *tmp, const rl_problem *p, bool settled, double deadline, uint32_t **to) {
    rl_cover cover;
    RL_TRY(check(mem->ctx, p, tmp));
    RL_TRY(rl_cover_of(tmp, p, &cover));
    if (settled) rl_cover_settle(tmp, &cover);
    const bool *held = find_held(tmp, &cover);
    uint32_t *map = rl_new(tmp, uint32_t, cover.nelem), first = 0;
    rl_cover_fold(tmp, &cover, FOLD_STEPS, deadline, map);
    for (uint32_t e = 0; e < cover.nelem; e++)
        if (!held[e]) map[e] = e;
    memset(to, 0, p->nval * sizeof *to);
    while (first < cover.nelem) {
        uint32_t v = cover.value[first];
        to[v] = rl_new(mem, uint32_t, p->norder[v]);
        for (uint32_t k = 0; k < p->norder[v]; k++) to[v][k] = map[first + k] - first;
        first += p->norder[v];
    }
    return RL_OK;
}

rl_status rl_problem_fold(rl_arena *mem, const rl_problem *p, bool settled, double deadline, uint32_t **to) {
    rl_arena tmp;
    rl_arena_init(&tmp, mem->ctx);
    rl_status s = fold(mem, &tmp, p, settled, deadline, to);
    rl_arena_free(&tmp);
    return s;
}
