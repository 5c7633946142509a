/* Places that indices name, on the device: Gather (index_select), GatherElements, GatherND, ScatterElements, ScatterND; and Pad. */
#include <string.h>

#include "../runtime/kernels.h"
#include "../runtime/pad.h"
#include "backend.h"
#include "move.h"

/* l: operand 0 the dense side, 1 the other one without the indices, 2 the indices. */
static rl_status launch(rl_call *c, rl_p_select *p, const rl_loops *all, uint32_t size) {
    rl_loops l = *all;
    if (!rl_gpu_walk_of(&l, &p->w, &p->count)) return rl_call_decline(c);
    if (!p->count) return RL_OK;
    int64_t n = p->count;
    p->wrong = rl_gpu_wrong(c);
    p->node = c->step->node.i + 1;
    if (p->bits) return rl_gpu_launch(rl_gpu_of(c->rt), RL_GPU_select_bits, rl_gpu_blocks((n + 8 / p->bits - 1) / (8 / p->bits)), p, sizeof *p);
    return rl_gpu_select(rl_gpu_of(c->rt), &l, p, size);
}

static bool takes(const rl_tensor *x, const rl_tensor *index) {
    return x->dtype != RL_STRING && rl_elem_bits(x->dtype) >= 8 && (index->dtype == RL_I64 || index->dtype == RL_I32);
}

/* Are they packed in bytes? */
static bool is_packed(rl_dtype t) {
    return (RL_INT4S & RL_T(t)) != 0;
}

rl_status rl_gpu_gather(rl_call *c) {
    uint32_t axis, rank = 0;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_in(c, 0), *index = rl_call_in(c, 1);
    if ((!is_packed(x->dtype) && !takes(x, index)) || (index->dtype != RL_I64 && index->dtype != RL_I32) || x->rank + index->rank > RL_RANK) return rl_call_decline(c);
    x = rl_call_here(c, 0), index = rl_call_here(c, 1);
    rl_loops l = {.noperand = 3};
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i != axis) l.step[1][rank] = x->stride[i], dim[rank++] = x->dim[i];
        for (uint32_t k = 0; i == axis && k < index->rank; k++) l.step[2][rank] = index->stride[k], dim[rank++] = index->dim[k];
    }
    rl_tensor *y = rl_call_make(c, 0, x->dtype, rank, dim);
    l.rank = rank;
    for (uint32_t i = 0; i < rank; i++) l.dim[i] = dim[i], l.step[0][i] = y->stride[i];
    bool packed = is_packed(x->dtype);
    rl_p_select p = {.to = packed ? y->mem->p : rl_data(y), .from = packed ? x->mem->p : rl_data(x), .index = rl_data(index), .n = 1, .wide = index->dtype == RL_I64};
    p.dim[0] = x->dim[axis], p.step[0] = x->stride[axis];
    rl_loops_merge(&l);
    if (packed) {
        uint32_t bits = rl_elem_bits(x->dtype);
        p.from0 = x->offset;
        if (y->offset) return rl_call_fail(c, RL_EINTERNAL, "packed numbers that do not begin a storage"); /* rl_call_make makes them so */
        if (rl_numel(y) && rl_select_as_bytes(&l, &p, bits)) return launch(c, &p, &l, 1);
        p.bits = bits;
        return launch(c, &p, &l, 1);
    }
    return launch(c, &p, &l, rl_elem_bits(x->dtype) / 8);
}

/* GatherElements reads x, ScatterElements writes to a copy of it: the other side has the indices' dims. */
static rl_status elements(rl_call *c, const rl_tensor *x, const rl_tensor *index, const rl_tensor *other, uint32_t axis, bool scatter) {
    rl_loops l = {.rank = x->rank, .noperand = 3};
    for (uint32_t i = 0; i < x->rank; i++) {
        l.dim[i] = index->dim[i];
        l.step[0][i] = other->stride[i];
        l.step[1][i] = i == axis ? 0 : x->stride[i];
        l.step[2][i] = index->stride[i];
    }
    rl_p_select p = {.index = rl_data(index), .n = 1, .wide = index->dtype == RL_I64, .scatter = scatter};
    p.to = rl_data(scatter ? x : other), p.from = rl_data(scatter ? other : x);
    p.dim[0] = x->dim[axis], p.step[0] = x->stride[axis];
    return launch(c, &p, &l, rl_elem_bits(x->dtype) / 8);
}

rl_status rl_gpu_gather_elements(rl_call *c) {
    uint32_t axis;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_in(c, 0), *index = rl_call_in(c, 1);
    if (!takes(x, index) || x->rank != index->rank) return rl_call_decline(c);
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != axis && index->dim[i] > x->dim[i]) return rl_call_decline(c);
    x = rl_call_here(c, 0), index = rl_call_here(c, 1);
    return elements(c, x, index, rl_call_make(c, 0, x->dtype, index->rank, index->dim), axis, false);
}

/* Sums of several updates of one place, and what several leave there, would depend on the order of threads. */
static bool plain_updates(const rl_call *c) {
    return !rl_attr_find(c->node, "reduction") || rl_attr_is(c->node, "reduction", "none");
}

static rl_tensor *copy_of_data(rl_call *c) {
    const rl_tensor *x = rl_call_here(c, 0);
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    rl_tensor_move(c->rt, y, x);
    return y;
}

rl_status rl_gpu_scatter_elements(rl_call *c) {
    uint32_t axis;
    RL_TRY(rl_call_need(c, 3));
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_in(c, 0), *index = rl_call_in(c, 1), *from = rl_call_in(c, 2);
    if (!takes(x, index) || !plain_updates(c) || x->rank != index->rank || !rl_same_dims(index, from) || from->dtype != x->dtype) return rl_call_decline(c);
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != axis && index->dim[i] > x->dim[i]) return rl_call_decline(c);
    index = rl_call_here(c, 1), from = rl_call_here(c, 2);
    return elements(c, copy_of_data(c), index, from, axis, true);
}

/* Tuples in the last dim of index; b leading dims go along. `other`: index's dims but the last, then what is left of x. */
static rl_status tuples(rl_call *c, const rl_tensor *x, const rl_tensor *index, const rl_tensor *other, uint32_t b, bool scatter) {
    uint32_t n = (uint32_t)index->dim[index->rank - 1], outer = index->rank - 1;
    rl_loops l = {.noperand = 3};
    for (uint32_t i = 0; i < outer; i++, l.rank++) {
        l.dim[i] = index->dim[i], l.step[0][i] = other->stride[i], l.step[2][i] = index->stride[i];
        if (i < b) l.step[1][i] = x->stride[i];
    }
    for (uint32_t i = b + n; i < x->rank; i++, l.rank++)
        l.dim[l.rank] = x->dim[i], l.step[0][l.rank] = other->stride[l.rank], l.step[1][l.rank] = x->stride[i];
    rl_p_select p = {.index = rl_data(index), .n = n, .wide = index->dtype == RL_I64, .scatter = scatter, .each = index->stride[outer]};
    p.to = rl_data(scatter ? x : other), p.from = rl_data(scatter ? other : x);
    for (uint32_t i = 0; i < n; i++) p.dim[i] = x->dim[b + i], p.step[i] = x->stride[b + i];
    rl_loops_merge(&l);
    return launch(c, &p, &l, rl_elem_bits(x->dtype) / 8);
}

static bool takes_tuples(const rl_tensor *x, const rl_tensor *index, uint32_t b) {
    return takes(x, index) && index->rank > b && index->dim[index->rank - 1] >= 1 && index->dim[index->rank - 1] <= RL_MOST_INDICES
           && b + index->dim[index->rank - 1] <= x->rank;
}

rl_status rl_gpu_gather_nd(rl_call *c) {
    uint32_t rank = 0;
    int64_t dim[RL_RANK], b = rl_attr_int(c->node, "batch_dims", 0);
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *index = rl_call_in(c, 1);
    if (b < 0 || b > x->rank || !takes_tuples(x, index, (uint32_t)b) || x->rank + index->rank > RL_RANK) return rl_call_decline(c);
    for (uint32_t i = 0; i < b; i++)
        if (x->dim[i] != index->dim[i]) return rl_call_decline(c);
    x = rl_call_here(c, 0), index = rl_call_here(c, 1);
    for (uint32_t i = 0; i + 1 < index->rank; i++) dim[rank++] = index->dim[i];
    for (uint32_t i = (uint32_t)(b + index->dim[index->rank - 1]); i < x->rank; i++) dim[rank++] = x->dim[i];
    return tuples(c, x, index, rl_call_make(c, 0, x->dtype, rank, dim), (uint32_t)b, false);
}

rl_status rl_gpu_scatter_nd(rl_call *c) {
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *x = rl_call_in(c, 0), *index = rl_call_in(c, 1), *from = rl_call_in(c, 2);
    if (!plain_updates(c) || !takes_tuples(x, index, 0) || from->dtype != x->dtype) return rl_call_decline(c);
    uint32_t n = (uint32_t)index->dim[index->rank - 1], outer = index->rank - 1;
    bool fits = from->rank == outer + x->rank - n;
    for (uint32_t i = 0; fits && i < from->rank; i++) fits = from->dim[i] == (i < outer ? index->dim[i] : x->dim[i - outer + n]);
    if (!fits) return rl_call_decline(c);
    index = rl_call_here(c, 1), from = rl_call_here(c, 2);
    return tuples(c, copy_of_data(c), index, from, 0, true);
}

/* ---- Pad ---- */

_Static_assert((int)RL_GPU_PAD_REFLECT == RL_PAD_REFLECT && (int)RL_GPU_PAD_EDGE == RL_PAD_EDGE && (int)RL_GPU_PAD_WRAP == RL_PAD_WRAP, "the CPU's numbers");

/* Of what negative pads leave; the element around it, repeated to 16 bytes. */
rl_status rl_gpu_op_pad(rl_call *c) {
    rl_pad_op o;
    rl_tensor *value;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    uint32_t rank = x->rank, size = x->dtype == RL_STRING ? 0 : rl_elem_bits(x->dtype) / 8;
    if (rank > RL_DIMS || !size) return rl_call_decline(c);
    RL_TRY(rl_pad_read(c, rl_call_here(c, 0), &o));
    rl_p_pad p = {.mode = (uint32_t)o.mode, .rank = rank};
    if (o.mode == RL_PAD_CONSTANT) {
        RL_TRY(rl_pad_value(c, &value));
        for (uint32_t k = 0; k < 16; k += size) memcpy((char *)p.value + k, rl_data(value), size);
    }
    x = &o.from;
    rl_tensor *y = rl_call_make(c, 0, x->dtype, rank, o.dim);
    int64_t count = rl_numel(y);
    if (count >= INT32_MAX) return rl_call_decline(c);
    p.to = rl_data(y), p.from = rl_data(x), p.count = (uint32_t)count;
    for (uint32_t i = 0; i < rank; i++) {
        p.dim[i] = rl_divisor_of((uint32_t)RL_MAX(o.dim[i], 1));
        p.before[i] = o.before[i], p.in[i] = x->dim[i], p.to_step[i] = y->stride[i], p.from_step[i] = x->stride[i];
    }
    return count ? rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_size(RL_GPU_pad1, size), rl_gpu_blocks(count), &p, sizeof p) : RL_OK;
}
