/* Quantized ops on the device: QLinearConv and ConvInteger by cuDNN where padding and zero points are zero, else by kernel dp4a (dp4a.h);
 * QuantizeLinear, DequantizeLinear.
 *
 * A convolution of bytes takes and makes channels-last, so that four channels are a word and a chain of them needs no relayout.  Its weights, scales
 * and zero points are constants of the model, packed once for the step; others are left to the CPU. */
#include <string.h>

#include "../runtime/conv.h"
#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "../runtime/quantize.h"
#include "backend.h"
#include "dp4a.h"
#include "libs.h"
#include "numbers.h"
#include "posts.h"

/* What the host made of the step's constants, in the graph's memory: for dp4a, and (plain) for cuDNN: weights [o][r][s][c], bias and scale by channel. */
typedef struct { int8_t *w; int32_t *bias; float *scale; } plain;
typedef struct { int32_t *w, *bias; float *scale; size_t nw, nout, nplain; plain plain; int32_t x_zero, y_zero; bool words; } made;

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

static bool takes(const rl_call *c, const rl_gpu_places *p) {
    const rl_tensor *x = rl_call_in(c, p->x), *w = rl_call_in(c, p->w), *yz = rl_gpu_input(c, p->y_zero);
    const rl_tensor *b = rl_gpu_input(c, p->bias);
    if (!x || !w || !rl_gpu_is_byte(x->dtype) || !rl_gpu_is_byte(w->dtype) || x->rank < 3 || x->rank > 4 || w->rank != x->rank) return false;
    if (!rl_call_is_constant(c, p->w) || (p->y_zero != RL_NONE && (!yz || !rl_gpu_is_byte(yz->dtype)))) return false;
    if (b && (!rl_call_is_constant(c, p->bias) || b->dtype != RL_I32 || rl_numel(b) != w->dim[0])) return false;
    return rl_numel(x) < INT32_MAX && rl_numel(w) < INT32_MAX && rl_numel(w) > 0 && rl_gpu_takes_numbers(c, p->x_zero, x->dtype, 1)
           && rl_gpu_takes_numbers(c, p->w_zero, w->dtype, w->dim[0]) && rl_gpu_takes_numbers(c, p->x_scale, RL_F32, 1) && rl_gpu_takes_numbers(c, p->w_scale, RL_F32, w->dim[0])
           && rl_gpu_takes_numbers(c, p->y_scale, RL_F32, 1) && rl_gpu_takes_numbers(c, p->y_zero, yz ? yz->dtype : RL_U8, 1);
}

/* The weights as signed bytes; false: their zero point is not the middle of their range. */
static bool signed_weights(rl_call *c, const rl_gpu_places *p, int8_t *to) {
    const rl_tensor *w = rl_call_dense(c, p->w);
    bool raised = w->dtype == RL_U8;
    for (uint32_t o = 0; o < (uint32_t)w->dim[0]; o++)
        if ((int)rl_gpu_number_at(c, p->w_zero, o, 0) != (raised ? 128 : 0)) return false;
    const uint8_t *from = rl_data(w);
    for (int64_t i = 0; i < rl_numel(w); i++) to[i] = (int8_t)(raised ? from[i] ^ 0x80 : from[i]);
    return true;
}

/* dp4a's bias and scale, channel by channel, and the weights with their channels last. */
static plain make_plain(rl_arena *mem, const rl_dp4a *k, const made *m, const int8_t *w) {
    uint32_t per = k->c / k->group, taps = k->r * k->s;
    plain p = {rl_new(mem, int8_t, (size_t)k->o * per * taps), rl_new(mem, int32_t, k->o), rl_new(mem, float, k->o)};
    for (uint32_t o = 0; o < k->o; o++)
        for (uint32_t c = 0; c < per; c++)
            for (uint32_t t = 0; t < taps; t++) p.w[((size_t)o * taps + t) * per + c] = w[((size_t)o * per + c) * taps + t];
    for (uint32_t i = 0; i < rl_dp4a_outputs(k); i++) {
        uint32_t o = rl_dp4a_channel(k, i);
        if (o != RL_NONE) p.bias[o] = m->bias[i], p.scale[o] = m->scale[i];
    }
    return p;
}

/* On the host, once for the step; NULL: not by this kernel. */
static const made *make(rl_call *c, const rl_gpu_places *p, const rl_dp4a *k) {
    rl_arena *mem = &c->frame->x->g->mem;
    uint32_t n = rl_dp4a_outputs(k);
    int8_t *w = rl_new(c->tmp, int8_t, rl_numel(rl_call_in(c, p->w)));
    int32_t *sum = rl_new(c->tmp, int32_t, n);
    if (!signed_weights(c, p, w)) return NULL;
    made *m = rl_new(mem, made, 1);
    m->nw = rl_dp4a_words(k) * sizeof *m->w, m->nout = n, m->words = rl_dp4a_by_words(k);
    m->w = rl_new(mem, int32_t, rl_dp4a_words(k)), m->bias = rl_new(mem, int32_t, n), m->scale = rl_new(mem, float, n);
    m->x_zero = (int32_t)rl_gpu_number_at(c, p->x_zero, 0, 0), m->y_zero = (int32_t)rl_gpu_number_at(c, p->y_zero, 0, 0);
    rl_dp4a_pack(k, w, m->w, sum);
    const int32_t *bias = rl_gpu_input(c, p->bias) ? rl_data(rl_call_dense(c, p->bias)) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t o = rl_dp4a_channel(k, i);
        if (o == RL_NONE) continue;
        m->bias[i] = (int32_t)((bias ? (uint32_t)bias[o] : 0) - (uint32_t)(m->x_zero - (k->x_unsigned ? 128 : 0)) * (uint32_t)sum[i]);
        m->scale[i] = (float)rl_gpu_number_at(c, p->x_scale, 0, 1) * (float)rl_gpu_number_at(c, p->w_scale, o, 1) / (float)rl_gpu_number_at(c, p->y_scale, 0, 1);
    }
    m->nplain = (size_t)rl_numel(rl_call_in(c, p->w));
    m->plain = make_plain(mem, k, m, w);
    return m;
}

/* A lone spatial dim is the columns of one row. */
static rl_dp4a_layout layout_of(const rl_tensor *t) {
    uint32_t last = t->rank - 1;
    return (rl_dp4a_layout){.n = t->stride[0], .h = t->rank == 4 ? t->stride[2] : 0, .w = t->stride[last], .c = t->stride[1], .per_block = (uint32_t)t->dim[1]};
}

static rl_dp4a shape_of(const rl_tensor *x, const rl_tensor *w, const rl_window *win, int64_t group) {
    rl_dp4a k = {.n = (uint32_t)x->dim[0], .c = (uint32_t)x->dim[1], .h = 1, .oh = 1, .r = 1, .o = (uint32_t)w->dim[0], .group = (uint32_t)group,
                 .stride = {1, 1}, .dilation = {1, 1}, .x_unsigned = x->dtype == RL_U8};
    for (uint32_t i = 0; i < win->r; i++) {
        uint32_t d = i + 2 - win->r;
        k.stride[d] = (int32_t)win->stride[i], k.dilation[d] = (int32_t)win->dilation[i], k.before[d] = (int32_t)win->before[i];
        *(d ? &k.w : &k.h) = (uint32_t)win->in[i], *(d ? &k.s : &k.r) = (uint32_t)win->kernel[i], *(d ? &k.ow : &k.oh) = (uint32_t)win->out[i];
    }
    return k;
}

/* cuDNN pads with zeros, takes signed bytes and adds no zero point. */
static rl_status by_cudnn(rl_call *c, const rl_dp4a *k, const made *m, void *y, const void *x, bool *did) {
    int64_t per = k->c / k->group, taps[2] = {k->r, k->s}, in[2] = {k->h, k->w}, out[2] = {k->oh, k->ow};
    rl_dnn_conv_job j;
    *did = false;
    if (!k->x.h || k->x_unsigned || m->x_zero || k->y_type == RL_U8 || m->y_zero || !rl_libs_of(c->rt)) return RL_OK;
    memset(&j, 0, sizeof j);
    j.type = RL_I8, j.n = k->n, j.groups = k->group, j.least = k->y_least;
    j.p.x = x, j.p.y = y, j.p.w = rl_call_keep(c, m->plain.w, m->nplain, true), j.p.r = 2, j.p.cin = (uint32_t)per, j.p.cout = k->o / k->group;
    j.p.bias = rl_call_keep(c, m->plain.bias, k->o * sizeof *m->plain.bias, true);
    if (k->y_type == RL_I8) j.scale = rl_call_keep(c, m->plain.scale, k->o * sizeof *m->plain.scale, true);
    for (uint32_t i = 0; i < 2; i++) {
        j.p.in[i] = (int32_t)in[i], j.p.out[i] = rl_divisor_of((uint32_t)out[i]), j.p.kernel[i] = (int32_t)taps[i];
        j.p.stride[i] = k->stride[i], j.p.dilation[i] = k->dilation[i], j.p.before[i] = k->before[i];
        j.p.x_step[i] = i ? k->x.w : k->x.h, j.p.y_step[i] = i ? k->y.w : k->y.h, j.p.w_step[i] = i ? per : per * k->s;
    }
    j.p.x_n = k->x.n, j.p.x_c = k->x.c, j.p.y_n = k->y.n, j.p.y_c = k->y.c, j.p.w_o = (int64_t)k->r * k->s * per, j.p.w_i = 1;
    return rl_dnn_conv(c, &j, did);
}

rl_status rl_gpu_conv_bytes(rl_call *c) {
    const rl_gpu_places *p;
    int64_t group, dim[RL_RANK], perm[RL_RANK];
    rl_window win;
    RL_TRY(rl_gpu_places_of(c, &p));
    if (!takes(c, p)) return rl_call_decline(c);
    const rl_tensor *x = rl_call_in(c, p->x), *w = rl_call_in(c, p->w);
    RL_TRY(rl_conv_group(c, x, w, &group));
    RL_TRY(rl_window_read(c, x, w->dim + 2, &win));
    dim[0] = x->dim[0], dim[1] = w->dim[0];
    memcpy(dim + 2, win.out, win.r * sizeof *dim);
    RL_TRY(rl_call_dims(c, x->rank, dim));
    if (group < 1 || rl_window_count(dim, x->rank) >= INT32_MAX || rl_window_count(dim, x->rank) == 0 || rl_numel(x) == 0) return rl_call_decline(c);
    rl_dp4a k = shape_of(x, w, &win, group);
    x = rl_gpu_channels_last(c, rl_call_here(c, p->x));
    k.x = layout_of(x);
    k.y_type = p->y_zero == RL_NONE ? RL_I32 : rl_call_in(c, p->y_zero)->dtype, k.y_least = -128;
    const made *m = c->step->made;
    const rl_backend *was = c->rt->on;
    c->rt->on = &rl_backend_cpu;
    if (!m || m->words != rl_dp4a_by_words(&k)) c->step->made = m = make(c, p, &k);
    c->rt->on = was;
    if (!m) return rl_call_decline(c);
    rl_tensor *y = rl_call_make_in(c, 0, k.y_type, x->rank, dim, rl_gpu_last_order(x->rank, perm));
    k.y = layout_of(y), k.x_zero = m->x_zero, k.y_zero = m->y_zero;
    bool did;
    RL_TRY(by_cudnn(c, &k, m, rl_data(y), rl_data(x), &did));
    if (did) return RL_OK;
    return rl_gpu_dp4a(rl_gpu_of(c->rt), &k, rl_data(y), rl_data(x), rl_call_keep(c, m->w, m->nw, true),
                       rl_call_keep(c, m->bias, m->nout * sizeof *m->bias, true),
                       k.y_type == RL_I32 ? NULL : rl_call_keep(c, m->scale, m->nout * sizeof *m->scale, true));
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
