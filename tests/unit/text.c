/* text.h: what is printed reads as the same text; canonical text; messages; broken input. */
#include "../../src/text.h"

#include "../../src/layout.h"
#include "check.h"

static const char *print(const rl_graph *g, bool canonical) {
    rl_text t = {.mem = &g->ctx->mem};
    rl_text_print(g, canonical, &t);
    return t.p;
}

/* The text read and printed; the message where it does not read. */
static const char *again(rl_ctx *ctx, const char *s, bool canonical) {
    rl_graph *g;
    if (rl_text_parse(ctx, "t", s, strlen(s), &g) != RL_OK) return ctx->error;
    const char *out = print(g, canonical);
    rl_graph_free(g);
    return out;
}

#define H "graph opset=21 {\n"

/* Texts in the printer's own form. */
static const char *const fixpoints[] = {
    H "}\n",
    "graph g opset=17 opset.com.acme=2 opset.\"we ird\"=1 ir=8 {\n}\n",
    "graph \"a b\" opset=21 {\n}\n",
    H "  in %x f32[1,3,H,2*W+1]\n  in %c bool[]\n  in %u undef[2]\n  in %r f32[...]\n  in %n\n  out %x\n}\n",
    H "  in %x f32[2,3]\n  %y f32[2,3] = Add(%x, %x) @name=\"my node\" axis=1\n  out %y, %x\n}\n",
    H "  in %\"a b\" f32[2]\n  in %/m/conv.1::w:0 f32[2]\n"
      "  %\"q\\\"\\\\\\n\\x01\" f32[2] = Relu(%\"a b\")\n  out %\"q\\\"\\\\\\n\\x01\"\n}\n",
    H "  in %x f32[2]\n  %~0 f32[2] = Relu(%x)\n  %~1 f32[2] = Relu(%~0)\n  out %~1\n}\n",
    H "  in %x f32[2]\n  _, %y f32[2], _ = Thing(_, %x, _)\n  () = Relu(%x)\n  out %y\n}\n",
    H "  in %x f32[2]\n  %y f32[2] = Relu(%x) a=-1 b=0.5 c=1.0 d=-inf e=1e+10 f=nan g=[] h=[1,-2] i=[0.5,1.0] j=[\"a\",\"\\x00\"] "
      "k=floats[] l=strings[] m=\"\" n=hex\"00ff\" o=i64[2]{1,2} p=f32[]{1.5} \"q r\"=3\n  out %y\n}\n",
    H "  const %a f32[3] {1.5,-0,1e+20}\n  const %b i8[2,1] {-128,127}\n  const %c bool[2] {1,0}\n  const %d f16[2] {0.099976,65504}\n"
      "  const %e bf16[2] {1,-2.5}\n  const %f f64[1] {0.1}\n  const %g u64[1] {18446744073709551615}\n  const %h i4[3] hex\"21f0\"\n"
      "  const %i f8e5m2[2] hex\"3c00\"\n  const %j string[2] external\n  const %k f32[1000] external\n  const %l f32[0] {}\n"
      "  const %m f32[1] hex\"0100c07f\"\n  const %n i64[1] {-9223372036854775808}\n  const %o c64[1] hex\"0000803f00000040\"\n}\n",
    H "  const %a f32[65] seed=1\n  const %b i64[10,10] seed=18446744073709551615\n  const %c bool[65] seed=5\n  const %d f16[99] seed=0\n"
      "  const %e u2[65] seed=77\n  const %f f8e8m0[65] seed=8\n  const %g c128[65] seed=9\n  const %h u8[65] seed=10\n"
      "  const %i bf16[65] seed=11\n  const %j f64[65] seed=12\n}\n",
    H "  in %x f32[2,32,5,6]@acdb\n  %y f32[2,32,5,6]@aBcd16b = Move(%x)\n  %z f32[2,32,5,6]@\"a(bc)de->bacde c=4\" = Move(%y)\n  out %z\n}\n",
    "graph opset=21 opset.com.acme=1 {\n  in %x f32[?0,'a b',floor((H+1)/2)]@cab\n  %y f32[?1,?0] = com.acme::Thing(%x)\n  out %y\n}\n",
    H "  in %c bool[]\n  in %x f32[2]\n  %y f32[2] = If(%c) else_branch=graph e {\n    %t f32[2] = If(%^c) then_branch=graph {\n"
      "      in %i i64[]\n      %u f32[2] = Relu(%^x)\n      out %u\n    }\n    out %t\n  } then_branch=graph {\n"
      "    %v f32[2] = Relu(%^x)\n    out %v\n  }\n  out %y\n}\n",
    H "  in %x f32[2]\n  const %x f32[2] {1,2}\n  out %x\n}\n",
};

TEST(fixpoint) {
    CHECK_CTX(ctx)
    for (size_t i = 0; i < RL_LEN(fixpoints); i++) {
        CHECK_STR(again(ctx, fixpoints[i], false), fixpoints[i]);
        const char *canon = again(ctx, fixpoints[i], true);
        CHECK_STR(again(ctx, canon, true), canon);
    }
    rl_ctx_free(ctx);
}

TEST(canonical) {
    CHECK_CTX(ctx)
    const char *a = "graph a { in %x f32[2] const %w f32[2] {1,2} const %k f32[2] {3,4}\n"
                    "%p f32[2] = Add(%x, %k) @name=\"n\"  %q f32[2] = Add(%x, %w) b=1 a=2\n %r f32[2] = Add(%q, %p) out %r }";
    const char *b = "graph b ir=7 { in %in f32[2] const %c1 f32[2] {3,4} const %c0 f32[2] {1,2} # other names and places\n"
                    "%b f32[2] = Add(%in, %c0) a=2 b=1 %a f32[2] = Add(%in, %c1) %c f32[2] = Add(%b, %a) out %c }";
    const char *want = "graph opset=21 {\n  in %0 f32[2]\n  const %1 f32[2] {1,2}\n  const %2 f32[2] {3,4}\n"
                       "  %3 f32[2] = Add(%0, %1) a=2 b=1\n  %4 f32[2] = Add(%0, %2)\n  %5 f32[2] = Add(%3, %4)\n  out %5\n}\n";
    CHECK_STR(again(ctx, a, true), want);
    CHECK_STR(again(ctx, b, true), want);
    const char *loop = "graph { in %x f32[?7] %y f32[?9] = Foo(%x) body=graph { in %i i64[] %z f32[?7] = Add(%^x, %i) out %z } out %y }";
    CHECK_STR(again(ctx, loop, true), "graph opset=21 {\n  in %0 f32[?0]\n  %1 f32[?1] = Foo(%0) body=graph {\n    in %2 i64[]\n"
                                      "    %3 f32[?0] = Add(%^0, %2)\n    out %3\n  }\n  out %1\n}\n");
    rl_ctx_free(ctx);
}

TEST(reading) {
    CHECK_CTX(ctx)
    rl_graph *g;
    const char *s = "graph { %y f32[2] = Relu(%t) %t f32[2] = Relu(%x) in %x f32[2] const %w f32[3] {0} out %y }";
    CHECK(rl_text_parse(ctx, "t", s, strlen(s), &g) == RL_OK);
    CHECK(g->order.p[0].i == 1 && rl_nod(g, g->order.p[1])->op == RL_OP_Relu && rl_nod(g, g->order.p[0])->since == 21);
    const float *w = rl_val(g, rl_graph_find(g, rl_internz(ctx, "w")))->data->data;
    CHECK(w[0] == 0 && w[2] == 0);
    CHECK(rl_val(g, g->output.p[0])->is_output && rl_val(g, g->input.p[0])->is_input);
    rl_graph_free(g);
    s = "graph { in %x f32[4,6,8,10] %y f32[4,6,8,10]@nhwc = Move(%x) out %y }";
    CHECK(rl_text_parse(ctx, "t", s, strlen(s), &g) == RL_OK);
    CHECK(rl_nod(g, g->order.p[0])->op == RL_OP_MOVE && rl_val(g, g->output.p[0])->layout->axis[1] == 2);
    rl_graph_free(g);
    s = "graph { in %c bool[] in %x f32[2] %y = Foo(%c) b=graph { %t = Foo(%^c) b=graph { %u = Relu(%^x) out %u } out %t } out %y }";
    CHECK(rl_text_parse(ctx, "t", s, strlen(s), &g) == RL_OK);
    const rl_nodeinfo *n = rl_nod(g, g->order.p[0]);
    CHECK(n->ncap == 2 && n->attr[0].graph->outer.n == 2 && n->attr[0].graph->parent == g);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

TEST(errors) {
    CHECK_CTX(ctx)
    static const char *const cases[][2] = {
        {"graph {\n  in %x f32[2]\n  %y = Relu(%x\n}", "t:4:1: ')' is wanted here\n}\n^"},
        {"graph {\n  out %y }", "t:2:7: %y is not defined\n  out %y }\n      ^"},
        {"graph { in %x f33[2] }", "t:1:15: this is no element type\ngraph { in %x f33[2] }\n              ^"},
        {"graph { in %x f32[2,] }", "t:1:21: a dim is wanted here\ngraph { in %x f32[2,] }\n                    ^"},
        {"graph { in %x in %x }", "t:1:18: %x is defined twice\ngraph { in %x in %x }\n                 ^"},
        {"graph { in %x %y, %y = A(%x) }", "t:1:19: %y is defined twice\ngraph { in %x %y, %y = A(%x) }\n                  ^"},
        {"graph { const %x f32[2] {1,2,3} }",
         "t:1:25: there are more or fewer elements than the type has\ngraph { const %x f32[2] {1,2,3} }\n                        ^"},
        {"graph { const %x i8[1] {128} }",
         "t:1:25: this number does not fit the element type\ngraph { const %x i8[1] {128} }\n                        ^"},
        {"graph { const %x f32[N] {1} }",
         "t:1:15: a constant needs dims that are numbers\ngraph { const %x f32[N] {1} }\n              ^"},
        {"graph { in %x f32[2,3]@acb }",
         "t:1:24: a layout has one letter for each dim\ngraph { in %x f32[2,3]@acb }\n                       ^"},
        {"graph { in %x %y = A(%x) a=1 a=2 }", "t:1:30: this attribute stands twice\ngraph { in %x %y = A(%x) a=1 a=2 }\n                             ^"},
        {"graph { %y = A(%^x) }", "t:1:16: no graph around this one has a value %x\ngraph { %y = A(%^x) }\n               ^"},
        {"graph { %x = A(%y) %y = A(%x) }",
         "t:1:32: node '' (A): is on a cycle: an input depends on its own output\ngraph { %x = A(%y) %y = A(%x) }\n                               ^"},
        {"graph { in %x %c = A(%x, %c) out %c }",
         "t:1:38: node '' (A): is on a cycle: an input depends on its own output\ngraph { in %x %c = A(%x, %c) out %c }\n                                     ^"},
        {"graph { } x", "t:1:11: nothing but comments may follow the graph\ngraph { } x\n          ^"},
        {"", "t:1:1: graph is wanted here\n\n^"},
    };
    for (size_t i = 0; i < RL_LEN(cases); i++) CHECK_STR(again(ctx, cases[i][0], false), cases[i][1]);
    rl_ctx_free(ctx);
}

/* Every prefix, and every byte replaced, either reads or gives a message. */
TEST(broken) {
    static const char odd[] = {'"', '[', '%', '}', '\'', 0, '@', '9', '(', '^'};
    CHECK_CTX(ctx)
    for (size_t i = 0; i < RL_LEN(fixpoints); i++) {
        size_t n = strlen(fixpoints[i]);
        char *s = rl_copy(&ctx->mem, fixpoints[i], n + 1);
        for (size_t k = 0; k < n; k++) {
            rl_graph *g;
            if (rl_text_parse(ctx, "t", s, k, &g) == RL_OK) rl_graph_free(g);
            for (size_t j = 0; j < sizeof odd && k % 3 == 0; j++) {
                char old = s[k];
                s[k] = odd[j];
                if (rl_text_parse(ctx, "t", s, n, &g) == RL_OK) {
                    (void)print(g, true);
                    rl_graph_free(g);
                }
                s[k] = old;
            }
        }
    }
    char deep[8000];
    size_t n = 0;
    for (int i = 0; i < 300; i++) n += (size_t)snprintf(deep + n, sizeof deep - n, "graph{%%a=A()b=");
    CHECK(strstr(again(ctx, deep, false), "nested too deep"));
    rl_ctx_free(ctx);
}

static rl_status limited(rl_ctx *ctx, const char *s) {
    rl_graph *g;
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    RL_TRY(rl_text_parse(ctx, "t", s, strlen(s), &g));
    (void)print(g, true);
    rl_graph_free(g);
    return RL_OK;
}

/* With ever more memory, reading and printing fails cleanly until it works. */
TEST(memory) {
    rl_status st = RL_ENOMEM;
    size_t limit = 1, tries = 0;
    for (; st != RL_OK && limit < 10000000; limit += limit / 40 + 16, tries++) {
        rl_ctx *ctx = rl_ctx_new(limit);
        st = limited(ctx, fixpoints[RL_LEN(fixpoints) - 2]);
        CHECK(st == RL_OK || st == RL_ENOMEM);
        rl_ctx_free(ctx);
    }
    CHECK(st == RL_OK && tries > 3);
}

TEST(halves) {
    for (uint32_t h = 0; h < 65536; h++) {
        float f = rl_half_float((uint16_t)h), b = rl_bf16_float((uint16_t)h);
        if (f == f) CHECK(rl_float_half(f) == h);
        if (b == b) CHECK(rl_float_bf16(b) == h);
    }
    CHECK(rl_float_half(65520.0f) == 0x7c00 && rl_float_half(65519.0f) == 0x7bff && rl_float_half(0x1p-25f) == 0);
    CHECK(rl_float_half(0x1.004p0f) == 0x3c01 && rl_float_half(0x1.002p0f) == 0x3c00);
}

int main(void) {
    RUN(fixpoint);
    RUN(canonical);
    RUN(reading);
    RUN(errors);
    RUN(broken);
    RUN(memory);
    RUN(halves);
    return check_done();
}
