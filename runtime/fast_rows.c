/* Ops along a row of floats: Softmax, Hardmax, norms, reductions.  See fast.h. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "fast.h"
#include "kernels_fast.h"
#include "ref_layernorm.h"
#include "scatter.h"

enum { GRAIN = 16384, BLOCK = 2048, STRIP = 512, SOME = 32 }; /* elements for a thread; of rows at once */
enum { COLUMN_FLOATS = 1 << 14 /* of a column, on a thread's stack */ };

static bool is_f32(const rl_tensor *t) {
    return t && t->kind == RL_TENSOR && t->dtype == RL_F32 && rl_numel(t) > 0;
}

/* ---- Softmax, Hardmax, LpNormalization, LayerNormalization ---- */

typedef void rows_fn(float *y, const float *x, int64_t rows, int64_t n); /* y may be x */

typedef struct {
    const rl_rows *rows;
    const float *x, *scale, *shift;
    float *y;
    int64_t n, channels; /* of an InstanceNormalization */
    float eps;
    const uint32_t *at; /* which row of y each is; NULL: they are in order */
    rows_fn *fn;
} line;

static void along_lines(void *arg, int64_t from, int64_t to) {
    const line *l = arg;
    int64_t some = RL_MAX(1, BLOCK / l->n);
    for (int64_t i = from; i < to; i += some) l->fn(l->y + i * l->n, l->x + i * l->n, RL_MIN(some, to - i), l->n);
}

static void norm_lines(void *arg, int64_t from, int64_t to) {
    const line *l = arg;
    for (int64_t i = from; i < to; i++)
        l->rows->layer_norm(l->y + (l->at ? l->at[i] : i) * l->n, l->x + i * l->n, l->scale, l->shift, 1, l->n, l->eps);
}

static void instance_lines(void *arg, int64_t from, int64_t to) {
    const line *l = arg;
    for (int64_t i = from; i < to; i++) {
        int64_t k = i % l->channels;
        l->rows->layer_norm(l->y + i * l->n, l->x + i * l->n, l->scale + k, l->shift + k, 0, l->n, l->eps);
    }
}

/* Rows whose elements lie `inner` apart: some columns of [outer, n, inner] at a time are turned into rows and back. */
typedef struct { rows_fn *fn; const float *x; float *y; int64_t n, inner, some, blocks; } columns;

static void along_columns(void *arg, int64_t from, int64_t to) {
    const columns *l = arg;
    float row[COLUMN_FLOATS];
    for (int64_t k = from; k < to; k++) {
        int64_t first = k % l->blocks * l->some, w = RL_MIN(l->some, l->inner - first), at = k / l->blocks * l->n * l->inner + first;
        for (int64_t i = 0; i < l->n; i++)
            for (int64_t j = 0; j < w; j++) row[j * l->n + i] = l->x[at + i * l->inner + j];
        l->fn(row, row, w, l->n);
        for (int64_t i = 0; i < l->n; i++)
            for (int64_t j = 0; j < w; j++) l->y[at + i * l->inner + j] = row[j * l->n + i];
    }
}

/* False: for the reference kernel. */
static bool run_along(rl_call *c, uint32_t axis, rows_fn *fn) {
    const rl_tensor *x = rl_call_in(c, 0);
    int64_t perm[RL_RANK], inner = 1;
    if (!is_f32(x) || !rl_memory_order(x, perm)) return false;
    int64_t n = x->dim[axis], rows = rl_numel(x) / n;
    for (uint32_t i = x->rank; perm[i - 1] != axis; i--) inner *= x->dim[perm[i - 1]];
    if (n > INT32_MAX || (inner > 1 && n > COLUMN_FLOATS)) return false;
    const float *from = rl_data(x);
    float *y = rl_data(rl_call_make_over_in(c, 1, RL_F32, x->rank, x->dim, rl_is_dense(x) ? NULL : perm));
    if (inner == 1) {
        line l = {.fn = fn, .x = from, .y = y, .n = n};
        rl_parallel(c->rt, rows, RL_MAX(1, GRAIN / n / 4), along_lines, &l);
    } else {
        columns l = {.fn = fn, .x = from, .y = y, .n = n, .inner = inner, .some = RL_MIN(RL_MAX(1, BLOCK / n), inner)};
        l.blocks = (inner + l.some - 1) / l.some;
        rl_parallel(c->rt, rows / inner * l.blocks, RL_MAX(1, GRAIN / n / l.some / 4), along_columns, &l);
    }
    c->step->ran = inner == 1 ? "rows" : "columns";
    return true;
}

/* The first of the largest becomes 1; of what is no number, only a first one counts, and then as the largest. */
static void hardmax(float *y, const float *x, int64_t rows, int64_t n) {
    const rl_rows *r = rl_rows_best();
    for (int64_t i = 0; i < rows; i++, x += n, y += n) {
        float most = r->max(x, n);
        int64_t at = most == most ? r->find(x, n, most, false) : 0;
        for (int64_t k = 1; most != most && k < n; k++) at = x[k] > x[at] ? k : at;
        memset(y, 0, (size_t)n * sizeof *y);
        y[at] = 1;
    }
}

rl_status rl_fast_softmax(rl_call *c) {
    uint32_t axis;
    bool old = c->node->since < 13;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    if (!is_f32(x) || x->rank == 0 || rl_attr_int(c->node, "axis", old ? 1 : -1) == x->rank) return rl_ref_softmax(c);
    RL_TRY(rl_call_attr_axis(c, "axis", old ? 1 : -1, &axis));
    rows_fn *fn = c->arg == RL_HARDMAX ? hardmax : c->arg == RL_LOG_SOFTMAX ? rl_rows_best()->log_softmax : rl_rows_best()->softmax;
    return !(old && axis + 1 != x->rank) && run_along(c, axis, fn) ? RL_OK : rl_ref_softmax(c);
}

rl_status rl_fast_layer_norm(rl_call *c) {
    uint32_t axis;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_attr_axis(c, "axis", -1, &axis));
    const rl_tensor *x = rl_call_in(c, 0), *scale = rl_call_in(c, 1), *shift = rl_call_in(c, 2);
    line l = {.rows = rl_rows_best(), .n = 1, .eps = rl_attr_float(c->node, "epsilon", 1e-5f)};
    for (uint32_t i = axis; i < x->rank; i++) l.n *= x->dim[i];
    bool fits = is_f32(x) && is_f32(scale) && rl_numel(scale) == l.n && rl_is_dense(scale) && !rl_call_wants(c, 1) && !rl_call_wants(c, 2);
    if (!fits || (shift && (!is_f32(shift) || rl_numel(shift) != l.n || !rl_is_dense(shift)))) {
        c->arg = RL_LN_LAYER;
        RL_TRY(rl_ref_layer_norm(c));
        return c->step->scatter ? rl_scatter_move(c) : RL_OK;
    }
    bool dense = rl_is_dense(x);
    int64_t rows = rl_numel(x) / l.n;
    l.x = rl_data(rl_call_dense(c, 0));
    if (c->step->scatter) {
        l.at = c->step->scatter->at;
        RL_TRY(rl_scatter_make(c, rows, l.n, &l.y));
    } else {
        l.y = rl_data(dense ? rl_call_make_over(c, 1, RL_F32, x->rank, x->dim) : rl_call_make(c, 0, RL_F32, x->rank, x->dim));
    }
    l.scale = rl_data(scale);
    l.shift = shift ? rl_data(shift) : NULL;
    rl_parallel(c->rt, rows, RL_MAX(1, GRAIN / l.n), norm_lines, &l);
    c->step->ran = "rows";
    return RL_OK;
}

/* Another function, by which plan.c and scatter.c know that the rows do not lie as they come. */
rl_status rl_fast_scattered_norm(rl_call *c) {
    return rl_fast_layer_norm(c);
}

rl_status rl_fast_instance_norm(rl_call *c) {
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *x = rl_call_in(c, 0), *p[2] = {rl_call_in(c, 1), rl_call_in(c, 2)};
    bool fits = is_f32(x) && x->rank >= 2;
    for (uint32_t i = 0; fits && i < 2; i++) fits = is_f32(p[i]) && p[i]->rank == 1 && p[i]->dim[0] == x->dim[1] && rl_is_dense(p[i]);
    if (!fits) return rl_ref_group_normalization(c);
    line l = {.rows = rl_rows_best(), .scale = rl_data(p[0]), .shift = rl_data(p[1]), .channels = x->dim[1],
              .n = rl_numel(x) / x->dim[0] / x->dim[1], .eps = rl_attr_float(c->node, "epsilon", 1e-5f)};
    bool dense = rl_is_dense(x);
    l.x = rl_data(rl_call_dense(c, 0));
    l.y = rl_data(dense ? rl_call_make_over(c, 1, RL_F32, x->rank, x->dim) : rl_call_make(c, 0, RL_F32, x->rank, x->dim));
    rl_parallel(c->rt, x->dim[0] * l.channels, RL_MAX(1, GRAIN / l.n), instance_lines, &l);
    c->step->ran = "rows";
    return RL_OK;
}

rl_status rl_fast_whole_norm(rl_call *c) {
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *x = rl_call_in(c, 0), *p[2] = {rl_call_in(c, 1), rl_call_in(c, 2)};
    int64_t perm[RL_RANK];
    bool f32 = x && x->kind == RL_TENSOR && x->dtype == RL_F32 && x->rank > 0;
    bool fits = f32 && is_f32(p[0]) && is_f32(p[1]) && rl_numel(p[0]) == 1 && rl_numel(p[1]) == 1;
    if (fits && !rl_numel(x)) {
        rl_call_make(c, 0, RL_F32, x->rank, x->dim);
        return RL_OK;
    }
    if (!fits) return rl_call_fail(c, RL_EMODEL, "it is not as the graph says");
    bool ordered = rl_memory_order(x, perm) && (x->dim[0] == 1 || perm[0] == 0), dense = rl_is_dense(x);
    line l = {.rows = rl_rows_best(), .scale = rl_data(p[0]), .shift = rl_data(p[1]), .channels = 1, .n = rl_numel(x) / x->dim[0],
              .eps = rl_attr_float(c->node, "epsilon", 1e-5f)};
    l.x = rl_data(ordered ? x : rl_call_dense(c, 0));
    l.y = rl_data(ordered || dense ? rl_call_make_over_in(c, 1, RL_F32, x->rank, x->dim, dense ? NULL : perm) : rl_call_make(c, 0, RL_F32, x->rank, x->dim));
    rl_parallel(c->rt, x->dim[0], RL_MAX(1, GRAIN / l.n), instance_lines, &l);
    c->step->ran = "rows";
    return RL_OK;
}

/* ---- reductions ---- */

/* x in memory as [outer, gone, kept]; or, with `view`, its innermost dims as rows of `gone`, which lie anywhere. */
typedef struct {
    const rl_rows *rows;
    const float *x;
    float *y;
    int64_t outer, gone, kept;
    int op;
    const rl_tensor *view;
    uint32_t nouter; /* dims of the view that are no part of its rows */
} reduction;

static const float *row_at(const reduction *r, int64_t i) {
    int64_t at = 0;
    if (!r->view) return r->x + i * r->gone * r->kept;
    for (uint32_t d = r->nouter; d-- > 0; i /= r->view->dim[d]) at += i % r->view->dim[d] * r->view->stride[d];
    return r->x + at;
}

/* What rows are joined by: what is summed may be something else of each number. */
static rl_row_reduce reduces_by(const reduction *r) {
    return r->op == RL_RD_MAX ? RL_REDUCE_MAX : r->op == RL_RD_MIN ? RL_REDUCE_MIN : RL_REDUCE_SUM;
}

/* Is the sum neither too large nor too small for floats, whose squares it is of? */
static bool holds_squares(float sum) { return sum > 1e-30f && sum < FLT_MAX; }

/* The length of a row; in double where squares are too large or too small for a float. */
static float length(const rl_rows *rows, const float *x, int64_t n) {
    float squares = rows->squares(x, n, 0);
    double sum = 0;
    if (holds_squares(squares)) return sqrtf(squares);
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return (float)sqrt(sum);
}

static float sum_absolutes(const rl_rows *rows, const float *x, int64_t n) {
    float part[STRIP];
    double sum = 0;
    for (int64_t k = 0; k < n; k += STRIP) {
        int64_t some = RL_MIN(n - k, (int64_t)STRIP);
        rows->op[RL_ROW_ABS](part, x + k, NULL, 0, some, 0, 0);
        sum += (double)rows->sum(part, some);
    }
    return (float)sum;
}

/* Of how much each element is more than a number. */
static double sum_powers(const rl_rows *rows, const float *x, int64_t n, const float *by) {
    float part[STRIP];
    double sum = 0;
    for (int64_t k = 0; k < n; k += STRIP) {
        int64_t some = RL_MIN(n - k, (int64_t)STRIP);
        rows->op[RL_ROW_SUB](part, x + k, by, 0, some, 0, 0);
        rows->op[RL_ROW_EXP](part, part, NULL, 0, some, 0, 0);
        sum += (double)rows->sum(part, some);
    }
    return sum;
}

/* From the largest on, unless that is infinite. */
static float log_sum_powers(const rl_rows *rows, const float *x, int64_t n) {
    float most = rows->max(x, n), by = isinf(most) ? 0 : most;
    return (float)(log(sum_powers(rows, x, n, &by)) + (double)by);
}

static float reduce_row(const reduction *r, const float *x) {
    switch (r->op) {
    case RL_RD_MAX: return r->rows->max(x, r->gone);
    case RL_RD_MIN: return r->rows->min(x, r->gone);
    case RL_RD_L1: return sum_absolutes(r->rows, x, r->gone);
    case RL_RD_L2: return length(r->rows, x, r->gone);
    case RL_RD_SUM_SQUARE: return r->rows->squares(x, r->gone, 0);
    case RL_RD_LOG_SUM: return logf(r->rows->sum(x, r->gone));
    case RL_RD_LOG_SUM_EXP: return log_sum_powers(r->rows, x, r->gone);
    default: return r->rows->sum(x, r->gone);
    }
}

/* Not of some rows, and then of what these have become. */
static bool takes_rows_alone(int op) {
    return op == RL_RD_L1 || op == RL_RD_L2 || op == RL_RD_SUM_SQUARE || op == RL_RD_LOG_SUM || op == RL_RD_LOG_SUM_EXP;
}

/* ---- columns: a strip of rows that become one ---- */

/* Are sums of something else of each number? */
static bool maps(int op) {
    return takes_rows_alone(op) && op != RL_RD_LOG_SUM;
}

/* by: what each number is taken less of, of powers. */
static void map_row(const reduction *r, float *y, const float *x, const float *by, int64_t n) {
    if (r->op == RL_RD_L1) r->rows->op[RL_ROW_ABS](y, x, NULL, 0, n, 0, 0);
    if (r->op == RL_RD_L2 || r->op == RL_RD_SUM_SQUARE) r->rows->op[RL_ROW_SQUARE](y, x, NULL, 0, n, 0, 0);
    if (r->op != RL_RD_LOG_SUM_EXP) return;
    r->rows->op[RL_ROW_SUB](y, x, by, 1, n, 0, 0);
    r->rows->op[RL_ROW_EXP](y, y, NULL, 0, n, 0, 0);
}

/* y = some rows of x, joined. */
static void join_rows(const reduction *r, float *y, const float *x, const float *by, int64_t rows, int64_t n) {
    float mapped[STRIP];
    if (!maps(r->op)) {
        memcpy(y, x, (size_t)n * sizeof *y);
        r->rows->reduce[reduces_by(r)].down(y, x + r->kept, r->kept, rows - 1, n);
        return;
    }
    map_row(r, y, x, by, n);
    for (int64_t k = 1; k < rows; k++) {
        map_row(r, mapped, x + k * r->kept, by, n);
        r->rows->op[RL_ROW_ADD](y, y, mapped, 1, n, 0, 0);
    }
}

/* As of a row. */
static void lengths(const reduction *r, const float *x, float *y, int64_t n) {
    double sum[STRIP];
    bool fits = true;
    for (int64_t i = 0; i < n; i++) fits = fits && holds_squares(y[i]);
    if (fits) {
        r->rows->op[RL_ROW_SQRT](y, y, NULL, 0, n, 0, 0);
        return;
    }
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t k = 0; k < r->gone; k++)
        for (int64_t i = 0; i < n; i++) sum[i] += (double)x[k * r->kept + i] * x[k * r->kept + i];
    for (int64_t i = 0; i < n; i++) y[i] = (float)sqrt(sum[i]);
}

/* SOME rows at a time: a sum of many small numbers keeps its digits. */
static void reduce_strip(const reduction *r, const float *x, float *y, int64_t n) {
    float part[STRIP], by[STRIP];
    if (r->op == RL_RD_LOG_SUM_EXP) {
        memcpy(by, x, (size_t)n * sizeof *by);
        r->rows->reduce[RL_REDUCE_MAX].down(by, x + r->kept, r->kept, r->gone - 1, n);
        for (int64_t i = 0; i < n; i++) by[i] = isinf(by[i]) ? 0 : by[i];
    }
    for (int64_t k = 0; k < r->gone; k += SOME) {
        join_rows(r, k ? part : y, x + k * r->kept, by, RL_MIN(r->gone - k, (int64_t)SOME), n);
        if (k) r->rows->reduce[reduces_by(r)].down(y, part, 0, 1, n);
    }
    if (r->op == RL_RD_L2) lengths(r, x, y, n);
    if (r->op == RL_RD_MEAN) r->rows->op[RL_ROW_LINEAR](y, y, NULL, 0, n, 1 / (float)r->gone, 0);
    for (int64_t i = 0; r->op == RL_RD_LOG_SUM && i < n; i++) y[i] = logf(y[i]);
    for (int64_t i = 0; r->op == RL_RD_LOG_SUM_EXP && i < n; i++) y[i] = logf(y[i]) + by[i];
}

static int64_t strips_of(const reduction *r) {
    return (r->kept + STRIP - 1) / STRIP;
}

static void reduce_strips(void *arg, int64_t from, int64_t to) {
    const reduction *r = arg;
    for (int64_t i = from; i < to; i++) {
        int64_t row = i / strips_of(r), k = i % strips_of(r) * STRIP;
        reduce_strip(r, r->x + row * r->gone * r->kept + k, r->y + row * r->kept + k, RL_MIN(r->kept - k, (int64_t)STRIP));
    }
}

static void reduce_lines(void *arg, int64_t from, int64_t to) {
    const reduction *r = arg;
    bool at_once = !r->view && !takes_rows_alone(r->op);
    if (at_once) r->rows->reduce[reduces_by(r)].rows(r->y + from, r->x + from * r->gone, to - from, r->gone);
    for (int64_t i = from; i < to && !at_once; i++) r->y[i] = reduce_row(r, row_at(r, i));
    if (r->op == RL_RD_MEAN) r->rows->op[RL_ROW_LINEAR](r->y + from, r->y + from, NULL, 0, to - from, 1 / (float)r->gone, 0);
}

/* The dims in memory order as [outer, gone, kept]; false where they are not of this form. */
static bool group_dims(const rl_tensor *x, const bool *is_reduced, const int64_t *perm, reduction *r) {
    int64_t *at = &r->outer;
    r->outer = r->gone = r->kept = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->dim[perm[i]] == 1) continue;
        if (is_reduced[perm[i]] && at == &r->outer) at = &r->gone;
        if (!is_reduced[perm[i]] && at == &r->gone) at = &r->kept;
        if (is_reduced[perm[i]] && at == &r->kept) return false;
        *at *= x->dim[perm[i]];
    }
    return true;
}

/* Reduced are the innermost dims alone, which lie side by side. */
static bool has_rows(const rl_tensor *x, const bool *is_reduced, reduction *r) {
    uint32_t d = x->rank;
    r->outer = r->gone = r->kept = 1;
    for (; d > 0 && is_reduced[d - 1]; r->gone *= x->dim[--d])
        if (x->dim[d - 1] != 1 && x->stride[d - 1] != r->gone) return false;
    r->nouter = d;
    r->view = x;
    for (; d > 0; r->outer *= x->dim[--d])
        if (is_reduced[d - 1]) return false;
    return true;
}

static void run_reduction(rl_call *c, reduction *r, const rl_tensor *x, float *y) {
    r->x = rl_data(x);
    r->y = y;
    if (r->kept == 1) rl_parallel(c->rt, r->outer, RL_MAX(1, GRAIN / r->gone), reduce_lines, r);
    else rl_parallel(c->rt, r->outer * strips_of(r), RL_MAX(1, GRAIN / (r->gone * RL_MIN(r->kept, (int64_t)STRIP))), reduce_strips, r);
}

/* x reduced along those of its dims that come first in memory and lie together: what is left to reduce lies further in. */
static rl_tensor reduce_outer(rl_call *c, const rl_tensor *x, const bool *is_reduced, const int64_t *perm, int op) {
    reduction r = {.rows = rl_rows_best(), .op = op};
    bool first[RL_RANK] = {false}, begun = false, ended = false;
    int64_t dim[RL_RANK], back[RL_RANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t d = (uint32_t)perm[i];
        begun = begun || (is_reduced[d] && x->dim[d] != 1);
        ended = ended || (begun && !is_reduced[d] && x->dim[d] != 1);
        first[d] = is_reduced[d] && !ended;
        dim[i] = first[d] ? 1 : x->dim[d];
        back[d] = i;
    }
    const rl_tensor *part = rl_call_temp(c, RL_F32, x->rank, dim);
    group_dims(x, first, perm, &r);
    run_reduction(c, &r, x, rl_data(part));
    return rl_view_transpose(part, back);
}

/* x as what a reduction walks over; perm: the order of its outputs in memory. */
static bool is_walkable(const rl_tensor *x, const bool *is_reduced, int64_t *perm, reduction *r) {
    if (rl_memory_order(x, perm) && group_dims(x, is_reduced, perm, r)) return true;
    for (uint32_t i = 0; i < x->rank; i++) perm[i] = i;
    return has_rows(x, is_reduced, r);
}

/* Output 0: the dims that are left, in the order perm. */
static rl_tensor *make_reduced(rl_call *c, rl_dtype t, const rl_tensor *x, const bool *is_reduced, bool keeps, const int64_t *perm) {
    int64_t dim[RL_RANK], order[RL_RANK], place[RL_RANK];
    uint32_t rank = 0, n = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        place[i] = rank;
        if (!is_reduced[i] || keeps) dim[rank++] = is_reduced[i] ? 1 : x->dim[i];
    }
    for (uint32_t i = 0; i < x->rank; i++)
        if (!is_reduced[perm[i]] || keeps) order[n++] = place[perm[i]];
    return rl_call_make_in(c, 0, t, rank, dim, order);
}

/* False: for the reference kernel. */
static bool reduce(rl_call *c, const rl_tensor *x, const bool *is_reduced, bool keeps, int op) {
    reduction r = {.rows = rl_rows_best(), .op = op};
    int64_t perm[RL_RANK];
    bool walkable = is_walkable(x, is_reduced, perm, &r);
    if (!walkable) {
        if (takes_rows_alone(op) || !rl_memory_order(x, perm)) return false;
        rl_tensor part = reduce_outer(c, x, is_reduced, perm, op);
        return reduce(c, &part, is_reduced, keeps, op);
    }
    run_reduction(c, &r, x, rl_data(make_reduced(c, RL_F32, x, is_reduced, keeps, perm)));
    c->step->ran = "rows";
    return true;
}

rl_status rl_fast_reduce(rl_call *c) {
    const int64_t *axes;
    uint32_t naxis, since = c->arg == RL_RD_SUM ? 13 : 18; /* when the axes became an input */
    bool is_reduced[RL_RANK] = {false};
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    RL_TRY(rl_call_ints(c, "axes", c->node->since >= since ? 1 : RL_NONE, &axes, &naxis));
    if (!is_f32(x) || (naxis == 0 && rl_attr_int(c->node, "noop_with_empty_axes", 0))) return rl_ref_reduce(c);
    for (uint32_t i = 0; i < x->rank && naxis == 0; i++) is_reduced[i] = true;
    for (uint32_t i = 0; i < naxis; i++) {
        uint32_t a;
        RL_TRY(rl_call_axis(c, axes[i], x->rank, &a));
        is_reduced[a] = true;
    }
    return reduce(c, x, is_reduced, rl_attr_int(c->node, "keepdims", 1) != 0, c->arg) ? RL_OK : rl_ref_reduce(c);
}

rl_status rl_fast_reduce_rows(rl_call *c) {
    return rl_fast_reduce(c);
}

/* ---- LpNormalization ---- */

static void normalize(float *y, const float *x, int64_t rows, int64_t n, float (*norm_of)(const rl_rows *, const float *, int64_t)) {
    const rl_rows *r = rl_rows_best();
    for (int64_t i = 0; i < rows; i++, x += n, y += n) {
        float norm = norm_of(r, x, n);
        if (norm == 0) memset(y, 0, (size_t)n * sizeof *y);
        else r->op[RL_ROW_DIV](y, x, &norm, 0, n, 0, 0);
    }
}

static void normalize_l1(float *y, const float *x, int64_t rows, int64_t n) { normalize(y, x, rows, n, sum_absolutes); }

static void normalize_l2(float *y, const float *x, int64_t rows, int64_t n) { normalize(y, x, rows, n, length); }

rl_status rl_fast_lp_normalization(rl_call *c) {
    uint32_t axis;
    int64_t p = rl_attr_int(c->node, "p", 2);
    RL_TRY(rl_call_attr_axis(c, "axis", -1, &axis));
    return (p == 1 || p == 2) && run_along(c, axis, p == 1 ? normalize_l1 : normalize_l2) ? RL_OK : rl_ref_lp_normalization(c);
}

/* ---- ArgMax, ArgMin ---- */

enum { SEARCHED = 1024 /* elements that stay in the nearest cache */ };

typedef struct {
    reduction of;
    int64_t *at;
    bool largest, last;
} search;

/* Of some elements at a time the extreme; then its place among those where it is. */
static int64_t search_row(const search *s, const float *x) {
    const rl_rows *rows = s->of.rows;
    float (*extreme)(const float *, int64_t) = s->largest ? rows->max : rows->min, best = extreme(x, RL_MIN(s->of.gone, (int64_t)SEARCHED));
    int64_t in = 0, n = s->of.gone;
    for (int64_t i = SEARCHED; i < n; i += SEARCHED) {
        float v = extreme(x + i, RL_MIN(n - i, (int64_t)SEARCHED));
        bool none = v != v, number = best == best, beyond = s->largest ? v > best : v < best, same = number ? v == best : none;
        if ((number && (none || beyond)) || (same && s->last)) best = v, in = i;
    }
    return in + rows->find(x + in, RL_MIN(n - in, (int64_t)SEARCHED), best, s->last);
}

static void search_lines(void *arg, int64_t from, int64_t to) {
    const search *s = arg;
    for (int64_t i = from; i < to; i++) s->at[i] = search_row(s, row_at(&s->of, i));
}

rl_status rl_fast_arg(rl_call *c) {
    uint32_t axis;
    int64_t perm[RL_RANK];
    bool is_reduced[RL_RANK] = {false};
    search s = {.of.rows = rl_rows_best(), .largest = c->arg == RL_ARG_MAX, .last = rl_attr_int(c->node, "select_last_index", 0) != 0};
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_in(c, 0);
    is_reduced[axis] = true;
    if (!is_f32(x) || !is_walkable(x, is_reduced, perm, &s.of) || s.of.kept != 1) return rl_ref_arg(c);
    s.of.x = rl_data(x);
    s.at = rl_data(make_reduced(c, RL_I64, x, is_reduced, rl_attr_int(c->node, "keepdims", 1) != 0, perm));
    rl_parallel(c->rt, s.of.outer, RL_MAX(1, GRAIN / s.of.gone), search_lines, &s);
    c->step->ran = "rows";
    return RL_OK;
}

rl_status rl_fast_global_pool(rl_call *c) {
    bool is_reduced[RL_RANK] = {false};
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    for (uint32_t i = 2; i < x->rank; i++) is_reduced[i] = true;
    if (!is_f32(x) || x->rank < 3 || !reduce(c, x, is_reduced, true, c->arg == RL_POOL_MAX ? RL_RD_MAX : RL_RD_MEAN)) return rl_ref_global_pool(c);
    return RL_OK;
}
