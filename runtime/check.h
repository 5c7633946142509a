/* optimize --check: before a model is written, it is run beside the original.
 *
 * Three runs: random inputs, then with 0, -0 and denormals among them, then with infinities and nan too.  Sizes that the model
 * leaves open are 2, 3, 4 ..., each symbol another one, so that a swap of two axes shows, or what else its ops need (sizes.h); where the
 * original does not run with these, 1, and then 64 and more. */
#ifndef RL_CHECK_H
#define RL_CHECK_H
#include "run_cmd.h"

typedef struct {
    rl_status (*original)(void *user, rl_graph **g); /* reads it; on failure *g may be there */
    rl_status (*result)(void *user, rl_graph **g);
    void *user;
    const rl_runopt *run; /* inputs from files, seed, tolerances */
} rl_checked;

/* RL_EDIFFER: they differ, or the result does not run.  RL_ELIMIT: the original cannot be run here, nothing is known.  The message says
 * which, and why.  What was done goes to `out`. */
rl_status rl_check_result(rl_ctx *ctx, const rl_checked *c, rl_text *out);

#endif
