/* Atoms: the sub-axes that no Reshape, window or head split of the model cuts further, and the classes of tensors that
 * one-to-one movement joins.
 *
 * Every dim of more than one element is a unit of a refinement forest.  Dims that must agree are united; a Reshape walks the
 * units of its input and of its output, both row-major, and where one size divides the other splits the larger, outer part
 * first.  Order of work: links of flexible ops, Transposes, then Reshapes in graph order, each as a transaction.
 *   x[56,56,C] -> Reshape [7,8,7,8,C]     the units of 56 become (7,8)
 * A Reshape that does not match is cut into its smallest groups of dims with equal products; what still differs is a block,
 * and the Reshape an op of its own (legal.c).
 *
 * Needs: shapes.  Keeps: the graph; all results are in the plan. */
#include "plan.h"
#include <string.h>

/* ---- the forest ---- */

uint32_t rl_unit_new(rl_plan *p, rl_dim size) {
    rl_push(p->draft, p->unit, ((rl_unit){size, RL_NONE, RL_NONE, RL_NONE, 1}));
    return p->unit.n - 1;
}

static uint32_t find(const rl_plan *p, uint32_t u) {
    while (p->unit.p[u].parent != RL_NONE) u = p->unit.p[u].parent;
    return u;
}

uint32_t rl_unit_leaves(rl_plan *p, uint32_t root, uint32_t *out, uint32_t max) {
    uint32_t stack[64], top = 0, n = 0;
    stack[top++] = root;
    while (top) {
        uint32_t u = find(p, stack[--top]);
        const rl_unit *x = &p->unit.p[u];
        if (x->outer == RL_NONE || top + 2 > RL_LEN(stack)) {
            if (n < max) out[n] = u;
            n++;
        } else {
            stack[top++] = x->inner;
            stack[top++] = x->outer;
        }
    }
    return n;
}

static void change(rl_plan *p, uint32_t u, rl_unit now) {
    rl_push(p->draft, p->trail, ((rl_undo){u, p->unit.p[u]}));
    p->unit.p[u] = now;
}

static void roll_back(rl_plan *p) {
    while (p->trail.n) {
        rl_undo u = p->trail.p[--p->trail.n];
        p->unit.p[u.unit] = u.old;
    }
}

/* The smaller class goes under the larger, so that find stays short without rewriting paths (which could not be undone). */
static void unite(rl_plan *p, uint32_t a, uint32_t b) {
    rl_unit x = p->unit.p[a], y = p->unit.p[b];
    uint32_t weight = x.weight + y.weight;
    if (x.weight < y.weight) {
        x.parent = b;
        y.weight = weight;
    } else {
        y.parent = a;
        x.weight = weight;
    }
    change(p, a, x);
    change(p, b, y);
}

static void split(rl_plan *p, uint32_t u, rl_dim outer, rl_dim inner) {
    uint32_t o = rl_unit_new(p, outer), i = rl_unit_new(p, inner);
    rl_unit x = p->unit.p[u];
    x.outer = o;
    x.inner = i;
    change(p, u, x);
}

/* Walks the leaves of a list of units; leaves may be split while the walk goes on. */
typedef struct { uint32_t stack[256], top; bool full; } walk;

static void walk_start(walk *w, const uint32_t *u, uint32_t n) {
    w->top = 0;
    w->full = n > 128;
    for (uint32_t i = n; i-- > 0 && !w->full;) w->stack[w->top++] = u[i];
}

/* The next leaf, left on the stack; RL_NONE at the end. */
static uint32_t walk_leaf(rl_plan *p, walk *w) {
    while (w->top) {
        uint32_t u = find(p, w->stack[w->top - 1]);
        const rl_unit *x = &p->unit.p[u];
        if (x->outer == RL_NONE) return u;
        if (w->top + 1 >= RL_LEN(w->stack)) { w->full = true; return RL_NONE; }
        w->stack[w->top - 1] = x->inner;
        w->stack[w->top++] = x->outer;
    }
    return RL_NONE;
}

static bool match(rl_plan *p, const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb) {
    walk wa, wb;
    walk_start(&wa, a, na);
    walk_start(&wb, b, nb);
    for (;;) {
        uint32_t x = walk_leaf(p, &wa), y = walk_leaf(p, &wb);
        if (wa.full || wb.full) return false;
        if (x == RL_NONE || y == RL_NONE) return x == y;
        rl_dim sx = p->unit.p[x].size, sy = p->unit.p[y].size, q;
        if (x != y && sx != sy) {
            if (rl_dim_div(p->g->ctx, sy, sx, &q)) split(p, y, sx, q);
            else if (rl_dim_div(p->g->ctx, sx, sy, &q)) split(p, x, sy, q);
            else return false;
            continue;
        }
        if (x != y) unite(p, x, y);
        wa.top--;
        wb.top--;
    }
}

bool rl_units_match(rl_plan *p, const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb) {
    p->trail.n = 0;
    bool ok = match(p, a, na, b, nb);
    if (!ok) roll_back(p);
    return ok;
}

/* ---- movement ---- */

bool rl_is_reshaping(const rl_graph *g, const rl_nodeinfo *n) {
    if (rl_op_class(n->op) != RL_MOVING || n->op == RL_OP_Transpose || n->nin == 0 || n->nout == 0) return false;
    const rl_valinfo *x = rl_val(g, n->in[0]), *y = rl_val(g, n->out[0]);
    if (x->rank == RL_NORANK || y->rank == RL_NORANK) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dim[i] == 0) return false;
    for (uint32_t i = 0; i < y->rank; i++)
        if (y->dim[i] == 0) return false;
    return true;
}

static bool transpose_perm(const rl_graph *g, const rl_nodeinfo *n, uint32_t *perm) {
    const rl_valinfo *x = rl_val(g, n->in[0]);
    const rl_attr *a = rl_attr_ints(n, "perm");
    bool seen[RL_MAXATOM] = {false};
    if (x->rank == RL_NORANK || x->rank > RL_MAXATOM || (a && a->n != x->rank) || rl_val(g, n->out[0])->rank != x->rank) return false;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (a && (a->ints[i] < 0 || a->ints[i] >= (int64_t)x->rank)) return false;
        perm[i] = a ? (uint32_t)a->ints[i] : x->rank - 1 - i;
        if (seen[perm[i]]) return false;
        seen[perm[i]] = true;
    }
    return true;
}

static bool link_transpose(rl_plan *p, const rl_nodeinfo *n) {
    uint32_t perm[RL_MAXATOM];
    if (!transpose_perm(p->g, n, perm)) return false;
    const rl_member *x = &p->member[n->in[0].i], *y = &p->member[n->out[0].i];
    for (uint32_t i = 0; i < rl_val(p->g, n->in[0])->rank; i++) {
        uint32_t a = x->unit[perm[i]], b = y->unit[i];
        if ((a == RL_NONE) != (b == RL_NONE)) return false;
        if (a != RL_NONE && !rl_units_match(p, &a, 1, &b, 1)) return false;
    }
    return true;
}

static uint32_t real_units(const rl_plan *p, rl_value v, uint32_t *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rl_val(p->g, v)->rank; i++)
        if (p->member[v.i].unit[i] != RL_NONE) out[n++] = p->member[v.i].unit[i];
    return n;
}

static bool link_reshape(rl_plan *p, const rl_nodeinfo *n) {
    uint32_t a[RL_MAXATOM], b[RL_MAXATOM];
    if (!rl_is_reshaping(p->g, n)) return false;
    if (rl_val(p->g, n->in[0])->rank > RL_MAXATOM || rl_val(p->g, n->out[0])->rank > RL_MAXATOM) return false;
    uint32_t na = real_units(p, n->in[0], a), nb = real_units(p, n->out[0], b);
    return rl_units_match(p, a, na, b, nb);
}

/* ---- members and classes ---- */

static void make_units(rl_plan *p) {
    const rl_graph *g = p->g;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->nval; i++) n += g->val[i].rank == RL_NORANK ? 0 : g->val[i].rank;
    p->unit.p = rl_new(p->draft, rl_unit, p->unit.cap = n + n / 8 + 1); /* room for those that are cut, too */
    uint32_t *unit = rl_new(p->draft, uint32_t, n);
    for (uint32_t i = 0; i < g->nval; i++) {
        rl_member *m = &p->member[i];
        m->cls = RL_NONE;
        if (g->val[i].rank == RL_NORANK) continue;
        m->unit = unit;
        unit += g->val[i].rank;
        for (uint32_t d = 0; d < g->val[i].rank; d++)
            m->unit[d] = g->val[i].dim[d] == 1 ? RL_NONE : rl_unit_new(p, g->val[i].dim[d]);
    }
}

/* Fills dimstart; the atoms themselves depend on the class. False when there are too many. */
static bool count_atoms(rl_plan *p, uint32_t v) {
    rl_member *m = &p->member[v];
    uint32_t rank = p->g->val[v].rank, n = 0, leaf[RL_MAXATOM];
    uint8_t *start = rl_new(p->draft, uint8_t, rank + 1);
    for (uint32_t i = 0; i < rank; i++) {
        start[i] = (uint8_t)n;
        if (m->unit[i] != RL_NONE) n += rl_unit_leaves(p, m->unit[i], leaf, RL_MAXATOM);
        if (n > RL_MAXATOM) return false;
    }
    start[rank] = (uint8_t)n;
    m->natom = n;
    m->dimstart = rl_new(p->mem, uint8_t, rank + 1 + n + 1);
    m->seq = m->dimstart + rank + 1;
    memcpy(m->dimstart, start, rank + 1);
    return true;
}

static bool has_bytes(const rl_valinfo *v) {
    return v->data && v->data->data && v->data->nbyte > 0 && rl_dtype_bits(v->data->dtype) > 0;
}

bool rl_can_permute_bytes(const rl_graph *g, const rl_valinfo *v) {
    if (v->data) return has_bytes(v);
    if (v->def.i == RL_NONE || v->is_output || rl_nod(g, v->def)->op != RL_OP_DequantizeLinear) return false;
    const rl_nodeinfo *n = rl_nod(g, v->def);
    if (n->ncap || rl_attr_int(n, "block_size", 0) != 0 || !has_bytes(rl_val(g, n->in[0]))) return false;
    for (uint32_t i = 1; i < n->nin; i++)
        if (rl_has(n->in[i]) && (!rl_val(g, n->in[i])->data || rl_val(g, n->in[i])->rank > 1)) return false;
    return true;
}

static void start_class(rl_plan *p, uint32_t v) {
    const rl_valinfo *val = &p->g->val[v];
    rl_member *m = &p->member[v];
    rl_cls c = {.first = {v}, .comp = RL_NONE, .like = p->cls.n};
    c.natom = m->natom;
    c.size = rl_new(p->mem, rl_dim, m->natom + 1);
    c.constant = rl_can_permute_bytes(p->g, val);
    uint32_t leaf[RL_MAXATOM], n = 0;
    for (uint32_t d = 0; d < val->rank; d++) {
        if (m->unit[d] == RL_NONE) continue;
        uint32_t k = rl_unit_leaves(p, m->unit[d], leaf, RL_MAXATOM);
        for (uint32_t j = 0; j < k; j++) c.size[n++] = p->unit.p[leaf[j]].size;
    }
    double bytes = (double)rl_dtype_bits(val->dtype) / 8 * (double)rl_flat_turns(p->g, rl_flat_value_region(p->g, (rl_value){v}));
    for (uint32_t i = 0; i < n; i++) {
        m->seq[i] = (uint8_t)i;
        bytes *= (double)rl_dim_guess(p->g->ctx, c.size[i], RL_STATS_GUESS);
    }
    c.bytes = bytes < 1e12 ? (int64_t)bytes : (int64_t)1e12;
    m->cls = p->cls.n;
    rl_push(p->mem, p->cls, c);
}

static void join_class(rl_plan *p, const rl_nodeinfo *n) {
    const rl_member *x = &p->member[n->in[0].i];
    rl_member *y = &p->member[n->out[0].i];
    y->cls = x->cls;
    if (n->op != RL_OP_Transpose) {
        memcpy(y->seq, x->seq, y->natom);
        return;
    }
    uint32_t perm[RL_MAXATOM] = {0}, at = 0;
    transpose_perm(p->g, n, perm);
    for (uint32_t i = 0; i < rl_val(p->g, n->out[0])->rank; i++)
        for (uint32_t k = x->dimstart[perm[i]]; k < x->dimstart[perm[i] + 1]; k++) y->seq[at++] = x->seq[k];
}

static rl_status make_classes(rl_plan *p) {
    rl_graph *g = p->g;
    bool *done = rl_new(p->draft, bool, g->nval);
    for (uint32_t v = 0; v < g->nval; v++) /* inputs, initializers, outer values */
        if (g->val[v].rank != RL_NORANK && g->val[v].def.i == RL_NONE) {
            done[v] = true;
            if (count_atoms(p, v)) start_class(p, v);
        }
    for (uint32_t k = 0; k < g->order.n; k++) {
        rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        for (uint32_t j = 0; j < n->nout; j++) {
            if (!rl_has(n->out[j]) || rl_val(g, n->out[j])->rank == RL_NORANK) continue;
            uint32_t v = n->out[j].i;
            if (done[v]) continue;
            done[v] = true;
            if (!count_atoms(p, v)) continue;
            bool move = p->moving[g->order.p[k].i] && p->member[n->in[0].i].cls != RL_NONE;
            if (!move) {
                p->moving[g->order.p[k].i] = false;
                start_class(p, v);
                continue;
            }
            if (p->member[n->in[0].i].natom != p->member[v].natom)
                return rl_fail(g->ctx, RL_EINTERNAL, "node '%s': movement does not keep its atoms", n->name ? n->name : "");
            join_class(p, n);
        }
    }
    return RL_OK;
}

rl_status rl_plan_atoms(rl_plan *p) {
    rl_graph *g = p->g;
    p->member = rl_new(p->mem, rl_member, g->nval);
    p->moving = rl_new(p->mem, bool, g->nnode);
    p->cls.p = rl_new(p->mem, rl_cls, p->cls.cap = g->nval);
    p->op.p = rl_new(p->mem, rl_oplegal, p->op.cap = g->order.n);
    p->opof = rl_new(p->mem, uint32_t, g->nnode);
    memset(p->opof, 0xff, g->nnode * sizeof *p->opof);
    make_units(p);
    /* Transposes first, while no unit is cut: then they always link, and what does not fit a cut is an op that can do with a block. */
    for (uint32_t k = 0; k < g->order.n; k++)
        if (rl_nod(g, g->order.p[k])->op == RL_OP_Transpose)
            p->moving[g->order.p[k].i] = link_transpose(p, rl_nod(g, g->order.p[k]));
    for (uint32_t k = 0; k < g->order.n; k++)
        if (rl_op_class(rl_nod(g, g->order.p[k])->op) != RL_MOVING) rl_legal_link(p, g->order.p[k]);
    for (uint32_t k = 0; k < g->order.n; k++) {
        rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (rl_op_class(n->op) != RL_MOVING) continue;
        if (n->op != RL_OP_Transpose) p->moving[g->order.p[k].i] = link_reshape(p, n);
        if (!p->moving[g->order.p[k].i]) rl_legal_link(p, g->order.p[k]); /* a block reshape; a Transpose of who knows how many dims */
    }
    for (uint32_t i = 0; i < p->op.n; i++) rl_legal_inner(p, i);
    return make_classes(p);
}
