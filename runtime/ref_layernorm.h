/* Which normalization, for kernels.def. */
#ifndef RL_REF_LAYERNORM_H
#define RL_REF_LAYERNORM_H

enum { RL_LN_LAYER, RL_LN_RMS };

#endif
