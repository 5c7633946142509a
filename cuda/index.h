/* Index arithmetic of the GPU's kernels: C and C++, on the host and on the device, the same text; tests/unit/gpu_index.c tries all of it.
 *
 * A kernel's thread has a number; a *walk* turns it into one offset per operand.  f32[2,3,4] read as its transpose [4,3,2]:
 *
 *     dim 4 3 2      step[0] (written) 6 2 1      step[1] (read) 1 4 12
 *     number 9 = (1,1,1)      written at 6+2+1 = 9, read at 1+4+12 = 17
 *
 * Dividing by a dim is a multiplication and a shift (rl_divide), exact for numbers below 2^31; the host cuts larger tensors into
 * several launches.  Offsets have 64 bits and count elements (or vectors: see move.c). */
#ifndef RL_CUDA_INDEX_H
#define RL_CUDA_INDEX_H
#include <stdint.h>

#ifdef __CUDACC__
#define RL_HD static __host__ __device__ __forceinline__
#else
#define RL_HD static inline
#endif

/* floor(n / d) for n < 2^31 and 1 <= d < 2^31. */
typedef struct { uint32_t d, mul, shift; } rl_divisor;

RL_HD rl_divisor rl_divisor_of(uint32_t d) {
    rl_divisor v = {d, 0, 0};
    while (v.shift < 31 && (1u << v.shift) < d) v.shift++;
    v.mul = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << v.shift) - d)) / d + 1);
    return v;
}

RL_HD uint32_t rl_divide(uint32_t n, rl_divisor v) {
    return (uint32_t)(((uint64_t)n * v.mul >> 32) + n) >> v.shift;
}

enum { RL_DIMS = 12, RL_OPERANDS = 4 };
typedef struct {
    uint32_t rank;               /* 0: one element */
    rl_divisor dim[RL_DIMS];     /* outermost first */
    int64_t step[RL_OPERANDS][RL_DIMS];
} rl_walk;

RL_HD void rl_walk_at(const rl_walk *w, uint32_t number, uint32_t noperand, int64_t *at) {
    for (uint32_t k = 0; k < noperand; k++) at[k] = 0;
    for (uint32_t i = w->rank; i-- > 0;) {
        uint32_t q = i ? rl_divide(number, w->dim[i]) : 0, r = number - q * w->dim[i].d;
        for (uint32_t k = 0; k < noperand; k++) at[k] += r * w->step[k][i];
        number = q;
    }
}

/* ---- dims, on the host, before they become a walk ---- */

enum { RL_MOST_DIMS = 64 };
typedef struct { uint32_t rank, noperand; int64_t dim[RL_MOST_DIMS], step[RL_OPERANDS][RL_MOST_DIMS]; } rl_loops;

RL_HD int64_t rl_loops_count(const rl_loops *l) {
    int64_t n = 1;
    for (uint32_t i = 0; i < l->rank; i++) n *= l->dim[i];
    return n;
}

RL_HD void rl_loops_copy_dim(rl_loops *to, uint32_t i, const rl_loops *from, uint32_t k) {
    to->dim[i] = from->dim[k];
    for (uint32_t o = 0; o < from->noperand; o++) to->step[o][i] = from->step[o][k];
}

/* Can dim i + 1 be counted on by dim i, in every operand? */
RL_HD int rl_loops_joins(const rl_loops *l, uint32_t i) {
    for (uint32_t o = 0; o < l->noperand; o++)
        if (l->step[o][i] != l->step[o][i + 1] * l->dim[i + 1]) return 0;
    return 1;
}

/* Without dims of 1; neighbours that lie one after the other in every operand are one. The order of the elements stays. */
RL_HD void rl_loops_merge(rl_loops *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->rank; i++) {
        if (l->dim[i] == 1) continue;
        rl_loops_copy_dim(l, n, l, i);
        if (n && rl_loops_joins(l, n - 1)) {
            l->dim[n - 1] *= l->dim[n];
            for (uint32_t o = 0; o < l->noperand; o++) l->step[o][n - 1] = l->step[o][n];
        } else n++;
    }
    l->rank = n;
}

/* The order of the loops by operand 0, the largest step outermost: for copies, where any order will do. */
RL_HD void rl_loops_sort(rl_loops *l) {
    for (uint32_t i = 1; i < l->rank; i++) {
        for (uint32_t k = i; k; k--) {
            int64_t a = l->step[0][k - 1], b = l->step[0][k];
            if ((a < 0 ? -a : a) >= (b < 0 ? -b : b)) break;
            rl_loops t;
            t.noperand = l->noperand;
            rl_loops_copy_dim(&t, 0, l, k);
            rl_loops_copy_dim(l, k, l, k - 1);
            rl_loops_copy_dim(l, k - 1, &t, 0);
        }
    }
}

/* Dims from `first` on as a walk; rank - first <= RL_DIMS, their product below 2^31. */
RL_HD rl_walk rl_walk_of(const rl_loops *l, uint32_t first) {
    rl_walk w;
    w.rank = l->rank - first;
    for (uint32_t i = 0; i < w.rank; i++) {
        w.dim[i] = rl_divisor_of((uint32_t)l->dim[first + i]);
        for (uint32_t o = 0; o < RL_OPERANDS; o++) w.step[o][i] = o < l->noperand ? l->step[o][first + i] : 0;
    }
    for (uint32_t o = 0; o < RL_OPERANDS && !w.rank; o++) w.step[o][0] = 0;
    return w;
}

/* How many outer dims the host has to loop over: the rest fits one launch. */
RL_HD uint32_t rl_loops_outer(const rl_loops *l) {
    int64_t n = 1;
    uint32_t i = l->rank;
    while (i && l->rank - i < RL_DIMS && n * l->dim[i - 1] < ((int64_t)1 << 31)) n *= l->dim[--i];
    return i;
}

/* ---- vectors ---- */

/* The widest vector, of 1, 2, 4, 8 or 16 bytes and at least one element, that a copy can go by: the last dim lies closest in both
 * operands, and whole vectors fit all steps, both addresses and the dim. `size`: bytes of an element. */
RL_HD uint32_t rl_loops_vector(const rl_loops *l, uint32_t size, uint64_t addresses) {
    uint32_t last = l->rank - 1, v = 16;
    if (l->rank == 0 || l->step[0][last] != 1 || l->step[1][last] != 1) return size;
    for (; v > size; v /= 2) {
        uint64_t bad = addresses % v + (uint64_t)(l->dim[last] * size % v);
        for (uint32_t i = 0; i < last; i++)
            for (uint32_t o = 0; o < 2; o++) bad |= (uint64_t)(l->step[o][i] * (int64_t)size) % v;
        if (!bad) break;
    }
    return v;
}

/* The same copy with vectors of n elements for its elements. */
RL_HD void rl_loops_widen(rl_loops *l, uint32_t n) {
    if (n == 1) return;
    l->dim[l->rank - 1] /= n;
    for (uint32_t i = 0; i + 1 < l->rank; i++)
        for (uint32_t o = 0; o < 2; o++) l->step[o][i] /= (int64_t)n;
}

/* Can a thread go by n neighbours of the last dim, 16 bytes, at a time?  They are neighbours in operand 0, and neighbours, or one element, in the
 * others; of the first `nvector` operands those that have neighbours have whole vectors: address[o], and all steps.  Where there is one dim alone,
 * the last vector may be short. */
RL_HD int rl_loops_takes(const rl_loops *l, uint32_t n, uint32_t nvector, const uint64_t *address) {
    uint32_t last = l->rank - 1;
    if (l->rank == 0 || l->step[0][last] != 1 || (l->rank > 1 && l->dim[last] % n)) return 0;
    for (uint32_t o = 0; o < l->noperand; o++) {
        if (l->step[o][last] != 0 && l->step[o][last] != 1) return 0;
        if (l->step[o][last] == 0 || o >= nvector) continue;
        if (address[o] % 16) return 0;
        for (uint32_t i = 0; i < last; i++)
            if (l->step[o][i] % n) return 0;
    }
    return 1;
}

/* The same loops, n neighbours of the last dim at a time. */
RL_HD void rl_loops_by(rl_loops *l, uint32_t n) {
    uint32_t last = l->rank - 1;
    l->dim[last] = (l->dim[last] + n - 1) / n;
    for (uint32_t o = 0; o < l->noperand; o++) l->step[o][last] *= n;
}

/* ---- tiles: one operand's neighbours are another dim's than the other's ---- */

/* A block's tile (k_tile.h), of kernels tile and any_tile: 16 / size << lk rows of 16 << lc bytes, which become lines of 16 << lk bytes; 16 bytes are a
 * chunk. Chunks of a row lie in shared memory so that no two lanes of a warp use one bank for different words, neither where rows are written nor where
 * lines are read: test gpu_index counts. */
#define RL_TILE_PER(size) ((size) < 4 ? 4u / (size) : 1u) /* elements in a word */
enum { RL_TILE_BYTES = 32 << 10, RL_TILE_LINES = 512, RL_TILE_MOST = 5, RL_TILE_SUM = 10 };
typedef struct { uint32_t lc, lk; } rl_tile_shape;

RL_HD uint32_t rl_log2_up(uint32_t n) {
    uint32_t k = 0;
    while (k < 31 && 1u << k < n) k++;
    return k;
}

/* For ni elements that lie side by side in what is read, nj in what is written, of up to 16 KB: a block that waits for its loads once, and others beside it.
 * Rows are whole where lines half as long are left; else it is as square as it gets, with lines the longer ones: tiles that follow each other go on with
 * the same rows, in other lines. */
RL_HD rl_tile_shape rl_tile_shape_of(uint32_t size, uint32_t ni, uint32_t nj) {
    uint32_t wide = 16 / size, most = RL_TILE_SUM - rl_log2_up(wide), rows = rl_log2_up((ni + wide - 1) / wide);
    rl_tile_shape s = {rows, rl_log2_up((nj + wide - 1) / wide)};
    if (s.lc > RL_TILE_MOST) s.lc = RL_TILE_MOST;
    if (s.lk > RL_TILE_MOST) s.lk = RL_TILE_MOST;
    while (s.lc + s.lk > most) {
        if (s.lc >= s.lk && !(s.lc == rows && 2 * s.lc <= most + 1)) s.lc--;
        else s.lk--;
    }
    return s;
}

/* Kernels word_tile and tall_tile: words (an element, or `per` of up to 4 bytes) of a row, rows as a power of two, and the first of a row's words, of which
 * it has one more: a row begins in the bank after the one before it, and after `per` of them another is left out, so that lanes that have words of a line
 * meet in none. */
enum { RL_WORD_TILE_ROW = 32 };
#define RL_WORD_TILE_ROWS(size) ((size) == 1 ? 7u : (size) <= 4 ? 6u : 5u)
RL_HD uint32_t rl_word_tile_cell(uint32_t per, uint32_t row) { return row * (RL_WORD_TILE_ROW + 1) + (per > 1 ? row / per : 0); }

/* The shape for kernel element_tile, in elements: 1 << lc in a row and 1 << lk rows, up to 8 KB (elements of 16 bytes: 16 KB) and a sector's rows before them; 32
 * neighbours on both sides where there are so many. A row has one cell more, so that lanes that read a column meet in no bank. */
enum { RL_ELEMENT_TILE_MOST = 7, RL_ELEMENT_TILE_BYTES = 10 * 129 * 16 };
RL_HD rl_tile_shape rl_element_tile_of(uint32_t size, uint32_t ni, uint32_t nj) {
    uint32_t sum = size < 8 ? 11 : 10, i = rl_log2_up(ni), j = rl_log2_up(nj), lk = j < sum - 5 ? j : sum - 5;
    rl_tile_shape s = {sum - lk, 0};
    if (s.lc > i) s.lc = i;
    if (s.lc > RL_ELEMENT_TILE_MOST) s.lc = RL_ELEMENT_TILE_MOST;
    s.lk = j < sum - s.lc ? j : sum - s.lc;
    if (s.lk > RL_ELEMENT_TILE_MOST) s.lk = RL_ELEMENT_TILE_MOST;
    return s;
}

/* Where chunk c of a row lies, in chunks. */
RL_HD uint32_t rl_tile_chunk(uint32_t size, rl_tile_shape s, uint32_t row, uint32_t c) {
    uint32_t low = s.lk < 3 ? s.lk : 3;
    return (row << s.lc | c) ^ ((row / (16 / size) << (3 - low)) & 7);
}

/* A row's words, of 4 bytes or an element, as a power of two. */
RL_HD uint32_t rl_tile_words(uint32_t size, rl_tile_shape s) { return s.lc + (size <= 4 ? 2u : size == 8 ? 1u : 0u); }

/* The u-th piece that a thread writes: chunk k of the lines of word w of the rows. A warp's lanes have up to 8 chunks of a line, and several words; what is
 * left of u beyond the tile's pieces is in w. */
typedef struct { uint32_t k, w; } rl_tile_unit;
RL_HD rl_tile_unit rl_tile_unit_of(rl_tile_shape s, uint32_t lw, uint32_t u) {
    uint32_t low = s.lk < 3 ? s.lk : 3, mid = 5 - low < lw ? 5 - low : lw, high = s.lk - low;
    rl_tile_unit o;
    o.k = (u & ((1u << low) - 1)) | (u >> (low + mid) & ((1u << high) - 1)) << low;
    o.w = (u >> low & ((1u << mid) - 1)) | u >> (low + mid + high) << mid;
    return o;
}

/* ---- weaves: a few planes and one interleaved run ---- */

/* Where the dim that lies closest on one side is short (3 colours, the 4 channels of NCHW4, the 32 of NCHW32), most of a square tile would be
 * empty.  A block takes `along` places of all q planes instead: rows of the tile are planes, which go to and from memory 16 bytes at a time; so does
 * the interleaved run, each 16 bytes from as many cells as that takes.  Element m of the run is place m / q of plane m % q. */
enum { RL_WEAVE_BYTES = 16384 };
#define RL_WEAVE_MOST(size) ((size) == 1 ? 32u : (size) <= 4 ? 16u : 8u) /* planes; of more a tile is full enough */
typedef struct { uint32_t along, pitch; } rl_weave_shape;

/* along: a whole number of 16 bytes, 0 where q is too much; pitch: from row to row, 16 bytes more, so that planes begin in other banks. */
RL_HD rl_weave_shape rl_weave_of(uint32_t size, uint32_t q, uint32_t n) {
    rl_weave_shape w;
    uint32_t v = 16 / size, most = RL_WEAVE_BYTES / size / q, all = (n + v - 1) / v * v;
    w.along = most > v ? (most - v) / v * v : 0;
    if (w.along > all) w.along = all;
    w.pitch = w.along + v;
    return w;
}

/* ---- interleaved planes: the same for a few numbers of planes, in registers (k_interleave.h) ---- */

/* A thread has a column, `at` bytes, of so many of the q planes; it takes RL_LACE_EACH columns, RL_LACE_STEP apart, at most 64 bytes in all.  Elements have
 * `bits` bits. */
#define RL_LACE_THREADS 256u
#define RL_LACE_PLANES(bits, q) ((q) <= 4 ? (q) : (bits) == 4 ? 8u : 4u)
#define RL_LACE_ROOM(bits, at, q) (64u / (RL_LACE_PLANES(bits, q) * (at)))
#define RL_LACE_EACH(bits, at, q) (RL_LACE_ROOM(bits, at, q) >= 8 ? 8u : RL_LACE_ROOM(bits, at, q) >= 4 ? 4u : RL_LACE_ROOM(bits, at, q) >= 2 ? 2u : 1u)
#define RL_LACE_COLUMNS(bits, at, q) (RL_LACE_STEP(bits, q) * RL_LACE_EACH(bits, at, q)) /* of a block */
#define RL_LACE_COLUMN(at, q) ((q) * (at)) /* bytes */
/* Bytes of a thread that lie together in the run: of all its places where it has all planes, else of one place. */
#define RL_LACE_PIECE(bits, at, q) ((q) <= 4 ? (q) * (at) : RL_LACE_PLANES(bits, q) * (bits) / 8)
/* How many it puts at a time: the largest power of two, up to 16, that pieces are multiples of. */
#define RL_LACE_PUT(bits, at, q) (RL_LACE_PIECE(bits, at, q) % 16 == 0 ? 16u : RL_LACE_PIECE(bits, at, q) % 8 == 0 ? 8u : 4u)

/* 8 lanes have neighbouring columns of the same planes, or, where these are of 4 bytes, 32: 128 bytes of a plane. */
#define RL_LACE_ACROSS(at) ((at) == 4 ? 32u : 8u)
#define RL_LACE_GROUPS(bits, q) ((q) / RL_LACE_PLANES(bits, q))
#define RL_LACE_STEP(bits, q) (RL_LACE_THREADS / RL_LACE_GROUPS(bits, q)) /* from a thread's column to its next */
RL_HD uint32_t rl_lace_group(uint32_t bits, uint32_t at, uint32_t q, uint32_t thread) { return thread / RL_LACE_ACROSS(at) % RL_LACE_GROUPS(bits, q); }
RL_HD uint32_t rl_lace_column(uint32_t bits, uint32_t at, uint32_t q, uint32_t thread) {
    return thread % RL_LACE_ACROSS(at) + thread / (RL_LACE_ACROSS(at) * RL_LACE_GROUPS(bits, q)) * RL_LACE_ACROSS(at);
}

/* What turns where 16 bytes lie, by the column that they are in; columns that begin in all banks as they are need nothing. */
RL_HD uint32_t rl_lace_twist(uint32_t at, uint32_t q, uint32_t column) { return RL_LACE_COLUMN(at, q) % 32 == 0 ? column % 8 * 16 : 0; }
/* Where, in 16 bytes, the run's k-th lie in shared memory; 256 further on the same 256 further on. */
RL_HD uint32_t rl_lace_unit(uint32_t at, uint32_t q, uint32_t k) { return k ^ rl_lace_twist(at, q, k * 16 / RL_LACE_COLUMN(at, q)) / 16; }
/* The byte there where a thread's k-th put of its e-th column goes. */
RL_HD uint32_t rl_lace_place(uint32_t bits, uint32_t at, uint32_t q, uint32_t thread, uint32_t e, uint32_t k) {
    uint32_t column = rl_lace_column(bits, at, q, thread) + e * RL_LACE_STEP(bits, q);
    uint32_t piece = RL_LACE_PIECE(bits, at, q), put = RL_LACE_PUT(bits, at, q), per = piece / put;
    uint32_t base = column * RL_LACE_COLUMN(at, q), in = q <= 4 ? k * put : k / per * (q * bits / 8) + k % per * put;
    if (q == 3) return base + in;
    return (base ^ rl_lace_twist(at, q, column) ^ rl_lace_group(bits, at, q, thread) * piece) ^ in; /* powers of two: no bit in both */
}

/* The same copy where the dim that lies closest on both sides is one element of 2 to 16 bytes; the bytes of an element then, `size` where nothing
 * changes. */
RL_HD uint32_t rl_loops_recast(rl_loops *l, uint32_t size, uint64_t addresses) {
    uint32_t last = l->rank - 1;
    uint64_t bytes, bad;
    if (l->rank == 0 || l->step[0][last] != 1 || l->step[1][last] != 1 || l->dim[last] > 16) return size;
    bytes = (uint64_t)l->dim[last] * size;
    bad = bytes > 16 || (bytes & (bytes - 1)) ? 1 : addresses % bytes;
    for (uint32_t i = 0; i < last; i++)
        for (uint32_t o = 0; o < 2; o++) bad |= (uint64_t)(l->step[o][i] % l->dim[last] != 0);
    if (bad) return size;
    for (uint32_t i = 0; i < last; i++)
        for (uint32_t o = 0; o < 2; o++) l->step[o][i] /= l->dim[last];
    l->rank--;
    return (uint32_t)bytes;
}

#endif
