/* Puts on every edge the layout in which its producer makes it.
 *
 * The layout of a tensor is the order that the configuration of its class's producer names, read through the tensor's own
 * dims.  Where a consumer asks for another order, lower.c writes one conversion for all that ask for it; the layouts here are
 * what `relayout print --after insert` shows.
 *
 * Needs: plan with choices.  Keeps: everything else. */
#include "plan.h"
#include "../src/layout.h"

/* Those made so far: many values have the same. */
typedef struct {
    rl_arena *mem, *tmp;
    rl_hash index;
    struct { struct pair { rl_layout digits; const rl_layout *made; } *p; uint32_t n, cap; } all;
} layouts;

static const rl_layout *layout_of(layouts *s, const rl_layout *x) {
    uint64_t h = (rl_hash_bytes(x->axis, x->n) * 31 + rl_hash_bytes(x->sub, x->n)) * 31 + rl_hash_bytes(x->size, x->n * sizeof *x->size);
    for (uint32_t i; (i = rl_hash_get(&s->index, h)) != RL_NONE; h++)
        if (rl_layout_equal(&s->all.p[i].digits, x)) return s->all.p[i].made;
    rl_layout own = {x->n, rl_copy(s->tmp, x->axis, x->n), rl_copy(s->tmp, x->sub, x->n), rl_copy(s->tmp, x->size, x->n * sizeof *x->size)};
    const rl_layout *made = rl_layout_make(s->mem, x->n, x->axis, x->sub, x->size);
    rl_hash_put(&s->index, h, s->all.n);
    rl_push(s->tmp, s->all, ((struct pair){own, made}));
    return made;
}

static void put_layout(rl_plan *p, layouts *s, uint32_t v, const uint8_t *order) {
    const rl_member *m = &p->member[v];
    uint8_t axis_of[256], sub_of[256];
    bool identity = true;
    for (uint32_t d = 0; d < p->g->val[v].rank; d++)
        for (uint32_t k = m->dimstart[d]; k < m->dimstart[d + 1]; k++) {
            axis_of[m->seq[k]] = (uint8_t)d;
            sub_of[m->seq[k]] = (uint8_t)(k - m->dimstart[d]);
        }
    for (uint32_t k = 0; k < m->natom; k++) identity &= m->seq[k] == order[k];
    if (identity) return;
    uint8_t axis[RL_MAXATOM], sub[RL_MAXATOM];
    rl_dim size[RL_MAXATOM];
    for (uint32_t k = 0; k < m->natom; k++) {
        axis[k] = axis_of[order[k]];
        sub[k] = sub_of[order[k]];
        size[k] = p->cls.p[m->cls].size[order[k]];
    }
    p->g->val[v].layout = layout_of(s, &(rl_layout){m->natom, axis, sub, size});
}

rl_status rl_pass_insert(rl_pass_run *r) {
    rl_plan *p = r->plan;
    layouts s = {.mem = &p->g->mem, .tmp = r->tmp, .index.mem = r->tmp};
    const uint8_t **made = rl_new(r->tmp, const uint8_t *, p->cls.n);
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        RL_EACH_PIN(op, o, pin) {
            uint32_t order = rl_pin_order(op, op->chosen, pin);
            if (op->operand[o].out) made[op->operand[o].cls] = p->cls.p[op->operand[o].cls].order.p[order].p;
        }
    }
    for (uint32_t v = 0; v < p->g->nval; v++)
        if (p->member[v].cls != RL_NONE && made[p->member[v].cls]) put_layout(p, &s, v, made[p->member[v].cls]);
    return RL_OK;
}
