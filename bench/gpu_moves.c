/* Bandwidth of moves on a GPU: layouts of the seeds to each other, and index_select, against a copy of the same bytes on the device and,
 * where cuDNN has that move, its own transform.
 *
 *   gpu_moves [MEGABYTES]      default 64; a table for bench/results/ on stdout
 *
 * Bytes count once read and once written.  Each figure is the least of 5 times 20 launches that follow each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../cuda/libs.h"
#include "../cuda/move.h"

enum { ROUNDS = 5, LAUNCHES = 20 };

typedef enum { COPY, MOVE, CUDNN, SELECT } way;
typedef struct {
    rl_gpu *g;
    rl_libs *libs;
    rl_desc to, from;
    rl_dnn_strides strides;
    rl_p_select select;
    uint32_t size;        /* of SELECT's elements */
    void *out, *in;
    int64_t nbyte;
    bool missing;         /* cuDNN does not do it */
} job;

static rl_status once(job *j, way how) {
    bool did = true;
    rl_status s = RL_OK;
    switch (how) {
    case COPY: return rl_gpu_copy(j->g, j->out, j->in, (size_t)j->nbyte);
    case MOVE: return rl_gpu_convert(j->g, &j->to, j->out, &j->from, j->in);
    case SELECT: return rl_gpu_launch(j->g, (rl_gpu_kernel)(RL_GPU_select1 + __builtin_ctz(j->size)), rl_gpu_blocks(j->select.count), &j->select, sizeof j->select);
    case CUDNN: s = rl_dnn_transform(j->libs, &j->strides, j->out, j->in, &did); break;
    }
    j->missing = !did;
    return s;
}

static rl_status measure(job *j, way how, double *seconds) {
    *seconds = INFINITY;
    RL_TRY(once(j, how));
    if (j->missing) return RL_OK;
    for (int r = 0; r < ROUNDS; r++) {
        RL_TRY(rl_gpu_sync(j->g));
        double start = rl_seconds();
        for (int i = 0; i < LAUNCHES; i++) RL_TRY(once(j, how));
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

/* As cuDNN's transform would be told of it; false where it is no matter of strides alone. */
static bool set_strides(job *j) {
    j->strides = (rl_dnn_strides){.type = (rl_dtype)j->from.dtype, .rank = j->from.rank};
    for (uint32_t a = 0; a < j->from.rank; a++) {
        rl_digits to = rl_desc_axis(&j->to, a), from = rl_desc_axis(&j->from, a);
        if (to.n != 1 || from.n != 1 || j->from.rank > 5 || rl_desc_padded(&j->to, a) != j->to.dim[a]) return false;
        j->strides.dim[a] = (int32_t)j->from.dim[a];
        j->strides.to[a] = (int32_t)j->to.digit[to.first].stride, j->strides.from[a] = (int32_t)j->from.digit[from.first].stride;
    }
    return true;
}

/* "f32[20,64,56,56]@NCHW": as many images as make the size. */
static rl_status describe(job *j, size_t k, int64_t megabytes, char text[2][80]) {
    rl_error e;
    int64_t h = 56, n = 1;
    for (int round = 0; round < 2; round++) {
        for (int s = 0; s < 2; s++)
            snprintf(text[s], 80, "%s[%lld,%lld,%lld,%lld]@%s", grid[k].type, (long long)n, (long long)grid[k].c, (long long)h, (long long)h,
                     s ? grid[k].to : grid[k].from);
        if (rl_desc_parse(text[0], &j->from, &e) != RL_OK || rl_desc_parse(text[1], &j->to, &e) != RL_OK) {
            fprintf(stderr, "%s\n", e.text);
            return RL_EUSAGE;
        }
        n = RL_MAX(megabytes * 8 * 1000000 / (grid[k].c * h * h * rl_desc_bits(&j->from)), 1);
    }
    return RL_OK;
}

/* What was measured of one row: shares of the copy's bandwidth and of cuDNN's (0: it has no such move). */
typedef struct { double share, of_cudnn; } figures;

static rl_status measure_row(job *j, way how, bool has_cudnn, const char *from, const char *to, figures *f) {
    double plain, moved, cudnn = 0, bytes = 2e-9 * (double)j->nbyte;
    RL_TRY(measure(j, COPY, &plain));
    RL_TRY(measure(j, how, &moved));
    if (has_cudnn) RL_TRY(measure(j, CUDNN, &cudnn));
    *f = (figures){plain / moved, has_cudnn && !j->missing ? cudnn / moved : 0};
    j->missing = false;
    printf("| %s | %s | %.1f | %.0f | %.0f | %.2f |", from, to, (double)j->nbyte * 1e-6, bytes / moved, bytes / plain, f->share);
    if (f->of_cudnn > 0) printf(" %.0f | %.2f |\n", bytes / cudnn, f->of_cudnn);
    else printf(" | |\n");
    return RL_OK;
}

static rl_status run_row(rl_gpu *g, rl_libs *libs, size_t k, int64_t megabytes, figures *f) {
    char text[2][80];
    job j = {.g = g, .libs = libs};
    RL_TRY(describe(&j, k, megabytes, text));
    j.nbyte = rl_desc_bytes(&j.from);
    size_t nout = (size_t)RL_MAX(rl_desc_bytes(&j.to), j.nbyte);
    j.in = rl_gpu_alloc(g, (size_t)j.nbyte), j.out = rl_gpu_alloc(g, nout);
    if (!j.in || !j.out) return RL_ENOMEM;
    RL_TRY(measure_row(&j, MOVE, set_strides(&j), text[0], grid[k].to, f));
    rl_gpu_free(g, j.in, (size_t)j.nbyte);
    rl_gpu_free(g, j.out, nout);
    return RL_OK;
}

/* index_select along axis 0, 1 or 2 of f32[rows, 64, inner]: a shuffle of that axis. */
static rl_status run_select(rl_gpu *g, uint32_t axis, int64_t inner, int64_t megabytes, figures *f) {
    int64_t dim[3] = {RL_MAX(megabytes * 1000000 / (256 * inner), 1), 64, inner}, step[3] = {64 * inner, inner, 1}, n = dim[axis];
    char text[80], what[40];
    job j = {.g = g, .nbyte = dim[0] * step[0] * 4};
    rl_loops l = {.rank = 3, .noperand = 3};
    int32_t *index = calloc((size_t)n, sizeof *index);
    void *there = rl_gpu_alloc(g, (size_t)n * sizeof *index), *wrong = rl_gpu_alloc(g, 4);
    j.in = rl_gpu_alloc(g, (size_t)j.nbyte), j.out = rl_gpu_alloc(g, (size_t)j.nbyte);
    if (!index || !there || !wrong || !j.in || !j.out) return RL_ENOMEM;
    for (int64_t i = 0; i < n; i++) index[i] = (int32_t)(i % 2 ? n / 2 + i / 2 : i / 2); /* a channel shuffle of two groups */
    RL_TRY(rl_gpu_put(g, there, index, (size_t)n * sizeof *index));
    for (uint32_t i = 0; i < 3; i++) l.dim[i] = dim[i], l.step[0][i] = step[i], l.step[1][i] = i == axis ? 0 : step[i], l.step[2][i] = i == axis;
    j.select = (rl_p_select){.to = j.out, .from = j.in, .index = there, .n = 1, .wrong = wrong, .node = 1};
    j.select.dim[0] = n, j.select.step[0] = step[axis];
    rl_loops_merge(&l);
    j.size = rl_select_widen(&l, &j.select, 4);
    j.select.w = rl_walk_of(&l, 0);
    j.select.count = (uint32_t)rl_loops_count(&l);
    snprintf(text, sizeof text, "f32[%lld,%lld,%lld]", (long long)dim[0], (long long)dim[1], (long long)dim[2]);
    snprintf(what, sizeof what, "index_select, axis %u", axis);
    rl_status s = measure_row(&j, SELECT, false, text, what, f);
    free(index);
    rl_gpu_free(g, there, (size_t)n * sizeof *index), rl_gpu_free(g, wrong, 4);
    rl_gpu_free(g, j.in, (size_t)j.nbyte), rl_gpu_free(g, j.out, (size_t)j.nbyte);
    return s;
}

static const struct { uint32_t axis; int64_t inner; } selects[] = {{0, 49}, {1, 3136}, {1, 64}, {2, 1024}};

static rl_status run(rl_gpu *g, rl_libs *libs, int64_t megabytes) {
    double sum = 0, least = INFINITY;
    figures f;
    printf("# Moves on %s\n\n", rl_gpu_name(g));
    if (rl_gpu_is_emulated(g)) printf("An emulated device: the figures say nothing.\n\n");
    else printf("Libraries: %s\n\n", rl_libs_say(libs));
    printf("| from | to | MB | GB/s | a copy's GB/s | share | cuDNN's GB/s | times as fast |\n|---|---|---|---|---|---|---|---|\n");
    for (size_t k = 0; k < RL_LEN(grid) + RL_LEN(selects); k++) {
        if (k < RL_LEN(grid)) RL_TRY(run_row(g, libs, k, megabytes, &f));
        else RL_TRY(run_select(g, selects[k - RL_LEN(grid)].axis, selects[k - RL_LEN(grid)].inner, megabytes, &f));
        sum += log(f.share);
        if (f.of_cudnn > 0) least = fmin(least, f.of_cudnn);
    }
    printf("\ngeometric mean of the shares: %.3f (asked for: 0.85)\n", exp(sum / (double)(RL_LEN(grid) + RL_LEN(selects))));
    if (isfinite(least)) printf("least against cuDNN's transform: %.2f (asked for: 1)\n", least);
    return RL_OK;
}

int main(int argc, char **argv) {
    rl_ctx *ctx = rl_ctx_new(0);
    rl_gpu *g;
    if (!ctx || RL_PROTECT(ctx)) return 1;
    rl_status s = rl_gpu_open(ctx, &g);
    rl_libs *libs = s == RL_OK ? rl_libs_open(g) : NULL;
    if (s == RL_OK) s = run(g, libs, argc > 1 ? strtol(argv[1], NULL, 10) : 64);
    rl_libs_close(libs);
    if (s != RL_OK) fprintf(stderr, "gpu_moves: %s\n", ctx->error);
    if (g) rl_gpu_close(g);
    rl_ctx_free(ctx);
    return (int)s;
}
