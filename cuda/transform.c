/* cuDNN's own transform of a tensor's strides (libs.h): what the moves of move.c are measured against. */
#include "libs_internal.h"

#include <stdlib.h>

struct rl_dnn_transform { const rl_libs *l; cudnnTensorDescriptor_t to, from; bool wide; };

static cudnnDataType_t data_type(rl_dtype t) {
    return t == RL_F64 ? CUDNN_DATA_DOUBLE : t == RL_F16 ? CUDNN_DATA_HALF : t == RL_I8 ? CUDNN_DATA_INT8 : CUDNN_DATA_FLOAT;
}

static bool describe(const rl_libs *l, const rl_dnn_strides *s, const int32_t *stride, cudnnTensorDescriptor_t *d) {
    return l->cudnnCreateTensorDescriptor(d) == CUDNN_STATUS_SUCCESS
           && l->cudnnSetTensorNdDescriptor(*d, data_type(s->type), (int)s->rank, s->dim, stride) == CUDNN_STATUS_SUCCESS;
}

rl_dnn_transform *rl_dnn_transform_new(const rl_libs *l, const rl_dnn_strides *s) {
    bool has = l && l->dnn && l->cudnnCreateTensorDescriptor && l->cudnnDestroyTensorDescriptor && l->cudnnSetTensorNdDescriptor && l->cudnnTransformTensor;
    if (!has || !s->rank || (s->type != RL_F64 && s->type != RL_F32 && s->type != RL_F16 && s->type != RL_I8)) return NULL;
    rl_dnn_transform *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    *t = (rl_dnn_transform){.l = l, .wide = s->type == RL_F64};
    if (describe(l, s, s->to, &t->to) && describe(l, s, s->from, &t->from)) return t;
    rl_dnn_transform_free(t);
    return NULL;
}

bool rl_dnn_transform_run(const rl_dnn_transform *t, void *out, const void *in) {
    static const float one[2] = {1, 0};
    static const double wide[2] = {1, 0};
    const void *scale = t->wide ? (const void *)wide : one, *none = t->wide ? (const void *)(wide + 1) : one + 1;
    return t->l->cudnnTransformTensor(t->l->dnn, scale, t->from, in, none, t->to, out) == CUDNN_STATUS_SUCCESS;
}

void rl_dnn_transform_free(rl_dnn_transform *t) {
    if (!t) return;
    if (t->to) t->l->cudnnDestroyTensorDescriptor(t->to);
    if (t->from) t->l->cudnnDestroyTensorDescriptor(t->from);
    free(t);
}
