/* Runs one pass by its name.
 *
 * No pass prints, times, verifies or disables itself: it is done here, for all.  The plan (legal .. lower) is one thought in four
 * parts: its passes share the scratch arena, and disabling one of them disables all four, as none means anything without
 * the others. */
#include "run_pass.h"

#include <string.h>

#include "../src/text.h"
#include "../src/verify.h"

typedef struct { const char *name; rl_status (*run)(rl_pass_run *r); } pass;
static const pass passes[] = {
#define PASS(name, summary) {#name, rl_pass_##name},
#include "passes.def"
#undef PASS
};

static bool is_word(const char *s, size_t n, const char *word) {
    return strlen(word) == n && rl_same_bytes(s, word, n);
}

static const pass *find_pass(const char *s, size_t n) {
    for (size_t i = 0; i < RL_LEN(passes); i++)
        if (is_word(s, n, passes[i].name)) return &passes[i];
    return NULL;
}

/* Is word one of a comma-separated list? */
bool rl_is_listed(const char *list, const char *word) {
    for (const char *s = list ? list : ""; *s;) {
        size_t n = strcspn(s, ",");
        if (is_word(s, n, word)) return true;
        s += n + (s[n] == ',');
    }
    return false;
}

rl_status rl_pass_check_names(rl_ctx *ctx, const char *list) {
    for (const char *s = list ? list : ""; *s;) {
        size_t n = strcspn(s, ",");
        if (!find_pass(s, n)) return rl_fail(ctx, RL_EUSAGE, "no pass '%.*s'; see relayout passes", (int)RL_MIN(n, 64u), s);
        s += n + (s[n] == ',');
    }
    return RL_OK;
}

static bool of_plan(const char *name) {
    return rl_is_listed("legal,assign,prove,pick,insert,lower", name);
}

bool rl_pass_disabled(const rl_passopt *o, const char *name) {
    if (rl_is_listed(o->disable, name) || (strcmp(name, "pick") == 0 && rl_is_listed(o->disable, "movement"))) return true;
    if (!of_plan(name)) return false;
    return rl_is_listed(o->disable, "legal") || rl_is_listed(o->disable, "assign") || rl_is_listed(o->disable, "insert") || rl_is_listed(o->disable, "lower");
}

void rl_pass_took(rl_outcome *out, const char *name, double since) {
    for (uint32_t i = 0; i < out->ntime; i++)
        if (strcmp(out->time[i].pass, name) == 0) {
            out->time[i].seconds += rl_seconds() - since;
            return;
        }
    if (out->ntime == RL_LEN(out->time)) return;
    out->time[out->ntime].pass = name;
    out->time[out->ntime++].seconds = rl_seconds() - since;
}

static void print_graph(const rl_pass_run *r) {
    rl_text t = {.mem = r->tmp};
    rl_text_print(r->g, false, &t);
    if (r->opt->print) r->opt->print(r->opt->user, t.p, t.n);
}

rl_status rl_pass_verify(const rl_pass_run *r, const char *name) {
    rl_status s = rl_verify(r->g);
    if (s == RL_OK) return RL_OK;
    char message[sizeof r->g->ctx->error];
    memcpy(message, r->g->ctx->error, sizeof message);
    return rl_fail(r->g->ctx, s, "after pass %s: %s", name, message);
}

rl_status rl_run_pass(rl_pass_run *r, const char *name) {
    const pass *p = find_pass(name, strcspn(name, ","));
    double start = rl_seconds();
    RL_TRY(rl_begin(r->g->ctx, p->name));
    if (of_plan(p->name) && strcmp(p->name, "legal") != 0 && !r->plan)
        return rl_fail(r->g->ctx, RL_EUSAGE, "pass %s runs only after legal", p->name);
    RL_TRY(p->run(r));
    rl_pass_took(r->out, p->name, start);
    rl_log(r->g->ctx, RL_LOG_DEBUG, "%s: %.6f s, %u nodes", p->name, rl_seconds() - start, r->g->order.n);
    if (r->opt->print_after && strcmp(r->opt->print_after, p->name) == 0) print_graph(r);
    if (r->opt->verify_each && !r->gave_up) RL_TRY(rl_pass_verify(r, p->name));
    if (!r->plan || !of_plan(p->name) || strcmp(p->name, "lower") == 0) {
        r->plan = NULL;
        rl_arena_free(r->tmp);
    }
    return RL_OK;
}

rl_status rl_pass_infer(rl_pass_run *r) {
    double start = rl_seconds();
    RL_TRY(rl_begin(r->g->ctx, "shapes"));
    RL_TRY(rl_alike_infer(r->g, r->tmp));
    rl_pass_took(r->out, "shapes", start);
    if (r->opt->print_after && strcmp(r->opt->print_after, "shapes") == 0) print_graph(r);
    return r->opt->verify_each ? rl_pass_verify(r, "shapes") : RL_OK;
}
