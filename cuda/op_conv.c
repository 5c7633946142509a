/* Conv and ConvTranspose on the device, with what was joined to them (runtime/fuse.h): by cuDNN in one plan where it has one, else by cuDNN or an
 * own kernel and kernel posts, which does all that follows in one pass over the output.
 *
 * Shorter floats lie channels-last all through, as tensor cores want them: dims [N,C,H,W], strides as if [N,H,W,C] (posts.h). */
#include <string.h>

#include "../runtime/conv.h"
#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "backend.h"
#include "libs.h"
#include "posts.h"

typedef struct {
    rl_call *c;
    rl_window w;
    int64_t group, dim[RL_RANK];
    bool transposed, last; /* channels-last */
    const rl_tensor *x, *k, *bias;
    rl_tensor *y;
    rl_gpu_posts posts;
} conv;

static bool takes_conv(const rl_call *c) {
    const rl_tensor *x = rl_call_in(c, 0), *k = rl_call_in(c, 1), *bias = rl_call_in(c, 2);
    const rl_native *native = c->step->native;
    if (native && (native->in.block || native->out.block)) return false;
    if (!x || !k || x->dtype != k->dtype || (bias && (bias->dtype != x->dtype || bias->rank != 1))) return false;
    return rl_gpu_of_float(RL_GPU_conv_f32, x->dtype) != RL_NGPU && x->rank >= 3 && x->rank <= 2 + RL_MOST_SPATIAL && k->rank == x->rank
           && rl_numel(x) < INT32_MAX && rl_numel(k) < INT32_MAX;
}

static rl_p_conv params_of(const conv *v) {
    const rl_tensor *x = v->x, *k = v->k, *y = v->y;
    rl_p_conv p;
    memset(&p, 0, sizeof p); /* gaps too: dnn.c compares bytes */
    p.y = rl_data(y), p.x = rl_data(x), p.w = rl_data(k), p.bias = v->bias ? rl_data(v->bias) : NULL, p.r = v->w.r, p.transposed = v->transposed;
    for (uint32_t i = 0; i < v->w.r; i++) {
        p.in[i] = (int32_t)(v->transposed ? v->w.out[i] : v->w.in[i]);
        p.out[i] = rl_divisor_of((uint32_t)y->dim[2 + i]);
        p.kernel[i] = (int32_t)v->w.kernel[i], p.stride[i] = (int32_t)v->w.stride[i];
        p.dilation[i] = (int32_t)v->w.dilation[i], p.before[i] = (int32_t)v->w.before[i];
        p.x_step[i] = x->stride[2 + i], p.w_step[i] = k->stride[2 + i], p.y_step[i] = y->stride[2 + i];
    }
    p.x_n = x->stride[0], p.x_c = x->stride[1], p.y_n = y->stride[0], p.y_c = y->stride[1];
    p.w_o = k->stride[v->transposed], p.w_i = k->stride[!v->transposed];
    p.count = (uint32_t)rl_numel(y);
    p.channels = rl_divisor_of((uint32_t)v->dim[1]), p.per_group = rl_divisor_of((uint32_t)(v->dim[1] / v->group));
    p.cin = (uint32_t)(x->dim[1] / v->group), p.cout = (uint32_t)(v->dim[1] / v->group);
    return p;
}

static rl_status by_own_kernel(const conv *v, const rl_p_conv *p) {
    RL_TRY(rl_gpu_launch(rl_gpu_of(v->c->rt), rl_gpu_of_float(RL_GPU_conv_f32, v->x->dtype), rl_gpu_blocks(p->count), p, sizeof *p));
    return rl_gpu_run_posts(v->c, &v->posts, v->y);
}

/* All in one plan; else the convolution with its bias, or alone, then the rest. */
static rl_status by_cudnn(const conv *v, const rl_p_conv *p, bool *did) {
    rl_dnn_conv_job j = {.p = *p, .type = v->x->dtype, .n = (uint32_t)v->x->dim[0], .groups = (uint32_t)v->group, .npost = v->posts.n};
    for (uint32_t i = 0; i < v->posts.n; i++) j.post[i] = v->posts.post[i], j.operand[i] = v->posts.in[i] ? rl_data(v->posts.in[i]) : NULL;
    RL_TRY(rl_dnn_conv(v->c, &j, did));
    rl_gpu_posts rest = v->posts;
    for (uint32_t left = 0; left < 2 && !*did; left++) {
        if (left ? !p->bias : !v->posts.n) continue;
        if (left && !rl_gpu_add_bias(v->c, &rest, v->bias, v->y)) return RL_OK;
        if (left) j.p.bias = NULL;
        j.npost = 0;
        RL_TRY(rl_dnn_conv(v->c, &j, did));
        if (*did) return rl_gpu_run_posts(v->c, &rest, v->y);
    }
    return RL_OK;
}

static rl_status run_conv(conv *v) {
    rl_call *c = v->c;
    bool did = false;
    int64_t perm[RL_RANK];
    const rl_tensor *x = rl_call_in(c, 0);
    const rl_native *native = c->step->native;
    v->last = rl_gpu_wants_channels_last(c, x->dtype) && x->rank > 3;
    if (native) v->last = x->rank > 3 && native->out.perm[x->rank - 1] == 1;
    if (!rl_gpu_posts_of(c, v->dim, x->rank, &v->posts)) return rl_call_decline(c);
    if (!rl_gpu_weights(c, v->transposed, v->group, v->last, &v->k, &v->bias)) return rl_call_decline(c);
    v->x = v->last && !native ? rl_gpu_channels_last(c, rl_call_here(c, 0)) : rl_call_here(c, 0);
    v->y = rl_call_make_in(c, 0, x->dtype, x->rank, v->dim, v->last ? rl_gpu_last_order(x->rank, perm) : NULL);
    if (rl_numel(v->y) == 0) return RL_OK;
    if (v->last) rl_gpu_posts_like(c, &v->posts, v->y);
    rl_p_conv p = params_of(v);
    RL_TRY(by_cudnn(v, &p, &did));
    return did ? RL_OK : by_own_kernel(v, &p);
}

rl_status rl_gpu_conv(rl_call *c) {
    conv v = {.c = c};
    if (!takes_conv(c)) return rl_call_decline(c);
    const rl_tensor *x = rl_call_in(c, 0), *k = rl_call_in(c, 1);
    RL_TRY(rl_conv_group(c, x, k, &v.group));
    RL_TRY(rl_window_read(c, x, k->dim + 2, &v.w));
    memcpy(v.dim, x->dim, sizeof v.dim);
    v.dim[1] = k->dim[0];
    memcpy(v.dim + 2, v.w.out, v.w.r * sizeof *v.dim);
    RL_TRY(rl_call_dims(c, x->rank, v.dim));
    if (rl_window_count(v.dim, x->rank) >= INT32_MAX || rl_window_count(v.w.kernel, v.w.r) == 0 || v.group < 1) return rl_call_decline(c);
    if (rl_call_in(c, 2) && rl_call_in(c, 2)->dim[0] != v.dim[1]) return rl_call_decline(c);
    return run_conv(&v);
}

rl_status rl_gpu_conv_transpose(rl_call *c) {
    conv v = {.c = c, .transposed = true, .group = rl_attr_int(c->node, "group", 1)};
    if (!takes_conv(c)) return rl_call_decline(c);
    const rl_tensor *x = rl_call_in(c, 0), *k = rl_call_in(c, 1);
    if (v.group < 1 || x->dim[1] != k->dim[0] || k->dim[0] % v.group) return rl_call_decline(c);
    RL_TRY(rl_conv_transpose_window(c, x, k->dim + 2, &v.w));
    memcpy(v.dim, x->dim, sizeof v.dim);
    v.dim[1] = k->dim[1] * v.group;
    memcpy(v.dim + 2, v.w.in, v.w.r * sizeof *v.dim);
    RL_TRY(rl_call_dims(c, x->rank, v.dim));
    if (rl_window_count(v.dim, x->rank) >= INT32_MAX || rl_window_count(v.w.kernel, v.w.r) == 0) return rl_call_decline(c);
    if (rl_call_in(c, 2) && rl_call_in(c, 2)->dim[0] != v.dim[1]) return rl_call_decline(c);
    return run_conv(&v);
}
