/* Writes an op that demands an order in one of the target's (target.h, RUN): input 0 and output 0 with their dims permuted,
 * the other inputs as they were, under the type and with the attribute that the row names.
 *
 *   MaxPool(x[N,C,H,W])    ->    com.microsoft::NhwcMaxPool(x[N,H,W,C]) */
#include "lower.h"
#include <stdlib.h>
#include <string.h>

uint32_t rl_lower_groups(rl_lower *l, const rl_oplegal *op, uint32_t operand, rl_dims *d) {
    const rl_config *c = &op->config.p[op->chosen];
    const rl_form *f = &op->form[c->form];
    uint8_t order[RL_MAXATOM + 1];
    d->ndim = 0;
    for (uint32_t i = 0; i < RL_MAXGROUP && f->seq[operand][i] != RL_END; i++) {
        uint32_t g = f->seq[operand][i], n = 0;
        for (uint32_t t = f->start[g]; t < f->start[g + 1]; t++) n = op->token[f->member[t]].natom[operand];
        d->count[d->ndim++] = (uint8_t)n;
    }
    rl_config_order(op, c, operand, order);
    return rl_order_intern(l->p, op->operand[operand].cls, order);
}

/* The node's attributes but the one that the row names, and what the row gives it. */
static void set_attrs(rl_lower *l, rl_node n, const rl_nodeinfo *old, const rl_target_run *run) {
    rl_attr *a = rl_new(&l->now, rl_attr, old->nattr + 1);
    const char *eq = strchr(run->attr, '=');
    rl_str name = eq ? rl_intern(l->g->ctx, run->attr, (size_t)(eq - run->attr)) : "";
    uint32_t na = 0;
    for (uint32_t i = 0; i < old->nattr; i++)
        if (strcmp(old->attr[i].name, name) != 0) a[na++] = old->attr[i];
    if (eq && strcmp(eq + 1, "-") != 0) a[na++] = rl_attr_of_int(l->g, name, strtoll(eq + 1, NULL, 10));
    rl_graph_set_attrs(l->g, n, a, na);
}

void rl_lower_run(rl_lower *l, rl_oplegal *op) {
    const rl_target_run *run = op->form[op->config.p[op->chosen].form].run;
    const rl_nodeinfo old = *rl_nod(l->g, op->node);
    rl_value *in = rl_copy(&l->now, old.in, old.nin * sizeof *in);
    rl_dims x, y;
    uint32_t order = rl_lower_groups(l, op, 0, &x);
    in[0] = rl_lower_want(l, op->operand[0].cls, order, &x);
    for (uint32_t i = 1; i < old.nin && !l->failed; i++)
        if (rl_has(in[i])) in[i] = rl_lower_member(l, in[i]);
    if (l->failed) return;
    order = rl_lower_groups(l, op, 1, &y);
    rl_value out = rl_lower_result(l, op->operand[1].cls, order, &y, op->operand[1].tensor);
    rl_graph_import(l->g, run->domain, 1);
    rl_op kind = rl_op_find(run->domain, run->type, rl_opset_of(l->g, run->domain));
    rl_node n = rl_lower_node(l, kind, old.name, old.nin, in, 1, &out);
    rl_nodeinfo *now = rl_nod(l->g, n);
    now->domain = run->domain;
    now->type = run->type;
    now->since = rl_opset_of(l->g, run->domain);
    set_attrs(l, n, &old, run);
    rl_lower_have(l, out, op->operand[1].cls, order, &y);
}
