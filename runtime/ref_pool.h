/* The pools that ref_pool.c tells apart, for kernels_pool.def; and what fast ones share with it. */
#ifndef RL_REF_POOL_H
#define RL_REF_POOL_H
#include "window.h"

enum { RL_POOL_MAX, RL_POOL_AVERAGE, RL_POOL_LP };

/* How many taps of each window of an AveragePool count: [out] */
const float *rl_pool_counts(rl_call *c, const rl_window *w);

#endif
