/* Where values lie: one arena for all whose size is known before the run.
 *
 *   step  0  a = Conv(x)      8 bytes         a at 0 .. 8
 *         1  b = Relu(a)      8 bytes         a ends here: b is written over it
 *         2  c = Conv(b)      4 bytes         c at 8 .. 12
 *         3  d = Conv(c)      8 bytes         b has ended: d at 0 .. 8
 *   the arena has 12 bytes, and so many are alive in steps 2 and 3: no plan has fewer
 *
 * A block is what values share that are views of each other or written over each other.  The plan is a wish: a value that turns out
 * larger, or whose place is still taken (by a view that lives on, in a sequence, in the caller's hands), gets a storage of its own
 * (rl_tensor_new_in).  Sizes with symbols are known once the inputs are: the plan is made again where those changed.
 *
 * The first run of some sizes goes by a forecast: which values will share a block follows from how they lie in memory, and that is
 * the kernels' affair.  The run notes what it saw (rl_plan_note), and the next one goes by that. */
#ifndef RL_PLAN_H
#define RL_PLAN_H
#include "exec.h"
#include "home.h"
#include "settled.h"

typedef struct { size_t nbyte, at; uint32_t first, last; } rl_block; /* alive from step first to step last, both included */

/* Sets each block's `at` so that no two that are alive in one step overlap; the bytes of the arena. */
size_t rl_plan_place(rl_arena *tmp, rl_block *b, uint32_t n);
/* The most bytes alive in one of nstep steps: no arena is smaller. */
size_t rl_plan_least(rl_arena *tmp, const rl_block *b, uint32_t n, uint32_t nstep);

typedef struct rl_memplan {
    rl_arena mem;
    rl_storage *arena;  /* NULL: nothing is planned */
    uint32_t *block_of; /* [value] RL_NONE: not planned */
    rl_block *block;
    uint32_t nblock, nsize;
    uint32_t version;   /* counts the plans made */
    int64_t *size;      /* the dims of the inputs that it is for */
    bool exact, whole;  /* made from what a run saw; a run has seen all its steps */
    rl_homes homes;     /* of Concats in place */
    uint32_t missed;    /* values whose place was taken or too small */
    uint32_t *seen_of;  /* [value] the block that it turned out to have */
    struct { rl_block *p; uint32_t n, cap; } seen;
    rl_settled settled; /* what need not be computed again */
} rl_memplan;

/* x->plan for these inputs. */
void rl_plan_make(rl_exec *x, const rl_tensor *in);
/* The arena goes, and what was settled: for a graph that runs no more. */
void rl_plan_release(rl_exec *x);
/* This step has made its outputs. Runs on a device keep to the forecast. */
void rl_plan_note(const rl_exec *x, const rl_call *c, uint32_t step);

#endif
