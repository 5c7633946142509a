/* Explains what optimize does to a model: the same plan, and then reasons instead of a rewrite (explain.h).
 *
 * As in pipeline.c, a graph and the bodies in it are one plan (flat.h), and each model-local function has one of its own.  What came
 * of them tells whether the plan was carried out: a graph that was not made better keeps its own conversions.
 *
 * The names of nodes and tensors are those of the model as read, so the first plan is what is explained.  Where the rewritten model
 * lets a second plan do better, fewer conversions are written than are explained; the result says how many.
 *
 * Needs: a graph as read.  Breaks: constants are folded in it. */
#include "explain.h"
#include "flat.h"
#include "functions.h"

#include <string.h>

/* ---- places ---- */

static uint32_t find_place(rl_explainer *x, rl_hash *index, uint32_t cls, uint32_t order) {
    uint64_t key = ((uint64_t)cls << 24 | order) + 1;
    uint32_t i = rl_hash_get(index, key);
    if (i != RL_NONE) return i;
    rl_hash_put(index, key, x->place.n);
    rl_push(x->tmp, x->place, ((rl_explace){.cls = cls, .order = order, .slot = x->nslot, .conversion = RL_NONE}));
    x->nslot += x->p->cls.p[cls].order.n;
    return x->place.n - 1;
}

/* The op that makes a class: an operand that it writes, or the input itself. */
static bool is_maker(const rl_explainer *x, const rl_oplegal *op, uint32_t operand) {
    const rl_operand *o = &op->operand[operand];
    return o->out || (op->node.i == RL_NONE && rl_same(o->tensor, x->p->cls.p[o->cls].first) && rl_val(x->g, o->tensor)->def.i == RL_NONE);
}

static void name_places(rl_explainer *x) {
    rl_hash index = {.mem = x->tmp};
    x->at = rl_new(x->tmp, uint32_t *, x->p->op.n + 1);
    x->base = rl_new(x->tmp, uint32_t, x->p->cls.n + 1);
    memset(x->base, 0xff, x->p->cls.n * sizeof *x->base);
    for (uint32_t k = 0; k < x->p->op.n; k++) {
        const rl_oplegal *op = &x->p->op.p[k];
        x->at[k] = rl_new(x->tmp, uint32_t, op->npin + 1);
        RL_EACH_PIN(op, o, pin) {
            uint32_t i = find_place(x, &index, op->operand[o].cls, rl_pin_order(op, x->cfg[k], pin));
            x->at[k][pin] = i;
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): find_place made it */
            x->place.p[i].npin++;
            if (is_maker(x, op, o)) x->base[op->operand[o].cls] = i;
        }
    }
}

static void list_pins(rl_explainer *x) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->place.n; i++) {
        x->place.p[i].first = n;
        n += x->place.p[i].npin;
        x->place.p[i].npin = 0;
    }
    x->pin = rl_new(x->tmp, rl_expin, n + 1);
    x->meeting = rl_new(x->tmp, uint32_t, x->place.n + 1);
    memset(x->meeting, 0xff, x->place.n * sizeof *x->meeting);
    for (uint32_t k = 0; k < x->p->op.n; k++) {
        const rl_oplegal *op = &x->p->op.p[k];
        RL_EACH_PIN(op, o, pin) {
            rl_explace *v = &x->place.p[x->at[k][pin]];
            x->pin[v->first + v->npin++] = (rl_expin){k, o, pin};
        }
    }
}

/* Every place of a class but its first is a conversion. */
static void list_joins(rl_explainer *x) {
    for (uint32_t i = 0; i < x->place.n; i++) {
        uint32_t cls = x->place.p[i].cls;
        if (x->base[cls] == RL_NONE) x->base[cls] = i; /* an initializer of unknown bytes: nobody makes it */
        if (x->base[cls] == i) {
            x->place.p[i].made = true;
            continue;
        }
        x->place.p[i].conversion = x->join.n;
        rl_push(x->tmp, x->join, ((rl_exjoin){i, x->base[cls]}));
    }
}

/* ---- one conversion ---- */

/* Lists the pins of the conflict by place; the nearest ops first in each list. */
static void gather(rl_explainer *x, rl_exjoin j, const rl_exids *op) {
    x->meet.n = 0;
    for (uint32_t i = op->n; i-- > 0;)
        for (uint32_t pin = x->p->op.p[op->p[i]].npin; pin-- > 0;) {
            uint32_t place = x->at[op->p[i]][pin] == j.place ? j.base : x->at[op->p[i]][pin];
            rl_push(x->tmp, x->meet, ((rl_exmeeting){i, pin, x->meeting[place]}));
            x->meeting[place] = x->meet.n - 1;
        }
}

static void scatter(rl_explainer *x, rl_exjoin j, const rl_exids *op) {
    for (uint32_t i = 0; i < op->n; i++)
        for (uint32_t pin = 0; pin < x->p->op.p[op->p[i]].npin; pin++)
            x->meeting[x->at[op->p[i]][pin] == j.place ? j.base : x->at[op->p[i]][pin]] = RL_NONE;
}

static const char *shape_of(const rl_explainer *x, rl_value v) {
    const rl_valinfo *k = rl_val(x->g, v);
    rl_text t = {.mem = x->mem};
    rl_put(&t, "%s[", rl_dtype_name(k->dtype));
    for (uint32_t i = 0; i < k->rank; i++) {
        if (i) rl_put(&t, ",");
        rl_dim_print(&t, x->g->ctx, k->dim[i]);
    }
    rl_put(&t, "]");
    return t.p;
}

static void add_readers(const rl_explainer *x, const rl_explace *v, rl_exconversion *c) {
    for (uint32_t i = 0; i < v->npin; i++) {
        rl_exwhat what;
        rl_node n = rl_exnode_at(x, x->pin[v->first + i].op, &what);
        rl_extensor port = rl_extensor_of(x, x->p->op.p[x->pin[v->first + i].op].operand[0].tensor);
        rl_exnode reader = {NULL, NULL, port.name, port.body};
        if (n.i != RL_NONE) reader = rl_exnode_of(x, n);
        bool again = c->reader.n && rl_exnode_same(&c->reader.p[c->reader.n - 1], &reader);
        if (!again) rl_push(x->mem, c->reader, reader);
    }
}

/* Without a conflict its own makers and readers give the names. */
static void own_ops(const rl_explainer *x, rl_exjoin j, rl_exids *op) {
    const uint32_t place[] = {j.base, j.place};
    for (size_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < x->place.p[place[k]].npin; i++) rl_push(x->now, *op, x->pin[x->place.p[place[k]].first + i].op);
}

static void put_orders(const rl_explainer *x, rl_exjoin j, const rl_exnames *names, rl_exconversion *c) {
    const rl_explace *made = &x->place.p[j.base], *needed = &x->place.p[j.place];
    const rl_cls *cls = &x->p->cls.p[made->cls];
    rl_exnames own = *names;
    c->made = rl_exwords(names, made->cls, cls->order.p[made->order].p, cls->natom);
    if (strchr(c->made, '*')) rl_exnames_of_tensor(x, cls->first, &own); /* some axes have no name there */
    c->made = rl_exwords(&own, made->cls, cls->order.p[made->order].p, cls->natom);
    c->needed = rl_exwords(&own, made->cls, cls->order.p[needed->order].p, cls->natom);
    c->axes_of = own.letters ? NULL : rl_extensor_of(x, own.ref).name;
}

static bool starts(const rl_exdemand *d, const rl_expath *path) {
    const rl_exstep *start = &path->p[0];
    if (!start->node.op) return !d->node.op && rl_extensor_same(&d->tensor.p[0], &start->tensor);
    /* Both ends of a Loop are one node: the tensor beside it tells. */
    return d->node.op && rl_exnode_same(&d->node, &start->node) && (path->n < 2 || rl_extensor_same(&d->tensor.p[0], &path->p[1].tensor));
}

/* The demand that the one path starts from stands first. */
static void sort_pair(rl_exconversion *c) {
    rl_exdemand first = c->demand.p[0];
    if (!starts(&c->demand.p[1], &c->path.p[0])) return;
    c->demand.p[0] = c->demand.p[1];
    c->demand.p[1] = first;
}

static rl_status reason(rl_explainer *x, rl_exsearch *s, rl_exjoin j, const rl_exids *op, rl_exverdict v, rl_exconversion *c) {
    rl_exnames names;
    rl_exnames_seed(x, j, op, x->p->cls.p[x->place.p[j.base].cls].first, &names);
    put_orders(x, j, &names, c);
    c->reason = v == RL_EX_FITS ? RL_EX_CHOICE : RL_EX_OPEN;
    if (v == RL_EX_FITS) return rl_explain_charges(x, s, j, c);
    if (v != RL_EX_CLASH) return RL_OK;
    RL_TRY(rl_explain_confirm(x, j, op));
    rl_explain_demands(x, s, j, op, &names, c);
    rl_explain_paths(x, j, op, c);
    rl_explain_remedies(x, s, j, op, &names, c);
    c->smallest &= !rl_exsearch_exhausted(s);
    c->reason = c->demand.n == 2 && c->path.n == 1 && !c->path.p[0].loop ? RL_EX_PAIR : RL_EX_TOGETHER;
    if (c->reason == RL_EX_PAIR) sort_pair(c);
    return RL_OK;
}

static rl_status conversion(rl_explainer *x, rl_exsearch *s, rl_exjoin j, rl_explanation *out) {
    const rl_cls *cls = &x->p->cls.p[x->place.p[j.base].cls];
    rl_exconversion c = {.tensor = rl_extensor_of(x, cls->first), .shape = shape_of(x, cls->first)};
    c.bytes = cls->bytes / rl_flat_turns(x->g, rl_flat_value_region(x->g, cls->first)); /* of one copy */
    rl_node def = rl_val(x->g, cls->first)->def;
    rl_exconflict found;
    if (def.i != RL_NONE) c.maker = rl_exnode_of(x, def);
    add_readers(x, &x->place.p[j.place], &c);
    rl_exverdict v = rl_exsearch_conflict(s, j, &found);
    c.smallest = v == RL_EX_CLASH && found.smallest;
    if (v != RL_EX_CLASH) own_ops(x, j, &found.op);
    gather(x, j, &found.op);
    rl_status status = reason(x, s, j, &found.op, v, &c);
    scatter(x, j, &found.op);
    rl_arena_free(x->now);
    rl_push(x->mem, out->conversion, c);
    return status;
}

/* ---- the whole ---- */

typedef struct { rl_exoriginal *p; uint32_t n, cap; } originals;

/* Of a node that stays closed, and of those in its bodies. */
static void list_closed(rl_explainer *x, const rl_nodeinfo *n, rl_exnode of, originals *list) {
    for (uint32_t i = 0; i < n->nattr; i++) {
        const rl_graph *g = n->attr[i].graph;
        if (!g) continue;
        rl_exbody *body = rl_new(x->mem, rl_exbody, 1);
        *body = (rl_exbody){n->attr[i].name, of};
        for (uint32_t k = 0; k < g->order.n; k++) {
            const rl_nodeinfo *m = rl_nod(g, g->order.p[k]);
            rl_exnode here = rl_exnode_in(g, m, body);
            list_closed(x, m, here, list);
            if (rl_transpose_bytes(g, m) >= 0) rl_push(x->tmp, *list, ((rl_exoriginal){here, RL_NOVALUE, false}));
        }
    }
}

/* The Transposes that move data, before anything is dropped or folded. */
static void list_originals(rl_explainer *x, originals *list) {
    for (uint32_t k = 0; k < x->g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(x->g, x->g->order.p[k]);
        rl_exnode here = rl_exnode_of(x, x->g->order.p[k]);
        list_closed(x, n, here, list);
        if (rl_transpose_bytes(x->g, n) >= 0) rl_push(x->tmp, *list, ((rl_exoriginal){here, n->out[0], false}));
    }
}

/* What normalize dropped, and what it found under another name. */
static void update_originals(rl_explainer *x, originals *list) {
    bool *live = rl_new(x->tmp, bool, x->g->nval + 1), *listed = rl_new(x->tmp, bool, x->g->nval + 1);
    for (uint32_t i = 0; i < list->n; i++)
        if (rl_has(list->p[i].out)) listed[list->p[i].out.i] = true;
    for (uint32_t k = 0; k < x->g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(x->g, x->g->order.p[k]);
        if (rl_transpose_bytes(x->g, n) < 0) continue;
        live[n->out[0].i] = true;
        if (!listed[n->out[0].i])
            rl_push(x->tmp, *list, ((rl_exoriginal){rl_exnode_of(x, x->g->order.p[k]), n->out[0], false}));
    }
    for (uint32_t i = 0; i < list->n; i++) list->p[i].unused = rl_has(list->p[i].out) && !live[list->p[i].out.i];
}

/* One more than it; 0 where there is none. */
static uint32_t origin_of(const rl_explainer *x, uint32_t k) {
    return rl_nod(x->g, x->g->order.p[k])->origin + 1;
}

static void remember_types(rl_explainer *x) {
    for (uint32_t k = 0; k < x->g->order.n; k++) x->ntype = RL_MAX(x->ntype, origin_of(x, k));
    x->type = rl_new(x->tmp, const char *, x->ntype + 1);
    for (uint32_t k = 0; k < x->g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(x->g, x->g->order.p[k]);
        if (n->origin < x->ntype) x->type[n->origin] = n->type;
    }
}

static rl_status plan(rl_pass_run *r, rl_explainer *x, originals *list) {
    if (!r->closed) x->g = r->g = rl_flat_make(r->g); /* bodies and what is around them are one plan */
    x->body = rl_new(x->mem, const rl_exbody *, x->g->flat ? x->g->flat->region.n : 1);
    x->body[0] = x->function;
    remember_types(x);
    list_originals(x, list);
    RL_TRY(rl_pass_normalize(r));
    update_originals(x, list);
    RL_TRY(rl_pass_fold(r));
    RL_TRY(rl_pass_legal(r));
    return rl_pass_assign(r);
}

/* May fewer do?  What the bound leaves open by bytes alone is no more conversions. */
static bool is_open(const rl_pass_run *r, const uint32_t *cfg) {
    const rl_plan *p = r->plan;
    rl_least *cost = rl_new(r->tmp, rl_least, p->ncomp);
    bool open = false;
    rl_plan_costs(p, cfg, cost, r->tmp);
    for (uint32_t k = 0; k < p->ncomp; k++)
        open |= p->unproved[k] && (rl_by_objective(r, "bytes") || cost[k].count > p->least[k].count);
    return open;
}

static rl_status reasons(rl_pass_run *r, rl_explainer *x, bool as_read, rl_explanation *out) {
    originals list = {0};
    RL_TRY(plan(r, x, &list));
    x->p = r->plan;
    x->first = out->conversion.n;
    uint32_t *chosen = rl_plan_chosen(x->p, r->tmp);
    out->unsolved |= is_open(r, chosen);
    x->cfg = as_read ? rl_new(r->tmp, uint32_t, x->p->op.n) : chosen;
    name_places(x);
    list_pins(x);
    list_joins(x);
    rl_exsearch *s = rl_exsearch_new(x);
    for (uint32_t i = 0; i < x->join.n; i++) RL_TRY(conversion(x, s, x->join.p[i], out));
    rl_explain_transposes(x, list.p, list.n, out);
    return RL_OK;
}

/* One graph with its bodies, whose types are inferred. */
static rl_status explain(rl_pass_run *r, rl_graph *g, const rl_graph *done, const rl_exbody *function, rl_arena *mem, rl_explanation *out) {
    rl_arena now;
    rl_arena_init(&now, g->ctx);
    rl_explainer x = {.g = g, .mem = mem, .tmp = r->tmp, .now = &now, .function = function};
    r->g = g;
    r->closed = done->closed;
    r->plan = NULL;
    rl_status s = reasons(r, &x, done->as_read, out);
    rl_arena_free(&now);
    rl_arena_free(r->tmp);
    return s;
}

static rl_status explain_all(rl_pass_run *r, rl_graph *g, rl_graph *done, rl_arena *mem, rl_explanation *out) {
    rl_callsites as_read = {0};
    r->g = g;
    RL_TRY(rl_infer_model(r, &as_read));
    RL_TRY(explain(r, g, done, NULL, mem, out));
    if (r->calls) RL_TRY(rl_calls_settle(r->calls, done, as_read, r->tmp));
    rl_arena_free(r->tmp);
    for (uint32_t i = 0; i < g->function.n; i++) {
        rl_graph *f = g->function.p[i];
        if (!f || f->doubtful || !rl_calls_any(r->calls, i)) continue;
        rl_exbody *body = rl_new(mem, rl_exbody, 1);
        body->of.op = f->name;
        body->of.name = f->domain;
        RL_TRY(explain(r, f, done->function.p[i], body, mem, out));
    }
    return RL_OK;
}

rl_status rl_explain(rl_graph *g, rl_graph *done, const rl_passopt *o, rl_arena *mem, rl_explanation *out) {
    rl_arena tmp;
    rl_outcome outcome = {0};
    if (RL_PROTECT(g->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, g->ctx);
    rl_pass_run r = {.opt = o, .tmp = &tmp, .out = &outcome};
    rl_status s = rl_target_find(mem, o->target ? o->target : "generic", &r.target);
    if (s == RL_OK) s = explain_all(&r, g, done, mem, out);
    rl_arena_free(&tmp);
    return s;
}
