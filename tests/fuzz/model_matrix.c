/* Recipes (model.h) of products, recurrences and attention. */

#include "model.h"
#include "model_args.h"

/* The second operand for x, whose last dim is known: weights, or x itself with its last two dims swapped. */
static rl_value right_side(model *m, rl_value x, bool swapped) {
    uint32_t rank = model_val(m, x)->rank;
    int64_t k = model_dim(m, x, rank - 1), n = 1 + model_pick(m, 5), perm[MODEL_RANK];
    if (!swapped && rank >= 2 && model_pick(m, 3) == 0) {
        for (uint32_t i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i : rank - 1 - (i - (rank - 2));
        model_list(m, "perm", rank, perm);
        rl_value y = model_add_op(m, RL_OP_Transpose, &x, 1, 1);
        if (rl_has(y)) return y;
    }
    if (!swapped && model_pick(m, 6) == 0) return model_const(m, model_val(m, x)->dtype, 1, &k, -2, 2);
    return model_const(m, model_val(m, x)->dtype, 2, swapped ? (int64_t[]){n, k} : (int64_t[]){k, n}, -2, 2);
}

void model_op_matmul(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, 5, 0);
    uint32_t rank = model_val(m, x)->rank;
    if (!model_known(m, x, rank - 1) || (r->arg == FUSED && rank < 2)) return;
    bool swapped = r->arg == FUSED && model_flip(m);
    rl_value y = right_side(m, x, swapped);
    if (r->arg == FUSED && model_val(m, y)->rank < 2) return;
    if (swapped) model_int(m, "transB", 1);
    if (r->arg == FUSED && model_flip(m)) model_float(m, "alpha", 0.5);
    model_add(m, r, (rl_value[]){x, y}, 2, 1);
}

void model_op_gemm(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 2, 2, MODEL_SIZED), in[3] = {x, RL_NOVALUE, RL_NOVALUE};
    bool a = model_flip(m), b = model_flip(m);
    int64_t rows = model_dim(m, x, a), k = model_dim(m, x, !a), n = 1 + model_pick(m, 5), dim[2] = {rows, n};
    uint32_t bias = model_pick(m, 5);
    in[1] = model_const(m, model_val(m, x)->dtype, 2, b ? (int64_t[]){n, k} : (int64_t[]){k, n}, -2, 2);
    if (bias == 1) dim[0] = 1;
    if (bias == 2) dim[1] = 1;
    if (bias || m->opset < 11) in[2] = model_const(m, model_val(m, x)->dtype, bias == 3 ? 1 : 2, bias == 3 ? &n : dim, -2, 2);
    if (a) model_int(m, "transA", 1);
    if (b) model_int(m, "transB", 1);
    if (model_pick(m, 4) == 0) model_float(m, "alpha", 2);
    if (r->op == RL_OP_ms_FusedGemm) model_string(m, "activation", "Relu");
    model_add(m, r, in, 3, 1);
}

void model_op_matmul_integer(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 2, 4, 0), zero = RL_NOVALUE;
    uint32_t rank = model_val(m, x)->rank;
    if (!model_known(m, x, rank - 1)) return;
    rl_value w = model_const(m, model_flip(m) ? RL_I8 : RL_U8, 2, (int64_t[]){model_dim(m, x, rank - 1), 3}, -3, 3);
    if (model_flip(m)) zero = model_scalar(m, model_val(m, x)->dtype, 1);
    model_add(m, r, (rl_value[]){x, w, zero}, 3, 1);
}

void model_op_qlinear_matmul(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types & (1u << RL_I8 | 1u << RL_U8), 2, 4, 0);
    uint32_t rank = model_val(m, x)->rank;
    rl_dtype t = model_val(m, x)->dtype;
    if (!model_known(m, x, rank - 1)) return;
    rl_value w = model_const(m, t, 2, (int64_t[]){model_dim(m, x, rank - 1), 3}, 0, 3);
    rl_value zero = model_scalar(m, t, 1), scale = model_scalar(m, RL_F32, 0.5);
    model_add(m, r, (rl_value[]){x, scale, zero, w, scale, zero, scale, zero}, 8, 1);
}

void model_op_einsum(model *m, const model_row *r) {
    static const char *const one[4][3] = {{"i->i", "i->", "i"}, {"ij->ji", "ij->j", "ij"}, {"ijk->kij", "ijk->ik", "bij->bji"},
        {"nhwc->nchw", "abcd->dcba", "abcd->bd"}};
    static const char *const two[4][2] = {{"i,i->", "i,j->ij"}, {"ij,kj->ik", "ij,ij->ij"}, {"bij,bkj->bik", "bij,bkj->bki"},
        {"bhid,bhjd->bhij", "bihd,bjhd->bhij"}};
    rl_value x = model_take(m, r->types, 1, 4, 0);
    uint32_t k = model_val(m, x)->rank - 1;
    bool pair = model_flip(m);
    model_string(m, "equation", pair ? two[k][model_pick(m, 2)] : one[k][model_pick(m, 3)]);
    model_add(m, r, (rl_value[]){x, model_same(m, x)}, pair ? 2 : 1, 1);
}

void model_op_det(model *m, const model_row *r) {
    rl_value x = model_source(m, model_dtype(m, r->types), 3, (rl_dim[]){2, 3, 3});
    model_add(m, r, &x, 1, 1);
}

/* arg: gates of a cell. */
void model_op_recurrent(model *m, const model_row *r) {
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    enum { HIDDEN = 2 };
    rl_value x = model_take(m, r->types, 3, 3, 0), in[4] = {x, RL_NOVALUE, RL_NOVALUE, RL_NOVALUE};
    if (!model_known(m, x, 2)) return;
    rl_dtype t = model_val(m, x)->dtype;
    uint32_t way = model_pick(m, 3), gates = (uint32_t)r->arg * HIDDEN;
    int64_t ndir = way == 2 ? 2 : 1;
    in[1] = model_const(m, t, 3, (int64_t[]){ndir, gates, model_dim(m, x, 2)}, -1, 1);
    in[2] = model_const(m, t, 3, (int64_t[]){ndir, gates, HIDDEN}, -1, 1);
    if (model_flip(m)) in[3] = model_const(m, t, 2, (int64_t[]){ndir, 2 * gates}, -1, 1);
    if (way) model_string(m, "direction", directions[way]);
    model_int(m, "hidden_size", HIDDEN);
    if (m->opset >= 14 && model_pick(m, 4) == 0) model_int(m, "layout", 1);
    model_add(m, r, in, 4, r->op == RL_OP_LSTM ? 3 : 2);
}

void model_op_attention(model *m, const model_row *r) {
    uint32_t rank = 3 + model_flip(m);
    rl_value q = model_take(m, r->types, rank, rank, MODEL_SIZED), k = model_same(m, q), v = model_same(m, q);
    if (rank == 3) {
        int64_t heads = model_dim(m, q, 2) % 2 == 0 ? 2 : 1;
        model_int(m, "q_num_heads", heads);
        model_int(m, "kv_num_heads", heads);
    }
    if (model_flip(m)) model_int(m, "is_causal", 1);
    model_add(m, r, (rl_value[]){q, k, v}, 3, 1);
}

void model_op_rotary(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 4, 4, MODEL_SIZED);
    int64_t d = model_dim(m, x, 3), s = model_dim(m, x, 2);
    if (d % 2) return;
    bool ids = model_flip(m);
    int64_t dim[3] = {ids ? s : model_dim(m, x, 0), ids ? d / 2 : s, d / 2}, at[2] = {model_dim(m, x, 0), s};
    rl_dtype t = model_val(m, x)->dtype;
    rl_value cosine = model_const(m, t, ids ? 2 : 3, dim, -1, 1), sine = model_const(m, t, ids ? 2 : 3, dim, -1, 1);
    rl_value places = ids ? model_const(m, RL_I64, 2, at, 0, (int)s - 1) : RL_NOVALUE;
    if (model_flip(m)) model_int(m, "interleaved", 1);
    model_add(m, r, (rl_value[]){x, cosine, sine, places}, 4, 1);
}

void model_op_causal_conv(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 3, 3, 0), in[3] = {x, RL_NOVALUE, RL_NOVALUE};
    if (!model_known(m, x, 1)) return;
    int64_t c = model_dim(m, x, 1);
    in[1] = model_const(m, model_val(m, x)->dtype, 3, (int64_t[]){c, 1, 1 + model_pick(m, 3)}, -2, 2);
    if (model_flip(m)) in[2] = model_const(m, model_val(m, x)->dtype, 1, &c, -2, 2);
    if (model_flip(m)) model_string(m, "activation", "silu");
    model_add(m, r, in, 3, 2);
}

void model_op_linear_attention(model *m, const model_row *r) {
    rl_value q = model_take(m, r->types, 3, 3, MODEL_SIZED);
    int64_t heads = model_dim(m, q, 2) % 2 == 0 ? 2 : 1;
    model_int(m, "q_num_heads", heads);
    model_int(m, "kv_num_heads", heads);
    model_string(m, "update_rule", "linear");
    rl_value k = model_same(m, q), v = model_same(m, q);
    model_add(m, r, (rl_value[]){q, k, v}, 3, 2);
}
