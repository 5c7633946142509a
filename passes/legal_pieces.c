/* Labels of ops that take pieces of tensors, join, repeat or resample them. */
#include "legal_labels.h"
#include <string.h>

/* The axis of the whole is (pieces, piece) when all pieces are equally long. */
static bool equal_pieces(rl_labels *b, uint32_t whole, uint32_t first, uint32_t npiece, uint32_t axis) {
    rl_dim piece = rl_labels_size(b, first, axis), q;
    if (npiece < 2) return false;
    for (uint32_t i = 1; i < npiece; i++)
        if (rl_labels_size(b, first + i, axis) != piece) return false;
    rl_dim total = rl_labels_size(b, whole, axis);
    if (!rl_dim_known(piece) || piece == 0 || !rl_dim_div(b->g->ctx, total, piece, &q) || q != (rl_dim)npiece) return false;
    uint32_t w = b->p->member[b->op->operand[whole].tensor.i].unit[axis], part[2];
    part[0] = rl_unit_new(b->p, (rl_dim)npiece);
    part[1] = piece == 1 ? RL_NONE : rl_unit_new(b->p, piece);
    if (!rl_units_match(b->p, &w, 1, part, piece == 1 ? 1 : 2)) return false;
    uint32_t l = rl_labels_add(b, RL_T_PIECES, 0);
    if (!b->ok) return false;
    b->label[l].dim[whole] = (int32_t)axis;
    b->label[l].unit[whole] = part[0];
    b->label[axis].role = RL_T_FREE;
    b->label[axis].dim[whole] = (int32_t)axis;
    b->label[axis].unit[whole] = part[1];
    b->label[axis].after[whole] = part[0];
    return true;
}

static void concat_or_split(rl_labels *b, bool concat) {
    bool bytes = b->n->op == RL_OP_ms_QLinearConcat; /* the result's scale and zero point; then pieces, each with its own */
    uint32_t first = bytes ? 2 : 0, step = bytes ? 3 : 1, nin = RL_MAX(b->n->nin, first) - first, npiece = concat ? nin / step : b->n->nout, axis;
    if (nin % step) b->ok = false;
    uint32_t whole = rl_labels_operand(b, 0, concat);
    if (!b->ok) return;
    rl_value w = b->op->operand[whole].tensor;
    uint32_t rank = rl_labels_rank(b, w);
    int64_t a = rl_attr_int(b->n, "axis", 0);
    if (a < 0) a += rank;
    if (a < 0 || a >= rank) {
        b->ok = false;
        return;
    }
    axis = (uint32_t)a;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t l = rl_labels_add(b, d == axis ? RL_T_AXIS : RL_T_FREE, 0);
        rl_labels_at(b, l, whole, d);
    }
    for (uint32_t k = 0; k < npiece && b->ok; k++) {
        uint32_t o = rl_labels_operand(b, first + step * k, !concat);
        if (b->ok && rl_labels_rank(b, b->op->operand[o].tensor) != rank) b->ok = false;
        for (uint32_t d = 0; d < rank && b->ok; d++) rl_labels_at(b, d, o, d);
        for (uint32_t d = 0; d < rank && b->ok; d++) /* sizes other than the axis's agree, size 1 included */
            if (d != axis && rl_labels_size(b, o, d) != rl_labels_size(b, whole, d)) b->ok = false;
    }
    if (b->ok) equal_pieces(b, whole, whole + 1, npiece, axis);
}

void rl_label_concat(rl_labels *b) { concat_or_split(b, true); }
void rl_label_split(rl_labels *b) { concat_or_split(b, false); }

/* The leaves at the end of all pieces' axes that agree. Returns how many; leaf holds those of piece 0. */
static uint32_t common_tail(rl_plan *p, const rl_oplegal *op, const rl_label *axis, uint32_t *leaf) {
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

/* After refinement, since it is the producers' Reshapes that show the atoms. */
void rl_legal_inner(rl_plan *p, uint32_t i) {
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

void rl_label_slice(rl_labels *b) {
    if (!rl_labels_like_input(b, 1)) return;
    const uint32_t *axes;
    uint32_t naxes, rank = rl_labels_rank(b, b->n->in[0]);
    bool all;
    if (!rl_op_axes(b->g, b->n, b->p->draft, &axes, &naxes, &all)) {
        b->ok = false;
        return;
    }
    const rl_attr *s = rl_attr_ints(b->n, "starts");
    const rl_valinfo *v = rl_has(rl_in(b->n, 1)) ? rl_val(b->g, b->n->in[1]) : NULL;
    if (!s && (!v || v->rank != 1 || !rl_dim_known(v->dim[0]))) {
        b->ok = false;
        return;
    }
    if (all) naxes = s ? s->n : (uint32_t)v->dim[0]; /* no axes: the first ones, as many as there are starts */
    bool runs = rl_op_slices_runs(b->g, b->n, b->p->draft);
    for (uint32_t i = 0; i < naxes && i < rank; i++) {
        uint32_t d = all ? i : axes[i];
        if (!runs || rl_labels_size(b, 0, d) != rl_labels_size(b, 1, d)) b->label[d].role = RL_T_AXIS;
    }
}

void rl_label_pad(rl_labels *b) {
    if (!rl_labels_like_input(b, 1)) return;
    const uint32_t *axes;
    const int64_t *pads;
    uint32_t naxes, npads, rank = rl_labels_rank(b, b->n->in[0]);
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
    const int64_t *own = NULL; /* in the node's own sequence, as pads are */
    uint32_t n = all ? rank : naxes, nown;
    if (npads != 2 * n || (!all && !rl_const_ints(b->g, rl_in(b->n, 3), b->p->draft, &own, &nown))) {
        b->ok = false;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if (pads[i] != 0 || pads[i + n] != 0) b->label[own ? (uint32_t)(own[i] + (own[i] < 0 ? rank : 0)) : i].role = RL_T_AXIS;
}

void rl_label_tile(rl_labels *b) {
    uint32_t y = rl_labels_operand(b, 0, true), x = rl_labels_operand(b, 0, false);
    if (!b->ok) return;
    const int64_t *rep;
    uint32_t nrep, rank = rl_labels_rank(b, b->n->in[0]);
    if (rl_labels_rank(b, b->n->out[0]) != rank || !rl_const_ints(b->g, rl_in(b->n, 1), b->p->draft, &rep, &nrep) || nrep != rank) {
        b->ok = false;
        return;
    }
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t l = rl_labels_add(b, rep[i] == 1 ? RL_T_FREE : RL_T_AXIS, 0);
        rl_labels_at(b, l, y, i);
        rl_labels_at(b, l, x, i);
    }
}

/* Constant data: the index in any order beside the row in any order, since the data can be stored to suit. */
static void gather_table(rl_labels *b, uint32_t x, uint32_t axis) {
    uint32_t y = rl_labels_operand(b, 0, true), i = rl_labels_operand(b, 1, false), rank = rl_labels_rank(b, b->n->in[0]), ri = b->ok ? rl_labels_rank(b, b->n->in[1]) : 0;
    for (uint32_t d = 0; d < rank && b->ok; d++) {
        if (d == axis) {
            rl_labels_at(b, rl_labels_add(b, RL_T_AXIS, 2), x, d);
            continue;
        }
        uint32_t l = rl_labels_add(b, RL_T_FREE, 1);
        rl_labels_at(b, l, x, d);
        rl_labels_at(b, l, y, d < axis ? d : d + ri - 1);
    }
    for (uint32_t k = 0; k < ri && b->ok; k++) {
        uint32_t l = rl_labels_add(b, RL_T_FREE, 0);
        rl_labels_at(b, l, i, k);
        rl_labels_at(b, l, y, axis + k);
    }
}

void rl_label_gather(rl_labels *b) {
    uint32_t x = rl_labels_operand(b, 0, false), axis;
    if (!b->ok || !rl_op_axis(b->g, b->n, &axis)) {
        b->ok = false;
        return;
    }
    rl_value index = rl_in(b->n, 1);
    uint32_t rank = rl_labels_rank(b, b->n->in[0]), ri = rl_labels_rank(b, index);
    bool fixed_index = ri != RL_NORANK && rl_val(b->g, index)->data;
    if (ri != RL_NORANK && ri <= 8 && rl_labels_stored(b, b->n->in[0]) && (ri > 1 || (ri == 1 && !fixed_index))) {
        gather_table(b, x, axis);
        return;
    }
    if (ri == RL_NORANK) {
        b->ok = false;
        return;
    }
    uint32_t i = ri > 1 || (ri == 1 && !fixed_index) ? rl_labels_operand(b, 1, false) : 0, y = rl_labels_operand(b, 0, true);
    for (uint32_t d = 0; d < rank && b->ok; d++) {
        uint32_t l = rl_labels_add(b, d == axis ? RL_T_AXIS : RL_T_FREE, 0);
        rl_labels_at(b, l, x, d);
        if (d != axis || ri > 0) rl_labels_at(b, l, y, d <= axis ? d : d + ri - 1);
        if (d == axis && ri > 1 && b->ok) b->label[l].after[y] = axis + ri;
    }
    if (!i || !b->ok) return;
    uint32_t l = rl_labels_add(b, RL_T_AXIS, 1); /* the index lies as it does, alone */
    rl_labels_at(b, l, i, 0);
    if (ri > 1 && b->ok) b->label[l].after[i] = ri;
}

/* Nearest neighbours only: the other modes run in the order that the model has, since kernels take them to have the image last
 * (of onnxruntime's only the CPU's do otherwise; CUDA's then gives wrong numbers). */
void rl_label_resize(rl_labels *b) {
    const rl_attr *mode = rl_attr_find(b->n, "mode");
    if ((mode && !rl_attr_is(b->n, "mode", "nearest")) || !rl_op_stretches(b->n) || !rl_labels_like_input(b, 1)) {
        b->ok = false;
        return;
    }
    uint32_t rank = rl_labels_rank(b, b->n->in[0]), n = 0;
    rl_value sizes = rl_in(b->n, 3);
    const char *by_scale = rl_op_scales(b->g, b->n, &n);
    if (!by_scale && (!rl_has(sizes) || !rl_val(b->g, sizes)->data)) b->ok = false;
    for (uint32_t d = 0; d < rank && b->ok; d++) {
        rl_dim x = rl_labels_size(b, 0, d), y = rl_labels_size(b, 1, d);
        if (!rl_dim_known(x) && x == y && !by_scale) b->ok = false; /* its size could not be written */
        if (!rl_dim_known(x) || x != y) b->label[d].role = x == y ? RL_T_FREE : RL_T_AXIS;
    }
    if (!by_scale || !b->ok) return;
    const rl_attr *axes = rl_attr_ints(b->n, "axes");
    if (n != (axes ? axes->n : rank)) b->ok = false;
    for (uint32_t i = 0; i < n && b->ok; i++) {
        float s;
        memcpy(&s, by_scale + i * sizeof s, sizeof s);
        int64_t d = axes ? axes->ints[i] : i;
        if (d < 0) d += rank;
        if (s != 1.0f) b->label[d].role = RL_T_AXIS;
        else if (rl_labels_size(b, 0, (uint32_t)d) != rl_labels_size(b, 1, (uint32_t)d)) b->ok = false;
    }
}

/* Some groups of dims match, some do not: those are blocks. */
void rl_label_block_reshape(rl_labels *b) {
    if (!rl_is_reshaping(b->g, b->n)) {
        b->ok = false;
        return;
    }
    uint32_t x = rl_labels_operand(b, 0, false), y = rl_labels_operand(b, 0, true);
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
         * label at the first dim, whose token takes the atoms of all. */
        uint32_t l = rl_labels_add(b, single ? RL_T_FREE : RL_T_AXIS, 0);
        if (!b->ok) return;
        if (i > i0) rl_labels_at(b, l, x, i0);
        if (j > j0) rl_labels_at(b, l, y, j0);
        if (!single) {
            b->label[l].after[x] = i;
            b->label[l].after[y] = j;
        }
    }
}
