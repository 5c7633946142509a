/* Numbers of the text form, and the data of constants that a seed stands for: see text.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

float rl_half_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h >> 15) << 31, e = h >> 10 & 31, m = h & 1023, bits;
    float f;
    if (e == 0) {
        f = (float)m * 0x1p-24f;
        return sign ? -f : f;
    }
    bits = sign | (e == 31 ? 255u << 23 : (e + 112) << 23) | m << 13;
    memcpy(&f, &bits, 4);
    return f;
}

uint16_t rl_float_half(float f) {
    uint32_t b;
    memcpy(&b, &f, 4);
    uint16_t sign = (uint16_t)(b >> 16 & 0x8000);
    b &= 0x7fffffff;
    if (b > 0x7f800000) return sign | 0x7e00;
    if (b >= 0x47800000) return sign | 0x7c00;
    if (b < 0x38800000) { /* the sum's last bits are the rounded subnormal */
        float x;
        memcpy(&x, &b, 4);
        x += 0.5f;
        memcpy(&b, &x, 4);
        return (uint16_t)(sign | (b - 0x3f000000));
    }
    return (uint16_t)(sign | ((b - 0x38000000 + 0xfff + (b >> 13 & 1)) >> 13));
}

float rl_bf16_float(uint16_t h) {
    uint32_t b = (uint32_t)h << 16;
    float f;
    memcpy(&f, &b, 4);
    return f;
}

uint16_t rl_float_bf16(float f) {
    uint32_t b;
    memcpy(&b, &f, 4);
    if ((b & 0x7fffffff) > 0x7f800000) return (uint16_t)(b >> 16 | 0x40);
    return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

static float rounded(rl_dtype t, float f) {
    return t == RL_F16 ? rl_half_float(rl_float_half(f)) : t == RL_BF16 ? rl_bf16_float(rl_float_bf16(f)) : f;
}

void rl_text_shortest(char s[32], rl_dtype t, float f) {
    for (int digits = t == RL_F32 ? 6 : 5; digits <= 9; digits++) {
        snprintf(s, 32, "%.*g", digits, (double)f);
        if (rounded(t, strtof(s, NULL)) == f) return;
    }
}

/* With a point, not to be taken for an int. */
void rl_text_put_float(rl_text *t, float f) {
    char s[32];
    if (isnan(f)) {
        rl_put(t, "nan");
        return;
    }
    rl_text_shortest(s, RL_F32, f);
    rl_put(t, isfinite(f) && !strpbrk(s, ".e") ? "%s.0" : "%s", s);
}

void rl_text_put_double(rl_text *t, double f) {
    char s[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, f);
        if (strtod(s, NULL) == f) break;
    }
    rl_put(t, "%s", s);
}

/* ---- seeded data ---- */

/* A bijection, so that the seed can be found again. */
static uint64_t scramble(uint64_t x) {
    for (int i = 0; i < 2; i++) {
        x ^= x >> 32;
        x *= 0xd6e8feb86659fd93u;
    }
    return x ^ x >> 32;
}

static uint64_t unscramble(uint64_t x) {
    uint64_t inverse = 0xd6e8feb86659fd93u; /* Newton's iteration doubles the number of right bits: 3 at first */
    for (int i = 0; i < 5; i++) inverse *= 2 - 0xd6e8feb86659fd93u * inverse;
    for (int i = 0; i < 2; i++) {
        x ^= x >> 32;
        x *= inverse;
    }
    return x ^ x >> 32;
}

static uint64_t seed_word(uint64_t seed, size_t i) {
    return scramble(seed + ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u);
}

/* Data is a row of slots, each holding 4 random bits (a bool: 1). */
static size_t slot_size(rl_dtype t) {
    uint32_t bits = rl_dtype_bits(t);
    return t == RL_C64 ? 4 : t == RL_C128 ? 8 : bits < 8 ? 1 : bits / 8;
}

static uint32_t bits_per_slot(rl_dtype t) {
    return t == RL_BOOL ? 1 : 4;
}

static bool is_signed(rl_dtype t) {
    return t == RL_I8 || t == RL_I16 || t == RL_I32 || t == RL_I64;
}

static void write_slot(rl_dtype t, uint32_t bits, unsigned char *p) {
    int64_t x = is_signed(t) ? (int64_t)bits - 8 : (int64_t)bits;
    float f = (float)bits - 8.0f;
    double d = (double)f;
    uint16_t h = t == RL_F16 ? rl_float_half(f) : rl_float_bf16(f);
    const void *from = t == RL_F32 || t == RL_C64 ? (const void *)&f : t == RL_F64 || t == RL_C128 ? (const void *)&d
                     : t == RL_F16 || t == RL_BF16 ? (const void *)&h : (const void *)&x;
    memcpy(p, from, slot_size(t));
}

void rl_text_seeded(rl_dtype t, uint64_t seed, void *data, size_t nbyte) {
    size_t size = slot_size(t), n = nbyte / size, per = 64 / bits_per_slot(t);
    unsigned char *p = data;
    for (size_t i = 0; i < n; i++) {
        uint64_t w = seed_word(seed, i / per) >> (i % per * bits_per_slot(t));
        write_slot(t, (uint32_t)w & ((1u << bits_per_slot(t)) - 1), p + i * size);
    }
}

/* The bits that write_slot makes this slot from; RL_NONE: none. */
static uint32_t read_slot(rl_dtype t, const unsigned char *p) {
    unsigned char s[8];
    for (uint32_t b = 0; b < 1u << bits_per_slot(t); b++) {
        write_slot(t, b, s);
        if (rl_same_bytes(s, p, slot_size(t))) return b;
    }
    return RL_NONE;
}

bool rl_text_seed_of(rl_dtype t, const void *data, size_t nbyte, uint64_t *seed) {
    size_t size = slot_size(t), n = nbyte / size, per = 64 / bits_per_slot(t);
    const unsigned char *p = data;
    uint64_t w = 0;
    if (n < per) return false;
    for (size_t i = 0; i < per; i++) {
        uint32_t b = read_slot(t, p + i * size);
        if (b == RL_NONE) return false;
        w |= (uint64_t)b << (i * bits_per_slot(t));
    }
    *seed = unscramble(w) - 0x9e3779b97f4a7c15u;
    for (size_t i = per; i < n; i++) {
        unsigned char s[8];
        w = seed_word(*seed, i / per) >> (i % per * bits_per_slot(t));
        write_slot(t, (uint32_t)w & ((1u << bits_per_slot(t)) - 1), s);
        if (!rl_same_bytes(s, p + i * size, size)) return false;
    }
    return true;
}
