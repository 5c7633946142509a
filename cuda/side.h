/* An operand of a product as a matrix counted by columns, which is what cuBLASLt wants (blaslt.c; test gpu_index).
 *
 * A row-major c[m,n] is the n-by-m matrix c', so what is asked for is c' = b' a':
 *
 *   b[k,n], neighbours along n: its n-by-k, as it is            neighbours along k: its k-by-n, turned
 *   a[m,k], neighbours along k: its k-by-m, as it is            neighbours along m: its m-by-k, turned */
#ifndef RL_CUDA_SIDE_H
#define RL_CUDA_SIDE_H
#include <stdbool.h>
#include <stdint.h>

typedef struct { bool turned; uint64_t rows, columns; int64_t ld; } rl_side;

/* first: the operand b, whose `outer` is n, else a, whose `outer` is m. False: its neighbours lie along neither dim. */
static inline bool rl_side_of(uint32_t outer, int64_t by_outer, uint32_t k, int64_t by_k, bool first, rl_side *s) {
    bool along_outer = by_outer == 1 || outer == 1, along_k = by_k == 1 || k == 1;
    if (first ? along_outer : !along_k && along_outer) *s = (rl_side){!first, outer, k, by_k};
    else if (along_k) *s = (rl_side){first, k, outer, by_outer};
    else return false;
    if (s->columns == 1) s->ld = (int64_t)s->rows;
    return s->ld >= (int64_t)s->rows;
}

#endif
