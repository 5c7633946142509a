/* Chains of Reshapes and Transposes as one step, which moves each element once at most: see fuse.h.
 *
 *   x                     [1, c, 2 h, 2 w]      MobileViT's unfolding: the pixels of each 2 x 2 block go to four images
 *   r = Reshape(x)        [c h, 2, w, 2]        channels-last, this is a copy: no strides have both channels and lines in one dim
 *   t = Transpose(r)      [c h, w, 2, 2]
 *   s = Reshape(t)        [1, c, h w, 4]        and this
 *   u = Transpose(s)      [1, 4, h w, c]
 *   y = Reshape(u)        [4, h w, c]
 *
 * All that the chain does is to cut dims into factors, and to put those in another order.  So a tensor is held as its factors: x as
 * [1, c, h, 2, w, 2] with a stride for each, and each dim of y as some of them, one after the other: [2, 2], [h, w] and [c].  Where these are
 * strides of y, y is a view; else each element moves once, here in runs of all channels.  A Reshape that cuts where no factor ends
 * (6 as 4 and then 9) copies before, as it does alone. */
#include <string.h>

#include "fast.h"
#include "fuse.h"
#include "kernels_fast.h"

typedef struct {
    const int64_t *dim, *perm; /* of a Reshape and a Transpose; both NULL: all dims the other way round */
    uint32_t n;
    bool zero_is_zero;
} turn;

typedef struct rl_turns {
    uint32_t n;
    turn *op;
} rl_turns;

/* ---- where ---- */

/* What a step of one node does; false: none of these, or it is known in a run only. */
static bool read_turn(const rl_exec *x, const rl_step *s, turn *t) {
    const rl_nodeinfo *n = s->info;
    rl_kernel_fn *fn = rl_step_own_fn(s);
    *t = (turn){0};
    if ((fn != rl_ref_transpose && fn != rl_ref_reshape) || !rl_has(rl_in(n, 0)) || n->nout != 1 || !rl_has(n->out[0])) return false;
    if (fn == rl_ref_transpose) {
        const rl_attr *a = rl_attr_ints(n, "perm");
        if (a) t->perm = a->ints, t->n = a->n;
        return true;
    }
    const rl_tensor *to = rl_has(rl_in(n, 1)) && !rl_val(x->g, n->in[1])->is_input ? &x->constant[n->in[1].i] : NULL;
    if (!to || to->kind != RL_TENSOR || to->dtype != RL_I64 || to->rank != 1 || !rl_is_dense(to)) return false;
    t->dim = rl_copy(&x->g->mem, rl_data(to), (size_t)to->dim[0] * sizeof(int64_t));
    t->n = (uint32_t)to->dim[0];
    t->zero_is_zero = rl_attr_int(n, "allowzero", 0) != 0;
    return t->n <= RL_RANK;
}

static const rl_kernel kernel = {.fn = rl_fast_turns};

/* The second stands for both. */
static void join(rl_exec *x, rl_step *s, rl_step *next, const turn *second) {
    rl_arena *mem = &x->g->mem;
    turn first;
    rl_turns *all = rl_new(mem, rl_turns, 1);
    all->n = s->turns ? s->turns->n : 1;
    all->op = rl_new(mem, turn, all->n + 1);
    if (s->turns) memcpy(all->op, s->turns->op, all->n * sizeof *all->op);
    else if (read_turn(x, s, &first)) all->op[0] = first;
    all->op[all->n++] = *second;
    rl_nodeinfo *n = rl_copy(mem, next->info, sizeof *n);
    n->in = s->info->in;
    n->nin = 1;
    next->info = n;
    next->turns = all;
    rl_run_by(x, next, &kernel);
    s->info = NULL;
}

static void join_at(rl_exec *x, const rl_readers *of, rl_step *s) {
    turn t;
    if (!s->turns && !read_turn(x, s, &t)) return;
    rl_step *next = rl_only_reader(x, of, s->info->out[0], rl_ref_reshape);
    if (!next) next = rl_only_reader(x, of, s->info->out[0], rl_ref_transpose);
    if (next && read_turn(x, next, &t)) join(x, s, next, &t);
}

void rl_join_turns(rl_exec *x) {
    rl_join_each(x, join_at);
}

bool rl_turns_join(const rl_turns *t, uint32_t rank) {
    return t->op[0].dim && t->op[0].n < rank;
}

/* ---- factors ---- */

/* Dim i of the tensor is factors first[i] .. first[i + 1] - 1, the outermost first; of 1 it has none. */
typedef struct {
    uint32_t rank, first[RL_RANK + 1];
    int64_t dim[RL_RANK], stride[RL_RANK];
} factors;

static factors factors_of(const rl_tensor *t) {
    factors f = {.rank = t->rank};
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        f.first[i] = n;
        if (t->dim[i] != 1) f.dim[n] = t->dim[i], f.stride[n++] = t->stride[i];
    }
    f.first[t->rank] = n;
    return f;
}

/* Neighbours that lie one after the other are one: for what follows it is one dim. */
static void merge(factors *f) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < f->first[f->rank]; k++) {
        bool joins = n && f->stride[n - 1] == f->stride[k] * f->dim[k];
        if (joins) f->dim[n - 1] *= f->dim[k];
        else f->dim[n++] = f->dim[k];
        f->stride[n - 1] = f->stride[k];
    }
    f->rank = 1, f->first[0] = 0, f->first[1] = n;
}

/* Into dims that make as many elements, from the innermost on; false where one ends within a factor that it does not divide. */
static bool cut(factors *f, uint32_t rank, const int64_t *dim) {
    factors x = *f, y = {.rank = rank};
    merge(&x);
    uint32_t from = x.first[1], at = RL_RANK;
    int64_t left = 1, step = 0;
    y.first[rank] = RL_RANK;
    for (uint32_t i = rank; i-- > 0; y.first[i] = at)
        for (int64_t need = dim[i]; need > 1;) {
            if (left == 1) left = x.dim[--from], step = x.stride[from];
            int64_t part = RL_MIN(left, need);
            if (!at || left % part || need % part) return false;
            y.dim[--at] = part, y.stride[at] = step;
            left /= part, need /= part, step *= part;
        }
    for (uint32_t i = 0; i <= rank; i++) y.first[i] -= at;
    memmove(y.dim, y.dim + at, (RL_RANK - at) * sizeof *y.dim);
    memmove(y.stride, y.stride + at, (RL_RANK - at) * sizeof *y.stride);
    *f = y;
    return true;
}

static void permute(factors *f, const int64_t *perm) {
    factors y = {.rank = f->rank};
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->rank; i++) {
        y.first[i] = n;
        for (uint32_t k = f->first[perm[i]]; k < f->first[perm[i] + 1]; k++) y.dim[n] = f->dim[k], y.stride[n++] = f->stride[k];
    }
    y.first[f->rank] = n;
    *f = y;
}

/* One stride for each dim; false where there is none. */
static bool join_factors(const factors *f, rl_tensor *t) {
    int64_t step = 1;
    for (uint32_t i = f->rank; i-- > 0; step *= t->dim[i]) {
        uint32_t end = f->first[i + 1];
        t->stride[i] = end > f->first[i] ? f->stride[end - 1] : step;
        for (uint32_t k = f->first[i] + 1; k < end; k++)
            if (f->stride[k - 1] != f->stride[k] * f->dim[k]) return false;
    }
    return true;
}

/* A tensor with a dim for each factor. */
static rl_tensor spread(const factors *f, const rl_tensor *of) {
    rl_tensor t = {.kind = RL_TENSOR, .dtype = of->dtype, .rank = f->first[f->rank], .offset = of->offset, .mem = of->mem};
    memcpy(t.dim, f->dim, t.rank * sizeof *t.dim);
    memcpy(t.stride, f->stride, t.rank * sizeof *t.stride);
    return t;
}

/* Those of x, which are dims of y, to their places in y. */
static void move_to(rl_rt *rt, const rl_tensor *y, const rl_tensor *x, const factors *f) {
    factors to = *f;
    for (uint32_t i = 0; i < f->rank; i++) {
        int64_t step = y->stride[i];
        for (uint32_t k = f->first[i + 1]; k-- > f->first[i]; step *= f->dim[k]) to.stride[k] = step;
    }
    rl_tensor into = spread(&to, y), from = spread(f, x);
    rl_tensor_move(rt, &into, &from);
}

/* Images whose channels lie inside of their pixels stay channels-last. */
static const int64_t *order_of(const factors *f) {
    static const int64_t last[] = {0, 2, 3, 1};
    int64_t most = 0, least = INT64_MAX;
    if (f->rank != 4) return NULL;
    for (uint32_t k = f->first[1]; k < f->first[2]; k++) most = RL_MAX(most, f->stride[k]);
    for (uint32_t k = f->first[2]; k < f->first[4]; k++) least = RL_MIN(least, f->stride[k]);
    return most < least && most && least != INT64_MAX ? last : NULL;
}

/* ---- the kernel ---- */

/* t: the dims of what is made so far, of whose elements f are the factors in *x. */
static rl_status reshape(rl_call *c, const turn *to, rl_tensor *t, const rl_tensor **x, factors *f) {
    int64_t dim[RL_RANK];
    RL_TRY(rl_reshape_dims(c, t, to->dim, to->n, to->zero_is_zero, dim));
    if (rl_numel(t) && !cut(f, to->n, dim)) {
        const rl_tensor *copy = rl_call_temp(c, t->dtype, t->rank, t->dim);
        move_to(c->rt, copy, *x, f);
        *x = copy;
        *f = factors_of(copy);
        cut(f, to->n, dim);
    }
    t->rank = to->n;
    memcpy(t->dim, dim, to->n * sizeof *dim);
    return RL_OK;
}

rl_status rl_fast_turns(rl_call *c) {
    const rl_turns *all = c->step->turns;
    int64_t perm[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    if (x->kind != RL_TENSOR) return rl_call_fail(c, RL_EMODEL, "input 0 is no tensor");
    rl_tensor t = *x;
    factors f = factors_of(x);
    for (uint32_t i = 0; i < all->n; i++) {
        const turn *op = &all->op[i];
        if (op->dim) {
            RL_TRY(reshape(c, op, &t, &x, &f));
            continue;
        }
        RL_TRY(rl_transpose_perm(c, t.rank, op->perm, op->n, perm));
        t = rl_view_transpose(&t, perm);
        if (rl_numel(&t)) permute(&f, perm);
    }
    t.mem = x->mem, t.offset = x->offset;
    if (rl_numel(&t) && join_factors(&f, &t)) {
        rl_call_share(c, 0, t);
        return RL_OK;
    }
    const rl_tensor *y = rl_call_make_in(c, 0, t.dtype, t.rank, t.dim, rl_numel(&t) ? order_of(&f) : NULL);
    if (rl_numel(y)) move_to(c->rt, y, x, &f);
    return RL_OK;
}
