/* Shape rules of ops that work element by element, broadcast, or reduce. */
#include "shape_rules.h"

#include <string.h>

/* ---- same shape ---- */

rl_status rl_rule_same(rl_shaper *s) {
    return set_like(s, 0, out_dtype(s, 0), input(s, 0));
}

/* All outputs, but with attribute dtype. */
rl_status rl_rule_same_dtype(rl_shaper *s) {
    return set_like(s, 0, attr_dtype(s, "dtype", dtype_of(input(s, 0))), input(s, 0));
}

rl_status rl_rule_cast(rl_shaper *s) {
    return set_like(s, 0, attr_dtype(s, "to", RL_UNDEF), input(s, 0));
}

/* The shape of input 0, the dtype of input 1 or 2. */
rl_status rl_rule_like1(rl_shaper *s) {
    return set_like(s, 0, dtype_of(input(s, 1)), input(s, 0));
}

rl_status rl_rule_quantize(rl_shaper *s) {
    const rl_valinfo *zero = input(s, 2);
    rl_dtype t = attr_dtype(s, "output_dtype", zero ? zero->dtype : RL_U8);
    return set_like(s, 0, zero && zero->dtype != RL_UNDEF ? zero->dtype : t, input(s, 0));
}

rl_status rl_rule_dequantize(rl_shaper *s) {
    return set_like(s, 0, attr_dtype(s, "output_dtype", dtype_of(input(s, 1))), input(s, 0));
}

rl_status rl_rule_dynamic_quantize(rl_shaper *s) {
    RL_TRY(set_like(s, 0, RL_U8, input(s, 0)));
    RL_TRY(set_scalar(s, 1, RL_F32));
    return set_scalar(s, 2, RL_U8);
}

/* The mask is a tensor of x's type up to opset 9. */
rl_status rl_rule_dropout(rl_shaper *s) {
    RL_TRY(rl_rule_same(s));
    return set_like(s, 1, s->n->since < 10 ? dtype_of(input(s, 0)) : RL_BOOL, input(s, 0));
}

rl_status rl_rule_bias_dropout(rl_shaper *s) {
    RL_TRY(rl_rule_same(s));
    return set_like(s, 1, RL_BOOL, input(s, 0));
}

rl_status rl_rule_batch_norm(rl_shaper *s) {
    RL_TRY(rl_rule_same(s));
    const rl_valinfo *mean = input(s, 3);
    for (uint32_t i = 1; i < s->n->nout; i++) RL_TRY(set_like(s, i, dtype_of(mean), mean));
    return RL_OK;
}

/* Statistics have 1 for the normalized dims. */
static rl_status set_statistics(rl_shaper *s, uint32_t port, uint32_t axis, rl_dtype t) {
    const rl_valinfo *x = input(s, 0);
    rl_dim *d = copy_dims(s, x);
    for (uint32_t i = axis; i < x->rank; i++) d[i] = 1;
    return rl_shape_set(s, port, t, x->rank, d);
}

rl_status rl_rule_layer_norm(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    uint32_t axis = 0;
    RL_TRY(rl_rule_same(s));
    if (!ranked(x)) return RL_OK;
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", -1), x->rank, &axis));
    for (uint32_t i = 1; i < RL_MIN(s->n->nout, 3U); i++)
        RL_TRY(set_statistics(s, i, axis, attr_dtype(s, "stash_type", RL_F32)));
    return RL_OK;
}

/* y has the type of the scale. */
rl_status rl_rule_rms_norm(rl_shaper *s) {
    RL_TRY(rl_rule_layer_norm(s));
    return rl_shape_set(s, 0, dtype_of(input(s, 1)), RL_NORANK, NULL);
}

/* Outputs: y, mean, inverse deviation, x + skip. */
rl_status rl_rule_skip_layer_norm(rl_shaper *s) {
    RL_TRY(rl_rule_layer_norm(s));
    return set_like(s, 3, dtype_of(input(s, 0)), input(s, 0));
}

rl_status rl_rule_skip_group_norm(rl_shaper *s) {
    RL_TRY(rl_rule_same(s));
    return set_like(s, 1, dtype_of(input(s, 0)), input(s, 0));
}

rl_status rl_rule_embed_layer_norm(rl_shaper *s) {
    const rl_valinfo *ids = input(s, 0), *words = input(s, 2);
    rl_dtype t = dtype_of(s->n->op == RL_OP_ms_QEmbedLayerNormalization ? input(s, 8) : words);
    RL_TRY(want_rank(s, 0, 2));
    RL_TRY(want_rank(s, 2, 2));
    rl_dim *d = new_dims(s, 3);
    if (ranked(ids)) memcpy(d, ids->dim, 2 * sizeof *d);
    if (ranked(words)) d[2] = words->dim[1];
    RL_TRY(rl_shape_set(s, 0, t, 3, d));
    RL_TRY(rl_shape_set(s, 1, RL_I32, 1, d));
    return rl_shape_set(s, 2, t, 3, d);
}

rl_status rl_rule_split_gelu(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    if (!ranked(x) || x->rank == 0) return rl_rule_same(s);
    rl_dim *d = copy_dims(s, x);
    d[x->rank - 1] = rl_shape_floordiv(s, d[x->rank - 1], 2);
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

rl_status rl_rule_no_rule(rl_shaper *s) {
    (void)s;
    return RL_OK;
}

/* ---- broadcasting ---- */

/* The type that n inputs broadcast to: rank RL_NORANK where one has none. slot NULL: inputs 0 to n - 1. */
static rl_status broadcast_of(const rl_shaper *s, const uint32_t *slot, uint32_t n, uint32_t *rank, rl_dim **dim) {
    *rank = 0;
    *dim = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const rl_valinfo *x = input(s, slot ? slot[i] : i);
        if (!ranked(x)) {
            *rank = RL_NORANK;
            return RL_OK;
        }
        *rank = RL_MAX(*rank, x->rank);
    }
    rl_dim *d = *dim = new_dims(s, *rank);
    for (uint32_t k = 0; k < *rank; k++) d[k] = 1;
    for (uint32_t i = 0; i < n; i++) {
        const rl_valinfo *x = input(s, slot ? slot[i] : i);
        uint32_t skip = *rank - x->rank;
        for (uint32_t k = 0; k < x->rank; k++) {
            rl_dim old = d[skip + k];
            if (!rl_shape_broadcast(s, old, x->dim[k], &d[skip + k]))
                return rl_shape_fail(s, "input %u has dim %u = %lld, wants %lld or 1", slot ? slot[i] : i, k,
                                     (long long)x->dim[k], (long long)old);
        }
    }
    return RL_OK;
}

static rl_status broadcast_slots(rl_shaper *s, const uint32_t *slot, uint32_t n, rl_dtype t) {
    uint32_t rank;
    rl_dim *d;
    RL_TRY(broadcast_of(s, slot, n, &rank, &d));
    return rl_shape_set(s, 0, t, rank, d);
}

rl_status rl_rule_broadcast(rl_shaper *s) {
    return broadcast_slots(s, NULL, s->n->nin, shared_dtype(s));
}

/* The exponent may have another type. */
rl_status rl_rule_pow(rl_shaper *s) {
    return broadcast_slots(s, NULL, 2, out_dtype(s, 0));
}

rl_status rl_rule_where(rl_shaper *s) {
    return broadcast_slots(s, NULL, 3, out_dtype(s, dtype_of(input(s, 1)) != RL_UNDEF ? 1 : 2));
}

rl_status rl_rule_qlinear_binary(rl_shaper *s) {
    return broadcast_slots(s, (uint32_t[]){0, 3}, 2, out_dtype(s, 0));
}

rl_status rl_rule_qlinear_where(rl_shaper *s) {
    return broadcast_slots(s, (uint32_t[]){0, 1, 4}, 3, out_dtype(s, 1));
}

rl_status rl_rule_expand(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells t;
    bool known = load(s, 1, &t);
    uint32_t n = known ? t.n : list_length(s, 1);
    if (!ranked(x) || n == RL_NORANK) return set_unranked(s, 0, dtype_of(x));
    uint32_t rank = RL_MAX(n, x->rank);
    rl_dim *d = new_dims(s, rank);
    for (uint32_t i = 0; i < rank; i++) {
        rl_dim a = i + x->rank < rank ? 1 : x->dim[i + x->rank - rank];
        rl_dim b = i + n < rank ? 1 : known ? size_of(s, t.cell[i + n - rank]) : UNKNOWN;
        if (!rl_shape_broadcast(s, a, b, &d[i]))
            return rl_shape_fail(s, "input 0 has size %lld, cannot expand to %lld", (long long)a, (long long)b);
    }
    return rl_shape_set(s, 0, x->dtype, rank, d);
}

/* ---- reductions ---- */

/* Without the axes, their number may still be known. */
static rl_status reduce_unknown(rl_shaper *s, rl_dtype t) {
    const rl_valinfo *x = input(s, 0);
    uint32_t n = list_length(s, 1);
    if (n == RL_NORANK || n == 0 || n > x->rank) return set_unranked(s, 0, t);
    return rl_shape_set(s, 0, t, x->rank - n, new_dims(s, x->rank));
}

static rl_status reduce_dims(rl_shaper *s, const bool *mark, found what, bool keep, rl_dtype t) {
    const rl_valinfo *x = input(s, 0);
    if (what == LIST_UNKNOWN && !keep) return reduce_unknown(s, t);
    rl_dim *d = new_dims(s, x->rank);
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        bool gone = what == LIST_NONE || mark[i];
        if (what == LIST_UNKNOWN) d[n++] = x->dim[i] == 1 ? 1 : UNKNOWN;
        else if (!gone) d[n++] = x->dim[i];
        else if (keep) d[n++] = 1;
    }
    return rl_shape_set(s, 0, t, n, d);
}

rl_status rl_rule_reduce(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    bool *mark, keep = rl_attr_int(s->n, "keepdims", 1) == 1;
    found what;
    if (!ranked(x)) return set_unranked(s, 0, out_dtype(s, 0));
    RL_TRY(axes_of(s, "axes", 1, x->rank, &mark, &what));
    if (what == LIST_NONE && rl_attr_int(s->n, "noop_with_empty_axes", 0)) return rl_rule_same(s);
    return reduce_dims(s, mark, what, keep, out_dtype(s, 0));
}

/* Inputs: x, scale, zero, y's scale, y's zero. */
rl_status rl_rule_qlinear_reduce(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    bool *mark;
    found what;
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(axes_of(s, "axes", RL_NONE, x->rank, &mark, &what));
    return reduce_dims(s, mark, what, rl_attr_int(s->n, "keepdims", 1) == 1, x->dtype);
}

rl_status rl_rule_arg_reduce(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    if (!ranked(x)) return set_unranked(s, 0, RL_I64);
    uint32_t axis;
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", 0), x->rank, &axis));
    bool *mark = rl_new(s->tmp, bool, x->rank);
    mark[axis] = true;
    return reduce_dims(s, mark, LIST_KNOWN, rl_attr_int(s->n, "keepdims", 1) == 1, RL_I64);
}

rl_status rl_rule_top_k(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    if (!ranked(x)) {
        RL_TRY(set_unranked(s, 0, dtype_of(x)));
        return set_unranked(s, 1, RL_I64);
    }
    uint32_t axis;
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", -1), x->rank, &axis));
    rl_dim *d = copy_dims(s, x);
    int64_t k = rl_attr_int(s->n, "k", -1);
    d[axis] = k >= 0 ? k : size_of(s, scalar(s, 1));
    RL_TRY(rl_shape_set(s, 0, x->dtype, x->rank, d));
    return rl_shape_set(s, 1, RL_I64, x->rank, d);
}
