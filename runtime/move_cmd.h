/* The command `bench-move`, as a function: the move kernel's bandwidth as a share of memcpy's. */
#ifndef RL_MOVE_CMD_H
#define RL_MOVE_CMD_H
#include "../src/base.h"

/* What was typed; NULL or 0 where nothing was. */
typedef struct {
    const char *only; /* cases whose name contains this */
    const char *isa;  /* best, plain, avx2, avx512 */
    uint64_t most;    /* bytes of the largest array */
    uint32_t threads;
    bool list;        /* the grid only */
} rl_moveopt;

/* Prints to stdout; what went wrong is in the context. */
rl_status rl_move_bench(rl_ctx *ctx, const rl_moveopt *o);

#endif
