/* Folds of a restricted problem (solve.h, rl_problem_fold), as the certificate has them: of each class an order for each of the kept atoms' orders,
 * by their places in the dictionary.
 *
 * Needs: the restricted plan, with every configuration. */
#include "bound.h"
#include <string.h>

uint32_t rl_order_place(const uint8_t *order, uint32_t n) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t less = 0;
        for (uint32_t j = i + 1; j < n; j++) less += order[j] < order[i];
        r = r * (n - i) + less;
    }
    return r;
}

static uint32_t place_of(const rl_kept *kept, const uint8_t *order) { return rl_order_place(order, kept->n); }

static uint32_t norders(uint32_t n) {
    uint32_t all = 1;
    for (uint32_t i = 2; i <= n; i++) all *= i;
    return all;
}

const uint16_t *rl_fold_places(const rl_cls *x, const uint32_t *to, rl_arena *mem) {
    uint32_t n = norders(x->kept.n);
    uint16_t *fold = rl_new(mem, uint16_t, n);
    bool any = false;
    for (uint32_t i = 0; i < n; i++) fold[i] = (uint16_t)i;
    for (uint32_t i = 0; i < x->order.n; i++) {
        fold[place_of(&x->kept, x->order.p[i].p)] = (uint16_t)place_of(&x->kept, x->order.p[to[i]].p);
        any |= to[i] != i;
    }
    return any ? fold : NULL;
}

void rl_fold_note(rl_plan *p, const rl_plan *q, const bool *open, uint32_t *const *to, uint32_t *const *again) {
    for (uint32_t c = 0; c < q->cls.n; c++) {
        const rl_cls *x = &q->cls.p[c];
        if (!x->size || x->constant || !open[x->comp] || !x->kept.atom) continue;
        if (to[c]) p->cls.p[c].kept.fold = rl_fold_places(x, to[c], p->mem);
        if (again && again[c]) p->cls.p[c].kept.refold = rl_fold_places(x, again[c], p->mem);
    }
}

void rl_fold_noted(const rl_plan *q, uint32_t **to, rl_arena *tmp) {
    for (uint32_t c = 0; c < q->cls.n; c++) {
        const rl_cls *x = &q->cls.p[c];
        if (!x->size || !x->kept.atom || !x->kept.fold) continue;
        uint32_t *at = rl_new(tmp, uint32_t, norders(x->kept.n));
        to[c] = rl_new(tmp, uint32_t, x->order.n);
        for (uint32_t i = 0; i < x->order.n; i++) at[place_of(&x->kept, x->order.p[i].p)] = i;
        for (uint32_t i = 0; i < x->order.n; i++) to[c][i] = at[x->kept.fold[place_of(&x->kept, x->order.p[i].p)]];
    }
}

void rl_fold_then(const rl_plan *q, uint32_t **to, uint32_t *const *next) {
    for (uint32_t c = 0; c < q->cls.n; c++) {
        if (!to[c]) to[c] = next[c];
        else if (next[c])
            for (uint32_t k = 0; k < q->cls.p[c].order.n; k++) to[c][k] = next[c][to[c][k]];
    }
}

static bool is_own_image(const rl_choice *o, uint32_t cfg, uint32_t *const *to) {
    for (uint32_t k = 0; k < o->npin; k++) {
        uint32_t order = o->order[(size_t)cfg * o->npin + k];
        if (to[o->value[k]] && to[o->value[k]][order] != order) return false;
    }
    return true;
}

uint32_t rl_fold_leaves(const rl_problem *p, uint32_t *const *to) {
    uint32_t n = 0;
    for (uint32_t o = 0; o < p->nop; o++)
        for (uint32_t c = 0; c < p->op[o].ncfg; c++) n += is_own_image(&p->op[o], c, to);
    return n;
}

void rl_fold_apply(rl_arena *mem, rl_problem *p, uint32_t *const *to, uint32_t **place) {
    rl_choice *op = (rl_choice *)p->op;
    for (uint32_t o = 0; o < p->nop; o++) {
        int64_t *cost = op[o].cost ? rl_new(mem, int64_t, op[o].ncfg) : NULL;
        uint32_t n = 0, npin = op[o].npin, *order = rl_new(mem, uint32_t, (size_t)op[o].ncfg * npin);
        place[o] = rl_new(mem, uint32_t, op[o].ncfg);
        for (uint32_t c = 0; c < op[o].ncfg; c++) {
            if (!is_own_image(&op[o], c, to)) continue;
            memcpy(order + (size_t)n * npin, op[o].order + (size_t)c * npin, npin * sizeof *order);
            if (cost) cost[n] = op[o].cost[c];
            place[o][n++] = c;
        }
        op[o].order = order;
        op[o].cost = cost;
        op[o].ncfg = n;
    }
    p->start = NULL;
}

/* ---- which configuration names these orders? ---- */

rl_hash rl_config_index(rl_arena *mem, const rl_choice *o) {
    rl_hash index = {.mem = mem};
    for (uint32_t c = 0; c < o->ncfg; c++) {
        uint64_t h = rl_hash_bytes(o->order + (size_t)c * o->npin, o->npin * sizeof *o->order) | 1;
        while (rl_hash_get(&index, h) != RL_NONE) h++;
        rl_hash_put(&index, h, c);
    }
    return index;
}

uint32_t rl_config_find(const rl_hash *index, const rl_choice *o, const uint32_t *order) {
    size_t size = o->npin * sizeof *order;
    uint64_t h = rl_hash_bytes(order, size) | 1;
    for (uint32_t i; (i = rl_hash_get(index, h)) != RL_NONE; h++)
        if (rl_same_bytes(o->order + (size_t)i * o->npin, order, size)) return i;
    return RL_NONE;
}

/* Is the image of every configuration, pin by pin, one of them? */
static bool folds(const rl_choice *o, uint32_t *const *to, rl_arena *tmp) {
    const rl_hash index = rl_config_index(tmp, o);
    uint32_t *now = rl_new(tmp, uint32_t, o->npin + 1);
    for (uint32_t c = 0; c < o->ncfg; c++) {
        const uint32_t *order = o->order + (size_t)c * o->npin;
        for (uint32_t k = 0; k < o->npin; k++) now[k] = to[o->value[k]] ? to[o->value[k]][order[k]] : order[k];
        if (rl_same_bytes(now, order, o->npin * sizeof *now)) continue;
        uint32_t i = rl_config_find(&index, o, now);
        if (i == RL_NONE || (o->cost && o->cost[i] > o->cost[c])) return false;
    }
    return true;
}

/* The solver folds sets of orders, the certificate pin by pin: where an op names one value twice, that may be less. */
bool rl_fold_drop(const rl_plan *q, const rl_problem *p, uint32_t **to, rl_arena *tmp) {
    bool *bad = rl_new(tmp, bool, q->ncomp);
    rl_arena one;
    rl_arena_init(&one, tmp->ctx);
    for (uint32_t o = 0; o < p->nop; o++) {
        if (q->op.p[o].comp != RL_NONE && !bad[q->op.p[o].comp] && !folds(&p->op[o], to, &one)) bad[q->op.p[o].comp] = true;
        rl_arena_free(&one);
    }
    bool all = true;
    for (uint32_t c = 0; c < q->cls.n; c++)
        if (to[c] && bad[q->cls.p[c].comp]) {
            to[c] = NULL;
            all = false;
        }
    return all;
}
