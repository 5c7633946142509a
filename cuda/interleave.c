/* Moves by kernel interleave: see interleave.h. */
#include "interleave.h"

#include <stdlib.h>
#include <string.h>

/* Planes that have kernels of their own, for elements of 1, 2, 4 and 8 bytes: by 16 bytes of a plane, and, where lines are short or begin anywhere, by a
 * word or an element. */
static const struct { uint32_t q; rl_gpu_kernel wide, narrow; } kernels[] = {
    {2, RL_GPU_interleave2x1, RL_GPU_short_interleave2x1},
    {3, RL_GPU_interleave3x1, RL_GPU_short_interleave3x1},
    {4, RL_GPU_interleave4x1, RL_GPU_short_interleave4x1},
    {8, RL_GPU_interleave8x1, RL_GPU_short_interleave8x1},
    {16, RL_GPU_interleave16x1, RL_GPU_short_interleave16x1},
    {32, RL_GPU_interleave32x1, RL_GPU_short_interleave32x1}};

/* Bytes: with many planes, shorter ones leave lines of memory half read; what has more at a place fills a tile. */
enum { LEAST_PLANE = 128, MOST_PLACE = 128 };

typedef struct {
    const rl_loops *l;
    uint32_t bits, q, n, run; /* dims: planes, places; the operand that is the run */
    uint64_t planes_at, run_at;
    rl_loops batch;           /* operand 0: the run's steps, operand 1: the planes', in elements */
} shape;

static uint32_t find_dim(const rl_loops *l, uint32_t operand, uint32_t but) {
    for (uint32_t i = l->rank; i-- > 0;)
        if (i != but && l->step[operand][i] == 1) return i;
    return RL_NONE;
}

/* Which dims are the planes and their places, where `run` is the operand that has them side by side. */
static bool find_shape(const rl_loops *l, uint32_t run, shape *s) {
    s->l = l, s->run = run;
    s->q = find_dim(l, run, RL_NONE);
    s->n = s->q == RL_NONE ? RL_NONE : find_dim(l, !run, s->q);
    if (s->n == RL_NONE || l->step[run][s->n] != l->dim[s->q]) return false;
    s->batch = (rl_loops){.noperand = 2};
    for (uint32_t i = 0; i < l->rank; i++) {
        if (i == s->q || i == s->n) continue;
        uint32_t k = s->batch.rank++;
        s->batch.dim[k] = l->dim[i], s->batch.step[0][k] = l->step[run][i], s->batch.step[1][k] = l->step[!run][i];
    }
    rl_loops_sort(&s->batch);
    rl_loops_merge(&s->batch);
    return s->batch.rank <= RL_DIMS;
}

/* Elements as pieces of `unit` bytes; false where they do not make whole ones. */
static bool in_units(const shape *s, int64_t elements, uint32_t unit, int64_t *n) {
    int64_t nbit = elements * s->bits, per = 8 * (int64_t)unit;
    *n = nbit / per;
    return nbit % per == 0;
}

/* The batches' steps of an operand, in units; and does every offset, up to `beside` more, fit 32 bits? */
static bool set_steps(const shape *s, uint32_t operand, uint32_t unit, int64_t beside, int32_t *step) {
    int64_t n, reach = llabs(beside);
    for (uint32_t i = 0; i < s->batch.rank; i++) {
        if (!in_units(s, s->batch.step[operand][i], unit, &n) || llabs(n) > INT32_MAX) return false;
        reach += llabs(n) * (s->batch.dim[i] - 1);
        step[i] = (int32_t)n;
    }
    return reach <= INT32_MAX;
}

/* Batches' runs one after the other. */
static bool is_flat(const shape *s) {
    int64_t step = s->l->dim[s->q] * s->l->dim[s->n];
    for (uint32_t i = s->batch.rank; i-- > 0; step *= s->batch.dim[i])
        if (s->batch.step[0][i] != step) return false;
    return true;
}

/* By `at` bytes of each plane? */
static bool fits(const shape *s, uint32_t at, rl_p_interleave *p) {
    int64_t each, units, step, n = s->l->dim[s->n], q = s->l->dim[s->q], step_q = s->l->step[!s->run][s->q];
    if (s->planes_at % at || s->run_at % 16) return false;
    if (!in_units(s, n, at, &each) || !in_units(s, step_q, at, &step) || llabs(step) > INT32_MAX / q) return false;
    if (!set_steps(s, 1, at, llabs(step) * (q - 1) + each, p->step_plane)) return false;
    bool whole = in_units(s, n * q, 16, &units);
    p->flat = is_flat(s);
    if (!p->flat && (!whole || !set_steps(s, 0, 16, units, p->step_run))) return false;
    p->each = rl_divisor_of((uint32_t)each), p->units = rl_divisor_of((uint32_t)RL_MAX(units, 1)), p->step_j = (int32_t)step;
    p->count = (uint32_t)(each * rl_loops_count(&s->batch));
    p->rank = s->batch.rank;
    for (uint32_t i = 0; i < p->rank; i++) p->dim[i] = rl_divisor_of((uint32_t)s->batch.dim[i]);
    return true;
}

static void set_launch(const shape *s, uint32_t at, rl_gpu_kernel kernel, rl_interleaved *k) {
    uint32_t columns = RL_LACE_COLUMNS(s->bits, at, (uint32_t)s->l->dim[s->q]);
    k->kernel = kernel;
    k->nblock = (k->p.count + columns - 1) / columns;
}

/* Numbers of 4 bits have one kernel: 64 planes (NCHW64). */
static bool choose(const shape *s, rl_interleaved *k) {
    int64_t q = s->l->dim[s->q], plane = s->l->dim[s->n] * s->bits / 8;
    uint32_t size = s->bits / 8, at = RL_MAX(size, 4u), by = size ? (uint32_t)__builtin_ctz(size) : 0;
    if (s->bits == 4) {
        if (q != 64 || !fits(s, 8, &k->p)) return false;
        return set_launch(s, 8, RL_GPU_interleave64_4bits, k), true;
    }
    for (uint32_t i = 0; i < RL_LEN(kernels); i++) {
        if (kernels[i].q != q || q * size > MOST_PLACE || (q > 4 && plane < LEAST_PLANE)) continue;
        if (fits(s, 16, &k->p)) return set_launch(s, 16, (rl_gpu_kernel)(kernels[i].wide + by), k), true;
        if (!fits(s, at, &k->p)) continue;
        return set_launch(s, at, (rl_gpu_kernel)(kernels[i].narrow + by), k), true;
    }
    return false;
}

bool rl_interleave_of(const rl_loops *l, uint32_t bits, uint64_t to, uint64_t from, rl_interleaved *k) {
    memset(k, 0, sizeof *k);
    if ((bits < 8 && bits != 4) || bits > 64 || rl_loops_count(l) >= INT32_MAX) return false;
    for (uint32_t run = 0; run < 2; run++) {
        shape s = {.bits = bits};
        if (!find_shape(l, run, &s)) continue;
        s.bits = bits, s.run_at = run ? from : to, s.planes_at = run ? to : from;
        k->p = (rl_p_interleave){.to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .out = run};
        if (choose(&s, k)) return true;
    }
    return false;
}

rl_status rl_interleave_launch(rl_gpu *g, const rl_interleaved *k) {
    return rl_gpu_launch(g, k->kernel, k->nblock, &k->p, sizeof k->p);
}
