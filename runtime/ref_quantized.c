/* Products and convolutions of quantized numbers: MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv, com.microsoft's MatMulIntegerToFloat and
 * DynamicQuantizeMatMul. Sums are exact in i32. */
#include "conv.h"
#include "quantize.h"
#include "ref_matmul.h"

/* a (inputs 0 and its zero point) by b: a vector of zero points is one per row of a, one per column of b. */
static rl_status product(rl_call *c, uint32_t a, uint32_t azero, uint32_t b, uint32_t bzero, rl_tensor **sum) {
    uint32_t rank;
    int64_t dim[RL_RANK];
    const rl_tensor *x, *w;
    uint32_t ra = rl_call_in(c, a)->rank, rb = rl_call_in(c, b)->rank;
    RL_TRY(rl_centered(c, a, azero, ra > 1 ? ra - 2 : 0, &x));
    RL_TRY(rl_centered(c, b, bzero, rb > 0 ? rb - 1 : 0, &w));
    RL_TRY(rl_matmul_dims(c, x, w, &rank, dim));
    *sum = rl_call_temp(c, RL_I32, rank, dim);
    rl_matmul(c, x, w, *sum);
    return RL_OK;
}

static rl_status give_sum(rl_call *c, const rl_tensor *sum) {
    rl_call_share(c, 0, *sum);
    return RL_OK;
}

rl_status rl_ref_matmul_integer(rl_call *c) {
    rl_tensor *sum = NULL;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(product(c, 0, 2, 1, 3, &sum));
    return give_sum(c, sum);
}

/* A sum times both operands' scales, plus a bias (NULL: none). */
static void to_float_row(const rl_row *r) {
    const float *sum = r->in[0], *by = r->in[1], *bias = r->in[2];
    float *y = r->out;
    for (int64_t i = 0; i < r->n; i++) y[i] = sum[i * r->step[0]] * by[i * r->step[1]] + (bias ? bias[i * r->step[2]] : 0);
}

static void scale_row(const rl_row *r) {
    const float *a = r->in[0], *b = r->in[1];
    float *to = r->out;
    for (int64_t i = 0; i < r->n; i++) to[i] = a[i * r->step[0]] * b[i * r->step[1]];
}

/* arg: 0 MatMulIntegerToFloat, 1 DynamicQuantizeMatMul, whose a is of floats, and quantized here. */
rl_status rl_ref_matmul_to_float(rl_call *c) {
    bool dynamic = c->arg == 1;
    const rl_tensor *x, *w, *scale;
    uint32_t rank, wscale = dynamic ? 2 : 3, bias = dynamic ? 4 : 6;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, dynamic ? 3 : 4));
    scale = rl_call_in(c, 2);
    if (dynamic) RL_TRY(rl_dynamic_centered(c, 0, &x, &scale));
    else RL_TRY(rl_centered(c, 0, 4, RL_MAX(rl_call_in(c, 0)->rank, 2) - 2, &x));
    RL_TRY(rl_centered(c, 1, dynamic ? 3 : 5, RL_MAX(rl_call_in(c, 1)->rank, 1) - 1, &w));
    RL_TRY(rl_matmul_dims(c, x, w, &rank, dim));
    rl_tensor *sum = rl_call_temp(c, RL_I32, rank, dim), columns = rl_along(rl_call_in(c, wscale), rank, RL_MAX(rank, 1) - 1);
    rl_tensor *by = rl_call_temp(c, RL_F32, columns.rank, columns.dim), one = rl_along(scale, 0, 0);
    rl_matmul(c, x, w, sum);
    RL_TRY(rl_each(c, RL_F32, RL_F32, scale_row, by, (const rl_tensor *[]){&one, &columns}, 2, NULL));
    return rl_each(c, RL_F32, RL_F32, to_float_row, rl_call_make(c, 0, RL_F32, rank, dim), (const rl_tensor *[]){sum, by, rl_call_in(c, bias)},
                   rl_call_in(c, bias) ? 3 : 2, NULL);
}

/* The scales of both operands over the output's. */
static void multiplier_row(const rl_row *r) {
    const float *a = r->in[0], *b = r->in[1], *y = r->in[2];
    float *to = r->out;
    for (int64_t i = 0; i < r->n; i++) to[i] = a[i * r->step[0]] * b[i * r->step[1]] / y[i * r->step[2]];
}

static rl_status multiplier(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y, rl_tensor **out) {
    uint32_t rank = 0;
    int64_t dim[RL_RANK] = {0};
    const rl_tensor *in[] = {a, b, y};
    for (uint32_t i = 0; i < 3; i++) RL_TRY(rl_call_broadcast(c, &rank, dim, in[i]));
    *out = rl_call_temp(c, RL_F32, rank, dim);
    return rl_each(c, RL_F32, RL_F32, multiplier_row, *out, in, 3, NULL);
}

rl_status rl_ref_qlinear_matmul(rl_call *c) {
    rl_tensor *sum = NULL, *by = NULL;
    RL_TRY(rl_call_need(c, 8));
    RL_TRY(product(c, 0, 2, 3, 5, &sum));
    uint32_t r = sum->rank, row = r > 1 ? r - 2 : 0, col = r ? r - 1 : 0;
    rl_tensor a = rl_along(rl_call_in(c, 1), r, row), b = rl_along(rl_call_in(c, 4), r, col), y = rl_along(rl_call_in(c, 6), r, row);
    rl_tensor zero = rl_along(rl_call_in(c, 7), r, row);
    RL_TRY(multiplier(c, &a, &b, &y, &by));
    return rl_requantize(c, 0, zero.dtype, sum, by, &zero);
}

/* The convolution of inputs x and w, with a bias in i32 (RL_NONE: none). */
static rl_status convolve(rl_call *c, uint32_t ix, uint32_t xzero, uint32_t iw, uint32_t wzero, uint32_t bias, rl_tensor **sum) {
    int64_t group, dim[RL_RANK];
    rl_window win;
    const rl_tensor *x, *w;
    RL_TRY(rl_centered(c, ix, xzero, 1, &x));
    RL_TRY(rl_centered(c, iw, wzero, 0, &w));
    RL_TRY(rl_conv_group(c, x, w, &group));
    RL_TRY(rl_window_read(c, x, w->dim + 2, &win));
    dim[0] = x->dim[0], dim[1] = w->dim[0];
    for (uint32_t i = 0; i < win.r; i++) dim[2 + i] = win.out[i];
    RL_TRY(rl_call_dims(c, x->rank, dim));
    *sum = rl_call_temp(c, RL_I32, x->rank, dim);
    RL_TRY(rl_conv_bias(c, bias == RL_NONE ? NULL : rl_call_as(c, bias, RL_I32), *sum));
    rl_conv(c, &win, group, x, w, *sum);
    return RL_OK;
}

rl_status rl_ref_conv_integer(rl_call *c) {
    rl_tensor *sum = NULL;
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(convolve(c, 0, 2, 1, 3, RL_NONE, &sum));
    return give_sum(c, sum);
}

rl_status rl_ref_qlinear_conv(rl_call *c) {
    rl_tensor *sum = NULL, *by = NULL;
    RL_TRY(rl_call_need(c, 8));
    RL_TRY(convolve(c, 0, 2, 3, 5, 8, &sum));
    const rl_tensor *zero = rl_call_in(c, 7);
    rl_tensor x = rl_along(rl_call_in(c, 1), sum->rank, 1), w = rl_along(rl_call_in(c, 4), sum->rank, 1), y = rl_along(rl_call_in(c, 6), sum->rank, 1);
    rl_tensor z = rl_along(zero, sum->rank, 1);
    RL_TRY(multiplier(c, &x, &w, &y, &by));
    return rl_requantize(c, 0, zero->dtype, sum, by, &z);
}
