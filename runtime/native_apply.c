/* Makes a prepared graph run as a plan says: see native.h. */
#include <stdio.h>
#include <string.h>

#include "../src/onnx.h"
#include "../src/onnx_fields.h"
#include "../src/wire.h"
#include "fuse.h"
#include "native.h"

/* A value in one more layout. */
typedef struct { uint32_t of; rl_lay lay; rl_value v; } duplicate;

typedef struct {
    rl_exec *x;
    const rl_native_op **op; /* [step] NULL: the plan says nothing */
    uint32_t nval;           /* values before */
    rl_lay *made;            /* [nval] how it is made; rank 0: not known */
    rl_value *as;            /* [nval] the value that holds it so */
    struct { duplicate *p; uint32_t n, cap; } more;
    struct { rl_step *p; uint32_t n, cap; } step;
} applier;

/* ---- values ---- */

/* Like v, that lies so. */
static rl_value new_value(const applier *a, rl_value like, const rl_lay *lay) {
    rl_graph *g = a->x->g;
    rl_dim dim[RL_LAY_RANK + 1];
    rl_value v = rl_graph_value(g, NULL);
    uint32_t rank = rl_val(g, like)->rank;
    memcpy(dim, rl_val(g, like)->dim, rank * sizeof *dim);
    if (lay->block) dim[1] = (dim[1] + lay->block - 1) / lay->block, dim[rank++] = lay->block;
    rl_graph_set_type(g, v, rl_val(g, like)->dtype, rank, dim);
    return v;
}

static void add_move(applier *a, rl_value of, rl_value to, const rl_lay *lay) {
    rl_graph *g = a->x->g;
    rl_nodeinfo *n = rl_new(&g->mem, rl_nodeinfo, 1);
    rl_native *how = rl_new(&g->mem, rl_native, 1);
    int64_t *channels = rl_new(&g->mem, int64_t, 1);
    rl_lay from = a->made[of.i].rank ? a->made[of.i] : rl_lay_rows(lay->rank);
    rl_step s = {.node = RL_NONODE, .info = n, .native = how};
    *n = (rl_nodeinfo){.op = RL_OP_MOVE, .domain = rl_internz(g->ctx, ""), .type = rl_internz(g->ctx, "Move"), .nin = 1, .nout = 1, .since = 1,
                       .in = rl_copy(&g->mem, &a->as[of.i], sizeof of), .out = rl_copy(&g->mem, &to, sizeof to), .origin = RL_NONE};
    int64_t count = from.block || lay->block ? rl_val(g, of)->dim[1] : 0;
    if (from.block) channels[0] = count;
    *how = (rl_native){.kind = RL_NATIVE_MOVE, .moves = of, .in = from, .out = *lay, .channels = channels, .nout = count};
    rl_push(&g->mem, s.kernel, rl_native_kernel(how));
    s.body = rl_new(&g->mem, rl_exec *, 1);
    rl_push(&g->mem, a->step, s);
}

/* The value that holds v in this layout, moved there now if none does yet. */
static rl_value in_layout(applier *a, rl_value v, const rl_lay *lay) {
    if (rl_lay_same(&a->made[v.i], lay)) return a->as[v.i];
    for (uint32_t i = 0; i < a->more.n; i++)
        if (a->more.p[i].of == v.i && rl_lay_same(&a->more.p[i].lay, lay)) return a->more.p[i].v;
    rl_value to = new_value(a, v, lay);
    add_move(a, v, to, lay);
    rl_push(&a->x->g->mem, a->more, ((duplicate){v.i, *lay, to}));
    return to;
}

/* ---- steps ---- */

/* Who knows nothing of layouts reads no blocked value. */
static rl_value strided(applier *a, rl_value v) {
    if (!rl_has(v) || v.i >= a->nval || !a->made[v.i].block) return rl_has(v) && v.i < a->nval ? a->as[v.i] : v;
    rl_lay rows = rl_lay_rows(a->made[v.i].rank);
    return in_layout(a, v, &rows);
}

/* Outputs of the graph, and what bodies read by name, are row-major under their own name. */
static bool keeps_name(const applier *a, rl_value v) {
    const rl_valinfo *t = rl_val(a->x->g, v);
    bool kept = t->is_output;
    for (uint32_t i = 0; i < t->nuse; i++) kept = kept || t->use[i].slot >= rl_nod(a->x->g, t->use[i].node)->nin;
    return kept;
}

static void make_output(applier *a, rl_value *out, const rl_lay *lay) {
    rl_value v = *out;
    rl_lay rows = rl_lay_rows(lay->rank);
    bool kept = keeps_name(a, v) && !rl_lay_same(lay, &rows);
    a->made[v.i] = *lay;
    if (!lay->block && !kept) return;
    *out = a->as[v.i] = new_value(a, v, lay);
}

/* After the step: the name's own value. */
static void keep_name(applier *a, rl_value v) {
    if (!a->made[v.i].rank || !keeps_name(a, v) || rl_same(a->as[v.i], v)) return;
    rl_lay rows = rl_lay_rows(a->made[v.i].rank);
    add_move(a, v, v, &rows);
    rl_push(&a->x->g->mem, a->more, ((duplicate){v.i, rows, v}));
}

/* What a joined step read and made in `was`, its parts do in what the step has now (a native one's: rl_native_device_plain). */
static void rename_parts(rl_arena *mem, rl_step *s, const rl_nodeinfo *was) {
    const rl_nodeinfo *now = s->info;
    if (s->npart) s->part = rl_copy(mem, s->part, s->npart * sizeof *s->part);
    for (uint32_t i = 0; i < s->npart; i++) {
        rl_nodeinfo *n = rl_copy(mem, s->part[i].info, sizeof *n);
        n->in = rl_copy(mem, n->in, n->nin * sizeof *n->in);
        n->out = rl_copy(mem, n->out, n->nout * sizeof *n->out);
        for (uint32_t k = 0; k < was->nin; k++)
            for (uint32_t j = 0; j < n->nin; j++)
                if (rl_has(was->in[k]) && rl_same(s->part[i].info->in[j], was->in[k])) n->in[j] = now->in[k];
        for (uint32_t j = 0; j < n->nout; j++)
            if (rl_has(n->out[j]) && rl_same(n->out[j], was->out[0])) n->out[j] = now->out[0];
        s->part[i].info = n;
    }
}

static void apply_step(applier *a, uint32_t at) {
    rl_exec *x = a->x;
    rl_arena *mem = &x->g->mem;
    rl_step s = x->step[at];
    const rl_native_op *op = a->op[at];
    rl_pin pin[RL_PINS];
    uint32_t npin = op ? rl_native_pins(x, &s, pin) : 0, k = 0;
    rl_native *native = op && !op->plain ? rl_native_of(x, &s, pin, npin, op->lay) : NULL;
    rl_nodeinfo *n = rl_copy(mem, s.info, sizeof *n);
    n->in = rl_copy(mem, n->in, n->nin * sizeof *n->in);
    n->out = rl_copy(mem, n->out, n->nout * sizeof *n->out);
    for (uint32_t i = 0; i < n->nin; i++) {
        bool told = k < npin && !pin[k].out && pin[k].slot == i;
        n->in[i] = told ? in_layout(a, pin[k].v, &op->lay[k]) : strided(a, n->in[i]);
        k += told;
    }
    for (; k < npin; k++) make_output(a, &n->out[pin[k].slot], &op->lay[k]);
    s.info = n;
    if (op && !op->plain && rl_native_kind_of(x, &x->step[at]) == RL_NATIVE_PRODUCT) s.order = rl_native_order(mem, &op->lay[npin - 1]);
    const rl_kernel *kernel = native ? rl_native_kernel(native) : NULL;
    s.native = native;
    if (!native) rename_parts(mem, &s, x->step[at].info);
    if (kernel) rl_run_by(x, &s, kernel);
    rl_push(mem, a->step, s);
    for (uint32_t i = 0; i < x->step[at].info->nout; i++)
        if (rl_has(x->step[at].info->out[i])) keep_name(a, x->step[at].info->out[i]);
}

static void apply(rl_exec *x, const rl_native_plan *p) {
    rl_graph *g = x->g;
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    applier a = {.x = x, .nval = g->nval, .op = rl_new(&tmp, const rl_native_op *, x->nstep + 1)};
    a.made = rl_new(&tmp, rl_lay, g->nval + 1);
    a.as = rl_new(&tmp, rl_value, g->nval + 1);
    for (uint32_t v = 0; v < g->nval; v++) a.as[v] = (rl_value){v};
    for (uint32_t i = 0; i < p->nop; i++) a.op[p->op[i].step] = &p->op[i];
    for (uint32_t i = 0; i < x->nstep; i++) apply_step(&a, i);
    x->step = a.step.p;
    x->nstep = a.step.n;
    x->constant = rl_grow(&g->mem, x->constant, a.nval, g->nval, sizeof *x->constant);
    x->outer = rl_grow(&g->mem, x->outer, a.nval, g->nval, sizeof *x->outer);
    for (uint32_t v = a.nval; v < g->nval; v++) x->outer[v] = RL_NONE;
    rl_arena_free(&tmp);
}

/* ---- which plan ---- */

rl_str rl_native_key(rl_ctx *ctx, const char *device) {
    char key[64];
    snprintf(key, sizeof key, RL_NATIVE_KEY "%s%.40s", device ? "." : "", device ? device : "");
    return rl_internz(ctx, key);
}

rl_span rl_native_text(const rl_graph *g, const char *device) {
    rl_str name = rl_native_key(g->ctx, device);
    rl_span found = {0};
    rl_wire w = rl_wire_of(rl_onnx_bytes(g));
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != MODEL_METADATA || f.type != RL_WIRE_LEN) continue;
        rl_span key = rl_wire_part(f.body, ENTRY_KEY);
        if (key.n == strlen(name) && rl_same_bytes(key.p, name, key.n)) found = rl_wire_part(f.body, ENTRY_VALUE);
    }
    return found;
}

rl_status rl_native_load(rl_exec *x) {
    rl_rt *rt = x->rt;
    rl_native_plan p;
    rl_span text = rt->native.p ? rt->native : rl_native_text(x->g, rt->device ? rt->device->name : NULL);
    if (!text.p || rt->no_plan || !rl_native_ways_of(rt)) return RL_OK;
    rl_status s = rl_native_parse(x, (const char *)text.p, text.n, &p);
    if (s != RL_OK && rt->native.p) return s;
    if (s != RL_OK) {
        rl_log(rt->ctx, RL_LOG_WARNING, "the model's plan is left out: %s", rt->ctx->error);
        rt->ctx->error[0] = 0;
        return RL_OK;
    }
    rl_arena tmp;
    rl_arena_init(&tmp, rt->ctx);
    rl_text here = {.mem = &tmp};
    rl_native_machine(rt, &here);
    bool same = strlen(p.machine) == here.n && rl_same_bytes(p.machine, here.p, here.n);
    if (!same) rl_log(rt->ctx, RL_LOG_WARNING, "the plan is of another machine: %.160s", p.machine);
    rl_arena_free(&tmp);
    if (same || rt->native.p) apply(x, &p);
    return RL_OK;
}
