/* runtime/check.h: what --check finds, and what it says of models that cannot be run. */
#include "../../runtime/check.h"

#include "../../src/text.h"
#include "check.h"

typedef struct { rl_ctx *ctx; const char *original, *result; } pair;

static rl_status original(void *user, rl_graph **g) {
    const pair *p = user;
    return rl_text_parse(p->ctx, "original", p->original, strlen(p->original), g);
}

static rl_status result(void *user, rl_graph **g) {
    const pair *p = user;
    return rl_text_parse(p->ctx, "result", p->result, strlen(p->result), g);
}

/* "0 what was done", or the status and the message. */
static void try(const char *a, const char *b, const char *want) {
    CHECK_CTX(ctx)
    pair p = {ctx, a, b};
    rl_text out = {.mem = &ctx->mem};
    char got[1200];
    const rl_runopt run = {.rtol = 1e-4, .atol = 1e-6, .corners = true};
    rl_status s = rl_check_result(ctx, &(rl_checked){original, result, &p, &run}, &out);
    snprintf(got, sizeof got, "%d %s", (int)s, s == RL_OK ? out.p : ctx->error);
    got[strcspn(got, "\n")] = 0;
    CHECK_STR(got, want);
    rl_ctx_free(ctx);
}

#define H "graph opset=21 {\n in %x f32[N,M]\n"

TEST(same) {
    try(H "%y = Relu(%x)\n out %y\n}\n", H "%y = Relu(%x)\n out %y\n}\n", "0 same outputs in 3 runs");
    try("graph opset=21 {\n out %y\n const %y f32[1] {1}\n}\n", "graph opset=21 {\n out %y\n const %y f32[1] {1}\n}\n", "0 same outputs in 3 runs");
}

/* Equal where both symbols are the same number. */
TEST(symbols) {
    try(H "%y = Transpose(%x) perm=[1,0]\n out %y\n}\n", H "%y = Identity(%x)\n out %y\n}\n",
        "6 not written: the result differs from the original: output 'y': another type or shape");
}

TEST(numbers) {
    try(H "%y = Relu(%x)\n out %y\n}\n", H "%y = Abs(%x)\n out %y\n}\n",
        "6 not written: the result differs from the original: output 'y': element [0,0] is 0 and 0.401877493");
    /* Alike for all finite numbers. */
    try(H "const %z f32[] {0}\n%m = Mul(%x, %z)\n%y = Add(%m, %z)\n out %y\n}\n", H "%i = IsNaN(%x)\n%f = Cast(%i) to=1\nconst %z f32[] {0}\n%y = Mul(%f, %z)\n out %y\n}\n",
        "6 not written: the result differs from the original: output 'y': element [0,0] is nan and 0");
}

TEST(refused) {
    try("graph opset=21 opset.com.acme=1 {\n in %x f32[2]\n%y = com.acme::Thing(%x)\n out %y\n}\n", H "%y = Relu(%x)\n out %y\n}\n",
        "5 not checked, and not written: the original cannot be run here: node #0 (Thing): no cpu kernel for com.acme::Thing-1");
    try(H "%y = Relu(%x)\n out %y\n}\n", "graph opset=21 opset.com.acme=1 {\n in %x f32[N,M]\n%y = com.acme::Thing(%x)\n out %y\n}\n", 
        "6 not written: the original runs, the result does not: node #0 (Thing): no cpu kernel for com.acme::Thing-1");
}

/* Sizes of 2 and 3 do not fit, 1 does; windows need large ones; none does; and a size made of infinity, where the model stops. */
TEST(sizes) {
    const char *fixed = H "const %s i64[2] {1,1}\n%y = Reshape(%x, %s)\n out %y\n}\n";
    try(fixed, fixed, "0 same outputs in 3 runs");
    const char *strided = "graph opset=21 {\n in %x f32[N,T,3]\n%t = Transpose(%x) perm=[0,2,1]\n%y = AveragePool(%t) kernel_shape=[9] strides=[4]\n out %y\n}\n";
    try(strided, strided, "0 same outputs in 3 runs");
    const char *first = "graph opset=21 {\n in %x f32[N,3]\nconst %s i64[2] {-1,500}\n%y = Reshape(%x, %s)\n out %y\n}\n";
    try(first, first, "5 not checked, and not written: the original cannot be run here: node #0 (Reshape): 576 elements do not fit the shape");
    const char *made = "graph opset=21 {\n in %x f32[5]\n%a = Abs(%x)\n%c = Cast(%a) to=7\n%y = ConstantOfShape(%c)\n out %y\n}\n";
    try(made, made, "0 same outputs in 2 runs; with corner values the original stops");
}

/* A stride leaves nothing of 2 and of 1, and a Reshape before opset 14 has no size 0 to write: no reason to keep the result. */
TEST(empty) {
    try("graph opset=13 {\n in %x f32[1,H,W]\n%p = MaxPool(%x) kernel_shape=[8] strides=[8]\n%y = Relu(%p)\n out %y\n}\n",
        "graph opset=13 {\n in %x f32[1,H,W]\n%p = MaxPool(%x) kernel_shape=[8] strides=[8]\n%s = Shape(%p)\nconst %r i64[3] {2,0,1}\n%o = Gather(%s, %r)\n"
        "%q = Reshape(%p, %o)\n%z = Reshape(%q, %s)\n%y = Relu(%z)\n out %y\n}\n",
        "0 same outputs in 3 runs");
}

/* Numbers that pick rows are of rows that are there. */
TEST(rows) {
    const char *one = "graph opset=21 {\n in %x i64[1,50]\nconst %w f32[1,3] {1,2,3}\n%c = Cast(%x) to=6\n%u = Squeeze(%c)\n%y = Gather(%w, %u)\n out %y\n}\n";
    try(one, one, "0 same outputs in 3 runs");
}

int main(void) {
    RUN(same);
    RUN(symbols);
    RUN(numbers);
    RUN(refused);
    RUN(sizes);
    RUN(empty);
    RUN(rows);
    return check_done();
}
