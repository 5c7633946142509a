/* ONNX's Attention and RotaryEmbedding as their nodes say them: attributes read, inputs as views with their heads apart, for the CPU and for devices.
 *
 *   rl_attention_op a;
 *   RL_TRY(rl_attention_read(c, &a));                      query [2,7,24] of 3 heads: a.q f32[2,3,7,8]; past keys are in front of the new ones
 *   rl_tensor k = rl_attention_grouped(&a, &a.k);          12 heads of q, 4 of k: f32[2,4,3,7,8] and f32[2,4,1,9,8], whose 1 broadcasts
 *   rl_tensor y = rl_attention_output(c, &a);              output 0, of q's kind: a view [batch, heads, queries, size] to write to */
#ifndef RL_ATTENTION_OP_H
#define RL_ATTENTION_OP_H
#include "rt.h"
#include "seen.h"

typedef struct {
    int64_t batch, heads, key_heads, queries, keys; /* keys: with the past ones */
    bool flat;             /* the query has rank 3, so output 0 is [batch, queries, heads * size] */
    double scale, cap;     /* cap 0: none */
    int64_t mode;          /* the stage of the scores that output 3 is of: the product, capped, masked, weights */
    rl_sight sight;
    rl_tensor q, k, v;     /* [batch, heads, length, size], of their own types and strides, where the kernel at work runs */
} rl_attention_op;

/* Makes outputs 1 and 2: keys and values with the past ones. */
rl_status rl_attention_read(rl_call *c, rl_attention_op *a);
/* Do q, k and v fit?  Sets batch .. keys and the scale; part of rl_attention_read. */
rl_status rl_attention_check(const rl_call *c, rl_attention_op *a);
/* m, which the mask is, or was made of it, as [batch, heads, queries, keys that it has]: a->sight.keys says how many. */
rl_status rl_attention_mask(const rl_call *c, rl_attention_op *a, const rl_tensor *m, rl_tensor *view);
/* May input 6, which is there, be the number of keys for each batch? */
rl_status rl_attention_lengths(const rl_call *c, const rl_attention_op *a);
/* [batch, heads, ...] as [batch, key heads, group, ...]. */
rl_tensor rl_attention_grouped(const rl_attention_op *a, const rl_tensor *t);
rl_tensor rl_attention_output(rl_call *c, const rl_attention_op *a);

/* Output 0 of what was read, without a cap or outputs beside it; mask: numbers to add, as rl_attention_mask gives them (NULL: none).
 * The second: by tiles, of f32, where nothing is empty. */
void rl_attention_plain(rl_call *c, const rl_attention_op *o, const rl_tensor *mask);
void rl_attention_fast(rl_call *c, const rl_attention_op *o, const rl_tensor *mask);

/* [batch, length, heads * size] as [batch, heads, length, size]; rank 4 as it is. */
rl_tensor rl_attention_split(const rl_tensor *x, int64_t heads);
/* t, of those dims, behind the past ones of input `slot`: output i. Without a past: t itself. */
rl_status rl_attention_past(rl_call *c, uint32_t slot, uint32_t i, rl_tensor *t, int64_t *past);
/* Input i, [batch, length, heads * size], as [batch, heads, length, size]; rank 4 as it is. */
rl_status rl_attention_heads(rl_call *c, uint32_t i, int64_t heads, rl_tensor *out);

/* Pairs of the first 2 * half elements of a head are turned by the angles of their position: row p of the caches. */
typedef struct {
    rl_tensor x;                         /* [batch, heads, length, size] */
    uint32_t cosine, sine, position;     /* which inputs */
    int64_t half, positions;             /* positions: rows of the caches */
    bool interleaved;                    /* pairs are neighbours, else half apart */
    bool one_position;                   /* `position` is the first token's only */
} rl_rotary_op;
rl_status rl_rotary_read(rl_call *c, rl_rotary_op *r);
/* t, of input 0's dims, as x is. */
rl_tensor rl_rotary_heads(const rl_rotary_op *r, const rl_tensor *t);

#endif
