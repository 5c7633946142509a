/* Ops of bytes: which input is what, and their scales and zero points: constants of the model, which the host reads, but for zero
 * points that the run makes (op_quant.c, op_bytes.c). */
#ifndef RL_CUDA_NUMBERS_H
#define RL_CUDA_NUMBERS_H
#include "backend.h"

/* Which inputs are which: x and y are the op's data, w its weights or second matrix; RL_NONE: the op has none. */
typedef struct { uint32_t x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias; } rl_gpu_places;
/* By the row's arg, a rl_gpu_of_bytes. RL_EMODEL where one that must be there is not. */
rl_status rl_gpu_places_of(const rl_call *c, const rl_gpu_places **out);
const rl_tensor *rl_gpu_input(const rl_call *c, uint32_t at); /* NULL: left out, or `at` is RL_NONE */
bool rl_gpu_is_byte(rl_dtype t);

/* A constant's element i, or its only one, as f32 (bytes: exact); `none` where the input is left out or `at` is RL_NONE. */
double rl_gpu_number_at(rl_call *c, uint32_t at, uint32_t i, double none);
/* Is it left out, or a constant of this type with one number for all or one for each of n? */
bool rl_gpu_takes_numbers(const rl_call *c, uint32_t at, rl_dtype t, int64_t n);
/* A zero point of all, which may also be made in the run, as DynamicQuantizeLinear makes it: then a kernel reads it on the device. */
bool rl_gpu_takes_zero(const rl_call *c, uint32_t at, rl_dtype t);
bool rl_gpu_is_made(const rl_call *c, uint32_t at);
/* x, f32, as DynamicQuantizeLinear has it: y, u8, of x's dims, one scale, f32, one zero point, u8. */
rl_status rl_gpu_quantized(rl_call *c, const rl_tensor *x, const rl_tensor *y, const rl_tensor *scale, const rl_tensor *zero);

#endif
