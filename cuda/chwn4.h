/* int8 convolution between CHWN4 layouts ([C/4,H,W,N,4c]) with dp4a: what a layer makes is what the next one takes.
 *
 *   i8 x[c/4, h, w, n, 4]   i8 weights[c/4, r, s, o, 4]   i32 bias[o] or NULL   ->   i8 y[o/4, oh, ow, n, 4]
 *   y = clamp(round((sum of x * w + bias) * scale)), at -128 or, with relu, at 0; c and o: multiples of 4, padded with zeros */
#ifndef RL_CUDA_CHWN4_H
#define RL_CUDA_CHWN4_H
#include "driver.h"

typedef struct { uint32_t n, c, h, w, o, r, s, stride, pad, dilation; bool relu; float scale; } rl_chwn4_shape;
uint32_t rl_chwn4_out(const rl_chwn4_shape *k, bool rows); /* oh, or ow */
/* All on the device. RL_ELIMIT: 2^31 outputs or more, channels that are no multiples of 4. */
rl_status rl_gpu_conv_chwn4(rl_gpu *g, const rl_chwn4_shape *k, void *y, const void *x, const void *w, const void *bias);

#endif
