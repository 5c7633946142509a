/* The int8 convolution between CHWN4 layouts (cuda/chwn4.h) on an emulated device: against loops over [N,C,H,W], converted by
 * rl_desc_convert; two layers, one after the other, with no relayout between. */
#include "../../cuda/chwn4.h"

#include <math.h>
#include <stdlib.h>

#include "check.h"

static uint32_t seed = 5;
static int8_t draw(void) {
    seed = seed * 1664525u + 1013904223u;
    return (int8_t)(seed >> 24);
}

static int8_t *random_bytes(size_t n) {
    int8_t *p = malloc(n + 1);
    for (size_t i = 0; i < n; i++) p[i] = draw();
    return p;
}

/* y[n,o,oh,ow] of x[n,c,h,w] and w[o,c,r,s] */
static void conv_slowly(const rl_chwn4_shape *k, int8_t *y, const int8_t *x, const int8_t *w, const int32_t *bias) {
    uint32_t oh = rl_chwn4_out(k, true), ow = rl_chwn4_out(k, false);
    for (uint32_t n = 0; n < k->n; n++)
        for (uint32_t o = 0; o < k->o; o++)
            for (uint32_t i = 0; i < oh * ow; i++) {
                int32_t sum = bias ? bias[o] : 0;
                for (uint32_t t = 0; t < k->c * k->r * k->s; t++) {
                    int32_t c = (int32_t)(t / (k->r * k->s)), r = (int32_t)(t / k->s % k->r), s = (int32_t)(t % k->s);
                    int32_t h = (int32_t)(i / ow * k->stride) - (int32_t)k->pad + r * (int32_t)k->dilation;
                    int32_t v = (int32_t)(i % ow * k->stride) - (int32_t)k->pad + s * (int32_t)k->dilation;
                    if (h < 0 || v < 0 || h >= (int32_t)k->h || v >= (int32_t)k->w) continue;
                    sum += x[((n * k->c + (uint32_t)c) * k->h + (uint32_t)h) * k->w + (uint32_t)v] * w[o * k->c * k->r * k->s + t];
                }
                float f = nearbyintf((float)sum * k->scale);
                y[(n * k->o + o) * oh * ow + i] = (int8_t)(f < (k->relu ? 0 : -128) ? (k->relu ? 0 : -128) : f > 127 ? 127 : f);
            }
}

/* From [a,b,c,d] to the digits {text}, or back. */
static int8_t *converted(const int8_t *x, const uint32_t *dim, const char *layout, bool back) {
    char from[120], to[120];
    rl_desc a, b;
    snprintf(from, sizeof from, "i8[%u,%u,%u,%u]", dim[0], dim[1], dim[2], dim[3]);
    snprintf(to, sizeof to, "i8[%u,%u,%u,%u]@%s", dim[0], dim[1], dim[2], dim[3], layout);
    CHECK(rl_desc_parse(back ? to : from, &a, NULL) == RL_OK && rl_desc_parse(back ? from : to, &b, NULL) == RL_OK);
    int8_t *y = malloc((size_t)rl_desc_bytes(&b));
    CHECK(rl_desc_convert(&b, y, (size_t)rl_desc_bytes(&b), &a, x, (size_t)rl_desc_bytes(&a), NULL) == RL_OK);
    return y;
}

static void *uploaded(rl_gpu *g, const void *p, size_t n) {
    void *d = rl_gpu_alloc(g, n);
    CHECK(rl_gpu_put(g, d, p, n) == RL_OK);
    return d;
}

/* One layer on the device: x there in CHWN4; what it makes there. Also the slow way, *slow being x and then y. */
static void *layer(rl_gpu *g, const rl_chwn4_shape *k, void *x, int8_t **slow) {
    size_t nw = (size_t)k->o * k->c * k->r * k->s, ny = (size_t)k->n * k->o * rl_chwn4_out(k, true) * rl_chwn4_out(k, false);
    int8_t *w = random_bytes(nw), *want = malloc(ny);
    int32_t *bias = malloc(k->o * sizeof *bias);
    for (uint32_t i = 0; i < k->o; i++) bias[i] = draw() * 40;
    int8_t *w4 = converted(w, (uint32_t[]){k->o, k->c, k->r, k->s}, "Bcda4b", false); /* [c/4, r, s, o, 4c] */
    void *dw = uploaded(g, w4, nw), *db = uploaded(g, bias, k->o * sizeof *bias), *y = rl_gpu_alloc(g, ny);
    CHECK(rl_gpu_conv_chwn4(g, k, y, x, dw, db) == RL_OK);
    conv_slowly(k, want, *slow, w, bias);
    free(*slow), free(w), free(w4), free(bias);
    rl_gpu_free(g, dw, nw), rl_gpu_free(g, db, k->o * sizeof *bias);
    *slow = want;
    return y;
}

static void check_layers(rl_gpu *g, rl_chwn4_shape k) {
    size_t nx = (size_t)k.n * k.c * k.h * k.w;
    int8_t *slow = random_bytes(nx), *x4 = converted(slow, (uint32_t[]){k.n, k.c, k.h, k.w}, "CHWN4", false);
    void *x = uploaded(g, x4, nx), *y = layer(g, &k, x, &slow);
    rl_chwn4_shape next = {.n = k.n, .c = k.o, .h = rl_chwn4_out(&k, true), .w = rl_chwn4_out(&k, false), .o = 8, .r = 3, .s = 3, .stride = 1,
                           .pad = 1, .dilation = 1, .scale = 0.01f};
    void *z = layer(g, &next, y, &slow);
    uint32_t dim[] = {next.n, next.o, next.h, next.w};
    size_t nz = (size_t)dim[0] * dim[1] * dim[2] * dim[3];
    int8_t *got = malloc(nz), *plain;
    CHECK(rl_gpu_get(g, got, z, nz) == RL_OK);
    plain = converted(got, dim, "CHWN4", true);
    CHECK(memcmp(plain, slow, nz) == 0);
    free(slow), free(x4), free(got), free(plain);
}

TEST(layers) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    check_layers(g, (rl_chwn4_shape){.n = 3, .c = 8, .h = 6, .w = 5, .o = 12, .r = 3, .s = 3, .stride = 1, .pad = 1, .dilation = 1, .scale = 0.003f});
    check_layers(g, (rl_chwn4_shape){.n = 33, .c = 4, .h = 7, .w = 9, .o = 4, .r = 1, .s = 1, .stride = 1, .pad = 0, .dilation = 1, .scale = 0.01f, .relu = true});
    check_layers(g, (rl_chwn4_shape){.n = 2, .c = 16, .h = 11, .w = 8, .o = 8, .r = 3, .s = 2, .stride = 2, .pad = 2, .dilation = 2, .scale = 0.002f});
    CHECK(rl_gpu_conv_chwn4(g, &(rl_chwn4_shape){.n = 1, .c = 6, .h = 4, .w = 4, .o = 4, .r = 1, .s = 1, .stride = 1, .dilation = 1}, NULL, NULL, NULL, NULL)
          == RL_ELIMIT);
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(layers);
    return check_done();
}
