/* MatMul and Gemm, by gemm.h; sums are carried in the compute type. */
#include "ref_matmul.h"

#include <string.h>

#include "gemm.h"

/* Unsigned products are the signed ones' bits; what is shorter is widened. */
static rl_dtype product_type(rl_dtype t) {
    rl_dtype w = rl_compute_type(t);
    return rl_is_float(w) ? w : t == RL_I64 || t == RL_U64 ? RL_I64 : RL_I32;
}

static void clear(const rl_tensor *y) {
    memset(rl_data(y), 0, rl_bytes_of(y->dtype, rl_numel(y)));
}

static rl_gemm product_of(const rl_tensor *a, const rl_tensor *b, const rl_tensor *y) {
    uint32_t ra = a->rank, rb = b->rank;
    return (rl_gemm){.type = y->dtype, .count = 1, .m = a->dim[ra - 2], .n = b->dim[rb - 1], .k = a->dim[ra - 1], .am = a->stride[ra - 2],
                     .ak = a->stride[ra - 1], .bk = b->stride[rb - 2], .bn = b->stride[rb - 1], .ym = b->dim[rb - 1], .a = rl_data(a),
                     .b = rl_data(b), .y = rl_data(y)};
}

rl_tensor rl_matrix_of(const rl_tensor *t, bool left) {
    rl_tensor x = *t;
    if (x.rank != 1) return x;
    x.rank = 2;
    x.dim[0] = left ? 1 : t->dim[0], x.dim[1] = left ? t->dim[0] : 1;
    x.stride[0] = left ? 0 : t->stride[0], x.stride[1] = left ? t->stride[0] : 0;
    return x;
}

rl_tensor rl_matrix_laid(const rl_tensor *t, bool swaps, bool ahead) {
    int64_t perm[RL_RANK];
    uint32_t r = t->rank;
    if (r < 2) return *t;
    for (uint32_t i = 0; i + 2 < r; i++) perm[i] = i + ahead;
    perm[r - 2 + swaps] = ahead ? 0 : r - 2;
    perm[r - 1 - swaps] = r - 1;
    return rl_view_transpose(t, perm);
}

rl_status rl_matmul_dims(const rl_call *c, const rl_tensor *x, const rl_tensor *w, uint32_t *rank, int64_t *dim) {
    rl_tensor a = rl_matrix_of(x, true), b = rl_matrix_of(w, false), batch;
    *rank = 0;
    if (!x->rank || !w->rank) return rl_call_fail(c, RL_EMODEL, "a scalar has no rows");
    if (a.dim[a.rank - 1] != b.dim[b.rank - 2])
        return rl_call_fail(c, RL_EMODEL, "%lld columns by %lld rows", (long long)a.dim[a.rank - 1], (long long)b.dim[b.rank - 2]);
    batch = a;
    batch.rank -= 2;
    RL_TRY(rl_call_broadcast(c, rank, dim, &batch));
    batch = b;
    batch.rank -= 2;
    RL_TRY(rl_call_broadcast(c, rank, dim, &batch));
    if (x->rank > 1) dim[(*rank)++] = a.dim[a.rank - 2];
    if (w->rank > 1) dim[(*rank)++] = b.dim[b.rank - 1];
    return rl_call_dims(c, *rank, dim);
}

/* Where the matrices of t begin, t's batch dims broadcast to the n batches of dim. */
static const int64_t *batches(rl_call *c, const rl_tensor *t, uint32_t nbatch, const int64_t *dim, int64_t n) {
    int64_t *at = rl_new(c->tmp, int64_t, n);
    uint32_t lead = nbatch - (t->rank - 2);
    for (int64_t k = 0; k < n; k++) {
        int64_t left = k;
        for (uint32_t i = nbatch; i-- > 0; left /= dim[i])
            if (i >= lead && t->dim[i - lead] != 1) at[k] += left % dim[i] * t->stride[i - lead];
    }
    return at;
}

void rl_matmul(rl_call *c, const rl_tensor *x, const rl_tensor *w, const rl_tensor *y) {
    rl_tensor a = rl_matrix_of(x, true), b = rl_matrix_of(w, false), flat;
    uint32_t nbatch = RL_MAX(a.rank, b.rank) - 2;
    int64_t n = 1;
    clear(y);
    if (rl_numel(y) == 0) return;
    for (uint32_t i = 0; i < nbatch; i++) n *= y->dim[i];
    if (b.rank == 2 && a.rank > 2 && rl_view_reshape(&a, 2, (int64_t[]){n * a.dim[a.rank - 2], a.dim[a.rank - 1]}, &flat)) {
        a = flat; /* one product of all rows */
        n = 1;
    }
    rl_gemm g = product_of(&a, &b, y);
    g.count = n;
    int64_t *at = rl_new(c->tmp, int64_t, n);
    for (int64_t k = 0; k < n; k++) at[k] = k * g.m * g.n;
    g.yat = at;
    if (n > 1) g.aat = batches(c, &a, nbatch, y->dim, n), g.bat = batches(c, &b, nbatch, y->dim, n);
    rl_gemm_run(c->rt, &g);
}

/* The operand in the type that products are made in. */
static const rl_tensor *operand(rl_call *c, uint32_t i) {
    rl_dtype t = product_type(rl_call_in(c, i)->dtype);
    return rl_call_in(c, i)->dtype == t ? rl_call_in(c, i) : rl_call_as(c, i, t);
}

rl_status rl_ref_matmul(rl_call *c) {
    uint32_t rank;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 2));
    rl_dtype t = rl_call_in(c, 0)->dtype;
    if (rl_call_in(c, 1)->dtype != t) return rl_call_fail(c, RL_EMODEL, "operands of two types");
    const rl_tensor *a = operand(c, 0), *b = operand(c, 1);
    RL_TRY(rl_matmul_dims(c, a, b, &rank, dim));
    rl_tensor *y = rl_wide_make(c, 0, t, a->dtype, rank, dim);
    rl_matmul(c, a, b, y);
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* y = y * alpha + c * beta, in the compute type; a beta of 0 says that there is no c, so that infinity times it is not added. */
#define SCALE(S, T, SUM)                                                                                             \
    static void scale_##S(const rl_row *r) {                                                                         \
        const T *y = r->in[0], *z = r->in[1];                                                                        \
        T *to = r->out;                                                                                              \
        for (int64_t i = 0; i < r->n; i++) to[i] = SUM(T, y[i * r->step[0]], r->param[0], z[i * r->step[1]], r->param[1]); \
    }
#define SUM_FLOAT(T, y, alpha, z, beta) (T)(alpha * (double)y + (beta != 0 ? beta * (double)z : 0))
#define SUM_INTEGER(T, y, alpha, z, beta) (T)((uint64_t)times(y, alpha) + (uint64_t)times(z, beta)) /* wraps, as the products do */

/* Large integers are no doubles. */
static int64_t times(int64_t x, double by) {
    if (by == 1 || by == 0) return by == 1 ? x : 0;
    return rl_number_cut(by * (double)x);
}

SCALE(f32, float, SUM_FLOAT)
SCALE(f64, double, SUM_FLOAT)
SCALE(i32, int32_t, SUM_INTEGER)
SCALE(i64, int64_t, SUM_INTEGER)

static rl_row_fn *scale_of(rl_dtype t) {
    return t == RL_F32 ? scale_f32 : t == RL_F64 ? scale_f64 : t == RL_I32 ? scale_i32 : scale_i64;
}

rl_status rl_ref_gemm(rl_call *c) {
    static const int64_t swap[] = {1, 0};
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *w = rl_call_in(c, 1), *z = rl_call_in(c, 2);
    if (x->rank != 2 || w->rank != 2 || x->dtype != w->dtype) return rl_call_fail(c, RL_EMODEL, "wants two matrices of one type");
    rl_tensor a = *operand(c, 0), b = *operand(c, 1);
    if (rl_attr_int(c->node, "transA", 0)) a = rl_view_transpose(&a, swap);
    if (rl_attr_int(c->node, "transB", 0)) b = rl_view_transpose(&b, swap);
    if (a.dim[1] != b.dim[0]) return rl_call_fail(c, RL_EMODEL, "%lld columns by %lld rows", (long long)a.dim[1], (long long)b.dim[0]);
    double param[2] = {rl_attr_float(c->node, "alpha", 1), z ? rl_attr_float(c->node, "beta", 1) : 0};
    int64_t dim[2] = {a.dim[0], b.dim[1]};
    rl_tensor *wide = rl_call_temp(c, a.dtype, 2, dim), *y = rl_call_make(c, 0, x->dtype, 2, dim);
    clear(wide);
    rl_gemm g = product_of(&a, &b, wide);
    rl_gemm_run(c->rt, &g);
    return rl_each(c, a.dtype, a.dtype, scale_of(a.dtype), y, (const rl_tensor *[]){wide, z ? z : wide}, 2, param);
}
