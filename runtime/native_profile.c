/* Profiles: see native_profile.h. */
#include "native_profile.h"

#include <string.h>

#include "bench.h"
#include "device.h"
#include "fast.h"
#include "plan.h"

enum { LEAST = 5, MOST = 2000, WARM = 2 }; /* runs */
enum { AGAIN = 3, ROUNDS = 6 };            /* times that a model is measured again, and by a plan, at most */
static const double TURN = 0.02;           /* seconds */

/* ---- the plan ---- */

/* A step is spoken of where it has layouts. */
static void make_plan(rl_profile *p, rl_arena *mem) {
    const rl_probe *b = &p->probe;
    rl_native_op *op = rl_new(mem, rl_native_op, b->op.n + 1);
    p->nblocked = 0;
    rl_native_plan plan = {.machine = p->machine, .ns = p->predicted, .op = op};
    for (uint32_t i = 0; i < b->op.n; i++) {
        const rl_probe_op *o = &b->op.p[i];
        const rl_probe_cfg *c = &o->cfg.p[p->chosen[i]];
        if (o->outside) continue;
        rl_lay *lay = rl_new(mem, rl_lay, o->npin);
        for (uint32_t k = 0; k < o->npin; k++) {
            lay[k] = b->lay.p[c->lay[k]];
            p->nblocked += o->pin[k].out && lay[k].block;
        }
        op[plan.nop++] = (rl_native_op){o->step, o->npin, lay, c->plain};
    }
    p->plan = (rl_text){.mem = mem};
    rl_native_print(b->x, &plan, &p->plan);
}

/* ---- beside the model without one ---- */

typedef struct { double time[MOST]; uint32_t n; } samples;

/* Runs of one of the two, the first of which finds the other's data in the caches, and does not count. */
static rl_status take_turn(rl_exec *x, const rl_tensor *in, rl_tensor *out, uint32_t runs, samples *s) {
    bool alone = rl_bench_alone(x->rt);
    double seconds;
    RL_TRY(rl_bench_once(x, in, out, alone, &seconds));
    for (uint32_t i = 0; i < runs && s->n < MOST; i++, s->n++) RL_TRY(rl_bench_once(x, in, out, alone, &s->time[s->n]));
    return RL_OK;
}

/* As many runs of each as are asked for, or as a second has room for; some more where the machine is slower than it was when the model was
 * measured without a plan: the prediction is of what it was then. */
static bool is_enough(const rl_profile *p, const samples *s, double seconds) {
    double least = 1e9;
    if (p->runs) return s->n >= RL_MIN(p->runs, (uint32_t)MOST);
    for (uint32_t i = 0; i < s->n; i++) least = RL_MIN(least, s->time[i]);
    bool settled = p->table || least * 1e9 < 1.03 * (double)p->whole;
    return s->n == MOST || (s->n >= LEAST && seconds > (settled ? 1 : 5));
}

static rl_status compare(rl_profile *p, const rl_runopt *o, rl_exec *const *x, const rl_tensor *in) {
    rl_arena *mem = &x[0]->g->mem;
    rl_tensor *out = rl_new(mem, rl_tensor, x[0]->g->output.n + 1);
    samples *s = rl_new(mem, samples, 2);
    double start = rl_seconds(), seconds;
    for (uint32_t i = 0; i < 2 * WARM; i++) RL_TRY(rl_bench_once(x[i % 2], in, out, false, &seconds));
    uint32_t runs = p->runs ? p->runs : (uint32_t)RL_MIN(1 + TURN / seconds, 20.0);
    do {
        for (uint32_t i = 0; i < 2; i++) RL_TRY(take_turn(x[i], in, out, runs, &s[i]));
        if (o->progress) o->progress(o->user, s[0].n, p->runs);
    } while (!is_enough(p, &s[1], rl_seconds() - start));
    p->compared = s[0].n;
    rl_bench_times(mem, s[0].time, s[0].n, &p->plan_ms, &p->plan_least_ms);
    rl_bench_times(mem, s[1].time, s[1].n, &p->default_ms, &p->default_least_ms);
    return RL_OK;
}

/* A move of an input that lies so anyway is a view. */
static bool converts(const rl_step *s) {
    const rl_native *n = s->native;
    return n && n->kind == RL_NATIVE_MOVE && !rl_lay_same(&n->in, &n->out);
}

/* The graph with the plan is prepared before the one without: it adds values. */
static rl_status prepare_both(rl_rt *rt, rl_graph *g, rl_profile *p, rl_exec **x) {
    rt->no_plan = false;
    rt->native = (rl_span){(const uint8_t *)p->plan.p, p->plan.n};
    RL_TRY(rl_exec_new(rt, g, &x[0]));
    rt->native = (rl_span){0};
    rt->no_plan = true;
    RL_TRY(rl_exec_new(rt, g, &x[1]));
    p->nmove = 0;
    for (uint32_t i = 0; i < x[0]->nstep; i++) p->nmove += converts(&x[0]->step[i]);
    return RL_OK;
}

/* What it holds beside the graph: its steps, and the memory of its runs, of which a device has no room for several. */
static void release(rl_exec *x) {
    rl_device_release(x);
    rl_plan_release(x);
    for (uint32_t i = 0; i < x->nstep; i++) {
        rl_prims_drop(x->rt, &x->step[i]);
        rl_tensor_drop(&x->step[i].packed);
    }
}

static rl_status solve(rl_profile *p, rl_arena *mem) {
    p->drop.n = 0;
    RL_TRY(p->solve(p->user, p));
    p->as_is = true;
    for (uint32_t i = 0; i < p->probe.op.n; i++) p->as_is = p->as_is && p->probe.op.p[i].cfg.p[p->chosen[i]].as_is;
    make_plan(p, mem);
    return RL_OK;
}

/* The best choice; then with the costs that it has in its own runs, until it is the same. */
static rl_status choose(rl_profile *p, rl_rt *rt, rl_graph *g, const rl_tensor *in, rl_exec **x) {
    rl_whole whole[2];
    size_t nbyte = p->probe.op.n * sizeof *p->chosen;
    uint32_t *last = rl_new(&g->mem, uint32_t, p->probe.op.n + 1);
    RL_TRY(solve(p, &g->mem));
    RL_TRY(prepare_both(rt, g, p, x));
    for (uint32_t i = 0; i < ROUNDS && !p->table && !p->as_is; i++) {
        RL_TRY(rl_whole_measure(x, 2, in, p->runs, whole));
        rl_probe_scale(&p->probe, p->whole = whole[1].ns);
        rl_probe_refine(&p->probe, p->chosen, x, whole);
        memcpy(last, p->chosen, nbyte);
        RL_TRY(solve(p, &g->mem));
        if (rl_same_bytes(last, p->chosen, nbyte)) break;
        for (uint32_t k = 0; k < 2; k++) release(x[k]);
        RL_TRY(prepare_both(rt, g, p, x));
    }
    return RL_OK;
}

/* Two times of the same, on a machine that is as fast. */
static bool agree(int64_t ns, int64_t whole) {
    return RL_MAX(ns, whole) - RL_MIN(ns, whole) < whole / 20;
}

/* Costs may take a minute, in which machines change: what the model takes without a plan is measured again, until two times agree. */
static rl_status measure_again(rl_profile *p, rl_exec *x, const rl_tensor *in, const rl_whole *before) {
    bool same = false;
    p->whole = before->ns;
    for (uint32_t i = 0; i < AGAIN && !same; i++) {
        int64_t ns = 0;
        RL_TRY(rl_whole_again(x, in, p->runs, &ns));
        same = agree(ns, p->whole);
        p->whole = RL_MIN(p->whole, ns);
    }
    rl_probe_scale(&p->probe, p->whole);
    return RL_OK;
}

/* The choice stays, and what it is better by: the prediction is of the machine as it is now. */
static void predict_from(rl_profile *p, rl_arena *mem, int64_t whole) {
    int64_t more = whole - p->whole;
    p->whole = p->probe.whole = whole;
    p->probe.fixed += more;
    p->predicted += more;
    p->bound += more;
    make_plan(p, mem);
}

/* What was predicted on a machine that was faster, or slower, says nothing: then all is measured again, first the model without a plan. */
static rl_status compare_with_prediction(rl_profile *p, const rl_runopt *o, rl_exec *const *x, const rl_tensor *in) {
    RL_TRY(compare(p, o, x, in));
    for (uint32_t i = 0; i < AGAIN && !p->table && !agree((int64_t)(p->default_least_ms * 1e6), p->whole); i++) {
        int64_t ns = 0;
        RL_TRY(rl_whole_again(x[1], in, p->runs, &ns));
        predict_from(p, &x[1]->g->mem, ns);
        RL_TRY(compare(p, o, x, in));
    }
    return RL_OK;
}

static rl_status measure(rl_profile *p, rl_rt *rt, rl_graph *g, const rl_tensor *in, rl_costs *costs) {
    rl_exec *x, *bare;
    rl_whole whole = {0};
    rt->no_plan = true;
    RL_TRY(rl_exec_new(rt, g, &x));
    rt->no_homes = true;
    RL_TRY(rl_exec_new(rt, g, &bare));
    rt->no_homes = false;
    if (!p->table) RL_TRY(rl_whole_measure(&x, 1, in, p->runs, &whole));
    if (!p->table) whole.step = rl_whole_steps(&g->mem, bare, x, &whole);
    RL_TRY(rl_probe_run(bare, in, costs, p->table ? NULL : &whole, &p->probe));
    rl_status s = p->table ? RL_OK : measure_again(p, x, in, &whole);
    release(x), release(bare);
    return s;
}

static rl_status profile_with(rl_rt *rt, rl_graph *g, const rl_runopt *o, void *arg) {
    rl_profile *p = arg;
    rl_costs costs;
    rl_tensor *in = rl_new(&g->mem, rl_tensor, g->input.n + 1);
    p->fast = rt->fast || (rt->device && rt->device->ways);
    if (!p->fast) return RL_OK;
    RL_TRY(rl_device_open(rt));
    RL_TRY(rl_run_inputs(rt, g, o, o->seed, in));
    rl_costs_open(rt, &g->mem, &costs);
    p->machine = costs.machine;
    RL_TRY(measure(p, rt, g, in, &costs));
    rl_costs_close(rt, &costs);
    p->chosen = rl_new(&g->mem, uint32_t, p->probe.op.n + 1);
    rl_exec *x[2];
    RL_TRY(choose(p, rt, g, in, x));
    return compare_with_prediction(p, o, x, in);
}

rl_status rl_profile_model(rl_graph *g, const rl_runopt *o, rl_profile *p) {
    return rl_with_rt(g, o, true, profile_with, p);
}
