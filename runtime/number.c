/* Conversions between number types: see number.h. */
#include "number.h"

#include <math.h>

#include "../src/text.h"
#include "number_runs.h"

/* IEEE: infinities and NaNs at the largest exponent.  FN: one NaN, all ones; no infinity.  FNUZ: one NaN, the code of -0; no
 * infinity, no -0.  FINITE: neither. */
typedef enum { IEEE, FN, FNUZ, FINITE } special;
typedef struct { int exp, mant, bias; special special; } format;

static const format *format_of(rl_dtype t) {
    static const format f16 = {5, 10, 15, IEEE}, bf16 = {8, 7, 127, IEEE}, e4m3fn = {4, 3, 7, FN}, e4m3fnuz = {4, 3, 8, FNUZ},
                        e5m2 = {5, 2, 15, IEEE}, e5m2fnuz = {5, 2, 16, FNUZ}, e2m1 = {2, 1, 1, FINITE};
    switch (t) {
    case RL_F16: return &f16;
    case RL_BF16: return &bf16;
    case RL_F8E4M3FN: return &e4m3fn;
    case RL_F8E4M3FNUZ: return &e4m3fnuz;
    case RL_F8E5M2: return &e5m2;
    case RL_F8E5M2FNUZ: return &e5m2fnuz;
    case RL_F4E2M1: return &e2m1;
    default: return NULL;
    }
}

bool rl_is_float(rl_dtype t) {
    return t == RL_F32 || t == RL_F64 || t == RL_F8E8M0 || format_of(t) != NULL;
}

bool rl_is_signed(rl_dtype t) {
    return t == RL_I8 || t == RL_I16 || t == RL_I32 || t == RL_I64 || t == RL_I4 || t == RL_I2;
}

bool rl_is_integer(rl_dtype t) {
    return rl_is_signed(t) || t == RL_U8 || t == RL_U16 || t == RL_U32 || t == RL_U64 || t == RL_U4 || t == RL_U2;
}

bool rl_is_number(rl_dtype t) { return rl_is_float(t) || rl_is_integer(t) || t == RL_BOOL; }

bool rl_converts(rl_dtype t) { return t != RL_C64 && t != RL_C128 && rl_dtype_bits(t); }

rl_dtype rl_compute_type(rl_dtype t) {
    if (format_of(t) || t == RL_F8E8M0) return RL_F32;
    return t == RL_I4 || t == RL_I2 || t == RL_U4 || t == RL_U2 ? RL_I32 : t;
}

/* ---- one number ---- */

double rl_number_value(rl_dtype t, uint32_t bits) {
    if (t == RL_F8E8M0) return bits == 0xff ? NAN : ldexp(1, (int)bits - 127);
    const format *f = format_of(t);
    uint32_t mant = bits & ((1u << f->mant) - 1), top = (1u << f->exp) - 1, exp = (bits >> f->mant) & top;
    uint32_t sign = bits >> (f->exp + f->mant) & 1;
    double m = mant, x;
    if (f->special == FNUZ && sign && !exp && !mant) return NAN;
    if (f->special == FN && exp == top && mant == (1u << f->mant) - 1) return NAN;
    if (f->special == IEEE && exp == top) x = mant ? (double)NAN : (double)INFINITY;
    else if (exp == 0) x = ldexp(m, 1 - f->bias - f->mant);
    else x = ldexp(m + ldexp(1, f->mant), (int)exp - f->bias - f->mant);
    return sign ? -x : x;
}

static double largest(const format *f) {
    int top = (1 << f->exp) - 1 - f->bias - (f->special == IEEE);
    double ulp = ldexp(1, -f->mant);
    return ldexp(2 - ulp * (f->special == FN ? 2 : 1), top);
}

static uint32_t nan_code(const format *f, uint32_t sign) {
    uint32_t ones = (1u << (f->exp + f->mant)) - 1;
    if (f->special == FNUZ) return ones + 1;
    if (f->special == FINITE) return ones + 1; /* no NaN: -0, as NumPy's extension types have it */
    if (f->special == FN) return sign | ones;
    return sign | (((1u << f->exp) - 1) << f->mant) | 1u << (f->mant - 1);
}

/* x > the largest number, after rounding. */
static uint32_t overflow_code(const format *f, uint32_t sign, bool saturate) {
    uint32_t ones = (1u << (f->exp + f->mant)) - 1;
    uint32_t inf = ((1u << f->exp) - 1) << f->mant;
    bool is16 = f->exp + f->mant == 15; /* f16 and bf16 never saturate */
    if (f->special == FINITE) return sign | ones;
    if (is16 || (f->special == IEEE && !saturate)) return sign | inf;
    if (!saturate) return nan_code(f, sign);
    if (f->special == IEEE) return sign | (inf - 1);
    return sign | (f->special == FN ? ones - 1 : ones);
}

/* A power of two, rounded up (Cast's default round_mode); 0 and below: the least. */
static uint32_t scale_code(double x) {
    int e;
    if (isnan(x)) return 0xff;
    if (x <= 0) return 0;
    if (isinf(x)) return 0xfe;
    double m = frexp(x, &e); /* x = m * 2^e, 0.5 <= m < 1 */
    int code = e - (m == 0.5) + 127;
    return code < 0 ? 0 : code > 0xfe ? 0xfe : (uint32_t)code;
}

uint32_t rl_number_bits(rl_dtype t, double x, bool saturate) {
    if (t == RL_F8E8M0) return scale_code(x);
    const format *f = format_of(t);
    uint32_t sign = signbit(x) ? 1u << (f->exp + f->mant) : 0;
    int e, least = 1 - f->bias;
    if (isnan(x)) return nan_code(f, sign);
    double a = fabs(x);
    if (isinf(x)) return overflow_code(f, sign, saturate);
    frexp(a, &e);
    int unit = RL_MAX(e - 1, least) - f->mant;
    double r = nearbyint(ldexp(a, -unit)); /* in units: at most 2^(mant+1) */
    if (ldexp(r, unit) > largest(f)) return overflow_code(f, sign, saturate);
    if (r == 0) return f->special == FNUZ ? 0 : sign;
    uint32_t m = (uint32_t)r, one = 1u << f->mant;
    if (m < one) return sign | m; /* subnormal */
    if (m == 2 * one) m = one, unit++;
    return sign | (uint32_t)(unit + f->mant + f->bias) << f->mant | (m - one);
}

/* ---- to float16 and bfloat16, of which there are many ---- */

typedef union { double f; uint64_t i; } pair;

/* The bits that are too many round the others by a carry; of what has no exponent left, by the sum with what has the last bit as its unit. */
static inline uint16_t bits16(double value, int mant, int bias) {
    pair x = {.f = value}, magic = {.i = (uint64_t)(1076 - bias - mant) << 52}, sum;
    uint32_t sign = (uint32_t)(x.i >> 48) & 0x8000, top = (1u << 15) - (1u << mant);
    int drop = 52 - mant;
    x.i &= ~(UINT64_C(1) << 63);
    if (x.f != x.f) return (uint16_t)(sign | top | 1u << (mant - 1));
    sum.f = x.f + magic.f;
    uint64_t even = x.i >> drop & 1, normal = ((x.i + (UINT64_C(1) << (drop - 1)) - 1 + even) >> drop) - ((uint64_t)(1023 - bias) << mant);
    uint64_t code = x.i >> 52 < (uint64_t)(1024 - bias) ? sum.i - magic.i : normal;
    return (uint16_t)(sign | (code > top ? top : (uint32_t)code));
}

/* ---- runs ---- */

enum { WIDE = 256, LOOKED_UP = 8 /* fewer elements take no longer than to look a loop up */ };
typedef enum { SIGNED, UNSIGNED, FLOATING } class;
typedef union { int64_t i[WIDE]; uint64_t u[WIDE]; double f[WIDE]; } wide;

static class class_of(rl_dtype t) {
    return rl_is_float(t) ? FLOATING : t == RL_U64 ? UNSIGNED : SIGNED;
}

static int64_t sign_extend(uint32_t x, uint32_t bits) {
    return (int64_t)(x ^ (1u << (bits - 1))) - (int64_t)(1u << (bits - 1));
}

#define LOAD_BY(value, T, member) for (int64_t i = 0; i < n; i++) w->member[i] = value(((const T *)(const void *)r.base)[r.at + i * r.step])
#define LOAD(T, member) LOAD_BY(, T, member)

static void load_small(rl_run r, int64_t n, wide *w) {
    uint32_t bits = rl_dtype_bits(r.type);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = r.at + i * r.step;
        uint32_t x = bits < 8 ? rl_get_bits(r.base, k, bits) : bits == 8 ? ((const uint8_t *)r.base)[k] : ((const uint16_t *)(const void *)r.base)[k];
        if (class_of(r.type) == FLOATING) w->f[i] = rl_number_value(r.type, x);
        else w->i[i] = rl_is_signed(r.type) ? sign_extend(x, bits) : (int64_t)x;
    }
}

static void load(rl_run r, int64_t n, wide *w) {
    switch (r.type) {
    case RL_F32: LOAD(float, f); break;
    case RL_F64: LOAD(double, f); break;
    case RL_I8: LOAD(int8_t, i); break;
    case RL_I16: LOAD(int16_t, i); break;
    case RL_I32: LOAD(int32_t, i); break;
    case RL_I64: LOAD(int64_t, i); break;
    case RL_BOOL: case RL_U8: LOAD(uint8_t, i); break;
    case RL_U16: LOAD(uint16_t, i); break;
    case RL_U32: LOAD(uint32_t, i); break;
    case RL_U64: LOAD(uint64_t, u); break;
    case RL_F16: LOAD_BY(rl_half_float, uint16_t, f); break;
    case RL_BF16: LOAD_BY(rl_bf16_float, uint16_t, f); break;
    default: load_small(r, n, w); break;
    }
}

int64_t rl_number_cut(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

static uint64_t to_unsigned(double x) {
    return x >= 9223372036854775808.0 && x < 18446744073709551616.0 ? (uint64_t)x : (uint64_t)rl_number_cut(x);
}

/* Makes the elements of the class that the destination stores from. */
static void reclass(wide *w, class from, class to, int64_t n) {
    if (from == to || (from != FLOATING && to != FLOATING)) return;
    for (int64_t i = 0; i < n; i++) {
        if (to == SIGNED) w->i[i] = rl_number_cut(w->f[i]);
        else if (to == UNSIGNED) w->u[i] = to_unsigned(w->f[i]);
        else w->f[i] = from == UNSIGNED ? (double)w->u[i] : (double)w->i[i];
    }
}

static void store_small(rl_run r, int64_t n, const wide *w, bool saturate) {
    uint32_t bits = rl_dtype_bits(r.type);
    bool is_float = class_of(r.type) == FLOATING;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = r.at + i * r.step;
        uint32_t x = is_float ? rl_number_bits(r.type, w->f[i], saturate) : (uint32_t)w->i[i];
        if (bits < 8) rl_set_bits(r.base, k, bits, x);
        else if (bits == 8) ((uint8_t *)r.base)[k] = (uint8_t)x;
        else ((uint16_t *)(void *)r.base)[k] = (uint16_t)x;
    }
}

#define STORE(T, x) for (int64_t i = 0; i < n; i++) ((T *)(void *)r.base)[r.at + i * r.step] = (T)(x)

static void store(rl_run r, class from, int64_t n, wide *w, bool saturate) {
    if (r.type == RL_F32 && from != FLOATING) { /* one rounding, not two */
        STORE(float, from == UNSIGNED ? (float)w->u[i] : (float)w->i[i]);
        return;
    }
    if (r.type == RL_BOOL) {
        STORE(bool, from == FLOATING ? w->f[i] != 0 : w->i[i] != 0);
        return;
    }
    reclass(w, from, class_of(r.type), n);
    switch (r.type) {
    case RL_F32: STORE(float, w->f[i]); break;
    case RL_F64: STORE(double, w->f[i]); break;
    case RL_I8: STORE(int8_t, w->i[i]); break;
    case RL_I16: STORE(int16_t, w->i[i]); break;
    case RL_I32: STORE(int32_t, w->i[i]); break;
    case RL_I64: STORE(int64_t, w->i[i]); break;
    case RL_U8: STORE(uint8_t, w->i[i]); break;
    case RL_U16: STORE(uint16_t, w->i[i]); break;
    case RL_U32: STORE(uint32_t, w->i[i]); break;
    case RL_U64: STORE(uint64_t, w->u[i]); break;
    case RL_F16: STORE(uint16_t, bits16(w->f[i], 10, 15)); break;
    case RL_BF16: STORE(uint16_t, bits16(w->f[i], 7, 127)); break;
    default: store_small(r, n, w, saturate); break;
    }
}

void rl_convert_run(rl_run to, rl_run from, int64_t n, bool saturate) {
    const rl_number_run *r = n >= LOOKED_UP && to.step == 1 && from.step == 1 ? rl_number_run_of(to.type, from.type) : NULL;
    wide w;
    if (r) {
        r->run(to.base + to.at * (int64_t)r->to_size, from.base + from.at * (int64_t)r->from_size, n);
        return;
    }
    for (; n > 0; n -= WIDE) {
        int64_t k = RL_MIN(n, (int64_t)WIDE);
        load(from, k, &w);
        store(to, class_of(from.type), k, &w, saturate);
        from.at += k * from.step;
        to.at += k * to.step;
    }
}
