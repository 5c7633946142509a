/* Which nodes run as one: see fuse.h.  Each step that may lead takes in the nodes that follow it, one by one, while each is the only
 * reader of what is made so far; the joined step stands where the last of them stood, after all that they read. */
#include "fuse.h"

#include <math.h>
#include <string.h>

#include "fast.h"
#include "kernels_fast.h"

typedef enum { CONV, PRODUCT, ROWS } lead_kind;

typedef struct {
    rl_exec *x;
    uint32_t *step_of; /* [node] RL_NONE: it does not run, or in another's step */
    /* The one at work: */
    lead_kind kind;
    rl_step *lead;
    rl_fused f;
    rl_value value;    /* what is made so far */
    uint32_t last;     /* the step that made it */
    uint32_t axis, count; /* of the channels, from the front; nodes taken in */
    rl_value in[3 + RL_POSTS];
    uint32_t nin;
    rl_node pad;       /* a Pad before it, that it does itself */
    const int64_t *pads;
} fuser;

static const rl_kernel chain_kernel = {"", "", 0, RL_NEWEST, RL_STRIDED, RL_T(RL_F32), rl_fast_chain, 0};

/* ---- what is known ---- */

/* NULL: none, or the node leaves out an input that the op must have, or its output. */
static rl_kernel_fn *fn_of(const rl_step *s) {
    rl_kernel_fn *fn = s->kernel.n ? s->kernel.p[0]->fn : NULL;
    const rl_nodeinfo *n = s->info;
    uint32_t need = fn == rl_ref_batch_normalization ? 5 : fn == rl_fast_unary ? 1 : 2;
    if (!n || n->nin < need || !n->nout || !rl_has(n->out[0])) return NULL;
    for (uint32_t i = 0; i < need; i++)
        if (!rl_has(n->in[i])) return NULL;
    return fn;
}

/* The constant, an f32 tensor; else NULL. */
static const rl_tensor *constant(const fuser *a, rl_value v) {
    const rl_tensor *t = rl_has(v) ? &a->x->constant[v.i] : NULL;
    return t && t->kind == RL_TENSOR && t->dtype == RL_F32 ? t : NULL;
}

static bool scalar(const fuser *a, rl_value v, float *to) {
    const rl_tensor *t = constant(a, v);
    if (!t || rl_numel(t) != 1) return false;
    *to = *(const float *)rl_data(t);
    return true;
}

static bool is_near(const fuser *a, rl_value v, double want) {
    float x;
    return scalar(a, v, &x) && fabs(x - want) < 1e-4 * fabs(want);
}

static bool same_dims(const fuser *a, rl_value v, rl_value w) {
    const rl_valinfo *p = rl_val(a->x->g, v), *q = rl_val(a->x->g, w);
    bool same = p->rank == q->rank && p->rank != RL_NORANK && p->dtype == RL_F32 && q->dtype == RL_F32;
    for (uint32_t i = 0; same && i < p->rank; i++) same = p->dim[i] == q->dim[i];
    return same;
}

/* The steps that read v, at most `most`; RL_NONE where there are more, or a body or the caller reads it. */
static uint32_t readers(const fuser *a, rl_value v, uint32_t *step, uint32_t most) {
    const rl_valinfo *x = rl_val(a->x->g, v);
    uint32_t n = 0;
    if (x->is_output) return RL_NONE;
    for (uint32_t i = 0; i < x->nuse; i++) {
        uint32_t s = a->step_of[x->use[i].node.i];
        if (x->use[i].slot >= rl_nod(a->x->g, x->use[i].node)->nin) return RL_NONE;
        if (s == RL_NONE) continue;
        bool seen = false;
        for (uint32_t k = 0; k < n; k++) seen = seen || step[k] == s;
        if (seen) continue;
        if (n == most) return RL_NONE;
        step[n++] = s;
    }
    return n;
}

/* The only step that reads v, when it is of this kernel; else RL_NONE. */
static uint32_t only_reader(const fuser *a, rl_value v, rl_kernel_fn *fn, int arg) {
    uint32_t s;
    if (readers(a, v, &s, 1) != 1 || fn_of(&a->x->step[s]) != fn || (arg >= 0 && a->x->step[s].kernel.p[0]->arg != arg)) return RL_NONE;
    return s;
}

static const rl_nodeinfo *node_at(const fuser *a, uint32_t step) {
    return a->x->step[step].info;
}

static rl_value other_input(const rl_nodeinfo *n, rl_value v) {
    return rl_same(n->in[0], v) ? n->in[1] : n->in[0];
}

/* ---- patterns that stand for one op ---- */

/* v sigmoid(v): the step of the Mul. */
static uint32_t find_silu(const fuser *a, rl_value v) {
    uint32_t s[2];
    if (readers(a, v, s, 2) != 2) return RL_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        const rl_step *sig = &a->x->step[s[i]];
        if (fn_of(sig) != rl_fast_unary || sig->kernel.p[0]->arg != RL_ROW_SIGMOID) continue;
        if (only_reader(a, sig->info->out[0], rl_fast_binary, RL_ROW_MUL) == s[1 - i]) return s[1 - i];
    }
    return RL_NONE;
}

/* From step s, which reads v, 1 + erf(v / sqrt 2): the step of that Add. */
static uint32_t find_one_plus_erf(const fuser *a, rl_value v, uint32_t s) {
    const rl_step *scale = &a->x->step[s];
    if (fn_of(scale) != rl_fast_binary) return RL_NONE;
    int op = scale->kernel.p[0]->arg;
    rl_value by = other_input(scale->info, v);
    bool fits = op == RL_ROW_DIV ? rl_same(scale->info->in[0], v) && is_near(a, by, 1.41421356) : op == RL_ROW_MUL && is_near(a, by, 0.70710678);
    uint32_t erf = fits ? only_reader(a, scale->info->out[0], rl_fast_unary, RL_ROW_ERF) : RL_NONE;
    uint32_t add = erf == RL_NONE ? RL_NONE : only_reader(a, node_at(a, erf)->out[0], rl_fast_binary, RL_ROW_ADD);
    if (add == RL_NONE || !is_near(a, other_input(node_at(a, add), node_at(a, erf)->out[0]), 1)) return RL_NONE;
    return add;
}

/* v (1 + erf(v / sqrt 2)) / 2, halved before or after: the step of the last Mul. */
static uint32_t find_gelu(const fuser *a, rl_value v) {
    uint32_t s[2];
    if (readers(a, v, s, 2) != 2) return RL_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t add = find_one_plus_erf(a, v, s[i]), other = s[1 - i];
        if (add == RL_NONE || fn_of(&a->x->step[other]) != rl_fast_binary || a->x->step[other].kernel.p[0]->arg != RL_ROW_MUL) continue;
        rl_value sum = node_at(a, add)->out[0], made = node_at(a, other)->out[0];
        uint32_t product = only_reader(a, sum, rl_fast_binary, RL_ROW_MUL), half = only_reader(a, made, rl_fast_binary, RL_ROW_MUL);
        if (half == RL_NONE) continue;
        if (product == other && is_near(a, other_input(node_at(a, half), made), 0.5)) return half;
        if (product == half && is_near(a, other_input(node_at(a, other), v), 0.5)) return half;
    }
    return RL_NONE;
}

/* ---- taking in ---- */

static bool push(fuser *a, rl_row_op op, float p, float q, rl_value in) {
    if (a->f.npost == RL_POSTS) return false;
    rl_post *o = &a->f.post[a->f.npost++];
    *o = (rl_post){op, p, q, RL_NONE};
    if (rl_has(in)) {
        o->in = a->nin;
        a->in[a->nin++] = in;
    }
    return true;
}

static bool took(fuser *a, uint32_t step) {
    a->value = node_at(a, step)->out[0];
    a->last = step;
    a->count++;
    return true;
}

/* How many channels the value has; 0: not known. */
static int64_t channels(const fuser *a) {
    const rl_valinfo *v = rl_val(a->x->g, a->value);
    if (v->rank == RL_NORANK || v->rank < 2) return 0;
    int64_t n = v->dim[a->kind == PRODUCT ? v->rank - 1 : 1];
    return n > 0 ? n : 0;
}

/* The constant as one number for each channel, or one for all: its element i is at[i * *step]. */
static const float *per_channel(const fuser *a, rl_value v, int64_t n, int64_t *step) {
    const rl_tensor *t = constant(a, v);
    uint32_t rank = rl_val(a->x->g, a->value)->rank, from_end = a->kind == PRODUCT ? 1 : rank - 1;
    if (!t || t->rank > rank) return NULL;
    *step = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] == 1) continue;
        if (t->rank - i != from_end || t->dim[i] != n) return NULL;
        *step = t->stride[i];
    }
    return rl_data(t);
}

static void start_scale(fuser *a, int64_t n) {
    if (a->f.scale) return;
    a->f.nchannel = n;
    a->f.scale = rl_new(&a->x->g->mem, float, n);
    a->f.shift = rl_new(&a->x->g->mem, float, n);
    for (int64_t i = 0; i < n; i++) a->f.scale[i] = 1;
}

/* y * s + t into what the lead multiplies with: not after another op, nor where the weights are no constant. */
static bool can_scale(const fuser *a) {
    return a->f.npost == 0 && a->kind != ROWS && constant(a, a->lead->info->in[1]) && rl_val(a->x->g, a->lead->info->in[1])->rank != RL_NORANK &&
           (a->kind == CONV || rl_val(a->x->g, a->lead->info->in[1])->rank == 2) &&
           (rl_in(a->lead->info, 2).i == RL_NONE || constant(a, a->lead->info->in[2]));
}

static bool fold_constant(fuser *a, uint32_t step, rl_row_op op, rl_value operand) {
    int64_t n = channels(a), at = 0;
    const float *x = n && can_scale(a) ? per_channel(a, operand, n, &at) : NULL;
    if (!x || !same_dims(a, a->value, node_at(a, step)->out[0])) return false;
    start_scale(a, n);
    for (int64_t i = 0; i < n; i++) {
        float k = x[i * at];
        if (op == RL_ROW_ADD) a->f.shift[i] += k;
        else if (op == RL_ROW_SUB) a->f.shift[i] -= k;
        else a->f.scale[i] *= op == RL_ROW_DIV ? 1 / k : k, a->f.shift[i] *= op == RL_ROW_DIV ? 1 / k : k;
    }
    return took(a, step);
}

static bool take_normalization(fuser *a, uint32_t step) {
    const rl_nodeinfo *n = node_at(a, step);
    int64_t count = channels(a), at[4];
    const float *x[4];
    if (n->since < 9 || n->nin != 5 || !rl_same(n->in[0], a->value) || rl_attr_int(n, "training_mode", 0) || !count) return false;
    if (a->kind == PRODUCT || a->f.npost || (a->kind == CONV && !can_scale(a)) || !same_dims(a, a->value, n->out[0])) return false;
    for (uint32_t i = 0; i < 4; i++) {
        const rl_tensor *t = constant(a, n->in[1 + i]);
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

static bool take_unary(fuser *a, uint32_t step) {
    const rl_step *s = &a->x->step[step];
    const rl_nodeinfo *n = s->info;
    rl_post post;
    bool clips = s->kernel.p[0]->arg == RL_ROW_CLIP;
    for (uint32_t i = 1; clips && i < n->nin; i++)
        if (rl_has(n->in[i]) && !constant(a, n->in[i])) return false;
    if (!rl_unary_post(n, s->kernel.p[0]->arg, clips ? constant(a, rl_in(n, 1)) : NULL, clips ? constant(a, rl_in(n, 2)) : NULL, &post)) return false;
    if (a->kind != ROWS && (!is_post(post.op) || (clips && post.p > post.q))) return false;
    return push(a, post.op, post.p, post.q, RL_NOVALUE) && took(a, step);
}

/* v op v is left alone: its operand would be what is not there any more. */
static bool take_binary(fuser *a, uint32_t step) {
    const rl_step *s = &a->x->step[step];
    const rl_nodeinfo *n = s->info;
    rl_row_op op = (rl_row_op)s->kernel.p[0]->arg;
    rl_value operand = other_input(n, a->value);
    bool first = rl_same(n->in[0], a->value), commutes = op == RL_ROW_ADD || op == RL_ROW_MUL;
    float k;
    if (rl_same(n->in[0], n->in[1]) || rl_val(a->x->g, operand)->dtype != RL_F32 || !same_dims(a, a->value, n->out[0])) return false;
    if (a->kind == ROWS) {
        if (!first) op = op == RL_ROW_SUB ? RL_ROW_RSUB : op == RL_ROW_DIV ? RL_ROW_RDIV : op;
        return push(a, op, 0, 0, operand) && took(a, step);
    }
    if ((first || commutes) && fold_constant(a, step, op, operand)) return true;
    if (!commutes) return false;
    if (scalar(a, operand, &k)) return push(a, RL_ROW_LINEAR, op == RL_ROW_MUL ? k : 1, op == RL_ROW_ADD ? k : 0, RL_NOVALUE) && took(a, step);
    return same_dims(a, a->value, operand) && push(a, op, 0, 0, operand) && took(a, step);
}

/* One more; false: that was all. */
static bool take_next(fuser *a) {
    uint32_t s, pattern = find_gelu(a, a->value);
    if (pattern != RL_NONE && same_dims(a, a->value, node_at(a, pattern)->out[0]))
        return push(a, RL_ROW_GELU, 0, 0, RL_NOVALUE) && took(a, pattern);
    pattern = find_silu(a, a->value);
    if (pattern != RL_NONE) return push(a, RL_ROW_SILU, 1, 0, RL_NOVALUE) && took(a, pattern);
    if (readers(a, a->value, &s, 1) != 1) return false;
    rl_kernel_fn *fn = fn_of(&a->x->step[s]);
    if (fn == rl_fast_unary) return take_unary(a, s);
    if (fn == rl_fast_binary) return take_binary(a, s);
    return fn == rl_ref_batch_normalization && take_normalization(a, s);
}

/* ---- steps ---- */

/* The nodes that were taken in, found backwards from the value, run in the joined step only. */
static void drop_taken(fuser *a, uint32_t lead) {
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
        rl_push(&x->g->mem, gone, def.i);
        for (uint32_t i = 0; s != lead && i < n->nin; i++)
            if (rl_has(n->in[i])) rl_push(&x->g->mem, open, n->in[i]);
    }
    for (uint32_t i = 0; i < gone.n; i++) a->step_of[gone.p[i]] = a->last; /* who asks for readers finds the joined step */
}

/* The Pad is gone: who asks for readers of its input finds the joined step. */
static void take_pads(fuser *a, rl_nodeinfo *n) {
    rl_graph *g = a->x->g;
    uint32_t k = 0;
    if (a->pad.i == RL_NONE) return;
    a->x->step[a->step_of[a->pad.i]].info = NULL;
    a->step_of[a->pad.i] = a->last;
    rl_attr *attr = rl_new(&g->mem, rl_attr, n->nattr + 1);
    for (uint32_t i = 0; i < n->nattr; i++)
        if (n->attr[i].name != rl_internz(g->ctx, "pads") && n->attr[i].name != rl_internz(g->ctx, "auto_pad")) attr[k++] = n->attr[i];
    attr[k++] = rl_attr_of_ints(g, "pads", a->pads, 2 * (rl_val(g, a->value)->rank - 2));
    n->attr = attr;
    n->nattr = k;
}

static void join(fuser *a, uint32_t lead) {
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
    s.kernel.p = rl_copy(mem, s.kernel.p, sizeof *s.kernel.p);
    s.kernel.n = s.kernel.cap = 1;
    if (a->kind == ROWS) s.kernel.p[0] = &chain_kernel;
    a->lead->info = NULL; /* it stands elsewhere now */
    *to = s;
}

/* The first op of a chain, as the first post-op. */
static bool start_rows(fuser *a, uint32_t i) {
    rl_step *s = &a->x->step[i];
    rl_kernel_fn *fn = fn_of(s);
    bool binary = fn == rl_fast_binary;
    if (!binary && fn != rl_fast_unary && fn != rl_ref_batch_normalization) return false;
    uint32_t slot = binary && !same_dims(a, s->info->in[0], s->info->out[0]) ? 1 : 0;
    a->value = a->in[0] = s->info->in[slot];
    a->nin = 1;
    if (!same_dims(a, a->value, s->info->out[0])) return false;
    return binary ? take_binary(a, i) : fn == rl_fast_unary ? take_unary(a, i) : take_normalization(a, i);
}

/* Only what the fast kernel is sure to take: what is fused has no reference kernel. */
static bool can_lead(const fuser *a, const rl_nodeinfo *n, rl_kernel_fn *fn) {
    const rl_graph *g = a->x->g;
    for (uint32_t i = 0; i < n->nin; i++) {
        const rl_valinfo *v = rl_has(n->in[i]) ? rl_val(g, n->in[i]) : NULL;
        if (v && (v->dtype != RL_F32 || v->rank == RL_NORANK)) return false;
        if (v && i < 2 && (v->rank < (a->kind == CONV ? 3u : 2u) || v->rank > (a->kind == CONV ? 5u : 8u))) return false;
        for (uint32_t k = 0; v && k < v->rank; k++)
            if (v->dim[k] == 0) return false;
    }
    if (n->nin < 2 || !rl_has(n->in[1]) || fn != rl_fast_gemm) return n->nin >= 2 && rl_has(n->in[1]);
    const rl_tensor *z = constant(a, rl_in(n, 2));
    const rl_valinfo *y = rl_val(g, n->out[0]);
    if (rl_attr_float(n, "alpha", 1) != 1 && !constant(a, n->in[1])) return false;
    if (!rl_has(rl_in(n, 2)) || rl_attr_float(n, "beta", 1) == 0) return true;
    return z && y->rank == 2 && z->rank >= 1 && z->rank <= 2 && z->dim[z->rank - 1] == y->dim[1] && (z->rank == 1 || z->dim[0] == 1);
}

/* A Pad of zeros, by constant amounts that only lie in the spatial dims, and that only this convolution reads: in its pads. */
static void find_pad(fuser *a, const rl_nodeinfo *conv) {
    rl_exec *x = a->x;
    rl_node def = rl_val(x->g, conv->in[0])->def;
    uint32_t s = def.i == RL_NONE ? RL_NONE : a->step_of[def.i], reader;
    float zero = 0;
    const int64_t *own = NULL;
    if (s == RL_NONE || fn_of(&x->step[s]) != rl_ref_pad || readers(a, conv->in[0], &reader, 1) != 1) return;
    const rl_nodeinfo *pad = x->step[s].info;
    const rl_tensor *by = rl_has(rl_in(pad, 1)) ? &x->constant[pad->in[1].i] : NULL;
    uint32_t rank = rl_val(x->g, conv->in[0])->rank;
    const rl_attr *pads = rl_attr_find(conv, "pads"), *how = rl_attr_find(conv, "auto_pad");
    if (pad->since < 11 || rl_has(rl_in(pad, 3)) || !by || by->kind != RL_TENSOR || by->dtype != RL_I64 || !rl_is_dense(by)) return;
    if ((rl_has(rl_in(pad, 2)) && (!scalar(a, pad->in[2], &zero) || zero != 0)) || rl_numel(by) != 2 * (int64_t)rank) return;
    if (rl_attr_find(pad, "mode") && !rl_attr_is(pad, "mode", "constant")) return;
    if (how && !rl_attr_is(conv, "auto_pad", "NOTSET") && !rl_attr_is(conv, "auto_pad", "VALID")) return;
    const int64_t *n = rl_data(by);
    if (pads && (!how || rl_attr_is(conv, "auto_pad", "NOTSET"))) own = pads->kind == RL_ATTR_INTS && pads->n == 2 * (rank - 2) ? pads->ints : NULL;
    if (pads && !own) return;
    int64_t *sum = rl_new(&x->g->mem, int64_t, 2 * rank);
    for (uint32_t i = 0; i < 2 * rank; i++) {
        uint32_t d = i % rank;
        if (n[i] < 0 || (d < 2 && n[i])) return;
        if (d >= 2) sum[i / rank * (rank - 2) + d - 2] = n[i] + (own ? own[i / rank * (rank - 2) + d - 2] : 0);
    }
    a->pad = def;
    a->pads = sum;
    a->in[0] = pad->in[0];
    a->count = 1;
}

static bool start(fuser *a, uint32_t i) {
    rl_step *s = &a->x->step[i];
    rl_kernel_fn *fn = fn_of(s);
    a->lead = s;
    a->f = (rl_fused){0};
    a->count = 0;
    a->pad = RL_NONODE;
    a->last = i;
    if (!s->info || a->step_of[s->node.i] != i || s->fused || !fn) return false;
    a->kind = fn == rl_fast_conv || fn == rl_fast_conv_transpose ? CONV : fn == rl_fast_matmul || fn == rl_fast_gemm ? PRODUCT : ROWS;
    if (rl_val(a->x->g, s->info->in[0])->dtype != RL_F32 || s->info->nout != 1) return false;
    if (a->kind == ROWS) return start_rows(a, i);
    if (!can_lead(a, s->info, fn)) return false;
    for (a->nin = 0; a->nin < (fn == rl_fast_matmul ? 2u : 3u); a->nin++) a->in[a->nin] = rl_in(s->info, a->nin);
    a->value = s->info->out[0];
    if (fn == rl_fast_conv) find_pad(a, s->info);
    return rl_val(a->x->g, a->value)->dtype == RL_F32;
}

void rl_fuse(rl_exec *x) {
    rl_arena tmp;
    uint32_t kept = 0;
    rl_arena_init(&tmp, x->g->ctx);
    fuser a = {.x = x, .step_of = rl_new(&tmp, uint32_t, x->g->nnode)};
    memset(a.step_of, 0xff, x->g->nnode * sizeof *a.step_of);
    for (uint32_t i = 0; i < x->nstep; i++) a.step_of[x->step[i].node.i] = i;
    for (uint32_t i = 0; i < x->nstep; i++) {
        if (!start(&a, i)) continue;
        while (take_next(&a)) continue;
        if (a.count > (a.kind == ROWS && !a.f.scale)) join(&a, i);
    }
    for (uint32_t i = 0; i < x->nstep; i++)
        if (x->step[i].info && a.step_of[x->step[i].node.i] == i) x->step[kept++] = x->step[i];
    x->nstep = kept;
    rl_arena_free(&tmp);
}
