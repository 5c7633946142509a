/* The kernels of the move for AVX2: see move_kernel.h. */
#include "move_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define AVX2 __attribute__((target("avx2")))

INLINE AVX2 __m256i row256(const char *p) {
    return _mm256_loadu_si256((const void *)p);
}

/* Two rows of 16 bytes. */
INLINE AVX2 __m256i pair(const char *a, const char *b) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)a)), _mm_loadu_si128((const void *)b), 1);
}

INLINE AVX2 __m256i low(__m256i a, __m256i b, uint32_t size) {
    return size == 1 ? _mm256_unpacklo_epi8(a, b) : size == 2 ? _mm256_unpacklo_epi16(a, b) : size == 4 ? _mm256_unpacklo_epi32(a, b) :
        _mm256_unpacklo_epi64(a, b);
}

INLINE AVX2 __m256i high(__m256i a, __m256i b, uint32_t size) {
    return size == 1 ? _mm256_unpackhi_epi8(a, b) : size == 2 ? _mm256_unpackhi_epi16(a, b) : size == 4 ? _mm256_unpackhi_epi32(a, b) :
        _mm256_unpackhi_epi64(a, b);
}

/* In both lanes: n rows of n elements, 16 bytes each; rows i and i + n / 2 are interleaved, log n times. */
INLINE AVX2 void turn(__m256i *r, uint32_t size) {
    uint32_t n = 16 / size;
    for (uint32_t left = n; left > 1; left /= 2) {
        __m256i t[16];
        for (uint32_t i = 0; i < n / 2; i++) t[2 * i] = low(r[i], r[i + n / 2], size), t[2 * i + 1] = high(r[i], r[i + n / 2], size);
        for (uint32_t i = 0; i < n; i++) r[i] = t[i];
    }
}

/* 2 n by n: the second lane has the other half of the rows. */
INLINE AVX2 void turn_wide(char *to, rl_row_begins ty, const char *from, rl_row_begins fx, uint32_t size) {
    __m256i r[16];
    uint32_t n = 16 / size;
    for (uint32_t i = 0; i < n; i++) r[i] = pair(from + rl_row_at(fx, i), from + rl_row_at(fx, i + n));
    turn(r, size);
    for (uint32_t j = 0; j < n; j++) _mm256_storeu_si256((void *)(to + rl_row_at(ty, j)), r[j]);
}

/* n by 2 n: the second lane has the other half of each row. */
INLINE AVX2 void turn_narrow(char *to, rl_row_begins ty, const char *from, rl_row_begins fx, uint32_t size) {
    __m256i r[16];
    uint32_t n = 16 / size;
    for (uint32_t i = 0; i < n; i++) r[i] = row256(from + rl_row_at(fx, i));
    turn(r, size);
    for (uint32_t j = 0; j < n; j++) {
        _mm_storeu_si128((void *)(to + rl_row_at(ty, j)), _mm256_castsi256_si128(r[j]));
        _mm_storeu_si128((void *)(to + rl_row_at(ty, j + n)), _mm256_extracti128_si256(r[j], 1));
    }
}

INLINE void turn_part(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, uint32_t size) {
    for (uint32_t i = 0; i < nx; i++)
        for (uint32_t j = 0; j < ny; j++) memcpy(to + ty[j] + i * size, from + fx[i] + j * size, size);
}

/* The kernels of an element: a block is moved at a time, and the last one overlaps that before it. */
#define STRIP(KIND, SIZE, KX, KY)                                                                                                       \
    AVX2 void rl_##KIND##SIZE(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {             \
        (void)nx;                                                                                                                       \
        for (uint32_t k = 0, y; k < ny; k += KY)                                                                                        \
            y = RL_MIN(k, ny - KY), turn_##KIND(to, rl_row_table(ty + y), from + y * SIZE, rl_row_table(fx), SIZE);                     \
    }                                                                                                                                   \
    AVX2 void rl_##KIND##SIZE##_even(char *to, int64_t to_step, const char *from, int64_t from_step, uint32_t nx, uint32_t ny) {        \
        for (uint32_t x = 0; x < nx; x += KX, to += KX * SIZE, from += KX * from_step)                                                  \
            for (uint32_t k = 0, y; k < ny; k += KY)                                                                                    \
                y = RL_MIN(k, ny - KY), turn_##KIND(to + y * to_step, rl_row_steps(to_step), from + y * SIZE, rl_row_steps(from_step), SIZE);\
    }
#define STRIPS(SIZE)                                                                                                                    \
    STRIP(wide, SIZE, (32 / SIZE), (16 / SIZE))                                                                                         \
    STRIP(narrow, SIZE, (16 / SIZE), (32 / SIZE))                                                                                       \
    static void part##SIZE(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {                \
        turn_part(to, ty, from, fx, nx, ny, SIZE);                                                                                      \
    }
STRIPS(1)
STRIPS(2)
STRIPS(4)
STRIPS(8)
STRIPS(16)

/* ---- small ones, for what the others leave over ---- */

INLINE __m128i row128(const char *p) {
    return _mm_loadu_si128((const void *)p);
}

INLINE __m128i row64(const char *p) {
    return _mm_loadl_epi64((const void *)p);
}

/* 4 rows of 16 elements of 1 byte: what a column has of each are 4 bytes. */
INLINE AVX2 void turn_few1(char *to, const int64_t *ty, const char *from, const int64_t *fx) {
    __m128i a = row128(from + fx[0]), b = row128(from + fx[1]), c = row128(from + fx[2]), d = row128(from + fx[3]);
    __m128i ab = _mm_unpacklo_epi8(a, b), cd = _mm_unpacklo_epi8(c, d), ab1 = _mm_unpackhi_epi8(a, b), cd1 = _mm_unpackhi_epi8(c, d);
    uint32_t column[16];
    _mm_storeu_si128((void *)column, _mm_unpacklo_epi16(ab, cd));
    _mm_storeu_si128((void *)(column + 4), _mm_unpackhi_epi16(ab, cd));
    _mm_storeu_si128((void *)(column + 8), _mm_unpacklo_epi16(ab1, cd1));
    _mm_storeu_si128((void *)(column + 12), _mm_unpackhi_epi16(ab1, cd1));
    for (int j = 0; j < 16; j++) memcpy(to + ty[j], &column[j], 4);
}

INLINE AVX2 void store_two(char *a, char *b, __m128i x) {
    int64_t high = _mm_extract_epi64(x, 1); /* _mm_storeh_pd asks for an aligned place */
    _mm_storel_epi64((void *)a, x);
    memcpy(b, &high, 8);
}

/* 4 rows of 8 of 2 bytes. */
INLINE AVX2 void turn_few2(char *to, const int64_t *ty, const char *from, const int64_t *fx) {
    __m128i a = row128(from + fx[0]), b = row128(from + fx[1]), c = row128(from + fx[2]), d = row128(from + fx[3]);
    __m128i ab = _mm_unpacklo_epi16(a, b), cd = _mm_unpacklo_epi16(c, d), ab1 = _mm_unpackhi_epi16(a, b), cd1 = _mm_unpackhi_epi16(c, d);
    store_two(to + ty[0], to + ty[1], _mm_unpacklo_epi32(ab, cd));
    store_two(to + ty[2], to + ty[3], _mm_unpackhi_epi32(ab, cd));
    store_two(to + ty[4], to + ty[5], _mm_unpacklo_epi32(ab1, cd1));
    store_two(to + ty[6], to + ty[7], _mm_unpackhi_epi32(ab1, cd1));
}

/* Four rows of 4 elements of 1 byte, columns one after the other. */
INLINE AVX2 __m128i four_rows(const char *from, const int64_t *fx) {
    int32_t r[4];
    for (int i = 0; i < 4; i++) memcpy(&r[i], from + fx[i], 4);
    return _mm_shuffle_epi8(_mm_setr_epi32(r[0], r[1], r[2], r[3]), _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
}

/* 16 rows of 4 elements of 1 byte. */
INLINE AVX2 void turn_thin1(char *to, const int64_t *ty, const char *from, const int64_t *fx) {
    __m128i a = four_rows(from, fx), b = four_rows(from, fx + 4), c = four_rows(from, fx + 8), d = four_rows(from, fx + 12);
    __m128i ab = _mm_unpacklo_epi32(a, b), cd = _mm_unpacklo_epi32(c, d), ab1 = _mm_unpackhi_epi32(a, b), cd1 = _mm_unpackhi_epi32(c, d);
    _mm_storeu_si128((void *)(to + ty[0]), _mm_unpacklo_epi64(ab, cd));
    _mm_storeu_si128((void *)(to + ty[1]), _mm_unpackhi_epi64(ab, cd));
    _mm_storeu_si128((void *)(to + ty[2]), _mm_unpacklo_epi64(ab1, cd1));
    _mm_storeu_si128((void *)(to + ty[3]), _mm_unpackhi_epi64(ab1, cd1));
}

/* 8 rows of 4 of 2 bytes. */
INLINE AVX2 void turn_thin2(char *to, const int64_t *ty, const char *from, const int64_t *fx) {
    __m128i t[4]; /* two rows each: their elements in turns */
    for (int i = 0; i < 4; i++) t[i] = _mm_unpacklo_epi16(row64(from + fx[2 * i]), row64(from + fx[2 * i + 1]));
    __m128i a = _mm_unpacklo_epi32(t[0], t[1]), b = _mm_unpacklo_epi32(t[2], t[3]), a1 = _mm_unpackhi_epi32(t[0], t[1]), b1 = _mm_unpackhi_epi32(t[2], t[3]);
    _mm_storeu_si128((void *)(to + ty[0]), _mm_unpacklo_epi64(a, b));
    _mm_storeu_si128((void *)(to + ty[1]), _mm_unpackhi_epi64(a, b));
    _mm_storeu_si128((void *)(to + ty[2]), _mm_unpacklo_epi64(a1, b1));
    _mm_storeu_si128((void *)(to + ty[3]), _mm_unpackhi_epi64(a1, b1));
}

#define SMALL(KIND, SIZE, KY)                                                                                                                   \
    AVX2 void rl_##KIND##SIZE(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {                     \
        (void)nx;                                                                                                                               \
        for (uint32_t k = 0, y; k < ny; k += KY) y = RL_MIN(k, ny - KY), turn_##KIND##SIZE(to, ty + y, from + y * SIZE, fx);                    \
    }
SMALL(few, 1, 16)
SMALL(few, 2, 8)
SMALL(thin, 1, 4)
SMALL(thin, 2, 4)

/* ---- rows ---- */

INLINE AVX2 void stream_row(char *to, const char *from, int64_t n) {
    int64_t head = RL_MIN((int64_t)(-(uintptr_t)to % 64), n);
    memcpy(to, from, (size_t)head);
    to += head, from += head, n -= head;
    for (; n >= 64; n -= 64, to += 64, from += 64) {
        _mm256_stream_si256((void *)to, row256(from));
        _mm256_stream_si256((void *)(to + 32), row256(from + 32));
    }
    memcpy(to, from, (size_t)n);
}

static AVX2 void rows_avx2(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t nbyte, bool stream) {
    for (int64_t i = 0; i < count; i++) {
        if (stream) stream_row(to + i * to_step, from + i * from_step, nbyte);
        else memcpy(to + i * to_step, from + i * from_step, (size_t)nbyte);
    }
}

static AVX2 void flush_avx2(char *to, const char *from, int64_t n) {
    stream_row(to, from, n);
}

static void fence(void) {
    _mm_sfence();
}

#define OF(SIZE, ...)                                                                                                                   \
    {{rl_wide##SIZE, 32 / SIZE, 16 / SIZE, false, NULL, rl_wide##SIZE##_even},                                                          \
     {rl_narrow##SIZE, 16 / SIZE, 32 / SIZE, false, NULL, rl_narrow##SIZE##_even}, __VA_ARGS__ {part##SIZE, 16, 0, false, NULL, NULL}}
#define SMALL_OF(SIZE) {rl_few##SIZE, 4, 16 / SIZE, false, NULL, NULL}, {rl_thin##SIZE, 16 / SIZE, 4, false, NULL, NULL},
const rl_move_kernels rl_move_avx2 = {.isa = RL_ISA_AVX2, .strip = {OF(1, SMALL_OF(1)), OF(2, SMALL_OF(2)), OF(4, ), OF(8, ), OF(16, )},
                                      .rows = rows_avx2, .flush = flush_avx2, .fence = fence};
#endif
