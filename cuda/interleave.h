/* Moves by kernel interleave (k_interleave.h): whether one can go by it, and its launch.
 *
 *   rl_interleaved k;                                                                            f32[2,3,8,8] to channels-last:
 *   if (rl_interleave_of(&l, 32, to, from, &k)) RL_TRY(rl_interleave_launch(g, &k));             interleave3x4, one block */
#ifndef RL_CUDA_INTERLEAVE_H
#define RL_CUDA_INTERLEAVE_H
#include "driver.h"

typedef struct { rl_gpu_kernel kernel; uint32_t nblock; rl_p_interleave p; } rl_interleaved;

/* l: sorted and merged, operand 0 written, operand 1 read, of elements of `bits` bits; to, from: addresses of the first ones. */
bool rl_interleave_of(const rl_loops *l, uint32_t bits, uint64_t to, uint64_t from, rl_interleaved *k);
rl_status rl_interleave_launch(rl_gpu *g, const rl_interleaved *k);

#endif
