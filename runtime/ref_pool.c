/* Pools over windows and over whole planes, and MaxUnpool. Computed in f32 or f64, which hold all numbers of the types taken. */
#include <math.h>
#include <string.h>

#include "element.h"
#include "ref_pool.h"
#include "wide.h"
#include "window.h"

typedef struct {
    rl_window w;
    rl_taps taps;
    int op;
    double p;            /* of Lp */
    int64_t in, out;     /* elements of a plane */
    const void *x;
    void *y;
    int64_t *index;      /* of the largest; NULL: not wanted */
    const float *count;  /* [out], what an average is divided by */
} pool;

/* ---- windows ---- */

/* y[j] takes in x[j*step], for a row's outputs that one tap reaches. */
#define ROWS(S, T, FABS, POW)                                                                                        \
    static void max_##S(T *y, const T *x, int64_t n, int64_t step) {                                                 \
        if (step == 1) for (int64_t j = 0; j < n; j++) y[j] = x[j] > y[j] ? x[j] : y[j];                             \
        else for (int64_t j = 0; j < n; j++) y[j] = x[j * step] > y[j] ? x[j * step] : y[j];                         \
    }                                                                                                                \
    static void sum_##S(T *y, const T *x, int64_t n, int64_t step) {                                                 \
        if (step == 1) for (int64_t j = 0; j < n; j++) y[j] += x[j];                                                 \
        else for (int64_t j = 0; j < n; j++) y[j] += x[j * step];                                                    \
    }                                                                                                                \
    static void powers_##S(T *y, const T *x, int64_t n, int64_t step, T p) {                                         \
        if (p == 2) for (int64_t j = 0; j < n; j++) y[j] += x[j * step] * x[j * step];                               \
        else for (int64_t j = 0; j < n; j++) y[j] += POW(FABS(x[j * step]), p);                                      \
    }                                                                                                                \
    static void index_##S(T *y, int64_t *index, const T *x, int64_t at, int64_t n, int64_t step) {                   \
        for (int64_t j = 0; j < n; j++)                                                                              \
            if (x[j * step] > y[j] || index[j] < 0) y[j] = x[j * step], index[j] = at + j * step;                    \
    }                                                                                                                \
    static void row_##S(const pool *p, const T *x, T *y, int64_t *index, const int64_t *place) {                     \
        int64_t at, step = p->taps.step;                                                                             \
        for (int64_t t = 0; t < p->taps.n; t++) {                                                                    \
            if (!rl_tap_row(&p->w, &p->taps, t, place, &at)) continue;                                               \
            int64_t j = p->taps.from[t], n = p->taps.to[t] - j;                                                      \
            at += j * step;                                                                                          \
            if (p->op == RL_POOL_MAX && index) index_##S(y + j, index + j, x + at, at, n, step);                     \
            else if (p->op == RL_POOL_MAX) max_##S(y + j, x + at, n, step);                                          \
            else if (p->op == RL_POOL_AVERAGE) sum_##S(y + j, x + at, n, step);                                      \
            else powers_##S(y + j, x + at, n, step, (T)p->p);                                                        \
        }                                                                                                            \
    }                                                                                                                \
    static void planes_##S(void *arg, int64_t from, int64_t to) {                                                    \
        const pool *p = arg;                                                                                         \
        int64_t width = p->w.out[p->w.r - 1], place[RL_RANK];                                                        \
        memset(place, 0, sizeof place);                                                                              \
        for (int64_t i = from; i < to; i++) {                                                                        \
            T *y = (T *)p->y + i * p->out;                                                                           \
            int64_t *index = p->index ? p->index + i * p->out : NULL;                                                \
            for (int64_t j = 0; j < p->out; j++) y[j] = p->op == RL_POOL_MAX ? -(T)INFINITY : 0;                     \
            for (int64_t j = 0; index && j < p->out; j++) index[j] = -1;                                             \
            for (int64_t j = 0; j < p->out; j += width) {                                                            \
                rl_window_row(&p->w, j / width, place);                                                              \
                row_##S(p, (const T *)p->x + i * p->in, y + j, index ? index + j : NULL, place);                     \
            }                                                                                                        \
            for (int64_t j = 0; p->op == RL_POOL_AVERAGE && j < p->out; j++) y[j] /= (T)p->count[j];                 \
            for (int64_t j = 0; p->op == RL_POOL_LP && j < p->out; j++) y[j] = POW(y[j], 1 / (T)p->p);               \
        }                                                                                                            \
    }                                                                                                                \
    static void whole_##S(void *arg, int64_t from, int64_t to) {                                                     \
        const pool *p = arg;                                                                                         \
        for (int64_t i = from; i < to; i++) {                                                                        \
            const T *x = (const T *)p->x + i * p->in;                                                                \
            double sum = 0;                                                                                          \
            T most = -(T)INFINITY;                                                                                   \
            for (int64_t j = 0; p->op == RL_POOL_MAX && j < p->in; j++) most = x[j] > most || x[j] != x[j] ? x[j] : most; \
            for (int64_t j = 0; p->op == RL_POOL_AVERAGE && j < p->in; j++) sum += (double)x[j];                     \
            for (int64_t j = 0; p->op == RL_POOL_LP && j < p->in; j++) sum += pow(fabs((double)x[j]), p->p);         \
            ((T *)p->y)[i] = p->op == RL_POOL_MAX       ? most                                                       \
                             : p->op == RL_POOL_AVERAGE ? (T)(sum / (double)p->in)                                   \
                                                        : (T)pow(sum, 1 / p->p);                                     \
        }                                                                                                            \
    }
ROWS(f32, float, fabsf, powf)
ROWS(f64, double, fabs, pow)

/* How many taps of each window count: those in the tensor, and with count_include_pad those in its padding. */
const float *rl_pool_counts(rl_call *c, const rl_window *w) {
    int64_t n = rl_product(w->out, w->r), *of[RL_RANK];
    bool pads = rl_attr_int(c->node, "count_include_pad", 0) != 0;
    float *count = rl_new(c->tmp, float, n);
    for (uint32_t i = 0; i < w->r; i++) {
        of[i] = rl_new(c->tmp, int64_t, w->out[i]);
        for (int64_t o = 0; o < w->out[i]; o++)
            for (int64_t t = 0; t < w->kernel[i]; t++) {
                int64_t p = o * w->stride[i] - w->before[i] + t * w->dilation[i];
                of[i][o] += pads ? p < w->in[i] + w->after[i] : p >= 0 && p < w->in[i];
            }
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t left = k;
        count[k] = 1;
        for (uint32_t i = w->r; i-- > 0; left /= w->out[i]) count[k] *= (float)of[i][left % w->out[i]];
    }
    return count;
}

/* From places in a plane to places in the tensor; storage_order 1: the plane's dims are counted the other way round. */
static void finish_index(const pool *p, int64_t nplane, bool column_major) {
    for (int64_t k = 0; k < nplane * p->out; k++) {
        int64_t left = p->index[k], at = left;
        if (left < 0) continue;
        if (column_major) {
            int64_t place[RL_RANK];
            for (uint32_t i = p->w.r; i-- > 0; left /= p->w.in[i]) place[i] = left % p->w.in[i];
            at = 0;
            for (uint32_t i = p->w.r; i-- > 0;) at = at * p->w.in[i] + place[i];
        }
        p->index[k] = k / p->out * p->in + at;
    }
}

/* Old versions have p as a float. */
static double power_of(const rl_call *c) {
    const rl_attr *a = rl_attr_find(c->node, "p");
    return !a ? 2 : a->kind == RL_ATTR_FLOAT ? (double)a->f : (double)a->i;
}

rl_status rl_ref_pool(rl_call *c) {
    pool p = {.op = c->arg, .p = power_of(c)};
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    rl_dtype type = rl_call_in(c, 0)->dtype, t = rl_wide_float(type);
    const rl_tensor *x = rl_call_as(c, 0, t);
    RL_TRY(rl_window_read(c, x, NULL, &p.w));
    if (!(p.p > 0)) return rl_call_fail(c, RL_EMODEL, "p is %g", p.p);
    memcpy(dim, x->dim, sizeof dim);
    memcpy(dim + 2, p.w.out, p.w.r * sizeof *dim);
    RL_TRY(rl_call_dims(c, x->rank, dim));
    rl_tensor *y = rl_wide_make(c, 0, type, t, x->rank, dim);
    if (c->arg == RL_POOL_MAX && rl_call_wants(c, 1)) p.index = rl_data(rl_call_make(c, 1, RL_I64, x->rank, dim));
    if (rl_numel(y)) {
        p.taps = rl_taps_of(c->tmp, &p.w);
        p.in = rl_product(p.w.in, p.w.r), p.out = rl_product(p.w.out, p.w.r);
        if (c->arg == RL_POOL_AVERAGE) p.count = rl_pool_counts(c, &p.w);
        p.x = rl_data(x), p.y = rl_data(y);
        rl_parallel(c->rt, dim[0] * dim[1], RL_MAX(1, 32768 / RL_MAX(p.out * p.taps.n, 1)), t == RL_F32 ? planes_f32 : planes_f64, &p);
        if (p.index) finish_index(&p, dim[0] * dim[1], rl_attr_int(c->node, "storage_order", 0) != 0);
    }
    rl_wide_done(c, 0, y);
    return RL_OK;
}

rl_status rl_ref_global_pool(rl_call *c) {
    pool p = {.op = c->arg, .p = power_of(c)};
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    rl_dtype type = rl_call_in(c, 0)->dtype, t = rl_wide_float(type);
    const rl_tensor *x = rl_call_as(c, 0, t);
    if (x->rank < 2 || !(p.p > 0)) return rl_call_fail(c, RL_EMODEL, "rank %u, p %g", x->rank, p.p);
    for (uint32_t i = 0; i < x->rank; i++) dim[i] = i < 2 ? x->dim[i] : 1;
    rl_tensor *y = rl_wide_make(c, 0, type, t, x->rank, dim);
    p.in = rl_product(x->dim + 2, x->rank - 2), p.x = rl_data(x), p.y = rl_data(y);
    rl_parallel(c->rt, rl_numel(y), RL_MAX(1, 32768 / RL_MAX(p.in, 1)), t == RL_F32 ? whole_f32 : whole_f64, &p);
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- MaxUnpool ---- */

/* Elements go to their places in the shape that the attributes tell; output_shape, where it is given, has that in its low corner. */
rl_status rl_ref_max_unpool(rl_call *c) {
    const int64_t *given, *index;
    uint32_t ngiven;
    rl_window w;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_dense(c, 0), *places = rl_call_as(c, 1, RL_I64);
    RL_TRY(rl_call_ints(c, NULL, 2, &given, &ngiven));
    if (x->rank < 3 || !rl_same_dims(x, places) || (given && ngiven != x->rank))
        return rl_call_fail(c, RL_EMODEL, "the input, its indices and output_shape do not fit");
    RL_TRY(rl_window_attrs(c, x->rank - 2, NULL, &w));
    memcpy(dim, x->dim, sizeof dim);
    for (uint32_t i = 0; i < w.r; i++) {
        if (x->dim[2 + i] > INT32_MAX) return rl_call_fail(c, RL_ELIMIT, "spatial dim %u of %lld", i, (long long)x->dim[2 + i]);
        dim[2 + i] = (x->dim[2 + i] - 1) * w.stride[i] + w.kernel[i] - w.before[i] - w.after[i];
    }
    RL_TRY(rl_call_dims(c, x->rank, dim));
    if (given) RL_TRY(rl_call_dims(c, x->rank, given));
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, given ? given : dim), corner = *y;
    rl_tensor *inner = given ? rl_call_temp(c, x->dtype, x->rank, dim) : y;
    for (uint32_t i = 0; given && i < x->rank; i++) {
        if (given[i] < dim[i]) return rl_call_fail(c, RL_EMODEL, "output_shape has %lld, wants %lld or more", (long long)given[i], (long long)dim[i]);
        corner = rl_view_slice(&corner, i, 0, 1, dim[i]);
    }
    size_t size = rl_dtype_bits(x->dtype) / 8;
    int64_t n = rl_numel(inner), count = rl_numel(x);
    rl_tensor line, from, at;
    memset(rl_data(inner), 0, (size_t)n * size);
    if (given) memset(rl_data(y), 0, (size_t)rl_numel(y) * size);
    index = rl_data(places);
    for (int64_t i = 0; i < count; i++)
        if (index[i] < 0) return rl_call_fail(c, RL_EMODEL, "index %lld is out of range of %lld", (long long)index[i], (long long)n);
    rl_view_reshape(inner, 1, &n, &line), rl_view_reshape(x, 1, &count, &from), rl_view_reshape(places, 1, &count, &at);
    RL_TRY(rl_move_indexed(c, &at, 0, &line, &from, true, RL_PUT));
    if (given) rl_tensor_move(c->rt, &corner, inner);
    return RL_OK;
}
