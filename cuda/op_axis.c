/* Along an axis on the device: TopK, CumSum, CumProd. */
#include <string.h>

#include "../runtime/kernels.h"
#include "../runtime/ref_axis.h"
#include "backend.h"

/* A walk over the lines along `axis` of these tensors, which have the same dims but for that; false: too many. */
static bool lines_of(const rl_tensor *const *t, uint32_t n, uint32_t axis, rl_walk *kept, uint32_t *count) {
    rl_loops l = rl_loops_of(t[0]->rank, t[0]->dim, t, n);
    l.dim[axis] = 1;
    return rl_gpu_walk_of(&l, kept, count);
}

/* ---- CumSum, CumProd ---- */

static rl_gpu_kernel scan_kernel(rl_dtype t) {
    return t == RL_I32 ? RL_GPU_scan_i32 : t == RL_I64 ? RL_GPU_scan_i64 : rl_gpu_of_float(RL_GPU_scan_f32, t);
}

/* Threads for a line: one where there are lines enough, or little to do. */
static uint32_t lanes_of(uint32_t count, uint32_t n) {
    enum { ENOUGH = 1 << 16, SHORT = 16, LONG = 512 };
    return n <= SHORT || count >= ENOUGH ? 1 : n <= LONG ? 32 : 256;
}

rl_status rl_gpu_cumulate(rl_call *c) {
    uint32_t axis;
    RL_TRY(rl_cumulate_axis(c, &axis));
    const rl_tensor *x = rl_call_in(c, 0);
    if (scan_kernel(x->dtype) == RL_NGPU || rl_numel(x) == 0 || rl_numel(x) >= INT32_MAX) return rl_call_decline(c);
    x = rl_call_here(c, 0);
    const rl_tensor *y = rl_gpu_make_like(c, x->dtype, x->rank, x->dim, &x, 1);
    rl_p_scan p = {.to = rl_data(y), .from = rl_data(x), .n = (uint32_t)x->dim[axis], .multiplies = c->arg == RL_CUM_PROD,
                   .reverse = rl_attr_int(c->node, "reverse", 0) != 0, .exclusive = rl_attr_int(c->node, "exclusive", 0) != 0,
                   .to_step = y->stride[axis], .from_step = x->stride[axis]};
    if (!lines_of((const rl_tensor *[]){y, x}, 2, axis, &p.kept, &p.count)) return rl_call_decline(c);
    p.lanes = lanes_of(p.count, p.n), p.share = (p.n + p.lanes - 1) / p.lanes;
    uint32_t teams = RL_THREADS / p.lanes;
    return rl_gpu_launch(rl_gpu_of(c->rt), scan_kernel(x->dtype), (p.count + teams - 1) / teams, &p, sizeof p);
}

/* ---- TopK ---- */

/* Sorts parts of p->n elements per line; of the last round the whole line. */
static rl_status sort(rl_call *c, rl_p_topk *p) {
    uint32_t parts = (p->n + RL_TOPK_SLOTS - 1) / RL_TOPK_SLOTS;
    for (p->width = 1; p->width < p->n && p->width < RL_TOPK_SLOTS;) p->width *= 2;
    p->parts = rl_divisor_of(parts);
    uint32_t units = RL_TOPK_SLOTS / p->width, blocks = (p->count * parts + units - 1) / units;
    return rl_gpu_launch(rl_gpu_of(c->rt), RL_GPU_topk, blocks, p, sizeof *p);
}

/* Round by round the best of each part, until a part is the line; at most half of a part's elements are left each time. */
static rl_status sort_lines(rl_call *c, rl_p_topk *p) {
    while (p->n > RL_TOPK_SLOTS) {
        int64_t left = (int64_t)((p->n + RL_TOPK_SLOTS - 1) / RL_TOPK_SLOTS) * p->k, all = left * p->count;
        p->best = rl_data(rl_call_temp(c, RL_U64, 1, &all)), p->number = rl_data(rl_call_temp(c, RL_U32, 1, &all)), p->partial = true;
        RL_TRY(sort(c, p));
        p->best_before = p->best, p->number_before = p->number, p->again = true;
        p->n = (uint32_t)left;
    }
    p->partial = false;
    return sort(c, p);
}

/* k is a constant, or on the host. Many of a long line: the CPU's. */
rl_status rl_gpu_topk(rl_call *c) {
    uint32_t axis;
    int64_t k, dim[RL_RANK];
    RL_TRY(rl_topk_read(c, &axis, &k));
    const rl_tensor *x = rl_call_in(c, 0);
    bool fits = k <= RL_TOPK_SLOTS / 2 || x->dim[axis] <= RL_TOPK_SLOTS;
    if (!fits || k == 0 || rl_numel(x) == 0 || rl_numel(x) >= INT32_MAX || rl_elem_bits(x->dtype) < 8) return rl_call_decline(c);
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = k;
    x = rl_call_here(c, 0);
    const rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, dim), *at = rl_call_make(c, 1, RL_I64, x->rank, dim);
    rl_p_topk p = {.values = rl_data(y), .indices = rl_data(at), .from = rl_data(x), .n = (uint32_t)x->dim[axis], .k = (uint32_t)k, .type = (int32_t)x->dtype,
                   .largest = rl_attr_int(c->node, "largest", 1) != 0, .size = rl_elem_bits(x->dtype) / 8, .from_step = x->stride[axis],
                   .values_step = y->stride[axis], .indices_step = at->stride[axis]};
    if (!lines_of((const rl_tensor *[]){y, x, at}, 3, axis, &p.kept, &p.count)) return rl_call_decline(c);
    return sort_lines(c, &p);
}
