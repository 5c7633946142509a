/* The least total of one component of the cover (solve_cover.h): runs of the frontier (solve_frontier.c) until one proves it.
 *
 *   1. narrow beams over a few orders, which on ordinary networks are exact; else a cut, where two layouts meet (solve_cut.c); else a
 *      narrow relaxed run for a bound
 *   2. a better order, and shares over it (solve_share.c): some that are had soon and fit the order, and unless there are few configurations those
 *      of the linear relaxation, which mostly have the best bound.  Where that is nearly tight, a beam that they guide is exact
 *   3. relaxed runs, backward and forward in turn, each guided by the shares and by the layers of the one before:
 *      what the other side knows prunes the states, so fewer are merged, so the next bound is better.  After each, a wider
 *      beam with the same guides, which finds better solutions and is often exact.  The caps double each time
 *
 * A run that neither drops nor merges a state, or whose bound reaches the known total, ends the search. */
#include "solve_cover.h"
#include <string.h>

/* States that the first beam keeps.  Tests set it low, so that small problems take every path. */
#ifndef RL_SOLVE_CAP
#define RL_SOLVE_CAP 512
#endif
enum {
    FIRST_CAP = RL_SOLVE_CAP,
    PROBE_CAP = (FIRST_CAP + 7) / 8,
    EXTRA_FACTOR = 32,        /* extra states of a probe, by its cap */
    FEW_CONFIGS = 400,        /* of a component that is sooner done without the second shares */
    MANY_CONFIGS = 1 << 12,   /* of one whose first relaxed run takes long, and says less than shares do */
    MOST_PLAIN = 16 * FIRST_CAP, /* of a beam without a guide */
    BEAM_FACTOR = 8,          /* how much wider a guided beam is than its guide */
    MOST_CAP = 1 << 13,       /* of a relaxed run, and: */
    MOST_LAYERED = 1 << 21,   /* states in all layers of a relaxed run, but see PROBE_CAP */
    MOST_BEAMED = 1 << 25,    /* states in all steps of a beam, but see FIRST_CAP */
};

typedef struct {
    rl_arena *mem;
    const rl_cover *p;
    double deadline;
    rl_cover_choice best;
} search;

/* What is not cheaper than this is not sought. */
static int64_t known(const search *s) {
    return RL_MIN(s->best.cost, s->p->upper);
}

static bool done(const search *s) {
    return s->best.bound >= known(s);
}

static bool late(const search *s) {
    return rl_time_up(s->mem->ctx, s->deadline);
}

static void note_bound(search *s, int64_t bound) {
    s->best.bound = RL_MAX(s->best.bound, RL_MIN(bound, known(s)));
}

static rl_run_result attempt(search *s, rl_arena *mem, rl_cover_run run) {
    run.upper = s->best.cost == INT64_MAX ? INT64_MAX : known(s); /* the first finds some choice */
    run.deadline = s->deadline;
    rl_run_result r = rl_frontier_run(mem, s->p, &run);
    if (r.found && r.cost < s->best.cost) {
        s->best.cost = r.cost;
        memcpy(s->best.cfg, r.cfg, s->p->nop * sizeof *r.cfg);
    }
    note_bound(s, r.bound);
    return r;
}

static uint32_t *reversed(rl_arena *mem, const uint32_t *seq, uint32_t n) {
    uint32_t *r = rl_new(mem, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) r[i] = seq[n - 1 - i];
    return r;
}

static rl_shares share(search *s, rl_arena *mem, const uint32_t *seq, bool descend, const rl_shares *from) {
    rl_shares shares = rl_share_out(mem, s->p, seq, descend, from, known(s), s->deadline);
    note_bound(s, shares.bound);
    return shares;
}

static uint32_t count_configs(const rl_cover *p) {
    uint32_t n = 0;
    for (uint32_t o = 0; o < p->nop; o++) n += p->op[o].ncfg;
    return n;
}

/* Is less open than what one element may weigh? */
static bool is_close(const search *s) {
    int64_t most = 0;
    for (uint32_t e = 0; e < s->p->nelem; e++) most = RL_MAX(most, s->p->weight[e]);
    return known(s) - s->best.bound < most;
}

typedef struct { const uint32_t *seq[2]; rl_shares of[2][RL_MAXSHARE]; uint32_t n; } sharing; /* forward, backward */

/* Adds shares, up to so many, and then beams with all: with shares that are near the best few states are left, so that they are often exact. */
static void share_and_beam(search *s, rl_arena *mem, sharing *x, uint32_t n, rl_arena *tmp) {
    for (; x->n < n && !done(s); x->n++) {
        x->of[0][x->n] = share(s, mem, x->seq[0], x->n > 0, NULL);
        x->of[1][x->n] = share(s, mem, x->seq[1], false, x->n > 0 ? &x->of[0][x->n] : NULL);
    }
    for (uint32_t cap = FIRST_CAP; cap <= MOST_PLAIN && !done(s) && !late(s) && (cap == FIRST_CAP || is_close(s)); cap *= 4) {
        attempt(s, tmp, (rl_cover_run){.seq = x->seq[0], .cap = cap, .shares = x->of[0], .nshare = x->n});
        rl_arena_free(tmp);
    }
}

static void alternate(search *s, rl_arena *mem, const uint32_t *forward) {
    sharing x = {.seq = {forward, reversed(mem, forward, s->p->nop)}};
    const rl_layer *guide = NULL;
    uint32_t nop = s->p->nop, wide = RL_MAX(MOST_BEAMED / nop, (uint32_t)FIRST_CAP);
    uint32_t most = RL_MIN((uint32_t)MOST_CAP, RL_MAX(MOST_LAYERED / nop, (uint32_t)PROBE_CAP));
    rl_arena tmp[2], beam;
    rl_arena_init(&tmp[0], mem->ctx);
    rl_arena_init(&tmp[1], mem->ctx);
    rl_arena_init(&beam, mem->ctx);
    share_and_beam(s, mem, &x, count_configs(s->p) <= FEW_CONFIGS ? 1 : RL_MAXSHARE, &beam);
    for (uint32_t cap = FIRST_CAP, turn = 1; !done(s) && !late(s) && cap <= wide; cap *= 2, turn ^= 1) {
        rl_arena_free(&tmp[turn]);
        if (cap > FIRST_CAP && x.n < RL_MAXSHARE) share_and_beam(s, mem, &x, RL_MAXSHARE, &beam);
        if (done(s)) break;
        rl_cover_run relaxed = {.seq = x.seq[turn], .cap = RL_MIN(cap, most), .relax = true, .guide = guide, .shares = x.of[turn], .nshare = x.n, .record = true};
        guide = attempt(s, &tmp[turn], relaxed).layer;
        if (done(s) || late(s)) break;
        attempt(s, &beam, (rl_cover_run){.seq = x.seq[!turn], .cap = RL_MIN(cap * BEAM_FACTOR, wide), .guide = guide, .shares = x.of[!turn], .nshare = x.n});
        rl_arena_free(&beam);
    }
    rl_arena_free(&tmp[0]);
    rl_arena_free(&tmp[1]);
}

/* Short beams over some orders, until one is exact. */
static void probe(search *s, const rl_arrangement *all, uint32_t n) {
    rl_arena tmp;
    rl_arena_init(&tmp, s->mem->ctx);
    for (uint32_t k = 0; k < n && !done(s) && (!k || !late(s)); k++) {
        attempt(s, &tmp, (rl_cover_run){.seq = all[k].seq, .cap = PROBE_CAP, .extra = EXTRA_FACTOR * PROBE_CAP});
        rl_arena_free(&tmp);
    }
}

rl_cover_choice rl_component_try(rl_arena *mem, const rl_cover *p, double deadline) {
    search s = {mem, p, deadline, {rl_new(mem, uint32_t, p->nop), INT64_MAX, 0, false}};
    rl_arena tmp;
    rl_arena_init(&tmp, mem->ctx);
    rl_arrangement all[RL_MAXARRANGE];
    uint32_t n = rl_arrange(&tmp, p, all);
    probe(&s, all, n);
    if (!done(&s)) rl_component_cut(mem, p, deadline, &s.best);
    if (!done(&s) && !late(&s) && count_configs(p) < MANY_CONFIGS)
        attempt(&s, &tmp, (rl_cover_run){.seq = reversed(&tmp, all[0].seq, p->nop), .cap = PROBE_CAP, .relax = true});
    rl_arena_free(&tmp);
    s.best.proven = s.best.bound >= s.best.cost;
    return s.best;
}

void rl_component_solve(rl_arena *mem, const rl_cover *p, double deadline, rl_cover_choice *choice) {
    search s = {mem, p, deadline, *choice};
    rl_arena tmp;
    rl_arena_init(&tmp, mem->ctx);
    rl_arrangement all[RL_MAXARRANGE];
    rl_arrange(&tmp, p, all);
    alternate(&s, &tmp, rl_arrange_better(&tmp, p, all[0], deadline).seq);
    rl_arena_free(&tmp);
    *choice = s.best;
    choice->proven = s.best.bound >= s.best.cost;
}
