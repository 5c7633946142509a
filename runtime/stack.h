/* What a body makes in each of its runs, put side by side: the outputs of Loop and Scan, and ConcatFromSequence. */
#ifndef RL_STACK_H
#define RL_STACK_H
#include "rt.h"

typedef struct { rl_tensor *p; uint32_t n, cap; } rl_tensors;

/* t without dim `axis`, which is 1 or of which only place 0 is meant. */
rl_tensor rl_view_without(const rl_tensor *t, uint32_t axis);
/* Output `output` becomes the items, n > 0, along a new axis; reversed: the last first. */
rl_status rl_call_stack(rl_call *c, uint32_t output, const rl_tensor *item, uint32_t n, int64_t axis, bool reversed);
/* The same of what output `port` of a body made; without items its declared type says what is stacked. Drops the items. */
rl_status rl_call_stack_made(rl_call *c, uint32_t output, rl_tensors *items, int64_t axis, bool reversed, const rl_graph *body,
                             uint32_t port);

#endif
