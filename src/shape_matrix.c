/* Shape rules of products of matrices, recurrent cells and attention. */
#include "shape_rules.h"

/* ---- matrices ---- */

/* Dim i of input x as a product sees it. */
static rl_dim product_dim(const rl_shaper *s, uint32_t input, const rl_valinfo *x, uint32_t i) {
    return x->dim[rl_turned_dim(rl_op_turned(s->n, input), x->rank, i)];
}

/* Inputs a and b as matrices with broadcast leading dims. */
static rl_status matmul_of(rl_shaper *s, uint32_t ia, uint32_t ib, rl_dtype t) {
    const rl_valinfo *a = input(s, ia), *b = input(s, ib);
    RL_TRY(want_least_rank(s, ia, 1));
    RL_TRY(want_least_rank(s, ib, 1));
    if (!ranked(a) || !ranked(b)) return set_unranked(s, 0, t);
    uint32_t ra = a->rank, rb = b->rank, na = ra > 1 ? ra - 2 : 0, nb = rb > 1 ? rb - 2 : 0, n = RL_MAX(na, nb);
    rl_dim ka = product_dim(s, ia, a, ra - 1), kb = product_dim(s, ib, b, rb > 1 ? rb - 2 : 0), k;
    if (!rl_shape_unify(s, ka, kb, &k))
        return rl_shape_fail(s, "inputs %u and %u have %lld and %lld to sum over", ia, ib, (long long)ka, (long long)kb);
    rl_dim *d = new_dims(s, n + 2);
    for (uint32_t i = 0; i < n; i++) {
        rl_dim x = i + na < n ? 1 : product_dim(s, ia, a, i + na - n), y = i + nb < n ? 1 : product_dim(s, ib, b, i + nb - n);
        if (!rl_shape_broadcast(s, x, y, &d[i]))
            return rl_shape_fail(s, "inputs %u and %u have %lld and %lld matrices", ia, ib, (long long)x, (long long)y);
    }
    if (ra > 1) d[n++] = product_dim(s, ia, a, ra - 2);
    if (rb > 1) d[n++] = product_dim(s, ib, b, rb - 1);
    return rl_shape_set(s, 0, t, n, d);
}

rl_status rl_rule_matmul(rl_shaper *s) {
    return matmul_of(s, 0, 1, shared_dtype(s));
}

/* The second input is a matrix of bytes. */
rl_status rl_rule_matmul_dynamic(rl_shaper *s) {
    return matmul_of(s, 0, 1, out_dtype(s, 0));
}

rl_status rl_rule_qlinear_matmul(rl_shaper *s) {
    return matmul_of(s, 0, 3, dtype_of(input(s, 7)));
}

rl_status rl_rule_matmul_to_float(rl_shaper *s) {
    return matmul_of(s, 0, 1, dtype_of(input(s, 2)));
}

/* Quantized weights of N columns: the last dim becomes N. */
rl_status rl_rule_matmul_columns(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    if (!ranked(x) || x->rank == 0) return set_unranked(s, 0, dtype_of(x));
    int64_t n = rl_attr_int(s->n, "N", -1);
    rl_dim *d = copy_dims(s, x);
    d[x->rank - 1] = n >= 0 ? n : UNKNOWN;
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

static rl_status gemm_of(rl_shaper *s, uint32_t ia, uint32_t ib, rl_dtype t) {
    const rl_valinfo *a = input(s, ia), *b = input(s, ib);
    RL_TRY(want_rank(s, ia, 2));
    RL_TRY(want_rank(s, ib, 2));
    uint32_t ta = rl_attr_int(s->n, "transA", 0) != 0, tb = rl_attr_int(s->n, "transB", 0) != 0;
    rl_dim k, d[2] = {ranked(a) ? a->dim[ta] : UNKNOWN, ranked(b) ? b->dim[1 - tb] : UNKNOWN};
    rl_dim ka = ranked(a) ? a->dim[1 - ta] : UNKNOWN, kb = ranked(b) ? b->dim[tb] : UNKNOWN;
    if (!rl_shape_unify(s, ka, kb, &k))
        return rl_shape_fail(s, "inputs %u and %u have %lld and %lld to sum over", ia, ib, (long long)ka, (long long)kb);
    return rl_shape_set(s, 0, t, 2, d);
}

rl_status rl_rule_gemm(rl_shaper *s) {
    return gemm_of(s, 0, 1, shared_dtype(s));
}

rl_status rl_rule_qgemm(rl_shaper *s) {
    const rl_valinfo *zero = input(s, 8);
    return gemm_of(s, 0, 3, zero ? zero->dtype : RL_F32);
}

/* How often ... stands there. */
static uint32_t count_dots(rl_span term) {
    uint32_t n = 0;
    for (size_t k = 0; k < term.n; k++) n += term.p[k] == '.' && (k == 0 || term.p[k - 1] != '.');
    return n;
}

/* The sizes of an Einsum's letters, and of what its ... stands for (right-aligned, nell of them). */
typedef struct {
    rl_dim size[128];
    uint32_t count[128];
    rl_dim *ell;
    uint32_t nell;
    bool dots, lost; /* lost: an input with ... has no known rank */
} einsum;

/* As in NumPy and onnxruntime a size of 1 is broadcast, and so may be what a symbol stands for. */
static void meet_letter(const rl_shaper *s, einsum *e, uint8_t c, rl_dim d) {
    rl_dim old = e->size[c];
    if (e->count[c]++ == 0) e->size[c] = d;
    else if (!rl_shape_broadcast(s, old, d, &e->size[c])) e->size[c] = old;
}

static rl_status einsum_input(const rl_shaper *s, einsum *e, uint32_t i, rl_span term) {
    const rl_valinfo *x = input(s, i);
    uint32_t letters = 0, at = 0, dots = count_dots(term);
    for (size_t k = 0; k < term.n; k++) letters += rl_is_letter(term.p[k]);
    if (dots > 1) return rl_shape_fail(s, "equation has '...' %u times in term %u", dots, i);
    if (ranked(x) && (x->rank < letters || (!dots && x->rank != letters)))
        return rl_shape_fail(s, "input %u has rank %u, wants %u", i, x->rank, letters);
    uint32_t nell = ranked(x) ? x->rank - letters : 0;
    for (size_t k = 0; k < term.n; k++) {
        if (rl_is_letter(term.p[k])) meet_letter(s, e, term.p[k], ranked(x) ? x->dim[at++] : UNKNOWN);
        if (term.p[k] != '.' || (k && term.p[k - 1] == '.')) continue;
        if (nell > e->nell) {
            rl_dim *wide = new_dims(s, nell);
            for (uint32_t j = 0; j < nell; j++) wide[j] = j < nell - e->nell ? 1 : e->ell[j - (nell - e->nell)];
            e->ell = wide;
            e->nell = nell;
        }
        for (uint32_t j = 0; j < nell; j++) {
            rl_dim *d = &e->ell[e->nell - nell + j];
            if (!rl_shape_broadcast(s, *d, x->dim[at++], d)) return rl_shape_fail(s, "dims of '...' do not broadcast");
        }
        e->dots = true;
        e->lost |= !ranked(x);
    }
    return RL_OK;
}

static rl_status einsum_output(rl_shaper *s, const einsum *e, rl_span out) {
    rl_dim *d = new_dims(s, e->nell + (uint32_t)out.n);
    uint32_t n = 0;
    if (count_dots(out) > 1) return rl_shape_fail(s, "equation has '...' more than once in its result");
    for (size_t k = 0; k < out.n; k++) {
        if (rl_is_letter(out.p[k])) {
            d[n++] = e->size[out.p[k]];
        } else if (out.p[k] == '.' && (k == 0 || out.p[k - 1] != '.')) {
            if (e->lost) return set_unranked(s, 0, dtype_of(input(s, 0)));
            for (uint32_t j = 0; j < e->nell; j++) d[n++] = e->ell[j];
        }
    }
    return rl_shape_set(s, 0, dtype_of(input(s, 0)), n, d);
}

/* With no "->": first ..., then the letters that come once, sorted. */
static rl_span implicit_output(const rl_shaper *s, const einsum *e) {
    uint8_t *p = rl_new(s->tmp, uint8_t, 64);
    size_t n = 0;
    if (e->dots) p[n++] = '.';
    for (int c = 'A'; c <= 'z'; c++)
        if (e->count[c] == 1) p[n++] = (uint8_t)c;
    return (rl_span){p, n};
}

rl_status rl_rule_einsum_rule(rl_shaper *s) {
    const rl_attr *a = rl_attr_find(s->n, "equation");
    if (!a || a->kind != RL_ATTR_STRING || a->s.n > 65536) return rl_shape_fail(s, "has no equation");
    einsum *e = rl_new(s->tmp, einsum, 1);
    for (uint32_t c = 0; c < 128; c++) e->size[c] = UNKNOWN;
    rl_span q = a->s;
    size_t end = 0, from = 0;
    while (end < q.n && q.p[end] != '-') end++;
    uint32_t i = 0;
    for (size_t k = 0; k <= end; k++) {
        if (k < end && q.p[k] != ',') continue;
        RL_TRY(einsum_input(s, e, i++, (rl_span){q.p + from, k - from}));
        from = k + 1;
    }
    if (i != s->n->nin) return rl_shape_fail(s, "equation has %u terms for %u inputs", i, s->n->nin);
    return einsum_output(s, e, end + 2 <= q.n ? (rl_span){q.p + end + 2, q.n - end - 2} : implicit_output(s, e));
}

rl_status rl_rule_det(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    RL_TRY(want_least_rank(s, 0, 2));
    return ranked(x) ? rl_shape_set(s, 0, x->dtype, x->rank - 2, x->dim) : set_unranked(s, 0, dtype_of(x));
}

/* ---- recurrent ---- */

rl_status rl_rule_recurrent(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *r = input(s, 2);
    RL_TRY(want_rank(s, 0, 3));
    RL_TRY(want_rank(s, 1, 3));
    RL_TRY(want_rank(s, 2, 3));
    int64_t h = rl_attr_int(s->n, "hidden_size", -1);
    bool batch_first = rl_attr_int(s->n, "layout", 0) != 0;
    rl_dim hidden = h >= 0 ? h : ranked(r) ? r->dim[2] : UNKNOWN, dirs = rl_attr_is(s->n, "direction", "bidirectional") ? 2 : 1;
    rl_dim steps = ranked(x) ? x->dim[batch_first] : UNKNOWN, batch = ranked(x) ? x->dim[!batch_first] : UNKNOWN;
    rl_dim y[4] = {steps, dirs, batch, hidden}, last[3] = {dirs, batch, hidden};
    rl_dim y_batch_first[4] = {batch, steps, dirs, hidden}, last_batch_first[3] = {batch, dirs, hidden};
    RL_TRY(rl_shape_set(s, 0, dtype_of(x), 4, batch_first ? y_batch_first : y));
    for (uint32_t i = 1; i < s->n->nout; i++) RL_TRY(rl_shape_set(s, i, dtype_of(x), 3, batch_first ? last_batch_first : last));
    return RL_OK;
}

/* ---- attention ---- */

static rl_dim divided(const rl_shaper *s, rl_dim d, int64_t k) {
    return rl_shape_floordiv(s, d, k);
}

/* An attribute that is a size. */
static rl_dim size_attr(const rl_shaper *s, const char *name) {
    int64_t n = rl_attr_int(s->n, name, -1);
    return n >= 0 ? n : UNKNOWN;
}

/* Q, K, V as [B,S,heads*size] or [B,heads,S,size]. */
rl_status rl_rule_attention(rl_shaper *s) {
    const rl_valinfo *q = input(s, 0), *k = input(s, 1), *v = input(s, 2), *past = input(s, 4);
    rl_dim qh = size_attr(s, "q_num_heads"), kh = size_attr(s, "kv_num_heads");
    for (uint32_t i = 1; i < s->n->nout; i++) RL_TRY(rl_shape_set(s, i, dtype_of(input(s, i == 2 ? 2 : 0)), RL_NORANK, NULL));
    if (!ranked(q)) return set_unranked(s, 0, dtype_of(q));
    if (q->rank != 3 && q->rank != 4) return rl_shape_fail(s, "input 0 has rank %u, wants 3 or 4", q->rank);
    RL_TRY(want_rank(s, 1, q->rank));
    RL_TRY(want_rank(s, 2, q->rank));
    bool flat = q->rank == 3;
    uint32_t at = flat ? 1 : 2;
    rl_dim heads = flat ? qh : q->dim[1], kv_heads = flat ? kh : dim_at(k, 1);
    rl_dim size = flat ? divided(s, dim_at(k, 2), kh) : dim_at(k, 3), v_size = flat ? divided(s, dim_at(v, 2), kh) : dim_at(v, 3);
    rl_dim total = dim_at(k, at);
    if (past) total = rl_shape_add(s, total, dim_at(past, 2));
    rl_dim y3[3] = {q->dim[0], q->dim[1], rl_shape_mul(s, v_size, heads)}, y4[4] = {q->dim[0], q->dim[1], q->dim[2], v_size};
    rl_dim key[4] = {q->dim[0], kv_heads, total, size}, value[4] = {q->dim[0], kv_heads, total, v_size};
    rl_dim score[4] = {q->dim[0], heads, q->dim[at], total};
    RL_TRY(rl_shape_set(s, 0, q->dtype, q->rank, flat ? y3 : y4));
    RL_TRY(rl_shape_set(s, 1, q->dtype, 4, key));
    RL_TRY(rl_shape_set(s, 2, dtype_of(v), 4, value));
    return rl_shape_set(s, 3, q->dtype, 4, score);
}

rl_status rl_rule_linear_attention(rl_shaper *s) {
    const rl_valinfo *q = input(s, 0), *k = input(s, 1), *v = input(s, 2), *past = input(s, 3);
    rl_dim qh = size_attr(s, "q_num_heads"), kh = size_attr(s, "kv_num_heads");
    for (uint32_t i = 0; i < 3; i++) RL_TRY(want_rank(s, i, 3));
    rl_dim size = divided(s, dim_at(k, 2), kh), v_size = divided(s, dim_at(v, 2), kh), lead[2] = {UNKNOWN, UNKNOWN};
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t j = 0; j < (i == 3 ? 1 : 2); j++) /* the state has no time */
            if (!rl_shape_unify(s, lead[j], dim_at(input(s, i), j), &lead[j])) return rl_shape_fail(s, "inputs differ in dim %u", j);
    rl_dim y[3] = {lead[0], lead[1], rl_shape_mul(s, v_size, qh)}, state[4] = {lead[0], kh, size, v_size};
    RL_TRY(rl_shape_set(s, 0, dtype_of(q), 3, y));
    return rl_shape_set(s, 1, past ? past->dtype : dtype_of(q), 4, state);
}

/* com.microsoft Attention and QAttention: x [B,S,K], weights [K, q+k+v]. */
rl_status rl_rule_ms_attention(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *w = input(s, 1), *bias = input(s, 2), *scale = input(s, 3);
    const rl_attr *sizes = ints_attr(s, "qkv_hidden_sizes");
    rl_dim d[3] = {dim_at(x, 0), dim_at(x, 1), divided(s, dim_at(w, 1), 3)};
    if (!w) d[2] = divided(s, dim_at(bias, 0), 3);
    if (sizes && sizes->n == 3) d[2] = sizes->ints[2] >= 0 ? sizes->ints[2] : UNKNOWN;
    rl_dtype t = s->n->op == RL_OP_ms_QAttention ? dtype_of(scale) : dtype_of(x);
    RL_TRY(want_rank(s, 0, 3));
    RL_TRY(set_unranked(s, 1, t));
    return rl_shape_set(s, 0, t, 3, d);
}

/* Query [B,S,H] or packed [B,S,heads,3,size]; value [B,L,H] or [B,heads,L,size], or packed with the key [B,L,heads,2,size]. */
rl_status rl_rule_multi_head_attention(rl_shaper *s) {
    const rl_valinfo *q = input(s, 0), *k = input(s, 1), *v = input(s, 2);
    rl_dim d[3] = {dim_at(q, 0), dim_at(q, 1), UNKNOWN};
    for (uint32_t i = 1; i < 3; i++) RL_TRY(set_unranked(s, i, dtype_of(q)));
    if (!ranked(q)) return rl_shape_set(s, 0, dtype_of(q), 3, d);
    if (q->rank == 5) d[2] = rl_shape_mul(s, q->dim[2], q->dim[4]);
    else if (ranked(v) && v->rank == 3) d[2] = v->dim[2];
    else if (ranked(v) && v->rank == 4) d[2] = rl_shape_mul(s, v->dim[1], v->dim[3]);
    else if (!v && ranked(k) && k->rank == 5) d[2] = rl_shape_mul(s, k->dim[2], k->dim[4]);
    return rl_shape_set(s, 0, q->dtype, 3, d);
}

/* Without a key the query holds all three. Outputs 1 and 2 are key and value with those of the past. */
rl_status rl_rule_group_query_attention(rl_shaper *s) {
    const rl_valinfo *q = input(s, 0);
    rl_dim h = size_attr(s, "num_heads"), kv = size_attr(s, "kv_num_heads");
    rl_dim all = input(s, 1) ? h : rl_shape_add(s, h, rl_shape_mul(s, 2, kv)), size = divided(s, dim_at(q, 2), all);
    rl_dim y[3] = {dim_at(q, 0), dim_at(q, 1), rl_shape_mul(s, size, h)}, present[4] = {dim_at(q, 0), kv, UNKNOWN, size};
    if (ranked(q) && q->rank != 3) return rl_rule_same(s);
    for (uint32_t i = 1; i < 3; i++) RL_TRY(rl_shape_set(s, i, dtype_of(q), 4, present));
    return input(s, 1) ? rl_rule_same(s) : rl_shape_set(s, 0, dtype_of(q), 3, y);
}
