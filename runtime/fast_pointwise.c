/* Pointwise ops on floats, alone or in chains (fuse.h): row by row, every op of the chain on a row while it is in the cache.  The
 * output lies in memory as the first input of its dims does. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "fast.h"
#include "fuse.h"
#include "home.h"
#include "kernels_fast.h"
#include "native.h"

/* Elements of a row at a time; of a short one; of one so short that its operands are gathered; the value and one operand for each op, two of which are
 * no posts and one rounds. */
enum { BLOCK = 4096, SHORT = 256, TINY = 64, OPERANDS = RL_POSTS + 4 };

typedef struct {
    const rl_rows *rows;
    rl_post post[OPERANDS];
    uint32_t npost, rank;
    int64_t dim[RL_RANK], stride[OPERANDS][RL_RANK], back[RL_RANK]; /* merged, outermost in the output's memory first */
    const float *at[OPERANDS];                                      /* NULL: the op has none */
    float *y;
    int64_t to[RL_RANK];                                            /* strides of y; the last is 1, but of tiny rows with gaps between */
    int64_t block;                                                  /* elements of a row at a time */
    bool again[OPERANDS];                                           /* the operand is the same for each block */
    int64_t tiny;                                                   /* elements of the rows that one row is made of; 0: it is one */
    int64_t fine[OPERANDS];                                         /* with tiny: the stride within these; the last of stride is from one to the next */
    bool apart[OPERANDS], gaps;                                     /* with tiny: the operand's, and y's, do not lie one behind the other */
} chain;

/* ---- the loop ---- */

/* n elements of a row as they are needed: in place, one for all, or gathered into room. */
static const float *row_of(const chain *a, uint32_t i, const float *p, int64_t n, float *room, int64_t *step) {
    int64_t s = a->stride[i][a->rank - 1];
    *step = s != 0 || a->apart[i];
    if (a->apart[i] && a->fine[i] == 1) {
        a->rows->copy_rows(room, a->tiny, NULL, p, s, n / a->tiny, a->tiny);
        return room;
    }
    if (a->apart[i]) {
        for (int64_t k = 0; k < n; k += a->tiny, p += s)
            for (int64_t e = 0; e < a->tiny; e++) room[k + e] = p[e * a->fine[i]];
        return room;
    }
    if (s == 0 || s == 1) return p;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an operand that the op has */
    for (int64_t k = 0; k < n; k++) room[k] = p[k * s];
    return room;
}

/* y may be the row of the first op's operand (may_cover): nothing is written there before that is read. */
static void run_row(const chain *a, const float *const *p, float *y, int64_t n) {
    float value[BLOCK], room[BLOCK];
    int64_t step;
    const float *x = row_of(a, 0, p[0], n, value, &step);
    if (!step) {
        for (int64_t k = 0; k < n; k++) value[k] = *x;
        x = value;
    }
    if (!a->npost) a->rows->op[RL_ROW_COPY](y, x, NULL, 0, n, 0, 0);
    for (uint32_t i = 0; i < a->npost; i++, x = y) {
        const rl_post *o = &a->post[i];
        const float *b = p[i + 1] ? row_of(a, i + 1, p[i + 1], n, room, &step) : NULL;
        a->rows->op[o->op](y, x, b, step, n, o->p, o->q);
    }
}

static void run_scattered(const chain *a, const float *const *p, float *y, int64_t n, int64_t stride) {
    float all[BLOCK];
    run_row(a, p, all, n);
    a->rows->copy_rows(y, stride, NULL, all, a->tiny, n / a->tiny, a->tiny);
}

static void run_pieces(void *arg, int64_t from, int64_t to) {
    const chain *a = arg;
    uint32_t last = a->rank - 1;
    int64_t cut = (a->dim[last] + a->block - 1) / a->block;
    for (int64_t k = from; k < to; k++) {
        const float *p[OPERANDS];
        int64_t left = k / cut, first = k % cut * a->block, n = RL_MIN(a->block, a->dim[last] - first);
        float *y = a->y + (a->gaps ? first / a->tiny : first) * a->to[last];
        for (uint32_t i = 0; i <= a->npost; i++)
            p[i] = a->at[i] ? a->at[i] + (a->again[i] ? 0 : (a->apart[i] ? first / a->tiny : first) * a->stride[i][last]) : NULL;
        for (uint32_t d = last; d-- > 0; left /= a->dim[d]) {
            y += left % a->dim[d] * a->to[d];
            for (uint32_t i = 0; i <= a->npost; i++)
                if (p[i]) p[i] += left % a->dim[d] * a->stride[i][d];
        }
        if (a->gaps) run_scattered(a, p, y, n, a->to[last]);
        else run_row(a, p, y, n);
    }
}

/* ---- what it walks over ---- */

/* Dims of 1 go; neighbours that every operand walks through as one are joined. */
static void merge(chain *a) {
    uint32_t n = 0, all = a->npost + 1;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->dim[d] == 1) continue;
        bool join = n > 0 && a->to[n - 1] == a->to[d] * a->dim[d];
        for (uint32_t i = 0; i < all && join; i++) join = !a->at[i] || a->stride[i][n - 1] == a->stride[i][d] * a->dim[d];
        if (join) a->dim[n - 1] *= a->dim[d];
        else a->dim[n++] = a->dim[d];
        a->to[n - 1] = a->to[d];
        for (uint32_t i = 0; i < all; i++) a->stride[i][n - 1] = a->stride[i][d];
    }
    if (n == 0) a->dim[n++] = a->to[0] = 1;
    a->rank = n;
}

/* Short rows, of few channels, say, many of them one after the other: some at a time, with what is the same for each row (a number for each
 * channel) as often as there are rows. */
static void join_short_rows(rl_arena *tmp, chain *a) {
    int64_t n = a->dim[a->rank - 1], rows = a->dim[0], together = RL_MIN(BLOCK / n, rows);
    if (a->rank != 2 || n > SHORT || a->to[0] != n) return;
    for (uint32_t i = 0; i <= a->npost; i++) {
        const int64_t *s = a->stride[i];
        if (a->at[i] && !(s[1] == 1 && (s[0] == n || (s[0] == 0 && i))) && !(s[1] == 0 && s[0] == 0)) return;
    }
    for (uint32_t i = 0; i <= a->npost; i++) {
        if (!a->at[i] || a->stride[i][0] || !a->stride[i][1]) continue;
        float *p = rl_new(tmp, float, together * n);
        for (int64_t r = 0; r < together; r++) memcpy(p + r * n, a->at[i], (size_t)n * sizeof *p);
        a->at[i] = p;
        a->again[i] = true;
    }
    for (uint32_t i = 0; i <= a->npost; i++) a->stride[i][0] = a->stride[i][1];
    a->dim[0] = rows * n, a->to[0] = 1;
    a->rank = 1;
    a->block = together * n;
}

/* Tiny rows as one, gathered and scattered where they do not lie one behind the other. */
static void join_tiny_rows(chain *a) {
    if (a->rank < 2) return;
    uint32_t last = a->rank - 1, row = last - 1;
    int64_t n = a->dim[last];
    if (n > TINY) return;
    for (uint32_t i = 0; i <= a->npost; i++) {
        int64_t *s = a->stride[i];
        a->fine[i] = s[last];
        a->apart[i] = a->at[i] && s[row] != s[last] * n;
        if (!a->apart[i]) s[row] = s[last];
    }
    a->gaps = a->to[row] != n;
    if (!a->gaps) a->to[row] = 1;
    a->dim[row] *= n;
    a->rank = last;
    a->tiny = n;
    a->block = BLOCK / n * n;
}

/* The memory order of the first operand that has the output's dims. */
static void find_order(const rl_tensor *const *t, uint32_t n, uint32_t rank, const int64_t *dim, int64_t *perm) {
    for (uint32_t i = 0; i < n; i++) {
        bool whole = t[i] && t[i]->rank == rank;
        for (uint32_t k = 0; whole && k < rank; k++) whole = t[i]->dim[k] == dim[k];
        if (whole && rl_stride_order(t[i], perm)) return;
    }
    for (uint32_t k = 0; k < rank; k++) perm[k] = k;
}

/* Output 0 may lie over the value, or over the first op's operand; but not over what a later op still reads. */
static uint32_t may_cover(const chain *a, const rl_tensor *const *t) {
    uint32_t n = a->npost && t[1] && a->post[0].in == 1 ? 2 : 1;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 2; i <= a->npost; i++)
            if (t[i] && t[k] && t[i]->mem == t[k]->mem) return 0;
    return n;
}

/* The chain into y, which lies in the order perm. */
static void walk(rl_call *c, chain *a, const rl_tensor *const *t, const int64_t *perm, const rl_tensor *y) {
    rl_tensor view;
    if (rl_numel(y) == 0) return;
    a->rank = y->rank;
    for (uint32_t k = 0; k < a->rank; k++) a->dim[k] = y->dim[perm[k]], a->to[k] = y->stride[perm[k]];
    for (uint32_t i = 0; i <= a->npost; i++) {
        if (!t[i]) continue;
        rl_view_expand(t[i], y->rank, y->dim, &view);
        a->at[i] = rl_data(&view);
        for (uint32_t k = 0; k < y->rank; k++) a->stride[i][k] = view.stride[perm[k]];
    }
    merge(a);
    a->block = BLOCK;
    join_short_rows(c->tmp, a);
    join_tiny_rows(a);
    a->rows = rl_rows_best();
    a->y = rl_data(y);
    int64_t rows = (a->dim[a->rank - 1] + a->block - 1) / a->block, each = RL_MIN(a->dim[a->rank - 1], a->block);
    for (uint32_t k = 0; k + 1 < a->rank; k++) rows *= a->dim[k];
    rl_parallel(c->rt, rows, RL_MAX(1, 8192 / RL_MAX(each * RL_MAX(a->npost, 1u), 1)), run_pieces, a);
}

/* What a value of this type is rounded by; RL_ROW_COPY: nothing. */
static rl_row_op rounding(rl_dtype t) {
    return t == RL_F16 ? RL_ROW_F16 : t == RL_BF16 ? RL_ROW_BF16 : RL_ROW_COPY;
}

bool rl_take_rounding(rl_call *c, rl_post *post) {
    *post = (rl_post){.op = c->rounds ? rounding(rl_rounded_to(c->g, c->node->out[0])) : RL_ROW_COPY, .in = RL_NONE};
    c->rounds = false;
    return post->op != RL_ROW_COPY;
}

static rl_status run_chain(rl_call *c, chain *a, const rl_tensor *const *t) {
    uint32_t rank = 0;
    int64_t dim[RL_RANK], perm[RL_RANK];
    for (uint32_t i = 0; i <= a->npost; i++)
        if (t[i]) RL_TRY(rl_call_broadcast(c, &rank, dim, t[i]));
    RL_TRY(rl_call_dims(c, rank, dim));
    find_order(t, a->npost + 1, rank, dim, perm);
    rl_home_order(c, rank, perm);
    c->gaps = true;
    rl_tensor *y = rl_call_make_over_in(c, may_cover(a, t), RL_F32, rank, dim, perm);
    c->step->ran = "rows";
    a->npost += rl_take_rounding(c, &a->post[a->npost]);
    walk(c, a, t, perm, y);
    return RL_OK;
}

/* ---- the kernels ---- */

static bool is_f32(const rl_tensor *t) {
    return t && t->kind == RL_TENSOR && t->dtype == RL_F32;
}

/* x * scale + shift, each of one number for each channel. */
static void start_scaled(rl_call *c, const rl_fused *f, chain *a, rl_tensor *by, const rl_tensor **t) {
    const float *at[2] = {f->scale, f->shift};
    int64_t dim[RL_RANK];
    const rl_native *n = c->step->native;
    int64_t lanes = n && n->out.block ? n->out.block : 1;
    for (uint32_t i = 0; i + 1 < t[0]->rank; i++) dim[i] = i ? 1 : f->nchannel / lanes;
    if (lanes > 1) dim[t[0]->rank - 2] = lanes;
    for (uint32_t i = 0; i < 2; i++) {
        by[i] = rl_tensor_borrow(c->rt, RL_F32, t[0]->rank - 1, dim, at[i], (size_t)f->nchannel * sizeof(float));
        a->post[a->npost++] = (rl_post){.op = i ? RL_ROW_ADD : RL_ROW_MUL, .in = RL_NONE};
        t[a->npost] = &by[i];
    }
}

rl_status rl_fast_chain(rl_call *c) {
    const rl_fused *f = c->step->native && c->step->native->fused ? c->step->native->fused : c->step->fused;
    chain a = {.npost = 0};
    const rl_tensor *t[OPERANDS] = {rl_call_in(c, 0)};
    rl_tensor by[2];
    if (f->scale) start_scaled(c, f, &a, by, t);
    for (uint32_t i = 0; i < f->npost; i++) {
        a.post[a.npost++] = f->post[i];
        if (rl_row_is_binary(f->post[i].op)) t[a.npost] = rl_call_in(c, f->post[i].in);
    }
    rl_status s = run_chain(c, &a, t);
    for (uint32_t i = 0; f->scale && i < 2; i++) rl_tensor_drop(&by[i]);
    return s;
}

void rl_fused_rows(rl_call *c, const rl_tensor *bias, const rl_tensor *y) {
    const rl_fused *f = c->step->fused;
    chain a = {.npost = 0};
    const rl_tensor *t[OPERANDS] = {y};
    int64_t perm[RL_RANK];
    if (bias) {
        a.post[a.npost++] = (rl_post){.op = RL_ROW_ADD, .in = RL_NONE};
        t[a.npost] = bias;
    }
    for (uint32_t i = 0; f && i < f->npost; i++) {
        a.post[a.npost++] = f->post[i];
        if (rl_row_is_binary(f->post[i].op)) t[a.npost] = rl_call_in(c, f->post[i].in);
    }
    a.npost += rl_take_rounding(c, &a.post[a.npost]);
    rl_stride_order(y, perm);
    if (a.npost) walk(c, &a, t, perm, y);
}

/* Output 0 may be input 0 itself (a Dropout, say). */
void rl_round_outputs(rl_call *c) {
    for (uint32_t i = 0; i < c->nout; i++) {
        const rl_tensor *y = &c->out[i], *x = rl_call_in(c, 0), *t[OPERANDS] = {y};
        chain a = {.npost = 1, .post[0] = {.op = rounding(rl_rounded_to(c->g, c->node->out[i])), .in = RL_NONE}};
        int64_t perm[RL_RANK];
        if (a.post[0].op == RL_ROW_COPY || y->kind != RL_TENSOR || y->dtype != RL_F32 || (x && x->mem == y->mem && rl_data(x) == rl_data(y) && !c->over)) continue;
        rl_stride_order(y, perm);
        walk(c, &a, t, perm, y);
    }
}

rl_status rl_fast_binary(rl_call *c) {
    chain a = {.npost = 1, .post[0] = {.op = (rl_row_op)c->arg, .in = 1}};
    rl_row_op *op = &a.post[0].op;
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *t[OPERANDS] = {rl_call_in(c, 0), rl_call_in(c, 1)};
    if (!is_f32(t[0]) || !is_f32(t[1])) {
        c->arg = *op == RL_ROW_ADD ? RL_PW_ADD : *op == RL_ROW_SUB ? RL_PW_SUB : *op == RL_ROW_MUL ? RL_PW_MUL : RL_PW_DIV;
        return rl_ref_binary(c);
    }
    if (rl_numel(t[0]) < rl_numel(t[1])) { /* the larger one is the value */
        const rl_tensor *x = t[0];
        t[0] = t[1], t[1] = x;
        *op = *op == RL_ROW_SUB ? RL_ROW_RSUB : *op == RL_ROW_DIV ? RL_ROW_RDIV : *op;
    }
    return run_chain(c, &a, t);
}

rl_status rl_fast_prelu(rl_call *c) {
    chain a = {.npost = 1, .post[0] = {.op = RL_ROW_PRELU, .in = 1}};
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *t[OPERANDS] = {rl_call_in(c, 0), rl_call_in(c, 1)};
    if (is_f32(t[0]) && is_f32(t[1])) return run_chain(c, &a, t);
    c->arg = RL_PW_PRELU;
    return rl_ref_binary(c);
}

/* Of all inputs the first that has as many elements as any; RL_NONE where one is no float. */
static uint32_t largest_input(const rl_call *c) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < c->nin; i++) {
        if (!is_f32(rl_call_in(c, i))) return RL_NONE;
        if (rl_numel(rl_call_in(c, i)) > rl_numel(rl_call_in(c, most))) most = i;
    }
    return most;
}

/* Max, Min, Sum and, as RL_ROW_LINEAR of a sum, Mean: the others one after the other to the largest. */
rl_status rl_fast_variadic(rl_call *c) {
    rl_row_op op = (rl_row_op)c->arg;
    bool mean = op == RL_ROW_LINEAR;
    uint32_t most = largest_input(c);
    if (c->nin == 0 || c->nin > RL_POSTS || most == RL_NONE) {
        c->arg = mean ? RL_PW_NOP : op == RL_ROW_ADD ? RL_PW_ADD : op == RL_ROW_MAX ? RL_PW_MAX : RL_PW_MIN;
        return rl_ref_variadic(c);
    }
    chain a = {.npost = 0};
    const rl_tensor *t[OPERANDS] = {rl_call_in(c, most)};
    for (uint32_t i = 0; i < c->nin; i++) {
        if (i == most) continue;
        a.post[a.npost++] = (rl_post){.op = mean ? RL_ROW_ADD : op, .in = i};
        t[a.npost] = rl_call_in(c, i);
    }
    if (mean) a.post[a.npost++] = (rl_post){.op = RL_ROW_LINEAR, .in = RL_NONE, .p = 1 / (float)c->nin, .q = -0.0f};
    return run_chain(c, &a, t);
}

/* min and max of a Clip, from inputs or attributes; false where one is no constant or no float. */
static bool clip_range(const rl_nodeinfo *n, const rl_tensor *low, const rl_tensor *high, float *p, float *q) {
    *p = rl_attr_float(n, "min", -INFINITY);
    *q = rl_attr_float(n, "max", INFINITY);
    if ((low && (!is_f32(low) || rl_numel(low) != 1)) || (high && (!is_f32(high) || rl_numel(high) != 1))) return false;
    if (low) *p = *(const float *)rl_data(low);
    if (high) *q = *(const float *)rl_data(high);
    return true;
}

bool rl_unary_post(const rl_nodeinfo *n, int arg, const rl_tensor *low, const rl_tensor *high, rl_post *post) {
    *post = (rl_post){.op = (rl_row_op)arg, .in = RL_NONE};
    switch (post->op) {
    case RL_ROW_LEAKY_RELU: post->p = rl_attr_float(n, "alpha", 0.01f); break;
    case RL_ROW_SELU: post->p = rl_attr_float(n, "alpha", 1.67326319217681884765625f), post->q = rl_attr_float(n, "gamma", 1.05070102214813232421875f); break;
    case RL_ROW_ELU: case RL_ROW_CELU: case RL_ROW_THRESHOLD: case RL_ROW_SILU: post->p = rl_attr_float(n, "alpha", 1); break;
    case RL_ROW_ROUND: post->p = 1; break;
    case RL_ROW_HARD_SIGMOID: post->p = rl_attr_float(n, "alpha", 0.2f), post->q = rl_attr_float(n, "beta", 0.5f); break;
    case RL_ROW_GELU: post->op = rl_attr_is(n, "approximate", "tanh") ? RL_ROW_GELU_TANH : RL_ROW_GELU; break;
    case RL_ROW_CLIP: return clip_range(n, low, high, &post->p, &post->q);
    default: break;
    }
    return true;
}

rl_status rl_fast_unary(rl_call *c) {
    chain a = {.npost = 1};
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *t[OPERANDS] = {rl_call_in(c, 0)};
    bool clips = c->arg == RL_ROW_CLIP;
    if (!rl_unary_post(c->node, c->arg, clips ? rl_call_in(c, 1) : NULL, clips ? rl_call_in(c, 2) : NULL, &a.post[0])) return rl_ref_clip(c);
    return run_chain(c, &a, t);
}

/* x * x and x * x * x; other exponents are the reference's. */
rl_status rl_fast_pow(rl_call *c) {
    chain a = {.npost = 1, .post[0] = {.op = RL_ROW_SQUARE, .in = RL_NONE}};
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *t[OPERANDS] = {rl_call_in(c, 0)}, *by = rl_call_in(c, 1);
    float e = is_f32(t[0]) && is_f32(by) && by->rank <= t[0]->rank && rl_numel(by) == 1 ? *(const float *)rl_data(by) : NAN;
    if (e != 2 && e != 3) {
        c->arg = RL_PW_POW;
        return rl_ref_binary(c);
    }
    if (e == 3) a.post[0].op = RL_ROW_CUBE;
    return run_chain(c, &a, t);
}

/* ---- Where ---- */

static void choose_row(const rl_row *r) {
    if ((r->step[0] | r->step[1] | r->step[2]) & ~INT64_C(1)) rl_choose_words(r);
    else rl_rows_best()->choose(r->out, r->in[0], r->in[1], r->in[2], r->step, r->n);
}

rl_status rl_fast_where(rl_call *c) {
    RL_TRY(rl_where_by(c, choose_row));
    if (rl_elem_bits(c->out[0].dtype) == 32) c->step->ran = "rows";
    return RL_OK;
}
