/* The command reduce: delta debugging over the nodes.
 *
 * Parts of the nodes go, half of those left, then a quarter, and so on down to single ones (Zeller and Hildebrandt, Simplifying and
 * isolating failure-inducing input, 2002); what fails in the same way without them stays so.  Then single nodes that keep type and shape are
 * bypassed.  All over again until nothing goes. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"
#include "cut.h"
#include "shape.h"

typedef struct {
    rl_line *l;
    rl_graph *g;
    rl_cut *cut, *try;         /* [node as numbered in the file] */
    uint32_t nnode, nleft;
    uint32_t nrun;
    int wanted;                /* the status of a model that fails as the first one does */
    const char *path;          /* of the model that is tried */
    rl_text best;
} reducer;

/* ---- does it fail? ---- */

static const char own_command[] = "\"$RL_SELF\" optimize \"$1\" -o /dev/null -q --check --target \"$RL_TARGET\" --objective \"$RL_OBJECTIVE\"";

_Noreturn static void run_command(const reducer *r) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    setenv("RL_SELF", n > 0 ? self : "relayout", 1);
    setenv("RL_TARGET", r->l->pass.target, 1);
    setenv("RL_OBJECTIVE", r->l->pass.objective, 1);
    if (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr))
        execl("/bin/sh", "sh", "-c", r->l->command, "relayout", r->path, (char *)NULL);
    _exit(127);
}

/* The status of `sh -c COMMAND relayout PATH`, which prints nothing; -1: it cannot be run. */
static int ask(const reducer *r) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) run_command(r);
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return pid < 0 || status < 0 ? -1 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static rl_status put_file(rl_ctx *ctx, const char *path, const char *p, size_t n) {
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(p, 1, n, f) == n;
    if (f && fclose(f) != 0) ok = false;
    return ok ? RL_OK : rl_fail(ctx, RL_EIO, "%s: %s", path, strerror(errno));
}

/* r->try becomes r->cut where its model fails, too. */
static rl_status attempt(reducer *r, bool *fails) {
    rl_arena tmp;
    rl_arena_init(&tmp, r->l->ctx);
    rl_text out = {.mem = &tmp};
    rl_status s = RL_OK;
    *fails = rl_cut_model(r->g, rl_onnx_bytes(r->g), r->try, &tmp, &out);
    if (*fails) {
        s = put_file(r->l->ctx, r->path, out.p, out.n);
        r->nrun++;
        *fails = s == RL_OK && ask(r) == r->wanted;
    }
    if (*fails) {
        memcpy(r->cut, r->try, r->nnode * sizeof *r->cut);
        r->best.n = 0;
        rl_put_bytes(&r->best, out.p, out.n);
        r->nleft = 0;
        for (uint32_t i = 0; i < r->nnode; i++) r->nleft += r->cut[i] == RL_CUT_KEEP;
        char text[64];
        snprintf(text, sizeof text, "%u nodes, run %u", r->nleft, r->nrun);
        rl_progress(r->l, text);
    }
    rl_arena_free(&tmp);
    return s;
}

/* ---- the search ---- */

/* Drops `size` of the nodes left at a time. */
static rl_status drop_parts(reducer *r, uint32_t size, bool *any) {
    for (uint32_t at = 0; at < r->nnode;) {
        uint32_t n = 0;
        bool fails;
        memcpy(r->try, r->cut, r->nnode * sizeof *r->cut);
        for (; at < r->nnode && n < size; at++) {
            if (r->try[at] != RL_CUT_KEEP) continue;
            r->try[at] = RL_CUT_DROP;
            n++;
        }
        if (n == 0 || n == r->nleft) continue;
        RL_TRY(attempt(r, &fails));
        *any |= fails;
    }
    return RL_OK;
}

static rl_status bypass_nodes(reducer *r, bool *any) {
    for (uint32_t i = 0; i < r->nnode; i++) {
        bool fails;
        if (r->cut[i] != RL_CUT_KEEP || !rl_cut_can_bypass(r->g, i)) continue;
        memcpy(r->try, r->cut, r->nnode * sizeof *r->cut);
        r->try[i] = RL_CUT_BYPASS;
        RL_TRY(attempt(r, &fails));
        *any |= fails;
    }
    return RL_OK;
}

static rl_status search(reducer *r) {
    for (bool any = true; any && r->nleft > 1;) {
        any = false;
        for (uint32_t size = (r->nleft + 1) / 2; size > 0; size /= 2) RL_TRY(drop_parts(r, size, &any));
        RL_TRY(bypass_nodes(r, &any));
    }
    return RL_OK;
}

/* ---- the command ---- */

/* What a model does that nothing was taken from. */
static rl_status first_run(reducer *r) {
    rl_line *l = r->l;
    rl_span whole = rl_onnx_bytes(r->g);
    RL_TRY(put_file(l->ctx, r->path, (const char *)whole.p, whole.n));
    r->wanted = ask(r);
    r->nrun = 1;
    rl_put_bytes(&r->best, (const char *)whole.p, whole.n);
    if (r->wanted < 0 || r->wanted == 127) return rl_fail(l->ctx, RL_EUSAGE, "--if '%.200s' cannot be run", l->command);
    if (r->wanted == 0) return rl_fail(l->ctx, RL_EUSAGE, "nothing fails: the command ends with status 0");
    return RL_OK;
}

static rl_status report(const reducer *r) {
    rl_text t = {.mem = r->best.mem};
    RL_TRY(rl_file_write(r->l->ctx, r->l->out, r->best.p, r->best.n));
    rl_put(&t, "%u -> %u nodes in %u runs; still status %d\n", r->nnode, r->nleft, r->nrun, r->wanted);
    return rl_write_stdout(r->l, t.p, t.n);
}

static rl_status reduce(rl_line *l, rl_graph *g, rl_arena *mem) {
    rl_text path = {.mem = mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (rl_shape_infer(g) != RL_OK) l->ctx->error[0] = 0; /* then fewer cuts are possible */
    rl_put(&path, "%s.try.onnx", l->out);
    if (!l->command) l->command = own_command;
    reducer r = {.l = l, .g = g, .path = path.p, .nnode = g->nnode, .nleft = g->nnode, .best.mem = mem};
    r.cut = rl_new(mem, rl_cut, g->nnode + 1);
    r.try = rl_new(mem, rl_cut, g->nnode + 1);
    rl_status s = first_run(&r);
    if (s == RL_OK) s = search(&r);
    unlink(r.path);
    return s == RL_OK ? report(&r) : s;
}

rl_status rl_cmd_reduce(rl_line *l) {
    rl_graph *g;
    rl_arena mem;
    if (!l->out) return rl_usage_error(l, "reduce: where does the small model go? -o OUT");
    if (rl_is_text(l->in)) return rl_usage_error(l, "reduce wants an .onnx file");
    if (rl_is_open(l->out)) return rl_usage_error(l, "reduce -o %s: models that are tried go beside it, so it wants a file", l->out);
    RL_TRY(rl_line_wants_file(l, "reduce"));
    rl_arena_init(&mem, l->ctx);
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = reduce(l, g, &mem);
    rl_graph_free(g);
    rl_arena_free(&mem);
    return s;
}
