/* One op of a component's table: the states after it (docs/proof.md, section 2).
 *
 * A state is the set S of elements that are paid and that a later op can name, with the least cost known to lead to it.  Choosing
 * configuration c adds extra(c) = own(c) + weight(c \ S), the same credit for every c, and leaves S + c without what no later op can
 * name.  What is not looked at, and why that loses nothing:
 *
 *   stands for  State A stands for B if cost(A) + weight(B \ A) <= cost(B).  Whatever B's completion does, A can do the same: it pays
 *               for an element what B pays or, if B has it and A has not, its weight, at most weight(B \ A) in all.
 *   claim       A state whose cost, with what every completion must still pay, reaches the claim: no completion is cheaper than the
 *               claim.  Op q of those to come pays at least min over its configurations c of own(c) + weight of the elements of c that
 *               no op before q can name (they cannot be paid before q), less its credit; such elements of different ops differ, so
 *               these sums add up.
 *   lookahead   Let b have the least extra of all configurations in S, and let B and C be the states after b and c.  Then
 *                   weight(C \ B) = weight(those elements of c that are new, that a later op can name, and that are not in b)
 *               as B has what C has of S.  So B stands for C if extra(b) + weight(C \ B) <= extra(c), that is, if
 *                   extra(b) <= gone(c) = own(c) + weight(elements of c that are new, and that no later op can name or b has too)
 *               gone(c) >= dying(c) = own(c) + weight(elements of c that no later op can name) if c shares nothing with S.  So of the
 *               configurations sorted by dying, only a head needs a look, and of the others those that share an element with S. */
#include "cert_table.h"

#include <stdlib.h>
#include <string.h>

/* ---- layers ---- */

void rl_layer_reserve(rl_arena *mem, rl_layer_sets *f, size_t nelem) {
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

void rl_layer_empty(rl_layer_sets *f) {
    f->n = 0;
    f->nelem = 0;
    f->beg[0] = 0;
}

static void resize_table(rl_filler *d) {
    d->tablecap = d->tablecap ? d->tablecap * 2 : 64;
    d->table = rl_new(d->mem, uint32_t, d->tablecap);
    for (uint32_t s = 0; s < d->next.n; s++) {
        uint32_t i = (uint32_t)(d->next.hash[s] >> 32) & (d->tablecap - 1);
        while (d->table[i]) i = (i + 1) & (d->tablecap - 1);
        d->table[i] = s + 1;
    }
}

/* Adds the set of n elements that lies behind the last one of next, or makes the one that is there cheaper. */
static void add_state(rl_filler *d, uint32_t n, rl_cert_key cost) {
    rl_layer_sets *f = &d->next;
    const uint32_t *set = f->elem + f->nelem;
    uint64_t hash = 0;
    for (uint32_t k = 0; k < n; k++) hash += d->word[set[k]];
    if (f->n >= d->tablecap / 2) resize_table(d);
    uint32_t i = (uint32_t)(hash >> 32) & (d->tablecap - 1);
    for (uint32_t s; (s = d->table[i]) != 0; i = (i + 1) & (d->tablecap - 1)) {
        if (f->hash[--s] != hash || rl_layer_size(f, s) != n || !rl_same_bytes(f->elem + f->beg[s], set, n * sizeof *set)) continue;
        if (rl_key_less(cost, f->cost[s])) f->cost[s] = cost;
        return;
    }
    d->table[i] = f->n + 1;
    f->hash[f->n] = hash;
    f->cost[f->n++] = cost;
    f->beg[f->n] = f->nelem += n;
}

/* ---- the op ---- */

int rl_rank_compare(const void *a, const void *b) {
    const rl_rank *x = a, *y = b;
    if (rl_key_less(x->cost, y->cost)) return -1;
    if (rl_key_less(y->cost, x->cost)) return 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Which configurations name each of the op's elements. */
static void list_users(rl_cert_view *v) {
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

static void load(rl_filler *d) {
    rl_cert_view *v = &d->op;
    const rl_cert_step *s = v->s = rl_step_at(d, d->pos);
    list_users(v);
    for (uint32_t c = 0; c < s->ncfg; c++) {
        v->full[c] = v->dying[c] = s->own[c];
        for (uint32_t i = s->start[c]; i < s->start[c + 1]; i++) {
            rl_cert_key w = d->t->weight[s->elem[i]];
            v->full[c] = rl_key_add(v->full[c], w);
            if (d->last[s->elem[i]] == d->pos) v->dying[c] = rl_key_add(v->dying[c], w);
        }
        v->bydying[c] = (rl_rank){v->dying[c], 0, c};
    }
    qsort(v->bydying, s->ncfg, sizeof *v->bydying, rl_rank_compare);
}

/* ---- from state to state ---- */

/* Notes what state s spares each configuration, and what stays of it. */
static void compare_state(rl_filler *d, uint32_t s) {
    rl_cert_view *v = &d->op;
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
static void choose(rl_filler *d, uint32_t s, uint32_t c) {
    const rl_cert_view *v = &d->op;
    rl_cert_key cost = rl_key_sub(rl_key_add(d->cur.cost[s], rl_key_sub(v->full[c], v->got[c])), rl_credit_at(d, d->pos));
    d->work++;
    if (!rl_key_less(rl_key_add(cost, d->ahead[d->pos + 1]), d->t->claim)) return;
    uint32_t n = 0;
    for (uint32_t i = v->s->start[c]; i < v->s->start[c + 1]; i++)
        if (d->last[v->s->elem[i]] > d->pos) d->live[n++] = v->s->elem[i];
    rl_layer_reserve(d->mem, &d->next, (size_t)d->nstay + n);
    uint32_t *set = d->next.elem + d->next.nelem;
    n = merge(d->stay, d->nstay, d->live, n, set);
    for (uint32_t k = 0; k < d->nshare; k++)
        if (rl_rest_reaches(&d->rest[k], d->t, set, n, cost)) return;
    add_state(d, n, cost);
}

/* Whether the state after b, whose extra is `least`, dominates the one after c. */
static bool is_worse(const rl_filler *d, uint32_t c, rl_cert_key least) {
    const rl_cert_view *v = &d->op;
    rl_cert_key gone = rl_key_sub(v->dying[c], v->gotdying[c]);
    for (uint32_t i = v->s->start[c]; i < v->s->start[c + 1]; i++) {
        uint32_t e = v->s->elem[i];
        if (d->mark[e] == d->stamp && d->last[e] > d->pos) gone = rl_key_add(gone, d->t->weight[e]);
    }
    return !rl_key_less(gone, least);
}

/* Marks the elements that b names and that state s has not. */
static void mark_new(rl_filler *d, uint32_t s, uint32_t b) {
    d->stamp++;
    for (uint32_t i = d->op.s->start[b]; i < d->op.s->start[b + 1]; i++) d->mark[d->op.s->elem[i]] = d->stamp;
    for (size_t i = d->cur.beg[s]; i < d->cur.beg[s + 1]; i++)
        if (d->mark[d->cur.elem[i]] == d->stamp) d->mark[d->cur.elem[i]] = 0;
}

static void expand(rl_filler *d, uint32_t s) {
    rl_cert_view *v = &d->op;
    compare_state(d, s);
    d->work += v->ntouched + d->nstay;
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

bool rl_step_take(rl_filler *d, uint32_t most, size_t mostelem) {
    load(d);
    rl_layer_empty(&d->next);
    if (d->tablecap) memset(d->table, 0, d->tablecap * sizeof *d->table);
    for (uint32_t s = 0; s < d->cur.n; s++) {
        expand(d, s);
        if (d->next.n > most || d->next.nelem > mostelem || rl_filler_spent(d)) return false;
    }
    return true;
}
