/* Finds the ops that exclude each other at a conversion (explain.h).
 *
 * Each place has a domain: the orders that it may still have.  An op takes out what none of its configurations names beside
 * the domains of its other places; ops are looked at layer by layer from the conversion, so that what clashes near it is found
 * first.  Where a domain runs empty, the record of who took out what, and because of which earlier removals, names the ops that are
 * to blame.  Where nothing runs empty though every op was looked at, one place is tried with each of its orders (trees need none of
 * this, cycles do).  Then every op of the conflict is left out once: what clashes without it does not need it.
 *
 * Needs: a plan with choices.  Keeps: everything. */
#include "explain.h"

#define MAXSTEPS 4000000   /* configurations looked at for one conversion */
#define MAXTOTAL 200000000 /* and for all */

typedef struct { uint32_t place, order; } removal;

struct rl_exsearch {
    rl_explainer *x;
    rl_exjoin join;
    uint8_t *alive;           /* [slot] */
    uint32_t *count;          /* [place] alive orders */
    uint32_t *reason, *stamp; /* [slot] the op that took it out, RL_NONE: a trial; its place in the record */
    struct { removal *p; uint32_t n, cap; } record;
    uint32_t epoch;           /* counts: a mark holds if it has the number of its making */
    uint32_t layer, look;     /* the numbers of `seen` and `known`, and of `visit` */
    uint32_t *seen, *blame, *visit, *allowed; /* [op] [op] [slot] [op] */
    uint32_t *known;          /* [place] */
    bool *waiting;            /* [op] */
    rl_exids queue, met, fit, place; /* met: ops in the sequence of their discovery; fit: what prune is at */
    uint32_t head, only;      /* only: the number of `allowed`, 0: all ops */
    uint32_t *mark, nmark;    /* [largest norder] */
    const rl_exrelax *relax;
    uint32_t wiped;           /* the place whose domain ran empty */
    int64_t steps, spent, limit;
};

static uint32_t place_of(const rl_exsearch *s, uint32_t place) { return place == s->join.place ? s->join.base : place; }
static uint32_t norder(const rl_exsearch *s, uint32_t place) { return s->x->p->cls.p[s->x->place.p[place].cls].order.n; }
static uint32_t slot_of(const rl_exsearch *s, uint32_t place, uint32_t order) { return s->x->place.p[place].slot + order; }

rl_exsearch *rl_exsearch_new(rl_explainer *x) {
    rl_exsearch *s = rl_new(x->tmp, rl_exsearch, 1);
    uint32_t most = 1, nop = x->p->op.n;
    s->x = x;
    s->alive = rl_new(x->tmp, uint8_t, x->nslot + 1);
    for (uint32_t i = 0; i < x->nslot; i++) s->alive[i] = 1;
    s->count = rl_new(x->tmp, uint32_t, x->place.n + 1);
    for (uint32_t i = 0; i < x->place.n; i++) {
        s->count[i] = norder(s, i);
        most = RL_MAX(most, norder(s, i));
    }
    s->reason = rl_new(x->tmp, uint32_t, x->nslot + 1);
    s->stamp = rl_new(x->tmp, uint32_t, x->nslot + 1);
    s->visit = rl_new(x->tmp, uint32_t, x->nslot + 1);
    s->seen = rl_new(x->tmp, uint32_t, nop + 1);
    s->blame = rl_new(x->tmp, uint32_t, nop + 1);
    s->allowed = rl_new(x->tmp, uint32_t, nop + 1);
    s->known = rl_new(x->tmp, uint32_t, x->place.n + 1);
    s->waiting = rl_new(x->tmp, bool, nop + 1);
    s->mark = rl_new(x->tmp, uint32_t, most);
    return s;
}

bool rl_exsearch_exhausted(const rl_exsearch *s) { return s->steps > s->limit; }

/* ---- configurations ---- */

typedef struct { uint32_t n, npin; const uint32_t *row; } configs;

static configs configs_of(const rl_exsearch *s, uint32_t k) {
    const rl_oplegal *op = &s->x->p->op.p[k];
    if (s->relax && s->relax->op == k) return (configs){s->relax->n, op->npin, s->relax->row};
    return (configs){op->config.n, op->npin, op->pinorder.p};
}

/* No place is named in two orders, as by Add(x, Transpose(x)). */
static bool agrees(const rl_exsearch *s, uint32_t k, uint32_t npin, const uint32_t *row) {
    for (uint32_t i = 1; i < npin; i++)
        for (uint32_t j = 0; j < i; j++)
            if (row[i] != row[j] && place_of(s, s->x->at[k][i]) == place_of(s, s->x->at[k][j])) return false;
    return true;
}

static bool is_possible(const rl_exsearch *s, uint32_t k, uint32_t npin, const uint32_t *row) {
    for (uint32_t i = 0; i < npin; i++)
        if (!s->alive[slot_of(s, place_of(s, s->x->at[k][i]), row[i])]) return false;
    return agrees(s, k, npin, row);
}

/* ---- propagation ---- */

static bool is_allowed(const rl_exsearch *s, uint32_t k) {
    if (s->only && s->allowed[k] != s->only) return false;
    return !(s->relax && s->relax->op == k && s->relax->n == 0);
}

static void take_out(rl_exsearch *s, uint32_t place, uint32_t order, uint32_t op) {
    uint32_t slot = slot_of(s, place, order);
    s->alive[slot] = 0;
    s->reason[slot] = op;
    s->stamp[slot] = s->record.n;
    s->count[place]--;
    rl_push(s->x->tmp, s->record, ((removal){place, order}));
}

static void put_back(rl_exsearch *s, uint32_t mark) {
    while (s->record.n > mark) {
        removal r = s->record.p[--s->record.n];
        s->alive[slot_of(s, r.place, r.order)] = 1;
        s->count[r.place]++;
    }
    while (s->head < s->queue.n) s->waiting[s->queue.p[s->head++]] = false;
    s->head = s->queue.n = 0;
}

static void wait_for(rl_exsearch *s, uint32_t k) {
    if (s->waiting[k]) return;
    s->waiting[k] = true;
    rl_push(s->x->tmp, s->queue, k);
}

/* Calls of f for the pins of a place, those of the joined one included. */
static void each_pin(rl_exsearch *s, uint32_t place, void (*f)(rl_exsearch *s, uint32_t k)) {
    const rl_explace *v = &s->x->place.p[place], *w = &s->x->place.p[s->join.place];
    for (uint32_t i = 0; i < v->npin; i++) f(s, s->x->pin[v->first + i].op);
    for (uint32_t i = 0; place == s->join.base && i < w->npin; i++) f(s, s->x->pin[w->first + i].op);
}

static void wake(rl_exsearch *s, uint32_t k) {
    if (s->seen[k] == s->layer) wait_for(s, k);
}

static void meet(rl_exsearch *s, uint32_t k) {
    if (s->seen[k] == s->layer || !is_allowed(s, k)) return;
    s->seen[k] = s->layer;
    rl_push(s->x->tmp, s->met, k);
    wait_for(s, k);
}

/* Takes out what the op cannot name. False when a domain ran empty. */
static bool prune(rl_exsearch *s, uint32_t k) {
    configs c = configs_of(s, k);
    s->fit.n = 0;
    s->steps += c.n;
    for (uint32_t i = 0; i < c.n; i++)
        if (is_possible(s, k, c.npin, c.row + (size_t)i * c.npin)) rl_push(s->x->tmp, s->fit, i);
    for (uint32_t pin = 0; pin < c.npin; pin++) {
        uint32_t place = place_of(s, s->x->at[k][pin]), before = s->count[place];
        s->nmark++;
        for (uint32_t i = 0; i < s->fit.n; i++) s->mark[c.row[(size_t)s->fit.p[i] * c.npin + pin]] = s->nmark;
        for (uint32_t o = 0, n = norder(s, place); o < n; o++)
            if (s->alive[slot_of(s, place, o)] && s->mark[o] != s->nmark) take_out(s, place, o, k);
        if (s->count[place] == 0) {
            s->wiped = place;
            return false;
        }
        if (s->count[place] != before) each_pin(s, place, wake);
    }
    return true;
}

static bool settle(rl_exsearch *s) {
    while (s->head < s->queue.n) {
        uint32_t k = s->queue.p[s->head++];
        s->waiting[k] = false;
        if (!prune(s, k)) return false;
    }
    s->head = s->queue.n = 0;
    return true;
}

/* Layer after layer from the conversion, until a domain runs empty or no op is left. */
static bool settle_outwards(rl_exsearch *s) {
    s->layer = ++s->epoch;
    s->met.n = s->place.n = 0;
    rl_push(s->x->tmp, s->place, s->join.base);
    s->known[s->join.base] = s->layer;
    for (uint32_t place = 0, op = 0; place < s->place.n;) {
        for (; place < s->place.n; place++) each_pin(s, s->place.p[place], meet);
        if (!settle(s)) return false;
        for (; op < s->met.n; op++)
            for (uint32_t i = 0; i < s->x->p->op.p[s->met.p[op]].npin; i++) {
                uint32_t v = place_of(s, s->x->at[s->met.p[op]][i]);
                if (s->known[v] == s->layer) continue;
                s->known[v] = s->layer;
                rl_push(s->x->tmp, s->place, v);
            }
    }
    return true;
}

/* ---- who is to blame ---- */

/* What made a configuration impossible before `stamp`: the earliest of its orders to go; RL_NONE: it never was possible. */
static uint32_t blocker(const rl_exsearch *s, uint32_t k, uint32_t npin, const uint32_t *row, uint32_t stamp) {
    uint32_t best = RL_NONE;
    if (!agrees(s, k, npin, row)) return RL_NONE;
    for (uint32_t i = 0; i < npin; i++) {
        uint32_t slot = slot_of(s, place_of(s, s->x->at[k][i]), row[i]);
        if (s->alive[slot] || s->stamp[slot] >= stamp) continue;
        if (best == RL_NONE || s->stamp[slot] < s->stamp[best]) best = slot;
    }
    return best;
}

static void look_at(rl_exsearch *s, rl_exids *work, uint32_t slot) {
    if (slot == RL_NONE || s->visit[slot] == s->look) return;
    s->visit[slot] = s->look;
    rl_push(s->x->now, *work, s->stamp[slot]);
}

/* Marks the ops whose removals emptied the domain. */
static void blame(rl_exsearch *s, uint32_t tag) {
    rl_exids work = {0};
    s->look = ++s->epoch;
    for (uint32_t o = 0, n = norder(s, s->wiped); o < n; o++) look_at(s, &work, slot_of(s, s->wiped, o));
    for (uint32_t i = 0; i < work.n; i++) {
        removal r = s->record.p[work.p[i]];
        uint32_t k = s->reason[slot_of(s, r.place, r.order)];
        if (k == RL_NONE) continue;
        s->blame[k] = tag;
        configs c = configs_of(s, k);
        for (uint32_t j = 0; j < c.n; j++)
            for (uint32_t pin = 0; pin < c.npin; pin++) {
                const uint32_t *row = c.row + (size_t)j * c.npin;
                if (row[pin] == r.order && place_of(s, s->x->at[k][pin]) == r.place)
                    look_at(s, &work, blocker(s, k, c.npin, row, work.p[i]));
            }
    }
}

/* ---- search ---- */

/* The place with the fewest orders left, more than one; the joined one first of all. */
static uint32_t undecided(const rl_exsearch *s) {
    uint32_t best = RL_NONE;
    if (s->count[s->join.base] > 1) return s->join.base;
    for (uint32_t i = 0; i < s->place.n; i++) {
        uint32_t v = s->place.p[i];
        if (s->count[v] > 1 && (best == RL_NONE || s->count[v] < s->count[best])) best = v;
    }
    return best;
}

static void try_order(rl_exsearch *s, uint32_t place, uint32_t order) {
    for (uint32_t o = 0, n = norder(s, place); o < n; o++)
        if (o != order && s->alive[slot_of(s, place, o)]) take_out(s, place, o, RL_NONE);
    each_pin(s, place, wake);
}

/* What a level of the search goes on with: the orders of a place that are not tried yet. */
typedef struct { uint32_t place, mark, next, n; uint32_t *order; } level;

static void open_level(rl_exsearch *s, level *l, uint32_t place) {
    *l = (level){.place = place, .mark = s->record.n, .order = rl_new(s->x->now, uint32_t, s->count[place])};
    uint32_t own = s->x->place.p[place].order; /* as in the plan: likeliest to fit, but for the joined place */
    if (s->alive[slot_of(s, place, own)]) l->order[l->n++] = own;
    for (uint32_t o = 0, n = norder(s, place); o < n; o++)
        if (o != own && s->alive[slot_of(s, place, o)]) l->order[l->n++] = o;
}

/* Leaves the domains as they are where everything fits. */
static rl_exverdict search(rl_exsearch *s, uint32_t tag) {
    struct { level *p; uint32_t n, cap; } l = {0};
    bool ok = settle_outwards(s);
    for (;;) {
        if (ok) {
            uint32_t v = undecided(s);
            if (v == RL_NONE) return RL_EX_FITS;
            if (rl_exsearch_exhausted(s)) return RL_EX_UNDECIDED;
            s->steps += s->place.n;
            level next;
            open_level(s, &next, v);
            rl_push(s->x->now, l, next);
        } else {
            blame(s, tag);
        }
        while (l.n && l.p[l.n - 1].next == l.p[l.n - 1].n) l.n--;
        if (!l.n) return RL_EX_CLASH;
        level *now = &l.p[l.n - 1];
        put_back(s, now->mark);
        try_order(s, now->place, now->order[now->next++]);
        ok = settle(s);
    }
}

/* One search from full domains, which it leaves behind. */
static rl_exverdict clash(rl_exsearch *s, rl_exids *why) {
    uint32_t tag = ++s->epoch;
    rl_exverdict v = search(s, tag);
    put_back(s, 0);
    why->n = 0;
    for (uint32_t i = 0; v == RL_EX_CLASH && i < s->met.n; i++) /* nearest first */
        if (s->blame[s->met.p[i]] == tag) rl_push(s->x->now, *why, s->met.p[i]);
    return v;
}

static void allow(rl_exsearch *s, const rl_exids *op, uint32_t but) {
    s->only = ++s->epoch;
    for (uint32_t i = 0; i < op->n; i++)
        if (op->p[i] != but) s->allowed[op->p[i]] = s->only;
}

/* Leaves out each op in turn, the farthest first. */
static bool shrink(rl_exsearch *s, rl_exids *op) {
    bool sure = true;
    for (uint32_t i = op->n; i-- > 0;) {
        rl_exids less = {0};
        uint32_t kept = 0;
        allow(s, op, op->p[i]);
        rl_exverdict v = rl_exsearch_exhausted(s) ? RL_EX_UNDECIDED : clash(s, &less);
        sure &= v != RL_EX_UNDECIDED;
        if (v != RL_EX_CLASH) continue;
        for (uint32_t j = 0; j < i; j++)
            for (uint32_t m = 0; m < less.n; m++) kept += less.p[m] == op->p[j];
        *op = less;
        i = kept;
    }
    s->only = 0;
    return sure;
}

rl_exverdict rl_exsearch_conflict(rl_exsearch *s, rl_exjoin j, rl_exconflict *out) {
    s->join = j;
    s->spent += s->steps;
    s->steps = 0;
    s->limit = s->spent < MAXTOTAL ? MAXSTEPS : 0;
    s->only = 0;
    s->relax = NULL;
    *out = (rl_exconflict){0};
    rl_exverdict v = clash(s, &out->op);
    if (v == RL_EX_CLASH) out->smallest = shrink(s, &out->op);
    return v;
}

rl_exverdict rl_exsearch_relaxed(rl_exsearch *s, rl_exjoin j, const rl_exids *op, const rl_exrelax *r, const uint32_t *place,
                                 uint32_t nplace, uint32_t *order) {
    s->join = j;
    s->limit = s->spent < MAXTOTAL ? 2 * MAXSTEPS : 0; /* something is left where the conflict took all */
    s->relax = r;
    allow(s, op, RL_NONE);
    rl_exverdict v = rl_exsearch_exhausted(s) ? RL_EX_UNDECIDED : search(s, ++s->epoch);
    for (uint32_t i = 0; v == RL_EX_FITS && i < nplace; i++) {
        uint32_t w = place_of(s, place[i]);
        order[i] = RL_NONE;
        for (uint32_t o = 0, n = norder(s, w); s->count[w] == 1 && o < n; o++)
            if (s->alive[slot_of(s, w, o)]) order[i] = o;
    }
    put_back(s, 0);
    s->only = 0;
    s->relax = NULL;
    return v;
}

void rl_exsearch_reach(rl_exsearch *s, rl_exjoin j, rl_exids *out) {
    s->join = j;
    s->only = 0;
    settle_outwards(s);
    put_back(s, 0);
    for (uint32_t i = 0; i < s->met.n; i++) rl_push(s->x->now, *out, s->met.p[i]);
}
