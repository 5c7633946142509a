/* Writes a flat graph back to the graphs that it was made from: see flat.h.
 *
 * A node that is still the one it was keeps its number there, so that the writer finds its bytes; only inputs that changed are
 * set.  Every other node is made anew in the graph of its region, with its values.  What is read from a region around it is
 * captured by name, and each If, Loop and Scan then gets the captures that its bodies have.  A constant goes where all its readers
 * see it, no further out.
 *
 *   flat     u = Transpose(x)   (of region 0, made because both branches want it)    v = Relu(u)   (of region 1)
 *   written  u in the main graph; in then_branch an outer value u, read by Relu; If captures u
 *
 * Order: nodes that are gone, nodes that are there with their bodies' inputs and outputs, constants, captures from the inside
 * out. */
#include "flat.h"

#include <string.h>

typedef struct {
    rl_graph *f;
    rl_flat *x;
    rl_arena *tmp;
    uint32_t *region;    /* [nval] where the value is kept */
    rl_value *made;      /* [nval] its value in that region's graph, when it is not its home */
    bool **direct;       /* [region][output] the body ended in what none of its nodes makes */
    struct nodes { rl_node *p; uint32_t n, cap; } *order; /* [region] */
} writer;

static rl_graph *graph_of(const writer *w, uint32_t region) { return w->x->region.p[region].g; }
static bool is_first(const writer *w, rl_node n) { return n.i < w->x->nnode; }
static rl_place place_of(const writer *w, rl_node n) {
    uint32_t origin = rl_nod(w->f, n)->origin;
    return origin == RL_NONE ? (rl_place){0, RL_NONE, RL_NONODE} : w->x->place.p[origin];
}

static bool at_home(const writer *w, rl_value v) {
    return v.i < w->x->nval && rl_has(w->x->home[v.i].v) && w->x->home[v.i].region == w->region[v.i];
}

/* ---- where values are kept ---- */

/* The region in which input `slot` of the node is read: of a Leave that of a body's end. */
static uint32_t reading_region(const writer *w, rl_node id, uint32_t slot) {
    const rl_nodeinfo *n = rl_nod(w->f, id);
    rl_place p = place_of(w, id);
    if (n->op != RL_OP_LEAVE || slot == 0) return p.region;
    const rl_control *c = &w->x->control.p[p.control];
    return c->body + (slot - 1) / ((n->nin - 1) / c->nbody);
}

static void keep_constants(writer *w) {
    const rl_graph *f = w->f;
    uint32_t *at = rl_new(w->tmp, uint32_t, f->nval);
    for (uint32_t v = 0; v < f->nval; v++) at[v] = v < w->x->nval && rl_has(w->x->home[v].v) ? w->x->home[v].region : RL_NONE;
    for (uint32_t k = 0; k < f->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(f, f->order.p[k]);
        for (uint32_t i = 0; i < n->nin + n->ncap; i++) {
            rl_value v = i < n->nin ? n->in[i] : n->cap[i - n->nin];
            if (!rl_has(v) || !rl_val(f, v)->is_init) continue;
            uint32_t r = i < n->nin ? reading_region(w, f->order.p[k], i) : place_of(w, f->order.p[k]).region;
            at[v.i] = at[v.i] == RL_NONE ? r : rl_flat_common(f, at[v.i], r);
        }
    }
    for (uint32_t v = 0; v < f->nval; v++)
        if (f->val[v].is_init) w->region[v] = f->val[v].is_output || at[v] == RL_NONE ? 0 : at[v];
}

static void find_regions(writer *w) {
    w->region = rl_new(w->tmp, uint32_t, w->f->nval);
    for (uint32_t v = 0; v < w->f->nval; v++) w->region[v] = rl_flat_value_region(w->f, (rl_value){v});
    keep_constants(w);
}

/* ---- values ---- */

static void set_type_of(const writer *w, rl_graph *g, rl_value to, rl_value v) {
    const rl_valinfo *x = rl_val(w->f, v);
    rl_graph_set_type(g, to, x->dtype, x->rank, x->dim);
    rl_val(g, to)->layout = x->layout;
}

/* A graph within the region has another value of that name, which would hide this one. */
static bool is_hidden(const writer *w, rl_value v, rl_str name) {
    for (uint32_t r = w->region[v.i]; r < w->x->region.n; r++) {
        rl_value there = rl_graph_find(graph_of(w, r), name);
        bool before = v.i < w->x->nval && w->x->home[v.i].region == r && rl_same(w->x->home[v.i].v, there);
        if (rl_has(there) && !before && rl_flat_within(w->f, r, w->region[v.i])) return true;
    }
    return false;
}

/* v in the graph that keeps it. */
static rl_value own_value(writer *w, rl_value v) {
    rl_graph *g = graph_of(w, w->region[v.i]);
    if (at_home(w, v)) return w->x->home[v.i].v;
    if (rl_has(w->made[v.i])) return w->made[v.i];
    rl_str name = rl_val(w->f, v)->name;
    if (is_hidden(w, v, name)) name = rl_graph_fresh_name(w->f, name ? name : "rl");
    w->made[v.i] = rl_graph_value(g, name);
    set_type_of(w, g, w->made[v.i], v);
    return w->made[v.i];
}

/* v as a region sees it: its own value, or an outer value there and in all regions between. */
static rl_value value_in(writer *w, uint32_t region, rl_value v) {
    if (!rl_has(v) || w->region[v.i] == region) return rl_has(v) ? own_value(w, v) : v;
    rl_value out = value_in(w, w->x->region.p[region].parent, v);
    rl_graph *g = graph_of(w, region), *around = graph_of(w, w->x->region.p[region].parent);
    rl_str name = rl_val(around, out)->name;
    rl_value in = rl_graph_find(g, name);
    if (rl_has(in) && rl_val(g, in)->is_input) rl_graph_rename(g, in, rl_graph_fresh_name(w->f, name));
    in = rl_graph_value(g, name);
    if (!rl_val(g, in)->is_outer) {
        rl_push(&g->mem, g->outer, in);
        rl_val(g, in)->is_outer = true;
    }
    set_type_of(w, g, in, v);
    return in;
}

static rl_value *values_in(writer *w, uint32_t region, const rl_value *v, uint32_t n) {
    rl_value *out = rl_new(w->tmp, rl_value, n);
    for (uint32_t i = 0; i < n; i++) out[i] = value_in(w, region, v[i]);
    return out;
}

/* ---- nodes ---- */

static void drop_nodes(writer *w) {
    const rl_graph *f = w->f;
    bool **dead = rl_new(w->tmp, bool *, w->x->region.n);
    for (uint32_t r = 0; r < w->x->region.n; r++) {
        dead[r] = rl_new(w->tmp, bool, graph_of(w, r)->nnode);
        memset(dead[r], 1, graph_of(w, r)->nnode);
    }
    for (uint32_t k = 0; k < f->order.n; k++) {
        rl_place p = place_of(w, f->order.p[k]);
        bool same = is_first(w, f->order.p[k]) && rl_nod(f, f->order.p[k])->op != RL_OP_ENTER;
        if (same) dead[p.region][p.node.i] = false;
    }
    for (uint32_t r = 0; r < w->x->region.n; r++) rl_graph_remove_all(graph_of(w, r), dead[r]);
}

static void find_direct(writer *w) {
    w->direct = rl_new(w->tmp, bool *, w->x->region.n);
    for (uint32_t r = 0; r < w->x->region.n; r++) {
        const rl_graph *g = graph_of(w, r);
        w->direct[r] = rl_new(w->tmp, bool, g->output.n);
        for (uint32_t i = 0; i < g->output.n; i++) {
            w->direct[r][i] = rl_val(g, g->output.p[i])->def.i == RL_NONE;
            for (uint32_t k = 0; k < i; k++) w->direct[r][i] |= rl_same(g->output.p[k], g->output.p[i]);
        }
    }
}

static void set_inputs(rl_graph *g, rl_node n, const rl_value *in, uint32_t nin) {
    for (uint32_t i = 0; i < nin; i++) rl_graph_set_input(g, n, i, in[i]);
}

static rl_node add_node(writer *w, uint32_t region, rl_op op, const rl_nodeinfo *n, uint32_t nin, rl_value *in) {
    rl_graph *g = graph_of(w, region);
    rl_node to = rl_graph_add(g, op, n->name, nin, in, n->nout, values_in(w, region, n->out, n->nout));
    rl_nod(g, to)->since = n->since;
    return to;
}

/* An ordinary node. */
static rl_node put_node(writer *w, rl_node id) {
    const rl_nodeinfo *n = rl_nod(w->f, id);
    rl_place p = place_of(w, id);
    rl_graph *g = graph_of(w, p.region);
    rl_value *in = values_in(w, p.region, n->in, n->nin);
    rl_node to = p.node;
    if (is_first(w, id)) set_inputs(g, to, in, n->nin);
    else {
        to = add_node(w, p.region, n->op, n, n->nin, in);
        rl_nod(g, to)->domain = n->domain;
        rl_nod(g, to)->type = n->type;
        if (p.node.i != RL_NONE) rl_nod(g, to)->origin = rl_nod(g, p.node)->origin;
    }
    if (rl_nod(g, to)->attr != n->attr || rl_nod(g, to)->nattr != n->nattr) rl_graph_set_attrs(g, to, n->attr, n->nattr);
    return to;
}

/* The attributes of the node that an Enter or Leave was made from, with those that the two have now. */
static void set_axes(writer *w, rl_graph *g, rl_node to, const rl_nodeinfo *was, const rl_nodeinfo *enter, const rl_nodeinfo *leave) {
    uint32_t max = was->nattr + (enter ? enter->nattr : 0) + leave->nattr, n = 0;
    rl_attr *a = rl_new(w->tmp, rl_attr, max);
    for (uint32_t i = 0; enter && i < enter->nattr; i++) a[n++] = enter->attr[i];
    for (uint32_t i = 0; i < leave->nattr; i++) a[n++] = leave->attr[i];
    uint32_t now = n;
    for (uint32_t i = 0; i < was->nattr; i++) {
        bool replaced = false;
        for (uint32_t k = 0; k < now; k++) replaced |= a[k].name == was->attr[i].name;
        if (!replaced) a[n++] = was->attr[i];
    }
    if (now || rl_nod(g, to)->attr != was->attr) rl_graph_set_attrs(g, to, a, n);
}

/* A body ends in values that its own nodes make, each once, but where the model itself has it otherwise: runtimes ask for it. */
static void put_outputs(writer *w, uint32_t region, rl_value *out, struct nodes *order) {
    rl_graph *g = graph_of(w, region);
    for (uint32_t i = 0; i < g->output.n; i++) {
        bool again = rl_has(out[i]) && rl_val(g, out[i])->def.i == RL_NONE;
        for (uint32_t k = 0; k < i; k++) again |= rl_same(out[k], out[i]);
        if (!again || (rl_same(out[i], g->output.p[i]) && w->direct[region][i])) continue;
        rl_value y = rl_graph_value(g, rl_graph_fresh_name(w->f, "rl_output"));
        rl_graph_set_type(g, y, rl_val(g, out[i])->dtype, rl_val(g, out[i])->rank, rl_val(g, out[i])->dim);
        rl_node n = rl_graph_add(g, RL_OP_Identity, rl_graph_fresh_name(w->f, "rl_output"), 1, &out[i], 1, &y);
        rl_push(w->tmp, *order, n);
        out[i] = y;
    }
    for (uint32_t i = 0; i < g->output.n; i++)
        if (rl_has(g->output.p[i])) rl_val(g, g->output.p[i])->is_output = false;
    for (uint32_t i = 0; i < g->output.n; i++) {
        g->output.p[i] = out[i];
        if (rl_has(out[i])) rl_val(g, out[i])->is_output = true;
    }
}

static void put_inputs(writer *w, uint32_t region, const rl_nodeinfo *enter) {
    rl_graph *g = graph_of(w, region);
    for (uint32_t i = 0; i < g->input.n; i++) rl_val(g, g->input.p[i])->is_input = false;
    for (uint32_t i = 0; i < g->input.n; i++) {
        g->input.p[i] = own_value(w, enter->out[i]);
        rl_val(g, g->input.p[i])->is_input = true;
    }
}

static const rl_nodeinfo *enter_of(const writer *w, rl_node leave) {
    const rl_nodeinfo *n = rl_nod(w->f, leave);
    rl_place p = place_of(w, leave);
    if (w->x->control.p[p.control].enter.i == RL_NONE) return NULL;
    return rl_nod(w->f, rl_val(w->f, n->in[0])->def);
}

/* A Leave: the If, Loop or Scan itself. Its bodies' nodes have been written. */
static rl_node put_control(writer *w, rl_node id) {
    const rl_nodeinfo *n = rl_nod(w->f, id), *enter = enter_of(w, id);
    rl_place p = place_of(w, id);
    rl_control *c = &w->x->control.p[p.control];
    rl_graph *g = graph_of(w, p.region);
    uint32_t each = (n->nin - 1) / c->nbody, nin = enter ? enter->nin : 1;
    rl_value *in = values_in(w, p.region, enter ? enter->in : n->in, nin);
    rl_node to = c->node;
    for (uint32_t b = 0; b < c->nbody; b++) {
        rl_value *out = values_in(w, c->body + b, n->in + 1 + b * each, each);
        put_outputs(w, c->body + b, out, &w->order[c->body + b]);
        if (enter) put_inputs(w, c->body + b, enter);
    }
    const rl_nodeinfo was = *rl_nod(g, c->node);
    if (is_first(w, id)) set_inputs(g, to, in, nin);
    else {
        to = add_node(w, p.region, c->op, n, nin, in);
        rl_nod(g, to)->origin = was.origin;
    }
    set_axes(w, g, to, &was, enter, n);
    c->node = to;
    return to;
}

static void put_nodes(writer *w) {
    w->order = rl_alloc_array(w->tmp, w->x->region.n, sizeof *w->order);
    for (uint32_t k = 0; k < w->f->order.n; k++) {
        rl_node id = w->f->order.p[k];
        rl_op op = rl_nod(w->f, id)->op;
        if (op == RL_OP_ENTER) continue;
        rl_node to = op == RL_OP_LEAVE ? put_control(w, id) : put_node(w, id);
        rl_push(w->tmp, w->order[place_of(w, id).region], to);
    }
    for (uint32_t r = 0; r < w->x->region.n; r++) {
        rl_graph *g = graph_of(w, r);
        g->order.n = 0;
        for (uint32_t i = 0; i < w->order[r].n; i++) rl_push(&g->mem, g->order, w->order[r].p[i]);
    }
}

/* ---- constants, captures ---- */

static void put_constants(writer *w) {
    for (uint32_t r = 0; r < w->x->region.n; r++) {
        rl_graph *g = graph_of(w, r);
        for (uint32_t i = 0; i < g->init.n; i++) rl_val(g, g->init.p[i])->is_init = false;
        g->init.n = 0;
    }
    for (uint32_t i = 0; i < w->f->init.n; i++) {
        rl_value v = w->f->init.p[i], to = own_value(w, v);
        rl_graph *g = graph_of(w, w->region[v.i]);
        rl_valinfo *x = rl_val(g, to);
        const rl_valinfo *from = rl_val(w->f, v);
        if (!from->is_init || x->is_init) continue;
        x->is_init = true;
        x->data = from->data;
        x->raw = at_home(w, v) ? from->raw : (rl_span){0};
        rl_push(&g->mem, g->init, to);
    }
}

/* What was an input of a body may have the name of a value around it; what a node makes now may not. */
static void rename_hiding(writer *w) {
    for (uint32_t r = 1; r < w->x->region.n; r++) {
        rl_graph *g = graph_of(w, r);
        for (rl_value v = {0}; v.i < g->nval; v.i++)
            if (rl_flat_hides(g, v)) rl_graph_rename(g, v, rl_graph_fresh_name(w->f, rl_val(g, v)->name));
    }
}

/* Outer values that are still read. */
static void drop_outer(rl_graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->outer.n; i++) {
        rl_valinfo *x = rl_val(g, g->outer.p[i]);
        if (x->nuse || x->is_output) g->outer.p[n++] = g->outer.p[i];
        else x->is_outer = false;
    }
    g->outer.n = n;
}

static void set_captures(writer *w, const rl_control *c) {
    rl_graph *g = graph_of(w, c->region);
    const rl_nodeinfo *n = rl_nod(g, c->node);
    struct { rl_value *p; uint32_t n, cap; } v = {0};
    rl_hash known = {.mem = w->tmp};
    for (uint32_t a = 0; a < n->nattr; a++) {
        const rl_graph *b = n->attr[a].graph;
        for (uint32_t i = 0; b && i < b->outer.n; i++) {
            rl_value x = rl_graph_find(g, rl_val(b, b->outer.p[i])->name);
            if (!rl_has(x) || rl_hash_get(&known, x.i + 1u) != RL_NONE) continue;
            rl_hash_put(&known, x.i + 1u, 1);
            rl_push(w->tmp, v, x);
        }
    }
    rl_graph_set_captures(g, c->node, v.p, v.n);
}

static rl_status put_captures(writer *w) {
    for (uint32_t k = w->x->control.n; k-- > 0;) { /* those inside its bodies come after it */
        const rl_control *c = &w->x->control.p[k];
        const rl_nodeinfo *n = rl_nod(graph_of(w, c->region), c->node);
        for (uint32_t b = 0; b < c->nbody; b++) drop_outer(graph_of(w, c->body + b));
        if (n->nin + n->nout) set_captures(w, c); /* else it is gone */
    }
    for (uint32_t r = 0; r < w->x->region.n; r++) RL_TRY(rl_graph_sort(graph_of(w, r)));
    return RL_OK;
}

rl_status rl_flat_write_back(rl_graph *flat, rl_arena *tmp) {
    writer w = {.f = flat, .x = flat->flat, .tmp = tmp};
    find_regions(&w);
    w.made = rl_new(tmp, rl_value, flat->nval);
    for (uint32_t v = 0; v < flat->nval; v++) w.made[v] = RL_NOVALUE;
    find_direct(&w);
    drop_nodes(&w);
    put_nodes(&w);
    put_constants(&w);
    rename_hiding(&w);
    RL_TRY(put_captures(&w));
    graph_of(&w, 0)->nfresh = flat->nfresh;
    return RL_OK;
}
