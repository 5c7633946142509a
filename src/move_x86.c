/* The kernels of the move for AVX-512 (with VBMI), and which a processor has: see move_kernel.h.
 *
 * Transposing 16 x 16 elements of 4 bytes: neighbouring rows are interleaved by elements, then by pairs; after that each register
 * holds a column of four rows in each of its four lanes of 16 bytes, and two rounds of choosing lanes put them together.  Larger
 * elements skip the first steps. Where lines of the rows do not drive each other out, halves of them take the first round of lanes when
 * they are loaded. Few of smaller ones, and squares of them, go the same way as if they were 4 bytes, and are sorted out in the
 * register.  Other blocks of these are left to half registers (move_avx2.c): two of their shuffles are done at a time. */
#include "move_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

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

/* Every four of n registers: their lanes of 4 elements of 4 bytes are transposed. */
INLINE AVX512 void turn_in_lanes(__m512i *r, int n) {
    __m512i t[16];
    for (int i = 0; i < n; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < n; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
}

/* 16 rows of 16 elements of 4 bytes. */
INLINE AVX512 void turn4(__m512i *r) {
    __m512i t[16];
    turn_in_lanes(r, 16);
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

typedef enum { PART, WHOLE, PAST } how; /* a part of the lines, whole ones, whole ones past the cache */

INLINE AVX512 void load(__m512i *r, uint32_t kx, const char *from, rl_row_begins fx, uint32_t nx, uint32_t nbyte, how way) {
    __mmask64 m = rl_ones(nbyte);
    for (uint32_t i = 0; i < kx; i++) {
        if (way != PART) r[i] = _mm512_loadu_si512(from + rl_row_at(fx, i));
        else r[i] = i < nx ? _mm512_maskz_loadu_epi8(m, from + rl_row_at(fx, i)) : _mm512_setzero_si512();
    }
}

INLINE AVX512 void store(const __m512i *r, uint32_t ky, char *to, rl_row_begins ty, uint32_t ny, uint32_t nbyte, how way) {
    __mmask64 m = rl_ones(nbyte);
    for (uint32_t j = 0; j < ky; j++) {
        if (way == PAST) _mm512_stream_si512((void *)(to + rl_row_at(ty, j)), r[j]);
        else if (way == WHOLE) _mm512_storeu_si512(to + rl_row_at(ty, j), r[j]);
        else if (j < ny) _mm512_mask_storeu_epi8(to + rl_row_at(ty, j), m, r[j]);
    }
}

/* 16 x 16 elements, or a part of them; likewise below. */
INLINE AVX512 void block4(char *to, rl_row_begins ty, const char *from, rl_row_begins fx, uint32_t nx, uint32_t ny, how way) {
    __m512i r[16];
    load(r, 16, from, fx, nx, 4 * ny, way);
    turn4(r);
    store(r, 16, to, ty, ny, 4 * nx, way);
}

INLINE AVX512 void block8(char *to, rl_row_begins ty, const char *from, rl_row_begins fx, uint32_t nx, uint32_t ny, how way) {
    __m512i r[8];
    load(r, 8, from, fx, nx, 8 * ny, way);
    turn8(r);
    store(r, 8, to, ty, ny, 8 * nx, way);
}

INLINE AVX512 void block16(char *to, rl_row_begins ty, const char *from, rl_row_begins fx, uint32_t nx, uint32_t ny, how way) {
    __m512i r[4];
    load(r, 4, from, fx, nx, 16 * ny, way);
    turn_lanes(r[0], r[1], r[2], r[3], &r[0], &r[1], &r[2], &r[3]);
    store(r, 4, to, ty, ny, 16 * nx, way);
}

/* A block at a time, and the last one overlaps that before it; where there are fewer rows or columns, the last one is less. */
#define STRIP(NAME, BLOCK, SIZE, WAY)                                                                                                     \
    static AVX512 void NAME(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {                 \
        (void)nx;                                                                                                                         \
        for (uint32_t k = 0, n = 64 / SIZE, y; k < ny; k += n)                                                                            \
            y = RL_MIN(k, ny - n), BLOCK(to, rl_row_table(ty + y), from + y * SIZE, rl_row_table(fx), n, n, WAY);                         \
    }
#define EVEN(NAME, BLOCK, SIZE)                                                                                                           \
    static AVX512 void NAME(char *to, int64_t to_step, const char *from, int64_t from_step, uint32_t nx, uint32_t ny) {                   \
        for (uint32_t x = 0, n = 64 / SIZE; x < nx; x += n, to += 64, from += n * from_step)                                              \
            for (uint32_t k = 0, y; k < ny; k += n)                                                                                       \
                y = RL_MIN(k, ny - n), BLOCK(to + y * to_step, rl_row_steps(to_step), from + y * SIZE, rl_row_steps(from_step), n, n, WHOLE);\
    }
#define STRIPS(SIZE)                                                                                                                      \
    STRIP(strip##SIZE, block##SIZE, SIZE, WHOLE)                                                                                          \
    STRIP(past##SIZE, block##SIZE, SIZE, PAST)                                                                                            \
    EVEN(strip##SIZE##_even, block##SIZE, SIZE)                                                                                           \
    static AVX512 void part##SIZE(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {           \
        for (uint32_t y = 0, n = 64 / SIZE; y < ny; y += n)                                                                               \
            block##SIZE(to, rl_row_table(ty + y), from + y * SIZE, rl_row_table(fx), nx, RL_MIN(ny - y, n), PART);                        \
    }
STRIPS(4)
STRIPS(8)
STRIPS(16)

/* 16 rows of 8: rows k and k + 8 share a register, so that one round of lanes does. */
INLINE AVX512 void half4(char *to, rl_row_begins ty, const char *from, rl_row_begins fx) {
    __m512i r[8], low = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0), high = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
    for (uint32_t i = 0; i < 8; i++) {
        const char *of = from + rl_row_at(fx, i), *half = from + rl_row_at(fx, i + 8);
        __m256i a = _mm256_loadu_si256((const void *)of), b = _mm256_loadu_si256((const void *)half);
        r[i] = _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
    }
    turn_in_lanes(r, 8);
    for (uint32_t i = 0; i < 4; i++) {
        _mm512_storeu_si512(to + rl_row_at(ty, i), _mm512_permutex2var_epi64(r[i], low, r[4 + i]));
        _mm512_storeu_si512(to + rl_row_at(ty, i + 4), _mm512_permutex2var_epi64(r[i], high, r[4 + i]));
    }
}

static AVX512 void halves4(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {
    (void)nx;
    for (uint32_t k = 0, y; k < ny; k += 8) y = RL_MIN(k, ny - 8), half4(to, rl_row_table(ty + y), from + y * 4, rl_row_table(fx));
}

static AVX512 void halves4_even(char *to, int64_t to_step, const char *from, int64_t from_step, uint32_t nx, uint32_t ny) {
    for (uint32_t x = 0; x < nx; x += 16, to += 64, from += 16 * from_step)
        for (uint32_t k = 0, y; k < ny; k += 8) y = RL_MIN(k, ny - 8), half4(to + y * to_step, rl_row_steps(to_step), from + y * 4, rl_row_steps(from_step));
}

/* Up to 16 rows of 32: after turn4 each register has 2 elements of each row. */
INLINE AVX512 void flat2(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {
    __m512i r[16], sort = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26, 24, 22, 20, 18, 16, 14, 12,
                                           10, 8, 6, 4, 2, 0);
    __mmask32 m = (__mmask32)rl_ones(2 * nx);
    load(r, 16, from, rl_row_table(fx), nx, 2 * ny, PART);
    turn4(r);
    for (uint32_t j = 0; 2 * j < ny; j++) {
        __m512i x = _mm512_permutexvar_epi16(sort, r[j]);
        _mm256_mask_storeu_epi8(to + ty[2 * j], m, _mm512_castsi512_si256(x));
        if (2 * j + 1 < ny) _mm256_mask_storeu_epi8(to + ty[2 * j + 1], m, _mm512_extracti64x4_epi64(x, 1));
    }
}

/* Of 16 x 4 bytes: byte k of each four; and of 4 x 16 those at k, k + 1, .. of each sixteen. */
#define ROW(k) k, k + 4, k + 8, k + 12, k + 16, k + 20, k + 24, k + 28, k + 32, k + 36, k + 40, k + 44, k + 48, k + 52, k + 56, k + 60
#define COLUMN(k) k, k + 16, k + 32, k + 48
#define COLUMNS(k) COLUMN(k), COLUMN(k + 1), COLUMN(k + 2), COLUMN(k + 3)

/* Up to 16 rows of 64: 4 elements of each. */
INLINE AVX512 void flat1(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {
    static const uint8_t order[64] = {ROW(0), ROW(1), ROW(2), ROW(3)};
    __m512i r[16], sort = _mm512_loadu_si512(order);
    __mmask16 m = (__mmask16)rl_ones(nx);
    load(r, 16, from, rl_row_table(fx), nx, ny, PART);
    turn4(r);
    for (uint32_t j = 0; 4 * j < ny; j++) {
        __m512i x = _mm512_permutexvar_epi8(sort, r[j]);
        __m128i row[4] = {_mm512_castsi512_si128(x), _mm512_extracti32x4_epi32(x, 1), _mm512_extracti32x4_epi32(x, 2), _mm512_extracti32x4_epi32(x, 3)};
        for (uint32_t i = 0; i < 4 && 4 * j + i < ny; i++) _mm_mask_storeu_epi8(to + ty[4 * j + i], m, row[i]);
    }
}

/* The other way round: 4 bytes of each register from as many rows are sorted to come together, then go through turn4.  Four rows
 * of 16 elements of 1 byte, two of 2 bytes, make a register. */
INLINE AVX512 __m512i load_tall(const char *from, const int64_t *fx, uint32_t rows, uint32_t nx, uint32_t nbyte) {
    __m512i r = _mm512_setzero_si512();
    if (nx == 0) return r;
    if (rows == 4) {
        __mmask16 m = (__mmask16)rl_ones(nbyte);
        r = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(m, from + fx[0]));
        if (nx > 1) r = _mm512_inserti32x4(r, _mm_maskz_loadu_epi8(m, from + fx[1]), 1);
        if (nx > 2) r = _mm512_inserti32x4(r, _mm_maskz_loadu_epi8(m, from + fx[2]), 2);
        if (nx > 3) r = _mm512_inserti32x4(r, _mm_maskz_loadu_epi8(m, from + fx[3]), 3);
        return r;
    }
    __mmask32 m = (__mmask32)rl_ones(nbyte);
    r = _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(m, from + fx[0]));
    return nx > 1 ? _mm512_inserti64x4(r, _mm256_maskz_loadu_epi8(m, from + fx[1]), 1) : r;
}

/* Up to 32 rows of 16 elements of 2 bytes, and 64 of 1 byte. */
INLINE AVX512 void tall(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, uint32_t size, __m512i sort) {
    __m512i r[16];
    uint32_t rows = 4 / size;
    for (uint32_t i = 0; i < 16; i++) {
        r[i] = load_tall(from, fx + rows * i, rows, nx > rows * i ? nx - rows * i : 0, size * ny);
        r[i] = size == 1 ? _mm512_permutexvar_epi8(sort, r[i]) : _mm512_permutexvar_epi16(sort, r[i]);
    }
    turn4(r);
    store(r, 16, to, rl_row_table(ty), ny, size * nx, PART);
}

INLINE AVX512 __m512i sort1(void) {
    static const uint8_t order[64] = {COLUMNS(0), COLUMNS(4), COLUMNS(8), COLUMNS(12)};
    return _mm512_loadu_si512(order);
}

INLINE AVX512 __m512i sort2(void) {
    return _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
}

/* Few rows, or few columns. */
static AVX512 void part1(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {
    if (ny < 16) tall(to, ty, from, fx, nx, ny, 1, sort1());
    for (uint32_t x = 0; ny >= 16 && x < nx; x += 16)
        for (uint32_t y = 0; y < ny; y += 64) flat1(to + x, ty + y, from + y, fx + x, RL_MIN(nx - x, 16), RL_MIN(ny - y, 64));
}

static AVX512 void part2(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {
    if (ny < 16) tall(to, ty, from, fx, nx, ny, 2, sort2());
    for (uint32_t x = 0; ny >= 16 && x < nx; x += 16)
        for (uint32_t y = 0; y < ny; y += 32) flat2(to + 2 * x, ty + y, from + 2 * y, fx + x, RL_MIN(nx - x, 16), RL_MIN(ny - y, 32));
}

/* 64 x 64: whole lines on both sides, which matters where lines of the rows drive each other out.  Quarters of four rows come together. */
INLINE AVX512 void square1(char *to, rl_row_begins ty, const char *from, rl_row_begins fx, uint32_t nx, uint32_t ny, how way) {
    __m512i t[4][16], sort = sort1();
    for (int i = 0; i < 16; i++) {
        __m512i r[4];
        load(r, 4, from, rl_row_table(fx.table + 4 * i), 4, 64, WHOLE);
        turn_lanes(r[0], r[1], r[2], r[3], &r[0], &r[1], &r[2], &r[3]);
        for (int k = 0; k < 4; k++) t[k][i] = _mm512_permutexvar_epi8(sort, r[k]);
    }
    for (int k = 0; k < 4; k++) {
        turn4(t[k]);
        store(t[k], 16, to, rl_row_table(ty.table + 16 * k), ny, nx, way);
    }
}

/* 32 x 32, in the same way: halves of two rows. */
INLINE AVX512 void square2(char *to, rl_row_begins ty, const char *from, rl_row_begins fx, uint32_t nx, uint32_t ny, how way) {
    __m512i t[2][16], sort = sort2();
    for (uint32_t i = 0; i < 16; i++) {
        __m512i a = _mm512_loadu_si512(from + rl_row_at(fx, 2 * i)), b = _mm512_loadu_si512(from + rl_row_at(fx, 2 * i + 1));
        t[0][i] = _mm512_permutexvar_epi16(sort, _mm512_shuffle_i64x2(a, b, 0x44));
        t[1][i] = _mm512_permutexvar_epi16(sort, _mm512_shuffle_i64x2(a, b, 0xee));
    }
    for (int k = 0; k < 2; k++) {
        turn4(t[k]);
        store(t[k], 16, to, rl_row_table(ty.table + 16 * k), ny, nx, way);
    }
}

STRIP(strip1, square1, 1, WHOLE)
STRIP(past1, square1, 1, PAST)
STRIP(strip2, square2, 2, WHOLE)
STRIP(past2, square2, 2, PAST)

/* ---- which ---- */

static void fence(void) {
    _mm_sfence();
}

const rl_move_kernels *rl_move_kernels_x86(rl_isa want) {
    static const rl_move_kernels avx512 = {
        .isa = RL_ISA_AVX512,
        .strip = {{{strip1, 64, 64, true, past1, NULL}, {rl_wide1, 32, 16, false, NULL, rl_wide1_even}, {rl_narrow1, 16, 32, false, NULL, rl_narrow1_even},
                   {rl_few1, 4, 16, false, NULL, NULL}, {rl_thin1, 16, 4, false, NULL, NULL}, {part1, 64, 0, false, NULL, NULL}},
                  {{strip2, 32, 32, true, past2, NULL}, {rl_wide2, 16, 8, false, NULL, rl_wide2_even}, {rl_narrow2, 8, 16, false, NULL, rl_narrow2_even},
                   {rl_few2, 4, 8, false, NULL, NULL}, {rl_thin2, 8, 4, false, NULL, NULL}, {part2, 32, 0, false, NULL, NULL}},
                  {{strip4, 16, 16, true, past4, strip4_even}, {halves4, 16, 8, false, NULL, halves4_even}, {rl_wide4, 8, 4, false, NULL, rl_wide4_even},
                   {rl_narrow4, 4, 8, false, NULL, rl_narrow4_even}, {part4, 16, 0, false, NULL, NULL}},
                  {{strip8, 8, 8, false, past8, strip8_even}, {rl_wide8, 4, 2, false, NULL, rl_wide8_even}, {rl_narrow8, 2, 4, false, NULL, rl_narrow8_even},
                   {part8, 8, 0, false, NULL, NULL}},
                  {{strip16, 4, 4, false, past16, strip16_even}, {rl_wide16, 2, 1, false, NULL, rl_wide16_even}, {rl_narrow16, 1, 2, false, NULL, rl_narrow16_even},
                   {part16, 4, 0, false, NULL, NULL}}},
        .rows = rl_rows_avx512, .flush = rl_flush_avx512, .fence = fence, .mix = rl_mix_avx512};
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
