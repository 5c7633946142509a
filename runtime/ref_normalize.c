/* BatchNormalization, InstanceNormalization, GroupNormalization, MeanVarianceNormalization, LpNormalization, LRN. Statistics are
 * computed in f64; what they are applied to, in f32 or f64. */
#include <math.h>
#include <string.h>

#include "wide.h"

/* A tensor as rows of `inner` elements: [row][inner]. Row i is normalized by the numbers at i % nparam. */
typedef struct {
    const void *x;
    void *y;
    int64_t inner, nparam;
    double *mean, *mul, *add; /* [nparam]; y = (x - mean) * mul + add */
    int64_t count, step, group; /* for statistics: the rows of parameter i are i*group + k*step, k < count */
    double *var;
} rows;

enum { LANES = 8 }; /* sums side by side */

/* term: of v, a number */
#define SUM(name, S, T, term)                                                                                        \
    static double name##_##S(const T *x, int64_t n, double mean) {                                                   \
        double lane[LANES] = {0};                                                                                    \
        int64_t j = 0;                                                                                               \
        (void)mean;                                                                                                  \
        for (; j + LANES <= n; j += LANES)                                                                           \
            for (int l = 0; l < LANES; l++) {                                                                        \
                double v = (double)x[j + l];                                                                         \
                lane[l] += term;                                                                                     \
            }                                                                                                        \
        for (; j < n; j++) {                                                                                         \
            double v = (double)x[j];                                                                                 \
            lane[0] += term;                                                                                         \
        }                                                                                                            \
        for (int l = 1; l < LANES; l++) lane[0] += lane[l];                                                          \
        return lane[0];                                                                                              \
    }
#define ROWS(S, T)                                                                                                   \
    SUM(sum, S, T, v)                                                                                                \
    SUM(squares, S, T, (v - mean) * (v - mean))                                                                      \
    static void stats_##S(void *arg, int64_t from, int64_t to) {                                                     \
        const rows *r = arg;                                                                                         \
        double n = (double)(r->count * r->inner);                                                                    \
        for (int64_t i = from; i < to; i++) {                                                                        \
            const T *x = (const T *)r->x + i * r->group * r->inner;                                                  \
            int64_t step = r->step * r->inner;                                                                       \
            double sum = 0, square = 0;                                                                              \
            for (int64_t k = 0; k < r->count; k++) sum += sum_##S(x + k * step, r->inner, 0);                        \
            for (int64_t k = 0; k < r->count; k++) square += squares_##S(x + k * step, r->inner, sum / n);           \
            r->mean[i] = sum / n;                                                                                    \
            r->var[i] = square / n;                                                                                  \
        }                                                                                                            \
    }                                                                                                                \
    static void apply_##S(void *arg, int64_t from, int64_t to) {                                                     \
        const rows *r = arg;                                                                                         \
        for (int64_t i = from; i < to; i++) {                                                                        \
            const T *x = (const T *)r->x + i * r->inner;                                                             \
            T *y = (T *)r->y + i * r->inner, mean = (T)r->mean[i % r->nparam], mul = (T)r->mul[i % r->nparam], add = (T)r->add[i % r->nparam]; \
            for (int64_t j = 0; j < r->inner; j++) y[j] = (x[j] - mean) * mul + add;                                 \
        }                                                                                                            \
    }
ROWS(f32, float)
ROWS(f64, double)

static int64_t grain_of(int64_t work) {
    return RL_MAX(1, 16384 / RL_MAX(work, 1));
}

static rows rows_of(rl_call *c, int64_t nparam, int64_t inner, const rl_tensor *x, const rl_tensor *y) {
    rows r = {.x = rl_data(x), .y = rl_data(y), .inner = inner, .nparam = nparam};
    r.mean = rl_new(c->tmp, double, nparam), r.var = rl_new(c->tmp, double, nparam);
    r.mul = rl_new(c->tmp, double, nparam), r.add = rl_new(c->tmp, double, nparam);
    return r;
}

static void take_stats(rl_call *c, rows *r, int64_t n, rl_dtype t) {
    rl_parallel(c->rt, n, grain_of(r->count * r->inner), t == RL_F32 ? stats_f32 : stats_f64, r);
}

static void apply(rl_call *c, rows *r, int64_t n, rl_dtype t) {
    rl_parallel(c->rt, n, grain_of(r->inner), t == RL_F32 ? apply_f32 : apply_f64, r);
}

/* Input i as n doubles. */
static rl_status params(rl_call *c, uint32_t i, int64_t n, const double **p) {
    const rl_tensor *t = rl_call_as(c, i, RL_F64);
    if (rl_numel(t) != n) return rl_call_fail(c, RL_EMODEL, "input %u has %lld elements, wants %lld", i, (long long)rl_numel(t), (long long)n);
    *p = rl_data(t);
    return RL_OK;
}

static void put_params(rl_call *c, uint32_t i, uint32_t like, const double *p) {
    const rl_tensor *t = rl_call_in(c, like);
    rl_tensor *y = rl_wide_make(c, i, t->dtype, RL_F64, t->rank, t->dim);
    memcpy(rl_data(y), p, (size_t)rl_numel(y) * sizeof *p);
    rl_wide_done(c, i, y);
}

/* ---- BatchNormalization ---- */

static bool trains(const rl_call *c) {
    uint32_t v = c->node->since;
    if (v >= 14) return rl_attr_int(c->node, "training_mode", 0) != 0;
    if (v < 7) return rl_attr_int(c->node, "is_test", 0) == 0;
    for (uint32_t i = 1; i < c->nout; i++)
        if (rl_call_wants(c, i)) return true;
    return false;
}

/* Old versions also give the batch's own statistics, as outputs 3 and 4. */
static void put_running(rl_call *c, const rows *r, const double *mean, const double *var) {
    double *m = rl_new(c->tmp, double, r->nparam), *v = rl_new(c->tmp, double, r->nparam), keep = (double)rl_attr_float(c->node, "momentum", 0.9f);
    for (int64_t i = 0; i < r->nparam; i++) m[i] = mean[i] * keep + r->mean[i] * (1 - keep), v[i] = var[i] * keep + r->var[i] * (1 - keep);
    if (c->nout > 1) put_params(c, 1, 3, m);
    if (c->nout > 2) put_params(c, 2, 4, v);
    if (c->nout > 3) put_params(c, 3, 3, r->mean);
    if (c->nout > 4) put_params(c, 4, 4, r->var);
}

rl_status rl_ref_batch_normalization(rl_call *c) {
    const double *scale = NULL, *bias = NULL, *mean = NULL, *var = NULL;
    RL_TRY(rl_call_need(c, 5));
    rl_dtype type = rl_call_in(c, 0)->dtype, t = rl_wide_float(type);
    const rl_tensor *x = rl_call_as(c, 0, t);
    int64_t ch = x->rank > 1 ? x->dim[1] : 1, inner = 1;
    if (x->rank < 1) return rl_call_fail(c, RL_EMODEL, "a scalar has no channels");
    for (uint32_t i = 2; i < x->rank; i++) inner *= x->dim[i];
    if (c->node->since < 9 && rl_attr_int(c->node, "spatial", 1) == 0) ch *= inner, inner = 1; /* each place by itself */
    RL_TRY(params(c, 1, ch, &scale));
    RL_TRY(params(c, 2, ch, &bias));
    RL_TRY(params(c, 3, ch, &mean));
    RL_TRY(params(c, 4, ch, &var));
    rl_tensor *y = rl_wide_make(c, 0, type, t, x->rank, x->dim);
    rows r = rows_of(c, ch, inner, x, y);
    r.count = x->dim[0], r.step = ch, r.group = 1;
    if (trains(c)) {
        take_stats(c, &r, ch, t);
        put_running(c, &r, mean, var);
    } else {
        memcpy(r.mean, mean, (size_t)ch * sizeof *mean);
        memcpy(r.var, var, (size_t)ch * sizeof *var);
    }
    double eps = (double)rl_attr_float(c->node, "epsilon", 1e-5f);
    for (int64_t i = 0; i < ch; i++) r.mul[i] = scale[i] / sqrt(r.var[i] + eps), r.add[i] = bias[i];
    apply(c, &r, x->dim[0] * ch, t);
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- InstanceNormalization, GroupNormalization: arg 0, 1 ---- */

rl_status rl_ref_group_normalization(rl_call *c) {
    const double *scale = NULL, *bias = NULL;
    RL_TRY(rl_call_need(c, 3));
    rl_dtype type = rl_call_in(c, 0)->dtype, t = rl_wide_float(type);
    const rl_tensor *x = rl_call_as(c, 0, t);
    if (x->rank < 2) return rl_call_fail(c, RL_EMODEL, "rank %u, wants 2 or more", x->rank);
    int64_t n = x->dim[0], ch = x->dim[1], ngroup = c->arg ? rl_attr_int(c->node, "num_groups", 0) : ch, inner = 1;
    bool per_group = c->arg && c->node->since < 21; /* one scale and bias for a group */
    if (ngroup < 1 ? ch : ch % ngroup) return rl_call_fail(c, RL_EMODEL, "%lld channels in %lld groups", (long long)ch, (long long)ngroup);
    for (uint32_t i = 2; i < x->rank; i++) inner *= x->dim[i];
    RL_TRY(params(c, 1, per_group ? ngroup : ch, &scale));
    RL_TRY(params(c, 2, per_group ? ngroup : ch, &bias));
    rl_tensor *y = rl_wide_make(c, 0, type, t, x->rank, x->dim);
    rows r = rows_of(c, n * ch, inner, x, y);
    int64_t size = ngroup ? ch / ngroup : 0;
    double eps = (double)rl_attr_float(c->node, "epsilon", 1e-5f), *mean = rl_new(c->tmp, double, n * ch);
    r.count = r.group = size, r.step = 1;
    take_stats(c, &r, n * ngroup, t);
    for (int64_t i = 0; i < n * ch; i++) {
        int64_t p = per_group ? i % ch / size : i % ch;
        mean[i] = r.mean[i / size];
        r.mul[i] = scale[p] / sqrt(r.var[i / size] + eps), r.add[i] = bias[p];
    }
    r.mean = mean;
    apply(c, &r, n * ch, t);
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- over chosen axes ---- */

/* Axes in an order that ends with those marked, and the elements of these. */
static int64_t put_last(const rl_tensor *x, const bool *marked, int64_t *perm) {
    uint32_t n = 0;
    int64_t inner = 1;
    for (uint32_t last = 0; last < 2; last++)
        for (uint32_t i = 0; i < x->rank; i++)
            if (marked[i] == last) perm[n++] = i, inner *= last ? x->dim[i] : 1;
    return inner;
}

/* x as t with the marked axes last, and a tensor like it for the result. */
static int64_t gather(rl_call *c, rl_dtype t, const bool *marked, rl_tensor **from, rl_tensor **to) {
    int64_t perm[RL_RANK], inner = put_last(rl_call_in(c, 0), marked, perm);
    rl_tensor view = rl_view_transpose(rl_call_in(c, 0), perm);
    *from = rl_call_temp(c, t, view.rank, view.dim);
    *to = rl_call_temp(c, t, view.rank, view.dim);
    rl_convert(c->rt, *from, &view, true);
    return inner;
}

static void scatter(rl_call *c, const bool *marked, const rl_tensor *from) {
    const rl_tensor *x = rl_call_in(c, 0);
    int64_t perm[RL_RANK];
    put_last(x, marked, perm);
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim), view = rl_view_transpose(y, perm);
    rl_convert(c->rt, &view, from, true);
}

rl_status rl_ref_mean_variance(rl_call *c) {
    static const int64_t most[] = {0, 2, 3};
    const int64_t *axis;
    uint32_t n;
    bool marked[RL_RANK] = {false};
    rl_tensor *from, *to;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    rl_dtype t = rl_wide_float(x->dtype);
    RL_TRY(rl_call_ints(c, "axes", RL_NONE, &axis, &n));
    if (!rl_attr_find(c->node, "axes")) axis = most, n = RL_LEN(most);
    for (uint32_t i = 0, a; i < n; i++) {
        RL_TRY(rl_call_axis(c, axis[i], x->rank, &a));
        marked[a] = true;
    }
    int64_t inner = gather(c, t, marked, &from, &to), nrow = inner ? rl_numel(x) / inner : 0;
    rows r = rows_of(c, nrow, inner, from, to);
    r.count = r.group = 1;
    take_stats(c, &r, nrow, t);
    for (int64_t i = 0; i < nrow; i++) r.mul[i] = 1 / (sqrt(r.var[i]) + 1e-9);
    apply(c, &r, nrow, t);
    scatter(c, marked, to);
    return RL_OK;
}

static double norm_of(const double *x, int64_t n, int64_t p) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum += p == 1 ? fabs(x[j]) : x[j] * x[j];
    return p == 1 ? sum : sqrt(sum);
}

rl_status rl_ref_lp_normalization(rl_call *c) {
    uint32_t axis;
    bool marked[RL_RANK] = {false};
    rl_tensor *from, *to;
    RL_TRY(rl_call_attr_axis(c, "axis", -1, &axis));
    int64_t p = rl_attr_int(c->node, "p", 2);
    if (p != 1 && p != 2) return rl_call_fail(c, RL_EMODEL, "p is %lld, wants 1 or 2", (long long)p);
    marked[axis] = true;
    int64_t inner = gather(c, RL_F64, marked, &from, &to), n = rl_numel(from);
    for (int64_t i = 0; i < n; i += inner) {
        const double *x = (const double *)rl_data(from) + i;
        double norm = norm_of(x, inner, p), *y = (double *)rl_data(to) + i;
        for (int64_t j = 0; j < inner; j++) y[j] = norm == 0 ? 0 : x[j] / norm;
    }
    scatter(c, marked, to);
    return RL_OK;
}

/* ---- LRN ---- */

typedef struct { const double *x; double *y; int64_t ch, inner, before, after; double scale, beta, bias; } lrn;

/* Planes from .. to-1. */
static void lrn_planes(void *arg, int64_t from, int64_t to) {
    const lrn *l = arg;
    for (int64_t i = from; i < to; i++) {
        int64_t at = i % l->ch, first = RL_MAX(at - l->before, 0), last = RL_MIN(at + l->after, l->ch - 1);
        const double *x = l->x + i * l->inner, *low = l->x + (i - at + first) * l->inner;
        double *y = l->y + i * l->inner;
        for (int64_t j = 0; j < l->inner; j++) {
            double sum = 0;
            for (int64_t k = 0; k <= last - first; k++) sum += low[k * l->inner + j] * low[k * l->inner + j];
            y[j] = x[j] / pow(l->bias + l->scale * sum, l->beta);
        }
    }
}

rl_status rl_ref_lrn(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_as(c, 0, RL_F64);
    int64_t size = rl_attr_int(c->node, "size", 0), inner = 1;
    if (x->rank < 2 || size < 1) return rl_call_fail(c, RL_EMODEL, "rank %u, size %lld", x->rank, (long long)size);
    for (uint32_t i = 2; i < x->rank; i++) inner *= x->dim[i];
    rl_tensor *y = rl_wide_make(c, 0, rl_call_in(c, 0)->dtype, RL_F64, x->rank, x->dim);
    size = RL_MIN(size, INT32_MAX);
    lrn l = {.x = rl_data(x), .y = rl_data(y), .ch = x->dim[1], .inner = inner, .before = (size - 1) / 2, .after = size / 2,
             .scale = (double)rl_attr_float(c->node, "alpha", 1e-4f) / (double)size, .beta = (double)rl_attr_float(c->node, "beta", 0.75f),
             .bias = (double)rl_attr_float(c->node, "bias", 1)};
    rl_parallel(c->rt, x->dim[0] * x->dim[1], grain_of(inner * size), lrn_planes, &l);
    rl_wide_done(c, 0, y);
    return RL_OK;
}
