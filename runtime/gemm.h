/* Matrix products: y += a * b, many at once, blocked for caches and in threads.
 *
 *   rl_gemm g = {.type = RL_F32, .count = 1, .m = 2, .n = 5, .k = 3, .a = a, .am = 3, .ak = 1, .b = b, .bk = 5, .bn = 1, .y = y, .ym = 5};
 *   rl_gemm_run(rt, &g);         y[2,5] += a[2,3] * b[3,5], all row-major; y must hold something: zeros, or a bias
 *
 * Any strides of a and b; rows of y are contiguous.  Each sum is carried in the type itself, in an order that depends on the shapes
 * only.  A convolution gives `rows` instead of b: its b, the image's patches, is made block by block and never stands in memory. */
#ifndef RL_GEMM_H
#define RL_GEMM_H
#include "rt.h"

typedef struct rl_gemm rl_gemm;
/* Writes b[k0 .. k0+nk-1][j0 .. j0+nj-1] of product i to `to`, whose rows are ld elements apart. */
typedef void rl_gemm_rows(const rl_gemm *g, int64_t i, int64_t k0, int64_t nk, int64_t j0, int64_t nj, void *to, int64_t ld);

struct rl_gemm {
    rl_dtype type;                  /* RL_F32, RL_F64, RL_I32 or RL_I64 (integers wrap) */
    int64_t count, m, n, k;
    const void *a, *b;
    void *y;
    int64_t am, ak, bk, bn, ym;     /* strides, in elements */
    const int64_t *aat, *bat, *yat; /* where matrix i of the count begins, in elements; NULL: all at 0 */
    rl_gemm_rows *rows;             /* NULL: b is the matrix above */
    const void *arg;                /* of rows */
};
void rl_gemm_run(rl_rt *rt, const rl_gemm *g);

#endif
