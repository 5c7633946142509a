/* LSTM, GRU and RNN on an emulated device, run after run: recorded, replayed with other values and lengths, with other sizes, against the CPU; what lies
 * so that nothing is copied; a wrong length; a kernel that is refused.  Single nodes of every type: gpu_table.c. */
#include <stdlib.h>

#include "gpu_run.h"

static const char net[] =
    "graph opset=22 {\n  in %x f32[T,N,3]\n  in %n i32[N]\n  const %k i64[3] {0,0,-1}\n"
    "  const %w f32[2,16,3] @96\n  const %r f32[2,16,4] @128\n  const %b f32[2,32] @64\n"
    "  const %v f32[2,12,8] @192\n  const %s f32[2,12,4] @96\n  const %a f32[2,24] @48\n"
    "  const %u f32[1,4,8] @32\n  const %q f32[1,4,4] @16\n"
    "  %y, %h, %c = LSTM(%x, %w, %r, %b, %n) hidden_size=4 direction=\"bidirectional\"\n"
    "  %t = Transpose(%y) perm=[0,2,1,3]\n  %m = Reshape(%t, %k)\n"
    "  %z, %g = GRU(%m, %v, %s, %a, %n, %h) hidden_size=4 direction=\"bidirectional\"\n"
    "  %l = GRU(%m, %v, %s, %a) hidden_size=4 direction=\"bidirectional\" linear_before_reset=1\n"
    "  %_d, %e = RNN(%m, %u, %q, _, %n) hidden_size=4 direction=\"reverse\"\n"
    "  %p = Concat(%h, %c, %g, %e) axis=0\n  %o = Add(%z, %l)\n  out %o\n  out %p\n}\n";
static const char side_by_side[] =
    "graph opset=22 {\n  in %x f32[T,N,3]\n  const %k i64[3] {0,0,-1}\n"
    "  const %w f32[2,16,3] @96\n  const %r f32[2,16,4] @128\n  const %v f32[1,16,8] @128\n  const %s f32[1,16,4] @64\n"
    "  %y = LSTM(%x, %w, %r) hidden_size=4 direction=\"bidirectional\"\n  %t = Transpose(%y) perm=[0,2,1,3]\n  %m = Reshape(%t, %k)\n"
    "  %z = LSTM(%m, %v, %s) hidden_size=4\n  %o = Relu(%z)\n  out %o\n}\n";
/* A batch that comes first, which is how networks are exported: x is turned, and Y back. */
static const char turned[] =
    "graph opset=22 {\n  in %x f32[N,T,3]\n  const %w f32[1,16,3] @48\n  const %r f32[1,16,4] @64\n  const %k i64[1] {1}\n"
    "  %t = Transpose(%x) perm=[1,0,2]\n  %y = LSTM(%t, %w, %r) hidden_size=4\n  %m = Squeeze(%y, %k)\n  %z = Transpose(%m) perm=[1,0,2]\n  %o = Relu(%z)\n  out %o\n}\n";

/* The text with n weights for each @n. */
static const char *with_weights(const char *text) {
    static char full[12000];
    size_t n = 0;
    uint32_t seed = 1;
    for (const char *s = text; *s && n + 16 < sizeof full; s++) {
        if (*s != '@') {
            full[n++] = *s;
            continue;
        }
        long count = strtol(s + 1, (char **)&s, 10);
        for (long i = 0; i < count && n + 16 < sizeof full; i++) {
            seed = seed * 1664525u + 1013904223u;
            n += (size_t)snprintf(full + n, sizeof full - n, "%c%.3f", i ? ',' : '{', ((int)(seed >> 28) - 8) / 8.0);
        }
        full[n++] = '}';
        s--;
    }
    full[n] = 0;
    return full;
}

static void give_lengths(run *r, const int32_t *length, int64_t n) {
    r->in[1] = rl_tensor_new(r->rt, RL_I32, 1, &n);
    memcpy(rl_data(&r->in[1]), length, (size_t)n * sizeof *length);
}

/* Lengths are values, which change between replays; sizes make a new recording. */
TEST(again_and_again) {
    static const struct { int64_t steps, batch; int32_t length[6]; } runs[] = {
        {5, 2, {5, 3}}, {5, 2, {0, 5}}, {5, 2, {2, 1}}, {3, 2, {3, 3}}, {3, 2, {1, 3}}, {3, 2, {3, 2}}, {3, 3, {1, 2, 3}}, {3, 6, {1, 2, 3, 0, 3, 3}}, {3, 6, {3, 3, 1, 2, 1, 0}},
        {3, 6, {0, 3, 2, 2, 1, 1}}, {1, 1, {1}}, {1, 1, {0}}};
    CHECK_CTX(ctx)
    const char *text = with_weights(net);
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    for (uint32_t k = 0; k < RL_LEN(runs); k++) {
        int64_t dim[] = {runs[k].steps, runs[k].batch, 3};
        give_floats(&cpu, 0, 3, dim, k), give_floats(&gpu, 0, 3, dim, k);
        give_lengths(&cpu, runs[k].length, dim[1]), give_lengths(&gpu, runs[k].length, dim[1]);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && same_floats(&cpu.out[1], &gpu.out[1]));
        CHECK(all_there(&gpu));
        CHECK(rl_device_replays(gpu.x) == (k && rl_same_bytes(&runs[k].steps, &runs[k - 1].steps, 2 * sizeof(int64_t))));
        drop(&cpu), drop(&gpu);
    }
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* Two runs on a device that refuses to move anything. */
static void check_unmoved(rl_ctx *ctx, const char *weightless, const int64_t *dim) {
    static const char *const refused[] = {REFUSED_MOVES};
    const char *text = with_weights(weightless);
    for (size_t f = 0; f < RL_LEN(refused); f++) {
        setenv("RELAYOUT_EMULATE_FAULT", refused[f], 1);
        run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
        for (uint32_t k = 0; k < 2; k++) {
            give_floats(&cpu, 0, 3, dim, k), give_floats(&gpu, 0, 3, dim, k);
            CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
            CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && all_there(&gpu));
            drop(&cpu), drop(&gpu);
        }
        unsetenv("RELAYOUT_EMULATE_FAULT");
        end(&cpu), end(&gpu);
    }
}

TEST(nothing_moved) {
    CHECK_CTX(ctx)
    check_unmoved(ctx, side_by_side, (int64_t[]){4, 3, 3});
    rl_ctx_free(ctx);
}

/* x is read as it lies: one product for all rows, a launch for each of four steps, Relu, and the output as the caller has it. */
TEST(read_as_it_lies) {
    CHECK_CTX(ctx)
    const char *text = with_weights(turned);
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    give_floats(&cpu, 0, 3, (int64_t[]){3, 4, 3}, 1), give_floats(&gpu, 0, 3, (int64_t[]){3, 4, 3}, 1);
    CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
    CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && all_there(&gpu));
    drop(&gpu);
    give_floats(&gpu, 0, 3, (int64_t[]){3, 4, 3}, 1);
    uint64_t launched = ctx->launched;
    CHECK(rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
    CHECK(ctx->launched - launched <= 1 + 4 + 1 + 1);
    drop(&cpu), drop(&gpu);
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

/* A length that no sequence can have is found when the run is over; the next run is right again. */
TEST(wrong_length) {
    static const int32_t length[][2] = {{4, 2}, {4, 5}, {-1, 4}, {2, 4}};
    CHECK_CTX(ctx)
    run gpu = start(ctx, with_weights(net), &rl_backend_cuda);
    for (uint32_t k = 0; k < RL_LEN(length); k++) {
        bool bad = k == 1 || k == 2;
        give_floats(&gpu, 0, 3, (int64_t[]){4, 2, 3}, k), give_lengths(&gpu, length[k], 2);
        CHECK(rl_exec_run(gpu.x, gpu.in, gpu.out) == (bad ? RL_EMODEL : RL_OK));
        if (bad) CHECK(strstr(ctx->error, "): an index is out of range"));
        rl_tensor_drop(&gpu.in[0]), rl_tensor_drop(&gpu.in[1]);
        if (!bad) drop(&gpu);
    }
    end(&gpu);
    rl_ctx_free(ctx);
}

/* A device that refuses the kernel leaves the nodes to the CPU. */
TEST(refused) {
    CHECK_CTX(ctx)
    const char *text = with_weights(side_by_side);
    setenv("RELAYOUT_EMULATE_FAULT", "launch:recurrent", 1);
    run cpu = start(ctx, text, &rl_backend_cpu), gpu = start(ctx, text, &rl_backend_cuda);
    for (uint32_t k = 0; k < 2; k++) {
        give_floats(&cpu, 0, 3, (int64_t[]){4, 3, 3}, k), give_floats(&gpu, 0, 3, (int64_t[]){4, 3, 3}, k);
        CHECK(rl_exec_run(cpu.x, cpu.in, cpu.out) == RL_OK && rl_exec_run(gpu.x, gpu.in, gpu.out) == RL_OK);
        CHECK(same_floats(&cpu.out[0], &gpu.out[0]) && !all_there(&gpu));
        drop(&cpu), drop(&gpu);
    }
    rl_text said = {.mem = &ctx->mem};
    rl_device_notes(gpu.x, &said);
    CHECK(said.p && strstr(said.p, "(LSTM): CUDA: recurrent_f32: refused; the CPU does it\n"));
    unsetenv("RELAYOUT_EMULATE_FAULT");
    end(&cpu), end(&gpu);
    rl_ctx_free(ctx);
}

int main(void) {
    open_device h = hold();
    RUN(again_and_again);
    RUN(read_as_it_lies);
    RUN(wrong_length);
    if (is_emulated()) {
        RUN(nothing_moved);
        RUN(refused);
    }
    let_go(&h);
    return check_done();
}
