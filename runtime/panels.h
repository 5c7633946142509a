/* Products with a matrix that is packed: y[m, n] = a[m, k] * b[k, n].
 *
 *   int64_t count = rl_panels_count(n, k);                          floats of the packed form
 *   rl_panels w = rl_panels_pack(rows, b, n, k, n, 1, room);        room: `count` floats; b: here row-major, its strides n and 1
 *   rl_panels_product p = {.a = a, .am = k, .m = m, .y = y, .ym = n, .start = bias};
 *   rl_panels_multiply(rt, &w, &p);                                 in threads where it is worth that
 *
 * Packed are the first `width` columns for each of the k rows, then the next, ...; of the last ones as many as make whole vectors, filled with
 * zeros.  So a tile of some rows of y and `width` columns is summed in registers, from memory that lies side by side.
 * The order of a sum depends on m and k only, not on the threads. */
#ifndef RL_PANELS_H
#define RL_PANELS_H
#include "rows.h"
#include "rt.h"

enum { RL_PANEL_LANES = 16 }; /* floats of a vector */
static inline int64_t rl_panel_padded(int64_t n) { return (n + RL_PANEL_LANES - 1) / RL_PANEL_LANES * RL_PANEL_LANES; }

typedef struct {
    const rl_rows *rows;
    const float *p;
    int64_t n, k;
} rl_panels;

int64_t rl_panels_count(int64_t n, int64_t k);
/* by_k, by_n: the strides of b. */
rl_panels rl_panels_pack(const rl_rows *rows, const float *b, int64_t n, int64_t k, int64_t by_k, int64_t by_n,
                         float *room);

/* All of them times `by`, and column j times scale[j] (NULL: 1); to may be b's own. */
void rl_panels_scale(const rl_panels *b, float by, const float *scale, float *to);

/* Sees y[row .. row+m-1, column .. column+n-1], at y, when it is done and still in the cache. */
typedef void rl_panels_end(const void *how, float *y, int64_t ym, int64_t row, int64_t column, int64_t m, int64_t n);

/* Rows of a and y are am and ym apart, their elements side by side. */
typedef struct {
    const float *a;
    float *y;
    int64_t m, am, ym;
    const float *start; /* what sums begin with: [n], or y itself; NULL: 0 */
    rl_panels_end *end; /* NULL: none */
    const uint32_t *at; /* [m] row i goes to  y + at[i] * ym, start is no y; NULL: i */
    const void *how;
} rl_panels_product;
void rl_panels_multiply(rl_rt *rt, const rl_panels *b, const rl_panels_product *p);

#endif
