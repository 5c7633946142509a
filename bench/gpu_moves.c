/* Bandwidth of moves on a GPU: layouts of the seeds to each other, against a copy of the same bytes on the device.
 *
 *   gpu_moves [MEGABYTES]      default 64; a table for bench/results/ on stdout
 *
 * Bytes count once read and once written.  Each figure is the least of 5 times 20 launches that follow each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../cuda/move.h"

enum { ROUNDS = 5, LAUNCHES = 20 };

typedef struct { rl_gpu *g; rl_desc to, from; void *out, *in; int64_t nbyte; } job;

static rl_status once(const job *j, bool plain) {
    return plain ? rl_gpu_copy(j->g, j->out, j->in, (size_t)j->nbyte) : rl_gpu_convert(j->g, &j->to, j->out, &j->from, j->in);
}

static rl_status measure(const job *j, bool plain, double *seconds) {
    *seconds = INFINITY;
    RL_TRY(once(j, plain));
    for (int r = 0; r < ROUNDS; r++) {
        RL_TRY(rl_gpu_sync(j->g));
        double start = rl_seconds();
        for (int i = 0; i < LAUNCHES; i++) RL_TRY(once(j, plain));
        RL_TRY(rl_gpu_sync(j->g));
        *seconds = fmin(*seconds, (rl_seconds() - start) / LAUNCHES);
    }
    return RL_OK;
}

static const struct { const char *type, *from, *to; int64_t c; } grid[] = {
    {"f32", "NCHW", "NHWC", 64},   {"f32", "NHWC", "NCHW", 64},   {"f16", "NCHW", "NHWC", 64},   {"f16", "NHWC", "NCHW", 64},
    {"i8", "NCHW", "NHWC", 64},    {"i8", "NHWC", "NCHW", 64},    {"f32", "NCHW", "NHWC", 3},    {"f32", "NHWC", "NCHW", 3},
    {"i8", "NCHW", "NCHW4", 64},   {"i8", "NCHW4", "NCHW", 64},   {"i8", "NCHW", "NCHW32", 64},  {"i8", "NCHW32", "NCHW", 64},
    {"i4", "NCHW", "NCHW64", 64},  {"i4", "NCHW64", "NCHW", 64},  {"i8", "NCHW", "CHWN4", 64},   {"i8", "CHWN4", "NCHW", 64},
    {"i8", "NCHW4", "NCHW32", 64}, {"i8", "NCHW4", "CHWN4", 64},  {"f32", "NCHW", "nChw8c", 64}, {"f32", "nChw16c", "NHWC", 64},
    {"f32", "NCHW", "CHWN", 64},   {"f64", "NCHW", "NHWC", 64},   {"i8", "NCHW", "NCHW4", 30},   {"f32", "NCHW", "nChw8c", 20}};

static rl_status run_row(rl_gpu *g, size_t k, int64_t megabytes, double *share) {
    char text[2][80];
    rl_error e;
    job j = {.g = g};
    int64_t h = 56, bits = 0, n = 1;
    for (int round = 0; round < 2; round++) { /* the second with as many images as make the size */
        for (int s = 0; s < 2; s++)
            snprintf(text[s], sizeof text[s], "%s[%lld,%lld,%lld,%lld]@%s", grid[k].type, (long long)n, (long long)grid[k].c, (long long)h, (long long)h,
                     s ? grid[k].to : grid[k].from);
        if (rl_desc_parse(text[0], &j.from, &e) != RL_OK || rl_desc_parse(text[1], &j.to, &e) != RL_OK) {
            fprintf(stderr, "%s\n", e.text);
            return RL_EUSAGE;
        }
        bits = rl_desc_bits(&j.from);
        n = RL_MAX(megabytes * 8 * 1000000 / (grid[k].c * h * h * bits), 1);
    }
    j.nbyte = rl_desc_bytes(&j.from);
    j.in = rl_gpu_alloc(g, (size_t)j.nbyte), j.out = rl_gpu_alloc(g, (size_t)RL_MAX(rl_desc_bytes(&j.to), j.nbyte));
    if (!j.in || !j.out) return RL_ENOMEM;
    double plain, moved;
    RL_TRY(measure(&j, true, &plain));
    RL_TRY(measure(&j, false, &moved));
    *share = plain / moved;
    printf("| %s | %s | %.1f | %.0f | %.0f | %.2f |\n", text[0], grid[k].to, (double)j.nbyte * 1e-6, 2e-9 * (double)j.nbyte / moved,
           2e-9 * (double)j.nbyte / plain, *share);
    rl_gpu_free(g, j.in, (size_t)j.nbyte);
    rl_gpu_free(g, j.out, (size_t)RL_MAX(rl_desc_bytes(&j.to), j.nbyte));
    return RL_OK;
}

static rl_status run(rl_gpu *g, int64_t megabytes) {
    double sum = 0, share = 0;
    printf("# Moves on %s\n\n", rl_gpu_name(g));
    if (rl_gpu_is_emulated(g)) printf("An emulated device: the figures say nothing.\n\n");
    printf("| from | to | MB | GB/s | a copy's GB/s | share |\n|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < RL_LEN(grid); k++) {
        RL_TRY(run_row(g, k, megabytes, &share));
        sum += log(share);
    }
    printf("\ngeometric mean of the shares: %.3f\n", exp(sum / (double)RL_LEN(grid)));
    return RL_OK;
}

int main(int argc, char **argv) {
    rl_ctx *ctx = rl_ctx_new(0);
    rl_gpu *g;
    if (!ctx || RL_PROTECT(ctx)) return 1;
    rl_status s = rl_gpu_open(ctx, &g);
    if (s == RL_OK) s = run(g, argc > 1 ? strtol(argv[1], NULL, 10) : 64);
    if (s != RL_OK) fprintf(stderr, "gpu_moves: %s\n", ctx->error);
    if (g) rl_gpu_close(g);
    rl_ctx_free(ctx);
    return (int)s;
}
