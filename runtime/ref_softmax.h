/* The softmax family's numbers, for kernels.def, and its rows, for losses and attention. */
#ifndef RL_REF_SOFTMAX_H
#define RL_REF_SOFTMAX_H
#include "rt.h"

enum { RL_SOFTMAX, RL_LOG_SOFTMAX, RL_HARDMAX };

/* y = op(x) on rows of n elements; both dense, RL_F32 or RL_F64; one tensor only for RL_SOFTMAX. */
void rl_softmax_rows(rl_rt *rt, int op, const rl_tensor *y, const rl_tensor *x, int64_t n);

#endif
