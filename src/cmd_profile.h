/* What the files of the command profile share. */
#ifndef RL_CMD_PROFILE_H
#define RL_CMD_PROFILE_H
#include "../runtime/native_profile.h"

/* rl_profile.solve; limit: double, seconds. */
rl_status rl_profile_solve(void *limit, rl_profile *p);
/* keep[op][configuration], all true: false for those that no best choice needs, which p->drop has (cmd_profile_reduce.c). */
void rl_profile_reduce(rl_profile *p, rl_arena *mem, bool **keep);
/* chosen costs *known: becomes a cheaper choice where one is found in about so many seconds. Returns what no choice costs less than, *known where it is
 * the least (cmd_profile_exact.c). */
int64_t rl_profile_exact(const rl_probe *q, bool *const *keep, double seconds, rl_arena *mem, uint32_t *chosen, int64_t *known);

#endif
