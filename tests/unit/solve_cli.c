/* Solves problems given as text: numbers between spaces, one problem after another.
 *   nval nop seconds slack hasstart
 *   weight norder                    for each value
 *   npin ncfg, the npin values, then for each configuration its cost and npin orders; for each op
 *   nop configurations               if hasstart
 * Prints for each problem: status cost bound optimal seconds, then the configurations. */
#include "../../passes/solve.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool read_int(int64_t *out) {
    int c = getchar_unlocked();
    while (c == ' ' || c == '\n') c = getchar_unlocked();
    if (c == EOF) return false;
    bool neg = c == '-';
    if (neg) c = getchar_unlocked();
    for (*out = 0; c >= '0' && c <= '9'; c = getchar_unlocked()) *out = *out * 10 + (c - '0');
    if (neg) *out = -*out;
    return true;
}

static uint32_t read_count(void) {
    int64_t x = 0;
    if (!read_int(&x) || x < 0 || x > UINT32_MAX / 2) {
        fprintf(stderr, "solve_cli: a count is missing or out of range\n");
        exit(2);
    }
    return (uint32_t)x;
}

static int64_t read_cost(void) {
    int64_t x = 0;
    if (!read_int(&x)) exit(2);
    return x;
}

static void read_op(rl_arena *a, rl_choice *op) {
    uint32_t npin = read_count(), ncfg = read_count();
    uint32_t *value = rl_new(a, uint32_t, npin), *order = rl_new(a, uint32_t, (size_t)npin * ncfg);
    int64_t *cost = rl_new(a, int64_t, ncfg);
    for (uint32_t k = 0; k < npin; k++) value[k] = read_count();
    for (uint32_t c = 0; c < ncfg; c++) {
        cost[c] = read_cost();
        for (uint32_t k = 0; k < npin; k++) order[(size_t)c * npin + k] = read_count();
    }
    *op = (rl_choice){npin, ncfg, value, order, cost};
}

static void read_problem(rl_arena *a, rl_problem *p, bool hasstart) {
    int64_t *weight = rl_new(a, int64_t, p->nval);
    uint32_t *norder = rl_new(a, uint32_t, p->nval), *start = hasstart ? rl_new(a, uint32_t, p->nop) : NULL;
    rl_choice *op = rl_new(a, rl_choice, p->nop);
    for (uint32_t v = 0; v < p->nval; v++) {
        weight[v] = read_cost();
        norder[v] = read_count();
    }
    for (uint32_t o = 0; o < p->nop; o++) read_op(a, &op[o]);
    for (uint32_t o = 0; hasstart && o < p->nop; o++) start[o] = read_count();
    p->weight = weight;
    p->norder = norder;
    p->op = op;
    p->start = start;
}

int main(void) {
    rl_ctx *ctx = rl_ctx_new(0);
    if (!ctx || RL_PROTECT(ctx)) return RL_ENOMEM;
    int64_t nval;
    while (read_int(&nval)) {
        rl_arena a;
        rl_arena_init(&a, ctx);
        uint32_t nop = read_count(), seconds = read_count();
        rl_problem p = {.nval = (uint32_t)nval, .nop = nop, .slack = read_cost()};
        read_problem(&a, &p, read_count() != 0);
        double start = rl_seconds();
        rl_solution s;
        rl_status status = rl_solve(&a, &p, seconds, &s);
        if (status != RL_OK) fprintf(stderr, "%s\n", ctx->error);
        printf("%d %" PRId64 " %" PRId64 " %d %.4f\n", (int)status, s.cost, s.bound, s.optimal, rl_seconds() - start);
        for (uint32_t o = 0; o < nop; o++) printf("%u ", s.cfg[o]);
        printf("\n");
        fflush(stdout);
        rl_arena_free(&a);
    }
    rl_ctx_free(ctx);
    return 0;
}
