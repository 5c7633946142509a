/* The command bench: see bench.h. */
#include "bench.h"

#include <string.h>
#include <time.h>

#include "../src/ops.h"
#include "device.h"
#include "element.h"
#include "exec.h"

enum { LEAST_RUNS = 5, MOST_RUNS = 200, WARM_RUNS = 2 };

static bool only_moves(const rl_nodeinfo *n) {
    switch (rl_op_class(n->op)) {
    case RL_CONCAT: case RL_SPLIT: case RL_SLICE: case RL_PAD: case RL_TILE: case RL_GATHER: case RL_EXPAND: case RL_MOVING: return true;
    default: return n->op == RL_OP_DepthToSpace || n->op == RL_OP_SpaceToDepth || n->op == RL_OP_MOVE;
    }
}

/* ---- runs ---- */

double rl_bench_now(bool alone) {
    struct timespec t;
    clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool rl_bench_alone(const rl_rt *rt) {
    return !rt->pool && !rt->device;
}

/* delivered: bytes. */
static rl_status run_once(rl_exec *x, const rl_tensor *in, rl_tensor *out, bool alone, double *seconds, size_t *delivered) {
    double start = rl_bench_now(alone);
    *delivered = 0;
    RL_TRY(rl_exec_run(x, in, out));
    for (uint32_t i = 0; i < x->g->output.n && !x->rt->device; i++) *delivered += rl_deliver(x->rt, &out[i]);
    *seconds = rl_bench_now(alone) - start;
    for (uint32_t i = 0; i < x->g->output.n; i++) rl_tensor_drop(&out[i]);
    return RL_OK;
}

rl_status rl_bench_once(rl_exec *x, const rl_tensor *in, rl_tensor *out, bool alone, double *seconds) {
    size_t delivered;
    return run_once(x, in, out, alone, seconds, &delivered);
}

static int by_time(const void *arg, int64_t a, int64_t b) {
    const double *t = arg;
    return (t[a] > t[b]) - (t[a] < t[b]);
}

void rl_bench_times(rl_arena *mem, const double *time, uint32_t n, double *median, double *least) {
    int64_t *order = rl_new(mem, int64_t, n);
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    rl_sort(mem, order, n, by_time, time);
    *median = 500 * (time[order[(n - 1) / 2]] + time[order[n / 2]]);
    *least = 1000 * time[order[0]];
}

static rl_status measure(rl_exec *x, const rl_runopt *o, const rl_tensor *in, rl_tensor *out, rl_bench *b) {
    struct { double *p; uint32_t n, cap; } time = {0}, there = {0};
    double seconds, least, all = 0;
    for (uint32_t i = 0; i < WARM_RUNS; i++) RL_TRY(rl_bench_once(x, in, out, false, &seconds));
    x->clock = &b->device_ms; /* in seconds, until the last run */
    while (o->runs ? time.n < o->runs : time.n < LEAST_RUNS || (all < 1 && time.n < MOST_RUNS)) {
        RL_TRY(run_once(x, in, out, false, &seconds, &b->delivered));
        rl_push(&x->g->mem, time, seconds);
        if (rl_device_replays(x)) rl_push(&x->g->mem, there, b->device_ms);
        all += seconds;
        if (o->progress) o->progress(o->user, time.n, o->runs);
    }
    x->clock = NULL;
    b->runs = time.n;
    if (there.n) rl_bench_times(&x->g->mem, there.p, there.n, &b->device_ms, &least);
    rl_bench_times(&x->g->mem, time.p, time.n, &b->median_ms, &b->min_ms);
    for (uint32_t i = 0; i < time.n; i++) b->mean_ms += 1000 * time.p[i] / time.n;
    return RL_OK;
}

/* ---- per op ---- */

static void add_step(rl_bench *b, rl_hash *place, const rl_exec *x, uint32_t i, uint32_t runs) {
    const rl_nodeinfo *n = x->step[i].info;
    const rl_cost *c = &x->cost[i];
    rl_str kernel = rl_internz(x->g->ctx, x->step[i].ran ? x->step[i].ran : "reference");
    uint64_t key = rl_hash_bytes((const void *[]){n->type, kernel}, 2 * sizeof kernel);
    uint32_t k = rl_hash_get(place, key);
    if (k == RL_NONE) rl_hash_put(place, key, k = b->nop++);
    rl_bench_op *op = &b->op[k];
    op->op = n->type;
    op->kernel = kernel;
    op->nnode++;
    op->moves |= only_moves(n);
    op->ms += 1000 * c->seconds / runs;
    op->bytes += c->bytes / runs;
    op->copied += c->copied / runs;
    op->nfell += x->step[i].place == RL_RAN_FALLBACK;
    b->step[b->nstep++] = (rl_bench_step){n->name, n->type, kernel, 1000 * c->seconds / runs, c->copied / runs};
}

static int by_ms(const void *arg, int64_t a, int64_t b) {
    const rl_bench_op *op = arg;
    return op[a].ms < op[b].ms ? 1 : -(op[a].ms > op[b].ms);
}

static void gather_ops(rl_bench *b, const rl_exec *x, uint32_t runs) {
    rl_arena *mem = &x->g->mem;
    rl_hash place = {.mem = mem};
    double ms = 0, moving = 0;
    b->op = rl_new(mem, rl_bench_op, x->nstep);
    b->step = rl_new(mem, rl_bench_step, x->nstep);
    for (uint32_t i = 0; i < x->nstep; i++) add_step(b, &place, x, i, runs);
    int64_t *order = rl_new(mem, int64_t, b->nop);
    rl_bench_op *sorted = rl_new(mem, rl_bench_op, b->nop);
    for (uint32_t i = 0; i < b->nop; i++) order[i] = i;
    rl_sort(mem, order, b->nop, by_ms, b->op);
    for (uint32_t i = 0; i < b->nop; i++) {
        const rl_bench_op *op = &b->op[order[i]];
        sorted[i] = *op;
        b->bytes += op->bytes;
        b->copied += op->copied;
        ms += op->ms;
        if (op->moves) moving += op->ms;
    }
    b->op = sorted;
    b->movement = ms > 0 ? moving / ms : 0;
}

static rl_status bench_with(rl_rt *rt, rl_graph *g, const rl_runopt *o, void *arg) {
    rl_bench *b = arg;
    rl_exec *x;
    rl_tensor *in = rl_new(&g->mem, rl_tensor, g->input.n + 1), *out = rl_new(&g->mem, rl_tensor, g->output.n + 1);
    double seconds;
    rt->runs_often = true;
    RL_TRY(rl_exec_new(rt, g, &x));
    RL_TRY(rl_run_inputs(rt, g, o, o->seed, in));
    RL_TRY(measure(x, o, in, out, b));
    x->cost = rl_new(&g->mem, rl_cost, x->nstep + 1);
    uint32_t runs = RL_MAX(b->runs / 4, 1u);
    for (uint32_t i = 0; i < runs; i++) RL_TRY(rl_bench_once(x, in, out, false, &seconds));
    gather_ops(b, x, runs);
    b->fast = rt->fast != NULL;
    if (rt->device) b->device = rl_copy(&g->mem, rt->device->describe(rt), strlen(rt->device->describe(rt)) + 1);
    rl_text failed = {.mem = &g->mem};
    rl_device_notes(x, &failed);
    b->failed = failed.p;
    b->replayed = rl_device_replays(x), b->branches = rl_device_branches(x), b->put = rt->put, b->got = rt->got;
    b->threads = rt->pool ? rl_pool_size(rt->pool) : 1;
    b->peak = rt->peak - rt->constants, b->arena = rt->arena, b->least = rt->least, b->work = rt->work, b->kept = rt->settled;
    for (uint32_t i = 0; i < g->input.n; i++) b->input += in[i].kind == RL_TENSOR ? in[i].mem->nbyte : 0;
    return RL_OK;
}

rl_status rl_bench_model(rl_graph *g, const rl_runopt *o, rl_bench *b) {
    *b = (rl_bench){0};
    return rl_with_rt(g, o, true, bench_with, b);
}
