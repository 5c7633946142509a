/* runtime/sizes.h: the sizes that are found for graphs whose inputs leave them open. */
#include "../../runtime/sizes.h"

#include <stdlib.h>

#include "../../src/text.h"
#include "check.h"

/* "N=1 H=8", of the graph between the braces; fixed: "N=5", or NULL. */
static void try(const char *body, const char *fixed, const char *want) {
    CHECK_CTX(ctx)
    rl_text t = {.mem = &ctx->mem}, got = {.mem = &ctx->mem};
    rl_graph *g = NULL;
    rl_put(&t, "graph opset=21 {\n%s\n}\n", body);
    if (rl_text_parse(ctx, "t", t.p, t.n, &g) != RL_OK) rl_put(&got, "%s", ctx->error), g = rl_graph_new(ctx);
    rl_sizes s = rl_sizes_of(g, &g->mem);
    for (uint32_t i = 0; fixed && i < s.n; i++) {
        size_t n = strlen(s.name[i]);
        if (strncmp(fixed, s.name[i], n) != 0 || fixed[n] != '=') continue;
        rl_sizes_set(&s, i, (uint32_t)strtoul(fixed + n + 1, NULL, 10));
        s.fixed[i] = true;
    }
    rl_sizes_fit(g, &s);
    for (uint32_t i = 0; i < s.n; i++) rl_put(&got, "%s%s=%u", i ? " " : "", s.name[i], rl_sizes_get(&s, i));
    CHECK_STR(got.n ? got.p : "", want);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

/* Ones, where nothing asks for more; no symbol; a dim that is 0 whatever they are. */
TEST(ones) {
    try("in %x f32[N,C]\n%y = Relu(%x)\nout %y", NULL, "N=1 C=1");
    try("in %x f32[2,3]\n%y = Relu(%x)\nout %y", NULL, "");
    try("in %x f32[0,N]\n%y = Relu(%x)\nout %y", NULL, "N=1");
}

/* What windows need, and no more of a batch; a height of which the model makes 1. */
TEST(windows) {
    try("in %x f32[N,3,H,W]\n%y = MaxPool(%x) kernel_shape=[2,2] strides=[2,2]\nout %y", NULL, "N=1 H=2 W=2");
    try("in %x f32[N,3,H,W]\nconst %a i64[1] {2}\n%p = MaxPool(%x) kernel_shape=[20,1] strides=[20,1]\n%y = Squeeze(%p, %a)\nout %y", NULL, "N=1 H=24 W=1");
    try("in %x f32[N,1,T]\n%y = AveragePool(%x) kernel_shape=[400] strides=[160]\nout %y", NULL, "N=1 T=400");
}

/* Halved twice, and back: only a multiple of 4 fits what is joined; one that is given stays. */
TEST(joined) {
    const char *net = "in %x f32[1,2,H]\nconst %s f32[3] {1,1,2}\n%a = MaxPool(%x) kernel_shape=[2] strides=[2]\n%b = MaxPool(%a) kernel_shape=[2] strides=[2]\n"
                      "%c = Resize(%b, _, %s)\n%d = Concat(%a, %c) axis=1\n%e = Resize(%d, _, %s)\n%y = Concat(%x, %e) axis=1\nout %y";
    try(net, NULL, "H=4");
    try(net, "H=6", "H=6");
}

/* Operands that broadcast; the sum of two others; elements that a view has to keep. */
TEST(others) {
    try("in %x f32[N,4]\nin %z f32[M,4]\n%y = Add(%x, %z)\nout %y", "N=5", "N=5 M=1");
    try("in %x f32[N,4]\nin %z f32[M,4]\n%y = Concat(%x, %z) axis=1\nout %y", "N=5", "N=5 M=5");
    try("in %p f32[P,4]\nin %x f32[S,4]\nin %z f32[T,8]\n%k = Concat(%p, %x) axis=0\n%y = Concat(%k, %z) axis=1\nout %y", "P=7", "P=7 S=1 T=8");
    try("in %x f32[N,6]\nconst %s i64[2] {-1,16}\n%y = Reshape(%x, %s)\nout %y", NULL, "N=8");
}

/* In a body, too. */
TEST(bodies) {
    try("in %c bool[]\nin %x f32[1,1,T]\n%y = If(%c) then_branch=graph a {\n%p = MaxPool(%^x) kernel_shape=[5]\nout %p\n} else_branch=graph b {\n%q = Relu(%^x)\nout %q\n}\nout %y", NULL, "T=5");
}

int main(void) {
    RUN(ones);
    RUN(windows);
    RUN(joined);
    RUN(others);
    RUN(bodies);
    return check_done();
}
