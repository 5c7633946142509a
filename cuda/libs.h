/* NVIDIA's libraries, looked for when the device is opened: what is not there, or fails, is done by own kernels. */
#ifndef RL_CUDA_LIBS_H
#define RL_CUDA_LIBS_H
#include "driver.h"
#include "../runtime/device.h"

typedef struct rl_libs rl_libs;
rl_libs *rl_libs_open(rl_gpu *g); /* NULL: none */
void rl_libs_close(rl_libs *l);
rl_libs *rl_libs_of(const rl_rt *rt);
const char *rl_libs_say(const rl_libs *l); /* "cuBLASLt 130000, cuDNN 91200", or why one is not there; l may be NULL */

/* c = alpha a b + beta bias, batches and strides as rl_p_matmul has them, then the posts, whose operands lie as c does; of i8: c (`made`) is i32, neither
 * bias nor posts; shorter floats make themselves, or f32. *did false: not by this library, whose failure is noted (device.h). */
typedef struct { rl_p_matmul p; rl_dtype type, made; uint32_t nbatch, npost; rl_p_post post[RL_MOST_POSTS]; const void *operand[RL_MOST_POSTS]; } rl_lt_job;
rl_status rl_lt_matmul(rl_call *call, const rl_lt_job *j, bool *did);
/* y = conv(x, w) + bias, then the posts, whose operands lie as y does; *did likewise. Of i8: p.bias is i32; with a scale for each channel
 * y = rint((conv + bias) * scale), cut to least .. 127; with one for all (alpha, no bias) y = rint(conv * alpha), cut; else y is i32; no posts. */
typedef struct {
    rl_p_conv p;
    rl_dtype type;
    uint32_t n, groups, npost, vectors; /* vectors > 1: so many channels lie together, and p's steps count these */
    int32_t least;
    float alpha;
    const void *scale;
    rl_p_post post[RL_MOST_POSTS];
    const void *operand[RL_MOST_POSTS]; /* NULL: of a unary one */
    bool followed;                      /* a kernel goes over y anyway, and can do as much */
} rl_dnn_conv_job;
rl_status rl_dnn_conv(rl_call *call, const rl_dnn_conv_job *j, bool *did);
/* What lies so: 4 or 5 dims. Jobs are compared by bytes: begin with one that is zero. */
typedef struct { int64_t rank, dim[2 + RL_MOST_SPATIAL], stride[2 + RL_MOST_SPATIAL]; } rl_dnn_view;
typedef enum { RL_DNN_POOL_MAX, RL_DNN_POOL_MEAN, RL_DNN_POOL_MEAN_OF_ALL /* padding counts */ } rl_dnn_pooling;
typedef struct { uint32_t op; rl_dtype type; rl_dnn_view x, y; int64_t window[RL_MOST_SPATIAL], step[RL_MOST_SPATIAL], before[RL_MOST_SPATIAL], after[RL_MOST_SPATIAL]; } rl_dnn_pool_job;
rl_status rl_dnn_pool(rl_call *call, const rl_dnn_pool_job *j, void *y, const void *x, bool *did);
/* Over dim 1 of [rows, n, 1, 1], or (instance) over all dims but the first two; scale and bias, f32, go along dim 1. */
typedef enum { RL_DNN_NORM_LAYER, RL_DNN_NORM_RMS, RL_DNN_NORM_INSTANCE } rl_dnn_norming;
typedef struct { uint32_t op; rl_dtype type; rl_dnn_view x; int64_t biased; } rl_dnn_norm_job; /* y lies as x does */
rl_status rl_dnn_norm(rl_call *call, const rl_dnn_norm_job *j, void *y, const void *x, const void *scale, const void *bias, const float *epsilon, bool *did);
bool rl_dnn_wants_channels_last(const rl_libs *l, rl_dtype t); /* should convolutions of this type, for tensor cores? */
/* The same tensor with other strides, by cuDNN's own transform: only to be measured against (bench/gpu_moves.c). 4 or 5 dims of elements; rank 0: none.
 * Descriptors are made once; NULL: cuDNN has it not, or there is none. */
typedef struct { rl_dtype type; uint32_t rank; int32_t dim[5], to[5], from[5]; } rl_dnn_strides;
typedef struct rl_dnn_transform rl_dnn_transform;
rl_dnn_transform *rl_dnn_transform_new(const rl_libs *l, const rl_dnn_strides *s);
bool rl_dnn_transform_run(const rl_dnn_transform *t, void *out, const void *in); /* False: refused */
void rl_dnn_transform_free(rl_dnn_transform *t); /* NULL is fine */

#endif
