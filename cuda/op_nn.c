/* Pools, BatchNormalization, LRN, Resize on the device. */
#include <math.h>
#include <string.h>

#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "../runtime/resize.h"
#include "../runtime/window.h"
#include "backend.h"
#include "libs.h"
#include "posts.h"

static bool is_gpu_float(rl_dtype t) {
    return t == RL_F32 || t == RL_F64 || t == RL_F16 || t == RL_BF16;
}

static bool fits(const rl_tensor *t) {
    return rl_numel(t) < INT32_MAX;
}

/* ---- pools ---- */

static rl_dnn_view view_of(const rl_tensor *t) {
    rl_dnn_view v;
    memset(&v, 0, sizeof v);
    v.rank = t->rank;
    memcpy(v.dim, t->dim, t->rank * sizeof *v.dim);
    memcpy(v.stride, t->stride, t->rank * sizeof *v.stride);
    return v;
}

/* cuDNN's windows end where the padding does that it is told of: with the last window here, which must not lie further than the model's. Means that count
 * padding are asked for only where there is as much on both sides: of three dims cuDNN 9.19 leaves out of the number what is there on one side alone. Means
 * of bfloat16 are not asked for: what it makes of 11 channels that lie together, with padding, is not finite (an H200). */
static rl_status pool_by_cudnn(rl_call *c, const rl_window *w, const rl_tensor *x, const rl_tensor *y, const rl_p_pool *p, bool *did) {
    rl_dnn_pool_job j;
    memset(&j, 0, sizeof j);
    j.op = p->op == RL_GPU_POOL_MAX ? RL_DNN_POOL_MAX : p->count_pad ? RL_DNN_POOL_MEAN_OF_ALL : RL_DNN_POOL_MEAN;
    j.type = x->dtype;
    *did = false;
    if (x->rank < 4 || x->dtype == RL_F64 || !is_gpu_float(x->dtype) || (x->dtype == RL_BF16 && j.op != RL_DNN_POOL_MAX)) return RL_OK;
    j.x = view_of(x), j.y = view_of(y);
    for (uint32_t i = 0; i < w->r; i++) {
        int64_t after = (w->out[i] - 1) * w->stride[i] + w->kernel[i] - w->in[i] - w->before[i];
        if (w->dilation[i] != 1 || after > w->after[i] || after >= w->kernel[i]) return RL_OK;
        if (j.op == RL_DNN_POOL_MEAN_OF_ALL && after != w->before[i]) return RL_OK;
        j.window[i] = w->kernel[i], j.step[i] = w->stride[i], j.before[i] = w->before[i], j.after[i] = RL_MAX(after, 0);
    }
    return rl_dnn_pool(c, &j, rl_data(y), rl_data(x), did);
}

/* Of bytes: maxima only, as the table says. */
static rl_gpu_kernel pool_kernel(rl_dtype t) {
    return t == RL_I8 ? RL_GPU_pool_i8 : t == RL_U8 ? RL_GPU_pool_u8 : rl_gpu_of_float(RL_GPU_pool_f32, t);
}

/* Channels by 16 bytes, where these lie closest on both sides. cuDNN takes 103 us for ResNet-50's maxima (f16[32,64,112,112], an H200), in which memory would
 * bring them five times. */
static bool widen_pool(rl_p_pool *p, const rl_tensor *x, const rl_tensor *y) {
    int64_t wide = 128 / (int64_t)rl_elem_bits(x->dtype), bad = x->dim[1] % wide;
    if (x->dtype == RL_F64 || !is_gpu_float(x->dtype) || x->stride[1] != 1 || y->stride[1] != 1 || ((uintptr_t)p->to | (uintptr_t)p->from) % 16) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != 1) bad |= x->stride[i] % wide | y->stride[i] % wide;
    if (bad) return false;
    p->wide = 1;
    p->count /= (uint32_t)wide, p->channels = rl_divisor_of((uint32_t)(x->dim[1] / wide)), p->to_c = p->from_c = wide;
    return true;
}

rl_status rl_gpu_op_pool(rl_call *c) {
    int64_t dim[RL_RANK];
    rl_window w;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    rl_gpu_kernel kernel = pool_kernel(x->dtype);
    if (kernel == RL_NGPU || x->rank < 3 || x->rank > 2 + RL_MOST_SPATIAL || !fits(x) || rl_call_wants(c, 1)) return rl_call_decline(c);
    RL_TRY(rl_window_read(c, x, NULL, &w));
    memcpy(dim, x->dim, sizeof dim);
    memcpy(dim + 2, w.out, w.r * sizeof *dim);
    RL_TRY(rl_call_dims(c, x->rank, dim));
    if (rl_product(dim, x->rank) >= INT32_MAX || rl_product(w.kernel, w.r) == 0) return rl_call_decline(c);
    x = rl_call_here(c, 0);
    bool last = rl_is_channels_last(x);
    int64_t perm[RL_RANK];
    rl_tensor *y = rl_call_make_in(c, 0, x->dtype, x->rank, dim, last ? rl_gpu_last_order(x->rank, perm) : NULL);
    if (rl_numel(y) == 0) return RL_OK;
    rl_loops outer = {.rank = last ? 1 : 2, .noperand = 2, .dim = {dim[0], dim[1]}, .step = {{y->stride[0], y->stride[1]}, {x->stride[0], x->stride[1]}}};
    rl_p_pool p = {.to = rl_data(y), .from = rl_data(x), .count = (uint32_t)rl_numel(y), .op = (uint32_t)c->arg, .r = w.r,
                   .taps = (uint32_t)rl_product(w.kernel, w.r), .channels = rl_divisor_of(last ? (uint32_t)dim[1] : 1), .to_c = y->stride[1],
                   .from_c = x->stride[1], .outer = rl_walk_of(&outer, 0)};
    p.count_pad = rl_attr_int(c->node, "count_include_pad", 0) != 0;
    for (uint32_t i = 0; i < w.r; i++) {
        p.step[i] = x->stride[2 + i], p.to_step[i] = y->stride[2 + i];
        p.in[i] = (int32_t)w.in[i], p.window[i] = rl_divisor_of((uint32_t)w.kernel[i]), p.stride[i] = (int32_t)w.stride[i];
        p.dilation[i] = (int32_t)w.dilation[i], p.before[i] = (int32_t)w.before[i], p.after[i] = (int32_t)w.after[i];
        p.out[i] = rl_divisor_of((uint32_t)w.out[i]);
    }
    bool did = false;
    if (last && widen_pool(&p, x, y)) return rl_gpu_launch(rl_gpu_of(c->rt), kernel, rl_gpu_thread_blocks(p.count), &p, sizeof p);
    RL_TRY(pool_by_cudnn(c, &w, x, y, &p, &did));
    return did ? RL_OK : rl_gpu_launch(rl_gpu_of(c->rt), kernel, rl_gpu_blocks(p.count), &p, sizeof p);
}

/* ---- BatchNormalization ---- */

/* What x is multiplied by, and what is added, of constants: made on the host once, in the graph's memory, in the type that is computed in. */
typedef struct { void *by, *more; } scales;

static const scales *make_scales(rl_call *c, rl_dtype type, int64_t n, double epsilon) {
    rl_arena *mem = &c->frame->x->g->mem;
    scales *s = rl_new(mem, scales, 1);
    rl_tensor wide[4];
    const double *p[4];
    s->by = rl_alloc(mem, rl_bytes_of(type, n)), s->more = rl_alloc(mem, rl_bytes_of(type, n));
    for (uint32_t i = 0; i < 4; i++) {
        wide[i] = rl_tensor_new(c->rt, RL_F64, 1, &n);
        rl_convert(c->rt, &wide[i], rl_call_in(c, 1 + i), true);
        p[i] = rl_data(&wide[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        double by = p[0][i] / sqrt(p[3][i] + epsilon), more = p[1][i] - p[2][i] * by;
        if (type == RL_F64) ((double *)s->by)[i] = by, ((double *)s->more)[i] = more;
        else ((float *)s->by)[i] = (float)by, ((float *)s->more)[i] = (float)more;
    }
    for (uint32_t i = 0; i < 4; i++) rl_tensor_drop(&wide[i]);
    return s;
}

static const scales *scales_of(rl_call *c, rl_dtype type, int64_t n, double epsilon) {
    const rl_backend *was = c->rt->on;
    c->rt->on = &rl_backend_cpu;
    if (!c->step->made) c->step->made = make_scales(c, type, n, epsilon);
    c->rt->on = was;
    return c->step->made;
}

/* Over the elements, in y's order of memory: of y, of x, and the number of the channel. */
static rl_loops channel_loops(const rl_tensor *y, const rl_tensor *x) {
    rl_tensor channel = *x;
    for (uint32_t i = 0; i < x->rank; i++) channel.stride[i] = i == 1;
    rl_loops l = rl_loops_of(x->rank, x->dim, (const rl_tensor *[]){y, x, &channel}, 3);
    rl_loops_sort(&l);
    rl_loops_merge(&l);
    return l;
}

/* As kernel affine has it: scale, bias, mean and variance are each numbers on the device. */
static rl_status affine(rl_call *c, const rl_tensor *x, const void *const *param, double epsilon, const rl_gpu_posts *posts) {
    rl_tensor *y = rl_gpu_make_like(c, x->dtype, x->rank, x->dim, &x, 1);
    rl_loops l = channel_loops(y, x);
    if (l.rank > RL_DIMS || !rl_gpu_posts_lie_like(posts, y)) return rl_call_decline(c);
    rl_p_affine p = {.to = rl_data(y), .from = rl_data(x), .scale = param[0], .bias = param[1], .mean = param[2], .var = param[3],
                     .count = (uint32_t)rl_numel(y), .npost = posts->n, .epsilon = epsilon};
    if (!p.count) return RL_OK;
    uint64_t address[2] = {(uintptr_t)p.to, (uintptr_t)p.from};
    for (uint32_t i = 0; i < posts->n; i++) {
        p.post[i] = posts->post[i];
        if (posts->in[i]) p.in[p.post[i].operand] = rl_data(posts->in[i]), address[0] |= (uintptr_t)rl_data(posts->in[i]);
    }
    bool near = l.rank && l.step[1][l.rank - 1] == 1;
    uint32_t blocks = near ? rl_gpu_widen(&l, rl_elem_bits(x->dtype) / 8, 2, address, &p.wide) : rl_gpu_blocks(p.count);
    p.by = p.wide && l.step[2][l.rank - 1] != 0;
    p.w = rl_walk_of(&l, 0);
    return rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_float(RL_GPU_affine_f32, x->dtype), blocks, &p, sizeof p);
}

rl_status rl_gpu_scale_channels(rl_call *c, const rl_tensor *x, const float *scale, const float *shift, const rl_gpu_posts *p) {
    if (c->step->native && c->step->native->out.block) return rl_call_decline(c);
    size_t n = rl_bytes_of(RL_F32, x->dim[1]);
    return affine(c, x, (const void *[]){rl_call_keep(c, scale, n, true), rl_call_keep(c, shift, n, true), NULL, NULL}, 0, p);
}

rl_status rl_gpu_batch_norm(rl_call *c) {
    const void *param[4] = {NULL};
    bool constant = true;
    RL_TRY(rl_call_need(c, 5));
    const rl_tensor *x = rl_call_in(c, 0);
    if (!is_gpu_float(x->dtype) || x->rank < 2 || !fits(x) || rl_call_wants(c, 1) || rl_attr_int(c->node, "training_mode", 0) || !rl_attr_int(c->node, "spatial", 1))
        return rl_call_decline(c);
    for (uint32_t i = 0; i < 4; i++)
        if (!is_gpu_float(rl_call_in(c, 1 + i)->dtype) || rl_numel(rl_call_in(c, 1 + i)) != x->dim[1]) return rl_call_decline(c);
    x = rl_call_here(c, 0);
    rl_dtype type = rl_gpu_computed(x->dtype);
    double epsilon = rl_attr_float(c->node, "epsilon", 1e-5f);
    for (uint32_t i = 0; i < 4; i++) constant = constant && rl_call_is_constant(c, 1 + i);
    if (constant) {
        const scales *s = scales_of(c, type, x->dim[1], epsilon);
        param[0] = rl_call_keep(c, s->by, rl_bytes_of(type, x->dim[1]), true), param[1] = rl_call_keep(c, s->more, rl_bytes_of(type, x->dim[1]), true);
    } else
        for (uint32_t i = 0; i < 4; i++) param[i] = rl_data(rl_gpu_cast(c, rl_call_here(c, 1 + i), type));
    return affine(c, x, param, epsilon, &(rl_gpu_posts){0});
}

/* ---- LRN ---- */

rl_status rl_gpu_lrn(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    int64_t size = rl_attr_int(c->node, "size", 0);
    if (!is_gpu_float(x->dtype) || !fits(x) || x->rank < 2 || size < 1 || rl_numel(x) == 0) return rl_call_decline(c);
    x = rl_call_here(c, 0);
    rl_tensor *y = rl_gpu_make_like(c, x->dtype, x->rank, x->dim, &x, 1);
    rl_loops l = channel_loops(y, x);
    if (l.rank > RL_DIMS) return rl_call_decline(c);
    size = RL_MIN(size, INT32_MAX);
    rl_p_lrn p = {.to = rl_data(y), .from = rl_data(x), .count = (uint32_t)rl_numel(y), .channels = (uint32_t)x->dim[1], .before = (uint32_t)(size - 1) / 2,
                  .after = (uint32_t)size / 2, .step = x->stride[1], .scale = (double)rl_attr_float(c->node, "alpha", 1e-4f) / (double)size,
                  .beta = rl_attr_float(c->node, "beta", 0.75f), .bias = rl_attr_float(c->node, "bias", 1), .w = rl_walk_of(&l, 0)};
    return rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_float(RL_GPU_lrn_f32, x->dtype), rl_gpu_blocks(p.count), &p, sizeof p);
}

/* ---- Resize ---- */

/* Axes that are resized in one launch. */
typedef struct { uint32_t n, at[RL_MOST_RESIZED]; } resized;

/* Their taps in a row, as the kernel reads them, and what it has in place of axes that are not there: one tap. */
static const void *taps_of(rl_call *c, const rl_resize_axis *axis, const resized *r, rl_dtype type, rl_p_resize *p) {
    uint32_t n = 1, missing = RL_MOST_RESIZED - r->n;
    size_t size = type == RL_F64 ? sizeof(rl_tap_f64) : sizeof(rl_tap_f32);
    for (uint32_t k = 0; k < r->n; k++) n += (uint32_t)(axis[r->at[k]].out * axis[r->at[k]].ntap);
    rl_tap_f32 *f32 = rl_alloc(c->tmp, n * size);
    rl_tap_f64 *f64 = (void *)f32;
    if (type == RL_F64) *f64++ = (rl_tap_f64){1, 0};
    else *f32++ = (rl_tap_f32){1, 0};
    for (uint32_t k = 0, first = 1; k < RL_MOST_RESIZED; k++) {
        const rl_resize_axis *a = k < missing ? NULL : &axis[r->at[k - missing]];
        p->ntap[k] = a ? (uint32_t)a->ntap : 1, p->first[k] = a ? first : 0;
        for (int64_t i = 0; a && i < a->out * a->ntap; i++, first++)
            if (type == RL_F64) *f64++ = (rl_tap_f64){a->weight[i], a->index[i]};
            else *f32++ = (rl_tap_f32){(float)a->weight[i], (int32_t)a->index[i]};
    }
    return rl_call_keep(c, type == RL_F64 ? (void *)(f64 - n) : (void *)(f32 - n), n * size, false);
}

/* y, of the same type, from x. */
static rl_status resize(rl_call *c, const rl_resize_axis *axis, const resized *r, const rl_tensor *x, const rl_tensor *y) {
    rl_loops l = rl_loops_of(y->rank, y->dim, (const rl_tensor *[]){y, x, NULL, NULL}, 4);
    rl_p_resize p = {.to = rl_data(y), .from = rl_data(x), .count = (uint32_t)rl_numel(y)};
    p.taps = taps_of(c, axis, r, rl_gpu_computed(x->dtype), &p);
    for (uint32_t i = 0, k = RL_MOST_RESIZED - r->n; i < r->n; i++, k++) {
        uint32_t d = r->at[i];
        p.step[k] = x->stride[d];
        l.step[1][d] = 0;
        l.step[k == 2 ? 3 : 2][d] = k == 1 ? (int64_t)1 << 32 : 1;
    }
    rl_loops_sort(&l);
    rl_loops_merge(&l);
    if (l.rank > RL_DIMS) return rl_call_fail(c, RL_ELIMIT, "more than %d dims", RL_DIMS);
    uint32_t wide = 128 / rl_elem_bits(x->dtype);
    bool whole = l.rank && l.dim[l.rank - 1] % wide == 0 && l.step[1][l.rank - 1] == 1; /* neighbours are neighbours in x, too */
    for (uint32_t k = 0; k < RL_MOST_RESIZED; k++) whole = whole && p.step[k] % wide == 0;
    p.wide = whole && rl_loops_takes(&l, wide, 2, (uint64_t[]){(uintptr_t)p.to, (uintptr_t)p.from});
    if (p.wide) rl_loops_by(&l, wide);
    p.w = rl_walk_of(&l, 0);
    int64_t each = p.wide ? 1 : RL_RESIZED_AT_ONCE, threads = (rl_loops_count(&l) + each - 1) / each;
    return rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_float(RL_GPU_resize_f32, x->dtype), rl_gpu_thread_blocks(threads), &p, sizeof p);
}

/* Axis after axis, in the type that is computed in: where so many taps meet that the parts of the sum are worth keeping. */
static rl_status resize_by_axis(rl_call *c, const rl_resize_axis *axis, const rl_tensor *x, const rl_tensor *y) {
    const rl_tensor *now = rl_gpu_cast(c, x, rl_gpu_computed(x->dtype));
    for (uint32_t i = 0; i < now->rank; i++) {
        int64_t dim[RL_RANK];
        if (axis[i].same) continue;
        memcpy(dim, now->dim, sizeof dim);
        dim[i] = axis[i].out;
        if (rl_product(dim, now->rank) >= INT32_MAX) return rl_call_decline(c); /* between two axes there may be more than before and after */
        rl_tensor *next = rl_call_temp(c, now->dtype, now->rank, dim);
        RL_TRY(resize(c, axis, &(resized){1, {i}}, now, next));
        now = next;
    }
    return rl_gpu_cast_to(c, y, now);
}

/* As x lies. One place of channels lies both ways: the way that convolutions want, then. */
static const rl_tensor *make_resized(rl_call *c, const rl_tensor *x, const int64_t *dim) {
    int64_t perm[RL_RANK];
    if (x->rank < 4 || !rl_is_channels_last(x) || !rl_gpu_wants_channels_last(c, x->dtype)) return rl_call_make_like(c, 0, x, dim);
    return rl_call_make_in(c, 0, x->dtype, x->rank, dim, rl_gpu_last_order(x->rank, perm));
}

enum { FEW_TAPS = 32 };

static rl_status resize_axes(rl_call *c, const rl_resize_axis *axis, const int64_t *out) {
    const rl_tensor *x = rl_call_here(c, 0), *y = make_resized(c, x, out);
    resized r = {0};
    int64_t taps = 1;
    for (uint32_t i = 0; i < x->rank && taps <= FEW_TAPS; i++) {
        if (axis[i].same) continue;
        taps = r.n == RL_MOST_RESIZED ? INT32_MAX : taps * axis[i].ntap;
        if (r.n < RL_MOST_RESIZED) r.at[r.n++] = i;
    }
    return taps <= FEW_TAPS ? resize(c, axis, &r, x, y) : resize_by_axis(c, axis, x, y);
}

rl_status rl_gpu_op_resize(rl_call *c) {
    rl_resize r;
    rl_resize_sizes s;
    rl_resize_axis axis[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    if (!is_gpu_float(x->dtype) || !fits(x)) return rl_call_decline(c);
    RL_TRY(rl_resize_read(c, &r));
    RL_TRY(rl_resize_sizes_of(c, &r, x, &s));
    RL_TRY(rl_call_dims(c, x->rank, s.out));
    if (rl_product(s.out, x->rank) >= INT32_MAX || rl_product(s.out, x->rank) == 0) return rl_call_decline(c);
    for (uint32_t i = 0; i < x->rank; i++) {
        RL_TRY(rl_resize_plan(c, &r, x->dim[i], s.out[i], s.scale[i], s.from[i], s.to[i], &axis[i]));
        if (axis[i].outside || axis[i].out * axis[i].ntap >= INT32_MAX / 4) return rl_call_decline(c);
    }
    return resize_axes(c, axis, s.out);
}
