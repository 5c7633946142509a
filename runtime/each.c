/* The walk over broadcast operands: see kernels.h. */
#include <string.h>

#include "kernels.h"

enum { CHUNK = 512, OPERANDS = RL_ROWIN + 1 /* the output is the last */ };

typedef struct {
    uint32_t rank, nin;
    int64_t dim[RL_RANK], stride[OPERANDS][RL_RANK], at[OPERANDS];
    const rl_tensor *t[OPERANDS];
    rl_dtype type, made;
    rl_row_fn *fn;
    const double *param;
    bool converts, saturate;
} walk;

/* Dims that lie one after the other for all operands become one. */
static void merge(walk *w, const rl_tensor *view) {
    uint32_t n = 0, nop = w->nin + 1;
    for (uint32_t i = 0; i < view[0].rank; i++) {
        int64_t d = view[0].dim[i];
        bool joins = n > 0;
        if (d == 1) continue;
        for (uint32_t k = 0; k < nop; k++) joins = joins && w->stride[k][n - 1] == view[k].stride[i] * d;
        n -= joins;
        w->dim[n] = joins ? w->dim[n] * d : d;
        for (uint32_t k = 0; k < nop; k++) w->stride[k][n] = view[k].stride[i];
        n++;
    }
    if (n == 0) {
        w->dim[n++] = 1;
        for (uint32_t k = 0; k < nop; k++) w->stride[k][0] = 1;
    }
    w->rank = n;
}

static rl_run run_of(const rl_tensor *t, int64_t at, int64_t step) {
    return (rl_run){t->dtype, t->mem->p, at, step};
}

/* Without a row function: what is there, in the output's type. */
static void recast_row(const walk *w, const int64_t *at) {
    uint32_t last = w->rank - 1;
    rl_convert_run(run_of(w->t[1], at[1], w->stride[1][last]), run_of(w->t[0], at[0], w->stride[0][last]), w->dim[last], w->saturate);
}

/* One row in pieces that fit the buffers; for row functions that must see other types. */
static void convert_row(const walk *w, const int64_t *at) {
    double buf[OPERANDS][CHUNK];
    uint32_t last = w->rank - 1, o = w->nin;
    for (int64_t i = 0; i < w->dim[last]; i += CHUNK) {
        rl_row r = {.n = RL_MIN((int64_t)CHUNK, w->dim[last] - i), .param = w->param, .out = buf[o]};
        for (uint32_t k = 0; k < w->nin; k++) {
            int64_t step = w->stride[k][last];
            r.in[k] = buf[k];
            r.step[k] = 1;
            rl_convert_run((rl_run){w->type, (char *)buf[k], 0, 1}, run_of(w->t[k], at[k] + i * step, step), r.n, true);
        }
        w->fn(&r);
        rl_convert_run(run_of(w->t[o], at[o] + i * w->stride[o][last], w->stride[o][last]), (rl_run){w->made, (char *)buf[o], 0, 1}, r.n,
                       w->saturate);
    }
}

static void plain_row(const walk *w, const int64_t *at) {
    uint32_t last = w->rank - 1, o = w->nin;
    rl_row r = {.n = w->dim[last], .param = w->param};
    r.out = (char *)w->t[o]->mem->p + at[o] * (int64_t)(rl_elem_bits(w->t[o]->dtype) / 8);
    for (uint32_t k = 0; k < w->nin; k++) {
        r.in[k] = (const char *)w->t[k]->mem->p + at[k] * (int64_t)(rl_elem_bits(w->t[k]->dtype) / 8);
        r.step[k] = w->stride[k][last];
    }
    w->fn(&r);
}

static void walk_rows(void *arg, int64_t first, int64_t end) {
    const walk *w = arg;
    int64_t index[RL_RANK] = {0}, at[OPERANDS], left = first;
    uint32_t outer = w->rank - 1, nop = w->nin + 1;
    memcpy(at, w->at, sizeof at);
    for (uint32_t i = outer; i-- > 0; left /= w->dim[i]) {
        index[i] = left % w->dim[i];
        for (uint32_t k = 0; k < nop; k++) at[k] += index[i] * w->stride[k][i];
    }
    for (int64_t row = first; row < end; row++) {
        if (!w->fn) recast_row(w, at);
        else if (w->converts) convert_row(w, at);
        else plain_row(w, at);
        for (uint32_t i = outer; i-- > 0;) {
            bool wraps = ++index[i] == w->dim[i];
            for (uint32_t k = 0; k < nop; k++) at[k] += w->stride[k][i] * (wraps ? 1 - w->dim[i] : 1);
            if (!wraps) break;
            index[i] = 0;
        }
    }
}

/* Threads must not share a byte of the output. */
static int64_t grain_of(const walk *w, int64_t rows) {
    if (rl_dtype_bits(w->t[w->nin]->dtype) < 8) return rows;
    return RL_MAX(1, 16384 / w->dim[w->rank - 1]);
}

static void run_walk(rl_rt *rt, walk *w, const rl_tensor *view) {
    int64_t rows = 1;
    merge(w, view);
    for (uint32_t k = 0; k <= w->nin; k++) {
        w->at[k] = view[k].offset;
        w->converts |= w->type != RL_UNDEF && w->t[k]->dtype != (k < w->nin ? w->type : w->made);
    }
    for (uint32_t k = 0; k <= w->nin && w->converts; k++)
        if (!rl_converts(w->t[k]->dtype)) {
            rt->no_number = true;
            return;
        }
    for (uint32_t i = 0; i + 1 < w->rank; i++) rows *= w->dim[i];
    rl_parallel(rt, rows, grain_of(w, rows), walk_rows, w);
}

rl_status rl_each(rl_call *c, rl_dtype type, rl_dtype made, rl_row_fn *fn, rl_tensor *out, const rl_tensor *const *in, uint32_t nin,
                  const double *param) {
    walk w = {.nin = nin, .type = type, .made = made, .fn = fn, .param = param, .saturate = true};
    rl_tensor view[OPERANDS];
    for (uint32_t k = 0; k < nin; k++) {
        w.t[k] = in[k];
        if (!rl_view_expand(in[k], out->rank, out->dim, &view[k])) return rl_call_fail(c, RL_EMODEL, "input %u does not broadcast to the output", k);
    }
    w.t[nin] = out;
    view[nin] = *out;
    if (rl_numel(out)) run_walk(c->rt, &w, view);
    return RL_OK;
}

rl_status rl_make_broadcast(rl_call *c, rl_dtype t, uint32_t nin, rl_tensor **out) {
    uint32_t rank = 0;
    int64_t dim[RL_RANK] = {0};
    RL_TRY(rl_call_need(c, nin));
    for (uint32_t i = 0; i < nin; i++) RL_TRY(rl_call_broadcast(c, &rank, dim, rl_call_in(c, i)));
    *out = rl_call_make(c, 0, t, rank, dim);
    return RL_OK;
}

/* From one class of numbers to the other at once; so a result is rounded once. */
void rl_convert(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src, bool saturate) {
    walk w = {.nin = 1, .type = src->dtype, .made = dst->dtype, .t = {src, dst}, .converts = true, .saturate = saturate};
    rl_tensor view[OPERANDS] = {*src, *dst};
    if (dst->dtype == src->dtype) rl_tensor_move(rt, dst, src);
    else if (rl_numel(dst)) run_walk(rt, &w, view);
}
