/* What cuda/watch.h looks for, is found: small kernels with a fault each, real ones without one of their barriers; and what is none is let pass. */
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../cuda/run.h"
#define _Noreturn [[noreturn]] /* of C */
#include "check.h"

enum { N = 512, ROOM = 1 << 20, FLOATS = N * sizeof(float) };
struct params { float *a, *b; const float *host; uint32_t fault; };
struct shares { float x[RL_THREADS]; };
struct keeps { float x[2]; };

/* The neighbour's number, by way of what the block shares. */
enum { CLEAN, NO_BARRIER, SHARED_WRITES, SHARED_END, SHARED_UNWRITTEN, GLOBAL_WRITES, GLOBAL_READS, BLOCKS_WRITE, BLOCKS_READ, READ_THEN_WRITTEN, END, BEFORE, UNWRITTEN, HOST, KEPT };
struct turns {
    typedef params Params;
    typedef shares Shared;
    typedef keeps Local;
    RL_MEMBER uint32_t steps(const Params &p) { return p.fault == NO_BARRIER ? 1 : 2; }

    RL_MEMBER void load(const Params &p, Shared &s, Local &l, uint32_t block, uint32_t thread) {
        uint32_t k = block * RL_THREADS + thread;
        l.x[0] = p.a[p.fault == END && k == N - 1 ? k + 1 : p.fault == GLOBAL_READS ? thread / 2 : k];
        if (p.fault == HOST) l.x[0] = p.host[thread];
        if (p.fault == KEPT && thread == 7) (&l)[1].x[0] = 1;
        if (p.fault == SHARED_UNWRITTEN && thread == 9) return;
        s.x[p.fault == SHARED_WRITES ? thread / 2 : p.fault == SHARED_END ? thread + 1 : thread] = l.x[0];
        if (p.fault == READ_THEN_WRITTEN && thread == 200) p.a[k - 1] = 0;
    }

    RL_MEMBER void store(const Params &p, const Shared &s, uint32_t block, uint32_t thread) {
        uint32_t k = block * RL_THREADS + thread;
        float x = s.x[(thread + 1) % RL_THREADS];
        if (p.fault == BLOCKS_READ && block == 1) x += p.b[0]; /* block 0 wrote it */
        if (p.fault == UNWRITTEN) x += p.b[k];
        p.b[p.fault == GLOBAL_WRITES ? k / 2 : p.fault == BLOCKS_WRITE ? thread : k] = x;
        if (p.fault == BEFORE && k == 0) p.b[-1] = x;
    }

    RL_MEMBER void step(uint32_t phase, const Params &p, Shared &s, Local &l, uint32_t block, uint32_t thread) {
        if (phase == 0) load(p, s, l, block, thread);
        if (phase == 1 || p.fault == NO_BARRIER) store(p, s, block, thread);
    }
};

/* What another thread writes after a block's last reads of it is no later block's. */
struct reads_all {
    typedef params Params;
    typedef rl_nothing Shared, Local;
    RL_STEP(params) {
        float x = 0;
        for (uint32_t k = 0; k < N; k++) x += p.a[k]; /* all threads of all blocks read all of it */
        p.b[block * RL_THREADS + thread] = x;
        if (p.fault == BLOCKS_WRITE && block == 1 && thread == 0) p.a[0] = x;
    }
};

struct room { char *p; params of; };
static room make_room(uint32_t fault) {
    static float host[RL_THREADS];
    room r = {(char *)mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), {}};
    float *heap = (float *)malloc(sizeof host);
    memcpy(heap, host, sizeof host);
    rl_watch_open(r.p, ROOM);
    r.of = {(float *)(r.p + 4096), (float *)(r.p + 65536), heap, fault};
    rl_watch_set(r.of.a, FLOATS, RL_WATCH_WRITTEN);
    rl_watch_set(r.of.b, FLOATS, RL_WATCH_UNWRITTEN);
    return r;
}

template <class K> void launch(uint32_t fault) {
    room r = make_room(fault);
    rl_watch_name("turns");
    for (int i = 0; i < 3; i++) {
        rl_run_kernel<K>(N / RL_THREADS, &r.of);
        rl_watch_host(r.of.b, FLOATS, false, "a copy from it");
    }
}

static void launch_twice(uint32_t) { /* what one launch writes, the next may read and write */
    room r = make_room(CLEAN);
    params back = {r.of.b, r.of.a, NULL, CLEAN};
    rl_run_kernel<turns>(N / RL_THREADS, &r.of);
    rl_run_kernel<turns>(N / RL_THREADS, &back);
    rl_run_kernel<reads_all>(N / RL_THREADS, &r.of);
}

/* ---- what is none ---- */

static void launch_bits(uint32_t dense) { /* threads set halves of the same bytes; dense: each its own */
    room r = make_room(CLEAN);
    rl_p_bits p = {};
    p.to = r.of.b, p.from = r.of.a, p.count = 333, p.bits = 4, p.dense_to = dense;
    p.w.rank = 1, p.w.dim[0] = rl_divisor_of(333), p.w.step[0][0] = p.w.step[1][0] = 1;
    rl_run_kernel<rl_bits>(1, &p);
}

static void launch_select(uint32_t) { /* every index is out of range */
    room r = make_room(CLEAN);
    rl_p_select p = {};
    p.to = r.of.b, p.from = r.of.a, p.index = r.of.a + 256, p.n = 1, p.count = 100, p.wrong = (uint32_t *)r.of.b + N - 1, p.node = 3;
    p.dim[0] = -1;
    p.w.rank = 1, p.w.dim[0] = rl_divisor_of(100), p.w.step[0][0] = p.w.step[1][0] = p.w.step[2][0] = 1;
    rl_run_kernel<rl_select<float>>(1, &p);
}

/* ---- what is said ---- */

/* What is said by a process that runs it, "" where it ends well. */
static const char *said(void (*run)(uint32_t), uint32_t arg) {
    static char text[1000];
    int ends[2], status;
    if (pipe(ends) != 0) return "no pipe";
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        run(arg);
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < sizeof text && (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0;) n += (size_t)got;
    text[n] = 0;
    close(ends[0]);
    if (waitpid(child, &status, 0) != child) return "no child";
    return n || status == 0 ? text : "it ends without a word";
}

static void says(void (*run)(uint32_t), uint32_t arg, const char *what) {
    const char *s = said(run, arg);
    bool fine = *what ? strstr(s, what) != NULL : !*s;
    CHECK(fine);
    if (!fine) fprintf(stderr, "fault %u, wanted: %s\ngot: %s\n", arg, what, s);
}

TEST(races) {
    says(launch<turns>, CLEAN, "");
    says(launch<turns>, NO_BARRIER, "thread 0 reads byte 4 of what the block shares, which nothing was written to"); /* not yet */
    says(launch<turns>, SHARED_WRITES, "thread 1 writes byte 0 of what the block shares, which another thread writes in the same step");
    says(launch<turns>, GLOBAL_WRITES, "of the memory, which another thread writes in the same step");
    says(launch<turns>, GLOBAL_READS, ""); /* many read the same */
    says(launch<turns>, READ_THEN_WRITTEN, "block 0, step 0, thread 200 writes byte 4892 of the memory, which another thread reads in the same step");
    says(launch<turns>, BLOCKS_WRITE, "block 1, step 1, thread 0 writes byte 65536 of the memory, which another block of the launch writes");
    says(launch<turns>, BLOCKS_READ, "reads byte 65536 of the memory, which another block of the launch writes");
    says(launch<reads_all>, CLEAN, "");
    says(launch<reads_all>, BLOCKS_WRITE, "reads");
    says(launch_twice, 0, "");
}

TEST(memory) {
    says(launch<turns>, END, "block 1, step 0, thread 255 reads byte 6144 of the memory, which is in no allocation");
    says(launch<turns>, BEFORE, "writes byte 65532 of the memory, which is in no allocation");
    says(launch<turns>, SHARED_END, "thread 255 writes byte 1024 of what the block shares, which is beyond it");
    says(launch<turns>, HOST, "the host's, or another thread's");
    says(launch<turns>, KEPT, "the host's, or another thread's");
}

TEST(numbers) {
    says(launch<turns>, UNWRITTEN, "which nothing was written to");
    says(launch<turns>, SHARED_UNWRITTEN, "reads byte 36 of what the block shares, which nothing was written to");
}

TEST(exceptions) {
    says(launch_bits, 0, "");
    says(launch_bits, 1, "");
    says(launch_select, 0, "");
}

/* ---- barriers of real kernels ---- */

static const char *folder; /* of the programs that run them */
static const struct { const char *drop, *test; } barriers[] = {
    {"tile4:0", "move"}, {"any_tile2:0", "move"}, {"word_tile2:0", "move"}, {"word_tile8:0", "move"}, {"tall_tile8:0", "move"}, {"depthwise_rows_f16:0", "run"}, {"weave1:0", "move"}, {"interleave3x1:0", "move"}, {"interleave16x2:0", "move"}, {"reduce_f32:0", "table"}, {"reduce_f32:1", "table"}, {"rows32_f32:0", "table"}, {"rows32_f32:1", "table"},
    {"rows32_f32:2", "table"}, {"rows32_f32:3", "table"}, {"moments_f32:0", "table"}, {"moments_f32:1", "table"}, {"moments_f32:2", "table"}, {"moments_f32:3", "table"},
    {"parted_f32:0", "table"}, {"parted_f32:1", "table"}, {"parted_f32:2", "table"}, {"parted_f32:3", "table"}, {"matmul_f32:0", "table"}, {"matmul_f32:1", "table"}, {"matmul_f32:2", "table"},
    {"few_rows_f32:0", "table"}, {"few_rows_f32:1", "table"}, {"few_across_f32:0", "table"}, {"few_across_f32:1", "table"},
    {"recurrent_few_f32:0", "recurrent"}, {"recurrent_few_f32:1", "recurrent"}};

static void run_without(uint32_t k) {
    char path[600];
    snprintf(path, sizeof path, "%s/watched_gpu_%s", folder, barriers[k].test);
    setenv("RELAYOUT_WATCH_DROP", barriers[k].drop, 1);
    execl(path, path, (char *)NULL);
}

TEST(real_kernels) {
    for (uint32_t k = 0; k < sizeof barriers / sizeof *barriers; k++) says(run_without, k, "of what the block shares, which ");
}

int main(int argc, char **argv) {
    folder = argc > 1 ? argv[1] : ".";
    RUN(races);
    RUN(memory);
    RUN(numbers);
    RUN(exceptions);
    RUN(real_kernels);
    return check_done();
}
