/* Labels of products, ops on rows, convolutions and pools, and of the ops that a target's rows name. */
#include "legal_labels.h"
#include "../src/eval.h"

/* Of A, in input 0, and B. */
static void label_product(rl_labels *b, uint32_t matrix) {
    uint32_t A = rl_labels_operand(b, 0, false), B = rl_labels_operand(b, matrix, false), Y = rl_labels_operand(b, 0, true);
    rl_turned ta = rl_op_turned(b->n, 0), tb = rl_op_turned(b->n, 1);
    if (!b->ok) return;
    uint32_t ra = rl_labels_rank(b, b->n->in[0]), rb = rl_labels_rank(b, b->n->in[matrix]), ry = rl_labels_rank(b, b->n->out[0]);
    if (ra < 2 || rb < 2 || ry != RL_MAX(ra, rb)) {
        b->ok = false;
        return;
    }
    for (uint32_t d = 0; d + 2 < ry; d++) {
        uint32_t l = rl_labels_add(b, RL_T_FREE, RL_G_LEAD);
        rl_labels_at(b, l, Y, d);
        if (d + ra >= ry) rl_labels_at(b, l, A, rl_turned_dim(ta, ra, d + ra - ry));
        if (d + rb >= ry) rl_labels_at(b, l, B, rl_turned_dim(tb, rb, d + rb - ry));
    }
    uint32_t m = rl_labels_add(b, RL_T_FREE, RL_G_M), k = rl_labels_add(b, RL_T_FREE, RL_G_K), n = rl_labels_add(b, RL_T_FREE, RL_G_N);
    rl_labels_at(b, m, A, rl_turned_dim(ta, ra, ra - 2));
    rl_labels_at(b, m, Y, ry - 2);
    rl_labels_at(b, k, A, rl_turned_dim(ta, ra, ra - 1));
    rl_labels_at(b, k, B, rl_turned_dim(tb, rb, rb - 2));
    rl_labels_at(b, n, B, rl_turned_dim(tb, rb, rb - 1));
    rl_labels_at(b, n, Y, ry - 1);
}

static bool is_one_number(const rl_labels *b, uint32_t slot) {
    const rl_valinfo *v = rl_has(rl_in(b->n, slot)) ? rl_val(b->g, b->n->in[slot]) : NULL;
    return !v || v->rank == 0 || (v->rank == 1 && v->dim[0] == 1);
}

/* With a scale or zero point for each row or column, or something that is added to each, it is no product of which A and B can change places. */
static bool has_plain_scales(const rl_labels *b, const rl_scaled *x) {
    bool plain = true;
    for (uint32_t i = 1; i < x->npair; i++) plain &= is_one_number(b, x->pair[i][0]) && is_one_number(b, x->pair[i][1]);
    for (uint32_t i = 0; i < x->nother; i++) plain &= is_one_number(b, x->other[i]);
    return plain;
}

uint32_t rl_retyped_operand(const rl_plan *p, const rl_oplegal *op) {
    const rl_nodeinfo *n = rl_nod(p->g, op->node);
    const rl_scaled *x = rl_op_scaled(n->op);
    for (uint32_t o = 2; o-- > 0;) {
        rl_dtype t = rl_val(p->g, op->operand[o].tensor)->dtype;
        rl_value zero = rl_in(n, x->pair[x->npair - 1][o]);
        if ((t == RL_I8 || t == RL_U8) && !op->operand[o].pin && (!rl_has(zero) || rl_eval_constant(p->g, zero))) return o;
    }
    return RL_NONE;
}

void rl_label_matmul(rl_labels *b) {
    const rl_scaled *x = rl_op_scaled(b->n->op);
    if (x && !has_plain_scales(b, x)) rl_label_rows(b);
    else label_product(b, x ? x->pair[0][1] : 1);
}

/* Where the target has it, like MatMul; elsewhere it is not understood. */
static void fused_matmul(rl_labels *b) {
    rl_dtype t = rl_has(rl_in(b->n, 0)) ? rl_val(b->g, b->n->in[0])->dtype : RL_UNDEF;
    if (rl_types_have(b->p->target->extra[RL_EXTRA_FUSED_MATMUL], t)) rl_label_matmul(b);
    else b->ok = false;
}

void rl_label_gemm(rl_labels *b) {
    uint32_t A = rl_labels_operand(b, 0, false), B = rl_labels_operand(b, 1, false), Y = rl_labels_operand(b, 0, true);
    bool ta = rl_attr_int(b->n, "transA", 0), tb = rl_attr_int(b->n, "transB", 0);
    if (!b->ok || rl_labels_rank(b, b->n->in[0]) != 2 || rl_labels_rank(b, b->n->in[1]) != 2) {
        b->ok = false;
        return;
    }
    uint32_t m = rl_labels_add(b, RL_T_FREE, RL_G_LEAD), k = rl_labels_add(b, RL_T_FREE, RL_G_K), n = rl_labels_add(b, RL_T_FREE, RL_G_N);
    rl_labels_at(b, m, A, ta ? 1 : 0);
    rl_labels_at(b, k, A, ta ? 0 : 1);
    rl_labels_at(b, k, B, tb ? 1 : 0);
    rl_labels_at(b, n, B, tb ? 0 : 1);
    rl_labels_at(b, m, Y, 0);
    rl_labels_at(b, n, Y, 1);
    if (!rl_has(rl_in(b->n, 2))) return;
    uint32_t C = rl_labels_operand(b, 2, false), r = b->ok ? rl_labels_rank(b, b->n->in[2]) : 0;
    if (r > 2) b->ok = false;
    if (r >= 1) rl_labels_at(b, n, C, r - 1);
    if (r == 2) rl_labels_at(b, m, C, 0);
}

/* Inputs of ops on rows: the matrix (RL_NONE: of no rank in particular), and those that may have one number for each row. */
static const struct { rl_op op; uint32_t matrix, nrow, row[4]; } on_rows[] = {
    {RL_OP_MatMulInteger, 1, 1, {2}},
    {RL_OP_QLinearMatMul, 3, 4, {1, 2, 6, 7}},
    {RL_OP_ms_DynamicQuantizeMatMul, 1, 0, {0}},
    {RL_OP_ms_MatMulIntegerToFloat, 1, 2, {2, 4}},
    {RL_OP_ms_QGemm, 3, 4, {1, 2, 7, 8}},
    {RL_OP_ms_MatMulNBits, RL_NONE, 0, {0}},
    {RL_OP_ms_BiasGelu, RL_NONE, 0, {0}},
    {RL_OP_ms_SkipLayerNormalization, RL_NONE, 0, {0}},
    {RL_OP_ms_SkipSimplifiedLayerNormalization, RL_NONE, 0, {0}},
    {RL_OP_ms_FastGelu, RL_NONE, 0, {0}},
};

/* What is added to the rows, and the sums; the kernel takes rows of a matrix, or of three dims. */
static void label_skip(rl_labels *b) {
    enum { SKIP = 1, SUM = 3 };
    uint32_t rank = rl_labels_rank(b, b->n->in[0]);
    b->ok = b->ok && !rl_labels_makes(b, 1) && !rl_labels_makes(b, 2);
    for (uint32_t out = 0; out < 2 && b->ok; out++) {
        if (out && !rl_labels_makes(b, SUM)) continue;
        uint32_t o = rl_labels_operand(b, out ? SUM : SKIP, out);
        b->ok = b->ok && rl_labels_rank(b, b->op->operand[o].tensor) == rank;
        for (uint32_t d = 0; d < rank && b->ok; d++) {
            rl_labels_at(b, d, o, d);
            b->label[d].role = RL_T_AXIS;
            b->ok = b->ok && rl_labels_size(b, o, d) == rl_labels_size(b, 0, d);
        }
    }
}

/* The last dim stays last, but of a FastGelu that adds nothing. Numbers for each row stay where these are. */
void rl_label_rows(rl_labels *b) {
    uint32_t k = 0, rank = rl_labels_rank(b, rl_in(b->n, 0));
    if (b->n->op == RL_OP_ms_FastGelu && !rl_has(rl_in(b->n, 1))) {
        rl_labels_like_input(b, 1);
        return;
    }
    while (on_rows[k].op != b->n->op) k++;
    b->ok = rank != RL_NORANK && rank >= 1 && (on_rows[k].matrix == RL_NONE || rl_labels_rank(b, rl_in(b->n, on_rows[k].matrix)) == 2);
    for (uint32_t i = 0; i < on_rows[k].nrow; i++) b->ok = b->ok && is_one_number(b, on_rows[k].row[i]);
    if (!b->ok || !rl_labels_like_input(b, 1)) return;
    if (b->n->op == RL_OP_ms_QGemm && (rank != 2 || rl_attr_int(b->n, "transA", 0) || !rl_dim_known(rl_labels_size(b, 0, 0)))) b->ok = false; /* all rows are one dim */
    b->label[rank - 1].role = RL_T_AXIS, b->label[rank - 1].group = 1;
    for (uint32_t o = 0; o < 2; o++)
        if (rl_labels_size(b, o, rank - 1) == 1) b->ok = false; /* nothing marks its place */
    if (b->n->op == RL_OP_ms_SkipLayerNormalization || b->n->op == RL_OP_ms_SkipSimplifiedLayerNormalization) label_skip(b);
}

void rl_label_whole(rl_labels *b) {
    if (!rl_labels_like_input(b, 1)) return;
    for (uint32_t k = 1; k < b->n->nout && b->ok; k++)
        if (rl_has(b->n->out[k])) rl_labels_operand(b, k, true);
    for (uint32_t o = 2; o < b->op->noperand && b->ok; o++) b->ok = rl_labels_rank(b, b->op->operand[o].tensor) == 0;
}

/* The target has rows for this op: input 0 and output 0 in orders of whole dims, everything else as it is. */
static void in_own_orders(rl_labels *b) {
    const rl_target *t = b->p->target;
    b->ok = t->run.n > 0;
    if (!b->ok) return;
    uint32_t x = rl_labels_operand(b, 0, false), y = rl_labels_operand(b, 0, true), rows = 0;
    if (!b->ok) return;
    const rl_valinfo *vx = rl_val(b->g, b->n->in[0]);
    for (uint32_t i = 0; i < t->run.n; i++) rows += rl_run_fits(&t->run.p[i], b->n, vx->dtype, vx->rank);
    b->ok &= !rl_labels_makes_more(b);
    for (uint32_t k = 1; k < b->n->nin; k++) b->ok &= !rl_has(b->n->in[k]) || !rl_same(b->n->in[k], b->n->in[0]);
    if (rows == 0 || rl_labels_rank(b, b->n->out[0]) != vx->rank) b->ok = false;
    for (uint32_t d = 0; d < vx->rank && b->ok; d++) {
        uint32_t l = rl_labels_add(b, RL_T_AXIS, d);
        rl_labels_at(b, l, x, d);
        rl_labels_at(b, l, y, d);
    }
}

/* Has the attribute n numbers, or is it not there? */
static bool has_numbers(const rl_labels *b, const char *name, uint32_t n) {
    const rl_attr *a = rl_attr_ints(b->n, name);
    return !a || a->n == n;
}

static int64_t number_at(const rl_labels *b, const char *name, uint32_t i, int64_t otherwise) {
    const rl_attr *a = rl_attr_ints(b->n, name);
    return a ? a->ints[i] : otherwise;
}

/* The dims of a window of n that take more than one element, or not every one; the last, where none does. Returns how many. */
static uint32_t moves_over(const rl_labels *b, uint32_t n, bool *over) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        over[i] = number_at(b, "kernel_shape", i, 0) != 1 || number_at(b, "strides", i, 1) != 1 || number_at(b, "pads", i, 0) || number_at(b, "pads", n + i, 0);
        count += over[i];
    }
    if (count) return count;
    over[n - 1] = true;
    return 1;
}

/* The dims that the window moves over are blocks, side by side where there are several; all others are like batch and channel. */
void rl_label_pool(rl_labels *b) {
    in_own_orders(b);
    if (b->ok) return;
    bool over[RL_MAXATOM];
    uint32_t rank = rl_labels_rank(b, rl_in(b->n, 0)), n = rank - 2;
    b->op->noperand = b->nlabel = 0;
    b->ok = rank != RL_NORANK && rank >= 3;
    if (!b->ok || !rl_labels_like_input(b, 1)) return;
    b->ok &= !rl_labels_makes_more(b); /* indices count in the model's order */
    b->ok &= rl_attr_ints(b->n, "kernel_shape") && has_numbers(b, "kernel_shape", n) && has_numbers(b, "strides", n) && has_numbers(b, "dilations", n) && has_numbers(b, "pads", 2 * n);
    if (b->ok && moves_over(b, n, over) > RL_MAXWINDOW) b->ok = false;
    for (uint32_t i = 0; i < n && b->ok; i++) {
        if (!over[i]) continue;
        if (rl_labels_size(b, 0, 2 + i) == 1) b->ok = false; /* nothing marks its place */
        b->label[2 + i].role = RL_T_AXIS;
        b->label[2 + i].group = RL_G_K;
    }
}

static bool has_whole_bytes(const rl_labels *b, rl_value v) {
    const rl_const *c = rl_has(v) ? rl_eval_constant(b->g, v) : NULL;
    return c && rl_dtype_bits(c->dtype) >= 8;
}

/* Constant, of whole bytes, with `made` rows; or what a DequantizeLinear makes of such. */
static bool weights_at_hand(const rl_labels *b, uint32_t slot, uint32_t rank, rl_dim made) {
    rl_value v = rl_in(b->n, slot);
    const rl_valinfo *x = rl_has(v) ? rl_val(b->g, v) : NULL;
    if (!x || x->rank != rank || x->dim[0] != made || !rl_can_permute_bytes(b->g, x)) return false;
    if (x->data) return has_whole_bytes(b, v);
    const rl_nodeinfo *n = rl_nod(b->g, x->def);
    uint32_t axis;
    for (uint32_t k = 1; k < n->nin; k++) {
        if (!rl_has(n->in[k])) continue;
        bool each = rl_val(b->g, n->in[k])->rank == 1 && rl_val(b->g, n->in[k])->dim[0] != 1;
        if (!has_whole_bytes(b, n->in[k]) || (each && !rl_op_axis(b->g, n, &axis))) return false;
    }
    return has_whole_bytes(b, n->in[0]);
}

/* A number, or one for each of `made`. */
static bool rows_at_hand(const rl_labels *b, uint32_t slot, rl_dim made) {
    if (!rl_has(rl_in(b->n, slot))) return true;
    const rl_valinfo *x = rl_val(b->g, b->n->in[slot]);
    return has_whole_bytes(b, b->n->in[slot]) && (x->rank == 0 || (x->rank == 1 && (x->dim[0] == 1 || x->dim[0] == made)));
}

/* A Conv reads and makes its channels in any order, which its weights are then stored in, and the dims of its batch; a depthwise one makes
 * both in the order in which it reads them.  The image stays as it is. Labels: N, C, M (not of a depthwise one), then the image's dims. */
static void conv(rl_labels *b) {
    const rl_layer *w = rl_op_layer(b->n->op);
    uint32_t rank = rl_labels_rank(b, rl_in(b->n, 0));
    int64_t groups = rl_attr_int(b->n, "group", 1);
    b->op->noperand = b->nlabel = 0;
    b->ok = rank >= 3 && rank <= RL_MAXGROUP - 1 && rl_labels_rank(b, b->n->out[0]) == rank && b->n->nout == 1;
    if (!b->ok) return;
    rl_dim channels = rl_val(b->g, b->n->in[0])->dim[1], made = rl_val(b->g, b->n->out[0])->dim[1];
    b->ok = weights_at_hand(b, w->weight, rank, made) && (!rl_has(rl_in(b->n, w->bias)) || weights_at_hand(b, w->bias, 1, made));
    for (uint32_t i = 0; i < w->nrow; i++) b->ok &= rows_at_hand(b, w->row[i], made);
    if (!b->ok) return;
    bool depthwise = groups > 1 && channels == groups && made == groups;
    b->ok = (groups == 1 || depthwise) && rl_dim_known(channels);
    uint32_t x = rl_labels_operand(b, 0, false), y = rl_labels_operand(b, 0, true);
    if (!b->ok) return;
    uint32_t n = rl_labels_add(b, RL_T_FREE, 0), c = rl_labels_add(b, RL_T_FREE, 1), m = depthwise ? c : rl_labels_add(b, RL_T_FREE, 2);
    rl_labels_at(b, n, x, 0);
    rl_labels_at(b, n, y, 0);
    rl_labels_at(b, c, x, 1);
    rl_labels_at(b, m, y, 1);
    for (uint32_t d = 2; d < rank && b->ok; d++) {
        uint32_t l = rl_labels_add(b, RL_T_AXIS, b->nlabel);
        rl_labels_at(b, l, x, d);
        rl_labels_at(b, l, y, d);
    }
}

/* [B,heads,S,size] of known heads: as [B,S,heads*size] the op reads and makes them with the heads behind. What else it reads or makes
 * (a cache, the scores) stays as it is. Labels: the four dims, of all these. */
static void heads(rl_labels *b) {
    for (uint32_t d = 0; d < 4; d++) rl_labels_add(b, RL_T_AXIS, d);
    for (uint32_t k = 0; b->ok && rl_op_heads(b->n->op, k); k++) rl_labels_operand(b, k, false);
    for (uint32_t k = 0; b->ok && k < b->n->nout; k++)
        if (k == 0 || rl_has(b->n->out[k])) rl_labels_operand(b, k, true);
    for (uint32_t o = 0; b->ok && o < b->op->noperand; o++) {
        bool four = rl_labels_rank(b, b->op->operand[o].tensor) == 4;
        b->ok = four && (!rl_operand_turns_heads(&b->op->operand[o]) || (rl_dim_known(rl_labels_size(b, o, 1)) && rl_dim_known(rl_labels_size(b, o, 3))));
        for (uint32_t d = 0; d < 4; d++) rl_labels_at(b, d, o, d);
    }
}

/* The target's own rows first. */
void rl_label_opaque(rl_labels *b) {
    if (rl_op_heads(b->n->op, 0)) {
        heads(b);
        return;
    }
    if (b->n->op == RL_OP_ms_FusedMatMul) {
        fused_matmul(b);
        return;
    }
    in_own_orders(b);
    if (!b->ok && rl_op_is_conv(b->n->op)) conv(b);
}

/* No demand: lower.c writes it from any form, or it is fixed. */
void rl_label_shape(rl_labels *b) { (void)b; }
