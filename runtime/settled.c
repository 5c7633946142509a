/* Values that the sizes of the inputs settle: see settled.h. */
#include "settled.h"

#include <string.h>

#include "../src/ops.h"
#include "exec.h"
#include "plan.h"

enum { EACH = 1 << 18, ALL = 1 << 20 }; /* bytes of a value that is worth keeping; of all that are kept */

/* ---- which ---- */

typedef struct { bool content, dims; } rl_hangs; /* on what is in the inputs; otherwise on their sizes */

bool rl_in_list(const char *const *list, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0) return true;
    return false;
}

/* Ops that have a class of their own nowhere, and whose outputs' dims follow from the inputs' dims and from attributes. */
static bool is_of_dims(const rl_nodeinfo *n) {
    static const char *const onnx[] = {
        "Attention", "Conv", "ConvInteger", "ConvTranspose", "DepthToSpace", "DynamicQuantizeLinear", "Einsum", "GRU", "GatherND",
        "GridSample", "GroupNormalization", "InstanceNormalization", "LRN", "LSTM", "MatMulInteger", "MeanVarianceNormalization", "QLinearConv",
        "QLinearMatMul", "RNN", "ReverseSequence", "RotaryEmbedding", "ScatterND", "SpaceToDepth", "Trilu"};
    static const char *const microsoft[] = {"BiasGelu", "DynamicQuantizeLSTM", "FastGelu", "FusedMatMul", "MatMulNBits", "MultiHeadAttention"};
    if (!*n->domain) return rl_in_list(onnx, RL_LEN(onnx), n->type);
    return strcmp(n->domain, "com.microsoft") == 0 && rl_in_list(microsoft, RL_LEN(microsoft), n->type);
}

/* The first input whose content may say what dims the outputs have; RL_NONE: none does. */
static uint32_t first_of_sizes(const rl_nodeinfo *n) {
    switch (rl_op_class(n->op)) {
    case RL_POINTWISE: case RL_GLOBALPOOL: case RL_ARG: case RL_CONCAT: case RL_GATHER: case RL_ELEMENTS: case RL_QDQ: case RL_BATCHNORM: case RL_NORM:
    case RL_MATMUL: case RL_GEMM: case RL_POOL: case RL_ROWS: case RL_WHOLE: case RL_SHAPE: return RL_NONE;
    case RL_EXPAND: case RL_REDUCE: case RL_ALONG: case RL_SPLIT: case RL_SLICE: case RL_PAD: case RL_TILE: case RL_RESIZE: case RL_MOVING: case RL_ONEHOT: return 1;
    default: return is_of_dims(n) ? RL_NONE : 0;
    }
}

/* Bodies in a list of graphs are not read, but what they capture is. */
static bool may_have_body(const rl_nodeinfo *n) {
    return rl_has_body(n) || n->ncap;
}

/* An op of another domain may do anything, but what is_of_dims knows of it. */
static rl_hangs hangs_of(const rl_graph *g, const rl_nodeinfo *n, const rl_hangs *of) {
    rl_hangs any = {false, false};
    uint32_t first = first_of_sizes(n);
    bool sizes = false;
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!rl_has(n->in[i])) continue;
        any.content |= of[n->in[i].i].content, any.dims |= of[n->in[i].i].dims;
        sizes |= i >= first && of[n->in[i].i].content;
    }
    if (may_have_body(n)) return (rl_hangs){true, true};
    bool asks = rl_op_class(n->op) == RL_SHAPE, draws = rl_node_draws(n) || rl_op_may_train(g, n) || *n->domain;
    return (rl_hangs){draws || any.dims || (any.content && !asks), any.dims || sizes || (draws && first == 0)};
}

/* Sequences and optionals have sizes of which the plan knows nothing. */
static rl_hangs *find_hangs(const rl_exec *x, rl_arena *tmp) {
    const rl_graph *g = x->g;
    rl_hangs *of = rl_new(tmp, rl_hangs, g->nval);
    for (uint32_t v = 0; v < g->nval; v++) {
        bool constant = x->constant[v].kind == RL_TENSOR && !g->val[v].is_input;
        of[v] = (rl_hangs){!constant, !constant && !(g->val[v].is_input && g->val[v].dtype != RL_UNDEF)};
    }
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        rl_hangs h = hangs_of(g, n, of);
        for (uint32_t k = 0; k < n->nout; k++)
            if (rl_has(n->out[k]) && x->constant[n->out[k].i].kind != RL_TENSOR) of[n->out[k].i] = h;
    }
    return of;
}

static bool settles(const rl_exec *x, const rl_step *s, const rl_hangs *of) {
    bool all = !s->native && !may_have_body(s->info), any = false;
    for (uint32_t k = 0; k < s->info->nout && all; k++) {
        rl_value v = s->info->out[k];
        if (!rl_has(v)) continue;
        any = true;
        all = !of[v.i].content && !of[v.i].dims && !rl_val(x->g, v)->is_output;
    }
    return all && any;
}

void rl_settled_find(rl_exec *x) {
    rl_arena tmp;
    bool any = false;
    if (!x->rt->fast || x->rt->watch || x->rt->device || x->parent) return;
    rl_arena_init(&tmp, x->rt->ctx);
    const rl_hangs *of = find_hangs(x, &tmp);
    bool *settled = rl_new(&x->g->mem, bool, x->nstep + 1);
    for (uint32_t i = 0; i < x->nstep; i++) any |= settled[i] = settles(x, &x->step[i], of);
    if (any) x->settles = settled;
    rl_arena_free(&tmp);
}

/* ---- how large they are ---- */

/* Bytes from the first to the last; SIZE_MAX: not to be kept. */
static size_t span_of(const rl_tensor *t) {
    uint32_t bits = t->kind == RL_TENSOR ? rl_dtype_bits(t->dtype) : 0;
    int64_t last = 0;
    if (!bits || bits % 8) return SIZE_MAX;
    if (!rl_numel(t)) return 0;
    if (rl_goes_back(t)) return SIZE_MAX;
    for (uint32_t i = 0; i < t->rank; i++) last += (t->dim[i] - 1) * t->stride[i];
    return (size_t)(last + 1) * bits / 8;
}

static void look(const rl_frame *f, rl_settled *s, const rl_nodeinfo *n) {
    if (!s->nbyte) s->nbyte = rl_new(&f->x->plan->mem, size_t, f->x->g->nval);
    for (uint32_t k = 0; k < n->nout; k++)
        if (rl_has(n->out[k])) s->nbyte[n->out[k].i] = span_of(rl_frame_value(f, n->out[k].i));
}

/* ---- what to keep ---- */

/* Does step i run? One that settles values does where one of them is needed and too large to be kept. */
static bool must_run(const rl_exec *x, const rl_settled *s, const bool *need, uint32_t i) {
    const rl_nodeinfo *n = x->step[i].info;
    if (!x->settles[i]) return true;
    for (uint32_t k = 0; k < n->nout; k++)
        if (rl_has(n->out[k]) && need[n->out[k].i] && s->nbyte[n->out[k].i] > EACH) return true;
    return false;
}

static void need_inputs(const rl_nodeinfo *n, bool *need) {
    for (uint32_t k = 0; k < n->nin; k++)
        if (rl_has(n->in[k])) need[n->in[k].i] = true;
    for (uint32_t k = 0; k < n->ncap; k++) need[n->cap[k].i] = true;
}

/* Values whose last reader does not run go after the last step before it that does. */
static void share_drops(const rl_exec *x, rl_settled *s, const bool *runs) {
    rl_arena *mem = &x->plan->mem;
    s->run = rl_new(mem, rl_settled_run, x->nstep);
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_step *p = &x->step[i];
        if (runs[i]) s->run[s->nrun++] = (rl_settled_run){.step = i};
        else if (s->nrun && p->last.n) {
            rl_settled_run *r = &s->run[s->nrun - 1];
            uint32_t *all = rl_new(mem, uint32_t, r->ndrop + p->last.n);
            if (r->ndrop) memcpy(all, r->drop, r->ndrop * sizeof *all);
            memcpy(all + r->ndrop, p->last.p, p->last.n * sizeof *all);
            r->drop = all, r->ndrop += p->last.n;
        }
    }
}

static void choose(const rl_exec *x, rl_settled *s) {
    const rl_rt *rt = x->rt;
    rl_arena *mem = &x->plan->mem;
    bool *need = rl_new(mem, bool, x->g->nval), *runs = rl_new(mem, bool, x->nstep);
    size_t nbyte = 0;
    for (uint32_t i = x->nstep; i-- > 0;) {
        runs[i] = must_run(x, s, need, i);
        if (runs[i]) need_inputs(x->step[i].info, need);
    }
    s->give = rl_alloc(mem, x->g->nval * sizeof *s->give);
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        for (uint32_t k = 0; k < n->nout && !runs[i]; k++) {
            if (!rl_has(n->out[k]) || !need[n->out[k].i]) continue;
            nbyte += s->nbyte[n->out[k].i];
            s->give[s->ngive].t = (rl_tensor){0};
            s->give[s->ngive++].v = n->out[k];
        }
    }
    share_drops(x, s, runs);
    bool room = nbyte <= ALL && (!rt->ctx->limit || nbyte <= rt->ctx->limit - RL_MIN(rt->ctx->limit, rt->peak));
    s->stage = s->nrun < x->nstep && room ? RL_SETTLED_COPY : RL_SETTLED_NOT;
}

/* With the strides that it has, so that kernels do with it what they did. */
static void copy(const rl_frame *f, rl_settled *s, rl_value v) {
    const rl_tensor *t = rl_frame_value(f, v.i);
    int64_t nbyte = (int64_t)s->nbyte[v.i];
    for (uint32_t k = 0; k < s->ngive; k++) {
        if (!rl_same(s->give[k].v, v)) continue;
        if (span_of(t) != s->nbyte[v.i]) {
            s->stage = RL_SETTLED_NOT;
            return;
        }
        rl_tensor *to = &s->give[k].t;
        *to = *t;
        to->offset = 0, to->mem = rl_tensor_new(f->x->rt, RL_U8, 1, &nbyte).mem;
        f->x->rt->settled += (size_t)nbyte;
        if (nbyte) memcpy(to->mem->p, rl_data(t), (size_t)nbyte);
    }
}

/* ---- a run ---- */

rl_settled *rl_settled_of(const rl_frame *f) {
    const rl_exec *x = f->x;
    if (!x->settles || f->up || x->rt->watch || x->probe || !x->plan || !x->plan->exact) return NULL;
    return x->plan->settled.stage == RL_SETTLED_NOT ? NULL : &x->plan->settled;
}

void rl_settled_give(rl_frame *f, const rl_settled *s) {
    for (uint32_t i = 0; i < s->ngive; i++) f->slot[s->give[i].v.i] = rl_tensor_keep(&s->give[i].t);
}

void rl_settled_note(const rl_frame *f, rl_settled *s, uint32_t i) {
    const rl_nodeinfo *n = f->x->step[i].info;
    if (!f->x->settles[i]) return;
    if (s->stage == RL_SETTLED_LOOK) look(f, s, n);
    for (uint32_t k = 0; k < n->nout && s->stage == RL_SETTLED_COPY; k++)
        if (rl_has(n->out[k])) copy(f, s, n->out[k]);
}

void rl_settled_end(const rl_exec *x, rl_settled *s) {
    if (s->stage == RL_SETTLED_LOOK) {
        choose(x, s);
        return;
    }
    if (s->stage == RL_SETTLED_NOT) rl_settled_drop(s);
    if (s->stage != RL_SETTLED_COPY) return;
    s->stage = RL_SETTLED_KEPT;
    for (uint32_t i = 0, k = 0; i < x->nstep; i++) {
        if (k < s->nrun && s->run[k].step == i) k++;
        else x->step[i].ran = "kept";
    }
}

void rl_settled_drop(rl_settled *s) {
    for (uint32_t i = 0; i < s->ngive; i++) {
        rl_tensor *t = &s->give[i].t;
        if (t->mem) t->mem->rt->settled -= t->mem->nbyte;
        rl_tensor_drop(t);
    }
    s->ngive = 0;
}
