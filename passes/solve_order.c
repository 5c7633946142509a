/* Orders in which the frontier (solve_frontier.c) takes the ops of a component.
 *
 * What counts is how many values are in use at once: touched by an op that is done and by one that is not.  The candidates are
 * the problem's own order, which follows the data flow, and greedy arrangements that grow from one op: of the ops next to a
 * value in use, take the one that leaves the fewest in use.  (Greedy vertex separation; a grown set stays connected, so what is
 * in use stays tied together and the states few.) */
#include "solve_cover.h"
#include <string.h>

/* ---- which values each op touches, and back ---- */

typedef struct {
    uint32_t nop, nval;
    uint32_t *valbeg, *val; /* of an op */
    uint32_t *opbeg, *op;   /* of a value */
} incidence;

static void list_values(rl_arena *mem, const rl_cover *p, incidence *x) {
    uint32_t *seen = rl_new(mem, uint32_t, p->nval);
    struct { uint32_t *p; uint32_t n, cap; } all = {0};
    x->valbeg = rl_new(mem, uint32_t, (size_t)p->nop + 1);
    for (uint32_t o = 0; o < p->nop; o++) {
        const rl_bundle *b = &p->op[o];
        x->valbeg[o] = all.n;
        for (size_t k = 0; k < (size_t)b->ncfg * b->width; k++) {
            if (b->elem[k] == RL_NONE) continue;
            uint32_t v = p->value[b->elem[k]];
            if (seen[v] == o + 1) continue;
            seen[v] = o + 1;
            rl_push(mem, all, v);
        }
    }
    x->valbeg[p->nop] = all.n;
    x->val = all.p;
}

static incidence incidence_of(rl_arena *mem, const rl_cover *p) {
    incidence x = {.nop = p->nop, .nval = p->nval};
    list_values(mem, p, &x);
    uint32_t n = x.valbeg[p->nop];
    x.op = rl_new(mem, uint32_t, n);
    for (uint32_t o = 0; o < p->nop; o++)
        for (uint32_t k = x.valbeg[o]; k < x.valbeg[o + 1]; k++) x.op[k] = o;
    x.opbeg = rl_sort_by_key(mem, p->nval, x.val, x.op, n, sizeof *x.op);
    return x;
}

/* ---- width ---- */

/* A cut through an order: how many ops of each value are done, and how many values are in use. */
typedef struct { const incidence *x; uint32_t *done, live; } cut;

static double pass_op(cut *c, uint32_t op) {
    static const uint32_t most = 24;
    const incidence *x = c->x;
    for (uint32_t k = x->valbeg[op]; k < x->valbeg[op + 1]; k++) {
        uint32_t v = x->val[k]; /* NOLINT(clang-analyzer-core.NullDereference): valbeg counts what is in val */
        uint32_t n = x->opbeg[v + 1] - x->opbeg[v];
        c->live += c->done[v] == 0;
        c->live -= ++c->done[v] == n;
    }
    return (double)(UINT64_C(1) << 2 * RL_MIN(c->live, most));
}

static void unpass_op(cut *c, uint32_t op) {
    const incidence *x = c->x;
    for (uint32_t k = x->valbeg[op]; k < x->valbeg[op + 1]; k++) {
        uint32_t v = x->val[k]; /* NOLINT(clang-analyzer-core.NullDereference): valbeg counts what is in val */
        uint32_t n = x->opbeg[v + 1] - x->opbeg[v];
        c->live += c->done[v] == n;
        c->live -= --c->done[v] == 0;
    }
}

/* How wide an order is: the sum over positions of 4 to the number of values in use. */
static double width_of(rl_arena *mem, const incidence *x, const uint32_t *seq) {
    cut c = {x, rl_new(mem, uint32_t, x->nval), 0};
    double sum = 0;
    for (uint32_t i = 0; i < x->nop; i++) sum += pass_op(&c, seq[i]);
    return sum;
}

/* ---- greedy orders ---- */

/* A greedy order: of the ops next to a live value, the one that leaves the fewest values live; the oldest of several. */
typedef struct { int32_t grow; uint32_t age, op; } candidate;
typedef struct {
    rl_arena *mem;
    const incidence *x;
    bool newest; /* of several, take the newest */
    struct { candidate *p; uint32_t n, cap; } heap;
    int32_t *grow;  /* [nop] live values after minus before */
    uint32_t *age;  /* [nop] when it first came next to a live value; RL_NONE: not yet */
    bool *done;
    uint32_t *left; /* [nval] ops not done */
    bool *open;
    uint32_t clock;
} arranger;

static bool before(candidate a, candidate b) {
    if (a.grow != b.grow) return a.grow < b.grow;
    if (a.age != b.age) return a.age < b.age;
    return a.op < b.op;
}

static void heap_push(arranger *a, uint32_t op) {
    candidate c = {a->grow[op], a->age[op], op};
    rl_push(a->mem, a->heap, c);
    uint32_t i = a->heap.n - 1;
    for (; i && before(c, a->heap.p[(i - 1) / 2]); i = (i - 1) / 2) a->heap.p[i] = a->heap.p[(i - 1) / 2];
    a->heap.p[i] = c;
}

static candidate heap_pop(arranger *a) {
    candidate top = a->heap.p[0], c = a->heap.p[--a->heap.n];
    uint32_t i = 0;
    for (uint32_t k; (k = 2 * i + 1) < a->heap.n; i = k) {
        if (k + 1 < a->heap.n && before(a->heap.p[k + 1], a->heap.p[k])) k++;
        if (!before(a->heap.p[k], c)) break;
        a->heap.p[i] = a->heap.p[k];
    }
    a->heap.p[i] = c;
    return top;
}

static void regrow(arranger *a, uint32_t op, int32_t by) {
    if (a->done[op]) return;
    a->grow[op] += by;
    if (a->age[op] == RL_NONE) a->age[op] = a->newest ? UINT32_MAX / 2 - a->clock++ : a->clock++;
    heap_push(a, op);
}

static void take(arranger *a, uint32_t op) {
    const incidence *x = a->x;
    a->done[op] = true;
    for (uint32_t k = x->valbeg[op]; k < x->valbeg[op + 1]; k++) {
        uint32_t v = x->val[k];
        bool opens = !a->open[v], last = --a->left[v] == 1;
        a->open[v] = true;
        if (!opens && !last) continue;
        for (uint32_t j = x->opbeg[v]; j < x->opbeg[v + 1]; j++) regrow(a, x->op[j], -(int32_t)opens - (int32_t)last);
    }
}

static uint32_t *greedy_order(rl_arena *mem, const incidence *x, uint32_t start, bool newest) {
    arranger a = {.mem = mem, .x = x, .newest = newest};
    a.grow = rl_new(mem, int32_t, x->nop);
    a.age = rl_new(mem, uint32_t, x->nop);
    a.done = rl_new(mem, bool, x->nop);
    a.left = rl_new(mem, uint32_t, x->nval);
    a.open = rl_new(mem, bool, x->nval);
    for (uint32_t o = 0; o < x->nop; o++) {
        a.grow[o] = (int32_t)(x->valbeg[o + 1] - x->valbeg[o]);
        a.age[o] = RL_NONE;
    }
    for (uint32_t v = 0; v < x->nval; v++) a.left[v] = x->opbeg[v + 1] - x->opbeg[v];
    uint32_t *seq = rl_new(mem, uint32_t, x->nop), n = 0;
    take(&a, start);
    seq[n++] = start;
    while (a.heap.n) {
        candidate c = heap_pop(&a);
        if (a.done[c.op] || c.grow != a.grow[c.op]) continue;
        take(&a, c.op);
        seq[n++] = c.op;
    }
    return seq; /* n == nop: the component is connected */
}

/* ---- the candidates ---- */

/* Puts an order into the list of the `most` narrowest, best first, unless one as wide is there. */
static void enlist(rl_arrangement *list, uint32_t most, rl_arrangement a) {
    for (uint32_t k = 0; k < most; k++)
        if (list[k].seq && list[k].width <= a.width && list[k].width >= a.width) return;
    for (uint32_t k = 0; k < most && a.seq; k++) {
        if (list[k].seq && list[k].width < a.width) continue;
        rl_arrangement t = list[k];
        list[k] = a;
        a = t;
    }
}

static rl_arrangement try_greedy(rl_arena *mem, const incidence *x, uint32_t start, bool newest) {
    rl_arrangement a = {.seq = greedy_order(mem, x, start, newest)};
    a.width = width_of(mem, x, a.seq);
    return a;
}

uint32_t rl_arrange(rl_arena *mem, const rl_cover *p, rl_arrangement out[RL_MAXARRANGE]) {
    incidence x = incidence_of(mem, p);
    rl_arrangement own = {.seq = rl_new(mem, uint32_t, p->nop)};
    uint32_t widest = 0, n = 0;
    for (uint32_t o = 0; o < p->nop; o++) {
        own.seq[o] = o;
        if (x.valbeg[o + 1] - x.valbeg[o] > x.valbeg[widest + 1] - x.valbeg[widest]) widest = o;
    }
    own.width = width_of(mem, &x, own.seq);
    memset(out, 0, RL_MAXARRANGE * sizeof *out);
    enlist(out, RL_MAXARRANGE, own);
    enlist(out, RL_MAXARRANGE, try_greedy(mem, &x, 0, false));
    enlist(out, RL_MAXARRANGE, try_greedy(mem, &x, p->nop - 1, false));
    enlist(out, RL_MAXARRANGE, try_greedy(mem, &x, widest, false));
    while (n < RL_MAXARRANGE && out[n].seq) n++;
    return n;
}

/* ---- more effort ---- */

/* The width of a window of an order, whose op at place `from` goes first. */
static double window_width(cut *c, const uint32_t *seq, uint32_t n, uint32_t from) {
    double sum = pass_op(c, seq[from]);
    for (uint32_t i = 0; i < n; i++)
        if (i != from) sum += pass_op(c, seq[i]);
    for (uint32_t i = n; i-- > 0;) unpass_op(c, seq[i]);
    return sum;
}

/* Moves ops forward within windows where that makes the order narrower.  True if anything moved. */
static bool improve(rl_arena *mem, const incidence *x, uint32_t *seq) {
    enum { WINDOW = 16 };
    cut c = {x, rl_new(mem, uint32_t, x->nval), 0};
    bool changed = false;
    for (uint32_t i = 0; i < x->nop; i++) {
        uint32_t n = RL_MIN(WINDOW, x->nop - i), best = 0;
        double least = window_width(&c, seq + i, n, 0);
        for (uint32_t k = 1; k < n; k++) {
            double w = window_width(&c, seq + i, n, k);
            if (w < least) least = w, best = k;
        }
        uint32_t op = seq[i + best];
        memmove(seq + i + 1, seq + i, best * sizeof *seq);
        seq[i] = op;
        changed |= best != 0;
        pass_op(&c, op);
    }
    return changed;
}

static void reverse(uint32_t *seq, uint32_t n) {
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t t = seq[i];
        seq[i] = seq[n - 1 - i];
        seq[n - 1 - i] = t;
    }
}

rl_arrangement rl_arrange_better(rl_arena *mem, const rl_cover *p, rl_arrangement best, double deadline) {
    enum { MOST_START = 40, IMPROVE = 5, ROUND = 10 };
    incidence x = incidence_of(mem, p);
    rl_arrangement list[IMPROVE] = {best};
    uint32_t nstart = RL_MIN(p->nop, RL_MAX(2u, RL_MIN(MOST_START, 400000 / p->nop)));
    for (uint32_t k = 0; k < 2 * nstart && !rl_time_up(mem->ctx, deadline); k++)
        enlist(list, IMPROVE, try_greedy(mem, &x, (uint32_t)((uint64_t)(k / 2) * p->nop / nstart), k % 2));
    for (uint32_t k = 0; k < IMPROVE && list[k].seq; k++) {
        rl_arrangement a = list[k];
        a.seq = rl_copy(mem, a.seq, p->nop * sizeof *a.seq);
        bool moved = true;
        for (uint32_t round = 0; moved && round < ROUND && !rl_time_up(mem->ctx, deadline); round++) {
            moved = improve(mem, &x, a.seq);
            reverse(a.seq, p->nop);
            moved |= improve(mem, &x, a.seq);
            reverse(a.seq, p->nop);
        }
        a.width = width_of(mem, &x, a.seq);
        if (a.width < best.width) best = a;
    }
    return best;
}
