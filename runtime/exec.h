/* What call.c and exec.c share: prepared graphs and their frames.
 *
 * A graph is prepared once (rl_exec: a step per node, with the kernels for its op, the bodies, and which values are read for the
 * last time there) and run in a frame, which holds its values.  A body's frame looks up outer values in the frame around it. */
#ifndef RL_EXEC_H
#define RL_EXEC_H
#include "rt.h"

/* With a device: on it; a view, or a move by what moves there; on the host, with all that it read; on the host for want of a kernel */
typedef enum { RL_RAN_NOT, RL_RAN_DEVICE, RL_RAN_VIEW, RL_RAN_HOST, RL_RAN_FALLBACK } rl_place_of_step;

/* How a value lies in memory: its dims from the outermost; dim NULL: as the kernel likes. */
typedef struct { const int64_t *dim; uint32_t rank; } rl_order;
/* NULL also where the model's types were wrong, and it has another rank (order.c). */
const int64_t *rl_order_for(rl_order o, uint32_t rank);

typedef struct rl_step {
    rl_node node;              /* the last of those that it runs */
    const rl_nodeinfo *info;   /* that node, or the first one with the inputs of all and the outputs of the last (fuse.h) */
    struct rl_fused *fused;    /* NULL: one node */
    struct rl_joined *joined;  /* of attention (fuse.h) */
    const struct rl_pieces *pieces; /* of what input 0 is in (pieces.c); NULL: it is whole */
    const struct rl_fold *fold; /* the DepthToSpace behind a convolution (fold.c); NULL: none */
    const struct rl_shear *shear; /* the Pads, Reshapes and Slices that it joins (shear.c); NULL: none */
    const struct rl_turns *turns; /* the Reshapes and Transposes that it joins (turns.c); NULL: none */
    const struct rl_scatter *scatter; /* where the rows go that it makes (scatter.h); NULL: where they are made */
    struct rl_step *part;      /* with a device: the steps that it stands for, [npart]; they run where its kernel cannot */
    uint32_t npart;
    const void *made;          /* what the device's kernel made of its constants, in the graph's memory (device.h) */
    struct rl_native *native;  /* how its values lie by a plan (native.h); NULL: as the kernels like */
    struct rl_prim *prim;      /* what oneDNN runs for it (fast.h) */
    struct rl_views *views;    /* what it made last, if only views of input 0 (views.c); NULL: nothing, or nothing to be made again */
    rl_tensor packed;          /* its constants as its kernel likes them; RL_ABSENT: not packed */
    rl_order order;            /* how output 0 is to lie (order.c) */
    const char *ran;           /* the kernel that ran it last */
    struct { const rl_kernel **p; uint32_t n, cap; } kernel; /* candidates, in table order */
    rl_exec **body;            /* one per attribute; NULL where it is no graph */
    struct { uint32_t *p; uint32_t n, cap; } last; /* values that go after it */
    struct { rl_tensor **p; uint32_t n, cap; } temp; /* what the kernel at work made for itself */
    rl_place_of_step place;    /* where it ran last; with a device only */
    const char *note;          /* what of the device or its libraries failed here first, in the graph's memory; NULL: nothing */
    bool left;                 /* the device's kernel failed: the CPU's runs from then on */
} rl_step;

/* The kernel that is asked first; NULL: there is none. */
static inline rl_kernel_fn *rl_step_fn(const rl_step *s) { return s->kernel.n ? s->kernel.p[0]->fn : NULL; }

/* The same of a step that is still its own node and has no plan's kernel. */
static inline rl_kernel_fn *rl_step_own_fn(const rl_step *s) { return s->info && !s->native ? rl_step_fn(s) : NULL; }

/* What a step cost in all runs since: bytes of its inputs and outputs unless it only made views; bytes that strided copies wrote. */
typedef struct { double seconds; uint64_t bytes, copied; } rl_cost;

struct rl_exec {
    rl_rt *rt;
    rl_graph *g;
    rl_exec *parent;
    rl_step *step;
    uint32_t nstep;
    rl_tensor *constant; /* [value] RL_ABSENT where it is none */
    struct rl_memplan *plan; /* of the last run; NULL for bodies */
    struct rl_replay *replay; /* with a device: NULL until the graph has run */
    rl_cost *cost;       /* [step] NULL: not measured */
    double *clock;       /* gets the seconds of a recorded graph, by the device's clock, in each run that is one; NULL: not measured */
    /* Called before each step of the graph, not of bodies; NULL: nobody (native_probe.h). */
    rl_status (*probe)(void *user, struct rl_frame *f, rl_step *s, rl_call *c);
    void *probe_user;
    rl_tensor *place;    /* [value] where it is to be if it is made in that order, RL_ABSENT: anywhere; NULL: all anywhere */
    struct rl_home *home; /* [value] which Concat's buffer it is to be made in (home.h); NULL: none */
    rl_tensor *slot, *buffer; /* [nslot] memory of a frame between two runs: all RL_ABSENT; NULL: there is none */
    uint32_t nslot;
    bool *settles;       /* [step] it makes what the inputs' sizes settle (settled.h); NULL: none does */
    uint32_t *maker;     /* [value] with home: the step that makes it */
    uint32_t *outer;     /* [value] its number in the graph around, RL_NONE where it is no outer value */
};

typedef struct rl_frame {
    const rl_exec *x;
    struct rl_frame *up;
    rl_tensor *slot; /* [value] */
    rl_tensor *home; /* [value] buffers of Concats that are not done; NULL: none */
    rl_arena mem, tmp;
} rl_frame;

/* Runs x in a new frame: inputs are kept, not taken; each output is a reference for the caller. */
rl_status rl_exec_frame(const rl_exec *x, rl_frame *up, const rl_tensor *in, uint32_t nin, rl_tensor *out, uint32_t nout);

/* Value v as it is there now: RL_ABSENT where it was not made. */
const rl_tensor *rl_frame_value(const rl_frame *f, uint32_t v);
/* Makes the outputs of a step that makes views as it did last, if input 0 lies as it did then; false: its kernel is to run. */
bool rl_views_again(rl_frame *f, rl_step *s);
/* This step has run, and written nothing. */
void rl_views_note(const rl_call *c);

/* A tensor of the kernel's own, which the frame drops after the node. */
rl_tensor *rl_call_hold(rl_call *c, rl_tensor t);
/* The type that v, which lies as floats, is rounded to; RL_UNDEF: none. */
static inline rl_dtype rl_rounded_to(const rl_graph *g, rl_value v) {
    return rl_has(v) && v.i < g->nrounded ? g->rounded[v.i] : RL_UNDEF;
}
/* Runs the kernel of s for this call; what it makes for itself is the caller's to drop. */
rl_status rl_exec_kernel(rl_step *s, rl_call *c);

/* An op that makes something else each time. */
bool rl_node_draws(const rl_nodeinfo *n);
/* Runs the steps whose inputs are all constants, and takes sizes that are known from the graph: these are constants then, and the steps go. */
rl_status rl_exec_fold(rl_exec *x);

/* Runs these steps, each of which reads what those before make and constants, on `in` for the first one's input 0; their outputs 0, a reference of each. */
rl_status rl_exec_chain(rl_exec *x, rl_step *const *s, uint32_t n, const rl_tensor *in, rl_tensor *out);

bool rl_in_list(const char *const *list, size_t n, const char *name); /* settled.c */
/* Ops of com.microsoft as the ops that they stand for, in g and its bodies; fast: and products of two variables (spread.c).
 * Shapes are to be inferred again. */
rl_status rl_spread_bytes(rl_graph *g, bool fast);
/* The first kernel of its table for the node's op and version; NULL: none. */
const rl_kernel *rl_kernel_find(const rl_backend *b, const rl_nodeinfo *n);

typedef struct { char s[192]; } rl_label;
rl_label rl_node_label(const rl_nodeinfo *n); /* "node 'conv1' (Conv)" */

#endif
