/* Fast kernels: oneDNN's primitives (dnnl.h) and loops over rows (rows.h) in front of the reference kernels.
 *
 * A fast kernel looks at its inputs and takes the case that it is made for; every other case goes to the reference kernel of the same
 * op, by a call.  So the table kernels_fast.def may name an op for all of its versions and forms.
 *
 * Layouts are strides.  A convolution makes its output channels-last: dims [N,C,H,W], strides as if it were [N,H,W,C].  Ops that do
 * not care (pointwise ones, pools, Concat) give their output the order of their input's memory, so that a chain of convolutions
 * stays channels-last, and what cares (Reshape, a reference kernel that wants row-major) copies.
 *
 * A primitive is made once for a node and the shapes that it met (rl_prim), with its constant weights packed as it likes best. */
#ifndef RL_FAST_H
#define RL_FAST_H
#include "dnnl.h"
#include "exec.h"
#include "kernels.h"

enum { RL_SPARES = 24 };

/* What a primitive is made of, until rl_making_end. */
typedef struct {
    rl_call *c;
    struct rl_fast *f;
    struct rl_prim *p; /* NULL: none is being made */
    rl_dnnl_attr attr;
    rl_dnnl_pd pd;
    int type; /* of what rl_making_md and rl_making_lay make: RL_DNNL_F32, until it is set */
    rl_dnnl_md md[24];
    uint32_t nmd;
} rl_making;

typedef struct rl_fast {
    rl_dnnl d;
    rl_dnnl_engine engine;
    rl_dnnl_stream stream;
    struct rl_prim *all;
    rl_making making;
    struct { void *p; size_t nbyte; } spare[RL_SPARES]; /* blocks that were freed */
    struct { void *p; size_t nbyte; bool used; } passing; /* the largest block of rl_backend_pages, until the run ends */
    rl_tensor scratch; /* of the primitive at work: its own, and arguments in another layout */
} rl_fast;

struct rl_lay; /* native.h */

extern const rl_backend rl_backend_fast;

enum { RL_PRIM_ARGS = 12, RL_PRIM_KEY = 80, RL_PRIM_KEPT = 6 /* per node: the shapes met last */ };

typedef struct {
    int arg;                    /* RL_DNNL_ARG_ */
    uint32_t at;                /* its place in the addresses given to rl_prim_run; RL_NONE: a constant */
    bool output;
    rl_dnnl_memory given, used; /* the same where no reorder is needed */
    rl_dnnl_primitive reorder;
    size_t place;               /* of used in the scratch */
    rl_tensor packed;           /* a constant's bytes */
} rl_prim_arg;

typedef struct rl_prim {
    struct rl_prim *next;       /* of its node, the last used first */
    struct rl_prim *after;      /* of the run's */
    rl_rt *run;
    int64_t key[RL_PRIM_KEY];
    uint32_t nkey, narg;
    bool ordered;               /* its output lies as the step's order says */
    bool bare;                  /* without bias and post-ops, which rows do (fuse.h) */
    bool fell;                  /* it does not run on the layouts that the plan says (native.h), but on copies */
    rl_dnnl_primitive p;        /* NULL: there is none that is optimized */
    rl_dnnl_memory scratchpad;
    size_t pad;                 /* its place in the scratch */
    size_t nscratch;
    rl_prim_arg arg[RL_PRIM_ARGS];
    char name[64];              /* of oneDNN's implementation */
} rl_prim;

/* The primitive for this node on tensors of these dims and strides; *fresh: it is empty and to be made. NULL: too many dims. */
rl_prim *rl_prim_get(rl_call *c, const rl_tensor *const *t, uint32_t n, bool *fresh);

/* One at a time: what memory that ran out has left is freed when the next begins, or with its primitive. */
rl_making *rl_making_start(rl_call *c, rl_prim *p);
/* Frees what only making needs; what was made in part is no primitive. */
void rl_making_end(rl_making *m);
/* oneDNN's number of f32, i32, i8 or u8. */
static inline int rl_dnnl_type(rl_dtype t) {
    return t == RL_I8 ? RL_DNNL_S8 : t == RL_U8 ? RL_DNNL_U8 : t == RL_I32 ? RL_DNNL_S32 : RL_DNNL_F32;
}
/* Of these dims and strides, freed by rl_making_end. stride NULL: as the primitive likes. */
rl_dnnl_md rl_making_md(rl_making *m, uint32_t rank, const int64_t *dim, const int64_t *stride);
/* Of these logical dims, that lies so; blocked: with the channels in lanes. */
rl_dnnl_md rl_making_lay(rl_making *m, uint32_t rank, const int64_t *dim, const struct rl_lay *lay);
/* The node's fused post-ops (fuse.h) as attributes, of a bare one none; `dst`: how the output lies, as do operands of its dims. */
bool rl_making_post(rl_making *m, rl_dnnl_cmd dst);
/* An input that lies as `have`, or the output. */
bool rl_making_arg(rl_making *m, int arg, uint32_t at, bool output, rl_dnnl_cmd have, rl_dnnl_cmd want);
/* A constant at `bytes`, packed now. */
bool rl_making_constant(rl_making *m, int arg, rl_dnnl_cmd have, const void *bytes, rl_dnnl_cmd want);
/* From m->pd: the primitive and its scratchpad. */
bool rl_making_primitive(rl_making *m);
/* Is m->pd one of oneDNN's plain loops, or is it of no use for the bias or post-ops? */
bool rl_making_is_ref(const rl_making *m, bool biased);

/* Does this kernel make a form of its own of constant input i, and read that only then (rl_call_packed)? */
bool rl_packs(rl_kernel_fn *fn, uint32_t i);

/* As rl_call_temp, f32, for the form of weights that is packed. */
rl_tensor *rl_call_passing(rl_call *c, uint32_t rank, const int64_t *dim);

/* A QLinearConv or QLinearMatMul before it runs, its input of these dims: is there a kernel of bytes? */
bool rl_fast_takes_bytes(rl_call *c);

/* Runs it on these addresses. */
rl_status rl_prim_run(rl_call *c, rl_prim *p, void *const *at);
/* Before a run: oneDNN takes as many threads as the run has. */
void rl_fast_begin(rl_rt *rt);
/* Primitives go first, the rest after all storages. */
void rl_fast_drop(const rl_rt *rt);
void rl_fast_close(rl_rt *rt);
/* A kept block of this size, or NULL; keeps a block; false: it is to be freed. */
void *rl_fast_spare(rl_fast *f, size_t nbyte);
/* Bytes that oneDNN's primitives share for their scratch. */
size_t rl_fast_scratch(const rl_rt *rt);
bool rl_fast_keep(rl_fast *f, void *p, size_t nbyte);
/* The same for rl_backend_pages: one block, the largest, is used again and again. */
void *rl_fast_passing(rl_fast *f, size_t nbyte);
bool rl_fast_keep_passing(rl_fast *f, void *p, size_t nbyte);
void rl_fast_end(rl_rt *rt); /* after a run */
void rl_prim_free(rl_fast *f, rl_prim *p);
/* Those of a step that will not run again. */
void rl_prims_drop(const rl_rt *rt, rl_step *s);

/* ---- layouts ---- */

/* The strides of a tensor that lies channels-last. */
void rl_channels_last(uint32_t rank, const int64_t *dim, int64_t *stride);
bool rl_is_channels_last(const rl_tensor *t);
/* perm: the dims of t from the outermost in memory to the innermost; false where a stride is not positive. */
bool rl_stride_order(const rl_tensor *t, int64_t *perm);
/* The same; false where it has gaps or overlaps, too. */
bool rl_memory_order(const rl_tensor *t, int64_t *perm);
/* Output i in this order of memory (NULL: row-major). */
rl_tensor *rl_call_make_in(rl_call *c, uint32_t i, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm);
/* The same where an input (of the first nover) of these dims and strides ends here: over it. */
rl_tensor *rl_call_make_over_in(rl_call *c, uint32_t nover, rl_dtype t, uint32_t rank, const int64_t *dim, const int64_t *perm);
/* Is input i a constant of the graph? */
bool rl_call_is_constant(const rl_call *c, uint32_t i);

#endif
