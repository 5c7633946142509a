/* What a row of model_ops.def tells its recipe. */
#ifndef FUZZ_MODEL_ARGS_H
#define FUZZ_MODEL_ARGS_H

enum { ALPHA = 1, OUTPUTS3, RANK4 };                       /* unary: an attribute alpha; three outputs; N, C and two more dims */
enum { BY_CONSTANT = 1, SAME_SHAPE };                      /* binary: the second operand is 1, 2, 3; does not broadcast */
enum { POOL_AVERAGE = 1, POOL_MAX, POOL_LP };
enum { CONV_TRANSPOSE = 1 };
enum { FUSED = 1 };                                        /* matmul: with flags that swap the operands */
enum { NHWC_CONV = 1, NHWC_POOL };
enum { QLINEAR_BINARY = 1, QLINEAR_WHERE };

#endif
