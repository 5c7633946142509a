/* Convolutions of bytes: see dp4a.h. */
#include "dp4a.h"

#include <string.h>

#include "move.h"

bool rl_dp4a_layout_of(const rl_desc *d, rl_dp4a_layout *out) {
    rl_digits c = rl_desc_axis(d, 1);
    if (d->rank != 4 || c.n < 1 || c.n > 2) return false;
    for (uint32_t a = 0; a < 4; a++)
        if (a != 1 && rl_desc_axis(d, a).n != 1) return false;
    const rl_digit *in = &d->digit[c.first + c.n - 1];
    *out = (rl_dp4a_layout){.n = d->digit[rl_desc_axis(d, 0).first].stride, .h = d->digit[rl_desc_axis(d, 2).first].stride,
                            .w = d->digit[rl_desc_axis(d, 3).first].stride, .c = in->stride, .per_block = (uint32_t)in->size,
                            .block = c.n == 2 ? d->digit[c.first].stride : 0};
    return true;
}

static bool keeps_words(const rl_dp4a_layout *l) {
    return l->c == 1 && l->per_block % 4 == 0 && (l->n | l->h | l->w | l->block) % 4 == 0;
}

bool rl_dp4a_by_words(const rl_dp4a *k) {
    return keeps_words(&k->x) && k->c / k->group % 4 == 0;
}

static uint32_t quads(const rl_dp4a *k) { /* of output channels, in a group */
    return (k->o / k->group + 3) / 4;
}

static uint32_t depth(const rl_dp4a *k) { /* words of weights for a tap */
    return rl_dp4a_by_words(k) ? k->c / k->group / 4 : k->c / k->group;
}

size_t rl_dp4a_words(const rl_dp4a *k) {
    return (size_t)rl_dp4a_outputs(k) * k->r * k->s * depth(k);
}

uint32_t rl_dp4a_outputs(const rl_dp4a *k) {
    return k->group * quads(k) * 4;
}

uint32_t rl_dp4a_channel(const rl_dp4a *k, uint32_t i) {
    uint32_t per = k->o / k->group, within = i % (4 * quads(k));
    return within < per ? i / (4 * quads(k)) * per + within : RL_NONE;
}

void rl_dp4a_pack(const rl_dp4a *k, const int8_t *w, int32_t *packed, int32_t *sum) {
    uint32_t per = k->c / k->group, taps = k->r * k->s, each = rl_dp4a_by_words(k) ? 4 : 1, deep = depth(k);
    for (uint32_t i = 0; i < rl_dp4a_outputs(k); i++) {
        uint32_t o = rl_dp4a_channel(k, i);
        sum[i] = 0;
        for (uint32_t t = 0; t < taps; t++)
            for (uint32_t d = 0; d < deep; d++) {
                uint32_t word = 0;
                for (uint32_t e = 0; o != RL_NONE && e < each; e++) {
                    int8_t b = w[((size_t)o * per + d * each + e) * taps + t];
                    word |= (uint32_t)(uint8_t)b << 8 * e;
                    sum[i] += b;
                }
                memcpy(&packed[(((size_t)(i / 4) * taps + t) * deep + d) * 4 + i % 4], &word, 4);
            }
    }
}

rl_status rl_gpu_dp4a(rl_gpu *g, const rl_dp4a *k, void *y, const void *x, const void *w, const void *bias, const void *scale) {
    bool words = rl_dp4a_by_words(k) && (uintptr_t)x % 4 == 0;
    uint32_t per = words ? 4 : 1, nquad = k->group * quads(k);
    int64_t wide = k->y_type == RL_I32 ? 4 : 1, count = (int64_t)nquad * k->n * k->oh * k->ow;
    if (words != rl_dp4a_by_words(k) || count >= INT32_MAX) return RL_ELIMIT;
    if (count == 0) return RL_OK;
    rl_p_dp4a p = {.y = y, .x = x, .w = w, .bias = bias, .scale = scale, .count = (uint32_t)count, .words = words, .depth = depth(k), .group = k->group,
                   .quads = rl_divisor_of(quads(k)), .per_group = k->o / k->group, .taps = k->r * k->s, .s = rl_divisor_of(k->s), .wide = wide == 4,
                   .x_zero = k->x_zero_at};
    p.in[0] = (int32_t)k->h, p.in[1] = (int32_t)k->w;
    for (uint32_t i = 0; i < 2; i++) p.stride[i] = k->stride[i], p.dilation[i] = k->dilation[i], p.before[i] = k->before[i];
    p.flip = k->x_unsigned ? 0x80808080u >> (words ? 0 : 24) : 0;
    p.pad = (uint32_t)(uint8_t)k->x_zero * (words ? 0x01010101u : 1);
    p.zero = k->y_zero, p.least = k->y_type == RL_U8 ? RL_MAX(k->y_least, 0) : RL_MAX(k->y_least, -128), p.most = k->y_type == RL_U8 ? 255 : 127;
    p.x_h = k->x.h / per, p.x_w = k->x.w / per, p.x_c = words ? 1 : k->x.c, p.x_block = k->x.block / per;
    p.x_per_block = rl_divisor_of(k->x.per_block / per);
    p.y_c = k->y.c, p.y_block = k->y.block, p.y_per_block = rl_divisor_of(k->y.per_block);
    p.packs = wide == 1 && keeps_words(&k->y) && p.per_group % 4 == 0 && (uintptr_t)y % 4 == 0;
    int64_t by_quad = k->y.per_block >= 4 ? 4 * k->y.c : k->y.block; /* how far the next four channels lie: for the order of the loops only */
    rl_loops l = {.rank = 4, .noperand = 4, .dim = {k->n, k->oh, k->ow, nquad},
                  .step = {{k->y.n, k->y.h, k->y.w, by_quad}, {k->x.n / per}, {0, (int64_t)1 << 32, 1, 0}, {0, 0, 0, 1}}};
    rl_loops_sort(&l);
    for (uint32_t i = 0; i < 4; i++) /* what is added for the channels comes in the kernel */
        if (l.step[3][i] == 1) l.step[0][i] = 0;
    p.walk = rl_walk_of(&l, 0);
    return rl_gpu_launch(g, RL_GPU_dp4a, rl_gpu_blocks(count), &p, sizeof p);
}
