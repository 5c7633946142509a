/* The command optimize.  The model is written, whole or not at all (onnx_file.c), after all that can fail but the writing of the
 * certificate and of the report, whose folders have been looked at; what fails leaves no output behind. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../runtime/check.h"
#include "cmd_batch.h"
#include "onnx_internal.h"

/* --proof wants a certificate of this very result. */
static rl_status check_proved(const rl_line *l, const rl_outcome *o) {
    if (!l->proof || o->proved != RL_PROVED_NOT) return RL_OK;
    return rl_fail(l->ctx, RL_EPROOF, "%s: nothing was proved: %s", l->in, o->proof.why ? o->proof.why : "no certificate was made");
}

/* The model with the interface that was asked for. */
static rl_status read_turned(rl_line *l, rl_graph **g) {
    rl_status s = rl_line_read(l, g);
    return s == RL_OK && l->io.port.n ? rl_interface_apply(*g, &l->io) : s;
}

static uint64_t peak_bytes(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

/* The graph, or the model as it was read, to stdout or what else is open; data in other files stays there. */
static rl_status write_piped(rl_line *l, const rl_graph *g, bool changed, uint64_t *nbyte) {
    rl_arena tmp;
    rl_span bytes = rl_onnx_bytes(g);
    rl_status s = RL_OK;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, l->ctx);
    if (changed) s = rl_onnx_pack(g, l->external, &tmp, &bytes);
    if (s == RL_OK && rl_is_stdio(l->out)) s = rl_write_stdout(l, (const char *)bytes.p, bytes.n);
    else if (s == RL_OK) s = rl_file_write(l->ctx, l->out, bytes.p, bytes.n);
    *nbyte = bytes.n;
    rl_arena_free(&tmp);
    return s;
}

/* What nothing improved has no bytes to copy where it was text, or has another interface or sizes now; and a pass may have left its
 * graph half-written: it is read again. */
static rl_status write_again(rl_line *l, const char *const *taken, uint64_t *nbyte) {
    rl_graph *g;
    rl_status s = read_turned(l, &g);
    if (s == RL_OK) s = rl_is_open(l->out) ? write_piped(l, g, true, nbyte) : rl_onnx_write(g, l->out, l->external, taken);
    rl_graph_free(g);
    return s;
}

/* Also where nothing changed. */
static bool is_written_anew(const rl_line *l, const rl_graph *g) {
    return rl_is_text(l->in) || rl_interface_changed(&l->io) || g->sized || rl_onnx_moves_data(l->external);
}

/* The input's bytes where nothing changed. */
static rl_status write_model(rl_line *l, rl_graph *g, bool changed, const char *const *taken, uint64_t *nbyte) {
    struct stat st;
    *nbyte = 0;
    if (!changed && is_written_anew(l, g)) RL_TRY(write_again(l, taken, nbyte));
    else if (rl_is_open(l->out)) RL_TRY(write_piped(l, g, changed, nbyte));
    else RL_TRY(changed ? rl_onnx_write(g, l->out, l->external, taken) : rl_onnx_copy(g, l->out, taken));
    if (!rl_is_open(l->out) && stat(l->out, &st) == 0) *nbyte = (uint64_t)st.st_size;
    return RL_OK;
}

/* What is reported of one optimization. */
typedef struct {
    rl_arena mem;
    rl_timing time[RL_LEN(((rl_outcome *)0)->time) + 2];
    rl_report r;
    rl_text json, table, checked;
    const char *const *taken; /* rl_line_taken */
} optimized;

static void print_reports(optimized *x) {
    x->json.n = x->table.n = 0;
    rl_report_json(&x->r, &x->json);
    rl_report_table(&x->r, &x->table);
    if (x->checked.n) rl_put(&x->table, "checked: %s", x->checked.p);
}

/* Before the model is written, so that a report for which there is no memory leaves no model behind: with room to print it again. */
static rl_status prepare_reports(const rl_line *l, const rl_graph *g, const rl_outcome *o, optimized *x) {
    enum { ROOM = 256 }; /* times and a size, with more digits than now */
    uint32_t n = 1;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    x->json.mem = x->table.mem = &x->mem;
    x->taken = rl_line_taken(l, &x->mem);
    x->r = (rl_report){.in = l->in, .out = l->out, .in_bytes = rl_onnx_bytes(g).n, .target = l->pass.target, .objective = l->pass.objective};
    rl_summarize(o, &l->io, &x->mem, &x->r);
    x->r.changed |= g->sized;
    x->r.kept = !is_written_anew(l, g);
    x->time[0] = (rl_timing){"read", l->read_time};
    for (uint32_t i = 0; i < o->ntime; i++) x->time[n++] = (rl_timing){o->time[i].pass, o->time[i].seconds};
    x->time[n++] = (rl_timing){"write", 0};
    x->r.time = x->time;
    x->r.ntime = n;
    print_reports(x);
    rl_put(&x->json, "%*s", ROOM, "");
    rl_put(&x->table, "%*s", ROOM, "");
    return RL_OK;
}

static rl_status write_reports(rl_line *l, optimized *x) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    x->r.total = rl_seconds() - l->start;
    x->r.peak_bytes = peak_bytes();
    if (l->row) return rl_batch_keep(l, &x->r);
    print_reports(x);
    rl_progress(l, NULL);
    if (l->json) RL_TRY(rl_line_write(l, l->json, &x->json));
    if (l->quiet) return RL_OK;
    if (!rl_line_takes_stdout(l)) return rl_write_stdout(l, x->table.p, x->table.n);
    if (rl_is_stdio(l->out)) rl_to_stderr(NULL, x->table.p, x->table.n);
    return RL_OK;
}

/* ---- optimize --check ---- */

typedef struct { rl_line *l; rl_span bytes; const char *dir; } candidate; /* dir: where its external data is, beside the original; NULL: there is none */

static rl_status read_original(void *user, rl_graph **g) {
    return read_turned(((candidate *)user)->l, g);
}

/* What would be written. */
static rl_status read_result(void *user, rl_graph **g) {
    const candidate *c = user;
    return rl_onnx_read_bytes(c->l->ctx, c->bytes.p, c->bytes.n, c->dir, &(rl_readopt){0}, g);
}

static rl_status check_result(rl_line *l, rl_graph *g, bool changed, optimized *x) {
    candidate c = {.l = l};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    x->checked.mem = &x->mem;
    l->run.corners = true;
    if (!changed) {
        rl_put(&x->checked, "the output is the input\n");
        return RL_OK;
    }
    if (!rl_is_stdio(l->in)) c.dir = rl_file_dir(l->ctx, l->in);
    RL_TRY(rl_onnx_pack(g, NULL, &x->mem, &c.bytes));
    return rl_check_result(l->ctx, &(rl_checked){.original = read_original, .result = read_result, .user = &c, .run = &l->run}, &x->checked);
}

static rl_status write_all(rl_line *l, rl_graph *g, const rl_outcome *o, optimized *x) {
    RL_TRY(check_proved(l, o));
    RL_TRY(rl_line_check_path(l, l->proof));
    RL_TRY(rl_line_check_path(l, l->json));
    if (l->check) RL_TRY(check_result(l, g, o->changed, x));
    RL_TRY(prepare_reports(l, g, o, x));
    double start = rl_seconds();
    RL_TRY(write_model(l, g, o->changed, x->taken, &x->r.out_bytes));
    x->time[x->r.ntime - 1].seconds = rl_seconds() - start;
    if (l->proof) RL_TRY(rl_line_write(l, l->proof, &o->proof.text[0]));
    return write_reports(l, x);
}

static rl_status optimize_graph(rl_line *l, rl_graph *g) {
    rl_outcome o;
    optimized x = {0};
    RL_TRY(rl_optimize(g, &l->pass, &o));
    rl_arena_init(&x.mem, l->ctx);
    rl_status s = write_all(l, g, &o, &x);
    rl_arena_free(&x.mem);
    return s;
}

/* --input-layout and --output-layout: what they save is found on a graph of its own. */
static rl_status choose_interface(rl_line *l) {
    rl_graph *g;
    RL_TRY(rl_line_interface(l));
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
    if (s == RL_OK) s = read_turned(l, &g);
    if (s == RL_OK) s = optimize_graph(l, g);
    rl_graph_free(g);
    rl_arena_free(&l->io_mem);
    return s;
}

/* Where things go: -o OUT, which may be a folder. */
static rl_status check_outputs(rl_line *l, rl_arena *mem) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (!l->out) return rl_usage_error(l, "optimize: where does the result go? -o %s", l->nfile == 1 ? "OUT" : "DIR/");
    if (rl_is_text(l->out)) return rl_usage_error(l, "optimize -o %s: the result is an ONNX file; relayout print shows it as text", l->out);
    if (!rl_is_stdio(l->out) && rl_is_dir(l->out)) {
        RL_TRY(rl_make_dir(l));
        l->out = rl_path_in(mem, l->out, l->in);
        RL_TRY(rl_line_check_outputs(l));
    }
    if (!rl_onnx_packs(l->external) && rl_is_open(l->out)) return rl_usage_error(l, "optimize: --external-data: a model on stdout has no folder");
    return RL_OK;
}

rl_status rl_cmd_optimize(rl_line *l) {
    rl_arena mem;
    bool several = l->nfile > 1 || l->csv; /* *.onnx may be one */
    if (several && l->out) return rl_batch(l);
    rl_arena_init(&mem, l->ctx);
    rl_status s = check_outputs(l, &mem);
    l->pass.proof = l->proof != NULL;
    if (s == RL_OK) s = rl_optimize_one(l);
    rl_arena_free(&mem);
    return s;
}
