/* What a Transpose of a constant would compute, by the move kernel (move.h). */
#ifndef RL_PERMUTE_H
#define RL_PERMUTE_H
#include "base.h"

/* out dim i is in dim perm[i]; dim are in's sizes, elements have `bits` bits (a multiple of 8, or 1, 2, 4: then packed, the
 * first element in the lowest bits, as ONNX does).  out holds as many bytes as in, and overlaps it nowhere. */
void rl_permute(void *out, const void *in, uint32_t rank, const int64_t *dim, const uint32_t *perm, uint32_t bits);

#define RL_PERMUTE_MAXRANK 32

/* Is each of 0 .. n-1 among the n numbers? */
bool rl_is_permutation(const int64_t *p, uint32_t n, rl_arena *tmp);

/* Where dims of one element go: each stays in front of the dim behind it, and where nothing before it moves; those behind all others come
 * first where all move, as nothing reads them there.  Runtimes are quick where one dim moves past others: x[n,32,1,128] with its other dims
 * in the sequence 0 3 1 has perm 0 2 3 1, not 2 0 3 1.  moved: all other dims. */
void rl_permute_ones(uint32_t rank, const bool *one, const uint32_t *moved, uint32_t *perm);

#endif
