/* Sums over axes on the device: Reduce*, ArgMax, ArgMin, GlobalAveragePool and GlobalMaxPool, DynamicQuantizeLinear's range, and what is made of such sums by
 * steps: Hardmax, LpNormalization, MeanVarianceNormalization. */
#include <float.h>

#include "../runtime/kernels.h"
#include "../runtime/number.h"
#include "../runtime/ref_pointwise.h"
#include "backend.h"

static rl_gpu_kernel reduce_kernel(rl_dtype t) {
    return t == RL_I32 ? RL_GPU_reduce_i32 : t == RL_I64 ? RL_GPU_reduce_i64 : rl_gpu_of_float(RL_GPU_reduce_f32, t);
}

enum { ENOUGH = 1 << 17, OWN = 16 }; /* threads that keep a device busy; elements that a thread is worth */

/* A team for each output, and (splits) for each of its parts where there would be too few threads: how many parts. */
static uint32_t share_out(rl_p_reduce *p, bool splits) {
    static const uint32_t lanes[] = {1, 8, 32, 256};
    uint32_t k = p->across || p->each < 8 ? 0 : p->each <= 64 ? 1 : p->each <= 512 ? 2 : 3;
    while (p->across && k < 2 && (uint64_t)p->count * lanes[k] < ENOUGH && p->each / lanes[k] > OWN) k++;
    p->lanes = lanes[k];
    uint64_t threads = (uint64_t)p->count * p->lanes, parts = 1;
    if (splits && threads < ENOUGH / 2 && p->each / p->lanes >= 4 * OWN) parts = RL_MIN(p->each / (p->lanes * OWN), ENOUGH / threads);
    p->share = (uint32_t)((p->each + parts - 1) / parts);
    p->blocks = rl_divisor_of((uint32_t)((threads + RL_THREADS - 1) / RL_THREADS));
    return (p->each + p->share - 1) / p->share;
}

/* The parts' sums, `parts` rows of one for each output, added up. */
static rl_status add_up(rl_call *c, rl_gpu_kernel k, const rl_p_reduce *first, const rl_loops *kept, const rl_tensor *sums, const rl_tensor *y) {
    rl_loops outputs = *kept, rows = {.rank = 1, .noperand = 1, .dim = {sums->dim[0]}, .step = {{sums->dim[1]}}};
    for (int64_t i = outputs.rank, n = 1; i-- > 0; n *= outputs.dim[i]) outputs.step[1][i] = n;
    rl_p_reduce p = *first;
    p.to = rl_data(y), p.from = rl_data(sums), p.each = (uint32_t)sums->dim[0], p.partial = 0, p.again = 1, p.across = 1;
    p.kept = rl_walk_of(&outputs, 0), p.gone = rl_walk_of(&rows, 0);
    share_out(&p, false);
    return rl_gpu_launch(rl_gpu_of(c->rt), k, p.blocks.d, &p, sizeof p);
}

/* splits: what kernel k carries are sums, in 8 bytes, which can be added up in parts. zero: kernel range's second output. */
typedef struct { rl_gpu_kernel k; bool splits; uint32_t op; void *zero; } reduction;

/* y, row-major, has x's dims with 1 for those reduced. */
static rl_status reduce(rl_call *c, reduction r, const rl_tensor *x, const rl_tensor *y, const bool *gone) {
    rl_loops kept = {.noperand = 2}, inner = {.noperand = 1};
    rl_gpu_kernel k = r.k;
    if (k == RL_NGPU || rl_numel(x) >= INT32_MAX || rl_numel(x) == 0) return rl_call_decline(c);
    for (uint32_t i = 0; i < x->rank; i++) {
        rl_loops *l = gone[i] ? &inner : &kept;
        l->dim[l->rank] = x->dim[i];
        l->step[0][l->rank] = gone[i] ? x->stride[i] : y->stride[i];
        l->step[1][l->rank++] = x->stride[i];
    }
    rl_loops_merge(&kept);
    rl_loops_merge(&inner);
    if (kept.rank > RL_DIMS || inner.rank > RL_DIMS) return rl_call_decline(c);
    rl_p_reduce p = {.to = rl_data(y), .zero = r.zero, .from = rl_data(x), .count = (uint32_t)rl_loops_count(&kept), .each = (uint32_t)rl_loops_count(&inner),
                     .op = r.op, .kept = rl_walk_of(&kept, 0), .gone = rl_walk_of(&inner, 0)};
    p.n = p.each, p.across = kept.rank && kept.step[1][kept.rank - 1] == 1;
    uint32_t parts = share_out(&p, r.splits);
    if (parts == 1) return rl_gpu_launch(rl_gpu_of(c->rt), k, p.blocks.d, &p, sizeof p);
    const rl_tensor *sums = rl_call_temp(c, x->dtype == RL_I32 || x->dtype == RL_I64 ? RL_I64 : RL_F64, 2, (int64_t[]){parts, p.count});
    p.to = rl_data(sums), p.partial = 1;
    RL_TRY(rl_gpu_launch(rl_gpu_of(c->rt), k, p.blocks.d * parts, &p, sizeof p));
    return add_up(c, k, &p, &kept, sums, y);
}

/* x's dims, with 1 for those gone. */
static rl_tensor *temp_kept(rl_call *c, rl_dtype t, const rl_tensor *x, const bool *gone) {
    int64_t dim[RL_RANK];
    for (uint32_t i = 0; i < x->rank; i++) dim[i] = gone[i] ? 1 : x->dim[i];
    return rl_call_temp(c, t, x->rank, dim);
}

/* Output 0, without the dims that are gone, or with 1 for them (keepdims); what is returned has these in any case. */
static rl_tensor make_kept(rl_call *c, rl_dtype type, const rl_tensor *x, const bool *gone) {
    bool keeps = rl_attr_int(c->node, "keepdims", 1) != 0;
    int64_t kept[RL_RANK], dim[RL_RANK];
    uint32_t rank = 0;
    rl_tensor view;
    for (uint32_t i = 0; i < x->rank; i++) {
        kept[i] = gone[i] ? 1 : x->dim[i];
        if (keeps || !gone[i]) dim[rank++] = kept[i];
    }
    rl_view_reshape(rl_call_make(c, 0, type, rank, dim), x->rank, kept, &view);
    return view;
}

rl_status rl_gpu_op_reduce(rl_call *c) {
    const int64_t *axis;
    uint32_t n;
    bool gone[RL_RANK] = {false};
    RL_TRY(rl_call_need(c, 1));
    uint32_t slot = c->node->since >= (c->arg == RL_GPU_SUM ? 13u : 18u) ? 1 : RL_NONE;
    RL_TRY(rl_call_ints(c, slot == RL_NONE ? "axes" : NULL, slot, &axis, &n));
    const rl_tensor *x = rl_call_here(c, 0);
    bool powers = c->arg == RL_GPU_LOG_SUM_EXP; /* whose sums are not added up in parts */
    rl_gpu_kernel k = powers ? rl_gpu_of_float(RL_GPU_log_sum_exp_f32, x->dtype) : reduce_kernel(x->dtype);
    if (k == RL_NGPU || rl_numel(x) == 0 || (n == 0 && rl_attr_int(c->node, "noop_with_empty_axes", 0))) return rl_call_decline(c);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t a;
        RL_TRY(rl_call_axis(c, axis[i], x->rank, &a));
        gone[a] = true;
    }
    for (uint32_t i = 0; n == 0 && i < x->rank; i++) gone[i] = true;
    rl_tensor y = make_kept(c, x->dtype, x, gone);
    return reduce(c, (reduction){k, !powers, (uint32_t)c->arg, NULL}, x, &y, gone);
}

rl_status rl_gpu_dynamic_scale(rl_call *c, const rl_tensor *x, const rl_tensor *scale, const rl_tensor *zero) {
    bool gone[RL_RANK];
    for (uint32_t i = 0; i < RL_RANK; i++) gone[i] = true;
    return reduce(c, (reduction){RL_GPU_range, true, 0, rl_data(zero)}, x, scale, gone);
}

static rl_gpu_kernel arg_kernel(rl_dtype t) {
    switch (t) {
    case RL_I8: return RL_GPU_arg_i8;
    case RL_U8: return RL_GPU_arg_u8;
    case RL_I32: return RL_GPU_arg_i32;
    case RL_I64: return RL_GPU_arg_i64;
    default: return rl_gpu_of_float(RL_GPU_arg_f32, t);
    }
}

rl_status rl_gpu_arg(rl_call *c) {
    uint32_t axis, last = rl_attr_int(c->node, "select_last_index", 0) ? RL_GPU_TIES_LAST : 0;
    bool gone[RL_RANK] = {false};
    RL_TRY(rl_call_need(c, 1));
    RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = rl_call_here(c, 0);
    if (arg_kernel(x->dtype) == RL_NGPU || rl_numel(x) == 0 || x->rank == 0) return rl_call_decline(c);
    gone[axis] = true;
    rl_tensor y = make_kept(c, RL_I64, x, gone);
    return reduce(c, (reduction){arg_kernel(x->dtype), false, (uint32_t)c->arg | last, NULL}, x, &y, gone);
}

rl_status rl_gpu_global_pool(rl_call *c) {
    bool gone[RL_RANK];
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_here(c, 0);
    for (uint32_t i = 0; i < x->rank; i++) {
        gone[i] = i >= 2;
        dim[i] = gone[i] ? 1 : x->dim[i];
    }
    if (x->rank < 3 || rl_numel(x) == 0) return rl_call_decline(c);
    return reduce(c, (reduction){reduce_kernel(x->dtype), true, (uint32_t)c->arg, NULL}, x, rl_call_make(c, 0, x->dtype, x->rank, dim), gone);
}

/* ---- of reductions and steps element by element ---- */

/* The first of the largest, then OneHot of it. Before opset 13 over all dims from `axis` on. */
rl_status rl_gpu_hardmax(rl_call *c) {
    static const double marks[] = {0, 1};
    uint32_t axis;
    bool old = c->node->since < 13, gone[RL_RANK] = {false};
    uint64_t values[2] = {0};
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    if (arg_kernel(x->dtype) == RL_NGPU || rl_numel(x) == 0 || rl_numel(x) >= INT32_MAX || x->rank == 0) return rl_call_decline(c);
    if (old && rl_attr_int(c->node, "axis", 1) == x->rank) return rl_call_decline(c);
    RL_TRY(rl_call_attr_axis(c, "axis", old ? 1 : -1, &axis));
    rl_tensor from = *rl_call_here(c, 0), to = *rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    if (old) {
        int64_t dim[2] = {1, 1};
        for (uint32_t i = 0; i < x->rank; i++) dim[i >= axis] *= x->dim[i];
        rl_view_reshape(rl_here_dense(c, &from), 2, dim, &from), rl_view_reshape(&to, 2, dim, &to);
        axis = 1;
    }
    gone[axis] = true;
    const rl_tensor *at = temp_kept(c, RL_I64, &from, gone);
    RL_TRY(reduce(c, (reduction){arg_kernel(from.dtype), false, RL_GPU_MAX, NULL}, &from, at, gone));
    rl_convert_run((rl_run){to.dtype, (char *)values, 0, 1}, (rl_run){RL_F64, (char *)(uintptr_t)marks, 0, 1}, 2, true);
    return rl_gpu_one_hot_of(c, &to, at, rl_call_keep(c, values, sizeof values, false), axis);
}

/* Output 0 = a / b, of these floats or, where they are computed in a wider type, rounded to `made`. */
static rl_status quotient(rl_call *c, rl_dtype made, const rl_tensor *a, const rl_tensor *b) {
    const rl_tensor *y = rl_call_make(c, 0, made, a->rank, a->dim), *wide = made == a->dtype ? y : rl_call_temp(c, a->dtype, a->rank, a->dim);
    RL_TRY(rl_gpu_each(c, RL_PW_DIV, wide, (const rl_tensor *[]){a, b}, 2, NULL));
    return wide == y ? RL_OK : rl_gpu_cast_to(c, y, wide);
}

static bool takes_floats(const rl_tensor *x) {
    return reduce_kernel(rl_gpu_computed(x->dtype)) != RL_NGPU && rl_is_float(x->dtype) && rl_numel(x) > 0 && rl_numel(x) < INT32_MAX;
}

/* A line of zeros stays one: it is divided by more than its norm. */
rl_status rl_gpu_lp_normalization(rl_call *c) {
    uint32_t axis;
    bool gone[RL_RANK] = {false};
    RL_TRY(rl_call_need(c, 1));
    RL_TRY(rl_call_attr_axis(c, "axis", -1, &axis));
    int64_t p = rl_attr_int(c->node, "p", 2);
    rl_dtype made = rl_call_in(c, 0)->dtype, t = rl_gpu_computed(made);
    if (!takes_floats(rl_call_in(c, 0)) || (p != 1 && p != 2)) return rl_call_decline(c);
    gone[axis] = true;
    const rl_tensor *x = rl_gpu_cast(c, rl_call_here(c, 0), t), *norm = temp_kept(c, t, x, gone);
    RL_TRY(reduce(c, (reduction){reduce_kernel(t), true, p == 1 ? RL_GPU_L1 : RL_GPU_L2, NULL}, x, norm, gone));
    RL_TRY(rl_gpu_each(c, RL_PW_MAX, norm, (const rl_tensor *[]){norm, rl_gpu_number(c, t, t == RL_F64 ? DBL_TRUE_MIN : (double)FLT_TRUE_MIN)}, 2, NULL));
    return quotient(c, made, x, norm);
}

rl_status rl_gpu_mean_variance(rl_call *c) {
    static const int64_t most[] = {0, 2, 3};
    const int64_t *axis;
    uint32_t n;
    bool gone[RL_RANK] = {false};
    RL_TRY(rl_call_need(c, 1));
    rl_dtype made = rl_call_in(c, 0)->dtype, t = rl_gpu_computed(made);
    if (!takes_floats(rl_call_in(c, 0))) return rl_call_decline(c);
    RL_TRY(rl_call_ints(c, "axes", RL_NONE, &axis, &n));
    if (!rl_attr_find(c->node, "axes")) axis = most, n = RL_LEN(most);
    for (uint32_t i = 0, a; i < n; i++) {
        RL_TRY(rl_call_axis(c, axis[i], rl_call_in(c, 0)->rank, &a));
        gone[a] = true;
    }
    const rl_tensor *x = rl_gpu_cast(c, rl_call_here(c, 0), t), *mean = temp_kept(c, t, x, gone), *deviation = temp_kept(c, t, x, gone);
    const rl_tensor *centred = rl_call_temp(c, t, x->rank, x->dim);
    RL_TRY(reduce(c, (reduction){reduce_kernel(t), true, RL_GPU_MEAN, NULL}, x, mean, gone));
    RL_TRY(rl_gpu_each(c, RL_PW_SUB, centred, (const rl_tensor *[]){x, mean}, 2, NULL));
    RL_TRY(reduce(c, (reduction){reduce_kernel(t), true, RL_GPU_RMS, NULL}, centred, deviation, gone));
    RL_TRY(rl_gpu_each(c, RL_PW_ADD, deviation, (const rl_tensor *[]){deviation, rl_gpu_number(c, t, 1e-9)}, 2, NULL));
    return quotient(c, made, centred, deviation);
}
