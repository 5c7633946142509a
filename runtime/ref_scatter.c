/* Ops that write at the places that indices name, into a copy of their first input. */
#include <string.h>

#include "element.h"
#include "kernels.h"

static rl_status combine_of(const rl_call *c, rl_dtype t, rl_combine *how) {
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const rl_attr *a = rl_attr_find(c->node, "reduction");
    *how = RL_PUT;
    if (!a || rl_attr_is(c->node, "reduction", "none")) return RL_OK;
    for (uint32_t i = 1; i < RL_LEN(names); i++)
        if (rl_attr_is(c->node, "reduction", names[i])) *how = (rl_combine)i;
    if (*how == RL_PUT) return rl_call_fail(c, RL_EMODEL, "unknown reduction");
    if (!(RL_T(t) & (RL_NUMBERS | RL_FLOAT8S | RL_INT4S))) return rl_call_fail(c, RL_ELIMIT, "no reduction of type %s", rl_dtype_name(t));
    return RL_OK;
}

/* Output 0 with the elements of input 0; the updates' type must be its. */
static rl_status copy_data(rl_call *c, uint32_t updates, rl_tensor **y) {
    const rl_tensor *x = rl_call_in(c, 0);
    if (rl_call_in(c, updates)->dtype != x->dtype) return rl_call_fail(c, RL_EMODEL, "updates of another type");
    *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    rl_tensor_move(c->rt, *y, x);
    return RL_OK;
}

rl_status rl_ref_scatter_elements(rl_call *c) {
    uint32_t axis;
    rl_combine how;
    rl_tensor *y = NULL;
    RL_TRY(rl_call_need(c, 3));
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *index = rl_call_as(c, 1, RL_I64), *from = rl_call_in(c, 2);
    RL_TRY(combine_of(c, from->dtype, &how));
    RL_TRY(copy_data(c, 2, &y));
    if (!rl_same_dims(index, from) || index->rank != y->rank) return rl_call_fail(c, RL_EMODEL, "indices, updates and data do not match");
    return rl_move_indexed(c, index, axis, y, from, true, how);
}

/* Updates are indices' dims but the last, then the data's from `depth` on. */
static bool fits(const rl_tensor *y, const rl_tensor *index, const rl_tensor *from) {
    uint32_t outer = index->rank - 1;
    int64_t depth = index->dim[outer];
    if (depth > y->rank || from->rank != outer + y->rank - depth) return false;
    return rl_same_bytes(from->dim, index->dim, outer * sizeof *from->dim)
           && rl_same_bytes(from->dim + outer, y->dim + depth, (size_t)(y->rank - depth) * sizeof *from->dim);
}

rl_status rl_ref_scatter_nd(rl_call *c) {
    rl_combine how;
    rl_tensor *y = NULL;
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *index = rl_call_as(c, 1, RL_I64), *from = rl_call_dense(c, 2);
    RL_TRY(combine_of(c, from->dtype, &how));
    RL_TRY(copy_data(c, 2, &y));
    if (index->rank == 0 || !fits(y, index, from)) return rl_call_fail(c, RL_EMODEL, "indices, updates and data do not match");
    int64_t depth = index->dim[index->rank - 1], block = 1, n = 1;
    for (uint32_t i = (uint32_t)depth; i < y->rank; i++) block *= y->dim[i];
    for (uint32_t i = 0; i + 1 < index->rank; i++) n *= index->dim[i];
    size_t size = how == RL_PUT ? rl_elem_bits(y->dtype) / 8 : 0; /* 0: element by element */
    for (int64_t k = 0; k < n; k++) {
        int64_t at = y->offset;
        for (int64_t d = 0; d < depth; d++) {
            int64_t place = ((const int64_t *)rl_data(index))[k * depth + d];
            RL_TRY(rl_call_place(c, &place, y->dim[d]));
            at += place * y->stride[d];
        }
        int64_t source = from->offset + k * block;
        if (size) memcpy((char *)y->mem->p + (size_t)at * size, (const char *)from->mem->p + (size_t)source * size, (size_t)block * size);
        for (int64_t i = 0; i < block && !size; i++) rl_combine_element(how, y, at + i, from, source + i);
    }
    return RL_OK;
}

rl_status rl_ref_tensor_scatter(rl_call *c) {
    uint32_t axis;
    rl_tensor *y = NULL;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_attr_axis(c, "axis", -2, &axis));
    RL_TRY(copy_data(c, 1, &y));
    const rl_tensor *from = rl_call_in(c, 1), *first = rl_call_as(c, 2, RL_I64);
    bool wraps = rl_attr_is(c->node, "mode", "circular");
    if (axis == 0 || from->rank != y->rank || from->dim[axis] > y->dim[axis])
        return rl_call_fail(c, RL_EMODEL, "update and cache do not match");
    for (uint32_t i = 0; i < y->rank; i++)
        if (i != axis && from->dim[i] != y->dim[i]) return rl_call_fail(c, RL_EMODEL, "dim %u of update and cache differ", i);
    if (first && rl_numel(first) != y->dim[0]) return rl_call_fail(c, RL_EMODEL, "%lld write indices", (long long)rl_numel(first));
    for (int64_t b = 0; b < y->dim[0]; b++) {
        rl_tensor to = rl_view_slice(y, 0, b, 1, 1), src = rl_view_slice(from, 0, b, 1, 1);
        int64_t start = first ? ((const int64_t *)rl_data(first))[b] : 0;
        for (int64_t i = 0; i < src.dim[axis]; i++) {
            int64_t place = start;
            if (place < 0 || __builtin_add_overflow(place, i, &place) || (!wraps && place >= y->dim[axis]))
                return rl_call_fail(c, RL_EMODEL, "write index %lld is out of range", (long long)start);
            rl_tensor one = rl_view_slice(&to, axis, place % y->dim[axis], 1, 1), row = rl_view_slice(&src, axis, i, 1, 1);
            rl_tensor_move(c->rt, &one, &row);
        }
    }
    return RL_OK;
}
