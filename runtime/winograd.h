/* Convolutions of 3 x 3 windows by Winograd's way, F(2x2, 3x3) of Lavin and Gray (Fast Algorithms for Convolutional Neural Networks, 2015):
 * 16 products for each tile of 2 x 2 outputs and pair of channels, in place of 36.
 *
 *   one channel, a patch of 4 inputs d and 3 weights g, in one dim, which makes 2 outputs:
 *     B'd = (d0 - d2, d1 + d2, d2 - d1, d1 - d3)     Gg = (g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2)
 *     m = Gg * B'd, one by one                       y = (m0 + m1 + m2, m1 - m2 - m3)
 *
 * In two dims the same is done to rows and columns: 16 places.  Weights become  [place][panel][input channel][width]  when they are packed (panels.h).
 * Some tiles at a time are spread to  [place][tile][input channel], multiplied place by place to  [place][tile][output channel], and
 * gathered; both stay in the second cache.  The transforms only add and halve: sums differ from the plain ones by rounding, of what is
 * largest in the patch.  A number that is not finite would reach all outputs of its tile: those are summed once more, the plain way. */
#ifndef RL_WINOGRAD_H
#define RL_WINOGRAD_H
#include "direct.h"

/* Windows of 3 x 3, one step at a time, of dense weights. */
bool rl_winograd_can(const rl_direct *d);
/* Floats of the packed weights. */
int64_t rl_winograd_weights(const rl_direct *d);
/* w: [channels][depth][9], row-major; room: zeros. */
void rl_winograd_pack(const rl_direct *d, const float *w, float *room);

/* Tiles of a row and of a column of the output's planes, of all of it; how many are done at a time, and the floats that this takes. */
typedef struct {
    int64_t columns, rows, all, together, room;
} rl_winograd_cut;
rl_winograd_cut rl_winograd_cut_of(const rl_direct *d, int64_t threads);
/* Where a tile begins in the output. */
typedef struct {
    int64_t n, d, h, w;
} rl_winograd_corner;
rl_winograd_corner rl_winograd_corner_of(const rl_direct *d, const rl_winograd_cut *cut, int64_t tile);
/* Tiles from .. to - 1, at most `together`: all but the post-ops. */
void rl_winograd_run(const rl_direct *d, const rl_winograd_cut *cut, int64_t from, int64_t to, float *room);

#endif
