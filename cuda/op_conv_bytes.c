/* QLinearConv and ConvInteger on the device: by cuDNN where padding and zero points are zero, else by kernel dp4a (dp4a.h).
 *
 * x and y lie as a plan says (runtime/native.h): as NCHW4, NCHW32 or CHWN4, or in any order of their dims; without a plan channels-last, so that four
 * channels are a word and a chain of convolutions needs no relayout.  The weights, scales and zero points are constants of the model, packed once for
 * the step; others are left to the CPU, but for ConvInteger's zero point of x, which the run may make. */
#include <string.h>

#include "../runtime/conv.h"
#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "../runtime/native.h"
#include "backend.h"
#include "dp4a.h"
#include "libs.h"
#include "numbers.h"
#include "posts.h"

/* What the host made of the step's constants, in the graph's memory: for dp4a, and (plain) for cuDNN, bias and scale by channel and the weights as
 * [o][c / lanes][r][s][lanes]; alpha: the scale of all channels, where there is one and no bias, else 0. */
typedef struct { int8_t *w; int32_t *bias; float *scale, alpha; } plain;
typedef struct { int32_t *w, *bias; float *scale; size_t nw, nout, nplain; plain plain; uint32_t c, lanes; int32_t x_zero, y_zero; bool words; } made;

/* x, and how it lies; as cuDNN has it: channels in vectors of so many, 0: it has no name for it. */
typedef struct { rl_call *c; const rl_gpu_places *p; const rl_native *native; rl_tensor x, y; rl_dp4a k; uint32_t vectors; } conv;

static bool takes(const rl_call *c, const rl_gpu_places *p, const rl_tensor *x) {
    const rl_tensor *w = rl_call_in(c, p->w), *yz = rl_gpu_input(c, p->y_zero);
    const rl_tensor *b = rl_gpu_input(c, p->bias);
    if (!w || !rl_gpu_is_byte(x->dtype) || !rl_gpu_is_byte(w->dtype) || x->rank < 3 || x->rank > 4 || w->rank != x->rank) return false;
    if (!rl_call_is_constant(c, p->w) || (p->y_zero != RL_NONE && (!yz || !rl_gpu_is_byte(yz->dtype)))) return false;
    if (b && (!rl_call_is_constant(c, p->bias) || b->dtype != RL_I32 || rl_numel(b) != w->dim[0])) return false;
    return rl_numel(x) < INT32_MAX && rl_numel(w) < INT32_MAX && rl_numel(w) > 0 && (rl_gpu_takes_numbers(c, p->x_zero, x->dtype, 1) || (!b && rl_gpu_takes_zero(c, p->x_zero, x->dtype)))
           && rl_gpu_takes_numbers(c, p->w_zero, w->dtype, w->dim[0]) && rl_gpu_takes_numbers(c, p->x_scale, RL_F32, 1) && rl_gpu_takes_numbers(c, p->w_scale, RL_F32, w->dim[0])
           && rl_gpu_takes_numbers(c, p->y_scale, RL_F32, 1) && rl_gpu_takes_numbers(c, p->y_zero, yz ? yz->dtype : RL_U8, 1);
}

/* The weights as signed bytes, [o][k->c / group][r][s], with zeros for channels that x has lanes for only; false: their zero point is not the middle of
 * their range. */
static bool signed_weights(rl_call *c, const rl_gpu_places *p, const rl_dp4a *k, int8_t *to) {
    const rl_tensor *w = rl_call_dense(c, p->w);
    int64_t per = w->dim[1] * k->r * k->s, room = (int64_t)(k->c / k->group) * k->r * k->s;
    bool raised = w->dtype == RL_U8;
    const uint8_t *from = rl_data(w);
    for (uint32_t o = 0; o < k->o; o++) {
        if ((int)rl_gpu_number_at(c, p->w_zero, o, 0) != (raised ? 128 : 0)) return false;
        for (int64_t i = 0; i < per; i++) to[o * room + i] = (int8_t)(raised ? from[o * per + i] ^ 0x80 : from[o * per + i]);
    }
    return true;
}

/* dp4a's bias and scale, channel by channel, and the weights. */
static plain make_plain(rl_arena *mem, const rl_dp4a *k, const made *m, const int8_t *w) {
    uint32_t per = k->c / k->group, taps = k->r * k->s, v = m->lanes;
    plain p = {rl_new(mem, int8_t, (size_t)k->o * per * taps), rl_new(mem, int32_t, k->o), rl_new(mem, float, k->o), 0};
    for (uint32_t o = 0; o < k->o; o++)
        for (uint32_t c = 0; c < per; c++)
            for (uint32_t t = 0; t < taps; t++) p.w[(((size_t)o * (per / v) + c / v) * taps + t) * v + c % v] = w[((size_t)o * per + c) * taps + t];
    for (uint32_t i = 0; i < rl_dp4a_outputs(k); i++) {
        uint32_t o = rl_dp4a_channel(k, i);
        if (o != RL_NONE) p.bias[o] = m->bias[i], p.scale[o] = m->scale[i];
    }
    p.alpha = p.scale[0];
    for (uint32_t o = 0; o < k->o; o++)
        if (p.bias[o] || p.scale[o] != p.scale[0]) p.alpha = 0;
    return p;
}

/* On the host, once for the step; NULL: not by this kernel. */
static const made *make(const conv *v, const rl_dp4a *k) {
    rl_call *c = v->c;
    const rl_gpu_places *p = v->p;
    rl_arena *mem = &c->frame->x->g->mem;
    uint32_t n = rl_dp4a_outputs(k);
    size_t nweight = (size_t)k->o * (k->c / k->group) * k->r * k->s;
    int8_t *w = rl_new(c->tmp, int8_t, nweight);
    int32_t *sum = rl_new(c->tmp, int32_t, n);
    if (!signed_weights(c, p, k, w)) return NULL;
    made *m = rl_new(mem, made, 1);
    m->nw = rl_dp4a_words(k) * sizeof *m->w, m->nout = n, m->words = rl_dp4a_by_words(k), m->c = k->c;
    m->lanes = v->vectors > 1 ? v->vectors : k->c / k->group;
    m->w = rl_new(mem, int32_t, rl_dp4a_words(k)), m->bias = rl_new(mem, int32_t, n), m->scale = rl_new(mem, float, n);
    bool comes = rl_gpu_is_made(c, p->x_zero);
    m->x_zero = comes ? 0 : (int32_t)rl_gpu_number_at(c, p->x_zero, 0, 0), m->y_zero = (int32_t)rl_gpu_number_at(c, p->y_zero, 0, 0);
    rl_dp4a_pack(k, w, m->w, sum);
    const int32_t *bias = rl_gpu_input(c, p->bias) ? rl_data(rl_call_dense(c, p->bias)) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t o = rl_dp4a_channel(k, i);
        if (o == RL_NONE) continue;
        uint32_t by = comes ? 1 : (uint32_t)(m->x_zero - (k->x_unsigned ? 128 : 0));
        m->bias[i] = (int32_t)((bias ? (uint32_t)bias[o] : 0) - by * (uint32_t)sum[i]);
        m->scale[i] = (float)rl_gpu_number_at(c, p->x_scale, 0, 1) * (float)rl_gpu_number_at(c, p->w_scale, o, 1) / (float)rl_gpu_number_at(c, p->y_scale, 0, 1);
    }
    m->nplain = nweight;
    m->plain = make_plain(mem, k, m, w);
    return m;
}

static const made *made_of(const conv *v, const rl_dp4a *k) {
    rl_call *c = v->c;
    const made *m = c->step->made;
    const rl_backend *was = c->rt->on;
    uint32_t lanes = v->vectors > 1 ? v->vectors : k->c / k->group;
    if (m && m->words == rl_dp4a_by_words(k) && m->c == k->c && m->lanes == lanes) return m;
    c->rt->on = &rl_backend_cpu;
    c->step->made = m = make(v, k);
    c->rt->on = was;
    return m;
}

/* ---- how x and y lie ---- */

/* lay: of a blocked one, else NULL. A lone spatial dim is the columns of one row. */
static rl_dp4a_layout layout_of(const rl_tensor *t, const rl_lay *lay) {
    uint32_t last = t->rank - 1;
    if (lay) return (rl_dp4a_layout){.n = t->stride[0], .h = t->stride[2], .w = t->stride[3], .c = 1, .block = t->stride[1], .per_block = lay->block};
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

static const rl_lay *blocked(const rl_native *n, bool out) {
    return n && (out ? n->out.block : n->in.block) ? out ? &n->out : &n->in : NULL;
}

/* What cuDNN has: channels-last, or whole vectors of 4 or 32 channels on both sides; without a plan it is channels-last. */
static uint32_t vectors_of(const rl_native *n, const rl_dp4a *k) {
    if (!n || (!n->in.block && !n->out.block)) return 1;
    bool same = rl_lay_same(&n->in, &n->out) && n->in.perm[0] == 0;
    return same && k->group == 1 && k->c % n->in.block == 0 && k->o % n->in.block == 0 ? n->in.block : 0;
}

/* ---- which kernel ---- */

static bool both_last(const rl_dp4a *k) {
    return k->x.c == 1 && k->y.c == 1 && k->x.per_block == k->c && k->y.per_block == k->o;
}

/* cuDNN pads with zeros, takes signed bytes and adds no zero point; vectors have one scale and no bias. */
static rl_status by_cudnn(const conv *v, const made *m, void *y, const void *x, bool *did) {
    const rl_dp4a *k = &v->k;
    rl_call *c = v->c;
    int64_t vec = v->vectors, per = k->c / k->group / RL_MAX(vec, 1), taps[2] = {k->r, k->s}, in[2] = {k->h, k->w}, out[2] = {k->oh, k->ow};
    rl_dnn_conv_job j;
    *did = false;
    if (!k->x.h || k->x_unsigned || m->x_zero || k->x_zero_at || k->y_type == RL_U8 || m->y_zero || !rl_libs_of(c->rt)) return RL_OK;
    if (!vec || (vec == 1 ? !both_last(k) : k->y_type != RL_I8 || m->plain.alpha == 0 || k->y_least > -128)) return RL_OK;
    memset(&j, 0, sizeof j);
    j.type = RL_I8, j.n = k->n, j.groups = k->group, j.least = k->y_least;
    j.p.x = x, j.p.y = y, j.p.w = rl_call_keep(c, m->plain.w, m->nplain, true), j.p.r = 2, j.p.cin = k->c / k->group, j.p.cout = k->o / k->group;
    if (vec > 1) j.vectors = (uint32_t)vec, j.alpha = m->plain.alpha;
    else j.p.bias = rl_call_keep(c, m->plain.bias, k->o * sizeof *m->plain.bias, true);
    if (vec == 1 && k->y_type == RL_I8) j.scale = rl_call_keep(c, m->plain.scale, k->o * sizeof *m->plain.scale, true);
    for (uint32_t i = 0; i < 2; i++) {
        j.p.in[i] = (int32_t)in[i], j.p.out[i] = rl_divisor_of((uint32_t)out[i]), j.p.kernel[i] = (int32_t)taps[i];
        j.p.stride[i] = k->stride[i], j.p.dilation[i] = k->dilation[i], j.p.before[i] = k->before[i];
        j.p.x_step[i] = (i ? k->x.w : k->x.h) / vec, j.p.y_step[i] = (i ? k->y.w : k->y.h) / vec;
        j.p.w_step[i] = (i ? 1 : k->s) * (vec > 1 ? 1 : per);
    }
    j.p.x_n = k->x.n / vec, j.p.y_n = k->y.n / vec, j.p.w_o = (int64_t)k->r * k->s * per;
    j.p.x_c = vec > 1 ? k->x.block / vec : 1, j.p.y_c = vec > 1 ? k->y.block / vec : 1, j.p.w_i = vec > 1 ? (int64_t)k->r * k->s : 1;
    return rl_dnn_conv(c, &j, did);
}

/* x on the device as the kernel takes it. */
static void read_x(conv *v) {
    rl_call *c = v->c;
    const rl_lay *lay = blocked(v->native, false);
    const rl_tensor *x = rl_call_here(c, v->p->x);
    if (!v->native) x = rl_gpu_aligned(c, rl_gpu_channels_last(c, x), RL_GPU_LAST); /* dp4a reads words, cuDNN 16 bytes */
    v->x = *x;
    v->k.x = layout_of(x, lay);
    if (lay && v->k.group == 1) v->k.c = (v->k.c + 3) / 4 * 4; /* the lanes are there */
}

static void make_y(conv *v, uint32_t rank, const int64_t *dim) {
    rl_call *c = v->c;
    int64_t perm[RL_RANK];
    const rl_lay *lay = blocked(v->native, true);
    v->y = v->native ? *rl_lay_make(c, 0, v->k.y_type, &v->native->out, dim)
                     : *rl_call_make_in(c, 0, v->k.y_type, rank, dim, rl_gpu_last_order(rank, perm));
    v->k.y = layout_of(&v->y, lay);
}

rl_status rl_gpu_conv_bytes(rl_call *c) {
    conv v = {.c = c, .native = c->step->native};
    int64_t group, dim[RL_RANK];
    rl_window win;
    bool did;
    RL_TRY(rl_gpu_places_of(c, &v.p));
    const rl_gpu_places *p = v.p;
    const rl_tensor *given = rl_call_in(c, p->x), *w = rl_call_in(c, p->w);
    rl_tensor x = blocked(v.native, false) ? rl_lay_logical(given, v.native->channels[p->x]) : *given;
    if (!takes(c, p, &x)) return rl_call_decline(c);
    RL_TRY(rl_conv_group(c, &x, w, &group));
    RL_TRY(rl_window_read(c, &x, w->dim + 2, &win));
    dim[0] = x.dim[0], dim[1] = w->dim[0];
    memcpy(dim + 2, win.out, win.r * sizeof *dim);
    RL_TRY(rl_call_dims(c, x.rank, dim));
    if (group < 1 || rl_product(dim, x.rank) >= INT32_MAX || rl_product(dim, x.rank) == 0 || rl_numel(&x) == 0) return rl_call_decline(c);
    if (v.native && v.native->nout != dim[1]) return rl_call_fail(c, RL_EMODEL, "the output is not as the plan says");
    v.k = shape_of(&x, w, &win, group);
    read_x(&v);
    v.vectors = vectors_of(v.native, &v.k);
    v.k.y_type = p->y_zero == RL_NONE ? RL_I32 : rl_call_in(c, p->y_zero)->dtype, v.k.y_least = -128;
    const made *m = made_of(&v, &v.k);
    if (!m) return rl_call_decline(c);
    make_y(&v, x.rank, dim);
    v.k.x_zero = m->x_zero, v.k.y_zero = m->y_zero;
    if (rl_gpu_is_made(c, p->x_zero)) v.k.x_zero_at = rl_data(rl_call_here(c, p->x_zero));
    if (blocked(v.native, true)) rl_lay_clear(c->rt, &v.y, dim[1]);
    RL_TRY(by_cudnn(&v, m, rl_data(&v.y), rl_data(&v.x), &did));
    if (did) return RL_OK;
    return rl_gpu_dp4a(rl_gpu_of(c->rt), &v.k, rl_data(&v.y), rl_data(&v.x), rl_call_keep(c, m->w, m->nw, true),
                       rl_call_keep(c, m->bias, m->nout * sizeof *m->bias, true),
                       v.k.y_type == RL_I32 ? NULL : rl_call_keep(c, m->scale, m->nout * sizeof *m->scale, true));
}
