/* Element by element, C++ for the host and the device: the CPU's own expressions (runtime/pointwise.inc), one element each.
 *
 *   each<T>   y = op(a, b): operands of type T broadcast by strides of 0; 16 bytes per thread where neighbours in y are neighbours, or one element, in the operands
 *   where<V>  y = cond ? a : b, by size of the element, likewise; operands: y, a, b, cond */
#ifndef RL_CUDA_K_EACH_H
#define RL_CUDA_K_EACH_H
#include <math.h>

#include "../runtime/ref_pointwise.h"
#include "k_move.h"

#define PER_ELEMENT RL_HD
#include "../runtime/pointwise_types.inc"
#undef PER_ELEMENT

/* X(number, function): the ops of every type, of floats, of integers */
#define RL_OPS_OF_ALL(X)                                                                                             \
    X(ADD, add) X(SUB, sub) X(MUL, mul) X(DIV, div) X(POW, pow) X(MOD, mod) X(FMOD, fmod) X(MAX, max) X(MIN, min)    \
    X(PRELU, prelu) X(EQUAL, equal) X(LESS, less) X(LESS_EQUAL, less_equal) X(GREATER, greater)                      \
    X(GREATER_EQUAL, greater_equal) X(RELU, relu) X(ABS, abs) X(NEG, neg) X(SIGN, sign)
#define RL_OPS_OF_FLOATS(X)                                                                                          \
    X(CEIL, ceil) X(FLOOR, floor) X(ROUND, round) X(SQRT, sqrt) X(RECIPROCAL, reciprocal) X(EXP, exp) X(LOG, log)    \
    X(SIN, sin) X(COS, cos) X(TAN, tan) X(ASIN, asin) X(ACOS, acos) X(ATAN, atan) X(SINH, sinh) X(COSH, cosh)        \
    X(TANH, tanh) X(ASINH, asinh) X(ACOSH, acosh) X(ATANH, atanh) X(ERF, erf) X(SIGMOID, sigmoid)                    \
    X(SOFTPLUS, softplus) X(SOFTSIGN, softsign) X(LEAKY_RELU, leaky_relu) X(ELU, elu) X(CELU, celu) X(SELU, selu)    \
    X(THRESHOLDED_RELU, thresholded_relu) X(SHRINK, shrink) X(HARD_SIGMOID, hard_sigmoid) X(HARD_SWISH, hard_swish) X(MISH, mish)      \
    X(SWISH, swish) X(GELU, gelu) X(GELU_TANH, gelu_tanh) X(IS_NAN, is_nan) X(IS_INF, is_inf)
#define RL_OPS_OF_INTEGERS(X)                                                                                        \
    X(BIT_AND, bit_and) X(BIT_OR, bit_or) X(BIT_XOR, bit_xor) X(SHIFT_LEFT, shift_left) X(SHIFT_RIGHT, shift_right)  \
    X(BIT_NOT, bit_not)

#define RL_CASE_f32(number, name) case RL_PW_##number: return (W)name##_f32(a, b, param);
#define RL_CASE_f64(number, name) case RL_PW_##number: return (W)name##_f64(a, b, param);
#define RL_CASE_i8(number, name) case RL_PW_##number: return (W)name##_i8(a, b, param);
#define RL_CASE_i16(number, name) case RL_PW_##number: return (W)name##_i16(a, b, param);
#define RL_CASE_i32(number, name) case RL_PW_##number: return (W)name##_i32(a, b, param);
#define RL_CASE_i64(number, name) case RL_PW_##number: return (W)name##_i64(a, b, param);
#define RL_CASE_u8(number, name) case RL_PW_##number: return (W)name##_u8(a, b, param);
#define RL_CASE_u16(number, name) case RL_PW_##number: return (W)name##_u16(a, b, param);
#define RL_CASE_u32(number, name) case RL_PW_##number: return (W)name##_u32(a, b, param);
#define RL_CASE_u64(number, name) case RL_PW_##number: return (W)name##_u64(a, b, param);
#define RL_APPLY(T, S, OTHERS)                                                                                       \
    RL_HD T rl_apply(uint32_t op, T a, T b, const double *param) {                                                   \
        typedef T W;                                                                                                 \
        switch (op) {                                                                                                \
            RL_OPS_OF_ALL(RL_CASE_##S)                                                                               \
            OTHERS(RL_CASE_##S)                                                                                      \
        default: return (T)!a; /* RL_PW_NOT */                                                                       \
        }                                                                                                            \
    }
RL_APPLY(float, f32, RL_OPS_OF_FLOATS)
RL_APPLY(double, f64, RL_OPS_OF_FLOATS)
RL_APPLY(int8_t, i8, RL_OPS_OF_INTEGERS)
RL_APPLY(int16_t, i16, RL_OPS_OF_INTEGERS)
RL_APPLY(int32_t, i32, RL_OPS_OF_INTEGERS)
RL_APPLY(int64_t, i64, RL_OPS_OF_INTEGERS)
RL_APPLY(uint8_t, u8, RL_OPS_OF_INTEGERS)
RL_APPLY(uint16_t, u16, RL_OPS_OF_INTEGERS)
RL_APPLY(uint32_t, u32, RL_OPS_OF_INTEGERS)
RL_APPLY(uint64_t, u64, RL_OPS_OF_INTEGERS)

RL_HD bool rl_makes_bool(uint32_t op) {
    return (op >= RL_PW_EQUAL && op <= RL_PW_GREATER_EQUAL) || op == RL_PW_IS_NAN || op == RL_PW_IS_INF || op == RL_PW_NOT;
}

template <class T> struct rl_each {
    typedef rl_p_each Params;
    typedef rl_nothing Shared, Local;
    typedef typename rl_computed<T>::type C;
    typedef rl_vector<T> Vector;
    enum { WIDE = Vector::WIDE };

    RL_MEMBER void put(const Params &p, int64_t at, C y) {
        if (rl_makes_bool(p.op)) ((uint8_t *)p.to)[at] = y != 0;
        else rl_store((T *)p.to + at, y);
    }

    /* The ops that a load takes longer than: without a decision for each element. */
    template <uint32_t OP> RL_MEMBER void quick(const Params &p, const Vector &a, const Vector &b, Vector *y) {
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) rl_store(&y->each[e], rl_apply(OP, (C)rl_load(a.each[e]), (C)rl_load(b.each[e]), p.param));
    }
    RL_MEMBER bool is_quick(const Params &p, const Vector &a, const Vector &b, Vector *y) {
        switch (p.op) {
        case RL_PW_ADD: quick<RL_PW_ADD>(p, a, b, y); return true;
        case RL_PW_SUB: quick<RL_PW_SUB>(p, a, b, y); return true;
        case RL_PW_MUL: quick<RL_PW_MUL>(p, a, b, y); return true;
        case RL_PW_DIV: quick<RL_PW_DIV>(p, a, b, y); return true;
        case RL_PW_MAX: quick<RL_PW_MAX>(p, a, b, y); return true;
        case RL_PW_MIN: quick<RL_PW_MIN>(p, a, b, y); return true;
        case RL_PW_RELU: quick<RL_PW_RELU>(p, a, a, y); return true;
        default: return false;
        }
    }

    /* 16 bytes of each operand; those of the last vector that are missing, and bools, one by one. The loop is none of WIDE copies of all ops. */
    RL_MEMBER void wide(const Params &p, uint32_t number) {
        int64_t at[3];
        uint32_t n = Vector::left(number, p.count);
        bool whole = n == WIDE && !rl_makes_bool(p.op);
        Vector a, b, y;
        if (!n) return;
        a.clear(), b.clear(), y.clear();
        rl_walk_at(&p.w, number, 3, at); /* of operands that are not there: 0 */
        a.fetch((const T *)p.in[0] + at[1], p.one[0], n);
        if (p.nin > 1) b.fetch((const T *)p.in[1] + at[2], p.one[1], n);
        bool made_all = whole && is_quick(p, a, b, &y);
        RL_ROLLED
        for (uint32_t e = 0; e < n && !made_all; e++) {
            C u = rl_load(a.take()), w = p.nin > 1 ? (C)rl_load(b.take()) : u, v = rl_apply(p.op, u, w, p.param);
            T made;
            rl_store(&made, v);
            if (whole) y.push(made);
            else put(p, at[0] + e, v);
        }
        if (whole) *(rl_wide16 *)((T *)p.to + at[0]) = y.all;
    }

    RL_STEP(rl_p_each) {
        if (p.wide) {
            wide(p, block * RL_THREADS + thread);
            return;
        }
        RL_EACH(k, p) {
            int64_t at[3];
            rl_walk_at(&p.w, k, 3, at);
            C a = rl_load(((const T *)p.in[0])[at[1]]), b = p.nin > 1 ? rl_load(((const T *)p.in[1])[at[2]]) : a;
            put(p, at[0], rl_apply(p.op, a, b, p.param));
        }
    }
};

template <class V> struct rl_where {
    typedef rl_p_each Params;
    typedef rl_nothing Shared, Local;
    enum { WIDE = rl_vector<V>::WIDE };

    RL_MEMBER void wide(const Params &p, uint32_t number) {
        int64_t at[4];
        uint32_t n = rl_vector<V>::left(number, p.count);
        rl_vector<V> a, b;
        if (!n) return;
        a.clear(), b.clear();
        rl_walk_at(&p.w, number, 4, at);
        a.fetch((const V *)p.in[0] + at[1], p.one[0], n);
        b.fetch((const V *)p.in[1] + at[2], p.one[1], n);
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++)
            if (e < n && !((const uint8_t *)p.in[2])[at[3] + (p.one[2] ? 0 : e)]) a.each[e] = b.each[e];
        a.put((V *)p.to + at[0], n);
    }

    RL_STEP(rl_p_each) {
        if (p.wide) {
            wide(p, block * RL_THREADS + thread);
            return;
        }
        RL_EACH(k, p) {
            int64_t at[4];
            rl_walk_at(&p.w, k, 4, at);
            ((V *)p.to)[at[0]] = ((const uint8_t *)p.in[2])[at[3]] ? ((const V *)p.in[0])[at[1]] : ((const V *)p.in[1])[at[2]];
        }
    }
};

#endif
