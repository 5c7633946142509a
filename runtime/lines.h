/* Ops along an axis: a tensor as a dense matrix whose rows are its lines along that axis, and the loops over such rows.
 *
 *   f16[2,3,5], axis 1, computed in f32:   10 rows of 3 floats, in a tensor f32[2,5,3]
 *
 *   const rl_tensor *x = rl_lines_of(c, rl_call_in(c, 0), axis, RL_F32);      the input itself where it is that already
 *   rl_tensor *y = rl_lines_make(c, 0, RL_F16, RL_F32, rank, dim, axis);      what to fill, laid out alike
 *   ... for each row ...
 *   rl_lines_done(c, 0, y, axis);                                             output 0 is y, moved back and rounded
 *
 * The row loops below are written with LANES sums side by side, so that they vectorise; the order of a sum depends on n only. */
#ifndef RL_LINES_H
#define RL_LINES_H
#include "wide.h"

const rl_tensor *rl_lines_of(rl_call *c, const rl_tensor *t, uint32_t axis, rl_dtype type);
rl_tensor *rl_lines_make(rl_call *c, uint32_t i, rl_dtype t, rl_dtype wide, uint32_t rank, const int64_t *dim, uint32_t axis);
void rl_lines_done(rl_call *c, uint32_t i, const rl_tensor *lines, uint32_t axis);

/* Any view as a dense tensor of this type: itself, or a copy that lives until the node is done. */
const rl_tensor *rl_dense_as(rl_call *c, const rl_tensor *t, rl_dtype type);

/* How many rows of n elements make a piece of work for a thread. */
static inline int64_t rl_row_grain(int64_t n) { return RL_MAX(1, 8192 / RL_MAX(n, 1)); }

#define ROW_LOOPS(S, T)                                                                                              \
    T rl_row_max_##S(const T *x, int64_t n);                      /* NaN where one is; -inf of none */               \
    double rl_row_sum_##S(const T *x, int64_t n);                                                                    \
    double rl_row_square_##S(const T *x, int64_t n, T shift);     /* sum of (x - shift)^2 */                         \
    double rl_row_exp_##S(T *y, const T *x, int64_t n, T shift);  /* y = exp(x - shift); their sum; shift >= max x */\
    void rl_row_scale_##S(T *y, const T *x, int64_t n, T by, T shift) /* y = (x - shift) * by */
ROW_LOOPS(f32, float);
ROW_LOOPS(f64, double);
#undef ROW_LOOPS

/* y = softmax(x); NaN where every x is -inf. y may be x. */
void rl_row_softmax(rl_dtype t, void *y, const void *x, int64_t n);

#endif
