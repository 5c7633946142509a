/* The chunks of a move (move_kernel.h), and the kernels that every processor has. */
#include <string.h>

#include "move_kernel.h"

/* ---- blocks of X and Y ---- */

static rl_patch block_of(const rl_move_plan *p, int64_t i) {
    int64_t across = (p->lx - 1) / p->tx + 1, down = (p->ly - 1) / p->ty + 1;
    int64_t x0 = (p->stream ? i / down : i % across) * p->tx, y0 = (p->stream ? i % down : i / across) * p->ty;
    return (rl_patch){x0, RL_MIN(p->tx, p->lx - x0), y0, RL_MIN(p->ty, p->ly - y0)};
}

typedef void line_fn(const rl_move_plan *p, int64_t to, int64_t from, int64_t n);

/* Calls fn for what lies along X. */
static void each_line(const rl_move_plan *p, int64_t to, int64_t from, int64_t first, int64_t count, line_fn *fn) {
    const rl_loop *x = &p->x[0], *y = &p->y[0];
    for (int64_t i = first; i < first + count; i++) {
        rl_patch b = block_of(p, i);
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
        for (uint32_t k = 0; k < sizeof pattern; k += p->size) memcpy(pattern + k, p->from + from + i * p->x[0].from, p->size);
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
    for (uint32_t i = 0; i < n; i++, left /= l[i - 1].n) {
        index[i] = left % l[i].n;
        step[i] = to_side ? l[i].to : l[i].from;
        here += index[i] * step[i];
    }
    for (int64_t k = 0; k < count; k++) {
        at[k] = here;
        for (uint32_t i = 0; i < n; i++) {
            here += step[i];
            if (++index[i] < l[i].n) break;
            index[i] = 0;
            here -= step[i] * l[i].n;
        }
    }
}

/* The rows that come after this block are asked for while it is turned. */
static void turn(const rl_move_plan *p, const rl_tile *t, char *to, const int64_t *ty, const char *from, rl_store how) {
    for (int64_t x = 0; x < t->b.nx; x += p->kx) {
        int64_t nx = RL_MIN(t->b.nx - x, (int64_t)p->kx), next = p->ahead ? RL_MIN(x + 2 * (int64_t)p->kx, t->b.nx) : 0;
        for (int64_t y = 0; y < t->b.ny; y += p->ky) {
            for (int64_t i = x + p->kx; i < next; i++) __builtin_prefetch(from + y * p->size + t->fx[i]);
            p->block(to + x * p->size, ty + y, from + y * p->size, t->fx + x, (uint32_t)nx, (uint32_t)RL_MIN(t->b.ny - y, (int64_t)p->ky), how);
        }
    }
}

/* Through a buffer that holds the rows of `to`: those that follow each other there are written as one. */
static void buffer_tile(const rl_move_plan *p, rl_tile *t, char *to, const char *from) {
    _Alignas(64) char buffer[RL_BUFFER];
    int64_t row = t->b.nx * p->size;
    for (int64_t y = row == t->row ? t->nrow : 0; y < t->b.ny; y++) t->at[y] = y * row;
    t->nrow = row == t->row ? RL_MAX(t->nrow, t->b.ny) : t->b.ny;
    t->row = row;
    turn(p, t, buffer, t->at, from, t->b.nx == p->kx ? RL_TOGETHER : RL_APART);
    for (int64_t y = 0, n; y < t->b.ny; y += n) {
        for (n = 1; y + n < t->b.ny && t->ty[y + n] == t->ty[y + n - 1] + row;) n++;
        char *line = to + t->ty[y];
        bool whole = ((uintptr_t)line | (uintptr_t)(n * row)) % 64 == 0;
        p->k->rows(line, 0, buffer + y * row, 0, 1, n * row, p->stream && (whole || n * row >= 256));
    }
}

void rl_move_tiles(const rl_move_plan *p, rl_tile *t, int64_t to, int64_t from, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i++) {
        rl_patch b = block_of(p, i);
        if (b.x0 != t->b.x0) place(p->x, p->nx, false, b.x0, b.nx, t->fx);
        if (b.y0 != t->b.y0) place(p->y, p->ny, true, b.y0, b.ny, t->ty);
        t->b = b;
        char *out = p->to + to + b.x0 * p->size;
        const char *in = p->from + from + b.y0 * p->size;
        if (p->direct) turn(p, t, out, t->ty, in, p->store);
        else buffer_tile(p, t, out, in);
    }
}

/* ---- mixes ---- */

void rl_mix_make(rl_mix *m, uint32_t n, uint32_t size, bool gather) {
    m->n = n;
    memset(m->take, 0, sizeof m->take);
    for (uint32_t j = 0; j < n; j++) {
        memset(m->byte[j], 0, n * sizeof *m->byte[j]);
        for (uint32_t b = 0; b < 64; b++) {
            uint32_t k = (gather ? j * 64 + b : b) / size, in, at; /* the element in its line(s) */
            if (gather) in = k % n, at = k / n * size + b % size;
            else in = (k * n + j) * size / 64, at = (k * n + j) * size % 64 + b % size;
            m->take[j][in] |= (uint64_t)1 << b;
            m->byte[j][in][b] = (uint8_t)at;
        }
    }
}

static void mix(const rl_mix_plan *m, const rl_move_kernels *k, char *to, const char *from, int64_t nbyte, bool stream) {
    k->mix(&m->m, to, &m->to, from, &m->from, nbyte / 64, nbyte % 64, stream);
}

/* Rows that are short one by one follow each other where they lie apart: they are mixed together, by way of a buffer for the side
 * where they do not. */
static void mix_rows(const rl_move_plan *p, char *to, const char *from, int64_t count) {
    _Alignas(64) char buffer[RL_BUFFER];
    const rl_mix_plan *m = p->mix;
    int64_t row = m->row * m->m.n, most = RL_BUFFER / row, ts = p->inner.to, fs = p->inner.from;
    for (int64_t n; count > 0; count -= n, to += n * ts, from += n * fs) {
        n = RL_MIN(count, most);
        if (m->gather) {
            mix(m, p->k, buffer, from, n * m->row, false);
            p->k->rows(to, ts, buffer, row, n, row, false);
        } else {
            p->k->rows(buffer, row, from, fs, n, row, false);
            mix(m, p->k, to, buffer, n * m->row, false);
        }
    }
}

void rl_move_mixes(const rl_move_plan *p, rl_tile *t, int64_t to, int64_t from, int64_t first, int64_t count) {
    const rl_mix_plan *m = p->mix;
    (void)t;
    if (!m->by_line) mix_rows(p, p->to + to + first * p->inner.to, p->from + from + first * p->inner.from, count);
    else mix(m, p->k, p->to + to + first * m->to.step, p->from + from + first * m->from.step, RL_MIN(count * 64, m->row - first * 64), p->stream);
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
