/* A lower bound of a component of the cover, and a guide for the frontier: the weight of each element shared out among the ops (solve_cover.h).
 *
 * Each op answers for a part of the weight of each element that it may ask for; the parts of an element are no more than its weight together.
 * A choice pays an element once, which is no less than the parts of those that asked for it, so
 *
 *     total >= sum over ops of the least, over the op's configurations, of cost + parts of the elements that it holds
 *
 * That holds for any parts: they are the dual of the linear relaxation, which is nearly tight for most networks.
 *
 *   descend   parts near the best by the primal-dual hybrid gradient method (Chambolle and Pock 2011, 2016): each op multiplies the shares x of its
 *             configurations by what falls with cost + parts, and each part moves with the x that hold the element; both are put back to where they must
 *             stay (sums of 1; sums of the weight at most).  Each round of steps ends at its averages (Applegate et al. 2021, 2023), as whole
 *             numbers, rounded down, which a sweep makes better; the next one begins there
 *   sweep     in turn each op takes whatever part of its elements is free, and gives back what it can without a lower least of its own:
 *             free for the ops to come.  From the first op of an order to the last and back, so that the frontier finds at each
 *             op the parts of those to come as small as can be.  (Sequential tree-reweighted message passing, Kolmogorov 2006.) */
#include "solve_cover.h"
#include <string.h>

enum { STEPS = 100, MOST_DESCENT = 10, FEW_DESCENTS = 3, MOST_ROUND = 16 };
#define SHARE_STEP 2.0
#define PART_STEP 0.6
#define LEAST_SHARE 1e-12

typedef struct {
    rl_ctx *ctx;
    const rl_cover *p;
    rl_shares *s;
    uint32_t *entry;          /* of each configuration's elements, in the places of rl_bundle.elem, the place in s->elem; RL_NONE */
    size_t *first;            /* [nop] where the op's begin */
    uint32_t *holdbeg, *hold; /* of each place in s->elem the configurations of the op that hold it */
    int64_t *free;            /* [nelem] the weight that no op answers for */
    int64_t *sum;             /* [most configurations] cost and parts of each */
} sharer;

static const uint32_t *entries_of(const sharer *x, uint32_t op, uint32_t c) {
    return x->entry + x->first[op] + (size_t)c * x->p->op[op].width;
}

/* Places, and where each configuration's are. */
static void list_elements(rl_arena *mem, sharer *x) {
    const rl_cover *p = x->p;
    struct { uint32_t *p; uint32_t n, cap; } all = {0};
    uint32_t *place = rl_new(mem, uint32_t, p->nelem), most = 0; /* 1 + the last one */
    size_t n = 0;
    x->s->beg = rl_new(mem, uint32_t, (size_t)p->nop + 1);
    x->first = rl_new(mem, size_t, p->nop);
    for (uint32_t o = 0; o < p->nop; o++) {
        x->first[o] = n;
        n += (size_t)p->op[o].ncfg * p->op[o].width;
        most = RL_MAX(most, p->op[o].ncfg);
    }
    x->sum = rl_new(mem, int64_t, most);
    x->entry = rl_new(mem, uint32_t, n);
    for (uint32_t o = 0; o < p->nop; o++) {
        const rl_bundle *b = &p->op[o];
        for (size_t k = 0; k < (size_t)b->ncfg * b->width; k++) {
            uint32_t e = b->elem[k];
            if (e != RL_NONE && place[e] <= x->s->beg[o]) {
                rl_push(mem, all, e);
                place[e] = all.n;
            }
            x->entry[x->first[o] + k] = e == RL_NONE ? RL_NONE : place[e] - 1;
        }
        x->s->beg[o + 1] = all.n;
    }
    x->s->elem = all.p;
    x->s->part = rl_new(mem, int64_t, all.n);
}

static void list_holders(rl_arena *mem, sharer *x) {
    const rl_cover *p = x->p;
    uint32_t n = x->s->beg[p->nop], at = 0;
    x->holdbeg = rl_new(mem, uint32_t, (size_t)n + 1);
    for (uint32_t o = 0; o < p->nop; o++)
        for (size_t k = 0; k < (size_t)p->op[o].ncfg * p->op[o].width; k++)
            if (x->entry[x->first[o] + k] != RL_NONE) x->holdbeg[x->entry[x->first[o] + k]]++;
    for (uint32_t k = 0; k < n; k++) at = x->holdbeg[k] += at;
    x->holdbeg[n] = at;
    x->hold = rl_new(mem, uint32_t, at);
    for (uint32_t o = 0; o < p->nop; o++)
        for (uint32_t c = p->op[o].ncfg; c-- > 0;)
            for (uint32_t i = 0; i < p->op[o].width && entries_of(x, o, c)[i] != RL_NONE; i++) x->hold[--x->holdbeg[entries_of(x, o, c)[i]]] = c;
}

/* ---- descend ---- */

typedef struct {
    double scale, *part, *sum_part; /* part: beside s->elem; sums: of the round */
    double **of, **sum_of;          /* [op] its x */
    double *cost, *change;          /* [most configurations]; beside s->elem: by how much x at the step after next holds each */
    uint32_t *sharebeg, *share;     /* of each element its places in s->elem */
} descent;

static descent descent_of(rl_arena *mem, const sharer *x) {
    const rl_cover *p = x->p;
    uint32_t n = x->s->beg[p->nop], most = 0, at = 0;
    descent d = {.part = rl_new(mem, double, n), .sum_part = rl_new(mem, double, n), .of = rl_new(mem, double *, p->nop), .sum_of = rl_new(mem, double *, p->nop)};
    for (uint32_t o = 0; o < p->nop; o++) {
        most = RL_MAX(most, p->op[o].ncfg);
        d.of[o] = rl_new(mem, double, p->op[o].ncfg);
        d.sum_of[o] = rl_new(mem, double, p->op[o].ncfg);
        for (uint32_t c = 0; c < p->op[o].ncfg; c++) d.of[o][c] = 1.0 / p->op[o].ncfg;
    }
    d.cost = rl_new(mem, double, most);
    d.change = rl_new(mem, double, n);
    d.sharebeg = rl_new(mem, uint32_t, (size_t)p->nelem + 1);
    d.share = rl_new(mem, uint32_t, n);
    for (uint32_t k = 0; k < n; k++) d.sharebeg[x->s->elem[k]]++;
    for (uint32_t e = 0; e < p->nelem; e++) at = d.sharebeg[e] += at;
    d.sharebeg[p->nelem] = at;
    for (uint32_t k = n; k-- > 0;) d.share[--d.sharebeg[x->s->elem[k]]] = k;
    for (uint32_t e = 0; e < p->nelem; e++) d.scale = RL_MAX(d.scale, (double)p->weight[e]);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t e = x->s->elem[k];
        d.part[k] = (double)p->weight[e] / d.scale / (d.sharebeg[e + 1] - d.sharebeg[e]);
    }
    return d;
}

/* What to take off each of n numbers so that what is left above 0 adds up to `total`, if they add up to no less. */
static double excess(const double *v, uint32_t n, double total) {
    double off = -1e300;
    for (uint32_t above = n + 1;;) {
        double sum = 0;
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++)
            if (v[i] > off) sum += v[i], m++;
        if (m == 0 || m >= above) return off; /* not fewer by rounding alone */
        above = m;
        off = (sum - total) / m;
    }
}

/* exp(-z), nearly, for z >= 0; the same on all machines. */
static double falling(double z) { return 1 / (1 + z + z * z / 2); }

static void descend_op(descent *d, const sharer *x, uint32_t op) {
    const rl_bundle *b = &x->p->op[op];
    double *now = d->of[op], *sums = d->sum_of[op], least = 1e300, all = 0;
    for (uint32_t c = 0; c < b->ncfg; c++) {
        const uint32_t *k = entries_of(x, op, c);
        double cost = (double)b->cost[c] / d->scale;
        for (uint32_t i = 0; i < b->width && k[i] != RL_NONE; i++) cost += d->part[k[i]];
        d->cost[c] = cost;
        least = RL_MIN(least, cost);
    }
    for (uint32_t c = 0; c < b->ncfg; c++) all += d->cost[c] = RL_MAX(now[c], LEAST_SHARE) * falling(SHARE_STEP * (d->cost[c] - least));
    for (uint32_t c = 0; c < b->ncfg; c++) {
        const uint32_t *k = entries_of(x, op, c);
        double next = d->cost[c] / all, ahead = 2 * next - now[c];
        now[c] = next;
        sums[c] += next;
        for (uint32_t i = 0; i < b->width && k[i] != RL_NONE; i++) d->change[k[i]] += ahead;
    }
}

/* The parts of an element, which are 0 at least, add up to no more than its weight. */
static void fit_parts(descent *d, const uint32_t *k, uint32_t n, double weight) {
    double part[64], sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += d->part[k[i]];
    if (sum <= weight) return;
    if (n > RL_LEN(part)) { /* as good, in the end */
        for (uint32_t i = 0; i < n; i++) d->part[k[i]] *= weight / sum;
        return;
    }
    for (uint32_t i = 0; i < n; i++) part[i] = d->part[k[i]];
    double off = excess(part, n, weight);
    for (uint32_t i = 0; i < n; i++) d->part[k[i]] = RL_MAX(part[i] - off, 0.0);
}

static void descend_element(descent *d, uint32_t e, double weight) {
    uint32_t n = d->sharebeg[e + 1] - d->sharebeg[e];
    const uint32_t *k = d->share + d->sharebeg[e];
    for (uint32_t i = 0; i < n; i++) {
        d->part[k[i]] = RL_MAX(d->part[k[i]] + PART_STEP * d->change[k[i]], 0.0);
        d->change[k[i]] = 0;
    }
    fit_parts(d, k, n, weight);
    for (uint32_t i = 0; i < n; i++) d->sum_part[k[i]] += d->part[k[i]];
}

static void take_average(double *x, double *sum, uint32_t n, uint32_t steps) {
    for (uint32_t i = 0; i < n; i++) {
        x[i] = sum[i] / steps;
        sum[i] = 0;
    }
}

/* One round of steps; x->s->part, x->free: their averages. */
static void descend_once(descent *d, sharer *x, double deadline) {
    const rl_cover *p = x->p;
    uint32_t n = x->s->beg[p->nop], steps = 0;
    for (; steps < STEPS && (steps % 16 || !steps || !rl_time_up(x->ctx, deadline)); steps++) {
        for (uint32_t o = 0; o < p->nop; o++) descend_op(d, x, o);
        for (uint32_t e = 0; e < p->nelem; e++) descend_element(d, e, (double)p->weight[e] / d->scale);
    }
    for (uint32_t o = 0; o < p->nop; o++) take_average(d->of[o], d->sum_of[o], p->op[o].ncfg, steps);
    take_average(d->part, d->sum_part, n, steps);
    memcpy(x->free, p->weight, p->nelem * sizeof *x->free);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t e = x->s->elem[k];
        x->s->part[k] = RL_MIN((int64_t)(d->part[k] * d->scale), x->free[e]);
        x->free[e] -= x->s->part[k];
    }
}

/* ---- sweep ---- */

/* What each configuration costs, with the parts; returns the least. */
static int64_t add_up(sharer *x, uint32_t op) {
    const rl_bundle *b = &x->p->op[op];
    int64_t least = INT64_MAX;
    memcpy(x->sum, b->cost, b->ncfg * sizeof *b->cost);
    for (uint32_t k = x->s->beg[op]; k < x->s->beg[op + 1]; k++)
        for (uint32_t i = x->holdbeg[k]; i < x->holdbeg[k + 1]; i++) x->sum[x->hold[i]] += x->s->part[k];
    for (uint32_t c = 0; c < b->ncfg; c++) least = RL_MIN(least, x->sum[c]);
    return least;
}

static void give_back(sharer *x, uint32_t k, int64_t least) {
    int64_t lowest = INT64_MAX;
    for (uint32_t i = x->holdbeg[k]; i < x->holdbeg[k + 1]; i++) lowest = RL_MIN(lowest, x->sum[x->hold[i]]);
    int64_t back = RL_MIN(lowest - least, x->s->part[k]);
    x->s->part[k] -= back;
    x->free[x->s->elem[k]] += back;
    for (uint32_t i = x->holdbeg[k]; i < x->holdbeg[k + 1]; i++) x->sum[x->hold[i]] -= back;
}

/* rising: in which sequence it gives back; a configuration may do without either of two parts, but not without both. */
static void visit(sharer *x, uint32_t op, bool rising) {
    rl_shares *s = x->s;
    uint32_t beg = s->beg[op], end = s->beg[op + 1];
    for (uint32_t k = beg; k < end; k++) {
        s->part[k] += x->free[s->elem[k]];
        x->free[s->elem[k]] = 0;
    }
    s->least[op] = add_up(x, op);
    for (uint32_t i = 0; i < end - beg; i++) give_back(x, rising ? beg + i : end - 1 - i, s->least[op]);
}

/* There and back. */
static void sweep_once(sharer *x, const uint32_t *seq, bool rising) {
    rl_shares *s = x->s;
    for (uint32_t i = 0; i < x->p->nop; i++) visit(x, seq[i], rising);
    for (uint32_t i = x->p->nop; i-- > 0;) visit(x, seq[i], rising);
    s->bound = 0;
    for (uint32_t o = 0; o < x->p->nop; o++) s->bound += s->least[o];
}

static void sweep(sharer *x, const uint32_t *seq, double deadline) {
    int64_t before = -1;
    for (uint32_t round = 0; round < MOST_ROUND && x->s->bound > before && (!round || !rl_time_up(x->ctx, deadline)); round++) {
        before = round ? x->s->bound : -1;
        sweep_once(x, seq, round % 2 == 0);
    }
}

/* ---- rounds ---- */

/* Leaves the best parts of all rounds.  They end where the bound is enough, or a round brings little of what is missing. */
static void descend(rl_arena *mem, sharer *x, const uint32_t *seq, int64_t enough, double deadline) {
    const rl_cover *p = x->p;
    uint32_t n = x->s->beg[p->nop];
    int64_t *part = rl_new(mem, int64_t, n), *left = rl_new(mem, int64_t, p->nelem), best = -1;
    descent d = descent_of(mem, x);
    for (uint32_t round = 0; round < MOST_DESCENT && (!round || !rl_time_up(x->ctx, deadline)); round++) {
        descend_once(&d, x, deadline);
        sweep_once(x, seq, true);
        for (uint32_t k = 0; k < n; k++) d.part[k] = (double)x->s->part[k] / d.scale;
        int64_t gain = x->s->bound - best;
        if (gain > 0) {
            best = x->s->bound;
            memcpy(part, x->s->part, n * sizeof *part);
            memcpy(left, x->free, p->nelem * sizeof *left);
        }
        if (best >= enough || (round + 1 >= FEW_DESCENTS && gain < (enough - best) / 16)) break;
    }
    memcpy(x->s->part, part, n * sizeof *part);
    memcpy(x->free, left, p->nelem * sizeof *left);
}

rl_shares rl_share_out(rl_arena *mem, const rl_cover *p, const uint32_t *seq, bool descends, const rl_shares *from, int64_t enough, double deadline) {
    rl_shares s = {.least = rl_new(mem, int64_t, p->nop)};
    sharer x = {.ctx = mem->ctx, .p = p, .s = &s, .free = rl_copy(mem, p->weight, p->nelem * sizeof *p->weight)};
    list_elements(mem, &x);
    list_holders(mem, &x);
    if (from) memcpy(s.part, from->part, s.beg[p->nop] * sizeof *s.part);
    for (uint32_t k = 0; from && k < s.beg[p->nop]; k++) x.free[s.elem[k]] -= s.part[k];
    if (descends) descend(mem, &x, seq, enough, deadline);
    sweep(&x, seq, deadline);
    return s;
}

/* ---- use ---- */

rl_rest rl_rest_start(rl_arena *mem, const rl_cover *p, const rl_shares *s) {
    rl_rest r = {s, rl_new(mem, int64_t, p->nelem), s->bound};
    for (uint32_t k = 0; k < s->beg[p->nop]; k++) r.part[s->elem[k]] += s->part[k];
    return r;
}

void rl_rest_pass(rl_rest *r, uint32_t op) {
    const rl_shares *s = r->s;
    for (uint32_t k = s->beg[op]; k < s->beg[op + 1]; k++) r->part[s->elem[k]] -= s->part[k];
    r->least -= s->least[op];
}

int64_t rl_rest_of(const rl_rest *r, const uint32_t *set, uint32_t n) {
    int64_t least = r->least;
    for (uint32_t i = 0; i < n; i++) least -= r->part[set[i]];
    return least;
}
