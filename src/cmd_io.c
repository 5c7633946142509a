/* Models in, texts out: what commands share (cmd.h). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "fix.h"
#include "onnx_internal.h"
#include "target.h"
#include "text.h"

bool rl_is_stdio(const char *path) {
    return strcmp(path, "-") == 0;
}

bool rl_is_open(const char *path) {
    return rl_is_stdio(path) || rl_file_descriptor(path) >= 0;
}

const char *rl_output_name(const char *path) {
    return rl_file_descriptor(path) == STDOUT_FILENO ? "-" : path;
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
        const char *path = written_by(l, o), *data = NULL;
        if (path && !rl_is_stdio(path)) RL_TRY(rl_onnx_data_at(g, path, &data));
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

static rl_status read_text(rl_line *l, rl_graph **g) {
    rl_arena tmp;
    rl_text t = {.mem = &tmp};
    rl_arena_init(&tmp, l->ctx);
    rl_status s = rl_line_read_text(l, l->in, &t);
    if (s == RL_OK) s = rl_text_parse(l->ctx, l->in, t.p, t.n, g);
    rl_arena_free(&tmp);
    return s;
}

/* A second model whose inputs were put in another order declares its sizes. */
static rl_status fix_dims(const rl_line *l, bool second, rl_graph *g) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    for (uint32_t i = 0; i < l->shapes.n && !(second && l->in_layouts.n); i++) RL_TRY(rl_fix_shape(g, l->shapes.item[i]));
    for (uint32_t i = 0; i < l->dims.n; i++) RL_TRY(rl_fix_dim(g, l->dims.item[i], second));
    return RL_OK;
}

/* A pipe has no second reading. What else is no file is refused as it is opened, but where somebody has opened it for this program. */
static bool is_piped(const char *path) {
    struct stat st;
    if (rl_is_stdio(path)) return true;
    return stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || (rl_file_descriptor(path) >= 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)));
}

static int open_piped(const char *path) {
    int fd = rl_is_stdio(path) ? STDIN_FILENO : rl_file_descriptor(path);
    return fd >= 0 ? dup(fd) : open(path, O_RDONLY | O_CLOEXEC);
}

static rl_status take_all(rl_line *l, rl_piped *p) {
    char some[65536];
    ssize_t n;
    if (RL_PROTECT(l->ctx)) {
        close(p->fd);
        return RL_ENOMEM;
    }
    rl_put(&p->bytes, "%s", "");
    while ((n = read(p->fd, some, sizeof some)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) rl_put_bytes(&p->bytes, some, (size_t)n);
    int error = errno;
    close(p->fd);
    return n == 0 ? RL_OK : rl_fail(l->ctx, RL_EIO, "%s: cannot read: %s", rl_is_stdio(p->path) ? "stdin" : p->path, strerror(error));
}

static rl_status read_piped(rl_line *l, const char *path, rl_text *t) {
    for (uint32_t i = 0; i < l->npiped; i++)
        if (strcmp(l->piped[i].path, path) == 0) return *t = l->piped[i].bytes, RL_OK;
    if (l->npiped == RL_MOSTPIPED) return rl_fail(l->ctx, RL_EUSAGE, "%s: more than %d pipes", path, RL_MOSTPIPED);
    if (!l->npiped) rl_arena_init(&l->piped_mem, l->ctx);
    rl_piped *p = &l->piped[l->npiped];
    *p = (rl_piped){path, open_piped(path), {.mem = &l->piped_mem}};
    if (p->fd < 0) return rl_fail(l->ctx, RL_EIO, "%s: cannot read: %s", rl_is_stdio(path) ? "stdin" : path, strerror(errno));
    RL_TRY(take_all(l, p));
    l->npiped++;
    *t = p->bytes;
    return RL_OK;
}

static rl_status read_onnx(rl_line *l, rl_graph **g) {
    static const char nameless[] = "<memory>: ";
    const size_t n = strlen(nameless);
    char *e = l->ctx->error;
    rl_text t;
    if (!is_piped(l->in)) return rl_onnx_read(l->ctx, l->in, &(rl_readopt){0}, g);
    RL_TRY(read_piped(l, l->in, &t));
    rl_status s = rl_onnx_read_bytes(l->ctx, t.p, t.n, NULL, &(rl_readopt){0}, g);
    if (s != RL_OK && strncmp(e, nameless, n) == 0) memmove(e, e + n, strlen(e + n) + 1);
    return s;
}

static rl_status read_model(rl_line *l, bool second, rl_graph **g) {
    double start = rl_seconds();
    *g = NULL;
    rl_status s = rl_is_text(l->in) ? read_text(l, g) : read_onnx(l, g);
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

rl_status rl_line_interface(rl_line *l) {
    l->io.mem = &l->io_mem;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    for (uint32_t i = 0; i < l->in_layouts.n; i++) RL_TRY(rl_interface_add(&l->io, false, l->in_layouts.item[i]));
    for (uint32_t i = 0; i < l->out_layouts.n; i++) RL_TRY(rl_interface_add(&l->io, true, l->out_layouts.item[i]));
    return RL_OK;
}

rl_status rl_line_wants_file(const rl_line *l, const char *command) {
    return is_piped(l->in) ? rl_usage_error(l, "%s wants its model as a file: others read that, too", command) : RL_OK;
}

/* ---- texts ---- */

rl_status rl_line_read_text(rl_line *l, const char *path, rl_text *t) {
    if (is_piped(path)) return read_piped(l, path, t);
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    return rl_file_read(path, t);
}

rl_status rl_write_stdout(rl_line *l, const char *p, size_t n) {
    rl_progress(l, NULL);
    if (fwrite(p, 1, n, stdout) == n && fflush(stdout) == 0) return RL_OK;
    return rl_fail(l->ctx, RL_EIO, "stdout: %s", strerror(errno));
}

rl_status rl_line_write(rl_line *l, const char *path, const rl_text *t) {
    return rl_is_stdio(path) ? rl_write_stdout(l, t->p, t->n) : rl_file_write(l->ctx, path, t->p, t->n);
}

/* Is there something, or somebody waiting, that a name needs no folder for? */
static bool is_no_file(const char *path) {
    struct stat st;
    return rl_is_open(path) || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static bool can_write(const char *path) {
    int fd = rl_file_descriptor(path);
    if (fd < 0) return access(path, W_OK) == 0;
    int how = fcntl(fd, F_GETFL);
    if (how >= 0 && (how & O_ACCMODE) == O_RDONLY) errno = EBADF;
    return how >= 0 && (how & O_ACCMODE) != O_RDONLY;
}

rl_status rl_line_check_path(const rl_line *l, const char *path) {
    if (!path || rl_is_stdio(path)) return RL_OK;
    char dir[PATH_MAX];
    bool ok = is_no_file(path) ? can_write(path) : rl_file_put_dir(path, dir, sizeof dir) && can_write(dir);
    return ok ? RL_OK : rl_fail(l->ctx, RL_EIO, "%.400s: cannot write: %s", path, strerror(errno));
}

void rl_to_stderr(void *user, const char *text, size_t n) {
    (void)user;
    fwrite(text, 1, n, stderr);
}
