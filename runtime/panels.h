/* Products with a matrix that is packed once and used often: y[m, n] += a[m, k] * b', b being n rows of k.
 *
 *   int64_t count = rl_panels_count(rows, n, k);              floats of the packed form
 *   rl_panels w = rl_panels_pack(rows, b, n, k, room);        room: `count` floats; w: the columns 0 .. width-1 for each of the k,
 *                                                             then the next `width`, ..., the last filled with zeros
 *   rl_panels_multiply(rt, &w, a, m, y, n);                   rows of y are n apart; in threads where it is worth that
 *
 * The order of a sum depends on m and k only, not on the threads. */
#ifndef RL_PANELS_H
#define RL_PANELS_H
#include "rows.h"
#include "rt.h"

typedef struct { const rl_rows *rows; const float *p; int64_t n, k; } rl_panels;

int64_t rl_panels_count(const rl_rows *rows, int64_t n, int64_t k);
rl_panels rl_panels_pack(const rl_rows *rows, const float *b, int64_t n, int64_t k, float *room);
void rl_panels_multiply(rl_rt *rt, const rl_panels *b, const float *a, int64_t m, float *y, int64_t ym);

#endif
