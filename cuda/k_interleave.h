/* Planes to and from their elements side by side, where there are 2, 3, 4, 8, 16 or 32 planes (64 of 4 bits): C++ for the host and the device (k_move.h
 * says how kernels are written; weave, there, takes any number of planes).
 *
 *   plane 0   a0 a1 a2 a3 ...
 *   plane 1   b0 b1 b2 b3 ...         run   a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 b3 c3 ...
 *   plane 2   c0 c1 c2 c3 ...
 *
 * A *column* is AT bytes of each plane, one below the other; columns are counted through all batches, so that short planes fill a block, too.  A thread
 * takes E columns of R planes, 64 bytes or a little less, all under way before it waits for the first.  It turns them in registers: from then on what lies
 * together, in shared memory and on its way there, is at least a word of 4 bytes.  Shared memory has the block's columns as the run has them, and
 * goes to or from it 16 bytes at a time, a warp 512 bytes side by side; stores straight from a thread's registers would leave half of each sector to
 * another instruction.  Columns of 32 bytes or more lie there with the number of the column added to where in them 16 bytes lie, without carry, so that
 * eight lanes, each with another column, meet in no bank (unit_gpu_index counts; columns of words, of 8 planes or more, meet up to four times). */
#ifndef RL_CUDA_K_INTERLEAVE_H
#define RL_CUDA_K_INTERLEAVE_H
#include "k_move.h"

/* Byte k is byte (select >> 4k & 7) of the eight of a and b. */
RL_HD uint32_t rl_permute(uint32_t a, uint32_t b, uint32_t select) {
#ifdef __CUDA_ARCH__
    return __byte_perm(a, b, select);
#else
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t x = 0;
    for (uint32_t k = 0; k < 4; k++) x |= (uint32_t)(both >> 8 * (select >> 4 * k & 7) & 255) << 8 * k;
    return x;
#endif
}

/* R words, one of each plane, to the R words of the run that have their elements, and back. Elements of a word or more stay as they are. */
template <uint32_t BITS, uint32_t R> struct rl_turn {
    static RL_INSIDE void there(uint32_t *) {}
    static RL_INSIDE void back(uint32_t *) {}
};
template <> struct rl_turn<16, 2> {
    static RL_INSIDE void there(uint32_t *x) {
        uint32_t a = x[0];
        x[0] = rl_permute(a, x[1], 0x5410), x[1] = rl_permute(a, x[1], 0x7632);
    }
    static RL_INSIDE void back(uint32_t *x) { there(x); }
};
template <> struct rl_turn<16, 3> {
    static RL_INSIDE void there(uint32_t *x) {
        uint32_t a = x[0], b = x[1], c = x[2];
        x[0] = rl_permute(a, b, 0x5410), x[1] = rl_permute(c, a, 0x7610), x[2] = rl_permute(b, c, 0x7632);
    }
    static RL_INSIDE void back(uint32_t *x) {
        uint32_t u = x[0], v = x[1], w = x[2];
        x[0] = rl_permute(u, v, 0x7610), x[1] = rl_permute(u, w, 0x5432), x[2] = rl_permute(v, w, 0x7610);
    }
};
template <> struct rl_turn<16, 4> {
    static RL_INSIDE void there(uint32_t *x) {
        uint32_t a = x[0], b = x[1], c = x[2], d = x[3];
        x[0] = rl_permute(a, b, 0x5410), x[1] = rl_permute(c, d, 0x5410), x[2] = rl_permute(a, b, 0x7632), x[3] = rl_permute(c, d, 0x7632);
    }
    static RL_INSIDE void back(uint32_t *x) {
        uint32_t a = x[0], b = x[1], c = x[2], d = x[3];
        x[0] = rl_permute(a, c, 0x5410), x[1] = rl_permute(a, c, 0x7632), x[2] = rl_permute(b, d, 0x5410), x[3] = rl_permute(b, d, 0x7632);
    }
};
template <> struct rl_turn<8, 2> {
    static RL_INSIDE void there(uint32_t *x) {
        uint32_t a = x[0];
        x[0] = rl_permute(a, x[1], 0x5140), x[1] = rl_permute(a, x[1], 0x7362);
    }
    static RL_INSIDE void back(uint32_t *x) {
        uint32_t u = x[0];
        x[0] = rl_permute(u, x[1], 0x6420), x[1] = rl_permute(u, x[1], 0x7531);
    }
};
template <> struct rl_turn<8, 3> {
    static RL_INSIDE void there(uint32_t *x) {
        uint32_t c = x[2], first = rl_permute(x[0], x[1], 0x5140), last = rl_permute(x[0], x[1], 0x7362);
        x[0] = rl_permute(first, c, 0x2410), x[1] = rl_permute(rl_permute(first, c, 0x53), last, 0x5410), x[2] = rl_permute(last, c, 0x7326);
    }
    static RL_INSIDE void back(uint32_t *x) {
        uint32_t u = x[0], v = x[1], w = x[2];
        x[0] = rl_permute(rl_permute(u, v, 0x630), w, 0x5210);
        x[1] = rl_permute(rl_permute(u, v, 0x741), w, 0x6210);
        x[2] = rl_permute(rl_permute(u, v, 0x52), w, 0x7410);
    }
};
template <> struct rl_turn<8, 4> { /* 4 by 4 bytes, transposed */
    static RL_INSIDE void there(uint32_t *x) {
        uint32_t a = rl_permute(x[0], x[1], 0x5140), b = rl_permute(x[0], x[1], 0x7362), c = rl_permute(x[2], x[3], 0x5140), d = rl_permute(x[2], x[3], 0x7362);
        x[0] = rl_permute(a, c, 0x5410), x[1] = rl_permute(a, c, 0x7632), x[2] = rl_permute(b, d, 0x5410), x[3] = rl_permute(b, d, 0x7632);
    }
    static RL_INSIDE void back(uint32_t *x) { there(x); }
};
template <> struct rl_turn<4, 8> { /* 8 by 8 halves of bytes: those of two planes to bytes, then bytes */
    static RL_INSIDE void there(uint32_t *x) {
        uint32_t even[4], odd[4];
        RL_UNROLL
        for (uint32_t m = 0; m < 4; m++) pair(x[2 * m], x[2 * m + 1], &even[m], &odd[m]);
        rl_turn<8, 4>::there(even), rl_turn<8, 4>::there(odd);
        RL_UNROLL
        for (uint32_t m = 0; m < 4; m++) x[2 * m] = even[m], x[2 * m + 1] = odd[m];
    }
    static RL_INSIDE void back(uint32_t *x) {
        uint32_t even[4], odd[4];
        RL_UNROLL
        for (uint32_t m = 0; m < 4; m++) even[m] = x[2 * m], odd[m] = x[2 * m + 1];
        rl_turn<8, 4>::there(even), rl_turn<8, 4>::there(odd);
        RL_UNROLL
        for (uint32_t m = 0; m < 4; m++) pair(even[m], odd[m], &x[2 * m], &x[2 * m + 1]);
    }
    static RL_INSIDE void pair(uint32_t a, uint32_t b, uint32_t *low, uint32_t *high) {
        const uint32_t half = 0x0f0f0f0f;
        *low = (a & half) | (b & half) << 4, *high = (a >> 4 & half) | (b & ~half);
    }
};

/* N words stored as one. */
template <uint32_t N> RL_HD void rl_put_words(char *to, const uint32_t *x) {
    rl_bunch<uint32_t, N> w;
    RL_UNROLL
    for (uint32_t i = 0; i < N; i++) w.each[i] = x[i];
    w.put((uint32_t *)to);
}

template <uint32_t BITS, uint32_t AT, uint32_t Q> struct rl_interleave {
    typedef rl_p_interleave Params;
    typedef rl_nothing Local;
    enum { R = RL_LACE_PLANES(BITS, Q), E = RL_LACE_EACH(BITS, AT, Q), COLUMNS = RL_LACE_COLUMNS(BITS, AT, Q), COLUMN = RL_LACE_COLUMN(AT, Q),
           STEP = RL_LACE_STEP(BITS, Q), PUT = RL_LACE_PUT(BITS, AT, Q), NPUT = R * AT / PUT, WORDS = AT / 4, UNITS = COLUMNS * COLUMN / 16, EACH = UNITS / RL_THREADS };
    static_assert((uint32_t)RL_THREADS == RL_LACE_THREADS, "a block");
    struct alignas(16) Shared { rl_wide16 unit[UNITS]; };
    RL_MEMBER uint32_t steps(const Params &) { return 2; }

    /* Where word i of the thread's plane j stands in its part of the run. */
    static constexpr RL_INSIDE uint32_t word_of(uint32_t i, uint32_t j) { return BITS == 64 ? (i / 2 * R + j) * 2 + i % 2 : i * R + j; }

    /* Adds what batches' numbers, `left`, mean in an operand: what a dim needs is read once for all. */
    template <uint32_t N> RL_MEMBER void walk(const Params &p, const int32_t *steps, uint32_t (&left)[N], int32_t (&at)[N]) {
        RL_ROLLED
        for (uint32_t i = p.rank; i-- > 0;) {
            rl_divisor d = p.dim[i];
            uint32_t step = (uint32_t)steps[i];
            RL_UNROLL
            for (uint32_t e = 0; e < N; e++) {
                uint32_t q = i ? rl_divide(left[e], d) : 0;
                at[e] = (int32_t)((uint32_t)at[e] + (left[e] - q * d.d) * step), left[e] = q;
            }
        }
    }

    /* Where a thread's columns lie in its first plane, in pieces of AT bytes. */
    RL_MEMBER void find(const Params &p, uint32_t first, int32_t (&at)[E]) {
        uint32_t left[E];
        RL_UNROLL
        for (uint32_t e = 0; e < E; e++) {
            uint32_t column = first + e * STEP;
            left[e] = rl_divide(column, p.each), at[e] = (int32_t)(column - left[e] * p.each.d);
        }
        walk<E>(p, p.step_plane, left, at);
    }

    /* Where a thread's 16 bytes of the run lie, of those of all batches one after the other; in a block they are 256 apart. */
    RL_MEMBER void find_run(const Params &p, uint32_t first, int32_t (&at)[EACH]) {
        uint32_t left[EACH];
        RL_UNROLL
        for (uint32_t e = 0; e < EACH; e++) at[e] = (int32_t)(first + e * RL_THREADS);
        if (p.flat) return;
        RL_UNROLL
        for (uint32_t e = 0; e < EACH; e++) left[e] = rl_divide((uint32_t)at[e], p.units), at[e] -= (int32_t)(left[e] * p.units.d);
        walk<EACH>(p, p.step_run, left, at);
    }

    RL_MEMBER int64_t along(const Params &p, int32_t at, uint32_t j) { return ((int64_t)at + (int64_t)j * p.step_j) * (int64_t)AT; }
    RL_MEMBER char *first_plane(char *planes, const Params &p, uint32_t thread) { return planes + along(p, 0, rl_lace_group(BITS, AT, Q, thread) * R); }
    RL_MEMBER uint32_t first_of(uint32_t block, uint32_t thread) { return block * COLUMNS + rl_lace_column(BITS, AT, Q, thread); }
    /* Bytes of the block's part of the run: less at the end. */
    RL_MEMBER uint32_t bytes_of(const Params &p, uint32_t block) {
        uint32_t left = p.count - block * COLUMNS;
        return (left < COLUMNS ? left : (uint32_t)COLUMNS) * COLUMN;
    }

    RL_MEMBER void read_planes(const Params &p, Shared &s, uint32_t block, uint32_t thread) {
        uint32_t first = first_of(block, thread);
        int32_t at[E];
        rl_bunch<uint32_t, WORDS> in[E][R];
        find(p, first, at);
        const char *from = first_plane((char *)p.from, p, thread);
        RL_UNROLL
        for (uint32_t e = 0; e < E; e++)
            RL_UNROLL
            for (uint32_t j = 0; j < R; j++)
                if (first + e * STEP < p.count) in[e][j].get((const uint32_t *)(from + along(p, at[e], j)));
        RL_UNROLL
        for (uint32_t e = 0; e < E; e++) {
            uint32_t x[R * WORDS];
            if (first + e * STEP >= p.count) continue;
            RL_UNROLL
            for (uint32_t i = 0; i < WORDS; i++)
                RL_UNROLL
                for (uint32_t j = 0; j < R; j++) x[word_of(i, j)] = in[e][j].each[i];
            RL_UNROLL
            for (uint32_t i = 0; i < WORDS; i++) rl_turn<BITS, R>::there(x + i * R);
            RL_UNROLL
            for (uint32_t k = 0; k < NPUT; k++) rl_put_words<PUT / 4>((char *)s.unit + rl_lace_place(BITS, AT, Q, thread, e, k), x + k * (PUT / 4));
        }
    }

    RL_MEMBER void write_planes(const Params &p, const Shared &s, uint32_t block, uint32_t thread) {
        uint32_t first = first_of(block, thread);
        int32_t at[E];
        find(p, first, at);
        char *to = first_plane((char *)p.to, p, thread);
        RL_UNROLL
        for (uint32_t e = 0; e < E; e++) {
            uint32_t x[R * WORDS];
            if (first + e * STEP >= p.count) continue;
            RL_UNROLL
            for (uint32_t k = 0; k < NPUT; k++) {
                rl_bunch<uint32_t, PUT / 4> w;
                w.get((const uint32_t *)((const char *)s.unit + rl_lace_place(BITS, AT, Q, thread, e, k)));
                RL_UNROLL
                for (uint32_t i = 0; i < PUT / 4; i++) x[k * (PUT / 4) + i] = w.each[i];
            }
            RL_UNROLL
            for (uint32_t i = 0; i < WORDS; i++) rl_turn<BITS, R>::back(x + i * R);
            RL_UNROLL
            for (uint32_t j = 0; j < R; j++) {
                uint32_t y[WORDS];
                RL_UNROLL
                for (uint32_t i = 0; i < WORDS; i++) y[i] = x[word_of(i, j)];
                rl_put_words<WORDS>(to + along(p, at[e], j), y);
            }
        }
    }

    /* The end of the last block's run may have less than 16 bytes: they go word by word. */
    RL_MEMBER void copy_end(char *to, const char *from, uint32_t n) {
        RL_ROLLED
        for (uint32_t k = 0; k < n; k += 4) *(uint32_t *)(to + k) = *(const uint32_t *)(from + k);
    }

    RL_MEMBER void read_run(const Params &p, Shared &s, uint32_t block, uint32_t thread) {
        uint32_t have = bytes_of(p, block);
        int32_t at[EACH];
        rl_wide16 x[EACH];
        find_run(p, block * UNITS + thread, at);
        RL_UNROLL
        for (uint32_t e = 0; e < EACH; e++)
            if ((thread + e * RL_THREADS) * 16 + 16 <= have) x[e] = ((const rl_wide16 *)p.from)[at[e]];
        RL_UNROLL
        for (uint32_t e = 0; e < EACH; e++) {
            uint32_t b = (thread + e * RL_THREADS) * 16;
            rl_wide16 *to = s.unit + rl_lace_unit(AT, Q, thread) + e * RL_THREADS;
            if (b + 16 <= have) *to = x[e];
            else if (COLUMN % 16 && b < have) copy_end((char *)to, (const char *)((const rl_wide16 *)p.from + at[e]), have - b);
        }
    }

    RL_MEMBER void write_run(const Params &p, const Shared &s, uint32_t block, uint32_t thread) {
        uint32_t have = bytes_of(p, block);
        int32_t at[EACH];
        find_run(p, block * UNITS + thread, at);
        RL_UNROLL
        for (uint32_t e = 0; e < EACH; e++) {
            uint32_t b = (thread + e * RL_THREADS) * 16;
            const rl_wide16 *from = s.unit + rl_lace_unit(AT, Q, thread) + e * RL_THREADS;
            if (b + 16 <= have) ((rl_wide16 *)p.to)[at[e]] = *from;
            else if (COLUMN % 16 && b < have) copy_end((char *)((rl_wide16 *)p.to + at[e]), (const char *)from, have - b);
        }
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        if (p.out && phase == 0) read_run(p, s, block, thread);
        else if (p.out) write_planes(p, s, block, thread);
        else if (phase == 0) read_planes(p, s, block, thread);
        else write_run(p, s, block, thread);
    }
};

/* By the bytes of an element (kernels.inc). */
template <uint32_t Q> using rl_interleave1 = rl_interleave<8, 16, Q>;
template <uint32_t Q> using rl_interleave2 = rl_interleave<16, 16, Q>;
template <uint32_t Q> using rl_interleave4 = rl_interleave<32, 16, Q>;
template <uint32_t Q> using rl_interleave8 = rl_interleave<64, 16, Q>;
template <uint32_t Q> using rl_short_interleave1 = rl_interleave<8, 4, Q>;
template <uint32_t Q> using rl_short_interleave2 = rl_interleave<16, 4, Q>;
template <uint32_t Q> using rl_short_interleave4 = rl_interleave<32, 4, Q>;
template <uint32_t Q> using rl_short_interleave8 = rl_interleave<64, 8, Q>;
typedef rl_interleave<4, 8, 64> rl_interleave_4bits;

#endif
