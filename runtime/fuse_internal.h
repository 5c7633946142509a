/* What fuse.c and fuse_pattern.c share: the joining at work, and what it asks of the graph. */
#ifndef RL_FUSE_INTERNAL_H
#define RL_FUSE_INTERNAL_H
#include "fuse.h"

typedef enum { RL_LEAD_CONV, RL_LEAD_PRODUCT, RL_LEAD_ROWS } rl_lead_kind;

typedef struct {
    rl_exec *x;
    uint32_t *step_of; /* [node] RL_NONE: it does not run, or in another's step */
    const rl_kernel **as; /* [step] its op in the fast kernels' table, which says what can be joined; NULL: nothing */
    const rl_backend *device; /* NULL: for the CPU's fast kernels */
    const rl_readers *of; /* [value] before anything is joined */
    const rl_step *whole; /* [step] as they were; with a device */
    /* The one at work: */
    rl_lead_kind kind;
    rl_step *lead;
    rl_dtype type;     /* of what it makes */
    rl_fused f;
    rl_value value;    /* what is made so far */
    uint32_t last;     /* the step that made it */
    uint32_t axis, count; /* of the channels, from the front; nodes taken in */
    rl_value in[3 + RL_POSTS];
    uint32_t nin;
    rl_node pad;       /* a Pad before it, that it does itself */
    bool pad_shared;   /* others read that, too */
    const int64_t *pads;
} rl_fuser;

/* The step runs in another one from now on, if that is not itself: who asks for readers of its inputs finds that one. */
void rl_fuse_take(rl_fuser *a, uint32_t step, uint32_t by);
/* s, which is step `last`, gets the steps that it stands for, in order: what runs where the device's kernel cannot. */
void rl_fuse_keep_parts(const rl_fuser *a, rl_step *s, uint32_t last);
/* What is joined from here on makes this type; false: nothing is joined that does. */
bool rl_fuse_begin(rl_fuser *a, rl_dtype t);
/* The op of a step, as the kernel that the fast kernels' table has for it; NULL: none, or an input or its output is left out. */
rl_kernel_fn *rl_fuse_fn(const rl_fuser *a, uint32_t step);
const rl_nodeinfo *rl_fuse_node(const rl_fuser *a, uint32_t step);
rl_value rl_fuse_other(const rl_nodeinfo *n, rl_value v); /* the input that is not v */
/* What is joined is of one type: f32, or with a device a shorter float, computed as f32. */
bool rl_fuse_is_type(const rl_fuser *a, rl_dtype t);
bool rl_fuse_same_dims(const rl_fuser *a, rl_value v, rl_value w);
const rl_tensor *rl_fuse_constant(const rl_fuser *a, rl_value v); /* as f32; NULL: it is none */
bool rl_fuse_scalar(const rl_fuser *a, rl_value v, float *to);    /* a constant of one element */
/* Does b take back what q makes, f32 into bytes, by one scale and zero point? To whole numbers from least to most, times the scale. */
bool rl_fuse_rounding(const rl_fuser *a, const rl_nodeinfo *q, const rl_nodeinfo *b, float *scale, float *least, float *most);
/* The steps that read v, at most `most`; RL_NONE where there are more, or a body or the caller reads it. */
uint32_t rl_fuse_readers(const rl_fuser *a, rl_value v, uint32_t *step, uint32_t most);
/* The last step of a pattern that begins at v and stands for one op; RL_NONE: there is none. */
uint32_t rl_fuse_silu(const rl_fuser *a, rl_value v);
uint32_t rl_fuse_gelu(const rl_fuser *a, rl_value v);
uint32_t rl_fuse_hard_swish(const rl_fuser *a, rl_value v);

/* Makes one step of the attention that this Softmax belongs to, if there is one. */
void rl_fuse_attention(rl_fuser *a, uint32_t softmax);

#endif
