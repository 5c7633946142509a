/* Which layouts each step may have, and what steps and moves cost there: see native_probe.h. */
#include "native_probe.h"

#include <math.h>
#include <string.h>

#include "native_meter.h"

#define ACCEPTED UINT64_C(0x5851f42d4c957f2d) /* another cost than that of the same on optimized kernels alone */
enum { CHOICES = 2 + RL_LAY_BLOCKED, CONFIGS = 24, FAR = 3 }; /* of a step; times as slow as without a plan, how slow exactly is no matter */

typedef struct {
    rl_probe *p;
    rl_costs *costs;
    rl_meter meter;
    struct { uint32_t *p; uint32_t n, cap; } *seen; /* [value] layouts in which it may be made */
    rl_tensor *shape;                               /* [value] its dims, RL_ABSENT: not seen */
    const rl_whole *whole;                          /* NULL: nothing is timed */
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

/* ---- one configuration ---- */

/* Inputs of the call moved to these layouts. */
static void move_inputs(const rl_call *c, const rl_pin *pin, uint32_t npin, const rl_lay *now, const rl_lay *lay, const rl_tensor **in, rl_tensor *made) {
    for (uint32_t i = 0; i < npin && !pin[i].out; i++) {
        const rl_tensor *x = c->in[pin[i].slot];
        if (rl_lay_same(&now[i], &lay[i])) continue;
        const rl_backend *was = c->rt->on;
        c->rt->on = x->mem->on;
        made[i] = rl_lay_new(c->rt, x->dtype, &lay[i], x->dim);
        c->rt->on = was;
        rl_lay_move(c->rt, &made[i], &lay[i], x, &now[i], x->dim[1]);
        in[pin[i].slot] = &made[i];
    }
}

/* own: has_own_way; base: the step as it runs without a plan, measured alone; here: the same in a run of the model. */
typedef struct {
    rl_pin pin[RL_PINS];
    rl_lay now[RL_PINS];
    uint32_t npin;
    rl_native_kind kind;
    bool accept, own, gone; /* gone: in a run of the model another step does it */
    rl_cost_row base;
    int64_t here;
} place;

/* What the step takes so, measured alone: now, or before. */
static rl_status find_row(prober *a, const rl_call *c, const place *at, const rl_lay *lay, bool chosen, rl_cost_row *row) {
    rl_probe *p = a->p;
    uint64_t key = rl_meter_key(c, at->pin, at->npin, lay, chosen, a->meter.table) ^ (at->accept ? ACCEPTED : 0);
    const rl_cost_row *known = rl_costs_find(a->costs, key);
    if (known) {
        *row = *known;
        p->known++;
        return RL_OK;
    }
    const rl_tensor **in = rl_meter_inputs(c);
    rl_tensor *made = rl_new(c->tmp, rl_tensor, RL_PINS);
    rl_native *n = chosen ? rl_native_of(p->x, c->step, at->pin, at->npin, lay) : NULL;
    rl_call call = *c;
    call.in = in;
    call.out = rl_new(c->tmp, rl_tensor, c->nout + 1);
    move_inputs(c, at->pin, at->npin, at->now, lay, in, made);
    if (n) n->strict = true;
    a->meter.bar = at->base.impl ? FAR * at->base.ns : 0;
    rl_order order = c->step->order;
    if (chosen && at->kind == RL_NATIVE_PRODUCT) c->step->order = rl_native_order(c->tmp, &lay[at->npin - 1]);
    RL_TRY(rl_meter_config(&a->meter, &call, at->pin, at->npin, lay, n, at->accept, row));
    c->step->order = order;
    for (uint32_t i = 0; i < RL_PINS; i++) rl_tensor_drop(&made[i]);
    c->rt->ctx->error[0] = 0;
    p->measured += !a->meter.table;
    rl_costs_put(a->costs, key, row);
    return RL_OK;
}

/* What it takes in a run of the model: what runs without a plan as long as it does there, others as much longer as they take alone.  Where
 * that is a view, or the model leaves it little to do (a Concat whose pieces stand there), how many times as long says nothing.  Of two that
 * take as long, what runs without a plan is to be taken.  What another step does costs nothing while it does; in other layouts it takes what
 * it takes alone, but a Concat, whose pieces may stand there in blocks, too. */
static int64_t cost_here(const prober *a, const place *at, int64_t ns, bool as_is) {
    enum { TINY = 2000 };
    int64_t more = ns - at->base.ns;
    if (a->whole && as_is) return at->here;
    if (!a->whole || !at->base.impl) return ns;
    if (at->gone) return at->kind == RL_NATIVE_CONCAT ? 1 : RL_MAX(ns, 1);
    if (fabs((double)more) <= RL_PROBE_NOISE * (double)at->base.ns) return at->here + 1;
    double scale = at->base.ns < TINY ? 1 : RL_MIN((double)at->here / (double)at->base.ns, 2.0);
    return RL_MAX(at->here + (int64_t)((double)more * scale), 0);
}

/* The configuration, unless there is one with these layouts that is as cheap. */
static void add_config(rl_probe *p, rl_probe_op *op, uint32_t npin, const rl_probe_cfg *cfg) {
    for (uint32_t i = 0; i < op->cfg.n; i++) {
        if (!rl_same_bytes(op->cfg.p[i].lay, cfg->lay, npin * sizeof *cfg->lay)) continue;
        if (cfg->ns < op->cfg.p[i].ns) op->cfg.p[i] = *cfg;
        return;
    }
    rl_push(p->mem, op->cfg, *cfg);
}

/* Does the kernel choose how the output lies, where no plan does? */
static bool has_own_way(rl_native_kind kind) {
    return kind == RL_NATIVE_CONV || kind == RL_NATIVE_POOL || kind == RL_NATIVE_PRODUCT;
}

/* Convolutions and pools are channels-last on both sides without a plan, too. */
static bool runs_so_anyway(const place *at, const rl_lay *lay) {
    rl_lay last = rl_lay_last(lay[0].rank);
    return at->kind != RL_NATIVE_PRODUCT && at->base.nout == 1 && rl_lay_same(&lay[0], &at->now[0]) && rl_lay_same(&lay[at->npin - 1], &at->base.out[0]) &&
           rl_lay_same(&lay[0], &last);
}

/* One configuration of the op, if it has an optimized kernel; lay: of the inputs, and of the outputs where these are chosen. */
static rl_status try_config(prober *a, rl_probe_op *op, const rl_call *c, const place *at, const rl_lay *lay, bool plain) {
    rl_probe *p = a->p;
    bool chosen = !plain && has_own_way(at->kind);
    for (uint32_t i = 0; i < at->npin; i++) chosen = chosen || lay[i].block;
    if (chosen && runs_so_anyway(at, lay)) return RL_OK;
    if (!rl_native_allows(p->x, c->step, at->pin, at->npin, lay)) return RL_OK;
    rl_cost_row row = at->base;
    if (!plain || !at->base.impl) RL_TRY(find_row(a, c, at, lay, chosen, &row));
    if (!row.impl) return RL_OK;
    bool as_is = !chosen;
    for (uint32_t i = 0; i < at->npin; i++) as_is = as_is && (at->pin[i].out || rl_lay_same(&lay[i], &at->now[i]));
    rl_probe_cfg cfg = {.lay = rl_new(p->mem, uint32_t, at->npin + 1), .ns = cost_here(a, at, row.ns, as_is), .impl = row.impl,
                        .plain = plain, .as_is = as_is};
    for (uint32_t i = 0, k = 0; i < at->npin; i++) {
        cfg.lay[i] = intern(p, at->pin[i].out ? &row.out[k] : &lay[i]);
        k += at->pin[i].out;
    }
    add_config(p, op, at->npin, &cfg);
    return RL_OK;
}

/* ---- the configurations of a step ---- */

/* Layouts that are worth asking for of a value with channels. */
static uint32_t choices(const rl_rt *rt, const rl_tensor *x, rl_lay *to) {
    rl_lay all[CHOICES] = {rl_lay_last(x->rank), rl_lay_rows(x->rank)};
    uint32_t n = 0;
    for (uint32_t i = 0; i < RL_LAY_BLOCKED; i++) all[2 + i] = rl_lay_nth(x->rank, i);
    for (uint32_t i = 0; i < CHOICES; i++) {
        bool fills = x->rank >= 4 && (x->dim[1] >= all[i].block || all[i].block == 4);
        if (i >= 2 && (!all[i].rank || !fills || !rl_native_ways_of(rt)->blocks(x->dtype, &all[i]))) continue;
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
    rl_lay in[CHOICES], out[CHOICES], lay[RL_PINS];
    uint32_t nin = choices(c->rt, c->in[at->pin[0].slot], in), nout = choices(c->rt, y, out);
    if (at->base.impl) RL_TRY(try_config(a, op, c, at, at->now, at->own));
    if (at->kind == RL_NATIVE_CONV) {
        for (uint32_t i = 0; i < nin; i++)
            for (uint32_t k = 0; k < nout; k++) {
                follow(a, c, at, &out[k], lay);
                lay[0] = in[i];
                RL_TRY(try_config(a, op, c, at, lay, false));
            }
        return RL_OK;
    }
    for (uint32_t i = 0; at->kind == RL_NATIVE_GLOBAL && i < nin; i++) {
        memcpy(lay, at->now, at->npin * sizeof *lay);
        lay[0] = in[i];
        RL_TRY(try_config(a, op, c, at, lay, false));
    }
    for (uint32_t k = 0; at->kind != RL_NATIVE_GLOBAL && k < nout; k++) {
        follow(a, c, at, &out[k], lay);
        RL_TRY(try_config(a, op, c, at, lay, false));
    }
    return RL_OK;
}

/* A step that takes what comes: as it comes, row-major, and as it may be made. */
static rl_status try_orders(prober *a, rl_probe_op *op, const rl_call *c, const place *at) {
    rl_lay lay[RL_PINS];
    RL_TRY(try_config(a, op, c, at, at->now, at->own));
    for (uint32_t i = 0; i < at->npin; i++) {
        uint32_t v = at->pin[i].v.i;
        for (uint32_t k = 0; !at->pin[i].out && k <= a->seen[v].n && op->cfg.n < CONFIGS; k++) {
            rl_lay with = k ? a->p->lay.p[a->seen[v].p[k - 1]] : rl_lay_rows(at->now[i].rank);
            if (with.block) continue;
            memcpy(lay, at->now, at->npin * sizeof *lay);
            for (uint32_t j = 0; j < at->npin && !at->pin[j].out; j++)
                if (lay[j].rank == with.rank) lay[j] = rl_lay_normal(&with, c->in[at->pin[j].slot]->dim);
            RL_TRY(try_config(a, op, c, at, lay, at->own));
        }
    }
    return RL_OK;
}

/* A product of batches: row-major, and with the two dims before the last swapped (the merge of heads). */
static rl_status try_products(prober *a, rl_probe_op *op, const rl_call *c, const place *at, const rl_tensor *y) {
    rl_lay lay[RL_PINS], rows = rl_lay_rows(y->rank), swapped = rows;
    RL_TRY(try_orders(a, op, c, at));
    swapped.perm[y->rank - 3] = (uint8_t)(y->rank - 2), swapped.perm[y->rank - 2] = (uint8_t)(y->rank - 3);
    for (uint32_t k = 0; k < 2; k++) {
        memcpy(lay, at->now, at->npin * sizeof *lay);
        lay[at->npin - 1] = rl_lay_normal(k ? &swapped : &rows, y->dim);
        RL_TRY(try_config(a, op, c, at, lay, false));
    }
    return RL_OK;
}

static rl_status try_all(prober *a, rl_probe_op *op, const rl_call *c, place *at, const rl_tensor *y) {
    if (at->kind == RL_NATIVE_PRODUCT) RL_TRY(try_products(a, op, c, at, y));
    else if (at->kind != RL_NATIVE_NONE) RL_TRY(try_kinds(a, op, c, at, y));
    else RL_TRY(try_orders(a, op, c, at));
    if (op->cfg.n) return RL_OK;
    at->accept = true; /* nothing optimized: as it is */
    at->kind = RL_NATIVE_NONE;
    return try_orders(a, op, c, at);
}

/* ---- steps ---- */

static void known_shape(prober *a, rl_value v, const rl_tensor *t) {
    if (a->shape[v.i].kind != RL_ABSENT) return;
    a->shape[v.i] = *t;
    a->shape[v.i].mem = NULL;
}

/* A step that has no layouts: what is left of the whole, once those that have some are taken off, is theirs. */
static rl_status probe_fixed(prober *a, const rl_call *c) {
    rl_tensor y;
    int64_t ns = 0;
    if (a->whole) return RL_OK;
    RL_TRY(rl_meter_plain(c, &y, &ns));
    a->p->fixed += ns;
    a->p->known++;
    return RL_OK;
}

/* The step as it runs without a plan: what others are compared with. */
static rl_status find_base(prober *a, const rl_call *c, place *at) {
    at->accept = true;
    RL_TRY(find_row(a, c, at, at->now, false, &at->base));
    at->accept = false;
    if (!a->whole) return RL_OK;
    int64_t here = a->whole->step[c->step - a->p->x->step];
    at->gone = here < 0;
    at->here = RL_MAX(here, 0);
    a->p->fixed -= at->here;
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
    if (!(rl_native_ways_of(p->x->rt)->types & RL_T(x->dtype)) || x->rank < 3 || x->rank > RL_LAY_RANK || p->x->constant[v.i].kind != RL_ABSENT) return;
    rl_pin pin = {0, out, v};
    rl_lay rows = rl_lay_rows(x->rank);
    uint32_t lay = intern(p, lies ? lies : &rows);
    rl_probe_op op = {.step = RL_NONE, .outside = true, .type = out ? "input" : "output", .name = x->name ? x->name : "", .npin = 1, .pin = rl_copy(p->mem, &pin, sizeof pin)};
    rl_probe_cfg cfg = {.lay = rl_copy(p->mem, &lay, sizeof lay), .impl = rl_internz(p->x->g->ctx, "-"), .as_is = true};
    rl_push(p->mem, op.cfg, cfg);
    rl_push(p->mem, p->op, op);
    if (out) note_seen(a, v, lay);
    if (t) known_shape(a, v, t);
}

/* A step whose outputs lie in no order of their dims: it reads as it does without a plan, or row-major. */
static void add_reader(const prober *a, rl_probe_op *op, const place *at) {
    op->outside = true;
    op->npin = 0;
    while (op->npin < at->npin && !at->pin[op->npin].out) op->npin++;
    for (uint32_t k = 0; k < 2; k++) {
        rl_probe_cfg cfg = {.lay = rl_new(a->p->mem, uint32_t, op->npin + 1), .ns = at->here, .impl = rl_internz(a->p->x->g->ctx, "-"),
                            .plain = true, .as_is = !k};
        for (uint32_t i = 0; i < op->npin; i++) {
            rl_lay rows = rl_lay_rows(at->now[i].rank);
            cfg.lay[i] = intern(a->p, k ? &rows : &at->now[i]);
        }
        add_config(a->p, op, op->npin, &cfg);
    }
}

static rl_status probe_step(void *user, rl_frame *f, rl_step *s, rl_call *c) {
    prober *a = user;
    rl_probe *p = a->p;
    place at = {.npin = rl_native_pins(p->x, s, at.pin), .kind = rl_native_kind_of(p->x, s)};
    rl_tensor y;
    (void)f;
    at.own = has_own_way(at.kind);
    if (!at.npin) return probe_fixed(a, c);
    if (at.kind != RL_NATIVE_NONE) RL_TRY(rl_meter_plain(c, &y, NULL));
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
    RL_TRY(find_base(a, c, &at));
    op.here = at.here;
    RL_TRY(try_all(a, &op, c, &at, &y));
    if (!op.cfg.n) add_reader(a, &op, &at);
    for (uint32_t i = 0; i < op.cfg.n; i++)
        for (uint32_t k = 0; k < op.npin; k++)
            if (op.pin[k].out) note_seen(a, op.pin[k].v, op.cfg.p[i].lay[k]);
    rl_push(p->mem, p->op, op);
    return RL_OK;
}

/* ---- moves ---- */

static int64_t find_move(prober *a, uint32_t v, const rl_lay *from, const rl_lay *to) {
    const rl_tensor *shape = &a->shape[v];
    uint64_t key = rl_meter_move_key(&a->meter, shape, from, to);
    const rl_cost_row *known = rl_costs_find(a->costs, key);
    int64_t around = a->p->around; /* it is a step of its own */
    if (known && known->impl) {
        a->p->known++;
        return rl_add(known->ns, around);
    }
    rl_cost_row row = {.ns = rl_meter_move(&a->meter, shape, from, to), .impl = rl_internz(a->p->x->g->ctx, "move")};
    a->p->measured += !a->meter.table;
    rl_costs_put(a->costs, key, &row);
    return rl_add(row.ns, around);
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
                    int64_t ns = find_move(a, v, &p->lay.p[from], &p->lay.p[to]);
                    rl_hash_put(&p->move_at, move_key(v, from, to), p->move.n);
                    rl_push(p->mem, p->move, ((rl_probe_move){v, from, to, ns}));
                }
        }
    }
}

static int as_is_layout(const rl_probe *p, uint32_t value) {
    for (uint32_t i = 0; i < p->op.n; i++)
        for (uint32_t k = 0; k < p->op.p[i].npin; k++)
            for (uint32_t c = 0; p->op.p[i].pin[k].out && p->op.p[i].pin[k].v.i == value && c < p->op.p[i].cfg.n; c++)
                if (p->op.p[i].cfg.p[c].as_is) return (int)p->op.p[i].cfg.p[c].lay[k];
    return -1;
}

/* Without a plan an output that lies otherwise becomes row-major behind the run (bench.h), which is part of what the model takes. */
static void take_off_deliveries(rl_probe *p) {
    for (uint32_t i = 0; i < p->op.n; i++) {
        const rl_probe_op *o = &p->op.p[i];
        if (o->step != RL_NONE || o->pin[0].out) continue;
        int made = as_is_layout(p, o->pin[0].v.i);
        if (made >= 0) p->fixed -= rl_probe_move_cost(p, o->pin[0].v.i, (uint32_t)made, o->cfg.p[0].lay[0]);
    }
}

rl_status rl_probe_run(rl_exec *x, const rl_tensor *in, rl_costs *costs, const rl_whole *whole, rl_probe *out) {
    const rl_graph *g = x->g;
    prober a = {.p = out, .costs = costs, .meter = {.x = x, .table = !whole}, .whole = whole};
    *out = (rl_probe){.mem = costs->mem, .x = x, .move_at = {.mem = costs->mem}};
    if (whole) out->fixed = out->whole = whole->ns, out->around = whole->around;
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
    if (whole) take_off_deliveries(out);
    rl_tensor_drop(&a.meter.cold);
    return RL_OK;
}
