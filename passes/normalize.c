/* Give movement its own name.
 * Needs: order, types.  Keeps: order, types.  Breaks: nothing.
 *
 *   x -> Einsum "nhwc->nchw" -> y      becomes   x -> Transpose perm=[0,3,1,2] -> y
 *   x[1,8,13] -> Resize to 1,8,13 -> y becomes   x -> Identity -> y
 *   x f32 -> Cast to f32 -> y         becomes   x -> Identity -> y
 *   x, e[2,0,4] -> Concat axis=1 -> y becomes   x -> Identity -> y
 *   x[6,6,N] -> GatherND {{1,0},{2,1}} -> y becomes   x -> Reshape [36,N] -> Gather {6,13} -> y[2,N]
 *   x[6,N], a, b -> ScatterND {0,2,4} of a, then {1,3,5} of b -> y becomes   a, b -> Reshape [3,1,N] -> Concat axis=1 -> Reshape -> y
 *   x[N,6] -> SplitToSequence 2 axis=1 -> SequenceAt 1 -> y becomes   x -> Split axis=1 -> the second of three
 *
 * An equation of one operand whose output has each of its letters once only moves data.  An ellipsis stands for the dims
 * that the letters leave over; without "->" the output is the letters in alphabetical order, as in NumPy.
 *
 * Rows that are numbered or written (normalize_rows.c), and sequences (normalize_sequences.c), have files of their own.
 *
 * Nothing else needs a new name: the layout passes read Reshape, Squeeze, Unsqueeze, Flatten and Identity as they are, and
 * see themselves that a Transpose of dims of size 1 moves nothing.  DepthToSpace and SpaceToDepth stay: runtimes have one
 * kernel for them, and Reshape, Transpose, Reshape would count the same.
 *
 * Nodes that reach no output are dropped first, so that they demand nothing. */
#include "normalize.h"

#include "../src/equation.h"
#include "../src/ops.h"

/* ---- new values ---- */

rl_str rl_normal_name(const rl_graph *g, const rl_nodeinfo *n, const char *which, rl_arena *tmp) {
    rl_str name;
    for (uint32_t k = 1;; k++) {
        rl_text t = {.mem = tmp};
        rl_put(&t, "%s_%s", rl_val(g, n->out[0])->name, which);
        if (k > 1) rl_put(&t, "_%u", k);
        name = rl_internz(g->ctx, t.p);
        if (!rl_has(rl_graph_find(g, name))) return name;
    }
}

bool rl_normal_may_name(const rl_graph *g, const rl_nodeinfo *n) { return rl_val(g, n->out[0])->name != NULL; }

const char *rl_normal_numbered(const char *which, uint32_t i, rl_arena *tmp) {
    rl_text t = {.mem = tmp};
    rl_put(&t, "%s%u", which, i);
    return t.p;
}

rl_value rl_normal_value(rl_graph *g, rl_str name, rl_dtype dtype, uint32_t rank, const rl_dim *dim) {
    rl_value v = rl_graph_value(g, name);
    rl_graph_set_type(g, v, dtype, rank, dim);
    return v;
}

bool rl_normal_has_dims(const rl_valinfo *v, uint32_t rank, const rl_dim *dim) {
    return v->rank == rank && rl_same_bytes(v->dim, dim, rank * sizeof *dim);
}

/* ---- Einsum, Resize, Cast ---- */

static bool is_permutation(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp, const int64_t **perm, uint32_t *rank) {
    return n->op == RL_OP_Einsum && rl_equation_permutes(g, n, tmp, perm, rank);
}

static void make_transpose(rl_graph *g, rl_node old, const int64_t *perm, uint32_t rank) {
    rl_nodeinfo was = *rl_nod(g, old);
    rl_value x = was.in[0], y = was.out[0];
    rl_graph_remove(g, old);
    rl_node t = rl_graph_add(g, RL_OP_Transpose, was.name, 1, &x, 1, &y);
    rl_attr a = rl_attr_of_ints(g, "perm", perm, rank);
    rl_graph_set_attrs(g, t, &a, 1);
    rl_nod(g, t)->origin = was.origin;
}

rl_status rl_normalize_einsums(rl_pass_run *r) {
    rl_graph *g = r->g;
    struct { rl_node *p; uint32_t n, cap; } found = {0};
    const int64_t *perm;
    uint32_t rank;
    for (uint32_t i = 0; i < g->order.n; i++)
        if (is_permutation(g, rl_nod(g, g->order.p[i]), r->tmp, &perm, &rank)) rl_push(r->tmp, found, g->order.p[i]);
    for (uint32_t i = 0; i < found.n; i++)
        if (is_permutation(g, rl_nod(g, found.p[i]), r->tmp, &perm, &rank)) make_transpose(g, found.p[i], perm, rank);
    return found.n ? rl_graph_sort(g) : RL_OK;
}

/* A Resize to the sizes that its input has reads every element where it is, whatever its mode. */
static bool resizes_nothing(const rl_graph *g, const rl_nodeinfo *n) {
    if (n->op != RL_OP_Resize || n->since < 11 || n->nout != 1 || !rl_has(rl_in(n, 0)) || !rl_has(rl_in(n, 3))) return false;
    if (!rl_op_stretches(n)) return false;
    const rl_valinfo *x = rl_val(g, n->in[0]), *y = rl_val(g, n->out[0]);
    if (x->rank == RL_NORANK || x->rank != y->rank || x->dtype == RL_UNDEF || x->dtype != y->dtype) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!rl_dim_known(x->dim[i]) || x->dim[i] == 0 || x->dim[i] != y->dim[i]) return false;
    return true;
}

static bool casts_nothing(const rl_graph *g, const rl_nodeinfo *n) {
    if (n->op != RL_OP_Cast || n->nout != 1 || !rl_has(rl_in(n, 0))) return false;
    rl_dtype x = rl_val(g, n->in[0])->dtype;
    return x != RL_UNDEF && x == rl_attr_dtype(n, "to", RL_UNDEF);
}

static rl_status copies(rl_pass_run *r) {
    rl_graph *g = r->g;
    struct { rl_node *p; uint32_t n, cap; } found = {0};
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (resizes_nothing(g, n) || casts_nothing(g, n)) rl_push(r->tmp, found, g->order.p[i]);
    }
    for (uint32_t i = 0; i < found.n; i++) {
        rl_nodeinfo was = *rl_nod(g, found.p[i]);
        rl_value x = was.in[0], y = was.out[0];
        rl_graph_remove(g, found.p[i]);
        rl_node same = rl_graph_add(g, RL_OP_Identity, was.name, 1, &x, 1, &y);
        rl_nod(g, same)->origin = was.origin;
    }
    return found.n ? rl_graph_sort(g) : RL_OK;
}

/* ---- pieces without elements ---- */

static bool joins(const rl_valinfo *piece, const rl_valinfo *y, uint32_t axis) {
    if (piece->rank != y->rank || piece->dtype != y->dtype) return false;
    for (uint32_t d = 0; d < y->rank; d++)
        if (d != axis && piece->dim[d] != y->dim[d]) return false;
    return true;
}

/* The inputs of a Concat that have elements, in tmp; 0: all have, or none has, or something is not known. */
static uint32_t full_pieces(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp, rl_value **in) {
    uint32_t axis, nfull = 0;
    if (n->op != RL_OP_Concat || n->nout != 1 || !rl_has(n->out[0]) || !rl_has(rl_in(n, 0)) || !rl_op_axis(g, n, &axis)) return 0;
    const rl_valinfo *y = rl_val(g, n->out[0]);
    if (y->rank == RL_NORANK || y->dtype == RL_UNDEF) return 0;
    *in = rl_new(tmp, rl_value, n->nin);
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!rl_has(n->in[i]) || !joins(rl_val(g, n->in[i]), y, axis)) return 0;
        if (rl_val(g, n->in[i])->dim[axis] != 0) (*in)[nfull++] = n->in[i];
    }
    if (nfull == 1 && rl_val(g, (*in)[0])->dim[axis] != y->dim[axis]) return 0;
    return nfull < n->nin ? nfull : 0;
}

/* Half-rotated attention heads pass on the rest of each head, which has no elements where all of it is rotated. */
static rl_status pieces(rl_pass_run *r) {
    rl_graph *g = r->g;
    struct { rl_node *p; uint32_t n, cap; } found = {0};
    rl_value *in;
    for (uint32_t i = 0; i < g->order.n; i++)
        if (full_pieces(g, rl_nod(g, g->order.p[i]), r->tmp, &in)) rl_push(r->tmp, found, g->order.p[i]);
    for (uint32_t i = 0; i < found.n; i++) {
        rl_nodeinfo was = *rl_nod(g, found.p[i]);
        uint32_t n = full_pieces(g, &was, r->tmp, &in);
        rl_value y = was.out[0];
        rl_graph_remove(g, found.p[i]);
        rl_node made = rl_graph_add(g, n == 1 ? RL_OP_Identity : RL_OP_Concat, was.name, n, in, 1, &y);
        if (n > 1) rl_graph_set_attrs(g, made, was.attr, was.nattr);
        rl_nod(g, made)->origin = was.origin;
    }
    return found.n ? rl_graph_sort(g) : RL_OK;
}

rl_status rl_pass_normalize(rl_pass_run *r) {
    RL_TRY(rl_normalize_sequences(r));
    RL_TRY(pieces(r));
    RL_TRY(rl_normalize_scatters(r));
    RL_TRY(rl_pass_dce(r));
    RL_TRY(rl_normalize_einsums(r));
    RL_TRY(rl_normalize_gathers(r));
    return copies(r);
}
