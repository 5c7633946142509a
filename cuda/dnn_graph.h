/* Graphs for cuDNN's backend interface, and the plans that it makes of them: what dnn.c, dnn_conv.c and dnn_nn.c share.
 *
 * A file has one function that makes the graph of a job, and asks for it by the job's bytes (without addresses, gaps zero), so that a
 * plan is made once for each shape:
 *
 *   static rl_dnn_item graph_of(rl_dnn_maker *m, const void *key) {
 *       ...
 *       rl_dnn_item x = rl_dnn_tensor(m, &(rl_dnn_strided){.uid = 1, .type = CUDNN_DATA_HALF, .rank = 4, .dim = ..., .stride = ...}), y = ...;
 *       rl_dnn_item op = rl_dnn_make(m, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
 *       rl_dnn_set(m, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
 *       ...
 *       return rl_dnn_graph(m, &(rl_dnn_item){rl_dnn_finish(m, op)}, 1);
 *   }
 *   rl_dnn_asked q = {.graph = graph_of, .key = &key, .nkey = sizeof key};
 *   rl_dnn_run(call, &q, (rl_dnn_at[]){{1, x}, {2, y}}, 2, &did);
 *
 * What fails marks the maker; the rest of its calls do nothing. */
#ifndef RL_CUDA_DNN_GRAPH_H
#define RL_CUDA_DNN_GRAPH_H
#include "libs_internal.h"

enum { RL_DNN_DIMS = RL_MOST_SPATIAL + 2, RL_DNN_MADE = 32 + 4 * RL_MOST_POSTS };
typedef cudnnBackendDescriptor_t rl_dnn_item;

/* What is made for one graph, to be destroyed together; `bad` once something failed. */
typedef struct { rl_libs *l; rl_dnn_item made[RL_DNN_MADE]; uint32_t n; bool bad; } rl_dnn_maker;
rl_dnn_item rl_dnn_make(rl_dnn_maker *m, cudnnBackendDescriptorType_t type);
void rl_dnn_set(rl_dnn_maker *m, rl_dnn_item d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *p);
rl_dnn_item rl_dnn_finish(rl_dnn_maker *m, rl_dnn_item d);

/* A tensor: vectors > 1: of so many channels, which dims and strides then count; between: only the next op sees it; by_value: one element of the host's. */
typedef struct { int64_t uid, rank, vectors; const int64_t *dim, *stride; cudnnDataType_t type; bool between, by_value; } rl_dnn_strided;
rl_dnn_item rl_dnn_tensor(rl_dnn_maker *m, const rl_dnn_strided *t);
rl_dnn_item rl_dnn_graph(rl_dnn_maker *m, const rl_dnn_item *ops, int64_t n);
/* y = op(x, b); b NULL: of one operand. An op that cuDNN has no name for marks the maker. */
rl_dnn_item rl_dnn_pointwise(rl_dnn_maker *m, cudnnDataType_t compute, const rl_p_post *o, rl_dnn_item x, rl_dnn_item b, rl_dnn_item y);
cudnnDataType_t rl_dnn_type(rl_dtype t);

typedef struct {
    rl_dnn_item (*graph)(rl_dnn_maker *m, const void *key);
    const void *key;
    size_t nkey;
    bool whole;           /* only engines that compute with all of float32's bits */
    bool shorter;         /* of shorter floats, tried, too: the first engine, and such as sum in float32 and are compiled */
    bool vectors;         /* channels lie in vectors: only engines that take the weights as they are */
    bool bytes;           /* of engines that are in no order those on tensor cores first */
    bool spare;           /* another plan and kernel posts do it, too: none that is compiled when it is made, where it is not tried */
} rl_dnn_asked;
typedef struct { int64_t uid; const void *p; } rl_dnn_at;
enum { RL_DNN_MOST_AT = 8 + RL_MOST_POSTS };
/* *did false: there is no plan, or its run failed, which is noted with the node. Addresses are multiples of 16, but those of by_value tensors. */
rl_status rl_dnn_run(rl_call *call, const rl_dnn_asked *q, const rl_dnn_at *at, uint32_t n, bool *did);
/* How long a run of its plan takes, where plans are tried; else 0. INFINITY: there is none. */
double rl_dnn_seconds(const rl_call *call, const rl_dnn_asked *q, const rl_dnn_at *at, uint32_t n);
void rl_dnn_asks(rl_libs *l, const rl_dnn_asked *q, rl_dnn_answer *a);

#endif
