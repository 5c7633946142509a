/* Moves by tiles (k_tile.h) whose lines begin anywhere, C++ for the host and the device.
 *
 *   odd_tile       of 1 and 2 bytes, with lines of `from` and of `to` that begin anywhere: a row is read from a multiple of 16 bytes on, lies so in the tile,
 *                  and has one chunk more
 *   element_tile   of 4 bytes or more, element by element: 32 neighbours have whole sectors, but for two of them
 *
 * Each line's piece begins where a sector of memory does, which no other tile then writes a part of: up to a sector before the tile, whose rows the tile
 * has, too (halo). */
#ifndef RL_CUDA_K_ODD_TILE_H
#define RL_CUDA_K_ODD_TILE_H
#include "k_tile.h"

/* What the two share: which tile is a block's, and which of its rows there are. */
template <class V> struct rl_odd : rl_tiles<V, true> {
    typedef rl_tiles<V, true> Tiles;
    typedef typename Tiles::Place Place;

    /* Of wide columns and tall rows; `group` tiles along j come before those along i. */
    RL_MEMBER Place place_of(const rl_p_tile &p, uint32_t block, uint32_t wide, uint32_t tall) {
        uint32_t k = rl_divide(block, p.group), q = rl_divide(k, p.ti), batch = rl_divide(q, p.tj);
        int64_t at[2];
        rl_walk_at(&p.batch, batch, 2, at);
        Place t = {(k - q * p.ti.d) * wide, ((q - batch * p.tj.d) * p.group.d + block - k * p.group.d) * tall, p.halo, (const V *)p.from + at[1], (V *)p.to + at[0]};
        return t;
    }
    /* Rows before the first line's begin wrap, and are none. */
    RL_MEMBER bool has_row(const rl_p_tile &p, const Place &t, uint32_t row) { return t.j + row - t.halo < p.nj; }
    /* Elements between a sector's begin and a line's. */
    RL_MEMBER uint32_t into_sector(const Place &t, const V *line) { return t.halo ? (uint32_t)((uintptr_t)line / sizeof(V) % Tiles::SECTOR) : 0; }
};

/* ---- bytes and halves ---- */

template <class V> struct rl_odd_tile : rl_odd<V> {
    typedef rl_p_tile Params;
    typedef rl_nothing Local;
    typedef rl_odd<V> T;
    typedef typename T::Place Place;
    typedef typename T::Cell Cell;
    typedef typename T::Wide Wide;
    enum { SIZE = T::SIZE, WIDE = T::WIDE, PER = 4 / SIZE, AHEAD = 6, USUAL_LC = 3, USUAL_LK = SIZE == 1 ? 3 : 4 /* of large arrays */ };
    /* A tile's shape: that one, known when this is compiled, or any. */
    template <bool USUAL> RL_MEMBER rl_tile_shape shape_of(const Params &p) {
        rl_tile_shape s = p.shape;
        if (USUAL) s.lc = USUAL_LC, s.lk = USUAL_LK;
        return s;
    }
    template <bool USUAL> RL_MEMBER uint32_t row_of(const Params &p, uint32_t u) { return USUAL ? u / ((1 << USUAL_LC) + 1) : rl_divide(u, p.row); }
    struct Shared { rl_wide16 chunk[RL_ODD_TILE_CHUNKS]; int64_t line[RL_TILE_LINES / SIZE]; };
    RL_MEMBER uint32_t steps(const Params &) { return 2; }

    /* What lies outside of `from` is not read. */
    RL_MEMBER rl_wide16 fetch(const Params &p, uintptr_t at) {
        union { rl_wide16 all; V each[WIDE]; } x;
        if (T::has(p, at, 16)) return *(const rl_wide16 *)at;
        RL_UNROLL
        for (uint32_t e = 0; e < WIDE; e++) x.each[e] = T::has(p, at + e * SIZE, SIZE) ? *(const V *)(at + e * SIZE) : (V)0;
        return x.all;
    }

    template <bool USUAL> RL_MEMBER void read(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        const rl_tile_shape shape = shape_of<USUAL>(p);
        const uint32_t chunks = (1u << shape.lc) + 1, all = (((uint32_t)WIDE << shape.lk) + t.halo) * chunks, left = (p.ni - t.i) * SIZE, wide = 16u << shape.lc;
        for (uint32_t first = thread; first < all; first += AHEAD * RL_THREADS) {
            rl_wide16 x[AHEAD];
            bool has[AHEAD];
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                uint32_t u = first + e * RL_THREADS, row = row_of<USUAL>(p, u), c = u - row * chunks;
                has[e] = u < all && T::has_row(p, t, row);
                if (!has[e]) continue;
                uintptr_t begin = (uintptr_t)T::begin_of(p, t, row);
                has[e] = 16 * c < begin % 16 + (left < wide ? left : wide);
                if (has[e]) x[e] = fetch(p, begin - begin % 16 + 16 * c);
            }
            RL_UNROLL
            for (uint32_t e = 0; e < AHEAD; e++) {
                uint32_t u = first + e * RL_THREADS, row = row_of<USUAL>(p, u);
                if (has[e]) s.chunk[rl_odd_tile_row(SIZE, chunks, row) + u - row * chunks] = x[e];
            }
        }
    }

    RL_MEMBER V cell(const Shared &s, uint32_t chunks, uint32_t row, uint32_t byte) {
        return *(const Cell *)((const unsigned char *)s.chunk + 16 * rl_odd_tile_row(SIZE, chunks, row) + byte);
    }

    template <bool USUAL> RL_MEMBER void write(const Params &p, const Shared &s, const Place &t, uint32_t thread) {
        const rl_tile_shape shape = shape_of<USUAL>(p);
        const uint32_t lw = rl_tile_words(SIZE, shape), words = 1u << lw, all = PER << (shape.lk + lw), chunks = (1u << shape.lc) + 1;
        const uint32_t turn = (uint32_t)p.from_j * SIZE; /* how far a row begins after the one before it, of which 16 bytes count */
        const int32_t before = (int32_t)t.j, end = (int32_t)(p.nj - t.j);
        for (uint32_t u = thread; u < all; u += RL_THREADS) {
            rl_tile_unit o = rl_tile_unit_of(shape, lw, u);
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
        Place t = T::place_of(p, block, wide, (uint32_t)WIDE << p.shape.lk);
        bool usual = p.shape.lc == USUAL_LC && p.shape.lk == USUAL_LK;
        if (phase == 0) {
            T::find_lines(p, s.line, t, wide, thread);
            if (usual) read<true>(p, s, t, thread);
            else read<false>(p, s, t, thread);
        } else if (usual) write<true>(p, s, t, thread);
        else write<false>(p, s, t, thread);
    }
};

/* ---- element by element ---- */

template <class V> struct rl_element_tile : rl_odd<V> {
    typedef rl_p_tile Params;
    typedef rl_nothing Local;
    typedef rl_odd<V> T;
    typedef typename T::Place Place;
    enum { SIZE = T::SIZE, AHEAD = SIZE < 8 ? 9 : 5, USUAL = SIZE < 8 ? 6 : 5 /* rows, of 32 elements, as a power of two */ };
    struct Shared { V cell[RL_ELEMENT_TILE_BYTES / SIZE]; int64_t line[1 << RL_ELEMENT_TILE_MOST]; };
    RL_MEMBER uint32_t steps(const Params &) { return 2; }

    template <uint32_t LC, uint32_t LK> RL_MEMBER void read(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        const uint32_t lc = LC ? LC : p.shape.lc, lk = LK ? LK : p.shape.lk, i = thread & ((1u << lc) - 1), step = RL_THREADS >> lc, rows = (1u << lk) + t.halo;
        if (t.i + i >= p.ni) return;
        for (uint32_t first = thread >> lc; first < (1u << lk) + T::SECTOR; first += AHEAD * step) {
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
        Place t = T::place_of(p, block, 1u << p.shape.lc, 1u << p.shape.lk);
        bool usual = p.shape.lc == 5 && p.shape.lk == USUAL;
        if (phase == 0) {
            T::find_lines(p, s.line, t, 1u << p.shape.lc, thread);
            if (usual) read<5, USUAL>(p, s, t, thread);
            else read<0, 0>(p, s, t, thread);
        } else if (usual) write<5, USUAL>(p, s, t, thread);
        else write<0, 0>(p, s, t, thread);
    }
};

#endif
