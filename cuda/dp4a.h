/* Convolutions of bytes with dp4a, four channels at a time, between layouts that keep four channels of a place together in a word:
 *
 *   NCHW4, CHWN4 ([C/4,H,W,N,4]), NCHW32, NHWC where 4 divides the channels
 *
 * One kernel for all: a layout is steps (rl_dp4a_layout), and input and output have the same one, so layers need no relayout between them.  Other
 * layouts, and groups of channels that 4 does not divide, go byte by byte.
 *
 *   rl_dp4a k = {.n = 1, .c = 8, .h = 9, .w = 9, .o = 16, .r = 3, .s = 3, .oh = 9, .ow = 9, .group = 1, .stride = {1, 1}, .dilation = {1, 1},
 *                .before = {1, 1}, .x = ..., .y = ...};
 *   int32_t *w4 = malloc(rl_dp4a_words(&k) * 4), *sum = malloc(16 * 4);
 *   rl_dp4a_pack(&k, w, w4, sum);                                            on the host, once
 *   RL_TRY(rl_gpu_dp4a(g, &k, y, x, w4, bias, scale));                       on the device */
#ifndef RL_CUDA_DP4A_H
#define RL_CUDA_DP4A_H
#include "../src/desc.h"
#include "driver.h"

/* Steps in elements: channel c lies c / per_block blocks and c % per_block steps of c further. */
typedef struct { int64_t n, h, w, c, block; uint32_t per_block; } rl_dp4a_layout;
/* Of a descriptor [N,C,H,W]; false: it is none of these. */
bool rl_dp4a_layout_of(const rl_desc *d, rl_dp4a_layout *out);

typedef struct {
    uint32_t n, c, h, w, o, r, s, oh, ow, group;
    int32_t stride[2], dilation[2], before[2];
    bool x_unsigned;          /* x's bytes; the weights are signed */
    int32_t x_zero;           /* what padding is; the caller's bias makes up for it: bias - x_zero * the weights' sum */
    const uint8_t *x_zero_at; /* it is on the device: bias is less the weights' sum, and the kernel multiplies; NULL: x_zero */
    rl_dtype y_type;          /* i8, u8: rint(sum * scale) + y_zero, cut to the type; i32: the sum */
    int32_t y_zero, y_least;  /* y_least: what is below becomes it, for a joined Relu; -128 or 0: nothing more */
    rl_dp4a_layout x, y;
} rl_dp4a;

bool rl_dp4a_by_words(const rl_dp4a *k);   /* four channels at a time? */
size_t rl_dp4a_words(const rl_dp4a *k);    /* of the packed weights, 4 bytes each */
uint32_t rl_dp4a_outputs(const rl_dp4a *k); /* of bias and scale: each group's channels, rounded up to 4 */
/* Which output channel is number i of these; RL_NONE: none. */
uint32_t rl_dp4a_channel(const rl_dp4a *k, uint32_t i);
/* w[o][c/group][r][s]; sum: of each channel's weights, [rl_dp4a_outputs]. */
void rl_dp4a_pack(const rl_dp4a *k, const int8_t *w, int32_t *packed, int32_t *sum);
/* All on the device; bias and scale [rl_dp4a_outputs], NULL: none. RL_ELIMIT: 2^31 outputs or more. */
rl_status rl_gpu_dp4a(rl_gpu *g, const rl_dp4a *k, void *y, const void *x, const void *w, const void *bias, const void *scale);

#endif
