/* Ops of com.microsoft on quantized numbers, written out as the ops that they stand for.
 *
 *   y = QLinearAdd(a, as, az, b, bs, bz, ys, yz)      becomes      y = QuantizeLinear(Add(DequantizeLinear(a, as, az), DequantizeLinear(b, bs, bz)), ys, yz)
 *   y = QLinearConv(x, ..) channels_last=1            becomes      y = Transpose(QLinearConv(Transpose(x), ..))
 *
 * What runs them as one again is what runs such chains (fuse_bytes.c, fuse.c); Transposes are views.  What is left alone has no kernel. */
#include <string.h>

#include "exec.h"

typedef enum { ONE, PAIR, LIST, PRODUCT, SAME, LAST } shape; /* of the inputs: x; a, b; any number of pieces; a, b, c; as the op's; channels last */

static const struct { const char *type; rl_op op; shape form; } rows[] = {
    {"QLinearAdd", RL_OP_Add, PAIR},
    {"QLinearMul", RL_OP_Mul, PAIR},
    {"QLinearSigmoid", RL_OP_Sigmoid, ONE},
    {"QLinearLeakyRelu", RL_OP_LeakyRelu, ONE},
    {"QLinearSoftmax", RL_OP_Softmax, ONE},
    {"QLinearReduceMean", RL_OP_ReduceMean, ONE},
    {"QLinearAveragePool", RL_OP_AveragePool, ONE},
    {"QLinearGlobalAveragePool", RL_OP_GlobalAveragePool, ONE},
    {"QLinearConcat", RL_OP_Concat, LIST},
    {"QLinearMatMul", RL_OP_MatMul, PAIR},
    {"QGemm", RL_OP_Gemm, PRODUCT},
    {"QuantizeLinear", RL_OP_QuantizeLinear, SAME},
    {"DequantizeLinear", RL_OP_DequantizeLinear, SAME},
    {"QLinearConv", RL_OP_QLinearConv, LAST},
    {"NhwcMaxPool", RL_OP_MaxPool, LAST},
};

typedef struct {
    rl_graph *g;
    rl_arena *tmp;
    const rl_nodeinfo *n; /* a copy of the node at work */
    rl_value out;
    rl_str domain; /* com.microsoft */
} spreader;

static rl_value add(const spreader *a, rl_op op, uint32_t nin, const rl_value *in, bool last) {
    rl_value y = last ? a->out : rl_graph_value(a->g, NULL);
    while (nin && !rl_has(in[nin - 1])) nin--;
    rl_graph_add(a->g, op, a->n->name, nin, in, 1, &y);
    return y;
}

static rl_node newest(const rl_graph *g) {
    return g->order.p[g->order.n - 1];
}

/* The attributes of the op, on the node that was added last. */
static void give_attributes(const spreader *a) {
    rl_attr *attr = rl_new(a->tmp, rl_attr, a->n->nattr + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->n->nattr; i++)
        if (strcmp(a->n->attr[i].name, "channels_last") != 0 && strcmp(a->n->attr[i].name, "opset") != 0) attr[count++] = a->n->attr[i];
    rl_graph_set_attrs(a->g, newest(a->g), attr, count);
}

/* Inputs i, i + 1, i + 2 as floats. */
static rl_value dequantized(const spreader *a, uint32_t i) {
    return add(a, RL_OP_DequantizeLinear, 3, (rl_value[]){rl_in(a->n, i), rl_in(a->n, i + 1), rl_in(a->n, i + 2)}, false);
}

/* x, of op, in inputs i, i + 1's scale and zero point. */
static void quantize(const spreader *a, rl_value x, uint32_t i) {
    add(a, RL_OP_QuantizeLinear, 3, (rl_value[]){x, rl_in(a->n, i), rl_in(a->n, i + 1)}, true);
}

static const rl_const *floats(const spreader *a, rl_value v) {
    const rl_const *c = rl_has(v) ? rl_val(a->g, v)->data : NULL;
    return c && c->data && c->dtype == RL_F32 ? c : NULL;
}

/* The bias, of the operands' scales. */
static rl_value bias(const spreader *a, bool *known) {
    const rl_const *x = floats(a, rl_in(a->n, 1)), *w = floats(a, rl_in(a->n, 4));
    *known = true;
    if (!rl_has(rl_in(a->n, 6))) return RL_NOVALUE;
    *known = x && w && x->nbyte == sizeof(float);
    if (!*known) return RL_NOVALUE;
    uint32_t n = (uint32_t)(w->nbyte / sizeof(float));
    float *s = rl_copy(&a->g->mem, w->data, w->nbyte), by;
    memcpy(&by, x->data, sizeof by);
    for (uint32_t i = 0; i < n; i++) s[i] *= by;
    rl_value scale = rl_graph_const(a->g, NULL, RL_F32, w->rank, w->dim, s, w->nbyte);
    return add(a, RL_OP_DequantizeLinear, 2, (rl_value[]){rl_in(a->n, 6), scale}, false);
}

/* perm: the channels, last, behind the batch; or back. */
static rl_value turned(const spreader *a, rl_value x, uint32_t rank, bool back, bool last) {
    int64_t perm[RL_RANK] = {0};
    for (uint32_t i = 1; i < rank; i++) perm[i] = back ? (i + 1 == rank ? 1 : i + 1) : i == 1 ? rank - 1 : i - 1;
    rl_value y = add(a, RL_OP_Transpose, 1, &x, last);
    rl_attr attr = rl_attr_of_ints(a->g, "perm", perm, rank);
    rl_graph_set_attrs(a->g, newest(a->g), &attr, 1);
    return y;
}

static uint32_t rank_of(const spreader *a, rl_op op) {
    const rl_attr *kernel = rl_attr_ints(a->n, "kernel_shape");
    uint32_t rank = op == RL_OP_MaxPool ? (kernel ? kernel->n + 2 : RL_NORANK)
                  : rl_has(rl_in(a->n, 3)) ? rl_val(a->g, a->n->in[3])->rank : RL_NORANK;
    return rank >= 3 && rank <= RL_RANK ? rank : RL_NORANK;
}

/* Does the op mean the same in the graph's opset?  Attributes that became inputs are those of the op before. */
static bool means_the_same(const spreader *a, rl_op op, shape form) {
    uint32_t opset = rl_opset_of(a->g, rl_internz(a->g->ctx, ""));
    if (opset < 10 || (op == RL_OP_Softmax && (rl_attr_int(a->n, "opset", 1) >= 13) != (opset >= 13))) return false;
    if (form == LAST) return rank_of(a, op) != RL_NORANK;
    return !rl_attr_int(a->n, "channels_last", 0) && (op != RL_OP_Gemm || rl_attr_float(a->n, "alpha", 1) == 1);
}

static void write_out(const spreader *a, rl_op op, shape form, rl_value c) {
    const rl_nodeinfo *n = a->n;
    rl_value *in = rl_new(a->tmp, rl_value, n->nin + 3), y;
    uint32_t nin = 0;
    if (form == SAME || form == LAST) {
        bool last = form == LAST && (op == RL_OP_MaxPool || rl_attr_int(n, "channels_last", 0));
        memcpy(in, n->in, n->nin * sizeof *in);
        if (last) in[0] = turned(a, in[0], rank_of(a, op), false, false);
        y = add(a, op, n->nin, in, !last);
        give_attributes(a);
        if (last) turned(a, y, rank_of(a, op), true, true);
        return;
    }
    if (form == LIST)
        for (uint32_t i = 2; i + 2 < n->nin; i += 3) in[nin++] = dequantized(a, i);
    else in[nin++] = dequantized(a, 0);
    if (form == PAIR || form == PRODUCT) in[nin++] = dequantized(a, 3);
    if (form == PRODUCT) { /* scales of columns */
        rl_attr axis = rl_attr_of_int(a->g, "axis", !rl_attr_int(n, "transB", 0));
        rl_graph_set_attrs(a->g, newest(a->g), &axis, 1);
        in[nin++] = c;
    }
    bool floats = form == PRODUCT && !rl_has(rl_in(n, 7));
    y = add(a, op, nin, in, floats);
    give_attributes(a);
    if (op == RL_OP_ReduceMean) rl_nod(a->g, newest(a->g))->since = 13;
    if (!floats) quantize(a, y, form == ONE ? 3 : form == PAIR ? 6 : form == LIST ? 0 : 7);
}

/* A product of two variables, each of one scale: floats are faster, and as exact while sums are below 2^24. */
static bool is_product(const spreader *a, const rl_nodeinfo *n) {
    for (uint32_t i = 1; i < 7 && n->nin == 8; i += i == 4 ? 2 : 3) {
        const rl_const *s = floats(a, n->in[i]);
        if (!s || s->nbyte != sizeof(float)) return false;
    }
    return n->op == RL_OP_QLinearMatMul && n->nin == 8 && !rl_val(a->g, n->in[3])->data;
}

static bool spread_node(spreader *a, rl_node node, bool fast) {
    const rl_nodeinfo *n = rl_nod(a->g, node);
    uint32_t i = 0;
    if (n->domain != a->domain && !(fast && is_product(a, n))) return false;
    while (i < RL_LEN(rows) && strcmp(rows[i].type, n->type) != 0) i++;
    if (i == RL_LEN(rows) || !n->nout || !rl_has(n->out[0]) || n->nin < (rows[i].op == RL_OP_MaxPool ? 1u : rows[i].form == SAME ? 2u : 5u)) return false;
    a->n = rl_copy(a->tmp, n, sizeof *n);
    a->out = n->out[0];
    bool known = true;
    if (!means_the_same(a, rows[i].op, rows[i].form)) return false;
    rl_value c = rows[i].form == PRODUCT ? bias(a, &known) : RL_NOVALUE;
    if (!known) return false;
    rl_graph_remove(a->g, node);
    write_out(a, rows[i].op, rows[i].form, c);
    return true;
}

rl_status rl_spread_bytes(rl_graph *g, bool fast) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    spreader a = {.g = g, .tmp = &tmp, .domain = rl_internz(g->ctx, "com.microsoft")};
    uint32_t count = g->order.n;
    rl_node *order = rl_copy(&tmp, g->order.p, count * sizeof *order);
    bool changed = false;
    rl_status s = RL_OK;
    for (uint32_t i = 0; i < count && s == RL_OK; i++) {
        const rl_nodeinfo *n = rl_nod(g, order[i]);
        for (uint32_t k = 0; k < n->nattr && s == RL_OK; k++)
            if (n->attr[k].graph) s = rl_spread_bytes(n->attr[k].graph, fast);
        changed = (s == RL_OK && spread_node(&a, order[i], fast)) || changed;
    }
    rl_arena_free(&tmp);
    return s == RL_OK && changed ? rl_graph_sort(g) : s;
}
