/* The public functions of include/relayout.h: a context, a graph and the pipeline per call, and nothing left behind. */
#include "../include/relayout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../passes/interface.h"
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

static void fill(rl_result *r, const rl_outcome *o, const rl_interface *io) {
    const rl_stats *before = io->port.n ? &io->before : &o->before;
    r->changed = o->changed;
    r->transposes_before = before->transposes;
    r->transposes_after = o->after.transposes;
    r->conversions_before = before->moving;
    r->conversions_after = o->after.moving;
    r->moved_bytes_before = before->moved_bytes;
    r->moved_bytes_after = o->after.moved_bytes;
    r->lower_bound = o->conv_bound;
    r->handed_to_caller = rl_interface_handed(io);
    r->conversions_own_interface = io->port.n ? io->conv_without : -1;
}

/* Where the model comes from: a file, or memory. */
typedef struct { const char *path; const void *p; size_t n; } source;

static rl_status read_source(rl_ctx *ctx, const source *from, rl_graph **g) {
    const rl_readopt read = {0};
    return from->path ? rl_onnx_read(ctx, from->path, &read, g) : rl_onnx_read_bytes(ctx, from->p, from->n, NULL, &read, g);
}

/* "x=nhwc,z=free" */
static rl_status add_layouts(rl_interface *io, bool output, const char *list) {
    for (const char *s = list ? list : ""; *s;) {
        size_t n = strcspn(s, ",");
        RL_TRY(rl_interface_add(io, output, rl_intern(io->mem->ctx, s, n)));
        s += n + (s[n] == ',');
    }
    return RL_OK;
}

static rl_status choose_interface(rl_ctx *ctx, const source *from, const rl_options *o, const rl_passopt *p, rl_interface *io) {
    rl_graph *g = NULL;
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    RL_TRY(add_layouts(io, false, o->input_layouts));
    RL_TRY(add_layouts(io, true, o->output_layouts));
    if (io->port.n == 0) return RL_OK;
    rl_status s = read_source(ctx, from, &g);
    if (s == RL_OK) s = rl_interface_choose(g, p, io);
    if (g) rl_graph_free(g);
    return s;
}

/* The model with the interface asked for, otherwise as it was. */
static rl_status read_turned(rl_ctx *ctx, const source *from, rl_interface *io, rl_graph **g) {
    if (*g) rl_graph_free(*g);
    *g = NULL;
    RL_TRY(read_source(ctx, from, g));
    return io->port.n ? rl_interface_apply(*g, io) : RL_OK;
}

/* out->changed: the graph is what is to be written; else the input's own bytes. */
static rl_status run(rl_ctx *ctx, const source *from, const rl_options *o, rl_interface *io, rl_graph **g, rl_outcome *out) {
    rl_passopt p = {.target = o->target, .objective = o->objective, .time_limit = o->time_limit};
    RL_TRY(choose_interface(ctx, from, o, &p, io));
    RL_TRY(read_turned(ctx, from, io, g));
    RL_TRY(rl_optimize(*g, &p, out));
    if (out->changed || !rl_interface_changed(io)) return RL_OK;
    out->changed = true;
    return read_turned(ctx, from, io, g);
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
    rl_graph *g = NULL;
    rl_outcome made;
    rl_arena mem;
    rl_ctx *ctx = start(&o, result);
    if (!ctx) return RL_ENOMEM;
    rl_arena_init(&mem, ctx);
    rl_interface io = {.mem = &mem};
    rl_status s = run(ctx, &(source){.path = in}, &o, &io, &g, &made);
    if (s == RL_OK) s = made.changed ? rl_onnx_write(g, out) : rl_onnx_copy(g, out);
    if (s == RL_OK && result) fill(result, &made, &io);
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
    rl_graph *g = NULL;
    rl_outcome made;
    rl_arena mem;
    rl_ctx *ctx = start(&o, result);
    *out = NULL;
    *nout = 0;
    if (!ctx) return RL_ENOMEM;
    rl_arena_init(&mem, ctx);
    rl_interface io = {.mem = &mem};
    rl_status s = run(ctx, &(source){.p = in, .n = nin}, &o, &io, &g, &made);
    if (s == RL_OK) s = pack(g, made.changed, out, nout);
    if (s == RL_OK && result) fill(result, &made, &io);
    return finish(ctx, g, s, result);
}
