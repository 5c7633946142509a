/* Types in model-local functions: a function is inferred once, so an input has the type that all calls give it.
 *
 *   F(x f32[2,3]) and F(y f32[5,3])    F's input is f32[?,3]: what calls disagree on is unknown
 *
 * A function is inferred after all that call it, since a call's types must be known; calls in one that is never called itself do not
 * count, nor do those that nothing reads, which are gone from what is written.  Then what calls make gets the types of the functions' outputs, of which only numbers hold for every call, and all is
 * inferred again, ROUNDS times at most: functions that call functions need one round for each level. */
#include "functions.h"

#include <string.h>

#include "../src/shape.h"

enum { ROUNDS = 4, MAXFUNCTION = 2000 }; /* every pair is looked at */

typedef struct { rl_dtype dtype; uint32_t rank; rl_dim *dim; } type;

static bool calls(const rl_graph *function, const rl_nodeinfo *n) {
    return n->op == RL_OP_OPAQUE && n->type == function->name && n->domain == function->domain;
}

static void meet(rl_arena *tmp, rl_ctx *ctx, type *t, const rl_valinfo *x, bool first) {
    uint32_t rank = x ? x->rank : RL_NORANK;
    if (first) {
        *t = (type){x ? x->dtype : RL_UNDEF, rank, NULL};
        if (rank != RL_NORANK) t->dim = rl_copy(tmp, x->dim, rank * sizeof *t->dim);
        return;
    }
    if (!x || x->dtype != t->dtype) t->dtype = RL_UNDEF;
    if (rank != t->rank) t->rank = RL_NORANK;
    for (uint32_t i = 0; t->rank != RL_NORANK && i < rank; i++)
        if (t->dim[i] != x->dim[i]) t->dim[i] = rl_dim_fresh(ctx);
}

static bool has_bodies(const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nattr; i++)
        if (n->attr[i].graph) return true;
    return false;
}

/* Adds the calls in g and its bodies to the types of the function's inputs; how many there were. */
static uint32_t gather(const rl_graph *g, const rl_graph *function, type *t, uint32_t ncall, rl_arena *tmp) {
    const bool *dead = NULL;
    for (uint32_t k = 0, first = 1; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (!calls(function, n) && !has_bodies(n)) continue;
        if (first) dead = rl_dead_nodes(g, tmp); /* most graphs have no call of most functions */
        first = 0;
        if (dead && dead[g->order.p[k].i]) continue;
        for (uint32_t i = 0; i < n->nattr; i++)
            if (n->attr[i].graph) ncall = gather(n->attr[i].graph, function, t, ncall, tmp);
        if (!calls(function, n)) continue;
        for (uint32_t i = 0; i < function->input.n; i++)
            meet(tmp, g->ctx, &t[i], rl_has(rl_in(n, i)) ? rl_val(g, n->in[i]) : NULL, ncall == 0);
        ncall++;
    }
    return ncall;
}

static bool has_call(const rl_graph *g, const rl_graph *function) {
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (calls(function, n)) return true;
        for (uint32_t i = 0; i < n->nattr; i++)
            if (n->attr[i].graph && has_call(n->attr[i].graph, function)) return true;
    }
    return false;
}

/* Two of one name differ in their overload, which a call's name does not tell. */
static bool is_ambiguous(const rl_graph *main, const rl_graph *function) {
    for (uint32_t i = 0; i < main->function.n; i++) {
        const rl_graph *g = main->function.p[i];
        if (g && g != function && g->name == function->name && g->domain == function->domain) return true;
    }
    return false;
}

/* called: which functions are. */
static void infer(rl_graph *main, uint32_t k, bool *called) {
    rl_graph *function = main->function.p[k];
    rl_arena tmp;
    rl_arena_init(&tmp, main->ctx);
    type *t = rl_new(&tmp, type, function->input.n);
    uint32_t n = is_ambiguous(main, function) ? 0 : gather(main, function, t, 0, &tmp);
    for (uint32_t i = 0; i < main->function.n && !is_ambiguous(main, function); i++)
        if (called[i]) n = gather(main->function.p[i], function, t, n, &tmp);
    for (uint32_t i = 0; n && i < function->input.n; i++)
        rl_graph_set_type(function, function->input.p[i], t[i].dtype, t[i].rank, t[i].dim);
    rl_arena_free(&tmp);
    called[k] = n > 0;
    if (rl_shape_infer(function) != RL_OK) function->doubtful = true;
}

static void infer_all(rl_graph *main, bool *called, rl_arena *tmp) {
    uint32_t left = main->function.n;
    bool *done = rl_new(tmp, bool, main->function.n);
    for (uint32_t was = 0; left != was;) {
        was = left;
        for (uint32_t k = 0; k < main->function.n; k++) {
            bool ready = !done[k];
            for (uint32_t i = 0; i < main->function.n && ready; i++)
                if (!done[i]) ready = !has_call(main->function.p[i], main->function.p[k]);
            if (!ready) continue;
            infer(main, k, called);
            done[k] = true;
            left--;
        }
    }
    for (uint32_t k = 0; k < main->function.n; k++) main->function.p[k]->doubtful |= !done[k];
}

/* Does y have numbers where x has none? */
static bool tells_more(const rl_valinfo *y, const rl_valinfo *x) {
    bool more = false;
    for (uint32_t i = 0; i < y->rank && x->rank == y->rank; i++) more |= rl_dim_known(y->dim[i]) && !rl_dim_known(x->dim[i]);
    return more;
}

/* The types of the function's outputs to what its calls in g make, where nothing else is known (anew: or only less). True when any was
 * given. */
static bool spread(rl_graph *g, const rl_graph *function, bool anew, rl_arena *tmp) {
    bool any = false;
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        for (uint32_t i = 0; i < n->nattr; i++)
            if (n->attr[i].graph) any |= spread(n->attr[i].graph, function, anew, tmp);
        for (uint32_t j = 0; calls(function, n) && j < n->nout && j < function->output.n; j++) {
            const rl_valinfo *y = rl_val(function, function->output.p[j]), *x = rl_has(n->out[j]) ? rl_val(g, n->out[j]) : NULL;
            if (!x || y->rank == RL_NORANK || (x->rank != RL_NORANK && !(anew && tells_more(y, x)))) continue;
            rl_dim *dim = rl_new(tmp, rl_dim, y->rank);
            for (uint32_t i = 0; i < y->rank; i++)
                dim[i] = rl_dim_known(y->dim[i]) ? y->dim[i] : x->rank != RL_NORANK ? x->dim[i] : rl_dim_fresh(g->ctx);
            rl_graph_set_type(g, n->out[j], y->dtype, y->rank, dim);
            any = true;
        }
    }
    return any;
}

rl_status rl_functions_infer(rl_graph *main, bool anew, rl_arena *tmp) {
    bool *called = rl_new(tmp, bool, main->function.n), any = main->function.n > 0, known = main->function.n <= MAXFUNCTION;
    for (uint32_t k = 0; k < main->function.n; k++) known &= main->function.p[k] != NULL;
    for (uint32_t k = 0; k < main->function.n && !known; k++)
        if (main->function.p[k]) main->function.p[k]->doubtful = true; /* nobody knows all calls */
    for (uint32_t round = 0; round < ROUNDS && any && known; round++) {
        infer_all(main, called, tmp);
        any = false;
        for (uint32_t k = 0; k < main->function.n; k++) {
            const rl_graph *f = main->function.p[k];
            if (!called[k] || f->doubtful) continue;
            any |= spread(main, f, anew, tmp);
            for (uint32_t i = 0; i < main->function.n; i++) any |= spread(main->function.p[i], f, anew, tmp);
        }
        if (any) RL_TRY(rl_shape_infer(main));
    }
    return RL_OK;
}
