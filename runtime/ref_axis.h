/* Numbers of the ops along an axis, for kernels.def. */
#ifndef RL_REF_AXIS_H
#define RL_REF_AXIS_H

enum { RL_ARG_MAX, RL_ARG_MIN, RL_CUM_SUM, RL_CUM_PROD };

#endif
