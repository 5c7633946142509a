/* Reads TensorProtos outside a graph: strings, defaults of inputs, files of test data (onnx.h). */
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx_read.h"

enum { STRING_DATA = 6 };

static rl_status find_strings(rl_graph *g, rl_span bytes, const rl_const *c, const rl_span **out) {
    size_t n = 0, want = 1;
    for (uint32_t i = 0; i < c->rank; i++) want *= (size_t)c->dim[i];
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) n += f.number == STRING_DATA;
    if (n != want) return rl_fail(g->ctx, RL_EMODEL, "a tensor of %zu strings has %zu", want, n);
    rl_span *s = rl_new(&g->mem, rl_span, n);
    *out = s;
    w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != STRING_DATA) continue;
        if (f.body.n && memchr(f.body.p, 0, f.body.n)) return rl_fail(g->ctx, RL_ELIMIT, "a string with a zero byte");
        *s++ = f.body;
    }
    return RL_OK;
}

rl_status rl_onnx_tensor(rl_graph *g, rl_span bytes, rl_const *c, const rl_span **strings) {
    rl_graph *top = g;
    while (top->parent) top = top->parent;
    struct rl_onnx none = {.mem = &g->mem};
    rl_reader r = {.ctx = g->ctx, .main = top, .onnx = top->onnx ? top->onnx : &none, .opt = {.max_depth = 100, .max_node = 1}};
    rl_level l;
    *strings = NULL;
    RL_TRY(rl_onnx_scan_tensor(&r, bytes));
    rl_level_open(&l, &r, g, 0);
    rl_status s = rl_read_tensor(&l, bytes, "tensor", NULL, c);
    rl_level_close(&l);
    if (s == RL_OK && c->dtype == RL_STRING) s = find_strings(g, bytes, c, strings);
    else if (s == RL_OK && !c->data) s = rl_fail(g->ctx, RL_ELIMIT, "a tensor whose data is not at hand");
    return s;
}
