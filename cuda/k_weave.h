/* A few planes to or from their elements side by side, by shared memory (index.h), C++ for the host and the device: what kernel interleave has no numbers of
 * planes, or no room for. */
#ifndef RL_CUDA_K_WEAVE_H
#define RL_CUDA_K_WEAVE_H
#include "k_move.h"

template <class V> struct rl_weave {
    typedef rl_p_weave Params;
    typedef rl_nothing Local;
    enum { SIZE = sizeof(V), WIDE = 16 / SIZE, AHEAD = 4 };
    struct alignas(16) Shared { V cell[RL_WEAVE_BYTES / SIZE]; };
    union Wide { rl_wide16 all; V each[WIDE]; };
    struct Place { uint32_t first, n; int64_t at[2]; }; /* of the planes' places, and how many */
    RL_MEMBER uint32_t steps(const Params &) { return 2; }

    /* A piece of a plane: where it begins, there and in the tile, and how much of it there is. */
    struct Spot { int64_t there; uint32_t here, n; };
    RL_MEMBER Spot spot(const Params &p, const Place &t, uint32_t k) {
        uint32_t j = rl_divide(k, p.each), i = (k - j * p.each.d) * WIDE;
        Spot s = {(int64_t)j * p.step_j + t.first + i, j * p.pitch + i, i < t.n ? t.n - i : 0};
        return s;
    }

    /* All of a thread's loads are under way before the first of them is waited for. */
    RL_MEMBER void read_planes(const Params &p, V *cell, const V *plane, const Place &t, uint32_t thread) {
        uint32_t all = p.each.d * p.q.d;
        for (uint32_t first = thread; first < all; first += AHEAD * RL_THREADS) {
            Wide x[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                Spot s = spot(p, t, first + e * RL_THREADS);
                if (first + e * RL_THREADS < all && p.by_plane && s.n >= WIDE) x[e].all = *(const rl_wide16 *)(plane + s.there);
            }
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                Spot s = spot(p, t, first + e * RL_THREADS);
                if (first + e * RL_THREADS >= all) continue;
                if (p.by_plane && s.n >= WIDE) *(rl_wide16 *)(cell + s.here) = x[e].all;
                else
                    for (uint32_t k = 0; k < WIDE && k < s.n; k++) cell[s.here + k] = plane[s.there + k];
            }
        }
    }

    RL_MEMBER void write_planes(const Params &p, const V *cell, V *plane, const Place &t, uint32_t thread) {
        for (uint32_t k = thread; k < p.each.d * p.q.d; k += RL_THREADS) {
            Spot s = spot(p, t, k);
            if (p.by_plane && s.n >= WIDE) *(rl_wide16 *)(plane + s.there) = *(const rl_wide16 *)(cell + s.here);
            else
                for (uint32_t i = 0; i < WIDE && i < s.n; i++) plane[s.there + i] = cell[s.here + i];
        }
    }

    /* Elements m .. m + n - 1 of the run, n at most WIDE, between x and the tile. */
    RL_MEMBER void interleave(const Params &p, V *cell, V *x, uint32_t m, uint32_t n, bool out) {
        uint32_t i = rl_divide(m, p.q), j = m - i * p.q.d, at = j * p.pitch + i, back = p.q.d * p.pitch - 1;
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) { /* a loop to n would keep x in memory */
            if (e < n && out) cell[at] = x[e];
            else if (e < n) x[e] = cell[at];
            at += p.pitch;
            if (++j == p.q.d) j = 0, at -= back;
        }
    }

    RL_MEMBER uint32_t width(uint32_t m, uint32_t all) { return m >= all ? 0 : all - m < WIDE ? all - m : (uint32_t)WIDE; }
    RL_MEMBER void fetch(const Params &p, const V *run, uint32_t m, uint32_t n, Wide *x) {
        if (p.by_run && n == WIDE) x->all = *(const rl_wide16 *)(run + m);
        else {
            RL_UNROLL
            for (uint32_t e = 0; e < WIDE; e++)
                if (e < n) x->each[e] = run[m + e];
        }
    }

    /* The next piece is under way while one goes into the tile. */
    RL_MEMBER void read_run(const Params &p, V *cell, const V *run, const Place &t, uint32_t thread) {
        uint32_t all = t.n * p.q.d;
        Wide x, next;
        fetch(p, run, thread * WIDE, width(thread * WIDE, all), &x);
        for (uint32_t m = thread * WIDE; m < all; m += RL_THREADS * WIDE) {
            uint32_t then = m + RL_THREADS * WIDE;
            fetch(p, run, then, width(then, all), &next);
            interleave(p, cell, x.each, m, width(m, all), true);
            x = next;
        }
    }

    RL_MEMBER void write_run(const Params &p, V *cell, V *run, const Place &t, uint32_t thread) {
        uint32_t all = t.n * p.q.d;
        for (uint32_t m = thread * WIDE; m < all; m += RL_THREADS * WIDE) {
            uint32_t n = width(m, all);
            Wide x;
            interleave(p, cell, x.each, m, n, false);
            if (p.by_run && n == WIDE) *(rl_wide16 *)(run + m) = x.all;
            else {
                RL_UNROLL
                for (uint32_t e = 0; e < WIDE; e++)
                    if (e < n) run[m + e] = x.each[e];
            }
        }
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        Place t;
        uint32_t batch = rl_divide(block, p.tiles);
        t.first = (block - batch * p.tiles.d) * p.along;
        t.n = p.n - t.first < p.along ? p.n - t.first : p.along;
        rl_walk_at(&p.batch, batch, 2, t.at);
        V *to = (V *)p.to + t.at[0];
        const V *from = (const V *)p.from + t.at[1];
        if (p.out && phase == 0) read_run(p, s.cell, from + (int64_t)t.first * p.q.d, t, thread);
        else if (p.out) write_planes(p, s.cell, to, t, thread);
        else if (phase == 0) read_planes(p, s.cell, from, t, thread);
        else write_run(p, s.cell, to + (int64_t)t.first * p.q.d, t, thread);
    }
};

#endif
