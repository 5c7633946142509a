/* By where elements stand, on the device: Trilu, OneHot, RotaryEmbedding, GridSample. */
#include "../runtime/attention_op.h"
#include "../runtime/element.h"
#include "../runtime/kernels.h"
#include "../runtime/ref_sample.h"
#include "backend.h"

static bool moves(rl_dtype t) {
    return t != RL_STRING && rl_elem_bits(t) >= 8 && rl_elem_bits(t) <= 64;
}

rl_status rl_gpu_trilu(rl_call *c) {
    rl_p_triangle p = {.upper = rl_attr_int(c->node, "upper", 1) != 0};
    RL_TRY(rl_call_need(c, 1));
    RL_TRY(rl_call_int(c, 1, 0, &p.diagonal));
    const rl_tensor *x = rl_call_here(c, 0);
    if (x->rank < 2 || !moves(x->dtype)) return rl_call_decline(c);
    rl_tensor *y = rl_gpu_make_like(c, x->dtype, x->rank, x->dim, &x, 1);
    rl_loops l = rl_loops_of(x->rank, x->dim, (const rl_tensor *[]){y, x, NULL}, 3);
    l.step[2][x->rank - 2] = -1, l.step[2][x->rank - 1] = 1;
    rl_loops_sort(&l);
    if (!rl_gpu_walk_of(&l, &p.w, &p.count)) return rl_call_decline(c);
    p.to = rl_data(y), p.from = rl_data(x);
    return p.count ? rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_size(RL_GPU_triangle1, rl_elem_bits(x->dtype) / 8), rl_gpu_blocks(p.count), &p, sizeof p) : RL_OK;
}

rl_status rl_gpu_one_hot_of(rl_call *c, const rl_tensor *y, const rl_tensor *index, const void *values, uint32_t axis) {
    rl_p_one_hot p = {.to = rl_data(y), .index = rl_data(index), .values = values, .wide = index->dtype == RL_I64, .depth = y->dim[axis]};
    rl_loops l = rl_loops_of(y->rank, y->dim, (const rl_tensor *[]){y, index, NULL}, 3);
    l.step[1][axis] = 0, l.step[2][axis] = 1;
    if (!rl_gpu_walk_of(&l, &p.w, &p.count)) return rl_call_decline(c);
    return p.count ? rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_size(RL_GPU_one_hot1, rl_elem_bits(y->dtype) / 8), rl_gpu_blocks(p.count), &p, sizeof p) : RL_OK;
}

/* The depth is a constant, or on the host: so the output's dims are known before its numbers are. */
rl_status rl_gpu_one_hot(rl_call *c) {
    uint32_t axis, rank;
    int64_t depth, dim[RL_RANK];
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *index = rl_call_in(c, 0), *values = rl_call_in(c, 2);
    RL_TRY(rl_call_int(c, 1, 0, &depth));
    if ((index->dtype != RL_I64 && index->dtype != RL_I32) || !moves(values->dtype) || rl_numel(values) != 2 || depth < 1) return rl_call_decline(c);
    rank = index->rank + 1;
    RL_TRY(rl_call_axis(c, rl_attr_int(c->node, "axis", -1), rank, &axis));
    if (rank > RL_RANK) return rl_call_decline(c);
    rl_tensor at = *rl_call_here(c, 0);
    values = rl_here_dense(c, rl_call_here(c, 2));
    at.rank = rank;
    for (uint32_t i = rank; i-- > 0;) {
        at.dim[i] = i == axis ? 1 : index->dim[i - (i > axis)], at.stride[i] = i == axis ? 0 : at.stride[i - (i > axis)];
        dim[i] = i == axis ? depth : at.dim[i];
    }
    RL_TRY(rl_call_dims(c, rank, dim));
    return rl_gpu_one_hot_of(c, rl_call_make(c, 0, values->dtype, rank, dim), &at, rl_data(values), axis);
}

/* Zeros, then ones along the diagonal, one step down and right from each to the next. */
rl_status rl_gpu_eye_like(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    rl_dtype t = rl_attr_dtype(c->node, "dtype", x->dtype);
    int64_t k = RL_MIN(RL_MAX(rl_attr_int(c->node, "k", 0), -INT32_MAX), INT32_MAX), down = RL_MAX(-k, 0), right = RL_MAX(k, 0);
    if (x->rank != 2 || !rl_is_number(t) || !moves(t)) return rl_call_decline(c);
    const rl_tensor *y = rl_call_make(c, 0, t, 2, x->dim);
    rl_tensor diagonal = *y;
    rl_gpu_fill_number(c, y, 0);
    diagonal.rank = 1, diagonal.dim[0] = RL_MIN(x->dim[0] - down, x->dim[1] - right), diagonal.stride[0] = y->stride[0] + y->stride[1];
    diagonal.offset += down * y->stride[0] + right * y->stride[1];
    if (diagonal.dim[0] > 0) rl_gpu_fill_number(c, &diagonal, 1);
    return RL_OK;
}

/* ---- RotaryEmbedding ---- */

/* Pairs as [batch, heads, length, half]: of y, of x, of what is looked up in the caches, of the positions. */
static rl_loops pairs(const rl_rotary_op *r, const rl_tensor *y, bool positions) {
    rl_loops l = rl_loops_of(4, r->x.dim, (const rl_tensor *[]){y, &r->x, NULL, NULL}, 4);
    int64_t length = r->x.dim[2];
    bool by_token = positions && !r->one_position;
    l.dim[3] = r->half;
    for (uint32_t o = 0; o < 2 && r->interleaved; o++) l.step[o][3] *= 2;
    l.step[2][0] = positions ? 0 : length * r->half, l.step[2][2] = by_token ? 0 : r->half, l.step[2][3] = 1;
    if (by_token) l.step[3][0] = length, l.step[3][2] = 1;
    return l;
}

/* What is behind the pairs stays as it is. */
static void move_rest(rl_call *c, const rl_rotary_op *r, const rl_tensor *y) {
    int64_t first = 2 * r->half, n = r->x.dim[3] - first;
    rl_tensor to = rl_view_slice(y, 3, first, 1, n), from = rl_view_slice(&r->x, 3, first, 1, n);
    if (n) rl_tensor_move(c->rt, &to, &from);
}

rl_status rl_gpu_rotary(rl_call *c) {
    rl_rotary_op r;
    rl_p_rotary p = {.node = c->step->node.i + 1};
    RL_TRY(rl_rotary_read(c, &r));
    const rl_tensor *x = rl_call_in(c, 0), *cosine = rl_call_in(c, r.cosine), *sine = rl_call_in(c, r.sine), *position = rl_call_in(c, r.position);
    bool enough = position || r.positions >= r.x.dim[0] * r.x.dim[2];
    if (cosine->dtype != x->dtype || sine->dtype != x->dtype || !enough || (position && position->dtype != RL_I64)) return rl_call_decline(c);
    rl_tensor y = rl_rotary_heads(&r, rl_call_make(c, 0, x->dtype, x->rank, x->dim));
    rl_loops l = pairs(&r, &y, position != NULL);
    if (!rl_gpu_walk_of(&l, &p.w, &p.count)) return rl_call_decline(c);
    p.to = rl_data(&y), p.from = rl_data(&r.x), p.half = (uint32_t)r.half, p.places = r.positions * r.half, p.wrong = rl_gpu_wrong(c);
    p.cosine = rl_data(rl_here_dense(c, rl_call_here(c, r.cosine))), p.sine = rl_data(rl_here_dense(c, rl_call_here(c, r.sine)));
    if (position) p.position = rl_data(rl_here_dense(c, rl_call_here(c, r.position)));
    int64_t apart = r.interleaved ? 1 : r.half;
    p.to_pair = apart * y.stride[3], p.from_pair = apart * r.x.stride[3];
    move_rest(c, &r, &y);
    return p.count ? rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_float(RL_GPU_rotary_f32, x->dtype), rl_gpu_blocks(p.count), &p, sizeof p) : RL_OK;
}

/* ---- GridSample ---- */

/* Numbers are places of the output, of RL_GRID_CHANNELS channels each: y, x without its axes, the point of the grid, the first channel. */
static rl_loops places(const rl_tensor *y, const rl_tensor *x, int64_t r) {
    rl_loops l = {.rank = y->rank, .noperand = 4};
    int64_t point = r;
    for (uint32_t i = y->rank; i-- > 0;) {
        l.dim[i] = i == 1 ? (y->dim[1] + RL_GRID_CHANNELS - 1) / RL_GRID_CHANNELS : y->dim[i];
        l.step[0][i] = y->stride[i];
        if (i < 2) l.step[1][i] = x->stride[i];
        if (i != 1) l.step[2][i] = point, point *= y->dim[i];
    }
    for (uint32_t o = 0; o < 2; o++) l.step[o][1] *= RL_GRID_CHANNELS;
    l.step[3][1] = RL_GRID_CHANNELS;
    return l;
}

rl_status rl_gpu_grid_sample(rl_call *c) {
    int64_t dim[RL_RANK];
    rl_p_grid p = {0};
    RL_TRY(rl_grid_dims(c, dim));
    RL_TRY(rl_grid_mode_read(c, &p.mode));
    const rl_tensor *x = rl_call_in(c, 0), *grid = rl_call_in(c, 1);
    p.r = x->rank - 2;
    if (p.r > RL_MOST_SPATIAL || rl_numel(x) == 0 || rl_numel(x) >= INT32_MAX || rl_numel(grid) == 0 || !rl_is_float(grid->dtype)) return rl_call_decline(c);
    x = rl_call_here(c, 0), grid = rl_gpu_cast(c, rl_call_here(c, 1), rl_gpu_computed(grid->dtype));
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, dim);
    rl_loops l = places(y, x, p.r);
    if (!rl_gpu_walk_of(&l, &p.w, &p.count)) return rl_call_decline(c);
    for (uint32_t i = 0; i < p.r; i++) p.in[RL_MOST_SPATIAL - p.r + i] = (int32_t)x->dim[2 + i], p.step[RL_MOST_SPATIAL - p.r + i] = x->stride[2 + i];
    p.to = rl_data(y), p.from = rl_data(x), p.grid = rl_data(grid), p.wide = grid->dtype == RL_F64, p.channels = (uint32_t)x->dim[1];
    p.to_c = y->stride[1], p.from_c = x->stride[1];
    return rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_float(RL_GPU_grid_f32, x->dtype), rl_gpu_thread_blocks(p.count), &p, sizeof p);
}
