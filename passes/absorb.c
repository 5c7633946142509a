/* Takes a permutation of channels or features into constant weights, so that nothing has to move.
 *
 *   Conv a -> shuffle of channels -> Conv b       becomes   Conv a', Conv b     rows of a's weights permuted: the same sums, bit for bit
 *   x -> shuffle of channels -> Conv b            becomes   x -> Conv b'        b's weights permuted along the input's channels
 *   x -> shuffle -> depthwise Conv -> Relu -> Conv 1x1      the permutation goes through the depthwise one, its weights permuted
 *
 * Between there may be element-wise ops, BatchNormalization, pools, QuantizeLinear and DequantizeLinear; constants along the axis are
 * permuted with it.  A weight may be stored as bytes, behind a DequantizeLinear, whose scales of that axis go along.  A Conv with
 * groups is passed where whole groups change places.  First everything is looked at and the edits are noted; they are
 * carried out when all that is asked has been agreed to.  A constant that somebody else reads too is not changed, since it would
 * be stored twice; but a bias is (exporters let all that are equal be one). */
#include "absorb.h"

#include "../src/eval.h"
#include "../src/ops.h"

enum { MAXSTEP = 256 };

static const rl_const *constant(const rl_absorber *a, rl_value v) {
    const rl_const *c = rl_has(v) ? rl_eval_constant(a->g, v) : NULL;
    return c && rl_dtype_bits(c->dtype) >= 8 ? c : NULL;
}

static bool note(rl_absorber *a, rl_node n, uint32_t slot, uint32_t dim, const int64_t *to, uint32_t count, bool from) {
    rl_value v = rl_in(rl_nod(a->g, n), slot);
    const rl_const *c = constant(a, v);
    if (!c || c->rank <= dim || c->dim[dim] != (int64_t)count || rl_val(a->g, v)->is_output) return false;
    if (rl_val(a->g, v)->nuse != 1 && c->rank > 1) return false;
    rl_push(a->tmp, a->edits, ((rl_absorb_edit){n, slot, dim, count, to, from}));
    return true;
}

/* Scales and zero points, of which there may be one for each place of the dim. */
static bool note_scales(rl_absorber *a, rl_node n, uint32_t dim, const int64_t *to, uint32_t count, bool from) {
    const rl_nodeinfo *x = rl_nod(a->g, n);
    for (uint32_t i = 1; i < 3; i++) {
        uint32_t rank = rl_has(rl_in(x, i)) ? rl_val(a->g, x->in[i])->rank : 0, axis;
        if (rank == 0) continue;
        if (rank != 1 || rl_attr_int(x, "block_size", 0) != 0 || !rl_op_axis(a->g, x, &axis)) return false;
        if (rl_op_has_scale_of_each(a->g, x, i, dim) && !note(a, n, i, 0, to, count, from)) return false;
    }
    return true;
}

/* A constant, or what a DequantizeLinear makes of one for this reader alone. */
static bool note_weight(rl_absorber *a, rl_node n, uint32_t slot, uint32_t dim, const int64_t *to, uint32_t count, bool from) {
    for (;;) {
        rl_value v = rl_in(rl_nod(a->g, n), slot);
        if (!rl_has(v) || constant(a, v)) return note(a, n, slot, dim, to, count, from);
        const rl_valinfo *x = rl_val(a->g, v);
        if (x->def.i == RL_NONE || rl_op_class(rl_nod(a->g, x->def)->op) != RL_QDQ || x->nuse != 1 || x->is_output) return false;
        n = x->def;
        slot = 0;
        if (!note_scales(a, n, dim, to, count, from)) return false;
    }
}

/* The rows of a layer's weight, `dim` of it, and what there is one of for each. */
static bool note_rows(rl_absorber *a, rl_node n, const rl_layer *l, uint32_t dim, const int64_t *to, uint32_t count, bool from) {
    const rl_nodeinfo *x = rl_nod(a->g, n);
    for (uint32_t i = 0; i < l->nrow; i++) {
        const rl_valinfo *v = rl_has(rl_in(x, l->row[i])) ? rl_val(a->g, x->in[l->row[i]]) : NULL;
        if (!v || v->rank == 0 || (v->rank == 1 && v->dim[0] == 1)) continue;
        if (v->rank != 1 || !note(a, n, l->row[i], 0, to, count, from)) return false;
    }
    if (!note_weight(a, n, l->weight, dim, to, count, from)) return false;
    if (l->bias == 0 || !rl_has(rl_in(x, l->bias))) return true;
    const rl_valinfo *bias = rl_val(a->g, x->in[l->bias]);
    if (bias->rank == RL_NORANK) return false;
    return bias->rank == 0 || bias->dim[bias->rank - 1] == 1 || note_weight(a, n, l->bias, bias->rank - 1, to, count, from);
}

static const rl_permuted *find(const rl_absorber *a, rl_value v) {
    for (uint32_t i = 0; i < a->val.n; i++)
        if (rl_same(a->val.p[i].v, v)) return &a->val.p[i];
    return NULL;
}

static bool permute_value(rl_absorber *a, rl_value v, uint32_t axis, const int64_t *p, uint32_t n) {
    const rl_valinfo *x = rl_val(a->g, v);
    if (x->is_output || a->val.n == MAXSTEP || x->rank == RL_NORANK || axis >= x->rank || x->dim[axis] != (rl_dim)n) return false;
    if (!find(a, v)) rl_push(a->tmp, a->val, ((rl_permuted){v, axis, n, p}));
    return true;
}

/* ---- readers ---- */

/* Whole groups of c, to whole groups: their order. */
static int64_t *group_order(rl_absorber *a, const rl_permuted *in, int64_t groups) {
    int64_t c = in->n / groups, *q = rl_new(a->tmp, int64_t, groups);
    for (uint32_t i = 0; i < in->n; i++) {
        int64_t to = in->p[i] / c;
        if (i % c == 0) q[i / c] = to;
        else if (q[i / c] != to) return NULL;
    }
    return q;
}

static bool read_conv(rl_absorber *a, rl_node n, const rl_layer *l, const rl_permuted *in) {
    const rl_nodeinfo *x = rl_nod(a->g, n);
    if (!rl_has(rl_in(x, l->weight))) return false;
    const rl_valinfo *w = rl_val(a->g, x->in[l->weight]);
    int64_t groups = rl_attr_int(x, "group", 1);
    if (in->axis != 1 || w->rank == RL_NORANK || w->rank < 3 || !rl_dim_known(w->dim[0]) || groups < 1 || in->n % groups) return false;
    if (groups == 1) return note_weight(a, n, l->weight, 1, in->p, in->n, false);
    int64_t c = in->n / groups, each = w->dim[0] / groups, *q = group_order(a, in, groups), *p = rl_new(a->tmp, int64_t, w->dim[0]);
    if (!q || w->dim[0] % groups) return false;
    for (uint32_t i = 0; i < in->n; i++)
        if (in->p[i] % c != i % c) return false; /* within the groups nothing moves */
    for (int64_t i = 0; i < w->dim[0]; i++) p[i] = q[i / each] * each + i % each;
    return note_rows(a, n, l, 0, p, (uint32_t)w->dim[0], false) && permute_value(a, x->out[0], 1, p, (uint32_t)w->dim[0]);
}

static bool read_batchnorm(rl_absorber *a, rl_node n, const rl_permuted *in) {
    const rl_nodeinfo *x = rl_nod(a->g, n);
    if (in->axis != 1 || x->nin != 5 || x->nout != 1) return false;
    for (uint32_t i = 1; i < 5; i++)
        if (!note(a, n, i, 0, in->p, in->n, false)) return false;
    return permute_value(a, x->out[0], 1, in->p, in->n);
}

/* Every operand is permuted alike, or a constant that is, or has one element along the axis. */
static bool read_pointwise(rl_absorber *a, rl_node n, const rl_permuted *in, bool from) {
    const rl_nodeinfo *x = rl_nod(a->g, n);
    uint32_t rank = rl_val(a->g, x->out[0])->rank, size = rl_val(a->g, in->v)->rank;
    if (x->nout != 1 || rank != size || x->ncap || rl_op_may_train(a->g, x)) return false;
    for (uint32_t i = 0; i < x->nin; i++) {
        if (!rl_has(x->in[i]) || rl_same(x->in[i], in->v)) continue;
        const rl_permuted *other = find(a, x->in[i]);
        const rl_valinfo *v = rl_val(a->g, x->in[i]);
        if (other && !from && other->axis == in->axis && other->n == in->n && rl_same_bytes(other->p, in->p, in->n * sizeof *in->p)) continue;
        if (other || v->rank == RL_NORANK || !v->data || v->rank > rank) return false;
        uint32_t lead = rank - v->rank;
        if (in->axis < lead || v->dim[in->axis - lead] == 1) continue;
        if (!note(a, n, i, in->axis - lead, in->p, in->n, from)) return false;
    }
    return true;
}

/* The dim of a product's matrix that is its rows, one for each of the features that come out; the other is multiplied with what comes in. */
static bool rows_of_product(const rl_absorber *a, const rl_nodeinfo *x, const rl_layer *l, uint32_t *rows) {
    *rows = x->op == RL_OP_Gemm && rl_attr_int(x, "transB", 0) != 0 ? 0 : 1;
    return rl_has(rl_in(x, l->weight)) && rl_val(a->g, x->in[l->weight])->rank == 2;
}

static bool read_product(rl_absorber *a, rl_node n, const rl_layer *l, const rl_permuted *in) {
    const rl_nodeinfo *x = rl_nod(a->g, n);
    uint32_t rows;
    if (!rows_of_product(a, x, l, &rows) || in->axis != rl_val(a->g, in->v)->rank - 1) return false;
    if (x->op == RL_OP_Gemm && rl_attr_int(x, "transA", 0) != 0) return false;
    return note_weight(a, n, l->weight, 1 - rows, in->p, in->n, false);
}

/* Flatten, Reshape of [N,C,1,1] to [N,C]. */
static bool keeps_channels(const rl_absorber *a, const rl_nodeinfo *x, const rl_permuted *in) {
    const rl_valinfo *v = rl_val(a->g, in->v), *y = rl_val(a->g, x->out[0]);
    if (y->rank == RL_NORANK || y->rank < 2 || in->axis != 1 || y->dim[0] != v->dim[0] || y->dim[1] != v->dim[1]) return false;
    for (uint32_t i = 2; i < v->rank; i++)
        if (v->dim[i] != 1) return false;
    for (uint32_t i = 2; i < y->rank; i++)
        if (y->dim[i] != 1) return false;
    return true;
}

/* Does each element come from the one at its place?  What there is along the axis is permuted, too. */
static bool goes_through(rl_absorber *a, rl_node n, const rl_permuted *in, bool from) {
    switch (rl_op_class(rl_nod(a->g, n)->op)) {
    case RL_POINTWISE: return read_pointwise(a, n, in, from);
    case RL_QDQ: return rl_same(rl_nod(a->g, n)->in[0], in->v) && note_scales(a, n, in->axis, in->p, in->n, from);
    default: return false;
    }
}

static bool read_node(rl_absorber *a, rl_use u, const rl_permuted *in) {
    const rl_nodeinfo *x = rl_nod(a->g, u.node);
    if (u.slot >= x->nin || x->nout != 1) return false;
    const rl_layer *l = rl_op_layer(x->op);
    if (l) return u.slot == 0 && (l->is_conv ? read_conv(a, u.node, l, in) : read_product(a, u.node, l, in));
    switch (x->op) {
    case RL_OP_BatchNormalization: return u.slot == 0 && read_batchnorm(a, u.node, in);
    case RL_OP_MaxPool: case RL_OP_AveragePool: case RL_OP_GlobalAveragePool: case RL_OP_GlobalMaxPool:
    case RL_OP_ms_QLinearAveragePool: case RL_OP_ms_QLinearGlobalAveragePool:
        return in->axis == 1 && rl_attr_int(x, "channels_last", 0) == 0 && permute_value(a, x->out[0], 1, in->p, in->n);
    case RL_OP_Reshape: case RL_OP_Flatten: case RL_OP_Squeeze:
        return u.slot == 0 && keeps_channels(a, x, in) && permute_value(a, x->out[0], 1, in->p, in->n);
    default: return find(a, x->out[0]) || (goes_through(a, u.node, in, false) && permute_value(a, x->out[0], in->axis, in->p, in->n));
    }
}

/* ---- edits ---- */

static void carry_out(rl_absorber *a, const rl_absorb_edit *e) {
    const int64_t *from = e->to;
    if (!e->from) {
        int64_t *p = rl_new(a->tmp, int64_t, e->n);
        for (uint32_t i = 0; i < e->n; i++) p[e->to[i]] = i;
        from = p;
    }
    rl_graph_set_input(a->g, e->node, e->slot, rl_graph_permuted(a->g, rl_nod(a->g, e->node)->in[e->slot], e->dim, e->n, from));
}

void rl_absorb_carry_out(rl_absorber *a) {
    for (uint32_t i = 0; i < a->edits.n; i++) carry_out(a, &a->edits.p[i]);
}

/* What was noted since `from` stands, unless it would permute a dim twice: then it is forgotten. */
static bool settled(rl_absorber *a, uint32_t from, bool ok) {
    for (uint32_t i = from; ok && i < a->edits.n; i++)
        for (uint32_t k = 0; k < i; k++) {
            const rl_absorb_edit *x = &a->edits.p[i], *y = &a->edits.p[k];
            ok = ok && !(x->node.i == y->node.i && x->slot == y->slot && x->dim == y->dim);
        }
    if (!ok) a->edits.n = from;
    return ok;
}

/* A reader may have to wait until its other operand is known as permuted too (Mul(y, Sigmoid(y))): rounds, until nothing is left. */
static bool settle(rl_absorber *a) {
    struct { uint64_t key; } *done = rl_alloc(a->tmp, MAXSTEP * sizeof *done);
    uint32_t ndone = 0;
    for (bool more = true, open = true; more && open;) {
        more = open = false;
        for (uint32_t i = 0; i < a->val.n; i++) {
            rl_permuted in = a->val.p[i];
            const rl_valinfo *v = rl_val(a->g, in.v);
            for (uint32_t u = 0; u < v->nuse; u++) {
                uint64_t key = (uint64_t)v->use[u].node.i << 32 | v->use[u].slot;
                if (i == 0 && a->gone && a->gone[v->use[u].node.i]) continue;
                uint32_t k = 0, edits = a->edits.n;
                while (k < ndone && done[k].key != key) k++;
                if (k < ndone) continue;
                if (ndone < MAXSTEP && read_node(a, v->use[u], &in)) {
                    done[ndone++].key = key;
                    more = true;
                } else {
                    a->edits.n = edits;
                    open = true;
                }
            }
        }
        if (!open) return true;
    }
    return false;
}

bool rl_absorb_in_readers(rl_absorber *a, rl_value y, uint32_t axis, const int64_t *p, uint32_t n) {
    uint32_t from = a->edits.n;
    a->val.n = 0;
    return settled(a, from, rl_val(a->g, y)->nuse > 0 && permute_value(a, y, axis, p, n) && settle(a));
}

/* ---- the maker ---- */

static bool make_conv(rl_absorber *a, rl_node n, const rl_layer *l, const rl_permuted *out) {
    const rl_nodeinfo *x = rl_nod(a->g, n);
    return out->axis == 1 && rl_attr_int(x, "group", 1) == 1 && note_rows(a, n, l, 0, out->p, out->n, true);
}

static bool make_product(rl_absorber *a, rl_node n, const rl_layer *l, const rl_permuted *out) {
    const rl_nodeinfo *x = rl_nod(a->g, n);
    uint32_t rows;
    return rows_of_product(a, x, l, &rows) && out->axis == rl_val(a->g, out->v)->rank - 1 && note_rows(a, n, l, rows, out->p, out->n, true);
}

static bool sole_reader(const rl_graph *g, rl_value v) {
    return rl_val(g, v)->nuse == 1 && !rl_val(g, v)->is_output;
}

static bool go_up(rl_absorber *a, rl_value v, uint32_t axis, const int64_t *p, uint32_t n) {
    const rl_graph *g = a->g;
    for (uint32_t step = 0; step < MAXSTEP; step++) {
        rl_node d = rl_val(g, v)->def;
        rl_permuted out = {v, axis, n, p};
        if (d.i == RL_NONE || rl_val(g, v)->is_output || rl_nod(g, d)->nout != 1 || (step && !sole_reader(g, v))) return false;
        const rl_nodeinfo *x = rl_nod(g, d);
        const rl_layer *l = rl_op_layer(x->op);
        if (l) return l->is_conv ? make_conv(a, d, l, &out) : make_product(a, d, l, &out);
        rl_value next = RL_NOVALUE;
        for (uint32_t i = 0; i < x->nin; i++)
            if (rl_has(x->in[i]) && !rl_val(g, x->in[i])->data) next = rl_has(next) ? RL_NOVALUE : x->in[i];
        if (!rl_has(next) || rl_val(g, next)->rank != rl_val(g, v)->rank) return false;
        if (rl_val(g, next)->dim[axis] != (rl_dim)n) return false;
        out.v = next;
        if (!goes_through(a, d, &out, true)) return false;
        v = next;
    }
    return false;
}

bool rl_absorb_in_maker(rl_absorber *a, rl_value v, uint32_t axis, const int64_t *p, uint32_t n) {
    uint32_t from = a->edits.n;
    a->val.n = 0;
    return settled(a, from, go_up(a, v, axis, p, n));
}
