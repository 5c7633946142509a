/* passes/prove.c: where the checker cannot decide a bound within its limit, a lower one that was known before is proved; where there is none,
 * the component is left out, and the others stay. */
#include "../../passes/pass.h"
#include "../../passes/prove_order.h"
#include "../../src/shape.h"
#include "../../src/text.h"
#include "check.h"
#include <string.h>

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

/* One component of 4 conversions, of which three of the atoms show 2, and fixed ops 1. */
static const char deep[] = "graph t opset=20 {\n"
                           "  in %x f32[2,3,4,5]\n"
                           "  %y = Relu(%x)\n"
                           "  %z = Sigmoid(%y)\n"
                           "  %s = Add(%y, %z)\n"
                           "  %t = Mul(%s, %z)\n"
                           "  %q0 = Transpose(%z) perm=[1,0,2,3]\n"
                           "  %q1 = Transpose(%s) perm=[0,2,1,3]\n"
                           "  %q2 = Transpose(%t) perm=[0,1,3,2]\n"
                           "  %q3 = Transpose(%t) perm=[1,0,3,2]\n"
                           "  out %q0\n  out %q1\n  out %q2\n  out %q3\n}\n";

static rl_status assign_and_prove(rl_pass_run *r, void *seconds) {
    rl_passopt checked = *r->opt;
    checked.time_limit = *(double *)seconds; /* of the checker: it counts what it does, and takes no time for it */
    RL_TRY(rl_pass_legal(r));
    RL_TRY(rl_pass_assign(r));
    r->opt = &checked;
    return rl_pass_prove(r);
}

static void prove_in(const char *text, double seconds, rl_proof *proof) {
    CHECK_CTX(ctx)
    rl_graph *g = NULL;
    rl_outcome out = {0};
    const rl_passopt o = {.target = "onnx"};
    bool done = rl_text_parse(ctx, "t", text, strlen(text), &g) == RL_OK && rl_shape_infer(g) == RL_OK &&
                rl_run_job(g, &o, &out, assign_and_prove, &seconds) == RL_OK;
    if (!done) fprintf(stderr, "%s\n", ctx->error);
    CHECK(done);
    rl_graph_free(g);
    rl_ctx_free(ctx);
    *proof = out.proof;
}

TEST(undecided) {
    rl_proof all, x;
    prove_in(model, 1, &all);
    bool some = false;
    CHECK(all.checked && all.count == 3 && all.bound == 3);
    for (double s = 1e-3; s > 1e-10; s /= 1.5) {
        prove_in(model, s, &x);
        CHECK(x.checked && x.count == 3);
        CHECK(x.bound >= 0 && x.bound <= 3);
        some |= x.bound > 0 && x.bound < 3;
    }
    CHECK(some);
}

/* A Transpose of unknown sizes whose result has sizes that are declared: no conversion of any value, but it may stay. */
TEST(outside) {
    rl_proof x;
    prove_in("graph t opset=20 {\n  in %x f32[2,3,4,5]\n  in %n i64[4]\n  %r = Reshape(%x, %n)\n  %y f32[2,4,5,3] = Transpose(%r) perm=[0,2,3,1]\n  out %y\n}\n", 1, &x);
    CHECK(x.checked && x.count == 0 && x.outside == 1);
}

TEST(lesser) {
    rl_proof all, none, x;
    prove_in(deep, 1, &all);
    prove_in(deep, 1e-10, &none);
    bool some = false;
    CHECK(all.checked && all.bound == all.count);
    for (double s = 1e-3; s > 1e-10; s /= 1.5) {
        prove_in(deep, s, &x);
        CHECK(x.checked && x.count == all.count && x.bound <= all.bound);
        some |= x.bound > none.bound && x.bound < all.bound;
    }
    CHECK(some);
}

/* What solving takes is added to the time of the run, and it is done however little of that is left. */
static rl_status assign_late(rl_pass_run *r, void *solved) {
    double *after = solved;
    RL_TRY(rl_pass_legal(r));
    after[0] = *r->solved += 100;
    RL_TRY(rl_pass_assign(r));
    after[1] = *r->solved;
    after[2] = (double)r->out->conv_after;
    return RL_OK;
}

TEST(time_of_the_run) {
    CHECK_CTX(ctx)
    rl_graph *g = NULL;
    rl_outcome out = {0};
    const rl_passopt o = {.target = "onnx"};
    double after[3] = {0};
    CHECK(rl_text_parse(ctx, "t", deep, sizeof deep - 1, &g) == RL_OK && rl_shape_infer(g) == RL_OK &&
          rl_run_job(g, &o, &out, assign_late, after) == RL_OK);
    CHECK(after[1] > after[0] && after[1] < after[0] + 5);
    CHECK(after[2] == 4.0);
    rl_graph_free(g);
    rl_ctx_free(ctx);
}

/* Pairs of ops on a value each, the two of a pair far apart, and one op on all values: pairs come together, and each op once. */
TEST(arranged) {
    CHECK_CTX(ctx)
    enum { NVALUE = 12, NOP = 2 * NVALUE + 1 };
    rl_cert_pin pin[NVALUE];
    rl_cert_op op[NOP] = {[NOP - 1] = {.npin = NVALUE, .pin = pin}};
    uint32_t number[NOP], at[NOP] = {0}, far = 0;
    for (uint32_t v = 0; v < NVALUE; v++) pin[v] = (rl_cert_pin){.value = v};
    for (uint32_t k = 0; k < NOP; k++) {
        number[k] = k;
        if (k < 2 * NVALUE) op[k] = (rl_cert_op){.npin = 1, .pin = &pin[k % NVALUE]};
    }
    rl_cert c = {.nvalue = NVALUE, .nop = NOP, .op = op};
    rl_cert_part part = {.nop = NOP, .op = number};
    rl_prove_arrange(&ctx->mem, &c, &part, rl_work_seconds() + 10);
    for (uint32_t k = 0; k < NOP; k++) at[part.op[k]] = k + 1;
    for (uint32_t k = 0; k < NOP; k++) CHECK(at[k] > 0);
    for (uint32_t v = 0; v < NVALUE; v++) far += at[v] + 1 != at[v + NVALUE] && at[v + NVALUE] + 1 != at[v];
    CHECK(far <= 1);
    rl_ctx_free(ctx);
}

int main(void) {
    RUN(arranged);
    RUN(undecided);
    RUN(outside);
    RUN(lesser);
    RUN(time_of_the_run);
    return check_done();
}
