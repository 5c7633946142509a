/* passes/prove.c: a bound that the checker cannot decide within its limit is left out, and the others stay. */
#include "../../passes/pass.h"
#include "../../src/shape.h"
#include "../../src/text.h"
#include "check.h"

/* Two components: one conversion between %a and %p; and of %x, which four outputs want in three orders. */
static const char model[] = "graph t opset=20 {\n"
                            "  in %a f32[2,3,4]\n"
                            "  in %x f32[2,3,4,5]\n"
                            "  %b = Relu(%a)\n"
                            "  %p = Transpose(%b) perm=[0,2,1]\n"
                            "  %y = Relu(%x)\n"
                            "  %z = Sigmoid(%y)\n"
                            "  %s = Add(%y, %z)\n"
                            "  %q0 = Transpose(%z) perm=[0,2,3,1]\n"
                            "  %q1 = Transpose(%s) perm=[0,2,3,1]\n"
                            "  %q2 = Transpose(%s) perm=[3,2,1,0]\n"
                            "  %q3 = Tanh(%y)\n"
                            "  out %p\n  out %q0\n  out %q1\n  out %q2\n  out %q3\n}\n";

static rl_status assign_and_prove(rl_pass_run *r, void *seconds) {
    rl_passopt checked = *r->opt;
    checked.time_limit = *(double *)seconds; /* of the checker: it counts what it does, and takes no time for it */
    RL_TRY(rl_pass_legal(r));
    RL_TRY(rl_pass_assign(r));
    r->opt = &checked;
    return rl_pass_prove(r);
}

static void prove_in(double seconds, rl_proof *proof) {
    CHECK_CTX(ctx)
    rl_graph *g = NULL;
    rl_outcome out = {0};
    const rl_passopt o = {.target = "onnx"};
    bool done = rl_text_parse(ctx, "t", model, sizeof model - 1, &g) == RL_OK && rl_shape_infer(g) == RL_OK &&
                rl_run_job(g, &o, &out, assign_and_prove, &seconds) == RL_OK;
    if (!done) fprintf(stderr, "%s\n", ctx->error);
    CHECK(done);
    rl_graph_free(g);
    rl_ctx_free(ctx);
    *proof = out.proof;
}

TEST(undecided) {
    rl_proof all, x;
    prove_in(1, &all);
    bool some = false;
    CHECK(all.checked && all.count == 3 && all.bound == 3);
    for (double s = 1e-3; s > 1e-10; s /= 1.5) {
        prove_in(s, &x);
        CHECK(x.checked && x.count == 3);
        CHECK(x.bound >= 0 && x.bound <= 3);
        some |= x.bound > 0 && x.bound < 3;
    }
    CHECK(some);
}

int main(void) {
    RUN(undecided);
    return check_done();
}
