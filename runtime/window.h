/* Sliding windows: what convolutions and pools share.
 *
 * Output place o of a dim reads, for tap t of the kernel, input place  o*stride - before + t*dilation  where there is one:
 *
 *   in 5, kernel 3, stride 2, dilation 1, pads 1 and 1:   out 3;  o=0 reads -1(none) 0 1,  o=1 reads 1 2 3,  o=2 reads 3 4 5(none)
 *
 * A kernel of this kind goes row by row of the output (its last dim) and tap by tap within it, so that its inner loop is one of
 * neighbours:
 *
 *   rl_taps taps = rl_taps_of(c->tmp, &w);
 *   for each row r:  for (int64_t t = 0; t < taps.n; t++)
 *       if (rl_tap_row(&w, &taps, t, place, &at))      where output 0 of the row reads in the input's plane
 *           for (int64_t j = taps.from[t]; j < taps.to[t]; j++) y[j] += x[at + j * taps.step] * k[t]; */
#ifndef RL_WINDOW_H
#define RL_WINDOW_H
#include "rt.h"

typedef struct {
    uint32_t r; /* spatial dims, at least 1 */
    int64_t in[RL_RANK], out[RL_RANK], kernel[RL_RANK], stride[RL_RANK], dilation[RL_RANK], before[RL_RANK], after[RL_RANK];
} rl_window;

/* How many places of dim i one window spans, from its first tap to its last. */
static inline int64_t rl_window_reach(const rl_window *w, uint32_t i) { return (w->kernel[i] - 1) * w->dilation[i] + 1; }

typedef enum { RL_AUTOPAD_NOTSET, RL_AUTOPAD_SAME_UPPER, RL_AUTOPAD_SAME_LOWER, RL_AUTOPAD_VALID } rl_autopad;
rl_autopad rl_window_padding(const rl_call *c);
/* kernel_shape (where missing: `kernel`; RL_EMODEL when that is NULL too), strides, dilations and pads; `in` is the caller's. */
rl_status rl_window_attrs(rl_call *c, uint32_t r, const int64_t *kernel, rl_window *w);
/* All of it for input x, [N, C, spatial...]: the output's dims too, by auto_pad and ceil_mode. */
rl_status rl_window_read(rl_call *c, const rl_tensor *x, const int64_t *kernel, rl_window *w);

/* The taps of a kernel in order, and which outputs of a row each reaches. */
typedef struct {
    int64_t n, step;    /* step: of the input from one output of a row to the next */
    int64_t *index;     /* [n][r] */
    int64_t *from, *to; /* [n] */
} rl_taps;
rl_taps rl_taps_of(rl_arena *mem, const rl_window *w);

/* Place of row `row` in the output dims but the last. */
static inline void rl_window_row(const rl_window *w, int64_t row, int64_t *place) {
    for (uint32_t i = w->r - 1; i-- > 0; row /= w->out[i]) place[i] = row % w->out[i];
}

/* False where the tap lies outside for this row; else *at is the place in the plane that output 0 of the row would read. */
static inline bool rl_tap_row(const rl_window *w, const rl_taps *t, int64_t tap, const int64_t *place, int64_t *at) {
    const int64_t *k = t->index + tap * w->r;
    int64_t sum = 0;
    for (uint32_t i = 0; i + 1 < w->r; i++) {
        int64_t p = place[i] * w->stride[i] - w->before[i] + k[i] * w->dilation[i];
        if (p < 0 || p >= w->in[i]) return false;
        sum = (sum + p) * w->in[i + 1];
    }
    *at = sum + k[w->r - 1] * w->dilation[w->r - 1] - w->before[w->r - 1];
    return t->from[tap] < t->to[tap];
}

#endif
