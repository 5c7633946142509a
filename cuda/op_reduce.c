/* Sums over axes on the device: Reduce*, GlobalAveragePool and GlobalMaxPool, Softmax, LayerNormalization. */
#include <string.h>

#include "../runtime/kernels.h"
#include "backend.h"
#include "libs.h"
#include "posts.h"

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

/* y, row-major, has x's dims with 1 for those reduced. splits: what kernel k carries are sums, which can be added up in parts. */
static rl_status reduce(rl_call *c, rl_gpu_kernel k, bool splits, uint32_t op, const rl_tensor *x, const rl_tensor *y, const bool *gone) {
    rl_loops kept = {.noperand = 2}, inner = {.noperand = 1};
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
    rl_p_reduce p = {.to = rl_data(y), .from = rl_data(x), .count = (uint32_t)rl_loops_count(&kept), .each = (uint32_t)rl_loops_count(&inner),
                     .op = op, .kept = rl_walk_of(&kept, 0), .gone = rl_walk_of(&inner, 0)};
    p.n = p.each, p.across = kept.rank && kept.step[1][kept.rank - 1] == 1;
    uint32_t parts = share_out(&p, splits);
    if (parts == 1) return rl_gpu_launch(rl_gpu_of(c->rt), k, p.blocks.d, &p, sizeof p);
    const rl_tensor *sums = rl_call_temp(c, x->dtype == RL_I32 || x->dtype == RL_I64 ? RL_I64 : RL_F64, 2, (int64_t[]){parts, p.count});
    p.to = rl_data(sums), p.partial = 1;
    RL_TRY(rl_gpu_launch(rl_gpu_of(c->rt), k, p.blocks.d * parts, &p, sizeof p));
    return add_up(c, k, &p, &kept, sums, y);
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
    return reduce(c, k, !powers, (uint32_t)c->arg, x, &y, gone);
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
    return reduce(c, arg_kernel(x->dtype), false, (uint32_t)c->arg | last, x, &y, gone);
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
    return reduce(c, reduce_kernel(x->dtype), true, (uint32_t)c->arg, x, rl_call_make(c, 0, x->dtype, x->rank, dim), gone);
}

/* ---- lines ---- */

/* Loops over the lines of x and y along `axis`, or, from `axis` on, of what lies there in one piece. */
static rl_p_rows rows_of(const rl_tensor *x, const rl_tensor *y, uint32_t axis, bool from_axis, rl_loops *kept) {
    *kept = (rl_loops){.noperand = 2};
    int64_t n = 1;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i == axis || (from_axis && i > axis)) {
            n *= x->dim[i];
            continue;
        }
        kept->dim[kept->rank] = x->dim[i];
        kept->step[0][kept->rank] = y->stride[i];
        kept->step[1][kept->rank++] = x->stride[i];
    }
    rl_loops_merge(kept);
    rl_p_rows p = {.to = rl_data(y), .from = rl_data(x), .count = (uint32_t)rl_loops_count(kept), .n = (uint32_t)n};
    p.to_step = from_axis ? 1 : y->stride[axis], p.from_step = from_axis ? 1 : x->stride[axis];
    return p;
}

/* Lines of up to `most` elements, `teams` to a block. */
rl_status rl_gpu_run_rows(rl_call *c, rl_p_rows *p, const rl_loops *kept, rl_dtype t) {
    static const struct { rl_gpu_kernel f32; uint32_t most, teams; } kinds[] = {
        {RL_GPU_rows8_f32, 64, 32}, {RL_GPU_rows32_f32, 256, 8}, {RL_GPU_rows256_f32, 2048, 1}, {RL_GPU_rows_f32, UINT32_MAX, 1},
        {RL_GPU_scores8_f32, 64, 32}, {RL_GPU_scores32_f32, 256, 8}, {RL_GPU_scores256_f32, 2048, 1}, {RL_GPU_scores_f32, UINT32_MAX, 1}};
    if (kept->rank > RL_DIMS) return rl_call_decline(c);
    if (!p->each.d) p->each = rl_divisor_of(1);
    p->kept = rl_walk_of(kept, 0);
    uint32_t i = p->scores.queries.d ? 4 : 0;
    while (p->n > kinds[i].most) i++;
    p->across = kept->rank && kept->step[1][kept->rank - 1] == 1 && p->from_step != 1 && kinds[i].teams > 1;
    uint32_t blocks = (p->count + kinds[i].teams - 1) / kinds[i].teams;
    return rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_float(kinds[i].f32, t), blocks, p, sizeof *p);
}

static bool takes_rows(const rl_tensor *x) {
    return rl_gpu_of_float(RL_GPU_rows_f32, x->dtype) != RL_NGPU && rl_numel(x) > 0 && rl_numel(x) < INT32_MAX;
}

rl_status rl_gpu_softmax(rl_call *c) {
    uint32_t axis;
    rl_loops kept;
    bool old = c->node->since < 13;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_here(c, 0);
    if (!takes_rows(x) || (old && rl_attr_int(c->node, "axis", 1) == x->rank)) return rl_call_decline(c);
    RL_TRY(rl_call_attr_axis(c, "axis", old ? 1 : -1, &axis));
    if (old) x = rl_here_dense(c, x);
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    rl_p_rows p = rows_of(x, y, axis, old, &kept);
    p.op = (uint32_t)c->arg;
    return rl_gpu_run_rows(c, &p, &kept, x->dtype);
}

/* One row for all lines, or a row per line; anything between: not here. */
static bool spread(rl_call *c, uint32_t i, const rl_tensor *x, uint32_t axis, const void **p, uint32_t *rows) {
    const rl_tensor *t = rl_gpu_widened(c, i, rl_gpu_computed(x->dtype));
    rl_tensor view;
    *p = NULL;
    *rows = 1;
    if (!t) return true;
    if (!rl_view_expand(t, x->rank, x->dim, &view)) return false;
    bool repeats = true, lines = true;
    for (uint32_t k = 0; k < axis; k++) {
        if (view.dim[k] != 1 && view.stride[k] != 0) repeats = false;
        if (view.dim[k] != 1 && view.stride[k] == 0) lines = false;
    }
    if (!repeats && !lines) return false;
    for (uint32_t k = 0; k < axis; k++)
        if (repeats) view.dim[k] = 1;
        else *rows *= (uint32_t)view.dim[k];
    *p = rl_data(rl_gpu_cast(c, &view, rl_gpu_computed(x->dtype)));
    return true;
}

/* By cuDNN, else by kernel rows: dims of x as the library wants them, scale and bias in a row. */
static rl_status norm(rl_call *c, rl_p_rows *p, const rl_loops *kept, rl_dtype t, uint32_t op, const int64_t *dim) {
    rl_dnn_norm_job j;
    float epsilon = (float)p->epsilon;
    bool did = false, one = p->scale_rows == 1 || op == RL_DNN_NORM_INSTANCE;
    memset(&j, 0, sizeof j);
    j.op = op, j.type = t, j.biased = p->bias != NULL, j.x.rank = 4;
    for (uint32_t i = 4; i-- > 0;) j.x.dim[i] = dim[i], j.x.stride[i] = i == 3 ? 1 : j.x.stride[i + 1] * dim[i + 1];
    if (one && t != RL_F64 && (!p->bias || p->scale_rows == p->bias_rows)) RL_TRY(rl_dnn_norm(c, &j, p->to, p->from, p->scale, p->bias, &epsilon, &did));
    return did ? RL_OK : rl_gpu_run_rows(c, p, kept, t);
}

rl_status rl_gpu_layer_norm(rl_call *c) {
    uint32_t axis;
    rl_loops kept;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_attr_axis(c, "axis", -1, &axis));
    const rl_tensor *x = rl_call_here(c, 0);
    bool rms = c->arg == RL_GPU_RMS_NORM;
    if (!takes_rows(x) || rl_call_wants(c, 1) || rl_call_wants(c, 2) || rl_call_in(c, 1)->dtype != x->dtype) return rl_call_decline(c);
    const void *scale, *bias = NULL;
    uint32_t nscale, nbias = 1;
    if (!spread(c, 1, x, axis, &scale, &nscale) || (!rms && !spread(c, 2, x, axis, &bias, &nbias))) return rl_call_decline(c);
    x = rl_here_dense(c, x);
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    rl_p_rows p = rows_of(x, y, axis, true, &kept);
    p.op = (uint32_t)c->arg;
    p.scale = scale, p.bias = bias, p.scale_rows = nscale, p.bias_rows = nbias, p.each = rl_divisor_of(1);
    p.epsilon = rl_attr_float(c->node, "epsilon", 1e-5f);
    return norm(c, &p, &kept, x->dtype, rms ? RL_DNN_NORM_RMS : RL_DNN_NORM_LAYER, (int64_t[]){p.count, p.n, 1, 1});
}

/* InstanceNormalization (arg 0: each channel by itself) and GroupNormalization: lines of whole channels, one scale for each channel, or
 * for each group. */
rl_status rl_gpu_group_norm(rl_call *c) {
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *x = rl_call_here(c, 0), *scale = rl_call_in(c, 1), *bias = rl_call_in(c, 2);
    if (!takes_rows(x) || x->rank < 2 || scale->rank != 1 || bias->rank != 1 || bias->dim[0] != scale->dim[0]) return rl_call_decline(c);
    int64_t ch = x->dim[1], ngroup = c->arg ? rl_attr_int(c->node, "num_groups", 0) : ch, n = rl_numel(x) / (x->dim[0] * ch);
    int64_t nscale = c->arg && c->node->since < 21 ? ngroup : ch;
    if (ngroup < 1 || ch % ngroup || scale->dim[0] != nscale) return rl_call_decline(c);
    x = rl_here_dense(c, x);
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    rl_p_rows p = {.to = rl_data(y), .from = rl_data(x), .count = (uint32_t)(x->dim[0] * ngroup), .n = (uint32_t)(n * ch / ngroup)};
    p.op = RL_GPU_LAYER_NORM, p.to_step = p.from_step = 1;
    p.scale = rl_data(rl_gpu_widened(c, 1, rl_gpu_computed(x->dtype))), p.bias = rl_data(rl_gpu_widened(c, 2, rl_gpu_computed(x->dtype)));
    p.scale_rows = p.bias_rows = (uint32_t)ngroup, p.each = rl_divisor_of(p.n / (uint32_t)(nscale / ngroup));
    p.epsilon = rl_attr_float(c->node, "epsilon", 1e-5f);
    rl_loops kept = {.rank = 1, .noperand = 2, .dim = {p.count}, .step = {{p.n}, {p.n}}};
    if (c->arg || n > INT32_MAX) return rl_gpu_run_rows(c, &p, &kept, x->dtype);
    return norm(c, &p, &kept, x->dtype, RL_DNN_NORM_INSTANCE, (int64_t[]){x->dim[0], ch, n, 1});
}
