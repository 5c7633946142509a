/* Pools and normalizations by cuDNN (dnn_graph.h).
 *
 *   pools       the largest, or the mean with or without padding, of a window; two or three spatial dims
 *   lines       LayerNormalization, RMSNormalization: x as [rows, n, 1, 1], scale and bias as [1, n, 1, 1]
 *   channels    InstanceNormalization: x as [N, C, H, W], scale and bias as [1, C, 1, 1] */
#include <string.h>

#include "dnn_graph.h"

enum { UID_X = 1, UID_Y, UID_SCALE, UID_BIAS, UID_EPSILON };

static rl_dnn_item tensor_of(rl_dnn_maker *m, int64_t uid, cudnnDataType_t t, const rl_dnn_view *v) {
    return rl_dnn_tensor(m, &(rl_dnn_strided){.uid = uid, .type = t, .rank = v->rank, .dim = v->dim, .stride = v->stride});
}

/* ---- pools ---- */

static rl_dnn_item pool_window(rl_dnn_maker *m, const rl_dnn_pool_job *j) {
    cudnnResampleMode_t mode = j->op == RL_DNN_POOL_MAX ? CUDNN_RESAMPLE_MAXPOOL : j->op == RL_DNN_POOL_MEAN_OF_ALL ? CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING
                                                                                                              : CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
    cudnnPaddingMode_t pad = j->op == RL_DNN_POOL_MAX ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnNanPropagation_t nan = j->op == RL_DNN_POOL_MAX ? CUDNN_NOT_PROPAGATE_NAN : CUDNN_PROPAGATE_NAN; /* as the CPU's, and kernel pool */
    int64_t r = j->x.rank - 2;
    rl_dnn_item d = rl_dnn_make(m, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    rl_dnn_set(m, d, CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &mode);
    rl_dnn_set(m, d, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    rl_dnn_set(m, d, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
    rl_dnn_set(m, d, CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &pad);
    rl_dnn_set(m, d, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &r);
    rl_dnn_set(m, d, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_INT64, r, j->window);
    rl_dnn_set(m, d, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_INT64, r, j->before);
    rl_dnn_set(m, d, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_INT64, r, j->after);
    rl_dnn_set(m, d, CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_INT64, r, j->step);
    return rl_dnn_finish(m, d);
}

static rl_dnn_item pool_graph(rl_dnn_maker *m, const void *key) {
    const rl_dnn_pool_job *j = key;
    rl_dnn_item x = tensor_of(m, UID_X, rl_dnn_type(j->type), &j->x), y = tensor_of(m, UID_Y, rl_dnn_type(j->type), &j->y), window = pool_window(m, j);
    rl_dnn_item d = rl_dnn_make(m, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &window);
    rl_dnn_finish(m, d);
    return rl_dnn_graph(m, &d, 1);
}

static rl_dnn_asked pool_asked(const rl_dnn_pool_job *j) {
    return (rl_dnn_asked){.graph = pool_graph, .key = j, .nkey = sizeof *j}; /* nothing is rounded to fewer bits than the type has */
}

rl_status rl_dnn_pool(rl_call *call, const rl_dnn_pool_job *j, void *y, const void *x, bool *did) {
    rl_dnn_asked q = pool_asked(j);
    *did = false;
    if (((uintptr_t)x | (uintptr_t)y) % 16) return RL_OK;
    return rl_dnn_run(call, &q, (rl_dnn_at[]){{UID_X, x}, {UID_Y, y}}, 2, did);
}

void rl_dnn_ask_pool(rl_libs *l, const rl_dnn_pool_job *j, rl_dnn_answer *a) {
    rl_dnn_asked q = pool_asked(j);
    rl_dnn_asks(l, &q, a);
}

/* ---- normalizations ---- */

static rl_dnn_item norm_op(rl_dnn_maker *m, const rl_dnn_norm_job *j, const rl_dnn_item *x, const rl_dnn_item *scale, const rl_dnn_item *bias,
                           const rl_dnn_item *epsilon, const rl_dnn_item *y) {
    cudnnBackendNormMode_t mode = j->op == RL_DNN_NORM_LAYER ? CUDNN_LAYER_NORM : j->op == RL_DNN_NORM_RMS ? CUDNN_RMS_NORM : CUDNN_INSTANCE_NORM;
    cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_INFERENCE;
    rl_dnn_item d = rl_dnn_make(m, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, x);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, scale);
    if (j->biased) rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, bias);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, epsilon);
    rl_dnn_set(m, d, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, y);
    return rl_dnn_finish(m, d);
}

static rl_dnn_item norm_graph(rl_dnn_maker *m, const void *key) {
    static const int64_t ones[RL_DNN_DIMS] = {1, 1, 1, 1, 1};
    const rl_dnn_norm_job *j = key;
    int64_t dim[RL_DNN_DIMS] = {1, 1, 1, 1, 1}, stride[RL_DNN_DIMS];
    dim[1] = j->x.dim[1];
    for (uint32_t i = 0; i < RL_DNN_DIMS; i++) stride[i] = i ? 1 : dim[1];
    rl_dnn_view row = {.rank = j->x.rank};
    memcpy(row.dim, dim, sizeof dim), memcpy(row.stride, stride, sizeof stride);
    rl_dnn_item x = tensor_of(m, UID_X, rl_dnn_type(j->type), &j->x), y = tensor_of(m, UID_Y, rl_dnn_type(j->type), &j->x);
    rl_dnn_item scale = tensor_of(m, UID_SCALE, CUDNN_DATA_FLOAT, &row), bias = j->biased ? tensor_of(m, UID_BIAS, CUDNN_DATA_FLOAT, &row) : NULL;
    rl_dnn_item epsilon = rl_dnn_tensor(m, &(rl_dnn_strided){.uid = UID_EPSILON, .type = CUDNN_DATA_FLOAT, .rank = j->x.rank, .dim = ones, .stride = ones, .by_value = true});
    rl_dnn_item d = norm_op(m, j, &x, &scale, &bias, &epsilon, &y);
    return rl_dnn_graph(m, &d, 1);
}

static rl_dnn_asked norm_asked(const rl_dnn_norm_job *j) {
    return (rl_dnn_asked){.graph = norm_graph, .key = j, .nkey = sizeof *j}; /* no products: there is nothing that TF32 would shorten */
}

rl_status rl_dnn_norm(rl_call *call, const rl_dnn_norm_job *j, void *y, const void *x, const void *scale, const void *bias, const float *epsilon, bool *did) {
    rl_dnn_asked q = norm_asked(j);
    rl_dnn_at at[] = {{UID_X, x}, {UID_Y, y}, {UID_SCALE, scale}, {UID_EPSILON, epsilon}, {UID_BIAS, bias}};
    *did = false;
    if (((uintptr_t)x | (uintptr_t)y | (uintptr_t)scale | (uintptr_t)bias) % 16) return RL_OK;
    return rl_dnn_run(call, &q, at, j->biased ? 5 : 4, did);
}

void rl_dnn_ask_norm(rl_libs *l, const rl_dnn_norm_job *j, rl_dnn_answer *a) {
    rl_dnn_asked q = norm_asked(j);
    rl_dnn_asks(l, &q, a);
}
