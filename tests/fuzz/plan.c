/* Any bytes as a plan of layouts: it is refused, or the model runs by it to the outputs that it has without.
 *
 * The first byte: 0: the bytes are the whole text; else they are its lines from the first op on, behind a head that is right. */
#include <math.h>
#include <string.h>

#include "../../runtime/native.h"
#include "../../src/text.h"
#include "fuzz.h"

static const char model[] =
    "graph plan opset=17 {\n  in %x f32[1,12,4,4]\n  const %w f32[20,12,3,3] seed=1\n  const %v f32[8,32,1,1] seed=2\n"
    "  %a = Conv(%x, %w) pads=[1,1,1,1]\n  %b = Sigmoid(%a)\n  %c = Tanh(%x)\n  %d = Concat(%b, %c) axis=1\n  %e = MaxPool(%d) kernel_shape=[2,2]\n"
    "  %f = Conv(%e, %v)\n  %g = GlobalAveragePool(%f)\n  %h = Mul(%f, %g)\n  %i = Transpose(%h) perm=[0,2,3,1]\n  %j = Softmax(%i) axis=-1\n"
    "  out %j, %b\n}\n";

static void run(rl_exec *x, rl_rt *rt, const rl_tensor *in, rl_tensor *out) {
    rl_tensor made[2] = {{0}};
    must(rl_exec_run(x, in, made) == RL_OK, "a plan that is taken runs", rt->ctx);
    for (uint32_t i = 0; i < 2; i++) out[i] = rl_contiguous(rt, &made[i]);
}

static void run_by(rl_rt *rt, rl_graph *g, const rl_text *text) {
    rl_exec *x, *plain;
    rl_tensor want[2], got[2];
    int64_t dim[] = {1, 12, 4, 4};
    rl_tensor in = rl_tensor_new(rt, RL_F32, 4, dim);
    float *p = in.mem->p;
    for (int i = 0; i < 192; i++) p[i] = (float)(i % 17 - 8) / 8;
    rt->native = (rl_span){(const uint8_t *)text->p, text->n};
    must(rl_exec_new(rt, g, &x) == RL_OK, "a plan that is read is taken", rt->ctx);
    rt->native = (rl_span){0};
    rt->no_plan = true;
    must(rl_exec_new(rt, g, &plain) == RL_OK, "the model runs", rt->ctx);
    run(plain, rt, &in, want);
    run(x, rt, &in, got);
    for (uint32_t i = 0; i < 2; i++) {
        must(rl_same_dims(&want[i], &got[i]), "a plan changes no shapes", rt->ctx);
        for (int64_t k = 0; k < rl_numel(&want[i]); k++)
            must(fabsf(((float *)rl_data(&want[i]))[k] - ((float *)rl_data(&got[i]))[k]) < 1e-3f, "a plan changes no results", rt->ctx);
    }
}

static void take(rl_ctx *ctx, rl_rt *rt, const char *p, size_t n, rl_graph **g) {
    rl_exec *x;
    rl_native_plan plan;
    rl_text text = {.mem = &ctx->mem};
    if (RL_PROTECT(ctx)) return;
    rt->no_plan = true;
    must(rl_text_parse(ctx, "model", model, sizeof model - 1, g) == RL_OK && rl_exec_new(rt, *g, &x) == RL_OK, "the model is sound", ctx);
    rt->no_plan = false;
    if (n && *p) {
        rl_native_print(x, &(rl_native_plan){.machine = "fuzz"}, &text);
        text.n -= strlen("end\n");
    }
    if (n) rl_put_bytes(&text, p + 1, n - 1);
    rl_put_bytes(&text, "", 1);
    text.n--;
    rl_status s = rl_native_parse(x, text.p, text.n, &plan);
    must(s == RL_OK || ctx->error[0], "a refusal says why", ctx);
    if (s == RL_OK) run_by(rt, *g, &text);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    rl_ctx *ctx = rl_ctx_new(FUZZ_MEMORY);
    rl_graph *g = NULL;
    if (!ctx) return 0;
    rl_rt *rt = rl_rt_new_for(ctx, true, 1);
    take(ctx, rt, (const char *)p, n, &g);
    rl_rt_free(rt);
    rl_graph_free(g);
    rl_ctx_free(ctx);
    return 0;
}
