/* The move kernel against brute force, for every set of kernels that this processor has: move [STEP].  STEP (default 7) takes every
 * 7th shape; 1 takes all.
 *
 * Brute force walks the nest's loops one element at a time; the whole buffers are compared, so what lies around the elements must stay
 * as it is. Both buffers end where a page begins that cannot be touched: a byte too far is a crash. */
#include "../../src/move_kernel.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"

enum { MOST = 12 << 20, PAGE = 64 << 10 };
static uint8_t *in, *out, want[MOST]; /* in, out: MOST bytes, then the page */
static const uint32_t sizes[] = {2, 4, 8, 16, 32, 64, 128};
static const rl_isa isas[] = {RL_ISA_PLAIN, RL_ISA_AVX2, RL_ISA_AVX512};
static uint32_t seed = 1;

static uint32_t next(uint32_t below) {
    return check_random(&seed) % below;
}

/* The C library's, which may be told that there is no memory. */
static bool no_memory;
void *aligned_alloc(size_t line, size_t n) {
    void *p = NULL;
    return no_memory || posix_memalign(&p, line, n) != 0 ? NULL : p;
}

/* Pieces as a pool would have them, in another order. */
static void in_pieces(void *pool, int64_t n, int64_t grain, rl_range_fn *fn, void *arg) {
    (void)pool;
    int64_t piece = RL_MIN(grain, (n + 4) / 5);
    for (int64_t at = (n - 1) / piece * piece; at >= 0; at -= piece) fn(arg, at, RL_MIN(at + piece, n));
}

static void put(uint8_t *p, int64_t k, const uint8_t *q, int64_t j, uint32_t bits) {
    if (bits >= 8) {
        memcpy(p + k * bits / 8, q + j * bits / 8, bits / 8);
        return;
    }
    uint32_t x = (uint32_t)q[j * bits / 8] >> (j * bits % 8) & ((1u << bits) - 1), at = (uint32_t)(k * bits % 8);
    p[k * bits / 8] = (uint8_t)((p[k * bits / 8] & ~(((1u << bits) - 1) << at)) | x << at);
}

static void brute(const rl_nest *b, uint32_t i, int64_t to, int64_t from) {
    if (i == b->n) {
        put(want, to, b->from, from, b->bits);
        return;
    }
    for (int64_t k = 0; k < b->loop[i].n; k++) brute(b, i + 1, to + k * b->loop[i].to, from + k * b->loop[i].from);
}

/* Bytes up to the last element. */
static size_t reach(const rl_nest *b, bool to_side) {
    int64_t last = to_side ? b->to_at : b->from_at;
    for (uint32_t i = 0; i < b->n; i++) last += RL_MAX((b->loop[i].n - 1) * (to_side ? b->loop[i].to : b->loop[i].from), 0);
    return (size_t)((last + 1) * b->bits + 7) / 8;
}

/* Both buffers begin so many bytes after a line does; -1: they end with a page. */
static int odd = -1;

static uint8_t *place(uint8_t *all, size_t bytes) {
    uint8_t *p = all + MOST - bytes;
    return odd < 0 ? p : p - ((uintptr_t)p - (uintptr_t)odd) % 64;
}

static void check_nest(rl_nest *b) {
    size_t bytes = reach(b, true);
    rl_threads t = {in_pieces, NULL};
    uint8_t *to = place(out, bytes);
    bytes = (size_t)(out + MOST - to); /* nothing after it changes */
    memset(want, 0x5a, bytes);
    b->to = to;
    b->from = place(in, reach(b, false));
    brute(b, 0, b->to_at, b->from_at);
    for (uint32_t i = 0; i < RL_LEN(isas); i++) {
        if (rl_isa_here(isas[i]) != isas[i]) continue;
        memset(to, 0x5a, bytes);
        b->isa = isas[i];
        rl_nest_move(b, next(2) ? &t : NULL);
        bool same = memcmp(to, want, bytes) == 0;
        if (!same) {
            fprintf(stderr, "isa %d, %u bits at %lld from %lld:", (int)isas[i], b->bits, (long long)b->to_at, (long long)b->from_at);
            for (uint32_t k = 0; k < b->n; k++)
                fprintf(stderr, " %lld(%lld,%lld)", (long long)b->loop[k].n, (long long)b->loop[k].to, (long long)b->loop[k].from);
            fprintf(stderr, "\n");
        }
        CHECK(same);
    }
}

/* A dense array of these dims, permuted. */
static rl_nest permuted(uint32_t rank, const int64_t *dim, const uint32_t *perm, uint32_t bits) {
    rl_nest b = {.bits = bits, .n = rank};
    int64_t stride[8], step = 1;
    for (uint32_t i = rank; i-- > 0; step *= dim[i]) stride[i] = step;
    step = 1;
    for (uint32_t i = rank; i-- > 0; step *= dim[perm[i]]) b.loop[i] = (rl_loop){dim[perm[i]], step, stride[perm[i]]};
    return b;
}

static void check_permuted(uint32_t rank, const int64_t *dim, const uint32_t *perm, uint32_t bits) {
    rl_nest b = permuted(rank, dim, perm, bits);
    if (odd < 0) b.to_at = next(9), b.from_at = next(9);
    check_nest(&b);
}

/* perm becomes the next one; false after the last. */
static bool next_perm(uint32_t n, uint32_t *p) {
    uint32_t i = n - 1, k = n - 1;
    while (i > 0 && p[i - 1] > p[i]) i--;
    if (i == 0) return false;
    while (p[k] < p[i - 1]) k--;
    uint32_t x = p[k];
    p[k] = p[i - 1], p[i - 1] = x;
    for (uint32_t a = i, c = n - 1; a < c; a++, c--) x = p[a], p[a] = p[c], p[c] = x;
    return true;
}

/* Every step'th of all shapes with these dims, in all permutations. */
static void check_shapes(uint32_t rank, const int64_t *dims, uint32_t ndim, uint32_t step) {
    uint32_t all = 1, turn = 0;
    for (uint32_t i = 0; i < rank; i++) all *= ndim;
    for (uint32_t k = 0; k < all; k++) {
        int64_t dim[8];
        uint32_t perm[8] = {0, 1, 2, 3, 4, 5, 6, 7}, left = k;
        for (uint32_t i = 0; i < rank; i++, left /= ndim) dim[i] = dims[left % ndim];
        do {
            for (uint32_t s = 0; s < RL_LEN(sizes); s++)
                if (turn++ % step == 0) check_permuted(rank, dim, perm, sizes[s]);
        } while (next_perm(rank, perm));
    }
}

static uint32_t step = 7;

TEST(pairs) {
    int64_t dim[70];
    for (int64_t i = 0; i < 70; i++) dim[i] = i + 1;
    check_shapes(2, dim, 70, step);
}

TEST(shapes) {
    check_shapes(3, (int64_t[]){1, 2, 3, 5, 8, 16, 17, 33}, 8, step);
    check_shapes(4, (int64_t[]){1, 2, 3, 7, 16}, 5, 3 * step);
    check_shapes(5, (int64_t[]){1, 2, 9}, 3, 5 * step);
}

/* What images, attention and windows are turned to and from. */
TEST(real) {
    static const struct { uint32_t rank; int64_t dim[6]; uint32_t perm[6]; } cases[] = {
        {4, {2, 3, 30, 31}, {0, 2, 3, 1}}, {4, {2, 30, 31, 3}, {0, 3, 1, 2}}, {4, {1, 64, 14, 14}, {0, 2, 3, 1}},
        {5, {2, 2, 16, 9, 9}, {0, 1, 3, 4, 2}}, {5, {2, 2, 9, 9, 16}, {0, 1, 4, 2, 3}}, {4, {2, 33, 4, 64}, {0, 2, 1, 3}},
        {4, {2, 33, 4, 64}, {0, 2, 3, 1}}, {6, {2, 3, 7, 2, 7, 24}, {0, 1, 3, 2, 4, 5}}, {6, {2, 24, 3, 7, 2, 7}, {0, 2, 4, 3, 5, 1}},
        {6, {1, 4, 2, 2, 14, 14}, {0, 1, 4, 2, 5, 3}}, {6, {1, 4, 14, 2, 14, 2}, {0, 1, 3, 5, 2, 4}}, {6, {1, 4, 3, 5, 70, 9}, {0, 1, 4, 2, 5, 3}}};
    for (uint32_t i = 0; i < RL_LEN(cases); i++)
        for (uint32_t s = 0; s < RL_LEN(sizes); s++) check_permuted(cases[i].rank, cases[i].dim, cases[i].perm, sizes[s]);
}

/* Large enough to be written past the cache, whole lines or not. */
TEST(large) {
    static const int64_t dims[][4] = {{1, 1, 1024, 1024}, {3, 512, 1, 683}, {2, 3, 613, 257}, {5, 16, 1, 12000}, {9, 64, 31, 50}};
    static const uint32_t perms[][4] = {{0, 1, 3, 2}, {0, 2, 3, 1}, {0, 3, 1, 2}, {2, 1, 0, 3}, {0, 2, 1, 3}};
    for (uint32_t i = 0; i < RL_LEN(dims) * RL_LEN(perms); i++) {
        const int64_t *d = dims[i / RL_LEN(perms)];
        int64_t dim[4];
        memcpy(dim, d, sizeof dim);
        uint32_t bits = sizes[2 + i % 5];
        int64_t n = dim[0] * dim[1] * dim[2] * dim[3] * bits / 8;
        dim[0] *= RL_MAX((MOST / 4 * 3) / n, 1);
        while (dim[0] * dim[1] * dim[2] * dim[3] * bits / 8 > MOST - 1024) dim[3] = dim[3] / 2 + 1;
        check_permuted(4, dim, perms[i % RL_LEN(perms)], bits);
    }
}

/* Box by box, past the cache: lines that are whole on both sides, on one, or nowhere; boxes at the ends; lines that wait for the next box. */
TEST(boxes) {
    static const struct { uint32_t bits, rank; int64_t dim[6]; uint32_t perm[6]; } cases[] = {
        {8, 2, {2048, 3136}, {1, 0}}, {8, 2, {2510, 2511}, {1, 0}}, {8, 2, {63000, 100}, {1, 0}}, {16, 2, {1800, 1801}, {1, 0}},
        {16, 2, {2048, 1600}, {1, 0}}, {32, 2, {1024, 1600}, {1, 0}}, {32, 2, {1259, 1260}, {1, 0}}, {64, 2, {900, 901}, {1, 0}},
        {128, 2, {640, 641}, {1, 0}}, {32, 2, {1700000, 1}, {1, 0}}, {8, 6, {90, 96, 4, 7, 4, 7}, {0, 2, 4, 3, 5, 1}},
        {8, 6, {90, 4, 7, 4, 7, 96}, {0, 1, 3, 2, 4, 5}}, {8, 5, {130, 4, 16, 28, 28}, {0, 1, 3, 4, 2}},
        {8, 5, {130, 4, 28, 28, 16}, {0, 1, 4, 2, 3}}, {32, 5, {33, 4, 28, 28, 16}, {0, 1, 4, 2, 3}}, {8, 4, {70, 128, 12, 64}, {0, 2, 1, 3}},
        {32, 4, {17, 128, 12, 64}, {0, 2, 1, 3}}, {16, 4, {35, 128, 12, 64}, {0, 2, 3, 1}}, {16, 6, {65, 16, 2, 2, 28, 28}, {0, 1, 4, 2, 5, 3}},
        {32, 4, {11, 3, 224, 224}, {0, 2, 3, 1}}, {8, 4, {43, 224, 224, 3}, {0, 3, 1, 2}}, {8, 3, {3, 1500, 1501}, {2, 0, 1}},
        {8, 3, {70, 331, 300}, {2, 1, 0}}, {8, 2, {3008, 2560}, {1, 0}}, {16, 4, {30, 64, 56, 56}, {0, 2, 3, 1}},
        {64, 2, {1024, 920}, {1, 0}}, {128, 2, {640, 704}, {1, 0}}, {16, 2, {1700, 2300}, {1, 0}},
        {8, 2, {2310, 4096}, {1, 0}}, {16, 2, {1250, 4096}, {1, 0}}, {8, 3, {7, 37, 24576}, {2, 0, 1}}, {16, 3, {7, 37, 20001}, {2, 0, 1}}};
    static const int odds[] = {0, 16, 48};
    for (uint32_t i = 0; i < RL_LEN(cases) * RL_LEN(odds); i++) {
        odd = odds[i % RL_LEN(odds)];
        check_permuted(cases[i / RL_LEN(odds)].rank, cases[i / RL_LEN(odds)].dim, cases[i / RL_LEN(odds)].perm, cases[i / RL_LEN(odds)].bits);
    }
    odd = -1;
}

/* Rows of `to` that drive each other out of the first cache: a tile has few of them, or goes there by way of a buffer. */
TEST(meeting) {
    static const int64_t count[] = {31, 64, 100, 127, 300};
    for (uint32_t s = 2; s < RL_LEN(sizes); s++)
        for (int64_t line = 1 << 10; line <= 8 << 10; line *= 2)
            for (uint32_t i = 0; i < RL_LEN(count) * RL_LEN(count); i++) {
                int64_t x = count[i / RL_LEN(count)], y = count[i % RL_LEN(count)], to = line * 8 / sizes[s] + i % 2;
                rl_nest b = {.bits = sizes[s], .n = 2, .loop = {{y, to, 1}, {RL_MIN(x, to), 1, i % 3 ? y : y + 9}}};
                b.to_at = next(9), b.from_at = next(9);
                check_nest(&b);
            }
}

/* Rows of every length about those from which on they are copied in another way, anywhere in their lines; from one to more than two sixes, as
 * many go in turn. */
TEST(rows) {
    static const int64_t about[] = {64, 128, 256, 1 << 10, 4 << 10};
    for (uint32_t i = 0; i < RL_LEN(about); i++)
        for (int64_t n = about[i] - 33; n <= about[i] + 66; n++) {
            rl_nest b = {.bits = 8, .n = 2, .loop = {{1 + next(14), n + next(70), n + next(70)}, {n, 1, 1}}};
            b.to_at = next(64), b.from_at = next(64);
            check_nest(&b);
        }
}

/* Whether that is written past the caches follows from how much it is and which kernels there are; plain ones never do. */
TEST(ways) {
    static const struct { uint32_t bits, rank; int64_t dim[6]; uint32_t perm[6]; int odd; rl_move_way avx2, avx512; } cases[] = {
        {32, 2, {100, 100}, {0, 1}, 0, RL_WAY_PLAIN, RL_WAY_PLAIN},
        {32, 2, {1000, 1000}, {1, 0}, 0, RL_WAY_CACHE, RL_WAY_CACHE},
        {32, 2, {1440, 1440}, {1, 0}, 0, RL_WAY_CACHE, RL_WAY_CACHE}, /* 8 MiB are 1448 x 1448 */
        {32, 2, {1450, 1450}, {1, 0}, 0, RL_WAY_BOXES, RL_WAY_BOXES},
        {8, 2, {2900, 2900}, {1, 0}, 5, RL_WAY_BOXES, RL_WAY_BOXES},
        {32, 2, {1700000, 1}, {1, 0}, 0, RL_WAY_STREAM, RL_WAY_STREAM},
        {32, 4, {9, 128, 12, 64}, {0, 2, 1, 3}, 0, RL_WAY_CACHE, RL_WAY_CACHE},
        {32, 4, {17, 128, 12, 64}, {0, 2, 1, 3}, 48, RL_WAY_STREAM, RL_WAY_STREAM}, /* rows of four lines and more, however they lie */
        {8, 4, {70, 128, 12, 64}, {0, 2, 1, 3}, 0, RL_WAY_STREAM, RL_WAY_STREAM},
        {8, 4, {90, 128, 12, 64}, {0, 2, 1, 3}, 16, RL_WAY_BOXES, RL_WAY_BOXES},
        {8, 4, {70, 128, 12, 64}, {0, 2, 1, 3}, 16, RL_WAY_CACHE, RL_WAY_CACHE},
        {32, 4, {14, 224, 224, 3}, {0, 3, 1, 2}, 0, RL_WAY_BOXES, RL_WAY_STREAM}, /* AVX2 has no mixes */
        {32, 4, {9, 224, 224, 3}, {0, 3, 1, 2}, 0, RL_WAY_CACHE, RL_WAY_CACHE}};
    for (uint32_t i = 0; i < RL_LEN(cases); i++)
        for (uint32_t k = 0; k < RL_LEN(isas); k++) {
            rl_nest b = permuted(cases[i].rank, cases[i].dim, cases[i].perm, cases[i].bits);
            rl_move_way way = rl_isa_here(isas[k]) == RL_ISA_AVX512 ? cases[i].avx512 : cases[i].avx2;
            b.to = out + cases[i].odd, b.from = in, b.isa = isas[k];
            if (rl_isa_here(isas[k]) == RL_ISA_PLAIN && way != RL_WAY_PLAIN) way = RL_WAY_CACHE;
            if (rl_nest_way(&b) != way) fprintf(stderr, "case %u, kernels %d: way %d\n", i, (int)isas[k], (int)rl_nest_way(&b));
            CHECK(rl_nest_way(&b) == way);
        }
}

/* Kernels that count what they write past the caches, and that are otherwise those of the processor. */
static const rl_move_kernels *real;
static int64_t straight, flushed;

static void count_straight(char *to, const int64_t *ty, const char *from, const int64_t *fx, uint32_t nx, uint32_t ny) {
    straight += 4 * (int64_t)nx * ny;
    real->strip[2][0].past(to, ty, from, fx, nx, ny);
}

static void count_flushed(char *to, const char *from, int64_t nbyte) {
    flushed += nbyte;
    real->flush(to, from, nbyte);
}

/* Boxes go straight from registers where all of their lines are whole ones of `to`, else from a buffer; each byte once. */
TEST(past) {
    static const struct { int64_t x, y; int odd; int64_t straight; } cases[] = { /* elements */
        {1280, 1600, 0, 1280 * 1600}, {1280, 1600, 16, 9 * 128 * 1600}, {1280, 1600, 6, 0}, {1283, 1600, 0, 0}, {1280, 1601, 0, 1280 * 1600}};
    real = rl_move_kernels_of(RL_ISA_BEST);
    if (!real->strip[2][0].past) return;
    rl_move_kernels k = *real;
    k.strip[2][0].past = count_straight;
    k.flush = count_flushed;
    for (uint32_t i = 0; i < RL_LEN(cases); i++) {
        rl_nest b = permuted(2, (int64_t[]){cases[i].x, cases[i].y}, (uint32_t[]){1, 0}, 32);
        rl_stage s;
        int64_t all = 4 * cases[i].x * cases[i].y;
        b.to = out + cases[i].odd, b.from = in;
        straight = flushed = 0;
        CHECK(rl_stage_make(&s, &b, &k));
        rl_stage_walk(&s, 0, rl_stage_units(&s));
        if (straight != 4 * cases[i].straight || straight + flushed != all)
            fprintf(stderr, "case %u: %lld straight, %lld flushed of %lld\n", i, (long long)straight / 4, (long long)flushed / 4, (long long)all / 4);
        CHECK(straight == 4 * cases[i].straight && straight + flushed == all);
    }
}

static void *move_boxes(void *unused) {
    for (int i = 0; i < 2; i++) {
        no_memory = i == 1;
        check_permuted(2, (int64_t[]){1259, 1260}, (uint32_t[]){1, 0}, 32);
    }
    no_memory = false;
    return unused;
}

/* In a thread with a small stack, such as musl's; then without memory, too. */
TEST(small_stack) {
    pthread_attr_t a;
    pthread_t t;
    CHECK(pthread_attr_init(&a) == 0 && pthread_attr_setstacksize(&a, 128 << 10) == 0);
    CHECK(pthread_create(&t, &a, move_boxes, NULL) == 0 && pthread_join(t, NULL) == 0);
    pthread_attr_destroy(&a);
}

/* Gaps, repeats, steps backwards. */
TEST(loops) {
    for (uint32_t k = 0; k < 40000 / step; k++) {
        rl_nest b = {.bits = sizes[next(RL_LEN(sizes))], .n = next(6)};
        int64_t to = 1, low = 0, tlow = 0;
        for (uint32_t i = 0; i < b.n; i++) {
            int64_t n = 1 + next(i < 2 ? 40 : 4), gap = next(3) ? 0 : next(4);
            b.loop[i] = (rl_loop){n, next(5) ? to : -to, (int64_t)next(60) - 20};
            if (next(3) == 0) b.loop[i].from = (int64_t[]){0, 1, 1, -1}[next(4)];
            if (b.loop[i].to < 0) tlow += (n - 1) * to;
            to = to * n + gap;
            low += RL_MIN((n - 1) * b.loop[i].from, 0);
        }
        for (uint32_t i = b.n; i > 1; i--) { /* in any order */
            uint32_t j = next(i);
            rl_loop x = b.loop[j];
            b.loop[j] = b.loop[i - 1], b.loop[i - 1] = x;
        }
        if ((to + 16) * b.bits / 8 > MOST) continue;
        b.from_at = next(3) - low, b.to_at = next(3) + tlow;
        check_nest(&b);
    }
}

/* A Tile of planes: rows, and planes, some times one after the other. */
TEST(repeats) {
    for (uint32_t k = 0; k < 4000 / step; k++) {
        int64_t row = 1 + next(40), times = 1 + next(10), lines = 1 + next(20), again = 1 + next(10);
        rl_nest b = {.bits = sizes[next(RL_LEN(sizes))], .n = 5};
        b.loop[0] = (rl_loop){1 + next(3), again * lines * times * row, lines * row};
        b.loop[1] = (rl_loop){again, lines * times * row, 0};
        b.loop[2] = (rl_loop){lines, times * row, row};
        b.loop[3] = (rl_loop){times, row, 0};
        b.loop[4] = (rl_loop){row, 1, 1};
        if ((b.loop[0].n * b.loop[0].to + 16) * b.bits / 8 <= MOST) check_nest(&b);
    }
}

TEST(nothing) {
    rl_nest b = {.bits = 32, .n = 2, .loop = {{3, 4, 1}, {0, 1, 3}}};
    check_nest(&b);
}

static uint8_t *guarded(void) {
    uint8_t *p = mmap(NULL, MOST + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED && mprotect(p + MOST, PAGE, PROT_NONE) == 0 ? p : NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) step = RL_MAX((uint32_t)strtoul(argv[1], NULL, 10), 1u);
    in = guarded(), out = guarded();
    if (!in || !out) return 1;
    for (size_t i = 0; i < MOST; i++) in[i] = (uint8_t)next(256);
    for (uint32_t i = 0; i < RL_LEN(isas); i++)
        if (rl_isa_here(isas[i]) != isas[i]) printf("skipped: kernels %d, which this processor has not\n", (int)isas[i]);
    RUN(pairs);
    RUN(shapes);
    RUN(real);
    RUN(large);
    RUN(boxes);
    RUN(meeting);
    RUN(rows);
    RUN(ways);
    RUN(past);
    RUN(small_stack);
    RUN(loops);
    RUN(repeats);
    RUN(nothing);
    return check_done();
}
