/* Shares of a component's table: what the ops to come cost at least (docs/proof.md, section 2).
 *
 * Each op answers for a part, never below 0, of the weight of each element that it may name; the parts of an element add up to its weight at most.  An
 * assignment pays for an element once, and that is no less than the parts of all ops that name it.  So any ops together cost at least the sum of their
 *
 *     least = min over configurations c of own(c) + parts of the elements of c
 *
 * and where a state has paid for some elements already, that less the ops' parts of those.  This is so for any parts, so how they are found
 * needs no trust: propose_once() makes whole numbers of what a search in floating point proposes, and from there on only what is free is handed out.
 *
 *   propose  parts p and shares x of configurations (of each op adding up to 1) move against each other: x towards configurations that are cheap
 *            under p, by factors, p towards elements that are asked for much (primal-dual hybrid gradient of the linear relaxation); rounds of such
 *            strides end at their averages, are settled, and begin again there
 *   settle   each op, first to last and back, takes all that is free and leaves what it can without a lower least
 *
 * Costs are one number here: major times more than all minors can add up to, and minor. */
#include "cert_table.h"
#include <string.h>

enum { STRIDES = 100, MOST_ROUNDS = 10, FEW_ROUNDS = 3, SETTLINGS = 12, STRIDE_WORK = 4 };
#define SHARE_STRIDE 2.0
#define PART_STRIDE 0.6
#define LEAST_SHARE 1e-12

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

/* share, sum_share: of the configurations of all steps, one after the other; sums: of the round. */
typedef struct {
    double unit, *part, *sum_part, *pull, *share, *sum_share, *now, *over;
    uint32_t *beg, *user; /* of element e: user[beg[e]] .. places in s->elem */
    uint32_t ncfg;
} proposal;

/* Lowers v[0..n-1] alike, and raises to 0 what falls below it, until they add up to total, if they exceed it. */
static void level(double *v, uint32_t n, double total) {
    double off = 0, sum = 0;
    uint32_t above = n, was = n + 1;
    for (uint32_t i = 0; i < n; i++) sum += RL_MAX(v[i], 0.0);
    if (sum <= total) above = 0;
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
    uint32_t n = x->s->beg[t->nstep], most = 0, at = 0;
    proposal p = {.part = rl_new(mem, double, n), .sum_part = rl_new(mem, double, n), .pull = rl_new(mem, double, n), .over = rl_new(mem, double, t->nstep),
                  .beg = rl_new(mem, uint32_t, (size_t)t->nelem + 1), .user = rl_new(mem, uint32_t, n)};
    for (uint32_t i = 0; i < t->nstep; i++) p.ncfg += t->step[i].ncfg, most = RL_MAX(most, t->step[i].ncfg);
    p.share = rl_new(mem, double, p.ncfg);
    p.sum_share = rl_new(mem, double, p.ncfg);
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
    double *share = p.share;
    for (uint32_t i = 0; i < t->nstep; share += t->step[i++].ncfg)
        for (uint32_t c = 0; c < t->step[i].ncfg; c++) share[c] = 1.0 / t->step[i].ncfg;
    return p;
}

/* first: the place of the step's configurations among all. */
static void move_shares(const sharing *x, proposal *p, uint32_t i, size_t first) {
    const rl_cert_step *s = &x->t->step[i];
    const uint32_t *slot = x->slot + x->first[i];
    double *share = p->share + first, *sum = p->sum_share + first, least = 1e300, all = 0;
    for (uint32_t c = 0; c < s->ncfg; c++) {
        double cost = (double)number_of(x->s, s->own[c]) / p->unit;
        for (uint32_t k = s->start[c]; k < s->start[c + 1]; k++) cost += p->part[slot[k]];
        p->now[c] = cost;
        least = RL_MIN(least, cost);
    }
    for (uint32_t c = 0; c < s->ncfg; c++) {
        double z = SHARE_STRIDE * (p->now[c] - least); /* exp(-z), nearly */
        all += p->now[c] = RL_MAX(share[c], LEAST_SHARE) / (1 + z + z * z / 2);
    }
    for (uint32_t c = 0; c < s->ncfg; c++) {
        double next = p->now[c] / all, ahead = 2 * next - share[c];
        share[c] = next;
        sum[c] += next;
        for (uint32_t k = s->start[c]; k < s->start[c + 1]; k++) p->pull[slot[k]] += ahead;
    }
}

static void move_parts(const sharing *x, proposal *p, uint32_t e) {
    uint32_t n = p->beg[e + 1] - p->beg[e];
    const uint32_t *user = p->user + p->beg[e];
    for (uint32_t i = 0; i < n; i++) {
        p->over[i] = RL_MAX(p->part[user[i]] + PART_STRIDE * p->pull[user[i]], 0.0);
        p->pull[user[i]] = 0;
    }
    level(p->over, n, (double)number_of(x->s, x->t->weight[e]) / p->unit);
    for (uint32_t i = 0; i < n; i++) p->sum_part[user[i]] += p->part[user[i]] = p->over[i];
}

static void take_average(double *v, double *sum, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        v[i] = sum[i] / STRIDES;
        sum[i] = 0;
    }
}

/* One round: what it comes to, as whole numbers. */
static void propose_once(sharing *x, proposal *p) {
    for (uint32_t round = 0; round < STRIDES; round++) {
        size_t first = 0;
        for (uint32_t i = 0; i < x->t->nstep; first += x->t->step[i++].ncfg) move_shares(x, p, i, first);
        for (uint32_t e = 0; e < x->t->nelem; e++) move_parts(x, p, e);
    }
    take_average(p->share, p->sum_share, p->ncfg);
    take_average(p->part, p->sum_part, x->s->beg[x->t->nstep]);
    for (uint32_t e = 0; e < x->t->nelem; e++) x->free[e] = number_of(x->s, x->t->weight[e]);
    for (uint32_t k = 0; k < x->s->beg[x->t->nstep]; k++) {
        uint32_t e = x->s->elem[k];
        double part = p->part[k] * p->unit;
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

/* There and back; what all ops cost at least. */
static int64_t settle_once(sharing *x, bool backward, bool rising) {
    uint32_t n = x->t->nstep;
    int64_t total = 0;
    for (uint32_t i = 0; i < 2 * n; i++) {
        uint32_t k = i < n ? i : 2 * n - 1 - i;
        settle_op(x, backward ? n - 1 - k : k, rising);
    }
    for (uint32_t i = 0; i < n; i++) total += x->s->least[i];
    return total;
}

static void settle(sharing *x, bool backward) {
    int64_t total = -1, before = -2;
    for (uint32_t round = 0; round < SETTLINGS && total > before; round++) {
        before = total;
        total = settle_once(x, backward, round % 2 == 0);
    }
}

/* ---- rounds ---- */

static uint64_t work_of(const sharing *x, uint32_t rounds) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < x->t->nstep; i++) n += x->t->step[i].start[x->t->step[i].ncfg];
    return n * rounds;
}

/* Leaves the best parts of all rounds.  They end where the claim is reached, or a round brings little of what is missing. */
static void propose(rl_arena *mem, sharing *x, bool backward, uint64_t maxwork, uint64_t *work) {
    const rl_cert_table *t = x->t;
    uint32_t n = x->s->beg[t->nstep];
    proposal p = start(mem, x);
    int64_t *part = rl_new(mem, int64_t, n), *left = rl_new(mem, int64_t, t->nelem), best = -1, enough = number_of(x->s, rl_key_sub(t->claim, t->base));
    for (uint32_t i = 0; i < t->nstep; i++) enough += number_of(x->s, t->step[i].credit[backward]);
    for (uint32_t round = 0; round < MOST_ROUNDS && *work <= maxwork; round++) {
        propose_once(x, &p);
        int64_t total = settle_once(x, backward, true), gain = total - best;
        *work += work_of(x, STRIDES * STRIDE_WORK);
        for (uint32_t k = 0; k < n; k++) p.part[k] = (double)x->s->part[k] / p.unit;
        if (gain > 0) {
            best = total;
            memcpy(part, x->s->part, n * sizeof *part);
            memcpy(left, x->free, t->nelem * sizeof *left);
        }
        if (best >= enough || (round + 1 >= FEW_ROUNDS && gain < (enough - best) / 16)) break;
    }
    memcpy(x->s->part, part, n * sizeof *part);
    memcpy(x->free, left, t->nelem * sizeof *left);
}

bool rl_cert_share(rl_arena *mem, const rl_cert_table *t, bool backward, bool proposed, const rl_cert_shares *from, rl_cert_shares *s, uint64_t maxwork,
                   uint64_t *work) {
    sharing x = {.t = t, .s = s};
    *s = (rl_cert_shares){0};
    if (!scale(t, s)) return false;
    list_elements(mem, &x);
    list_users(mem, &x);
    if (from) memcpy(s->part, from->part, s->beg[t->nstep] * sizeof *s->part);
    for (uint32_t k = 0; from && k < s->beg[t->nstep]; k++) x.free[s->elem[k]] -= s->part[k];
    if (proposed && !from) propose(mem, &x, backward, maxwork, work);
    settle(&x, backward);
    *work += work_of(&x, SETTLINGS) / 4;
    return true;
}

void rl_rest_begin(rl_cert_rest *r, rl_arena *mem, const rl_cert_table *t, const rl_cert_shares *s, bool backward) {
    *r = (rl_cert_rest){s, backward, rl_new(mem, int64_t, t->nelem), 0};
    for (uint32_t k = 0; k < s->beg[t->nstep]; k++) r->part[s->elem[k]] += s->part[k];
    for (uint32_t i = 0; i < t->nstep; i++) r->least += s->least[i] - number_of(s, t->step[i].credit[backward]);
}

bool rl_rest_is_close(const rl_cert_rest *r, const rl_cert_table *t) {
    int64_t most = 0;
    for (uint32_t e = 0; e < t->nelem; e++) most = RL_MAX(most, number_of(r->s, t->weight[e]));
    return number_of(r->s, rl_key_sub(t->claim, t->base)) - r->least < most;
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
