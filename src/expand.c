/* Writes out calls of model-local functions, and branches that are taken (expand.h).
 *
 * All calls of a graph are written out at once, then those that have come with them, and so on: with no more rounds than there are functions,
 * unless one leads to itself.  A body is copied with its function's nodes: what it captures has the name that the value has outside now, all else a new one.
 * A branch, of which there is one copy, gets new names for what is outside of it from then on; its bodies keep theirs. */
#include "expand.h"

#include <string.h>

#include "ops.h"
#include "schema.h"

enum { MOST_NODES = 4 << 20 };

rl_callees rl_callees_of(const rl_graph *main, rl_arena *mem) {
    rl_callees c = {.main = main, .byname.mem = mem};
    c.next = rl_new(mem, uint32_t, main->function.n);
    c.overloaded = rl_new(mem, bool, main->function.n);
    for (uint32_t k = main->function.n; k-- > 0;) {
        const rl_graph *f = main->function.p[k];
        if (!f) continue;
        uint64_t key = (uint64_t)(uintptr_t)f->name;
        uint32_t other = c.next[k] = rl_hash_get(&c.byname, key);
        while (other != RL_NONE && main->function.p[other]->domain != f->domain) other = c.next[other];
        if (other != RL_NONE) c.overloaded[k] = c.overloaded[other] = true;
        rl_hash_put(&c.byname, key, k);
    }
    return c;
}

uint32_t rl_callee(const rl_callees *c, const rl_nodeinfo *n) {
    if (n->op != RL_OP_OPAQUE) return RL_NONE;
    uint32_t k = rl_hash_get(&c->byname, (uint64_t)(uintptr_t)n->type);
    while (k != RL_NONE && c->main->function.p[k]->domain != n->domain) k = c->next[k];
    return k;
}

/* ---- copying ---- */

typedef struct {
    rl_callees callees;
    rl_arena *tmp;
    uint32_t nnode, ncopy; /* nodes written so far; copies of functions, which their names tell apart */
} expansion;

/* One graph, a function or a body in it, that is copied into another. */
typedef struct {
    expansion *e;
    const rl_graph *from, *function;
    rl_graph *to;
    const rl_nodeinfo *call;
    rl_value *value; /* [from->nval] what it is there */
    bool *known;     /* [from->nval] */
    uint32_t number; /* of the copy of the function */
} copying;

/* A branch is written out once, and is not a function. */
static bool is_branch(const copying *c) { return c->function->parent; }

static rl_str new_name(const copying *c, const rl_valinfo *x) {
    const char *name = x->name ? x->name : "";
    if (is_branch(c)) return rl_graph_fresh_name(c->to, name);
    return rl_graph_fresh_name(c->to, rl_internf(c->to->ctx, "%s/%u", name, c->number));
}

static rl_value value_of(copying *c, rl_value v) {
    if (!rl_has(v) || c->known[v.i]) return rl_has(v) ? c->value[v.i] : v;
    const rl_valinfo *x = rl_val(c->from, v);
    rl_value y = rl_graph_value(c->to, new_name(c, x));
    rl_valinfo *z = rl_val(c->to, y);
    z->data = x->data;
    z->is_init = x->is_init;
    if (x->is_init) rl_push(&c->to->mem, c->to->init, y);
    z->dtype = x->data ? x->dtype : RL_UNDEF;
    z->rank = x->data ? x->rank : RL_NORANK;
    z->dim = x->data ? x->dim : NULL;
    c->known[v.i] = true;
    return c->value[v.i] = y;
}

static const rl_attr *find_attr(const rl_attr *a, uint32_t n, rl_str name) {
    for (uint32_t i = 0; i < n; i++)
        if (a[i].name == name) return &a[i];
    return NULL;
}

static rl_status copy_nodes(copying *c);

static rl_status copy_body(copying *around, const rl_graph *body, rl_graph **out) {
    rl_graph *g = *out = rl_graph_new(around->to->ctx);
    rl_arena *mem = &g->mem;
    g->parent = around->to;
    g->ir_version = body->ir_version;
    g->name = body->name;
    g->onnx = body->onnx;
    copying c = *around;
    c.from = body;
    c.to = g;
    c.value = rl_new(around->e->tmp, rl_value, body->nval);
    c.known = rl_new(around->e->tmp, bool, body->nval);
    for (uint32_t i = 0; i < body->nval; i++) {
        const rl_valinfo *x = &body->val[i];
        rl_str name;
        if (x->is_outer) {
            rl_value v = value_of(around, rl_graph_find(around->from, x->name));
            if (!rl_has(v))
                return rl_fail(g->ctx, RL_EMODEL, "a body reads '%.100s', which the call leaves out", x->name);
            name = rl_val(around->to, v)->name;
        } else
            name = is_branch(&c) ? x->name : new_name(&c, x); /* a constant of a branch's body is written with its bytes, the name among them */
        c.value[i] = rl_graph_value(g, name);
        c.known[i] = true;
        rl_valinfo *y = rl_val(g, c.value[i]);
        *y = (rl_valinfo){.name = name,
                          .dtype = x->dtype,
                          .rank = x->rank,
                          .dim = x->dim,
                          .def = RL_NONODE,
                          .data = x->data,
                          .raw = x->raw,
                          .is_input = x->is_input,
                          .is_init = x->is_init,
                          .is_output = x->is_output,
                          .is_outer = x->is_outer};
    }
    for (uint32_t i = 0; i < body->input.n; i++) rl_push(mem, g->input, c.value[body->input.p[i].i]);
    for (uint32_t i = 0; i < body->output.n; i++) rl_push(mem, g->output, c.value[body->output.p[i].i]);
    for (uint32_t i = 0; i < body->init.n; i++) rl_push(mem, g->init, c.value[body->init.p[i].i]);
    for (uint32_t i = 0; i < body->outer.n; i++) rl_push(mem, g->outer, c.value[body->outer.p[i].i]);
    return copy_nodes(&c);
}

/* The node's attributes, those of the call in the place of those that stand for one: left out where it has none. refers: one did. */
static rl_status copy_attrs(copying *c, const rl_nodeinfo *n, rl_node to, bool *refers) {
    rl_attr *a = rl_new(&c->to->mem, rl_attr, n->nattr);
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->nattr; i++) {
        const rl_attr *from = &n->attr[i];
        a[count] = *from;
        if (from->ref) {
            *refers = true;
            from = find_attr(c->call->attr, c->call->nattr, n->attr[i].ref);
            if (!from) from = find_attr(c->function->given, c->function->ngiven, n->attr[i].ref);
            if (!from) continue;
            if (from->graph)
                return rl_fail(c->to->ctx, RL_ELIMIT, "attribute '%.100s': a body that a call gives its function",
                               from->name);
            a[count] = *from;
            a[count].name = n->attr[i].name;
        } else if (from->graph) {
            rl_status s = copy_body(c, from->graph, (rl_graph **)&a[count].graph);
            rl_graph_set_attrs(c->to, to, a, count + 1); /* owned from here on, whatever fails */
            RL_TRY(s);
        }
        count++;
    }
    rl_graph_set_attrs(c->to, to, a, count);
    return RL_OK;
}

static rl_status copy_node(copying *c, const rl_nodeinfo *n) {
    rl_arena *tmp = c->e->tmp;
    rl_value *in = rl_new(tmp, rl_value, n->nin), *out = rl_new(tmp, rl_value, n->nout),
             *cap = rl_new(tmp, rl_value, n->ncap);
    bool refers = false;
    if (++c->e->nnode > MOST_NODES)
        return rl_fail(c->to->ctx, RL_ELIMIT, "with the calls of functions written out it has more than %d nodes",
                       MOST_NODES);
    for (uint32_t i = 0; i < n->nin; i++) in[i] = value_of(c, n->in[i]);
    for (uint32_t i = 0; i < n->nout; i++) out[i] = value_of(c, n->out[i]);
    for (uint32_t i = 0; i < n->ncap; i++) cap[i] = value_of(c, n->cap[i]);
    rl_node id = rl_graph_add(c->to, RL_OP_OPAQUE, n->name, n->nin, in, n->nout, out);
    rl_nodeinfo *x = rl_nod(c->to, id);
    x->domain = n->domain;
    x->type = n->type;
    x->since = n->since;
    x->op = n->op;
    RL_TRY(copy_attrs(c, n, id, &refers));
    rl_graph_set_captures(c->to, id, cap, n->ncap);
    x = rl_nod(c->to, id);
    if (rl_callee(&c->e->callees, x) != RL_NONE) return RL_OK;
    if (refers) x->op = rl_op_find(x->domain, x->type, (int64_t)x->since);
    x->op = rl_schema_op(x->op, x, NULL, &(rl_text){.mem = tmp}); /* the call may not give all its inputs */
    if (refers && !*x->domain && strcmp(x->type, "Constant") == 0) rl_graph_set_constant(c->to, x);
    return RL_OK;
}

static rl_status copy_nodes(copying *c) {
    for (uint32_t i = 0; i < c->from->order.n; i++) RL_TRY(copy_node(c, rl_nod(c->from, c->from->order.p[i])));
    return RL_OK;
}

/* ---- calls ---- */

static rl_status add_identity(rl_graph *g, const rl_graph *function, rl_value from, rl_value to) {
    if (!rl_has(from))
        return rl_fail(g->ctx, RL_EMODEL, "function '%.100s' gives an input that the call leaves out", function->name);
    rl_node id = rl_graph_add(g, RL_OP_OPAQUE, NULL, 1, &from, 1, &to);
    rl_nodeinfo *x = rl_nod(g, id);
    x->domain = rl_internz(g->ctx, "");
    x->type = rl_internz(g->ctx, "Identity");
    x->since = 1;
    if (function->parent) x->since = rl_opset_of(g, x->domain);
    for (uint32_t i = 0; i < function->opset.n; i++)
        if (!*function->opset.p[i].domain) x->since = (uint32_t)function->opset.p[i].version;
    x->op = rl_op_find(x->domain, x->type, (int64_t)x->since);
    return RL_OK;
}

static copying start(expansion *e, rl_graph *g, const rl_nodeinfo *call, const rl_graph *f) {
    return (copying){.e = e, .from = f, .function = f, .to = g, .call = call, .value = rl_new(e->tmp, rl_value, f->nval),
                     .known = rl_new(e->tmp, bool, f->nval), .number = ++e->ncopy};
}

/* The nodes, of which the last make what the call does. */
static rl_status write_nodes(copying *c) {
    const rl_graph *f = c->from;
    rl_graph *g = c->to;
    bool *later = rl_new(c->e->tmp, bool, f->output.n); /* what is there already, or is an output a second time */
    for (uint32_t i = 0; i < f->output.n; i++) {
        rl_value v = f->output.p[i];
        if (!rl_has(rl_out(c->call, i))) continue;
        if (rl_val(f, v)->data && rl_val(f, v)->def.i == RL_NONE) value_of(c, v); /* a branch's constant, which has no node */
        later[i] = c->known[v.i];
        if (later[i]) continue;
        c->value[v.i] = c->call->out[i];
        c->known[v.i] = true;
        if (rl_val(f, v)->data) rl_val(g, c->call->out[i])->data = rl_val(f, v)->data;
    }
    RL_TRY(copy_nodes(c));
    for (uint32_t i = 0; i < f->output.n; i++)
        if (later[i]) RL_TRY(add_identity(g, f, c->value[f->output.p[i].i], c->call->out[i]));
    return RL_OK;
}

static rl_status write_out(expansion *e, rl_graph *g, const rl_nodeinfo *call, const rl_graph *f) {
    copying c = start(e, g, call, f);
    if (call->nin > f->input.n || call->nout > f->output.n)
        return rl_fail(g->ctx, RL_EMODEL, "function '%.100s' has %u inputs and %u outputs, a call %u and %u", f->name,
                       f->input.n, f->output.n, call->nin, call->nout);
    for (uint32_t i = 0; i < f->input.n; i++) {
        c.value[f->input.p[i].i] = rl_in(call, i);
        c.known[f->input.p[i].i] = true;
    }
    return write_nodes(&c);
}

/* A node that is to be written out, and as what. */
typedef struct { rl_nodeinfo node; const rl_graph *body; } site;
typedef struct { site *p; uint32_t n, cap; } sites;
typedef const rl_graph *body_fn(const expansion *e, const rl_graph *g, const rl_nodeinfo *n); /* NULL: none */

/* Those among the nodes from `first` on that have such a body, which are then removed. */
static sites take(expansion *e, rl_graph *g, uint32_t first, body_fn *body_of) {
    sites s = {0};
    bool *dead = rl_new(e->tmp, bool, g->nnode);
    for (uint32_t i = 0; i < g->order.n; i++) {
        rl_node id = g->order.p[i];
        const rl_graph *body = id.i < first ? NULL : body_of(e, g, rl_nod(g, id));
        if (!body) continue;
        dead[id.i] = true;
        rl_push(e->tmp, s, ((site){*rl_nod(g, id), body}));
    }
    if (s.n) rl_graph_remove_all(g, dead);
    return s;
}

static const rl_graph *called(const expansion *e, const rl_graph *g, const rl_nodeinfo *n) {
    (void)g;
    uint32_t k = rl_callee(&e->callees, n);
    return k == RL_NONE ? NULL : e->callees.main->function.p[k];
}

static rl_status expand(expansion *e, rl_graph *g) {
    const rl_graph *main = e->callees.main;
    uint32_t first = 0;
    bool any = false;
    for (uint32_t round = 0;; round++) {
        uint32_t next = g->nnode;
        sites s = take(e, g, first, called);
        if (s.n == 0) break;
        any = true;
        for (uint32_t i = 0; i < s.n; i++) {
            const rl_graph *f = s.p[i].body;
            if (round > main->function.n)
                return rl_fail(g->ctx, RL_EMODEL, "function '%.100s' leads to itself", f->name);
            if (e->callees.overloaded[rl_callee(&e->callees, &s.p[i].node)])
                return rl_fail(g->ctx, RL_EMODEL, "function '%.100s' has an overload, which is not supported", f->name);
            RL_TRY(write_out(e, g, &s.p[i].node, f));
        }
        first = next;
    }
    if (any) RL_TRY(rl_graph_sort(g));
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) RL_TRY(expand(e, n->attr[k].graph));
    }
    return RL_OK;
}

rl_status rl_expand_calls(rl_graph *g) {
    if (g->function.n == 0) return RL_OK;
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    expansion e = {.callees = rl_callees_of(g, &tmp), .tmp = &tmp};
    rl_status s = expand(&e, g);
    rl_arena_free(&tmp);
    return s;
}

/* ---- branches ---- */

/* The branch that an If takes whatever comes in; NULL: it is none, or that is not known. */
static const rl_graph *taken_branch(const expansion *e, const rl_graph *g, const rl_nodeinfo *n) {
    (void)e;
    const rl_const *c = n->op == RL_OP_If && !*n->domain && rl_has(rl_in(n, 0)) ? rl_val(g, n->in[0])->data : NULL;
    if (!c || !c->data || c->dtype != RL_BOOL || c->nbyte != 1) return NULL;
    const rl_attr *a = rl_attr_find(n, *(const char *)c->data ? "then_branch" : "else_branch");
    for (uint32_t i = 0; a && a->graph && i < a->graph->init.n; i++) {
        const rl_const *x = rl_val(a->graph, a->graph->init.p[i])->data;
        if (!x || (x->nbyte && !x->data)) return NULL; /* only the file has it, by its name */
    }
    return a ? a->graph : NULL;
}

static rl_status write_branch(expansion *e, rl_graph *g, const rl_nodeinfo *n, const rl_graph *f) {
    copying c = start(e, g, n, f);
    for (uint32_t i = 0; i < f->nval; i++) {
        if (!f->val[i].is_outer) continue;
        c.value[i] = rl_graph_find(g, f->val[i].name);
        c.known[i] = true;
    }
    return write_nodes(&c);
}

/* Round by round: a branch may have others in it. */
static rl_status decide(expansion *e, rl_graph *g, bool *any) {
    for (sites s; (s = take(e, g, 0, taken_branch)).n;) {
        *any = true;
        for (uint32_t i = 0; i < s.n; i++) RL_TRY(write_branch(e, g, &s.p[i].node, s.p[i].body));
        RL_TRY(rl_graph_sort(g));
    }
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) RL_TRY(decide(e, n->attr[k].graph, any));
    }
    return RL_OK;
}

rl_status rl_expand_branches(rl_graph *g, bool *any) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    expansion e = {.callees = rl_callees_of(g, &tmp), .tmp = &tmp};
    *any = false;
    rl_status s = decide(&e, g, any);
    rl_arena_free(&tmp);
    return s;
}
