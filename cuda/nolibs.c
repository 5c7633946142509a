/* Without NVIDIA's libraries: own kernels do it all (libs.h). */
#include "libs.h"

rl_libs *rl_libs_open(rl_gpu *g) {
    (void)g;
    return NULL;
}

void rl_libs_close(rl_libs *l) {
    (void)l;
}

const char *rl_libs_say(const rl_libs *l) {
    (void)l;
    return "built without cuBLASLt and cuDNN";
}

rl_status rl_lt_matmul(rl_call *call, const rl_lt_job *j, bool *did) {
    (void)call, (void)j;
    *did = false;
    return RL_OK;
}

rl_status rl_dnn_conv(rl_call *call, const rl_dnn_conv_job *j, bool *did) {
    (void)call, (void)j;
    *did = false;
    return RL_OK;
}

rl_status rl_dnn_pool(rl_call *call, const rl_dnn_pool_job *j, void *y, const void *x, bool *did) {
    (void)call, (void)j, (void)y, (void)x;
    *did = false;
    return RL_OK;
}

rl_status rl_dnn_norm(rl_call *call, const rl_dnn_norm_job *j, void *y, const void *x, const void *scale, const void *bias, const float *epsilon, bool *did) {
    (void)call, (void)j, (void)y, (void)x, (void)scale, (void)bias, (void)epsilon;
    *did = false;
    return RL_OK;
}

bool rl_dnn_wants_channels_last(const rl_libs *l, rl_dtype t) {
    (void)l, (void)t;
    return false;
}

rl_dnn_transform *rl_dnn_transform_new(const rl_libs *l, const rl_dnn_strides *s) {
    (void)l, (void)s;
    return NULL;
}

bool rl_dnn_transform_run(const rl_dnn_transform *t, void *out, const void *in) {
    (void)t, (void)out, (void)in;
    return false;
}

void rl_dnn_transform_free(rl_dnn_transform *t) {
    (void)t;
}
