/* What joining nodes (fuse.c) asks of the graph: constants, readers, and patterns of nodes that stand for one op. */
#include <math.h>

#include "fuse_internal.h"
#include "kernels_fast.h"
#include "quantize.h"

/* ---- what is known ---- */

/* NULL: none, or the node leaves out an input that the op must have, or its output. */
rl_kernel_fn *rl_fuse_fn(const rl_fuser *a, uint32_t step) {
    rl_kernel_fn *fn = a->as[step] ? a->as[step]->fn : NULL;
    const rl_nodeinfo *n = a->x->step[step].info;
    uint32_t need = fn == rl_ref_batch_normalization ? 5 : fn == rl_fast_unary ? 1 : 2;
    if (!n || n->nin < need || !n->nout || !rl_has(n->out[0])) return NULL;
    for (uint32_t i = 0; i < need; i++)
        if (!rl_has(n->in[i])) return NULL;
    return fn;
}

bool rl_fuse_is_type(const rl_fuser *a, rl_dtype t) {
    return t == a->type;
}

/* The constant, as an f32 tensor; else NULL. */
const rl_tensor *rl_fuse_constant(const rl_fuser *a, rl_value v) {
    const rl_tensor *t = rl_has(v) ? &a->x->constant[v.i] : NULL;
    if (!t || t->kind != RL_TENSOR || !rl_fuse_is_type(a, t->dtype)) return NULL;
    if (t->dtype == RL_F32) return t;
    rl_tensor *wide = rl_copy(&a->x->g->mem, t, sizeof *t), of = rl_tensor_new(a->x->rt, RL_F32, t->rank, t->dim);
    rl_convert(a->x->rt, &of, t, true);
    float *p = rl_copy(&a->x->g->mem, rl_data(&of), (size_t)rl_numel(&of) * sizeof *p);
    *wide = rl_tensor_borrow(a->x->rt, RL_F32, t->rank, t->dim, p, (size_t)rl_numel(&of) * sizeof *p);
    rl_tensor_drop(&of);
    return wide;
}

bool rl_fuse_scalar(const rl_fuser *a, rl_value v, float *to) {
    bool one = rl_has(v) && a->x->constant[v.i].kind == RL_TENSOR && rl_numel(&a->x->constant[v.i]) == 1; /* before all of it is made f32 */
    const rl_tensor *t = one ? rl_fuse_constant(a, v) : NULL;
    if (!t) return false;
    *to = *(const float *)rl_data(t);
    return true;
}

/* A zero point, none: 0. */
static bool zero_point(const rl_fuser *a, rl_value v, rl_dtype *type, float *zero) {
    const rl_tensor *t = rl_has(v) ? &a->x->constant[v.i] : NULL;
    *type = RL_U8, *zero = 0;
    if (!rl_has(v)) return true;
    if (t->kind != RL_TENSOR || rl_numel(t) != 1 || !rl_is_byte(t->dtype)) return false;
    *type = t->dtype;
    *zero = (float)rl_byte_at(t, 0);
    return true;
}

static bool has_plain_attributes(const rl_nodeinfo *n) {
    return !rl_attr_int(n, "block_size", 0) && !rl_attr_int(n, "output_dtype", 0) && !rl_attr_int(n, "precision", 0);
}

bool rl_fuse_rounding(const rl_fuser *a, const rl_nodeinfo *q, const rl_nodeinfo *b, float *scale, float *least, float *most) {
    rl_dtype t, back_type;
    float zero, back_zero, back_scale;
    double range[2];
    if (!rl_fuse_scalar(a, q->in[1], scale) || !rl_fuse_scalar(a, b->in[1], &back_scale) || *scale != back_scale) return false;
    if (!zero_point(a, rl_in(q, 2), &t, &zero) || !zero_point(a, rl_in(b, 2), &back_type, &back_zero) || zero != back_zero) return false;
    if ((rl_has(rl_in(b, 2)) && t != back_type) || !has_plain_attributes(q) || !has_plain_attributes(b)) return false;
    rl_range_of(t, &range[0], &range[1]);
    *least = (float)range[0] - zero, *most = (float)range[1] - zero;
    return true;
}

/* Also where floats stand for such. */
static bool is_short(const rl_fuser *a) {
    return a->type != RL_F32 || rl_rounded_to(a->x->g, a->value) != RL_UNDEF;
}

static bool is_near(const rl_fuser *a, rl_value v, double want) {
    float x;
    return rl_fuse_scalar(a, v, &x) && fabs(x - want) < (is_short(a) ? 4e-3 : 1e-4) * fabs(want); /* shorter ones are rounded */
}

bool rl_fuse_same_dims(const rl_fuser *a, rl_value v, rl_value w) {
    const rl_valinfo *p = rl_val(a->x->g, v), *q = rl_val(a->x->g, w);
    return rl_same_shape(p, q) && rl_fuse_is_type(a, p->dtype) && rl_fuse_is_type(a, q->dtype);
}

/* The steps that read v, at most `most`; RL_NONE where there are more, or a body or the caller reads it. */
uint32_t rl_fuse_readers(const rl_fuser *a, rl_value v, uint32_t *step, uint32_t most) {
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
static uint32_t only_reader(const rl_fuser *a, rl_value v, rl_kernel_fn *fn, int arg) {
    uint32_t s;
    if (rl_fuse_readers(a, v, &s, 1) != 1 || rl_fuse_fn(a, s) != fn || (arg >= 0 && a->as[s]->arg != arg)) return RL_NONE;
    return s;
}

const rl_nodeinfo *rl_fuse_node(const rl_fuser *a, uint32_t step) {
    return a->x->step[step].info;
}

rl_value rl_fuse_other(const rl_nodeinfo *n, rl_value v) {
    return rl_same(n->in[0], v) ? n->in[1] : n->in[0];
}

/* ---- patterns that stand for one op ---- */

/* v sigmoid(v): the step of the Mul. */
uint32_t rl_fuse_silu(const rl_fuser *a, rl_value v) {
    uint32_t s[2];
    if (rl_fuse_readers(a, v, s, 2) != 2) return RL_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        if (rl_fuse_fn(a, s[i]) != rl_fast_unary || a->as[s[i]]->arg != RL_ROW_SIGMOID) continue;
        if (only_reader(a, rl_fuse_node(a, s[i])->out[0], rl_fast_binary, RL_ROW_MUL) == s[1 - i]) return s[1 - i];
    }
    return RL_NONE;
}

/* From step s, which reads v, 1 + erf(v / sqrt 2): the step of that Add. */
static uint32_t find_one_plus_erf(const rl_fuser *a, rl_value v, uint32_t s) {
    const rl_step *scale = &a->x->step[s];
    if (rl_fuse_fn(a, s) != rl_fast_binary) return RL_NONE;
    int op = a->as[s]->arg;
    rl_value by = rl_fuse_other(scale->info, v);
    bool fits = op == RL_ROW_DIV ? rl_same(scale->info->in[0], v) && is_near(a, by, 1.41421356) : op == RL_ROW_MUL && is_near(a, by, 0.70710678);
    uint32_t erf = fits ? only_reader(a, scale->info->out[0], rl_fast_unary, RL_ROW_ERF) : RL_NONE;
    uint32_t add = erf == RL_NONE ? RL_NONE : only_reader(a, rl_fuse_node(a, erf)->out[0], rl_fast_binary, RL_ROW_ADD);
    if (add == RL_NONE || !is_near(a, rl_fuse_other(rl_fuse_node(a, add), rl_fuse_node(a, erf)->out[0]), 1)) return RL_NONE;
    return add;
}

/* v (1 + erf(v / sqrt 2)) / 2, halved before or after: the step of the last Mul. */
uint32_t rl_fuse_gelu(const rl_fuser *a, rl_value v) {
    uint32_t s[2];
    if (rl_fuse_readers(a, v, s, 2) != 2) return RL_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t add = find_one_plus_erf(a, v, s[i]), other = s[1 - i];
        if (add == RL_NONE || rl_fuse_fn(a, other) != rl_fast_binary || a->as[other]->arg != RL_ROW_MUL) continue;
        rl_value sum = rl_fuse_node(a, add)->out[0], made = rl_fuse_node(a, other)->out[0];
        uint32_t product = only_reader(a, sum, rl_fast_binary, RL_ROW_MUL), half = only_reader(a, made, rl_fast_binary, RL_ROW_MUL);
        if (half == RL_NONE) continue;
        if (product == other && is_near(a, rl_fuse_other(rl_fuse_node(a, half), made), 0.5)) return half;
        if (product == half && is_near(a, rl_fuse_other(rl_fuse_node(a, other), v), 0.5)) return half;
    }
    return RL_NONE;
}

/* From step s, which reads v, clip(v + 3, 0, 6): the step of the Clip. */
static uint32_t find_six(const rl_fuser *a, rl_value v, uint32_t s) {
    rl_post range;
    if (rl_fuse_fn(a, s) != rl_fast_binary || a->as[s]->arg != RL_ROW_ADD || !is_near(a, rl_fuse_other(rl_fuse_node(a, s), v), 3)) return RL_NONE;
    uint32_t clip = only_reader(a, rl_fuse_node(a, s)->out[0], rl_fast_unary, RL_ROW_CLIP);
    if (clip == RL_NONE) return RL_NONE;
    const rl_nodeinfo *n = rl_fuse_node(a, clip);
    if (!rl_unary_post(n, RL_ROW_CLIP, rl_fuse_constant(a, rl_in(n, 1)), rl_fuse_constant(a, rl_in(n, 2)), &range)) return RL_NONE;
    return range.p == 0 && range.q == 6 ? clip : RL_NONE;
}

/* The step that alone reads v, and makes a sixth of it. */
static uint32_t find_sixth(const rl_fuser *a, rl_value v) {
    uint32_t s = only_reader(a, v, rl_fast_binary, -1);
    if (s == RL_NONE) return RL_NONE;
    const rl_nodeinfo *n = rl_fuse_node(a, s);
    int op = a->as[s]->arg;
    bool fits = op == RL_ROW_DIV ? rl_same(n->in[0], v) && is_near(a, n->in[1], 6) : op == RL_ROW_MUL && is_near(a, rl_fuse_other(n, v), 1.0 / 6);
    return fits ? s : RL_NONE;
}

/* v clip(v + 3, 0, 6) / 6, divided before or after: the step of the last op. */
uint32_t rl_fuse_hard_swish(const rl_fuser *a, rl_value v) {
    uint32_t s[2];
    if (rl_fuse_readers(a, v, s, 2) != 2) return RL_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t clip = find_six(a, v, s[i]), other = s[1 - i];
        if (clip == RL_NONE || rl_fuse_fn(a, other) != rl_fast_binary || a->as[other]->arg != RL_ROW_MUL) continue;
        rl_value six = rl_fuse_node(a, clip)->out[0];
        uint32_t sixth = find_sixth(a, six);
        if (sixth != RL_NONE && only_reader(a, rl_fuse_node(a, sixth)->out[0], rl_fast_binary, RL_ROW_MUL) == other) return other;
        if (only_reader(a, six, rl_fast_binary, RL_ROW_MUL) == other) return find_sixth(a, rl_fuse_node(a, other)->out[0]);
    }
    return RL_NONE;
}
