/* Scales and zero points of quantized ops: constants of the model, which the host reads (op_quant.c, op_bytes.c). */
#ifndef RL_CUDA_NUMBERS_H
#define RL_CUDA_NUMBERS_H
#include "backend.h"

/* A constant's element i, or its only one, as f32 (bytes: exact); `none` where the input is left out or `at` is RL_NONE. */
double rl_gpu_number_at(rl_call *c, uint32_t at, uint32_t i, double none);
/* Is it left out, or a constant of this type with one number for all or one for each of n? */
bool rl_gpu_takes_numbers(const rl_call *c, uint32_t at, rl_dtype t, int64_t n);

#endif
