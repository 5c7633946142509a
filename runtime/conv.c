/* Convolutions: see conv.h.  With enough channels, a product of the weights and the image's patches, which are made block by
 * block (gemm.h); with few (depthwise), straight sums row by row. */
#include "conv.h"

#include <string.h>

#include "gemm.h"

typedef struct {
    rl_window w;
    rl_taps taps;
    int64_t c, m, in, out; /* channels of a group on both sides; elements of a plane on both sides */
    const void *x, *k;
    void *y;
    rl_dtype type;
    int64_t group;
} conv;

rl_status rl_conv_group(const rl_call *c, const rl_tensor *x, const rl_tensor *k, int64_t *group) {
    *group = rl_attr_int(c->node, "group", 1);
    if (x->rank < 3 || k->rank != x->rank) return rl_call_fail(c, RL_EMODEL, "ranks %u and %u, wants equal ones from 3 on", x->rank, k->rank);
    if (*group < 1 || k->dim[0] % *group || x->dim[1] % *group || x->dim[1] / *group != k->dim[1])
        return rl_call_fail(c, RL_EMODEL, "%lld channels in %lld groups by weights for %lld, making %lld", (long long)x->dim[1],
                            (long long)*group, (long long)k->dim[1], (long long)k->dim[0]);
    return RL_OK;
}

rl_status rl_conv_bias(rl_call *c, const rl_tensor *bias, const rl_tensor *y) {
    if (!bias) {
        memset(rl_data(y), 0, rl_bytes_of(y->dtype, rl_numel(y)));
        return RL_OK;
    }
    if (bias->rank != 1 || bias->dim[0] != y->dim[1]) return rl_call_fail(c, RL_EMODEL, "the bias does not have %lld elements", (long long)y->dim[1]);
    rl_tensor view = *bias, all;
    view.rank = y->rank - 1;
    for (uint32_t i = 1; i < view.rank; i++) view.dim[i] = 1, view.stride[i] = 0;
    rl_view_expand(&view, y->rank, y->dim, &all);
    rl_tensor_move(c->rt, y, &all);
    return RL_OK;
}

/* ---- patches ---- */

/* Row k of the patches is tap k % ntap of channel k / ntap: for each output, the element that it reads, or 0. */
#define PATCHES(T)                                                                                                   \
    static void patches_##T(const rl_gemm *g, int64_t i, int64_t k0, int64_t nk, int64_t j0, int64_t nj, void *to, int64_t ld) { \
        const conv *v = g->arg;                                                                                      \
        const T *image = (const T *)v->x + i * v->c * v->in;                                                         \
        int64_t width = v->w.out[v->w.r - 1], place[RL_RANK];                                                        \
        memset(place, 0, sizeof place);                                                                              \
        for (int64_t j = j0, n; j < j0 + nj; j += n) {                                                               \
            int64_t col = j % width, step = v->taps.step, at;                                                        \
            n = RL_MIN(width - col, j0 + nj - j);                                                                    \
            rl_window_row(&v->w, j / width, place);                                                                  \
            for (int64_t k = 0; k < nk; k++) {                                                                       \
                int64_t tap = (k0 + k) % v->taps.n;                                                                  \
                T *y = (T *)to + k * ld + (j - j0);                                                                  \
                bool any = rl_tap_row(&v->w, &v->taps, tap, place, &at);                                             \
                int64_t from = any ? RL_MAX(v->taps.from[tap] - col, 0) : n, end = any ? RL_MIN(v->taps.to[tap] - col, n) : n; \
                from = RL_MIN(from, n);                                                                              \
                end = RL_MAX(end, from);                                                                             \
                for (int64_t q = 0; q < from; q++) y[q] = 0;                                                         \
                const T *x = image + (k0 + k) / v->taps.n * v->in + (any ? at + col * step : 0);                     \
                if (step == 1) for (int64_t q = from; q < end; q++) y[q] = x[q];                                     \
                else for (int64_t q = from; q < end; q++) y[q] = x[q * step];                                        \
                for (int64_t q = end; q < n; q++) y[q] = 0;                                                          \
            }                                                                                                        \
        }                                                                                                            \
    }
PATCHES(uint32_t)
PATCHES(uint64_t)

static void multiply(rl_call *c, const conv *v, int64_t n) {
    int64_t count = n * v->group, *aat = rl_new(c->tmp, int64_t, count), *yat = rl_new(c->tmp, int64_t, count);
    for (int64_t i = 0; i < count; i++) {
        aat[i] = i % v->group * v->m * v->c * v->taps.n;
        yat[i] = i * v->m * v->out;
    }
    bool small = rl_dtype_bits(v->type) == 32;
    rl_gemm g = {.type = v->type, .count = count, .m = v->m, .n = v->out, .k = v->c * v->taps.n, .a = v->k, .am = v->c * v->taps.n, .ak = 1,
                 .y = v->y, .ym = v->out, .aat = aat, .yat = yat, .rows = small ? patches_uint32_t : patches_uint64_t, .arg = v};
    rl_gemm_run(c->rt, &g);
}

/* ---- few channels ---- */

/* Planes from .. to-1 of y. Unsigned types wrap; they are the signed ones' bits. */
#define DIRECT(S, W)                                                                                              \
    static void direct_##S(void *arg, int64_t from, int64_t to) {                                                    \
        const conv *v = arg;                                                                                         \
        int64_t width = v->w.out[v->w.r - 1], nrow = v->out / width, place[RL_RANK], at;                             \
        memset(place, 0, sizeof place);                                                                              \
        for (int64_t p = from; p < to; p++) {                                                                        \
            const W *image = (const W *)v->x + p / v->m * v->c * v->in, *k0 = (const W *)v->k + p % (v->m * v->group) * v->c * v->taps.n; \
            for (int64_t row = 0; row < nrow; row++) {                                                               \
                W *y = (W *)v->y + (p * nrow + row) * width;                                                         \
                rl_window_row(&v->w, row, place);                                                                    \
                for (int64_t t = 0; t < v->taps.n; t++) {                                                            \
                    if (!rl_tap_row(&v->w, &v->taps, t, place, &at)) continue;                                       \
                    for (int64_t ch = 0; ch < v->c; ch++) {                                                          \
                        const W *x = image + ch * v->in;                                                             \
                        W k = k0[ch * v->taps.n + t];                                                                \
                        int64_t j = v->taps.from[t], end = v->taps.to[t], step = v->taps.step;                       \
                        if (step == 1) for (; j < end; j++) y[j] += x[at + j] * k;                                   \
                        else for (; j < end; j++) y[j] += x[at + j * step] * k;                                      \
                    }                                                                                                \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
    }
DIRECT(f32, float)
DIRECT(f64, double)
DIRECT(i32, uint32_t)
DIRECT(i64, uint64_t)

static rl_range_fn *direct_of(rl_dtype t) {
    return t == RL_F32 ? direct_f32 : t == RL_F64 ? direct_f64 : t == RL_I32 ? direct_i32 : direct_i64;
}

/* A kernel of one tap sees the plane as one row. */
static void flatten(rl_window *w) {
    for (uint32_t i = 0; i < w->r; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->before[i] || w->after[i]) return;
    w->in[0] = w->out[0] = rl_product(w->in, w->r);
    w->r = 1;
}

void rl_conv(rl_call *c, const rl_window *w, int64_t group, const rl_tensor *x, const rl_tensor *k, const rl_tensor *y) {
    if (rl_numel(y) == 0 || rl_numel(x) == 0 || rl_numel(k) == 0) return;
    conv v = {.w = *w, .c = k->dim[1], .m = k->dim[0] / group, .in = rl_product(w->in, w->r), .out = rl_product(w->out, w->r),
              .x = rl_data(x), .k = rl_data(k), .y = rl_data(y), .type = y->dtype, .group = group};
    flatten(&v.w);
    v.taps = rl_taps_of(c->tmp, &v.w);
    if (v.m >= 4) multiply(c, &v, x->dim[0]);
    else rl_parallel(c->rt, x->dim[0] * group * v.m, RL_MAX(1, 65536 / RL_MAX(v.out * v.c * v.taps.n, 1)), direct_of(v.type), &v);
}

/* ---- patches back ---- */

typedef struct { const rl_window *w; const rl_taps *taps; int64_t in, out; const void *cols; void *y; } back;

#define BACK(T)                                                                                                      \
    static void back_##T(void *arg, int64_t from, int64_t to) {                                                      \
        const back *b = arg;                                                                                         \
        int64_t width = b->w->out[b->w->r - 1], nrow = b->out / width, place[RL_RANK], at;                           \
        memset(place, 0, sizeof place);                                                                              \
        for (int64_t p = from; p < to; p++)                                                                          \
            for (int64_t t = 0; t < b->taps->n; t++)                                                                 \
                for (int64_t row = 0; row < nrow; row++) {                                                           \
                    const T *x = (const T *)b->cols + ((p * b->taps->n + t) * nrow + row) * width;                   \
                    T *y = (T *)b->y + p * b->in;                                                                    \
                    rl_window_row(b->w, row, place);                                                                 \
                    if (!rl_tap_row(b->w, b->taps, t, place, &at)) continue;                                         \
                    for (int64_t j = b->taps->from[t]; j < b->taps->to[t]; j++) y[at + j * b->taps->step] += x[j];   \
                }                                                                                                    \
    }
BACK(float)
BACK(double)
BACK(uint64_t)

static rl_range_fn *back_of(rl_dtype t) {
    return t == RL_F32 ? back_float : t == RL_F64 ? back_double : back_uint64_t;
}

void rl_conv_back(rl_call *c, const rl_window *w, int64_t nplane, const void *cols, const rl_tensor *y) {
    rl_taps taps = rl_taps_of(c->tmp, w);
    back b = {w, &taps, rl_product(w->in, w->r), rl_product(w->out, w->r), cols, rl_data(y)};
    if (b.in && b.out) rl_parallel(c->rt, nplane, RL_MAX(1, 65536 / RL_MAX(b.out * taps.n, 1)), back_of(y->dtype), &b);
}
