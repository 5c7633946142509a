/* Any bytes as a graph in text: it is read or refused; what was read prints as a text that reads as the same. */
#include <string.h>

#include "../../src/text.h"
#include "fuzz.h"

static bool parse(rl_ctx *ctx, const char *p, size_t n, rl_graph **g) {
    if (RL_PROTECT(ctx)) return false;
    return rl_text_parse(ctx, "input", p, n, g) == RL_OK;
}

static bool print(const rl_graph *g, rl_text *t) {
    if (RL_PROTECT(g->ctx)) return false;
    t->mem = &g->ctx->mem;
    rl_text_print(g, false, t);
    return true;
}

/* Did inference let a contradiction pass, here or in a body?  Then what stands for what depends on which types are declared. */
static bool is_doubtful(const rl_graph *g) {
    if (g->doubtful) return true;
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph && is_doubtful(n->attr[k].graph)) return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    rl_ctx *ctx = rl_ctx_new(FUZZ_MEMORY);
    rl_graph *g, *again;
    rl_text first = {0}, second = {0};
    if (!ctx) return 0;
    if (parse(ctx, (const char *)p, n, &g) && print(g, &first)) {
        bool read = parse(ctx, first.p, first.n, &again);
        bool limit = strstr(ctx->error, "memory") || strstr(ctx->error, "at most"); /* inference made a tensor of more dims than text may have */
        must(read || limit, "what is printed can be read", ctx);
        bool derived = strstr(first.p, "'?") != NULL; /* a size named by what an unknown one was called, which is counted anew */
        if (read && !derived && !is_doubtful(g) && print(again, &second))
            must(first.n == second.n && memcmp(first.p, second.p, first.n) == 0, "and prints as the same text", ctx);
    }
    rl_ctx_free(ctx);
    return 0;
}
