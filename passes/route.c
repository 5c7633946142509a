/* Channels that go from layers to layers through Split, Concat, Slice, Gather and shuffles are routed anew.
 *
 *   x -> Split -> p, q;  q -> Conv, Conv -> b;  p, b -> Concat -> shuffle -> Split -> r, s;  s -> Conv ...        (ShuffleNetV2)
 *
 *   x -> Split -> p, q;  q -> Conv, Conv' -> b;  p -> Split -> p1, p2;  b -> Split -> b1, b2;  p2, b2 -> Concat -> Conv'' ...
 *
 * A layer may make its channels in any order, and read them in any, where its weights can be stored in that order (absorb.c).  So all
 * that counts is which channels of each tensor that a layer makes (a source) are in each tensor that a layer reads (a sink).
 * The channels of a source that are in the same sinks are a part.  Each source's parts are put one behind the other by its
 * weights; a source of several parts is split once; a sink of several parts is one Concat, their order stored in its readers' weights.
 * Nothing else moves: no shuffle, and no channel more than once on its way, however many blocks it passes by.
 *
 * A source or sink whose order cannot change (a graph output, a grouped Conv) keeps it: its parts must then lie as it has them.
 * It is done where that takes no more nodes and bytes than there were, and fewer of one.  docs/movement.md says why nothing less would do. */
#include "route.h"

#include <string.h>

#include "../src/stats.h"
#include "absorb.h"

enum { MAXNODE = 4096 };

/* ---- what hangs together ---- */

static uint32_t *join_values(const rl_graph *g, rl_arena *tmp) {
    uint32_t *root = rl_new(tmp, uint32_t, g->nval);
    for (uint32_t v = 0; v < g->nval; v++) root[v] = v;
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (!rl_route_moves(g, n)) continue;
        uint32_t to = rl_root(root, n->in[0].i);
        for (uint32_t i = 1; i < rl_route_inputs(n); i++)
            if (rl_has(n->in[i])) root[rl_root(root, n->in[i].i)] = to;
        for (uint32_t i = 0; i < n->nout; i++)
            if (rl_has(n->out[i])) root[rl_root(root, n->out[i].i)] = to;
    }
    return root;
}

/* ---- parts ---- */

/* Channels of one source in the same sinks get one number; false where a sink has a channel twice. */
static bool classify(rl_router *t, uint32_t *class) {
    uint32_t n = (uint32_t)t->all.dim[t->axis], nclass = t->source.n, *last = rl_new(t->mem, uint32_t, n);
    for (uint32_t i = 0; i < t->source.n; i++)
        for (uint32_t c = 0; c < t->source.p[i].n; c++) class[t->source.p[i].base + c] = i;
    for (uint32_t i = 0; i < t->sink.n; i++) {
        const rl_sink *s = &t->sink.p[i];
        rl_hash divided = {.mem = t->mem};
        for (uint32_t k = 0; k < s->n; k++) {
            uint32_t *c = &class[s->channel[k]], to = rl_hash_get(&divided, *c + 1u);
            if (last[s->channel[k]] == i + 1) return false;
            last[s->channel[k]] = i + 1;
            if (to == RL_NONE) rl_hash_put(&divided, *c + 1u, to = nclass++);
            *c = to;
        }
    }
    return true;
}

static void add_channel(rl_router *t, rl_hash *part_of, uint32_t class, uint32_t from, int64_t channel) {
    uint32_t i = rl_hash_get(part_of, class + 1u);
    if (i == RL_NONE) {
        i = t->part.n;
        rl_hash_put(part_of, class + 1u, i);
        rl_push(t->mem, t->part, ((rl_part){.source = from, .channel = rl_new(t->mem, int64_t, t->source.p[from].n)}));
        t->source.p[from].npart++;
    }
    t->part.p[i].channel[t->part.p[i].n++] = channel;
}

static uint32_t source_of(const rl_router *t, int64_t channel) {
    uint32_t i = t->source.n - 1;
    while (t->source.p[i].base > channel) i--;
    return i;
}

/* The channels of sinks that are rigid, or of those that are not, in their order. */
static void order_by_sinks(rl_router *t, bool rigid, const uint32_t *class, rl_hash *part_of, bool *placed) {
    for (uint32_t i = 0; i < t->sink.n; i++) {
        const rl_sink *s = &t->sink.p[i];
        for (uint32_t k = 0; s->rigid == rigid && k < s->n; k++) {
            int64_t c = s->channel[k];
            if (!placed[c]) add_channel(t, part_of, class[c], source_of(t, c), c);
            placed[c] = true;
        }
    }
}

/* The channels of sources in their own order: of those that keep it, or of what no sink reads. */
static void order_by_sources(rl_router *t, bool rigid, const uint32_t *class, rl_hash *part_of, bool *placed) {
    for (uint32_t i = 0; i < t->source.n; i++) {
        const rl_source *s = &t->source.p[i];
        for (uint32_t c = s->base; s->rigid == rigid && c < s->base + s->n; c++) {
            if (!placed[c]) add_channel(t, part_of, class[c], i, c);
            placed[c] = true;
        }
    }
}

/* A source that keeps its order is cut where it can be. */
static bool parts_are_runs(const rl_router *t) {
    for (uint32_t i = 0; i < t->part.n; i++) {
        const rl_part *p = &t->part.p[i];
        for (uint32_t k = 1; t->source.p[p->source].rigid && k < p->n; k++)
            if (p->channel[k] != p->channel[k - 1] + 1) return false;
    }
    return true;
}

/* The parts that each sink is made of; what they are together must be what a sink that keeps its order has. */
static bool compose_sinks(rl_router *t, const uint32_t *class, const rl_hash *part_of) {
    for (uint32_t i = 0; i < t->sink.n; i++) {
        rl_sink *s = &t->sink.p[i];
        bool *has = rl_new(t->mem, bool, t->part.n);
        uint32_t at = 0;
        s->part.n = 0;
        for (uint32_t k = 0; k < s->n; k++) {
            uint32_t p = rl_hash_get(part_of, class[s->channel[k]] + 1u);
            if (!has[p]) rl_push(t->mem, s->part, p);
            has[p] = true;
        }
        for (uint32_t k = 0; s->rigid && k < s->part.n; k++) {
            const rl_part *p = &t->part.p[s->part.p[k]];
            if (!rl_same_bytes(p->channel, s->channel + at, p->n * sizeof *p->channel)) return false;
            at += p->n;
        }
        if (s->part.n == 1 && rl_form_keeps_name(t->g, s->v)) return false;
    }
    return true;
}

static bool make_parts(rl_router *t) {
    uint32_t n = (uint32_t)t->all.dim[t->axis], *class = rl_new(t->mem, uint32_t, n);
    bool *placed = rl_new(t->mem, bool, n);
    rl_hash part_of = {.mem = t->mem};
    t->part.n = 0;
    for (uint32_t i = 0; i < t->source.n; i++) t->source.p[i].npart = 0;
    if (!classify(t, class)) return false;
    order_by_sources(t, true, class, &part_of, placed);
    order_by_sinks(t, true, class, &part_of, placed);
    order_by_sinks(t, false, class, &part_of, placed);
    order_by_sources(t, false, class, &part_of, placed);
    return parts_are_runs(t) && compose_sinks(t, class, &part_of);
}

/* ---- is it worth it ---- */

/* *more: nodes of these kinds beyond those that there were; they stand for views and Transposes. */
static bool saves(const rl_router *t, int64_t *more) {
    rl_movecost old = {0}, now = {0};
    for (uint32_t k = 0; k < t->nnode; k++) rl_move_add_cost(t->g, t->node[k], &old);
    for (uint32_t i = 0; i < t->source.n; i++) {
        if (t->source.p[i].npart < 2) continue;
        now.others++;
        now.bytes = rl_add(now.bytes, rl_stats_bytes(t->g, t->source.p[i].v));
    }
    for (uint32_t i = 0; i < t->sink.n; i++) {
        if (t->sink.p[i].part.n < 2) continue;
        now.others++;
        now.bytes = rl_add(now.bytes, rl_stats_bytes(t->g, t->sink.p[i].v));
    }
    *more = now.others - old.others - old.depth_space;
    if (now.others > old.nodes || now.bytes > old.bytes) return false;
    return now.bytes < old.bytes || (*more <= 0 && now.others < old.nodes);
}

/* ---- orders into weights ---- */

/* Where the source's channels stand: its parts one behind the other. False: as they stood. */
static bool source_order(rl_router *t, uint32_t i, const int64_t **out) {
    const rl_source *s = &t->source.p[i];
    int64_t *p = rl_new(t->mem, int64_t, s->n);
    uint32_t n = 0;
    bool moved = false;
    for (uint32_t k = 0; k < t->part.n; k++)
        for (uint32_t c = 0; t->part.p[k].source == i && c < t->part.p[k].n; c++) p[n++] = t->part.p[k].channel[c] - s->base;
    for (uint32_t c = 0; c < n; c++) moved |= p[c] != c;
    *out = p;
    return moved;
}

static bool sink_order(rl_router *t, const rl_sink *s, const int64_t **out) {
    int64_t *at = rl_new(t->mem, int64_t, t->all.dim[t->axis]), *p = rl_new(t->mem, int64_t, s->n), n = 0;
    bool moved = false;
    for (uint32_t k = 0; k < s->part.n; k++)
        for (uint32_t c = 0; c < t->part.p[s->part.p[k]].n; c++) at[t->part.p[s->part.p[k]].channel[c]] = n++;
    for (uint32_t c = 0; c < s->n; c++) {
        p[c] = at[s->channel[c]];
        moved |= p[c] != c;
    }
    *out = p;
    return moved;
}

/* Notes all weights that change; what cannot take its order in becomes rigid, and the answer is false. */
static bool absorb(rl_router *t, rl_absorber *a) {
    bool ok = true;
    const int64_t *p;
    for (uint32_t i = 0; i < t->source.n; i++) {
        rl_source *s = &t->source.p[i];
        if (!source_order(t, i, &p) || rl_absorb_in_maker(a, s->v, t->axis, p, s->n)) continue;
        s->rigid = true;
        ok = false;
    }
    for (uint32_t i = 0; i < t->sink.n; i++) {
        rl_sink *s = &t->sink.p[i];
        if (!sink_order(t, s, &p) || rl_absorb_in_readers(a, s->v, t->axis, p, s->n)) continue;
        s->rigid = true;
        ok = false;
    }
    return ok;
}

/* ---- writing ---- */

static rl_value add_part(const rl_router *t, const rl_part *p) {
    rl_graph *g = t->g;
    const rl_valinfo *x = rl_val(g, t->source.p[p->source].v);
    rl_dim dim[RL_FORM_RANK];
    uint32_t rank = x->rank;
    rl_dtype type = x->dtype;
    memcpy(dim, x->dim, rank * sizeof *dim);
    dim[t->axis] = p->n;
    rl_value v = rl_graph_value(g, rl_graph_fresh_name(g, x->name ? x->name : "rl"));
    rl_graph_set_type(g, v, type, rank, dim);
    return v;
}

static void write_split(rl_router *t, uint32_t i, uint32_t origin) {
    rl_graph *g = t->g;
    uint32_t n = 0, npart = t->source.p[i].npart;
    int64_t *size = rl_new(t->mem, int64_t, npart);
    rl_value *out = rl_new(t->mem, rl_value, npart);
    for (uint32_t k = 0; k < t->part.n; k++) {
        rl_part *p = &t->part.p[k];
        if (p->source != i) continue;
        p->v = npart == 1 ? t->source.p[i].v : add_part(t, p);
        size[n] = p->n;
        out[n++] = p->v;
    }
    if (npart == 1) return;
    const rl_attr axis = rl_attr_of_int(g, "axis", t->axis);
    rl_node node = rl_graph_add_listed(g, RL_OP_Split, rl_graph_fresh_name(g, "rl_split"), t->source.p[i].v, "split", npart, size, &axis, npart, out);
    rl_nod(g, node)->origin = origin;
}

static void write_sink(rl_router *t, const rl_sink *s, uint32_t origin) {
    rl_graph *g = t->g;
    rl_value *in = rl_new(t->mem, rl_value, s->part.n);
    for (uint32_t k = 0; k < s->part.n; k++) in[k] = t->part.p[s->part.p[k]].v;
    if (s->part.n == 1) {
        rl_graph_replace_uses(g, s->v, in[0]);
        return;
    }
    rl_node node = rl_graph_add(g, RL_OP_Concat, rl_graph_fresh_name(g, "rl_concat"), s->part.n, in, 1, &s->v);
    rl_attr a = rl_attr_of_int(g, "axis", t->axis);
    rl_graph_set_attrs(g, node, &a, 1);
    rl_nod(g, node)->origin = origin;
}

static void write(rl_router *t) {
    uint32_t *at = rl_new(t->mem, uint32_t, t->sink.n), first = rl_nod(t->g, t->node[0])->origin;
    for (uint32_t i = 0; i < t->sink.n; i++) at[i] = rl_nod(t->g, rl_val(t->g, t->sink.p[i].v)->def)->origin;
    for (uint32_t k = 0; k < t->nnode; k++) rl_graph_remove(t->g, t->node[k]);
    for (uint32_t i = 0; i < t->source.n; i++) write_split(t, i, first);
    for (uint32_t i = 0; i < t->sink.n; i++) write_sink(t, &t->sink.p[i], at[i]);
}

/* ---- all of it ---- */

static bool route(rl_router *t) {
    if (!rl_route_ends(t)) return false;
    for (;;) { /* each time more of them are rigid */
        int64_t more;
        rl_absorber a = {.g = t->g, .tmp = t->mem, .gone = t->gone};
        if (!make_parts(t) || !saves(t, &more)) return false;
        if (!absorb(t, &a)) continue;
        rl_absorb_carry_out(&a);
        write(t);
        if (more > 0) t->r->out->apart += more;
        return true;
    }
}

static bool is_promising(const rl_graph *g, const rl_node *node, uint32_t n) {
    uint32_t joins = 0, moves = 0;
    for (uint32_t k = 0; k < n; k++) {
        rl_op op = rl_nod(g, node[k])->op;
        joins += op == RL_OP_Concat;
        moves += !rl_move_is_view(op);
    }
    return joins > 0 && moves > 1 && n <= MAXNODE;
}

bool rl_route(rl_pass_run *r, rl_maps *maps) {
    rl_graph *g = r->g;
    struct list { rl_node *p; uint32_t n, cap; } *of = rl_new(r->tmp, struct list, g->nval);
    uint32_t *root = join_values(g, r->tmp), nval = g->nval;
    bool changed = false, *gone = rl_new(r->tmp, bool, g->nnode);
    for (uint32_t k = 0; k < g->order.n; k++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (rl_route_moves(g, n)) rl_push(r->tmp, of[rl_root(root, n->in[0].i)], g->order.p[k]);
    }
    for (uint32_t v = 0; v < nval; v++) {
        if (!is_promising(g, of[v].p, of[v].n)) continue;
        rl_router t = {.r = r, .g = g, .maps = maps, .mem = maps->mem, .node = of[v].p, .nnode = of[v].n, .gone = gone};
        for (uint32_t k = 0; k < of[v].n; k++) gone[of[v].p[k].i] = true;
        changed |= route(&t);
        for (uint32_t k = 0; k < of[v].n; k++) gone[of[v].p[k].i] = false;
        rl_arena_free(maps->mem);
    }
    return changed;
}
