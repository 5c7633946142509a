/* What a configuration costs a target beyond conversions (src/targets.def).
 *
 *   SOFTMAX_OFF_LAST   Softmax or LogSoftmax with anything after its axis
 *   REDUCE_OFF_LAST    a reduction with anything after the dims that it reduces
 *   GEMM_TRANS_A       Gemm that reads its data transposed
 *   GEMM_TRANS_OUT     Gemm that makes its result transposed
 *   WEIGHT_LEFT        MatMul with the weight on the left
 *   SWAPPED_PRODUCT    MatMul of two variables as the transposed product
 *   CONCAT_LAST        Concat or Split along the innermost dim */
#ifndef RL_CHARGE_H
#define RL_CHARGE_H
#include "plan.h"

enum { RL_SOFTMAX_OFF_LAST, RL_REDUCE_OFF_LAST, RL_GEMM_TRANS_A, RL_GEMM_TRANS_OUT, RL_WEIGHT_LEFT, RL_SWAPPED_PRODUCT,
       RL_CONCAT_LAST, RL_NCHARGE };

/* The charges of a target, in tenths of a conversion; NULL when there is no such target. */
const int64_t *rl_charges(const char *target);
/* Of one configuration (config 0 is the model as it stands), in tenths. */
int64_t rl_config_charge(const rl_plan *p, const rl_oplegal *op, const rl_config *c, const int64_t *charge);

/* What moving a class from one order to another takes, in units of one byte copied by an ordinary Transpose.  A move of one
 * group of dims is ordinary; any other permutation is several times slower in the runtimes users have; and where only MatMul
 * reads the result, swapping the last two groups is nothing, since their MatMul takes it in. Every move has a fixed part. */
double rl_move_cost(const rl_cls *c, const uint8_t *from, const uint8_t *to, bool only_matmul);
#define RL_GENERIC_MOVE 6.0
#define RL_FIXED_MOVE 4096.0
/* A rewrite that saves less than this share of the movement is not worth the risk of breaking what a runtime fuses. */
#define RL_WORTH_IT 0.95

#endif
