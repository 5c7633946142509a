/* The configurations that the assignment may choose from.
 *
 * Classes joined by ops that may move form components; one in which the model as it stands costs nothing is done.  For the
 * others the candidates are collected: every order, where no class has more than FULLATOM atoms; else the closure of the orders
 * that fixed ops and the model itself use, carried through every op to a fixpoint.  Those have level 0; an order that had to be
 * bent to fit an op (a block gathered, missing atoms placed) is one level above the order that it came from, and only levels
 * up to RL_MAXLEVEL are kept.  Others may take their place for a while (candidates_fold.c).
 *
 * Needs: tokens and forms.  Keeps: the graph. */
#include "charge.h"
#include "configs.h"

#define BUDGET 20000   /* configurations looked at; level 0 is completed all the same */
#define MANYMORE 10    /* times as many in all are too many to plan again; */
#define MANYOPS 4096   /* as many of a graph with more ops than that, which needs much memory */
#define FULLATOM 4     /* every order is a candidate where no class has more atoms */
#define WIDEATOM 5     /* likewise, of components that could not be proved otherwise */

/* ---- components ---- */

bool rl_may_move(const rl_oplegal *op) { return !op->fixed && op->npin > 0 && op->ntoken > 1; }

static void components(rl_plan *p) {
    uint32_t *up = rl_new(p->mem, uint32_t, p->cls.n);
    for (uint32_t c = 0; c < p->cls.n; c++) up[c] = c;
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        uint32_t first = RL_NONE;
        for (uint32_t o = 0; o < op->noperand && rl_may_move(op); o++) {
            if (!op->operand[o].pin) continue;
            if (first == RL_NONE) first = rl_root(up, op->operand[o].cls);
            else up[rl_root(up, op->operand[o].cls)] = first;
        }
    }
    for (uint32_t c = 0; c < p->cls.n; c++) p->cls.p[c].comp = rl_root(up, c);
    p->ncomp = p->cls.n;
    p->active = rl_new(p->mem, bool, p->ncomp);
    for (uint32_t k = 0; k < p->op.n; k++) {
        rl_oplegal *op = &p->op.p[k];
        for (uint32_t o = 0; o < op->noperand; o++)
            if (op->operand[o].pin) op->comp = p->cls.p[op->operand[o].cls].comp;
    }
}

/* Components in which the model as it stands names two orders of one class, or by time is charged for a form; or for an Einsum's more than where that
 * is written anew. */
static void find_active(rl_plan *p, bool by_time) {
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        if (!(by_time || op->part) || !rl_may_move(op)) continue;
        int64_t charge = rl_config_charge(p, op, &(rl_config){RL_NONE, NULL, 0});
        if (charge > (by_time ? 0 : p->target->charge[RL_EINSUM_TURNED])) p->active[op->comp] = true;
    }
    const uint8_t **first = rl_new(p->mem, const uint8_t *, p->cls.n);
    for (uint32_t k = 0; k < p->op.n; k++)
        for (uint32_t o = 0; o < p->op.p[k].noperand; o++) {
            const rl_operand *x = &p->op.p[k].operand[o];
            const rl_cls *c = &p->cls.p[x->cls];
            if (!x->pin) continue;
            const uint8_t *seq = p->member[x->tensor.i].seq;
            if (!first[x->cls]) first[x->cls] = seq;
            if (!rl_same_bytes(first[x->cls], seq, c->natom)) p->active[c->comp] = true;
        }
}

static bool is_own(const rl_plan *p, const rl_oplegal *op) { return p->op.p + op->like == op; }

void rl_share_candidates(rl_plan *p) {
    for (uint32_t c = 0; c < p->cls.n; c++) {
        rl_cls *x = &p->cls.p[c];
        if (x->like == c) continue;
        x->order = p->cls.p[x->like].order;
        x->order.cap = x->order.n;
        x->index = NULL;
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        rl_oplegal *op = &p->op.p[k];
        if (is_own(p, op)) continue;
        op->config = p->op.p[op->like].config;
        op->pinorder = p->op.p[op->like].pinorder;
    }
    rl_new(p->mem, char, 1); /* so that no array that is shared is the newest of the arena, which grows where it is */
}

/* How much is known of the op's classes. */
static uint64_t known(rl_memo *m, const rl_oplegal *op) {
    uint64_t n = 1;
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].pin) n += rl_memo_known(m, op->operand[o].cls);
    return n;
}

/* Carries orders of up to `maxlevel` through the ops of some components until nothing new appears, or the budget of configurations is spent. */
static void close_orders(rl_plan *p, rl_memo *m, const bool *comp, uint32_t maxlevel, int64_t *budget, rl_arena *tmp) {
    const bool *full = p->full;
    uint64_t *done = rl_new(tmp, uint64_t, p->op.n);
    for (uint32_t sweep = 0, more = 1; more && (maxlevel == 0 || *budget > 0); sweep++) {
        more = 0;
        for (uint32_t i = 0; i < p->op.n && (maxlevel == 0 || *budget > 0); i++) {
            uint32_t k = sweep % 2 ? p->op.n - 1 - i : i; /* there and back: chains need not wait for a sweep per op */
            rl_oplegal *op = &p->op.p[k];
            if (!rl_is_worked_on(p, k, comp) || (full[op->comp] && done[k])) continue;
            uint64_t now = known(m, op);
            if (now == done[k]) continue;
            rl_memo_configs(m, k, full[op->comp], maxlevel);
            *budget -= op->config.n;
            done[k] = known(m, op);
            more |= done[k] != now;
        }
    }
}

bool *rl_small_components(const rl_plan *p, uint32_t mostatom) {
    bool *small = rl_copy(p->mem, p->active, p->ncomp * sizeof *small);
    for (uint32_t c = 0; c < p->cls.n; c++)
        if (!p->cls.p[c].constant && p->cls.p[c].natom > mostatom) small[p->cls.p[c].comp] = false;
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        if (rl_may_move(op) && small[op->comp] && !rl_has_few_configs(op)) small[op->comp] = false;
    }
    return small;
}

/* Full from now on: those chosen that are not too wide. */
static bool widen_full(rl_plan *p, const bool *chosen) {
    const bool *small = rl_small_components(p, WIDEATOM);
    bool any = false;
    for (uint32_t k = 0; k < p->ncomp; k++) {
        if (!small[k] || p->full[k] || p->folded[k] || !chosen[k]) continue;
        any = p->full[k] = true;
    }
    return any;
}

/* Of some components, which are active. */
static void collect(rl_plan *p, const bool *comp, uint32_t maxlevel, rl_memo *m, rl_arena *tmp) {
    int64_t budget = BUDGET;
    for (uint32_t level = 0; level <= maxlevel; level++) close_orders(p, m, comp, level, &budget, tmp);
    rl_share_candidates(p);
    uint64_t total = 0;
    for (uint32_t k = 0; k < p->op.n; k++) total += rl_may_move(&p->op.p[k]) && p->active[p->op.p[k].comp] ? p->op.p[k].config.n : 0;
    p->large |= p->op.n > MANYOPS ? budget < 0 || total > BUDGET : total > MANYMORE * BUDGET;
}

void rl_logical_configs(rl_plan *p) {
    for (uint32_t k = 0; k < p->op.n; k++) rl_logical_config(p, &p->op.p[k]);
}

void rl_candidates(rl_plan *p, const int64_t *extra, bool by_time) {
    components(p);
    find_active(p, by_time);
    for (uint32_t k = 0; k < p->op.n; k++) p->op.p[k].like = k;
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    rl_memo *m = rl_memo_new(p, &tmp);
    rl_twins(p, m, extra);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (is_own(p, &p->op.p[k])) rl_logical_config(p, &p->op.p[k]);
    p->full = rl_small_components(p, FULLATOM);
    p->folded = rl_new(p->mem, bool, p->ncomp);
    collect(p, p->active, RL_MAXLEVEL, m, &tmp);
    rl_arena_free(&tmp);
}

void rl_forget_orders(rl_plan *p, const bool *comp) {
    for (uint32_t c = 0; c < p->cls.n; c++) {
        rl_cls *x = &p->cls.p[c];
        if (!comp[x->comp]) continue;
        x->order.p = NULL;
        x->order.n = x->order.cap = 0;
        x->index = NULL;
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        rl_oplegal *op = &p->op.p[k];
        bool any = false; /* some pin is on a class whose orders are those of a class that has none now */
        for (uint32_t o = 0; o < op->noperand; o++) any |= op->operand[o].pin && comp[p->cls.p[p->cls.p[op->operand[o].cls].like].comp];
        if (!any || !is_own(p, op)) continue;
        op->config.p = NULL;
        op->pinorder.p = NULL;
        op->config.n = op->config.cap = op->pinorder.n = op->pinorder.cap = 0;
        rl_logical_config(p, op);
    }
}

bool rl_candidates_widen(rl_plan *p, const bool *chosen) {
    bool *was = rl_copy(p->mem, p->full, p->ncomp * sizeof *was), *again = rl_new(p->mem, bool, p->ncomp), *lifted = rl_new(p->mem, bool, p->ncomp);
    bool any = widen_full(p, chosen) || p->lifted.n;
    if (!any) return false;
    for (uint32_t i = 0; i < p->lifted.n; i++) lifted[p->cls.p[p->lifted.p[i].cls].comp] = true;
    for (uint32_t k = 0; k < p->ncomp; k++) {
        lifted[k] &= !p->full[k];
        again[k] = lifted[k] || p->full[k] != was[k];
    }
    rl_forget_orders(p, lifted);
    for (uint32_t i = 0; i < p->lifted.n; i++)
        if (lifted[p->cls.p[p->lifted.p[i].cls].comp]) rl_order_intern(p, p->lifted.p[i].cls, p->lifted.p[i].order);
    p->lifted.n = 0;
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    collect(p, again, 0, rl_memo_new(p, &tmp), &tmp);
    rl_arena_free(&tmp);
    return true;
}

bool rl_every_config(rl_plan *p, rl_arena *tmp) {
    rl_memo *m = rl_memo_new(p, tmp);
    for (uint32_t k = 0; k < p->op.n; k++) rl_logical_config(p, &p->op.p[k]);
    for (uint32_t k = 0; k < p->op.n; k++) {
        bool few = rl_has_few_configs(&p->op.p[k]);
        if (!p->op.p[k].fixed) rl_memo_configs(m, k, few, few ? RL_MAXLEVEL : 0);
        if (!few) return false;
    }
    return true;
}
