/* Reductions of the cover that keep at least one optimum (solve_cover.h).
 *
 *   paid       an element in every configuration of an op is paid in every solution: into base, and out of the problem
 *   private    an element that one op alone can ask for: its weight goes into the costs of that op's configurations
 *   dominated  configuration B goes if some A has cost(A) + weight(A \ B) <= cost(B): wherever B stands, A is as good
 *   single     an op with one configuration left adds its cost to base
 *
 * Each op is looked at again when an element of it was paid or became private, until nothing changes.  The dominance rule is
 * "dead-end elimination" (Desmet et al. 1992) and soft neighbourhood substitutability (Bistarelli, Faltings, Neagu 2002) for
 * this cost function.  Elements have positive weight, so two configurations with different sets never dominate each other. */
#include "solve_cover.h"
#include <string.h>

typedef struct {
    rl_cover *p;
    uint32_t *touchbeg, *touch; /* the ops that had an element at the start */
    uint32_t *ntouch;           /* the ops that have it now */
    uint8_t *gone;              /* paid or private: to be dropped where it is met */
    uint32_t *queue, head, nqueue;
    bool *queued;
    /* The elements of one op and, for each, the configurations that hold it. */
    uint32_t *slot;             /* [nelem] 1 + place in local, 0: not in the op */
    uint32_t *local, *beg, *list, nlocal;
    uint32_t *before, nbefore;
    uint32_t *table;            /* [power of two] */
    int64_t *full, *match;      /* [most configurations] */
    uint32_t *touched;
    bool *dead;
    bool plain;                 /* leave what is dominated */
} reducer;

/* ---- index of one op ---- */

static void clear_index(reducer *r) {
    for (uint32_t k = 0; k < r->nlocal; k++) r->slot[r->local[k]] = 0;
    r->nlocal = 0;
}

static void list_elements(reducer *r, const rl_bundle *b) {
    clear_index(r);
    size_t n = (size_t)b->ncfg * b->width;
    for (size_t k = 0; k < n; k++) {
        uint32_t e = b->elem[k];
        if (e == RL_NONE) continue;
        if (!r->slot[e]) {
            r->local[r->nlocal] = e;
            r->beg[r->nlocal] = 0;
            r->slot[e] = ++r->nlocal;
        }
        r->beg[r->slot[e] - 1]++;
    }
}

/* Afterwards element k of local is held by list[beg[k] .. beg[k+1]-1]. */
static void index_op(reducer *r, const rl_bundle *b) {
    list_elements(r, b);
    uint32_t at = 0;
    for (uint32_t k = 0; k < r->nlocal; k++) at = r->beg[k] += at;
    r->beg[r->nlocal] = at;
    for (uint32_t c = b->ncfg; c-- > 0;) {
        const uint32_t *s = rl_bundle_set(b, c);
        for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++) r->list[--r->beg[r->slot[s[i]] - 1]] = c;
    }
}

/* ---- the queue ---- */

static void enqueue(reducer *r, uint32_t op) {
    if (r->queued[op] || r->p->op[op].ncfg < 2) return;
    r->queued[op] = true;
    r->queue[(r->head + r->nqueue++) % r->p->nop] = op;
}

static void enqueue_touching(reducer *r, uint32_t elem) {
    for (uint32_t k = r->touchbeg[elem]; k < r->touchbeg[elem + 1]; k++) enqueue(r, r->touch[k]);
}

/* ---- the rules ---- */

/* Drops elements that are paid or private, the latter at their weight. */
static bool drop_elements(reducer *r, rl_bundle *b) {
    bool changed = false;
    for (uint32_t c = 0; c < b->ncfg; c++) {
        uint32_t *s = b->elem + (size_t)c * b->width, n = 0;
        for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++) {
            uint32_t e = s[i];
            if (r->gone[e]) continue;
            if (r->ntouch[e] == 1) b->cost[c] += r->p->weight[e];
            else s[n++] = e;
        }
        while (n < b->width && s[n] != RL_NONE) {
            s[n++] = RL_NONE;
            changed = true;
        }
    }
    return changed;
}

static void keep_alive(reducer *r, rl_bundle *b) {
    uint32_t n = 0;
    for (uint32_t c = 0; c < b->ncfg; c++) {
        if (r->dead[c]) continue;
        if (n != c) {
            memcpy(b->elem + (size_t)n * b->width, rl_bundle_set(b, c), b->width * sizeof(uint32_t));
            b->cost[n] = b->cost[c];
            b->orig[n] = b->orig[c];
        }
        n++;
    }
    b->ncfg = n;
}

/* Of configurations with the same set, keeps the cheapest (the first of several). */
static bool drop_equal(reducer *r, rl_bundle *b) {
    uint32_t mask = 15, ndead = 0;
    while (mask + 1 < b->ncfg * 2) mask = mask * 2 + 1;
    memset(r->table, 0, (mask + 1) * sizeof(uint32_t));
    size_t bytes = b->width * sizeof(uint32_t);
    for (uint32_t c = 0; c < b->ncfg; c++) {
        r->dead[c] = false;
        uint32_t i = (uint32_t)rl_hash_bytes(rl_bundle_set(b, c), bytes) & mask;
        while (r->table[i] && !rl_same_bytes(rl_bundle_set(b, r->table[i] - 1), rl_bundle_set(b, c), bytes)) i = (i + 1) & mask;
        uint32_t old = r->table[i];
        if (old && b->cost[old - 1] <= b->cost[c]) {
            r->dead[c] = true;
        } else {
            if (old) r->dead[old - 1] = true;
            r->table[i] = c + 1;
        }
        ndead += old != 0;
    }
    if (ndead) keep_alive(r, b);
    return ndead != 0;
}

/* False where no configuration can dominate another: sets of one size and costs closer than any weight. */
static bool may_dominate(const reducer *r, const rl_bundle *b) {
    int64_t lo = INT64_MAX, hi = 0, wmin = INT64_MAX;
    uint32_t size = RL_NONE;
    for (uint32_t c = 0; c < b->ncfg; c++) {
        const uint32_t *s = rl_bundle_set(b, c);
        uint32_t n = 0;
        for (; n < b->width && s[n] != RL_NONE; n++) wmin = RL_MIN(wmin, r->p->weight[s[n]]);
        if (size == RL_NONE) size = n;
        if (n != size) return true;
        lo = RL_MIN(lo, b->cost[c]);
        hi = RL_MAX(hi, b->cost[c]);
    }
    return hi - lo >= wmin;
}

/* Is configuration c dominated by one that shares an element with it? */
static bool dominated(reducer *r, const rl_bundle *b, uint32_t c) {
    const uint32_t *s = rl_bundle_set(b, c);
    uint32_t n = 0;
    bool found = false;
    for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++) {
        uint32_t k = r->slot[s[i]] - 1;
        for (uint32_t j = r->beg[k]; j < r->beg[k + 1]; j++) {
            uint32_t a = r->list[j];
            if (!r->match[a]) r->touched[n++] = a;
            r->match[a] += r->p->weight[s[i]];
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t a = r->touched[k];
        if (a != c && r->full[a] - r->match[a] <= b->cost[c]) found = true;
        r->match[a] = 0;
    }
    return found;
}

static bool drop_dominated(reducer *r, rl_bundle *b) {
    if (b->ncfg < 2 || !may_dominate(r, b)) return false;
    index_op(r, b);
    uint32_t best = 0, ndead = 0;
    for (uint32_t c = 0; c < b->ncfg; c++) {
        const uint32_t *s = rl_bundle_set(b, c);
        r->full[c] = b->cost[c];
        for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++) r->full[c] += r->p->weight[s[i]];
        if (r->full[c] < r->full[best]) best = c;
    }
    for (uint32_t c = 0; c < b->ncfg; c++) {
        r->dead[c] = (c != best && r->full[best] <= b->cost[c]) || dominated(r, b, c);
        ndead += r->dead[c];
    }
    if (ndead) keep_alive(r, b);
    return ndead != 0;
}

/* Pays what every configuration holds, and the least cost. */
static bool pay_certain(reducer *r, rl_bundle *b) {
    rl_cover *p = r->p;
    bool changed = false;
    int64_t least = INT64_MAX;
    for (uint32_t c = 0; c < b->ncfg; c++) least = RL_MIN(least, b->cost[c]);
    p->base += least;
    for (uint32_t c = 0; c < b->ncfg; c++) b->cost[c] -= least;
    list_elements(r, b);
    for (uint32_t k = 0; k < r->nlocal; k++) {
        uint32_t e = r->local[k];
        if (r->beg[k] < b->ncfg || r->gone[e]) continue;
        r->gone[e] = 1;
        p->base += p->weight[e];
        enqueue_touching(r, e);
        changed = true;
    }
    return changed;
}

static void reduce_op(reducer *r, uint32_t op) {
    rl_bundle *b = &r->p->op[op];
    list_elements(r, b);
    r->nbefore = r->nlocal;
    memcpy(r->before, r->local, r->nlocal * sizeof(uint32_t));
    for (bool more = true; more;) {
        drop_elements(r, b);
        drop_equal(r, b);
        if (!r->plain) drop_dominated(r, b);
        more = pay_certain(r, b);
    }
    list_elements(r, b);
    for (uint32_t k = 0; k < r->nbefore; k++) {
        uint32_t e = r->before[k];
        if (!r->slot[e] && --r->ntouch[e] == 1 && !r->gone[e]) enqueue_touching(r, e);
    }
}

/* ---- setting up ---- */

static void count_touching(rl_arena *mem, reducer *r) {
    rl_cover *p = r->p;
    r->touchbeg = rl_new(mem, uint32_t, (size_t)p->nelem + 1);
    size_t total = 0;
    for (uint32_t o = 0; o < p->nop; o++) {
        list_elements(r, &p->op[o]);
        total += r->nlocal;
        for (uint32_t k = 0; k < r->nlocal; k++) r->ntouch[r->local[k]]++;
    }
    r->touch = rl_new(mem, uint32_t, total);
    uint32_t at = 0;
    for (uint32_t e = 0; e < p->nelem; e++) r->touchbeg[e] = at += r->ntouch[e];
    r->touchbeg[p->nelem] = at;
    for (uint32_t o = p->nop; o-- > 0;) {
        list_elements(r, &p->op[o]);
        for (uint32_t k = 0; k < r->nlocal; k++) r->touch[--r->touchbeg[r->local[k]]] = o;
    }
}

static void reduce(rl_arena *mem, rl_cover *p, bool plain) {
    reducer r = {.p = p, .plain = plain};
    size_t maxcfg = 1, maxlocal = 1, ntable = 16;
    for (uint32_t o = 0; o < p->nop; o++) {
        maxcfg = RL_MAX(maxcfg, p->op[o].ncfg);
        maxlocal = RL_MAX(maxlocal, (size_t)p->op[o].ncfg * p->op[o].width);
    }
    while (ntable < maxcfg * 2) ntable *= 2;
    r.ntouch = rl_new(mem, uint32_t, p->nelem);
    r.gone = rl_new(mem, uint8_t, p->nelem);
    r.slot = rl_new(mem, uint32_t, p->nelem);
    r.queue = rl_new(mem, uint32_t, p->nop);
    r.queued = rl_new(mem, bool, p->nop);
    r.local = rl_new(mem, uint32_t, maxlocal);
    r.before = rl_new(mem, uint32_t, maxlocal);
    r.beg = rl_new(mem, uint32_t, maxlocal + 1);
    r.list = rl_new(mem, uint32_t, maxlocal);
    r.table = rl_new(mem, uint32_t, ntable);
    r.full = rl_new(mem, int64_t, maxcfg);
    r.match = rl_new(mem, int64_t, maxcfg);
    r.touched = rl_new(mem, uint32_t, maxcfg);
    r.dead = rl_new(mem, bool, maxcfg);
    count_touching(mem, &r);
    for (uint32_t o = 0; o < p->nop; o++) {
        r.queued[o] = true;
        r.queue[r.nqueue++] = o;
    }
    while (r.nqueue) {
        uint32_t o = r.queue[r.head];
        if (++r.head == p->nop) r.head = 0;
        r.nqueue--;
        r.queued[o] = false;
        reduce_op(&r, o);
    }
}

void rl_cover_reduce(rl_arena *mem, rl_cover *p) { reduce(mem, p, false); }
void rl_cover_settle(rl_arena *mem, rl_cover *p) { reduce(mem, p, true); }
