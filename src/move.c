/* The plan of a move: see move.h for the steps. */
#include "move.h"

#include <stddef.h>
#include <string.h>

#include "move_kernel.h"

enum {
    STREAM = 6 << 20,  /* bytes from which on what is written goes past the cache: it would drive out more than it finds again */
    BOXED = 8 << 20,   /* the same, where that takes a buffer between */
    BLOCK = 4 << 10,   /* bytes of a block, where whole rows are copied, along each of its sides */
    TILE = 16 << 10,   /* bytes of a tile, and of its rows on the `to` side */
    TILE_ROW = 256,
    FIRST = 32 << 10,  /* bytes of a box that the first cache holds */
    STRIP = 2 << 10,   /* bytes that are moved before something is done beside them */
    LINE = 64,
    FEW = 8,           /* repeats that are less are made one after the other, each of all that lies along the next loop */
    ROWS = 64,         /* the most rows of a tile whose lines might share a place in the first cache: */
    WAY = 4 << 10, WAYS = 8, /* so many bytes apart; it holds so many of them, and some more */
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

void rl_nest_straighten(rl_nest *b) {
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
        if (p->loop[i].from && rl_magnitude(p->loop[i].from) < rl_magnitude(p->loop[least].from)) least = i;
    if (p->n && p->loop[p->n - 1].from == 0) least = p->n - 1;
    bool few = p->n > 1 && p->loop[p->n - 1].from == 0 && p->loop[p->n - 1].n < FEW && p->loop[p->n - 2].n >= FEW;
    if (few) y = take(p, p->n - 1);
    else if (p->n && least != p->n - 1) y = take(p, least);
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
    if (p->boxed) p->tx = RL_MAX(STRIP / p->row, 1), p->ty = 1;
    else if (p->row >= LINE) p->tx = p->ty = RL_MAX(PIECE / p->row, 1); /* whole lines need no blocks */
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
    int64_t most = size == 1 ? RL_MIX : RL_MIX_LARGE;
    bool gather = p->lx <= most && p->lx * size < LINE && p->y[0].to == p->lx * size;
    bool scatter = p->ly <= most && p->ly * size < LINE && p->x[0].from == p->ly * size;
    if (!p->k->mix || (!gather && !scatter)) return false;
    rl_loop *rest = gather ? p->y : p->x;
    uint32_t n = (uint32_t)(gather ? p->lx : p->ly), nrest = gather ? p->ny : p->nx;
    rl_mix_make(&m->m, n, p->size, gather);
    m->to = gather ? lines_together(n) : lines_apart(p->y, p->ny, true);
    m->from = gather ? lines_apart(p->x, p->nx, false) : lines_together(n);
    for (uint32_t i = 2; i < nrest; i++) insert(p->loop, p->n++, rest[i]);
    m->gather = gather;
    m->row = rest[0].n * size;
    m->short_by = 0;
    m->by_line = nrest == 1 || m->row * n > PIECE / 2;
    if (m->by_line && nrest > 1) insert(p->loop, p->n++, rest[1]);
    p->inner = m->by_line ? (rl_loop){(m->row + LINE - 1) / LINE, 0, 0} : rest[1];
    p->bytes = (m->by_line ? LINE : m->row) * n;
    p->ny = 0;
    p->mix = m;
    p->chunk = rl_move_mixes;
    return true;
}

/* How many rows that lie such steps apart the first cache holds a line of, or two where they begin anywhere, with room for others: ROWS where
 * all. */
static int64_t rows_held(int64_t step) {
    uint8_t held[WAY / LINE + 1] = {0};
    bool near = false, two = step % LINE;
    for (int64_t i = 1; i <= ROWS / WAYS; i++) near |= ((i * step + LINE - 1) & (WAY - 1)) < 2 * LINE - 1;
    for (int64_t i = 0; near && i < ROWS; i++) {
        int64_t at = (i * step & (WAY - 1)) / LINE;
        if (held[at]++ == WAYS || (two && held[at + 1]++ == WAYS)) return i;
    }
    return ROWS;
}

/* Rows whose lines share so few places in the first cache that they drive each other out. */
static bool rows_meet(const rl_loop *l, bool to_side) {
    return l->n > 1 && rows_held(to_side ? l->to : l->from) < ROWS;
}

static const rl_strip *choose_strip(const rl_move_plan *p) {
    const rl_strip *s = p->k->strip[__builtin_ctz(p->size)];
    bool meet = rows_meet(&p->x[0], false) || rows_meet(&p->y[0], true);
    while (s->ky && (p->lx < s->kx || p->ly < s->ky || (s->lines && !meet))) s++;
    return s;
}

/* The least that is as large as what the chosen one leaves over along X, or Y. */
static const rl_strip *choose_rest(const rl_move_plan *p, bool along_x) {
    const rl_strip *best = NULL;
    int64_t least = along_x ? p->strip->kx : p->strip->ky, left = p->strip->ky ? (along_x ? p->lx : p->ly) % least : 0;
    for (const rl_strip *s = p->k->strip[__builtin_ctz(p->size)]; left && s->ky; s++) {
        int64_t k = along_x ? s->kx : s->ky;
        if (s->lines || s->kx > p->lx || s->ky > p->ly || k < left || k >= least) continue;
        best = s, least = k;
    }
    return best;
}

/* Whole strips, as long as a tile has room for. A box that the first cache does not hold writes whole lines: it would lose them half written.
 * (Elements of 1 and 2 bytes gain nothing by it below 64 MiB.) */
static void cut_tiles(rl_move_plan *p) {
    int64_t size = p->size, whole = size > 2 && p->lx * p->ly * size > FIRST ? LINE / size : 0;
    p->tx = RL_MIN(p->lx, RL_MAX(RL_MAX(TILE_ROW / size, p->strip->kx), TILE / size / p->ly));
    if (p->boxed) p->tx = RL_MIN(p->lx, RL_MAX(RL_MAX(p->strip->kx, p->rest_y ? p->rest_y->kx : 0), RL_MAX(whole, STRIP / size / p->ly)));
    p->tx = RL_MIN(p->tx, RL_TILE_MOST / 2);
    if (p->tx < p->lx) p->tx -= p->tx % p->strip->kx;
    p->ty = RL_MIN(RL_MIN(p->ly, RL_MAX((p->boxed ? STRIP : TILE) / size / p->tx, p->strip->ky)), RL_TILE_MOST / 2);
    if (p->ty < p->ly && p->strip->ky) p->ty -= p->ty % p->strip->ky;
}

/* Rows of `to` that drive each other out: fewer of them in a tile, or by way of a buffer. (Elements of 1 byte gain nothing by it.) */
static void cut_meeting(rl_move_plan *p) {
    int64_t size = p->size, held = rows_held(p->y[0].to), ky = p->strip->ky;
    if (p->boxed || held == ROWS || p->ty <= held || size == 1 || p->lx * p->ly * size <= FIRST || !ky) return;
    p->apart = size > 2 && held < 2 * WAYS;
    p->even = p->even && !p->apart;
    p->tx = RL_MIN(p->lx, (p->apart ? RL_APART_ROW : size == 2 ? 4 * TILE_ROW : TILE_ROW) / size);
    p->ty = RL_MIN(p->ly, p->apart ? RL_MIN(TILE_ROW / size, RL_APART_ROWS) : RL_MAX(held - held % ky, ky));
}

static void plan_tiles(rl_move_plan *p) {
    p->even = p->nx == 1 && p->ny == 1;
    p->strip = choose_strip(p);
    p->rest_x = choose_rest(p, true), p->rest_y = choose_rest(p, false);
    cut_tiles(p);
    cut_meeting(p);
    p->chunk = rl_move_tiles;
}

static void count_tiles(rl_move_plan *p) {
    p->px = RL_MAX(p->lx / p->tx, 1), p->py = RL_MAX(p->ly / p->ty, 1);
    p->inner = (rl_loop){p->px * p->py, 0, 0};
    p->bytes = RL_MIN(p->tx, p->lx) * RL_MIN(p->ty, p->ly) * (p->row ? p->row : p->size ? p->size : 1);
}

/* How far in a line all rows of `to` begin, and end; -1: not all are alike. */
static int64_t odd_by(const rl_move_plan *p) {
    uintptr_t all = (uintptr_t)p->inner.to;
    for (uint32_t i = 0; i < p->n; i++) all |= (uintptr_t)p->loop[i].to;
    for (uint32_t i = 0; i < p->ny; i++) all |= (uintptr_t)p->y[i].to;
    if (p->row) all |= (uintptr_t)p->row | (uintptr_t)p->x[0].to;
    if (p->mix)
        for (uint32_t i = 0; i < p->mix->m.n; i++) all |= (uintptr_t)p->mix->to.at[i];
    return all % LINE ? -1 : (int64_t)((uintptr_t)p->to % LINE);
}

/* The first line of a mix is as short as the others on the `to` side need it to be. False: they cannot be whole. */
static bool align_mix(rl_move_plan *p) {
    rl_mix_plan *m = p->mix;
    int64_t odd = odd_by(p), n = m->gather ? m->m.n : 1;
    if (!m->by_line || odd < 0) return false;
    for (int64_t first = 0; first < LINE; first += p->size) {
        if ((odd + n * first) % LINE) continue;
        m->short_by = first ? LINE - first : 0;
        p->inner.n = (m->row + m->short_by + LINE - 1) / LINE;
        return true;
    }
    return false;
}

static void choose(rl_move_plan *p, rl_mix_plan *m) {
    const rl_loop *last = p->n ? &p->loop[p->n - 1] : NULL;
    int64_t size = p->size;
    if (size && (!last || (last->to == size && last->from == size))) plan_rows(p, false);
    else if (size && last->to == size && last->from == 0) plan_rows(p, true);
    else if (!size || !p->k->strip[__builtin_ctz(p->size)]->fn || !split(p)) plan_runs(p);
    else if (!plan_mix(p, m)) plan_tiles(p);
}

/* Reading straight on is what counts where writing goes past the cache: the loops are sorted by the `from` side, too. */
static void read_straight(rl_move_plan *p) {
    if (p->chunk == rl_move_rows) {
        insert(p->loop, p->n++, p->x[0]);
        insert(p->loop, p->n++, p->y[0]);
    }
    for (uint32_t i = 1; i < p->n; i++)
        for (uint32_t k = i; k && rl_magnitude(p->loop[k - 1].from) < rl_magnitude(p->loop[k].from); k--) {
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

/* Rows, and lines of mixes, that go past the cache as they are. */
static void choose_stream(rl_move_plan *p) {
    if (p->chunk == rl_move_rows) p->stream = odd_by(p) == 0 || p->row >= 4 * LINE;
    if (p->chunk == rl_move_mixes) p->stream = align_mix(p);
    if (!p->stream) return;
    read_straight(p);
    if (p->chunk == rl_move_rows) count_tiles(p);
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

int64_t rl_move_units(const rl_move_plan *p) {
    int64_t n = p->inner.n;
    for (uint32_t i = 0; i < p->n; i++) n *= p->loop[i].n;
    return n;
}

void rl_move_walk(const rl_move_plan *p, rl_tile *t, int64_t first, int64_t end) {
    int64_t index[RL_NEST_LOOPS], to = 0, from = 0, left = first / p->inner.n, at = first % p->inner.n;
    int64_t most = t->beside ? RL_MAX(STRIP / p->bytes, 1) : end;
    for (uint32_t i = p->n; i-- > 0; left /= p->loop[i].n) {
        index[i] = left % p->loop[i].n;
        to += index[i] * p->loop[i].to;
        from += index[i] * p->loop[i].from;
    }
    while (first < end) {
        int64_t count = RL_MIN(RL_MIN(p->inner.n - at, end - first), most);
        p->chunk(p, t, to, from, at, count);
        if (t->beside) rl_beside_do(t->beside, count * p->bytes);
        first += count;
        at += count;
        if (at < p->inner.n) continue;
        at = 0;
        for (uint32_t i = p->n; i-- > 0;) {
            to += p->loop[i].to, from += p->loop[i].from;
            if (++index[i] < p->loop[i].n) break;
            index[i] = 0;
            to -= p->loop[i].to * p->loop[i].n, from -= p->loop[i].from * p->loop[i].n;
        }
    }
}

static void walk(void *arg, int64_t first, int64_t end) {
    const rl_move_plan *p = arg;
    rl_tile t;
    rl_tile_clear(&t);
    rl_move_walk(p, &t, first, end);
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

static void start(rl_move_plan *p, const rl_nest *b, const rl_move_kernels *k, bool boxed) {
    p->k = k;
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
    p->stream = p->apart = p->even = false;
    p->boxed = boxed;
    if (!b->convert && b->bits >= 8) to_bytes(p);
}

void rl_move_plan_make(rl_move_plan *p, rl_mix_plan *m, const rl_nest *b, const rl_move_kernels *k, bool boxed) {
    start(p, b, k, boxed);
    choose(p, m);
    if (p->chunk != rl_move_mixes) count_tiles(p);
}

bool rl_move_plan_past(rl_move_plan *p) {
    if (p->chunk != rl_move_tiles) return false;
    for (const rl_strip *s = p->k->strip[__builtin_ctz(p->size)]; s->ky; s++) {
        if (!s->past || p->lx % s->kx || p->ly % s->ky || odd_by(p)) continue;
        p->past = (rl_strip){s->past, s->kx, s->ky, s->lines, NULL, NULL};
        p->strip = &p->past;
        p->rest_x = p->rest_y = NULL;
        cut_tiles(p);
        count_tiles(p);
        return true;
    }
    return false;
}

/* All units, perhaps in several threads; bytes: of one. */
static void run_all(const rl_threads *threads, rl_range_fn *fn, void *arg, int64_t units, int64_t bytes) {
    if (!threads) fn(arg, 0, units);
    else threads->run(threads->pool, units, RL_MAX(1, PIECE / RL_MAX(bytes, 1)), fn, arg);
}

typedef struct {
    rl_nest b;
    rl_mix_plan m;
    rl_move_plan p;
    rl_stage s;
} whole;

/* Is what it reads read in the sequence in which it is written, perhaps again and again (Pad, Tile, Expand)?  Such reads are foreseen. */
static bool reads_on(const rl_nest *b) {
    int64_t step = INT64_MAX;
    for (uint32_t i = 0; i < b->n; i++) {
        int64_t from = rl_magnitude(b->loop[i].from);
        if (from > step) return false;
        if (from) step = from;
    }
    return true;
}

/* Of the given nest, which is not empty; all but a plain way has its plan, and boxes have theirs. */
static rl_move_way choose_way(whole *w, const rl_nest *given) {
    int64_t bytes = given->bits;
    rl_move_plan *p = &w->p;
    memcpy(&w->b, given, offsetof(rl_nest, loop) + given->n * sizeof *given->loop);
    rl_nest_straighten(&w->b);
    if (!w->b.convert) widen_bits(&w->b);
    if (is_plain(&w->b)) return RL_WAY_PLAIN;
    for (uint32_t i = 0; i < given->n; i++) bytes *= given->loop[i].n;
    bytes /= 8;
    rl_move_plan_make(p, &w->m, &w->b, rl_move_kernels_of(w->b.isa), false);
    if (p->size && p->k->fence && bytes >= STREAM) {
        choose_stream(p);
        if (p->stream) return RL_WAY_STREAM;
        bool boxes = p->chunk == rl_move_tiles || p->chunk == rl_move_mixes || (p->chunk == rl_move_rows && !reads_on(&w->b));
        if (boxes && bytes >= BOXED && rl_stage_make(&w->s, &w->b, p->k)) return RL_WAY_BOXES;
    }
    return RL_WAY_CACHE;
}

rl_move_way rl_nest_way(const rl_nest *b) {
    whole w;
    return is_nothing(b) ? RL_WAY_PLAIN : choose_way(&w, b);
}

void rl_nest_move(const rl_nest *given, const rl_threads *threads) {
    whole w;
    rl_move_way way;
    if (is_nothing(given)) return;
    way = choose_way(&w, given);
    if (w.b.bits < 8) threads = NULL; /* two small elements may share a byte */
    if (way == RL_WAY_PLAIN) copy_plain(&w.b);
    else if (way == RL_WAY_BOXES) run_all(threads, rl_stage_walk, &w.s, rl_stage_units(&w.s), w.s.bytes);
    else run_all(threads, walk, &w.p, rl_move_units(&w.p), w.p.bytes);
}
