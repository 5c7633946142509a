/* The instruction sets that own loops are compiled for, as attributes of functions, and whether the processor has them.
 *
 *   #define ATTR RL_TARGET_AVX512
 *   ATTR static void fast_add(...) { ... }
 *   if (RL_HAS_AVX512) fast_add(...); */
#ifndef RL_ISA_H
#define RL_ISA_H

#ifdef __x86_64__
#define RL_TARGET_AVX2 __attribute__((target("avx2,fma")))
#ifdef __clang__
#define RL_TARGET_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw")))
#else /* which makes half vectors otherwise */
#define RL_TARGET_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512")))
#endif
#define RL_HAS_AVX2 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define RL_HAS_AVX512                                                                                                  \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")     \
     && __builtin_cpu_supports("avx512bw"))
/* Products of bytes, summed in i32. */
#define RL_HAS_VNNI (RL_HAS_AVX512 && __builtin_cpu_supports("avx512vnni"))
#endif

#endif
