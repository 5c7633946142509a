/* The public functions of include/relayout.h: a context, a graph and the pipeline per call, and nothing left behind. */
#include "../include/relayout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../passes/pass.h"
#include "onnx.h"

const char *rl_version(void) { return RL_VERSION; }

void rl_free(void *p) { free(p); }

/* The caller's options with the defaults filled in; members beyond the caller's struct are 0. */
static rl_options options_of(const rl_options *o) {
    rl_options all = {0};
    if (o) memcpy(&all, o, RL_MIN(o->struct_size, sizeof all));
    if (!all.target) all.target = "generic";
    if (!all.objective) all.objective = "nodes";
    if (all.time_limit <= 0) all.time_limit = 5;
    return all;
}

static void fill(rl_result *r, const rl_outcome *o) {
    r->changed = o->changed;
    r->transposes_before = o->before.transposes;
    r->transposes_after = o->after.transposes;
    r->conversions_before = o->before.moving;
    r->conversions_after = o->after.moving;
    r->moved_bytes_before = o->before.moved_bytes;
    r->moved_bytes_after = o->after.moved_bytes;
    r->lower_bound = o->conv_bound;
}

static rl_status run(rl_graph *g, const rl_options *o, rl_outcome *out) {
    rl_passopt p = {.target = o->target, .objective = o->objective, .time_limit = o->time_limit};
    return rl_optimize(g, &p, out);
}

/* Says why, and frees what the call made. */
static rl_status finish(rl_ctx *ctx, rl_graph *g, rl_status s, rl_result *r) {
    if (s != RL_OK && r) snprintf(r->error, sizeof r->error, "%s", ctx->error);
    if (g) rl_graph_free(g);
    rl_ctx_free(ctx);
    return s;
}

static rl_ctx *start(const rl_options *o, rl_result *r) {
    rl_ctx *ctx = rl_ctx_new(o->max_memory);
    if (r) memset(r, 0, sizeof *r);
    if (!ctx && r) snprintf(r->error, sizeof r->error, "out of memory");
    return ctx;
}

rl_status rl_optimize_file(const char *in, const char *out, const rl_options *options, rl_result *result) {
    rl_options o = options_of(options);
    rl_readopt read = {0};
    rl_graph *g = NULL;
    rl_outcome made;
    rl_ctx *ctx = start(&o, result);
    if (!ctx) return RL_ENOMEM;
    rl_status s = rl_onnx_read(ctx, in, &read, &g);
    if (s == RL_OK) s = run(g, &o, &made);
    if (s == RL_OK) s = made.changed ? rl_onnx_write(g, out) : rl_onnx_copy(g, out);
    if (s == RL_OK && result) fill(result, &made);
    return finish(ctx, g, s, result);
}

static rl_status pack(rl_graph *g, bool changed, void **out, size_t *nout) {
    rl_arena tmp;
    rl_span bytes = rl_onnx_bytes(g);
    rl_status s = RL_OK;
    if (RL_PROTECT(g->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, g->ctx);
    if (changed) s = rl_onnx_pack(g, &tmp, &bytes);
    if (s == RL_OK) {
        *out = malloc(bytes.n ? bytes.n : 1);
        *nout = bytes.n;
        if (*out) memcpy(*out, bytes.p, bytes.n);
        else s = rl_fail(g->ctx, RL_ENOMEM, "out of memory");
    }
    rl_arena_free(&tmp);
    return s;
}

rl_status rl_optimize_bytes(const void *in, size_t nin, void **out, size_t *nout, const rl_options *options, rl_result *result) {
    rl_options o = options_of(options);
    rl_readopt read = {0};
    rl_graph *g = NULL;
    rl_outcome made;
    rl_ctx *ctx = start(&o, result);
    *out = NULL;
    *nout = 0;
    if (!ctx) return RL_ENOMEM;
    rl_status s = rl_onnx_read_bytes(ctx, in, nin, NULL, &read, &g);
    if (s == RL_OK) s = run(g, &o, &made);
    if (s == RL_OK) s = pack(g, made.changed, out, nout);
    if (s == RL_OK && result) fill(result, &made);
    return finish(ctx, g, s, result);
}
