/* Index arithmetic of the GPU's kernels (cuda/index.h): division, walks, merged dims, vectors, tiles and their banks. */
#include "../../cuda/index.h"

#include <stdlib.h>
#include <string.h>

#include "../../cuda/side.h"
#include "check.h"

static void check_divide(uint32_t n, uint32_t d) {
    if (rl_divide(n, rl_divisor_of(d)) != n / d) CHECK(false && "quotient");
}

/* Every divisor up to 3000, at each multiple's neighbours among small numbers, and at the ends of the range. */
TEST(divide) {
    uint64_t seed = 1;
    for (uint32_t d = 1; d <= 3000; d++) {
        for (uint32_t n = 0; n < 4096; n++) check_divide(n, d);
        for (uint32_t k = 0; k < 50; k++) {
            uint32_t q = (uint32_t)(check_random31(&seed) % (INT32_MAX / d)), n = q * d;
            check_divide(n, d), check_divide(n + d - 1, d);
            if (n) check_divide(n - 1, d);
        }
        check_divide(INT32_MAX, d), check_divide(INT32_MAX - 1, d);
    }
    for (uint32_t bit = 11; bit < 31; bit++)
        for (int32_t off = -3; off <= 3; off++) {
            uint32_t d = (1u << bit) + (uint32_t)off;
            for (uint32_t k = 0; k < 200; k++) check_divide((uint32_t)check_random31(&seed) & INT32_MAX, d);
            check_divide(INT32_MAX, d), check_divide(d, d), check_divide(d - 1, d);
        }
    check_divide(INT32_MAX, INT32_MAX), check_divide(INT32_MAX - 1, INT32_MAX);
}

/* ---- walks ---- */

/* Where the loops' element k, row-major, lies in operand o. */
static int64_t place(const rl_loops *l, int64_t k, uint32_t o) {
    int64_t at = 0;
    for (uint32_t i = l->rank; i-- > 0; k /= l->dim[i]) at += k % l->dim[i] * l->step[o][i];
    return at;
}

/* Steps of a permuted, sometimes padded, sometimes broadcast or reversed tensor. */
static void random_steps(uint64_t *seed, const int64_t *dim, uint32_t rank, int64_t *step, bool write) {
    uint32_t order[8];
    int64_t s = 1;
    for (uint32_t i = 0; i < rank; i++) order[i] = i;
    for (uint32_t i = rank; i-- > 1;) {
        uint32_t k = (uint32_t)(check_random31(seed) % (i + 1)), t = order[i];
        order[i] = order[k], order[k] = t;
    }
    if (check_random31(seed) % 3 == 0)
        for (uint32_t i = 0; i < rank; i++) order[i] = i;
    for (uint32_t i = rank; i-- > 0;) {
        step[order[i]] = s;
        s *= dim[order[i]] + (check_random31(seed) % 6 == 0);
        if (!write && check_random31(seed) % 8 == 0) step[order[i]] = 0;
        if (check_random31(seed) % 10 == 0) step[order[i]] = -step[order[i]];
    }
}

static rl_loops random_loops(uint64_t *seed) {
    rl_loops l = {.rank = (uint32_t)(check_random31(seed) % 6), .noperand = 2};
    for (uint32_t i = 0; i < l.rank; i++) l.dim[i] = 1 + (int64_t)(check_random31(seed) % 5);
    for (uint32_t o = 0; o < 2; o++) random_steps(seed, l.dim, l.rank, l.step[o], o == 0);
    return l;
}

static int by_pair(const void *a, const void *b) {
    return memcmp(a, b, 2 * sizeof(int64_t));
}

/* Which element of operand 1 goes where in operand 0, sorted. */
static int64_t *pairs_of(const rl_loops *l, int64_t n) {
    int64_t *p = calloc((size_t)n + 1, 2 * sizeof *p);
    for (int64_t k = 0; k < n; k++) p[2 * k] = place(l, k, 0), p[2 * k + 1] = place(l, k, 1);
    qsort(p, (size_t)n, 2 * sizeof *p, by_pair);
    return p;
}

TEST(walk) {
    uint64_t seed = 7;
    for (uint32_t t = 0; t < 20000; t++) {
        rl_loops l = random_loops(&seed), merged = l;
        int64_t n = rl_loops_count(&l);
        rl_loops_merge(&merged);
        CHECK(rl_loops_count(&merged) == n && merged.rank <= l.rank);
        rl_walk w = rl_walk_of(&merged, 0);
        for (int64_t k = 0; k < n; k++) {
            int64_t at[2];
            rl_walk_at(&w, (uint32_t)k, 2, at);
            if (at[0] != place(&l, k, 0) || at[1] != place(&l, k, 1)) CHECK(false && "a walk's place");
        }
        rl_loops_sort(&merged);
        int64_t *a = pairs_of(&l, n), *b = pairs_of(&merged, n);
        CHECK(memcmp(a, b, (size_t)n * 2 * sizeof *a) == 0);
        free(a), free(b);
    }
}

/* A copy by vectors moves the same bytes, and no vector crosses its alignment. */
static void check_vectors(const rl_loops *l, uint32_t size, uint64_t address) {
    rl_loops wide = *l;
    uint32_t v = rl_loops_vector(l, size, address);
    int64_t n = rl_loops_count(l);
    CHECK(v >= size && v <= 16 && v % size == 0);
    rl_loops_widen(&wide, v / size);
    int64_t m = rl_loops_count(&wide), *a = pairs_of(l, n), *b = calloc((size_t)n + 1, 2 * sizeof *b);
    CHECK(m * (v / size) == n);
    for (int64_t k = 0; k < n; k++) {
        int64_t e = k % (v / size), to = place(&wide, k / (v / size), 0) * (v / size), from = place(&wide, k / (v / size), 1) * (v / size);
        if (v > size) CHECK((to * size + (int64_t)address) % v == 0 && (from * size + (int64_t)address) % v == 0);
        b[2 * k] = to + e, b[2 * k + 1] = from + e;
    }
    qsort(b, (size_t)n, 2 * sizeof *b, by_pair);
    CHECK(memcmp(a, b, (size_t)n * 2 * sizeof *a) == 0);
    free(a), free(b);
}

TEST(vectors) {
    uint64_t seed = 3;
    uint32_t nwide = 0;
    for (uint32_t t = 0; t < 20000; t++) {
        rl_loops l = random_loops(&seed);
        for (uint32_t i = 0; i < l.rank; i++)
            if (i + 1 == l.rank) l.dim[i] *= 1 << check_random31(&seed) % 5;
        for (uint32_t o = 0; o < 2; o++) random_steps(&seed, l.dim, l.rank, l.step[o], o == 0);
        for (uint32_t o = 0; o < 2; o++)
            for (uint32_t i = 0; i < l.rank; i++) l.step[o][i] = llabs(l.step[o][i]);
        rl_loops_sort(&l);
        rl_loops_merge(&l);
        if (rl_loops_count(&l) > 4000) continue;
        uint32_t size = 1u << check_random31(&seed) % 5;
        uint64_t address = check_random31(&seed) % 3 ? 0 : size * (check_random31(&seed) % 16);
        nwide += rl_loops_vector(&l, size, address) > size;
        check_vectors(&l, size, address);
    }
    CHECK(nwide > 1000);
}

/* Loops that threads go through by 16 bytes have the same places, and what is a vector of an operand begins where one may. */
TEST(by_vectors) {
    uint64_t seed = 11, taken = 0;
    for (uint32_t t = 0; t < 20000; t++) {
        static const uint32_t wide[] = {1, 2, 4, 8, 16};
        rl_loops l = random_loops(&seed);
        uint32_t n = wide[t % RL_LEN(wide)], last = l.rank - 1;
        if (l.rank && t % 3) l.dim[last] *= n, l.step[0][last] = 1, l.step[1][last] = t % 2;
        for (uint32_t i = 0; i < last && l.rank && t % 3; i++) l.step[0][i] *= n, l.step[1][i] *= n;
        if (!rl_loops_takes(&l, n, 2, (uint64_t[]){0, 16})) continue;
        rl_loops by = l;
        int64_t count = rl_loops_count(&l);
        rl_loops_by(&by, n);
        CHECK(rl_loops_count(&by) == (count + n - 1) / n && (l.rank == 1 || count % n == 0));
        for (int64_t k = 0; k < count; k++) {
            int64_t e = k % n, to = place(&by, k / n, 0), from = place(&by, k / n, 1);
            CHECK(to % n == 0 && (l.step[1][last] == 0 || from % n == 0));
            CHECK(to + e == place(&l, k, 0) && from + e * l.step[1][last] == place(&l, k, 1));
        }
        taken++;
    }
    rl_loops one = {.rank = 2, .noperand = 2, .dim = {3, 8}, .step = {{8, 1}, {8, 1}}};
    CHECK(taken > 3000 && rl_loops_takes(&one, 4, 2, (uint64_t[]){0, 16}) && !rl_loops_takes(&one, 4, 2, (uint64_t[]){0, 8})
          && rl_loops_takes(&one, 4, 1, (uint64_t[]){0, 8}));
}

TEST(outer) {
    rl_loops l = {.rank = 3, .noperand = 1, .dim = {3, 70000, 40000}};
    CHECK(rl_loops_outer(&l) == 2); /* 2.8e9 elements of the last two */
    l.dim[1] = 40000;
    CHECK(rl_loops_outer(&l) == 1);
    l.rank = 20;
    for (uint32_t i = 0; i < 20; i++) l.dim[i] = 2;
    CHECK(rl_loops_outer(&l) == 20 - RL_DIMS);
}

/* ---- tiles ---- */

/* Every shape that a tile may have, from the least dims that are given to it on. */
typedef struct { uint32_t size; rl_tile_shape s; } tile;
static uint32_t rows_of(tile t) { return 16 / t.size << t.s.lk; }
static uint32_t words_of(tile t) { return 1u << rl_tile_words(t.size, t.s); }

/* Chunks of all rows lie in places of their own, with a sector's rows more than the tile has; it writes each chunk of each line once. */
static void check_cover(tile t) {
    uint32_t rows = rows_of(t) + 32 / t.size, n = rows << t.s.lc, nunit = words_of(t) << t.s.lk;
    uint8_t *seen = calloc(n, 1), *written = calloc(nunit, 1);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = rl_tile_chunk(t.size, t.s, k >> t.s.lc, k & ((1u << t.s.lc) - 1));
        CHECK(at < n && !seen[at]++);
    }
    for (uint32_t u = 0; u < nunit; u++) {
        rl_tile_unit o = rl_tile_unit_of(t.s, rl_tile_words(t.size, t.s), u), more = rl_tile_unit_of(t.s, rl_tile_words(t.size, t.s), u + nunit);
        CHECK(o.k < 1u << t.s.lk && o.w < words_of(t) && !written[o.k * words_of(t) + o.w]++);
        CHECK(more.k == o.k && more.w == o.w + words_of(t));
    }
    CHECK(n * 16 <= RL_TILE_BYTES && (16 / t.size << t.s.lc) <= RL_TILE_LINES / t.size);
    free(seen), free(written);
}

/* Shared memory answers in groups of lanes, 128 bytes for all of them: 32 lanes of up to 4 bytes, 16 of 8, 8 of 16.  The most
 * different words that a group asks one of the 32 banks for; 1: no conflict.  at: the byte that each lane begins at. */
static uint32_t conflicts(const uint32_t *at, uint32_t lanes, uint32_t bytes) {
    uint32_t word[32][64], n[32] = {0}, worst = 0;
    for (uint32_t lane = 0; lane < lanes; lane++)
        for (uint32_t w = at[lane] / 4; w <= (at[lane] + bytes - 1) / 4; w++) {
            uint32_t bank = w % 32, known = 0;
            for (uint32_t u = 0; u < n[bank]; u++) known |= word[bank][u] == w;
            if (!known) word[bank][n[bank]++] = w;
            worst = n[bank] > worst ? n[bank] : worst;
        }
    return worst;
}

static uint32_t conflicts_of_rows(tile t) {
    uint32_t at[8], worst = 0;
    for (uint32_t k = 0; k < rows_of(t) << t.s.lc; k += 8) {
        for (uint32_t lane = 0; lane < 8; lane++) at[lane] = 16 * rl_tile_chunk(t.size, t.s, (k + lane) >> t.s.lc, (k + lane) & ((1u << t.s.lc) - 1));
        worst = RL_MAX(worst, conflicts(at, 8, 16));
    }
    return worst;
}

/* Of lines that begin on 16 bytes; shifted: each word's begins elsewhere, and its chunks up to a chunk of rows before. */
static uint32_t conflicts_of_lines(tile t, bool shifted) {
    uint32_t at[32], worst = 0, each = t.size < 4 ? 4 : t.size, group = 128 / each, wide = 16 / t.size, nunit = words_of(t) << t.s.lk;
    for (uint32_t u = 0; u < nunit; u += group)
        for (uint32_t e = 0; e < wide; e++) {
            for (uint32_t lane = 0; lane < group; lane++) {
                rl_tile_unit o = rl_tile_unit_of(t.s, rl_tile_words(t.size, t.s), u + lane);
                uint32_t row = o.k * wide + e + (shifted ? 2 * wide - o.w * 7 % (2 * wide) : 0);
                at[lane] = 16 * rl_tile_chunk(t.size, t.s, row, o.w * each / 16) + o.w * each % 16;
            }
            worst = RL_MAX(worst, conflicts(at, group, each));
        }
    return worst;
}

/* Kernels word_tile and tall_tile: rows follow each other with a word to spare; lanes that have words of a line, which begins anywhere, meet in no bank. */
static void check_words(uint32_t size) {
    uint32_t per = RL_TILE_PER(size), word = RL_MAX(size, 4u), lanes = 128 / word, rows = (2u << RL_WORD_TILE_ROWS(size)) + 32 / size, at[32];
    for (uint32_t r = 1; r < rows; r++) CHECK(rl_word_tile_cell(per, r) > rl_word_tile_cell(per, r - 1) + RL_WORD_TILE_ROW);
    CHECK(rl_word_tile_cell(per, rows - 1) + RL_WORD_TILE_ROW < rows * (RL_WORD_TILE_ROW + 1) + rows / 2);
    for (uint32_t first = 0; first + per * lanes <= rows; first++) {
        for (uint32_t k = 0; k < lanes; k++) at[k] = word * rl_word_tile_cell(per, first + per * k);
        CHECK(conflicts(at, lanes, size) == 1);
    }
}

/* Kernel element_tile: rows fit, a sector's more than the tile has, and so do lines. */
static void check_elements(uint32_t size, uint32_t ni, uint32_t nj) {
    rl_tile_shape s = rl_element_tile_of(size, ni, nj);
    CHECK((((1u << s.lc) + 1) * ((1u << s.lk) + 32 / size)) * size <= RL_ELEMENT_TILE_BYTES);
    CHECK(s.lc <= RL_ELEMENT_TILE_MOST && s.lk <= RL_ELEMENT_TILE_MOST && 1u << s.lc < 2 * ni && 1u << s.lk < 2 * nj);
    CHECK(ni < 32 || nj < 32 || (s.lc >= 5 && s.lk >= 5));
}

/* A warp's stores of whole lines make whole 32-byte sectors. */
static void check_sectors(tile t) {
    for (uint32_t u = 0; u < words_of(t) << t.s.lk; u += 32) {
        uint64_t sector[64], nsector = 0;
        for (uint32_t lane = 0; lane < 32; lane++) {
            rl_tile_unit o = rl_tile_unit_of(t.s, rl_tile_words(t.size, t.s), u + lane);
            uint64_t at = ((uint64_t)o.w << 20) + 16 * o.k, known = 0;
            for (uint64_t v = 0; v < nsector; v++) known |= sector[v] == at / 32;
            if (!known) sector[nsector++] = at / 32;
        }
        CHECK(nsector == (t.s.lk ? 16 : 32));
    }
}

TEST(tiles) {
    uint32_t nshape = 0;
    for (uint32_t size = 1; size <= 16; size *= 2) check_words(size);
    for (uint32_t size = 1; size <= 16; size *= 2)
        for (uint32_t ni = 8; ni <= 1024; ni *= 2)
            for (uint32_t nj = 8; nj <= 1024; nj *= 2) {
                if (ni * nj * size < 2048) continue; /* move.c has no tiles for these */
                tile t = {size, rl_tile_shape_of(size, ni, nj)};
                CHECK(16 / size << t.s.lc <= RL_MAX(ni, 16 / size) && rows_of(t) <= RL_MAX(nj, 16 / size));
                check_cover(t);
                check_sectors(t);
                CHECK(conflicts_of_rows(t) == 1 && conflicts_of_lines(t, false) == 1);
                CHECK(conflicts_of_lines(t, true) <= (t.s.lc < 3 ? 4u : 1u)); /* rows of less than 128 bytes: of two lines that begin elsewhere, rows may meet */
                check_elements(size, ni, nj), check_elements(size, ni + 1, nj + 1);
                nshape++;
            }
    CHECK(nshape > 200);
}

/* ---- interleaved planes ---- */

/* Where byte b of a block's run lies in shared memory. */
static uint32_t run_byte(uint32_t at, uint32_t q, uint32_t b) { return rl_lace_unit(at, q, b / 16) * 16 + b % 16; }

/* A thread's k-th put is so many bytes of its planes at its place of the run. */
static uint32_t put_byte(uint32_t bits, uint32_t at, uint32_t q, uint32_t thread, uint32_t e, uint32_t k) {
    uint32_t piece = RL_LACE_PIECE(bits, at, q), b = k * RL_LACE_PUT(bits, at, q), places = q <= 4 ? 0 : b / piece * (q * bits / 8);
    return (rl_lace_column(bits, at, q, thread) + e * RL_LACE_STEP(bits, q)) * q * at + places + rl_lace_group(bits, at, q, thread) * piece + (q <= 4 ? b : b % piece);
}

/* The most words that one bank is asked for by the lanes of a warp that shared memory answers together: of the puts, of the 16 bytes of the run. */
static uint32_t lace_conflicts(uint32_t bits, uint32_t at, uint32_t q, uint32_t k, bool puts) {
    uint32_t size = puts ? RL_LACE_PUT(bits, at, q) : 16, group = 128 / size, worst = 0;
    for (uint32_t first = 0; first < 256; first += group) {
        uint32_t n[32] = {0};
        for (uint32_t t = first; t < first + group; t++) {
            uint32_t b = puts ? rl_lace_place(bits, at, q, t, 0, k) : rl_lace_unit(at, q, t) * 16;
            for (uint32_t w = b / 4; w < (b + size) / 4; w++)
                if (++n[w % 32] > worst) worst = n[w % 32];
        }
    }
    return worst;
}

static void check_lace(uint32_t bits, uint32_t at, uint32_t q) {
    uint32_t put = RL_LACE_PUT(bits, at, q), nput = RL_LACE_PLANES(bits, q) * at / put, n = RL_LACE_COLUMNS(bits, at, q) * q * at;
    uint8_t *seen = calloc(1, n);
    CHECK(n <= 16384 && n % (16 * 256) == 0);
    for (uint32_t thread = 0; thread < 256; thread++)
        for (uint32_t e = 0; e < RL_LACE_EACH(bits, at, q); e++)
            for (uint32_t k = 0; k < nput; k++) {
                uint32_t b = put_byte(bits, at, q, thread, e, k), to = rl_lace_place(bits, at, q, thread, e, k);
                if (b + put > n || b / 16 != (b + put - 1) / 16 || to != run_byte(at, q, b)) CHECK(false && "a put's place");
                else seen[b]++;
            }
    for (uint32_t b = 0; b < n; b += put) CHECK(seen[b] == 1);
    for (uint32_t u = 256; u < n / 16; u++) CHECK(rl_lace_unit(at, q, u) == rl_lace_unit(at, q, u - 256) + 256);
    for (uint32_t k = 0; k < nput; k++) CHECK(lace_conflicts(bits, at, q, k, true) <= (q <= 4 || bits >= 32 ? 1 : at == 4 ? 32 / bits : bits == 8 && q == 8 ? 2 : 1));
    CHECK(lace_conflicts(bits, at, q, 0, false) == 1);
    free(seen);
}

TEST(interleaves) {
    static const uint32_t planes[] = {2, 3, 4, 8, 16, 32};
    for (uint32_t bits = 8; bits <= 64; bits *= 2)
        for (uint32_t i = 0; i < RL_LEN(planes); i++) {
            check_lace(bits, 16, planes[i]);
            check_lace(bits, bits == 64 ? 8 : 4, planes[i]);
        }
    check_lace(4, 8, 64);
}

/* ---- operands of cuBLASLt ---- */

/* Element (i, j) of what cuBLASLt makes of the operand: its matrix by columns, turned or not. */
static int64_t place_of(const rl_side *s, uint64_t i, uint64_t j) {
    uint64_t row = s->turned ? j : i, column = s->turned ? i : j;
    if (row >= s->rows || column >= s->columns) CHECK(false && "inside the matrix");
    return (int64_t)row + (int64_t)column * s->ld;
}

static uint32_t check_side(uint32_t outer, int64_t by_outer, uint32_t k, int64_t by_k, bool first) {
    rl_side s;
    if (!rl_side_of(outer, by_outer, k, by_k, first, &s)) return 0;
    for (uint32_t o = 0; o < outer; o++)
        for (uint32_t u = 0; u < k; u++) {
            int64_t got = first ? place_of(&s, o, u) : place_of(&s, u, o); /* b' is n by k, a' is k by m */
            if (got != o * by_outer + u * by_k) CHECK(false && "an operand's element");
        }
    return 1;
}

TEST(sides) {
    uint32_t taken = 0;
    for (uint32_t outer = 1; outer <= 5; outer++)
        for (uint32_t k = 1; k <= 5; k++)
            for (uint32_t gap = 0; gap < 3; gap++)
                for (uint32_t first = 0; first < 2; first++) {
                    CHECK(check_side(outer, 1, k, outer + gap, first) && check_side(outer, k + gap, k, 1, first));
                    taken += check_side(outer, 2, k, 2 * outer + gap, first);
                }
    CHECK(taken < 75); /* of 150, only those where a dim is 1 */
}

int main(void) {
    RUN(divide);
    RUN(walk);
    RUN(vectors);
    RUN(by_vectors);
    RUN(outer);
    RUN(tiles);
    RUN(interleaves);
    RUN(sides);
    return check_done();
}
