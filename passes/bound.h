/* What bound.c and keep.c share: exact costs of the assignment problem, and the atoms that the bound looks at. */
#ifndef RL_BOUND_H
#define RL_BOUND_H
#include "plan.h"

/* One conversion of v costs (1 << up) + bytes / unit by count, (bytes / unit << up) + 1 by bytes.  Not exact: bytes are rounded down. */
typedef struct { int64_t unit; uint32_t up; bool bytes_first, exact; } rl_bound_scale;

/* The problem of the ops in q; values of components that are not open cost nothing. In q->mem. */
void rl_bound_problem(const rl_plan *q, const rl_bound_scale *s, const bool *open, rl_problem *out);

/* keep.c: sets cls.kept of the open components, at most mostkept atoms each.  Class by class, and of atoms that seem equally useless first
 * the one that few others are tied to (PLAIN), or the second of two alike (TWINS); or the same atoms everywhere (LABELS). */
typedef enum { RL_KEEP_PLAIN, RL_KEEP_TWINS, RL_KEEP_LABELS } rl_keepway;
void rl_bound_keep(rl_plan *p, const bool *open, uint32_t mostkept, rl_keepway way);

#endif
