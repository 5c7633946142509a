/* ONNX's TensorProto, SequenceProto and OptionalProto in files of test data: see values.h. */
#include <string.h>

#include "../src/onnx.h"
#include "../src/onnx_fields.h"
#include "../src/wire.h"
#include "values.h"

enum {
    LIST_ELEM = 2, LIST_TENSOR = 3, LIST_SEQUENCE = 5, LIST_OPTIONAL = 7, /* also of OptionalProto, which has one of each */
    ELEM_TENSOR = 1, ELEM_SEQUENCE = 3,
    NESTED = 16 /* the most sequences inside each other */
};

static rl_status read_tensor(rl_rt *rt, rl_graph *g, rl_span bytes, rl_tensor *out) {
    rl_const c;
    const rl_span *strings;
    RL_TRY(rl_onnx_tensor(g, bytes, &c, &strings));
    if (c.rank > RL_RANK) return rl_fail(rt->ctx, RL_ELIMIT, "rank %u is over the limit of %d", c.rank, RL_RANK);
    *out = rl_tensor_new(rt, c.dtype, c.rank, c.dim);
    for (int64_t i = 0; strings && i < rl_numel(out); i++)
        ((rl_str *)rl_data(out))[i] = rl_intern(rt->ctx, (const char *)strings[i].p, strings[i].n);
    if (!strings && c.nbyte) memcpy(out->mem->p, c.data, c.nbyte);
    return RL_OK;
}

static rl_status read_sequence(rl_rt *rt, rl_graph *g, rl_span bytes, uint32_t depth, rl_tensor *out) {
    struct { rl_tensor *p; uint32_t n, cap; } item = {0};
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        rl_tensor t;
        if (f.number == LIST_OPTIONAL || depth == NESTED)
            return rl_fail(rt->ctx, RL_ELIMIT, "a sequence of optionals, or a deep one, does not run");
        if ((f.number != LIST_TENSOR && f.number != LIST_SEQUENCE) || f.type != RL_WIRE_LEN) continue;
        RL_TRY(f.number == LIST_TENSOR ? read_tensor(rt, g, f.body, &t) : read_sequence(rt, g, f.body, depth + 1, &t));
        rl_push(&g->mem, item, t);
        if (t.kind != item.p[0].kind) return rl_fail(rt->ctx, RL_EMODEL, "a sequence of tensors and of sequences");
    }
    if (w.bad) return rl_fail(rt->ctx, RL_EIO, "not a SequenceProto");
    *out = rl_sequence_new(rt, item.n ? item.p[0].dtype : RL_UNDEF, item.p, item.n);
    return RL_OK;
}

static rl_status read_optional(rl_rt *rt, rl_graph *g, rl_span bytes, rl_tensor *out) {
    *out = (rl_tensor){0};
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.type != RL_WIRE_LEN) continue;
        if (f.number == LIST_TENSOR) return read_tensor(rt, g, f.body, out);
        if (f.number == LIST_SEQUENCE) return read_sequence(rt, g, f.body, 0, out);
    }
    return w.bad ? rl_fail(rt->ctx, RL_EIO, "not an OptionalProto") : RL_OK;
}

rl_status rl_pb_read(rl_rt *rt, rl_graph *g, rl_pb_kind kind, rl_span bytes, rl_tensor *out) {
    switch (kind) {
    case RL_PB_TENSOR: return read_tensor(rt, g, bytes, out);
    case RL_PB_SEQUENCE: return read_sequence(rt, g, bytes, 0, out);
    case RL_PB_OPTIONAL: return read_optional(rt, g, bytes, out);
    }
    return rl_fail(rt->ctx, RL_ELIMIT, "an input of this kind does not run");
}

/* ---- writing ---- */

static void print_tensor(rl_rt *rt, const rl_tensor *t, rl_text *to) {
    for (uint32_t i = 0; i < t->rank; i++) rl_wire_add_varint(to, TENSOR_DIMS, (uint64_t)t->dim[i]);
    rl_wire_add_varint(to, TENSOR_DATA_TYPE, t->dtype);
    rl_tensor dense = rl_contiguous(rt, t);
    int64_t n = rl_numel(t);
    if (t->dtype != RL_STRING) rl_wire_add_block(to, TENSOR_RAW_DATA, rl_data(&dense), rl_bytes_of(t->dtype, n));
    for (int64_t i = 0; t->dtype == RL_STRING && i < n; i++) {
        rl_str s = ((rl_str *)rl_data(&dense))[i];
        rl_wire_add_block(to, TENSOR_STRING_DATA, s, strlen(s));
    }
    rl_tensor_drop(&dense);
}

void rl_pb_print(rl_rt *rt, const rl_tensor *t, rl_text *to) {
    if (t->kind == RL_TENSOR) print_tensor(rt, t, to);
    if (t->kind != RL_SEQUENCE) return;
    bool nested = t->dim[0] && rl_item(t, 0)->kind == RL_SEQUENCE;
    rl_wire_add_varint(to, LIST_ELEM, nested ? ELEM_SEQUENCE : ELEM_TENSOR);
    for (int64_t i = 0; i < t->dim[0]; i++) {
        rl_text item = {.mem = to->mem};
        rl_pb_print(rt, rl_item(t, i), &item);
        rl_wire_add_block(to, nested ? LIST_SEQUENCE : LIST_TENSOR, item.p, item.n);
    }
}
