/* Moves where `to` and `from` have their neighbours along different dims: through a tile in shared memory (index.h), C++ for the host and the device.
 *
 *   rows      a row of the tile is a piece of a line of `from`
 *   lines     what is written of the tile is a piece of a line of `to` for each of its columns
 *
 * Three kernels:
 *
 *   tile          lines of both begin where 16 bytes, a chunk, do, and those of `to` that go on in other tiles have whole sectors: chunks on both sides. A
 *                 chunk of a line takes an element of 16 / size rows. Elements of 1 and 2 bytes lie 4 or 2 in a word of the tile: a thread takes a word of
 *                 each of these rows and turns them in registers.
 *   any_tile      of 1 and 2 bytes, lines begin anywhere: a row is read from a multiple of 16 bytes on, lies so in the tile, and has one chunk more
 *   element_tile  of 4 bytes or more, or where what lies between rows may not be read: element by element
 *
 * Where lines of `to` begin anywhere, each line's piece begins where a sector of memory does, which no other tile then writes a part of: up to a sector
 * before the tile, whose rows the tile has, too (halo). */
#ifndef RL_CUDA_K_TILE_H
#define RL_CUDA_K_TILE_H
#include "k_interleave.h"

/* Shared memory is read and written as what it is not, too. */
template <class V> struct rl_alias { typedef V __attribute__((may_alias)) type; };
template <> struct rl_alias<rl_wide16> { typedef rl_wide16 type; };

/* What they share: where a block's tile is, and its rows. */
template <class V> struct rl_tiled {
    enum { SIZE = sizeof(V), WIDE = 16 / SIZE, SECTOR = 32 / SIZE };
    typedef typename rl_alias<V>::type Cell;
    typedef rl_vector<V> Wide;
    struct Place { uint32_t i, j, halo; const V *from; V *to; }; /* the tile's first column and row; rows before it */

    /* Of wide columns and tall rows; GROUP: tiles along j, `group` of them, come before those along i. */
    template <bool GROUP> RL_MEMBER Place place_of(const rl_p_tile &p, uint32_t block, uint32_t wide, uint32_t tall) {
        uint32_t k = GROUP ? rl_divide(block, p.group) : block, q = rl_divide(k, p.ti), batch = rl_divide(q, p.tj), j = q - batch * p.tj.d;
        int64_t at[2];
        rl_walk_at(&p.batch, batch, 2, at);
        if (GROUP) j = j * p.group.d + block - k * p.group.d;
        Place t = {(k - q * p.ti.d) * wide, j * tall, p.halo, (const V *)p.from + at[1], (V *)p.to + at[0]};
        return t;
    }

    RL_MEMBER int64_t along(const rl_walk &run, int64_t step, uint32_t i) {
        int64_t at[1] = {i * step};
        if (run.rank) rl_walk_at(&run, i, 1, at);
        return at[0];
    }
    /* Rows before the first line's begin wrap, and are none. */
    RL_MEMBER bool has_row(const rl_p_tile &p, const Place &t, uint32_t row) { return t.j + row - t.halo < p.nj; }
    RL_MEMBER const V *begin_of(const rl_p_tile &p, const Place &t, uint32_t row) { return t.from + along(p.run_j, p.from_j, t.j + row - t.halo) + t.i; }
    RL_MEMBER void find_lines(const rl_p_tile &p, int64_t *line, const Place &t, uint32_t wide, uint32_t thread) {
        for (uint32_t i = thread; i < wide; i += RL_THREADS)
            if (t.i + i < p.ni) line[i] = along(p.run_i, p.to_i, t.i + i);
    }
    /* Elements between a sector's begin and a line's. */
    RL_MEMBER uint32_t into_sector(const Place &t, const V *line) { return t.halo ? (uint32_t)((uintptr_t)line / SIZE % SECTOR) : 0; }
};

/* ---- chunks on both sides ---- */

template <class V> struct rl_tile : rl_tiled<V> {
    typedef rl_p_tile Params;
    typedef rl_nothing Local;
    typedef rl_tiled<V> T;
    typedef typename T::Place Place;
    typedef typename T::Wide Wide;
    enum { SIZE = T::SIZE, WIDE = T::WIDE, PER = SIZE < 4 ? 4 / SIZE : 1, AHEAD = 4 };
    struct Shared { alignas(16) typename T::Cell cell[RL_TILE_BYTES / SIZE]; int64_t line[RL_TILE_LINES / SIZE]; };
    RL_MEMBER uint32_t steps(const Params &) { return 2; }
    RL_MEMBER uint32_t chunk(const Params &p, uint32_t row, uint32_t c) { return rl_tile_chunk(SIZE, p.shape, row, c); }

    /* A thread has the same place in several rows: up to AHEAD loads, as many as a large tile has for it, are under way before the first is waited for. */
    RL_MEMBER void read(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        uint32_t c = thread & ((1u << p.shape.lc) - 1), step = RL_THREADS >> p.shape.lc, rows = (uint32_t)WIDE << p.shape.lk;
        if (t.i + c * WIDE >= p.ni) return;
        for (uint32_t first = thread >> p.shape.lc; first < rows; first += AHEAD * step) {
            rl_wide16 x[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++)
                if (first + e * step < rows && T::has_row(p, t, first + e * step)) x[e] = *(const rl_wide16 *)(T::begin_of(p, t, first + e * step) + c * WIDE);
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++)
                if (first + e * step < rows && T::has_row(p, t, first + e * step)) ((rl_wide16 *)s.cell)[chunk(p, first + e * step, c)] = x[e];
        }
    }

    /* The elements of rows `row` on of a chunk that lies in place `within` of theirs, in bytes; LC: lc, where it is known when this is compiled. */
    template <uint32_t LC, class X> RL_MEMBER void column(const Params &p, const Shared &s, uint32_t row, uint32_t within, X (&x)[WIDE]) {
        const uint32_t lc = LC ? LC : p.shape.lc, c = within / 16;
        const unsigned char *base = (const unsigned char *)s.cell + within % 16;
        if (lc >= 3) { /* the turn of a row's chunks stays within them */
            const unsigned char *here = base + 16 * chunk(p, row, c);
            RL_UNROLL
            for (uint32_t e = 0; e < WIDE; e++) x[e] = *(const typename rl_alias<X>::type *)(here + (16 * e << lc));
        } else {
            RL_UNROLL
            for (uint32_t e = 0; e < WIDE; e++) x[e] = *(const typename rl_alias<X>::type *)(base + 16 * chunk(p, row + e, c));
        }
    }

    /* A thread has the same chunk of several lines. */
    template <uint32_t LC> RL_MEMBER void write(const Params &p, const Shared &s, const Place &t, uint32_t thread) {
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

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        uint32_t wide = (uint32_t)WIDE << p.shape.lc;
        Place t = T::template place_of<false>(p, block, wide, (uint32_t)WIDE << p.shape.lk);
        if (phase == 0) {
            T::find_lines(p, s.line, t, wide, thread);
            read(p, s, t, thread);
        } else if (p.shape.lc == 3) write<3>(p, s, t, thread);
        else if (p.shape.lc == 4) write<4>(p, s, t, thread);
        else write<0>(p, s, t, thread);
    }
};

/* ---- bytes and halves, lines that begin anywhere ---- */

template <class V> struct rl_any_tile : rl_tiled<V> {
    typedef rl_p_tile Params;
    typedef rl_nothing Local;
    typedef rl_tiled<V> T;
    typedef typename T::Place Place;
    typedef typename T::Cell Cell;
    typedef typename T::Wide Wide;
    enum { SIZE = T::SIZE, WIDE = T::WIDE, PER = 4 / SIZE, AHEAD = 6 };
    struct Shared { rl_wide16 chunk[RL_ANY_TILE_CHUNKS]; int64_t line[RL_TILE_LINES / SIZE]; };
    RL_MEMBER uint32_t steps(const Params &) { return 2; }

    /* What lies outside of `from` is not read. */
    RL_MEMBER rl_wide16 fetch(const Params &p, uintptr_t at) {
        union { rl_wide16 all; V each[WIDE]; } x;
        if (at >= (uintptr_t)p.low && at + 16 <= (uintptr_t)p.high) return *(const rl_wide16 *)at;
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) {
            uintptr_t one = at + e * SIZE;
            x.each[e] = one >= (uintptr_t)p.low && one < (uintptr_t)p.high ? *(const V *)one : (V)0;
        }
        return x.all;
    }

    RL_MEMBER void read(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        const uint32_t all = (((uint32_t)WIDE << p.shape.lk) + t.halo) * p.row.d, left = (p.ni - t.i) * SIZE, wide = 16u << p.shape.lc;
        for (uint32_t first = thread; first < all; first += AHEAD * RL_THREADS) {
            rl_wide16 x[AHEAD];
            bool has[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                uint32_t u = first + e * RL_THREADS, row = rl_divide(u, p.row), c = u - row * p.row.d;
                has[e] = u < all && T::has_row(p, t, row);
                if (!has[e]) continue;
                uintptr_t begin = (uintptr_t)T::begin_of(p, t, row);
                has[e] = 16 * c < begin % 16 + (left < wide ? left : wide);
                if (has[e]) x[e] = fetch(p, begin - begin % 16 + 16 * c);
            }
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                uint32_t u = first + e * RL_THREADS;
                uint32_t row = rl_divide(u, p.row);
                if (has[e]) s.chunk[rl_any_tile_row(SIZE, p.row.d, row) + u - row * p.row.d] = x[e];
            }
        }
    }

    RL_MEMBER V cell(const Shared &s, uint32_t chunks, uint32_t row, uint32_t byte) {
        return *(const Cell *)((const unsigned char *)s.chunk + 16 * rl_any_tile_row(SIZE, chunks, row) + byte);
    }

    /* ROW: chunks of a row, where it is known when this is compiled. */
    template <uint32_t ROW> RL_MEMBER void write(const Params &p, const Shared &s, const Place &t, uint32_t thread) {
        uint32_t lw = rl_tile_words(SIZE, p.shape), words = 1u << lw, all = PER << (p.shape.lk + lw);
        const uint32_t chunks = ROW ? ROW : p.row.d, turn = (uint32_t)p.from_j * SIZE; /* how far a row begins after the one before it, of which 16 bytes count */
        const int32_t before = (int32_t)t.j, end = (int32_t)(p.nj - t.j);
        for (uint32_t u = thread; u < all; u += RL_THREADS) {
            rl_tile_unit o = rl_tile_unit_of(p.shape, lw, u);
            uint32_t i = (o.w & (words - 1)) * PER + (o.w >> lw);
            if (t.i + i >= p.ni) continue;
            V *to = t.to + s.line[i] + t.j;
            int32_t first = (int32_t)(o.k * WIDE) - (int32_t)T::into_sector(t, to);
            uint32_t row = (uint32_t)first + t.halo, begin = (uint32_t)(uintptr_t)(t.from + t.i) + (t.j + (uint32_t)first) * turn;
            if (first + before >= 0 && first + WIDE <= end) {
                Wide x;
                RL_UNROLL
                for (uint32_t e = 0; e < WIDE; e++) x.each[e] = cell(s, chunks, row + e, SIZE * i + ((begin + e * turn) & 15));
                *(rl_wide16 *)(to + first) = x.all;
            } else {
                for (int32_t e = 0; e < WIDE; e++)
                    if (first + e + before >= 0 && first + e < end) to[first + e] = cell(s, chunks, row + e, SIZE * i + ((begin + e * turn) & 15));
            }
        }
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        uint32_t wide = (uint32_t)WIDE << p.shape.lc;
        Place t = T::template place_of<true>(p, block, wide, (uint32_t)WIDE << p.shape.lk);
        if (phase == 0) {
            T::find_lines(p, s.line, t, wide, thread);
            read(p, s, t, thread);
        } else if (p.row.d == 9) write<9>(p, s, t, thread);
        else write<0>(p, s, t, thread);
    }
};

/* ---- element by element ---- */

template <class V> struct rl_element_tile : rl_tiled<V> {
    typedef rl_p_tile Params;
    typedef rl_nothing Local;
    typedef rl_tiled<V> T;
    typedef typename T::Place Place;
    enum { SIZE = T::SIZE, AHEAD = SIZE < 8 ? 9 : 5, USUAL = SIZE < 8 ? 6 : 5 /* rows, of 32 elements, as a power of two */ };
    struct Shared { V cell[RL_ELEMENT_TILE_BYTES / SIZE]; int64_t line[1 << RL_ELEMENT_TILE_MOST]; };
    RL_MEMBER uint32_t steps(const Params &) { return 2; }

    template <uint32_t LC> RL_MEMBER void read(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        const uint32_t lc = LC ? LC : p.shape.lc, i = thread & ((1u << lc) - 1), step = RL_THREADS >> lc, rows = (1u << p.shape.lk) + t.halo;
        if (t.i + i >= p.ni) return;
        for (uint32_t first = thread >> lc; first < rows; first += AHEAD * step) {
            V x[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++)
                if (first + e * step < rows && T::has_row(p, t, first + e * step)) x[e] = T::begin_of(p, t, first + e * step)[i];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++)
                if (first + e * step < rows && T::has_row(p, t, first + e * step)) s.cell[((first + e * step) << lc) + first + e * step + i] = x[e];
        }
    }

    template <uint32_t LC, uint32_t LK> RL_MEMBER void write(const Params &p, const Shared &s, const Place &t, uint32_t thread) {
        const uint32_t lc = LC ? LC : p.shape.lc, lk = LK ? LK : p.shape.lk, j = thread & ((1u << lk) - 1), step = RL_THREADS >> lk;
        RL_UNROLL
        for (uint32_t i = thread >> lk; i < 1u << lc; i += step) {
            if (t.i + i >= p.ni) return;
            V *to = t.to + s.line[i] + t.j;
            uint32_t into = T::into_sector(t, to), row = j + t.halo - into;
            if (t.j + j - into < p.nj) to[(int32_t)(j - into)] = s.cell[(row << lc) + row + i];
        }
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        Place t = T::template place_of<false>(p, block, 1u << p.shape.lc, 1u << p.shape.lk);
        if (phase == 0) {
            T::find_lines(p, s.line, t, 1u << p.shape.lc, thread);
            if (p.shape.lc == 5) read<5>(p, s, t, thread);
            else read<0>(p, s, t, thread);
        } else if (p.shape.lc == 5 && p.shape.lk == USUAL) write<5, USUAL>(p, s, t, thread);
        else write<0, 0>(p, s, t, thread);
    }
};

#endif
