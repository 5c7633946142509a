/* Attention that was joined from its nodes (fuse_attention.c), and ONNX's own op: see attention.h. */
#include <math.h>

#include "attention.h"
#include "attention_op.h"
#include "fast.h"
#include "fuse.h"
#include "kernels_fast.h"
#include "ref_matmul.h"

rl_status rl_fast_attention(rl_call *c) {
    rl_attention a;
    RL_TRY(rl_joined_read(c, c->in, &a));
    c->step->ran = "attention";
    if (rl_numel(&a.y) == 0) return RL_OK;
    if (rl_numel(&a.v) == 0) rl_fill(c->rt, &a.y, &(float){0}); /* no keys */
    else rl_attention_run(c->rt, &a);
    return RL_OK;
}

/* ---- Attention ---- */

/* What the reference kernel alone does: past keys, lengths, scores that are wanted, a cap, windows, other types. */
static bool is_plain(const rl_call *c) {
    for (uint32_t i = 0; i < 3; i++) {
        const rl_tensor *x = rl_call_in(c, i);
        if (!x || x->kind != RL_TENSOR || x->dtype != RL_F32 || (x->rank != 3 && x->rank != 4) || rl_numel(x) == 0)
            return false;
    }
    const rl_tensor *mask = rl_call_in(c, 3);
    if (mask && (mask->kind != RL_TENSOR || (mask->dtype != RL_F32 && mask->dtype != RL_BOOL))) return false;
    for (uint32_t i = 4; i < 7; i++)
        if (rl_call_in(c, i)) return false;
    for (uint32_t i = 1; i < 4; i++)
        if (rl_call_wants(c, i)) return false;
    return rl_attr_float(c->node, "softcap", 0) == 0 && rl_attr_int(c->node, "left_window_size", -1) < 0
           && rl_attr_int(c->node, "right_window_size", -1) < 0;
}

/* [batch, heads, ...] as [batch, key heads, group, ...]; a group of 1 is repeated. */
static rl_tensor grouped(const rl_tensor *t, int64_t key_heads, int64_t group) {
    rl_tensor x = *t;
    bool own = t->dim[1] != key_heads || group == 1;
    x.rank = 5;
    x.dim[1] = key_heads, x.stride[1] = t->stride[1] * (own ? group : 1);
    x.dim[2] = group, x.stride[2] = own ? t->stride[1] : 0;
    for (uint32_t i = 2; i < 4; i++) x.dim[i + 1] = t->dim[i], x.stride[i + 1] = t->stride[i];
    return x;
}

rl_status rl_fast_attention_op(rl_call *c) {
    static const int64_t swap[] = {0, 2, 1, 3}, turn[] = {0, 1, 2, 4, 3};
    rl_tensor q, k, v, y, mask;
    if (!is_plain(c)) return rl_ref_attention(c);
    int64_t key_heads = rl_attr_int(c->node, "kv_num_heads", 0);
    RL_TRY(rl_attention_heads(c, 0, rl_attr_int(c->node, "q_num_heads", 0), &q));
    RL_TRY(rl_attention_heads(c, 1, key_heads, &k));
    RL_TRY(rl_attention_heads(c, 2, key_heads, &v));
    int64_t batch = q.dim[0], heads = q.dim[1], m = q.dim[2], n = k.dim[2], w = v.dim[3];
    key_heads = k.dim[1];
    bool fits = k.dim[0] == batch && v.dim[0] == batch && v.dim[1] == key_heads && v.dim[2] == n && k.dim[3] == q.dim[3]
                && heads % key_heads == 0;
    const rl_tensor *given = rl_call_in(c, 3); /* shorter than the keys, also of one: the others are not seen */
    if (!fits || (given && given->rank && given->dim[given->rank - 1] != n)
        || (given && !rl_view_expand(given, 4, (int64_t[]){batch, heads, m, n}, &mask)))
        return rl_ref_attention(c);
    rl_attention a = {.scale = rl_attr_float(c->node, "scale", 1 / sqrtf((float)q.dim[3])),
                      .causal = rl_attr_int(c->node, "is_causal", 0) != 0,
                      .blind_is_zero = true};
    bool flat = rl_call_in(c, 0)->rank == 3;
    if (flat) {
        rl_view_reshape(rl_call_make(c, 0, RL_F32, 3, (int64_t[]){batch, m, heads * w}), 4,
                        (int64_t[]){batch, m, heads, w}, &y);
        y = rl_view_transpose(&y, swap);
    } else {
        y = *rl_call_make(c, 0, RL_F32, 4, (int64_t[]){batch, heads, m, w});
    }
    int64_t group = heads / key_heads;
    a.q = grouped(&q, key_heads, group), a.k = grouped(&k, key_heads, group), a.v = grouped(&v, key_heads, group),
    a.y = grouped(&y, key_heads, group);
    a.k = rl_view_transpose(&a.k, turn);
    if (given)
        a.op[a.nop++] = (rl_score_op){.op = mask.dtype == RL_BOOL ? RL_ROW_COPY : RL_ROW_ADD,
                                      .keep = true,
                                      .other = -INFINITY,
                                      .by = grouped(&mask, key_heads, group)};
    c->step->ran = "attention";
    rl_attention_run(c->rt, &a);
    return RL_OK;
}
