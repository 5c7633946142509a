/* What bound.c and keep.c share: exact costs of the assignment problem, and the atoms that the bound looks at. */
#ifndef RL_BOUND_H
#define RL_BOUND_H
#include "plan.h"

/* One conversion of v costs (1 << up) + bytes / unit by count, (bytes / unit << up) + 1 by bytes.  Not exact: bytes are rounded down. */
typedef struct { int64_t unit; uint32_t up; bool bytes_first, exact; } rl_bound_scale;

/* The problem of the ops in q; values of components that are not open cost nothing. In q->mem. */
void rl_bound_problem(const rl_plan *q, const rl_bound_scale *s, const bool *open, rl_problem *out);

/* keep.c: sets cls.keep of the open components, at most mostkept atoms each.  twins: of atoms that seem equally useless, the second
 * of two alike go first. */
void rl_bound_keep(rl_plan *p, const bool *open, uint32_t mostkept, bool twins);

#endif
