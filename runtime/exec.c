/* Runs prepared graphs: see rt.h and exec.h.
 *
 * A value's storage goes when the last node that reads it is done; views of it keep it alive. */
#include <stdio.h>
#include <string.h>

#include "../src/shape.h"
#include "branches.h"
#include "device.h"
#include "exec.h"
#include "fast.h"
#include "fuse.h"
#include "kernels.h"
#include "native.h"
#include "plan.h"

rl_rt *rl_rt_new(rl_ctx *ctx, const rl_backend *on, uint32_t nthread) {
    rl_rt *rt = rl_host_alloc(&ctx->host, sizeof *rt);
    if (!rt) rl_no_memory(ctx);
    rt->ctx = ctx;
    rt->on = &rl_backend_cpu;
    rt->device = on == &rl_backend_cpu ? NULL : on;
    rt->random = 1;
    if (nthread > 1) rt->pool = rl_pool_new(nthread);
    return rt;
}

void rl_rt_free(rl_rt *rt) {
    if (!rt) return;
    rl_fast_drop(rt);
    for (rl_storage *s = rt->all, *next; s; s = next) {
        next = s->next;
        if (!s->borrowed && !s->base && s->p) s->on->free(rt, s->p, s->nbyte);
        rl_host_free(&rt->ctx->host, s, sizeof *s);
    }
    rl_fast_close(rt);
    rl_pool_free(rt->pool);
    if (rt->state) rt->device->close(rt);
    rl_host_free(&rt->ctx->host, rt, sizeof *rt);
}

rl_label rl_node_label(const rl_nodeinfo *n) {
    rl_label l;
    if (n->name && *n->name) snprintf(l.s, sizeof l.s, "node '%.100s' (%.60s)", n->name, n->type);
    else snprintf(l.s, sizeof l.s, "node #%u (%.60s)", n->origin == RL_NONE ? 0 : n->origin, n->type);
    return l;
}

/* ---- values ---- */

const rl_tensor *rl_frame_value(const rl_frame *f, uint32_t v) {
    while (f->x->outer[v] != RL_NONE) {
        v = f->x->outer[v];
        f = f->up;
    }
    return f->slot[v].kind != RL_ABSENT || f->slot[v].mem ? &f->slot[v] : &f->x->constant[v];
}

static rl_status tell_watcher(const rl_frame *f, rl_value v) {
    rl_rt *rt = f->x->rt;
    if (!rt->watch) return RL_OK;
    rl_tensor t = rl_tensor_on(rt, rl_frame_value(f, v.i), &rl_backend_cpu);
    rl_status s = rt->watch(rt->user, f->x->g, v, &t);
    rl_tensor_drop(&t);
    return s == RL_OK ? rt->failed : s;
}

/* ---- one node ---- */

/* The first input that is there decides on the kernel. */
static const rl_kernel *choose_kernel(const rl_step *s, const rl_call *c, uint32_t *at) {
    const rl_tensor *t = NULL;
    for (uint32_t i = 0; i < c->nin && !t; i++) t = rl_call_in(c, i);
    for (; *at < s->kernel.n; (*at)++) {
        const rl_kernel *k = s->kernel.p[*at];
        if (rl_device_has(c->rt, k) && (s->left || !rl_device_wants(c))) continue;
        if (k->types == 0 || (t && t->kind == RL_TENSOR && k->types & RL_T(t->dtype))) return k;
    }
    return NULL;
}

static rl_status run_step(rl_frame *f, rl_step *s, rl_cost *cost);

/* A joined step that the device's kernel cannot do: its parts, one after the other. What they make in between goes at once. */
static rl_status run_parts(rl_step *s, rl_call *c) {
    rl_frame *f = c->frame, own = {.x = f->x, .up = f->up, .slot = f->slot, .home = f->home}; /* a frame's tmp is emptied after each node */
    rl_arena_init(&own.mem, c->rt->ctx);
    rl_arena_init(&own.tmp, c->rt->ctx);
    s->place = RL_RAN_NOT;
    for (uint32_t i = 0; i < s->npart; i++) {
        RL_TRY(run_step(&own, &s->part[i], NULL));
        s->place = RL_MAX(s->place, s->part[i].place);
        s->ran = s->part[i].ran;
    }
    c->out[0] = f->slot[s->info->out[0].i];
    f->slot[s->info->out[0].i] = (rl_tensor){0};
    for (uint32_t i = 0; i < s->npart; i++) {
        const rl_nodeinfo *n = s->part[i].info;
        for (uint32_t k = 0; k < n->nout; k++)
            if (rl_has(n->out[k])) rl_tensor_drop(&f->slot[n->out[k].i]);
    }
    rl_arena_free(&own.mem);
    rl_arena_free(&own.tmp);
    return RL_OK;
}

/* How a kernel ended that may have had strings where it wants numbers: what stood for them is worth nothing. */
static rl_status with_numbers(rl_call *c, rl_status s) {
    bool other = c->rt->no_number;
    c->rt->no_number = false;
    if (c->wrong) return rl_call_fail(c, RL_EMODEL, "input %u is no tensor of numbers", c->wrong - 1);
    return other ? rl_call_fail(c, RL_EMODEL, "has inputs that are no tensors of numbers") : s;
}

/* Not what only moves elements. */
static bool makes_numbers(const rl_kernel *k, const rl_nodeinfo *n) {
    return k->types != RL_ANYTYPE && (k->types != RL_ALLTYPES || rl_attr_find(n, "reduction"));
}

static rl_status run_on_host(rl_call *c, const rl_kernel *k) {
    c->rounds = c->g->nrounded && makes_numbers(k, c->node);
    RL_TRY(k->fn(c));
    if (c->rounds) rl_round_outputs(c);
    return RL_OK;
}

rl_status rl_exec_kernel(rl_step *s, rl_call *c) {
    uint32_t at = 0;
    const rl_kernel *k = choose_kernel(s, c, &at);
    while (k && rl_device_has(c->rt, k)) {
        RL_TRY(with_numbers(c, rl_device_kernel(s, c, k)));
        if (!c->declined) return RL_OK;
        at++;
        k = choose_kernel(s, c, &at);
    }
    if (c->rt->device && s->native && !rl_native_only_moves(s->native)) return rl_native_device_plain(c);
    if (!k && s->npart) return run_parts(s, c);
    if (!k) {
        const rl_tensor *t = c->nin ? rl_call_in(c, 0) : NULL;
        return rl_call_fail(c, RL_ELIMIT, "no kernel for input type %s",
                            !t ? "none" : t->kind == RL_SEQUENCE ? "sequence" : rl_dtype_name(t->dtype));
    }
    if (k != s->kernel.p[0]) rl_call_fetch(c);
    c->arg = k->arg;
    s->ran = "reference";
    return with_numbers(c, c->rt->device ? rl_device_host_kernel(s, c, k) : run_on_host(c, k));
}

static uint64_t bytes_of(const rl_tensor *t) {
    return t && t->kind == RL_TENSOR ? rl_bytes_of(t->dtype, rl_numel(t)) : 0;
}

/* A view costs nothing: output 0 in the storage of an input, unless it was written over that. */
static bool made_new(const rl_call *c, uint64_t copied) {
    const rl_tensor *y = c->nout ? &c->out[0] : NULL;
    for (uint32_t i = 0; y && y->mem && i < c->nin; i++) {
        const rl_tensor *x = rl_call_in(c, i);
        if (x && x->mem == y->mem) return c->over || copied;
    }
    return true;
}

static rl_status run_measured(rl_step *s, rl_call *c, rl_cost *cost) {
    uint64_t moved = c->rt->moved;
    double start = rl_seconds();
    RL_TRY(rl_exec_kernel(s, c));
    if (!c->rt->device) cost->seconds += rl_seconds() - start; /* a device has marks of its own */
    moved = c->rt->moved - moved;
    cost->copied += moved;
    if (!made_new(c, moved)) return RL_OK;
    for (uint32_t i = 0; i < c->nin; i++) cost->bytes += bytes_of(rl_call_in(c, i));
    for (uint32_t i = 0; i < c->nout; i++) cost->bytes += bytes_of(&c->out[i]);
    return RL_OK;
}

static void drop_temps(rl_step *s, rl_frame *f) {
    for (uint32_t i = 0; i < s->temp.n; i++) rl_tensor_drop(s->temp.p[i]);
    s->temp.p = NULL;
    s->temp.n = s->temp.cap = 0;
    if (f->tmp.chunk) rl_arena_free(&f->tmp);
}

/* high: of the node around this one, whose body it is in. */
static void note_work(rl_rt *rt, size_t high) {
    rt->work = RL_MAX(rt->work, rt->high - rt->live + rl_fast_scratch(rt));
    rt->high = RL_MAX(high, rt->high);
}

static rl_status keep_outputs(rl_frame *f, rl_call *c) {
    for (uint32_t i = 0; i < c->nout; i++) {
        rl_value v = c->node->out[i];
        if (!rl_has(v)) {
            rl_tensor_drop(&c->out[i]);
            continue;
        }
        rl_tensor_drop(&f->slot[v.i]);
        rl_tensor_set(&f->slot[v.i], &c->out[i]);
        RL_TRY(tell_watcher(f, v));
    }
    return RL_OK;
}

static void drop_last(const rl_step *s, rl_frame *f) {
    for (uint32_t i = 0; i < s->last.n; i++) rl_tensor_drop(&f->slot[s->last.p[i]]);
}

/* A step that makes the views that it made last. */
static bool repeat_step(rl_frame *f, rl_step *s, rl_cost *cost) {
    if (!s->views) return false;
    double start = cost ? rl_seconds() : 0;
    if (!rl_views_again(f, s)) return false;
    if (cost) cost->seconds += rl_seconds() - start;
    drop_last(s, f);
    return true;
}

/* cost NULL: not measured. */
static rl_status run_step(rl_frame *f, rl_step *s, rl_cost *cost) {
    const rl_exec *x = f->x;
    if (repeat_step(f, s, cost)) return RL_OK;
    const rl_nodeinfo *n = s->info;
    const rl_tensor **in = rl_new(&f->tmp, const rl_tensor *, n->nin + 1);
    rl_call c = {.rt = x->rt, .g = x->g, .node = n, .in = in, .nin = n->nin, .nout = n->nout, .tmp = &f->tmp, .frame = f, .step = s};
    c.out = rl_new(&f->tmp, rl_tensor, n->nout + 1);
    for (uint32_t i = 0; i < n->nin; i++)
        if (rl_has(n->in[i])) in[i] = rl_frame_value(f, n->in[i].i);
    size_t high = x->rt->high;
    uint64_t moved = x->rt->moved;
    x->rt->high = x->rt->live;
    bool part = s < x->step || s >= x->step + x->nstep; /* of a joined step, for which the plan has no place */
    if (x->probe && !f->up && !part) RL_TRY(x->probe(x->probe_user, f, s, &c));
    bool branches = x->rt->branches && !f->up && !part;
    if (branches) RL_TRY(rl_branches_begin(&c));
    RL_TRY(cost ? run_measured(s, &c, cost) : rl_exec_kernel(s, &c));
    if (branches) RL_TRY(rl_branches_end(&c));
    if (moved == x->rt->moved) rl_views_note(&c);
    RL_TRY(keep_outputs(f, &c));
    if (!f->up && !part) rl_plan_note(x, &c, (uint32_t)(s - x->step));
    drop_temps(s, f);
    note_work(x->rt, high);
    drop_last(s, f);
    return RL_OK;
}

/* ---- graphs ---- */

static rl_status give_inputs(rl_frame *f, const rl_tensor *in, uint32_t nin) {
    const rl_graph *g = f->x->g;
    if (nin > g->input.n) return rl_fail(g->ctx, RL_EMODEL, "%u inputs for a graph that has %u", nin, g->input.n);
    for (uint32_t i = 0; i < nin; i++) {
        uint32_t v = g->input.p[i].i;
        f->slot[v] = rl_tensor_keep(&in[i]);
        RL_TRY(tell_watcher(f, g->input.p[i]));
    }
    return RL_OK;
}

static rl_status run_one(rl_frame *f, uint32_t i) {
    const rl_exec *x = f->x;
    if (rl_stopped(x->g->ctx)) return rl_fail(x->g->ctx, RL_ESTOPPED, "stopped by the caller");
    if (!f->up && x->rt->progress) x->rt->progress(x->rt->progress_user, i, x->nstep);
    if (x->cost) RL_TRY(rl_device_mark(x->rt, i));
    return run_step(f, &x->step[i], x->cost ? &x->cost[i] : NULL);
}

/* The steps that make what the inputs' sizes do not settle. */
static rl_status run_rest(rl_frame *f, const rl_settled *s) {
    rl_settled_give(f, s);
    for (uint32_t k = 0; k < s->nrun; k++) {
        const rl_settled_run *r = &s->run[k];
        RL_TRY(run_one(f, r->step));
        for (uint32_t i = 0; i < r->ndrop; i++) rl_tensor_drop(&f->slot[r->drop[i]]);
    }
    return RL_OK;
}

static rl_status run_all(rl_frame *f, rl_settled *s) {
    for (uint32_t i = 0; i < f->x->nstep; i++) {
        RL_TRY(run_one(f, i));
        if (s) rl_settled_note(f, s, i);
    }
    if (s) rl_settled_end(f->x, s);
    return RL_OK;
}

static rl_status run_steps(rl_frame *f, const rl_tensor *in, uint32_t nin, rl_tensor *out, uint32_t nout) {
    const rl_graph *g = f->x->g;
    rl_settled *s = rl_settled_of(f);
    RL_TRY(give_inputs(f, in, nin));
    RL_TRY(s && s->stage == RL_SETTLED_KEPT ? run_rest(f, s) : run_all(f, s));
    if (f->x->cost) RL_TRY(rl_device_mark(f->x->rt, f->x->nstep));
    if (nout > g->output.n) return rl_fail(g->ctx, RL_EMODEL, "%u outputs of a graph that has %u", nout, g->output.n);
    for (uint32_t i = 0; i < nout; i++) out[i] = rl_tensor_keep(rl_frame_value(f, g->output.p[i].i));
    return RL_OK;
}

/* What no step dropped: inputs that nobody reads, outputs, and buffers of Concats. */
static void empty_frame(const rl_frame *f) {
    const rl_graph *g = f->x->g;
    for (uint32_t i = 0; i < g->input.n; i++) rl_tensor_drop(&f->slot[g->input.p[i].i]);
    for (uint32_t i = 0; i < g->output.n; i++) rl_tensor_drop(&f->slot[g->output.p[i].i]);
    for (uint32_t i = 0; f->home && i < f->x->nstep; i++)
        if (rl_is_concat(&f->x->step[i])) rl_tensor_drop(&f->home[f->x->step[i].info->out[0].i]);
}

/* After a failure the frame is left: the run ends, and rl_rt_free frees what it held. */
static rl_status run_frame(rl_frame *f, const rl_tensor *in, uint32_t nin, rl_tensor *out, uint32_t nout) {
    rl_arena_init(&f->tmp, f->x->rt->ctx);
    RL_TRY(run_steps(f, in, nin, out, nout));
    rl_arena_free(&f->tmp);
    return RL_OK;
}

rl_status rl_exec_frame(const rl_exec *x, rl_frame *up, const rl_tensor *in, uint32_t nin, rl_tensor *out, uint32_t nout) {
    rl_frame f = {.x = x, .up = up};
    rl_arena_init(&f.mem, x->rt->ctx);
    f.slot = rl_new(&f.mem, rl_tensor, x->g->nval);
    if (x->home && !up) f.home = rl_new(&f.mem, rl_tensor, x->g->nval);
    RL_TRY(run_frame(&f, in, nin, out, nout));
    for (uint32_t v = 0; v < x->g->nval; v++) {
        rl_tensor_drop(&f.slot[v]);
        if (f.home) rl_tensor_drop(&f.home[v]);
    }
    rl_arena_free(&f.mem);
    return RL_OK;
}

/* In the frame of the run before, which is empty: to zero one takes as long as a good part of a small model. A run that fails keeps it. */
static rl_status run_again(rl_exec *x, const rl_tensor *in, rl_tensor *out) {
    rl_arena *mem = &x->g->mem;
    if (!x->slot || x->nslot != x->g->nval) x->slot = rl_new(mem, rl_tensor, x->g->nval), x->buffer = NULL;
    if (x->home && !x->buffer) x->buffer = rl_new(mem, rl_tensor, x->g->nval);
    rl_frame f = {.x = x, .slot = x->slot, .home = x->home ? x->buffer : NULL};
    x->slot = NULL;
    x->nslot = x->g->nval;
    RL_TRY(run_frame(&f, in, x->g->input.n, out, x->g->output.n));
    empty_frame(&f);
    x->slot = f.slot;
    return RL_OK;
}

rl_status rl_exec_run(rl_exec *x, const rl_tensor *in, rl_tensor *out) {
    if (x->rt->device) return rl_device_run(x, in, out);
    rl_fast_begin(x->rt);
    x->rt->peak = x->rt->live;
    x->rt->work = 0;
    rl_plan_make(x, in);
    x->rt->random = 1;
    rl_status s = run_again(x, in, out);
    rl_fast_end(x->rt);
    return s == RL_OK ? x->rt->on->sync(x->rt) : s;
}

/* ---- constants ---- */

bool rl_node_draws(const rl_nodeinfo *n) {
    return strncmp(n->type, "Random", 6) == 0 || strcmp(n->type, "Bernoulli") == 0 || strcmp(n->type, "Multinomial") == 0;
}

/* Of tensors only, and of a node that always does the same. */
static bool can_fold(const rl_exec *x, const rl_step *s) {
    if (rl_node_draws(s->info) || *s->info->domain || rl_has_body(s->info)) return false;
    for (uint32_t i = 0; i < s->info->nin; i++)
        if (rl_has(s->info->in[i]) && x->constant[s->info->in[i].i].kind != RL_TENSOR) return false;
    return true;
}

/* The only output of s, where it is sizes whose every element is known from the graph: the Shape of f32[1,3,8,8], say. */
static bool find_sizes(const rl_exec *x, const rl_step *s, rl_tensor *out) {
    const rl_valinfo *v = s->info->nout == 1 && rl_has(s->info->out[0]) ? rl_val(x->g, s->info->out[0]) : NULL;
    int64_t n = 1;
    rl_elem e;
    if (!v || !v->elem || v->dtype != RL_I64 || v->rank > 1) return false;
    for (uint32_t i = 0; i < v->rank; i++) n = v->dim[i];
    if (n < 0 || n != v->nelem) return false;
    for (int64_t i = 0; i < n; i++)
        if (!rl_shape_elem(x->g, s->info->out[0], (uint32_t)i, &e) || !e.known || e.den != 1) return false;
    *out = rl_tensor_new(x->rt, RL_I64, v->rank, &n);
    for (int64_t i = 0; i < n; i++) {
        rl_shape_elem(x->g, s->info->out[0], (uint32_t)i, &e);
        ((int64_t *)rl_data(out))[i] = e.num;
    }
    return true;
}

/* The output of a Cast of weights, which are made float32 when they are read. */
static bool widen(const rl_exec *x, const rl_step *s, rl_tensor *out) {
    const rl_nodeinfo *n = s->info;
    const rl_tensor *t = n->op == RL_OP_Cast && rl_has(rl_in(n, 0)) && rl_has(n->out[0]) ? &x->constant[n->in[0].i] : NULL;
    return t && t->kind == RL_TENSOR && x->rt->fast && rl_tensor_widen(x->rt, t, rl_attr_dtype(n, "to", RL_UNDEF), out);
}

rl_status rl_exec_fold(rl_exec *x) {
    rl_frame f = {.x = x};
    uint32_t kept = 0;
    rl_arena_init(&f.mem, x->rt->ctx);
    rl_arena_init(&f.tmp, x->rt->ctx);
    f.slot = rl_new(&f.mem, rl_tensor, x->g->nval);
    for (uint32_t i = 0; i < x->nstep; i++) {
        rl_step *s = &x->step[i];
        rl_tensor known;
        if (find_sizes(x, s, &known) || widen(x, s, &known)) {
            x->constant[s->info->out[0].i] = known;
            continue;
        }
        if (!can_fold(x, s)) {
            x->step[kept++] = *s;
            continue;
        }
        for (uint32_t k = 0; k < s->info->nin; k++)
            if (rl_has(s->info->in[k])) rl_storage_fetch(x->constant[s->info->in[k].i].mem);
        RL_TRY(run_step(&f, s, NULL));
        rl_prims_drop(x->rt, s);
        for (uint32_t k = 0; k < s->info->nout; k++) {
            rl_value v = s->info->out[k];
            if (!rl_has(v)) continue;
            x->constant[v.i] = f.slot[v.i];
            f.slot[v.i] = (rl_tensor){0};
        }
    }
    x->nstep = kept;
    for (uint32_t i = 0; i < x->g->nval; i++)
        if (x->constant[i].kind == RL_TENSOR) x->constant[i].mem->lasts = true;
    rl_arena_free(&f.mem);
    rl_arena_free(&f.tmp);
    return RL_OK;
}

rl_status rl_exec_chain(rl_exec *x, rl_step *const *s, uint32_t n, const rl_tensor *in, rl_tensor *out) {
    rl_frame f = {.x = x};
    rl_arena_init(&f.mem, x->rt->ctx);
    rl_arena_init(&f.tmp, x->rt->ctx);
    f.slot = rl_new(&f.mem, rl_tensor, x->g->nval);
    f.slot[s[0]->info->in[0].i] = *in;
    for (uint32_t i = 0; i < n; i++) RL_TRY(run_step(&f, s[i], NULL));
    for (uint32_t i = 0; i < n; i++) out[i] = rl_tensor_keep(&f.slot[s[i]->info->out[0].i]);
    f.slot[s[0]->info->in[0].i] = (rl_tensor){0};
    for (uint32_t v = 0; v < x->g->nval; v++) rl_tensor_drop(&f.slot[v]);
    rl_arena_free(&f.mem);
    rl_arena_free(&f.tmp);
    return RL_OK;
}

/* ---- bodies ---- */

static const rl_exec *find_body(const rl_call *c, const char *name) {
    for (uint32_t i = 0; i < c->node->nattr; i++) {
        const rl_exec *b = c->step->body[i];
        if (b && c->node->attr[i].name == rl_internz(c->g->ctx, name)) return b;
    }
    return NULL;
}

const rl_graph *rl_call_graph(const rl_call *c, const char *name) {
    const rl_exec *b = find_body(c, name);
    return b ? b->g : NULL;
}

rl_status rl_call_body(rl_call *c, const char *name, const rl_tensor *in, uint32_t nin, rl_tensor *out, uint32_t nout) {
    const rl_exec *b = find_body(c, name);
    if (!b) return rl_call_fail(c, RL_EMODEL, "has no body '%s'", name);
    return rl_exec_frame(b, c->frame, in, nin, out, nout);
}
