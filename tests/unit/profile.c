/* Choices of layouts from measured costs (src/cmd_profile_*.c), on made problems: small ones against every choice, and ones that are too large for
 * the time given, whose choice must be one that can be had, not dearer than none, and never below what is said to be the least. */
#include "../../src/cmd_profile.h"

#include <stdlib.h>

#include "check.h"

enum { LAYOUTS = 4, MOST = 400 };

static uint32_t seed = 1;

static uint32_t next(uint32_t below) {
    return (seed = seed * 1664525u + 1013904223u, seed >> 8) % below;
}

/* `ops` ops in a row: each makes a value, and reads up to three of the last `span`; each in up to `ncfg` ways. */
static void make(rl_profile *p, rl_exec *x, uint32_t ops, uint32_t span, uint32_t ncfg) {
    rl_arena *mem = p->probe.mem;
    for (uint32_t i = 0; i < LAYOUTS; i++) rl_push(mem, p->probe.lay, (rl_lay){.rank = 4});
    x->g->nval = ops;
    for (uint32_t i = 0; i < ops; i++) {
        rl_pin *pin = rl_new(mem, rl_pin, 4);
        rl_probe_op op = {.pin = pin};
        for (uint32_t k = 0, from = i > span ? i - span : 0; k < 3 && i > 0; k++) {
            uint32_t v = from + next(i - from);
            bool had = false;
            for (uint32_t j = 0; j < op.npin; j++) had = had || pin[j].v.i == v;
            if (!had) pin[op.npin++] = (rl_pin){k, false, {v}};
        }
        pin[op.npin++] = (rl_pin){0, true, {i}};
        for (uint32_t c = 0, n = 1 + next(ncfg); c < n; c++) {
            rl_probe_cfg cfg = {.lay = rl_new(mem, uint32_t, op.npin), .ns = 1000 + next(300)};
            for (uint32_t k = 0; k < op.npin; k++) cfg.lay[k] = next(LAYOUTS);
            rl_push(mem, op.cfg, cfg);
        }
        rl_push(mem, p->probe.op, op);
    }
    for (uint32_t v = 0; v < ops; v++)
        for (uint32_t from = 0; from < LAYOUTS; from++)
            for (uint32_t to = 0; to < LAYOUTS; to++) {
                if (from == to) continue;
                rl_hash_put(&p->probe.move_at, (uint64_t)v << 32 | (uint64_t)from << 16 | to, p->probe.move.n);
                rl_push(mem, p->probe.move, ((rl_probe_move){v, from, to, 20 + next(150)}));
            }
}

/* Each op's kernel, and a move for each value and layout that is read and not made. */
static int64_t cost_of(const rl_probe *q, const uint32_t *chosen) {
    int64_t cost = q->fixed;
    for (uint32_t i = 0; i < q->op.n; i++) {
        const rl_probe_op *o = &q->op.p[i];
        cost += o->cfg.p[chosen[i]].ns;
        uint32_t made = o->cfg.p[chosen[i]].lay[o->npin - 1];
        for (uint32_t d = 0; d < LAYOUTS; d++) {
            bool read = false;
            for (uint32_t j = i + 1; j < q->op.n; j++)
                for (uint32_t k = 0; k + 1 < q->op.p[j].npin; k++) read = read || (q->op.p[j].pin[k].v.i == i && q->op.p[j].cfg.p[chosen[j]].lay[k] == d);
            if (read) cost += rl_probe_move_cost(q, i, made, d);
        }
    }
    return cost;
}

static int64_t least_of(const rl_probe *q) {
    uint32_t chosen[16] = {0}, i = 0;
    int64_t least = INT64_MAX;
    while (i < q->op.n) {
        least = RL_MIN(least, cost_of(q, chosen));
        for (i = 0; i < q->op.n && ++chosen[i] == q->op.p[i].cfg.n; i++) chosen[i] = 0;
    }
    return least;
}

static uint32_t open; /* problems that were not proved */

/* Solved in so many seconds; the answer is checked, and compared with every choice where `every`. */
static void check(uint32_t ops, uint32_t span, uint32_t ncfg, double seconds, bool every) {
    static uint32_t none[MOST];
    CHECK_CTX(ctx);
    rl_arena mem;
    rl_arena_init(&mem, ctx);
    rl_graph g = {.ctx = ctx};
    rl_exec x = {.g = &g};
    rl_profile p = {.probe = {.mem = &mem, .x = &x, .move_at = {.mem = &mem}, .fixed = 77}, .chosen = rl_new(&mem, uint32_t, ops)};
    make(&p, &x, ops, span, ncfg);
    CHECK(rl_profile_solve(&seconds, &p) == RL_OK);
    CHECK(cost_of(&p.probe, p.chosen) == p.predicted);
    CHECK(p.predicted <= cost_of(&p.probe, none));
    CHECK(p.bound <= p.predicted && p.optimal == (p.bound == p.predicted));
    if (every) CHECK(p.optimal && p.checked && p.predicted == least_of(&p.probe));
    open += !p.optimal;
    rl_arena_free(&mem);
    rl_ctx_free(ctx);
}

TEST(every_choice) {
    for (uint32_t k = 0; k < 300; k++) check(1 + next(7), 1 + next(6), 4, 5, true);
}

TEST(without_time) {
    for (uint32_t k = 0; k < 20; k++) check(60 + next(60), 4 + next(30), 6, 1e-9, false);
    CHECK(open > 0); /* what is tested here occurs */
}

TEST(with_some_time) {
    for (uint32_t k = 0; k < 3; k++) check(80, 12, 4, 0.2, false);
}

int main(void) {
    RUN(every_choice);
    RUN(without_time);
    RUN(with_some_time);
    return check_done();
}
