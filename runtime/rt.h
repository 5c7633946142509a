/* The runtime: tensors, backends, kernels, execution of a graph.  cuda/ includes this header and those of src/ only.
 *
 * A tensor is a *view* of a *storage*.  The storage is bytes on a device, counted by reference; the view says which element of
 * it each index means: element (i0, i1, ...) lies at place  offset + i0*stride[0] + i1*stride[1] + ...,  counted in elements.
 *
 *   a storage of 12 floats, viewed as f32[3,4]:   dim {3,4}  stride {4,1}  offset 0
 *   its transpose, f32[4,3]:                      dim {4,3}  stride {1,4}  offset 0      the same storage, no copy
 *   row 1 of that, f32[3]:                        dim {3}    stride {4}    offset 1
 *   that row repeated, f32[5,3]:                  dim {5,3}  stride {0,4}  offset 1      (Expand)
 *   a row backwards (Slice with step -1):         stride may be negative, offset is then the last element
 *
 * Elements smaller than a byte (RL_I4, ...) are counted the same way: element k is bits k*4 .. k*4+3, the low half of a byte
 * first, as ONNX packs them.  An element of RL_STRING is an rl_str, interned in the context.  A *sequence* is a storage of
 * tensors.  An optional is its content, or a value of kind RL_ABSENT when it is empty.
 *
 * A kernel gets one node's inputs and makes its outputs.  A whole one, for an op that adds an attribute to each element:
 *
 *   rl_status rl_ref_shift(rl_call *c) {
 *       const rl_tensor *x = rl_call_dense(c, 0);                    the input, copied only if it is not row-major
 *       rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);  output 0, row-major, owned by the run
 *       float by = rl_attr_float(c->node, "by", 1);                  the default where the attribute is missing
 *       const float *from = rl_data(x);
 *       float *to = rl_data(y);
 *       if (isnan(by)) return rl_call_fail(c, RL_EMODEL, "'by' is no number");   "node 'n1' (Shift): 'by' is ..."
 *       for (int64_t i = 0; i < rl_numel(x); i++) to[i] = from[i] + by;
 *       return RL_OK;
 *   }
 *
 * and its row in kernels.def:  KERNEL("com.acme", Shift, 1, RL_NEWEST, RL_T(RL_F32), rl_ref_shift, 0).
 * An output that is a view of an input:  rl_call_share(c, 0, rl_view_transpose(x, perm))  copies nothing.
 * Memory never comes back NULL: what cannot be had jumps to the public entry (base.h), and the run's storages are freed with
 * rl_rt_free. */
#ifndef RL_RT_H
#define RL_RT_H
#include "../src/ir.h"
#include "../src/move.h"

enum { RL_RANK = 32 }; /* the most dims of a tensor that runs */

typedef struct rl_rt rl_rt;
typedef struct rl_backend rl_backend;

/* ---- tensors (tensor.c) ---- */

typedef struct rl_storage {
    rl_rt *rt;
    struct rl_storage *next, *prev; /* of all that the run holds */
    const rl_backend *on;           /* where p is */
    void *p;
    size_t nbyte;
    uint32_t ref;
    bool lasts;                     /* a constant's: it stays as it is, and what was copied of it stays right */
    bool came;                      /* made on the host for want of a device's kernel: what reads it is the device's (device.h) */
    bool borrowed;                  /* p is not freed: weights in the mapped file, caller's data */
    bool loose;                     /* borrowed weights whose address is not a multiple of their type's, or which are shorter: rl_storage_fetch before they are read */
    rl_dtype narrow;                /* of loose ones: the shorter float that they are where they are borrowed, while p is to be float32; else RL_UNDEF */
    uint32_t readers;               /* of weights: steps that read them, counted for fast kernels; 0: they stay as they are */
    const void *source;             /* of loose ones while p is a copy: where they are borrowed */
    bool items;                     /* a sequence: p holds nbyte / sizeof(rl_tensor) tensors */
    struct rl_storage *base;        /* the storage that p lies in, of which it has a reference; NULL: p is its own */
    struct rl_storage *part, *after; /* those that lie in it; the next one in its base */
} rl_storage;

typedef enum { RL_ABSENT, RL_TENSOR, RL_SEQUENCE } rl_kind;

typedef struct rl_tensor {
    rl_kind kind;
    rl_dtype dtype;          /* of a sequence: of its tensors, RL_UNDEF when unknown */
    uint32_t rank;           /* of a sequence: 1 */
    int64_t offset;          /* elements */
    rl_storage *mem;
    int64_t dim[RL_RANK];    /* of a sequence: dim[0] is its length. The first ones share a cache line with what is before */
    int64_t stride[RL_RANK]; /* elements */
} rl_tensor;

/* Of n dims, at most INT64_MAX. */
static inline int64_t rl_product(const int64_t *dim, uint32_t n) {
    int64_t all = 1;
    for (uint32_t i = 0; i < n; i++) all = rl_mul(all, dim[i]);
    return all;
}
int64_t rl_numel(const rl_tensor *t);
size_t rl_bytes_of(rl_dtype t, int64_t numel); /* whole bytes; a string is one pointer */
uint32_t rl_elem_bits(rl_dtype t);             /* rl_dtype_bits, but of a string the pointer's */
/* The bytes of element 0; not for types under 8 bits with an odd offset. */
static inline void *rl_data(const rl_tensor *t) {
    return (char *)t->mem->p + t->offset * (int64_t)rl_elem_bits(t->dtype) / 8;
}
/* Element i of a dense tensor of bools: its byte, which comes from the model or the caller, may be any. */
static inline bool rl_is_true(const rl_tensor *t, int64_t i) {
    return ((const uint8_t *)rl_data(t))[i] != 0;
}
bool rl_goes_back(const rl_tensor *t);         /* along some dim: oneDNN has no description of that */
bool rl_is_dense(const rl_tensor *t);          /* row-major without gaps, from a whole byte on */
bool rl_same_dims(const rl_tensor *a, const rl_tensor *b);

/* A new row-major tensor, not cleared (strings: empty). The caller owns one reference: rl_tensor_drop. */
rl_tensor rl_tensor_new(rl_rt *rt, rl_dtype t, uint32_t rank, const int64_t *dim);
/* The same inside `base`, from byte `at` on; where that is too short, or something alive lies there, a storage of its own. */
rl_tensor rl_tensor_new_in(rl_rt *rt, rl_storage *base, size_t at, rl_dtype t, uint32_t rank, const int64_t *dim);
/* A view of bytes that outlive the run; nothing is copied. */
rl_tensor rl_tensor_borrow(rl_rt *rt, rl_dtype t, uint32_t rank, const int64_t *dim, const void *p, size_t nbyte);
/* t, of borrowed bytes, as float32: loose. False: it is not float16 or bfloat16. */
bool rl_tensor_widen(rl_rt *rt, const rl_tensor *t, rl_dtype to, rl_tensor *out);
/* p becomes a copy that can be read, where s is loose; and is dropped again. */
void rl_storage_fetch(rl_storage *s);
void rl_storage_unfetch(rl_storage *s);
/* A sequence of n tensors: takes one reference of each item (rl_tensor_keep what stays in use elsewhere). */
rl_tensor rl_sequence_new(rl_rt *rt, rl_dtype t, const rl_tensor *item, int64_t n);
static inline const rl_tensor *rl_item(const rl_tensor *seq, int64_t i) { return (const rl_tensor *)seq->mem->p + i; }
/* *to becomes what *t is, with no reference of its own; dims beyond the rank, half a KiB, stay what they were. */
static inline void rl_tensor_set(rl_tensor *to, const rl_tensor *t) {
    to->kind = t->kind, to->dtype = t->dtype, to->rank = t->rank, to->offset = t->offset, to->mem = t->mem;
    for (uint32_t i = 0; i < t->rank; i++) to->dim[i] = t->dim[i], to->stride[i] = t->stride[i];
}
rl_tensor rl_tensor_keep(const rl_tensor *t);  /* one more reference to the same storage */
void rl_tensor_drop(rl_tensor *t);             /* one less; *t becomes RL_ABSENT */
/* t itself (one more reference) where it is dense, else a dense copy. */
rl_tensor rl_contiguous(rl_rt *rt, const rl_tensor *t);
/* *t made dense, as callers get outputs; the bytes that were written for that. */
size_t rl_deliver(rl_rt *rt, rl_tensor *t);

/* Views: each returns a description of t's storage WITHOUT taking a reference; keep it (rl_call_share does) or use it at once. */
rl_tensor rl_view_transpose(const rl_tensor *t, const int64_t *perm);
rl_tensor rl_view_slice(const rl_tensor *t, uint32_t axis, int64_t start, int64_t step, int64_t count);
/* To a shape that t broadcasts to, by strides of 0; false when it does not. Also the way to align operands of lower rank. */
bool rl_view_expand(const rl_tensor *t, uint32_t rank, const int64_t *dim, rl_tensor *out);
/* The same elements in order under another shape; false where that needs a copy. numel must be equal. */
bool rl_view_reshape(const rl_tensor *t, uint32_t rank, const int64_t *dim, rl_tensor *out);

/* ---- moving (move.c) ---- */

/* Copies src to dst, of equal dims and element bits, whatever their strides and offsets, by the one move kernel (src/move.h). */
void rl_tensor_move(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src);
/* n such moves, of one type, that do not depend on each other: by fewer launches on a device. */
void rl_tensor_move_all(rl_rt *rt, uint32_t n, const rl_tensor *dst, const rl_tensor *src);
/* Sets every element of dst to the one at *value (of the element's size; types under 8 bits: in its low bits). */
void rl_fill(rl_rt *rt, const rl_tensor *dst, const void *value);

/* ---- kernels (kernels.c, kernels.def) ---- */

typedef struct rl_call rl_call;
typedef rl_status rl_kernel_fn(rl_call *c);

#define RL_T(dtype) (1u << (dtype))
/* The first row that matches runs: its domain and type are the node's, since <= version of the domain <= until, and `types` has the dtype of
 * the node's first input that is not left out. */
typedef struct {
    const char *domain, *type;
    uint32_t since, until;
    uint32_t types;        /* RL_T bits; 0: whatever the inputs are, sequences or none */
    rl_kernel_fn *fn;
    int arg;               /* which of its family's ops: c->arg */
} rl_kernel;

/* Bytes of the host that a device is to keep. */
typedef enum {
    RL_KEEP_CONSTANT, /* they stay what and where they are, and are known again by their place */
    RL_KEEP_COPY,     /* they may change: they are known again by what they are */
    RL_KEEP_IF_ROOM   /* the same, but of these a device keeps only so many: what each run makes anew may be new each time */
} rl_keeping;

struct rl_backend {
    const char *name;
    const rl_kernel *kernel;
    uint32_t nkernel;
    const rl_kernel *chain; /* a device's, of joined element-wise ops (fuse.h) */
    /* NULL when there is no memory. 64-byte aligned. */
    void *(*alloc)(rl_rt *rt, size_t nbyte);
    void (*free)(rl_rt *rt, void *p, size_t nbyte);
    /* Bytes to and from the host, done when they return. */
    rl_status (*put)(rl_rt *rt, void *to, const void *host, size_t nbyte);
    rl_status (*get)(rl_rt *rt, void *host, const void *from, size_t nbyte);
    rl_status (*sync)(rl_rt *rt);
    /* ---- of a device (device.h), NULL for the CPU ---- */
    /* Once for a run's rl_rt, whose `state` is the backend's. */
    rl_status (*open)(rl_rt *rt);
    void (*close)(rl_rt *rt);
    /* Both lie here; as rl_tensor_move and rl_fill. */
    rl_status (*move)(rl_rt *rt, const rl_tensor *dst, const rl_tensor *src);
    rl_status (*move_all)(rl_rt *rt, uint32_t n, const rl_tensor *dst, const rl_tensor *src);
    rl_status (*fill)(rl_rt *rt, const rl_tensor *dst, const void *value);
    /* From one layout to another, padding zero. */
    rl_status (*convert)(rl_rt *rt, const rl_desc *to, void *out, const rl_desc *from, const void *in);
    /* The host's bytes, here until the rl_rt is freed; the same bytes again cost nothing. NULL: no memory, or no room for such. */
    void *(*keep)(rl_rt *rt, const void *host, size_t nbyte, rl_keeping how);
    /* From record to record_end what is asked for is remembered, not done. replay does all of it again, in the same places; forget frees it. */
    rl_status (*record)(rl_rt *rt);
    rl_status (*record_end)(rl_rt *rt, void **out);
    rl_status (*replay)(rl_rt *rt, void *recording);
    void (*forget)(rl_rt *rt, void *recording);
    /* In place of record, for steps that need not be done one after the other (branches.h): each waits for those alone that `after` names before it, by
     * their numbers among the steps that asked for anything, of which step_end tells. Memory freed by one is given to none before record_end; about
     * nbyte of it will be wanted. RL_ELIMIT: the device cannot do that, or has less memory. */
    rl_status (*record_branches)(rl_rt *rt, size_t nbyte);
    rl_status (*after)(rl_rt *rt, const uint32_t *step, uint32_t n);
    rl_status (*step_end)(rl_rt *rt, bool *did);
    /* Notes the time there, after what was asked for so far, as mark i; after a sync: seconds between marks i and i + 1. */
    rl_status (*mark)(rl_rt *rt, uint32_t i);
    rl_status (*between)(rl_rt *rt, uint32_t i, double *seconds);
    const char *(*describe)(rl_rt *rt); /* "NVIDIA H200, ..." */
    const struct rl_native_ways *ways;  /* what its steps have for plans (native.h); NULL: no plans */
};
extern const rl_backend rl_backend_cpu;
extern const rl_backend rl_backend_pages; /* memory of the CPU's for what is large and goes soon */

typedef struct rl_exec rl_exec;

struct rl_call {
    rl_rt *rt;
    const rl_graph *g;
    const rl_nodeinfo *node;
    int arg;                     /* of the kernel's row */
    const rl_tensor *const *in;  /* NULL: left out */
    uint32_t nin;
    rl_tensor *out;              /* RL_ABSENT until made */
    uint32_t nout;
    uint32_t wrong;              /* 1 + an input that is no number where one is asked for */
    bool over;                   /* output 0 was written over an input */
    bool rounds;                 /* outputs are to be rounded (halves.c); cleared by a kernel that has done so */
    bool gaps;                   /* set by a kernel: output 0 may have gaps between its rows */
    bool declined;               /* set by a device's kernel, which then did nothing: the next one in the table runs */
    rl_arena *tmp;               /* emptied after the node */
    struct rl_frame *frame;      /* for bodies */
    struct rl_step *step;
};

/* NULL where the input is left out or the empty optional. */
const rl_tensor *rl_call_in(const rl_call *c, uint32_t i);
/* The same, row-major; a copy lives until the node is done. */
const rl_tensor *rl_call_dense(rl_call *c, uint32_t i);
/* The same converted to another number type, row-major: for small parameters (pads, scales, axes, scalars). */
const rl_tensor *rl_call_as(rl_call *c, uint32_t i, rl_dtype t);
/* A row-major tensor that lives until the node is done. */
rl_tensor *rl_call_temp(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim);
/* On the host, also while a kernel of a device runs. */
rl_tensor *rl_call_host_temp(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim);
/* Is output i wanted? */
bool rl_call_wants(const rl_call *c, uint32_t i);
/* Makes output i, row-major, not cleared. Also where it is not wanted (then it goes after the node). */
rl_tensor *rl_call_make(rl_call *c, uint32_t i, rl_dtype t, uint32_t rank, const int64_t *dim);
/* The same, for an op whose output element depends on the input elements at its own index only (or on inputs with fewer elements):
 * where input k, k < nover, ends with this node, nobody else has its storage, and it is as output 0 is to be, then output 0 has
 * its storage. */
rl_tensor *rl_call_make_over(rl_call *c, uint32_t nover, rl_dtype t, uint32_t rank, const int64_t *dim);
/* Before a kernel reads what weights are made of; it calls the second for input i once it has them in its own form. */
void rl_call_fetch(const rl_call *c);
void rl_call_packed(const rl_call *c, uint32_t i);
/* Output i of x's type and rank, in x's order of memory in a run with fast kernels or a device, else row-major: for ops that work on views. */
rl_tensor *rl_call_make_like(rl_call *c, uint32_t i, const rl_tensor *x, const int64_t *dim);
/* A tensor for value v where the plan has a place for it, else anywhere; in this order of memory (NULL: row-major). */
rl_tensor rl_call_make_value(const rl_call *c, rl_value v, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm);
/* Output i becomes this view; its storage gets one more reference. */
void rl_call_share(rl_call *c, uint32_t i, rl_tensor view);
/* Output i takes over t and its reference (sequences, results of bodies). */
void rl_call_give(rl_call *c, uint32_t i, rl_tensor t);

/* rl_fail with "node 'name' (Type): " before the message. */
rl_status rl_call_fail(const rl_call *c, rl_status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* as for rl_fail */
#define rl_call_fail(c, status, ...) ((rl_call_fail)((c), (status), __VA_ARGS__), (status))
#endif
/* RL_EMODEL unless inputs 0 .. n-1 are there. */
rl_status rl_call_need(const rl_call *c, uint32_t n);

/* Integers from attribute `name` or, where the node has it, from input `slot` (RL_NONE: no such input; the op's opset version
 * tells which of the two a valid node has). *n is 0 and *x NULL where neither is there. */
rl_status rl_call_ints(rl_call *c, const char *name, uint32_t slot, const int64_t **x, uint32_t *n);
/* The tensor in attribute `name`, row-major, until the node is done; NULL where the node has none. */
rl_status rl_call_tensor(rl_call *c, const char *name, const rl_tensor **out);
/* axis made non-negative for a rank; RL_EMODEL when out of range. */
rl_status rl_call_axis(const rl_call *c, int64_t axis, uint32_t rank, uint32_t *out);
/* The integer attribute `name` as an axis of input 0. */
rl_status rl_call_attr_axis(const rl_call *c, const char *name, int64_t dflt, uint32_t *out);
/* RL_EMODEL where a dim is negative, RL_ELIMIT where there are too many or they make more elements than can be counted: for dims
 * that come from the model's data. */
rl_status rl_call_dims(const rl_call *c, uint32_t rank, const int64_t *dim);
/* dim (rank of them; begin with rank 0) becomes the shape that it broadcasts with t to; RL_EMODEL when it does not. */
rl_status rl_call_broadcast(const rl_call *c, uint32_t *rank, int64_t *dim, const rl_tensor *t);

/* Runs the body in attribute `name`: nin inputs are read, nout outputs made (the caller owns a reference of each). */
rl_status rl_call_body(rl_call *c, const char *name, const rl_tensor *in, uint32_t nin, rl_tensor *out, uint32_t nout);
const rl_graph *rl_call_graph(const rl_call *c, const char *name); /* the body, for its numbers of inputs and outputs */

/* ---- threads (pool.c) ---- */

typedef struct rl_pool rl_pool;
/* Calls fn on pieces that cover 0 .. n-1, in several threads when n > grain. Which indices make a piece depends on n, grain and
 * the number of threads only: results that do not depend on the cut are the same in every run. */
void rl_parallel(rl_rt *rt, int64_t n, int64_t grain, rl_range_fn *fn, void *arg);
rl_pool *rl_pool_new(uint32_t nthread); /* NULL: no memory, or no threads */
void rl_pool_free(rl_pool *p);
uint32_t rl_pool_size(const rl_pool *p);
/* Loops run on the threads that this function starts from now on: an OpenMP runtime's, so that those of two do not fight. */
void rl_pool_borrow(rl_pool *p, void (*team)(void (*fn)(void *), void *arg, unsigned nthread, unsigned flags));
void rl_pool_run(rl_pool *p, int64_t n, int64_t grain, rl_range_fn *fn, void *arg);
rl_threads rl_pool_threads(rl_pool *p); /* as src/move.h wants them */

/* ---- a run (exec.c) ---- */

struct rl_rt {
    rl_ctx *ctx;
    const rl_backend *on;    /* where new tensors are made: the CPU, or `device` while a kernel of that runs */
    const rl_backend *device; /* NULL: the CPU does everything */
    void *state;             /* the device's */
    const rl_nodeinfo *at;   /* the node whose kernel runs on the device; NULL: none */
    rl_status failed;        /* of a move on the device, whose message is in the context */
    bool no_number;          /* strings or complex numbers were to be converted: the kernel at work fails when it is done */
    bool recording;          /* what the device is asked for is remembered, not done */
    struct rl_branches *branches; /* of the recording that is made (branches.h); NULL: one step after the other */
    bool runs_often;         /* the next graphs run many times: a device may take a while to find out what is quickest */
    bool stepwise;           /* wait for the device after each node, so that the one that failed is named */
    uint64_t put, got;       /* bytes that went to the device and came from it since the run began */
    struct rl_fast *fast;    /* NULL: reference kernels only (fast.h); so with a device */
    rl_span native;          /* the text of a plan that the next graph must take (native.h); p NULL: what the model has */
    bool no_plan;            /* none, whatever the model has */
    bool no_homes;           /* the next graphs have no Concats in place (home.h): steps are as plans speak of them */
    rl_pool *pool;           /* NULL: one thread */
    rl_storage *all;         /* every storage that is alive */
    size_t live, peak;       /* bytes of storages that are not borrowed and do not lie in another; the most since the last run began */
    size_t constants;        /* of these, copies of constants whose bytes in the file are not aligned, and strings */
    size_t high, work;       /* the most since the node at work began; the most that a node of the last run had for itself, oneDNN's scratch included */
    size_t settled;          /* bytes kept of what the inputs' sizes settle (settled.h) */
    size_t arena, least;     /* the last plan (plan.h): bytes of its arena; the most bytes that it has alive at once */
    uint64_t moved;          /* bytes that rl_tensor_move copied */
    uint64_t made;           /* bytes of all values and temporaries, also of those written over an input */
    uint64_t random;         /* state of the Random ops */
    /* Sees every value as it is made; NULL: nobody. Errors end the run. */
    rl_status (*watch)(void *user, const rl_graph *g, rl_value v, const rl_tensor *t);
    void *user;
    void (*progress)(void *user, uint32_t done, uint32_t all); /* before each node of the graph, not of bodies; NULL: nobody */
    void *progress_user;
};

/* on: the CPU, or a device that has the CPU for what it has no kernel for. nthread 0 or 1: no pool. Freed with rl_rt_free, also what a failed run left behind. */
rl_rt *rl_rt_new(rl_ctx *ctx, const rl_backend *on, uint32_t nthread);
/* The same on the CPU, with fast kernels where they are wanted and oneDNN is there. */
rl_rt *rl_rt_new_for(rl_ctx *ctx, bool fast, uint32_t nthread);
void rl_rt_free(rl_rt *rt);

/* Prepares g: types are inferred, every node and body gets its kernels. RL_ELIMIT names the first node that has none for its op,
 * version or (where known) type: nothing ran then. g must outlive it; it lives in g's arena. */
rl_status rl_exec_new(rl_rt *rt, rl_graph *g, rl_exec **out);
/* The two halves of it: g becomes what such an rl_rt wants, once; and is prepared, which changes nothing of it but where there is a plan,
 * so that this can be done again. */
rl_status rl_exec_rewrite(const rl_rt *rt, rl_graph *g);
rl_status rl_exec_prepare(rl_rt *rt, rl_graph *g, rl_exec **out);
/* in: one per graph input, RL_ABSENT: not given (its default is taken). out: one per graph output, a reference each. */
rl_status rl_exec_run(rl_exec *x, const rl_tensor *in, rl_tensor *out);

#endif
