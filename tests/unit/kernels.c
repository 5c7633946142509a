/* The tables of kernels (kernels.def, kernels_fast.def): every row is of an op that there is, and can be reached. */
#include "../../runtime/fast.h"
#include "../../runtime/kernels.h"
#include "../../src/ops.h"
#include "check.h"

static bool same_op(const rl_kernel *a, const rl_kernel *b) {
    return strcmp(a->domain, b->domain) == 0 && strcmp(a->type, b->type) == 0;
}

/* Whatever b takes, a takes. */
static bool hides(const rl_kernel *a, const rl_kernel *b) {
    bool types = a->types == 0 || (b->types && (b->types & ~a->types) == 0);
    return same_op(a, b) && a->since <= b->since && b->until <= a->until && types;
}

/* The table of ops (ops.def) has those of these two domains. */
static bool is_op(rl_ctx *ctx, const rl_kernel *k) {
    bool onnx = *k->domain == 0;
    if (!onnx && strcmp(k->domain, "com.microsoft") != 0) return true;
    return rl_op_find(rl_internz(ctx, k->domain), rl_internz(ctx, k->type), onnx ? RL_MAX(k->since, 7u) : k->since) != RL_OP_OPAQUE;
}

TEST(rows) {
    CHECK_CTX(ctx)
    for (uint32_t i = 0; i < rl_backend_cpu.nkernel; i++) {
        const rl_kernel *k = &rl_backend_cpu.kernel[i];
        bool good = is_op(ctx, k) && k->since >= 1 && k->since <= k->until && k->fn;
        for (uint32_t j = 0; j < i; j++) good = good && !hides(&rl_backend_cpu.kernel[j], k);
        if (!good) fprintf(stderr, "the row of %s %s-%u\n", k->domain, k->type, k->since);
        CHECK(good);
    }
    rl_ctx_free(ctx);
}

/* A fast kernel leaves what it does not take to the reference kernel, which is in its table behind it. */
TEST(fast_rows) {
    uint32_t nfast = rl_backend_fast.nkernel - rl_backend_cpu.nkernel;
    CHECK(nfast > 0 && rl_backend_fast.nkernel > rl_backend_cpu.nkernel);
    for (uint32_t i = 0; i < nfast; i++) {
        const rl_kernel *k = &rl_backend_fast.kernel[i];
        bool left = false;
        for (uint32_t j = nfast; j < rl_backend_fast.nkernel; j++) left = left || same_op(k, &rl_backend_fast.kernel[j]);
        CHECK(left);
        for (uint32_t j = 0; j < i; j++) CHECK(!hides(&rl_backend_fast.kernel[j], k));
    }
}

int main(void) {
    RUN(rows);
    RUN(fast_rows);
    return check_done();
}
