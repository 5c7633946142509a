/* prove_order.c, for prove.c. */
#ifndef RL_PROVE_ORDER_H
#define RL_PROVE_ORDER_H
#include "../src/cert.h"

/* The part's ops as few values are in use at a time; not better after the deadline (rl_work_seconds).  In mem. */
void rl_prove_arrange(rl_arena *mem, const rl_cert *c, rl_cert_part *part, double deadline);

#endif
