/* The public functions of include/relayout.h that optimize and explain: a context, a graph and the pipeline per call, and nothing
 * left behind. */
#include "../include/relayout.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "../passes/interface.h"
#include "onnx.h"
#include "options.h"

const char *rl_version(void) { return RL_VERSION; }

void rl_free(void *p) { free(p); }

static rl_passopt passopt_of(const rl_options *o) {
    return (rl_passopt){.target = o->target, .objective = o->objective, .time_limit = o->time_limit};
}

/* ---- optimizing ---- */

typedef struct {
    rl_ctx *ctx;
    rl_options o;
    rl_model in;
    rl_graph *g;
    rl_arena mem;
    rl_interface io;
    rl_outcome made;
    double start;
    const char *path; /* where the result goes; NULL: to memory */
} job;

static void fill(const job *j, rl_result *r) {
    const rl_outcome *o = &j->made;
    const rl_stats *before = j->io.port.n ? &j->io.before : &o->before;
    r->changed = o->changed;
    r->transposes_before = before->transposes;
    r->transposes_after = o->after.transposes;
    r->conversions_before = rl_stats_conversions(before);
    r->conversions_after = rl_stats_conversions(&o->after);
    r->moved_bytes_before = before->moved_bytes;
    r->moved_bytes_after = o->after.moved_bytes;
    r->lower_bound = o->conv_bound;
    r->handed_to_caller = rl_interface_handed(&j->io);
    r->conversions_own_interface = j->io.port.n ? j->io.conv_without : -1;
    bool fewest = o->conv_bound == o->conv_after || o->shown.quick + o->shown.open == 0;
    if (o->proved == RL_PROVED_OPTIMAL) r->proof = fewest ? RL_MINIMUM : RL_QUICKEST;
    else r->proof = o->proved == RL_PROVED_GAP ? RL_LOWER_BOUND : RL_UNPROVED;
}

/* Up to the comma that is in no brackets. */
static size_t item_length(const char *s) {
    size_t n = 0;
    for (int deep = 0; s[n] && (s[n] != ',' || deep > 0); n++) deep += (s[n] == '[' || s[n] == '{') - (s[n] == ']' || s[n] == '}');
    return n;
}

/* "x=nhwc,z=free" */
static rl_status add_layouts(rl_interface *io, bool output, const char *list) {
    for (const char *s = list ? list : ""; *s;) {
        size_t n = item_length(s);
        RL_TRY(rl_interface_add(io, output, rl_intern(io->mem->ctx, s, n)));
        s += n + (s[n] == ',');
    }
    return RL_OK;
}

static rl_status choose_interface(job *j, const rl_passopt *p) {
    rl_graph *g = NULL;
    if (RL_PROTECT(j->ctx)) return RL_ENOMEM;
    RL_TRY(add_layouts(&j->io, false, j->o.input_layouts));
    RL_TRY(add_layouts(&j->io, true, j->o.output_layouts));
    if (j->io.port.n == 0) return RL_OK;
    rl_status s = rl_options_read(j->ctx, &j->o, &j->in, &g);
    if (s == RL_OK) s = rl_interface_choose(g, p, &j->io);
    if (g) rl_graph_free(g);
    return s;
}

/* The model with the interface asked for, otherwise as it was. */
static rl_status read_turned(job *j) {
    if (j->g) rl_graph_free(j->g);
    j->g = NULL;
    RL_TRY(rl_options_read(j->ctx, &j->o, &j->in, &j->g));
    return j->io.port.n ? rl_interface_apply(j->g, &j->io) : RL_OK;
}

/* made.changed: the graph is what is to be written; else the input's own bytes. */
static rl_status improve(job *j) {
    rl_passopt p = passopt_of(&j->o);
    RL_TRY(choose_interface(j, &p));
    RL_TRY(read_turned(j));
    RL_TRY(rl_optimize(j->g, &p, &j->made));
    if (!j->made.changed) rl_log(j->ctx, RL_LOG_INFO, "nothing to improve");
    if (j->made.changed || !(rl_interface_changed(&j->io) || j->g->sized)) return RL_OK;
    j->made.changed = true;
    return read_turned(j);
}

static rl_status give_report(const job *j, size_t nout, char **out) {
    rl_arena tmp;
    if (RL_PROTECT(j->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, j->ctx);
    rl_text t = {.mem = &tmp};
    rl_timing time[RL_LEN(j->made.time)];
    for (uint32_t i = 0; i < j->made.ntime; i++) time[i] = (rl_timing){j->made.time[i].pass, j->made.time[i].seconds};
    rl_report r = {.in = j->in.path, .out = j->path, .in_bytes = rl_onnx_bytes(j->g).n, .out_bytes = nout, .target = j->o.target,
        .objective = j->o.objective, .time = time, .ntime = j->made.ntime, .total = rl_seconds() - j->start};
    rl_summarize(&j->made, &j->io, &tmp, &r);
    rl_report_json(&r, &t);
    rl_status s = rl_options_give(j->ctx, t.p, t.n, out);
    rl_arena_free(&tmp);
    return s;
}

static rl_status pack(job *j, char **out, size_t *nout) {
    rl_arena tmp;
    rl_span bytes = rl_onnx_bytes(j->g);
    rl_status s = RL_OK;
    bool moves = rl_onnx_moves_data(j->o.external_data);
    if (moves && !j->made.changed) RL_TRY(read_turned(j)); /* passes may have left the graph half-written */
    if (RL_PROTECT(j->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, j->ctx);
    if (moves || j->made.changed) s = rl_onnx_pack(j->g, j->o.external_data, &tmp, &bytes);
    if (s == RL_OK) s = rl_options_give(j->ctx, bytes.p, bytes.n, out);
    if (s == RL_OK) *nout = bytes.n;
    rl_arena_free(&tmp);
    return s;
}

static rl_status write_file(job *j, size_t *nbyte) {
    struct stat st;
    bool moves = rl_onnx_moves_data(j->o.external_data);
    if (moves && !j->made.changed) RL_TRY(read_turned(j)); /* passes may have left the graph half-written */
    RL_TRY(moves || j->made.changed ? rl_onnx_write(j->g, j->path, j->o.external_data, NULL) : rl_onnx_copy(j->g, j->path, NULL));
    *nbyte = stat(j->path, &st) == 0 ? (size_t)st.st_size : 0;
    return RL_OK;
}

static rl_status finish(job *j, rl_status s, char **bytes, size_t *nbyte, rl_result *r) {
    size_t n = 0;
    if (s == RL_OK) s = rl_begin(j->ctx, "write");
    if (s == RL_OK) s = bytes ? pack(j, bytes, &n) : write_file(j, &n);
    if (s == RL_OK && j->o.report) s = give_report(j, n, j->o.report);
    if (s == RL_OK && r) fill(j, r);
    if (bytes && s != RL_OK) {
        rl_host_free(&j->ctx->host, *bytes, n + 1);
        *bytes = NULL;
    } else if (bytes) {
        *nbyte = n;
    }
    return rl_options_finish(j->ctx, j->g, s, r);
}

static rl_status start(job *j, const rl_options *options, rl_result *r) {
    j->start = rl_seconds();
    j->o = rl_options_of(options);
    j->ctx = rl_options_start(&j->o, RL_MEMORY_BASE, r);
    if (!j->ctx) return RL_ENOMEM;
    rl_arena_init(&j->mem, j->ctx);
    j->io.mem = &j->mem;
    return RL_OK;
}

rl_status rl_optimize_file(const char *in, const char *out, const rl_options *options, rl_result *result) {
    job j = {.in = {.path = in}, .path = out};
    RL_TRY(rl_options_check(options, !in ? "the input's path is NULL" : !out ? "the output's path is NULL" : NULL, result));
    RL_TRY(start(&j, options, result));
    return finish(&j, improve(&j), NULL, NULL, result);
}

rl_status rl_optimize_bytes(const void *in, size_t nin, void **out, size_t *nout, const rl_options *options, rl_result *result) {
    job j = {.in = {.data = in, .nbyte = nin}};
    char *bytes = NULL;
    if (out) *out = NULL;
    if (nout) *nout = 0;
    const char *data = "rl_options.external_data is \"keep\" or \"inline\" where the result is in memory, which has no folder";
    bool packs = rl_onnx_packs(rl_options_of(options).external_data);
    RL_TRY(rl_options_check(options, !out || !nout ? "out or nout is NULL" : packs ? NULL : data, result));
    RL_TRY(start(&j, options, result));
    rl_status s = finish(&j, improve(&j), &bytes, nout, result);
    *out = bytes;
    return s;
}

/* ---- explaining ---- */

static rl_status print_stats(const rl_model *m, const rl_passopt *p, const rl_outcome *o, const rl_text *was, const rl_text *now, char **json) {
    rl_text t = {.mem = was->mem};
    if (RL_PROTECT(t.mem->ctx)) return RL_ENOMEM;
    rl_report r = {.in = m->path, .target = p->target, .objective = p->objective};
    rl_summarize(o, &(rl_interface){0}, t.mem, &r);
    rl_report_stats_json(&r, was, o->changed ? now : was, &t);
    return rl_options_give(t.mem->ctx, t.p, t.n, json);
}

static rl_status stats_of(rl_graph *g, const rl_options *o, const rl_model *m, rl_arena *mem, char **json) {
    rl_outcome out;
    rl_text was, now;
    const rl_passopt p = passopt_of(o);
    RL_TRY(rl_optimize_listing(g, &p, true, mem, &out, &was, &now));
    return print_stats(m, &p, &out, &was, &now, json);
}

rl_status rl_model_stats(const rl_model *m, const rl_options *options, char **json, rl_result *result) {
    if (json) *json = NULL;
    RL_TRY(rl_options_check(options, !m ? "the model is NULL" : !json ? "json is NULL" : NULL, result));
    rl_options o = rl_options_of(options);
    rl_graph *g = NULL;
    rl_ctx *ctx = rl_options_start(&o, RL_MEMORY_BASE, result);
    if (!ctx) return RL_ENOMEM;
    rl_status s = rl_options_read(ctx, &o, m, &g);
    rl_arena mem;
    rl_arena_init(&mem, ctx);
    if (s == RL_OK) s = stats_of(g, &o, m, &mem, json);
    return rl_options_finish(ctx, g, s, result);
}

static rl_status print_explanation(rl_ctx *ctx, const rl_explanation *x, const char *node, char **json) {
    rl_arena tmp;
    bool any;
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, ctx);
    rl_text t = {.mem = &tmp};
    rl_explain_json(x, node, &t, &any);
    rl_status s = node && !any ? rl_fail(ctx, RL_EUSAGE, "no conversion or Transpose has to do with a node or tensor '%s'", node)
                               : rl_options_give(ctx, t.p, t.n, json);
    rl_arena_free(&tmp);
    return s;
}

/* g is explained, done the same model after rl_optimize: whether the plan is carried out is known only when it was. */
static rl_status explain(rl_ctx *ctx, const rl_options *o, const rl_model *m, const char *node, rl_graph *g, rl_graph *done, char **json) {
    const rl_passopt p = passopt_of(o);
    rl_outcome out = {0};
    rl_arena mem;
    RL_TRY(rl_optimize(done, &p, &out));
    rl_arena_init(&mem, ctx);
    rl_explanation x = {.path = m->path, .target = o->target, .objective = o->objective, .unchanged = !out.changed,
        .after = out.conv_after};
    RL_TRY(rl_explain(g, done, &p, &mem, &x));
    return print_explanation(ctx, &x, node, json);
}

rl_status rl_model_explain(const rl_model *m, const char *node, const rl_options *options, char **json, rl_result *result) {
    if (json) *json = NULL;
    RL_TRY(rl_options_check(options, !m ? "the model is NULL" : !json ? "json is NULL" : NULL, result));
    rl_options o = rl_options_of(options);
    rl_graph *g = NULL, *done = NULL;
    rl_ctx *ctx = rl_options_start(&o, RL_MEMORY_BASE, result);
    if (!ctx) return RL_ENOMEM;
    rl_status s = rl_options_read(ctx, &o, m, &done);
    if (s == RL_OK) s = rl_options_read(ctx, &o, m, &g);
    if (s == RL_OK) s = explain(ctx, &o, m, node, g, done, json);
    rl_graph_free(done);
    return rl_options_finish(ctx, g, s, result);
}
