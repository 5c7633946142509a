/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear on the device; scales and zero points of all ops of bytes (numbers.h). */

#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "../runtime/number.h"
#include "../runtime/quantize.h"
#include "numbers.h"

rl_status rl_gpu_places_of(const rl_call *c, const rl_gpu_places **out) {
    static const rl_gpu_places of[] = {
        [RL_GPU_INTEGER] = {0, RL_NONE, 2, 1, RL_NONE, 3, RL_NONE, RL_NONE, RL_NONE}, [RL_GPU_QLINEAR] = {0, 1, 2, 3, 4, 5, 6, 7, 8},
        [RL_GPU_TO_FLOAT] = {0, 2, 4, 1, 3, 5, RL_NONE, RL_NONE, 6}, [RL_GPU_DYNAMIC] = {0, RL_NONE, RL_NONE, 1, 2, 3, RL_NONE, RL_NONE, 4}};
    static const uint32_t needed[] = {2, 8, 4, 3};
    *out = &of[c->arg];
    return rl_call_need(c, needed[c->arg]);
}

const rl_tensor *rl_gpu_input(const rl_call *c, uint32_t at) {
    return at == RL_NONE ? NULL : rl_call_in(c, at);
}

bool rl_gpu_is_byte(rl_dtype t) {
    return t == RL_I8 || t == RL_U8;
}

/* That one element: all of them for each would be as many temporaries. */
double rl_gpu_number_at(rl_call *c, uint32_t at, uint32_t i, double none) {
    const rl_tensor *t = rl_gpu_input(c, at);
    double x;
    if (!t) return none;
    int64_t k = t->offset + (rl_numel(t) == 1 ? 0 : i * t->stride[0]);
    rl_convert_run((rl_run){RL_F64, (char *)&x, 0, 1}, (rl_run){t->dtype, t->mem->p, k, 1}, 1, true);
    return x;
}

bool rl_gpu_takes_numbers(const rl_call *c, uint32_t at, rl_dtype t, int64_t n) {
    const rl_tensor *x = rl_gpu_input(c, at);
    if (at == RL_NONE || !x) return true;
    return rl_call_is_constant(c, at) && x->dtype == t && (rl_numel(x) == 1 || (n > 1 && x->rank == 1 && x->dim[0] == n));
}

bool rl_gpu_takes_zero(const rl_call *c, uint32_t at, rl_dtype t) {
    const rl_tensor *x = rl_gpu_input(c, at);
    return rl_gpu_takes_numbers(c, at, t, 1) || (x->dtype == t && rl_numel(x) == 1);
}

bool rl_gpu_is_made(const rl_call *c, uint32_t at) {
    return rl_gpu_input(c, at) && !rl_call_is_constant(c, at);
}

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* x to y, or (back) the other way round; scale (f32) and zero (bytes or 16 bits; NULL: 0) have x's dims. */
static rl_status quantize(rl_call *c, bool back, const rl_tensor *y, const rl_tensor *x, const rl_tensor *scale, const rl_tensor *zero) {
    enum { WIDE = 16 };
    double range[2] = {0};
    if (!back) rl_range_of(y->dtype, &range[0], &range[1]);
    rl_loops l = rl_loops_of(x->rank, x->dim, (const rl_tensor *[]){y, x, scale, zero}, 4);
    rl_loops_sort(&l);
    rl_loops_merge(&l);
    if (l.rank > RL_DIMS || rl_numel(x) >= INT32_MAX) return rl_call_decline(c);
    rl_p_quantize p = {.to = rl_data(y), .from = rl_data(x), .scale = rl_data(scale), .zero = zero ? rl_data(zero) : NULL, .count = (uint32_t)rl_numel(x),
                       .back = back, .to_type = (int32_t)y->dtype, .from_type = (int32_t)x->dtype, .zero_type = zero ? (int32_t)zero->dtype : 0,
                       .least = (float)range[0], .most = (float)range[1]};
    bool plain = l.rank && !l.step[2][l.rank - 1] && !l.step[3][l.rank - 1] && rl_gpu_is_byte(back ? x->dtype : y->dtype) && (back || x->dtype == RL_F32);
    p.wide = plain && rl_loops_takes(&l, WIDE, 2, (uint64_t[]){(uintptr_t)p.to, (uintptr_t)p.from});
    if (p.wide) rl_loops_by(&l, WIDE);
    p.w = rl_walk_of(&l, 0);
    uint32_t blocks = p.wide ? rl_gpu_thread_blocks(rl_loops_count(&l)) : rl_gpu_blocks(p.count);
    return rl_gpu_launch(rl_gpu_of(c->rt), RL_GPU_quantize, blocks, &p, sizeof p);
}

/* A scale or zero point broadcast to x along the axis. */
static bool spread(const rl_tensor *t, const rl_tensor *x, uint32_t axis, rl_tensor *out) {
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
    if (rl_numel(x) == 0 || (z && z->dtype != (back ? x->dtype : to))) return rl_call_decline(c);
    if ((back && given && given != RL_F32) || (!back && to != RL_I8 && to != RL_U8 && to != RL_I16 && to != RL_U16)) return rl_call_decline(c);
    if (x->rank > 1 && (rl_numel(s) != 1 || (z && rl_numel(z) != 1))) RL_TRY(rl_call_axis(c, rl_attr_int(c->node, "axis", 1), x->rank, &axis));
    x = rl_call_here(c, 0);
    rl_tensor scale, zero;
    if ((x->rank == 0 && rl_numel(s) != 1) || !spread(rl_call_here(c, 1), x, axis, &scale) || (z && !spread(rl_call_here(c, 2), x, axis, &zero)))
        return rl_call_decline(c);
    return quantize(c, back, rl_gpu_make_like(c, to, x->rank, x->dim, &x, 1), x, &scale, z ? &zero : NULL);
}

rl_status rl_gpu_quantized(rl_call *c, const rl_tensor *x, const rl_tensor *y, const rl_tensor *s, const rl_tensor *z) {
    rl_tensor scale, zero;
    RL_TRY(rl_gpu_dynamic_scale(c, x, s, z));
    rl_view_expand(s, x->rank, x->dim, &scale), rl_view_expand(z, x->rank, x->dim, &zero);
    return quantize(c, false, y, x, &scale, &zero);
}

rl_status rl_gpu_dynamic_quantize(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    if (rl_numel(x) == 0 || rl_numel(x) >= INT32_MAX) return rl_call_decline(c);
    x = rl_call_here(c, 0);
    rl_tensor *y = rl_gpu_make_like(c, RL_U8, x->rank, x->dim, &x, 1), *s = rl_call_make(c, 1, RL_F32, 0, NULL), *z = rl_call_make(c, 2, RL_U8, 0, NULL);
    return rl_gpu_quantized(c, x, y, s, z);
}
