/* Attention and FlexAttention: softmax(Q K' * scale, masked) V for every head, the scores in one tensor.
 *
 * Query heads share key heads in groups: Q is looked at as [batch, key heads, group, queries, size], K and V as
 * [batch, key heads, 1, keys, size], whose 1 broadcasts.  Types shorter than f32 are computed in f32 and rounded once. */
#include <math.h>
#include <string.h>

#include "lines.h"
#include "ref_attention.h"
#include "ref_matmul.h"

typedef struct {
    int64_t batch, heads, key_heads, queries, keys, past; /* keys: with the past ones */
    rl_dtype wide;
    rl_tensor q, k, v; /* [batch, heads, length, size] of any type and strides */
    rl_tensor *scores; /* dense [batch, heads, queries, keys] of type wide */
} attention;

/* ---- heads ---- */

rl_status rl_attention_heads(rl_call *c, uint32_t i, int64_t heads, rl_tensor *out) {
    static const int64_t swap[] = {0, 2, 1, 3};
    const rl_tensor *x = rl_call_in(c, i);
    *out = *x;
    if (x->rank == 4) return RL_OK;
    if (x->rank != 3) return rl_call_fail(c, RL_EMODEL, "input %u has rank %u, wants 3 or 4", i, x->rank);
    if (heads < 1 || x->dim[2] % heads)
        return rl_call_fail(c, RL_EMODEL, "%lld heads in a dim of %lld", (long long)heads, (long long)x->dim[2]);
    rl_tensor y = *x; /* splitting the last dim is always a view */
    y.rank = 4;
    y.dim[2] = heads, y.dim[3] = x->dim[2] / heads;
    y.stride[2] = x->stride[2] * y.dim[3], y.stride[3] = x->stride[2];
    *out = rl_view_transpose(&y, swap);
    return RL_OK;
}

static rl_status check(const rl_call *c, attention *a) {
    const rl_tensor *q = &a->q, *k = &a->k, *v = &a->v;
    a->batch = q->dim[0], a->heads = q->dim[1], a->queries = q->dim[2], a->key_heads = k->dim[1], a->keys = k->dim[2];
    a->wide = rl_wide_float(q->dtype);
    if (k->dim[0] != a->batch || v->dim[0] != a->batch || v->dim[1] != a->key_heads || v->dim[2] != a->keys || k->dim[3] != q->dim[3])
        return rl_call_fail(c, RL_EMODEL, "query, key and value do not fit");
    if (a->key_heads < 1 || a->heads % a->key_heads)
        return rl_call_fail(c, RL_EMODEL, "%lld query heads for %lld key heads", (long long)a->heads, (long long)a->key_heads);
    return RL_OK;
}

/* [batch, heads, ...] as [batch, key heads, group, ...] in the type to compute in. */
static rl_tensor grouped(rl_call *c, const attention *a, const rl_tensor *t) {
    rl_tensor x = t->dtype == a->wide ? *t : *rl_dense_as(c, t, a->wide), y = x;
    int64_t group = t->dim[1] / a->key_heads;
    y.rank = 5;
    y.dim[1] = a->key_heads, y.stride[1] = x.stride[1] * group;
    y.dim[2] = group, y.stride[2] = x.stride[1];
    y.dim[3] = x.dim[2], y.stride[3] = x.stride[2];
    y.dim[4] = x.dim[3], y.stride[4] = x.stride[3];
    return y;
}

/* Q is scaled: it has fewer elements than the scores. */
static void make_scores(rl_call *c, attention *a) {
    static const int64_t swap[] = {0, 1, 2, 4, 3};
    double scale = rl_attr_find(c->node, "scale") ? (double)rl_attr_float(c->node, "scale", 1) : 1 / sqrt((double)a->q.dim[3]);
    rl_tensor *scaled = rl_call_temp(c, a->wide, 4, a->q.dim);
    rl_convert(c->rt, scaled, &a->q, true);
    if (a->wide == RL_F64) rl_row_scale_f64(rl_data(scaled), rl_data(scaled), rl_numel(scaled), scale, 0);
    else rl_row_scale_f32(rl_data(scaled), rl_data(scaled), rl_numel(scaled), (float)scale, 0);
    rl_tensor q = grouped(c, a, scaled), k = grouped(c, a, &a->k), y;
    k = rl_view_transpose(&k, swap);
    a->scores = rl_call_temp(c, a->wide, 4, (int64_t[]){a->batch, a->heads, a->queries, a->keys});
    rl_view_reshape(a->scores, 5, (int64_t[]){a->batch, a->key_heads, q.dim[2], a->queries, a->keys}, &y);
    rl_matmul(c, &q, &k, &y);
}

/* Output 0 = scores * V, of type made; flat: as [batch, queries, heads * size]. */
static void give_result(rl_call *c, const attention *a, rl_dtype made, bool flat) {
    static const int64_t swap[] = {0, 2, 1, 3};
    rl_tensor p = grouped(c, a, a->scores), v = grouped(c, a, &a->v), y, view;
    int64_t size = a->v.dim[3], dim[4] = {a->batch, a->heads, a->queries, size};
    rl_tensor *wide = rl_call_temp(c, a->wide, 4, dim);
    rl_view_reshape(wide, 5, (int64_t[]){a->batch, a->key_heads, p.dim[2], a->queries, size}, &y);
    rl_matmul(c, &p, &v, &y);
    if (!flat) {
        rl_convert(c->rt, rl_call_make(c, 0, made, 4, dim), wide, true);
        return;
    }
    rl_tensor *out = rl_call_make(c, 0, made, 3, (int64_t[]){a->batch, a->queries, a->heads * size});
    rl_view_reshape(out, 4, (int64_t[]){a->batch, a->queries, a->heads, size}, &view);
    view = rl_view_transpose(&view, swap);
    rl_convert(c->rt, &view, wide, true);
}

/* ---- rows of scores ---- */

/* What happens to a row of scores before and in the softmax. */
typedef struct {
    const attention *a;
    double cap;             /* 0: none */
    const rl_tensor *mask;  /* of type wide, its last dim may be shorter than the keys; NULL: none */
    bool causal;
    int64_t left, right;    /* windows; negative: unbounded */
    const int64_t *valid;   /* keys per batch that are no padding; NULL: all */
    int64_t mode;           /* the stage that `kept` is of */
    rl_tensor *kept;        /* NULL: not wanted */
} softmax_rows;

/* The keys that query i of a batch sees: from .. to-1. */
static void visible(const softmax_rows *s, int64_t b, int64_t i, int64_t *from, int64_t *to) {
    int64_t at = s->valid ? rl_add(s->valid[b], i - s->a->queries) : s->a->past + i;
    *from = 0;
    *to = s->a->keys;
    if (s->valid) *to = RL_MIN(*to, s->valid[b]);
    if (s->mask) *to = RL_MIN(*to, s->mask->dim[3]);
    if (s->causal) *to = RL_MIN(*to, rl_add(at, 1));
    if (s->right >= 0) *to = RL_MIN(*to, rl_add(rl_add(at, s->right), 1));
    if (s->left >= 0) *from = RL_MAX(*from, rl_add(at, -s->left));
    *to = RL_MAX(*to, 0);
    *from = RL_MIN(*from, *to);
}

#define ROWS(S, T, tanh_)                                                                                            \
    static void keep_##S(const softmax_rows *s, int64_t mode, int64_t row, const T *x) {                             \
        int64_t n = s->a->keys;                                                                                      \
        if (s->kept && s->mode == mode) memcpy((T *)rl_data(s->kept) + row * n, x, (size_t)n * sizeof *x);           \
    }                                                                                                                \
    static void do_rows_##S(void *arg, int64_t first, int64_t end) {                                                 \
        const softmax_rows *s = arg;                                                                                 \
        const attention *a = s->a;                                                                                   \
        for (int64_t r = first; r < end; r++) {                                                                      \
            int64_t n = a->keys, i = r % a->queries, h = r / a->queries % a->heads, b = r / a->queries / a->heads, from, to; \
            T *x = (T *)rl_data(a->scores) + r * n, cap = (T)s->cap;                                                 \
            bool sees = false;                                                                                       \
            keep_##S(s, 0, r, x);                                                                                    \
            for (int64_t j = 0; cap > 0 && j < n; j++) x[j] = cap * tanh_(x[j] / cap);                               \
            keep_##S(s, 1, r, x);                                                                                    \
            visible(s, b, i, &from, &to);                                                                            \
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
    const attention *a = s->a;
    rl_parallel(rt, a->batch * a->heads * a->queries, rl_row_grain(a->keys), a->wide == RL_F64 ? do_rows_f64 : do_rows_f32, s);
}

/* ---- Attention ---- */

/* The past ones, then the new ones along dim 2, of t's own type: output i. Without a past: t itself. */
static rl_status add_past(rl_call *c, uint32_t slot, uint32_t i, rl_tensor *t, int64_t *past) {
    const rl_tensor *old = rl_call_in(c, slot);
    *past = 0;
    if (!old) {
        if (rl_call_wants(c, i)) rl_call_share(c, i, *t);
        return RL_OK;
    }
    int64_t n = old->dim[2], dim[4] = {t->dim[0], t->dim[1], n + t->dim[2], t->dim[3]};
    if (old->rank != 4 || old->dtype != t->dtype || old->dim[0] != dim[0] || old->dim[1] != dim[1] || old->dim[3] != dim[3])
        return rl_call_fail(c, RL_EMODEL, "input %u does not fit the new keys or values", slot);
    rl_tensor *y = rl_call_make(c, i, t->dtype, 4, dim);
    rl_tensor first = rl_view_slice(y, 2, 0, 1, n), rest = rl_view_slice(y, 2, n, 1, t->dim[2]);
    rl_tensor_move(c->rt, &first, old);
    rl_tensor_move(c->rt, &rest, t);
    *t = *y;
    *past = n;
    return RL_OK;
}

/* As numbers to add: of a bool mask 0 and -inf. */
static rl_status read_mask(rl_call *c, const attention *a, rl_tensor *mask) {
    const rl_tensor *m = rl_call_in(c, 3);
    int64_t most = m->rank ? RL_MIN(m->dim[m->rank - 1], a->keys) : a->keys, dim[4] = {a->batch, a->heads, a->queries, most};
    rl_tensor *wide = rl_call_temp(c, a->wide, m->rank, m->dim);
    rl_convert(c->rt, wide, m, true);
    for (int64_t i = 0, n = rl_numel(wide); m->dtype == RL_BOOL && i < n; i++) {
        if (a->wide == RL_F64) ((double *)rl_data(wide))[i] = ((double *)rl_data(wide))[i] != 0 ? 0 : -(double)INFINITY;
        else ((float *)rl_data(wide))[i] = ((float *)rl_data(wide))[i] != 0 ? 0 : -INFINITY;
    }
    return rl_view_expand(wide, 4, dim, mask) ? RL_OK : rl_call_fail(c, RL_EMODEL, "the mask does not broadcast to the scores");
}

static rl_status read_lengths(rl_call *c, softmax_rows *s) {
    const rl_tensor *t = rl_call_as(c, 6, RL_I64);
    if (!t) return RL_OK;
    if (rl_numel(t) != s->a->batch)
        return rl_call_fail(c, RL_EMODEL, "%lld lengths for a batch of %lld", (long long)rl_numel(t), (long long)s->a->batch);
    s->valid = rl_data(t);
    return s->a->past ? rl_call_fail(c, RL_EMODEL, "nonpad_kv_seqlen goes without past keys") : RL_OK;
}

rl_status rl_ref_attention(rl_call *c) {
    attention a = {.batch = 0};
    int64_t past = 0;
    RL_TRY(rl_call_need(c, 3));
    bool flat = rl_call_in(c, 0)->rank == 3;
    int64_t key_heads = rl_attr_int(c->node, "kv_num_heads", 0);
    RL_TRY(rl_attention_heads(c, 0, rl_attr_int(c->node, "q_num_heads", 0), &a.q));
    RL_TRY(rl_attention_heads(c, 1, key_heads, &a.k));
    RL_TRY(rl_attention_heads(c, 2, key_heads, &a.v));
    RL_TRY(add_past(c, 4, 1, &a.k, &a.past));
    RL_TRY(add_past(c, 5, 2, &a.v, &past));
    RL_TRY(check(c, &a));
    softmax_rows s = {.a = &a, .cap = rl_attr_float(c->node, "softcap", 0), .causal = rl_attr_int(c->node, "is_causal", 0) != 0,
                      .left = rl_attr_int(c->node, "left_window_size", -1), .right = rl_attr_int(c->node, "right_window_size", -1),
                      .mode = rl_attr_int(c->node, "qk_matmul_output_mode", 0)};
    rl_tensor mask;
    if (s.mode < 0 || s.mode > 3) return rl_call_fail(c, RL_EMODEL, "qk_matmul_output_mode is %lld", (long long)s.mode);
    if (rl_call_in(c, 3)) {
        RL_TRY(read_mask(c, &a, &mask));
        s.mask = &mask;
    }
    RL_TRY(read_lengths(c, &s));
    make_scores(c, &a);
    if (rl_call_wants(c, 3)) s.kept = rl_wide_make(c, 3, a.q.dtype, a.wide, 4, a.scores->dim);
    run_rows(c->rt, &s);
    if (s.kept) rl_wide_done(c, 3, s.kept);
    give_result(c, &a, a.q.dtype, flat);
    return RL_OK;
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
    attention a = {.batch = 0};
    RL_TRY(rl_call_need(c, 3));
    for (uint32_t i = 0; i < 3; i++)
        if (rl_call_in(c, i)->rank != 4) return rl_call_fail(c, RL_EMODEL, "input %u has rank %u, wants 4", i, rl_call_in(c, i)->rank);
    a.q = *rl_call_in(c, 0), a.k = *rl_call_in(c, 1), a.v = *rl_call_in(c, 2);
    RL_TRY(check(c, &a));
    rl_dtype seen = (rl_dtype)rl_attr_int(c->node, "softmax_precision", a.wide), made = a.q.dtype;
    if (seen != RL_F32 && seen != RL_F64 && seen != RL_F16 && seen != RL_BF16)
        return rl_call_fail(c, RL_EMODEL, "a softmax_precision that is no float");
    if (seen == RL_F64) a.wide = RL_F64;
    make_scores(c, &a);
    softmax_rows rows = {.a = &a, .left = -1, .right = -1};
    RL_TRY(modify(c, "score_mod", seen, a.scores));
    run_rows(c->rt, &rows);
    RL_TRY(modify(c, "prob_mod", seen, a.scores));
    give_result(c, &a, made, false);
    return RL_OK;
}
