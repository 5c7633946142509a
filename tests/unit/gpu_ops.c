/* Ops on an emulated device beyond one node by itself (gpu_table.c). Attention: a block of a transformer, recorded and replayed, without a copy of its
 * heads; a cache of keys that grows; what the device leaves to the CPU. A wrong position of RotaryEmbedding. What TopK takes first. */
#include <stdlib.h>

#include "../../runtime/kernels.h"
#include "gpu_run.h"

static bool near(const run *a, const run *b, float by) {
    for (uint32_t i = 0; i < a->g->output.n; i++)
        if (!near_floats(&a->out[i], &b->out[i], by)) return false;
    return true;
}

static bool same(const run *a, const run *b) {
    return near(a, b, 1e-5f);
}

static const char block[] =
    "graph opset=23 {\n  in %x f32[N,6,8]\n  const %g f32[8] {1,0.5,2,1,-1,1,0.25,1}\n  const %cos f32[9,2] {1,0.5,-0.25,1,0.5,-0.25,1,1,0,1,0.5,0.5,1,1,0,0,1,1}\n"
    "  const %w f32[8,8] {1,2,-1,0,0.5,1,0,2,-2,1,1,0,1,0,1,-1,0,1,1,-1,2,0.5,0,1,1,1,-2,0,0,1,0.5,1,1,0,2,1,0,1,-1,0.5,1,1,0,2,-1,0,1,1,0.5,1,0,1,1,-1,1,0,0,2,1,1,1,0,0.5,-1}\n"
    "  const %s i64[4] {0,6,2,4}\n  const %f i64[3] {0,6,8}\n  const %p i64[2,6] {0,1,2,3,4,5,3,4,5,6,7,8}\n"
    "  %n = LayerNormalization(%x, %g)\n  %q = MatMul(%n, %w)\n  %q4 = Reshape(%q, %s)\n  %qt = Transpose(%q4) perm=[0,2,1,3]\n"
    "  %k4 = Reshape(%n, %s)\n  %kt = Transpose(%k4) perm=[0,2,1,3]\n  %qr = RotaryEmbedding(%qt, %cos, %cos, %p)\n  %kr = RotaryEmbedding(%kt, %cos, %cos, %p)\n"
    "  %a = Attention(%qr, %kr, %qt) is_causal=1\n  %at = Transpose(%a) perm=[0,2,1,3]\n  %af = Reshape(%at, %f)\n"
    "  %b = Attention(%af, %n, %q) q_num_heads=2 kv_num_heads=2\n  %y = Add(%x, %b)\n  out %y\n}\n";

/* Of the queries %a only is put into another order, at the Reshape that torch writes after it. */
TEST(transformer_block) {
    static const char *const refused[] = {"launch:none", "launch:cast", "launch:weave"};
    CHECK_CTX(ctx)
    for (size_t f = 0; f < RL_LEN(refused); f++) {
        setenv("RELAYOUT_EMULATE_FAULT", refused[f], 1);
        run cpu = start(ctx, block, &rl_backend_cpu), gpu = start(ctx, block, &rl_backend_cuda);
        for (uint32_t k = 0; k < 3; k++) {
            give_floats(&cpu, 0, 3, (int64_t[]){2, 6, 8}, k), give_floats(&gpu, 0, 3, (int64_t[]){2, 6, 8}, k);
            CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
            CHECK(same(&cpu, &gpu) && all_there(&gpu) && rl_device_replays(gpu.x) == (k > 0));
            drop(&cpu), drop(&gpu);
        }
        unsetenv("RELAYOUT_EMULATE_FAULT");
        end(&cpu), end(&gpu);
    }
    rl_ctx_free(ctx);
}

/* Heads lie where they are: with every kernel that moves refused, Attention of [batch, length, heads * size] runs. */
TEST(heads_stay) {
    static const char text[] =
        "graph opset=24 {\n  in %x f32[N,6,8]\n  %y = Attention(%x, %x, %x) q_num_heads=2 kv_num_heads=2 softcap=2.0\n  out %y\n}\n";
    static const char *const refused[] = {REFUSED_MOVES};
    CHECK_CTX(ctx)
    for (size_t f = 0; f < RL_LEN(refused); f++) {
        setenv("RELAYOUT_EMULATE_FAULT", refused[f], 1);
        run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
        give_floats(&cpu, 0, 3, (int64_t[]){3, 6, 8}, 7), give_floats(&gpu, 0, 3, (int64_t[]){3, 6, 8}, 7);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        CHECK(same(&cpu, &gpu) && all_there(&gpu));
        unsetenv("RELAYOUT_EMULATE_FAULT");
        drop(&cpu), drop(&gpu);
        end(&cpu), end(&gpu);
    }
    rl_ctx_free(ctx);
}

/* Attention as exporters write it, on %q, %k, %v [N,6,8]: heads apart, a product of what is scaled, what is done to scores, weights, a product. */
#define HEADS                                                                                                                                        \
    "  const %s i64[4] {0,6,2,4}\n  const %f i64[3] {0,6,8}\n  %q4 = Reshape(%q, %s)\n  %k4 = Reshape(%k, %s)\n  %v4 = Reshape(%v, %s)\n"               \
    "  %qt = Transpose(%q4) perm=[0,2,1,3]\n  %kt = Transpose(%k4) perm=[0,2,3,1]\n  %vt = Transpose(%v4) perm=[0,2,1,3]\n"
#define MERGED "  %yt = Transpose(%y4) perm=[0,2,1,3]\n  %y = Reshape(%yt, %f)\n"

/* [steps] where one is joined, all others are views or run by themselves. */
static uint32_t count_joined(const run *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->x->nstep; i++) n += r->x->step[i].joined != NULL;
    return n;
}

/* The text with its floats shorter, between a Cast at each end. */
static const char *in_type(const char *text, bool shorter) {
    static char out[2200];
    snprintf(out, sizeof out, "graph opset=20 {\n  in %%a f32[N,6,8]\n  in %%b f32[N,6,8]\n  in %%c f32[N,6,8]\n  %%q = Cast(%%a) to=%d\n  %%k = Cast(%%b) to=%d\n"
             "  %%v = Cast(%%c) to=%d\n%s  %%z = Cast(%%y) to=1\n  out %%z\n}\n", shorter ? 10 : 1, shorter ? 10 : 1, shorter ? 10 : 1, text);
    return out;
}

/* No kernel of Softmax or of one element runs, and none that moves: two products, and the scores in between. */
TEST(joined_attention) {
    static const struct { const char *text; bool joined; } cases[] = {
        {HEADS "  const %h T[] {0.5}\n  %qs = Mul(%qt, %h)\n  %ks = Mul(%kt, %h)\n  %p = MatMul(%qs, %ks)\n  %w = Softmax(%p) axis=-1\n  %y4 = MatMul(%w, %vt)\n" MERGED, true},
        {HEADS "  const %h T[] {2}\n  const %m T[6] {0,0,1,0,0.5,-2}\n  %p = MatMul(%qt, %kt)\n  %ps = Div(%p, %h)\n  %pm = Add(%ps, %m)\n  %w = Softmax(%pm) axis=3\n"
               "  %y4 = MatMul(%w, %vt)\n" MERGED, true},
        {HEADS "  const %m bool[1,1,6,6] {1,0,0,0,0,0,1,1,0,0,0,0,1,1,1,0,0,0,1,1,1,1,0,0,1,1,1,1,1,0,1,1,1,1,1,1}\n  const %i T[] {-100}\n  const %e T[2,1,6] {0,1,2,0,1,2,1,1,0,0,1,1}\n"
               "  %p = MatMul(%qt, %kt)\n  %pb = Add(%e, %p)\n  %pm = Where(%m, %pb, %i)\n  %w = Softmax(%pm) axis=-1\n  %y4 = MatMul(%w, %vt)\n" MERGED, true},
        {HEADS "  const %m bool[6] {0,1,0,0,1,0}\n  const %i T[] {-100}\n  const %o i64[5] {-1,1,2,6,6}\n  const %u i64[4] {-1,2,6,6}\n  const %d T[1,1,2,6,6] {"
               "0,1,2,0,1,2,1,1,0,0,1,1,0,1,2,0,1,2,1,1,0,0,1,1,0,1,2,0,1,2,1,1,0,0,1,1,0,1,2,0,1,2,1,1,0,0,1,1,0,1,2,0,1,2,1,1,0,0,1,1,0,1,2,0,1,2,1,1,0,0,1,1}\n"
               "  %p = MatMul(%qt, %kt)\n  %pm = Where(%m, %i, %p)\n  %p5 = Reshape(%pm, %o)\n  %pd = Add(%p5, %d)\n  %pu = Reshape(%pd, %u)\n  %w = Softmax(%pu) axis=-1\n"
               "  %y4 = MatMul(%w, %vt)\n" MERGED, true},
        {HEADS "  const %m T[6] {0,0,1,0,0.5,2}\n  %p = MatMul(%qt, %kt)\n  %pm = Mul(%p, %m)\n  %w = Softmax(%pm) axis=-1\n  %y4 = MatMul(%w, %vt)\n" MERGED, false},
    };
    static const char *const refused[] = {"launch:rows", "launch:each", REFUSED_MOVES};
    CHECK_CTX(ctx)
    for (size_t i = 0; i < 2 * RL_LEN(cases); i++) {
        bool joined = cases[i / 2].joined, shorter = i % 2;
        char text[1900];
        snprintf(text, sizeof text, "%s", cases[i / 2].text);
        for (char *t; (t = strstr(text, " T[")); memmove(t + 4, t + 2, strlen(t + 1)), memcpy(t + 1, shorter ? "f16" : "f32", 3)) continue;
        for (size_t f = 0; f < (joined ? RL_LEN(refused) : 1); f++) {
            if (joined) setenv("RELAYOUT_EMULATE_FAULT", refused[f], 1);
            run cpu = start(ctx, in_type(text, shorter), &rl_backend_cpu), gpu = start(ctx, in_type(text, shorter), &rl_backend_cuda);
            CHECK(count_joined(&gpu) == 1);
            for (uint32_t k = 0; k < 3; k++) give_floats(&cpu, k, 3, (int64_t[]){2, 6, 8}, k), give_floats(&gpu, k, 3, (int64_t[]){2, 6, 8}, k);
            CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
            CHECK((shorter ? near(&cpu, &gpu, 2e-3f) : same(&cpu, &gpu)) && all_there(&gpu));
            unsetenv("RELAYOUT_EMULATE_FAULT");
            drop(&cpu), drop(&gpu);
            end(&cpu), end(&gpu);
        }
    }
    rl_ctx_free(ctx);
}

/* A query that sees no key has weights that are no numbers: as Softmax, and not as Attention. */
TEST(joined_blind_query) {
    static const char text[] = "graph opset=20 {\n  in %q f32[1,2,3,4]\n  in %k f32[1,2,4,3]\n  in %v f32[1,2,3,4]\n  const %m bool[3,1] {1,0,1}\n  const %i f32[] {-inf}\n"
                               "  %p = MatMul(%q, %k)\n  %pm = Where(%m, %p, %i)\n  %w = Softmax(%pm) axis=-1\n  %y = MatMul(%w, %v)\n  out %y\n}\n";
    CHECK_CTX(ctx)
    run gpu = start(ctx, text, &rl_backend_cuda);
    give_floats(&gpu, 0, 4, (int64_t[]){1, 2, 3, 4}, 1), give_floats(&gpu, 1, 4, (int64_t[]){1, 2, 4, 3}, 2), give_floats(&gpu, 2, 4, (int64_t[]){1, 2, 3, 4}, 3);
    CHECK(count_joined(&gpu) == 1 && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK && all_there(&gpu));
    const float *y = rl_data(&gpu.out[0]);
    for (uint32_t i = 0; i < 24; i++) CHECK(isnan(y[i]) == (i / 4 % 3 == 1));
    drop(&gpu);
    end(&gpu);
    rl_ctx_free(ctx);
}

/* One token after another: what was present is past in the next run. */
TEST(cache_grows) {
    static const char text[] =
        "graph opset=24 {\n  in %x f32[1,2,1,4]\n  in %k f32[1,1,P,4]\n  in %v f32[1,1,P,4]\n  %h = Slice(%x, %a, %e, %d)\n"
        "  %y, %kk, %vv = Attention(%x, %h, %h, _, %k, %v) is_causal=1\n  const %a i64[1] {0}\n  const %e i64[1] {1}\n  const %d i64[1] {1}\n"
        "  out %y\n  out %kk\n  out %vv\n}\n";
    CHECK_CTX(ctx)
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    give_floats(&cpu, 1, 4, (int64_t[]){1, 1, 2, 4}, 1), give_floats(&gpu, 1, 4, (int64_t[]){1, 1, 2, 4}, 1);
    give_floats(&cpu, 2, 4, (int64_t[]){1, 1, 2, 4}, 2), give_floats(&gpu, 2, 4, (int64_t[]){1, 1, 2, 4}, 2);
    for (uint32_t k = 0; k < 3; k++) {
        give_floats(&cpu, 0, 4, (int64_t[]){1, 2, 1, 4}, k), give_floats(&gpu, 0, 4, (int64_t[]){1, 2, 1, 4}, k);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        CHECK(same(&cpu, &gpu) && all_there(&gpu) && gpu.out[1].dim[2] == 3 + k);
        for (uint32_t r = 0; r < 2; r++) {
            run *at = r ? &gpu : &cpu;
            for (uint32_t i = 1; i < 3; i++) rl_tensor_drop(&at->in[i]), at->in[i] = at->out[i], at->out[i] = (rl_tensor){0};
            rl_tensor_drop(&at->in[0]), rl_tensor_drop(&at->out[0]);
        }
    }
    drop(&cpu), drop(&gpu);
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* Scores as they are between the product and the weights do not stand in memory on the device. */
TEST(stages_of_scores) {
    CHECK_CTX(ctx)
    for (int mode = 0; mode < 4; mode++) {
        char text[400];
        snprintf(text, sizeof text, "graph opset=24 {\n  in %%x f32[N,3,4,4]\n  %%y, %%k, %%v, %%s = Attention(%%x, %%x, %%x) is_causal=1 softcap=0.5 "
                 "qk_matmul_output_mode=%d\n  %%m = Exp(%%s)\n  out %%y\n  out %%m\n}\n", mode);
        run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
        give_floats(&cpu, 0, 4, (int64_t[]){2, 3, 4, 4}, 5), give_floats(&gpu, 0, 4, (int64_t[]){2, 3, 4, 4}, 5);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        CHECK(same(&cpu, &gpu) && all_there(&gpu) == (mode == 0 || mode == 3));
        drop(&cpu), drop(&gpu);
        end(&cpu), end(&gpu);
    }
    rl_ctx_free(ctx);
}

/* A position that the caches have not: said when the run is over. */
TEST(wrong_position) {
    static const char text[] =
        "graph opset=23 {\n  in %x f32[N,5,4]\n  in %p i64[N,5]\n  const %c f32[3,2] {1,0.5,0.25,0,1,1}\n  %y = RotaryEmbedding(%x, %c, %c, %p) num_heads=1\n  out %y\n}\n";
    static const int64_t worst[] = {2, 3, -1, INT64_MAX, 1};
    CHECK_CTX(ctx)
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    for (uint32_t k = 0; k < RL_LEN(worst); k++) {
        bool bad = worst[k] < 0 || worst[k] > 2;
        for (uint32_t r = 0; r < 2; r++) {
            run *at = r ? &gpu : &cpu;
            give_floats(at, 0, 3, (int64_t[]){2, 5, 4}, k);
            at->in[1] = rl_tensor_new(at->rt, RL_I64, 2, (int64_t[]){2, 5});
            for (int64_t i = 0; i < 10; i++) ((int64_t *)rl_data(&at->in[1]))[i] = i == 6 ? worst[k] : i % 3;
            CHECK(rl_exec_run(at->x, at->in, at->out) == (bad ? RL_EMODEL : RL_OK));
            if (bad) CHECK(strstr(ctx->error, r ? "(RotaryEmbedding): an index is out of range" : "(RotaryEmbedding): position"));
        }
        CHECK(bad || (same(&cpu, &gpu) && all_there(&gpu)));
        drop(&cpu), drop(&gpu);
    }
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* NaNs are larger than all, zeros of both signs are equal, and of equal elements the first is better; in one part and in several. */
TEST(order_of_topk) {
    static const float few[] = {0, -0.0f, NAN, 1, INFINITY, -INFINITY, NAN, 1, -1};
    CHECK_CTX(ctx)
    for (int largest = 0; largest < 2; largest++)
        for (int64_t n = 9; n <= 9000; n *= 1000) {
            char text[300];
            snprintf(text, sizeof text, "graph opset=21 {\n  in %%x f32[2,N]\n  const %%k i64[1] {9}\n  %%v, %%i = TopK(%%x, %%k) largest=%d\n  %%y = Cast(%%i) to=1\n"
                     "  out %%y\n}\n", largest);
            run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
            for (uint32_t r = 0; r < 2; r++) {
                run *at = r ? &gpu : &cpu;
                give_floats(at, 0, 2, (int64_t[]){2, n}, 1);
                for (int64_t k = 0; k < 2 * n; k++) ((float *)rl_data(&at->in[0]))[k] = few[k * 7 % 9];
                CHECK(rl_exec_run(at->x, at->in, at->out) == RL_OK);
            }
            CHECK(same(&cpu, &gpu) && all_there(&gpu));
            drop(&cpu), drop(&gpu);
            end(&cpu), end(&gpu);
        }
    rl_ctx_free(ctx);
}

/* The texts' one input, [N,6,8] with a row of zeros, three times: all stays on the device, and is recorded. */
static void stays(rl_ctx *ctx, const char *text, uint32_t nstep) {
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    if (gpu.x->nstep != nstep) fprintf(stderr, "%u steps: %s", gpu.x->nstep, text);
    CHECK(gpu.x->nstep == nstep);
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t r = 0; r < 2; r++) {
            run *at = r ? &gpu : &cpu;
            give_floats(at, 0, 3, (int64_t[]){2, 6, 8}, k);
            memset((float *)rl_data(&at->in[0]) + 16, 0, 8 * sizeof(float));
            CHECK(rl_exec_run(at->x, at->in, at->out) == RL_OK);
        }
        bool good = same(&cpu, &gpu) && all_there(&gpu) && rl_device_replays(gpu.x) == (k > 0);
        if (!good) fprintf(stderr, "%s", text);
        CHECK(good);
        drop(&cpu), drop(&gpu);
    }
    end(&cpu), end(&gpu);
}

/* What onnxruntime's quantize_dynamic makes of a Linear, of a product of two that are computed, and of a convolution. Where a product's scales are known to be
 * such, the ops behind it are one step with it, whose parts run where that fails. */
TEST(quantized_in_the_run) {
    static const char *const texts[] = {
        "graph opset=17 {\n  in %x f32[N,6,8]\n"
        "  const %w i8[8,4] {1,2,3,4,-5,6,7,8,9,-10,11,12,13,14,-15,16,1,-2,3,-4,5,-6,7,-8,9,100,-111,12,13,-127,127,0}\n  const %v i8[] {0}\n  const %b f32[4] {1,2,-1,0.5}\n"
        "  const %t f32[] {0.02}\n  %q, %s, %z = DynamicQuantizeLinear(%x)\n  %i = MatMulInteger(%q, %w, %z, %v)\n  %f = Cast(%i) to=1\n  %by = Mul(%s, %t)\n"
        "  %m = Mul(%f, %by)\n  %y = Add(%m, %b)\n  out %y\n}\n",
        "graph opset=17 {\n  in %x f32[N,6,8]\n  const %w u8[8,3] {1,2,3,100,5,6,7,8,9,10,11,128,13,14,15,127,250,1,2,3,5,0,255,128}\n  const %v u8[3] {128,0,255}\n"
        "  %q, %s, %z = DynamicQuantizeLinear(%x)\n  %i = MatMulInteger(%q, %w, %z, %v)\n  %f = Cast(%i) to=1\n  %y = Mul(%f, %s)\n  out %y\n}\n",
        "graph opset=17 {\n  in %x f32[N,6,8]\n  %t = Transpose(%x) perm=[0,2,1]\n  %e = Exp(%t)\n  %q, %s, %z = DynamicQuantizeLinear(%x)\n"
        "  %r, %u, %v = DynamicQuantizeLinear(%e)\n  %i = MatMulInteger(%q, %r, %z, %v)\n  %f = Cast(%i) to=1\n  %by = Mul(%s, %u)\n  %y = Mul(%f, %by)\n  out %y\n}\n",
        "graph opset=17 {\n  in %x f32[N,6,8]\n  const %w i8[2,6,3] {1,2,3,-4,5,6,7,8,-9,10,11,12,13,-14,15,16,17,18,1,2,3,-4,5,6,7,8,-9,10,11,12,13,-14,15,16,17,18}\n  const %v i8[] {0}\n"
        "  %q, %s, %z = DynamicQuantizeLinear(%x)\n  %i = ConvInteger(%q, %w, %z, %v) pads=[1,1]\n  %f = Cast(%i) to=1\n  %y = Mul(%f, %s)\n  out %y\n}\n",
        "graph opset=17 {\n  in %x f32[N,6,8]\n  const %w u8[8,3] {1,2,3,100,5,6,7,8,9,10,11,128,13,14,15,127,250,1,2,3,5,0,255,128}\n  const %v u8[3] {128,0,255}\n"
        "  const %t f32[3] {0.5,1,-2}\n  const %b f32[1,3] {1,2,3}\n  %q, %s, %z = DynamicQuantizeLinear(%x)\n  %i = MatMulInteger(%q, %w, %z, %v)\n  %f = Cast(%i) to=1\n"
        "  %by = Mul(%t, %s)\n  %m = Mul(%by, %f)\n  %y = Add(%b, %m)\n  out %y\n  out %by\n}\n"};
    static const uint32_t nstep[] = {2, 4, 5, 4, 4};
    CHECK_CTX(ctx)
    for (size_t i = 0; i < RL_LEN(texts); i++) stays(ctx, texts[i], nstep[i]);
    setenv("RELAYOUT_EMULATE_FAULT", "launch:byte_end", 1);
    run cpu = start(ctx, texts[0], &rl_backend_cpu), gpu = start(ctx, texts[0], &rl_backend_cuda);
    give_floats(&cpu, 0, 3, (int64_t[]){2, 6, 8}, 1), give_floats(&gpu, 0, 3, (int64_t[]){2, 6, 8}, 1);
    CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK && same(&cpu, &gpu));
    unsetenv("RELAYOUT_EMULATE_FAULT");
    drop(&cpu), drop(&gpu);
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* Rows of zeros, whose norm and deviation are 0; what the CPU's kernels move where it lies. */
TEST(stays_there) {
    static const char *const nodes[] = {
        "%y = LpNormalization(%x)", "%y = LpNormalization(%x) p=1", "%y = MeanVarianceNormalization(%x) axes=[2]", "%y = Hardmax(%x)",
        "%y = CenterCropPad(%x, %crop)", "%y = ReverseSequence(%x, %n) batch_axis=0 time_axis=1", "%b = BitCast(%x) to=6\n  %y = BitCast(%b) to=1",
        "%f = Slice(%x, %one, %two, %one)\n  %y = TensorScatter(%x, %f, %at) axis=1"};
    CHECK_CTX(ctx)
    for (size_t i = 0; i < RL_LEN(nodes); i++) {
        char text[700];
        snprintf(text, sizeof text, "graph opset=26 {\n  in %%a f32[N,6,8]\n  const %%crop i64[3] {2,4,11}\n  const %%n i64[2] {4,6}\n  const %%at i64[2] {1,4}\n"
                 "  const %%one i64[1] {1}\n  const %%two i64[1] {2}\n  %%x = Neg(%%a)\n  %s\n  %%z = Abs(%%y)\n  out %%z\n}\n", nodes[i]);
        stays(ctx, text, strstr(nodes[i], "\n  ") ? 4 : 3);
    }
    rl_ctx_free(ctx);
}

int main(void) {
    open_device h = hold();
    RUN(quantized_in_the_run);
    RUN(stays_there);
    RUN(transformer_block);
    RUN(heads_stay);
    RUN(joined_attention);
    RUN(joined_blind_query);
    RUN(cache_grows);
    RUN(stages_of_scores);
    RUN(wrong_position);
    RUN(order_of_topk);
    let_go(&h);
    return check_done();
}
