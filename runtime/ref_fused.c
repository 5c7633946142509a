/* Pointwise ops that stand for a few: SwiGLU, and onnxruntime's BiasGelu, FastGelu, QuickGelu, FusedMatMul. */
#include "ref_fused.h"

#include <math.h>

#include "ref_matmul.h"

/* expr: of a and b, the operands (b is 0 where there is one only), and k, the op's parameters */
#define FUSED(name, S, T, expr)                                                                                      \
    static void name##_##S(const rl_row *r) {                                                                        \
        const T *x = r->in[0], *z = r->in[1];                                                                        \
        T *y = r->out;                                                                                               \
        const T k[2] = {(T)r->param[0], (T)r->param[1]};                                                             \
        for (int64_t i = 0; i < r->n; i++) {                                                                         \
            const T a = x[i * r->step[0]], b = z ? z[i * r->step[1]] : 0;                                            \
            y[i] = (expr);                                                                                           \
        }                                                                                                            \
        (void)k;                                                                                                     \
    }
#define FUSIONS(S, T, exp_, erf_, tanh_)                                                                             \
    static T logistic_##S(T x) { return 1 / (1 + exp_(-x)); }                                                        \
    static T gelu_##S(T x) { return x / 2 * (1 + erf_(x * (T)0.707106781186547524401)); }                            \
    static T tanh_gelu_##S(T x) { return x / 2 * (1 + tanh_(x * ((T)0.797884560802865355880 + (T)0.035677408136300125 * x * x))); } \
    FUSED(swiglu, S, T, a * logistic_##S(k[0] * a) * b)                                                              \
    FUSED(bias_gelu, S, T, gelu_##S(a + b))                                                                          \
    FUSED(fast_gelu, S, T, tanh_gelu_##S(a + b))                                                                     \
    FUSED(quick_gelu, S, T, a * logistic_##S(k[0] * a) + b)                                                          \
    FUSED(scale, S, T, a * k[0] + b)
FUSIONS(f32, float, expf, erff, tanhf)
FUSIONS(f64, double, exp, erf, tanh)

static rl_row_fn *const rows[RL_FU_NOP][2] = {
    [RL_FU_SWIGLU] = {swiglu_f32, swiglu_f64},
    [RL_FU_BIAS_GELU] = {bias_gelu_f32, bias_gelu_f64},
    [RL_FU_FAST_GELU] = {fast_gelu_f32, fast_gelu_f64}, [RL_FU_QUICK_GELU] = {quick_gelu_f32, quick_gelu_f64}};

rl_status rl_ref_fused(rl_call *c) {
    RL_TRY(rl_call_need(c, c->arg == RL_FU_SWIGLU || c->arg == RL_FU_BIAS_GELU ? 2 : 1));
    const rl_tensor *x = rl_call_in(c, 0), *z = rl_call_in(c, 1);
    double param[2] = {0};
    rl_dtype wide = rl_wide_float(x->dtype);
    if (c->arg == RL_FU_SWIGLU) param[0] = rl_attr_float(c->node, "alpha", 1);
    if (c->arg == RL_FU_QUICK_GELU) param[0] = rl_attr_float(c->node, "alpha", 1.702f);
    if (z && z->dtype != x->dtype)
        return rl_call_fail(c, RL_EMODEL, "inputs of types %s and %s", rl_dtype_name(x->dtype), rl_dtype_name(z->dtype));
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    return rl_each(c, wide, wide, rows[c->arg][wide == RL_F64], y, (const rl_tensor *[]){x, z}, z ? 2 : 1, param);
}

/* com.microsoft's FusedMatMul: alpha * A' * B', where ' may swap the last two dims, and have taken the first from before the batch. */
rl_status rl_ref_fused_matmul(rl_call *c) {
    uint32_t rank;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 2));
    rl_dtype t = rl_call_in(c, 0)->dtype, wide = rl_wide_float(t);
    if (rl_call_in(c, 1)->dtype != t) return rl_call_fail(c, RL_EMODEL, "operands of two types");
    rl_tensor a = rl_matrix_laid(rl_call_as(c, 0, wide), rl_attr_int(c->node, "transA", 0) != 0, rl_attr_int(c->node, "transBatchA", 0) != 0);
    rl_tensor b = rl_matrix_laid(rl_call_as(c, 1, wide), rl_attr_int(c->node, "transB", 0) != 0, rl_attr_int(c->node, "transBatchB", 0) != 0);
    RL_TRY(rl_matmul_dims(c, &a, &b, &rank, dim));
    double param[2] = {rl_attr_float(c->node, "alpha", 1)};
    rl_tensor *product = rl_call_temp(c, wide, rank, dim), *y = rl_call_make(c, 0, t, rank, dim);
    rl_matmul(c, &a, &b, product);
    return rl_each(c, wide, wide, wide == RL_F64 ? scale_f64 : scale_f32, y, (const rl_tensor *[]){product}, 1, param);
}
