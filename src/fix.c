/* Sizes that the user gives: see fix.h. */
#include "fix.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Gives every value of g and its bodies the number for the symbol. True when one had it. */
static bool fix_symbol(rl_graph *g, rl_str name, int64_t number) {
    bool any = false;
    for (uint32_t v = 0; v < g->nval; v++) {
        rl_valinfo *x = &g->val[v];
        for (uint32_t i = 0; x->rank != RL_NORANK && i < x->rank; i++) {
            if (rl_dim_name(g->ctx, x->dim[i]) != name) continue;
            rl_dim *dim = rl_copy(&g->mem, x->dim, x->rank * sizeof *dim);
            dim[i] = number;
            x->dim = dim;
            any = true;
        }
    }
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        for (uint32_t i = 0; i < n->nattr; i++)
            if (n->attr[i].graph) any |= fix_symbol(n->attr[i].graph, name, number);
    }
    return any;
}

static bool parse_size(const char **s, int64_t *x) {
    char *end;
    errno = 0;
    *x = strtoll(*s, &end, 10);
    bool ok = end != *s && errno == 0 && *x >= 0 && **s >= '0' && **s <= '9';
    *s = end;
    return ok;
}

/* Adds a name once, as ", name" behind others. */
static void list_name(rl_text *t, rl_hash *seen, rl_str name) {
    if (rl_hash_get(seen, (uint64_t)(uintptr_t)name) != RL_NONE) return;
    rl_hash_put(seen, (uint64_t)(uintptr_t)name, 1);
    rl_put(t, "%s%s", t->n ? ", " : "", name);
}

static rl_status no_dim(rl_graph *g, rl_str name) {
    rl_text t = {.mem = &g->mem};
    rl_hash seen = {.mem = &g->mem};
    for (uint32_t k = 0; k < g->input.n; k++) {
        const rl_valinfo *x = rl_val(g, g->input.p[k]);
        for (uint32_t i = 0; x->rank != RL_NORANK && i < x->rank; i++) {
            rl_str symbol = rl_dim_name(g->ctx, x->dim[i]);
            if (symbol) list_name(&t, &seen, symbol);
        }
    }
    return rl_fail(g->ctx, RL_EUSAGE, "no dim is called '%.100s'; those of the inputs: %s", name, t.n ? t.p : "none that is open");
}

rl_status rl_fix_no_input(rl_graph *g, const char *name, int n) {
    rl_text t = {.mem = &g->mem};
    for (uint32_t k = 0; k < g->input.n; k++) rl_put(&t, "%s%s", k ? ", " : "", rl_val(g, g->input.p[k])->name);
    return rl_fail(g->ctx, RL_EUSAGE, "no input is called '%.*s'; there are %s", RL_MIN(n, 100), name, t.n ? t.p : "none");
}

rl_status rl_fix_dim(rl_graph *g, const char *item, bool optional) {
    const char *eq = strrchr(item, '='), *s = eq ? eq + 1 : "";
    int64_t number;
    if (!eq || !parse_size(&s, &number) || *s) return rl_fail(g->ctx, RL_EUSAGE, "dim '%s' is not NAME=N", item);
    rl_str name = rl_intern(g->ctx, item, (size_t)(eq - item));
    bool had = fix_symbol(g, name, number);
    g->sized |= had;
    return had || optional ? RL_OK : no_dim(g, name);
}

/* Where the input's dim is a symbol, all that share it get the number. */
static rl_status fix_input_dim(rl_graph *g, rl_value v, uint32_t i, int64_t number) {
    rl_dim d = rl_val(g, v)->dim[i];
    rl_str symbol = rl_dim_name(g->ctx, d);
    if (rl_dim_known(d) && d != number)
        return rl_fail(g->ctx, RL_EUSAGE, "input '%s' has %" PRId64 " in dim %" PRIu32 ", not %" PRId64, rl_val(g, v)->name, d, i, number);
    if (symbol) fix_symbol(g, symbol, number);
    g->sized |= !rl_dim_known(d);
    return RL_OK;
}

rl_status rl_fix_shape(rl_graph *g, const char *item) {
    const char *eq = strrchr(item, '='), *s = eq ? eq + 1 : "";
    rl_dim dim[64];
    uint32_t rank = 0;
    bool ok = eq != NULL;
    while (ok && *s && rank < RL_LEN(dim)) {
        ok = parse_size(&s, &dim[rank++]) && (!*s || (*s == ',' && s[1]));
        s += *s == ',';
    }
    if (!ok || *s) return rl_fail(g->ctx, RL_EUSAGE, "input shape '%s' is not X=N,N,...", item);
    rl_value v = rl_graph_input(g, rl_intern(g->ctx, item, (size_t)(eq - item)));
    if (!rl_has(v)) return rl_fix_no_input(g, item, (int)(eq - item));
    const rl_valinfo *x = rl_val(g, v);
    if (x->rank != RL_NORANK && x->rank != rank)
        return rl_fail(g->ctx, RL_EUSAGE, "input '%s' has rank %" PRIu32 ", not %" PRIu32, x->name, x->rank, rank);
    for (uint32_t i = 0; x->rank != RL_NORANK && i < rank; i++) RL_TRY(fix_input_dim(g, v, i, dim[i]));
    g->sized |= x->rank == RL_NORANK;
    rl_graph_set_type(g, v, x->dtype, rank, dim);
    return RL_OK;
}

void rl_fix_like(rl_graph *g, const rl_graph *other) {
    for (uint32_t k = 0; k < g->input.n; k++) {
        const rl_valinfo *x = rl_val(g, g->input.p[k]);
        rl_value same = x->name ? rl_graph_input(other, x->name) : RL_NOVALUE;
        const rl_valinfo *y = rl_has(same) ? rl_val(other, same) : NULL;
        if (!y || x->rank == RL_NORANK || x->rank != y->rank) continue;
        for (uint32_t i = 0; i < x->rank; i++)
            if (!rl_dim_known(x->dim[i]) && rl_dim_known(y->dim[i])) fix_symbol(g, rl_dim_name(g->ctx, x->dim[i]), y->dim[i]);
    }
}
