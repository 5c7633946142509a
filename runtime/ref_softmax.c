/* Softmax, LogSoftmax, Hardmax.  Since opset 13 along one axis; before, over all dims from `axis` on. */
#include <math.h>

#include "lines.h"
#include "ref_softmax.h"

typedef struct { rl_dtype type; int op; int64_t n; const char *x; char *y; } rows;

/* x - top - log(sum of e^(x - top)); the sum without a place of its own: y holds the powers until it is overwritten. */
#define LOG_SOFTMAX(S, T)                                                                                            \
    static void log_softmax_##S(T *y, const T *x, int64_t n) {                                                       \
        T top = rl_row_max_##S(x, n);                                                                                \
        double sum = rl_row_exp_##S(y, x, n, top);                                                                   \
        T less = (T)log(sum);                                                                                        \
        for (int64_t i = 0; i < n; i++) y[i] = x[i] - top - less;                                                    \
    }                                                                                                                \
    static void hardmax_##S(T *y, const T *x, int64_t n) {                                                           \
        int64_t at = 0;                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            y[i] = 0;                                                                                                \
            if (x[i] > x[at]) at = i;                                                                                \
        }                                                                                                            \
        if (n) y[at] = 1;                                                                                            \
    }
LOG_SOFTMAX(f32, float)
LOG_SOFTMAX(f64, double)

static void do_rows(void *arg, int64_t from, int64_t to) {
    const rows *r = arg;
    bool wide = r->type == RL_F64;
    for (int64_t i = from; i < to; i++) {
        int64_t at = i * r->n * (wide ? 8 : 4);
        const void *x = r->x + at;
        void *y = r->y + at;
        if (r->op == RL_SOFTMAX) rl_row_softmax(r->type, y, x, r->n);
        else if (r->op == RL_LOG_SOFTMAX && wide) log_softmax_f64(y, x, r->n);
        else if (r->op == RL_LOG_SOFTMAX) log_softmax_f32(y, x, r->n);
        else if (wide) hardmax_f64(y, x, r->n);
        else hardmax_f32(y, x, r->n);
    }
}

void rl_softmax_rows(rl_rt *rt, int op, const rl_tensor *y, const rl_tensor *x, int64_t n) {
    rows r = {.type = x->dtype, .op = op, .n = n, .x = rl_data(x), .y = rl_data(y)};
    if (rl_numel(x)) rl_parallel(rt, rl_numel(x) / n, rl_row_grain(n), do_rows, &r);
}

rl_status rl_ref_softmax(rl_call *c) {
    uint32_t axis = 0;
    bool old = c->node->since < 13;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    rl_dtype wide = rl_wide_float(x->dtype);
    int64_t n = 1, at = rl_attr_int(c->node, "axis", old ? 1 : -1);
    if (!old || at != x->rank) RL_TRY(rl_call_axis(c, at, x->rank, &axis)); /* axis == rank: rows of one element */
    else axis = x->rank;
    if (old) {
        const rl_tensor *dense = rl_dense_as(c, x, wide);
        rl_tensor *y = rl_wide_make(c, 0, x->dtype, wide, x->rank, x->dim);
        for (uint32_t i = axis; i < x->rank; i++) n *= x->dim[i];
        rl_softmax_rows(c->rt, c->arg, y, dense, n);
        rl_wide_done(c, 0, y);
        return RL_OK;
    }
    const rl_tensor *lines = rl_lines_of(c, x, axis, wide);
    rl_tensor *y = rl_lines_make(c, 0, x->dtype, wide, x->rank, x->dim, axis);
    rl_softmax_rows(c->rt, c->arg, y, lines, x->dim[axis]);
    rl_lines_done(c, 0, y, axis);
    return RL_OK;
}
