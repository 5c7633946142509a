/* The command ops. */
#include <stdio.h>

#include "cmd.h"
#include "ops.h"

static const char *class_name(rl_class c) {
    static const char *const names[] = {
        [RL_POINTWISE] = "POINTWISE", [RL_EXPAND] = "EXPAND", [RL_REDUCE] = "REDUCE", [RL_GLOBALPOOL] = "GLOBALPOOL", [RL_ARG] = "ARG",
        [RL_ALONG] = "ALONG", [RL_CONCAT] = "CONCAT", [RL_SPLIT] = "SPLIT", [RL_SLICE] = "SLICE", [RL_PAD] = "PAD", [RL_TILE] = "TILE",
        [RL_GATHER] = "GATHER", [RL_ELEMENTS] = "ELEMENTS", [RL_ONEHOT] = "ONEHOT", [RL_QDQ] = "QDQ", [RL_BATCHNORM] = "BATCHNORM", [RL_NORM] = "NORM", [RL_MATMUL] = "MATMUL",
        [RL_GEMM] = "GEMM", [RL_EINSUM] = "EINSUM", [RL_ROWS] = "ROWS", [RL_WHOLE] = "WHOLE", [RL_POOL] = "POOL", [RL_RESIZE] = "RESIZE", [RL_MOVING] = "MOVE", [RL_SHAPE] = "SHAPE", [RL_OPAQUE] = "OPAQUE"};
    return names[c];
}

rl_status rl_cmd_ops(rl_line *l) {
    (void)l;
    for (uint32_t i = 0; i < RL_OP_OPAQUE; i++) {
        const rl_oprow *r = &rl_optable[i];
        char name[80];
        snprintf(name, sizeof name, "%s%s%s", r->domain, *r->domain ? "::" : "", r->type);
        printf("%-50s %-10s%s%s\n", name, class_name(r->cls), *r->roles ? " " : "", r->roles);
    }
    return RL_OK;
}
