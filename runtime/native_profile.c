/* Profiles: see native_profile.h. */
#include "native_profile.h"

#include <string.h>

#include "bench.h"

enum { LEAST = 5, MOST = 100, WARM = 2 };

/* ---- the plan ---- */

/* A step is spoken of where it has layouts. */
static void make_plan(rl_profile *p, rl_arena *mem) {
    const rl_probe *b = &p->probe;
    rl_native_op *op = rl_new(mem, rl_native_op, b->op.n + 1);
    rl_native_plan plan = {.machine = p->machine, .ns = p->predicted, .op = op};
    for (uint32_t i = 0; i < b->op.n; i++) {
        const rl_probe_op *o = &b->op.p[i];
        const rl_probe_cfg *c = &o->cfg.p[p->chosen[i]];
        if (o->step == RL_NONE) continue;
        rl_lay *lay = rl_new(mem, rl_lay, o->npin);
        for (uint32_t k = 0; k < o->npin; k++) {
            lay[k] = b->lay.p[c->lay[k]];
            p->nblocked += o->pin[k].out && lay[k].block;
        }
        op[plan.nop++] = (rl_native_op){o->step, o->npin, lay};
    }
    p->plan = (rl_text){.mem = mem};
    rl_native_print(b->x, &plan, &p->plan);
}

/* ---- beside the model without one ---- */

static rl_status compare(rl_profile *p, const rl_runopt *o, rl_exec *const *x, const rl_tensor *in) {
    rl_arena *mem = &x[0]->g->mem;
    rl_tensor *out = rl_new(mem, rl_tensor, x[0]->g->output.n + 1);
    double time[2][MOST], all = 0, seconds = 0;
    bool alone = !x[0]->rt->pool;
    uint32_t n = 0, runs = RL_MIN(p->runs, (uint32_t)MOST);
    for (uint32_t i = 0; i < 2 * WARM; i++) RL_TRY(rl_bench_once(x[i % 2], in, out, alone, &seconds));
    for (; runs ? n < runs : n < LEAST || (all < 1 && n < MOST); n++)
        for (uint32_t i = 0; i < 2; i++) {
            RL_TRY(rl_bench_once(x[i], in, out, alone, &time[i][n]));
            all += time[i][n];
            if (o->progress) o->progress(o->user, n + 1, runs);
        }
    p->compared = n;
    rl_bench_times(mem, time[0], n, &p->plan_ms, &p->plan_least_ms);
    rl_bench_times(mem, time[1], n, &p->default_ms, &p->default_least_ms);
    return RL_OK;
}

/* The graph with the plan is prepared before the one without: it adds values. */
static rl_status run_both(rl_rt *rt, rl_graph *g, const rl_runopt *o, rl_profile *p, const rl_tensor *in) {
    rl_exec *x[2];
    rt->no_plan = false;
    rt->native = (rl_span){(const uint8_t *)p->plan.p, p->plan.n};
    RL_TRY(rl_exec_new(rt, g, &x[0]));
    rt->native = (rl_span){0};
    rt->no_plan = true;
    RL_TRY(rl_exec_new(rt, g, &x[1]));
    for (uint32_t i = 0; i < x[0]->nstep; i++) p->nmove += x[0]->step[i].native && x[0]->step[i].native->kind == RL_NATIVE_MOVE;
    return compare(p, o, x, in);
}

static rl_status profile_with(rl_rt *rt, rl_graph *g, const rl_runopt *o, void *arg) {
    rl_profile *p = arg;
    rl_exec *x;
    rl_costs costs;
    rl_tensor *in = rl_new(&g->mem, rl_tensor, g->input.n + 1);
    p->fast = rt->fast != NULL;
    if (!p->fast) return RL_OK;
    rt->no_plan = true;
    RL_TRY(rl_exec_new(rt, g, &x));
    RL_TRY(rl_run_inputs(rt, g, o, o->seed, in));
    rl_costs_open(rt, &g->mem, &costs);
    p->machine = costs.machine;
    RL_TRY(rl_probe_run(x, in, &costs, p->table, &p->probe));
    rl_costs_close(rt, &costs);
    p->chosen = rl_new(&g->mem, uint32_t, p->probe.op.n + 1);
    RL_TRY(p->solve(p->user, p));
    make_plan(p, &g->mem);
    return run_both(rt, g, o, p, in);
}

rl_status rl_profile_model(rl_graph *g, const rl_runopt *o, rl_profile *p) {
    return rl_with_rt(g, o, true, profile_with, p);
}
