/* base.h: arenas, interning, messages, text, hash. */
#include <time.h>

#include "../../src/hash.h"
#include "check.h"

TEST(arena) {
    CHECK_CTX(ctx)
    rl_arena a;
    rl_arena_init(&a, ctx);
    size_t before = ctx->nbyte;
    for (uint32_t i = 1; i < 3000; i = i * 3 / 2 + 1) {
        unsigned char *p = rl_alloc(&a, i);
        CHECK((uintptr_t)p % RL_ALIGN == 0);
        bool zero = true;
        for (uint32_t k = 0; k < i; k++) zero = zero && p[k] == 0;
        CHECK(zero);
        memset(p, 0xff, i);
    }
    int *big = rl_new(&a, int, 1000000), *small = rl_new(&a, int, 1);
    big[999999] = *small = 3;
    struct { int *p; uint32_t n, cap; } v = {0};
    for (int i = 0; i < 1000; i++) rl_push(&a, v, i);
    CHECK(v.n == 1000 && v.p[0] == 0 && v.p[999] == 999 && v.p[500] == 500);
    rl_arena_free(&a);
    CHECK(ctx->nbyte == before);
    CHECK(*rl_new(&a, char, 1) == 0);
    rl_arena_free(&a);
    rl_ctx_free(ctx);
}

/* A growing array followed by another allocation moves, and its bytes come along. */
TEST(grow) {
    CHECK_CTX(ctx)
    char *p = rl_grow(&ctx->mem, NULL, 0, 5, 1);
    memcpy(p, "abcd", 5);
    char *q = rl_grow(&ctx->mem, p, 5, 40, 1);
    CHECK_STR(q, "abcd");
    char *r = rl_new(&ctx->mem, char, 7);
    char *s = rl_grow(&ctx->mem, q, 40, 100, 1);
    CHECK(s != q && r[0] == 0 && s[99] == 0);
    CHECK_STR(s, "abcd");
    rl_ctx_free(ctx);
}

/* What a vector of one's own outgrows is given back; a copy that others may have is not. */
TEST(regrow) {
    CHECK_CTX(ctx)
    enum { MANY = 1 << 20 };
    rl_arena a;
    rl_arena_init(&a, ctx);
    (void)rl_new(&a, char, 1);
    char *p = rl_new(&a, char, MANY);
    size_t before = ctx->nbyte;
    p[MANY - 1] = 'x';
    p = rl_regrow(&a, p, MANY, 2 * MANY, 1);
    CHECK(p[MANY - 1] == 'x' && p[2 * MANY - 1] == 0);
    CHECK(ctx->nbyte == before + MANY);
    rl_grow(&a, p, 2 * MANY, 3 * MANY, 1);
    CHECK(ctx->nbyte == before + 4 * MANY);
    rl_arena_free(&a);
    CHECK(ctx->nbyte == 0);
    rl_ctx_free(ctx);
}

static rl_status fill(rl_ctx *ctx, size_t n) {
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    rl_arena a;
    rl_arena_init(&a, ctx);
    for (size_t i = 0; i < n; i++) (void)rl_new(&a, char, 1000);
    rl_arena_free(&a);
    return RL_OK;
}

TEST(limit) {
    rl_ctx *ctx = rl_ctx_new(100000);
    CHECK(fill(ctx, 20) == RL_OK);
    CHECK(fill(ctx, 200) == RL_ENOMEM);
    CHECK_STR(ctx->error, "over the limit of 100000 bytes of memory");
    CHECK(ctx->nbyte <= 100000);
    rl_ctx_free(ctx); /* and what fill left behind, says ASan */
}

TEST(intern) {
    CHECK_CTX(ctx)
    rl_str a = rl_internz(ctx, "conv1"), e = rl_internz(ctx, "");
    CHECK(a == rl_intern(ctx, "conv1xyz", 5));
    CHECK(a != rl_internz(ctx, "conv2"));
    CHECK(e == rl_intern(ctx, NULL, 0) && e[0] == 0);
    CHECK(rl_intern(ctx, "a\0b", 3) != rl_intern(ctx, "a\0c", 3));
    CHECK(!rl_intern_find(ctx, "conv", 4));
    CHECK(rl_intern_find(ctx, "conv1", 5) == a);
    rl_str s[2000];
    for (int i = 0; i < 2000; i++) s[i] = rl_internf(ctx, "name%d", i);
    for (int i = 0; i < 2000; i++) CHECK(s[i] == rl_internf(ctx, "name%d", i));
    rl_intern_expect(ctx, 100000); /* the table moves, the strings do not */
    size_t before = ctx->nbyte;
    for (int i = 0; i < 2000; i++) CHECK(s[i] == rl_internf(ctx, "name%d", i));
    rl_intern_expect(ctx, 100000 - 2010);
    CHECK(ctx->nbyte == before);
    rl_str l = rl_internf(ctx, "%0500d", 7);
    CHECK(strlen(l) == 500 && l[499] == '7');
    rl_ctx_free(ctx);
}

TEST(fail) {
    CHECK_CTX(ctx)
    CHECK(rl_fail(ctx, RL_EMODEL, "node '%s'", "a\033b") == RL_EMODEL);
    CHECK_STR(ctx->error, "node 'a?b'");
    rl_fail(ctx, RL_EIO, "m.onnx: %s", ctx->error);
    CHECK_STR(ctx->error, "m.onnx: node 'a?b'");
    rl_fail(ctx, RL_EIO, "%0*d", 5000, 1);
    CHECK(strlen(ctx->error) == sizeof ctx->error - 1);
    rl_ctx_free(ctx);
}

TEST(text) {
    CHECK_CTX(ctx)
    rl_text t = {.mem = &ctx->mem};
    for (int i = 0; i < 300; i++) rl_put(&t, "%d,", i);
    rl_put_bytes(&t, "end", 3);
    CHECK(t.n == strlen(t.p) && strcmp(t.p + t.n - 7, "299,end") == 0);
    rl_put(&t, "%0300d", 1);
    CHECK(t.n == strlen(t.p) && t.p[t.n - 1] == '1');
    rl_ctx_free(ctx);
}

TEST(hash) {
    CHECK_CTX(ctx)
    rl_hash h = {.mem = &ctx->mem};
    CHECK(rl_hash_get(&h, 0) == RL_NONE);
    for (uint32_t i = 0; i < 1000; i++) rl_hash_put(&h, i * 64u, i);
    for (uint32_t i = 0; i < 1000; i++) CHECK(rl_hash_get(&h, i * 64u) == i);
    CHECK(rl_hash_get(&h, 1) == RL_NONE);
    rl_hash_put(&h, 64, 7);
    rl_hash_put(&h, 0, RL_NONE);
    CHECK(rl_hash_get(&h, 64) == 7 && rl_hash_get(&h, 0) == RL_NONE && rl_hash_get(&h, 128) == 2);
    CHECK(rl_hash_bytes("abcdefgh1", 9) != rl_hash_bytes("abcdefgh2", 9));
    rl_ctx_free(ctx);
}

TEST(sort_by_key) {
    CHECK_CTX(ctx)
    const uint32_t key[] = {2, 0, 2, 3, 0};
    char item[] = "abcde";
    uint32_t *beg = rl_sort_by_key(&ctx->mem, 5, key, item, 5, 1);
    CHECK(strcmp(item, "beacd") == 0);
    CHECK(beg[0] == 0 && beg[1] == 2 && beg[2] == 2 && beg[3] == 4 && beg[4] == 5 && beg[5] == 5);
    struct { uint32_t x[3]; } wide[] = {{{1, 2, 3}}, {{4, 5, 6}}};
    beg = rl_sort_by_key(&ctx->mem, 2, (const uint32_t[]){1, 0}, wide, 2, sizeof *wide);
    CHECK(wide[0].x[0] == 4 && wide[1].x[2] == 3 && beg[1] == 1 && beg[2] == 2);
    CHECK(rl_sort_by_key(&ctx->mem, 0, NULL, NULL, 0, 4)[0] == 0);
    rl_ctx_free(ctx);
}

/* Waiting is no work: a search on a busy machine gets as far as on an idle one. */
TEST(work) {
    CHECK_CTX(ctx)
    double start = rl_seconds(), deadline = rl_work_seconds() + 0.05;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    CHECK(rl_seconds() - start >= 0.1 && !rl_time_up(ctx, deadline));
    while (!rl_time_up(ctx, deadline)) {}
    CHECK(rl_work_seconds() >= deadline);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(work);
    RUN(arena);
    RUN(grow);
    RUN(regrow);
    RUN(limit);
    RUN(intern);
    RUN(fail);
    RUN(text);
    RUN(hash);
    RUN(sort_by_key);
    return check_done();
}
