/* rl_solve against exhaustive search on small random problems, and what it must refuse.
 *   solve [count [seed]]      default: 4000 problems */
#include "../../passes/solve.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rng = 1;

static uint32_t below(uint32_t n) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)((rng >> 20) % n);
}

/* A random problem: 1-9 ops, 1-6 values, 1-4 orders; weights 0, 1 or random or lexicographic; pins may repeat a value. */
static rl_problem random_problem(rl_arena *a) {
    rl_problem p = {.nval = 1 + below(6), .nop = 1 + below(9)};
    int64_t *weight = rl_new(a, int64_t, p.nval);
    uint32_t *norder = rl_new(a, uint32_t, p.nval), *start = rl_new(a, uint32_t, p.nop), style = below(4);
    rl_choice *op = rl_new(a, rl_choice, p.nop);
    for (uint32_t v = 0; v < p.nval; v++) {
        norder[v] = 1 + below(4);
        weight[v] = style == 0 ? 1 : style == 1 ? below(3) : style == 2 ? below(20) : (INT64_C(1) << 40) + below(5);
    }
    bool costs = below(2), narrow = below(2);
    for (uint32_t o = 0; o < p.nop; o++) {
        uint32_t npin = below(4) + (below(8) ? 1 : 0), ncfg = below(4) ? 1 + below(narrow ? 3 : 5) : 1;
        uint32_t *value = rl_new(a, uint32_t, npin), *order = rl_new(a, uint32_t, npin * ncfg);
        int64_t *cost = rl_new(a, int64_t, ncfg);
        for (uint32_t k = 0; k < npin; k++) value[k] = below(p.nval);
        for (uint32_t c = 0; c < ncfg; c++) {
            for (uint32_t k = 0; k < npin; k++) order[c * npin + k] = below(norder[value[k]]);
            cost[c] = below(2) ? 0 : style == 3 ? (int64_t)below(2) << 40 : below(4);
        }
        op[o] = (rl_choice){npin, ncfg, value, order, costs ? cost : NULL};
        start[o] = below(ncfg);
    }
    p.weight = weight;
    p.norder = norder;
    p.op = op;
    p.start = below(2) ? start : NULL;
    return p;
}

/* Makes all costs dearer, and configurations differ by a little beside. */
static void add_ties(rl_arena *a, rl_problem *p) {
    enum { DEARER = 64, TIE = 3 };
    int64_t *weight = rl_copy(a, p->weight, p->nval * sizeof *weight);
    for (uint32_t v = 0; v < p->nval; v++) weight[v] *= DEARER;
    rl_choice *op = rl_copy(a, p->op, p->nop * sizeof *op);
    for (uint32_t o = 0; o < p->nop; o++) {
        int64_t *cost = rl_new(a, int64_t, op[o].ncfg);
        for (uint32_t c = 0; c < op[o].ncfg; c++) cost[c] = (op[o].cost ? op[o].cost[c] * DEARER : 0) + below(TIE + 1);
        op[o].cost = cost;
    }
    p->weight = weight;
    p->op = op;
    p->slack = DEARER / 2; /* more than nine ops come to */
}

static int64_t exhaustive(const rl_problem *p, rl_ctx *ctx, uint32_t *cfg, uint64_t *ntried) {
    int64_t best = INT64_MAX;
    memset(cfg, 0, p->nop * sizeof *cfg);
    rl_arena tmp;
    rl_arena_init(&tmp, ctx);
    for (uint32_t o = 0; o < p->nop;) {
        int64_t cost = rl_problem_cost(p, &tmp, cfg);
        rl_arena_free(&tmp);
        best = RL_MIN(best, cost);
        ++*ntried;
        for (o = 0; o < p->nop && ++cfg[o] == p->op[o].ncfg; o++) cfg[o] = 0;
    }
    return best;
}

static double space(const rl_problem *p) {
    double n = 1;
    for (uint32_t o = 0; o < p->nop; o++) n *= p->op[o].ncfg;
    return n;
}

/* Told that the least is no more than upper: finds what is less, or says that nothing is. */
static bool knows_upper(rl_arena *a, rl_problem p, int64_t want, int64_t upper) {
    rl_solution s;
    p.upper = upper;
    if (rl_solve(a, &p, 10, &s) != RL_OK || s.bound != want || s.cost != rl_problem_cost(&p, a, s.cfg)) return false;
    return upper > want ? s.optimal && s.cost == want : s.cost >= want && s.optimal == (s.cost == want);
}

/* The bound by spans is below the least, whatever the spans are; no order weighs more in them than it does.  tight: how often it is the least. */
static bool holds_by_spans(rl_arena *a, const rl_problem *p, int64_t want, uint32_t *n, uint32_t *tight) {
    rl_opspans x;
    uint32_t nop = 0;
    int64_t **left = rl_new(a, int64_t *, p->nval);
    rl_spanning spanning;
    if (rl_span_begin(a, p, &spanning) != RL_OK) return false;
    rl_solve_spans(a, &spanning, 1 + below(4), INT64_MAX / 4, rl_work_seconds() + 10, &x);
    if (x.n == 0) return true;
    for (uint32_t v = 0; v < p->nval; v++) {
        left[v] = rl_new(a, int64_t, p->norder[v]);
        for (uint32_t k = 0; k < p->norder[v]; k++) left[v][k] = p->weight[v];
    }
    for (uint32_t i = 0; i < x.n; nop += x.span[i++].nop)
        for (uint32_t k = 0; k < x.span[i].nweigh; k++) {
            const rl_weigh *w = &x.span[i].weigh[k];
            if (w->weight <= 0 || (left[w->value][w->order] -= w->weight) < 0) return false;
        }
    ++*n;
    *tight += x.bound == want;
    return x.bound <= want && nop == p->nop;
}

static int compare_all(rl_ctx *ctx, uint32_t count, uint64_t seed) {
    uint64_t ntried = 0;
    uint32_t nspan = 0, tight = 0;
    for (uint32_t i = 0; i < count; i++) {
        rng = seed * 1000003 + i + 1;
        for (int k = 0; k < 8; k++) below(2);
        rl_arena a;
        rl_arena_init(&a, ctx);
        rl_problem p = random_problem(&a);
        if (space(&p) > 20000) {
            rl_arena_free(&a);
            continue;
        }
        if (below(3) == 0) add_ties(&a, &p);
        rl_solution s;
        rl_status status = rl_solve(&a, &p, 10, &s);
        int64_t want = exhaustive(&p, ctx, rl_new(&a, uint32_t, p.nop), &ntried);
        bool near = s.bound <= want && s.cost >= want && s.cost - want <= p.slack && s.cost - s.bound <= p.slack;
        bool right = status == RL_OK && s.optimal && near && rl_problem_cost(&p, &a, s.cfg) == s.cost;
        if (right && p.slack == 0 && want > 0) right = knows_upper(&a, p, want, want + below(3));
        right = right && holds_by_spans(&a, &p, want, &nspan, &tight);
        if (!right) {
            printf("solve: problem %u of seed %" PRIu64 ": status %d (%s), cost %" PRId64 " bound %" PRId64 ", want %" PRId64 "\n", i,
                   seed, (int)status, ctx->error, s.cost, s.bound, want);
            return 1;
        }
        rl_arena_free(&a);
    }
    printf("solve: %u problems agree with exhaustive search (%" PRIu64 " assignments); of %u in spans %u bounds are the least\n", count, ntried, nspan, tight);
    return tight < nspan / 2;
}

/* A tangle that cannot be proven in the time: the bound must hold and the result be no worse than the start. */
static int check_out_of_time(rl_ctx *ctx, double seconds) {
    rl_arena a;
    rl_arena_init(&a, ctx);
    enum { N = 60, K = 5 };
    rl_choice *op = rl_new(&a, rl_choice, N);
    int64_t weight[N + 3];
    uint32_t norder[N + 3], *start = rl_new(&a, uint32_t, N);
    for (uint32_t v = 0; v < N + 3; v++) {
        weight[v] = 1 + v % 3;
        norder[v] = K;
    }
    rng = 99;
    for (uint32_t o = 0; o < N; o++) {
        uint32_t *value = rl_new(&a, uint32_t, 4), *order = rl_new(&a, uint32_t, 4 * 7);
        for (uint32_t k = 0; k < 4; k++) value[k] = below(N + 3);
        for (uint32_t k = 0; k < 28; k++) order[k] = below(K);
        op[o] = (rl_choice){4, 7, value, order, NULL};
    }
    rl_problem p = {.nval = N + 3, .nop = N, .weight = weight, .norder = norder, .op = op, .start = start};
    rl_solution s;
    rl_status status = rl_solve(&a, &p, seconds, &s);
    int64_t first = rl_problem_cost(&p, &a, start);
    int bad = status != RL_OK || s.bound > s.cost || s.cost > first || s.optimal != (s.bound == s.cost);
    if (bad) printf("solve: out of time: status %d cost %" PRId64 " bound %" PRId64 " start %" PRId64 "\n", (int)status, s.cost, s.bound, first);
    rl_arena_free(&a);
    return bad;
}

static int check_refusals(rl_ctx *ctx) {
    rl_arena a;
    rl_arena_init(&a, ctx);
    uint32_t value[2] = {0, 1}, order[2] = {1, 0}, norder[2] = {2, 2}, start[1] = {0};
    int64_t weight[2] = {5, 0}, cost[1] = {0};
    rl_choice op = {2, 1, value, order, cost};
    rl_problem p = {.nval = 2, .nop = 1, .weight = weight, .norder = norder, .op = &op, .start = start};
    rl_solution s;
    int bad = rl_solve(&a, &p, 1, &s) != RL_OK || s.cost != 0 || !s.optimal;
    order[0] = 2;
    bad |= rl_solve(&a, &p, 1, &s) != RL_EINTERNAL;
    order[0] = 1, value[1] = 2;
    bad |= rl_solve(&a, &p, 1, &s) != RL_EINTERNAL;
    value[1] = 1, start[0] = 1;
    bad |= rl_solve(&a, &p, 1, &s) != RL_EINTERNAL;
    start[0] = 0, weight[1] = -1;
    bad |= rl_solve(&a, &p, 1, &s) != RL_EINTERNAL;
    weight[1] = INT64_C(1) << 62;
    bad |= rl_solve(&a, &p, 1, &s) != RL_EINTERNAL;
    weight[1] = 0, cost[0] = -1;
    bad |= rl_solve(&a, &p, 1, &s) != RL_EINTERNAL;
    cost[0] = INT64_MAX;
    bad |= rl_solve(&a, &p, 1, &s) != RL_EINTERNAL;
    cost[0] = 0, op.ncfg = 0;
    bad |= rl_solve(&a, &p, 1, &s) != RL_EINTERNAL;
    p = (rl_problem){0};
    bad |= rl_solve(&a, &p, 1, &s) != RL_OK || s.cost != 0 || !s.optimal;
    if (bad) printf("solve: a malformed problem was taken, or a good one refused\n");
    rl_arena_free(&a);
    return bad;
}

int main(int argc, char **argv) {
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 4000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    rl_ctx *ctx = rl_ctx_new(0);
    if (!ctx || RL_PROTECT(ctx)) return 1;
    int bad = check_refusals(ctx) || check_out_of_time(ctx, 0) || check_out_of_time(ctx, 0.05) || compare_all(ctx, count, seed);
    rl_ctx_free(ctx);
    return bad;
}
