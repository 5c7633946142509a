/* Writes ONNX models: see onnx.h.
 *
 * The output is a list of spans: most point into the mapped input, the rest is packed here.  So weights are never copied, and
 * what nobody touched keeps its bytes, unknown fields included.  Only a message that holds a change is opened: its fields are
 * walked again, unchanged ones go over as they are, and its length is filled in when it is closed.
 *
 *   model   field by field; the graph replaced, opset imports added for the domains of new nodes
 *   graph   nodes in g->order where the first node stood; initializers dropped in place, new ones after the last; value_info
 *           of values that are gone dropped, of values whose dims changed rewritten
 *   node    inputs, outputs, name, type and attributes from the graph, every other field from the node that it was
 *
 * Before IR version 4 an initializer must be a graph input, so constants made here become Constant nodes there. */
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx_writer.h"

/* ---- bytes ---- */

/* The fields of m, without a tag of its own. */
static void put_fields(rl_writer *w, const ProtobufCMessage *m) {
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *p = rl_alloc(w->mem, n);
    rl_writer_put(w, p, protobuf_c_message_pack(m, p));
}

void rl_writer_message(rl_writer *w, uint32_t number, const ProtobufCMessage *m) {
    rl_opened o = rl_writer_open(w, number);
    put_fields(w, m);
    rl_writer_close(w, o);
}

/* ---- names ---- */

static void collect_names(rl_writer *w, const rl_graph *g) {
    for (uint32_t i = 0; i < g->nval; i++)
        if (g->val[i].name) rl_hash_put(&w->used, (uint64_t)(uintptr_t)g->val[i].name, 1);
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; k < g->node[i].nattr; k++)
            if (g->node[i].attr[k].graph) collect_names(w, g->node[i].attr[k].graph);
}

static rl_str fresh_name(rl_writer *w, const char *stem) {
    if (!w->used.n) collect_names(w, w->main);
    for (;;) {
        rl_str s = rl_internf(w->ctx, "%s_out_%u", stem, w->nfresh++);
        if (rl_hash_get(&w->used, (uint64_t)(uintptr_t)s) == RL_NONE) return s;
    }
}

rl_str rl_writer_name(rl_writer *w, const rl_graph *g, rl_value v) {
    if (!rl_has(v)) return "";
    const rl_valinfo *x = rl_val(g, v);
    if (x->name) return x->name;
    uint32_t i = rl_hash_get(&w->fresh, (uint64_t)(uintptr_t)x);
    if (i == RL_NONE) {
        i = w->name.n;
        rl_str s = fresh_name(w, x->def.i != RL_NONE ? rl_nod(g, x->def)->type : "constant");
        rl_push(w->mem, w->name, s);
        rl_hash_put(&w->fresh, (uint64_t)(uintptr_t)x, i);
    }
    return w->name.p[i];
}

/* ---- tensors and types ---- */

/* moves: the data may go to a file. */
static rl_status put_tensor(rl_writer *w, uint32_t number, const char *name, const rl_const *c, bool moves) {
    if (c->nbyte && !c->data)
        return rl_fail(w->ctx, RL_EINTERNAL, "constant '%.100s': its data is not at hand", name ? name : "");
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT;
    t.n_dims = c->rank;
    t.dims = rl_copy(w->mem, c->dim, c->rank * sizeof *c->dim);
    t.has_data_type = true;
    t.data_type = (int32_t)c->dtype;
    t.name = rl_pb_text(name);
    rl_opened o = rl_writer_open(w, number);
    put_fields(w, &t.base);
    if (moves) rl_writer_data(w, name, (rl_span){c->data, c->nbyte});
    else rl_writer_len(w, TENSOR_RAW_DATA, (rl_span){c->data, c->nbyte});
    rl_writer_close(w, o);
    return RL_OK;
}

/* ---- attributes ---- */

static rl_status put_graph(rl_writer *w, const rl_graph *g);

#define BIT(number) ((uint64_t)1 << (number))

static rl_status put_body(rl_writer *w, const rl_attr *a) {
    Onnx__AttributeProto p = ONNX__ATTRIBUTE_PROTO__INIT;
    p.name = rl_pb_text(a->name);
    p.has_type = true;
    p.type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    rl_opened o = rl_writer_open(w, NODE_ATTRIBUTE);
    put_fields(w, &p.base);
    if (a->raw.p) rl_writer_others(w, a->raw, BIT(ATTR_NAME) | BIT(ATTR_TYPE) | BIT(ATTR_G));
    rl_opened b = rl_writer_open(w, ATTR_G);
    RL_TRY(put_graph(w, a->graph));
    rl_writer_close(w, b);
    rl_writer_close(w, o);
    return RL_OK;
}

static void fill_attr(rl_writer *w, const rl_attr *a, Onnx__AttributeProto *p) {
    switch (a->kind) {
    case RL_ATTR_FLOAT: p->has_f = true; p->f = a->f; break;
    case RL_ATTR_INT: p->has_i = true; p->i = a->i; break;
    case RL_ATTR_STRING:
        p->has_s = true;
        p->s = (ProtobufCBinaryData){a->s.n, (uint8_t *)(uintptr_t)a->s.p};
        break;
    case RL_ATTR_FLOATS:
        p->n_floats = a->n;
        p->floats = (float *)(uintptr_t)a->floats;
        break;
    case RL_ATTR_INTS:
        p->n_ints = a->n;
        p->ints = (int64_t *)(uintptr_t)a->ints;
        break;
    case RL_ATTR_STRINGS:
        p->n_strings = a->n;
        p->strings = rl_new(w->mem, ProtobufCBinaryData, a->n);
        for (uint32_t i = 0; i < a->n; i++)
            p->strings[i] = (ProtobufCBinaryData){a->strings[i].n, (uint8_t *)(uintptr_t)a->strings[i].p};
        break;
    default: break;
    }
}

static rl_status put_attr(rl_writer *w, const rl_attr *a) {
    if (a->graph && !(a->raw.p && rl_clean_graph(a->graph))) return put_body(w, a);
    if (a->raw.p) {
        rl_writer_len(w, NODE_ATTRIBUTE, a->raw);
        return RL_OK;
    }
    if (a->kind == RL_ATTR_OTHER || (a->kind == RL_ATTR_TENSOR && !a->tensor) || a->kind == RL_ATTR_GRAPH)
        return rl_fail(w->ctx, RL_EINTERNAL, "attribute '%.100s' has no value", a->name);
    Onnx__AttributeProto p = ONNX__ATTRIBUTE_PROTO__INIT;
    p.name = rl_pb_text(a->name);
    p.has_type = true;
    p.type = (Onnx__AttributeProto__AttributeType)a->kind;
    fill_attr(w, a, &p);
    rl_opened o = rl_writer_open(w, NODE_ATTRIBUTE);
    put_fields(w, &p.base);
    if (a->kind == RL_ATTR_TENSOR) RL_TRY(put_tensor(w, ATTR_T, NULL, a->tensor, false));
    rl_writer_close(w, o);
    return RL_OK;
}

/* ---- nodes ---- */

static bool span_is(rl_span s, const char *t) {
    t = t ? t : "";
    return strlen(t) == s.n && rl_same_bytes(s.p, t, s.n);
}

/* Whether these bytes are what the node was: the same type and name. */
static bool is_same_node(rl_span bytes, const rl_nodeinfo *n) {
    rl_span name = {0}, type = {0}, domain = {0};
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number == NODE_NAME) name = f.body;
        if (f.number == NODE_OP_TYPE) type = f.body;
        if (f.number == NODE_DOMAIN) domain = f.body;
    }
    return span_is(name, n->name) && span_is(type, n->type)
           && (span_is(domain, n->domain) || (span_is(domain, "ai.onnx") && !*n->domain));
}

static void add_text(rl_text *t, uint32_t number, const char *s) {
    rl_wire_add_block(t, number, s, strlen(s));
}

/* All but attributes and what we do not know. Of the many nodes, so it is put together by hand. */
static void put_head(rl_writer *w, const rl_graph *g, const rl_nodeinfo *n) {
    rl_text t = {.mem = w->mem};
    for (uint32_t i = 0; i < n->nin; i++) add_text(&t, NODE_INPUT, rl_writer_name(w, g, n->in[i]));
    for (uint32_t i = 0; i < n->nout; i++) add_text(&t, NODE_OUTPUT, rl_writer_name(w, g, n->out[i]));
    if (n->name) add_text(&t, NODE_NAME, n->name);
    add_text(&t, NODE_OP_TYPE, n->type);
    if (*n->domain) add_text(&t, NODE_DOMAIN, n->domain);
    rl_writer_put(w, t.p, t.n);
}

/* was: where the node field that it was begins, or NULL. */
static rl_status put_node(rl_writer *w, const rl_graph *g, rl_node id, const uint8_t *was) {
    const rl_nodeinfo *n = rl_nod(g, id);
    rl_field old = {0};
    rl_wire r = {was, was ? g->onnx->graph.p + g->onnx->graph.n : NULL, false};
    if (was) rl_wire_next(&r, &old);
    if (n->op > RL_OP_OPAQUE)
        return rl_fail(w->ctx, RL_EINTERNAL, "node '%.100s': a %s cannot be written", n->name ? n->name : "", n->type);
    if (rl_clean_node(g, n)) {
        if (old.body.p == n->raw.p) rl_writer_span(w, old.all);
        else rl_writer_len(w, rl_onnx_node_field(g), n->raw);
        return RL_OK;
    }
    rl_opened o = rl_writer_open(w, rl_onnx_node_field(g));
    put_head(w, g, n);
    if (was && is_same_node(old.body, n))
        rl_writer_others(w, old.body,
                   BIT(NODE_INPUT) | BIT(NODE_OUTPUT) | BIT(NODE_NAME) | BIT(NODE_OP_TYPE) | BIT(NODE_DOMAIN)
                       | BIT(NODE_ATTRIBUTE));
    for (uint32_t i = 0; i < n->nattr; i++) RL_TRY(put_attr(w, &n->attr[i]));
    rl_writer_close(w, o);
    return RL_OK;
}

/* A constant as a node, for files whose initializers must be inputs. */
static rl_status put_constant_node(rl_writer *w, const rl_graph *g, rl_value v) {
    Onnx__NodeProto p = ONNX__NODE_PROTO__INIT;
    char *out[1] = {rl_pb_text(rl_writer_name(w, g, v))};
    rl_attr a = {.name = rl_internz(w->ctx, "value"), .kind = RL_ATTR_TENSOR, .tensor = rl_val(g, v)->data};
    p.n_output = 1;
    p.output = out;
    p.op_type = rl_pb_text("Constant");
    rl_opened o = rl_writer_open(w, rl_onnx_node_field(g));
    put_fields(w, &p.base);
    RL_TRY(put_attr(w, &a));
    rl_writer_close(w, o);
    return RL_OK;
}

/* Where the fields of the graph's nodes as it was read begin, by their place. */
static const uint8_t **node_fields(rl_writer *w, const rl_graph *g) {
    if (!g->onnx) return NULL;
    const uint8_t **all = rl_new(w->mem, const uint8_t *, g->onnx->nnode);
    uint32_t k = 0;
    rl_wire r = rl_wire_of(g->onnx->graph);
    for (rl_field f; rl_wire_next(&r, &f);)
        if (f.number == rl_onnx_node_field(g)) all[k++] = f.all.p;
    return all;
}

/* Before IR version 4 initializers are inputs, too. */
static bool lists_constants(const rl_writer *w) {
    return w->main->ir_version > 0 && w->main->ir_version < 4;
}

/* Constants made here that the file did not have, each once; how many. */
static uint32_t made_constants(const rl_writer *w, const rl_graph *g, rl_value **made) {
    bool *done = rl_new(w->mem, bool, g->nval);
    uint32_t n = 0;
    *made = rl_new(w->mem, rl_value, g->init.n);
    for (uint32_t i = 0; i < g->init.n; i++) {
        rl_value v = g->init.p[i];
        if (rl_is_made(g, v) && !done[v.i]) (*made)[n++] = v;
        done[v.i] = true;
    }
    return n;
}

/* They become initializers, or (as_nodes) nodes. */
static rl_status put_made(rl_writer *w, const rl_graph *g, bool as_nodes) {
    bool nodes = (lists_constants(w) && g != w->main) || (g->onnx && g->onnx->is_function);
    if (nodes != as_nodes) return RL_OK;
    rl_value *made;
    uint32_t n = made_constants(w, g, &made);
    for (uint32_t i = 0; i < n; i++) {
        const rl_const *data = rl_val(g, made[i])->data;
        const char *name = rl_writer_name(w, g, made[i]);
        if (!data) return rl_fail(w->ctx, RL_EINTERNAL, "initializer '%.100s' has no data", name);
        RL_TRY(as_nodes ? put_constant_node(w, g, made[i]) : put_tensor(w, GRAPH_INITIALIZER, name, data, g == w->main));
    }
    return RL_OK;
}

static void put_made_inputs(rl_writer *w, const rl_graph *g) {
    if (!lists_constants(w) || g != w->main) return;
    rl_value *made;
    uint32_t n = made_constants(w, g, &made);
    for (uint32_t i = 0; i < n; i++) rl_writer_valinfo(w, g, GRAPH_INPUT, made[i]);
}

static rl_status put_nodes(rl_writer *w, const rl_graph *g) {
    const uint8_t **was = node_fields(w, g);
    RL_TRY(put_made(w, g, true));
    for (uint32_t i = 0; i < g->order.n; i++) {
        uint32_t k = rl_nod(g, g->order.p[i])->origin;
        RL_TRY(put_node(w, g, g->order.p[i], was && k < g->onnx->nnode ? was[k] : NULL));
    }
    return RL_OK;
}

/* ---- graphs ---- */

static rl_status check_layouts(rl_writer *w, const rl_graph *g) {
    for (uint32_t i = 0; i < g->nval; i++)
        if (g->val[i].layout && rl_is_live(g, (rl_value){i}))
            return rl_fail(w->ctx, RL_EINTERNAL, "value '%.100s': has a layout that ONNX cannot say",
                           rl_writer_name(w, g, (rl_value){i}));
    return RL_OK;
}

/* A graph that was never in a file. */
static rl_status put_new_graph(rl_writer *w, const rl_graph *g) {
    Onnx__GraphProto p = ONNX__GRAPH_PROTO__INIT;
    p.name = rl_pb_text(g->name && *g->name ? g->name : "graph");
    RL_TRY(put_nodes(w, g));
    put_fields(w, &p.base);
    RL_TRY(put_made(w, g, false));
    for (uint32_t i = 0; i < g->input.n; i++) rl_writer_valinfo(w, g, GRAPH_INPUT, g->input.p[i]);
    put_made_inputs(w, g);
    for (uint32_t i = 0; i < g->output.n; i++) rl_writer_valinfo(w, g, GRAPH_OUTPUT, g->output.p[i]);
    rl_writer_own_hints(w, g);
    return RL_OK;
}

/* Training information names initializers: all stay. */
static bool is_pinned(const rl_writer *w) {
    return w->main->onnx && w->main->onnx->pinned;
}

/* A constant is among the inputs as long as it is an initializer of the file. */
static rl_status put_input(rl_writer *w, const rl_graph *g, uint32_t k, uint32_t *in, const rl_field *f) {
    uint32_t before = *in;
    rl_value v = rl_onnx_port(g, k, in);
    if (*in > before) return rl_writer_port(w, g, v, f);
    if (is_pinned(w) || (rl_val(g, v)->is_init && rl_val(g, v)->raw.p)) rl_writer_span(w, f->all);
    return RL_OK;
}

static rl_status put_initializer(rl_writer *w, const rl_graph *g, rl_value v, const rl_field *f) {
    const rl_valinfo *x = rl_val(g, v);
    bool clean = rl_clean_init(g, v, f->body) || is_pinned(w), kept = x->is_init && x->raw.p;
    if ((clean || kept) && rl_writer_moves(w) && g == w->main) return rl_writer_initializer(w, g, clean ? f->body : x->raw);
    if (clean) rl_writer_span(w, f->all);
    else if (kept) rl_writer_len(w, GRAPH_INITIALIZER, x->raw);
    return RL_OK; /* one that was made anew comes with the others */
}

/* How many fields of this number come from f on; a graph's walk asks where its last is. */
static uint32_t count_fields(rl_span s, uint32_t number) {
    uint32_t n = 0;
    rl_wire w = rl_wire_of(s);
    for (rl_field f; rl_wire_next(&w, &f);) n += f.number == number;
    return n;
}

static rl_status put_changed_graph(rl_writer *w, const rl_graph *g) {
    rl_span s = g->onnx->graph;
    uint32_t ninit = count_fields(s, GRAPH_INITIALIZER), node = 0, init = 0, input = 0, in = 0, out = 0;
    bool same_nodes = rl_clean_nodes(g) && !g->onnx->order;
    rl_wire r = rl_wire_of(s);
    for (rl_field f; rl_wire_next(&r, &f);) {
        switch (f.number) {
        case GRAPH_NODE:
            if (same_nodes && !node) RL_TRY(put_made(w, g, true));
            if (same_nodes) rl_writer_span(w, f.all);
            else if (!node) RL_TRY(put_nodes(w, g));
            node++;
            break;
        case GRAPH_INITIALIZER:
            RL_TRY(put_initializer(w, g, g->onnx->init.p[init++], &f));
            if (init == ninit) RL_TRY(put_made(w, g, false));
            break;
        case GRAPH_INPUT: RL_TRY(put_input(w, g, input++, &in, &f)); break;
        case GRAPH_OUTPUT: RL_TRY(rl_writer_port(w, g, g->output.p[out++], &f)); break;
        case GRAPH_VALUE_INFO: RL_TRY(rl_writer_hint(w, g, &f)); break;
        case GRAPH_QUANTIZATION: RL_TRY(rl_writer_annotation(w, g, &f)); break;
        default: rl_writer_span(w, f.all);
        }
    }
    if (!node) RL_TRY(put_nodes(w, g));
    put_made_inputs(w, g);
    rl_writer_own_hints(w, g);
    return ninit ? RL_OK : put_made(w, g, false);
}

/* As it was read, but for the data of its initializers where that moves, and sizes that were given. */
static rl_status put_clean_graph(rl_writer *w, const rl_graph *g) {
    uint32_t input = 0, in = 0, out = 0;
    if (!(rl_writer_moves(w) || g->sized) || g != w->main) {
        rl_writer_span(w, g->onnx->graph);
        return RL_OK;
    }
    rl_wire r = rl_wire_of(g->onnx->graph);
    for (rl_field f; rl_wire_next(&r, &f);) {
        if (f.number == GRAPH_INITIALIZER && rl_writer_moves(w)) RL_TRY(rl_writer_initializer(w, g, f.body));
        else if (f.number == GRAPH_INPUT) RL_TRY(put_input(w, g, input++, &in, &f));
        else if (f.number == GRAPH_OUTPUT) RL_TRY(rl_writer_port(w, g, g->output.p[out++], &f));
        else rl_writer_span(w, f.all);
    }
    return RL_OK;
}

/* The graph's fields, without a tag. */
static rl_status put_graph(rl_writer *w, const rl_graph *g) {
    if (rl_clean_graph(g)) return put_clean_graph(w, g);
    RL_TRY(check_layouts(w, g));
    return g->onnx ? put_changed_graph(w, g) : put_new_graph(w, g);
}

/* ---- the model ---- */

static bool imports(const rl_graph *g, rl_str domain) {
    for (uint32_t i = 0; i < g->opset.n; i++)
        if (g->opset.p[i].domain == domain || strcmp(g->opset.p[i].domain, domain) == 0) return true;
    return false;
}

typedef struct { rl_opset *p; uint32_t n, cap; } opsets;

/* Domains of nodes, bodies' too, that nothing imports yet. */
static void find_missing(rl_writer *w, const rl_graph *top, const rl_graph *g, opsets *missing) {
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) find_missing(w, top, n->attr[k].graph, missing);
        bool known = imports(top, n->domain);
        for (uint32_t k = 0; k < missing->n; k++) known |= missing->p[k].domain == n->domain;
        if (!known) rl_push(w->mem, *missing, ((rl_opset){n->domain, n->since ? n->since : *n->domain ? 1 : 21}));
    }
}

/* What the model or function has to import beside what it imports in the file. */
static opsets added_opsets(rl_writer *w, const rl_graph *g) {
    opsets added = {0};
    for (uint32_t i = g->onnx ? g->onnx->nopset : g->opset.n; i < g->opset.n; i++) rl_push(w->mem, added, g->opset.p[i]);
    find_missing(w, g, g, &added);
    return added;
}

static void put_opset(rl_writer *w, uint32_t number, const rl_opset *s) {
    Onnx__OperatorSetIdProto p = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    p.domain = rl_pb_text(s->domain);
    p.has_version = true;
    p.version = s->version;
    rl_writer_message(w, number, &p.base);
}

static void put_opsets(rl_writer *w, uint32_t number, const opsets *s) {
    for (uint32_t i = 0; i < s->n; i++) put_opset(w, number, &s->p[i]);
}

static rl_status put_graph_field(rl_writer *w, const rl_graph *g) {
    rl_opened o = rl_writer_open(w, MODEL_GRAPH);
    RL_TRY(put_graph(w, g));
    rl_writer_close(w, o);
    return RL_OK;
}

static rl_status put_new_model(rl_writer *w, const rl_graph *g, const opsets *missing) {
    Onnx__ModelProto p = ONNX__MODEL_PROTO__INIT;
    p.has_ir_version = true;
    p.ir_version = g->ir_version > 0 ? g->ir_version : 10;
    p.producer_name = rl_pb_text("relayout");
    put_fields(w, &p.base);
    for (uint32_t i = 0; i < g->opset.n; i++) put_opset(w, MODEL_OPSET_IMPORT, &g->opset.p[i]);
    put_opsets(w, MODEL_OPSET_IMPORT, missing);
    return put_graph_field(w, g);
}

static rl_status put_function(rl_writer *w, const rl_graph *g, const rl_field *was) {
    bool nodes = false;
    if (!g || rl_clean_graph(g)) {
        rl_writer_span(w, was->all);
        return RL_OK;
    }
    RL_TRY(check_layouts(w, g));
    const opsets missing = added_opsets(w, g);
    rl_opened o = rl_writer_open(w, MODEL_FUNCTIONS);
    rl_wire r = rl_wire_of(was->body);
    for (rl_field f; rl_wire_next(&r, &f);) {
        if (f.number == FUNCTION_NODE && !nodes) RL_TRY(put_nodes(w, g));
        nodes |= f.number == FUNCTION_NODE;
        if (f.number == FUNCTION_VALUE_INFO) RL_TRY(rl_writer_hint(w, g, &f));
        else if (f.number != FUNCTION_NODE) rl_writer_span(w, f.all);
    }
    put_opsets(w, FUNCTION_OPSET_IMPORT, &missing);
    rl_writer_close(w, o);
    return RL_OK;
}

static bool model_clean(const rl_graph *g) {
    for (uint32_t i = 0; i < g->function.n; i++)
        if (g->function.p[i] && !rl_clean_graph(g->function.p[i])) return false;
    return rl_clean_graph(g);
}

static rl_status put_model(rl_writer *w, const rl_graph *g) {
    opsets missing = {0};
    uint32_t function = 0;
    if (g->onnx && model_clean(g) && !rl_writer_moves(w)) {
        rl_writer_span(w, g->onnx->bytes);
        return RL_OK;
    }
    if (!g->as_read) missing = added_opsets(w, g);
    if (!g->onnx) return put_new_model(w, g, &missing);
    uint32_t left = count_fields(g->onnx->bytes, MODEL_OPSET_IMPORT);
    rl_wire r = rl_wire_of(g->onnx->bytes);
    for (rl_field f; rl_wire_next(&r, &f);) {
        if (f.number == MODEL_GRAPH) RL_TRY(put_graph_field(w, g));
        else if (f.number == MODEL_FUNCTIONS) RL_TRY(put_function(w, g->function.p[function++], &f));
        else rl_writer_span(w, f.all);
        if (f.number == MODEL_OPSET_IMPORT && --left == 0) put_opsets(w, MODEL_OPSET_IMPORT, &missing);
    }
    return RL_OK;
}

/* What protobuf cannot hold is refused, unless the input was such a file already. */
rl_status rl_writer_list(rl_writer *w, const rl_graph *g, rl_arena *mem) {
    *w = (rl_writer){.ctx = g->ctx, .mem = mem, .main = g, .mode = w->mode, .external = w->external, .taken = w->taken};
    w->fresh.mem = w->used.mem = w->places.mem = mem;
    RL_TRY(put_model(w, g));
    if (w->total > INT32_MAX && !(g->onnx && g->onnx->bytes.n > INT32_MAX))
        return rl_fail(g->ctx, RL_ELIMIT, "the model written would have %llu bytes, and protobuf ends at 2 GiB; see --external-data",
                       (unsigned long long)w->total);
    return RL_OK;
}

static void flatten(const rl_writer *w, rl_arena *mem, rl_span *out) {
    uint8_t *p = rl_alloc(mem, w->total), *to = p;
    for (uint32_t i = 0; i < w->chunk.n; i++) {
        if (!w->chunk.p[i].n) continue;
        memcpy(to, w->chunk.p[i].p, w->chunk.p[i].n);
        to += w->chunk.p[i].n;
    }
    *out = (rl_span){p, w->total};
}

rl_status rl_onnx_pack(const rl_graph *g, const char *external, rl_arena *mem, rl_span *out) {
    rl_arena tmp;
    if (!rl_onnx_packs(external)) return rl_fail(g->ctx, RL_EUSAGE, "external data '%.200s': what is in memory has no folder", external);
    rl_writer w = {.mode = rl_onnx_moves_data(external) ? RL_DATA_INLINE : RL_DATA_KEEP};
    rl_arena_init(&tmp, g->ctx);
    rl_status status = rl_writer_list(&w, g, &tmp);
    if (status == RL_OK && w.mode == RL_DATA_INLINE) status = rl_writer_all_inline(&w);
    if (status == RL_OK) flatten(&w, mem, out);
    rl_arena_free(&tmp);
    return status;
}

rl_span rl_onnx_bytes(const rl_graph *g) {
    return g->onnx ? g->onnx->bytes : (rl_span){0};
}
