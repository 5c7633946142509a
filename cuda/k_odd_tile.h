/* Moves by tiles (k_tile.h) whose lines begin anywhere, C++ for the host and the device.
 *
 *   word_tile, tall_tile   large ones, word by word: a warp reads 32 words of a row, and one more where that begins within a word, and writes 32 of a
 *                          line. A word has 4 bytes of several elements, or one that is longer; tall_tile has twice as many rows
 *   element_tile           others of 4 bytes or more, element by element: of any shape, and where several dims are one line
 *
 * Each line's piece begins where a sector of memory does, which no other tile then writes a part of: up to a sector before the tile, whose rows the tile
 * has, too (halo). */
#ifndef RL_CUDA_K_ODD_TILE_H
#define RL_CUDA_K_ODD_TILE_H
#include "k_tile.h"

/* What they share: which tile is a block's, and which of its rows there are. */
template <class V> struct rl_odd : rl_tiles<V, true> {
    typedef rl_tiles<V, true> Tiles;
    typedef typename Tiles::Place Place;

    /* Of wide columns and tall rows; `group` tiles along j come before those along i. */
    RL_MEMBER Place place_of(const rl_p_tile &p, uint32_t block, uint32_t wide, uint32_t tall) {
        uint32_t k = rl_divide(block, p.group), q = rl_divide(k, p.ti), batch = rl_divide(q, p.tj);
        int64_t at[2];
        Tiles::find_batch(p, batch, at);
        Place t = {(k - q * p.ti.d) * wide, ((q - batch * p.tj.d) * p.group.d + block - k * p.group.d) * tall, p.halo, (const V *)p.from + at[1], (V *)p.to + at[0]};
        return t;
    }
    /* Rows before the first line's begin wrap, and are none. */
    RL_MEMBER bool has_row(const rl_p_tile &p, const Place &t, uint32_t row) { return t.j + row - t.halo < p.nj; }
    /* Elements between a sector's begin and a line's. */
    RL_MEMBER uint32_t into_sector(const Place &t, const V *line) { return t.halo ? (uint32_t)((uintptr_t)line / sizeof(V) % Tiles::SECTOR) : 0; }
};

/* ---- word by word ---- */

template <class V> struct rl_tile_word { typedef V type; };
template <> struct rl_tile_word<uint8_t> { typedef rl_any_word type; };
template <> struct rl_tile_word<uint16_t> { typedef rl_any_word type; };

/* 1 << LR rows of 32 words, with a sector's rows before them. A thread has all its loads under way before the first is stored; what a line needs is found
 * once for all its words: both are what short elements have most of their time for. */
template <class V, uint32_t LR> struct rl_words {
    typedef rl_p_tile Params;
    typedef rl_nothing Local;
    typedef rl_odd<V> T;
    typedef typename T::Place Place;
    typedef typename T::Cell Cell;
    typedef typename rl_tile_word<V>::type Word;
    enum { SIZE = T::SIZE, PER = T::PER, ROW = RL_WORD_TILE_ROW, WORDS = (1 << LR) / PER, COLUMNS = PER * ROW, MOST_ROWS = (1 << LR) + T::SECTOR,
           STEP = RL_THREADS / ROW, EACH = (MOST_ROWS + STEP - 1) / STEP, LINES = RL_THREADS / WORDS };
    /* A line: where its piece goes, how many elements before the tile that begins, and where in the tile's rows the PER elements of the first word are. */
    struct Line { V *to; uint16_t at[PER], into; };
    struct Shared { Word cell[MOST_ROWS * (ROW + 1) + MOST_ROWS / 2 /* what is left out */]; Line line[COLUMNS]; };

    RL_MEMBER uint32_t cell(uint32_t row) { return rl_word_tile_cell(PER, row); }
    RL_MEMBER const V *first_row(const Params &p, const Place &t) { return t.from + t.i + ((int64_t)t.j - t.halo) * p.from_j; }

    /* Is all of the word `from`'s? */
    RL_MEMBER bool has_word(const Params &p, uintptr_t word) { return PER == 1 || T::has(p, word, sizeof(Word)); }

    RL_MEMBER void find_line(const Params &p, Line *to, const Place &t, uint32_t i) {
        const uint32_t turn = (uint32_t)p.from_j * SIZE, begin = (uint32_t)(uintptr_t)first_row(p, t);
        Line l;
        l.to = t.to + (t.i + i) * p.to_i + t.j;
        l.into = (uint16_t)T::into_sector(t, l.to);
        l.to -= l.into;
        RL_UNROLL
        for (uint32_t e = 0; e < PER; e++) {
            uint32_t row = t.halo - l.into + e; /* of word w: PER * w more, which begin as far from a word's begin */
            l.at[e] = (uint16_t)(sizeof(Word) * cell(row) + SIZE * i + (PER > 1 ? (begin + row * turn) % sizeof(Word) : 0));
        }
        *to = l;
    }

    /* INSIDE: all rows are there, and the whole words of COLUMNS that have them; of one element each is asked. */
    template <bool INSIDE> RL_MEMBER void read(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        const uint32_t c = thread % ROW, first = thread / ROW, rows = (1u << LR) + t.halo, left = (p.ni - t.i) * SIZE;
        const uintptr_t begin = (uintptr_t)first_row(p, t);
        const int64_t step = p.from_j * SIZE;
        Word x[EACH], more;
        uintptr_t at = begin + first * step;
        RL_UNROLL
        for (uint32_t e = 0; e < EACH; e++, at += STEP * step) {
            uint32_t row = first + e * STEP, before = at % sizeof(Word);
            uintptr_t word = at - before + c * sizeof(Word);
            x[e] = Word();
            if (row < rows && (INSIDE || (T::has_row(p, t, row) && c * sizeof(Word) < left + before && has_word(p, word)))) x[e] = *(const Word *)word;
        }
        /* the word behind a row that does not begin with one */
        at = begin + thread * step;
        uint32_t before = at % sizeof(Word);
        bool has_more = before && thread < rows && (INSIDE || (T::has_row(p, t, thread) && ROW * sizeof(Word) < left + before));
        at += ROW * sizeof(Word) - before;
        has_more = PER > 1 && has_more && (INSIDE || has_word(p, at));
        if (has_more) more = *(const Word *)at;
        at = begin + first * step;
        RL_UNROLL
        for (uint32_t e = 0; e < EACH; e++, at += STEP * step)
            if (first + e * STEP < rows && (INSIDE || has_word(p, at - at % sizeof(Word) + c * sizeof(Word)))) s.cell[cell(first + e * STEP) + c] = x[e];
        if (has_more) s.cell[cell(thread) + ROW] = more;
        if (PER > 1 && !INSIDE) read_ends(p, s, t, thread);
    }

    /* The elements at the ends of `from` that have no whole word there. */
    RL_MEMBER void read_ends(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        const uint32_t rows = (1u << LR) + t.halo, columns = p.ni - t.i < COLUMNS ? p.ni - t.i : (uint32_t)COLUMNS;
        RL_ROLLED
        for (uint32_t row = thread / PER; row < rows; row += RL_THREADS / PER) {
            const V *begin = first_row(p, t) + row * p.from_j;
            uint32_t k = thread % PER, into = (uint32_t)((uintptr_t)begin / SIZE % PER);
            if (!T::has_row(p, t, row)) continue;
            if (k < columns && k + into < PER && !has_word(p, (uintptr_t)(begin - into))) ((Cell *)(s.cell + cell(row)))[k + into] = begin[k];
            k = columns - 1 - k;
            if (k < columns && k + into >= PER && !has_word(p, (uintptr_t)(begin + k) / sizeof(Word) * sizeof(Word)))
                ((Cell *)(s.cell + cell(row)))[k + into] = begin[k];
        }
    }

    template <bool INSIDE> RL_MEMBER void write(const Params &p, const Shared &s, const Place &t, uint32_t thread) {
        const uint32_t w = thread % WORDS;
        const unsigned char *cells = (const unsigned char *)(s.cell + cell(w * PER));
        RL_UNROLL
        for (uint32_t i = thread / WORDS; i < COLUMNS; i += LINES) {
            if (t.i + i >= p.ni) return;
            const Line &l = s.line[i];
            union { Word all; Cell each[PER]; } x;
            V *to = l.to + w * PER;
            uint32_t j = t.j + w * PER - l.into; /* before the first: wraps */
            if (INSIDE || (j < p.nj && p.nj - j >= PER)) {
                RL_UNROLL
                for (uint32_t e = 0; e < PER; e++) x.each[e] = *(const Cell *)(cells + l.at[e]);
                *(Word *)to = x.all;
            } else
                for (uint32_t e = 0; PER > 1 && e < PER; e++)
                    if (j + e < p.nj) to[e] = *(const Cell *)(cells + l.at[e]);
        }
    }

    RL_MEMBER bool is_inside(const Params &p, const Place &t) {
        const V *first = first_row(p, t);
        return PER > 1 && t.j >= t.halo && t.j + (1u << LR) <= p.nj && first - PER >= (const V *)p.low
               && first + (MOST_ROWS - 1) * p.from_j + COLUMNS + PER <= (const V *)p.high;
    }
    RL_MEMBER uint32_t steps(const Params &) { return 2; }
    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        Place t = T::place_of(p, block, COLUMNS, 1u << LR);
        bool inside = is_inside(p, t);
        if (phase == 0) {
            if (thread < COLUMNS) find_line(p, s.line + thread, t, thread);
            if (inside) read<true>(p, s, t, thread);
            else read<false>(p, s, t, thread);
        } else if (inside) write<true>(p, s, t, thread);
        else write<false>(p, s, t, thread);
    }
};
template <class V> using rl_word_tile = rl_words<V, RL_WORD_TILE_ROWS(sizeof(V))>;
template <class V> using rl_tall_tile = rl_words<V, RL_WORD_TILE_ROWS(sizeof(V)) + 1>;

/* ---- element by element ---- */

template <class V> struct rl_element_tile : rl_odd<V> {
    typedef rl_p_tile Params;
    typedef rl_nothing Local;
    typedef rl_odd<V> T;
    typedef typename T::Place Place;
    enum { SIZE = T::SIZE, AHEAD = SIZE < 8 ? 9 : 5 };
    struct Shared { V cell[RL_ELEMENT_TILE_BYTES / SIZE]; int64_t line[1 << RL_ELEMENT_TILE_MOST]; };
    RL_MEMBER uint32_t steps(const Params &) { return 2; }

    RL_MEMBER void read(const Params &p, Shared &s, const Place &t, uint32_t thread) {
        const uint32_t lc = p.shape.lc, i = thread & ((1u << lc) - 1), step = RL_THREADS >> lc, rows = (1u << p.shape.lk) + t.halo;
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

    RL_MEMBER void write(const Params &p, const Shared &s, const Place &t, uint32_t thread) {
        const uint32_t lc = p.shape.lc, j = thread & ((1u << p.shape.lk) - 1), step = RL_THREADS >> p.shape.lk;
        for (uint32_t i = thread >> p.shape.lk; i < 1u << lc; i += step) {
            if (t.i + i >= p.ni) return;
            V *to = t.to + s.line[i] + t.j;
            uint32_t into = T::into_sector(t, to), row = j + t.halo - into;
            if (t.j + j - into < p.nj) to[(int32_t)(j - into)] = s.cell[(row << lc) + row + i];
        }
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &, uint32_t block, uint32_t thread) {
        Place t = T::place_of(p, block, 1u << p.shape.lc, 1u << p.shape.lk);
        if (phase == 0) {
            T::find_lines(p, s.line, t, 1u << p.shape.lc, thread);
            read(p, s, t, thread);
        } else write(p, s, t, thread);
    }
};

#endif
