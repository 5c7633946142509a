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

#include "../src/ops.h"

#define MAXRANK 32
#define ELLIPSIS 1 /* a label for the first dim of "...", 2 for the second: no letter is that small */

/* One side of an equation: a label for each dim. */
typedef struct { uint8_t label[MAXRANK]; uint32_t n; } side;

static bool push(side *s, uint32_t label) {
    if (s->n == MAXRANK) return false;
    s->label[s->n++] = (uint8_t)label;
    return true;
}

/* Reads labels from [p, end); "..." becomes ndots of them. */
static bool read_side(const char *p, const char *end, uint32_t ndots, side *s) {
    bool dots = false;
    s->n = 0;
    for (; p < end; p++) {
        if (*p == ' ') continue;
        if (*p == '.') {
            if (dots || end - p < 3 || p[1] != '.' || p[2] != '.') return false;
            dots = true;
            p += 2;
            for (uint32_t i = 0; i < ndots; i++)
                if (!push(s, ELLIPSIS + i)) return false;
        } else if (!rl_is_letter(*p) || !push(s, (uint8_t)*p)) {
            return false;
        }
    }
    return true;
}

static const char *find_arrow(const char *p, const char *end) {
    for (; p + 1 < end; p++)
        if (p[0] == '-' && p[1] == '>') return p;
    return NULL;
}

/* The dims that an ellipsis stands for in an operand of this rank; false when there are too few dims. */
static bool count_dots(const char *p, const char *end, uint32_t rank, uint32_t *ndots) {
    uint32_t letters = 0;
    bool dots = false;
    for (; p < end; p++) {
        letters += rl_is_letter(*p);
        dots |= *p == '.';
    }
    *ndots = dots && rank >= letters ? rank - letters : 0;
    return dots ? rank >= letters : rank == letters;
}

/* Labels in the order that NumPy gives an output it was not told: the ellipsis, then by letter. */
static void sort(side *s) {
    for (uint32_t i = 1; i < s->n; i++)
        for (uint32_t k = i; k > 0 && s->label[k - 1] > s->label[k]; k--) {
            uint8_t t = s->label[k];
            s->label[k] = s->label[k - 1];
            s->label[k - 1] = t;
        }
}

static bool find_perm(const side *in, const side *out, int64_t *perm) {
    if (in->n != out->n) return false;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        const uint8_t *at = memchr(in->label, out->label[i], in->n);
        if (!at || (seen >> (at - in->label) & 1)) return false;
        seen |= (uint64_t)1 << (at - in->label);
        perm[i] = at - in->label;
    }
    return true; /* as many labels, none twice in the output: none twice in the input */
}

static bool is_permutation(const rl_graph *g, const rl_nodeinfo *n, int64_t *perm, uint32_t *rank) {
    if (n->op != RL_OP_Einsum || n->nin != 1 || n->nout != 1) return false;
    const rl_attr *a = rl_attr_find(n, "equation");
    if (!a || a->kind != RL_ATTR_STRING) return false;
    if (!rl_has(n->in[0]) || rl_val(g, n->in[0])->rank == RL_NORANK || rl_val(g, n->in[0])->rank > MAXRANK) return false;
    const char *p = (const char *)a->s.p, *end = p + a->s.n, *arrow = find_arrow(p, end), *left = arrow ? arrow : end;
    uint32_t ndots;
    side in, out;
    *rank = rl_val(g, n->in[0])->rank;
    if (!count_dots(p, left, *rank, &ndots) || !read_side(p, left, ndots, &in)) return false;
    out = in;
    if (!arrow) sort(&out);
    else if (!read_side(arrow + 2, end, ndots, &out)) return false;
    return find_perm(&in, &out, perm);
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
    int64_t perm[MAXRANK];
    uint32_t rank;
    for (uint32_t i = 0; i < g->order.n; i++)
        if (is_permutation(g, rl_nod(g, g->order.p[i]), perm, &rank)) rl_push(r->tmp, found, g->order.p[i]);
    for (uint32_t i = 0; i < found.n; i++)
        if (is_permutation(g, rl_nod(g, found.p[i]), perm, &rank)) make_transpose(g, found.p[i], perm, rank);
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
