/* Which nodes run as one: see fuse.h.  Each step that may lead takes in the nodes that follow it, one by one, while each is the only
 * reader of what is made so far; the joined step stands where the last of them stood, after all that they read. */
#include "fuse.h"

#include <math.h>
#include <string.h>

#include "device.h"
#include "fast.h"
#include "fuse_internal.h"
#include "kernels_fast.h"

static const rl_kernel chain_kernel = {.types = RL_T(RL_F32), .fn = rl_fast_chain};
enum { DEVICE_OPERANDS = 3 }; /* besides the value: what kernels of a device take of joined element-wise ops */

/* ---- taking in ---- */

static bool push(rl_fuser *a, rl_row_op op, float p, float q, rl_value in) {
    if (a->f.npost == RL_POSTS || (rl_has(in) && a->device && a->kind == RL_LEAD_ROWS && a->nin > DEVICE_OPERANDS)) return false;
    rl_post *o = &a->f.post[a->f.npost++];
    *o = (rl_post){op, p, q, RL_NONE};
    if (rl_has(in)) {
        o->in = a->nin;
        a->in[a->nin++] = in;
    }
    return true;
}

static bool took(rl_fuser *a, uint32_t step) {
    a->value = rl_fuse_node(a, step)->out[0];
    a->last = step;
    a->count++;
    return true;
}

/* How many channels the value has; 0: not known. */
static int64_t channels(const rl_fuser *a) {
    const rl_valinfo *v = rl_val(a->x->g, a->value);
    if (v->rank == RL_NORANK || v->rank < 2) return 0;
    int64_t n = v->dim[a->kind == RL_LEAD_PRODUCT ? v->rank - 1 : 1];
    return n > 0 ? n : 0;
}

/* The constant as one number for each channel, or one for all: its element i is at[i * *step]. */
static const float *per_channel(const rl_fuser *a, rl_value v, int64_t n, int64_t *step) {
    const rl_tensor *t = rl_fuse_constant(a, v);
    uint32_t rank = rl_val(a->x->g, a->value)->rank, from_end = a->kind == RL_LEAD_PRODUCT ? 1 : rank - 1;
    if (!t || t->rank > rank) return NULL;
    *step = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] == 1) continue;
        if (t->rank - i != from_end || t->dim[i] != n) return NULL;
        *step = t->stride[i];
    }
    return rl_data(t);
}

static void start_scale(rl_fuser *a, int64_t n) {
    if (a->f.scale) return;
    a->f.nchannel = n;
    a->f.scale = rl_new(&a->x->g->mem, float, n);
    a->f.shift = rl_new(&a->x->g->mem, float, n);
    for (int64_t i = 0; i < n; i++) a->f.scale[i] = 1;
}

/* y * s + t into what the lead multiplies with: not after another op, nor where the weights are no constant. */
static bool can_scale(const rl_fuser *a) {
    return a->f.npost == 0 && a->kind != RL_LEAD_ROWS && rl_fuse_constant(a, a->lead->info->in[1]) && rl_val(a->x->g, a->lead->info->in[1])->rank != RL_NORANK &&
           (a->kind == RL_LEAD_CONV || rl_val(a->x->g, a->lead->info->in[1])->rank == 2) &&
           (rl_in(a->lead->info, 2).i == RL_NONE || rl_fuse_constant(a, a->lead->info->in[2]));
}

static bool fold_constant(rl_fuser *a, uint32_t step, rl_row_op op, rl_value operand) {
    int64_t n = channels(a), at = 0;
    const float *x = n && can_scale(a) ? per_channel(a, operand, n, &at) : NULL;
    if (!x || !rl_fuse_same_dims(a, a->value, rl_fuse_node(a, step)->out[0])) return false;
    start_scale(a, n);
    for (int64_t i = 0; i < n; i++) {
        float k = x[i * at];
        if (op == RL_ROW_ADD) a->f.shift[i] += k;
        else if (op == RL_ROW_SUB) a->f.shift[i] -= k;
        else a->f.scale[i] *= op == RL_ROW_DIV ? 1 / k : k, a->f.shift[i] *= op == RL_ROW_DIV ? 1 / k : k;
    }
    return took(a, step);
}

static bool take_normalization(rl_fuser *a, uint32_t step) {
    const rl_nodeinfo *n = rl_fuse_node(a, step);
    int64_t count = channels(a), at[4];
    const float *x[4];
    if (n->since < 9 || n->nin != 5 || !rl_same(n->in[0], a->value) || rl_attr_int(n, "training_mode", 0) || !count) return false;
    if (a->kind == RL_LEAD_PRODUCT || a->f.npost || (a->kind == RL_LEAD_CONV && !can_scale(a)) || !rl_fuse_same_dims(a, a->value, n->out[0])) return false;
    for (uint32_t i = 0; i < 4; i++) {
        const rl_tensor *t = rl_fuse_constant(a, n->in[1 + i]);
        if (!t || t->rank != 1 || t->dim[0] != count) return false;
        x[i] = rl_data(t), at[i] = t->stride[0];
    }
    start_scale(a, count);
    for (int64_t i = 0; i < count; i++) {
        float s = x[0][i * at[0]] / sqrtf(x[3][i * at[3]] + rl_attr_float(n, "epsilon", 1e-5f));
        a->f.shift[i] = (a->f.shift[i] - x[2][i * at[2]]) * s + x[1][i * at[1]];
        a->f.scale[i] *= s;
    }
    return took(a, step);
}

/* What oneDNN has as a post-op (prim.c). */
static bool is_post(rl_row_op op) {
    switch (op) {
    case RL_ROW_RELU: case RL_ROW_LEAKY_RELU: case RL_ROW_CLIP: case RL_ROW_SIGMOID: case RL_ROW_SILU: case RL_ROW_HARD_SIGMOID:
    case RL_ROW_HARD_SWISH: case RL_ROW_TANH: case RL_ROW_GELU: case RL_ROW_GELU_TANH: case RL_ROW_ELU: return true;
    default: return false;
    }
}

static bool take_unary(rl_fuser *a, uint32_t step) {
    const rl_step *s = &a->x->step[step];
    const rl_nodeinfo *n = s->info;
    rl_post post;
    bool clips = a->as[step]->arg == RL_ROW_CLIP;
    for (uint32_t i = 1; clips && i < n->nin; i++)
        if (rl_has(n->in[i]) && !rl_fuse_constant(a, n->in[i])) return false;
    if (!rl_unary_post(n, a->as[step]->arg, clips ? rl_fuse_constant(a, rl_in(n, 1)) : NULL, clips ? rl_fuse_constant(a, rl_in(n, 2)) : NULL, &post)) return false;
    if (a->kind != RL_LEAD_ROWS && (!is_post(post.op) || (clips && post.p > post.q))) return false;
    return push(a, post.op, post.p, post.q, RL_NOVALUE) && took(a, step);
}

/* An op with one number as p x + q, to the last bit; a division is none. */
static bool push_linear(rl_fuser *a, rl_row_op op, float k) {
    switch (op) {
    case RL_ROW_ADD: return push(a, RL_ROW_LINEAR, 1, k, RL_NOVALUE);
    case RL_ROW_SUB: return push(a, RL_ROW_LINEAR, 1, -k, RL_NOVALUE);
    case RL_ROW_RSUB: return push(a, RL_ROW_LINEAR, -1, k, RL_NOVALUE);
    case RL_ROW_MUL: return push(a, RL_ROW_LINEAR, k, -0.0f, RL_NOVALUE); /* + 0 would take a zero's sign */
    default: return false;
    }
}

/* A number for each channel, after other ops: kernel posts of a device takes it, besides a bias and one more operand. */
static bool takes_channels(const rl_fuser *a, rl_value operand) {
    enum { OWN = 3 /* a convolution's inputs */ };
    int64_t n = channels(a), at;
    return a->device && a->kind == RL_LEAD_CONV && n && a->nin < OWN + 2 && rl_attr_int(a->lead->info, "group", 1) == 1 && per_channel(a, operand, n, &at);
}

/* v op v is left alone: its operand would be what is not there any more. */
static bool take_binary(rl_fuser *a, uint32_t step) {
    const rl_step *s = &a->x->step[step];
    const rl_nodeinfo *n = s->info;
    rl_row_op op = (rl_row_op)a->as[step]->arg;
    rl_value operand = rl_fuse_other(n, a->value);
    bool first = rl_same(n->in[0], a->value), commutes = op == RL_ROW_ADD || op == RL_ROW_MUL;
    float k;
    if (rl_same(n->in[0], n->in[1]) || !rl_fuse_is_type(a, rl_val(a->x->g, operand)->dtype) || !rl_fuse_same_dims(a, a->value, n->out[0])) return false;
    if (a->kind == RL_LEAD_ROWS) {
        if (!first) op = op == RL_ROW_SUB ? RL_ROW_RSUB : op == RL_ROW_DIV ? RL_ROW_RDIV : op;
        if (a->device && rl_fuse_scalar(a, operand, &k) && push_linear(a, op, k)) return took(a, step);
        return push(a, op, 0, 0, operand) && took(a, step);
    }
    if ((first || commutes) && fold_constant(a, step, op, operand)) return true;
    if (!commutes) return false;
    if (rl_fuse_scalar(a, operand, &k)) return push_linear(a, op, k) && took(a, step);
    return (rl_fuse_same_dims(a, a->value, operand) || takes_channels(a, operand)) && push(a, op, 0, 0, operand) && took(a, step);
}

/* A QuantizeLinear by one scale and the DequantizeLinear that takes it back: whole numbers of the scale. */
static bool take_rounding(rl_fuser *a, uint32_t step) {
    const rl_nodeinfo *q = rl_fuse_node(a, step);
    uint32_t back;
    float scale, least, most;
    if (a->kind != RL_LEAD_ROWS || a->f.npost + 3 > RL_POSTS || !rl_same(q->in[0], a->value) || rl_fuse_readers(a, q->out[0], &back, 1) != 1) return false;
    if (a->of[q->out[0].i].n != 1) return false; /* a step of bytes reads it, too, for a node that reads what is taken back */
    if (rl_fuse_fn(a, back) != rl_fast_dequantize || !rl_fuse_same_dims(a, a->value, rl_fuse_node(a, back)->out[0])) return false;
    if (!rl_fuse_rounding(a, q, rl_fuse_node(a, back), &scale, &least, &most)) return false;
    return push(a, RL_ROW_ROUND, scale, 0, RL_NOVALUE) && push(a, RL_ROW_CLIP, least, most, RL_NOVALUE) && push(a, RL_ROW_LINEAR, scale, 0, RL_NOVALUE) &&
           took(a, back);
}

/* One more; false: that was all. */
static bool take_next(rl_fuser *a) {
    uint32_t s, pattern = rl_fuse_gelu(a, a->value);
    if (pattern != RL_NONE && rl_fuse_same_dims(a, a->value, rl_fuse_node(a, pattern)->out[0]))
        return push(a, RL_ROW_GELU, 0, 0, RL_NOVALUE) && took(a, pattern);
    pattern = rl_fuse_hard_swish(a, a->value);
    if (pattern != RL_NONE && rl_fuse_same_dims(a, a->value, rl_fuse_node(a, pattern)->out[0]))
        return push(a, RL_ROW_HARD_SWISH, 0, 0, RL_NOVALUE) && took(a, pattern);
    pattern = rl_fuse_silu(a, a->value);
    if (pattern != RL_NONE) return push(a, RL_ROW_SILU, 1, 0, RL_NOVALUE) && took(a, pattern);
    if (rl_fuse_readers(a, a->value, &s, 1) != 1) return false;
    rl_kernel_fn *fn = rl_fuse_fn(a, s);
    if (fn == rl_fast_unary) return take_unary(a, s);
    if (fn == rl_fast_binary) return take_binary(a, s);
    if (fn == rl_fast_quantize) return take_rounding(a, s);
    return fn == rl_ref_batch_normalization && take_normalization(a, s);
}

/* ---- steps ---- */

void rl_fuse_take(rl_fuser *a, uint32_t step, uint32_t by) {
    a->step_of[a->x->step[step].node.i] = by;
    if (step != by) a->x->step[step].info = NULL;
}

/* The nodes that were taken in, found backwards from the value, run in the joined step only. */
static void drop_taken(rl_fuser *a, uint32_t lead) {
    rl_exec *x = a->x;
    rl_value v = x->step[a->last].info->out[0];
    struct { rl_value *p; uint32_t n, cap; } open = {0};
    struct { uint32_t *p; uint32_t n, cap; } gone = {0};
    rl_push(&x->g->mem, open, v);
    while (open.n) {
        rl_value o = open.p[--open.n];
        rl_node def = rl_val(x->g, o)->def;
        uint32_t s = def.i == RL_NONE ? RL_NONE : a->step_of[def.i];
        if (s == RL_NONE || s < lead) continue;
        bool operand = false;
        for (uint32_t i = 0; i < a->nin; i++) operand = operand || rl_same(a->in[i], o);
        if (operand) continue;
        const rl_nodeinfo *n = x->step[s].info;
        a->step_of[def.i] = RL_NONE;
        rl_push(&x->g->mem, gone, s);
        for (uint32_t i = 0; s != lead && i < n->nin; i++)
            if (rl_has(n->in[i])) rl_push(&x->g->mem, open, n->in[i]);
    }
    for (uint32_t i = 0; i < gone.n; i++) rl_fuse_take(a, gone.p[i], a->last);
}

/* Where nobody else reads it the Pad is gone. */
static void take_pads(rl_fuser *a, rl_nodeinfo *n) {
    if (a->pad.i == RL_NONE) return;
    if (!a->pad_shared) rl_fuse_take(a, a->step_of[a->pad.i], a->last);
    rl_set_pads(a->x->g, n, a->pads, 2 * (rl_val(a->x->g, a->value)->rank - 2), false);
}

void rl_fuse_keep_parts(const rl_fuser *a, rl_step *s, uint32_t last) {
    uint32_t n = 0;
    for (uint32_t i = 0; i <= last; i++) n += a->step_of[a->whole[i].node.i] == last;
    s->part = rl_new(&a->x->g->mem, rl_step, n);
    for (uint32_t i = 0; i <= last; i++)
        if (a->step_of[a->whole[i].node.i] == last) s->part[s->npart++] = a->whole[i];
}

static void join(rl_fuser *a, uint32_t lead) {
    rl_exec *x = a->x;
    rl_arena *mem = &x->g->mem;
    rl_step *to = &x->step[a->last];
    rl_nodeinfo *n = rl_copy(mem, a->lead->info, sizeof *n);
    rl_step s = *a->lead;
    drop_taken(a, lead);
    take_pads(a, n);
    n->in = rl_copy(mem, a->in, a->nin * sizeof *a->in);
    n->nin = a->nin;
    n->out = rl_copy(mem, &a->value, sizeof a->value);
    n->nout = 1;
    s.node = to->node;
    s.info = n;
    s.fused = rl_copy(mem, &a->f, sizeof a->f);
    if (a->device) rl_fuse_keep_parts(a, &s, a->last);
    rl_run_by(x, &s, a->kind != RL_LEAD_ROWS ? s.kernel.p[0] : a->device ? a->device->chain : &chain_kernel);
    a->as[a->last] = a->kind == RL_LEAD_ROWS ? &chain_kernel : a->as[lead];
    *to = s;
}

/* The first op of a chain, as the first post-op. */
static bool start_rows(rl_fuser *a, uint32_t i) {
    rl_step *s = &a->x->step[i];
    rl_kernel_fn *fn = rl_fuse_fn(a, i);
    bool binary = fn == rl_fast_binary, rounds = fn == rl_fast_quantize;
    if (!binary && !rounds && fn != rl_fast_unary && fn != rl_ref_batch_normalization) return false;
    uint32_t slot = binary && !rl_fuse_same_dims(a, s->info->in[0], s->info->out[0]) ? 1 : 0;
    a->value = a->in[0] = s->info->in[slot];
    a->nin = 1;
    if (rounds) return take_rounding(a, i);
    if (!rl_fuse_same_dims(a, a->value, s->info->out[0])) return false;
    return binary ? take_binary(a, i) : fn == rl_fast_unary ? take_unary(a, i) : take_normalization(a, i);
}

/* Only what the fast kernel is sure to take: what is fused has no reference kernel. */
static bool can_lead(const rl_fuser *a, const rl_nodeinfo *n, rl_kernel_fn *fn) {
    const rl_graph *g = a->x->g;
    for (uint32_t i = 0; i < n->nin; i++) {
        const rl_valinfo *v = rl_has(n->in[i]) ? rl_val(g, n->in[i]) : NULL;
        if (v && (!rl_fuse_is_type(a, v->dtype) || v->rank == RL_NORANK)) return false;
        if (v && i < 2 && (v->rank < (a->kind == RL_LEAD_CONV ? 3u : 2u) || v->rank > (a->kind == RL_LEAD_CONV ? 5u : 8u))) return false;
        for (uint32_t k = 0; v && k < v->rank; k++)
            if (v->dim[k] == 0) return false;
    }
    if (n->nin < 2 || !rl_has(n->in[1]) || fn != rl_fast_gemm) return n->nin >= 2 && rl_has(n->in[1]);
    const rl_tensor *z = rl_fuse_constant(a, rl_in(n, 2));
    const rl_valinfo *y = rl_val(g, n->out[0]);
    if (rl_attr_float(n, "alpha", 1) != 1 && !rl_fuse_constant(a, n->in[1])) return false;
    if (!rl_has(rl_in(n, 2)) || rl_attr_float(n, "beta", 1) == 0) return true;
    return z && y->rank == 2 && z->rank >= 1 && z->rank <= 2 && z->dim[z->rank - 1] == y->dim[1] && (z->rank == 1 || z->dim[0] == 1);
}

/* A Pad of zeros, by constant amounts that only lie in the spatial dims: in the pads of each convolution that reads it. */
static void find_pad(rl_fuser *a, const rl_nodeinfo *conv) {
    rl_exec *x = a->x;
    rl_node def = rl_val(x->g, conv->in[0])->def;
    uint32_t s = def.i == RL_NONE ? RL_NONE : a->step_of[def.i], reader;
    if (s == RL_NONE || rl_fuse_fn(a, s) != rl_ref_pad) return;
    a->pad_shared = rl_fuse_readers(a, conv->in[0], &reader, 1) != 1;
    if (a->pad_shared && a->device) return; /* whose steps keep all that they stand for */
    const rl_nodeinfo *pad = x->step[s].info;
    const int64_t *sum = rl_pads_sum(x, pad, conv);
    if (!sum) return;
    a->pad = def;
    a->pads = sum;
    a->in[0] = pad->in[0];
    a->count = 1;
}

bool rl_fuse_begin(rl_fuser *a, rl_dtype t) {
    a->type = a->device ? t : RL_F32;
    return t == RL_F32 || (a->device && (t == RL_F16 || t == RL_BF16));
}

static bool start(rl_fuser *a, uint32_t i) {
    rl_step *s = &a->x->step[i];
    rl_kernel_fn *fn = rl_fuse_fn(a, i);
    a->lead = s;
    a->f = (rl_fused){0};
    a->count = 0;
    a->pad = RL_NONODE;
    a->last = i;
    if (!s->info || s->fused || !fn) return false;
    a->kind = fn == rl_fast_conv || fn == rl_fast_conv_transpose ? RL_LEAD_CONV : fn == rl_fast_matmul || fn == rl_fast_gemm ? RL_LEAD_PRODUCT : RL_LEAD_ROWS;
    if (!rl_fuse_begin(a, rl_val(a->x->g, s->info->in[0])->dtype) || s->info->nout != 1) return false;
    if (a->kind == RL_LEAD_ROWS) return start_rows(a, i);
    if (!can_lead(a, s->info, fn)) return false;
    for (a->nin = 0; a->nin < (fn == rl_fast_matmul ? 2u : 3u); a->nin++) a->in[a->nin] = rl_in(s->info, a->nin);
    a->value = s->info->out[0];
    if (fn == rl_fast_conv) find_pad(a, s->info);
    return rl_fuse_is_type(a, rl_val(a->x->g, a->value)->dtype);
}

/* Pads that are in the pads of all who read them. */
static void drop_pads(const rl_fuser *a, rl_arena *tmp) {
    const rl_exec *x = a->x;
    bool *read = rl_new(tmp, bool, x->g->nval);
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        if (!n) continue;
        for (uint32_t k = 0; k < n->nin; k++)
            if (rl_has(n->in[k])) read[n->in[k].i] = true;
        for (uint32_t k = 0; k < n->ncap; k++) read[n->cap[k].i] = true;
    }
    for (uint32_t i = 0; i < x->nstep; i++) {
        rl_step *s = &x->step[i];
        if (!s->info || rl_fuse_fn(a, i) != rl_ref_pad || s->info->nout != 1) continue;
        if (!read[s->info->out[0].i] && !rl_val(x->g, s->info->out[0])->is_output) s->info = NULL;
    }
}

/* With a device the analysis is the fast kernels', for steps whose first kernel is the device's, and Reshapes, which are views there. */
static void set_kernels(rl_fuser *a, rl_arena *tmp) {
    rl_exec *x = a->x;
    a->as = rl_new(tmp, const rl_kernel *, x->nstep + 1);
    a->device = x->rt->device;
    if (a->device) a->whole = rl_copy(tmp, x->step, x->nstep * sizeof *x->step);
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_step *s = &x->step[i];
        if (!s->kernel.n || (a->device && !rl_device_has(x->rt, s->kernel.p[0]) && rl_step_fn(s) != rl_ref_reshape)) continue;
        a->as[i] = a->device ? rl_kernel_find(&rl_backend_fast, s->info) : s->kernel.p[0];
    }
}

const rl_readers *rl_find_readers(const rl_exec *x, rl_arena *tmp) {
    rl_readers *of = rl_new(tmp, rl_readers, x->g->nval);
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        for (uint32_t k = 0; k < n->nin; k++)
            if (rl_has(n->in[k])) of[n->in[k].i].n++, of[n->in[k].i].last = &x->step[i];
        for (uint32_t k = 0; k < n->ncap; k++) of[n->cap[k].i].n += 2;
    }
    return of;
}

rl_step *rl_only_reader(const rl_exec *x, const rl_readers *of, rl_value v, rl_kernel_fn *fn) {
    rl_step *s = of[v.i].n == 1 && !rl_val(x->g, v)->is_output ? of[v.i].last : NULL;
    return s && s->info && rl_step_fn(s) == fn && rl_same(s->info->in[0], v) ? s : NULL;
}

void rl_run_by(const rl_exec *x, rl_step *s, const rl_kernel *k) {
    s->kernel.p = NULL, s->kernel.n = s->kernel.cap = 0;
    rl_push(&x->g->mem, s->kernel, k);
}

void rl_drop_steps(rl_exec *x) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->nstep; i++)
        if (x->step[i].info) x->step[kept++] = x->step[i];
    x->nstep = kept;
}

void rl_join_each(rl_exec *x, rl_join_fn *join_at) {
    rl_arena tmp;
    rl_arena_init(&tmp, x->g->ctx);
    const rl_readers *of = rl_find_readers(x, &tmp);
    for (uint32_t i = 0; i < x->nstep; i++)
        if (x->step[i].info) join_at(x, of, &x->step[i]);
    rl_drop_steps(x);
    rl_arena_free(&tmp);
}

void rl_fuse(rl_exec *x) {
    rl_arena tmp;
    rl_arena_init(&tmp, x->g->ctx);
    rl_fuser a = {.x = x, .step_of = rl_new(&tmp, uint32_t, x->g->nnode)};
    memset(a.step_of, 0xff, x->g->nnode * sizeof *a.step_of);
    set_kernels(&a, &tmp);
    a.of = rl_find_readers(x, &tmp);
    for (uint32_t i = 0; i < x->nstep; i++) a.step_of[x->step[i].node.i] = i;
    for (uint32_t i = 0; i < x->nstep; i++) rl_fuse_attention(&a, i);
    for (uint32_t i = 0; i < x->nstep; i++) {
        if (!start(&a, i)) continue;
        while (take_next(&a)) continue;
        if (a.count > (a.kind == RL_LEAD_ROWS && (a.device || !a.f.scale))) join(&a, i);
    }
    drop_pads(&a, &tmp);
    rl_drop_steps(x);
    rl_arena_free(&tmp);
}
