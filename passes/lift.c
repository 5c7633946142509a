/* Candidates out of the bound: the orders that the optimum of the restriction names, with the atoms that it left out (bound.c).
 *
 * Where the bound is below the cheapest assignment known, often the candidates are why: the closure of the model's own orders
 * (candidates.c) lacks one, or has so many that the limits cut it short.  The restriction has every order of the atoms it keeps, and so its optimum tells which.
 *   atoms of x          h0 h1 h2 w0 w1 w2 c, kept h0 h2 w0 w2 c       dims of x's tensors: h0 h1 . h2 . w0 w1 . w2 . c
 *   order named         w0 h0 c h2 w2
 *   candidate           w0 w1 h0 h1 c h2 w2                           an atom goes with one that is kept and lies in the same dims
 * Several optima are as cheap; what is lifted is the one that strays least from the model as it stands: fewest pairs of atoms swapped
 * at the pins of all ops.  The candidates are then collected once more, from these orders and those of the assignment: few, and
 * whether they help the next solution shows.
 *
 * Needs: the restricted plan.  Keeps: the plan.  Leaves: p->lifted. */
#include "keep.h"
#include <string.h>

/* ---- the optimum that strays least ---- */

static uint32_t swapped_pairs(const uint8_t *order, const uint8_t *stands, uint32_t n) {
    uint32_t place[RL_MAXATOM + 1], found = 0; /* of each atom, in what stands */
    for (uint32_t i = 0; i < n; i++) place[stands[i]] = i;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) found += place[order[i]] > place[order[j]];
    return found;
}

static uint32_t strays(const rl_plan *q, const rl_oplegal *op, const uint32_t *order) {
    uint32_t n = 0;
    RL_EACH_PIN(op, o, pin) {
        const rl_cls *c = &q->cls.p[op->operand[o].cls];
        n += swapped_pairs(c->order.p[order[pin]].p, c->order.p[rl_pin_order(op, 0, pin)].p, c->natom);
    }
    return n;
}

bool rl_lift_costs(const rl_plan *q, rl_problem *problem) {
    rl_choice *op = (rl_choice *)problem->op;
    int64_t *weight = (int64_t *)problem->weight, all = 1, most;
    double total = 0;
    for (uint32_t o = 0; o < problem->nop; o++) {
        int64_t *cost = rl_new(q->mem, int64_t, op[o].ncfg);
        most = 0;
        for (uint32_t c = 0; c < op[o].ncfg; c++)
            most = RL_MAX(most, cost[c] = strays(q, &q->op.p[o], op[o].order + (size_t)c * op[o].npin));
        op[o].cost = cost;
        all += most;
        for (uint32_t k = 0; k < op[o].npin; k++) total += (double)weight[op[o].value[k]];
    }
    if (total * (double)all + (double)all > 0x1p61) return false;
    for (uint32_t v = 0; v < problem->nval; v++) weight[v] *= all;
    return true;
}

/* ---- orders of all atoms ---- */

/* The kept atom that an atom goes with: of its role if there is one, the nearest before it or else the first behind it. */
static uint32_t goes_with(const rl_kept *kept, const uint64_t *dims, uint32_t atom) {
    uint32_t best = kept->atom[0];
    for (uint32_t i = 1; i < kept->n; i++) {
        uint32_t a = kept->atom[i];
        bool alike = dims[a] == dims[atom], was = dims[best] == dims[atom];
        if (alike == was ? a <= atom : alike) best = a;
    }
    return best;
}

static void lift_order(const rl_cls *c, const rl_kept *kept, const uint64_t *dims, const uint8_t *order, uint8_t *out) {
    uint32_t with[RL_MAXATOM], n = 0;
    for (uint32_t a = 0; a < c->natom; a++) with[a] = goes_with(kept, dims, a);
    for (uint32_t i = 0; i < kept->n; i++)
        for (uint32_t a = 0; a < c->natom; a++)
            if (with[a] == order[i]) out[n++] = (uint8_t)a;
}

/* ---- all that is named ---- */

typedef struct { const rl_plan *p; const bool *open; uint32_t *at; uint64_t *dims; } lifter; /* at, dims: as for rl_hash_dims */

static lifter lifter_of(const rl_plan *p, const bool *open, rl_arena *tmp) {
    lifter l = {p, open, rl_new(tmp, uint32_t, (size_t)p->cls.n + 1), NULL};
    for (uint32_t c = 0; c < p->cls.n; c++) l.at[c + 1] = l.at[c] + (rl_is_open(&p->cls.p[c], open) ? p->cls.p[c].natom : 0);
    l.dims = rl_new(tmp, uint64_t, l.at[p->cls.n]);
    rl_hash_dims(p, open, l.at, l.dims);
    return l;
}

/* The orders that the configurations cfg of `of` name, which is the plan, or the plan restricted: then lifted. */
static void name_orders(const lifter *l, const rl_plan *of, const uint32_t *cfg, rl_namings *out, rl_arena *mem) {
    const uint32_t *start = rl_order_starts(of, mem);
    bool *seen = rl_new(mem, bool, start[of->cls.n]);
    for (uint32_t k = 0; k < of->op.n; k++) {
        const rl_oplegal *op = &of->op.p[k];
        RL_EACH_PIN(op, o, pin) {
            uint32_t cls = op->operand[o].cls, order = rl_pin_order(op, cfg[k], pin);
            const rl_cls *c = &l->p->cls.p[cls], *x = &of->cls.p[cls];
            if (!rl_is_open(c, l->open) || seen[start[cls] + order]) continue;
            seen[start[cls] + order] = true;
            bool lifts = of != l->p && x->cut;
            if (lifts && x->kept.n == 0) continue; /* nothing is named */
            uint8_t *all = rl_new(mem, uint8_t, c->natom + 1u);
            if (lifts) lift_order(c, &x->kept, l->dims + l->at[cls], x->order.p[order].p, all);
            else memcpy(all, x->order.p[order].p, c->natom);
            rl_push(mem, *out, ((rl_naming){cls, c->natom, all}));
        }
    }
}

static bool is_known(const rl_cls *c, const uint8_t *order) {
    for (uint32_t i = 0; i < c->order.n; i++)
        if (rl_same_bytes(c->order.p[i].p, order, c->natom)) return true;
    return false;
}

void rl_lift(rl_plan *p, const uint32_t *cfg, const rl_plan *q, const uint32_t *qcfg, const bool *open) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    const lifter l = lifter_of(p, open, &tmp);
    rl_namings all = {0};
    bool any = false;
    name_orders(&l, q, qcfg, &all, p->mem);
    for (uint32_t i = 0; i < all.n && !any; i++) any = !is_known(&p->cls.p[all.p[i].cls], all.p[i].order);
    if (any) {
        name_orders(&l, p, cfg, &all, p->mem);
        p->lifted = all;
    }
    rl_arena_free(&tmp);
}
