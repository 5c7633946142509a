/* The command targets. */
#include "cmd.h"

/* All targets, or the one that --target names. */
static rl_status print_targets(rl_line *l, rl_arena *mem) {
    rl_targets all = {0};
    rl_text t = {.mem = mem};
    const rl_target *one = NULL;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    RL_TRY(rl_targets_builtin(mem, &all));
    if (l->named_target) RL_TRY(rl_target_find(mem, l->pass.target, &one));
    if (one) rl_target_print(one, &t);
    for (uint32_t i = 0; i < all.n && !one; i++) {
        if (i) rl_put(&t, "\n");
        rl_target_print(&all.p[i], &t);
    }
    return rl_write_stdout(l, t.p, t.n);
}

rl_status rl_cmd_targets(rl_line *l) {
    rl_arena mem;
    rl_arena_init(&mem, l->ctx);
    rl_status s = print_targets(l, &mem);
    rl_arena_free(&mem);
    return s;
}
