/* The dims of an op that is written in another order.
 *
 * The configuration gives the op's tokens outermost first.  They are grouped into dims: fewest where nothing else decides,
 * but rather as a tensor that already exists has them, so that no Reshape is needed.  A dim may hold tokens only if every
 * operand has all of them or none, and the token that the op works along stands alone (Concat and Split may have it first).
 *   Softmax axis=1 on x[N,C,H,W], tokens N H W C   ->   [N,H,W,C] or [N*H*W,C] */
#include "lower_form.h"
#include <string.h>

const rl_label *rl_opwriter_label(const rl_opwriter *w, uint32_t i) { return &w->op->label[w->op->token[w->token[i]].label]; }

static uint64_t presence(const rl_opwriter *w, uint32_t i) {
    uint64_t m = 0;
    for (uint32_t o = 0; o < w->op->noperand && o < 64; o++)
        if (w->op->token[w->token[i]].natom[o]) m |= 1ull << o;
    return m;
}

static bool symbolic(const rl_opwriter *w, uint32_t i) {
    const rl_token *t = &w->op->token[w->token[i]];
    for (uint32_t o = 0; o < w->op->noperand; o++)
        for (uint32_t k = 0; k < t->natom[o]; k++)
            if (!rl_dim_known(w->l->p->cls.p[w->op->operand[o].cls].size[t->atom[o][k]])) return true;
    return false;
}

static bool joins(const rl_opwriter *w, uint32_t first, uint32_t i) {
    const rl_label *a = rl_opwriter_label(w, i - 1), *b = rl_opwriter_label(w, i);
    bool pieces = w->cls == RL_CONCAT || w->cls == RL_SPLIT;
    if (a->group != b->group) return false;
    if (pieces && i - 1 == first && a->role != RL_T_FREE) return b->role == RL_T_FREE && !symbolic(w, i) && w->op->noperand <= 64;
    return a->role == b->role && (a->role == RL_T_FREE || a->role == RL_T_REDUCED) && presence(w, i - 1) == presence(w, i) &&
           w->op->noperand <= 64;
}

/* Along the axis of a Split whose pieces are not just equal their sizes are numbers in the file. */
static bool is_measured(const rl_opwriter *w, uint32_t i) {
    return w->cls == RL_SPLIT && rl_opwriter_label(w, i)->role != RL_T_FREE && rl_opwriter_gives_sizes(w);
}

static bool dim_ok(const rl_opwriter *w, rl_dimspan s) {
    uint32_t nsym = 0;
    for (uint32_t i = s.from; i < s.to; i++) {
        if (i > s.from && !joins(w, s.from, i)) return false;
        nsym += symbolic(w, i);
    }
    return s.to - s.from <= 1 || nsym == 0 || (nsym == 1 && !is_measured(w, s.from));
}

static bool push_dim(rl_dimspan *d, uint32_t *n, uint32_t from, uint32_t to) {
    if (*n == RL_MAXDIMS) return false;
    d[(*n)++] = (rl_dimspan){(uint8_t)from, (uint8_t)to, 0};
    return true;
}

static uint32_t merge_all(const rl_opwriter *w, rl_dimspan *d) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->ntoken; i++) {
        if (n && dim_ok(w, (rl_dimspan){d[n - 1].from, (uint8_t)(i + 1), 0})) d[n - 1].to++;
        else if (!push_dim(d, &n, i, i + 1)) return 0;
    }
    return n;
}

/* The index of the piece, with what the piece has in that place behind it: one dim of the whole. */
static bool leads_piece(const rl_opwriter *w, uint32_t i, uint32_t o) {
    return rl_opwriter_label(w, i)->role == RL_T_PIECES && i + 1 < w->ntoken && w->op->token[w->token[i + 1]].natom[o] && joins(w, i, i + 1);
}

/* The op's dims as a tensor of operand o has them; tokens that o lacks take its dims of size 1, or new ones. 0: impossible. */
static bool dims_like(const rl_opwriter *w, const rl_dims *x, uint32_t o, rl_dimspan *d, uint32_t *nd) {
    uint32_t i = 0, n = 0;
    for (uint32_t k = 0; k < x->ndim; k++) {
        uint32_t left = x->count[k], piece = 0;
        if (left == 0) {
            bool absent = i < w->ntoken && w->op->token[w->token[i]].natom[o] == 0;
            if (!push_dim(d, &n, i, i + absent)) return false;
            i += absent;
            while (absent && i < w->ntoken && w->op->token[w->token[i]].natom[o] == 0 &&
                   dim_ok(w, (rl_dimspan){d[n - 1].from, (uint8_t)(i + 1), 0}))
                d[n - 1].to = (uint8_t)++i;
            continue;
        }
        while (i < w->ntoken && w->op->token[w->token[i]].natom[o] == 0) {
            piece = leads_piece(w, i, o);
            if (!piece && !push_dim(d, &n, i, i + 1)) return false;
            i++;
        }
        uint32_t from = i - piece;
        while (left > 0 && i < w->ntoken) {
            uint32_t have = w->op->token[w->token[i]].natom[o];
            if (have == 0 || have > left) return false;
            left -= have;
            i++;
        }
        if (left || !push_dim(d, &n, from, i) || !dim_ok(w, d[n - 1])) return false;
    }
    for (; i < w->ntoken; i++)
        if (!push_dim(d, &n, i, i + 1)) return false;
    for (uint32_t k = 0; k < n; k++)
        if (!dim_ok(w, d[k])) return false;
    *nd = n;
    return true;
}

/* ---- the form of each operand ---- */

static bool dropped(const rl_opwriter *w, uint32_t dim, uint32_t o) {
    rl_dimspan s = w->dim[dim];
    bool may = w->op->operand[o].out || w->op->link || rl_op_is_conv(w->n->op) || w->cls == RL_GATHER || w->cls == RL_ONEHOT;
    if (s.label) return may && w->op->label[s.label - 1].dim[o] < 0;
    return s.to > s.from && may && rl_opwriter_label(w, s.from)->dim[o] < 0 && rl_opwriter_label(w, s.from)->role != RL_T_PIECES;
}

/* A Gather's index of several dims stands in its result as it is. */
static bool push_index(const rl_opwriter *w, uint32_t dim, uint32_t o, rl_dims *d) {
    rl_dimspan s = w->dim[dim];
    if (w->cls != RL_GATHER || !w->op->operand[o].out || (s.to == s.from && !s.label)) return false;
    const rl_label *l = s.label ? &w->op->label[s.label - 1] : rl_opwriter_label(w, s.from);
    uint32_t n = rl_val(w->l->g, w->n->in[1])->rank;
    if (l->role != RL_T_AXIS || d->ndim + n + w->ndim - dim > RL_MAXDIMS) return false;
    const uint8_t *start = w->l->p->member[w->op->operand[o].tensor.i].dimstart + l->dim[o];
    for (uint32_t k = 0; k < n; k++) d->count[d->ndim++] = (uint8_t)(start[k + 1] - start[k]);
    return true;
}

static bool is_index(const rl_opwriter *w, uint32_t o) { return w->cls == RL_GATHER && w->op->operand[o].slot == 1; }

void rl_opwriter_dims(const rl_opwriter *w, uint32_t o, rl_dims *d) {
    rl_value v = w->op->operand[o].tensor;
    d->ndim = 0;
    if (w->cls == RL_WHOLE && rl_val(w->l->g, v)->rank == 0) return;
    if (is_index(w, o)) {
        rl_member_dims(&w->l->p->member[v.i], rl_val(w->l->g, v)->rank, d);
        return;
    }
    for (uint32_t k = 0; k < w->ndim; k++) {
        uint32_t c = 0;
        if (dropped(w, k, o) || push_index(w, k, o, d)) continue;
        for (uint32_t i = w->dim[k].from; i < w->dim[k].to; i++) c += w->op->token[w->token[i]].natom[o];
        d->count[d->ndim++] = (uint8_t)c;
    }
}

uint32_t rl_lower_order(rl_lower *l, const rl_oplegal *op, uint32_t o) {
    uint8_t t[RL_MAXATOM + 1];
    rl_config_order(op, &op->config.p[op->chosen], o, t);
    return rl_order_intern(l->p, op->operand[o].cls, t);
}

uint32_t rl_opwriter_order(const rl_opwriter *w, uint32_t o) { return rl_lower_order(w->l, w->op, o); }

uint32_t rl_dims_leading_ones(const rl_dims *d) {
    uint32_t k = 0;
    while (k < d->ndim && d->count[k] == 0) k++;
    return k;
}

static bool equal_but_ones(const rl_dims *a, const rl_dims *b) {
    uint32_t i = rl_dims_leading_ones(a), j = rl_dims_leading_ones(b);
    return a->ndim - i == b->ndim - j && rl_same_bytes(a->count + i, b->count + j, a->ndim - i);
}

bool rl_opwriter_broadcasts(const rl_opwriter *w, uint32_t o) {
    return !w->op->operand[o].out && (w->cls == RL_POINTWISE || w->cls == RL_EXPAND || (w->cls == RL_NORM && o >= 2));
}

uint32_t rl_opwriter_ready(const rl_opwriter *w, uint32_t o, const rl_dims *want) {
    uint32_t i = rl_lower_find(w->l, w->op->operand[o].cls, rl_opwriter_order(w, o), false);
    for (; i != RL_NONE; i = rl_lower_next(w->l, i)) {
        const rl_dims *d = w->l->phys.p[i].dims;
        if (rl_dims_equal(d, want)) return i;
        if (rl_opwriter_broadcasts(w, o) && d->ndim <= want->ndim && equal_but_ones(d, want)) return i;
    }
    return RL_NONE;
}

/* The operands of a link lie in different regions: goes to this one's, and answers where it was. */
static uint32_t stand_at(rl_opwriter *w, uint32_t o) {
    uint32_t was = w->l->origin;
    if (w->op->link) w->l->origin = rl_lower_link_origin(w->l, w->op, o);
    return was;
}

uint32_t rl_opwriter_reshapes(rl_opwriter *w) {
    uint32_t n = 0;
    rl_dims want;
    for (uint32_t o = 0; o < w->op->noperand; o++) {
        if (w->op->operand[o].out || !w->op->operand[o].pin) continue;
        uint32_t was = stand_at(w, o);
        rl_opwriter_dims(w, o, &want);
        n += rl_opwriter_ready(w, o, &want) == RL_NONE;
        w->l->origin = was;
    }
    return n;
}

/* The token of BatchNormalization's channel; ntoken when the channel has size 1. */
static uint32_t channel(const rl_opwriter *w) {
    uint32_t c = 0;
    while (c < w->ntoken && rl_opwriter_label(w, c)->role != RL_T_AXIS) c++;
    return c;
}

static bool is_window(const rl_opwriter *w, rl_dimspan s) { return s.to > s.from && rl_opwriter_label(w, s.from)->role == RL_T_AXIS; }

/* A pool has two dims before those of its window; it is 1 wide over others than it moves over. */
static bool pool_dims_ok(const rl_opwriter *w, const rl_dimspan *d, uint32_t n) {
    if (n < 3 || n > 2 + RL_MAXWINDOW || is_window(w, d[0]) || is_window(w, d[1])) return false;
    for (uint32_t k = 0; k < n; k++)
        if (!dim_ok(w, d[k])) return false;
    return true;
}

/* The first dim as given, the others as few as can be. */
static void pool_dims_from(const rl_opwriter *w, uint32_t first, rl_dimspan *d, uint32_t *n) {
    *n = 0;
    push_dim(d, n, 0, first);
    if (first == w->ntoken || rl_opwriter_label(w, first)->role == RL_T_AXIS) push_dim(d, n, first, first);
    for (uint32_t i = first; i < w->ntoken; i++)
        if (*n > 1 && d[*n - 1].to > d[*n - 1].from && dim_ok(w, (rl_dimspan){d[*n - 1].from, (uint8_t)(i + 1), 0})) d[*n - 1].to++;
        else if (!push_dim(d, n, i, i + 1)) return;
}

static bool pool_dims(rl_opwriter *w) {
    rl_dimspan d[RL_MAXDIMS];
    uint32_t n, lead = 0;
    while (lead < w->ntoken && rl_opwriter_label(w, lead)->role != RL_T_AXIS) lead++;
    w->ndim = RL_MAXDIMS;
    for (uint32_t first = RL_MIN(lead, 1u); first <= lead; first++) {
        pool_dims_from(w, first, d, &n);
        if (n >= w->ndim || !pool_dims_ok(w, d, n)) continue;
        memcpy(w->dim, d, n * sizeof *d);
        w->ndim = n;
    }
    return w->ndim < RL_MAXDIMS;
}

/* Has the result, operand 0, more elements than those that take as long as a Reshape? */
static bool is_large(const rl_opwriter *w) {
    const rl_cls *c = &w->l->p->cls.p[w->op->operand[0].cls];
    const rl_member *m = &w->l->p->member[w->op->operand[0].tensor.i];
    int64_t n = 1;
    for (uint32_t i = 0; i < m->natom; i++) n = rl_mul(n, rl_dim_known(c->size[m->seq[i]]) ? c->size[m->seq[i]] : RL_STATS_GUESS);
    return n > 128;
}

/* Does the op, in the model, take a scalar to what a reduction of the last dim makes?  Such as the epsilon of a LayerNormalization that is written out: a Reshape
 * there would keep onnxruntime from making one node of it. */
static bool is_of_reduction(const rl_opwriter *w) {
    for (uint32_t o = 0; o < w->op->noperand; o++) {
        const rl_valinfo *v = rl_val(w->l->g, w->op->operand[o].tensor);
        rl_node def = w->l->def[w->op->operand[o].tensor.i];
        if (w->op->operand[o].out || def.i == RL_NONE || rl_op_class(rl_nod(w->l->g, def)->op) != RL_REDUCE) continue;
        return v->rank > 0 && v->dim[v->rank - 1] == 1;
    }
    return false;
}

/* onnxruntime takes one element after the other, 60 times as slow, where an operand of one element meets a last dim of size 1. */
static bool is_slow(const rl_opwriter *w, const rl_dimspan *d, uint32_t n) {
    bool one = false;
    if (w->cls != RL_POINTWISE || n == 0 || d[n - 1].to > d[n - 1].from || is_of_reduction(w)) return false;
    for (uint32_t o = 0; o < w->op->noperand; o++) one |= !w->op->operand[o].out && w->l->p->member[w->op->operand[o].tensor.i].natom == 0;
    return one && is_large(w);
}

static bool acceptable(const rl_opwriter *w, const rl_dimspan *d, uint32_t n) {
    if (w->cls == RL_POINTWISE) return !is_slow(w, d, n);
    if (w->cls == RL_POOL) return pool_dims_ok(w, d, n);
    if (w->cls == RL_ROWS) /* a dim of size 1 behind the row would be the row */
        return n && d[n - 1].to > d[n - 1].from && (n == 2 || w->n->op != RL_OP_ms_QGemm);
    if (w->cls != RL_BATCHNORM) return true;
    if (channel(w) == w->ntoken) return n >= 2 && d[1].to == d[1].from;
    return n >= 2 && d[1].to == d[1].from + 1 && rl_opwriter_label(w, d[1].from)->role == RL_T_AXIS;
}

static bool batch_norm_dims(rl_opwriter *w) {
    uint32_t c = channel(w), next = c + 1;
    if (c == w->ntoken) c = next = 0;
    w->ndim = 0;
    push_dim(w->dim, &w->ndim, 0, c);
    push_dim(w->dim, &w->ndim, c, next);
    if (next < w->ntoken) push_dim(w->dim, &w->ndim, next, w->ntoken);
    for (uint32_t k = 0; k < w->ndim; k++)
        for (uint32_t i = w->dim[k].from + 1u; i < w->dim[k].to; i++)
            if (!joins(w, w->dim[k].from, i)) return false;
    return true;
}

/* A dim for each label, as the op has them. */
static bool conv_dims(rl_opwriter *w) {
    const rl_form *f = &w->op->form[0];
    w->ndim = 0;
    for (uint32_t l = 0; l < w->op->nlabel; l++) {
        if (!push_dim(w->dim, &w->ndim, f->start[l], f->start[l + 1])) return false;
        if (f->start[l] == f->start[l + 1]) w->dim[l].label = (uint16_t)(l + 1);
    }
    return true;
}

/* ---- before a product ---- */

/* Do only products read the operand, as they stand? */
static bool for_products(const rl_opwriter *w, uint32_t o) {
    const rl_plan *p = w->l->p;
    const rl_valinfo *v = rl_val(w->l->g, w->op->operand[o].tensor);
    for (uint32_t i = 0; i < v->nuse; i++) {
        uint32_t k = rl_nod(w->l->g, v->use[i].node)->op == RL_OP_MatMul ? p->opof[v->use[i].node.i] : RL_NONE;
        if (k == RL_NONE || p->op.p[k].chosen != 0) return false;
    }
    return v->nuse > 0 && !v->is_output;
}

/* The form from which a Transpose of whole dims makes the result as the model has it; false where there is none, or nothing to transpose. */
static bool before_transpose(const rl_opwriter *w, uint32_t o, rl_dims *d) {
    const rl_operand *y = &w->op->operand[o];
    const rl_member *m = &w->l->p->member[y->tensor.i];
    const uint8_t *order = w->l->p->cls.p[y->cls].order.p[rl_opwriter_order(w, o)].p;
    uint32_t rank = rl_val(w->l->g, y->tensor)->rank;
    rl_dims own;
    if (rank > RL_MAXDIMS || rl_same_bytes(order, m->seq, m->natom)) return false;
    rl_member_dims(m, rank, &own);
    *d = own;
    for (uint32_t i = 0, at = 0; i < rank; i++) { /* the dims in the sequence of `order`; those of size 1 where they were */
        uint32_t k = 0;
        if (own.count[i] == 0) continue;
        while (k < rank && !(own.count[k] && m->seq[m->dimstart[k]] == order[at])) k++;
        if (k == rank || !rl_same_bytes(order + at, m->seq + m->dimstart[k], own.count[k])) return false;
        at += d->count[i] = own.count[k];
    }
    return true;
}

/* A runtime takes the Transpose, and a scale before it, into the product, if no Reshape stands between: of two ways with as many Reshapes the
 * one that has them before the op.
 *   r[1,1,h,S,d]  y = Mul(r, c)  t = Transpose(y)  Reshape(t)[1,h,d,S]   ->   x = Reshape(r)[1,h,S,d]  y = Mul(x, c)  Transpose(y) */
static void dims_before_product(rl_opwriter *w) {
    rl_dimspan was[RL_MAXDIMS], d[RL_MAXDIMS];
    uint32_t y = 0, nwas = w->ndim, n;
    rl_dims want, now;
    while (y < w->op->noperand && !w->op->operand[y].out) y++;
    if (y == w->op->noperand || w->cls != RL_POINTWISE || w->op->link || !for_products(w, y) || !before_transpose(w, y, &want)) return;
    rl_opwriter_dims(w, y, &now);
    if (rl_dims_equal(&now, &want) || !dims_like(w, &want, y, d, &n) || !acceptable(w, d, n)) return;
    uint32_t most = rl_opwriter_reshapes(w) + 1;
    memcpy(was, w->dim, sizeof was);
    memcpy(w->dim, d, sizeof d);
    w->ndim = n;
    w->whole = rl_opwriter_reshapes(w) <= most;
    if (w->whole) return;
    memcpy(w->dim, was, sizeof was);
    w->ndim = nwas;
}

/* onnxruntime repeats rows, which are one element each where the last dim has size 1: it goes, where a Reshape stands there anyway. */
static void drop_last_ones(rl_opwriter *w) {
    uint32_t most = rl_opwriter_reshapes(w);
    while (w->ndim > 1 && w->dim[w->ndim - 1].from == w->dim[w->ndim - 1].to && !w->dim[w->ndim - 1].label) {
        w->ndim--;
        if (rl_opwriter_reshapes(w) <= most) continue;
        w->ndim++;
        return;
    }
}

/* ---- the dims ---- */

bool rl_opwriter_choose_dims(rl_opwriter *w) {
    if (rl_op_is_conv(w->n->op)) return conv_dims(w);
    rl_dimspan best[RL_MAXDIMS], d[RL_MAXDIMS];
    uint32_t nbest = 0, cost = RL_NONE, n;
    for (uint32_t o = 0; o < w->op->noperand && cost > 0; o++) {
        if (w->op->operand[o].out || !w->op->operand[o].pin) continue;
        if (w->op->link && w->l->head[w->op->operand[o].cls] == RL_NONE) continue; /* what a body makes, not there before it */
        uint32_t was = stand_at(w, o), i = rl_lower_find(w->l, w->op->operand[o].cls, rl_opwriter_order(w, o), true);
        if (w->l->failed) return false;
        for (; i != RL_NONE && cost > 0; i = rl_lower_next(w->l, i)) {
            rl_dims x = *w->l->phys.p[i].dims;
            if (!dims_like(w, &x, o, d, &n) || !acceptable(w, d, n)) continue;
            memcpy(w->dim, d, sizeof d);
            w->ndim = n;
            uint32_t c = rl_opwriter_reshapes(w);
            if (c < cost) {
                cost = c;
                nbest = n;
                memcpy(best, d, sizeof d);
            }
        }
        w->l->origin = was;
    }
    w->ndim = merge_all(w, w->dim);
    if (w->cls == RL_BATCHNORM && !batch_norm_dims(w) && cost == RL_NONE) return false;
    if (w->cls == RL_POOL && !pool_dims(w)) return false;
    if (cost != RL_NONE && cost <= rl_opwriter_reshapes(w)) {
        memcpy(w->dim, best, sizeof best);
        w->ndim = nbest;
    }
    if (w->cls == RL_BATCHNORM && channel(w) == w->ntoken) w->dim[1].label = 1 + 1;
    if (w->cls == RL_TILE) drop_last_ones(w);
    if (w->cls == RL_ROWS && w->ndim == 1) w->dim[1] = w->dim[0], w->dim[0] = (rl_dimspan){0}, w->ndim = 2; /* a matrix of one row */
    dims_before_product(w);
    return w->ndim > 0 || w->ntoken == 0;
}

/* ---- labels ---- */

uint32_t rl_opwriter_dim(const rl_opwriter *w, uint32_t label) {
    for (uint32_t k = 0; k < w->ndim; k++) {
        if (w->dim[k].label == label + 1) return k;
        for (uint32_t i = w->dim[k].from; i < w->dim[k].to; i++)
            if (w->op->token[w->token[i]].label == label) return k;
    }
    return RL_NONE;
}

bool rl_opwriter_place_labels(rl_opwriter *w) {
    for (uint32_t l = 0; l < w->op->nlabel; l++) {
        uint32_t k = 0;
        bool index = w->cls == RL_GATHER && w->op->label[l].group;
        if (w->op->label[l].role == RL_T_FREE || index || rl_opwriter_dim(w, l) != RL_NONE) continue;
        while (k < w->ndim && (w->dim[k].to > w->dim[k].from || w->dim[k].label)) k++;
        if (k == w->ndim) {
            if (w->ndim == RL_MAXDIMS) return false;
            memmove(w->dim + 1, w->dim, w->ndim++ * sizeof *w->dim);
            k = 0;
        }
        w->dim[k] = (rl_dimspan){0, 0, (uint16_t)(l + 1)};
    }
    return true;
}
