/* Views that a step makes again: what it made the last time, where its input lies as it did then. See exec.h. */
#include "exec.h"
#include "fast.h"
#include "home.h"
#include "kernels_fast.h"
#include "plan.h"

enum { MOST_DIMS = 8 };

/* A tensor in a few cache lines, without its storage: between two runs of a step all others pass through the caches. */
typedef struct {
    rl_dtype dtype;
    uint32_t rank;
    int64_t offset;
    struct {
        int64_t dim, stride;
    } by[MOST_DIMS];
} outline;

typedef struct rl_views {
    outline in, out[]; /* offsets of the outputs from the input's */
} rl_views;

static outline outline_of(const rl_tensor *t, int64_t offset) {
    outline o = {.dtype = t->dtype, .rank = t->rank, .offset = offset};
    for (uint32_t i = 0; i < t->rank; i++) o.by[i].dim = t->dim[i], o.by[i].stride = t->stride[i];
    return o;
}

static bool lies_alike(const rl_tensor *t, const outline *o) {
    bool same = t->kind == RL_TENSOR && t->dtype == o->dtype && t->rank == o->rank;
    for (uint32_t i = 0; same && i < t->rank; i++) same = t->dim[i] == o->by[i].dim && t->stride[i] == o->by[i].stride;
    return same;
}

/* *y as o says, of x's storage; what it has of dims that o has not is nobody's. */
static void share(rl_tensor *y, const outline *o, const rl_tensor *x) {
    y->kind = RL_TENSOR, y->dtype = o->dtype, y->rank = o->rank;
    y->offset = x->offset + o->offset, y->mem = x->mem;
    for (uint32_t i = 0; i < o->rank; i++) y->dim[i] = o->by[i].dim, y->stride[i] = o->by[i].stride;
    x->mem->ref++;
}

/* Runs that somebody watches or measures, and the first of some sizes, whose values the plan is to see, go by the kernels. */
static bool may_repeat(const rl_frame *f) {
    const rl_exec *x = f->x;
    return x->rt->fast && !x->rt->watch && !x->probe && (f->up || (x->plan && x->plan->whole));
}

bool rl_views_again(rl_frame *f, rl_step *s) {
    const rl_views *last = s->views;
    const rl_nodeinfo *n = s->info;
    if (!last || !may_repeat(f)) return false;
    const rl_tensor *x = rl_frame_value(f, n->in[0].i);
    if (!lies_alike(x, &last->in)) return false;
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i])) share(&f->slot[n->out[i].i], &last->out[i], x);
    s->ran = "kept";
    return true;
}

static bool makes_views(const rl_call *c) {
    rl_kernel_fn *fn = rl_step_fn(c->step);
    if (!rl_only_reshapes(fn) && fn != rl_ref_slice && fn != rl_ref_split && fn != rl_ref_expand && fn != rl_fast_shear) return false;
    for (uint32_t i = 1; i < c->nin; i++) /* an input of the graph may be another one the next time, though it has a default */
        if (rl_call_in(c, i) && (!rl_call_is_constant(c, i) || rl_val(c->g, c->node->in[i])->is_input)) return false;
    return true;
}

static bool fits(const rl_tensor *t) {
    return t && t->kind == RL_TENSOR && t->rank <= MOST_DIMS;
}

void rl_views_note(const rl_call *c) {
    rl_step *s = c->step;
    const rl_tensor *x = rl_call_in(c, 0);
    if (!fits(x) || c->over || c->rt->device || !makes_views(c)) return;
    for (uint32_t i = 0; i < c->nout; i++)
        if (rl_has(c->node->out[i]) && (c->out[i].mem != x->mem || !fits(&c->out[i]))) return;
    if (!s->views) s->views = rl_alloc(&c->frame->x->g->mem, sizeof *s->views + c->nout * sizeof *s->views->out);
    s->views->in = outline_of(x, 0);
    for (uint32_t i = 0; i < c->nout; i++)
        if (rl_has(c->node->out[i])) s->views->out[i] = outline_of(&c->out[i], c->out[i].offset - x->offset);
}
