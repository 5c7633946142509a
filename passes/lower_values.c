/* The tensors that lower.c and its like ask for, made on demand: Reshapes, conversions, the model's own movement. */
#include "charge.h"
#include "lower.h"
#include "../src/permute.h"

#include <string.h>

bool rl_dims_equal(const rl_dims *a, const rl_dims *b) {
    return a->ndim == b->ndim && rl_same_bytes(a->count, b->count, a->ndim);
}

void rl_member_dims(const rl_member *m, uint32_t rank, rl_dims *d) {
    d->ndim = rank;
    for (uint32_t i = 0; i < rank; i++) d->count[i] = (uint8_t)(m->dimstart[i + 1] - m->dimstart[i]);
}

void rl_lower_shape(const rl_lower *l, uint32_t cls, uint32_t order, const rl_dims *d, rl_dim *out) {
    const rl_cls *c = &l->p->cls.p[cls];
    const uint8_t *o = rl_lower_atoms(l, cls, order);
    uint32_t at = 0;
    for (uint32_t i = 0; i < d->ndim; i++) {
        out[i] = 1;
        for (uint32_t k = 0; k < d->count[i]; k++) out[i] = rl_dim_mul(l->g->ctx, out[i], c->size[o[at++]]);
    }
}

/* ---- nodes ---- */

rl_node rl_lower_place(rl_lower *l, rl_node n) {
    rl_nod(l->g, n)->origin = l->origin;
    rl_nod(l->g, n)->since = rl_opset_of(l->g, rl_nod(l->g, n)->domain);
    rl_push(l->tmp, l->emitted, n);
    return n;
}

rl_node rl_lower_node(rl_lower *l, rl_op op, const char *name, uint32_t nin, const rl_value *in, uint32_t nout, const rl_value *out) {
    return rl_lower_place(l, rl_graph_add(l->g, op, name, nin, in, nout, out));
}

rl_value rl_lower_ints(rl_lower *l, const char *stem, uint32_t n, const int64_t *x) {
    return rl_graph_const_i64(l->g, rl_graph_fresh_name(l->g, stem), n, x);
}

rl_value rl_lower_new(rl_lower *l, rl_value like, uint32_t cls, uint32_t order, const rl_dims *d) {
    rl_dim shape[RL_MAXDIMS];
    const char *stem = rl_val(l->g, like)->name;
    rl_value v = rl_graph_value(l->g, rl_graph_fresh_name(l->g, stem ? stem : "rl"));
    rl_lower_shape(l, cls, order, d, shape);
    rl_graph_set_type(l->g, v, rl_val(l->g, like)->dtype, d->ndim, shape);
    return v;
}

/* ---- what exists ---- */

/* The one copy of it. */
static const rl_dims *keep_dims(rl_lower *l, const rl_dims *d) {
    uint64_t h = rl_hash_bytes(d->count, d->ndim) | 1;
    for (uint32_t i; (i = rl_hash_get(&l->bydims, h)) != RL_NONE; h++)
        if (rl_dims_equal(l->dims.p[i], d)) return l->dims.p[i];
    rl_dims *own = rl_new(l->tmp, rl_dims, 1);
    *own = (rl_dims){.ndim = d->ndim};
    memcpy(own->count, d->count, d->ndim);
    rl_hash_put(&l->bydims, h, l->dims.n);
    rl_push(l->tmp, l->dims, own);
    return own;
}

/* The first phys of this class and order, RL_NONE if there is none. */
static uint32_t head_of(const rl_lower *l, uint32_t cls, uint32_t order) {
    uint32_t i = l->head[cls];
    while (i != RL_NONE && l->phys.p[i].order != order) i = l->phys.p[i].other;
    return i;
}

void rl_lower_have(rl_lower *l, rl_value v, uint32_t cls, uint32_t order, const rl_dims *d) {
    uint32_t *at = &l->head[cls], i = l->phys.n;
    rl_push(l->tmp, l->phys, ((rl_phys){v, cls, order, rl_flat_value_region(l->g, v), RL_NONE, RL_NONE, keep_dims(l, d)}));
    while (*at != RL_NONE && l->phys.p[*at].order != order) at = &l->phys.p[*at].other;
    if (*at != RL_NONE)
        while (*at != RL_NONE) at = &l->phys.p[*at].next;
    *at = i;
    if (v.i < l->nval) l->defined[v.i] = true;
}

/* phys or the next after it that can be read here. */
static uint32_t readable(const rl_lower *l, uint32_t phys) {
    uint32_t here = rl_flat_region(l->g, l->origin);
    while (phys != RL_NONE && !rl_flat_within(l->g, here, l->phys.p[phys].region)) phys = l->phys.p[phys].next;
    return phys;
}

static uint32_t first_of(const rl_lower *l, uint32_t cls, uint32_t order) { return readable(l, head_of(l, cls, order)); }
uint32_t rl_lower_next(const rl_lower *l, uint32_t phys) { return readable(l, l->phys.p[phys].next); }

static uint32_t exact(const rl_lower *l, uint32_t cls, uint32_t order, const rl_dims *d) {
    uint32_t i = first_of(l, cls, order);
    while (i != RL_NONE && !rl_dims_equal(l->phys.p[i].dims, d)) i = rl_lower_next(l, i);
    return i;
}

uint32_t rl_lower_member_order(rl_lower *l, rl_value t) {
    const rl_member *m = &l->p->member[t.i];
    return rl_order_intern(l->p, m->cls, m->seq);
}

void rl_lower_have_member(rl_lower *l, rl_value t) {
    const rl_member *m = &l->p->member[t.i];
    rl_dims d;
    l->defined[t.i] = true;
    if (m->cls == RL_NONE || rl_val(l->g, t)->rank > RL_MAXDIMS) return;
    rl_member_dims(m, rl_val(l->g, t)->rank, &d);
    rl_lower_have(l, t, m->cls, rl_lower_member_order(l, t), &d);
}

/* ---- movement ---- */

/* A DequantizeLinear of a variable with one scale for all its elements makes v, which but one node reads. */
static bool is_dequantized_alike(const rl_graph *g, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    if (x->def.i == RL_NONE || x->nuse > 1 || x->is_output) return false;
    const rl_nodeinfo *n = rl_nod(g, x->def);
    bool dequantizes = n->op == RL_OP_DequantizeLinear || n->op == RL_OP_ms_DequantizeLinear;
    return dequantizes && !rl_val(g, n->in[0])->data && rl_val(g, n->in[1])->rank == 0;
}

/* Bytes take their new dims before they are dequantized: runtimes look for DequantizeLinear right before what they run on bytes, and
 * onnxruntime (1.32, opset 21 and up) refuses a model with int8 where there is a Reshape in between. */
static void regroup_bytes(rl_lower *l, const rl_phys *x, const rl_dims *d, const rl_dim *to, rl_value into) {
    const rl_nodeinfo n = *rl_nod(l->g, rl_val(l->g, x->v)->def);
    rl_value q = rl_lower_new(l, n.in[0], x->cls, x->order, d);
    rl_lower_reshape(l, rl_graph_fresh_name(l->g, "rl_reshape"), n.in[0], to, d->ndim, q);
    rl_value in[3] = {q, n.in[1], rl_in(&n, 2)};
    rl_node made = rl_lower_node(l, n.op, rl_graph_fresh_name(l->g, "rl_dequantize"), n.nin, in, 1, &into);
    rl_nod(l->g, made)->domain = n.domain;
    rl_nod(l->g, made)->since = n.since;
    rl_graph_set_attrs(l->g, made, rl_copy(&l->now, n.attr, n.nattr * sizeof *n.attr), n.nattr);
}

rl_value rl_lower_regroup(rl_lower *l, uint32_t phys, const rl_dims *d, rl_value into) {
    rl_phys x = l->phys.p[phys];
    rl_dim to[RL_MAXDIMS];
    rl_lower_shape(l, x.cls, x.order, d, to);
    if (!rl_has(into)) into = rl_lower_new(l, x.v, x.cls, x.order, d);
    if (is_dequantized_alike(l->g, x.v)) regroup_bytes(l, &x, d, to, into);
    else rl_lower_reshape(l, rl_graph_fresh_name(l->g, "rl_reshape"), x.v, to, d->ndim, into);
    rl_lower_have(l, into, x.cls, x.order, d);
    return into;
}

static void places(const uint8_t *order, uint32_t n, uint8_t *place) {
    for (uint32_t i = 0; i < n; i++) place[order[i]] = (uint8_t)i;
}

/* The dims of x as they come to lie in order `to`: perm, and the form of the result. False when a dim is torn apart.
 * Dims of size 1 go where `want` has them if it has as many, else where they are least in the way. */
static bool whole_dims(const rl_lower *l, const rl_phys *x, uint32_t to, const rl_dims *want, uint32_t *perm, rl_dims *d) {
    uint8_t place[RL_MAXATOM], first[RL_MAXDIMS];
    const uint8_t *from = rl_lower_atoms(l, x->cls, x->order);
    uint32_t at = 0, n = 0, ones = 0, one[RL_MAXDIMS], real[RL_MAXDIMS], want_ones = 0;
    bool is_one[RL_MAXDIMS];
    places(rl_lower_atoms(l, x->cls, to), l->p->cls.p[x->cls].natom, place);
    for (uint32_t i = 0; i < x->dims->ndim; i++) {
        uint32_t c = x->dims->count[i];
        if ((is_one[i] = c == 0)) one[ones++] = i;
        for (uint32_t k = 1; k < c; k++)
            if (place[from[at + k]] != place[from[at]] + k) return false;
        if (c) {
            uint32_t j = n++;
            for (; j > 0 && first[real[j - 1]] > place[from[at]]; j--) real[j] = real[j - 1];
            real[j] = i;
            first[i] = place[from[at]];
        }
        at += c;
    }
    for (uint32_t i = 0; want && i < want->ndim; i++) want_ones += want->count[i] == 0;
    uint32_t r = 0, o = 0;
    d->ndim = x->dims->ndim;
    if (want && want->ndim == d->ndim && want_ones == ones)
        for (uint32_t i = 0; i < d->ndim; i++) perm[i] = want->count[i] == 0 ? one[o++] : real[r++];
    else rl_permute_ones(d->ndim, is_one, real, perm);
    for (uint32_t i = 0; i < d->ndim; i++) d->count[i] = x->dims->count[perm[i]];
    return true;
}

/* Merges what moves together; two symbolic sizes stay apart. */
static void merged_dims(const rl_lower *l, uint32_t cls, const uint8_t *from, const uint8_t *to, rl_dims *d) {
    const rl_cls *c = &l->p->cls.p[cls];
    uint8_t place[RL_MAXATOM];
    bool symbolic = false;
    places(to, c->natom, place);
    d->ndim = 0;
    for (uint32_t i = 0; i < c->natom; i++) {
        bool sym = !rl_dim_known(c->size[from[i]]);
        if (d->ndim && place[from[i]] == place[from[i - 1]] + 1 && !(sym && symbolic)) {
            d->count[d->ndim - 1]++;
            symbolic |= sym;
        } else {
            d->count[d->ndim++] = 1;
            symbolic = sym;
        }
    }
}

static uint32_t transpose(rl_lower *l, uint32_t phys, uint32_t to, const uint32_t *perm, const rl_dims *d, rl_value into) {
    rl_phys x = l->phys.p[phys];
    int64_t p[RL_MAXDIMS];
    for (uint32_t i = 0; i < d->ndim; i++) p[i] = perm[i];
    if (!rl_has(into)) into = rl_lower_new(l, x.v, x.cls, to, d);
    rl_node n = rl_lower_node(l, RL_OP_Transpose, rl_graph_fresh_name(l->g, "rl_transpose"), 1, &x.v, 1, &into);
    rl_attr a = rl_attr_of_ints(l->g, "perm", p, d->ndim);
    rl_graph_set_attrs(l->g, n, &a, 1);
    rl_lower_have(l, into, x.cls, to, d);
    return l->phys.n - 1;
}

/* Where the class is converted to this order: in the region of all that ask for it, but not in a body that runs repeatedly when
 * the class is made outside of it. */
static uint32_t region_for(const rl_lower *l, uint32_t cls, uint32_t order) {
    const rl_graph *g = l->g;
    uint32_t here = rl_flat_region(g, l->origin), at, made = rl_flat_value_region(g, l->p->cls.p[cls].first);
    if (!g->flat) return here;
    if ((at = rl_hash_get(&l->wanted, rl_lower_key(cls, order))) == RL_NONE || !rl_flat_within(g, here, at)) at = here;
    if (!rl_flat_within(g, at, made)) at = made;
    for (uint32_t r = at; r != made && r != 0; r = g->flat->region.p[r].parent)
        if (g->flat->region.p[r].repeats) at = g->flat->region.p[r].parent;
    return at;
}

static bool converts_here(const rl_lower *l, uint32_t cls, uint32_t order) {
    return region_for(l, cls, order) == rl_flat_region(l->g, l->origin);
}

/* A readable phys from which whole dims can be moved: that which gives the form wanted if there is one. */
static uint32_t movable(const rl_lower *l, uint32_t cls, uint32_t to, const rl_dims *want) {
    uint32_t perm[RL_MAXDIMS], best = RL_NONE;
    rl_dims d;
    for (uint32_t k = l->head[cls]; k != RL_NONE; k = l->phys.p[k].other)
        for (uint32_t i = readable(l, k); i != RL_NONE; i = rl_lower_next(l, i)) {
            if (!whole_dims(l, &l->phys.p[i], to, want, perm, &d)) continue;
            if (want && rl_dims_equal(&d, want)) return i;
            if (best == RL_NONE) best = i;
        }
    return best;
}

/* The first that can be read here, in the sequence of orders. */
static uint32_t any_of(const rl_lower *l, uint32_t cls) {
    for (uint32_t k = l->head[cls], i; k != RL_NONE; k = l->phys.p[k].other)
        if ((i = readable(l, k)) != RL_NONE) return i;
    return RL_NONE;
}

/* One with its dims merged as far as they move together. */
static uint32_t merged(rl_lower *l, uint32_t cls, uint32_t to) {
    uint32_t any = any_of(l, cls), i;
    rl_dims d;
    if (any == RL_NONE) {
        l->failed = true;
        return RL_NONE;
    }
    uint32_t order = l->phys.p[any].order;
    merged_dims(l, cls, rl_lower_atoms(l, cls, order), rl_lower_atoms(l, cls, to), &d);
    i = exact(l, cls, order, &d);
    if (i != RL_NONE) return i;
    rl_lower_regroup(l, any, &d, RL_NOVALUE);
    return l->failed ? RL_NONE : l->phys.n - 1;
}

/* onnxruntime makes one Transpose of two where no Reshape stands between them, also past other nodes. Of bytes that one takes ten times as long as
 * both where the first moves rows and the second their elements. */
static bool stays_alone(const rl_lower *l, uint32_t cls, uint32_t from, uint32_t to) {
    const rl_cls *c = &l->p->cls.p[cls];
    bool bytes = rl_target_charges(l->p->target) && rl_dtype_bits(rl_val(l->g, c->first)->dtype) == 8;
    return bytes && rl_lower_atoms(l, cls, from)[c->natom - 1] != rl_lower_atoms(l, cls, to)[c->natom - 1];
}

/* Are channels moved behind the sizes of an image, or back? Of such a Transpose onnxruntime makes nothing where it runs the convolution beside it so. */
static bool moves_channels(const rl_lower *l, uint32_t phys, uint32_t to, const rl_dims *want) {
    rl_phys x = l->phys.p[phys];
    uint32_t perm[RL_MAXDIMS], n = x.dims->ndim;
    rl_dims d;
    if (n < 4 || !whole_dims(l, &x, to, want, perm, &d) || (want && !rl_dims_equal(&d, want)) || perm[0] != 0) return false;
    bool last = perm[n - 1] == 1, first = perm[1] == n - 1;
    for (uint32_t i = 1; i + 1 < n; i++) last &= perm[i] == i + 1, first &= perm[i + 1] == i;
    return last || first;
}

/* Makes the class exist in order `to`: one Transpose. want: the form asked for, or NULL; into: the value for it. */
static uint32_t convert(rl_lower *l, uint32_t cls, uint32_t to, const rl_dims *want, rl_value into) {
    uint32_t perm[RL_MAXDIMS], was = l->origin, region = region_for(l, cls, to), from;
    rl_dims d;
    if (region != rl_flat_region(l->g, l->origin)) into = RL_NOVALUE; /* its name belongs to the body */
    l->origin = rl_flat_step_out(l->g, l->origin, region);
    from = movable(l, cls, to, want);
    if (from == RL_NONE || (stays_alone(l, cls, l->phys.p[from].order, to) && !moves_channels(l, from, to, want))) from = merged(l, cls, to);
    if (from != RL_NONE) {
        rl_phys x = l->phys.p[from];
        bool whole = whole_dims(l, &x, to, want, perm, &d), fits = whole && want && rl_dims_equal(&d, want);
        from = whole ? transpose(l, from, to, perm, &d, fits ? into : RL_NOVALUE) : RL_NONE;
    }
    l->origin = was;
    return from;
}

uint32_t rl_lower_find(rl_lower *l, uint32_t cls, uint32_t order, bool make) {
    uint32_t i = first_of(l, cls, order);
    return i == RL_NONE && make && !l->p->cls.p[cls].constant ? convert(l, cls, order, NULL, RL_NOVALUE) : i;
}

/* In the order that the op has which makes it anew. */
static uint32_t picked_order(const rl_plan *p, rl_value y) {
    uint32_t k = p->op.n;
    while (k-- > 0) {
        const rl_oplegal *op = &p->op.p[k];
        if (op->node.i == RL_NONE && op->operand[0].out && rl_same(op->operand[0].tensor, y)) break;
    }
    return p->op.p[k].pinorder.p[p->op.p[k].chosen];
}

void rl_lower_picked(rl_lower *l, const rl_oplegal *picker) {
    uint32_t cls = picker->operand[1].cls, order = picked_order(l->p, picker->operand[1].tensor), i = rl_lower_find(l, cls, order, true);
    if (i == RL_NONE) return;
    l->head[cls] = head_of(l, cls, order);
    l->phys.p[l->head[cls]].other = RL_NONE;
}

rl_value rl_lower_want(rl_lower *l, uint32_t cls, uint32_t order, const rl_dims *d) {
    uint32_t i = exact(l, cls, order, d);
    if (i != RL_NONE) return l->phys.p[i].v;
    const rl_cls *c = &l->p->cls.p[cls];
    if (c->constant) return rl_lower_constant(l, c->first, cls, order, d);
    i = first_of(l, cls, order);
    if (i == RL_NONE) {
        i = convert(l, cls, order, d, RL_NOVALUE);
        if (i == RL_NONE) return c->first;
        if (rl_dims_equal(l->phys.p[i].dims, d)) return l->phys.p[i].v;
    }
    return rl_lower_regroup(l, i, d, RL_NOVALUE);
}

/* ---- tensors of the input ---- */

/* The model's own movement node, kept, once its inputs exist. */
static rl_value keep_move(rl_lower *l, rl_node node, rl_value from, rl_value t) {
    rl_nodeinfo *m = rl_nod(l->g, node);
    if (!rl_same(m->in[0], from)) rl_graph_set_input(l->g, node, 0, from);
    for (uint32_t i = 1; i < rl_nod(l->g, node)->nin; i++) {
        rl_value x = rl_nod(l->g, node)->in[i];
        if (!rl_has(x)) continue;
        rl_value y = rl_lower_member(l, x);
        if (!rl_same(x, y)) rl_graph_set_input(l->g, node, i, y);
    }
    rl_push(l->tmp, l->emitted, node);
    rl_lower_have_member(l, t);
    return t;
}

rl_value rl_lower_present(rl_lower *l, rl_value x) {
    const rl_member *m = &l->p->member[x.i];
    rl_dims d;
    if (l->defined[x.i]) return x;
    if (m->cls == RL_NONE || rl_val(l->g, x)->rank > RL_MAXDIMS) return RL_NOVALUE;
    rl_member_dims(m, rl_val(l->g, x)->rank, &d);
    uint32_t i = exact(l, m->cls, rl_lower_member_order(l, x), &d);
    return i == RL_NONE ? RL_NOVALUE : l->phys.p[i].v;
}

/* The tensor t from a phys of its order. */
static rl_value in_form(rl_lower *l, uint32_t phys, const rl_dims *d, rl_value t) {
    if (phys == RL_NONE || l->defined[t.i]) return t;
    return rl_dims_equal(l->phys.p[phys].dims, d) ? l->phys.p[phys].v : rl_lower_regroup(l, phys, d, t);
}

/* Are the model's own Transposes, from a form that there is to t, quicker than the one that they come to?  Two that each move one group may be. */
static bool quicker_in_steps(rl_lower *l, rl_value t) {
    const rl_cls *c = &l->p->cls.p[l->p->member[t.i].cls];
    const uint8_t *to = rl_lower_atoms(l, l->p->member[t.i].cls, rl_lower_member_order(l, t)), *after = to;
    int64_t time = 0;
    while (rl_target_charges(l->p->target) && l->def[t.i].i != RL_NONE && l->p->moving[l->def[t.i].i]) {
        t = rl_nod(l->g, l->def[t.i])->in[0];
        uint32_t order = rl_lower_member_order(l, t);
        const uint8_t *from = rl_lower_atoms(l, l->p->member[t.i].cls, order);
        time = rl_add(time, rl_move_cost(l->p, c, from, after, false, false));
        after = from;
        if (first_of(l, l->p->member[t.i].cls, order) != RL_NONE) return time < rl_move_cost(l->p, c, from, to, false, false);
    }
    return false;
}

static rl_value make_member(rl_lower *l, rl_value t) {
    const rl_member *m = &l->p->member[t.i];
    uint32_t order = rl_lower_member_order(l, t);
    rl_dims d;
    rl_member_dims(m, rl_val(l->g, t)->rank, &d);
    if (l->p->cls.p[m->cls].constant && rl_nod(l->g, l->def[t.i])->op == RL_OP_Transpose)
        return rl_lower_constant(l, t, m->cls, order, &d);
    rl_node node = l->def[t.i];
    rl_value x = rl_nod(l->g, node)->in[0];
    bool same_order = rl_lower_member_order(l, x) == order;
    uint32_t have = first_of(l, m->cls, order);
    rl_value from = rl_lower_present(l, x);
    bool swaps = rl_nod(l->g, node)->op == RL_OP_Transpose, keeps = same_order || converts_here(l, m->cls, order);
    if (rl_has(from) && (same_order ? !swaps : have == RL_NONE && keeps)) return keep_move(l, node, from, t);
    if (have != RL_NONE) return rl_lower_regroup(l, have, &d, t);
    /* Neither form exists.  Stepping back is free where the model only reshapes, or where the order before is at hand. */
    bool at_hand = first_of(l, m->cls, rl_lower_member_order(l, x)) != RL_NONE;
    if (l->depth < 200 && keeps && (!swaps || at_hand || quicker_in_steps(l, t))) {
        l->depth++;
        from = rl_lower_member(l, x);
        l->depth--;
        return l->failed ? t : keep_move(l, node, from, t);
    }
    have = convert(l, m->cls, order, &d, t);
    return in_form(l, have, &d, t);
}

static rl_value member_here(rl_lower *l, rl_value t) {
    if (rl_stands_alone(rl_val(l->g, t))) {
        rl_lower_have_member(l, t);
        return t;
    }
    if (l->def[t.i].i == RL_NONE || l->p->member[t.i].cls == RL_NONE || rl_val(l->g, t)->rank > RL_MAXDIMS) {
        l->failed = true;
        return t;
    }
    if (l->p->moving[l->def[t.i].i]) return make_member(l, t);
    const rl_member *m = &l->p->member[t.i]; /* an op made it in another form */
    rl_dims d;
    rl_member_dims(m, rl_val(l->g, t)->rank, &d);
    uint32_t order = rl_lower_member_order(l, t), i = first_of(l, m->cls, order);
    if (i == RL_NONE) i = convert(l, m->cls, order, &d, t);
    return in_form(l, i, &d, t);
}

/* A tensor is made where its name belongs. */
rl_value rl_lower_member(rl_lower *l, rl_value t) {
    if (t.i >= l->nval || l->defined[t.i] || l->failed) return t;
    rl_value v = rl_lower_present(l, t);
    if (rl_has(v)) return v;
    uint32_t was = l->origin;
    l->origin = rl_flat_step_out(l->g, l->origin, l->home[t.i]);
    v = rl_lower_present(l, t);
    if (!rl_has(v)) v = member_here(l, t);
    l->origin = was;
    return v;
}

/* The tensor itself, by name: graph outputs and captured values. */
rl_value rl_lower_exactly(rl_lower *l, rl_value t) {
    rl_value v = rl_lower_member(l, t);
    if (rl_same(v, t) || l->failed) return v;
    uint32_t was = l->origin;
    rl_node own = l->def[t.i];
    l->origin = rl_flat_step_out(l->g, l->origin, l->home[t.i]);
    if (own.i != RL_NONE && l->p->moving[own.i] && rl_nod(l->g, own)->op == RL_OP_Identity) keep_move(l, own, v, t);
    else rl_lower_node(l, RL_OP_Identity, rl_graph_fresh_name(l->g, "rl_output"), 1, &v, 1, &t);
    l->defined[t.i] = true;
    l->origin = was;
    return t;
}

/* Makes t the best so far when it is a free name for a tensor of this class, order and form; a graph output comes first. */
static void offer(rl_lower *l, rl_value t, uint32_t cls, uint32_t order, const rl_dims *d, rl_value *best) {
    const rl_member *m = &l->p->member[t.i];
    rl_dims own;
    if (m->cls != cls || l->defined[t.i] || rl_val(l->g, t)->rank > RL_MAXDIMS || l->p->cls.p[cls].constant) return;
    if (rl_lower_member_order(l, t) != order) return;
    rl_member_dims(m, rl_val(l->g, t)->rank, &own);
    if (!rl_dims_equal(&own, d)) return;
    if (!rl_has(*best) || rl_val(l->g, t)->is_output) *best = t;
}

rl_value rl_lower_result(rl_lower *l, uint32_t cls, uint32_t order, const rl_dims *d, rl_value like) {
    rl_value best = RL_NOVALUE;
    offer(l, like, cls, order, d, &best);
    for (uint32_t i = 0; i < l->g->output.n; i++) offer(l, l->g->output.p[i], cls, order, d, &best);
    if (rl_has(best)) return best;
    return rl_lower_new(l, like, cls, order, d);
}

rl_value rl_lower_any_form(rl_lower *l, rl_value t) {
    uint32_t c = l->p->member[t.i].cls;
    if (l->defined[t.i]) return t;
    uint32_t i = c == RL_NONE ? RL_NONE : any_of(l, c);
    return i == RL_NONE ? rl_lower_member(l, t) : l->phys.p[i].v;
}
