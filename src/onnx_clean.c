/* What of a graph is as it was read: see onnx_writer.h.  Checked against the values' names, not believed: a pass that forgets to clear
 * `raw` cannot make a wrong model. */
#include <string.h>

#include "onnx_writer.h"

static bool is_named(const rl_graph *g, rl_value v, rl_span s) {
    const char *name = rl_has(v) ? rl_val(g, v)->name : "";
    return name && strlen(name) == s.n && rl_same_bytes(name, s.p, s.n);
}

bool rl_clean_node(const rl_graph *g, const rl_nodeinfo *n) {
    uint32_t in = 0, out = 0;
    if (!n->raw.p) return false;
    rl_wire w = rl_wire_of(n->raw);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number == NODE_INPUT && (in >= n->nin || !is_named(g, n->in[in++], f.body))) return false;
        if (f.number == NODE_OUTPUT && (out >= n->nout || !is_named(g, n->out[out++], f.body))) return false;
    }
    if (in != n->nin || out != n->nout) return false;
    for (uint32_t i = 0; i < n->nattr; i++)
        if (n->attr[i].graph && !rl_clean_graph(n->attr[i].graph)) return false;
    return true;
}

bool rl_clean_nodes(const rl_graph *g) {
    const struct rl_onnx *o = g->onnx;
    if (g->order.n != o->nnode) return false;
    for (uint32_t i = 0; i < o->nnode; i++) {
        rl_node n = g->order.p[i];
        if (n.i != (o->order ? o->order[i].i : i) || !rl_clean_node(g, rl_nod(g, n))) return false;
    }
    return true;
}

bool rl_clean_init(const rl_graph *g, rl_value v, rl_span raw) {
    const rl_valinfo *x = rl_val(g, v);
    return x->is_input || (x->is_init && x->raw.p == raw.p);
}

bool rl_is_made(const rl_graph *g, rl_value v) {
    return rl_val(g, v)->is_init && !rl_val(g, v)->raw.p;
}

static bool inits_clean(const rl_graph *g) {
    uint32_t k = 0;
    rl_wire w = rl_wire_of(g->onnx->graph);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == GRAPH_INITIALIZER && !rl_clean_init(g, g->onnx->init.p[k++], f.body)) return false;
    for (uint32_t i = 0; i < g->init.n; i++)
        if (rl_is_made(g, g->init.p[i])) return false;
    return true;
}

const uint32_t *rl_port_turned(const rl_graph *g, rl_value v) {
    for (uint32_t i = 0; i < g->turned.n; i++)
        if (rl_same(g->turned.p[i].v, v)) return g->turned.p[i].perm;
    return NULL;
}

bool rl_clean_port(const rl_graph *g, rl_value v, rl_span field) {
    if (rl_port_turned(g, v) || g->sized) return false;
    bool same = true; /* where there are several names, the last one counts */
    rl_wire w = rl_wire_of(field);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == VALUE_NAME) same = is_named(g, v, f.body);
    return same;
}

static bool ports_clean(const rl_graph *g) {
    uint32_t input = 0, in = 0, out = 0;
    rl_wire w = rl_wire_of(g->onnx->graph);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number == GRAPH_INPUT && in < g->input.n) {
            uint32_t before = in;
            rl_value v = rl_onnx_port(g, input++, &in);
            if (in > before && !rl_clean_port(g, v, f.body)) return false;
        }
        if (f.number == GRAPH_OUTPUT && out < g->output.n && !rl_clean_port(g, g->output.p[out++], f.body)) return false;
    }
    return true;
}

static bool function_clean(const rl_graph *g) {
    for (uint32_t i = 0; i < g->init.n; i++)
        if (rl_is_made(g, g->init.p[i])) return false;
    return rl_clean_nodes(g);
}

bool rl_clean_graph(const rl_graph *g) {
    if (g->onnx && (g->as_read || g->onnx->is_function)) return g->as_read || function_clean(g);
    return g->onnx && rl_clean_nodes(g) && inits_clean(g) && ports_clean(g);
}
