/* Gather and GatherND: what the reference kernels and the fast ones share. */
#ifndef RL_GATHER_H
#define RL_GATHER_H
#include "kernels.h"

/* to[i] becomes from[index[i]], i < n: the axis is the first on both sides, and each index is within it. */
typedef struct { rl_call *c; rl_tensor to, from; const int64_t *index; int64_t n; } rl_gather;
typedef void rl_gather_fn(const rl_gather *g);

/* Checks the call and makes its output, which fn fills; of one index that is a view, and fn is not called. */
rl_status rl_gather_by(rl_call *c, rl_gather_fn *fn);
rl_status rl_gather_nd_by(rl_call *c, rl_gather_fn *fn);
/* Each index by one move. */
void rl_gather_moves(const rl_gather *g);

#endif
