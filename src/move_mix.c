/* Mixes (move_kernel.h): which byte of which line goes where, and the kernel for AVX-512. */
#include <string.h>

#include "move_kernel.h"

/* Element k of line j of `to`, gather: of all lines of `to` one after the other, comes from line k % n; else element k n + j of all lines of `from`. */
void rl_mix_make(rl_mix *m, uint32_t n, uint32_t size, bool gather) {
    uint32_t in = 0, at = 0; /* gather: where the next element is */
    m->n = n;
    for (uint32_t j = 0; j < n; j++) {
        memset(m->take[j], 0, n * sizeof *m->take[j]);
        memset(m->byte[j], 0, n * sizeof *m->byte[j]);
        for (uint32_t k = 0; k < 64; k += size) {
            if (!gather) in = (k * n + j * size) / 64, at = (k * n + j * size) % 64;
            m->take[j][in] |= rl_ones(size) << k;
            for (uint32_t b = 0; b < size; b++) m->byte[j][in][k + b] = (uint8_t)(at + b);
            if (gather && ++in == n) in = 0, at += size;
        }
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")))

enum { FEW = RL_MIX_LARGE }; /* lines whose mix stays in registers */

typedef struct {
    __m512i byte[FEW][FEW];
    __mmask64 take[FEW][FEW];
    int64_t to[RL_MIX], from[RL_MIX];   /* where the lines lie */
    __mmask64 tm[RL_MIX], fm[RL_MIX];   /* what the last step has of them */
} mixer;

/* Bytes of line k in a step of `part` bytes. */
INLINE uint32_t part_of(const rl_mix_lines *l, uint32_t n, uint32_t k, int64_t part) {
    int64_t left = l->whole ? part * n - 64 * (int64_t)k : part;
    return left <= 0 ? 0 : (uint32_t)RL_MIN(left, 64);
}

INLINE AVX512 __m512i mix_line(const rl_mix *m, const mixer *w, uint32_t n, uint32_t j, const __m512i *x) {
    bool few = n <= FEW;
    __m512i y = _mm512_permutexvar_epi8(few ? w->byte[j][0] : _mm512_loadu_si512(m->byte[j][0]), x[0]);
    for (uint32_t i = 1; i < n; i++)
        y = _mm512_mask_permutexvar_epi8(y, few ? w->take[j][i] : m->take[j][i], few ? w->byte[j][i] : _mm512_loadu_si512(m->byte[j][i]), x[i]);
    return y;
}

INLINE AVX512 void whole_step(const rl_mix *m, const mixer *w, uint32_t n, char *to, const char *from, bool stream) {
    __m512i x[RL_MIX];
    for (uint32_t i = 0; i < n; i++) x[i] = _mm512_loadu_si512(from + w->from[i]);
    for (uint32_t j = 0; j < n; j++) {
        __m512i y = mix_line(m, w, n, j, x);
        if (stream) _mm512_stream_si512((void *)(to + w->to[j]), y);
        else _mm512_storeu_si512(to + w->to[j], y);
    }
}

INLINE AVX512 void part_step(const rl_mix *m, const mixer *w, uint32_t n, char *to, const char *from) {
    __m512i x[RL_MIX];
    for (uint32_t i = 0; i < n; i++) x[i] = _mm512_maskz_loadu_epi8(w->fm[i], from + w->from[i]);
    for (uint32_t j = 0; j < n; j++)
        if (w->tm[j]) _mm512_mask_storeu_epi8(to + w->to[j], w->tm[j], mix_line(m, w, n, j, x));
}

INLINE AVX512 void prepare(mixer *w, const rl_mix *m, uint32_t n, const rl_mix_lines *out, const rl_mix_lines *in, int64_t part) {
    for (uint32_t j = 0; j < n; j++) {
        w->to[j] = out->at[j], w->from[j] = in->at[j];
        w->tm[j] = rl_ones(part_of(out, n, j, part)), w->fm[j] = rl_ones(part_of(in, n, j, part));
        for (uint32_t i = 0; n <= FEW && i < n; i++) w->byte[j][i] = _mm512_loadu_si512(m->byte[j][i]), w->take[j][i] = m->take[j][i];
    }
}

/* What is left of a row is a step that overlaps that before it, if it may be written twice. */
INLINE AVX512 void mix_rows(const rl_mix *m, uint32_t n, char *to, const rl_mix_lines *out, const char *from, const rl_mix_lines *in,
                            const rl_mix_rows *r) {
    mixer w;
    int64_t part = r->row % 64, ts = out->step, fs = in->step;
    int64_t back = 64 - part, tback = out->whole ? back * n : back, fback = in->whole ? back * n : back;
    prepare(&w, m, n, out, in, part);
    for (int64_t k = 0; k < r->rows; k++, to += r->to, from += r->from) {
        char *t = to;
        const char *f = from;
        for (int64_t left = r->row / 64; left > 0; left--, t += ts, f += fs) whole_step(m, &w, n, t, f, r->stream);
        if (!part) continue;
        if (r->row > 64 && !r->stream) whole_step(m, &w, n, t - tback, f - fback, false);
        else part_step(m, &w, n, t, f);
    }
}

AVX512 void rl_mix_avx512(const rl_mix *m, char *to, const rl_mix_lines *out, const char *from, const rl_mix_lines *in, const rl_mix_rows *r) {
    if (m->n == 2) mix_rows(m, 2, to, out, from, in, r);
    else if (m->n == 3) mix_rows(m, 3, to, out, from, in, r);
    else if (m->n == 4) mix_rows(m, 4, to, out, from, in, r);
    else mix_rows(m, m->n, to, out, from, in, r);
}
#endif
