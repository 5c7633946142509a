/* See cmd_batch.h. */
#include "cmd_batch.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    rl_line *l;
    rl_arena *mem;
    const char **out;  /* where each model goes */
    rl_batchrow *row;  /* shared with the processes */
    pid_t *pid;        /* 0: not running */
    int running, done;
    rl_text *json;     /* each model's report, or what went wrong */
} batch;

/* ---- names ---- */

bool rl_is_dir(const char *path) {
    struct stat st;
    size_t n = strlen(path);
    return (n && path[n - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

const char *rl_path_in(rl_arena *mem, const char *dir, const char *in) {
    const char *slash = strrchr(in, '/'), *name = slash ? slash + 1 : in;
    size_t n = strlen(dir);
    int keep = (int)(strlen(name) - (rl_is_text(name) ? 4 : 0));
    rl_text t = {.mem = mem};
    rl_put(&t, "%s%s%.*s%s", dir, n && dir[n - 1] == '/' ? "" : "/", keep, name, rl_is_text(name) ? ".onnx" : "");
    return t.p;
}

typedef struct { const char *out, *in; } named;

static int compare_named(const void *a, const void *b) {
    return strcmp(((const named *)a)->out, ((const named *)b)->out);
}

static rl_status check_names(const batch *b) {
    const rl_line *l = b->l;
    int n = l->nfile;
    named *all = rl_new(b->mem, named, n);
    for (int i = 0; i < n; i++) {
        all[i] = (named){b->out[i], l->file[i]};
        if (rl_is_stdio(all[i].in)) return rl_usage_error(l, "optimize: a model from stdin is the only one");
    }
    qsort(all, (size_t)n, sizeof *all, compare_named);
    for (int i = 1; i < n; i++)
        if (strcmp(all[i].out, all[i - 1].out) == 0)
            return rl_usage_error(l, "optimize: %s and %s would both go to %s", all[i - 1].in, all[i].in, all[i].out);
    rl_line one = *l;
    one.nfile = 0; /* those have been looked at */
    for (int i = 0; i < n; i++) {
        one.out = all[i].out;
        RL_TRY(rl_line_check_outputs(&one));
    }
    return RL_OK;
}

static rl_status check_line(const rl_line *l) {
    if (!rl_onnx_packs(l->external))
        return rl_usage_error(l, "optimize: --external-data of several models is keep or inline");
    if (l->proof) return rl_usage_error(l, "optimize: --proof is for one model");
    const char *what = l->nfile > 1 ? "" : "--csv is for several models; ";
    if (rl_is_stdio(l->out)) return rl_usage_error(l, "optimize: %sseveral models go to a folder, -o DIR/", what);
    if (!rl_is_dir(l->out) && access(l->out, F_OK) == 0) return rl_usage_error(l, "optimize: %sseveral models go to a folder, and %s is none", what, l->out);
    if (!rl_is_dir(l->out) && rl_has_ending(l->out, ".onnx"))
        return rl_usage_error(l, "optimize: %sseveral models go to a folder, and %s is called like a model; %s/ if that is meant", what, l->out, l->out);
    return RL_OK;
}

rl_status rl_make_dir(const rl_line *l) {
    if (mkdir(l->out, 0777) == 0 || (errno == EEXIST && rl_is_dir(l->out))) return RL_OK;
    return rl_fail(l->ctx, RL_EIO, "%s: %s", l->out, strerror(errno));
}

/* ---- one model, in its process ---- */

rl_status rl_batch_keep(const rl_line *l, const rl_report *r) {
    rl_batchrow *row = l->row;
    row->changed = r->changed;
    row->conv_before = r->conv_before;
    row->conv_after = r->conv_after;
    row->conv_bound = r->conv_bound;
    row->proved = strcmp(r->proof, "optimal") == 0;
    row->in_bytes = r->in_bytes;
    row->out_bytes = r->out_bytes;
    if (row->json < 0) return RL_OK;
    rl_arena tmp;
    rl_arena_init(&tmp, l->ctx);
    rl_text json = {.mem = &tmp};
    rl_report_json(r, &json);
    ssize_t n = write(row->json, json.p, json.n);
    rl_arena_free(&tmp);
    return n == (ssize_t)json.n ? RL_OK : rl_fail(l->ctx, RL_EIO, "a temporary file cannot be written: %s", strerror(errno));
}

static void work(const batch *b, int i) {
    rl_line one = *b->l;
    rl_batchrow *row = &b->row[i];
    one.in = b->l->file[i];
    one.out = b->out[i];
    one.row = row;
    one.start = rl_seconds();
    one.ctx->host.user = &one; /* warnings are about this model */
    row->status = rl_optimize_one(&one);
    size_t n = strlen(one.in);
    const char *e = one.ctx->error;
    bool said = strncmp(e, one.in, n) == 0 && strncmp(e + n, ": ", 2) == 0;
    if (row->status != RL_OK) snprintf(row->error, sizeof row->error, "%s", said ? e + n + 2 : e);
    row->seconds = rl_seconds() - one.start;
    row->done = true;
}

static void give_up(rl_batchrow *row, const char *what) {
    row->status = RL_EIO;
    row->done = true;
    snprintf(row->error, sizeof row->error, "no %s for it: %s", what, strerror(errno));
}

static void launch(batch *b, int i) {
    rl_batchrow *row = &b->row[i];
    FILE *f = b->l->json ? tmpfile() : NULL;
    row->json = f ? dup(fileno(f)) : -1;
    if (b->l->json && row->json < 0) give_up(row, "temporary file");
    if (f) fclose(f);
    if (row->done) return;
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        /* Whoever ends the first process, by whatever signal, ends all: nothing is written after it. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
        work(b, i);
        _exit(0);
    }
    b->pid[i] = pid > 0 ? pid : 0;
    b->running += pid > 0;
    if (pid < 0) give_up(row, "process");
}

/* ---- all of them ---- */

static void take_json(batch *b, int i) {
    rl_batchrow *row = &b->row[i];
    rl_text *t = &b->json[i];
    char some[65536];
    t->mem = b->mem;
    if (row->status == RL_OK && lseek(row->json, 0, SEEK_SET) == 0) {
        for (ssize_t n; (n = read(row->json, some, sizeof some)) > 0;) rl_put_bytes(t, some, (size_t)n);
        while (t->n && t->p[t->n - 1] == '\n') t->n--;
    } else {
        rl_put(t, "{\"input\": {\"path\": ");
        rl_report_string(t, b->l->file[i]);
        rl_put(t, "}, \"status\": %d, \"error\": ", (int)row->status);
        rl_report_string(t, row->error);
        rl_put(t, "}");
    }
    if (row->json >= 0) close(row->json);
}

static void finish(batch *b, int i, int how) {
    rl_batchrow *row = &b->row[i];
    if (!row->done) {
        row->status = RL_EINTERNAL;
        bool signaled = WIFSIGNALED(how);
        snprintf(row->error, sizeof row->error, "its process ended %s %d", signaled ? "by signal" : "with status", signaled ? WTERMSIG(how) : WEXITSTATUS(how));
    }
    b->done++;
    if (b->l->json) take_json(b, i);
    rl_progress(b->l, NULL);
    if (row->status != RL_OK) rl_complain(b->l, b->l->file[i], row->error);
    char text[64];
    snprintf(text, sizeof text, "%d of %d models", b->done, b->l->nfile);
    rl_progress(b->l, text);
}

static void wait_one(batch *b) {
    int how = 0;
    pid_t pid = wait(&how);
    if (pid < 0 && errno == EINTR) return;
    for (int i = 0; i < b->l->nfile; i++) {
        if (b->pid[i] == 0 || (pid > 0 && b->pid[i] != pid)) continue;
        b->pid[i] = 0;
        b->running--;
        finish(b, i, how);
        return;
    }
}

static void run_all(batch *b) {
    int jobs = (int)RL_MAX(b->l->jobs, 1u);
    for (int i = 0; i < b->l->nfile; i++) {
        while (b->running >= jobs) wait_one(b);
        launch(b, i);
        if (!b->pid[i]) finish(b, i, 0);
    }
    while (b->running) wait_one(b);
    rl_progress(b->l, NULL);
}

static rl_status worst(const batch *b) {
    rl_status s = RL_OK;
    for (int i = 0; i < b->l->nfile; i++) {
        rl_status x = b->row[i].status;
        if (s != RL_EINTERNAL && (x == RL_EINTERNAL || x > s)) s = x;
    }
    return s;
}

/* ---- what is said ---- */

static const char *outcome_of(const rl_batchrow *r) {
    return r->status != RL_OK ? "failed" : r->changed ? "changed" : "as it was";
}

static void put_row(const batch *b, int i, int width, bool paints, rl_text *t) {
    const rl_batchrow *r = &b->row[i];
    rl_color color = r->status != RL_OK ? RL_RED : r->changed ? RL_GREEN : RL_PLAIN;
    rl_put(t, "%-*s  %s%-9s%s", width, b->l->file[i], rl_paint(paints, color), outcome_of(r), rl_paint(paints, RL_PLAIN));
    if (r->status == RL_OK)
        rl_put(t, "  %7" PRId64 "  %7" PRId64 "  %-8s  %8.2f", r->conv_before, r->conv_after, !r->proved ? "" : r->conv_bound < r->conv_after ? "quickest" : "minimum", r->seconds);
    rl_put(t, "\n");
}

static void put_table(const batch *b, rl_text *t) {
    bool paints = rl_paints(b->l, stdout);
    int width = 5, n[3] = {0};
    int64_t before = 0, after = 0;
    for (int i = 0; i < b->l->nfile; i++) width = RL_MAX(width, (int)strlen(b->l->file[i]));
    rl_put(t, "%-*s  %-9s  %7s  %7s  %-8s  %8s\n", width, "model", "", "before", "after", "", "seconds");
    for (int i = 0; i < b->l->nfile; i++) {
        const rl_batchrow *r = &b->row[i];
        n[r->status != RL_OK ? 2 : !r->changed]++;
        put_row(b, i, width, paints, t);
        before += r->status == RL_OK ? r->conv_before : 0;
        after += r->status == RL_OK ? r->conv_after : 0;
    }
    bool one = b->l->nfile == 1;
    rl_put(t, "%d model%s: %d changed, %d as %s, %d failed; conversions %" PRId64 " -> %" PRId64 "\n", b->l->nfile, one ? "" : "s", n[0], n[1],
           one ? "it was" : "they were", n[2], before, after);
}

static void put_quoted(rl_text *t, const char *s) {
    rl_put(t, "\"");
    for (; *s; s++) rl_put(t, "%s%c", *s == '"' ? "\"" : "", *s);
    rl_put(t, "\"");
}

static void put_csv(const batch *b, rl_text *t) {
    rl_put(t, "input,output,status,changed,conversions_before,conversions_after,lower_bound,proved,bytes_before,bytes_after,seconds,error\n");
    for (int i = 0; i < b->l->nfile; i++) {
        const rl_batchrow *r = &b->row[i];
        put_quoted(t, b->l->file[i]);
        rl_put(t, ",");
        put_quoted(t, r->status == RL_OK ? b->out[i] : "");
        rl_put(t, ",%d,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%" PRIu64 ",%" PRIu64 ",%.3f,", (int)r->status, r->changed, r->conv_before,
               r->conv_after, r->conv_bound, r->proved, r->in_bytes, r->out_bytes, r->seconds);
        put_quoted(t, r->error);
        rl_put(t, "\n");
    }
}

static rl_status report(batch *b, rl_status s) {
    rl_line *l = b->l;
    rl_text t = {.mem = b->mem};
    if (l->json) {
        rl_put(&t, "{\"models\": [\n");
        for (int i = 0; i < l->nfile; i++) {
            rl_put_bytes(&t, b->json[i].p, b->json[i].n);
            rl_put(&t, i + 1 < l->nfile ? ",\n" : "\n");
        }
        rl_put(&t, "], \"status\": %d}\n", (int)s);
        RL_TRY(rl_line_write(l, l->json, &t));
    }
    t.n = 0;
    if (l->csv) {
        put_csv(b, &t);
        RL_TRY(rl_line_write(l, l->csv, &t));
    }
    t.n = 0;
    if (l->quiet || rl_line_takes_stdout(l)) return RL_OK;
    put_table(b, &t);
    return rl_write_stdout(l, t.p, t.n);
}

static rl_status run_batch(batch *b) {
    rl_line *l = b->l;
    size_t n = (size_t)l->nfile, nbyte = n * sizeof *b->row;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    b->out = rl_new(b->mem, const char *, n);
    b->pid = rl_new(b->mem, pid_t, n);
    b->json = rl_new(b->mem, rl_text, n);
    for (size_t i = 0; i < n; i++) b->out[i] = rl_path_in(b->mem, l->out, l->file[i]);
    RL_TRY(check_names(b));
    RL_TRY(rl_line_check_path(l, l->json));
    RL_TRY(rl_line_check_path(l, l->csv));
    RL_TRY(rl_make_dir(l));
    b->row = mmap(NULL, nbyte, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b->row == MAP_FAILED) return rl_fail(l->ctx, RL_ENOMEM, "out of memory");
    run_all(b);
    rl_status s = worst(b), told = report(b, s);
    munmap(b->row, nbyte);
    return told == RL_OK ? s : told;
}

rl_status rl_batch(rl_line *l) {
    rl_arena mem;
    batch b = {.l = l, .mem = &mem};
    RL_TRY(check_line(l));
    l->in = NULL; /* messages are about no single model */
    rl_arena_init(&mem, l->ctx);
    rl_status s = run_batch(&b);
    rl_arena_free(&mem);
    return s;
}
