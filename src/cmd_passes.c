/* The command passes. */
#include <stdio.h>

#include "cmd.h"

rl_status rl_cmd_passes(rl_line *l) {
    (void)l;
#define PASS(name, summary) printf("%-10s %s\n", #name, summary);
#include "../passes/passes.def"
#undef PASS
    return RL_OK;
}
