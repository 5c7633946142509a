/* The plan of a move: see move.h for the steps. */
#include "move.h"

#include <stddef.h>
#include <string.h>

#include "move_kernel.h"

enum {
    STREAM = 6 << 20,  /* bytes from which on what is written goes past the cache: it would drive out more than it finds again */
    BLOCK = 4 << 10,   /* bytes of a block, where whole rows are copied, along each of its sides */
    LARGE = 512 << 10, /* bytes from which on lines 1024 bytes apart drive each other out, and are better written whole */
    LINE = 64,
    PIECE = 64 << 10   /* bytes that are worth another thread */
};

/* ---- loops ---- */

static bool is_nothing(const rl_nest *b) {
    for (uint32_t i = 0; i < b->n; i++)
        if (b->loop[i].n == 0) return true;
    return false;
}

/* Outermost: the largest step on the `to` side. */
static void insert(rl_loop *l, uint32_t n, rl_loop x) {
    for (; n && l[n - 1].to < x.to; n--) l[n] = l[n - 1];
    l[n] = x;
}

static uint32_t merge(rl_loop *l, uint32_t n) {
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool joins = m && l[m - 1].to == l[i].to * l[i].n && l[m - 1].from == l[i].from * l[i].n;
        if (joins) l[m - 1] = (rl_loop){l[m - 1].n * l[i].n, l[i].to, l[i].from};
        else l[m++] = l[i];
    }
    return m;
}

/* In b: loops as the kernels want them. */
static void straighten(rl_nest *b) {
    rl_loop in[RL_NEST_LOOPS];
    uint32_t n = 0;
    memcpy(in, b->loop, b->n * sizeof *in);
    for (uint32_t i = 0; i < b->n; i++) {
        rl_loop x = in[i];
        if (x.n == 1) continue;
        if (x.to < 0) {
            b->to_at += (x.n - 1) * x.to;
            b->from_at += (x.n - 1) * x.from;
            x = (rl_loop){x.n, -x.to, -x.from};
        }
        insert(b->loop, n++, x);
    }
    b->n = merge(b->loop, n);
}

/* Elements smaller than a byte, where they come and go in whole bytes. */
static void widen_bits(rl_nest *b) {
    if (b->bits == 0 || b->bits >= 8 || b->n == 0) return;
    uint32_t per = 8 / b->bits;
    rl_loop *last = &b->loop[b->n - 1];
    int64_t odd = last->n | b->to_at | b->from_at;
    for (uint32_t i = 0; i + 1 < b->n; i++) odd |= b->loop[i].to | b->loop[i].from;
    if (last->to != 1 || last->from != 1 || odd % per) return;
    last->n /= per, b->to_at /= per, b->from_at /= per;
    for (uint32_t i = 0; i + 1 < b->n; i++) b->loop[i].to /= per, b->loop[i].from /= per;
    b->bits = 8;
}

/* ---- plans ---- */

static int64_t magnitude(int64_t x) {
    return x < 0 ? -x : x;
}

/* Takes loop i of the plan's away. */
static rl_loop take(rl_move_plan *p, uint32_t i) {
    rl_loop x = p->loop[i];
    memmove(&p->loop[i], &p->loop[i + 1], (--p->n - i) * sizeof x);
    return x;
}

/* The innermost loop, and the one that has the least step on the other side: blocks of both stay in the cache. size: bytes of an
 * index of both. */
static void plan_blocks(rl_move_plan *p, int64_t size) {
    uint32_t least = p->n ? p->n - 1 : 0;
    rl_loop x = {1, 0, 0}, y = {1, 0, 0};
    for (uint32_t i = p->n; i-- > 0;)
        if (p->loop[i].from && magnitude(p->loop[i].from) < magnitude(p->loop[least].from)) least = i;
    if (p->n && p->loop[p->n - 1].from == 0) least = p->n - 1;
    if (p->n && least != p->n - 1) y = take(p, least);
    if (p->n) x = take(p, p->n - 1);
    p->nx = p->ny = 1;
    p->x[0] = x, p->y[0] = y;
    p->lx = x.n, p->ly = y.n;
    p->tx = RL_MAX(y.n > 1 ? BLOCK / size : PIECE / size, 1);
    p->ty = p->tx;
}

static void plan_rows(rl_move_plan *p, bool fill) {
    rl_loop last = p->n ? take(p, p->n - 1) : (rl_loop){1, 0, 0};
    p->row = last.n * p->size;
    p->chunk = fill ? rl_move_fill : rl_move_rows;
    plan_blocks(p, p->row);
}

static void plan_runs(rl_move_plan *p) {
    p->chunk = rl_move_runs;
    plan_blocks(p, p->size ? p->size : 1);
    if (p->ly > 1) p->tx = p->ty = LINE / 2;
}

/* The loop that continues a run of len bytes on one side, or -1. */
static int find(const rl_move_plan *p, bool to_side, int64_t len) {
    for (uint32_t i = p->n; i-- > 0;)
        if ((to_side ? p->loop[i].to : p->loop[i].from) == len) return (int)i;
    return -1;
}

/* X and Y: loops that lie side by side there; the shorter takes first. False, and no loop is taken, where one is empty. */
static bool split(rl_move_plan *p) {
    int x = find(p, true, p->size), y = find(p, false, p->size);
    if (x < 0 || y < 0 || x == y) return false;
    p->x[p->nx++] = p->loop[x], p->y[p->ny++] = p->loop[y];
    p->lx = p->loop[x].n, p->ly = p->loop[y].n;
    take(p, (uint32_t)RL_MAX(x, y));
    take(p, (uint32_t)RL_MIN(x, y));
    for (;;) {
        bool to_x = p->lx <= p->ly;
        int i = find(p, to_x, (to_x ? p->lx : p->ly) * p->size);
        if (i < 0) to_x = !to_x, i = find(p, to_x, (to_x ? p->lx : p->ly) * p->size);
        if (i < 0) return true;
        rl_loop l = take(p, (uint32_t)i);
        if (to_x) p->x[p->nx++] = l, p->lx *= l.n;
        else p->y[p->ny++] = l, p->ly *= l.n;
    }
}

static rl_mix_lines lines_apart(const rl_loop *l, uint32_t n, bool to_side) {
    rl_mix_lines r = {.step = LINE};
    int64_t count = 1;
    for (uint32_t i = 0; i < n; count *= l[i++].n)
        for (int64_t k = 0; k < count * l[i].n; k++) r.at[k] = r.at[k % count] + k / count * (to_side ? l[i].to : l[i].from);
    return r;
}

static rl_mix_lines lines_together(uint32_t n) {
    rl_mix_lines r = {.step = n * LINE, .whole = true};
    for (uint32_t i = 0; i < n; i++) r.at[i] = (int64_t)i * LINE;
    return r;
}

/* Few elements in a row on one side, and rows that follow each other. */
static bool plan_mix(rl_move_plan *p, rl_mix_plan *m) {
    int64_t size = p->size;
    bool gather = p->lx <= RL_MIX && p->lx * size < LINE && p->y[0].to == p->lx * size;
    bool scatter = p->ly <= RL_MIX && p->ly * size < LINE && p->x[0].from == p->ly * size;
    if (!p->k->mix || (!gather && !scatter)) return false;
    rl_loop *rest = gather ? p->y : p->x;
    uint32_t n = (uint32_t)(gather ? p->lx : p->ly), nrest = gather ? p->ny : p->nx;
    rl_mix_make(&m->m, n, p->size, gather);
    m->to = gather ? lines_together(n) : lines_apart(p->y, p->ny, true);
    m->from = gather ? lines_apart(p->x, p->nx, false) : lines_together(n);
    for (uint32_t i = 2; i < nrest; i++) insert(p->loop, p->n++, rest[i]);
    m->gather = gather;
    m->row = rest[0].n * size;
    m->by_line = nrest == 1 || m->row * n > RL_BUFFER / 4;
    if (m->by_line && nrest > 1) insert(p->loop, p->n++, rest[1]);
    p->inner = m->by_line ? (rl_loop){(m->row + LINE - 1) / LINE, 0, 0} : rest[1];
    p->bytes = (m->by_line ? LINE : m->row) * n;
    p->ny = 0;
    p->mix = m;
    p->chunk = rl_move_mixes;
    return true;
}

static void plan_tiles(rl_move_plan *p) {
    uint32_t i = (uint32_t)__builtin_ctz(p->size);
    bool wide = i < RL_LEN(p->k->wide) && p->k->wide[i].fn && p->ly * p->size < LINE && p->lx * p->size >= LINE;
    p->block = wide ? p->k->wide[i].fn : p->k->block[i].fn;
    p->kx = wide ? p->k->wide[i].kx : p->k->block[i].kx;
    p->ky = wide ? p->k->wide[i].ky : p->k->block[i].ky;
    bool together = p->lx == p->kx && p->y[0].to == p->lx * p->size && p->y[0].n % p->ky == 0;
    p->direct = wide || together || p->size >= 4;
    p->store = together ? RL_TOGETHER : RL_APART;
    p->chunk = rl_move_tiles;
}

/* Tiles as large as the buffer lets them be: the more bytes of a page are used at a time, the fewer pages are looked up. */
static void size_tiles(rl_move_plan *p) {
    int64_t size = p->size, most = p->direct ? INT64_MAX : RL_BUFFER / size;
    p->tx = RL_MIN(p->lx, RL_MIN(RL_TILE_MOST, RL_MAX((p->direct ? 1024 : 512) / size, p->kx)));
    p->ty = RL_MIN(p->ly, RL_MIN(RL_TILE_MOST, most / p->tx));
    if (p->ty < p->ly) p->ty = RL_MAX(p->ty * size / LINE, 1) * LINE / size;
}

static void count_tiles(rl_move_plan *p) {
    p->inner = (rl_loop){((p->lx - 1) / p->tx + 1) * ((p->ly - 1) / p->ty + 1), 0, 0};
    p->bytes = RL_MIN(p->tx, p->lx) * RL_MIN(p->ty, p->ly) * (p->row ? p->row : p->size ? p->size : 1);
}

/* All rows of `to` begin with a line, and end with one. */
static bool is_aligned(const rl_move_plan *p) {
    uintptr_t all = (uintptr_t)p->to | (uintptr_t)p->inner.to;
    for (uint32_t i = 0; i < p->n; i++) all |= (uintptr_t)p->loop[i].to;
    for (uint32_t i = 0; i < p->ny; i++) all |= (uintptr_t)p->y[i].to;
    if (p->row) all |= (uintptr_t)p->row | (uintptr_t)p->x[0].to;
    else if (p->nx) all |= (uintptr_t)(p->lx * p->size);
    return all % LINE == 0;
}

static void choose(rl_move_plan *p, rl_mix_plan *m) {
    const rl_loop *last = p->n ? &p->loop[p->n - 1] : NULL;
    int64_t size = p->size;
    if (size && (!last || (last->to == size && last->from == size))) plan_rows(p, false);
    else if (size && last->to == size && last->from == 0) plan_rows(p, true);
    else if (!size || !p->k->block[__builtin_ctz(p->size)].fn || !split(p)) plan_runs(p);
    else if (!plan_mix(p, m)) plan_tiles(p);
}

/* What is written past the cache must be whole lines, but for long rows, whose ends are not. */
/* Reading straight on is what counts where writing goes past the cache: the loops are sorted by the `from` side, too. */
static void read_straight(rl_move_plan *p) {
    if (p->chunk == rl_move_rows) {
        insert(p->loop, p->n++, p->x[0]);
        insert(p->loop, p->n++, p->y[0]);
    }
    for (uint32_t i = 1; i < p->n; i++)
        for (uint32_t k = i; k && magnitude(p->loop[k - 1].from) < magnitude(p->loop[k].from); k--) {
            rl_loop x = p->loop[k];
            p->loop[k] = p->loop[k - 1], p->loop[k - 1] = x;
        }
    if (p->chunk == rl_move_rows) {
        while (p->n > 1 && p->loop[p->n - 1].n == 1) p->n--;
        p->x[0] = take(p, p->n - 1);
        p->y[0] = (rl_loop){1, 0, 0};
        p->lx = p->x[0].n, p->ly = 1;
        p->tx = RL_MAX(PIECE / p->row, 1);
    }
}

static void choose_stream(rl_move_plan *p, int64_t bytes) {
    bool aligned = is_aligned(p);
    p->stream = p->size && p->k->fence && bytes >= STREAM;
    if (p->chunk == rl_move_rows) p->stream = p->stream && (aligned || p->row >= 4 * LINE);
    if (p->chunk == rl_move_mixes) p->stream = p->stream && p->mix->by_line && aligned;
    if (p->stream) read_straight(p);
    if (p->chunk != rl_move_tiles) return;
    if (p->stream) {
        p->direct = p->direct && aligned && p->k->isa == RL_ISA_AVX512 && p->store != RL_TOGETHER;
        p->store = RL_STREAM;
    } else if (bytes >= LARGE) p->direct = p->direct && p->y[0].to % 1024;
    p->ahead = p->stream;

}

/* Loops in bytes, and a run of 2, 4, 8 or 16 bytes as one element. */
static void to_bytes(rl_move_plan *p) {
    p->size = p->nest->bits / 8;
    p->to += p->nest->to_at * p->size;
    p->from += p->nest->from_at * p->size;
    for (uint32_t i = 0; i < p->n; i++) p->loop[i].to *= p->size, p->loop[i].from *= p->size;
    if (p->n == 0) return;
    const rl_loop *last = &p->loop[p->n - 1];
    int64_t row = last->n * p->size;
    if (last->to == p->size && last->from == p->size && row <= 16 && (row & (row - 1)) == 0) {
        p->size = (uint32_t)row;
        p->n--;
    }
}

/* ---- a move ---- */

static void walk(void *arg, int64_t first, int64_t end) {
    const rl_move_plan *p = arg;
    rl_tile t;
    int64_t index[RL_NEST_LOOPS] = {0}, to = 0, from = 0, left = first / p->inner.n, at = first % p->inner.n;
    for (uint32_t i = p->n; i-- > 0; left /= p->loop[i].n) {
        index[i] = left % p->loop[i].n;
        to += index[i] * p->loop[i].to;
        from += index[i] * p->loop[i].from;
    }
    t.b = (rl_patch){-1, 0, -1, 0};
    t.row = t.nrow = 0;
    while (first < end) {
        int64_t count = RL_MIN(p->inner.n - at, end - first);
        p->chunk(p, &t, to, from, at, count);
        first += count;
        at = 0;
        for (uint32_t i = p->n; i-- > 0;) {
            to += p->loop[i].to, from += p->loop[i].from;
            if (++index[i] < p->loop[i].n) break;
            index[i] = 0;
            to -= p->loop[i].to * p->loop[i].n, from -= p->loop[i].from * p->loop[i].n;
        }
    }
    if (p->stream) p->k->fence();
}

/* One run of bytes needs no plan. */
static bool is_plain(const rl_nest *b) {
    if (b->convert || b->bits < 8 || b->n > 1) return false;
    return b->n == 0 || (b->loop[0].to == 1 && b->loop[0].from == 1 && b->loop[0].n * b->bits / 8 < PIECE);
}

static void copy_plain(const rl_nest *b) {
    int64_t size = b->bits / 8;
    memcpy((char *)b->to + b->to_at * size, (const char *)b->from + b->from_at * size, (size_t)((b->n ? b->loop[0].n : 1) * size));
}

static void start(rl_move_plan *p, const rl_nest *b) {
    p->k = rl_move_kernels_of(b->isa);
    p->nest = b;
    p->to = b->to;
    p->from = b->from;
    p->size = 0;
    p->n = b->n;
    memcpy(p->loop, b->loop, b->n * sizeof *p->loop);
    p->row = 0;
    p->nx = p->ny = 0;
    p->inner = (rl_loop){1, 0, 0};
    p->mix = NULL;
    if (!b->convert && b->bits >= 8) to_bytes(p);
}

void rl_nest_move(const rl_nest *given, const rl_threads *threads) {
    rl_nest b;
    rl_mix_plan m;
    rl_move_plan p;
    int64_t total = 1, units;
    if (is_nothing(given)) return;
    memcpy(&b, given, offsetof(rl_nest, loop) + given->n * sizeof *b.loop);
    straighten(&b);
    if (!b.convert) widen_bits(&b);
    if (is_plain(&b)) {
        copy_plain(&b);
        return;
    }
    for (uint32_t i = 0; i < b.n; i++) total *= b.loop[i].n;
    start(&p, &b);
    choose(&p, &m);
    choose_stream(&p, total * b.bits / 8);
    if (p.chunk == rl_move_tiles) size_tiles(&p);
    if (p.chunk != rl_move_mixes) count_tiles(&p);
    units = p.inner.n;
    for (uint32_t i = 0; i < p.n; i++) units *= p.loop[i].n;
    if (!threads || b.bits < 8) walk(&p, 0, units); /* two small elements may share a byte */
    else threads->run(threads->pool, units, RL_MAX(1, PIECE / RL_MAX(p.bytes, 1)), walk, &p);
}
