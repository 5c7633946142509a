/* Products of tensors, as numpy's matmul: what MatMul and the quantized products share.
 *
 *   a[2,5,3] by b[3,4]  ->  y[2,5,4]        batch dims broadcast; a vector is a row (left) or a column (right) */
#ifndef RL_REF_MATMUL_H
#define RL_REF_MATMUL_H
#include "wide.h"

/* A vector as a matrix: a row (left) or a column; any other tensor as it is. */
rl_tensor rl_matrix_of(const rl_tensor *t, bool left);
/* t as batch dims, rows, columns: ahead, the rows lie before the batch; then swaps exchanges the two. A vector as it is. */
rl_tensor rl_matrix_laid(const rl_tensor *t, bool swaps, bool ahead);
/* The product's shape; RL_EMODEL where the operands do not fit. */
rl_status rl_matmul_dims(const rl_call *c, const rl_tensor *a, const rl_tensor *b, uint32_t *rank, int64_t *dim);
/* y (row-major, of rl_matmul_dims' shape) = a * b, all of one of rl_gemm's types, a and b of any strides. */
void rl_matmul(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y);

#endif
