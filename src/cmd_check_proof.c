/* The command check-proof. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cert.h"
#include "cmd.h"

/* The lines of a certificate that state the problem: those before anything is chosen or kept. */
static size_t problem_size(const char *s, size_t n) {
    static const char *const behind[] = {"choose ", "keep ", "fold ", "component ", "outside "};
    for (const char *p = s; p < s + n;) {
        for (size_t i = 0; i < RL_LEN(behind); i++)
            if (strncmp(p, behind[i], strlen(behind[i])) == 0) return (size_t)(p - s);
        const char *end = memchr(p, '\n', (size_t)(s + n - p));
        p = end ? end + 1 : s + n;
    }
    return n;
}

static rl_status same_problem(const rl_line *l, const rl_text *file, const rl_text *model, uint32_t noutside) {
    size_t n = problem_size(file->p, file->n), m = problem_size(model->p, model->n), same = 0, row = 1;
    char outside[32];
    while (same < n && same < m && file->p[same] == model->p[same]) row += file->p[same++] == '\n';
    snprintf(outside, sizeof outside, "outside %" PRIu32 "\n", noutside);
    if (same == n && same == m && strncmp(model->p + m, outside, strlen(outside)) == 0) return RL_OK;
    return rl_fail(l->ctx, RL_EPROOF, "%s:%zu: this is not the problem of %s (or of another --target, --dim or --input-shape)", l->proof, row, l->in);
}

/* Transposes of the model that move data. */
static rl_status count_moving(rl_line *l, rl_graph *g, int64_t *n) {
    rl_outcome o;
    RL_TRY(rl_run_passes(g, "", &l->pass, &o));
    rl_stats s;
    rl_stats_of(g, &s);
    *n = s.moving;
    return RL_OK;
}

static rl_status print_shown(rl_ctx *ctx, const rl_cert *c) {
    rl_cert_shown x;
    if (RL_PROTECT(ctx)) return RL_ENOMEM; /* the passes' own has ended with them */
    rl_cert_show(ctx, c, &x);
    bool least = c->bytes_first ? c->cost.bytes == c->bound.bytes : c->cost.count == c->bound.count;
    if (least) printf("proved: %" PRId64 " conversions, %" PRId64 " bytes, none fewer\n", c->cost.count, c->cost.bytes);
    else if (x.quick && !x.open)
        printf("proved: %" PRId64 " conversions: %" PRId64 " where none has fewer, %" PRId64 " where none that has no more is clearly quicker\n",
               c->cost.count, x.fewest, x.quick);
    else printf("a gap: %" PRId64 " conversions, %" PRId64 " bytes; at least %" PRId64 ", %" PRId64 "\n", c->cost.count, c->cost.bytes, c->bound.count, c->bound.bytes);
    bool priced = false;
    for (uint32_t k = 0; c->time && k < c->time->npart; k++) priced |= c->time->part[k].price > 0;
    if (c->time && !priced && c->time->cost.count == c->time->bound.count) printf("proved: the time by the target's table, none less\n");
    return RL_OK;
}

static rl_status check_cert(rl_line *l, rl_graph *in, rl_graph *out, const rl_text *file, rl_arena *mem) {
    enum { MOSTSTATES = 1 << 20 };
    rl_cert c;
    int64_t moving = 0;
    rl_text problem = {.mem = mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    RL_TRY(rl_cert_parse(l->ctx, mem, l->proof, file->p, file->n, &c));
    RL_TRY(rl_cert_check(l->ctx, &c, MOSTSTATES, 10 * RL_CERT_SECOND));
    RL_TRY(rl_restate(in, &l->pass, c.bytes_first, c.rate > 0, &problem));
    RL_TRY(same_problem(l, file, &problem, c.noutside));
    RL_TRY(count_moving(l, out, &moving));
    if (moving > c.cost.count + c.noutside)
        return rl_fail(l->ctx, RL_EPROOF, "%s: %" PRId64 " Transposes move data, the certificate allows %" PRId64, l->file[2], moving, c.cost.count + c.noutside);
    return print_shown(l->ctx, &c);
}

static rl_status check_models(rl_line *l, const rl_text *file, rl_arena *mem) {
    rl_graph *in, *out = NULL;
    if (l->nfile != 3) return rl_usage_error("check-proof: which model came out?");
    l->in = l->file[1];
    rl_status s = rl_line_read(l, &in);
    if (s == RL_OK) s = rl_line_read_other(l, l->file[2], &out);
    if (s == RL_OK) s = check_cert(l, in, out, file, mem);
    rl_graph_free(in);
    rl_graph_free(out);
    return s;
}

static rl_status read_proof(rl_line *l, rl_text *t) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    return rl_file_read(l->proof, t);
}

rl_status rl_cmd_check_proof(rl_line *l) {
    rl_arena mem;
    rl_arena_init(&mem, l->ctx);
    rl_text file = {.mem = &mem};
    l->proof = l->file[0];
    rl_status s = read_proof(l, &file);
    if (s == RL_OK) s = rl_is_plan_cert(&file) ? rl_check_plan_cert(l, &file, &mem) : check_models(l, &file, &mem);
    rl_arena_free(&mem);
    return s;
}
