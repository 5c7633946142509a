/* Shape rules of ops that move data. */
#include "shape_rules.h"

/* ---- moving data ---- */

rl_status rl_rule_transpose(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_attr *perm = ints_attr(s, "perm");
    if (perm && ranked(x) && perm->n != x->rank) return rl_shape_fail(s, "perm has %u elements, wants %u", perm->n, x->rank);
    if (!ranked(x)) {
        if (!perm) return set_unranked(s, 0, dtype_of(x));
        return rl_shape_set(s, 0, dtype_of(x), perm->n, new_dims(s, perm->n));
    }
    rl_dim *d = new_dims(s, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) d[i] = x->dim[perm ? perm->ints[i] : x->rank - 1 - i];
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
    enum { SOUGHT = 64 }; /* dims of x, at most, for each of d: a hostile model has many */
    rl_dim *from = copy_dims(s, x), rest = 1;
    uint32_t nfrom = RL_MIN(x->rank, (uint32_t)SOUGHT);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        if (i == hole) continue;
        while (k < nfrom && (from[k] != d[i] || d[i] == 0)) k++;
        if (k < nfrom) from[k] = 1;
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
rl_status rl_rule_reshape(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells t;
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

rl_status rl_rule_flatten(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_dim *d = new_dims(s, 2);
    if (ranked(x)) {
        int64_t a = rl_attr_int(s->n, "axis", 1);
        if (a < 0) a += x->rank;
        if (a < 0 || a > x->rank) return rl_shape_fail(s, "axis is out of range for rank %u", x->rank);
        d[0] = rl_shape_prod(s, x->dim, (uint32_t)a);
        d[1] = a < x->rank ? rl_shape_prod(s, x->dim + a, x->rank - (uint32_t)a) : 1;
    }
    return rl_shape_set(s, 0, dtype_of(x), 2, d);
}

rl_status rl_rule_squeeze(rl_shaper *s) {
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

static rl_status unsqueeze_axes(rl_shaper *s, const rl_cells *t) {
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

rl_status rl_rule_unsqueeze(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells t;
    uint32_t n = list_length(s, 1);
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    if (list(s, "axes", 1, &t) == LIST_KNOWN) return unsqueeze_axes(s, &t);
    return n == RL_NORANK ? set_unranked(s, 0, x->dtype) : rl_shape_set(s, 0, x->dtype, x->rank + n, new_dims(s, x->rank + n));
}

rl_status rl_rule_expand_dims(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cell axis = scalar(s, 1);
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    return unsqueeze_axes(s, &(rl_cells){.n = 1, .cell = &axis});
}

rl_status rl_rule_tile(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells t;
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

rl_status rl_rule_concat(rl_shaper *s) {
    return concat_of(s, 0, 1, shared_dtype(s));
}

/* Inputs: y's scale and zero point, then x, scale, zero point of each. */
rl_status rl_rule_qlinear_concat(rl_shaper *s) {
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

rl_status rl_rule_split(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells t;
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

enum { LARGE_SIZE = 1 << 24 };

/* A place in a dim, from its start; UNKNOWN for 512-N: where N is larger, that counts from the end. */
static rl_dim place_of(const rl_shaper *s, rl_cell c) {
    rl_dim at = size_of(s, c);
    return at == UNKNOWN || rl_dim_known(at) || rl_dim_guess(s->ctx, at, LARGE_SIZE) > 0 ? at : UNKNOWN;
}

/* How far from the end a negative place is, a number or a size; UNKNOWN where it is none. */
static rl_dim from_end(const rl_shaper *s, rl_cell c) {
    if (c.kind == CELL_INT) return c.num < 0 && c.num > INT64_MIN ? -c.num : UNKNOWN;
    if (c.kind != CELL_SYM || c.num != 1 || is_size(s, c.sym)) return UNKNOWN;
    rl_dim back = rl_shape_sub(s, 0, c.sym);
    return back == UNKNOWN ? back : place_of(s, (rl_cell){.kind = CELL_SYM, .num = 1, .sym = back});
}

/* The elements that [a, b) leaves of d, one of the three being a symbol. */
static rl_dim slice_symbolic(const rl_shaper *s, rl_dim d, rl_cell a, rl_cell b) {
    rl_dim end = place_of(s, b), start = place_of(s, a), back = from_end(s, a);
    if (b.kind == CELL_INT && b.num >= INT32_MAX) end = d;
    else if (b.kind == CELL_INT && b.num < 0) end = rl_shape_offset(s, d, b.num);
    else end = rl_shape_min(s, d, end);
    if (back != UNKNOWN) {
        rl_dim left = rl_shape_min(s, d, back);
        if (left != back) return end == d ? left : UNKNOWN;
        start = rl_shape_sub(s, d, back);
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
static rl_cell cell_at(found what, const rl_cells *t, uint32_t i, int64_t dflt) {
    if (what == LIST_NONE) return (rl_cell){.kind = CELL_INT, .num = dflt};
    return what == LIST_KNOWN && i < t->n ? t->cell[i] : (rl_cell){.kind = CELL_NONE};
}

rl_status rl_rule_slice(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells from = {0}, to = {0}, axes = {0}, steps = {0};
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

rl_status rl_rule_pad(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells pads, axes = {0};
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

static rl_status gather(rl_shaper *s, const char *name, rl_dtype t) {
    const rl_valinfo *x = input(s, 0), *i = input(s, 1);
    uint32_t axis, n = 0;
    if (!ranked(x) || !ranked(i)) return set_unranked(s, 0, t);
    RL_TRY(axis_in(s, rl_attr_int(s->n, name, 0), x->rank, &axis));
    rl_dim *d = new_dims(s, x->rank + i->rank);
    for (uint32_t k = 0; k < axis; k++) d[n++] = x->dim[k];
    for (uint32_t k = 0; k < i->rank; k++) d[n++] = i->dim[k];
    for (uint32_t k = axis + 1; k < x->rank; k++) d[n++] = x->dim[k];
    return rl_shape_set(s, 0, t, n, d);
}

rl_status rl_rule_gather(rl_shaper *s) { return gather(s, "axis", dtype_of(input(s, 0))); }

/* GatherBlockQuantized; where several numbers are in a byte, nothing is told. */
rl_status rl_rule_gather_blocks(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *i = input(s, 1);
    rl_dtype t = dtype_of(input(s, 2));
    bool bytes = x && x->dtype == RL_U8 && rl_attr_int(s->n, "bits", 4) < 8;
    if (!bytes || !ranked(x) || !ranked(i) || x->rank == 0) return gather(s, "gather_axis", t);
    return set_unranked(s, 0, t);
}

rl_status rl_rule_gather_elements(rl_shaper *s) {
    return set_like(s, 0, dtype_of(input(s, 0)), input(s, 1));
}

rl_status rl_rule_gather_nd(rl_shaper *s) {
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

/* Of an image whose channels and pixels change places. */
static rl_status block_size(rl_shaper *s, int64_t *b) {
    *b = rl_attr_int(s->n, "blocksize", 0);
    RL_TRY(want_rank(s, 0, 4));
    if (*b <= 0 || *b > INT16_MAX) return rl_shape_fail(s, "blocksize is %lld", (long long)*b);
    return RL_OK;
}

rl_status rl_rule_depth_to_space(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    int64_t b;
    RL_TRY(block_size(s, &b));
    rl_dim *d = new_dims(s, 4);
    if (ranked(x)) {
        d[0] = x->dim[0];
        RL_TRY(quotient(s, x->dim[1], b * b, &d[1]));
        for (uint32_t i = 2; i < 4; i++) d[i] = rl_shape_mul(s, x->dim[i], b);
    }
    return rl_shape_set(s, 0, dtype_of(x), 4, d);
}

rl_status rl_rule_space_to_depth(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    int64_t b;
    RL_TRY(block_size(s, &b));
    rl_dim *d = new_dims(s, 4);
    if (ranked(x)) {
        d[0] = x->dim[0];
        d[1] = rl_shape_mul(s, x->dim[1], b * b);
        for (uint32_t i = 2; i < 4; i++) RL_TRY(quotient(s, x->dim[i], b, &d[i]));
    }
    return rl_shape_set(s, 0, dtype_of(x), 4, d);
}

/* Output dim along `axis` alone is not known. */
rl_status rl_rule_compress(rl_shaper *s) {
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

rl_status rl_rule_unique(rl_shaper *s) {
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
rl_status rl_rule_ms_unique(rl_shaper *s) {
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

rl_status rl_rule_non_zero(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells t;
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
