/* Direct convolutions over views whose channels lie side by side, each pixel any distance from the next: a convolution that writes its
 * channels into the buffer of a Concat, or reads those of a Split, copies nothing.  oneDNN's kernels want tensors without gaps.
 *
 *   y = Conv(x, w) 3 x 3, pads 1     output [1,56,56,24], channels 24 .. 47 of a buffer of 48: strides of N, D, H, W 150528, 0, 2688, 48
 *
 * The input may be in pieces, some channels here and some there: what reads a Concat of slices reads what they are slices of.  The output
 * may be, too: the channels that a DepthToSpace makes pixels of, or the taps of a ConvTranspose whose windows do not overlap.
 *
 * The output's plane is cut where windows begin or cease to reach into the pads: into 3 x 3 areas here, of each of which all pixels have
 * the same taps in the input.  An area goes strip by strip (direct_loops.h), along its longer side.  What a thread does at a time, some
 * lines and all or some of the channels, stays in its cache, also for the post-ops that are done there.
 *
 * Dense weights are packed in panels of `width` output channels,  [panel][tap][input channel][width],  depthwise ones as  [tap][channel],
 * those of 3 x 3 windows that go by Winograd's way as winograd.h says. */
#ifndef RL_DIRECT_H
#define RL_DIRECT_H
#include "direct_loops.h"
#include "fuse.h"

enum { RL_DIRECT_TAPS = 128, RL_DIRECT_INPUTS = RL_PIECES }; /* the most */
enum { RL_AXIS_N, RL_AXIS_D, RL_AXIS_H, RL_AXIS_W, RL_AXIS_DIMS };

typedef struct {
    const float *p;
    int64_t stride[RL_AXIS_DIMS];
} rl_direct_view; /* elements; p NULL: none */

typedef struct {
    rl_direct_view view;
    int64_t channels, step; /* step: from a channel to the next */
} rl_direct_input;

typedef struct {
    rl_isa isa; /* RL_ISA_BEST, but in tests */
    bool depthwise, winograd; /* winograd: by winograd.h, which must be able to */
    int64_t depth, channels; /* input channels, output channels */
    /* Of D, H, W; of N the first two alone. */
    int64_t in[RL_AXIS_DIMS], out[RL_AXIS_DIMS], kernel[RL_AXIS_DIMS], stride[RL_AXIS_DIMS], dilation[RL_AXIS_DIMS],
        before[RL_AXIS_DIMS];
    const rl_direct_input *x; /* where the input's channels lie, piece by piece */
    uint32_t nx;              /* 1 .. RL_DIRECT_INPUTS */
    rl_direct_view add;       /* a residual of the output's dims */
    float *y;
    int64_t y_stride[RL_AXIS_DIMS];
    const rl_direct_runs *runs; /* of the output's channels, dense only; NULL: all are side by side */
    const float *w, *bias; /* packed; bias: padded with zeros to whole panels */
    float low, high;
    rl_post post[RL_POSTS + 1];           /* done after that */
    rl_direct_view operand[RL_POSTS + 1]; /* of binary ones, of the output's dims */
    uint32_t npost;
} rl_direct;

/* Floats of the packed bias and weights: the bias comes first, rl_direct_bias floats. */
int64_t rl_direct_bias(const rl_direct *d);
int64_t rl_direct_weights(const rl_direct *d);
/* w: [channels][depth][taps], or [channels][taps], row-major; bias: [channels]. room: floats as above. Sets d->w and d->bias. */
void rl_direct_pack(rl_direct *d, const float *w, const float *bias, float *room);
void rl_direct_run(rl_rt *rt, rl_arena *tmp, const rl_direct *d);

#endif
