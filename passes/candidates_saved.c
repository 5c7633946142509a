/* Candidates put aside while others are in their place. */
#include "configs.h"

struct rl_saved {
    struct class_lists { rl_order *order; uint32_t n, cap; rl_hash *index; } *cls;
    struct op_lists { rl_config *config; uint32_t *pinorder; uint32_t nconfig, capconfig, npinorder, cappinorder; } *op;
    bool *full;
};

const rl_saved *rl_candidates_save(const rl_plan *p, rl_arena *mem) {
    rl_saved *x = rl_new(mem, rl_saved, 1);
    x->cls = rl_new(mem, struct class_lists, p->cls.n);
    x->op = rl_new(mem, struct op_lists, p->op.n);
    x->full = rl_copy(mem, p->full, p->ncomp * sizeof *p->full);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        const rl_cls *k = &p->cls.p[c];
        x->cls[c] = (struct class_lists){k->order.p, k->order.n, k->order.cap, k->index};
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *o = &p->op.p[k];
        x->op[k] = (struct op_lists){o->config.p, o->pinorder.p, o->config.n, o->config.cap, o->pinorder.n, o->pinorder.cap};
    }
    return x;
}

static void restore_op(rl_oplegal *o, const struct op_lists *x) {
    o->config.p = x->config;
    o->config.n = x->nconfig;
    o->config.cap = x->capconfig;
    o->pinorder.p = x->pinorder;
    o->pinorder.n = x->npinorder;
    o->pinorder.cap = x->cappinorder;
}

void rl_candidates_restore(rl_plan *p, const rl_saved *x, const bool *comp) {
    for (uint32_t c = 0; c < p->ncomp; c++)
        if (!comp || comp[c]) p->full[c] = x->full[c];
    for (uint32_t c = 0; c < p->cls.n; c++) {
        rl_cls *k = &p->cls.p[c];
        if (comp && !comp[k->comp]) continue;
        k->order.p = x->cls[c].order;
        k->order.n = x->cls[c].n;
        k->order.cap = x->cls[c].cap;
        k->index = x->cls[c].index;
    }
    for (uint32_t k = 0; k < p->op.n; k++) {
        rl_oplegal *o = &p->op.p[k];
        if (!comp || (rl_may_move(o) && comp[o->comp])) restore_op(o, &x->op[k]);
        else if (!rl_may_move(o)) rl_logical_config(p, o);
    }
}

/* A configuration that is chosen, and at each pin the order that it names. */
typedef struct { rl_config config; const uint8_t **order; } named;

static named name_of(const rl_plan *p, const rl_oplegal *op, uint32_t c, rl_arena *mem) {
    named x = {op->config.p[c], rl_new(mem, const uint8_t *, op->npin)};
    RL_EACH_PIN(op, o, pin) x.order[pin] = p->cls.p[op->operand[o].cls].order.p[rl_pin_order(op, c, pin)].p;
    return x;
}

/* Which configuration that is; one that is new becomes the last. */
static uint32_t add(rl_plan *p, rl_oplegal *op, const named *x, rl_arena *tmp) {
    uint32_t *order = rl_new(tmp, uint32_t, op->npin);
    RL_EACH_PIN(op, o, pin) order[pin] = rl_order_intern(p, op->operand[o].cls, x->order[pin]);
    for (uint32_t c = 0; c < op->config.n; c++)
        if (rl_same_bytes(op->pinorder.p + c * op->npin, order, op->npin * sizeof *order)) return c;
    rl_push(p->mem, op->config, x->config);
    for (uint32_t i = 0; i < op->npin; i++) rl_push(p->mem, op->pinorder, order[i]);
    return op->config.n - 1;
}

void rl_candidates_unfold(rl_plan *p, const rl_saved *x, bool optimal, uint32_t *cfg) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    named *chosen = rl_new(&tmp, named, p->op.n);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (rl_is_worked_on(p, k, p->folded)) chosen[k] = name_of(p, &p->op.p[k], cfg[k], &tmp);
    p->left = rl_candidates_save(p, p->mem);
    rl_candidates_restore(p, x, p->folded);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (rl_is_worked_on(p, k, p->folded)) cfg[k] = add(p, &p->op.p[k], &chosen[k], &tmp);
    rl_share_candidates(p);
    for (uint32_t k = 0; k < p->op.n; k++)
        if (rl_may_move(&p->op.p[k]) && p->folded[p->op.p[k].comp]) cfg[k] = cfg[p->op.p[k].like];
    for (uint32_t c = 0; c < p->ncomp; c++) p->folded[c] &= optimal;
    rl_arena_free(&tmp);
}
