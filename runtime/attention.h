/* Attention in blocks: softmax(scale q k, and what is done to it, row by row) v, for many heads at once.
 *
 *   rl_attention a = {.q = q, .k = k, .v = v, .y = y, .scale = 0.125f};      q f32[1,12,197,64], k f32[1,12,64,197], v, y f32[1,12,197,64]
 *   a.op[a.nop++] = (rl_score_op){.op = RL_ROW_ADD, .by = mask};             f32[1,12,197,197]; strides of 0 where it broadcasts
 *   rl_attention_run(rt, &a);
 *
 * The scores of a block of rows of q are made, turned into weights and multiplied with v while they are in the cache; they never
 * stand in memory as a whole.  k and v are packed into panels once for a head.  Rows are divided by the sum of their weights last, when
 * they are as short as v's.  Block by block over the keys too (FlashAttention, Dao et al. 2022) was not needed: a block holds whole rows. */
#ifndef RL_ATTENTION_H
#define RL_ATTENTION_H
#include "rows.h"
#include "rt.h"

enum { RL_SCORE_OPS = 6 };

/* One thing that is done to the scores. */
typedef struct {
    rl_row_op op; /* a binary one, with `by` (f32) as its operand; RL_ROW_COPY: a choice by bools */
    bool keep;    /* of a choice: the score stays where `by` is that, else it becomes `other` */
    float other;
    rl_tensor by; /* of the scores' dims, any strides */
} rl_score_op;

/* f32 views of any strides, with the same dims in front: q [.., m, d], k [.., d, n], v [.., n, w]; y [.., m, w], whose last stride is 1.
 * n > 0. Ranks 2 to RL_RANK. */
typedef struct {
    rl_tensor q, k, v, y;
    float scale;
    bool causal;        /* query i sees the keys up to i + past */
    int64_t past;       /* >= 0 */
    bool blind_is_zero; /* a query whose scores are all -inf gives zeros; else what is no number */
    uint32_t nop;
    rl_score_op op[RL_SCORE_OPS];
} rl_attention;
void rl_attention_run(rl_rt *rt, const rl_attention *a);
/* What the call's step joined (fuse_attention.c), of its inputs as they are in `in`, of any float type; makes output 0. Where that has no elements,
 * a->y alone says so. */
rl_status rl_joined_read(rl_call *c, const rl_tensor *const *in, rl_attention *a);

#endif
