/* A lower bound of the assignment problem that is nearly tight where that of shares alone is not (solve.h).
 *
 * The ops are taken in spans, one run of them after another.  In each the least total is found exactly, with the part of an order's weight that the ops of
 * the span answer for (solve_share.c) in place of its weight.  A choice pays for an order once, which is no less than the parts of the spans that name it, so
 *
 *     total >= what is paid for certain + sum over spans of the least
 *
 * What makes the linear relaxation fall short, such as Transposes around a cycle that do not cancel, mostly lies within a block of the network: a span
 * sees that, and between blocks the parts of the relaxation are right.
 *     ops 0 .. 44 | 45 .. 91     order 3 of x weighs 100: 60 in the first span, 40 in the second
 *
 * Decomposition by copies of shared variables (Guignard and Kim 1987). */
#include "solve_cover.h"

/* What is paid for certain, and what one op alone can name (docs/proof.md, section 2). */
typedef struct { bool *certain; uint32_t *users; } paid;

static paid find_paid(rl_arena *mem, const rl_cover *p) {
    paid x = {rl_new(mem, bool, p->nelem), rl_new(mem, uint32_t, p->nelem)};
    uint32_t *op = rl_new(mem, uint32_t, p->nelem), *n = rl_new(mem, uint32_t, p->nelem); /* 1 + the last op that names it, in how many configurations */
    for (uint32_t o = 0; o < p->nop; o++) {
        const rl_bundle *b = &p->op[o];
        for (size_t k = 0; k < (size_t)b->ncfg * b->width; k++) {
            uint32_t e = b->elem[k];
            if (e == RL_NONE) continue;
            if (op[e] != o + 1) n[e] = 0, x.users[e]++;
            op[e] = o + 1;
            x.certain[e] |= ++n[e] == b->ncfg;
        }
    }
    return x;
}

/* Takes elements of no weight out of the configurations of an op; and adds what is paid by it alone to their costs. */
static void drop(rl_bundle *b, const int64_t *weight, const paid *x) {
    for (uint32_t c = 0; c < b->ncfg; c++) {
        uint32_t *set = b->elem + (size_t)c * b->width, n = 0;
        for (uint32_t i = 0; i < b->width && set[i] != RL_NONE; i++) {
            bool alone = x && x->users[set[i]] == 1 && !x->certain[set[i]];
            if (alone) b->cost[c] += weight[set[i]];
            if (weight[set[i]] > 0 && !alone && !(x && x->certain[set[i]])) set[n++] = set[i];
        }
        while (n < b->width) set[n++] = RL_NONE;
    }
}

/* What the op costs by itself, whatever is chosen, taken out. */
static int64_t take_least(rl_bundle *b) {
    int64_t least = INT64_MAX;
    for (uint32_t c = 0; c < b->ncfg; c++) least = RL_MIN(least, b->cost[c]);
    for (uint32_t c = 0; c < b->ncfg; c++) b->cost[c] -= least;
    return least;
}

/* Elements that ops on both sides of each position name: the fewer, the better a place to cut. */
static uint32_t *count_crossing(rl_arena *mem, const rl_cover *p) {
    uint32_t *first = rl_new(mem, uint32_t, p->nelem), *last = rl_new(mem, uint32_t, p->nelem), *n = rl_new(mem, uint32_t, (size_t)p->nop + 2);
    for (uint32_t o = 0; o < p->nop; o++)
        for (size_t k = 0; k < (size_t)p->op[o].ncfg * p->op[o].width; k++) {
            uint32_t e = p->op[o].elem[k];
            if (e == RL_NONE) continue;
            if (!first[e]) first[e] = o + 1;
            last[e] = o + 1;
        }
    for (uint32_t e = 0; e < p->nelem; e++)
        if (first[e]) n[first[e]]++, n[last[e]]--;
    for (uint32_t i = 1; i <= p->nop; i++) n[i] += n[i - 1];
    return n;
}

/* Returns how many spans; end: where each does. Of about so many ops that have a choice. */
static uint32_t cut(rl_arena *mem, const rl_cover *p, uint32_t about, uint32_t *end) {
    const uint32_t *crossing = count_crossing(mem, p);
    uint32_t *choices = rl_new(mem, uint32_t, (size_t)p->nop + 1), n = 0;
    for (uint32_t o = 0; o < p->nop; o++) choices[o + 1] = choices[o] + (p->op[o].ncfg > 1);
    for (uint32_t at = 0; at < p->nop;) {
        uint32_t best = p->nop;
        for (uint32_t i = at + 1; i < p->nop && choices[p->nop] - choices[at] > about * 3 / 2; i++) {
            uint32_t has = choices[i] - choices[at];
            if (has >= about / 2 && has <= about * 3 / 2 && (best == p->nop || crossing[i] < crossing[best])) best = i;
        }
        end[n++] = at = best;
    }
    return n;
}

/* Span i: what its orders weigh in it.  left: [nelem] what no op answers for; the first span that names it does. */
static void weigh(rl_arena *mem, const rl_cover *p, const rl_shares *s, uint32_t beg, uint32_t end, int64_t *left, int64_t *weight, rl_opspan *out) {
    struct { uint32_t *p; uint32_t n, cap; } named = {0};
    for (uint32_t k = s->beg[beg]; k < s->beg[end]; k++) {
        uint32_t e = s->elem[k];
        int64_t more = s->part[k] + left[e];
        left[e] = 0;
        if (more > 0 && weight[e] == 0) rl_push(mem, named, e);
        weight[e] += more;
    }
    out->weigh = rl_new(mem, rl_weigh, named.n);
    out->nweigh = named.n;
    for (uint32_t i = 0; i < named.n; i++) out->weigh[i] = (rl_weigh){p->value[named.p[i]], named.p[i], weight[named.p[i]]};
}

/* The least of ops beg .. end - 1, where orders weigh so much.  (Folds are of values whose orders weigh alike.) */
static int64_t least_of(rl_arena *mem, const rl_cover *p, const int64_t *weight, uint32_t beg, uint32_t end, double deadline) {
    rl_cover q = *p;
    q.nop = end - beg;
    q.base = q.slack = 0;
    q.upper = INT64_MAX;
    q.weight = rl_copy(mem, weight, p->nelem * sizeof *weight);
    q.op = rl_copy(mem, p->op + beg, q.nop * sizeof *q.op);
    for (uint32_t o = 0; o < q.nop; o++) {
        rl_bundle *b = &q.op[o];
        b->elem = rl_copy(mem, b->elem, (size_t)b->ncfg * b->width * sizeof *b->elem);
        b->cost = rl_copy(mem, b->cost, b->ncfg * sizeof *b->cost);
        b->orig = rl_copy(mem, b->orig, b->ncfg * sizeof *b->orig);
        drop(b, weight, NULL);
    }
    return rl_cover_solve(mem, &q, true, deadline).bound;
}

/* A span may take twice its share of the time that is left: most need less. */
static void solve_spans(rl_arena *mem, rl_arena *tmp, const rl_cover *p, const rl_shares *s, const uint32_t *end, double deadline, rl_opspans *out) {
    int64_t *left = rl_copy(tmp, p->weight, p->nelem * sizeof *left), *weight = rl_new(tmp, int64_t, p->nelem);
    rl_arena one;
    rl_arena_init(&one, mem->ctx);
    for (uint32_t k = 0; k < s->beg[p->nop]; k++) left[s->elem[k]] -= s->part[k];
    for (uint32_t i = 0, beg = 0; i < out->n; beg = end[i++]) {
        rl_opspan *x = &out->span[i];
        double now = rl_work_seconds();
        weigh(mem, p, s, beg, end[i], left, weight, x);
        x->nop = end[i] - beg;
        x->least = least_of(&one, p, weight, beg, end[i], RL_MIN(now + 2 * (deadline - now) / (out->n - i), deadline));
        out->bound += x->least;
        for (uint32_t k = 0; k < x->nweigh; k++) weight[x->weigh[k].order] = 0;
        rl_arena_free(&one);
    }
}

/* Elements become orders of their values. */
static void number_orders(const rl_problem *p, rl_arena *tmp, const rl_cover *c, rl_opspans *out) {
    uint32_t *first = rl_new(tmp, uint32_t, p->nval);
    for (uint32_t e = c->nelem; e-- > 0;) first[c->value[e]] = e;
    for (uint32_t i = 0; i < out->n; i++)
        for (uint32_t k = 0; k < out->span[i].nweigh; k++) out->span[i].weigh[k].order -= first[out->span[i].weigh[k].value];
}

rl_status rl_span_begin(rl_arena *mem, const rl_problem *p, rl_spanning *x) {
    *x = (rl_spanning){.problem = p, .cover = rl_new(mem, rl_cover, 1), .mem = mem};
    rl_cover *c = x->cover;
    RL_TRY(rl_cover_of(mem, p, c));
    const paid found = find_paid(mem, c);
    x->base = c->base;
    for (uint32_t e = 0; e < c->nelem; e++) x->base += found.certain[e] ? c->weight[e] : 0;
    for (uint32_t o = 0; o < c->nop; o++) {
        drop(&c->op[o], c->weight, &found);
        x->base += take_least(&c->op[o]);
    }
    return RL_OK;
}

void rl_solve_spans(rl_arena *mem, rl_spanning *x, uint32_t about, int64_t enough, double deadline, rl_opspans *out) {
    rl_arena tmp;
    rl_arena_init(&tmp, mem->ctx);
    const rl_cover *c = x->cover;
    uint32_t *end = rl_new(&tmp, uint32_t, c->nop);
    *out = (rl_opspans){.n = cut(&tmp, c, about, end), .bound = x->base};
    if (out->n < 2) *out = (rl_opspans){0};
    else {
        if (!x->shares) {
            uint32_t *seq = rl_new(&tmp, uint32_t, c->nop);
            for (uint32_t o = 0; o < c->nop; o++) seq[o] = o;
            x->shares = rl_new(x->mem, rl_shares, 1);
            *x->shares = rl_share_out(x->mem, c, seq, true, NULL, enough - x->base, deadline);
        }
        out->span = rl_new(mem, rl_opspan, out->n);
        solve_spans(mem, &tmp, c, x->shares, end, deadline, out);
        number_orders(x->problem, &tmp, c, out);
    }
    rl_arena_free(&tmp);
}
