/* The one move kernel: every copy of elements from one place in memory to others goes through here.
 *
 * A nest of loops: each has a count and a step, in elements, on both sides.  f32[4,6] transposed, into f32[6,4]:
 *
 *     rl_nest b = {.to = y, .from = x, .bits = 32, .n = 2, .loop = {{6, 4, 1}, {4, 1, 6}}};
 *     rl_nest_move(&b, NULL);                                    y[4 i + j] = x[i + 6 j],  i < 6, j < 4
 *
 * The order of the loops does not matter, and no two elements may have the same place on the `to` side.  A step of 0 on the `from`
 * side repeats, a negative one goes backwards.  What happens with it:
 *
 *   1. Loops of 1 go, negative steps on the `to` side are turned round, the loops are sorted by that side's steps, and neighbours
 *      that continue each other on both sides become one.                                               (move.c)
 *   2. An innermost run that lies side by side on both sides becomes a larger element where it has 2, 4, 8 or 16 bytes, else a *row*.
 *   3. What is left is one of these:                                                                     (move_walk.c)
 *        rows    both sides lie side by side: copied whole
 *        fill    one element repeated along the row
 *        tiles   the row goes along another loop on the `from` side: tiles of some lines of the cache on both sides, transposed in
 *                registers, 16 x 8 elements of 4 bytes and 32 x 16 of 1 byte at a time, what is left over by smaller ones; where rows of
 *                `to` lie such steps apart that their lines drive each other out of the first cache (powers of two, and next to
 *                those), a tile has few of them, or goes there by way of a buffer
 *        mixes   the same where one side has up to 4 elements in a row, or 7 bytes (channels-last images of 3 channels): shuffles of whole lines
 *        runs    anything else, element by element in blocks that stay in the cache: steps on both sides, elements smaller
 *                than a byte, numbers that are converted
 *
 *   4. More than a cache holds is written past it, in whole lines: rows and mixes as they are, where their lines allow that; all
 *      else box by box, while the box before is written and what the next one reads is asked for.    (move_stage.c)
 *
 * The register kernels exist for AVX-512 (move_x86.c, move_mix.c, move_rows.c) and AVX2 (move_avx2.c); the processor is asked at run
 * time. Other processors use runs.
 * Threads come from the caller, and so does what converts numbers: src/ has neither. */
#ifndef RL_MOVE_H
#define RL_MOVE_H
#include "base.h"

typedef struct { int64_t n, to, from; } rl_loop; /* steps in elements */
enum { RL_NEST_LOOPS = 64 };

/* n elements from element from_at on, one every from_step, to to_at .. likewise; of other types than `to` has. */
typedef void rl_run_fn(const void *how, void *to, int64_t to_at, int64_t to_step, const void *from, int64_t from_at, int64_t from_step,
                       int64_t n);

typedef void rl_range_fn(void *arg, int64_t from, int64_t to);
/* Calls fn on pieces that cover 0 .. n-1, each of `grain` indices or more, perhaps in several threads. */
typedef struct { void (*run)(void *pool, int64_t n, int64_t grain, rl_range_fn *fn, void *arg); void *pool; } rl_threads;

/* Which kernels: the best that the processor has, or at most these (for tests and measurements). */
typedef enum { RL_ISA_BEST = 0, RL_ISA_PLAIN, RL_ISA_AVX2, RL_ISA_AVX512 } rl_isa;

typedef struct {
    void *to;
    const void *from;
    int64_t to_at, from_at; /* elements */
    uint32_t bits;          /* of an element on the `to` side: 2, 4, or 8 to 128; on both sides where convert is NULL */
    rl_run_fn *convert;     /* NULL: bits are copied as they are */
    const void *how;        /* for convert */
    rl_isa isa;
    uint32_t n;
    rl_loop loop[RL_NEST_LOOPS];
} rl_nest;

/* threads NULL: the caller's alone. */
void rl_nest_move(const rl_nest *b, const rl_threads *threads);
/* In b: loops of 1 and negative steps go, what continues on both sides becomes one; the largest step on the `to` side comes first. */
void rl_nest_straighten(rl_nest *b);
/* How that goes: no plan wanted; by way of the caches; past them, as they are (STREAM) or box by box. For tests. */
typedef enum { RL_WAY_PLAIN, RL_WAY_CACHE, RL_WAY_STREAM, RL_WAY_BOXES } rl_move_way;
rl_move_way rl_nest_way(const rl_nest *b);
/* What rl_nest_move takes for `want` on this processor. */
rl_isa rl_isa_here(rl_isa want);

/* Element k of packed elements of 2 or 4 bits. */
static inline uint32_t rl_get_bits(const char *p, int64_t k, uint32_t bits) {
    uint32_t per = 8 / bits, at = (uint32_t)(k % per) * bits;
    return (uint32_t)(uint8_t)p[k / per] >> at & ((1u << bits) - 1);
}

static inline void rl_set_bits(char *p, int64_t k, uint32_t bits, uint32_t x) {
    uint32_t per = 8 / bits, at = (uint32_t)(k % per) * bits, mask = ((1u << bits) - 1) << at;
    p[k / per] = (char)(((uint32_t)(uint8_t)p[k / per] & ~mask) | ((x << at) & mask));
}

#endif
