/* Moves past the caches, box by box: some of each loop, as much as the first cache holds.
 *
 * A box is moved to a buffer in the cache by the kernels of any other move. While the next box is moved to another buffer, this
 * one's runs go past the cache in whole lines, and what the box after that reads is asked for: a strip, some lines out, some lines
 * asked for (`beside`), into the first cache; into the second where rows drive each other out of the first.  So memory sees long reads and
 * long writes only, and works all the time. Where runs are whole lines, and what a kernel writes, too, these go past the cache straight
 * from registers: `past`.
 *
 *     y[Y,X] = x[X,Y], floats     a box has 128 of X and 64 of Y: it reads 128 runs of 256 bytes and writes 64 of 512
 *
 * Where all runs begin as far in a line, the first box is smaller by as much: `lead`. Where they do not, the boxes go on along the runs,
 * and the line that one leaves unfinished waits in the buffer for the next: `carry`.  The buffer's steps are those of `to` modulo a line, so
 * that lines are the same on both sides. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "move_kernel.h"

enum {
    LINE = 64,
    WRITE = 512, READ = 256, /* bytes: the least runs of a box, where the loops have as many and no run on the other side is shorter for it */
    LEAST = 128,             /* else of what it reads */
    MEET = 4 << 10,          /* bytes: rows that lie such steps apart share few places in the first cache */
    ROWS = 256,              /* the most of those in a box */
    BOX = 32 << 10,          /* bytes: a box grows to this */
    WHOLE = 64 << 10,        /* and to this where a loop becomes whole: no box is larger */
    ALL = 4 * WHOLE,         /* more than there is beside a box */
    RUNS = 256,              /* the most that a box writes */
    LINES = 2048             /* the most of what a box reads that is asked for before */
};

/* ---- which boxes ---- */

/* Loops by their step on the `from` side, the least first. */
static void by_from(const rl_nest *b, uint32_t *order) {
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t k = i;
        for (; k && rl_magnitude(b->loop[order[k - 1]].from) > rl_magnitude(b->loop[i].from); k--) order[k] = order[k - 1];
        order[k] = i;
    }
}

static int64_t elements(const rl_nest *b, const int64_t *box) {
    int64_t n = 1;
    for (uint32_t i = 0; i < b->n; i++) n *= box[i];
    return n;
}

/* The box's run on one side, in elements; order: loops, the least step first; least: it grows to this where it can. */
static int64_t run_of(const rl_nest *b, int64_t *box, const uint32_t *order, bool to_side, int64_t least) {
    int64_t run = 1;
    for (uint32_t k = 0; k < b->n; k++) {
        uint32_t i = order[k];
        const rl_loop *l = &b->loop[i];
        if ((to_side ? l->to : l->from) != run) break;
        if (run < least) box[i] = RL_MAX(box[i], RL_MIN(l->n, (least + run - 1) / run));
        run *= box[i];
        if (box[i] < l->n) break;
    }
    return run;
}

static int64_t pieces(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

static void grow(rl_stage *s, const uint32_t *from_order, int64_t size) {
    const rl_nest *b = s->nest;
    for (uint32_t k = 0; k < b->n; k++) {
        uint32_t i = from_order[k];
        if (elements(b, s->box) / s->box[i] * b->loop[i].n * size <= WHOLE) s->box[i] = b->loop[i].n;
    }
    for (uint32_t k = 0; k < b->n; k++) {
        int64_t *n = &s->box[from_order[k]], all = b->loop[from_order[k]].n;
        if (*n == all || *n == 1) continue;
        while (elements(b, s->box) * size <= BOX / 2 && *n < all) *n = RL_MIN(2 * *n, all);
        break;
    }
    for (uint32_t i = 0; i < b->n; i++) { /* boxes of about the same size, in lines */
        int64_t line = LINE / size, all = b->loop[i].n, even = pieces(all, pieces(all, s->box[i]));
        if (s->box[i] >= line) s->box[i] = RL_MIN(pieces(even, line) * line, all);
    }
}

/* All runs of `run` bytes on one side begin as far in a line as the first one. */
static bool is_even(const rl_nest *b, bool to_side, int64_t run) {
    int64_t size = b->bits / 8, all = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        int64_t step = rl_magnitude(to_side ? b->loop[i].to : b->loop[i].from) * size;
        if (step >= run) all |= step;
    }
    return all % LINE == 0;
}

/* The loop that goes on where a run of the boxes ends; n: none. */
static uint32_t part_of(const rl_stage *s, const uint32_t *order) {
    const rl_nest *b = s->nest;
    for (uint32_t k = 0; k < b->n; k++)
        if (s->box[order[k]] < b->loop[order[k]].n) return order[k];
    return b->n;
}

/* The first box along loop i is smaller, so that the others begin with a line. */
static void lead(rl_stage *s, uint32_t i, bool to_side) {
    const rl_nest *b = s->nest;
    int64_t size = b->bits / 8, step = to_side ? b->loop[i].to : b->loop[i].from;
    uintptr_t at = to_side ? (uintptr_t)b->to + (uintptr_t)(b->to_at * size) : (uintptr_t)b->from + (uintptr_t)(b->from_at * size);
    if (step == 1 && s->box[i] >= LINE / size) s->lead[i] = (int64_t)(at % LINE) / size;
}

/* write, read: the least runs, in elements. */
static void make_box(rl_stage *s, const uint32_t *to_order, const uint32_t *from_order, int64_t write, int64_t read) {
    const rl_nest *b = s->nest;
    int64_t size = b->bits / 8;
    for (uint32_t i = 0; i < b->n; i++) s->box[i] = 1, s->lead[i] = 0;
    run_of(b, s->box, to_order, true, write);
    run_of(b, s->box, from_order, false, read);
    grow(s, from_order, size);
    s->bytes = elements(b, s->box) * size;
    s->run = run_of(b, s->box, to_order, true, 0) * size;
}

static bool fits(const rl_stage *s) {
    return s->bytes / s->run <= RUNS && s->bytes <= WHOLE;
}

static void choose_box(rl_stage *s, const uint32_t *to_order, const uint32_t *from_order) {
    int64_t size = s->nest->bits / 8, write = RL_MIN(WRITE / size, s->meet ? ROWS : WRITE);
    make_box(s, to_order, from_order, write, LEAST / size);
    if (!fits(s)) {
        make_box(s, to_order, from_order, write / 2, LEAST / size);
        return;
    }
    int64_t run = s->run;
    make_box(s, to_order, from_order, write, READ / size);
    if (!fits(s) || s->run < run) make_box(s, to_order, from_order, write, LEAST / size);
}

/* Boxes read straight on; with `carry` they write straight on. */
static void choose_order(rl_stage *s, const uint32_t *from_order, uint32_t part) {
    uint32_t n = s->nest->n, at = 0;
    for (uint32_t i = n; i-- > 0;)
        if (!s->carry || from_order[i] != part) s->order[at++] = from_order[i];
    if (s->carry) s->order[at] = part;
}

bool rl_stage_make(rl_stage *s, const rl_nest *b, const rl_move_kernels *k) {
    uint32_t to_order[RL_NEST_LOOPS] = {0}, from_order[RL_NEST_LOOPS] = {0}, part, on;
    int64_t size = b->bits / 8;
    s->nest = b;
    s->k = k;
    by_from(b, from_order);
    for (uint32_t i = 0; i < b->n; i++) to_order[i] = b->n - 1 - i;
    s->meet = b->loop[b->n - 1].from * size % MEET == 0;
    choose_box(s, to_order, from_order);
    s->even = is_even(b, false, run_of(b, s->box, from_order, false, 0) * size);
    part = part_of(s, to_order), on = part_of(s, from_order);
    if (on < b->n && on != part && s->even) lead(s, on, false);
    if (part < b->n && is_even(b, true, s->run)) lead(s, part, true);
    s->carry = part < b->n && s->lead[part] == 0 && s->run % LINE == 0 && b->loop[part].to * s->box[part] * size == s->run;
    choose_order(s, from_order, part);
    return s->run >= 2 * LINE && fits(s);
}

static int64_t boxes(const rl_stage *s, uint32_t i) {
    return pieces(s->nest->loop[i].n + s->lead[i], s->box[i]);
}

int64_t rl_stage_units(const rl_stage *s) {
    int64_t n = 1;
    for (uint32_t i = 0; i < s->nest->n; i++) n *= boxes(s, i);
    return n;
}

/* ---- a box ---- */

/* All boxes of one shape: how they are moved to the buffer, and where their runs lie. */
typedef struct {
    int64_t n[RL_NEST_LOOPS];
    rl_nest nest;
    rl_mix_plan mix;
    rl_move_plan plan;
    rl_tile tile;
    bool past;                      /* straight from registers, where its first run begins with a line: no buffer */
    int64_t run;
    uint32_t runs, lines;
    int64_t to[RUNS], buffer[RUNS]; /* where the runs begin, in bytes */
    int64_t line[LINES];            /* what is read, in bytes */
} shape;

/* Adds what is in at[0 .. count-1] n - 1 times, each time `step` further; returns how many there are now, at most `most`. */
static uint32_t repeat(int64_t *at, uint32_t count, uint32_t most, int64_t n, int64_t step) {
    uint32_t end = (uint32_t)RL_MIN(count * n, most);
    for (uint32_t i = count; i < end; i++) at[i] = at[i - count] + step;
    return end;
}

/* The buffer's steps: runs lie as far in their lines as those of `to`; past: those of `to`. */
static void lay_out(const rl_stage *s, shape *h, int64_t size, bool past) {
    const rl_nest *b = s->nest;
    int64_t len = size;
    h->run = 0, h->runs = 1;
    h->to[0] = h->buffer[0] = 0;
    h->nest = (rl_nest){.bits = b->bits};
    for (uint32_t i = b->n; i-- > 0;) {
        int64_t step = b->loop[i].to * size, pitch = len;
        if (h->n[i] == 1) continue;
        if (h->run == 0 && step != len) {
            h->run = len;
            if (s->carry) len = s->run; /* that of the last box is smaller */
        }
        if (h->run) {
            pitch = past ? step : len + LINE + ((step - len) & (LINE - 1));
            repeat(h->to, h->runs, RUNS, h->n[i], step);
            h->runs = repeat(h->buffer, h->runs, RUNS, h->n[i], pitch);
        }
        h->nest.loop[h->nest.n++] = (rl_loop){h->n[i], pitch / size, b->loop[i].from};
        len += pitch * (h->n[i] - 1);
    }
    if (h->run == 0) h->run = len;
    rl_nest_straighten(&h->nest);
}

/* What a box reads. */
static void find_lines(const rl_stage *s, shape *h, int64_t size) {
    const rl_nest *b = s->nest;
    uint32_t order[RL_NEST_LOOPS], k = 0;
    int64_t run = size;
    bool whole = true;
    by_from(b, order);
    for (; k < b->n && whole && b->loop[order[k]].from * size == run; k++) {
        run *= h->n[order[k]];
        whole = h->n[order[k]] == b->loop[order[k]].n;
    }
    for (h->lines = 0; h->lines < LINES && h->lines * (int64_t)LINE < run; h->lines++) h->line[h->lines] = h->lines * (int64_t)LINE;
    if (!s->even && h->lines < LINES) h->line[h->lines++] = run - 1;
    for (; k < b->n; k++) h->lines = repeat(h->line, h->lines, LINES, h->n[order[k]], b->loop[order[k]].from * size);
}

/* even: the first run begins with a line. */
static void shape_make(const rl_stage *s, shape *h, const int64_t *n, bool even) {
    int64_t size = s->nest->bits / 8;
    memcpy(h->n, n, s->nest->n * sizeof *n);
    rl_tile_clear(&h->tile);
    find_lines(s, h, size);
    for (h->past = even;; h->past = false) {
        lay_out(s, h, size, h->past);
        rl_move_plan_make(&h->plan, &h->mix, &h->nest, s->k, true);
        if (!h->past || rl_move_plan_past(&h->plan)) break;
    }
}

/* ---- beside a box ---- */

/* A piece of the runs, of nbyte bytes or up to a line's end before that, or of one line; returns how much it is. */
static int64_t flush_piece(rl_beside *b, int64_t nbyte) {
    char *to = b->to + *b->to_at;
    int64_t odd = (int64_t)((uintptr_t)to % LINE), at = b->at - (b->before ? odd : 0), left = b->run - (b->after ? odd : 0) - at;
    int64_t n = RL_MAX(nbyte, LINE);
    n = n < left ? n - (int64_t)((uintptr_t)(to + at + n) % LINE) : left;
    b->flush(to + at, b->in + *b->in_at + at, n);
    b->at += n;
    if (n == left) b->at = 0, b->runs--, b->to_at++, b->in_at++;
    return n;
}

void rl_beside_do(rl_beside *b, int64_t nbyte) {
    uint32_t n = (uint32_t)RL_MIN(pieces(nbyte, LINE) * b->per, b->lines);
    for (uint32_t i = 0; i < n && !b->second; i++) __builtin_prefetch(b->from + b->line[i], 0, 3);
    for (uint32_t i = 0; i < n && b->second; i++) __builtin_prefetch(b->from + b->line[i], 0, 2);
    b->line += n, b->lines -= n;
    while (nbyte > 0 && b->runs) nbyte -= flush_piece(b, nbyte);
}

/* ---- boxes ---- */

typedef struct { int64_t at[RL_NEST_LOOPS], n[RL_NEST_LOOPS], to, from; } place; /* at: which box; to, from: bytes */

static void locate(const rl_stage *s, place *p) {
    const rl_nest *b = s->nest;
    int64_t size = b->bits / 8;
    p->to = b->to_at * size, p->from = b->from_at * size;
    for (uint32_t i = 0; i < b->n; i++) {
        int64_t first = RL_MAX(p->at[i] * s->box[i] - s->lead[i], 0), end = (p->at[i] + 1) * s->box[i] - s->lead[i];
        p->n[i] = RL_MIN(end, b->loop[i].n) - first;
        p->to += first * b->loop[i].to * size;
        p->from += first * b->loop[i].from * size;
    }
}

static void start(const rl_stage *s, place *p, int64_t box) {
    for (uint32_t k = s->nest->n; k-- > 0;) {
        uint32_t i = s->order[k];
        int64_t n = boxes(s, i);
        p->at[i] = box % n;
        box /= n;
    }
    locate(s, p);
}

/* After the last one comes the first. */
static void step(const rl_stage *s, place *p) {
    for (uint32_t k = s->nest->n; k-- > 0;) {
        uint32_t i = s->order[k];
        if (++p->at[i] < boxes(s, i)) break;
        p->at[i] = 0;
    }
    locate(s, p);
}

/* The runs of a box are written while the next one is moved; the lines that it continues go to the other buffer. */
static void leave_runs(const rl_stage *s, rl_beside *d, const shape *h, char *to, char *in, char *other, bool before, bool after) {
    d->flush = s->k->flush;
    d->to = to, d->in = in;
    d->to_at = h->to, d->in_at = h->buffer;
    d->runs = h->runs, d->run = h->run;
    d->before = before, d->after = after;
    d->at = 0;
    for (uint32_t r = 0; after && r < h->runs; r++) {
        int64_t odd = (int64_t)((uintptr_t)(to + h->to[r]) % LINE);
        memcpy(other + h->buffer[r] - odd, in + h->buffer[r] + h->run - odd, LINE);
    }
}

/* The shape of the box here: the full one, or the last that was not, made anew where it differs; its runs are written before. */
static shape *shape_of(const rl_stage *s, const place *here, shape *full, shape *rest, rl_beside *d) {
    size_t all = s->nest->n * sizeof *here->n;
    bool even = ((uintptr_t)s->nest->to + (uintptr_t)here->to) % LINE == 0;
    if (rl_same_bytes(here->n, full->n, all) && (even || !full->past)) return full;
    if (rl_same_bytes(here->n, rest->n, all) && (even || !rest->past)) return rest;
    rl_beside_do(d, ALL);
    shape_make(s, rest, here->n, even);
    return rest;
}

/* More than a thread's stack may hold.  Where there is no memory, one walk after the other has `spare`. */
typedef struct {
    _Alignas(LINE) char buffer[2][WHOLE + RUNS * 4 * LINE];
    shape full, rest;
} room;
static room spare;
static atomic_flag spare_taken = ATOMIC_FLAG_INIT;

static room *take_room(void) {
    room *r = aligned_alloc(LINE, sizeof *r);
    if (r) return r;
    while (atomic_flag_test_and_set(&spare_taken)) continue;
    return &spare;
}

static void leave_room(room *r) {
    if (r == &spare) atomic_flag_clear(&spare_taken);
    else free(r);
}

void rl_stage_walk(void *arg, int64_t first, int64_t end) {
    const rl_stage *s = arg;
    const rl_nest *b = s->nest;
    uint32_t last = s->order[b->n - 1];
    room *r = take_room();
    shape *full = &r->full, *rest = &r->rest;
    place here, then;
    rl_beside beside = {.second = s->meet};
    bool before = false;
    start(s, &here, first);
    shape_make(s, full, s->box, true);
    rest->n[0] = 0;
    for (; first < end; first++, here = then) {
        then = here;
        step(s, &then);
        shape *h = shape_of(s, &here, full, rest, &beside);
        char *to = (char *)b->to + here.to, *in = r->buffer[first & 1] + LINE + (uintptr_t)to % LINE;
        bool after = s->carry && !h->past && first + 1 < end && then.at[last] != 0;
        beside.from = (const char *)b->from + then.from;
        beside.line = full->line, beside.lines = full->lines, beside.per = (uint32_t)pieces(full->lines, pieces(s->bytes, LINE));
        h->plan.to = h->past ? to : in;
        h->plan.from = (const char *)b->from + here.from;
        h->tile.beside = &beside;
        rl_move_walk(&h->plan, &h->tile, 0, rl_move_units(&h->plan));
        rl_beside_do(&beside, ALL);
        if (!h->past) leave_runs(s, &beside, h, to, in, r->buffer[~first & 1] + (in - r->buffer[first & 1]), before, after);
        before = after;
    }
    beside.lines = 0;
    rl_beside_do(&beside, ALL);
    s->k->fence();
    leave_room(r);
}
