/* QuantizeLinear and DequantizeLinear on the device; scales and zero points of all ops of bytes (numbers.h). */
#include <string.h>

#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "../runtime/quantize.h"
#include "numbers.h"

rl_status rl_gpu_places_of(const rl_call *c, const rl_gpu_places **out) {
    static const rl_gpu_places of[] = {{0, RL_NONE, 2, 1, RL_NONE, 3, RL_NONE, RL_NONE, RL_NONE}, {0, 1, 2, 3, 4, 5, 6, 7, 8}};
    *out = &of[c->arg];
    return rl_call_need(c, c->arg ? 8 : 2);
}

const rl_tensor *rl_gpu_input(const rl_call *c, uint32_t at) {
    return at == RL_NONE ? NULL : rl_call_in(c, at);
}

bool rl_gpu_is_byte(rl_dtype t) {
    return t == RL_I8 || t == RL_U8;
}

double rl_gpu_number_at(rl_call *c, uint32_t at, uint32_t i, double none) {
    const rl_tensor *t = rl_gpu_input(c, at);
    if (!t) return none;
    const float *p = rl_data(rl_call_as(c, at, RL_F32)); /* bytes and f32: exact */
    return (double)p[rl_numel(t) == 1 ? 0 : i];
}

bool rl_gpu_takes_numbers(const rl_call *c, uint32_t at, rl_dtype t, int64_t n) {
    const rl_tensor *x = rl_gpu_input(c, at);
    if (at == RL_NONE || !x) return true;
    return rl_call_is_constant(c, at) && x->dtype == t && (rl_numel(x) == 1 || (n > 1 && x->rank == 1 && x->dim[0] == n));
}

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* A scale or zero point as f32, broadcast to x along the axis. */
static bool spread(rl_call *c, uint32_t i, const rl_tensor *x, uint32_t axis, rl_tensor *out) {
    const rl_tensor *t = rl_gpu_cast(c, rl_call_here(c, i), RL_F32);
    rl_tensor along = rl_along(t, x->rank, axis);
    return (rl_numel(t) == 1 || (t->rank == 1 && t->dim[0] == x->dim[axis])) && rl_view_expand(&along, x->rank, x->dim, out);
}

/* arg: 0 quantizes, 1 takes back. */
rl_status rl_gpu_quantize(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *s = rl_call_in(c, 1), *z = rl_call_in(c, 2);
    bool back = c->arg == 1;
    rl_dtype given = (rl_dtype)rl_attr_int(c->node, "output_dtype", 0), to = back ? RL_F32 : z ? z->dtype : given ? given : RL_U8;
    uint32_t axis = 0;
    if (s->dtype != RL_F32 || rl_attr_int(c->node, "block_size", 0) || rl_attr_int(c->node, "precision", RL_F32) != RL_F32) return rl_call_decline(c);
    if (rl_numel(x) == 0) return rl_call_decline(c);
    if ((back && given && given != RL_F32) || (!back && to != RL_I8 && to != RL_U8 && to != RL_I16 && to != RL_U16)) return rl_call_decline(c);
    if (x->rank > 1 && (rl_numel(s) != 1 || (z && rl_numel(z) != 1))) RL_TRY(rl_call_axis(c, rl_attr_int(c->node, "axis", 1), x->rank, &axis));
    x = rl_call_here(c, 0);
    rl_tensor scale, zero;
    if ((x->rank == 0 && rl_numel(s) != 1) || !spread(c, 1, x, axis, &scale) || (z && !spread(c, 2, x, axis, &zero))) return rl_call_decline(c);
    double range[2] = {0};
    if (!back) rl_range_of(to, &range[0], &range[1]);
    rl_tensor *y = rl_gpu_make_like(c, to, x->rank, x->dim, &x, 1);
    rl_loops l = rl_loops_of(x->rank, x->dim, (const rl_tensor *[]){y, x, &scale, z ? &zero : NULL}, 4);
    rl_loops_sort(&l);
    rl_loops_merge(&l);
    if (l.rank > RL_DIMS || rl_numel(x) >= INT32_MAX) return rl_call_decline(c);
    rl_p_quantize p = {.to = rl_data(y), .from = rl_data(x), .scale = rl_data(&scale), .zero = z ? rl_data(&zero) : NULL, .count = (uint32_t)rl_numel(x),
                       .back = back, .to_type = (int32_t)to, .from_type = (int32_t)x->dtype, .least = (float)range[0], .most = (float)range[1],
                       .w = rl_walk_of(&l, 0)};
    return rl_gpu_launch(rl_gpu_of(c->rt), RL_GPU_quantize, rl_gpu_blocks(p.count), &p, sizeof p);
}
