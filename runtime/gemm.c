/* Matrix products: see gemm.h.  Goto's scheme: a block of b (KC rows, NB columns) and one of a (MC rows, cut into panels of a few
 * rows, each stored column by column) stay in the caches while tiles of y are summed in registers.  The tile's loop is written
 * once with vectors of the compiler and compiled for each instruction set. */
#include "gemm.h"

#include <string.h>

enum { KC = 256, MC = 96, NB = 192, LD = NB + 16 /* no power of two: its rows would fall on the same cache sets */ };

/* y[i][j] += sum over k of a[k*mr + i] * b[k*ld + j], for a tile of mr rows and nr columns. */
typedef void tile_fn(const void *a, const void *b, int64_t k, int64_t ld, void *y, int64_t ym);
typedef struct { int64_t mr, nr; tile_fn *fn; } tile;

#define TILE(NAME, ATTR, T, BYTES, MR)                                                                               \
    typedef T v##NAME __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                            \
    ATTR static void tile_##NAME(const void *pa, const void *pb, int64_t k, int64_t ld, void *py, int64_t ym) {      \
        enum { VL = BYTES / sizeof(T) };                                                                             \
        const T *a = pa, *b = pb;                                                                                    \
        T *y = py;                                                                                                   \
        v##NAME sum[MR][2] = {{{0}}};                                                                                \
        for (int64_t p = 0; p < k; p++, a += MR, b += ld) {                                                          \
            v##NAME b0 = *(const v##NAME *)(const void *)b, b1 = *(const v##NAME *)(const void *)(b + VL);           \
            for (int i = 0; i < MR; i++) sum[i][0] += a[i] * b0, sum[i][1] += a[i] * b1;                             \
        }                                                                                                            \
        for (int i = 0; i < MR; i++) {                                                                               \
            v##NAME *to = (v##NAME *)(void *)(y + i * ym);                                                           \
            to[0] += sum[i][0];                                                                                      \
            to[1] += sum[i][1];                                                                                      \
        }                                                                                                            \
    }

/* Unsigned types wrap; they are the signed ones' bits. */
#define TILES(ISA, ATTR, BYTES, MR)                                                                                  \
    TILE(f32_##ISA, ATTR, float, BYTES, MR)                                                                          \
    TILE(f64_##ISA, ATTR, double, BYTES, MR)                                                                         \
    TILE(i32_##ISA, ATTR, uint32_t, BYTES, MR)                                                                       \
    TILE(i64_##ISA, ATTR, uint64_t, BYTES, MR)
#define TILE_TABLE(ISA, BYTES, MR)                                                                                   \
    {{MR, BYTES / 2, tile_f32_##ISA}, {MR, BYTES / 4, tile_f64_##ISA}, {MR, BYTES / 2, tile_i32_##ISA}, {MR, BYTES / 4, tile_i64_##ISA}}

TILES(any, , 16, 6)
static const tile any_cpu[4] = TILE_TABLE(any, 16, 6);
#ifdef __x86_64__
TILES(avx2, __attribute__((target("avx2,fma"))), 32, 6)
TILES(avx512, __attribute__((target("avx512f,avx512dq"))), 64, 12)
static const tile avx2[4] = TILE_TABLE(avx2, 32, 6), avx512[4] = TILE_TABLE(avx512, 64, 12);
#endif

static const tile *tile_for(rl_dtype t) {
    const tile *of = any_cpu;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) of = avx512;
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) of = avx2;
#endif
    return of + (t == RL_F32 ? 0 : t == RL_F64 ? 1 : t == RL_I32 ? 2 : 3);
}

/* ---- blocks ---- */

/* Rows of a as panels of mr rows, the last filled with zeros; and rows of b as they are. For elements of 4 and 8 bytes. */
#define PACK(T)                                                                                                      \
    static void pack_##T(const T *a, int64_t am, int64_t ak, int64_t m, int64_t k, int64_t mr, T *to) {              \
        for (int64_t i0 = 0; i0 < m; i0 += mr, to += mr * k) {                                                       \
            int64_t rows = RL_MIN(mr, m - i0);                                                                       \
            if (rows < mr) memset(to, 0, (size_t)(mr * k) * sizeof *to);                                             \
            for (int64_t i = 0; i < rows; i++)                                                                       \
                for (int64_t p = 0; p < k; p++) to[p * mr + i] = a[(i0 + i) * am + p * ak];                          \
        }                                                                                                            \
    }                                                                                                                \
    static void rows_##T(const T *b, int64_t bk, int64_t bn, int64_t nk, int64_t nj, T *to) {                        \
        for (int64_t p = 0; bn == 1 && p < nk; p++) memcpy(to + p * LD, b + p * bk, (size_t)nj * sizeof *to);        \
        for (int64_t j = 0; bn != 1 && j < nj; j++)                                                                  \
            for (int64_t p = 0; p < nk; p++) to[p * LD + j] = b[p * bk + j * bn];                                    \
    }
PACK(uint32_t)
PACK(uint64_t)

typedef struct {
    const rl_gemm *g;
    const tile *tile;
    char *room;            /* of all workers */
    size_t nroom, size;    /* bytes of one worker's; bytes of an element */
    int64_t nblock, ncut, cut, nworker; /* blocks of columns, cuts of rows, rows of a cut */
} work;

static int64_t start(const int64_t *at, int64_t i) {
    return at ? at[i] : 0;
}

static void fetch_a(const work *w, int64_t i, int64_t m0, int64_t m, int64_t k0, int64_t k, char *to) {
    const rl_gemm *g = w->g;
    const char *a = (const char *)g->a + (start(g->aat, i) + m0 * g->am + k0 * g->ak) * (int64_t)w->size;
    if (w->size == 4) pack_uint32_t((const void *)a, g->am, g->ak, m, k, w->tile->mr, (void *)to);
    else pack_uint64_t((const void *)a, g->am, g->ak, m, k, w->tile->mr, (void *)to);
}

/* Columns up to a whole tile are zero. */
static void fetch_b(const work *w, int64_t i, int64_t k0, int64_t k, int64_t j0, int64_t n, char *to) {
    const rl_gemm *g = w->g;
    int64_t whole = (n + w->tile->nr - 1) / w->tile->nr * w->tile->nr;
    for (int64_t p = 0; whole > n && p < k; p++) memset(to + (p * LD + n) * (int64_t)w->size, 0, (size_t)(whole - n) * w->size);
    if (g->rows) {
        g->rows(g, i, k0, k, j0, n, to, LD);
        return;
    }
    const char *b = (const char *)g->b + (start(g->bat, i) + k0 * g->bk + j0 * g->bn) * (int64_t)w->size;
    if (w->size == 4) rows_uint32_t((const void *)b, g->bk, g->bn, k, n, (void *)to);
    else rows_uint64_t((const void *)b, g->bk, g->bn, k, n, (void *)to);
}

#define ADD(T)                                                                                                       \
    for (int64_t i = 0; i < m; i++)                                                                                  \
        for (int64_t j = 0; j < n; j++) ((T *)y)[i * g->ym + j] += ((const T *)part)[i * nr + j]

/* A tile over the edge of y goes by way of a whole one. */
static void edge_tile(const work *w, const char *a, const char *b, int64_t k, void *y, int64_t m, int64_t n) {
    const rl_gemm *g = w->g;
    int64_t nr = w->tile->nr;
    uint64_t part[12 * 32];
    memset(part, 0, (size_t)(w->tile->mr * nr) * w->size);
    w->tile->fn(a, b, k, LD, part, nr);
    switch (g->type) {
    case RL_F32: ADD(float); break;
    case RL_F64: ADD(double); break;
    case RL_I32: ADD(uint32_t); break;
    default: ADD(uint64_t); break;
    }
}

static void multiply_block(const work *w, const char *a, const char *b, int64_t k, char *y, int64_t m, int64_t n) {
    int64_t mr = w->tile->mr, nr = w->tile->nr, size = (int64_t)w->size;
    for (int64_t j = 0; j < n; j += nr)
        for (int64_t i = 0; i < m; i += mr) {
            const char *pa = a + i * k * size, *pb = b + j * size;
            char *to = y + (i * w->g->ym + j) * size;
            if (i + mr <= m && j + nr <= n) w->tile->fn(pa, pb, k, LD, to, w->g->ym);
            else edge_tile(w, pa, pb, k, to, RL_MIN(mr, m - i), RL_MIN(nr, n - j));
        }
}

/* One cut of rows of one block of columns of one product. */
static void run_task(const work *w, int64_t task, char *room) {
    const rl_gemm *g = w->g;
    int64_t cut = task % w->ncut, block = task / w->ncut % w->nblock, i = task / w->ncut / w->nblock;
    int64_t j0 = block * NB, n = RL_MIN((int64_t)NB, g->n - j0), end = RL_MIN(g->m, (cut + 1) * w->cut);
    char *b = room, *a = room + KC * LD * w->size;
    for (int64_t k0 = 0; k0 < g->k; k0 += KC) {
        int64_t k = RL_MIN((int64_t)KC, g->k - k0);
        fetch_b(w, i, k0, k, j0, n, b);
        for (int64_t m0 = cut * w->cut; m0 < end; m0 += MC) {
            int64_t m = RL_MIN((int64_t)MC, end - m0);
            fetch_a(w, i, m0, m, k0, k, a);
            multiply_block(w, a, b, k, (char *)g->y + (start(g->yat, i) + m0 * g->ym + j0) * (int64_t)w->size, m, n);
        }
    }
}

static void run_workers(void *arg, int64_t from, int64_t to) {
    const work *w = arg;
    int64_t ntask = w->g->count * w->nblock * w->ncut;
    for (int64_t k = from; k < to; k++)
        for (int64_t t = k; t < ntask; t += w->nworker) run_task(w, t, w->room + (size_t)k * w->nroom);
}

void rl_gemm_run(rl_rt *rt, const rl_gemm *g) {
    if (g->count <= 0 || g->m <= 0 || g->n <= 0 || g->k <= 0) return;
    work w = {.g = g, .tile = tile_for(g->type), .size = rl_dtype_bits(g->type) / 8, .nblock = (g->n + NB - 1) / NB, .ncut = 1, .nworker = 1};
    double volume = (double)g->count * (double)g->m * (double)g->n * (double)g->k;
    if (volume > 1e5) w.nworker = rl_pool_size(rt->pool);
    if (w.nworker > 1 && g->count * w.nblock < 2 * w.nworker) /* too few to share: cut rows too */
        w.ncut = RL_MIN((g->m + MC - 1) / MC, 2 * w.nworker);
    w.cut = ((g->m + w.ncut - 1) / w.ncut + MC - 1) / MC * MC;
    w.ncut = (g->m + w.cut - 1) / w.cut;
    w.nworker = RL_MIN(w.nworker, g->count * w.nblock * w.ncut);
    w.nroom = (size_t)(KC * (LD + MC)) * w.size;
    rl_tensor room = rl_tensor_new(rt, RL_U8, 1, (int64_t[]){w.nworker * (int64_t)w.nroom});
    w.room = room.mem->p;
    rl_parallel(rt, w.nworker, 1, run_workers, &w);
    rl_tensor_drop(&room);
}
