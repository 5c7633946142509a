/* The reductions' numbers, for kernels.def. */
#ifndef RL_REF_REDUCE_H
#define RL_REF_REDUCE_H

enum { RL_RD_SUM, RL_RD_MEAN, RL_RD_L1, RL_RD_L2, RL_RD_SUM_SQUARE, RL_RD_LOG_SUM, RL_RD_LOG_SUM_EXP, RL_RD_PROD, RL_RD_MAX, RL_RD_MIN };

#endif
