/* Labels of ops that treat elements alike but along some axes: pointwise, reductions, normalizations, quantization. */
#include "legal_labels.h"

/* Sizes that may turn out to be one, or 1 and broadcast: wherever the dim lies, it lies there in all operands, and is not cut. */
static void block_unequal(rl_labels *b) {
    for (uint32_t l = 0; l < b->nlabel && b->ok; l++)
        if (!rl_labels_agree(b, l)) b->label[l].role = RL_T_AXIS;
}

void rl_label_pointwise(rl_labels *b) {
    uint32_t out = rl_labels_operand(b, 0, true);
    if (!b->ok) return;
    uint32_t rank = rl_labels_rank(b, b->n->out[0]);
    for (uint32_t d = 0; d < rank; d++) rl_labels_at(b, rl_labels_add(b, RL_T_FREE, 0), out, d);
    for (uint32_t k = 1; k < b->n->nout && b->ok; k++) {
        if (!rl_has(b->n->out[k])) continue;
        uint32_t o = rl_labels_operand(b, k, true);
        if (b->ok && rl_labels_rank(b, b->n->out[k]) != rank) b->ok = false;
        for (uint32_t d = 0; d < rank && b->ok; d++) rl_labels_at(b, d, o, d);
    }
    for (uint32_t k = 0; k < b->n->nin && b->ok; k++) {
        if (!rl_has(b->n->in[k]) || rl_gives_type(b->n, k)) continue;
        uint32_t o = rl_labels_operand(b, k, false), r = b->ok ? rl_labels_rank(b, b->n->in[k]) : 0;
        if (r > rank) b->ok = false;
        for (uint32_t d = 0; d < r && b->ok; d++) rl_labels_at(b, rank - r + d, o, d);
    }
    if (rl_op_may_train(b->g, b->n)) b->ok = false;
    block_unequal(b);
}

void rl_label_expand(rl_labels *b) {
    uint32_t y = rl_labels_operand(b, 0, true), x = rl_labels_operand(b, 0, false);
    if (!b->ok) return;
    uint32_t rank = rl_labels_rank(b, b->n->out[0]), r = rl_labels_rank(b, b->n->in[0]);
    for (uint32_t d = 0; d < rank; d++) rl_labels_at(b, rl_labels_add(b, RL_T_FREE, 0), y, d);
    for (uint32_t d = 0; d < r; d++) rl_labels_at(b, rank - r + d, x, d);
    for (uint32_t d = 0; d < rank && b->ok; d++) { /* what is expanded must be a number, or looked up, to be written again */
        rl_dim from = d + r >= rank ? rl_labels_size(b, x, d + r - rank) : 1, to = rl_labels_size(b, y, d);
        if (from != to && !rl_dim_known(to) && !rl_is_input_size(b->g, to)) b->ok = false;
    }
}

static void reduce_over(rl_labels *b, const bool *gone, bool keep, rl_role role) {
    uint32_t x = rl_labels_operand(b, 0, false), y = rl_labels_operand(b, 0, true);
    if (!b->ok) return;
    uint32_t rank = rl_labels_rank(b, b->n->in[0]), at_out = 0;
    for (uint32_t d = 0; d < rank && b->ok; d++) {
        uint32_t l = rl_labels_add(b, gone[d] ? role : RL_T_FREE, 0);
        rl_labels_at(b, l, x, d);
        if (gone[d] && !keep) continue;
        rl_labels_at(b, l, y, at_out++);
        if (gone[d]) b->label[l].unit[y] = RL_NONE;
    }
    if (at_out != rl_labels_rank(b, b->n->out[0])) b->ok = false;
}

/* Axes that are computed: every dim may be reduced, so each is a block; lower.c maps the axes with a small Gather. */
static void reduce_unknown_axes(rl_labels *b) {
    if (rl_op_axes_input(b->n) == RL_NONE || !rl_op_keepdims(b->n) || !rl_labels_like_input(b, 1)) {
        b->ok = false;
        return;
    }
    for (uint32_t d = 0; d < rl_labels_rank(b, b->n->in[0]); d++) {
        b->label[d].role = RL_T_AXIS;
        if (rl_labels_size(b, 0, d) == 1) b->ok = false;
    }
}

void rl_label_reduce(rl_labels *b) {
    bool gone[RL_MAXATOM] = {false}, all = false;
    const uint32_t *axes;
    uint32_t naxes, rank = rl_labels_rank(b, rl_in(b->n, 0));
    if (rank <= RL_MAXATOM && !rl_op_axes(b->g, b->n, b->p->draft, &axes, &naxes, &all)) {
        reduce_unknown_axes(b);
        return;
    }
    if (rank > RL_MAXATOM) {
        b->ok = false;
        return;
    }
    for (uint32_t d = 0; d < rank; d++) gone[d] = all;
    for (uint32_t i = 0; i < naxes; i++) gone[axes[i]] = true;
    reduce_over(b, gone, rl_op_keepdims(b->n), RL_T_REDUCED);
}

void rl_label_global_pool(rl_labels *b) {
    bool gone[RL_MAXATOM] = {false};
    uint32_t rank = rl_labels_rank(b, rl_in(b->n, 0));
    int64_t power = b->n->op == RL_OP_GlobalLpPool ? rl_attr_int(b->n, "p", 2) : 1;
    if (rank > RL_MAXATOM || rank < 3 || power < 1 || power > 2) {
        b->ok = false;
        return;
    }
    for (uint32_t d = 2; d < rank; d++) gone[d] = true;
    reduce_over(b, gone, true, RL_T_REDUCED);
}

void rl_label_arg(rl_labels *b) {
    bool gone[RL_MAXATOM] = {false};
    uint32_t axis, rank = rl_labels_rank(b, rl_in(b->n, 0));
    if (rank > RL_MAXATOM || !rl_op_axis(b->g, b->n, &axis)) {
        b->ok = false;
        return;
    }
    gone[axis] = true;
    reduce_over(b, gone, rl_op_keepdims(b->n), RL_T_AXIS);
}

void rl_label_along(rl_labels *b) {
    uint32_t axis;
    if (!rl_labels_like_input(b, b->n->nout) || !rl_op_axis(b->g, b->n, &axis)) {
        b->ok = false;
        return;
    }
    uint32_t rank = rl_labels_rank(b, b->n->in[0]);
    if (b->n->op == RL_OP_ms_QLinearSoftmax && rl_attr_int(b->n, "opset", 1) < 13) b->ok = false; /* what it takes together stays */
    bool flat = b->n->since < 13 &&
                (b->n->op == RL_OP_Softmax || b->n->op == RL_OP_LogSoftmax || b->n->op == RL_OP_Hardmax);
    if (!flat) {
        b->label[axis].role = RL_T_AXIS;
        return;
    }
    bool any = false;
    for (uint32_t d = axis; d < rank; d++) { /* normalized together: a tail of blocks, last and in order */
        if (rl_labels_size(b, 0, d) == 1) continue;
        any = true;
        b->label[d].role = RL_T_AXIS;
        b->label[d].group = 1 + (d - axis);
        if (b->label[d].group >= RL_MAXGROUP) b->ok = false;
    }
    if (!any) b->ok = false;
}

/* Dims that the index, or what it says where to write, does not have whole would have to be cut from the input. */
void rl_label_elements(rl_labels *b) {
    uint32_t axis;
    if (!rl_labels_like_input(b, 1) || !rl_op_axis(b->g, b->n, &axis)) {
        b->ok = false;
        return;
    }
    uint32_t rank = rl_labels_rank(b, b->n->in[0]);
    for (uint32_t k = 1; k < b->n->nin && b->ok; k++) {
        uint32_t o = rl_labels_operand(b, k, false);
        if (b->ok && rl_labels_rank(b, b->n->in[k]) != rank) b->ok = false;
        for (uint32_t d = 0; d < rank && b->ok; d++) {
            rl_labels_at(b, d, o, d);
            if (d != axis && rl_labels_size(b, o, d) != rl_labels_size(b, 0, d)) b->ok = false;
        }
    }
    b->label[axis].role = RL_T_AXIS;
}

/* The dim `axis` is one of the result alone. */
void rl_label_one_hot(rl_labels *b) {
    uint32_t x = rl_labels_operand(b, 0, false), y = rl_labels_operand(b, 0, true);
    if (!b->ok) return;
    uint32_t rank = rl_labels_rank(b, b->n->out[0]);
    int64_t axis = rl_attr_int(b->n, "axis", -1);
    if (axis < 0) axis += rank;
    if (rank != rl_labels_rank(b, b->n->in[0]) + 1 || axis < 0 || axis >= rank) b->ok = false;
    for (uint32_t d = 0; d < rank && b->ok; d++) {
        uint32_t l = rl_labels_add(b, d == axis ? RL_T_AXIS : RL_T_FREE, 0);
        rl_labels_at(b, l, y, d);
        if (d != axis) rl_labels_at(b, l, x, d < axis ? d : d - 1);
    }
}

/* Scales and zero points for blocks along the axis: constants of the input's rank, which are permuted along. */
static void blocked_scales(rl_labels *b) {
    for (uint32_t k = 1; k < 3 && b->ok; k++) {
        if (!rl_has(rl_in(b->n, k))) continue;
        uint32_t o = rl_labels_operand(b, k, false);
        if (!b->ok || !rl_labels_constant(b, b->n->in[k]) || rl_labels_rank(b, b->n->in[k]) != rl_labels_rank(b, b->n->in[0])) {
            b->ok = false;
            return;
        }
        for (uint32_t d = 0; d < rl_labels_rank(b, b->n->in[k]); d++) rl_labels_at(b, d, o, d);
    }
}

void rl_label_qdq(rl_labels *b) {
    if (!rl_labels_like_input(b, 1)) return;
    uint32_t axis, rs = rl_labels_rank(b, rl_in(b->n, 1));
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

void rl_label_batch_norm(rl_labels *b) {
    if (rl_labels_makes_more(b) || rl_attr_int(b->n, "training_mode", 0) || !rl_attr_int(b->n, "spatial", 1) || !rl_labels_like_input(b, 1) ||
        rl_labels_rank(b, b->n->in[0]) < 2) {
        b->ok = false;
        return;
    }
    uint32_t open = 0; /* dims before the channel become one: taken apart again if all sizes but one can be looked up */
    for (uint32_t d = 0; d < rl_labels_rank(b, b->n->in[0]); d++)
        open += !rl_dim_known(rl_labels_size(b, 0, d)) && !rl_is_input_size(b->g, rl_labels_size(b, 0, d));
    if (open > 1) b->ok = false;
    b->label[1].role = RL_T_AXIS;
}

void rl_label_norm(rl_labels *b) {
    if (rl_labels_makes_more(b)) b->ok = false;
    if (!b->ok || !rl_labels_like_input(b, 1)) return;
    uint32_t rank = rl_labels_rank(b, b->n->in[0]);
    int64_t axis = rl_attr_int(b->n, "axis", -1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
        b->ok = false;
        return;
    }
    bool sized = false;
    for (uint32_t d = (uint32_t)axis; d < rank; d++) {
        b->label[d].group = 1;
        sized |= rl_labels_size(b, 0, d) != 1;
    }
    if (!sized) b->ok = false; /* nothing marks the place of what is normalized */
    for (uint32_t k = 1; k < 3 && b->ok; k++) { /* scale and bias */
        if (!rl_has(rl_in(b->n, k))) continue;
        uint32_t o = rl_labels_operand(b, k, false), r = b->ok ? rl_labels_rank(b, b->n->in[k]) : 0;
        if (!b->ok || !rl_labels_constant(b, b->n->in[k]) || r > rank - (uint32_t)axis) {
            b->ok = false;
            return;
        }
        for (uint32_t d = 0; d < r; d++) rl_labels_at(b, rank - r + d, o, d);
    }
}
