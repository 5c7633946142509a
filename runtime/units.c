/* What a network of bytes moves as floats, between a DequantizeLinear and a QuantizeLinear of the same scale (so exporters write it, and passes/units.c),
 * moves bytes: a byte times the scale, over the scale, is the byte.
 *
 *   q -> DequantizeLinear -> Transpose -> QuantizeLinear -> r      q -> Transpose -> r */
#include "../src/ops.h"
#include "fuse.h"

static bool moves_first(rl_op op) {
    switch (op) {
    case RL_OP_Transpose: case RL_OP_Reshape: case RL_OP_Squeeze: case RL_OP_Unsqueeze: case RL_OP_Flatten: case RL_OP_Slice: return true;
    default: return false;
    }
}

/* The one node that reads v; RL_NONODE: several, or a body or the caller. */
static rl_node only_reader(const rl_graph *g, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    if (x->nuse != 1 || x->is_output || x->use[0].slot != 0) return RL_NONODE;
    return x->use[0].node;
}

/* What n moves, and the QuantizeLinear behind it. */
static bool find_unit(const rl_graph *g, const rl_nodeinfo *n, rl_node *from, rl_node *to) {
    if (!moves_first(n->op) || n->nout != 1 || !rl_has(rl_in(n, 0)) || !rl_has(n->out[0])) return false;
    *from = rl_val(g, n->in[0])->def, *to = only_reader(g, n->out[0]);
    if (from->i == RL_NONE || to->i == RL_NONE) return false;
    const rl_nodeinfo *d = rl_nod(g, *from), *q = rl_nod(g, *to);
    return d->op == RL_OP_DequantizeLinear && q->op == RL_OP_QuantizeLinear && rl_has(rl_in(d, 0)) && rl_has(q->out[0]) && rl_op_has_scale_of(g, q, d) &&
           rl_val(g, d->in[0])->dtype == rl_val(g, q->out[0])->dtype;
}

void rl_move_bytes(rl_graph *g) {
    for (uint32_t i = 0; i < g->order.n; i++) {
        rl_node n = g->order.p[i], from, to;
        if (!find_unit(g, rl_nod(g, n), &from, &to)) continue;
        rl_value y = rl_nod(g, to)->out[0];
        rl_graph_set_input(g, n, 0, rl_nod(g, from)->in[0]);
        rl_graph_remove(g, to);
        rl_graph_set_output(g, n, 0, y);
        if (rl_val(g, rl_nod(g, from)->out[0])->nuse > 0 || rl_val(g, rl_nod(g, from)->out[0])->is_output) continue;
        rl_graph_remove(g, from); /* stands before */
        i--;
    }
}
