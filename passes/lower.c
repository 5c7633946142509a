/* Writes the chosen layouts as ONNX nodes.
 *
 * Nodes are visited in the input's order.  One whose orders are the model's own is kept as it is, byte for byte, and asks for
 * the tensors that it read; any other is written anew (lower_ops.c).  A tensor that is asked for is made on demand, by the
 * cheapest of: itself, the model's own Reshape or Transpose, one Reshape, or one conversion (Transpose of merged dims between
 * Reshapes, which are left out where the dims fit).  So movement that nobody asks for is not written, and a region that
 * keeps its orders keeps its nodes, names and sequence.
 *
 * Needs: plan with choices.  Keeps: graph inputs, outputs and their names.  Breaks: nothing; nodes that are no longer
 * read are left for dce.  A form that cannot be written (a symbolic size that stands nowhere) leaves the model as it was:
 * then outcome.changed is false. */
#include "lower.h"

#include <string.h>

static void keep_node(rl_lower *l, rl_node node) {
    for (uint32_t i = 0; i < rl_nod(l->g, node)->nin; i++) {
        rl_value x = rl_nod(l->g, node)->in[i];
        if (!rl_has(x)) continue;
        const rl_nodeinfo *n = rl_nod(l->g, node);
        rl_value y = n->op == RL_OP_Size || rl_gives_type(n, i) ? rl_lower_any_form(l, x) : rl_lower_member(l, x);
        if (!rl_same(x, y)) rl_graph_set_input(l->g, node, i, y);
    }
    for (uint32_t i = 0; i < rl_nod(l->g, node)->ncap; i++) rl_lower_exactly(l, rl_nod(l->g, node)->cap[i]);
    rl_push(l->tmp, l->emitted, node);
    for (uint32_t i = 0; i < rl_nod(l->g, node)->nout; i++)
        if (rl_has(rl_nod(l->g, node)->out[i])) rl_lower_have_member(l, rl_nod(l->g, node)->out[i]);
}

/* Only a new Reshape, in place of a Transpose that is gone, would bring an input into the form that the node has it in. */
static bool reshapes(rl_lower *l, rl_node node) {
    for (uint32_t i = 0; i < rl_nod(l->g, node)->nin; i++) {
        rl_value x = rl_nod(l->g, node)->in[i];
        if (!rl_has(x) || x.i >= l->nval || rl_stands_alone(rl_val(l->g, x)) || rl_has(rl_lower_present(l, x))) continue;
        const rl_member *m = &l->p->member[x.i];
        if (m->cls == RL_NONE || l->p->cls.p[m->cls].constant) continue;
        if (l->def[x.i].i == RL_NONE || rl_nod(l->g, l->def[x.i])->op != RL_OP_Transpose) continue;
        if (rl_lower_find(l, m->cls, rl_lower_member_order(l, x), false) != RL_NONE) return true;
    }
    return false;
}

/* Shape of a tensor that is not there in this form: its sizes, from where they stand. */
static void lower_shape_op(rl_lower *l, rl_node node) {
    const rl_nodeinfo *n = rl_nod(l->g, node);
    rl_value x = n->in[0], y = n->out[0], s;
    const rl_valinfo *vx = rl_val(l->g, x);
    if (rl_has(rl_lower_present(l, x)) || l->p->member[x.i].cls == RL_NONE || n->op != RL_OP_Shape || vx->def.i == RL_NONE) {
        keep_node(l, node);
        return;
    }
    int64_t rank = vx->rank, start = rl_attr_int(n, "start", 0), end = rl_attr_int(n, "end", rank);
    if (start < 0) start = RL_MAX(0, start + rank);
    if (end < 0) end = RL_MAX(0, end + rank);
    end = RL_MIN(end, rank);
    start = RL_MIN(start, end);
    if (!rl_lower_sizes(l, start ? vx->dim + start : vx->dim, (uint32_t)(end - start), &s)) {
        keep_node(l, node);
        return;
    }
    rl_lower_node(l, RL_OP_Identity, rl_graph_fresh_name(l->g, "rl_shape"), 1, &s, 1, &y);
    rl_lower_have_member(l, y);
}

/* Is the node to stay as it is? An Einsum has an op for each operand. */
static bool stands(rl_lower *l, rl_node node, rl_oplegal *op) {
    for (uint32_t i = 0; op->part && i <= rl_nod(l->g, node)->nin; i++)
        if (op[i].chosen) return false;
    return op->chosen == 0 && !(reshapes(l, node) && rl_lower_adopts(l, op));
}

static void lower_all(rl_lower *l) {
    rl_graph *g = l->g;
    uint32_t n = g->order.n;
    rl_node *order = rl_copy(l->tmp, g->order.p, n * sizeof *order);
    for (uint32_t v = 0; v < l->nval; v++)
        if (rl_stands_alone(&g->val[v])) rl_lower_have_member(l, (rl_value){v});
    for (uint32_t k = 0; k < n && !l->failed; k++) {
        rl_node node = order[k];
        l->origin = rl_nod(g, node)->origin;
        if (l->p->moving[node.i]) continue;
        rl_oplegal *op = l->p->opof[node.i] == RL_NONE ? NULL : &l->p->op.p[l->p->opof[node.i]];
        if (rl_op_class(rl_nod(g, node)->op) == RL_SHAPE && op && !op->fixed) lower_shape_op(l, node);
        else if (rl_nod(g, node)->op == RL_OP_ENTER || rl_nod(g, node)->op == RL_OP_LEAVE) rl_lower_end(l, node);
        else if (!op || stands(l, node, op)) keep_node(l, node);
        else rl_lower_op(l, op);
        if (op && op->picks && !l->failed) rl_lower_picked(l, op);
        rl_arena_free(&l->now);
    }
    l->origin = RL_NONE;
    for (uint32_t i = 0; i < g->output.n && !l->failed; i++) rl_lower_exactly(l, g->output.p[i]);
}

/* Where each order is asked for. */
static void find_wanted(rl_lower *l) {
    const rl_graph *g = l->g;
    for (uint32_t k = 0; g->flat && k < l->p->op.n; k++) {
        const rl_oplegal *op = &l->p->op.p[k];
        RL_EACH_PIN(op, o, pin) {
            uint64_t key = rl_lower_key(op->operand[o].cls, rl_pin_order(op, op->chosen, pin));
            if (op->operand[o].out) continue;
            uint32_t at = op->node.i == RL_NONE ? l->home[op->operand[o].tensor.i]
                        : op->link              ? rl_flat_region(g, rl_lower_link_origin(l, op, o))
                                                : rl_flat_region(g, rl_nod(g, op->node)->origin);
            uint32_t old = rl_hash_get(&l->wanted, key);
            rl_hash_put(&l->wanted, key, old == RL_NONE ? at : rl_flat_common(g, old, at));
        }
    }
}

/* Movement nodes of the input that are written nowhere leave the graph. */
static rl_status finish(rl_lower *l) {
    rl_graph *g = l->g;
    bool *dead = rl_new(l->tmp, bool, g->nnode);
    memset(dead, 1, g->nnode);
    for (uint32_t i = 0; i < l->emitted.n; i++) dead[l->emitted.p[i].i] = false;
    rl_graph_remove_all(g, dead);
    g->order.n = 0;
    for (uint32_t i = 0; i < l->emitted.n; i++) rl_push(&g->mem, g->order, l->emitted.p[i]);
    return rl_graph_sort(g);
}

/* A Transpose in a body that runs more often than what it reads is made. */
static bool is_again(const rl_graph *g, const rl_nodeinfo *n) {
    return rl_flat_turns(g, rl_flat_region(g, n->origin)) > rl_flat_turns(g, rl_flat_value_region(g, n->in[0]));
}

/* How many Transposes there are. again: some do the same in each turn. */
static uint32_t transposes(const rl_graph *g, bool *again) {
    uint32_t count = 0;
    *again = false;
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (n->op != RL_OP_Transpose) continue;
        count++;
        *again |= g->flat && is_again(g, n);
    }
    return count;
}

rl_status rl_pass_lower(rl_pass_run *r) {
    rl_graph *g = r->g;
    rl_lower l = {.p = r->plan, .g = g, .tmp = r->tmp, .nval = g->nval, .origin = RL_NONE};
    bool again;
    uint32_t before = transposes(g, &again);
    rl_arena_init(&l.now, g->ctx);
    l.wanted.mem = l.stored.mem = l.computed.mem = l.bydims.mem = l.bysizes.mem = r->tmp;
    l.phys.p = rl_new(r->tmp, rl_phys, l.phys.cap = g->nval + g->nval / 2);
    l.link = rl_new(r->tmp, rl_linkform, l.p->op.n);
    l.home = rl_new(r->tmp, uint32_t, l.nval);
    l.head = rl_new(r->tmp, uint32_t, l.p->cls.n);
    memset(l.head, 0xff, l.p->cls.n * sizeof *l.head);
    l.defined = rl_new(r->tmp, bool, l.nval);
    l.def = rl_new(r->tmp, rl_node, l.nval);
    for (uint32_t v = 0; v < l.nval; v++) {
        l.def[v] = g->val[v].def;
        l.home[v] = rl_flat_value_region(g, (rl_value){v});
        g->val[v].layout = NULL;
    }
    if (!r->out->improved && r->out->conv_before == (int64_t)before && !again) return RL_OK; /* nothing moves that need not */
    find_wanted(&l);
    lower_all(&l);
    if (l.failed) {
        r->gave_up = true;
        return RL_OK;
    }
    r->out->rewrote = true;
    r->out->cheaper |= l.cheaper;
    return finish(&l);
}
