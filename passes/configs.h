/* What candidates.c and what it is made of share: the configurations of one op (configs.c), and those of ops that look alike (memo.c). */
#ifndef RL_CONFIGS_H
#define RL_CONFIGS_H
#include "plan.h"

#define RL_MAXLEVEL 1

/* Configuration 0.  Returns the orders at its pins. */
uint32_t *rl_logical_config(rl_plan *p, rl_oplegal *op);
/* All of them: every one, or those of up to maxlevel that the known orders lead to.  Orders that are new become known. */
void rl_op_configs(rl_plan *p, rl_oplegal *op, bool full, uint32_t maxlevel, rl_arena *tmp);
/* Few enough to look at every one. */
bool rl_has_few_configs(const rl_oplegal *op);

/* memo.c: the same as rl_op_configs, done once for ops that look alike and whose classes know the same orders.  All ops must have had
 * their configuration 0, and no order may be added in between but by it. */
typedef struct rl_memo rl_memo;
rl_memo *rl_memo_new(rl_plan *p, rl_arena *tmp);
void rl_memo_configs(rl_memo *m, uint32_t op, bool full, uint32_t maxlevel);
/* Grows with every order known of a class and with every level that falls. */
uint32_t rl_memo_known(rl_memo *m, uint32_t cls);
/* The same number for ops that look alike: all that their configurations and charges depend on, but for the orders known of their classes. */
uint32_t rl_memo_looks(rl_memo *m, uint32_t op);

/* twins.c: twin, and like of the classes and ops of twins.  extra: as for rl_candidates. */
void rl_twins(rl_plan *p, rl_memo *m, const int64_t *extra);
#endif
