/* Prepares graphs for runs: kernels, bodies, constants, lifetimes (exec.h). */
#include <string.h>

#include "../src/expand.h"
#include "../src/onnx.h"
#include "../src/schema.h"
#include "../src/shape.h"
#include "device.h"
#include "element.h"
#include "exec.h"
#include "fast.h"
#include "fuse.h"
#include "home.h"
#include "native.h"
#include "settled.h"
#include "stored.h"

static bool in_versions(const rl_kernel *k, const rl_nodeinfo *n) {
    return n->since >= k->since && n->since <= k->until && strcmp(k->domain, n->domain) == 0 && strcmp(k->type, n->type) == 0;
}

static bool is_constant_node(const rl_nodeinfo *n) {
    return !*n->domain && strcmp(n->type, "Constant") == 0;
}

/* Only what the file gives: what inference folded is computed again, by the kernels. */
static bool has_data(const rl_graph *g, const rl_valinfo *v) {
    return v->data && (v->is_init || (v->def.i != RL_NONE && is_constant_node(rl_nod(g, v->def))));
}

/* Is what it makes there, or without a name, so that nothing reads it? */
static bool is_done(const rl_graph *g, const rl_nodeinfo *n) {
    bool named = n->nout == 0;
    for (uint32_t i = 0; i < n->nout; i++) named |= rl_has(n->out[i]);
    if (!named) return true;
    return is_constant_node(n) && n->nout == 1 && rl_has(n->out[0]) && has_data(g, rl_val(g, n->out[0]));
}

/* ---- constants ---- */

/* Strings, sparse ones and the defaults of inputs are not in the graph: their bytes are. */
static rl_status read_raw(rl_rt *rt, rl_graph *g, const rl_valinfo *v, rl_tensor *out) {
    rl_const c;
    const rl_span *strings;
    if (v->is_init && v->dtype != RL_STRING) {
        if (!rl_dtype_bits(v->dtype) || v->rank == RL_NORANK) return rl_fail(rt->ctx, RL_ELIMIT, "initializer '%.100s': its data is not at hand", v->name);
        *out = rl_tensor_new(rt, v->dtype, v->rank, v->dim);
        return rl_sparse_fill(rt, g, v->raw, v->name, out);
    }
    RL_TRY(rl_onnx_tensor(g, v->raw, &c, &strings));
    *out = rl_tensor_of_const(rt, &c, strings);
    return RL_OK;
}

static rl_status make_constants(rl_exec *x) {
    rl_graph *g = x->g;
    x->constant = rl_new(&g->mem, rl_tensor, g->nval);
    for (uint32_t i = 0; i < g->nval; i++) {
        const rl_valinfo *v = &g->val[i];
        if (v->rank != RL_NORANK && v->rank > RL_RANK)
            return rl_fail(g->ctx, RL_ELIMIT, "value '%.100s': rank %u is over the limit of %d", v->name ? v->name : "", v->rank, RL_RANK);
        if (has_data(g, v)) x->constant[i] = rl_tensor_of_const(x->rt, v->data, NULL);
        else if (v->raw.p) RL_TRY(read_raw(x->rt, g, v, &x->constant[i]));
    }
    return RL_OK;
}

static void fetch(const rl_exec *x, rl_value v) {
    if (rl_has(v) && x->constant[v.i].kind == RL_TENSOR) rl_storage_fetch(x->constant[v.i].mem);
}

/* Who packs constant weights reads them once, and does so when it packs them; what others read is fetched now. */
static void fetch_constants(const rl_exec *x) {
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_step *s = &x->step[i];
        for (uint32_t k = 0; k < s->info->nin; k++) {
            rl_value v = s->info->in[k];
            if (!rl_has(v) || x->constant[v.i].kind != RL_TENSOR) continue;
            if (rl_packs(rl_step_fn(s), k)) x->constant[v.i].mem->readers++;
            else rl_storage_fetch(x->constant[v.i].mem), x->constant[v.i].mem->readers += 2;
        }
        for (uint32_t k = 0; k < s->info->ncap; k++) fetch(x, s->info->cap[k]);
    }
    for (uint32_t i = 0; i < x->g->output.n; i++) fetch(x, x->g->output.p[i]);
}

/* ---- kernels ---- */

static bool any_takes(const rl_step *s, rl_dtype t) {
    for (uint32_t i = 0; i < s->kernel.n; i++)
        if (s->kernel.p[i]->types == 0 || s->kernel.p[i]->types & RL_T(t)) return true;
    return false;
}

static void add_kernels(const rl_exec *x, const rl_backend *b, const rl_nodeinfo *n, rl_step *s) {
    for (uint32_t i = 0; i < b->nkernel; i++)
        if (in_versions(&b->kernel[i], n)) rl_push(&x->g->mem, s->kernel, &b->kernel[i]);
}

const rl_kernel *rl_kernel_find(const rl_backend *b, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < b->nkernel; i++)
        if (in_versions(&b->kernel[i], n)) return &b->kernel[i];
    return NULL;
}

/* The device's first, then the CPU's. Bodies run on the host: their Loops read conditions there. */
static void find_kernels(const rl_exec *x, const rl_nodeinfo *n, rl_step *s) {
    if (x->rt->device && !x->parent) add_kernels(x, x->rt->device, n, s);
    add_kernels(x, x->rt->on, n, s);
}

static rl_status check_kernels(const rl_exec *x, const rl_nodeinfo *n, const rl_step *s) {
    rl_text why = {.mem = &x->g->mem};
    rl_dtype t = n->nin && rl_has(n->in[0]) ? rl_val(x->g, n->in[0])->dtype : RL_UNDEF;
    if (!s->kernel.n)
        return rl_fail(x->g->ctx, RL_ELIMIT, "%s: no %s kernel for %s%s%s-%u", rl_node_label(n).s, x->rt->on->name, n->domain,
                       *n->domain ? "::" : "", n->type, n->since);
    if (!rl_schema_knows(n, &why)) return rl_fail(x->g->ctx, RL_ELIMIT, "%s: %s", rl_node_label(n).s, why.p);
    if (t != RL_UNDEF && !any_takes(s, t))
        return rl_fail(x->g->ctx, RL_ELIMIT, "%s: no %s kernel for type %s", rl_node_label(n).s, x->rt->on->name, rl_dtype_name(t));
    return RL_OK;
}

/* ---- steps ---- */

static rl_status prepare(rl_rt *rt, rl_graph *g, rl_exec *parent, rl_exec **out);

static rl_status prepare_step(rl_exec *x, rl_node node, rl_step *s) {
    rl_graph *g = x->g;
    const rl_nodeinfo *n = rl_nod(g, node);
    s->node = node;
    s->info = n;
    find_kernels(x, n, s);
    RL_TRY(check_kernels(x, n, s));
    s->body = rl_new(&g->mem, rl_exec *, n->nattr + 1);
    for (uint32_t i = 0; i < n->nattr; i++)
        if (n->attr[i].graph) RL_TRY(prepare(x->rt, n->attr[i].graph, x, &s->body[i]));
    return RL_OK;
}

static void note_last(const rl_exec *x, uint32_t *last, rl_value v, uint32_t step) {
    if (rl_has(v) && !rl_val(x->g, v)->is_output && x->outer[v.i] == RL_NONE) last[v.i] = step;
}

/* Outputs that nobody reads go at once; graph outputs stay. */
static void find_lifetimes(rl_exec *x) {
    rl_graph *g = x->g;
    uint32_t *last = rl_new(&g->mem, uint32_t, g->nval);
    for (uint32_t v = 0; v < g->nval; v++) last[v] = RL_NONE;
    for (uint32_t i = 0; i < x->nstep; i++) {
        const rl_nodeinfo *n = x->step[i].info;
        for (uint32_t k = 0; k < n->nin; k++) note_last(x, last, n->in[k], i);
        for (uint32_t k = 0; k < n->ncap; k++) note_last(x, last, n->cap[k], i);
        for (uint32_t k = 0; k < n->nout; k++) note_last(x, last, n->out[k], i);
    }
    for (uint32_t v = 0; v < g->nval; v++)
        if (last[v] != RL_NONE) rl_push(&g->mem, x->step[last[v]].last, v);
}

static rl_status find_outer(rl_exec *x) {
    rl_graph *g = x->g;
    x->outer = rl_new(&g->mem, uint32_t, g->nval);
    for (uint32_t v = 0; v < g->nval; v++) x->outer[v] = RL_NONE;
    for (uint32_t i = 0; i < g->outer.n; i++) {
        uint32_t v = g->outer.p[i].i;
        rl_value up = x->parent ? rl_graph_find(x->parent->g, g->val[v].name) : RL_NOVALUE;
        if (!rl_has(up)) return rl_fail(g->ctx, RL_EMODEL, "value '%.100s' is defined nowhere", g->val[v].name);
        x->outer[v] = up.i;
    }
    return RL_OK;
}

/* Not where the reference kernels are wanted, and not of a run that shows every value. With a device, what can be known before goes
 * there once. */
static rl_status improve(rl_exec *x) {
    bool fast = x->rt->fast && !x->rt->watch && !x->parent;
    for (uint32_t v = 0; v < x->g->nval && !fast; v++) fetch(x, (rl_value){v});
    if ((!x->rt->fast && !x->rt->device) || x->rt->watch || x->parent) return RL_OK;
    if (!x->rt->device) rl_join_bytes(x); /* before weights become floats */
    RL_TRY(rl_exec_fold(x));
    if (x->rt->fast) fetch_constants(x);
    if (x->rt->device) rl_join_bytes(x);
    rl_fuse(x);
    if (!x->rt->device) {
        rl_join_shuffles(x);
        rl_join_whole_norms(x);
    }
    rl_choose_orders(x);
    RL_TRY(rl_native_load(x));
    if (x->rt->no_homes) return RL_OK;
    if (!x->rt->device) {
        rl_join_pool_pads(x);
        rl_read_pieces(x);
        rl_join_folds(x);
        RL_TRY(rl_join_scatters(x));
        RL_TRY(rl_join_shears(x));
        rl_join_turns(x);
    }
    rl_choose_homes(x);
    return RL_OK;
}

static rl_status prepare(rl_rt *rt, rl_graph *g, rl_exec *parent, rl_exec **out) {
    rl_exec *x = rl_new(&g->mem, rl_exec, 1);
    *out = x;
    *x = (rl_exec){.rt = rt, .g = g, .parent = parent};
    RL_TRY(find_outer(x));
    RL_TRY(make_constants(x));
    x->step = rl_new(&g->mem, rl_step, g->order.n);
    for (uint32_t i = 0; i < g->order.n; i++) {
        if (is_done(g, rl_nod(g, g->order.p[i]))) continue;
        RL_TRY(prepare_step(x, g->order.p[i], &x->step[x->nstep++]));
    }
    RL_TRY(improve(x));
    find_lifetimes(x);
    rl_settled_find(x);
    return RL_OK;
}

rl_status rl_exec_rewrite(const rl_rt *rt, rl_graph *g) {
    RL_TRY(rl_expand_calls(g));
    if (rl_opset_of(g, rl_internz(g->ctx, "com.microsoft"))) RL_TRY(rl_shape_infer(g)); /* ranks, of which it hangs what an op stands for */
    RL_TRY(rl_spread_bytes(g, rt->fast && !rt->watch));
    RL_TRY(rl_shape_infer(g));
    if ((rt->fast || rt->device) && !rt->watch) {
        rl_move_bytes(g);
        rl_sink_transposes(g, rt->device != NULL);
    }
    if (rt->fast && !rt->watch) {
        rl_sink_folds(g);
        rl_cut_first(g);
        RL_TRY(rl_join_subsampling(g));
        RL_TRY(rl_compute_as_floats(g));
    }
    if (rt->device && !rt->watch) {
        rl_pad_convolutions(g);
        RL_TRY(rl_slice_one_place(g));
        RL_TRY(rl_join_siblings(g));
    }
    return RL_OK;
}

rl_status rl_exec_prepare(rl_rt *rt, rl_graph *g, rl_exec **out) {
    *out = NULL;
    RL_TRY(rl_device_open(rt));
    size_t live = rt->live, constants = rt->constants;
    RL_TRY(prepare(rt, g, NULL, out));
    rt->constants = constants + rt->live - live;
    return RL_OK;
}

rl_status rl_exec_new(rl_rt *rt, rl_graph *g, rl_exec **out) {
    *out = NULL;
    RL_TRY(rl_exec_rewrite(rt, g));
    return rl_exec_prepare(rt, g, out);
}
