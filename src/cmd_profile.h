/* What cmd_profile.c and cmd_profile_solve.c share. */
#ifndef RL_CMD_PROFILE_H
#define RL_CMD_PROFILE_H
#include "../runtime/native_profile.h"

/* rl_profile.solve; limit: double, seconds. */
rl_status rl_profile_solve(void *limit, rl_profile *p);

#endif
