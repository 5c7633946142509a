/* Numbers of the attention family's ops, for kernels.def. */
#ifndef RL_REF_ATTENTION_H
#define RL_REF_ATTENTION_H
#include "rt.h"

enum { RL_ROTARY, RL_ROTARY_MICROSOFT };

/* Input i, [batch, length, heads * size], as [batch, heads, length, size]; rank 4 as it is. */
rl_status rl_attention_heads(rl_call *c, uint32_t i, int64_t heads, rl_tensor *out);

#endif
