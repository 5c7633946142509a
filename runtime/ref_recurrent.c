/* LSTM, GRU, RNN: all directions, activations, lengths, peepholes; both layouts of the batch.  See recurrent.h.
 *
 * The products with the inputs are made for all tokens at once, those with the states step by step.  DynamicQuantizeLSTM's are products of numbers
 * that were rounded to bytes, as DynamicQuantizeLinear does it: the inputs of all tokens by one scale, the states of a step by one. */
#include <math.h>
#include <string.h>

#include "exec.h"
#include "fast.h"
#include "gemm.h"
#include "lines.h"
#include "quantize.h"
#include "recurrent.h"

#define F32(name) name##f
#define T float
#define S f32
#define M(name) F32(name)
#include "recurrent.inc"
#define T double
#define S f64
#define M(name) name
#include "recurrent.inc"

/* ---- inputs ---- */

typedef struct {
    rl_recurrent_node n;
    rl_dtype wide;
    const rl_rows *rows; /* NULL: no fast kernels */
    const rl_tensor *x, *w, *r, *bias, *h, *c, *peephole; /* dense, of type wide, x and states with the batch in its usual place */
    int64_t *ends;
} inputs;

/* Input i in the type to compute in. */
static const rl_tensor *read_input(rl_call *c, const inputs *in, uint32_t i) {
    const rl_tensor *t = rl_call_in(c, i);
    if (!t) return NULL;
    rl_tensor view = rl_recurrent_view(&in->n, i, t);
    return rl_dense_as(c, &view, in->wide);
}

static void weigh_row(const rl_row *r) {
    const float *w = r->in[0], *scale = r->in[1], *zero = r->in[2];
    float *y = r->out;
    for (int64_t i = 0; i < r->n; i++) y[i] = (w[i * r->step[0]] - zero[i * r->step[2]]) * scale[i * r->step[1]];
}

/* Weights of bytes as numbers; scale and zero point, inputs i and i + 1, are one for a direction or one for each gate of it. */
static rl_status read_bytes(rl_call *c, const inputs *in, uint32_t slot, uint32_t i, const rl_tensor **out) {
    const rl_tensor *given[] = {rl_call_dense(c, i), rl_call_dense(c, i + 1)};
    rl_tensor w = rl_recurrent_view(&in->n, slot, rl_call_in(c, slot)), number[2], *y = rl_call_temp(c, RL_F32, 3, w.dim);
    if (!given[0] || !given[1]) return rl_call_fail(c, RL_EMODEL, "no scale or zero point of input %u", slot);
    for (int k = 0; k < 2; k++) {
        int64_t n = rl_numel(given[k]), d = in->n.ndir;
        if (n != d && n != d * w.dim[1]) return rl_call_fail(c, RL_EMODEL, "%lld numbers in input %u", (long long)n, i + (uint32_t)k);
        rl_view_reshape(given[k], 3, (int64_t[]){d, n / d, 1}, &number[k]);
    }
    *out = y;
    return rl_each(c, RL_F32, RL_F32, weigh_row, y, (const rl_tensor *[]){&w, &number[0], &number[1]}, 3, NULL);
}

/* n numbers as DynamicQuantizeLinear rounds them. */
static void round_to_bytes(float *x, int64_t n) {
    float least = 0, most = 0, scale;
    for (int64_t i = 0; i < n; i++) least = x[i] < least ? x[i] : least, most = x[i] > most ? x[i] : most;
    float zero = rl_dynamic_scale(least, most, &scale);
    for (int64_t i = 0; i < n; i++) {
        float q = rintf(x[i] / scale) + zero;
        x[i] = ((q < 0 ? 0 : q > 255 ? 255 : q) - zero) * scale;
    }
}

/* The weights, unless they are packed; the inputs, as far as the longest sequence goes. */
static rl_status read_dynamic(rl_call *c, inputs *in) {
    int64_t longest = 0;
    for (int64_t b = 0; b < in->n.batch; b++) longest = RL_MAX(longest, in->ends[b]);
    rl_tensor view = rl_recurrent_view(&in->n, 0, rl_call_in(c, 0)), *x = rl_call_temp(c, RL_F32, 3, view.dim);
    rl_convert(c->rt, x, &view, true);
    round_to_bytes(rl_data(x), longest * in->n.batch * in->n.input);
    in->x = x;
    if (c->step->packed.kind != RL_ABSENT) return RL_OK;
    RL_TRY(read_bytes(c, in, 1, 8, &in->w));
    return read_bytes(c, in, 2, 10, &in->r);
}

static rl_status read_ends(rl_call *c, inputs *in) {
    const rl_tensor *t = rl_call_as(c, 4, RL_I64);
    in->ends = rl_new(c->tmp, int64_t, in->n.batch);
    for (int64_t b = 0; b < in->n.batch; b++) {
        in->ends[b] = t ? ((const int64_t *)rl_data(t))[b] : in->n.length;
        if (in->ends[b] < 0 || in->ends[b] > in->n.length)
            return rl_call_fail(c, RL_EMODEL, "a length of %lld of %lld", (long long)in->ends[b], (long long)in->n.length);
    }
    return RL_OK;
}

static rl_status read_inputs(rl_call *c, inputs *in) {
    RL_TRY(rl_recurrent_read(c, &in->n));
    if (c->step->packed.kind == RL_ABSENT) rl_call_fetch(c);
    in->wide = rl_wide_float(rl_call_in(c, 0)->dtype);
    in->rows = c->rt->fast && in->wide == RL_F32 ? rl_rows_best() : NULL;
    RL_TRY(read_ends(c, in));
    if (in->n.dynamic) RL_TRY(read_dynamic(c, in));
    else in->x = read_input(c, in, 0), in->w = read_input(c, in, 1), in->r = read_input(c, in, 2);
    in->bias = read_input(c, in, 3);
    in->h = read_input(c, in, 5);
    if (c->arg == RL_LSTM) in->c = read_input(c, in, 6), in->peephole = read_input(c, in, 7);
    return RL_OK;
}

/* ---- products ---- */

/* Part `dir` of a tensor whose first dim is the direction; NULL of NULL. */
static char *part(const rl_tensor *t, uint32_t dir) {
    return t ? (char *)rl_data(t) + (size_t)(dir * t->stride[0]) * (rl_dtype_bits(t->dtype) / 8) : NULL;
}

/* y[m, n] += a[m, k] * b', b of n rows of k; packed: the same b, with fast kernels. */
static void multiply(rl_rt *rt, const inputs *in, const void *a, const void *b, const rl_panels *packed, void *y, int64_t m, int64_t n, int64_t k,
                     int64_t ym) {
    rl_gemm g = {.type = in->wide, .count = 1, .m = m, .n = n, .k = k, .a = a, .am = k, .ak = 1, .b = b, .bk = 1, .bn = k, .y = y,
            .ym = ym};
    if (!m || !n || !k) return;
    rl_panels_product p = {.a = a, .am = k, .m = m, .y = y, .ym = ym, .start = y};
    if (in->rows) rl_panels_multiply(rt, packed, &p);
    else rl_gemm_run(rt, &g);
}

/* ---- packed weights ---- */

/* Columns and depth of panels[i] of each direction. */
static void panels_dims(const rl_call *c, const inputs *in, int i, int64_t *n, int64_t *k) {
    int64_t all = in->n.count * in->n.hidden, first = c->arg == RL_GRU ? 2 * in->n.hidden : all;
    *n = i == 0 ? all : i == 1 ? first : all - first;
    *k = i == 0 ? in->n.input : in->n.hidden;
}

/* Where all panels are to be, and whether they are there already: constants are packed once. */
static float *panels_room(rl_call *c, const inputs *in, bool *packed) {
    int64_t count = 0, n, k;
    rl_tensor *keep = &c->step->packed;
    for (int i = 0; i < 3; i++) {
        panels_dims(c, in, i, &n, &k);
        count += in->n.ndir * rl_panels_count(n, k);
    }
    *packed = keep->kind != RL_ABSENT;
    if (*packed) return rl_data(keep);
    if (!rl_call_is_constant(c, 1) || !rl_call_is_constant(c, 2)) return rl_data(rl_call_temp(c, RL_F32, 1, &count));
    *keep = rl_tensor_new(c->rt, RL_F32, 1, &count);
    c->rt->constants += keep->mem->nbyte;
    return rl_data(keep);
}

static void pack_weights(rl_call *c, const inputs *in, rl_recurrent *r) {
    bool packed;
    int64_t n, k;
    float *room = panels_room(c, in, &packed);
    for (uint32_t d = 0; d < in->n.ndir; d++)
        for (int i = 0; i < 3; i++) {
            panels_dims(c, in, i, &n, &k);
            r[d].panels[i] = (rl_panels){in->rows, room, n, k};
            room += rl_panels_count(n, k);
            if (packed) continue;
            const float *b = (const float *)(const void *)part(i ? in->r : in->w, d) + (i == 2 ? (in->n.count - 1) * in->n.hidden * k : 0);
            r[d].panels[i] = rl_panels_pack(in->rows, b, n, k, 1, k, room - rl_panels_count(n, k));
        }
    for (uint32_t i = 1; i < 3 && !packed && c->step->packed.kind != RL_ABSENT; i++) rl_call_packed(c, i);
}

/* ---- one direction ---- */

/* A row of nbyte bytes, `rows` times; zeros of NULL. */
static void repeat(char *to, const char *row, size_t nbyte, int64_t rows) {
    for (int64_t i = 0; i < rows; i++, to += nbyte) {
        if (row) memcpy(to, row, nbyte);
        else memset(to, 0, nbyte);
    }
}

/* x W' + the biases, for all tokens. A GRU whose product comes first adds h's recurrent bias to that product. */
static const void *input_gates(rl_call *c, const inputs *in, const rl_recurrent *r, uint32_t dir) {
    int64_t n = in->n.count * in->n.hidden, rows = in->n.length * in->n.batch, both = r->linear ? 2 * in->n.hidden : n;
    rl_tensor *sum = rl_call_temp(c, in->wide, 1, &n), *all = rl_call_temp(c, in->wide, 2, (int64_t[]){rows, n});
    size_t size = rl_dtype_bits(in->wide) / 8;
    if (in->bias && in->wide == RL_F64) add_biases_f64(rl_data(sum), (const double *)(const void *)part(in->bias, dir), n, both);
    else if (in->bias) add_biases_f32(rl_data(sum), (const float *)(const void *)part(in->bias, dir), n, both);
    repeat(rl_data(all), in->bias ? rl_data(sum) : NULL, (size_t)n * size, rows);
    multiply(c->rt, in, rl_data(in->x), part(in->w, dir), &r->panels[0], rl_data(all), rows, n, in->n.input, n);
    return rl_data(all);
}

static void run_cells(rl_rt *rt, rl_recurrent *r, bool wide) {
    rl_parallel(rt, r->batch, RL_MAX(1, 1024 / RL_MAX(r->hidden, 1)), wide ? cells_f64 : cells_f32, r);
}

/* weight: R of this direction; extra: the bias of h's own product, of a GRU whose product comes first. */
static void run_steps(rl_rt *rt, const inputs *in, rl_recurrent *r, const char *weight, const char *extra) {
    int64_t n = in->n.hidden, all = in->n.count * n;
    size_t size = rl_dtype_bits(in->wide) / 8, row = (size_t)all * size;
    bool wide = in->wide == RL_F64, gru = r->op == RL_GRU;
    const char *h = in->n.dynamic ? r->work : r->h;
    char *next = (char *)r->gate + 2 * (size_t)n * size; /* a GRU's third gate */
    const char *next_weight = weight + 2 * (size_t)(n * n) * size;
    for (r->step = 0; r->step < in->n.length; r->step++) {
        for (int64_t b = 0; b < in->n.batch; b++) {
            int64_t token = RL_MAX(rl_recurrent_token(r, b), 0);
            memcpy((char *)r->gate + (size_t)b * row, (const char *)r->gates_of + (size_t)(token * in->n.batch + b) * row, row);
        }
        if (in->n.dynamic) {
            memcpy(r->work, r->h, (size_t)(in->n.batch * n) * size);
            round_to_bytes(r->work, in->n.batch * n);
        }
        multiply(rt, in, h, weight, &r->panels[1], r->gate, in->n.batch, gru ? 2 * n : all, n, all);
        r->phase = 0;
        if (gru && r->linear) {
            repeat(r->work, extra, (size_t)n * size, in->n.batch);
            multiply(rt, in, r->h, next_weight, &r->panels[2], r->work, in->n.batch, n, n, n);
        }
        run_cells(rt, r, wide);
        if (!gru) continue;
        if (!r->linear) multiply(rt, in, r->work, next_weight, &r->panels[2], next, in->n.batch, n, n, all);
        r->phase = 1;
        run_cells(rt, r, wide);
    }
}

/* ---- the op ---- */

/* Output i: t (of the directions' usual places) with the batch where the node wants it. */
static void give(rl_call *c, const inputs *in, uint32_t i, rl_dtype made, const rl_tensor *t) {
    static const int64_t states[] = {1, 0, 2}, steps[] = {2, 0, 1, 3};
    if (!rl_call_wants(c, i)) return;
    rl_tensor view = !in->n.batch_first ? *t : rl_view_transpose(t, t->rank == 4 ? steps : states);
    rl_convert(c->rt, rl_call_make(c, i, made, view.rank, view.dim), &view, true);
}

static rl_tensor *state_of(rl_call *c, const inputs *in, const rl_tensor *first) {
    rl_tensor *t = rl_call_temp(c, in->wide, 3, (int64_t[]){in->n.ndir, in->n.batch, in->n.hidden});
    if (first) rl_tensor_move(c->rt, t, first);
    else memset(rl_data(t), 0, rl_bytes_of(t->dtype, rl_numel(t)));
    return t;
}

typedef struct { rl_rt *rt; const inputs *in; rl_recurrent *r; } directions;

static void run_directions(void *arg, int64_t from, int64_t to) {
    const directions *a = arg;
    const inputs *in = a->in;
    size_t extra = (size_t)(5 * in->n.hidden) * rl_dtype_bits(in->wide) / 8;
    for (uint32_t d = (uint32_t)from; d < (uint32_t)to; d++)
        run_steps(a->rt, in, &a->r[d], part(in->r, d), in->bias ? part(in->bias, d) + extra : NULL);
}

/* What is the same in all steps of direction d. */
static rl_recurrent direction(const rl_call *c, const inputs *in, uint32_t d) {
    const rl_recurrent_node *n = &in->n;
    rl_recurrent r = {.op = c->arg, .batch = n->batch, .hidden = n->hidden, .count = n->count, .ends = in->ends, .rows = in->rows,
                      .reverse = d == 1 || n->reverse, .clip = n->clip, .couples = n->couples, .linear = n->linear, .peephole = part(in->peephole, d),
                      .y_step = n->ndir * n->batch * n->hidden};
    memcpy(r.act, n->act[d], sizeof r.act);
    return r;
}

static bool is_plain(const rl_recurrent *r) {
    return r->op == RL_LSTM && r->rows && !r->couples && !r->peephole && !(r->clip > 0) && r->act[0].kind == ACT_SIGMOID &&
           r->act[1].kind == ACT_TANH && r->act[2].kind == ACT_TANH;
}

rl_status rl_ref_recurrent(rl_call *c) {
    inputs in = {0};
    rl_recurrent r[2];
    RL_TRY(read_inputs(c, &in));
    int64_t n = in.n.hidden;
    rl_tensor *h = state_of(c, &in, in.h), *cell = state_of(c, &in, in.c);
    rl_tensor *y = rl_call_temp(c, in.wide, 4, (int64_t[]){rl_call_wants(c, 0) ? in.n.length : 0, in.n.ndir, in.n.batch, n});
    rl_tensor *gate = rl_call_temp(c, in.wide, 3, (int64_t[]){in.n.ndir, in.n.batch, in.n.count * n});
    rl_tensor *work = rl_call_temp(c, in.wide, 3, (int64_t[]){in.n.ndir, in.n.batch, n});
    size_t size = rl_dtype_bits(in.wide) / 8;
    memset(rl_data(y), 0, rl_bytes_of(in.wide, rl_numel(y)));
    memset(rl_data(work), 0, rl_bytes_of(in.wide, rl_numel(work)));
    for (uint32_t d = 0; d < in.n.ndir; d++) {
        r[d] = direction(c, &in, d);
        r[d].gate = part(gate, d), r[d].work = part(work, d), r[d].h = part(h, d), r[d].c = part(cell, d);
        r[d].plain = is_plain(&r[d]);
        if (rl_call_wants(c, 0)) r[d].y = (char *)rl_data(y) + (size_t)(d * in.n.batch * n) * size;
    }
    if (in.rows) pack_weights(c, &in, r);
    for (uint32_t d = 0; d < in.n.ndir; d++) r[d].gates_of = input_gates(c, &in, &r[d], d);
    directions all = {c->rt, &in, r};
    if (in.rows) rl_parallel(c->rt, in.n.ndir, 1, run_directions, &all);
    else run_directions(&all, 0, in.n.ndir);
    rl_dtype made = rl_call_in(c, 0)->dtype;
    give(c, &in, 0, made, y);
    give(c, &in, 1, made, h);
    if (c->arg == RL_LSTM) give(c, &in, 2, made, cell);
    return RL_OK;
}
