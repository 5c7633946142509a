/* The order of the items of each layer: sweeps down and up put each item at the mean place of what it is joined with, neighbours
 * change places where that lessens the crossings, and the best order that was seen is kept. */
#include "layers_internal.h"

#include <stdlib.h>
#include <string.h>

enum { SWEEPS = 12, MOSTPAIRS = 2048 };

typedef struct { double at; uint32_t item, pos; } key;

static int by_place(const void *a, const void *b) {
    const key *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

static double mean_place(const rl_placing *p, const rl_joined *side, uint32_t i) {
    uint32_t n = side->start[i + 1] - side->start[i];
    double sum = 0;
    if (n == 0) return p->item[i].pos;
    for (uint32_t k = side->start[i]; k < side->start[i + 1]; k++) sum += p->item[side->item[k]].pos;
    return sum / n;
}

static void sort_layer(rl_placing *p, uint32_t rank, const rl_joined *side, key *keys) {
    uint32_t start = p->start[rank], n = p->start[rank + 1] - start;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = p->order[start + k];
        keys[k] = (key){mean_place(p, side, i), i, p->item[i].pos};
    }
    qsort(keys, n, sizeof *keys, by_place);
    for (uint32_t k = 0; k < n; k++) {
        p->order[start + k] = keys[k].item;
        p->item[keys[k].item].pos = k;
    }
}

/* Crossings of the links of a and b on one side while a is left of b. */
static uint64_t crossings(const rl_placing *p, const rl_joined *side, uint32_t a, uint32_t b) {
    uint64_t n = 0;
    if ((uint64_t)(side->start[a + 1] - side->start[a]) * (side->start[b + 1] - side->start[b]) > MOSTPAIRS) return 0;
    for (uint32_t i = side->start[a]; i < side->start[a + 1]; i++)
        for (uint32_t k = side->start[b]; k < side->start[b + 1]; k++) n += p->item[side->item[i]].pos > p->item[side->item[k]].pos;
    return n;
}

static bool exchange_neighbours(rl_placing *p, uint32_t rank) {
    bool any = false;
    for (uint32_t k = p->start[rank]; k + 1 < p->start[rank + 1]; k++) {
        uint32_t a = p->order[k], b = p->order[k + 1];
        uint64_t now = crossings(p, &p->up, a, b) + crossings(p, &p->down, a, b);
        if (now == 0 || crossings(p, &p->up, b, a) + crossings(p, &p->down, b, a) >= now) continue;
        p->order[k] = b;
        p->order[k + 1] = a;
        p->item[b].pos--;
        p->item[a].pos++;
        any = true;
    }
    return any;
}

/* The crossings below a layer: the links in the order of their upper ends, and the inversions of their lower ends, counted with a
 * tree of sums (Fenwick's). */
static uint64_t crossings_below(const rl_placing *p, uint32_t rank, uint32_t *sum) {
    uint32_t room = p->start[rank + 2] - p->start[rank + 1];
    uint64_t n = 0, links = 0;
    memset(sum, 0, (room + 1) * sizeof *sum);
    for (uint32_t k = p->start[rank]; k < p->start[rank + 1]; k++) {
        uint32_t a = p->order[k];
        for (uint32_t j = p->down.start[a]; j < p->down.start[a + 1]; j++) {
            uint64_t before = 0;
            for (uint32_t at = p->item[p->down.item[j]].pos + 1; at; at &= at - 1) before += sum[at];
            n += links - before;
        }
        for (uint32_t j = p->down.start[a]; j < p->down.start[a + 1]; j++, links++)
            for (uint32_t at = p->item[p->down.item[j]].pos + 1; at <= room; at += at & -at) sum[at]++;
    }
    return n;
}

static uint64_t all_crossings(const rl_placing *p, uint32_t *sum) {
    uint64_t n = 0;
    for (uint32_t r = 0; r + 1 < p->nrank; r++) n += crossings_below(p, r, sum);
    return n;
}

/* Items as a walk from the first boxes on meets them: a branch stays together. */
static void first_order(rl_placing *p) {
    uint32_t *stack = rl_new(p->mem, uint32_t, p->nitem + 1), *fill = rl_new(p->mem, uint32_t, p->nrank + 1);
    bool *seen = rl_new(p->mem, bool, p->nitem + 1);
    p->start = rl_new(p->mem, uint32_t, p->nrank + 2);
    p->order = rl_new(p->mem, uint32_t, p->nitem + 1);
    for (uint32_t i = 0; i < p->nitem; i++) p->start[p->item[i].rank + 1]++;
    for (uint32_t r = 0; r < p->nrank; r++) p->start[r + 1] += p->start[r];
    memcpy(fill, p->start, (p->nrank + 1) * sizeof *fill);
    for (uint32_t root = 0; root < p->nitem; root++) {
        uint32_t n = 0;
        if (!seen[root]) stack[n++] = root;
        seen[root] = true;
        while (n) {
            uint32_t i = stack[--n];
            p->item[i].pos = fill[p->item[i].rank] - p->start[p->item[i].rank];
            p->order[fill[p->item[i].rank]++] = i;
            for (uint32_t k = p->down.start[i + 1]; k-- > p->down.start[i];) {
                uint32_t to = p->down.item[k];
                if (!seen[to]) stack[n++] = to;
                seen[to] = true;
            }
        }
    }
}

static void sweep(rl_placing *p, bool down, key *keys) {
    for (uint32_t k = 0; k < p->nrank; k++) sort_layer(p, down ? k : p->nrank - 1 - k, down ? &p->up : &p->down, keys);
    for (int again = 0; again < 4; again++) {
        bool any = false;
        for (uint32_t r = 0; r < p->nrank; r++) any |= exchange_neighbours(p, r);
        if (!any) return;
    }
}

void rl_layers_order(rl_placing *p) {
    first_order(p);
    uint32_t *best = rl_copy(p->mem, p->order, p->nitem * sizeof *best), *sum = rl_new(p->mem, uint32_t, p->nitem + 2);
    key *keys = rl_new(p->mem, key, p->nitem + 1);
    uint64_t least = all_crossings(p, sum);
    for (int k = 0; k < SWEEPS && least; k++) {
        sweep(p, k % 2 == 0, keys);
        uint64_t now = all_crossings(p, sum);
        if (now >= least) continue;
        least = now;
        memcpy(best, p->order, p->nitem * sizeof *best);
    }
    memcpy(p->order, best, p->nitem * sizeof *best);
    for (uint32_t r = 0; r < p->nrank; r++)
        for (uint32_t k = p->start[r]; k < p->start[r + 1]; k++) p->item[p->order[k]].pos = k - p->start[r];
}
