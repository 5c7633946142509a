/* shape.h: what is inferred of small graphs, as the text form prints it, and the rule table's holes. */
#include "../../src/shape.h"

#include <stdlib.h>

#include "../../src/shape_internal.h"
#include "../../src/text.h"
#include "check.h"

/* The type of the value called `name`, and its contents where they are known: "i64[2] {N,3}". */
static const char *show(const rl_graph *g, const char *name) {
    rl_text t = {.mem = &g->ctx->mem};
    rl_value v = rl_graph_find(g, rl_internz(g->ctx, name));
    rl_elem e;
    if (!rl_has(v)) return "no such value";
    const rl_valinfo *x = rl_val(g, v);
    rl_put(&t, "%s", rl_dtype_name(x->dtype));
    if (x->rank == RL_NORANK) return t.p;
    rl_put(&t, "[");
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i) rl_put(&t, ",");
        rl_dim_print(&t, g->ctx, x->dim[i]);
    }
    rl_put(&t, "]%s", x->elem ? " {" : "");
    for (uint32_t i = 0; x->elem && i < x->nelem; i++) {
        if (i) rl_put(&t, ",");
        if (!rl_shape_elem(g, v, i, &e)) rl_put(&t, "_");
        else if (e.known) rl_put(&t, "%lld", (long long)e.num);
        else rl_dim_print(&t, g->ctx, e.sym);
        if (e.den > 1) rl_put(&t, "/%lld", (long long)e.den);
    }
    if (x->elem) rl_put(&t, "}%s", x->data ? "" : "?");
    return t.p;
}

/* The graph of the text between "graph t {" and "}"; NULL and a message when it does not read. */
static rl_graph *read_graph(rl_ctx *ctx, const char *body, const char *head) {
    rl_graph *g;
    rl_text t = {.mem = &ctx->mem};
    rl_put(&t, "graph t %s{\n%s\n}\n", head, body);
    return rl_text_parse(ctx, "t", t.p, t.n, &g) == RL_OK ? g : NULL;
}

/* Value %y of the graph with this body is `want`; or reading fails with a message that has `want` in it. */
static void check_at(const char *file, int line, const char *head, const char *body, const char *want) {
    rl_ctx *ctx = rl_ctx_new(0);
    if (!ctx || RL_PROTECT(ctx)) abort();
    rl_graph *g = read_graph(ctx, body, head);
    const char *got = g ? show(g, "y") : ctx->error;
    check_count++;
    if (g ? strcmp(got, want) != 0 : !strstr(got, want)) {
        check_failed++;
        fprintf(stderr, "%s:%d: %s\n  got  %s\n  want %s\n", file, line, body, got, want);
    }
    rl_graph_free(g);
    rl_ctx_free(ctx);
}
#define INFER(body, want) check_at(__FILE__, __LINE__, "opset=18 ", body, want)
#define INFER_OLD(opset, body, want) check_at(__FILE__, __LINE__, "opset=" #opset " ", body, want)

TEST(table) {
    /* Ops of ai.onnx without a rule. */
    for (uint32_t i = 0; i < RL_OP_OPAQUE; i++)
        if (!rl_shape_rules[i].rule && rl_optable[i].domain[0] == 0) CHECK_STR(rl_optable[i].type, "SequenceMap");
    for (uint32_t i = 0; i < RL_OP_OPAQUE; i++)
        if (rl_optable[i].domain[0]) CHECK(rl_shape_rules[i].rule != NULL);
}

TEST(broadcasts) {
    INFER("in %a f32[N,1,4] in %b f32[3,1] %y = Add(%a, %b) out %y", "f32[N,3,4]");
    INFER("in %a f32[N,4] in %b f32[8,4] %y = Add(%a, %b) out %y", "f32[8,4]");
    INFER("in %a f32[N] in %b f32[M] %y = Equal(%a, %b) out %y", "bool['?max(M|N)']");
    INFER("in %a f32[N] in %b f32[M] %p = Add(%b, %a) %q = Mul(%a, %b) %y = Sub(%p, %q) out %y", "f32['?max(M|N)']");
    INFER("in %a f32[N] in %b f32[M] %p = Add(%b, %a) %y = Sub(%b, %p) out %y", "f32['?max(M|N)']");
    INFER("in %a f32[?9] in %b f32[?10] %y = Equal(%b, %a) out %y", "bool['?max(?9|?10)']");
    INFER("in %a f32[2,3] in %b f32[4] %y = Add(%a, %b) out %y", "node 'y' (Add): input 1 has dim 0 = 4, wants 3 or 1");
    INFER("in %c bool[N,1] in %a f16[1,4] in %b f16[] %y = Where(%c, %a, %b) out %y", "f16[N,4]");
    /* A table of positions cut to the length at hand, and added. */
    INFER("in %x f32[N,S,8] const %t f32[512,8] seed=1 const %z i64[1] {0} const %one i64[1] {1}\n"
          "%s = Shape(%x) start=1 end=2 %c = Slice(%t, %z, %s, %z) %y = Add(%x, %c) out %y", "f32[N,S,8]");
}

TEST(reshapes) {
    INFER("in %x f32[N,3,H,W] const %s i64[2] {0,-1} %y = Reshape(%x, %s) out %y", "f32[N,3*H*W]");
    INFER("in %x f32[N,12,S] const %s i64[4] {0,3,4,-1} %y = Reshape(%x, %s) out %y", "f32[N,3,4,S]");
    INFER("in %x f32[N,12] const %s i64[2] {-1,6} %y = Reshape(%x, %s) out %y", "f32[2*N,6]");
    INFER("in %x f32[N,S,12] %p = Shape(%x) const %i i64[] {1} %n = Gather(%p, %i) const %z i64[1] {0} %u = Unsqueeze(%n, %z)\n"
          "const %m i64[1] {-1} const %k i64[1] {4} %s = Concat(%m, %u, %k) axis=0 %y = Reshape(%x, %s) out %y", "f32[3*N,S,4]");
    INFER("in %x f32[2,3] const %s i64[2] {4,-1} %y = Reshape(%x, %s) out %y", "has 6 elements, which 4 does not divide");
    INFER("in %x f32[0,3] const %s i64[2] {3,0} %y = Reshape(%x, %s) allowzero=1 out %y", "f32[3,0]");
    INFER("in %x f32[6] in %s i64[2] %y = Reshape(%x, %s) out %y", "f32[?0,?1]");
    INFER("in %x f32[6] in %s i64[K] %y = Reshape(%x, %s) out %y", "f32");
    INFER("in %x f32[6,4] in %k i64[1] const %a i64[1] {8} %s = Concat(%a, %k) axis=0 %y = Reshape(%x, %s) out %y", "f32[8,3]");
    INFER("in %x f32[N,2,3,4] %y = Flatten(%x) axis=-2 out %y", "f32[2*N,12]");
    INFER("in %x f32[A,B,C] %y = Transpose(%x) perm=[1,0] out %y", "node 'y' (Transpose): perm has 2 elements, wants 3");
    INFER("in %x f32[A,B,C] %y = Transpose(%x) out %y", "f32[C,B,A]");
}

TEST(axes) {
    INFER("in %x f32[A,1,B] const %a i64[1] {-2} %y = Squeeze(%x, %a) out %y", "f32[A,B]");
    INFER_OLD(11, "in %x f32[A,1,B] %y = Squeeze(%x) axes=[1] out %y", "f32[A,B]");
    INFER("in %x f32[A,3,B] const %a i64[1] {1} %y = Squeeze(%x, %a) out %y", "dim 1 is 3, wants 1");
    INFER("in %x f32[A,1,B] %y = Squeeze(%x) out %y", "f32");
    INFER("in %x f32[A,B] const %a i64[2] {-1,0} %y = Unsqueeze(%x, %a) out %y", "f32[1,A,B,1]");
    INFER("in %x f32[A,B] %y = ReduceMean(%x) out %y", "f32[1,1]");
    INFER("in %x f32[A,B] %y = ReduceMean(%x) noop_with_empty_axes=1 out %y", "f32[A,B]");
    INFER_OLD(17, "in %x f32[A,B,C] %y = ReduceMean(%x) axes=[-1] keepdims=0 out %y", "f32[A,B]");
    INFER("in %x f32[A,B] %y = ArgMax(%x) axis=1 keepdims=0 out %y", "i64[A]");
    INFER("in %x f32[A,B] %y = Softmax(%x) axis=1 out %y", "f32[A,B]");
    INFER("in %x f32[N,7,5] const %k i64[1] {3} %v, %y = TopK(%x, %k) axis=1 out %v, %y", "i64[N,3,5]");
    INFER("in %a f32[2,A] in %b f32[2,B] %y = Concat(%a, %b) axis=-1 out %y", "f32[2,A+B]");
    INFER("in %a f32[2,A] in %b f32[3,B] %y = Concat(%a, %b) axis=1 out %y", "input 1 has dim 0 = 3, wants 2");
    INFER("in %x f32[N,10] %a, %b, %y = Split(%x) axis=1 num_outputs=3 out %a, %b, %y", "f32[N,2]");
    INFER("in %x f32[4*N] %a, %y = Split(%x) num_outputs=2 out %a, %y", "f32[2*N]");
    INFER("in %x f32[2,3] const %i i64[2,2] {0,1,1,0} %y = Gather(%x, %i) axis=1 out %y", "f32[2,2,2]");
    INFER("in %x f32[2,3] %y = Concat(%x) axis=2 out %y", "axis 2 is out of range for rank 2");
}

TEST(slices) {
#define CUT(x, from, to, step)                                                                                       \
    "in %x " x " const %s i64[1] {" from "} const %e i64[1] {" to "} const %a i64[1] {-1} const %k i64[1] {" step "}\n" \
    "%y = Slice(%x, %s, %e, %a, %k) out %y"
    INFER(CUT("f32[2,10]", "1", "-2", "2"), "f32[2,4]");
    INFER(CUT("f32[2,10]", "-1", "-9223372036854775807", "-3"), "f32[2,4]");
    INFER(CUT("f32[2,10]", "20", "30", "1"), "f32[2,0]");
    INFER(CUT("f32[2,N]", "1", "9223372036854775807", "1"), "f32[2,N-1]");
    INFER(CUT("f32[2,N]", "0", "-1", "1"), "f32[2,N-1]");
    INFER(CUT("f32[2,N]", "0", "1", "1"), "f32[2,1]");
    INFER(CUT("f32[2,N]", "-1", "9223372036854775807", "1"), "f32[2,1]");
    INFER(CUT("f32[2,N]", "0", "5", "1"), "f32[2,'?min(5|N)']");
    INFER("in %x f32[2,N] const %five i64[1] {5} const %s i64[1] {0} const %a i64[1] {1}\n"
          "%n = Shape(%x) start=1 %e = Min(%n, %five) %y = Slice(%x, %s, %e, %a) out %y", "f32[2,'?min(5|N)']");
    INFER(CUT("f32[2,N]", "0", "9223372036854775807", "2"), "f32[2,floor((N+1)/2)]");
    INFER(CUT("f32[2,N]", "-1", "-9223372036854775807", "-1"), "f32[2,N]");
    INFER(CUT("f32[2,4]", "0", "4", "0"), "step of axis 1 is 0");
}

TEST(windows) {
    INFER("in %x f32[N,3,H,W] const %w f32[8,3,3,3] seed=1 %y = Conv(%x, %w) strides=[2,2] pads=[1,1,1,1] out %y",
          "f32[N,8,floor((H+1)/2),floor((W+1)/2)]");
    INFER("in %x f32[N,3,H,W] const %w f32[8,3,3,3] seed=1 %y = Conv(%x, %w) pads=[1,1,1,1] out %y", "f32[N,8,H,W]");
    INFER("in %x f32[1,3,224,224] const %w f32[64,3,7,7] seed=1 %y = Conv(%x, %w) strides=[2,2] pads=[3,3,3,3] out %y",
          "f32[1,64,112,112]");
    INFER("in %x f32[1,3,9] const %w f32[4,3,3,3] seed=1 %y = Conv(%x, %w) out %y", "node 'y' (Conv): input 1 has rank 4, wants 3");
    INFER("in %x f32[1,4,9,9] const %w f32[4,3,3,3] seed=1 %y = Conv(%x, %w) out %y", "input 0 has 4 channels, wants 3");
    INFER("in %x f32[1,6,9,9] const %w f32[4,3,3,3] seed=1 %y = Conv(%x, %w) group=2 auto_pad=\"SAME_UPPER\" strides=[2,2] out %y",
          "f32[1,4,5,5]");
    INFER("in %x f32[N,4,H,7] const %w f32[4,2,2,2] seed=1 %y = ConvTranspose(%x, %w) strides=[2,2] out %y", "f32[N,2,2*H,14]");
    INFER("in %x f32[N,4,H,7] const %w f32[4,2,1,3] seed=1 %y = ConvTranspose(%x, %w) auto_pad=\"SAME_UPPER\" strides=[1,3] out %y", "f32[N,2,H,21]");
    INFER("in %x f32[N,4,7] const %w f32[4,2,1] seed=1 %y = ConvTranspose(%x, %w) auto_pad=\"SAME_UPPER\" strides=[2] out %y", "f32[N,2,?0]");
    INFER("in %x f32[N,4,112,112] %y = MaxPool(%x) kernel_shape=[3,3] strides=[2,2] ceil_mode=1 out %y", "f32[N,4,56,56]");
    INFER("in %x f32[N,4,H,W] %y = GlobalAveragePool(%x) out %y", "f32[N,4,1,1]");
}

TEST(matrices) {
    INFER("in %a f32[N,1,S,8] in %b f32[3,8,T] %y = MatMul(%a, %b) out %y", "f32[N,3,S,T]");
    INFER("in %a f32[N,8] in %b f32[7,3] %y = MatMul(%a, %b) out %y", "node 'y' (MatMul): inputs 0 and 1 have 8 and 7 to sum over");
    INFER("in %a f32[8] in %b f32[8] %y = MatMul(%a, %b) out %y", "f32[]");
    INFER("in %a f32[8,N] in %b f32[5,8] %y = Gemm(%a, %b) transA=1 transB=1 out %y", "f32[N,5]");
    INFER("in %a f32[B,H,S,D] in %b f32[B,H,T,D] %y = Einsum(%a, %b) equation=\"bhsd,bhtd->bhst\" out %y", "f32[B,H,S,T]");
    INFER("in %a f32[5,N,K] in %b f32[K,M] %y = Einsum(%a, %b) equation=\"...ik, kj\" out %y", "f32[5,N,M]");
}

TEST(contents) {
    INFER("in %x f32[N,3,H,W] %y = Shape(%x) out %y", "i64[4] {N,3,H,W}?");
    INFER("in %x f32[N,3,H,W] %y = Shape(%x) start=-2 out %y", "i64[2] {H,W}?");
    INFER("in %x f32[N,3,H,W] %y = Size(%x) out %y", "i64[] {3*H*N*W}?");
    INFER("in %x f32[2,3] %y = Shape(%x) out %y", "i64[2] {2,3}");
#define SIZES "in %x f32[N,H] %p = Shape(%x) const %i i64[1] {1} const %two i64[1] {2} %h = Gather(%p, %i)\n"
    INFER(SIZES "%y = Mul(%h, %two) out %y", "i64[1] {2*H}?");
    INFER(SIZES "%q = Neg(%h) %y = Sub(%q, %two) out %y", "i64[1] {-H-2}?");
    INFER(SIZES "%q = Sub(%two, %h) %y = Add(%q, %h) out %y", "i64[1] {2}");
    INFER(SIZES "%y = Div(%h, %two) out %y", "i64[1] {floor(H/2)}?");
    INFER(SIZES "%q = Mul(%h, %two) %y = Mod(%q, %two) out %y", "i64[1] {0}");
    INFER(SIZES "%f = Cast(%h) to=1 const %k f32[1] {0.5} %m = Mul(%f, %k) %g = Floor(%m) %y = Cast(%g) to=7 out %y",
          "i64[1] {floor(H/2)}?");
    INFER(SIZES "%f = Cast(%h) to=1 const %k f32[1] {0.5} %y = Mul(%f, %k) out %y", "f32[1] {H/2}?");
    INFER(SIZES "const %m i64[1] {-1} %y = Equal(%h, %m) out %y", "bool[1] {0}");
    INFER(SIZES "const %m i64[2] {-1,-1} %e = Equal(%p, %m) const %k i64[2] {1,1} %y = Where(%e, %k, %p) out %y", "i64[2] {N,H}?");
    INFER(SIZES "%y = ReduceProd(%p) keepdims=0 out %y", "i64[] {H*N}?");
    INFER(SIZES "%y = Max(%h, %i) out %y", "i64[1] {H}?");
    INFER(SIZES "%y = Min(%h, %i) out %y", "i64[1] {1}");
    INFER(SIZES "%a, %y = Split(%p) num_outputs=2 out %a, %y", "i64[1] {H}?");
    INFER(SIZES "%y = Expand(%h, %two) out %y", "i64[2] {H,H}?");
    INFER("in %x f32[4*N,2] in %z f32[N] %s = Shape(%x) end=1 %t = Shape(%z) %d = Div(%s, %t) const %o i64[1] {1} %v = Concat(%o, %d) axis=0 "
          "const %i i64[1] {-2} const %n i64[] {3} %y = OneHot(%i, %n, %v) out %y", "i64[1,3] {1,4,1}");
    INFER("const %s i64[1] {3} %y = ConstantOfShape(%s) value=i64[1]{7} out %y", "i64[3] {7,7,7}");
    INFER("const %a i64[] {5} const %b i64[] {0} const %d i64[] {-2} %y = Range(%a, %b, %d) out %y", "i64[3] {5,3,1}");
    INFER("in %x f32[N] %s = Shape(%x) const %z i64[1] {0} %n = Squeeze(%s, %z) const %a i64[] {0} const %d i64[] {1}\n"
          "%y = Range(%a, %n, %d) out %y", "i64[N]");
    INFER("in %x f32[N] const %d i64[] {-1} const %z i64[1] {0} %s = Shape(%x) %n = Squeeze(%s, %z) %m = Neg(%n) %y = Range(%n, %m, %d) out %y", "i64[2*N]");
    INFER("in %x f32[N] const %a i64[] {-1} const %d i64[] {-1} const %z i64[1] {0} %s = Shape(%x) %n = Squeeze(%s, %z) %y = Range(%n, %a, %d) out %y",
          "i64[N+1]");
    INFER("in %x f32[N] const %d i64[] {1} const %z i64[1] {0} %s = Shape(%x) %n = Squeeze(%s, %z) %m = Neg(%n) %y = Range(%n, %m, %d) out %y", "i64[?0]");
    INFER("in %x f32[N,2] %s = Shape(%x) %k = ConstantOfShape(%s) value=i64[1]{1} %y = NonZero(%k) out %y", "i64[2,2*N]");
    INFER("const %a i32[2] {2147483647,1} const %b i32[2] {1,1} %y = Add(%a, %b) out %y", "i32[2] {_,2}?");
    INFER("const %a i64[] {-7} const %b i64[] {2} %y = Div(%a, %b) out %y", "i64[] {-3}");
    INFER("const %a i64[] {-7} const %b i64[] {2} %y = Mod(%a, %b) out %y", "i64[] {1}");
    INFER("const %a i64[2,3] {1,2,3,4,5,6} %y = Transpose(%a) out %y", "i64[3,2] {1,4,2,5,3,6}");
    INFER("const %a i64[6] {1,2,3,4,5,6} const %s i64[1] {-1} const %e i64[1] {-9} const %x i64[1] {0} const %k i64[1] {-2}\n"
          "%y = Slice(%a, %s, %e, %x, %k) out %y", "i64[3] {6,4,2}");
}

TEST(bodies) {
    INFER("in %c bool[] in %x f32[N,4] %y = If(%c) then_branch=graph { %t = Relu(%^x) out %t }\n"
          "else_branch=graph { %e = Neg(%^x) out %e } out %y", "f32[N,4]");
    INFER("in %x f32[2,4] const %c bool[] {1} %y = If(%c) then_branch=graph { %t = Relu(%^x) out %t }\n"
          "else_branch=graph { const %a i64[1] {0} %e = Squeeze(%^x, %a) out %e } out %y", "f32[2,4]");
    INFER("in %m i64[] in %c bool[] in %x f32[N,4] %z, %y = Loop(%m, %c, %x) body=graph { in %i i64[] in %k bool[] in %v f32[A,B]\n"
          "%k2 = Identity(%k) %w = Relu(%v) %s = Neg(%w) out %k2, %w, %s } out %z, %y", "f32[?0,N,4]");
    INFER("in %m i64[] in %c bool[] in %x f32[1,4] %y = Loop(%m, %c, %x) body=graph { in %i i64[] in %k bool[] in %v f32[...]\n"
          "%k2 = Identity(%k) %w = Concat(%v, %^x) axis=0 out %k2, %w } out %y", "f32[?1,4]");
}

/* What is declared fills what no rule can tell, and gives way where one can. */
TEST(declared) {
    INFER("in %x f32[6] in %s i64[2] %y f32[2,3] = Reshape(%x, %s) out %y", "f32[2,3]");
    INFER("in %x f32[6] in %s i64[2] %y f32[B,3] = Reshape(%x, %s) out %y", "f32[B,3]");
    INFER("in %x f32[6,4] %y f32[5,4] = Relu(%x) out %y", "f32[6,4]");
    INFER("in %x f32[6,4] %y f32[5,4] = com.acme::Thing(%x) out %y", "f32[5,4]");
    INFER("in %x f32[N,4] %y f32[5,4] = NonZero(%x) out %y", "i64[2,4]");
}

TEST(microsoft) {
#define MS(body, want) check_at(__FILE__, __LINE__, "opset=18 opset.com.microsoft=1 ", body, want)
    MS("in %x f32[N,4,8] in %k f32[N,4,8] in %w f32[8] %a, _, _, %y = com.microsoft::SkipLayerNormalization(%x, %k, %w) out %a, %y", "f32[N,4,8]");
    MS("in %a f32[N,8,3] in %b f32[N,8,5] %y = com.microsoft::FusedMatMul(%a, %b) transA=1 out %y", "f32[N,3,5]");
    MS("in %x u4[7,32] in %i i64[N,2] in %s f32[7,1] %y = com.microsoft::GatherBlockQuantized(%x, %i, %s) block_size=32 gather_axis=0 quantize_axis=1 out %y", "f32[N,2,32]");
    MS("in %x f32[N,4] in %w u8[16,2,8] in %s f32[32] %y = com.microsoft::MatMulNBits(%x, %w, %s) N=16 K=4 out %y", "f32[N,16]");
}

/* A contradiction is an error, but not where a size that the model only declares may be to blame. */
TEST(lenient) {
    INFER("in %x f32[4] in %z f32[3] %y = Add(%x, %z) out %y", "node 'y' (Add)");
    INFER("in %x f32[4] in %z f32[3] %t f32[4] = com.acme::Thing(%x) %y = Add(%t, %z) out %y", "f32[3]");
    INFER("in %x f32[N,4] in %z f32[3] %n i64[2,4] = NonZero(%x) %c = Cast(%n) to=1 %y f32[2,3] = Add(%c, %z) out %y", "f32[2,3]");
    INFER("in %c bool[] in %x f32[4] %y = If(%c) then_branch=graph { const %z f32[3] {1,2,3} %t = Add(%^x, %z) out %t }\n"
          "else_branch=graph { %e = Neg(%^x) out %e } out %y", "undef");
}

/* Inferring again changes nothing. */
TEST(again) {
    CHECK_CTX(ctx)
    rl_graph *g = read_graph(ctx, "in %x f32[N,4] %n = NonZero(%x) %u, %i, %j, %k = Unique(%x) %t = Transpose(%n) %y = Concat(%t, %t) axis=0\n"
                                  "out %y, %u, %k", "");
    CHECK(g != NULL);
    if (!g) return;
    const char *n = show(g, "y"), *u = show(g, "u"), *k = show(g, "k");
    CHECK(rl_shape_infer(g) == RL_OK);
    CHECK_STR(show(g, "y"), n);
    CHECK_STR(show(g, "u"), u);
    CHECK_STR(show(g, "k"), k);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(table);
    RUN(broadcasts);
    RUN(reshapes);
    RUN(axes);
    RUN(slices);
    RUN(windows);
    RUN(matrices);
    RUN(contents);
    RUN(bodies);
    RUN(declared);
    RUN(microsoft);
    RUN(lenient);
    RUN(again);
    return check_done();
}
