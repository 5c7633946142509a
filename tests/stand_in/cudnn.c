/* cuDNN's graph interface (libcudnn.so.9) on the emulated device: descriptors, one engine for each graph, plans. See stand_in.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn.h"

#define DNN(name, ...)                                                                                               \
    STAND_IN cudnnStatus_t name(__VA_ARGS__);                                                                        \
    cudnnStatus_t name(__VA_ARGS__)
#define FAULT()                                                                                                      \
    do {                                                                                                             \
        int fault_ = stand_in_fault(__func__);                                                                       \
        if (fault_) return (cudnnStatus_t)fault_;                                                                    \
    } while (0)

/* ---- attributes ---- */

static size_t size_of(int type) {
    switch (type) {
    case CUDNN_TYPE_HANDLE: case CUDNN_TYPE_INT64: case CUDNN_TYPE_DOUBLE: case CUDNN_TYPE_VOID_PTR: case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    case CUDNN_TYPE_BOOLEAN: case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_FRACTION: return 16;
    default: return 4;
    }
}

static attribute *find(const item *d, int name) {
    for (unsigned i = 0; i < d->nattribute; i++)
        if (d->at[i].name == name) return (attribute *)&d->at[i];
    return NULL;
}

const void *item_get(const item *d, cudnnBackendAttributeName_t name, int64_t *n) {
    const attribute *a = d ? find(d, (int)name) : NULL;
    if (n) *n = a ? a->n : 0;
    return a ? a->p : NULL;
}

const item *item_of(const item *d, cudnnBackendAttributeName_t name) {
    const void *p = item_get(d, name, NULL);
    return p ? *(item *const *)p : NULL;
}

int item_int(const item *d, cudnnBackendAttributeName_t name, int otherwise) {
    const void *p = item_get(d, name, NULL);
    return p ? *(const int *)p : otherwise;
}

double item_double(const item *d, cudnnBackendAttributeName_t name, double otherwise) {
    const void *p = item_get(d, name, NULL);
    return p ? *(const double *)p : otherwise;
}

static void drop(item *d) {
    if (--d->refs) return;
    for (unsigned i = 0; i < d->nattribute; i++) {
        for (int64_t k = 0; d->at[i].type == CUDNN_TYPE_BACKEND_DESCRIPTOR && k < d->at[i].n; k++) drop(((item **)d->at[i].p)[k]);
        free(d->at[i].p);
    }
    free(d);
}

static cudnnStatus_t put(item *d, int name, int type, int64_t n, const void *p) {
    size_t size = size_of(type) * (size_t)n;
    if (d->finished || find(d, name) || d->nattribute == MOST_ATTRIBUTES || n < 0) return CUDNN_STATUS_BAD_PARAM;
    attribute a = {name, type, n, malloc(size + 1)};
    if (!a.p) return CUDNN_STATUS_ALLOC_FAILED;
    memcpy(a.p, p, size);
    for (int64_t k = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && k < n; k++) {
        item *other = ((item *const *)p)[k];
        if (!other || !other->finished) {
            free(a.p);
            return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
        }
    }
    for (int64_t k = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && k < n; k++) ((item *const *)p)[k]->refs++;
    d->at[d->nattribute++] = a;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- the library's functions ---- */

STAND_IN size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void) { return 91200; }
STAND_IN const char *cudnnGetErrorString(cudnnStatus_t s);
const char *cudnnGetErrorString(cudnnStatus_t s) {
    return s == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED" : s == CUDNN_STATUS_NOT_INITIALIZED ? "CUDNN_STATUS_NOT_INITIALIZED" : "CUDNN_STATUS_BAD_PARAM";
}
STAND_IN void cudnnGetLastErrorString(char *message, size_t n);
void cudnnGetLastErrorString(char *message, size_t n) { snprintf(message, n, "the stand-in does not have it"); }

DNN(cudnnCreate, cudnnHandle_t *h) {
    static int some;
    FAULT();
    *h = (cudnnHandle_t)&some;
    return CUDNN_STATUS_SUCCESS;
}

DNN(cudnnDestroy, cudnnHandle_t h) { return h ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM; }

DNN(cudnnSetStream, cudnnHandle_t h, cudaStream_t stream) {
    FAULT();
    return h && stream ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

DNN(cudnnBackendCreateDescriptor, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
    FAULT();
    item *d = calloc(1, sizeof *d);
    if (!d) return CUDNN_STATUS_ALLOC_FAILED;
    d->type = type, d->refs = 1;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

DNN(cudnnBackendDestroyDescriptor, cudnnBackendDescriptor_t d) {
    drop(d);
    return CUDNN_STATUS_SUCCESS;
}

DNN(cudnnBackendSetAttribute, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *p) {
    FAULT();
    return put(d, (int)name, (int)type, n, p);
}

DNN(cudnnBackendFinalize, cudnnBackendDescriptor_t d) {
    FAULT();
    item *x = d;
    if (x->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && !graph_takes(x)) return CUDNN_STATUS_NOT_SUPPORTED;
    x->finished = 1;
    return CUDNN_STATUS_SUCCESS;
}

/* One engine: a configuration has the graph for it. */
static cudnnStatus_t get_engines(const item *d, int64_t most, int64_t *n, void *to) {
    const item *graph = item_of(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    item *config = most ? *(item **)to : NULL;
    *n = 1;
    if (!config || !graph) return CUDNN_STATUS_BAD_PARAM;
    cudnnStatus_t s = put(config, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    config->finished = 1;
    return s;
}

/* An engine has the graph that its configuration is for. */
static cudnnStatus_t get_engine(const item *config, item *engine) {
    const item *graph = item_of(config, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    return engine && graph ? put(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) : CUDNN_STATUS_BAD_PARAM;
}

static int64_t get_behavior(const item *engine, void *to) {
    const item *graph = item_of(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    int compiled = graph && graph_is_compiled(graph);
    if (compiled) *(cudnnBackendBehaviorNote_t *)to = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    return compiled;
}

DNN(cudnnBackendGetAttribute, const cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most, int64_t *n, void *to) {
    FAULT();
    *n = 1;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return get_engines(d, most, n, to);
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE) return get_engine(d, *(item **)to);
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) *n = 0;
    else if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE) *n = get_behavior(d, to);
    else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) *(int64_t *)to = WORKSPACE;
    else return CUDNN_STATUS_NOT_SUPPORTED;
    return CUDNN_STATUS_SUCCESS;
}

static const item *tensor_of(const item *op, int64_t uid) {
    for (unsigned i = 0; i < op->nattribute; i++) {
        const item *t = op->at[i].type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? *(item **)op->at[i].p : NULL;
        const int64_t *is = t && t->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR ? item_get(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, NULL) : NULL;
        if (is && *is == uid) return t;
    }
    return NULL;
}

DNN(cudnnBackendExecute, cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
    FAULT();
    execution e = {.graph = item_of(item_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG), CUDNN_ATTR_ENGINE_OPERATION_GRAPH)};
    int64_t nop, nuid;
    item *const *op = item_get(e.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &nop);
    void *const *p = item_get(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &e.n), *const *workspace = item_get(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, NULL);
    const int64_t *uid = item_get(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &nuid);
    if (!h || !op || !p || !uid || nuid != e.n || e.n > MOST_AT || !workspace || !*workspace) return CUDNN_STATUS_BAD_PARAM;
    for (int64_t i = 0; i < e.n; i++) {
        const item *t = NULL;
        for (int64_t k = 0; k < nop && !t; k++) t = tensor_of(op[k], uid[i]);
        const char *by_value = t ? item_get(t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, NULL) : NULL;
        if (!t || !p[i] || (!by_value && (uintptr_t)p[i] % 16)) return CUDNN_STATUS_BAD_PARAM;
        e.uid[i] = uid[i], e.p[i] = p[i], e.value[i] = by_value ? (double)*(const float *)p[i] : 0;
    }
    e.workspace = *workspace;
    return stand_in_do(graph_execute, &e, sizeof e) ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

/* ---- the transform of strides (cuda/transform.c): alpha 1, beta 0 ---- */

typedef struct { int n, size, dim[MOST_DIMS], stride[MOST_DIMS]; } layout;
typedef struct { layout from, to; const char *in; char *out; } transform;

DNN(cudnnCreateTensorDescriptor, cudnnTensorDescriptor_t *d) {
    FAULT();
    *d = calloc(1, sizeof(layout));
    return *d ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN(cudnnDestroyTensorDescriptor, cudnnTensorDescriptor_t d) {
    free(d);
    return CUDNN_STATUS_SUCCESS;
}

DNN(cudnnSetTensorNdDescriptor, cudnnTensorDescriptor_t d, cudnnDataType_t t, int n, const int *dim, const int *stride) {
    FAULT();
    layout *l = (layout *)d;
    if (n < 4 || n > MOST_DIMS || t > CUDNN_DATA_INT8) return CUDNN_STATUS_BAD_PARAM;
    l->n = n, l->size = t == CUDNN_DATA_DOUBLE ? 8 : t == CUDNN_DATA_HALF ? 2 : t == CUDNN_DATA_INT8 ? 1 : 4;
    memcpy(l->dim, dim, (size_t)n * sizeof *dim), memcpy(l->stride, stride, (size_t)n * sizeof *stride);
    return CUDNN_STATUS_SUCCESS;
}

static void transform_all(void *arg) {
    const transform *t = arg;
    long long count = 1;
    for (int i = 0; i < t->to.n; i++) count *= t->to.dim[i];
    for (long long k = 0; k < count; k++) {
        long long to = 0, from = 0, left = k;
        for (int i = t->to.n - 1; i >= 0; left /= t->to.dim[i--]) to += left % t->to.dim[i] * t->to.stride[i], from += left % t->to.dim[i] * t->from.stride[i];
        memcpy(t->out + to * t->to.size, t->in + from * t->to.size, (size_t)t->to.size);
    }
}

DNN(cudnnTransformTensor, cudnnHandle_t h, const void *a, const cudnnTensorDescriptor_t x, const void *p, const void *b, const cudnnTensorDescriptor_t y, void *q) {
    FAULT();
    if (!h || !a || !x || !p || !b || !y || !q) return CUDNN_STATUS_BAD_PARAM;
    transform t = {*(const layout *)x, *(const layout *)y, p, q};
    if (t.from.size != t.to.size || t.from.n != t.to.n) return CUDNN_STATUS_BAD_PARAM;
    return stand_in_do(transform_all, &t, sizeof t) ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}
