/* Recipes (model.h) of ops that make values, of signals, strings, losses, and of ops of other domains. */

#include "model.h"
#include "model_args.h"

void model_op_constant(model *m, const model_row *r) {
    static const uint8_t sizes[] = {1, 2, 3, 4, 6};
    uint32_t types = r->types & ~(1u << RL_STRING), rank = model_pick(m, 4);
    int64_t dim[4];
    for (uint32_t i = 0; i < rank; i++) dim[i] = sizes[model_pick(m, RL_LEN(sizes))];
    rl_value v = model_const(m, model_dtype(m, types), rank, dim, -4, 4);
    model_add_op(m, RL_OP_Identity, &v, 1, 1); /* constants themselves are not read by choice */
}

void model_op_constant_of_shape(model *m, const model_row *r) {
    rl_value x = model_take(m, 1u << RL_F32 | 1u << RL_I64, 1, 4, 0), shape = model_add_op(m, RL_OP_Shape, &x, 1, 1);
    if (rl_has(shape)) model_add(m, r, &shape, 1, 1);
}

void model_op_eye_like(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 2, 2, 0);
    model_add(m, r, &x, 1, 1);
}

/* Random ops have a seed, so that they give the same numbers in any order of nodes. */
void model_op_random_new(model *m, const model_row *r) {
    model_list(m, "shape", 2, (int64_t[]){2, 3});
    model_float(m, "seed", 1 + model_pick(m, 4));
    model_add(m, r, NULL, 0, 1);
}

void model_op_random_like(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types & (1u << RL_F32 | 1u << RL_F16 | 1u << RL_F64), 0, 4, 0);
    model_float(m, "seed", 1 + model_pick(m, 4));
    model_add(m, r, &x, 1, 1);
}

void model_op_multinomial(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 2, 2, 0);
    model_float(m, "seed", 1);
    model_int(m, "sample_size", 2);
    model_add(m, r, &x, 1, 1);
}

void model_op_window(model *m, const model_row *r) {
    rl_value n = model_scalar(m, RL_I64, 2 + model_pick(m, 6));
    model_add(m, r, &n, 1, 1);
}

/* A last dim of 1: real numbers. */
static rl_value take_signal(model *m, const model_row *r, uint32_t rank) {
    rl_value x = model_take(m, r->types & ~(1u << RL_BF16), rank, rank, MODEL_SIZED);
    if (!rl_has(x) || model_dim(m, x, rank - 1) == 1) return x;
    return model_source(m, model_val(m, x)->dtype, rank, (rl_dim[]){2, 8, 1, 1});
}

void model_op_dft(model *m, const model_row *r) {
    rl_value x = take_signal(m, r, 3);
    if (model_dim(m, x, 2) != 1) return;
    if (m->opset < 20) model_int(m, "axis", 1);
    if (model_flip(m)) model_int(m, "inverse", 1);
    rl_value axis = m->opset >= 20 ? model_scalar(m, RL_I64, 1) : RL_NOVALUE;
    model_add(m, r, (rl_value[]){x, RL_NOVALUE, axis}, 3, 1);
}

void model_op_stft(model *m, const model_row *r) {
    rl_value x = model_source(m, model_dtype(m, r->types & ~(1u << RL_BF16)), 3, (rl_dim[]){1, 12, 1});
    rl_value step = model_scalar(m, RL_I64, 2), window = model_const(m, model_val(m, x)->dtype, 1, (int64_t[]){4}, 1, 2);
    model_int(m, "onesided", 1);
    model_add(m, r, (rl_value[]){x, step, window}, 3, 1);
}

void model_op_mel(model *m, const model_row *r) {
    rl_value in[5];
    const double x[5] = {4, 8, 8000, 0, 4000};
    for (uint32_t i = 0; i < 5; i++) in[i] = model_scalar(m, i < 3 ? RL_I64 : RL_F32, x[i]);
    model_add(m, r, in, 5, 1);
}

void model_op_grid_sample(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types & (1u << RL_F32 | 1u << RL_F64 | 1u << RL_F16), 4, 4, 0);
    if (!model_known(m, x, 0)) return;
    rl_value grid = model_const(m, model_val(m, x)->dtype, 4, (int64_t[]){model_dim(m, x, 0), 2, 3, 2}, -1, 1);
    if (model_flip(m)) model_string(m, "mode", m->opset >= 20 ? "linear" : "bilinear");
    if (model_flip(m)) model_string(m, "padding_mode", "border");
    model_add(m, r, (rl_value[]){x, grid}, 2, 1);
}

void model_op_affine_grid(model *m, const model_row *r) {
    rl_value theta = model_source(m, model_dtype(m, r->types), 3, (rl_dim[]){2, 2, 3});
    model_add(m, r, (rl_value[]){theta, model_ints(m, 4, (int64_t[]){2, 3, 4, 2})}, 2, 1);
}

void model_op_col2im(model *m, const model_row *r) {
    rl_value x = model_source(m, model_dtype(m, r->types & ~(1u << RL_STRING | 1u << RL_BOOL)), 3, (rl_dim[]){1, 8, 4});
    rl_value image = model_ints(m, 2, (int64_t[]){3, 3}), block = model_ints(m, 2, (int64_t[]){2, 2});
    model_add(m, r, (rl_value[]){x, image, block}, 3, 1);
}

void model_op_center_crop(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types & ~(1u << RL_STRING), 1, 4, 0);
    uint32_t axis = model_axis(m, x);
    model_list(m, "axes", 1, (int64_t[]){axis});
    model_add(m, r, (rl_value[]){x, model_ints(m, 1, (int64_t[]){1 + model_pick(m, 6)})}, 2, 1);
}

void model_op_loss(model *m, const model_row *r) {
    static const char *const reductions[] = {"none", "sum", "mean"};
    rl_value x = model_take(m, r->types, 2, 4, MODEL_SIZED), in[3] = {x, RL_NOVALUE, RL_NOVALUE};
    int64_t dim[MODEL_RANK], c = model_dim(m, x, 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < model_val(m, x)->rank; i++)
        if (i != 1) dim[n++] = model_dim(m, x, i);
    in[1] = model_const(m, RL_I64, n, dim, 0, (int)c - 1);
    if (model_flip(m)) in[2] = model_const(m, model_val(m, x)->dtype, 1, &c, 1, 2);
    model_string(m, "reduction", reductions[model_pick(m, 3)]);
    model_add(m, r, in, 3, r->op == RL_OP_SoftmaxCrossEntropyLoss ? 1 + model_pick(m, 2) : 1);
}

/* ---- strings ---- */

void model_op_string_normalizer(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, 1, 0);
    if (!rl_has(x)) return;
    model_string(m, "case_change_action", model_flip(m) ? "LOWER" : "UPPER");
    model_add(m, r, &x, 1, 1);
}

void model_op_string_split(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 0, 3, 0);
    if (!rl_has(x)) return;
    if (model_flip(m)) model_string(m, "delimiter", " ");
    if (model_flip(m)) model_int(m, "maxsplit", 1);
    model_add(m, r, &x, 1, 2);
}

void model_op_regex(model *m, const model_row *r) {
    static const char *const patterns[] = {"a", "[a-z ]*", ".*", "-?[0-9.]+"};
    rl_value x = model_take(m, r->types, 0, 4, 0);
    if (!rl_has(x)) return;
    model_string(m, "pattern", patterns[model_pick(m, RL_LEN(patterns))]);
    model_add(m, r, &x, 1, 1);
}

void model_op_tf_idf(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types & (1u << RL_I64 | 1u << RL_I32), 1, 2, 0);
    model_string(m, "mode", "TF");
    model_int(m, "min_gram_length", 1);
    model_int(m, "max_gram_length", 1);
    model_int(m, "max_skip_count", 0);
    model_list(m, "ngram_counts", 1, (int64_t[]){0});
    model_list(m, "ngram_indexes", 3, (int64_t[]){0, 1, 2});
    model_list(m, "pool_int64s", 3, (int64_t[]){0, 1, 2});
    model_add(m, r, &x, 1, 1);
}

void model_op_image_decoder(model *m, const model_row *r) {
    rl_value x = model_take(m, r->types, 1, 1, 0);
    model_add(m, r, &x, 1, 1);
}

/* An op of another domain, whose inputs ONNX says nothing about: any. */
void model_op_foreign(model *m, const model_row *r) {
    rl_value in[3];
    uint32_t n = 1 + model_pick(m, 3);
    bool pool = r->op == RL_OP_ms_MaxpoolWithMask || r->op == RL_OP_ms_QLinearAveragePool;
    for (uint32_t i = 0; i < n; i++) in[i] = model_take(m, r->types, pool ? 4 : 0, 4, 0);
    if (pool) model_list(m, "kernel_shape", 2, (int64_t[]){1, 1});
    else if (model_flip(m)) model_int(m, "num_heads", 2);
    model_try(m, r, in, n, 1);
}
