/* Reads ONNX models: see onnx.h.
 *
 *   map the file -> scan the whole tree of messages (wire.h) -> walk the graph's fields -> check names and order
 *
 * Within a graph: inputs, outputs and initializers first, then nodes in file order, whose inputs may name values that come
 * later.  At the end what nobody made is a value of the graph around it (in a body), or an error.
 *
 * A failure's message gets its parts from the inside out: tensor, attribute, node; rl_onnx_read adds the path. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx_read.h"
#include "ops.h"

/* ---- attributes ---- */

static rl_status read_graph(rl_reader *r, rl_graph *parent, rl_span bytes, uint32_t depth, rl_graph **out);

/* AttributeType -> the field that holds its value; files of IR version 1 leave the type out. */
static const struct { uint8_t type, field;
} attr_fields[] = {
    {1, ATTR_F},       {2, ATTR_I},
    {3, ATTR_S},       {4, ATTR_T},
    {5, ATTR_G},       {6, ATTR_FLOATS},
    {7, ATTR_INTS},    {8, ATTR_STRINGS},
    {9, ATTR_TENSORS}, {10, ATTR_GRAPHS},
    {11, ATTR_SPARSE}, {12, ATTR_SPARSES},
    {13, ATTR_TP},     {14, ATTR_TYPE_PROTOS},
};

static rl_status attr_type(rl_reader *r, rl_str name, const rl_attr_parts *a, uint32_t *type) {
    if (a->has & (a->has - 1)) return rl_fail(r->ctx, RL_EMODEL, "attribute '%.100s': has more than one value", name);
    *type = a->type;
    for (size_t i = 0; i < RL_LEN(attr_fields); i++) {
        if (*type == 0 && a->has == BIT(attr_fields[i].field)) *type = attr_fields[i].type;
        if (*type == attr_fields[i].type && a->has && a->has != BIT(attr_fields[i].field))
            return rl_fail(r->ctx, RL_EMODEL, "attribute '%.100s': its value is not of its type", name);
    }
    if ((*type == RL_ATTR_TENSOR || *type == RL_ATTR_GRAPH) && !a->has)
        return rl_fail(r->ctx, RL_EMODEL, "attribute '%.100s': has no value", name);
    return RL_OK;
}

static rl_status read_strings(rl_level *l, rl_span bytes, uint32_t n, rl_attr *to) {
    rl_span *s = rl_new(&l->g->mem, rl_span, n);
    rl_wire w = rl_wire_of(bytes);
    uint32_t i = 0;
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == ATTR_STRINGS) s[i++] = f.body;
    to->strings = s;
    to->n = n;
    return RL_OK;
}

static rl_status read_attr_tensor(rl_level *l, rl_span bytes, rl_attr *to) {
    rl_const *c = rl_new(&l->g->mem, rl_const, 1);
    rl_status status = rl_read_tensor(l, bytes, "tensor", NULL, c);
    if (status != RL_OK) return rl_fail(l->r->ctx, status, "attribute '%.100s': %s", to->name, l->r->ctx->error);
    to->tensor = c;
    return RL_OK;
}

/* Bodies in a list: nobody looks inside, but what they capture counts. */
static rl_status read_attr_graphs(rl_level *l, rl_span bytes, rl_hash *captured) {
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != ATTR_GRAPHS) continue;
        rl_graph *body = NULL;
        RL_TRY(read_graph(l->r, l->g, f.body, l->depth + 1, &body));
        for (uint32_t i = 0; i < body->outer.n; i++) {
            rl_value v = rl_graph_value(l->g, rl_val(body, body->outer.p[i])->name);
            rl_hash_put(captured, v.i + 1u, 1);
        }
        rl_graph_free(body);
    }
    return RL_OK;
}

static rl_status read_attr(rl_level *l, rl_span bytes, rl_attr *to, rl_hash *captured) {
    rl_ctx *ctx = l->r->ctx;
    rl_attr_parts a;
    uint32_t type = 0;
    if (!rl_parts_of_attr(l, bytes, &a)) return rl_fail(ctx, RL_EMODEL, "an attribute is damaged");
    if (!a.name.n) return rl_fail(ctx, RL_EMODEL, "an attribute has no name");
    *to = (rl_attr){.raw = bytes, .kind = RL_ATTR_OTHER};
    RL_TRY(rl_reader_name(l->r, a.name, &to->name));
    RL_TRY(attr_type(l->r, to->name, &a, &type));
    if (a.ref.n) return rl_reader_name(l->r, a.ref, &to->ref);
    if (a.ngraph) return read_attr_graphs(l, bytes, captured);
    if (type < RL_ATTR_FLOAT || type > RL_ATTR_STRINGS) return RL_OK;
    if (l->ints.n > UINT32_MAX / 2 || l->floats.n > UINT32_MAX / 2)
        return rl_fail(ctx, RL_ELIMIT, "attribute '%.100s': too long", to->name);
    to->kind = (rl_attr_kind)type;
    switch (to->kind) {
    case RL_ATTR_FLOAT: to->f = a.f; break;
    case RL_ATTR_INT: to->i = a.i; break;
    case RL_ATTR_STRING: to->s = a.s.p ? a.s : (rl_span){(const uint8_t *)"", 0}; break;
    case RL_ATTR_FLOATS:
        to->n = l->floats.n;
        to->floats = rl_copy(&l->g->mem, l->floats.p, to->n * sizeof *to->floats);
        break;
    case RL_ATTR_INTS:
        to->n = l->ints.n;
        to->ints = rl_copy(&l->g->mem, l->ints.p, to->n * sizeof *to->ints);
        break;
    case RL_ATTR_STRINGS: return read_strings(l, bytes, a.nstring, to);
    case RL_ATTR_TENSOR: return read_attr_tensor(l, a.t, to);
    case RL_ATTR_GRAPH: return read_graph(l->r, l->g, a.g, l->depth + 1, &to->graph);
    case RL_ATTR_OTHER: break;
    }
    return RL_OK;
}

/* ---- nodes ---- */

/* "node 'conv1' (Conv)", or its place in the file where it has no name. */
typedef struct { char s[160]; } label;
static label node_label(rl_span name, rl_span type, uint32_t k) {
    label l;
    int n = (int)RL_MIN(name.n, (size_t)80), t = (int)RL_MIN(type.n, (size_t)40);
    const char *of = type.n ? (const char *)type.p : "";
    if (n) snprintf(l.s, sizeof l.s, "node '%.*s' (%.*s)", n, (const char *)name.p, t, of);
    else snprintf(l.s, sizeof l.s, "node #%u (%.*s)", k, t, of);
    return l;
}

/* All attributes of the node; the values that its bodies capture go to captured. */
static rl_status read_attrs(rl_level *l, rl_attr **out, rl_hash *captured) {
    uint32_t count = l->attr.n;
    if (count > MAX_ATTR)
        return rl_fail(l->r->ctx, RL_ELIMIT, "%u attributes are over the limit of %d", count, MAX_ATTR);
    rl_attr *a = count ? rl_new(&l->g->mem, rl_attr, count) : NULL;
    *out = a;
    for (uint32_t k = 0; k < count; k++, a++) {
        RL_TRY(read_attr(l, l->attr.p[k], a, captured));
        for (uint32_t i = 0; a->graph && i < a->graph->outer.n; i++) {
            rl_value v = rl_graph_value(l->g, rl_val(a->graph, a->graph->outer.p[i])->name);
            rl_hash_put(captured, v.i + 1u, 1);
        }
    }
    return RL_OK;
}

static int compare_values(const void *a, const void *b) {
    uint32_t x = ((const rl_value *)a)->i, y = ((const rl_value *)b)->i;
    return x < y ? -1 : x > y;
}

static void set_captures(rl_level *l, rl_node n, const rl_hash *captured) {
    if (!captured->n) return;
    l->used += captured->n * (sizeof(rl_value) + 48);
    rl_value *v = rl_new(&l->scratch, rl_value, captured->n);
    uint32_t k = 0;
    for (uint32_t i = 0; i < captured->cap; i++)
        if (captured->slot[i].key) v[k++] = (rl_value){(uint32_t)captured->slot[i].key - 1};
    qsort(v, k, sizeof *v, compare_values);
    rl_graph_set_captures(l->g, n, v, k);
}

/* Values of names; an empty name is a slot left out. */
static rl_status read_names(rl_level *l, const rl_span *s, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        rl_str name = NULL;
        rl_value v = RL_NOVALUE;
        if (s[i].n) {
            RL_TRY(rl_reader_name(l->r, s[i], &name));
            v = rl_graph_value(l->g, name);
        }
        rl_push(&l->lists, l->value, v);
    }
    return RL_OK;
}

/* The table's op; that of ONNX's own types stands on their names. */
static rl_op op_of(const rl_level *l, const rl_nodeinfo *x) {
    if (*x->domain) return rl_op_find(x->domain, x->type, x->since);
    rl_note *note = rl_str_note(x->type);
    if (note->owner == l->owner) return (rl_op)note->value;
    rl_op op = rl_op_find(x->domain, x->type, x->since);
    if (note->owner == 0) *note = (rl_note){l->owner, op};
    return op;
}

/* The same, unless something that the table does not know of gives the node another meaning: dims named for devices, a function of its
 * name. */
static rl_op find_op(const rl_level *l, const rl_node_parts *p, const rl_nodeinfo *x) {
    const rl_reader *r = l->r;
    if (p->overload.n || p->names_dims || r->onnx->pinned) return RL_OP_OPAQUE;
    if (r->onnx->function.n) {
        char key[1024];
        int n = snprintf(key, sizeof key, "%s\n%s", x->domain, x->type);
        rl_str s = n > 0 && (size_t)n < sizeof key ? rl_intern_find(r->ctx, key, (size_t)n) : NULL;
        if (!s && (size_t)n >= sizeof key) return RL_OP_OPAQUE;
        if (s && rl_hash_get(&r->onnx->function, (uint64_t)(uintptr_t)s) != RL_NONE) return RL_OP_OPAQUE;
    }
    return op_of(l, x);
}

static rl_status check_outputs(rl_level *l, const rl_value *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!rl_has(out[i])) continue;
        const rl_valinfo *x = rl_val(l->g, out[i]);
        const char *where = x->is_input           ? "a graph input"
                            : x->raw.p            ? "an initializer"
                            : x->def.i != RL_NONE ? "made by another node"
                                                  : NULL;
        if (where) return rl_fail(l->r->ctx, RL_EMODEL, "output '%.100s' is already %s", x->name, where);
    }
    return RL_OK;
}

static rl_status check_node(rl_level *l, const rl_node_parts *p, rl_str domain) {
    if (!p->type.n) return rl_fail(l->r->ctx, RL_EMODEL, "has no op_type");
    if (l->in.n > UINT32_MAX / 4 || l->out.n > UINT32_MAX / 4)
        return rl_fail(l->r->ctx, RL_ELIMIT, "has too many inputs");
    if (!l->in.n && !l->out.n) return rl_fail(l->r->ctx, RL_EMODEL, "has neither inputs nor outputs");
    const rl_graph *top = l->g;
    while (top->parent) top = top->parent;
    for (uint32_t i = 0; i < top->opset.n; i++)
        if (top->opset.p[i].domain == domain) return RL_OK;
    return rl_fail(l->r->ctx, RL_EMODEL, "the model imports no opset for the domain '%.100s'", domain);
}

/* Adds node k, whose names and attributes are in the level's lists. */
static rl_status add_node(rl_level *l, const rl_node_parts *p, rl_span bytes, uint32_t k) {
    rl_graph *g = l->g;
    rl_str type = NULL, domain = rl_reader_domain(l->r, p->domain);
    const char *name = NULL;
    rl_attr *attr = NULL;
    uint32_t nin = l->in.n, nout = l->out.n;
    rl_hash captured = {.mem = &l->scratch};
    RL_TRY(check_node(l, p, domain));
    RL_TRY(rl_reader_name(l->r, p->type, &type));
    if (p->name.n) RL_TRY(rl_reader_label(l->r, p->name, &name));
    if (nin + nout > l->value.cap) {
        l->value.cap = RL_MAX(nin + nout, 2 * l->value.cap);
        l->value.p = rl_new(&l->lists, rl_value, l->value.cap);
    }
    l->value.n = 0;
    l->refers = false;
    RL_TRY(read_names(l, l->in.p, nin));
    RL_TRY(read_names(l, l->out.p, nout));
    const rl_value *out = l->value.p + nin;
    RL_TRY(check_outputs(l, out, nout));
    RL_TRY(read_attrs(l, &attr, &captured));
    rl_node n = rl_graph_add(g, RL_OP_OPAQUE, name, nin, l->value.p, nout, out);
    rl_nodeinfo *x = rl_nod(g, n);
    x->domain = domain;
    x->type = type;
    x->since = rl_opset_of(g, domain);
    rl_op op = find_op(l, p, x);
    if (l->refers) x->bare = op; /* an attribute of a call stands for one of the node's */
    else x->op = op;
    x->origin = k;
    x->attr = attr;
    x->nattr = l->attr.n;
    x->raw = bytes;
    for (uint32_t i = 0; i < nout; i++)
        if (rl_has(out[i]) && rl_val(g, out[i])->port != i)
            return rl_fail(l->r->ctx, RL_EMODEL, "makes '%.100s' twice", rl_val(g, out[i])->name);
    set_captures(l, n, &captured);
    if (!*domain && strcmp(type, "Constant") == 0) rl_graph_set_constant(g, x);
    return RL_OK;
}

static rl_status read_node(rl_level *l, rl_span bytes, uint32_t k) {
    rl_node_parts p;
    rl_level_clean(l);
    rl_parts_of_node(l, bytes, &p);
    rl_status status = add_node(l, &p, bytes, k);
    if (status == RL_OK) return RL_OK;
    return rl_fail(l->r->ctx, status, "%s: %s", node_label(p.name, p.type, k).s, l->r->ctx->error);
}

/* ---- graphs ---- */

/* What no node, input or initializer gives: a value of the graph around, or an error. */
static rl_status find_sources(rl_level *l) {
    rl_graph *g = l->g;
    for (uint32_t i = 0; i < g->nval; i++) {
        rl_valinfo *x = &g->val[i];
        if (x->def.i != RL_NONE || x->is_input || x->raw.p) continue;
        if (g->parent) {
            x->is_outer = true;
            rl_push(&g->mem, g->outer, (rl_value){i});
            continue;
        }
        if (!x->nuse) return rl_fail(l->r->ctx, RL_EMODEL, "graph output '%.100s': nothing makes it", x->name);
        const rl_nodeinfo *n = rl_nod(g, x->use[0].node);
        return rl_fail(l->r->ctx, RL_EMODEL, "%s: %s '%.100s' is defined nowhere",
                       node_label(rl_span_of(n->name), rl_span_of(n->type), n->origin).s, x->use[0].slot < n->nin ? "input" : "a body's value",
                       x->name);
    }
    return RL_OK;
}

static bool in_order(const rl_graph *g) {
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t s = 0; s < n->nin + n->ncap; s++) {
            rl_value v = s < n->nin ? n->in[s] : n->cap[s - n->nin];
            if (rl_has(v) && rl_val(g, v)->def.i != RL_NONE && rl_val(g, v)->def.i >= i) return false;
        }
    }
    return true;
}

/* Node ids are places in the file: every field is a node, in order. */
static rl_status sort_nodes(rl_graph *g) {
    if (in_order(g)) return RL_OK;
    RL_TRY(rl_graph_sort(g));
    g->onnx->order = rl_copy(&g->mem, g->order.p, g->order.n * sizeof *g->order.p);
    return RL_OK;
}

/* Where the fields of one number lie, from the first to behind the last, and how many. */
typedef struct { rl_span in; uint32_t n; } range;
enum { NFIELD = 32 };

static void find_ranges(rl_span bytes, range *r) {
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        range *x = &r[f.number < NFIELD ? f.number : 0];
        if (!x->in.p) x->in.p = f.all.p;
        x->in.n = (size_t)(w.p - x->in.p);
        x->n++;
    }
}

/* Fields that are read soon: the slots of the names in them come from memory meanwhile.  names: which of their fields these are, as bits. */
enum { AHEAD = 3 };
typedef struct { rl_wire w; uint32_t number, names, n; } lookahead;

static void fetch_names(const rl_ctx *ctx, lookahead *x, uint32_t until) {
    for (rl_field f; x->n < until && rl_wire_next(&x->w, &f);) {
        if (f.number != x->number) continue;
        x->n++;
        rl_wire in = rl_wire_of(f.body);
        for (rl_field y; rl_wire_next(&in, &y);)
            if (y.number < 32 && x->names & BIT(y.number)) rl_intern_soon(ctx, (const char *)y.body.p, y.body.n);
    }
}

typedef rl_status field_reader(rl_level *l, rl_span bytes);

static rl_status each_field(rl_level *l, rl_span bytes, uint32_t number, uint32_t names, field_reader *read) {
    uint32_t k = 0;
    rl_wire w = rl_wire_of(bytes);
    lookahead soon = {w, number, names, 0};
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != number) continue;
        if (names) fetch_names(l->r->ctx, &soon, ++k + AHEAD);
        rl_level_clean(l);
        RL_TRY(read(l, f.body));
    }
    return RL_OK;
}

static rl_status read_nodes(rl_level *l, range nodes) {
    uint32_t k = 0, number = rl_onnx_node_field(l->g);
    /* Room for all at once; a node that is none soon ends the loop, so its bytes bound what it is worth. */
    l->g->nodecap = (uint32_t)RL_MIN((size_t)nodes.n, nodes.in.n / MIN_NODE);
    l->g->node = rl_new(&l->g->mem, rl_nodeinfo, l->g->nodecap);
    rl_wire w = rl_wire_of(nodes.in);
    lookahead soon = {w, number, BIT(NODE_INPUT) | BIT(NODE_OUTPUT), 0};
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != number) continue;
        fetch_names(l->r->ctx, &soon, k + AHEAD);
        RL_TRY(read_node(l, f.body, k++));
    }
    l->g->onnx->nnode = k;
    return RL_OK;
}

static rl_status read_fields(rl_level *l, rl_span bytes) {
    range part[NFIELD] = {0};
    size_t n = 0;
    find_ranges(bytes, part);
    for (uint32_t i = 0; i < NFIELD; i++) n += part[i].n;
    rl_wire w = rl_wire_of(part[GRAPH_NAME].in);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == GRAPH_NAME) l->g->name = rl_intern(l->r->ctx, (const char *)f.body.p, f.body.n);
    /* Most fields make a value, and the passes as many again.  Bounded as in read_nodes. */
    l->g->valcap = (uint32_t)RL_MIN(2 * n, bytes.n / MIN_NODE);
    l->g->val = rl_new(&l->g->mem, rl_valinfo, l->g->valcap);
    rl_intern_expect(l->r->ctx, l->g->valcap / 4 * 3);
    RL_TRY(each_field(l, part[GRAPH_INPUT].in, GRAPH_INPUT, 0, rl_read_input));
    RL_TRY(each_field(l, part[GRAPH_INITIALIZER].in, GRAPH_INITIALIZER, BIT(TENSOR_NAME), rl_read_initializer));
    RL_TRY(each_field(l, part[GRAPH_SPARSE_INITIALIZER].in, GRAPH_SPARSE_INITIALIZER, 0, rl_read_sparse));
    RL_TRY(each_field(l, part[GRAPH_OUTPUT].in, GRAPH_OUTPUT, 0, rl_read_output));
    RL_TRY(read_nodes(l, part[GRAPH_NODE]));
    RL_TRY(each_field(l, part[GRAPH_VALUE_INFO].in, GRAPH_VALUE_INFO, 0, rl_read_hint));
    RL_TRY(find_sources(l));
    return sort_nodes(l->g);
}

static rl_status read_into(rl_reader *r, rl_graph *g, rl_span bytes, uint32_t depth) {
    rl_level l;
    rl_level_open(&l, r, g, depth);
    g->onnx->graph = bytes;
    rl_status status = read_fields(&l, bytes);
    rl_level_close(&l);
    return status;
}

static rl_status read_graph(rl_reader *r, rl_graph *parent, rl_span bytes, uint32_t depth, rl_graph **out) {
    if (depth * 3 > r->opt.max_depth)
        return rl_fail(r->ctx, RL_ELIMIT, "bodies nested deeper than the limit of %u", r->opt.max_depth / 3);
    if (++r->nbody > r->max_body)
        return rl_fail(r->ctx, RL_ELIMIT, "over the limit of %llu bodies", (unsigned long long)r->max_body);
    rl_graph *g = rl_graph_new(r->ctx);
    *out = g;
    g->parent = parent;
    g->ir_version = r->main->ir_version;
    g->onnx = rl_new(&g->mem, struct rl_onnx, 1);
    g->onnx->bytes = bytes;
    rl_status status = read_into(r, g, bytes, depth);
    if (status == RL_OK) return RL_OK;
    rl_graph_free(g);
    *out = NULL;
    return status;
}

/* ---- the model ---- */

static rl_status read_opset(rl_level *l, rl_span bytes) {
    rl_graph *g = l->g;
    Onnx__OperatorSetIdProto *p =
        rl_level_unpack(l, &onnx__operator_set_id_proto__descriptor, rl_level_pick(l, bytes, BIT(1) | BIT(2)));
    if (!p) return rl_fail(l->r->ctx, RL_EMODEL, "opset_import: is damaged");
    rl_opset s = {rl_reader_domain(l->r, rl_span_of(p->domain)), p->version};
    if (p->version < (*s.domain ? 0 : 1) || p->version > INT32_MAX)
        return rl_fail(l->r->ctx, RL_EMODEL, "opset_import: version %lld of the domain '%.100s'", (long long)p->version,
                       s.domain);
    for (uint32_t i = 0; i < g->opset.n; i++) {
        if (g->opset.p[i].domain != s.domain) continue;
        g->opset.p[i] = s;
        return RL_OK;
    }
    if (g->opset.n >= MAX_OPSET)
        return rl_fail(l->r->ctx, RL_ELIMIT, "opset_import: over the limit of %d domains", MAX_OPSET);
    rl_push(&g->mem, g->opset, s);
    return RL_OK;
}

static rl_status read_function(rl_level *l, rl_span bytes) {
    Onnx__FunctionProto *p = rl_level_unpack(l, &onnx__function_proto__descriptor,
                                             rl_level_pick(l, bytes, BIT(FUNCTION_NAME) | BIT(FUNCTION_DOMAIN)));
    if (!p) return rl_fail(l->r->ctx, RL_EMODEL, "a function is damaged");
    if (!p->name || !*p->name) return rl_fail(l->r->ctx, RL_EMODEL, "a function has no name");
    if (l->r->onnx->function.n >= MAX_FUNCTION)
        return rl_fail(l->r->ctx, RL_ELIMIT, "over the limit of %d functions", MAX_FUNCTION);
    rl_str key = rl_internf(l->r->ctx, "%s\n%s", rl_reader_domain(l->r, rl_span_of(p->domain)), p->name);
    rl_hash_put(&l->r->onnx->function, (uint64_t)(uintptr_t)key, 1);
    return RL_OK;
}

static void read_ports(rl_level *l, rl_span bytes) {
    rl_graph *g = l->g;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != FUNCTION_INPUT && f.number != FUNCTION_OUTPUT) continue;
        rl_value v = rl_graph_value(g, rl_intern(l->r->ctx, (const char *)f.body.p, f.body.n));
        if (f.number == FUNCTION_INPUT) {
            rl_val(g, v)->is_input = true;
            rl_push(&g->mem, g->input, v);
        } else {
            rl_val(g, v)->is_output = true;
            rl_push(&g->mem, g->output, v);
        }
    }
}

/* An attribute that has a value where a call gives none. */
static rl_status read_given(rl_level *l, rl_span bytes) {
    struct { rl_attr *p; uint32_t n, cap; } given = {(rl_attr *)l->g->given, l->g->ngiven, l->g->ngiven};
    rl_hash captured = {.mem = &l->scratch};
    rl_attr a;
    RL_TRY(read_attr(l, bytes, &a, &captured));
    if (a.graph) rl_graph_free(a.graph);
    a.graph = NULL;
    rl_push(&l->g->mem, given, a);
    l->g->given = given.p;
    l->g->ngiven = given.n;
    return RL_OK;
}

static rl_status read_function_fields(rl_level *l, rl_span bytes) {
    range part[NFIELD] = {0};
    find_ranges(bytes, part);
    RL_TRY(each_field(l, bytes, FUNCTION_OPSET_IMPORT, 0, read_opset));
    RL_TRY(each_field(l, bytes, FUNCTION_GIVEN, 0, read_given));
    read_ports(l, bytes);
    RL_TRY(read_nodes(l, part[FUNCTION_NODE]));
    RL_TRY(each_field(l, bytes, FUNCTION_VALUE_INFO, 0, rl_read_hint));
    RL_TRY(find_sources(l));
    return sort_nodes(l->g);
}

/* A function as a graph of its own: no body captures into it, and its types come from its callers.  One that cannot be read so is
 * no error: nobody needs to look inside. */
static rl_graph *read_function_graph(rl_reader *r, rl_span bytes) {
    rl_graph *g = rl_graph_new(r->ctx);
    rl_level l;
    g->ir_version = r->main->ir_version;
    g->onnx = rl_new(&g->mem, struct rl_onnx, 1);
    g->onnx->bytes = g->onnx->graph = bytes;
    g->onnx->is_function = true;
    rl_level_open(&l, r, g, 0);
    rl_status status = read_function_fields(&l, bytes);
    rl_level_close(&l);
    if (status == RL_OK) return g;
    rl_graph_free(g);
    return NULL;
}

static void read_function_graphs(rl_reader *r, rl_span model) {
    rl_wire w = rl_wire_of(model);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != MODEL_FUNCTIONS) continue;
        rl_graph *g = read_function_graph(r, f.body);
        rl_str domain = rl_internz(r->ctx, ""), name = domain;
        rl_wire m = rl_wire_of(f.body);
        for (rl_field x; g && rl_wire_next(&m, &x);) {
            if (x.number == FUNCTION_NAME) name = rl_intern(r->ctx, (const char *)x.body.p, x.body.n);
            if (x.number == FUNCTION_DOMAIN) domain = rl_intern(r->ctx, (const char *)x.body.p, x.body.n);
        }
        if (g) {
            g->name = name;
            g->domain = rl_reader_domain(r, rl_span_of(domain));
        }
        rl_push(&r->main->mem, r->main->function, g);
    }
}

static rl_status check_version(rl_reader *r) {
    rl_graph *g = r->main;
    if (g->ir_version <= 0) return rl_fail(r->ctx, RL_EMODEL, "not an ONNX model: it has no ir_version");
    if (g->ir_version > MAX_IR)
        return rl_fail(r->ctx, RL_ELIMIT, "its IR version %lld is newer than %d, the newest known",
                       (long long)g->ir_version, MAX_IR);
    if (g->opset.n) return RL_OK;
    if (g->ir_version >= 3) return rl_fail(r->ctx, RL_EMODEL, "the model imports no opset");
    rl_push(&g->mem, g->opset, ((rl_opset){rl_internz(r->ctx, ""), 1}));
    return RL_OK;
}

static rl_status read_header(rl_level *l, rl_span bytes) {
    rl_reader *r = l->r;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number == MODEL_IR_VERSION) r->main->ir_version = (int64_t)f.value;
        if (f.number == MODEL_TRAINING_INFO) r->onnx->pinned = true;
    }
    RL_TRY(each_field(l, bytes, MODEL_OPSET_IMPORT, 0, read_opset));
    RL_TRY(each_field(l, bytes, MODEL_FUNCTIONS, 0, read_function));
    RL_TRY(check_version(r));
    r->onnx->nopset = r->main->opset.n;
    return RL_OK;
}

static rl_status read_model(rl_reader *r, rl_span bytes) {
    rl_span graph = {0};
    RL_TRY(rl_onnx_scan(r, bytes));
    rl_level l;
    rl_level_open(&l, r, r->main, 0);
    rl_status status = read_header(&l, bytes);
    rl_level_close(&l);
    if (status != RL_OK) return status;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == MODEL_GRAPH) graph = f.body;
    if (!graph.p) return rl_fail(r->ctx, RL_EMODEL, "not an ONNX model: it has no graph");
    RL_TRY(read_into(r, r->main, graph, 0));
    read_function_graphs(r, bytes);
    return RL_OK;
}

static rl_readopt options(const rl_readopt *o) {
    rl_readopt x = o ? *o : (rl_readopt){0};
    if (!x.max_depth) x.max_depth = 100;
    x.max_depth = RL_MIN(x.max_depth, (uint32_t)MAX_DEPTH);
    if (!x.max_file) x.max_file = (uint64_t)64 << 30;
    if (!x.max_node) x.max_node = 10000000;
    return x;
}

/* Makes the graph that will own what is mapped. */
static void start(rl_reader *r, rl_str path, rl_str dir) {
    rl_graph *g = rl_graph_new(r->ctx);
    r->main = g;
    struct rl_onnx *x = rl_new(&g->mem, struct rl_onnx, 1);
    x->mem = x->function.mem = &g->mem;
    x->path = path;
    x->dir = dir;
    x->any_external = r->opt.any_external;
    g->onnx = r->onnx = x;
}

static rl_status map_model(rl_reader *r, rl_span *bytes) {
    rl_mapping *m = rl_new(r->onnx->mem, rl_mapping, 1);
    RL_TRY(rl_file_map(r->ctx, r->onnx->path, r->opt.max_file, &m->bytes, &m->id));
    m->next = r->onnx->mapping;
    r->onnx->mapping = m;
    *bytes = m->bytes;
    return RL_OK;
}

static rl_status read_all(rl_reader *r, const char *path, const char *dir, rl_span bytes, bool map) {
    if (map) dir = rl_file_dir(r->ctx, path);
    else if (dir) dir = rl_file_dir(r->ctx, rl_internf(r->ctx, "%s/", dir));
    start(r, rl_internz(r->ctx, path), dir);
    if (map) RL_TRY(map_model(r, &bytes));
    r->onnx->bytes = bytes;
    rl_ctx_allow(r->ctx, bytes.n);
    /* An empty graph takes 8 KiB and more: that many bodies must stand for real ones. */
    r->max_body = 4096 + bytes.n / 1024;
    rl_status status =
        bytes.n ? read_model(r, bytes) : rl_fail(r->ctx, RL_EMODEL, "not an ONNX model: the file is empty");
    return status == RL_OK ? status : rl_fail(r->ctx, status, "%.400s: %s", path, r->ctx->error);
}

/* Reads, and cleans up where memory runs out, before the jump goes on to the caller's place. */
static rl_status read_guarded(rl_reader *r, const char *path, const char *dir, rl_span bytes, bool map) {
    rl_ctx *ctx = r->ctx;
    jmp_buf outer;
    memcpy(&outer, &ctx->oom, sizeof outer);
    rl_status status;
    if (setjmp(ctx->oom)) {
        rl_fail_memory(ctx);
        status = rl_fail(ctx, RL_ENOMEM, "%.400s: %s", path, ctx->error);
    }
    else status = read_all(r, path, dir, bytes, map);
    memcpy(&ctx->oom, &outer, sizeof outer);
    if (status == RL_OK) {
        if (map) rl_file_forget(r->onnx->bytes); /* few look at it before it is written */
        return status;
    }
    rl_onnx_one_line(ctx->error);
    rl_graph_free(r->main);
    return status;
}

rl_status rl_onnx_read(rl_ctx *ctx, const char *path, const rl_readopt *o, rl_graph **g) {
    rl_reader r = {.ctx = ctx, .opt = options(o)};
    *g = NULL;
    RL_TRY(read_guarded(&r, path, NULL, (rl_span){0}, true));
    *g = r.main;
    return RL_OK;
}

rl_status rl_onnx_read_bytes(rl_ctx *ctx, const void *p, size_t n, const char *dir, const rl_readopt *o, rl_graph **g) {
    rl_reader r = {.ctx = ctx, .opt = options(o)};
    *g = NULL;
    RL_TRY(read_guarded(&r, "<memory>", dir, (rl_span){p, n}, false));
    *g = r.main;
    return RL_OK;
}

void rl_onnx_forget(const rl_graph *g, const void *p, size_t n) {
    const uint8_t *from = p;
    for (const rl_mapping *m = g->onnx ? g->onnx->mapping : NULL; m; m = m->next)
        if (from >= m->bytes.p && n <= m->bytes.n && (size_t)(from - m->bytes.p) <= m->bytes.n - n) rl_file_forget((rl_span){from, n});
}

void rl_onnx_free(struct rl_onnx *o) {
    for (const rl_mapping *m = o->mapping; m; m = m->next) rl_file_unmap(m->bytes);
}
