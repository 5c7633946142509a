/* int8 convolution between CHWN4 layouts: see chwn4.h. */
#include "chwn4.h"

#include "move.h"

uint32_t rl_chwn4_out(const rl_chwn4_shape *k, bool rows) {
    uint32_t in = (rows ? k->h : k->w) + 2 * k->pad, reach = ((rows ? k->r : k->s) - 1) * k->dilation + 1;
    return in < reach ? 0 : (in - reach) / k->stride + 1;
}

rl_status rl_gpu_conv_chwn4(rl_gpu *g, const rl_chwn4_shape *k, void *y, const void *x, const void *w, const void *bias) {
    uint32_t oh = rl_chwn4_out(k, true), ow = rl_chwn4_out(k, false);
    double count = (double)k->o / 4 * oh * ow * k->n;
    if (k->c % 4 || k->o % 4 || count >= INT32_MAX) return RL_ELIMIT;
    if (count < 1) return RL_OK;
    rl_p_chwn4 p = {.y = y, .x = x, .w = w, .bias = bias, .count = (uint32_t)count, .c4 = k->c / 4, .n = k->n, .o = k->o, .h = k->h, .wd = k->w,
                    .r = k->r, .s = k->s, .stride = k->stride, .pad = k->pad, .dilation = k->dilation, .relu = k->relu,
                    .dn = rl_divisor_of(k->n), .dow = rl_divisor_of(ow), .doh = rl_divisor_of(oh), .scale = k->scale};
    return rl_gpu_launch(g, RL_GPU_chwn4, rl_gpu_blocks(p.count), &p, sizeof p);
}
