/* Conv and ConvTranspose on the device, with what was joined to them (runtime/fuse.h): by cuDNN in one plan where it has one, else by cuDNN or an
 * own kernel and kernel posts, which does all that follows in one pass over the output.  Of each channel by itself, channels-last, by kernel depthwise;
 * as products of matrices where cuDNN is slower.
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

/* All in one plan, which wants operands that lie as y does; else the convolution with its bias, or alone, then the rest. */
static rl_status by_cudnn(const conv *v, const rl_p_conv *p, bool *did) {
    rl_dnn_conv_job j = {.p = *p, .type = v->x->dtype, .n = (uint32_t)v->x->dim[0], .groups = (uint32_t)v->group, .npost = v->posts.n};
    for (uint32_t i = 0; i < v->posts.n; i++) j.post[i] = v->posts.post[i], j.operand[i] = v->posts.in[i] ? rl_data(v->posts.in[i]) : NULL;
    if (rl_gpu_posts_lie_like(&v->posts, v->y)) RL_TRY(rl_dnn_conv(v->c, &j, did));
    rl_gpu_posts rest = v->posts;
    j.followed = true;
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

/* ---- each channel by itself ---- */

static rl_gpu_kernel depthwise_kernel(rl_dtype t) {
    return rl_gpu_of_short(RL_GPU_depthwise_f32, t);
}

static bool is_aligned(const rl_tensor *t) {
    return !t || (uintptr_t)rl_data(t) % (RL_DEPTHWISE_CHANNELS * rl_bytes_of(t->dtype, 1)) == 0;
}

/* Channels that lie together, by whole fours, counted in 32 bits. */
static bool takes_output(const rl_tensor *y) {
    int64_t last = 0;
    for (uint32_t i = 0; i < y->rank; i++) {
        if (i != 1 && y->dim[i] != 1 && y->stride[i] % RL_DEPTHWISE_CHANNELS) return false;
        last += (y->dim[i] - 1) * y->stride[i];
    }
    return y->stride[1] == 1 && last < INT32_MAX && is_aligned(y);
}

/* Will kernel depthwise take it? What it counts, it counts in 32 bits, also beyond the ends of a row. */
static bool takes_depthwise(const conv *v) {
    const rl_tensor *x = v->x, *k = rl_call_in(v->c, 1);
    if (!v->last || v->transposed || x->rank != 4 || v->group != x->dim[1] || v->group != k->dim[0] || depthwise_kernel(x->dtype) == RL_NGPU) return false;
    if (x->dim[1] % RL_DEPTHWISE_CHANNELS || !rl_is_channels_last(x) || !is_aligned(x) || !takes_output(v->y)) return false;
    int64_t beyond = 1;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t far = v->w.kernel[i] * v->w.dilation[i] + (v->w.out[i] + RL_DEPTHWISE_PLACES) * v->w.stride[i] + v->w.before[i];
        if (far >= INT32_MAX / 4) return false;
        beyond *= i ? far + x->dim[3] : x->dim[2] * x->dim[0] + far;
    }
    for (uint32_t i = 0; i < v->posts.n; i++)
        if (!is_aligned(v->posts.in[i])) return false;
    return rl_gpu_posts_lie_like(&v->posts, v->y) && beyond < INT32_MAX / x->dim[1] && rl_numel(k) < INT32_MAX / 4;
}

/* Threads by blocks that share what they read in a cache near by: up to 8 rows of up to 16 times 4 channels. */
static rl_walk depthwise_walk(const conv *v, uint32_t *count) {
    enum { ROWS = 8, ACROSS = 16 };
    const int64_t *dim = v->y->dim;
    int64_t bunches = dim[1] / RL_DEPTHWISE_CHANNELS, chunks = (bunches + ACROSS - 1) / ACROSS, strips = (dim[2] + ROWS - 1) / ROWS;
    int64_t across = (bunches + chunks - 1) / chunks, rows = (dim[2] + strips - 1) / strips, columns = (dim[3] + RL_DEPTHWISE_PLACES - 1) / RL_DEPTHWISE_PLACES;
    rl_loops l = {.rank = 6, .noperand = 4, .dim = {dim[0], strips, chunks, columns, rows, across},
                  .step = {{0, 0, across, 0, 0, 1}, {0, 0, 0, RL_DEPTHWISE_PLACES}, {0, rows, 0, 0, 1}, {1}}};
    *count = (uint32_t)rl_loops_count(&l);
    return rl_walk_of(&l, 0);
}

/* How many threads are to have a window's rows between them: 1 where the device has enough to do anyway. */
static uint32_t depthwise_shared(const conv *v, uint32_t count) {
    uint32_t n = 1, few = rl_gpu_is_emulated(rl_gpu_of(v->c->rt)) ? 1 << 10 : 1 << 15; /* threads: a block of each multiprocessor */
    while (n < RL_DEPTHWISE_SHARED && (int64_t)n < v->w.kernel[0] && n * count < few) n *= 2;
    return n;
}

static rl_status by_depthwise(const conv *v) {
    rl_p_depthwise p = {.y = rl_data(v->y), .x = rl_data(v->x), .w = rl_data(v->k), .bias = v->bias ? rl_data(v->bias) : NULL, .npost = v->posts.n,
                        .channels = (uint32_t)v->dim[1]};
    for (uint32_t i = 0; i < 2; i++) {
        p.in[i] = (int32_t)v->w.in[i], p.out[i] = (uint32_t)v->w.out[i], p.kernel[i] = (int32_t)v->w.kernel[i], p.stride[i] = (int32_t)v->w.stride[i];
        p.dilation[i] = (int32_t)v->w.dilation[i], p.before[i] = (int32_t)v->w.before[i], p.y_step[i] = (uint32_t)v->y->stride[2 + i];
    }
    p.y_n = (uint32_t)v->y->stride[0];
    for (uint32_t i = 0; i < v->posts.n; i++) {
        p.post[i] = v->posts.post[i];
        if (v->posts.in[i]) p.operand[p.post[i].operand] = rl_data(v->posts.in[i]);
    }
    p.jump = p.dilation[1] == 1 ? p.stride[1] : p.kernel[1], p.phases = RL_MIN(p.jump, p.kernel[1]);
    p.x_step = p.stride[1] * (int32_t)p.channels, p.w_step = RL_MIN(p.jump, p.kernel[1]) * (int32_t)p.channels;
    p.walk = depthwise_walk(v, &p.count);
    p.shared = depthwise_shared(v, p.count);
    rl_gpu_kernel kernel = p.shared == 1 ? depthwise_kernel(v->x->dtype) : rl_gpu_of_short(RL_GPU_depthwise_rows_f32, v->x->dtype);
    return rl_gpu_launch(rl_gpu_of(v->c->rt), kernel, rl_gpu_thread_blocks((int64_t)p.count * p.shared), &p, sizeof p);
}

/* ---- patches ---- */

enum { FEW_CHANNELS = 4 };

/* Windows side by side of a few channels, as a vision transformer cuts an image: tensor cores would have most of their lanes empty. And one window that has
 * all of the image, most often of 1 x 1, for which cuDNN takes up to 275 us in float32 (2,048 channels, an H200). */
static bool takes_patches(const conv *v) {
    const rl_tensor *x = rl_call_in(v->c, 0);
    int64_t taps = rl_product(v->w.kernel, v->w.r);
    bool few = x->dim[1] <= FEW_CHANNELS && taps > 1, whole = taps == rl_product(v->w.in, v->w.r);
    if (v->transposed || v->group != 1 || v->c->step->native || !(few || whole)) return false;
    if (whole && rl_product(v->w.out, v->w.r) != 1) return false;
    for (uint32_t i = 0; i < v->w.r; i++)
        if ((v->w.kernel[i] != v->w.stride[i] && !whole) || (v->w.dilation[i] != 1 && v->w.kernel[i] != 1) || v->w.before[i]
            || (v->w.out[i] - 1) * v->w.stride[i] + v->w.kernel[i] > v->w.in[i])
            return false;
    return v->dim[0] * rl_product(v->w.out, v->w.r) * x->dim[1] * rl_product(v->w.kernel, v->w.r) < INT32_MAX;
}

/* x by patches: [N, places..., C, window...], which is [N * places, C * window]. */
static const rl_tensor *patches_of(const conv *v, const rl_tensor *x) {
    uint32_t r = v->w.r;
    rl_tensor *view = rl_copy(v->c->tmp, x, sizeof *x);
    view->rank = 2 + 2 * r;
    view->dim[1 + r] = x->dim[1], view->stride[1 + r] = x->stride[1];
    for (uint32_t i = 0; i < r; i++) {
        view->dim[1 + i] = v->w.out[i], view->stride[1 + i] = v->w.stride[i] * x->stride[2 + i];
        view->dim[2 + r + i] = v->w.kernel[i], view->stride[2 + r + i] = x->stride[2 + i];
    }
    return rl_here_dense(v->c, view);
}

/* One move, where patches do not lie so already, and one product, whose rows are what lies channels-last. */
static rl_status by_patches(conv *v) {
    rl_call *c = v->c;
    int64_t perm[RL_RANK], taps = rl_product(v->w.kernel, v->w.r);
    if (!rl_gpu_posts_of(c, v->dim, rl_call_in(c, 0)->rank, &v->posts)) return rl_call_decline(c);
    const rl_tensor *x = patches_of(v, rl_call_here(c, 0));
    v->y = rl_call_make_in(c, 0, x->dtype, 2 + v->w.r, v->dim, rl_gpu_last_order(2 + v->w.r, perm));
    if (rl_numel(v->y) == 0) return RL_OK;
    rl_gpu_posts_like(c, &v->posts, v->y);
    if (!rl_gpu_weights(c, false, 1, RL_GPU_ROW_MAJOR, &v->k, &v->bias)) return rl_call_decline(c);
    const rl_tensor *k = rl_here_dense(c, v->k);
    rl_tensor a = *x, b = *k;
    a.rank = 2, a.dim[0] = rl_numel(x) / (k->dim[1] * taps), a.dim[1] = k->dim[1] * taps, a.stride[0] = a.dim[1], a.stride[1] = 1;
    b.rank = 2, b.dim[0] = a.dim[1], b.dim[1] = k->dim[0], b.stride[0] = 1, b.stride[1] = a.dim[1];
    return rl_gpu_rows_by_columns(c, &a, &b, v->bias, &v->posts, v->y);
}

/* ---- one tap ---- */

enum { MANY_CHANNELS = 128 };

/* cuDNN's kernels with all of float32's bits add up channel after channel, 37 ns each (an H200), and have nothing else to do where places are few. */
static bool takes_products(const conv *v) {
    const rl_tensor *x = rl_call_in(v->c, 0);
    if (x->dtype != RL_F32 || rl_gpu_wants_channels_last(v->c, RL_F32) || v->transposed || v->group != 1 || v->c->step->native) return false;
    for (uint32_t i = 0; i < v->w.r; i++)
        if (v->w.kernel[i] != 1 || v->w.stride[i] != 1 || v->w.out[i] != v->w.in[i] || v->w.before[i]) return false;
    return x->dim[1] >= MANY_CHANNELS;
}

/* [cout, cin] by [cin, places], image by image. */
static rl_status by_products(conv *v) {
    rl_call *c = v->c;
    const rl_tensor *x = rl_call_here(c, 0);
    int64_t places = rl_product(v->w.out, v->w.r), in[] = {x->dim[0], x->dim[1], places}, out[] = {x->dim[0], v->dim[1], places};
    rl_tensor a, b, to;
    if (!rl_gpu_posts_of(c, v->dim, x->rank, &v->posts)) return rl_call_decline(c);
    v->y = rl_call_make(c, 0, x->dtype, x->rank, v->dim);
    if (rl_numel(v->y) == 0) return RL_OK;
    if (!rl_gpu_weights(c, false, 1, RL_GPU_ROW_MAJOR, &v->k, &v->bias) || (v->bias && !rl_gpu_add_bias(c, &v->posts, v->bias, v->y))) return rl_call_decline(c);
    if (!rl_view_reshape(x, 3, in, &b)) rl_view_reshape(rl_gpu_row_major(c, x), 3, in, &b);
    rl_view_reshape(rl_here_dense(c, v->k), 2, (int64_t[]){v->dim[1], x->dim[1]}, &a);
    rl_view_reshape(v->y, 3, out, &to);
    RL_TRY(rl_gpu_product(c, &a, &b, &to, 1));
    return rl_gpu_run_posts(c, &v->posts, v->y);
}

/* Windows of several rows and one column, of each channel by itself in float32: cuDNN does channel after channel, 545 us for 96 of them (an H200). */
static bool is_slow_by_cudnn(const conv *v) {
    return v->x->dtype == RL_F32 && v->w.r == 2 && !v->transposed && v->group > 1 && v->group == v->x->dim[1] && v->w.kernel[0] > 1 && v->w.kernel[1] == 1
           && !rl_gpu_wants_channels_last(v->c, RL_F32);
}

/* ---- others ---- */

/* Of several groups x and y lie in one order: each channel by itself is kernel depthwise's where x lies channels-last anyway; else x is laid out. */
static const rl_tensor *grouped_input(conv *v, const rl_tensor *x) {
    if (v->last || v->group == 1 || !rl_is_channels_last(x)) return x;
    v->last = !v->transposed && x->rank == 4 && v->group == x->dim[1] && v->group == v->dim[1] && x->dim[1] % RL_DEPTHWISE_CHANNELS == 0
              && depthwise_kernel(x->dtype) != RL_NGPU;
    return v->last ? x : rl_gpu_row_major(v->c, x);
}

static rl_status run_conv(conv *v) {
    rl_call *c = v->c;
    if (takes_patches(v)) return by_patches(v);
    if (takes_products(v)) return by_products(v);
    bool did = false;
    int64_t perm[RL_RANK];
    const rl_tensor *x = rl_call_in(c, 0);
    const rl_native *native = c->step->native;
    v->last = rl_gpu_wants_channels_last(c, x->dtype) && x->rank > 3;
    if (native) v->last = x->rank > 3 && native->out.perm[x->rank - 1] == 1;
    if (!rl_gpu_posts_of(c, v->dim, x->rank, &v->posts)) return rl_call_decline(c);
    v->x = v->last && !native ? rl_gpu_channels_last(c, rl_call_here(c, 0)) : rl_call_here(c, 0);
    if (!native) v->x = grouped_input(v, v->x);
    if (!native) v->x = rl_gpu_aligned(c, v->x, v->last ? RL_GPU_LAST : RL_GPU_ROW_MAJOR);
    v->y = rl_call_make_in(c, 0, x->dtype, x->rank, v->dim, v->last ? rl_gpu_last_order(x->rank, perm) : NULL);
    if (rl_numel(v->y) == 0) return RL_OK;
    if (v->last) rl_gpu_posts_like(c, &v->posts, v->y);
    bool depthwise = takes_depthwise(v);
    if (!rl_gpu_weights(c, v->transposed, v->group, depthwise ? RL_GPU_BY_TAP : v->last ? RL_GPU_LAST : RL_GPU_ROW_MAJOR, &v->k, &v->bias))
        return rl_call_decline(c);
    if (depthwise && is_aligned(v->k) && is_aligned(v->bias)) return by_depthwise(v);
    rl_p_conv p = params_of(v);
    if (native || !is_slow_by_cudnn(v)) RL_TRY(by_cudnn(v, &p, &did));
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
    if (rl_product(v.dim, x->rank) >= INT32_MAX || rl_product(v.w.kernel, v.w.r) == 0 || v.group < 1) return rl_call_decline(c);
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
    if (rl_product(v.dim, x->rank) >= INT32_MAX || rl_product(v.w.kernel, v.w.r) == 0) return rl_call_decline(c);
    if (rl_call_in(c, 2) && rl_call_in(c, 2)->dim[0] != v.dim[1]) return rl_call_decline(c);
    return run_conv(&v);
}
