/* What a configuration costs a target beyond conversions (src/targets.def). */
#ifndef RL_CHARGE_H
#define RL_CHARGE_H
#include "plan.h"

/* How a form of kind RL_FORM_FUSED is written: which operand (0, 1) stands on the left, and the flags of both. */
typedef struct { uint32_t left, nflag; bool trans_left, trans_right, batch_left, batch_right; } rl_fused;
rl_fused rl_fused_as(const rl_form *f);

/* Notes what each op is charged, by all of its atoms: a restricted plan (bound_restrict.c) has the same charges, or less where atoms are gone. */
void rl_charge_all(rl_plan *p);
/* The class of what a charge is a part of: the result, of a Gemm its bias if it has one; of Concat and Split the whole, which their
 * operands begin with, as those of Tile do with the result. */
uint32_t rl_charged_class(const rl_plan *p, const rl_oplegal *op);
/* Of a product: does DequantizeLinear make the weight, or the right operand of two?  Runtimes multiply the bytes, and have that for a product as exporters
 * write it. */
bool rl_is_of_bytes(const rl_plan *p, const rl_oplegal *op);

/* What a conversion of the class takes, whichever groups of dims move; what a tenth of one takes of what the op is charged by. */
int64_t rl_move_time(const rl_plan *p, uint32_t cls);
int64_t rl_charge_unit(const rl_plan *p, const rl_oplegal *op);
/* What the op is charged in its i-th configuration, as a time. */
int64_t rl_charge_time(const rl_plan *p, const rl_oplegal *op, uint32_t i);

/* Of one configuration (config 0 is the model as it stands), in tenths. */
int64_t rl_config_charge(const rl_plan *p, const rl_oplegal *op, const rl_config *c);

/* taken.c: Is the op a product that may take swaps of its operands in, and does it by time (p->swaps)?  Adds the forms in which it does. */
bool rl_may_swap(const rl_plan *p, const rl_oplegal *op);
bool rl_takes_in(const rl_plan *p, const rl_oplegal *op);
/* Swaps the last two groups of an operand's; false where there are fewer. */
bool rl_swap_last(uint8_t *seq);
/* comp: [ncomp] the components with such a product. */
void rl_may_swap_in(const rl_plan *p, bool *comp);
void rl_take_in(rl_plan *p, rl_oplegal *op);
/* Of a copy of the plan: candidates in which they do, made of those that it has. */
void rl_take_in_all(rl_plan *q);
/* Likewise: without those that are charged more than the model's own. */
void rl_drop_charged(rl_plan *q);
/* cfg of such a copy becomes that of the plan: what takes a swap in names the order that it has then. */
void rl_untake_all(const rl_plan *q, const rl_plan *p, uint32_t *cfg);
/* What an op takes in under some configurations: at operand 0, 1 the order that it counts as, RL_NONE: the one that it names.  form, token: in which it
 * does, if any. */
typedef struct { bool any; uint32_t form, order[2]; const uint8_t *token; } rl_taken;
rl_taken *rl_taken_of(const rl_plan *p, const uint32_t *cfg, rl_arena *mem);

/* price.c: the class of each conversion that there is under some configurations: once for each order that ops name at it, but the first. taken: what they read
 * in another order than they name, or NULL. */
typedef struct { uint32_t *p, n, cap; } rl_conversions;
rl_conversions rl_conversions_of(const rl_plan *p, const uint32_t *cfg, const rl_taken *taken, rl_arena *mem);

/* What moving a class from one order to another takes on the plan's target (rl_target_move).  A move of one group of dims is
 * ordinary, and so is what leaves the last dims in place, 32 bytes or more, as rows are copied; any other permutation is several times
 * slower in the runtimes users have; where only MatMul reads the result, on the right, swapping the last two groups may be nothing, since their
 * MatMul takes it in; and so may a Transpose right behind a Conv that puts the channels last (from_conv), since their Conv writes it. */
int64_t rl_move_cost(const rl_plan *p, const rl_cls *c, const uint8_t *from, const uint8_t *to, bool only_matmul, bool from_conv);
/* A rewrite that saves less than this share of the movement, in percent, is not worth the risk of breaking what a runtime
 * fuses. */
#define RL_WORTH_IT 5

#endif
