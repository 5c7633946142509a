/* The table of a component: the least that its ops can cost (docs/proof.md, section 2).
 *
 * The ops are taken in the order that the certificate gives.  A state is the set S of elements that are paid and that a later op can
 * name, with the least cost known to lead to it.  Choosing configuration c adds extra(c) = own(c) + weight(c \ S), the same credit for
 * every c, and leaves S + c without what no later op can name.  What is not looked at, and why that loses nothing:
 *
 *   claim      A state whose cost, with what every completion must still pay, reaches the claim: no completion is cheaper than the
 *              claim.  Op q of those to come pays at least min over its configurations c of own(c) + weight of the elements of c that no
 *              op before q can name (they cannot be paid before q), less its credit; such elements of different ops differ, so these
 *              sums add up.
 *   dominance  State B, when another, A, has cost(A) + weight(B \ A) <= cost(B).  Whatever B's completion does, A can do the same:
 *              it pays for an element what B pays or, if B has it and A has not, its weight, at most weight(B \ A) in all.
 *   lookahead  Let b have the least extra of all configurations in S, and let B and C be the states after b and c.  Then
 *                  weight(C \ B) = weight(those elements of c that are new, that a later op can name, and that are not in b)
 *              as B has what C has of S.  So C is dominated by B if extra(b) + weight(C \ B) <= extra(c), that is, if
 *                  extra(b) <= gone(c) = own(c) + weight(elements of c that are new, and that no later op can name or b has too)
 *              A configuration that shares nothing with S nor with b has the same gone(c) in every such S: own(c) + what dies of it.
 *              Sorted by that, only a head of the list needs a look; of the others, those that share an element with S or b.
 *
 * Dominance has an order: states cheap first, of equal cost the larger first, and each is compared with those that stayed before it.
 * A that dominates B shares more than weight(B) - (cost(B) - least cost) with B; so it holds one of any elements of B that together
 * weigh more than cost(B) - least cost, and the rarest such elements are asked for their states. */
#include "cert_internal.h"

#include <stdlib.h>
#include <string.h>

/* Sets of elements, rising, one after another. */
typedef struct {
    uint32_t n, cap;
    size_t nelem, capelem;
    rl_cert_key *cost;
    uint64_t *hash; /* sum of its elements' words */
    size_t *beg;    /* [n + 1] */
    uint32_t *elem;
} layer;

typedef struct { rl_cert_key cost; uint32_t size, id; } rank;
typedef struct { uint32_t state, next; } link; /* next: 1 + place, 0 at the end */

/* The op being taken. */
typedef struct {
    const rl_cert_step *s;
    rl_cert_key *full, *dying; /* [ncfg] with everything new; of that, what no later op can name */
    uint32_t *head, *user;     /* element k of the op: user[head[k]] .. user[head[k + 1]] are the configurations that name it */
    uint32_t *slot;            /* [nelem] 1 + its k, 0: not named by the op */
    uint32_t *name, nname;     /* the op's elements */
    rank *bydying;
    rl_cert_key *got, *gotdying; /* [ncfg] what the state has of it */
    uint32_t *touched, ntouched;
    bool *hit;                   /* [ncfg] is in touched */
} view;

typedef struct {
    rl_arena *mem;
    const rl_cert_table *t;
    uint32_t maxstate, pos;
    uint32_t *last;     /* [nelem] the last op that can name it */
    uint64_t *word;     /* [nelem] random */
    rl_cert_key *ahead; /* [nstep + 1] what the ops from here on must pay */
    layer cur, next;
    uint32_t *table, tablecap;
    view op;
    uint32_t *stay, nstay;     /* of the state being expanded: what a later op can name */
    uint32_t *live;            /* the same of a configuration */
    uint64_t *mark, stamp;     /* [nelem] e is marked: mark[e] == stamp */
    rank *order;
    uint32_t *asked, ordercap; /* [states] the last state that was compared with it, + 1 */
    uint32_t *holders, *nholder; /* [nelem] 1 + the first link, how many */
    struct { link *p; uint32_t n, cap; } links;
} filler;

/* ---- layers ---- */

static void reserve(rl_arena *mem, layer *f, size_t nelem) {
    if (f->n + 2 > f->cap) {
        uint32_t cap = f->cap ? f->cap * 2 : 256;
        f->cost = rl_grow(mem, f->cost, f->cap, cap, sizeof *f->cost);
        f->hash = rl_grow(mem, f->hash, f->cap, cap, sizeof *f->hash);
        f->beg = rl_grow(mem, f->beg, f->cap, cap, sizeof *f->beg);
        f->cap = cap;
    }
    if (nelem >= f->capelem - f->nelem) {
        size_t cap = RL_MAX(f->capelem * 2, f->nelem + nelem + 1024);
        f->elem = rl_grow(mem, f->elem, f->capelem, cap, sizeof *f->elem);
        f->capelem = cap;
    }
}

static void empty(layer *f) {
    f->n = 0;
    f->nelem = 0;
    f->beg[0] = 0;
}

static uint32_t size_of(const layer *f, uint32_t s) {
    return (uint32_t)(f->beg[s + 1] - f->beg[s]);
}

static void resize_table(filler *d) {
    d->tablecap = d->tablecap ? d->tablecap * 2 : 1024;
    d->table = rl_new(d->mem, uint32_t, d->tablecap);
    for (uint32_t s = 0; s < d->next.n; s++) {
        uint32_t i = (uint32_t)(d->next.hash[s] >> 32) & (d->tablecap - 1);
        while (d->table[i]) i = (i + 1) & (d->tablecap - 1);
        d->table[i] = s + 1;
    }
}

/* Adds the set of n elements that lies behind the last one of next, or makes the one that is there cheaper. */
static void add_state(filler *d, uint32_t n, rl_cert_key cost) {
    layer *f = &d->next;
    const uint32_t *set = f->elem + f->nelem;
    uint64_t hash = 0;
    for (uint32_t k = 0; k < n; k++) hash += d->word[set[k]];
    if (f->n >= d->tablecap / 2) resize_table(d);
    uint32_t i = (uint32_t)(hash >> 32) & (d->tablecap - 1);
    for (uint32_t s; (s = d->table[i]) != 0; i = (i + 1) & (d->tablecap - 1)) {
        if (f->hash[--s] != hash || size_of(f, s) != n || memcmp(f->elem + f->beg[s], set, n * sizeof *set) != 0) continue;
        if (rl_key_less(cost, f->cost[s])) f->cost[s] = cost;
        return;
    }
    d->table[i] = f->n + 1;
    f->hash[f->n] = hash;
    f->cost[f->n++] = cost;
    f->beg[f->n] = f->nelem += n;
}

/* ---- the op ---- */

static int cheap_first(const void *a, const void *b) {
    const rank *x = a, *y = b;
    if (rl_key_less(x->cost, y->cost)) return -1;
    if (rl_key_less(y->cost, x->cost)) return 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Which configurations name each of the op's elements. */
static void list_users(view *v) {
    const rl_cert_step *s = v->s;
    for (uint32_t k = 0; k < v->nname; k++) v->slot[v->name[k]] = 0;
    v->nname = 0;
    for (uint32_t i = 0; i < s->start[s->ncfg]; i++) {
        uint32_t e = s->elem[i];
        if (!v->slot[e]) {
            v->head[v->nname] = 0;
            v->name[v->nname] = e;
            v->slot[e] = ++v->nname;
        }
        v->head[v->slot[e] - 1]++;
    }
    for (uint32_t k = 1; k < v->nname; k++) v->head[k] += v->head[k - 1];
    v->head[v->nname] = s->start[s->ncfg];
    for (uint32_t c = s->ncfg; c-- > 0;)
        for (uint32_t i = s->start[c]; i < s->start[c + 1]; i++) v->user[--v->head[v->slot[s->elem[i]] - 1]] = c;
}

static void load(filler *d) {
    view *v = &d->op;
    const rl_cert_step *s = v->s = &d->t->step[d->pos];
    list_users(v);
    for (uint32_t c = 0; c < s->ncfg; c++) {
        v->full[c] = v->dying[c] = s->own[c];
        for (uint32_t i = s->start[c]; i < s->start[c + 1]; i++) {
            rl_cert_key w = d->t->weight[s->elem[i]];
            v->full[c] = rl_key_add(v->full[c], w);
            if (d->last[s->elem[i]] == d->pos) v->dying[c] = rl_key_add(v->dying[c], w);
        }
        v->bydying[c] = (rank){v->dying[c], 0, c};
    }
    qsort(v->bydying, s->ncfg, sizeof *v->bydying, cheap_first);
}

/* ---- from state to state ---- */

/* Notes what state s spares each configuration, and what stays of it. */
static void compare_state(filler *d, uint32_t s) {
    view *v = &d->op;
    v->ntouched = d->nstay = 0;
    for (size_t i = d->cur.beg[s]; i < d->cur.beg[s + 1]; i++) {
        uint32_t e = d->cur.elem[i], k = v->slot[e];
        bool stays = d->last[e] > d->pos;
        if (stays) d->stay[d->nstay++] = e;
        for (uint32_t j = k ? v->head[k - 1] : 0; k && j < v->head[k]; j++) {
            uint32_t c = v->user[j];
            if (!v->hit[c]) v->touched[v->ntouched++] = c;
            v->hit[c] = true;
            v->got[c] = rl_key_add(v->got[c], d->t->weight[e]);
            if (!stays) v->gotdying[c] = rl_key_add(v->gotdying[c], d->t->weight[e]);
        }
    }
}

static uint32_t merge(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb, uint32_t *out) {
    uint32_t i = 0, j = 0, n = 0;
    while (i < na || j < nb) {
        bool from_a = j == nb || (i < na && a[i] <= b[j]);
        if (from_a && j < nb && a[i] == b[j]) j++;
        out[n++] = from_a ? a[i++] : b[j++];
    }
    return n;
}

/* Adds the state that configuration c makes of state s. */
static void choose(filler *d, uint32_t s, uint32_t c) {
    const view *v = &d->op;
    rl_cert_key cost = rl_key_sub(rl_key_add(d->cur.cost[s], rl_key_sub(v->full[c], v->got[c])), v->s->credit);
    if (!rl_key_less(rl_key_add(cost, d->ahead[d->pos + 1]), d->t->claim)) return;
    uint32_t n = 0;
    for (uint32_t i = v->s->start[c]; i < v->s->start[c + 1]; i++)
        if (d->last[v->s->elem[i]] > d->pos) d->live[n++] = v->s->elem[i];
    reserve(d->mem, &d->next, (size_t)d->nstay + n);
    add_state(d, merge(d->stay, d->nstay, d->live, n, d->next.elem + d->next.nelem), cost);
}

/* Whether the state after b, whose extra is `least`, dominates the one after c. */
static bool is_worse(const filler *d, uint32_t c, rl_cert_key least) {
    const view *v = &d->op;
    rl_cert_key gone = rl_key_sub(v->dying[c], v->gotdying[c]);
    for (uint32_t i = v->s->start[c]; i < v->s->start[c + 1]; i++) {
        uint32_t e = v->s->elem[i];
        if (d->mark[e] == d->stamp && d->last[e] > d->pos) gone = rl_key_add(gone, d->t->weight[e]);
    }
    return !rl_key_less(gone, least);
}

/* Marks the elements that b names and that state s has not. */
static void mark_new(filler *d, uint32_t s, uint32_t b) {
    d->stamp++;
    for (uint32_t i = d->op.s->start[b]; i < d->op.s->start[b + 1]; i++) d->mark[d->op.s->elem[i]] = d->stamp;
    for (size_t i = d->cur.beg[s]; i < d->cur.beg[s + 1]; i++)
        if (d->mark[d->cur.elem[i]] == d->stamp) d->mark[d->cur.elem[i]] = 0;
}

static void expand(filler *d, uint32_t s) {
    view *v = &d->op;
    compare_state(d, s);
    uint32_t b = RL_NONE;
    rl_cert_key least = {INT64_MAX, INT64_MAX};
    for (uint32_t k = 0; k < v->ntouched; k++) {
        uint32_t c = v->touched[k];
        rl_cert_key x = rl_key_sub(v->full[c], v->got[c]);
        if (rl_key_less(x, least)) least = x, b = c;
    }
    for (uint32_t k = 0; k < v->s->ncfg && rl_key_less(v->bydying[k].cost, least); k++) { /* full >= dying */
        uint32_t c = v->bydying[k].id;
        if (!v->hit[c] && rl_key_less(v->full[c], least)) least = v->full[c], b = c;
    }
    mark_new(d, s, b);
    choose(d, s, b);
    for (uint32_t k = 0; k < v->s->ncfg && rl_key_less(v->bydying[k].cost, least); k++) {
        uint32_t c = v->bydying[k].id;
        if (!v->hit[c] && c != b && !is_worse(d, c, least)) choose(d, s, c);
    }
    for (uint32_t k = 0; k < v->ntouched; k++) {
        uint32_t c = v->touched[k];
        if (c != b && !is_worse(d, c, least)) choose(d, s, c);
    }
    for (uint32_t k = 0; k < v->ntouched; k++) {
        uint32_t c = v->touched[k];
        v->got[c] = v->gotdying[c] = (rl_cert_key){0, 0};
        v->hit[c] = false;
    }
}

/* ---- dominance ---- */

/* Sorts the elements of a set by how many states that stayed have them, rarest first. */
static void sort_by_holders(filler *d, const uint32_t *set, uint32_t n, uint32_t *out) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i;
        while (k > 0 && d->nholder[out[k - 1]] > d->nholder[set[i]]) k--;
        memmove(out + k + 1, out + k, (i - k) * sizeof *out);
        out[k] = set[i];
    }
}

/* Whether state a of next dominates one whose elements are marked, that costs `cost` and weighs `weight`. */
static bool dominates(const filler *d, uint32_t a, rl_cert_key cost, rl_cert_key weight) {
    const layer *f = &d->next;
    rl_cert_key missing = weight, room = rl_key_sub(cost, f->cost[a]);
    for (size_t i = f->beg[a]; i < f->beg[a + 1]; i++)
        if (d->mark[f->elem[i]] == d->stamp) missing = rl_key_sub(missing, d->t->weight[f->elem[i]]);
    return !rl_key_less(room, missing);
}

/* Whether a state that stayed dominates state s of next.  spare: how much dearer s is than the cheapest one. */
static bool is_dominated(filler *d, uint32_t s, rl_cert_key spare) {
    const layer *f = &d->next;
    uint32_t n = size_of(f, s), *rare = d->stay;
    rl_cert_key weight = {0}, asked = {0};
    d->stamp++;
    for (size_t i = f->beg[s]; i < f->beg[s + 1]; i++) {
        d->mark[f->elem[i]] = d->stamp;
        weight = rl_key_add(weight, d->t->weight[f->elem[i]]);
    }
    if (!rl_key_less(spare, weight)) return true;
    sort_by_holders(d, f->elem + f->beg[s], n, rare);
    for (uint32_t i = 0; i < n && !rl_key_less(spare, asked); i++) {
        asked = rl_key_add(asked, d->t->weight[rare[i]]);
        for (uint32_t l = d->holders[rare[i]]; l; l = d->links.p[l - 1].next) {
            uint32_t a = d->links.p[l - 1].state;
            if (d->asked[a] == s + 1) continue;
            d->asked[a] = s + 1;
            if (dominates(d, a, f->cost[s], weight)) return true;
        }
    }
    return false;
}

static void keep(filler *d, uint32_t s) {
    layer *f = &d->next, *to = &d->cur;
    uint32_t n = size_of(f, s);
    reserve(d->mem, to, n);
    memcpy(to->elem + to->nelem, f->elem + f->beg[s], n * sizeof *to->elem);
    to->cost[to->n++] = f->cost[s];
    to->beg[to->n] = to->nelem += n;
    for (size_t i = f->beg[s]; i < f->beg[s + 1]; i++) {
        uint32_t e = f->elem[i];
        rl_push(d->mem, d->links, ((link){s, d->holders[e]}));
        d->holders[e] = d->links.n;
        d->nholder[e]++;
    }
}

/* Moves the states of next that are not dominated to cur. */
static void select_states(filler *d) {
    layer *f = &d->next;
    if (f->n >= d->ordercap) {
        d->ordercap = f->n * 2 + 1;
        d->order = rl_new(d->mem, rank, d->ordercap);
        d->asked = rl_new(d->mem, uint32_t, d->ordercap);
    }
    for (uint32_t s = 0; s < f->n; s++) {
        d->order[s] = (rank){f->cost[s], size_of(f, s), s};
        d->asked[s] = 0;
    }
    qsort(d->order, f->n, sizeof *d->order, cheap_first);
    empty(&d->cur);
    for (uint32_t k = 0; k < f->n; k++)
        if (!k || !is_dominated(d, d->order[k].id, rl_key_sub(d->order[k].cost, d->order[0].cost))) keep(d, d->order[k].id);
    for (size_t i = 0; i < f->nelem; i++) d->holders[f->elem[i]] = d->nholder[f->elem[i]] = 0;
    d->links.n = 0;
}

/* ---- the run ---- */

/* last, and what the ops from each one on must pay: the least that an op's new elements cost. */
static void look_ahead(filler *d) {
    const rl_cert_table *t = d->t;
    uint32_t *first = rl_new(d->mem, uint32_t, t->nelem);
    for (uint32_t i = t->nstep; i-- > 0;)
        for (uint32_t k = 0; k < t->step[i].start[t->step[i].ncfg]; k++) first[t->step[i].elem[k]] = i;
    for (uint32_t i = 0; i < t->nstep; i++)
        for (uint32_t k = 0; k < t->step[i].start[t->step[i].ncfg]; k++) d->last[t->step[i].elem[k]] = i;
    for (uint32_t i = t->nstep; i-- > 0;) {
        const rl_cert_step *s = &t->step[i];
        rl_cert_key least = {INT64_MAX, INT64_MAX};
        for (uint32_t c = 0; c < s->ncfg; c++) {
            rl_cert_key x = s->own[c];
            for (uint32_t k = s->start[c]; k < s->start[c + 1]; k++)
                if (first[s->elem[k]] == i) x = rl_key_add(x, t->weight[s->elem[k]]);
            if (rl_key_less(x, least)) least = x;
        }
        d->ahead[i] = rl_key_add(d->ahead[i + 1], rl_key_sub(least, s->credit));
    }
}

static uint64_t random_word(uint64_t x) {
    x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void make_room(filler *d) {
    const rl_cert_table *t = d->t;
    uint32_t maxcfg = 1, maxelem = 1;
    for (uint32_t i = 0; i < t->nstep; i++) {
        maxcfg = RL_MAX(maxcfg, t->step[i].ncfg);
        maxelem = RL_MAX(maxelem, t->step[i].start[t->step[i].ncfg]);
    }
    view *v = &d->op;
    v->full = rl_new(d->mem, rl_cert_key, maxcfg);
    v->dying = rl_new(d->mem, rl_cert_key, maxcfg);
    v->got = rl_new(d->mem, rl_cert_key, maxcfg);
    v->gotdying = rl_new(d->mem, rl_cert_key, maxcfg);
    v->bydying = rl_new(d->mem, rank, maxcfg);
    v->touched = rl_new(d->mem, uint32_t, maxcfg);
    v->hit = rl_new(d->mem, bool, maxcfg);
    v->user = rl_new(d->mem, uint32_t, maxelem);
    v->head = rl_new(d->mem, uint32_t, (size_t)t->nelem + 1);
    v->slot = rl_new(d->mem, uint32_t, t->nelem);
    v->name = rl_new(d->mem, uint32_t, t->nelem);
    d->last = rl_new(d->mem, uint32_t, t->nelem);
    d->word = rl_new(d->mem, uint64_t, t->nelem);
    d->stay = rl_new(d->mem, uint32_t, t->nelem);
    d->live = rl_new(d->mem, uint32_t, t->nelem);
    d->mark = rl_new(d->mem, uint64_t, t->nelem);
    d->holders = rl_new(d->mem, uint32_t, t->nelem);
    d->nholder = rl_new(d->mem, uint32_t, t->nelem);
    d->ahead = rl_new(d->mem, rl_cert_key, (size_t)t->nstep + 1);
    for (uint32_t e = 0; e < t->nelem; e++) d->word[e] = random_word(e);
}

rl_cert_verdict rl_cert_table_fill(rl_arena *mem, const rl_cert_table *t, uint32_t maxstate, rl_cert_key *left) {
    filler d = {.mem = mem, .t = t, .maxstate = maxstate};
    make_room(&d);
    look_ahead(&d);
    reserve(mem, &d.cur, 0);
    reserve(mem, &d.next, 0);
    resize_table(&d);
    d.cur.cost[d.cur.n++] = t->base;
    if (!rl_key_less(rl_key_add(t->base, d.ahead[0]), t->claim)) return RL_CERT_HOLDS;
    for (d.pos = 0; d.pos < t->nstep && d.cur.n; d.pos++) {
        load(&d);
        empty(&d.next);
        memset(d.table, 0, d.tablecap * sizeof *d.table);
        for (uint32_t s = 0; s < d.cur.n; s++) {
            expand(&d, s);
            if (d.next.n > maxstate) return RL_CERT_TOO_MANY;
        }
        select_states(&d);
    }
    if (!d.cur.n) return RL_CERT_HOLDS;
    *left = d.cur.cost[0];
    return RL_CERT_CHEAPER;
}
