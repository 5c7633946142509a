/* Choices of layouts from measured costs (src/cmd_profile_*.c), on made problems: small ones against every choice, and ones that are too large for
 * the time given, whose choice must be one that can be had, not dearer than none, and never below what is said to be the least.  Certificates of the
 * choices that are proved hold, those of dearer ones do not. */
#include "../../src/cmd_profile.h"

#include <string.h>

#include "../../runtime/native_cert.h"

#include "check.h"

enum { LAYOUTS = 4, MOST = 400 };

static uint32_t seed = 1;

static uint32_t next(uint32_t below) {
    return check_random(&seed) % below;
}

/* `ops` ops in a row: each makes a value, and reads up to three of the last `span`; each in up to `ncfg` ways. */
static void make(rl_profile *p, rl_exec *x, uint32_t ops, uint32_t span, uint32_t ncfg) {
    rl_arena *mem = p->probe.mem;
    for (uint32_t i = 0; i < LAYOUTS; i++) rl_push(mem, p->probe.lay, (rl_lay){.rank = 4});
    x->g->nval = ops;
    for (uint32_t i = 0; i < ops; i++) {
        rl_pin *pin = rl_new(mem, rl_pin, 4);
        rl_probe_op op = {.pin = pin, .type = "Op"};
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

/* ---- certificates ---- */

/* The certificate that p.chosen, which costs so much, is the least. */
static rl_status certify(rl_profile *p, int64_t cost) {
    rl_arena *mem = p->probe.mem;
    rl_plan_cert c = {0};
    rl_text t = {.mem = mem}, plan = {.mem = mem};
    rl_put(&plan, "relayout-plan 1\ngraph 2 5a0b1c2d3e4f5061\n");
    p->plan = plan, p->machine = "none", p->predicted = cost;
    for (uint32_t i = 0; i < LAYOUTS; i++) p->probe.lay.p[i] = rl_lay_nth(4, i);
    rl_plan_cert_print(p, &t);
    CHECK(rl_plan_cert_parse(mem->ctx, mem, t.p, t.n, &c) == RL_OK);
    return rl_plan_cert_check(mem->ctx, &c);
}

/* Of the best choice, and of the first one if that is dearer; with the configurations that no best choice needs left out by lines of the file, and
 * without these lines. */
static void check_certificates(rl_profile *p) {
    static const uint32_t none[MOST];
    int64_t least = p->predicted, first = cost_of(&p->probe, none);
    for (uint32_t turn = 0; turn < 2; turn++, p->drop.n = 0) {
        CHECK(certify(p, least) == RL_OK);
        uint32_t *best = p->chosen;
        p->chosen = rl_new(p->probe.mem, uint32_t, p->probe.op.n + 1);
        if (first > least) CHECK(certify(p, first) == RL_EPROOF);
        p->chosen = best;
    }
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
    if (every) check_certificates(&p);
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

/* All values are made before any is read, in layout 1 for 8 or in layout 0 for 10; read in layout 0, where a move takes 2: as many ways as there are
 * subsets of the values lead to the least cost, or might lead below it as far as kernels tell. */
TEST(many_values_at_a_time) {
    enum { WIDE = 24 };
    CHECK_CTX(ctx);
    rl_arena mem;
    rl_arena_init(&mem, ctx);
    rl_graph g = {.ctx = ctx, .nval = WIDE};
    rl_exec x = {.g = &g};
    rl_profile p = {.probe = {.mem = &mem, .x = &x, .move_at = {.mem = &mem}}, .chosen = rl_new(&mem, uint32_t, 2 * WIDE)};
    for (uint32_t i = 0; i < LAYOUTS; i++) rl_push(&mem, p.probe.lay, (rl_lay){0});
    for (uint32_t i = 0; i < 2 * WIDE; i++) {
        rl_pin pin = {0, i < WIDE, {i % WIDE}};
        rl_probe_op op = {.type = "Op", .npin = 1, .pin = rl_copy(&mem, &pin, sizeof pin)};
        for (uint32_t lay = 0; lay < (i < WIDE ? 2 : 1); lay++)
            rl_push(&mem, op.cfg, ((rl_probe_cfg){.lay = rl_copy(&mem, &lay, sizeof lay), .ns = i >= WIDE ? 0 : lay ? 8 : 10}));
        rl_push(&mem, p.probe.op, op);
        if (i < WIDE) rl_push(&mem, p.probe.move, ((rl_probe_move){i, 1, 0, 2}));
    }
    CHECK(certify(&p, 10 * WIDE) == RL_OK);
    p.probe.move.p[WIDE / 2].ns = 1;
    CHECK(certify(&p, 10 * WIDE) == RL_EPROOF);
    CHECK(strstr(ctx->error, "a choice takes less"));
    rl_arena_free(&mem);
    rl_ctx_free(ctx);
}

/* Three ops in a row, of which the second is chosen in another layout: moves before and behind it. In its run all takes twice as long as at first, the second
 * op a quarter less than without a plan, the third a tenth more. */
TEST(costs_of_a_run) {
    CHECK_CTX(ctx);
    rl_arena mem;
    rl_arena_init(&mem, ctx);
    rl_graph g = {.ctx = ctx, .nval = 3, .nnode = 3};
    rl_step bare[3] = {{.node = {0}}, {.node = {1}}, {.node = {2}}};
    rl_exec without = {.g = &g, .nstep = 3, .step = bare}, x = {.g = &g, .nstep = 5}, *both[2] = {&x, &without};
    rl_probe p = {.mem = &mem, .x = &without, .whole = 3000, .around = 3};
    rl_lay rows = rl_lay_rows(4), last = rl_lay_last(4);
    rl_push(&mem, p.lay, rows);
    rl_push(&mem, p.lay, last);
    for (uint32_t i = 0; i < 3; i++) {
        rl_pin pin[2] = {{0, false, {i - 1}}, {0, true, {i}}};
        uint32_t lay[2][2] = {{0, 0}, {1, 1}}, at = i ? 0 : 1;
        rl_probe_op op = {.step = i, .npin = 2 - at, .pin = rl_copy(&mem, pin + at, (2 - at) * sizeof *pin), .here = 1000};
        for (uint32_t c = 0; c < 2; c++)
            rl_push(&mem, op.cfg, ((rl_probe_cfg){.lay = rl_copy(&mem, lay[c], sizeof *lay), .ns = c ? 500 : 1000, .as_is = !c}));
        rl_push(&mem, p.op, op);
    }
    rl_push(&mem, p.move, ((rl_probe_move){0, 0, 1, 7}));
    rl_push(&mem, p.move, ((rl_probe_move){1, 1, 0, 7}));
    rl_native there = {.kind = RL_NATIVE_MOVE, .moves = {0}, .in = rows, .out = last}, back = {.kind = RL_NATIVE_MOVE, .moves = {1}, .in = last, .out = rows};
    rl_step step[5] = {{.node = {0}}, {.node = RL_NONODE, .native = &there}, {.node = {1}}, {.node = RL_NONODE, .native = &back}, {.node = {2}}};
    x.step = step;
    uint32_t chosen[3] = {0, 1, 0};
    int64_t was[3] = {2000, 2000, 2000}, now[5] = {2010, 60, 1500, 80, 2200};
    rl_probe_refine(&p, chosen, both, (rl_whole[]){{.ns = 5850, .step = now}, {.ns = 6000, .step = was}});
    CHECK(p.op.p[0].cfg.p[0].ns == 1000 && p.op.p[2].cfg.p[0].ns == 1000);
    CHECK(p.op.p[1].cfg.p[1].ns == 750 + 100 && p.op.p[1].cfg.p[0].ns == 1000);
    CHECK(p.move.p[0].ns == 30 + 3 && p.move.p[1].ns == 40 + 3);
    CHECK(p.op.p[0].cfg.p[1].ns == 500); /* did not run */
    rl_probe_refine(&p, chosen, both, (rl_whole[]){{.ns = 6300, .step = now}, {.ns = 6000, .step = was}}); /* more than the steps say */
    CHECK(p.op.p[1].cfg.p[1].ns == 850 + 3150 - (1000 + 850 + 1000 + 33 + 43) && p.op.p[0].cfg.p[0].ns == 1000 && p.move.p[0].ns == 33);
    rl_probe_scale(&p, 1500); /* a machine twice as fast */
    CHECK(p.whole == 1500 && p.op.p[0].here == 500 && p.op.p[1].cfg.p[1].ns == 537 && p.move.p[0].ns == 33);
    CHECK(p.fixed + p.op.p[0].cfg.p[0].ns + p.op.p[1].cfg.p[0].ns + p.op.p[2].cfg.p[0].ns == 1500);
    rl_arena_free(&mem);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(every_choice);
    RUN(many_values_at_a_time);
    RUN(costs_of_a_run);
    RUN(without_time);
    RUN(with_some_time);
    return check_done();
}
