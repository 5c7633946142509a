/* Inner loops of direct convolutions: see direct_loops.h. Written once with vectors of 16 floats, compiled for each instruction set. */
#include "direct_loops.h"

#include <math.h>

#include "isa.h"

#define INLINE __attribute__((always_inline))
#define FOURTEEN(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13)
/* Pixels of the highest tiles. With sanitizers, for which each tile takes a minute to compile, low ones do. */
#ifdef RL_LOW_TILES
#define HIGHEST(n) 2
#else
#define HIGHEST(n) n
#endif

enum { LANES = 16 };
typedef float many __attribute__((vector_size(64), aligned(4), may_alias));

#define load(p) (*(const many *)(const void *)(p))
#define store(p, v) (*(many *)(void *)(p) = (v))

#define ATTR
#define NAME(x) any_##x
__attribute__((noinline)) static void any_get_part(many *v, const float *p, int64_t n) {
    *v = (many){0};
    for (int i = 0; i < n; i++) (*v)[i] = p[i];
}
__attribute__((noinline)) static void any_put_part(float *p, const many *v, int64_t n) {
    for (int i = 0; i < n; i++) p[i] = (*v)[i];
}
static void any_clip(many *v, float low, float high) {
    for (int i = 0; i < LANES; i++) (*v)[i] = (*v)[i] < low ? low : (*v)[i] > high ? high : (*v)[i];
}
#define PIXELS 2
#define VECTORS 1
#define DEEP 2
#define PAIRED 2
#define WIDE 1
#define ISA RL_ISA_PLAIN
#include "winograd.inc"
#include "direct_loops.inc"
#undef ATTR
#undef NAME
#undef PIXELS
#undef DEEP
#undef ISA

#ifdef __x86_64__
#include <immintrin.h>

#define ATTR RL_TARGET_AVX2
#define NAME(x) avx2_##x
ATTR INLINE static inline void avx2_get_part(many *v, const float *p, int64_t n) {
    if (n == LANES)
        *v = load(p);
    else
        any_get_part(v, p, n);
}
ATTR INLINE static inline void avx2_put_part(float *p, const many *v, int64_t n) {
    if (n == LANES)
        store(p, *v);
    else
        any_put_part(p, v, n);
}
/* Of what is no number the second operand stays. */
ATTR INLINE static inline void avx2_clip(many *v, float low, float high) {
    __m256 *half = (void *)v;
    for (int i = 0; i < 2; i++)
        half[i] = _mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), half[i]));
}
#define PIXELS HIGHEST(6)
#define ISA RL_ISA_AVX2
#define DEEP HIGHEST(6)
#include "winograd.inc"
#include "direct_loops.inc"
#undef ATTR
#undef NAME
#undef PIXELS
#undef VECTORS
#undef WIDE
#undef ISA

#define ATTR RL_TARGET_AVX512
#define NAME(x) avx512_##x
ATTR INLINE static inline void avx512_get_part(many *v, const float *p, int64_t n) {
    if (n == LANES)
        *v = load(p);
    else
        *v = (many)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
ATTR INLINE static inline void avx512_put_part(float *p, const many *v, int64_t n) {
    if (n == LANES)
        store(p, *v);
    else
        _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)*v);
}
ATTR INLINE static inline void avx512_clip(many *v, float low, float high) {
    *v = (many)_mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), (__m512)*v));
}
#define PIXELS HIGHEST(14)
#undef PAIRED
#define PAIRED HIGHEST(12)
#define ISA RL_ISA_AVX512
#define VECTORS 2
#define WIDE 4
#include "winograd.inc"
#include "direct_loops.inc"
#endif

const rl_direct_loops *rl_direct_loops_of(rl_isa want) {
#ifdef __x86_64__
    if ((want == RL_ISA_BEST || want == RL_ISA_AVX512) && RL_HAS_AVX512) return &avx512_table;
    if (want != RL_ISA_PLAIN && RL_HAS_AVX2) return &avx2_table;
#else
    (void)want;
#endif
    return &any_table;
}
