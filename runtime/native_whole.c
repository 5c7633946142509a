/* Times a model as it runs without a plan, in whole and step by step: see native_whole.h. */
#include "native_whole.h"

#include <string.h>

#include "bench.h"
#include "native.h"

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

static rl_status run_whole(rl_exec *x, const rl_tensor *in, rl_tensor *out, least *l) {
    double seconds;
    RL_TRY(rl_bench_once(x, in, out, rl_bench_alone(x->rt), &seconds));
    l->whole = RL_MIN(l->whole, seconds);
    return RL_OK;
}

/* Runs until the machine has settled, then times; the graphs and the two kinds of runs take turns.  runs: so many, and no waiting; 0: see ENOUGH. */
static rl_status take_turns(rl_exec *const *x, uint32_t n, const rl_tensor *in, uint32_t runs, rl_arena *tmp, least *l) {
    uint32_t most = 0;
    for (uint32_t k = 0; k < n; k++) most = RL_MAX(most, x[k]->nstep);
    rl_tensor *out = rl_new(tmp, rl_tensor, x[0]->g->output.n + 1);
    rl_cost *cost = rl_new(tmp, rl_cost, most + 1);
    double start = rl_seconds(), seconds;
    for (uint32_t i = 0; i < WARM * n || (!runs && rl_seconds() - start < SETTLED); i++) RL_TRY(rl_bench_once(x[i % n], in, out, false, &seconds));
    start = rl_seconds();
    for (uint32_t i = 0; runs ? i < runs : i < LEAST || (i < MOST && rl_seconds() - start < ENOUGH * n); i++)
        for (uint32_t k = 0; k < n; k++) {
            RL_TRY(run_whole(x[k], in, out, &l[k]));
            if (l[k].step) RL_TRY(run_steps(x[k], in, out, cost, l[k].step));
        }
    return RL_OK;
}

static int64_t ns_of(double seconds) {
    return (int64_t)(seconds * 1e9);
}

static rl_whole whole_of(const rl_exec *x, const least *l) {
    int64_t kernels = 0;
    rl_whole w = {.ns = ns_of(l->whole), .step = rl_new(&x->g->mem, int64_t, x->nstep + 1)};
    for (uint32_t i = 0; i < x->nstep; i++) kernels += w.step[i] = ns_of(l->step[i]);
    w.around = x->nstep ? RL_MAX(w.ns - kernels, 0) / x->nstep : 0;
    for (uint32_t i = 0; i < x->nstep && kernels > w.ns; i++) w.step[i] = (int64_t)((double)w.step[i] * (double)w.ns / (double)kernels);
    return w;
}

rl_status rl_whole_measure(rl_exec *const *x, uint32_t n, const rl_tensor *in, uint32_t runs, rl_whole *w) {
    rl_arena tmp;
    rl_arena_init(&tmp, x[0]->g->ctx);
    least *l = rl_new(&tmp, least, n);
    for (uint32_t k = 0; k < n; k++) {
        l[k] = (least){1e9, rl_new(&tmp, double, x[k]->nstep + 1)};
        for (uint32_t i = 0; i < x[k]->nstep; i++) l[k].step[i] = 1e9;
    }
    rl_status s = take_turns(x, n, in, runs, &tmp, l);
    for (uint32_t k = 0; k < n && s == RL_OK; k++) w[k] = whole_of(x[k], &l[k]);
    rl_arena_free(&tmp);
    return s;
}

/* [node] the step of x that runs it, as the last of those that it does. */
static uint32_t *steps_of_nodes(rl_arena *mem, const rl_exec *x) {
    uint32_t *at = rl_new(mem, uint32_t, x->g->nnode + 1);
    memset(at, 0xff, x->g->nnode * sizeof *at);
    for (uint32_t i = 0; i < x->nstep; i++) at[x->step[i].node.i] = i;
    return at;
}

int64_t *rl_whole_steps(rl_arena *mem, const rl_exec *as, const rl_exec *x, const rl_whole *w) {
    int64_t *ns = rl_new(mem, int64_t, as->nstep + 1);
    const uint32_t *at = steps_of_nodes(mem, as);
    memset(ns, 0xff, as->nstep * sizeof *ns);
    for (uint32_t i = 0; i < x->nstep; i++) {
        if (rl_native_is_move(&x->step[i])) continue;
        uint32_t step = at[x->step[i].node.i];
        if (x->step[i].fold) step = at[rl_val(as->g, as->step[step].info->in[0])->def.i];
        ns[step] = w->step[i];
    }
    return ns;
}

rl_status rl_whole_again(rl_exec *x, const rl_tensor *in, uint32_t runs, int64_t *ns) {
    rl_arena tmp;
    least l = {.whole = 1e9};
    rl_arena_init(&tmp, x->g->ctx);
    rl_status s = take_turns(&x, 1, in, runs, &tmp, &l);
    if (s == RL_OK) *ns = ns_of(l.whole);
    rl_arena_free(&tmp);
    return s;
}
