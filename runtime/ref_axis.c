/* Ops along one axis: ArgMax ArgMin, CumSum CumProd, TopK. */
#include "ref_axis.h"

#include <string.h>

#include "element.h"
#include "lines.h"

/* Types to compare and to sum in. */
static rl_dtype line_type(rl_dtype t) {
    if (rl_is_float(t)) return rl_wide_float(t);
    return t == RL_U64 ? RL_U64 : RL_I64;
}

/* step: from an element of a line to the next, as many as there are lines side by side. */
typedef struct { int64_t n, k, step; bool last, reverse, exclusive, multiplies, largest; const void *x; void *y; int64_t *at; } lines;

enum { SIDE = 128 /* lines side by side that go together */ };

/* Where the lines of piece r begin, *m of them. */
static int64_t lines_at(const lines *l, int64_t r, int64_t *m) {
    int64_t pieces = (l->step + SIDE - 1) / SIDE, first = r % pieces * SIDE;
    *m = RL_MIN(l->step - first, (int64_t)SIDE);
    return r / pieces * l->n * l->step + first;
}

/* fn on all pieces of the lines of x, which is dense. */
static void run_side_by_side(const rl_call *c, const rl_tensor *x, lines *l, rl_range_fn *fn) {
    if (rl_numel(x)) rl_parallel(c->rt, rl_numel(x) / l->n / l->step * ((l->step + SIDE - 1) / SIDE), rl_row_grain(l->n * RL_MIN(l->step, (int64_t)SIDE)), fn, l);
}

/* Of a dense tensor of x's dims. */
static int64_t step_of(const rl_tensor *x, uint32_t axis) {
    return rl_product(x->dim + axis + 1, x->rank - axis - 1);
}

/* ---- ArgMax, ArgMin ---- */

/* m lines side by side; inlined for one. I: an integer as wide as T, for both to be vectors. NaN is the extreme, as in NumPy. */
#define ARG(S, T, I)                                                                                                 \
    static inline __attribute__((always_inline)) void arg_some_##S(const lines *l, int64_t at, int64_t *to, const int64_t m, const bool largest, const bool last) { \
        const T *x = (const T *)l->x + at;                                                                           \
        T best[SIDE];                                                                                                \
        I place[SIDE];                                                                                               \
        for (int64_t j = 0; j < m; j++) best[j] = x[j], place[j] = 0;                                                \
        for (int64_t i = 1; i < l->n; i++) {                                                                         \
            x += l->step;                                                                                            \
            for (int64_t j = 0; j < m; j++) {                                                                        \
                T v = x[j], b = best[j];                                                                             \
                bool over = largest ? v > b : v < b, nan = v != v, number = b == b, same = number ? v == b : nan;    \
                bool takes = (number & (nan | over)) | (same & last);                                                \
                best[j] = takes ? v : b;                                                                             \
                place[j] = takes ? (I)i : place[j];                                                                  \
            }                                                                                                        \
        }                                                                                                            \
        for (int64_t j = 0; j < m; j++) to[j] = place[j];                                                            \
    }                                                                                                                \
    static inline __attribute__((always_inline)) void arg_any_##S(const lines *l, int64_t at, int64_t *to, const int64_t m) { \
        if (l->largest && !l->last) arg_some_##S(l, at, to, m, true, false);                                         \
        else if (l->largest) arg_some_##S(l, at, to, m, true, true);                                                 \
        else arg_some_##S(l, at, to, m, false, l->last);                                                             \
    }                                                                                                                \
    static void arg_##S(void *arg, int64_t from, int64_t to) {                                                       \
        const lines *l = arg;                                                                                        \
        for (int64_t r = from; r < to; r++) {                                                                        \
            int64_t m, at = lines_at(l, r, &m), *y = l->at + at / (l->n * l->step) * l->step + at % (l->n * l->step);\
            if (m == 1) arg_any_##S(l, at, y, 1);                                                                    \
            else arg_any_##S(l, at, y, m);                                                                           \
        }                                                                                                            \
    }
ARG(f32, float, int32_t)
ARG(f64, double, int64_t)
ARG(i64, int64_t, int64_t)
ARG(u64, uint64_t, int64_t)

static rl_range_fn *arg_fn(rl_dtype t) {
    return t == RL_F32 ? arg_f32 : t == RL_F64 ? arg_f64 : t == RL_I64 ? arg_i64 : arg_u64;
}

rl_status rl_ref_arg(rl_call *c) {
    uint32_t axis, rank = 0;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_in(c, 0);
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != axis || rl_attr_int(c->node, "keepdims", 1)) dim[rank++] = i == axis ? 1 : x->dim[i];
    rl_tensor *y = rl_call_make(c, 0, RL_I64, rank, dim);
    if (rl_numel(y) == 0) return RL_OK;
    if (x->dim[axis] == 0) return rl_call_fail(c, RL_EMODEL, "axis %u is empty", axis);
    rl_dtype t = line_type(x->dtype);
    if (t == RL_F32 && x->dim[axis] > INT32_MAX) t = RL_F64; /* whose places are wider */
    const rl_tensor *in = rl_dense_as(c, x, t);
    lines l = {.n = x->dim[axis], .step = step_of(x, axis), .largest = c->arg == RL_ARG_MAX, .last = rl_attr_int(c->node, "select_last_index", 0) != 0,
               .x = rl_data(in), .at = rl_data(y)};
    run_side_by_side(c, x, &l, arg_fn(t));
    return RL_OK;
}

/* ---- CumSum, CumProd ---- */

/* m lines side by side; inlined for one. W is the type that wraps, or holds more digits. */
#define CUMULATE(S, T, W)                                                                                            \
    static inline __attribute__((always_inline)) void cumulate_some_##S(const lines *l, int64_t at, const int64_t m, const bool multiplies, const bool exclusive) { \
        const int64_t n = l->n, step = l->reverse ? -l->step : l->step;                                              \
        W sum[SIDE];                                                                                                 \
        for (int64_t j = 0; j < m; j++) sum[j] = multiplies;                                                         \
        if (l->reverse) at += (n - 1) * l->step;                                                                     \
        for (int64_t k = 0; k < n; k++, at += step) {                                                                \
            const T *x = (const T *)l->x + at;                                                                       \
            T *restrict y = (T *)l->y + at;                                                                          \
            for (int64_t j = 0; j < m; j++) {                                                                        \
                W before = sum[j];                                                                                   \
                sum[j] = multiplies ? before * (W)x[j] : before + (W)x[j];                                           \
                y[j] = (T)(exclusive ? before : sum[j]);                                                             \
            }                                                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    static void cumulate_##S(void *arg, int64_t from, int64_t to) {                                                  \
        const lines *l = arg;                                                                                        \
        for (int64_t r = from; r < to; r++) {                                                                        \
            int64_t m, at = lines_at(l, r, &m);                                                                      \
            if (m == 1) cumulate_some_##S(l, at, 1, l->multiplies, l->exclusive);                                    \
            else cumulate_some_##S(l, at, m, l->multiplies, l->exclusive);                                           \
        }                                                                                                            \
    }
CUMULATE(f32, float, double)
CUMULATE(f64, double, double)
CUMULATE(i64, int64_t, uint64_t)

rl_status rl_cumulate_axis(rl_call *c, uint32_t *axis) {
    int64_t at;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_int(c, 1, 0, &at));
    return rl_call_axis(c, at, rl_call_in(c, 0)->rank, axis);
}

rl_status rl_ref_cumulate(rl_call *c) {
    uint32_t axis;
    RL_TRY(rl_cumulate_axis(c, &axis));
    const rl_tensor *x = rl_call_in(c, 0);
    rl_dtype t = rl_is_float(x->dtype) ? rl_wide_float(x->dtype) : RL_I64; /* unsigned sums are the signed ones' bits */
    const rl_tensor *in = rl_dense_as(c, x, t), *y = rl_wide_make(c, 0, x->dtype, t, x->rank, x->dim);
    lines l = {.n = x->dim[axis], .step = step_of(x, axis), .reverse = rl_attr_int(c->node, "reverse", 0) != 0, .multiplies = c->arg == RL_CUM_PROD,
               .exclusive = rl_attr_int(c->node, "exclusive", 0) != 0, .x = rl_data(in), .y = rl_data(y)};
    rl_range_fn *fn = t == RL_F32 ? cumulate_f32 : t == RL_F64 ? cumulate_f64 : cumulate_i64;
    run_side_by_side(c, x, &l, fn);
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- TopK ---- */

/* A heap of the k best so far, the worst of them on top; equal elements: the earlier is better.  NaN is larger than all. */
#define TOPK(S, T)                                                                                                   \
    static inline bool better_##S(const T *x, int64_t a, int64_t b, bool largest) {                                  \
        bool na = x[a] != x[a], nb = x[b] != x[b];                                                                   \
        if (na || nb) return na && nb ? a < b : largest ? na : nb;                                                   \
        return x[a] == x[b] ? a < b : largest ? x[a] > x[b] : x[a] < x[b];                                           \
    }                                                                                                                \
    static void sift_##S(int64_t *heap, int64_t n, int64_t i, const T *x, bool largest) {                            \
        for (int64_t kid; (kid = 2 * i + 1) < n; i = kid) {                                                          \
            if (kid + 1 < n && better_##S(x, heap[kid], heap[kid + 1], largest)) kid++;                              \
            if (!better_##S(x, heap[i], heap[kid], largest)) return;                                                 \
            int64_t t = heap[i];                                                                                     \
            heap[i] = heap[kid], heap[kid] = t;                                                                      \
        }                                                                                                            \
    }                                                                                                                \
    static void topk_##S(void *arg, int64_t from, int64_t to) {                                                      \
        const lines *l = arg;                                                                                        \
        for (int64_t r = from; r < to; r++) {                                                                        \
            const T *x = (const T *)l->x + r * l->n;                                                                 \
            T *y = (T *)l->y + r * l->k;                                                                             \
            int64_t *heap = l->at + r * l->k, k = l->k;                                                              \
            for (int64_t i = 0; i < k; i++) heap[i] = i;                                                             \
            for (int64_t i = k / 2; i-- > 0;) sift_##S(heap, k, i, x, l->largest);                                   \
            for (int64_t i = k; k && i < l->n; i++) {                                                                \
                if (!better_##S(x, i, heap[0], l->largest)) continue;                                                \
                heap[0] = i;                                                                                         \
                sift_##S(heap, k, 0, x, l->largest);                                                                 \
            }                                                                                                        \
            for (int64_t i = k; i-- > 1;) { /* the worst goes last */                                                \
                int64_t t = heap[0];                                                                                 \
                heap[0] = heap[i], heap[i] = t;                                                                      \
                sift_##S(heap, i, 0, x, l->largest);                                                                 \
            }                                                                                                        \
            for (int64_t i = 0; i < k; i++) y[i] = x[heap[i]];                                                       \
        }                                                                                                            \
    }
TOPK(f32, float)
TOPK(f64, double)
TOPK(i64, int64_t)
TOPK(u64, uint64_t)

static rl_range_fn *topk_fn(rl_dtype t) {
    return t == RL_F32 ? topk_f32 : t == RL_F64 ? topk_f64 : t == RL_I64 ? topk_i64 : topk_u64;
}

rl_status rl_topk_read(rl_call *c, uint32_t *axis, int64_t *k) {
    uint32_t n;
    const int64_t *given;
    RL_TRY(rl_call_attr_axis(c, "axis", -1, axis));
    RL_TRY(rl_call_ints(c, "k", c->node->since >= 10 ? 1 : RL_NONE, &given, &n));
    *k = n == 1 ? *given : -1;
    int64_t d = rl_call_in(c, 0)->dim[*axis];
    return *k >= 0 && *k <= d ? RL_OK : rl_call_fail(c, RL_EMODEL, "k is %lld, wants 0 to %lld", (long long)*k, (long long)d);
}

rl_status rl_ref_topk(rl_call *c) {
    uint32_t axis;
    int64_t k, dim[RL_RANK];
    RL_TRY(rl_topk_read(c, &axis, &k));
    const rl_tensor *x = rl_call_in(c, 0);
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = k;
    rl_dtype t = line_type(x->dtype);
    const rl_tensor *in = rl_lines_of(c, x, axis, t);
    rl_tensor *y = rl_lines_make(c, 0, x->dtype, t, x->rank, dim, axis), *at = rl_lines_make(c, 1, RL_I64, RL_I64, x->rank, dim, axis);
    lines l = {.n = x->dim[axis], .k = k, .largest = rl_attr_int(c->node, "largest", 1) != 0, .x = rl_data(in), .y = rl_data(y),
            .at = rl_data(at)};
    if (rl_numel(y)) rl_parallel(c->rt, rl_numel(y) / l.k, rl_row_grain(l.n), topk_fn(t), &l);
    rl_lines_done(c, 0, y, axis);
    rl_lines_done(c, 1, at, axis);
    return RL_OK;
}
