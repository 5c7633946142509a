/* Moves on the device: see move.h. */
#include "move.h"

#include <stdlib.h>
#include <string.h>

#include "interleave.h"

enum { LEAST_TILE = 8 /* elements along both dims of a tile: fewer leave most of its lanes idle */, LEAST_BLOCK = 2048 /* bytes that a block moves */,
       SECTOR = 32 /* bytes that memory is written by */ };

/* ---- which kernel ---- */

static uint32_t find_closest(const rl_loops *l, uint32_t operand) {
    for (uint32_t i = l->rank; i-- > 0;)
        if (l->step[operand][i] == 1) return i;
    return RL_NONE;
}

/* Both sides have neighbours, along different dims. */
static bool fits_transpose(rl_move_plan *p) {
    const rl_loops *l = &p->loops;
    p->i = find_closest(l, 1), p->j = find_closest(l, 0);
    return p->i != RL_NONE && p->j != RL_NONE && p->i != p->j && l->rank <= RL_DIMS + 2 && rl_loops_count(l) < INT32_MAX;
}

/* Dims that lie one after the other in the operand, from `first` on, as a bit each, without those of `taken`. Of [n,c,4,7,4,7] read as windows
 * [n,4,4,7,7,c] these are all four: 784 places of a plane, not 7. */
static uint64_t run_of(const rl_loops *l, uint32_t operand, uint32_t first, uint64_t taken) {
    uint64_t run = (uint64_t)1 << first;
    int64_t n = l->dim[first];
    for (uint32_t i = 0; i < l->rank; i++) {
        if (l->step[operand][i] != n || ((run | taken) >> i & 1)) continue;
        run |= (uint64_t)1 << i;
        n *= l->dim[i];
        i = UINT32_MAX; /* from the beginning: the loop adds one */
    }
    return run;
}

static int64_t count_in(const rl_loops *l, uint64_t run) {
    int64_t n = 1;
    for (uint32_t i = 0; i < l->rank; i++)
        if (run >> i & 1) n *= l->dim[i];
    return n;
}

static bool fits_tile(rl_move_plan *p) {
    p->run_i = run_of(&p->loops, 1, p->i, (uint64_t)1 << p->j), p->run_j = run_of(&p->loops, 0, p->j, p->run_i);
    int64_t most = 4 * (int64_t)RL_WEAVE_MOST(p->size), ni = RL_MIN(count_in(&p->loops, p->run_i), most), nj = RL_MIN(count_in(&p->loops, p->run_j), most);
    return ni >= LEAST_TILE && nj >= LEAST_TILE && ni * nj * p->size >= LEAST_BLOCK;
}

/* The short one of the two dims, whose elements lie side by side, place after place, in `run` (0: written; 1: read). */
static bool weaves(const rl_move_plan *p, uint32_t run) {
    const rl_loops *l = &p->loops;
    uint32_t q = run ? p->i : p->j, n = run ? p->j : p->i;
    return p->size < 16 && l->dim[q] <= RL_WEAVE_MOST(p->size) && l->dim[n] * l->dim[q] * p->size >= LEAST_BLOCK && l->dim[n] >= 4 * (16 / p->size)
           && l->step[run][n] == l->dim[q];
}

static bool is_dense(const rl_loops *l, uint32_t first) {
    int64_t step = 1;
    for (uint32_t i = l->rank; i-- > first; step *= l->dim[i])
        if (l->step[0][i] != step) return false;
    return true;
}

/* The farthest that an operand's elements can lie from its first, or the way there by way of the ends of its dims. */
static int64_t reach_of(const rl_loops *l, uint32_t operand) {
    int64_t n = 0;
    for (uint32_t i = 0; i < l->rank; i++) n += l->dim[i] * llabs(l->step[operand][i]);
    return n;
}

/* What is written is one line, from a multiple of 16 bytes on, and the two innermost dims have as much as a thread writes. */
static bool fits_pack(const rl_move_plan *p, uint64_t to) {
    const rl_loops *l = &p->loops;
    if (p->size >= 16 || to % 16 || !l->rank || rl_loops_outer(l) || !is_dense(l, 0) || reach_of(l, 1) > INT32_MAX) return false;
    return l->rank == 1 || l->dim[l->rank - 1] * l->dim[l->rank - 2] * p->size >= 16;
}

rl_move_plan rl_move_choose(const rl_loops *l, uint32_t bits, uint64_t to, uint64_t from) {
    rl_move_plan p = {.kind = RL_MOVE_STRIDED, .size = bits / 8, .loops = *l};
    uint64_t addresses = to | from;
    if (rl_loops_count(l) == 0) return (rl_move_plan){.kind = RL_MOVE_NOTHING};
    rl_loops_sort(&p.loops);
    rl_loops_merge(&p.loops);
    rl_interleaved k;
    if (bits < 8) {
        p.kind = rl_interleave_of(&p.loops, bits, to, from, &k) ? RL_MOVE_INTERLEAVE : RL_MOVE_BITS;
        return p;
    }
    bool line = p.loops.rank == 0 || (p.loops.rank == 1 && p.loops.step[0][0] == 1 && p.loops.step[1][0] == 1);
    if (line) {
        p.kind = RL_MOVE_BYTES;
        return p;
    }
    p.size = rl_loops_recast(&p.loops, bits / 8, addresses);
    bool turns = fits_transpose(&p);
    if (rl_interleave_of(&p.loops, 8 * p.size, to, from, &k)) p.kind = RL_MOVE_INTERLEAVE;
    else if (turns && (weaves(&p, 0) || weaves(&p, 1))) p.kind = RL_MOVE_WEAVE;
    else if (turns && fits_tile(&p)) p.kind = RL_MOVE_TILE;
    else {
        uint32_t size = p.size;
        p.size = rl_loops_vector(&p.loops, size, addresses);
        rl_loops_widen(&p.loops, p.size / size);
        if (fits_pack(&p, to)) p.kind = RL_MOVE_PACK;
    }
    return p;
}

/* ---- launches ---- */

uint32_t rl_gpu_blocks(int64_t n) {
    return (uint32_t)((n + RL_THREADS * RL_PER_THREAD - 1) / (RL_THREADS * RL_PER_THREAD));
}

uint32_t rl_gpu_thread_blocks(int64_t n) {
    return (uint32_t)((n + RL_THREADS - 1) / RL_THREADS);
}

uint32_t rl_gpu_widen(rl_loops *l, uint32_t size, uint32_t nvector, const uint64_t *address, uint32_t *wide) {
    *wide = rl_loops_takes(l, 16 / size, nvector, address) != 0;
    if (!*wide) return rl_gpu_blocks(rl_loops_count(l));
    rl_loops_by(l, 16 / size);
    return rl_gpu_thread_blocks(rl_loops_count(l));
}

/* begin: where the operands begin. */
static rl_status parts_from(const rl_loops *l, const int64_t *begin, rl_part_fn *fn, void *arg) {
    uint32_t first = rl_loops_outer(l);
    int64_t index[RL_MOST_DIMS] = {0}, at[RL_OPERANDS];
    memcpy(at, begin, sizeof at);
    for (bool more = true; more;) {
        RL_TRY(fn(arg, l, first, at));
        more = false;
        for (uint32_t i = first; i-- > 0 && !more;) {
            more = ++index[i] < l->dim[i];
            for (uint32_t o = 0; o < l->noperand; o++) at[o] += more ? l->step[o][i] : -(l->dim[i] - 1) * l->step[o][i];
            if (!more) index[i] = 0;
        }
    }
    return RL_OK;
}

/* A last dim that no launch has is cut: element by element it would be as many launches. */
rl_status rl_loops_parts(const rl_loops *l, rl_part_fn *fn, void *arg) {
    enum { MOST = 1 << 30 };
    rl_loops piece = *l;
    int64_t at[RL_OPERANDS] = {0}, *n = &piece.dim[l->rank ? l->rank - 1 : 0];
    if (!l->rank || *n <= INT32_MAX) return parts_from(l, at, fn, arg);
    for (int64_t left = *n; left > 0; left -= *n) {
        *n = RL_MIN(left, (int64_t)MOST);
        RL_TRY(parts_from(&piece, at, fn, arg));
        for (uint32_t o = 0; o < l->noperand; o++) at[o] += *n * l->step[o][l->rank - 1];
    }
    return RL_OK;
}

static uint32_t count_of(const rl_walk *w) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < w->rank; i++) n *= w->dim[i].d;
    return n;
}

rl_gpu_kernel rl_gpu_of_size(rl_gpu_kernel first, uint32_t size) {
    uint32_t k = 0;
    while (1u << k < size) k++;
    return (rl_gpu_kernel)((uint32_t)first + k);
}

typedef struct { rl_gpu *g; uint32_t size, bits; char *to; const char *from; int64_t to0, from0; const void *value; } move;

static rl_status launch_strided(void *arg, const rl_loops *l, uint32_t first, const int64_t *at) {
    const move *m = arg;
    rl_p_copy p = {.to = m->to + at[0] * m->size, .from = m->from + at[1] * m->size, .w = rl_walk_of(l, first)};
    p.count = count_of(&p.w);
    return rl_gpu_launch(m->g, rl_gpu_of_size(RL_GPU_strided1, m->size), rl_gpu_blocks(p.count), &p, sizeof p);
}

static rl_status launch_pack(const move *m, const rl_move_plan *plan) {
    rl_p_copy p = {.to = m->to, .from = m->from, .w = rl_walk_of(&plan->loops, 0)};
    p.count = count_of(&p.w);
    uint32_t wide = 16 / m->size;
    return rl_gpu_launch(m->g, rl_gpu_of_size(RL_GPU_pack1, m->size), rl_gpu_thread_blocks((p.count + wide - 1) / wide), &p, sizeof p);
}

static rl_status launch_bits(void *arg, const rl_loops *l, uint32_t first, const int64_t *at) {
    const move *m = arg;
    rl_p_bits p = {.to = m->to, .from = m->from, .to0 = m->to0 + at[0], .from0 = m->from0 + at[1], .bits = m->bits, .w = rl_walk_of(l, first)};
    uint32_t per = 8 / m->bits;
    p.count = count_of(&p.w);
    /* A thread that writes whole bytes must own the last one's other elements. */
    p.dense_to = is_dense(l, first) && p.to0 % per == 0 && p.count % per == 0;
    return rl_gpu_launch(m->g, RL_GPU_bits, rl_gpu_blocks(p.dense_to ? p.count / per : p.count), &p, sizeof p);
}

static uint32_t tiles_of(int64_t n, uint32_t side) {
    return (uint32_t)((n + side - 1) / side);
}

/* Do `bytes` at a time fit: the address, every step, and the dims that vectors go along? */
static bool fits_vector(const rl_loops *l, uint32_t operand, uint64_t run, uint32_t size, const void *address, uint32_t bytes) {
    uint64_t bad = (uint64_t)(uintptr_t)address % bytes + (uint64_t)(count_in(l, run) * size) % bytes;
    for (uint32_t i = 0; i < l->rank; i++)
        if (!(run >> i & 1)) bad |= (uint64_t)(l->step[operand][i] * (int64_t)size) % bytes;
    return !bad;
}

/* The run's dims, in the order in which they lie in `operand`, with the other one's steps; rank 0 where it is one. */
static rl_walk walk_of_run(const rl_loops *l, uint32_t operand, uint64_t run) {
    rl_loops r = {.noperand = 2};
    for (uint32_t i = 0; i < l->rank; i++)
        if (run >> i & 1) r.dim[r.rank] = l->dim[i], r.step[0][r.rank] = l->step[operand][i], r.step[1][r.rank++] = l->step[!operand][i];
    rl_loops_sort(&r);
    memcpy(r.step[0], r.step[1], sizeof r.step[0]);
    r.noperand = 1;
    if (r.rank == 1) r.rank = 0;
    return rl_walk_of(&r, 0);
}

/* The same for a line along dims a and b that a block begins on 16 bytes of, and whose end goes by elements: the address and the other steps. */
static bool fits_run(const rl_loops *l, uint32_t operand, uint32_t a, uint32_t b, uint32_t size, const void *address) {
    uint64_t bad = (uint64_t)(uintptr_t)address % 16;
    for (uint32_t i = 0; i < l->rank; i++)
        if (i != a && i != b) bad |= (uint64_t)(l->step[operand][i] * (int64_t)size) % 16;
    return !bad;
}

/* Where the operand's first and last elements lie, as [low, high); false: there are gaps between them. */
static bool is_whole(const rl_loops *l, uint32_t operand, uint32_t size, const char *address, const void **low, const void **high) {
    int64_t first = 0, last = 0;
    for (uint32_t i = 0; i < l->rank; i++) {
        int64_t way = (l->dim[i] - 1) * l->step[operand][i];
        if (way < 0) first += way;
        else last += way;
    }
    *low = address + first * size, *high = address + (last + 1) * size;
    return last + 1 - first == rl_loops_count(l);
}

/* Most of a warp's words on both sides, each along one dim. */
static bool fits_words(const rl_p_tile *p, uint32_t size) {
    uint32_t wide = RL_WORD_TILE_ROW * RL_TILE_PER(size), tall = 1u << RL_WORD_TILE_ROWS(size);
    return !p->run_i.rank && !p->run_j.rank && p->ni >= wide * 3 / 4 && p->nj >= tall * 3 / 4;
}

/* A kernel, the columns and rows of its tiles, and how many of these along j follow each other, at most: they write neighbouring pieces of the same lines. */
typedef struct { rl_gpu_kernel kernel; uint32_t wide, tall, together; } tiling;
enum { TOGETHER = 64, ALONE = 1 /* of short elements, whose pieces are short */, COLUMN = 256 /* of 8 bytes and more, where a column has no more; an H200 */ };

/* Tiles of twice as many rows, of what has enough of them for every multiprocessor; of 8 bytes short columns of the lower ones are quicker. An emulated
 * device does either with less. */
static tiling words_of(const rl_gpu *g, const rl_p_tile *p, uint32_t size) {
    const bool emulated = rl_gpu_is_emulated(g);
    uint64_t nbyte = (uint64_t)p->ni * p->nj * count_of(&p->batch) * size, least = emulated ? 1 << 16 : 32 << 20;
    uint32_t rows = RL_WORD_TILE_ROWS(size), column = emulated ? 2 : COLUMN;
    bool is_short = size >= 8 && p->nj <= column << rows, tall = (size == 4 || size == 8) && !is_short && p->nj >= 2u << rows && nbyte >= least;
    return (tiling){tall ? rl_gpu_of_size(RL_GPU_tall_tile4, size / 4) : rl_gpu_of_size(RL_GPU_word_tile1, size), RL_WORD_TILE_ROW * RL_TILE_PER(size),
                    1u << (rows + tall), size < 4 ? ALONE : is_short ? column + 1 /* for the rows before the first */ : TOGETHER};
}

/* Of a line in several tiles, which are not there at once, each writes whole sectors. */
static tiling tiling_of(const move *m, const rl_move_plan *plan, rl_p_tile *p) {
    const rl_loops *l = &plan->loops;
    const uint32_t size = m->size;
    bool whole = is_whole(l, 1, size, p->from, &p->low, &p->high), words = fits_words(p, size) && (size > 2 || (whole && p->from_j > 0));
    p->shape = rl_tile_shape_of(size, p->ni, p->nj);
    tiling t = {RL_GPU_tile1, 16 / size << p->shape.lc, 16 / size << p->shape.lk, 1};
    p->in = fits_vector(l, 1, plan->run_i, size, p->from, 16) ? RL_TILE_CHUNKS : whole ? RL_TILE_SHIFTED : RL_TILE_ELEMENTS;
    p->vector_out = fits_vector(l, 0, plan->run_j, size, p->to, p->nj > t.tall ? SECTOR : 16);
    p->halo = p->vector_out ? 0 : SECTOR / size;
    bool chunks = p->in == RL_TILE_CHUNKS && p->vector_out, any = size <= 2 && (!words || (size == 1 && p->vector_out));
    if ((chunks && !(size == 8 && words)) || any) {
        t.kernel = rl_gpu_of_size(chunks ? RL_GPU_tile1 : RL_GPU_any_tile1, size);
        return t;
    }
    p->halo = fits_vector(l, 0, plan->run_j, size, p->to, SECTOR) ? 0 : SECTOR / size;
    if (words) return words_of(m->g, p, size);
    p->shape = rl_element_tile_of(size, p->ni, p->nj);
    return (tiling){rl_gpu_of_size(RL_GPU_element_tile4, size / 4), 1u << p->shape.lc, 1u << p->shape.lk, TOGETHER};
}

static rl_status launch_tile(const move *m, const rl_move_plan *plan) {
    const rl_loops *l = &plan->loops;
    rl_loops batch = {.noperand = 2};
    for (uint32_t i = 0; i < l->rank; i++)
        if (!((plan->run_i | plan->run_j) >> i & 1)) rl_loops_copy_dim(&batch, batch.rank++, l, i);
    rl_p_tile p = {.to = m->to, .from = m->from, .ni = (uint32_t)count_in(l, plan->run_i), .nj = (uint32_t)count_in(l, plan->run_j)};
    p.to_i = l->step[0][plan->i], p.from_j = l->step[1][plan->j];
    p.run_i = walk_of_run(l, 1, plan->run_i), p.run_j = walk_of_run(l, 0, plan->run_j);
    p.batch = rl_walk_of(&batch, 0);
    tiling t = tiling_of(m, plan, &p);
    uint32_t ti = tiles_of(p.ni, t.wide), tj = tiles_of((int64_t)p.nj + (p.halo ? p.halo - 1 : 0), t.tall);
    uint32_t group = tiles_of(tj, tiles_of(tj, t.together)); /* all alike, so that few of their blocks have none */
    p.ti = rl_divisor_of(ti), p.tj = rl_divisor_of(tiles_of(tj, group)), p.group = rl_divisor_of(group);
    return rl_gpu_launch(m->g, t.kernel, ti * p.tj.d * group * count_of(&p.batch), &p, sizeof p);
}

static rl_status launch_weave(const move *m, const rl_move_plan *plan) {
    const rl_loops *l = &plan->loops;
    uint32_t run = weaves(plan, 0) ? 0 : 1, q = run ? plan->i : plan->j, n = run ? plan->j : plan->i;
    rl_loops batch = {.noperand = 2};
    for (uint32_t i = 0; i < l->rank; i++)
        if (i != q && i != n) rl_loops_copy_dim(&batch, batch.rank++, l, i);
    rl_weave_shape shape = rl_weave_of(m->size, (uint32_t)l->dim[q], (uint32_t)l->dim[n]);
    rl_p_weave p = {.to = m->to, .from = m->from, .n = (uint32_t)l->dim[n], .out = run, .along = shape.along, .pitch = shape.pitch,
                    .q = rl_divisor_of((uint32_t)l->dim[q]), .tiles = rl_divisor_of(tiles_of(l->dim[n], shape.along)),
                    .each = rl_divisor_of(shape.along * m->size / 16), .step_j = l->step[!run][q]};
    p.batch = rl_walk_of(&batch, 0);
    p.by_plane = fits_run(l, !run, n, n, m->size, run ? m->to : m->from);
    p.by_run = fits_run(l, run, q, n, m->size, run ? m->from : m->to);
    return rl_gpu_launch(m->g, rl_gpu_of_size(RL_GPU_weave1, m->size), p.tiles.d * count_of(&p.batch), &p, sizeof p);
}

static rl_status launch_interleave(const move *m, const rl_move_plan *plan) {
    rl_interleaved k;
    rl_interleave_of(&plan->loops, m->size ? 8 * m->size : m->bits, (uint64_t)(uintptr_t)m->to, (uint64_t)(uintptr_t)m->from, &k);
    return rl_interleave_launch(m->g, &k);
}

rl_status rl_gpu_move(rl_gpu *g, const rl_loops *l, uint32_t bits, void *to, int64_t to0, const void *from, int64_t from0) {
    int64_t size = bits / 8, odd = (to0 * bits | from0 * bits) % 8; /* within a byte: an address that fits no kernel but `bits` */
    move m = {.g = g, .bits = bits, .to = (char *)to + to0 * bits / 8, .from = (const char *)from + from0 * bits / 8, .to0 = to0, .from0 = from0};
    rl_move_plan p = rl_move_choose(l, bits, odd ? 1 : (uint64_t)(uintptr_t)m.to, odd ? 1 : (uint64_t)(uintptr_t)m.from);
    m.size = p.size;
    switch (p.kind) {
    case RL_MOVE_NOTHING: return RL_OK;
    case RL_MOVE_BYTES: return rl_gpu_copy(g, m.to, m.from, (size_t)(rl_loops_count(l) * size));
    case RL_MOVE_STRIDED: return rl_loops_parts(&p.loops, launch_strided, &m);
    case RL_MOVE_PACK: return launch_pack(&m, &p);
    case RL_MOVE_TILE: return launch_tile(&m, &p);
    case RL_MOVE_WEAVE: return launch_weave(&m, &p);
    case RL_MOVE_INTERLEAVE: return launch_interleave(&m, &p);
    case RL_MOVE_BITS: m.to = to, m.from = from; return rl_loops_parts(&p.loops, launch_bits, &m);
    }
    return RL_OK;
}

/* ---- several at once ---- */

/* The bytes at a time that kernel join takes the part by, and its loops then; 0: it does not. */
static uint32_t fits_join(const rl_gpu_part *part, uint32_t bits, rl_p_part *p) {
    int64_t size = bits / 8;
    rl_loops l = part->loops;
    *p = (rl_p_part){.to = (char *)part->to + part->to0 * size, .from = (const char *)part->from + part->from0 * size};
    uint64_t to = (uint64_t)(uintptr_t)p->to, from = (uint64_t)(uintptr_t)p->from;
    if (bits < 8 || rl_loops_count(&l) >= INT32_MAX) return 0;
    rl_move_kind kind = rl_move_choose(&l, bits, to, from).kind;
    if (kind != RL_MOVE_BYTES && kind != RL_MOVE_STRIDED) return 0;
    rl_loops_sort(&l), rl_loops_merge(&l);
    uint32_t wide = l.rank ? rl_loops_vector(&l, (uint32_t)size, to | from) : (uint32_t)size, lead = RL_JOINED_DIMS - l.rank;
    if (l.rank > RL_JOINED_DIMS) return 0;
    if (l.rank) rl_loops_widen(&l, wide / (uint32_t)size);
    for (uint32_t i = 0; i < RL_JOINED_DIMS; i++) {
        bool is = i >= lead;
        p->dim[i] = rl_divisor_of(is ? (uint32_t)l.dim[i - lead] : 1);
        for (uint32_t side = 0; side < 2; side++) p->step[side][i] = is ? l.step[side][i - lead] : 0;
    }
    p->count = (uint32_t)rl_loops_count(&l);
    return wide;
}

/* Leaves it empty. */
static rl_status launch_join(rl_gpu *g, uint32_t wide, rl_p_join *p) {
    uint32_t nblock = 0;
    if (!p->n) return RL_OK;
    for (uint32_t i = 0; i < p->n; i++) p->part[i].first = nblock, nblock += rl_gpu_blocks(p->part[i].count);
    rl_status s = rl_gpu_launch(g, rl_gpu_of_size(RL_GPU_join1, wide), nblock, p, sizeof *p);
    p->n = 0;
    return s;
}

rl_status rl_gpu_move_all(rl_gpu *g, uint32_t bits, uint32_t n, const rl_gpu_part *part) {
    rl_p_join join[5] = {0}; /* by 1, 2, 4, 8, 16 bytes */
    for (uint32_t i = 0; i < n; i++) {
        rl_p_part p;
        if (rl_loops_count(&part[i].loops) == 0) continue;
        uint32_t wide = fits_join(&part[i], bits, &p);
        if (!wide) {
            RL_TRY(rl_gpu_move(g, &part[i].loops, bits, part[i].to, part[i].to0, part[i].from, part[i].from0));
            continue;
        }
        rl_p_join *j = &join[__builtin_ctz(wide)];
        j->part[j->n++] = p;
        if (j->n == RL_MOST_JOINED) RL_TRY(launch_join(g, wide, j));
    }
    for (uint32_t k = 0; k < RL_LEN(join); k++) RL_TRY(launch_join(g, 1u << k, &join[k]));
    return RL_OK;
}

/* ---- fill ---- */

static rl_status launch_fill(void *arg, const rl_loops *l, uint32_t first, const int64_t *at) {
    const move *m = arg;
    rl_p_fill p = {.to = m->to + at[0] * m->size, .w = rl_walk_of(l, first)};
    for (uint32_t k = 0; k < 16; k += m->size) memcpy((char *)p.value + k, m->value, m->size);
    p.count = count_of(&p.w);
    return rl_gpu_launch(m->g, rl_gpu_of_size(RL_GPU_fill1, m->size), rl_gpu_blocks(p.count), &p, sizeof p);
}

/* Elements of a few bits: from one element, which lies on the device for that. */
static rl_status fill_bits(rl_gpu *g, const rl_loops *l, uint32_t bits, void *to, int64_t to0, const void *value) {
    rl_loops both = *l;
    void *one = rl_gpu_alloc(g, 16);
    if (!one) return RL_ENOMEM;
    both.noperand = 2;
    for (uint32_t i = 0; i < l->rank; i++) both.step[1][i] = 0;
    rl_status s = rl_gpu_put(g, one, value, 1);
    if (s == RL_OK) s = rl_gpu_move(g, &both, bits, to, to0, one, 0);
    if (s == RL_OK) s = rl_gpu_sync(g);
    rl_gpu_free(g, one, 16);
    return s;
}

rl_status rl_gpu_fill(rl_gpu *g, const rl_loops *l, uint32_t bits, void *to, int64_t to0, const void *value) {
    if (rl_loops_count(l) == 0) return RL_OK;
    if (bits < 8) return fill_bits(g, l, bits, to, to0, value);
    rl_loops sorted = *l;
    sorted.noperand = 1;
    rl_loops_sort(&sorted);
    rl_loops_merge(&sorted);
    move m = {.g = g, .size = bits / 8, .to = (char *)to + to0 * (bits / 8), .value = value};
    return rl_loops_parts(&sorted, launch_fill, &m);
}

/* ---- select ---- */

bool rl_select_as_bytes(rl_loops *l, rl_p_select *p, uint32_t bits) {
    int64_t per = 8 / bits, bad = p->from0 % per;
    uint32_t last = l->rank - 1;
    if (!l->rank || l->step[0][last] != 1 || l->step[1][last] != 1 || l->step[2][last] != 0 || l->dim[last] % per) return false;
    for (uint32_t i = 0; i < last; i++) bad |= l->step[0][i] % per | l->step[1][i] % per;
    for (uint32_t i = 0; i < p->n; i++) bad |= p->step[i] % per;
    if (bad) return false;
    rl_loops_widen(l, (uint32_t)per);
    for (uint32_t i = 0; i < p->n; i++) p->step[i] /= per;
    p->from = (const char *)p->from + p->from0 / per;
    p->from0 = 0;
    return true;
}

/* The widest element, up to 16 bytes, that copies whole vectors of the last dim; the loops and steps in its terms. */
static uint32_t widen_select(rl_loops *l, rl_p_select *p, uint32_t size) {
    uint32_t last = l->rank - 1;
    uint64_t address = (uint64_t)(uintptr_t)p->to | (uint64_t)(uintptr_t)p->from;
    if (!l->rank || l->step[2][last] != 0) return size;
    for (uint32_t i = 0; i < p->n; i++) address |= (uint64_t)(p->step[i] * (int64_t)size);
    uint32_t v = rl_loops_vector(l, size, address);
    rl_loops_widen(l, v / size);
    for (uint32_t i = 0; i < p->n; i++) p->step[i] /= (int64_t)(v / size);
    return v;
}

/* Gathers along the last dim, where whole vectors of that are written and every row has the same indices. */
static bool fits_pick(const rl_loops *l, const rl_p_select *p, uint32_t size) {
    uint32_t last = l->rank - 1;
    int64_t most = (p->dim[0] - 1) * p->step[0];
    uint64_t bad = (uint64_t)(uintptr_t)p->to;
    if (p->scatter || p->n != 1 || size >= 16 || !l->rank || l->step[0][last] != 1 || l->step[1][last] != 0 || l->step[2][last] != 1) return false;
    bad |= (uint64_t)(l->dim[last] * size);
    for (uint32_t i = 0; i < last; i++) {
        bad |= (uint64_t)(l->step[0][i] * (int64_t)size);
        if (l->step[2][i] != 0) return false;
    }
    return bad % 16 == 0 && most > INT32_MIN && most < INT32_MAX && p->dim[0] < INT32_MAX && l->rank <= RL_DIMS && rl_loops_count(l) < INT32_MAX;
}

static rl_status launch_pick(rl_gpu *g, const rl_loops *l, const rl_p_select *s, uint32_t size) {
    rl_loops rows = *l;
    rows.rank--, rows.noperand = 2;
    rl_p_pick p = {.to = s->to, .from = s->from, .index = s->index, .wide = s->wide, .rows = (uint32_t)rl_loops_count(&rows), .wrong = s->wrong, .node = s->node,
                   .across = rl_divisor_of((uint32_t)(l->dim[l->rank - 1] * size / 16)), .dim = (int32_t)s->dim[0], .step = (int32_t)s->step[0]};
    p.by_vector = !s->wide && size <= 4 && (uintptr_t)s->index % 16 == 0;
    p.count = (p.rows + RL_PER_THREAD - 1) / RL_PER_THREAD * p.across.d;
    p.w = rl_walk_of(&rows, 0);
    return rl_gpu_launch(g, rl_gpu_of_size(RL_GPU_pick1, size), rl_gpu_thread_blocks(p.count), &p, sizeof p);
}

rl_status rl_gpu_select(rl_gpu *g, const rl_loops *l, const rl_p_select *given, uint32_t size) {
    rl_p_select p = *given;
    rl_loops wide = *l;
    if (rl_loops_count(l) == 0) return RL_OK;
    if (fits_pick(l, &p, size)) return launch_pick(g, l, &p, size);
    size = widen_select(&wide, &p, size);
    p.count = (uint32_t)rl_loops_count(&wide);
    p.w = rl_walk_of(&wide, 0);
    return rl_gpu_launch(g, rl_gpu_of_size(RL_GPU_select1, size), rl_gpu_blocks(p.count), &p, sizeof p);
}
