/* Model-local functions: each is a graph of its own, with its inputs and outputs in logical order, and optimized as one.
 *
 *   what does a call make?              what the function makes of what this call gives (rl_calls_infer)
 *   what may be taken for granted       what all calls agree on: every call counts that is in the file then (rl_calls_written)
 *   when the function is written anew?
 *
 *   F(x f32[2,4,1]) -> y, and F(z f32[2,4,5]), which nothing reads    y is made by an F of f32[2,4,1]; whether F may be written for that alone
 *                                                                    hangs on whether the main graph is written, without the second call */
#ifndef RL_FUNCTIONS_H
#define RL_FUNCTIONS_H
#include "pass.h"

typedef struct rl_calls rl_calls;

/* The calls of a graph and the bodies in it, with the types of their arguments as these were when they were looked for. */
typedef struct {
    struct rl_callsite *p;
    uint32_t n, cap;
} rl_callsites;

/* Who calls whom among main and its functions.  In mem, which must be there as long. */
rl_calls *rl_calls_of(rl_graph *main, rl_arena *mem);
/* Functions after all that call them: *order has so many.  Those that lead to themselves are not among them. */
uint32_t rl_calls_order(const rl_calls *c, const uint32_t **order);

/* A graph with what its calls make: main, or what it was rewritten to. */
rl_status rl_calls_infer(rl_calls *c, rl_graph *g);
/* Main, and all functions by the calls that are read; those that cannot be inferred are doubtful.  as_read: all calls of main, with their types. */
rl_status rl_calls_infer_all(rl_calls *c, rl_callsites *as_read, rl_arena *tmp);

/* The second question.  To begin with the calls of main as it was written (NULL: as_read) are added. */
rl_status rl_calls_written(rl_calls *c, rl_graph *main, rl_callsites as_read, rl_arena *tmp);
/* Then, for each function after its callers: it gets its types by the calls that were added, and is inferred; it may turn doubtful.  When it has
 * been written, its own calls are added, if any calls it. */
void rl_calls_give(rl_calls *c, uint32_t function);
bool rl_calls_any(const rl_calls *c, uint32_t function);
rl_callsites rl_calls_in(const rl_calls *c, const rl_graph *g, rl_arena *mem);
void rl_calls_add(rl_calls *c, rl_callsites s);
/* All of that where the result is there: `done`, of which main and functions have types. */
rl_status rl_calls_settle(rl_calls *c, rl_graph *done, rl_callsites as_read, rl_arena *tmp);

/* pipeline.c: types of the model and its functions, by the calls that are read; r->calls; as_read as above. */
rl_status rl_infer_model(rl_pass_run *r, rl_callsites *as_read);

#endif
