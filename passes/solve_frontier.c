/* Frontier dynamic programming over one component of the cover (solve_cover.h).
 *
 * Ops are taken one after another.  A state is what a partial choice leaves behind for the rest: the set of elements that are
 * paid and that a later op can still ask for, with the cost so far and how it came about.  Few states survive, however many
 * orders there are:
 *
 *   lookahead  within one state, configuration c need not be tried when another one costs d and
 *              cost(c) + weight of those elements of c that are new and that nobody later can use >= d
 *   dominance  state A makes state B superfluous if cost(A) + weight(B \ A) <= cost(B): A may buy what B has
 *   shares     what the ops to come cost at least (solve_share.c): where that brings s to a known total, s goes
 *   guide      a run over the reversed order tells what each set of states (t) of the other side costs; together
 *              s and t cost cost(s) + cost(t) - weight(s n t), and where no t brings that below a known total, s goes
 *
 * Over the cap, the states that look dearest are dropped (a beam: the result is a solution, and the least that a dropped one
 * could reach is a bound), or merged: the union of the sets at the lesser cost stands for both (a relaxation: the result is a
 * bound).  A run that neither drops nor merges is exact.
 *
 * What a state is made of, and how equal ones are found: solve_states.h.
 *
 * This is bucket elimination along a path (Dechter 1999) with the dominance rule of resource-constrained shortest paths;
 * merging is that of relaxed decision diagrams (Bergman, Cire, van Hoeve, Hooker 2016). */
#include "solve_states.h"
#include <stdlib.h>
#include <string.h>

enum { LATE_CAP = 8, MOST_NEW = 1 << 22 }; /* states kept after the deadline; new states in one step of a beam */

typedef struct { int64_t cost; uint32_t size, id; } sortkey;
typedef struct { uint32_t *parent, *cfg; } step; /* how the states after one op came about */

/* The op being expanded: which configurations hold an element, what each costs, what it leaves to later ops. */
typedef struct {
    uint32_t pos, ncfg, nlocal;
    uint32_t *slot;           /* [nelem] 1 + place in local */
    uint32_t *local, *beg, *list;
    int64_t *full, *dying;    /* [ncfg] cost with everything new; the part that no later op can use */
    uint32_t *livebeg, *live; /* what later ops can use */
    sortkey *key;             /* configurations by dying, cheapest first */
    uint32_t cheapest;        /* least full */
    int64_t *match, *matchdying;
    uint32_t *touched;
} opview;

typedef struct {
    rl_arena *mem;
    const rl_cover *p;
    const rl_cover_run *run;
    uint32_t cap, extra;      /* states after one op; states over that (at most 4 * cap each time) in the rest of the run */
    uint32_t *last;           /* [nelem] the position of the last op that can ask for it */
    int64_t light;            /* the least weight */
    rl_states cur, next;
    rl_statetable table;      /* of next */
    step *hist;
    int64_t lost;             /* least cost that a dropped state could reach */
    bool late;
    opview op;
    uint32_t *base;           /* the elements of the state being expanded that stay live */
    sortkey *rank;
    uint32_t rankcap;
    rl_setindex kept;         /* states kept so far, by element */
    sortkey *keep;            /* [n] states kept, by the least total that each can be part of, as far as is known */
    uint32_t nkeep;
    rl_rest rest[RL_MAXSHARE];
    const rl_layer *other;    /* the guide's states for this position */
    rl_setindex others;
    int64_t *shared;          /* [states of any layer] */
    uint32_t *sharing;
    uint32_t *seed, *chain;   /* of the groups to be merged: places in keep, and from each member to the next */
    rl_layer *layer;
} dp;

/* ---- one op ---- */

/* The least total that a set of elements, paid at some cost, can be part of, as far as the shares know. */
static int64_t reach_by_shares(const dp *d, const uint32_t *set, uint32_t n, int64_t cost) {
    int64_t most = 0;
    for (uint32_t k = 0; k < d->run->nshare; k++) most = RL_MAX(most, rl_rest_of(&d->rest[k], set, n));
    return cost + most;
}

/* Adds the state that configuration c makes of the parent, or keeps the cheaper of two equal ones. */
static void emit(dp *d, uint32_t nbase, uint32_t parent, uint32_t c, int64_t cost) {
    rl_states *f = &d->next;
    if (cost >= d->run->upper) return;
    const uint32_t *live = d->op.live + d->op.livebeg[c];
    uint32_t nlive = d->op.livebeg[c + 1] - d->op.livebeg[c];
    rl_states_reserve(d->mem, f, nbase + nlive);
    uint64_t hash, sig;
    uint32_t n = rl_set_merge(d->base, nbase, live, nlive, f->elem + f->nelem);
    if (reach_by_shares(d, f->elem + f->nelem, n, cost) >= d->run->upper) return;
    uint32_t *at = rl_statetable_find(d->mem, &d->table, f, n, &hash, &sig), s = *at;
    bool loose = d->cur.loose[parent];
    if (s && (f->cost[s - 1] < cost || (f->cost[s - 1] == cost && f->loose[s - 1] <= loose))) return;
    if (!s) {
        s = *at = ++f->n;
        f->hash[s - 1] = hash;
        f->sig[s - 1] = sig;
        f->beg[s] = f->nelem += n;
    }
    f->cost[s - 1] = cost;
    f->parent[s - 1] = parent;
    f->cfg[s - 1] = c;
    f->loose[s - 1] = loose;
}

/* Cheap first; of equal cost, the larger set first, because only that one can dominate the other. */
static int compare_keys(const void *a, const void *b) {
    const sortkey *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void index_elements(opview *v, const rl_bundle *b) {
    for (uint32_t k = 0; k < v->nlocal; k++) v->slot[v->local[k]] = 0;
    v->nlocal = 0;
    for (size_t k = 0; k < (size_t)b->ncfg * b->width; k++) {
        uint32_t e = b->elem[k];
        if (e == RL_NONE) continue;
        if (!v->slot[e]) {
            v->local[v->nlocal] = e;
            v->beg[v->nlocal] = 0;
            v->slot[e] = ++v->nlocal;
        }
        v->beg[v->slot[e] - 1]++;
    }
    uint32_t at = 0;
    for (uint32_t k = 0; k < v->nlocal; k++) at = v->beg[k] += at;
    v->beg[v->nlocal] = at;
}

static void load_op(dp *d, uint32_t pos) {
    const rl_bundle *b = &d->p->op[d->run->seq[pos]];
    opview *v = &d->op;
    for (uint32_t k = 0; k < d->run->nshare; k++) rl_rest_pass(&d->rest[k], d->run->seq[pos]);
    v->pos = pos;
    v->ncfg = b->ncfg;
    index_elements(v, b);
    uint32_t nlive = 0;
    v->cheapest = 0;
    for (uint32_t c = 0; c < b->ncfg; c++) {
        v->full[c] = v->dying[c] = b->cost[c];
        v->livebeg[c] = nlive;
        for (uint32_t i = 0; i < b->width; i++) {
            uint32_t e = b->elem[(size_t)c * b->width + i];
            if (e == RL_NONE) break;
            v->list[--v->beg[v->slot[e] - 1]] = c;
            v->full[c] += d->p->weight[e];
            if (d->last[e] == pos) v->dying[c] += d->p->weight[e];
            else v->live[nlive++] = e;
        }
        if (v->full[c] < v->full[v->cheapest]) v->cheapest = c;
        v->key[c] = (sortkey){v->dying[c], 0, c};
    }
    v->livebeg[b->ncfg] = nlive;
    qsort(v->key, b->ncfg, sizeof *v->key, compare_keys);
}

/* Sums, for each configuration that shares elements with state s, what it need not pay.  Returns how many configurations. */
static uint32_t match_state(dp *d, uint32_t s, uint32_t *nbase) {
    const rl_states *f = &d->cur;
    opview *v = &d->op;
    uint32_t n = 0;
    *nbase = 0;
    for (uint32_t i = f->beg[s]; i < f->beg[s + 1]; i++) {
        uint32_t e = f->elem[i], k = v->slot[e];
        bool stays = d->last[e] > v->pos;
        if (stays) d->base[(*nbase)++] = e;
        if (!k) continue;
        int64_t w = d->p->weight[e];
        for (uint32_t j = v->beg[k - 1]; j < v->beg[k]; j++) {
            uint32_t c = v->list[j];
            if (!v->match[c]) v->touched[n++] = c;
            v->match[c] += w;
            if (!stays) v->matchdying[c] += w;
        }
    }
    return n;
}

static void expand(dp *d, uint32_t s) {
    opview *v = &d->op;
    uint32_t nbase, ntouched = match_state(d, s, &nbase), best = v->cheapest;
    int64_t least = v->full[best] - v->match[best], cost = d->cur.cost[s];
    for (uint32_t k = 0; k < ntouched; k++) {
        uint32_t c = v->touched[k];
        if (v->full[c] - v->match[c] < least) least = v->full[best = c] - v->match[c];
    }
    emit(d, nbase, s, best, cost + least);
    for (uint32_t k = 0; k < v->ncfg && v->key[k].cost < least; k++) {
        uint32_t c = v->key[k].id;
        if (!v->match[c] && c != best) emit(d, nbase, s, c, cost + v->full[c]);
    }
    for (uint32_t k = 0; k < ntouched; k++) {
        uint32_t c = v->touched[k];
        if (c != best && v->dying[c] - v->matchdying[c] < least) emit(d, nbase, s, c, cost + v->full[c] - v->match[c]);
        v->match[c] = v->matchdying[c] = 0;
    }
}

/* Past the deadline, or three quarters of the memory allowed are in use. */
static bool is_late(dp *d) {
    rl_ctx *ctx = d->mem->ctx;
    if (!d->late && (rl_time_up(ctx, d->run->deadline) || (ctx->limit && ctx->nbyte > ctx->limit / 4 * 3))) {
        d->late = true;
        d->cap = RL_MIN(d->cap, LATE_CAP);
        d->extra = 0;
    }
    return d->late;
}

/* Expands all states, or when it is late or they become too many only some. */
static void expand_all(dp *d) {
    rl_states_clear(&d->next);
    rl_statetable_clear(&d->table);
    for (uint32_t s = 0; s < d->cur.n; s++) {
        if (s >= LATE_CAP && s % 64 == 0 && (is_late(d) || (!d->run->relax && d->next.n > MOST_NEW))) {
            for (; s < d->cur.n; s++) d->lost = RL_MIN(d->lost, d->cur.cost[s]);
            return;
        }
        expand(d, s);
    }
}

/* ---- dominance ---- */

/* The weight of what b has and a lacks. */
static int64_t lacking(const dp *d, uint32_t a, uint32_t b) {
    const rl_states *f = &d->next;
    int64_t w = 0;
    const uint32_t *x = f->elem + f->beg[a], *xend = f->elem + f->beg[a + 1];
    for (uint32_t i = f->beg[b]; i < f->beg[b + 1]; i++) {
        uint32_t e = f->elem[i];
        while (x < xend && *x < e) x++;
        if (x == xend || *x != e) w += d->p->weight[e];
    }
    return w;
}

/* Is state s dominated by one kept before?  A state that does it either shares one of any elements that together weigh more
 * than the slack, of which the rarest are taken, or s is worth no more than the slack. */
static bool dominated(dp *d, uint32_t s, uint32_t cheapest) {
    const rl_states *f = &d->next;
    int64_t slack = f->cost[s] - f->cost[cheapest], sum = 0;
    uint32_t rare[64], n = 0;
    for (uint32_t i = f->beg[s]; i < f->beg[s + 1]; i++) {
        uint32_t e = f->elem[i], k;
        sum += d->p->weight[e];
        if (n == RL_LEN(rare)) continue;
        for (k = n++; k && d->kept.count[rare[k - 1]] > d->kept.count[e]; k--) rare[k] = rare[k - 1];
        rare[k] = e;
    }
    if (sum <= slack) return true;
    for (uint32_t i = 0; i < n && slack >= 0; i++) {
        for (uint32_t l = d->kept.head[rare[i]]; l; l = d->kept.link.p[l - 1].next) {
            uint32_t a = d->kept.link.p[l - 1].state;
            uint64_t more = f->sig[s] & ~f->sig[a]; /* an element that a lacks, for each bit */
            int64_t least = !more ? 0 : more & (more - 1) ? 2 * d->light : d->light;
            if (f->cost[a] + least > f->cost[s]) continue;
            if (f->cost[a] + lacking(d, a, s) <= f->cost[s]) return true;
        }
        slack -= d->p->weight[rare[i]];
    }
    return false;
}

/* ---- the guide ---- */

static void load_guide(dp *d, uint32_t pos) {
    if (d->other) rl_setindex_clear(&d->others, d->other->elem, d->other->beg[d->other->n]);
    d->other = NULL;
    if (!d->run->guide || pos + 1 == d->p->nop) return;
    const rl_layer *t = d->other = &d->run->guide[d->p->nop - 2 - pos];
    for (uint32_t k = 0; k < t->n; k++) rl_setindex_add(d->mem, &d->others, k, t->elem + t->beg[k], t->beg[k + 1] - t->beg[k]);
}

/* Weighs what each set of the index shares with this one.  Returns how many share anything: those are in d->sharing, the weights in
 * d->shared, which the caller sets back to 0. */
static uint32_t weigh_shared(dp *d, const rl_setindex *x, const uint32_t *set, uint32_t n) {
    uint32_t nsharing = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t l = x->head[set[i]]; l; l = x->link.p[l - 1].next) {
            uint32_t k = x->link.p[l - 1].state;
            if (!d->shared[k]) d->sharing[nsharing++] = k;
            d->shared[k] += d->p->weight[set[i]];
        }
    return nsharing;
}

/* The least total that a set of elements, paid at some cost, can be part of, as far as shares and guide know. */
static int64_t reach(dp *d, const uint32_t *set, uint32_t n, int64_t cost) {
    const rl_layer *t = d->other;
    int64_t shared = reach_by_shares(d, set, n, cost), best = t ? t->least : 0;
    if (!t || !t->n) return t ? INT64_MAX : shared;
    uint32_t nsharing = weigh_shared(d, &d->others, set, n);
    for (uint32_t i = 0; i < nsharing; i++) {
        uint32_t k = d->sharing[i];
        best = RL_MIN(best, t->cost[k] - d->shared[k]);
        d->shared[k] = 0;
    }
    return RL_MAX(cost + best, shared);
}

/* ---- from one op to the next ---- */

/* Lists in keep the states of next that are not dominated and that shares and guide allow, cheapest first. */
static void select_states(dp *d) {
    rl_states *f = &d->next;
    if (f->n > d->rankcap) {
        d->rankcap = f->n * 2;
        d->rank = rl_new(d->mem, sortkey, d->rankcap);
        d->keep = rl_new(d->mem, sortkey, d->rankcap);
        d->chain = rl_new(d->mem, uint32_t, d->rankcap);
    }
    d->nkeep = 0;
    for (uint32_t s = 0; s < f->n; s++) d->rank[s] = (sortkey){f->cost[s], rl_states_size(f, s), s};
    if (f->n > 1) qsort(d->rank, f->n, sizeof *d->rank, compare_keys);
    bool beam = !d->run->relax && !d->other && !d->run->nshare;
    for (uint32_t k = 0; k < f->n; k++) {
        uint32_t s = d->rank[k].id;
        if (k && dominated(d, s, d->rank[0].id)) continue;
        int64_t total = reach(d, f->elem + f->beg[s], rl_states_size(f, s), f->cost[s]);
        if (total >= d->run->upper) continue;
        bool full = beam || (k % 256 == 255 ? is_late(d) : d->late);
        if (full && d->nkeep >= d->cap + RL_MIN(4 * d->cap, d->extra)) {
            d->lost = RL_MIN(d->lost, f->cost[s]);
            break;
        }
        rl_setindex_add(d->mem, &d->kept, s, f->elem + f->beg[s], rl_states_size(f, s));
        d->keep[d->nkeep++] = (sortkey){total, k, s};
    }
    rl_setindex_clear(&d->kept, f->elem, f->nelem);
}

/* Of the seeds, which are in the index, the one that has most in common with state s; seed 0 if none has anything. */
static uint32_t nearest_seed(dp *d, uint32_t s) {
    const rl_states *f = &d->next;
    uint32_t nsharing = weigh_shared(d, &d->kept, f->elem + f->beg[s], rl_states_size(f, s)), best = 0;
    int64_t most = 0;
    for (uint32_t i = 0; i < nsharing; i++) {
        uint32_t k = d->sharing[i];
        if (d->shared[k] > most) most = d->shared[best = k];
        d->shared[k] = 0;
    }
    return best;
}

/* Appends to cur the union of the states keep[k], keep[chain[k]], ..., at the least of their costs. */
static void add_union(dp *d, uint32_t k) {
    rl_states *f = &d->next, *to = &d->cur;
    if (d->chain[k] == RL_NONE) {
        rl_states_copy(d->mem, to, f, d->keep[k].id);
        return;
    }
    uint32_t n = 0;
    int64_t cost = INT64_MAX;
    for (; k != RL_NONE; k = d->chain[k]) {
        uint32_t s = d->keep[k].id;
        cost = RL_MIN(cost, f->cost[s]);
        rl_states_reserve(d->mem, to, n + rl_states_size(f, s));
        memcpy(d->base, to->elem + to->nelem, n * sizeof *d->base);
        n = rl_set_merge(d->base, n, f->elem + f->beg[s], rl_states_size(f, s), to->elem + to->nelem);
    }
    to->cost[to->n] = cost;
    to->parent[to->n] = to->cfg[to->n] = RL_NONE;
    to->loose[to->n] = true;
    to->beg[++to->n] = to->nelem += n;
}

/* Merges keep[from ..] into nseed groups: seeds are spread over the range, the others join the most similar one. */
static void merge_states(dp *d, uint32_t from, uint32_t nseed) {
    rl_states *f = &d->next;
    uint32_t n = d->nkeep - from, g;
    for (g = 0; g < nseed; g++) {
        uint32_t k = d->seed[g] = from + (uint32_t)((uint64_t)g * n / nseed), s = d->keep[k].id;
        d->chain[k] = RL_NONE;
        rl_setindex_add(d->mem, &d->kept, g, f->elem + f->beg[s], rl_states_size(f, s));
    }
    g = 0;
    for (uint32_t k = from; k < d->nkeep; k++) {
        if (g < nseed && d->seed[g] == k) {
            g++;
            continue;
        }
        uint32_t to = d->seed[nearest_seed(d, d->keep[k].id)];
        d->chain[k] = d->chain[to];
        d->chain[to] = k;
    }
    rl_setindex_clear(&d->kept, f->elem, f->nelem);
    for (g = 0; g < nseed; g++) add_union(d, d->seed[g]);
}

static void record_layer(dp *d, uint32_t pos) {
    const rl_states *f = &d->cur;
    d->hist[pos].parent = rl_copy(d->mem, f->parent, f->n * sizeof *f->parent);
    d->hist[pos].cfg = rl_copy(d->mem, f->cfg, f->n * sizeof *f->cfg);
    if (!d->layer) return;
    rl_layer *t = &d->layer[pos];
    t->n = f->n;
    t->least = INT64_MAX;
    for (uint32_t k = 0; k < f->n; k++) t->least = RL_MIN(t->least, f->cost[k]);
    t->beg = rl_copy(d->mem, f->beg, (f->n + 1) * sizeof *f->beg);
    t->elem = rl_copy(d->mem, f->elem, f->nelem * sizeof *f->elem);
    t->cost = rl_copy(d->mem, f->cost, f->n * sizeof *f->cost);
}

/* Moves the states selected to cur, at most cap of them. */
static void keep_best(dp *d, uint32_t pos) {
    rl_states_clear(&d->cur);
    uint32_t nbest = d->nkeep, nseed = 0, cap = d->cap + RL_MIN(4 * d->cap, d->extra);
    if (d->nkeep > d->cap) d->extra -= RL_MIN(d->extra, d->nkeep - d->cap);
    if (d->nkeep > cap) {
        qsort(d->keep, d->nkeep, sizeof *d->keep, compare_keys);
        nseed = d->run->relax ? RL_MAX(cap / 4, 1u) : 0;
        nbest = cap - nseed;
        if (!d->run->relax) d->lost = RL_MIN(d->lost, d->keep[nbest].cost);
    }
    for (uint32_t k = 0; k < nbest; k++) rl_states_copy(d->mem, &d->cur, &d->next, d->keep[k].id);
    if (nseed) merge_states(d, nbest, nseed);
    record_layer(d, pos);
}

/* ---- a run ---- */

static void allocate_view(rl_arena *mem, const rl_cover *p, opview *v) {
    size_t maxcfg = 1, maxelem = 1;
    for (uint32_t o = 0; o < p->nop; o++) {
        maxcfg = RL_MAX(maxcfg, p->op[o].ncfg);
        maxelem = RL_MAX(maxelem, (size_t)p->op[o].ncfg * p->op[o].width);
    }
    v->slot = rl_new(mem, uint32_t, p->nelem);
    v->local = rl_new(mem, uint32_t, maxelem);
    v->beg = rl_new(mem, uint32_t, maxelem + 1);
    v->list = rl_new(mem, uint32_t, maxelem);
    v->live = rl_new(mem, uint32_t, maxelem);
    v->livebeg = rl_new(mem, uint32_t, maxcfg + 1);
    v->full = rl_new(mem, int64_t, maxcfg);
    v->dying = rl_new(mem, int64_t, maxcfg);
    v->match = rl_new(mem, int64_t, maxcfg);
    v->matchdying = rl_new(mem, int64_t, maxcfg);
    v->touched = rl_new(mem, uint32_t, maxcfg);
    v->key = rl_new(mem, sortkey, maxcfg);
}

static void allocate(dp *d) {
    const rl_cover *p = d->p;
    uint32_t most = d->run->cap;
    for (uint32_t i = 0; d->run->guide && i < p->nop; i++) most = RL_MAX(most, d->run->guide[i].n);
    allocate_view(d->mem, p, &d->op);
    d->last = rl_new(d->mem, uint32_t, p->nelem);
    d->base = rl_new(d->mem, uint32_t, p->nelem);
    d->kept = (rl_setindex){rl_new(d->mem, uint32_t, p->nelem), rl_new(d->mem, uint32_t, p->nelem), {0}};
    d->others = (rl_setindex){rl_new(d->mem, uint32_t, p->nelem), rl_new(d->mem, uint32_t, p->nelem), {0}};
    d->shared = rl_new(d->mem, int64_t, most);
    d->sharing = rl_new(d->mem, uint32_t, most);
    d->seed = rl_new(d->mem, uint32_t, d->run->cap);
    d->hist = rl_new(d->mem, step, p->nop);
    d->layer = d->run->record ? rl_new(d->mem, rl_layer, p->nop) : NULL;
    d->light = INT64_MAX;
    for (uint32_t e = 0; e < p->nelem; e++) d->light = RL_MIN(d->light, p->weight[e]);
    for (uint32_t i = 0; i < p->nop; i++) {
        const rl_bundle *b = &p->op[d->run->seq[i]];
        for (size_t k = 0; k < (size_t)b->ncfg * b->width; k++)
            if (b->elem[k] != RL_NONE) d->last[b->elem[k]] = i;
    }
    for (uint32_t k = 0; k < d->run->nshare; k++) d->rest[k] = rl_rest_start(d->mem, p, &d->run->shares[k]);
    rl_states_reserve(d->mem, &d->cur, 0);
    rl_states_reserve(d->mem, &d->next, 0);
    rl_statetable_init(d->mem, &d->table, p->nelem);
    d->cur.n = 1; /* nothing done, nothing paid */
}

rl_run_result rl_frontier_run(rl_arena *mem, const rl_cover *p, const rl_cover_run *run) {
    dp d = {.mem = mem, .p = p, .run = run, .cap = run->cap, .extra = run->extra, .lost = INT64_MAX};
    rl_run_result r = {.cfg = rl_new(mem, uint32_t, p->nop), .cost = INT64_MAX};
    allocate(&d);
    for (uint32_t i = 0; i < p->nop; i++) {
        load_op(&d, i);
        load_guide(&d, i);
        expand_all(&d);
        select_states(&d);
        keep_best(&d, i);
        if (d.late && run->relax) break;
    }
    r.layer = d.layer;
    if (d.late && run->relax) return r;
    r.bound = d.lost;
    if (!d.cur.n) return r;
    r.bound = RL_MIN(r.bound, d.cur.cost[0]);
    if (d.cur.loose[0]) return r;
    r.found = true;
    r.cost = d.cur.cost[0];
    for (uint32_t i = p->nop, s = 0; i-- > 0;) {
        r.cfg[run->seq[i]] = d.hist[i].cfg[s];
        s = d.hist[i].parent[s];
    }
    return r;
}
