/* Any bytes as a model: it is read or refused with a message; what was read is written as the same bytes. */
#include <string.h>

#include "../../src/onnx.h"
#include "fuzz.h"

static void write_again(const rl_graph *g, const uint8_t *p, size_t n) {
    rl_arena mem;
    rl_span out;
    if (RL_PROTECT(g->ctx)) return;
    rl_arena_init(&mem, g->ctx);
    must(rl_onnx_pack(g, NULL, &mem, &out) == RL_OK, "a model that was read can be written", g->ctx);
    must(out.n == n && memcmp(out.p, p, n) == 0, "the same bytes", g->ctx);
    rl_arena_free(&mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    rl_ctx *ctx = rl_ctx_new(FUZZ_MEMORY);
    rl_graph *g;
    if (!ctx) return 0;
    if (rl_onnx_read_bytes(ctx, p, n, NULL, NULL, &g) == RL_OK) {
        write_again(g, p, n);
        rl_graph_free(g);
    } else {
        must(ctx->error[0] && !strchr(ctx->error, '\n'), "a refusal is one line", ctx);
    }
    rl_ctx_free(ctx);
    return 0;
}
