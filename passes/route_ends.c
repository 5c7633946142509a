/* The two ends of what only moves channels (route.c): the tensors that layers make, those that layers read, and which channels of the first
 * each of the second has, found with index maps (src/map.h) into all sources laid one behind the other. */
#include "route.h"

#include "flat.h"

enum { MAXCHANNEL = 1 << 16 };

bool rl_route_moves(const rl_graph *g, const rl_nodeinfo *n) {
    if (!rl_move_is(n->op) || n->op == RL_OP_ScatterND || n->nin == 0 || !rl_has(n->in[0])) return false;
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i]) && rl_val(g, n->out[i])->data) return false;
    return true;
}

uint32_t rl_route_inputs(const rl_nodeinfo *n) {
    return n->op == RL_OP_Concat ? n->nin : 1;
}

static bool is_gone(const rl_router *t, rl_node n) {
    return n.i != RL_NONE && t->gone[n.i];
}

static bool is_read_by_layers(const rl_router *t, rl_value v) {
    const rl_valinfo *x = rl_val(t->g, v);
    for (uint32_t u = 0; u < x->nuse; u++)
        if (!is_gone(t, x->use[u].node)) return true;
    return x->is_output;
}

static bool add_source(rl_router *t, rl_value v) {
    const rl_valinfo *x = rl_val(t->g, v);
    for (uint32_t i = 0; i < t->source.n; i++)
        if (rl_same(t->source.p[i].v, v)) return true;
    if (x->data || x->rank == RL_NORANK || x->rank < 2 || x->rank > RL_FORM_RANK) return false;
    const rl_valinfo *first = t->source.n ? rl_val(t->g, t->source.p[0].v) : x;
    if (first->rank != x->rank || first->dtype != x->dtype) return false;
    rl_push(t->mem, t->source, ((rl_source){.v = v, .rigid = x->def.i == RL_NONE || is_read_by_layers(t, v)}));
    return true;
}

static bool find_ends(rl_router *t) {
    uint32_t region = RL_NONE;
    for (uint32_t k = 0; k < t->nnode; k++) {
        const rl_nodeinfo *n = rl_nod(t->g, t->node[k]);
        uint32_t here = rl_flat_region(t->g, n->origin);
        if (k && here != region) return false;
        region = here;
        for (uint32_t i = 0; i < rl_route_inputs(n); i++)
            if (!rl_has(n->in[i]) || (!is_gone(t, rl_val(t->g, n->in[i])->def) && !add_source(t, n->in[i]))) return false;
        for (uint32_t i = 0; i < n->nout; i++)
            if (rl_has(n->out[i]) && is_read_by_layers(t, n->out[i])) rl_push(t->mem, t->sink, ((rl_sink){.v = n->out[i]}));
    }
    return t->source.n > 1 && t->sink.n > 0;
}

/* The sources one behind the other along the axis; false where they differ in another dim. */
static bool lay_out(rl_router *t, uint32_t axis) {
    rl_dim n = 0;
    t->axis = axis;
    if (!rl_form_shape_of(t->g, t->source.p[0].v, &t->all)) return false;
    for (uint32_t i = 0; i < t->source.n; i++) {
        rl_source *s = &t->source.p[i];
        const rl_dim *dim = rl_val(t->g, s->v)->dim;
        for (uint32_t d = 0; d < t->all.rank; d++)
            if (d != axis && dim[d] != t->all.dim[d]) return false;
        if (!rl_dim_known(dim[axis]) || dim[axis] < 1 || n + dim[axis] > MAXCHANNEL) return false;
        s->base = (uint32_t)n;
        s->n = (uint32_t)dim[axis];
        n += dim[axis];
    }
    t->all.dim[axis] = n;
    return true;
}

static void set_map(rl_router *t, rl_value v, const rl_map *m) {
    rl_push(t->mem, t->map, *m);
    rl_hash_put(&t->map_of, v.i + 1u, t->map.n - 1);
}

static const rl_map *get_map(const rl_router *t, rl_value v) {
    uint32_t i = rl_hash_get(&t->map_of, v.i + 1u);
    return i == RL_NONE ? NULL : &t->map.p[i];
}

static bool map_sources(rl_router *t) {
    for (uint32_t i = 0; i < t->source.n; i++) {
        rl_dim start[RL_FORM_RANK] = {0}, count[RL_FORM_RANK];
        int64_t step[RL_FORM_RANK];
        rl_map m;
        for (uint32_t d = 0; d < t->all.rank; d++) step[d] = 1, count[d] = t->all.dim[d];
        start[t->axis] = t->source.p[i].base;
        count[t->axis] = t->source.p[i].n;
        if (!rl_map_slice(t->maps, t->all.rank, t->all.dim, start, count, step, &m)) return false;
        set_map(t, t->source.p[i].v, &m);
    }
    return true;
}

/* The map of one output of a node; false where none can be found, which matters only if it gets to a sink. */
static bool map_output(rl_router *t, const rl_nodeinfo *n, uint32_t port, rl_map *out) {
    rl_map own, *in = rl_new(t->mem, rl_map, n->nin);
    uint32_t slot, nin = rl_route_inputs(n);
    for (uint32_t i = 0; i < nin; i++) {
        const rl_map *m = get_map(t, n->in[i]);
        if (!m) return false;
        in[i] = *m;
    }
    if (n->op == RL_OP_Concat) return rl_move_join(t->maps, t->g, n, in, out);
    return rl_map_of_node(t->maps, t->g, n, port, &slot, &own) && slot == 0 && rl_map_compose(t->maps, &own, &in[0], out);
}

static void map_nodes(rl_router *t) {
    for (uint32_t k = 0; k < t->nnode; k++) {
        const rl_nodeinfo *n = rl_nod(t->g, t->node[k]);
        rl_map m;
        for (uint32_t i = 0; i < n->nout; i++)
            if (rl_has(n->out[i]) && map_output(t, n, i, &m)) set_map(t, n->out[i], &m);
    }
}

/* Which channels each sink has. */
static bool list_sinks(rl_router *t) {
    for (uint32_t i = 0; i < t->sink.n; i++) {
        rl_sink *s = &t->sink.p[i];
        const rl_valinfo *x = rl_val(t->g, s->v);
        const rl_map *m = get_map(t, s->v);
        if (!m || x->rank != t->all.rank || !rl_form_index(t->maps, m, &t->all, t->axis, &s->channel, &s->n)) return false;
        for (uint32_t d = 0; d < x->rank; d++)
            if (x->dim[d] != (d == t->axis ? (rl_dim)s->n : t->all.dim[d])) return false;
    }
    return true;
}

static bool find_channels(rl_router *t) {
    uint32_t rank = rl_val(t->g, t->source.p[0].v)->rank;
    for (uint32_t axis = 0; axis < rank; axis++) {
        t->map.n = 0;
        t->map_of = (rl_hash){.mem = t->mem};
        if (!lay_out(t, axis) || !map_sources(t)) continue;
        map_nodes(t);
        if (list_sinks(t)) return true;
    }
    return false;
}

bool rl_route_ends(rl_router *t) {
    return find_ends(t) && find_channels(t);
}
