/* The least cost of a profile's problem a second time, by code that shares nothing with the solver: its answer is checked by it, and where the
 * solver ran out of time, it is the answer.
 *
 * Ops are taken in the order of the model.  A state is what is left of a partial choice: for each value that a later op may read, and each
 * layout that it may be read in, what it costs to have it there: nothing where it was made or moved so, else the move.
 *
 *     y made in acdb     y abcd: 40, y acdb: 0
 *     y read in abcd     y abcd: 0,  y acdb: 0         and 40 more were paid
 *
 * State A stands for B where A costs no more with all that is dearer in it than in B: whatever follows B may follow A.  States of one value
 * apart are mostly so, and few are left after each op, however many values are alive.
 *
 * Where more are left than a pass keeps, the dearest go: what it finds is a choice that can be had, and what those that went and what is left
 * of the ops cost at least bounds what they would have led to. The next pass keeps more of them, and leaves out at once what cannot be as
 * cheap as the best choice so far; a pass in which none went for being too many is exact. */
#include <string.h>

#include "../runtime/element.h"
#include "cmd_profile.h"

enum {
    FIRST = 128, MORE = 8, MOST = 1 << 16,     /* states kept after an op in the first pass; so many times as many in the next; in the last */
    LOOKED = 400                               /* of those compared with each new one */
};
#define WORK INT64_C(600000000)                /* comparisons of costs in a second */

typedef struct { uint32_t n, width; int64_t *cost, *left; uint32_t *parent, *cfg; } layer; /* left: [n * width] */
typedef struct { uint32_t value, lay; } slot;
typedef struct { uint32_t *parent, *cfg; } step;

typedef struct {
    const rl_probe *q;
    bool *const *keep;
    rl_arena *mem;
    uint32_t *last;     /* [value * layouts] 1 + the last op that may read it so; 0: none */
    uint32_t *at;       /* [value * layouts] its place in the slots at hand */
    slot *now, *then;   /* before and after the op */
    uint32_t nnow, nthen;
    int64_t *rest;      /* [op] the least that this op and those after it can cost, without moves */
    int64_t limit;      /* what the best choice so far costs */
    int64_t work;       /* comparisons that may still be made */
    uint32_t cap;       /* states that this pass keeps */
    int64_t dropped;    /* what those that went would have led to costs at least */
    step *how;          /* [op] */
} search;

static uint32_t pair(const search *s, uint32_t value, uint32_t lay) {
    return value * s->q->lay.n + lay;
}

static void prepare(search *s) {
    const rl_probe *q = s->q;
    size_t all = (size_t)q->x->g->nval * q->lay.n + 1;
    s->last = rl_new(s->mem, uint32_t, all);
    s->at = rl_new(s->mem, uint32_t, all);
    s->now = rl_new(s->mem, slot, all);
    s->then = rl_new(s->mem, slot, all);
    s->how = rl_new(s->mem, step, q->op.n + 1);
    s->rest = rl_new(s->mem, int64_t, q->op.n + 1);
    for (uint32_t i = q->op.n; i-- > 0;) {
        const rl_probe_op *o = &q->op.p[i];
        int64_t least = INT64_MAX;
        for (uint32_t c = 0; c < o->cfg.n; c++) {
            if (!s->keep[i][c]) continue;
            least = RL_MIN(least, o->cfg.p[c].ns);
            for (uint32_t k = 0; k < o->npin; k++) {
                uint32_t *last = &s->last[pair(s, o->pin[k].v.i, o->cfg.p[c].lay[k])];
                if (!o->pin[k].out) *last = RL_MAX(*last, i + 1);
            }
        }
        s->rest[i] = rl_add(s->rest[i + 1], least);
    }
}

/* What is asked for after op i: what was there and is still read, and what the op makes. */
static void next_slots(search *s, uint32_t i) {
    const rl_probe_op *o = &s->q->op.p[i];
    s->nthen = 0;
    for (uint32_t k = 0; k < s->nnow; k++)
        if (s->last[pair(s, s->now[k].value, s->now[k].lay)] > i + 1) s->then[s->nthen++] = s->now[k];
    for (uint32_t k = 0; k < o->npin; k++)
        for (uint32_t d = 0; d < s->q->lay.n && o->pin[k].out; d++)
            if (s->last[pair(s, o->pin[k].v.i, d)] > i + 1) s->then[s->nthen++] = (slot){o->pin[k].v.i, d};
}

/* The state `from` after configuration c of op i; false where it cannot be part of anything as cheap as is known. room: [nnow] */
static bool follow(const search *s, uint32_t i, const rl_probe_cfg *c, int64_t cost, const int64_t *from, int64_t *room, int64_t *left, int64_t *total) {
    const rl_probe_op *o = &s->q->op.p[i];
    memcpy(room, from, s->nnow * sizeof *room);
    *total = rl_add(cost, c->ns);
    for (uint32_t k = 0; k < o->npin; k++) {
        if (o->pin[k].out) continue;
        int64_t *had = &room[s->at[pair(s, o->pin[k].v.i, c->lay[k])]];
        *total = rl_add(*total, *had);
        *had = 0;
    }
    if (rl_add(*total, s->rest[i + 1]) > s->limit) return false;
    for (uint32_t k = 0; k < s->nthen; k++) {
        uint32_t v = s->then[k].value, d = s->then[k].lay, out = 0;
        while (out < o->npin && !(o->pin[out].out && o->pin[out].v.i == v)) out++;
        left[k] = out < o->npin ? rl_probe_move_cost(s->q, v, c->lay[out], d) : room[s->at[pair(s, v, d)]];
    }
    return true;
}

static layer expand(search *s, rl_arena *mem, uint32_t i, const layer *from) {
    const rl_probe_op *o = &s->q->op.p[i];
    uint32_t most = from->n * o->cfg.n;
    layer to = {.width = s->nthen, .cost = rl_new(mem, int64_t, most), .left = rl_new(mem, int64_t, (size_t)most * s->nthen + 1)};
    to.parent = rl_new(mem, uint32_t, most);
    to.cfg = rl_new(mem, uint32_t, most);
    int64_t *room = rl_new(mem, int64_t, s->nnow + 1);
    for (uint32_t k = 0; k < s->nnow; k++) s->at[pair(s, s->now[k].value, s->now[k].lay)] = k;
    for (uint32_t a = 0; a < from->n; a++)
        for (uint32_t c = 0; c < o->cfg.n; c++) {
            if (!s->keep[i][c]) continue;
            int64_t *left = to.left + (size_t)to.n * to.width;
            if (!follow(s, i, &o->cfg.p[c], from->cost[a], from->left + (size_t)a * from->width, room, left, &to.cost[to.n])) continue;
            to.parent[to.n] = a;
            to.cfg[to.n++] = c;
        }
    s->work -= (int64_t)most * (s->nthen + s->nnow + 1);
    return to;
}

static int by_cost(const void *arg, int64_t a, int64_t b) {
    const int64_t *cost = arg;
    return (cost[a] > cost[b]) - (cost[a] < cost[b]);
}

/* Does state a stand for state b, which costs no less? */
static bool stands_for(const layer *l, const int64_t *a, const int64_t *b, int64_t more) {
    for (uint32_t k = 0; k < l->width && more >= 0; k++)
        if (a[k] > b[k]) more -= a[k] - b[k];
    return more >= 0;
}

/* After op i: the states that none of the cheapest stands for, as far as there is room. */
static void thin(search *s, rl_arena *mem, uint32_t i, layer *l) {
    int64_t *order = rl_new(mem, int64_t, l->n + 1);
    layer to = {.width = l->width, .cost = rl_new(mem, int64_t, l->n), .left = rl_new(mem, int64_t, (size_t)l->n * l->width + 1)};
    to.parent = rl_new(mem, uint32_t, l->n);
    to.cfg = rl_new(mem, uint32_t, l->n);
    for (uint32_t k = 0; k < l->n; k++) order[k] = k;
    rl_sort(mem, order, l->n, by_cost, l->cost);
    for (uint32_t k = 0; k < l->n; k++) {
        const int64_t *left = l->left + (size_t)order[k] * l->width, cost = l->cost[order[k]];
        bool covered = false;
        for (uint32_t j = 0; j < RL_MIN(to.n, (uint32_t)LOOKED) && !covered; j++)
            covered = stands_for(l, to.left + (size_t)j * l->width, left, cost - to.cost[j]);
        s->work -= (int64_t)RL_MIN(to.n, (uint32_t)LOOKED) * RL_MAX(l->width, 1u);
        if (covered) continue;
        if (to.n == s->cap) { /* those that follow are dearer */
            s->dropped = RL_MIN(s->dropped, rl_add(cost, s->rest[i + 1]));
            break;
        }
        memcpy(to.left + (size_t)to.n * l->width, left, l->width * sizeof *left);
        to.cost[to.n] = cost;
        to.parent[to.n] = l->parent[order[k]];
        to.cfg[to.n++] = l->cfg[order[k]];
    }
    *l = to;
}

/* From the cheapest last state back to the first. */
static void trace(const search *s, uint32_t *chosen) {
    uint32_t state = 0;
    for (uint32_t i = s->q->op.n; i-- > 0; state = s->how[i].parent[state]) chosen[i] = s->how[i].cfg[state];
}

/* A pass over all ops: the cheapest choice that it finds, if there is one as cheap as is known. False: there was no time for all of it. */
static bool pass(search *s, uint32_t *chosen, int64_t *cost) {
    rl_arena turn[2], *mem = s->mem;
    const rl_probe *q = s->q;
    for (uint32_t i = 0; i < 2; i++) rl_arena_init(&turn[i], mem->ctx);
    layer l = {.n = 1, .cost = rl_new(&turn[1], int64_t, 1), .left = rl_new(&turn[1], int64_t, 1)};
    s->nnow = 0;
    s->dropped = INT64_MAX;
    uint32_t i = 0;
    for (; i < q->op.n && l.n > 0 && s->work > 0 && !rl_stopped(mem->ctx); i++) {
        rl_arena *to = &turn[i % 2];
        rl_arena_free(to);
        next_slots(s, i);
        l = expand(s, to, i, &l);
        thin(s, to, i, &l);
        s->how[i] = (step){rl_copy(mem, l.parent, l.n * sizeof *l.parent), rl_copy(mem, l.cfg, l.n * sizeof *l.cfg)};
        slot *was = s->now;
        s->now = s->then, s->then = was;
        s->nnow = s->nthen;
    }
    if (i == q->op.n && l.n > 0) {
        *cost = l.cost[0];
        trace(s, chosen);
    }
    for (uint32_t k = 0; k < 2; k++) rl_arena_free(&turn[k]);
    return i == q->op.n || l.n == 0;
}

int64_t rl_profile_exact(const rl_probe *q, bool *const *keep, double seconds, rl_arena *mem, uint32_t *chosen, int64_t *known) {
    search s = {.q = q, .keep = keep, .mem = mem, .limit = *known, .work = (int64_t)((double)WORK * seconds)};
    int64_t bound = 0;
    prepare(&s);
    for (s.cap = FIRST; s.cap <= MOST && bound < *known && pass(&s, chosen, known); s.cap *= MORE) {
        s.limit = *known;
        bound = RL_MAX(bound, RL_MIN(s.dropped, *known));
    }
    return bound;
}
