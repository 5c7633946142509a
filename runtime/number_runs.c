/* See number_runs.h. Written once, for the compiler to make vectors of; compiled for each instruction set. */
#include "number_runs.h"

#include <math.h>

#include "isa.h"

#define ATTR
#define NAME(x) any_##x
#include "number_runs.inc"
#undef ATTR
#undef NAME

#ifdef __x86_64__
#define ATTR RL_TARGET_AVX2
#define NAME(x) avx2_##x
#include "number_runs.inc"
#undef ATTR
#undef NAME
#define ATTR RL_TARGET_AVX512
#define NAME(x) avx512_##x
#include "number_runs.inc"
#endif

static const rl_number_run *best(void) {
#ifdef __x86_64__
    if (RL_HAS_AVX512) return avx512_runs;
    if (RL_HAS_AVX2) return avx2_runs;
#endif
    return any_runs;
}

const rl_number_run *rl_number_run_of(rl_dtype to, rl_dtype from) {
    const rl_number_run *all = best();
    for (size_t i = 0; i < RL_LEN(any_runs); i++)
        if (all[i].to == to && all[i].from == from) return &all[i];
    return NULL;
}
