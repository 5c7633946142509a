/* See cut.h. */
#include "cut.h"

#include <string.h>

#include "onnx_fields.h"
#include "wire.h"

typedef struct {
    const rl_graph *g;
    const rl_cut *cut;
    rl_node *node;    /* [node as numbered in the file] */
    rl_value *as;     /* [value] what stands for it */
    bool *made, *read, *was; /* [value] by and of the nodes kept; was: read by others, or an output */
    rl_text *out;
} cutter;

/* ---- writing ---- */

static void put_field(rl_text *t, const rl_field *f) {
    rl_put_bytes(t, (const char *)f->all.p, f->all.n);
}

/* One level of message around what `inner` has. */
static void wrap(rl_text *inner, uint32_t number) {
    rl_text outer = {.mem = inner->mem};
    rl_wire_add_block(&outer, number, inner->p, inner->n);
    *inner = outer;
}

static void put_port(const cutter *c, uint32_t number, rl_value v) {
    const rl_valinfo *x = rl_val(c->g, v);
    rl_text shape = {.mem = c->out->mem}, type = shape, port = shape;
    for (uint32_t i = 0; x->rank != RL_NORANK && i < x->rank; i++) {
        rl_text dim = {.mem = c->out->mem};
        rl_str name = rl_dim_name(c->g->ctx, x->dim[i]);
        if (rl_dim_known(x->dim[i])) rl_wire_add_varint(&dim, DIM_VALUE, (uint64_t)x->dim[i]);
        else if (name && *name != '?') rl_wire_add_block(&dim, DIM_PARAM, name, strlen(name));
        rl_wire_add_block(&shape, SHAPE_DIM, dim.p, dim.n);
    }
    if (x->dtype != RL_UNDEF) {
        rl_wire_add_varint(&type, TYPE_TENSOR_ELEM, x->dtype);
        if (x->rank != RL_NORANK) rl_wire_add_block(&type, TYPE_TENSOR_SHAPE, shape.p, shape.n);
        wrap(&type, TYPE_TENSOR);
    }
    rl_wire_add_block(&port, VALUE_NAME, x->name, strlen(x->name));
    if (type.n) rl_wire_add_block(&port, VALUE_TYPE, type.p, type.n);
    rl_wire_add_block(c->out, number, port.p, port.n);
}

/* ---- which values ---- */

static void find_nodes(cutter *c, rl_arena *mem, uint32_t n) {
    c->node = rl_new(mem, rl_node, n + 1);
    for (uint32_t i = 0; i < n; i++) c->node[i] = RL_NONODE;
    for (uint32_t i = 0; i < c->g->order.n; i++) {
        rl_node x = c->g->order.p[i];
        if (rl_nod(c->g, x)->origin < n) c->node[rl_nod(c->g, x)->origin] = x;
    }
}

/* What nobody read from the beginning is an output where its node is kept. */
static void mark_dead(cutter *c) {
    for (uint32_t i = 0; i < c->g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(c->g, c->g->order.p[i]);
        bool used = n->nout == 0 || !rl_has(n->out[0]);
        for (uint32_t k = 0; k < n->nout; k++) used |= rl_has(n->out[k]) && (c->read[n->out[k].i] || c->was[n->out[k].i]);
        if (!used) c->was[n->out[0].i] = true;
    }
}

static void mark(cutter *c) {
    const rl_graph *g = c->g;
    for (uint32_t v = 0; v < g->nval; v++) c->as[v] = (rl_value){v};
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (c->cut[n->origin] == RL_CUT_BYPASS) c->as[n->out[0].i] = c->as[n->in[0].i];
        if (c->cut[n->origin] == RL_CUT_BYPASS) continue;
        bool *seen = c->cut[n->origin] == RL_CUT_KEEP ? c->read : c->was;
        for (uint32_t k = 0; k < n->nin; k++)
            if (rl_has(n->in[k])) seen[c->as[n->in[k].i].i] = true;
        for (uint32_t k = 0; k < n->ncap; k++) seen[n->cap[k].i] = true;
        for (uint32_t k = 0; k < n->nout && seen == c->read; k++)
            if (rl_has(n->out[k])) c->made[n->out[k].i] = true;
    }
    for (uint32_t i = 0; i < g->output.n; i++) c->was[c->as[g->output.p[i].i].i] = true;
    mark_dead(c);
}

static bool is_constant(const rl_graph *g, rl_value v) {
    return rl_val(g, v)->is_init && rl_val(g, v)->raw.p;
}

static bool becomes_input(const cutter *c, rl_value v) {
    return c->read[v.i] && !c->made[v.i] && (!is_constant(c->g, v) || rl_val(c->g, v)->is_input);
}

static bool becomes_output(const cutter *c, rl_value v) {
    return c->made[v.i] && c->was[v.i] && (!c->read[v.i] || rl_val(c->g, v)->is_output);
}

/* ---- the model ---- */

static void put_node(const cutter *c, const rl_nodeinfo *n, rl_span node) {
    rl_text t = {.mem = c->out->mem};
    uint32_t in = 0;
    rl_wire w = rl_wire_of(node);
    for (rl_field f; rl_wire_next(&w, &f);) {
        rl_value v = f.number == NODE_INPUT && in < n->nin ? n->in[in++] : RL_NOVALUE;
        rl_str name = rl_has(v) && !rl_same(c->as[v.i], v) ? rl_val(c->g, c->as[v.i])->name : NULL;
        if (name) rl_wire_add_block(&t, NODE_INPUT, name, strlen(name));
        else put_field(&t, &f);
    }
    rl_wire_add_block(c->out, GRAPH_NODE, t.p, t.n);
}

/* Those that are inputs and outputs already have their fields. */
static bool put_ports(const cutter *c) {
    uint32_t noutput = 0;
    for (uint32_t i = 0; i < c->g->nval; i++) {
        rl_value v = {i};
        const rl_valinfo *x = rl_val(c->g, v);
        if (becomes_input(c, v) && !x->is_input) {
            if (x->dtype == RL_UNDEF || !x->name) return false;
            put_port(c, GRAPH_INPUT, v);
        }
        if (!becomes_output(c, v)) continue;
        if (!x->is_output) put_port(c, GRAPH_OUTPUT, v);
        noutput++;
    }
    return noutput > 0;
}

/* The k-th initializer's field belongs to a value that is read. */
static bool is_read(const cutter *c, rl_span tensor) {
    for (uint32_t i = 0; i < c->g->init.n; i++)
        if (rl_val(c->g, c->g->init.p[i])->raw.p == tensor.p) return c->read[c->g->init.p[i].i];
    return true;
}

/* An input that is read still; also one that is a constant (rl_onnx_port). */
static bool stays_input(const cutter *c, rl_span field) {
    rl_value v = RL_NOVALUE;
    rl_wire w = rl_wire_of(field);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == VALUE_NAME) v = rl_graph_find(c->g, rl_intern_find(c->g->ctx, (const char *)f.body.p, f.body.n));
    return rl_has(v) && c->read[v.i] && !c->made[v.i];
}

static bool put_graph(const cutter *c, rl_span graph) {
    uint32_t k = 0, out = 0;
    rl_wire w = rl_wire_of(graph);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number == GRAPH_NODE) {
            rl_node n = c->node[k];
            if (n.i != RL_NONE && c->cut[k] == RL_CUT_KEEP) put_node(c, rl_nod(c->g, n), f.body);
            k++;
        } else if (f.number == GRAPH_INITIALIZER || f.number == GRAPH_SPARSE_INITIALIZER) {
            if (is_read(c, f.body)) put_field(c->out, &f);
        } else if (f.number == GRAPH_INPUT) {
            if (stays_input(c, f.body)) put_field(c->out, &f);
        } else if (f.number == GRAPH_OUTPUT) {
            if (out < c->g->output.n && becomes_output(c, c->g->output.p[out++])) put_field(c->out, &f);
        } else if (f.number != GRAPH_VALUE_INFO && f.number != GRAPH_QUANTIZATION) {
            put_field(c->out, &f);
        }
    }
    return put_ports(c);
}

bool rl_cut_can_bypass(const rl_graph *g, uint32_t origin) {
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (n->origin != origin) continue;
        if (n->nout != 1 || !rl_has(n->out[0]) || !rl_has(rl_in(n, 0)) || n->ncap) return false;
        const rl_valinfo *x = rl_val(g, n->in[0]), *y = rl_val(g, n->out[0]);
        for (uint32_t k = 0; k < y->nuse; k++)
            if (y->use[k].slot >= rl_nod(g, y->use[k].node)->nin) return false; /* a body knows it by its name */
        return x->dtype == y->dtype && x->dtype != RL_UNDEF && x->rank == y->rank && x->rank != RL_NORANK
               && rl_same_bytes(x->dim, y->dim, x->rank * sizeof *x->dim);
    }
    return false;
}

bool rl_cut_model(const rl_graph *g, rl_span model, const rl_cut *cut, rl_arena *mem, rl_text *out) {
    rl_text inner = {.mem = mem};
    cutter c = {.g = g, .cut = cut, .out = &inner, .as = rl_new(mem, rl_value, g->nval + 1), .made = rl_new(mem, bool, g->nval + 1),
                .read = rl_new(mem, bool, g->nval + 1), .was = rl_new(mem, bool, g->nval + 1)};
    find_nodes(&c, mem, g->nnode);
    mark(&c);
    bool ok = true;
    rl_wire w = rl_wire_of(model);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != MODEL_GRAPH) {
            put_field(out, &f);
            continue;
        }
        ok = put_graph(&c, f.body) && ok;
        rl_wire_add_block(out, MODEL_GRAPH, inner.p, inner.n);
    }
    return ok;
}
