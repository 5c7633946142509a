/* Convolutions of one number type: what Conv and its quantized kin share.
 *
 *   x[n, c, in...] by k[m, c/group, kernel...]  ->  y[n, m, out...], which is added to: fill it with zeros or the bias first. */
#ifndef RL_CONV_H
#define RL_CONV_H
#include "window.h"

/* RL_EMODEL where the channels of x and k and the node's group do not agree. */
rl_status rl_conv_group(const rl_call *c, const rl_tensor *x, const rl_tensor *k, int64_t *group);
/* The window of a ConvTranspose slides over its output: its in is what the op makes, its out what it takes. */
rl_status rl_conv_transpose_window(rl_call *c, const rl_tensor *x, const int64_t *kernel, rl_window *w);
/* x, k and y: row-major, of one type that rl_gemm takes. */
void rl_conv(rl_call *c, const rl_window *w, int64_t group, const rl_tensor *x, const rl_tensor *k, const rl_tensor *y);
/* y[n, m, ...] = bias[m], or 0; of one type. */
rl_status rl_conv_bias(rl_call *c, const rl_tensor *bias, const rl_tensor *y);
/* y[plane, in...] += the patches cols[plane, kernel..., out...], each back at its place: of RL_F32, RL_F64 or RL_I64, row-major. */
void rl_conv_back(rl_call *c, const rl_window *w, int64_t nplane, const void *cols, const rl_tensor *y);

#endif
