/* Which orders each op may take (problem.md, sections 3 and 4).
 *
 * An op is described by labels, its own dims, each attached to a dim of each operand that has it:
 *   Add x[N,C,H] y[C,1]       labels N, C, H;  y has C and, as size 1, H
 *   Softmax x axis=1          labels N, C (axis), H
 *   MatMul A[b,M,K] B[K,N]    labels b, M, K, N
 * Free labels are linked: their dims are refined alike.  After refinement forms.c makes tokens of them.  An op that no handler
 * understands is fixed: logical order on every operand.
 *
 * One handler per class of ops.def; the facts of one op are nowhere else.
 * Needs: shapes.  Keeps: the graph. */
#include "plan.h"
#include "../src/eval.h"
#include <string.h>

#define MAXLABEL 32

typedef struct {
    rl_plan *p;
    const rl_graph *g;
    const rl_nodeinfo *n;
    rl_oplegal *op;
    rl_label label[MAXLABEL];
    uint32_t nlabel;
    bool ok;
} builder;

/* ---- building labels ---- */

static uint32_t rank_of(const builder *b, rl_value v) { return rl_has(v) ? rl_val(b->g, v)->rank : RL_NORANK; }
static rl_dim size_of(const builder *b, uint32_t operand, uint32_t dim)
{
    return rl_val(b->g, b->op->operand[operand].tensor)->dim[dim];
}

static uint32_t add_operand(builder *b, uint32_t slot, bool out)
{
    rl_value v = out ? rl_out(b->n, slot) : rl_in(b->n, slot);
    if (!rl_has(v) || rank_of(b, v) == RL_NORANK || rank_of(b, v) > RL_MAXATOM) {
        b->ok = false;
        return 0;
    }
    b->op->operand[b->op->noperand] = (rl_operand){.tensor = v, .slot = slot, .out = out};
    return b->op->noperand++;
}

static uint32_t add_label(builder *b, rl_role role, uint32_t group)
{
    uint32_t max = b->n->nin + b->n->nout;
    if (b->nlabel == MAXLABEL) {
        b->ok = false;
        return 0;
    }
    rl_label *l = &b->label[b->nlabel];
    *l = (rl_label){.role = role, .group = group, .tail = RL_NONE};
    l->unit = rl_new(b->p->draft, uint32_t, 3 * (size_t)max);
    l->after = l->unit + max;
    l->dim = (int32_t *)(l->after + max);
    for (uint32_t i = 0; i < max; i++) {
        l->dim[i] = -1;
        l->unit[i] = l->after[i] = RL_NONE;
    }
    return b->nlabel++;
}

static void at(builder *b, uint32_t label, uint32_t operand, uint32_t dim)
{
    if (!b->ok) return;
    if (dim >= rank_of(b, b->op->operand[operand].tensor)) {
        b->ok = false;
        return;
    }
    b->label[label].dim[operand] = (int32_t)dim;
    b->label[label].unit[operand] = b->p->member[b->op->operand[operand].tensor.i].unit[dim];
}

bool rl_is_input_size(const rl_graph *g, rl_dim d)
{
    for (uint32_t i = 0; i < g->input.n; i++) {
        const rl_valinfo *x = rl_val(g, g->input.p[i]);
        for (uint32_t k = 0; x->rank != RL_NORANK && k < x->rank; k++)
            if (x->dim[k] == d) return true;
    }
    return false;
}

/* ---- handlers, one per class ---- */

static void pointwise(builder *b)
{
    uint32_t out = add_operand(b, 0, true);
    if (!b->ok) return;
    uint32_t rank = rank_of(b, b->n->out[0]);
    for (uint32_t d = 0; d < rank; d++) at(b, add_label(b, RL_T_FREE, 0), out, d);
    for (uint32_t k = 1; k < b->n->nout && b->ok; k++) {
        if (!rl_has(b->n->out[k])) continue;
        uint32_t o = add_operand(b, k, true);
        if (b->ok && rank_of(b, b->n->out[k]) != rank) b->ok = false;
        for (uint32_t d = 0; d < rank && b->ok; d++) at(b, d, o, d);
    }
    for (uint32_t k = 0; k < b->n->nin && b->ok; k++) {
        if (!rl_has(b->n->in[k])) continue;
        if (b->n->op == RL_OP_CastLike && k == 1) continue; /* only its type is read */
        uint32_t o = add_operand(b, k, false), r = b->ok ? rank_of(b, b->n->in[k]) : 0;
        if (r > rank) b->ok = false;
        for (uint32_t d = 0; d < r && b->ok; d++) at(b, rank - r + d, o, d);
    }
    if (b->n->op == RL_OP_Dropout && rl_has(rl_in(b->n, 2))) b->ok = false; /* may be training */
}

/* Labels for all dims of input 0, and of output `out` where it has the same rank. */
static bool like_input(builder *b, uint32_t nout)
{
    uint32_t x = add_operand(b, 0, false);
    if (!b->ok) return false;
    uint32_t rank = rank_of(b, b->n->in[0]);
    for (uint32_t d = 0; d < rank; d++) at(b, add_label(b, RL_T_FREE, 0), x, d);
    for (uint32_t k = 0; k < nout && b->ok; k++) {
        if (!rl_has(rl_out(b->n, k))) continue;
        uint32_t y = add_operand(b, k, true);
        if (b->ok && rank_of(b, b->n->out[k]) != rank) b->ok = false;
        for (uint32_t d = 0; d < rank && b->ok; d++) at(b, d, y, d);
    }
    return b->ok;
}

static void expand(builder *b)
{
    uint32_t y = add_operand(b, 0, true), x = add_operand(b, 0, false);
    if (!b->ok) return;
    uint32_t rank = rank_of(b, b->n->out[0]), r = rank_of(b, b->n->in[0]);
    for (uint32_t d = 0; d < rank; d++) at(b, add_label(b, RL_T_FREE, 0), y, d);
    for (uint32_t d = 0; d < r; d++) at(b, rank - r + d, x, d);
    for (uint32_t d = 0; d < rank && b->ok; d++) { /* what is expanded must be a number, to be written again */
        rl_dim from = d + r >= rank ? size_of(b, x, d + r - rank) : 1, to = size_of(b, y, d);
        if (from != to && !rl_dim_known(to)) b->ok = false;
    }
}

static void reduce_over(builder *b, const bool *gone, bool keep, rl_role role)
{
    uint32_t x = add_operand(b, 0, false), y = add_operand(b, 0, true);
    if (!b->ok) return;
    uint32_t rank = rank_of(b, b->n->in[0]), at_out = 0;
    for (uint32_t d = 0; d < rank && b->ok; d++) {
        uint32_t l = add_label(b, gone[d] ? role : RL_T_FREE, 0);
        at(b, l, x, d);
        if (gone[d] && !keep) continue;
        at(b, l, y, at_out++);
        if (gone[d]) b->label[l].unit[y] = RL_NONE;
    }
    if (at_out != rank_of(b, b->n->out[0])) b->ok = false;
}

/* Axes that are computed: every dim may be reduced, so each is a block; lower.c maps the axes with a small Gather. */
static void reduce_unknown_axes(builder *b)
{
    if (!rl_op_keepdims(b->n) || !like_input(b, 1)) {
        b->ok = false;
        return;
    }
    for (uint32_t d = 0; d < rank_of(b, b->n->in[0]); d++) {
        b->label[d].role = RL_T_AXIS;
        if (size_of(b, 0, d) == 1) b->ok = false;
    }
}

static void reduce(builder *b)
{
    bool gone[RL_MAXATOM] = {false}, all = false;
    const uint32_t *axes;
    uint32_t naxes, rank = rank_of(b, rl_in(b->n, 0));
    if (rank <= RL_MAXATOM && !rl_op_axes(b->g, b->n, b->p->draft, &axes, &naxes, &all)) {
        reduce_unknown_axes(b);
        return;
    }
    if (rank > RL_MAXATOM) {
        b->ok = false;
        return;
    }
    if (all && rl_attr_int(b->n, "noop_with_empty_axes", 0)) {
        b->ok = false; /* an identity, rare; left alone */
        return;
    }
    for (uint32_t d = 0; d < rank; d++) gone[d] = all;
    for (uint32_t i = 0; i < naxes; i++) gone[axes[i]] = true;
    reduce_over(b, gone, rl_op_keepdims(b->n), RL_T_REDUCED);
}

static void global_pool(builder *b)
{
    bool gone[RL_MAXATOM] = {false};
    uint32_t rank = rank_of(b, rl_in(b->n, 0));
    int64_t power = b->n->op == RL_OP_GlobalLpPool ? rl_attr_int(b->n, "p", 2) : 1;
    if (rank > RL_MAXATOM || rank < 3 || power < 1 || power > 2) {
        b->ok = false;
        return;
    }
    for (uint32_t d = 2; d < rank; d++) gone[d] = true;
    reduce_over(b, gone, true, RL_T_REDUCED);
}

static void arg(builder *b)
{
    bool gone[RL_MAXATOM] = {false};
    uint32_t axis, rank = rank_of(b, rl_in(b->n, 0));
    if (rank > RL_MAXATOM || !rl_op_axis(b->g, b->n, &axis)) {
        b->ok = false;
        return;
    }
    gone[axis] = true;
    reduce_over(b, gone, rl_op_keepdims(b->n), RL_T_AXIS);
}

static void along(builder *b)
{
    uint32_t axis;
    if (!like_input(b, b->n->nout) || !rl_op_axis(b->g, b->n, &axis)) {
        b->ok = false;
        return;
    }
    uint32_t rank = rank_of(b, b->n->in[0]);
    bool flat = b->n->since < 13 &&
                (b->n->op == RL_OP_Softmax || b->n->op == RL_OP_LogSoftmax || b->n->op == RL_OP_Hardmax);
    if (!flat) {
        b->label[axis].role = RL_T_AXIS;
        return;
    }
    bool any = false;
    for (uint32_t d = axis; d < rank; d++) { /* normalized together: a tail of blocks, last and in order */
        if (size_of(b, 0, d) == 1) continue;
        any = true;
        b->label[d].role = RL_T_AXIS;
        b->label[d].group = 1 + (d - axis);
        if (b->label[d].group >= RL_MAXGROUP) b->ok = false;
    }
    if (!any) b->ok = false;
}

/* The axis of the whole is (pieces, piece) when all pieces are equally long. */
static bool equal_pieces(builder *b, uint32_t whole, uint32_t first, uint32_t npiece, uint32_t axis)
{
    rl_dim piece = size_of(b, first, axis), q;
    if (npiece < 2) return false;
    for (uint32_t i = 1; i < npiece; i++)
        if (size_of(b, first + i, axis) != piece) return false;
    rl_dim total = size_of(b, whole, axis);
    if (!rl_dim_known(piece) || piece == 0 || !rl_dim_div(b->g->ctx, total, piece, &q) || q != (rl_dim)npiece) return false;
    uint32_t w = b->p->member[b->op->operand[whole].tensor.i].unit[axis], part[2];
    part[0] = rl_unit_new(b->p, (rl_dim)npiece);
    part[1] = piece == 1 ? RL_NONE : rl_unit_new(b->p, piece);
    if (!rl_units_match(b->p, &w, 1, part, piece == 1 ? 1 : 2)) return false;
    uint32_t l = add_label(b, RL_T_PIECES, 0);
    if (!b->ok) return false;
    b->label[l].dim[whole] = (int32_t)axis;
    b->label[l].unit[whole] = part[0];
    b->label[axis].role = RL_T_FREE;
    b->label[axis].dim[whole] = (int32_t)axis;
    b->label[axis].unit[whole] = part[1];
    b->label[axis].after[whole] = part[0];
    return true;
}

static void concat_or_split(builder *b, bool concat)
{
    uint32_t npiece = concat ? b->n->nin : b->n->nout, axis;
    uint32_t whole = add_operand(b, 0, concat);
    if (!b->ok) return;
    rl_value w = b->op->operand[whole].tensor;
    uint32_t rank = rank_of(b, w);
    int64_t a = rl_attr_int(b->n, "axis", 0);
    if (a < 0) a += rank;
    if (a < 0 || a >= rank) {
        b->ok = false;
        return;
    }
    axis = (uint32_t)a;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t l = add_label(b, d == axis ? RL_T_AXIS : RL_T_FREE, 0);
        at(b, l, whole, d);
    }
    for (uint32_t k = 0; k < npiece && b->ok; k++) {
        uint32_t o = add_operand(b, k, !concat);
        if (b->ok && rank_of(b, b->op->operand[o].tensor) != rank) b->ok = false;
        for (uint32_t d = 0; d < rank && b->ok; d++) at(b, d, o, d);
        for (uint32_t d = 0; d < rank && b->ok; d++) /* sizes other than the axis's agree, size 1 included */
            if (d != axis && size_of(b, o, d) != size_of(b, whole, d)) b->ok = false;
    }
    if (b->ok) equal_pieces(b, whole, whole + 1, npiece, axis);
}

/* The leaves at the end of all pieces' axes that agree. Returns how many; leaf holds those of piece 0. */
static uint32_t common_tail(rl_plan *p, const rl_oplegal *op, const rl_label *axis, uint32_t *leaf)
{
    uint32_t first[RL_MAXATOM], other[RL_MAXATOM], n = 0, k = RL_NONE;
    for (uint32_t o = 1; o < op->noperand; o++) {
        if (axis->unit[o] == RL_NONE) return 0;
        uint32_t m = rl_unit_leaves(p, axis->unit[o], o == 1 ? first : other, RL_MAXATOM), i = 0;
        if (m > RL_MAXATOM) return 0;
        if (o == 1) {
            n = k = m;
            continue;
        }
        while (i < k && i < m && p->unit.p[first[n - 1 - i]].size == p->unit.p[other[m - 1 - i]].size) i++;
        k = i;
    }
    if (k == RL_NONE) return 0;
    memcpy(leaf, first + (n - k), k * sizeof *leaf);
    return k;
}

/* Split and Concat of unequal pieces whose innermost atoms agree: only what lies outside of them is a block
 * ("common inner part").  After refinement, since it is the producers' Reshapes that show the atoms. */
void rl_legal_inner(rl_plan *p, uint32_t i)
{
    rl_oplegal *op = &p->op.p[i];
    uint32_t l = 0, leaf[RL_MAXATOM], other[RL_MAXATOM], k, unit[2];
    rl_class cls = rl_op_class(rl_nod(p->g, op->node)->op);
    if (op->fixed || (cls != RL_CONCAT && cls != RL_SPLIT) || op->noperand < 3) return;
    while (l < op->nlabel && op->label[l].role != RL_T_AXIS) l++;
    if (l == op->nlabel || op->label[l].unit[0] == RL_NONE || (k = common_tail(p, op, &op->label[l], leaf)) == 0) return;
    rl_dim inner = 1, outer;
    for (uint32_t j = 0; j < k; j++) inner = rl_dim_mul(p->g->ctx, inner, p->unit.p[leaf[j]].size);
    if (!rl_dim_div(p->g->ctx, p->unit.p[op->label[l].unit[0]].size, inner, &outer) || outer == 1) return;
    unit[0] = rl_unit_new(p, outer);
    unit[1] = rl_unit_new(p, inner);
    if (!rl_units_match(p, &unit[1], 1, leaf, k) || !rl_units_match(p, &op->label[l].unit[0], 1, unit, 2)) return;
    for (uint32_t o = 2; o < op->noperand; o++) {
        uint32_t m = rl_unit_leaves(p, op->label[l].unit[o], other, RL_MAXATOM);
        if (m > RL_MAXATOM || m < k || !rl_units_match(p, leaf, k, other + (m - k), k)) return;
    }
    rl_label *label = rl_new(p->draft, rl_label, op->nlabel + 1);
    memcpy(label, op->label, op->nlabel * sizeof *label);
    label[l].tail = unit[1];
    label[op->nlabel] = label[l];
    label[op->nlabel].role = RL_T_FREE;
    op->label = label;
    op->nlabel++;
}

static void slice(builder *b)
{
    if (!like_input(b, 1)) return;
    const uint32_t *axes;
    uint32_t naxes, rank = rank_of(b, b->n->in[0]);
    bool all;
    if (!rl_op_axes(b->g, b->n, b->p->draft, &axes, &naxes, &all)) {
        b->ok = false;
        return;
    }
    const rl_attr *s = rl_attr_ints(b->n, "starts");
    const rl_valinfo *v = rl_has(rl_in(b->n, 1)) ? rl_val(b->g, b->n->in[1]) : NULL;
    if (!s && !v) {
        b->ok = false;
        return;
    }
    if (all) { /* no axes: the first ones, as many as there are starts */
        if (s) naxes = s->n;
        else if (v && v->rank == 1 && rl_dim_known(v->dim[0])) naxes = (uint32_t)v->dim[0];
        else naxes = rank;
    }
    for (uint32_t i = 0; i < naxes && i < rank; i++) b->label[all ? i : axes[i]].role = RL_T_AXIS;
}

static void pad(builder *b)
{
    if (!like_input(b, 1)) return;
    const uint32_t *axes;
    const int64_t *pads;
    uint32_t naxes, npads, rank = rank_of(b, b->n->in[0]);
    bool all = true;
    const rl_attr *a = rl_attr_ints(b->n, "pads");
    if (!rl_op_axes(b->g, b->n, b->p->draft, &axes, &naxes, &all)) {
        b->ok = false;
        return;
    }
    if (a) {
        pads = a->ints;
        npads = a->n;
    } else if (!rl_const_ints(b->g, rl_in(b->n, 1), b->p->draft, &pads, &npads)) {
        b->ok = false;
        return;
    }
    uint32_t n = all ? rank : naxes;
    if (npads != 2 * n) {
        b->ok = false;
        return;
    }
    for (uint32_t i = 0; i < n; i++) /* rl_op_axes sorts, pads are in the node's own sequence: all that are named */
        if (!all || pads[i] != 0 || pads[i + n] != 0) b->label[all ? i : axes[i]].role = RL_T_AXIS;
}

static void tile(builder *b)
{
    if (!like_input(b, 1)) return;
    const int64_t *rep;
    uint32_t nrep, rank = rank_of(b, b->n->in[0]);
    if (!rl_const_ints(b->g, rl_in(b->n, 1), b->p->draft, &rep, &nrep) || nrep != rank) {
        b->ok = false;
        return;
    }
    for (uint32_t i = 0; i < rank; i++)
        if (rep[i] != 1) b->label[i].role = RL_T_AXIS;
}

/* A constant, also behind movement: an Identity of an initializer. */
static bool constant_like(const builder *b, rl_value v)
{
    for (uint32_t k = 0; k < 16; k++) {
        const rl_valinfo *x = rl_val(b->g, v);
        if (x->data) return true;
        if (x->def.i == RL_NONE || rl_op_class(rl_nod(b->g, x->def)->op) != RL_MOVING) return false;
        v = rl_nod(b->g, x->def)->in[0];
    }
    return false;
}

/* Constant data: the index in any order beside the row in any order, since the data can be stored to suit. */
static void gather_table(builder *b, uint32_t x, uint32_t y, uint32_t axis)
{
    uint32_t i = add_operand(b, 1, false), rank = rank_of(b, b->n->in[0]), ri = b->ok ? rank_of(b, b->n->in[1]) : 0;
    for (uint32_t d = 0; d < rank && b->ok; d++) {
        if (d == axis) {
            at(b, add_label(b, RL_T_AXIS, 2), x, d);
            continue;
        }
        uint32_t l = add_label(b, RL_T_FREE, 1);
        at(b, l, x, d);
        at(b, l, y, d < axis ? d : d + ri - 1);
    }
    for (uint32_t k = 0; k < ri && b->ok; k++) {
        uint32_t l = add_label(b, RL_T_FREE, 0);
        at(b, l, i, k);
        at(b, l, y, axis + k);
    }
}

static void gather(builder *b)
{
    uint32_t x = add_operand(b, 0, false), y = add_operand(b, 0, true), axis;
    if (!b->ok || !rl_op_axis(b->g, b->n, &axis)) {
        b->ok = false;
        return;
    }
    rl_value index = rl_in(b->n, 1);
    uint32_t rank = rank_of(b, b->n->in[0]), ri = rank_of(b, index);
    bool fixed_index = ri != RL_NORANK && rl_val(b->g, index)->data;
    if (ri != RL_NORANK && ri <= 8 && rl_val(b->g, b->n->in[0])->data && (ri > 1 || (ri == 1 && !fixed_index))) {
        gather_table(b, x, y, axis);
        return;
    }
    if (ri == RL_NORANK || ri > 1 || (ri == 1 && !fixed_index)) { /* an index of several dims: left alone */
        b->ok = false;
        return;
    }
    for (uint32_t d = 0; d < rank && b->ok; d++) {
        uint32_t l = add_label(b, d == axis ? RL_T_AXIS : RL_T_FREE, 0);
        at(b, l, x, d);
        if (d != axis || ri == 1) at(b, l, y, d <= axis ? d : d + ri - 1);
    }
}

/* Nearest neighbours only: the other modes run in the order that the model has, since kernels take them to have the image last
 * (of onnxruntime's only the CPU's do otherwise; CUDA's then gives wrong numbers). */
static void resize(builder *b)
{
    const rl_attr *mode = rl_attr_find(b->n, "mode");
    if ((mode && !rl_attr_is(b->n, "mode", "nearest")) || b->n->op != RL_OP_Resize || b->n->since < 11 ||
        rl_attr_is(b->n, "coordinate_transformation_mode", "tf_crop_and_resize") ||
        (rl_attr_find(b->n, "keep_aspect_ratio_policy") && !rl_attr_is(b->n, "keep_aspect_ratio_policy", "stretch")) ||
        !like_input(b, 1)) {
        b->ok = false;
        return;
    }
    uint32_t rank = rank_of(b, b->n->in[0]);
    rl_value scales = rl_in(b->n, 2), sizes = rl_in(b->n, 3);
    bool by_scale = rl_has(scales) && rl_val(b->g, scales)->data && rl_val(b->g, scales)->data->nbyte > 0;
    if (!by_scale && (!rl_has(sizes) || !rl_val(b->g, sizes)->data)) b->ok = false;
    for (uint32_t d = 0; d < rank && b->ok; d++) {
        rl_dim x = size_of(b, 0, d), y = size_of(b, 1, d);
        if (!rl_dim_known(x) && x == y && !by_scale) b->ok = false; /* its size could not be written */
        if (!rl_dim_known(x) || x != y) b->label[d].role = x == y ? RL_T_FREE : RL_T_AXIS;
    }
    if (!by_scale || !b->ok) return;
    const rl_const *c = rl_val(b->g, scales)->data;
    const rl_attr *axes = rl_attr_ints(b->n, "axes");
    uint32_t n = (uint32_t)(c->nbyte / sizeof(float));
    if (c->dtype != RL_F32 || n != (axes ? axes->n : rank)) b->ok = false;
    for (uint32_t i = 0; i < n && b->ok; i++) {
        float s;
        memcpy(&s, (const char *)c->data + i * sizeof s, sizeof s);
        int64_t d = axes ? axes->ints[i] : i;
        if (d < 0) d += rank;
        if (s != 1.0f) b->label[d].role = RL_T_AXIS;
        else if (size_of(b, 0, (uint32_t)d) != size_of(b, 1, (uint32_t)d)) b->ok = false;
    }
}

/* Scales and zero points for blocks along the axis: constants of the input's rank, which are permuted along. */
static void blocked_scales(builder *b)
{
    for (uint32_t k = 1; k < 3 && b->ok; k++) {
        if (!rl_has(rl_in(b->n, k))) continue;
        uint32_t o = add_operand(b, k, false);
        if (!b->ok || !constant_like(b, b->n->in[k]) || rank_of(b, b->n->in[k]) != rank_of(b, b->n->in[0])) {
            b->ok = false;
            return;
        }
        for (uint32_t d = 0; d < rank_of(b, b->n->in[k]); d++) at(b, d, o, d);
    }
}

static void qdq(builder *b)
{
    if (!like_input(b, 1)) return;
    uint32_t axis, rs = rank_of(b, rl_in(b->n, 1));
    if (rl_attr_int(b->n, "block_size", 0) != 0) {
        if (!rl_op_axis(b->g, b->n, &axis)) b->ok = false;
        else b->label[axis].role = RL_T_AXIS;
        blocked_scales(b);
        return;
    }
    if (rs == RL_NORANK || rs > 1) {
        b->ok = false;
        return;
    }
    if (rs == 0 || rl_val(b->g, b->n->in[1])->dim[0] == 1) {
        /* One scale for all where the axis has more than one element; a scale of length 1 needs its own axis kept. */
        if (rs == 0) return;
    }
    if (!rl_op_axis(b->g, b->n, &axis)) b->ok = false;
    else b->label[axis].role = RL_T_AXIS;
}

static void batch_norm(builder *b)
{
    uint32_t extra = 0;
    for (uint32_t k = 1; k < b->n->nout; k++) extra += rl_has(b->n->out[k]) && rl_val(b->g, b->n->out[k])->nuse > 0;
    if (extra || rl_attr_int(b->n, "training_mode", 0) || !rl_attr_int(b->n, "spatial", 1) || !like_input(b, 1) ||
        rank_of(b, b->n->in[0]) < 2) {
        b->ok = false;
        return;
    }
    uint32_t open = 0; /* dims before the channel become one: taken apart again if all sizes but one can be looked up */
    for (uint32_t d = 0; d < rank_of(b, b->n->in[0]); d++)
        open += !rl_dim_known(size_of(b, 0, d)) && !rl_is_input_size(b->g, size_of(b, 0, d));
    if (open > 1) b->ok = false;
    b->label[1].role = RL_T_AXIS;
}

static void norm(builder *b)
{
    for (uint32_t k = 1; k < b->n->nout; k++)
        if (rl_has(b->n->out[k]) && (rl_val(b->g, b->n->out[k])->nuse || rl_val(b->g, b->n->out[k])->is_output)) b->ok = false;
    if (!b->ok || !like_input(b, 1)) return;
    uint32_t rank = rank_of(b, b->n->in[0]);
    int64_t axis = rl_attr_int(b->n, "axis", -1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
        b->ok = false;
        return;
    }
    bool sized = false;
    for (uint32_t d = (uint32_t)axis; d < rank; d++) {
        b->label[d].group = 1;
        sized |= size_of(b, 0, d) != 1;
    }
    if (!sized) b->ok = false; /* nothing marks the place of what is normalized */
    for (uint32_t k = 1; k < 3 && b->ok; k++) { /* scale and bias */
        if (!rl_has(rl_in(b->n, k))) continue;
        uint32_t o = add_operand(b, k, false), r = b->ok ? rank_of(b, b->n->in[k]) : 0;
        if (!b->ok || !constant_like(b, b->n->in[k]) || r > rank - (uint32_t)axis) {
            b->ok = false;
            return;
        }
        for (uint32_t d = 0; d < r; d++) at(b, rank - r + d, o, d);
    }
}

static void matmul(builder *b)
{
    uint32_t A = add_operand(b, 0, false), B = add_operand(b, 1, false), Y = add_operand(b, 0, true);
    rl_turned ta = rl_op_turned(b->n, 0), tb = rl_op_turned(b->n, 1);
    if (!b->ok) return;
    uint32_t ra = rank_of(b, b->n->in[0]), rb = rank_of(b, b->n->in[1]), ry = rank_of(b, b->n->out[0]);
    if (ra < 2 || rb < 2 || ry != RL_MAX(ra, rb)) {
        b->ok = false;
        return;
    }
    for (uint32_t d = 0; d + 2 < ry; d++) {
        uint32_t l = add_label(b, RL_T_FREE, RL_G_LEAD);
        at(b, l, Y, d);
        if (d + ra >= ry) at(b, l, A, rl_turned_dim(ta, ra, d + ra - ry));
        if (d + rb >= ry) at(b, l, B, rl_turned_dim(tb, rb, d + rb - ry));
    }
    uint32_t m = add_label(b, RL_T_FREE, RL_G_M), k = add_label(b, RL_T_FREE, RL_G_K), n = add_label(b, RL_T_FREE, RL_G_N);
    at(b, m, A, rl_turned_dim(ta, ra, ra - 2));
    at(b, m, Y, ry - 2);
    at(b, k, A, rl_turned_dim(ta, ra, ra - 1));
    at(b, k, B, rl_turned_dim(tb, rb, rb - 2));
    at(b, n, B, rl_turned_dim(tb, rb, rb - 1));
    at(b, n, Y, ry - 1);
}

/* Where the target has it, like MatMul; elsewhere it is not understood. */
static void fused_matmul(builder *b)
{
    rl_dtype t = rl_has(rl_in(b->n, 0)) ? rl_val(b->g, b->n->in[0])->dtype : RL_UNDEF;
    if (rl_types_have(b->p->target->extra[RL_EXTRA_FUSED_MATMUL], t)) matmul(b);
    else b->ok = false;
}

static void gemm(builder *b)
{
    uint32_t A = add_operand(b, 0, false), B = add_operand(b, 1, false), Y = add_operand(b, 0, true);
    bool ta = rl_attr_int(b->n, "transA", 0), tb = rl_attr_int(b->n, "transB", 0);
    if (!b->ok || rank_of(b, b->n->in[0]) != 2 || rank_of(b, b->n->in[1]) != 2) {
        b->ok = false;
        return;
    }
    uint32_t m = add_label(b, RL_T_FREE, RL_G_LEAD), k = add_label(b, RL_T_FREE, RL_G_K), n = add_label(b, RL_T_FREE, RL_G_N);
    at(b, m, A, ta ? 1 : 0);
    at(b, k, A, ta ? 0 : 1);
    at(b, k, B, tb ? 1 : 0);
    at(b, n, B, tb ? 0 : 1);
    at(b, m, Y, 0);
    at(b, n, Y, 1);
    if (!rl_has(rl_in(b->n, 2))) return;
    uint32_t C = add_operand(b, 2, false), r = b->ok ? rank_of(b, b->n->in[2]) : 0;
    if (r > 2) b->ok = false;
    if (r >= 1) at(b, n, C, r - 1);
    if (r == 2) at(b, m, C, 0);
}

/* Some groups of dims match, some do not: those are blocks. */
static void block_reshape(builder *b)
{
    if (!rl_is_reshaping(b->g, b->n)) {
        b->ok = false;
        return;
    }
    uint32_t x = add_operand(b, 0, false), y = add_operand(b, 0, true);
    if (!b->ok) return;
    const rl_valinfo *vx = rl_val(b->g, b->n->in[0]), *vy = rl_val(b->g, b->n->out[0]);
    rl_ctx *ctx = b->g->ctx;
    uint32_t i = 0, j = 0;
    while (i < vx->rank || j < vy->rank) {
        if (i < vx->rank && vx->dim[i] == 1) { i++; continue; }
        if (j < vy->rank && vy->dim[j] == 1) { j++; continue; }
        uint32_t i0 = i, j0 = j;
        rl_dim pi = i < vx->rank ? vx->dim[i++] : 1, pj = j < vy->rank ? vy->dim[j++] : 1, q;
        while (pi != pj && (i < vx->rank || j < vy->rank)) {
            bool more_out = rl_dim_known(pi) && rl_dim_known(pj) ? pj < pi : rl_dim_div(ctx, pi, pj, &q);
            if (j < vy->rank && (more_out || i == vx->rank)) pj = rl_dim_mul(ctx, pj, vy->dim[j++]);
            else if (i < vx->rank) pi = rl_dim_mul(ctx, pi, vx->dim[i++]);
            else break;
        }
        if (pi != pj) { /* nothing more to tell apart: the rest is one block */
            i = vx->rank;
            j = vy->rank;
        }
        bool single = i == i0 + 1 && j == j0 + 1 && pi == pj;
        /* A block of several dims: one label per dim, in a fixed sequence, is what `after` cannot say; so it is one
         * label at the first dim, whose token takes the atoms of all (tokens_of_block). */
        uint32_t l = add_label(b, single ? RL_T_FREE : RL_T_AXIS, 0);
        if (!b->ok) return;
        if (i > i0) at(b, l, x, i0);
        if (j > j0) at(b, l, y, j0);
        if (!single) {
            b->label[l].after[x] = i;
            b->label[l].after[y] = j;
        }
    }
}

/* The target has rows for this op: input 0 and output 0 in orders of whole dims, everything else as it is. */
static void in_own_orders(builder *b)
{
    const rl_target *t = b->p->target;
    b->ok = t->run.n > 0;
    if (!b->ok) return;
    uint32_t x = add_operand(b, 0, false), y = add_operand(b, 0, true), rows = 0;
    if (!b->ok) return;
    const rl_valinfo *vx = rl_val(b->g, b->n->in[0]);
    for (uint32_t i = 0; i < t->run.n; i++) rows += rl_run_fits(&t->run.p[i], b->n, vx->dtype, vx->rank);
    for (uint32_t k = 1; k < b->n->nout; k++) b->ok &= !rl_has(b->n->out[k]);
    for (uint32_t k = 1; k < b->n->nin; k++) b->ok &= !rl_has(b->n->in[k]) || !rl_same(b->n->in[k], b->n->in[0]);
    if (rows == 0 || rank_of(b, b->n->out[0]) != vx->rank) b->ok = false;
    for (uint32_t d = 0; d < vx->rank && b->ok; d++) {
        uint32_t l = add_label(b, RL_T_AXIS, d);
        at(b, l, x, d);
        at(b, l, y, d);
    }
}

/* The dims that the window moves over stay last and in order; batch and channel in any order before them. */
static void pool(builder *b)
{
    in_own_orders(b);
    if (b->ok) return;
    uint32_t rank = rank_of(b, rl_in(b->n, 0));
    b->op->noperand = b->nlabel = 0;
    b->ok = rank >= 3 && rank <= RL_MAXGROUP;
    if (!b->ok || !like_input(b, 1)) return;
    for (uint32_t k = 1; k < b->n->nout; k++) b->ok &= !rl_has(b->n->out[k]); /* indices count in the model's order */
    for (uint32_t d = 2; d < rank && b->ok; d++) {
        if (size_of(b, 0, d) == 1) b->ok = false; /* nothing marks its place */
        b->label[d].role = RL_T_AXIS;
        b->label[d].group = d - 1;
    }
}

static bool weights_at_hand(const builder *b, uint32_t slot, uint32_t rank)
{
    const rl_const *c = rl_has(rl_in(b->n, slot)) ? rl_eval_constant(b->g, b->n->in[slot]) : NULL;
    return c && c->rank == rank && rl_dtype_bits(c->dtype) >= 8;
}

/* A Conv reads and makes its channels in any order, which its weights are then stored in; a depthwise one makes them in the order
 * in which it reads them.  Batch and image stay as they are. Labels: N, C, M (not of a depthwise one), then the image's dims. */
static void conv(builder *b)
{
    uint32_t rank = rank_of(b, rl_in(b->n, 0));
    int64_t groups = rl_attr_int(b->n, "group", 1);
    b->op->noperand = b->nlabel = 0;
    b->ok = rank >= 3 && rank <= RL_MAXGROUP - 1 && rank_of(b, b->n->out[0]) == rank && b->n->nout == 1 && weights_at_hand(b, 1, rank) &&
            (!rl_has(rl_in(b->n, 2)) || weights_at_hand(b, 2, 1));
    if (!b->ok) return;
    rl_dim channels = rl_val(b->g, b->n->in[0])->dim[1], made = rl_val(b->g, b->n->out[0])->dim[1];
    bool depthwise = groups > 1 && channels == groups && made == groups;
    b->ok = (groups == 1 || depthwise) && rl_dim_known(channels) && rl_dim_known(made);
    uint32_t x = add_operand(b, 0, false), y = add_operand(b, 0, true);
    if (!b->ok) return;
    uint32_t n = add_label(b, RL_T_AXIS, 0), c = add_label(b, RL_T_FREE, 1), m = depthwise ? c : add_label(b, RL_T_FREE, 2);
    at(b, n, x, 0);
    at(b, n, y, 0);
    at(b, c, x, 1);
    at(b, m, y, 1);
    for (uint32_t d = 2; d < rank && b->ok; d++) {
        uint32_t l = add_label(b, RL_T_AXIS, b->nlabel);
        at(b, l, x, d);
        at(b, l, y, d);
    }
}

/* The target's own rows first. */
static void opaque(builder *b)
{
    in_own_orders(b);
    if (!b->ok && b->n->op == RL_OP_Conv) conv(b);
}

static void shape(builder *b) { (void)b; /* no demand: lower.c writes it from any form, or it is fixed (link) */ }

static void (*const handler[])(builder *) = {
    [RL_POINTWISE] = pointwise, [RL_EXPAND] = expand, [RL_REDUCE] = reduce, [RL_GLOBALPOOL] = global_pool, [RL_ARG] = arg,
    [RL_ALONG] = along, [RL_SLICE] = slice, [RL_PAD] = pad, [RL_TILE] = tile, [RL_GATHER] = gather, [RL_QDQ] = qdq,
    [RL_RESIZE] = resize, [RL_BATCHNORM] = batch_norm, [RL_NORM] = norm, [RL_MATMUL] = matmul, [RL_GEMM] = gemm, [RL_MOVING] = block_reshape,
    [RL_SHAPE] = shape, [RL_OPAQUE] = opaque, [RL_POOL] = pool,
};

/* Free dims of all operands agree and are refined alike. */
static bool link_labels(builder *b)
{
    for (uint32_t l = 0; l < b->nlabel; l++) {
        const rl_label *x = &b->label[l];
        if (x->role == RL_T_AXIS) continue;
        uint32_t first = RL_NONE;
        for (uint32_t o = 0; o < b->op->noperand; o++) {
            if (x->unit[o] == RL_NONE) continue;
            if (first == RL_NONE) first = x->unit[o];
            else if (b->p->unit.p[first].size != b->p->unit.p[x->unit[o]].size) return false;
            else if (!rl_units_match(b->p, &first, 1, &x->unit[o], 1)) return false;
        }
    }
    return true;
}

/* A symbolic dim of an input that meets no equal dim may turn out to be 1 and broadcast: such an op is fixed. */
static bool sizes_agree(const builder *b)
{
    for (uint32_t l = 0; l < b->nlabel; l++) {
        const rl_label *x = &b->label[l];
        if (x->role != RL_T_FREE) continue;
        rl_dim size = 1;
        for (uint32_t o = 0; o < b->op->noperand; o++) {
            if (x->unit[o] == RL_NONE) continue;
            rl_dim s = b->p->unit.p[x->unit[o]].size;
            if (size != 1 && s != size) return false;
            size = s;
        }
    }
    return true;
}

/* Types are known, and no operand is empty (a Reshape to a size of 0 means another thing), but for variables of pointwise ops. */
static bool all_inputs_known(const builder *b)
{
    for (uint32_t i = 0; i < b->op->noperand; i++) {
        const rl_valinfo *x = rl_val(b->g, b->op->operand[i].tensor);
        if (x->dtype == RL_UNDEF) return false;
        for (uint32_t d = 0; d < x->rank && (x->data || rl_op_class(b->n->op) != RL_POINTWISE); d++)
            if (x->dim[d] == 0) return false;
    }
    return true;
}

void rl_legal_link(rl_plan *p, rl_node node)
{
    const rl_nodeinfo *n = rl_nod(p->g, node);
    if (n->op == RL_OP_LEAVE) rl_links(p, node);
    if (n->op == RL_OP_LEAVE || n->op == RL_OP_ENTER) return;
    rl_oplegal op = {.node = node, .comp = RL_NONE};
    op.operand = rl_new(p->mem, rl_operand, n->nin + n->nout + 1);
    builder b = {.p = p, .g = p->g, .n = n, .op = &op, .ok = true};
    rl_class cls = rl_op_class(n->op);
    if (cls == RL_CONCAT || cls == RL_SPLIT) concat_or_split(&b, cls == RL_CONCAT);
    else if (n->op == RL_OP_ms_FusedMatMul && n->ncap == 0) fused_matmul(&b);
    else if ((uint32_t)cls < RL_LEN(handler) && handler[cls] && n->ncap == 0) handler[cls](&b);
    else b.ok = false;
    if (b.ok && !(all_inputs_known(&b) && sizes_agree(&b) && link_labels(&b))) b.ok = false;
    op.fixed = !b.ok;
    if (op.fixed) {
        op.noperand = 0;
        b.nlabel = 0;
    }
    op.nlabel = b.nlabel;
    op.label = rl_copy(p->draft, b.label, b.nlabel * sizeof *b.label);
    p->opof[node.i] = p->op.n;
    rl_push(p->mem, p->op, op);
}

static rl_status make_plan(rl_plan *p)
{
    RL_TRY(rl_plan_atoms(p));
    rl_legal_share(p);
    return RL_OK;
}

rl_status rl_pass_legal(rl_pass_run *r)
{
    rl_plan *p = r->plan = rl_new(r->tmp, rl_plan, 1);
    rl_arena draft;
    rl_arena_init(&draft, r->g->ctx);
    p->g = r->g;
    p->mem = r->tmp;
    p->draft = &draft;
    p->target = r->target;
    p->io = r->io;
    rl_status s = make_plan(p);
    rl_arena_free(&draft);
    p->draft = NULL;
    p->unit.p = NULL;
    p->trail.p = NULL;
    return s;
}
