/* Makes the flat form of a graph with bodies, and answers where things stand in it: see flat.h. */
#include "flat.h"

#include "../src/stats.h"

/* ---- which nodes are opened ---- */

static rl_graph *body_of(const rl_nodeinfo *n, const char *name) {
    const rl_attr *a = rl_attr_find(n, name);
    return a && a->kind == RL_ATTR_GRAPH ? a->graph : NULL;
}

bool rl_flat_doubtful(const rl_graph *g) {
    if (g->doubtful) return true;
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        for (uint32_t i = 0; i < n->nattr; i++)
            if (n->attr[i].graph && rl_flat_doubtful(n->attr[i].graph)) return true;
    }
    return false;
}

bool rl_flat_hides(const rl_graph *body, rl_value v) {
    const rl_valinfo *x = rl_val(body, v);
    for (const rl_graph *g = body->parent; g && x->name && rl_flat_is_own(x) && !x->is_input; g = g->parent) {
        rl_value around = rl_graph_find(g, x->name);
        if (rl_has(around) && rl_flat_is_own(rl_val(g, around))) return true;
    }
    return false;
}

static bool any_hides(const rl_graph *body) {
    for (uint32_t i = 0; i < body->nval; i++)
        if (rl_flat_hides(body, (rl_value){i})) return true;
    return false;
}

/* The bodies of an If, Loop or Scan whose inputs and outputs fit; 0 of any other node. */
static uint32_t bodies_of(const rl_nodeinfo *n, rl_graph **body) {
    uint32_t nbody = 1, old = n->op == RL_OP_Scan && n->since < 9, nin, nout;
    if (n->op == RL_OP_If) {
        body[0] = body_of(n, "then_branch");
        body[1] = body_of(n, "else_branch");
        nbody = 2;
        nin = 0;
        nout = n->nout;
    } else if (n->op == RL_OP_Loop || n->op == RL_OP_Scan) {
        body[0] = body_of(n, "body");
        nin = n->nin - old;
        nout = n->nout + (n->op == RL_OP_Loop);
    } else return 0;
    if (n->op != RL_OP_If && n->nin < (n->op == RL_OP_Loop ? 2 : 1 + old)) return 0;
    for (uint32_t i = 0; i < nbody; i++) {
        if (!body[i] || body[i]->input.n != nin || body[i]->output.n < nout || rl_flat_doubtful(body[i]) || any_hides(body[i]))
            return 0;
        if (n->op != RL_OP_Loop && body[i]->output.n != nout) return 0;
    }
    return nbody;
}

static bool has_bodies(const rl_graph *g) {
    rl_graph *body[2];
    for (uint32_t k = 0; k < g->order.n; k++)
        if (bodies_of(rl_nod(g, g->order.p[k]), body)) return true;
    return false;
}

/* ---- values ---- */

typedef struct {
    rl_graph *f;
    rl_flat *x;
    struct { rl_home *p; uint32_t n, cap; } home;
} maker;

/* The region's graph and, value by value, what stands for each in the flat graph. */
typedef struct scope { const struct scope *outer; const rl_graph *g; uint32_t region; rl_value *v; } scope;

/* A name that is taken (by another branch, or outside) stays with the value's own graph. */
static rl_str flat_name(const maker *m, rl_str name, uint32_t region) {
    while (name && rl_has(rl_graph_find(m->f, name))) name = rl_internf(m->f->ctx, "%s#%u", name, region);
    return name;
}

static rl_value copy_value(maker *m, const rl_graph *g, rl_value v, uint32_t region) {
    rl_valinfo *from = rl_val(g, v);
    rl_value to = rl_graph_value(m->f, flat_name(m, from->name, region));
    rl_valinfo *x = rl_val(m->f, to);
    x->dtype = from->dtype;
    x->rank = from->rank;
    x->dim = from->dim;
    x->layout = from->layout;
    x->data = from->data;
    x->elem = from->elem;
    x->nelem = from->nelem;
    x->raw = from->raw;
    x->is_init = from->is_init;
    x->is_input = from->is_input && region == 0;
    x->is_output = from->is_output && region == 0;
    rl_push(&m->f->mem, m->home, ((rl_home){region, v}));
    return to;
}

static rl_value find_outer(const scope *s, rl_str name) {
    for (; s; s = s->outer) {
        rl_value v = rl_graph_find(s->g, name);
        if (rl_has(v) && rl_flat_is_own(rl_val(s->g, v))) return s->v[v.i];
    }
    return RL_NOVALUE;
}

static void open_scope(maker *m, scope *s) {
    s->v = rl_new(&m->f->mem, rl_value, s->g->nval);
    for (uint32_t i = 0; i < s->g->nval; i++) {
        const rl_valinfo *x = &s->g->val[i];
        s->v[i] = x->is_outer ? find_outer(s->outer, x->name) : copy_value(m, s->g, (rl_value){i}, s->region);
        if (x->is_init && !x->is_outer) rl_push(&m->f->mem, m->f->init, s->v[i]);
    }
}

static rl_value seen(const scope *s, rl_value v) { return rl_has(v) ? s->v[v.i] : v; }

static rl_value *seen_all(maker *m, const scope *s, const rl_value *v, uint32_t n) {
    rl_value *out = rl_new(&m->f->mem, rl_value, n);
    for (uint32_t i = 0; i < n; i++) out[i] = seen(s, v[i]);
    return out;
}

/* ---- nodes ---- */

static uint32_t place(maker *m, uint32_t region, uint32_t control, rl_node node) {
    rl_push(&m->f->mem, m->x->place, ((rl_place){region, control, node}));
    return m->x->place.n - 1;
}

static void copy_node(maker *m, const scope *s, rl_node id) {
    const rl_nodeinfo *n = rl_nod(s->g, id);
    rl_node to = rl_graph_add(m->f, n->op, n->name, n->nin, seen_all(m, s, n->in, n->nin), n->nout, seen_all(m, s, n->out, n->nout));
    rl_nodeinfo *x = rl_nod(m->f, to);
    x->domain = n->domain;
    x->type = n->type;
    x->since = n->since;
    x->attr = n->attr;
    x->nattr = n->nattr;
    x->raw = n->raw;
    x->origin = place(m, s->region, RL_NONE, id);
    if (n->ncap) rl_graph_set_captures(m->f, to, seen_all(m, s, n->cap, n->ncap), n->ncap);
}

static rl_node add_end(maker *m, rl_op op, uint32_t control, uint32_t nin, const rl_value *in, uint32_t nout, const rl_value *out) {
    const rl_control *c = &m->x->control.p[control];
    const rl_nodeinfo *was = rl_nod(m->x->region.p[c->region].g, c->node);
    rl_node n = rl_graph_add(m->f, op, was->name, nin, in, nout, out);
    rl_nod(m->f, n)->since = was->since;
    rl_nod(m->f, n)->origin = place(m, c->region, control, c->node);
    return n;
}

static void copy_graph(maker *m, scope *s);

/* Enter makes the body's inputs and the token; the value of the token. */
static rl_value enter(maker *m, const scope *s, uint32_t control, const scope *body) {
    const rl_nodeinfo *n = rl_nod(s->g, m->x->control.p[control].node);
    uint32_t nout = body->g->input.n;
    rl_value *out = rl_new(&m->f->mem, rl_value, nout + 1);
    for (uint32_t i = 0; i < nout; i++) out[i] = body->v[body->g->input.p[i].i];
    out[nout] = rl_graph_value(m->f, rl_graph_fresh_name(m->f, "rl_body"));
    rl_push(&m->f->mem, m->home, ((rl_home){s->region, RL_NOVALUE}));
    rl_node e = add_end(m, RL_OP_ENTER, control, n->nin, seen_all(m, s, n->in, n->nin), nout + 1, out);
    m->x->control.p[control].enter = e;
    return out[nout];
}

static void copy_control(maker *m, const scope *s, rl_node id, rl_graph **body, uint32_t nbody) {
    const rl_nodeinfo *n = rl_nod(s->g, id);
    uint32_t control = m->x->control.n, nin = 1, first = m->x->region.n;
    rl_control c = {.op = n->op, .region = s->region, .node = id, .enter = RL_NONODE, .body = first, .nbody = nbody};
    rl_push(&m->f->mem, m->x->control, c);
    for (uint32_t b = 0; b < nbody; b++)
        rl_push(&m->f->mem, m->x->region, ((rl_region){body[b], s->region, control, 0, n->op != RL_OP_If}));
    rl_value *in = rl_new(&m->f->mem, rl_value, 1 + body[0]->output.n * nbody);
    in[0] = seen(s, rl_in(n, 0));
    for (uint32_t b = 0; b < nbody; b++) {
        scope inner = {s, body[b], first + b, NULL};
        open_scope(m, &inner);
        if (n->op != RL_OP_If) in[0] = enter(m, s, control, &inner);
        copy_graph(m, &inner);
        m->x->region.p[first + b].end = place(m, first + b, RL_NONE, RL_NONODE);
        for (uint32_t i = 0; i < body[b]->output.n; i++) in[nin++] = seen(&inner, body[b]->output.p[i]);
    }
    rl_node leave = add_end(m, RL_OP_LEAVE, control, nin, in, n->nout, seen_all(m, s, n->out, n->nout));
    m->x->control.p[control].leave = leave;
}

static void copy_graph(maker *m, scope *s) {
    rl_graph *body[2];
    for (uint32_t k = 0; k < s->g->order.n; k++) {
        rl_node id = s->g->order.p[k];
        uint32_t nbody = bodies_of(rl_nod(s->g, id), body);
        if (nbody) copy_control(m, s, id, body, nbody);
        else copy_node(m, s, id);
    }
}

static void copy_interface(maker *m, const rl_graph *g, const scope *s) {
    rl_graph *f = m->f;
    for (uint32_t i = 0; i < g->input.n; i++) rl_push(&f->mem, f->input, seen(s, g->input.p[i]));
    for (uint32_t i = 0; i < g->output.n; i++) rl_push(&f->mem, f->output, seen(s, g->output.p[i]));
    f->name = g->name;
    f->ir_version = g->ir_version;
    f->nfresh = g->nfresh;
}

rl_graph *rl_flat_make(rl_graph *g) { return has_bodies(g) ? rl_flat_copy(g) : g; }

rl_graph *rl_flat_copy(rl_graph *g) {
    rl_graph *f = rl_graph_new(g->ctx);
    f->kept = g->kept;
    f->alike = g->alike;
    g->kept = f;
    rl_flat *x = f->flat = rl_new(&f->mem, rl_flat, 1);
    maker m = {.f = f, .x = x};
    scope s = {NULL, g, 0, NULL};
    rl_push(&f->mem, x->region, ((rl_region){g, RL_NONE, RL_NONE, 0, false}));
    for (uint32_t i = 0; i < g->opset.n; i++) rl_push(&f->mem, f->opset, g->opset.p[i]);
    open_scope(&m, &s);
    copy_interface(&m, g, &s);
    copy_graph(&m, &s);
    x->region.p[0].end = place(&m, 0, RL_NONE, RL_NONODE);
    x->home = m.home.p;
    x->nval = f->nval;
    x->nnode = f->nnode;
    return f;
}

rl_graph *rl_flat_main(rl_graph *g) { return g->flat ? g->flat->region.p[0].g : g; }

/* ---- where things stand ---- */

uint32_t rl_flat_region(const rl_graph *g, uint32_t origin) {
    return g->flat && origin != RL_NONE ? g->flat->place.p[origin].region : 0;
}

uint32_t rl_flat_value_region(const rl_graph *g, rl_value v) {
    if (!g->flat) return 0;
    const rl_valinfo *x = rl_val(g, v);
    if (x->is_init) return 0;
    if (x->def.i == RL_NONE) return v.i < g->flat->nval ? g->flat->home[v.i].region : 0;
    const rl_nodeinfo *n = rl_nod(g, x->def);
    if (n->op != RL_OP_ENTER || x->port + 1 == n->nout) return rl_flat_region(g, n->origin);
    return g->flat->control.p[g->flat->place.p[n->origin].control].body;
}

bool rl_flat_within(const rl_graph *g, uint32_t inner, uint32_t outer) {
    while (inner != outer && inner != 0) inner = g->flat->region.p[inner].parent;
    return inner == outer;
}

uint32_t rl_flat_common(const rl_graph *g, uint32_t a, uint32_t b) {
    while (!rl_flat_within(g, b, a)) a = g->flat->region.p[a].parent;
    return a;
}

uint32_t rl_flat_step_out(const rl_graph *g, uint32_t origin, uint32_t region) {
    for (uint32_t r; (r = rl_flat_region(g, origin)) != region && r != 0;) {
        const rl_control *c = &g->flat->control.p[g->flat->region.p[r].control];
        origin = rl_nod(g, c->leave)->origin;
    }
    return origin;
}

int64_t rl_flat_turns(const rl_graph *g, uint32_t region) {
    if (!g->flat || region == 0) return 1;
    const rl_region *r = &g->flat->region.p[region];
    const rl_control *c = &g->flat->control.p[r->control];
    int64_t around = rl_flat_turns(g, r->parent);
    return r->repeats ? rl_stats_turns(g, c->op == RL_OP_Loop ? rl_in(rl_nod(g, c->enter), 0) : RL_NOVALUE, around) : around;
}
