/* Ranks, the items of long nets, and the paths: see layers.h. */
#include "layers_internal.h"

#include <math.h>
#include <stdlib.h>

/* Nets that would pass more layers than this together have no items there: such a line goes straight, behind the boxes. */
enum { MOSTITEMS = 60000 };

static uint32_t last_rank(const rl_placing *p, const rl_net *n) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < n->nto; i++) last = RL_MAX(last, p->item[n->to[i]].rank);
    return last;
}

/* ---- ranks ---- */

static void rank_by_makers(rl_placing *p, uint32_t **reads, const uint32_t *nreads) {
    for (uint32_t i = 0; i < p->l->nbox; i++)
        for (uint32_t k = 0; k < nreads[i]; k++)
            p->item[i].rank = RL_MAX(p->item[i].rank, p->item[p->l->net[reads[i][k]].from].rank + 1);
}

/* What no input of the graph leads to: nothing holds it up. */
static bool is_loose(const rl_placing *p, uint32_t box, const bool *loose, const uint32_t *reads, uint32_t nreads) {
    for (uint32_t k = 0; k < nreads; k++)
        if (!loose[p->l->net[reads[k]].from]) return false;
    return nreads > 0 || !p->l->box[box].fixed;
}

/* A loose box, and one that makes more nets than it reads, goes down to the first of its readers: that shortens more than it lengthens. */
static void rank_by_readers(rl_placing *p, uint32_t **reads, const uint32_t *nreads) {
    uint32_t *nmakes = rl_new(p->mem, uint32_t, p->l->nbox), *least = rl_new(p->mem, uint32_t, p->l->nbox);
    bool *loose = rl_new(p->mem, bool, p->l->nbox);
    for (uint32_t i = 0; i < p->l->nbox; i++) {
        loose[i] = is_loose(p, i, loose, reads[i], nreads[i]);
        least[i] = RL_NONE;
    }
    for (uint32_t i = 0; i < p->l->nnet; i++) nmakes[p->l->net[i].from]++;
    for (uint32_t i = p->l->nbox; i-- > 0;) {
        if ((loose[i] || nmakes[i] > nreads[i]) && least[i] != RL_NONE) p->item[i].rank = least[i] - 1;
        for (uint32_t k = 0; k < nreads[i]; k++) {
            uint32_t from = p->l->net[reads[i][k]].from;
            least[from] = RL_MIN(least[from], p->item[i].rank);
        }
    }
}

static void find_ranks(rl_placing *p) {
    uint32_t *nreads = rl_new(p->mem, uint32_t, p->l->nbox), **reads = rl_new(p->mem, uint32_t *, p->l->nbox);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < p->l->nbox && pass; i++) {
            reads[i] = rl_new(p->mem, uint32_t, nreads[i]);
            nreads[i] = 0;
        }
        for (uint32_t i = 0; i < p->l->nnet; i++)
            for (uint32_t k = 0; k < p->l->net[i].nto; k++) {
                uint32_t to = p->l->net[i].to[k];
                if (pass) reads[to][nreads[to]] = i;
                nreads[to]++;
            }
    }
    rank_by_makers(p, reads, nreads);
    rank_by_readers(p, reads, nreads);
    for (uint32_t i = 0; i < p->l->nbox; i++) p->nrank = RL_MAX(p->nrank, p->item[i].rank + 1);
}

/* ---- items ---- */

/* How many layers a net may pass, so that all of them together pass no more than there is room for. */
static uint32_t longest_chain(const rl_placing *p) {
    for (uint32_t most = p->nrank;; most /= 2) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < p->l->nnet; i++) {
            uint32_t from = p->item[p->l->net[i].from].rank, last = last_rank(p, &p->l->net[i]);
            if (last > from + 1 && last - from - 1 <= most) sum += last - from - 1;
        }
        if (sum <= MOSTITEMS) return most;
    }
}

static void add_items(rl_placing *p) {
    uint32_t most = longest_chain(p), n = p->l->nbox;
    p->chain = rl_new(p->mem, uint32_t, p->l->nnet);
    for (uint32_t pass = 0; pass < 2; pass++) {
        n = p->l->nbox;
        for (uint32_t i = 0; i < p->l->nnet; i++) {
            uint32_t from = p->item[p->l->net[i].from].rank, last = last_rank(p, &p->l->net[i]);
            uint32_t count = last > from + 1 && last - from - 1 <= most ? last - from - 1 : 0;
            p->chain[i] = count ? n : RL_NONE;
            for (uint32_t k = 0; k < count && pass; k++) p->item[n + k] = (rl_item){.rank = from + 1 + k, .w = 2};
            n += count;
        }
        if (!pass) p->item = rl_grow(p->mem, p->item, p->l->nbox, n, sizeof *p->item);
    }
    p->nitem = n;
}

/* The item of net i at this rank: its maker, one of its own, or RL_NONE where the net is cut. */
static uint32_t item_at(const rl_placing *p, uint32_t i, uint32_t rank) {
    const rl_net *n = &p->l->net[i];
    uint32_t from = p->item[n->from].rank;
    if (rank == from) return n->from;
    return p->chain[i] == RL_NONE ? RL_NONE : p->chain[i] + (rank - from - 1);
}

typedef struct { struct { uint32_t *p; uint32_t n, cap; } upper, lower; } links;

static void add_link(const rl_placing *p, links *l, uint32_t upper, uint32_t lower) {
    rl_push(p->mem, l->upper, upper);
    rl_push(p->mem, l->lower, lower);
}

static void add_links(const rl_placing *p, uint32_t i, links *l) {
    const rl_net *n = &p->l->net[i];
    uint32_t from = p->item[n->from].rank, last = last_rank(p, n);
    for (uint32_t r = from + 1; r < last && p->chain[i] != RL_NONE; r++) add_link(p, l, item_at(p, i, r - 1), item_at(p, i, r));
    for (uint32_t k = 0; k < n->nto; k++) {
        uint32_t above = item_at(p, i, p->item[n->to[k]].rank - 1);
        if (above != RL_NONE) add_link(p, l, above, n->to[k]);
    }
}

static void join_items(rl_placing *p) {
    links l = {0};
    for (uint32_t i = 0; i < p->l->nnet; i++) add_links(p, i, &l);
    p->down.item = rl_copy(p->mem, l.lower.p, l.lower.n * sizeof(uint32_t));
    p->down.start = rl_sort_by_key(p->mem, p->nitem, l.upper.p, p->down.item, l.upper.n, sizeof(uint32_t));
    p->up.item = l.upper.p;
    p->up.start = rl_sort_by_key(p->mem, p->nitem, l.lower.p, p->up.item, l.lower.n, sizeof(uint32_t));
}

/* ---- paths ---- */

typedef struct { int32_t *top, *bottom; } levels; /* [nrank] */

static int32_t round_to_pixel(double x) {
    return (int32_t)lround(x);
}

/* Room for the slope of the lines that cross it. */
static int32_t gap_below(const rl_placing *p, uint32_t rank) {
    double far = 0;
    for (uint32_t k = p->start[rank]; k < p->start[rank + 1]; k++) {
        uint32_t a = p->order[k];
        for (uint32_t j = p->down.start[a]; j < p->down.start[a + 1]; j++) far = RL_MAX(far, fabs(p->item[p->down.item[j]].x - p->item[a].x));
    }
    return 20 + (int32_t)RL_MIN(50.0, far * 0.12);
}

static levels place_layers(rl_placing *p) {
    levels v = {rl_new(p->mem, int32_t, p->nrank), rl_new(p->mem, int32_t, p->nrank)};
    int32_t y = RL_LAYER_MARGIN;
    for (uint32_t r = 0; r < p->nrank; r++) {
        int32_t tall = 0;
        for (uint32_t k = p->start[r]; k < p->start[r + 1]; k++)
            if (p->item[p->order[k]].box) tall = RL_MAX(tall, p->l->box[p->order[k]].h);
        v.top[r] = y;
        v.bottom[r] = y + tall;
        y += tall + (r + 1 < p->nrank ? gap_below(p, r) : 0);
    }
    p->l->height = y + RL_LAYER_MARGIN;
    return v;
}

typedef struct { rl_text *t; int32_t x, y; } pen;

static void pen_down_to(pen *q, int32_t y) {
    if (y != q->y) rl_put(q->t, "v%d", y - q->y);
    q->y = y;
}

static void pen_curve_to(pen *q, int32_t x, int32_t y) {
    int32_t dx = x - q->x, dy = y - q->y, half = dy / 2;
    if (abs(dx) <= 1) rl_put(q->t, "l%d %d", dx, dy);
    else rl_put(q->t, "c0 %d %d %d %d %d", half, dx, dy - half, dx, dy);
    q->x = x;
    q->y = y;
}

static pen start_at(rl_placing *p, const levels *v, uint32_t item, rl_text *t) {
    const rl_item *a = &p->item[item];
    pen q = {t, round_to_pixel(a->x), a->box ? p->l->box[item].y + p->l->box[item].h : v->bottom[a->rank]};
    rl_put(t, "M%d %d", q.x, q.y);
    pen_down_to(&q, v->bottom[a->rank]);
    return q;
}

static void draw_net(rl_placing *p, const levels *v, uint32_t i) {
    rl_net *n = &p->l->net[i];
    uint32_t from = p->item[n->from].rank, last = last_rank(p, n);
    n->path = (rl_text){.mem = p->l->mem};
    if (p->chain[i] != RL_NONE) {
        pen q = start_at(p, v, n->from, &n->path);
        for (uint32_t r = from + 1; r < last; r++) {
            pen_curve_to(&q, round_to_pixel(p->item[item_at(p, i, r)].x), v->top[r]);
            pen_down_to(&q, v->bottom[r]);
        }
    }
    for (uint32_t k = 0; k < n->nto; k++) {
        const rl_item *b = &p->item[n->to[k]];
        uint32_t above = item_at(p, i, b->rank - 1);
        pen q = start_at(p, v, above == RL_NONE ? n->from : above, &n->path);
        pen_curve_to(&q, round_to_pixel(b->x), v->top[b->rank]);
        pen_down_to(&q, p->l->box[n->to[k]].y);
    }
}

void rl_layers_place(rl_layers *l) {
    rl_placing p = {.l = l, .mem = l->mem, .item = rl_new(l->mem, rl_item, l->nbox)};
    for (uint32_t i = 0; i < l->nbox; i++) p.item[i] = (rl_item){.box = true, .w = l->box[i].w};
    find_ranks(&p);
    add_items(&p);
    join_items(&p);
    rl_layers_order(&p);
    rl_layers_x(&p);
    levels v = place_layers(&p);
    for (uint32_t i = 0; i < l->nbox; i++) {
        uint32_t r = p.item[i].rank;
        l->box[i].x = round_to_pixel(p.item[i].x - l->box[i].w / 2.0);
        l->box[i].y = v.top[r] + (v.bottom[r] - v.top[r] - l->box[i].h) / 2;
        l->width = RL_MAX(l->width, l->box[i].x + l->box[i].w + RL_LAYER_MARGIN);
    }
    for (uint32_t i = p.l->nbox; i < p.nitem; i++) l->width = RL_MAX(l->width, round_to_pixel(p.item[i].x) + RL_LAYER_MARGIN);
    for (uint32_t i = 0; i < l->nnet; i++) draw_net(&p, &v, i);
}
