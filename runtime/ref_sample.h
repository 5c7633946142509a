/* GridSample's node read, for the CPU and for devices. */
#ifndef RL_REF_SAMPLE_H
#define RL_REF_SAMPLE_H
#include "grid.h"
#include "rt.h"

/* Checks both inputs; the output's dims, as many as the input's. */
rl_status rl_grid_dims(const rl_call *c, int64_t *dim);
rl_status rl_grid_mode_read(const rl_call *c, rl_grid_mode *m);

#endif
