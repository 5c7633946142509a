/* Transposes behind convolutions, moved down the graph: see fuse.h.
 *
 *   y = Conv(x, w)                          y = Conv(x, w)
 *   t = Transpose(y) 0 2 3 1                r'= Relu(y)
 *   r = Relu(t)                 becomes     r = Transpose(r') 0 2 3 1      only where somebody reads r itself
 *   b = Transpose(r) 0 3 1 2                z = Conv(r', v)
 *   z = Conv(b, v)
 *
 * so that the Relu follows its convolution and both run as one.  A Transpose is a view in a run: where it stands costs nothing.  Nodes are
 * visited in order; of each value is known which other one it is the Transpose of, if any. */

#include "fast.h"
#include "fuse.h"
#include "kernels_fast.h"

typedef struct {
    rl_value of; /* RL_NOVALUE: it is not known to be a Transpose of a value */
    const int64_t *perm;
} turned;

typedef struct {
    rl_graph *g;
    rl_arena *tmp;
    bool device;
    uint32_t nval; /* before */
    turned *as;    /* [nval] */
    bool *image;   /* [nval] wants its channels second; not sums, which may be joined with products that want them last */
    struct {
        rl_node *p;
        uint32_t n, cap;
    } order;
} sinker;

enum { MOST = 3 /* inputs of a node that a Transpose goes through, but Concat's */ };

static turned turned_of(const sinker *a, rl_value v) {
    return rl_has(v) && v.i < a->nval ? a->as[v.i] : (turned){.of = RL_NOVALUE};
}

/* What wants its channels second, and is joined with what follows, or stands in a Concat beside what is. */
static bool makes_images(const rl_nodeinfo *n) {
    static const rl_op op[] = {RL_OP_Conv,        RL_OP_ConvTranspose,     RL_OP_BatchNormalization, RL_OP_MaxPool,
                               RL_OP_AveragePool, RL_OP_GlobalAveragePool, RL_OP_GlobalMaxPool,      RL_OP_Resize};
    bool found = false;
    for (uint32_t i = 0; i < RL_LEN(op); i++) found = found || n->op == op[i];
    return found;
}

/* Values that were added are: they were made of such. */
static bool is_image(const sinker *a, rl_value v) {
    return v.i >= a->nval || a->image[v.i];
}

/* ---- values ---- */

/* perm: v's dim i is dim perm[i] of the new value. */
static rl_value new_value(const sinker *a, rl_value v, const int64_t *perm) {
    rl_dim dim[RL_RANK];
    const rl_valinfo *was = rl_val(a->g, v);
    uint32_t rank = was->rank;
    rl_dtype type = was->dtype;
    for (uint32_t i = 0; i < rank; i++) dim[perm[i]] = was->dim[i];
    rl_value made = rl_graph_value(a->g, NULL);
    rl_graph_set_type(a->g, made, type, rank, dim);
    return made;
}

static rl_node add_node(sinker *a, rl_op op, uint32_t nin, const rl_value *in, rl_value out) {
    rl_node n = rl_graph_add(a->g, op, NULL, nin, in, 1, &out);
    rl_push(a->tmp, a->order, n);
    return n;
}

static void add_transpose(sinker *a, rl_value from, rl_value to, const int64_t *perm) {
    rl_attr attr = rl_attr_of_ints(a->g, "perm", perm, rl_val(a->g, to)->rank);
    rl_graph_set_attrs(a->g, add_node(a, RL_OP_Transpose, 1, &from, to), &attr, 1);
}

/* A constant with the same bytes in the other order: of at most one dim. */
static rl_value turned_constant(const sinker *a, rl_value v, uint32_t rank, const int64_t *perm) {
    const rl_const *c = rl_val(a->g, v)->data;
    int64_t dim[RL_RANK];
    uint32_t more = 0;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t d = i + c->rank < rank ? 1 : c->dim[i + c->rank - rank];
        dim[perm[i]] = d;
        more += d != 1;
    }
    return more > 1 ? RL_NOVALUE : rl_graph_const(a->g, NULL, c->dtype, rank, dim, c->data, c->nbyte);
}

/* Has v as many elements as y? */
static bool is_whole(const rl_graph *g, rl_value v, rl_value y) {
    const rl_valinfo *x = rl_val(g, v), *of = rl_val(g, y);
    for (uint32_t i = 0; i < of->rank; i++)
        if (x->rank != of->rank || x->dim[i] != of->dim[i]) return false;
    return true;
}

/* v as the node that makes y reads it, whose dims are in the other order; RL_NOVALUE: it cannot. A device has kernels that want rows as they are, a
 * normalization say: it does not turn a sum that something untouched by convolutions is part of (the residual of a Conformer). */
static rl_value turn_back(sinker *a, rl_value v, rl_value y, const int64_t *perm) {
    uint32_t rank = rl_val(a->g, y)->rank;
    turned t = turned_of(a, v);
    const rl_valinfo *x = rl_val(a->g, v);
    int64_t back[RL_RANK];
    if (rl_has(t.of) && rl_same_bytes(t.perm, perm, rank * sizeof *perm)) return t.of;
    if (x->rank == RL_NORANK || x->rank > rank) return RL_NOVALUE;
    bool one = true;
    for (uint32_t i = 0; i < x->rank; i++) one = one && x->dim[i] == 1;
    if (one) return v;
    rl_value c = x->data ? turned_constant(a, v, rank, perm) : RL_NOVALUE;
    if (rl_has(c) || rl_val(a->g, v)->rank != rank || (a->device && is_whole(a->g, v, y))) return c;
    for (uint32_t i = 0; i < rank; i++) back[perm[i]] = i;
    rl_value made = new_value(a, v, perm);
    add_transpose(a, v, made, back);
    return made;
}

/* ---- nodes ---- */

/* The node makes a new value from `in`; what it made is the Transpose of that. */
static void turn_node(sinker *a, rl_node n, uint32_t nin, const rl_value *in, const int64_t *perm) {
    rl_graph *g = a->g;
    rl_value old = rl_nod(g, n)->out[0], made = new_value(a, old, perm);
    for (uint32_t i = 0; i < nin; i++) rl_graph_set_input(g, n, i, in[i]);
    rl_graph_set_output(g, n, 0, made);
    rl_push(a->tmp, a->order, n);
    add_transpose(a, made, old, perm);
    a->as[old.i] = (turned){made, perm};
}

/* Pointwise: all operands in the other order. */
static bool sink_through_pointwise(sinker *a, rl_node node, uint32_t nin) {
    const rl_nodeinfo n = *rl_nod(a->g, node);
    const rl_valinfo *y = rl_val(a->g, n.out[0]);
    rl_value in[MOST];
    turned t = {.of = RL_NOVALUE};
    for (uint32_t i = 0; i < nin && !rl_has(t.of); i++)
        if (rl_has(turned_of(a, n.in[i]).of) && rl_val(a->g, n.in[i])->rank == y->rank) t = turned_of(a, n.in[i]);
    if (!rl_has(t.of)) return false;
    for (uint32_t i = 0; i < nin; i++) {
        in[i] = turn_back(a, n.in[i], n.out[0], t.perm);
        if (!rl_has(in[i])) return false;
    }
    turn_node(a, node, nin, in, t.perm);
    return true;
}

static bool sink_through_pad(sinker *a, rl_node node) {
    rl_graph *g = a->g;
    const rl_nodeinfo n = *rl_nod(g, node);
    turned t = turned_of(a, n.in[0]);
    uint32_t rank = rl_val(g, n.out[0])->rank, count = 0;
    const int64_t *pads = NULL;
    int64_t to[2 * RL_RANK];
    if (!rl_has(t.of) || n.since < 11 || n.nin < 2 || rl_has(rl_in(&n, 3)) || !rl_has(n.in[1])) return false;
    if (!rl_const_ints(g, n.in[1], a->tmp, &pads, &count) || count != 2 * rank) return false;
    for (uint32_t i = 0; i < rank; i++) to[t.perm[i]] = pads[i], to[rank + t.perm[i]] = pads[rank + i];
    const rl_value in[] = {t.of, rl_graph_const_i64(g, NULL, count, to)};
    turn_node(a, node, 2, in, t.perm);
    return true;
}

/* All of whose pieces are Transposes in the same order. */
static bool sink_through_concat(sinker *a, rl_node node) {
    rl_graph *g = a->g;
    const rl_nodeinfo n = *rl_nod(g, node);
    turned first = turned_of(a, rl_in(&n, 0));
    uint32_t rank = rl_val(g, n.out[0])->rank;
    int64_t axis = rl_attr_int(&n, "axis", 0);
    axis = axis < 0 ? axis + rank : axis;
    if (!rl_has(first.of) || axis < 0 || axis >= rank) return false;
    rl_value *in = rl_new(a->tmp, rl_value, n.nin);
    for (uint32_t i = 0; i < n.nin; i++) {
        turned t = turned_of(a, n.in[i]);
        if (!rl_has(t.of) || !rl_same_bytes(t.perm, first.perm, rank * sizeof *t.perm)) return false;
        in[i] = t.of;
    }
    rl_attr attr = rl_attr_of_int(g, "axis", first.perm[axis]);
    rl_graph_set_attrs(g, node, &attr, 1);
    turn_node(a, node, n.nin, in, first.perm);
    return true;
}

/* Is v read by nodes' inputs alone? */
static bool is_inner(const rl_graph *g, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    bool inner = !x->is_output;
    for (uint32_t i = 0; i < x->nuse; i++) inner = inner && x->use[i].slot < rl_nod(g, x->use[i].node)->nin;
    return inner;
}

/* One of a Transpose is one of what that reads; where they cancel, nobody reads this one any more. */
static void follow_transpose(sinker *a, rl_node node) {
    rl_graph *g = a->g;
    const rl_nodeinfo *n = rl_nod(g, node);
    rl_value x = n->in[0], y = n->out[0];
    const rl_attr *attr = rl_attr_ints(n, "perm");
    uint32_t rank = rl_val(g, x)->rank;
    turned t = turned_of(a, x);
    if (!rl_has(t.of) && !is_image(a, x)) return;
    int64_t *perm = rl_new(&g->mem, int64_t, rank);
    bool same = true;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t d = attr && attr->n == rank ? attr->ints[i] : rank - 1 - i;
        if (d < 0 || d >= rank) return;
        perm[i] = rl_has(t.of) ? t.perm[d] : d;
        same = same && perm[i] == i;
    }
    a->as[y.i] = (turned){rl_has(t.of) ? t.of : x, perm};
    if (same && is_inner(g, y)) rl_graph_replace_uses(g, y, a->as[y.i].of);
    if (same || !rl_has(t.of)) return;
    rl_attr whole = rl_attr_of_ints(g, "perm", perm, rank);
    rl_graph_set_input(g, node, 0, t.of);
    rl_graph_set_attrs(g, node, &whole, 1);
}

/* A node with the inputs it must have, one output, and dims whose number is known. */
static bool is_plain(const rl_graph *g, const rl_nodeinfo *n, uint32_t nin) {
    if (n->nin < nin || n->nout != 1 || !rl_has(n->out[0]) || n->ncap) return false;
    uint32_t rank = rl_val(g, n->out[0])->rank;
    for (uint32_t i = 0; i < nin; i++)
        if (!rl_has(n->in[i])) return false;
    return rank != RL_NORANK && rank <= RL_RANK && rl_dtype_bits(rl_val(g, n->out[0])->dtype) > 0;
}

static void visit(sinker *a, rl_node node) {
    const rl_nodeinfo *n = rl_nod(a->g, node);
    const rl_kernel *k = rl_kernel_find(&rl_backend_fast, n);
    uint32_t pointwise = k && k->fn == rl_fast_unary ? 1 : k && k->fn == rl_fast_binary ? 2 : 0;
    bool done = false, image = makes_images(n) || (pointwise == 1 && n->nin && rl_has(n->in[0]) && is_image(a, n->in[0]));
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i])) a->image[n->out[i].i] = image;
    if (pointwise && is_plain(a->g, n, pointwise))
        done = sink_through_pointwise(a, node, pointwise);
    else if (n->op == RL_OP_Pad && is_plain(a->g, n, 1))
        done = sink_through_pad(a, node);
    else if (n->op == RL_OP_Concat && is_plain(a->g, n, 1))
        done = sink_through_concat(a, node);
    if (done) return;
    if (n->op == RL_OP_Transpose && is_plain(a->g, n, 1)) follow_transpose(a, node);
    rl_push(a->tmp, a->order, node);
}

/* Transposes that nobody reads, last first. */
static void drop_unread(const sinker *a) {
    rl_graph *g = a->g;
    bool *dead = rl_new(a->tmp, bool, g->nnode);
    uint32_t *gone = rl_new(a->tmp, uint32_t, g->nval); /* readers of a value that are dead */
    for (uint32_t i = g->order.n; i-- > 0;) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (n->op != RL_OP_Transpose || !is_plain(g, n, 1)) continue;
        const rl_valinfo *y = rl_val(g, n->out[0]);
        if (y->is_output || y->nuse > gone[n->out[0].i]) continue;
        dead[g->order.p[i].i] = true;
        gone[n->in[0].i]++;
    }
    rl_graph_remove_all(g, dead);
}

void rl_sink_transposes(rl_graph *g, bool device) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    sinker a = {.g = g, .tmp = &tmp, .device = device, .nval = g->nval, .as = rl_new(&tmp, turned, g->nval), .image = rl_new(&tmp, bool, g->nval)};
    for (uint32_t i = 0; i < a.nval; i++) a.as[i].of = RL_NOVALUE;
    const rl_node *was = rl_copy(&tmp, g->order.p, g->order.n * sizeof *was);
    for (uint32_t i = 0, n = g->order.n; i < n; i++) visit(&a, was[i]);
    g->order.n = 0;
    for (uint32_t i = 0; i < a.order.n; i++) rl_push(&g->mem, g->order, a.order.p[i]);
    drop_unread(&a);
    rl_arena_free(&tmp);
}
