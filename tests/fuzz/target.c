/* Any bytes as a table of targets (--target FILE.def) or, where they have no line, as a descriptor of a buffer: read or refused; what
 * was read prints as a text that reads as the same. Views of a descriptor are descriptors. */
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

static void is_made(rl_status s, const rl_desc *d, const char *how) {
    must(s != RL_OK || rl_desc_check(d, 0, NULL) == RL_OK, how, &(rl_ctx){.error = ""});
}

static void slice_and_fill(const rl_desc *d, const rl_desc *from) {
    rl_desc x;
    for (uint32_t a = 0; a < d->rank; a++) {
        is_made(rl_desc_slice(d, a, 0, 1, d->dim[a] / 2, &x, NULL), &x, "the first half");
        is_made(rl_desc_slice(d, a, d->dim[a] - 1, -1, d->dim[a], &x, NULL), &x, "turned around");
        is_made(rl_desc_slice(d, a, 1, 3, 2, &x, NULL), &x, "every third");
    }
    for (uint32_t rank = 0; rank <= RL_DESC_RANK; rank++) is_made(rl_desc_fill_rank(d, rank, &x, NULL), &x, "more dims");
    is_made(rl_propagate(2, (rl_desc[]){*d, *from}, &x, NULL), &x, "the result of an op");
    rl_comparison c;
    rl_desc_compare(d, from, &c, NULL);
}

static void make_views(const rl_desc *d) {
    int64_t dim[RL_DESC_RANK], all = rl_desc_elements(d);
    uint32_t turn[RL_DESC_RANK];
    rl_desc x;
    int copies;
    for (uint32_t i = 0; i < RL_DESC_RANK; i++) {
        uint32_t lead = RL_DESC_RANK - d->rank;
        dim[i] = i < lead || d->dim[i - lead] == 1 ? 2 : d->dim[i - lead];
        turn[i] = i < d->rank ? d->rank - 1 - i : i;
    }
    is_made(rl_desc_expand(d, RL_DESC_RANK, dim, &x, NULL), &x, "repeated");
    is_made(rl_desc_reshape(d, 2, (int64_t[]){all / 2, 2}, &x, NULL), &x, "in two dims");
    is_made(rl_desc_reshape(d, 1, &all, &x, NULL), &x, "in one dim");
    for (rl_memory_format f = RL_CONTIGUOUS; f <= RL_PRESERVE; f++) is_made(rl_to_format(d, f, &x, &copies, NULL), &x, "in a format");
    must(rl_desc_permute(d, turn, &x, NULL) == RL_OK, "each permutation is a view", &(rl_ctx){.error = ""});
    is_made(RL_OK, &x, "turned");
    slice_and_fill(d, &x);
    slice_and_fill(&x, d);
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
    make_views(&d);
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
