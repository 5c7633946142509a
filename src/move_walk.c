/* The chunks of a move (move_kernel.h), and the kernels that every processor has. */
#include <string.h>

#include "move_kernel.h"

/* ---- blocks of X and Y ---- */

typedef struct { int64_t x0, nx, y0, ny; } patch; /* from x0, y0 on, nx by ny */

static patch block_of(const rl_move_plan *p, int64_t i) {
    int64_t x = p->stream ? i / p->py : i % p->px, y = p->stream ? i % p->py : i / p->px;
    int64_t x0 = x * p->tx, y0 = y * p->ty;
    return (patch){x0, x + 1 < p->px ? p->tx : p->lx - x0, y0, y + 1 < p->py ? p->ty : p->ly - y0};
}

typedef void line_fn(const rl_move_plan *p, int64_t to, int64_t from, int64_t n);

/* Calls fn for what lies along X. */
static void each_line(const rl_move_plan *p, int64_t to, int64_t from, int64_t first, int64_t count, line_fn *fn) {
    const rl_loop *x = &p->x[0], *y = &p->y[0];
    for (int64_t i = first; i < first + count; i++) {
        patch b = block_of(p, i);
        for (int64_t k = b.y0; k < b.y0 + b.ny; k++) fn(p, to + b.x0 * x->to + k * y->to, from + b.x0 * x->from + k * y->from, b.nx);
    }
}

/* ---- rows ---- */

static void copy_rows(const rl_move_plan *p, int64_t to, int64_t from, int64_t n) {
    p->k->rows(p->to + to, p->x[0].to, p->from + from, p->x[0].from, n, p->row, p->stream);
}

void rl_move_rows(const rl_move_plan *p, rl_tile *t, int64_t to, int64_t from, int64_t first, int64_t count) {
    (void)t;
    each_line(p, to, from, first, count, copy_rows);
}

static void fill(char *to, int64_t nbyte, const char *pattern) {
    for (; nbyte >= 64; nbyte -= 64, to += 64) memcpy(to, pattern, 64);
    if (nbyte) memcpy(to, pattern, (size_t)nbyte);
}

static void fill_rows(const rl_move_plan *p, int64_t to, int64_t from, int64_t n) {
    char pattern[64];
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; (i == 0 || p->x[0].from) && k < RL_MIN(64, p->row); k += p->size) memcpy(pattern + k, p->from + from + i * p->x[0].from, p->size);
        fill(p->to + to + i * p->x[0].to, p->row, pattern);
    }
}

void rl_move_fill(const rl_move_plan *p, rl_tile *t, int64_t to, int64_t from, int64_t first, int64_t count) {
    (void)t;
    each_line(p, to, from, first, count, fill_rows);
}

/* ---- tiles ---- */

/* Where elements first .. first+count-1 of these loops are, on one side. */
static void place(const rl_loop *l, uint32_t n, bool to_side, int64_t first, int64_t count, int64_t *at) {
    int64_t index[RL_NEST_LOOPS], step[RL_NEST_LOOPS], here = 0, left = first;
    index[0] = step[0] = 0;
    for (uint32_t i = 0; i < n; i++, left /= l[i - 1].n) {
        index[i] = left % l[i].n;
        step[i] = to_side ? l[i].to : l[i].from;
        here += index[i] * step[i];
    }
    for (;;) {
        int64_t run = RL_MIN(l[0].n - index[0], count);
        for (int64_t k = 0; k < run; k++) at[k] = here + k * step[0];
        at += run, count -= run;
        if (count == 0) return;
        here -= index[0] * step[0];
        index[0] = 0;
        for (uint32_t i = 1; i < n; i++) {
            here += step[i];
            if (++index[i] < l[i].n) break;
            index[i] = 0;
            here -= step[i] * l[i].n;
        }
    }
}

/* Places of elements first .. first+count-1, of all at once where that may be; *base: to be added to them. Those of one loop are alike from any
 * element on. */
static const int64_t *places_of(rl_places *p, const rl_loop *l, uint32_t n, int64_t all, bool to_side, int64_t first, int64_t count, int64_t *base) {
    *base = 0;
    if (n == 1) {
        *base = first * (to_side ? l->to : l->from);
        if (count > p->n) place(l, 1, to_side, p->n, count - p->n, p->at + p->n);
        p->n = RL_MAX(p->n, count);
        return p->at;
    }
    if (p->n == 0 || first < p->first || first + count > p->first + p->n) {
        p->first = all <= RL_TILE_MOST ? 0 : first, p->n = all <= RL_TILE_MOST ? all : count;
        place(l, n, to_side, p->first, p->n, p->at);
    }
    return p->at + (first - p->first);
}

/* How many of X go in one call: a strip, or all whole ones. */
static int64_t at_once(const rl_move_plan *p, const rl_strip *s, int64_t left) {
    return p->even && s->even && left > s->kx ? left - left % s->kx : s->kx;
}

/* Strips of nx by ny in all; fx: of their rows. */
static inline __attribute__((always_inline)) void turn_strip(const rl_move_plan *p, const rl_strip *s, char *to, const int64_t *ty,
                                                             const char *from, const int64_t *fx, int64_t nx, int64_t ny) {
    if (p->even && s->even) s->even(to + *ty, p->y[0].to, from + *fx, p->x[0].from, (uint32_t)RL_MAX(nx, s->kx), (uint32_t)ny);
    else s->fn(to, ty, from, fx, (uint32_t)nx, (uint32_t)ny);
}

/* What strips leave over along Y, at the end; the last one overlaps that before it. */
static void turn_rest(const rl_strip *s, uint32_t size, char *to, const int64_t *ty, const char *from, const int64_t *fx, const patch *b) {
    int64_t y = b->ny - s->ky;
    for (int64_t i = 0; i < b->nx; i += s->kx) {
        int64_t x = RL_MIN(i, b->nx - s->kx);
        s->fn(to + x * size, ty + y, from + y * size, fx + x, s->kx, s->ky);
    }
}

/* Strips at the far end are smaller, or overlap those before them, where there is room. */
static inline __attribute__((always_inline)) void turn(const rl_move_plan *p, char *to, const int64_t *ty, const char *from, const int64_t *fx,
                                                       const patch *b) {
    const rl_strip *s = p->strip;
    int64_t ny = p->rest_y ? b->ny - b->ny % s->ky : b->ny;
    for (int64_t i = 0, next; i < b->nx; i = next) {
        int64_t left = b->nx - i;
        if (p->rest_x && left <= p->rest_x->kx) s = p->rest_x;
        int64_t x = s->ky ? RL_MIN(i, b->nx - s->kx) : i, count = at_once(p, s, left), nx = RL_MIN(left, count);
        next = i + count;
        turn_strip(p, s, to + x * p->size, ty, from, fx + x, nx, ny);
    }
    if (ny < b->ny) turn_rest(p->rest_y, p->size, to, ty, from, fx, b);
}

/* All, or whole strips that are half of it or somewhat more. */
static int64_t part_of(int64_t n, int64_t most, int64_t strip) {
    return n <= most ? n : ((n + 1) / 2 + strip - 1) / strip * strip;
}

/* By way of a buffer, from which rows of `to` are written one after the other: lines of many rows at a time would drive each other out. A tile
 * that took what was left over goes in parts. */
static __attribute__((noinline)) void turn_apart(const rl_move_plan *p, char *to, const int64_t *ty, const char *from, const int64_t *fx,
                                                 const patch *b) {
    _Alignas(64) char buffer[RL_APART_ROWS * (RL_APART_ROW + 64)];
    int64_t at[RL_APART_ROWS], size = p->size, pitch = RL_APART_ROW + 64;
    int64_t nx = part_of(b->nx, RL_APART_ROW / size, RL_MAX(p->strip->kx, 1)), ny = part_of(b->ny, RL_APART_ROWS, RL_MAX(p->strip->ky, 1));
    for (int64_t j = 0; j < ny; j++) at[j] = j * pitch;
    for (int64_t y = 0; y < b->ny; y += ny)
        for (int64_t x = 0; x < b->nx; x += nx) {
            patch part = {0, RL_MIN(nx, b->nx - x), 0, RL_MIN(ny, b->ny - y)};
            turn(p, buffer, at, from + y * size, fx + x, &part);
            for (int64_t j = 0; j < part.ny; j++)
                p->k->rows(to + ty[y + j] + x * size, part.nx * size, buffer + at[j], pitch, 1, part.nx * size, false);
        }
}

void rl_move_tiles(const rl_move_plan *p, rl_tile *t, int64_t to, int64_t from, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i++) {
        patch b = block_of(p, i);
        int64_t x, y;
        const int64_t *fx = places_of(&t->fx, p->x, p->nx, p->lx, false, b.x0, b.nx, &x);
        const int64_t *ty = places_of(&t->ty, p->y, p->ny, p->ly, true, b.y0, b.ny, &y);
        char *at = p->to + to + y + b.x0 * p->size;
        const char *f = p->from + from + x + b.y0 * p->size;
        if (p->apart) turn_apart(p, at, ty, f, fx, &b);
        else turn(p, at, ty, f, fx, &b);
    }
}

/* ---- mixes ---- */

/* Rows of less than a line follow each other where they lie apart: they are mixed together, by way of a buffer for the side where they do
 * not. */
static void mix_short(const rl_move_plan *p, char *to, const char *from, int64_t count) {
    _Alignas(64) char buffer[8 << 10];
    const rl_mix_plan *m = p->mix;
    int64_t row = m->row * m->m.n, most = (int64_t)sizeof buffer / row, ts = p->inner.to, fs = p->inner.from;
    for (int64_t n; count > 0; count -= n, to += n * ts, from += n * fs) {
        n = RL_MIN(count, most);
        rl_mix_rows all = {.row = n * m->row, .rows = 1};
        if (!m->gather) p->k->rows(buffer, row, from, fs, n, row, false);
        p->k->mix(&m->m, m->gather ? buffer : to, &m->to, m->gather ? from : buffer, &m->from, &all);
        if (m->gather) p->k->rows(to, ts, buffer, row, n, row, false);
    }
}

/* From row `first` on. */
static void mix_rows(const rl_move_plan *p, char *to, const char *from, int64_t first, int64_t count) {
    const rl_mix_plan *m = p->mix;
    rl_mix_rows r = {.row = m->row, .rows = count, .to = p->inner.to, .from = p->inner.from};
    to += first * r.to, from += first * r.from;
    if (m->row < 64) mix_short(p, to, from, count);
    else p->k->mix(&m->m, to, &m->to, from, &m->from, &r);
}

/* Bytes first .. end-1 of the row on the side whose lines lie apart. */
static void mix_lines(const rl_move_plan *p, char *to, const char *from, int64_t first, int64_t end) {
    const rl_mix_plan *m = p->mix;
    int64_t n = m->m.n;
    rl_mix_rows r = {.row = end - first, .rows = 1, .stream = p->stream};
    p->k->mix(&m->m, to + first * (m->gather ? n : 1), &m->to, from + first * (m->gather ? 1 : n), &m->from, &r);
}

void rl_move_mixes(const rl_move_plan *p, rl_tile *t, int64_t to, int64_t from, int64_t first, int64_t count) {
    const rl_mix_plan *m = p->mix;
    int64_t lack = m->short_by, end = RL_MIN((first + count) * 64 - lack, m->row), start = RL_MAX(first * 64 - lack, 0);
    (void)t;
    if (!m->by_line) {
        mix_rows(p, p->to + to, p->from + from, first, count);
        return;
    }
    if (first == 0 && lack) {
        mix_lines(p, p->to + to, p->from + from, 0, RL_MIN(64 - lack, m->row));
        start = RL_MIN(64 - lack, m->row);
    }
    if (end > start) mix_lines(p, p->to + to, p->from + from, start, end);
}

/* ---- runs ---- */

#define STEPS(T) for (int64_t i = 0; i < n; i++) memcpy(to + i * ts, from + i * fs, sizeof(T))

/* Known sizes are one load and one store. */
static void copy_run(char *to, int64_t ts, const char *from, int64_t fs, int64_t n, uint32_t size) {
    switch (size) {
    case 1: STEPS(uint8_t); break;
    case 2: STEPS(uint16_t); break;
    case 4: STEPS(uint32_t); break;
    case 8: STEPS(uint64_t); break;
    default: STEPS(uint64_t[2]); break;
    }
}

static void run(const rl_move_plan *p, int64_t to, int64_t from, int64_t n) {
    const rl_nest *b = p->nest;
    int64_t ts = p->x[0].to, fs = p->x[0].from;
    if (p->size) copy_run(p->to + to, ts, p->from + from, fs, n, p->size);
    else if (b->convert) b->convert(b->how, p->to, b->to_at + to, ts, p->from, b->from_at + from, fs, n);
    else
        for (int64_t i = 0; i < n; i++)
            rl_set_bits(p->to, b->to_at + to + i * ts, b->bits, rl_get_bits(p->from, b->from_at + from + i * fs, b->bits));
}

void rl_move_runs(const rl_move_plan *p, rl_tile *t, int64_t to, int64_t from, int64_t first, int64_t count) {
    (void)t;
    each_line(p, to, from, first, count, run);
}

/* ---- processors ---- */

static void plain_rows(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t nbyte, bool stream) {
    (void)stream;
    for (int64_t i = 0; i < count; i++) memcpy(to + i * to_step, from + i * from_step, (size_t)nbyte);
}

const rl_move_kernels *rl_move_kernels_of(rl_isa want) {
    static const rl_move_kernels plain = {.isa = RL_ISA_PLAIN, .rows = plain_rows};
    const rl_move_kernels *k = want == RL_ISA_PLAIN ? NULL : rl_move_kernels_x86(want);
    return k ? k : &plain;
}

rl_isa rl_isa_here(rl_isa want) {
    return rl_move_kernels_of(want)->isa;
}
