/* Loops over rows of floats: see rows.h. Written once, for the compiler to make vectors of; compiled for each instruction set. */
#include "rows.h"

#include <math.h>
#include <stddef.h>

#include "isa.h"

#define LARGE 1e6f /* less than 2^20 pi / 2 */

#define ATTR
#define NAME(x) any_##x
#define PANEL 16 /* columns */
#define REGISTER 16 /* bytes */
#include "rows.inc"
#undef ATTR
#undef NAME

#ifdef __x86_64__
#define ATTR RL_TARGET_AVX2
#define NAME(x) avx2_##x
#undef REGISTER
#define REGISTER 32
#include "rows.inc"
#undef ATTR
#undef NAME
#define ATTR RL_TARGET_AVX512
#define NAME(x) avx512_##x
#undef PANEL
#define PANEL 64
#undef REGISTER
#define REGISTER 64
#include "rows.inc"
#endif

const rl_rows *rl_rows_best(void) {
#ifdef __x86_64__
    if (RL_HAS_AVX512) return &avx512_table;
    if (RL_HAS_AVX2) return &avx2_table;
#endif
    return &any_table;
}
