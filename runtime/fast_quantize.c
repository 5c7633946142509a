/* QuantizeLinear and DequantizeLinear of bytes, by one scale or one for each index of an axis; DynamicQuantizeLinear; a Cast of i32 to f32.  See
 * fast.h. */
#include <math.h>
#include <string.h>

#include "fast.h"
#include "kernels_fast.h"
#include "quantize.h"

enum { BLOCK = 4096, GRAIN = 4 }; /* elements of a row at a time; such rows for a thread */

typedef struct {
    const rl_rows *rows;
    const char *from;
    char *to;
    size_t from_size, to_size; /* bytes of an element */
    const float *scale, *zero;
    int64_t n, nscale;         /* elements of a row; rows until the scales are those of the first again */
    bool each;                 /* every element of a row has a scale of its own */
    rl_row_int ints;
    bool quantizes;
    uint32_t rank;             /* of rows that do not lie one behind the other: outermost first; 0: they do */
    int64_t dim[RL_RANK], stride[RL_RANK];
} walk;

/* Elements before row r of the input. */
static int64_t row_at(const walk *w, int64_t r) {
    int64_t at = w->rank ? 0 : r * w->n;
    for (uint32_t i = w->rank; i-- > 0; r /= w->dim[i]) at += r % w->dim[i] * w->stride[i];
    return at;
}

static void run_rows(void *arg, int64_t from, int64_t to) {
    const walk *w = arg;
    int64_t cut = (w->n + BLOCK - 1) / BLOCK;
    for (int64_t k = from; k < to; k++) {
        int64_t row = k / cut, first = k % cut * BLOCK, s = w->each ? first : row % w->nscale, n = RL_MIN(BLOCK, w->n - first);
        void *y = w->to + (size_t)(row * w->n + first) * w->to_size;
        const void *x = w->from + (size_t)(row_at(w, row) + first) * w->from_size;
        if (w->quantizes) w->rows->quantize(y, x, w->scale + s, w->zero + s, w->each, n, w->ints == RL_ROW_I8);
        else w->rows->dequantize(y, x, w->scale + s, w->zero + s, w->each, n, w->ints);
    }
}

/* Rows of x, all of one scale, with gaps between them; false: its elements lie apart. */
static bool find_rows(walk *w, const rl_tensor *x, const int64_t *perm) {
    uint32_t last = x->rank;
    w->n = 1;
    while (last > 0 && (x->dim[perm[last - 1]] == 1 || x->stride[perm[last - 1]] == w->n)) w->n *= x->dim[perm[--last]];
    for (w->rank = last; last-- > 0;) w->dim[last] = x->dim[perm[last]], w->stride[last] = x->stride[perm[last]];
    return w->n > 1;
}

/* The zero points, none: zeros, as floats. */
static const float *zeros_of(rl_call *c, const rl_tensor *z, int64_t n) {
    float *to = rl_new(c->tmp, float, n);
    for (int64_t i = 0; z && i < n; i++) to[i] = (float)rl_byte_at(z, i);
    return to;
}

/* Where the call is of this kind; the rest of w is set. */
static bool is_plain(rl_call *c, walk *w, rl_dtype ints, int64_t *perm) {
    const rl_tensor *x = rl_call_in(c, 0), *s = rl_call_in(c, 1), *z = rl_call_in(c, 2);
    int64_t n = rl_numel(s), along = rl_attr_int(c->node, "axis", 1);
    bool one = n == 1;
    if ((!rl_is_byte(ints) && (ints != RL_I32 || z || w->quantizes)) || s->dtype != RL_F32 || s->rank > 1 || !rl_is_dense(s) || (z && (z->dtype != ints || rl_numel(z) != n || !rl_is_dense(z)))) return false;
    if (along < 0) along += x->rank;
    bool dense = rl_memory_order(x, perm);
    if (rl_attr_int(c->node, "block_size", 0) || !rl_numel(x) || (!dense && !(one && rl_stride_order(x, perm) && find_rows(w, x, perm)))) return false;
    if (!one && (along < 0 || along >= (int64_t)x->rank || x->dim[along] != n)) return false;
    w->rows = rl_rows_best();
    w->from = rl_data(x);
    w->scale = rl_data(s), w->zero = zeros_of(c, z, n);
    w->ints = ints == RL_I8 ? RL_ROW_I8 : ints == RL_U8 ? RL_ROW_U8 : RL_ROW_I32;
    w->nscale = n;
    if (dense) w->n = one ? rl_numel(x) : 1;
    for (uint32_t i = x->rank; !one && i-- > 0 && perm[i] != along;) w->n *= x->dim[perm[i]];
    w->each = !one && w->n == 1;
    if (w->each) w->n = n, w->nscale = 1;
    return true;
}

static rl_status run(rl_call *c, walk *w, rl_dtype t, const int64_t *perm) {
    const rl_tensor *x = rl_call_in(c, 0);
    rl_tensor *y = rl_call_make_in(c, 0, t, x->rank, x->dim, perm);
    w->to = rl_data(y);
    w->from_size = rl_elem_bits(x->dtype) / 8, w->to_size = rl_elem_bits(t) / 8;
    int64_t cut = (w->n + BLOCK - 1) / BLOCK;
    rl_parallel(c->rt, rl_numel(x) / w->n * cut, RL_MAX(1, GRAIN * BLOCK / RL_MIN(w->n, BLOCK)), run_rows, w);
    c->step->ran = "rows";
    return RL_OK;
}

rl_status rl_fast_quantize(rl_call *c) {
    walk w = {.quantizes = true};
    int64_t perm[RL_RANK], precision = rl_attr_int(c->node, "precision", 0), given = rl_attr_int(c->node, "output_dtype", 0);
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *z = rl_call_in(c, 2);
    rl_dtype t = z ? z->dtype : given ? (rl_dtype)given : RL_U8;
    if (rl_call_in(c, 0)->dtype != RL_F32 || (precision && precision != RL_F32) || !is_plain(c, &w, t, perm)) return rl_ref_quantize_linear(c);
    return run(c, &w, t, perm);
}

rl_status rl_fast_dequantize(rl_call *c) {
    walk w = {0};
    int64_t perm[RL_RANK], given = rl_attr_int(c->node, "output_dtype", 0);
    RL_TRY(rl_call_need(c, 2));
    if ((given && given != RL_F32) || !is_plain(c, &w, rl_call_in(c, 0)->dtype, perm)) return rl_ref_dequantize_linear(c);
    return run(c, &w, RL_F32, perm);
}

/* ---- DynamicQuantizeLinear ---- */

typedef struct {
    const rl_rows *rows;
    const float *x;
    int64_t n;
    float *least, *most; /* of each block */
} search;

static void find_range(void *arg, int64_t from, int64_t to) {
    const search *s = arg;
    for (int64_t i = from; i < to; i++) {
        s->rows->range(s->x + i * BLOCK, RL_MIN(BLOCK, s->n - i * BLOCK), &s->least[i], &s->most[i]);
    }
}

rl_status rl_fast_dynamic_quantize(rl_call *c) {
    int64_t perm[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    if (!rl_numel(x) || !rl_memory_order(x, perm)) return rl_ref_dynamic_quantize(c);
    int64_t count = (rl_numel(x) + BLOCK - 1) / BLOCK;
    search s = {rl_rows_best(), rl_data(x), rl_numel(x), rl_new(c->tmp, float, count), rl_new(c->tmp, float, count)};
    rl_parallel(c->rt, count, GRAIN, find_range, &s);
    float least = 0, most = 0, scale, zero;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(s.least[i]) || isnan(s.most[i])) return rl_ref_dynamic_quantize(c); /* which leaves out what is no number */
        least = fminf(least, s.least[i]), most = fmaxf(most, s.most[i]);
    }
    uint8_t point = rl_dynamic_scale(least, most, &scale);
    zero = point;
    memcpy(rl_data(rl_call_make(c, 1, RL_F32, 0, NULL)), &scale, sizeof scale);
    memcpy(rl_data(rl_call_make(c, 2, RL_U8, 0, NULL)), &point, sizeof point);
    walk w = {.rows = s.rows, .from = rl_data(x), .scale = &scale, .zero = &zero, .n = rl_numel(x), .nscale = 1, .quantizes = true};
    return run(c, &w, RL_U8, perm);
}

/* ---- Cast ---- */

static void cast_rows(void *arg, int64_t from, int64_t to) {
    const walk *w = arg;
    const int32_t *x = (const void *)w->from;
    float *y = (void *)w->to;
    for (int64_t i = from * BLOCK; i < RL_MIN(to * BLOCK, w->n); i++) y[i] = (float)x[i];
}

rl_status rl_fast_cast(rl_call *c) {
    int64_t perm[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    if (rl_attr_int(c->node, "to", 0) != RL_F32 || !rl_numel(x) || !rl_memory_order(x, perm)) return rl_ref_cast(c);
    walk w = {.from = rl_data(x), .n = rl_numel(x)};
    w.to = rl_data(rl_call_make_over_in(c, 1, RL_F32, x->rank, x->dim, perm));
    rl_parallel(c->rt, (w.n + BLOCK - 1) / BLOCK, GRAIN, cast_rows, &w);
    c->step->ran = "rows";
    return RL_OK;
}
