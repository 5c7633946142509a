/* LinearAttention, whose keys and values add up in a state, and RotaryEmbedding. */
#include <math.h>
#include <string.h>

#include "attention_op.h"
#include "lines.h"

/* ---- LinearAttention ---- */

/* All in f32. decay: one per head or per element of its key, NULL: none. */
typedef struct {
    int64_t batch, length, heads, key_heads, key, value, ndecay, nbeta; /* key, value: sizes of a head's */
    float scale;
    const float *q, *k, *v, *decay, *beta;
    float *state, *out;
} recurrence;

/* One token of one key head: S = exp(g) S + k (beta (v - S' k))', o = scale * S' q for each of the head's queries. */
static void step(const recurrence *r, int64_t token, int64_t head, float *s) {
    const float *k = r->k + (token * r->key_heads + head) * r->key, *v = r->v + (token * r->key_heads + head) * r->value;
    int64_t group = r->heads / r->key_heads;
    for (int64_t d = 0; r->decay && d < r->key; d++) {
        int64_t at = r->ndecay == r->key_heads ? head : head * r->key + d;
        rl_row_scale_f32(s + d * r->value, s + d * r->value, r->value, expf(r->decay[token * r->ndecay + at]), 0);
    }
    float beta = r->beta ? r->beta[token * r->nbeta + (r->nbeta == 1 ? 0 : head)] : 1;
    for (int64_t m = 0; m < r->value; m++) {
        float had = 0;
        for (int64_t d = 0; r->beta && d < r->key; d++) had += s[d * r->value + m] * k[d];
        for (int64_t d = 0; d < r->key; d++) s[d * r->value + m] += k[d] * (beta * (v[m] - had));
    }
    for (int64_t h = head * group; h < (head + 1) * group; h++) {
        const float *q = r->q + (token * r->heads + h) * r->key;
        float *o = r->out + (token * r->heads + h) * r->value;
        memset(o, 0, (size_t)r->value * sizeof *o);
        for (int64_t d = 0; d < r->key; d++)
            for (int64_t m = 0; m < r->value; m++) o[m] += r->scale * q[d] * s[d * r->value + m];
    }
}

/* Heads of all batches. */
static void do_heads(void *arg, int64_t from, int64_t to) {
    const recurrence *r = arg;
    for (int64_t i = from; i < to; i++)
        for (int64_t t = 0; t < r->length; t++)
            step(r, i / r->key_heads * r->length + t, i % r->key_heads, r->state + i * r->key * r->value);
}

/* [batch, length, ...]: the last dim; RL_EMODEL when the others do not fit. */
static rl_status last_dim(const rl_call *c, uint32_t i, const recurrence *r, int64_t *n) {
    const rl_tensor *x = rl_call_in(c, i);
    if (x->rank != 3 || x->dim[0] != r->batch || x->dim[1] != r->length)
        return rl_call_fail(c, RL_EMODEL, "input %u does not fit the queries", i);
    *n = x->dim[2];
    return RL_OK;
}

static rl_status read_sizes(const rl_call *c, recurrence *r, bool gates, bool corrects) {
    int64_t nq = 0, nk = 0, nv = 0;
    const rl_tensor *q = rl_call_in(c, 0);
    r->batch = q->dim[0], r->length = q->rank > 1 ? q->dim[1] : 0;
    r->heads = rl_attr_int(c->node, "q_num_heads", 0), r->key_heads = rl_attr_int(c->node, "kv_num_heads", 0);
    RL_TRY(last_dim(c, 0, r, &nq));
    RL_TRY(last_dim(c, 1, r, &nk));
    RL_TRY(last_dim(c, 2, r, &nv));
    if (r->heads < 1 || r->key_heads < 1 || r->heads % r->key_heads || nq % r->heads || nk % r->key_heads || nv % r->key_heads ||
            nq / r->heads != nk / r->key_heads)
        return rl_call_fail(c, RL_EMODEL, "%lld query heads and %lld key heads do not fit the inputs", (long long)r->heads,
                (long long)r->key_heads);
    r->key = nk / r->key_heads, r->value = nv / r->key_heads;
    if (gates != (rl_call_in(c, 4) != NULL) || corrects != (rl_call_in(c, 5) != NULL))
        return rl_call_fail(c, RL_EMODEL, "decay and beta do not fit the update_rule");
    if (gates) RL_TRY(last_dim(c, 4, r, &r->ndecay));
    if (corrects) RL_TRY(last_dim(c, 5, r, &r->nbeta));
    if (gates && r->ndecay != r->key_heads && r->ndecay != nk)
        return rl_call_fail(c, RL_EMODEL, "decay has a last dim of %lld", (long long)r->ndecay);
    if (corrects && r->nbeta != r->key_heads && r->nbeta != 1)
        return rl_call_fail(c, RL_EMODEL, "beta has a last dim of %lld", (long long)r->nbeta);
    return RL_OK;
}

static const float *floats(rl_call *c, uint32_t i) {
    return rl_call_in(c, i) ? rl_data(rl_call_as(c, i, RL_F32)) : NULL;
}

rl_status rl_ref_linear_attention(rl_call *c) {
    recurrence r = {.batch = 0};
    RL_TRY(rl_call_need(c, 3));
    const rl_attr *rule = rl_attr_find(c->node, "update_rule");
    bool linear = rl_attr_is(c->node, "update_rule", "linear"), gated = rl_attr_is(c->node, "update_rule", "gated"),
         delta = rl_attr_is(c->node, "update_rule", "delta"), both = !rule || rl_attr_is(c->node, "update_rule", "gated_delta");
    if (!linear && !gated && !delta && !both) return rl_call_fail(c, RL_EMODEL, "an update_rule that is not known");
    RL_TRY(read_sizes(c, &r, gated || both, delta || both));
    float scale = rl_attr_float(c->node, "scale", 0);
    r.scale = scale != 0 ? scale : 1 / sqrtf((float)r.key);
    r.q = floats(c, 0), r.k = floats(c, 1), r.v = floats(c, 2), r.decay = floats(c, 4), r.beta = floats(c, 5);
    const rl_tensor *past = rl_call_in(c, 3);
    rl_dtype made = rl_call_in(c, 0)->dtype;
    int64_t dim[4] = {r.batch, r.key_heads, r.key, r.value};
    rl_tensor *y = rl_wide_make(c, 0, made, RL_F32, 3, (int64_t[]){r.batch, r.length, r.heads * r.value});
    rl_tensor *state = rl_wide_make(c, 1, past ? past->dtype : made, RL_F32, 4, dim);
    if (past && !rl_same_dims(past, state)) return rl_call_fail(c, RL_EMODEL, "the past state does not fit");
    r.out = rl_data(y), r.state = rl_data(state);
    memset(r.state, 0, rl_bytes_of(RL_F32, rl_numel(state)));
    if (past) rl_convert(c->rt, state, past, true);
    rl_parallel(c->rt, r.batch * r.key_heads, 1, do_heads, &r);
    rl_wide_done(c, 0, y);
    rl_wide_done(c, 1, state);
    return RL_OK;
}

/* ---- RotaryEmbedding ---- */

/* rl_rotary_op with x as [batch, length, heads, size], in f32. */
typedef struct {
    int64_t length, heads, size, half, positions;
    bool interleaved;
    const float *x, *cosine, *sine;
    const int64_t *position;       /* NULL, one per token, or (one_position) the first token's */
    bool one_position;
    float *y;
} rotation;

static void rotate(const rotation *r, int64_t token, int64_t row) {
    const float *cosine = r->cosine + row * r->half, *sine = r->sine + row * r->half;
    for (int64_t h = 0; h < r->heads; h++) {
        const float *x = r->x + (token * r->heads + h) * r->size;
        float *y = r->y + (token * r->heads + h) * r->size;
        for (int64_t i = 0; i < r->half; i++) {
            int64_t a = r->interleaved ? 2 * i : i, b = r->interleaved ? 2 * i + 1 : i + r->half;
            y[a] = cosine[i] * x[a] - sine[i] * x[b];
            y[b] = sine[i] * x[a] + cosine[i] * x[b];
        }
        memcpy(y + 2 * r->half, x + 2 * r->half, (size_t)(r->size - 2 * r->half) * sizeof *y);
    }
}

static rl_status run_rotation(const rl_call *c, const rotation *r, int64_t ntoken) {
    for (int64_t t = 0; t < ntoken; t++) {
        int64_t row = t;
        if (r->position) row = r->one_position ? r->position[0] + t % r->length : r->position[t];
        if (row < 0 || row >= r->positions)
            return rl_call_fail(c, RL_EMODEL, "position %lld of %lld", (long long)row, (long long)r->positions);
        rotate(r, t, row);
    }
    return RL_OK;
}

rl_status rl_ref_rotary(rl_call *c) {
    static const int64_t swap[] = {0, 2, 1, 3};
    rl_rotary_op o;
    RL_TRY(rl_rotary_read(c, &o));
    rl_tensor by_token = rl_view_transpose(&o.x, swap), *y = rl_call_temp(c, RL_F32, 4, by_token.dim);
    const rl_tensor *x = rl_call_in(c, 0), *position = rl_call_as(c, o.position, RL_I64);
    rotation r = {.interleaved = o.interleaved, .length = o.x.dim[2], .heads = o.x.dim[1], .size = o.x.dim[3], .half = o.half, .positions = o.positions,
                  .one_position = o.one_position, .x = rl_data(rl_dense_as(c, &by_token, RL_F32)), .y = rl_data(y), .cosine = rl_data(rl_call_as(c, o.cosine, RL_F32)),
                  .sine = rl_data(rl_call_as(c, o.sine, RL_F32)), .position = position ? rl_data(position) : NULL};
    RL_TRY(run_rotation(c, &r, o.x.dim[0] * r.length));
    rl_tensor target = rl_rotary_heads(&o, rl_call_make(c, 0, x->dtype, x->rank, x->dim));
    target = rl_view_transpose(&target, swap);
    rl_convert(c->rt, &target, y, true);
    return RL_OK;
}
