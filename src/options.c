/* See options.h. */
#include "options.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "fix.h"
#include "onnx.h"

rl_options rl_options_of(const rl_options *o) {
    rl_options all = {0};
    if (o) memcpy(&all, o, RL_MIN(o->struct_size, sizeof all));
    if (!all.target) all.target = "generic";
    if (!all.objective) all.objective = "nodes";
    if (all.time_limit == 0) all.time_limit = 5;
    if (all.report) *all.report = NULL;
    return all;
}

/* There was never a struct of no more than its size: nobody set it. */
static bool is_set(size_t struct_size) {
    return struct_size > sizeof struct_size;
}

/* Of which a program with an older header may have the first part. */
static const char *wrong_context(const rl_context *given) {
    rl_context c = {0};
    if (!is_set(given->struct_size)) return "rl_context.struct_size is not set: it is its sizeof";
    memcpy(&c, given, RL_MIN(given->struct_size, sizeof c));
    return !c.allocate != !c.release ? "rl_context has one of allocate and release: it is both or neither" : NULL;
}

/* What is wrong with a value, or NULL; 0 is a default. */
static const char *wrong_value(const rl_options *o) {
    const char *wrong = o->context ? wrong_context(o->context) : NULL;
    if (wrong) return wrong;
    if (!(o->time_limit >= 0 && o->time_limit <= DBL_MAX)) return "rl_options.time_limit is no number of seconds: a finite one above 0, or 0 for the default";
    if (o->max_memory > PTRDIFF_MAX) return "rl_options.max_memory is more than a process can have, or was below 0";
    if (o->threads > RL_MOSTCOUNT) return "rl_options.threads is over 1000000, or was below 0";
    return NULL;
}

rl_status rl_options_check(const rl_options *o, const char *wrong, rl_result *r) {
    const rl_options all = rl_options_of(o); /* clears the report, too */
    if (!wrong && o && !is_set(o->struct_size)) wrong = "rl_options.struct_size is not set: it is its sizeof";
    if (!wrong) wrong = wrong_value(&all);
    if (!wrong) return RL_OK;
    if (r) memset(r, 0, sizeof *r);
    if (r) snprintf(r->error, sizeof r->error, "%s", wrong);
    return RL_EUSAGE;
}

rl_ctx *rl_options_start(const rl_options *o, size_t base, rl_result *r) {
    if (r) memset(r, 0, sizeof *r);
    rl_ctx *ctx = rl_ctx_new_for(0, o->context);
    if (ctx) rl_ctx_bound(ctx, o->max_memory, base);
    else if (r) snprintf(r->error, sizeof r->error, "out of memory");
    return ctx;
}

static rl_status fix_sizes(rl_graph *g, const rl_options *o, bool second) {
    if (RL_PROTECT(g->ctx)) return RL_ENOMEM;
    for (uint32_t i = 0; o->input_shapes && o->input_shapes[i]; i++) RL_TRY(rl_fix_shape(g, o->input_shapes[i]));
    for (uint32_t i = 0; o->dims && o->dims[i]; i++) RL_TRY(rl_fix_dim(g, o->dims[i], second));
    return RL_OK;
}

static rl_status read_model(rl_ctx *ctx, const rl_options *o, const rl_model *m, bool second, rl_graph **g) {
    const rl_readopt read = {.max_depth = o->max_depth, .max_file = o->max_file, .max_node = o->max_nodes};
    if (!m->path && !m->data) return rl_fail(ctx, RL_EUSAGE, "the model's path and its data are NULL");
    RL_TRY(rl_begin(ctx, "read"));
    RL_TRY(m->path ? rl_onnx_read(ctx, m->path, &read, g) : rl_onnx_read_bytes(ctx, m->data, m->nbyte, o->directory, &read, g));
    return fix_sizes(*g, o, second);
}

rl_status rl_options_read(rl_ctx *ctx, const rl_options *o, const rl_model *m, rl_graph **g) {
    return read_model(ctx, o, m, false, g);
}

rl_status rl_options_read_second(rl_ctx *ctx, const rl_options *o, const rl_model *m, rl_graph **g) {
    return read_model(ctx, o, m, true, g);
}

rl_status rl_options_finish(rl_ctx *ctx, rl_graph *g, rl_status s, rl_result *r) {
    if (s != RL_OK && r) snprintf(r->error, sizeof r->error, "%s", ctx->error);
    if (g) rl_graph_free(g);
    rl_ctx_free(ctx);
    return s;
}

rl_status rl_options_give(rl_ctx *ctx, const void *p, size_t n, char **out) {
    *out = rl_host_alloc(&ctx->host, n + 1);
    if (!*out) return rl_fail(ctx, RL_ENOMEM, "out of memory");
    if (n) memcpy(*out, p, n);
    return RL_OK;
}
