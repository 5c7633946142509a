/* The declarations that kernels_fast.def needs. */
#ifndef RL_KERNELS_FAST_H
#define RL_KERNELS_FAST_H
#include "kernels.h"
#include "recurrent.h"
#include "ref_axis.h"
#include "ref_pointwise.h"
#include "ref_pool.h"
#include "ref_reduce.h"
#include "ref_softmax.h"
#include "rows.h"

#define KERNEL(domain, type, since, until, types, fn, arg) rl_kernel_fn fn;
#include "kernels_fast.def"
#undef KERNEL
rl_kernel_fn rl_fast_chain; /* of fused pointwise ops (fuse.h) */
rl_kernel_fn rl_fast_attention; /* of the nodes of attention (fuse_attention.c) */
rl_kernel_fn rl_fast_conv_pieces; /* of a Concat and a convolution (pieces.c) */
rl_kernel_fn rl_fast_conv_fold; /* of a convolution and a DepthToSpace (fold.c) */
rl_kernel_fn rl_fast_whole_norm; /* of an InstanceNormalization between Reshapes (whole_norm.c) */
rl_kernel_fn rl_fast_padded_pool; /* of a Pad and a MaxPool (pads.c) */
rl_kernel_fn rl_fast_shear; /* of Pads, Reshapes and Slices that are a view (shear.c) */
rl_kernel_fn rl_fast_turns; /* of Reshapes and Transposes (turns.c) */
rl_kernel_fn rl_fast_scattered_norm, rl_fast_scattered_matmul, rl_fast_scattered_conv; /* whose rows go elsewhere (scatter.c) */
rl_kernel_fn rl_fast_interleave; /* of a Concat and a Reshape (interleave.c) */

#endif
