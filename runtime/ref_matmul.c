/* MatMul and Gemm: plain loops over any strides; sums are carried in the compute type, in order. */
#include <string.h>

#include "kernels.h"

/* y[m][n] = sum over k of a[m][k] * b[k][n], strides in elements. */
typedef struct {
    int64_t m, n, k;
    int64_t am, ak, bk, bn; /* y is row-major */
    const void *a, *b;
    void *y;
} product;

/* Row by row of y, k outside n: b is read straight where it is row-major. W is the type that wraps. */
#define PRODUCT(S, T, W)                                                                                             \
    static void product_##S(void *arg, int64_t from, int64_t to) {                                                   \
        const product *p = arg;                                                                                      \
        const T *a = p->a, *b = p->b;                                                                                \
        for (int64_t i = from; i < to; i++) {                                                                        \
            T *y = (T *)p->y + i * p->n;                                                                             \
            for (int64_t j = 0; j < p->n; j++) y[j] = 0;                                                             \
            for (int64_t k = 0; k < p->k; k++) {                                                                     \
                W x = (W)a[i * p->am + k * p->ak];                                                                   \
                const T *row = b + k * p->bk;                                                                        \
                for (int64_t j = 0; j < p->n; j++) y[j] = (T)((W)y[j] + x * (W)row[j * p->bn]);                      \
            }                                                                                                        \
        }                                                                                                            \
    }
PRODUCT(f32, float, float)
PRODUCT(f64, double, double)
PRODUCT(i32, int32_t, uint32_t)
PRODUCT(i64, int64_t, uint64_t)

static rl_range_fn *product_of(rl_dtype t) {
    return t == RL_F32 ? product_f32 : t == RL_F64 ? product_f64 : t == RL_I32 ? product_i32 : product_i64;
}

/* Unsigned products are the signed ones' bits; what is shorter is widened. */
static rl_dtype product_type(rl_dtype t) {
    rl_dtype w = rl_compute_type(t);
    return rl_is_float(w) ? w : t == RL_I64 || t == RL_U64 ? RL_I64 : RL_I32;
}

static void multiply(rl_rt *rt, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y) {
    uint32_t ra = a->rank, rb = b->rank;
    product p = {.m = a->dim[ra - 2], .n = b->dim[rb - 1], .k = a->dim[ra - 1], .am = a->stride[ra - 2], .ak = a->stride[ra - 1],
                 .bk = b->stride[rb - 2], .bn = b->stride[rb - 1], .a = rl_data(a), .b = rl_data(b), .y = rl_data(y)};
    rl_parallel(rt, p.m, RL_MAX(1, 32768 / RL_MAX(p.n * p.k, 1)), product_of(y->dtype), &p);
}

/* The batch dims of operand t, broadcast to dim; the last two as they are. */
static rl_tensor batched(const rl_tensor *t, uint32_t rank, const int64_t *dim) {
    int64_t want[RL_RANK];
    rl_tensor out;
    memcpy(want, dim, sizeof want);
    want[rank - 2] = t->dim[t->rank - 2];
    want[rank - 1] = t->dim[t->rank - 1];
    rl_view_expand(t, rank, want, &out);
    out.stride[rank - 2] = t->stride[t->rank - 2]; /* expand gave dims of 1 the stride 0 */
    out.stride[rank - 1] = t->stride[t->rank - 1];
    return out;
}

static void multiply_batches(rl_rt *rt, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y) {
    int64_t n = 1;
    uint32_t outer = y->rank - 2;
    for (uint32_t i = 0; i < outer; i++) n *= y->dim[i];
    for (int64_t k = 0; k < n; k++) {
        rl_tensor x[3] = {*a, *b, *y};
        int64_t left = k;
        for (uint32_t i = outer; i-- > 0; left /= y->dim[i])
            for (uint32_t j = 0; j < 3; j++) x[j].offset += left % y->dim[i] * x[j].stride[i];
        multiply(rt, &x[0], &x[1], &x[2]);
    }
}

/* The operand in the type that products are made in, with a matrix rank: a vector is a row (left) or a column. */
static rl_tensor operand(rl_call *c, uint32_t i, bool left) {
    rl_dtype t = product_type(rl_call_in(c, i)->dtype);
    rl_tensor x = rl_call_in(c, i)->dtype == t ? *rl_call_in(c, i) : *rl_call_as(c, i, t);
    if (x.rank != 1) return x;
    int64_t d = x.dim[0], s = x.stride[0];
    x.rank = 2;
    x.dim[0] = left ? 1 : d, x.dim[1] = left ? d : 1;
    x.stride[0] = left ? 0 : s, x.stride[1] = left ? s : 0;
    return x;
}

rl_status rl_ref_matmul(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *w = rl_call_in(c, 1);
    if (!x->rank || !w->rank || x->dtype != w->dtype) return rl_call_fail(c, RL_EMODEL, "scalars, or two types");
    rl_tensor a = operand(c, 0, true), b = operand(c, 1, false), batch = a;
    if (a.dim[a.rank - 1] != b.dim[b.rank - 2])
        return rl_call_fail(c, RL_EMODEL, "%lld columns by %lld rows", (long long)a.dim[a.rank - 1], (long long)b.dim[b.rank - 2]);
    uint32_t rank = 0, nout = 0;
    int64_t dim[RL_RANK] = {0}, out[RL_RANK];
    batch.rank -= 2;
    RL_TRY(rl_call_broadcast(c, &rank, dim, &batch));
    batch = b;
    batch.rank -= 2;
    RL_TRY(rl_call_broadcast(c, &rank, dim, &batch));
    memcpy(out, dim, sizeof out);
    nout = rank;
    if (x->rank > 1) out[nout++] = a.dim[a.rank - 2];
    if (w->rank > 1) out[nout++] = b.dim[b.rank - 1];
    dim[rank++] = a.dim[a.rank - 2];
    dim[rank++] = b.dim[b.rank - 1];
    rl_tensor *y = rl_call_make(c, 0, x->dtype, nout, out), full, *wide = y->dtype == a.dtype ? y : rl_call_temp(c, a.dtype, nout, out);
    a = batched(&a, rank, dim);
    b = batched(&b, rank, dim);
    rl_view_reshape(wide, rank, dim, &full);
    if (rl_numel(y)) multiply_batches(c->rt, &a, &b, &full);
    if (wide != y) rl_convert(c->rt, y, wide, true);
    return RL_OK;
}

/* y = y * alpha + c * beta, in the compute type. */
#define SCALE(S, T)                                                                                                  \
    static void scale_##S(const rl_row *r) {                                                                         \
        const T *y = r->in[0], *z = r->in[1];                                                                        \
        T *to = r->out;                                                                                              \
        for (int64_t i = 0; i < r->n; i++)                                                                           \
            to[i] = (T)(r->param[0] * (double)y[i * r->step[0]] + r->param[1] * (double)z[i * r->step[1]]);          \
    }
SCALE(f32, float)
SCALE(f64, double)
SCALE(i32, int32_t)
SCALE(i64, int64_t)

static rl_row_fn *scale_of(rl_dtype t) {
    return t == RL_F32 ? scale_f32 : t == RL_F64 ? scale_f64 : t == RL_I32 ? scale_i32 : scale_i64;
}

rl_status rl_ref_gemm(rl_call *c) {
    static const int64_t swap[] = {1, 0};
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *w = rl_call_in(c, 1), *z = rl_call_in(c, 2);
    if (x->rank != 2 || w->rank != 2 || x->dtype != w->dtype) return rl_call_fail(c, RL_EMODEL, "wants two matrices of one type");
    rl_tensor a = operand(c, 0, true), b = operand(c, 1, false);
    if (rl_attr_int(c->node, "transA", 0)) a = rl_view_transpose(&a, swap);
    if (rl_attr_int(c->node, "transB", 0)) b = rl_view_transpose(&b, swap);
    if (a.dim[1] != b.dim[0]) return rl_call_fail(c, RL_EMODEL, "%lld columns by %lld rows", (long long)a.dim[1], (long long)b.dim[0]);
    double param[2] = {rl_attr_float(c->node, "alpha", 1), z ? rl_attr_float(c->node, "beta", 1) : 0};
    int64_t dim[2] = {a.dim[0], b.dim[1]};
    rl_tensor *wide = rl_call_temp(c, a.dtype, 2, dim), *y = rl_call_make(c, 0, x->dtype, 2, dim);
    if (rl_numel(y)) multiply(c->rt, &a, &b, wide);
    return rl_each(c, a.dtype, a.dtype, scale_of(a.dtype), y, (const rl_tensor *[]){wide, z ? z : wide}, 2, param);
}
