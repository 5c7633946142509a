/* Control flow: nodes with bodies. */
#include "kernels.h"

rl_status rl_ref_if(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *t = rl_call_as(c, 0, RL_BOOL);
    if (rl_numel(t) != 1) return rl_call_fail(c, RL_EMODEL, "the condition has %lld elements", (long long)rl_numel(t));
    rl_tensor *out = rl_new(c->tmp, rl_tensor, c->nout);
    RL_TRY(rl_call_body(c, *(const bool *)rl_data(t) ? "then_branch" : "else_branch", NULL, 0, out, c->nout));
    for (uint32_t i = 0; i < c->nout; i++) rl_call_give(c, i, out[i]);
    return RL_OK;
}
