/* Types in model-local functions.
 *
 * A call makes what its function makes of what the call gives: the function is inferred for each call, and once for all that give the same.
 *
 *   F(x f32[N,3]) and F(y f32[5,3]), F a Relu      the first is f32[N,3], the second f32[5,3]
 *
 * A function itself is optimized once, so an input has the type there that all calls give it: F's input is f32[?,3], as what calls disagree on is
 * unknown. It gets its types after all that call it, since a call's types must be known; calls in one that is never called itself do not count. */
#include "functions.h"

#include "../src/expand.h"
#include "../src/shape.h"

enum { MOST_NODES = 1 << 18 }; /* of functions, that one inference of a graph looks at */

typedef struct {
    uint32_t ncall;
    rl_type *input;
} called; /* what the calls of a function agree on */
typedef struct {
    rl_graph *g;
    const rl_type *value;
    uint32_t n;
} declared; /* a function or a body in it, as the file has it */
typedef struct {
    declared *p;
    uint32_t n, cap;
} declareds;

struct rl_callsite {
    uint32_t function;
    const rl_type *input;
};

struct rl_calls {
    rl_shape_caller caller;
    rl_graph *main;
    rl_arena *mem;
    rl_callees callees;
    uint32_t *order, norder;
    bool *ordered;   /* [function.n] is it in order? */
    called *of;      /* [function.n] */
    declareds *file; /* [function.n] */
    rl_hash known;   /* by the text of a call: index in made */
    struct {
        const rl_type **p;
        uint32_t n, cap;
    } made;
    uint32_t nnode;  /* looked at */
};

/* ---- who calls whom ---- */

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
    c->ordered = rl_new(c->mem, bool, n);
    for (uint32_t i = 0; i < ready.n; i++) c->ordered[ready.p[i]] = true;
}

static void remember(rl_calls *c, uint32_t function, rl_graph *g) {
    rl_type *t = rl_new(c->mem, rl_type, g->nval);
    for (uint32_t v = 0; v < g->nval; v++) t[v] = (rl_type){g->val[v].dtype, g->val[v].rank, g->val[v].dim};
    rl_push(c->mem, c->file[function], ((declared){g, t, g->nval}));
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) remember(c, function, n->attr[k].graph);
    }
}

static const rl_type *made(rl_shape_caller *caller, const rl_graph *g, const rl_nodeinfo *n);

rl_calls *rl_calls_of(rl_graph *main, rl_arena *mem) {
    rl_calls *c = rl_new(mem, rl_calls, 1);
    bool known = true;
    *c = (rl_calls){.caller = {made}, .main = main, .mem = mem, .known.mem = mem};
    for (uint32_t k = 0; k < main->function.n; k++) known &= main->function.p[k] != NULL;
    for (uint32_t k = 0; k < main->function.n && !known; k++)
        if (main->function.p[k]) main->function.p[k]->doubtful = true; /* nobody knows all calls */
    if (!known || main->function.n == 0) return c;
    c->callees = rl_callees_of(main, mem);
    sort_functions(c);
    c->of = rl_new(mem, called, main->function.n);
    c->file = rl_new(mem, declareds, main->function.n);
    for (uint32_t k = 0; k < main->function.n; k++) {
        c->of[k].input = rl_new(mem, rl_type, main->function.p[k]->input.n);
        remember(c, k, main->function.p[k]);
    }
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

static void meet(rl_arena *mem, rl_ctx *ctx, rl_type *t, const rl_type *x, bool first) {
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

/* Types of what a call gives its function's inputs, in mem. */
static const rl_type *given_by(const rl_calls *c, const rl_graph *g, const rl_nodeinfo *n, uint32_t function, rl_arena *mem) {
    uint32_t nin = c->main->function.p[function]->input.n;
    rl_type *t = rl_new(mem, rl_type, nin);
    for (uint32_t i = 0; i < nin; i++) {
        const rl_valinfo *x = rl_has(rl_in(n, i)) ? rl_val(g, n->in[i]) : NULL;
        t[i] = x ? (rl_type){x->dtype, x->rank, x->dim} : (rl_type){RL_UNDEF, RL_NORANK, NULL};
    }
    return t;
}

static void find_calls(const rl_calls *c, const rl_graph *g, bool every, rl_arena *mem, rl_callsites *out) {
    const bool *dead = NULL;
    for (uint32_t k = 0, first = !every; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        uint32_t f = rl_callee(&c->callees, n);
        if (f == RL_NONE && !rl_has_body(n)) continue;
        if (first) dead = rl_dead_nodes(g, mem); /* most graphs have no call */
        first = 0;
        if (dead && dead[g->order.p[k].i]) continue;
        for (uint32_t i = 0; i < n->nattr; i++)
            if (n->attr[i].graph) find_calls(c, n->attr[i].graph, every, mem, out);
        if (f != RL_NONE) rl_push(mem, *out, ((struct rl_callsite){f, given_by(c, g, n, f, mem)}));
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

/* Infers a function of which the inputs have these types; NULL: what the file declares. */
static bool infer_function(rl_calls *c, uint32_t k, const rl_type *input) {
    rl_graph *g = c->main->function.p[k];
    for (uint32_t i = 0; i < c->file[k].n; i++) {
        const declared *x = &c->file[k].p[i];
        for (uint32_t v = 0; v < x->n; v++) {
            x->g->val[v].dtype = x->value[v].dtype;
            x->g->val[v].rank = x->value[v].rank;
            x->g->val[v].dim = x->value[v].dim;
        }
    }
    for (uint32_t i = 0; i < g->input.n && input; i++) rl_graph_set_type(g, g->input.p[i], input[i].dtype, input[i].rank, input[i].dim);
    if (rl_shape_infer_calls(g, &c->caller) != RL_OK) g->doubtful = true;
    return !g->doubtful;
}

void rl_calls_give(rl_calls *c, uint32_t k) {
    infer_function(c, k, c->of[k].ncall && !c->callees.overloaded[k] ? c->of[k].input : NULL);
}

/* ---- what calls make ---- */

static rl_str text_of(const rl_calls *c, uint32_t k, const rl_type *input) {
    rl_text t = {.mem = c->mem};
    rl_put(&t, "%u", k);
    for (uint32_t i = 0; i < c->main->function.p[k]->input.n; i++) {
        rl_put(&t, ";%d:%u", (int)input[i].dtype, input[i].rank);
        for (uint32_t d = 0; input[i].rank != RL_NORANK && d < input[i].rank; d++) rl_put(&t, ",%lld", (long long)input[i].dim[d]);
    }
    return rl_intern(c->main->ctx, t.p, t.n);
}

static bool has_dim(const rl_type *input, uint32_t n, rl_dim d) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; input[i].rank != RL_NORANK && k < input[i].rank; k++)
            if (input[i].dim[k] == d) return true;
    return false;
}

static const rl_type *made(rl_shape_caller *caller, const rl_graph *g, const rl_nodeinfo *n) {
    rl_calls *c = (rl_calls *)(void *)caller;
    uint32_t k = rl_callee(&c->callees, n);
    const rl_graph *f = k == RL_NONE || c->callees.overloaded[k] || !c->ordered[k] ? NULL : c->main->function.p[k];
    if (!f || n->nout > f->output.n) return NULL;
    const rl_type *input = given_by(c, g, n, k, c->mem);
    rl_str text = text_of(c, k, input);
    uint32_t at = rl_hash_get(&c->known, (uintptr_t)text);
    if (at != RL_NONE) return c->made.p[at];
    if (f->order.n > MOST_NODES - c->nnode) return NULL;
    c->nnode += f->order.n;
    bool sure = infer_function(c, k, input), once = true;
    rl_type *t = rl_new(c->mem, rl_type, f->output.n);
    for (uint32_t i = 0; i < f->output.n; i++) {
        const rl_valinfo *x = sure && rl_has(f->output.p[i]) ? rl_val(f, f->output.p[i]) : NULL;
        t[i] = x ? (rl_type){x->dtype, x->rank, x->dim} : (rl_type){RL_UNDEF, RL_NORANK, NULL};
        for (uint32_t d = 0; t[i].rank != RL_NORANK && d < t[i].rank; d++)
            once &= rl_dim_known(t[i].dim[d]) || has_dim(input, f->input.n, t[i].dim[d]); /* else a size that is not known may be another one */
    }
    if (once) {
        rl_hash_put(&c->known, (uintptr_t)text, c->made.n);
        rl_push(c->mem, c->made, t);
    }
    return t;
}

rl_status rl_calls_infer(rl_calls *c, rl_graph *g) {
    c->nnode = 0;
    return rl_shape_infer_calls(g, c->norder ? &c->caller : NULL);
}

rl_status rl_calls_infer_all(rl_calls *c, rl_callsites *as_read, rl_arena *tmp) {
    rl_callsites s = {0};
    *as_read = s;
    if (!c->norder) return RL_OK;
    RL_TRY(rl_calls_infer(c, c->main));
    find_calls(c, c->main, true, c->mem, as_read);
    forget_calls(c);
    find_calls(c, c->main, false, tmp, &s);
    rl_calls_add(c, s);
    for (uint32_t k = 0; k < c->main->function.n; k++) c->main->function.p[k]->doubtful = true;
    for (uint32_t i = 0; i < c->norder; i++) {
        uint32_t k = c->order[i];
        rl_calls_give(c, k);
        s.n = 0;
        if (rl_calls_any(c, k)) find_calls(c, c->main->function.p[k], false, tmp, &s);
        rl_calls_add(c, s);
    }
    return RL_OK;
}

/* ---- what a function may be taken for ---- */

rl_status rl_calls_written(rl_calls *c, rl_graph *main, rl_callsites as_read, rl_arena *tmp) {
    if (main) RL_TRY(rl_calls_infer(c, main));
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
