/* Normalizations over the innermost dims: LayerNormalization, RMSNormalization, and onnxruntime's fused forms of them with a sum
 * or tables before.  Float types shorter than f32 are computed in f32 and rounded once. */
#include "ref_layernorm.h"

#include <math.h>
#include <string.h>

#include "lines.h"

/* scale, bias: one row for all (scale_rows 1), or one per row of x. bias NULL: none. */
typedef struct {
    bool rms, simplified, bare; /* simplified: output 1 is the inverse, there is no mean; bare: neither is an output */
    int64_t n, scale_rows, bias_rows;
    double epsilon;
    const void *x, *scale, *bias;
    void *y, *mean, *inverse; /* the last two NULL where not wanted */
} norm;

#define NORM(S, T)                                                                                                   \
    static void norm_##S(void *arg, int64_t from, int64_t to) {                                                      \
        const norm *o = arg;                                                                                         \
        int64_t n = o->n;                                                                                            \
        for (int64_t r = from; r < to; r++) {                                                                        \
            const T *x = (const T *)o->x + r * n, *w = (const T *)o->scale + r % o->scale_rows * n;                  \
            const T *b = o->bias ? (const T *)o->bias + r % o->bias_rows * n : NULL;                                 \
            T *y = (T *)o->y + r * n, mean = o->rms ? 0 : (T)(rl_row_sum_##S(x, n) / (double)n);                     \
            T inverse = (T)(1 / sqrt(rl_row_square_##S(x, n, mean) / (double)n + o->epsilon));                       \
            rl_row_scale_##S(y, x, n, inverse, mean);                                                                \
            for (int64_t i = 0; i < n; i++) y[i] *= w[i];                                                            \
            for (int64_t i = 0; b && i < n; i++) y[i] += b[i];                                                       \
            if (o->mean) ((T *)o->mean)[r] = mean;                                                                   \
            if (o->inverse) ((T *)o->inverse)[r] = inverse;                                                          \
        }                                                                                                            \
    }
NORM(f32, float)
NORM(f64, double)

/* A scale or bias that broadcasts to x, as dense rows: one, or as many as x has where it varies outside the normalized dims. */
static rl_status spread(rl_call *c, const rl_tensor *t, const rl_tensor *x, uint32_t axis, rl_dtype type, const void **p, int64_t *rows) {
    rl_tensor view;
    *rows = 1;
    *p = NULL;
    if (!t) return RL_OK;
    if (!rl_view_expand(t, x->rank, x->dim, &view)) return rl_call_fail(c, RL_EMODEL, "a scale or bias does not broadcast to the input");
    for (uint32_t i = 0; i < axis; i++) {
        if (view.stride[i] != 0) continue;
        if (i == 0 || view.dim[i - 1] == 1) view.dim[i] = 1; /* alike in all leading rows */
    }
    for (uint32_t i = 0; i < axis; i++) *rows *= view.dim[i];
    *p = rl_data(rl_dense_as(c, &view, type));
    return RL_OK;
}

/* x (dense, of the type to compute in) to output 0; mean and inverse, of type stats, where they are wanted. */
static rl_status normalize(rl_call *c, const rl_tensor *x, rl_dtype made, uint32_t axis, norm *o,
                           const rl_tensor *scale, const rl_tensor *bias, rl_dtype stats) {
    const uint32_t at[2] = {o->simplified || o->bare ? RL_NONE : 1, o->bare ? RL_NONE : o->simplified ? 1 : 2};
    rl_dtype wide = x->dtype;
    int64_t dim[RL_RANK];
    memcpy(dim, x->dim, sizeof dim);
    int64_t rows = 1;
    o->n = 1;
    for (uint32_t i = 0; i < axis; i++) rows *= x->dim[i];
    for (uint32_t i = axis; i < x->rank; i++) o->n *= x->dim[i], dim[i] = 1;
    RL_TRY(spread(c, scale, x, axis, wide, &o->scale, &o->scale_rows));
    RL_TRY(spread(c, bias, x, axis, wide, &o->bias, &o->bias_rows));
    rl_tensor *y = rl_wide_make(c, 0, made, wide, x->rank, x->dim), *side[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 2; i++)
        if (rl_call_wants(c, at[i])) side[i] = rl_wide_make(c, at[i], stats, wide, x->rank, dim);
    o->x = rl_data(x), o->y = rl_data(y);
    o->mean = side[0] ? rl_data(side[0]) : NULL;
    o->inverse = side[1] ? rl_data(side[1]) : NULL;
    rl_parallel(c->rt, rows, rl_row_grain(o->n), wide == RL_F64 ? norm_f64 : norm_f32, o); /* of no elements: NaN */
    rl_wide_done(c, 0, y);
    for (uint32_t i = 0; i < 2; i++)
        if (side[i]) rl_wide_done(c, at[i], side[i]);
    return RL_OK;
}

/* arg: RL_LN_LAYER, RL_LN_RMS (RMSNormalization, SimplifiedLayerNormalization). */
rl_status rl_ref_layer_norm(rl_call *c) {
    uint32_t axis;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_attr_axis(c, "axis", -1, &axis));
    const rl_tensor *x = rl_call_in(c, 0), *scale = rl_call_in(c, 1);
    bool rms = c->arg == RL_LN_RMS, has_stats = rl_call_wants(c, 1) || rl_call_wants(c, 2);
    rl_dtype wide = rl_wide_float(x->dtype), stats = (rl_dtype)rl_attr_int(c->node, "stash_type", RL_F32);
    if (has_stats && !rl_is_float(stats)) return rl_call_fail(c, RL_EMODEL, "a stash_type that is no float");
    norm o = {.rms = rms, .simplified = rms, .epsilon = rl_attr_float(c->node, "epsilon", 1e-5f)};
    rl_dtype made = rms ? scale->dtype : x->dtype;
    return normalize(c, rl_dense_as(c, x, wide), made, axis, &o, scale, rms ? NULL : rl_call_in(c, 2), stats);
}

/* com.microsoft's Skip[Simplified]LayerNormalization: input + skip + bias, normalized; the sum is output 3. */
rl_status rl_ref_skip_norm(rl_call *c) {
    bool rms = c->arg == RL_LN_RMS;
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *x = rl_call_in(c, 0), *beta = rms ? NULL : rl_call_in(c, 3), *bias = rl_call_in(c, rms ? 3 : 4);
    if (x->rank == 0) return rl_call_fail(c, RL_EMODEL, "the input is a scalar");
    rl_dtype wide = rl_wide_float(x->dtype);
    rl_tensor *sum = rl_wide_make(c, 3, x->dtype, wide, x->rank, x->dim);
    RL_TRY(rl_wide_sum(c, wide, sum, x, rl_call_in(c, 1)));
    if (bias) RL_TRY(rl_wide_sum(c, wide, sum, sum, bias));
    if (rl_call_wants(c, 3)) rl_wide_done(c, 3, sum);
    norm o = {.rms = rms, .epsilon = rl_attr_float(c->node, "epsilon", 1e-12f)};
    return normalize(c, sum, x->dtype, x->rank - 1, &o, rl_call_in(c, 2), beta, RL_F32);
}

/* ---- EmbedLayerNormalization ---- */

/* Adds to each row of sum, [batch, length, n], one of the table in input `from`: the one that input `ids` names, or (RL_NONE) the one of its place. */
static rl_status add_rows(rl_call *c, uint32_t ids, uint32_t from, const rl_tensor *sum) {
    const rl_tensor *id = ids == RL_NONE ? NULL : rl_call_as(c, ids, RL_I64), *table = rl_call_as(c, from, RL_F32);
    int64_t n = sum->dim[2], length = sum->dim[1], rows = sum->dim[0] * length, count = id ? rl_numel(id) : length;
    if (!table) return RL_OK;
    if (table->rank != 2 || table->dim[1] != n || (count != rows && count != length)) return rl_call_fail(c, RL_EMODEL, "ids or a table that do not fit");
    for (int64_t r = 0; r < rows; r++) {
        int64_t i = id ? ((const int64_t *)rl_data(id))[r % count] : r % length;
        if (i < 0 || i >= table->dim[0]) return rl_call_fail(c, RL_EMODEL, "row %lld of %lld", (long long)i, (long long)table->dim[0]);
        const float *row = (const float *)rl_data(table) + i * n;
        float *y = (float *)rl_data(sum) + r * n;
        for (int64_t k = 0; k < n; k++) y[k] += row[k];
    }
    return RL_OK;
}

/* Output 1: how many tokens of each batch are no padding; without a mask 0. */
static void count_tokens(rl_call *c, int64_t batch, int64_t length) {
    const rl_tensor *mask = rl_call_as(c, 7, RL_I64);
    int32_t *y = rl_data(rl_call_make(c, 1, RL_I32, 1, &batch));
    for (int64_t b = 0; b < batch; b++) {
        y[b] = 0;
        for (int64_t i = 0; mask && i < length; i++) y[b] += ((const int64_t *)rl_data(mask))[b * length + i] == 1;
    }
}

/* onnxruntime's: rows of tables for words, places and segments are added and normalized. */
rl_status rl_ref_embed_norm(rl_call *c) {
    for (uint32_t i = 0; i < 7; i++)
        if (i != 1 && i != 4 && !rl_call_in(c, i)) return rl_call_fail(c, RL_EMODEL, "input %u is missing", i);
    const rl_tensor *ids = rl_call_in(c, 0), *words = rl_call_in(c, 2), *mask = rl_call_in(c, 7);
    if (ids->rank != 2 || words->rank != 2 || (mask && rl_numel(mask) != rl_numel(ids))) return rl_call_fail(c, RL_EMODEL, "ids, words or a mask that do not fit");
    int64_t dim[3] = {ids->dim[0], ids->dim[1], words->dim[1]};
    rl_tensor *sum = rl_wide_make(c, 2, words->dtype, RL_F32, 3, dim);
    rl_fill(c->rt, sum, &(float){0});
    RL_TRY(add_rows(c, 0, 2, sum));
    RL_TRY(add_rows(c, rl_call_in(c, 8) ? 8 : RL_NONE, 3, sum));
    if (rl_call_in(c, 1)) RL_TRY(add_rows(c, 1, 4, sum));
    if (rl_call_wants(c, 2)) rl_wide_done(c, 2, sum);
    if (rl_call_wants(c, 1)) count_tokens(c, dim[0], dim[1]);
    norm o = {.bare = true, .epsilon = rl_attr_float(c->node, "epsilon", 1e-12f)};
    return normalize(c, sum, words->dtype, 2, &o, rl_call_in(c, 5), rl_call_in(c, 6), RL_F32);
}
