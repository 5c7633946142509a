/* Outputs that are computed in a wider type, and sums: see wide.h. */
#include "wide.h"

rl_tensor *rl_wide_make(rl_call *c, uint32_t i, rl_dtype t, rl_dtype wide, uint32_t rank, const int64_t *dim) {
    rl_tensor *y = rl_call_make(c, i, t, rank, dim);
    return t == wide ? y : rl_call_temp(c, wide, rank, dim);
}

void rl_wide_done(rl_call *c, uint32_t i, const rl_tensor *y) {
    if (i < c->nout && c->out[i].dtype != y->dtype) rl_convert(c->rt, &c->out[i], y, true);
}

#define SUM(S, T)                                                                                                    \
    static void sum_##S(const rl_row *r) {                                                                           \
        const T *a = r->in[0], *b = r->in[1];                                                                        \
        T *y = r->out;                                                                                               \
        for (int64_t i = 0; i < r->n; i++) y[i] = a[i * r->step[0]] + b[i * r->step[1]];                             \
    }
SUM(f32, float)
SUM(f64, double)

rl_status rl_wide_sum(rl_call *c, rl_dtype wide, rl_tensor *y, const rl_tensor *a, const rl_tensor *b) {
    return rl_each(c, wide, wide, wide == RL_F64 ? sum_f64 : sum_f32, y, (const rl_tensor *[]){a, b}, 2, NULL);
}
