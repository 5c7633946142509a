/* The command bench-move: runtime/move_cmd.c carries it out. */
#include "cmd.h"

rl_status rl_cmd_bench_move(rl_line *l) {
    l->move.threads = l->run.threads;
    return rl_move_bench(l->ctx, &l->move);
}
