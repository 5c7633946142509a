/* Numbers of the ops along an axis, for kernels.def; their nodes read, for the CPU and for devices. */
#ifndef RL_REF_AXIS_H
#define RL_REF_AXIS_H
#include "rt.h"

enum { RL_ARG_MAX, RL_ARG_MIN, RL_CUM_SUM, RL_CUM_PROD };

rl_status rl_topk_read(rl_call *c, uint32_t *axis, int64_t *k); /* 0 <= *k <= the axis' dim */
rl_status rl_cumulate_axis(rl_call *c, uint32_t *axis);

#endif
