/* Times kernels in layouts, and moves: see native_meter.h. */
#include "native_meter.h"

#include <inttypes.h>
#include <string.h>

#include "bench.h"
#include "device.h"
#include "fast.h"
#include "fuse.h"

enum { LEAST = 3, MOST = 12, LINE = 64, COLD = 8 << 20, BURST = 8 }; /* runs of a kernel; bytes; runs that a device is waited for once */
static const double ENOUGH = 0.006;                       /* seconds for a kernel */

/* ---- what a cost depends on ---- */

static void put_dims(rl_text *t, const rl_tensor *x) {
    rl_put(t, " %d[", x ? (int)x->dtype : -1);
    for (uint32_t i = 0; x && i < x->rank; i++) rl_put(t, "%" PRId64 ",", x->dim[i]);
    rl_put(t, "]");
    if (!x || x->kind != RL_TENSOR || x->dtype != RL_I64 || rl_numel(x) > 64 || !rl_is_dense(x)) return;
    for (int64_t i = 0; i < rl_numel(x); i++) rl_put(t, "%" PRId64 ",", ((const int64_t *)rl_data(x))[i]);
}

static void put_attrs(rl_text *t, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nattr; i++) {
        const rl_attr *a = &n->attr[i];
        rl_put(t, " %s=%d,%" PRId64 ",%a", a->name, (int)a->kind, a->kind == RL_ATTR_INT ? a->i : 0, a->kind == RL_ATTR_FLOAT ? (double)a->f : 0);
        for (uint32_t k = 0; a->kind == RL_ATTR_INTS && k < a->n; k++) rl_put(t, ",%" PRId64, a->ints[k]);
        if (a->kind == RL_ATTR_STRING) rl_put_bytes(t, (const char *)a->s.p, a->s.n);
    }
}

/* Of this step on these inputs; lay: of its pins, those of outputs where they are chosen. */
uint64_t rl_meter_key(const rl_call *c, const rl_pin *pin, uint32_t npin, const rl_lay *lay, bool chosen, bool table) {
    rl_text t = {.mem = c->tmp};
    const rl_fused *f = c->step->fused;
    rl_put(&t, "%s%s-%u", table ? "table " : "", c->node->type, c->node->since);
    put_attrs(&t, c->node);
    for (uint32_t i = 0; f && i < f->npost; i++) rl_put(&t, " +%d,%a,%a", (int)f->post[i].op, (double)f->post[i].p, (double)f->post[i].q);
    rl_put(&t, " %d%d", f && f->scale, f && f->shift);
    for (uint32_t i = 0; i < c->nin; i++) {
        put_dims(&t, rl_call_in(c, i));
        if (rl_call_is_constant(c, i)) rl_put(&t, "k");
    }
    for (uint32_t i = 0; i < npin; i++) {
        if (pin[i].out && !chosen) continue;
        rl_put(&t, " %c%u:", pin[i].out ? 'y' : 'x', pin[i].slot);
        rl_lay_put(&lay[i], &t);
    }
    return rl_hash_bytes(t.p, t.n);
}

static uint32_t burst_of(const rl_rt *rt) {
    return rt->device ? BURST : 1;
}

/* ---- costs without a measurement ---- */

static int64_t bytes_of(const rl_tensor *t) {
    return t && t->kind == RL_TENSOR ? (int64_t)rl_bytes_of(t->dtype, rl_numel(t)) : 0;
}

/* How many times as long a convolution takes as channels-last, and anything else as it does there. */
static double factor(const rl_lay *lay, bool conv) {
    if (lay->block) return lay->block == 16 ? 1.0 : conv ? 1.5 : 1.1;
    return lay->rank > 2 && lay->perm[lay->rank - 1] == 1 ? 1.0 : conv ? 2.5 : 1.2;
}

/* Without a plan, too: its work is the same. */
static rl_native_kind kind_of(const rl_call *c, const rl_native *n) {
    return n ? n->kind : rl_native_kind_of(c->frame->x, c->step);
}

static int64_t table_cost(const rl_call *c, const rl_native *n, const rl_lay *lay, uint32_t npin) {
    int64_t bytes = 0, work = 0;
    bool conv = n && n->kind == RL_NATIVE_CONV;
    const rl_native_ways *w = rl_native_ways_of(c->rt);
    if (w->cost) return w->cost(c, kind_of(c, n), npin ? &lay[0] : NULL, npin ? &lay[npin - 1] : NULL);
    for (uint32_t i = 0; i < c->nin; i++) bytes += bytes_of(rl_call_in(c, i));
    for (uint32_t i = 0; i < c->nout; i++) bytes += bytes_of(&c->out[i]);
    const rl_tensor *k = conv ? rl_call_in(c, 1) : NULL;
    if (k) work = bytes_of(&c->out[0]) / 4 * (rl_numel(k) / RL_MAX(k->dim[0], 1)); /* multiplications */
    double ns = (double)bytes / 8 + (double)work / 40;
    for (uint32_t i = 0; i < RL_MIN(npin, 2u); i++) ns *= factor(&lay[i], conv);
    return (int64_t)ns + 500;
}

/* ---- one configuration ---- */

static void drop_outputs(rl_call *c) {
    for (uint32_t i = 0; i < c->nout; i++) rl_tensor_drop(&c->out[i]);
}

static void drop_temps(rl_step *s) {
    for (uint32_t i = 0; i < s->temp.n; i++) rl_tensor_drop(s->temp.p[i]);
    s->temp.n = 0;
}

static void drop_made(rl_call *c) {
    drop_outputs(c);
    drop_temps(c->step);
}

/* Several times, where waiting for it takes as long as it does: seconds are of one. */
static rl_status run_kernel(rl_call *c, uint32_t times, double *seconds) {
    bool alone = rl_bench_alone(c->rt);
    RL_TRY(rl_device_mark(c->rt, 0));
    double start = rl_bench_now(alone);
    for (uint32_t i = 0; i < times; i++) {
        c->over = c->declined = false;
        if (i) drop_made(c);
        RL_TRY(rl_exec_kernel(c->step, c));
    }
    RL_TRY(rl_device_mark(c->rt, 1));
    RL_TRY(rl_device_wait(c));
    *seconds = rl_bench_now(alone) - start;
    if (c->rt->device) RL_TRY(c->rt->device->between(c->rt, 0, seconds));
    *seconds /= times;
    drop_temps(c->step);
    return RL_OK;
}

static unsigned read_lines(const void *p, size_t n) {
    unsigned sum = 0;
    for (size_t i = 0; i < n; i += LINE) sum += ((const uint8_t *)p)[i];
    return sum;
}

/* As many bytes as the model has weights and values, which come by between two runs of a kernel. */
static void make_cold(rl_meter *m) {
    const rl_exec *x = m->x;
    int64_t nbyte = LINE + (int64_t)RL_MIN(x->rt->arena, (size_t)COLD);
    for (uint32_t v = 0; v < x->g->nval; v++) nbyte = rl_add(nbyte, bytes_of(&x->constant[v]));
    nbyte = RL_MIN(nbyte, (int64_t)COLD);
    m->cold = rl_tensor_new(x->rt, RL_U8, 1, &nbyte);
    memset(m->cold.mem->p, 0, m->cold.mem->nbyte);
}

/* In a run each kernel finds its weights where the rest of the model left them, and its inputs as the last kernels wrote them. */
static void as_in_a_run(rl_meter *m, const rl_call *c) {
    if (c->rt->device) return;
    if (!m->cold.mem) make_cold(m);
    m->sink += read_lines(m->cold.mem->p, m->cold.mem->nbyte);
    for (uint32_t i = 0; i < c->nin; i++) {
        const rl_tensor *x = rl_call_in(c, i);
        if (x && x->kind == RL_TENSOR && !rl_call_is_constant(c, i)) m->sink += read_lines(x->mem->p, x->mem->nbyte);
    }
}

static rl_status measure(rl_meter *m, rl_call *c, int64_t *ns) {
    double all = 0, best = 1e9, seconds;
    for (uint32_t i = 0; i < LEAST || (i < MOST && all < ENOUGH); i++) {
        drop_outputs(c);
        as_in_a_run(m, c);
        RL_TRY(run_kernel(c, burst_of(c->rt), &seconds));
        best = RL_MIN(best, seconds);
        all += seconds;
        if (m->bar && best * 1e9 > (double)m->bar) break;
    }
    *ns = (int64_t)(best * 1e9);
    return RL_OK;
}

/* Did it run as it was told, on an optimized kernel? */
static bool fell(const rl_step *s) {
    if (s->ran && strcmp(s->ran, "plain") == 0) return true;
    return s->prim && s->prim->fell;
}

/* How the outputs lie; false: one of them in no order that can be named. */
static bool outputs_lie(const rl_call *c, const rl_pin *pin, uint32_t npin, const rl_native *n, const rl_lay *lay, rl_cost_row *row) {
    for (uint32_t i = 0; i < npin; i++) {
        if (!pin[i].out) continue;
        if (row->nout == RL_LEN(row->out)) return false;
        const rl_tensor *y = &c->out[pin[i].slot];
        bool blocked = n && n->out.block;
        if (blocked) row->out[row->nout++] = lay[i];
        else if (y->kind != RL_TENSOR || !rl_lay_of(y, &row->out[row->nout++])) return false;
    }
    return true;
}

/* Runs the step so and fills in the row; impl NULL where there is no optimized kernel, or it fails. */
rl_status rl_meter_config(rl_meter *m, rl_call *c, const rl_pin *pin, uint32_t npin, const rl_lay *lay, rl_native *n, bool accept, rl_cost_row *row) {
    double seconds;
    rl_step *s = c->step;
    const rl_kernel *kernel = n ? rl_native_kernel(n) : NULL, **was = s->kernel.p;
    uint32_t nwas = s->kernel.n;
    *row = (rl_cost_row){0};
    s->native = n;
    if (kernel) s->kernel.p = &kernel, s->kernel.n = 1;
    rl_status status = run_kernel(c, 1, &seconds);
    bool good = status == RL_OK && (accept || !fell(s)) && outputs_lie(c, pin, npin, n, lay, row);
    if (good && m->table) row->ns = table_cost(c, n, lay, npin);
    else if (good) status = measure(m, c, &row->ns);
    if (good && status == RL_OK) row->impl = rl_internz(c->g->ctx, s->ran && *s->ran ? s->ran : "reference");
    else *row = (rl_cost_row){0};
    drop_outputs(c);
    rl_prims_drop(c->rt, s);
    s->native = NULL;
    s->kernel.p = was, s->kernel.n = nwas;
    return RL_OK;
}

/* The inputs of the call for another that is to leave them as they are: constants, and copies of what describes the others, which no kernel
 * takes for a value that ends here (rl_call_make_over). */
const rl_tensor **rl_meter_inputs(const rl_call *c) {
    const rl_tensor **in = rl_new(c->tmp, const rl_tensor *, c->nin + 1);
    for (uint32_t i = 0; i < c->nin; i++) in[i] = !c->in[i] || rl_call_is_constant(c, i) ? c->in[i] : rl_copy(c->tmp, c->in[i], sizeof **in);
    return in;
}

/* The dims of the output, from a run of the step as it is; ns: what that takes by the table, NULL: is not asked. */
rl_status rl_meter_plain(const rl_call *c, rl_tensor *y, int64_t *ns) {
    rl_call call = *c;
    double seconds;
    call.in = rl_meter_inputs(c);
    call.out = rl_new(c->tmp, rl_tensor, c->nout + 1);
    RL_TRY(run_kernel(&call, 1, &seconds));
    if (ns) *ns = table_cost(&call, NULL, NULL, 0);
    *y = call.out[0];
    y->mem = NULL;
    drop_outputs(&call);
    rl_prims_drop(c->rt, c->step);
    return RL_OK;
}

/* ---- moves ---- */

int64_t rl_meter_move(rl_meter *m, const rl_tensor *shape, const rl_lay *from, const rl_lay *to) {
    rl_rt *rt = m->x->rt;
    const rl_native_ways *w = rl_native_ways_of(rt);
    if (m->table) return w->move_cost ? w->move_cost(shape) : 300 + bytes_of(shape) / 4;
    const rl_backend *was = rt->on;
    if (rt->device) rt->on = rt->device;
    rl_tensor x = rl_lay_new(rt, shape->dtype, from, shape->dim), y = rl_lay_new(rt, shape->dtype, to, shape->dim);
    rt->on = was;
    if (!rt->device) memset(x.mem->p, 0, x.mem->nbyte);
    double best = 1e9, all = 0;
    if (!rt->device && !m->cold.mem) make_cold(m);
    for (uint32_t i = 0; i < LEAST || (i < MOST && all < ENOUGH); i++) {
        if (!rt->device) m->sink += read_lines(m->cold.mem->p, m->cold.mem->nbyte) + read_lines(x.mem->p, x.mem->nbyte);
        if (rl_device_mark(rt, 0) != RL_OK) break;
        double start = rl_bench_now(rl_bench_alone(rt));
        for (uint32_t k = 0; k < burst_of(rt); k++) rl_lay_move(rt, &y, to, &x, from, shape->dim[1]);
        double took = rl_bench_now(rl_bench_alone(rt)) - start;
        if (rt->device && (rl_device_mark(rt, 1) != RL_OK || rt->device->sync(rt) != RL_OK || rt->device->between(rt, 0, &took) != RL_OK)) break;
        took /= burst_of(rt);
        best = RL_MIN(best, took);
        all += took;
    }
    rl_tensor_drop(&x);
    rl_tensor_drop(&y);
    return (int64_t)(best * 1e9);
}

uint64_t rl_meter_move_key(const rl_meter *m, const rl_tensor *shape, const rl_lay *from, const rl_lay *to) {
    rl_arena tmp;
    rl_arena_init(&tmp, m->x->g->ctx);
    rl_text t = {.mem = &tmp};
    rl_put(&t, "%smove", m->table ? "table " : "");
    put_dims(&t, shape);
    rl_put(&t, " ");
    rl_lay_put(from, &t);
    rl_put(&t, " ");
    rl_lay_put(to, &t);
    uint64_t key = rl_hash_bytes(t.p, t.n);
    rl_arena_free(&tmp);
    return key;
}
