/* The unit tests' few macros: a test is a function, a failing check prints its place and is counted, main returns the count.
 *
 *   TEST(adds) { CHECK(1 + 1 == 2); CHECK_STR("a", "a"); }
 *   int main(void) { RUN(adds); return check_done(); }                                                                  */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base.h"

static int check_failed, check_count;

/* RELAYOUT_CHECK=2/5: of every five tests, in main's order, the third; so that processes share what takes long. */
static inline bool check_runs(void) {
    static int turn;
    const char *part = getenv("RELAYOUT_CHECK");
    int k = 0, n = 1;
    return !part || sscanf(part, "%d/%d", &k, &n) != 2 || turn++ % n == k;
}

#define TEST(name) static void test_##name(void)
#define RUN(name) (check_runs() ? test_##name() : (void)0)

#define CHECK(x)                                                                                                     \
    do {                                                                                                             \
        check_count++;                                                                                               \
        if (!(x)) {                                                                                                  \
            check_failed++;                                                                                          \
            fprintf(stderr, "%s:%d: %s: failed: %s\n", __FILE__, __LINE__, __func__, #x);                            \
        }                                                                                                            \
    } while (0)

#define CHECK_STR(got, want)                                                                                         \
    do {                                                                                                             \
        const char *got_ = (got), *want_ = (want);                                                                   \
        check_count++;                                                                                               \
        if (!got_ || strcmp(got_, want_) != 0) {                                                                     \
            check_failed++;                                                                                          \
            fprintf(stderr, "%s:%d: %s: got  %s\n  want %s\n", __FILE__, __LINE__, __func__, got_ ? got_ : "(null)", want_); \
        }                                                                                                            \
    } while (0)

/* A context whose failed allocations end the test program: tests that expect one set ctx->oom themselves. */
#define CHECK_CTX(ctx)                                                                                               \
    rl_ctx *ctx = rl_ctx_new(0);                                                                                     \
    if (!ctx || RL_PROTECT(ctx)) {                                                                                   \
        fprintf(stderr, "%s:%d: out of memory\n", __FILE__, __LINE__);                                               \
        check_failed++;                                                                                              \
        return;                                                                                                      \
    }

/* Numbers of 24 bits that look random; the same for the same seed. */
static inline uint32_t check_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Likewise of 31 bits. */
static inline uint64_t check_random31(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static inline int check_done(void) {
    printf("%d checks, %d failed\n", check_count, check_failed);
    return check_failed != 0;
}

#endif
