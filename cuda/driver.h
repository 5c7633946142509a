/* What the backend asks of a device.  Two files have these functions: driver.c asks NVIDIA's driver, found at run time with dlopen;
 * emulate.cpp does it all in this process with the kernels' own code, for tests on machines without a GPU.
 *
 *   rl_gpu *g;
 *   RL_TRY(rl_gpu_open(ctx, &g));                          RL_ELIMIT, and one line, where there is no device
 *   void *p = rl_gpu_alloc(g, 1024);                       NULL: none left
 *   RL_TRY(rl_gpu_put(g, p, host, 1024));                  done when it returns
 *   RL_TRY(rl_gpu_launch(g, RL_GPU_strided4, nblock, &params, sizeof params));        in the order of calls; later
 *   RL_TRY(rl_gpu_sync(g));
 *
 * One stream: what is called first is done first, but in recordings that say otherwise (rl_gpu_come_after).  What a call started may fail later: then
 * rl_gpu_sync does, and every call after that, rl_gpu_alloc too, which only says that there is nothing. */
#ifndef RL_CUDA_DRIVER_H
#define RL_CUDA_DRIVER_H
#include "../src/ir.h"
#include "params.h"

typedef enum {
#define GPU(name, kernel, params) RL_GPU_##name,
#include "kernels.inc"
#undef GPU
    RL_NGPU
} rl_gpu_kernel;
const char *rl_gpu_kernel_name(rl_gpu_kernel k);

typedef struct rl_gpu rl_gpu;
rl_status rl_gpu_open(rl_ctx *ctx, rl_gpu **out);
void rl_gpu_close(rl_gpu *g); /* NULL is fine */
const char *rl_gpu_name(const rl_gpu *g); /* "NVIDIA H200, compute capability 9.0" */
bool rl_gpu_is_emulated(const rl_gpu *g);

/* Whole allocations of the device's; pool.c is for tensors. 256-byte aligned. */
void *rl_gpu_alloc(rl_gpu *g, size_t nbyte);
void rl_gpu_free(rl_gpu *g, void *p, size_t nbyte);

rl_status rl_gpu_put(rl_gpu *g, void *to, const void *host, size_t nbyte);
/* The same, to memory that was allocated since: also while something is recorded, which then finds it there. */
rl_status rl_gpu_put_new(rl_gpu *g, void *to, const void *host, size_t nbyte);
rl_status rl_gpu_get(rl_gpu *g, void *host, const void *from, size_t nbyte);
rl_status rl_gpu_copy(rl_gpu *g, void *to, const void *from, size_t nbyte); /* on the device */
/* This and the copy on the device are counted in the context's `launched`. */
rl_status rl_gpu_launch(rl_gpu *g, rl_gpu_kernel k, uint32_t nblock, const void *param, size_t nparam);
rl_status rl_gpu_sync(rl_gpu *g);

/* Notes the time, in the order of what is launched, as mark i: 0, 1, 2 ...  After a sync: the seconds between marks i and i + 1, by the device's clock. */
rl_status rl_gpu_mark(rl_gpu *g, uint32_t i);
rl_status rl_gpu_between(rl_gpu *g, uint32_t i, double *seconds);

/* What is launched and copied on the device between these two is remembered instead of done; *out NULL after a failure. */
typedef struct rl_gpu_graph rl_gpu_graph;
rl_status rl_gpu_record(rl_gpu *g);
rl_status rl_gpu_record_end(rl_gpu *g, rl_gpu_graph **out);
rl_status rl_gpu_replay(rl_gpu *g, rl_gpu_graph *r);
void rl_gpu_forget(rl_gpu *g, rl_gpu_graph *r);

/* What is recorded next comes after these: at first nothing, then what was recorded last. A recording is a graph of such nodes, and its replay may do
 * side by side what does not come after each other.
 *
 *   launch a                                    a after nothing
 *   come_before(g, &after_a, &n), copied        {a}
 *   launch b                                    b after a
 *   come_after(g, after_a, n, false)
 *   launch c                                    c after a, too: b and c side by side
 *
 * Only where rl_gpu_has_nodes: older drivers say nothing of them. */
bool rl_gpu_has_nodes(const rl_gpu *g);
typedef struct { void *node; uint64_t edge; } rl_gpu_node;
rl_status rl_gpu_come_before(rl_gpu *g, const rl_gpu_node **node, uint32_t *n); /* good until the next call */
/* last: the one node is what was recorded last, so that a kernel may begin early as it does in the stream. */
rl_status rl_gpu_come_after(rl_gpu *g, const rl_gpu_node *node, uint32_t n, bool last);

/* Of the driver, for the libraries that get it: a CUstream, the major and minor compute capability. NULL, 0: emulated. */
void *rl_gpu_stream(const rl_gpu *g);
uint32_t rl_gpu_capability(const rl_gpu *g); /* 90 */

#endif
