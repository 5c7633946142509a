/* The CPU backend: its kernel table (kernels.def) and its memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fast.h"
#include "kernels.h"
#include "kernels_fast.h"
#include "recurrent.h"
#include "ref_attention.h"
#include "ref_axis.h"
#include "ref_fused.h"
#include "ref_layernorm.h"
#include "ref_pointwise.h"
#include "ref_pool.h"
#include "ref_reduce.h"
#include "ref_signal.h"
#include "ref_softmax.h"

static const rl_kernel table[] = {
#define KERNEL(domain, type, since, until, types, fn, arg) {domain, #type, since, until, types, fn, arg},
#include "kernels.def"
#undef KERNEL
};

static const rl_kernel fast_table[] = {
#define KERNEL(domain, type, since, until, types, fn, arg) {domain, #type, since, until, types, fn, arg},
#include "kernels_fast.def"
#include "kernels.def"
#undef KERNEL
};

enum { ALIGN = 64, LARGE = 1 << 16, HUGE_PAGE = 1 << 21 };

/* The caller's allocator aligns as malloc does: how far the block begins before what is used stands in front of that. */
static void *host_alloc(const rl_context *host, size_t nbyte) {
    char *p = host->allocate(host->user, nbyte + ALIGN + sizeof(size_t));
    if (!p) return NULL;
    size_t skip = sizeof(size_t) + (ALIGN - ((uintptr_t)p + sizeof(size_t)) % ALIGN) % ALIGN;
    memcpy(p + skip - sizeof skip, &skip, sizeof skip);
    return p + skip;
}

static void host_free(const rl_context *host, char *p, size_t nbyte) {
    size_t skip;
    memcpy(&skip, p - sizeof skip, sizeof skip);
    host->release(host->user, p - skip, nbyte + ALIGN + sizeof(size_t));
}

/* The whole huge pages in it are asked for as such: channels-last convolutions walk over many pages at once. */
static void *huge_alloc(size_t nbyte) {
    void *p = NULL;
    if (posix_memalign(&p, HUGE_PAGE, nbyte) != 0) return NULL;
    madvise(p, nbyte / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return p;
}

static void *cpu_alloc(rl_rt *rt, size_t nbyte) {
    if (nbyte > SIZE_MAX / 2) return NULL;
    if (rt->ctx->host.allocate) return host_alloc(&rt->ctx->host, nbyte);
    return nbyte < HUGE_PAGE ? aligned_alloc(ALIGN, (nbyte + ALIGN) / ALIGN * ALIGN) : huge_alloc(nbyte);
}

static void cpu_free(rl_rt *rt, void *p, size_t nbyte) {
    if (rt->ctx->host.allocate) host_free(&rt->ctx->host, p, nbyte);
    else free(p);
}

static rl_status cpu_copy(rl_rt *rt, void *to, const void *from, size_t nbyte) {
    (void)rt;
    if (nbyte) memcpy(to, from, nbyte);
    return RL_OK;
}

static rl_status cpu_sync(rl_rt *rt) {
    (void)rt;
    return RL_OK;
}

const rl_backend rl_backend_cpu = {.name = "cpu", .kernel = table, .nkernel = RL_LEN(table), .alloc = cpu_alloc, .free = cpu_free,
                                   .put = cpu_copy, .get = cpu_copy, .sync = cpu_sync};

/* What comes while weights are packed and goes again: in pages of its own it leaves no holes among what stays. */
static void *pages_alloc(rl_rt *rt, size_t nbyte) {
    if (rt->ctx->host.allocate || nbyte < LARGE) return cpu_alloc(rt, nbyte);
    void *p = rt->fast ? rl_fast_passing(rt->fast, nbyte) : NULL;
    if (p) return p;
    p = mmap(NULL, nbyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void pages_free(rl_rt *rt, void *p, size_t nbyte) {
    if (rt->ctx->host.allocate || nbyte < LARGE) cpu_free(rt, p, nbyte);
    else if (!rt->fast || !rl_fast_keep_passing(rt->fast, p, nbyte)) munmap(p, nbyte);
}

const rl_backend rl_backend_pages = {.name = "cpu", .kernel = table, .nkernel = RL_LEN(table), .alloc = pages_alloc, .free = pages_free,
                                     .put = cpu_copy, .get = cpu_copy, .sync = cpu_sync};

/* Blocks of sizes that come again in the next run are kept for it: what the system gives anew, it clears page by page. */
static void *fast_alloc(rl_rt *rt, size_t nbyte) {
    void *p = rt->fast ? rl_fast_spare(rt->fast, nbyte) : NULL;
    return p ? p : cpu_alloc(rt, nbyte);
}

static void fast_free(rl_rt *rt, void *p, size_t nbyte) {
    if (!rt->fast || rt->ctx->host.allocate || (rt->ctx->limit && rt->live > rt->ctx->limit / 2) || !rl_fast_keep(rt->fast, p, nbyte)) cpu_free(rt, p, nbyte);
}

const rl_backend rl_backend_fast = {.name = "cpu", .kernel = fast_table, .nkernel = RL_LEN(fast_table), .alloc = fast_alloc, .free = fast_free,
                                    .put = cpu_copy, .get = cpu_copy, .sync = cpu_sync};
