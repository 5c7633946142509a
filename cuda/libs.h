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

/* c = alpha a b + beta bias, batches and strides as rl_p_matmul has them; *did false: not by this library, whose failure is noted (device.h). */
rl_status rl_lt_matmul(rl_call *call, const rl_p_matmul *p, rl_dtype t, uint32_t nbatch, bool *did);
/* y = conv(x, w) + bias, then the posts, whose operands lie as y does; *did likewise. */
typedef struct {
    rl_p_conv p;
    rl_dtype type;
    uint32_t n, groups, npost;
    rl_p_post post[RL_MOST_POSTS];
    const void *operand[RL_MOST_POSTS]; /* NULL: of a unary one */
} rl_dnn_conv_job;
rl_status rl_dnn_conv(rl_call *call, const rl_dnn_conv_job *j, bool *did);
bool rl_dnn_wants_channels_last(const rl_libs *l, rl_dtype t); /* should convolutions of this type, for tensor cores? */
/* The same tensor with other strides, by cuDNN's own transform: only to be measured against (bench/gpu_moves.c). 4 or 5 dims of elements. */
typedef struct { rl_dtype type; uint32_t rank; int32_t dim[5], to[5], from[5]; } rl_dnn_strides;
rl_status rl_dnn_transform(rl_libs *l, const rl_dnn_strides *s, void *out, const void *in, bool *did);

#endif
