/* Types in model-local functions: a function is inferred once, so an input has the type that all calls give it.
 *
 *   F(x f32[2,3]) and F(y f32[5,3])    F's input is f32[?,3]: what calls disagree on is unknown
 *
 * A function is inferred after all that call it, since a call's types must be known; calls in one that is never called itself do not
 * count.  Then what calls make gets the types of the functions' outputs, of which only numbers hold for every call, and all is inferred
 * again, ROUNDS times at most: one for each call in a chain of them.  What F(F(x)) takes stays unknown, as F is inferred before its
 * result is. */
#include "functions.h"

#include <string.h>

#include "../src/expand.h"
#include "../src/shape.h"

enum { ROUNDS = 64 };

typedef struct {
    rl_dtype dtype;
    uint32_t rank;
    const rl_dim *dim;
} type;
typedef struct {
    uint32_t ncall;
    type *input;
} called; /* what the calls of a function agree on */
typedef struct {
    rl_graph *g;
    const type *value;
    uint32_t n;
} remembered;
struct rl_callsite {
    uint32_t function;
    const type *input;
};

struct rl_calls {
    rl_graph *main;
    rl_arena *mem;
    rl_callees callees;
    uint32_t *order, norder;
    called *of; /* [function.n] */
    struct {
        remembered *p;
        uint32_t n, cap;
    } as_read; /* functions and the bodies in them, with types that hold for all calls as read */
};

/* ---- who calls whom ---- */

static bool has_bodies(const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nattr; i++)
        if (n->attr[i].graph) return true;
    return false;
}

/* Adds `by` to the number of each function that g calls; ready, if not NULL, gets those that come to 0. */
typedef struct {
    uint32_t *p, n;
} list;
static void count_callers(const rl_calls *c, const rl_graph *g, uint32_t *ncaller, uint32_t by, list *ready) {
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) count_callers(c, n->attr[k].graph, ncaller, by, ready);
        for (uint32_t k = rl_callee(&c->callees, n); k != RL_NONE;
             k = c->callees.overloaded[k] ? c->callees.next[k] : RL_NONE) {
            if (c->main->function.p[k]->domain != n->domain) continue;
            ncaller[k] += by;
            if (ready && ncaller[k] == 0) ready->p[ready->n++] = k;
        }
    }
}

/* Callers first.  What is left out leads to itself. */
static void sort_functions(rl_calls *c) {
    uint32_t n = c->main->function.n, *ncaller = rl_new(c->mem, uint32_t, n);
    list ready = {rl_new(c->mem, uint32_t, n), 0};
    for (uint32_t k = 0; k < n; k++) count_callers(c, c->main->function.p[k], ncaller, 1, NULL);
    for (uint32_t k = 0; k < n; k++)
        if (ncaller[k] == 0) ready.p[ready.n++] = k;
    for (uint32_t i = 0; i < ready.n; i++)
        count_callers(c, c->main->function.p[ready.p[i]], ncaller, UINT32_MAX, &ready);
    c->order = ready.p;
    c->norder = ready.n;
}

rl_calls *rl_calls_of(rl_graph *main, rl_arena *mem) {
    rl_calls *c = rl_new(mem, rl_calls, 1);
    bool known = true;
    *c = (rl_calls){.main = main, .mem = mem};
    for (uint32_t k = 0; k < main->function.n; k++) known &= main->function.p[k] != NULL;
    for (uint32_t k = 0; k < main->function.n && !known; k++)
        if (main->function.p[k]) main->function.p[k]->doubtful = true; /* nobody knows all calls */
    if (!known || main->function.n == 0) return c;
    c->callees = rl_callees_of(main, mem);
    sort_functions(c);
    c->of = rl_new(mem, called, main->function.n);
    for (uint32_t k = 0; k < main->function.n; k++) c->of[k].input = rl_new(mem, type, main->function.p[k]->input.n);
    return c;
}

uint32_t rl_calls_order(const rl_calls *c, const uint32_t **order) {
    *order = c->order;
    return c->norder;
}

bool rl_calls_any(const rl_calls *c, uint32_t function) {
    return c->of[function].ncall > 0;
}

/* ---- what the calls give ---- */

static void meet(rl_arena *mem, rl_ctx *ctx, type *t, const type *x, bool first) {
    if (first) {
        *t = *x;
        if (x->rank != RL_NORANK) t->dim = rl_copy(mem, x->dim, x->rank * sizeof *t->dim);
        return;
    }
    if (x->dtype != t->dtype) t->dtype = RL_UNDEF;
    if (x->rank != t->rank) t->rank = RL_NORANK;
    for (uint32_t i = 0; t->rank != RL_NORANK && i < x->rank; i++)
        if (t->dim[i] != x->dim[i]) ((rl_dim *)t->dim)[i] = rl_dim_fresh(ctx);
}

static void find_calls(const rl_calls *c, const rl_graph *g, bool every, rl_arena *mem, rl_callsites *out) {
    const bool *dead = NULL;
    for (uint32_t k = 0, first = !every; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        uint32_t f = rl_callee(&c->callees, n);
        if (f == RL_NONE && !has_bodies(n)) continue;
        if (first) dead = rl_dead_nodes(g, mem); /* most graphs have no call */
        first = 0;
        if (dead && dead[g->order.p[k].i]) continue;
        for (uint32_t i = 0; i < n->nattr; i++)
            if (n->attr[i].graph) find_calls(c, n->attr[i].graph, every, mem, out);
        if (f == RL_NONE) continue;
        uint32_t nin = c->main->function.p[f]->input.n;
        type *t = rl_new(mem, type, nin);
        for (uint32_t i = 0; i < nin; i++) {
            const rl_valinfo *x = rl_has(rl_in(n, i)) ? rl_val(g, n->in[i]) : NULL;
            t[i] = x ? (type){x->dtype, x->rank, x->dim} : (type){RL_UNDEF, RL_NORANK, NULL};
        }
        rl_push(mem, *out, ((struct rl_callsite){f, t}));
    }
}

rl_callsites rl_calls_in(const rl_calls *c, const rl_graph *g, rl_arena *mem) {
    rl_callsites s = {0};
    if (c->norder) find_calls(c, g, true, mem, &s);
    return s;
}

static void forget_calls(rl_calls *c) {
    for (uint32_t k = 0; c->of && k < c->main->function.n; k++) c->of[k].ncall = 0;
}

void rl_calls_add(rl_calls *c, rl_callsites s) {
    for (uint32_t i = 0; i < s.n; i++) {
        uint32_t f = s.p[i].function;
        for (uint32_t k = f; k != RL_NONE; k = c->callees.overloaded[f] ? c->callees.next[k] : RL_NONE) {
            if (c->main->function.p[k]->domain != c->main->function.p[f]->domain) continue;
            called *x = &c->of[k];
            for (uint32_t j = 0; j < c->main->function.p[k]->input.n && !c->callees.overloaded[k]; j++)
                meet(c->mem, c->main->ctx, &x->input[j], &s.p[i].input[j], x->ncall == 0);
            x->ncall++;
        }
    }
}

void rl_calls_give(rl_calls *c, uint32_t k) {
    rl_graph *g = c->main->function.p[k];
    for (uint32_t i = 0; c->of[k].ncall && !c->callees.overloaded[k] && i < g->input.n; i++) {
        const type *t = &c->of[k].input[i];
        rl_graph_set_type(g, g->input.p[i], t->dtype, t->rank, t->dim);
    }
    if (rl_shape_infer(g) != RL_OK) g->doubtful = true;
}

/* ---- what calls make ---- */

static void infer_all(rl_calls *c, const rl_graph *main, bool every, rl_arena *tmp) {
    rl_callsites s = {0};
    forget_calls(c);
    find_calls(c, main, every, tmp, &s);
    rl_calls_add(c, s);
    for (uint32_t k = 0; k < c->main->function.n; k++) c->main->function.p[k]->doubtful = true;
    for (uint32_t i = 0; i < c->norder; i++) {
        uint32_t k = c->order[i];
        rl_calls_give(c, k);
        s.n = 0;
        if (rl_calls_any(c, k)) find_calls(c, c->main->function.p[k], every, tmp, &s);
        rl_calls_add(c, s);
    }
}

/* Does y have numbers where x has none, or a rank? */
static bool has_more_dims(const rl_valinfo *y, const rl_valinfo *x) {
    if (x->rank == RL_NORANK || y->rank == RL_NORANK) return y->rank != RL_NORANK;
    bool more = false;
    for (uint32_t i = 0; i < y->rank && x->rank == y->rank; i++)
        more |= rl_dim_known(y->dim[i]) && !rl_dim_known(x->dim[i]);
    return more;
}

/* The type of a function's output to what a call makes, where less is known of that. */
static bool spread_one(rl_graph *g, rl_value v, const rl_valinfo *y, rl_arena *tmp) {
    const rl_valinfo *x = rl_has(v) ? rl_val(g, v) : NULL;
    if (!x) return false;
    bool typed = x->dtype == RL_UNDEF && y->dtype != RL_UNDEF, sized = has_more_dims(y, x);
    if (!typed && !sized) return false;
    rl_dim *dim = rl_new(tmp, rl_dim, sized ? y->rank : 0);
    for (uint32_t i = 0; sized && i < y->rank; i++)
        dim[i] = rl_dim_known(y->dim[i]) ? y->dim[i] : x->rank != RL_NORANK ? x->dim[i] : rl_dim_fresh(g->ctx);
    rl_graph_set_type(g, v, typed ? y->dtype : x->dtype, sized ? y->rank : x->rank, sized ? dim : x->dim);
    return true;
}

/* The types of all functions' outputs to what their calls in g make.  True when any was given. */
static bool spread(const rl_calls *c, rl_graph *g, bool every, rl_arena *tmp) {
    const bool *dead = every ? NULL : rl_dead_nodes(g, tmp);
    bool any = false;
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (dead && dead[g->order.p[i].i]) continue; /* its types are others */
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) any |= spread(c, n->attr[k].graph, every, tmp);
        uint32_t k = rl_callee(&c->callees, n);
        if (k == RL_NONE || c->callees.overloaded[k] || c->main->function.p[k]->doubtful) continue;
        const rl_graph *f = c->main->function.p[k];
        for (uint32_t j = 0; j < n->nout && j < f->output.n; j++)
            any |= spread_one(g, n->out[j], rl_val(f, f->output.p[j]), tmp);
    }
    return any;
}

static rl_status infer_rounds(rl_calls *c, rl_graph *main, bool every, rl_arena *tmp) {
    bool any = c->norder > 0;
    for (uint32_t round = 0; round < ROUNDS && any; round++) {
        infer_all(c, main, every, tmp);
        any = spread(c, main, every, tmp);
        for (uint32_t k = 0; k < c->main->function.n; k++)
            if (rl_calls_any(c, k)) any |= spread(c, c->main->function.p[k], every, tmp);
        if (any) RL_TRY(rl_shape_infer(main));
    }
    return RL_OK;
}

static void remember(rl_calls *c, rl_graph *g) {
    type *t = rl_new(c->mem, type, g->nval);
    for (uint32_t v = 0; v < g->nval; v++) t[v] = (type){g->val[v].dtype, g->val[v].rank, g->val[v].dim};
    rl_push(c->mem, c->as_read, ((remembered){g, t, g->nval}));
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) remember(c, n->attr[k].graph);
    }
}

rl_status rl_calls_infer_all(rl_calls *c, rl_callsites *as_read, rl_arena *tmp) {
    *as_read = (rl_callsites){0};
    RL_TRY(infer_rounds(c, c->main, true, tmp));
    for (uint32_t k = 0; c->norder && k < c->main->function.n; k++) remember(c, c->main->function.p[k]);
    if (c->norder) find_calls(c, c->main, true, c->mem, as_read);
    return rl_calls_infer_live(c, tmp);
}

rl_status rl_calls_infer_live(rl_calls *c, rl_arena *tmp) {
    return infer_rounds(c, c->main, false, tmp);
}

/* ---- what a function may be taken for ---- */

rl_status rl_calls_written(rl_calls *c, rl_graph *main, rl_callsites as_read, rl_arena *tmp) {
    for (uint32_t i = 0; i < c->as_read.n; i++) {
        const remembered *x = &c->as_read.p[i];
        for (uint32_t v = 0; v < x->n; v++) {
            x->g->val[v].dtype = x->value[v].dtype;
            x->g->val[v].rank = x->value[v].rank;
            x->g->val[v].dim = x->value[v].dim;
        }
    }
    if (main) RL_TRY(rl_shape_infer(main));
    if (main) RL_TRY(infer_rounds(c, main, true, tmp));
    forget_calls(c);
    rl_calls_add(c, main ? rl_calls_in(c, main, tmp) : as_read);
    return RL_OK;
}

rl_status rl_calls_settle(rl_calls *c, rl_graph *done, rl_callsites as_read, rl_arena *tmp) {
    RL_TRY(rl_calls_written(c, done->as_read ? NULL : done, as_read, tmp));
    for (uint32_t i = 0; i < c->norder; i++) {
        uint32_t k = c->order[i];
        const rl_graph *f = done->function.p[k];
        rl_calls_give(c, k);
        if (rl_calls_any(c, k)) rl_calls_add(c, rl_calls_in(c, f->as_read ? c->main->function.p[k] : f, tmp));
    }
    return RL_OK;
}
