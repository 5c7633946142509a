/* The kernels of the move for AVX2: see move_kernel.h. */
#include "move_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define AVX2 __attribute__((target("avx2")))

INLINE void part_block(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, uint32_t size) {
    for (uint32_t j = 0; j < ny; j++)
        for (uint32_t i = 0; i < nx; i++) memcpy(to + ty[j] + i * size, from + fx[i] + j * size, size);
}

INLINE AVX2 __m128i row128(const char *p) {
    return _mm_loadu_si128((const void *)p);
}

INLINE AVX2 __m256i row256(const char *p) {
    return _mm256_loadu_si256((const void *)p);
}

/* 8 x 8: two rows of 16 bytes, 4 apart, in a register each time. */
static AVX2 void block4_avx2(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    __m256i r[8], t[8];
    (void)together;
    if (nx < 8 || ny < 8) {
        part_block(to, ty, from, fx, nx, ny, 4);
        return;
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(row128(from + fx[i])), row128(from + fx[i + 4]), 1);
        r[i + 4] = _mm256_inserti128_si256(_mm256_castsi128_si256(row128(from + fx[i] + 16)), row128(from + fx[i + 4] + 16), 1);
    }
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int j = 0; j < 8; j++) _mm256_storeu_si256((void *)(to + ty[j]), r[j]);
}

static AVX2 void block8_avx2(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    (void)together;
    if (nx < 4 || ny < 4) {
        part_block(to, ty, from, fx, nx, ny, 8);
        return;
    }
    __m256i a = row256(from + fx[0]), b = row256(from + fx[1]), c = row256(from + fx[2]), d = row256(from + fx[3]);
    __m256i ab = _mm256_unpacklo_epi64(a, b), ab1 = _mm256_unpackhi_epi64(a, b), cd = _mm256_unpacklo_epi64(c, d),
            cd1 = _mm256_unpackhi_epi64(c, d);
    _mm256_storeu_si256((void *)(to + ty[0]), _mm256_permute2x128_si256(ab, cd, 0x20));
    _mm256_storeu_si256((void *)(to + ty[1]), _mm256_permute2x128_si256(ab1, cd1, 0x20));
    _mm256_storeu_si256((void *)(to + ty[2]), _mm256_permute2x128_si256(ab, cd, 0x31));
    _mm256_storeu_si256((void *)(to + ty[3]), _mm256_permute2x128_si256(ab1, cd1, 0x31));
}

static AVX2 void block16_avx2(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    (void)together;
    part_block(to, ty, from, fx, nx, ny, 16);
}

/* 8 x 8. */
static AVX2 void block2_avx2(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    __m128i r[8], t[8];
    (void)together;
    if (nx < 8 || ny < 8) {
        part_block(to, ty, from, fx, nx, ny, 2);
        return;
    }
    for (int i = 0; i < 8; i++) r[i] = row128(from + fx[i]);
    for (int round = 0; round < 3; round++) { /* rows i and i + 4 interleaved, three times */
        for (int i = 0; i < 4; i++) {
            t[2 * i] = _mm_unpacklo_epi16(r[i], r[i + 4]);
            t[2 * i + 1] = _mm_unpackhi_epi16(r[i], r[i + 4]);
        }
        for (int i = 0; i < 8; i++) r[i] = t[i];
    }
    for (int j = 0; j < 8; j++) _mm_storeu_si128((void *)(to + ty[j]), r[j]);
}

/* 16 x 16. */
static AVX2 void block1_avx2(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny, bool together) {
    __m128i r[16], t[16];
    (void)together;
    if (nx < 16 || ny < 16) {
        part_block(to, ty, from, fx, nx, ny, 1);
        return;
    }
    for (int i = 0; i < 16; i++) r[i] = row128(from + fx[i]);
    for (int round = 0; round < 4; round++) { /* rows i and i + 8 */
        for (int i = 0; i < 8; i++) {
            t[2 * i] = _mm_unpacklo_epi8(r[i], r[i + 8]);
            t[2 * i + 1] = _mm_unpackhi_epi8(r[i], r[i + 8]);
        }
        for (int i = 0; i < 16; i++) r[i] = t[i];
    }
    for (int j = 0; j < 16; j++) _mm_storeu_si128((void *)(to + ty[j]), r[j]);
}

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

const rl_move_kernels rl_move_avx2 = {RL_ISA_AVX2, {{block1_avx2, 16, 16}, {block2_avx2, 8, 8}, {block4_avx2, 8, 8}, {block8_avx2, 4, 4},
{block16_avx2, 4, 4}}, {{NULL, 0, 0}, {NULL, 0, 0}}, {{NULL, 0, 0}, {NULL, 0, 0}}, rows_avx2, flush_avx2, fence, NULL};
#endif
