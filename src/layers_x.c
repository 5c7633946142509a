/* Places from left to right.  Each item wants to be at the mean of what it is joined with; its layer's order and the widths are kept.
 * Of one layer that is a problem with an exact answer: the least sum of weighted squares under x[i] + gap <= x[i + 1], found by pooling
 * neighbours that violate it (isotonic regression).  Layer after layer, down and up, this comes to rest. */
#include "layers_internal.h"

enum { ROUNDS = 8, LAST = 6 };
typedef struct { double at, weight; uint32_t n; } pool;

static uint32_t links(const rl_joined *side, uint32_t i) {
    return side->start[i + 1] - side->start[i];
}

/* Chains, and lines that pass several layers, are to be straight more than anything else. */
static double pull(const rl_placing *p, uint32_t a, uint32_t b) {
    uint32_t upper = p->item[a].rank < p->item[b].rank ? a : b, lower = upper == a ? b : a;
    if (links(&p->down, upper) == 1 && links(&p->up, lower) == 1) return 8;
    return p->item[a].box && p->item[b].box ? 1 : 2;
}

static void wanted(const rl_placing *p, uint32_t i, bool up, bool down, double *at, double *weight) {
    const rl_joined *side[] = {up ? &p->up : NULL, down ? &p->down : NULL};
    *at = p->item[i].x * 0.01;
    *weight = 0.01;
    for (size_t s = 0; s < 2; s++)
        for (uint32_t k = side[s] ? side[s]->start[i] : 0; side[s] && k < side[s]->start[i + 1]; k++) {
            double w = pull(p, i, side[s]->item[k]);
            *at += w * p->item[side[s]->item[k]].x;
            *weight += w;
        }
    *at /= *weight;
}

/* How far the middle of the k-th item of a layer is from that of the one before. */
static double apart(const rl_placing *p, uint32_t rank, uint32_t k) {
    if (k == 0) return 0;
    const rl_item *a = &p->item[p->order[p->start[rank] + k - 1]], *b = &p->item[p->order[p->start[rank] + k]];
    return (a->w + b->w) / 2 + (a->box || b->box ? RL_LAYER_GAP : RL_LAYER_GAP / 2);
}

static void settle(rl_placing *p, uint32_t rank, bool up, bool down, pool *pools) {
    uint32_t n = p->start[rank + 1] - p->start[rank], npool = 0;
    double offset = 0;
    for (uint32_t k = 0; k < n; k++) {
        pool *q = &pools[npool++];
        wanted(p, p->order[p->start[rank] + k], up, down, &q->at, &q->weight);
        offset += apart(p, rank, k);
        q->at -= offset;
        q->n = 1;
        for (; npool > 1 && pools[npool - 1].at < pools[npool - 2].at; npool--) {
            pool *a = &pools[npool - 2], *b = &pools[npool - 1];
            a->at = (a->at * a->weight + b->at * b->weight) / (a->weight + b->weight);
            a->weight += b->weight;
            a->n += b->n;
        }
    }
    offset = 0;
    for (uint32_t i = 0, k = 0; i < npool; i++)
        for (uint32_t j = 0; j < pools[i].n; j++, k++) {
            offset += apart(p, rank, k);
            p->item[p->order[p->start[rank] + k]].x = pools[i].at + offset;
        }
}

static void pack(rl_placing *p, uint32_t rank) {
    uint32_t n = p->start[rank + 1] - p->start[rank];
    double x = 0;
    for (uint32_t k = 0; k < n; k++) p->item[p->order[p->start[rank] + k]].x = x += apart(p, rank, k);
    for (uint32_t k = 0; k < n; k++) p->item[p->order[p->start[rank] + k]].x -= x / 2;
}

/* ---- columns: chains that the rounds have left a little crooked ---- */

/* The item below i in the same chain, RL_NONE at its end. */
static uint32_t next_in_chain(const rl_placing *p, uint32_t i) {
    if (links(&p->down, i) != 1) return RL_NONE;
    uint32_t below = p->down.item[p->down.start[i]];
    return links(&p->up, below) == 1 ? below : RL_NONE;
}

static bool starts_chain(const rl_placing *p, uint32_t i) {
    return next_in_chain(p, i) != RL_NONE && !(links(&p->up, i) == 1 && links(&p->down, p->up.item[p->up.start[i]]) == 1);
}

/* Where item i may stand between its neighbours as they are. */
static void room_of(const rl_placing *p, uint32_t i, double *least, double *most) {
    const rl_item *a = &p->item[i];
    uint32_t n = p->start[a->rank + 1] - p->start[a->rank];
    const uint32_t *layer = &p->order[p->start[a->rank]];
    *least = a->pos ? p->item[layer[a->pos - 1]].x + apart(p, a->rank, a->pos) : -1e9;
    *most = a->pos + 1 < n ? p->item[layer[a->pos + 1]].x - apart(p, a->rank, a->pos + 1) : 1e9;
}

/* Puts as many items of the chain from i on as fit above each other; returns the first that does not, RL_NONE at the end. */
static uint32_t straighten(rl_placing *p, uint32_t i) {
    double least = -1e9, most = 1e9, sum = 0;
    uint32_t n = 0, end = i;
    for (; end != RL_NONE; end = next_in_chain(p, end), n++) {
        double lo, hi;
        room_of(p, end, &lo, &hi);
        if (RL_MAX(lo, least) > RL_MIN(hi, most)) break;
        least = RL_MAX(lo, least);
        most = RL_MIN(hi, most);
        sum += p->item[end].x;
    }
    if (n == 0) return next_in_chain(p, i);
    for (uint32_t k = i; k != end; k = next_in_chain(p, k)) p->item[k].x = RL_MIN(RL_MAX(sum / n, least), most);
    return end;
}

static void straighten_all(rl_placing *p) {
    for (uint32_t i = 0; i < p->nitem; i++)
        for (uint32_t k = starts_chain(p, i) ? i : RL_NONE; k != RL_NONE;) k = straighten(p, k);
}

void rl_layers_x(rl_placing *p) {
    pool *pools = rl_new(p->mem, pool, p->nitem + 1);
    double left;
    for (uint32_t r = 0; r < p->nrank; r++) pack(p, r);
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t r = 1; r < p->nrank; r++) settle(p, r, true, false, pools);
        for (uint32_t r = p->nrank; r-- > 0;) settle(p, r, false, true, pools);
    }
    for (int round = 0; round < LAST; round++)
        for (uint32_t r = 0; r < p->nrank; r++) settle(p, round % 2 ? p->nrank - 1 - r : r, true, true, pools);
    straighten_all(p);
    straighten_all(p);
    left = p->nitem ? p->item[0].x : 0;
    for (uint32_t i = 0; i < p->nitem; i++) left = RL_MIN(left, p->item[i].x - p->item[i].w / 2);
    for (uint32_t i = 0; i < p->nitem; i++) p->item[i].x += RL_LAYER_MARGIN - left;
}
