/* Attention and FlexAttention: softmax(Q K' * scale, masked) V for every head, the scores in one tensor.
 *
 * Query heads share key heads in groups: Q is looked at as [batch, key heads, group, queries, size], K and V as
 * [batch, key heads, 1, keys, size], whose 1 broadcasts.  Types shorter than f32 are computed in f32 and rounded once. */
#include <math.h>
#include <string.h>

#include "attention_op.h"
#include "lines.h"
#include "ref_matmul.h"

typedef struct {
    rl_attention_op op;
    rl_dtype wide;
    rl_tensor *scores; /* dense [batch, heads, queries, keys] of type wide */
} attention;

/* rl_attention_grouped in the type to compute in. */
static rl_tensor grouped(rl_call *c, const attention *a, const rl_tensor *t) {
    return rl_attention_grouped(&a->op, t->dtype == a->wide ? t : rl_dense_as(c, t, a->wide));
}

/* Q is scaled: it has fewer elements than the scores. */
static void make_scores(rl_call *c, attention *a) {
    static const int64_t swap[] = {0, 1, 2, 4, 3};
    const rl_attention_op *o = &a->op;
    rl_tensor *scaled = rl_call_temp(c, a->wide, 4, o->q.dim);
    rl_convert(c->rt, scaled, &o->q, true);
    if (a->wide == RL_F64) rl_row_scale_f64(rl_data(scaled), rl_data(scaled), rl_numel(scaled), o->scale, 0);
    else rl_row_scale_f32(rl_data(scaled), rl_data(scaled), rl_numel(scaled), (float)o->scale, 0);
    rl_tensor q = grouped(c, a, scaled), k = grouped(c, a, &o->k);
    k = rl_view_transpose(&k, swap);
    a->scores = rl_call_temp(c, a->wide, 4, (int64_t[]){o->batch, o->heads, o->queries, o->keys});
    rl_tensor y = rl_attention_grouped(o, a->scores);
    rl_matmul(c, &q, &k, &y);
}

/* Output 0 = scores * V. */
static void give_result(rl_call *c, const attention *a) {
    const rl_attention_op *o = &a->op;
    rl_tensor *wide = rl_call_temp(c, a->wide, 4, (int64_t[]){o->batch, o->heads, o->queries, o->v.dim[3]});
    rl_tensor p = grouped(c, a, a->scores), v = grouped(c, a, &o->v), y = rl_attention_grouped(o, wide), out = rl_attention_output(c, o);
    rl_matmul(c, &p, &v, &y);
    rl_convert(c->rt, &out, wide, true);
}

/* ---- rows of scores ---- */

/* What happens to a row of scores before and in the softmax. */
typedef struct {
    const attention *a;
    double cap;             /* 0: none */
    const rl_tensor *mask;  /* of type wide, its last dim may be shorter than the keys; NULL: none */
    rl_sight sight;
    const int64_t *valid;   /* keys per batch that are no padding; NULL: all */
    int64_t mode;           /* the stage that `kept` is of */
    rl_tensor *kept;        /* NULL: not wanted */
} softmax_rows;

#define ROWS(S, T, tanh_)                                                                                            \
    static void keep_##S(const softmax_rows *s, int64_t mode, int64_t row, const T *x) {                             \
        int64_t n = s->a->op.keys;                                                                                   \
        if (s->kept && s->mode == mode) memcpy((T *)rl_data(s->kept) + row * n, x, (size_t)n * sizeof *x);           \
    }                                                                                                                \
    static void do_rows_##S(void *arg, int64_t first, int64_t end) {                                                 \
        const softmax_rows *s = arg;                                                                                 \
        const attention *a = s->a;                                                                                   \
        const rl_attention_op *o = &a->op;                                                                           \
        for (int64_t r = first; r < end; r++) {                                                                      \
            int64_t n = o->keys, i = r % o->queries, h = r / o->queries % o->heads, b = r / o->queries / o->heads, from, to; \
            T *x = (T *)rl_data(a->scores) + r * n, cap = (T)s->cap;                                                 \
            bool sees = false;                                                                                       \
            keep_##S(s, 0, r, x);                                                                                    \
            for (int64_t j = 0; cap > 0 && j < n; j++) x[j] = cap * tanh_(x[j] / cap);                               \
            keep_##S(s, 1, r, x);                                                                                    \
            rl_seen(&s->sight, s->valid ? &s->valid[b] : NULL, i, &from, &to);                                       \
            for (int64_t j = 0; j < n; j++)                                                                          \
                if (j < from || j >= to) x[j] = -(T)INFINITY;                                                        \
            if (s->mask) {                                                                                           \
                const int64_t *st = s->mask->stride;                                                                 \
                const T *m = (const T *)rl_data(s->mask) + b * st[0] + h * st[1] + i * st[2];                        \
                for (int64_t j = from; j < to; j++) x[j] += m[j * st[3]], sees |= m[j * st[3]] != -(T)INFINITY;      \
            } else {                                                                                                 \
                sees = from < to;                                                                                    \
            }                                                                                                        \
            keep_##S(s, 2, r, x);                                                                                    \
            if (sees) rl_row_softmax(a->wide, x, x, n);                                                              \
            else memset(x, 0, (size_t)n * sizeof *x); /* a query that sees nothing: zeros, no NaN */                 \
            keep_##S(s, 3, r, x);                                                                                    \
        }                                                                                                            \
    }
ROWS(f32, float, tanhf)
ROWS(f64, double, tanh)

static void run_rows(rl_rt *rt, softmax_rows *s) {
    const rl_attention_op *o = &s->a->op;
    rl_parallel(rt, o->batch * o->heads * o->queries, rl_row_grain(o->keys), s->a->wide == RL_F64 ? do_rows_f64 : do_rows_f32, s);
}

/* ---- Attention ---- */

/* As numbers to add: of a bool mask 0 and -inf. */
static rl_status read_mask(rl_call *c, attention *a, rl_tensor *mask) {
    const rl_tensor *m = rl_call_in(c, 3);
    rl_tensor *wide = rl_call_temp(c, a->wide, m->rank, m->dim);
    rl_convert(c->rt, wide, m, true);
    for (int64_t i = 0, n = rl_numel(wide); m->dtype == RL_BOOL && i < n; i++) {
        if (a->wide == RL_F64) ((double *)rl_data(wide))[i] = ((double *)rl_data(wide))[i] != 0 ? 0 : -(double)INFINITY;
        else ((float *)rl_data(wide))[i] = ((float *)rl_data(wide))[i] != 0 ? 0 : -INFINITY;
    }
    return rl_attention_mask(c, &a->op, wide, mask);
}

rl_status rl_ref_attention(rl_call *c) {
    attention a = {.scores = NULL};
    rl_attention_op *o = &a.op;
    RL_TRY(rl_attention_read(c, o));
    a.wide = rl_wide_float(o->q.dtype);
    softmax_rows s = {.a = &a, .cap = o->cap, .mode = o->mode};
    rl_tensor mask;
    if (rl_call_in(c, 3)) {
        RL_TRY(read_mask(c, &a, &mask));
        s.mask = &mask;
    }
    if (rl_call_in(c, 6)) {
        s.valid = rl_data(rl_call_as(c, 6, RL_I64));
        RL_TRY(rl_attention_lengths(c, o));
    }
    s.sight = o->sight;
    make_scores(c, &a);
    if (rl_call_wants(c, 3)) s.kept = rl_wide_make(c, 3, o->q.dtype, a.wide, 4, a.scores->dim);
    run_rows(c->rt, &s);
    if (s.kept) rl_wide_done(c, 3, s.kept);
    give_result(c, &a);
    return RL_OK;
}

void rl_attention_plain(rl_call *c, const rl_attention_op *o, const rl_tensor *mask) {
    attention a = {.op = *o, .wide = rl_wide_float(o->q.dtype)};
    softmax_rows s = {.a = &a, .mask = mask, .sight = o->sight};
    make_scores(c, &a);
    run_rows(c->rt, &s);
    give_result(c, &a);
}

/* ---- FlexAttention ---- */

/* The scores through the body `name`, where the node has it; bodies see type t. */
static rl_status modify(rl_call *c, const char *name, rl_dtype t, const rl_tensor *scores) {
    rl_tensor out, *in;
    if (!rl_attr_find(c->node, name)) return RL_OK;
    in = rl_call_temp(c, t, scores->rank, scores->dim);
    rl_convert(c->rt, in, scores, true);
    RL_TRY(rl_call_body(c, name, in, 1, &out, 1));
    bool fits = out.kind == RL_TENSOR && rl_same_dims(&out, scores);
    if (fits) rl_convert(c->rt, scores, &out, true);
    rl_tensor_drop(&out);
    return fits ? RL_OK : rl_call_fail(c, RL_EMODEL, "'%s' gives another shape than it gets", name);
}

rl_status rl_ref_flex_attention(rl_call *c) {
    attention a = {.scores = NULL};
    rl_attention_op *o = &a.op;
    RL_TRY(rl_call_need(c, 3));
    for (uint32_t i = 0; i < 3; i++)
        if (rl_call_in(c, i)->rank != 4) return rl_call_fail(c, RL_EMODEL, "input %u has rank %u, wants 4", i, rl_call_in(c, i)->rank);
    o->q = *rl_call_in(c, 0), o->k = *rl_call_in(c, 1), o->v = *rl_call_in(c, 2);
    RL_TRY(rl_attention_check(c, o));
    a.wide = rl_wide_float(o->q.dtype);
    rl_dtype seen = (rl_dtype)rl_attr_int(c->node, "softmax_precision", a.wide);
    if (seen != RL_F32 && seen != RL_F64 && seen != RL_F16 && seen != RL_BF16)
        return rl_call_fail(c, RL_EMODEL, "a softmax_precision that is no float");
    if (seen == RL_F64) a.wide = RL_F64;
    make_scores(c, &a);
    softmax_rows rows = {.a = &a, .sight = {o->queries, o->keys, 0, -1, -1}};
    RL_TRY(modify(c, "score_mod", seen, a.scores));
    run_rows(c->rt, &rows);
    RL_TRY(modify(c, "prob_mod", seen, a.scores));
    give_result(c, &a);
    return RL_OK;
}
