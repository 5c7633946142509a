/* Attention and RotaryEmbedding as their nodes say them: see attention_op.h. */
#include "attention_op.h"

#include <math.h>

#include "device.h"
#include "fast.h"
#include "ref_attention.h"

rl_tensor rl_attention_split(const rl_tensor *x, int64_t heads) {
    static const int64_t swap[] = {0, 2, 1, 3};
    rl_tensor y = *x;
    if (x->rank == 4) return y;
    y.rank = 4;
    y.dim[2] = heads, y.dim[3] = x->dim[2] / RL_MAX(heads, 1);
    y.stride[2] = x->stride[2] * y.dim[3], y.stride[3] = x->stride[2];
    return rl_view_transpose(&y, swap);
}

static const rl_tensor *operand(rl_call *c, uint32_t i) {
    return c->rt->on == c->rt->device ? rl_call_here(c, i) : rl_call_in(c, i);
}

rl_status rl_attention_heads(rl_call *c, uint32_t i, int64_t heads, rl_tensor *out) {
    const rl_tensor *x = rl_call_in(c, i);
    if (x->rank != 3 && x->rank != 4) return rl_call_fail(c, RL_EMODEL, "input %u has rank %u, wants 3 or 4", i, x->rank);
    if (x->rank == 3 && (heads < 1 || x->dim[2] % heads))
        return rl_call_fail(c, RL_EMODEL, "%lld heads in a dim of %lld", (long long)heads, (long long)x->dim[2]);
    *out = rl_attention_split(operand(c, i), heads);
    return RL_OK;
}

/* ---- Attention ---- */

rl_status rl_attention_check(const rl_call *c, rl_attention_op *a) {
    const rl_tensor *q = &a->q, *k = &a->k, *v = &a->v;
    a->batch = q->dim[0], a->heads = q->dim[1], a->queries = q->dim[2], a->key_heads = k->dim[1], a->keys = k->dim[2];
    if (k->dim[0] != a->batch || v->dim[0] != a->batch || v->dim[1] != a->key_heads || v->dim[2] != a->keys || k->dim[3] != q->dim[3])
        return rl_call_fail(c, RL_EMODEL, "query, key and value do not fit");
    if (a->key_heads < 1 || a->heads % a->key_heads)
        return rl_call_fail(c, RL_EMODEL, "%lld query heads for %lld key heads", (long long)a->heads, (long long)a->key_heads);
    a->scale = rl_attr_find(c->node, "scale") ? (double)rl_attr_float(c->node, "scale", 1) : 1 / sqrt((double)q->dim[3]);
    return RL_OK;
}

rl_status rl_attention_past(rl_call *c, uint32_t slot, uint32_t i, rl_tensor *t, int64_t *past) {
    const rl_tensor *old = rl_call_in(c, slot);
    *past = 0;
    if (!old) {
        if (rl_call_wants(c, i)) rl_call_share(c, i, *t);
        return RL_OK;
    }
    int64_t n = old->dim[2], dim[4] = {t->dim[0], t->dim[1], n + t->dim[2], t->dim[3]};
    if (old->rank != 4 || old->dtype != t->dtype || old->dim[0] != dim[0] || old->dim[1] != dim[1] || old->dim[3] != dim[3])
        return rl_call_fail(c, RL_EMODEL, "input %u does not fit the new keys or values", slot);
    old = operand(c, slot);
    rl_tensor *y = rl_call_make(c, i, t->dtype, 4, dim);
    rl_tensor first = rl_view_slice(y, 2, 0, 1, n), rest = rl_view_slice(y, 2, n, 1, t->dim[2]);
    rl_tensor_move(c->rt, &first, old);
    rl_tensor_move(c->rt, &rest, t);
    *t = *y;
    *past = n;
    return RL_OK;
}

rl_status rl_attention_read(rl_call *c, rl_attention_op *a) {
    const rl_nodeinfo *n = c->node;
    int64_t past, key_heads = rl_attr_int(n, "kv_num_heads", 0);
    RL_TRY(rl_call_need(c, 3));
    *a = (rl_attention_op){.flat = rl_call_in(c, 0)->rank == 3, .cap = rl_attr_float(n, "softcap", 0), .mode = rl_attr_int(n, "qk_matmul_output_mode", 0)};
    RL_TRY(rl_attention_heads(c, 0, rl_attr_int(n, "q_num_heads", 0), &a->q));
    RL_TRY(rl_attention_heads(c, 1, key_heads, &a->k));
    RL_TRY(rl_attention_heads(c, 2, key_heads, &a->v));
    RL_TRY(rl_attention_past(c, 4, 1, &a->k, &a->sight.past));
    RL_TRY(rl_attention_past(c, 5, 2, &a->v, &past));
    RL_TRY(rl_attention_check(c, a));
    if (a->mode < 0 || a->mode > 3) return rl_call_fail(c, RL_EMODEL, "qk_matmul_output_mode is %lld", (long long)a->mode);
    a->sight.queries = a->queries, a->sight.keys = a->keys;
    a->sight.left = rl_seen_bounded(rl_attr_int(n, "left_window_size", -1));
    a->sight.right = rl_attr_int(n, "is_causal", 0) ? 0 : rl_seen_bounded(rl_attr_int(n, "right_window_size", -1));
    return RL_OK;
}

rl_status rl_attention_mask(const rl_call *c, rl_attention_op *a, const rl_tensor *m, rl_tensor *view) {
    if (m->rank) a->sight.keys = RL_MIN(m->dim[m->rank - 1], a->keys);
    if (rl_view_expand(m, 4, (int64_t[]){a->batch, a->heads, a->queries, a->sight.keys}, view)) return RL_OK;
    return rl_call_fail(c, RL_EMODEL, "the mask does not broadcast to the scores");
}

rl_status rl_attention_lengths(const rl_call *c, const rl_attention_op *a) {
    int64_t n = rl_numel(rl_call_in(c, 6));
    if (n != a->batch) return rl_call_fail(c, RL_EMODEL, "%lld lengths for a batch of %lld", (long long)n, (long long)a->batch);
    return a->sight.past ? rl_call_fail(c, RL_EMODEL, "nonpad_kv_seqlen goes without past keys") : RL_OK;
}

rl_tensor rl_attention_grouped(const rl_attention_op *a, const rl_tensor *t) {
    rl_tensor y = *t;
    int64_t group = t->dim[1] / a->key_heads;
    y.rank = 5;
    y.dim[1] = a->key_heads, y.stride[1] = t->stride[1] * group;
    y.dim[2] = group, y.stride[2] = t->stride[1];
    for (uint32_t i = 2; i < 4; i++) y.dim[i + 1] = t->dim[i], y.stride[i + 1] = t->stride[i];
    return y;
}

rl_tensor rl_attention_output(rl_call *c, const rl_attention_op *a) {
    int64_t size = a->v.dim[3], dim[4] = {a->batch, a->heads, a->queries, size}, flat[3] = {a->batch, a->queries, a->heads * size};
    if (!a->flat) return *rl_call_make_in(c, 0, a->q.dtype, 4, dim, rl_order_for(c->step->order, 4));
    return rl_attention_split(rl_call_make(c, 0, a->q.dtype, 3, flat), a->heads);
}

/* ---- RotaryEmbedding ---- */

/* Of ONNX: X, cos, sin, position_ids.  Of com.microsoft: X, position_ids, cos, sin. */
rl_status rl_rotary_read(rl_call *c, rl_rotary_op *r) {
    bool other = c->arg == RL_ROTARY_MICROSOFT;
    RL_TRY(rl_call_need(c, other ? 4 : 3));
    *r = (rl_rotary_op){.cosine = other ? 2 : 1, .sine = other ? 3 : 2, .position = other ? 1 : 3, .interleaved = rl_attr_int(c->node, "interleaved", 0) != 0};
    const rl_tensor *x = rl_call_in(c, 0), *cosine = rl_call_in(c, r->cosine), *position = rl_call_in(c, r->position);
    int64_t part = rl_attr_int(c->node, "rotary_embedding_dim", 0), heads = rl_attr_int(c->node, "num_heads", 0);
    if (cosine->rank < 2 || !rl_same_dims(cosine, rl_call_in(c, r->sine))) return rl_call_fail(c, RL_EMODEL, "caches of cosines and sines that differ");
    r->half = cosine->dim[cosine->rank - 1];
    if (x->rank == 3 && other && heads == 0 && r->half) heads = x->dim[2] / (2 * r->half);
    RL_TRY(rl_attention_heads(c, 0, heads, &r->x));
    int64_t size = r->x.dim[3], ntoken = r->x.dim[0] * r->x.dim[2], n = position ? rl_numel(position) : 0;
    if ((part ? part : size) != 2 * r->half)
        return rl_call_fail(c, RL_EMODEL, "%lld angles for a size of %lld", (long long)r->half, (long long)(part ? part : size));
    if (2 * r->half > size) return rl_call_fail(c, RL_EMODEL, "more angles than pairs");
    r->positions = rl_numel(cosine) / RL_MAX(r->half, 1);
    r->one_position = other && n == 1;
    if (position && !r->one_position && n != ntoken) return rl_call_fail(c, RL_EMODEL, "%lld positions for %lld tokens", (long long)n, (long long)ntoken);
    return RL_OK;
}

rl_tensor rl_rotary_heads(const rl_rotary_op *r, const rl_tensor *t) {
    return rl_attention_split(t, r->x.dim[1]);
}
