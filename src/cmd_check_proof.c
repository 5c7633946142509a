/* The command check-proof. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cert.h"
#include "cmd.h"

/* Behind the first lines of the file, or behind those of the section before: one graph's lines, and the number of the first. */
typedef struct { const char *p, *end; size_t row; } section;

static bool starts(const char *p, const char *end, const char *word) {
    return (size_t)(end - p) >= strlen(word) && rl_same_bytes(p, word, strlen(word));
}

static const char *next_line(const char *p, const char *end) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    return newline ? newline + 1 : end;
}

/* The lines that state the problem: those before anything is chosen or kept. */
static size_t problem_size(const char *s, const char *end) {
    static const char *const behind[] = {"choose ", "keep ", "fold ", "component ", "outside "};
    for (const char *p = s; p < end; p = next_line(p, end))
        for (size_t i = 0; i < RL_LEN(behind); i++)
            if (starts(p, end, behind[i])) return (size_t)(p - s);
    return (size_t)(end - s);
}

/* To the section of the first function behind the present one. */
static void next_section(section *s) {
    while (s->p < s->end && !starts(s->p, s->end, "function ")) {
        s->p = next_line(s->p, s->end);
        s->row++;
    }
    s->p = next_line(s->p, s->end);
    s->row++;
}

static rl_status same_problem(const rl_line *l, const section *file, const rl_text *model, const rl_cert *c) {
    size_t n = problem_size(file->p, file->end), m = problem_size(model->p, model->p + model->n), same = 0, row = file->row;
    char outside[32];
    while (same < n && same < m && file->p[same] == model->p[same]) row += file->p[same++] == '\n';
    snprintf(outside, sizeof outside, "outside %" PRIu32 "\n", c->noutside);
    if (same == n && same == m && strncmp(model->p + m, outside, strlen(outside)) == 0) return RL_OK;
    return rl_fail(l->ctx, RL_EPROOF, "%s:%zu: this is not the problem of %s (or of another --target, --dim or --input-shape)", l->proof, row, l->in);
}

/* The problem of the main graph and of each function in the file. */
static rl_status same_problems(const rl_line *l, const rl_text *file, const rl_text *model, const rl_cert *c) {
    section s = {file->p, file->p + file->n, 3};
    for (uint32_t i = 0; i < 2; i++) s.p = next_line(s.p, s.end); /* version, objective */
    RL_TRY(same_problem(l, &s, &model[0], c));
    for (uint32_t i = 0; i < c->nfunction; i++) {
        next_section(&s);
        RL_TRY(same_problem(l, &s, &model[1 + i], c->function[i].cert));
    }
    return RL_OK;
}

/* No more Transposes that move data than the certificate says; for a target that charges two steps count as one. name: of the function, or NULL.
 * Adds to *outside how many of them may be outside of the claim. */
static rl_status check_moving(const rl_line *l, bool charges, const rl_graph *out, const rl_cert *c, const char *name, int64_t *outside) {
    rl_stats s;
    rl_stats_of(out, &s);
    int64_t n = rl_stats_conversions(&s), allowed = rl_add(c->cost.count, c->noutside);
    *outside += RL_MIN(n, (int64_t)c->noutside);
    if (n - (charges ? rl_stats_steps(out) : 0) <= allowed) return RL_OK;
    return rl_fail(l->ctx, RL_EPROOF, "%s: %s%.100s%s%" PRId64 " Transposes move data, the certificate allows %" PRId64, l->file[2],
                   name ? "function '" : "", name ? name : "", name ? "': " : "", n, allowed);
}

/* Each function of the file is one of both models; of what is not in the file nothing was written anew. */
static rl_status match_functions(const rl_line *l, const rl_graph *in, const rl_graph *out, const rl_cert *c) {
    if (in->function.n != out->function.n)
        return rl_fail(l->ctx, RL_EPROOF, "%s: %" PRIu32 " functions, %s has %" PRIu32, l->file[2], out->function.n, l->in, in->function.n);
    for (uint32_t k = 0, i = 0; k < in->function.n; k++) {
        const rl_graph *a = in->function.p[k], *b = out->function.p[k];
        const rl_cert_function *f = i < c->nfunction && c->function[i].index == k ? &c->function[i++] : NULL;
        if (!f && (!a || !b)) continue; /* it cannot be read, so all stay as they are */
        if (!a || !b || a->name != b->name || a->domain != b->domain || (f && (strcmp(a->name, f->name) != 0 || strcmp(a->domain, f->domain) != 0)))
            return rl_fail(l->ctx, RL_EPROOF, "%s: function %" PRIu32 " is another one in %s or in the certificate", l->file[2], k, l->in);
        rl_span x = rl_onnx_bytes(a), y = rl_onnx_bytes(b);
        if (!f && (x.n != y.n || !rl_same_bytes(x.p, y.p, x.n)))
            return rl_fail(l->ctx, RL_EPROOF, "%s: function '%.100s' is not as it was, and the certificate says nothing of it", l->file[2], a->name);
    }
    if (c->nfunction && c->function[c->nfunction - 1].index >= in->function.n)
        return rl_fail(l->ctx, RL_EPROOF, "%s: there is no function %" PRIu32 " in %s", l->proof, c->function[c->nfunction - 1].index, l->in);
    return RL_OK;
}

/* What is shown of the main graph and of all functions, each once. */
typedef struct { rl_cert_shown shown; rl_cert_cost cost, bound; bool least, quickest; } sums;

static void add_shown(rl_ctx *ctx, const rl_cert *c, sums *s) {
    rl_cert_shown x;
    rl_cert_show(ctx, c, &x);
    rl_cert_show_add(&s->shown, &x);
    s->cost = (rl_cert_cost){rl_add(s->cost.count, c->cost.count), rl_add(s->cost.bytes, c->cost.bytes)};
    s->bound = (rl_cert_cost){rl_add(s->bound.count, c->bound.count), rl_add(s->bound.bytes, c->bound.bytes)};
    s->least &= c->bytes_first ? c->cost.bytes == c->bound.bytes : c->cost.count == c->bound.count;
    s->quickest &= c->time && c->time->cost.count == c->time->bound.count;
    for (uint32_t k = 0; c->time && k < c->time->npart; k++) s->quickest &= c->time->part[k].price == 0;
}

static rl_status print_shown(rl_ctx *ctx, const rl_cert *c, int64_t outside) {
    sums s = {.least = true, .quickest = true};
    if (RL_PROTECT(ctx)) return RL_ENOMEM; /* the passes' own has ended with them */
    add_shown(ctx, c, &s);
    for (uint32_t i = 0; i < c->nfunction; i++) add_shown(ctx, c->function[i].cert, &s);
    char more[64] = "";
    if (outside) snprintf(more, sizeof more, "; Transposes outside of the claim: %" PRId64, outside);
    if (s.cost.count == s.bound.count && s.cost.bytes == s.bound.bytes)
        printf("proved: %" PRId64 " conversion%s, %" PRId64 " bytes, none fewer%s\n", s.cost.count, rl_plural(s.cost.count), s.cost.bytes, more);
    else if (s.least && c->bytes_first)
        printf("proved: %" PRId64 " bytes, none fewer; %" PRId64 " conversion%s, at least %" PRId64 "%s\n", s.cost.bytes, s.cost.count, rl_plural(s.cost.count), s.bound.count, more);
    else if (s.least)
        printf("proved: %" PRId64 " conversion%s, none fewer; %" PRId64 " bytes, at least %" PRId64 "%s\n", s.cost.count, rl_plural(s.cost.count), s.cost.bytes, s.bound.bytes, more);
    else if (s.shown.quick && !s.shown.open)
        printf("proved: %" PRId64 " conversion%s: %" PRId64 " where none has fewer, %" PRId64 " where none that has no more is clearly quicker%s\n",
               s.cost.count, rl_plural(s.cost.count), s.shown.fewest, s.shown.quick, more);
    else
        printf("a gap: %" PRId64 " conversion%s, %" PRId64 " bytes; at least %" PRId64 ", %" PRId64 "%s\n", s.cost.count, rl_plural(s.cost.count), s.cost.bytes, s.bound.count,
               s.bound.bytes, more);
    if (s.shown.takes)
        printf("by the target's table %" PRId64 " ns where %" PRId64 " conversion%s open; at least %" PRId64 "\n", s.shown.takes, s.shown.open, s.shown.open == 1 ? " is" : "s are", s.shown.at_least);
    if (s.quickest) printf("proved: the time by the target's table, none less\n");
    return RL_OK;
}

/* declared: IN as it was read, whose sizes are those that its file has. */
static rl_status check_cert(rl_line *l, const rl_graph *declared, rl_graph *in, rl_graph *out, const rl_text *file, rl_arena *mem) {
    enum { MOSTSTATES = 1 << 20 };
    rl_cert c;
    int64_t outside = 0;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    RL_TRY(rl_cert_parse(l->ctx, mem, l->proof, file->p, file->n, &c));
    RL_TRY(rl_cert_check(l->ctx, &c, MOSTSTATES, 10 * RL_CERT_SECOND, NULL));
    RL_TRY(rl_check_ports(l, declared, out));
    RL_TRY(match_functions(l, in, out, &c));
    const rl_target *target;
    RL_TRY(rl_target_find(mem, l->pass.target ? l->pass.target : "generic", &target));
    bool charges = rl_target_charges(target);
    rl_text *problem = rl_new(mem, rl_text, (size_t)c.nfunction + 1);
    for (uint32_t i = 0; i <= c.nfunction; i++) problem[i].mem = mem;
    RL_TRY(rl_restate(in, out, &l->pass, &c, problem));
    RL_TRY(same_problems(l, file, problem, &c));
    RL_TRY(check_moving(l, charges, out, &c, NULL, &outside));
    for (uint32_t i = 0; i < c.nfunction; i++)
        RL_TRY(check_moving(l, charges, out->function.p[c.function[i].index], c.function[i].cert, c.function[i].name, &outside));
    return print_shown(l->ctx, &c, outside);
}

/* IN once more, with the interface that was asked for when OUT was made: the certificate is of that. */
static rl_status read_turned(rl_line *l, rl_graph **in) {
    for (uint32_t i = 0; i < l->io.port.n; i++)
        if (l->io.port.p[i].free)
            return rl_usage_error(l, "check-proof: in which order is '%.100s'? The report of optimize (--json) has what it chose", l->io.port.p[i].name);
    RL_TRY(rl_line_read(l, in));
    return rl_interface_apply(*in, &l->io);
}

static rl_status check_models(rl_line *l, const rl_text *file, rl_arena *mem) {
    rl_graph *in, *turned = NULL, *out = NULL;
    if (l->nfile != 3) return rl_usage_error(l, "check-proof: which model came out?");
    RL_TRY(rl_line_interface(l));
    l->in = l->file[1];
    rl_status s = rl_line_read(l, &in);
    if (s == RL_OK && l->io.port.n) s = read_turned(l, &turned);
    if (s == RL_OK) s = rl_line_read_other(l, l->file[2], &out);
    if (s == RL_OK) s = check_cert(l, in, turned ? turned : in, out, file, mem);
    rl_graph_free(in);
    rl_graph_free(turned);
    rl_graph_free(out);
    return s;
}

rl_status rl_cmd_check_proof(rl_line *l) {
    rl_arena mem;
    rl_arena_init(&mem, l->ctx);
    rl_text file = {.mem = &mem};
    rl_status s = rl_line_read_text(l, l->file[0], &file);
    l->proof = rl_is_stdio(l->file[0]) ? "stdin" : l->file[0];
    rl_arena_init(&l->io_mem, l->ctx);
    if (s == RL_OK) s = rl_is_plan_cert(&file) ? rl_check_plan_cert(l, &file, &mem) : check_models(l, &file, &mem);
    rl_arena_free(&l->io_mem);
    rl_arena_free(&mem);
    return s;
}
