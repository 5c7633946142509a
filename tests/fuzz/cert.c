/* Any bytes as a certificate: it is read or refused, and checked within its limits; what was read prints as a text that reads. */
#include "../../src/cert.h"
#include "fuzz.h"

static void read_and_check(rl_ctx *ctx, const char *p, size_t n) {
    rl_cert c, again;
    rl_text t = {.mem = &ctx->mem};
    if (RL_PROTECT(ctx)) return;
    if (rl_cert_parse(ctx, &ctx->mem, "input", p, n, &c) != RL_OK) return;
    rl_status s = rl_cert_check(ctx, &c, 1 << 12, 1 << 20, NULL);
    must(s == RL_OK || s == RL_EPROOF, "a certificate holds or does not", ctx);
    if (RL_PROTECT(ctx)) return;
    rl_cert_print(&c, &t);
    must(rl_cert_parse(ctx, &ctx->mem, "again", t.p, t.n, &again) == RL_OK, "what is printed can be read", ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    rl_ctx *ctx = rl_ctx_new(FUZZ_MEMORY);
    if (!ctx) return 0;
    read_and_check(ctx, (const char *)p, n);
    rl_ctx_free(ctx);
    return 0;
}
