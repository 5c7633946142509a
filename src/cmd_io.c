/* Models in, texts out: what commands share (cmd.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "fix.h"
#include "onnx_internal.h"
#include "target.h"
#include "text.h"

bool rl_is_stdio(const char *path) {
    return strcmp(path, "-") == 0;
}

bool rl_has_ending(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

bool rl_is_text(const char *path) { return rl_has_ending(path, ".rlt"); }

/* ---- where things go ---- */

static const char *written_by(const rl_line *l, const rl_option *o) {
    bool writes = o->kind == RL_K_RESULT || o->kind == RL_K_REPORT;
    return writes && o->commands & l->asked->bit ? *(const char *const *)((const char *)l + o->field) : NULL;
}

bool rl_line_takes_stdout(const rl_line *l) {
    bool takes = false;
    for (uint32_t i = 0; i < rl_noption; i++) {
        const char *path = written_by(l, &rl_optiontable[i]);
        takes |= path && rl_is_stdio(path);
    }
    return takes;
}

/* A file that the k-th use of an option reads; NULL: none. */
static const char *read_by(const rl_line *l, const rl_option *o, uint32_t k) {
    const void *field = (const char *)l + o->field;
    bool list = o->kind == RL_K_LIST && field == &l->inputs;
    if (!(o->commands & l->asked->bit) || k >= (list ? l->inputs.n : 1)) return NULL;
    const char *value = list ? strchr(l->inputs.item[k], '=') : NULL;
    if (value) return value + 1;
    if (o->kind != RL_K_FILE && o->kind != RL_K_TARGET) return NULL;
    value = *(const char *const *)field;
    return value && (o->kind == RL_K_FILE || rl_target_is_file(value)) ? value : NULL;
}

const char *const *rl_line_taken(const rl_line *l, rl_arena *mem) {
    struct { const char **p; uint32_t n, cap; } all = {0};
    for (uint32_t i = 0; i < rl_noption; i++) {
        const rl_option *o = &rl_optiontable[i];
        const char *path = o->kind == RL_K_REPORT ? written_by(l, o) : NULL;
        if (path && !rl_is_stdio(path)) rl_push(mem, all, path);
        for (uint32_t k = 0; (path = read_by(l, o, k)); k++) rl_push(mem, all, path);
    }
    rl_push(mem, all, NULL);
    return all.p;
}

/* An output over something that an option reads. */
static rl_status check_read(const rl_line *l, const rl_option *o, const char *path) {
    for (uint32_t i = 0; i < rl_noption; i++) {
        const char *file;
        for (uint32_t k = 0; (file = read_by(l, &rl_optiontable[i], k)); k++)
            if (rl_file_same_place(path, file)) return rl_usage_error(l, "%s: --%s would write over %s, which --%s reads", l->asked->name, o->name, file, rl_optiontable[i].name);
    }
    return RL_OK;
}

/* An output over the model's external data, of which the model has to be read to know. */
static rl_status check_data(const rl_line *l, const rl_graph *g) {
    for (uint32_t i = 0; i < rl_noption; i++) {
        const rl_option *o = &rl_optiontable[i];
        const char *path = written_by(l, o), *data = path && !rl_is_stdio(path) ? rl_onnx_data_at(g, path) : NULL;
        if (data) return rl_fail(l->ctx, RL_EUSAGE, "%s: --%s would write over %s, which is its external data", l->in, o->name, data);
    }
    return RL_OK;
}

rl_status rl_line_check_outputs(const rl_line *l) {
    const char *command = l->asked->name;
    for (uint32_t i = 0; i < rl_noption; i++) {
        const rl_option *o = &rl_optiontable[i];
        const char *path = written_by(l, o);
        for (uint32_t k = 0; path && k < i; k++) {
            const char *other = written_by(l, &rl_optiontable[k]);
            if (!other) continue;
            if (rl_is_stdio(path) && rl_is_stdio(other)) return rl_usage_error(l, "%s: only one thing can go to stdout", command);
            if (rl_file_same_place(path, other))
                return rl_usage_error(l, "%s: --%s and --%s would both go to %s", command, rl_optiontable[k].name, o->name, path);
        }
        if (!path || rl_is_stdio(path)) continue;
        for (int k = 0; o->kind == RL_K_REPORT && k < l->nfile; k++)
            if (rl_file_same_place(path, l->file[k])) return rl_usage_error(l, "%s: --%s would write over %s", command, o->name, l->file[k]);
        RL_TRY(check_read(l, o, path));
    }
    return RL_OK;
}

/* ---- models ---- */

static rl_status read_text(rl_ctx *ctx, const char *path, rl_graph **g) {
    rl_arena tmp;
    rl_text t = {.mem = &tmp};
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, ctx);
    rl_status s = rl_file_read(path, &t);
    if (s == RL_OK) s = rl_text_parse(ctx, path, t.p, t.n, g);
    rl_arena_free(&tmp);
    return s;
}

static rl_status fix_dims(const rl_line *l, bool second, rl_graph *g) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    for (uint32_t i = 0; i < l->shapes.n; i++) RL_TRY(rl_fix_shape(g, l->shapes.item[i]));
    for (uint32_t i = 0; i < l->dims.n; i++) RL_TRY(rl_fix_dim(g, l->dims.item[i], second));
    return RL_OK;
}

/* The whole of stdin, once: a command may read its model again. */
static rl_status read_stdin(rl_line *l) {
    if (l->in_bytes.mem) return RL_OK;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&l->in_mem, l->ctx);
    l->in_bytes.mem = &l->in_mem;
    rl_put(&l->in_bytes, "%s", "");
    char some[65536];
    for (size_t n; (n = fread(some, 1, sizeof some, stdin)) > 0;) rl_put_bytes(&l->in_bytes, some, n);
    return ferror(stdin) ? rl_fail(l->ctx, RL_EIO, "stdin: %s", strerror(errno)) : RL_OK;
}

static rl_status read_onnx(rl_line *l, rl_graph **g) {
    if (!rl_is_stdio(l->in)) return rl_onnx_read(l->ctx, l->in, &(rl_readopt){0}, g);
    RL_TRY(read_stdin(l));
    return rl_onnx_read_bytes(l->ctx, l->in_bytes.p, l->in_bytes.n, NULL, &(rl_readopt){0}, g);
}

static rl_status read_model(rl_line *l, bool second, rl_graph **g) {
    double start = rl_seconds();
    *g = NULL;
    rl_status s = rl_is_text(l->in) ? read_text(l->ctx, l->in, g) : read_onnx(l, g);
    if (s == RL_OK) s = check_data(l, *g);
    if (s == RL_OK) s = fix_dims(l, second, *g);
    l->read_time = rl_seconds() - start;
    return s;
}

rl_status rl_line_read(rl_line *l, rl_graph **g) {
    return read_model(l, false, g);
}

rl_status rl_line_read_other(rl_line *l, const char *path, rl_graph **g) {
    const char *in = l->in;
    l->in = path;
    rl_status s = read_model(l, true, g);
    if (s == RL_OK) l->in = in; /* else messages are about the other */
    return s;
}

rl_status rl_line_wants_file(const rl_line *l, const char *command) {
    return rl_is_stdio(l->in) ? rl_usage_error(l, "%s reads no model from stdin", command) : RL_OK;
}

/* ---- texts ---- */

rl_status rl_line_read_text(rl_line *l, const char *path, rl_text *t) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (!rl_is_stdio(path)) return rl_file_read(path, t);
    RL_TRY(read_stdin(l));
    *t = l->in_bytes;
    return RL_OK;
}

rl_status rl_write_stdout(rl_line *l, const char *p, size_t n) {
    rl_progress(l, NULL);
    if (fwrite(p, 1, n, stdout) == n && fflush(stdout) == 0) return RL_OK;
    return rl_fail(l->ctx, RL_EIO, "stdout: %s", strerror(errno));
}

rl_status rl_line_write(rl_line *l, const char *path, const rl_text *t) {
    return rl_is_stdio(path) ? rl_write_stdout(l, t->p, t->n) : rl_file_write(l->ctx, path, t->p, t->n);
}

rl_status rl_line_check_path(const rl_line *l, const char *path) {
    if (!path || rl_is_stdio(path)) return RL_OK;
    const char *slash = strrchr(path, '/');
    char dir[4096];
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    return access(dir, W_OK) == 0 ? RL_OK : rl_fail(l->ctx, RL_EIO, "%s: cannot write: %s", path, strerror(errno));
}

void rl_to_stderr(void *user, const char *text, size_t n) {
    (void)user;
    fwrite(text, 1, n, stderr);
}
