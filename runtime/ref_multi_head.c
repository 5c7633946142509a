/* onnxruntime's MultiHeadAttention; its Attention and QAttention are a product before it (spread.c).
 *
 * Query, key and value as ONNX's Attention has them, with a bias of columns; which keys are padding is told by numbers that are added to the scores. */
#include <math.h>

#include "attention_op.h"
#include "wide.h"

enum { QUERY, KEY, VALUE, BIAS, PADDING, SCORE_BIAS, PAST_KEY, PAST_VALUE, PAST_LENGTH, BEAMS };

static rl_status read_operands(rl_call *c, rl_attention_op *o) {
    rl_tensor *const to[] = {&o->q, &o->k, &o->v};
    for (uint32_t i = QUERY; i <= VALUE; i++) {
        if (!rl_call_in(c, i)) return rl_call_fail(c, RL_ELIMIT, "query, key and value in one tensor are not done here");
        RL_TRY(rl_attention_heads(c, i, rl_attr_int(c->node, "num_heads", 0), to[i]));
    }
    return RL_OK;
}

/* t plus the columns of the bias that begin at *from, in its own type. */
static rl_status add_bias(rl_call *c, const rl_tensor *bias, int64_t *from, rl_tensor *t) {
    int64_t width = t->dim[1] * t->dim[3];
    if (bias->rank != 1 || *from + width > bias->dim[0]) return rl_call_fail(c, RL_EMODEL, "a bias that does not fit the heads");
    rl_tensor columns = rl_view_slice(bias, 0, *from, 1, width), view, *sum = rl_call_temp(c, RL_F32, 4, t->dim), *y = sum;
    rl_view_reshape(&columns, 4, (int64_t[]){1, t->dim[1], 1, t->dim[3]}, &view);
    RL_TRY(rl_wide_sum(c, RL_F32, sum, t, &view));
    if (t->dtype != RL_F32) rl_convert(c->rt, y = rl_call_temp(c, t->dtype, 4, t->dim), sum, true);
    *t = *y;
    *from += width;
    return RL_OK;
}

/* ---- the mask ---- */

/* Which keys are no padding: ends[batch], or ends and then starts; [batch, keys]; [batch, queries, keys]. *rows: of a batch; 0: all are seen. */
static rl_status padding_form(rl_call *c, const rl_attention_op *o, const rl_tensor *m, bool *ends, int64_t *rows) {
    int64_t d0 = m->rank ? m->dim[0] : 0, d1 = m->rank > 1 ? m->dim[1] : 0;
    *ends = m->rank == 1 && (d0 == o->batch || d0 == 2 * o->batch);
    *rows = 1;
    if (*ends || (m->rank == 2 && d0 == o->batch && d1 == o->keys)) return RL_OK;
    if (m->rank == 2 && (d0 == o->batch || d0 == 1) && d1 == 1) *rows = 0;
    else if (m->rank == 3 && d0 == o->batch && d1 == o->queries && m->dim[2] == o->keys) *rows = o->queries;
    else return rl_call_fail(c, RL_ELIMIT, "a mask of rank %u in a form that is not known", m->rank);
    return RL_OK;
}

static rl_status read_padding(rl_call *c, const rl_attention_op *o, const rl_tensor **out) {
    const rl_tensor *m = rl_call_as(c, PADDING, RL_I64);
    float hidden = rl_attr_float(c->node, "mask_filter_value", -10000);
    bool ends;
    int64_t rows;
    *out = NULL;
    if (!m) return RL_OK;
    RL_TRY(padding_form(c, o, m, &ends, &rows));
    if (!rows) return RL_OK;
    const int64_t *x = rl_data(m), *start = ends && m->dim[0] == 2 * o->batch ? x + o->batch : NULL;
    rl_tensor *y = rl_call_temp(c, RL_F32, 4, (int64_t[]){o->batch, 1, rows, o->keys});
    float *p = rl_data(y);
    for (int64_t r = 0; r < o->batch * rows; r++)
        for (int64_t t = 0; t < o->keys; t++, p++)
            *p = (ends ? t < x[r] && (!start || t >= start[r]) : x[r * o->keys + t] > 0) ? 0 : hidden;
    *out = y;
    return RL_OK;
}

/* What is added to the scores; *out NULL: nothing. */
static rl_status read_mask(rl_call *c, const rl_attention_op *o, const rl_tensor **out) {
    const rl_tensor *padding, *bias = rl_call_in(c, SCORE_BIAS);
    RL_TRY(read_padding(c, o, &padding));
    *out = padding ? padding : bias ? rl_call_as(c, SCORE_BIAS, RL_F32) : NULL;
    if (!padding || !bias) return RL_OK;
    rl_tensor *sum = rl_call_temp(c, RL_F32, 4, (int64_t[]){o->batch, o->heads, o->queries, o->keys});
    *out = sum;
    return rl_wide_sum(c, RL_F32, sum, padding, bias);
}

/* ---- the op ---- */

static rl_status read_op(rl_call *c, rl_attention_op *o) {
    int64_t past, from = 0;
    RL_TRY(rl_call_need(c, 1));
    *o = (rl_attention_op){.flat = true};
    RL_TRY(read_operands(c, o));
    const rl_tensor *bias = rl_call_in(c, BIAS);
    if (bias) RL_TRY(add_bias(c, bias, &from, &o->q));
    if (bias && from < bias->dim[0]) RL_TRY(add_bias(c, bias, &from, &o->k));
    if (bias && from < bias->dim[0]) RL_TRY(add_bias(c, bias, &from, &o->v));
    RL_TRY(rl_attention_past(c, PAST_KEY, 1, &o->k, &o->sight.past));
    RL_TRY(rl_attention_past(c, PAST_VALUE, 2, &o->v, &past));
    RL_TRY(rl_attention_check(c, o));
    if (rl_attr_float(c->node, "scale", 0) == 0) o->scale = 1 / sqrt((double)o->q.dim[3]);
    o->sight.queries = o->queries, o->sight.keys = o->keys, o->sight.left = -1;
    o->sight.right = rl_attr_int(c->node, "unidirectional", 0) && o->queries > 1 ? 0 : -1;
    return RL_OK;
}

rl_status rl_ref_multi_head(rl_call *c) {
    rl_attention_op o;
    rl_tensor mask;
    const rl_tensor *added;
    if (rl_call_in(c, PAST_LENGTH) || rl_call_in(c, BEAMS) || rl_call_wants(c, 3))
        return rl_call_fail(c, RL_ELIMIT, "shared caches, beams and scores as an output are not done here");
    RL_TRY(read_op(c, &o));
    RL_TRY(read_mask(c, &o, &added));
    if (added) RL_TRY(rl_attention_mask(c, &o, added, &mask));
    bool fast = c->rt->fast && o.q.dtype == RL_F32 && rl_numel(&o.q) && rl_numel(&o.k) && rl_numel(&o.v);
    (fast ? rl_attention_fast : rl_attention_plain)(c, &o, added ? &mask : NULL);
    return RL_OK;
}
