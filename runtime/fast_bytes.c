/* Convolutions and products of bytes by oneDNN: QLinearConv, ConvInteger, QLinearMatMul, MatMulInteger, of constant weights.  See fast.h.
 *
 * Sums are exact in i32, as the reference kernels' are; so only on processors that have such products: oneDNN makes them elsewhere of two products of
 * 16 bits that end at their range.  Weights are centered and packed as signed bytes.  A convolution's input and output lie channels-last. */
#include <string.h>

#include "fast_conv.h"
#include "isa.h"
#include "kernels_fast.h"
#include "quantize.h"

enum { AT_X, AT_Y, AT_ZERO, NAT }; /* places of addresses */

typedef struct {
    bool sums, product, turned; /* the output is i32; a product, not a convolution; of weights [n,k], as a Gemm may have */
    const rl_tensor *xzero, *w, *wzero, *bias;
    const rl_tensor *scale[3]; /* of x, w, y */
    const rl_tensor *yzero;
    rl_convolution v;          /* x, k, window and output */
    rl_tensor room[3];         /* x and k where they are seen otherwise */
    int64_t n;                 /* output channels */
    rl_dtype to;
} job;

#ifdef __x86_64__
static bool has_products(void) { return RL_HAS_VNNI; }
#else
static bool has_products(void) { return false; }
#endif

/* An input that is not there, or is constant, of this type, of one element or of n. */
static bool fits(const rl_call *c, uint32_t i, rl_dtype t, int64_t n) {
    const rl_tensor *x = rl_call_in(c, i);
    return !x || (rl_call_is_constant(c, i) && x->kind == RL_TENSOR && x->dtype == t && rl_is_dense(x) && (rl_numel(x) == 1 || rl_numel(x) == n));
}

static double number(const rl_tensor *t, int64_t i) {
    i = !t || rl_numel(t) == 1 ? 0 : i;
    if (!t) return 0;
    return rl_is_byte(t->dtype) ? rl_byte_at(t, i) : t->dtype == RL_I32 ? ((const int32_t *)rl_data(t))[i] : (double)((const float *)rl_data(t))[i];
}

/* What the inputs are; false: the reference kernel's. */
static bool read_inputs(const rl_call *c, job *j) {
    uint32_t w = j->sums ? 1 : 3, z = j->sums ? 3 : 5;
    const rl_tensor *x = rl_call_in(c, 0);
    j->w = rl_call_in(c, w), j->xzero = rl_call_in(c, 2), j->wzero = rl_call_in(c, z);
    if (!has_products() || !x || !j->w || x->kind != RL_TENSOR || !rl_is_byte(x->dtype) || !rl_is_byte(j->w->dtype) || !rl_call_is_constant(c, w)) return false;
    if (!rl_is_dense(j->w) || !rl_numel(x) || !rl_numel(j->w) || (j->product ? j->w->rank != 2 || x->rank < 2 || !rl_is_dense(x) : x->rank < 3 || x->rank > RL_CONV_RANK)) return false;
    j->turned = j->product && rl_attr_int(c->node, "transB", 0);
    if (j->product && x->dim[x->rank - 1] != j->w->dim[j->turned]) return false;
    j->n = j->w->dim[j->product && !j->turned];
    if ((j->xzero && (j->xzero->dtype != x->dtype || rl_numel(j->xzero) != 1)) || !fits(c, z, j->w->dtype, j->n)) return false;
    j->v.x = x;
    j->to = RL_I32;
    if (j->sums) return true;
    for (uint32_t i = 0; i < 3; i++) j->scale[i] = rl_call_in(c, (uint32_t[]){1, 4, 6}[i]);
    j->yzero = rl_call_in(c, 7), j->bias = rl_call_in(c, 8);
    if (!j->scale[0] || !j->scale[1] || !j->scale[2] || !j->yzero || !rl_is_byte(j->yzero->dtype)) return false;
    j->to = j->yzero->dtype;
    return fits(c, 1, RL_F32, 1) && fits(c, 4, RL_F32, j->n) && fits(c, 6, RL_F32, 1) && fits(c, 2, x->dtype, 1) && fits(c, 7, j->to, 1) &&
           (!j->bias || (fits(c, 8, RL_I32, j->n) && rl_numel(j->bias) == j->n));
}

/* All of it, with the output's dims. */
static rl_status read_job(rl_call *c, job *j, bool *known) {
    rl_convolution *v = &j->v;
    *known = read_inputs(c, j);
    if (!*known) return RL_OK;
    v->group = 1;
    if (j->product) {
        int64_t k = j->w->dim[j->turned];
        if (j->turned) j->room[1] = rl_view_transpose(j->w, (int64_t[]){1, 0});
        j->room[0] = *v->x;
        j->room[0].rank = 2, j->room[0].dim[0] = rl_numel(v->x) / k, j->room[0].dim[1] = k, j->room[0].stride[0] = k, j->room[0].stride[1] = 1;
        v->x = &j->room[0];
        v->k = j->turned ? &j->room[1] : j->w;
        v->dim[0] = v->x->dim[0], v->dim[1] = j->n;
        return RL_OK;
    }
    v->k = j->w;
    RL_TRY(rl_conv_read(c, v));
    rl_conv_lift(v, j->room);
    *known = rl_conv_set_window(v);
    return RL_OK;
}

/* ---- making one ---- */

/* A description of bytes, or sums: channels-last, or row-major. */
static rl_dnnl_md lying(rl_making *m, rl_dtype t, uint32_t rank, const int64_t *dim) {
    int64_t stride[RL_CONV_RANK] = {dim[1], 1};
    if (rank > 2) rl_channels_last(rank, dim, stride);
    m->type = rl_dnnl_type(t);
    return rl_making_md(m, rank, dim, stride);
}

static bool set_attributes(rl_making *m, const job *j) {
    const rl_dnnl *d = &m->f->d;
    int each = j->product ? 2 : j->v.group > 1 ? 3 : 1;
    bool done = j->sums || d->primitive_attr_set_scales_mask(m->attr, RL_DNNL_ARG_WEIGHTS, each) == 0;
    if (j->xzero && (j->sums || number(j->xzero, 0) != 0)) done = done && d->primitive_attr_set_zero_points_mask(m->attr, RL_DNNL_ARG_SRC, 0) == 0;
    if (number(j->yzero, 0) != 0) done = done && d->primitive_attr_set_zero_points_mask(m->attr, RL_DNNL_ARG_DST, 0) == 0;
    return done;
}

/* The primitive's description; *x, *y: how input and output lie. */
static bool describe(rl_making *m, job *j, rl_dnnl_cmd *x, rl_dnnl_cmd *y) {
    rl_convolution *v = &j->v;
    int64_t one = 1, across[2] = {1, j->n};
    *x = lying(m, v->x->dtype, v->x->rank, v->x->dim), *y = lying(m, j->to, v->x->rank, v->dim);
    m->type = RL_DNNL_F32;
    rl_dnnl_md bias = !j->bias ? NULL : j->product ? rl_making_md(m, 2, across, across) : rl_making_md(m, 1, &j->n, &one);
    m->type = RL_DNNL_S8;
    if (!j->product) rl_conv_set_weights(v);
    rl_dnnl_md w = j->product ? rl_making_md(m, 2, v->k->dim, NULL) : rl_making_md(m, v->krank, v->kdim, NULL);
    if (!*x || !*y || !w || (j->bias && !bias) || !set_attributes(m, j)) return false;
    int status = j->product ? m->f->d.matmul_primitive_desc_create(&m->pd, m->f->engine, *x, w, bias, *y, m->attr) : rl_conv_describe(m, v, *x, w, bias, *y);
    return status == 0 && !rl_making_is_ref(m, false);
}

/* Weights less their zero points, as signed bytes; false: they do not fit. */
static bool center(rl_call *c, job *j) {
    rl_tensor *k = rl_call_temp(c, RL_I8, j->w->rank, j->w->dim), as = *j->v.k;
    int64_t count = rl_numel(j->w), inner = j->product && !j->turned ? 1 : count / j->n;
    const uint8_t *from = rl_data(j->w);
    int8_t *to = rl_data(k);
    int *zero = rl_new(c->tmp, int, j->n), flip = j->w->dtype == RL_I8 ? 128 : 0, odd = 0; /* a signed byte plus 128 is its bits, the first turned */
    for (int64_t i = 0; i < j->n; i++) zero[i] = (int)number(j->wzero, i) + flip;
    for (int64_t i = 0; i < count; i += inner) {
        for (int64_t e = 0; e < inner; e++) {
            int x = (from[i + e] ^ flip) - zero[i / inner % j->n];
            odd |= x != (int8_t)x;
            to[i + e] = (int8_t)x;
        }
    }
    as.mem = k->mem, as.offset = k->offset, as.dtype = RL_I8; /* dims as they are seen */
    j->room[2] = as;
    j->v.k = &j->room[2];
    if (!j->product) rl_conv_set_weights(&j->v);
    return !odd;
}

/* n numbers of this type, as argument arg. */
static bool give(rl_making *m, int arg, int type, int64_t n, const void *p) {
    int64_t one = 1;
    m->type = type;
    rl_dnnl_md md = rl_making_md(m, 1, &n, &one);
    return md && rl_making_constant(m, arg, md, p, md);
}

static bool give_numbers(rl_making *m, const job *j) {
    float *by = rl_new(m->c->tmp, float, j->n), *bias = rl_new(m->c->tmp, float, j->n);
    int32_t xzero = (int32_t)number(j->xzero, 0), yzero = (int32_t)number(j->yzero, 0);
    bool done = true;
    for (int64_t i = 0; !j->sums && i < j->n; i++) {
        by[i] = (float)number(j->scale[0], 0) * (float)number(j->scale[1], i) / (float)number(j->scale[2], 0);
        bias[i] = (float)number(j->bias, i) * by[i];
    }
    if (!j->sums) done = give(m, RL_DNNL_ARG_SCALES | RL_DNNL_ARG_WEIGHTS, RL_DNNL_F32, j->n, by);
    if (j->bias) done = done && give(m, RL_DNNL_ARG_BIAS, RL_DNNL_F32, j->n, bias);
    if (!j->sums && xzero) done = done && give(m, RL_DNNL_ARG_ZEROS | RL_DNNL_ARG_SRC, RL_DNNL_S32, 1, &xzero);
    if (yzero) done = done && give(m, RL_DNNL_ARG_ZEROS | RL_DNNL_ARG_DST, RL_DNNL_S32, 1, &yzero);
    if (!j->sums || !j->xzero) return done;
    m->type = RL_DNNL_S32;
    rl_dnnl_md md = rl_making_md(m, 1, (int64_t[]){1}, (int64_t[]){1});
    return done && md && rl_making_arg(m, RL_DNNL_ARG_ZEROS | RL_DNNL_ARG_SRC, AT_ZERO, false, md, md);
}

static bool make(rl_making *m, job *j) {
    rl_convolution *v = &j->v;
    rl_dnnl_cmd x, y;
    if (!describe(m, j, &x, &y) || !center(m->c, j)) return false;
    m->type = rl_dnnl_type(v->x->dtype);
    rl_dnnl_md have = rl_making_md(m, v->x->rank, v->x->dim, v->x->stride);
    m->type = RL_DNNL_S8;
    rl_dnnl_md w = j->product ? rl_making_md(m, 2, v->k->dim, v->k->stride) : rl_making_md(m, v->krank, v->kdim, v->kstride);
    const rl_tensor *t = v->x;
    bool same = j->product || rl_is_channels_last(t);
    bool done = have && w && rl_making_arg(m, RL_DNNL_ARG_SRC, AT_X, false, same ? x : have, x) && rl_making_arg(m, RL_DNNL_ARG_DST, AT_Y, true, y, y) &&
                rl_making_constant(m, RL_DNNL_ARG_WEIGHTS, w, rl_data(v->k), m->f->d.primitive_desc_query_md(m->pd, RL_DNNL_QUERY_WEIGHTS, 0)) &&
                give_numbers(m, j) && rl_making_primitive(m);
    if (done) rl_call_packed(m->c, j->sums ? 1 : 3);
    return done;
}

/* ---- running one ---- */

static rl_tensor *make_output(rl_call *c, const job *j) {
    const rl_tensor *x = rl_call_in(c, 0);
    int64_t dim[RL_RANK];
    if (!j->product) return rl_conv_output(c, j->to, &j->v);
    for (uint32_t i = 0; i < x->rank; i++) dim[i] = i + 1 == x->rank ? j->n : x->dim[i];
    return rl_call_make(c, 0, j->to, x->rank, dim);
}

static rl_status run(rl_call *c, job *j, rl_kernel_fn *reference) {
    bool known, fresh = false;
    void *at[NAT] = {NULL};
    RL_TRY(rl_call_need(c, j->sums ? 2 : 8));
    RL_TRY(read_job(c, j, &known));
    rl_prim *p = known ? rl_prim_get(c, &j->v.x, 1, &fresh) : NULL;
    if (p && fresh) {
        rl_making *m = rl_making_start(c, p);
        make(m, j);
        rl_making_end(m);
    }
    if (!p || !p->p) {
        rl_call_fetch(c);
        if (j->product && (j->turned || j->bias)) return rl_call_fail(c, RL_ELIMIT, "oneDNN does not run it");
        return reference(c);
    }
    int32_t zero = (int32_t)number(j->xzero, 0);
    at[AT_X] = rl_data(j->v.x), at[AT_Y] = rl_data(make_output(c, j)), at[AT_ZERO] = &zero;
    return rl_prim_run(c, p, at);
}

bool rl_fast_takes_bytes(rl_call *c) {
    job j = {.product = strcmp(c->node->type, "QLinearMatMul") == 0};
    rl_prim none = {.run = c->rt};
    rl_dnnl_cmd x, y;
    bool known = false;
    if (read_job(c, &j, &known) != RL_OK || !known) return false;
    rl_making *m = rl_making_start(c, &none);
    known = describe(m, &j, &x, &y);
    rl_making_end(m);
    return known;
}

rl_status rl_fast_qlinear_conv(rl_call *c) {
    return run(c, &(job){0}, rl_ref_qlinear_conv);
}

rl_status rl_fast_conv_integer(rl_call *c) {
    return run(c, &(job){.sums = true}, rl_ref_conv_integer);
}

rl_status rl_fast_qlinear_matmul(rl_call *c) {
    return run(c, &(job){.product = true}, rl_ref_qlinear_matmul);
}

rl_status rl_fast_matmul_integer(rl_call *c) {
    return run(c, &(job){.sums = true, .product = true}, rl_ref_matmul_integer);
}
