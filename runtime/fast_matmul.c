/* MatMul and Gemm: see fast.h.  With a constant matrix by own tiles (panels.h), which packs it once for all shapes, and does what was fused
 * to each tile while it is in the cache; else by oneDNN, which takes operands with the strides that they have. */
#include <string.h>

#include "fast.h"
#include "fast_conv.h"
#include "fuse.h"
#include "kernels_fast.h"
#include "lines.h"
#include "panels.h"
#include "ref_matmul.h"
#include "scatter.h"

enum { RANK = RL_DNNL_RANK, AT_A = 0, AT_B = 1, AT_Y = 2, AT_BIAS = 3, AT_POST = 4 };

typedef struct {
    rl_tensor a, b;      /* of one rank, batch dims broadcast */
    const rl_tensor *bias; /* [n] or [1,n]; NULL: none */
    rl_tensor post[RL_POSTS]; /* operands of fused ops, with the rank of y */
    uint32_t rank;
    int64_t dim[RANK];   /* of y */
    float alpha, beta;   /* of a Gemm: of the product, of the bias */
    const int64_t *order; /* of y in memory; NULL: row-major */
    bool tiled;          /* own tiles made it */
} product;

static bool is_f32(const rl_tensor *t, uint32_t least) {
    return t && t->kind == RL_TENSOR && t->dtype == RL_F32 && t->rank >= least && t->rank <= RANK;
}

/* More dims of 1 in front. */
static rl_tensor lead(const rl_tensor *t, uint32_t rank) {
    rl_tensor x = *t;
    uint32_t more = rank - t->rank;
    x.rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        x.dim[i] = i < more ? 1 : t->dim[i - more];
        x.stride[i] = i < more ? 0 : t->stride[i - more];
    }
    return x;
}

/* A description as oneDNN wants it: the stride of a dim of 1 is that of a tensor without gaps. */
static rl_dnnl_md md_of(rl_making *m, const rl_tensor *t) {
    int64_t stride[RANK], step = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        stride[i] = t->dim[i] == 1 ? step : t->stride[i];
        step = RL_MAX(step, stride[i] * t->dim[i]);
    }
    return rl_making_md(m, t->rank, t->dim, stride);
}

static rl_dnnl_md dense_md(rl_making *m, uint32_t rank, const int64_t *dim) {
    int64_t stride[RANK], step = 1;
    for (uint32_t i = rank; i-- > 0; step *= dim[i]) stride[i] = step;
    return rl_making_md(m, rank, dim, stride);
}

/* Output y. */
static rl_dnnl_md output_md(rl_making *m, const product *v) {
    int64_t stride[RANK], step = 1;
    if (!v->order) return dense_md(m, v->rank, v->dim);
    for (uint32_t i = v->rank; i-- > 0; step *= v->dim[v->order[i]]) stride[v->order[i]] = step;
    return rl_making_md(m, v->rank, v->dim, stride);
}

static bool is_packed(const rl_call *c, const product *v) {
    return v->b.rank == 2 && rl_call_is_constant(c, 1);
}

/* b times alpha and the scales of its columns, row-major. */
static bool pack_weights(rl_making *m, const product *v, const rl_fused *fused, rl_dnnl_cmd want) {
    if (v->alpha == 1 && (!fused || !fused->scale)) return rl_making_constant(m, RL_DNNL_ARG_WEIGHTS, md_of(m, &v->b), rl_data(&v->b), want);
    rl_tensor *b = rl_call_passing(m->c, 2, v->b.dim);
    rl_tensor_move(m->c->rt, b, &v->b);
    float *x = rl_data(b);
    for (int64_t i = 0; i < b->dim[0]; i++)
        for (int64_t j = 0; j < b->dim[1]; j++) x[i * b->dim[1] + j] *= v->alpha * (fused && fused->scale ? fused->scale[j] : 1);
    return rl_making_constant(m, RL_DNNL_ARG_WEIGHTS, md_of(m, b), x, want);
}

static const float *whole_bias(rl_call *c, const product *v, const rl_fused *fused) {
    int64_t n = v->dim[v->rank - 1];
    float *b = rl_new(c->tmp, float, n);
    for (int64_t i = 0; v->bias && i < n; i++) b[i] = v->beta * ((const float *)rl_data(v->bias))[i * v->bias->stride[v->bias->rank - 1]];
    for (int64_t i = 0; fused && i < n; i++) b[i] = b[i] * (fused->scale ? fused->scale[i] : 1) + (fused->shift ? fused->shift[i] : 0);
    return b;
}

static int describe(rl_making *m, rl_dnnl_cmd a, rl_dnnl_cmd b, rl_dnnl_cmd bias, rl_dnnl_cmd y) {
    return m->f->d.matmul_primitive_desc_create(&m->pd, m->f->engine, a, b, bias, y, m->attr);
}

/* With the strides that the operands have; where oneDNN has only plain loops for those, with copies without gaps. */
static bool make_product(rl_making *m, const product *v, const rl_fused *fused) {
    rl_call *c = m->c;
    int64_t one[RANK];
    for (uint32_t i = 0; i < v->rank; i++) one[i] = i + 1 == v->rank ? v->dim[i] : 1;
    bool packed = is_packed(c, v);
    rl_dnnl_md y = output_md(m, v), a = md_of(m, &v->a), b = md_of(m, &v->b);
    rl_dnnl_md bias = v->bias || (fused && fused->shift) ? dense_md(m, v->rank, one) : NULL, wa = a;
    rl_dnnl_cmd wb = packed ? rl_making_md(m, 2, v->b.dim, NULL) : b;
    if (!y || !a || !b || !wb || !rl_making_post(m, y)) return false;
    int status = describe(m, wa, wb, bias, y);
    if (status != 0 || rl_making_is_ref(m, false)) {
        if ((!fused && !packed) || v->order) return false; /* rl_gemm does as well without copies */
        if (status == 0) m->f->d.primitive_desc_destroy(m->pd);
        m->pd = NULL;
        wa = dense_md(m, v->a.rank, v->a.dim), wb = packed ? wb : dense_md(m, v->b.rank, v->b.dim);
        if (!wa || !wb || describe(m, wa, wb, bias, y) != 0) return false;
    }
    rl_dnnl_cmd want = m->f->d.primitive_desc_query_md(m->pd, RL_DNNL_QUERY_WEIGHTS, 0);
    bool done = rl_making_arg(m, RL_DNNL_ARG_SRC, AT_A, false, a, wa) && rl_making_arg(m, RL_DNNL_ARG_DST, AT_Y, true, y, y);
    done = done && (packed ? pack_weights(m, v, fused, want) : rl_making_arg(m, RL_DNNL_ARG_WEIGHTS, AT_B, false, b, want));
    done = done && (!bias || rl_making_constant(m, RL_DNNL_ARG_BIAS, bias, whole_bias(c, v, fused), bias));
    for (uint32_t i = 0; fused && i < fused->npost && done; i++)
        if (rl_row_is_binary(fused->post[i].op))
            done = rl_making_arg(m, RL_DNNL_ARG_POST_OP * ((int)i + 1) | RL_DNNL_ARG_SRC_1, AT_POST + i, false, md_of(m, &v->post[i]), y);
    if (!done || !rl_making_primitive(m)) return false;
    if (packed) rl_call_packed(c, 1);
    return true;
}

/* ---- own tiles ---- */

typedef struct {
    const rl_rows *rows;
    rl_post op[RL_POSTS + 1];
    uint32_t nop;
    const rl_tensor *post;
} ending;

/* What was fused, and rounding, on m rows of n elements of y. */
static void finish(const void *how, float *y, int64_t ym, int64_t row, int64_t column, int64_t m, int64_t n) {
    const ending *e = how;
    for (uint32_t i = 0; i < e->nop; i++) {
        const rl_post *o = &e->op[i];
        bool binary = rl_row_is_binary(o->op);
        int64_t bm = binary ? e->post[i].stride[0] : 0, bn = binary ? e->post[i].stride[1] : 0;
        const float *b = binary ? (const float *)rl_data(&e->post[i]) + row * bm + column * bn : NULL;
        if (o->op == RL_ROW_ADD && bn == 1) {
            e->rows->add_rows(y, ym, b, bm, m, n, 1);
            continue;
        }
        for (int64_t r = 0; r < m; r++)
            e->rows->op[o->op](y + r * ym, y + r * ym, binary ? b + r * bm : NULL, bn, n, o->p, o->q);
    }
}

static ending ending_of(rl_call *c, const rl_tensor *post) {
    const rl_fused *fused = c->step->fused;
    ending e = {.rows = rl_rows_best(), .nop = fused ? fused->npost : 0, .post = post};
    for (uint32_t i = 0; i < e.nop; i++) e.op[i] = fused->post[i];
    e.nop += rl_take_rounding(c, &e.op[e.nop]);
    return e;
}

/* The step's panels, b times alpha and the scales of its columns, and behind them the whole bias. */
static rl_panels packed_panels(rl_call *c, const product *v, const rl_fused *fused, const rl_rows *rows,
                               const float **bias) {
    int64_t k = v->b.dim[0], n = v->b.dim[1], count = rl_panels_count(n, k), all = count + n;
    rl_tensor *keep = &c->step->packed;
    if (keep->kind == RL_ABSENT) {
        rl_call_fetch(c);
        *keep = rl_tensor_new(c->rt, RL_F32, 1, &all);
        c->rt->constants += keep->mem->nbyte;
        float *p = rl_data(keep);
        rl_panels_pack(rows, rl_data(&v->b), n, k, v->b.stride[0], v->b.stride[1], p);
        rl_panels_scale(&(rl_panels){rows, p, n, k}, v->alpha, fused ? fused->scale : NULL, p);
        memcpy(p + count, whole_bias(c, v, fused), (size_t)n * sizeof *p);
        rl_call_packed(c, 1);
    }
    *bias = (const float *)rl_data(keep) + count;
    return (rl_panels){rows, rl_data(keep), n, k};
}

/* Not where an operand's rows do not lie side by side. */
static rl_status run_tiles(rl_call *c, product *v, uint32_t rank, const int64_t *dim) {
    const rl_fused *fused = c->step->fused;
    if (!is_packed(c, v) || v->rank != 2 || (v->a.stride[1] != 1 && v->a.dim[1] != 1)) return RL_OK;
    for (uint32_t i = 0; fused && i < fused->npost; i++)
        if (rl_row_is_binary(fused->post[i].op) && v->post[i].stride[1] != 1 && v->post[i].stride[1] != 0)
            return RL_OK;
    ending e = ending_of(c, v->post);
    const rl_scatter *to = c->step->scatter;
    rl_panels_product p = {.a = rl_data(&v->a), .am = v->a.stride[0], .m = v->a.dim[0], .ym = v->dim[1], .how = &e};
    rl_panels b = packed_panels(c, v, fused, e.rows, &p.start);
    if (to) RL_TRY(rl_scatter_make(c, p.m, p.ym, &p.y));
    else p.y = rl_data(rl_call_make(c, 0, RL_F32, rank, dim));
    p.at = to ? to->at : NULL;
    if (e.nop) p.end = finish;
    rl_panels_multiply(c->rt, &b, &p);
    c->step->ran = "tiles";
    v->tiled = true;
    return RL_OK;
}

/* A copy of what goes backwards, for which oneDNN has no description. */
static void straighten(rl_call *c, rl_tensor *t) {
    if (rl_goes_back(t)) *t = *rl_dense_as(c, t, RL_F32);
}

static rl_status try_product(rl_call *c, product *v, uint32_t rank, const int64_t *dim, bool *done) {
    const rl_fused *fused = c->step->fused;
    const rl_tensor *in[3 + RL_POSTS] = {&v->a, &v->b, v->bias};
    uint32_t n = 3;
    bool fresh = false;
    RL_TRY(run_tiles(c, v, rank, dim));
    *done = v->tiled;
    if (*done) return RL_OK;
    if (fused) straighten(c, &v->a), straighten(c, &v->b); /* by itself, rl_gemm does as well without copies */
    for (uint32_t i = 0; fused && i < fused->npost; i++) {
        if (!rl_row_is_binary(fused->post[i].op)) continue;
        straighten(c, &v->post[i]);
        in[n++] = &v->post[i];
    }
    rl_prim *p = rl_prim_get(c, in, n, &fresh);
    if (p && fresh) {
        rl_making *m = rl_making_start(c, p);
        p->ordered = v->order != NULL;
        if (!make_product(m, v, fused) && v->order) { /* row-major then, and copied by who wants another order */
            rl_making_end(m);
            m = rl_making_start(c, p);
            p->ordered = false;
            v->order = NULL;
            make_product(m, v, fused);
        }
        rl_making_end(m);
    }
    if (!p || !p->p) return RL_OK;
    *done = true;
    void *at[AT_POST + RL_POSTS] = {rl_data(&v->a), rl_data(&v->b)};
    for (uint32_t i = 0; fused && i < fused->npost; i++)
        if (rl_row_is_binary(fused->post[i].op)) at[AT_POST + i] = rl_data(&v->post[i]);
    at[AT_Y] = rl_data(rl_call_make_in(c, 0, RL_F32, rank, dim, p->ordered ? v->order : NULL));
    return rl_prim_run(c, p, at);
}

static rl_status unfused(const rl_call *c, rl_kernel_fn *reference, rl_call *call) {
    if (c->step->fused) return rl_call_fail(c, RL_ELIMIT, "oneDNN has no primitive for it with what was fused into it; --kernels reference runs it");
    rl_call_fetch(c);
    return reference(call);
}

/* No elements to multiply: none to give, or sums of nothing. */
static rl_status empty(rl_call *c, rl_kernel_fn *reference, uint32_t rank, const int64_t *dim) {
    if (!c->step->fused || rl_product(dim, rank)) return unfused(c, reference, c);
    rl_call_make(c, 0, RL_F32, rank, dim);
    return RL_OK;
}

/* Operands of fused ops as y has its dims; false where strides cannot say it. */
static bool set_posts(rl_call *c, product *v) {
    const rl_fused *fused = c->step->fused;
    for (uint32_t i = 0; fused && i < fused->npost; i++) {
        if (!rl_row_is_binary(fused->post[i].op)) continue;
        const rl_tensor *t = rl_call_in(c, fused->post[i].in);
        if (!rl_view_reshape(t, v->rank, v->dim, &v->post[i]) && !rl_view_reshape(rl_call_dense(c, fused->post[i].in), v->rank, v->dim, &v->post[i]))
            return false;
    }
    return true;
}

static rl_status multiply(rl_call *c, bool *tiled) {
    product v = {.alpha = 1};
    uint32_t rank;
    int64_t dim[RL_RANK], rows = 1;
    bool done = false;
    const rl_tensor *a = rl_call_in(c, 0), *b = rl_call_in(c, 1);
    *tiled = false;
    if (!is_f32(a, 2) || !is_f32(b, 2)) return unfused(c, rl_ref_matmul, c);
    RL_TRY(rl_matmul_dims(c, a, b, &rank, dim));
    if (!rl_numel(a) || !rl_numel(b)) return empty(c, rl_ref_matmul, rank, dim);
    v.rank = rank;
    if (b->rank == 2 && a->rank > 2) { /* one product of all rows */
        for (uint32_t i = 0; i + 1 < a->rank; i++) rows *= a->dim[i];
        const int64_t flat[2] = {rows, a->dim[a->rank - 1]};
        v.rank = 2;
        if (!rl_view_reshape(a, 2, flat, &v.a)) rl_view_reshape(rl_call_dense(c, 0), 2, flat, &v.a);
        v.b = *b;
        v.dim[0] = rows, v.dim[1] = b->dim[1];
    } else {
        v.a = lead(a, rank), v.b = lead(b, rank);
        memcpy(v.dim, dim, rank * sizeof *dim);
        v.order = rl_order_for(c->step->order, rank);
    }
    if (set_posts(c, &v)) RL_TRY(try_product(c, &v, rank, dim, &done));
    *tiled = v.tiled;
    return done ? RL_OK : unfused(c, rl_ref_matmul, c);
}

rl_status rl_fast_matmul(rl_call *c) {
    bool tiled;
    return multiply(c, &tiled);
}

rl_status rl_fast_scattered_matmul(rl_call *c) {
    bool tiled;
    RL_TRY(multiply(c, &tiled));
    return tiled ? RL_OK : rl_scatter_move(c);
}

/* A bias for each column, constant. */
static bool gemm_bias(const rl_call *c, product *v) {
    const rl_tensor *z = rl_call_in(c, 2);
    v->beta = rl_attr_float(c->node, "beta", 1);
    if (!z || v->beta == 0) return true;
    v->bias = z;
    return is_f32(z, 1) && z->rank <= 2 && rl_call_is_constant(c, 2) && z->dim[z->rank - 1] == v->dim[1] && (z->rank == 1 || z->dim[0] == 1);
}

rl_status rl_fast_gemm(rl_call *c) {
    static const int64_t swap[] = {1, 0};
    product v = {.rank = 2, .alpha = rl_attr_float(c->node, "alpha", 1)};
    bool done = false;
    const rl_tensor *a = rl_call_in(c, 0), *b = rl_call_in(c, 1);
    if (!is_f32(a, 2) || !is_f32(b, 2) || a->rank != 2 || b->rank != 2) return unfused(c, rl_ref_gemm, c);
    v.a = rl_attr_int(c->node, "transA", 0) ? rl_view_transpose(a, swap) : *a;
    v.b = rl_attr_int(c->node, "transB", 0) ? rl_view_transpose(b, swap) : *b;
    v.dim[0] = v.a.dim[0], v.dim[1] = v.b.dim[1];
    if (!rl_numel(a) || !rl_numel(b)) return empty(c, rl_ref_gemm, 2, v.dim);
    if (v.a.dim[1] != v.b.dim[0] || (v.alpha != 1 && !is_packed(c, &v)) || !gemm_bias(c, &v) || !set_posts(c, &v)) return unfused(c, rl_ref_gemm, c);
    RL_TRY(try_product(c, &v, 2, v.dim, &done));
    return done ? RL_OK : unfused(c, rl_ref_gemm, c);
}

/* ---- a convolution of single pixels, as a product of their channels with weights ---- */

static rl_panels packed_pixels(rl_call *c, const rl_convolution *v, const rl_rows *rows, const float **bias) {
    int64_t k = v->k->dim[1], n = v->k->dim[0], count = rl_panels_count(n, k), all = count + n;
    rl_tensor *keep = &c->step->packed;
    if (keep->kind == RL_ABSENT) {
        rl_call_fetch(c);
        *keep = rl_tensor_new(c->rt, RL_F32, 1, &all);
        c->rt->constants += keep->mem->nbyte;
        rl_panels_pack(rows, rl_data(rl_conv_scaled(c, v)), n, k, 1, k, rl_data(keep));
        memcpy((float *)rl_data(keep) + count, rl_conv_whole_bias(c, v), (size_t)n * sizeof(float));
        rl_call_packed(c, 1);
    }
    *bias = (const float *)rl_data(keep) + count;
    return (rl_panels){rows, rl_data(keep), n, k};
}

/* The pixels' channels as rows, copied where they do not lie side by side. */
static rl_tensor pixels_of(rl_call *c, const rl_tensor *x) {
    const int64_t last[] = {0, 2, 3, 1}, flat[] = {x->dim[0] * x->dim[2] * x->dim[3], x->dim[1]};
    rl_tensor view = rl_view_transpose(x, last), rows;
    if (rl_view_reshape(&view, 2, flat, &rows) && (rows.stride[1] == 1 || flat[1] == 1)) return rows;
    const rl_tensor *copy = rl_call_temp(c, RL_F32, 4, view.dim);
    rl_tensor_move(c->rt, copy, &view);
    rl_view_reshape(copy, 2, flat, &rows);
    return rows;
}

rl_status rl_fast_scattered_conv(rl_call *c) {
    const rl_tensor *x = rl_call_in(c, 0);
    rl_convolution v = {.x = x, .k = rl_call_in(c, 1), .bias = rl_call_in(c, 2), .group = 1};
    if (!is_f32(x, 4) || x->rank != 4 || x->dim[1] != v.k->dim[1]) return rl_call_fail(c, RL_EMODEL, "its input is not as the graph says");
    v.dim[1] = v.k->dim[0];
    ending e = ending_of(c, NULL);
    rl_tensor a = pixels_of(c, x);
    rl_panels_product p = {.a = rl_data(&a), .am = a.stride[0], .m = a.dim[0], .ym = v.dim[1], .at = c->step->scatter->at, .how = &e};
    rl_panels b = packed_pixels(c, &v, e.rows, &p.start);
    RL_TRY(rl_scatter_make(c, p.m, p.ym, &p.y));
    if (e.nop) p.end = finish;
    rl_panels_multiply(c->rt, &b, &p);
    c->step->ran = "tiles";
    return RL_OK;
}
