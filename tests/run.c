/* Runs text cases: a graph, the passes to run on it, and the graph that must come out.
 *
 *   run [--update] [-v] FILE-OR-FOLDER...       folders: every .rlt below them
 *
 * cases.h says what a case is made of.  Asserted of every case without being asked: what is printed reads as the same text, before
 * the passes, after each, and at the end; the graph is well-formed after each pass; the whole pipeline run on its own result changes
 * nothing.
 * --update writes what came out over what was expected (or adds it where nothing is). */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../passes/pass.h"
#include "../src/stats.h"
#include "../src/text.h"
#include "cases.h"

/* What became of one input. */
typedef struct {
    rl_status status;
    const char *canonical, *named, *error;
    rl_stats before, after;
    rl_outcome outcome;
} result;

typedef struct { const char *path; bool update, verbose; uint32_t passed, failed, skipped; } runner;
typedef struct { char *p; size_t n, cap; } buffer;

static void add(buffer *b, const char *s, size_t n) {
    if (b->n + n + 1 > b->cap) {
        b->cap = (b->n + n + 1) * 2;
        b->p = realloc(b->p, b->cap);
        if (!b->p) abort();
    }
    memcpy(b->p + b->n, s, n);
    b->n += n;
    b->p[b->n] = 0;
}

static bool read_file(const char *path, buffer *b) {
    char piece[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    add(b, "", 0);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) add(b, piece, n);
    bool ok = !ferror(f);
    fclose(f);
    return ok;
}

/* ---- running ---- */

static char *copy_span(rl_ctx *ctx, span s) {
    char *p = rl_new(&ctx->mem, char, s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

static rl_status parse(rl_ctx *ctx, const char *s, size_t n, rl_graph **g) {
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    return rl_text_parse(ctx, "input", s, n, g);
}

static const char *print(const rl_graph *g, bool canonical) {
    if (RL_PROTECT(g->ctx)) return "out of memory";
    rl_text t = {.mem = &g->ctx->mem};
    rl_text_print(g, canonical, &t);
    return t.p;
}

static bool is_all(const testcase *c) {
    return c->pass.n == 3 && memcmp(c->pass.p, "all", 3) == 0;
}

static void keep_dump(void *user, const char *text, size_t n) {
    add(user, text, n);
}

/* after, if not NULL: a pass after which the graph is printed to dump. */
static rl_status run_passes(rl_graph *g, const testcase *c, const char *after, buffer *dump, rl_outcome *out) {
    rl_ctx *ctx = g->ctx;
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    rl_passopt o = {.target = c->target.n ? copy_span(ctx, c->target) : "generic",
                    .objective = c->objective.n ? copy_span(ctx, c->objective) : "nodes",
                    .time_limit = c->time.n ? atof(copy_span(ctx, c->time)) : 30,
                    .verify_each = true,
                    .print_after = after,
                    .print = keep_dump,
                    .user = dump,
                    .disable = c->disable.n ? copy_span(ctx, c->disable) : NULL};
    if (!c->pass.n) return RL_OK;
    return is_all(c) ? rl_optimize(g, &o, out) : rl_run_passes(g, copy_span(ctx, c->pass), &o, out);
}

/* Printed text reads as the same text, and as the same graph. NULL: yes. */
static const char *check_fixpoint(const rl_graph *g) {
    const char *named = print(g, false), *canonical = print(g, true);
    rl_graph *h;
    if (parse(g->ctx, named, strlen(named), &h) != RL_OK) return "the printed graph does not read";
    bool same = strcmp(print(h, false), named) == 0, equal = strcmp(print(h, true), canonical) == 0;
    rl_graph_free(h);
    return !same ? "the printed graph reads as another text" : !equal ? "the printed graph reads as another graph" : NULL;
}

static void set_error(rl_ctx *ctx, result *r, rl_status s, const char *message) {
    r->status = s;
    r->error = rl_copy(&ctx->mem, message, strlen(message) + 1);
}

/* What a pass printed reads as the same text. NULL: yes. */
static const char *check_dump(rl_ctx *ctx, const buffer *dump) {
    rl_graph *g;
    if (parse(ctx, dump->p, dump->n, &g) != RL_OK) return "does not read";
    bool same = strcmp(print(g, false), dump->p) == 0;
    rl_graph_free(g);
    return same ? NULL : "reads as another text";
}

/* Runs the passes up to `after` on the input; NULL, or what is wrong with what is printed then. */
static const char *check_after(rl_ctx *ctx, const testcase *c, range in, const char *after) {
    rl_graph *g;
    rl_outcome out = {0};
    buffer dump = {0};
    if (parse(ctx, in.from, (size_t)(in.to - in.from), &g) != RL_OK) return NULL;
    rl_status s = run_passes(g, c, after, &dump, &out);
    bool gave_up = is_all(c) && out.improved && !out.changed; /* half-written: nobody sees it */
    const char *bad = s == RL_OK && dump.p && !gave_up ? check_dump(ctx, &dump) : NULL;
    free(dump.p);
    rl_graph_free(g);
    return bad;
}

static void check_dumps(rl_ctx *ctx, const testcase *c, range in, result *r) {
    static const char *const names[] = {
#define PASS(name, summary) #name,
#include "../passes/passes.def"
#undef PASS
    };
    char message[128];
    for (size_t i = 0; i < RL_LEN(names) && r->status == RL_OK && c->pass.n; i++) {
        const char *bad = check_after(ctx, c, in, names[i]);
        if (!bad) continue;
        snprintf(message, sizeof message, "the graph printed after %s %s", names[i], bad);
        set_error(ctx, r, RL_EINTERNAL, message);
    }
}

/* What the pipeline made of g; an unchanged model is its input. */
static void run_graph(rl_graph *g, const testcase *c, result *r) {
    const char *named = print(g, false), *canonical = print(g, true), *bad = check_fixpoint(g);
    rl_stats_of(g, &r->before);
    r->status = bad ? RL_EINTERNAL : run_passes(g, c, NULL, NULL, &r->outcome);
    if (r->status != RL_OK) {
        set_error(g->ctx, r, r->status, bad ? bad : g->ctx->error);
        return;
    }
    bool kept = is_all(c) && !r->outcome.changed;
    r->named = kept ? named : print(g, false);
    r->canonical = kept ? canonical : print(g, true);
    r->after = r->before;
    if (!kept) rl_stats_of(g, &r->after);
    if (!kept && (bad = check_fixpoint(g)) != NULL) set_error(g->ctx, r, RL_EINTERNAL, bad);
}

static void check_settled(rl_ctx *ctx, const testcase *c, result *r) {
    rl_graph *g;
    rl_outcome out = {0};
    if (parse(ctx, r->named, strlen(r->named), &g) != RL_OK) return;
    if (run_passes(g, c, NULL, NULL, &out) != RL_OK) set_error(ctx, r, RL_EINTERNAL, ctx->error);
    else if (out.changed) set_error(ctx, r, RL_EINTERNAL, "the pipeline changes its own result");
    rl_graph_free(g);
}

static result run_input(rl_ctx *ctx, const testcase *c, range in) {
    result r = {0};
    rl_graph *g;
    rl_status s = parse(ctx, in.from, (size_t)(in.to - in.from), &g);
    if (s != RL_OK) {
        set_error(ctx, &r, s, ctx->error);
        return r;
    }
    run_graph(g, c, &r);
    rl_graph_free(g);
    if (r.status == RL_OK && is_all(c)) check_settled(ctx, c, &r);
    check_dumps(ctx, c, in, &r);
    return r;
}

/* ---- sections made from results ---- */

static int64_t field(const rl_stats *s, const char *name, size_t n, bool *known) {
    *known = true;
#define X(f, title)                                                                                                  \
    if (strlen(#f) == n && memcmp(#f, name, n) == 0) return s->f;
    RL_STATS_FIELDS(X)
    RL_STATS_BYTES(X)
#undef X
    *known = false;
    return 0;
}

/* The stats line with the numbers that came out, for the fields that the case names. */
static void make_stats(const char *line, const result *r, buffer *out) {
    char item[128];
    bool known;
    span rest = {0};
    take_key(line, "stats", &rest);
    add(out, "stats: ", 7);
    for (const char *s = rest.p, *end = rest.p + rest.n; s < end;) {
        size_t n = strcspn(s, " ,\r\n");
        int64_t before = field(&r->before, s, n, &known), after = field(&r->after, s, n, &known);
        int k = known ? snprintf(item, sizeof item, "%.*s %lld -> %lld", (int)n, s, (long long)before, (long long)after)
                      : snprintf(item, sizeof item, "(no field %.*s)", (int)RL_MIN(n, 80), s);
        add(out, item, (size_t)k);
        s += strcspn(s, ",\r\n");
        if (s >= end) break;
        s += 1 + strspn(s + 1, " ");
        add(out, ", ", 2);
    }
    add(out, "\n", 1);
}

static void make_proof(const result *r, buffer *out) {
    char s[160];
    const rl_outcome *o = &r->outcome;
    int n = snprintf(s, sizeof s, "proof: conversions %lld -> %lld, bound %lld%s\n", (long long)o->conv_before, (long long)o->conv_after,
                     (long long)o->conv_bound, o->proved == RL_PROVED_OPTIMAL ? "" : ", not optimal");
    add(out, s, (size_t)n);
}

static void make_error(const result *r, buffer *out) {
    add(out, "error: ", 7);
    add(out, r->error, strlen(r->error));
    add(out, "\n", 1);
}

/* ---- comparing ---- */

static size_t trimmed(const char *s, size_t n) {
    while (n && (s[n - 1] == '\n' || s[n - 1] == ' ' || s[n - 1] == '\r')) n--;
    return n;
}

static bool same_text(range want, const buffer *got) {
    size_t n = trimmed(want.from, (size_t)(want.to - want.from)), m = trimmed(got->p, got->n);
    return n == m && memcmp(want.from, got->p, n) == 0;
}

static void print_lines(char sign, const char *from, const char *to) {
    while (from < to) {
        size_t n = RL_MIN(strcspn(from, "\n"), (size_t)(to - from));
        printf("  %c %.*s\n", sign, (int)n, from);
        from += n + 1;
    }
}

/* The lines between what both have at the start and at the end. */
static void print_diff(const char *a, size_t na, const char *b, size_t nb) {
    size_t i = 0, k = 0;
    while (i < na && i < nb && a[i] == b[i]) i++;
    while (i && a[i - 1] != '\n') i--;
    while (k < na - i && k < nb - i && a[na - 1 - k] == b[nb - 1 - k]) k++;
    while (k && a[na - k - 1] != '\n') k--;
    print_lines('-', a + i, a + na - k);
    print_lines('+', b + i, b + nb - k);
}

static bool fail_case(const runner *u, const testcase *c, const char *why) {
    printf("%s:%u: %s\n", u->path, c->line, why);
    return false;
}

static bool check_section(const runner *u, const testcase *c, const char *name, range want, const buffer *got) {
    if (same_text(want, got)) return true;
    fail_case(u, c, name);
    print_diff(want.from, (size_t)(want.to - want.from), got->p, got->n);
    return false;
}

/* The canonical text of the expected graph, or the message that it does not read. */
static const char *expected_text(rl_ctx *ctx, range x, bool *reads) {
    rl_graph *g;
    *reads = parse(ctx, x.from, (size_t)(x.to - x.from), &g) == RL_OK;
    if (!*reads) return ctx->error;
    const char *s = print(g, true);
    rl_graph_free(g);
    return s;
}

static bool check_graph(const runner *u, rl_ctx *ctx, const testcase *c, const result *r) {
    bool reads;
    if (!c->expected.from) return fail_case(u, c, "no expected graph (--update adds it)");
    const char *want = expected_text(ctx, c->expected, &reads);
    if (reads && strcmp(want, r->canonical) == 0) return true;
    fail_case(u, c, reads ? "another graph came out:" : "the expected graph does not read:");
    if (reads) print_diff(want, strlen(want), r->canonical, strlen(r->canonical));
    else printf("%s\n", want);
    return false;
}

static bool check_error(const runner *u, const testcase *c, const result *r) {
    buffer got = {0};
    if (r->status == RL_OK) return fail_case(u, c, "no error came out");
    make_error(r, &got);
    bool ok = check_section(u, c, "another error came out:", c->error, &got);
    free(got.p);
    return ok;
}

static bool check_result(const runner *u, rl_ctx *ctx, const testcase *c, const result *r) {
    buffer stats = {0}, proof = {0};
    if (c->error.from) return check_error(u, c, r);
    if (r->status != RL_OK) {
        fail_case(u, c, "failed:");
        printf("%s\n", r->error);
        return false;
    }
    bool ok = check_graph(u, ctx, c, r);
    if (c->stats.from) make_stats(c->stats.from, r, &stats);
    make_proof(r, &proof);
    ok = (!c->stats.from || check_section(u, c, "other stats:", c->stats, &stats)) && ok;
    ok = (!c->proof.from || check_section(u, c, "another proof:", c->proof, &proof)) && ok;
    free(stats.p);
    free(proof.p);
    return ok;
}

/* ---- updating ---- */

static void add_text(buffer *out, const char *s) {
    add(out, s, strlen(s));
}

/* The case's text, with what came out in the place of what was expected. */
static void write_case(const char *start, const testcase *c, const result *r, buffer *out) {
    const range *last = &c->input[c->ninput ? c->ninput - 1 : 0];
    add(out, start, (size_t)((last->to ? last->to : c->end) - start));
    if (out->n && out->p[out->n - 1] != '\n') add_text(out, "\n");
    if (r->status != RL_OK) {
        make_error(r, out);
        return;
    }
    add_text(out, "----\n");
    add_text(out, r->named);
    if (c->stats.from) make_stats(c->stats.from, r, out);
    if (c->proof.from) make_proof(r, out);
}

static bool write_file(const char *path, const buffer *b) {
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool ok = fwrite(b->p, 1, b->n, f) == b->n;
    return fclose(f) == 0 && ok;
}

/* ---- files and folders ---- */

/* With --update a right case stays as it is written, and a wrong one says so once more by being rewritten. */
static bool run_case(const runner *u, const char *start, const testcase *c, buffer *out) {
    rl_ctx *ctx = rl_ctx_new(0);
    bool ok = ctx != NULL && c->ninput > 0 && c->ninput <= MAXINPUT;
    if (!ok) fail_case(u, c, "no graph, or more than 8");
    result first = {0};
    for (uint32_t i = 0; ok && i < c->ninput; i++) {
        result r = run_input(ctx, c, c->input[i]);
        if (i == 0) first = r;
        ok = check_result(u, ctx, c, &r);
    }
    if (!ok && (first.named || first.error)) write_case(start, c, &first, out);
    else add(out, start, (size_t)(c->end - start));
    rl_ctx_free(ctx);
    return ok;
}

static void count_case(runner *u, const char *start, const testcase *c, buffer *out) {
    if (c->skip.n) {
        u->skipped++;
        add(out, start, (size_t)(c->end - start));
    } else if (run_case(u, start, c, out)) {
        u->passed++;
    } else {
        u->failed++;
    }
    if (u->verbose) printf("%s:%u: done\n", u->path, c->line);
}

static void run_file(runner *u, const char *path) {
    buffer text = {0}, out = {0};
    u->path = path;
    if (!read_file(path, &text)) {
        printf("%s: %s\n", path, strerror(errno));
        u->failed++;
        return;
    }
    uint32_t line = 1;
    for (const char *s = text.p, *next; *s; s = next) {
        testcase c = {.line = line};
        next = read_case(s, &c);
        for (const char *k = s; k < next; k++) line += *k == '\n';
        count_case(u, s, &c, &out);
        if (u->update) add(&out, c.end, (size_t)(next - c.end));
    }
    if (u->update && (out.n != text.n || memcmp(out.p, text.p, out.n) != 0) && !write_file(path, &out))
        printf("%s: %s\n", path, strerror(errno));
    free(text.p);
    free(out.p);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* A folder's cases in the order of their names; files as they are. */
static void run_path(runner *u, const char *path) {
    struct dirent **entry;
    int n = scandir(path, &entry, NULL, by_name);
    if (n < 0) {
        run_file(u, path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char sub[4096];
        const char *name = entry[i]->d_name;
        snprintf(sub, sizeof sub, "%s/%s", path, name);
        DIR *d = name[0] == '.' ? NULL : opendir(sub);
        if (d) closedir(d);
        if (d || (name[0] != '.' && ends_with(name, ".rlt"))) run_path(u, sub);
        free(entry[i]);
    }
    free(entry);
}

int main(int argc, char **argv) {
    runner u = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--update") == 0) u.update = true;
        else if (strcmp(argv[i], "-v") == 0) u.verbose = true;
        else run_path(&u, argv[i]);
    }
    printf("%u passed, %u failed, %u skipped\n", u.passed, u.failed, u.skipped);
    return u.failed ? 1 : 0;
}
