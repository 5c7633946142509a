/* The table of a component: whether its ops can cost less than the claim (docs/proof.md, section 2).
 *
 * A pass takes the ops one after another (cert_step.c, cert_select.c).  If no state is left whose cost is below the claim, the claim
 * holds.  One pass is enough for most components.  Where states were merged for want of room and some are left, the next pass goes the
 * other way, guided by what this one left after each op; it needs fewer states and so merges fewer, and may have twice as many.  From the second on,
 * or where ops have many configurations from the first, shares say what the ops to come cost at least (cert_share.c); where these come close to the claim,
 * few states are below it, and more may stay.  A pass that merged nothing decides.  Where two layouts meet a flow decides (cert_flow.c), after a pass or two: however many values are in use at
 * once, it needs no more. */
#include "cert_table.h"

/* States after an op in the first pass; states that an op may make before the ones before it are merged.  Tests set them low, so that
 * small components take every path. */
#ifndef RL_CERT_CAP
#define RL_CERT_CAP 64
#define RL_CERT_MADE (1 << 17)
#endif
enum {
    FIRST_CAP = RL_CERT_CAP,
    CLOSE_CAP = 32 * FIRST_CAP,   /* where shares come close to the claim */
    FEW = (FIRST_CAP + 3) / 4,    /* states before a flow is tried */
    LARGE = 1 << 13,              /* configurations of a table that begins with shares, */
    LARGE_OP = 16,                /* and of its ops on the average */
    MOST_MADE = RL_CERT_MADE,
    ALL_LAYERS = 1 << 21,         /* states recorded in a pass */
    MOST_ELEM = 1 << 24,          /* a state may have thousands of elements: of all states after one op, and of all that are recorded, */
    OP_ELEM = 1 << 8,             /* to which each op adds as many */
};

/* ---- room ---- */

static void make_view(rl_filler *d) {
    const rl_cert_table *t = d->t;
    uint32_t maxcfg = 1, maxelem = 1;
    for (uint32_t i = 0; i < t->nstep; i++) {
        maxcfg = RL_MAX(maxcfg, t->step[i].ncfg);
        maxelem = RL_MAX(maxelem, t->step[i].start[t->step[i].ncfg]);
    }
    rl_cert_view *v = &d->op;
    v->full = rl_new(d->mem, rl_cert_key, maxcfg);
    v->dying = rl_new(d->mem, rl_cert_key, maxcfg);
    v->got = rl_new(d->mem, rl_cert_key, maxcfg);
    v->gotdying = rl_new(d->mem, rl_cert_key, maxcfg);
    v->bydying = rl_new(d->mem, rl_rank, maxcfg);
    v->touched = rl_new(d->mem, uint32_t, maxcfg);
    v->hit = rl_new(d->mem, bool, maxcfg);
    v->user = rl_new(d->mem, uint32_t, maxelem);
    v->head = rl_new(d->mem, uint32_t, (size_t)t->nelem + 1);
    v->slot = rl_new(d->mem, uint32_t, t->nelem);
    v->name = rl_new(d->mem, uint32_t, t->nelem);
}

/* A word for each element, so that a set's hash is a sum. */
static uint64_t random_word(uint64_t x) {
    x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void make_room(rl_filler *d) {
    uint32_t nelem = d->t->nelem;
    make_view(d);
    d->last = rl_new(d->mem, uint32_t, nelem);
    d->word = rl_new(d->mem, uint64_t, nelem);
    d->stay = rl_new(d->mem, uint32_t, nelem);
    d->live = rl_new(d->mem, uint32_t, nelem);
    d->mark = rl_new(d->mem, uint64_t, nelem);
    d->kept.head = rl_new(d->mem, uint32_t, nelem);
    d->kept.count = rl_new(d->mem, uint32_t, nelem);
    d->guides.head = rl_new(d->mem, uint32_t, nelem);
    d->guides.count = rl_new(d->mem, uint32_t, nelem);
    d->ahead = rl_new(d->mem, rl_cert_key, (size_t)d->t->nstep + 1);
    for (uint32_t e = 0; e < nelem; e++) d->word[e] = random_word(e);
    rl_layer_reserve(d->mem, &d->cur, 0);
    rl_layer_reserve(d->mem, &d->next, 0);
}

/* ---- a pass ---- */

/* last, and what the ops from each position on must pay: the least that an op's new elements cost. */
static void look_ahead(rl_filler *d) {
    uint32_t *first = d->stay, n = d->t->nstep;
    for (uint32_t i = n; i-- > 0;) {
        const rl_cert_step *s = rl_step_at(d, i);
        for (uint32_t k = 0; k < s->start[s->ncfg]; k++) first[s->elem[k]] = i;
    }
    d->ahead[n] = (rl_cert_key){0, 0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < rl_step_at(d, i)->start[rl_step_at(d, i)->ncfg]; k++) d->last[rl_step_at(d, i)->elem[k]] = i;
    for (uint32_t i = n; i-- > 0;) {
        const rl_cert_step *s = rl_step_at(d, i);
        rl_cert_key least = {INT64_MAX, INT64_MAX};
        for (uint32_t c = 0; c < s->ncfg; c++) {
            rl_cert_key x = s->own[c];
            for (uint32_t k = s->start[c]; k < s->start[c + 1]; k++)
                if (first[s->elem[k]] == i) x = rl_key_add(x, d->t->weight[s->elem[k]]);
            if (rl_key_less(x, least)) least = x;
        }
        d->ahead[i] = rl_key_add(d->ahead[i + 1], rl_key_sub(least, rl_credit_at(d, i)));
    }
}

static rl_layer_sets copy_layer(rl_arena *mem, const rl_layer_sets *f) {
    rl_layer_sets x = {.n = f->n, .nelem = f->nelem};
    x.cost = rl_copy(mem, f->cost, f->n * sizeof *f->cost);
    x.beg = rl_copy(mem, f->beg, ((size_t)f->n + 1) * sizeof *f->beg);
    x.elem = rl_copy(mem, f->elem, f->nelem * sizeof *f->elem);
    return x;
}

/* d->meet after no op: what must be added to the costs of the two sides that meet.  The base, and the credit of each value that ops on
 * both sides name, is in both. */
static rl_cert_key meet_first(const rl_filler *d) {
    rl_cert_key x = rl_key_sub((rl_cert_key){0, 0}, d->t->base);
    for (uint32_t i = 0; d->backward && i < d->t->nstep; i++) x = rl_key_add(x, rl_key_sub(d->t->step[i].credit[0], d->t->step[i].credit[1]));
    return x;
}

/* From no op to all; other: the layers of the pass in the other direction, or NULL.  layer[i] becomes what i ops leave.
 * False when the work is spent, one state leads to too many, or the layers are too large. */
static bool pass(rl_filler *d, rl_arena *record, const rl_layer_sets *other, rl_layer_sets *layer) {
    uint32_t n = d->t->nstep;
    size_t recorded = 0;
    d->merged = false;
    look_ahead(d);
    d->meet = meet_first(d);
    rl_layer_empty(&d->cur);
    d->cur.cost[d->cur.n++] = d->t->base;
    d->cur.beg[1] = 0;
    if (!rl_key_less(rl_key_add(d->t->base, d->ahead[0]), d->t->claim)) d->cur.n = 0;
    for (uint32_t k = 0; k < d->nshare; k++)
        if (rl_rest_reaches(&d->rest[k], d->t, NULL, 0, d->t->base)) d->cur.n = 0;
    for (d->pos = 0; d->pos < n && d->cur.n; d->pos++) {
        layer[d->pos] = copy_layer(record, &d->cur);
        recorded += d->cur.nelem;
        if (recorded > MOST_ELEM + (size_t)OP_ELEM * n) return false;
        d->guide = other ? &other[n - 1 - d->pos] : NULL;
        const rl_cert_step *s = rl_step_at(d, d->pos);
        for (uint32_t k = 0; k < d->nshare; k++) rl_rest_take(&d->rest[k], d->t, (uint32_t)(s - d->t->step));
        d->meet = rl_key_add(d->meet, rl_key_sub(s->credit[d->backward], s->credit[!d->backward]));
        while (!rl_step_take(d, MOST_MADE, MOST_ELEM))
            if (rl_filler_spent(d) || !rl_step_shrink(d)) return false;
        rl_step_select(d);
        if (rl_filler_spent(d)) return false;
    }
    layer[d->pos] = copy_layer(record, &d->cur);
    return true;
}

/* Those of the pass to come; they are made once for each direction. */
static void begin_shares(rl_filler *d, rl_cert_shares shares[2][RL_CERT_NSHARE]) {
    for (d->nshare = 0; d->nshare < RL_CERT_NSHARE && !rl_filler_spent(d); d->nshare++) {
        rl_cert_shares *s = &shares[d->backward][d->nshare], *other = &shares[!d->backward][d->nshare];
        const rl_cert_shares *from = d->nshare > 0 && other->major ? other : NULL;
        if (!s->major && !rl_cert_share(d->mem, d->t, d->backward, d->nshare > 0, from, s, d->maxwork, &d->work)) break;
        rl_rest_begin(&d->rest[d->nshare], d->mem, d->t, s, d->backward);
    }
}

/* Have the ops so many configurations that a pass without shares takes longer than these? */
static bool is_large(const rl_cert_table *t) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->nstep; i++) n += t->step[i].ncfg;
    return n > LARGE && n / t->nstep > LARGE_OP;
}

static rl_cert_verdict fill(rl_arena *mem, const rl_cert_table *t, uint32_t maxstate, uint64_t maxwork, uint64_t *work, rl_cert_key *left) {
    rl_filler d = {.mem = mem, .t = t, .work = *work, .maxwork = maxwork};
    rl_arena record[2];
    rl_layer_sets *layer[2];
    rl_cert_shares shares[2][RL_CERT_NSHARE] = {0};
    uint32_t most = RL_MIN(maxstate, RL_MAX((uint32_t)ALL_LAYERS / RL_MAX(t->nstep, 1u), (uint32_t)FIRST_CAP));
    rl_cert_verdict is = RL_CERT_TOO_MANY;
    const bool large = is_large(t);
    make_room(&d);
    for (uint32_t i = 0; i < 2; i++) {
        rl_arena_init(&record[i], mem->ctx);
        layer[i] = rl_new(mem, rl_layer_sets, (size_t)t->nstep + 1);
    }
    d.cap = RL_MIN((uint32_t)FIRST_CAP, maxstate);
    for (bool first = true; is == RL_CERT_TOO_MANY && d.cap <= most; first = false, d.backward = !d.backward) {
        rl_arena_free(&record[d.backward]);
        if (!first || large) begin_shares(&d, shares);
        if (d.nshare && rl_rest_is_close(&d.rest[d.nshare - 1], t)) d.cap = RL_MAX(d.cap, RL_MIN((uint32_t)CLOSE_CAP, most));
        if (!pass(&d, &record[d.backward], first ? NULL : layer[!d.backward], layer[d.backward])) break;
        const rl_layer_sets *end = &d.cur; /* one state at most: after the last op all sets are empty */
        if (!end->n) is = RL_CERT_HOLDS;
        else if (!d.merged) is = RL_CERT_CHEAPER;
        *left = end->n ? end->cost[0] : t->claim;
        d.cap *= 2;
    }
    for (uint32_t i = 0; i < 2; i++) rl_arena_free(&record[i]);
    *work = d.work;
    return is;
}

rl_cert_verdict rl_cert_table_fill(rl_arena *mem, const rl_cert_table *t, uint32_t maxstate, uint64_t maxwork, uint64_t *work, rl_cert_key *left) {
    rl_cert_verdict is = RL_CERT_TOO_MANY;
    bool two = true;
    for (uint32_t i = 0; i < t->nstep; i++) two &= t->step[i].ncfg <= 2;
    if (two) is = fill(mem, t, RL_MIN(maxstate, (uint32_t)FEW), maxwork, work, left);
    if (two && is == RL_CERT_TOO_MANY) is = rl_cert_flow(mem, t, maxwork, work, left);
    return is == RL_CERT_TOO_MANY ? fill(mem, t, maxstate, maxwork, work, left) : is;
}
