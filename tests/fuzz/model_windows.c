/* Recipes (model.h) of ops that slide windows over the dims behind N and C. */
#include "model.h"
#include "model_args.h"

/* kernel_shape, strides, pads and dilations that fit x's spatial dims, from dim `first` on. */
typedef struct {
    uint32_t n;
    int64_t size[3];
    bool covers; /* no window can start behind the tensor, which tools count in two ways */
} window;

static window choose_window(model *m, rl_value x, uint32_t first, bool dilates) {
    window w = {.n = model_val(m, x)->rank - first};
    int64_t stride[3], pads[6] = {0}, dilation[3];
    bool any_stride = model_flip(m), any_pad = model_flip(m), any_dilation = dilates && model_pick(m, 4) == 0;
    w.covers = !any_pad;
    for (uint32_t i = 0; i < w.n && i < 3; i++) {
        int64_t d = model_dim(m, x, first + i);
        w.size[i] = 1 + model_pick(m, (uint32_t)RL_MIN(d, 3));
        w.covers &= w.size[i] > 1;
        stride[i] = any_stride ? 1 + model_pick(m, 2) : 1;
        dilation[i] = any_dilation && 2 * (w.size[i] - 1) + 1 <= d ? 2 : 1;
        if (any_pad && w.size[i] > 1) pads[i] = model_pick(m, 2), pads[w.n + i] = model_pick(m, 2);
    }
    if (any_stride) model_list(m, "strides", w.n, stride);
    if (any_pad) model_list(m, "pads", 2 * w.n, pads);
    if (any_dilation) model_list(m, "dilations", w.n, dilation);
    return w;
}

void model_op_pool(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 3, 5, 0);
    if (!model_known_from(m, x, 2)) return;
    uint32_t dilated = r->arg == POOL_MAX ? 10 : r->arg == POOL_AVERAGE ? 19 : 18, ceiled = r->arg == POOL_LP ? 18 : 10;
    window w = choose_window(m, x, 2, m->opset >= dilated);
    model_list(m, "kernel_shape", w.n, w.size);
    if (m->opset >= ceiled && w.covers && model_pick(m, 4) == 0) model_int(m, "ceil_mode", 1);
    if (r->arg == POOL_AVERAGE && model_flip(m)) model_int(m, "count_include_pad", 1);
    if (r->arg == POOL_LP) model_int(m, "p", 1 + model_pick(m, 2));
    model_add(m, r, &x, 1, r->arg == POOL_MAX && m->opset >= 8 && model_pick(m, 4) == 0 ? 2 : 1);
}

void model_op_global_pool(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 3, 5, 0);
    model_add(m, r, &x, 1, 1);
}

/* Dims of weights for x: [out, C / groups, window], of a transposed convolution [C, out / groups, window]. */
static uint32_t weight_dims(model *m, rl_value x, window w, bool transposed, int64_t *dim, int64_t *groups) {
    int64_t c = model_dim(m, x, 1), each = 1 + model_pick(m, 3);
    *groups = model_pick(m, 3) ? 1 : c % 2 == 0 && model_flip(m) ? 2 : c;
    dim[0] = transposed ? c : *groups * each;
    dim[1] = transposed ? each : c / *groups;
    for (uint32_t i = 0; i < w.n; i++) dim[2 + i] = w.size[i];
    if (*groups != 1) model_int(m, "group", *groups);
    return 2 + w.n;
}

void model_op_conv(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 3, 5, 0), in[3] = {x, RL_NOVALUE, RL_NOVALUE};
    if (!model_known_from(m, x, 1)) return;
    bool transposed = r->arg == CONV_TRANSPOSE;
    rl_dtype t = model_val(m, x)->dtype;
    int64_t dim[5], groups;
    window w = choose_window(m, x, 2, true);
    uint32_t n = weight_dims(m, x, w, transposed, dim, &groups);
    int64_t out = transposed ? dim[1] * groups : dim[0];
    in[1] = model_const(m, t, n, dim, -2, 2);
    if (model_flip(m)) in[2] = model_const(m, t, 1, &out, -2, 2);
    if (r->op == RL_OP_ms_FusedConv) model_string(m, "activation", "Relu");
    model_add(m, r, in, 3, 1);
}

void model_op_conv_integer(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 4, 4, 0), in[4] = {x, RL_NOVALUE, RL_NOVALUE, RL_NOVALUE};
    if (!model_known_from(m, x, 1)) return;
    int64_t dim[5], groups;
    window w = choose_window(m, x, 2, true);
    uint32_t n = weight_dims(m, x, w, false, dim, &groups);
    in[1] = model_const(m, model_flip(m) ? RL_I8 : RL_U8, n, dim, -2, 2);
    if (model_flip(m)) in[2] = model_scalar(m, model_val(m, x)->dtype, 1);
    model_add(m, r, in, 4, 1);
}

void model_op_qlinear_conv(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 4, 4, 0);
    if (!model_known_from(m, x, 1)) return;
    rl_dtype t = model_val(m, x)->dtype;
    int64_t dim[5], groups;
    window w = choose_window(m, x, 2, true);
    uint32_t n = weight_dims(m, x, w, false, dim, &groups);
    rl_value zero = model_scalar(m, t, 1), scale = model_scalar(m, RL_F32, 0.5), weight = model_const(m, t, n, dim, 0, 3);
    rl_value bias = model_flip(m) ? model_const(m, RL_I32, 1, dim, -4, 4) : RL_NOVALUE;
    model_add(m, r, (rl_value[]){x, scale, zero, weight, scale, zero, scale, zero, bias}, 9, 1);
}

void model_op_deform_conv(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 4, 4, MODEL_SIZED);
    rl_dtype t = model_val(m, x)->dtype;
    int64_t h = model_dim(m, x, 2), w = model_dim(m, x, 3), k = h > 1 && w > 1 ? 2 : 1;
    rl_value weight = model_const(m, t, 4, (int64_t[]){2, model_dim(m, x, 1), k, k}, -2, 2);
    rl_value offset = model_const(m, t, 4, (int64_t[]){model_dim(m, x, 0), 2 * k * k, h - k + 1, w - k + 1}, -1, 1);
    model_add(m, r, (rl_value[]){x, weight, offset}, 3, 1);
}

void model_op_unpool(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 4, 4, MODEL_SIZED);
    if (model_dim(m, x, 2) < 2 || model_dim(m, x, 3) < 2) return;
    const int64_t two[2] = {2, 2};
    model_list(m, "kernel_shape", 2, two);
    model_list(m, "strides", 2, two);
    rl_value pooled = model_add_op(m, RL_OP_MaxPool, &x, 1, 2);
    if (!rl_has(pooled)) return;
    rl_value at = rl_nod(m->g, m->last)->out[1];
    model_list(m, "kernel_shape", 2, two);
    model_list(m, "strides", 2, two);
    model_add(m, r, (rl_value[]){pooled, at}, 2, 1);
}

void model_op_roi(model *m, const model_row *r) {
    bool align = r->op == RL_OP_RoiAlign;
    rl_value x = model_take(m, r->types, 4, 4, 0), in[3];
    double box[2][5] = {{0, 0, 0, 1, 1}, {0, 0, 1, 2, 3}};
    rl_dtype t = model_val(m, x)->dtype;
    const int64_t two = 2;
    in[0] = x;
    if (align) {
        double flat[8];
        for (uint32_t i = 0; i < 8; i++) flat[i] = box[i / 4][1 + i % 4];
        in[1] = model_filled(m, t, 2, (int64_t[]){2, 4}, flat);
        in[2] = model_ints(m, 2, (int64_t[]){0, 0});
        model_int(m, "output_height", 2);
        model_int(m, "output_width", 1 + model_pick(m, 2));
        if (m->opset < 16 || model_flip(m)) model_string(m, "mode", model_flip(m) ? "max" : "avg");
    } else {
        in[1] = model_filled(m, t, 2, (int64_t[]){2, 5}, &box[0][0]);
        model_list(m, "pooled_shape", 2, (int64_t[]){two, 1 + model_pick(m, 2)});
    }
    model_add(m, r, in, align ? 3 : 2, 1);
}

/* com.microsoft: x is [N, H, W, C]. */
void model_op_nhwc(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 4, 4, MODEL_SIZED);
    const int64_t size[2] = {RL_MIN(2, model_dim(m, x, 1)), RL_MIN(2, model_dim(m, x, 2))};
    if (r->arg == NHWC_POOL) {
        model_list(m, "kernel_shape", 2, size);
        model_try(m, r, &x, 1, 1);
        return;
    }
    int64_t dim[4] = {1 + model_pick(m, 4), model_dim(m, x, 3), size[0], size[1]};
    rl_value w = model_const(m, model_val(m, x)->dtype, 4, dim, -2, 2);
    model_try(m, r, (rl_value[]){x, w}, 2, 1);
}
