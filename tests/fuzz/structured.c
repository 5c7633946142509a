/* Bytes as a recipe for a valid model (model.h), optimized for a target and objective that the bytes choose, every pass verified:
 *
 *   the model reads, and so does the result, whose outputs are the same as far as the reference runtime can run both
 *   what the objective counts is not more than it was
 *   the certificate, as text, reads and checks
 *   what is called the minimum is not changed a second time; all else comes to an end */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../passes/pass.h"
#include "../../src/cert.h"
#include "../../src/onnx.h"
#include "model.h"
#include "model_run.h"

enum { MOSTSTATES = 1 << 16 };

typedef struct {
    rl_ctx *ctx;
    model_choices how;
    rl_span bytes, result;
    char folder[64]; /* of the model and its data; empty: none */
} job;

/* ---- the model as a file ---- */

static void remove_folder(const char *folder) {
    char path[512];
    DIR *d = *folder ? opendir(folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path) unlink(path);
    if (d) closedir(d);
    if (*folder) rmdir(folder);
}

/* Writes the model and its data to files, and takes the model's bytes from there. */
static rl_status write_outside(job *j, const rl_graph *g) {
    char path[128];
    rl_text t = {.mem = &j->ctx->mem};
    const char *tmp = getenv("TMPDIR");
    snprintf(j->folder, sizeof j->folder, "%.40s/structured-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(j->folder)) {
        j->folder[0] = 0;
        return rl_fail(j->ctx, RL_EIO, "no folder");
    }
    snprintf(path, sizeof path, "%s/m.onnx", j->folder);
    RL_TRY(rl_onnx_write(g, path, "m.data", NULL));
    if (RL_PROTECT(j->ctx)) return RL_ENOMEM;
    RL_TRY(rl_file_read(path, &t));
    j->bytes = (rl_span){(const uint8_t *)t.p, t.n};
    return RL_OK;
}

static rl_status make(job *j, const uint8_t *p, size_t n) {
    if (RL_PROTECT(j->ctx)) return RL_ENOMEM;
    rl_graph *g = model_make(j->ctx, p, n, &j->how);
    return j->how.outside ? write_outside(j, g) : rl_onnx_pack(g, NULL, &j->ctx->mem, &j->bytes);
}

static rl_graph *read_model(const job *j, rl_span bytes, const char *what) {
    rl_graph *g;
    char dir[80];
    snprintf(dir, sizeof dir, "%s/", j->folder);
    must(rl_onnx_read_bytes(j->ctx, bytes.p, bytes.n, *j->folder ? dir : NULL, NULL, &g) == RL_OK, what, j->ctx);
    return g;
}

/* ---- what must hold ---- */

static void check_counts(const job *j, const rl_outcome *o) {
    if (!o->changed) return;
    bool bytes = strcmp(j->how.objective, "bytes") == 0, time = strcmp(j->how.objective, "time") == 0;
    int64_t slack = bytes ? o->before.einsum_bytes : 0;
    int64_t fewer = rl_stats_conversions(&o->before) - rl_stats_conversions(&o->after);
    must(bytes || time || fewer >= 0, "no more conversions", j->ctx);
    must(bytes || time || fewer > 0 || o->after.moving <= o->before.moving, "no more Transposes that move data, but for fewer conversions", j->ctx);
    must(!bytes || o->after.moved_bytes <= o->before.moved_bytes + slack, "no more bytes moved", j->ctx);
    must(!time || o->time_after <= o->time_before, "no more time", j->ctx);
}

static void check_proof(const job *j, const rl_outcome *o) {
    rl_cert c;
    const rl_text *t = &o->proof.text[0];
    if (!o->proof.checked || !t->n || RL_PROTECT(j->ctx)) return;
    must(rl_cert_parse(j->ctx, &j->ctx->mem, "certificate", t->p, t->n, &c) == RL_OK, "the certificate reads", j->ctx);
    must(rl_cert_check(j->ctx, &c, MOSTSTATES, RL_CERT_SECOND, NULL) == RL_OK, "the certificate checks", j->ctx);
}

static rl_status pack(const job *j, const rl_graph *g, rl_span *out) {
    if (RL_PROTECT(j->ctx)) return RL_ENOMEM;
    return rl_onnx_pack(g, NULL, &j->ctx->mem, out);
}

/* Optimizes `bytes`; *result becomes what comes out. */
static void optimize(const job *j, rl_span bytes, rl_span *result, rl_outcome *o) {
    const rl_passopt opt = {.target = j->how.target, .objective = j->how.objective, .time_limit = 2, .verify_each = true, .proof = true};
    rl_graph *g = read_model(j, bytes, "a model that was written reads");
    must(rl_optimize(g, &opt, o) == RL_OK, "a valid model is optimized", j->ctx);
    *result = bytes;
    if (o->changed) must(pack(j, g, result) == RL_OK, "the result can be written", j->ctx);
    check_counts(j, o);
    check_proof(j, o);
    rl_graph_free(g);
}

static void check_runs(const job *j) {
    static const char *const foreign[] = {"fused", "ort", "ort-cuda"};
    model_ran ran;
    bool own_ops = false;
    for (size_t i = 0; i < RL_LEN(foreign); i++) own_ops |= strcmp(foreign[i], j->how.target) == 0;
    rl_graph *a = read_model(j, j->bytes, "the model reads"), *b = read_model(j, j->result, "the result reads");
    rl_status s = model_compare(a, b, j->how.seed, own_ops, &ran);
    must(s == RL_OK || s == RL_ENOMEM, "the same outputs", j->ctx);
    rl_graph_free(a);
    rl_graph_free(b);
}

/* What is called the minimum is one: nothing is left to do.  Else what was written may show more (constants that a rewrite laid
 * bare), but not for ever. */
static void check_again(const job *j, bool proved) {
    enum { ROUNDS = 4 };
    rl_outcome o = {.changed = true};
    rl_span from = j->result, to;
    for (uint32_t i = 0; i < ROUNDS && o.changed; i++) {
        optimize(j, from, &to, &o);
        must(!(proved && o.changed), "the minimum: a second time there is nothing to do", j->ctx);
        from = to;
    }
    must(!o.changed, "in the end there is nothing to do", j->ctx);
}

static void check(job *j) {
    rl_outcome first;
    optimize(j, j->bytes, &j->result, &first);
    if (!first.changed) return;
    check_again(j, first.proved == RL_PROVED_OPTIMAL && !j->how.constant);
    check_runs(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    job j = {.ctx = rl_ctx_new(FUZZ_MEMORY)};
    if (!j.ctx) return 0;
    rl_status s = make(&j, p, n);
    must(s == RL_OK, "the model can be written", j.ctx);
    check(&j);
    remove_folder(j.folder);
    rl_ctx_free(j.ctx);
    return 0;
}
