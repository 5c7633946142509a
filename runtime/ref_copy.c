/* Ops that move data into a new tensor: Concat, Tile, Pad, Gather. Each output is filled by moves of views of it. */
#include <string.h>

#include "gather.h"
#include "home.h"
#include "element.h"
#include "kernels.h"
#include "pad.h"

rl_status rl_ref_concat(rl_call *c) {
    uint32_t axis;
    int64_t dim[RL_RANK], at = 0;
    RL_TRY(rl_call_need(c, c->nin));
    RL_TRY(rl_call_attr_axis(c, "axis", 1, &axis));
    const rl_tensor *x = rl_call_in(c, 0);
    memcpy(dim, x->dim, sizeof dim);
    for (uint32_t i = 1; i < c->nin; i++) {
        const rl_tensor *t = rl_call_in(c, i);
        if (t->rank != x->rank || t->dtype != x->dtype) return rl_call_fail(c, RL_EMODEL, "input %u has another rank or type", i);
        for (uint32_t k = 0; k < x->rank; k++)
            if (k != axis && t->dim[k] != x->dim[k])
                return rl_call_fail(c, RL_EMODEL, "input %u has %lld in dim %u, not %lld", i, (long long)t->dim[k], k, (long long)x->dim[k]);
        dim[axis] += t->dim[axis];
    }
    c->gaps = true;
    const rl_tensor *y = rl_home_give(c, x->dtype, x->rank, dim) ? &c->out[0] : rl_call_make_like(c, 0, x, dim);
    rl_tensor *to = rl_new(c->tmp, rl_tensor, c->nin), *from = rl_new(c->tmp, rl_tensor, c->nin);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->nin; i++) {
        const rl_tensor *t = rl_call_in(c, i);
        rl_tensor part = rl_view_slice(y, axis, at, 1, t->dim[axis]);
        if (!rl_home_holds(&part, t)) to[n] = part, from[n++] = *rl_home_apart(c, &part, t);
        at += t->dim[axis];
    }
    rl_tensor_move_all(c->rt, n, to, from);
    return RL_OK;
}

/* One move: y seen as [r0,d0,r1,d1,...], x with strides of 0 along the repeats. */
rl_status rl_ref_tile(rl_call *c) {
    const int64_t *times;
    uint32_t n;
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0);
    RL_TRY(rl_call_ints(c, NULL, 1, &times, &n));
    if (n != x->rank || 2 * n > RL_RANK) return rl_call_fail(c, RL_EMODEL, "%u repeats for rank %u", n, x->rank);
    int64_t dim[RL_RANK];
    for (uint32_t i = 0; i < n; i++) {
        if (times[i] < 0 || __builtin_mul_overflow(x->dim[i], times[i], &dim[i])) return rl_call_fail(c, RL_EMODEL, "repeat %u is %lld", i, (long long)times[i]);
    }
    RL_TRY(rl_call_dims(c, n, dim));
    rl_tensor *y = rl_call_make(c, 0, x->dtype, n, dim), to = *y, from = *x;
    to.rank = from.rank = 2 * n;
    for (uint32_t i = 0; i < n; i++) {
        to.dim[2 * i] = from.dim[2 * i] = times[i];
        to.dim[2 * i + 1] = from.dim[2 * i + 1] = x->dim[i];
        to.stride[2 * i] = y->stride[i] * x->dim[i];
        to.stride[2 * i + 1] = y->stride[i];
        from.stride[2 * i] = 0;
        from.stride[2 * i + 1] = x->stride[i];
    }
    rl_tensor_move(c->rt, &to, &from);
    return RL_OK;
}

/* ---- Pad ---- */

/* before, after of each dim. */
static rl_status pad_amounts(rl_call *c, const rl_tensor *x, int64_t *before, int64_t *after) {
    const int64_t *pad, *axis;
    uint32_t n, naxis;
    bool old = c->node->since < 11;
    RL_TRY(rl_call_ints(c, c->node->since < 2 ? "paddings" : "pads", old ? RL_NONE : 1, &pad, &n));
    RL_TRY(rl_call_ints(c, NULL, 3, &axis, &naxis));
    uint32_t k = axis ? naxis : x->rank;
    if (n != 2 * k) return rl_call_fail(c, RL_EMODEL, "%u pads for %u axes", n, k);
    for (uint32_t i = 0; i < x->rank; i++) before[i] = after[i] = 0;
    for (uint32_t i = 0; i < k; i++) {
        uint32_t a = i;
        if (axis) RL_TRY(rl_call_axis(c, axis[i], x->rank, &a));
        before[a] = pad[i];
        after[a] = pad[i + k];
    }
    return RL_OK;
}

rl_status rl_pad_read(rl_call *c, const rl_tensor *x, rl_pad_op *p) {
    int64_t after[RL_RANK];
    p->from = *x;
    if (!rl_pad_mode_of(c->node, &p->mode)) return rl_call_fail(c, RL_EMODEL, "unknown mode");
    RL_TRY(pad_amounts(c, &p->from, p->before, after));
    for (uint32_t i = 0; i < p->from.rank; i++) {
        int64_t cut0 = RL_MAX(rl_mul(p->before[i], -1), 0), cut1 = RL_MAX(rl_mul(after[i], -1), 0), has = p->from.dim[i];
        if (rl_add(cut0, cut1) > has) return rl_call_fail(c, RL_EMODEL, "pads cut more than dim %u has", i);
        p->from = rl_view_slice(&p->from, i, cut0, 1, has - cut0 - cut1);
        p->before[i] = RL_MAX(p->before[i], 0);
        p->dim[i] = rl_add(rl_add(p->before[i], p->from.dim[i]), RL_MAX(after[i], 0));
        if (p->mode != RL_PAD_CONSTANT && p->from.dim[i] == 0 && p->dim[i]) return rl_call_fail(c, RL_EMODEL, "nothing to take dim %u from", i);
    }
    return rl_call_dims(c, p->from.rank, p->dim);
}

rl_status rl_pad_value(rl_call *c, rl_tensor **value) {
    rl_dtype t = rl_call_in(c, 0)->dtype;
    uint64_t zero[2] = {0};
    const rl_tensor *v = NULL;
    float given = rl_attr_float(c->node, "value", 0);
    rl_str empty = rl_internz(c->g->ctx, "");
    if (c->node->since >= 11) RL_TRY(rl_call_one(c, 2, &v));
    if (v && v->dtype != t) return rl_call_fail(c, RL_EMODEL, "a constant value of another type");
    rl_tensor *y = *value = rl_call_host_temp(c, t, 0, NULL);
    rl_tensor wide = rl_tensor_borrow(c->rt, RL_F32, 0, NULL, &given, sizeof given);
    if (v) rl_tensor_move(c->rt, y, &(rl_tensor){.kind = RL_TENSOR, .dtype = v->dtype, .offset = v->offset, .mem = v->mem});
    else if (t == RL_STRING) rl_fill(c->rt, y, &empty);
    else if (given != 0) rl_convert(c->rt, y, &wide, true);
    else rl_fill(c->rt, y, zero);
    rl_tensor_drop(&wide);
    return RL_OK;
}

/* What lies around the middle, dim by dim: each part once. */
static void fill_around(rl_call *c, const rl_tensor *y, const int64_t *before, const rl_tensor *middle, const void *value) {
    rl_tensor rest = *y;
    for (uint32_t i = 0; i < y->rank; i++) {
        int64_t end = before[i] + middle->dim[i];
        rl_tensor low = rl_view_slice(&rest, i, 0, 1, before[i]), high = rl_view_slice(&rest, i, end, 1, rest.dim[i] - end);
        rl_fill(c->rt, &low, value);
        rl_fill(c->rt, &high, value);
        rest = rl_view_slice(&rest, i, before[i], 1, middle->dim[i]);
    }
}

/* Which place of x, of d, a place of the padded dim takes its element from. */
static int64_t source_of(rl_pad_mode mode, int64_t i, int64_t d) {
    if (d <= 1 || (mode == RL_PAD_EDGE && i < 0)) return 0;
    if (mode == RL_PAD_EDGE) return i < d ? i : d - 1;
    if (mode == RL_PAD_WRAP) return ((i % d) + d) % d;
    int64_t period = 2 * (d - 1), k = ((i % period) + period) % period;
    return k < d ? k : period - k;
}

/* Dim by dim: the middle is there, and what is around it is taken from it. */
static void pad_dim(rl_call *c, rl_tensor *y, uint32_t axis, int64_t before, int64_t d, rl_pad_mode mode) {
    for (int64_t i = 0; i < y->dim[axis]; i++) {
        int64_t from = source_of(mode, i - before, d) + before;
        if (i == from) continue;
        rl_tensor to = rl_view_slice(y, axis, i, 1, 1), src = rl_view_slice(y, axis, from, 1, 1);
        rl_tensor_move(c->rt, &to, &src);
    }
}

rl_status rl_ref_pad(rl_call *c) {
    rl_pad_op p;
    rl_tensor *value;
    RL_TRY(rl_call_need(c, 1));
    RL_TRY(rl_pad_read(c, rl_call_in(c, 0), &p));
    uint32_t rank = p.from.rank;
    if (rl_same_bytes(p.dim, p.from.dim, rank * sizeof *p.dim)) { /* nothing is added */
        rl_call_share(c, 0, p.from);
        return RL_OK;
    }
    rl_tensor *y = rl_call_make_like(c, 0, rl_call_in(c, 0), p.dim), middle = *y;
    if (p.mode == RL_PAD_CONSTANT) {
        RL_TRY(rl_pad_value(c, &value));
        fill_around(c, y, p.before, &p.from, value->mem->p);
    }
    for (uint32_t i = 0; i < rank; i++) middle = rl_view_slice(&middle, i, p.before[i], 1, p.from.dim[i]);
    rl_tensor_move(c->rt, &middle, &p.from);
    for (uint32_t i = 0; p.mode != RL_PAD_CONSTANT && i < rank; i++) pad_dim(c, y, i, p.before[i], p.from.dim[i], p.mode);
    return RL_OK;
}

/* ---- Gather ---- */

/* One index: a view. */
static rl_tensor gather_one(const rl_tensor *x, uint32_t axis, int64_t at, uint32_t nindex) {
    rl_tensor one = rl_view_slice(x, axis, at, 1, 1), y = one;
    y.rank = x->rank - 1 + nindex;
    for (uint32_t i = 0; i < nindex; i++) y.dim[axis + i] = 1, y.stride[axis + i] = 0;
    for (uint32_t i = axis + 1; i < x->rank; i++)
        y.dim[i - 1 + nindex] = one.dim[i], y.stride[i - 1 + nindex] = one.stride[i];
    return y;
}

/* Each index is one move. */
void rl_gather_moves(const rl_gather *g) {
    for (int64_t i = 0; i < g->n; i++) {
        rl_tensor to = rl_view_slice(&g->to, 0, i, 1, 1), from = rl_view_slice(&g->from, 0, g->index[i], 1, 1);
        rl_tensor_move(g->c->rt, &to, &from);
    }
}

rl_status rl_ref_gather(rl_call *c) {
    return rl_gather_by(c, rl_gather_moves);
}

rl_status rl_gather_by(rl_call *c, rl_gather_fn *fn) {
    uint32_t axis, rank = 0;
    int64_t dim[RL_RANK], flat[RL_RANK], perm[RL_RANK];
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_in(c, 0), *index = rl_call_as(c, 1, RL_I64);
    int64_t n = rl_numel(index), *place = rl_new(c->tmp, int64_t, n);
    if (x->rank + index->rank > RL_RANK) return rl_call_fail(c, RL_ELIMIT, "rank over the limit of %d", RL_RANK);
    for (int64_t i = 0; i < n; i++) {
        place[i] = ((const int64_t *)rl_data(index))[i];
        if (place[i] < 0) place[i] += x->dim[axis];
        if (place[i] < 0 || place[i] >= x->dim[axis])
            return rl_call_fail(c, RL_EMODEL, "index %lld is out of range of %lld", (long long)place[i], (long long)x->dim[axis]);
    }
    if (n == 1) {
        rl_call_share(c, 0, gather_one(x, axis, place[0], index->rank));
        return RL_OK;
    }
    for (uint32_t i = 0; i < axis; i++) dim[rank++] = x->dim[i];
    for (uint32_t i = 0; i < index->rank; i++) dim[rank++] = index->dim[i];
    for (uint32_t i = axis + 1; i < x->rank; i++) dim[rank++] = x->dim[i];
    rl_tensor *y = rl_call_make(c, 0, x->dtype, rank, dim), view;
    memcpy(flat, x->dim, sizeof flat);
    flat[axis] = n;
    rl_view_reshape(y, x->rank, flat, &view);
    perm[0] = axis;
    for (uint32_t i = 0, k = 1; i < x->rank; i++)
        if (i != axis) perm[k++] = i;
    rl_gather g = {c, rl_view_transpose(&view, perm), rl_view_transpose(x, perm), place, n};
    fn(&g);
    return RL_OK;
}
