/* The command `bench-move`: see move_cmd.h.
 *
 * For each case, size and element the move and a memcpy of as many bytes take turns, and the least time of each counts: what else the
 * machine does meets both.  bench/move.py runs the same grid (--list) beside other libraries. */
#include "bench.h"
#include "move_cmd.h"


#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt.h"

enum { RANK = 6, PAST_CACHE = 32 << 20, LEAST = 64 << 10 };

/* A dense array of these dims, permuted; the first dim is what the size asks for. name: as the layouts are called. */
typedef struct { const char *name; uint32_t rank; int64_t dim[RANK]; uint32_t perm[RANK]; } grid_case;
static const grid_case cases[] = {
    {"transpose", 2, {0, 0}, {1, 0}}, /* as square as it gets */
    {"transpose-tall", 2, {0, 100}, {1, 0}},
    {"nchw-nhwc-c3", 4, {0, 3, 224, 224}, {0, 2, 3, 1}},
    {"nhwc-nchw-c3", 4, {0, 224, 224, 3}, {0, 3, 1, 2}},
    {"nchw-nhwc-c64", 4, {0, 64, 56, 56}, {0, 2, 3, 1}},
    {"nhwc-nchw-c64", 4, {0, 56, 56, 64}, {0, 3, 1, 2}},
    {"nchw-nChw16c", 5, {0, 4, 16, 28, 28}, {0, 1, 3, 4, 2}}, /* channels as blocks and in a block */
    {"nChw16c-nchw", 5, {0, 4, 28, 28, 16}, {0, 1, 4, 2, 3}},
    {"heads-split", 4, {0, 128, 12, 64}, {0, 2, 1, 3}},
    {"heads-k", 4, {0, 128, 12, 64}, {0, 2, 3, 1}},
    {"windows-nhwc", 6, {0, 4, 7, 4, 7, 96}, {0, 1, 3, 2, 4, 5}},
    {"windows-nchw", 6, {0, 96, 4, 7, 4, 7}, {0, 2, 4, 3, 5, 1}},
    {"pixel-shuffle", 6, {0, 16, 2, 2, 28, 28}, {0, 1, 4, 2, 5, 3}},
};

typedef struct {
    const char *only;
    int64_t most;
    rl_isa isa;
    bool list;
} line;

typedef struct { double logs, worst; uint32_t n; const char *name; } mean;

/* The case with dims that make about nbyte. */
static grid_case sized(const grid_case *c, int64_t nbyte, int64_t size) {
    grid_case x = *c;
    int64_t n = nbyte / size, rest = 1;
    if (x.dim[1] == 0) x.dim[1] = (int64_t)sqrt((double)n);
    for (uint32_t i = 1; i < x.rank; i++) rest *= x.dim[i];
    x.dim[0] = RL_MAX((n + rest - 1) / rest, 1);
    return x;
}

static rl_nest nest_of(const grid_case *c, uint32_t size, void *to, const void *from, rl_isa isa) {
    rl_nest b = {.to = to, .from = from, .bits = 8 * size, .n = c->rank, .isa = isa};
    int64_t stride[RANK], step = 1;
    for (uint32_t i = c->rank; i-- > 0; step *= c->dim[i]) stride[i] = step;
    step = 1;
    for (uint32_t i = c->rank; i-- > 0; step *= c->dim[c->perm[i]]) b.loop[i] = (rl_loop){c->dim[c->perm[i]], step, stride[c->perm[i]]};
    return b;
}

typedef struct { char *to; const char *from; } bytes;

static void copy_bytes(void *arg, int64_t from, int64_t to) {
    const bytes *b = arg;
    memcpy(b->to + from, b->from + from, (size_t)(to - from));
}

/* Seconds of one move and of one memcpy. */
static void measure(rl_nest *b, int64_t nbyte, const rl_threads *threads, double *move, double *copy) {
    int64_t times = RL_MAX(1, (4 << 20) / nbyte);
    int rounds = nbyte > 64 << 20 ? 4 : 9;
    bytes all = {b->to, b->from};
    bool alone = !threads->pool;
    *move = *copy = 1e9;
    for (int r = 0; r < rounds; r++) {
        double t0 = rl_bench_now(alone);
        for (int64_t k = 0; k < times; k++) threads->run(threads->pool, nbyte, 1 << 20, copy_bytes, &all);
        double t1 = rl_bench_now(alone);
        for (int64_t k = 0; k < times; k++) rl_nest_move(b, threads);
        double t2 = rl_bench_now(alone);
        *copy = fmin(*copy, (t1 - t0) / (double)times);
        *move = fmin(*move, (t2 - t1) / (double)times);
    }
}

static void add(mean *m, double ratio, const char *name) {
    m->logs += log(ratio);
    if (m->n++ == 0 || ratio < m->worst) m->worst = ratio, m->name = name;
}

static void put_mean(const char *what, const mean *m) {
    if (m->n) printf("%s: geometric mean %.3f of memcpy over %u points, least %.3f (%s)\n", what, exp(m->logs / m->n), m->n, m->worst, m->name);
}

static int64_t bytes_of(const grid_case *c, int64_t size) {
    for (uint32_t i = 0; i < c->rank; i++) size *= c->dim[i];
    return size;
}

static void put_point(const grid_case *c, uint32_t size) {
    printf("%s %u", c->name, size);
    for (uint32_t i = 0; i < c->rank; i++) printf("%c%" PRId64, i ? ',' : ' ', c->dim[i]);
    for (uint32_t i = 0; i < c->rank; i++) printf("%c%u", i ? ',' : ' ', c->perm[i]);
    printf("\n");
}

static void run_point(const line *l, const grid_case *c, uint32_t size, void *to, const void *from, const rl_threads *threads, mean *all,
                      mean *past) {
    double move, copy;
    int64_t nbyte = bytes_of(c, size);
    rl_nest b = nest_of(c, size, to, from, l->isa);
    measure(&b, nbyte, threads, &move, &copy);
    printf("%-15s %4u %10.3f %10.3f %8.2f %8.2f %7.3f\n", c->name, size, (double)nbyte * 1e-6, move * 1e3, (double)nbyte / move * 1e-9,
           (double)nbyte / copy * 1e-9, copy / move);
    fflush(stdout);
    add(all, copy / move, c->name);
    if (nbyte >= PAST_CACHE) add(past, copy / move, c->name);
}

static void run_grid(const line *l, void *to, const void *from, const rl_threads *threads) {
    mean all = {0}, past = {0};
    if (!l->list) printf("%-15s %4s %10s %10s %8s %8s %7s\n", "case", "elem", "MB", "ms", "GB/s", "memcpy", "ratio");
    for (int64_t nbyte = LEAST; nbyte <= l->most; nbyte *= 8) {
        for (size_t i = 0; i < RL_LEN(cases); i++) {
            for (uint32_t size = 1; size <= 8; size *= 2) {
                grid_case c = sized(&cases[i], nbyte, size);
                if (l->only && !strstr(c.name, l->only)) continue;
                if (l->list) put_point(&c, size);
                else run_point(l, &c, size, to, from, threads, &all, &past);
            }
        }
    }
    put_mean("all sizes", &all);
    put_mean("past the cache (32 MiB and more)", &past);
}

static bool parse_isa(const char *name, rl_isa *isa) {
    static const char *const names[] = {"best", "plain", "avx2", "avx512"};
    *isa = RL_ISA_BEST;
    for (size_t i = 0; name && i < RL_LEN(names); i++)
        if (strcmp(name, names[i]) == 0) *isa = (rl_isa)i;
    return *isa == RL_ISA_BEST || rl_isa_here(*isa) == *isa;
}

rl_status rl_move_bench(rl_ctx *ctx, const rl_moveopt *o) {
    line l = {.only = o->only, .most = o->most ? (int64_t)o->most : 256 << 20, .list = o->list};
    if (!parse_isa(o->isa, &l.isa)) return rl_fail(ctx, RL_EUSAGE, "this processor has no %s", o->isa);
    if (l.most < LEAST || l.most > (int64_t)1 << 40) return rl_fail(ctx, RL_EUSAGE, "--most is %" PRId64 "; the least array has %d bytes", l.most, LEAST);
    size_t n = l.list ? 64 : (size_t)l.most * 2 + (8 << 20); /* the smallest case of a network is larger than the least size */
    char *to = aligned_alloc(64, n / 64 * 64), *from = aligned_alloc(64, n / 64 * 64);
    rl_pool *pool = o->threads > 1 ? rl_pool_new(o->threads) : NULL;
    bool ok = to && from && (pool || o->threads <= 1);
    if (ok) {
        memset(to, 1, n / 64 * 64);
        for (size_t i = 0; i < n / 64 * 64; i++) from[i] = (char)(i * 7);
        rl_threads threads = rl_pool_threads(pool);
        run_grid(&l, to, from, &threads);
    }
    rl_pool_free(pool);
    free(to);
    free(from);
    return ok ? RL_OK : rl_fail(ctx, RL_ENOMEM, "out of memory");
}
