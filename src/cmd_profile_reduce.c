/* Configurations of a profile that no best choice needs: one op's configuration c, where another one c' costs no more, whatever the ops
 * around choose:
 *
 *   cost(c') + what its inputs cost more to move + what moving its outputs costs more  <=  cost(c)
 *
 * each at its worst.  Most of what a kernel does slowly goes so, and the solver has little left.  One after the other is left out, so that of
 * two that are as good one stays. */
#include <string.h>

#include "cmd_profile.h"

/* A value: the layouts that it may be made and read in, as bits; how many read it. */
typedef struct { uint64_t made, read; uint32_t nreader; } ends;

/* may, must: [value][layout] pins that may read it so, that can read it in no other way. */
typedef struct { rl_profile *p; const rl_probe *q; bool **keep; ends *at; uint32_t *may, *must; } reducer;

static uint32_t place(const reducer *r, uint32_t v, uint32_t lay) {
    return v * r->q->lay.n + lay;
}

static void find_ends(reducer *r) {
    const rl_probe *q = r->q;
    size_t all = (size_t)q->x->g->nval * q->lay.n;
    for (uint32_t v = 0; v < q->x->g->nval; v++) r->at[v] = (ends){0};
    memset(r->may, 0, all * sizeof *r->may);
    memset(r->must, 0, all * sizeof *r->must);
    for (uint32_t i = 0; i < q->op.n; i++) {
        const rl_probe_op *o = &q->op.p[i];
        for (uint32_t k = 0; k < o->npin; k++) {
            ends *e = &r->at[o->pin[k].v.i];
            uint64_t lays = 0;
            for (uint32_t c = 0; c < o->cfg.n; c++)
                if (r->keep[i][c]) lays |= UINT64_C(1) << o->cfg.p[c].lay[k];
            *(o->pin[k].out ? &e->made : &e->read) |= lays;
            e->nreader += !o->pin[k].out;
            for (uint32_t d = 0; d < q->lay.n && !o->pin[k].out; d++) {
                r->may[place(r, o->pin[k].v.i, d)] += lays >> d & 1;
                r->must[place(r, o->pin[k].v.i, d)] += lays == UINT64_C(1) << d;
            }
        }
    }
}

/* The most that reading v in `now` for `was` can cost more: others may have it moved to `was` anyway; where one must have it in `now`, it is there. */
static int64_t more_to_read(const reducer *r, uint32_t v, uint32_t was, uint32_t now) {
    const ends *e = &r->at[v];
    int64_t most = INT64_MIN;
    for (uint32_t p = 0; p < r->q->lay.n && was != now; p++) {
        if (!(e->made >> p & 1)) continue;
        int64_t more = r->must[place(r, v, now)] ? 0 : rl_probe_move_cost(r->q, v, p, now);
        if (r->may[place(r, v, was)] == 1 && more != INT64_MAX) more -= rl_probe_move_cost(r->q, v, p, was);
        most = RL_MAX(most, more);
    }
    return most == INT64_MIN ? 0 : most;
}

/* The most that v, made in `now` for `was`, can cost more to move to some of the layouts that it is read in. */
static int64_t more_to_make(const reducer *r, uint32_t v, uint32_t was, uint32_t now) {
    const ends *e = &r->at[v];
    int64_t sum = 0, most = INT64_MIN;
    for (uint32_t d = 0; d < r->q->lay.n && was != now; d++) {
        if (!(e->read >> d & 1)) continue;
        int64_t to = rl_probe_move_cost(r->q, v, now, d), from = rl_probe_move_cost(r->q, v, was, d);
        if (to == INT64_MAX || from == INT64_MAX) return INT64_MAX;
        sum = rl_add(sum, RL_MAX(to - from, 0));
        most = RL_MAX(most, to - from);
    }
    if (most == INT64_MIN) return 0;
    return e->nreader > 1 && most > 0 ? sum : most;
}

static bool stands_in(const reducer *r, const rl_probe_op *o, const rl_probe_cfg *now, const rl_probe_cfg *was) {
    int64_t more = now->ns - was->ns;
    for (uint32_t k = 0; k < o->npin && more < INT64_MAX; k++) {
        uint32_t v = o->pin[k].v.i;
        more = rl_add(more, o->pin[k].out ? more_to_make(r, v, was->lay[k], now->lay[k]) : more_to_read(r, v, was->lay[k], now->lay[k]));
    }
    return more <= 0;
}

static bool reduce_op(const reducer *r, uint32_t i) {
    const rl_probe_op *o = &r->q->op.p[i];
    bool any = false;
    for (uint32_t c = 0; c < o->cfg.n; c++)
        for (uint32_t d = 0; d < o->cfg.n && r->keep[i][c]; d++)
            if (d != c && r->keep[i][d] && stands_in(r, o, &o->cfg.p[d], &o->cfg.p[c])) {
                r->keep[i][c] = false;
                rl_push(r->q->mem, r->p->drop, ((rl_profile_drop){i, c, d}));
                any = true;
            }
    return any;
}

void rl_profile_reduce(rl_profile *p, rl_arena *mem, bool **keep) {
    const rl_probe *q = &p->probe;
    reducer r = {.p = p, .q = q, .keep = keep, .at = rl_new(mem, ends, q->x->g->nval + 1)};
    if (q->lay.n > 64) return;
    r.may = rl_new(mem, uint32_t, (size_t)q->x->g->nval * q->lay.n + 1);
    r.must = rl_new(mem, uint32_t, (size_t)q->x->g->nval * q->lay.n + 1);
    for (bool again = true; again;) {
        again = false;
        find_ends(&r);
        for (uint32_t i = 0; i < q->op.n; i++) again = reduce_op(&r, i) || again;
    }
}
