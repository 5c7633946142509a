/* See model.h: the choices, the nodes, and the whole. */
#include "model.h"

#include <string.h>

#include "../../runtime/rt.h"
#include "../../src/ops.h"
#include "../../src/shape.h"
#include "../../src/text.h"
#include "model_args.h"

enum { DEEPEST = 3, OUTPUTS = 8 };

#define BIT(t) (1u << (t))
enum {
    F = BIT(RL_F32) | BIT(RL_F16) | BIT(RL_F64), B = BIT(RL_BF16), I = BIT(RL_I8) | BIT(RL_I16) | BIT(RL_I32) | BIT(RL_I64),
    U = BIT(RL_U8) | BIT(RL_U16) | BIT(RL_U32) | BIT(RL_U64), L = BIT(RL_BOOL), S = BIT(RL_STRING), I2 = BIT(RL_I32) | BIT(RL_I64),
    U2 = BIT(RL_U32) | BIT(RL_U64), Q = BIT(RL_I8) | BIT(RL_U8), R4 = BIT(RL_F32), R8 = BIT(RL_F64), R2 = BIT(RL_F16), I4 = BIT(RL_I32),
    I8 = BIT(RL_I64), U1 = BIT(RL_U8)
};

const model_row model_rows[] = {
#define GEN(op, since, until, types, recipe, arg) {RL_OP_##op, since, until, types, model_op_##recipe, arg},
#include "model_ops.def"
#undef GEN
};
const uint32_t model_nrow = RL_LEN(model_rows);

/* ---- choices ---- */

uint64_t model_number(model *m) { /* splitmix64 */
    uint64_t z = m->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t model_pick(model *m, uint32_t n) {
    if (n <= 1) return 0;
    if (m->used < MODEL_RECORD) return m->record[m->used++] % n;
    return (uint32_t)(model_number(m) % n);
}

/* What most models are made of; the rest of the table has the other half of the choices. */
static const rl_op common[] = {RL_OP_Transpose, RL_OP_Transpose, RL_OP_Transpose, RL_OP_Transpose, RL_OP_Reshape, RL_OP_Reshape, RL_OP_Add,
    RL_OP_Mul, RL_OP_Relu, RL_OP_Concat, RL_OP_Split, RL_OP_Slice, RL_OP_ReduceMean, RL_OP_ReduceSum, RL_OP_Softmax, RL_OP_MatMul,
    RL_OP_Conv, RL_OP_Gather, RL_OP_Unsqueeze, RL_OP_Squeeze, RL_OP_LayerNormalization, RL_OP_Pad, RL_OP_QuantizeLinear,
    RL_OP_DequantizeLinear, RL_OP_Where, RL_OP_Resize, RL_OP_MaxPool, RL_OP_BatchNormalization, RL_OP_Gemm, RL_OP_Expand, RL_OP_Cast,
    RL_OP_Identity, RL_OP_If, RL_OP_Loop};

static bool runs_here(rl_op op) {
    for (uint32_t i = 0; i < rl_backend_cpu.nkernel; i++) {
        const rl_kernel *k = &rl_backend_cpu.kernel[i];
        if (strcmp(k->type, rl_optable[op].type) == 0 && strcmp(k->domain, rl_optable[op].domain) == 0) return true;
    }
    return false;
}

/* The last row of op that holds for the opset, or NULL. */
static const model_row *row_of(const model *m, rl_op op) {
    const model_row *found = NULL;
    for (uint32_t i = 0; i < model_nrow; i++)
        if (model_rows[i].op == op && m->opset >= model_rows[i].since && m->opset <= model_rows[i].until) found = &model_rows[i];
    return found && !m->foreign && !runs_here(op) ? NULL : found;
}

static const model_row *choose_row(const model *m) {
    uint32_t k = m->record[0] | (uint32_t)(m->record[1] & 0x7f) << 8;
    const model_row *r = NULL;
    if (m->record[1] & 0x80) r = row_of(m, common[k % RL_LEN(common)]);
    for (uint32_t i = 0; !r && i < model_nrow; i++) r = row_of(m, model_rows[(k + i) % model_nrow].op);
    return r;
}

bool model_step(model *m) {
    if (m->at + MODEL_RECORD > m->n || m->nnode >= MODEL_NODES) return false;
    memcpy(m->record, m->p + m->at, MODEL_RECORD);
    m->at += MODEL_RECORD;
    m->used = 2;
    m->state = rl_hash_bytes(m->record, MODEL_RECORD);
    m->nattr = 0;
    const model_row *r = choose_row(m);
    r->make(m, r);
    return true;
}

void model_body_nodes(model *m, uint32_t n) {
    model keep = *m;
    for (m->depth++; n > 0 && m->depth <= DEEPEST && model_step(m); n--) continue;
    memcpy(m->record, keep.record, sizeof keep.record);
    memcpy(m->attr, keep.attr, sizeof keep.attr);
    m->used = keep.used, m->state = keep.state, m->nattr = keep.nattr, m->depth = keep.depth;
}

/* ---- nodes ---- */

rl_str model_name(model *m) {
    return rl_internf(m->ctx, "v%u", m->nname++);
}

static int64_t elements(const rl_ctx *ctx, const rl_valinfo *x) {
    int64_t n = 1;
    for (uint32_t i = 0; i < x->rank; i++) n = rl_mul(n, rl_dim_guess(ctx, x->dim[i], MODEL_GUESS));
    return n;
}

static rl_attr *new_attr(model *m, const char *name, rl_attr_kind kind) {
    rl_attr *a = &m->attr[m->nattr++];
    *a = (rl_attr){.name = rl_internz(m->ctx, name), .kind = kind};
    return a;
}

void model_int(model *m, const char *name, int64_t x) {
    new_attr(m, name, RL_ATTR_INT)->i = x;
}

void model_float(model *m, const char *name, double x) {
    new_attr(m, name, RL_ATTR_FLOAT)->f = (float)x;
}

static rl_span span_of(model *m, const char *s) {
    return (rl_span){rl_copy(&m->ctx->mem, s, strlen(s) + 1), strlen(s)};
}

void model_string(model *m, const char *name, const char *s) {
    new_attr(m, name, RL_ATTR_STRING)->s = span_of(m, s);
}

void model_strings(model *m, const char *name, uint32_t n, const char *const *s) {
    rl_span *p = rl_new(&m->ctx->mem, rl_span, n);
    rl_attr *a = new_attr(m, name, RL_ATTR_STRINGS);
    for (uint32_t i = 0; i < n; i++) p[i] = span_of(m, s[i]);
    a->strings = p;
    a->n = n;
}

void model_list(model *m, const char *name, uint32_t n, const int64_t *x) {
    rl_attr *a = new_attr(m, name, RL_ATTR_INTS);
    a->ints = rl_copy(&m->ctx->mem, x, n * sizeof *x);
    a->n = n;
}

void model_body(model *m, const char *name, rl_graph *body) {
    new_attr(m, name, RL_ATTR_GRAPH)->graph = body;
}

/* What the bodies of n read from around it. */
static void set_captures(model *m, rl_node n) {
    struct { rl_value *p; uint32_t n, cap; } all = {0};
    for (uint32_t i = 0; i < m->nattr; i++) {
        const rl_graph *b = m->attr[i].graph;
        for (uint32_t k = 0; b && k < b->outer.n; k++) {
            rl_value v = rl_graph_find(m->g, rl_val(b, b->outer.p[k])->name);
            bool twice = false;
            for (uint32_t j = 0; j < all.n; j++) twice |= all.p[j].i == v.i;
            if (!twice) rl_push(&m->g->mem, all, v);
        }
    }
    if (all.n) rl_graph_set_captures(m->g, n, all.p, all.n);
}

static bool too_large(const model *m, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nout; i++) {
        const rl_valinfo *x = rl_has(n->out[i]) ? model_val(m, n->out[i]) : NULL;
        if (x && x->rank != RL_NORANK && (x->rank > MODEL_RANK || elements(m->ctx, x) > MODEL_LARGEST)) return true;
    }
    return false;
}

static rl_value add(model *m, rl_op op, const rl_value *in, uint32_t nin, uint32_t nout, bool doubtful) {
    rl_value out[8];
    uint32_t least = op == RL_OP_Loop ? 2 : 0; /* even where it is left out */
    for (uint32_t i = 0; i < nout; i++) out[i] = rl_graph_value(m->g, model_name(m));
    while (nin > least && !rl_has(in[nin - 1])) nin--;
    rl_graph *top = m->g;
    while (top->parent) top = top->parent;
    if (*rl_optable[op].domain) rl_graph_import(top, rl_internz(m->ctx, rl_optable[op].domain), 1);
    m->last = rl_graph_add(m->g, op, rl_internf(m->ctx, "n%u", m->nnode++), nin, in, nout, out);
    rl_graph_set_attrs(m->g, m->last, m->attr, m->nattr);
    set_captures(m, m->last);
    m->nattr = 0;
    rl_status s = rl_shape_node(m->g, m->last);
    must(s == RL_OK || (doubtful && s == RL_EMODEL), "the shape rules accept a valid node", m->ctx);
    if (s == RL_OK && !too_large(m, rl_nod(m->g, m->last))) return out[0];
    rl_graph_remove(m->g, m->last);
    for (uint32_t i = 0; i < nout; i++) rl_val(m->g, out[i])->def = RL_NONODE;
    m->last = RL_NONODE;
    m->nnode--;
    return RL_NOVALUE;
}

rl_value model_add_op(model *m, rl_op op, const rl_value *in, uint32_t nin, uint32_t nout) {
    return add(m, op, in, nin, nout, false);
}

rl_value model_add(model *m, const model_row *r, const rl_value *in, uint32_t nin, uint32_t nout) {
    return add(m, r->op, in, nin, nout, false);
}

rl_value model_try(model *m, const model_row *r, const rl_value *in, uint32_t nin, uint32_t nout) {
    return add(m, r->op, in, nin, nout, true);
}

/* ---- the whole ---- */

static void choose_whole(model *m, model_choices *c) {
    static const char *const targets[] = {"onnx", "generic", "fused", "ort", "ort-cuda", "openvino", "tensorrt"};
    static const char *const objectives[] = {"nodes", "nodes", "bytes", "time"};
    uint8_t h[MODEL_HEADER] = {0};
    memcpy(h, m->p, RL_MIN(m->n, sizeof h));
    m->at = RL_MIN(m->n, sizeof h);
    m->opset = 7 + h[0] % 22u;
    c->target = targets[h[1] % RL_LEN(targets)];
    c->objective = objectives[h[2] % RL_LEN(objectives)];
    m->symbolic = h[3] % 3 == 1;
    m->as_nodes = h[4] % 4 == 1 && m->opset >= 13;
    m->foreign = h[4] % 4 == 2;
    c->outside = h[6] % 16 == 1;
    c->seed = h[7];
    bool old = h[5] % 8 == 1 && m->opset >= 9 && m->opset < 19; /* constants are written as nodes, of any type from opset 9 on */
    m->g->ir_version = old ? 3 : m->opset < 19 ? 8 : RL_TEXT_IR;
    rl_opset o = {rl_internz(m->ctx, ""), m->opset};
    rl_push(&m->g->mem, m->g->opset, o);
}

/* What nothing reads, as far as its type is known: the last first. */
static void choose_outputs(model *m) {
    rl_graph *g = m->g;
    for (uint32_t i = g->nval; i-- > 0 && g->output.n < OUTPUTS;) {
        rl_valinfo *x = &g->val[i];
        bool typed = x->dtype != RL_UNDEF && x->rank != RL_NORANK;
        if (x->def.i == RL_NONE || x->nuse || !typed || rl_nod(g, x->def)->op == RL_OP_Constant) continue;
        x->is_output = true;
        rl_push(&g->mem, g->output, (rl_value){i});
    }
}

rl_graph *model_make(rl_ctx *ctx, const uint8_t *p, size_t n, model_choices *c) {
    model m = {.ctx = ctx, .p = p, .n = n, .last = RL_NONODE};
    m.g = rl_graph_new(ctx);
    choose_whole(&m, c);
    while (model_step(&m)) continue;
    c->constant = m.constant;
    choose_outputs(&m);
    if (!m.g->output.n) {
        rl_value x = model_take(&m, R4, 1, 4, 0);
        model_add_op(&m, RL_OP_Identity, &x, 1, 1);
        choose_outputs(&m);
    }
    return m.g;
}
