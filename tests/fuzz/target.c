/* Any bytes as a table of targets (--target FILE.def) or, where they have no line, as a descriptor of a buffer: read or refused; what
 * was read prints as a text that reads as the same. */
#include "../../src/target.h"

#include <string.h>

#include "fuzz.h"

static void print_all(const rl_targets *all, rl_text *t) {
    for (uint32_t i = 0; i < all->n; i++) rl_target_print(&all->p[i], t);
}

static void read_table(rl_ctx *ctx, const char *p, size_t n) {
    rl_targets all = {0}, again = {0};
    rl_text first = {.mem = &ctx->mem}, second = first;
    if (RL_PROTECT(ctx)) return;
    if (rl_targets_parse(&ctx->mem, "input", p, n, &all) != RL_OK) {
        must(ctx->error[0] && !strchr(ctx->error, '\n'), "a refusal is one line", ctx);
        return;
    }
    print_all(&all, &first);
    must(rl_targets_parse(&ctx->mem, "again", first.n ? first.p : "", first.n, &again) == RL_OK, "what is printed can be read", ctx);
    print_all(&again, &second);
    must(first.n == second.n && (!first.n || memcmp(first.p, second.p, first.n) == 0), "and prints as the same text", ctx);
}

static void read_descriptor(const char *p, size_t n) {
    rl_ctx none = {.error = ""};
    rl_desc d, again;
    rl_error e;
    char text[512], first[2048], second[2048];
    if (n >= sizeof text) return;
    memcpy(text, p, n);
    text[n] = 0;
    if (rl_desc_parse(text, &d, &e) != RL_OK) return;
    must(rl_desc_check(&d, 0, &e) == RL_OK, e.text, &none);
    must(rl_desc_bytes(&d) >= 0 && rl_min_buffer_bytes(&d) >= 0, "no size overflows", &none);
    if (rl_desc_print(&d, first, sizeof first) >= sizeof first) return;
    must(rl_desc_parse(first, &again, &e) == RL_OK, e.text, &none);
    must(rl_desc_print(&again, second, sizeof second) < sizeof second && strcmp(first, second) == 0, "prints as the same text", &none);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    rl_ctx *ctx = rl_ctx_new(FUZZ_MEMORY);
    if (!ctx) return 0;
    if (memchr(p, '\n', n)) read_table(ctx, (const char *)p, n);
    else read_descriptor((const char *)p, n);
    rl_ctx_free(ctx);
    return 0;
}
