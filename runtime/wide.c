/* Outputs that are computed in a wider type: see wide.h. */
#include "wide.h"

rl_tensor *rl_wide_make(rl_call *c, uint32_t i, rl_dtype t, rl_dtype wide, uint32_t rank, const int64_t *dim) {
    rl_tensor *y = rl_call_make(c, i, t, rank, dim);
    return t == wide ? y : rl_call_temp(c, wide, rank, dim);
}

void rl_wide_done(rl_call *c, uint32_t i, const rl_tensor *y) {
    if (i < c->nout && c->out[i].dtype != y->dtype) rl_convert(c->rt, &c->out[i], y, true);
}
