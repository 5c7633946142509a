/* Runs with a device (runtime/device.h, cuda/backend.c) on an emulated one: several runs of a graph, its inputs' values and then
 * their sizes changing, against the CPU; what is recorded, what runs where, what is said when something is wrong. */
#include <stdlib.h>

#include "../../cuda/pool.h"
#include "../../runtime/kernels.h"
#include "gpu_run.h"

static const char net[] =
    "graph opset=21 {\n"
    "  in %x f32[N,4,6,6]\n"
    "  const %w f32[8,4,1,1] {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32}\n"
    "  const %s i64[3] {0,8,-1}\n"
    "  %a = Conv(%x, %w)\n"
    "  %b = Relu(%a)\n"
    "  %c = Reshape(%b, %s)\n"
    "  %d = Transpose(%c) perm=[0,2,1]\n"
    "  %e = MatMul(%c, %d)\n"
    "  %y = Softmax(%e) axis=-1\n"
    "  %z = ReduceMean(%d) keepdims=0\n"
    "  out %y\n  out %z\n}\n";
static const char falls[] =
    "graph opset=21 opset.ai.onnx.ml=1 {\n  in %x f32[N,8]\n  %r = Relu(%x)\n  %v = ai.onnx.ml::Binarizer(%r) threshold=0.25\n  %y = Neg(%v)\n  out %y\n  out %v\n}\n";
static const char moves[] =
    "graph opset=21 {\n  in %x f32[N,6,40,50]\n  %c = Concat(%x, %x) axis=1\n  %y = Relu(%c)\n  %z = ReduceMax(%y) keepdims=0\n  out %y\n  out %z\n}\n";
static const char pointwise[] = "graph opset=21 {\n  in %x f32[N,6,4,5]\n  %e = Exp(%x)\n  %t = Tanh(%e)\n  %y = Neg(%t)\n  %z = ReduceMax(%y) keepdims=0\n  out %y\n  out %z\n}\n";
static const char picks[] =
    "graph opset=21 {\n  in %x f32[N,8]\n  in %i i64[2,2]\n  %y = Gather(%x, %i) axis=1\n  out %y\n}\n";

/* The same as another float type, four dims. */
static void give(run *r, rl_dtype t, const int64_t *dim, uint32_t seed) {
    give_floats(r, 0, 4, dim, seed);
    rl_tensor wide = r->in[0];
    r->in[0] = rl_tensor_new(r->rt, t, 4, dim);
    rl_convert(r->rt, &r->in[0], &wide, true);
    rl_tensor_drop(&wide);
}

/* Within `bound` of the largest value. */
static bool close_floats(const rl_tensor *a, const rl_tensor *b, float bound) {
    float most = 0, worst = 0;
    if (!rl_same_dims(a, b)) return false;
    for (int64_t i = 0; i < rl_numel(a); i++) {
        float u = ((float *)rl_data(a))[i], v = ((float *)rl_data(b))[i];
        most = fmaxf(most, fabsf(u)), worst = fmaxf(worst, u == v ? 0 : fabsf(u - v));
    }
    return worst <= bound * most;
}

/* The first run of a size is plain, the second records, later ones replay: all are the CPU's. */
TEST(again_and_again) {
    static const int64_t sizes[] = {2, 2, 2, 2, 3, 3, 3, 2, 2, 1};
    CHECK_CTX(ctx)
    run cpu = start(ctx, net, &rl_backend_cpu), gpu = start(ctx, net, &rl_backend_cuda);
    double seconds;
    gpu.x->clock = &seconds;
    for (uint32_t k = 0; k < RL_LEN(sizes); k++) {
        seconds = -1;
        give_floats(&cpu, 0, 4, (int64_t[]){sizes[k], 4, 6, 6}, k);
        give_floats(&gpu, 0, 4, (int64_t[]){sizes[k], 4, 6, 6}, k);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && same_floats(&cpu.out[1], &gpu.out[1]));
        CHECK(rl_device_replays(gpu.x) == (k && sizes[k] == sizes[k - 1]));
        CHECK(seconds >= 0 ? rl_device_replays(gpu.x) && seconds < 10 : !rl_device_replays(gpu.x)); /* by the device's clock */
        drop(&cpu), drop(&gpu);
    }
    for (uint32_t i = 0; i < gpu.x->nstep; i++) {
        const char *type = rl_nod(gpu.g, gpu.x->step[i].node)->type;
        bool view = strcmp(type, "Reshape") == 0 || strcmp(type, "Transpose") == 0;
        CHECK(gpu.x->step[i].place == (view ? RL_RAN_VIEW : RL_RAN_DEVICE));
    }
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* Conv, BatchNormalization, the sum with another branch, an activation: one step, whose weights are scaled once. */
TEST(joined) {
    static const char text[] =
        "graph opset=21 {\n  in %x #[N,4,6,6]\n  const %w #[4,4,1,1] {1,2,3,4,-1,2,0,4,5,1,7,3,9,0,2,1}\n  const %b #[4] {1,2,-3,4}\n"
        "  const %s #[4] {1,0.5,0.25,2}\n  const %v #[4] {1,2,4,0.5}\n  const %k #[] {0.5}\n  const %l #[] {-3}\n  const %h #[] {40}\n"
        "  %c = Conv(%x, %w, %b)\n  %n = BatchNormalization(%c, %s, %b, %v, %v)\n  %r = Add(%x, %n)\n  %q = Clip(%r, %l, %h)\n"
        "  %d = Conv(%q, %w)\n  %e = Mul(%d, %s1)\n  %g = Sigmoid(%e)\n  %o = Mul(%e, %g)\n  %y = Cast(%o) to=1\n  out %y\n}\n";
    static const rl_dtype types[] = {RL_F32, RL_F16, RL_BF16};
    CHECK_CTX(ctx)
    for (size_t t = 0; t < RL_LEN(types); t++) {
        char full[1200];
        size_t n = 0;
        for (const char *s = text; *s; s++) {
            if (*s == '#') n += (size_t)snprintf(full + n, sizeof full - n, "%s", rl_dtype_name(types[t]));
            else if (strncmp(s, "%s1", 3) == 0) n += (size_t)snprintf(full + n, sizeof full - n, "%%k"), s += 2;
            else full[n++] = *s;
        }
        full[n] = 0;
        run cpu = start(ctx, full, &rl_backend_cpu), gpu = start(ctx, full, &rl_backend_cuda);
        CHECK(gpu.x->nstep == 3); /* two Convs, and a Cast */
        for (uint32_t k = 0; k < 3; k++) {
            give(&cpu, types[t], (int64_t[]){2, 4, 6, 6}, k), give(&gpu, types[t], (int64_t[]){2, 4, 6, 6}, k);
            CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
            CHECK(close_floats(&cpu.out[0], &gpu.out[0], types[t] == RL_F32 ? 1e-5f : 2e-2f));
            drop(&cpu), drop(&gpu);
        }
        for (uint32_t i = 0; i < gpu.x->nstep; i++) CHECK(gpu.x->step[i].place == RL_RAN_DEVICE && !gpu.x->step[i].left);
        CHECK(gpu.x->step[0].npart == 4 && gpu.x->step[1].npart == 4);
        end(&cpu), end(&gpu);
    }
    rl_ctx_free(ctx);
}

/* The text with n numbers for each @. */
static void with_constants(char *to, size_t room, const char *text, uint32_t n) {
    for (; *text && room > 8; text++) {
        if (*text == '@') {
            size_t k = (size_t)snprintf(to, room, "{1");
            for (uint32_t i = 1; i < n && k + 8 < room; i++) k += (size_t)snprintf(to + k, room - k, ",%d", (int)(i * 7 % 5) - 2);
            to += k, room -= k;
            *to++ = '}', room--;
        } else *to++ = *text, room--;
    }
    *to = 0;
}

/* Two runs of `text` in a float type on a device that refuses this kernel: all run there (own: by own kernels), and make what the CPU does. */
static void check_without(rl_ctx *ctx, const char *text, const char *refused, rl_dtype t, const int64_t *dim, uint32_t nstep, bool own) {
    setenv("RELAYOUT_EMULATE_FAULT", refused, 1);
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    for (uint32_t k = 0; k < 2; k++) {
        give(&cpu, t, dim, k), give(&gpu, t, dim, k);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        for (uint32_t i = 0; i < 2; i++) {
            run *r = i ? &gpu : &cpu;
            rl_tensor low = r->out[0];
            r->out[0] = rl_tensor_new(r->rt, RL_F32, 4, low.dim);
            rl_convert(r->rt, &r->out[0], &low, true);
            rl_tensor_drop(&low);
        }
        CHECK(close_floats(&cpu.out[0], &gpu.out[0], t == RL_F16 ? 4e-3f : 3e-2f));
        drop(&cpu), drop(&gpu);
    }
    CHECK(gpu.x->nstep == nstep);
    for (uint32_t i = 0; i < gpu.x->nstep; i++) {
        if (gpu.x->step[i].place == RL_RAN_VIEW) continue;
        CHECK(gpu.x->step[i].place == RL_RAN_DEVICE && !gpu.x->step[i].left);
        CHECK(!own || strcmp(gpu.x->step[i].ran, rl_backend_cuda.name) == 0);
    }
    unsetenv("RELAYOUT_EMULATE_FAULT");
    end(&cpu), end(&gpu);
}

/* The same of a text that has its type for each %s, in f32 (wide) and the shorter floats, and weights of n numbers for each @, without each of these kernels. */
static void check_types(rl_ctx *ctx, const char *text, bool wide, uint32_t n, const char *const *refused, size_t nrefused, const int64_t *dim, uint32_t nstep, bool own) {
    static const rl_dtype types[] = {RL_F32, RL_F16, RL_BF16};
    char typed[1400], full[3000];
    for (size_t t = !wide; t < RL_LEN(types); t++) {
        const char *name = rl_dtype_name(types[t]);
        snprintf(typed, sizeof typed, text, name, name, name, name, name, name);
        with_constants(full, sizeof full, typed, n);
        for (size_t f = 0; f < nrefused; f++) check_without(ctx, full, refused[f], types[t], dim, nstep, own);
    }
}

/* One place of channels, and all that is made of it, lies channels-last: between a Resize and a Conv nothing is moved or cast. */
TEST(stays_in_order) {
    static const char text[] =
        "graph opset=21 {\n  in %x f16[N,16,1,1]\n  const %s f32[4] {1,1,5,4}\n  const %t f32[4] {1,1,2,1.5}\n  const %w f16[16,16,1,1] @\n"
        "  %a = Resize(%x, _, %s)\n  %b = Conv(%a, %w)\n  %r = Resize(%b, _, %t) mode=\"linear\"\n  %c = Conv(%r, %w)\n"
        "  %y = GlobalAveragePool(%c)\n  out %y\n}\n";
    static const char *const refused[] = {"launch:none", "launch:cast", REFUSED_MOVES};
    char full[2000];
    CHECK_CTX(ctx)
    with_constants(full, sizeof full, text, 256);
    for (size_t f = 0; f < RL_LEN(refused); f++) check_without(ctx, full, refused[f], RL_F16, (int64_t[]){2, 16, 1, 1}, 5, false);
    rl_ctx_free(ctx);
}

/* Element-wise ops in a row are one launch, without the kernels that would do each: by channel first, with operands that broadcast, of what has gaps, and
 * no more than there is room for. */
TEST(chains) {
    static const struct { uint32_t nstep; const char *refused, *text; } of[] = {
        {1, "launch:each", "  %n = BatchNormalization(%x, %b, %s, %s, %b)\n  %r = Relu(%n)\n  %m = Mul(%r, %x)\n  %y = Neg(%m)\n  out %y\n}\n"},
        {1, "launch:affine", "  %a = Add(%x, %c)\n  %d = Sub(%k, %a)\n  %e = Div(%d, %c)\n  %f = Sub(%e, %x)\n  %g = Abs(%f)\n  %h = Sqrt(%g)\n"
                             "  %y = Mul(%h, %k)\n  out %y\n}\n"},
        {1, "launch:each", "  %a = Sigmoid(%x)\n  %d = Mul(%x, %a)\n  %e = Sub(%c, %d)\n  %f = Div(%e, %x)\n  %g = Erf(%f)\n  %y = Exp(%g)\n  out %y\n}\n"},
        {2, "launch:none", "  %a = Add(%x, %c)\n  %d = Mul(%x, %a)\n  %e = Mul(%d, %c)\n  %f = Sub(%x, %e)\n  %y = Add(%f, %c)\n  out %y\n}\n"},
        {3, "launch:each", "  %p = Slice(%x, %i, %j, %o)\n  %q = Slice(%x, %j, %l, %o)\n  %a = Tanh(%p)\n  %d = Mul(%q, %a)\n  %y = Mul(%d, %k)\n  out %y\n}\n"},
    };
    static const rl_dtype types[] = {RL_F32, RL_F16, RL_BF16};
    static const int64_t sizes[][4] = {{2, 16, 7, 9}, {3, 16, 8, 2}, {1, 16, 1, 1}};
    char text[2000], full[4000];
    CHECK_CTX(ctx)
    for (size_t i = 0; i < RL_LEN(of); i++)
        for (size_t t = 0; t < RL_LEN(types); t++) {
            const char *n = rl_dtype_name(types[t]);
            size_t k = (size_t)snprintf(text, sizeof text,
                                        "graph opset=21 {\n  in %%x %s[N,16,H,W]\n  const %%c %s[16,1,1] @\n  const %%b %s[16] {1,2,4,0.5,1,2,3,4,1,1,1,1,2,3,1,1}\n"
                                        "  const %%s %s[16] @\n  const %%k %s[] {1.5}\n  const %%i i64[1] {0}\n  const %%j i64[1] {8}\n  const %%l i64[1] {16}\n"
                                        "  const %%o i64[1] {1}\n", n, n, n, n, n);
            snprintf(text + k, sizeof text - k, "%s", of[i].text);
            with_constants(full, sizeof full, text, 16);
            for (size_t d = 0; d < RL_LEN(sizes); d++) check_without(ctx, full, of[i].refused, types[t], sizes[d], of[i].nstep, true);
        }
    rl_ctx_free(ctx);
}

/* Each channel by itself, with all that is joined to it: one launch, without the kernels that would do it in parts. */
TEST(depthwise) {
    static const char text[] =
        "graph opset=21 {\n  in %%x %s[N,16,7,9]\n  const %%w %s[16,1,3,3] @\n"
        "  const %%s %s[16] {1,0.5,0.25,2,1,1,1,1,-1,1,1,1,1,1,1,1}\n  const %%v %s[16] {1,2,4,0.5,1,2,3,4,1,1,1,1,2,3,1,1}\n"
        "  const %%l %s[] {-3}\n  const %%h %s[] {4}\n"
        "  %%c = Conv(%%x, %%w, %%s) group=16 pads=[1,1,1,1]\n  %%n = BatchNormalization(%%c, %%s, %%v, %%s, %%v)\n  %%r = Add(%%x, %%n)\n"
        "  %%q = Clip(%%r, %%l, %%h)\n  %%d = Conv(%%q, %%w) group=16 strides=[2,2] pads=[1,0,1,2]\n  %%g = Sigmoid(%%d)\n  %%y = Mul(%%d, %%g)\n  out %%y\n}\n";
    static const char *const refused[] = {"launch:none", "launch:conv", "launch:posts"};
    CHECK_CTX(ctx)
    check_types(ctx, text, false, 144, refused, RL_LEN(refused), (int64_t[]){2, 16, 7, 9}, 2, true); /* of few places, whose rows threads share, and of many */
    check_types(ctx, text, false, 144, refused, RL_LEN(refused), (int64_t[]){2, 16, 40, 39}, 2, true);
    rl_ctx_free(ctx);
}

/* Of several groups: x that lies channels-last, and weights that were turned, which cuDNN gets laid out. */
TEST(groups_of_what_was_turned) {
    static const char *const text[] = {"graph opset=21 {\n  in %%x %s[N,7,9,16]\n  const %%w %s[3,3,16,%d] @\n  %%t = Transpose(%%x) perm=[0,3,1,2]\n"
                                       "  %%u = Transpose(%%w) perm=[2,3,0,1]\n  %%y = Conv(%%t, %%u) group=%d pads=[1,1,1,1]\n  out %%y\n}\n",
                                       "graph opset=21 {\n  in %%x %s[N,16,7,9]\n  const %%w %s[3,3,16,%d] @\n"
                                       "  %%u = Transpose(%%w) perm=[2,3,0,1]\n  %%y = Conv(%%x, %%u) group=%d pads=[1,1,1,1]\n  out %%y\n}\n"};
    static const int64_t dim[2][4] = {{2, 7, 9, 16}, {2, 16, 7, 9}};
    static const rl_dtype types[] = {RL_F32, RL_F16, RL_BF16};
    char typed[400], full[2000];
    CHECK_CTX(ctx)
    for (size_t t = 0; t < RL_LEN(types); t++)
        for (int each = 1; each <= 2; each++)
            for (uint32_t k = 0; k < RL_LEN(text); k++) {
                const char *n = rl_dtype_name(types[t]);
                snprintf(typed, sizeof typed, text[k], n, n, each, 16 / each);
                with_constants(full, sizeof full, typed, 144 * (uint32_t)each);
                check_without(ctx, full, "launch:none", types[t], dim[k], k ? 1 : 2, k == 0 && each == 1);
            }
    rl_ctx_free(ctx);
}

/* Windows side by side of a few channels: a move and a product, without the kernel that convolves, with what was joined to them. */
TEST(patches) {
    static const char text[] =
        "graph opset=21 {\n  in %%x %s[N,3,9,6]\n  const %%w %s[4,3,2,3] @\n  const %%b %s[4] {1,-2,0.5,3}\n  const %%s %s[4] {1,0.5,2,-1}\n"
        "  %%c = Conv(%%x, %%w, %%b) strides=[2,3]\n  %%n = BatchNormalization(%%c, %%s, %%b, %%b, %%v)\n  %%r = Relu(%%n)\n  %%d = Conv(%%x, %%w) strides=[2,3]\n"
        "  %%y = Add(%%d, %%r)\n  out %%y\n  const %%v %s[4] {1,2,4,0.5}\n}\n";
    static const char *const refused[] = {"launch:none", "launch:conv"};
    CHECK_CTX(ctx)
    check_types(ctx, text, true, 72, refused, RL_LEN(refused), (int64_t[]){2, 3, 9, 6}, 2, false);
    rl_ctx_free(ctx);
}

/* Numbers for each channel behind an activation are joined, too: no launch of their own. */
TEST(channels_after_all) {
    static const char text[] =
        "graph opset=21 {\n  in %%x %s[N,3,9,6]\n  const %%w %s[4,3,3,3] @\n  const %%b %s[4] {1,-2,0.5,3}\n  const %%s %s[4,1,1] {1,-0.5,2,-1}\n"
        "  const %%t %s[1,4,1,1] {-1,3,0.25,0}\n  %%c = Conv(%%x, %%w, %%b) pads=[1,1,1,1]\n  %%r = Relu(%%c)\n  %%m = Mul(%%s, %%r)\n  %%a = Add(%%m, %%t)\n"
        "  %%y = Tanh(%%a)\n  out %%y\n}\n";
    static const char *const refused[] = {"launch:none", "launch:each"};
    CHECK_CTX(ctx)
    check_types(ctx, text, true, 108, refused, RL_LEN(refused), (int64_t[]){2, 3, 9, 6}, 1, false);
    rl_ctx_free(ctx);
}

/* Three of one value through the same windows are one, and a Split; not the one with other pads, nor those of two images. */
TEST(siblings) {
    static const char text[] =
        "graph opset=21 {\n  in %%x f32[%u,4,6,5]\n  const %%u f32[4,4,3,3] @\n  const %%b f32[4] {1,-2,0.5,3}\n  const %%c f32[4] {-1,4,0,7}\n"
        "  const %%s i64[4] {1,1,10,-1}\n"
        "  %%p = Conv(%%x, %%u, %%b) pads=[1,1,1,1]\n  %%q = Conv(%%x, %%u) pads=[1,1,1,1]\n  %%r = Conv(%%x, %%u, %%c) pads=[1,1,1,1]\n"
        "  %%o = Conv(%%x, %%u) pads=[1,1,0,1]\n  %%e = Transpose(%%p) perm=[0,2,3,1]\n  %%f = Transpose(%%q) perm=[0,2,3,1]\n"
        "  %%g = Transpose(%%r) perm=[0,2,3,1]\n  %%h = Transpose(%%o) perm=[0,2,3,1]\n  %%i = Reshape(%%e, %%s)\n  %%j = Reshape(%%f, %%s)\n"
        "  %%k = Reshape(%%g, %%s)\n  %%l = Reshape(%%h, %%s)\n  %%y = Concat(%%i, %%j, %%k, %%l) axis=3\n  out %%y\n}\n";
    char sized[1100], full[2200];
    CHECK_CTX(ctx)
    for (uint32_t n = 1; n < 3; n++) {
        snprintf(sized, sizeof sized, text, n);
        with_constants(full, sizeof full, sized, 144);
        check_without(ctx, full, "launch:none", RL_F32, (int64_t[]){n, 4, 6, 5}, n == 1 ? 12 : 13, false);
    }
    rl_ctx_free(ctx);
}

/* A Pad of zeros that two convolutions read is in the pads of both; one that a pool reads, too, stays. */
TEST(shared_pads) {
    static const char text[] =
        "graph opset=21 {\n  in %%x %s[N,4,7,6]\n  const %%w %s[4,4,3,3] @\n  const %%v %s[4,1,3,3] {1,2,3,4,5,6,7,8,9,-1,-2,-3,-4,-5,-6,-7,-8,-9,0,1,0,1,0,1,0,1,0,2,0,2,0,2,0,2,0,2}\n"
        "  const %%p i64[8] {0,0,1,2,0,0,2,0}\n  %%q = Pad(%%x, %%p)\n  %%a = Conv(%%q, %%w) pads=[1,0,0,1]\n  %%b = Conv(%%q, %%v) group=4 pads=[1,0,0,1]\n  %%y = Add(%%a, %%b)\n"
        "  out %%y\n%s}\n";
    static const rl_dtype types[] = {RL_F32, RL_F16, RL_BF16};
    char typed[800], full[1600];
    CHECK_CTX(ctx)
    for (size_t t = 0; t < RL_LEN(types); t++)
        for (uint32_t pool = 0; pool < 2; pool++) {
            const char *n = rl_dtype_name(types[t]);
            snprintf(typed, sizeof typed, text, n, n, n, pool ? "  %m = MaxPool(%q) kernel_shape=[2,2]\n  out %m\n" : "");
            with_constants(full, sizeof full, typed, 144);
            check_without(ctx, full, pool ? "launch:none" : "launch:pad", types[t], (int64_t[]){2, 4, 7, 6}, pool ? 4 : 2, false);
        }
    rl_ctx_free(ctx);
}

/* One place of a tensor is a view: no launch selects. */
TEST(one_place) {
    static const char text[] =
        "graph opset=21 {\n  in %%x %s[3,N,4,5]\n  const %%i i64[] {0}\n  const %%j i64[] {-1}\n  const %%k i64[1] {1}\n  %%r = Relu(%%x)\n"
        "  %%p = Gather(%%r, %%i)\n  %%q = Gather(%%r, %%j) axis=-4\n  %%s = Gather(%%r, %%k)\n  %%a = Add(%%p, %%q)\n  %%y = Mul(%%s, %%a)\n  out %%y\n}\n";
    static const char *const refused[] = {"launch:none", "launch:select"};
    CHECK_CTX(ctx)
    check_types(ctx, text, true, 0, refused, RL_LEN(refused), (int64_t[]){3, 2, 4, 5}, 8, true);
    rl_ctx_free(ctx);
}

/* A sum with what lies by rows stays by rows, as the normalization behind it wants it: nothing is moved. */
TEST(residual_of_rows) {
    static const char text[] =
        "graph opset=21 {\n  in %x f32[N,3,4,16]\n  const %s f32[16] {1,2,3,4,1,2,3,4,1,2,3,4,1,2,3,4}\n  const %w f32[16,16,1,1] @\n"
        "  %n = LayerNormalization(%x, %s, %s)\n  %t = Transpose(%n) perm=[0,3,1,2]\n  %c = Conv(%t, %w)\n  %u = Transpose(%c) perm=[0,2,3,1]\n"
        "  %a = Add(%x, %u)\n  %y = LayerNormalization(%a, %s, %s)\n  out %y\n}\n";
    static const char *const refused[] = {"launch:none", REFUSED_MOVES};
    char full[2000];
    CHECK_CTX(ctx)
    with_constants(full, sizeof full, text, 256);
    for (size_t f = 0; f < RL_LEN(refused); f++) check_without(ctx, full, refused[f], RL_F32, (int64_t[]){2, 3, 4, 16}, 6, false);
    rl_ctx_free(ctx);
}

/* Products of few rows, with all that was joined to them: one launch each, without the kernels that would do it in parts. */
TEST(few_rows) {
    static const char *const text[] = {
        "graph opset=21 {\n  in %%x %s[N,16,1,1]\n  const %%w %s[12,16,1,1] @\n  const %%v %s[16,12,1,1] @\n  const %%b %s[12] {1,-2,0.5,3,1,0,0,0,-1,2,0.25,1}\n"
        "  %%c = Conv(%%x, %%w, %%b)\n  %%g = Sigmoid(%%c)\n  %%s = Mul(%%c, %%g)\n  %%d = Conv(%%s, %%v)\n  %%h = Sigmoid(%%d)\n  %%y = Mul(%%h, %%x)\n  out %%y\n}\n",
        "graph opset=21 {\n  in %%x %s[1,1,N,12]\n  const %%w %s[12,16] @\n  const %%v %s[16,12] @\n  const %%b %s[12] {1,-2,0.5,3,1,0,0,0,-1,2,0.25,1}\n"
        "  %%m = MatMul(%%x, %%w)\n  %%t = Tanh(%%m)\n  %%n = MatMul(%%t, %%v)\n  %%a = Add(%%n, %%b)\n  %%r = Add(%%x, %%a)\n  %%y = HardSwish(%%r)\n  out %%y\n}\n",
        /* rows that lie by whole vectors, but for where they begin */
        "graph opset=21 {\n  in %%x %s[1,1,N,24]\n  const %%w %s[12,16] @\n  const %%b %s[1,12] {1,-2,0.5,3,1,0,0,0,-1,2,0.25,1}\n  const %%l %s[] {-1}\n"
        "  const %%i i64[1] {1}\n  const %%j i64[1] {17}\n  const %%o i64[1] {3}\n  %%p = Slice(%%x, %%i, %%j, %%o)\n  %%u = Transpose(%%w) perm=[1,0]\n"
        "  %%m = MatMul(%%p, %%u)\n  %%s = Add(%%m, %%b)\n  %%y = Clip(%%s, %%l)\n  out %%y\n}\n"};
    static const char *const refused[] = {"launch:none", "launch:matmul", "launch:posts", "launch:each"};
    CHECK_CTX(ctx)
    for (size_t i = 0; i < RL_LEN(text); i++)
        for (int64_t m = 1; m <= RL_FEW_ROWS; m++)
            check_types(ctx, text[i], true, 192, &refused[m - 1], 1, (int64_t[]){i ? 1 : m, i ? 1 : 16, i ? m : 1, i == 0 ? 1 : i == 1 ? 12 : 24}, 2, true);
    rl_ctx_free(ctx);
}

/* Pools of what lies channels-last are the own kernel's, 16 bytes of channels at a time, also where there is cuDNN. */
TEST(pools_of_channels) {
    static const char text[] =
        "graph opset=21 {\n  in %%x %s[N,16,1,1]\n  const %%s f32[4] {1,1,7,6}\n  const %%t f32[4] {1,1,2,1.5}\n"
        "  %%a = Resize(%%x, _, %%s)\n  %%b = MaxPool(%%a) kernel_shape=[3,3] strides=[2,1] pads=[1,1,1,0]\n  %%c = Resize(%%b, _, %%t) mode=\"linear\"\n"
        "  %%d = AveragePool(%%c) kernel_shape=[2,3] strides=[1,2] pads=[1,0,0,2]\n  %%y = AveragePool(%%d) kernel_shape=[2,2] pads=[0,1,1,0] count_include_pad=1\n  out %%y\n}\n";
    static const rl_dtype types[] = {RL_F16, RL_BF16};
    char full[800];
    CHECK_CTX(ctx)
    for (size_t t = 0; t < RL_LEN(types); t++) {
        snprintf(full, sizeof full, text, rl_dtype_name(types[t]));
        check_without(ctx, full, "launch:none", types[t], (int64_t[]){2, 16, 1, 1}, 5, true);
    }
    rl_ctx_free(ctx);
}

/* Scales and biases that are constants are widened before the run: no cast is launched. */
TEST(constant_scales) {
    static const char *const text[] = {
        "graph opset=21 {\n  in %x f16[N,16,4,16]\n  const %s f16[16] @\n  const %b f16[16] @\n  %y = LayerNormalization(%x, %s, %b)\n  out %y\n}\n",
        "graph opset=21 {\n  in %x f16[N,16,4,16]\n  const %s f16[16] @\n  %y = LayerNormalization(%x, %s)\n  out %y\n}\n",
        "graph opset=21 {\n  in %x f16[N,16,4,16]\n  const %s f16[16] @\n  const %b f16[16] @\n  %y = InstanceNormalization(%x, %s, %b)\n  out %y\n}\n",
        "graph opset=21 {\n  in %x f16[N,16,4,16]\n  const %s f16[16] @\n  const %b f16[16] @\n  %y = GroupNormalization(%x, %s, %b) num_groups=4\n  out %y\n}\n"};
    char full[600];
    CHECK_CTX(ctx)
    for (size_t i = 0; i < RL_LEN(text); i++) {
        with_constants(full, sizeof full, text[i], 16);
        check_without(ctx, full, "launch:cast", RL_F16, (int64_t[]){2, 16, 4, 16}, 1, false);
    }
    rl_ctx_free(ctx);
}

/* Few lines that are long are no block's each. */
TEST(parts_of_lines) {
    static const char *const ops[] = {"InstanceNormalization(%x, %s, %b)", "GroupNormalization(%x, %s, %b) num_groups=2", "GroupNormalization(%x, %s, %b) num_groups=1"};
    char text[400], full[600];
    CHECK_CTX(ctx)
    for (size_t i = 0; i < RL_LEN(ops); i++) {
        snprintf(text, sizeof text, "graph opset=21 {\n  in %%x f16[N,2,90,100]\n  const %%s f16[2] @\n  const %%b f16[2] @\n  %%y = %s\n  out %%y\n}\n", ops[i]);
        with_constants(full, sizeof full, text, 2);
        check_without(ctx, full, "launch:rows", RL_F16, (int64_t[]){3, 2, 90, 100}, 1, true);
    }
    rl_ctx_free(ctx);
}

/* DequantizeLinear, Conv, Relu, QuantizeLinear, then a MatMul likewise: two steps in bytes, as the ops of bytes have it, to the bit. */
TEST(quantized_chains) {
    static const char consts[] =
        "  in %x i8[2,4,5,6]\n  const %s f32[] {0.25}\n  const %z i8[] {0}\n  const %n i8[] {-128}\n  const %u f32[] {0.5}\n  const %t f32[4] {0.5,0.125,0.25,1}\n"
        "  const %o i8[4] {0,0,0,0}\n  const %w i8[4,4,1,1] {1,-2,3,100,5,6,-7,8,9,10,11,-128,13,14,15,127}\n  const %b i32[4] {50,-90,3,1000}\n"
        "  const %c f32[4] {0.125,0.03125,0.0625,0.25}\n  const %k i64[2] {40,6}\n  const %m i8[6,2] {1,2,3,4,5,6,7,8,9,10,11,12}\n  const %zi i32[4] {0,0,0,0}\n";
    static const char chain[] =
        "  %xf = DequantizeLinear(%x, %s, %z)\n  %wf = DequantizeLinear(%w, %t, %o) axis=0\n  %bf = DequantizeLinear(%b, %c, %zi) axis=0\n"
        "  %y = Conv(%xf, %wf, %bf)\n  %r = Relu(%y)\n  %q = QuantizeLinear(%r, %u, %n)\n  %f = Reshape(%q, %k)\n  %ff = DequantizeLinear(%f, %u, %n)\n"
        "  %mf = DequantizeLinear(%m, %s, %z)\n  %p = MatMul(%ff, %mf)\n  %e = QuantizeLinear(%p, %s, %z)\n  out %q\n  out %e\n}\n";
    static const char ops[] =
        "  %q = QLinearConv(%x, %s, %z, %w, %t, %o, %u, %n, %b)\n  %f = Reshape(%q, %k)\n  %e = QLinearMatMul(%f, %u, %n, %m, %s, %z, %s, %z)\n  out %q\n  out %e\n}\n";
    char text[2][2400];
    CHECK_CTX(ctx)
    snprintf(text[0], sizeof text[0], "graph opset=21 {\n%s%s", consts, ops), snprintf(text[1], sizeof text[1], "graph opset=21 {\n%s%s", consts, chain);
    run cpu = start(ctx, text[0], &rl_backend_cpu), gpu = start(ctx, text[1], &rl_backend_cuda);
    CHECK(gpu.x->nstep == 3);
    for (uint32_t i = 0; i < 2; i++) {
        run *r = i ? &gpu : &cpu;
        r->in[0] = rl_tensor_new(r->rt, RL_I8, 4, (int64_t[]){2, 4, 5, 6});
        for (int64_t k = 0; k < rl_numel(&r->in[0]); k++) ((int8_t *)rl_data(&r->in[0]))[k] = (int8_t)(k * 37 % 251 - 125);
        CHECK(rl_exec_run(r->x, r->in, r->out) == RL_OK);
    }
    for (uint32_t i = 0; i < 2; i++)
        CHECK(rl_same_dims(&cpu.out[i], &gpu.out[i]) && memcmp(rl_data(&cpu.out[i]), rl_data(&gpu.out[i]), (size_t)rl_numel(&cpu.out[i])) == 0);
    for (uint32_t i = 0; i < gpu.x->nstep; i += 2) CHECK(gpu.x->step[i].place == RL_RAN_DEVICE && gpu.x->step[i].npart >= 3);
    drop(&cpu), drop(&gpu);
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* Weights that are views of a constant, of the same size: known before the run, and each its own bytes on the device. */
TEST(turned_weights) {
    static const char text[] =
        "graph opset=21 {\n  in %x f32[N,4]\n"
        "  const %p f32[4,4] {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}\n  const %q f32[4,4] {-1,2,0,4,5,1,7,3,9,0,2,1,1,1,5,6}\n"
        "  %a = Transpose(%p)\n  %b = Transpose(%q)\n  %u = MatMul(%x, %a)\n  %v = MatMul(%u, %b)\n  %w = Add(%v, %a)\n"
        "  out %v\n  out %w\n}\n";
    CHECK_CTX(ctx)
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    CHECK(gpu.x->nstep == 3);
    for (uint32_t k = 0; k < 3; k++) {
        give_floats(&cpu, 0, 2, (int64_t[]){4, 4}, k), give_floats(&gpu, 0, 2, (int64_t[]){4, 4}, k);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && same_floats(&cpu.out[1], &gpu.out[1]));
        drop(&cpu), drop(&gpu);
    }
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* Constants that are moved beside values: as they are, turned, and spread over a size of the run (a class token). They go there once. */
TEST(moved_constants) {
    static const char text[] =
        "graph opset=21 {\n  in %x f32[N,3,4]\n  const %p f32[1,2,4] {1,2,3,4,5,6,7,8}\n  const %q f32[1,4,1] {-1,2,0,4}\n  const %f i64[1] {0}\n"
        "  const %t i64[1] {1}\n  const %r i64[2] {1,4}\n"
        "  %n = Shape(%x)\n  %b = Slice(%n, %f, %t)\n  %d = Concat(%b, %r) axis=0\n  %e = Transpose(%q) perm=[0,2,1]\n"
        "  %c = Expand(%e, %d)\n  %y = Concat(%c, %x) axis=1\n  %z = Concat(%x, %p, %e) axis=1\n  out %y\n  out %z\n}\n";
    CHECK_CTX(ctx)
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    for (uint32_t k = 0; k < 4; k++) {
        give_floats(&cpu, 0, 3, (int64_t[]){1, 3, 4}, k), give_floats(&gpu, 0, 3, (int64_t[]){1, 3, 4}, k);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && same_floats(&cpu.out[1], &gpu.out[1]));
        CHECK(rl_device_replays(gpu.x) == (k > 0));
        drop(&cpu), drop(&gpu);
    }
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* An op without a kernel runs on the CPU, what follows on the device again; nothing is recorded. */
TEST(falls_back) {
    CHECK_CTX(ctx)
    run cpu = start(ctx, falls, &rl_backend_cpu), gpu = start(ctx, falls, &rl_backend_cuda);
    for (uint32_t k = 0; k < 3; k++) {
        give_floats(&cpu, 0, 2, (int64_t[]){5, 8}, k), give_floats(&gpu, 0, 2, (int64_t[]){5, 8}, k);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && same_floats(&cpu.out[1], &gpu.out[1]));
        CHECK(!rl_device_replays(gpu.x));
        drop(&cpu), drop(&gpu);
    }
    rl_text said = {.mem = &ctx->mem};
    rl_device_report(gpu.x, &said);
    CHECK(strstr(said.p, "; nodes on it: 2, as views or moves: 0, on the host: 0, on the host for want of a kernel: 1 (Binarizer)\n"));
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

static rl_status pick(run *r, int64_t worst) {
    const int64_t index[] = {0, -1, 7, worst}, dim[] = {2, 2};
    give_floats(r, 0, 2, (int64_t[]){5, 8}, 3);
    r->in[1] = rl_tensor_new(r->rt, RL_I64, 2, dim);
    memcpy(rl_data(&r->in[1]), index, sizeof index);
    return rl_exec_run(r->x, r->in, r->out);
}

/* A kernel that meets a wrong index says so when the run is over, also in a replay; the next run is right again. */
TEST(wrong_index) {
    CHECK_CTX(ctx)
    run cpu = start(ctx, picks, &rl_backend_cpu), gpu = start(ctx, picks, &rl_backend_cuda);
    static const int64_t worst[] = {3, 3, 8, 2, -9, 1};
    CHECK(pick(&cpu, 3) == RL_OK);
    for (uint32_t k = 0; k < RL_LEN(worst); k++) {
        bool bad = worst[k] > 7 || worst[k] < -8;
        CHECK(pick(&gpu, worst[k]) == (bad ? RL_EMODEL : RL_OK));
        if (bad) CHECK(strstr(ctx->error, "(Gather): an index is out of range"));
        if (worst[k] == 3) CHECK(same_floats(&cpu.out[0], &gpu.out[0]));
        if (!bad) drop(&gpu);
    }
    drop(&cpu);
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* Bytes and strides of tensors that come and go across. */
TEST(across) {
    CHECK_CTX(ctx)
    run gpu = start(ctx, picks, &rl_backend_cuda);
    rl_rt *rt = gpu.rt;
    static const int64_t perm[] = {1, 0};
    give_floats(&gpu, 0, 2, (int64_t[]){5, 8}, 9);
    rl_tensor turned = rl_view_transpose(&gpu.in[0], perm), there = rl_tensor_on(rt, &turned, &rl_backend_cuda);
    rl_tensor back = rl_view_transpose(&there, perm), here = rl_tensor_on(rt, &back, &rl_backend_cpu);
    CHECK(there.mem->on == &rl_backend_cuda && same_floats(&here, &gpu.in[0]) && rt->failed == RL_OK);
    rl_tensor row = rl_view_slice(&there, 0, 2, 1, 1), into = rl_view_slice(&here, 1, 7, 1, 1);
    rl_tensor as = rl_view_transpose(&row, perm);
    rl_tensor_move(rt, &into, &as); /* from there to a strided part of what is here */
    for (int64_t i = 0; i < 5; i++) CHECK(((float *)rl_data(&here))[i * 8 + 7] == ((float *)rl_data(&gpu.in[0]))[i * 8 + 2]);
    rl_tensor_drop(&there), rl_tensor_drop(&here);
    drop(&gpu);
    end(&gpu);
    rl_ctx_free(ctx);
}

/* ---- when something fails ---- */

/* Three runs of `text` with this fault, against the CPU; what is said at the end, or how the run ended. */
static const char *said_of(rl_ctx *ctx, const char *text, const char *fault, const int64_t *dim, uint32_t *nleft) {
    setenv("RELAYOUT_EMULATE_FAULT", fault, 1);
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    rl_text said = {.mem = &ctx->mem};
    rl_status s = RL_OK;
    for (uint32_t k = 0; k < 3 && s == RL_OK; k++) {
        give_floats(&cpu, 0, 4, dim, k), give_floats(&gpu, 0, 4, dim, k);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK);
        s = rl_exec_run(gpu.x, gpu.in, gpu.out);
        if (s == RL_OK) CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && same_floats(&cpu.out[1], &gpu.out[1]));
        CHECK(!rl_device_replays(gpu.x) || strstr(fault, "posts")); /* its parts have all they want on the device */
        drop(&cpu);
        if (s == RL_OK) drop(&gpu);
    }
    *nleft = 0;
    for (uint32_t i = 0; i < gpu.x->nstep; i++) *nleft += gpu.x->step[i].left;
    if (s == RL_OK) rl_device_report(gpu.x, &said);
    else rl_put(&said, "%s", ctx->error);
    unsetenv("RELAYOUT_EMULATE_FAULT");
    end(&cpu), end(&gpu);
    return said.p;
}

/* A node whose kernel the device refuses is the CPU's, be it a kernel for the op or a move; the others stay. */
TEST(refused) {
    CHECK_CTX(ctx)
    uint32_t nleft;
    const char *said = said_of(ctx, net, "launch:conv", (int64_t[]){2, 4, 6, 6}, &nleft);
    CHECK(nleft == 1 && strstr(said, "nodes on it: 3, as views or moves: 2") && strstr(said, "(Conv): CUDA: conv_f32: refused; the CPU does it\n"));
    CHECK(strstr(said, "(Conv): CUDA: conv_f32: refused; the nodes that it joins run one by one\n"));
    said = said_of(ctx, net, "launch:posts", (int64_t[]){2, 4, 6, 6}, &nleft); /* the joined Relu: by itself then, on the device */
    CHECK(nleft == 1 && strstr(said, "nodes on it: 4, as views or moves: 2, on the host: 0, on the host for want of a kernel: 0\n"));
    CHECK(strstr(said, "(Conv): CUDA: posts_f32: refused; the nodes that it joins run one by one\n"));
    said = said_of(ctx, pointwise, "launch:posts", (int64_t[]){2, 6, 4, 5}, &nleft);
    CHECK(nleft == 1 && strstr(said, "(Exp): CUDA: posts_f32: refused; the nodes that it joins run one by one\n"));
    said = said_of(ctx, moves, "launch:join", (int64_t[]){2, 6, 40, 50}, &nleft);
    CHECK(nleft == 1 && strstr(said, "nodes on it: 2, as views or moves: 0") && strstr(said, "(Concat): CUDA: join16: refused; the CPU does it\n"));
    rl_ctx_free(ctx);
}

/* A run that cannot be recorded is done node by node. */
TEST(not_recorded) {
    CHECK_CTX(ctx)
    uint32_t nleft;
    const char *said = said_of(ctx, net, "record", (int64_t[]){2, 4, 6, 6}, &nleft);
    CHECK(nleft == 0 && strstr(said, "on the host for want of a kernel: 0\nnot recorded, so run node by node: CUDA: a recording: refused\n"));
    rl_ctx_free(ctx);
}

/* A device that answers no more ends the run; waiting after each node tells where. */
TEST(lost) {
    CHECK_CTX(ctx)
    uint32_t nleft;
    CHECK_STR(said_of(ctx, net, "lost:rows", (int64_t[]){2, 4, 6, 6}, &nleft), "node #6 (ReduceMean): CUDA: the device: the device is lost");
    setenv("RELAYOUT_CUDA_SYNC", "1", 1);
    CHECK_STR(said_of(ctx, net, "lost:rows", (int64_t[]){2, 4, 6, 6}, &nleft), "node #5 (Softmax): CUDA: kernels on the device: the device is lost");
    CHECK(strstr(said_of(ctx, net, "launch:none", (int64_t[]){2, 4, 6, 6}, &nleft), "for want of a kernel: 0\n") && nleft == 0); /* right, but not recorded */
    unsetenv("RELAYOUT_CUDA_SYNC");
    rl_ctx_free(ctx);
}

static const char split[] =
    "graph opset=21 {\n  in %x f32[N,4,8,8]\n  const %w f32[4,4,3,3] @\n  const %v f32[4,4,1,1] {1,2,3,4,-1,2,0,4,5,1,7,3,9,0,2,1}\n  const %s i64[2] {0,-1}\n  const %k i64[1] {1}\n"
    "  %a = Conv(%x, %w) pads=[1,1,1,1]\n  %b = Conv(%x, %v)\n  %p = MaxPool(%x) kernel_shape=[3,3] pads=[1,1,1,1]\n  %q = Conv(%p, %v)\n"
    "  %c = Concat(%a, %b, %x, %q) axis=1\n  %e = Exp(%b)\n  %f = Softmax(%e) axis=1\n  %g = Reshape(%c, %s)\n  %h = ReduceMax(%g, %k) keepdims=0\n"
    "  %y = Sigmoid(%f)\n  out %y\n  out %g\n  out %h\n}\n";

/* Recorded in branches, what does not come after each other is done in any order, and the emulated device takes another one each time: results are the
 * CPU's, with inputs that change. Pieces of a Concat made in place, one that is moved, one that others read, too; a value written over where there are no branches. */
TEST(branches) {
    static const struct { const char *wish, *text, *said; } of[] = {
        {NULL, split, NULL}, {"0", split, NULL}, {"1", pointwise, "there are none"}, {"1", split, " come one after the other at most; "}};
    char full[1600];
    CHECK_CTX(ctx)
    for (size_t k = 0; k < RL_LEN(of); k++) {
        if (of[k].wish) setenv("RELAYOUT_CUDA_BRANCHES", of[k].wish, 1);
        with_constants(full, sizeof full, of[k].text, 144);
        run cpu = start(ctx, full, &rl_backend_cpu), gpu = start(ctx, full, &rl_backend_cuda);
        for (uint32_t i = 0; i < 12; i++) {
            const int64_t dim[] = {1 + i / 6, of[k].text == split ? 4 : 6, of[k].text == split ? 8 : 4, of[k].text == split ? 8 : 5};
            give_floats(&cpu, 0, 4, dim, i), give_floats(&gpu, 0, 4, dim, i);
            CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
            for (uint32_t o = 0; o < cpu.g->output.n; o++) CHECK(same_floats(&cpu.out[o], &gpu.out[o]));
            drop(&cpu), drop(&gpu);
        }
        const char *said = rl_device_branches(gpu.x);
        CHECK(of[k].said ? said && strstr(said, of[k].said) : !said);
        CHECK(rl_device_replays(gpu.x) && gpu.rt->live < 1 << 20);
        unsetenv("RELAYOUT_CUDA_BRANCHES");
        end(&cpu), end(&gpu);
    }
    rl_ctx_free(ctx);
}

/* Where the limit leaves no room for branches the run goes on without. */
TEST(branches_within_the_limit) {
    char full[1600];
    CHECK_CTX(ctx)
    setenv("RELAYOUT_CUDA_BRANCHES", "1", 1);
    with_constants(full, sizeof full, split, 144);
    run gpu = start(ctx, full, &rl_backend_cuda);
    for (uint32_t i = 0; i < 3; i++) {
        give_floats(&gpu, 0, 4, (int64_t[]){1, 4, 8, 8}, 1);
        CHECK(rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        drop(&gpu);
        ctx->limit = gpu.rt->live + (900 << 10);
    }
    CHECK(rl_device_replays(gpu.x) && rl_device_branches(gpu.x) && strncmp(rl_device_branches(gpu.x), "they want ", 10) == 0);
    unsetenv("RELAYOUT_CUDA_BRANCHES");
    end(&gpu);
    rl_ctx_free(ctx);
}

/* Bytes that lie as dp4a wants them, but begin within a word: they are moved, and the convolution stays there. */
TEST(odd_bytes) {
    static const char text[] =
        "graph opset=21 {\n  in %x f32[1,17]\n  const %s f32[] {0.02}\n  const %z u8[] {3}\n  const %o i8[] {0}\n  const %i i64[1] {1}\n  const %j i64[1] {17}\n"
        "  const %w i8[4,4,1,1] {1,2,3,4,5,6,7,8,1,-2,3,-4,5,6,7,8}\n  const %k i64[4] {1,2,2,4}\n  %q = QuantizeLinear(%x, %s, %z)\n  %f = Slice(%q, %i, %j, %i)\n"
        "  %r = Reshape(%f, %k)\n  %t = Transpose(%r) perm=[0,3,1,2]\n  %c = QLinearConv(%t, %s, %z, %w, %s, %o, %s, %z)\n  %y = DequantizeLinear(%c, %s, %z)\n  out %y\n}\n";
    CHECK_CTX(ctx)
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    give_floats(&cpu, 0, 2, (int64_t[]){1, 17}, 5), give_floats(&gpu, 0, 2, (int64_t[]){1, 17}, 5);
    CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
    CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && all_there(&gpu));
    drop(&cpu), drop(&gpu);
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* What each run makes anew on the host is kept on the device as long as there is room for such; constants and what kernels want always are. */
TEST(room_for_copies) {
    enum { SIZE = 1 << 16 };
    CHECK_CTX(ctx)
    run gpu = start(ctx, "graph opset=21 {\n  in %x f32[4]\n  %y = Relu(%x)\n  out %y\n}\n", &rl_backend_cuda);
    give_floats(&gpu, 0, 1, (int64_t[]){4}, 1);
    CHECK(rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
    uint32_t *bytes = calloc(1, SIZE), n = 0;
    const void *first = rl_backend_cuda.keep(gpu.rt, bytes, SIZE, RL_KEEP_IF_ROOM);
    for (void *p = bytes; p; n++) {
        bytes[0] = n;
        p = rl_backend_cuda.keep(gpu.rt, bytes, SIZE, RL_KEEP_IF_ROOM);
    }
    CHECK(n == 1025 && rl_backend_cuda.keep(gpu.rt, bytes, SIZE, RL_KEEP_COPY) && rl_backend_cuda.keep(gpu.rt, bytes, SIZE, RL_KEEP_IF_ROOM));
    bytes[0] = 0;
    CHECK(first && rl_backend_cuda.keep(gpu.rt, bytes, SIZE, RL_KEEP_IF_ROOM) == first);
    bytes[0] = n;
    CHECK(!rl_backend_cuda.keep(gpu.rt, bytes, SIZE, RL_KEEP_IF_ROOM) && rl_backend_cuda.keep(gpu.rt, bytes, SIZE, RL_KEEP_CONSTANT));
    free(bytes);
    drop(&gpu);
    end(&gpu);
    rl_ctx_free(ctx);
}

/* What comes back is not taken again before the end. */
static bool is_taken_once(rl_gpu_pool *p) {
    void *a = rl_gpu_pool_take(p, 3000);
    rl_gpu_pool_once(p, true);
    rl_gpu_pool_give(p, a, 3000);
    void *b = rl_gpu_pool_take(p, 3000), *c = rl_gpu_pool_take(p, 3000);
    rl_gpu_pool_once(p, false);
    void *d = rl_gpu_pool_take(p, 3000);
    bool once = b != a && c != a && b != c && d == a;
    rl_gpu_pool_give(p, b, 3000), rl_gpu_pool_give(p, c, 3000), rl_gpu_pool_give(p, d, 3000);
    return once;
}

/* The pool: what comes back is handed out again, and sizes are never smaller than asked. */
TEST(pool) {
    CHECK_CTX(ctx)
    rl_gpu *g;
    CHECK(rl_gpu_open(ctx, &g) == RL_OK);
    rl_gpu_pool *p = rl_gpu_pool_new(g);
    for (size_t n = 1; n < 5000000; n += 1 + n / 7) {
        void *a = rl_gpu_pool_take(p, n);
        size_t size = rl_gpu_pool_size(n), held = rl_gpu_pool_held(p);
        CHECK(size >= n && size % 256 == 0 && (n < 4096 || size <= n + n / 8 + 256));
        rl_gpu_pool_give(p, a, n);
        CHECK(rl_gpu_pool_take(p, n) == a && rl_gpu_pool_held(p) == held);
        rl_gpu_pool_give(p, a, n);
    }
    CHECK(is_taken_once(p));
    const size_t held = rl_gpu_pool_held(p), most = (size_t)1 << 50;
    rl_gpu_pool_pin(p, true);
    CHECK(held && !rl_gpu_pool_take(p, most) && rl_gpu_pool_held(p) == held); /* a recording may write there */
    rl_gpu_pool_pin(p, false);
    CHECK(!rl_gpu_pool_take(p, most) && rl_gpu_pool_held(p) == 0);
    rl_gpu_pool_free(p);
    rl_gpu_close(g);
    rl_ctx_free(ctx);
}

int main(void) {
    open_device h = hold();
    RUN(again_and_again);
    RUN(joined);
    RUN(chains);
    RUN(stays_in_order);
    RUN(depthwise);
    RUN(groups_of_what_was_turned);
    RUN(patches);
    RUN(channels_after_all);
    RUN(siblings);
    RUN(shared_pads);
    RUN(one_place);
    RUN(residual_of_rows);
    RUN(few_rows);
    RUN(pools_of_channels);
    RUN(constant_scales);
    RUN(parts_of_lines);
    RUN(quantized_chains);
    RUN(turned_weights);
    RUN(moved_constants);
    RUN(falls_back);
    RUN(wrong_index);
    RUN(across);
    RUN(branches);
    RUN(branches_within_the_limit);
    if (is_emulated()) {
        RUN(refused);
        RUN(not_recorded);
        RUN(lost);
    }
    RUN(odd_bytes);
    RUN(room_for_copies);
    RUN(pool);
    let_go(&h);
    return check_done();
}
