/* Shares of a component's table: what the ops to come cost at least (docs/proof.md, section 2).
 *
 * Each op answers for a part, never below 0, of the weight of each element that it may name; the parts of an element add up to its weight at most.  An
 * assignment pays for an element once, and that is no less than the parts of all ops that name it.  So any ops together cost at least the sum of their
 *
 *     least = min over configurations c of own(c) + parts of the elements of c
 *
 * and where a state has paid for some elements already, that less the ops' parts of those.  This is so for any parts, so how they are found
 * needs no trust: keep() makes whole numbers of what a search in floating point proposes, and from there on only what is free is handed out.
 *
 *   propose  parts p and shares x of configurations (of each op adding up to 1) move against each other: x towards configurations that are cheap
 *            under p, p towards elements that are asked for much (primal-dual hybrid gradient of the linear relaxation)
 *   settle   each op, first to last and back, takes all that is free and leaves what it can without a lower least
 *
 * Costs are one number here: major times more than all minors can add up to, and minor. */
#include "cert_table.h"
#include <string.h>

enum { PROPOSALS = 300, SETTLINGS = 12 };
#define STRIDE 0.4

typedef struct {
    const rl_cert_table *t;
    rl_cert_shares *s;
    uint32_t *slot;     /* of each place in step.elem, all steps one after another: place in s->elem */
    uint32_t *first;    /* [nstep] the step's first such place */
    uint32_t *head, *user; /* of place k in s->elem: user[head[k]] .. user[head[k + 1]] are the step's configurations that name it */
    int64_t *free;      /* [nelem] of its weight */
    int64_t *sum;       /* [most configurations] */
} sharing;

static int64_t number_of(const rl_cert_shares *s, rl_cert_key k) { return k.major * s->major + k.minor; }

static int64_t size_of(int64_t x) { return x < 0 ? -x : x; }

/* Finds what a major counts; false where sums would not fit. */
static bool scale(const rl_cert_table *t, rl_cert_shares *s) {
    double major = (double)size_of(t->claim.major) + (double)size_of(t->base.major);
    double minor = (double)size_of(t->claim.minor) + (double)size_of(t->base.minor);
    for (uint32_t e = 0; e < t->nelem; e++) major += (double)t->weight[e].major, minor += (double)t->weight[e].minor;
    for (uint32_t i = 0; i < t->nstep; i++) {
        const rl_cert_step *x = &t->step[i];
        double own = 0, more = 0;
        for (uint32_t c = 0; c < x->ncfg; c++) own = RL_MAX(own, (double)x->own[c].major), more = RL_MAX(more, (double)x->own[c].minor);
        major += own + (double)x->credit[0].major + (double)x->credit[1].major;
        minor += more + (double)x->credit[0].minor + (double)x->credit[1].minor;
    }
    if (major * (minor + 2) + minor > 0x1p60) return false;
    s->major = (int64_t)minor + 2;
    return true;
}

static void list_elements(rl_arena *mem, sharing *x) {
    const rl_cert_table *t = x->t;
    uint32_t *last = rl_new(mem, uint32_t, t->nelem), n = 0, most = 0, nplace = 0;
    for (uint32_t i = 0; i < t->nstep; i++) nplace += t->step[i].start[t->step[i].ncfg];
    x->first = rl_new(mem, uint32_t, t->nstep);
    x->slot = rl_new(mem, uint32_t, nplace);
    x->s->beg = rl_new(mem, uint32_t, (size_t)t->nstep + 1);
    x->s->elem = rl_new(mem, uint32_t, nplace);
    nplace = 0;
    for (uint32_t i = 0; i < t->nstep; i++) {
        const rl_cert_step *s = &t->step[i];
        x->first[i] = nplace;
        most = RL_MAX(most, s->ncfg);
        for (uint32_t k = 0; k < s->start[s->ncfg]; k++) {
            uint32_t e = s->elem[k];
            if (last[e] <= x->s->beg[i]) {
                x->s->elem[n++] = e;
                last[e] = n;
            }
            x->slot[nplace++] = last[e] - 1;
        }
        x->s->beg[i + 1] = n;
    }
    x->s->part = rl_new(mem, int64_t, n);
    x->s->least = rl_new(mem, int64_t, t->nstep);
    x->sum = rl_new(mem, int64_t, most);
    x->free = rl_new(mem, int64_t, t->nelem);
    for (uint32_t e = 0; e < t->nelem; e++) x->free[e] = number_of(x->s, t->weight[e]);
}

static void list_users(rl_arena *mem, sharing *x) {
    const rl_cert_table *t = x->t;
    uint32_t n = x->s->beg[t->nstep], at = 0;
    x->head = rl_new(mem, uint32_t, (size_t)n + 1);
    for (uint32_t i = 0; i < t->nstep; i++)
        for (uint32_t k = 0; k < t->step[i].start[t->step[i].ncfg]; k++) x->head[x->slot[x->first[i] + k]]++;
    for (uint32_t k = 0; k < n; k++) at = x->head[k] += at;
    x->head[n] = at;
    x->user = rl_new(mem, uint32_t, at);
    for (uint32_t i = 0; i < t->nstep; i++)
        for (uint32_t c = 0; c < t->step[i].ncfg; c++)
            for (uint32_t k = t->step[i].start[c]; k < t->step[i].start[c + 1]; k++) x->user[--x->head[x->slot[x->first[i] + k]]] = c;
}

/* ---- propose ---- */

typedef struct { double unit, *part, *pull, *share, *now, *over; uint32_t *beg, *user; } proposal; /* of element e: user[beg[e]] .. places in s->elem */

/* Lowers v[0..n-1] alike, and raises to 0 what falls below it, until they add up to total; which they exceed, or exact. */
static void level(double *v, uint32_t n, double total, bool exact) {
    double off = 0, sum = 0;
    uint32_t above = n, was = n + 1;
    for (uint32_t i = 0; i < n; i++) sum += exact ? v[i] : RL_MAX(v[i], 0.0);
    if (!exact && sum <= total) above = 0;
    for (bool first = true; above && above < was; first = false) {
        double in = 0;
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++)
            if (first || v[i] > off) in += v[i], m++;
        if (!m) break;
        off = (in - total) / m;
        was = first ? n + 1 : above;
        above = m;
    }
    for (uint32_t i = 0; i < n; i++) v[i] = RL_MAX(v[i] - off, 0.0);
}

static proposal start(rl_arena *mem, const sharing *x) {
    const rl_cert_table *t = x->t;
    uint32_t n = x->s->beg[t->nstep], ncfg = 0, most = 0, at = 0;
    proposal p = {.part = rl_new(mem, double, n), .pull = rl_new(mem, double, n), .over = rl_new(mem, double, t->nstep),
                  .beg = rl_new(mem, uint32_t, (size_t)t->nelem + 1), .user = rl_new(mem, uint32_t, n)};
    for (uint32_t i = 0; i < t->nstep; i++) ncfg += t->step[i].ncfg, most = RL_MAX(most, t->step[i].ncfg);
    p.share = rl_new(mem, double, ncfg);
    p.now = rl_new(mem, double, most);
    for (uint32_t k = 0; k < n; k++) p.beg[x->s->elem[k]]++;
    for (uint32_t e = 0; e < t->nelem; e++) at = p.beg[e] += at;
    p.beg[t->nelem] = at;
    for (uint32_t k = n; k-- > 0;) p.user[--p.beg[x->s->elem[k]]] = k;
    for (uint32_t e = 0; e < t->nelem; e++) p.unit = RL_MAX(p.unit, (double)x->free[e]);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t e = x->s->elem[k];
        p.part[k] = (double)x->free[e] / p.unit / (p.beg[e + 1] - p.beg[e]);
    }
    return p;
}

static void move_shares(const sharing *x, proposal *p, uint32_t i, double *share) {
    const rl_cert_step *s = &x->t->step[i];
    const uint32_t *slot = x->slot + x->first[i];
    for (uint32_t c = 0; c < s->ncfg; c++) {
        double cost = (double)number_of(x->s, s->own[c]) / p->unit;
        for (uint32_t k = s->start[c]; k < s->start[c + 1]; k++) cost += p->part[slot[k]];
        p->now[c] = share[c] - STRIDE * cost;
    }
    level(p->now, s->ncfg, 1, true);
    for (uint32_t c = 0; c < s->ncfg; c++) {
        double ahead = 2 * p->now[c] - share[c];
        share[c] = p->now[c];
        for (uint32_t k = s->start[c]; k < s->start[c + 1]; k++) p->pull[slot[k]] += ahead;
    }
}

static void move_parts(const sharing *x, proposal *p, uint32_t e) {
    uint32_t n = p->beg[e + 1] - p->beg[e];
    const uint32_t *user = p->user + p->beg[e];
    for (uint32_t i = 0; i < n; i++) {
        p->over[i] = RL_MAX(p->part[user[i]] + STRIDE * p->pull[user[i]], 0.0);
        p->pull[user[i]] = 0;
    }
    level(p->over, n, (double)number_of(x->s, x->t->weight[e]) / p->unit, false);
    for (uint32_t i = 0; i < n; i++) p->part[user[i]] = p->over[i];
}

static void propose(rl_arena *mem, sharing *x) {
    proposal p = start(mem, x);
    uint32_t ncfg = 0;
    for (uint32_t i = 0; i < x->t->nstep; i++) {
        for (uint32_t c = 0; c < x->t->step[i].ncfg; c++) p.share[ncfg + c] = 1.0 / x->t->step[i].ncfg;
        ncfg += x->t->step[i].ncfg;
    }
    for (uint32_t round = 0; round < PROPOSALS; round++) {
        double *share = p.share;
        for (uint32_t i = 0; i < x->t->nstep; share += x->t->step[i++].ncfg) move_shares(x, &p, i, share);
        for (uint32_t e = 0; e < x->t->nelem; e++) move_parts(x, &p, e);
    }
    for (uint32_t k = 0; k < x->s->beg[x->t->nstep]; k++) {
        uint32_t e = x->s->elem[k];
        double part = p.part[k] * p.unit;
        x->s->part[k] = part > 0 ? RL_MIN((int64_t)RL_MIN(part, 0x1p61), x->free[e]) : 0;
        x->free[e] -= x->s->part[k];
    }
}

/* ---- settle ---- */

static int64_t least_of(sharing *x, uint32_t i) {
    const rl_cert_step *s = &x->t->step[i];
    const uint32_t *slot = x->slot + x->first[i];
    int64_t least = INT64_MAX;
    for (uint32_t c = 0; c < s->ncfg; c++) {
        x->sum[c] = number_of(x->s, s->own[c]);
        for (uint32_t k = s->start[c]; k < s->start[c + 1]; k++) x->sum[c] += x->s->part[slot[k]];
        least = RL_MIN(least, x->sum[c]);
    }
    return least;
}

/* Leaves of each part what no configuration of the op needs. */
static void settle_op(sharing *x, uint32_t i, bool rising) {
    uint32_t beg = x->s->beg[i], n = x->s->beg[i + 1] - beg;
    for (uint32_t k = beg; k < beg + n; k++) {
        x->s->part[k] += x->free[x->s->elem[k]];
        x->free[x->s->elem[k]] = 0;
    }
    x->s->least[i] = least_of(x, i);
    for (uint32_t j = 0; j < n; j++) {
        uint32_t at = rising ? beg + j : beg + n - 1 - j;
        int64_t low = INT64_MAX;
        for (uint32_t k = x->head[at]; k < x->head[at + 1]; k++) low = RL_MIN(low, x->sum[x->user[k]]);
        int64_t spare = RL_MIN(low - x->s->least[i], x->s->part[at]);
        x->s->part[at] -= spare;
        x->free[x->s->elem[at]] += spare;
        for (uint32_t k = x->head[at]; k < x->head[at + 1]; k++) x->sum[x->user[k]] -= spare;
    }
}

static void settle(sharing *x, bool backward) {
    uint32_t n = x->t->nstep;
    int64_t total = -1, before = -2;
    for (uint32_t round = 0; round < SETTLINGS && total > before; round++) {
        before = total;
        for (uint32_t i = 0; i < 2 * n; i++) {
            uint32_t k = i < n ? i : 2 * n - 1 - i;
            settle_op(x, backward ? n - 1 - k : k, round % 2 == 0);
        }
        total = 0;
        for (uint32_t i = 0; i < n; i++) total += x->s->least[i];
    }
}

/* ---- all ---- */

bool rl_cert_share(rl_arena *mem, const rl_cert_table *t, bool backward, bool proposed, rl_cert_shares *s, uint64_t *work) {
    sharing x = {.t = t, .s = s};
    *s = (rl_cert_shares){0};
    if (!scale(t, s)) return false;
    list_elements(mem, &x);
    list_users(mem, &x);
    if (proposed) propose(mem, &x);
    settle(&x, backward);
    for (uint32_t i = 0; i < t->nstep; i++) *work += (uint64_t)t->step[i].start[t->step[i].ncfg] * (proposed ? PROPOSALS : SETTLINGS) / 4;
    return true;
}

void rl_rest_begin(rl_cert_rest *r, rl_arena *mem, const rl_cert_table *t, const rl_cert_shares *s, bool backward) {
    *r = (rl_cert_rest){s, backward, rl_new(mem, int64_t, t->nelem), 0};
    for (uint32_t k = 0; k < s->beg[t->nstep]; k++) r->part[s->elem[k]] += s->part[k];
    for (uint32_t i = 0; i < t->nstep; i++) r->least += s->least[i] - number_of(s, t->step[i].credit[backward]);
}

void rl_rest_take(rl_cert_rest *r, const rl_cert_table *t, uint32_t step) {
    for (uint32_t k = r->s->beg[step]; k < r->s->beg[step + 1]; k++) r->part[r->s->elem[k]] -= r->s->part[k];
    r->least -= r->s->least[step] - number_of(r->s, t->step[step].credit[r->backward]);
}

bool rl_rest_reaches(const rl_cert_rest *r, const rl_cert_table *t, const uint32_t *set, uint32_t n, rl_cert_key cost) {
    int64_t total = number_of(r->s, cost) + r->least;
    for (uint32_t i = 0; i < n; i++) total -= r->part[set[i]];
    return total >= number_of(r->s, t->claim);
}
