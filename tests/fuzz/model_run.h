/* Two models on the same inputs in the reference runtime. */
#ifndef FUZZ_MODEL_RUN_H
#define FUZZ_MODEL_RUN_H
#include "../../src/ir.h"

typedef enum { MODEL_RAN, MODEL_NOT_RUN /* the first cannot be run here, or the second has ops of a runtime's own */ } model_ran;

/* Whole numbers and quarters go in.  RL_EDIFFER: outputs differ by more than a sum in another order makes of them; what that is, is
 * found by running a again, the last digits of all that is not exact changed at random: a jump (ArgMax, a rounding) then shows as one.
 * foreign: b may have ops that have no kernel here. */
rl_status model_compare(rl_graph *a, rl_graph *b, uint64_t seed, bool foreign, model_ran *ran);

#endif
