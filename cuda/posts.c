/* What was joined to a convolution or a product: see posts.h. */
#include "posts.h"

#include <string.h>

#include "../runtime/fast.h"
#include "../runtime/kernels.h"
#include "libs.h"

_Static_assert((int)RL_MOST_POSTS > (int)RL_POSTS, "room for a bias before them");

bool rl_gpu_posts_of(rl_call *c, const int64_t *dim, uint32_t rank, rl_gpu_posts *p) {
    const rl_fused *f = c->step->fused;
    *p = (rl_gpu_posts){0};
    for (uint32_t i = 0; f && i < f->npost; i++) {
        const rl_post *o = &f->post[i];
        p->post[p->n] = (rl_p_post){(uint32_t)o->op, o->p, o->q, 0};
        if (rl_row_is_binary(o->op)) {
            const rl_tensor *t = rl_call_here(c, o->in);
            rl_tensor *all = rl_new(c->tmp, rl_tensor, 1);
            if (t->dtype != rl_call_in(c, 0)->dtype || p->nin + 1 >= RL_OPERANDS || !rl_view_expand(t, rank, dim, all)) return false;
            p->in[p->n] = all;
            p->post[p->n].operand = ++p->nin;
        }
        p->n++;
    }
    return true;
}

/* An op of t, which has y's dims, before all others. False: no room. */
static bool put_first(rl_gpu_posts *p, rl_row_op op, const rl_tensor *t) {
    if (p->nin + 1 == RL_OPERANDS) return false;
    memmove(p->post + 1, p->post, p->n * sizeof *p->post);
    memmove(p->in + 1, p->in, p->n * sizeof *p->in);
    p->post[0] = (rl_p_post){(uint32_t)op, 0, 0, ++p->nin};
    p->in[0] = t;
    p->n++;
    return true;
}

bool rl_gpu_add_first(rl_gpu_posts *p, const rl_tensor *t) {
    return put_first(p, RL_ROW_ADD, t);
}

bool rl_gpu_add_bias(rl_call *c, rl_gpu_posts *p, const rl_tensor *bias, const rl_tensor *y) {
    rl_tensor *t = rl_copy(c->tmp, bias, sizeof *bias);
    t->rank = y->rank;
    for (uint32_t i = 0; i < y->rank; i++) t->dim[i] = y->dim[i], t->stride[i] = i == 1 ? bias->stride[0] : 0;
    return rl_gpu_add_first(p, t);
}

static bool lies_like(const rl_tensor *t, const rl_tensor *y) {
    for (uint32_t i = 0; i < y->rank; i++)
        if (y->dim[i] != 1 && t->stride[i] != y->stride[i]) return false;
    return true;
}

bool rl_gpu_posts_lie_like(const rl_gpu_posts *p, const rl_tensor *y) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->in[i] && !lies_like(p->in[i], y)) return false;
    return true;
}

static bool is_per_channel(const rl_tensor *t) {
    for (uint32_t i = 0; i < t->rank; i++)
        if (i != 1 && t->dim[i] != 1 && t->stride[i] != 0) return false;
    return true;
}

void rl_gpu_posts_like(rl_call *c, rl_gpu_posts *p, const rl_tensor *y) {
    for (uint32_t i = 0; i < p->n; i++)
        if (p->in[i] && !is_per_channel(p->in[i]) && !lies_like(p->in[i], y)) p->in[i] = rl_gpu_channels_last(c, p->in[i]);
}

/* y is made of `from`, which lies as it does; NULL: the first of the posts says of what. */
static rl_status run(rl_call *c, const rl_gpu_posts *posts, const rl_tensor *y, const rl_tensor *from) {
    const rl_tensor *t[RL_OPERANDS] = {y};
    rl_p_posts p = {.to = rl_data(y), .in = {from ? rl_data(from) : NULL}, .npost = posts->n, .count = (uint32_t)rl_numel(y)};
    if (!p.count) return RL_OK;
    for (uint32_t i = 0; i < posts->n; i++) {
        p.post[i] = posts->post[i];
        if (!posts->in[i]) continue;
        t[p.post[i].operand] = posts->in[i];
        p.in[p.post[i].operand] = rl_data(posts->in[i]);
    }
    uint64_t address[RL_OPERANDS] = {(uintptr_t)p.to | (uintptr_t)p.in[0]};
    for (uint32_t o = 1; o <= posts->nin; o++) address[o] = (uintptr_t)p.in[o];
    rl_loops l = rl_loops_of(y->rank, y->dim, t, 1 + posts->nin);
    rl_loops_sort(&l);
    rl_loops_merge(&l);
    if (l.rank > RL_DIMS) return rl_call_decline(c);
    uint32_t blocks = rl_gpu_widen(&l, rl_elem_bits(y->dtype) / 8, l.noperand, address, &p.wide);
    for (uint32_t o = 1; p.wide && o < l.noperand; o++) p.one[o] = l.step[o][l.rank - 1] == 0;
    p.w = rl_walk_of(&l, 0);
    return rl_gpu_launch(rl_gpu_of(c->rt), rl_gpu_of_float(RL_GPU_posts_f32, y->dtype), blocks, &p, sizeof p);
}

rl_status rl_gpu_run_posts(rl_call *c, const rl_gpu_posts *p, const rl_tensor *y) {
    return p->n ? run(c, p, y, y) : RL_OK;
}

rl_status rl_gpu_chain(rl_call *c) {
    const rl_fused *f = c->step->fused;
    const rl_tensor *x = rl_call_here(c, 0);
    rl_gpu_posts p;
    if (rl_numel(x) >= INT32_MAX || !rl_gpu_posts_of(c, x->dim, x->rank, &p)) return rl_call_decline(c);
    if (f->scale) return rl_gpu_scale_channels(c, x, f->scale, f->shift, &p);
    rl_tensor *y = rl_gpu_make_like(c, x->dtype, x->rank, x->dim, &x, 1);
    bool alike = lies_like(x, y);
    return alike || put_first(&p, RL_ROW_COPY, x) ? run(c, &p, y, alike ? x : NULL) : rl_call_decline(c);
}

/* ---- channels-last ---- */

bool rl_gpu_wants_channels_last(const rl_call *c, rl_dtype t) {
    return rl_gpu_is_emulated(rl_gpu_of(c->rt)) ? t == RL_F16 || t == RL_BF16 : rl_dnn_wants_channels_last(rl_libs_of(c->rt), t);
}

const int64_t *rl_gpu_last_order(uint32_t rank, int64_t *perm) {
    perm[0] = 0, perm[rank - 1] = 1;
    for (uint32_t i = 2; i < rank; i++) perm[i - 1] = i;
    return perm;
}

/* The dims, outermost in memory first, and the strides that this makes. */
static void lay_out(rl_gpu_order o, uint32_t rank, const int64_t *dim, int64_t *order, int64_t *stride) {
    int64_t step = 1;
    if (o == RL_GPU_LAST) rl_gpu_last_order(rank, order);
    else
        for (uint32_t i = 0; i < rank; i++) order[i] = o == RL_GPU_ROW_MAJOR ? i : (i + 2) % rank;
    for (uint32_t i = rank; i-- > 0; step *= dim[order[i]]) stride[order[i]] = step;
}

static const rl_tensor *copy_in(rl_call *c, const rl_tensor *t, rl_gpu_order o) {
    int64_t order[RL_RANK], back[RL_RANK], dim[RL_RANK], stride[RL_RANK];
    lay_out(o, t->rank, t->dim, order, stride);
    for (uint32_t i = 0; i < t->rank; i++) dim[i] = t->dim[order[i]], back[order[i]] = i;
    const rl_tensor *made = rl_call_temp(c, t->dtype, t->rank, dim);
    rl_tensor *view = rl_new(c->tmp, rl_tensor, 1);
    *view = rl_view_transpose(made, back);
    rl_tensor_move(c->rt, view, t);
    return view;
}

static const rl_tensor *in_order(rl_call *c, const rl_tensor *t, rl_gpu_order o) {
    int64_t order[RL_RANK];
    rl_tensor wanted = *t;
    lay_out(o, t->rank, t->dim, order, wanted.stride);
    return lies_like(t, &wanted) ? t : copy_in(c, t, o);
}

const rl_tensor *rl_gpu_channels_last(rl_call *c, const rl_tensor *t) {
    return in_order(c, t, RL_GPU_LAST);
}

const rl_tensor *rl_gpu_row_major(rl_call *c, const rl_tensor *t) {
    return in_order(c, t, RL_GPU_ROW_MAJOR);
}

const rl_tensor *rl_gpu_aligned(rl_call *c, const rl_tensor *t, rl_gpu_order o) {
    return (uintptr_t)rl_data(t) % 16 ? copy_in(c, t, o) : t;
}

/* ---- constants ---- */

/* What the host has made of the step's constants: borrowed tensors of bytes in the graph's memory. */
typedef struct { rl_tensor weights, bias; rl_gpu_order order; } made;

/* A float tensor of the host's, row-major, as f32. */
static rl_tensor widened(rl_rt *rt, const rl_tensor *t) {
    rl_tensor y = rl_tensor_new(rt, RL_F32, t->rank, t->dim);
    rl_convert(rt, &y, t, true);
    return y;
}

/* Its numbers as `type`, in the graph's memory. */
static rl_tensor stored(rl_call *c, const rl_tensor *t, rl_dtype type, rl_gpu_order o) {
    int64_t order[RL_RANK];
    rl_arena *mem = &c->frame->x->g->mem;
    size_t n = rl_bytes_of(type, rl_numel(t));
    rl_tensor low = rl_tensor_new(c->rt, type, t->rank, t->dim);
    rl_tensor y = rl_tensor_borrow(c->rt, type, t->rank, t->dim, rl_alloc(mem, n), n);
    rl_convert(c->rt, &low, t, true);
    lay_out(o, t->rank, t->dim, order, y.stride);
    rl_tensor_move(c->rt, &y, &low);
    rl_tensor_drop(&low);
    return y;
}

static void scale_weights(const rl_tensor *k, bool transposed, int64_t group, const float *scale) {
    float *x = rl_data(k);
    int64_t n = k->dim[1], per = k->dim[0] / group, taps = rl_numel(k) / (k->dim[0] * n);
    for (int64_t i = 0; i < k->dim[0]; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t t = 0; t < taps; t++) x[(i * n + j) * taps + t] *= scale[transposed ? i / per * n + j : i];
}

/* b * beta * scale + shift for each of n, as `type`, in the graph's memory; b NULL: 0, f32 or one element for all. */
static rl_tensor shifted(rl_call *c, const rl_tensor *b, float beta, int64_t n, rl_dtype type) {
    const rl_fused *f = c->step->fused;
    rl_tensor sum = rl_tensor_new(c->rt, RL_F32, 1, &n), view = {0}, y;
    memset(rl_data(&sum), 0, (size_t)n * sizeof(float));
    if (b && rl_view_expand(b, 1, &n, &view)) rl_convert(c->rt, &sum, &view, true);
    float *x = rl_data(&sum);
    for (int64_t i = 0; i < n; i++) x[i] = f && f->shift ? x[i] * beta * f->scale[i] + f->shift[i] : x[i] * beta;
    y = stored(c, &sum, type, RL_GPU_ROW_MAJOR);
    rl_tensor_drop(&sum);
    return y;
}

/* On the host, once for the step. */
static const made *make(rl_call *c, bool transposed, int64_t group, rl_gpu_order order) {
    const rl_fused *f = c->step->fused;
    const rl_tensor *k = rl_call_in(c, 1), *b = rl_call_in(c, 2);
    made *m = rl_new(&c->frame->x->g->mem, made, 1);
    rl_tensor wide = widened(c->rt, k);
    m->order = order;
    if (f && f->scale) scale_weights(&wide, transposed, group, f->scale);
    m->weights = stored(c, &wide, k->dtype, order);
    rl_tensor_drop(&wide);
    if (!b && !(f && f->shift)) return m;
    m->bias = shifted(c, b, 1, f && f->shift ? f->nchannel : b->dim[0], k->dtype);
    return m;
}

bool rl_gpu_weights(rl_call *c, bool transposed, int64_t group, rl_gpu_order order, const rl_tensor **weights, const rl_tensor **bias) {
    const rl_fused *f = c->step->fused;
    const rl_backend *was = c->rt->on;
    bool scaled = f && f->scale, constant = rl_call_is_constant(c, 1) && (!rl_call_in(c, 2) || rl_call_is_constant(c, 2));
    *bias = NULL;
    if (scaled && !constant) return false;
    if (!constant || (!scaled && order == RL_GPU_ROW_MAJOR && rl_is_dense(rl_call_in(c, 1))) || rl_numel(rl_call_in(c, 1)) == 0) {
        *weights = in_order(c, rl_call_here(c, 1), order);
        *bias = rl_here_dense(c, rl_call_here(c, 2));
        return true;
    }
    const made *m = c->step->made;
    if (!m || m->order != order) {
        c->rt->on = &rl_backend_cpu;
        c->step->made = m = make(c, transposed, group, order);
        c->rt->on = was;
    }
    *weights = rl_call_kept(c, &m->weights);
    if (m->bias.kind == RL_TENSOR) *bias = rl_call_kept(c, &m->bias);
    return true;
}

const rl_tensor *rl_gpu_widened(rl_call *c, uint32_t i, rl_dtype type) {
    const rl_tensor *t = rl_call_in(c, i);
    const rl_backend *was = c->rt->on;
    if (!t) return NULL;
    if (!rl_call_is_constant(c, i) || t->dtype == type || rl_numel(t) == 0) return rl_gpu_cast(c, rl_call_here(c, i), type);
    if (!c->step->made) c->step->made = rl_new(&c->frame->x->g->mem, rl_tensor, RL_MOST_WIDENED);
    rl_tensor *wide = (rl_tensor *)c->step->made + i;
    c->rt->on = &rl_backend_cpu;
    if (wide->kind != RL_TENSOR) *wide = stored(c, t, type, RL_GPU_ROW_MAJOR);
    c->rt->on = was;
    return rl_call_kept(c, wide);
}

/* ---- of products ---- */

static const made *make_columns(rl_call *c, uint32_t columns, float beta) {
    const rl_fused *f = c->step->fused;
    const rl_tensor *k = rl_call_in(c, 1), *b = beta != 0 ? rl_call_in(c, 2) : NULL;
    made *m = rl_new(&c->frame->x->g->mem, made, 1);
    rl_tensor wide = widened(c->rt, k), flat;
    float *x = rl_data(&wide);
    int64_t n = k->dim[1];
    for (int64_t i = 0; i < rl_numel(&wide); i++) x[i] *= f->scale[columns ? i % n : i / n];
    m->weights = stored(c, &wide, k->dtype, RL_GPU_ROW_MAJOR);
    rl_tensor_drop(&wide);
    if (b && rl_numel(b) > 0 && rl_view_reshape(b, 1, (int64_t[]){rl_numel(b)}, &flat)) b = &flat;
    m->bias = shifted(c, b, beta, f->nchannel, k->dtype);
    return m;
}

bool rl_gpu_columns(rl_call *c, uint32_t columns, float beta, const rl_tensor **weights, const rl_tensor **bias) {
    const rl_fused *f = c->step->fused;
    const rl_backend *was = c->rt->on;
    *bias = NULL;
    *weights = rl_call_here(c, 1);
    if (!f || !f->scale) return true;
    if (!rl_call_is_constant(c, 1) || (beta != 0 && rl_call_in(c, 2) && !rl_call_is_constant(c, 2)) || rl_call_in(c, 1)->rank != 2) return false;
    if (!c->step->made) {
        c->rt->on = &rl_backend_cpu;
        c->step->made = make_columns(c, columns, beta);
        c->rt->on = was;
    }
    const made *m = c->step->made;
    *weights = rl_call_kept(c, &m->weights), *bias = rl_call_kept(c, &m->bias);
    return true;
}
