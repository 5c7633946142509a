/* Convolutions of bytes (cuda/dp4a.h) on an emulated device: against loops over [N,C,H,W], in every layout of the seeds for bytes, converted by
 * rl_desc_convert; two layers, one after the other, with no relayout between.  By groups, byte by byte, unsigned, to int32. */
#include "../../cuda/dp4a.h"

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

static int32_t byte_of(const rl_dp4a *k, int8_t b) {
    return k->x_unsigned ? (uint8_t)b : b;
}

/* The sum that output (n, o, i) is made of, without its bias. */
static int32_t sum_slowly(const rl_dp4a *k, const int8_t *x, const int8_t *w, uint32_t n, uint32_t o, uint32_t i) {
    uint32_t per = k->c / k->group, g = o / (k->o / k->group), taps = k->r * k->s;
    int32_t sum = 0;
    for (uint32_t t = 0; t < per * taps; t++) {
        uint32_t c = g * per + t / taps;
        int32_t h = (int32_t)(i / k->ow) * k->stride[0] - k->before[0] + (int32_t)(t / k->s % k->r) * k->dilation[0];
        int32_t v = (int32_t)(i % k->ow) * k->stride[1] - k->before[1] + (int32_t)(t % k->s) * k->dilation[1];
        if (h < 0 || v < 0 || h >= (int32_t)k->h || v >= (int32_t)k->w) continue; /* x - x_zero is 0 there */
        sum += (byte_of(k, x[((n * k->c + c) * k->h + (uint32_t)h) * k->w + (uint32_t)v]) - k->x_zero) * w[o * per * taps + t];
    }
    return sum;
}

typedef struct { const char *name; rl_dp4a k; int8_t *x, *w; int32_t *bias; float *scale; rl_gpu *g; } layer;

static void text_of(char *text, const char *type, uint32_t n, uint32_t c, uint32_t h, uint32_t w, const char *layout) {
    snprintf(text, 120, "%s[%u,%u,%u,%u]%s%s", type, n, c, h, w, layout ? "@" : "", layout ? layout : "");
}

/* From [N,C,H,W] to the layout, or back. */
static int8_t *converted(const int8_t *x, uint32_t n, uint32_t c, uint32_t h, uint32_t w, const char *layout, bool back, size_t *nbyte) {
    char text[2][120];
    rl_desc d[2];
    for (uint32_t i = 0; i < 2; i++) {
        text_of(text[i], "i8", n, c, h, w, i == !back ? layout : NULL);
        CHECK(rl_desc_parse(text[i], &d[i], NULL) == RL_OK);
    }
    *nbyte = (size_t)rl_desc_bytes(&d[1]);
    int8_t *y = calloc(*nbyte + 1, 1);
    CHECK(rl_desc_convert(&d[1], y, *nbyte, &d[0], x, (size_t)rl_desc_bytes(&d[0]), NULL) == RL_OK);
    return y;
}

static rl_dp4a_layout layout_of(const char *type, uint32_t n, uint32_t c, uint32_t h, uint32_t w, const char *layout) {
    char text[120];
    rl_desc d;
    rl_dp4a_layout l = {0};
    text_of(text, type, n, c, h, w, layout);
    CHECK(rl_desc_parse(text, &d, NULL) == RL_OK && rl_dp4a_layout_of(&d, &l));
    return l;
}

static void *uploaded(rl_gpu *g, const void *p, size_t n) {
    void *d = rl_gpu_alloc(g, n + 1);
    CHECK(rl_gpu_put(g, d, p, n) == RL_OK);
    return d;
}

/* The layer on the device, x there, y there; bias and scale by output, as the kernel wants them. */
static void run_layer(layer *l, void *y, const void *x) {
    const rl_dp4a *k = &l->k;
    uint32_t n = rl_dp4a_outputs(k);
    size_t nw = rl_dp4a_words(k) * 4;
    int32_t *packed = malloc(nw + 4), *sum = malloc(n * sizeof *sum), *bias = calloc(n, sizeof *bias);
    float *scale = calloc(n, sizeof *scale);
    rl_dp4a_pack(k, l->w, packed, sum);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t o = rl_dp4a_channel(k, i);
        if (o == RL_NONE) continue;
        bias[i] = l->bias[o] - (k->x_zero - (k->x_unsigned ? 128 : 0)) * sum[i];
        scale[i] = l->scale[o];
    }
    void *w = uploaded(l->g, packed, nw), *b = uploaded(l->g, bias, n * sizeof *bias), *s = uploaded(l->g, scale, n * sizeof *scale);
    CHECK(rl_gpu_dp4a(l->g, k, y, x, w, b, s) == RL_OK);
    free(packed), free(sum), free(bias), free(scale);
    rl_gpu_free(l->g, w, nw + 1), rl_gpu_free(l->g, b, n * sizeof *bias + 1), rl_gpu_free(l->g, s, n * sizeof *scale + 1);
}

/* y[n,o,oh,ow], bytes or int32 */
static void run_slowly(const layer *l, void *y) {
    const rl_dp4a *k = &l->k;
    for (uint32_t n = 0; n < k->n; n++)
        for (uint32_t o = 0; o < k->o; o++)
            for (uint32_t i = 0; i < k->oh * k->ow; i++) {
                size_t at = (n * k->o + o) * k->oh * k->ow + i;
                int32_t sum = sum_slowly(k, l->x, l->w, n, o, i) + l->bias[o], most = k->y_type == RL_U8 ? 255 : 127;
                int32_t least = RL_MAX(k->y_least, k->y_type == RL_U8 ? 0 : -128);
                if (k->y_type == RL_I32) {
                    ((int32_t *)y)[at] = sum;
                    continue;
                }
                float f = nearbyintf((float)sum * l->scale[o]) + (float)k->y_zero;
                ((int8_t *)y)[at] = (int8_t)(f < (float)least ? least : f > (float)most ? most : (int32_t)f);
            }
}

static layer layer_of(rl_gpu *g, rl_dp4a k, int8_t *x) {
    layer l = {.g = g, .k = k, .x = x};
    l.k.oh = (k.h + 2 * (uint32_t)k.before[0] - (k.r - 1) * (uint32_t)k.dilation[0] - 1) / (uint32_t)k.stride[0] + 1;
    l.k.ow = (k.w + 2 * (uint32_t)k.before[1] - (k.s - 1) * (uint32_t)k.dilation[1] - 1) / (uint32_t)k.stride[1] + 1;
    l.w = random_bytes((size_t)k.o * k.c / k.group * k.r * k.s);
    l.bias = malloc(k.o * sizeof *l.bias), l.scale = malloc(k.o * sizeof *l.scale);
    for (uint32_t o = 0; o < k.o; o++) l.bias[o] = draw() * 40, l.scale[o] = 0.004f + 0.0001f * (float)(o % 7);
    return l;
}

static void end_layer(layer *l) {
    free(l->w), free(l->bias), free(l->scale);
}

/* Two layers in this layout; the second's output against the loops. */
static void check_layers(rl_gpu *g, rl_dp4a k, const char *layout, bool words) {
    size_t nx, ny, nz, n;
    int8_t *x = random_bytes((size_t)k.n * k.c * k.h * k.w), *there = converted(x, k.n, k.c, k.h, k.w, layout, false, &nx);
    k.y_type = RL_I8;
    layer a = layer_of(g, k, x);
    a.k.x = layout_of("i8", k.n, k.c, k.h, k.w, layout), a.k.y = layout_of("i8", k.n, k.o, a.k.oh, a.k.ow, layout);
    CHECK(rl_dp4a_by_words(&a.k) == words);
    int8_t *y = malloc((size_t)k.n * k.o * a.k.oh * a.k.ow + 1);
    run_slowly(&a, y);
    rl_dp4a next = {.n = k.n, .c = k.o, .h = a.k.oh, .w = a.k.ow, .o = 32, .r = 3, .s = 3, .group = 1, .stride = {1, 1}, .dilation = {1, 1}, .before = {1, 1},
                    .y_type = RL_I8, .y_zero = -3, .y_least = -3};
    layer b = layer_of(g, next, y);
    b.k.x = a.k.y, b.k.y = layout_of("i8", next.n, next.o, b.k.oh, b.k.ow, layout);
    free(converted(y, k.n, k.o, a.k.oh, a.k.ow, layout, false, &ny));
    int8_t *z = malloc((size_t)next.n * next.o * b.k.oh * b.k.ow + 1), *blocked = converted(z, next.n, next.o, b.k.oh, b.k.ow, layout, false, &nz);
    void *dx = uploaded(g, there, nx), *dy = rl_gpu_alloc(g, ny), *dz = uploaded(g, blocked, nz);
    run_layer(&a, dy, dx);
    run_layer(&b, dz, dy); /* in the layout that the first one made */
    run_slowly(&b, z);
    CHECK(rl_gpu_get(g, blocked, dz, nz) == RL_OK);
    int8_t *got = converted(blocked, next.n, next.o, b.k.oh, b.k.ow, layout, true, &n);
    if (memcmp(got, z, n) != 0) fprintf(stderr, "%s: %u channels\n", layout, k.c);
    CHECK(memcmp(got, z, n) == 0);
    free(x), free(there), free(y), free(z), free(blocked), free(got);
    end_layer(&a), end_layer(&b);
    rl_gpu_free(g, dx, nx + 1), rl_gpu_free(g, dy, ny), rl_gpu_free(g, dz, nz + 1);
}

TEST(layouts) {
    static const char *const names[] = {"NCHW4", "CHWN4", "NCHW32", "NHWC", "NCHW"};
    CHECK_CTX(ctx)
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    for (size_t i = 0; i < RL_LEN(names); i++) {
        bool words = i < 4;
        rl_dp4a k = {.n = 3, .c = 32, .h = 7, .w = 5, .o = 32, .r = 3, .s = 3, .group = 1, .stride = {1, 1}, .dilation = {1, 1}, .before = {1, 1}};
        check_layers(g, k, names[i], words);
        k.stride[0] = 2, k.before[1] = 2, k.dilation[1] = 2, k.s = 2, k.o = 64;
        check_layers(g, k, names[i], words);
        k = (rl_dp4a){.n = 5, .c = 64, .h = 4, .w = 6, .o = 32, .r = 1, .s = 1, .group = 2, .stride = {1, 1}, .dilation = {1, 1}, .x_zero = 5};
        check_layers(g, k, names[i], words);
        k.group = 32; /* two channels each: byte by byte */
        check_layers(g, k, names[i], false);
    }
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* Odd numbers of channels, unsigned bytes with a zero point, to unsigned bytes and to int32. */
TEST(types) {
    static const rl_dtype types[] = {RL_I8, RL_U8, RL_I32};
    CHECK_CTX(ctx)
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    for (uint32_t t = 0; t < 24; t++) {
        rl_dp4a k = {.n = 2, .c = 3, .h = 6, .w = 5, .o = 5, .r = 3, .s = 2, .group = 1, .stride = {1, 2}, .dilation = {1, 1}, .before = {1, 1}};
        k.y_type = types[t % 3], k.x_unsigned = t / 3 % 2, k.x_zero = k.x_unsigned ? 131 : -7, k.y_zero = k.y_type == RL_U8 ? 9 : -4, k.y_least = -128;
        const char *layout = t / 6 % 2 ? "NHWC" : "NCHW";
        if (t / 12) k.c = 6, k.o = 12, k.group = 3;
        size_t nx, n;
        int8_t *x = random_bytes((size_t)k.n * k.c * k.h * k.w), *there = converted(x, k.n, k.c, k.h, k.w, layout, false, &nx);
        layer l = layer_of(g, k, x);
        l.k.x = layout_of("i8", k.n, k.c, k.h, k.w, layout), l.k.y = layout_of("i8", k.n, k.o, l.k.oh, l.k.ow, NULL);
        n = (size_t)k.n * k.o * l.k.oh * l.k.ow * (k.y_type == RL_I32 ? 4 : 1);
        void *dx = uploaded(g, there, nx), *dy = rl_gpu_alloc(g, n), *want = malloc(n), *got = malloc(n);
        run_layer(&l, dy, dx);
        run_slowly(&l, want);
        CHECK(rl_gpu_get(g, got, dy, n) == RL_OK && memcmp(want, got, n) == 0);
        free(x), free(there), free(want), free(got);
        end_layer(&l);
        rl_gpu_free(g, dx, nx + 1), rl_gpu_free(g, dy, n);
    }
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(layouts);
    RUN(types);
    return check_done();
}
