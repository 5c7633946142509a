/* Fold what only moves data.
 * Needs: order, types.  Keeps: order, types.  Breaks: nothing; nodes and constants that are no longer read are left for dce.
 *
 *   x -> Slice -> Slice -> y                                   one Slice
 *   x -> Slice [:,3:], Slice [:,:3] -> Concat -> y             (a roll) one Gather of rows
 *   x -> Reshape -> Transpose -> Reshape -> y                  one Gather of channels, or DepthToSpace, where it is that
 *   x -> Split -> Concat -> y                                  nothing
 *
 * A cone is all nodes between a tensor y and one tensor x of which y holds elements and nothing else; its map (src/map.h) says
 * which.  For each y, from the last node to the first, every x on the way is tried, and the form that saves most is written: nothing,
 * a Reshape, one Slice, one Resize to the nearest, one Gather along a dim, one Transpose, DepthToSpace or SpaceToDepth, the first of these that exists.  A form
 * never has more nodes than those that go with it, nor moves more bytes, nor adds a Transpose; one that is of another kind than
 * what it replaces (a Gather for a Transpose) replaces at least one for one, where the target allows it; the Gather's indices, at most an
 * eighth of what it writes, then count for the choice alone.
 *
 * It runs after the layouts are chosen, since a Gather leaves them less freedom than the Transpose or the Slices that it stands for.
 * Chains of Transposes and views alone are the layout passes' own, unless they are of another kind.  A cone stands in one body (flat.h),
 * and so does its form: nothing gets into a Loop, or out of it. */
#include "movement.h"

#include <string.h>

#include "absorb.h"
#include "flat.h"

enum { MAXTABLE = 1 << 16, MAXWORK = 1 << 22, MAXSTEP = 1 << 16, LARGE = 1 << 14 };

/* map: to the cone's x.  In a chain, where each tensor is made of the next alone: down: from y; still: the tensor before it has its
 * elements in the same order. */
typedef struct { rl_value v; rl_map map, down; bool mapped, still; } traced;

typedef struct {
    rl_pass_run *r;
    rl_graph *g;
    rl_arena scratch;  /* maps; emptied between tensors */
    rl_maps maps;
    uint32_t step;     /* nodes that maps were made of */
    uint32_t region;   /* of the cone at hand (flat.h) */
    bool changed;
    traced val[RL_CONE_MAX]; /* of the cone at hand: y first */
    uint32_t nval;
    rl_node node[RL_CONE_MAX];
    bool goes[RL_CONE_MAX];  /* ... nobody outside reads what it makes */
    uint32_t nnode;
    rl_value x;
    rl_move_memo memo;
} folder;

bool rl_move_is_view(rl_op op) {
    return op == RL_OP_Reshape || op == RL_OP_Squeeze || op == RL_OP_Unsqueeze || op == RL_OP_Flatten || op == RL_OP_Identity;
}

bool rl_move_is(rl_op op) {
    switch (op) {
    case RL_OP_Transpose: case RL_OP_Slice: case RL_OP_Split: case RL_OP_Gather: case RL_OP_Expand: case RL_OP_Tile: case RL_OP_Pad:
    case RL_OP_DepthToSpace: case RL_OP_SpaceToDepth: case RL_OP_ScatterND: case RL_OP_Concat: return true;
    default: return rl_move_is_view(op);
    }
}

/* What moves on the way to v, in the body where all of the cone stands. */
static rl_node maker(const folder *f, rl_value v) {
    rl_node d = rl_val(f->g, v)->def;
    if (d.i == RL_NONE || !rl_move_is(rl_nod(f->g, d)->op)) return RL_NONODE;
    return rl_flat_region(f->g, rl_nod(f->g, d)->origin) == f->region ? d : RL_NONODE;
}

/* ---- the map from one tensor to another ---- */

static bool trace(folder *f, rl_value v, uint32_t depth, rl_map *out);

static bool remember(folder *f, rl_node n) {
    for (uint32_t i = 0; i < f->nnode; i++)
        if (f->node[i].i == n.i) return true;
    if (f->nnode == RL_CONE_MAX) return false;
    f->node[f->nnode++] = n;
    return true;
}

bool rl_move_join(rl_maps *m, const rl_graph *g, const rl_nodeinfo *n, const rl_map *part, rl_map *out) {
    const rl_valinfo *y = rl_val(g, n->out[0]);
    int64_t axis = rl_attr_int(n, "axis", 1);
    if (y->rank == RL_NORANK) return false;
    if (axis < 0) axis += y->rank;
    if (axis < 0 || axis >= (int64_t)y->rank) return false;
    rl_dim inner = rl_dim_prod(g->ctx, y->dim + axis + 1, y->rank - (uint32_t)axis - 1), *size = rl_new(m->mem, rl_dim, n->nin);
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!rl_has(n->in[i]) || rl_val(g, n->in[i])->rank != y->rank) return false;
        size[i] = rl_val(g, n->in[i])->dim[axis];
    }
    return rl_map_concat(m, n->nin, part, size, inner, out);
}

static bool trace_concat(folder *f, rl_node d, uint32_t depth, rl_map *out) {
    rl_map part[RL_CONE_MAX];
    uint32_t nin = rl_nod(f->g, d)->nin;
    if (nin > RL_CONE_MAX) return false;
    for (uint32_t i = 0; i < nin; i++) {
        rl_value v = rl_nod(f->g, d)->in[i];
        if (!rl_has(v) || !trace(f, v, depth + 1, &part[i])) return false;
    }
    return rl_move_join(&f->maps, f->g, rl_nod(f->g, d), part, out);
}

static bool trace_node(folder *f, rl_value v, uint32_t depth, rl_map *out) {
    rl_node d = maker(f, v);
    rl_map own, rest;
    uint32_t slot;
    if (d.i == RL_NONE || depth > RL_CONE_MAX || f->step++ > MAXSTEP || !remember(f, d)) return false;
    if (rl_nod(f->g, d)->op == RL_OP_Concat) return trace_concat(f, d, depth, out);
    if (!rl_map_of_node(&f->maps, f->g, rl_nod(f->g, d), rl_val(f->g, v)->port, &slot, &own)) return false;
    return trace(f, rl_nod(f->g, d)->in[slot], depth + 1, &rest) && rl_map_compose(&f->maps, &own, &rest, out);
}

static traced *find_traced(folder *f, rl_value v) {
    for (uint32_t i = 0; i < f->nval; i++)
        if (rl_same(f->val[i].v, v)) return &f->val[i];
    return NULL;
}

/* The map from v to f->x; false where v holds anything else. */
static bool trace(folder *f, rl_value v, uint32_t depth, rl_map *out) {
    if (rl_same(v, f->x)) {
        const rl_valinfo *x = rl_val(f->g, v);
        return x->rank != RL_NORANK && rl_map_identity(&f->maps, rl_dim_prod(f->g->ctx, x->dim, x->rank), out);
    }
    traced *known = find_traced(f, v);
    if (!known) return false;
    if (known->mapped) {
        *out = known->map;
        return true;
    }
    if (!trace_node(f, v, depth, out)) return false;
    known->map = *out;
    known->mapped = true;
    return true;
}

/* A chain's next tensor, val[i]: the map from y to it, from that to the one before.  *chain: it is one. */
static bool trace_chain(folder *f, uint32_t i, bool *chain, rl_map *out) {
    rl_node d = maker(f, f->val[i - 1].v);
    const rl_nodeinfo *n = d.i == RL_NONE ? NULL : rl_nod(f->g, d);
    const rl_valinfo *x = rl_val(f->g, f->val[i].v);
    rl_map own;
    uint32_t slot;
    *chain = n && n->op != RL_OP_Concat && n->op != RL_OP_ScatterND && rl_same(n->in[0], f->val[i].v);
    if (!*chain || x->rank == RL_NORANK) return false;
    if (f->step++ > MAXSTEP || !rl_map_of_node(&f->maps, f->g, n, rl_val(f->g, f->val[i - 1].v)->port, &slot, &own) || slot != 0) return false;
    f->val[i].still = rl_map_is_identity(&own, rl_dim_prod(f->g->ctx, x->dim, x->rank));
    if (i == 1) f->val[i].down = own;
    else if (!rl_map_compose(&f->maps, &f->val[i - 1].down, &own, &f->val[i].down)) return false;
    *out = f->val[i].down;
    return remember(f, d);
}

/* All tensors on the way up from y, y first, each once. */
static void collect(folder *f, rl_value y) {
    f->nval = 0;
    f->val[f->nval++] = (traced){.v = y};
    for (uint32_t i = 0; i < f->nval; i++) {
        rl_node d = maker(f, f->val[i].v);
        const rl_nodeinfo *n = d.i == RL_NONE ? NULL : rl_nod(f->g, d);
        uint32_t nin = !n ? 0 : n->op == RL_OP_Concat || n->op == RL_OP_ScatterND ? n->nin : 1;
        for (uint32_t k = 0; k < nin && f->nval < RL_CONE_MAX; k++)
            if (rl_has(rl_in(n, k)) && !find_traced(f, n->in[k])) f->val[f->nval++] = (traced){.v = n->in[k]};
    }
}

/* ---- what would go ---- */

static bool is_inside(const folder *f, rl_use u) {
    for (uint32_t k = 0; k < f->nnode; k++)
        if (f->goes[k] && f->node[k].i == u.node.i) return true;
    return false;
}

static bool is_used_outside(const folder *f, rl_node n) {
    const rl_nodeinfo *x = rl_nod(f->g, n);
    for (uint32_t i = 0; i < x->nout; i++) {
        if (!rl_has(x->out[i])) continue;
        const rl_valinfo *v = rl_val(f->g, x->out[i]);
        if (v->is_output) return true;
        for (uint32_t u = 0; u < v->nuse; u++)
            if (!is_inside(f, v->use[u])) return true;
    }
    return false;
}

void rl_move_add_cost(const rl_graph *g, rl_node n, rl_movecost *c) {
    const rl_nodeinfo *x = rl_nod(g, n);
    c->nodes++;
    if (rl_move_is_view(x->op) || (x->op == RL_OP_Transpose && !rl_transpose_moves(g, x))) return;
    c->transposes += x->op == RL_OP_Transpose;
    c->gathers += x->op == RL_OP_Gather;
    c->depth_space += x->op == RL_OP_DepthToSpace || x->op == RL_OP_SpaceToDepth;
    c->others += x->op != RL_OP_Transpose && x->op != RL_OP_DepthToSpace && x->op != RL_OP_SpaceToDepth;
    for (uint32_t i = 0; i < x->nout; i++)
        if (rl_has(x->out[i])) c->bytes = rl_add(c->bytes, rl_stats_bytes(g, x->out[i]));
    if (x->op == RL_OP_Transpose) c->turned = rl_add(c->turned, rl_stats_bytes(g, x->out[0]));
}

/* The nodes of the cone that nothing else reads; its first is y's maker. */
static rl_movecost cost_of_cone(folder *f) {
    rl_movecost c = {0};
    for (uint32_t i = 0; i < f->nnode; i++) f->goes[i] = i == 0;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 1; i < f->nnode; i++)
            if (!f->goes[i] && !is_used_outside(f, f->node[i])) f->goes[i] = more = true;
    }
    for (uint32_t i = 0; i < f->nnode; i++)
        if (f->goes[i]) rl_move_add_cost(f->g, f->node[i], &c);
    return c;
}

/* ---- the choice ---- */

static bool is_plain(const folder *f) {
    for (uint32_t i = 0; i < f->nnode; i++) {
        rl_op op = rl_nod(f->g, f->node[i])->op;
        if (op != RL_OP_Transpose && !rl_move_is_view(op)) return false;
    }
    return true;
}

static bool is_pure_count(const folder *f) {
    return f->r->opt->target && strcmp(f->r->opt->target, "onnx") == 0;
}

/* Does a softmax of bytes read y?  onnxruntime takes a Transpose before it over to the other side, where it is one with that before a convolution of bytes. */
static bool is_for_softmax(const folder *f, rl_value y) {
    const rl_valinfo *v = rl_val(f->g, y);
    for (uint32_t i = 0; i < v->nuse; i++)
        if (rl_nod(f->g, v->use[i].node)->op == RL_OP_ms_QLinearSoftmax) return true;
    return false;
}

/* May the form stand for what is moved? */
static bool is_allowed(const folder *f, const rl_form *form, const rl_moved *m) {
    const rl_movecost *now = &form->cost, *old = &m->old;
    int64_t conv_old = old->transposes + old->depth_space, conv_now = now->transposes + now->depth_space;
    if (now->nodes > old->nodes || now->bytes > old->bytes || now->transposes > old->transposes) return false;
    if (now->transposes == old->transposes && now->turned > old->turned) return false; /* the certificate says what Transposes move, Concats or not */
    if (form->kind == RL_FORM_RESIZE && rl_target_charges(f->r->target) && !rl_form_resize_pays(form, old)) return false;
    if (conv_now > conv_old + old->others) return false;
    if (conv_old + old->others == 0) return false; /* views alone */
    if (now->depth_space > old->depth_space && old->transposes == 0 && old->others < 2) return false;
    if (now->others > old->others && (is_pure_count(f) || conv_old == 0)) return false;
    if (form->kind == RL_FORM_GATHER && old->transposes && rl_target_charges(f->r->target) && is_for_softmax(f, m->y)) return false;
    if (rl_add(now->bytes, now->index) > old->bytes && (old->transposes == 0 || now->index > now->bytes / 8)) return false;
    if (form->kind == RL_FORM_RESIZE && rl_target_charges(f->r->target) && now->bytes >= LARGE) return true; /* of as many nodes it is the quickest */
    return now->nodes < old->nodes || rl_add(now->bytes, now->index) < old->bytes;
}

/* Dims that x has on the way without having moved. */
static void find_views(const folder *f, rl_moved *m) {
    rl_dim n = rl_dim_prod(f->g->ctx, rl_val(f->g, f->x)->dim, rl_val(f->g, f->x)->rank);
    for (uint32_t i = f->nval; i-- > 0;) {
        const rl_valinfo *v = rl_val(f->g, f->val[i].v);
        bool same = rl_same(f->val[i].v, f->x) || (f->val[i].mapped && rl_map_is_identity(&f->val[i].map, n));
        if (!same || v->rank > RL_FORM_RANK) continue;
        rl_shape *s = &m->view[m->nview++];
        s->rank = v->rank;
        for (uint32_t k = 0; k < v->rank; k++) s->dim[k] = v->dim[k];
        if (!rl_same(f->val[i].v, f->x)) continue;
        rl_shape t = m->view[0]; /* x's own dims come first */
        m->view[0] = *s;
        *s = t;
    }
}

static bool best_form(folder *f, rl_moved *m, bool plain, rl_form *best) {
    static const rl_formkind order[] = {RL_FORM_NOTHING,   RL_FORM_SLICE,          RL_FORM_RESIZE,        RL_FORM_GATHER,
                                        RL_FORM_TRANSPOSE, RL_FORM_DEPTH_TO_SPACE, RL_FORM_SPACE_TO_DEPTH};
    for (size_t k = 0; k < RL_LEN(order); k++)
        if (!(plain && order[k] == RL_FORM_TRANSPOSE) && rl_form_find(m, order[k], best) && is_allowed(f, best, m)) return true;
    return false;
}

/* Bytes: old ones are not negative, so this fits. */
static int64_t saved_by(const rl_moved *m, const rl_form *form) { return m->old.bytes - rl_add(form->cost.bytes, form->cost.index); }

static bool saves_more(const rl_moved *m, const rl_form *a, const rl_moved *was, const rl_form *b) {
    int64_t now = saved_by(m, a), then = saved_by(was, b);
    return now != then ? now > then : m->old.nodes - a->cost.nodes > was->old.nodes - b->cost.nodes;
}

static bool is_constant(const folder *f, rl_value v) {
    return rl_val(f->g, v)->data != NULL;
}

static void note_kinds(folder *f, const rl_moved *m, const rl_form *form) {
    int64_t more = form->cost.others + form->cost.depth_space - m->old.others - m->old.depth_space;
    if (more > 0) f->r->out->apart += more;
}

static void replace(folder *f, const rl_moved *m, const rl_form *form) {
    rl_node d = rl_val(f->g, m->y)->def;
    uint32_t origin = rl_nod(f->g, d)->origin;
    note_kinds(f, m, form);
    rl_graph_remove(f->g, d);
    rl_form_write(m, form, origin);
    f->changed = true;
}

static bool is_read_by_cone_alone(const folder *f, rl_value x) {
    const rl_valinfo *v = rl_val(f->g, x);
    for (uint32_t u = 0; u < v->nuse; u++)
        if (v->use[u].slot != 0 || !is_inside(f, v->use[u])) return false;
    return !v->is_output;
}

/* Only a permutation of channels or features is left over (*is_one), which constant weights take in. */
static bool absorb(folder *f, const rl_moved *m, bool *is_one) {
    static const rl_formkind base[] = {RL_FORM_NOTHING, RL_FORM_SPACE_TO_DEPTH};
    for (size_t k = 0; k < RL_LEN(base); k++) {
        rl_form form;
        uint32_t axis, n;
        const int64_t *p;
        if (!rl_form_permuted(m, base[k], &form, &axis, &p, &n) || !is_allowed(f, &form, m)) continue;
        rl_absorber a = {.g = f->g, .tmp = &f->scratch};
        *is_one = true;
        bool in_maker = base[k] == RL_FORM_NOTHING && is_read_by_cone_alone(f, f->x) && rl_absorb_in_maker(&a, f->x, axis, p, n);
        if (!in_maker && !rl_absorb_in_readers(&a, m->y, axis, p, n)) continue;
        rl_absorb_carry_out(&a);
        replace(f, m, &form);
        return true;
    }
    return false;
}

/* The map from y to val[i]; what is between them is then mapped where it can be a view of it.  *more: a later one may still have a map. */
static bool trace_to(folder *f, uint32_t i, bool *chain, bool *more, rl_map *out) {
    bool ok = *chain && trace_chain(f, i, chain, out);
    if (*chain) *more = ok;
    for (uint32_t k = 0; k < f->nval; k++) f->val[k].mapped = false;
    if (!*chain) {
        f->nnode = 0;
        return trace(f, f->val[0].v, 0, out);
    }
    const rl_valinfo *x = rl_val(f->g, f->x);
    for (uint32_t k = i; ok && k > 0 && f->val[k].still; k--)
        f->val[k - 1].mapped = rl_map_identity(&f->maps, rl_dim_prod(f->g->ctx, x->dim, x->rank), &f->val[k - 1].map);
    return ok;
}

static void fold_value(folder *f, rl_value y) {
    rl_moved best = {0};
    rl_form form = {0};
    bool found = false;
    f->region = rl_flat_value_region(f->g, y);
    bool chain = true, more = true;
    collect(f, y);
    f->nnode = 0;
    for (uint32_t i = 1; i < f->nval && more; i++) {
        f->x = f->val[i].v;
        rl_moved m = {.maps = &f->maps, .g = f->g, .x = f->x, .y = y};
        rl_form one;
        if (is_constant(f, f->x) || !trace_to(f, i, &chain, &more, &m.map)) continue;
        m.old = cost_of_cone(f);
        find_views(f, &m);
        bool plain = is_plain(f), permuted = false;
        if (rl_move_is_hopeless(&f->memo, &m, plain)) continue;
        bool better = best_form(f, &m, plain, &one);
        if (!(better && one.kind == RL_FORM_NOTHING) && absorb(f, &m, &permuted)) return;
        if (!better && !permuted) rl_move_note_hopeless(&f->memo);
        if (!better || (found && !saves_more(&m, &one, &best, &form))) continue;
        best = m;
        form = one;
        found = true;
    }
    if (found) replace(f, &best, &form);
}

/* A tensor to fold: the only output of a node that moves, if anything reads it. */
static rl_value result_of(const folder *f, rl_node n) {
    const rl_nodeinfo *x = rl_nod(f->g, n);
    if (!rl_move_is(x->op) || x->nout != 1 || !rl_has(x->out[0])) return RL_NOVALUE;
    const rl_valinfo *v = rl_val(f->g, x->out[0]);
    return v->data || (v->nuse == 0 && !v->is_output) ? RL_NOVALUE : x->out[0];
}

/* ---- twins ---- */

static bool is_twin(folder *f, rl_node a, rl_node b) {
    const rl_nodeinfo *x = rl_nod(f->g, a), *y = rl_nod(f->g, b);
    const rl_valinfo *v = rl_val(f->g, x->out[0]), *w = rl_val(f->g, y->out[0]);
    rl_map p, q;
    uint32_t slot, other;
    if (rl_flat_region(f->g, x->origin) != rl_flat_region(f->g, y->origin)) return false;
    if (f->step++ > MAXSTEP || v->rank == RL_NORANK || v->rank != w->rank || !rl_same_bytes(v->dim, w->dim, v->rank * sizeof *v->dim)) return false;
    if (!rl_map_of_node(&f->maps, f->g, x, 0, &slot, &p) || !rl_map_of_node(&f->maps, f->g, y, 0, &other, &q)) return false;
    return slot == 0 && other == 0 && !p.fill && rl_map_equal(&f->maps, &p, &q) && !(x->op == RL_OP_Pad || y->op == RL_OP_Pad);
}

/* A node that moves what an earlier one moved the same way: its readers read that one's.  earlier: by node; of two that read a constant
 * the other may come later, and depend on this one by the shape that it takes. */
static void share_twin(folder *f, rl_node n, const bool *earlier) {
    rl_value y = result_of(f, n);
    if (!rl_has(y) || rl_nod(f->g, n)->op == RL_OP_Concat || rl_move_is_view(rl_nod(f->g, n)->op) || rl_val(f->g, y)->is_output) return;
    rl_value x = rl_nod(f->g, n)->in[0];
    for (uint32_t u = 0; u < rl_val(f->g, x)->nuse; u++) {
        rl_use use = rl_val(f->g, x)->use[u];
        rl_value other = use.slot == 0 ? result_of(f, use.node) : RL_NOVALUE;
        bool moves = rl_has(other) && rl_nod(f->g, use.node)->op != RL_OP_Concat && !rl_move_is_view(rl_nod(f->g, use.node)->op);
        if (!moves || !earlier[use.node.i] || !is_twin(f, n, use.node)) continue;
        rl_graph_replace_uses(f->g, y, other);
        f->changed = true;
        return;
    }
}

/* Needs the graph sorted, and leaves it so: readers are led to an earlier node. */
static void share_twins(folder *f) {
    bool *earlier = rl_new(f->r->tmp, bool, f->g->nnode);
    for (uint32_t i = 0; i < f->g->order.n; i++) {
        rl_node n = f->g->order.p[i];
        share_twin(f, n, earlier);
        earlier[n.i] = true;
        rl_arena_free(&f->scratch);
    }
}

rl_status rl_pass_movement(rl_pass_run *r) {
    folder f = {.r = r, .g = r->g};
    rl_arena_init(&f.scratch, r->g->ctx);
    f.maps = (rl_maps){r->g->ctx, &f.scratch, MAXTABLE, MAXWORK};
    f.memo = (rl_move_memo){.key.mem = r->tmp, .index.mem = r->tmp};
    f.changed = rl_route(r, &f.maps);
    if (f.changed) RL_TRY(rl_graph_sort(r->g));
    uint32_t n = r->g->order.n;
    rl_node *order = rl_copy(r->tmp, r->g->order.p, n * sizeof *order);
    for (uint32_t i = n; i-- > 0;) {
        rl_value y = result_of(&f, order[i]);
        if (!rl_has(y)) continue;
        fold_value(&f, y);
        rl_arena_free(&f.scratch);
    }
    if (f.changed) RL_TRY(rl_graph_sort(r->g));
    share_twins(&f);
    r->out->moved = f.changed;
    return f.changed ? rl_pass_dce(r) : RL_OK;
}
