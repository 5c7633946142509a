/* Model-local functions: each is a graph of its own, with its inputs and outputs in logical order, and optimized as one. */
#ifndef RL_FUNCTIONS_H
#define RL_FUNCTIONS_H
#include "pass.h"

/* Infers all functions of main, whose own types are known, from the calls.  Those that cannot be are doubtful.  anew: it was done before,
 * and since then calls may have gone, so that more is known. */
rl_status rl_functions_infer(rl_graph *main, bool anew, rl_arena *tmp);

#endif
