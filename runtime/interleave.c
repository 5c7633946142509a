/* Concat, Reshape, Transpose: a shuffle of channels in one pass.
 *
 *   y = Concat(a, b) axis=1         [n, 2 c, h, w]
 *   r = Reshape(y)                  [n, 2, c, h, w]: a and b, stacked
 *   t = Transpose(r) 0 2 1 3 4      [n, c, 2, h, w]
 *   z = Reshape(t)                  [n, 2 c, h, w]: a's and b's channels in turn
 *
 * The first two are one step, which makes r in the order of memory that t is to have: t and z are views then, and each element is
 * moved once. */
#include <string.h>

#include "fast.h"
#include "fuse.h"
#include "kernels_fast.h"
#include "rows.h"

/* ---- where ---- */

/* Does a Transpose swap dims axis and axis + 1 of rank dims, and nothing else? */
static bool swaps(const rl_nodeinfo *n, uint32_t rank, uint32_t axis) {
    const rl_attr *a = rl_attr_ints(n, "perm");
    if (!a || a->n != rank) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (a->ints[i] != (i == axis ? axis + 1 : i == axis + 1 ? axis : i)) return false;
    return true;
}

/* Does this Reshape, by a constant, put the n pieces of a Concat into a dim of their own? */
static bool stacks(const rl_exec *x, const rl_nodeinfo *concat, const rl_nodeinfo *reshape, uint32_t axis) {
    const rl_valinfo *piece = rl_val(x->g, concat->in[0]);
    const rl_tensor *to = reshape->nin > 1 && rl_has(reshape->in[1]) ? &x->constant[reshape->in[1].i] : NULL;
    if (!to || to->kind != RL_TENSOR || to->dtype != RL_I64 || !rl_is_dense(to) || rl_numel(to) != (int64_t)piece->rank + 1) return false;
    const int64_t *want = rl_data(to);
    bool zero_copies = !rl_attr_int(reshape, "allowzero", 0);
    if (want[axis] != concat->nin) return false;
    for (uint32_t i = 0; i <= piece->rank; i++) {
        rl_dim d = piece->dim[i > axis ? i - 1 : i];
        bool same = i == axis || want[i] == -1 || (rl_dim_known(d) && want[i] == d) || (want[i] == 0 && zero_copies && i < axis);
        if (!same) return false;
    }
    return true;
}

/* Pieces of one type and the same dims. */
static bool are_alike(const rl_exec *x, const rl_nodeinfo *n, uint32_t axis) {
    const rl_valinfo *first = rl_has(n->in[0]) ? rl_val(x->g, n->in[0]) : NULL;
    if (!first || first->rank == RL_NORANK || axis >= first->rank || first->rank > 8 || !rl_dim_known(first->dim[axis])) return false;
    for (uint32_t i = 1; i < n->nin; i++) {
        const rl_valinfo *v = rl_has(n->in[i]) ? rl_val(x->g, n->in[i]) : NULL;
        if (!v || v->rank != first->rank || v->dtype != first->dtype || v->dim[axis] != first->dim[axis]) return false;
    }
    return n->nin > 1;
}

static const rl_kernel kernel = {.fn = rl_fast_interleave};

static void join_at(rl_exec *x, const rl_readers *of, rl_step *s) {
    const rl_nodeinfo *n = s->info;
    if (rl_step_fn(s) != rl_ref_concat || n->nout != 1 || !rl_has(n->out[0])) return;
    uint32_t rank = rl_val(x->g, n->out[0])->rank;
    int64_t axis = rl_attr_int(n, "axis", 1);
    if (rank == RL_NORANK) return;
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || !are_alike(x, n, (uint32_t)axis)) return;
    rl_step *r = rl_only_reader(x, of, n->out[0], rl_ref_reshape);
    const rl_step *t = r ? rl_only_reader(x, of, r->info->out[0], rl_ref_transpose) : NULL;
    if (!t || !swaps(t->info, rank + 1, (uint32_t)axis) || !stacks(x, n, r->info, (uint32_t)axis)) return;
    rl_nodeinfo *made = rl_copy(&x->g->mem, n, sizeof *n);
    made->out = r->info->out;
    r->info = made;
    rl_run_by(x, r, &kernel);
    s->info = NULL;
}

void rl_join_shuffles(rl_exec *x) {
    rl_join_each(x, join_at);
}

/* ---- the kernel ---- */

typedef struct {
    const rl_rows *rows;
    uint32_t rank;                          /* without the channels */
    int64_t n, dim[RL_RANK], stride[3][RL_RANK]; /* channels; the other dims in memory's order; of y and the two pieces */
    float *y;
    const float *a, *b;
} pairs;

static void pair_rows(void *arg, int64_t from, int64_t to) {
    const pairs *p = arg;
    for (int64_t r = from; r < to; r++) {
        int64_t at[3] = {0}, left = r;
        for (uint32_t d = p->rank; d-- > 0; left /= p->dim[d])
            for (int i = 0; i < 3; i++) at[i] += left % p->dim[d] * p->stride[i][d];
        p->rows->interleave(p->y + at[0], p->a + at[1], p->b + at[2], p->n);
    }
}

/* Two pieces whose channels lie side by side; false where they do not. perm: of a piece. */
static bool interleave_pairs(rl_call *c, const rl_tensor *y, uint32_t axis, const int64_t *perm) {
    const rl_tensor *a = rl_call_in(c, 0), *b = rl_call_in(c, 1);
    pairs p = {.rows = rl_rows_best(), .n = a->dim[axis], .y = rl_data(y), .a = rl_data(a), .b = rl_data(b)};
    int64_t rows = 1;
    if (c->nin != 2 || a->dtype != RL_F32 || a->dim[axis] < 2 || a->stride[axis] != 1 || b->stride[axis] != 1) return false;
    for (uint32_t k = 0; k < a->rank; k++) {
        uint32_t d = (uint32_t)perm[k];
        if (d == axis) continue;
        p.dim[p.rank] = a->dim[d];
        p.stride[0][p.rank] = y->stride[d < axis ? d : d + 1], p.stride[1][p.rank] = a->stride[d], p.stride[2][p.rank++] = b->stride[d];
        rows *= a->dim[d];
    }
    if (y->stride[axis] != 1 || y->stride[axis + 1] != 2) return false;
    rl_parallel(c->rt, rows, RL_MAX(1, 8192 / p.n), pair_rows, &p);
    c->rt->moved += rl_bytes_of(y->dtype, rl_numel(y));
    c->step->ran = "rows";
    return true;
}

rl_status rl_fast_interleave(rl_call *c) {
    uint32_t axis, n = 0;
    int64_t perm[RL_RANK], order[RL_RANK], dim[RL_RANK] = {0};
    RL_TRY(rl_call_need(c, c->nin));
    RL_TRY(rl_call_attr_axis(c, "axis", 1, &axis));
    const rl_tensor *x = rl_call_in(c, 0);
    for (uint32_t i = 1; i < c->nin; i++)
        if (!rl_same_dims(x, rl_call_in(c, i)) || x->dtype != rl_call_in(c, i)->dtype) return rl_call_fail(c, RL_EMODEL, "input %u has other dims than input 0", i);
    if (!rl_stride_order(x, perm))
        for (uint32_t i = 0; i < x->rank; i++) perm[i] = i;
    for (uint32_t k = 0; k < x->rank; k++) { /* as x lies; the pieces' channels in turn */
        int64_t d = perm[k];
        order[n++] = d < axis ? d : d + 1;
        if (d == axis) order[n++] = axis;
    }
    for (uint32_t i = 0; i < n; i++) dim[i] = i < axis ? x->dim[i] : i == axis ? c->nin : x->dim[i - 1];
    const rl_tensor *y = rl_call_make_in(c, 0, x->dtype, n, dim, order);
    if (!rl_numel(y) || interleave_pairs(c, y, axis, perm)) return RL_OK;
    for (uint32_t i = 0; i < c->nin; i++) {
        rl_tensor part = rl_view_slice(y, axis, i, 1, 1);
        memmove(part.dim + axis, part.dim + axis + 1, (n - 1 - axis) * sizeof *dim);
        memmove(part.stride + axis, part.stride + axis + 1, (n - 1 - axis) * sizeof *dim);
        part.rank--;
        rl_tensor_move(c->rt, &part, rl_call_in(c, i));
    }
    return RL_OK;
}
