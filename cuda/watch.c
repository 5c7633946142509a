/* A shadow of the emulated device's memory: see watch.h.  Each byte has who touched it last.
 *
 * Blocks run one after the other, and a block's steps too, so that a number that counts steps says it all: it is this step's, or one of this block, of
 * this launch, or older.  That is exact: of other threads' reads in a step, and of other blocks' in a launch, it is kept that there were any. */
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Steps are counted from 1 in the upper bits, the thread lies in the lower ones; MANY: more than one thread. */
enum { THREAD_BITS = 9, MANY = 1 << (THREAD_BITS - 1), LAST_STEP = (1 << (31 - THREAD_BITS)) - 1, MOST_ROOMS = 16, FRAME = 64 << 10 };
#define THREAD_MASK ((1u << THREAD_BITS) - 1)

/* The last write and read, and the last read before the block that read last. */
typedef struct { uint32_t write, read, before; } cell;
typedef struct { const char *base; size_t n; cell *cell; uint8_t *state; } room;

static room rooms[MOST_ROOMS];
static cell shared_cell[RL_WATCH_SHARED];
static uint8_t shared_state[RL_WATCH_SHARED];
static room shared = {.n = RL_WATCH_SHARED, .cell = shared_cell, .state = shared_state};
static struct {
    rl_watch_launch launch;
    const char *kernel, *local;
    size_t nlocal;
    uint32_t block, step, thread, dropped; /* dropped: a barrier that is left out, from 1 */
    uint32_t now, launch_from, block_from; /* steps as they are counted */
    bool running;
} at;

/* ---- memory ---- */

static void *map(size_t n) {
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool rl_watch_open(const void *base, size_t n) {
    for (room *r = rooms; r < rooms + MOST_ROOMS; r++) {
        if (r->base) continue;
        *r = (room){base, n, map(n * sizeof(cell)), map(n)};
        if (r->cell && r->state) return true;
        rl_watch_close(base);
        return false;
    }
    return false;
}

void rl_watch_close(const void *base) {
    for (room *r = rooms; r < rooms + MOST_ROOMS; r++) {
        if (r->base != (const char *)base) continue;
        if (r->cell) munmap(r->cell, r->n * sizeof(cell));
        if (r->state) munmap(r->state, r->n);
        *r = (room){0};
    }
}

static bool is_in(const char *p, const char *base, size_t n) {
    return (uintptr_t)p - (uintptr_t)base < n;
}

static room *room_of(const char *p) {
    static room *last = rooms;
    if (is_in(p, last->base, last->n)) return last;
    if (is_in(p, at.launch.shared, RL_WATCH_SHARED)) return &shared;
    for (room *r = rooms; r < rooms + MOST_ROOMS; r++)
        if (r->base && is_in(p, r->base, r->n)) return last = r;
    return NULL;
}

static void out_of_memory(const char *what, const char *p) {
    const room *r = room_of(p);
    fprintf(stderr, "emulated device: %s: byte %zu of its memory is in no allocation\n", what, r ? (size_t)(p - r->base) : 0);
    abort();
}

void rl_watch_set(const void *p, size_t n, rl_watch_state s) {
    room *r = room_of(p);
    if (r) memset(r->state + ((const char *)p - r->base), (int)s, n);
}

void rl_watch_host(const void *p, size_t n, bool write, const char *what) {
    room *r = room_of(p);
    for (size_t i = 0; i < n; i++)
        if (!r || !is_in((const char *)p + i, r->base, r->n) || r->state[(const char *)p + i - r->base] == RL_WATCH_OUTSIDE) out_of_memory(what, (const char *)p + i);
    if (write && n) rl_watch_set(p, n, RL_WATCH_WRITTEN);
}

void rl_watch_copy(void *to, const void *from, size_t n) {
    room *r = room_of(to), *s = room_of(from);
    rl_watch_host(from, n, false, "a copy on it");
    rl_watch_host(to, n, false, "a copy on it");
    if (n) memmove(r->state + ((char *)to - r->base), s->state + ((const char *)from - s->base), n);
}

/* ---- who runs ---- */

/* The count has come to its end: what earlier blocks of this launch have touched is forgotten. */
static void start_again(void) {
    for (room *r = rooms; r < rooms + MOST_ROOMS; r++)
        if (r->base) madvise(r->cell, r->n * sizeof(cell), MADV_DONTNEED);
    memset(shared_cell, 0, sizeof shared_cell);
    at.now = at.launch_from = at.block_from = 1;
}

static void count(void) {
    if (++at.now >= LAST_STEP) start_again();
}

void rl_watch_name(const char *kernel) {
    at.kernel = kernel;
}

void rl_watch_begin(const rl_watch_launch *l) {
    const char *drop = getenv("RELAYOUT_WATCH_DROP");
    size_t n = at.kernel ? strlen(at.kernel) : 0;
    at.launch = *l;
    at.dropped = drop && n && strncmp(drop, at.kernel, n) == 0 && drop[n] == ':' ? (uint32_t)strtoul(drop + n + 1, NULL, 10) + 1 : 0;
    shared.base = l->shared;
    memset(shared_state, RL_WATCH_OUTSIDE, sizeof shared_state);
    count();
    at.launch_from = at.now;
}

bool rl_watch_drops(uint32_t step) {
    return step + 1 == at.dropped;
}

void rl_watch_block(uint32_t block) {
    memset(shared_state + RL_WATCH_MARGIN, RL_WATCH_UNWRITTEN, at.launch.nshared);
    at.running = false;
    at.block = block;
    count();
    at.block_from = at.now;
}

void rl_watch_step(uint32_t step) {
    at.running = false;
    at.step = step;
    count();
}

void rl_watch_thread(uint32_t thread, const void *local, size_t nlocal) {
    at.thread = thread;
    at.local = local;
    at.nlocal = nlocal;
    at.running = true;
}

void rl_watch_end(void) {
    at.running = false;
}

/* ---- what it does ---- */

static void complain(bool write, const room *r, const char *p, const char *why) {
    fprintf(stderr, "emulated device: kernel %s, block %u, step %u, thread %u %s ", at.kernel ? at.kernel : "?", at.block, at.step, at.thread, write ? "writes" : "reads");
    if (!r) fprintf(stderr, "address %p, which is %s\n", (const void *)p, why);
    else if (r == &shared) fprintf(stderr, "byte %td of what the block shares, which %s\n", p - r->base - RL_WATCH_MARGIN, why);
    else fprintf(stderr, "byte %td of the memory, which %s\n", p - r->base, why);
    abort();
}

/* Whether another thread touched it in this step, or (not in what a block shares) another block in this launch. */
static const char *conflict(uint32_t last, bool other_blocks, bool wrote) {
    uint32_t step = last >> THREAD_BITS, thread = last & THREAD_MASK;
    if (step == at.now && thread != at.thread) return wrote ? "another thread writes in the same step" : "another thread reads in the same step";
    if (other_blocks && step >= at.launch_from && step < at.block_from) return wrote ? "another block of the launch writes" : "another block of the launch reads";
    return NULL;
}

static void note_read(cell *c) {
    uint32_t step = c->read >> THREAD_BITS;
    if (step < at.block_from) c->before = c->read;
    c->read = at.now << THREAD_BITS | (step == at.now && (c->read & THREAD_MASK) != at.thread ? (uint32_t)MANY : at.thread);
}

static void look(room *r, const char *p, size_t n, bool write) {
    size_t first = (size_t)(p - r->base);
    uint32_t me = at.now << THREAD_BITS | at.thread, all = at.now << THREAD_BITS | MANY;
    bool blocks = r != &shared, atomic = at.launch.atomic && n == 1 && blocks;
    if (p == (const char *)at.launch.any_writer && write) return;
    for (size_t i = first; i < first + n && i < r->n; i++) {
        cell *c = &r->cell[i];
        if (!write && (c->read == me || c->read == all)) continue; /* as before in this step: most reads of products and convolutions */
        if (r->state[i] == RL_WATCH_OUTSIDE) complain(write, r, r->base + i, blocks ? "is in no allocation" : "is beyond it");
        if (!write && r->state[i] == RL_WATCH_UNWRITTEN && !atomic) complain(write, r, r->base + i, "nothing was written to");
        if (write) r->state[i] = RL_WATCH_WRITTEN;
        if (atomic) continue;
        const char *why = conflict(c->write, blocks, true);
        if (write && !why) why = conflict(c->read, blocks, false);
        if (write && !why) why = conflict(c->before, blocks, false);
        if (why) complain(write, r, r->base + i, why);
        if (write) c->write = me;
        else note_read(c);
    }
}

/* The program's own tables, this thread's variables, the parameters; else it is the host's memory, or another thread's. */
static bool is_own(const char *p, const char *frame) {
    extern const char __executable_start[], end[];
    return is_in(p, at.local, at.nlocal) || is_in(p, frame, (size_t)((const char *)at.launch.frame + FRAME - frame))
           || is_in(p, __executable_start, (size_t)(end - __executable_start));
}

static inline void touch(const void *p, size_t n, bool write) {
    if (!at.running) return;
    const char *frame = __builtin_frame_address(0);
    room *r;
    if (is_in(p, frame, (size_t)((const char *)at.launch.frame + FRAME - frame))) return; /* most of them */
    if ((r = room_of(p))) look(r, p, n, write);
    else if (!is_own(p, frame)) complain(write, NULL, p, "the host's, or another thread's");
}

/* ---- what the compilers call ---- */

#define CALLS(n)                                                                                                     \
    void __tsan_read##n(void *p);                                                                                    \
    void __tsan_write##n(void *p);                                                                                   \
    void __tsan_unaligned_read##n(void *p);                                                                          \
    void __tsan_unaligned_write##n(void *p);                                                                         \
    void __tsan_read##n(void *p) { touch(p, n, false); }                                                             \
    void __tsan_write##n(void *p) { touch(p, n, true); }                                                             \
    void __tsan_unaligned_read##n(void *p) { touch(p, n, false); }                                                   \
    void __tsan_unaligned_write##n(void *p) { touch(p, n, true); }
CALLS(1)
CALLS(2)
CALLS(4)
CALLS(8)
CALLS(16)

void __tsan_init(void);
void __tsan_func_entry(void *p);
void __tsan_func_exit(void);
void __tsan_read_range(void *p, size_t n);
void __tsan_write_range(void *p, size_t n);
void *__tsan_memcpy(void *to, const void *from, size_t n);
void *__tsan_memset(void *to, int x, size_t n);
void __tsan_init(void) {}
void __tsan_func_entry(void *p) { (void)p; }
void __tsan_func_exit(void) {}
void __tsan_read_range(void *p, size_t n) { touch(p, n, false); }
void __tsan_write_range(void *p, size_t n) { touch(p, n, true); }
void *__tsan_memcpy(void *to, const void *from, size_t n) {
    touch(from, n, false);
    touch(to, n, true);
    return memcpy(to, from, n);
}
void *__tsan_memset(void *to, int x, size_t n) {
    touch(to, n, true);
    return memset(to, x, n);
}
