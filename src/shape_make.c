/* Shape rules of ops that make tensors, of signals, losses and text. */
#include "shape_rules.h"

#include <math.h>
#include <string.h>

/* ---- making tensors ---- */

rl_status rl_rule_shape(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_dim n = UNKNOWN;
    if (ranked(x)) {
        int64_t a = rl_attr_int(s->n, "start", 0), b = rl_attr_int(s->n, "end", x->rank);
        n = slice_count(x->rank, a, b, 1);
    }
    return rl_shape_set(s, 0, RL_I64, 1, &n);
}

rl_status rl_rule_i64_scalar(rl_shaper *s) {
    return set_scalar(s, 0, RL_I64);
}

rl_status rl_rule_bool_scalar(rl_shaper *s) {
    return set_scalar(s, 0, RL_BOOL);
}

static rl_status constant_tensor(rl_shaper *s, const rl_const *t) {
    rl_value y = rl_out(s->n, 0);
    if (rl_has(y) && !rl_val(s->g, y)->data) rl_val(s->g, y)->data = t;
    return rl_shape_set(s, 0, t->dtype, t->rank, t->dim);
}

rl_status rl_rule_constant(rl_shaper *s) {
    for (uint32_t i = 0; i < s->n->nattr; i++) {
        const rl_attr *a = &s->n->attr[i];
        rl_dim n = a->n;
        if (strcmp(a->name, "value") == 0 && a->tensor) return constant_tensor(s, a->tensor);
        if (strcmp(a->name, "value_int") == 0) return set_scalar(s, 0, RL_I64);
        if (strcmp(a->name, "value_float") == 0) return set_scalar(s, 0, RL_F32);
        if (strcmp(a->name, "value_string") == 0) return set_scalar(s, 0, RL_STRING);
        if (strcmp(a->name, "value_ints") == 0) return rl_shape_set(s, 0, RL_I64, 1, &n);
        if (strcmp(a->name, "value_floats") == 0) return rl_shape_set(s, 0, RL_F32, 1, &n);
        if (strcmp(a->name, "value_strings") == 0) return rl_shape_set(s, 0, RL_STRING, 1, &n);
    }
    return RL_OK;
}

rl_status rl_rule_constant_of_shape(rl_shaper *s) {
    const rl_attr *a = rl_attr_find(s->n, "value");
    rl_dtype dtype = a && a->tensor ? a->tensor->dtype : RL_F32;
    rl_cells t;
    bool known = load(s, 0, &t);
    uint32_t n = known ? t.n : list_length(s, 0);
    if (n == RL_NORANK) return set_unranked(s, 0, dtype);
    rl_dim *d = new_dims(s, n);
    for (uint32_t i = 0; known && i < n; i++) d[i] = size_of(s, t.cell[i]);
    return rl_shape_set(s, 0, dtype, n, d);
}

static bool number_of(rl_cell c, double *x) {
    *x = c.kind == CELL_INT ? (double)c.num : c.f;
    return c.kind == CELL_INT || c.kind == CELL_FLOAT;
}

/* a - b as a size; either may be below 0, as -N is. */
static rl_dim difference(const rl_shaper *s, rl_cell a, rl_cell b) {
    rl_dim from = a.kind == CELL_SYM && a.num == 1 ? a.sym : size_of(s, a), d = UNKNOWN;
    if (b.kind == CELL_INT && b.num > INT64_MIN) d = rl_shape_offset(s, from, -b.num);
    else if (b.kind == CELL_SYM && b.num == 1) d = rl_shape_sub(s, from, b.sym);
    return rl_dim_known(d) || (d != UNKNOWN && is_size(s, d)) ? d : UNKNOWN;
}

/* ceil((limit - start) / delta) */
static rl_dim range_size(const rl_shaper *s, rl_cell a, rl_cell b, rl_cell step) {
    double x, y, z;
    if (number_of(a, &x) && number_of(b, &y) && number_of(step, &z)) {
        double n = z != 0 ? ceil((y - x) / z) : NAN;
        return n <= 0 ? 0 : n < 9e15 ? (rl_dim)n : UNKNOWN;
    }
    if (step.kind != CELL_INT || step.num == 0 || step.num == INT64_MIN) return UNKNOWN;
    rl_dim apart = step.num > 0 ? difference(s, b, a) : difference(s, a, b);
    return rl_shape_ceildiv(s, apart, step.num > 0 ? step.num : -step.num);
}

rl_status rl_rule_range(rl_shaper *s) {
    rl_cell step = s->n->nin > 2 ? scalar(s, 2) : (rl_cell){.kind = CELL_INT, .num = 1};
    rl_dim n = range_size(s, scalar(s, 0), scalar(s, 1), step);
    return rl_shape_set(s, 0, dtype_of(input(s, 0)), 1, &n);
}

rl_status rl_rule_one_hot(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_dtype t = dtype_of(input(s, 2));
    if (!ranked(x)) return set_unranked(s, 0, t);
    uint32_t axis;
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", -1), x->rank + 1, &axis));
    rl_dim *d = new_dims(s, x->rank + 1);
    rl_cell depth = scalar(s, 1);
    for (uint32_t i = 0; i <= x->rank; i++) d[i] = i == axis ? size_of(s, depth) : x->dim[i - (i > axis)];
    if (depth.kind == CELL_FLOAT && depth.f >= 0 && depth.f < 9e15) d[axis] = (rl_dim)depth.f;
    return rl_shape_set(s, 0, t, x->rank + 1, d);
}

rl_status rl_rule_random_shape(rl_shaper *s) {
    const rl_attr *a = ints_attr(s, "shape");
    rl_dtype t = attr_dtype(s, "dtype", RL_F32);
    if (!a) return rl_shape_fail(s, "has no shape");
    rl_dim *d = new_dims(s, a->n);
    for (uint32_t i = 0; i < a->n; i++) d[i] = a->ints[i] >= 0 ? a->ints[i] : UNKNOWN;
    return rl_shape_set(s, 0, t, a->n, d);
}

rl_status rl_rule_multinomial(rl_shaper *s) {
    int64_t n = rl_attr_int(s->n, "sample_size", 1);
    rl_dim d[2] = {dim_at(input(s, 0), 0), n >= 0 ? n : UNKNOWN};
    RL_TRY(want_rank(s, 0, 2));
    return rl_shape_set(s, 0, attr_dtype(s, "dtype", RL_I32), 2, d);
}

rl_status rl_rule_image_decoder(rl_shaper *s) {
    rl_dim d[3] = {UNKNOWN, UNKNOWN, rl_attr_is(s->n, "pixel_format", "Grayscale") ? 1 : 3};
    return rl_shape_set(s, 0, RL_U8, 3, d);
}

/* ---- signals ---- */

rl_status rl_rule_window_function(rl_shaper *s) {
    rl_dim n = size_of(s, scalar(s, 0));
    return rl_shape_set(s, 0, attr_dtype(s, "output_datatype", RL_F32), 1, &n);
}

rl_status rl_rule_mel_weights(rl_shaper *s) {
    rl_dim bins = size_of(s, scalar(s, 0)), length = size_of(s, scalar(s, 1));
    rl_dim d[2] = {rl_shape_offset(s, rl_shape_floordiv(s, length, 2), 1), bins};
    return rl_shape_set(s, 0, attr_dtype(s, "output_datatype", RL_F32), 2, d);
}

/* Where the axis stands: attribute up to opset 19, then input 2. */
rl_status rl_rule_dft(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    bool inverse = rl_attr_int(s->n, "inverse", 0) != 0, onesided = rl_attr_int(s->n, "onesided", 0) != 0;
    RL_TRY(want_least_rank(s, 0, 2));
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    rl_cell at = {.kind = CELL_INT, .num = s->n->since < 20 ? rl_attr_int(s->n, "axis", 1) : -2};
    if (s->n->since >= 20 && input(s, 2)) at = scalar(s, 2);
    rl_dim *d = copy_dims(s, x), length = input(s, 1) ? size_of(s, scalar(s, 1)) : UNKNOWN;
    d[x->rank - 1] = inverse && onesided ? 1 : 2;
    if (at.kind != CELL_INT) { /* any axis keeps its size unless a length is given, or half of it */
        for (uint32_t i = 0; (input(s, 1) || onesided) && i + 1 < x->rank; i++) d[i] = UNKNOWN;
        return rl_shape_set(s, 0, x->dtype, x->rank, d);
    }
    uint32_t axis;
    RL_TRY(axis_in(s, at.num, x->rank, &axis));
    if (!input(s, 1)) length = inverse && onesided ? rl_shape_mul(s, 2, rl_shape_offset(s, d[axis], -1)) : d[axis];
    d[axis] = onesided && !inverse ? rl_shape_offset(s, rl_shape_floordiv(s, length, 2), 1) : length;
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* Inputs: signal [batch, length, 1 or 2] or, as onnxruntime takes it and models have it, [batch, length]; step, window, frame length. */
rl_status rl_rule_stft(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *win = input(s, 2);
    if (!ranked(x) || x->rank != 2) RL_TRY(want_rank(s, 0, 3));
    rl_cell step = scalar(s, 1);
    rl_dim frame = input(s, 3) ? size_of(s, scalar(s, 3)) : win ? dim_at(win, 0) : dim_at(x, 1);
    rl_dim room = rl_shape_sub(s, dim_at(x, 1), frame), d[4] = {dim_at(x, 0), UNKNOWN, frame, 2};
    if (step.kind == CELL_INT) d[1] = rl_shape_offset(s, rl_shape_floordiv(s, room, step.num), 1);
    if (rl_attr_int(s->n, "onesided", 1)) d[2] = rl_shape_offset(s, rl_shape_floordiv(s, frame, 2), 1);
    return rl_shape_set(s, 0, dtype_of(x), 4, d);
}

/* ---- losses, text ---- */

rl_status rl_rule_nll_loss(rl_shaper *s) {
    if (!rl_attr_is(s->n, "reduction", "none")) return set_scalar(s, 0, dtype_of(input(s, 0)));
    return set_like(s, 0, dtype_of(input(s, 0)), input(s, 1));
}

rl_status rl_rule_softmax_loss(rl_shaper *s) {
    RL_TRY(rl_rule_nll_loss(s));
    return set_like(s, 1, dtype_of(input(s, 0)), input(s, 0));
}

rl_status rl_rule_tf_idf(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_attr *a = ints_attr(s, "ngram_indexes");
    int64_t most = -1;
    for (uint32_t i = 0; a && i < a->n; i++) most = RL_MAX(most, a->ints[i]);
    if (!ranked(x) || x->rank < 1 || x->rank > 2 || !a) return set_unranked(s, 0, RL_F32);
    rl_dim d[2] = {x->dim[0], UNKNOWN};
    d[x->rank - 1] = most >= 0 && most < INT64_MAX ? most + 1 : UNKNOWN;
    return rl_shape_set(s, 0, RL_F32, x->rank, d);
}

/* Stop words go: [C] or [1, C] loses some. */
rl_status rl_rule_string_normalizer(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    if (!ranked(x) || x->rank < 1 || x->rank > 2) return set_unranked(s, 0, RL_STRING);
    rl_dim d[2] = {1, UNKNOWN};
    return rl_shape_set(s, 0, RL_STRING, x->rank, x->rank == 2 ? d : d + 1);
}

rl_status rl_rule_string_split(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    RL_TRY(set_like(s, 1, RL_I64, x));
    if (!ranked(x)) return set_unranked(s, 0, RL_STRING);
    rl_dim *d = new_dims(s, x->rank + 1);
    if (x->rank) memcpy(d, x->dim, x->rank * sizeof *d);
    return rl_shape_set(s, 0, RL_STRING, x->rank + 1, d);
}

rl_status rl_rule_murmur(rl_shaper *s) {
    return set_like(s, 0, rl_attr_int(s->n, "positive", 1) ? RL_U32 : RL_I32, input(s, 0));
}

rl_status rl_rule_like_input1(rl_shaper *s) {
    return set_like(s, 0, dtype_of(input(s, 1)), input(s, 1));
}

rl_status rl_rule_pair_distances(rl_shaper *s) {
    rl_dim d[2] = {dim_at(input(s, 0), 0), dim_at(input(s, 1), 0)};
    return rl_shape_set(s, 0, dtype_of(input(s, 0)), 2, d);
}
