/* Reads what declares values: initializers, graph inputs and outputs, value_info.
 *
 * An initializer is a constant, unless it is also a graph input: then it is the input's default, which the caller may replace.
 * A declared type that is no tensor stays unknown; a dim without a name, or with one like "?", is a fresh symbol. */
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx_read.h"

/* ---- tensors ---- */

bool rl_read_too_many(rl_span s, uint32_t number, uint32_t max) {
    uint32_t n = 0;
    rl_wire w = rl_wire_of(s);
    for (rl_field f; rl_wire_next(&w, &f);) n += f.number == number;
    return n > max;
}

/* "initializer 'w'": made for every tensor that is read, for which snprintf takes too long. */
typedef struct { char s[160]; } title;
static title title_of(const char *kind, rl_span name) {
    title t;
    size_t n = strlen(kind), k = RL_MIN(name.n, (size_t)100);
    memcpy(t.s, kind, n + 1);
    if (!k) return t;
    memcpy(t.s + n, " '", 2);
    memcpy(t.s + n + 2, name.p, k);
    memcpy(t.s + n + 2 + k, "'", 2);
    return t;
}

/* Reads a TensorProto; kind: what it is in messages, a word or two; the name goes to *name where wanted. */
rl_status rl_read_tensor(rl_level *l, rl_span bytes, const char *kind, rl_str *name, rl_const *c) {
    rl_ctx *ctx = l->r->ctx;
    rl_tensor_head h;
    rl_span own;
    uint32_t nentry;
    bool ok = rl_parts_of_tensor(l, bytes, &h, &own, &nentry);
    if (nentry > MAX_EXTERNAL_KEYS) return rl_fail(ctx, RL_ELIMIT, "%s: too many entries for external data", kind);
    if (!ok) return rl_fail(ctx, RL_EMODEL, "%s: is damaged", kind);
    title what = title_of(kind, own);
    h.what = what.s;
    if (name) {
        if (!own.n) return rl_fail(ctx, RL_EMODEL, "%s: has no name", kind);
        RL_TRY(rl_reader_name(l->r, own, name));
    }
    if (h.external) RL_TRY(rl_parts_of_external(l, bytes, &h));
    return rl_tensor_read(l->r->onnx, &l->g->mem, &h, bytes, c);
}

static void read_const(rl_graph *g, rl_value v, const rl_const *c) {
    rl_graph_set_type(g, v, c->dtype, c->rank, c->dim);
    rl_val(g, v)->data = c->data ? c : NULL;
}

rl_status rl_read_initializer(rl_level *l, rl_span bytes) {
    rl_graph *g = l->g;
    rl_str name = NULL;
    rl_const *c = rl_new(&g->mem, rl_const, 1);
    RL_TRY(rl_read_tensor(l, bytes, "initializer", &name, c));
    rl_value v = rl_graph_value(g, name);
    rl_valinfo *x = rl_val(g, v);
    if (x->raw.p) return rl_fail(l->r->ctx, RL_EMODEL, "initializer '%.100s': defined twice", name);
    x->raw = bytes;
    rl_push(&g->mem, g->onnx->init, v);
    if (x->is_input && (g->parent || g->ir_version >= 4)) return RL_OK; /* a default that the caller may replace: no constant */
    x->is_input = false;
    x->is_init = true;
    read_const(g, v, c);
    rl_push(&g->mem, g->init, v);
    return RL_OK;
}

/* What there is of a SparseTensorProto beside its elements: its type, and the name of its values. */
typedef struct { const char *name; rl_dtype dtype; uint32_t rank; const int64_t *dim; } sparse_type;

static rl_status read_sparse_type(rl_level *l, rl_span bytes, sparse_type *out) {
    rl_span values = rl_wire_part(bytes, SPARSE_VALUES);
    Onnx__TensorProto *t = rl_level_unpack(l, &onnx__tensor_proto__descriptor,
                                           rl_level_pick(l, values, BIT(TENSOR_NAME) | BIT(TENSOR_DATA_TYPE)));
    Onnx__SparseTensorProto *s =
        rl_level_unpack(l, &onnx__sparse_tensor_proto__descriptor, rl_level_pick(l, bytes, BIT(SPARSE_DIMS)));
    if (!t || !s) return rl_fail(l->r->ctx, RL_EMODEL, "sparse tensor: is damaged");
    const char *name = t->name ? t->name : "";
    if (s->n_dims > MAX_RANK) return rl_fail(l->r->ctx, RL_ELIMIT, "sparse tensor '%.100s': rank %zu is over the limit", name, s->n_dims);
    for (size_t i = 0; i < s->n_dims; i++)
        if (s->dims[i] < 0) return rl_fail(l->r->ctx, RL_EMODEL, "sparse tensor '%.100s': dim %zu is negative", name, i);
    if (rl_onnx_too_many(s->dims, (uint32_t)s->n_dims))
        return rl_fail(l->r->ctx, RL_EMODEL, "sparse tensor '%.100s': its dims make more elements than memory can hold", name);
    *out = (sparse_type){name, rl_dtype_bits((rl_dtype)t->data_type) ? (rl_dtype)t->data_type : RL_UNDEF, (uint32_t)s->n_dims, s->dims};
    return RL_OK;
}

/* A sparse initializer: a source whose data nobody looks at. */
rl_status rl_read_sparse(rl_level *l, rl_span bytes) {
    rl_graph *g = l->g;
    sparse_type t;
    rl_str name = NULL;
    RL_TRY(read_sparse_type(l, bytes, &t));
    if (!*t.name) return rl_fail(l->r->ctx, RL_EMODEL, "sparse initializer: has no name");
    RL_TRY(rl_reader_name(l->r, rl_span_of(t.name), &name));
    rl_value v = rl_graph_value(g, name);
    rl_valinfo *x = rl_val(g, v);
    if (x->raw.p) return rl_fail(l->r->ctx, RL_EMODEL, "sparse initializer '%.100s': defined twice", name);
    x->raw = bytes;
    if (x->is_input) return RL_OK;
    x->is_init = true;
    rl_graph_set_type(g, v, t.dtype, t.rank, t.dim);
    rl_push(&g->mem, g->init, v);
    return RL_OK;
}

/* Nor at that of a Constant's sparse_value. */
rl_status rl_read_sparse_value(rl_level *l, const rl_nodeinfo *n) {
    sparse_type t;
    const rl_attr *a = rl_attr_find(n, "sparse_value");
    if (!a || a->kind != RL_ATTR_OTHER || n->nattr != 1 || n->nout != 1 || !rl_has(n->out[0])) return RL_OK;
    rl_span tensor = rl_wire_part(a->raw, ATTR_SPARSE);
    if (!tensor.p) return RL_OK;
    RL_TRY(read_sparse_type(l, tensor, &t));
    if (t.dtype != RL_UNDEF) rl_graph_set_type(l->g, n->out[0], t.dtype, t.rank, t.dim);
    return RL_OK;
}

/* ---- types ---- */

static rl_dim read_dim(rl_reader *r, const Onnx__TensorShapeProto__Dimension *d) {
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0) return d->dim_value;
    const char *s = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM ? d->dim_param : NULL;
    /* Names like "?" mean that nothing is known, not that all such dims are equal. */
    if (!s || !*s || *s == '?' || strlen(s) > MAX_NAME) return rl_dim_fresh(r->ctx);
    return rl_dim_symbol(r->ctx, rl_internz(r->ctx, s));
}

/* Fills the value's type from its declaration; what is no tensor stays unknown. */
static rl_status read_type(rl_level *l, rl_value v, const Onnx__TypeProto *t) {
    if (!t || t->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !t->tensor_type) return RL_OK;
    const Onnx__TensorShapeProto *s = t->tensor_type->shape;
    int32_t e = t->tensor_type->elem_type;
    rl_dtype type = e == RL_STRING || (e > 0 && rl_dtype_bits((rl_dtype)e)) ? (rl_dtype)e : RL_UNDEF;
    if (!s) {
        rl_graph_set_type(l->g, v, type, RL_NORANK, NULL);
        return RL_OK;
    }
    rl_dim *dim = rl_new(&l->scratch, rl_dim, s->n_dim);
    for (size_t i = 0; i < s->n_dim; i++) dim[i] = read_dim(l->r, s->dim[i]);
    if (rl_onnx_too_many(dim, (uint32_t)s->n_dim))
        return rl_fail(l->r->ctx, RL_EMODEL, "value '%.100s': its dims make more elements than memory can hold", rl_val(l->g, v)->name);
    rl_graph_set_type(l->g, v, type, (uint32_t)s->n_dim, dim);
    return RL_OK;
}

static rl_status unpack_valinfo(rl_level *l, rl_span bytes, const char *kind, Onnx__ValueInfoProto **p, rl_str *name) {
    *p = rl_level_unpack(l, &onnx__value_info_proto__descriptor, rl_level_pick(l, bytes, BIT(1) | BIT(2)));
    if (!*p) return rl_fail(l->r->ctx, RL_EMODEL, "graph %s: is damaged", kind);
    if (!(*p)->name || !*(*p)->name) return rl_fail(l->r->ctx, RL_EMODEL, "graph %s: has no name", kind);
    return rl_reader_name(l->r, rl_span_of((*p)->name), name);
}

rl_status rl_read_input(rl_level *l, rl_span bytes) {
    Onnx__ValueInfoProto *p = NULL;
    rl_str name = NULL;
    RL_TRY(unpack_valinfo(l, bytes, "input", &p, &name));
    rl_value v = rl_graph_value(l->g, name);
    if (rl_val(l->g, v)->is_input) return rl_fail(l->r->ctx, RL_EMODEL, "graph input '%.100s': declared twice", name);
    rl_val(l->g, v)->is_input = true;
    rl_push(&l->g->mem, l->g->input, v);
    return read_type(l, v, p->type);
}

rl_status rl_read_output(rl_level *l, rl_span bytes) {
    Onnx__ValueInfoProto *p = NULL;
    rl_str name = NULL;
    RL_TRY(unpack_valinfo(l, bytes, "output", &p, &name));
    rl_value v = rl_graph_value(l->g, name);
    rl_val(l->g, v)->is_output = true;
    rl_push(&l->g->mem, l->g->output, v);
    if (rl_val(l->g, v)->is_input || rl_val(l->g, v)->is_init) return RL_OK;
    return read_type(l, v, p->type);
}

/* A declared type between: a hint where nothing better is known. Names that no node makes are common, and harmless. */
rl_status rl_read_hint(rl_level *l, rl_span bytes) {
    Onnx__ValueInfoProto *p =
        rl_level_unpack(l, &onnx__value_info_proto__descriptor, rl_level_pick(l, bytes, BIT(1) | BIT(2)));
    if (!p) return rl_fail(l->r->ctx, RL_EMODEL, "value_info: is damaged");
    rl_str name = p->name ? rl_intern_find(l->r->ctx, p->name, strlen(p->name)) : NULL;
    rl_value v = rl_graph_find(l->g, name);
    if (!rl_has(v) || rl_val(l->g, v)->dtype != RL_UNDEF || rl_val(l->g, v)->rank != RL_NORANK) return RL_OK;
    return read_type(l, v, p->type);
}
