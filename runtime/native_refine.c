/* Costs of what a plan chose, measured in runs by it: see native_probe.h.
 *
 * A kernel measured alone says what it takes in other layouts only about: beside others it finds less in the caches, or more, and its
 * neighbours change with it (a Concat whose pieces stand in place no longer).  So the plan runs, in turn with the model without one, and
 *
 *   a step that runs otherwise   costs what it took without a plan, and as much longer, or shorter, as it takes now by the plan than without
 *   a step that runs as it did   costs what it did; what it takes more, or less, is charged to the step before it that changed, or else to
 *                                the one behind it
 *   a move                       costs what it takes
 *   what is left                 of what the run by the plan takes more, or less, than all of these, beyond half a percent, is charged to the
 *                                steps that run otherwise, in proportion to their times: so a plan costs what it takes
 *
 * With these costs the best choice is sought again: it is the same, or one that has not run yet. */
#include <math.h>
#include <string.h>

#include "native_probe.h"

typedef struct {
    rl_probe *p;
    const uint32_t *chosen;
    double scale;       /* a time of the first measurement over one of now */
    int64_t *was, *now; /* [op] as measured now, 0 where another step does its work; now -1: no step of the plan */
    uint32_t *maker;    /* [value] its op, RL_NONE: none */
} refiner;

static rl_probe_cfg *config_of(const refiner *r, uint32_t op) {
    return &r->p->op.p[op].cfg.p[r->chosen[op]];
}

static bool is_changed(const refiner *r, uint32_t op) {
    return r->now[op] >= 0 && !config_of(r, op)->as_is;
}

static bool is_noise(const refiner *r, uint32_t op) {
    return fabs((double)(r->now[op] - r->was[op])) <= RL_PROBE_NOISE * (double)r->was[op];
}

/* ns of now, around this op, as they were when the model was measured first. */
static int64_t at_first(const refiner *r, uint32_t op, int64_t ns) {
    return (int64_t)((double)ns * (r->was[op] > 0 ? (double)r->p->op.p[op].here / (double)r->was[op] : r->scale));
}

/* ---- steps ---- */

static void refine_changed(const refiner *r, uint32_t op) {
    config_of(r, op)->ns = is_noise(r, op) ? r->p->op.p[op].here + 1 : at_first(r, op, r->now[op]);
}

/* The changed op that an unchanged one has to do with; RL_NONE: there is none. */
static uint32_t neighbour(const refiner *r, uint32_t op) {
    const rl_probe_op *o = &r->p->op.p[op];
    for (uint32_t k = 0; k < o->npin; k++) {
        uint32_t maker = r->maker[o->pin[k].v.i];
        if (!o->pin[k].out && maker != RL_NONE && is_changed(r, maker)) return maker;
    }
    for (uint32_t i = op + 1; i < r->p->op.n; i++)
        for (uint32_t k = 0; is_changed(r, i) && k < r->p->op.p[i].npin; k++)
            if (!r->p->op.p[i].pin[k].out && r->maker[r->p->op.p[i].pin[k].v.i] == op) return i;
    return RL_NONE;
}

static void charge_neighbour(const refiner *r, uint32_t op) {
    uint32_t other = neighbour(r, op);
    if (other == RL_NONE) return;
    rl_probe_cfg *c = config_of(r, other);
    c->ns = RL_MAX(c->ns + at_first(r, op, r->now[op] - r->was[op]), 0);
}

/* ---- moves ---- */

/* NULL: it moves nothing. */
static rl_probe_move *find_move(const rl_probe *p, const rl_native *n) {
    for (uint32_t i = 0; i < p->move.n; i++) {
        rl_probe_move *m = &p->move.p[i];
        if (m->value == n->moves.i && rl_lay_same(&p->lay.p[m->from], &n->in) && rl_lay_same(&p->lay.p[m->to], &n->out)) return m;
    }
    return NULL;
}

static void refine_move(const refiner *r, const rl_native *n, int64_t ns) {
    rl_probe_move *m = find_move(r->p, n);
    if (m) m->ns = (int64_t)((double)ns * r->scale) + r->p->around;
}

/* ---- all ---- */

/* Times of the ops' steps; moves are no ops. */
static void find_times(const refiner *r, rl_arena *tmp, rl_exec *const *x, const rl_whole *whole) {
    const int64_t *now = rl_whole_steps(tmp, r->p->x, x[0], &whole[0]), *was = rl_whole_steps(tmp, r->p->x, x[1], &whole[1]);
    for (uint32_t i = 0; i < x[0]->nstep; i++)
        if (rl_native_is_move(&x[0]->step[i])) refine_move(r, x[0]->step[i].native, whole[0].step[i]);
    for (uint32_t i = 0; i < r->p->op.n; i++) {
        uint32_t step = r->p->op.p[i].step;
        if (step != RL_NONE) r->was[i] = RL_MAX(was[step], 0), r->now[i] = RL_MAX(now[step], 0);
    }
}

static int64_t cost_of(const refiner *r, const rl_exec *x) {
    int64_t sum = r->p->fixed;
    for (uint32_t i = 0; i < r->p->op.n; i++) sum += config_of(r, i)->ns;
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_probe_move *m = rl_native_is_move(&x->step[i]) ? find_move(r->p, x->step[i].native) : NULL;
        sum += m ? m->ns : 0;
    }
    return sum;
}

/* ns: of the run by the plan. */
static void charge_rest(const refiner *r, const rl_exec *x, int64_t ns) {
    double rest = (double)ns * r->scale - (double)cost_of(r, x), all = 0;
    if (fabs(rest) <= RL_PROBE_CHANCE * (double)r->p->whole) return;
    for (uint32_t i = 0; i < r->p->op.n; i++) all += is_changed(r, i) ? (double)r->now[i] : 0;
    for (uint32_t i = 0; i < r->p->op.n && all > 0; i++) {
        rl_probe_cfg *c = config_of(r, i);
        if (is_changed(r, i)) c->ns = RL_MAX(c->ns + (int64_t)(rest * (double)r->now[i] / all), 0);
    }
}

void rl_probe_scale(rl_probe *p, int64_t whole) {
    double by = p->whole > 0 ? (double)whole / (double)p->whole : 1;
    p->fixed += whole - p->whole;
    p->whole = whole;
    for (uint32_t i = 0; i < p->op.n; i++) {
        rl_probe_op *o = &p->op.p[i];
        int64_t here = (int64_t)((double)o->here * by);
        for (uint32_t c = 0; c < o->cfg.n; c++) { /* what takes longer goes on doing so */
            int64_t more = o->cfg.p[c].ns - o->here, now = (int64_t)((double)more * by);
            o->cfg.p[c].ns = here + (more > 0 ? RL_MAX(now, 1) : now);
        }
        p->fixed -= here - o->here;
        o->here = here;
    }
}

void rl_probe_refine(rl_probe *p, const uint32_t *chosen, rl_exec *const *x, const rl_whole *whole) {
    rl_arena tmp;
    rl_arena_init(&tmp, x[0]->g->ctx);
    refiner r = {.p = p, .chosen = chosen, .was = rl_new(&tmp, int64_t, p->op.n + 1), .now = rl_new(&tmp, int64_t, p->op.n + 1),
                 .maker = rl_new(&tmp, uint32_t, x[0]->g->nval + 1), .scale = whole[1].ns > 0 ? (double)p->whole / (double)whole[1].ns : 1};
    memset(r.now, 0xff, p->op.n * sizeof *r.now);
    memset(r.maker, 0xff, x[0]->g->nval * sizeof *r.maker);
    for (uint32_t i = 0; i < p->op.n; i++)
        for (uint32_t k = 0; k < p->op.p[i].npin; k++)
            if (p->op.p[i].pin[k].out) r.maker[p->op.p[i].pin[k].v.i] = i;
    find_times(&r, &tmp, x, whole);
    for (uint32_t i = 0; i < p->op.n; i++)
        if (is_changed(&r, i)) refine_changed(&r, i);
    for (uint32_t i = 0; i < p->op.n; i++)
        if (r.now[i] >= 0 && !is_changed(&r, i) && !is_noise(&r, i)) charge_neighbour(&r, i);
    charge_rest(&r, x[0], whole[0].ns);
    rl_arena_free(&tmp);
}
