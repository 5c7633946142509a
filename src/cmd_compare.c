/* The command compare: what the optimizers that are installed make of a model, beside this one.
 *
 * Each one's result is read back here, its Transposes are counted by the same code, and it is run on the same random inputs as the
 * model that it came from. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd_compare.h"

enum { MOSTDIR = 200 }; /* bytes of the folder that has that for results */

typedef struct {
    rl_line *l;
    rl_arena mem;      /* of what is said */
    char dir[MOSTDIR + sizeof "/relayout-XXXXXX"];
    rl_peers all;      /* the model as it is, relayout, the others */
    const char *why;   /* others were not asked */
    bool wrong;        /* relayout's own result differs */
} comparison;

/* ---- results ---- */

/* The message of a failure, without the path before it. */
static const char *reason(const comparison *c, const char *path) {
    const char *e = c->l->ctx->error;
    size_t n = strlen(path);
    return strncmp(e, path, n) == 0 && strncmp(e + n, ": ", 2) == 0 ? e + n + 2 : e;
}

static rl_status count_in(comparison *c, const char *path, rl_peer *p) {
    rl_graph *g;
    rl_outcome o;
    rl_stats s;
    rl_status status = rl_line_read_other(c->l, path, &g);
    if (status == RL_OK) status = rl_run_passes(g, "", &c->l->pass, &o);
    if (status == RL_OK) {
        rl_stats_of(g, &s);
        p->transposes = s.transposes;
        p->moving = s.moving;
        p->bytes = s.moved_bytes;
    }
    rl_graph_free(g);
    return status;
}

static rl_status run_both(comparison *c, const char *path) {
    rl_graph *a = NULL, *b = NULL;
    rl_arena tmp;
    rl_arena_init(&tmp, c->l->ctx);
    rl_text text = {.mem = &tmp};
    rl_status s = rl_line_read(c->l, &a);
    if (s == RL_OK) s = rl_line_read_other(c->l, path, &b);
    if (s == RL_OK) s = rl_verify_models(a, b, &c->l->run, &text);
    rl_graph_free(a);
    rl_graph_free(b);
    rl_arena_free(&tmp);
    return s;
}

/* Counts what a result has, and runs it: what goes wrong is what is said of it. */
static void look_at(comparison *c, rl_peer *p) {
    const char *in = c->l->in;
    rl_status s = count_in(c, p->model, p);
    c->l->in = in;
    if (s != RL_OK) snprintf(p->error, sizeof p->error, "its result cannot be read: %s", reason(c, p->model));
    if (c->l->no_run) p->outputs[0] = 0;
    if (s != RL_OK || c->l->no_run) return;
    s = run_both(c, p->model);
    c->l->in = in;
    if (s == RL_ELIMIT && *p->outputs) return; /* ops of its own: its runtime has said */
    if (s == RL_OK) snprintf(p->outputs, sizeof p->outputs, "same");
    else snprintf(p->outputs, sizeof p->outputs, "%s: %s", s == RL_EDIFFER ? "differ" : "not checked", reason(c, p->model));
}

static rl_status add_input(comparison *c) {
    rl_peer *p = &c->all.p[c->all.n++];
    *p = (rl_peer){.peer = "input", .label = "as it is", .seconds = -1};
    return count_in(c, c->l->in, p);
}

static void add_own(comparison *c, const char *target) {
    rl_line one = *c->l;
    rl_peer *p = &c->all.p[c->all.n++];
    *p = (rl_peer){.peer = "relayout", .version = RL_VERSION, .transposes = -1, .moving = -1, .bytes = -1};
    snprintf(p->label, sizeof p->label, "relayout, %s", target);
    snprintf(p->model, sizeof p->model, "%s/relayout%" PRIu32 ".onnx", c->dir, c->all.n);
    one.pass.target = target;
    one.out = p->model;
    one.json = NULL;
    one.quiet = true;
    double start = rl_seconds();
    rl_status s = rl_optimize_one(&one);
    p->seconds = rl_seconds() - start;
    if (s == RL_OK) look_at(c, p);
    else snprintf(p->error, sizeof p->error, "%s", reason(c, c->l->in));
    c->wrong |= strncmp(p->outputs, "differ", 6) == 0;
}

static rl_status add_all(comparison *c) {
    RL_TRY(add_input(c));
    if (!c->l->named_target) add_own(c, "generic");
    add_own(c, c->l->named_target ? c->l->pass.target : "onnx");
    uint32_t first = c->all.n;
    RL_TRY(rl_peers_run(c->l, c->dir, &c->all, &c->why));
    for (uint32_t i = first; i < c->all.n; i++) {
        rl_progress(c->l, c->all.p[i].label);
        if (*c->all.p[i].model) look_at(c, &c->all.p[i]);
    }
    return RL_OK;
}

/* ---- what is said ---- */

static void put_number(rl_text *t, int64_t x, int width) {
    if (x >= 0) rl_put(t, "  %*" PRId64, width, x);
    else rl_put(t, "  %*s", width, "-");
}

static void put_row(const rl_peer *p, bool paints, rl_text *t) {
    bool bad = *p->error || strncmp(p->outputs, "differ", 6) == 0;
    rl_put(t, "%-22s  %-9s", p->label, p->version);
    put_number(t, p->transposes, 10);
    put_number(t, p->moving, 10);
    put_number(t, p->bytes, 12);
    if (p->seconds >= 0) rl_put(t, "  %8.2f", p->seconds);
    else rl_put(t, "  %8s", "-");
    rl_put(t, "  %s%s%s\n", rl_paint(paints, bad ? RL_RED : RL_PLAIN), *p->error ? p->error : p->outputs, rl_paint(paints, RL_PLAIN));
}

static void put_table(const comparison *c, rl_text *t) {
    bool paints = rl_paints(c->l, stdout);
    rl_put(t, "%-22s  %-9s  %10s  %10s  %12s  %8s  %s\n", "", "version", "Transposes", "that move", "bytes moved", "seconds", "outputs");
    for (uint32_t i = 0; i < c->all.n; i++) put_row(&c->all.p[i], paints, t);
    if (c->why) rl_put(t, "%s\n", c->why);
}

static void put_json(const comparison *c, rl_text *t) {
    rl_put(t, "{\"schema\": \"relayout.compare/1\", \"input\": ");
    rl_report_string(t, c->l->in);
    rl_put(t, ", \"why_not_all\": ");
    rl_report_string(t, c->why);
    rl_put(t, ", \"optimizers\": [");
    for (uint32_t i = 0; i < c->all.n; i++) {
        const rl_peer *p = &c->all.p[i];
        const char *const text[][2] = {{"name", p->peer}, {"label", p->label}, {"version", p->version}, {"outputs", p->outputs}, {"error", p->error}};
        rl_put(t, "%s\n  {", i ? "," : "");
        for (size_t k = 0; k < RL_LEN(text); k++) {
            rl_put(t, "%s\"%s\": ", k ? ", " : "", text[k][0]);
            rl_report_string(t, *text[k][1] ? text[k][1] : NULL);
        }
        rl_put(t, ", \"transposes\": %" PRId64 ", \"moving\": %" PRId64 ", \"moved_bytes\": %" PRId64 ", \"seconds\": %.6f}", p->transposes,
               p->moving, p->bytes, p->seconds);
    }
    rl_put(t, "\n]}\n");
}

static rl_status report(comparison *c) {
    rl_text t = {.mem = &c->mem};
    if (RL_PROTECT(c->l->ctx)) return RL_ENOMEM;
    if (c->l->json) {
        put_json(c, &t);
        RL_TRY(rl_line_write(c->l, c->l->json, &t));
        if (rl_is_stdio(c->l->json)) return RL_OK;
    }
    t.n = 0;
    put_table(c, &t);
    return rl_write_stdout(c->l, t.p, t.n);
}

/* ---- the folder for results ---- */

static rl_status make_dir(comparison *c) {
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = "/tmp";
    if (strlen(base) > MOSTDIR) return rl_fail(c->l->ctx, RL_EIO, "TMPDIR is longer than %d bytes: %s", MOSTDIR, base);
    snprintf(c->dir, sizeof c->dir, "%s/relayout-XXXXXX", base);
    return mkdtemp(c->dir) ? RL_OK : rl_fail(c->l->ctx, RL_EIO, "%s: %s", c->dir, strerror(errno));
}

/* Optimizers write files there, no folders. */
static void drop_dir(const comparison *c) {
    char path[1024];
    DIR *d = opendir(c->dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", c->dir, e->d_name);
        unlink(path);
    }
    if (d) closedir(d);
    rmdir(c->dir);
}

/* The words of --peers are among those that there are. */
static rl_status check_peers(const rl_line *l) {
    static const char all[] = ", " RL_PEERS ",";
    for (const char *s = l->peers; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
        char word[64];
        int n = (int)strcspn(s, ",");
        snprintf(word, sizeof word, ", %.*s,", n, s);
        if (!n || n > 40 || !strstr(all, word)) return rl_usage_error(l, "compare: no optimizer '%.*s'; there are %s", n, s, RL_PEERS);
    }
    return RL_OK;
}

rl_status rl_cmd_compare(rl_line *l) {
    comparison c = {.l = l};
    RL_TRY(check_peers(l));
    RL_TRY(rl_line_wants_file(l, "compare"));
    if (rl_is_text(l->in)) return rl_usage_error(l, "compare: other optimizers read no .rlt");
    RL_TRY(rl_line_check_path(l, l->json));
    l->run.input = l->inputs.item;
    l->run.ninput = l->inputs.n;
    rl_arena_init(&c.mem, l->ctx);
    rl_status s = make_dir(&c);
    if (s == RL_OK) {
        s = add_all(&c);
        if (s == RL_OK) s = report(&c);
        drop_dir(&c);
    }
    rl_arena_free(&c.mem);
    return s == RL_OK && c.wrong ? RL_EDIFFER : s;
}
