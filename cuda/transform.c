/* cuDNN's own transform of a tensor's strides (libs.h): what the moves of move.c are measured against. */
#include "libs_internal.h"

static cudnnDataType_t data_type(rl_dtype t) {
    return t == RL_F64 ? CUDNN_DATA_DOUBLE : t == RL_F16 ? CUDNN_DATA_HALF : t == RL_I8 ? CUDNN_DATA_INT8 : CUDNN_DATA_FLOAT;
}

rl_status rl_dnn_transform(rl_libs *l, const rl_dnn_strides *s, void *out, const void *in, bool *did) {
    cudnnTensorDescriptor_t to = NULL, from = NULL;
    float one[2] = {1, 0};
    double wide[2] = {1, 0};
    const char *scale = s->type == RL_F64 ? (const char *)wide : (const char *)one;
    size_t size = s->type == RL_F64 ? sizeof *wide : sizeof *one;
    *did = false;
    if (!l || !l->dnn || (s->type != RL_F64 && s->type != RL_F32 && s->type != RL_F16 && s->type != RL_I8)) return RL_OK;
    *did = l->cudnnCreateTensorDescriptor(&to) == CUDNN_STATUS_SUCCESS && l->cudnnCreateTensorDescriptor(&from) == CUDNN_STATUS_SUCCESS
           && l->cudnnSetTensorNdDescriptor(to, data_type(s->type), (int)s->rank, s->dim, s->to) == CUDNN_STATUS_SUCCESS
           && l->cudnnSetTensorNdDescriptor(from, data_type(s->type), (int)s->rank, s->dim, s->from) == CUDNN_STATUS_SUCCESS
           && l->cudnnTransformTensor(l->dnn, scale, from, in, scale + size, to, out) == CUDNN_STATUS_SUCCESS;
    if (to) l->cudnnDestroyTensorDescriptor(to);
    if (from) l->cudnnDestroyTensorDescriptor(from);
    return RL_OK;
}
