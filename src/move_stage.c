/* Moves past the caches, box by box: some of each loop, as much as the first cache holds.
 *
 * A box is moved to a buffer in the cache by the kernels of any other move; from there its runs go past the cache in whole lines, while
 * what the next box reads is asked for.  So memory sees long reads and long writes only, whatever the move is.
 *
 *     y[Y,X] = x[X,Y], floats     a box has 128 of X and 32 of Y: it reads 128 runs of 128 bytes and writes 32 of 512
 *
 * Where all runs begin as far in a line, the first box is smaller by as much: `lead`. Where they do not, the boxes go on along the runs, and
 * the line that one leaves unfinished waits in the buffer for the next: `carry`.  The buffer's steps are those of `to` modulo a line, so
 * that lines are the same on both sides. */
#include <string.h>

#include "move_kernel.h"

enum {
    LINE = 64,
    WRITE = 512, READ = 128, /* bytes: the least runs of a box, where the loops have as many */
    ROWS = 256,              /* the most of the innermost loop on the `to` side: each is a row that is read, and perhaps a page */
    BOX = 16 << 10,          /* bytes: a box grows to this */
    WHOLE = 64 << 10,        /* and to this where a loop becomes whole: no box is larger */
    RUNS = 256,              /* the most that a box writes */
    LINES = 2048             /* the most of what a box reads that is asked for before */
};

static int64_t magnitude(int64_t x) {
    return x < 0 ? -x : x;
}

/* ---- which boxes ---- */

/* Loops by their step on the `from` side, the least first. */
static void by_from(const rl_nest *b, uint32_t *order) {
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t k = i;
        for (; k && magnitude(b->loop[order[k - 1]].from) > magnitude(b->loop[i].from); k--) order[k] = order[k - 1];
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
        int64_t step = magnitude(to_side ? b->loop[i].to : b->loop[i].from) * size;
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

static void choose_box(rl_stage *s, const uint32_t *to_order, const uint32_t *from_order) {
    const rl_nest *b = s->nest;
    int64_t size = b->bits / 8;
    for (uint32_t i = 0; i < b->n; i++) s->box[i] = 1, s->lead[i] = 0;
    run_of(b, s->box, to_order, true, RL_MIN(WRITE / size, ROWS));
    run_of(b, s->box, from_order, false, READ / size);
    grow(s, from_order, size);
    s->bytes = elements(b, s->box) * size;
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
    choose_box(s, to_order, from_order);
    s->run = run_of(b, s->box, to_order, true, 0) * size;
    s->even = is_even(b, false, run_of(b, s->box, from_order, false, 0) * size);
    part = part_of(s, to_order), on = part_of(s, from_order);
    if (on < b->n && on != part && s->even) lead(s, on, false);
    if (part < b->n && is_even(b, true, s->run)) lead(s, part, true);
    s->carry = part < b->n && s->lead[part] == 0 && s->run % LINE == 0 && b->loop[part].to * s->box[part] * size == s->run;
    choose_order(s, from_order, part);
    return s->run >= 2 * LINE && s->bytes / s->run <= RUNS && s->bytes <= WHOLE;
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

/* The buffer's steps: runs lie as far in their lines as those of `to`. */
static void lay_out(const rl_stage *s, shape *h, int64_t size) {
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
            pitch = len + LINE + ((step - len) & (LINE - 1));
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

static void shape_make(const rl_stage *s, shape *h, const int64_t *n) {
    int64_t size = s->nest->bits / 8;
    memcpy(h->n, n, s->nest->n * sizeof *n);
    lay_out(s, h, size);
    find_lines(s, h, size);
    rl_move_plan_make(&h->plan, &h->mix, &h->nest, s->k);
    rl_tile_clear(&h->tile);
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

/* before, after: the box before or after this one continues its runs. */
static void write_runs(const rl_stage *s, const shape *h, char *to, char *buffer, bool before, bool after, rl_ahead *ahead) {
    for (uint32_t r = 0; r < h->runs; r++) {
        char *out = to + h->to[r], *in = buffer + h->buffer[r];
        int64_t odd = s->carry ? (int64_t)((uintptr_t)out % LINE) : 0, first = before ? -odd : 0, end = h->run - (after ? odd : 0);
        s->k->flush(out + first, in + first, end - first, ahead);
        if (after) memcpy(in - odd, in + end, LINE);
    }
}

/* The shape of the box here: the full one, or the last that was not, made anew where it differs. */
static shape *shape_of(const rl_stage *s, const place *here, shape *full, shape *rest) {
    size_t all = s->nest->n * sizeof *here->n;
    if (memcmp(here->n, full->n, all) == 0) return full;
    if (memcmp(here->n, rest->n, all) != 0) shape_make(s, rest, here->n);
    return rest;
}

void rl_stage_walk(void *arg, int64_t first, int64_t end) {
    const rl_stage *s = arg;
    const rl_nest *b = s->nest;
    uint32_t last = s->order[b->n - 1];
    _Alignas(LINE) char buffer[WHOLE + RUNS * 4 * LINE];
    shape full, rest;
    place here, then, later;
    bool before = false;
    start(s, &here, first);
    then = here;
    step(s, &then);
    shape_make(s, &full, s->box);
    rest.n[0] = 0;
    for (; first < end; first++, here = then, then = later) {
        shape *h = shape_of(s, &here, &full, &rest);
        char *to = (char *)b->to + here.to, *in = buffer + LINE + (uintptr_t)to % LINE;
        bool after = s->carry && first + 1 < end && then.at[last] != 0;
        later = then;
        step(s, &later);
        rl_ahead ahead = {(const char *)b->from + later.from, full.line, full.lines};
        h->plan.to = in;
        h->plan.from = (const char *)b->from + here.from;
        h->tile.ahead = &ahead;
        rl_move_walk(&h->plan, &h->tile, 0, rl_move_units(&h->plan));
        write_runs(s, h, to, in, before, after, &ahead);
        before = after;
    }
    s->k->fence();
}
