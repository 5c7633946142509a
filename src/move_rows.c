/* Rows that lie side by side on both sides, for AVX-512: see move_kernel.h. */
#include "move_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")))

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

/* Whole lines of n bytes, four at a time. */
INLINE AVX512 int64_t lines(char *to, const char *from, int64_t n) {
    int64_t at = 0;
    for (; at + 256 <= n; at += 256) {
        __m512i r[4];
        for (int i = 0; i < 4; i++) r[i] = _mm512_loadu_si512(from + at + 64 * i);
        for (int i = 0; i < 4; i++) _mm512_storeu_si512(to + at + 64 * i, r[i]);
    }
    for (; at + 64 <= n; at += 64) _mm512_storeu_si512(to + at, _mm512_loadu_si512(from + at));
    return at;
}

/* 64 bytes and more: whole lines of `to`, and at its ends moves that overlap these. */
INLINE AVX512 void long_row(char *to, const char *from, int64_t n) {
    __m512i first = _mm512_loadu_si512(from), last = _mm512_loadu_si512(from + n - 64);
    int64_t at = (int64_t)(-(uintptr_t)to % 64);
    if (at) _mm512_storeu_si512(to, first);
    at += lines(to + at, from + at, n - at);
    if (at < n) _mm512_storeu_si512(to + n - 64, last);
}

/* Short rows want no call. */
INLINE AVX512 void stream_lines(char *to, const char *from, int64_t n) {
    for (; n >= 64; n -= 64, to += 64, from += 64) _mm512_stream_si512((void *)to, _mm512_loadu_si512(from));
}

/* No line is written both ways: that would be very slow. */
AVX512 void rl_flush_avx512(char *to, const char *from, int64_t n) {
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

/* A line at a time; n: 64 and more. */
INLINE AVX512 void row_of_lines(char *to, const char *from, int64_t n) {
    int64_t whole = n - n % 64;
    for (int64_t at = 0; at < whole; at += 64) _mm512_storeu_si512(to + at, _mm512_loadu_si512(from + at));
    if (whole < n) _mm512_storeu_si512(to + n - 64, _mm512_loadu_si512(from + n - 64));
}

/* Six rows in turn, each with a loop of its own that begins with a line of code (sources.cmake). In the caches that is faster than one loop for
 * all, than rows without a loop, and than memcpy, wherever rows begin: seemingly because of what the processor fetches ahead by an
 * instruction's place. */
static AVX512 void six_rows(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t n) {
    for (; count >= 6; count -= 6, to += 6 * to_step, from += 6 * from_step) {
        row_of_lines(to, from, n);
        row_of_lines(to + to_step, from + from_step, n);
        row_of_lines(to + 2 * to_step, from + 2 * from_step, n);
        row_of_lines(to + 3 * to_step, from + 3 * from_step, n);
        row_of_lines(to + 4 * to_step, from + 4 * from_step, n);
        row_of_lines(to + 5 * to_step, from + 5 * from_step, n);
    }
    for (; count > 0; count--, to += to_step, from += from_step) row_of_lines(to, from, n);
}

/* Rows of a line. */
INLINE AVX512 void lines_apart(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count) {
    for (; count > 0; count--, to += to_step, from += from_step) _mm512_storeu_si512(to, _mm512_loadu_si512(from));
}

static bool for_six(int64_t nbyte) {
    return nbyte >= 128 && nbyte < 4 << 10 && (nbyte % 64 == 0 || nbyte >= 1 << 10);
}

AVX512 void rl_rows_avx512(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t nbyte, bool stream) {
    bool whole = ((uintptr_t)to | (uintptr_t)to_step | (uintptr_t)nbyte) % 64 == 0;
    if (!stream && nbyte == 64) {
        lines_apart(to, to_step, from, from_step, count);
        return;
    }
    if (!stream && for_six(nbyte)) {
        six_rows(to, to_step, from, from_step, count, nbyte);
        return;
    }
    for (int64_t i = 0; i < count; i++, to += to_step, from += from_step) {
        if (nbyte < 64) part_row(to, from, nbyte);
        else if (stream && whole) stream_lines(to, from, nbyte);
        else if (stream) rl_flush_avx512(to, from, nbyte);
        else if (nbyte < 256) short_row(to, from, nbyte);
        else if (nbyte < 1 << 10) long_row(to, from, nbyte);
        else memcpy(to, from, (size_t)nbyte);
    }
}
#endif
