/* Bandwidth of moves on a GPU, against a copy of the same bytes on the device and, where cuDNN has that move, its own transform: the grid of
 * `relayout bench-move`, index_select, and layouts of the seeds to each other.
 *
 *   gpu_moves [MEGABYTES ...]      default 16 64 256; tables for bench/results/ on stdout
 *   gpu_moves quick 1              each move 20 times only: figures that say nothing, to see that it runs
 *
 * The copy is the driver's, of the same bytes; where these are no whole pages of 4 KiB it takes a way half as quick, so that one of whole pages stands beside
 * it, and shares are of the better one.
 *
 * Bytes count once read and once written.  Each figure is the least of 5 times so many moves as read 4 GB, recorded as a graph of 20 so that the host
 * does not count.  Each move takes other arrays than the one before, 1 GB of them in all, so that the device's cache does not count either.
 *
 * cuDNN's transform is measured as the own moves are: its descriptors are made before, its calls are recorded as a graph of 20 on the same arrays, and
 * what it writes is looked at.  Where it cannot be recorded, both go call by call, 20 under way before the next wait, and the row says so: then the host's
 * part counts on both sides, which on the own one is the choice of a kernel. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cuda/libs.h"
#include "../cuda/move.h"
#include "../runtime/move_grid.h"

enum { ROUNDS = 5, LAUNCHES = 20, ROOM = 1 << 30, MOST_SIZES = 8, PAGE = 4096 };
static const double READ = 4e9;

typedef enum { COPY, MOVE, CONVERT, CUDNN, SELECT } way;
typedef struct {
    rl_gpu *g;
    rl_libs *libs;
    char *to, *from;      /* arrays, one after the other */
    size_t room;          /* of each of the two */
    bool quick;
    rl_loops loops;       /* MOVE, SELECT */
    rl_desc out, in;      /* CONVERT */
    rl_dnn_transform *dnn; /* NULL: cuDNN does not do it */
    rl_p_select select;
    uint32_t size;        /* bytes of an element of MOVE and SELECT */
    int64_t nbyte, nout;  /* of one array */
} job;

/* Shares of the copy's bandwidth, and of cuDNN's. */
typedef struct { double logs, least; uint32_t n, below; } mean;
typedef struct { mean best, same, cudnn; } means;

static rl_status once(job *j, way how, uint32_t turn) {
    size_t each = ((size_t)RL_MAX(j->nbyte, j->nout) + 255) / 256 * 256, narray = RL_MAX(j->room / each, 1u);
    char *to = j->to + turn % narray * each, *from = j->from + turn % narray * each;
    rl_p_select p = j->select;
    switch (how) {
    case COPY: return rl_gpu_copy(j->g, to, from, (size_t)j->nbyte);
    case MOVE: return rl_gpu_move(j->g, &j->loops, 8 * j->size, to, 0, from, 0);
    case CONVERT: return rl_gpu_convert(j->g, &j->out, to, &j->in, from);
    case SELECT:
        p.to = to, p.from = from;
        return rl_gpu_select(j->g, &j->loops, &p, j->size);
    case CUDNN: return rl_dnn_transform_run(j->dnn, to, from) ? RL_OK : RL_EUSAGE; /* it is passed over */
    }
    return RL_OK;
}

/* A graph of them; NULL after a failure. */
static rl_status record(job *j, way how, rl_gpu_graph **graph) {
    *graph = NULL;
    RL_TRY(rl_gpu_record(j->g));
    rl_status s = RL_OK;
    for (uint32_t i = 0; i < LAUNCHES && s == RL_OK; i++) s = once(j, how, i);
    rl_status ended = rl_gpu_record_end(j->g, graph);
    if (s == RL_OK) s = ended;
    if (s != RL_OK) rl_gpu_forget(j->g, *graph), *graph = NULL;
    return s;
}

/* graph NULL: one by one. */
static rl_status measure_as(job *j, way how, rl_gpu_graph *graph, double *seconds) {
    int times = j->quick ? 1 : (int)ceil(READ / LAUNCHES / (double)j->nbyte);
    *seconds = INFINITY;
    for (int r = -1; r < ROUNDS; r++) { /* one that does not count */
        RL_TRY(rl_gpu_sync(j->g));
        double start = rl_seconds();
        for (int t = 0; t < times; t++) {
            if (graph) RL_TRY(rl_gpu_replay(j->g, graph));
            for (uint32_t i = 0; !graph && i < LAUNCHES; i++) RL_TRY(once(j, how, i));
        }
        RL_TRY(rl_gpu_sync(j->g));
        if (r >= 0) *seconds = fmin(*seconds, (rl_seconds() - start) / LAUNCHES / times);
    }
    return RL_OK;
}

static rl_status measure(job *j, way how, double *seconds) {
    rl_gpu_graph *graph;
    RL_TRY(once(j, how, 0));
    RL_TRY(record(j, how, &graph));
    rl_status s = measure_as(j, how, graph, seconds);
    rl_gpu_forget(j->g, graph);
    return s;
}

/* ---- cuDNN's ---- */

/* Does the recording write what our move does? Nine bytes of ten: it may make another NaN of a NaN, and zeros of what is close to 0. */
static rl_status is_true(job *j, rl_gpu_graph *graph, bool *same) {
    enum { SOME = 1 << 16 };
    static char ours[SOME], theirs[SOME];
    size_t n = RL_MIN((size_t)j->nout, (size_t)SOME), equal = 0;
    RL_TRY(once(j, MOVE, 0));
    RL_TRY(rl_gpu_get(j->g, ours, j->to, n));
    memset(theirs, 0, n);
    RL_TRY(rl_gpu_put(j->g, j->to, theirs, n));
    if ((graph ? rl_gpu_replay(j->g, graph) : once(j, CUDNN, 0)) != RL_OK) return RL_OK;
    RL_TRY(rl_gpu_get(j->g, theirs, j->to, n));
    for (size_t i = 0; i < n; i++) equal += ours[i] == theirs[i];
    *same = equal >= n - n / 10;
    return RL_OK;
}

/* theirs: INFINITY where cuDNN does not do it. ours: measured again where both go call by call. */
static rl_status measure_dnn(job *j, double *theirs, double *ours, bool *recorded) {
    rl_gpu_graph *graph;
    bool same = false;
    if (!j->dnn || once(j, CUDNN, 0) != RL_OK) return RL_OK;
    RL_TRY(rl_gpu_sync(j->g));
    *recorded = record(j, CUDNN, &graph) == RL_OK;
    rl_status s = is_true(j, graph, &same);
    if (s == RL_OK && same) s = measure_as(j, CUDNN, graph, theirs);
    if (s == RL_OK && same && !graph) s = measure_as(j, MOVE, NULL, ours);
    rl_gpu_forget(j->g, graph);
    return s;
}

static void add(mean *m, double ratio) {
    m->logs += log(ratio);
    m->least = m->n++ ? fmin(m->least, ratio) : ratio;
    m->below += ratio < 0.99;
}

/* GB/s of a copy of these bytes, and the better of that and of one of as many whole pages: without these the driver's copy takes a slower way. */
static rl_status measure_copy(job *j, double *same, double *best) {
    double seconds;
    int64_t given = j->nbyte;
    RL_TRY(measure(j, COPY, &seconds));
    *same = *best = 2e-9 * (double)given / seconds;
    j->nbyte -= given % PAGE;
    rl_status s = j->nbyte && j->nbyte != given ? measure(j, COPY, &seconds) : RL_OK;
    if (s == RL_OK) *best = fmax(*best, 2e-9 * (double)j->nbyte / seconds);
    j->nbyte = given;
    return s;
}

/* One row of the table. */
static rl_status run_row(job *j, way how, const char *what, uint32_t size, means *m) {
    double same, copied, moved, beside, theirs = INFINITY, bytes = 1e-9 * (double)(j->nbyte + j->nout);
    RL_TRY(measure_copy(j, &same, &copied));
    RL_TRY(measure(j, how, &moved));
    bool recorded = true;
    beside = moved;
    RL_TRY(measure_dnn(j, &theirs, &beside, &recorded));
    double share = bytes / moved / copied;
    add(&m->best, share), add(&m->same, bytes / moved / same);
    printf("| %s | %u | %.1f | %.0f | %.0f | %.0f | %.2f |", what, size, (double)j->nbyte * 1e-6, bytes / moved, same, copied, share);
    if (isfinite(theirs)) {
        add(&m->cudnn, theirs / beside);
        printf(" %.0f%s | %.2f |\n", bytes / theirs, recorded ? "" : ", call by call", theirs / beside);
    } else printf(" | |\n");
    fflush(stdout);
    return RL_OK;
}

/* ---- the grid ---- */

/* As cuDNN's transform would be told of it: 4 or 5 dims. */
static rl_dnn_strides strides_of(const rl_loops *l, uint32_t size) {
    static const rl_dtype types[] = {RL_I8, RL_F16, RL_F32, RL_F64};
    rl_dnn_strides s = {.type = types[__builtin_ctz(size)]};
    uint32_t lead = l->rank < 4 ? 4 - l->rank : 0;
    if (l->rank > 5) return s;
    s.rank = l->rank + lead;
    for (uint32_t i = 0; i < s.rank; i++) {
        bool is = i >= lead;
        s.dim[i] = is ? (int32_t)l->dim[i - lead] : 1;
        s.to[i] = is ? (int32_t)l->step[0][i - lead] : (int32_t)rl_loops_count(l), s.from[i] = is ? (int32_t)l->step[1][i - lead] : s.to[i];
    }
    return s;
}

static rl_status run_case(job *j, const rl_move_case *given, uint32_t size, int64_t megabytes, means *m) {
    rl_move_case c = rl_move_sized(given, megabytes * 1000000, size);
    j->loops = (rl_loops){.rank = c.rank, .noperand = 2};
    for (uint32_t i = 0; i < c.rank; i++) j->loops.dim[i] = c.dim[c.perm[i]];
    rl_move_steps(&c, j->loops.step[0], j->loops.step[1]);
    j->size = size, j->nbyte = j->nout = rl_loops_count(&j->loops) * size;
    rl_dnn_strides strides = strides_of(&j->loops, size);
    j->dnn = rl_dnn_transform_new(j->libs, &strides);
    rl_status s = run_row(j, MOVE, c.name, size, m);
    rl_dnn_transform_free(j->dnn);
    j->dnn = NULL;
    return s;
}

/* index_select along axis 0, 1 or 2 of [rows, 64, inner]: a shuffle of that axis. */
static rl_status run_select(job *j, uint32_t axis, int64_t inner, uint32_t size, int64_t megabytes, means *m) {
    int64_t dim[3] = {RL_MAX(megabytes * 1000000 / (64 * size * inner), 2), 64, inner}, step[3] = {64 * inner, inner, 1}, n = dim[axis];
    char what[80];
    rl_loops l = {.rank = 3, .noperand = 3};
    int32_t *index = calloc((size_t)n, sizeof *index);
    void *there = rl_gpu_alloc(j->g, (size_t)n * sizeof *index), *wrong = rl_gpu_alloc(j->g, 4);
    if (!index || !there || !wrong) return RL_ENOMEM;
    for (int64_t i = 0; i < n; i++) index[i] = (int32_t)(i % 2 ? n / 2 + i / 2 : i / 2); /* a channel shuffle of two groups */
    RL_TRY(rl_gpu_put(j->g, there, index, (size_t)n * sizeof *index));
    for (uint32_t i = 0; i < 3; i++) l.dim[i] = dim[i], l.step[0][i] = step[i], l.step[1][i] = i == axis ? 0 : step[i], l.step[2][i] = i == axis;
    j->nbyte = j->nout = dim[0] * step[0] * size;
    j->select = (rl_p_select){.index = there, .n = 1, .wrong = wrong, .node = 1};
    j->select.dim[0] = n, j->select.step[0] = step[axis];
    rl_loops_merge(&l);
    j->loops = l, j->size = size;
    snprintf(what, sizeof what, "index_select, axis %u of [%lld,%lld,%lld]", axis, (long long)dim[0], (long long)dim[1], (long long)dim[2]);
    rl_status s = run_row(j, SELECT, what, size, m);
    free(index);
    rl_gpu_free(j->g, there, (size_t)n * sizeof *index), rl_gpu_free(j->g, wrong, 4);
    return s;
}

static const struct { uint32_t axis; int64_t inner; } selects[] = {{0, 49}, {1, 3136}, {1, 64}, {2, 1024}};

static rl_status run_grid(job *j, int64_t megabytes, means *m) {
    for (uint32_t i = 0; i < RL_NMOVE_GRID; i++)
        for (uint32_t size = 1; size <= 8; size *= 2) RL_TRY(run_case(j, &rl_move_grid[i], size, megabytes, m));
    for (uint32_t i = 0; i < RL_LEN(selects); i++)
        for (uint32_t size = 2; size <= 4; size *= 2) RL_TRY(run_select(j, selects[i].axis, selects[i].inner, size, megabytes, m));
    return RL_OK;
}

/* ---- layouts ---- */

static const struct { const char *type, *from, *to; int64_t c; } layouts[] = {
    {"i8", "NCHW", "NCHW4", 64},   {"i8", "NCHW4", "NCHW", 64},    {"i8", "NCHW", "NCHW32", 64},  {"i8", "NCHW32", "NCHW", 64},
    {"i4", "NCHW", "NCHW64", 64},  {"i4", "NCHW64", "NCHW", 64},   {"i8", "NCHW", "CHWN4", 64},   {"i8", "CHWN4", "NCHW", 64},
    {"i8", "NHWC", "NCHW4", 64},   {"i8", "NHWC", "NCHW32", 64},   {"i8", "NCHW4", "NCHW32", 64}, {"i8", "NCHW4", "CHWN4", 64},
    {"f32", "NCHW", "nChw8c", 64}, {"f32", "nChw16c", "NHWC", 64}, {"f32", "NCHW", "CHWN", 64},   {"i8", "NCHW", "NCHW4", 30},
    {"f32", "NCHW", "nChw8c", 20}};

/* "i8[320,64,56,56]@NCHW": as many images as make the size. */
static rl_status describe(job *j, size_t k, int64_t megabytes, char text[2][80]) {
    rl_error e;
    int64_t h = 56, n = 1;
    for (int round = 0; round < 2; round++) {
        for (int s = 0; s < 2; s++)
            snprintf(text[s], 80, "%s[%lld,%lld,%lld,%lld]@%s", layouts[k].type, (long long)n, (long long)layouts[k].c, (long long)h, (long long)h,
                     s ? layouts[k].to : layouts[k].from);
        if (rl_desc_parse(text[0], &j->in, &e) != RL_OK || rl_desc_parse(text[1], &j->out, &e) != RL_OK) {
            fprintf(stderr, "%s\n", e.text);
            return RL_EUSAGE;
        }
        n = RL_MAX(megabytes * 8 * 1000000 / (layouts[k].c * h * h * rl_desc_bits(&j->in)), 1);
    }
    return RL_OK;
}

static rl_status run_layout(job *j, size_t k, int64_t megabytes, means *m) {
    char text[2][80], what[200];
    RL_TRY(describe(j, k, megabytes, text));
    j->nbyte = rl_desc_bytes(&j->in), j->nout = rl_desc_bytes(&j->out);
    snprintf(what, sizeof what, "%s to %s", text[0], layouts[k].to);
    return run_row(j, CONVERT, what, (rl_desc_bits(&j->in) + 7) / 8, m);
}

/* ---- all of it ---- */

static void put_head(const char *what) {
    printf("\n%s\n\n| move | bytes of an element | MB | GB/s | a copy's GB/s | the best copy's GB/s | share of that | cuDNN's GB/s | times as fast |\n"
           "|---|---|---|---|---|---|---|---|---|\n", what);
}

static void put_mean(const char *what, const means *m) {
    printf("- %s: geometric mean %.3f of the best copy's bandwidth (of a copy of the same bytes: %.3f), least %.2f, %u points\n", what, exp(m->best.logs / m->best.n),
           exp(m->same.logs / m->same.n), m->best.least, m->best.n);
}

static rl_status run(job *j, const int64_t *megabytes, uint32_t n) {
    means grid = {0}, others = {0};
    printf("Moves on %s. %s\n", rl_gpu_name(j->g), j->quick ? "The figures say nothing." : rl_libs_say(j->libs));
    put_head("The grid of `relayout bench-move`, and index_select:");
    for (uint32_t i = 0; i < n; i++) RL_TRY(run_grid(j, megabytes[i], &grid));
    put_head("Layouts:");
    for (size_t k = 0; k < RL_LEN(layouts); k++) RL_TRY(run_layout(j, k, megabytes[n / 2], &others));
    printf("\n");
    put_mean("the grid", &grid);
    put_mean("layouts", &others);
    if (grid.cudnn.n)
        printf("- against cuDNN's transform: geometric mean %.2f of %u points that it has, least %.2f, below 0.99 (what two runs of one move differ by): %u\n",
               exp(grid.cudnn.logs / grid.cudnn.n), grid.cudnn.n, grid.cudnn.least, grid.cudnn.below);
    return RL_OK;
}

/* Arrays of numbers drawn at random: some devices are quicker with zeros. */
static rl_status fill(job *j) {
    enum { PIECE = 1 << 20 };
    uint64_t *p = malloc(PIECE), seed = 1;
    if (!p) return RL_ENOMEM;
    for (size_t i = 0; i < PIECE / sizeof *p; i++) p[i] = seed = seed * 6364136223846793005u + 1442695040888963407u;
    rl_status s = RL_OK;
    for (size_t at = 0; at < j->room && s == RL_OK; at += PIECE) s = rl_gpu_put(j->g, j->from + at, p, RL_MIN((size_t)PIECE, j->room - at));
    free(p);
    return s;
}

/* Sizes, from argument `first` on, and how many. */
static uint32_t read_sizes(int argc, char **argv, int first, int64_t *megabytes) {
    uint32_t n = argc > first ? RL_MIN((uint32_t)(argc - first), (uint32_t)MOST_SIZES) : 3;
    for (uint32_t i = 0; i < n && argc > first; i++) megabytes[i] = RL_MAX(strtol(argv[first + (int)i], NULL, 10), 1);
    return n;
}

int main(int argc, char **argv) {
    rl_ctx *ctx = rl_ctx_new(0);
    job j = {0};
    int64_t megabytes[MOST_SIZES] = {16, 64, 256}, most = 0;
    const bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
    const uint32_t n = read_sizes(argc, argv, quick ? 2 : 1, megabytes);
    if (!ctx || RL_PROTECT(ctx)) return 1;
    for (uint32_t i = 0; i < n; i++) most = RL_MAX(most, megabytes[i]);
    rl_status s = rl_gpu_open(ctx, &j.g);
    j.libs = s == RL_OK ? rl_libs_open(j.g) : NULL;
    if (s == RL_OK) {
        j.quick = quick || rl_gpu_is_emulated(j.g);
        j.room = j.quick ? 0 : ROOM;
        j.room = RL_MAX(j.room, (size_t)most * 2500000); /* dims are rounded up, and so are blocks of channels */
        j.to = rl_gpu_alloc(j.g, j.room), j.from = rl_gpu_alloc(j.g, j.room);
        s = j.to && j.from ? fill(&j) : rl_fail(ctx, RL_ENOMEM, "no memory left on the device");
    }
    if (s == RL_OK) s = run(&j, megabytes, n);
    rl_libs_close(j.libs);
    if (s != RL_OK) fprintf(stderr, "gpu_moves: %s\n", ctx->error);
    if (j.to) rl_gpu_free(j.g, j.to, j.room);
    if (j.from) rl_gpu_free(j.g, j.from, j.room);
    if (j.g) rl_gpu_close(j.g);
    rl_ctx_free(ctx);
    return (int)s;
}
