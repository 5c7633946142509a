/* DynamicQuantizeLinear's scale and zero point, for the CPU and for devices' kernels: C and C++. */
#ifndef RL_DYNAMIC_SCALE_H
#define RL_DYNAMIC_SCALE_H
#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define RL_DYNAMIC static __host__ __device__ __forceinline__
#else
#define RL_DYNAMIC static inline
#endif

/* The zero point, and *scale, for numbers from least, at most 0, to most, at least 0. */
RL_DYNAMIC uint8_t rl_dynamic_scale(float least, float most, float *scale) {
    *scale = (most == least ? 1 : most - least) / 255;
    float point = -least / *scale;
    return point > 0 ? (uint8_t)rintf(point < 255 ? point : 255) : 0;
}

#endif
