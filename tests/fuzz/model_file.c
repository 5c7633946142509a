/* The models of the structured target as files, to look at and for other tools:
 *
 *   model_file BYTES OUT.onnx                  of the input that libFuzzer wrote to BYTES; says how it is optimized
 *   model_file --seed N OUT.onnx               of random bytes (tests/python/test_model.py) */
#include <stdlib.h>
#include <string.h>

#include "../../src/onnx.h"
#include "model.h"

enum { MOST = MODEL_HEADER + MODEL_NODES * MODEL_RECORD };

/* Of every size up to the largest. */
static void random_bytes(uint64_t seed, rl_text *t) {
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    uint8_t p[MOST];
    for (size_t i = 0; i < sizeof p; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        p[i] = (uint8_t)(x >> 32);
    }
    rl_put_bytes(t, (const char *)p, MODEL_HEADER + (size_t)(1 + p[0] % (1 + seed % MODEL_NODES)) * MODEL_RECORD);
}

static rl_status write_model(rl_ctx *ctx, char **argv, int argc) {
    rl_text t = {.mem = &ctx->mem};
    model_choices how;
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    if (argc == 4) random_bytes(strtoull(argv[2], NULL, 10), &t);
    else RL_TRY(rl_file_read(argv[1], &t));
    rl_graph *g = model_make(ctx, (const uint8_t *)t.p, t.n, &how);
    printf("--target %s --objective %s\n", how.target, how.objective);
    return rl_onnx_write(g, argv[argc - 1], how.outside ? "model.data" : NULL, NULL);
}

int main(int argc, char **argv) {
    if (argc != 3 && !(argc == 4 && strcmp(argv[1], "--seed") == 0)) {
        fputs("usage: model_file BYTES OUT.onnx | --seed N OUT.onnx\n", stderr);
        return RL_EUSAGE;
    }
    rl_ctx *ctx = rl_ctx_new(FUZZ_MEMORY);
    rl_status s = ctx ? write_model(ctx, argv, argc) : RL_ENOMEM;
    if (s != RL_OK && ctx) fprintf(stderr, "model_file: %s\n", ctx->error);
    rl_ctx_free(ctx);
    return (int)s;
}
