/* Give movement its own name.
 * Needs: order, types.  Keeps: order, types.  Breaks: nothing.
 *
 *   x -> Einsum "nhwc->nchw" -> y      becomes   x -> Transpose perm=[0,3,1,2] -> y
 *   x[1,8,13] -> Resize to 1,8,13 -> y becomes   x -> Identity -> y
 *
 * An equation of one operand whose output has each of its letters once only moves data.  An ellipsis stands for the dims
 * that the letters leave over; without "->" the output is the letters in alphabetical order, as in NumPy.
 *
 * Nothing else needs a new name: the layout passes read Reshape, Squeeze, Unsqueeze, Flatten and Identity as they are, and
 * see themselves that a Transpose of dims of size 1 moves nothing.  DepthToSpace and SpaceToDepth stay: runtimes have one
 * kernel for them, and Reshape, Transpose, Reshape would count the same.
 *
 * Nodes that reach no output are dropped first, so that they demand nothing. */
#include "pass.h"

#include <string.h>

#include "../src/equation.h"
#include "../src/ops.h"

static bool is_permutation(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp, const int64_t **perm, uint32_t *rank) {
    rl_equation e;
    if (n->op != RL_OP_Einsum || n->nin != 1 || !rl_equation_read(g, n, tmp, &e) || e.rank[0] != e.rank[1]) return false;
    int64_t *p = rl_new(tmp, int64_t, e.rank[1] + 1);
    for (uint32_t i = 0; i < e.rank[1]; i++) /* as many letters, none twice in the result: none twice in the input */
        p[i] = (const uint8_t *)memchr(e.letter[0], e.letter[1][i], e.rank[0]) - e.letter[0];
    *perm = p;
    *rank = e.rank[1];
    return true;
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

static rl_status einsums(rl_pass_run *r) {
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

static rl_status resizes(rl_pass_run *r) {
    rl_graph *g = r->g;
    struct { rl_node *p; uint32_t n, cap; } found = {0};
    for (uint32_t i = 0; i < g->order.n; i++)
        if (resizes_nothing(g, rl_nod(g, g->order.p[i]))) rl_push(r->tmp, found, g->order.p[i]);
    for (uint32_t i = 0; i < found.n; i++) {
        rl_nodeinfo was = *rl_nod(g, found.p[i]);
        rl_value x = was.in[0], y = was.out[0];
        rl_graph_remove(g, found.p[i]);
        rl_node same = rl_graph_add(g, RL_OP_Identity, was.name, 1, &x, 1, &y);
        rl_nod(g, same)->origin = was.origin;
    }
    return found.n ? rl_graph_sort(g) : RL_OK;
}

rl_status rl_pass_normalize(rl_pass_run *r) {
    RL_TRY(rl_pass_dce(r));
    RL_TRY(einsums(r));
    return resizes(r);
}
