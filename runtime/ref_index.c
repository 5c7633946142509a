/* Ops that read at the places that indices name: GatherElements, GatherND; and OneHot, which makes them. */
#include <string.h>

#include "element.h"
#include "gather.h"
#include "kernels.h"

rl_status rl_ref_gather_elements(rl_call *c) {
    uint32_t axis;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_in(c, 0), *index = rl_call_as(c, 1, RL_I64);
    if (index->rank != x->rank) return rl_call_fail(c, RL_EMODEL, "indices of rank %u for rank %u", index->rank, x->rank);
    return rl_move_indexed(c, index, axis, x, rl_call_make(c, 0, x->dtype, x->rank, index->dim), false, RL_PUT);
}

rl_status rl_gather_nd_by(rl_call *c, rl_gather_fn *fn) {
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *index = rl_call_as(c, 1, RL_I64);
    int64_t batch = rl_attr_int(c->node, "batch_dims", 0), dim[RL_RANK], at[RL_RANK] = {0};
    if (batch < 0 || batch >= index->rank) return rl_call_fail(c, RL_EMODEL, "batch_dims is %lld", (long long)batch);
    uint32_t b = (uint32_t)batch, outer = index->rank - 1;
    int64_t depth = index->dim[outer];
    if (depth + b > x->rank) return rl_call_fail(c, RL_EMODEL, "%lld indices for rank %u", (long long)depth, x->rank);
    uint32_t lead = b + (uint32_t)depth, tail = x->rank - lead;
    if (outer + tail > RL_RANK) return rl_call_fail(c, RL_ELIMIT, "rank over the limit of %d", RL_RANK);
    for (uint32_t i = 0; i < b; i++)
        if (x->dim[i] != index->dim[i]) return rl_call_fail(c, RL_EMODEL, "dim %u of the indices is not the data's", i);
    memcpy(dim, index->dim, outer * sizeof *dim);
    memcpy(dim + outer, x->dim + lead, tail * sizeof *dim);
    RL_TRY(rl_call_dims(c, outer + tail, dim));
    if (tail == RL_RANK) return rl_call_fail(c, RL_ELIMIT, "rank over the limit of %d", RL_RANK);
    rl_gather g = {.c = c, .to = *rl_call_make(c, 0, x->dtype, outer + tail, dim), .from = *x};
    int64_t n = rl_numel(&g.to) > 0; /* of an empty result no place is looked at */
    const int64_t *i = rl_data(index);
    for (uint32_t k = 0; k < outer; k++) n *= dim[k];
    int64_t *place = rl_new(c->tmp, int64_t, n); /* in elements of the data */
    for (int64_t k = 0; k < n; k++) {
        place[k] = 0;
        for (uint32_t d = 0; d < b; d++) place[k] += at[d] * x->stride[d];
        for (uint32_t d = b; d < lead; d++) {
            int64_t to = *i++;
            RL_TRY(rl_call_place(c, &to, x->dim[d]));
            place[k] += to * x->stride[d];
        }
        rl_next_index(outer, dim, at);
    }
    g.n = g.to.dim[0] = n, g.index = place;
    g.to.rank = g.from.rank = tail + 1;
    g.to.stride[0] = 1, g.from.stride[0] = 1, g.from.dim[0] = 1;
    for (uint32_t k = 0; k < tail; k++) {
        g.to.dim[k + 1] = g.from.dim[k + 1] = dim[outer + k];
        g.from.stride[k + 1] = x->stride[lead + k];
        g.to.stride[0] *= dim[outer + k];
    }
    for (int64_t k = tail, step = 1; k > 0; step *= g.to.dim[k--]) g.to.stride[k] = step;
    if (n) fn(&g);
    return RL_OK;
}

rl_status rl_ref_gather_nd(rl_call *c) {
    return rl_gather_nd_by(c, rl_gather_moves);
}

rl_status rl_ref_one_hot(rl_call *c) {
    uint32_t axis, rank;
    int64_t dim[RL_RANK], at[RL_RANK] = {0}, depth;
    RL_TRY(rl_call_need(c, 3));
    RL_TRY(rl_call_int(c, 1, 0, &depth));
    const rl_tensor *index = rl_call_as(c, 0, RL_I64), *value = rl_call_dense(c, 2);
    if (depth < 1) return rl_call_fail(c, RL_EMODEL, "a depth of %lld", (long long)depth);
    if (rl_numel(value) != 2) return rl_call_fail(c, RL_EMODEL, "%lld values, wants 2", (long long)rl_numel(value));
    rank = index->rank + 1;
    RL_TRY(rl_call_axis(c, rl_attr_int(c->node, "axis", -1), rank, &axis));
    for (uint32_t i = 0; i < RL_MIN(rank, (uint32_t)RL_RANK); i++) dim[i] = i == axis ? depth : index->dim[i - (i > axis)];
    RL_TRY(rl_call_dims(c, rank, dim));
    rl_tensor *y = rl_call_make(c, 0, value->dtype, rank, dim), off = *value;
    off.rank = 0;
    rl_view_expand(&off, rank, dim, &off);
    rl_tensor_move(c->rt, y, &off);
    dim[axis] = 1;
    int64_t n = rl_numel(index);
    for (int64_t k = 0; k < n; k++) {
        int64_t place = ((const int64_t *)rl_data(index))[k];
        if (place >= -depth && place < depth)
            rl_put_element(y, rl_place(y, at) + (place < 0 ? place + depth : place) * y->stride[axis], value, value->offset + 1);
        rl_next_index(rank, dim, at);
    }
    return RL_OK;
}
