/* The evaluator of eval.h: one function per kind of op, found in evals[].  rl_ev_make alone decides whether a result may exist: it
 * checks the inferred type of the output and the limits. */
#include "eval_internal.h"

/* ---- the table ---- */

static const struct { eval_fn *fn; int arg; } evals[RL_NOP] = {
#define ROW(op, ...) [RL_OP_##op] = {__VA_ARGS__}
    ROW(Abs, rl_ev_unary, ABS),
    ROW(Add, rl_ev_binary, ADD),
    ROW(And, rl_ev_binary, AND),
    ROW(Cast, rl_ev_cast, 0),
    ROW(CastLike, rl_ev_cast, 0),
    ROW(Ceil, rl_ev_unary, CEIL),
    ROW(Clip, rl_ev_clip, 0),
    ROW(Concat, rl_ev_concat, 0),
    ROW(ConstantOfShape, rl_ev_fill, 0),
    ROW(Cos, rl_ev_unary, COS),
    ROW(CumSum, rl_ev_cumsum, 0),
    ROW(Div, rl_ev_binary, DIV),
    ROW(Equal, rl_ev_binary, EQ),
    ROW(Erf, rl_ev_unary, ERF),
    ROW(Exp, rl_ev_unary, EXP),
    ROW(Expand, rl_ev_expand, 0),
    ROW(EyeLike, rl_ev_eye, 0),
    ROW(Flatten, rl_ev_view, 0),
    ROW(Floor, rl_ev_unary, FLOOR),
    ROW(Gather, rl_ev_gather, 0),
    ROW(GatherND, rl_ev_gather_nd, 0),
    ROW(Gelu, rl_ev_unary, GELU),
    ROW(Gemm, rl_ev_gemm, 0),
    ROW(Greater, rl_ev_binary, GT),
    ROW(GreaterOrEqual, rl_ev_binary, GE),
    ROW(Identity, rl_ev_view, 0),
    ROW(LayerNormalization, rl_ev_layer_norm, 0),
    ROW(Less, rl_ev_binary, LT),
    ROW(LessOrEqual, rl_ev_binary, LE),
    ROW(Log, rl_ev_unary, LOG),
    ROW(LogSoftmax, rl_ev_softmax, 1),
    ROW(MatMul, rl_ev_matmul, 0),
    ROW(Max, rl_ev_binary, MAX),
    ROW(Min, rl_ev_binary, MIN),
    ROW(Mod, rl_ev_binary, MOD),
    ROW(Mul, rl_ev_binary, MUL),
    ROW(Neg, rl_ev_unary, NEG),
    ROW(Not, rl_ev_unary, NOT),
    ROW(Or, rl_ev_binary, OR),
    ROW(Pad, rl_ev_pad, 0),
    ROW(Pow, rl_ev_binary, POW),
    ROW(Range, rl_ev_range, 0),
    ROW(Reciprocal, rl_ev_unary, RECIPROCAL),
    ROW(ReduceMax, rl_ev_reduce, MOST),
    ROW(ReduceMean, rl_ev_reduce, MEAN),
    ROW(ReduceMin, rl_ev_reduce, LEAST),
    ROW(ReduceProd, rl_ev_reduce, PROD),
    ROW(ReduceSum, rl_ev_reduce, SUM),
    ROW(Relu, rl_ev_unary, RELU),
    ROW(Reshape, rl_ev_view, 0),
    ROW(Round, rl_ev_unary, ROUND),
    ROW(ScatterND, rl_ev_scatter_nd, 0),
    ROW(Sigmoid, rl_ev_unary, SIGMOID),
    ROW(Sign, rl_ev_unary, SIGN),
    ROW(Sin, rl_ev_unary, SIN),
    ROW(Slice, rl_ev_slice, 0),
    ROW(Softmax, rl_ev_softmax, 0),
    ROW(Split, rl_ev_split, 0),
    ROW(Sqrt, rl_ev_unary, SQRT),
    ROW(Squeeze, rl_ev_view, 0),
    ROW(Sub, rl_ev_binary, SUB),
    ROW(Sum, rl_ev_binary, ADD),
    ROW(Tanh, rl_ev_unary, TANH),
    ROW(Tile, rl_ev_tile, 0),
    ROW(Transpose, rl_ev_transpose, 0),
    ROW(Trilu, rl_ev_trilu, 0),
    ROW(Unsqueeze, rl_ev_view, 0),
    ROW(Where, rl_ev_where, 0),
    ROW(Xor, rl_ev_binary, XOR),
    ROW(ms_Gelu, rl_ev_unary, GELU),
#undef ROW
};

static bool reads_constants(const rl_graph *g, const rl_nodeinfo *n) {
    if ((uint32_t)n->op >= RL_OP_OPAQUE || n->ncap || n->nin == 0 || n->nout == 0) return false;
    for (uint32_t i = 0; i < n->nin; i++)
        if (rl_has(n->in[i]) && !rl_eval_constant(g, n->in[i]) && !rl_gives_type(n, i)) return false;
    return true;
}

static bool is_known(const rl_graph *g, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i]) && rl_val(g, n->out[i])->rank == RL_NORANK) return false;
    return evals[n->op].fn != NULL;
}

static const rl_const *close_output(const evaluator *e, const tensor *t) {
    rl_const *c = rl_new(&e->g->mem, rl_const, 1);
    *c = (rl_const){.dtype = t->dtype, .rank = t->rank, .data = t->raw, .nbyte = (size_t)t->n * t->size};
    c->dim = rl_copy(&e->g->mem, t->dim, t->rank * sizeof *t->dim);
    return c;
}

static bool rl_ev_outputs(evaluator *e) {
    const rl_const **made = rl_new(&e->tmp, const rl_const *, e->n->nout);
    for (uint32_t port = 0; port < e->n->nout; port++) {
        tensor out = {0};
        if (!rl_has(e->n->out[port])) continue;
        if (!evals[e->n->op].fn(e, evals[e->n->op].arg, port, &out)) return false;
        made[port] = close_output(e, &out);
    }
    for (uint32_t port = 0; port < e->n->nout; port++)
        if (made[port]) rl_val(e->g, e->n->out[port])->data = made[port];
    return true;
}

static bool has_results(const rl_graph *g, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i]) && !rl_eval_constant(g, n->out[i])) return false;
    return true;
}

bool rl_eval_node(rl_graph *g, rl_node n, rl_eval_limit *limit) {
    if (!reads_constants(g, rl_nod(g, n))) return false;
    if (has_results(g, rl_nod(g, n))) return true; /* shape.c was first */
    if (!is_known(g, rl_nod(g, n))) return false;
    evaluator e = {.g = g, .n = rl_nod(g, n), .limit = limit};
    rl_arena_init(&e.tmp, g->ctx);
    bool ok = rl_ev_spend(&e, 64) && rl_ev_open_inputs(&e) && rl_ev_outputs(&e);
    rl_arena_free(&e.tmp);
    return ok;
}
