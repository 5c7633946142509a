/* A Gather or Slice can write the rows that it copies in any order.
 *
 *   x[10,2,3,4,16] -> Gather axis=2 -> [10,2,4,16] -> Transpose -> [2,4,10,16]      one Gather of rows of 16, out of x as [240,16]
 *
 * movement.c writes that node, after the layouts are chosen.  Here they are chosen once more with it in view: what such an op, the *picker*, makes is
 * then no pin of it, but made anew by an op that takes any order in which the row, the innermost atoms as the model stands, stays innermost,
 * and costs nothing; lower.c writes the conversion from the one order to the other right behind the picker.  Where that leaves fewer
 * conversions, it is the choice.
 *
 * It is no part of the certificate, which says what layouts alone come to, and it is not done for a target that charges: there a
 * conversion of rows may be kept for its time.
 *
 * Needs: the plan of assign.  Keeps: the graph.  Leaves: that plan, or a better one. */
#include "charge.h"

enum { ROW_BYTES = 64, MAXROWS = 1 << 16 }; /* as movement.c wants them */

static bool all_known(const rl_graph *g, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    for (uint32_t i = 0; i < x->rank; i++)
        if (!rl_dim_known(x->dim[i]) || x->dim[i] == 0) return false;
    return true;
}

/* The token whose one atom this is at an operand, if it is carried along. */
static uint32_t free_token(const rl_oplegal *op, uint32_t operand, uint8_t atom) {
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (op->token[t].natom[operand] == 1 && op->token[t].atom[operand][0] == atom && op->label[op->token[t].label].role == RL_T_FREE) return t;
    return RL_NONE;
}

uint32_t rl_pick_row(const rl_plan *p, const rl_oplegal *op, uint8_t *token) {
    const rl_member *x = &p->member[op->operand[0].tensor.i], *y = &p->member[op->operand[1].tensor.i];
    int64_t bytes = rl_dtype_bits(rl_val(p->g, op->operand[0].tensor)->dtype) / 8;
    for (uint32_t n = 0; n < RL_MIN(x->natom, y->natom) && n < RL_MAXGROUP - 1;) {
        uint8_t atom = y->seq[y->natom - 1 - n];
        uint32_t t = free_token(op, 1, atom);
        if (t == RL_NONE || free_token(op, 0, x->seq[x->natom - 1 - n]) != t) return 0;
        token[n++] = (uint8_t)t;
        if ((bytes = rl_mul(bytes, p->cls.p[y->cls].size[atom])) >= ROW_BYTES) return n;
    }
    return 0;
}

static bool may_pick(const rl_plan *p, const rl_oplegal *op) {
    uint8_t row[RL_MAXGROUP];
    if (op->fixed || op->node.i == RL_NONE || op->noperand != 2 || op->npin != 2 || op->operand[0].out || !op->operand[1].out) return false;
    const rl_nodeinfo *n = rl_nod(p->g, op->node);
    if ((n->op != RL_OP_Gather && n->op != RL_OP_Slice) || (n->op == RL_OP_Gather && !rl_val(p->g, n->in[1])->data)) return false;
    rl_value x = n->in[0], y = n->out[0];
    if (!all_known(p->g, x) || !all_known(p->g, y) || rl_val(p->g, x)->dtype == RL_STRING || rl_dtype_bits(rl_val(p->g, x)->dtype) < 8) return false;
    rl_dim rows = rl_dim_prod(p->g->ctx, rl_val(p->g, y)->dim, rl_val(p->g, y)->rank);
    return rows <= MAXROWS * ROW_BYTES / 8 && rl_pick_row(p, op, row) > 0;
}

/* [nnode] the pickers in components where the choice has conversions; NULL: there are none. */
static const bool *find_pickers(const rl_plan *p, rl_arena *mem) {
    rl_least *cost = rl_new(mem, rl_least, p->ncomp);
    bool *pick = rl_new(mem, bool, p->g->nnode), any = false;
    rl_plan_costs(p, rl_plan_chosen(p, mem), cost, mem);
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        if (op->comp == RL_NONE || cost[op->comp].count == 0 || !may_pick(p, op)) continue;
        any = pick[op->node.i] = true;
    }
    return any ? pick : NULL;
}

/* Tokens of its result: atoms; the row's in groups of their own, innermost last. */
void rl_pick_result(rl_plan *p, const rl_oplegal *picker) {
    uint8_t row[RL_MAXGROUP];
    rl_value v = picker->operand[1].tensor;
    const rl_member *m = &p->member[v.i];
    uint32_t nrow = rl_pick_row(p, picker, row);
    rl_oplegal op = {.node = RL_NONODE, .noperand = 1, .npin = 1, .comp = RL_NONE};
    op.operand = rl_new(p->mem, rl_operand, 1);
    op.operand[0] = (rl_operand){.tensor = v, .out = true, .pin = true, .cls = m->cls};
    op.label = rl_new(p->mem, rl_label, m->natom);
    op.token = rl_new(p->mem, rl_token, m->natom);
    for (uint32_t i = 0; i < m->natom; i++) {
        uint32_t behind = m->natom - 1 - i;
        op.label[i] = (rl_label){.role = RL_T_FREE, .tail = RL_NONE, .group = behind < nrow ? nrow - behind : 0};
        op.token[i] = (rl_token){.label = i, .atom = rl_copy(p->mem, &(uint8_t *){m->seq + i}, sizeof *op.token->atom), .natom = rl_copy(p->mem, "\1", 1)};
    }
    op.nlabel = op.ntoken = m->natom;
    rl_plain_form(p, &op);
    rl_push(p->mem, p->op, op);
}

bool rl_may_try(const rl_pass_run *r) {
    bool by_count = !r->opt->objective || rl_by_objective(r, "nodes");
    return by_count && !rl_target_charges(r->target) && (!r->g->flat || r->trial) && !r->calls && !r->plan->large;
}

rl_status rl_pass_pick(rl_pass_run *r) {
    rl_plan *p = r->plan;
    const rl_outcome kept = *r->out;
    uint32_t round = r->round;
    bool large = r->large;
    r->picked = false;
    if (r->plainly || !rl_may_try(r)) return RL_OK;
    if (!(r->pick = find_pickers(p, r->tmp))) return RL_OK;
    r->round = RL_MAX(round, 1u); /* no bound */
    RL_TRY(rl_pass_legal(r));
    RL_TRY(rl_pass_assign(r));
    r->picked = r->out->conv_after < kept.conv_after;
    r->round = round;
    r->pick = NULL;
    r->large = large;
    r->out->conv_before = kept.conv_before;
    r->out->conv_after = kept.conv_after;
    if (r->picked) return RL_OK;
    r->out->improved = kept.improved;
    r->plan = p;
    return RL_OK;
}
