/* See check.h. */
#include "check.h"

#include <inttypes.h>
#include <string.h>

#include "../src/fix.h"
#include "sizes.h"

enum { FIRST_SIZE = 2, SIZES = 6, LARGE_SIZE = 64, LARGE_STEP = 32, LARGE_SIZES = 3 };

/* What is tried, in this order, until the original runs; each fitted to the model (sizes.h). LARGE: where dims of values are not known; batches stay small. */
typedef enum { TRY_SMALL, TRY_ONES, TRY_LARGE, NTRY } attempt;

/* Is the symbol the first dim of each input that has it, as a batch is? */
static bool comes_first(const rl_graph *g, rl_str name) {
    for (uint32_t i = 0; i < g->input.n; i++) {
        const rl_valinfo *v = rl_val(g, g->input.p[i]);
        for (uint32_t k = 1; v->rank != RL_NORANK && k < v->rank; k++)
            if (rl_dim_name(g->ctx, v->dim[k]) == name) return false;
    }
    return true;
}

/* A size for each symbol of g's inputs, each another one where that fits. */
static rl_sizes choose_sizes(rl_graph *g, attempt how) {
    rl_sizes size = rl_sizes_of(g, &g->mem);
    for (uint32_t i = 0; i < size.n; i++)
        rl_sizes_set(&size, i, how == TRY_LARGE && !comes_first(g, size.name[i]) ? LARGE_SIZE + LARGE_STEP * (i % LARGE_SIZES) : FIRST_SIZE + i % SIZES);
    rl_sizes_fit(g, &size);
    return size;
}

/* "NAME=2,3,..." as rl_fix_shape takes it; false where a dim is no number and no symbol. */
static bool shape_text(const rl_graph *g, rl_value input, const rl_hash *size, rl_text *t) {
    const rl_valinfo *v = rl_val(g, input);
    rl_put(t, "%s=", v->name);
    for (uint32_t k = 0; k < v->rank; k++) {
        int64_t x;
        if (!rl_dim_eval(g->ctx, v->dim[k], size, &x)) return false;
        rl_put(t, "%s%" PRId64, k ? "," : "", x);
    }
    return true;
}

/* False: nothing to choose, or a size that does not follow from the symbols. */
static rl_status set_sizes(rl_graph *a, rl_graph *b, attempt how, bool *any) {
    if (RL_PROTECT(a->ctx)) return RL_ENOMEM;
    rl_sizes size = choose_sizes(a, how);
    *any = size.n > 0;
    rl_text *shape = rl_new(&a->mem, rl_text, a->input.n + 1);
    for (uint32_t i = 0; i < a->input.n && *any; i++) {
        shape[i].mem = &a->mem;
        if (rl_val(a, a->input.p[i])->rank != RL_NORANK) *any = shape_text(a, a->input.p[i], &size.value, &shape[i]);
    }
    for (uint32_t i = 0; i < a->input.n && *any; i++) {
        if (!shape[i].n) continue;
        RL_TRY(rl_fix_shape(a, shape[i].p));
        RL_TRY(rl_fix_shape(b, shape[i].p));
    }
    return RL_OK;
}

/* Does a value have no elements at these sizes? Symbols that have none are 1. */
static bool has_empty(const rl_graph *g) {
    for (uint32_t v = 0; v < g->nval; v++)
        for (uint32_t k = 0; g->val[v].rank != RL_NORANK && k < g->val[v].rank; k++)
            if (rl_dim_guess(g->ctx, g->val[v].dim[k], 1) == 0) return true;
    return false;
}

/* *again: nothing is known yet, and other sizes may help: also where the second alone stops at an empty value, which Reshapes before opset 14
 * cannot have at any place. */
static rl_status compare(const rl_checked *c, rl_graph *a, rl_graph *b, attempt how, rl_text *out, rl_verify_at *at, bool *again) {
    bool sized = how == TRY_ONES;
    *at = RL_AT_FIRST;
    rl_status s = sized ? RL_OK : set_sizes(a, b, how, &sized);
    if (s == RL_OK && sized) s = rl_verify_models_at(a, b, c->run, out, at);
    *again = !sized || (s != RL_OK && (*at == RL_AT_FIRST || (*at == RL_AT_SECOND && has_empty(a))));
    return s;
}

static rl_status explain(rl_ctx *ctx, rl_status s, rl_verify_at at) {
    char why[sizeof ctx->error];
    memcpy(why, ctx->error, sizeof why);
    switch (at) {
    case RL_AT_FIRST: return rl_fail(ctx, RL_ELIMIT, "not checked, and not written: the original cannot be run here: %.800s", why);
    case RL_AT_SECOND: return rl_fail(ctx, RL_EDIFFER, "not written: the original runs, the result does not: %.800s", why);
    case RL_AT_MEMORY: return rl_fail(ctx, RL_ENOMEM, "not checked, and not written: %.800s", why);
    default: return s == RL_EDIFFER ? rl_fail(ctx, s, "not written: the result differs from the original: %.800s", why) : s;
    }
}

static rl_status try_sizes(rl_ctx *ctx, const rl_checked *c, attempt how, rl_text *out, bool *again) {
    rl_graph *a = NULL, *b = NULL;
    rl_verify_at at = RL_AT_OUTPUTS;
    *again = false;
    rl_status s = c->original(c->user, &a);
    if (s == RL_OK) s = c->result(c->user, &b);
    if (s == RL_OK) s = compare(c, a, b, how, out, &at, again);
    if (s != RL_OK) s = explain(ctx, s, at);
    if (a) rl_graph_free(a);
    if (b) rl_graph_free(b);
    return s;
}

/* What is said is of the ones, where no sizes do. */
rl_status rl_check_result(rl_ctx *ctx, const rl_checked *c, rl_text *out) {
    rl_status s = RL_OK;
    char why[sizeof ctx->error];
    bool again = true;
    for (attempt how = 0; how < NTRY && again; how++) {
        rl_status now = try_sizes(ctx, c, how, out, &again);
        if (how == TRY_LARGE && again) {
            memcpy(ctx->error, why, sizeof why);
            return s;
        }
        s = now;
        memcpy(why, ctx->error, sizeof why);
    }
    return s;
}
