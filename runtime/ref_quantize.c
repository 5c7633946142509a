/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: per tensor, per axis, in blocks. And quantize.h. */
#include <math.h>
#include <string.h>

#include "quantize.h"

rl_tensor rl_along(const rl_tensor *t, uint32_t rank, uint32_t axis) {
    rl_tensor x = *t;
    if (rl_numel(t) == 1) x.rank = 0;
    else if (t->rank == 1) {
        x.rank = rank;
        for (uint32_t i = 0; i < rank; i++) {
            x.dim[i] = i == axis ? t->dim[0] : 1;
            x.stride[i] = i == axis ? t->stride[0] : 0;
        }
    }
    return x;
}

void rl_range_of(rl_dtype t, double *least, double *most) {
    int bits = (int)rl_dtype_bits(t);
    bool is_signed = rl_is_signed(t);
    *most = ldexp(1, bits - is_signed) - 1;
    *least = is_signed ? -*most - 1 : 0;
}

static const rl_tensor *zero_point(rl_call *c, rl_dtype t) {
    rl_tensor *zero = rl_call_temp(c, t, 0, NULL);
    rl_fill(c->rt, zero, (uint64_t[]){0});
    return zero;
}

static float cut(float x, const double *range) {
    return x < (float)range[0] ? (float)range[0] : x > (float)range[1] ? (float)range[1] : x;
}

/* ---- sums back to quantized numbers ---- */

static void requantize_row(const rl_row *r) {
    const float *sum = r->in[0], *by = r->in[1], *zero = r->in[2];
    float *y = r->out;
    for (int64_t i = 0; i < r->n; i++) y[i] = cut(rintf(sum[i * r->step[0]] * by[i * r->step[1]]) + zero[i * r->step[2]], r->param);
}

rl_status rl_requantize(rl_call *c, uint32_t i, rl_dtype t, const rl_tensor *sum, const rl_tensor *multiplier, const rl_tensor *zero) {
    double range[2];
    rl_range_of(t, &range[0], &range[1]);
    if (!zero) zero = zero_point(c, RL_F32);
    rl_tensor *y = rl_call_make(c, i, t, sum->rank, sum->dim);
    return rl_each(c, RL_F32, RL_F32, requantize_row, y, (const rl_tensor *[]){sum, multiplier, zero}, 3, range);
}

static void subtract_row(const rl_row *r) {
    const int32_t *a = r->in[0], *b = r->in[1];
    int32_t *y = r->out;
    for (int64_t i = 0; i < r->n; i++) y[i] = a[i * r->step[0]] - b[i * r->step[1]]; /* of 16 bits at most */
}

rl_status rl_centered(rl_call *c, uint32_t i, uint32_t zero, uint32_t axis, const rl_tensor **out) {
    const rl_tensor *x = rl_call_in(c, i), *z = rl_call_in(c, zero);
    if (!rl_is_integer(x->dtype) || rl_dtype_bits(x->dtype) > 16) return rl_call_fail(c, RL_EMODEL, "input %u is not of 8 or 16 bits", i);
    *out = rl_call_as(c, i, RL_I32);
    if (!z) return RL_OK;
    if (z->dtype != x->dtype) return rl_call_fail(c, RL_EMODEL, "input %u is no zero point for input %u", zero, i);
    rl_tensor *y = rl_call_temp(c, RL_I32, x->rank, x->dim), along = rl_along(z, x->rank, axis);
    *out = y;
    return rl_each(c, RL_I32, RL_I32, subtract_row, y, (const rl_tensor *[]){x, &along}, 2, NULL);
}

/* ---- scales ---- */

/* t, a scale or zero point, broadcast to x: of one element, along the axis, or each for block elements of the axis. */
static rl_status spread(rl_call *c, const rl_tensor *t, const rl_tensor *x, rl_tensor *out) {
    int64_t block = rl_attr_int(c->node, "block_size", 0), axis = rl_attr_int(c->node, "axis", 1);
    uint32_t a = 0;
    *out = rl_along(t, 0, 0);
    if (out->rank == 0 && rl_numel(t) == 1) return RL_OK;
    if (x->rank != 1) RL_TRY(rl_call_axis(c, axis, x->rank, &a));
    if (block == 0) {
        *out = rl_along(t, x->rank, a);
        if (t->rank == 1 && t->dim[0] == x->dim[a]) return RL_OK;
        return rl_call_fail(c, RL_EMODEL, "a scale or zero point does not have the %lld elements of axis %u", (long long)x->dim[a], a);
    }
    bool fits = t->rank == x->rank && block > 0;
    for (uint32_t i = 0; fits && i < x->rank; i++) fits = i == a ? t->dim[i] == x->dim[i] / block + (x->dim[i] % block != 0) : t->dim[i] == x->dim[i];
    if (!fits) return rl_call_fail(c, RL_EMODEL, "scales or zero points are not those of blocks of %lld along axis %u", (long long)block, a);
    rl_tensor *all = rl_call_temp(c, t->dtype, x->rank, x->dim);
    for (int64_t i = 0; i < t->dim[a]; i++) {
        rl_tensor to = rl_view_slice(all, a, i * block, 1, RL_MIN(block, x->dim[a] - i * block)), from = rl_view_slice(t, a, i, 1, 1), wide;
        rl_view_expand(&from, to.rank, to.dim, &wide);
        rl_tensor_move(c->rt, &to, &wide);
    }
    *out = *all;
    return RL_OK;
}

/* ---- QuantizeLinear ---- */

/* param: the range of integers, the type to divide in. */
static float quotient(float x, float scale, const double *param) {
    rl_dtype t = (rl_dtype)param[2];
    if (t == RL_F32) return x / scale;
    float a = (float)rl_number_value(t, rl_number_bits(t, (double)x, true)), b = (float)rl_number_value(t, rl_number_bits(t, (double)scale, true));
    return (float)rl_number_value(t, rl_number_bits(t, (double)(a / b), false));
}

static void quantize_integer(const rl_row *r) {
    const float *x = r->in[0], *scale = r->in[1], *zero = r->in[2];
    float *y = r->out;
    for (int64_t i = 0; i < r->n; i++)
        y[i] = cut(rintf(quotient(x[i * r->step[0]], scale[i * r->step[1]], r->param)) + zero[i * r->step[2]], r->param);
}

static void quantize_float(const rl_row *r) {
    const float *x = r->in[0], *scale = r->in[1], *zero = r->in[2];
    float *y = r->out;
    for (int64_t i = 0; i < r->n; i++) y[i] = quotient(x[i * r->step[0]], scale[i * r->step[1]], r->param) + zero[i * r->step[2]];
}

static rl_dtype quantized_type(const rl_call *c, const rl_tensor *zero) {
    int64_t given = rl_attr_int(c->node, "output_dtype", 0);
    return zero ? zero->dtype : given ? (rl_dtype)given : RL_U8;
}

rl_status rl_ref_quantize_linear(rl_call *c) {
    rl_tensor scale, zero;
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *s = rl_call_in(c, 1), *z = rl_call_in(c, 2);
    rl_dtype t = quantized_type(c, z);
    int64_t precision = rl_attr_int(c->node, "precision", 0);
    if (!(RL_T(t & 31) & (RL_INTS | RL_INT4S | RL_FLOAT8S)) || t > RL_I2 || rl_dtype_bits(t) > 16)
        return rl_call_fail(c, RL_ELIMIT, "no kernel for quantized type %s", rl_dtype_name(t));
    if (!precision) precision = s->dtype == RL_F16 || s->dtype == RL_BF16 ? (int64_t)s->dtype : RL_F32;
    if (precision != RL_F32 && precision != RL_F16 && precision != RL_BF16)
        return rl_call_fail(c, RL_ELIMIT, "no kernel for precision %s", rl_dtype_name((rl_dtype)precision));
    RL_TRY(spread(c, s, x, &scale));
    RL_TRY(spread(c, z ? z : zero_point(c, RL_F32), x, &zero));
    double param[3] = {0, 0, (double)precision};
    rl_tensor *y = rl_call_make(c, 0, t, x->rank, x->dim);
    const rl_tensor *in[] = {x, &scale, &zero};
    if (!rl_is_float(t)) {
        rl_range_of(t, &param[0], &param[1]);
        return rl_each(c, RL_F32, RL_F32, quantize_integer, y, in, 3, param);
    }
    rl_tensor *wide = rl_call_temp(c, RL_F32, x->rank, x->dim);
    RL_TRY(rl_each(c, RL_F32, RL_F32, quantize_float, wide, in, 3, param));
    rl_convert(c->rt, y, wide, rl_attr_int(c->node, "saturate", 1) != 0);
    return RL_OK;
}

/* ---- DequantizeLinear ---- */

static void dequantize_row(const rl_row *r) {
    const double *x = r->in[0], *scale = r->in[1], *zero = r->in[2];
    double *y = r->out;
    for (int64_t i = 0; i < r->n; i++) y[i] = (x[i * r->step[0]] - zero[i * r->step[2]]) * scale[i * r->step[1]];
}

rl_status rl_ref_dequantize_linear(rl_call *c) {
    rl_tensor scale, zero;
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *s = rl_call_in(c, 1), *z = rl_call_in(c, 2);
    int64_t given = rl_attr_int(c->node, "output_dtype", 0);
    rl_dtype t = given ? (rl_dtype)given : s->dtype;
    if (t != RL_F32 && t != RL_F16 && t != RL_BF16) return rl_call_fail(c, RL_EMODEL, "output type %s, wants a float", rl_dtype_name(t));
    RL_TRY(spread(c, s, x, &scale));
    RL_TRY(spread(c, z ? z : zero_point(c, RL_F64), x, &zero));
    rl_tensor *y = rl_call_make(c, 0, t, x->rank, x->dim);
    return rl_each(c, RL_F64, RL_F64, dequantize_row, y, (const rl_tensor *[]){x, &scale, &zero}, 3, NULL);
}

/* ---- DynamicQuantizeLinear ---- */

/* x: dense. */
static uint8_t scale_of(const rl_tensor *x, float *scale) {
    const float *p = rl_data(x);
    float most = 0, least = 0;
    for (int64_t i = 0; i < rl_numel(x); i++) most = fmaxf(most, p[i]), least = fminf(least, p[i]);
    return rl_dynamic_scale(least, most, scale);
}

rl_status rl_dynamic_centered(rl_call *c, uint32_t i, const rl_tensor **out, const rl_tensor **scale) {
    const rl_tensor *x = rl_call_as(c, i, RL_F32);
    rl_tensor *s = rl_call_temp(c, RL_F32, 0, NULL), *y = rl_call_temp(c, RL_I32, x->rank, x->dim);
    double zero = scale_of(x, rl_data(s));
    *out = y, *scale = s;
    return rl_each(c, RL_F32, RL_F32, quantize_integer, y, (const rl_tensor *[]){x, s, zero_point(c, RL_F32)}, 3, (double[]){-zero, 255 - zero, RL_F32});
}

rl_status rl_ref_dynamic_quantize(rl_call *c) {
    float scale;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_as(c, 0, RL_F32);
    uint8_t zero = scale_of(x, &scale);
    rl_tensor *y = rl_call_make(c, 0, RL_U8, x->rank, x->dim), *ys = rl_call_make(c, 1, RL_F32, 0, NULL), *yz = rl_call_make(c, 2, RL_U8, 0, NULL);
    memcpy(rl_data(ys), &scale, sizeof scale);
    memcpy(rl_data(yz), &zero, sizeof zero);
    return rl_each(c, RL_F32, RL_F32, quantize_integer, y, (const rl_tensor *[]){x, ys, yz}, 3, (double[]){0, 255, RL_F32});
}
