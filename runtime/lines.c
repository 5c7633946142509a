/* Lines along an axis, and loops over rows: see lines.h. */
#include "lines.h"

#include <math.h>
#include <string.h>

/* perm moves axis last, or with back from last to its place. */
static void axis_perm(uint32_t rank, uint32_t axis, bool back, int64_t *perm) {
    for (uint32_t i = 0; i < rank; i++) {
        if (back) perm[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
        else perm[i] = i + 1 == rank ? axis : i < axis ? i : i + 1;
    }
}

const rl_tensor *rl_dense_as(rl_call *c, const rl_tensor *t, rl_dtype type) {
    if (t->dtype == type && rl_is_dense(t)) {
        rl_tensor *same = rl_new(c->tmp, rl_tensor, 1);
        *same = *t;
        return same;
    }
    rl_tensor *y = rl_call_temp(c, type, t->rank, t->dim);
    rl_convert(c->rt, y, t, true);
    return y;
}

const rl_tensor *rl_lines_of(rl_call *c, const rl_tensor *t, uint32_t axis, rl_dtype type) {
    int64_t perm[RL_RANK];
    axis_perm(t->rank, axis, false, perm);
    rl_tensor view = rl_view_transpose(t, perm);
    return rl_dense_as(c, &view, type);
}

rl_tensor *rl_lines_make(rl_call *c, uint32_t i, rl_dtype t, rl_dtype wide, uint32_t rank, const int64_t *dim, uint32_t axis) {
    int64_t perm[RL_RANK], moved[RL_RANK];
    rl_tensor *y = rl_call_make(c, i, t, rank, dim);
    if (axis + 1 == rank && t == wide) return y;
    axis_perm(rank, axis, false, perm);
    for (uint32_t k = 0; k < rank; k++) moved[k] = dim[perm[k]];
    return rl_call_temp(c, wide, rank, moved);
}

void rl_lines_done(rl_call *c, uint32_t i, const rl_tensor *lines, uint32_t axis) {
    int64_t perm[RL_RANK];
    if (i >= c->nout || c->out[i].mem == lines->mem) return;
    axis_perm(lines->rank, axis, true, perm);
    rl_tensor view = rl_view_transpose(lines, perm);
    rl_convert(c->rt, &c->out[i], &view, true);
}

/* ---- loops ---- */

enum { LANES = 16, BLOCK = 1024 /* elements whose sum is carried in the type itself */ };

/* e^x for x <= 0, to 2 ulp, without branches: 2^n * e^r, n from the low bits of a sum with 1.5 * 2^23. Below 2^-126: 0. */
static inline float exp_f32(float x) {
    const float magic = 12582912.0f;
    float low = x < -87.3f ? -87.3f : x;
    float t = low * 1.44269504f + magic, n = t - magic;
    float r = (low - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    uint32_t bits;
    float scale;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits << 23) + 0x3f800000u;
    memcpy(&scale, &bits, sizeof scale);
    return x < -87.3f ? 0 : p * scale;
}
static inline double exp_f64(double x) { return exp(x); }

/* Sums `expr`, of element v, over a row: lanes in T within a block, blocks in double. */
#define SUM_ROW(T, expr)                                                                                             \
    double total = 0;                                                                                                \
    for (int64_t b = 0; b < n; b += BLOCK) {                                                                         \
        int64_t end = RL_MIN(b + BLOCK, n), i = b;                                                                   \
        T lane[LANES] = {0};                                                                                         \
        for (; i + LANES <= end; i += LANES)                                                                         \
            for (int l = 0; l < LANES; l++) {                                                                        \
                T v = x[i + l];                                                                                      \
                lane[l] += (expr);                                                                                   \
            }                                                                                                        \
        for (; i < end; i++) {                                                                                       \
            T v = x[i];                                                                                              \
            lane[0] += (expr);                                                                                       \
        }                                                                                                            \
        for (int l = 0; l < LANES; l++) total += (double)lane[l];                                                    \
    }                                                                                                                \
    return total

#define ROW_LOOPS(S, T)                                                                                              \
    T rl_row_max_##S(const T *x, int64_t n) {                                                                        \
        T lane[LANES];                                                                                               \
        int64_t i = 0;                                                                                               \
        bool nan = false;                                                                                            \
        for (int l = 0; l < LANES; l++) lane[l] = -(T)INFINITY;                                                      \
        for (; i + LANES <= n; i += LANES)                                                                           \
            for (int l = 0; l < LANES; l++) lane[l] = lane[l] > x[i + l] ? lane[l] : x[i + l];                           \
        for (; i < n; i++) lane[0] = lane[0] > x[i] ? lane[0] : x[i];                                                \
        for (i = 0; i < n; i++) nan |= x[i] != x[i]; /* the comparisons above lose them */                          \
        for (int l = 1; l < LANES; l++) lane[0] = lane[0] > lane[l] ? lane[0] : lane[l];                             \
        return nan ? (T)NAN : lane[0];                                                                               \
    }                                                                                                                \
    double rl_row_sum_##S(const T *x, int64_t n) { SUM_ROW(T, v); }                                                  \
    double rl_row_square_##S(const T *x, int64_t n, T shift) { SUM_ROW(T, (v - shift) * (v - shift)); }              \
    double rl_row_exp_##S(T *y, const T *x, int64_t n, T shift) {                                                    \
        int64_t i = 0;                                                                                               \
        for (; i + LANES <= n; i += LANES) { /* through z: y may be x */                                             \
            T z[LANES];                                                                                              \
            for (int l = 0; l < LANES; l++) z[l] = exp_##S(x[i + l] - shift);                                        \
            memcpy(y + i, z, sizeof z);                                                                              \
        }                                                                                                            \
        for (; i < n; i++) y[i] = exp_##S(x[i] - shift);                                                             \
        return rl_row_sum_##S(y, n);                                                                                 \
    }                                                                                                                \
    void rl_row_scale_##S(T *y, const T *x, int64_t n, T by, T shift) {                                              \
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - shift) * by;                                                  \
    }
ROW_LOOPS(f32, float)
ROW_LOOPS(f64, double)

#define SOFTMAX(S, T)                                                                                                \
    static void softmax_##S(T *y, const T *x, int64_t n) {                                                           \
        double sum = rl_row_exp_##S(y, x, n, rl_row_max_##S(x, n));                                                  \
        rl_row_scale_##S(y, y, n, (T)(1 / sum), 0);                                                                  \
    }
SOFTMAX(f32, float)
SOFTMAX(f64, double)

void rl_row_softmax(rl_dtype t, void *y, const void *x, int64_t n) {
    if (t == RL_F64) softmax_f64(y, x, n);
    else softmax_f32(y, x, n);
}
