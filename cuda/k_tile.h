/* Moves where `to` and `from` have their neighbours along different dims: through a tile in shared memory (index.h), C++ for the host and the device.
 *
 *   rows      a row of the tile is a piece of a line of `from`: it is read 16 bytes, a chunk, at a time
 *   lines     what is written of the tile is a piece of a line of `to` for each of its columns: a chunk takes an element of 16 / size rows
 *
 * Elements of 1 and 2 bytes lie 4 or 2 in a word of the tile: a thread takes a word of each of these rows and turns them in registers.
 *
 * Kernel tile: lines of both begin on chunks, and those of `to` that go on in other tiles have whole sectors. Kernel any_tile, of 1 and 2 bytes, is the same
 * for all others but what k_odd_tile.h has:
 *
 * Where lines of `from` begin anywhere, chunks are read from multiples of 16 bytes on and shifted on their way into the tile, so that a row has one more of
 * them. Where lines of `to` do, each line's piece begins where a sector of memory does, which no other tile then writes a part of: up to a sector before
 * the tile, whose rows the tile has, too. */
#ifndef RL_CUDA_K_TILE_H
#define RL_CUDA_K_TILE_H
#include "k_interleave.h"

/* Shared memory is read and written as what it is not, too. */
template <class V> struct rl_alias { typedef V __attribute__((may_alias)) type; };
template <> struct rl_alias<rl_wide16> { typedef rl_wide16 type; };
typedef rl_alias<uint32_t>::type rl_any_word;

/* ANY: lines begin anywhere on one side or both. */
template <class V, bool ANY> struct rl_tiles {
    typedef rl_p_tile Params;
    typedef rl_nothing Local;
    typedef typename rl_alias<V>::type Cell;
    enum { SIZE = sizeof(V), WIDE = 16 / SIZE, SECTOR = 32 / SIZE, PER = RL_TILE_PER(SIZE), AHEAD = ANY ? 5 : 4 };
    struct Shared { alignas(16) Cell cell[RL_TILE_BYTES / SIZE]; int64_t line[RL_TILE_LINES / SIZE]; };
    struct Place { uint32_t i, j, halo; const V *from; V *to; }; /* the tile's first column and row; rows before it */
    typedef rl_vector<V> Wide;
    RL_MEMBER uint32_t steps(const Params &) { return 2; }
    RL_MEMBER int64_t along(const rl_walk &run, int64_t step, uint32_t i) {
        int64_t at[1] = {i * step};
        if (run.rank) rl_walk_at(&run, i, 1, at);
        return at[0];
    }
    RL_MEMBER uint32_t chunk(const Params &p, uint32_t row, uint32_t c) { return rl_tile_chunk(SIZE, p.shape, row, c); }
    RL_MEMBER uint32_t rows(const Params &p, const Place &t) { return ((uint32_t)WIDE << p.shape.lk) + t.halo; }
    /* Rows before the first line's begin wrap, and are none. */
    RL_MEMBER bool has_row(const Params &p, const Place &t, uint32_t row) { return row < rows(p, t) && t.j + row - t.halo < p.nj; }
    RL_MEMBER const V *begin_of(const Params &p, const Place &t, uint32_t row) { return t.from + along(p.run_j, p.from_j, t.j + row - t.halo) + t.i; }

    /* Where a batch begins in `to` and `from`; along one dim without the walk, whose loads a small tile waits for. */
    RL_MEMBER void find_batch(const Params &p, uint32_t batch, int64_t (&at)[2]) {
        if (p.batch.rank > 1) rl_walk_at(&p.batch, batch, 2, at);
        else at[0] = batch * p.batch.step[0][0], at[1] = batch * p.batch.step[1][0]; /* of no dim: 0 */
    }

    RL_MEMBER void find_lines(const Params &p, int64_t *line, const Place &t, uint32_t wide, uint32_t thread) {
        for (uint32_t i = thread; i < wide; i += RL_THREADS)
            if (t.i + i < p.ni) line[i] = along(p.run_i, p.to_i, t.i + i);
    }

    /* ---- rows: a thread has the same place in several of them ---- */

    RL_MEMBER void read_elements(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        uint32_t wide = WIDE << p.shape.lc, all = rows(p, t) * wide;
        for (uint32_t k = thread; k < all; k += RL_THREADS) {
            uint32_t i = k & (wide - 1), row = (k >> p.shape.lc) / WIDE;
            V x = {};
            if (has_row(p, t, row) && t.i + i < p.ni) x = begin_of(p, t, row)[i];
            s.cell[chunk(p, row, i / WIDE) * WIDE + i % WIDE] = x; /* also where there is none: words are read whole */
        }
    }

    /* Up to AHEAD loads are under way before the first of them is waited for: as many as a large tile has for a thread, with the rows before it. */
    RL_MEMBER void read_chunks(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        uint32_t c = thread & ((1u << p.shape.lc) - 1), step = RL_THREADS >> p.shape.lc;
        if (t.i + c * WIDE >= p.ni) return;
        for (uint32_t first = thread >> p.shape.lc; first < rows(p, t); first += AHEAD * step) {
            rl_wide16 x[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++)
                if (has_row(p, t, first + e * step)) x[e] = *(const rl_wide16 *)(begin_of(p, t, first + e * step) + c * WIDE);
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++)
                if (has_row(p, t, first + e * step)) ((rl_wide16 *)s.cell)[chunk(p, first + e * step, c)] = x[e];
        }
    }

    /* 16 bytes from a multiple of that on, and the word after them; what lies outside of `from` is not read. */
    struct Fetched { uint32_t word[5]; };
    RL_MEMBER bool has(const Params &p, uintptr_t at, uint32_t n) { return at >= (uintptr_t)p.low && at + n <= (uintptr_t)p.high; }
    RL_MEMBER uint32_t word_at(const Params &p, const unsigned char *at) {
        union { uint32_t all; Cell each[PER]; } w;
        if (has(p, (uintptr_t)at, 4)) return *(const rl_any_word *)at;
        w.all = 0;
        RL_UNROLL
        for (uint32_t e = 0; e < PER; e++)
            if (SIZE < 4 && has(p, (uintptr_t)at + e * SIZE, SIZE)) w.each[e] = *(const Cell *)(at + e * SIZE);
        return w.all;
    }
    RL_MEMBER Fetched fetch(const Params &p, const unsigned char *at, bool more) {
        Fetched f;
        if (has(p, (uintptr_t)at, 20)) {
            rl_wide16 x = *(const rl_wide16 *)at;
            RL_UNROLL
            for (uint32_t w = 0; w < 4; w++) f.word[w] = x.x[w];
            f.word[4] = more ? *(const rl_any_word *)(at + 16) : 0;
        } else {
            RL_UNROLL
            for (uint32_t w = 0; w < 4 + (SIZE < 4); w++) f.word[w] = word_at(p, at + 4 * w);
        }
        return f;
    }

    /* Chunk c, counted from the multiple of 16 bytes before a row's begin, of rows `row`, row + step ...; their begins may be anywhere. */
    RL_MEMBER void read_shifted(const Params &p, Shared &s, const Place &t, uint32_t row, uint32_t step, uint32_t c) {
        const uint32_t bytes = (p.ni - t.i) * SIZE;
        for (uint32_t first = row; first < rows(p, t); first += AHEAD * step) {
            Fetched x[AHEAD];
            uint32_t shift[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                shift[e] = 16; /* none */
                if (!has_row(p, t, first + e * step)) continue;
                const unsigned char *begin = (const unsigned char *)begin_of(p, t, first + e * step);
                if (16 * c >= (uintptr_t)begin % 16 + bytes) continue;
                shift[e] = (uint32_t)((uintptr_t)begin % 16);
                x[e] = fetch(p, begin - shift[e] + 16 * c, SIZE < 4 && shift[e] % 4);
            }
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                uint32_t bits = SIZE < 4 ? shift[e] % 4 * 8 : 0;
                if (shift[e] == 16) continue;
                RL_UNROLL
                for (uint32_t w = 0; w < 4; w++) {
                    uint32_t to = 4 * c + w - shift[e] / 4; /* before the row's begin: wraps */
                    if (to < 4u << p.shape.lc)
                        ((rl_any_word *)s.cell)[chunk(p, first + e * step, to / 4) * 4 + to % 4] =
                            SIZE < 4 ? (uint32_t)(((uint64_t)x[e].word[w + 1] << 32 | x[e].word[w]) >> bits) : x[e].word[w];
                }
            }
        }
    }

    /* ---- lines: a thread has the same chunk of several of them ---- */

    /* The elements of rows `row` on of a chunk that lies in place `within` of theirs, in bytes; LC: lc, where it is known when this is compiled. */
    template <uint32_t LC, class T> RL_MEMBER void column(const Params &p, const Shared &s, uint32_t row, uint32_t within, T (&x)[WIDE]) {
        const uint32_t lc = LC ? LC : p.shape.lc, rest = row % WIDE, c = within / 16;
        const unsigned char *base = (const unsigned char *)s.cell + within % 16;
        if (lc >= 3) { /* the turn of a row's chunks stays within them, and changes once */
            const unsigned char *here = base + 16 * chunk(p, row, c), *next = base + 16 * (chunk(p, row - rest + WIDE, c) - ((WIDE - rest) << lc));
            RL_UNROLL
            for (uint32_t e = 0; e < WIDE; e++) x[e] = *(const typename rl_alias<T>::type *)((e + rest < WIDE ? here : next) + (16 * e << lc));
        } else {
            RL_UNROLL
            for (uint32_t e = 0; e < WIDE; e++) x[e] = *(const typename rl_alias<T>::type *)(base + 16 * chunk(p, row + e, c));
        }
    }

    template <uint32_t LC> RL_MEMBER void write_chunks(const Params &p, const Shared &s, const Place &t, uint32_t thread) {
        uint32_t lw = rl_tile_words(SIZE, p.shape), all = 1u << (p.shape.lk + lw);
        for (uint32_t u = thread; u < all; u += RL_THREADS) {
            rl_tile_unit o = rl_tile_unit_of(p.shape, lw, u);
            uint32_t j = o.k * WIDE, i = o.w * PER;
            if (t.j + j >= p.nj || t.i + i >= p.ni) continue;
            rl_wide16 y[PER];
            if (SIZE <= 4) {
                uint32_t x[WIDE];
                column<LC>(p, s, j, 4 * o.w, x);
                RL_UNROLL
                for (uint32_t k = 0; k < 4; k++) {
                    rl_turn<8 * SIZE, PER>::there(x + PER * k);
                    RL_UNROLL
                    for (uint32_t b = 0; b < PER; b++) y[b].x[k] = x[PER * k + b];
                }
            } else {
                Wide x;
                column<LC>(p, s, j, SIZE * i, x.each);
                y[0] = x.all;
            }
            RL_UNROLL
            for (uint32_t b = 0; b < PER; b++)
                if (t.i + i + b < p.ni) *(rl_wide16 *)(t.to + s.line[i + b] + t.j + j) = y[b];
        }
    }

    template <uint32_t LC> RL_MEMBER void write_shifted(const Params &p, const Shared &s, const Place &t, uint32_t thread) {
        uint32_t lw = rl_tile_words(SIZE, p.shape), words = 1u << lw, all = PER << (p.shape.lk + lw);
        const int32_t before = (int32_t)t.j, end = (int32_t)(p.nj - t.j);
        for (uint32_t u = thread; u < all; u += RL_THREADS) {
            rl_tile_unit o = rl_tile_unit_of(p.shape, lw, u);
            uint32_t i = (o.w & (words - 1)) * PER + (o.w >> lw);
            if (t.i + i >= p.ni) continue;
            V *to = t.to + s.line[i] + t.j;
            int32_t first = (int32_t)(o.k * WIDE) - (int32_t)((uintptr_t)to / SIZE % SECTOR);
            if (first + before >= 0 && first + WIDE <= end) {
                Wide x;
                column<LC>(p, s, (uint32_t)(first + SECTOR), SIZE * i, x.each);
                *(rl_wide16 *)(to + first) = x.all;
            } else {
                for (int32_t e = 0; e < WIDE; e++)
                    if (first + e + before >= 0 && first + e < end) to[first + e] = s.cell[chunk(p, (uint32_t)(first + SECTOR + e), i / WIDE) * WIDE + i % WIDE];
            }
        }
    }

    template <uint32_t LC> RL_MEMBER void write(const Params &p, const Shared &s, const Place &t, uint32_t thread) {
        if (!ANY || p.vector_out) write_chunks<LC>(p, s, t, thread);
        else write_shifted<LC>(p, s, t, thread);
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        uint32_t q = rl_divide(block, p.ti), batch = rl_divide(q, p.tj), wide = WIDE << p.shape.lc;
        int64_t at[2];
        find_batch(p, batch, at);
        Place t = {(block - q * p.ti.d) * wide, (q - batch * p.tj.d) * ((uint32_t)WIDE << p.shape.lk), !ANY || p.vector_out ? 0 : (uint32_t)SECTOR,
                   (const V *)p.from + at[1], (V *)p.to + at[0]};
        if (phase == 0) {
            find_lines(p, s.line, t, wide, thread);
            if (!ANY || p.in == RL_TILE_CHUNKS) read_chunks(p, s, t, thread);
            else if (p.in == RL_TILE_SHIFTED) {
                read_shifted(p, s, t, thread >> p.shape.lc, RL_THREADS >> p.shape.lc, thread & ((1u << p.shape.lc) - 1));
                read_shifted(p, s, t, thread, RL_THREADS, 1u << p.shape.lc);
            } else read_elements(p, s, t, thread);
        } else if (p.shape.lc == 3) write<3>(p, s, t, thread);
        else if (p.shape.lc == 4) write<4>(p, s, t, thread);
        else write<0>(p, s, t, thread);
    }
};

template <class V> using rl_tile = rl_tiles<V, false>;
template <class V> using rl_any_tile = rl_tiles<V, true>;

#endif
