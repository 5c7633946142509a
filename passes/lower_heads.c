/* Writes an op on heads with the heads behind the sequence, as ONNX reads operands of three dims:
 *
 *   Attention(q[B,H,S,D], k[B,H,T,D], v[B,H,T,D])    ->    Attention(q[B,S,H*D], k[B,T,H*D], v[B,T,H*D]) q_num_heads=H kv_num_heads=H
 *
 * What else it reads (a mask, a cache) and makes (a cache, the scores) stays as it was. */
#include "lower.h"
#include <string.h>

/* The dims of an operand, heads and their size in one where the form has them behind. */
static uint32_t dims_of(rl_lower *l, const rl_oplegal *op, uint32_t o, rl_dims *d) {
    uint32_t order = rl_lower_groups(l, op, o, d);
    if (rl_operand_turns_heads(&op->operand[o])) d->count[2] = (uint8_t)(d->count[2] + d->count[3]), d->ndim = 3;
    return order;
}

/* The node's attributes, and how many heads there are. */
static void set_attrs(rl_lower *l, rl_node n, const rl_nodeinfo *old, const rl_oplegal *op) {
    rl_attr *a = rl_new(&l->now, rl_attr, old->nattr + op->noperand);
    uint32_t na = 0;
    for (uint32_t o = 0; o < op->noperand && !op->operand[o].out; o++) {
        const char *name = rl_op_heads(old->op, op->operand[o].slot);
        if (o == 0 || strcmp(name, a[na - 1].name) != 0) a[na++] = rl_attr_of_int(l->g, name, rl_val(l->g, op->operand[o].tensor)->dim[1]);
    }
    uint32_t own = na;
    for (uint32_t i = 0; i < old->nattr; i++) {
        bool there = false;
        for (uint32_t k = 0; k < own; k++) there |= strcmp(a[k].name, old->attr[i].name) == 0;
        if (!there) a[na++] = old->attr[i];
    }
    rl_graph_set_attrs(l->g, n, a, na);
}

void rl_lower_heads(rl_lower *l, rl_oplegal *op) {
    const rl_nodeinfo old = *rl_nod(l->g, op->node);
    rl_value *in = rl_copy(&l->now, old.in, old.nin * sizeof *in), *out = rl_copy(&l->now, old.out, old.nout * sizeof *out);
    rl_dims *d = rl_new(&l->now, rl_dims, op->noperand);
    uint32_t *order = rl_new(&l->now, uint32_t, op->noperand);
    for (uint32_t i = 0; i < old.nin && !l->failed; i++)
        if (rl_has(in[i]) && !rl_is_operand(op, i)) in[i] = rl_lower_member(l, in[i]);
    for (uint32_t o = 0; o < op->noperand && !l->failed; o++) {
        const rl_operand *x = &op->operand[o];
        order[o] = dims_of(l, op, o, &d[o]);
        if (x->out) out[x->slot] = rl_lower_result(l, x->cls, order[o], &d[o], x->tensor);
        else in[x->slot] = rl_lower_want(l, x->cls, order[o], &d[o]);
    }
    if (l->failed) return;
    rl_node n = rl_lower_node(l, old.op, old.name, old.nin, in, old.nout, out);
    rl_nod(l->g, n)->domain = old.domain;
    rl_nod(l->g, n)->since = old.since;
    set_attrs(l, n, &old, op);
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].out) rl_lower_have(l, out[op->operand[o].slot], op->operand[o].cls, order[o], &d[o]);
}
