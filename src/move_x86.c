/* The kernels of the move for AVX-512 (with VBMI), and which a processor has: see move_kernel.h.
 *
 * Transposing 16 x 16 elements of 4 bytes: neighbouring rows are interleaved by elements, then by pairs; after that each register
 * holds a column of four rows in each of its four lanes of 16 bytes, and two rounds of choosing lanes put them together.  Smaller
 * elements go the same way as if they were 4 bytes, and are sorted out in the register; larger ones skip the first steps. */
#include "move_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")))

/* ---- AVX-512: blocks ---- */

/* Lane k of r[0], r[1], r[2], r[3] becomes out[k]. */
INLINE AVX512 void turn_lanes(__m512i a, __m512i b, __m512i c, __m512i d, __m512i *o0, __m512i *o1, __m512i *o2, __m512i *o3) {
    __m512i ab = _mm512_shuffle_i32x4(a, b, 0x88), cd = _mm512_shuffle_i32x4(c, d, 0x88);
    __m512i ab1 = _mm512_shuffle_i32x4(a, b, 0xdd), cd1 = _mm512_shuffle_i32x4(c, d, 0xdd);
    *o0 = _mm512_shuffle_i32x4(ab, cd, 0x88);
    *o2 = _mm512_shuffle_i32x4(ab, cd, 0xdd);
    *o1 = _mm512_shuffle_i32x4(ab1, cd1, 0x88);
    *o3 = _mm512_shuffle_i32x4(ab1, cd1, 0xdd);
}

/* 16 rows of 16 elements of 4 bytes. */
INLINE AVX512 void turn4(__m512i *r) {
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) turn_lanes(r[i], r[4 + i], r[8 + i], r[12 + i], &t[i], &t[4 + i], &t[8 + i], &t[12 + i]);
    for (int i = 0; i < 16; i++) r[i] = t[i];
}

/* 8 rows of 8 elements of 8 bytes. */
INLINE AVX512 void turn8(__m512i *r) {
    __m512i t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
    }
    for (int i = 0; i < 2; i++) turn_lanes(t[i], t[2 + i], t[4 + i], t[6 + i], &r[i], &r[2 + i], &r[4 + i], &r[6 + i]);
}

INLINE uint64_t ones(uint32_t n) {
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

INLINE AVX512 void load(__m512i *r, uint32_t kx, const char *from, const int64_t *fx, uint32_t nx, uint32_t nbyte, bool whole) {
    __mmask64 m = ones(nbyte);
    for (uint32_t i = 0; i < kx; i++) {
        if (whole) r[i] = _mm512_loadu_si512(from + fx[i]);
        else r[i] = i < nx ? _mm512_maskz_loadu_epi8(m, from + fx[i]) : _mm512_setzero_si512();
    }
}

INLINE AVX512 void store(const __m512i *r, uint32_t ky, char *to, const int64_t *ty, uint32_t ny, uint32_t nbyte, bool whole) {
    __mmask64 m = ones(nbyte);
    for (uint32_t j = 0; j < ky; j++) {
        if (whole) _mm512_storeu_si512(to + ty[j], r[j]);
        else if (j < ny) _mm512_mask_storeu_epi8(to + ty[j], m, r[j]);
    }
}

INLINE AVX512 void block4(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool whole) {
    __m512i r[16];
    load(r, 16, from, fx, nx, 4 * ny, whole);
    turn4(r);
    store(r, 16, to, ty, ny, 4 * nx, whole);
}

static AVX512 void block4_avx512(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    (void)together;
    if (nx == 16 && ny == 16) block4(to, ty, from, fx, 16, 16, true);
    else block4(to, ty, from, fx, nx, ny, false);
}

INLINE AVX512 void block8(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool whole) {
    __m512i r[8];
    load(r, 8, from, fx, nx, 8 * ny, whole);
    turn8(r);
    store(r, 8, to, ty, ny, 8 * nx, whole);
}

static AVX512 void block8_avx512(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    (void)together;
    if (nx == 8 && ny == 8) block8(to, ty, from, fx, 8, 8, true);
    else block8(to, ty, from, fx, nx, ny, false);
}

static AVX512 void block16_avx512(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    __m512i r[4];
    bool whole = nx == 4 && ny == 4;
    (void)together;
    load(r, 4, from, fx, nx, 16 * ny, whole);
    turn_lanes(r[0], r[1], r[2], r[3], &r[0], &r[1], &r[2], &r[3]);
    store(r, 4, to, ty, ny, 16 * nx, whole);
}

/* 16 rows of 32: after turn4 each register has 2 elements of each row. */
static AVX512 void block2_avx512(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    __m512i r[16], sort = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26, 24, 22, 20, 18, 16, 14, 12,
                                           10, 8, 6, 4, 2, 0);
    __mmask32 m = (__mmask32)ones(2 * nx);
    bool whole = nx == 16 && ny == 32;
    if (whole) load(r, 16, from, fx, 16, 64, true);
    else load(r, 16, from, fx, nx, 2 * ny, false);
    turn4(r);
    for (uint32_t j = 0; j < 16; j++) {
        __m512i x = _mm512_permutexvar_epi16(sort, r[j]);
        __m256i a = _mm512_castsi512_si256(x), b = _mm512_extracti64x4_epi64(x, 1);
        const int64_t *at = ty + 2 * j;
        if (together) _mm512_storeu_si512(to + at[0], x);
        else if (whole) _mm256_storeu_si256((void *)(to + at[0]), a), _mm256_storeu_si256((void *)(to + at[1]), b);
        else {
            if (2 * j < ny) _mm256_mask_storeu_epi8(to + at[0], m, a);
            if (2 * j + 1 < ny) _mm256_mask_storeu_epi8(to + at[1], m, b);
        }
    }
}

/* Of 16 x 4 bytes: byte k of each four; and of 4 x 16 those at k, k + 1, .. of each sixteen. */
#define ROW(k) k, k + 4, k + 8, k + 12, k + 16, k + 20, k + 24, k + 28, k + 32, k + 36, k + 40, k + 44, k + 48, k + 52, k + 56, k + 60
#define COLUMN(k) k, k + 16, k + 32, k + 48
#define COLUMNS(k) COLUMN(k), COLUMN(k + 1), COLUMN(k + 2), COLUMN(k + 3)

/* Rows 4 j .. 4 j + 3 of a block, 16 elements of 1 byte each. */
INLINE AVX512 void store_four(__m512i x, char *to, const int64_t *at, uint32_t ny, __mmask16 m, bool whole) {
    __m128i row[4] = {_mm512_castsi512_si128(x), _mm512_extracti32x4_epi32(x, 1), _mm512_extracti32x4_epi32(x, 2), _mm512_extracti32x4_epi32(x, 3)};
    for (uint32_t i = 0; i < 4; i++) {
        if (whole) _mm_storeu_si128((void *)(to + at[i]), row[i]);
        else if (i < ny) _mm_mask_storeu_epi8(to + at[i], m, row[i]);
    }
}

/* 16 rows of 64: 4 elements of each. */
static AVX512 void block1_avx512(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    static const uint8_t order[64] = {ROW(0), ROW(1), ROW(2), ROW(3)};
    __m512i r[16], sort = _mm512_loadu_si512(order);
    __mmask16 m = (__mmask16)ones(nx);
    bool whole = nx == 16 && ny == 64;
    if (whole) load(r, 16, from, fx, 16, 64, true);
    else load(r, 16, from, fx, nx, ny, false);
    turn4(r);
    for (uint32_t j = 0; j < 16; j++) {
        __m512i x = _mm512_permutexvar_epi8(sort, r[j]);
        if (together) _mm512_storeu_si512(to + ty[4 * j], x);
        else if (whole) store_four(x, to, ty + 4 * j, 4, m, true);
        else store_four(x, to, ty + 4 * j, ny > 4 * j ? ny - 4 * j : 0, m, false);
    }
}

/* The other way round: 4 bytes of each register from as many rows are sorted to come together, then go through turn4.  Four rows
 * of 16 elements of 1 byte, two of 2 bytes, make a register. */
INLINE AVX512 __m512i load_wide(const char *from, const int64_t *fx, uint32_t rows, uint32_t nx, uint32_t nbyte) {
    __m512i r = _mm512_setzero_si512();
    if (nx == 0) return r;
    if (rows == 4) {
        __mmask16 m = (__mmask16)ones(nbyte);
        r = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(m, from + fx[0]));
        if (nx > 1) r = _mm512_inserti32x4(r, _mm_maskz_loadu_epi8(m, from + fx[1]), 1);
        if (nx > 2) r = _mm512_inserti32x4(r, _mm_maskz_loadu_epi8(m, from + fx[2]), 2);
        if (nx > 3) r = _mm512_inserti32x4(r, _mm_maskz_loadu_epi8(m, from + fx[3]), 3);
        return r;
    }
    __mmask32 m = (__mmask32)ones(nbyte);
    r = _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(m, from + fx[0]));
    return nx > 1 ? _mm512_inserti64x4(r, _mm256_maskz_loadu_epi8(m, from + fx[1]), 1) : r;
}

INLINE AVX512 __m512i load_pair(const char *from, const int64_t *fx) {
    __m512i r = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)(from + fx[0])));
    return _mm512_inserti64x4(r, _mm256_loadu_si256((const void *)(from + fx[1])), 1);
}

INLINE AVX512 __m512i load_four(const char *from, const int64_t *fx) {
    __m512i r = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(from + fx[0])));
    r = _mm512_inserti32x4(r, _mm_loadu_si128((const void *)(from + fx[1])), 1);
    r = _mm512_inserti32x4(r, _mm_loadu_si128((const void *)(from + fx[2])), 2);
    return _mm512_inserti32x4(r, _mm_loadu_si128((const void *)(from + fx[3])), 3);
}

static AVX512 void wide2_avx512(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    __m512i r[16], sort = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18,
                                           2, 17, 1, 16, 0);
    bool whole = nx == 32 && ny == 16;
    (void)together;
    for (uint32_t i = 0; i < 16; i++) {
        if (whole) r[i] = load_pair(from, fx + 2 * i);
        else r[i] = load_wide(from, fx + 2 * i, 2, nx > 2 * i ? nx - 2 * i : 0, 2 * ny);
        r[i] = _mm512_permutexvar_epi16(sort, r[i]);
    }
    turn4(r);
    if (whole) store(r, 16, to, ty, 16, 64, true);
    else store(r, 16, to, ty, ny, 2 * nx, false);
}

static AVX512 void wide1_avx512(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    static const uint8_t order[64] = {COLUMNS(0), COLUMNS(4), COLUMNS(8), COLUMNS(12)};
    __m512i r[16], sort = _mm512_loadu_si512(order);
    bool whole = nx == 64 && ny == 16;
    (void)together;
    for (uint32_t i = 0; i < 16; i++) {
        if (whole) r[i] = load_four(from, fx + 4 * i);
        else r[i] = load_wide(from, fx + 4 * i, 4, nx > 4 * i ? nx - 4 * i : 0, ny);
        r[i] = _mm512_permutexvar_epi8(sort, r[i]);
    }
    turn4(r);
    if (whole) store(r, 16, to, ty, 16, 64, true);
    else store(r, 16, to, ty, ny, nx, false);
}

/* 64 x 64: whole lines on both sides, which matters where lines of the rows drive each other out.  Quarters of four rows come together. */
static AVX512 void square1_avx512(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    static const uint8_t order[64] = {COLUMNS(0), COLUMNS(4), COLUMNS(8), COLUMNS(12)};
    __m512i t[4][16], sort = _mm512_loadu_si512(order);
    if (nx < 64 || ny < 64) {
        for (uint32_t y = 0; y < ny; y += 16) wide1_avx512(to, ty + y, from + y, fx, nx, RL_MIN(ny - y, 16), together);
        return;
    }
    for (int i = 0; i < 16; i++) {
        __m512i r[4];
        load(r, 4, from, fx + 4 * i, 4, 64, true);
        turn_lanes(r[0], r[1], r[2], r[3], &r[0], &r[1], &r[2], &r[3]);
        for (int k = 0; k < 4; k++) t[k][i] = _mm512_permutexvar_epi8(sort, r[k]);
    }
    for (int k = 0; k < 4; k++) {
        turn4(t[k]);
        store(t[k], 16, to, ty + 16 * k, 16, 64, true);
    }
}

/* 32 x 32, in the same way: halves of two rows. */
static AVX512 void square2_avx512(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    __m512i t[2][16], sort = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3,
                                              18, 2, 17, 1, 16, 0);
    if (nx < 32 || ny < 32) {
        for (uint32_t y = 0; y < ny; y += 16) wide2_avx512(to, ty + y, from + 2 * y, fx, nx, RL_MIN(ny - y, 16), together);
        return;
    }
    for (int i = 0; i < 16; i++) {
        __m512i a = _mm512_loadu_si512(from + fx[2 * i]), b = _mm512_loadu_si512(from + fx[2 * i + 1]);
        t[0][i] = _mm512_permutexvar_epi16(sort, _mm512_shuffle_i64x2(a, b, 0x44));
        t[1][i] = _mm512_permutexvar_epi16(sort, _mm512_shuffle_i64x2(a, b, 0xee));
    }
    for (int k = 0; k < 2; k++) {
        turn4(t[k]);
        store(t[k], 16, to, ty + 16 * k, 16, 64, true);
    }
}

/* ---- AVX-512: rows and mixes ---- */

/* Fewer than 64 bytes: two moves that overlap. (Masked stores to lines that are not in the cache are slow.) */
INLINE AVX512 void part_row(char *to, const char *from, int64_t n) {
    if (n >= 32) {
        __m256i a = _mm256_loadu_si256((const void *)from), b = _mm256_loadu_si256((const void *)(from + n - 32));
        _mm256_storeu_si256((void *)to, a);
        _mm256_storeu_si256((void *)(to + n - 32), b);
    } else if (n >= 16) {
        __m128i a = _mm_loadu_si128((const void *)from), b = _mm_loadu_si128((const void *)(from + n - 16));
        _mm_storeu_si128((void *)to, a);
        _mm_storeu_si128((void *)(to + n - 16), b);
    } else if (n >= 8) {
        uint64_t a, b;
        memcpy(&a, from, 8), memcpy(&b, from + n - 8, 8);
        memcpy(to, &a, 8), memcpy(to + n - 8, &b, 8);
    } else
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

/* 64 bytes and more: whole lines of `to`, and two moves that overlap these at its ends. */
INLINE AVX512 void long_row(char *to, const char *from, int64_t n) {
    __m512i first = _mm512_loadu_si512(from), last = _mm512_loadu_si512(from + n - 64);
    char *end = to + n - 64;
    int64_t head = (int64_t)(-(uintptr_t)to % 64);
    _mm512_storeu_si512(to, first);
    for (to += head, from += head; to <= end; to += 64, from += 64) _mm512_store_si512((void *)to, _mm512_loadu_si512(from));
    _mm512_storeu_si512(end, last);
}

/* No line is written both ways: that would be very slow. */
INLINE AVX512 void stream_row(char *to, const char *from, int64_t n) {
    int64_t head = RL_MIN((int64_t)(-(uintptr_t)to % 64), n);
    if (head) part_row(to, from, head);
    to += head, from += head, n -= head;
    for (; n >= 64; n -= 64, to += 64, from += 64) _mm512_stream_si512((void *)to, _mm512_loadu_si512(from));
    if (n > 0) part_row(to, from, n);
}

INLINE AVX512 void short_row(char *to, const char *from, int64_t n) {
    for (; n >= 64; n -= 64, to += 64, from += 64) _mm512_storeu_si512(to, _mm512_loadu_si512(from));
    if (n > 0) part_row(to, from, n);
}

static AVX512 void rows_avx512(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t nbyte, bool stream) {
    for (int64_t i = 0; i < count; i++, to += to_step, from += from_step) {
        if (nbyte < 64) part_row(to, from, nbyte);
        else if (stream) stream_row(to, from, nbyte);
        else if (nbyte < 512) short_row(to, from, nbyte);
        else if (nbyte < 32 << 10) long_row(to, from, nbyte);
        else memcpy(to, from, (size_t)nbyte);
    }
}

static AVX512 void flush_avx512(char *to, const char *from, int64_t n, rl_ahead *ahead) {
    int64_t head = RL_MIN((int64_t)(-(uintptr_t)to % 64), n), lines = (n - head) / 64, next = RL_MIN(lines, (int64_t)ahead->n);
    if (head) memcpy(to, from, (size_t)head);
    to += head, from += head;
    for (int64_t i = 0; i < next; i++) {
        _mm_prefetch(ahead->from + ahead->at[i], _MM_HINT_T1);
        _mm512_stream_si512((void *)(to + 64 * i), _mm512_load_si512(from + 64 * i));
    }
    for (int64_t i = next; i < lines; i++) _mm512_stream_si512((void *)(to + 64 * i), _mm512_load_si512(from + 64 * i));
    if (n > head + 64 * lines) memcpy(to + 64 * lines, from + 64 * lines, (size_t)(n - head - 64 * lines));
    ahead->at += next, ahead->n -= (uint32_t)next;
}

/* Bytes of line k in the step of `part` bytes. */
INLINE uint32_t part_of(const rl_mix_lines *l, uint32_t n, uint32_t k, int64_t part) {
    int64_t left = l->whole ? part * n - 64 * (int64_t)k : part;
    return left <= 0 ? 0 : (uint32_t)RL_MIN(left, 64);
}

INLINE AVX512 void mix_step(const rl_mix *m, uint32_t n, char *to, const int64_t *tat, const char *from, const int64_t *fat,
                            const __mmask64 *tm, const __mmask64 *fm, bool stream) {
    __m512i x[RL_MIX];
    for (uint32_t i = 0; i < n; i++) x[i] = fm ? _mm512_maskz_loadu_epi8(fm[i], from + fat[i]) : _mm512_loadu_si512(from + fat[i]);
    for (uint32_t j = 0; j < n; j++) {
        __m512i y = _mm512_maskz_permutexvar_epi8(m->take[j][0], _mm512_loadu_si512(m->byte[j][0]), x[0]);
        for (uint32_t i = 1; i < n; i++) y = _mm512_mask_permutexvar_epi8(y, m->take[j][i], _mm512_loadu_si512(m->byte[j][i]), x[i]);
        if (tm) _mm512_mask_storeu_epi8(to + tat[j], tm[j], y);
        else if (stream) _mm512_stream_si512((void *)(to + tat[j]), y);
        else _mm512_storeu_si512(to + tat[j], y);
    }
}

INLINE AVX512 void mix_steps(const rl_mix *m, uint32_t n, char *to, const rl_mix_lines *out, const char *from, const rl_mix_lines *in,
                             int64_t steps, bool stream) {
    int64_t tat[RL_MIX], fat[RL_MIX], ts = out->step, fs = in->step;
    for (uint32_t i = 0; i < n; i++) tat[i] = out->at[i], fat[i] = in->at[i];
    for (int64_t k = 0; k < steps; k++, to += ts, from += fs) mix_step(m, n, to, tat, from, fat, NULL, NULL, stream);
}

static AVX512 void mix_avx512(const rl_mix *m, char *to, const rl_mix_lines *out, const char *from, const rl_mix_lines *in, int64_t steps,
                              int64_t part, bool stream) {
    uint32_t n = m->n;
    __mmask64 tm[RL_MIX], fm[RL_MIX];
    if (n == 2) mix_steps(m, 2, to, out, from, in, steps, stream); /* few lines stay in registers */
    else if (n == 3) mix_steps(m, 3, to, out, from, in, steps, stream);
    else if (n == 4) mix_steps(m, 4, to, out, from, in, steps, stream);
    else mix_steps(m, n, to, out, from, in, steps, stream);
    if (part == 0) return;
    for (uint32_t i = 0; i < n; i++) tm[i] = ones(part_of(out, n, i, part)), fm[i] = ones(part_of(in, n, i, part));
    mix_step(m, n, to + steps * out->step, out->at, from + steps * in->step, in->at, tm, fm, false);
}

/* ---- which ---- */

static void fence(void) {
    _mm_sfence();
}

const rl_move_kernels *rl_move_kernels_x86(rl_isa want) {
    static const rl_move_kernels avx512 = {RL_ISA_AVX512, {{block1_avx512, 16, 64}, {block2_avx512, 16, 32}, {block4_avx512, 16, 16},
                                           {block8_avx512, 8, 8}, {block16_avx512, 4, 4}}, {{wide1_avx512, 64, 16},
                                           {wide2_avx512, 32, 16}}, {{square1_avx512, 64, 64}, {square2_avx512, 32, 32}}, rows_avx512, flush_avx512, fence, mix_avx512};
    bool has512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("bmi2");
    if (has512 && (want == RL_ISA_BEST || want == RL_ISA_AVX512)) return &avx512;
    return __builtin_cpu_supports("avx2") ? &rl_move_avx2 : NULL;
}
#else
const rl_move_kernels *rl_move_kernels_x86(rl_isa want) {
    (void)want;
    return NULL;
}
#endif
