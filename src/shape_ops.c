/* The shape rule of every op, and the table that names them, at the end.
 *
 * A rule reads its inputs by input() (NULL: left out) and ranked() (the rank is known), contents of small inputs by
 * load(), and calls rl_shape_set for each output.  A row may give the output's dtype; else it is that of input 0.  Where
 * ONNX moved an attribute to an input (axes, pads, ...), list() and axes_of() look for the attribute first, then for the input:
 * a valid node has only one of them.  A rule that meets a contradiction says so by rl_shape_fail; sizes that merely may not
 * fit give UNKNOWN. */
#include "shape_internal.h"

#include <math.h>
#include <string.h>

/* ---- parts ---- */

static rl_dim *new_dims(const rl_shaper *s, uint32_t n) {
    rl_dim *d = rl_new(s->tmp, rl_dim, n);
    for (uint32_t i = 0; i < n; i++) d[i] = UNKNOWN;
    return d;
}

static rl_dim *copy_dims(const rl_shaper *s, const rl_valinfo *x) {
    return rl_copy(s->tmp, x->dim, x->rank * sizeof *x->dim);
}

static rl_dtype out_dtype(const rl_shaper *s, uint32_t like) {
    return s->dtype != RL_UNDEF ? s->dtype : dtype_of(input(s, like));
}

static rl_status set_unranked(rl_shaper *s, uint32_t port, rl_dtype t) {
    return rl_shape_set(s, port, t, RL_NORANK, NULL);
}

static rl_status set_scalar(rl_shaper *s, uint32_t port, rl_dtype t) {
    return rl_shape_set(s, port, t, 0, NULL);
}

static rl_status set_like(rl_shaper *s, uint32_t port, rl_dtype t, const rl_valinfo *x) {
    return x ? rl_shape_set(s, port, t, x->rank, x->dim) : set_unranked(s, port, t);
}

static rl_dim dim_at(const rl_valinfo *x, uint32_t i) {
    return ranked(x) && i < x->rank ? x->dim[i] : UNKNOWN;
}

static rl_status want_rank(const rl_shaper *s, uint32_t i, uint32_t rank) {
    const rl_valinfo *x = input(s, i);
    return ranked(x) && x->rank != rank ? rl_shape_fail(s, "input %u has rank %u, wants %u", i, x->rank, rank) : RL_OK;
}

static rl_status want_least_rank(const rl_shaper *s, uint32_t i, uint32_t rank) {
    const rl_valinfo *x = input(s, i);
    return ranked(x) && x->rank < rank ? rl_shape_fail(s, "input %u has rank %u, wants at least %u", i, x->rank, rank) : RL_OK;
}

static rl_status axis_in(const rl_shaper *s, int64_t axis, uint32_t rank, uint32_t *out) {
    int64_t a = axis < 0 ? axis + rank : axis;
    *out = 0;
    if (a < 0 || a >= rank) return rl_shape_fail(s, "axis %lld is out of range for rank %u", (long long)axis, rank);
    *out = (uint32_t)a;
    return RL_OK;
}

static rl_dtype attr_dtype(const rl_shaper *s, const char *name, rl_dtype dflt) {
    int64_t t = rl_attr_int(s->n, name, 0);
    return t > 0 && t <= RL_I2 ? (rl_dtype)t : dflt;
}

static const rl_attr *ints_attr(const rl_shaper *s, const char *name) {
    const rl_attr *a = name ? rl_attr_find(s->n, name) : NULL;
    return a && a->kind == RL_ATTR_INTS ? a : NULL;
}

/* The list of attribute `name` or else of input `slot` (RL_NONE: there is no such input). */
typedef enum { LIST_NONE, LIST_UNKNOWN, LIST_KNOWN } found;
static found list(const rl_shaper *s, const char *name, uint32_t slot, rl_tensor *t) {
    const rl_attr *a = ints_attr(s, name);
    if (a) {
        *t = (rl_tensor){.dtype = RL_I64, .rank = 1, .n = a->n, .cell = rl_new(s->tmp, rl_cell, a->n)};
        for (uint32_t i = 0; i < a->n; i++) t->cell[i] = (rl_cell){.kind = CELL_INT, .num = a->ints[i]};
        return LIST_KNOWN;
    }
    if (slot == RL_NONE || !input(s, slot)) return LIST_NONE;
    return load(s, slot, t) ? LIST_KNOWN : LIST_UNKNOWN;
}

/* The length of a list whose contents are not known, or RL_NORANK. */
static uint32_t list_length(const rl_shaper *s, uint32_t slot) {
    const rl_valinfo *x = input(s, slot);
    if (!ranked(x) || x->rank != 1 || !rl_dim_known(x->dim[0]) || x->dim[0] > MAXCELL) return RL_NORANK;
    return (uint32_t)x->dim[0];
}

/* Marks the axes given by attribute or input; *what says whether there are any. An empty list counts as none. */
static rl_status axes_of(const rl_shaper *s, const char *name, uint32_t slot, uint32_t rank, bool **mark, found *what) {
    rl_tensor t;
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
static rl_cell scalar(const rl_shaper *s, uint32_t slot) {
    rl_tensor t;
    return load(s, slot, &t) && t.n == 1 ? t.cell[0] : (rl_cell){.kind = CELL_NONE};
}

/* ---- same shape ---- */

static rl_status same(rl_shaper *s) {
    return set_like(s, 0, out_dtype(s, 0), input(s, 0));
}

/* All outputs, but with attribute dtype. */
static rl_status same_dtype(rl_shaper *s) {
    return set_like(s, 0, attr_dtype(s, "dtype", dtype_of(input(s, 0))), input(s, 0));
}

static rl_status cast(rl_shaper *s) {
    return set_like(s, 0, attr_dtype(s, "to", RL_UNDEF), input(s, 0));
}

/* The shape of input 0, the dtype of input 1 or 2. */
static rl_status like1(rl_shaper *s) {
    return set_like(s, 0, dtype_of(input(s, 1)), input(s, 0));
}

static rl_status quantize(rl_shaper *s) {
    const rl_valinfo *zero = input(s, 2);
    rl_dtype t = attr_dtype(s, "output_dtype", zero ? zero->dtype : RL_U8);
    return set_like(s, 0, zero && zero->dtype != RL_UNDEF ? zero->dtype : t, input(s, 0));
}

static rl_status dequantize(rl_shaper *s) {
    return set_like(s, 0, attr_dtype(s, "output_dtype", dtype_of(input(s, 1))), input(s, 0));
}

static rl_status dynamic_quantize(rl_shaper *s) {
    RL_TRY(set_like(s, 0, RL_U8, input(s, 0)));
    RL_TRY(set_scalar(s, 1, RL_F32));
    return set_scalar(s, 2, RL_U8);
}

/* The mask is a tensor of x's type up to opset 9. */
static rl_status dropout(rl_shaper *s) {
    RL_TRY(same(s));
    return set_like(s, 1, s->n->since < 10 ? dtype_of(input(s, 0)) : RL_BOOL, input(s, 0));
}

static rl_status bias_dropout(rl_shaper *s) {
    RL_TRY(same(s));
    return set_like(s, 1, RL_BOOL, input(s, 0));
}

static rl_status batch_norm(rl_shaper *s) {
    RL_TRY(same(s));
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

static rl_status layer_norm(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    uint32_t axis = 0;
    RL_TRY(same(s));
    if (!ranked(x)) return RL_OK;
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", -1), x->rank, &axis));
    for (uint32_t i = 1; i < RL_MIN(s->n->nout, 3U); i++)
        RL_TRY(set_statistics(s, i, axis, attr_dtype(s, "stash_type", RL_F32)));
    return RL_OK;
}

/* y has the type of the scale. */
static rl_status rms_norm(rl_shaper *s) {
    RL_TRY(layer_norm(s));
    return rl_shape_set(s, 0, dtype_of(input(s, 1)), RL_NORANK, NULL);
}

/* Outputs: y, mean, inverse deviation, x + skip. */
static rl_status skip_layer_norm(rl_shaper *s) {
    RL_TRY(layer_norm(s));
    return set_like(s, 3, dtype_of(input(s, 0)), input(s, 0));
}

static rl_status skip_group_norm(rl_shaper *s) {
    RL_TRY(same(s));
    return set_like(s, 1, dtype_of(input(s, 0)), input(s, 0));
}

static rl_status embed_layer_norm(rl_shaper *s) {
    const rl_valinfo *ids = input(s, 0), *words = input(s, 2);
    RL_TRY(want_rank(s, 0, 2));
    RL_TRY(want_rank(s, 2, 2));
    rl_dim *d = new_dims(s, 3);
    if (ranked(ids)) memcpy(d, ids->dim, 2 * sizeof *d);
    if (ranked(words)) d[2] = words->dim[1];
    RL_TRY(rl_shape_set(s, 0, dtype_of(words), 3, d));
    RL_TRY(rl_shape_set(s, 1, RL_I32, 1, d));
    return rl_shape_set(s, 2, dtype_of(words), 3, d);
}

static rl_status split_gelu(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    if (!ranked(x) || x->rank == 0) return same(s);
    rl_dim *d = copy_dims(s, x);
    d[x->rank - 1] = rl_shape_floordiv(s, d[x->rank - 1], 2);
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

static rl_status no_rule(rl_shaper *s) {
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

static rl_status broadcast_slots(rl_shaper *s, const uint32_t *slot, uint32_t n, uint32_t like) {
    uint32_t rank;
    rl_dim *d;
    RL_TRY(broadcast_of(s, slot, n, &rank, &d));
    return rl_shape_set(s, 0, out_dtype(s, like), rank, d);
}

static rl_status broadcast(rl_shaper *s) {
    return broadcast_slots(s, NULL, s->n->nin, 0);
}

static rl_status where(rl_shaper *s) {
    return broadcast_slots(s, NULL, 3, dtype_of(input(s, 1)) != RL_UNDEF ? 1 : 2);
}

static rl_status qlinear_binary(rl_shaper *s) {
    return broadcast_slots(s, (uint32_t[]){0, 3}, 2, 0);
}

static rl_status qlinear_where(rl_shaper *s) {
    return broadcast_slots(s, (uint32_t[]){0, 1, 4}, 3, 1);
}

static rl_status expand(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor t;
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

static rl_status reduce(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    bool *mark, keep = rl_attr_int(s->n, "keepdims", 1) == 1;
    found what;
    if (!ranked(x)) return set_unranked(s, 0, out_dtype(s, 0));
    RL_TRY(axes_of(s, "axes", 1, x->rank, &mark, &what));
    if (what == LIST_NONE && rl_attr_int(s->n, "noop_with_empty_axes", 0)) return same(s);
    return reduce_dims(s, mark, what, keep, out_dtype(s, 0));
}

/* Inputs: x, scale, zero, y's scale, y's zero. */
static rl_status qlinear_reduce(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    bool *mark;
    found what;
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(axes_of(s, "axes", RL_NONE, x->rank, &mark, &what));
    return reduce_dims(s, mark, what, rl_attr_int(s->n, "keepdims", 1) == 1, x->dtype);
}

static rl_status arg_reduce(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    if (!ranked(x)) return set_unranked(s, 0, RL_I64);
    uint32_t axis;
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", 0), x->rank, &axis));
    bool *mark = rl_new(s->tmp, bool, x->rank);
    mark[axis] = true;
    return reduce_dims(s, mark, LIST_KNOWN, rl_attr_int(s->n, "keepdims", 1) == 1, RL_I64);
}

static rl_status top_k(rl_shaper *s) {
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

static rl_status matmul(rl_shaper *s) {
    return matmul_of(s, 0, 1, out_dtype(s, 0));
}

static rl_status qlinear_matmul(rl_shaper *s) {
    return matmul_of(s, 0, 3, dtype_of(input(s, 7)));
}

static rl_status matmul_to_float(rl_shaper *s) {
    return matmul_of(s, 0, 1, dtype_of(input(s, 2)));
}

/* Quantized weights of N columns: the last dim becomes N. */
static rl_status matmul_columns(rl_shaper *s) {
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

static rl_status gemm(rl_shaper *s) {
    return gemm_of(s, 0, 1, out_dtype(s, 0));
}

static rl_status qgemm(rl_shaper *s) {
    const rl_valinfo *zero = input(s, 8);
    return gemm_of(s, 0, 3, zero ? zero->dtype : RL_F32);
}

/* The sizes of an Einsum's letters, and of what its ... stands for (right-aligned, nell of them). */
typedef struct {
    rl_dim size[128];
    uint32_t count[128];
    rl_dim *ell;
    uint32_t nell;
    bool dots, lost; /* lost: an input with ... has no known rank */
} einsum;

static bool is_letter(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void meet_letter(const rl_shaper *s, einsum *e, uint8_t c, rl_dim d) {
    rl_dim old = e->size[c];
    if (!rl_shape_unify(s, old, d, &e->size[c])) e->size[c] = old == 1 ? d : old;
    e->count[c]++;
}

static rl_status einsum_input(const rl_shaper *s, einsum *e, uint32_t i, rl_span term) {
    const rl_valinfo *x = input(s, i);
    uint32_t letters = 0, at = 0;
    bool dots = false;
    for (size_t k = 0; k < term.n; k++) {
        letters += is_letter(term.p[k]);
        dots |= term.p[k] == '.';
    }
    if (ranked(x) && (x->rank < letters || (!dots && x->rank != letters)))
        return rl_shape_fail(s, "input %u has rank %u, wants %u", i, x->rank, letters);
    uint32_t nell = ranked(x) ? x->rank - letters : 0;
    for (size_t k = 0; k < term.n; k++) {
        if (is_letter(term.p[k])) meet_letter(s, e, term.p[k], ranked(x) ? x->dim[at++] : UNKNOWN);
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
    for (size_t k = 0; k < out.n; k++) {
        if (is_letter(out.p[k])) {
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
    for (uint8_t c = 'A'; c <= 'z'; c++)
        if (e->count[c] == 1) p[n++] = c;
    return (rl_span){p, n};
}

static rl_status einsum_rule(rl_shaper *s) {
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

static rl_status det(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    RL_TRY(want_least_rank(s, 0, 2));
    return ranked(x) ? rl_shape_set(s, 0, x->dtype, x->rank - 2, x->dim) : set_unranked(s, 0, dtype_of(x));
}

/* ---- windows: convolution and pooling ---- */

typedef struct {
    uint32_t n; /* spatial dims */
    rl_dim *kernel;
    int64_t *stride, *dilation, *pad, *extra; /* pad: n before, n after; extra: output_padding */
    enum { PAD_GIVEN, PAD_SAME, PAD_VALID } mode;
    bool ceil;
} window;

static rl_status window_ints(const rl_shaper *s, const char *name, uint32_t n, int64_t dflt, int64_t least, int64_t **out) {
    const rl_attr *a = ints_attr(s, name);
    *out = rl_new(s->tmp, int64_t, n);
    if (a && a->n != n) return rl_shape_fail(s, "%s has %u elements, wants %u", name, a->n, n);
    for (uint32_t i = 0; i < n; i++) {
        (*out)[i] = a ? a->ints[i] : dflt;
        if ((*out)[i] < least || (*out)[i] > INT32_MAX) return rl_shape_fail(s, "%s has %lld", name, (long long)(*out)[i]);
    }
    return RL_OK;
}

/* kernel: where there is no attribute kernel_shape, or NULL. */
static rl_status read_window(const rl_shaper *s, uint32_t n, const rl_dim *kernel, window *w) {
    int64_t *k = NULL;
    *w = (window){.n = n, .kernel = new_dims(s, n), .ceil = rl_attr_int(s->n, "ceil_mode", 0) != 0};
    if (ints_attr(s, "kernel_shape")) RL_TRY(window_ints(s, "kernel_shape", n, 1, 0, &k));
    for (uint32_t i = 0; i < n; i++) w->kernel[i] = k ? k[i] : kernel ? kernel[i] : UNKNOWN;
    RL_TRY(window_ints(s, "strides", n, 1, 1, &w->stride));
    RL_TRY(window_ints(s, "dilations", n, 1, 1, &w->dilation));
    RL_TRY(window_ints(s, "output_padding", n, 0, INT32_MIN, &w->extra));
    bool same_pads = rl_attr_is(s->n, "auto_pad", "SAME_UPPER") || rl_attr_is(s->n, "auto_pad", "SAME_LOWER");
    w->mode = same_pads ? PAD_SAME : rl_attr_is(s->n, "auto_pad", "VALID") ? PAD_VALID : PAD_GIVEN;
    return window_ints(s, w->mode == PAD_GIVEN ? "pads" : "", 2 * n, 0, INT32_MIN, &w->pad);
}

/* floor or ceil((in + pads - (dilation*(k-1)+1)) / stride) + 1, and the last window must start inside the tensor or its first
 * padding. */
static rl_dim window_size(const rl_shaper *s, const window *w, uint32_t i, rl_dim in) {
    int64_t k = w->kernel[i], st = w->stride[i], before = w->pad[i], after = w->pad[w->n + i];
    if (w->mode == PAD_SAME) return rl_shape_ceildiv(s, in, st);
    if (!rl_dim_known(k) || k > INT32_MAX) return UNKNOWN;
    int64_t reach = k ? w->dilation[i] * (k - 1) + 1 : 0, c = before + after - reach + st;
    if (rl_dim_known(in) && in + c < 0) return UNKNOWN;
    rl_dim room = rl_shape_offset(s, in, c);
    if (!w->ceil) return rl_shape_floordiv(s, room, st);
    rl_dim out = rl_shape_ceildiv(s, room, st);
    if (rl_dim_known(in) && rl_dim_known(out)) return out > 1 && (out - 1) * st >= in + before ? out - 1 : out;
    return st + after <= reach ? out : UNKNOWN;
}

/* The type of x with its spatial dims put through the window; dims from `first` on are spatial. */
static rl_status set_windows(rl_shaper *s, const rl_valinfo *x, const window *w, uint32_t first, rl_dim channels, rl_dtype t) {
    rl_dim *d = copy_dims(s, x);
    for (uint32_t i = 0; i < w->n; i++) d[first + i] = window_size(s, w, i, x->dim[first + i]);
    d[first == 2 ? 1 : x->rank - 1] = channels;
    return rl_shape_set(s, 0, t, x->rank, d);
}

static rl_status conv_of(rl_shaper *s, uint32_t ix, uint32_t iw, bool last, rl_dtype t) {
    const rl_valinfo *x = input(s, ix), *w = input(s, iw);
    window win;
    rl_dim c;
    RL_TRY(want_least_rank(s, ix, 3));
    if (!ranked(x)) return set_unranked(s, 0, t);
    RL_TRY(want_rank(s, iw, x->rank));
    RL_TRY(read_window(s, x->rank - 2, !last && ranked(w) ? w->dim + 2 : NULL, &win));
    int64_t group = rl_attr_int(s->n, "group", 1);
    rl_dim wanted = !last && ranked(w) && group > 0 ? rl_shape_mul(s, w->dim[1], group) : UNKNOWN;
    if (!last && !rl_shape_unify(s, x->dim[1], wanted, &c))
        return rl_shape_fail(s, "input %u has %lld channels, wants %lld", ix, (long long)x->dim[1], (long long)wanted);
    return set_windows(s, x, &win, last ? 1 : 2, ranked(w) ? w->dim[0] : UNKNOWN, t);
}

static rl_status conv(rl_shaper *s) {
    return conv_of(s, 0, 1, false, out_dtype(s, 0));
}

static rl_status conv_last(rl_shaper *s) {
    return conv_of(s, 0, 1, true, out_dtype(s, 0));
}

static rl_status qlinear_conv(rl_shaper *s) {
    return conv_of(s, 0, 3, rl_attr_int(s->n, "channels_last", 0) != 0, dtype_of(input(s, 7)));
}

/* stride*(in-1) + dilation*(k-1) + 1 - pads + output_padding */
static rl_dim unwindow_size(const rl_shaper *s, const window *w, uint32_t i, rl_dim in) {
    int64_t k = w->kernel[i];
    if (w->mode == PAD_SAME) return rl_shape_mul(s, in, w->stride[i]);
    if (!rl_dim_known(k) || k > INT32_MAX) return UNKNOWN;
    int64_t c = w->dilation[i] * (k - 1) + 1 - w->pad[i] - w->pad[w->n + i] + w->extra[i] - w->stride[i];
    return rl_shape_offset(s, rl_shape_mul(s, in, w->stride[i]), c);
}

static rl_status conv_transpose(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *w = input(s, 1);
    window win;
    RL_TRY(want_least_rank(s, 0, 3));
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(want_rank(s, 1, x->rank));
    RL_TRY(read_window(s, x->rank - 2, ranked(w) ? w->dim + 2 : NULL, &win));
    rl_dim c;
    if (ranked(w) && !rl_shape_unify(s, x->dim[1], w->dim[0], &c))
        return rl_shape_fail(s, "input 0 has %lld channels, wants %lld", (long long)x->dim[1], (long long)w->dim[0]);
    rl_dim *d = copy_dims(s, x);
    int64_t group = rl_attr_int(s->n, "group", 1);
    d[1] = ranked(w) && group > 0 ? rl_shape_mul(s, w->dim[1], group) : UNKNOWN;
    const rl_attr *given = ints_attr(s, "output_shape");
    uint32_t skip = given && given->n >= win.n ? given->n - win.n : 0; /* old models give N and C too */
    for (uint32_t i = 0; i < win.n; i++) {
        d[2 + i] = unwindow_size(s, &win, i, x->dim[2 + i]);
        if (given && skip + i < given->n) d[2 + i] = given->ints[skip + i] >= 0 ? given->ints[skip + i] : UNKNOWN;
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

static rl_status causal_conv(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *w = input(s, 1);
    RL_TRY(want_rank(s, 0, 3));
    RL_TRY(want_rank(s, 1, 3));
    RL_TRY(same(s));
    rl_dim d[3] = {dim_at(x, 0), dim_at(x, 1), rl_shape_offset(s, dim_at(w, 2), -1)};
    if (!rl_shape_unify(s, d[1], dim_at(w, 0), &d[1]) || !rl_shape_unify(s, d[0], dim_at(input(s, 3), 0), &d[0]))
        return rl_shape_fail(s, "input 0 and weight or state differ in batch or channels");
    return rl_shape_set(s, 1, dtype_of(x), 3, d);
}

static rl_status pool_of(rl_shaper *s, bool last) {
    const rl_valinfo *x = input(s, 0);
    window w;
    RL_TRY(want_least_rank(s, 0, 3));
    if (!ranked(x)) {
        RL_TRY(set_unranked(s, 1, RL_I64));
        return set_unranked(s, 0, dtype_of(x));
    }
    if (!ints_attr(s, "kernel_shape")) return rl_shape_fail(s, "has no kernel_shape");
    RL_TRY(read_window(s, x->rank - 2, NULL, &w));
    RL_TRY(set_windows(s, x, &w, last ? 1 : 2, x->dim[last ? x->rank - 1 : 1], x->dtype));
    rl_value y = rl_out(s->n, 0);
    return rl_has(y) ? set_like(s, 1, RL_I64, rl_val(s->g, y)) : RL_OK;
}

static rl_status pool(rl_shaper *s) {
    return pool_of(s, rl_attr_int(s->n, "channels_last", 0) != 0);
}

static rl_status pool_last(rl_shaper *s) {
    return pool_of(s, true);
}

static rl_status global_pool(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    bool last = rl_attr_int(s->n, "channels_last", 0) != 0;
    RL_TRY(want_least_rank(s, 0, 2));
    if (!ranked(x)) return same(s);
    rl_dim *d = copy_dims(s, x);
    for (uint32_t i = last ? 1 : 2; i < x->rank - last; i++) d[i] = 1;
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

static rl_status max_unpool(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor t;
    window w;
    RL_TRY(want_least_rank(s, 0, 3));
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(read_window(s, x->rank - 2, NULL, &w));
    rl_dim *d = copy_dims(s, x);
    bool known = load(s, 2, &t) && t.n == x->rank;
    RL_TRY(want_rank(s, 1, x->rank));
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!rl_shape_unify(s, d[i], dim_at(input(s, 1), i), &d[i])) return rl_shape_fail(s, "inputs differ in dim %u", i);
        if (input(s, 2)) d[i] = known ? size_of(s, t.cell[i]) : UNKNOWN;
        else if (i >= 2) d[i] = unwindow_size(s, &w, i - 2, d[i]);
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

static rl_status col2im(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor image, block;
    bool known = load(s, 1, &image);
    uint32_t n = known ? image.n : list_length(s, 1);
    RL_TRY(want_rank(s, 0, 3));
    if (n == RL_NORANK) return set_unranked(s, 0, dtype_of(x));
    rl_dim *d = new_dims(s, n + 2), blocks = 1;
    if (load(s, 2, &block))
        for (uint32_t i = 0; i < block.n; i++) blocks = rl_shape_mul(s, blocks, size_of(s, block.cell[i]));
    else blocks = UNKNOWN;
    if (ranked(x)) d[0] = x->dim[0];
    if (ranked(x) && rl_dim_known(blocks)) d[1] = rl_shape_floordiv(s, x->dim[1], blocks);
    for (uint32_t i = 0; i < n; i++) d[2 + i] = known ? size_of(s, image.cell[i]) : UNKNOWN;
    return rl_shape_set(s, 0, dtype_of(x), n + 2, d);
}

/* ---- recurrent ---- */

static rl_status recurrent(rl_shaper *s) {
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
static rl_status attention(rl_shaper *s) {
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

static rl_status linear_attention(rl_shaper *s) {
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
static rl_status ms_attention(rl_shaper *s) {
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
static rl_status multi_head_attention(rl_shaper *s) {
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
static rl_status group_query_attention(rl_shaper *s) {
    const rl_valinfo *q = input(s, 0);
    rl_dim h = size_attr(s, "num_heads"), kv = size_attr(s, "kv_num_heads");
    rl_dim all = input(s, 1) ? h : rl_shape_add(s, h, rl_shape_mul(s, 2, kv)), size = divided(s, dim_at(q, 2), all);
    rl_dim y[3] = {dim_at(q, 0), dim_at(q, 1), rl_shape_mul(s, size, h)}, present[4] = {dim_at(q, 0), kv, UNKNOWN, size};
    if (ranked(q) && q->rank != 3) return same(s);
    for (uint32_t i = 1; i < 3; i++) RL_TRY(rl_shape_set(s, i, dtype_of(q), 4, present));
    return input(s, 1) ? same(s) : rl_shape_set(s, 0, dtype_of(q), 3, y);
}

/* ---- moving data ---- */

static rl_status transpose(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_attr *perm = ints_attr(s, "perm");
    if (!ranked(x)) {
        if (!perm) return set_unranked(s, 0, dtype_of(x));
        return rl_shape_set(s, 0, dtype_of(x), perm->n, new_dims(s, perm->n));
    }
    if (perm && perm->n != x->rank) return rl_shape_fail(s, "perm has %u elements, wants %u", perm->n, x->rank);
    rl_dim *d = new_dims(s, x->rank);
    bool *seen = rl_new(s->tmp, bool, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t a = x->rank - 1 - i;
        if (perm) RL_TRY(axis_in(s, perm->ints[i], x->rank, &a));
        if (seen[a]) return rl_shape_fail(s, "perm has %u twice", a);
        seen[a] = true;
        d[i] = x->dim[a];
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* a / b where b divides a because a Reshape says so. */
static rl_status quotient(const rl_shaper *s, rl_dim a, rl_dim b, rl_dim *q) {
    *q = UNKNOWN;
    if (a == UNKNOWN || b == UNKNOWN || b == 0) return RL_OK;
    if (rl_dim_known(a) && rl_dim_known(b) && a % b)
        return rl_shape_fail(s, "has %lld elements, which %lld does not divide", (long long)a, (long long)b);
    if (rl_dim_div(s->ctx, a, b, q)) return RL_OK;
    *q = rl_dim_known(b) ? rl_dim_floordiv(s->ctx, a, b) : rl_shape_derived(s, "div", a, b);
    return RL_OK;
}

/* The one dim of d that is UNKNOWN, at `hole`, from the number of elements; sizes in both x and d are left out first. */
static rl_status fill_hole(const rl_shaper *s, const rl_valinfo *x, rl_dim *d, uint32_t n, uint32_t hole) {
    rl_dim *from = copy_dims(s, x), rest = 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        if (i == hole) continue;
        while (k < x->rank && k < 64 && (from[k] != d[i] || d[i] == 0)) k++;
        if (k < x->rank && k < 64) from[k] = 1;
        else rest = rl_shape_mul(s, rest, d[i]);
    }
    return quotient(s, rl_shape_prod(s, from, x->rank), rest, &d[hole]);
}

static rl_status check_count(const rl_shaper *s, const rl_valinfo *x, const rl_dim *d, uint32_t n) {
    rl_dim a = rl_shape_prod(s, x->dim, x->rank), b = rl_shape_prod(s, d, n);
    if (!rl_dim_known(a) || !rl_dim_known(b) || a == b) return RL_OK;
    return rl_shape_fail(s, "input 0 has %lld elements, wants %lld", (long long)a, (long long)b);
}

/* 0 copies a dim, -1 (or a single number that is not known) is what the others leave. */
static rl_status reshape(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor t;
    if (list(s, "shape", 1, &t) != LIST_KNOWN) {
        uint32_t n = list_length(s, 1);
        if (n == RL_NORANK) return set_unranked(s, 0, dtype_of(x));
        rl_dim *d = new_dims(s, n);
        if (n == 1 && ranked(x)) d[0] = rl_shape_prod(s, x->dim, x->rank);
        return rl_shape_set(s, 0, dtype_of(x), n, d);
    }
    bool zero_copies = !rl_attr_int(s->n, "allowzero", 0);
    rl_dim *d = new_dims(s, t.n);
    uint32_t nhole = 0, hole = 0, nauto = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        bool number = t.cell[i].kind == CELL_INT;
        d[i] = size_of(s, t.cell[i]);
        if (number && t.cell[i].num < -1) return rl_shape_fail(s, "shape has %lld", (long long)t.cell[i].num);
        if (number && t.cell[i].num == -1 && nauto++) return rl_shape_fail(s, "shape has -1 twice");
        if (d[i] == 0 && zero_copies) {
            if (ranked(x) && i >= x->rank) return rl_shape_fail(s, "shape copies dim %u of input 0, which has rank %u", i, x->rank);
            d[i] = ranked(x) ? x->dim[i] : UNKNOWN;
        }
        if (d[i] == UNKNOWN) {
            hole = i;
            nhole++;
        }
    }
    if (ranked(x) && nhole == 1) RL_TRY(fill_hole(s, x, d, t.n, hole));
    if (ranked(x) && nhole == 0) RL_TRY(check_count(s, x, d, t.n));
    return rl_shape_set(s, 0, dtype_of(x), t.n, d);
}

static rl_status flatten(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_dim *d = new_dims(s, 2);
    if (ranked(x)) {
        int64_t a = rl_attr_int(s->n, "axis", 1);
        if (a < 0) a += x->rank;
        if (a < 0 || a > x->rank) return rl_shape_fail(s, "axis is out of range for rank %u", x->rank);
        d[0] = rl_shape_prod(s, x->dim, (uint32_t)a);
        d[1] = rl_shape_prod(s, x->dim + a, x->rank - (uint32_t)a);
    }
    return rl_shape_set(s, 0, dtype_of(x), 2, d);
}

static rl_status squeeze(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    bool *mark;
    found what;
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(axes_of(s, "axes", 1, x->rank, &mark, &what));
    uint32_t n = 0, count = list_length(s, 1);
    rl_dim *d = new_dims(s, x->rank);
    bool sure = what != LIST_UNKNOWN;
    for (uint32_t i = 0; i < x->rank && sure; i++) {
        if (what == LIST_NONE) {
            sure = rl_dim_known(x->dim[i]);
            if (x->dim[i] != 1) d[n++] = x->dim[i];
        } else if (!mark[i]) {
            d[n++] = x->dim[i];
        } else if (rl_dim_known(x->dim[i]) && x->dim[i] != 1) {
            return rl_shape_fail(s, "dim %u is %lld, wants 1", i, (long long)x->dim[i]);
        }
    }
    if (sure) return rl_shape_set(s, 0, x->dtype, n, d);
    if (what != LIST_UNKNOWN || count == RL_NORANK || count > x->rank) return set_unranked(s, 0, x->dtype);
    return rl_shape_set(s, 0, x->dtype, x->rank - count, new_dims(s, x->rank));
}

static rl_status unsqueeze_axes(rl_shaper *s, const rl_tensor *t) {
    const rl_valinfo *x = input(s, 0);
    uint32_t rank = x->rank + t->n, from = 0;
    bool *mark = rl_new(s->tmp, bool, rank);
    rl_dim *d = new_dims(s, rank);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t a;
        if (t->cell[i].kind != CELL_INT) return rl_shape_set(s, 0, x->dtype, rank, d);
        RL_TRY(axis_in(s, t->cell[i].num, rank, &a));
        if (mark[a]) return rl_shape_fail(s, "axes has %u twice", a);
        mark[a] = true;
    }
    for (uint32_t i = 0; i < rank; i++) d[i] = mark[i] ? 1 : x->dim[from++];
    return rl_shape_set(s, 0, x->dtype, rank, d);
}

static rl_status unsqueeze(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor t;
    uint32_t n = list_length(s, 1);
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    if (list(s, "axes", 1, &t) == LIST_KNOWN) return unsqueeze_axes(s, &t);
    return n == RL_NORANK ? set_unranked(s, 0, x->dtype) : rl_shape_set(s, 0, x->dtype, x->rank + n, new_dims(s, x->rank + n));
}

static rl_status expand_dims(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cell axis = scalar(s, 1);
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    return unsqueeze_axes(s, &(rl_tensor){.n = 1, .cell = &axis});
}

static rl_status tile(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor t;
    if (!ranked(x)) {
        uint32_t n = list_length(s, 1);
        return n == RL_NORANK ? set_unranked(s, 0, dtype_of(x)) : rl_shape_set(s, 0, dtype_of(x), n, new_dims(s, n));
    }
    rl_dim *d = new_dims(s, x->rank);
    if (load(s, 1, &t)) {
        if (t.n != x->rank) return rl_shape_fail(s, "input 1 has %u elements, wants %u", t.n, x->rank);
        for (uint32_t i = 0; i < x->rank; i++) d[i] = rl_shape_mul(s, x->dim[i], size_of(s, t.cell[i]));
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* Inputs first, first + step, ...; those without a rank leave what the others say. */
static rl_status concat_of(rl_shaper *s, uint32_t first, uint32_t step, rl_dtype t) {
    const rl_valinfo *like = NULL;
    uint32_t axis = 0;
    for (uint32_t i = first; i < s->n->nin && !like; i += step)
        if (ranked(input(s, i))) like = input(s, i);
    if (!like) return set_unranked(s, 0, t);
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", 1), like->rank, &axis));
    rl_dim *d = new_dims(s, like->rank);
    d[axis] = 0;
    for (uint32_t i = first; i < s->n->nin; i += step) {
        const rl_valinfo *x = input(s, i);
        RL_TRY(want_rank(s, i, like->rank));
        d[axis] = rl_shape_add(s, d[axis], dim_at(x, axis));
        for (uint32_t k = 0; k < like->rank; k++)
            if (k != axis && !rl_shape_unify(s, d[k], dim_at(x, k), &d[k]))
                return rl_shape_fail(s, "input %u has dim %u = %lld, wants %lld", i, k, (long long)x->dim[k], (long long)d[k]);
    }
    return rl_shape_set(s, 0, t, like->rank, d);
}

static rl_status concat(rl_shaper *s) {
    return concat_of(s, 0, 1, out_dtype(s, 0));
}

/* Inputs: y's scale and zero point, then x, scale, zero point of each. */
static rl_status qlinear_concat(rl_shaper *s) {
    return concat_of(s, 2, 3, dtype_of(input(s, 1)));
}

/* Equal parts; where they cannot be (opset 18), the last is smaller. */
static rl_dim equal_part(const rl_shaper *s, rl_dim d, uint32_t i, uint32_t n) {
    rl_dim part;
    if (rl_dim_known(d) && d % n == 0) return d / n;
    if (!rl_dim_known(d) && rl_dim_div(s->ctx, d, n, &part)) return part;
    if (s->n->since < 18) return rl_dim_known(d) ? UNKNOWN : rl_shape_floordiv(s, d, n);
    part = rl_shape_ceildiv(s, d, n);
    return i + 1 < n ? part : rl_shape_sub(s, d, rl_shape_mul(s, part, n - 1));
}

static rl_status split(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor t;
    uint32_t axis, n = s->n->nout;
    if (!ranked(x)) {
        for (uint32_t i = 0; i < n; i++) RL_TRY(set_unranked(s, i, dtype_of(x)));
        return RL_OK;
    }
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", 0), x->rank, &axis));
    found what = list(s, "split", 1, &t);
    if (what == LIST_KNOWN && t.n != n) return rl_shape_fail(s, "has %u sizes for %u outputs", t.n, n);
    rl_dim *d = copy_dims(s, x), sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        d[axis] = what == LIST_NONE ? equal_part(s, x->dim[axis], i, n) : what == LIST_KNOWN ? size_of(s, t.cell[i]) : UNKNOWN;
        sum = rl_shape_add(s, sum, d[axis]);
        RL_TRY(rl_shape_set(s, i, x->dtype, x->rank, d));
    }
    if (what == LIST_KNOWN && rl_dim_known(sum) && rl_dim_known(x->dim[axis]) && sum != x->dim[axis])
        return rl_shape_fail(s, "dim %u is %lld, wants %lld", axis, (long long)x->dim[axis], (long long)sum);
    return RL_OK;
}

/* A bound of a slice, clamped to [least, most]. */
static int64_t clamp_bound(int64_t a, int64_t d, int64_t least, int64_t most) {
    if (a < 0) a += d;
    return RL_MAX(least, RL_MIN(a, most));
}

static int64_t slice_count(int64_t d, int64_t a, int64_t b, int64_t step) {
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

/* The elements that [a, b) leaves of d, one of the three being a symbol. */
static rl_dim slice_symbolic(const rl_shaper *s, rl_dim d, rl_cell a, rl_cell b) {
    rl_dim end = size_of(s, b), start = size_of(s, a);
    if (b.kind == CELL_INT && b.num >= INT32_MAX) end = d;
    else if (b.kind == CELL_INT && b.num < 0) end = rl_shape_offset(s, d, b.num);
    else end = rl_shape_min(s, d, end);
    if (a.kind == CELL_INT && a.num < 0) {
        if (a.num == INT64_MIN) return UNKNOWN;
        if (rl_shape_least(s, d) < -a.num) return end == d ? rl_shape_min(s, d, -a.num) : UNKNOWN;
        start = rl_shape_offset(s, d, a.num);
    }
    if (start == 0) return end;
    if (rl_dim_known(start) && rl_dim_known(end)) return RL_MAX(end - start, 0);
    return rl_dim_known(start) && start >= INT32_MAX ? UNKNOWN : rl_shape_sub(s, end, start);
}

static rl_dim slice_size(const rl_shaper *s, rl_dim d, rl_cell a, rl_cell b, int64_t step) {
    bool numbers = a.kind == CELL_INT && b.kind == CELL_INT;
    if (numbers && rl_dim_known(d)) return slice_count(d, a.num, b.num, step);
    if (step > 0) return rl_shape_ceildiv(s, slice_symbolic(s, d, a, b), step);
    bool all = numbers && (a.num == -1 || a.num >= INT32_MAX) && b.num <= -INT32_MAX && step > INT64_MIN;
    return all ? rl_shape_ceildiv(s, d, -step) : UNKNOWN;
}

/* Cell i of a list that may be missing. */
static rl_cell cell_at(found what, const rl_tensor *t, uint32_t i, int64_t dflt) {
    if (what == LIST_NONE) return (rl_cell){.kind = CELL_INT, .num = dflt};
    return what == LIST_KNOWN && i < t->n ? t->cell[i] : (rl_cell){.kind = CELL_NONE};
}

static rl_status slice(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor from = {0}, to = {0}, axes = {0}, steps = {0};
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    found ffrom = list(s, "starts", 1, &from), fto = list(s, "ends", 2, &to), faxes = list(s, "axes", 3, &axes);
    found fsteps = list(s, NULL, 4, &steps);
    uint32_t n = ffrom == LIST_KNOWN ? from.n : fto == LIST_KNOWN ? to.n : faxes == LIST_KNOWN ? axes.n : list_length(s, 1);
    bool lost = n == RL_NORANK || faxes == LIST_UNKNOWN;
    rl_dim *d = lost ? new_dims(s, x->rank) : copy_dims(s, x);
    for (uint32_t i = 0; !lost && i < n; i++) {
        rl_cell at = cell_at(faxes, &axes, i, i), step = cell_at(fsteps, &steps, i, 1);
        uint32_t a;
        if (at.kind != CELL_INT) return rl_shape_set(s, 0, x->dtype, x->rank, new_dims(s, x->rank));
        RL_TRY(axis_in(s, at.num, x->rank, &a));
        if (step.kind == CELL_INT && step.num == 0) return rl_shape_fail(s, "step of axis %u is 0", a);
        d[a] = step.kind == CELL_INT ? slice_size(s, x->dim[a], cell_at(ffrom, &from, i, 0), cell_at(fto, &to, i, 0), step.num) : UNKNOWN;
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

static rl_status pad(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor pads, axes = {0};
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    found fpads = list(s, "pads", 1, &pads), faxes = list(s, NULL, 3, &axes);
    rl_dim *d = copy_dims(s, x);
    uint32_t n = faxes == LIST_KNOWN ? axes.n : x->rank;
    if (fpads != LIST_KNOWN || faxes == LIST_UNKNOWN) return rl_shape_set(s, 0, x->dtype, x->rank, new_dims(s, x->rank));
    if (pads.n != 2 * n) return rl_shape_fail(s, "pads has %u elements, wants %u", pads.n, 2 * n);
    for (uint32_t i = 0; i < n; i++) {
        rl_cell at = cell_at(faxes, &axes, i, i), p[2] = {pads.cell[i], pads.cell[n + i]};
        uint32_t a;
        if (at.kind != CELL_INT) return rl_shape_set(s, 0, x->dtype, x->rank, new_dims(s, x->rank));
        RL_TRY(axis_in(s, at.num, x->rank, &a));
        for (int k = 0; k < 2; k++)
            d[a] = p[k].kind == CELL_INT ? rl_shape_offset(s, d[a], p[k].num) : rl_shape_add(s, d[a], size_of(s, p[k]));
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

static rl_status gather(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *i = input(s, 1);
    uint32_t axis, n = 0;
    if (!ranked(x) || !ranked(i)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", 0), x->rank, &axis));
    rl_dim *d = new_dims(s, x->rank + i->rank);
    for (uint32_t k = 0; k < axis; k++) d[n++] = x->dim[k];
    for (uint32_t k = 0; k < i->rank; k++) d[n++] = i->dim[k];
    for (uint32_t k = axis + 1; k < x->rank; k++) d[n++] = x->dim[k];
    return rl_shape_set(s, 0, x->dtype, n, d);
}

static rl_status gather_elements(rl_shaper *s) {
    return set_like(s, 0, dtype_of(input(s, 0)), input(s, 1));
}

static rl_status gather_nd(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *i = input(s, 1);
    int64_t b = rl_attr_int(s->n, "batch_dims", 0);
    if (!ranked(x) || !ranked(i) || i->rank == 0 || !rl_dim_known(i->dim[i->rank - 1])) return set_unranked(s, 0, dtype_of(x));
    int64_t k = i->dim[i->rank - 1];
    if (b < 0 || b >= i->rank || b > x->rank || k > x->rank - b)
        return rl_shape_fail(s, "indices of %lld dims after %lld batch dims do not fit rank %u", (long long)k, (long long)b, x->rank);
    rl_dim *d = new_dims(s, x->rank + i->rank);
    uint32_t n = 0;
    for (uint32_t j = 0; j + 1 < i->rank; j++) d[n++] = i->dim[j];
    for (uint32_t j = (uint32_t)(b + k); j < x->rank; j++) d[n++] = x->dim[j];
    return rl_shape_set(s, 0, x->dtype, n, d);
}

static rl_status depth_to_space(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    int64_t b = rl_attr_int(s->n, "blocksize", 0);
    RL_TRY(want_rank(s, 0, 4));
    if (b <= 0 || b > INT16_MAX) return rl_shape_fail(s, "blocksize is %lld", (long long)b);
    rl_dim *d = new_dims(s, 4);
    if (ranked(x)) {
        d[0] = x->dim[0];
        RL_TRY(quotient(s, x->dim[1], b * b, &d[1]));
        for (uint32_t i = 2; i < 4; i++) d[i] = rl_shape_mul(s, x->dim[i], b);
    }
    return rl_shape_set(s, 0, dtype_of(x), 4, d);
}

static rl_status space_to_depth(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    int64_t b = rl_attr_int(s->n, "blocksize", 0);
    RL_TRY(want_rank(s, 0, 4));
    if (b <= 0 || b > INT16_MAX) return rl_shape_fail(s, "blocksize is %lld", (long long)b);
    rl_dim *d = new_dims(s, 4);
    if (ranked(x)) {
        d[0] = x->dim[0];
        d[1] = rl_shape_mul(s, x->dim[1], b * b);
        for (uint32_t i = 2; i < 4; i++) RL_TRY(quotient(s, x->dim[i], b, &d[i]));
    }
    return rl_shape_set(s, 0, dtype_of(x), 4, d);
}

/* Output dim along `axis` alone is not known. */
static rl_status compress(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_attr *a = rl_attr_find(s->n, "axis");
    uint32_t axis;
    if (!a) return rl_shape_set(s, 0, dtype_of(x), 1, new_dims(s, 1));
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(axis_in(s, a->i, x->rank, &axis));
    rl_dim *d = copy_dims(s, x);
    d[axis] = UNKNOWN;
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* A size that several outputs share: the one that output 0 already has at `axis`, or a fresh symbol. */
static rl_dim shared_size(const rl_shaper *s, uint32_t rank, uint32_t axis) {
    rl_value v = rl_out(s->n, 0);
    const rl_valinfo *x = rl_has(v) ? rl_val(s->g, v) : NULL;
    return x && x->rank == rank ? x->dim[axis] : rl_dim_fresh(s->ctx);
}

static rl_status unique(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_attr *a = rl_attr_find(s->n, "axis");
    rl_dim n = UNKNOWN, all = UNKNOWN;
    if (a && ranked(x)) {
        uint32_t axis;
        RL_TRY(axis_in(s, a->i, x->rank, &axis));
        rl_dim *d = copy_dims(s, x);
        all = d[axis];
        d[axis] = n = shared_size(s, x->rank, axis);
        RL_TRY(rl_shape_set(s, 0, x->dtype, x->rank, d));
    } else if (a) {
        RL_TRY(set_unranked(s, 0, dtype_of(x)));
    } else {
        if (ranked(x)) all = rl_shape_prod(s, x->dim, x->rank);
        n = shared_size(s, 1, 0);
        RL_TRY(rl_shape_set(s, 0, dtype_of(x), 1, &n));
    }
    RL_TRY(rl_shape_set(s, 1, RL_I64, 1, &n));
    RL_TRY(rl_shape_set(s, 2, RL_I64, 1, &all));
    return rl_shape_set(s, 3, RL_I64, 1, &n);
}

/* Outputs: values, index of each element, counts. */
static rl_status ms_unique(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_dim n = shared_size(s, 1, 0);
    RL_TRY(rl_shape_set(s, 0, dtype_of(x), 1, &n));
    RL_TRY(set_like(s, 1, RL_I64, x));
    return rl_shape_set(s, 2, RL_I64, 1, &n);
}

/* All elements of x are known not to be 0: how many there are. */
static rl_dim count_all(const rl_shaper *s, const rl_valinfo *x) {
    if (!ranked(x) || x->def.i == RL_NONE) return UNKNOWN;
    const rl_nodeinfo *n = rl_nod(s->g, x->def);
    const rl_attr *a = rl_attr_find(n, "value");
    if (n->op != RL_OP_ConstantOfShape || !a || !a->tensor || !a->tensor->data) return UNKNOWN;
    bool nonzero = false;
    for (size_t i = 0; i < a->tensor->nbyte; i++) nonzero |= ((const char *)a->tensor->data)[i] != 0;
    return nonzero ? rl_shape_prod(s, x->dim, x->rank) : UNKNOWN;
}

static rl_status non_zero(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_tensor t;
    rl_dim d[2] = {ranked(x) ? x->rank : UNKNOWN, count_all(s, x)};
    if (load(s, 0, &t)) {
        int64_t n = 0;
        for (uint32_t i = 0; i < t.n && n >= 0; i++) {
            if (t.cell[i].kind == CELL_INT) n += t.cell[i].num != 0;
            else if (t.cell[i].kind == CELL_FLOAT) n += t.cell[i].f != 0;
            else n = -1;
        }
        if (n >= 0) d[1] = n;
    }
    return rl_shape_set(s, 0, RL_I64, 2, d);
}

/* ---- resizing ---- */

static rl_dim scaled(const rl_shaper *s, rl_dim d, double f) {
    int64_t num, den;
    if (!(f >= 0 && f < 1e9) || d == UNKNOWN) return UNKNOWN;
    if (f == 1) return d;
    if (rl_dim_known(d)) {
        float r = floorf((float)d * (float)f); /* as onnx computes it */
        return r >= 0 && r < 9e18f ? (rl_dim)r : UNKNOWN;
    }
    return rl_shape_ratio(f, &num, &den) ? rl_shape_floordiv(s, rl_shape_mul(s, d, num), den) : UNKNOWN;
}

/* The axis that list element i is for. */
static rl_status resize_axis(const rl_shaper *s, uint32_t i, uint32_t rank, uint32_t *a) {
    const rl_attr *axes = ints_attr(s, "axes");
    return axis_in(s, axes ? i < axes->n ? axes->ints[i] : INT64_MAX / 2 : i, rank, a);
}

static rl_status resize_scales(rl_shaper *s, const rl_tensor *t) {
    const rl_valinfo *x = input(s, 0);
    rl_dim *d = copy_dims(s, x);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t a;
        RL_TRY(resize_axis(s, i, x->rank, &a));
        d[a] = t->cell[i].kind == CELL_FLOAT ? scaled(s, x->dim[a], t->cell[i].f) : UNKNOWN;
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* round(size * least or greatest of sizes[i]/dim[i]), where all are numbers. */
static rl_dim keep_ratio(const rl_shaper *s, const rl_tensor *t, rl_dim d) {
    const rl_valinfo *x = input(s, 0);
    bool larger = rl_attr_is(s->n, "keep_aspect_ratio_policy", "not_smaller");
    double best = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t a;
        if (resize_axis(s, i, x->rank, &a) != RL_OK || t->cell[i].kind != CELL_INT || x->dim[a] <= 0) return UNKNOWN;
        double f = (double)t->cell[i].num / (double)x->dim[a];
        if (i == 0 || (larger ? f > best : f < best)) best = f;
    }
    double r = floor((double)d * best + 0.5);
    return rl_dim_known(d) && r >= 0 && r < 9e18 ? (rl_dim)r : UNKNOWN;
}

static rl_status resize_sizes(rl_shaper *s, const rl_tensor *t) {
    const rl_valinfo *x = input(s, 0);
    rl_dim *d = copy_dims(s, x);
    bool keep = rl_attr_is(s->n, "keep_aspect_ratio_policy", "not_larger") || rl_attr_is(s->n, "keep_aspect_ratio_policy", "not_smaller");
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t a;
        RL_TRY(resize_axis(s, i, x->rank, &a));
        d[a] = keep ? keep_ratio(s, t, x->dim[a]) : size_of(s, t->cell[i]);
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* Inputs: x, scales (opset 10); x, roi, scales, sizes (later). */
static rl_status resize(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    uint32_t at = s->n->since < 11 ? 1 : 2;
    const rl_attr *axes = ints_attr(s, "axes");
    rl_tensor t;
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    uint32_t n = axes ? axes->n : x->rank;
    if (at == 2 && load(s, 3, &t) && t.n == n) return resize_sizes(s, &t);
    if (load(s, at, &t) && t.n == n) return resize_scales(s, &t);
    rl_dim *d = axes ? copy_dims(s, x) : new_dims(s, x->rank);
    for (uint32_t i = 0; axes && i < n; i++) {
        uint32_t a;
        RL_TRY(resize_axis(s, i, x->rank, &a));
        d[a] = UNKNOWN;
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

static rl_status upsample(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_attr *a = rl_attr_find(s->n, "scales");
    rl_tensor t;
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    rl_dim *d = new_dims(s, x->rank);
    if (a && a->kind == RL_ATTR_FLOATS && a->n == x->rank)
        for (uint32_t i = 0; i < x->rank; i++) d[i] = scaled(s, x->dim[i], (double)a->floats[i]);
    else if (load(s, 1, &t) && t.n == x->rank)
        return resize_scales(s, &t);
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

static rl_status center_crop_pad(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_attr *axes = ints_attr(s, "axes");
    rl_tensor t;
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    bool known = load(s, 1, &t);
    rl_dim *d = copy_dims(s, x);
    for (uint32_t i = 0; i < (axes ? axes->n : x->rank); i++) {
        uint32_t a;
        RL_TRY(resize_axis(s, i, x->rank, &a));
        d[a] = known && i < t.n ? size_of(s, t.cell[i]) : UNKNOWN;
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* Inputs: theta, size (N,C,H,W or N,C,D,H,W). */
static rl_status affine_grid(rl_shaper *s) {
    rl_tensor t;
    bool known = load(s, 1, &t);
    uint32_t n = known ? t.n : list_length(s, 1);
    if (n != 4 && n != 5) return set_unranked(s, 0, dtype_of(input(s, 0)));
    rl_dim d[5];
    for (uint32_t i = 0; i < n - 1; i++) d[i] = known ? size_of(s, t.cell[i ? i + 1 : 0]) : UNKNOWN;
    d[n - 1] = n - 2;
    return rl_shape_set(s, 0, dtype_of(input(s, 0)), n, d);
}

static rl_status grid_sample(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *grid = input(s, 1);
    RL_TRY(want_least_rank(s, 0, 3));
    RL_TRY(want_least_rank(s, 1, 3));
    const rl_valinfo *like = ranked(x) ? x : grid;
    if (!ranked(like)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(want_rank(s, 1, like->rank));
    rl_dim *d = new_dims(s, like->rank);
    for (uint32_t i = 2; i < like->rank; i++) d[i] = dim_at(grid, i - 1);
    if (!rl_shape_unify(s, dim_at(x, 0), dim_at(grid, 0), &d[0])) return rl_shape_fail(s, "inputs differ in dim 0");
    d[1] = dim_at(x, 1);
    return rl_shape_set(s, 0, dtype_of(x), like->rank, d);
}

/* Regions `r` of x, each of size h x w. */
static rl_status set_regions(rl_shaper *s, uint32_t r, rl_dim h, rl_dim w) {
    rl_dim d[4] = {dim_at(input(s, r), 0), dim_at(input(s, 0), 1), h, w};
    RL_TRY(want_rank(s, 0, 4));
    return rl_shape_set(s, 0, dtype_of(input(s, 0)), 4, d);
}

static rl_status roi_align(rl_shaper *s) {
    int64_t h = rl_attr_int(s->n, "output_height", 1), w = rl_attr_int(s->n, "output_width", 1);
    RL_TRY(want_rank(s, 1, 2));
    return set_regions(s, 1, h >= 0 ? h : UNKNOWN, w >= 0 ? w : UNKNOWN);
}

static rl_status max_roi_pool(rl_shaper *s) {
    const rl_attr *a = ints_attr(s, "pooled_shape");
    bool ok = a && a->n == 2 && a->ints[0] >= 0 && a->ints[1] >= 0;
    RL_TRY(want_rank(s, 1, 2));
    return set_regions(s, 1, ok ? a->ints[0] : UNKNOWN, ok ? a->ints[1] : UNKNOWN);
}

static rl_status crop_and_resize(rl_shaper *s) {
    rl_tensor t;
    bool ok = load(s, 3, &t) && t.n == 2;
    return set_regions(s, 1, ok ? size_of(s, t.cell[0]) : UNKNOWN, ok ? size_of(s, t.cell[1]) : UNKNOWN);
}

static rl_status non_max_suppression(rl_shaper *s) {
    rl_dim d[2] = {UNKNOWN, 3};
    return rl_shape_set(s, 0, RL_I64, 2, d);
}

/* ---- making tensors ---- */

static rl_status shape(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_dim n = UNKNOWN;
    if (ranked(x)) {
        int64_t a = rl_attr_int(s->n, "start", 0), b = rl_attr_int(s->n, "end", x->rank);
        n = slice_count(x->rank, a, b, 1);
    }
    return rl_shape_set(s, 0, RL_I64, 1, &n);
}

static rl_status i64_scalar(rl_shaper *s) {
    return set_scalar(s, 0, RL_I64);
}

static rl_status bool_scalar(rl_shaper *s) {
    return set_scalar(s, 0, RL_BOOL);
}

static rl_status constant_tensor(rl_shaper *s, const rl_const *t) {
    rl_value y = rl_out(s->n, 0);
    if (rl_has(y) && !rl_val(s->g, y)->data) rl_val(s->g, y)->data = t;
    return rl_shape_set(s, 0, t->dtype, t->rank, t->dim);
}

static rl_status constant(rl_shaper *s) {
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

static rl_status constant_of_shape(rl_shaper *s) {
    const rl_attr *a = rl_attr_find(s->n, "value");
    rl_dtype dtype = a && a->tensor ? a->tensor->dtype : RL_F32;
    rl_tensor t;
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

/* ceil((limit - start) / delta) */
static rl_dim range_size(const rl_shaper *s, rl_cell a, rl_cell b, rl_cell step) {
    double x, y, z;
    if (number_of(a, &x) && number_of(b, &y) && number_of(step, &z)) {
        double n = z != 0 ? ceil((y - x) / z) : NAN;
        return n <= 0 ? 0 : n < 9e15 ? (rl_dim)n : UNKNOWN;
    }
    if (step.kind != CELL_INT || step.num <= 0) return UNKNOWN;
    rl_dim from = size_of(s, a), to = size_of(s, b);
    return rl_shape_ceildiv(s, rl_shape_sub(s, to, from), step.num);
}

static rl_status range(rl_shaper *s) {
    rl_cell step = s->n->nin > 2 ? scalar(s, 2) : (rl_cell){.kind = CELL_INT, .num = 1};
    rl_dim n = range_size(s, scalar(s, 0), scalar(s, 1), step);
    return rl_shape_set(s, 0, dtype_of(input(s, 0)), 1, &n);
}

static rl_status one_hot(rl_shaper *s) {
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

static rl_status random_shape(rl_shaper *s) {
    const rl_attr *a = ints_attr(s, "shape");
    rl_dtype t = attr_dtype(s, "dtype", RL_F32);
    if (!a) return rl_shape_fail(s, "has no shape");
    rl_dim *d = new_dims(s, a->n);
    for (uint32_t i = 0; i < a->n; i++) d[i] = a->ints[i] >= 0 ? a->ints[i] : UNKNOWN;
    return rl_shape_set(s, 0, t, a->n, d);
}

static rl_status multinomial(rl_shaper *s) {
    int64_t n = rl_attr_int(s->n, "sample_size", 1);
    rl_dim d[2] = {dim_at(input(s, 0), 0), n >= 0 ? n : UNKNOWN};
    RL_TRY(want_rank(s, 0, 2));
    return rl_shape_set(s, 0, attr_dtype(s, "dtype", RL_I32), 2, d);
}

static rl_status image_decoder(rl_shaper *s) {
    rl_dim d[3] = {UNKNOWN, UNKNOWN, rl_attr_is(s->n, "pixel_format", "Grayscale") ? 1 : 3};
    return rl_shape_set(s, 0, RL_U8, 3, d);
}

/* ---- signals ---- */

static rl_status window_function(rl_shaper *s) {
    rl_dim n = size_of(s, scalar(s, 0));
    return rl_shape_set(s, 0, attr_dtype(s, "output_datatype", RL_F32), 1, &n);
}

static rl_status mel_weights(rl_shaper *s) {
    rl_dim bins = size_of(s, scalar(s, 0)), length = size_of(s, scalar(s, 1));
    rl_dim d[2] = {rl_shape_offset(s, rl_shape_floordiv(s, length, 2), 1), bins};
    return rl_shape_set(s, 0, attr_dtype(s, "output_datatype", RL_F32), 2, d);
}

/* Where the axis stands: attribute up to opset 19, then input 2. */
static rl_status dft(rl_shaper *s) {
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

/* Inputs: signal [batch, length, 1 or 2], step, window, frame length. */
static rl_status stft(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *win = input(s, 2);
    RL_TRY(want_rank(s, 0, 3));
    rl_cell step = scalar(s, 1);
    rl_dim frame = input(s, 3) ? size_of(s, scalar(s, 3)) : win ? dim_at(win, 0) : dim_at(x, 1);
    rl_dim room = rl_shape_sub(s, dim_at(x, 1), frame), d[4] = {dim_at(x, 0), UNKNOWN, frame, 2};
    if (step.kind == CELL_INT) d[1] = rl_shape_offset(s, rl_shape_floordiv(s, room, step.num), 1);
    if (rl_attr_int(s->n, "onesided", 1)) d[2] = rl_shape_offset(s, rl_shape_floordiv(s, frame, 2), 1);
    return rl_shape_set(s, 0, dtype_of(x), 4, d);
}

/* ---- losses, text ---- */

static rl_status nll_loss(rl_shaper *s) {
    if (!rl_attr_is(s->n, "reduction", "none")) return set_scalar(s, 0, dtype_of(input(s, 0)));
    return set_like(s, 0, dtype_of(input(s, 0)), input(s, 1));
}

static rl_status softmax_loss(rl_shaper *s) {
    RL_TRY(nll_loss(s));
    return set_like(s, 1, dtype_of(input(s, 0)), input(s, 0));
}

static rl_status tf_idf(rl_shaper *s) {
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
static rl_status string_normalizer(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    if (!ranked(x) || x->rank < 1 || x->rank > 2) return set_unranked(s, 0, RL_STRING);
    rl_dim d[2] = {1, UNKNOWN};
    return rl_shape_set(s, 0, RL_STRING, x->rank, x->rank == 2 ? d : d + 1);
}

static rl_status string_split(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    RL_TRY(set_like(s, 1, RL_I64, x));
    if (!ranked(x)) return set_unranked(s, 0, RL_STRING);
    rl_dim *d = new_dims(s, x->rank + 1);
    if (x->rank) memcpy(d, x->dim, x->rank * sizeof *d);
    return rl_shape_set(s, 0, RL_STRING, x->rank + 1, d);
}

static rl_status murmur(rl_shaper *s) {
    return set_like(s, 0, rl_attr_int(s->n, "positive", 1) ? RL_U32 : RL_I32, input(s, 0));
}

static rl_status like_input1(rl_shaper *s) {
    return set_like(s, 0, dtype_of(input(s, 1)), input(s, 1));
}

static rl_status pair_distances(rl_shaper *s) {
    rl_dim d[2] = {dim_at(input(s, 0), 0), dim_at(input(s, 1), 0)};
    return rl_shape_set(s, 0, dtype_of(input(s, 0)), 2, d);
}

/* ---- sequences and optionals: the type of their elements, in s->item ---- */

#define EMPTY (RL_NORANK - 1) /* rank of the elements of a sequence that has none */

static rl_type item_of(const rl_shaper *s, uint32_t i) {
    rl_value v = rl_in(s->n, i);
    return rl_has(v) && s->item ? s->item[v.i] : (rl_type){RL_UNDEF, RL_NORANK, NULL};
}

static rl_type tensor_type(const rl_valinfo *x) {
    return x ? (rl_type){x->dtype, x->rank, x->dim} : (rl_type){RL_UNDEF, RL_NORANK, NULL};
}

static rl_status set_item(rl_shaper *s, uint32_t port, rl_type t) {
    rl_value v = rl_out(s->n, port);
    if (!rl_has(v)) return RL_OK;
    if (!s->item) {
        s->item = rl_new(s->keep, rl_type, s->g->nval);
        for (uint32_t i = 0; i < s->g->nval; i++) s->item[i].rank = RL_NORANK;
    }
    if (t.rank < EMPTY && t.rank) t.dim = rl_copy(s->keep, t.dim, t.rank * sizeof *t.dim);
    s->item[v.i] = t;
    return RL_OK;
}

static rl_type common(const rl_shaper *s, rl_type a, rl_type b) {
    if (a.rank == EMPTY) return b;
    if (b.rank == EMPTY) return a;
    rl_type t = {a.dtype == b.dtype ? a.dtype : RL_UNDEF, RL_NORANK, NULL};
    if (a.rank != b.rank || a.rank == RL_NORANK) return t;
    rl_dim *d = new_dims(s, a.rank);
    for (uint32_t i = 0; i < a.rank; i++)
        if (a.dim[i] == b.dim[i]) d[i] = a.dim[i];
    return (rl_type){t.dtype, a.rank, d};
}

static rl_status identity(rl_shaper *s) {
    if (s->item && s->n->nin) RL_TRY(set_item(s, 0, item_of(s, 0)));
    return same(s);
}

static rl_status sequence_construct(rl_shaper *s) {
    rl_type t = {RL_UNDEF, EMPTY, NULL};
    for (uint32_t i = 0; i < s->n->nin; i++) t = common(s, t, tensor_type(input(s, i)));
    return set_item(s, 0, t);
}

static rl_status sequence_empty(rl_shaper *s) {
    return set_item(s, 0, (rl_type){attr_dtype(s, "dtype", RL_F32), EMPTY, NULL});
}

static rl_status sequence_erase(rl_shaper *s) {
    return set_item(s, 0, item_of(s, 0));
}

static rl_status sequence_insert(rl_shaper *s) {
    return set_item(s, 0, common(s, item_of(s, 0), tensor_type(input(s, 1))));
}

static rl_status set_tensor(rl_shaper *s, rl_type t) {
    return t.rank == EMPTY ? set_unranked(s, 0, t.dtype) : rl_shape_set(s, 0, t.dtype, t.rank, t.dim);
}

static rl_status sequence_at(rl_shaper *s) {
    return set_tensor(s, item_of(s, 0));
}

static rl_status optional(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    return x && x->dtype != RL_UNDEF ? set_item(s, 0, tensor_type(x)) : RL_OK;
}

/* Of a tensor: itself. */
static rl_status optional_get(rl_shaper *s) {
    rl_type t = item_of(s, 0);
    return t.dtype != RL_UNDEF ? set_tensor(s, t) : same(s);
}

static rl_status split_to_sequence(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *parts = input(s, 1);
    if (!ranked(x)) return set_item(s, 0, tensor_type(x));
    uint32_t axis, n = 0;
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", 0), x->rank, &axis));
    bool keep = parts || rl_attr_int(s->n, "keepdims", 1) == 1;
    rl_cell k = scalar(s, 1);
    rl_dim *d = new_dims(s, x->rank), part = parts ? UNKNOWN : 1;
    bool even = k.kind == CELL_INT && k.num > 0 && rl_dim_known(x->dim[axis]) && x->dim[axis] % k.num == 0;
    if (ranked(parts) && parts->rank == 0 && even) part = k.num;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != axis || keep) d[n++] = i == axis ? part : x->dim[i];
    return set_item(s, 0, (rl_type){x->dtype, n, d});
}

static rl_status concat_from_sequence(rl_shaper *s) {
    rl_type t = item_of(s, 0);
    uint32_t more = rl_attr_int(s->n, "new_axis", 0) != 0, axis;
    if (t.rank >= EMPTY) return set_unranked(s, 0, t.dtype);
    RL_TRY(axis_in(s, rl_attr_int(s->n, "axis", 0), t.rank + more, &axis));
    rl_dim *d = new_dims(s, t.rank + more);
    for (uint32_t i = 0; i < t.rank + more; i++)
        if (i != axis) d[i] = t.dim[i - (more && i > axis)];
    return rl_shape_set(s, 0, t.dtype, t.rank + more, d);
}

/* ---- the table ---- */

/* An op that is not here is inferred from what the model declares; tests/unit/shape.c lists those. */
const rl_rulerow rl_shape_rules[RL_NOP] = {
#define ROW(op, rule) [RL_OP_##op] = {rule, RL_UNDEF}
#define TYPED(op, rule, dtype) [RL_OP_##op] = {rule, dtype}
    ROW(Abs, same),
    ROW(Acos, same),
    ROW(Acosh, same),
    ROW(Add, broadcast),
    ROW(AffineGrid, affine_grid),
    TYPED(And, broadcast, RL_BOOL),
    ROW(ArgMax, arg_reduce),
    ROW(ArgMin, arg_reduce),
    ROW(Asin, same),
    ROW(Asinh, same),
    ROW(Atan, same),
    ROW(Atanh, same),
    ROW(Attention, attention),
    ROW(AveragePool, pool),
    ROW(BatchNormalization, batch_norm),
    ROW(Bernoulli, same_dtype),
    ROW(BitCast, cast),
    ROW(BitShift, broadcast),
    ROW(BitwiseAnd, broadcast),
    ROW(BitwiseNot, same),
    ROW(BitwiseOr, broadcast),
    ROW(BitwiseXor, broadcast),
    ROW(BlackmanWindow, window_function),
    ROW(Cast, cast),
    ROW(CastLike, like1),
    ROW(CausalConvWithState, causal_conv),
    ROW(Ceil, same),
    ROW(Celu, same),
    ROW(CenterCropPad, center_crop_pad),
    ROW(Clip, same),
    ROW(Col2Im, col2im),
    ROW(Compress, compress),
    ROW(Concat, concat),
    ROW(ConcatFromSequence, concat_from_sequence),
    ROW(Constant, constant),
    ROW(ConstantOfShape, constant_of_shape),
    ROW(Conv, conv),
    TYPED(ConvInteger, conv, RL_I32),
    ROW(ConvTranspose, conv_transpose),
    ROW(Cos, same),
    ROW(Cosh, same),
    ROW(CumProd, same),
    ROW(CumSum, same),
    ROW(DFT, dft),
    ROW(DeformConv, conv),
    ROW(DepthToSpace, depth_to_space),
    ROW(DequantizeLinear, dequantize),
    ROW(Det, det),
    ROW(Div, broadcast),
    ROW(Dropout, dropout),
    ROW(DynamicQuantizeLinear, dynamic_quantize),
    ROW(Einsum, einsum_rule),
    ROW(Elu, same),
    TYPED(Equal, broadcast, RL_BOOL),
    ROW(Erf, same),
    ROW(Exp, same),
    ROW(Expand, expand),
    ROW(EyeLike, same_dtype),
    ROW(Flatten, flatten),
    ROW(Floor, same),
    ROW(GRU, recurrent),
    ROW(Gather, gather),
    ROW(GatherElements, gather_elements),
    ROW(GatherND, gather_nd),
    ROW(Gelu, same),
    ROW(Gemm, gemm),
    ROW(GlobalAveragePool, global_pool),
    ROW(GlobalLpPool, global_pool),
    ROW(GlobalMaxPool, global_pool),
    TYPED(Greater, broadcast, RL_BOOL),
    TYPED(GreaterOrEqual, broadcast, RL_BOOL),
    ROW(GridSample, grid_sample),
    ROW(GroupNormalization, same),
    ROW(HammingWindow, window_function),
    ROW(HannWindow, window_function),
    ROW(HardSigmoid, same),
    ROW(HardSwish, same),
    ROW(Hardmax, same),
    ROW(Identity, identity),
    ROW(If, rl_shape_if),
    ROW(ImageDecoder, image_decoder),
    ROW(InstanceNormalization, same),
    TYPED(IsInf, same, RL_BOOL),
    TYPED(IsNaN, same, RL_BOOL),
    ROW(LRN, same),
    ROW(LSTM, recurrent),
    ROW(LayerNormalization, layer_norm),
    ROW(LeakyRelu, same),
    TYPED(Less, broadcast, RL_BOOL),
    TYPED(LessOrEqual, broadcast, RL_BOOL),
    ROW(LinearAttention, linear_attention),
    ROW(Log, same),
    ROW(LogSoftmax, same),
    ROW(Loop, rl_shape_loop),
    ROW(LpNormalization, same),
    ROW(LpPool, pool),
    ROW(MatMul, matmul),
    TYPED(MatMulInteger, matmul, RL_I32),
    ROW(Max, broadcast),
    ROW(MaxPool, pool),
    ROW(MaxRoiPool, max_roi_pool),
    ROW(MaxUnpool, max_unpool),
    ROW(Mean, broadcast),
    ROW(MeanVarianceNormalization, same),
    ROW(MelWeightMatrix, mel_weights),
    ROW(Min, broadcast),
    ROW(Mish, same),
    ROW(Mod, broadcast),
    ROW(Mul, broadcast),
    ROW(Multinomial, multinomial),
    ROW(Neg, same),
    ROW(NegativeLogLikelihoodLoss, nll_loss),
    ROW(NonMaxSuppression, non_max_suppression),
    ROW(NonZero, non_zero),
    TYPED(Not, same, RL_BOOL),
    ROW(OneHot, one_hot),
    ROW(Optional, optional),
    ROW(OptionalGetElement, optional_get),
    ROW(OptionalHasElement, bool_scalar),
    TYPED(Or, broadcast, RL_BOOL),
    ROW(PRelu, same),
    ROW(Pad, pad),
    ROW(Pow, broadcast),
    ROW(QLinearConv, qlinear_conv),
    ROW(QLinearMatMul, qlinear_matmul),
    ROW(QuantizeLinear, quantize),
    ROW(RMSNormalization, rms_norm),
    ROW(RNN, recurrent),
    ROW(RandomNormal, random_shape),
    ROW(RandomNormalLike, same_dtype),
    ROW(RandomUniform, random_shape),
    ROW(RandomUniformLike, same_dtype),
    ROW(Range, range),
    ROW(Reciprocal, same),
    ROW(ReduceL1, reduce),
    ROW(ReduceL2, reduce),
    ROW(ReduceLogSum, reduce),
    ROW(ReduceLogSumExp, reduce),
    ROW(ReduceMax, reduce),
    ROW(ReduceMean, reduce),
    ROW(ReduceMin, reduce),
    ROW(ReduceProd, reduce),
    ROW(ReduceSum, reduce),
    ROW(ReduceSumSquare, reduce),
    TYPED(RegexFullMatch, same, RL_BOOL),
    ROW(Relu, same),
    ROW(Reshape, reshape),
    ROW(Resize, resize),
    ROW(ReverseSequence, same),
    ROW(RoiAlign, roi_align),
    ROW(RotaryEmbedding, same),
    ROW(Round, same),
    ROW(STFT, stft),
    ROW(Scan, rl_shape_scan),
    ROW(Scatter, same),
    ROW(ScatterElements, same),
    ROW(ScatterND, same),
    ROW(Selu, same),
    ROW(SequenceAt, sequence_at),
    ROW(SequenceConstruct, sequence_construct),
    ROW(SequenceEmpty, sequence_empty),
    ROW(SequenceErase, sequence_erase),
    ROW(SequenceInsert, sequence_insert),
    ROW(SequenceLength, i64_scalar),
    ROW(SequenceMap, NULL), /* bodies only */
    ROW(Shape, shape),
    ROW(Shrink, same),
    ROW(Sigmoid, same),
    ROW(Sign, same),
    ROW(SimplifiedLayerNormalization, layer_norm),
    ROW(Sin, same),
    ROW(Sinh, same),
    ROW(Size, i64_scalar),
    ROW(Slice, slice),
    ROW(Softmax, same),
    ROW(SoftmaxCrossEntropyLoss, softmax_loss),
    ROW(Softplus, same),
    ROW(Softsign, same),
    ROW(SpaceToDepth, space_to_depth),
    ROW(Split, split),
    ROW(SplitToSequence, split_to_sequence),
    ROW(Sqrt, same),
    ROW(Squeeze, squeeze),
    ROW(StringConcat, broadcast),
    ROW(StringNormalizer, string_normalizer),
    ROW(StringSplit, string_split),
    ROW(Sub, broadcast),
    ROW(Sum, broadcast),
    ROW(SwiGLU, broadcast),
    ROW(Swish, same),
    ROW(Tan, same),
    ROW(Tanh, same),
    ROW(TensorScatter, same),
    ROW(TfIdfVectorizer, tf_idf),
    ROW(ThresholdedRelu, same),
    ROW(Tile, tile),
    ROW(TopK, top_k),
    ROW(Transpose, transpose),
    ROW(Trilu, same),
    ROW(Unique, unique),
    ROW(Unsqueeze, unsqueeze),
    ROW(Upsample, upsample),
    ROW(Where, where),
    TYPED(Xor, broadcast, RL_BOOL),
    ROW(ms_Attention, ms_attention),
    ROW(ms_BiasAdd, same),
    ROW(ms_BiasDropout, bias_dropout),
    ROW(ms_BiasGelu, same),
    ROW(ms_BiasSoftmax, same),
    ROW(ms_BiasSplitGelu, split_gelu),
    ROW(ms_CDist, pair_distances),
    ROW(ms_ComplexMul, no_rule),
    ROW(ms_ConvTransposeWithDynamicPads, no_rule),
    ROW(ms_CropAndResize, crop_and_resize),
    ROW(ms_DecoderMaskedMultiHeadAttention, no_rule),
    ROW(ms_DequantizeBFP, no_rule),
    ROW(ms_DequantizeLinear, dequantize),
    ROW(ms_DynamicQuantizeLSTM, recurrent),
    ROW(ms_DynamicQuantizeMatMul, matmul),
    ROW(ms_EmbedLayerNormalization, embed_layer_norm),
    ROW(ms_ExpandDims, expand_dims),
    ROW(ms_FastGelu, same),
    ROW(ms_FusedConv, conv),
    ROW(ms_FusedGemm, gemm),
    ROW(ms_FusedMatMul, matmul),
    ROW(ms_FusedMatMulActivation, matmul),
    ROW(ms_GatherBlockQuantized, no_rule),
    ROW(ms_GatherND, gather_nd),
    ROW(ms_Gelu, same),
    ROW(ms_GemmFastGelu, matmul),
    ROW(ms_GridSample, grid_sample),
    ROW(ms_GroupNorm, same),
    ROW(ms_GroupQueryAttention, group_query_attention),
    ROW(ms_Inverse, same),
    ROW(ms_Irfft, no_rule),
    ROW(ms_LongformerAttention, same),
    ROW(ms_MatMulBnb4, matmul_columns),
    ROW(ms_MatMulFpQ4, no_rule),
    TYPED(ms_MatMulInteger16, matmul, RL_I32),
    ROW(ms_MatMulIntegerToFloat, matmul_to_float),
    ROW(ms_MatMulNBits, matmul_columns),
    ROW(ms_MaxpoolWithMask, pool),
    ROW(ms_MoE, same),
    ROW(ms_MultiHeadAttention, multi_head_attention),
    ROW(ms_MurmurHash3, murmur),
    ROW(ms_NGramRepeatBlock, like_input1),
    ROW(ms_NhwcConv, conv_last),
    ROW(ms_NhwcFusedConv, conv_last),
    ROW(ms_NhwcMaxPool, pool_last),
    ROW(ms_PackedAttention, no_rule),
    ROW(ms_PackedMultiHeadAttention, no_rule),
    ROW(ms_Pad, pad),
    ROW(ms_QAttention, ms_attention),
    ROW(ms_QGemm, qgemm),
    ROW(ms_QLinearAdd, qlinear_binary),
    ROW(ms_QLinearAveragePool, pool),
    ROW(ms_QLinearConcat, qlinear_concat),
    ROW(ms_QLinearConv, qlinear_conv),
    ROW(ms_QLinearGlobalAveragePool, global_pool),
    ROW(ms_QLinearLeakyRelu, same),
    ROW(ms_QLinearMul, qlinear_binary),
    ROW(ms_QLinearReduceMean, qlinear_reduce),
    ROW(ms_QLinearSigmoid, same),
    ROW(ms_QLinearSoftmax, same),
    ROW(ms_QLinearWhere, qlinear_where),
    ROW(ms_QMoE, same),
    ROW(ms_QOrderedMatMul, no_rule),
    ROW(ms_QuantizeBFP, no_rule),
    ROW(ms_QuantizeLinear, quantize),
    ROW(ms_QuickGelu, same),
    ROW(ms_Range, range),
    TYPED(ms_ReduceSumInteger, reduce, RL_I32),
    ROW(ms_RelativePositionBias, no_rule),
    ROW(ms_Rfft, no_rule),
    ROW(ms_RotaryEmbedding, same),
    ROW(ms_SampleOp, same),
    ROW(ms_SkipGroupNorm, skip_group_norm),
    ROW(ms_SkipLayerNormalization, skip_layer_norm),
    ROW(ms_SkipSimplifiedLayerNormalization, skip_layer_norm),
    ROW(ms_SparseToDenseMatMul, no_rule),
    ROW(ms_Tokenizer, no_rule),
    ROW(ms_TransposeMatMul, matmul),
    ROW(ms_Trilu, same),
    ROW(ms_Unique, ms_unique),
    ROW(ms_WordConvEmbedding, no_rule),
#undef ROW
#undef TYPED
};
