/* Recipes (model.h) of ops that work along a dim, or normalize. */
#include "model.h"
#include "model_args.h"

void model_op_reduce(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0), in[2] = {x, RL_NOVALUE};
    uint32_t rank = model_val(m, x)->rank, n = 0;
    int64_t axes[MODEL_RANK];
    for (uint32_t i = 0; i < rank; i++)
        if (model_flip(m)) axes[n++] = model_signed(m, i, rank);
    if (model_flip(m)) model_int(m, "keepdims", 0);
    if (n && m->opset >= (r->op == RL_OP_ReduceSum ? 13u : 18u)) in[1] = model_ints(m, n, axes);
    else if (n) model_list(m, "axes", n, axes);
    model_add(m, r, in, 2, 1);
}

void model_op_arg(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0);
    model_int(m, "axis", model_signed(m, model_axis(m, x), model_val(m, x)->rank));
    if (model_flip(m)) model_int(m, "keepdims", 0);
    if (m->opset >= 12 && model_flip(m)) model_int(m, "select_last_index", 1);
    model_add(m, r, &x, 1, 1);
}

void model_op_along(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0);
    if (model_pick(m, 4)) model_int(m, "axis", model_signed(m, model_axis(m, x), model_val(m, x)->rank));
    else if (m->opset < 13 && model_val(m, x)->rank < 2) return; /* the default is 1 there */
    if (r->op == RL_OP_LpNormalization) model_int(m, "p", 1 + model_pick(m, 2));
    model_add(m, r, &x, 1, 1);
}

void model_op_cumulative(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0);
    rl_value axis = model_scalar(m, model_flip(m) ? RL_I32 : RL_I64, (double)model_signed(m, model_axis(m, x), model_val(m, x)->rank));
    if (model_flip(m)) model_int(m, "reverse", 1);
    if (model_flip(m)) model_int(m, "exclusive", 1);
    model_add(m, r, (rl_value[]){x, axis}, 2, 1);
}

void model_op_topk(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, MODEL_RANK, 0), in[2] = {x, RL_NOVALUE};
    uint32_t axis = model_axis(m, x);
    int64_t k = model_known(m, x, axis) ? 1 + model_pick(m, (uint32_t)model_dim(m, x, axis)) : 1;
    if (m->opset >= 10) in[1] = model_ints(m, 1, &k);
    else model_int(m, "k", k);
    model_int(m, "axis", model_signed(m, axis, model_val(m, x)->rank));
    if (m->opset >= 11 && model_flip(m)) model_int(m, "largest", 0);
    model_add(m, r, in, 2, 2);
}

/* LayerNormalization and its kin: parameters as large as what is normalized. */
void model_op_layer_norm(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, 5, 0), in[3] = {x, RL_NOVALUE, RL_NOVALUE};
    uint32_t rank = model_val(m, x)->rank, axis = model_flip(m) ? rank - 1 : model_pick(m, rank);
    if (!model_known_from(m, x, axis)) return;
    for (uint32_t i = 1; i < (r->op == RL_OP_LayerNormalization && model_flip(m) ? 3u : 2u); i++)
        in[i] = model_const(m, model_val(m, x)->dtype, rank - axis, &model_val(m, x)->dim[axis], -2, 2);
    model_int(m, "axis", model_flip(m) ? axis : (int64_t)axis - rank);
    model_add(m, r, in, 3, 1);
}

/* A constant for each channel of x. */
static rl_value per_channel(model *m, rl_value x, int lo, int hi) {
    return model_const(m, model_val(m, x)->dtype, 1, (int64_t[]){model_dim(m, x, 1)}, lo, hi);
}

void model_op_batch_norm(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 2, 5, 0);
    if (!model_known(m, x, 1)) return;
    rl_value scale = per_channel(m, x, 1, 3), bias = per_channel(m, x, -2, 2), mean = per_channel(m, x, -2, 2), var = per_channel(m, x, 1, 4);
    model_add(m, r, (rl_value[]){x, scale, bias, mean, var}, 5, 1);
}

void model_op_instance_norm(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 3, 5, 0);
    if (!model_known(m, x, 1)) return;
    rl_value scale = per_channel(m, x, 1, 3), bias = per_channel(m, x, -2, 2);
    model_add(m, r, (rl_value[]){x, scale, bias}, 3, 1);
}

void model_op_group_norm(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 3, 5, 0);
    if (!model_known(m, x, 1)) return;
    int64_t c = model_dim(m, x, 1), groups = c % 2 == 0 && model_flip(m) ? 2 : 1, n = m->opset >= 21 ? c : groups;
    rl_value scale = model_const(m, model_val(m, x)->dtype, 1, &n, 1, 3), bias = model_const(m, model_val(m, x)->dtype, 1, &n, -2, 2);
    model_int(m, "num_groups", groups);
    model_add(m, r, (rl_value[]){x, scale, bias}, 3, 1);
}

void model_op_lrn(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 4, 4, 0);
    model_int(m, "size", 1 + 2 * model_pick(m, 2));
    model_add(m, r, &x, 1, 1);
}

void model_op_quantize(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types & ~(1u << RL_I32), 0, 5, 0), in[3] = {x, RL_NOVALUE, RL_NOVALUE};
    rl_dtype made = model_pick(m, 3) ? RL_U8 : RL_I8, t = m->opset >= 19 ? model_val(m, x)->dtype : RL_F32;
    uint32_t rank = model_val(m, x)->rank, axis = rank ? model_pick(m, rank) : 0;
    bool per_axis = rank && m->opset >= 13 && r->op == RL_OP_QuantizeLinear && model_known(m, x, axis) && model_pick(m, 3) == 0;
    int64_t n = per_axis ? model_dim(m, x, axis) : 1;
    if (per_axis) model_int(m, "axis", model_signed(m, axis, rank));
    in[1] = model_const(m, t, per_axis, &n, 1, 2);
    in[2] = model_const(m, made, per_axis, &n, 0, 3);
    rl_value q = model_add(m, r, in, 3, 1);
    if (!rl_has(q) || model_pick(m, 3) == 0) return;
    if (per_axis) model_int(m, "axis", axis);
    in[0] = q;
    model_add_op(m, r->op == RL_OP_QuantizeLinear ? RL_OP_DequantizeLinear : RL_OP_ms_DequantizeLinear, in, 3, 1);
}

void model_op_dequantize(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types & (1u << RL_I8 | 1u << RL_U8), 0, 5, 0), in[3] = {x, RL_NOVALUE, RL_NOVALUE};
    uint32_t rank = model_val(m, x)->rank, axis = rank ? model_pick(m, rank) : 0;
    bool known = rank && m->opset >= 13 && r->op == RL_OP_DequantizeLinear && model_known(m, x, axis);
    int64_t d = known ? model_dim(m, x, axis) : 1;
    bool blocks = known && m->opset >= 21 && d % 2 == 0 && model_known_from(m, x, 0) && model_pick(m, 4) == 0;
    bool per_axis = known && !blocks && model_flip(m);
    int64_t dim[MODEL_RANK] = {d};
    for (uint32_t i = 0; blocks && i < rank; i++) dim[i] = model_dim(m, x, i) / (i == axis ? 2 : 1);
    if (blocks) model_int(m, "block_size", 2);
    if (blocks || per_axis) model_int(m, "axis", model_signed(m, axis, rank));
    in[1] = model_const(m, RL_F32, blocks ? rank : per_axis, dim, 1, 3);
    if (model_flip(m)) in[2] = model_const(m, model_val(m, x)->dtype, blocks ? rank : per_axis, dim, 0, 3);
    model_add(m, r, in, 3, 1);
}
