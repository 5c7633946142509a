/* The driver's functions (libcuda.so.1) on the emulated device: see stand_in.h. What is not here, cuda/driver.c does not use. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/driver.h"
#include "../../cuda/emulate.h"
#include "stand_in.h"

enum { OUT_OF_MEMORY = 2, LAUNCH_FAILED = 719 };
typedef unsigned long long pointer;
typedef struct { int id, pad, early; char rest[60]; } attribute;
typedef struct { unsigned char byte[8]; } edge;
typedef struct { unsigned grid[3], block[3], shared; void *stream; const attribute *attribute; unsigned nattribute; } launch;

static rl_ctx *ctx;
static rl_gpu *gpu;
static char *said;
static size_t nsaid;
static int listening;

/* ---- what all stand-ins share ---- */

int stand_in_fault(const char *function) {
    static char last[80]; /* the wish whose calls are counted */
    static unsigned calls;
    const char *wish = getenv("RELAYOUT_STAND_IN_FAULT"), *too = getenv("RELAYOUT_STAND_IN_FAULT_TOO");
    size_t n = strlen(function);
    if (too && strncmp(too, function, n) == 0 && too[n] == ':') return atoi(too + n + 1);
    if (strncmp(last, wish ? wish : "", sizeof last - 1) != 0) calls = 0, snprintf(last, sizeof last, "%s", wish ? wish : "");
    if (!wish || strncmp(wish, function, n) != 0 || wish[n] != ':') return 0;
    char *rest;
    long result = strtol(wish + n + 1, &rest, 10), from = *rest == ':' ? strtol(rest + 1, NULL, 10) : 1;
    return (long)++calls >= from ? (int)result : 0;
}

int stand_in_do(void (*fn)(void *), const void *arg, size_t n) {
    return rl_gpu_do(gpu, fn, arg, n) == RL_OK ? 0 : LAUNCH_FAILED;
}

void stand_in_say(const char *fmt, ...) {
    char line[1000];
    va_list ap;
    if (!listening) return;
    va_start(ap, fmt);
    size_t n = (size_t)vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    n = n < sizeof line - 2 ? n : sizeof line - 2;
    line[n++] = '\n';
    char *more = realloc(said, nsaid + n + 1);
    if (!more) return;
    said = more;
    memcpy(said + nsaid, line, n);
    said[nsaid += n] = 0;
}

void stand_in_listen(int on) {
    listening = on;
    nsaid = 0;
    if (said) *said = 0;
}

const char *stand_in_said(void) {
    return said ? said : "";
}

/* ---- numbers ---- */

static double narrow_load(unsigned bits, int mantissa, int bias) {
    unsigned sign = bits >> 15, exponent = (bits & 0x7fff) >> mantissa, fraction = bits & ((1u << mantissa) - 1), top = (1u << (15 - mantissa)) - 1;
    double x = exponent == top ? (fraction ? (double)NAN : (double)INFINITY) : ldexp(fraction + (exponent ? 1 << mantissa : 0), (int)(exponent ? exponent : 1) - bias - mantissa);
    return sign ? -x : x;
}

/* The nearest of so many bits, ties to even. */
static unsigned narrow_store(double x, int mantissa, int bias) {
    unsigned sign = signbit(x) ? 0x8000u : 0, top = ((1u << (15 - mantissa)) - 1) << mantissa;
    int e;
    if (isnan(x)) return sign | top | 1u << (mantissa - 1);
    if (x == 0 || isinf(x)) return sign | (x == 0 ? 0 : top);
    frexp(x, &e);
    e = e - 1 > 1 - bias ? e - 1 : 1 - bias;
    double n = nearbyint(ldexp(fabs(x), mantissa - e)); /* units of the last place */
    unsigned bits = ((unsigned)(e + bias - 1) << mantissa) + (unsigned)n; /* a carry goes into the exponent; below it, none is there */
    return sign | (bits < top ? bits : top);
}

double stand_in_load(const void *p, long long i, stand_in_type t) {
    switch (t) {
    case SI_F32: return (double)((const float *)p)[i];
    case SI_F64: return ((const double *)p)[i];
    case SI_F16: return narrow_load(((const unsigned short *)p)[i], 10, 15);
    case SI_BF16: return narrow_load(((const unsigned short *)p)[i], 7, 127);
    case SI_I8: return ((const signed char *)p)[i];
    case SI_U8: return ((const unsigned char *)p)[i];
    default: return ((const int *)p)[i];
    }
}

static double cut(double x, double least, double most) {
    x = nearbyint(x);
    return x < least ? least : x > most ? most : x;
}

void stand_in_store(void *p, long long i, stand_in_type t, double x) {
    switch (t) {
    case SI_F32: ((float *)p)[i] = (float)x; break;
    case SI_F64: ((double *)p)[i] = x; break;
    case SI_F16: ((unsigned short *)p)[i] = (unsigned short)narrow_store(x, 10, 15); break;
    case SI_BF16: ((unsigned short *)p)[i] = (unsigned short)narrow_store(x, 7, 127); break;
    case SI_I8: ((signed char *)p)[i] = (signed char)cut(x, -128, 127); break;
    case SI_U8: ((unsigned char *)p)[i] = (unsigned char)cut(x, 0, 255); break;
    default: ((int *)p)[i] = (int)cut(x, -2147483648.0, 2147483647.0); break;
    }
}

/* ---- the driver's functions ---- */

#define CU(name, ...)                                                                                                \
    STAND_IN int name(__VA_ARGS__);                                                                                  \
    int name(__VA_ARGS__)
#define FAULT()                                                                                                      \
    do {                                                                                                             \
        int fault_ = stand_in_fault(__func__);                                                                       \
        if (fault_) return fault_;                                                                                   \
    } while (0)

static int result(rl_status s) {
    return s == RL_OK ? 0 : s == RL_ENOMEM ? OUT_OF_MEMORY : LAUNCH_FAILED;
}

CU(cuInit, unsigned flags) {
    FAULT();
    if (!ctx) ctx = rl_ctx_new(0);
    return !ctx || flags ? 1 : gpu ? 0 : result(rl_gpu_open(ctx, &gpu));
}

CU(cuGetErrorString, int r, const char **why) {
    *why = r == OUT_OF_MEMORY ? "out of memory" : r == LAUNCH_FAILED ? "unspecified launch failure" : r == 700 ? "an illegal memory access was encountered" : "an error";
    return 0;
}

CU(cuDeviceGetCount, int *n) {
    FAULT();
    *n = getenv("RELAYOUT_STAND_IN_NONE") ? 0 : 1;
    return 0;
}

CU(cuDriverGetVersion, int *version) {
    FAULT();
    const char *old = getenv("RELAYOUT_STAND_IN_VERSION");
    *version = old ? atoi(old) : 13000;
    return 0;
}

CU(cuDeviceGet, int *device, int i) {
    FAULT();
    *device = i;
    return i != 0;
}

CU(cuDeviceGetName, char *name, int n, int device) {
    FAULT();
    snprintf(name, (size_t)n, "stand-in");
    return device != 0;
}

CU(cuDeviceGetAttribute, int *value, int what, int device) {
    FAULT();
    *value = what == 75 ? 9 : 0;
    return device != 0;
}

CU(cuDevicePrimaryCtxRetain, void **context, int device) {
    FAULT();
    *context = gpu;
    return device != 0;
}

/* Of two streams the second only copies to the device, beside what is recorded. */
static char aside;
static unsigned nstream;

CU(cuDevicePrimaryCtxRelease_v2, int device) {
    nstream = 0;
    return device != 0;
}

CU(cuCtxSetCurrent, void *context) { return context != gpu; }

CU(cuModuleLoadData, void **module, const void *image) {
    FAULT();
    *module = gpu;
    return image == NULL;
}

CU(cuModuleUnload, void *module) { return module != gpu; }

static const size_t sizes[] = {
#define GPU(name, kernel, params) sizeof(params),
#include "../../cuda/kernels.inc"
#undef GPU
};

CU(cuModuleGetFunction, const void **function, void *module, const char *name) {
    FAULT();
    for (unsigned k = 0; module == gpu && k < RL_NGPU; k++) {
        if (strncmp(name, "rl_k_", 5) != 0 || strcmp(name + 5, rl_gpu_kernel_name((rl_gpu_kernel)k)) != 0) continue;
        *function = &sizes[k];
        return 0;
    }
    return 500; /* not found */
}

/* Of PTX for 9.0. */
CU(cuFuncGetAttribute, int *value, int what, const void *function) {
    FAULT();
    *value = what == 5 ? 90 : 0;
    return !function;
}

/* The emulated device wants the size back. */
typedef struct block { struct block *next; void *p; size_t n; } block;
static block *blocks;

CU(cuMemAlloc_v2, pointer *p, size_t n) {
    FAULT();
    block *b = malloc(sizeof *b);
    if (!b) return OUT_OF_MEMORY;
    *b = (block){blocks, rl_gpu_alloc(gpu, n), n};
    *p = (pointer)(uintptr_t)b->p;
    if (b->p) blocks = b;
    else free(b);
    return *p ? 0 : OUT_OF_MEMORY;
}

CU(cuMemFree_v2, pointer p) {
    block **at = &blocks;
    while (*at && (*at)->p != (void *)(uintptr_t)p) at = &(*at)->next;
    block *b = *at;
    if (!b) return 1;
    *at = b->next;
    rl_gpu_free(gpu, b->p, b->n);
    free(b);
    return 0;
}

CU(cuMemAllocHost_v2, void **p, size_t n) {
    FAULT();
    *p = malloc(n);
    return *p ? 0 : OUT_OF_MEMORY;
}

CU(cuMemFreeHost, void *p) {
    free(p);
    return 0;
}

CU(cuMemcpyHtoDAsync_v2, pointer to, const void *from, size_t n, void *stream) {
    FAULT();
    return !stream ? 1 : result(stream == &aside ? rl_gpu_put_new(gpu, (void *)(uintptr_t)to, from, n) : rl_gpu_put(gpu, (void *)(uintptr_t)to, from, n));
}

CU(cuMemcpyDtoHAsync_v2, void *to, pointer from, size_t n, void *stream) {
    FAULT();
    return stream ? result(rl_gpu_get(gpu, to, (const void *)(uintptr_t)from, n)) : 1;
}

CU(cuMemcpyDtoDAsync_v2, pointer to, pointer from, size_t n, void *stream) {
    FAULT();
    return stream ? result(rl_gpu_copy(gpu, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, n)) : 1;
}

CU(cuStreamCreate, void **stream, unsigned flags) {
    FAULT();
    *stream = nstream++ % 2 ? (void *)&aside : gpu;
    return flags > 1;
}

CU(cuStreamDestroy_v2, void *stream) { return stream != gpu && stream != &aside; }

CU(cuStreamSynchronize, void *stream) {
    FAULT();
    return stream == gpu ? result(rl_gpu_sync(gpu)) : stream != &aside;
}

CU(cuEventCreate, void **event, unsigned flags) {
    FAULT();
    *event = calloc(1, sizeof(double));
    return flags > 3 || !*event;
}

CU(cuEventDestroy_v2, void *event) {
    free(event);
    return 0;
}

CU(cuEventRecord, double *event, void *stream) {
    *event = rl_seconds();
    return stream != gpu;
}

CU(cuEventSynchronize, void *event) { return !event; }

CU(cuEventElapsedTime, float *ms, const double *from, const double *to) {
    *ms = (float)(1e3 * (*to - *from));
    return 0;
}

CU(cuLaunchKernelEx, const launch *l, const size_t *function, void **args, void **extra) {
    FAULT();
    const unsigned threads[3] = {RL_THREADS, 1, 1};
    if (l->grid[1] != 1 || l->grid[2] != 1 || memcmp(l->block, threads, sizeof threads) != 0 || l->shared || l->stream != gpu || extra) return 1;
    if (l->nattribute > 1 || (l->nattribute && (l->attribute->id != 6 || l->attribute->early != 1))) return 1;
    stand_in_say(l->nattribute ? "launch early" : "launch");
    return result(rl_gpu_launch(gpu, (rl_gpu_kernel)(function - sizes), l->grid[0], args[0], *function));
}

CU(cuStreamBeginCapture_v2, void *stream, int mode) {
    FAULT();
    return stream == gpu && mode == 2 ? result(rl_gpu_record(gpu)) : 1;
}

CU(cuStreamEndCapture, void *stream, rl_gpu_graph **graph) {
    FAULT();
    return stream == gpu ? result(rl_gpu_record_end(gpu, graph)) : 1;
}

/* Nodes are the emulated device's. An edge of a kernel that begins early has data, which belong to it when it is made, not to what comes next. */
CU(cuStreamGetCaptureInfo_v3, void *stream, int *status, unsigned long long *id, rl_gpu_graph **graph, void *const **node, const edge **edges, size_t *n) {
    FAULT();
    static void *at[64];
    static edge none[64];
    const rl_gpu_node *is;
    uint32_t count;
    if (stream != gpu || id || graph || !node || !edges || rl_gpu_come_before(gpu, &is, &count) != RL_OK || count > 64) return 1;
    for (uint32_t i = 0; i < count; i++) at[i] = is[i].node;
    *status = 1, *node = at, *edges = none, *n = count;
    return 0;
}

CU(cuStreamUpdateCaptureDependencies_v2, void *stream, void **node, const edge *edges, size_t n, unsigned flags) {
    FAULT();
    rl_gpu_node all[128];
    const rl_gpu_node *is;
    uint32_t count = 0;
    if (stream != gpu || flags > 1 || n > 64 || rl_gpu_come_before(gpu, &is, &count) != RL_OK) return 1;
    if (flags == 1) count = 0;
    if (count + n > 128) return 1;
    for (uint32_t i = 0; i < count; i++) all[i] = is[i];
    for (size_t i = 0; i < n; i++) {
        if (edges[i].byte[0] || edges[i].byte[2]) return 1;
        all[count++] = (rl_gpu_node){.node = node[i]};
    }
    return result(rl_gpu_come_after(gpu, all, count, false));
}

CU(cuGraphInstantiateWithFlags, rl_gpu_graph **exec, rl_gpu_graph *graph, unsigned long long flags) {
    FAULT();
    *exec = graph;
    return flags != 0;
}

CU(cuGraphDestroy, rl_gpu_graph *graph) { return graph == NULL; } /* its exec is it */

CU(cuGraphLaunch, rl_gpu_graph *exec, void *stream) {
    FAULT();
    return stream == gpu ? result(rl_gpu_replay(gpu, exec)) : 1;
}

CU(cuGraphExecDestroy, rl_gpu_graph *exec) {
    rl_gpu_forget(gpu, exec);
    return 0;
}
