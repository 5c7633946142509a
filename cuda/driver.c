/* NVIDIA's driver (driver.h), found with dlopen: the program starts on machines without it.
 *
 * Declared here is what of the driver's interface is used; its functions and numbers are the same in every version from CUDA 12 on. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

typedef int cu_result, cu_device;
typedef unsigned long long cu_pointer;
typedef struct CUctx_st *cu_context;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphNode_st *cu_node;
typedef struct { unsigned char from_port, to_port, type, reserved[5]; } cu_edge; /* CUgraphEdgeData */
typedef struct CUgraphExec_st *cu_exec;
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, PTX_VERSION = 5, NON_BLOCKING = 1, NO_TIMING = 2, CAPTURE_RELAXED = 2, REPLACE = 1 };
enum { OVERLAPS = 90 /* compute capability whose kernels may begin early */, RECORDS_OVERLAP = 12030 /* the driver's version that records it */ };

/* CUlaunchAttribute with CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, and CUlaunchConfig. */
enum { BEGIN_EARLY = 6 };
typedef struct { int id, pad; union { int early; char room[64]; } value; } cu_launch_attribute;
typedef struct { unsigned grid[3], block[3], shared; cu_stream stream; const cu_launch_attribute *attribute; unsigned nattribute; } cu_launch;
enum { OUT_OF_MEMORY = 2, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 }; /* results */

/* CU(name here, name in the library, arguments) */
#define FUNCTIONS(CU)                                                                                                \
    CU(init, "cuInit", (unsigned))                                                                                   \
    CU(error, "cuGetErrorString", (cu_result, const char **))                                                        \
    CU(version, "cuDriverGetVersion", (int *))                                                                       \
    CU(count, "cuDeviceGetCount", (int *))                                                                           \
    CU(device, "cuDeviceGet", (cu_device *, int))                                                                    \
    CU(name, "cuDeviceGetName", (char *, int, cu_device))                                                            \
    CU(attribute, "cuDeviceGetAttribute", (int *, int, cu_device))                                                   \
    CU(retain, "cuDevicePrimaryCtxRetain", (cu_context *, cu_device))                                                \
    CU(release, "cuDevicePrimaryCtxRelease_v2", (cu_device))                                                         \
    CU(current, "cuCtxSetCurrent", (cu_context))                                                                     \
    CU(load, "cuModuleLoadData", (cu_module *, const void *))                                                        \
    CU(unload, "cuModuleUnload", (cu_module))                                                                        \
    CU(function, "cuModuleGetFunction", (cu_function *, cu_module, const char *))                                    \
    CU(function_attribute, "cuFuncGetAttribute", (int *, int, cu_function))                                          \
    CU(alloc, "cuMemAlloc_v2", (cu_pointer *, size_t))                                                               \
    CU(free, "cuMemFree_v2", (cu_pointer))                                                                           \
    CU(pin, "cuMemAllocHost_v2", (void **, size_t))                                                                  \
    CU(unpin, "cuMemFreeHost", (void *))                                                                             \
    CU(put, "cuMemcpyHtoDAsync_v2", (cu_pointer, const void *, size_t, cu_stream))                                   \
    CU(get, "cuMemcpyDtoHAsync_v2", (void *, cu_pointer, size_t, cu_stream))                                         \
    CU(copy, "cuMemcpyDtoDAsync_v2", (cu_pointer, cu_pointer, size_t, cu_stream))                                    \
    CU(stream, "cuStreamCreate", (cu_stream *, unsigned))                                                            \
    CU(unstream, "cuStreamDestroy_v2", (cu_stream))                                                                  \
    CU(wait, "cuStreamSynchronize", (cu_stream))                                                                     \
    CU(event, "cuEventCreate", (cu_event *, unsigned))                                                               \
    CU(unevent, "cuEventDestroy_v2", (cu_event))                                                                     \
    CU(elapsed, "cuEventElapsedTime", (float *, cu_event, cu_event))                                                 \
    CU(note, "cuEventRecord", (cu_event, cu_stream))                                                                 \
    CU(await, "cuEventSynchronize", (cu_event))                                                                      \
    CU(launch, "cuLaunchKernelEx", (const cu_launch *, cu_function, void **, void **))                               \
    CU(capture, "cuStreamBeginCapture_v2", (cu_stream, int))                                                         \
    CU(capture_end, "cuStreamEndCapture", (cu_stream, cu_graph *))                                                   \
    CU(instantiate, "cuGraphInstantiateWithFlags", (cu_exec *, cu_graph, unsigned long long))                        \
    CU(ungraph, "cuGraphDestroy", (cu_graph))                                                                        \
    CU(replay, "cuGraphLaunch", (cu_exec, cu_stream))                                                                \
    CU(unexec, "cuGraphExecDestroy", (cu_exec))
/* From CUDA 12.3 on; NULL in older drivers. */
#define NEWER_FUNCTIONS(CU)                                                                                          \
    CU(captured, "cuStreamGetCaptureInfo_v3",                                                                        \
       (cu_stream, int *, unsigned long long *, cu_graph *, const cu_node **, const cu_edge **, size_t *))           \
    CU(depend, "cuStreamUpdateCaptureDependencies_v2", (cu_stream, cu_node *, const cu_edge *, size_t, unsigned))

enum { STAGE = 4 << 20, NSTAGE = 2 };
struct rl_gpu {
    rl_ctx *ctx;
    void *library;
#define CU(field, symbol, args) cu_result(*field) args;
    FUNCTIONS(CU)
    NEWER_FUNCTIONS(CU)
#undef CU
    cu_device number;
    cu_context context;
    cu_stream stream_of, aside; /* aside: for what may not be recorded */
    cu_module module; /* everyone's */
    cu_function kernel[RL_NGPU];
    char title[160];
    uint32_t capability;
    void *stage[NSTAGE]; /* pinned */
    cu_event free_at[NSTAGE];
    uint32_t turn;
    bool recording, early; /* early: kernels begin before the one before them has ended, and wait for it themselves (device.cu) */
    bool branched;         /* the next kernel does not come right after the last one alone: it does not begin early */
    struct { rl_gpu_node *p; uint32_t cap; } node; /* of rl_gpu_come_before */
    cu_event *mark;
    uint32_t nmark;
};
struct rl_gpu_graph { cu_exec exec; };

extern const unsigned char rl_cuda_image[]; /* image.c */

const char *rl_gpu_kernel_name(rl_gpu_kernel k) {
    static const char *const names[] = {
#define GPU(name, kernel, params) #name,
#include "kernels.inc"
#undef GPU
    };
    return names[k];
}

/* ---- messages ---- */

static rl_status fail(const rl_gpu *g, cu_result r, const char *what) {
    const char *why = NULL;
    if (g->error) g->error(r, &why);
    const char *hint = r == ILLEGAL_ADDRESS || r == LAUNCH_FAILED ? "; RELAYOUT_CUDA_SYNC=1 tells at which node" : "";
    return rl_fail(g->ctx, r == OUT_OF_MEMORY ? RL_ENOMEM : RL_EINTERNAL, "CUDA: %s: %s (%d)%s", what, why ? why : "unknown", r, hint);
}

#define CALL(g, what, call)                                                                                          \
    do {                                                                                                             \
        cu_result r_ = (g)->call;                                                                                    \
        if (r_ != 0) return fail(g, r_, what);                                                                       \
    } while (0)

static rl_status use(rl_gpu *g) {
    CALL(g, "the device's context", current(g->context));
    return RL_OK;
}

/* ---- opening ---- */

static rl_status load_functions(rl_gpu *g) {
    g->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!g->library) return rl_fail(g->ctx, RL_ELIMIT, "no CUDA device: there is no driver (libcuda.so.1) on this machine");
    const struct { const char *symbol; void *field; bool newer; } all[] = {
#define CU(field, symbol, args) {symbol, &g->field, false},
        FUNCTIONS(CU)
#undef CU
#define CU(field, symbol, args) {symbol, &g->field, true},
        NEWER_FUNCTIONS(CU)
#undef CU
    };
    for (size_t i = 0; i < RL_LEN(all); i++) {
        void *f = dlsym(g->library, all[i].symbol);
        if (!f && !all[i].newer) return rl_fail(g->ctx, RL_ELIMIT, "no CUDA device: the driver is too old: it has no %s", all[i].symbol);
        memcpy(all[i].field, &f, sizeof f);
    }
    return RL_OK;
}

static rl_status find_device(rl_gpu *g) {
    const char *why = NULL;
    char name[100] = "";
    int n = 0, major = 0, minor = 0;
    cu_result r = g->init(0);
    if (r == 0) r = g->count(&n);
    if (r != 0 && g->error) g->error(r, &why);
    if (r != 0) return rl_fail(g->ctx, RL_ELIMIT, "no CUDA device: the driver says: %s (%d)", why ? why : "unknown", r);
    if (n == 0) return rl_fail(g->ctx, RL_ELIMIT, "no CUDA device: the driver sees none");
    CALL(g, "the first device", device(&g->number, 0));
    CALL(g, "the device's name", name(name, sizeof name, g->number));
    CALL(g, "the device's capability", attribute(&major, CAPABILITY_MAJOR, g->number));
    CALL(g, "the device's capability", attribute(&minor, CAPABILITY_MINOR, g->number));
    g->capability = (uint32_t)(10 * major + minor);
    snprintf(g->title, sizeof g->title, "%s, compute capability %d.%d", name, major, minor);
    return RL_OK;
}

/* The kernels' image is there once, for all that have the device open. */
static struct { pthread_mutex_t lock; uint32_t nuser; cu_module module; } image = {.lock = PTHREAD_MUTEX_INITIALIZER};

static rl_status take_image(rl_gpu *g) {
    pthread_mutex_lock(&image.lock);
    cu_result r = image.nuser ? 0 : g->load(&image.module, rl_cuda_image);
    if (r == 0) image.nuser++, g->module = image.module;
    pthread_mutex_unlock(&image.lock);
    return r == 0 ? RL_OK : fail(g, r, g->title);
}

static void give_image(rl_gpu *g) {
    pthread_mutex_lock(&image.lock);
    if (--image.nuser == 0) g->unload(image.module);
    pthread_mutex_unlock(&image.lock);
}

/* Each when it is first launched: the driver loads a kernel's code when it is asked for it, and of hundreds a run has a few dozen. */
static rl_status find_kernel(rl_gpu *g, rl_gpu_kernel k) {
    char name[64];
    if (g->kernel[k]) return RL_OK;
    snprintf(name, sizeof name, "rl_k_%s", rl_gpu_kernel_name(k));
    CALL(g, name, function(&g->kernel[k], g->module, name));
    return RL_OK;
}

/* Their code must have the wait, which only that of newer architectures has. */
static rl_status find_early(rl_gpu *g) {
    const char *wanted = getenv("RELAYOUT_CUDA_OVERLAP");
    int version = 0, code = 0;
    CALL(g, "the driver's version", version(&version));
    RL_TRY(find_kernel(g, 0));
    CALL(g, "a kernel's architecture", function_attribute(&code, PTX_VERSION, g->kernel[0]));
    g->early = version >= RECORDS_OVERLAP && code >= OVERLAPS && g->capability >= OVERLAPS && !(wanted && strcmp(wanted, "0") == 0);
    return RL_OK;
}

static rl_status start(rl_gpu *g) {
    RL_TRY(load_functions(g));
    RL_TRY(find_device(g));
    CALL(g, "the device's context", retain(&g->context, g->number));
    RL_TRY(use(g));
    CALL(g, "a stream", stream(&g->stream_of, NON_BLOCKING));
    CALL(g, "a stream", stream(&g->aside, NON_BLOCKING));
    RL_TRY(take_image(g));
    RL_TRY(find_early(g));
    for (uint32_t i = 0; i < NSTAGE; i++) {
        CALL(g, "pinned memory", pin(&g->stage[i], STAGE));
        CALL(g, "an event", event(&g->free_at[i], NO_TIMING));
    }
    return RL_OK;
}

rl_status rl_gpu_open(rl_ctx *ctx, rl_gpu **out) {
    rl_gpu *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g) return rl_fail(ctx, RL_ENOMEM, "out of memory");
    g->ctx = ctx;
    rl_status s = start(g);
    if (s == RL_OK) *out = g;
    else rl_gpu_close(g);
    return s;
}

void rl_gpu_close(rl_gpu *g) {
    if (!g) return;
    if (g->context) {
        g->current(g->context);
        if (g->stream_of) g->wait(g->stream_of);
        for (uint32_t i = 0; i < NSTAGE; i++) {
            if (g->free_at[i]) g->unevent(g->free_at[i]);
            if (g->stage[i]) g->unpin(g->stage[i]);
        }
        for (uint32_t i = 0; i < g->nmark; i++) g->unevent(g->mark[i]);
        if (g->module) give_image(g);
        if (g->stream_of) g->unstream(g->stream_of);
        if (g->aside) g->unstream(g->aside);
        g->release(g->number);
    }
    if (g->library) dlclose(g->library);
    free(g->mark);
    free(g->node.p);
    free(g);
}

const char *rl_gpu_name(const rl_gpu *g) {
    return g->title;
}

bool rl_gpu_is_emulated(const rl_gpu *g) {
    (void)g;
    return false;
}

/* ---- memory ---- */

void *rl_gpu_alloc(rl_gpu *g, size_t nbyte) {
    cu_pointer p = 0;
    return use(g) == RL_OK && g->alloc(&p, nbyte) == 0 ? (void *)(uintptr_t)p : NULL;
}

void rl_gpu_free(rl_gpu *g, void *p, size_t nbyte) {
    (void)nbyte;
    if (use(g) == RL_OK) g->free((cu_pointer)(uintptr_t)p);
}

static cu_pointer address(const void *p, size_t more) {
    return (cu_pointer)(uintptr_t)p + more;
}

/* In pieces through two pinned buffers: one is filled while the other is on its way. */
rl_status rl_gpu_put(rl_gpu *g, void *to, const void *host, size_t nbyte) {
    if (g->recording) return rl_fail(g->ctx, RL_EINTERNAL, "a copy from the host inside a recording");
    RL_TRY(use(g));
    for (size_t at = 0, n; at < nbyte; at += n, g->turn = (g->turn + 1) % NSTAGE) {
        n = RL_MIN(nbyte - at, (size_t)STAGE);
        CALL(g, "a copy to the device", await(g->free_at[g->turn]));
        memcpy(g->stage[g->turn], (const char *)host + at, n);
        CALL(g, "a copy to the device", put(address(to, at), g->stage[g->turn], n, g->stream_of));
        CALL(g, "a copy to the device", note(g->free_at[g->turn], g->stream_of));
    }
    return RL_OK;
}

rl_status rl_gpu_put_new(rl_gpu *g, void *to, const void *host, size_t nbyte) {
    if (!g->recording) return rl_gpu_put(g, to, host, nbyte);
    RL_TRY(use(g));
    CALL(g, "a copy to the device", put(address(to, 0), host, nbyte, g->aside));
    CALL(g, "a copy to the device", wait(g->aside));
    return RL_OK;
}

rl_status rl_gpu_get(rl_gpu *g, void *host, const void *from, size_t nbyte) {
    if (g->recording) return rl_fail(g->ctx, RL_EINTERNAL, "a copy to the host inside a recording");
    RL_TRY(use(g));
    size_t npiece = (nbyte + STAGE - 1) / STAGE;
    for (uint32_t i = 0; i < NSTAGE; i++) CALL(g, "a copy from the device", await(g->free_at[i]));
    for (size_t k = 0; k < npiece + 1; k++) {
        size_t now = k % NSTAGE, last = (k + 1) % NSTAGE;
        if (k < npiece) {
            CALL(g, "a copy from the device", get(g->stage[now], address(from, k * STAGE), RL_MIN(nbyte - k * STAGE, (size_t)STAGE), g->stream_of));
            CALL(g, "a copy from the device", note(g->free_at[now], g->stream_of));
        }
        if (k == 0) continue;
        CALL(g, "a copy from the device", await(g->free_at[last]));
        memcpy((char *)host + (k - 1) * STAGE, g->stage[last], RL_MIN(nbyte - (k - 1) * STAGE, (size_t)STAGE));
    }
    return RL_OK;
}

rl_status rl_gpu_copy(rl_gpu *g, void *to, const void *from, size_t nbyte) {
    RL_TRY(use(g));
    g->ctx->launched++;
    if (nbyte) CALL(g, "a copy on the device", copy(address(to, 0), address(from, 0), nbyte, g->stream_of));
    return RL_OK;
}

/* ---- kernels ---- */

rl_status rl_gpu_launch(rl_gpu *g, rl_gpu_kernel k, uint32_t nblock, const void *param, size_t nparam) {
    static const cu_launch_attribute early = {.id = BEGIN_EARLY, .value.early = 1};
    const cu_launch l = {{nblock, 1, 1}, {RL_THREADS, 1, 1}, 0, g->stream_of, &early, g->early && !g->branched};
    void *args[] = {(void *)(uintptr_t)param};
    (void)nparam;
    if (nblock == 0) return RL_OK;
    RL_TRY(use(g));
    RL_TRY(find_kernel(g, k));
    g->ctx->launched++;
    CALL(g, rl_gpu_kernel_name(k), launch(&l, g->kernel[k], args, NULL));
    g->branched = false;
    return RL_OK;
}

rl_status rl_gpu_sync(rl_gpu *g) {
    if (g->recording) return rl_fail(g->ctx, RL_EINTERNAL, "a wait inside a recording");
    RL_TRY(use(g));
    CALL(g, "kernels on the device", wait(g->stream_of));
    return RL_OK;
}

/* ---- times ---- */

rl_status rl_gpu_mark(rl_gpu *g, uint32_t i) {
    RL_TRY(use(g));
    if (i >= g->nmark) {
        cu_event *more = realloc(g->mark, (i + 64) * sizeof *more);
        if (!more) return rl_fail(g->ctx, RL_ENOMEM, "out of memory");
        for (g->mark = more; g->nmark < i + 64; g->nmark++) CALL(g, "an event", event(&g->mark[g->nmark], 0));
    }
    CALL(g, "an event", note(g->mark[i], g->stream_of));
    return RL_OK;
}

rl_status rl_gpu_between(rl_gpu *g, uint32_t i, double *seconds) {
    float ms = 0;
    CALL(g, "the time between two events", elapsed(&ms, g->mark[i], g->mark[i + 1]));
    *seconds = 1e-3 * (double)ms;
    return RL_OK;
}

/* ---- recordings ---- */

rl_status rl_gpu_record(rl_gpu *g) {
    RL_TRY(use(g));
    CALL(g, "a recording", capture(g->stream_of, CAPTURE_RELAXED));
    g->recording = true;
    return RL_OK;
}

rl_status rl_gpu_record_end(rl_gpu *g, rl_gpu_graph **out) {
    cu_graph graph = NULL;
    g->recording = g->branched = false;
    *out = NULL;
    CALL(g, "a recording", capture_end(g->stream_of, &graph));
    rl_gpu_graph *r = calloc(1, sizeof *r);
    cu_result made = r ? g->instantiate(&r->exec, graph, 0) : 0;
    g->ungraph(graph);
    if (!r) return rl_fail(g->ctx, RL_ENOMEM, "out of memory");
    if (made == 0) {
        *out = r;
        return RL_OK;
    }
    free(r);
    return fail(g, made, "a recording");
}

rl_status rl_gpu_replay(rl_gpu *g, rl_gpu_graph *r) {
    RL_TRY(use(g));
    CALL(g, "a recorded graph", replay(r->exec, g->stream_of));
    return RL_OK;
}

void rl_gpu_forget(rl_gpu *g, rl_gpu_graph *r) {
    if (!r) return;
    if (use(g) == RL_OK) g->unexec(r->exec);
    free(r);
}

bool rl_gpu_has_nodes(const rl_gpu *g) {
    return g->captured && g->depend;
}

static bool have_nodes(rl_gpu *g, size_t n) {
    if (n <= g->node.cap) return true;
    rl_gpu_node *more = realloc(g->node.p, n * sizeof *more);
    if (more) g->node.p = more, g->node.cap = (uint32_t)n;
    return more != NULL;
}

rl_status rl_gpu_come_before(rl_gpu *g, const rl_gpu_node **node, uint32_t *n) {
    const cu_node *at = NULL;
    const cu_edge *edge = NULL;
    size_t count = 0;
    int status = 0;
    CALL(g, "a recording", captured(g->stream_of, &status, NULL, NULL, &at, &edge, &count));
    if (!have_nodes(g, count)) return rl_fail(g->ctx, RL_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        g->node.p[i] = (rl_gpu_node){.node = at[i]};
        if (edge) memcpy(&g->node.p[i].edge, &edge[i], sizeof edge[i]);
    }
    *node = g->node.p, *n = (uint32_t)count;
    return RL_OK;
}

rl_status rl_gpu_come_after(rl_gpu *g, const rl_gpu_node *node, uint32_t n, bool last) {
    cu_node at[64];
    cu_edge edge[64];
    for (uint32_t from = 0; from == 0 || from < n; from += RL_LEN(at)) {
        uint32_t some = RL_MIN(n - from, (uint32_t)RL_LEN(at));
        for (uint32_t i = 0; i < some; i++) {
            at[i] = node[from + i].node;
            memcpy(&edge[i], &node[from + i].edge, sizeof edge[i]);
        }
        CALL(g, "a recording", depend(g->stream_of, at, edge, some, from ? 0 : REPLACE));
    }
    g->branched = !last;
    return RL_OK;
}

void *rl_gpu_stream(const rl_gpu *g) {
    return g->stream_of;
}

uint32_t rl_gpu_capability(const rl_gpu *g) {
    return g->capability;
}
