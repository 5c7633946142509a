/* All configurations as candidates, where few of them are of use (candidates.c).
 *
 * Of six atoms there are 720 orders, and nobody wants most of them: what always lies side by side in the model may as well do so in every
 * candidate.  Here all configurations of a component are enumerated, and a fold that keeps neighbours together (neighbours.c) takes most of them out:
 * the image of each is one that is charged no more, so that some cheapest choice is left, by count, by bytes and by time.  Where the fold leaves most of
 * them, nothing is gained, and the closure is taken instead.
 *
 * Example: the twelve layers of a decoder with rotary embeddings have 66,436 configurations, of which 8,046 are left; the closure has 11,393. */
#include "bound.h"
#include "configs.h"

enum {
    MOST_ATOMS = 6,
    MOST_CONFIGS = 1 << 20, /* in all */
};
#define MOST_SECONDS 1.0 /* of folding */

static uint64_t count(const rl_plan *p, const bool *comp) {
    uint64_t n = 0;
    for (uint32_t k = 0; k < p->op.n; k++) n += rl_is_worked_on(p, k, comp) ? rl_count_configs(&p->op.p[k]) : 0;
    return n;
}

static void enumerate(rl_plan *p, const bool *comp, rl_arena *tmp) {
    rl_forget_orders(p, comp);
    rl_memo *m = rl_memo_new(p, tmp);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (rl_is_worked_on(p, k, comp)) rl_memo_configs(m, k, true, 0);
}

/* How far ops stray from the input decides only among equals, and not here. */
static int64_t *charges_of(const rl_oplegal *op, rl_arena *mem) {
    int64_t *cost = rl_new(mem, int64_t, op->config.n);
    for (uint32_t c = 0; c < op->config.n; c++) cost[c] = op->config.p[c].charge;
    return cost;
}

/* The ops of some components; those of twins are left empty. */
static rl_problem problem_of(const rl_plan *p, const bool *comp, bool plain, rl_arena *mem) {
    int64_t *weight = rl_new(mem, int64_t, p->cls.n);
    uint32_t *norder = rl_new(mem, uint32_t, p->cls.n);
    rl_choice *op = rl_new(mem, rl_choice, p->op.n);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        const rl_cls *x = &p->cls.p[c];
        weight[c] = !x->constant && x->like == c && comp[x->comp];
        norder[c] = RL_MAX(1u, x->order.n);
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *o = &p->op.p[k];
        if (o->like == k && rl_touches(p, o, comp)) op[k] = rl_op_choice(o, plain ? NULL : charges_of(o, mem), mem);
    }
    return (rl_problem){.nval = p->cls.n, .nop = p->op.n, .weight = weight, .norder = norder, .op = op};
}

/* comp: those left of which less than two thirds of the configurations are left. */
static void keep_folded(const rl_plan *p, const rl_problem *left, bool *comp, rl_arena *tmp) {
    uint64_t *before = rl_new(tmp, uint64_t, p->ncomp), *after = rl_new(tmp, uint64_t, p->ncomp);
    for (uint32_t k = 0; k < p->op.n; k++) {
        if (!rl_is_worked_on(p, k, comp)) continue;
        before[p->op.p[k].comp] += p->op.p[k].config.n;
        after[p->op.p[k].comp] += left->op[k].ncfg;
    }
    for (uint32_t c = 0; c < p->ncomp; c++) comp[c] = comp[c] && after[p->twin[c]] < before[p->twin[c]] / 3 * 2;
}

/* Takes out of a class the orders that nothing names. to: what their places become. */
static void drop_orders(rl_plan *p, uint32_t cls, const bool *named, uint32_t *to) {
    rl_cls *x = &p->cls.p[cls];
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->order.n; i++) n += named[i];
    rl_order *order = rl_new(p->mem, rl_order, n);
    n = 0;
    for (uint32_t i = 0; i < x->order.n; i++) {
        if (!named[i]) continue;
        to[i] = n;
        order[n++] = x->order.p[i];
    }
    x->order.p = order;
    x->order.n = x->order.cap = n;
    x->index = NULL;
}

static void take_left(rl_plan *p, const rl_problem *left, uint32_t *const *place, const bool *comp) {
    for (uint32_t k = 0; k < p->op.n; k++) {
        rl_oplegal *op = &p->op.p[k];
        const rl_choice *now = &left->op[k];
        if (!rl_is_worked_on(p, k, comp)) continue;
        rl_config *config = rl_new(p->mem, rl_config, now->ncfg);
        for (uint32_t i = 0; i < now->ncfg; i++) config[i] = op->config.p[place[k][i]];
        op->config.p = config;
        op->config.n = op->config.cap = now->ncfg;
        op->pinorder.n = op->pinorder.cap = now->ncfg * now->npin;
        op->pinorder.p = rl_copy(p->mem, now->order, op->pinorder.n * sizeof *now->order);
    }
}

/* The class whose orders the op's i-th pinorder is one of. */
static uint32_t class_at(const rl_plan *p, const rl_choice *o, uint32_t i) { return p->cls.p[o->value[i % o->npin]].like; }

/* Leaves the orders that some configuration names. */
static void renumber(rl_plan *p, const rl_problem *x, const bool *comp, rl_arena *tmp) {
    bool **named = rl_new(tmp, bool *, p->cls.n);
    uint32_t **to = rl_new(tmp, uint32_t *, p->cls.n);
    for (uint32_t c = 0; c < p->cls.n; c++)
        if (x->weight[c] && comp[p->cls.p[c].comp]) named[c] = rl_new(tmp, bool, x->norder[c]), to[c] = rl_new(tmp, uint32_t, x->norder[c]);
    for (uint32_t k = 0; k < x->nop; k++)
        for (uint32_t i = 0; i < p->op.p[k].pinorder.n && x->op[k].npin; i++) {
            uint32_t c = class_at(p, &x->op[k], i);
            if (named[c]) named[c][p->op.p[k].pinorder.p[i]] = true;
        }
    for (uint32_t c = 0; c < p->cls.n; c++)
        if (named[c]) drop_orders(p, c, named[c], to[c]);
    for (uint32_t k = 0; k < x->nop; k++)
        for (uint32_t i = 0; i < p->op.p[k].pinorder.n && x->op[k].npin; i++) {
            const uint32_t *now = to[class_at(p, &x->op[k], i)];
            if (now) p->op.p[k].pinorder.p[i] = now[p->op.p[k].pinorder.p[i]];
        }
}

/* Before orders go. */
static const rl_kept *whole_of(const rl_plan *p, uint32_t *const *to, const bool *comp) {
    rl_kept *whole = rl_new(p->mem, rl_kept, p->cls.n);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        rl_cls x = p->cls.p[c];
        if (x.constant || x.like != c || !comp[x.comp]) continue;
        uint8_t *atom = rl_new(p->mem, uint8_t, x.natom + 1u);
        for (uint32_t i = 0; i < x.natom; i++) atom[i] = (uint8_t)i;
        x.kept = (rl_kept){.n = x.natom, .atom = atom};
        if (to[c]) x.kept.fold = rl_fold_places(&x, to[c], p->mem);
        whole[c] = x.kept;
    }
    return whole;
}

static void fold(rl_plan *p, const rl_saved *was, bool *comp, bool plain, rl_arena *tmp) {
    bool *other = rl_copy(tmp, comp, p->ncomp * sizeof *comp);
    enumerate(p, comp, tmp);
    rl_problem x = problem_of(p, comp, plain, tmp);
    uint32_t **to = rl_new(tmp, uint32_t *, p->cls.n), **place = rl_new(tmp, uint32_t *, p->op.n);
    rl_fold_neighbours(p, &x, rl_work_seconds() + MOST_SECONDS, to, tmp);
    rl_fold_apply(tmp, &x, to, place);
    keep_folded(p, &x, comp, tmp);
    p->whole = whole_of(p, to, comp);
    take_left(p, &x, place, comp);
    renumber(p, &x, comp, tmp);
    rl_share_candidates(p);
    p->folded = comp;
    for (uint32_t c = 0; c < p->ncomp; c++) other[c] &= !comp[c];
    rl_candidates_restore(p, was, other);
}

const rl_saved *rl_candidates_fold(rl_plan *p, bool plain, rl_arena *mem) {
    bool *comp = rl_small_components(p, MOST_ATOMS);
    for (uint32_t c = 0; c < p->ncomp; c++) comp[c] &= !p->full[c];
    uint64_t n = count(p, comp);
    if (n == 0 || n > MOST_CONFIGS) return NULL;
    const rl_saved *was = rl_candidates_save(p, mem);
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    fold(p, was, comp, plain, &tmp);
    rl_arena_free(&tmp);
    return was;
}
