/* Recipes (model.h) of ops that work element by element. */

#include "model.h"
#include "model_args.h"

void model_op_unary(model *m, const model_row *r) {
    uint32_t rank = r->arg == RANK4 ? 4 : 0;
    rl_value x = model_take(m, r->types, rank, rank ? rank : MODEL_RANK, 0);
    if (!rl_has(x)) return;
    if (r->arg == ALPHA && model_flip(m)) model_float(m, "alpha", 0.25 * (1 + model_pick(m, 4)));
    if (r->op == RL_OP_Gelu && model_flip(m)) model_string(m, "approximate", "tanh");
    if (r->arg == RANK4 && model_flip(m)) model_list(m, "axes", 2, (int64_t[]){model_pick(m, 2), 2 + model_pick(m, 2)});
    model_add(m, r, &x, 1, r->arg == OUTPUTS3 ? 3 : 1);
}

void model_op_binary(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 0, MODEL_RANK, 0), y;
    if (!rl_has(x)) return;
    rl_dtype t = model_val(m, x)->dtype;
    bool is_float = t == RL_F32 || t == RL_F16 || t == RL_F64 || t == RL_BF16;
    if (r->arg == BY_CONSTANT) y = model_part(m, t, x, 1, 3);
    else y = r->arg == SAME_SHAPE ? model_same(m, x) : model_like(m, x);
    if (r->op == RL_OP_Mod && (is_float || model_flip(m))) model_int(m, "fmod", 1);
    if (r->op == RL_OP_BitShift) model_string(m, "direction", model_flip(m) ? "LEFT" : "RIGHT");
    bool swapped = r->arg != BY_CONSTANT && model_flip(m);
    model_add(m, r, (rl_value[]){swapped ? y : x, swapped ? x : y}, 2, 1);
}

void model_op_variadic(model *m, const model_row *r) {
    rl_value in[4];
    uint32_t n = 1 + model_pick(m, 3);
    in[0] = model_take(m, r->types, 0, MODEL_RANK, 0);
    for (uint32_t i = 1; i < n; i++) in[i] = model_like(m, in[0]);
    model_add(m, r, in, n, 1);
}

void model_op_where(model *m, const model_row *r) {
    (void)r->types; /* of the condition */
    uint32_t types = 1u << RL_F32 | 1u << RL_F16 | 1u << RL_I64 | 1u << RL_U8 | 1u << RL_BOOL | (m->opset >= 16 ? 1u << RL_BF16 : 0u);
    rl_value x = model_take(m, types, 0, MODEL_RANK, 0), y = model_like(m, x), c = RL_NOVALUE;
    if (m->opset >= 13 && model_flip(m)) c = model_add_op(m, RL_OP_Equal, (rl_value[]){x, model_like(m, x)}, 2, 1);
    if (!rl_has(c)) c = model_part(m, RL_BOOL, x, 0, 1);
    bool swapped = model_flip(m);
    model_add(m, r, (rl_value[]){c, swapped ? y : x, swapped ? x : y}, 3, 1);
}

void model_op_clip(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 0, MODEL_RANK, 0), in[3] = {x, RL_NOVALUE, RL_NOVALUE};
    rl_dtype t = model_val(m, x)->dtype;
    uint32_t way = model_pick(m, 4);
    if (m->opset < 11) {
        if (way & 1) model_float(m, "min", 0);
        if (way & 2) model_float(m, "max", 6);
    } else {
        if (way & 1) in[1] = model_scalar(m, t, 0);
        if (way & 2) in[2] = model_scalar(m, t, 6);
    }
    model_add(m, r, in, 3, 1);
}

void model_op_cast(model *m, const model_row *r) {
    static const rl_dtype to[] = {RL_F32, RL_F16, RL_I32, RL_F64, RL_I64, RL_U8, RL_I8, RL_BOOL, RL_U16, RL_BF16, RL_F8E4M3FN, RL_F8E5M2,
        RL_I4, RL_U4};
    rl_value x = model_take(m, r->types & ~(1u << RL_STRING), 0, MODEL_RANK, 0);
    uint32_t n = m->opset >= 21 ? 14 : m->opset >= 19 ? 12 : m->opset >= 13 ? 10 : 9;
    model_int(m, "to", to[model_pick(m, n)]);
    model_add(m, r, &x, 1, 1);
}

void model_op_cast_like(model *m, const model_row *r) {
    uint32_t types = r->types & ~(1u << RL_STRING);
    rl_value x = model_take(m, types, 0, MODEL_RANK, 0), like = model_take(m, types, 0, MODEL_RANK, 0);
    model_add(m, r, (rl_value[]){x, like}, 2, 1);
}

void model_op_bitcast(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types & ~(1u << RL_BOOL), 0, MODEL_RANK, 0);
    rl_dtype to[8];
    uint32_t n = 0, bits = rl_dtype_bits(model_val(m, x)->dtype);
    for (uint32_t t = RL_F32; t <= RL_BF16 && n < RL_LEN(to); t++)
        if ((r->types >> t & 1) && t != RL_BOOL && rl_dtype_bits((rl_dtype)t) == bits) to[n++] = (rl_dtype)t;
    model_int(m, "to", to[model_pick(m, n)]);
    model_add(m, r, &x, 1, 1);
}

void model_op_dropout(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 0, MODEL_RANK, 0), in[2] = {x, RL_NOVALUE};
    if (model_flip(m)) {
        if (m->opset < 12) model_float(m, "ratio", 0.25);
        else in[1] = model_scalar(m, RL_F32, 0.25);
    }
    model_add(m, r, in, 2, m->opset >= 10 && model_flip(m) ? 2 : 1);
}

/* com.microsoft: Gelu(x + bias) */
void model_op_bias_gelu(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, 4, 0);
    uint32_t last = model_val(m, x)->rank - 1;
    if (!model_known(m, x, last)) return;
    rl_value bias = model_const(m, model_val(m, x)->dtype, 1, (int64_t[]){model_dim(m, x, last)}, -2, 2);
    model_add(m, r, (rl_value[]){x, bias}, 2, 1);
}

/* com.microsoft: normalizes x + skip */
void model_op_skip_norm(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 3, 3, 0);
    if (!model_known(m, x, 2)) return;
    rl_dtype t = model_val(m, x)->dtype;
    int64_t c = model_dim(m, x, 2);
    rl_value scale = model_const(m, t, 1, &c, -2, 2), bias = model_flip(m) ? model_const(m, t, 1, &c, -2, 2) : RL_NOVALUE;
    model_add(m, r, (rl_value[]){x, model_same(m, x), scale, bias}, 4, 1);
}

static rl_value qlinear_scale(model *m) {
    return model_scalar(m, RL_F32, 0.5 * (1 + model_pick(m, 4)));
}

/* com.microsoft: ops on quantized numbers, each with scale and zero point behind it. */
void model_op_qlinear(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, r->op == RL_OP_ms_QLinearSoftmax, 4, 0), in[10];
    rl_dtype t = model_val(m, x)->dtype;
    uint32_t n = 0;
    if (r->arg == QLINEAR_WHERE) in[n++] = model_part(m, RL_BOOL, x, 0, 1);
    for (uint32_t i = 0; i < (r->arg ? 2u : 1u); i++) {
        in[n++] = i ? model_part(m, t, x, 0, 5) : x;
        in[n++] = qlinear_scale(m);
        in[n++] = model_scalar(m, t, model_pick(m, 4));
    }
    in[n++] = qlinear_scale(m);
    in[n++] = model_scalar(m, t, model_pick(m, 4));
    if (r->op == RL_OP_ms_QLinearLeakyRelu) model_float(m, "alpha", 0.25);
    if (r->op == RL_OP_ms_QLinearSoftmax) model_int(m, "opset", 13);
    model_add(m, r, in, n, 1);
}

void model_op_qlinear_concat(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, 4, 0), y = model_same(m, x);
    rl_value zero = model_scalar(m, model_val(m, x)->dtype, 1), scale = qlinear_scale(m);
    model_int(m, "axis", model_axis(m, x));
    model_add(m, r, (rl_value[]){scale, zero, x, scale, zero, y, scale, zero}, 8, 1);
}
