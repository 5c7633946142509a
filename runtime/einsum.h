/* Einsum as products of matrices, for the CPU and for devices: the operands are views with a stride for each label, and only the products, two operands
 * at a time, differ. */
#ifndef RL_EINSUM_H
#define RL_EINSUM_H
#include "exec.h"

/* y[batch, m, n], row-major, = a[batch, m, k] * b[batch, k, n], of any strides and one type. */
typedef rl_status rl_product_fn(rl_call *c, const rl_tensor *a, const rl_tensor *b, const rl_tensor *y);

/* The node's output, of the operands as `wide`, which on a device is their own type. */
rl_status rl_einsum(rl_call *c, rl_dtype wide, rl_product_fn *product);

#endif
