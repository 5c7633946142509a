/* The assignment problem that assign.c poses, in one of several ways (solve.h, pose.c).
 *
 * A cost is one int64: conversions and charges, then bytes moved, then how far ops stray from the input; or bytes, then conversions, then
 * charges and how far; or the time of the conversions and of what is charged. */
#ifndef RL_POSE_H
#define RL_POSE_H
#include "plan.h"

/* dearer: what each conversion costs beyond its time or bytes, in their units. */
typedef struct { int64_t conversion, unit, byte_shift, dearer; bool bytes_first, by_time; int64_t nop_bits; const rl_target *target; } rl_scale;

/* Costs are conversions and bytes.  byte_shift 0: exact. */
rl_scale rl_scale_of(const rl_plan *p, bool bytes_first);
/* Costs are times, as exact as 60 bits allow. */
rl_scale rl_time_scale(const rl_plan *p, int64_t dearer);
/* The same with dearer conversions: by an eighth of what the largest costs, by all of that, by so much that only their
 * number counts. */
rl_scale rl_dearer_scale(const rl_plan *p, const rl_scale *s, uint32_t way);

/* How a problem is posed. */
typedef struct {
    bool mild;            /* a form is charged only for what it costs beyond the one that the model has */
    bool plain;           /* forms cost nothing */
    bool all;             /* ops and classes that nothing is worked on for, too */
    const rl_node *cheap; /* [class] moved by a Conv; RL_NONODE: it is not.  NULL: none is */
    const bool *comp;     /* [component] which take part; NULL: all */
    const int64_t *slow;  /* [rl_order_starts + order] time that a conversion to this order takes beyond what an ordinary one does; NULL: none does */
} rl_posing;

/* The problem of some of the ops: of twins the first (twins.c), and where the model as it stands costs something; or of all. */
typedef struct { rl_arena mem; rl_problem q; uint32_t *op; } rl_posed;
void rl_pose(rl_plan *p, const rl_scale *s, const rl_posing *how, rl_posed *out);
/* sol.cfg becomes that of all ops; the problem is gone. */
rl_status rl_posed_solve(rl_plan *p, rl_posed *x, double limit, rl_solution *sol);
#endif
