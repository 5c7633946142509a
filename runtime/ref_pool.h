/* The pools that ref_pool.c tells apart, for kernels_pool.def. */
#ifndef RL_REF_POOL_H
#define RL_REF_POOL_H
#include "kernels.h"

enum { RL_POOL_MAX, RL_POOL_AVERAGE, RL_POOL_LP };

#endif
