/* Pads of zeros as the pads of the windows that read them: see fuse.h.
 *
 *   p = Pad(x) by 1                            p is not made:
 *   a = AveragePool(p) 3 x 3         becomes   a = AveragePool(x) 3 x 3, pads of 1 that count
 *   m = MaxPool(p) 3 x 3                       m = MaxPool(x) 3 x 3, pads of 1; where a window reaches those, at least 0
 *
 * Keras writes both pads apart from the windows, ResNet's and NASNet's for one. */

#include "fuse.h"
#include "kernels_fast.h"
#include "window.h"

/* ---- what is added ---- */

static bool is_zero(const void *p, rl_dtype t) {
    static const char zero[sizeof(double)];
    size_t size = rl_dtype_bits(t) / 8;
    return size && size <= sizeof zero && rl_same_bytes(p, zero, size);
}

static bool may_be_zeros(const rl_nodeinfo *pad) {
    return rl_attr_float(pad, "value", 0) == 0 && (!rl_attr_find(pad, "mode") || rl_attr_is(pad, "mode", "constant"));
}

bool rl_pads_are_zeros(const rl_exec *x, const rl_nodeinfo *pad) {
    const rl_tensor *t = rl_has(rl_in(pad, 2)) ? &x->constant[pad->in[2].i] : NULL;
    return may_be_zeros(pad) && (!t || (t->kind == RL_TENSOR && rl_numel(t) == 1 && is_zero(rl_data(t), t->dtype)));
}

/* `by`: what the Pad adds, before all dims and then behind. */
static const int64_t *sum_of(rl_graph *g, const int64_t *by, const rl_nodeinfo *window) {
    uint32_t rank = rl_val(g, window->in[0])->rank, r = rank - 2;
    const rl_attr *pads = rl_attr_find(window, "pads"), *how = rl_attr_find(window, "auto_pad");
    const int64_t *own = NULL;
    if (how && !rl_attr_is(window, "auto_pad", "NOTSET") && !rl_attr_is(window, "auto_pad", "VALID")) return NULL;
    if (pads && (!how || rl_attr_is(window, "auto_pad", "NOTSET"))) own = pads->kind == RL_ATTR_INTS && pads->n == 2 * r ? pads->ints : NULL;
    if (pads && !own) return NULL;
    int64_t *sum = rl_new(&g->mem, int64_t, 2 * rank);
    for (uint32_t i = 0; i < 2 * rank; i++) {
        uint32_t d = i % rank, at = i / rank * r + d - 2;
        if (by[i] < 0 || (d < 2 && by[i])) return NULL;
        if (d >= 2) sum[at] = rl_add(by[i], own ? own[at] : 0);
    }
    return sum;
}

const int64_t *rl_pads_sum(const rl_exec *x, const rl_nodeinfo *pad, const rl_nodeinfo *window) {
    const rl_tensor *by = rl_has(rl_in(pad, 1)) ? &x->constant[pad->in[1].i] : NULL;
    uint32_t rank = rl_val(x->g, window->in[0])->rank;
    if (pad->since < 11 || rl_has(rl_in(pad, 3)) || !by || by->kind != RL_TENSOR || by->dtype != RL_I64 || !rl_is_dense(by)) return NULL;
    if (!rl_pads_are_zeros(x, pad) || rank < 3 || rl_numel(by) != 2 * (int64_t)rank) return NULL;
    return sum_of(x->g, rl_data(by), window);
}

void rl_set_pads(rl_graph *g, rl_nodeinfo *n, const int64_t *pads, uint32_t count, bool counts) {
    static const char *const old[] = {"pads", "auto_pad", "count_include_pad"};
    rl_attr *attr = rl_new(&g->mem, rl_attr, n->nattr + 2);
    uint32_t k = 0;
    for (uint32_t i = 0; i < n->nattr; i++) {
        bool goes = false;
        for (uint32_t o = 0; o < RL_LEN(old); o++) goes = goes || n->attr[i].name == rl_internz(g->ctx, old[o]);
        if (!goes) attr[k++] = n->attr[i];
    }
    attr[k++] = rl_attr_of_ints(g, "pads", pads, count);
    if (counts) attr[k++] = rl_attr_of_int(g, "count_include_pad", 1);
    n->attr = attr;
    n->nattr = k;
}

/* ---- convolutions ---- */

/* What a Pad of zeros adds; NULL: it is none, or not known before the run. */
static const int64_t *added_by(const rl_graph *g, const rl_nodeinfo *pad, rl_arena *tmp) {
    const int64_t *by;
    uint32_t n;
    if (pad->op != RL_OP_Pad || *pad->domain || pad->since < 11 || pad->nin < 2 || pad->nout != 1 || rl_has(rl_in(pad, 3)) || !may_be_zeros(pad)) return NULL;
    if (!rl_has(pad->in[0]) || !rl_has(pad->in[1]) || !rl_has(pad->out[0])) return NULL;
    const rl_const *value = rl_has(rl_in(pad, 2)) ? rl_val(g, pad->in[2])->data : NULL;
    if (rl_has(rl_in(pad, 2)) && (!value || !value->data || value->nbyte != rl_dtype_bits(value->dtype) / 8 || !is_zero(value->data, value->dtype))) return NULL;
    uint32_t rank = rl_val(g, pad->out[0])->rank;
    return rank != RL_NORANK && rank >= 3 && rl_const_ints(g, pad->in[1], tmp, &by, &n) && n == 2 * rank ? by : NULL;
}

/* Where convolutions alone read the Pad, each has its pads, and it goes. */
static bool pads_convolutions(rl_graph *g, const rl_nodeinfo *pad, const int64_t *by) {
    const rl_valinfo *y = rl_val(g, pad->out[0]);
    if (y->is_output || !y->nuse) return false;
    for (uint32_t i = 0; i < y->nuse; i++) {
        const rl_nodeinfo *conv = rl_nod(g, y->use[i].node);
        if (conv->op != RL_OP_Conv || *conv->domain || y->use[i].slot || !sum_of(g, by, conv)) return false;
    }
    rl_value x = pad->in[0], padded = pad->out[0];
    while (rl_val(g, padded)->nuse) {
        rl_node conv = rl_val(g, padded)->use[0].node;
        rl_set_pads(g, rl_nod(g, conv), sum_of(g, by, rl_nod(g, conv)), 2 * (rl_val(g, padded)->rank - 2), false);
        rl_graph_set_input(g, conv, 0, x);
    }
    return true;
}

void rl_pad_convolutions(rl_graph *g) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    bool *dead = rl_new(&tmp, bool, g->nnode);
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        const int64_t *by = added_by(g, n, &tmp);
        dead[g->order.p[i].i] = by && pads_convolutions(g, n, by);
    }
    rl_graph_remove_all(g, dead);
    rl_arena_free(&tmp);
}

/* ---- pools ---- */

/* A pool without pads of its own, whose windows always see more than pads: its pads; else NULL. */
static const int64_t *pool_pads(const rl_exec *x, const rl_nodeinfo *pad, const rl_step *s) {
    const rl_nodeinfo *n = s->info;
    const rl_valinfo *in = rl_val(x->g, n->in[0]);
    const rl_attr *size = rl_attr_ints(n, "kernel_shape");
    bool fits = rl_step_own_fn(s) == rl_fast_pool && in->dtype == RL_F32 && in->rank >= 4 && in->rank <= 5 && n->nout == 1 && n->since >= 7;
    if (!fits || s->kernel.p[0]->arg == RL_POOL_LP || !size || size->n != in->rank - 2 || rl_attr_int(n, "ceil_mode", 0)) return NULL;
    if (!rl_attr_all(n, "pads", 0) || !rl_attr_all(n, "dilations", 1)) return NULL;
    const int64_t *sum = rl_pads_sum(x, pad, n);
    for (uint32_t i = 0; sum && i < 2 * size->n; i++)
        if (sum[i] >= size->ints[i % size->n]) return NULL;
    return sum;
}

static const rl_kernel kernel = {.types = RL_T(RL_F32), .fn = rl_fast_padded_pool, .arg = RL_POOL_MAX};

static void take_pads(const rl_exec *x, const rl_nodeinfo *pad, rl_step *s) {
    rl_graph *g = x->g;
    rl_nodeinfo *n = rl_copy(&g->mem, s->info, sizeof *n);
    bool most = s->kernel.p[0]->arg == RL_POOL_MAX;
    rl_set_pads(g, n, pool_pads(x, pad, s), 2 * (rl_val(g, n->in[0])->rank - 2), !most);
    n->in = rl_copy(&g->mem, pad->in, sizeof *pad->in);
    s->info = n;
    if (most) rl_run_by(x, s, &kernel);
}

/* Where all that read the Pad take it. */
static void join_pad(const rl_exec *x, rl_step *s) {
    const rl_nodeinfo *pad = s->info;
    uint32_t i = 0, readers = 0;
    if (rl_step_own_fn(s) != rl_ref_pad || pad->nout != 1 || !rl_has(pad->in[0]) || rl_val(x->g, pad->out[0])->is_output) return;
    for (; i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        for (uint32_t k = 0; n && k < n->ncap; k++)
            if (rl_same(n->cap[k], pad->out[0])) return;
        for (uint32_t k = 0; n && k < n->nin; k++) {
            if (!rl_has(n->in[k]) || !rl_same(n->in[k], pad->out[0])) continue;
            if (k || !pool_pads(x, pad, &x->step[i])) return;
            readers++;
        }
    }
    for (i = 0; readers && i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        if (n && n->nin && rl_has(n->in[0]) && rl_same(n->in[0], pad->out[0])) take_pads(x, pad, &x->step[i]);
    }
    if (readers) s->info = NULL;
}

void rl_join_pool_pads(rl_exec *x) {
    for (uint32_t i = 0; i < x->nstep; i++) join_pad(x, &x->step[i]);
    rl_drop_steps(x);
}

/* ---- the kernel ---- */

/* Windows of dim i that lie in the input begin at *from and end before *to. */
static void inside(const rl_window *w, uint32_t i, int64_t *from, int64_t *to) {
    for (*from = 0; *from < w->out[i] && *from * w->stride[i] < w->before[i];) ++*from;
    for (*to = w->out[i]; *to > *from && (*to - 1) * w->stride[i] - w->before[i] + w->kernel[i] > w->in[i];) --*to;
}

static void raise_pixels(const rl_tensor *y, int64_t at, int64_t from, int64_t to) {
    uint32_t last = y->rank - 1;
    for (int64_t j = from; j < to; j++)
        for (int64_t ch = 0; ch < y->dim[1]; ch++) {
            float *v = (float *)y->mem->p + at + j * y->stride[last] + ch * y->stride[1];
            if (*v < 0) *v = 0;
        }
}

/* What pads of 0 would have made of the windows that reach them. */
static void raise_border(const rl_window *w, const rl_tensor *y) {
    int64_t from[RL_RANK], to[RL_RANK], lines = y->dim[0];
    uint32_t last = w->r - 1;
    for (uint32_t i = 0; i < w->r; i++) inside(w, i, &from[i], &to[i]);
    for (uint32_t i = 0; i < last; i++) lines *= w->out[i];
    for (int64_t k = 0; k < lines; k++) {
        int64_t left = k, at = y->offset;
        bool border = false;
        for (uint32_t i = last; i-- > 0; left /= w->out[i]) {
            int64_t o = left % w->out[i];
            at += o * y->stride[2 + i];
            border = border || o < from[i] || o >= to[i];
        }
        at += left * y->stride[0];
        raise_pixels(y, at, 0, border ? w->out[last] : from[last]);
        if (!border) raise_pixels(y, at, to[last], w->out[last]);
    }
}

rl_status rl_fast_padded_pool(rl_call *c) {
    rl_window w;
    RL_TRY(rl_fast_pool(c));
    RL_TRY(rl_window_read(c, rl_call_in(c, 0), NULL, &w));
    raise_border(&w, &c->out[0]);
    return RL_OK;
}
