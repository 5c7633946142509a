/* Writes what a graph says of its values: inputs, outputs, value_info and quantization_annotation. */
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx_read.h"
#include "onnx_writer.h"
#include "ops.h"

/* Known dims and plain symbols; the rest stays unset, as do the dims of what a contradiction in the model made too large to be read. */
static Onnx__TensorShapeProto *shape_of(rl_writer *w, const rl_valinfo *x) {
    Onnx__TensorShapeProto *s = rl_new(w->mem, Onnx__TensorShapeProto, 1);
    onnx__tensor_shape_proto__init(s);
    s->n_dim = x->rank;
    s->dim = rl_alloc_array(w->mem, x->rank, sizeof *s->dim);
    bool too_many = rl_onnx_too_many(x->dim, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = s->dim[i] = rl_new(w->mem, Onnx__TensorShapeProto__Dimension, 1);
        onnx__tensor_shape_proto__dimension__init(d);
        if (too_many) continue;
        rl_str name = rl_dim_name(w->ctx, x->dim[i]);
        if (rl_dim_known(x->dim[i])) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = x->dim[i];
        } else if (name && *name != '?') {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = rl_pb_text(name);
        }
    }
    return s;
}

void rl_writer_valinfo(rl_writer *w, const rl_graph *g, uint32_t number, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    Onnx__ValueInfoProto p = ONNX__VALUE_INFO_PROTO__INIT;
    Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    Onnx__TypeProto__Tensor tensor = ONNX__TYPE_PROTO__TENSOR__INIT;
    p.name = rl_pb_text(rl_writer_name(w, g, v));
    if (x->dtype != RL_UNDEF) {
        tensor.has_elem_type = true;
        tensor.elem_type = (int32_t)x->dtype;
        tensor.shape = x->rank == RL_NORANK ? NULL : shape_of(w, x);
        type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
        type.tensor_type = &tensor;
        p.type = &type;
    }
    rl_writer_message(w, number, &p.base);
}

bool rl_is_live(const rl_graph *g, rl_value v) {
    if (!rl_has(v)) return false;
    const rl_valinfo *x = rl_val(g, v);
    return x->is_input || x->is_init || x->is_outer || x->def.i != RL_NONE;
}

static bool is_live_name(const rl_graph *g, const char *name) {
    return !name || rl_is_live(g, rl_graph_find(g, rl_intern_find(g->ctx, name, strlen(name))));
}

/* The declared dim does not contradict what the value has now. */
static bool dim_holds(const rl_ctx *ctx, const Onnx__TensorShapeProto__Dimension *d, rl_dim now) {
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
        return d->dim_value < 0 || d->dim_value == now;
    if (d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM || !*d->dim_param || *d->dim_param == '?')
        return true;
    rl_str name = rl_dim_name(ctx, now);
    return name && strcmp(name, d->dim_param) == 0;
}

static bool shape_holds(const rl_ctx *ctx, const Onnx__TensorShapeProto *s, const rl_valinfo *x) {
    if (x->rank == RL_NORANK || !s) return true;
    if (s->n_dim != x->rank) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!dim_holds(ctx, s->dim[i], x->dim[i])) return false;
    return true;
}

rl_status rl_writer_hint(rl_writer *w, const rl_graph *g, const rl_field *f) {
    ProtobufCAllocator alloc = rl_onnx_allocator(w->mem);
    Onnx__ValueInfoProto *p = onnx__value_info_proto__unpack(&alloc, f->body.n, f->body.p);
    if (!p) return rl_fail(w->ctx, RL_EMODEL, "value_info: is damaged");
    if (!is_live_name(g, p->name)) return RL_OK;
    rl_value v = p->name ? rl_graph_find(g, rl_intern_find(g->ctx, p->name, strlen(p->name))) : RL_NOVALUE;
    bool tensor = p->type && p->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && p->type->tensor_type;
    if (!rl_has(v) || !tensor) {
        rl_writer_span(w, f->all);
        return RL_OK;
    }
    const rl_valinfo *x = rl_val(g, v);
    Onnx__TypeProto__Tensor *t = p->type->tensor_type;
    bool same_type = x->dtype == RL_UNDEF || t->elem_type == (int32_t)x->dtype;
    if (same_type && shape_holds(w->ctx, t->shape, x)) {
        rl_writer_span(w, f->all);
        return RL_OK;
    }
    if (!same_type) t->elem_type = (int32_t)x->dtype, t->has_elem_type = true;
    if (x->rank != RL_NORANK) t->shape = shape_of(w, x);
    rl_writer_message(w, f->number, &p->base);
    return RL_OK;
}

static void turn_shape(rl_writer *w, Onnx__TensorShapeProto *s, const uint32_t *perm) {
    Onnx__TensorShapeProto__Dimension **was = rl_copy(w->mem, s->dim, s->n_dim * sizeof *was);
    for (size_t i = 0; i < s->n_dim; i++) s->dim[i] = was[perm[i]];
}

/* Open sizes that have numbers now. */
static void size_shape(rl_writer *w, Onnx__TypeProto__Tensor *t, const rl_valinfo *x) {
    if (x->rank == RL_NORANK || (t->shape && t->shape->n_dim != x->rank)) return;
    if (!t->shape) t->shape = shape_of(w, x);
    for (uint32_t i = 0; i < x->rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];
        if (!rl_dim_known(x->dim[i]) || d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) continue;
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = x->dim[i];
    }
}

/* An input or output that has another name, order or size now; the rest of the field stays. */
rl_status rl_writer_port(rl_writer *w, const rl_graph *g, rl_value v, const rl_field *f) {
    ProtobufCAllocator alloc = rl_onnx_allocator(w->mem);
    if (rl_clean_port(g, v, f->body) || (g->as_read && !g->sized)) {
        rl_writer_span(w, f->all);
        return RL_OK;
    }
    if (g->parent) { /* a body may take or give another tensor */
        rl_writer_valinfo(w, g, f->number, v);
        return RL_OK;
    }
    Onnx__ValueInfoProto *p = onnx__value_info_proto__unpack(&alloc, f->body.n, f->body.p);
    if (!p) return rl_fail(w->ctx, RL_EMODEL, "an input or output is damaged");
    bool tensor = p->type && p->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && p->type->tensor_type;
    Onnx__TensorShapeProto *shape = tensor ? p->type->tensor_type->shape : NULL;
    if (!g->as_read) p->name = rl_pb_text(rl_writer_name(w, g, v));
    if (shape && rl_port_turned(g, v) && shape->n_dim == rl_val(g, v)->rank) turn_shape(w, shape, rl_port_turned(g, v));
    if (tensor && g->sized) size_shape(w, p->type->tensor_type, rl_val(g, v));
    rl_writer_message(w, f->number, &p->base);
    return RL_OK;
}

/* Quantization parameters are named by their tensors: gone with any of them. */
rl_status rl_writer_annotation(rl_writer *w, const rl_graph *g, const rl_field *f) {
    ProtobufCAllocator alloc = rl_onnx_allocator(w->mem);
    Onnx__TensorAnnotation *p = onnx__tensor_annotation__unpack(&alloc, f->body.n, f->body.p);
    if (!p) return rl_fail(w->ctx, RL_EMODEL, "quantization_annotation: is damaged");
    bool live = is_live_name(g, p->tensor_name);
    for (size_t i = 0; i < p->n_quant_parameter_tensor_names; i++)
        live &= is_live_name(g, p->quant_parameter_tensor_names[i]->value);
    if (live) rl_writer_span(w, f->all);
    return RL_OK;
}

/* The values that the file has hints for, or that are inputs or outputs. */
static void find_hinted(const rl_graph *g, bool *hinted) {
    for (uint32_t i = 0; i < g->output.n; i++) hinted[g->output.p[i].i] = true;
    if (!g->onnx) return;
    rl_wire r = rl_wire_of(g->onnx->graph);
    for (rl_field f; rl_wire_next(&r, &f);) {
        if (f.number != GRAPH_VALUE_INFO) continue;
        rl_wire v = rl_wire_of(f.body);
        for (rl_field n; rl_wire_next(&v, &n);) {
            rl_str name = n.number == VALUE_NAME ? rl_intern_find(g->ctx, (const char *)n.body.p, n.body.n) : NULL;
            rl_value x = name ? rl_graph_find(g, name) : RL_NOVALUE;
            if (rl_has(x)) hinted[x.i] = true;
        }
    }
}

static void hint(rl_writer *w, const rl_graph *g, rl_value v, bool *hinted) {
    const rl_valinfo *x = rl_has(v) ? rl_val(g, v) : NULL;
    if (!x || hinted[v.i] || x->rank == RL_NORANK || x->data || x->is_input) return;
    hinted[v.i] = true;
    rl_writer_valinfo(w, g, GRAPH_VALUE_INFO, v);
}

/* onnx's inference takes an open size of V for 0 where heads and their size are one dim, and then the result's. */
static bool wants_sizes(const rl_graph *g, const rl_nodeinfo *n, uint32_t input) {
    return rl_op_heads(n->op, input) && rl_has(n->in[input]) && rl_val(g, n->in[input])->rank == 3;
}

void rl_writer_own_hints(rl_writer *w, const rl_graph *g) {
    bool *hinted = NULL;
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (n->raw.p || !(*n->domain || rl_op_heads(n->op, 0))) continue;
        if (!hinted) find_hinted(g, hinted = rl_new(w->mem, bool, g->nval));
        for (uint32_t k = 0; k < n->nout && *n->domain; k++) hint(w, g, n->out[k], hinted);
        for (uint32_t k = 0; k < n->nin; k++)
            if (wants_sizes(g, n, k)) hint(w, g, n->in[k], hinted);
    }
}
