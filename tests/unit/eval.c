/* eval.h: each op once or twice on constants written as text, the limits, and what is left alone.
 * tests/python/test_eval.py compares with the ONNX backend suite. */
#include "../../src/eval.h"

#include <stdlib.h>

#include "../../passes/pass.h"
#include "../../src/text.h"
#include "check.h"

static double number(const rl_const *c, size_t i) {
    union { float f; double d; int8_t i8; uint8_t u8; int16_t i16; uint16_t u16; int32_t i32; int64_t i64; } x = {0};
    size_t size = rl_dtype_bits(c->dtype) / 8;
    memcpy(&x, (const char *)c->data + i * size, size);
    switch (c->dtype) {
    case RL_F32: return (double)x.f;
    case RL_F64: return x.d;
    case RL_I8: return x.i8;
    case RL_BOOL: case RL_U8: return x.u8;
    case RL_I16: return x.i16;
    case RL_I32: return x.i32;
    case RL_I64: return (double)x.i64;
    default: return x.u16;
    }
}

/* "f32[2,2] {1,2,3,4}", or "unknown". */
static const char *show(const rl_graph *g, const char *name) {
    rl_text t = {.mem = &g->ctx->mem};
    const rl_const *c = rl_eval_constant(g, rl_graph_find(g, rl_internz(g->ctx, name)));
    if (!c) return "unknown";
    rl_put(&t, "%s[", rl_dtype_name(c->dtype));
    for (uint32_t i = 0; i < c->rank; i++) rl_put(&t, "%s%lld", i ? "," : "", (long long)c->dim[i]);
    rl_put(&t, "] {");
    for (size_t i = 0; i * (rl_dtype_bits(c->dtype) / 8) < c->nbyte; i++) rl_put(&t, "%s%.7g", i ? "," : "", number(c, i));
    rl_put(&t, "}");
    return t.p;
}

/* Evaluates all nodes; what shape inference computed is forgotten first. */
static void evaluate(rl_graph *g, rl_eval_limit limit) {
    for (uint32_t v = 0; v < g->nval; v++)
        if (g->val[v].def.i != RL_NONE && rl_nod(g, g->val[v].def)->op != RL_OP_Constant) g->val[v].data = NULL;
    for (uint32_t k = 0; k < g->order.n; k++) rl_eval_node(g, g->order.p[k], &limit);
}

static void check_at(const char *file, int line, int opset, rl_eval_limit limit, const char *body, const char *want) {
    rl_ctx *ctx = rl_ctx_new(0);
    if (!ctx || RL_PROTECT(ctx)) abort();
    rl_graph *g = NULL;
    rl_text t = {.mem = &ctx->mem};
    rl_put(&t, "graph t opset=%d {\n%s out %%y\n}\n", opset, body);
    const char *got = ctx->error;
    if (rl_text_parse(ctx, "t", t.p, t.n, &g) == RL_OK) {
        evaluate(g, limit);
        got = show(g, "y");
    }
    check_count++;
    if (strcmp(got, want) != 0) {
        check_failed++;
        fprintf(stderr, "%s:%d: %s\n  got  %s\n  want %s\n", file, line, body, got, want);
    }
    rl_graph_free(g);
    rl_ctx_free(ctx);
}
#define EVAL_AT(opset, body, want) check_at(__FILE__, __LINE__, opset, (rl_eval_limit)RL_EVAL_LIMIT, body, want)
#define EVAL(body, want) EVAL_AT(20, body, want)
#define A "const %a f32[2,3] {1,2,3,4,5,6} "
#define I "const %i i64[2,3] {1,2,3,4,5,6} "

TEST(moves) {
    EVAL(A "%y = Identity(%a)", "f32[2,3] {1,2,3,4,5,6}");
    EVAL(A "%y = Transpose(%a)", "f32[3,2] {1,4,2,5,3,6}");
    EVAL("const %a u8[1,2,3] {1,2,3,4,5,6} %y = Transpose(%a) perm=[2,0,1]", "u8[3,1,2] {1,4,2,5,3,6}");
    EVAL(A "const %s i64[2] {3,-1} %y = Reshape(%a, %s)", "f32[3,2] {1,2,3,4,5,6}");
    EVAL(A "%y = Flatten(%a) axis=0", "f32[1,6] {1,2,3,4,5,6}");
    EVAL("const %a bool[1,2,1] {1,0} const %s i64[1] {0} %y = Squeeze(%a, %s)", "bool[2,1] {1,0}");
    EVAL(A "const %s i64[2] {0,-1} %y = Unsqueeze(%a, %s)", "f32[1,2,3,1] {1,2,3,4,5,6}");
    EVAL("const %a i32[2,1] {1,2} const %s i64[3] {2,1,2} %y = Expand(%a, %s)", "i32[2,2,2] {1,1,2,2,1,1,2,2}");
    EVAL(A "%y = Concat(%a, %a) axis=-1", "f32[2,6] {1,2,3,1,2,3,4,5,6,4,5,6}");
    EVAL(A "const %s i64[2] {2,1} const %z i64[1] {-1} %p, %y = Split(%a, %s) axis=1", "f32[2,1] {3,6}");
    EVAL(A "%p, %y = Split(%a) axis=0 num_outputs=2", "f32[1,3] {4,5,6}");
    EVAL(A "const %k i64[2] {-1,0} %y = Gather(%a, %k) axis=1", "f32[2,2] {3,1,6,4}");
    EVAL(A "const %k i64[] {1} %y = Gather(%a, %k)", "f32[3] {4,5,6}");
    EVAL(A "const %k i64[1] {2} %y = Gather(%a, %k)", "unknown");
    EVAL("const %a i8[2,1] {1,2} const %r i64[2] {1,3} %y = Tile(%a, %r)", "i8[2,3] {1,1,1,2,2,2}");
    EVAL(A "const %u i64[] {1} %y = Trilu(%a, %u)", "f32[2,3] {0,2,3,0,0,6}");
    EVAL(A "%y = Trilu(%a) upper=0", "f32[2,3] {1,0,0,4,5,0}");
    EVAL("const %s i64[2] {1,2} %y = ConstantOfShape(%s) value=i16[1]{7}", "i16[1,2] {7,7}");
    EVAL("const %c bool[2,1] {1,0} const %b f32[] {9} " A "%y = Where(%c, %a, %b)", "f32[2,3] {1,2,3,9,9,9}");
    EVAL(A "const %k i64[3,1] {1,0,-1} %y = GatherND(%a, %k)", "f32[3,3] {4,5,6,1,2,3,4,5,6}");
    EVAL(A "const %k i64[2,2] {-1,0,0,2} %y = GatherND(%a, %k)", "f32[2] {4,3}");
    EVAL(A "const %k i64[2,2,1] {0,2,1,-1} %y = GatherND(%a, %k) batch_dims=1", "f32[2,2] {1,3,5,6}");
    EVAL(A "const %k i64[2,1] {2,0} %y = GatherND(%a, %k) batch_dims=1", "f32[2] {3,4}");
    EVAL(A "const %k i64[2,1] {1,0} const %u f32[2,3] {7,7,7,8,8,8} %y = ScatterND(%a, %k, %u)", "f32[2,3] {8,8,8,7,7,7}");
    EVAL(A "const %k i64[1,2] {-1,1} const %u f32[1] {7} %y = ScatterND(%a, %k, %u)", "f32[2,3] {1,2,3,4,7,6}");
    EVAL(A "%y = EyeLike(%a) k=1 dtype=7", "i64[2,3] {0,1,0,0,0,1}");
}

TEST(slices) {
    EVAL(A "const %s i64[1] {1} const %e i64[1] {99} const %x i64[1] {1} %y = Slice(%a, %s, %e, %x)", "f32[2,2] {2,3,5,6}");
    EVAL(A "const %s i64[2] {-1,-1} const %e i64[2] {-99,-4} const %x i64[2] {0,1} const %t i64[2] {-1,-2} %y = Slice(%a, %s, %e, %x, %t)",
         "f32[2,2] {6,4,3,1}");
    EVAL(A "const %s i64[1] {2} const %e i64[1] {1} %y = Slice(%a, %s, %e)", "f32[0,3] {}");
    EVAL_AT(9, A "%y = Slice(%a) starts=[1] ends=[2] axes=[1]", "f32[2,1] {2,5}");
    EVAL(A "const %p i64[4] {0,1,1,-1} const %v f32[] {9} %y = Pad(%a, %p, %v)", "f32[3,3] {9,1,2,9,4,5,9,9,9}");
    EVAL_AT(10, A "%y = Pad(%a) pads=[0,0,0,1] value=2.0", "f32[2,4] {1,2,3,2,4,5,6,2}");
    EVAL(A "const %p i64[2] {1,0} const %x i64[1] {-1} %y = Pad(%a, %p, _, %x)", "f32[2,4] {0,1,2,3,0,4,5,6}");
    EVAL(A "const %p i64[4] {0,1,0,0} %y = Pad(%a, %p) mode=\"edge\"", "unknown");
}

TEST(casts) {
    EVAL("const %a f32[3] {1.5,-2.5,0} %y = Cast(%a) to=7", "i64[3] {1,-2,0}");
    EVAL("const %a f32[3] {1.5,-2.5,0} %y = Cast(%a) to=9", "bool[3] {1,1,0}");
    EVAL("const %a f32[1] {-2.5} %y = Cast(%a) to=2", "unknown"); /* machines disagree */
    EVAL("const %a f32[1] {3e9} %y = Cast(%a) to=6", "unknown");
    EVAL("const %a i64[2] {300,-1} %y = Cast(%a) to=2", "u8[2] {44,255}");
    EVAL("const %a i64[1] {16777217} %y = Cast(%a) to=1", "f32[1] {1.677722e+07}");
    EVAL("const %a f16[2] {1,2} %y = Cast(%a) to=10", "f16[2] {15360,16384}");
    EVAL("const %a f16[2] {1,2} %y = Cast(%a) to=1", "unknown");
}

TEST(unary) {
    EVAL("const %a f32[2] {-1,4} %y = Neg(%a)", "f32[2] {1,-4}");
    EVAL("const %a i8[2] {-128,4} %y = Abs(%a)", "i8[2] {-128,4}");
    EVAL("const %a f32[2] {1,4} %y = Sqrt(%a)", "f32[2] {1,2}");
    EVAL("const %a f32[2] {0,1} %y = Exp(%a)", "f32[2] {1,2.718282}");
    EVAL("const %a f64[2] {1,10} %y = Log(%a)", "f64[2] {0,2.302585}");
    EVAL("const %a f32[2] {0,1} %y = Erf(%a)", "f32[2] {0,0.8427008}");
    EVAL("const %a f32[2] {0,1} %y = Tanh(%a)", "f32[2] {0,0.7615942}");
    EVAL("const %a f32[2] {0,1} %y = Sigmoid(%a)", "f32[2] {0.5,0.7310586}");
    EVAL("const %a f32[2] {-3,1} %y = Relu(%a)", "f32[2] {0,1}");
    EVAL("const %a f32[2] {4,-2} %y = Reciprocal(%a)", "f32[2] {0.25,-0.5}");
    EVAL("const %a f32[2] {0,1} %y = Sin(%a)", "f32[2] {0,0.841471}");
    EVAL("const %a f32[2] {0,1} %y = Cos(%a)", "f32[2] {1,0.5403023}");
    EVAL("const %a f32[2] {-1.5,1.5} %y = Floor(%a)", "f32[2] {-2,1}");
    EVAL("const %a f32[2] {-1.5,1.5} %y = Ceil(%a)", "f32[2] {-1,2}");
    EVAL("const %a f32[2] {0.5,1.5} %y = Round(%a)", "f32[2] {0,2}");
    EVAL("const %a bool[2] {0,1} %y = Not(%a)", "bool[2] {1,0}");
    EVAL("const %a f32[2] {-1,1} %y = Gelu(%a)", "f32[2] {-0.1586553,0.8413448}");
    EVAL("const %a f32[2] {-1,1} %y = Gelu(%a) approximate=\"tanh\"", "f32[2] {-0.158808,0.841192}");
    EVAL("const %a f32[4] {-1,1,5,2} const %l f32[] {0} const %h f32[] {3} %y = Clip(%a, %l, %h)", "f32[4] {0,1,3,2}");
    EVAL("const %a i32[3] {-1,1,5} const %h i32[] {3} %y = Clip(%a, _, %h)", "i32[3] {-1,1,3}");
    EVAL_AT(10, "const %a f32[3] {-1,1,5} %y = Clip(%a) min=0.0", "f32[3] {0,1,5}");
}

TEST(binary) {
    EVAL(A "const %b f32[2,1] {10,20} %y = Add(%a, %b)", "f32[2,3] {11,12,13,24,25,26}");
    EVAL(A "const %b f32[] {1} %y = Sub(%b, %a)", "f32[2,3] {0,-1,-2,-3,-4,-5}");
    EVAL("const %a f32[1] {16777216} const %b f32[1] {1} %p = Add(%a, %b) %y = Sub(%p, %a)", "f32[1] {0}");
    EVAL(I "const %b i64[] {2} %y = Mul(%i, %b)", "i64[2,3] {2,4,6,8,10,12}");
    EVAL("const %a i32[1] {2147483647} const %b i32[1] {2} %y = Mul(%a, %b)", "i32[1] {-2}");
    EVAL("const %a i64[2] {-7,7} const %b i64[] {2} %y = Div(%a, %b)", "i64[2] {-3,3}");
    EVAL("const %a i64[1] {7} const %b i64[] {0} %y = Div(%a, %b)", "unknown");
    EVAL("const %a i64[2] {-7,7} const %b i64[] {3} %y = Mod(%a, %b)", "i64[2] {2,1}");
    EVAL("const %a f32[2] {-7,7} const %b f32[] {3} %y = Mod(%a, %b) fmod=1", "f32[2] {-1,1}");
    EVAL("const %a f32[2] {3,4} const %b i64[] {2} %y = Pow(%a, %b)", "f32[2] {9,16}");
    EVAL("const %a i64[2] {-3,2} const %b i64[] {3} %y = Pow(%a, %b)", "i64[2] {-27,8}");
    EVAL("const %a f32[2] {1,5} const %b f32[1] {3} const %c f32[] {4} %y = Max(%a, %b, %c)", "f32[2] {4,5}");
    EVAL("const %a i64[2] {1,5} const %b i64[1] {3} %y = Min(%a, %b)", "i64[2] {1,3}");
    EVAL(I "const %b i64[] {3} %y = Equal(%i, %b)", "bool[2,3] {0,0,1,0,0,0}");
    EVAL(A "const %b f32[] {3} %y = Less(%a, %b)", "bool[2,3] {1,1,0,0,0,0}");
    EVAL(A "const %b f32[] {3} %y = Greater(%a, %b)", "bool[2,3] {0,0,0,1,1,1}");
    EVAL(A "const %b f32[] {3} %y = LessOrEqual(%a, %b)", "bool[2,3] {1,1,1,0,0,0}");
    EVAL(A "const %b f32[] {3} %y = GreaterOrEqual(%a, %b)", "bool[2,3] {0,0,1,1,1,1}");
    EVAL("const %a bool[2] {0,1} const %b bool[2,1] {0,1} %y = And(%a, %b)", "bool[2,2] {0,0,0,1}");
    EVAL("const %a bool[2] {0,1} const %b bool[2,1] {0,1} %y = Or(%a, %b)", "bool[2,2] {0,1,1,1}");
    EVAL("const %a bool[2] {0,1} const %b bool[2,1] {0,1} %y = Xor(%a, %b)", "bool[2,2] {0,1,1,0}");
}

TEST(series) {
    EVAL("const %a i64[] {5} const %b i64[] {0} const %d i64[] {-2} %y = Range(%a, %b, %d)", "i64[3] {5,3,1}");
    EVAL("const %a f32[] {0} const %b f32[] {3} const %d f32[] {1} %y = Range(%a, %b, %d)", "f32[3] {0,1,2}");
    EVAL("const %a f32[] {0} const %b f32[] {1} const %d f32[] {0.1} %y = Range(%a, %b, %d)", "unknown"); /* runtimes disagree */
    EVAL(A "const %x i64[] {1} %y = CumSum(%a, %x)", "f32[2,3] {1,3,6,4,9,15}");
    EVAL(I "const %x i64[] {0} %y = CumSum(%i, %x) reverse=1 exclusive=1", "i64[2,3] {4,5,6,0,0,0}");
}

TEST(sums) {
    EVAL(A "const %x i64[1] {1} %y = ReduceSum(%a, %x)", "f32[2,1] {6,15}");
    EVAL(A "%y = ReduceSum(%a) keepdims=0", "f32[] {21}");
    EVAL(A "%y = ReduceSum(%a) noop_with_empty_axes=1", "f32[2,3] {1,2,3,4,5,6}");
    EVAL(A "const %x i64[1] {-2} %y = ReduceMean(%a, %x) keepdims=0", "f32[3] {2.5,3.5,4.5}");
    EVAL_AT(13, A "%y = ReduceMean(%a) axes=[1]", "f32[2,1] {2,5}");
    EVAL(I "%y = ReduceMax(%i)", "i64[1,1] {6}");
    EVAL(A "const %x i64[1] {0} %y = ReduceMin(%a, %x)", "f32[1,3] {1,2,3}");
    EVAL(I "const %x i64[1] {0} %y = ReduceProd(%i, %x)", "i64[1,3] {4,10,18}");
    EVAL("const %a f32[2,2] {0,0,1,1} %y = Softmax(%a) axis=0", "f32[2,2] {0.2689414,0.2689414,0.7310586,0.7310586}");
    EVAL_AT(11, "const %a f32[2,2] {0,0,0,0} %y = Softmax(%a) axis=0", "f32[2,2] {0.25,0.25,0.25,0.25}");
    EVAL("const %a f32[1,2] {0,1} %y = LogSoftmax(%a)", "f32[1,2] {-1.313262,-0.3132617}");
    EVAL("const %a f32[2,2] {0,2,1,5} const %s f32[2] {1,2} const %b f32[2] {0,1} %y = LayerNormalization(%a, %s, %b) epsilon=0.0",
         "f32[2,2] {-1,3,-1,3}");
    EVAL(A "%b = Transpose(%a) %y = MatMul(%a, %b)", "f32[2,2] {14,32,32,77}");
    EVAL(I "const %v i64[3] {1,0,1} %y = MatMul(%i, %v)", "i64[2] {4,10}");
    EVAL("const %a f32[2,1,2] {1,2,3,4} const %b f32[2,2] {1,0,0,2} %y = MatMul(%a, %b)", "f32[2,1,2] {1,4,3,8}");
    EVAL(A "const %c f32[2] {1,2} %y = Gemm(%a, %a, %c) transB=1 alpha=2.0 beta=10.0", "f32[2,2] {38,84,74,174}");
    EVAL(A "%y = Gemm(%a, %a) transA=1", "f32[3,3] {17,22,27,22,29,36,27,36,45}");
}

TEST(left_alone) {
    EVAL("in %x f32[2,3] " A "%y = Add(%a, %x)", "unknown");
    EVAL(A "%y = Dropout(%a)", "unknown");
    EVAL(A "%y = RandomNormalLike(%a)", "unknown");
    EVAL("const %a f32[0,3] {} %y = Transpose(%a)", "f32[3,0] {}");
    rl_eval_limit small = {.one = 24, .grown = 8, .all = 1 << 20, .work = 1000};
    const char *up = "const %a i64[1] {7} const %s i64[1] {2} %y = Expand(%a, %s)";
    check_at(__FILE__, __LINE__, 20, small, A "%y = Transpose(%a)", "f32[3,2] {1,4,2,5,3,6}");
    check_at(__FILE__, __LINE__, 20, small, up, "i64[2] {7,7}");
    small.one = 8;
    check_at(__FILE__, __LINE__, 20, small, up, "unknown");
    small.one = 24, small.work = 70;
    check_at(__FILE__, __LINE__, 20, small, A "%y = Transpose(%a)", "unknown");
    small.work = 1000, small.all = 23;
    check_at(__FILE__, __LINE__, 20, small, A "%y = Transpose(%a)", "unknown");
    small.all = 100;
    check_at(__FILE__, __LINE__, 20, small, "const %a f32[1] {7} const %s i64[1] {5} %y = Expand(%a, %s)", "unknown"); /* grown */
}

/* After pass fold: the initializers that are read, and the nodes. */
static void check_fold(const char *file, int line, const char *body, const char *want) {
    rl_ctx *ctx = rl_ctx_new(0);
    if (!ctx || RL_PROTECT(ctx)) abort();
    rl_graph *g = NULL;
    rl_text t = {.mem = &ctx->mem}, got = {.mem = &ctx->mem};
    rl_outcome outcome;
    rl_passopt o = {.target = "generic", .verify_each = true};
    rl_put(&t, "graph t opset=20 {\n%s out %%y\n}\n", body);
    rl_put(&got, "%s", "");
    if (rl_text_parse(ctx, "t", t.p, t.n, &g) != RL_OK || rl_run_passes(g, "fold", &o, &outcome) != RL_OK) rl_put(&got, "%s", ctx->error);
    for (uint32_t i = 0; g && i < g->init.n; i++) rl_put(&got, "%s ", rl_val(g, g->init.p[i])->name);
    for (uint32_t k = 0; g && k < g->order.n; k++) rl_put(&got, "%s ", rl_nod(g, g->order.p[k])->type);
    check_count++;
    if (strcmp(got.p, want) != 0) {
        check_failed++;
        fprintf(stderr, "%s:%d: %s\n  got  %s\n  want %s\n", file, line, body, got.p, want);
    }
    rl_graph_free(g);
    rl_ctx_free(ctx);
}
#define FOLD(body, want) check_fold(__FILE__, __LINE__, body, want)

TEST(cones) {
    /* Nothing moves: all stays. */
    FOLD("in %x f32[4096] const %w f32[4096] seed=1 %a = Exp(%w) %b = Sigmoid(%a) %y = Add(%x, %b)", "w Exp Sigmoid Add ");
    /* A Transpose of what is computed goes, and what follows it; what both read stays. */
    FOLD("in %x f32[2,3] const %w f32[3,2] seed=1 %a = Exp(%w) %b = Transpose(%a) %c = Neg(%b) %y = Add(%x, %c)", "c Add ");
    FOLD("in %x f32[2,3] in %z f32[3,2] const %w f32[3,2] seed=1 %a = Exp(%w) %b = Transpose(%a) %p = Add(%x, %b) %q = Add(%z, %a)"
         " %r = Reshape(%q, %s) %y = Add(%p, %r) const %s i64[2] {2,3}", "w s b Exp Add Add Reshape Add ");
    /* One that moves nothing is left. */
    FOLD("in %x f32[3,1] const %w f32[1,3] {1,2,3} %a = Exp(%w) %b = Transpose(%a) %y = Add(%x, %b)", "w Exp Transpose Add ");
    /* A graph output must stay what a node makes. */
    FOLD("in %x f32[2,3] const %w f32[3,2] seed=1 %a = Exp(%w) %b = Transpose(%a) out %b %y = Add(%x, %b)", "w Exp Transpose Add ");
    /* As large as what pays for it; twice is too much. */
    FOLD("in %x f32[64,512] const %w f32[512,64] seed=1 %a = Exp(%w) %b = Transpose(%a) %y = Add(%x, %b)", "b Add ");
    FOLD("in %x f32[64,512] const %w f32[512,64] seed=1 %a = Exp(%w) %b = Transpose(%a) %c = Sin(%b) %p = Add(%x, %b) %y = Mul(%p, %c)",
         "w Exp Transpose Sin Add Mul ");
    FOLD("in %x f32[64,512] const %w f32[512,1] seed=1 const %v f32[512,64] seed=1 %a = Expand(%w, %s) %b = Transpose(%a) %y = Add(%x, %b)"
         " const %s i64[2] {512,64}", "w v s Expand Transpose Add ");
}

int main(void) {
    RUN(cones);
    RUN(moves);
    RUN(slices);
    RUN(casts);
    RUN(unary);
    RUN(binary);
    RUN(series);
    RUN(sums);
    RUN(left_alone);
    return check_done();
}
