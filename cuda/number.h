/* Numbers on the device, C++: float16 and bfloat16 as bits, their conversions, and loads and stores by a type that is known at run time.
 *
 *   rl_load(x)  of a rl_half a float;   rl_store(p, x)  rounds to nearest, ties to even, as the CPU's rl_number_bits does */
#ifndef RL_CUDA_NUMBER_H
#define RL_CUDA_NUMBER_H
#include <stdint.h>
#include <string.h>

#include "index.h"

#ifdef __CUDACC__
#define RL_INSIDE __host__ __device__ __forceinline__
#define RL_UNROLL _Pragma("unroll")
#define RL_ROLLED _Pragma("unroll 1")
#define RL_BY_TWO _Pragma("unroll 2")
#else
#define RL_INSIDE inline
#define RL_UNROLL
#define RL_ROLLED
#define RL_BY_TWO
#endif

struct rl_half { uint16_t bits; };
struct rl_bfloat { uint16_t bits; };
struct __attribute__((aligned(16), may_alias)) rl_wide16 { uint32_t x[4]; };

RL_HD float rl_float_of_bits(uint32_t b) {
    float x;
    memcpy(&x, &b, 4);
    return x;
}

RL_HD uint32_t rl_bits_of_float(float x) {
    uint32_t b;
    memcpy(&b, &x, 4);
    return b;
}

RL_HD float rl_widen(rl_bfloat h) { return rl_float_of_bits((uint32_t)h.bits << 16); }

RL_HD float rl_widen(rl_half h) {
#ifdef __CUDA_ARCH__
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
    return x;
#else
    uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16, exponent = h.bits >> 10 & 31, mantissa = h.bits & 1023;
    if (exponent == 31) return rl_float_of_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent) return rl_float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float x = (float)mantissa * (1.0f / 16777216);
    return sign ? -x : x;
#endif
}

RL_HD void rl_narrow(rl_bfloat *h, float x) {
    uint32_t b = rl_bits_of_float(x);
    if ((b & 0x7fffffffu) > 0x7f800000u) h->bits = (uint16_t)(b >> 16 | 0x40);
    else h->bits = (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

RL_HD void rl_narrow(rl_half *h, float x) {
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h->bits) : "f"(x));
#else
    uint32_t b = rl_bits_of_float(x), sign = b >> 16 & 0x8000, a = b & 0x7fffffffu;
    if (a > 0x7f800000u) h->bits = (uint16_t)(sign | 0x7e00);
    else if (a >= 0x477ff000u) h->bits = (uint16_t)(sign | 0x7c00); /* 65520 and more */
    else if (a < 0x38800000u) { /* below 2^-14: steps of 2^-24; the sum rounds */
        float shifted = rl_float_of_bits(a) + 0.5f;
        h->bits = (uint16_t)(sign | (rl_bits_of_float(shifted) - 0x3f000000u));
    } else h->bits = (uint16_t)(sign | ((a - 0x38000000u + 0xfff + (a >> 13 & 1)) >> 13));
#endif
}

/* What a type is computed in. */
template <class T> struct rl_computed { typedef T type; };
template <> struct rl_computed<rl_half> { typedef float type; };
template <> struct rl_computed<rl_bfloat> { typedef float type; };
template <class T> struct rl_is_real { enum { value = 0 }; };
template <> struct rl_is_real<float> { enum { value = 1 }; };
template <> struct rl_is_real<double> { enum { value = 1 }; };
/* What its sums are carried in. */
template <class T> struct rl_summed { typedef int64_t type; };
template <> struct rl_summed<float> { typedef double type; };
template <> struct rl_summed<double> { typedef double type; };
template <> struct rl_summed<uint64_t> { typedef uint64_t type; };

template <class T> RL_HD T rl_load(T x) { return x; }
RL_HD float rl_load(rl_half x) { return rl_widen(x); }
RL_HD float rl_load(rl_bfloat x) { return rl_widen(x); }
template <class T, class W> RL_HD void rl_store(T *p, W x) { *p = (T)x; }
template <class W> RL_HD void rl_store(rl_half *p, W x) { rl_narrow(p, (float)x); }
template <class W> RL_HD void rl_store(rl_bfloat *p, W x) { rl_narrow(p, (float)x); }

/* ---- 16 bytes of elements ---- */

template <class T> struct rl_vector {
    enum { WIDE = 16 / sizeof(T), BITS = 8 * sizeof(T) % 64 };
    union { rl_wide16 all; T each[WIDE]; uint64_t word[2]; };

    /* How many of `count` elements vector number `number` has: WIDE, fewer at the end, 0 beyond it. */
    static RL_INSIDE uint32_t left(uint32_t number, uint32_t count) {
        uint32_t first = number * WIDE;
        return first >= count ? 0 : count - first < WIDE ? count - first : (uint32_t)WIDE;
    }

    /* n elements from here on, or, where `one` is set, the same one everywhere. */
    RL_INSIDE void fetch(const T *from, bool one, uint32_t n) {
        if (!one && n == WIDE) {
            all = *(const rl_wide16 *)from;
            return;
        }
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++)
            if (one || e < n) each[e] = from[one ? 0 : e];
    }

    RL_INSIDE void clear() { word[0] = word[1] = 0; }
    RL_INSIDE void put(T *to, uint32_t n) const {
        if (n == WIDE) {
            *(rl_wide16 *)to = all;
            return;
        }
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++)
            if (e < n) to[e] = each[e];
    }

    /* The element that comes next; what is made goes in behind the others. So a loop over them that is not unrolled keeps them in registers. */
    RL_INSIDE T take() {
        T x;
        memcpy(&x, word, sizeof x);
        word[0] = sizeof(T) == 8 ? word[1] : word[0] >> BITS | word[1] << (64 - BITS), word[1] >>= sizeof(T) == 8 ? 0 : BITS;
        return x;
    }
    RL_INSIDE void push(T x) {
        uint64_t b = 0;
        memcpy(&b, &x, sizeof x);
        word[0] = sizeof(T) == 8 ? word[1] : word[0] >> BITS | word[1] << (64 - BITS);
        word[1] = sizeof(T) == 8 ? b : word[1] >> BITS | b << (64 - BITS);
    }
};

/* A float as an integer, as the CPU's Cast has it: truncated in 64 bits, INT64_MIN for what does not fit there. */
RL_HD int64_t rl_truncate(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

#endif
