/* gpu_dnn [all]: cuDNN's answers to the graphs that cuda/dnn.c makes, without a GPU: cuDNN 9.8 and newer choose engines for a device that is told in words, an
 * H200 here, and compile their kernels.  That a kernel is then not loaded, for want of a driver, is all that is missing to a plan.
 *
 * Skipped, with a line, where there is no cuDNN; the toolkit's stub of libcuda.so.1 stands in for the driver. */
#include <dlfcn.h>
#include <string.h>

#include "../../cuda/libs_internal.h"
#include "../../runtime/rows.h"
#include "check.h"

static const char h200[] =
    "{\"deviceName\":\"NVIDIA H200\",\"deviceVer\":900,\"driverVer\":13000,\"cudaDeviceId\":0,\"multiProcessorCount\":132,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,\"totalGlobalMem\":150000000000,\"warpSize\":32,\"regsPerBlock\":65536,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
    "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64]}";

static rl_libs *libs;
static bool all; /* else a few of the ops: each kernel takes cuDNN a second to compile */

/* A convolution of 64 channels, 3 by 3, on 32 images of 56 by 56; last: channels-last. */
static rl_dnn_conv_job job_of(rl_dtype t, bool last, bool transposed, uint32_t groups) {
    static const char some;
    rl_dnn_conv_job j;
    int64_t c = 64, per = c / groups, h = 56;
    memset(&j, 0, sizeof j);
    j.type = t, j.n = 32, j.groups = groups;
    j.p.r = 2, j.p.transposed = transposed, j.p.x = j.p.w = &some, j.p.cin = j.p.cout = (uint32_t)per;
    for (uint32_t i = 0; i < 2; i++) {
        j.p.in[i] = (int32_t)h, j.p.out[i] = rl_divisor_of((uint32_t)h), j.p.kernel[i] = 3, j.p.stride[i] = j.p.dilation[i] = j.p.before[i] = 1;
        j.p.x_step[i] = j.p.y_step[i] = (i ? 1 : h) * (last ? c : 1);
        j.p.w_step[i] = (i ? 1 : 3) * (last ? per : 1);
    }
    j.p.x_n = j.p.y_n = c * h * h, j.p.x_c = j.p.y_c = last ? 1 : h * h;
    j.p.w_o = 9 * per, j.p.w_i = last ? 1 : 9;
    if (transposed) j.p.w_o = last ? 1 : 9, j.p.w_i = 9 * per;
    return j;
}

static void add(rl_dnn_conv_job *j, rl_row_op op, float p, float q) {
    static const char some;
    if (rl_row_is_binary(op)) j->operand[j->npost] = &some;
    j->post[j->npost++] = (rl_p_post){(uint32_t)op, p, q, 0};
}

static void check_answer(const char *what, rl_dtype type, const rl_dnn_answer *a, bool wanted) {
    if (a->made != wanted)
        fprintf(stderr, "%s %s: %u configurations, %u tried, %s: %s\n", rl_dtype_name(type), what, a->taken, a->engines, a->made ? "made" : "none", a->why);
    CHECK(a->made == wanted);
}

static void check(const char *what, const rl_dnn_conv_job *j, bool wanted) {
    rl_dnn_answer a;
    rl_dnn_ask_conv(libs, j, &a);
    check_answer(what, j->type, &a, wanted);
}

/* Everything that rl_gpu_wants_channels_last sends there, with all that may follow it: one plan. */
TEST(joined) {
    static const struct { const char *name; rl_row_op op; float p, q; } each[] = {
        {"Relu", RL_ROW_RELU, 0, 0}, {"LeakyRelu", RL_ROW_LEAKY_RELU, 0.1f, 0}, {"Clip", RL_ROW_CLIP, 0, 6}, {"Sigmoid", RL_ROW_SIGMOID, 0, 0},
        {"SiLU", RL_ROW_SILU, 1, 0}, {"Tanh", RL_ROW_TANH, 0, 0}, {"Gelu", RL_ROW_GELU, 0, 0}, {"Gelu, tanh", RL_ROW_GELU_TANH, 0, 0},
        {"Elu", RL_ROW_ELU, 1, 0}, {"Add", RL_ROW_ADD, 0, 0}, {"Mul", RL_ROW_MUL, 0, 0}};
    static const char some;
    static const rl_dtype types[] = {RL_F16, RL_BF16};
    for (size_t t = 0; t < (all ? RL_LEN(types) : 1); t++) {
        rl_dnn_conv_job plain = job_of(types[t], true, false, 1), biased = plain, sum;
        biased.p.bias = &some;
        check("Conv", &plain, true), check("Conv, bias", &biased, true);
        for (size_t i = 0; i < RL_LEN(each); i += all ? 1 : 4) {
            rl_dnn_conv_job j = biased;
            add(&j, each[i].op, each[i].p, each[i].q);
            check(each[i].name, &j, true);
        }
        sum = biased;
        add(&sum, RL_ROW_ADD, 0, 0), add(&sum, RL_ROW_RELU, 0, 0);
        check("Conv, bias, sum, Relu", &sum, true);
    }
}

/* float32, row-major: of its engines only those with all its bits are taken, which are far down the list that the heuristics make. */
TEST(whole) {
    static const uint32_t kernels[] = {1, 3};
    for (size_t i = 0; i < RL_LEN(kernels); i++) {
        rl_dnn_conv_job j = job_of(RL_F32, false, false, 1);
        rl_dnn_answer a;
        for (uint32_t d = 0; d < 2; d++) j.p.kernel[d] = (int32_t)kernels[i], j.p.before[d] = kernels[i] == 3, j.p.w_step[d] = d ? 1 : kernels[i];
        j.p.w_i = kernels[i] * kernels[i], j.p.w_o = 64 * j.p.w_i;
        rl_dnn_ask_conv(libs, &j, &a);
        check_answer("Conv, row-major", RL_F32, &a, true);
        CHECK(!a.fallback);
    }
}

/* What cuDNN has no name for: kernel posts does it (op_conv.c). And float32, row-major, joined. */
TEST(others) {
    static const char some;
    rl_dnn_conv_job j = job_of(RL_F16, true, false, 1);
    add(&j, RL_ROW_HARD_SWISH, 0, 0);
    check("HardSwish", &j, false);
    j = job_of(RL_F32, false, false, 1);
    j.p.bias = &some;
    add(&j, RL_ROW_RELU, 0, 0);
    check("Conv, bias, Relu, row-major", &j, true);
    j.npost = 0;
    add(&j, RL_ROW_ADD, 0, 0), add(&j, RL_ROW_RELU, 0, 0);
    check("Conv, bias, sum, Relu, row-major", &j, true); /* as the sum, the bias, Relu */
    j.npost = 0;
    add(&j, RL_ROW_ADD, 0, 0), add(&j, RL_ROW_SIGMOID, 0, 0);
    check("Conv, bias, sum, Sigmoid, row-major", &j, false); /* so by two: a plan and kernel posts */
}

TEST(kinds) {
    rl_dnn_conv_job j = job_of(RL_F16, true, true, 1);
    check("ConvTranspose", &j, true);
    j = job_of(RL_F32, false, true, 1);
    check("ConvTranspose, row-major", &j, true);
    j = job_of(RL_F16, true, false, 64);
    check("by channels", &j, true);
    j = job_of(RL_F16, true, false, 4);
    check("by groups", &j, true);
}

/* Bytes, channels-last: to 32 bits, and to bytes by a scale for each channel. */
TEST(bytes) {
    static const char some;
    rl_dnn_conv_job j = job_of(RL_I8, true, false, 1);
    check("Conv of bytes", &j, true);
    j.p.bias = &some;
    check("Conv of bytes, bias", &j, true);
    j.scale = &some, j.least = -128;
    check("Conv of bytes, bias, scale", &j, true);
    j.p.bias = NULL;
    check("Conv of bytes, scale", &j, true);
    j = job_of(RL_I8, true, false, 64);
    check("Conv of bytes by channels", &j, true);
    j = job_of(RL_I8, true, false, 4);
    check("Conv of bytes by groups", &j, true);
}

static rl_dnn_conv_job vectors_of(uint32_t v) {
    rl_dnn_conv_job j = job_of(RL_I8, false, false, 1);
    int64_t c = 64 / v, h = 56;
    j.vectors = v;
    j.p.x_n = j.p.y_n = c * h * h, j.p.w_o = 9 * c;
    return j;
}

/* Channels that lie together by 4 or 32: one number for all channels, and nothing else, is what cuDNN has. */
TEST(vectors) {
    static const char some;
    for (uint32_t v = 4; v <= 32; v *= 8) {
        rl_dnn_conv_job j = vectors_of(v);
        j.alpha = 0.25f;
        check("Conv of vectors", &j, true);
        j.alpha = 0, j.scale = &some, j.least = -128;
        check("Conv of vectors, scales", &j, false); /* so by dp4a */
    }
}

/* Numbers of 4 bits: cuDNN has the type's name, and no convolution, channels-last or in vectors of 64 (NCHW64), with sums of 32 bits. */
TEST(nibbles) {
#if CUDNN_VERSION >= 91900
    rl_dnn_conv_job last = job_of(RL_I4, true, false, 1), vectors = vectors_of(64);
    vectors.type = RL_I4;
    check("Conv of 4 bits", &last, false);
    check("Conv of vectors of 4 bits", &vectors, false);
#endif
}

static rl_dnn_view view_of(int64_t n, int64_t c, int64_t h, bool last) {
    rl_dnn_view v;
    memset(&v, 0, sizeof v);
    v.rank = 4;
    v.dim[0] = n, v.dim[1] = c, v.dim[2] = v.dim[3] = h;
    v.stride[0] = c * h * h, v.stride[1] = last ? 1 : h * h, v.stride[2] = last ? c * h : h, v.stride[3] = last ? c : 1;
    return v;
}

TEST(pools) {
    static const rl_dtype types[] = {RL_F16, RL_BF16, RL_F32};
    for (uint32_t op = RL_DNN_POOL_MAX; op <= RL_DNN_POOL_MEAN_OF_ALL; op++)
        for (size_t t = 0; t < (all ? RL_LEN(types) : 1); t++) {
            rl_dnn_pool_job j;
            rl_dnn_answer a;
            memset(&j, 0, sizeof j);
            j.op = op, j.type = types[t], j.x = view_of(32, 64, 112, t < 2), j.y = view_of(32, 64, 56, t < 2);
            for (uint32_t i = 0; i < 2; i++) j.window[i] = 3, j.step[i] = 2, j.before[i] = 1;
            rl_dnn_ask_pool(libs, &j, &a);
            check_answer(op == RL_DNN_POOL_MAX ? "MaxPool" : "AveragePool", types[t], &a, true);
        }
}

TEST(norms) {
    static const rl_dtype types[] = {RL_F16, RL_BF16, RL_F32};
    static const char *const names[] = {"LayerNormalization", "RMSNormalization", "InstanceNormalization"};
    for (uint32_t op = RL_DNN_NORM_LAYER; op <= RL_DNN_NORM_INSTANCE; op++)
        for (size_t t = 0; t < (all ? RL_LEN(types) : 1); t++) {
            rl_dnn_norm_job j;
            rl_dnn_answer a;
            memset(&j, 0, sizeof j);
            bool in = op == RL_DNN_NORM_INSTANCE;
            j.op = op, j.type = types[t], j.x = in ? view_of(8, 64, 32, t < 2) : view_of(6272, 768, 1, true), j.biased = op != RL_DNN_NORM_RMS;
            rl_dnn_ask_norm(libs, &j, &a);
            check_answer(names[op], types[t], &a, true);
        }
}

int main(int argc, char **argv) {
    all = argc > 1 && strcmp(argv[1], "all") == 0;
    rl_ctx *ctx = rl_ctx_new(0);
    rl_gpu *g;
    if (!ctx || RL_PROTECT(ctx)) return 1;
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) dlopen(RL_CUDA_STUB, RTLD_NOW | RTLD_GLOBAL); /* by its name, which is the driver's */
    if (rl_gpu_open(ctx, &g) != RL_OK) return 1;
    libs = rl_libs_open(g);
    if (!dlopen("libcuda.so.1", RTLD_NOW) || !rl_dnn_pretend(libs, h200)) {
        printf("skipped: no cuDNN 9.8 that can be asked without a device: %s\n", rl_libs_say(libs));
        return 0;
    }
    RUN(joined);
    RUN(whole);
    RUN(others);
    RUN(kinds);
    RUN(bytes);
    RUN(vectors);
    RUN(nibbles);
    RUN(pools);
    RUN(norms);
    rl_libs_close(libs);
    rl_gpu_close(g);
    rl_ctx_free(ctx);
    return check_done();
}
