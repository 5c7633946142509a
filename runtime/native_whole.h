/* What a model takes without a plan: the time that a profile starts from (native_probe.h).
 *
 *   a run                      1200 us       the least of runs in which nothing else is measured
 *   conv1   in such a run       410 us       between its neighbours, with the caches as they leave them; the least, too
 *   relu1                        38 us
 *   around each step           0.4 us       what is left, over all steps; where nothing is, as the clock is read between steps, they take
 *                                           less in proportion
 *
 * What else a machine does makes runs longer, never shorter: so the least of many says most about the model.
 *
 * Kernels measured alone, one by one, add up to more or less than they take side by side; so what is measured alone says only how much longer a
 * kernel takes in other layouts, and this says longer than what. */
#ifndef RL_NATIVE_WHOLE_H
#define RL_NATIVE_WHOLE_H
#include "exec.h"

typedef struct { int64_t ns, *step, around; } rl_whole; /* ns of a run; of each step, in the graph's memory; around each step */
/* Of n prepared graphs, whose runs take turns: [n] each. So many runs of each; 0: about a second, or 7 runs of a slow model. */
rl_status rl_whole_measure(rl_exec *const *x, uint32_t n, const rl_tensor *in, uint32_t runs, rl_whole *w);
/* [as->nstep] what the steps of `as` take in x, which is the same graph with more of them joined (prepare.c), and with moves where it has a plan.
 * A convolution that writes pixels has the DepthToSpace's time, too, the last of a chain of Reshapes and Transposes that of all.  -1: it is done
 * by another, or not at all. */
int64_t *rl_whole_steps(rl_arena *mem, const rl_exec *as, const rl_exec *x, const rl_whole *w);
/* A run in whole once more, as the machine is now. */
rl_status rl_whole_again(rl_exec *x, const rl_tensor *in, uint32_t runs, int64_t *ns);

#endif
