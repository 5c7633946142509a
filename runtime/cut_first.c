/* Slices and Splits before what is done to each element, where a Concat takes a piece of that as it is: see fuse.h.
 *
 *   s = Sigmoid(x)      [3,32,32,25]           the heads of a detector: places and sizes of boxes, and their classes
 *   a = Slice(s) 0 .. 2                        a = Sigmoid(Slice(x) 0 .. 2)
 *   b = Slice(s) 2 .. 25         becomes       b = Sigmoid(Slice(x) 2 .. 25)
 *   y = Concat(Mul(a, k), b)                   y = Concat(Mul(a, k), b)
 *
 * so that b is made in its place in y, where a view of s would have to be copied, and a together with what is done to it. */
#include "fast.h"
#include "fuse.h"
#include "kernels_fast.h"

static bool cuts(const rl_nodeinfo *n) {
    return (n->op == RL_OP_Slice || n->op == RL_OP_Split) && !n->ncap;
}

/* Whatever this makes is no step that would do the op as its own last part. */
static bool only_looks(const rl_graph *g, rl_value v) {
    static const rl_op op[] = {RL_OP_Transpose, RL_OP_Reshape, RL_OP_Squeeze, RL_OP_Unsqueeze, RL_OP_Flatten, RL_OP_Slice, RL_OP_Split};
    rl_node def = rl_val(g, v)->def;
    bool found = def.i == RL_NONE;
    for (uint32_t i = 0; i < RL_LEN(op) && def.i != RL_NONE; i++) found = found || rl_nod(g, def)->op == op[i];
    return found;
}

/* The dim that v has fewer of than x, RL_NONE where it is not the only one that differs, or not known. */
static uint32_t cut_dim(const rl_valinfo *x, const rl_valinfo *v) {
    uint32_t at = RL_NONE;
    if (v->rank != x->rank || v->dtype != x->dtype) return RL_NONE;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (v->dim[i] == x->dim[i]) continue;
        if (at != RL_NONE || !rl_dim_known(v->dim[i]) || !rl_dim_known(x->dim[i])) return RL_NONE;
        at = i;
    }
    return at;
}

static bool goes_as_it_is(const rl_graph *g, const rl_valinfo *v) {
    return v->nuse == 1 && !v->is_output && rl_nod(g, v->use[0].node)->op == RL_OP_Concat;
}

/* Is all that reads v some cuts of it along one dim, which together have no more elements than it has, and one of them a Concat's piece? */
static bool read_in_pieces(const rl_graph *g, const rl_valinfo *v) {
    uint32_t axis = RL_NONE;
    int64_t sum = 0;
    bool joined = false;
    if (v->is_output || !v->nuse || v->rank == RL_NORANK || !rl_dtype_bits(v->dtype)) return false;
    for (uint32_t i = 0; i < v->nuse; i++) {
        const rl_nodeinfo *n = rl_nod(g, v->use[i].node);
        if (!cuts(n) || v->use[i].slot) return false;
        for (uint32_t k = 0; k < n->nout; k++) {
            const rl_valinfo *piece = rl_has(n->out[k]) ? rl_val(g, n->out[k]) : NULL;
            uint32_t d = piece ? cut_dim(v, piece) : RL_NONE;
            if (d == RL_NONE || (axis != RL_NONE && d != axis)) return false;
            axis = d;
            sum = rl_add(sum, piece->dim[d]);
            joined = joined || goes_as_it_is(g, piece);
        }
    }
    return joined && sum <= v->dim[axis];
}

typedef struct {
    rl_graph *g;
    rl_arena tmp;
    struct { rl_node *p; uint32_t n, cap; } order;
    const rl_nodeinfo **op; /* [node] of a cut: what is done to each of its pieces from now on */
    bool *dead;             /* [node] it was that, before */
} cutter;

static bool is_found(const rl_graph *g, const rl_nodeinfo *n) {
    const rl_kernel *k = rl_kernel_find(&rl_backend_fast, n);
    bool fits = k && k->fn == rl_fast_unary && !*n->domain && n->nin && rl_has(n->in[0]) && n->nout == 1 && rl_has(n->out[0]) && !n->ncap;
    return fits && only_looks(g, n->in[0]) && read_in_pieces(g, rl_val(g, n->out[0]));
}

/* False: there is none. */
static bool find(cutter *a) {
    const rl_graph *g = a->g;
    bool any = false;
    a->op = rl_new(&a->tmp, const rl_nodeinfo *, g->nnode);
    a->dead = rl_new(&a->tmp, bool, g->nnode);
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (!is_found(g, n)) continue;
        const rl_valinfo *v = rl_val(g, n->out[0]);
        for (uint32_t k = 0; k < v->nuse; k++) a->op[v->use[k].node.i] = rl_copy(&a->tmp, n, sizeof *n);
        a->dead[g->order.p[i].i] = any = true;
    }
    return any;
}

/* What is done to each element, to one piece of what the cut makes. */
static void put_behind(cutter *a, rl_node cut, uint32_t port, const rl_nodeinfo *op) {
    rl_graph *g = a->g;
    rl_value piece = rl_nod(g, cut)->out[port], bare = rl_graph_value(g, NULL);
    const rl_valinfo *v = rl_val(g, piece);
    rl_value *in = rl_copy(&a->tmp, op->in, op->nin * sizeof *in);
    rl_graph_set_type(g, bare, v->dtype, v->rank, rl_copy(&a->tmp, v->dim, v->rank * sizeof *v->dim));
    rl_graph_set_output(g, cut, port, bare);
    in[0] = bare;
    rl_node n = rl_graph_add(g, op->op, op->name, op->nin, in, 1, &piece);
    rl_graph_set_attrs(g, n, op->attr, op->nattr);
    rl_push(&a->tmp, a->order, n);
}

static void visit(cutter *a, rl_node node) {
    const rl_nodeinfo *op = a->op[node.i];
    if (a->dead[node.i]) return;
    rl_push(&a->tmp, a->order, node);
    if (!op) return;
    rl_graph_set_input(a->g, node, 0, op->in[0]);
    for (uint32_t k = 0, n = rl_nod(a->g, node)->nout; k < n; k++) put_behind(a, node, k, op);
}

void rl_cut_first(rl_graph *g) {
    cutter a = {.g = g};
    rl_arena_init(&a.tmp, g->ctx);
    const rl_node *was = rl_copy(&a.tmp, g->order.p, g->order.n * sizeof *was);
    if (find(&a)) {
        uint32_t n = g->order.n;
        for (uint32_t i = 0; i < n; i++) visit(&a, was[i]);
        for (uint32_t i = 0; i < n; i++)
            if (a.dead[was[i].i]) rl_graph_remove(g, was[i]);
        g->order.n = 0;
        for (uint32_t i = 0; i < a.order.n; i++) rl_push(&g->mem, g->order, a.order.p[i]);
    }
    rl_arena_free(&a.tmp);
}
