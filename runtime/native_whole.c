/* Times a model as it runs without a plan, in whole and step by step: see native_whole.h. */
#include "native_whole.h"

#include <string.h>

#include "bench.h"

enum { WARM = 2, LEAST = 7, MOST = 2000 };           /* runs of each kind */
static const double SETTLED = 0.1, ENOUGH = 0.8;     /* seconds: before, of all that is timed */

/* Seconds; step NULL: they are not timed. */
typedef struct { double whole, *step; } least;

/* One in which each step is timed, too. */
static rl_status run_steps(rl_exec *x, const rl_tensor *in, rl_tensor *out, rl_cost *cost, double *step) {
    double seconds;
    memset(cost, 0, x->nstep * sizeof *cost);
    x->cost = cost;
    rl_status s = rl_bench_once(x, in, out, false, &seconds);
    x->cost = NULL;
    for (uint32_t i = 0; i < x->nstep; i++) step[i] = RL_MIN(step[i], cost[i].seconds);
    return s;
}

/* Runs until the machine has settled, then times; the two kinds take turns. */
static rl_status take_turns(rl_exec *x, const rl_tensor *in, rl_arena *tmp, least *l) {
    rl_tensor *out = rl_new(tmp, rl_tensor, x->g->output.n + 1);
    rl_cost *cost = rl_new(tmp, rl_cost, x->nstep + 1);
    double start = rl_seconds(), seconds;
    for (uint32_t i = 0; i < WARM || rl_seconds() - start < SETTLED; i++) RL_TRY(rl_bench_once(x, in, out, false, &seconds));
    start = rl_seconds();
    for (uint32_t i = 0; i < LEAST || (i < MOST && rl_seconds() - start < ENOUGH); i++) {
        RL_TRY(rl_bench_once(x, in, out, rl_bench_alone(x->rt), &seconds));
        l->whole = RL_MIN(l->whole, seconds);
        if (l->step) RL_TRY(run_steps(x, in, out, cost, l->step));
    }
    return RL_OK;
}

static int64_t ns_of(double seconds) {
    return (int64_t)(seconds * 1e9);
}

rl_status rl_whole_measure(rl_exec *x, const rl_tensor *in, rl_whole *w) {
    rl_arena tmp;
    rl_arena_init(&tmp, x->g->ctx);
    least l = {1e9, rl_new(&tmp, double, x->nstep + 1)};
    for (uint32_t i = 0; i < x->nstep; i++) l.step[i] = 1e9;
    RL_TRY(take_turns(x, in, &tmp, &l));
    int64_t kernels = 0;
    *w = (rl_whole){.ns = ns_of(l.whole), .step = rl_new(&x->g->mem, int64_t, x->nstep + 1)};
    for (uint32_t i = 0; i < x->nstep; i++) kernels += w->step[i] = ns_of(l.step[i]);
    w->around = x->nstep ? RL_MAX(w->ns - kernels, 0) / x->nstep : 0;
    rl_arena_free(&tmp);
    return RL_OK;
}

rl_status rl_whole_again(rl_exec *x, const rl_tensor *in, int64_t *ns) {
    rl_arena tmp;
    least l = {.whole = 1e9};
    rl_arena_init(&tmp, x->g->ctx);
    RL_TRY(take_turns(x, in, &tmp, &l));
    *ns = ns_of(l.whole);
    rl_arena_free(&tmp);
    return RL_OK;
}
