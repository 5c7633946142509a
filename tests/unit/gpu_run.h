/* A graph and its runs on the CPU or on a device, for the tests of runs with one. */
#ifndef GPU_RUN_H
#define GPU_RUN_H
#include <math.h>

#include "../../cuda/backend.h"
#include "../../src/text.h"
#include "check.h"

/* RELAYOUT_EMULATE_FAULT's names of all kernels that move data. */
#define REFUSED_MOVES \
    "launch:strided", "launch:tile", "launch:pack", "launch:weave", "launch:any_tile", "launch:word_tile", "launch:tall_tile", "launch:element_tile", "launch:interleave", "launch:short", "launch:join"

enum { RUN_MOST = 3 /* inputs, outputs */ };
typedef struct { rl_rt *rt; rl_graph *g; rl_exec *x; rl_tensor in[RUN_MOST], out[RUN_MOST]; } run;

static inline run start(rl_ctx *ctx, const char *text, const rl_backend *on) {
    run r = {.rt = rl_rt_new(ctx, on, 1)};
    CHECK(rl_text_parse(ctx, "test", text, strlen(text), &r.g) == RL_OK);
    CHECK(rl_exec_new(r.rt, r.g, &r.x) == RL_OK);
    return r;
}

static inline void end(run *r) {
    rl_rt_free(r->rt);
    rl_graph_free(r->g);
}

static inline void drop(run *r) {
    for (uint32_t i = 0; i < RUN_MOST; i++) rl_tensor_drop(&r->in[i]), rl_tensor_drop(&r->out[i]);
}

static inline void give_floats(run *r, uint32_t i, uint32_t rank, const int64_t *dim, uint32_t seed) {
    r->in[i] = rl_tensor_new(r->rt, RL_F32, rank, dim);
    for (int64_t k = 0; k < rl_numel(&r->in[i]); k++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)rl_data(&r->in[i]))[k] = (float)(seed >> 8) * 0x1p-24f - 0.5f;
    }
}

static inline bool near_floats(const rl_tensor *a, const rl_tensor *b, float by) {
    if (!rl_same_dims(a, b) || a->mem->on != &rl_backend_cpu || b->mem->on != &rl_backend_cpu) return false;
    const float *x = rl_data(a), *y = rl_data(b);
    for (int64_t i = 0; i < rl_numel(a); i++)
        if (!(fabsf(x[i] - y[i]) <= by * (1 + fabsf(x[i])))) return false;
    return true;
}

static inline bool same_floats(const rl_tensor *a, const rl_tensor *b) { return near_floats(a, b, 1e-5f); }

/* Every step ran on the device, or made a view of what lies there, and nothing failed. */
static inline bool all_there(const run *r) {
    for (uint32_t i = 0; i < r->x->nstep; i++)
        if ((r->x->step[i].place != RL_RAN_DEVICE && r->x->step[i].place != RL_RAN_VIEW) || r->x->step[i].left || r->x->step[i].note) return false;
    return true;
}

/* The device stays open between tests, and so does its code stay there, which compute-sanitizer looks through each time it is loaded. */
typedef struct { rl_ctx *ctx; rl_gpu *gpu; } open_device;
static inline open_device hold(void) {
    open_device h = {.ctx = rl_ctx_new(0)};
    CHECK(h.ctx && rl_gpu_open(h.ctx, &h.gpu) == RL_OK);
    return h;
}

static inline void let_go(open_device *h) {
    rl_gpu_close(h->gpu);
    rl_ctx_free(h->ctx);
}

/* The tests of failures make an emulated device fail. */
static inline bool is_emulated(void) {
    rl_ctx *ctx = rl_ctx_new(0);
    rl_gpu *g = NULL;
    bool emulated = !ctx || rl_gpu_open(ctx, &g) != RL_OK || rl_gpu_is_emulated(g);
    rl_gpu_close(g);
    rl_ctx_free(ctx);
    return emulated;
}

#endif
