/* Kernels that compute in one or two types only, for tensors of many.
 *
 *   const rl_tensor *x = rl_call_as(c, 0, t);                       the input as t: RL_F32, say, where the tensor is RL_F16
 *   rl_tensor *y = rl_wide_make(c, 0, RL_F16, t, rank, dim);        what to fill, of type t
 *   ...
 *   rl_wide_done(c, 0, y);                                          output 0 is y, rounded to its type */
#ifndef RL_WIDE_H
#define RL_WIDE_H
#include "kernels.h"

/* RL_F64 for itself, else RL_F32: holds every number of 16 bits or fewer. */
static inline rl_dtype rl_wide_float(rl_dtype t) { return t == RL_F64 ? RL_F64 : RL_F32; }
/* Makes output i of type t and returns it; or, where t is not `wide`, a tensor of type wide instead. */
rl_tensor *rl_wide_make(rl_call *c, uint32_t i, rl_dtype t, rl_dtype wide, uint32_t rank, const int64_t *dim);
void rl_wide_done(rl_call *c, uint32_t i, const rl_tensor *y);
/* y = a + b, of type `wide`, which y has. */
rl_status rl_wide_sum(rl_call *c, rl_dtype wide, rl_tensor *y, const rl_tensor *a, const rl_tensor *b);

#endif
