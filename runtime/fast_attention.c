/* Attention that was joined from its nodes (fuse_attention.c), and ONNX's own op: see attention.h. */
#include <math.h>

#include "attention.h"
#include "attention_op.h"
#include "fast.h"
#include "kernels_fast.h"

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

/* What the reference kernel alone does: past keys, lengths, scores that are wanted, a cap, windows, other types; masks of fewer keys. */
static bool is_plain(const rl_call *c) {
    for (uint32_t i = 0; i < 3; i++) {
        const rl_tensor *x = rl_call_in(c, i);
        if (!x || x->kind != RL_TENSOR || x->dtype != RL_F32 || (x->rank != 3 && x->rank != 4) || rl_numel(x) == 0)
            return false;
    }
    const rl_tensor *mask = rl_call_in(c, 3), *k = rl_call_in(c, 1);
    if (mask && (mask->kind != RL_TENSOR || (mask->dtype != RL_F32 && mask->dtype != RL_BOOL))) return false;
    if (mask && mask->rank && mask->dim[mask->rank - 1] != k->dim[k->rank - 2]) return false; /* of fewer keys: the others are not seen */
    for (uint32_t i = 4; i < 7; i++)
        if (rl_call_in(c, i)) return false;
    for (uint32_t i = 1; i < 4; i++)
        if (rl_call_wants(c, i)) return false;
    return rl_attr_float(c->node, "softcap", 0) == 0 && rl_attr_int(c->node, "left_window_size", -1) < 0
           && rl_attr_int(c->node, "right_window_size", -1) < 0;
}

/* [batch, heads, ...] as [batch, key heads, group, ...]; what there is one of for a group is repeated. */
static rl_tensor grouped(const rl_attention_op *o, const rl_tensor *t) {
    rl_tensor x = rl_attention_grouped(o, t);
    if (x.dim[2] == 1) x.dim[2] = o->heads / o->key_heads, x.stride[2] = 0;
    return x;
}

void rl_attention_fast(rl_call *c, const rl_attention_op *o, const rl_tensor *mask) {
    static const int64_t turn[] = {0, 1, 2, 4, 3};
    rl_attention a = {.q = grouped(o, &o->q), .k = grouped(o, &o->k), .v = grouped(o, &o->v), .scale = (float)o->scale, .causal = o->sight.right == 0,
                      .past = o->sight.past, .blind_is_zero = true};
    a.k = rl_view_transpose(&a.k, turn);
    if (mask)
        a.op[a.nop++] = (rl_score_op){.op = mask->dtype == RL_BOOL ? RL_ROW_COPY : RL_ROW_ADD, .keep = true, .other = -INFINITY, .by = grouped(o, mask)};
    rl_tensor y = rl_attention_output(c, o);
    a.y = grouped(o, &y);
    c->step->ran = "attention";
    rl_attention_run(c->rt, &a);
}

rl_status rl_fast_attention_op(rl_call *c) {
    rl_attention_op o;
    rl_tensor mask = {0};
    if (!is_plain(c)) return rl_ref_attention(c);
    RL_TRY(rl_attention_read(c, &o));
    if (rl_call_in(c, 3)) RL_TRY(rl_attention_mask(c, &o, rl_call_in(c, 3), &mask));
    rl_attention_fast(c, &o, rl_call_in(c, 3) ? &mask : NULL);
    return RL_OK;
}
