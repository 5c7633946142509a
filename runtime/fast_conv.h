/* What the two ways to run a convolution share: oneDNN's primitives (fast_conv.c) and direct loops (fast_direct.c). */
#ifndef RL_FAST_CONV_H
#define RL_FAST_CONV_H
#include "conv.h"
#include "fast.h"
#include "fuse.h"

enum { RL_CONV_RANK = 5 };    /* the most dims of an input */
enum { RL_FEW_CHANNELS = 4 }; /* of an image: so many are read channels-first, too */

/* A convolution, or pool, of a call: what it reads and where its window goes. */
typedef struct {
    const rl_tensor *x, *k, *bias; /* bias NULL: none */
    const rl_pieces *pieces;       /* of the call's inputs, what x stands for; NULL: x is there */
    rl_window w;
    int64_t group, dim[RL_CONV_RANK];                    /* of the output */
    int64_t stride[3], dilation[3], before[3], after[3]; /* of the spatial dims; dilation: less 1, as oneDNN counts */
    int64_t kdim[RL_CONV_RANK + 1],
        kstride[RL_CONV_RANK + 1]; /* of the weights as oneDNN sees them: the group first, where there is one */
    uint32_t krank;
    bool back;   /* ConvTranspose */
    const rl_fold *fold; /* a DepthToSpace behind it, whose output is the call's; NULL: none */
    bool lifted; /* of one spatial dim, seen with two: the first is 1 */
} rl_convolution;

/* Of x and k: group, window and the output's dims. */
rl_status rl_conv_read(rl_call *c, rl_convolution *v);
/* Output 0, channels-last or as the plan says. */
rl_tensor *rl_conv_output(rl_call *c, rl_dtype t, const rl_convolution *v);
/* oneDNN's kernels for depthwise convolutions are for two spatial dims: one of one is seen with two; room: for x and the weights. */
void rl_conv_lift(rl_convolution *v, rl_tensor *room);
rl_tensor rl_conv_lifted(const rl_tensor *t); /* [n,c,l] as [n,c,1,l] */
/* The window as oneDNN counts it; false: it cannot. */
bool rl_conv_set_window(rl_convolution *v);
/* [m, c/g, k...] as [g, m/g, c/g, k...]; ConvTranspose's [c, m/g, k...] as [g, m/g, c/g, k...]. */
void rl_conv_set_weights(rl_convolution *v);
/* m->pd, with m->attr; oneDNN's status. */
int rl_conv_describe(rl_making *m, const rl_convolution *v, rl_dnnl_cmd src, rl_dnnl_cmd weights, rl_dnnl_cmd bias, rl_dnnl_cmd dst);

/* The weights times the scale that was fused into them; row-major, until the node is done. */
const rl_tensor *rl_conv_scaled(rl_call *c, const rl_convolution *v);
/* The bias with what was fused into it, of a number for each output channel; zeros where there is none. */
const float *rl_conv_whole_bias(rl_call *c, const rl_convolution *v);

/* Can direct loops run it on this input? Those of the output and of operands may have gaps between pixels. */
bool rl_direct_can(const rl_call *c, const rl_convolution *v);
/* Are they faster than oneDNN, for this input and an output without gaps? */
bool rl_direct_better(const rl_call *c, const rl_convolution *v);
/* Runs it: y is output 0. */
rl_status rl_direct_conv(rl_call *c, const rl_convolution *v, rl_tensor *y);
/* Of a step's node, before it runs: will they read input 0 in pieces, and not much slower than oneDNN would read it whole?
 * shuffled: it is in another order. */
bool rl_direct_takes_pieces(const rl_exec *x, const rl_step *s, bool shuffled);
/* Of a step's node, before it runs: will direct loops take rows with gaps, as far as one can tell? */
bool rl_direct_takes_gaps(const rl_exec *x, const rl_step *s);

#endif
