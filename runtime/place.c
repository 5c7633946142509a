/* Places blocks in an arena: see plan.h. Finding the smallest arena is NP-hard; this comes near the bound of the bytes alive at once. */
#include <string.h>

#include "element.h"
#include "plan.h"

enum { REPAIRS = 40, WORK = 20000000 /* compared blocks, about */ };

typedef enum { LARGEST, LARGEST_LONGEST, FIRST, BUSIEST, NORDER } order_kind;
typedef struct { const rl_block *b; const size_t *busy; order_kind how; } order;

static double weight(const order *o, int64_t i) {
    const rl_block *b = &o->b[i];
    double life = 1.0 + b->last - b->first, size = (double)b->nbyte;
    switch (o->how) {
    case LARGEST: return size;
    case LARGEST_LONGEST: return size * life;
    case FIRST: return -(double)b->first;
    default: return (double)o->busy[i];
    }
}

/* By block: the most bytes alive in one of its steps. */
static size_t *find_busy(rl_arena *tmp, const rl_block *b, uint32_t n) {
    size_t *busy = rl_new(tmp, size_t, n);
    uint32_t nstep = 0;
    for (uint32_t i = 0; i < n; i++) nstep = RL_MAX(nstep, b[i].last + 1);
    size_t *live = rl_new(tmp, size_t, nstep);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t s = b[i].first; s <= b[i].last; s++) live[s] += b[i].nbyte;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t s = b[i].first; s <= b[i].last; s++) busy[i] = RL_MAX(busy[i], live[s]);
    return busy;
}

static int by_weight(const void *arg, int64_t a, int64_t b) {
    double x = weight(arg, a), y = weight(arg, b), s = (double)((const order *)arg)->b[a].nbyte, t = (double)((const order *)arg)->b[b].nbyte;
    return x != y ? (x > y ? -1 : 1) : s > t ? -1 : s < t;
}

static bool meet(const rl_block *a, const rl_block *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest place between those already placed, which are sorted by place. Inserts it. */
static void place_one(rl_block *all, uint32_t *placed, uint32_t n, uint32_t k) {
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const rl_block *o = &all[placed[i]];
        if (!meet(o, &all[k])) continue;
        if (o->at >= at + all[k].nbyte) break;
        at = RL_MAX(at, o->at + o->nbyte);
    }
    all[k].at = at;
    uint32_t i = n;
    for (; i && all[placed[i - 1]].at > at; i--) placed[i] = placed[i - 1];
    placed[i] = k;
}

typedef struct { rl_block *b; uint32_t n; int64_t *seq; uint32_t *placed; } placing;

/* Places the blocks in the sequence's order; the arena's bytes. */
static size_t place_all(const placing *p) {
    size_t end = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t k = (uint32_t)p->seq[i];
        place_one(p->b, p->placed, i, k);
        end = RL_MAX(end, p->b[k].at + p->b[k].nbyte);
    }
    return end;
}

/* The block at the arena's end goes first: it is the one that found no better place. */
static void lift_last(const placing *p, size_t end) {
    uint32_t i = 0;
    while (p->b[p->seq[i]].at + p->b[p->seq[i]].nbyte != end) i++;
    int64_t k = p->seq[i];
    memmove(p->seq + 1, p->seq, i * sizeof k);
    p->seq[0] = k;
}

/* The best of some orders, each repaired a few times; fewer times where there are many blocks. */
size_t rl_plan_place(rl_arena *tmp, rl_block *b, uint32_t n) {
    size_t best = SIZE_MAX, least = 0;
    if (!n) return 0;
    placing p = {rl_copy(tmp, b, n * sizeof *b), n, rl_new(tmp, int64_t, n), rl_new(tmp, uint32_t, n)};
    const size_t *busy = find_busy(tmp, b, n);
    uint64_t rounds = RL_MIN((uint64_t)WORK / n / n, (uint64_t)REPAIRS);
    for (uint32_t i = 0; i < n; i++) least = RL_MAX(least, busy[i]);
    for (order_kind how = LARGEST; how < NORDER; how++) {
        order o = {p.b, busy, how};
        for (uint32_t i = 0; i < n; i++) p.seq[i] = i;
        rl_sort(tmp, p.seq, n, by_weight, &o);
        for (uint64_t r = 0; r <= rounds && best > least; r++) {
            size_t end = place_all(&p);
            if (end < best) memcpy(b, p.b, n * sizeof *b);
            best = RL_MIN(best, end);
            lift_last(&p, end);
        }
    }
    return best;
}

size_t rl_plan_least(rl_arena *tmp, const rl_block *b, uint32_t n, uint32_t nstep) {
    size_t *more = rl_new(tmp, size_t, nstep + 2), *less = rl_new(tmp, size_t, nstep + 2), live = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        more[b[i].first] += b[i].nbyte;
        less[b[i].last + 1] += b[i].nbyte;
    }
    for (uint32_t i = 0; i <= nstep; i++) {
        live += more[i] - less[i];
        most = RL_MAX(most, live);
    }
    return most;
}

