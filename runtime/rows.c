/* Loops over rows of floats: see rows.h. Written once, for the compiler to make vectors of; compiled for each instruction set. */
#include "rows.h"

#include <math.h>
#include <stddef.h>

#define ATTR
#define NAME(x) any_##x
#define PANEL 16 /* columns */
#include "rows.inc"
#undef ATTR
#undef NAME

#ifdef __x86_64__
#define ATTR __attribute__((target("avx2,fma")))
#define NAME(x) avx2_##x
#include "rows.inc"
#undef ATTR
#undef NAME
#ifdef __clang__
#define ATTR __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw")))
#else
#define ATTR __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512")))
#endif
#define NAME(x) avx512_##x
#undef PANEL
#define PANEL 64
#include "rows.inc"
#endif

const rl_rows *rl_rows_best(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return &avx512_table;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2_table;
#endif
    return &any_table;
}
