/* A graph and its runs on the CPU or on a device, for the tests of runs with one. */
#ifndef GPU_RUN_H
#define GPU_RUN_H
#include <math.h>

#include "../../cuda/backend.h"
#include "../../src/text.h"
#include "check.h"

typedef struct { rl_rt *rt; rl_graph *g; rl_exec *x; rl_tensor in[2], out[2]; } run;

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
    for (uint32_t i = 0; i < 2; i++) rl_tensor_drop(&r->in[i]), rl_tensor_drop(&r->out[i]);
}

static inline void give_floats(run *r, uint32_t rank, const int64_t *dim, uint32_t seed) {
    r->in[0] = rl_tensor_new(r->rt, RL_F32, rank, dim);
    for (int64_t i = 0; i < rl_numel(&r->in[0]); i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)rl_data(&r->in[0]))[i] = (float)(seed >> 8) * 0x1p-24f - 0.5f;
    }
}

static inline bool same_floats(const rl_tensor *a, const rl_tensor *b) {
    if (!rl_same_dims(a, b) || a->mem->on != &rl_backend_cpu || b->mem->on != &rl_backend_cpu) return false;
    for (int64_t i = 0; i < rl_numel(a); i++)
        if (!(fabsf(((float *)rl_data(a))[i] - ((float *)rl_data(b))[i]) <= 1e-5f * (1 + fabsf(((float *)rl_data(a))[i])))) return false;
    return true;
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
