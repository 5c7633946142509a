/* Conversions between descriptors (include/relayout.h: rl_move, rl_desc_convert), as nests of loops for the one move kernel (src/move.h).
 *
 * f32[1,20,2,2] from nchw to nChw16c: both sides are straight lines only within a block of 16 channels, and the last block is not
 * full.  So axis 1 is cut into runs, 1 block of 16 and a rest of 4, and there are two nests:
 *
 *     runs of axis 1            loops (count, step in out, step in in)
 *     16 from 0 in blocks       n 1   c 16 of 1, 4     h 2 of 32, 2     w 2 of 16, 1
 *     4 from 16                 n 1   c  4 of 1, 4     h 2 of 32, 2     w 2 of 16, 1     at out 64, in 64
 *
 * and one nest of zeros for the channels 20 to 31.  Where the blocks of the two sides do not divide each other (3 and 4), the runs end
 * wherever one of them ends a block. */
#ifndef RL_CONVERT_H
#define RL_CONVERT_H
#include "../src/desc.h"

/* n elements from in, one every `step` from element `at` on, to out likewise. */
void rl_move_line(int32_t dtype, void *out, int64_t out_at, int64_t out_step, const void *in, int64_t in_at, int64_t in_step, int64_t n);
/* Zeros to the padding of the descriptor's buffer, or to its elements too. */
void rl_desc_zero(const rl_desc *d, void *out, bool elements);

#endif
