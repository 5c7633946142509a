/* What candidates.c and what it is made of share: the configurations of one op (configs.c), and those of ops that look alike (memo.c). */
#ifndef RL_CONFIGS_H
#define RL_CONFIGS_H
#include "plan.h"

#define RL_MAXLEVEL 1

/* Configuration 0.  Returns the orders at its pins. */
uint32_t *rl_logical_config(rl_plan *p, rl_oplegal *op);
/* All of them: every one, or those of up to maxlevel that the known orders lead to.  Orders that are new become known. */
void rl_op_configs(rl_plan *p, rl_oplegal *op, bool full, uint32_t maxlevel, rl_arena *tmp);
/* Combinations of permutations, form by form: no fewer than the configurations.  Few enough to look at every one? */
uint64_t rl_count_configs(const rl_oplegal *op);
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

/* The first of its kind, and of one of these components? */
static inline bool rl_is_worked_on(const rl_plan *p, uint32_t op, const bool *comp) {
    return p->op.p[op].like == op && rl_may_move(&p->op.p[op]) && comp[p->op.p[op].comp];
}
/* candidates.c.  The active components in which no class has more atoms than that, and no op too many configurations; in p->mem. */
bool *rl_small_components(const rl_plan *p, uint32_t mostatom);
/* Nothing is known any more of the orders of some components, but how the model stands. */
void rl_forget_orders(rl_plan *p, const bool *comp);
/* Twins take over what the first of their kind has.  What is added to one later is its own. */
void rl_share_candidates(rl_plan *p);
#endif
