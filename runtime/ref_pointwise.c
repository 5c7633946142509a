/* Pointwise ops with broadcasting, on the walk of kernels.h: one row function per op and type (pointwise.inc), found in one table.
 *
 * Shorter floats compute in f32 and are rounded once per node, integers shorter than a byte in i32. */
#include "ref_pointwise.h"

#include <math.h>

#include "element.h"
#include "kernels.h"
#include "pointwise_types.inc"

enum { LASTTYPE = RL_U64 };
#define FLOATS(op) [RL_F32] = op##_f32, [RL_F64] = op##_f64
#define SIGNEDS(op) [RL_I8] = op##_i8, [RL_I16] = op##_i16, [RL_I32] = op##_i32, [RL_I64] = op##_i64
#define UNSIGNEDS(op) [RL_U8] = op##_u8, [RL_U16] = op##_u16, [RL_U32] = op##_u32, [RL_U64] = op##_u64
#define INTS(op) SIGNEDS(op), UNSIGNEDS(op)
#define ALL(op) FLOATS(op), INTS(op)

/* Bools compute as u8. */
static rl_row_fn *const rows[RL_PW_NOP][LASTTYPE + 1] = {
    [RL_PW_ADD] = {ALL(add)}, [RL_PW_SUB] = {ALL(sub)}, [RL_PW_MUL] = {ALL(mul)}, [RL_PW_DIV] = {ALL(div)},
    [RL_PW_POW] = {ALL(pow)}, [RL_PW_MOD] = {ALL(mod)}, [RL_PW_FMOD] = {ALL(fmod)}, [RL_PW_MAX] = {ALL(max)},
    [RL_PW_MIN] = {ALL(min)}, [RL_PW_PRELU] = {ALL(prelu)}, [RL_PW_EQUAL] = {ALL(equal)}, [RL_PW_LESS] = {ALL(less)},
    [RL_PW_LESS_EQUAL] = {ALL(less_equal)}, [RL_PW_GREATER] = {ALL(greater)}, [RL_PW_GREATER_EQUAL] = {ALL(greater_equal)},
    [RL_PW_BIT_AND] = {INTS(bit_and)}, [RL_PW_BIT_OR] = {INTS(bit_or)}, [RL_PW_BIT_XOR] = {INTS(bit_xor)},
    [RL_PW_SHIFT_LEFT] = {INTS(shift_left)}, [RL_PW_SHIFT_RIGHT] = {INTS(shift_right)},
    [RL_PW_RELU] = {ALL(relu)}, [RL_PW_ABS] = {ALL(abs)}, [RL_PW_NEG] = {ALL(neg)}, [RL_PW_SIGN] = {ALL(sign)},
    [RL_PW_BIT_NOT] = {INTS(bit_not)}, [RL_PW_NOT] = {UNSIGNEDS(is_zero)}, [RL_PW_CEIL] = {FLOATS(ceil)}, [RL_PW_FLOOR] = {FLOATS(floor)},
    [RL_PW_ROUND] = {FLOATS(round)}, [RL_PW_SQRT] = {FLOATS(sqrt)}, [RL_PW_RECIPROCAL] = {FLOATS(reciprocal)},
    [RL_PW_EXP] = {FLOATS(exp)}, [RL_PW_LOG] = {FLOATS(log)}, [RL_PW_SIN] = {FLOATS(sin)}, [RL_PW_COS] = {FLOATS(cos)},
    [RL_PW_TAN] = {FLOATS(tan)}, [RL_PW_ASIN] = {FLOATS(asin)}, [RL_PW_ACOS] = {FLOATS(acos)}, [RL_PW_ATAN] = {FLOATS(atan)},
    [RL_PW_SINH] = {FLOATS(sinh)}, [RL_PW_COSH] = {FLOATS(cosh)}, [RL_PW_TANH] = {FLOATS(tanh)}, [RL_PW_ASINH] = {FLOATS(asinh)},
    [RL_PW_ACOSH] = {FLOATS(acosh)}, [RL_PW_ATANH] = {FLOATS(atanh)}, [RL_PW_ERF] = {FLOATS(erf)}, [RL_PW_SIGMOID] = {FLOATS(sigmoid)},
    [RL_PW_SOFTPLUS] = {FLOATS(softplus)}, [RL_PW_SOFTSIGN] = {FLOATS(softsign)}, [RL_PW_LEAKY_RELU] = {FLOATS(leaky_relu)},
    [RL_PW_ELU] = {FLOATS(elu)}, [RL_PW_CELU] = {FLOATS(celu)}, [RL_PW_SELU] = {FLOATS(selu)},
    [RL_PW_THRESHOLDED_RELU] = {FLOATS(thresholded_relu)}, [RL_PW_SHRINK] = {FLOATS(shrink)},
    [RL_PW_HARD_SIGMOID] = {FLOATS(hard_sigmoid)},
    [RL_PW_HARD_SWISH] = {FLOATS(hard_swish)}, [RL_PW_MISH] = {FLOATS(mish)}, [RL_PW_SWISH] = {FLOATS(swish)},
    [RL_PW_GELU] = {FLOATS(gelu)}, [RL_PW_GELU_TANH] = {FLOATS(gelu_tanh)}, [RL_PW_IS_NAN] = {FLOATS(is_nan)}, [RL_PW_IS_INF] = {FLOATS(is_inf)},
};

bool rl_pointwise_makes_bool(int op) {
    return (op >= RL_PW_EQUAL && op <= RL_PW_GREATER_EQUAL) || op == RL_PW_IS_NAN || op == RL_PW_IS_INF || op == RL_PW_NOT;
}

/* The type to compute in; bools as bytes, so that their rows are u8's. */
static rl_dtype row_type(rl_dtype t) {
    return t == RL_BOOL ? RL_U8 : rl_compute_type(t);
}

static rl_status find_row(const rl_call *c, int op, rl_dtype t, rl_row_fn **fn) {
    *fn = (uint32_t)t <= (uint32_t)LASTTYPE ? rows[op][t] : NULL;
    return *fn ? RL_OK : rl_call_fail(c, RL_ELIMIT, "no kernel for input type %s", rl_dtype_name(t));
}

static rl_status apply(rl_call *c, int op, rl_dtype t, rl_tensor *out, const rl_tensor *const *in, uint32_t nin, const double *param) {
    rl_row_fn *fn;
    RL_TRY(find_row(c, op, t, &fn));
    return rl_each(c, t, rl_pointwise_makes_bool(op) ? RL_BOOL : t, fn, out, in, nin, param);
}

int rl_pointwise_op(const rl_call *c) {
    if (c->arg == RL_PW_GELU && rl_attr_is(c->node, "approximate", "tanh")) return RL_PW_GELU_TANH;
    if (c->arg == RL_PW_MOD && rl_attr_int(c->node, "fmod", 0)) return RL_PW_FMOD;
    if (c->arg == RL_PW_SHIFT_LEFT && rl_attr_is(c->node, "direction", "RIGHT")) return RL_PW_SHIFT_RIGHT;
    return c->arg;
}

/* ---- one operand ---- */

void rl_pointwise_params(const rl_call *c, double *p) {
    const rl_nodeinfo *n = c->node;
    switch (c->arg) {
    case RL_PW_LEAKY_RELU: p[0] = rl_attr_float(n, "alpha", 0.01f); break;
    case RL_PW_ELU: case RL_PW_CELU: case RL_PW_THRESHOLDED_RELU: case RL_PW_SWISH: p[0] = rl_attr_float(n, "alpha", 1); break;
    case RL_PW_SELU: {
        bool old = n->since < 6; /* coarser defaults */
        p[0] = rl_attr_float(n, "alpha", old ? 1.6732f : 1.67326319217681884765625f);
        p[1] = rl_attr_float(n, "gamma", old ? 1.0507f : 1.05070102214813232421875f);
        break;
    }
    case RL_PW_SHRINK: p[0] = rl_attr_float(n, "bias", 0), p[1] = rl_attr_float(n, "lambd", 0.5f); break;
    case RL_PW_HARD_SIGMOID: p[0] = rl_attr_float(n, "alpha", 0.2f), p[1] = rl_attr_float(n, "beta", 0.5f); break;
    case RL_PW_IS_INF: /* what nothing equals: of that sign none is looked for */
        p[0] = rl_attr_int(n, "detect_negative", 1) ? -(double)INFINITY : (double)NAN;
        p[1] = rl_attr_int(n, "detect_positive", 1) ? (double)INFINITY : (double)NAN;
        break;
    default: break;
    }
}

rl_status rl_ref_unary(rl_call *c) {
    double param[2] = {0};
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    int op = rl_pointwise_op(c);
    rl_pointwise_params(c, param);
    rl_tensor *y = rl_call_make_over(c, 1, rl_pointwise_makes_bool(op) ? RL_BOOL : x->dtype, x->rank, x->dim);
    rl_dtype t = op == RL_PW_SHRINK && rl_is_integer(x->dtype) ? RL_F64 : row_type(x->dtype);
    if (t == RL_U8 && x->dtype == RL_BOOL) {
        rl_tensor as = *x;
        as.dtype = RL_U8;
        return apply(c, op, t, y, (const rl_tensor *[]){&as}, 1, param);
    }
    return apply(c, op, t, y, (const rl_tensor *[]){x}, 1, param);
}

/* ---- two operands ---- */

/* Before opset 7 the second operand broadcasts only where the node says so, and then from `axis` on. */
static rl_status old_operand(rl_call *c, const rl_tensor *a, rl_tensor *b) {
    int64_t dim[RL_RANK];
    uint32_t axis = a->rank - RL_MIN(b->rank, a->rank);
    if (c->node->since >= 7 || *c->node->domain || !rl_attr_int(c->node, "broadcast", 0) || b->rank > a->rank) return RL_OK;
    if (rl_attr_find(c->node, "axis")) RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    if (axis + b->rank > a->rank) return rl_call_fail(c, RL_EMODEL, "axis %u is out of range", axis);
    for (uint32_t i = 0; i < a->rank; i++) dim[i] = i >= axis && i < axis + b->rank ? b->dim[i - axis] : 1;
    rl_tensor view;
    if (!rl_view_reshape(b, a->rank, dim, &view)) return rl_call_fail(c, RL_ELIMIT, "a strided operand with an axis");
    *b = view;
    return RL_OK;
}

/* PRelu before opset 7 has one slope for each of x's channels; since then it broadcasts as usual. */
static rl_status channel_operand(rl_call *c, const rl_tensor *a, rl_tensor *b) {
    int64_t dim[RL_RANK];
    if (c->node->since >= 7 || b->rank != 1 || a->rank < 2 || b->dim[0] == 1) return RL_OK;
    for (uint32_t i = 0; i < a->rank; i++) dim[i] = i == 1 ? b->dim[0] : 1;
    rl_tensor dense = *rl_call_dense(c, 1);
    rl_view_reshape(&dense, a->rank, dim, b);
    return RL_OK;
}

static rl_dtype operand_type(int op, const rl_tensor *a, const rl_tensor *b) {
    rl_dtype t = row_type(a->dtype), u = row_type(b->dtype);
    if (op != RL_PW_POW || t == u) return t;
    return rl_is_float(t) ? t : rl_is_float(u) ? RL_F64 : RL_I64; /* Pow's exponent has a type of its own */
}

/* Strings are interned: equal are those with the same pointer, whatever its bits mean as a number. */
static rl_dtype as_bits(rl_dtype t) {
    return t == RL_STRING ? RL_U64 : t == RL_BOOL ? RL_U8 : t;
}

rl_status rl_ref_binary(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    int op = rl_pointwise_op(c);
    uint32_t rank = 0;
    int64_t dim[RL_RANK] = {0};
    rl_tensor a = *rl_call_in(c, 0), b = *rl_call_in(c, 1);
    if (op != RL_PW_POW && a.dtype != b.dtype)
        return rl_call_fail(c, RL_EMODEL, "inputs of types %s and %s", rl_dtype_name(a.dtype), rl_dtype_name(b.dtype));
    RL_TRY(op == RL_PW_PRELU ? channel_operand(c, &a, &b) : old_operand(c, &a, &b));
    RL_TRY(rl_call_broadcast(c, &rank, dim, &a));
    RL_TRY(rl_call_broadcast(c, &rank, dim, &b));
    rl_tensor *y = rl_call_make_over(c, 2, rl_pointwise_makes_bool(op) ? RL_BOOL : a.dtype, rank, dim);
    a.dtype = as_bits(a.dtype);
    b.dtype = as_bits(b.dtype);
    rl_tensor made = *y; /* bools are bytes here, whose logical ops are the bits' */
    made.dtype = y->dtype == RL_BOOL && !rl_pointwise_makes_bool(op) ? RL_U8 : y->dtype;
    return apply(c, op, operand_type(op, &a, &b), &made, (const rl_tensor *[]){&a, &b}, 2, NULL);
}

/* ---- any number of operands: Sum, Mean, Max, Min ---- */

static rl_status scale(rl_call *c, rl_tensor *y, double by) {
    int64_t one = 1;
    rl_tensor *k = rl_call_temp(c, RL_F64, 0, &one);
    *(double *)rl_data(k) = by;
    return apply(c, RL_PW_MUL, rl_compute_type(y->dtype), y, (const rl_tensor *[]){y, k}, 2, NULL);
}

/* Accumulates in the output: each row is read before it is written. */
rl_status rl_ref_variadic(rl_call *c) {
    rl_tensor *y;
    bool mean = c->arg == RL_PW_NOP;
    RL_TRY(rl_call_need(c, 1));
    rl_dtype t = rl_call_in(c, 0)->dtype;
    RL_TRY(rl_make_broadcast(c, t, c->nin, &y));
    rl_tensor first;
    rl_view_expand(rl_call_in(c, 0), y->rank, y->dim, &first);
    rl_tensor_move(c->rt, y, &first);
    for (uint32_t i = 1; i < c->nin; i++) {
        const rl_tensor *in[2] = {y, rl_call_in(c, i)};
        if (in[1]->dtype != t) return rl_call_fail(c, RL_EMODEL, "inputs of types %s and %s", rl_dtype_name(t), rl_dtype_name(in[1]->dtype));
        RL_TRY(apply(c, mean ? RL_PW_ADD : c->arg, rl_compute_type(t), y, in, 2, NULL));
    }
    return mean ? scale(c, y, 1.0 / c->nin) : RL_OK;
}

/* ---- Clip, Where ---- */

static rl_status bound(rl_call *c, const char *name, uint32_t slot, rl_tensor **b) {
    const rl_tensor *t;
    RL_TRY(rl_call_one(c, slot, &t));
    *b = NULL;
    if (t) {
        *b = rl_call_temp(c, t->dtype, 0, NULL);
        rl_tensor view = *t;
        view.rank = 0;
        rl_tensor_move(c->rt, *b, &view);
    } else if (c->node->since < 11 && rl_attr_find(c->node, name)) {
        *b = rl_call_temp(c, RL_F32, 0, NULL);
        *(float *)rl_data(*b) = rl_attr_float(c->node, name, 0);
    }
    return RL_OK;
}

rl_status rl_ref_clip(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    rl_tensor *low, *high;
    RL_TRY(bound(c, "min", 1, &low));
    RL_TRY(bound(c, "max", 2, &high));
    if (!low && !high) {
        rl_call_share(c, 0, *x);
        return RL_OK;
    }
    rl_tensor *y = rl_call_make_over(c, 1, x->dtype, x->rank, x->dim);
    rl_dtype t = rl_compute_type(x->dtype);
    if (low) RL_TRY(apply(c, RL_PW_MAX, t, y, (const rl_tensor *[]){x, low}, 2, NULL));
    return high ? apply(c, RL_PW_MIN, t, y, (const rl_tensor *[]){low ? y : x, high}, 2, NULL) : RL_OK;
}

/* By bits, whatever the type. Both are read wherever the condition points: what is read or not makes no vectors. */
#define CHOOSE(name, T)                                                                                              \
    static inline __attribute__((always_inline)) void name##_by(const rl_row *r, const int64_t cs, const int64_t as, const int64_t bs) { \
        const uint8_t *c = r->in[0];                                                                                 \
        const T *x = r->in[1], *z = r->in[2];                                                                        \
        T *restrict y = r->out;                                                                                      \
        for (int64_t i = 0; i < r->n; i++) {                                                                         \
            T a = x[i * as], b = z[i * bs];                                                                          \
            y[i] = c[i * cs] ? a : b;                                                                                \
        }                                                                                                            \
    }                                                                                                                \
    void name(const rl_row *r) {                                                                                     \
        const int64_t *s = r->step;                                                                                  \
        if (s[0] == 1 && s[1] == 1 && s[2] == 1) name##_by(r, 1, 1, 1);                                              \
        else name##_by(r, s[0], s[1], s[2]);                                                                         \
    }
typedef struct { uint64_t half[2]; } pair;
static rl_row_fn choose_bytes, choose_shorts, choose_longs, choose_pairs;
CHOOSE(choose_bytes, uint8_t)
CHOOSE(choose_shorts, uint16_t)
CHOOSE(rl_choose_words, uint32_t)
CHOOSE(choose_longs, uint64_t)
CHOOSE(choose_pairs, pair)

rl_status rl_where_by(rl_call *c, rl_row_fn *fn) {
    rl_tensor *y;
    RL_TRY(rl_call_need(c, 3));
    RL_TRY(rl_make_broadcast(c, rl_call_in(c, 1)->dtype, 3, &y));
    if (rl_call_in(c, 0)->dtype != RL_BOOL || rl_call_in(c, 2)->dtype != y->dtype)
        return rl_call_fail(c, RL_EMODEL, "wants a bool condition and two inputs of one type");
    rl_tensor as[3] = {*rl_call_in(c, 0), *rl_call_in(c, 1), *rl_call_in(c, 2)}, made = *y;
    const rl_tensor *in[3] = {&as[0], &as[1], &as[2]};
    switch (rl_elem_bits(y->dtype)) {
    case 8: return rl_each(c, RL_UNDEF, y->dtype, choose_bytes, y, in, 3, NULL);
    case 16: return rl_each(c, RL_UNDEF, y->dtype, choose_shorts, y, in, 3, NULL);
    case 32: return rl_each(c, RL_UNDEF, y->dtype, fn, y, in, 3, NULL);
    case 64: return rl_each(c, RL_UNDEF, y->dtype, choose_longs, y, in, 3, NULL);
    case 128: return rl_each(c, RL_UNDEF, y->dtype, choose_pairs, y, in, 3, NULL);
    default: break;
    }
    made.dtype = as[1].dtype = as[2].dtype = rl_elem_bits(y->dtype) == 2 ? RL_U2 : RL_U4;
    return rl_each(c, RL_U8, RL_U8, choose_bytes, &made, in, 3, NULL);
}

rl_status rl_ref_where(rl_call *c) {
    return rl_where_by(c, rl_choose_words);
}
