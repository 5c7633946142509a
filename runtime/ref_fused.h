/* The fused pointwise ops' numbers, for kernels.def. */
#ifndef RL_REF_FUSED_H
#define RL_REF_FUSED_H

enum { RL_FU_SWIGLU, RL_FU_BIAS_GELU, RL_FU_FAST_GELU, RL_FU_QUICK_GELU, RL_FU_NOP };

#endif
