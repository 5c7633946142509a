/* Lines on the device, each a team of threads, or, of few that are long, each part of one: Softmax, LogSoftmax, LayerNormalization and its kin, InstanceNormalization, GroupNormalization. */
#include <string.h>

#include "../runtime/kernels.h"
#include "../runtime/ref_pointwise.h"
#include "backend.h"
#include "libs.h"
#include "posts.h"

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

/* Do lines that are normalized go by parts?  Where there are fewer than multiprocessors have blocks, and each is long. */
static bool goes_by_parts(const rl_p_rows *p) {
    enum { FEW = 256, LONG = 4 * RL_PIECE };
    bool norm = !p->scores.queries.d && p->op >= RL_GPU_LAYER_NORM;
    return norm && p->count < FEW && p->n >= LONG && p->from_step == 1 && p->to_step == 1;
}

/* What each part comes to, then each part's elements. Every block of a line adds up its parts: there are not many, whatever its length. */
static rl_status run_parts(rl_call *c, rl_p_rows *p, const rl_loops *kept, rl_dtype t) {
    enum { MOST = 512 };
    rl_loops whole = *kept;
    uint32_t pieces = (p->n + RL_PIECE - 1) / RL_PIECE;
    p->share = (pieces + MOST - 1) / MOST * RL_PIECE;
    p->parts = rl_divisor_of((p->n + p->share - 1) / p->share);
    whole.dim[whole.rank] = p->n, whole.step[0][whole.rank] = whole.step[1][whole.rank] = 1, whole.rank++;
    p->wide = rl_loops_vector(&whole, rl_elem_bits(t) / 8, (uint64_t)(uintptr_t)p->to | (uintptr_t)p->from) == 16;
    p->moments = rl_data(rl_call_temp(c, RL_F64, 3, (int64_t[]){p->count, p->parts.d, 2}));
    RL_TRY(rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_float(RL_GPU_moments_f32, t), p->count * p->parts.d, p, sizeof *p));
    return rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_float(RL_GPU_parted_f32, t), p->count * p->parts.d, p, sizeof *p);
}

/* Lines of up to `most` elements, `teams` to a block. */
rl_status rl_gpu_run_rows(rl_call *c, rl_p_rows *p, const rl_loops *kept, rl_dtype t) {
    static const struct { rl_gpu_kernel f32; uint32_t most, teams; } kinds[] = {
        {RL_GPU_rows8_f32, 64, 32}, {RL_GPU_rows32_f32, 256, 8}, {RL_GPU_rows256_f32, 2048, 1}, {RL_GPU_rows_f32, UINT32_MAX, 1},
        {RL_GPU_scores8_f32, 64, 32}, {RL_GPU_scores32_f32, 256, 8}, {RL_GPU_scores256_f32, 2048, 1}, {RL_GPU_scores_f32, UINT32_MAX, 1}};
    if (kept->rank > RL_DIMS) return rl_call_decline(c);
    if (!p->each.d) p->each = rl_divisor_of(1);
    p->kept = rl_walk_of(kept, 0);
    if (goes_by_parts(p)) return run_parts(c, p, kept, t);
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
    const rl_tensor *t = i == RL_NONE ? NULL : rl_gpu_widened(c, i, rl_gpu_computed(x->dtype));
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

/* By cuDNN, which has a block for a line, else by own kernels: dims of x as the library wants them, scale and bias in a row. */
static rl_status norm(rl_call *c, rl_p_rows *p, const rl_loops *kept, rl_dtype t, uint32_t op, const int64_t *dim) {
    rl_dnn_norm_job j;
    float epsilon = (float)p->epsilon;
    bool did = false, one = p->scale_rows == 1 || op == RL_DNN_NORM_INSTANCE;
    memset(&j, 0, sizeof j);
    j.op = op, j.type = t, j.biased = p->bias != NULL, j.x.rank = 4;
    for (uint32_t i = 4; i-- > 0;) j.x.dim[i] = dim[i], j.x.stride[i] = i == 3 ? 1 : j.x.stride[i + 1] * dim[i + 1];
    if (one && t != RL_F64 && !goes_by_parts(p) && (!p->bias || p->scale_rows == p->bias_rows)) RL_TRY(rl_dnn_norm(c, &j, p->to, p->from, p->scale, p->bias, &epsilon, &did));
    return did ? RL_OK : rl_gpu_run_rows(c, p, kept, t);
}

/* x, lines from `axis` on; scale, bias: inputs; bias RL_NONE: none. */
static rl_status layer_norm(rl_call *c, const rl_tensor *x, uint32_t axis, uint32_t scale_in, uint32_t bias_in, float epsilon) {
    rl_loops kept;
    bool rms = c->arg == RL_GPU_RMS_NORM;
    const void *scale, *bias = NULL;
    uint32_t nscale, nbias = 1;
    if (rl_call_in(c, scale_in)->dtype != x->dtype || !spread(c, scale_in, x, axis, &scale, &nscale) || !spread(c, bias_in, x, axis, &bias, &nbias))
        return rl_call_decline(c);
    x = rl_here_dense(c, x);
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    rl_p_rows p = rows_of(x, y, axis, true, &kept);
    p.op = (uint32_t)c->arg;
    p.scale = scale, p.bias = bias, p.scale_rows = nscale, p.bias_rows = nbias, p.each = rl_divisor_of(1);
    p.epsilon = epsilon;
    return norm(c, &p, &kept, x->dtype, rms ? RL_DNN_NORM_RMS : RL_DNN_NORM_LAYER, (int64_t[]){p.count, p.n, 1, 1});
}

rl_status rl_gpu_layer_norm(rl_call *c) {
    uint32_t axis;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_attr_axis(c, "axis", -1, &axis));
    const rl_tensor *x = rl_call_here(c, 0);
    if (!takes_rows(x) || rl_call_wants(c, 1) || rl_call_wants(c, 2)) return rl_call_decline(c);
    return layer_norm(c, x, axis, 1, c->arg == RL_GPU_RMS_NORM ? RL_NONE : 2, rl_attr_float(c->node, "epsilon", 1e-5f));
}

/* com.microsoft's Skip[Simplified]LayerNormalization: input + skip + bias, normalized; the sum is output 3. */
rl_status rl_gpu_skip_norm(rl_call *c) {
    bool rms = c->arg == RL_GPU_RMS_NORM;
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *x = rl_call_in(c, 0), *bias = rl_call_in(c, rms ? 3 : 4);
    bool alike = rl_call_in(c, 1)->dtype == x->dtype && (!bias || bias->dtype == x->dtype);
    if (!takes_rows(x) || !alike || x->rank == 0 || rl_call_wants(c, 1) || rl_call_wants(c, 2)) return rl_call_decline(c);
    const rl_tensor *sum = rl_call_wants(c, 3) ? rl_call_make(c, 3, x->dtype, x->rank, x->dim) : rl_call_temp(c, x->dtype, x->rank, x->dim);
    RL_TRY(rl_gpu_each(c, RL_PW_ADD, sum, (const rl_tensor *[]){rl_call_here(c, 0), rl_call_here(c, 1)}, 2, NULL));
    if (bias) RL_TRY(rl_gpu_each(c, RL_PW_ADD, sum, (const rl_tensor *[]){sum, rl_call_here(c, rms ? 3 : 4)}, 2, NULL));
    return layer_norm(c, sum, x->rank - 1, 2, rms ? RL_NONE : 3, rl_attr_float(c->node, "epsilon", 1e-12f));
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
