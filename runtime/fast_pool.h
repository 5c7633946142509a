/* Pools of planes (fast_pool.c), for those of views in any order (fast_conv.c). */
#ifndef RL_FAST_POOL_H
#define RL_FAST_POOL_H
#include "ref_pool.h"

/* Does the input lie plane by plane, so that rows are the fastest? */
bool rl_pools_planes(const rl_call *c, const rl_tensor *x, const rl_window *w);
/* MaxPool or AveragePool of it, as c->arg says; x and w: of the call. */
rl_status rl_pool_planes(rl_call *c, const rl_tensor *x, const rl_window *w);

#endif
