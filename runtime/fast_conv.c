/* Conv, ConvTranspose and pools by oneDNN, or direct loops (fast_direct.c): see fast.h.  Input and output lie channels-last, or as the plan
 * says (native.h); an input that does not is reordered. */
#include "fast_conv.h"
#include "fast_pool.h"
#include "kernels_fast.h"
#include "native.h"
#include "quantize.h"

enum { AT_X = 0, AT_Y = 1, AT_W = 2, AT_BIAS = 3, AT_POST = 4 }; /* places of addresses */

static bool is_f32(const rl_call *c, uint32_t i, uint32_t least, uint32_t most) {
    const rl_tensor *t = rl_call_in(c, i);
    return t && t->kind == RL_TENSOR && t->dtype == RL_F32 && t->rank >= least && t->rank <= most;
}

/* Input 0 by its logical dims. */
static const rl_tensor *input(const rl_call *c, rl_tensor *room) {
    const rl_native *n = c->step->native;
    const rl_tensor *x = rl_call_in(c, 0);
    if (!n || !n->channels[0]) return x;
    *room = rl_lay_logical(x, n->channels[0]);
    return room;
}

/* Of the output's channels, which one of the node's is at place i. */
static int64_t output_at(const rl_call *c, const rl_convolution *v, int64_t i) {
    const rl_pieces *p = c->step->pieces;
    return p && p->order && v->group > 1 ? p->order[i] : i;
}

/* The weights, those of an input in pieces in the order of these. */
static void move_weights(const rl_call *c, const rl_convolution *v, const rl_tensor *k) {
    const rl_pieces *p = c->step->pieces;
    uint32_t dim = v->group > 1 ? 0 : 1;
    if (!p || !p->order) {
        rl_tensor_move(c->rt, k, v->k);
        return;
    }
    for (int64_t i = 0; i < p->channels; i++) {
        rl_tensor to = rl_view_slice(k, dim, i, 1, 1), from = rl_view_slice(v->k, dim, p->order[i], 1, 1);
        rl_tensor_move(c->rt, &to, &from);
    }
}

const rl_tensor *rl_conv_scaled(rl_call *c, const rl_convolution *v) {
    const rl_fused *fused = c->step->fused;
    rl_tensor *k = rl_call_passing(c, v->k->rank, v->k->dim);
    move_weights(c, v, k);
    float *x = rl_data(k);
    int64_t taps = rl_product(k->dim + 2, k->rank - 2), n = k->dim[1], per = k->dim[0] / v->group;
    for (int64_t i = 0; fused && fused->scale && i < k->dim[0]; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t t = 0; t < taps; t++) x[(i * n + j) * taps + t] *= fused->scale[v->back ? i / per * n + j : output_at(c, v, i)];
    return k;
}

const float *rl_conv_whole_bias(rl_call *c, const rl_convolution *v) {
    const rl_fused *fused = c->step->fused;
    int64_t n = v->dim[1];
    float *b = rl_new(c->tmp, float, n), *ordered = rl_new(c->tmp, float, n);
    rl_tensor to = rl_tensor_borrow(c->rt, RL_F32, 1, &n, b, (size_t)n * sizeof *b);
    if (v->bias) rl_tensor_move(c->rt, &to, v->bias);
    rl_tensor_drop(&to);
    for (int64_t i = 0; fused && i < n; i++) b[i] = b[i] * (fused->scale ? fused->scale[i] : 1) + (fused->shift ? fused->shift[i] : 0);
    for (int64_t i = 0; i < n; i++) ordered[i] = b[output_at(c, v, i)];
    return ordered;
}

static bool make_weights(rl_making *m, const rl_convolution *v, const rl_fused *fused) {
    rl_call *c = m->c;
    rl_dnnl_cmd want = m->f->d.primitive_desc_query_md(m->pd, RL_DNNL_QUERY_WEIGHTS, 0);
    if (!rl_call_is_constant(c, 1)) return rl_making_arg(m, RL_DNNL_ARG_WEIGHTS, AT_W, false, rl_making_md(m, v->krank, v->kdim, v->kstride), want);
    rl_convolution scaled = *v;
    if (fused && fused->scale) {
        scaled.k = rl_conv_scaled(c, v);
        rl_conv_set_weights(&scaled);
    }
    if (!rl_making_constant(m, RL_DNNL_ARG_WEIGHTS, rl_making_md(m, v->krank, v->kdim, scaled.kstride), rl_data(scaled.k), want)) return false;
    rl_call_packed(c, 1);
    return true;
}

static bool make_bias(rl_making *m, const rl_convolution *v, rl_dnnl_md bias) {
    if (!bias || m->p->bare) return true;
    if (v->bias && !rl_call_is_constant(m->c, 2))
        return rl_making_arg(m, RL_DNNL_ARG_BIAS, AT_BIAS, false, rl_making_md(m, 1, v->bias->dim, v->bias->stride), bias);
    return rl_making_constant(m, RL_DNNL_ARG_BIAS, bias, rl_conv_whole_bias(m->c, v), bias);
}

/* Operands of the post-ops: of the output's dims, or one per channel or of all. */
static bool make_operands(rl_making *m, const rl_convolution *v, const rl_fused *fused, rl_dnnl_cmd dst) {
    for (uint32_t i = 0; fused && !m->p->bare && i < fused->npost; i++) {
        if (!rl_row_is_binary(fused->post[i].op)) continue;
        const rl_native *native = m->c->step->native;
        const rl_tensor *t = rl_call_in(m->c, fused->post[i].in);
        rl_tensor as = v->lifted ? rl_conv_lifted(t) : *t;
        bool blocked = native && native->channels[fused->post[i].in];
        for (uint32_t k = 0; blocked && k < v->x->rank; k++)
            if (k != 1 && t->dim[k] != v->dim[k]) return false;
        rl_dnnl_md have = blocked ? rl_making_lay(m, v->x->rank, v->dim, &native->out) : rl_making_md(m, as.rank, as.dim, as.stride);
        if (!have || !rl_making_arg(m, RL_DNNL_ARG_POST_OP * ((int)i + 1) | RL_DNNL_ARG_SRC_1, AT_POST + i, false, have, dst)) return false;
    }
    return true;
}

/* How input 0 or the output is to lie: by the plan, or channels-last. */
static rl_lay lay_of(const rl_call *c, const rl_convolution *v, bool output) {
    const rl_native *n = c->step->native;
    return n ? output ? n->out : n->in : rl_lay_last(v->x->rank);
}

/* How input 0 lies; x: as it is wanted. */
static rl_dnnl_md input_md(rl_making *m, const rl_convolution *v, const rl_lay *want, rl_dnnl_md x) {
    const rl_tensor *t = v->x;
    int64_t step = 1;
    bool same = true;
    for (uint32_t i = want->rank; i-- > 0 && !want->block; step *= t->dim[want->perm[i]])
        same = same && (t->dim[want->perm[i]] == 1 || t->stride[want->perm[i]] == step);
    return same ? x : rl_making_md(m, t->rank, t->dim, t->stride);
}

/* Can rows do bias and post-ops?  With a plan they may not know the layouts. */
static bool can_end_in_rows(const rl_call *c) {
    const rl_native *n = c->step->native;
    const rl_fused *fused = c->step->fused;
    bool can = !n || !n->out.block;
    for (uint32_t i = 0; n && fused && i < fused->npost; i++) can = can && !(rl_row_is_binary(fused->post[i].op) && n->channels[fused->post[i].in]);
    return can;
}

/* oneDNN's Gelu of infinity is no number. */
static bool has_gelu(const rl_fused *fused) {
    bool has = false;
    for (uint32_t i = 0; fused && i < fused->npost; i++) has = has || fused->post[i].op == RL_ROW_GELU;
    return has;
}

/* An optimized implementation, with bias and post-ops or else bare. */
static bool find_conv(rl_making *m, const rl_convolution *v, rl_dnnl_cmd x, rl_dnnl_cmd weights, rl_dnnl_cmd bias, rl_dnnl_cmd y) {
    int ways = (bias || m->c->step->fused) && can_end_in_rows(m->c) ? 2 : 1;
    for (int bare = ways == 2 && has_gelu(m->c->step->fused); bare < ways; bare++) {
        m->p->bare = bare;
        if (!rl_making_post(m, y)) return false;
        if (rl_conv_describe(m, v, x, weights, bare ? NULL : bias, y) != 0) continue;
        if (!rl_making_is_ref(m, bias && !bare)) return true;
        m->f->d.primitive_desc_destroy(m->pd);
        m->pd = NULL;
    }
    return false;
}

/* As lay_of says all through; where oneDNN has only plain loops for that, what it likes best, or nothing while layouts are measured. */
static bool make_conv(rl_making *m, const rl_convolution *v, const rl_fused *fused) {
    int64_t n = v->dim[1], one = 1;
    uint32_t rank = v->x->rank;
    const rl_native *native = m->c->step->native;
    bool biased = v->bias || (fused && fused->shift);
    rl_lay xl = lay_of(m->c, v, false), yl = lay_of(m->c, v, true);
    rl_dnnl_md x = rl_making_lay(m, rank, v->x->dim, &xl), y = rl_making_lay(m, rank, v->dim, &yl);
    rl_dnnl_md weights = rl_making_md(m, v->krank, v->kdim, NULL), bias = biased ? rl_making_md(m, 1, &n, &one) : NULL;
    rl_dnnl_md have = x ? input_md(m, v, &xl, x) : NULL;
    if (!x || !y || !have || !weights || (biased && !bias)) return false;
    if (!find_conv(m, v, x, weights, bias, y)) {
        m->p->fell = true;
        if (native && native->strict) return false;
        rl_dnnl_md any_x = rl_making_md(m, rank, v->x->dim, NULL), any_y = rl_making_md(m, rank, v->dim, NULL);
        if (!any_x || !any_y || !find_conv(m, v, any_x, weights, bias, any_y)) return false;
    }
    return rl_making_arg(m, RL_DNNL_ARG_SRC, AT_X, false, have, m->f->d.primitive_desc_query_md(m->pd, RL_DNNL_QUERY_SRC, 0)) &&
           rl_making_arg(m, RL_DNNL_ARG_DST, AT_Y, true, y, m->f->d.primitive_desc_query_md(m->pd, RL_DNNL_QUERY_DST, 0)) &&
           make_weights(m, v, fused) && make_bias(m, v, bias) && make_operands(m, v, fused, y) && rl_making_primitive(m);
}

static rl_tensor *make_output(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim) {
    const rl_native *n = c->step->native;
    int64_t perm[RL_RANK] = {0}, lanes[RL_LAY_RANK + 1];
    if (n && n->out.block) {
        rl_lay_dims(&n->out, dim, lanes);
        return rl_call_make(c, 0, t, rank + 1, lanes);
    }
    for (uint32_t i = 0; n && i < rank; i++) perm[i] = n->out.perm[i];
    if (n) return rl_call_make_in(c, 0, t, rank, dim, perm);
    for (uint32_t i = 1; i + 1 < rank; i++) perm[i] = i + 1;
    perm[rank - 1] = 1;
    return rl_call_make_in(c, 0, t, rank, dim, perm);
}

rl_tensor *rl_conv_output(rl_call *c, rl_dtype t, const rl_convolution *v) {
    return make_output(c, t, v->lifted ? 3 : v->x->rank, v->lifted ? (int64_t[]){v->dim[0], v->dim[1], v->dim[3]} : v->dim);
}

/* Bias and post-ops of a bare one. */
static void end_in_rows(rl_call *c, const rl_convolution *v, const rl_tensor *y) {
    const int64_t dim[RL_CONV_RANK] = {v->dim[1], 1, 1, 1};
    bool biased = v->bias || (c->step->fused && c->step->fused->shift);
    rl_tensor bias = biased ? rl_tensor_borrow(c->rt, RL_F32, y->rank - 1, dim, rl_conv_whole_bias(c, v), (size_t)v->dim[1] * sizeof(float)) : (rl_tensor){0};
    rl_fused_rows(c, biased ? &bias : NULL, y);
    rl_tensor_drop(&bias);
}

static rl_status run_conv(rl_call *c, rl_prim *p, const rl_convolution *v, rl_tensor *y) {
    const rl_fused *fused = c->step->fused;
    void *at[AT_POST + RL_POSTS] = {0};
    at[AT_X] = rl_data(v->x), at[AT_W] = rl_data(v->k), at[AT_Y] = rl_data(y);
    if (v->bias) at[AT_BIAS] = rl_data(v->bias);
    for (uint32_t i = 0; fused && i < fused->npost; i++)
        if (rl_row_is_binary(fused->post[i].op)) at[AT_POST + i] = rl_data(rl_call_in(c, fused->post[i].in));
    RL_TRY(rl_prim_run(c, p, at));
    if (p->bare) end_in_rows(c, v, y);
    if (c->step->native && c->step->native->out.block) rl_lay_clear(c->rt, y, v->dim[1]);
    return RL_OK;
}

/* *done: false where the reference kernel is to do it. */
static rl_status try_conv(rl_call *c, rl_convolution *v, bool *done) {
    const rl_fused *fused = c->step->fused;
    const rl_tensor *in[4 + RL_POSTS] = {v->x, v->k, v->bias};
    bool fresh = false;
    rl_tensor *y = NULL;
    *done = false;
    if (!rl_conv_set_window(v)) return RL_OK;
    if (rl_direct_can(c, v)) { /* it may be given rows with gaps, which oneDNN cannot write */
        c->gaps = true;
        y = rl_conv_output(c, RL_F32, v);
        *done = rl_direct_better(c, v) || !rl_is_channels_last(y);
        if (*done) return rl_direct_conv(c, v, y);
    }
    uint32_t n = 3;
    for (uint32_t i = 0; fused && i < fused->npost; i++)
        if (rl_row_is_binary(fused->post[i].op)) in[n++] = rl_call_in(c, fused->post[i].in);
    rl_prim *p = rl_prim_get(c, in, n, &fresh);
    if (p && fresh) {
        rl_conv_set_weights(v);
        rl_making *m = rl_making_start(c, p);
        make_conv(m, v, fused);
        rl_making_end(m);
    }
    *done = y || (p && p->p);
    if (!*done) return RL_OK;
    if (!p || !p->p) return rl_direct_conv(c, v, y);
    if (c->step->native && c->step->native->nout != v->dim[1]) return rl_call_fail(c, RL_EMODEL, "the output is not as the plan says");
    return run_conv(c, p, v, y ? y : rl_conv_output(c, RL_F32, v));
}

/* The reference kernel, with what was fused into the node: scaled weights, and rows after it. */
static rl_status by_reference(rl_call *c, rl_kernel_fn *reference, const rl_convolution *v) {
    const rl_tensor *in[2] = {rl_call_in(c, 0), rl_conv_scaled(c, v)};
    rl_call bare = *c;
    bare.in = in;
    bare.nin = 2;
    RL_TRY(reference(&bare));
    end_in_rows(c, v, &c->out[0]);
    return RL_OK;
}

/* What oneDNN and direct loops do not run. v: the convolution as the node has it, NULL where that is not known. */
static rl_status unfused(rl_call *c, rl_kernel_fn *reference, const rl_convolution *v) {
    if (c->step->native) return rl_native_plain(c);
    rl_call_fetch(c);
    if (!c->step->fused) return reference(c);
    return v ? by_reference(c, reference, v) : rl_call_fail(c, RL_EMODEL, "it is not as the graph says");
}

/* The window and the output's dims; false where the fast kernels do not know them. */
static rl_status read_conv(rl_call *c, rl_convolution *v, bool *known) {
    *known = false;
    v->k = rl_call_in(c, 1), v->bias = rl_call_in(c, 2);
    if (v->x->rank > RL_CONV_RANK) return RL_OK;
    RL_TRY(rl_conv_read(c, v));
    *known = !v->bias || v->bias->dim[0] == v->dim[1];
    return RL_OK;
}

static bool are_f32(const rl_call *c) {
    return is_f32(c, 0, 3, RL_CONV_RANK + 1) && is_f32(c, 1, 3, RL_CONV_RANK) && (!rl_call_in(c, 2) || is_f32(c, 2, 1, 1));
}

/* Nothing of the input or the output: only the reference kernel knows what that gives. */
static bool is_empty(const rl_convolution *v) { return !rl_numel(v->x) || !rl_numel(v->k) || !rl_product(v->dim, 2 + v->w.r); }

rl_status rl_fast_conv(rl_call *c) {
    rl_convolution v = {.group = 1};
    rl_tensor room[2], logical;
    bool done;
    RL_TRY(rl_native_check(c));
    if (!are_f32(c)) return unfused(c, rl_ref_conv, NULL);
    v.x = input(c, &logical);
    RL_TRY(read_conv(c, &v, &done));
    if (!done || is_empty(&v)) return unfused(c, rl_ref_conv, done ? &v : NULL);
    rl_convolution given = v;
    rl_conv_lift(&v, room);
    RL_TRY(try_conv(c, &v, &done));
    return done ? RL_OK : unfused(c, rl_ref_conv, &given);
}

/* ---- an input in pieces ---- */

static rl_tensor view_of_piece(const rl_call *c, uint32_t i) {
    const rl_pieces *p = c->step->pieces;
    return rl_view_slice(rl_call_in(c, p->piece[i].in), 1, p->piece[i].from, 1, p->piece[i].count);
}

/* Each is there, of the dims that the others have. */
static bool pieces_fit(const rl_call *c) {
    const rl_pieces *p = c->step->pieces;
    const rl_tensor *first = rl_call_in(c, p->piece[0].in);
    for (uint32_t i = 0; i < p->n; i++) {
        const rl_tensor *x = rl_call_in(c, p->piece[i].in);
        if (!x || x->kind != RL_TENSOR || x->dtype != RL_F32 || x->rank < 4 || x->rank > RL_CONV_RANK) return false;
        if (x->rank != first->rank || x->dim[1] < p->piece[i].from + p->piece[i].count) return false;
        for (uint32_t d = 0; d < x->rank; d++)
            if (d != 1 && x->dim[d] != first->dim[d]) return false;
    }
    return true;
}

/* The pieces side by side, channels-last, where some lie as direct loops do not read them. */
static rl_tensor join_pieces(rl_call *c, const rl_tensor *dims) {
    int64_t last[RL_CONV_RANK], back[RL_CONV_RANK], from = 0;
    uint32_t rank = dims->rank;
    for (uint32_t i = 0; i < rank; i++) {
        last[i] = dims->dim[i == 0 ? 0 : i + 1 == rank ? 1 : i + 1];
        back[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
    }
    rl_tensor x = rl_view_transpose(rl_call_temp(c, RL_F32, rank, last), back);
    for (uint32_t i = 0; i < c->step->pieces->n; i++) {
        rl_tensor piece = view_of_piece(c, i), to = rl_view_slice(&x, 1, from, 1, piece.dim[1]);
        rl_tensor_move(c->rt, &to, &piece);
        from += piece.dim[1];
    }
    return x;
}

rl_status rl_fast_conv_pieces(rl_call *c) {
    rl_convolution v = {.group = 1, .pieces = c->step->pieces};
    rl_tensor whole;
    bool known = false;
    if (pieces_fit(c)) {
        whole = view_of_piece(c, 0);
        whole.dim[1] = v.pieces->channels;
        v.x = &whole;
        RL_TRY(read_conv(c, &v, &known));
    }
    if (!known || !rl_conv_set_window(&v)) return rl_call_fail(c, RL_EMODEL, "its input is not as the graph says");
    if (!rl_product(v.dim, 2 + v.w.r)) {
        rl_conv_output(c, RL_F32, &v);
        return RL_OK;
    }
    if (!rl_direct_can(c, &v)) {
        whole = join_pieces(c, &whole);
        v.pieces = NULL;
    }
    c->gaps = true;
    return rl_direct_conv(c, &v, rl_conv_output(c, RL_F32, &v));
}

/* ---- with a DepthToSpace behind it ---- */

rl_status rl_fast_conv_fold(rl_call *c) {
    rl_convolution v = {.group = 1, .fold = c->step->fold, .x = rl_call_in(c, 0)};
    int64_t b = v.fold->block;
    bool known = false;
    if (are_f32(c) && v.x->rank == 4) RL_TRY(read_conv(c, &v, &known));
    if (!known || !rl_conv_set_window(&v) || v.dim[1] % (b * b)) return rl_call_fail(c, RL_EMODEL, "its input is not as the graph says");
    const int64_t dim[] = {v.dim[0], v.dim[1] / b / b, v.dim[2] * b, v.dim[3] * b};
    if (!rl_product(dim, 4)) {
        make_output(c, RL_F32, 4, dim);
        return RL_OK;
    }
    if (!rl_direct_can(c, &v)) v.x = rl_call_dense(c, 0);
    c->gaps = true;
    return rl_direct_conv(c, &v, make_output(c, RL_F32, 4, dim));
}

rl_status rl_fast_conv_transpose(rl_call *c) {
    rl_convolution v = {.back = true, .group = rl_attr_int(c->node, "group", 1)};
    rl_tensor logical;
    bool done;
    RL_TRY(rl_native_check(c));
    if (!is_f32(c, 0, 3, RL_CONV_RANK + 1) || !is_f32(c, 1, 3, RL_CONV_RANK) || (rl_call_in(c, 2) && !is_f32(c, 2, 1, 1))) return unfused(c, rl_ref_conv_transpose, NULL);
    v.x = input(c, &logical), v.k = rl_call_in(c, 1), v.bias = rl_call_in(c, 2);
    if (v.x->rank > RL_CONV_RANK || v.k->rank != v.x->rank || v.group < 1 || v.x->dim[1] != v.k->dim[0] || v.k->dim[0] % v.group) return unfused(c, rl_ref_conv_transpose, NULL);
    RL_TRY(rl_conv_transpose_window(c, v.x, v.k->dim + 2, &v.w));
    v.dim[0] = v.x->dim[0], v.dim[1] = v.k->dim[1] * v.group;
    for (uint32_t i = 0; i < v.w.r; i++) v.dim[2 + i] = v.w.in[i];
    if (v.bias && v.bias->dim[0] != v.dim[1]) return unfused(c, rl_ref_conv_transpose, NULL);
    if (is_empty(&v)) return unfused(c, rl_ref_conv_transpose, &v);
    RL_TRY(try_conv(c, &v, &done));
    return done ? RL_OK : unfused(c, rl_ref_conv_transpose, &v);
}

/* ---- pools ---- */

static bool make_pool(rl_making *m, const rl_convolution *v, int alg) {
    uint32_t rank = v->x->rank;
    rl_lay xl = lay_of(m->c, v, false), yl = lay_of(m->c, v, true);
    m->type = rl_dnnl_type(v->x->dtype);
    rl_dnnl_md x = rl_making_lay(m, rank, v->x->dim, &xl), y = rl_making_lay(m, rank, v->dim, &yl), have = x ? input_md(m, v, &xl, x) : NULL;
    if (!x || !y || !have) return false;
    if (m->f->d.pooling_forward_primitive_desc_create(&m->pd, m->f->engine, RL_DNNL_INFERENCE, alg, x, y, v->stride, v->w.kernel, v->dilation,
                                                      v->before, v->after, m->attr) != 0)
        return false;
    return !rl_making_is_ref(m, false) && rl_making_arg(m, RL_DNNL_ARG_SRC, AT_X, false, have, x) &&
           rl_making_arg(m, RL_DNNL_ARG_DST, AT_Y, true, y, y) && rl_making_primitive(m);
}

/* oneDNN's average counts what lies in the input, or in the pads as well; a window that ceil_mode lets reach past those is neither. */
static bool pool_fits(const rl_call *c, const rl_convolution *v) {
    for (uint32_t i = 0; i < v->w.r; i++) {
        int64_t reach = rl_window_reach(&v->w, i);
        if (v->w.kernel[i] < 1 || v->before[i] >= reach || v->after[i] >= reach) return false;
        if (c->arg == RL_POOL_AVERAGE && v->after[i] > v->w.after[i] && rl_attr_int(c->node, "count_include_pad", 0)) return false;
    }
    return c->arg != RL_POOL_AVERAGE || c->node->since < 19 || !rl_attr_find(c->node, "dilations");
}

static rl_status pool(rl_call *c, rl_convolution *v, int alg, bool *done) {
    bool fresh = false;
    *done = false;
    rl_prim *p = rl_prim_get(c, &v->x, 1, &fresh);
    if (p && fresh) {
        rl_making *m = rl_making_start(c, p);
        make_pool(m, v, alg);
        rl_making_end(m);
    }
    if (!p || !p->p) return RL_OK;
    *done = true;
    void *at[] = {rl_data(v->x), NULL};
    const rl_tensor *y = make_output(c, v->x->dtype, v->x->rank, v->dim);
    at[AT_Y] = rl_data(y);
    RL_TRY(rl_prim_run(c, p, at));
    if (c->step->native && c->step->native->out.block) rl_lay_clear(c->rt, y, v->dim[1]);
    return RL_OK;
}

static rl_status plain_pool(rl_call *c) {
    return c->step->native ? rl_native_plain(c) : rl_ref_pool(c);
}

static rl_status run_pool(rl_call *c, const rl_tensor *x) {
    rl_convolution v = {.x = x};
    bool done, all = rl_attr_int(c->node, "count_include_pad", 0) != 0;
    if (x->rank > RL_CONV_RANK) return plain_pool(c);
    RL_TRY(rl_window_read(c, v.x, NULL, &v.w));
    if (rl_pools_planes(c, x, &v.w)) return rl_pool_planes(c, x, &v.w);
    v.dim[0] = v.x->dim[0], v.dim[1] = v.x->dim[1];
    for (uint32_t i = 0; i < v.w.r; i++) v.dim[2 + i] = v.w.out[i];
    if (!rl_conv_set_window(&v) || !pool_fits(c, &v)) return plain_pool(c);
    RL_TRY(pool(c, &v, c->arg == RL_POOL_MAX ? RL_DNNL_POOL_MAX : all ? RL_DNNL_POOL_AVG_ALL : RL_DNNL_POOL_AVG, &done));
    return done ? RL_OK : plain_pool(c);
}

rl_status rl_fast_pool(rl_call *c) {
    rl_tensor logical;
    RL_TRY(rl_native_check(c));
    if (!is_f32(c, 0, 3, RL_CONV_RANK + 1) || !rl_numel(rl_call_in(c, 0)) || c->arg == RL_POOL_LP || rl_call_wants(c, 1)) return plain_pool(c);
    return run_pool(c, input(c, &logical));
}

/* Of which plans say nothing. */
rl_status rl_fast_byte_pool(rl_call *c) {
    const rl_tensor *x = rl_call_in(c, 0);
    bool fits = x && x->kind == RL_TENSOR && rl_is_byte(x->dtype) && x->rank >= 3 && rl_numel(x) && !rl_call_wants(c, 1);
    return fits ? run_pool(c, x) : rl_ref_pool(c);
}
