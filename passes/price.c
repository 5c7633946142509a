/* What no assignment of a component can beat in time, for the second part of the certificate (docs/proof.md, section 5).
 *
 * Times are those of --objective time: of conversions whichever dims move, and of what the target charges.  Objective nodes on a target
 * that charges keeps conversions for their time; this asks of a component that has more than the fewest whether any assignment that
 * has no more conversions than the model's own is quicker.  "No more" is a price: where a conversion costs so much beside its time that the
 * quickest assignment has no more of them, its time is a bound for all that have no more.
 *     own: 37 conversions, 95 us      quickest: 49, 77 us      price 1.5 us: nothing below 37 and 95, as 77 + 12 * 1.5 = 95
 * The price is sought over the candidates (one dimension: the cheapest assignments on either side of the model's own count meet at the
 * next price to try), then the bound over every configuration, as bound.c does; where that is too low, the cheapest assignment of the
 * restricted problem leads to the next price.  The best bound is kept, be it enough or not.  Of the candidates met on the way the quickest that have no
 * more conversions than the model's own may be quicker than the choice: the caller gets them.
 *
 * Needs: candidates, p->least.  Keeps: the plan.  Leaves: p->quick, p->timed. */
#include "bound.h"
#include "charge.h"
#include <string.h>

enum { MOSTTRIES = 6, MOSTBOUNDS = 4 };
static const int64_t most_price = (int64_t)1 << 42;

rl_conversions rl_conversions_of(const rl_plan *p, const uint32_t *cfg, const rl_taken *taken, rl_arena *mem) {
    const uint32_t *start = rl_order_starts(p, mem);
    bool *seen = rl_new(mem, bool, start[p->cls.n]), *any = rl_new(mem, bool, p->cls.n);
    rl_conversions all = {0};
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        RL_EACH_PIN(op, o, pin) {
            uint32_t c = op->operand[o].cls, order = rl_pin_order(op, cfg[k], pin);
            if (taken && taken[k].any && o < 2 && taken[k].order[o] != RL_NONE) order = taken[k].order[o];
            if (seen[start[c] + order]) continue;
            seen[start[c] + order] = true;
            if (any[c]) rl_push(mem, all, c);
            any[c] = true;
        }
    }
    return all;
}

uint32_t *rl_plan_chosen(const rl_plan *p, rl_arena *mem) {
    uint32_t *cfg = rl_new(mem, uint32_t, p->op.n);
    for (uint32_t k = 0; k < p->op.n; k++) cfg[k] = p->op.p[k].chosen;
    return cfg;
}

void rl_plan_costs(const rl_plan *p, const uint32_t *cfg, rl_least *cost, rl_arena *tmp) {
    const rl_conversions all = rl_conversions_of(p, cfg, NULL, tmp);
    memset(cost, 0, p->ncomp * sizeof *cost);
    for (uint32_t i = 0; i < all.n; i++) {
        const rl_cls *c = &p->cls.p[all.p[i]];
        cost[c->comp].count++;
        cost[c->comp].bytes += c->bytes;
    }
}

void rl_plan_times(const rl_plan *p, const uint32_t *cfg, const int64_t *price, rl_least *time, rl_arena *tmp) {
    const rl_taken *taken = p->taken ? NULL : rl_taken_of(p, cfg, tmp);
    const rl_conversions all = rl_conversions_of(p, cfg, taken, tmp);
    memset(time, 0, p->ncomp * sizeof *time);
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        int64_t tenths = taken && taken[k].any ? rl_config_charge(p, op, &(rl_config){taken[k].form, taken[k].token, 0}) : op->config.p[cfg[k]].charge;
        if (op->comp != RL_NONE) time[op->comp].count += tenths * rl_charge_unit(p, op);
    }
    for (uint32_t i = 0; i < all.n; i++) {
        uint32_t comp = p->cls.p[all.p[i]].comp;
        time[comp].count += rl_move_time(p, all.p[i]) + (price ? price[comp] : 0);
        time[comp].bytes++;
    }
}

typedef struct {
    rl_plan *p;
    rl_arena *tmp;
    bool exact;                 /* nothing is enough but what the assignment takes */
    double deadline;
    int64_t *price, *own;       /* [ncomp] own: conversions of the model as it stands */
    rl_least *time, *enough;    /* [ncomp] what the assignment takes, and the bound that is enough */
    rl_least *least;            /* [ncomp] the quickest with prices */
    uint32_t *found;            /* [nop] the quickest candidates met that have no more conversions than own */
    rl_least *more, *less;      /* [ncomp] the last solution that has more conversions than own, or not more: how many more, and its time as bytes */
    bool *open, *failed;        /* open: sought now */
} pricer;

/* Notes what is quicker than all that was met: the choice, if times are all that counts. cfg: [nop]; least: what the components take under it, with prices. */
static void note_found(pricer *x, const uint32_t *cfg, const rl_least *least) {
    const rl_plan *p = x->p;
    bool *take = rl_new(x->tmp, bool, p->ncomp);
    for (uint32_t k = 0; k < p->ncomp; k++) {
        int64_t time = least[k].count - x->price[k] * least[k].bytes;
        take[k] = x->open[k] && least[k].bytes <= x->own[k] && time < x->time[k].count;
        if (take[k]) x->time[k].count = time;
        if (take[k] && x->exact) x->enough[k].count = time;
    }
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE && take[p->op.p[k].comp]) x->found[k] = cfg[k];
}

/* The bound that is enough for what takes that long. */
static int64_t enough_of(int64_t time, bool exact) { return time - (exact ? 0 : time / 100 * (100 - RL_CERT_ENOUGH)); }

/* The cheapest candidates of the components that are open, as least. False where they were not found in time. */
static rl_status quickest_in(rl_arena *mem, pricer *x, bool *found) {
    rl_plan q = *x->p;
    q.mem = mem;
    q.op.p = NULL;
    q.op.n = q.op.cap = 0;
    uint32_t *at = rl_new(mem, uint32_t, x->p->op.n), *cfg = rl_new(mem, uint32_t, x->p->op.n);
    for (uint32_t k = 0; k < x->p->op.n; k++) {
        if (!rl_touches(&q, &x->p->op.p[k], x->open)) continue;
        at[q.op.n] = k;
        rl_push(mem, q.op, x->p->op.p[k]);
    }
    if (q.swaps) rl_take_in_all(&q);
    rl_bound_scale s = {.unit = 1, .exact = true, .price = x->price};
    rl_problem problem;
    rl_solution sol;
    rl_bound_problem(&q, &s, x->open, &problem);
    RL_TRY(rl_solve(mem, &problem, RL_MAX(x->deadline - rl_work_seconds(), 0.0), &sol));
    *found = sol.optimal;
    rl_least *least = rl_new(mem, rl_least, q.ncomp);
    rl_plan_times(&q, sol.cfg, x->price, least, mem);
    for (uint32_t k = 0; k < q.ncomp; k++)
        if (x->open[k]) x->least[k] = least[k];
    for (uint32_t i = 0; i < q.op.n; i++) cfg[at[i]] = sol.cfg[i];
    if (!q.swaps) note_found(x, cfg, least);
    return RL_OK;
}

static rl_status quickest(pricer *x, bool *found) {
    rl_arena mem;
    rl_arena_init(&mem, x->p->g->ctx);
    rl_status s = quickest_in(&mem, x, found);
    rl_arena_free(&mem);
    return s;
}

/* The next price to try of a component where this is the least, or false: the price will do, or none will. */
static bool next_price(pricer *x, uint32_t k, rl_least least) {
    int64_t now = x->price[k], over = least.bytes - x->own[k], time = least.count - now * least.bytes;
    if (time + now * over >= x->enough[k].count) return false;
    x->failed[k] = over <= 0 && time < x->enough[k].count; /* it is quicker, and has no more conversions */
    if (x->failed[k]) return false;
    if (over > 0) x->more[k] = (rl_least){over, time};
    else x->less[k] = (rl_least){over, time};
    int64_t to = x->less[k].count ? x->less[k].bytes : x->time[k].count, apart = x->more[k].count - x->less[k].count;
    int64_t next = x->more[k].count ? (to - x->more[k].bytes + apart - 1) / apart : 0;
    x->failed[k] = next == now || next <= 0 || next > most_price;
    if (!x->failed[k]) x->price[k] = next;
    return !x->failed[k];
}

static rl_status find_prices(pricer *x, bool *found) {
    rl_plan *p = x->p;
    bool *wanted = rl_copy(x->tmp, x->open, p->ncomp * sizeof *wanted), more = true;
    for (uint32_t i = 0; i < MOSTTRIES && more; i++) {
        RL_TRY(quickest(x, found));
        if (!*found) return RL_OK;
        more = false;
        for (uint32_t k = 0; k < p->ncomp; k++) more |= x->open[k] = x->open[k] && next_price(x, k, x->least[k]);
    }
    for (uint32_t k = 0; k < p->ncomp; k++) x->open[k] = wanted[k] && !(more && x->open[k]);
    return RL_OK;
}

/* No sum of interest may come near what 62 bits hold. */
static bool fits(const rl_plan *p) {
    double sum = 0;
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        for (uint32_t o = 0; o < op->noperand; o++) sum += op->operand[o].pin ? (double)rl_move_time(p, op->operand[o].cls) : 0;
        sum += op->ntoken > 1 ? 1e3 * (double)rl_charge_unit(p, op) : 0;
    }
    return sum < 0x1p54;
}

/* Notes the bounds of `open` that are better than what is known, and what is kept for them. */
static void note_bounds(pricer *x, const rl_prover *v, const bool *open) {
    rl_plan *p = x->p;
    bool *better = rl_new(x->tmp, bool, p->ncomp);
    for (uint32_t k = 0; k < p->ncomp; k++) {
        int64_t bound = p->least[k].count - x->price[k] * x->own[k];
        better[k] = open[k] && v->settled[k] && bound > p->quick[k].bound;
        if (better[k]) p->quick[k] = (rl_quick){true, p->swaps && p->swaps[k], bound, x->price[k], p->spans[k]};
    }
    for (uint32_t c = 0; c < p->cls.n; c++)
        if (better[p->cls.p[c].comp]) p->timed[c] = p->cls.p[c].kept;
}

/* Where products swap, not all candidates do (taken.c). */
static bool *full_without_swaps(const rl_plan *p, rl_arena *tmp) {
    bool *full = rl_copy(tmp, p->full, p->ncomp * sizeof *full);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (p->op.p[k].comp != RL_NONE && rl_takes_in(p, &p->op.p[k])) full[p->op.p[k].comp] = false;
    return full;
}

/* Bounds what is open, over every configuration.  Where that is not enough, and another price may do, it stays open, and has that price. */
static rl_status bound_times(pricer *x) {
    rl_plan *p = x->p;
    const rl_opspans **spans = p->spans;
    rl_least *least = p->least, *known = rl_new(x->tmp, rl_least, p->ncomp);
    bool *open = rl_copy(x->tmp, x->open, p->ncomp * sizeof *open);
    rl_kept *kept = rl_new(x->tmp, rl_kept, p->cls.n);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        kept[c] = p->cls.p[c].kept;
        p->cls.p[c].kept = (rl_kept){0};
    }
    for (uint32_t k = 0; k < p->ncomp; k++)
        known[k].count = x->exact ? x->least[k].count : RL_MIN(x->least[k].count, x->enough[k].count + x->price[k] * x->own[k]);
    p->least = rl_new(x->tmp, rl_least, p->ncomp);
    p->spans = rl_new(x->tmp, const rl_opspans *, p->ncomp);
    rl_prover v = rl_prover_of(p, x->open, RL_MAX(x->deadline - rl_work_seconds(), 0.0), x->tmp);
    v.scale = (rl_bound_scale){.unit = 1, .exact = true, .price = x->price};
    v.known = known;
    v.full = x->least;
    bool *full = p->full, *folded = p->folded;
    p->full = full_without_swaps(p, x->tmp);
    p->folded = rl_new(x->tmp, bool, p->ncomp); /* by count, whatever is charged */
    rl_status s = rl_prover_run(&v);
    p->full = full, p->folded = folded;
    note_bounds(x, &v, open);
    for (uint32_t k = 0; k < p->ncomp; k++) x->open[k] = open[k] && v.settled[k] && !x->failed[k] && next_price(x, k, p->least[k]);
    for (uint32_t c = 0; c < p->cls.n; c++) p->cls.p[c].kept = kept[c];
    p->least = least;
    p->spans = spans;
    return s;
}

static bool any_open(const pricer *x) {
    for (uint32_t k = 0; k < x->p->ncomp; k++)
        if (x->open[k]) return true;
    return false;
}

static rl_status bound_quick(pricer *x) {
    bool found = false;
    RL_TRY(find_prices(x, &found));
    if (!found) return RL_OK;
    RL_TRY(bound_times(x));
    for (uint32_t i = 1; i < MOSTBOUNDS && any_open(x); i++) {
        RL_TRY(quickest(x, &found));
        if (!found) break;
        RL_TRY(bound_times(x));
    }
    return RL_OK;
}

/* Bounds what is open, of components where that is wanted. */
static rl_status bound_some(rl_plan *p, const uint32_t *cfg, const bool *wanted, bool exact, double limit, uint32_t *found, rl_arena *tmp) {
    pricer x = {.p = p, .tmp = tmp, .exact = exact, .deadline = rl_work_seconds() + limit, .found = found};
    rl_least *stands = rl_new(tmp, rl_least, p->ncomp);
    x.price = rl_new(tmp, int64_t, p->ncomp), x.own = rl_new(tmp, int64_t, p->ncomp);
    x.time = rl_new(tmp, rl_least, p->ncomp), x.enough = rl_new(tmp, rl_least, p->ncomp), x.least = rl_new(tmp, rl_least, p->ncomp);
    x.more = rl_new(tmp, rl_least, p->ncomp), x.less = rl_new(tmp, rl_least, p->ncomp);
    x.open = rl_new(tmp, bool, p->ncomp), x.failed = rl_new(tmp, bool, p->ncomp);
    rl_plan_times(p, cfg, NULL, x.time, tmp);
    rl_plan_costs(p, rl_new(tmp, uint32_t, p->op.n), stands, tmp);
    for (uint32_t k = 0; k < p->ncomp; k++) {
        x.own[k] = stands[k].count;
        x.enough[k].count = enough_of(x.time[k].count, exact);
        x.open[k] = wanted[k] && x.time[k].count > 0;
    }
    return any_open(&x) && fits(p) ? bound_quick(&x) : RL_OK;
}

bool rl_any_slow(const rl_plan *p, const uint32_t *cfg, bool exact, bool *slow, rl_arena *tmp) {
    rl_least *cost = rl_new(tmp, rl_least, p->ncomp), *time = rl_new(tmp, rl_least, p->ncomp);
    bool any = false;
    rl_plan_costs(p, cfg, cost, tmp);
    rl_plan_times(p, cfg, NULL, time, tmp);
    for (uint32_t k = 0; k < p->ncomp; k++)
        any |= slow[k] = (exact || cost[k].count > p->least[k].count) && p->quick[k].bound < enough_of(time[k].count, exact);
    return any;
}

/* Where the bound does not do, another is sought by the time in which products take swaps in (taken.c); it counts if it does. */
static rl_status bound_swapped(rl_plan *p, const uint32_t *cfg, bool *wanted, double limit, uint32_t *found, rl_arena *tmp) {
    rl_least *time = rl_new(tmp, rl_least, p->ncomp);
    rl_quick *was = rl_copy(tmp, p->quick, p->ncomp * sizeof *was);
    rl_kept *kept = rl_copy(tmp, p->timed, p->cls.n * sizeof *kept);
    bool *may = rl_new(tmp, bool, p->ncomp), *slow = rl_new(tmp, bool, p->ncomp), any = false;
    if (!rl_any_slow(p, cfg, false, slow, tmp)) return RL_OK;
    rl_may_swap_in(p, may);
    for (uint32_t k = 0; k < p->ncomp; k++) any |= wanted[k] = wanted[k] && may[k] && slow[k];
    if (!any) return RL_OK;
    p->swaps = rl_copy(p->mem, wanted, p->ncomp * sizeof *wanted);
    for (uint32_t k = 0; k < p->ncomp; k++)
        if (wanted[k]) p->quick[k] = (rl_quick){0};
    RL_TRY(bound_some(p, cfg, wanted, false, limit, found, tmp));
    rl_plan_times(p, cfg, NULL, time, tmp);
    for (uint32_t k = 0; k < p->ncomp; k++)
        if (wanted[k] && time[k].count == 0) p->quick[k] = (rl_quick){.known = true, .swaps = true}; /* nothing is quicker */
    for (uint32_t k = 0; k < p->ncomp; k++) p->swaps[k] = wanted[k] && p->quick[k].known && p->quick[k].bound >= enough_of(time[k].count, false);
    for (uint32_t k = 0; k < p->ncomp; k++)
        if (!p->swaps[k]) p->quick[k] = was[k];
    for (uint32_t c = 0; c < p->cls.n; c++)
        if (!p->swaps[p->cls.p[c].comp]) p->timed[c] = kept[c];
    return RL_OK;
}

static rl_status bound_all(rl_plan *p, const uint32_t *cfg, bool exact, double limit, uint32_t *found, rl_arena *tmp) {
    rl_least *cost = rl_new(tmp, rl_least, p->ncomp);
    bool *wanted = rl_new(tmp, bool, p->ncomp);
    double end = rl_work_seconds() + limit;
    p->quick = rl_new(p->mem, rl_quick, p->ncomp);
    p->timed = rl_new(p->mem, rl_kept, p->cls.n);
    p->swaps = NULL;
    rl_plan_costs(p, cfg, cost, tmp);
    for (uint32_t k = 0; k < p->ncomp; k++) wanted[k] = p->twin[k] == k && (exact || cost[k].count > p->least[k].count);
    RL_TRY(bound_some(p, cfg, wanted, exact, limit, found, tmp));
    if (!exact) RL_TRY(bound_swapped(p, cfg, wanted, RL_MAX(end - rl_work_seconds(), 0.0), found, tmp));
    for (uint32_t k = 0; k < p->op.n; k++)
        if (rl_may_move(&p->op.p[k])) found[k] = found[p->op.p[k].like];
    for (uint32_t k = 0; k < p->ncomp; k++) p->quick[k] = p->quick[p->twin[k]];
    for (uint32_t c = 0; c < p->cls.n; c++) p->timed[c] = p->timed[p->cls.p[c].like];
    return RL_OK;
}

rl_status rl_bound_quick(rl_plan *p, const uint32_t *cfg, bool exact, double limit, uint32_t *found) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    memcpy(found, cfg, p->op.n * sizeof *found);
    rl_status s = bound_all(p, cfg, exact, limit, found, &tmp);
    rl_arena_free(&tmp);
    return s;
}
