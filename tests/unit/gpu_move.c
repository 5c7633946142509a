/* The GPU's move kernels (cuda/k_move.h) and what chooses them (cuda/move.c), run by every block and thread on an emulated device,
 * against one element after the other. */
#include "../../cuda/interleave.h"
#include "../../cuda/move.h"

#include <stdlib.h>
#include <string.h>

#include "../../runtime/move_grid.h"
#include "check.h"

enum { MOST = 1 << 20 };
static uint64_t seed = 11;

static uint32_t draw(uint32_t n) {
    return (uint32_t)(check_random31(&seed) % n);
}

static int64_t place(const rl_loops *l, int64_t k, uint32_t o) {
    int64_t at = 0;
    for (uint32_t i = l->rank; i-- > 0; k /= l->dim[i]) at += k % l->dim[i] * l->step[o][i];
    return at;
}

static uint32_t bits_at(const uint8_t *p, int64_t k, uint32_t bits) {
    return (uint32_t)p[k * bits / 8] >> (uint32_t)(k * bits % 8) & ((1u << bits) - 1);
}

/* The same, one element after the other. */
static void move_slowly(const rl_loops *l, uint32_t bits, uint8_t *to, int64_t to0, const uint8_t *from, int64_t from0) {
    for (int64_t k = 0; k < rl_loops_count(l); k++) {
        int64_t a = to0 + place(l, k, 0), b = from0 + place(l, k, 1);
        if (bits >= 8) {
            memcpy(to + a * bits / 8, from + b * bits / 8, bits / 8);
            continue;
        }
        uint32_t shift = (uint32_t)(a * bits % 8), mask = ((1u << bits) - 1) << shift;
        to[a * bits / 8] = (uint8_t)((to[a * bits / 8] & ~mask) | bits_at(from, b, bits) << shift);
    }
}

/* Elements from the lowest to the highest that the loops reach; the lowest in *low. */
static int64_t extent(const rl_loops *l, uint32_t o, int64_t *low) {
    int64_t high = 0;
    *low = 0;
    for (uint32_t i = 0; i < l->rank; i++) *(l->step[o][i] < 0 ? low : &high) += (l->dim[i] - 1) * l->step[o][i];
    return high - *low + 1;
}

static void check_move(rl_gpu *g, const rl_loops *l, uint32_t bits, uint32_t skip) {
    int64_t low[2], n[2];
    uint8_t *host[2], *device[2], *got;
    for (uint32_t o = 0; o < 2; o++) {
        n[o] = ((extent(l, o, &low[o]) + skip) * bits + 7) / 8 + 16;
        host[o] = malloc((size_t)n[o]);
        device[o] = rl_gpu_alloc(g, (size_t)n[o]);
        for (int64_t i = 0; i < n[o]; i++) host[o][i] = (uint8_t)draw(256);
        CHECK(rl_gpu_put(g, device[o], host[o], (size_t)n[o]) == RL_OK);
    }
    CHECK(rl_gpu_move(g, l, bits, device[0], skip - low[0], device[1], skip - low[1]) == RL_OK);
    got = malloc((size_t)n[0]);
    CHECK(rl_gpu_get(g, got, device[0], (size_t)n[0]) == RL_OK);
    move_slowly(l, bits, host[0], skip - low[0], host[1], skip - low[1]);
    CHECK(memcmp(got, host[0], (size_t)n[0]) == 0);
    for (uint32_t o = 0; o < 2; o++) {
        rl_gpu_free(g, device[o], (size_t)n[o]);
        free(host[o]);
    }
    free(got);
}

/* Dims in a random order, with gaps here and there; the reading side also backwards and repeated. */
static void random_steps(const int64_t *dim, uint32_t rank, int64_t *step, bool write) {
    uint32_t order[8];
    int64_t s = 1;
    for (uint32_t i = 0; i < rank; i++) order[i] = i;
    for (uint32_t i = rank; i-- > 1;) {
        uint32_t k = draw(i + 1), t = order[i];
        order[i] = order[k], order[k] = t;
    }
    for (uint32_t i = rank; i-- > 0;) {
        step[order[i]] = s;
        s *= dim[order[i]] + (draw(12) ? 0 : draw(2) ? 1 : 16);
        if (!write && draw(16) == 0) step[order[i]] = 0;
        if (draw(24) == 0) step[order[i]] = -step[order[i]];
    }
}

static rl_loops random_loops(uint32_t most) {
    rl_loops l = {.rank = draw(6), .noperand = 2};
    for (uint32_t i = 0; i < l.rank; i++) l.dim[i] = 1 + draw(draw(2) ? most : 4);
    for (uint32_t i = 0; i < l.rank; i++)
        while (rl_loops_count(&l) > 20000 && l.dim[i] > 1) l.dim[i] = (l.dim[i] + 1) / 2;
    for (uint32_t o = 0; o < 2; o++) random_steps(l.dim, l.rank, l.step[o], o == 0);
    return l;
}

static void random_moves(rl_gpu *g, uint32_t bits, uint32_t *kinds) {
    for (uint32_t t = 0; t < 320; t++) {
        rl_loops l = random_loops(t % 2 ? 90 : 300);
        if (draw(3) == 0 && l.rank) l.rank = RL_MIN(l.rank, 3u), l.dim[l.rank - 1] = 16 * (1 + draw(6));
        for (uint32_t o = 0; o < 2; o++) random_steps(l.dim, l.rank, l.step[o], o == 0);
        rl_move_plan p = rl_move_choose(&l, bits, 0, 0);
        kinds[p.kind]++;
        if (p.kind == RL_MOVE_STRIDED && p.size > bits / 8) kinds[RL_MOVE_BITS + 1]++;
        check_move(g, &l, bits, draw(3) ? 0 : draw(5));
    }
}

TEST(moves) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    uint32_t kinds[RL_MOVE_BITS + 2] = {0};
    seed = 11; /* the same wherever this stands */
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    for (uint32_t bits = 2; bits <= 128; bits *= 2) random_moves(g, bits, kinds);
    for (rl_move_kind k = RL_MOVE_BYTES; k <= RL_MOVE_BITS + 1; k++) CHECK(kinds[k] > (k == RL_MOVE_WEAVE ? 10 : 50)); /* each was tried; weaves below, too */
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* Transposes whose sizes are around those of a tile, with and without room for vectors. */
TEST(tiles) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    static const int64_t sizes[] = {8, 16, 31, 32, 33, 64, 72, 128, 144};
    for (uint32_t bits = 8; bits <= 128; bits *= 2)
        for (size_t a = 0; a < RL_LEN(sizes); a++)
            for (size_t b = 0; b < RL_LEN(sizes); b++) {
                int64_t m = sizes[a], n = sizes[b];
                rl_loops l = {.rank = 3, .noperand = 2, .dim = {2, m, n}, .step = {{m * n, n, 1}, {m * n, 1, m}}};
                rl_move_kind kind = rl_move_choose(&l, bits, 0, 0).kind;
                bool small = RL_MIN(m, 128) * RL_MIN(n, 128) * bits / 8 < 4096; /* for some of them a block would have too little to do */
                CHECK(kind == RL_MOVE_TILE || (kind == RL_MOVE_WEAVE && RL_MIN(m, n) <= RL_WEAVE_MOST(bits / 8)) ||
                      (kind == RL_MOVE_INTERLEAVE && RL_MIN(m, n) <= 32) ||
                      (small && (kind == RL_MOVE_PACK || kind == RL_MOVE_STRIDED)));
                check_move(g, &l, bits, a % 3 == 1 ? 1 : 0);
            }
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* Larger ones, whose lines begin anywhere on one side or both: of several tiles along both dims, with gaps behind rows and lines or none. */
TEST(words) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    static const int64_t sizes[][2] = {{96, 97}, {97, 129}, {129, 96}, {131, 300}, {160, 257}, {255, 160}, {300, 131}, {100, 1003}, {1003, 100}};
    for (uint32_t bits = 8; bits <= 128; bits *= 2)
        for (size_t a = 0; a < RL_LEN(sizes); a++)
            for (int64_t gap = 0; gap < 3; gap++) {
                int64_t m = sizes[a][0], n = sizes[a][1], row = n + gap, line = m + gap / 2;
                rl_loops l = {.rank = 3, .noperand = 2, .dim = {2, m, n}, .step = {{line * n, 1, line}, {m * row, row, 1}}};
                CHECK(rl_move_choose(&l, bits, 0, 0).kind == RL_MOVE_TILE);
                check_move(g, &l, bits, (uint32_t)a % 4);
                if (gap) continue;
                l.step[1][1] = -row; /* rows backwards */
                check_move(g, &l, bits, (uint32_t)a % 3);
            }
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* Parts of one array, as Concat fills it along its middle dim: more than a launch takes, of widths that vectors fit and do not, some turned, some empty. */
static void check_parts(rl_gpu *g, uint32_t bits, uint32_t n, int64_t most) {
    int64_t outer = 1 + draw(3), inner = 1 + draw(20), sum = 0, size = bits / 8;
    rl_gpu_part *part = calloc(n, sizeof *part);
    int64_t *wide = calloc(n, sizeof *wide);
    for (uint32_t i = 0; i < n; i++) sum += wide[i] = draw(5) ? (draw(2) ? 16 : 1) * draw((uint32_t)most) : 0;
    size_t all = (size_t)(outer * RL_MAX(sum, 1) * inner * size);
    uint8_t *host = malloc(all), *wanted = malloc(all), *got = malloc(all);
    char *from = rl_gpu_alloc(g, all), *to = rl_gpu_alloc(g, all);
    for (size_t i = 0; i < all; i++) host[i] = (uint8_t)draw(256), wanted[i] = 0;
    CHECK(rl_gpu_put(g, from, host, all) == RL_OK && rl_gpu_put(g, to, wanted, all) == RL_OK);
    int64_t at = 0;
    for (uint32_t i = 0; i < n; at += wide[i++]) {
        bool turned = draw(6) == 0;
        part[i] = (rl_gpu_part){{.rank = 3, .noperand = 2, .dim = {outer, wide[i], inner}}, to, at * inner, from, at * inner * outer};
        int64_t step[2][3] = {{sum * inner, inner, 1}, {wide[i] * inner, turned ? 1 : inner, turned ? wide[i] : 1}};
        for (uint32_t o = 0; o < 2; o++) memcpy(part[i].loops.step[o], step[o], sizeof step[o]);
        move_slowly(&part[i].loops, bits, wanted, part[i].to0, host, part[i].from0);
    }
    CHECK(rl_gpu_move_all(g, bits, n, part) == RL_OK && rl_gpu_get(g, got, to, all) == RL_OK);
    CHECK(memcmp(got, wanted, all) == 0);
    rl_gpu_free(g, from, all), rl_gpu_free(g, to, all);
    free(host), free(wanted), free(got), free(part), free(wide);
}

TEST(parts) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    for (uint32_t bits = 8; bits <= 128; bits *= 2)
        for (uint32_t n = 1; n <= 3 * RL_MOST_JOINED; n += 1 + n / 3) check_parts(g, bits, n, 20);
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* A few planes and their interleaved run, both ways, with and without room for 16 bytes, over several blocks, with gaps around. */
TEST(weaves) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    static const int64_t planes[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32, 64}, places[] = {64, 65, 80, 100, 1023, 5000};
    uint32_t nweave = 0;
    for (uint32_t bits = 8; bits <= 64; bits *= 2)
        for (size_t a = 0; a < RL_LEN(planes); a++)
            for (size_t b = 0; b < RL_LEN(places); b++)
                for (uint32_t k = 0; k < 4; k++) {
                    int64_t q = planes[a], n = places[b], gap = k / 2 ? 16 : 1;
                    if (q * n > 20000) continue;
                    rl_loops l = {.rank = 3, .noperand = 2, .dim = {2, n, q}, .step = {{n * q + gap, q, 1}, {(n + gap) * q, 1, n + gap}}};
                    if (k % 2) l = (rl_loops){.rank = 3, .noperand = 2, .dim = {2, q, n}, .step = {{(n + gap) * q, n + gap, 1}, {n * q + gap, 1, q}}};
                    rl_move_kind kind = rl_move_choose(&l, bits, 0, 0).kind;
                    bool weave = kind == RL_MOVE_WEAVE;
                    CHECK(weave || kind == RL_MOVE_INTERLEAVE || q > RL_WEAVE_MOST(bits / 8) || q * n * bits / 8 < 2048);
                    nweave += weave;
                    check_move(g, &l, bits, b % 3 == 1 ? 1 : 0);
                }
    CHECK(nweave > 100);
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* Each kernel of interleave.c, both ways, batches one after the other and with gaps, over several blocks; where a plane or the run begins elsewhere, others. */
enum { NEAR, GAPS, ACROSS, NINTERLEAVE };
static rl_loops planes_of(int64_t q, int64_t n, int64_t line, uint32_t how, bool out) {
    rl_loops l = {.rank = 4, .noperand = 2, .dim = {3, 5, n, q}};
    int64_t plane = 5 * line, batch = q * plane, run = n * q + (how == GAPS ? 32 : 0);
    int64_t to[] = {5 * run, run, q, 1}, from[] = {batch, how == ACROSS ? 3 * batch : line, 1, plane};
    if (how == ACROSS) from[0] = batch; /* what comes next in the run lies far away in the planes */
    memcpy(l.step[out], to, sizeof to), memcpy(l.step[!out], from, sizeof from);
    return l;
}

TEST(interleaves) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    static const int64_t planes[] = {2, 3, 4, 8, 16, 32, 64}, lines[] = {3, 4, 7, 14, 24, 28, 32, 35, 64, 128, 132, 208, 1072};
    static uint32_t taken[RL_NGPU][NINTERLEAVE][2];
    for (uint32_t bits = 4; bits <= 64; bits *= 2)
        for (size_t a = 0; a < RL_LEN(planes); a++)
            for (size_t b = 0; b < RL_LEN(lines); b++)
                for (uint32_t k = 0; k < 2 * NINTERLEAVE; k++) {
                    if (planes[a] * lines[b] > 14000) continue;
                    rl_loops l = planes_of(planes[a], lines[b], lines[b] + (k / 2 == GAPS ? 32 : 0), k / 2, k % 2), sorted = l;
                    rl_interleaved plan;
                    rl_loops_sort(&sorted), rl_loops_merge(&sorted);
                    bool is = rl_interleave_of(&sorted, bits, 0, 0, &plan);
                    if (is) taken[plan.kernel][k / 2][k % 2]++;
                    CHECK(is || bits == 4 || planes[a] > 4 || lines[b] * bits % 32 || (k / 2 == GAPS && lines[b] * planes[a] * bits % 128));
                    check_move(g, &l, bits, 0);
                    if (b % 4 == 0) check_move(g, &l, bits, 1);
                }
    for (uint32_t i = RL_GPU_interleave2x1; i <= RL_GPU_interleave64_4bits; i++)
        for (uint32_t k = 0; k < 2 * NINTERLEAVE; k++) {
            /* lines of three times 16 bytes go by 16 bytes */
            bool never = k / 2 == GAPS && i >= RL_GPU_short_interleave3x1 && i <= RL_GPU_short_interleave3x8;
            CHECK(never == !taken[i][k / 2][k % 2]);
        }
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* What undoes it. */
static rl_loops back_of(const rl_loops *l) {
    rl_loops back = *l;
    memcpy(back.step[0], l->step[1], sizeof back.step[0]), memcpy(back.step[1], l->step[0], sizeof back.step[1]);
    return back;
}

static void check_there_and_back(rl_gpu *g, const rl_loops *l, uint32_t bits) {
    rl_loops back = back_of(l);
    for (uint32_t skip = 0; skip < 2; skip++) check_move(g, l, bits, skip), check_move(g, &back, bits, skip);
}

/* Pixel shuffles by r, there and back: short lines of r planes. */
TEST(shuffles) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    for (uint32_t bits = 8; bits <= 64; bits *= 2)
        for (int64_t r = 2; r <= 5; r++)
            for (int64_t w = 7; w <= 32; w += 7 - w / 28 * 3) {
                int64_t h = 6, plane = h * w;
                rl_loops l = {.rank = 6, .noperand = 2, .dim = {2, 3, h, r, w, r},
                              .step = {{3 * r * r * plane, r * r * plane, r * r * w, r * w, r, 1}, {3 * r * r * plane, r * r * plane, w, r * plane, 1, plane}}};
                CHECK((rl_move_choose(&l, bits, 0, 0).kind == RL_MOVE_INTERLEAVE) == (r < 5 && w * bits % 32 == 0));
                check_there_and_back(g, &l, bits);
            }
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* Windows of planes, there and back: places that lie one after the other on one side are four dims on the other. */
TEST(windows) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    for (uint32_t bits = 8; bits <= 64; bits *= 2)
        for (int64_t c = 24; c <= 40; c += 8) {
            rl_loops there = {.rank = 6, .noperand = 2, .dim = {2, 2, 3, 7, 7, c},
                              .step = {{294 * c, 147 * c, 49 * c, 7 * c, c, 1}, {294 * c, 147, 7, 21, 1, 294}}}, back = back_of(&there);
            CHECK(rl_move_choose(&there, bits, 0, 0).kind == RL_MOVE_TILE && rl_move_choose(&back, bits, 0, 0).kind == RL_MOVE_TILE);
            check_there_and_back(g, &there, bits);
        }
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* What is measured (move_grid.h) and has few planes goes by kernel interleave in elements of all sizes. */
TEST(grid) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < RL_NMOVE_GRID; i++)
        for (uint32_t size = 1; size <= 8; size *= 2) {
            rl_move_case c = rl_move_sized(&rl_move_grid[i], 16000000, size);
            rl_loops l = {.rank = c.rank, .noperand = 2};
            for (uint32_t k = 0; k < c.rank; k++) l.dim[k] = c.dim[c.perm[k]];
            rl_move_steps(&c, l.step[0], l.step[1]);
            bool few = strstr(c.name, "-c3") || strstr(c.name, "16c") || strstr(c.name, "pixel");
            CHECK((rl_move_choose(&l, 8 * size, 0, 0).kind == RL_MOVE_INTERLEAVE) == few);
            n += few;
        }
    CHECK(n == 20);
}

/* What lies too far away for offsets of 32 bits goes by kernels that have 64. */
TEST(far) {
    const int64_t near = 1 << 20, away = (int64_t)1 << 34;
    for (uint32_t k = 0; k < 2; k++) {
        int64_t batch = k ? away : near;
        rl_loops short_lines = {.rank = 3, .noperand = 2, .dim = {6, 35, 5}, .step = {{175, 5, 1}, {batch, 1, 35}}};
        rl_loops planes = {.rank = 3, .noperand = 2, .dim = {6, 1024, 4}, .step = {{4096, 4, 1}, {batch, 1, 1024}}};
        CHECK(rl_move_choose(&short_lines, 8, 0, 0).kind == (k ? RL_MOVE_STRIDED : RL_MOVE_PACK));
        CHECK(rl_move_choose(&planes, 8, 0, 0).kind == (k ? RL_MOVE_WEAVE : RL_MOVE_INTERLEAVE));
    }
}

/* What a launch would have: where it begins, how much it has, how many there are. */
typedef struct { int64_t next[2], count; uint32_t n; } launches;

static rl_status count_launch(void *arg, const rl_loops *l, uint32_t first, const int64_t *at) {
    launches *k = arg;
    int64_t count = 1;
    for (uint32_t i = first; i < l->rank; i++) count *= l->dim[i];
    for (uint32_t o = 0; o < 2; o++) {
        CHECK(at[o] == k->next[o]);
        k->next[o] += count * l->step[o][l->rank - 1];
    }
    k->count += count;
    return ++k->n < 100 ? RL_OK : RL_ELIMIT;
}

/* A line that no launch has is cut into some that have a part of it, not into elements. */
TEST(long_lines) {
    const int64_t line = ((int64_t)5 << 30) + 3;
    const rl_loops l = {.rank = 1, .noperand = 2, .dim = {line}, .step = {{1}, {2}}};
    launches k = {0};
    CHECK(rl_loops_parts(&l, count_launch, &k) == RL_OK && k.count == line && k.n == 6);
}

/* A gather that writes 2^32 bytes in a row: its launch, which the device refuses. */
TEST(long_gathers) {
    CHECK_CTX(ctx)
    rl_gpu *g;
    setenv("RELAYOUT_EMULATE_FAULT", "launch:pick", 1);
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    const rl_loops l = {.rank = 1, .noperand = 3, .dim = {1 << 30}, .step = {{1}, {0}, {1}}};
    rl_p_select p = {.n = 1, .dim = {1000}, .step = {1}};
    CHECK(!rl_gpu_is_emulated(g) || (rl_gpu_select(g, &l, &p, 4) == RL_EINTERNAL && strstr(ctx->error, "pick4: refused")));
    unsetenv("RELAYOUT_EMULATE_FAULT");
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* Which kernel the layouts of the seeds go by: none byte by byte. */
TEST(plans) {
    static const struct { const char *from, *to; rl_move_kind kind; uint32_t size; } rows[] = {
        {"f32[8,64,56,56]@NCHW", "NHWC", RL_MOVE_TILE, 4},
        {"f16[8,64,56,56]@NHWC", "NCHW", RL_MOVE_TILE, 2},
        {"i8[8,64,56,56]@NCHW", "NHWC", RL_MOVE_TILE, 1},
        {"f32[8,3,56,56]@NCHW", "NHWC", RL_MOVE_INTERLEAVE, 4},
        {"f32[8,3,56,56]@NHWC", "NCHW", RL_MOVE_INTERLEAVE, 4},
        {"i8[8,64,56,56]@NCHW", "NCHW4", RL_MOVE_INTERLEAVE, 1},
        {"i8[8,64,56,56]@NCHW4", "NCHW", RL_MOVE_INTERLEAVE, 1},
        {"i8[8,64,56,56]@NCHW", "NCHW32", RL_MOVE_INTERLEAVE, 1},
        {"i8[8,64,56,56]@NCHW32", "NCHW", RL_MOVE_INTERLEAVE, 1},
        {"i8[8,64,56,56]@NCHW4", "NCHW32", RL_MOVE_INTERLEAVE, 4},
        {"i8[64,64,56,56]@NCHW4", "CHWN4", RL_MOVE_TILE, 4},
        {"i8[8,64,56,56]@NHWC", "NCHW32", RL_MOVE_STRIDED, 16},
        {"i8[8,64,56,56]@NHWC", "NCHW4", RL_MOVE_INTERLEAVE, 4},
        {"f32[8,64,56,56]@NCHW", "nChw8c", RL_MOVE_INTERLEAVE, 4},
        {"f32[8,64,56,56]@nChw16c", "NHWC", RL_MOVE_STRIDED, 16},
        {"f32[64,64,56,56]@NCHW", "CHWN", RL_MOVE_TILE, 4},
        {"f64[8,64,56,56]@NCHW", "NHWC", RL_MOVE_TILE, 8},
        {"f64[8,64,28,28]@nChw16c", "NCHW", RL_MOVE_INTERLEAVE, 8},
        {"f32[8,6,56,56]@NCHW", "NHWC", RL_MOVE_WEAVE, 4},
        {"i8[8,3,55,55]@NCHW", "NHWC", RL_MOVE_WEAVE, 1},
        {"i4[8,64,56,56]@NCHW", "NCHW64", RL_MOVE_INTERLEAVE, 0},
        {"i4[8,64,56,56]@NCHW64", "NCHW", RL_MOVE_INTERLEAVE, 0},
        {"i4[8,64,55,55]@NCHW", "NCHW64", RL_MOVE_BITS, 0}};
    for (size_t i = 0; i < RL_LEN(rows); i++) {
        rl_desc from, to;
        rl_loops l;
        char text[80];
        snprintf(text, sizeof text, "%.*s@%s", (int)strcspn(rows[i].from, "@"), rows[i].from, rows[i].to);
        CHECK(rl_desc_parse(rows[i].from, &from, NULL) == RL_OK && rl_desc_parse(text, &to, NULL) == RL_OK && rl_desc_loops(&to, &from, &l));
        rl_move_plan p = rl_move_choose(&l, rl_desc_bits(&to), 0, 0);
        if (p.kind != rows[i].kind || p.size != rows[i].size) fprintf(stderr, "%s to %s: kind %d, size %u\n", rows[i].from, rows[i].to, (int)p.kind, p.size);
        CHECK(p.kind == rows[i].kind && p.size == rows[i].size);
    }
}

TEST(fills) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    for (uint32_t bits = 2; bits <= 128; bits *= 2)
        for (uint32_t t = 0; t < 40; t++) {
            rl_loops l = random_loops(20), one = l;
            int64_t low, n = extent(&l, 0, &low);
            uint8_t value[16], *want = calloc((size_t)n, 16), *got = malloc((size_t)n * 16);
            void *p = rl_gpu_alloc(g, (size_t)n * 16);
            for (uint32_t i = 0; i < 16; i++) value[i] = (uint8_t)(draw(256) & (bits < 8 ? (1u << bits) - 1 : 255));
            memset(one.step[1], 0, sizeof one.step[1]);
            move_slowly(&one, bits, want, -low, value, 0);
            CHECK(rl_gpu_put(g, p, memset(got, 0, (size_t)n * 16), (size_t)n * 16) == RL_OK);
            CHECK(rl_gpu_fill(g, &l, bits, p, -low, value) == RL_OK);
            CHECK(rl_gpu_get(g, got, p, (size_t)n * 16) == RL_OK);
            CHECK(memcmp(got, want, (size_t)n * 16) == 0);
            free(want), free(got);
            rl_gpu_free(g, p, (size_t)n * 16);
        }
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* ---- layouts ---- */

static void check_convert(rl_gpu *g, const char *from, const char *to) {
    rl_desc a, b;
    rl_error e;
    CHECK(rl_desc_parse(from, &a, &e) == RL_OK && rl_desc_parse(to, &b, &e) == RL_OK);
    size_t na = (size_t)rl_desc_bytes(&a), nb = (size_t)rl_desc_bytes(&b);
    uint8_t *x = malloc(na), *want = malloc(nb), *got = malloc(nb);
    void *p = rl_gpu_alloc(g, na), *q = rl_gpu_alloc(g, nb);
    for (size_t i = 0; i < na; i++) x[i] = (uint8_t)draw(256);
    for (size_t i = 0; i < nb; i++) want[i] = 0x5a;
    CHECK(rl_gpu_put(g, q, want, nb) == RL_OK && rl_gpu_put(g, p, x, na) == RL_OK);
    CHECK(rl_desc_convert(&b, want, nb, &a, x, na, &e) == RL_OK);
    CHECK(rl_gpu_convert(g, &b, q, &a, p) == RL_OK && rl_gpu_get(g, got, q, nb) == RL_OK);
    if (memcmp(got, want, nb) != 0) fprintf(stderr, "%s -> %s\n", from, to);
    CHECK(memcmp(got, want, nb) == 0);
    free(x), free(want), free(got);
    rl_gpu_free(g, p, na), rl_gpu_free(g, q, nb);
}

/* Every layout of the seeds to every other, whole blocks and padded ones. */
TEST(layouts) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    static const char *const names[] = {"NCHW", "NHWC", "NCHW4", "NCHW32", "NCHW64", "CHWN4", "CHWN", "nChw8c", "nChw16c", "NChw16n16c"};
    static const char *const dims[] = {"2,64,3,3", "3,20,5,2", "1,128,9,7", "16,4,1,1", "2,3,8,8", "33,40,3,1"};
    static const char *const types[] = {"i8", "f32", "i4"};
    for (size_t t = 0; t < RL_LEN(types); t++)
        for (size_t d = 0; d < RL_LEN(dims); d++)
            for (size_t a = 0; a < RL_LEN(names); a++)
                for (size_t b = 0; b < RL_LEN(names); b++) {
                    char from[80], to[80];
                    snprintf(from, sizeof from, "%s[%s]@%s", types[t], dims[d], names[a]);
                    snprintf(to, sizeof to, "%s[%s]@%s", types[t], dims[d], names[b]);
                    check_convert(g, from, to);
                }
    check_convert(g, "f32[2,3,8]@{2:24,3:1,4:3*2:12}", "f32[2,3,8] strides=[40,10,1] offset=3");
    check_convert(g, "f32[1,12,2,2]@aBcd3b", "f32[1,12,2,2]@aBcd4b"); /* blocks that do not divide each other */
    check_convert(g, "i8[1,10,2,2]@NCHW4", "i8[1,10,2,2]@nhwc");
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

/* Numbers change their type on the way. */
TEST(types) {
    CHECK_CTX(ctx);
    rl_gpu *g;
    rl_desc a, b;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    float x[24];
    uint16_t y[32];
    int8_t z[32];
    for (int i = 0; i < 24; i++) x[i] = (float)i - 7.5f;
    void *p = rl_gpu_alloc(g, sizeof x), *q = rl_gpu_alloc(g, sizeof y);
    CHECK(rl_gpu_put(g, p, x, sizeof x) == RL_OK);
    CHECK(rl_desc_parse("f32[1,6,2,2]", &a, NULL) == RL_OK && rl_desc_parse("f16[1,6,2,2]@nChw8c", &b, NULL) == RL_OK);
    CHECK(rl_gpu_convert(g, &b, q, &a, p) == RL_OK && rl_gpu_get(g, y, q, sizeof y) == RL_OK);
    CHECK(y[0] == 0xc780 && y[1] == 0xc300 && y[6] == 0 && y[7] == 0); /* -7.5, -3.5, padding */
    CHECK(rl_desc_parse("i8[1,6,2,2]@NCHW4", &b, NULL) == RL_OK);
    CHECK(rl_gpu_convert(g, &b, q, &a, p) == RL_OK && rl_gpu_get(g, z, q, sizeof z) == RL_OK);
    CHECK(z[0] == -7 && z[1] == -3 && z[3] == 4 && z[17] == 12 && z[18] == 0);
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(types); /* the smallest first: under compute-sanitizer the last may have no time left */
    RUN(grid);
    RUN(far);
    RUN(long_lines);
    RUN(long_gathers);
    RUN(plans);
    RUN(windows);
    RUN(fills);
    RUN(tiles);
    RUN(words);
    RUN(parts);
    RUN(weaves);
    RUN(interleaves);
    RUN(shuffles);
    RUN(layouts);
    RUN(moves);
    return check_done();
}
