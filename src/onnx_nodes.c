/* Reads a graph's nodes and their attributes: see onnx_read.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx_read.h"
#include "ops.h"

/* ---- attributes ---- */

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
    if ((*type == RL_ATTR_TENSOR || *type == RL_ATTR_GRAPH) && !a->has && !a->ref.n)
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
        RL_TRY(rl_read_graph(l->r, l->g, f.body, l->depth + 1, &body));
        for (uint32_t i = 0; i < body->outer.n; i++) {
            rl_value v = rl_graph_value(l->g, rl_val(body, body->outer.p[i])->name);
            rl_hash_put(captured, v.i + 1u, 1);
        }
        rl_graph_free(body);
    }
    return RL_OK;
}

rl_status rl_read_attr(rl_level *l, rl_span bytes, rl_attr *to, rl_hash *captured) {
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
    case RL_ATTR_GRAPH: return rl_read_graph(l->r, l->g, a.g, l->depth + 1, &to->graph);
    case RL_ATTR_OTHER: break;
    }
    return RL_OK;
}

/* ---- nodes ---- */

/* "node 'conv1' (Conv)", or its place in the file where it has no name. */
rl_node_label rl_label_node(rl_span name, rl_span type, uint32_t k) {
    rl_node_label l;
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
        RL_TRY(rl_read_attr(l, l->attr.p[k], a, captured));
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
    x->origin = k;
    x->attr = attr;
    x->nattr = l->attr.n;
    rl_text why = {.mem = &l->scratch};
    rl_op op = rl_schema_op(find_op(l, p, x), x, g == l->r->main ? l->r->seen : NULL, &why);
    if (why.n) return rl_fail(l->r->ctx, RL_EMODEL, "%s", why.p);
    if (l->refers) x->bare = op; /* an attribute of a call stands for one of the node's */
    else x->op = op;
    x->raw = bytes;
    for (uint32_t i = 0; i < nout; i++)
        if (rl_has(out[i]) && rl_val(g, out[i])->port != i)
            return rl_fail(l->r->ctx, RL_EMODEL, "makes '%.100s' twice", rl_val(g, out[i])->name);
    set_captures(l, n, &captured);
    if (*domain || strcmp(type, "Constant") != 0) return RL_OK;
    rl_graph_set_constant(g, x);
    return rl_read_sparse_value(l, x);
}

rl_status rl_read_node(rl_level *l, rl_span bytes, uint32_t k) {
    rl_node_parts p;
    rl_level_clean(l);
    rl_parts_of_node(l, bytes, &p);
    rl_status status = add_node(l, &p, bytes, k);
    if (status == RL_OK) return RL_OK;
    return rl_fail(l->r->ctx, status, "%s: %s", rl_label_node(p.name, p.type, k).s, l->r->ctx->error);
}
