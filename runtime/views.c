/* Views that a step makes again: what it made the last time, where its input lies as it did then. See exec.h. */
#include <string.h>

#include "exec.h"
#include "fast.h"
#include "home.h"
#include "kernels.h"
#include "plan.h"

typedef struct rl_views {
    rl_tensor in, out[]; /* no references; offsets of the outputs from the input's */
} rl_views;

/* With the dims that it has: the others are most of a tensor's bytes. */
static void put(rl_tensor *to, const rl_tensor *t) {
    to->kind = t->kind, to->dtype = t->dtype, to->rank = t->rank;
    to->offset = t->offset, to->layout = t->layout, to->mem = t->mem;
    for (uint32_t i = 0; i < t->rank; i++) to->dim[i] = t->dim[i], to->stride[i] = t->stride[i];
}

static bool lies_alike(const rl_tensor *a, const rl_tensor *b) {
    bool same = a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank && a->layout == b->layout;
    for (uint32_t i = 0; same && i < a->rank; i++) same = a->dim[i] == b->dim[i] && a->stride[i] == b->stride[i];
    return same;
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
    for (uint32_t i = 0; i < n->nout; i++) {
        if (!rl_has(n->out[i])) continue;
        rl_tensor *y = &f->slot[n->out[i].i];
        put(y, &last->out[i]);
        y->offset += x->offset;
        y->mem = x->mem;
        x->mem->ref++;
    }
    s->ran = "kept";
    return true;
}

static bool makes_views(const rl_call *c) {
    rl_kernel_fn *fn = c->step->kernel.p[0]->fn;
    if (!rl_only_reshapes(fn) && fn != rl_ref_slice && fn != rl_ref_split && fn != rl_ref_expand) return false;
    for (uint32_t i = 1; i < c->nin; i++) /* an input of the graph may be another one the next time, though it has a default */
        if (rl_call_in(c, i) && (!rl_call_is_constant(c, i) || rl_val(c->g, c->node->in[i])->is_input)) return false;
    return true;
}

void rl_views_note(const rl_call *c) {
    rl_step *s = c->step;
    const rl_tensor *x = rl_call_in(c, 0);
    if (!x || x->kind != RL_TENSOR || c->over || c->rt->device || !makes_views(c)) return;
    for (uint32_t i = 0; i < c->nout; i++)
        if (rl_has(c->node->out[i]) && c->out[i].mem != x->mem) return;
    if (!s->views) s->views = rl_alloc(&c->frame->x->g->mem, sizeof *s->views + c->nout * sizeof *s->views->out);
    put(&s->views->in, x);
    for (uint32_t i = 0; i < c->nout; i++) {
        put(&s->views->out[i], &c->out[i]);
        s->views->out[i].offset -= x->offset;
    }
}
