/* The program's own paths to the driver, cuBLASLt and cuDNN (cuda/driver.c, blaslt.c, dnn*.c) on libraries that stand in for NVIDIA's
 * (tests/stand_in): what they are asked for, and what becomes of a node when one of their calls fails. Results are compared with the CPU's. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "../../cuda/backend.h"
#include "../../runtime/kernels.h"
#include "../../runtime/values.h"
#include "../../src/text.h"
#include "../stand_in/stand_in.h"
#include "check.h"

static void (*listen_to)(int on);
static const char *(*said)(void);

typedef struct { rl_rt *rt; rl_graph *g; rl_exec *x; rl_tensor in[4], out[2]; rl_status s; } run;

static void start_at(run *r, rl_ctx *ctx, const char *text, const rl_backend *on) {
    *r = (run){.rt = rl_rt_new(ctx, on, 1)};
    r->s = r->rt ? rl_text_parse(ctx, "test", text, strlen(text), &r->g) : RL_EINTERNAL;
    if (r->s == RL_OK) r->s = rl_exec_new(r->rt, r->g, &r->x);
    for (uint32_t i = 0; r->s == RL_OK && i < r->g->input.n; i++) r->s = rl_value_random(r->rt, r->g, r->g->input.p[i], NULL, i, &r->in[i]);
    if (r->s == RL_OK) r->s = rl_exec_run(r->x, r->in, r->out);
}

static run start(rl_ctx *ctx, const char *text, const rl_backend *on) {
    run r;
    start_at(&r, ctx, text, on);
    return r;
}

static bool run_again(run *r) {
    for (uint32_t i = 0; i < RL_LEN(r->out); i++) rl_tensor_drop(&r->out[i]);
    return (r->s = rl_exec_run(r->x, r->in, r->out)) == RL_OK;
}

static void end(run *r) {
    if (r->rt) rl_rt_free(r->rt);
    if (r->g) rl_graph_free(r->g);
}

/* Floats within `bound` of the largest; bytes equal. */
static bool same(run *a, run *b, double bound) {
    const rl_tensor *x = &a->out[0], *y = &b->out[0];
    double most = 1e-30, worst = 0;
    if (a->s != RL_OK || b->s != RL_OK || x->dtype != y->dtype || !rl_same_dims(x, y)) return false;
    rl_tensor p = rl_tensor_new(a->rt, RL_F64, x->rank, x->dim), q = rl_tensor_new(b->rt, RL_F64, y->rank, y->dim);
    rl_convert(a->rt, &p, x, true), rl_convert(b->rt, &q, y, true);
    for (int64_t i = 0; i < rl_numel(&p); i++) {
        double u = ((const double *)rl_data(&p))[i], v = ((const double *)rl_data(&q))[i];
        if (isnan(u) != isnan(v)) return false;
        most = fmax(most, fabs(u)), worst = fmax(worst, fabs(u - v));
    }
    return worst <= bound * most;
}

/* Who ran the step that makes output 0 (in the second run: the first lays out the weights), and what the libraries were asked for. */
static void check_run(const char *text, double bound, const char *by, const char *const *asked, uint32_t nasked) {
    CHECK_CTX(ctx)
    run cpu = start(ctx, text, &rl_backend_cpu);
    listen_to(1);
    run gpu = start(ctx, text, &rl_backend_cuda);
    bool fine = same(&cpu, &gpu, bound) && gpu.x->nstep > 0 && run_again(&gpu) && same(&cpu, &gpu, bound) && strcmp(gpu.x->step[gpu.x->nstep - 1].ran, by) == 0;
    for (uint32_t i = 0; i < nasked; i++) fine = fine && strstr(said(), asked[i]);
    if (!fine) {
        fprintf(stderr, "%s%s\nby %s, and the libraries were asked for\n%s", text, ctx->error, gpu.x && gpu.x->nstep ? gpu.x->step[gpu.x->nstep - 1].ran : "nobody", said());
        for (uint32_t i = 0; i < nasked; i++)
            if (!strstr(said(), asked[i])) fprintf(stderr, "not: %s\n", asked[i]);
    }
    CHECK(fine);
    listen_to(0);
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}
#define RUNS(text, bound, by, ...)                                                                                   \
    do {                                                                                                             \
        static const char *const asked_[] = {__VA_ARGS__};                                                           \
        check_run("graph opset=24 {\n" text "}\n", bound, by, asked_, RL_LEN(asked_));                               \
    } while (0)

/* ---- cuBLASLt: its A is our b, its rows our columns ---- */

TEST(products) {
    RUNS("  in %x f32[5,8]\n  in %w f32[8,4]\n  %y = MatMul(%x, %w)\n  out %y\n", 1e-6, "cuBLASLt", "cuBLASLt 4x5x8 batch 1 A B ld 4 8 4 4 epilogue 1 alpha 1 beta 0");
    RUNS("  in %x f32[8,5]\n  in %w f32[4,8]\n  in %c f32[4]\n  %y = Gemm(%x, %w, %c) transA=1 transB=1 alpha=0.5\n  out %y\n", 1e-6, "cuBLASLt",
         "cuBLASLt 4x5x8 batch 1 A' B' ld 8 5 4 4 epilogue 4 alpha 0.5 beta 0");
    RUNS("  in %x f32[5,8]\n  in %w f32[8,4]\n  in %c f32[5,4]\n  %y = Gemm(%x, %w, %c) beta=2.0\n  out %y\n", 1e-6, "cuBLASLt", "epilogue 1 C alpha 1 beta 2");
    /* few rows are own kernels', but of doubles, and where k does not lie side by side */
    RUNS("  in %x f32[4,8]\n  in %w f32[8,4]\n  %y = MatMul(%x, %w)\n  out %y\n", 1e-6, "cuda", "");
    RUNS("  in %x f64[4,8]\n  in %w f64[8,4]\n  %y = MatMul(%x, %w)\n  out %y\n", 1e-12, "cuBLASLt", "cuBLASLt 4x4x8");
    RUNS("  in %x f32[8,4]\n  in %w f32[8,4]\n  %y = Gemm(%x, %w) transA=1\n  out %y\n", 1e-6, "cuBLASLt", "cuBLASLt 4x4x8");
    /* heads, where they lie: [N,S,H,D] as [N,H,S,D], and K' */
    RUNS("  in %x f32[2,6,12]\n  in %z f32[2,6,12]\n  const %s i64[4] {2,6,3,4}\n  %a = Reshape(%x, %s)\n  %b = Reshape(%z, %s)\n"
         "  %q = Transpose(%a) perm=[0,2,1,3]\n  %k = Transpose(%b) perm=[0,2,3,1]\n  %y = MatMul(%q, %k)\n  out %y\n", 1e-6, "cuBLASLt",
         "cuBLASLt 6x6x4 batch 6 by address A' B ld 12 12 6 6");
    setenv("RELAYOUT_STAND_IN_FAULT", "by_address:15", 1); /* CUDA 12: head by head, or image by image, whichever are fewer */
    RUNS("  in %x f32[2,6,12]\n  in %z f32[2,6,12]\n  const %s i64[4] {2,6,3,4}\n  %a = Reshape(%x, %s)\n  %b = Reshape(%z, %s)\n"
         "  %q = Transpose(%a) perm=[0,2,1,3]\n  %k = Transpose(%b) perm=[0,2,3,1]\n  %y = MatMul(%q, %k)\n  out %y\n", 1e-6, "cuBLASLt",
         "cuBLASLt 6x6x4 batch 3 A' B ld 12 12 6 6");
    setenv("RELAYOUT_STAND_IN_FAULT", "by_address_matmul:15", 1); /* or it says so late */
    RUNS("  in %x f32[3,6,8]\n  in %z f32[3,6,8]\n  const %s i64[4] {3,6,2,4}\n  %a = Reshape(%x, %s)\n  %b = Reshape(%z, %s)\n"
         "  %q = Transpose(%a) perm=[0,2,1,3]\n  %k = Transpose(%b) perm=[0,2,3,1]\n  %y = MatMul(%q, %k)\n  out %y\n", 1e-6, "cuBLASLt",
         "cuBLASLt 6x6x4 batch 3 A' B ld 8 8 6 6");
    unsetenv("RELAYOUT_STAND_IN_FAULT");
}

static const char weights[] = "  const %w f16[4,4] {1,0.5,2,-1,0,1,1,-2,3,1,-1,0,2,2,1,1}\n  const %b f16[4] {1,-2,0.5,3}\n";

TEST(epilogues) {
    char text[900];
    static const char *const cases[][3] = {
        {"  %s = Add(%m, %b)\n  %y = Relu(%s)\n", "epilogue 6 alpha 1 beta 0"},
        {"  %s = Add(%m, %b)\n  %y = Gelu(%s) approximate=\"tanh\"\n", "epilogue 36 alpha 1 beta 0"},
        {"  %s = Add(%m, %b)\n  %y = Add(%s, %r)\n", "epilogue 4 C alpha 1 beta 1"},
        {"  %s = Add(%m, %b)\n  %t = Add(%s, %r)\n  %y = Relu(%t)\n", "epilogue 6 C alpha 1 beta 1"},
        {"  %s = Add(%m, %b)\n  %y = Gelu(%s)\n", "epilogue 4 alpha 1 beta 0", "+own"},               /* with erf: kernel posts */
        {"  %s = Add(%m, %b)\n  %u = Relu(%s)\n  %y = Add(%u, %r)\n", "epilogue 4 alpha 1 beta 0", "+own"}}; /* the sum after it: too */
    for (size_t i = 0; i < RL_LEN(cases); i++) {
        snprintf(text, sizeof text, "graph opset=24 {\n  in %%x f16[3,5,4]\n  in %%r f16[3,5,4]\n%s  %%m = MatMul(%%x, %%w)\n%s  out %%y\n}\n", weights, cases[i][0]);
        check_run(text, 2e-3, cases[i][2] ? "cuBLASLt+own" : "cuBLASLt", &cases[i][1], 1);
    }
}

/* Of a Gemm whose bias the library does not take it makes the product; few rows are the own kernel's with any bias. */
TEST(biases) {
    static const char *const cases[][3] = {{"9", "[1]", "cuBLASLt+own"}, {"9", "[9,1]", "cuBLASLt+own"}, {"9", "[9,4]", "cuBLASLt"}, {"9", "[1,4]", "cuBLASLt"}, {"2", "[2,1]", "cuda"}};
    char text[300];
    for (size_t i = 0; i < RL_LEN(cases); i++) {
        snprintf(text, sizeof text, "graph opset=24 {\n  in %%x f32[%s,8]\n  in %%w f32[8,4]\n  in %%b f32%s\n  %%y = Gemm(%%x, %%w, %%b)\n  out %%y\n}\n", cases[i][0], cases[i][1]);
        check_run(text, 1e-5, cases[i][2], NULL, 0);
    }
    RUNS("  in %x f64[9,8]\n  in %w f64[8,4]\n  in %b f64[4]\n  %y = Gemm(%x, %w, %b)\n  out %y\n", 1e-9, "cuBLASLt+own", "epilogue 1 alpha 1 beta 0");
}

/* A shape is looked up once. */
TEST(choices) {
    CHECK_CTX(ctx)
    listen_to(1);
    run r = start(ctx, "graph opset=24 {\n  in %x f32[16,16]\n  %a = MatMul(%x, %x)\n  %b = MatMul(%a, %x)\n  %y = MatMul(%b, %x)\n  out %y\n}\n", &rl_backend_cuda);
    uint32_t n = 0;
    for (const char *s = said(); (s = strstr(s, "heuristic")); s++) n++;
    CHECK(r.s == RL_OK && n == 1);
    listen_to(0);
    end(&r);
    rl_ctx_free(ctx);
}

/* ---- cuDNN ---- */

TEST(graphs) {
    RUNS("  in %x f16[2,4,6,5]\n  in %w f16[8,4,3,3]\n  in %b f16[8]\n  %c = Conv(%x, %w, %b) pads=[1,1,1,1]\n  %y = Relu(%c)\n  out %y\n", 2e-3, "cuDNN+own", /* and x made channels-last */
         "cuDNN graph of 3", "tensor 1: type 2 dims 2,4,6,5 strides 120,1,20,4", "tensor 2: type 2 dims 8,4,3,3 strides 36,1,12,4",
         "tensor 3: type 2 dims 2,8,6,5 strides 240,1,40,8", "tensor 4: type 2 dims 1,8,1,1 strides 8,1,8,8", "between");
    RUNS("  in %x f16[2,4,6,5]\n  in %w f16[8,4,3,3]\n  const %b f16[8] {nan,0,1,nan,0,1,2,3}\n  %c = Conv(%x, %w, %b) pads=[1,1,1,1]\n  %y = Relu(%c)\n  out %y\n", 2e-3,
         "cuDNN+own", "cuDNN graph of 3"); /* a NaN stays one */
    RUNS("  in %x f32[2,4,6,5]\n  in %w f32[4,2,3,3]\n  %y = ConvTranspose(%x, %w) group=2 strides=[2,1]\n  out %y\n", 1e-6, "cuDNN",
         "tensor 1: type 0 dims 2,4,6,5 strides 120,30,5,1", "tensor 3: type 0 dims 2,4,13,7 strides 364,91,7,1");
    RUNS("  in %x f32[2,4,6,6]\n  in %w f32[4,4,1,1]\n  in %b f32[4]\n  in %r f32[2,4,6,6]\n  %c = Conv(%x, %w, %b)\n  %s = Add(%c, %r)\n  %y = Relu(%s)\n  out %y\n", 1e-6,
         "cuDNN", "cuDNN graph of 4"); /* the sum before the bias */
    RUNS("  in %x f32[2,4,6,6]\n  in %w f32[4,4,1,1]\n  in %b f32[4]\n  in %r f32[2,4,6,6]\n  %c = Conv(%x, %w, %b)\n  %s = Add(%c, %r)\n  %y = Sigmoid(%s)\n  out %y\n", 1e-6,
         "cuDNN+own", "cuDNN graph of 4", "cuDNN graph of 2"); /* the whole is refused, then the convolution with its bias taken */
    RUNS("  in %x f16[2,4,6,5]\n  in %w f16[8,4,3,3]\n  in %b f16[8]\n  %c = Conv(%x, %w, %b)\n  %y = Sigmoid(%c)\n  out %y\n", 2e-3,
         "cuDNN+own", "cuDNN graph of 3", "cuDNN graph of 2"); /* a model that runs once does not wait for a kernel to be compiled */
    RUNS("  in %x f32[1,3,3,3]\n  in %w f32[4,2,1,1]\n  const %p i64[2] {1,2}\n  %a, %b = Split(%x, %p) axis=1\n  %y = Conv(%b, %w)\n  out %y\n", 1e-6, "cuDNN+own",
         "tensor 1: type 0 dims 1,2,3,3 strides 18,9,3,1"); /* 36 bytes into %x, which is copied */
    RUNS("  in %x f32[2,4,7,6]\n  %y = MaxPool(%x) kernel_shape=[3,2] pads=[1,0,1,1] strides=[2,1]\n  out %y\n", 1e-6, "cuDNN", "tensor 2: type 0 dims 2,4,4,6");
    RUNS("  in %x f32[1,1,2,4]\n  const %c f32[4] {0,nan,0,0}\n  %a = Add(%x, %c)\n  %y = MaxPool(%a) kernel_shape=[2,2] strides=[2,2]\n  out %y\n", 1e-6, "cuDNN", ""); /* NaNs are left out */
    RUNS("  in %x f16[2,4,7,6]\n  %y = AveragePool(%x) kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1\n  out %y\n", 2e-3, "cuDNN", "cuDNN graph of 1");
    RUNS("  in %x f32[2,4,7,6]\n  %y = AveragePool(%x) kernel_shape=[3,3] pads=[1,1,1,1]\n  out %y\n", 1e-6, "cuDNN", "cuDNN graph of 1");
    RUNS("  in %x f16[3,5,8]\n  in %s f16[8]\n  in %b f16[8]\n  %y = LayerNormalization(%x, %s, %b)\n  out %y\n", 2e-3, "cuDNN+own", /* the scale and the bias made f32 */
         "tensor 1: type 2 dims 15,8,1,1 strides 8,1,1,1", "tensor 3: type 0 dims 1,8,1,1");
    RUNS("  in %x f32[3,5,8]\n  in %s f32[8]\n  %y = RMSNormalization(%x, %s)\n  out %y\n", 1e-5, "cuDNN", "tensor 1: type 0 dims 15,8,1,1");
    RUNS("  in %x f32[2,6,5,4]\n  in %s f32[6]\n  in %b f32[6]\n  %y = InstanceNormalization(%x, %s, %b)\n  out %y\n", 1e-5, "cuDNN", "tensor 1: type 0 dims 2,6,20,1");
    /* few lines that are long: by parts; many: the library's */
    RUNS("  in %x f32[1,2,90,100]\n  in %s f32[2]\n  in %b f32[2]\n  %y = InstanceNormalization(%x, %s, %b)\n  out %y\n", 1e-5, "cuda", "");
    RUNS("  in %x f32[2,9000]\n  in %s f32[9000]\n  in %b f32[9000]\n  %y = LayerNormalization(%x, %s, %b)\n  out %y\n", 1e-5, "cuda", "");
    RUNS("  in %x f32[256,8192]\n  in %s f32[8192]\n  in %b f32[8192]\n  %y = LayerNormalization(%x, %s, %b)\n  out %y\n", 1e-5, "cuDNN", "tensor 1: type 0 dims 256,8192,1,1");
    /* what windows of the library's cannot say is the own kernel's */
    RUNS("  in %x f32[2,4,9,9]\n  %y = MaxPool(%x) kernel_shape=[2,2] dilations=[2,2]\n  out %y\n", 1e-6, "cuda", "");
}

/* A step that launches own kernels beside the library's is not said to be the library's: cuDNN has no name for HardSwish. */
TEST(own_kernels_too) {
    static const char *const after[][2] = {{"Relu", "cuDNN"}, {"HardSwish", "cuDNN+own"}, {"Sigmoid", "cuDNN"}};
    for (size_t i = 0; i < RL_LEN(after); i++) {
        char text[500];
        snprintf(text, sizeof text, "graph opset=24 {\n  in %%x f32[2,4,6,5]\n  const %%w f32[4,4,1,1] {1,2,3,4,-1,2,0,4,5,1,7,3,9,0,2,1}\n  const %%b f32[4] {1,-2,0.5,3}\n"
                 "  %%c = Conv(%%x, %%w, %%b)\n  %%y = %s(%%c)\n  out %%y\n}\n", after[i][0]);
        check_run(text, 1e-5, after[i][1], NULL, 0);
    }
}

#define QUANTIZED "  const %s f32[] {0.02}\n  const %z i8[] {0}\n  const %u f32[] {0.5}\n  const %w i8[4,4,1,1] {1,-2,3,100,5,6,-7,8,9,10,11,-128,13,14,15,127}\n" \
                  "  const %t f32[4] {0.01,0.02,0.5,0.1}\n  const %b i32[4] {50,-90,3,1000}\n"

TEST(bytes) {
    RUNS("  in %x i8[2,4,5,6]\n" QUANTIZED "  %y = QLinearConv(%x, %s, %z, %w, %t, %z, %u, %z, %b) pads=[1,1,1,1]\n  out %y\n", 0, "cuDNN+own",
         "tensor 1: type 4 dims 2,4,5,6 strides 120,1,24,4", "between 17: type 6", "tensor 5: type 0 dims 1,4,1,1", "tensor 3: type 4 dims 2,4,7,8");
    RUNS("  in %x i8[2,4,5,6]\n" QUANTIZED "  const %a i8[] {3}\n  %y = QLinearConv(%x, %s, %a, %w, %t, %z, %u, %z, %b)\n  out %y\n", 0, "cuda", ""); /* dp4a */
    RUNS("  in %x i8[2,4,5,6]\n" QUANTIZED "  %y = ConvInteger(%x, %w)\n  out %y\n", 0, "cuDNN+own", "tensor 3: type 6 dims 2,4,5,6");
}

/* Bytes: A' B, sums in 32 bits; unsigned ones made signed; sizes that 4 does not divide are own tiles'. */
TEST(products_of_bytes) {
    RUNS("  in %x u8[3,5,8]\n  in %w i8[8,4]\n  %y = MatMulInteger(%x, %w)\n  out %y\n", 0, "cuBLASLt+own", "cuBLASLt 4x15x8 batch 1 A' B ld 8 8 4 4 epilogue 1 alpha 1 beta 0 types 3 10");
    RUNS("  in %x u8[2,5,8]\n  in %w u8[2,8,4]\n  const %z u8[] {7}\n  %y = MatMulInteger(%x, %w, %z, %z)\n  out %y\n", 0, "cuBLASLt+own", "cuBLASLt 4x5x8 batch 2 A' B");
    RUNS("  in %x i8[5,4]\n  const %w i8[4,4] {1,-2,3,100,5,6,-7,8,9,10,11,-128,13,14,15,127}\n  const %s f32[] {0.02}\n  const %z i8[] {-3}\n"
         "  const %u f32[] {0.1}\n  %y = QLinearMatMul(%x, %s, %z, %w, %s, %z, %u, %z)\n  out %y\n", 0, "cuBLASLt+own", "cuBLASLt 4x5x4 batch 1 A' B");
    RUNS("  in %x i8[5,7]\n  in %w i8[7,4]\n  %y = MatMulInteger(%x, %w)\n  out %y\n", 0, "cuda", "");
}

/* ---- failures ---- */

static const char net[] =
    "graph opset=24 {\n  in %x f16[1,4,6,6]\n  const %w f16[4,4,1,1] {1,2,3,4,-1,2,0,4,5,1,7,3,9,0,2,1}\n  const %s i64[2] {4,36}\n  const %m f16[36,2] {" "1"
    ",2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9" "}\n"
    "  %c = Conv(%x, %w) @name=\"conv1\"\n  %r = Reshape(%c, %s)\n  %y = MatMul(%r, %m) @name=\"prod1\"\n  out %y\n}\n";

/* Calls of a library that fail: another kernel does it, and the node is named. */
TEST(library_failures) {
    static const struct { const char *fault, *says; } cases[] = {
        {"cudnnBackendExecute:5000", "node 'conv1' (Conv): cuDNN: "}, {"cublasLtMatmul:13", "node 'prod1' (MatMul): cuBLASLt: CUBLAS_STATUS_EXECUTION_FAILED"},
        {"cudnnBackendCreateDescriptor:2000", NULL}, {"cudnnBackendSetAttribute:2000", NULL}, {"cudnnBackendFinalize:2000", NULL},
        {"cudnnBackendGetAttribute:2000", NULL}, {"cublasLtMatmulDescCreate:3", NULL}, {"cublasLtMatrixLayoutCreate:3:2", NULL},
        {"cublasLtMatmulDescSetAttribute:3:2", NULL}, {"cublasLtMatmulAlgoGetHeuristic:15", NULL}, {"cublasLtMatmulPreferenceCreate:3", NULL},
        {"cublasLtCreate:1", NULL}, {"cudnnCreate:1001", NULL}, {"cudnnSetStream:1001", NULL}};
    for (size_t i = 0; i < RL_LEN(cases); i++) {
        CHECK_CTX(ctx)
        rl_text notes = {0};
        run cpu = start(ctx, net, &rl_backend_cpu);
        setenv("RELAYOUT_STAND_IN_FAULT", cases[i].fault, 1);
        run gpu = start(ctx, net, &rl_backend_cuda);
        unsetenv("RELAYOUT_STAND_IN_FAULT");
        notes.mem = &gpu.g->mem;
        rl_put(&notes, "%s", "");
        if (gpu.s == RL_OK) rl_device_notes(gpu.x, &notes);
        bool named = cases[i].says ? strstr(notes.p, cases[i].says) && strstr(notes.p, "; another kernel does it\n") : !*notes.p;
        if (!same(&cpu, &gpu, 2e-3) || !named) fprintf(stderr, "%s: %s\n%s", cases[i].fault, ctx->error, notes.p);
        CHECK(same(&cpu, &gpu, 2e-3) && named);
        end(&cpu), end(&gpu);
        rl_ctx_free(ctx);
    }
}

/* Of two cuBLASLt the newest that starts serves. */
TEST(older_library) {
    CHECK_CTX(ctx)
    setenv("RELAYOUT_STAND_IN_FAULT", "newer than the driver:1", 1);
    run gpu = start(ctx, net, &rl_backend_cuda);
    unsetenv("RELAYOUT_STAND_IN_FAULT");
    rl_text report = {.mem = &gpu.g->mem};
    if (gpu.s == RL_OK) rl_device_report(gpu.x, &report);
    CHECK(gpu.s == RL_OK && strstr(report.p, "cuBLASLt 120000") && strcmp(gpu.x->step[gpu.x->nstep - 1].ran, "cuBLASLt") == 0);
    end(&gpu);
    rl_ctx_free(ctx);
}

/* So does the second of several calls for one product, of which the first made a part of the output. */
TEST(failing_batches) {
    static const char heads[] =
        "graph opset=24 {\n  in %x f32[3,6,8]\n  in %z f32[3,6,8]\n  const %s i64[4] {3,6,2,4}\n  %a = Reshape(%x, %s)\n  %b = Reshape(%z, %s)\n"
        "  %q = Transpose(%a) perm=[0,2,1,3]\n  %k = Transpose(%b) perm=[0,2,3,1]\n  %y = MatMul(%q, %k) @name=\"prod1\"\n  out %y\n}\n";
    CHECK_CTX(ctx)
    run cpu = start(ctx, heads, &rl_backend_cpu);
    setenv("RELAYOUT_STAND_IN_FAULT", "cublasLtMatmul:13:2", 1), setenv("RELAYOUT_STAND_IN_FAULT_TOO", "by_address:15", 1);
    run gpu = start(ctx, heads, &rl_backend_cuda);
    unsetenv("RELAYOUT_STAND_IN_FAULT"), unsetenv("RELAYOUT_STAND_IN_FAULT_TOO");
    rl_text notes = {.mem = &gpu.g->mem};
    rl_put(&notes, "%s", "");
    if (gpu.s == RL_OK) rl_device_notes(gpu.x, &notes);
    CHECK(same(&cpu, &gpu, 1e-6) && strstr(notes.p, "node 'prod1' (MatMul): cuBLASLt: CUBLAS_STATUS_EXECUTION_FAILED; another kernel does it\n"));
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* As a public entry: what jumps for want of memory ends here. */
static void start_protected(run *r, rl_ctx *ctx, const char *text) {
    if (RL_PROTECT(ctx)) r->s = RL_ENOMEM;
    else start_at(r, ctx, text, &rl_backend_cuda);
}

static rl_status run_protected(rl_ctx *ctx, run *r) {
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    rl_tensor_drop(&r->out[0]);
    return rl_exec_run(r->x, r->in, r->out);
}

/* Calls of the driver that fail: one line that says which, and at which node where it is known. */
TEST(driver_failures) {
    static const struct { const char *fault, *says; rl_status s; } cases[] = {
        {"cuInit:100", "no CUDA device: the driver says: an error (100)", RL_ELIMIT}, {"cuDeviceGetCount:100", "no CUDA device", RL_ELIMIT},
        {"cuDeviceGetName:1", "CUDA: the device's name", RL_EINTERNAL}, {"cuDeviceGetAttribute:1", "CUDA: the device's capability", RL_EINTERNAL},
        {"cuDevicePrimaryCtxRetain:2", "CUDA: the device's context: out of memory (2)", RL_ENOMEM}, {"cuStreamCreate:1", "CUDA: a stream", RL_EINTERNAL},
        {"cuModuleLoadData:209", "CUDA: stand-in, compute capability 9.0", RL_EINTERNAL}, {"cuModuleGetFunction:500", "CUDA: rl_k_strided1", RL_EINTERNAL},
        {"cuDriverGetVersion:1", "CUDA: the driver's version", RL_EINTERNAL}, {"cuFuncGetAttribute:1", "CUDA: a kernel's architecture", RL_EINTERNAL},
        {"cuMemAllocHost_v2:2", "CUDA: pinned memory: out of memory (2)", RL_ENOMEM}, {"cuEventCreate:1", "CUDA: an event", RL_EINTERNAL},
        {"cuMemAlloc_v2:2", "no memory left on the device", RL_ENOMEM}, {"cuMemAlloc_v2:2:3", "no memory left on the device for ", RL_ENOMEM},
        {"cuMemAlloc_v2:2:5", "node 'conv1' (Conv): no memory left on the device for ", RL_ENOMEM},
        {"cuMemcpyHtoDAsync_v2:719:2", "CUDA: a copy to the device: unspecified launch failure (719)", RL_EINTERNAL},
        {"cuStreamSynchronize:700", "an illegal memory access was encountered (700); RELAYOUT_CUDA_SYNC=1 tells at which node", RL_EINTERNAL},
        {"cuMemcpyDtoHAsync_v2:719", "CUDA: a copy from the device", RL_EINTERNAL}};
    for (size_t i = 0; i < RL_LEN(cases); i++) {
        CHECK_CTX(ctx)
        setenv("RELAYOUT_STAND_IN_FAULT", cases[i].fault, 1);
        run gpu;
        start_protected(&gpu, ctx, net);
        rl_status s = gpu.s;
        unsetenv("RELAYOUT_STAND_IN_FAULT");
        bool fine = s == cases[i].s && strstr(ctx->error, cases[i].says) && !strchr(ctx->error, '\n');
        if (!fine) fprintf(stderr, "%s: %d %s\n", cases[i].fault, (int)s, ctx->error);
        CHECK(fine);
        end(&gpu);
        rl_ctx_free(ctx);
    }
}

/* A device that is lost gives no memory: that it is lost is said, not that it has none left. */
TEST(lost_memory) {
    CHECK_CTX(ctx)
    run gpu;
    setenv("RELAYOUT_STAND_IN_FAULT", "cuMemAlloc_v2:700:5", 1), setenv("RELAYOUT_STAND_IN_FAULT_TOO", "cuStreamSynchronize:700", 1);
    start_protected(&gpu, ctx, net);
    unsetenv("RELAYOUT_STAND_IN_FAULT"), unsetenv("RELAYOUT_STAND_IN_FAULT_TOO");
    CHECK(gpu.s != RL_OK && strstr(ctx->error, "an illegal memory access was encountered (700); RELAYOUT_CUDA_SYNC=1 tells at which node") && !strstr(ctx->error, "memory left"));
    end(&gpu);
    rl_ctx_free(ctx);
}

/* With RELAYOUT_CUDA_SYNC=1 the node that lost the device is named; a kernel that cannot be launched is left to the CPU. */
TEST(named_nodes) {
    static const char relu[] = "graph opset=24 {\n  in %x f32[2,3]\n  %y = Erf(%x) @name=\"erf1\"\n  out %y\n}\n";
    CHECK_CTX(ctx)
    setenv("RELAYOUT_CUDA_SYNC", "1", 1);
    setenv("RELAYOUT_STAND_IN_FAULT", "cuStreamSynchronize:700", 1);
    run lost = start(ctx, relu, &rl_backend_cuda);
    CHECK(lost.s == RL_EINTERNAL && strncmp(ctx->error, "node 'erf1' (Erf): CUDA: kernels on the device: an illegal", 58) == 0);
    unsetenv("RELAYOUT_CUDA_SYNC");
    setenv("RELAYOUT_STAND_IN_FAULT", "cuLaunchKernelEx:1", 1);
    run cpu = start(ctx, relu, &rl_backend_cpu), left = start(ctx, relu, &rl_backend_cuda);
    rl_text notes = {.mem = &left.g->mem};
    rl_device_notes(left.x, &notes);
    CHECK(same(&cpu, &left, 1e-6) && notes.p && strstr(notes.p, "node 'erf1' (Erf): CUDA: each_f32: an error (1); the CPU does it\n"));
    unsetenv("RELAYOUT_STAND_IN_FAULT");
    end(&lost), end(&cpu), end(&left);
    rl_ctx_free(ctx);
}

/* A library that fails while its graph is recorded leaves the step to a kernel that wants other constants: they go there beside the recording. Where there
 * is no memory for them, the run ends, and the next one is not part of the recording. */
TEST(recordings) {
    static const char conv[] = "graph opset=24 {\n  in %x i8[2,4,5,6]\n" QUANTIZED
                               "  %y = QLinearConv(%x, %s, %z, %w, %t, %z, %u, %z, %b) pads=[1,1,1,1] @name=\"conv1\"\n  out %y\n}\n";
    for (uint32_t full = 0; full < 2; full++) {
        CHECK_CTX(ctx)
        run cpu = start(ctx, conv, &rl_backend_cpu), gpu = start(ctx, conv, &rl_backend_cuda);
        CHECK(same(&cpu, &gpu, 0) && strncmp(gpu.x->step[0].ran, "cuDNN", 5) == 0);
        setenv("RELAYOUT_STAND_IN_FAULT", full ? "cuMemAlloc_v2:2" : "cudnnBackendExecute:5000", 1);
        if (full) setenv("RELAYOUT_STAND_IN_FAULT_TOO", "cudnnBackendExecute:5000", 1);
        gpu.s = run_protected(ctx, &gpu);
        unsetenv("RELAYOUT_STAND_IN_FAULT"), unsetenv("RELAYOUT_STAND_IN_FAULT_TOO");
        CHECK(gpu.s == (full ? RL_ENOMEM : RL_OK));
        CHECK(full ? strstr(ctx->error, "node 'conv1' (QLinearConv): no memory left on the device for ") != NULL
                   : same(&cpu, &gpu, 0) && rl_device_replays(gpu.x) && strcmp(gpu.x->step[0].ran, "cuda") == 0);
        for (uint32_t i = 0; i < 3; i++) {
            gpu.s = run_protected(ctx, &gpu);
            if (gpu.s != RL_OK) fprintf(stderr, "%s\n", ctx->error);
            CHECK(same(&cpu, &gpu, 0));
        }
        end(&cpu), end(&gpu);
        rl_ctx_free(ctx);
    }
}

/* Own kernels do what the libraries would, though these are there. */
TEST(own_kernels) {
    static const char net2[] = "graph opset=24 {\n  in %x f32[5,8]\n  in %w f32[8,4]\n  %y = MatMul(%x, %w)\n  out %y\n}\n";
    CHECK_CTX(ctx)
    setenv("RELAYOUT_CUDA_LIBRARIES", "0", 1);
    run cpu = start(ctx, net2, &rl_backend_cpu), gpu = start(ctx, net2, &rl_backend_cuda);
    unsetenv("RELAYOUT_CUDA_LIBRARIES");
    CHECK(same(&cpu, &gpu, 1e-6) && strcmp(gpu.x->step[0].ran, "cuda") == 0);
    CHECK(strstr(gpu.rt->device->describe(gpu.rt), "own kernels only"));
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* Kernels begin before the one before them has ended where the driver records that, and nobody forbids it. */
TEST(overlap) {
    static const char relu[] = "graph opset=24 {\n  in %x f32[2,3]\n  %y = Erf(%x)\n  out %y\n}\n";
    static const struct { const char *name, *value; bool early; } of[] = {
        {"RELAYOUT_CUDA_OVERLAP", "1", true}, {"RELAYOUT_CUDA_OVERLAP", "0", false}, {"RELAYOUT_STAND_IN_VERSION", "12030", true}, {"RELAYOUT_STAND_IN_VERSION", "12020", false}};
    for (size_t i = 0; i < RL_LEN(of); i++) {
        CHECK_CTX(ctx)
        setenv(of[i].name, of[i].value, 1);
        listen_to(1);
        run cpu = start(ctx, relu, &rl_backend_cpu), gpu = start(ctx, relu, &rl_backend_cuda);
        CHECK(same(&cpu, &gpu, 1e-6) && strstr(said(), "launch") && !strstr(said(), "launch early") == !of[i].early);
        listen_to(0);
        unsetenv(of[i].name);
        end(&cpu), end(&gpu);
        rl_ctx_free(ctx);
    }
}

#define BRANCHES                                                                                                     \
    "graph opset=24 {\n  in %x f32[2,4,5,5]\n  in %w f32[4,4,1,1]\n  in %v f32[5,5]\n  %a = Conv(%x, %w)\n  %b = Conv(%a, %w)\n  %c = MatMul(%x, %v)\n"  \
    "  %d = MatMul(%x, %v)\n  %e = Erf(%c)\n  %f = Erf(%e)\n  %g = Sum(%a, %b, %d)\n  %y = Max(%g, %f)\n  out %y\n}\n"

/* In branches a kernel begins early behind the one that was recorded last, if it comes after that alone; libraries' calls work in memory of their own each.
 * Where the driver does not say what comes after what, or not as asked, the recording stays as it was. */
static void check_branches(const char *fault, const char *wanted) {
    CHECK_CTX(ctx)
    run cpu = start(ctx, BRANCHES, &rl_backend_cpu), gpu = start(ctx, BRANCHES, &rl_backend_cuda);
    if (fault) setenv("RELAYOUT_STAND_IN_FAULT", fault, 1);
    listen_to(1);
    for (uint32_t k = 0; k < 4; k++) CHECK(run_again(&gpu) && same(&cpu, &gpu, 1e-6));
    const char *is = rl_device_branches(gpu.x);
    bool as_wanted = rl_device_replays(gpu.x) && is && strstr(is, wanted) && strstr(said(), "launch early") && (fault || strstr(said(), "launch\n"));
    if (!as_wanted) fprintf(stderr, "%s: branches: %s\n", fault ? fault : "no fault", is ? is : "not tried");
    CHECK(as_wanted);
    listen_to(0);
    unsetenv("RELAYOUT_STAND_IN_FAULT");
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* Wherever memory runs out: the run ends, or goes on without branches; and the next ones are right. */
static void check_without_memory(uint32_t from, uint32_t *failed, uint32_t *went_on) {
    CHECK_CTX(ctx)
    run cpu = start(ctx, BRANCHES, &rl_backend_cpu), gpu = start(ctx, BRANCHES, &rl_backend_cuda);
    char fault[40];
    snprintf(fault, sizeof fault, "cuMemAlloc_v2:2:%u", from);
    setenv("RELAYOUT_STAND_IN_FAULT", fault, 1);
    rl_status s = gpu.s = run_protected(ctx, &gpu);
    unsetenv("RELAYOUT_STAND_IN_FAULT");
    CHECK(s == RL_ENOMEM || same(&cpu, &gpu, 1e-6));
    *failed += s == RL_ENOMEM;
    *went_on += s == RL_OK && rl_device_branches(gpu.x) && strstr(rl_device_branches(gpu.x), "bytes left for them");
    for (uint32_t i = 0; i < 3; i++) {
        gpu.s = run_protected(ctx, &gpu);
        CHECK(same(&cpu, &gpu, 1e-6));
    }
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

TEST(branches) {
    uint32_t failed = 0, went_on = 0;
    static const char *const faults[] = {"cuStreamGetCaptureInfo_v3:1", "cuStreamUpdateCaptureDependencies_v2:1", "cuStreamUpdateCaptureDependencies_v2:1:3", "cuGraphInstantiateWithFlags:1:2"};
    setenv("RELAYOUT_CUDA_BRANCHES", "1", 1);
    check_branches(NULL, " come one after the other at most; ");
    for (size_t i = 0; i < RL_LEN(faults); i++) check_branches(faults[i], "CUDA: a recording: an error (1)");
    for (uint32_t from = 1; from < 24; from++) check_without_memory(from, &failed, &went_on);
    CHECK(failed > 0 && went_on > 0);
    unsetenv("RELAYOUT_CUDA_BRANCHES");
}

static bool find(void *file, const char *name, void *field) {
    void *f = file ? dlsym(file, name) : NULL;
    if (f) memcpy(field, &f, sizeof f);
    return f != NULL;
}

int main(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!find(driver, "stand_in_listen", &listen_to) || !find(driver, "stand_in_said", &said)) {
        fprintf(stderr, "libcuda.so.1 is not the stand-in\n");
        return 1;
    }
    RUN(products);
    RUN(epilogues);
    RUN(biases);
    RUN(choices);
    RUN(graphs);
    RUN(own_kernels_too);
    RUN(bytes);
    RUN(products_of_bytes);
    RUN(library_failures);
    RUN(older_library);
    RUN(failing_batches);
    RUN(driver_failures);
    RUN(lost_memory);
    RUN(named_nodes);
    RUN(recordings);
    RUN(own_kernels);
    RUN(overlap);
    RUN(branches);
    return check_done();
}
