/* Numbers of the attention family's ops, for kernels.def. */
#ifndef RL_REF_ATTENTION_H
#define RL_REF_ATTENTION_H

enum { RL_ROTARY, RL_ROTARY_MICROSOFT };

#endif
