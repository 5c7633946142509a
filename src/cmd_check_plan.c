/* The command check-proof for the certificate of a plan (profile --proof): it holds, its choice is the plan of the model's metadata, and its ops
 * and values are the model's. */
#include <stdio.h>
#include <string.h>

#include "../runtime/native_cert.h"
#include "cmd.h"

bool rl_is_plan_cert(const rl_text *t) {
    return t->n >= strlen(RL_PLAN_CERT_HEAD) && rl_same_bytes(t->p, RL_PLAN_CERT_HEAD, strlen(RL_PLAN_CERT_HEAD));
}

/* Without what stands behind "#": names of outputs. */
static void put_bare(rl_span plan, rl_text *t) {
    const char *s = (const char *)plan.p, *end = s + plan.n;
    while (s < end) {
        const char *nl = memchr(s, '\n', (size_t)(end - s)), *to = nl ? nl : end, *from = s;
        while (s < to && !(*s == ' ' && s + 1 < to && s[1] == '#')) s++;
        rl_put_bytes(t, from, (size_t)(s - from));
        if (nl) rl_put(t, "\n");
        s = nl ? nl + 1 : end;
    }
}

/* The plan of --plan, or the model's. */
static rl_status same_plan(const rl_graph *g, const rl_runopt *o, const rl_plan_cert *c) {
    rl_text mine = {.mem = &g->ctx->mem}, theirs = {.mem = &g->ctx->mem};
    rl_span plan = o->plan.p ? o->plan : rl_native_text(g, o->device);
    if (!plan.p) return rl_fail(g->ctx, RL_EPROOF, "the model has no plan (profile leaves out one that is slower than none; --plan FILE names it)");
    rl_plan_cert_plan(c, &mine);
    put_bare(plan, &theirs);
    bool same = mine.n == theirs.n && rl_same_bytes(mine.p, theirs.p, mine.n);
    return same ? RL_OK : rl_fail(g->ctx, RL_EPROOF, o->plan.p ? "the certificate's choice is not the plan" : "the certificate's choice is not the model's plan");
}

static rl_status fits_model(rl_rt *rt, rl_graph *g, const rl_runopt *o, void *arg) {
    rl_exec *x;
    (void)o;
    if (!rt->fast && !rt->device) {
        rl_log(rt->ctx, RL_LOG_WARNING, "oneDNN is not found: whether the ops are the model's is not checked");
        return RL_OK;
    }
    rt->no_plan = rt->no_homes = true;
    RL_TRY(rl_exec_new(rt, g, &x));
    return rl_plan_cert_fits(arg, x);
}

static rl_status check_plan(rl_line *l, rl_graph *g, const rl_text *file, rl_arena *mem, rl_plan_cert *c) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    RL_TRY(rl_plan_cert_parse(l->ctx, mem, file->p, file->n, c));
    RL_TRY(rl_plan_cert_check(l->ctx, c));
    return same_plan(g, &l->run, c);
}

rl_status rl_check_plan_cert(rl_line *l, const rl_text *file, rl_arena *mem) {
    rl_graph *g;
    rl_plan_cert c = {0};
    if (l->nfile != 2) return rl_usage_error(l, "check-proof: the certificate of a plan is checked with one model, the one that has the plan");
    l->in = l->file[1];
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = rl_line_read_plan(l, mem);
    if (s == RL_OK) s = check_plan(l, g, file, mem, &c);
    if (s == RL_OK) s = rl_with_rt(g, &l->run, true, fits_model, &c);
    if (s == RL_OK) printf("proved: %lld ns, and no choice of layouts takes less by these costs\n", (long long)c.claim);
    rl_graph_free(g);
    return s;
}
