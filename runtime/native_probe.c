/* Measures what steps and moves cost in each layout: see native_probe.h. */
#include "native_probe.h"

#include <inttypes.h>
#include <string.h>

#include "bench.h"
#include "fast.h"
#include "fuse.h"

enum { LEAST = 3, MOST = 12, CONFIGS = 24, LINE = 64, COLD = 48 << 20 }; /* runs of a kernel; configurations of a step; bytes */
static const double ENOUGH = 0.006;          /* seconds for a kernel */

typedef struct {
    rl_probe *p;
    rl_costs *costs;
    bool table;
    struct { uint32_t *p; uint32_t n, cap; } *seen; /* [value] layouts in which it may be made */
    rl_tensor *shape;                               /* [value] its dims, RL_ABSENT: not seen */
    rl_tensor cold;                                 /* bytes that stand for the rest of the model in the caches */
    unsigned sink;
} prober;

static uint32_t intern(rl_probe *p, const rl_lay *lay) {
    for (uint32_t i = 0; i < p->lay.n; i++)
        if (rl_lay_same(&p->lay.p[i], lay)) return i;
    rl_push(p->mem, p->lay, *lay);
    return p->lay.n - 1;
}

static void note_seen(prober *a, rl_value v, uint32_t lay) {
    for (uint32_t i = 0; i < a->seen[v.i].n; i++)
        if (a->seen[v.i].p[i] == lay) return;
    rl_push(a->p->mem, a->seen[v.i], lay);
}

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
static uint64_t key_of(const rl_call *c, const rl_pin *pin, uint32_t npin, const rl_lay *lay, bool chosen, bool table) {
    rl_text t = {.mem = c->tmp};
    const rl_fused *f = c->step->fused;
    rl_put(&t, "%s%s-%u %s", table ? "table " : "", c->node->type, c->node->since, c->step->kernel.p[0]->fn ? "" : "-");
    put_attrs(&t, c->node);
    for (uint32_t i = 0; f && i < f->npost; i++) rl_put(&t, " +%d,%a,%a", (int)f->post[i].op, (double)f->post[i].p, (double)f->post[i].q);
    rl_put(&t, " %d%d", f && f->scale, f && f->shift);
    for (uint32_t i = 0; i < c->nin; i++) put_dims(&t, rl_call_in(c, i));
    for (uint32_t i = 0; i < npin; i++) {
        if (pin[i].out && !chosen) continue;
        rl_put(&t, " %c%u:", pin[i].out ? 'y' : 'x', pin[i].slot);
        rl_lay_put(&lay[i], &t);
    }
    return rl_hash_bytes(t.p, t.n);
}

/* ---- costs without a measurement ---- */

static int64_t bytes_of(const rl_tensor *t) {
    return t && t->kind == RL_TENSOR ? rl_numel(t) * rl_elem_bits(t->dtype) / 8 : 0;
}

/* How many times as long a convolution takes as channels-last, and anything else as it does there. */
static double factor(const rl_lay *lay, bool conv) {
    if (lay->block) return lay->block == 16 ? 1.0 : conv ? 1.5 : 1.1;
    return lay->rank > 2 && lay->perm[lay->rank - 1] == 1 ? 1.0 : conv ? 2.5 : 1.2;
}

static int64_t table_cost(const rl_call *c, const rl_native *n, const rl_lay *lay, uint32_t npin) {
    int64_t bytes = 0, work = 0;
    bool conv = n && n->kind == RL_NATIVE_CONV;
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

static rl_status run_kernel(rl_call *c, double *seconds) {
    double start = rl_bench_now(!c->rt->pool);
    c->over = false;
    RL_TRY(rl_exec_kernel(c->step, c));
    *seconds = rl_bench_now(!c->rt->pool) - start;
    for (uint32_t i = 0; i < c->step->temp.n; i++) rl_tensor_drop(c->step->temp.p[i]);
    c->step->temp.n = 0;
    return RL_OK;
}

static unsigned read_lines(const void *p, size_t n) {
    unsigned sum = 0;
    for (size_t i = 0; i < n; i += LINE) sum += ((const uint8_t *)p)[i];
    return sum;
}

/* As many bytes as the model has weights and values, which come by between two runs of a kernel. */
static void make_cold(prober *a) {
    const rl_exec *x = a->p->x;
    int64_t nbyte = LINE + (int64_t)RL_MIN(x->rt->arena, (size_t)COLD);
    for (uint32_t v = 0; v < x->g->nval; v++) nbyte = rl_add(nbyte, bytes_of(&x->constant[v]));
    nbyte = RL_MIN(nbyte, (int64_t)COLD);
    a->cold = rl_tensor_new(x->rt, RL_U8, 1, &nbyte);
    memset(a->cold.mem->p, 0, a->cold.mem->nbyte);
}

/* In a run each kernel finds its weights where the rest of the model left them, and its inputs as the last kernels wrote them. */
static void as_in_a_run(prober *a, const rl_call *c) {
    if (!a->cold.mem) make_cold(a);
    a->sink += read_lines(a->cold.mem->p, a->cold.mem->nbyte);
    for (uint32_t i = 0; i < c->nin; i++) {
        const rl_tensor *x = rl_call_in(c, i);
        if (x && x->kind == RL_TENSOR && !rl_call_is_constant(c, i)) a->sink += read_lines(x->mem->p, x->mem->nbyte);
    }
}

static rl_status measure(prober *a, rl_call *c, int64_t *ns) {
    double all = 0, best = 1e9, seconds;
    for (uint32_t i = 0; i < LEAST || (i < MOST && all < ENOUGH); i++) {
        drop_outputs(c);
        as_in_a_run(a, c);
        RL_TRY(run_kernel(c, &seconds));
        best = RL_MIN(best, seconds);
        all += seconds;
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
static rl_status measure_config(prober *a, rl_call *c, const rl_pin *pin, uint32_t npin, const rl_lay *lay, rl_native *n, bool accept, rl_cost_row *row) {
    double seconds;
    rl_step *s = c->step;
    const rl_kernel *kernel = n ? rl_native_kernel(n) : NULL, **was = s->kernel.p;
    uint32_t nwas = s->kernel.n;
    *row = (rl_cost_row){0};
    s->native = n;
    if (n) s->kernel.p = &kernel, s->kernel.n = 1;
    rl_status status = run_kernel(c, &seconds);
    bool good = status == RL_OK && (accept || !fell(s)) && outputs_lie(c, pin, npin, n, lay, row);
    if (good && a->table) row->ns = table_cost(c, n, lay, npin);
    else if (good) status = measure(a, c, &row->ns);
    if (good && status == RL_OK) row->impl = rl_internz(c->g->ctx, s->ran && *s->ran ? s->ran : "reference");
    drop_outputs(c);
    rl_prims_drop(c->rt, s);
    s->native = NULL;
    s->kernel.p = was, s->kernel.n = nwas;
    return RL_OK;
}

/* The inputs of the call for another that is to leave them as they are: constants, and copies of what describes the others, which no kernel
 * takes for a value that ends here (rl_call_make_over). */
static const rl_tensor **read_only(const rl_call *c) {
    const rl_tensor **in = rl_new(c->tmp, const rl_tensor *, c->nin + 1);
    for (uint32_t i = 0; i < c->nin; i++) in[i] = !c->in[i] || rl_call_is_constant(c, i) ? c->in[i] : rl_copy(c->tmp, c->in[i], sizeof **in);
    return in;
}

/* Inputs of the call moved to these layouts. */
static void move_inputs(const rl_call *c, const rl_pin *pin, uint32_t npin, const rl_lay *now, const rl_lay *lay, const rl_tensor **in, rl_tensor *made) {
    for (uint32_t i = 0; i < npin && !pin[i].out; i++) {
        const rl_tensor *x = c->in[pin[i].slot];
        if (rl_lay_same(&now[i], &lay[i])) continue;
        made[i] = rl_lay_new(c->rt, &lay[i], x->dim);
        rl_lay_move(c->rt, &made[i], &lay[i], x, &now[i], x->dim[1]);
        in[pin[i].slot] = &made[i];
    }
}

typedef struct { rl_pin pin[RL_PINS]; rl_lay now[RL_PINS]; uint32_t npin; rl_native_kind kind; bool accept; } place;

/* One configuration of the op, unless it is there or has no optimized kernel. */
static rl_status try_config(prober *a, rl_probe_op *op, const rl_call *c, const place *at, const rl_lay *lay) {
    rl_probe *p = a->p;
    bool chosen = at->kind == RL_NATIVE_CONV || at->kind == RL_NATIVE_POOL;
    for (uint32_t i = 0; i < at->npin; i++) chosen = chosen || lay[i].block;
    if (!rl_native_allows(p->x, c->step, at->pin, at->npin, lay)) return RL_OK;
    uint64_t key = key_of(c, at->pin, at->npin, lay, chosen, a->table);
    const rl_cost_row *known = rl_costs_find(a->costs, key);
    rl_cost_row row;
    if (!known || (at->accept && !known->impl)) {
        const rl_tensor **in = read_only(c);
        rl_tensor *made = rl_new(c->tmp, rl_tensor, RL_PINS);
        rl_native *n = chosen ? rl_native_of(p->x, c->step, at->pin, at->npin, lay) : NULL;
        rl_call call = *c;
        call.in = in;
        call.out = rl_new(c->tmp, rl_tensor, c->nout + 1);
        move_inputs(c, at->pin, at->npin, at->now, lay, in, made);
        RL_TRY(measure_config(a, &call, at->pin, at->npin, lay, n, at->accept, &row));
        for (uint32_t i = 0; i < RL_PINS; i++) rl_tensor_drop(&made[i]);
        c->rt->ctx->error[0] = 0;
        p->measured += !a->table;
        rl_costs_put(a->costs, key, &row);
        known = &row;
    } else p->known++;
    if (!known->impl) return RL_OK;
    rl_probe_cfg cfg = {.lay = rl_new(p->mem, uint32_t, at->npin + 1), .ns = known->ns, .impl = known->impl};
    for (uint32_t i = 0, k = 0; i < at->npin; i++) {
        cfg.lay[i] = intern(p, at->pin[i].out ? &known->out[k] : &lay[i]);
        k += at->pin[i].out;
    }
    for (uint32_t i = 0; i < op->cfg.n; i++)
        if (memcmp(op->cfg.p[i].lay, cfg.lay, at->npin * sizeof *cfg.lay) == 0) return RL_OK;
    rl_push(p->mem, op->cfg, cfg);
    return RL_OK;
}

/* ---- the configurations of a step ---- */

/* Layouts that are worth asking for of a value with channels. */
static uint32_t choices(const rl_tensor *x, rl_lay *to) {
    rl_lay all[4] = {rl_lay_last(x->rank), rl_lay_rows(x->rank), rl_lay_blocked(x->rank, 16), rl_lay_blocked(x->rank, 8)};
    uint32_t n = 0;
    for (uint32_t i = 0; i < 4; i++) {
        if (all[i].block && x->dim[1] < all[i].block) continue;
        rl_lay l = rl_lay_normal(&all[i], x->dim);
        bool had = false;
        for (uint32_t k = 0; k < n; k++) had = had || rl_lay_same(&to[k], &l);
        if (!had) to[n++] = l;
    }
    return n;
}

/* Its pins as they are, but those of the output's dims and the output so. */
static void follow(const prober *a, const rl_call *c, const place *at, const rl_lay *with, rl_lay *lay) {
    const rl_graph *g = a->p->x->g;
    const rl_valinfo *y = rl_val(g, c->node->out[0]);
    memcpy(lay, at->now, at->npin * sizeof *lay);
    for (uint32_t i = 0; i < at->npin; i++) {
        const rl_valinfo *v = rl_val(g, at->pin[i].v);
        bool same = v->rank == y->rank;
        for (uint32_t k = 0; same && k < v->rank; k++) same = v->dim[k] == y->dim[k] || (k == 1 && at->kind != RL_NATIVE_CHAIN);
        if (at->kind == RL_NATIVE_POOL || at->pin[i].out || (same && !(at->kind == RL_NATIVE_CONV && at->pin[i].slot == 0))) lay[i] = *with;
    }
}

static rl_status try_kinds(prober *a, rl_probe_op *op, const rl_call *c, const place *at, const rl_tensor *y) {
    rl_lay in[4], out[4], lay[RL_PINS];
    uint32_t nin = choices(c->in[at->pin[0].slot], in), nout = choices(y, out);
    if (at->kind == RL_NATIVE_CONV) {
        for (uint32_t i = 0; i < nin; i++)
            for (uint32_t k = 0; k < nout; k++) {
                follow(a, c, at, &out[k], lay);
                lay[0] = in[i];
                RL_TRY(try_config(a, op, c, at, lay));
            }
        return RL_OK;
    }
    for (uint32_t i = 0; at->kind == RL_NATIVE_GLOBAL && i < nin; i++) {
        memcpy(lay, at->now, at->npin * sizeof *lay);
        lay[0] = in[i];
        RL_TRY(try_config(a, op, c, at, lay));
    }
    for (uint32_t k = 0; at->kind != RL_NATIVE_GLOBAL && k < nout; k++) {
        follow(a, c, at, &out[k], lay);
        RL_TRY(try_config(a, op, c, at, lay));
    }
    return RL_OK;
}

/* A step that takes what comes: as it comes, row-major, and as it may be made. */
static rl_status try_orders(prober *a, rl_probe_op *op, const rl_call *c, const place *at) {
    rl_lay lay[RL_PINS];
    RL_TRY(try_config(a, op, c, at, at->now));
    for (uint32_t i = 0; i < at->npin; i++) {
        uint32_t v = at->pin[i].v.i;
        for (uint32_t k = 0; !at->pin[i].out && k <= a->seen[v].n && op->cfg.n < CONFIGS; k++) {
            rl_lay with = k ? a->p->lay.p[a->seen[v].p[k - 1]] : rl_lay_rows(at->now[i].rank);
            if (with.block) continue;
            memcpy(lay, at->now, at->npin * sizeof *lay);
            for (uint32_t j = 0; j < at->npin && !at->pin[j].out; j++)
                if (lay[j].rank == with.rank) lay[j] = rl_lay_normal(&with, c->in[at->pin[j].slot]->dim);
            RL_TRY(try_config(a, op, c, at, lay));
        }
    }
    return RL_OK;
}

/* ---- steps ---- */

static void known_shape(prober *a, rl_value v, const rl_tensor *t) {
    if (a->shape[v.i].kind != RL_ABSENT) return;
    a->shape[v.i] = *t;
    a->shape[v.i].mem = NULL;
}

/* The dims of the output, from a run of the step as it is; ns: what that takes, NULL: is not asked. */
static rl_status find_output(prober *a, const rl_call *c, rl_tensor *y, int64_t *ns) {
    rl_call call = *c;
    double seconds;
    call.in = read_only(c);
    call.out = rl_new(c->tmp, rl_tensor, c->nout + 1);
    RL_TRY(run_kernel(&call, &seconds));
    if (ns && a->table) *ns = table_cost(&call, NULL, NULL, 0);
    else if (ns) RL_TRY(measure(a, &call, ns));
    *y = call.out[0];
    y->mem = NULL;
    drop_outputs(&call);
    rl_prims_drop(c->rt, c->step);
    return RL_OK;
}

/* A step that has no layouts. */
static rl_status probe_fixed(prober *a, const rl_call *c) {
    rl_tensor y;
    uint64_t key = key_of(c, NULL, 0, NULL, false, a->table);
    const rl_cost_row *known = rl_costs_find(a->costs, key);
    rl_cost_row row = {.impl = rl_internz(c->g->ctx, "-")};
    if (!known) {
        RL_TRY(find_output(a, c, &y, &row.ns));
        rl_costs_put(a->costs, key, &row);
        a->p->measured += !a->table;
    } else a->p->known++;
    a->p->fixed += known ? known->ns : row.ns;
    return RL_OK;
}

static rl_str name_of(const rl_exec *x, const rl_nodeinfo *n) {
    rl_str name = n->nout && rl_has(n->out[0]) ? rl_val(x->g, n->out[0])->name : NULL;
    return name ? name : "";
}

/* A maker or reader that is no step of the plan: row-major, or as it lies. */
static void add_outside(prober *a, rl_value v, bool out, const rl_lay *lies, const rl_tensor *t) {
    rl_probe *p = a->p;
    const rl_valinfo *x = rl_val(p->x->g, v);
    if (x->dtype != RL_F32 || x->rank < 3 || x->rank > RL_LAY_RANK || p->x->constant[v.i].kind != RL_ABSENT) return;
    rl_pin pin = {0, out, v};
    rl_lay rows = rl_lay_rows(x->rank);
    uint32_t lay = intern(p, lies ? lies : &rows);
    rl_probe_op op = {.step = RL_NONE, .type = out ? "input" : "output", .name = x->name ? x->name : "", .npin = 1, .pin = rl_copy(p->mem, &pin, sizeof pin)};
    rl_push(p->mem, op.cfg, ((rl_probe_cfg){.lay = rl_copy(p->mem, &lay, sizeof lay), .impl = rl_internz(p->x->g->ctx, "-")}));
    rl_push(p->mem, p->op, op);
    if (out) note_seen(a, v, lay);
    if (t) known_shape(a, v, t);
}

static rl_status probe_step(void *user, rl_frame *f, rl_step *s, rl_call *c) {
    prober *a = user;
    rl_probe *p = a->p;
    place at = {.npin = rl_native_pins(p->x, s, at.pin), .kind = rl_native_kind_of(p->x, s)};
    rl_tensor y;
    (void)f;
    if (!at.npin) return probe_fixed(a, c);
    if (at.kind != RL_NATIVE_NONE) RL_TRY(find_output(a, c, &y, NULL));
    for (uint32_t i = 0; i < at.npin; i++) {
        const rl_tensor *x = at.pin[i].out ? NULL : c->in[at.pin[i].slot];
        at.now[i] = rl_lay_rows(rl_val(p->x->g, at.pin[i].v)->rank);
        if (!x) continue;
        if (x->kind != RL_TENSOR || x->rank != at.now[i].rank) return rl_call_fail(c, RL_EMODEL, "input %u has another rank than it should", at.pin[i].slot);
        rl_lay_of(x, &at.now[i]);
        known_shape(a, at.pin[i].v, x);
        if (!a->seen[at.pin[i].v.i].n) add_outside(a, at.pin[i].v, true, &at.now[i], x); /* made by a step of which no plan speaks */
    }
    rl_probe_op op = {.step = (uint32_t)(s - p->x->step), .type = s->info->type, .name = name_of(p->x, s->info), .npin = at.npin,
                      .pin = rl_copy(p->mem, at.pin, at.npin * sizeof *at.pin)};
    if (at.kind != RL_NATIVE_NONE) RL_TRY(try_kinds(a, &op, c, &at, &y));
    else RL_TRY(try_orders(a, &op, c, &at));
    if (!op.cfg.n) { /* nothing optimized: as it is */
        at.accept = true;
        at.kind = RL_NATIVE_NONE;
        RL_TRY(try_orders(a, &op, c, &at));
    }
    if (!op.cfg.n) return rl_call_fail(c, RL_ELIMIT, "its outputs lie in no order of their dims");
    for (uint32_t i = 0; i < op.cfg.n; i++)
        for (uint32_t k = 0; k < op.npin; k++)
            if (op.pin[k].out) note_seen(a, op.pin[k].v, op.cfg.p[i].lay[k]);
    rl_push(p->mem, p->op, op);
    return RL_OK;
}

/* ---- moves ---- */

static int64_t measure_move(prober *a, uint32_t v, const rl_lay *from, const rl_lay *to) {
    rl_rt *rt = a->p->x->rt;
    const rl_tensor *s = &a->shape[v];
    rl_text t = {.mem = a->p->mem};
    rl_put(&t, "%smove", a->table ? "table " : "");
    put_dims(&t, s);
    rl_put(&t, " ");
    rl_lay_put(from, &t);
    rl_put(&t, " ");
    rl_lay_put(to, &t);
    uint64_t key = rl_hash_bytes(t.p, t.n);
    const rl_cost_row *known = rl_costs_find(a->costs, key);
    if (known && known->impl) {
        a->p->known++;
        return known->ns;
    }
    rl_cost_row row = {.ns = 300 + bytes_of(s) / 4, .impl = rl_internz(rt->ctx, "move")};
    if (!a->table) {
        rl_tensor x = rl_lay_new(rt, from, s->dim), y = rl_lay_new(rt, to, s->dim);
        memset(x.mem->p, 0, x.mem->nbyte);
        double best = 1e9, all = 0;
        for (uint32_t i = 0; i < LEAST + 1 || (i < MOST && all < ENOUGH); i++) {
            if (!a->cold.mem) make_cold(a);
            a->sink += read_lines(a->cold.mem->p, a->cold.mem->nbyte) + read_lines(x.mem->p, x.mem->nbyte);
            double start = rl_bench_now(!rt->pool);
            rl_lay_move(rt, &y, to, &x, from, s->dim[1]);
            double took = rl_bench_now(!rt->pool) - start;
            best = RL_MIN(best, took);
            all += took;
        }
        row.ns = (int64_t)(best * 1e9);
        rl_tensor_drop(&x);
        rl_tensor_drop(&y);
        a->p->measured++;
    }
    rl_costs_put(a->costs, key, &row);
    return row.ns;
}

/* Layouts are few: fewer than 65536. */
static uint64_t move_key(uint32_t value, uint32_t from, uint32_t to) {
    return (uint64_t)value << 32 | (uint64_t)(from & 0xffff) << 16 | (to & 0xffff);
}

int64_t rl_probe_move_cost(const rl_probe *p, uint32_t value, uint32_t from, uint32_t to) {
    if (from == to) return 0;
    uint32_t i = rl_hash_get(&p->move_at, move_key(value, from, to));
    return i == RL_NONE ? INT64_MAX : p->move.p[i].ns;
}

/* From each layout that a value may be made in to each that a reader may want. */
static void find_moves(prober *a) {
    rl_probe *p = a->p;
    for (uint32_t i = 0; i < p->op.n; i++) {
        const rl_probe_op *op = &p->op.p[i];
        for (uint32_t k = 0; k < op->npin; k++) {
            uint32_t v = op->pin[k].v.i;
            for (uint32_t j = 0; !op->pin[k].out && j < op->cfg.n; j++)
                for (uint32_t m = 0; m < a->seen[v].n; m++) {
                    uint32_t from = a->seen[v].p[m], to = op->cfg.p[j].lay[k];
                    if (rl_probe_move_cost(p, v, from, to) != INT64_MAX) continue;
                    int64_t ns = measure_move(a, v, &p->lay.p[from], &p->lay.p[to]);
                    rl_hash_put(&p->move_at, move_key(v, from, to), p->move.n);
                    rl_push(p->mem, p->move, ((rl_probe_move){v, from, to, ns}));
                }
        }
    }
}

rl_status rl_probe_run(rl_exec *x, const rl_tensor *in, rl_costs *costs, bool table, rl_probe *out) {
    const rl_graph *g = x->g;
    prober a = {.p = out, .costs = costs, .table = table};
    *out = (rl_probe){.mem = costs->mem, .x = x, .move_at = {.mem = costs->mem}};
    a.seen = rl_alloc_array(out->mem, g->nval + 1u, sizeof *a.seen);
    a.shape = rl_new(out->mem, rl_tensor, g->nval + 1);
    rl_tensor *made = rl_new(out->mem, rl_tensor, g->output.n + 1);
    for (uint32_t i = 0; i < g->input.n; i++) add_outside(&a, g->input.p[i], true, NULL, &in[i]);
    x->probe = probe_step;
    x->probe_user = &a;
    rl_status s = rl_exec_run(x, in, made);
    x->probe = NULL;
    x->probe_user = NULL;
    RL_TRY(s);
    for (uint32_t i = 0; i < g->output.n; i++) {
        add_outside(&a, g->output.p[i], false, NULL, made[i].kind == RL_TENSOR ? &made[i] : NULL);
        rl_tensor_drop(&made[i]);
    }
    find_moves(&a);
    rl_tensor_drop(&a.cold);
    return RL_OK;
}
