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

#include "move_grid.h"
#include "rt.h"

enum { PAST_CACHE = 32 << 20, LEAST = 64 << 10 };

typedef struct {
    const char *only;
    int64_t most;
    rl_isa isa;
    bool list;
} line;

typedef struct { double logs, worst; uint32_t n; const char *name; } mean;

static rl_nest nest_of(const rl_move_case *c, uint32_t size, void *to, const void *from, rl_isa isa) {
    rl_nest b = {.to = to, .from = from, .bits = 8 * size, .n = c->rank, .isa = isa};
    int64_t to_step[RL_GRID_RANK], from_step[RL_GRID_RANK];
    rl_move_steps(c, to_step, from_step);
    for (uint32_t i = 0; i < c->rank; i++) b.loop[i] = (rl_loop){c->dim[c->perm[i]], to_step[i], from_step[i]};
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

static int64_t bytes_of(const rl_move_case *c, int64_t size) {
    for (uint32_t i = 0; i < c->rank; i++) size *= c->dim[i];
    return size;
}

static void put_point(const rl_move_case *c, uint32_t size) {
    printf("%s %u", c->name, size);
    for (uint32_t i = 0; i < c->rank; i++) printf("%c%" PRId64, i ? ',' : ' ', c->dim[i]);
    for (uint32_t i = 0; i < c->rank; i++) printf("%c%u", i ? ',' : ' ', c->perm[i]);
    printf("\n");
}

static void run_point(const line *l, const rl_move_case *c, uint32_t size, void *to, const void *from, const rl_threads *threads, mean *all,
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
        for (size_t i = 0; i < RL_NMOVE_GRID; i++) {
            for (uint32_t size = 1; size <= 8; size *= 2) {
                rl_move_case c = rl_move_sized(&rl_move_grid[i], nbyte, size);
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
