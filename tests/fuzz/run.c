/* Any bytes as a model, run on random inputs: it runs or is refused; what it takes is bounded. */
#include "../../runtime/run_cmd.h"
#include "../../src/onnx.h"
#include "fuzz.h"

enum { NODES = 2000, MEMORY = 4 << 20 };

static int stop(void *user) {
    return ++*(int *)user > NODES;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    int nodes = 0;
    const rl_context host = {.struct_size = sizeof host, .user = &nodes, .stop = stop};
    rl_ctx *ctx = rl_ctx_new_for(MEMORY, &host);
    rl_graph *g;
    if (!ctx) return 0;
    rl_text out = {.mem = &ctx->mem};
    if (rl_onnx_read_bytes(ctx, p, n, NULL, NULL, &g) == RL_OK) {
        if (rl_run_model(g, &(rl_runopt){.seed = n}, &out) != RL_OK) must(ctx->error[0], "a refusal says why", ctx);
        rl_graph_free(g);
    }
    rl_ctx_free(ctx);
    return 0;
}
