/* A device that is this process (driver.h): for tests on machines without a GPU.
 *
 * Its memory can be touched inside these functions only: a kernel of the CPU that reads a tensor of the device ends the process, as
 * with a real one.  What was never written has a pattern.
 *
 * What of a recording does not come after each other is done in another order with each replay.
 *
 * watch.h says what more is seen in a build for that.
 *
 * RELAYOUT_EMULATE_FAULT makes things go wrong:  launch:conv  launches of kernels whose names begin so fail;  lost:conv  these seem
 * to go well, and then the device answers no more;  record  no recording can be made. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emulate.h"
#include "watch.h"

void rl_emulate(uint32_t kernel, uint32_t nblock, const void *param);

enum { ALIGN = 4096, PATTERN = 0xff /* no number in any type of floats */, PATTERNED = 64 << 20 /* bytes of an allocation, at most */ };
#define ROOM ((size_t)64 << 30)

typedef struct spare { struct spare *next; char *p; size_t nbyte; } spare;
/* A launch, a copy, or (fn) a call; of a recording: how many it comes after, of these those that a replay has still to do, and what comes after it. */
typedef struct order {
    struct order *next;
    uint32_t kernel, nblock;
    void *to;
    const void *from;
    size_t n;
    void *param;
    void (*fn)(void *);
    uint32_t nbefore, left;
    struct { struct order **p; uint32_t n, cap; } after;
} order;
struct rl_gpu_graph { order *first, **last; uint32_t norder, random; };
struct rl_gpu {
    rl_ctx *ctx;
    char *room;
    size_t used;
    spare *spares;
    rl_gpu_graph *recording;
    rl_gpu_node *node; /* what the next of the recording comes after */
    uint32_t nnode;
    const char *fault;
    bool lost;
    double *mark;
    uint32_t nmark;
};

/* What a launch takes on every device. */
#define GPU(name, kernel, params) _Static_assert(sizeof(params) <= 4096, "parameters of " #name);
#include "kernels.inc"
#undef GPU

const char *rl_gpu_kernel_name(rl_gpu_kernel k) {
    static const char *const names[] = {
#define GPU(name, kernel, params) #name,
#include "kernels.inc"
#undef GPU
    };
    return names[k];
}

rl_status rl_gpu_open(rl_ctx *ctx, rl_gpu **out) {
    rl_gpu *g = calloc(1, sizeof *g);
    *out = g;
    if (!g) return rl_fail(ctx, RL_ENOMEM, "out of memory");
    g->ctx = ctx;
    g->fault = getenv("RELAYOUT_EMULATE_FAULT");
    g->room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g->room != MAP_FAILED) madvise(g->room, ROOM, MADV_HUGEPAGE); /* its rights change with each launch, page by page */
    if (g->room != MAP_FAILED && rl_watch_open(g->room, ROOM)) return RL_OK;
    if (g->room != MAP_FAILED) munmap(g->room, ROOM);
    free(g);
    *out = NULL;
    return rl_fail(ctx, RL_ENOMEM, "no room for the emulated device's memory");
}

void rl_gpu_close(rl_gpu *g) {
    if (!g) return;
    for (spare *s = g->spares, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    munmap(g->room, ROOM);
    rl_watch_close(g->room);
    free(g->mark);
    free(g->node);
    free(g);
}

const char *rl_gpu_name(const rl_gpu *g) {
    (void)g;
    return "emulated device";
}

bool rl_gpu_is_emulated(const rl_gpu *g) {
    (void)g;
    return true;
}

static bool is_fault(const rl_gpu *g, const char *what, rl_gpu_kernel k) {
    size_t n = strlen(what);
    return g->fault && strncmp(g->fault, what, n) == 0 && strncmp(rl_gpu_kernel_name(k), g->fault + n, strlen(g->fault + n)) == 0;
}

static rl_status answer(const rl_gpu *g, const char *what) {
    return g->lost ? rl_fail(g->ctx, RL_EINTERNAL, "CUDA: %s: the device is lost", what) : RL_OK;
}

/* Whole huge pages, which are not split then. */
static void allow(const rl_gpu *g, int rights) {
    const size_t page = (size_t)2 << 20;
    if (g->used) mprotect(g->room, RL_MIN((g->used + page - 1) / page * page, ROOM), rights);
}

static void enter(const rl_gpu *g) { allow(g, PROT_READ | PROT_WRITE); }
static void leave(const rl_gpu *g) { allow(g, PROT_NONE); }

/* Powers of two, so that what was freed is found again. */
static size_t rounded(size_t nbyte) {
    size_t n = ALIGN;
    while (n < nbyte) n *= 2;
    return n;
}

void *rl_gpu_alloc(rl_gpu *g, size_t asked) {
    size_t nbyte = rounded(asked);
    char *p = NULL;
    for (spare **s = &g->spares; *s && !p; s = &(*s)->next) {
        if ((*s)->nbyte != nbyte) continue;
        spare *found = *s;
        p = found->p;
        *s = found->next;
        free(found);
        break;
    }
    if (!p && nbyte > ROOM - g->used) return NULL;
    if (!p) p = g->room + g->used, g->used += nbyte;
    enter(g);
    memset(p, PATTERN, RL_MIN(nbyte, (size_t)PATTERNED));
    leave(g);
    rl_watch_set(p, asked, RL_WATCH_UNWRITTEN);
    return p;
}

void rl_gpu_free(rl_gpu *g, void *p, size_t nbyte) {
    spare *s = malloc(sizeof *s);
    rl_watch_set(p, nbyte, RL_WATCH_OUTSIDE);
    if (!s) return; /* lost until the device is closed */
    *s = (spare){g->spares, p, rounded(nbyte)};
    g->spares = s;
}

rl_status rl_gpu_put(rl_gpu *g, void *to, const void *host, size_t nbyte) {
    if (g->recording) return rl_fail(g->ctx, RL_EINTERNAL, "a copy from the host inside a recording");
    return rl_gpu_put_new(g, to, host, nbyte);
}

rl_status rl_gpu_put_new(rl_gpu *g, void *to, const void *host, size_t nbyte) {
    RL_TRY(answer(g, "a copy to the device"));
    rl_watch_host(to, nbyte, true, "a copy to it");
    enter(g);
    memcpy(to, host, nbyte);
    leave(g);
    return RL_OK;
}

rl_status rl_gpu_get(rl_gpu *g, void *host, const void *from, size_t nbyte) {
    if (g->recording) return rl_fail(g->ctx, RL_EINTERNAL, "a copy to the host inside a recording");
    RL_TRY(answer(g, "a copy from the device"));
    rl_watch_host(from, nbyte, false, "a copy from it");
    enter(g);
    memcpy(host, from, nbyte);
    leave(g);
    return RL_OK;
}

static void do_order(const rl_gpu *g, const order *o) {
    if (o->param && !o->fn) rl_watch_name(rl_gpu_kernel_name((rl_gpu_kernel)o->kernel));
    if (!o->param) rl_watch_copy(o->to, o->from, o->n);
    enter(g);
    if (o->fn) o->fn(o->param);
    else if (o->param) rl_emulate(o->kernel, o->nblock, o->param);
    else memmove(o->to, o->from, o->n);
    leave(g);
}

static bool add_after(order *o, order *next) {
    if (o->after.n == o->after.cap) {
        uint32_t cap = RL_MAX(2 * o->after.cap, 2u);
        order **more = realloc(o->after.p, cap * sizeof *more);
        if (!more) return false;
        o->after.p = more, o->after.cap = cap;
    }
    o->after.p[o->after.n++] = next;
    return true;
}

static rl_status take_order(rl_gpu *g, order o) {
    RL_TRY(answer(g, "the device"));
    if (!g->recording) {
        do_order(g, &o);
        return RL_OK;
    }
    order *kept = malloc(sizeof *kept);
    void *param = o.param ? malloc(o.n) : NULL;
    if (!kept || (o.param && !param)) {
        free(kept);
        free(param);
        return rl_fail(g->ctx, RL_ENOMEM, "out of memory");
    }
    if (param) memcpy(param, o.param, o.n);
    *kept = o;
    kept->param = param;
    *g->recording->last = kept;
    g->recording->last = &kept->next;
    g->recording->norder++;
    for (; kept->nbefore < g->nnode; kept->nbefore++)
        if (!add_after(g->node[kept->nbefore].node, kept)) return rl_fail(g->ctx, RL_ENOMEM, "out of memory");
    return rl_gpu_come_after(g, &(rl_gpu_node){.node = kept}, 1, true);
}

rl_status rl_gpu_copy(rl_gpu *g, void *to, const void *from, size_t nbyte) {
    g->ctx->launched++;
    return take_order(g, (order){.to = to, .from = from, .n = nbyte});
}

rl_status rl_gpu_launch(rl_gpu *g, rl_gpu_kernel k, uint32_t nblock, const void *param, size_t nparam) {
    if (nblock > INT32_MAX) return rl_fail(g->ctx, RL_EINTERNAL, "CUDA: %s: %u blocks, which no device takes", rl_gpu_kernel_name(k), nblock);
    if (is_fault(g, "launch:", k)) return rl_fail(g->ctx, RL_EINTERNAL, "CUDA: %s: refused", rl_gpu_kernel_name(k));
    if (is_fault(g, "lost:", k)) {
        g->lost = true;
        return RL_OK;
    }
    g->ctx->launched++;
    return take_order(g, (order){.kernel = (uint32_t)k, .nblock = nblock, .n = nparam, .param = (void *)(uintptr_t)param});
}

rl_status rl_gpu_do(rl_gpu *g, void (*fn)(void *), const void *arg, size_t n) {
    return take_order(g, (order){.fn = fn, .n = n, .param = (void *)(uintptr_t)arg});
}

rl_status rl_gpu_sync(rl_gpu *g) {
    return g->recording ? rl_fail(g->ctx, RL_EINTERNAL, "a wait inside a recording") : answer(g, "kernels on the device");
}

rl_status rl_gpu_mark(rl_gpu *g, uint32_t i) {
    if (i >= g->nmark) {
        double *more = realloc(g->mark, (i + 64) * sizeof *more);
        if (!more) return rl_fail(g->ctx, RL_ENOMEM, "out of memory");
        g->mark = more, g->nmark = i + 64;
    }
    g->mark[i] = rl_seconds();
    return answer(g, "an event");
}

rl_status rl_gpu_between(rl_gpu *g, uint32_t i, double *seconds) {
    *seconds = g->mark[i + 1] - g->mark[i];
    return RL_OK;
}

rl_status rl_gpu_record(rl_gpu *g) {
    g->recording = calloc(1, sizeof *g->recording);
    if (!g->recording) return rl_fail(g->ctx, RL_ENOMEM, "out of memory");
    g->recording->last = &g->recording->first;
    g->nnode = 0;
    return RL_OK;
}

rl_status rl_gpu_record_end(rl_gpu *g, rl_gpu_graph **out) {
    *out = g->recording;
    g->recording = NULL;
    if (!g->fault || strcmp(g->fault, "record") != 0) return RL_OK;
    rl_gpu_forget(g, *out);
    *out = NULL;
    return rl_fail(g->ctx, RL_EINTERNAL, "CUDA: a recording: refused");
}

/* What does not come after each other is done in another order each time. */
rl_status rl_gpu_replay(rl_gpu *g, rl_gpu_graph *r) {
    uint32_t nready = 0;
    RL_TRY(answer(g, "a recorded graph"));
    order **ready = malloc((r->norder + 1) * sizeof *ready);
    if (!ready) return rl_fail(g->ctx, RL_ENOMEM, "out of memory");
    for (order *o = r->first; o; o = o->next)
        if (!(o->left = o->nbefore)) ready[nready++] = o;
    while (nready) {
        r->random = r->random * 1664525 + 1013904223;
        uint32_t at = (uint32_t)((uint64_t)r->random * nready >> 32);
        order *o = ready[at];
        ready[at] = ready[--nready];
        do_order(g, o);
        for (uint32_t i = 0; i < o->after.n; i++)
            if (--o->after.p[i]->left == 0) ready[nready++] = o->after.p[i];
    }
    free(ready);
    return RL_OK;
}

bool rl_gpu_has_nodes(const rl_gpu *g) {
    (void)g;
    return true;
}

rl_status rl_gpu_come_before(rl_gpu *g, const rl_gpu_node **node, uint32_t *n) {
    *node = g->node, *n = g->nnode;
    return RL_OK;
}

rl_status rl_gpu_come_after(rl_gpu *g, const rl_gpu_node *node, uint32_t n, bool last) {
    rl_gpu_node *copy = malloc((n + 1) * sizeof *copy);
    (void)last;
    if (!copy) return rl_fail(g->ctx, RL_ENOMEM, "out of memory");
    if (n) memcpy(copy, node, n * sizeof *copy);
    free(g->node);
    g->node = copy, g->nnode = n;
    return RL_OK;
}

void rl_gpu_forget(rl_gpu *g, rl_gpu_graph *r) {
    (void)g;
    for (order *o = r ? r->first : NULL, *next; o; o = next) {
        next = o->next;
        free(o->param);
        free(o->after.p);
        free(o);
    }
    free(r);
}

void *rl_gpu_stream(const rl_gpu *g) {
    (void)g;
    return NULL;
}

uint32_t rl_gpu_capability(const rl_gpu *g) {
    (void)g;
    return 0;
}
