/* Sequences of which constants tell the elements, for normalize.c: who reads one reads its elements.
 *
 *   x[N,7] -> SplitToSequence 3 axis=1 -> s -> SequenceAt 2 -> y         becomes   x -> Split {3,3,1} axis=1 -> the third one, y
 *   x[N,2] -> SplitToSequence axis=1 keepdims=0 -> s -> SequenceAt 0 -> y becomes   x -> Split {1,1} axis=1 -> Squeeze 1 -> y
 *   a, b -> SequenceConstruct -> ConcatFromSequence axis=0 new_axis=1 -> y becomes  a, b -> Unsqueeze 0 -> Concat axis=0 -> y
 *
 * So exporters write what a program does with lists of tensors, and no op lets data through a sequence in another order.  A SplitToSequence becomes
 * a Split and a SequenceConstruct only where everything that reads it can do without the sequence: else elements would be copied twice. */
#include "normalize.h"

#include "../src/sequence.h"

static bool has_type(const rl_valinfo *a, const rl_valinfo *b) {
    return a->dtype == b->dtype && a->rank != RL_NORANK && rl_normal_has_dims(a, b->rank, b->dim);
}

/* ---- pieces ---- */

/* Is this all that is done with the sequence: its elements, of which there are so many, are taken or joined? */
static bool is_taken_apart(const rl_graph *g, rl_value s, uint32_t count, rl_arena *tmp) {
    const rl_valinfo *v = rl_val(g, s);
    uint32_t place;
    for (uint32_t i = 0; i < v->nuse; i++) {
        const rl_nodeinfo *n = rl_nod(g, v->use[i].node);
        bool takes = n->op == RL_OP_SequenceAt && rl_sequence_place(g, rl_in(n, 1), count, tmp, &place);
        if (v->use[i].slot != 0 || (!takes && n->op != RL_OP_ConcatFromSequence)) return false;
    }
    return v->nuse && !v->is_output;
}

static bool may_split(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp, rl_cuts *c) {
    return n->op == RL_OP_SplitToSequence && rl_has(rl_out(n, 0)) && rl_sequence_cuts(g, n, tmp, c) && is_taken_apart(g, n->out[0], c->n, tmp) &&
           rl_normal_may_name(g, n);
}

/* With a dim of size 1 at axis (Unsqueeze), or without it (Squeeze). */
static void add_view(rl_graph *g, rl_op op, rl_value x, int64_t axis, rl_value y) {
    rl_graph_add_listed(g, op, NULL, x, "axes", 1, &axis, NULL, 1, &y);
}

static void make_split(rl_graph *g, rl_node old, const rl_cuts *c, rl_arena *tmp) {
    rl_nodeinfo was = *rl_nod(g, old);
    const rl_valinfo *x = rl_val(g, was.in[0]);
    uint32_t rank = x->rank;
    rl_dtype dtype = x->dtype;
    rl_dim *dim = rl_copy(tmp, x->dim, rank * sizeof *dim), *rest = rl_copy(tmp, dim, rank * sizeof *dim);
    for (uint32_t k = c->axis + 1; k < rank; k++) rest[k - 1] = dim[k];
    rl_value *piece = rl_new(tmp, rl_value, c->n), *item = rl_new(tmp, rl_value, c->n);
    for (uint32_t i = 0; i < c->n; i++) {
        dim[c->axis] = c->size[i];
        item[i] = piece[i] = rl_normal_value(g, rl_normal_name(g, &was, rl_normal_numbered("piece", i, tmp), tmp), dtype, rank, dim);
        if (!c->keeps) item[i] = rl_normal_value(g, rl_normal_name(g, &was, rl_normal_numbered("item", i, tmp), tmp), dtype, rank - 1, rest);
    }
    rl_graph_remove(g, old);
    const rl_attr axis = rl_attr_of_int(g, "axis", c->axis);
    rl_node made = rl_graph_add_listed(g, RL_OP_Split, was.name, was.in[0], "split", c->n, c->size, &axis, c->n, piece);
    rl_nod(g, made)->origin = was.origin;
    for (uint32_t i = 0; i < c->n && !c->keeps; i++) add_view(g, RL_OP_Squeeze, piece[i], c->axis, item[i]);
    rl_graph_add(g, RL_OP_SequenceConstruct, NULL, c->n, item, 1, &was.out[0]);
}

/* ---- elements ---- */

/* The SequenceConstruct that makes what the node reads, or NULL. */
static const rl_nodeinfo *construct(const rl_graph *g, const rl_nodeinfo *n) {
    rl_node def = rl_has(rl_in(n, 0)) ? rl_val(g, n->in[0])->def : RL_NONODE;
    const rl_nodeinfo *c = def.i != RL_NONE && rl_nod(g, def)->op == RL_OP_SequenceConstruct ? rl_nod(g, def) : NULL;
    for (uint32_t i = 0; c && i < c->nin; i++)
        if (!rl_has(c->in[i])) return NULL;
    return c;
}

static bool may_take(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp, uint32_t *place) {
    const rl_nodeinfo *c = n->op == RL_OP_SequenceAt && rl_has(rl_out(n, 0)) ? construct(g, n) : NULL;
    return c && rl_sequence_place(g, rl_in(n, 1), c->nin, tmp, place) && has_type(rl_val(g, c->in[*place]), rl_val(g, n->out[0]));
}

static void make_identity(rl_graph *g, rl_node old, rl_value x) {
    rl_nodeinfo was = *rl_nod(g, old);
    rl_graph_remove(g, old);
    rl_nod(g, rl_graph_add(g, RL_OP_Identity, was.name, 1, &x, 1, &was.out[0]))->origin = was.origin;
}

/* Do the elements, with a dim more at axis if they lie side by side, make y? */
static bool join(const rl_graph *g, const rl_nodeinfo *c, const rl_valinfo *y, uint32_t axis, bool beside) {
    for (uint32_t i = 0; i < c->nin; i++) {
        const rl_valinfo *x = rl_val(g, c->in[i]);
        if (x->dtype != y->dtype || x->rank == RL_NORANK || x->rank + beside != y->rank) return false;
        for (uint32_t k = 0; k < y->rank; k++)
            if (k != axis && x->dim[k - (beside && k > axis)] != y->dim[k]) return false;
    }
    return c->nin > 0;
}

static bool may_join(const rl_graph *g, const rl_nodeinfo *n, uint32_t *axis, bool *beside) {
    const rl_nodeinfo *c = n->op == RL_OP_ConcatFromSequence && rl_has(rl_out(n, 0)) ? construct(g, n) : NULL;
    const rl_valinfo *y = c ? rl_val(g, n->out[0]) : NULL;
    if (!c || y->rank == RL_NORANK) return false;
    int64_t at = rl_attr_int(n, "axis", 0);
    at += at < 0 ? y->rank : 0;
    *axis = (uint32_t)at;
    *beside = rl_attr_int(n, "new_axis", 0) != 0;
    return at >= 0 && at < y->rank && join(g, c, y, *axis, *beside) && (!*beside || rl_normal_may_name(g, n));
}

static void make_concat(rl_graph *g, rl_node old, uint32_t axis, bool beside, rl_arena *tmp) {
    rl_nodeinfo was = *rl_nod(g, old);
    const rl_nodeinfo *c = construct(g, &was);
    uint32_t n = c->nin, rank = rl_val(g, was.out[0])->rank;
    rl_dtype dtype = rl_val(g, was.out[0])->dtype;
    rl_dim *dim = rl_copy(tmp, rl_val(g, was.out[0])->dim, rank * sizeof *dim);
    rl_value *in = rl_copy(tmp, c->in, n * sizeof *in);
    rl_graph_remove(g, old);
    dim[axis] = 1;
    for (uint32_t i = 0; i < n && beside; i++) {
        rl_value piece = rl_normal_value(g, rl_normal_name(g, &was, rl_normal_numbered("piece", i, tmp), tmp), dtype, rank, dim);
        add_view(g, RL_OP_Unsqueeze, in[i], axis, piece);
        in[i] = piece;
    }
    const rl_attr a = rl_attr_of_int(g, "axis", axis);
    rl_node made = rl_graph_add(g, RL_OP_Concat, was.name, n, in, 1, &was.out[0]);
    rl_graph_set_attrs(g, made, &a, 1);
    rl_nod(g, made)->origin = was.origin;
}

rl_status rl_normalize_sequences(rl_pass_run *r) {
    rl_graph *g = r->g;
    rl_cuts c;
    uint32_t norder = g->order.n, made = 0, place, axis;
    bool beside;
    rl_node *n = rl_copy(r->tmp, g->order.p, norder * sizeof *n);
    for (uint32_t i = 0; i < norder; i++) { /* in order: a sequence is made before it is read */
        const rl_nodeinfo *at = rl_nod(g, n[i]);
        if (may_split(g, at, r->tmp, &c)) make_split(g, n[i], &c, r->tmp);
        else if (may_take(g, at, r->tmp, &place)) make_identity(g, n[i], construct(g, at)->in[place]);
        else if (may_join(g, at, &axis, &beside)) make_concat(g, n[i], axis, beside, r->tmp);
        else continue;
        made++;
    }
    return made ? rl_graph_sort(g) : RL_OK;
}
