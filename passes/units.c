/* What moves bytes of a network that was quantized stands as exporters write it: between a DequantizeLinear and a QuantizeLinear of its own.
 * Needs: order, types.  Keeps: types.  Breaks: order.
 *
 *   QuantizeLinear, Transpose of bytes, DequantizeLinear
 *     ->  QuantizeLinear, DequantizeLinear, Transpose of floats, QuantizeLinear, DequantizeLinear
 *   DequantizeLinear, QuantizeLinear of the same scale, where a Transpose stood between; the same node twice    ->  nothing; once
 *
 * A byte times the scale, over the scale, is the byte.  Runtimes take each op with what stands around it for one on bytes, and do not where something
 * is between: onnxruntime then computed in floats, and took 1.1 to 1.9 times as long.  Only for targets that charge OF_BYTES. */
#include "../src/ops.h"
#include "movement.h"
#include "pass.h"

enum { MOST = 32 /* nodes that move, one behind the other */ };

/* Does it move its first input, and have no other of its type? */
static bool is_mover(const rl_nodeinfo *n) {
    return rl_move_is(n->op) && n->op != RL_OP_Concat && n->op != RL_OP_Pad && n->op != RL_OP_ScatterND && n->nout == 1;
}

/* The QuantizeLinear, with one scale for all, that made the bytes that x is; NULL: none. */
static const rl_nodeinfo *maker_of(const rl_graph *g, rl_value x) {
    for (uint32_t i = 0; i < MOST && rl_has(x); i++) {
        rl_node def = rl_val(g, x)->def;
        const rl_nodeinfo *n = def.i == RL_NONE ? NULL : rl_nod(g, def);
        if (n && n->op == RL_OP_QuantizeLinear) return rl_op_has_scale_of(g, n, n) ? n : NULL;
        if (!n || !is_mover(n)) return NULL;
        x = n->in[0];
    }
    return NULL;
}

/* Is all that reads y, also behind what moves it, a DequantizeLinear? */
static bool is_dequantized(const rl_graph *g, rl_value y, uint32_t deep) {
    const rl_valinfo *v = rl_val(g, y);
    bool all = v->nuse > 0 && !v->is_output && deep < MOST;
    for (uint32_t i = 0; all && i < v->nuse; i++) {
        const rl_nodeinfo *n = rl_nod(g, v->use[i].node);
        all = v->use[i].slot == 0 && (n->op == RL_OP_DequantizeLinear || (is_mover(n) && is_dequantized(g, n->out[0], deep + 1)));
    }
    return all;
}

/* A new value of the dims of v. */
static rl_value like(rl_graph *g, rl_value v, rl_dtype t) {
    const rl_valinfo x = *rl_val(g, v);
    rl_value y = rl_graph_value(g, rl_graph_fresh_name(g, x.name ? x.name : "rl"));
    rl_graph_set_type(g, y, t, x.rank, x.dim);
    return y;
}

static rl_node scale(rl_graph *g, rl_op op, const char *name, rl_value x, const rl_nodeinfo *by, rl_value y) {
    rl_value in[] = {x, rl_in(by, 1), rl_in(by, 2)};
    rl_node n = rl_graph_add(g, op, rl_graph_fresh_name(g, name), rl_has(in[2]) ? 3 : 2, in, 1, &y);
    rl_nod(g, n)->origin = by->origin;
    return n;
}

static void stand_alone(rl_graph *g, rl_node n, const rl_nodeinfo *maker) {
    const rl_nodeinfo q = *maker; /* the array of nodes grows */
    rl_value x = rl_nod(g, n)->in[0], y = rl_nod(g, n)->out[0];
    rl_dtype t = rl_val(g, q.in[1])->dtype;
    rl_value in = like(g, x, t), out = like(g, y, t);
    rl_graph_set_input(g, n, 0, in);
    rl_graph_set_output(g, n, 0, out);
    scale(g, RL_OP_DequantizeLinear, "rl_dequantize", x, &q, in);
    rl_graph_set_attrs(g, scale(g, RL_OP_QuantizeLinear, "rl_quantize", out, &q, y), q.attr, q.nattr);
}

/* What n makes, a QuantizeLinear or DequantizeLinear, where it is there already: bytes that a DequantizeLinear read, or what another such node makes of
 * the same; else RL_NOVALUE. */
static rl_value made_before(const rl_graph *g, rl_node at, const rl_nodeinfo *n) {
    const rl_valinfo *x = rl_val(g, n->in[0]);
    rl_dtype t = rl_val(g, n->out[0])->dtype;
    const rl_nodeinfo *from = x->def.i == RL_NONE ? NULL : rl_nod(g, x->def);
    if (!from) return RL_NOVALUE;
    bool back = n->op == RL_OP_QuantizeLinear && from->op == RL_OP_DequantizeLinear && rl_op_has_scale_of(g, n, from);
    if (back && rl_val(g, from->in[0])->dtype == t) return from->in[0];
    for (uint32_t i = 0; i < x->nuse; i++) {
        const rl_nodeinfo *other = rl_nod(g, x->use[i].node);
        if (x->use[i].node.i < at.i && other->op == n->op && rl_op_has_scale_of(g, n, other) && rl_val(g, other->out[0])->dtype == t) return other->out[0];
    }
    return RL_NOVALUE;
}

static bool drop_again(rl_graph *g, rl_arena *tmp) {
    bool *dead = NULL;
    for (uint32_t i = 0; i < g->order.n; i++) {
        rl_node n = g->order.p[i];
        const rl_nodeinfo *x = rl_nod(g, n);
        if ((x->op != RL_OP_QuantizeLinear && x->op != RL_OP_DequantizeLinear) || rl_form_keeps_name(g, x->out[0])) continue;
        rl_value y = made_before(g, n, x);
        if (!rl_has(y)) continue;
        rl_graph_replace_uses(g, x->out[0], y);
        if (!dead) dead = rl_new(tmp, bool, g->nnode);
        dead[n.i] = true;
    }
    if (dead) rl_graph_remove_all(g, dead);
    return dead;
}

rl_status rl_pass_units(rl_pass_run *r) {
    rl_graph *g = r->g;
    if (!r->target->charge[RL_OF_BYTES]) return RL_OK;
    bool dropped = r->joined = drop_again(g, r->tmp);
    uint32_t nnode = g->order.n;
    for (uint32_t i = 0; i < nnode; i++) {
        rl_node n = g->order.p[i];
        const rl_nodeinfo *maker = is_mover(rl_nod(g, n)) ? maker_of(g, rl_nod(g, n)->in[0]) : NULL;
        if (maker && is_dequantized(g, rl_nod(g, n)->out[0], 0)) stand_alone(g, n, maker);
    }
    if (!dropped && g->order.n == nnode) return RL_OK;
    RL_TRY(rl_graph_sort(g));
    const bool *dead = rl_dead_nodes(g, r->tmp);
    if (dead) rl_graph_remove_all(g, dead);
    return RL_OK;
}
