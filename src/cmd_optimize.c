/* The command optimize.  The model is written last, by a temporary file and rename; what fails leaves no output behind. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cmd_batch.h"

/* The certificate, where there is one of this very result. */
static rl_status write_proof(rl_line *l, const rl_outcome *o) {
    if (!l->proof) return RL_OK;
    if (o->proved == RL_PROVED_NOT)
        return rl_fail(l->ctx, RL_EPROOF, "%s: nothing was proved: %s", l->in,
                       o->proof.why ? o->proof.why : "no certificate was made");
    return rl_line_write(l, l->proof, &o->proof.text[0]);
}

static uint64_t peak_bytes(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

/* The graph, or the model as it was read, on stdout; data in other files stays there. */
static rl_status write_piped(rl_line *l, const rl_graph *g, bool changed, uint64_t *nbyte) {
    rl_arena tmp;
    rl_span bytes = rl_onnx_bytes(g);
    rl_status s = RL_OK;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, l->ctx);
    if (changed) s = rl_onnx_pack(g, &tmp, &bytes);
    if (s == RL_OK) s = rl_write_stdout(l, (const char *)bytes.p, bytes.n);
    *nbyte = bytes.n;
    rl_arena_free(&tmp);
    return s;
}

/* What nothing improved has no bytes to copy where it was text, or has another interface now; and a pass may have left its
 * graph half-written: it is read again. */
static rl_status write_again(rl_line *l, uint64_t *nbyte) {
    rl_graph *g;
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = rl_interface_apply(g, &l->io);
    if (s == RL_OK) s = rl_is_stdio(l->out) ? write_piped(l, g, true, nbyte) : rl_onnx_write(g, l->out, l->external);
    rl_graph_free(g);
    return s;
}

/* The input's bytes where nothing changed. */
static rl_status write_model(rl_line *l, rl_graph *g, bool changed, uint64_t *nbyte) {
    struct stat st;
    *nbyte = 0;
    bool again = rl_is_text(l->in) || rl_interface_changed(&l->io) || rl_onnx_moves_data(l->external);
    if (!changed && again) RL_TRY(write_again(l, nbyte));
    else if (rl_is_stdio(l->out)) RL_TRY(write_piped(l, g, changed, nbyte));
    else RL_TRY(changed ? rl_onnx_write(g, l->out, l->external) : rl_onnx_copy(g, l->out));
    if (!rl_is_stdio(l->out) && stat(l->out, &st) == 0) *nbyte = (uint64_t)st.st_size;
    return RL_OK;
}

static rl_status print_report(rl_line *l, const rl_report *r) {
    rl_arena tmp;
    rl_arena_init(&tmp, l->ctx);
    rl_text json = {.mem = &tmp}, table = {.mem = &tmp};
    rl_report_json(r, &json);
    rl_report_table(r, &table);
    rl_progress(l, NULL);
    rl_status s = l->json ? rl_line_write(l, l->json, &json) : RL_OK;
    if (s == RL_OK && rl_is_stdio(l->out) && !l->quiet) rl_to_stderr(NULL, table.p, table.n);
    else if (s == RL_OK && !l->quiet && !(l->json && rl_is_stdio(l->json))) s = rl_write_stdout(l, table.p, table.n);
    rl_arena_free(&tmp);
    return s;
}

static rl_status report_optimize(rl_line *l, const rl_graph *g, const rl_outcome *o, uint64_t out_bytes, double write_time) {
    rl_arena tmp;
    rl_timing time[RL_LEN(o->time) + 2] = {{"read", l->read_time}};
    uint32_t n = 1;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, l->ctx);
    for (uint32_t i = 0; i < o->ntime; i++) time[n++] = (rl_timing){o->time[i].pass, o->time[i].seconds};
    time[n++] = (rl_timing){"write", write_time};
    rl_report r = {.in = l->in, .out = l->out, .in_bytes = rl_onnx_bytes(g).n, .target = l->pass.target, .objective = l->pass.objective};
    rl_summarize(o, &l->io, &tmp, &r);
    r.out_bytes = out_bytes;
    r.time = time;
    r.ntime = n;
    r.total = rl_seconds() - l->start;
    r.peak_bytes = peak_bytes();
    rl_status s = l->row ? rl_batch_keep(l, &r) : print_report(l, &r);
    rl_arena_free(&tmp);
    return s;
}

static rl_status optimize_graph(rl_line *l, rl_graph *g) {
    rl_outcome o;
    uint64_t nbyte;
    RL_TRY(rl_optimize(g, &l->pass, &o));
    RL_TRY(rl_line_check_path(l, l->json));
    RL_TRY(write_proof(l, &o));
    double start = rl_seconds();
    RL_TRY(write_model(l, g, o.changed, &nbyte));
    return report_optimize(l, g, &o, nbyte, rl_seconds() - start);
}

/* --input-layout and --output-layout: what they save is found on a graph of its own. */
static rl_status choose_interface(rl_line *l) {
    rl_graph *g;
    l->io.mem = &l->io_mem;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    for (uint32_t i = 0; i < l->in_layouts.n; i++) RL_TRY(rl_interface_add(&l->io, false, l->in_layouts.item[i]));
    for (uint32_t i = 0; i < l->out_layouts.n; i++) RL_TRY(rl_interface_add(&l->io, true, l->out_layouts.item[i]));
    if (l->io.port.n == 0) return RL_OK;
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = rl_interface_choose(g, &l->pass, &l->io);
    rl_graph_free(g);
    return s;
}

rl_status rl_optimize_one(rl_line *l) {
    rl_graph *g = NULL;
    rl_arena_init(&l->io_mem, l->ctx);
    rl_status s = choose_interface(l);
    if (s == RL_OK) s = rl_line_read(l, &g);
    if (s == RL_OK && l->io.port.n) s = rl_interface_apply(g, &l->io);
    if (s == RL_OK) s = optimize_graph(l, g);
    rl_graph_free(g);
    rl_arena_free(&l->io_mem);
    return s;
}

/* Where things go: `IN OUT`, or -o OUT, which may be a folder. */
static rl_status check_outputs(rl_line *l, rl_arena *mem) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (l->nfile == 2 && !l->out) l->out = l->file[1];
    if (!l->out) return rl_usage_error("optimize: where does the result go? -o %s", l->nfile == 1 ? "OUT" : "DIR/");
    if (!rl_is_stdio(l->out) && rl_is_dir(l->out)) l->out = rl_path_in(mem, l->out, l->in);
    const char *const piped[] = {l->out, l->json, l->proof};
    int n = 0;
    for (size_t i = 0; i < RL_LEN(piped); i++) n += piped[i] && rl_is_stdio(piped[i]);
    if (l->external && rl_is_stdio(l->out)) return rl_usage_error("optimize: --external-data: a model on stdout has no folder");
    if (l->csv) return rl_usage_error("optimize: --csv is for several models");
    return n > 1 ? rl_usage_error("optimize: only one thing can go to stdout") : RL_OK;
}

rl_status rl_cmd_optimize(rl_line *l) {
    rl_arena mem;
    if (l->nfile > 1 && l->out) return rl_batch(l);
    rl_arena_init(&mem, l->ctx);
    rl_status s = check_outputs(l, &mem);
    l->pass.proof = l->proof != NULL;
    if (s == RL_OK) s = rl_optimize_one(l);
    rl_arena_free(&mem);
    return s;
}
