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
INLINE AVX2 void turn_wide(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t size) {
    __m256i r[16];
    uint32_t n = 16 / size;
    for (uint32_t i = 0; i < n; i++) r[i] = pair(from + fx[i], from + fx[i + n]);
    turn(r, size);
    for (uint32_t j = 0; j < n; j++) _mm256_storeu_si256((void *)(to + ty[j]), r[j]);
}

/* n by 2 n: the second lane has the other half of each row. */
INLINE AVX2 void turn_narrow(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t size) {
    __m256i r[16];
    uint32_t n = 16 / size;
    for (uint32_t i = 0; i < n; i++) r[i] = row256(from + fx[i]);
    turn(r, size);
    for (uint32_t j = 0; j < n; j++) {
        _mm_storeu_si128((void *)(to + ty[j]), _mm256_castsi256_si128(r[j]));
        _mm_storeu_si128((void *)(to + ty[j + n]), _mm256_extracti128_si256(r[j], 1));
    }
}

INLINE void turn_part(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, uint32_t size) {
    for (uint32_t i = 0; i < nx; i++)
        for (uint32_t j = 0; j < ny; j++) memcpy(to + ty[j] + i * size, from + fx[i] + j * size, size);
}

/* The kernels of an element: a block is moved at a time, and the last one overlaps that before it. */
#define STRIPS(SIZE)                                                                                                                            \
    AVX2 void rl_wide##SIZE(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {                       \
        (void)nx;                                                                                                                               \
        for (uint32_t k = 0, n = 16 / SIZE, y; k < ny; k += n) y = RL_MIN(k, ny - n), turn_wide(to, ty + y, from + y * SIZE, fx, SIZE);         \
    }                                                                                                                                           \
    AVX2 void rl_narrow##SIZE(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {                     \
        (void)nx;                                                                                                                               \
        for (uint32_t k = 0, n = 32 / SIZE, y; k < ny; k += n) y = RL_MIN(k, ny - n), turn_narrow(to, ty + y, from + y * SIZE, fx, SIZE);       \
    }                                                                                                                                           \
    static void part##SIZE(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {                        \
        turn_part(to, ty, from, fx, nx, ny, SIZE);                                                                                              \
    }
STRIPS(1)
STRIPS(2)
STRIPS(4)
STRIPS(8)
STRIPS(16)

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

static AVX2 void flush_avx2(char *to, const char *from, int64_t n, rl_ahead *ahead) {
    int64_t next = RL_MIN((n + 63) / 64, (int64_t)ahead->n);
    for (int64_t i = 0; i < next; i++) _mm_prefetch(ahead->from + ahead->at[i], _MM_HINT_T1);
    stream_row(to, from, n);
    ahead->at += next, ahead->n -= (uint32_t)next;
}

static AVX2 void rows_avx2(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t nbyte, bool stream) {
    for (int64_t i = 0; i < count; i++) {
        if (stream) stream_row(to + i * to_step, from + i * from_step, nbyte);
        else memcpy(to + i * to_step, from + i * from_step, (size_t)nbyte);
    }
}

static void fence(void) {
    _mm_sfence();
}

#define OF(SIZE) {{rl_wide##SIZE, 32 / SIZE, 16 / SIZE, false}, {rl_narrow##SIZE, 16 / SIZE, 32 / SIZE, false}, {part##SIZE, 16, 0, false}}
const rl_move_kernels rl_move_avx2 = {.isa = RL_ISA_AVX2, .strip = {OF(1), OF(2), OF(4), OF(8), OF(16)}, .rows = rows_avx2, .flush = flush_avx2,
                                      .fence = fence};
#endif
