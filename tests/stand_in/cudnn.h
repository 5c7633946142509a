/* What the two files of cuDNN's stand-in share: descriptors with their attributes, as they were set (cudnn.c); graphs of these done by plain loops
 * (cudnn_ops.c). */
#ifndef STAND_IN_CUDNN_H
#define STAND_IN_CUDNN_H
#include <cudnn_backend.h>
#include <cudnn_ops.h>

#include "stand_in.h"

enum { WORKSPACE = 512 /* bytes that every plan works in */, MOST_ATTRIBUTES = 16, MOST_AT = 32, MOST_DIMS = 5 };
typedef struct { int name, type; int64_t n; void *p; } attribute;
typedef struct item {
    cudnnBackendDescriptorType_t type;
    int refs, finished;
    unsigned nattribute;
    attribute at[MOST_ATTRIBUTES];
} item;

/* The attribute's first element; NULL: not set. n: how many. */
const void *item_get(const item *d, cudnnBackendAttributeName_t name, int64_t *n);
const item *item_of(const item *d, cudnnBackendAttributeName_t name); /* another descriptor */
int item_int(const item *d, cudnnBackendAttributeName_t name, int otherwise);
double item_double(const item *d, cudnnBackendAttributeName_t name, double otherwise);

/* Addresses by number, and numbers of the host's (by value), as they were when the plan was executed. */
typedef struct { const item *graph; int64_t n, uid[MOST_AT]; void *p[MOST_AT]; double value[MOST_AT]; void *workspace; } execution;
void graph_execute(void *arg);
/* Does the stand-in have it? Says the graph. */
int graph_takes(const item *graph);
int graph_is_compiled(const item *graph);

#endif
