/* Demands from outside of the ops that choose: graph inputs and outputs, captured values, and inputs that an op reads as they are (a
 * scale, an index).  Each is an op with one configuration, the logical order; so is what Reshape's shape asks for. */
#include "plan.h"

static void add_fixed(rl_plan *p, rl_value v, rl_cert_kind demand) {
    if (!rl_has(v) || p->member[v.i].cls == RL_NONE || p->cls.p[p->member[v.i].cls].constant) return;
    rl_oplegal op = {.node = RL_NONODE, .demand = demand, .fixed = true, .noperand = 1, .npin = 1, .comp = RL_NONE};
    op.operand = rl_new(p->mem, rl_operand, 1);
    op.operand[0] = (rl_operand){.tensor = v, .pin = true, .cls = p->member[v.i].cls};
    rl_push(p->mem, p->op, op);
}

static void add_port(rl_plan *p, rl_value v, bool output) {
    if (p->member[v.i].cls != RL_NONE && rl_port_is_free(p, v, output)) rl_port_op(p, v);
    else add_fixed(p, v, output ? RL_CERT_OUTPUT : RL_CERT_INPUT);
}

/* An initializer of strings, or a sparse one, whose bytes cannot be permuted, is made as an input is. */
static void add_initializer(rl_plan *p, rl_value v) {
    const rl_valinfo *x = rl_val(p->g, v);
    if (x->raw.p && !x->data && !x->is_input && (x->nuse || x->is_output)) add_fixed(p, v, RL_CERT_INPUT);
}

void rl_outside_demands(rl_plan *p) {
    rl_graph *g = p->g;
    uint32_t nop = p->op.n;
    for (uint32_t i = 0; i < g->input.n; i++) add_port(p, g->input.p[i], false);
    for (uint32_t i = 0; i < g->init.n; i++) add_initializer(p, g->init.p[i]);
    for (uint32_t i = 0; i < g->output.n; i++) add_port(p, g->output.p[i], true);
    for (uint32_t i = 0; i < g->outer.n; i++) add_fixed(p, g->outer.p[i], RL_CERT_CAPTURED);
    for (uint32_t k = 0; k < nop; k++) {
        if (p->op.p[k].picks) rl_pick_result(p, &p->op.p[k]);
        const rl_nodeinfo *n = rl_nod(g, p->op.p[k].node);
        for (uint32_t i = 0; i < n->ncap; i++) add_fixed(p, n->cap[i], RL_CERT_CAPTURED);
        if (p->op.p[k].fixed || p->op.p[k].link || p->op.p[k].part || rl_op_class(n->op) == RL_SHAPE) continue;
        for (uint32_t i = 0; i < n->nin; i++)
            if (!rl_is_operand(&p->op.p[k], i) && !rl_gives_type(n, i)) add_fixed(p, n->in[i], RL_CERT_READS);
    }
    for (uint32_t k = 0; k < g->order.n; k++) { /* parameters of movement: Reshape's shape */
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (p->moving[g->order.p[k].i])
            for (uint32_t i = 1; i < n->nin; i++) add_fixed(p, n->in[i], RL_CERT_READS);
    }
}
