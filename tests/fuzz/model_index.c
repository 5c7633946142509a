/* Recipes (model.h) of ops that take indices, or give them. */
#include "model.h"
#include "model_args.h"

static rl_dtype index_type(model *m) {
    return model_flip(m) ? RL_I32 : RL_I64;
}

/* Not a string: of those there are no constants. */
static rl_value take_numbers(model *m, const model_row *r, uint32_t least, uint32_t most, int flags) {
    return model_take(m, r->types & ~(1u << RL_STRING), least, most, flags);
}

/* Dims as x's, but not more than 3 along `axis`. */
static uint32_t shorter_dims(const model *m, rl_value x, uint32_t axis, int64_t *dim) {
    uint32_t n = model_val(m, x)->rank;
    for (uint32_t i = 0; i < n; i++) dim[i] = i == axis ? RL_MIN(model_dim(m, x, i), 3) : model_dim(m, x, i);
    return n;
}

void model_op_gather_elements(model *m, const model_row *r) {
    rl_value x = take_numbers(m, r, 1, MODEL_RANK, MODEL_SIZED);
    int64_t dim[MODEL_RANK];
    uint32_t axis = model_axis(m, x), n = shorter_dims(m, x, axis, dim);
    rl_value at = model_const(m, index_type(m), n, dim, 0, (int)model_dim(m, x, axis) - 1);
    model_int(m, "axis", model_signed(m, axis, n));
    model_add(m, r, (rl_value[]){x, at}, 2, 1);
}

void model_op_scatter_elements(model *m, const model_row *r) {
    rl_value x = take_numbers(m, r, 1, MODEL_RANK, MODEL_SIZED);
    rl_dtype t = model_val(m, x)->dtype;
    int64_t dim[MODEL_RANK];
    uint32_t axis = model_axis(m, x), n = shorter_dims(m, x, axis, dim), total = 1;
    for (uint32_t i = 0; i < n; i++) total *= (uint32_t)dim[i], dim[i] = i == axis ? dim[i] : model_dim(m, x, i);
    double *place = rl_new(&m->ctx->mem, double, total);
    uint32_t inner = 1;
    for (uint32_t i = axis + 1; i < n; i++) inner *= (uint32_t)dim[i];
    for (uint32_t i = 0; i < total; i++) place[i] = (double)(dim[axis] - 1 - i / inner % (uint32_t)dim[axis]); /* no place twice */
    rl_value at = model_filled(m, index_type(m), n, dim, place), with = model_const(m, t, n, dim, -4, 4);
    model_int(m, "axis", model_signed(m, axis, n));
    bool reduces = r->op == RL_OP_ScatterElements && m->opset >= 16 && t != RL_BOOL && model_flip(m);
    if (reduces) model_string(m, "reduction", model_flip(m) ? "add" : "mul");
    model_add(m, r, (rl_value[]){x, at, with}, 3, 1);
}

void model_op_gather_nd(model *m, const model_row *r) {
    rl_value x = take_numbers(m, r, 1, MODEL_RANK, 0);
    rl_value at = model_const(m, RL_I64, 2, (int64_t[]){1 + model_pick(m, 3), 1 + model_pick(m, model_val(m, x)->rank)}, 0, 0);
    model_add(m, r, (rl_value[]){x, at}, 2, 1);
}

void model_op_scatter_nd(model *m, const model_row *r) {
    rl_value x = take_numbers(m, r, 1, MODEL_RANK, MODEL_SIZED);
    int64_t dim[MODEL_RANK] = {1};
    uint32_t n = model_val(m, x)->rank;
    for (uint32_t i = 1; i < n; i++) dim[i] = model_dim(m, x, i);
    double place = model_pick(m, (uint32_t)model_dim(m, x, 0));
    rl_value at = model_filled(m, RL_I64, 2, (int64_t[]){1, 1}, &place), with = model_const(m, model_val(m, x)->dtype, n, dim, -4, 4);
    model_add(m, r, (rl_value[]){x, at, with}, 3, 1);
}

void model_op_compress(model *m, const model_row *r) {
    rl_value x = take_numbers(m, r, 1, MODEL_RANK, MODEL_SIZED);
    uint32_t axis = model_axis(m, x);
    rl_value keep = model_const(m, RL_BOOL, 1, (int64_t[]){model_dim(m, x, axis)}, 0, 1);
    if (model_pick(m, 4)) model_int(m, "axis", model_signed(m, axis, model_val(m, x)->rank));
    model_add(m, r, (rl_value[]){x, keep}, 2, 1);
}

void model_op_unique(model *m, const model_row *r) {
    rl_value x = take_numbers(m, r, 1, 4, 0);
    if (model_flip(m)) model_int(m, "axis", model_axis(m, x));
    model_add(m, r, &x, 1, 4);
}

void model_op_one_hot(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types & (1u << RL_I64 | 1u << RL_I32 | 1u << RL_U8), 1, 3, 0);
    rl_value depth = model_scalar(m, RL_I64, 1 + model_pick(m, 4)), values = model_const(m, RL_F32, 1, (int64_t[]){2}, -1, 3);
    model_int(m, "axis", (int64_t)model_pick(m, model_val(m, x)->rank + 1));
    model_add(m, r, (rl_value[]){x, depth, values}, 3, 1);
}

void model_op_trilu(model *m, const model_row *r) {
    rl_value x = take_numbers(m, r, 2, 5, 0), k = model_flip(m) ? model_scalar(m, RL_I64, (double)model_pick(m, 3) - 1) : RL_NOVALUE;
    if (model_flip(m)) model_int(m, "upper", 0);
    model_add(m, r, (rl_value[]){x, k}, 2, 1);
}

void model_op_reverse_sequence(model *m, const model_row *r) {
    rl_value x = take_numbers(m, r, 2, 5, MODEL_SIZED);
    uint32_t batch = model_pick(m, 2);
    rl_value lengths = model_const(m, RL_I64, 1, (int64_t[]){model_dim(m, x, batch)}, 1, (int)model_dim(m, x, !batch));
    model_int(m, "batch_axis", batch);
    model_int(m, "time_axis", !batch);
    model_add(m, r, (rl_value[]){x, lengths}, 2, 1);
}

void model_op_nms(model *m, const model_row *r) {
    rl_value boxes = model_source(m, RL_F32, 3, (rl_dim[]){1, 4, 4}), scores = model_source(m, RL_F32, 3, (rl_dim[]){1, 2, 4});
    model_add(m, r, (rl_value[]){boxes, scores, model_ints(m, 1, (int64_t[]){2})}, 3, 1);
}

void model_op_range(model *m, const model_row *r) {
    rl_dtype t = model_dtype(m, r->types & ~(1u << RL_F16 | 1u << RL_BF16));
    rl_value from = model_scalar(m, t, 0), to = model_scalar(m, t, 1 + model_pick(m, 8)), step = model_scalar(m, t, 1 + model_pick(m, 3));
    model_add(m, r, (rl_value[]){from, to, step}, 3, 1);
}

void model_op_shape(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 0, MODEL_RANK, 0);
    if (!rl_has(x)) return;
    if (r->op == RL_OP_Shape && m->opset >= 15 && model_val(m, x)->rank && model_flip(m)) model_int(m, "start", model_axis(m, x));
    model_add(m, r, &x, 1, 1);
}

void model_op_tensor_scatter(model *m, const model_row *r) {
    rl_value x = take_numbers(m, r, 3, 4, MODEL_SIZED);
    int64_t dim[MODEL_RANK];
    uint32_t n = shorter_dims(m, x, 1, dim);
    dim[1] = 1;
    rl_value with = model_const(m, model_val(m, x)->dtype, n, dim, -4, 4);
    rl_value at = model_const(m, RL_I64, 1, dim, 0, (int)model_dim(m, x, 1) - 1);
    model_int(m, "axis", 1);
    model_add(m, r, (rl_value[]){x, with, at}, 3, 1);
}
