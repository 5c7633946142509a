/* What the shape rules of all ops share: parts that rules are made of, and their names for the table in shape_ops.c.
 *
 * A rule reads its inputs by input() (NULL: left out) and ranked() (the rank is known), contents of small inputs by
 * load(), and calls rl_shape_set for each output.  A row may give the output's dtype; else it is that of input 0.  Where
 * ONNX moved an attribute to an input (axes, pads, ...), list() and axes_of() look for the attribute first, then for the input:
 * a valid node has only one of them.  A rule that meets a contradiction says so by rl_shape_fail; sizes that merely may not
 * fit give UNKNOWN. */
#ifndef RL_SHAPE_RULES_H
#define RL_SHAPE_RULES_H
#include "shape_internal.h"

/* ---- parts ---- */

static inline rl_dim *new_dims(const rl_shaper *s, uint32_t n) {
    rl_dim *d = rl_new(s->tmp, rl_dim, n);
    for (uint32_t i = 0; i < n; i++) d[i] = UNKNOWN;
    return d;
}

static inline rl_dim *copy_dims(const rl_shaper *s, const rl_valinfo *x) {
    return rl_copy(s->tmp, x->dim, x->rank * sizeof *x->dim);
}

static inline rl_dtype out_dtype(const rl_shaper *s, uint32_t like) {
    return s->dtype != RL_UNDEF ? s->dtype : dtype_of(input(s, like));
}

/* Of an op whose inputs have one type: that of the first of which it is known. */
static inline rl_dtype shared_dtype(const rl_shaper *s) {
    rl_dtype t = out_dtype(s, 0);
    for (uint32_t i = 1; t == RL_UNDEF && i < s->n->nin; i++) t = dtype_of(input(s, i));
    return t;
}

static inline rl_status set_unranked(rl_shaper *s, uint32_t port, rl_dtype t) {
    return rl_shape_set(s, port, t, RL_NORANK, NULL);
}

static inline rl_status set_scalar(rl_shaper *s, uint32_t port, rl_dtype t) {
    return rl_shape_set(s, port, t, 0, NULL);
}

static inline rl_status set_like(rl_shaper *s, uint32_t port, rl_dtype t, const rl_valinfo *x) {
    return x ? rl_shape_set(s, port, t, x->rank, x->dim) : set_unranked(s, port, t);
}

static inline rl_dim dim_at(const rl_valinfo *x, uint32_t i) {
    return ranked(x) && i < x->rank ? x->dim[i] : UNKNOWN;
}

static inline rl_status want_rank(const rl_shaper *s, uint32_t i, uint32_t rank) {
    const rl_valinfo *x = input(s, i);
    return ranked(x) && x->rank != rank ? rl_shape_fail(s, "input %u has rank %u, wants %u", i, x->rank, rank) : RL_OK;
}

static inline rl_status want_least_rank(const rl_shaper *s, uint32_t i, uint32_t rank) {
    const rl_valinfo *x = input(s, i);
    return ranked(x) && x->rank < rank ? rl_shape_fail(s, "input %u has rank %u, wants at least %u", i, x->rank, rank) : RL_OK;
}

static inline rl_status axis_in(const rl_shaper *s, int64_t axis, uint32_t rank, uint32_t *out) {
    int64_t a = axis < 0 ? axis + rank : axis;
    *out = 0;
    if (a < 0 || a >= rank) return rl_shape_fail(s, "axis %lld is out of range for rank %u", (long long)axis, rank);
    *out = (uint32_t)a;
    return RL_OK;
}

static inline rl_dtype attr_dtype(const rl_shaper *s, const char *name, rl_dtype dflt) {
    return rl_attr_dtype(s->n, name, dflt);
}

static inline const rl_attr *ints_attr(const rl_shaper *s, const char *name) {
    return name ? rl_attr_ints(s->n, name) : NULL;
}

/* The list of attribute `name` or else of input `slot` (RL_NONE: there is no such input). */
typedef enum { LIST_NONE, LIST_UNKNOWN, LIST_KNOWN } found;
static inline found list(const rl_shaper *s, const char *name, uint32_t slot, rl_cells *t) {
    const rl_attr *a = ints_attr(s, name);
    if (a) {
        *t = (rl_cells){.dtype = RL_I64, .rank = 1, .n = a->n, .cell = rl_new(s->tmp, rl_cell, a->n)};
        for (uint32_t i = 0; i < a->n; i++) t->cell[i] = (rl_cell){.kind = CELL_INT, .num = a->ints[i]};
        return LIST_KNOWN;
    }
    if (slot == RL_NONE || !input(s, slot)) return LIST_NONE;
    return load(s, slot, t) ? LIST_KNOWN : LIST_UNKNOWN;
}

/* The length of a list whose contents are not known, or RL_NORANK. */
static inline uint32_t list_length(const rl_shaper *s, uint32_t slot) {
    const rl_valinfo *x = input(s, slot);
    if (!ranked(x) || x->rank != 1 || !rl_dim_known(x->dim[0]) || x->dim[0] > MAXCELL) return RL_NORANK;
    return (uint32_t)x->dim[0];
}

/* Marks the axes given by attribute or input; *what says whether there are any. An empty list counts as none. */
static inline rl_status axes_of(const rl_shaper *s, const char *name, uint32_t slot, uint32_t rank, bool **mark, found *what) {
    rl_cells t;
    *mark = rl_new(s->tmp, bool, rank);
    *what = list(s, name, slot, &t);
    if (*what != LIST_KNOWN) return RL_OK;
    if (t.n == 0) *what = LIST_NONE;
    for (uint32_t i = 0; i < t.n; i++) {
        uint32_t a;
        if (t.cell[i].kind != CELL_INT) {
            *what = LIST_UNKNOWN;
            return RL_OK;
        }
        RL_TRY(axis_in(s, t.cell[i].num, rank, &a));
        (*mark)[a] = true;
    }
    return RL_OK;
}

/* One number from attribute-less input `slot`. */
static inline rl_cell scalar(const rl_shaper *s, uint32_t slot) {
    rl_cells t;
    return load(s, slot, &t) && t.n == 1 ? t.cell[0] : (rl_cell){.kind = CELL_NONE};
}

/* A bound of a slice, clamped to [least, most]. */
static inline int64_t clamp_bound(int64_t a, int64_t d, int64_t least, int64_t most) {
    if (a < 0) a += d;
    return RL_MAX(least, RL_MIN(a, most));
}

static inline int64_t slice_count(int64_t d, int64_t a, int64_t b, int64_t step) {
    if (step > 0) {
        a = clamp_bound(a, d, 0, d);
        b = clamp_bound(b, d, 0, d);
        return b <= a ? 0 : (b - a - 1) / step + 1;
    }
    if (d == 0) return 0;
    a = clamp_bound(a, d, 0, d - 1);
    b = clamp_bound(b, d, -1, d - 1);
    return a <= b ? 0 : (a - b - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1;
}

/* ---- the rules ---- */

/* shape_elementwise.c */
rl_rule rl_rule_arg_reduce, rl_rule_batch_norm, rl_rule_bias_dropout, rl_rule_broadcast, rl_rule_cast, rl_rule_dequantize,
    rl_rule_dropout, rl_rule_dynamic_quantize, rl_rule_embed_layer_norm, rl_rule_expand, rl_rule_layer_norm, rl_rule_like1,
    rl_rule_no_rule, rl_rule_pow, rl_rule_qlinear_binary, rl_rule_qlinear_reduce, rl_rule_qlinear_where, rl_rule_quantize, rl_rule_reduce,
    rl_rule_rms_norm, rl_rule_same, rl_rule_same_dtype, rl_rule_skip_group_norm, rl_rule_skip_layer_norm, rl_rule_split_gelu,
    rl_rule_top_k, rl_rule_where;
/* shape_matrix.c */
rl_rule rl_rule_attention, rl_rule_det, rl_rule_einsum_rule, rl_rule_gemm, rl_rule_group_query_attention,
    rl_rule_linear_attention, rl_rule_matmul, rl_rule_matmul_columns, rl_rule_matmul_dynamic, rl_rule_matmul_to_float, rl_rule_ms_attention,
    rl_rule_multi_head_attention, rl_rule_qgemm, rl_rule_qlinear_matmul, rl_rule_recurrent;
/* shape_window.c */
rl_rule rl_rule_affine_grid, rl_rule_causal_conv, rl_rule_center_crop_pad, rl_rule_col2im, rl_rule_conv, rl_rule_conv_last,
    rl_rule_conv_transpose, rl_rule_crop_and_resize, rl_rule_global_pool, rl_rule_grid_sample, rl_rule_max_roi_pool,
    rl_rule_max_unpool, rl_rule_non_max_suppression, rl_rule_pool, rl_rule_pool_last, rl_rule_qlinear_conv, rl_rule_resize,
    rl_rule_roi_align, rl_rule_upsample;
/* shape_moving.c */
rl_rule rl_rule_compress, rl_rule_concat, rl_rule_depth_to_space, rl_rule_expand_dims, rl_rule_flatten, rl_rule_gather,
    rl_rule_gather_blocks, rl_rule_gather_elements, rl_rule_gather_nd, rl_rule_ms_unique, rl_rule_non_zero, rl_rule_pad, rl_rule_qlinear_concat,
    rl_rule_reshape, rl_rule_slice, rl_rule_space_to_depth, rl_rule_split, rl_rule_squeeze, rl_rule_tile, rl_rule_transpose,
    rl_rule_unique, rl_rule_unsqueeze;
/* shape_make.c */
rl_rule rl_rule_bool_scalar, rl_rule_concat_from_sequence, rl_rule_constant, rl_rule_constant_of_shape, rl_rule_dft,
    rl_rule_i64_scalar, rl_rule_identity, rl_rule_image_decoder, rl_rule_like_input1, rl_rule_mel_weights, rl_rule_multinomial,
    rl_rule_murmur, rl_rule_nll_loss, rl_rule_one_hot, rl_rule_optional, rl_rule_optional_get, rl_rule_pair_distances,
    rl_rule_random_shape, rl_rule_range, rl_rule_sequence_at, rl_rule_sequence_construct, rl_rule_sequence_empty,
    rl_rule_sequence_erase, rl_rule_sequence_insert, rl_rule_shape, rl_rule_softmax_loss, rl_rule_split_to_sequence,
    rl_rule_stft, rl_rule_string_normalizer, rl_rule_string_split, rl_rule_tf_idf, rl_rule_window_function;
/* shape_control.c */
rl_rule rl_rule_if, rl_rule_loop, rl_rule_scan;

#endif
