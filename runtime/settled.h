/* Values that the sizes of the inputs settle: what is computed of Shapes and constants only.
 *
 *   s = Shape(x)  b = Gather(s, 0)  r = Range(0, b, 1)  m = Less(r, b)      the same in every run of these sizes
 *   y = Where(m, x, z)                                                     the only one of the five that runs again
 *
 * Which values these are follows from the graph: a value's content, and its dims, hang on what is in the inputs, or on their sizes alone.
 * A plan (plan.h) is for one set of sizes.  The second run by one sees how large these values are, the next keeps what steps read that
 * still run, and those after it run these alone.  New sizes, new plan: all is computed again. */
#ifndef RL_SETTLED_H
#define RL_SETTLED_H
#include "exec.h"

/* A run looks how large they are; one copies what is kept; those after it go by that; or there is nothing to be had. */
typedef enum { RL_SETTLED_LOOK, RL_SETTLED_COPY, RL_SETTLED_KEPT, RL_SETTLED_NOT } rl_settled_stage;
typedef struct { uint32_t step, *drop, ndrop; } rl_settled_run; /* drop: what only steps that do not run would read after it */

/* Of one plan, in its arena. */
typedef struct rl_settled {
    rl_settled_stage stage;
    size_t *nbyte;        /* [value] from its first byte to its last, in the run that looked; NULL: none has */
    struct { rl_value v; rl_tensor t; } *give; /* what is kept */
    uint32_t ngive;
    rl_settled_run *run;  /* the steps that run */
    uint32_t nrun;
} rl_settled;

/* Sets x->settles; NULL where there is nothing. The last thing to be done when a graph is prepared. */
void rl_settled_find(rl_exec *x);
/* What a run of this frame has to do about it: nothing (NULL), all steps and then rl_settled_note after each, or the steps that are kept apart. */
rl_settled *rl_settled_of(const rl_frame *f);
/* Gives the frame what was kept. */
void rl_settled_give(rl_frame *f, const rl_settled *s);
/* Step i has run; rl_settled_end: all have. */
void rl_settled_note(const rl_frame *f, rl_settled *s, uint32_t i);
void rl_settled_end(const rl_exec *x, rl_settled *s);
/* Before the plan's arena goes. */
void rl_settled_drop(rl_settled *s);

#endif
