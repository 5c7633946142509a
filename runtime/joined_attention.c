/* Attention that was joined from its nodes (fuse_attention.c): what its step says, as views of one rank, for the CPU and for devices. */
#include <string.h>

#include "attention.h"
#include "fast.h"
#include "fuse.h"
#include "ref_matmul.h"

typedef struct {
    uint32_t rank, whole_rank; /* of the scores as the product makes them, and as an op looks at them */
    int64_t dim[RL_RANK], whole[RL_RANK];
} scores;

/* The dims that all ops can work in: those of the product, or finer ones that an op sees them in. */
static rl_status find_dims(rl_call *c, const rl_joined *j, const rl_tensor *q, const rl_tensor *k, scores *s) {
    int64_t n = 1, known = 1;
    RL_TRY(rl_matmul_dims(c, q, k, &s->rank, s->dim));
    s->whole_rank = j->rank ? j->rank : s->rank;
    memcpy(s->whole, j->rank ? j->dim : s->dim, s->whole_rank * sizeof *s->dim);
    for (uint32_t i = 0; i < s->rank; i++) n *= s->dim[i];
    for (uint32_t i = 0; i < s->whole_rank; i++) known *= s->whole[i] < 0 ? 1 : s->whole[i];
    for (uint32_t i = 0; i < s->whole_rank; i++)
        if (s->whole[i] < 0) s->whole[i] = known ? n / known : 0;
    known = 1;
    for (uint32_t i = 0; i < s->whole_rank; i++) known *= s->whole[i];
    return known == n ? RL_OK
                      : rl_call_fail(c, RL_EMODEL, "scores of %lld elements are reshaped to %lld", (long long)n,
                                     (long long)known);
}

/* t with the dims of the product in front of its last two, then with those of the whole; a view where strides can say it. */
static rl_tensor spread(rl_call *c, const scores *s, const rl_tensor *t) {
    rl_tensor x = *t, y;
    int64_t dim[RL_RANK];
    uint32_t front = s->rank - 2, whole = s->whole_rank - 2;
    memcpy(dim, s->dim, front * sizeof *dim);
    memcpy(dim + front, t->dim + t->rank - 2, 2 * sizeof *dim);
    rl_view_expand(t, s->rank, dim, &x);
    memcpy(dim, s->whole, whole * sizeof *dim);
    memcpy(dim + whole, t->dim + t->rank - 2, 2 * sizeof *dim);
    if (rl_view_reshape(&x, s->whole_rank, dim, &y)) return y;
    rl_tensor *copy = rl_call_temp(c, x.dtype, x.rank, x.dim);
    rl_tensor_move(c->rt, copy, &x);
    rl_view_reshape(copy, s->whole_rank, dim, &y);
    return y;
}

static rl_status set_op(rl_call *c, const scores *s, const rl_joined_op *o, const rl_tensor *t, rl_score_op *to) {
    rl_tensor x;
    *to = (rl_score_op){.op = o->op, .keep = o->keep, .other = o->other};
    if (!rl_view_expand(t, o->split ? s->whole_rank : s->rank, o->split ? s->whole : s->dim, &x))
        return rl_call_fail(c, RL_EMODEL, "an operand does not broadcast to the scores");
    to->by = o->split ? x : spread(c, s, &x);
    return RL_OK;
}

/* Is each dim of the product one or more of the whole? Otherwise rows of another order are no view. */
static bool is_finer(const scores *s) {
    uint32_t k = 0;
    for (uint32_t i = 0; i + 2 < s->rank; i++) {
        int64_t n = 1;
        while (n < s->dim[i] && k + 2 < s->whole_rank) n *= s->whole[k++];
        if (n != s->dim[i]) return false;
    }
    return true;
}

rl_status rl_joined_read(rl_call *c, const rl_tensor *const *in, rl_attention *a) {
    const rl_joined *j = c->step->joined;
    const rl_tensor *q = in[0], *k = in[1], *v = in[2];
    scores s;
    uint32_t rank;
    int64_t dim[RL_RANK];
    *a = (rl_attention){.scale = j->scale, .nop = j->nop};
    RL_TRY(find_dims(c, j, q, k, &s));
    rl_tensor p = {.rank = s.rank};
    memcpy(p.dim, s.dim, s.rank * sizeof *p.dim);
    RL_TRY(rl_matmul_dims(c, &p, v, &rank, dim));
    if (rank != s.rank || !rl_same_bytes(dim, s.dim, (rank - 2) * sizeof *dim))
        return rl_call_fail(c, RL_EMODEL, "the values broadcast the weights");
    for (uint32_t i = 0; i < j->nop; i++) RL_TRY(set_op(c, &s, &j->op[i], in[j->op[i].in], &a->op[i]));
    a->q = spread(c, &s, q), a->k = spread(c, &s, k), a->v = spread(c, &s, v);
    a->y = *rl_call_make_in(c, 0, q->dtype, rank, dim, is_finer(&s) ? rl_order_for(c->step->order, rank) : NULL);
    if (rl_numel(&a->y) == 0) return RL_OK;
    memcpy(s.whole + s.whole_rank - 2, dim + rank - 2, 2 * sizeof *dim);
    rl_tensor y = a->y;
    return rl_view_reshape(&y, s.whole_rank, s.whole, &a->y) ? RL_OK : rl_call_fail(c, RL_EINTERNAL, "its output cannot be split");
}
