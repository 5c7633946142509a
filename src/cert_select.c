/* Which states stay after an op, and what is merged where they are too many (docs/proof.md, section 2).
 *
 *   dominance  A state goes when one that stays stands for it (cert_step.c).  The order is: cheap first, of equal cost the larger first;
 *              each is compared with those before it.  A that stands for B shares more than weight(B) - (cost(B) - least cost) with B;
 *              so it has one of any elements of B that together weigh more than cost(B) - least cost: the rarest such are asked.
 *   guide      Let a pass in the other direction have left the states T for the ops to come.  State S and T make a whole assignment of
 *              at least cost(S) + cost(T) - weight(S n T), as an element that both have is one that both paid, and it is due once.  (The
 *              base is in both, and so are the credits of values that ops on both sides name: d->meet sets that right.)  If no T
 *              brings that below the claim, S goes.  Every completion of S below the claim is in some T, or some T stands for it, and
 *                  cost(A) - weight(S n A) <= cost(A) + weight(B \ A) - weight(S n B) <= cost(B) - weight(S n B)
 *   merging    Over the cap, the union of the sets at the least of the costs stands for all of them.  What comes out of a pass that merged
 *              are lower bounds: if nothing stays the claim holds, but a state that stays says nothing. */
#include "cert_table.h"

#include <stdlib.h>
#include <string.h>

/* ---- which sets have an element ---- */

static void add_holder(rl_arena *mem, rl_holders *h, uint32_t id, const uint32_t *set, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        rl_push(mem, h->link, ((struct rl_link){id, h->head[set[i]]}));
        h->head[set[i]] = h->link.n;
        h->count[set[i]]++;
    }
}

/* elem: all elements of the sets that were added, and perhaps others. */
static void clear_holders(rl_holders *h, const uint32_t *elem, size_t n) {
    for (size_t i = 0; i < n; i++) h->head[elem[i]] = h->count[elem[i]] = 0;
    h->link.n = 0;
}

/* ---- dominance ---- */

/* Sorts the elements of a set by how many states that stayed have them, rarest first. */
static void sort_by_holders(const rl_filler *d, const uint32_t *set, uint32_t n, uint32_t *out) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i;
        while (k > 0 && d->kept.count[out[k - 1]] > d->kept.count[set[i]]) k--;
        memmove(out + k + 1, out + k, (i - k) * sizeof *out);
        out[k] = set[i];
    }
}

/* Whether state a of next stands for one whose elements are marked, that costs `cost` and weighs `weight`. */
static bool stands_for(const rl_filler *d, uint32_t a, rl_cert_key cost, rl_cert_key weight) {
    const rl_layer_sets *f = &d->next;
    rl_cert_key missing = weight, room = rl_key_sub(cost, f->cost[a]);
    for (size_t i = f->beg[a]; i < f->beg[a + 1]; i++)
        if (d->mark[f->elem[i]] == d->stamp) missing = rl_key_sub(missing, d->t->weight[f->elem[i]]);
    return !rl_key_less(room, missing);
}

/* Whether a state that stayed stands for state s of next.  spare: how much dearer s is than the cheapest one. */
static bool is_dominated(rl_filler *d, uint32_t s, rl_cert_key spare) {
    const rl_layer_sets *f = &d->next;
    uint32_t n = rl_layer_size(f, s), *rare = d->stay;
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
        for (uint32_t l = d->kept.head[rare[i]]; l; l = d->kept.link.p[l - 1].next) {
            uint32_t a = d->kept.link.p[l - 1].set;
            d->work++;
            if (d->asked[a] == s + 1) continue;
            d->asked[a] = s + 1;
            d->work += rl_layer_size(f, a);
            if (stands_for(d, a, f->cost[s], weight)) return true;
        }
    }
    return false;
}

/* ---- the guide ---- */

static void load_guide(rl_filler *d) {
    const rl_layer_sets *g = d->guide;
    if (!g) return;
    if (g->n > d->sharecap) {
        d->sharecap = g->n * 2;
        d->shared = rl_new(d->mem, rl_cert_key, d->sharecap);
        d->sharing = rl_new(d->mem, uint32_t, d->sharecap);
    }
    for (uint32_t s = 0; s < g->n; s++) add_holder(d->mem, &d->guides, s, g->elem + g->beg[s], rl_layer_size(g, s));
}

/* A lower bound on every whole assignment that state s of next is part of. */
static rl_cert_key least_whole(rl_filler *d, uint32_t s, rl_cert_key apart) {
    const rl_layer_sets *f = &d->next, *g = d->guide;
    if (!g) return rl_key_add(f->cost[s], d->ahead[d->pos + 1]);
    uint32_t n = 0;
    rl_cert_key best = apart;
    for (size_t i = f->beg[s]; i < f->beg[s + 1]; i++)
        for (uint32_t l = d->guides.head[f->elem[i]]; l; l = d->guides.link.p[l - 1].next) {
            uint32_t t = d->guides.link.p[l - 1].set;
            d->work++;
            if (!d->shared[t].major && !d->shared[t].minor) d->sharing[n++] = t;
            d->shared[t] = rl_key_add(d->shared[t], d->t->weight[f->elem[i]]);
        }
    d->work += n;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t t = d->sharing[k];
        rl_cert_key x = rl_key_sub(g->cost[t], d->shared[t]);
        if (rl_key_less(x, best)) best = x;
        d->shared[t] = (rl_cert_key){0, 0};
    }
    return rl_key_add(rl_key_add(f->cost[s], d->meet), best);
}

/* ---- what stays ---- */

static void keep(rl_filler *d, uint32_t s) {
    const rl_layer_sets *f = &d->next;
    rl_layer_sets *to = &d->cur;
    uint32_t n = rl_layer_size(f, s);
    rl_layer_reserve(d->mem, to, n);
    memcpy(to->elem + to->nelem, f->elem + f->beg[s], n * sizeof *to->elem);
    to->cost[to->n++] = f->cost[s];
    to->beg[to->n] = to->nelem += n;
}

static void sort_order(rl_filler *d) {
    const rl_layer_sets *f = &d->next;
    if (f->n >= d->ordercap) {
        d->ordercap = f->n * 2 + 1;
        d->order = rl_new(d->mem, rl_rank, d->ordercap);
        d->asked = rl_new(d->mem, uint32_t, d->ordercap);
    }
    for (uint32_t s = 0; s < f->n; s++) {
        d->order[s] = (rl_rank){f->cost[s], rl_layer_size(f, s), s};
        d->asked[s] = 0;
    }
    qsort(d->order, f->n, sizeof *d->order, rl_rank_compare);
}

static int compare_elements(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Adds the union of some states of next, at the least of their costs. */
static void keep_union(rl_filler *d, const rl_rank *r, uint32_t n) {
    const rl_layer_sets *f = &d->next;
    rl_layer_sets *to = &d->cur;
    rl_cert_key least = f->cost[r[0].id];
    uint32_t m = 0;
    d->stamp++;
    for (uint32_t k = 0; k < n; k++) {
        if (rl_key_less(f->cost[r[k].id], least)) least = f->cost[r[k].id];
        for (size_t i = f->beg[r[k].id]; i < f->beg[r[k].id + 1]; i++) {
            if (d->mark[f->elem[i]] == d->stamp) continue;
            d->mark[f->elem[i]] = d->stamp;
            d->stay[m++] = f->elem[i];
        }
    }
    rl_layer_reserve(d->mem, to, m);
    memcpy(to->elem + to->nelem, d->stay, m * sizeof *d->stay);
    qsort(to->elem + to->nelem, m, sizeof *to->elem, compare_elements);
    to->cost[to->n++] = least;
    to->beg[to->n] = to->nelem += m;
}

/* Of the seeds, which are in d->kept, the one that has most in common with state s; seed 0 if none has anything. */
static uint32_t nearest_seed(rl_filler *d, uint32_t s, rl_cert_key *shared, uint32_t *sharing) {
    const rl_layer_sets *f = &d->next;
    uint32_t n = 0, best = 0;
    rl_cert_key most = {0, 0};
    for (size_t i = f->beg[s]; i < f->beg[s + 1]; i++)
        for (uint32_t l = d->kept.head[f->elem[i]]; l; l = d->kept.link.p[l - 1].next) {
            uint32_t k = d->kept.link.p[l - 1].set;
            d->work++;
            if (!shared[k].major && !shared[k].minor) sharing[n++] = k;
            shared[k] = rl_key_add(shared[k], d->t->weight[f->elem[i]]);
        }
    for (uint32_t i = 0; i < n; i++) {
        if (rl_key_less(most, shared[sharing[i]])) most = shared[best = sharing[i]];
        shared[sharing[i]] = (rl_cert_key){0, 0};
    }
    return best;
}

/* Merges n states of next into `into`: seeds are spread over them, the others join the most similar one. */
static void merge_states(rl_filler *d, rl_rank *r, uint32_t n, uint32_t into) {
    const rl_layer_sets *f = &d->next;
    rl_arena tmp;
    rl_arena_init(&tmp, d->mem->ctx);
    rl_cert_key *shared = rl_new(&tmp, rl_cert_key, into);
    uint32_t *sharing = rl_new(&tmp, uint32_t, into), from = 0;
    d->merged = true;
    into = RL_MIN(into, n);
    for (uint32_t k = 0; k < into; k++) {
        uint32_t s = r[(uint64_t)n * k / into].id;
        add_holder(d->mem, &d->kept, k, f->elem + f->beg[s], rl_layer_size(f, s));
    }
    for (uint32_t k = 0; k < n && !rl_filler_spent(d); k++) r[k].cost = (rl_cert_key){nearest_seed(d, r[k].id, shared, sharing), 0};
    clear_holders(&d->kept, f->elem, f->nelem);
    qsort(r, n, sizeof *r, rl_rank_compare);
    for (uint32_t k = 1; k <= n; k++) {
        if (k < n && r[k].cost.major == r[from].cost.major) continue;
        keep_union(d, r + from, k - from);
        from = k;
    }
    rl_arena_free(&tmp);
}

/* Moves the first n states in d->order to cur; if they are over the cap, a quarter of it are unions of what is dearest. */
static void keep_best(rl_filler *d, uint32_t n, uint32_t cap) {
    uint32_t into = RL_MAX(cap / 4, 1u), stay = n;
    rl_layer_empty(&d->cur);
    if (n > cap) {
        qsort(d->order, n, sizeof *d->order, rl_rank_compare);
        stay = cap - into;
    }
    for (uint32_t k = 0; k < stay; k++) keep(d, d->order[k].id);
    if (stay < n) merge_states(d, d->order + stay, n - stay, into);
}

void rl_step_select(rl_filler *d) {
    const rl_layer_sets *f = &d->next;
    uint32_t n = 0;
    sort_order(d);
    load_guide(d);
    rl_cert_key cheapest = f->n ? d->order[0].cost : (rl_cert_key){0, 0};
    rl_cert_key apart = {INT64_MAX / 2, INT64_MAX / 2};
    for (uint32_t t = 0; d->guide && t < d->guide->n; t++)
        if (rl_key_less(d->guide->cost[t], apart)) apart = d->guide->cost[t];
    for (uint32_t k = 0; k < f->n && !rl_filler_spent(d); k++) {
        rl_rank r = d->order[k];
        bool many = n / 2 >= d->cap; /* most will be merged: not worth the comparison */
        if (k && !many && is_dominated(d, r.id, rl_key_sub(r.cost, cheapest))) continue;
        rl_cert_key whole = least_whole(d, r.id, apart);
        if (!rl_key_less(whole, d->t->claim)) continue;
        if (!many) add_holder(d->mem, &d->kept, r.id, f->elem + f->beg[r.id], r.size);
        d->order[n++] = (rl_rank){whole, r.size, r.id};
    }
    clear_holders(&d->kept, f->elem, f->nelem);
    if (d->guide) clear_holders(&d->guides, d->guide->elem, d->guide->nelem);
    keep_best(d, n, d->cap);
}

bool rl_step_shrink(rl_filler *d) {
    rl_layer_sets was = d->cur;
    if (was.n < 2) return false;
    d->cur = d->next;
    d->next = was;
    sort_order(d);
    keep_best(d, was.n, was.n / 2);
    return true;
}
