/* The memory plan: see plan.h. */
#include "plan.h"

#include <string.h>

#include "kernels.h"
#include "kernels_fast.h"
#include "native.h"

enum { ALIGN = 64 };

/* ---- which values share a block ---- */

/* What a kernel's output 0 is: new; a view of input 0; that where strides allow, else a copy (Reshape); written over one of the first
 * inputs where that ends (rl_call_make_over). */
typedef enum { FRESH, VIEW, RESHAPED, OVER_ONE, OVER_TWO } trait;

static trait trait_of(const rl_kernel *k) {
    static const struct { rl_kernel_fn *fn; trait t; } rows[] = {
        {rl_ref_identity, VIEW}, {rl_ref_dropout, VIEW}, {rl_ref_bit_cast, VIEW}, {rl_ref_transpose, VIEW}, {rl_ref_slice, VIEW},
        {rl_ref_split, VIEW}, {rl_ref_expand, VIEW}, {rl_ref_reshape, RESHAPED}, {rl_ref_flatten, RESHAPED}, {rl_ref_squeeze, RESHAPED},
        {rl_ref_unsqueeze, RESHAPED}, {rl_fast_turns, RESHAPED}, {rl_fast_shear, VIEW}, {rl_ref_unary, OVER_ONE}, {rl_ref_clip, OVER_ONE}, {rl_ref_binary, OVER_TWO},
        {rl_fast_unary, OVER_ONE}, {rl_fast_binary, OVER_TWO}, {rl_fast_variadic, OVER_TWO}, {rl_fast_prelu, OVER_TWO}, {rl_fast_chain, OVER_ONE}, {rl_fast_softmax, OVER_ONE},
        {rl_native_chain, OVER_ONE}, {rl_fast_layer_norm, OVER_ONE}, {rl_fast_instance_norm, OVER_ONE}, {rl_fast_whole_norm, OVER_ONE}, {rl_fast_lp_normalization, OVER_ONE}};
    for (size_t i = 0; i < RL_LEN(rows); i++)
        if (rows[i].fn == k->fn) return rows[i].t;
    return FRESH;
}

typedef struct {
    const rl_exec *x;
    rl_memplan *p;
    uint32_t *last;   /* [value] the step that reads it last */
    rl_tensor **view; /* [value] its dims and strides; NULL: row-major */
    rl_hash symbol;
    struct { rl_block *p; uint32_t n, cap; } block;
} planner;

/* The value as a tensor without a storage; false where a dim is not known. */
static bool describe(const planner *a, rl_value value, rl_tensor *t) {
    const rl_valinfo *v = rl_val(a->x->g, value);
    int64_t step = 1;
    if (v->rank == RL_NORANK || v->rank > RL_RANK) return false;
    if (a->view[value.i]) {
        *t = *a->view[value.i];
        return true;
    }
    *t = (rl_tensor){.kind = RL_TENSOR, .dtype = v->dtype, .rank = v->rank};
    for (uint32_t i = v->rank; i-- > 0;) {
        if (!rl_dim_eval(a->x->g->ctx, v->dim[i], &a->symbol, &t->dim[i]) || t->dim[i] > INT64_MAX / 256 / RL_MAX(step, 1)) return false;
        t->stride[i] = step;
        step *= RL_MAX(t->dim[i], 1);
    }
    return true;
}

static uint32_t *find_last(const rl_exec *x) {
    const rl_graph *g = x->g;
    uint32_t *last = rl_new(&x->plan->mem, uint32_t, g->nval);
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        for (uint32_t k = 0; k < n->nin; k++)
            if (rl_has(n->in[k])) last[n->in[k].i] = i;
        for (uint32_t k = 0; k < n->ncap; k++) last[n->cap[k].i] = i;
        for (uint32_t k = 0; k < n->nout; k++)
            if (rl_has(n->out[k])) last[n->out[k].i] = i;
    }
    for (uint32_t i = 0; i < g->output.n; i++) last[g->output.p[i].i] = x->nstep;
    return last;
}

static size_t aligned(size_t nbyte) {
    return (nbyte + ALIGN - 1) / ALIGN * ALIGN;
}

static void start_block(planner *a, rl_value v, uint32_t step) {
    rl_tensor t;
    if (!describe(a, v, &t) || !rl_dtype_bits(t.dtype) || !rl_numel(&t)) return;
    size_t nbyte = aligned(rl_bytes_of(t.dtype, rl_numel(&t)));
    a->p->block_of[v.i] = a->block.n;
    rl_push(&a->p->mem, a->block, ((rl_block){.nbyte = nbyte, .first = step, .last = a->last[v.i]}));
}

/* view: NULL where it is row-major. */
static void join_block(planner *a, rl_value v, rl_value with, const rl_tensor *view) {
    uint32_t b = a->p->block_of[with.i];
    a->p->block_of[v.i] = b;
    if (view && !rl_is_dense(view)) a->view[v.i] = rl_copy(&a->p->mem, view, sizeof *view);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is a block b */
    if (b != RL_NONE) a->block.p[b].last = RL_MAX(a->block.p[b].last, a->last[v.i]);
}

static void transpose(const rl_nodeinfo *n, rl_tensor *t) {
    const rl_attr *a = rl_attr_ints(n, "perm");
    int64_t perm[RL_RANK];
    bool seen[RL_RANK] = {false};
    for (uint32_t i = 0; i < t->rank; i++) {
        perm[i] = a && a->n == t->rank ? a->ints[i] : t->rank - 1 - (int64_t)i;
        if (perm[i] < 0 || perm[i] >= t->rank || seen[perm[i]]) return; /* the kernel says what is wrong */
        seen[perm[i]] = true;
    }
    *t = rl_view_transpose(t, perm);
}

/* Output v as a view of input 0; false: it will be a copy. What is not known is taken for a view. */
static bool view_of(const planner *a, const rl_kernel *k, const rl_nodeinfo *n, rl_value v, rl_tensor *view) {
    rl_tensor x, y;
    if (!describe(a, n->in[0], &x) || !describe(a, v, &y)) {
        *view = (rl_tensor){0};
        return true;
    }
    *view = x;
    if (trait_of(k) == RESHAPED) return rl_numel(&x) == rl_numel(&y) && rl_view_reshape(&x, y.rank, y.dim, view);
    if (k->fn == rl_fast_shear) *view = y;
    if (k->fn == rl_ref_transpose) transpose(n, view);
    if (k->fn == rl_ref_expand && !rl_view_expand(&x, y.rank, y.dim, view)) return false;
    if ((k->fn == rl_ref_slice || k->fn == rl_ref_split) && x.rank == y.rank) memcpy(view->dim, y.dim, sizeof y.dim);
    return true;
}

/* What rl_call_make_over will find, as far as one can tell. */
static bool joins_over(planner *a, const rl_nodeinfo *n, uint32_t nover, uint32_t step) {
    const rl_valinfo *y = rl_val(a->x->g, n->out[0]);
    for (uint32_t i = 0; i < RL_MIN(nover, n->nin); i++) {
        if (!rl_has(n->in[i])) continue;
        const rl_valinfo *x = rl_val(a->x->g, n->in[i]);
        uint32_t b = a->p->block_of[n->in[i].i];
        bool same = rl_same_shape(x, y) && rl_dtype_bits(x->dtype) == rl_dtype_bits(y->dtype);
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is a block b */
        if (!same || b == RL_NONE || a->block.p[b].last != step || a->view[n->in[i].i]) continue;
        join_block(a, n->out[0], n->in[i], NULL);
        return true;
    }
    return false;
}

/* A Cast to the type that is there is a view. */
static trait step_trait(const planner *a, const rl_step *s, const rl_nodeinfo *n) {
    const rl_kernel *k = s->kernel.p[0];
    bool casts = k->fn == rl_ref_cast || k->fn == rl_ref_cast_like, has = n->nin && n->nout && rl_has(n->in[0]) && rl_has(n->out[0]);
    if (casts && has && rl_val(a->x->g, n->in[0])->dtype == rl_val(a->x->g, n->out[0])->dtype) return VIEW;
    return has ? trait_of(k) : FRESH;
}

/* ---- Concat in place ---- */

/* Where each input of this Concat begins; false where a dim is not known. */
static bool find_begins(const planner *a, const rl_nodeinfo *n, int64_t *begin) {
    rl_tensor y, t;
    int64_t at = 0;
    if (!describe(a, n->out[0], &y)) return false;
    uint32_t axis = rl_home_axis(a->x, n->out[0], y.rank);
    for (uint32_t k = 0; k < n->nin; k++) {
        if (axis == RL_NONE || !rl_has(n->in[k]) || !describe(a, n->in[k], &t) || t.rank != y.rank || t.dtype != y.dtype) return false;
        begin[k] = at;
        at += t.dim[axis];
    }
    a->p->homes.dims[n->out[0].i] = rl_copy(&a->p->mem, &y, sizeof y);
    return at == y.dim[axis];
}

static void plan_homes(planner *a) {
    const rl_exec *x = a->x;
    uint32_t nval = x->g->nval;
    if (!x->home) return;
    rl_homes *h = &a->p->homes;
    int64_t **begin = rl_new(&a->p->mem, int64_t *, nval);
    h->from = rl_new(&a->p->mem, int64_t, nval), h->dims = rl_new(&a->p->mem, rl_tensor *, nval);
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        if (!rl_is_concat(&x->step[i])) continue;
        int64_t *room = rl_new(&a->p->mem, int64_t, n->nin + 1);
        if (find_begins(a, n, room)) begin[n->out[0].i] = room;
    }
    for (uint32_t v = 0; v < nval; v++) {
        const rl_home *home = &x->home[v];
        rl_tensor t;
        h->from[v] = rl_has(home->into) && begin[home->into.i] ? begin[home->into.i][home->slot] : -1;
        if (h->from[v] < 0 || h->dims[v]) continue;
        if (!describe(a, x->step[x->maker[home->into.i]].info->in[home->slot], &t)) h->from[v] = -1;
        else h->dims[v] = rl_copy(&a->p->mem, &t, sizeof t);
    }
}

/* In the block of the Concat whose buffer it is in. */
static void join_home(planner *a, rl_value v, uint32_t step) {
    rl_value root = rl_home_root(a->x, &a->p->homes, v);
    if (a->p->block_of[root.i] == RL_NONE) start_block(a, root, step);
    join_block(a, v, root, NULL);
}

static void plan_step(planner *a, uint32_t i) {
    const rl_step *s = &a->x->step[i];
    const rl_nodeinfo *n = s->info;
    trait t = step_trait(a, s, n);
    rl_tensor view;
    if (rl_has_body(n)) return; /* what a body makes lies where the body put it */
    for (uint32_t k = 0; k < n->nout; k++) {
        rl_value v = n->out[k];
        bool shares = (t == VIEW || t == RESHAPED) && (k == 0 || rl_step_fn(s) == rl_ref_split);
        if (!rl_has(v) || a->p->block_of[v.i] != RL_NONE) continue; /* the latter: pieces of it are made */
        if (a->p->homes.from && rl_home_likely(a->x, &a->p->homes, rl_step_fn(s), v)) join_home(a, v, i);
        else if (shares && view_of(a, s->kernel.p[0], n, v, &view)) join_block(a, v, n->in[0], &view);
        else if (k || t < OVER_ONE || !joins_over(a, n, t == OVER_ONE ? 1 : 2, i)) start_block(a, v, i);
    }
}

/* ---- a plan for a run ---- */

static uint32_t count_sizes(const rl_exec *x, const rl_tensor *in, int64_t *to) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->g->input.n; i++) {
        for (uint32_t k = 0; k < in[i].rank; k++, n++)
            if (to) to[n] = in[i].dim[k];
        if (to) to[n] = -1 - (int64_t)in[i].kind;
        n++;
    }
    return n;
}

static bool fits_plan(const rl_exec *x, const rl_tensor *in) {
    rl_arena tmp;
    if (!x->plan || x->plan->nsize != count_sizes(x, in, NULL)) return false;
    rl_arena_init(&tmp, x->rt->ctx);
    int64_t *size = rl_new(&tmp, int64_t, x->plan->nsize);
    count_sizes(x, in, size);
    bool same = rl_same_bytes(x->plan->size, size, x->plan->nsize * sizeof *size);
    rl_arena_free(&tmp);
    return same;
}

static void bind_symbols(planner *a, const rl_tensor *in) {
    const rl_graph *g = a->x->g;
    a->symbol.mem = &a->p->mem;
    for (uint32_t i = 0; i < g->input.n; i++) {
        const rl_valinfo *v = rl_val(g, g->input.p[i]);
        if (in[i].kind != RL_TENSOR || v->rank != in[i].rank) continue;
        for (uint32_t k = 0; k < v->rank; k++) {
            rl_str name = rl_dim_name(g->ctx, v->dim[k]);
            if (name && in[i].dim[k] < RL_NONE) rl_hash_put(&a->symbol, (uint64_t)(uintptr_t)name, (uint32_t)in[i].dim[k]);
        }
    }
}

/* The last plan's arena goes when the last value in it does. */
static void drop_arena(rl_memplan *p) {
    rl_tensor old = {.mem = p->arena};
    p->arena = NULL;
    p->version++;
    rl_tensor_drop(&old);
}

void rl_plan_release(rl_exec *x) {
    if (!x->plan) return;
    rl_settled_drop(&x->plan->settled);
    drop_arena(x->plan);
}

static rl_memplan *fresh_plan(rl_exec *x) {
    rl_memplan *p = x->plan;
    if (!p) {
        p = x->plan = rl_new(&x->g->mem, rl_memplan, 1);
        rl_arena_init(&p->mem, x->rt->ctx);
    }
    drop_arena(p);
    rl_settled_drop(&p->settled);
    rl_arena_free(&p->mem);
    *p = (rl_memplan){.mem = p->mem, .version = p->version};
    return p;
}

static uint32_t *no_blocks(rl_memplan *p, uint32_t nval) {
    uint32_t *of = rl_new(&p->mem, uint32_t, nval);
    memset(of, 0xff, nval * sizeof *of);
    return of;
}

static void place_blocks(const rl_exec *x, rl_memplan *p) {
    int64_t nbyte = (int64_t)rl_plan_place(&p->mem, p->block, p->nblock);
    x->rt->arena = (size_t)nbyte;
    x->rt->least = rl_plan_least(&p->mem, p->block, p->nblock, x->nstep);
    const rl_backend *was = x->rt->on;
    if (x->rt->device) x->rt->on = x->rt->device;
    if (nbyte) p->arena = rl_tensor_new(x->rt, RL_U8, 1, &nbyte).mem;
    x->rt->on = was;
}

/* ---- what a run saw ---- */

/* The block of an input, or of an output before it, that has the same storage. */
static uint32_t block_with(rl_memplan *p, const rl_call *c, uint32_t k, uint32_t step) {
    const rl_tensor *y = &c->out[k];
    for (uint32_t i = 0; i < c->nin; i++)
        if (rl_call_in(c, i) && rl_call_in(c, i)->mem == y->mem) return p->seen_of[c->node->in[i].i];
    for (uint32_t i = 0; i < k; i++)
        if (rl_has(c->node->out[i]) && c->out[i].mem == y->mem) return p->seen_of[c->node->out[i].i];
    rl_value root = rl_home_found(c, &p->homes, k);
    if (rl_has(root) && p->seen_of[root.i] != RL_NONE) return p->seen_of[root.i];
    if (rl_has(root)) p->seen_of[root.i] = p->seen.n;
    rl_push(&p->mem, p->seen, ((rl_block){.nbyte = aligned(y->mem->nbyte), .first = step, .last = step}));
    return p->seen.n - 1;
}

void rl_plan_note(const rl_exec *x, const rl_call *c, uint32_t step) {
    rl_memplan *p = x->plan;
    if (!p || p->exact || p->whole || x->rt->device) return;
    for (uint32_t k = 0; k < c->nout && !rl_has_body(c->node); k++) {
        const rl_tensor *y = &c->out[k];
        if (rl_has(c->node->out[k]) && p->seen_of[c->node->out[k].i] != RL_NONE) continue; /* a Concat whose pieces were seen */
        if (!rl_has(c->node->out[k]) || y->kind != RL_TENSOR || y->mem->borrowed || !rl_dtype_bits(y->dtype) || !rl_numel(y)) continue;
        p->seen_of[c->node->out[k].i] = block_with(p, c, k, step);
    }
    p->whole = step + 1 == x->nstep;
}

/* No better where the forecast was right. */
static void plan_by_seen(rl_exec *x) {
    rl_memplan *p = x->plan;
    p->exact = true;
    if (!p->missed && p->seen.n == p->nblock) return;
    const uint32_t *last = find_last(x);
    for (uint32_t v = 0; v < x->g->nval; v++) {
        rl_block *b = p->seen_of[v] == RL_NONE ? NULL : &p->seen.p[p->seen_of[v]];
        if (b) b->last = RL_MAX(b->last, last[v]);
    }
    p->block_of = p->seen_of;
    p->block = p->seen.p;
    p->nblock = p->seen.n;
    drop_arena(p);
    place_blocks(x, p);
}

void rl_plan_make(rl_exec *x, const rl_tensor *in) {
    uint32_t nval = x->g->nval;
    if (fits_plan(x, in)) {
        if (x->plan->whole && !x->plan->exact) plan_by_seen(x);
        return;
    }
    rl_memplan *p = fresh_plan(x);
    planner a = {.x = x, .p = p, .view = rl_new(&p->mem, rl_tensor *, nval)};
    p->nsize = count_sizes(x, in, NULL);
    p->size = rl_new(&p->mem, int64_t, p->nsize);
    count_sizes(x, in, p->size);
    p->block_of = no_blocks(p, nval);
    p->seen_of = no_blocks(p, nval);
    bind_symbols(&a, in);
    a.last = find_last(x);
    plan_homes(&a);
    for (uint32_t i = 0; i < x->nstep; i++) plan_step(&a, i);
    p->block = a.block.p;
    p->nblock = a.block.n;
    place_blocks(x, p);
}
