/* Ops of com.microsoft, most of them on quantized numbers, written out as the ops that they stand for.
 *
 *   y = QLinearAdd(a, as, az, b, bs, bz, ys, yz)      becomes      y = QuantizeLinear(Add(DequantizeLinear(a, as, az), DequantizeLinear(b, bs, bz)), ys, yz)
 *   y = QLinearConv(x, ..) channels_last=1            becomes      y = Transpose(QLinearConv(Transpose(x), ..))
 *   y = FusedConv(x, w, b, z) activation="Relu"       becomes      y = Relu(Add(Conv(x, w, b), z))
 *   y = QAttention(x, w, b, xs, ws, mask, xz, wz)     becomes      y = MultiHeadAttention(q, k, v, , mask), where q, k, v = Split(MatMulIntegerToFloat(x, w, ..))
 *
 * What runs them as one again is what runs such chains (fuse_bytes.c, fuse.c); Transposes are views.  What is left alone has no kernel. */
#include <string.h>

#include "../src/ops.h"
#include "exec.h"

/* Of the inputs: x; a, b; which, a, b; any number of pieces; a, b, c; as the op's; channels last; floats and an activation; a product and heads; rows of
 * blocks; tables. */
typedef enum { ONE, PAIR, CHOICE, LIST, PRODUCT, SAME, LAST, FUSED, HEADS, ROWS, TABLES } shape;

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
    {"QLinearWhere", RL_OP_Where, CHOICE},
    {"QGemm", RL_OP_Gemm, PRODUCT},
    {"QuantizeLinear", RL_OP_QuantizeLinear, SAME},
    {"DequantizeLinear", RL_OP_DequantizeLinear, SAME},
    {"QLinearConv", RL_OP_QLinearConv, LAST},
    {"NhwcMaxPool", RL_OP_MaxPool, LAST},
    {"FusedConv", RL_OP_Conv, FUSED},
    {"FusedGemm", RL_OP_Gemm, FUSED},
    {"Attention", RL_OP_MatMul, HEADS},
    {"QAttention", RL_OP_ms_MatMulIntegerToFloat, HEADS},
    {"GatherBlockQuantized", RL_OP_Gather, ROWS},
    {"QEmbedLayerNormalization", RL_OP_ms_EmbedLayerNormalization, TABLES},
};
/* Attributes that only these ops have. */
static const char *const own[] = {"channels_last", "opset", "qkv_hidden_sizes", "do_rotary", "rotary_embedding_dim", "past_present_share_buffer"};

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
        if (strncmp(a->n->attr[i].name, "activation", 10) != 0 && !rl_in_list(own, RL_LEN(own), a->n->attr[i].name)) attr[count++] = a->n->attr[i];
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

/* Of what has its channels last. */
static uint32_t rank_of(const spreader *a, rl_op op) {
    const rl_attr *kernel = rl_attr_ints(a->n, "kernel_shape");
    rl_value like = rl_in(a->n, op == RL_OP_QLinearConv ? 3 : 0);
    uint32_t rank = kernel ? kernel->n + 2 : rl_has(like) ? rl_val(a->g, like)->rank : RL_NORANK;
    return rank >= 3 && rank <= RL_RANK ? rank : RL_NORANK;
}

/* ---- floats with an activation ---- */

/* RL_OP_OPAQUE: not known. */
static rl_op activation(const spreader *a) {
    const rl_attr *name = rl_attr_find(a->n, "activation");
    return name && name->kind == RL_ATTR_STRING ? rl_op_named(rl_internz(a->g->ctx, ""), rl_intern(a->g->ctx, (const char *)name->s.p, name->s.n)) : RL_OP_OPAQUE;
}

/* Its numbers: FusedConv has a list of them, FusedGemm each by its name. */
static uint32_t activation_numbers(const spreader *a, float x[3]) {
    static const char *const names[] = {"activation_alpha", "activation_beta", "activation_gamma"};
    const rl_attr *list = rl_attr_find(a->n, "activation_params");
    uint32_t n = list && list->kind == RL_ATTR_FLOATS ? RL_MIN(list->n, 3u) : 0;
    if (n) memcpy(x, list->floats, n * sizeof *x);
    else for (; n < 3 && rl_attr_find(a->n, names[n]); n++) x[n] = rl_attr_float(a->n, names[n], 0);
    return n;
}

static void activate(const spreader *a, rl_value y) {
    static const char *const names[] = {"alpha", "beta", "gamma"};
    float *x = rl_new(&a->g->mem, float, 3);
    rl_op op = activation(a);
    bool clips = op == RL_OP_Clip, by_input = clips && rl_opset_of(a->g, rl_internz(a->g->ctx, "")) >= 11;
    uint32_t n = activation_numbers(a, x);
    rl_value in[4] = {y};
    rl_attr attr[3];
    for (uint32_t i = 0; i < n && i < 3; i++) {
        const char *name = !clips ? names[i] : i ? "max" : "min";
        if (by_input) in[1 + i] = rl_graph_const(a->g, NULL, RL_F32, 0, NULL, &x[i], sizeof *x);
        attr[i] = (rl_attr){.name = rl_internz(a->g->ctx, name), .kind = RL_ATTR_FLOAT, .f = x[i]};
    }
    add(a, op, by_input ? 1 + n : 1, in, true);
    if (!by_input) rl_graph_set_attrs(a->g, newest(a->g), attr, n);
}

static void write_fused(const spreader *a, rl_op op) {
    bool adds = rl_has(rl_in(a->n, 3)), acts = rl_attr_find(a->n, "activation");
    rl_value y = add(a, op, 3, (rl_value[]){rl_in(a->n, 0), rl_in(a->n, 1), rl_in(a->n, 2)}, !adds && !acts);
    give_attributes(a);
    if (adds) y = add(a, RL_OP_Add, 2, (rl_value[]){y, rl_in(a->n, 3)}, !acts);
    if (acts) activate(a, y);
}

/* ---- attention ---- */

static rl_value int_const(const spreader *a, uint32_t rank, uint32_t n, const int64_t *x) {
    return rl_graph_const(a->g, NULL, RL_I64, rank, (int64_t[]){n}, rl_copy(&a->g->mem, x, n * sizeof *x), n * sizeof *x);
}

/* Columns for queries, keys and values. */
static void split_heads(const spreader *a, rl_value x, rl_value *out) {
    const rl_attr *sizes = rl_attr_ints(a->n, "qkv_hidden_sizes");
    rl_value in[2] = {x, sizes ? int_const(a, 1, sizes->n, sizes->ints) : RL_NOVALUE};
    for (uint32_t i = 0; i < 3; i++) out[i] = rl_graph_value(a->g, NULL);
    rl_graph_add(a->g, RL_OP_Split, a->n->name, sizes ? 2 : 1, in, 3, out);
    rl_attr axis = rl_attr_of_int(a->g, "axis", 2);
    rl_graph_set_attrs(a->g, newest(a->g), &axis, 1);
    rl_nod(a->g, newest(a->g))->since = 13;
}

/* Past keys and values are one tensor, and so are those that are given back. */
static void write_heads(const spreader *a, rl_op op) {
    const rl_nodeinfo *n = a->n;
    bool bytes = op == RL_OP_ms_MatMulIntegerToFloat, present = n->nout > 1 && rl_has(n->out[1]);
    rl_value past = rl_in(n, bytes ? 8 : 4), in[8] = {RL_NOVALUE}, y, out[3] = {a->out}, whole[2];
    const rl_value product[] = {rl_in(n, 0), rl_in(n, 1), rl_in(n, 3), rl_in(n, 4), rl_in(n, 6), rl_in(n, 7), rl_in(n, 2)};
    y = add(a, op, bytes ? 7 : 2, product, false);
    if (!bytes && rl_has(rl_in(n, 2))) y = add(a, RL_OP_Add, 2, (rl_value[]){y, rl_in(n, 2)}, false);
    for (uint32_t i = 3; i < 8; i++) in[i] = RL_NOVALUE;
    split_heads(a, y, in);
    in[4] = rl_in(n, bytes ? 5 : 3), in[5] = bytes ? RL_NOVALUE : rl_in(n, 5);
    for (int64_t i = 0; i < 2 && rl_has(past); i++) in[6 + i] = add(a, RL_OP_Gather, 2, (rl_value[]){past, int_const(a, 0, 1, &i)}, false);
    for (uint32_t i = 0; i < 2 && present; i++) out[1 + i] = rl_graph_value(a->g, NULL);
    rl_graph_add(a->g, RL_OP_ms_MultiHeadAttention, n->name, 8, in, present ? 3 : 1, out);
    give_attributes(a);
    if (!present) return;
    for (uint32_t i = 0; i < 2; i++) {
        whole[i] = add(a, RL_OP_Unsqueeze, 2, (rl_value[]){out[1 + i], int_const(a, 1, 1, (int64_t[]){0})}, false);
        rl_nod(a->g, newest(a->g))->since = 13;
    }
    rl_graph_add(a->g, RL_OP_Concat, n->name, 2, whole, 1, &n->out[1]);
    rl_attr axis = rl_attr_of_int(a->g, "axis", 0);
    rl_graph_set_attrs(a->g, newest(a->g), &axis, 1);
}

/* ---- tables ---- */

/* Rows of the data, its scales and its zero points; then these as floats. */
static void write_rows(const spreader *a) {
    const rl_nodeinfo *n = a->n;
    int64_t axis = rl_attr_int(n, "gather_axis", 0), along = rl_attr_int(n, "quantize_axis", 1), rank = rl_val(a->g, n->in[0])->rank;
    rl_value part[3] = {RL_NOVALUE, RL_NOVALUE, RL_NOVALUE};
    axis += axis < 0 ? rank : 0, along += along < 0 ? rank : 0;
    for (uint32_t i = 0; i < 3; i++) {
        rl_value from = rl_in(n, i ? i + 1 : 0);
        if (!rl_has(from)) continue;
        part[i] = add(a, RL_OP_Gather, 2, (rl_value[]){from, n->in[1]}, false);
        rl_attr attr = rl_attr_of_int(a->g, "axis", axis);
        rl_graph_set_attrs(a->g, newest(a->g), &attr, 1);
    }
    add(a, RL_OP_DequantizeLinear, 3, part, true);
    rl_attr attr[] = {rl_attr_of_int(a->g, "axis", along > axis ? along + (int64_t)rl_val(a->g, n->in[1])->rank - 1 : along),
                      rl_attr_of_int(a->g, "block_size", rl_attr_int(n, "block_size", 128))};
    rl_graph_set_attrs(a->g, newest(a->g), attr, RL_LEN(attr));
    rl_nod(a->g, newest(a->g))->since = 21;
}

/* Types shorter than a byte, of the rank that their scales have, along another axis than the blocks. */
static bool has_rows(const spreader *a) {
    const rl_nodeinfo *n = a->n;
    const rl_valinfo *x = rl_val(a->g, n->in[0]), *i = rl_val(a->g, n->in[1]);
    int64_t rank = x->rank, axis = rl_attr_int(n, "gather_axis", 0), along = rl_attr_int(n, "quantize_axis", 1);
    return x->rank != RL_NORANK && i->rank != RL_NORANK && rl_dtype_bits(x->dtype) == 4 && axis >= -rank && along >= -rank && (axis - along) % rank != 0;
}

static void write_tables(const spreader *a) {
    rl_value in[8] = {rl_in(a->n, 0), rl_in(a->n, 1)};
    for (uint32_t i = 2; i < 7; i++)
        in[i] = rl_has(rl_in(a->n, i)) ? add(a, RL_OP_DequantizeLinear, 3, (rl_value[]){a->n->in[i], rl_in(a->n, i + 6), rl_in(a->n, i + 11)}, false) : RL_NOVALUE;
    in[7] = rl_in(a->n, 7);
    rl_graph_add(a->g, RL_OP_ms_EmbedLayerNormalization, a->n->name, 8, in, a->n->nout, a->n->out);
    give_attributes(a);
}

/* ---- all of them ---- */

/* Does the op mean the same in the graph's opset?  Attributes that became inputs are those of the op before. */
static bool means_the_same(const spreader *a, rl_op op, shape form) {
    uint32_t opset = rl_opset_of(a->g, rl_internz(a->g->ctx, ""));
    bool last = form == LAST || (form == ONE && rl_attr_int(a->n, "channels_last", 0));
    if (opset < 10 || (op == RL_OP_Softmax && (rl_attr_int(a->n, "opset", 1) >= 13) != (opset >= 13))) return false;
    if (form == FUSED && rl_attr_find(a->n, "activation") && activation(a) == RL_OP_OPAQUE) return false;
    if (form == HEADS)
        return !rl_attr_int(a->n, "do_rotary", 0) && !rl_attr_int(a->n, "past_present_share_buffer", 0) && (op != RL_OP_MatMul || !rl_has(rl_in(a->n, 6)));
    if (form == ROWS) return has_rows(a);
    if (last) return rank_of(a, op) != RL_NORANK;
    return !rl_attr_int(a->n, "channels_last", 0) && (op != RL_OP_Gemm || form == FUSED || rl_attr_float(a->n, "alpha", 1) == 1);
}

/* With the channels last: between Transposes, where it is not so that the op's flag says otherwise. */
static void write_last(const spreader *a, rl_op op) {
    const rl_nodeinfo *n = a->n;
    rl_value *in = rl_copy(a->tmp, n->in, n->nin * sizeof *in), y;
    bool last = op == RL_OP_MaxPool || rl_attr_int(n, "channels_last", 0);
    if (last) in[0] = turned(a, in[0], rank_of(a, op), false, false);
    y = add(a, op, n->nin, in, !last);
    give_attributes(a);
    if (last) turned(a, y, rank_of(a, op), true, true);
}

static const uint32_t result[] = {[ONE] = 3, [PAIR] = 6, [CHOICE] = 7, [LIST] = 0, [PRODUCT] = 7}; /* the inputs that are the result's scale and zero point */

static void write_bytes(const spreader *a, rl_op op, shape form, rl_value c) {
    const rl_nodeinfo *n = a->n;
    rl_value *in = rl_new(a->tmp, rl_value, n->nin + 3), y;
    uint32_t nin = 0, rank = rl_attr_int(n, "channels_last", 0) ? rank_of(a, op) : 0;
    if (form == CHOICE) in[nin++] = n->in[0];
    if (form == LIST)
        for (uint32_t i = 2; i + 2 < n->nin; i += 3) in[nin++] = dequantized(a, i);
    else in[nin++] = dequantized(a, form == CHOICE ? 1 : 0);
    if (form == PAIR || form == PRODUCT) in[nin++] = dequantized(a, 3);
    if (form == CHOICE) in[nin++] = dequantized(a, 4);
    if (form == PRODUCT) { /* scales of columns */
        rl_attr axis = rl_attr_of_int(a->g, "axis", !rl_attr_int(n, "transB", 0));
        rl_graph_set_attrs(a->g, newest(a->g), &axis, 1);
        in[nin++] = c;
    }
    bool floats = form == PRODUCT && !rl_has(rl_in(n, 7));
    if (rank) in[0] = turned(a, in[0], rank, false, false);
    y = add(a, op, nin, in, floats);
    give_attributes(a);
    if (op == RL_OP_ReduceMean) rl_nod(a->g, newest(a->g))->since = 13;
    if (rank) y = turned(a, y, rank, true, false);
    if (!floats) quantize(a, y, result[form]);
}

static void write_out(const spreader *a, rl_op op, shape form, rl_value c) {
    if (form == SAME || form == LAST) write_last(a, op);
    else if (form == FUSED) write_fused(a, op);
    else if (form == HEADS) write_heads(a, op);
    else if (form == ROWS) write_rows(a);
    else if (form == TABLES) write_tables(a);
    else write_bytes(a, op, form, c);
}

/* How many inputs it has at least. */
static uint32_t needs(rl_op op, shape form) {
    return op == RL_OP_MaxPool ? 1 : form == SAME || form == FUSED || op == RL_OP_MatMul ? 2 : form == ROWS ? 3 : 5;
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
    if (i == RL_LEN(rows) || !n->nout || !rl_has(n->out[0]) || n->nin < needs(rows[i].op, rows[i].form)) return false;
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
