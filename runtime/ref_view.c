/* Ops that only look at their input another way: the output is a view of it, or one move where no strides can say it. */

#include "fast.h"

rl_status rl_ref_identity(rl_call *c) {
    if (c->nin && c->in[0]) rl_call_share(c, 0, *c->in[0]);
    return RL_OK;
}

/* A copy of channels that were shuffled, [n,g,c,h,w] with h and w outermost in memory, as [n,g*c,h,w]: channels-last stays so. */
static const rl_tensor *make_reshaped(rl_call *c, const rl_tensor *t, uint32_t rank, const int64_t *dim) {
    static const int64_t last[] = {0, 2, 3, 1};
    bool spatial = c->rt->fast && rank == 4 && t->rank == 5 && dim[0] == t->dim[0] && dim[2] == t->dim[3] && dim[3] == t->dim[4];
    bool outer = spatial && t->stride[3] > t->stride[1] && t->stride[3] > t->stride[2] && t->stride[4] > t->stride[1] && t->stride[4] > t->stride[2];
    return outer ? rl_call_make_in(c, 0, t->dtype, rank, dim, last) : rl_call_make(c, 0, t->dtype, rank, dim);
}

/* Output i is t in another shape: a view where strides allow, else a dense copy. */
static rl_status reshape_to(rl_call *c, const rl_tensor *t, uint32_t rank, const int64_t *dim) {
    rl_tensor view;
    if (rl_view_reshape(t, rank, dim, &view)) {
        rl_call_share(c, 0, view);
        return RL_OK;
    }
    const rl_tensor *y = make_reshaped(c, t, rank, dim);
    rl_view_reshape(y, t->rank, t->dim, &view);
    rl_tensor_move(c->rt, &view, t);
    return RL_OK;
}

/* What is left for the open dim: dims that are copied cancel, also those that are 0, so that a batch of none has the dims that one of some has. */
static int64_t open_dim(const rl_tensor *x, const int64_t *want, uint32_t n, bool zero_is_zero) {
    int64_t all = 1, others = 1;
    bool over = false;
    for (uint32_t i = 0; i < RL_MAX(x->rank, n); i++) {
        if (i < n && want[i] == 0 && !zero_is_zero) continue;
        if (i < x->rank) over = __builtin_mul_overflow(all, x->dim[i], &all) || over;
        if (i < n && want[i] != -1) over = __builtin_mul_overflow(others, want[i], &others) || over;
    }
    return over || !others ? 0 : all / others;
}

rl_status rl_reshape_dims(const rl_call *c, const rl_tensor *x, const int64_t *want, uint32_t n, bool zero_is_zero, int64_t *dim) {
    uint32_t open = RL_NONE;
    int64_t known = 1;
    if (n > RL_RANK) return rl_call_fail(c, RL_ELIMIT, "rank %u is over the limit of %d", n, RL_RANK);
    for (uint32_t i = 0; i < n; i++) {
        bool copied = want[i] == 0 && !zero_is_zero;
        if (want[i] < -1 || (want[i] == -1 && open != RL_NONE) || (copied && i >= x->rank))
            return rl_call_fail(c, RL_EMODEL, "dim %u of the shape is %lld", i, (long long)want[i]);
        dim[i] = copied ? x->dim[i] : want[i];
        if (dim[i] == -1) open = i;
    }
    if (open != RL_NONE) dim[open] = 1;
    RL_TRY(rl_call_dims(c, n, dim));
    for (uint32_t i = 0; i < n; i++) known *= dim[i];
    if (open != RL_NONE) dim[open] = open_dim(x, want, n, zero_is_zero);
    if (known * (open == RL_NONE ? 1 : dim[open]) != rl_numel(x))
        return rl_call_fail(c, RL_EMODEL, "%lld elements do not fit the shape", (long long)rl_numel(x));
    return RL_OK;
}

rl_status rl_ref_reshape(rl_call *c) {
    const int64_t *want;
    uint32_t n;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    RL_TRY(rl_call_ints(c, "shape", c->node->since < 5 ? RL_NONE : 1, &want, &n));
    RL_TRY(rl_reshape_dims(c, x, want, n, rl_attr_int(c->node, "allowzero", 0) != 0, dim));
    return reshape_to(c, x, n, dim);
}

rl_status rl_ref_flatten(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    int64_t axis = rl_attr_int(c->node, "axis", 1), dim[2] = {1, 1};
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis > x->rank) return rl_call_fail(c, RL_EMODEL, "axis %lld is out of range", (long long)axis);
    for (uint32_t i = 0; i < x->rank; i++) dim[i >= axis] *= x->dim[i];
    return reshape_to(c, x, 2, dim);
}

/* Which of rank dims the axes name. */
static rl_status mark_axes(rl_call *c, const int64_t *axis, uint32_t n, uint32_t rank, bool *marked) {
    for (uint32_t i = 0; axis && i < n; i++) {
        uint32_t a;
        RL_TRY(rl_call_axis(c, axis[i], rank, &a));
        if (marked[a]) return rl_call_fail(c, RL_EMODEL, "axis %u is named twice", a);
        marked[a] = true;
    }
    return RL_OK;
}

rl_status rl_ref_squeeze(rl_call *c) {
    const int64_t *axis;
    uint32_t n, rank = 0;
    bool gone[RL_RANK] = {false};
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    RL_TRY(rl_call_ints(c, "axes", c->node->since < 13 ? RL_NONE : 1, &axis, &n));
    bool all = !axis;
    RL_TRY(mark_axes(c, axis, n, x->rank, gone));
    for (uint32_t i = 0; i < x->rank; i++) {
        if (gone[i] && x->dim[i] != 1) return rl_call_fail(c, RL_EMODEL, "dim %u is %lld, not 1", i, (long long)x->dim[i]);
        if (!gone[i] && !(all && x->dim[i] == 1)) dim[rank++] = x->dim[i];
    }
    return reshape_to(c, x, rank, dim);
}

rl_status rl_ref_unsqueeze(rl_call *c) {
    const int64_t *axis;
    uint32_t n, from = 0;
    bool fresh[RL_RANK] = {false};
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    RL_TRY(rl_call_ints(c, "axes", c->node->since < 13 ? RL_NONE : 1, &axis, &n));
    uint32_t rank = x->rank + n;
    if (rank > RL_RANK) return rl_call_fail(c, RL_ELIMIT, "rank %u is over the limit of %d", rank, RL_RANK);
    RL_TRY(mark_axes(c, axis, n, rank, fresh));
    for (uint32_t i = 0; i < rank; i++) dim[i] = fresh[i] ? 1 : x->dim[from++];
    return reshape_to(c, x, rank, dim);
}

rl_status rl_transpose_perm(const rl_call *c, uint32_t rank, const int64_t *given, uint32_t n, int64_t *perm) {
    bool seen[RL_RANK] = {false};
    if (given && n != rank) return rl_call_fail(c, RL_EMODEL, "perm has %u axes, the input %u", n, rank);
    for (uint32_t i = 0; i < rank; i++) {
        perm[i] = given ? given[i] : (int64_t)rank - 1 - i;
        if (perm[i] < 0 || perm[i] >= rank || seen[perm[i]]) return rl_call_fail(c, RL_EMODEL, "perm is no permutation");
        seen[perm[i]] = true;
    }
    return RL_OK;
}

rl_status rl_ref_transpose(rl_call *c) {
    const int64_t *given;
    uint32_t n;
    int64_t perm[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    RL_TRY(rl_call_ints(c, "perm", RL_NONE, &given, &n));
    RL_TRY(rl_transpose_perm(c, x->rank, given, n, perm));
    rl_call_share(c, 0, rl_view_transpose(x, perm));
    return RL_OK;
}

rl_status rl_ref_expand(rl_call *c) {
    const int64_t *want;
    uint32_t n, rank = 0;
    int64_t dim[RL_RANK] = {0};
    rl_tensor shape = {.kind = RL_TENSOR}, view;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_ints(c, NULL, 1, &want, &n));
    RL_TRY(rl_call_dims(c, n, want));
    shape.rank = n;
    for (uint32_t i = 0; i < n; i++) shape.dim[i] = want[i];
    RL_TRY(rl_call_broadcast(c, &rank, dim, rl_call_in(c, 0)));
    RL_TRY(rl_call_broadcast(c, &rank, dim, &shape));
    RL_TRY(rl_call_dims(c, rank, dim));
    rl_view_expand(rl_call_in(c, 0), rank, dim, &view);
    rl_call_share(c, 0, view);
    return RL_OK;
}

/* ---- Slice, Split ---- */

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

/* numpy's x[start:end:step] of one dim. */
static void slice_dim(rl_tensor *t, uint32_t axis, int64_t start, int64_t end, int64_t step) {
    int64_t d = t->dim[axis], up = step > 0, count = 0;
    if (start < 0) start = start < -d ? -1 - (up ? 0 : d) : start + d;
    if (end < 0) end = end < -d ? (up ? 0 : -1) : end + d;
    start = clamp(start, 0, up ? d : d - 1);
    end = clamp(end, up ? 0 : -1, d);
    if (up && start < end) count = (end - start - 1) / step + 1;
    if (!up && d > 0 && start > end) count = (int64_t)(((uint64_t)(start - end) - 1) / (0 - (uint64_t)step) + 1);
    *t = rl_view_slice(t, axis, start, step, count);
}

rl_status rl_ref_slice(rl_call *c) {
    const int64_t *start, *end, *axis, *step;
    uint32_t n, nend, naxis, nstep;
    bool old = c->node->since < 10;
    RL_TRY(rl_call_need(c, 1));
    rl_tensor t = *rl_call_in(c, 0);
    RL_TRY(rl_call_ints(c, "starts", old ? RL_NONE : 1, &start, &n));
    RL_TRY(rl_call_ints(c, "ends", old ? RL_NONE : 2, &end, &nend));
    RL_TRY(rl_call_ints(c, "axes", old ? RL_NONE : 3, &axis, &naxis));
    RL_TRY(rl_call_ints(c, NULL, old ? RL_NONE : 4, &step, &nstep));
    if (n != nend || (axis && naxis != n) || (step && nstep != n) || (!axis && n > t.rank))
        return rl_call_fail(c, RL_EMODEL, "%u starts, %u ends, %u axes, %u steps", n, nend, naxis, nstep);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t a = i;
        if (axis) RL_TRY(rl_call_axis(c, axis[i], t.rank, &a));
        if (step && step[i] == 0) return rl_call_fail(c, RL_EMODEL, "step %u is 0", i);
        slice_dim(&t, a, start[i], end[i], step ? step[i] : 1);
    }
    rl_call_share(c, 0, t);
    return RL_OK;
}

rl_status rl_ref_split(rl_call *c) {
    const int64_t *part;
    uint32_t n, axis;
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_in(c, 0);
    RL_TRY(rl_call_ints(c, "split", c->node->since < 13 && c->node->since != 1 ? RL_NONE : 1, &part, &n));
    int64_t d = x->dim[axis], even = (d + c->nout - 1) / (int64_t)RL_MAX(c->nout, 1u), at = 0;
    if (part && n != c->nout) return rl_call_fail(c, RL_EMODEL, "%u parts for %u outputs", n, c->nout);
    for (uint32_t i = 0; i < c->nout; i++) {
        int64_t k = part ? part[i] : RL_MIN(even, d - at);
        if (k < 0 || k > d - at) return rl_call_fail(c, RL_EMODEL, "the parts do not make %lld", (long long)d);
        rl_call_share(c, i, rl_view_slice(x, axis, at, 1, k));
        at += k;
    }
    return at == d ? RL_OK : rl_call_fail(c, RL_EMODEL, "the parts make %lld of %lld", (long long)at, (long long)d);
}

/* ---- DepthToSpace, SpaceToDepth: a move between views in blocks ---- */

enum { SHORT_ROW = 32, SHORT_TURN = 64 }; /* bytes that stay side by side, or become so, channels-last */

rl_status rl_ref_depth_space(rl_call *c) {
    static const int64_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3}, back[] = {0, 3, 5, 1, 2, 4},
                         back_crd[] = {0, 1, 3, 5, 2, 4};
    RL_TRY(rl_call_need(c, 1));
    bool to_space = c->arg == 0, is_crd = rl_attr_is(c->node, "mode", "CRD");
    const rl_tensor *x = rl_call_in(c, 0);
    int64_t b = rl_attr_int(c->node, "blocksize", 0);
    if (x->rank != 4 || b <= 0) return rl_call_fail(c, RL_EMODEL, "rank %u and blocksize %lld, wants 4 and 1 or more", x->rank, (long long)b);
    int64_t n = x->dim[0], ch = x->dim[1], h = x->dim[2], w = x->dim[3];
    if (to_space ? ch % rl_mul(b, b) : h % b || w % b) return rl_call_fail(c, RL_EMODEL, "dims are no multiples of the block");
    bool turns = to_space && is_crd;
    if (rl_bytes_of(x->dtype, !to_space ? ch : turns ? ch / b / b : ch / b) < (turns ? SHORT_TURN : SHORT_ROW)) x = rl_call_dense(c, 0); /* two moves of planes take less than one of such rows */
    rl_tensor from, to;
    const rl_tensor *y = rl_call_make_like(c, 0, x, to_space ? (int64_t[]){n, ch / b / b, h * b, w * b} : (int64_t[]){n, ch * b * b, h / b, w / b});
    if (to_space) {
        rl_view_reshape(x, 6, is_crd ? (int64_t[]){n, ch / b / b, b, b, h, w} : (int64_t[]){n, b, b, ch / b / b, h, w}, &from);
        rl_view_reshape(y, 6, (int64_t[]){n, ch / b / b, h, b, w, b}, &to);
    } else {
        rl_view_reshape(x, 6, (int64_t[]){n, ch, h / b, b, w / b, b}, &from);
        rl_view_reshape(y, 6, is_crd ? (int64_t[]){n, ch, b, b, h / b, w / b} : (int64_t[]){n, b, b, ch, h / b, w / b}, &to);
    }
    from = rl_view_transpose(&from, !to_space ? is_crd ? back_crd : back : is_crd ? crd : dcr);
    rl_tensor_move(c->rt, &to, &from);
    return RL_OK;
}
