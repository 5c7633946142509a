/* Moves of tensors: nests for the move kernel (src/move.h) with the run's threads. */
#include "device.h"

void rl_tensor_move(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src) {
    if (rt->device && rl_numel(dst) && rl_device_moves(rt, dst, src)) return;
    rl_nest b = {.to = dst->mem->p, .from = src->mem->p, .to_at = dst->offset, .from_at = src->offset, .bits = rl_elem_bits(dst->dtype),
                .n = dst->rank};
    rl_threads threads = rl_pool_threads(rt->pool);
    for (uint32_t i = 0; i < dst->rank; i++) b.loop[i] = (rl_loop){dst->dim[i], dst->stride[i], src->stride[i]};
    rt->moved += rl_bytes_of(dst->dtype, rl_numel(dst));
    rl_nest_move(&b, &threads);
}

void rl_tensor_move_all(rl_rt *rt, uint32_t n, const rl_tensor *dst, const rl_tensor *src) {
    if (n > 1 && rl_device_moves_all(rt, n, dst, src)) return;
    for (uint32_t i = 0; i < n; i++) rl_tensor_move(rt, &dst[i], &src[i]);
}

void rl_fill(rl_rt *rt, const rl_tensor *dst, const void *value) {
    if (rl_device_fills(rt, dst, value)) return;
    rl_storage s = {.rt = rt, .on = &rl_backend_cpu, .p = (void *)(uintptr_t)value, .ref = 1, .borrowed = true};
    rl_tensor one = {.kind = RL_TENSOR, .dtype = dst->dtype, .mem = &s}, all;
    uint64_t moved = rt->moved;
    if (rl_view_expand(&one, dst->rank, dst->dim, &all)) rl_tensor_move(rt, dst, &all);
    rt->moved = moved;
}
