/* Puts on every edge the layout in which its producer makes it.
 *
 * The layout of a tensor is the order that the configuration of its class's producer names, read through the tensor's own
 * dims.  Where a consumer asks for another order, lower.c writes one conversion for all that ask for it; the layouts here are
 * what `relayout print --after insert` shows.
 *
 * Needs: plan with choices.  Keeps: everything else. */
#include "plan.h"
#include "../src/layout.h"

static void put_layout(rl_plan *p, uint32_t v, const uint8_t *order)
{
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
    p->g->val[v].layout = rl_layout_make(&p->g->mem, m->natom, axis, sub, size);
}

rl_status rl_pass_insert(rl_pass_run *r)
{
    rl_plan *p = r->plan;
    const uint8_t **made = rl_new(r->tmp, const uint8_t *, p->cls.n);
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        uint32_t pin = 0;
        for (uint32_t o = 0; o < op->noperand; o++) {
            if (!op->operand[o].pin) continue;
            uint32_t order = op->pinorder.p[op->chosen * op->npin + pin++];
            if (op->operand[o].out) made[op->operand[o].cls] = p->cls.p[op->operand[o].cls].order.p[order].p;
        }
    }
    for (uint32_t v = 0; v < p->g->nval; v++)
        if (p->member[v].cls != RL_NONE && made[p->member[v].cls]) put_layout(p, v, made[p->member[v].cls]);
    return RL_OK;
}
