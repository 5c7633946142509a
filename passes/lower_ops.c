/* Writes one op in another order of its dims.
 *
 * The configuration gives the op's tokens outermost first.  They are grouped into dims: fewest where nothing else decides,
 * but rather as a tensor that already exists has them, so that no Reshape is needed.  A dim may hold tokens only if every
 * operand has all of them or none, and the token that the op works along stands alone (Concat and Split may have it first).
 *   Softmax axis=1 on x[N,C,H,W], tokens N H W C   ->   Softmax axis=3 on [N,H,W,C] or axis=1 on [N*H*W,C]
 * Then the op's parameters are renamed: axis, axes, pads, repeats, sizes.  One function per class that has any. */
#include "lower.h"
#include <string.h>

/* Tokens [from, to) of the sequence.  Empty: a dim of size 1, which may stand for a label of that size: label - 1. */
typedef struct { uint8_t from, to; uint16_t label; } span;

typedef struct {
    rl_lower *l;
    rl_oplegal *op;
    const rl_nodeinfo *n; /* re-read after nodes are added */
    rl_class cls;
    const uint8_t *token; /* outermost first */
    uint32_t ntoken;
    span dim[RL_MAXDIMS];
    uint32_t ndim;
    rl_value *in;
    uint32_t nin;
    struct { rl_attr *p; uint32_t n, cap; } attr;
    rl_op write_as;
} writer;

static const rl_label *label_of(const writer *w, uint32_t i) { return &w->op->label[w->op->token[w->token[i]].label]; }

static uint64_t presence(const writer *w, uint32_t i)
{
    uint64_t m = 0;
    for (uint32_t o = 0; o < w->op->noperand && o < 64; o++)
        if (w->op->token[w->token[i]].natom[o]) m |= 1ull << o;
    return m;
}

static bool symbolic(const writer *w, uint32_t i)
{
    const rl_token *t = &w->op->token[w->token[i]];
    for (uint32_t o = 0; o < w->op->noperand; o++)
        for (uint32_t k = 0; k < t->natom[o]; k++)
            if (!rl_dim_known(w->l->p->cls.p[w->op->operand[o].cls].size[t->atom[o][k]])) return true;
    return false;
}

static bool joins(const writer *w, uint32_t first, uint32_t i)
{
    const rl_label *a = label_of(w, i - 1), *b = label_of(w, i);
    bool pieces = w->cls == RL_CONCAT || w->cls == RL_SPLIT;
    if (a->group != b->group) return false;
    if (pieces && i - 1 == first && a->role != RL_T_FREE) return b->role == RL_T_FREE && !symbolic(w, i) && w->op->noperand <= 64;
    return a->role == b->role && (a->role == RL_T_FREE || a->role == RL_T_REDUCED) && presence(w, i - 1) == presence(w, i) &&
           w->op->noperand <= 64;
}

static bool dim_ok(const writer *w, span s)
{
    uint32_t nsym = 0;
    for (uint32_t i = s.from; i < s.to; i++) {
        if (i > s.from && !joins(w, s.from, i)) return false;
        nsym += symbolic(w, i);
    }
    return nsym <= 1 || s.to - s.from == 1;
}

static bool push_dim(span *d, uint32_t *n, uint32_t from, uint32_t to)
{
    if (*n == RL_MAXDIMS) return false;
    d[(*n)++] = (span){(uint8_t)from, (uint8_t)to, 0};
    return true;
}

static uint32_t merge_all(const writer *w, span *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->ntoken; i++) {
        if (n && dim_ok(w, (span){d[n - 1].from, (uint8_t)(i + 1), 0})) d[n - 1].to++;
        else if (!push_dim(d, &n, i, i + 1)) return 0;
    }
    return n;
}

/* The op's dims as a tensor of operand o has them; tokens that o lacks take its dims of size 1, or new ones. 0: impossible. */
static bool dims_like(const writer *w, const rl_dims *x, uint32_t o, span *d, uint32_t *nd)
{
    uint32_t i = 0, n = 0;
    for (uint32_t k = 0; k < x->ndim; k++) {
        uint32_t left = x->count[k], from;
        if (left == 0) {
            bool absent = i < w->ntoken && w->op->token[w->token[i]].natom[o] == 0;
            if (!push_dim(d, &n, i, i + absent)) return false;
            i += absent;
            while (absent && i < w->ntoken && w->op->token[w->token[i]].natom[o] == 0 &&
                   dim_ok(w, (span){d[n - 1].from, (uint8_t)(i + 1), 0}))
                d[n - 1].to = (uint8_t)++i;
            continue;
        }
        while (i < w->ntoken && w->op->token[w->token[i]].natom[o] == 0) {
            if (!push_dim(d, &n, i, i + 1)) return false;
            i++;
        }
        from = i;
        while (left > 0 && i < w->ntoken) {
            uint32_t have = w->op->token[w->token[i]].natom[o];
            if (have == 0 || have > left) return false;
            left -= have;
            i++;
        }
        /* A piece's tensor lacks the index of the piece, which stands before it in the whole. */
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

static bool dropped(const writer *w, uint32_t dim, uint32_t o)
{
    span s = w->dim[dim];
    bool may = w->op->operand[o].out || w->op->link || w->n->op == RL_OP_Conv;
    if (s.label) return may && w->op->label[s.label - 1].dim[o] < 0;
    return s.to > s.from && may && label_of(w, s.from)->dim[o] < 0 && label_of(w, s.from)->role != RL_T_PIECES;
}

static void operand_dims(const writer *w, uint32_t o, rl_dims *d)
{
    d->ndim = 0;
    for (uint32_t k = 0; k < w->ndim; k++) {
        uint32_t c = 0;
        if (dropped(w, k, o)) continue;
        for (uint32_t i = w->dim[k].from; i < w->dim[k].to; i++) c += w->op->token[w->token[i]].natom[o];
        d->count[d->ndim++] = (uint8_t)c;
    }
}

uint32_t rl_lower_order(rl_lower *l, const rl_oplegal *op, uint32_t o)
{
    uint8_t t[RL_MAXATOM + 1];
    rl_config_order(op, &op->config.p[op->chosen], o, t);
    return rl_order_intern(l->p, op->operand[o].cls, t);
}

static uint32_t operand_order(const writer *w, uint32_t o) { return rl_lower_order(w->l, w->op, o); }

static uint32_t leading_ones(const rl_dims *d)
{
    uint32_t k = 0;
    while (k < d->ndim && d->count[k] == 0) k++;
    return k;
}

static bool equal_but_ones(const rl_dims *a, const rl_dims *b)
{
    uint32_t i = leading_ones(a), j = leading_ones(b);
    return a->ndim - i == b->ndim - j && memcmp(a->count + i, b->count + j, a->ndim - i) == 0;
}

static bool broadcasts(const writer *w, uint32_t o)
{
    return !w->op->operand[o].out && (w->cls == RL_POINTWISE || w->cls == RL_EXPAND || (w->cls == RL_NORM && o >= 2));
}

/* A tensor that will do as it is: RL_NONE if there is none. */
static uint32_t ready(const writer *w, uint32_t o, const rl_dims *want)
{
    uint32_t i = rl_lower_find(w->l, w->op->operand[o].cls, operand_order(w, o), false);
    for (; i != RL_NONE; i = rl_lower_next(w->l, i)) {
        const rl_dims *d = w->l->phys.p[i].dims;
        if (rl_dims_equal(d, want)) return i;
        if (broadcasts(w, o) && d->ndim <= want->ndim && equal_but_ones(d, want)) return i;
    }
    return RL_NONE;
}

/* The operands of a link lie in different regions: goes to this one's, and answers where it was. */
static uint32_t stand_at(writer *w, uint32_t o)
{
    uint32_t was = w->l->origin;
    if (w->op->link) w->l->origin = rl_lower_link_origin(w->l, w->op, o);
    return was;
}

static uint32_t reshapes_needed(writer *w)
{
    uint32_t n = 0;
    rl_dims want;
    for (uint32_t o = 0; o < w->op->noperand; o++) {
        if (w->op->operand[o].out || !w->op->operand[o].pin) continue;
        uint32_t was = stand_at(w, o);
        operand_dims(w, o, &want);
        n += ready(w, o, &want) == RL_NONE;
        w->l->origin = was;
    }
    return n;
}

/* The token of BatchNormalization's channel; ntoken when the channel has size 1. */
static uint32_t channel(const writer *w)
{
    uint32_t c = 0;
    while (c < w->ntoken && label_of(w, c)->role != RL_T_AXIS) c++;
    return c;
}

/* The two dims before those that a pool's window moves over, of which there are n - 2. */
static bool pool_dims_ok(const writer *w, const span *d, uint32_t n)
{
    uint32_t lead = w->op->form[0].start[1];
    if (n < 3 || d[0].from != 0 || d[0].to != d[1].from || d[1].to != lead || n - 2 != w->ntoken - lead) return false;
    for (uint32_t k = 2; k < n; k++)
        if (d[k].from != lead + k - 2 || d[k].to != d[k].from + 1) return false;
    return dim_ok(w, d[0]) && dim_ok(w, d[1]);
}

static bool pool_dims(writer *w)
{
    uint32_t lead = w->op->form[0].start[1];
    for (uint32_t first = RL_MIN(lead, 1u); first <= lead; first++) {
        w->ndim = 0;
        push_dim(w->dim, &w->ndim, 0, first);
        push_dim(w->dim, &w->ndim, first, lead);
        for (uint32_t i = lead; i < w->ntoken; i++) push_dim(w->dim, &w->ndim, i, i + 1);
        if (pool_dims_ok(w, w->dim, w->ndim)) return true;
    }
    return false;
}

static bool acceptable(const writer *w, const span *d, uint32_t n)
{
    if (w->cls == RL_POOL) return pool_dims_ok(w, d, n);
    if (w->cls != RL_BATCHNORM) return true;
    if (channel(w) == w->ntoken) return n >= 2 && d[1].to == d[1].from;
    return n >= 2 && d[1].to == d[1].from + 1 && label_of(w, d[1].from)->role == RL_T_AXIS;
}

static bool batch_norm_dims(writer *w)
{
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
static bool conv_dims(writer *w)
{
    const rl_form *f = &w->op->form[0];
    w->ndim = 0;
    for (uint32_t l = 0; l < w->op->nlabel; l++) {
        if (!push_dim(w->dim, &w->ndim, f->start[l], f->start[l + 1])) return false;
        if (f->start[l] == f->start[l + 1]) w->dim[l].label = (uint16_t)(l + 1);
    }
    return true;
}

static bool choose_dims(writer *w)
{
    if (w->n->op == RL_OP_Conv) return conv_dims(w);
    span best[RL_MAXDIMS], d[RL_MAXDIMS];
    uint32_t nbest = 0, cost = RL_NONE, n;
    for (uint32_t o = 0; o < w->op->noperand && cost > 0; o++) {
        if (w->op->operand[o].out || !w->op->operand[o].pin) continue;
        if (w->op->link && w->l->norders[w->op->operand[o].cls] == 0) continue; /* what a body makes, not there before it */
        uint32_t was = stand_at(w, o), i = rl_lower_find(w->l, w->op->operand[o].cls, operand_order(w, o), true);
        if (w->l->failed) return false;
        for (; i != RL_NONE && cost > 0; i = rl_lower_next(w->l, i)) {
            rl_dims x = *w->l->phys.p[i].dims;
            if (!dims_like(w, &x, o, d, &n) || !acceptable(w, d, n)) continue;
            memcpy(w->dim, d, sizeof d);
            w->ndim = n;
            uint32_t c = reshapes_needed(w);
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
    if (cost != RL_NONE && cost <= reshapes_needed(w)) {
        memcpy(w->dim, best, sizeof best);
        w->ndim = nbest;
    }
    if (w->cls == RL_BATCHNORM && channel(w) == w->ntoken) w->dim[1].label = 1 + 1;
    return w->ndim > 0 || w->ntoken == 0;
}

/* ---- parameters ---- */

static uint32_t axis_label(const writer *w)
{
    uint32_t l = 0;
    while (l < w->op->nlabel && w->op->label[l].role != RL_T_AXIS && w->op->label[l].role != RL_T_PIECES) l++;
    return l;
}


/* The new dim that holds a label. */
static uint32_t dim_of(const writer *w, uint32_t label)
{
    for (uint32_t k = 0; k < w->ndim; k++) {
        if (w->dim[k].label == label + 1) return k;
        for (uint32_t i = w->dim[k].from; i < w->dim[k].to; i++)
            if (w->op->token[w->token[i]].label == label) return k;
    }
    return RL_NONE;
}

/* Parameters may name dims of size 1: each such label takes one that is there, or a new one in front. */
static bool place_unit_labels(writer *w)
{
    for (uint32_t l = 0; l < w->op->nlabel; l++) {
        uint32_t k = 0;
        if (w->op->label[l].role == RL_T_FREE || dim_of(w, l) != RL_NONE) continue;
        while (k < w->ndim && (w->dim[k].to > w->dim[k].from || w->dim[k].label)) k++;
        if (k == w->ndim) {
            if (w->ndim == RL_MAXDIMS) return false;
            memmove(w->dim + 1, w->dim, w->ndim++ * sizeof *w->dim);
            k = 0;
        }
        w->dim[k] = (span){0, 0, (uint16_t)(l + 1)};
    }
    return true;
}

static void set_attr(writer *w, rl_attr a)
{
    for (uint32_t i = 0; i < w->attr.n; i++)
        if (w->attr.p[i].name == a.name) {
            w->attr.p[i] = a;
            return;
        }
    rl_push(&w->l->now, w->attr, a);
}

static void drop_attr(writer *w, const char *name)
{
    for (uint32_t i = 0; i < w->attr.n; i++)
        if (strcmp(w->attr.p[i].name, name) == 0) w->attr.p[i--] = w->attr.p[--w->attr.n];
}

static void set_int(writer *w, const char *name, int64_t x) { set_attr(w, rl_attr_of_int(w->l->g, name, x)); }

static void set_input(writer *w, uint32_t slot, rl_value v)
{
    while (w->nin <= slot) w->in[w->nin++] = RL_NOVALUE;
    w->in[slot] = v;
    while (w->nin && !rl_has(w->in[w->nin - 1])) w->nin--;
}

static void set_ints(writer *w, uint32_t slot, const char *name, const int64_t *x, uint32_t n)
{
    if (slot == RL_NONE) set_attr(w, rl_attr_of_ints(w->l->g, name, x, n));
    else {
        drop_attr(w, name);
        set_input(w, slot, rl_lower_ints(w->l, name, n, x));
    }
}

static void param_axis(writer *w)
{
    uint32_t l = axis_label(w);
    if (l == w->op->nlabel) return; /* per tensor */
    uint32_t k = dim_of(w, l);
    if (w->n->op == RL_OP_CumSum || w->n->op == RL_OP_CumProd) {
        int64_t *x = rl_new(&w->l->g->mem, int64_t, 1);
        *x = k;
        rl_value v = rl_graph_const(w->l->g, rl_graph_fresh_name(w->l->g, "axis"), RL_I64, 0, NULL, x, sizeof *x);
        rl_val(w->l->g, v)->is_init = true;
        set_input(w, 1, v);
    } else set_int(w, "axis", k);
}

/* Computed axes: the new place of each, looked up by a small Gather. */
static void param_axes_mapped(writer *w)
{
    uint32_t slot = rl_op_axes_input(w->n);
    int64_t place[RL_MAXDIMS];
    for (uint32_t l = 0; l < w->op->nlabel; l++) place[l] = dim_of(w, l);
    rl_value in[2] = {rl_lower_ints(w->l, "rl_axes", w->op->nlabel, place), w->in[slot]};
    rl_value y = rl_graph_value(w->l->g, rl_graph_fresh_name(w->l->g, "rl_axes"));
    rl_graph_set_type(w->l->g, y, RL_I64, rl_val(w->l->g, w->in[slot])->rank, rl_val(w->l->g, w->in[slot])->dim);
    rl_lower_node(w->l, RL_OP_Gather, rl_graph_fresh_name(w->l->g, "rl_axes"), 2, in, 1, &y);
    set_input(w, slot, y);
}

static void param_reduce(writer *w)
{
    if (axis_label(w) < w->op->nlabel) {
        param_axes_mapped(w);
        return;
    }
    int64_t axes[RL_MAXDIMS];
    uint32_t n = 0;
    bool used[RL_MAXDIMS] = {false};
    for (uint32_t l = 0; l < w->op->nlabel; l++)
        if (w->op->label[l].role == RL_T_REDUCED) used[dim_of(w, l)] = true;
    for (uint32_t k = 0; k < w->ndim; k++) { /* a label's tokens may lie in several dims */
        for (uint32_t i = w->dim[k].from; i < w->dim[k].to; i++)
            if (label_of(w, i)->role == RL_T_REDUCED) used[k] = true;
        if (used[k]) axes[n++] = k;
    }
    rl_nodeinfo as = *w->n;
    as.op = w->write_as;
    uint32_t slot = rl_op_axes_input(&as);
    bool silent = slot == RL_NONE ? !rl_attr_find(w->n, "axes") : !rl_has(rl_in(w->n, slot));
    if (silent && n == w->ndim && w->write_as == w->n->op) return; /* all dims, as when they are left out */
    set_ints(w, slot, "axes", axes, n);
}

static void param_global_pool(writer *w)
{
    rl_op op = w->n->op;
    bool l2 = op == RL_OP_GlobalLpPool && rl_attr_int(w->n, "p", 2) == 2;
    w->write_as = op == RL_OP_GlobalAveragePool ? RL_OP_ReduceMean : op == RL_OP_GlobalMaxPool ? RL_OP_ReduceMax
                  : l2 ? RL_OP_ReduceL2 : RL_OP_ReduceL1;
    w->attr.n = 0;
    set_int(w, "keepdims", 1);
    param_reduce(w);
}

/* Sizes that are open cannot be written: then the parameter stays, which it may if the axis is a dim of its own, or if there
 * is none and all pieces are equal. */
static void keep_split(writer *w, uint32_t k)
{
    bool given = rl_attr_find(w->n, "split") || rl_has(rl_in(w->n, 1));
    if (given && w->dim[k].to - w->dim[k].from > 1) w->l->failed = true;
}

static void param_split(writer *w)
{
    uint32_t k = dim_of(w, axis_label(w)), n = 0;
    int64_t size[256];
    param_axis(w);
    if (w->op->noperand - 1 > RL_LEN(size)) {
        w->l->failed = true;
        return;
    }
    for (uint32_t o = 1; o < w->op->noperand; o++, n++) {
        rl_dims d;
        rl_dim shape[RL_MAXDIMS];
        operand_dims(w, o, &d);
        rl_lower_shape(w->l, w->op->operand[o].cls, operand_order(w, o), &d, shape);
        size[n] = shape[k];
        if (!rl_dim_known(shape[k])) {
            keep_split(w, k);
            return;
        }
    }
    drop_attr(w, "num_outputs");
    set_ints(w, w->n->since >= 13 ? 1 : RL_NONE, "split", size, n);
}

static void param_slice(writer *w)
{
    const int64_t *old = NULL;
    int64_t axes[RL_MAXDIMS];
    uint32_t n = 0;
    const rl_attr *a = rl_attr_ints(w->n, "axes"), *s = rl_attr_ints(w->n, "starts");
    if (a) old = a->ints, n = a->n;
    else if (rl_has(rl_in(w->n, 3))) rl_const_ints(w->l->g, w->n->in[3], &w->l->now, &old, &n);
    else n = s ? s->n : (uint32_t)rl_val(w->l->g, w->n->in[1])->dim[0];
    for (uint32_t i = 0; i < n; i++) {
        int64_t x = old ? old[i] : i;
        if (x < 0) x += rl_val(w->l->g, w->n->in[0])->rank;
        axes[i] = dim_of(w, (uint32_t)x);
    }
    if (s) set_ints(w, RL_NONE, "axes", axes, n);
    else { /* the type of axes is that of starts */
        rl_dtype t = rl_val(w->l->g, w->n->in[1])->dtype;
        if (t == RL_I64) set_ints(w, 3, "axes", axes, n);
        else {
            int32_t *x = rl_new(&w->l->g->mem, int32_t, n + 1);
            for (uint32_t i = 0; i < n; i++) x[i] = (int32_t)axes[i];
            rl_value v = rl_graph_const(w->l->g, rl_graph_fresh_name(w->l->g, "axes"), RL_I32, 1, rl_copy(&w->l->g->mem, (int64_t[]){n}, 8), x, n * 4);
            rl_val(w->l->g, v)->is_init = true;
            set_input(w, 3, v);
        }
    }
}

static void param_pad(writer *w)
{
    const int64_t *old, *axes = NULL;
    int64_t pads[2 * RL_MAXDIMS] = {0};
    uint32_t nold, naxes;
    const rl_attr *a = rl_attr_ints(w->n, "pads");
    if (a) old = a->ints, nold = a->n;
    else rl_const_ints(w->l->g, w->n->in[1], &w->l->now, &old, &nold);
    if (rl_has(rl_in(w->n, 3))) rl_const_ints(w->l->g, w->n->in[3], &w->l->now, &axes, &naxes);
    for (uint32_t i = 0; i < nold / 2; i++) {
        if (old[i] == 0 && old[i + nold / 2] == 0) continue;
        int64_t x = axes ? axes[i] : i;
        if (x < 0) x += rl_val(w->l->g, w->n->in[0])->rank;
        uint32_t k = dim_of(w, (uint32_t)x);
        pads[k] = old[i];
        pads[k + w->ndim] = old[i + nold / 2];
    }
    set_ints(w, a ? RL_NONE : 1, "pads", pads, 2 * w->ndim);
    if (axes) set_input(w, 3, RL_NOVALUE);
}

static void param_tile(writer *w)
{
    const int64_t *old;
    int64_t rep[RL_MAXDIMS];
    uint32_t n;
    rl_const_ints(w->l->g, w->n->in[1], &w->l->now, &old, &n);
    for (uint32_t k = 0; k < w->ndim; k++) rep[k] = 1;
    for (uint32_t i = 0; i < n; i++)
        if (old[i] != 1) rep[dim_of(w, i)] = old[i];
    set_ints(w, 1, "repeats", rep, w->ndim);
}

static void param_expand(writer *w)
{
    rl_dims y, x;
    rl_dim shape[RL_MAXDIMS];
    int64_t to[RL_MAXDIMS];
    operand_dims(w, 0, &y);
    operand_dims(w, 1, &x);
    rl_lower_shape(w->l, w->op->operand[0].cls, operand_order(w, 0), &y, shape);
    for (uint32_t k = 0; k < y.ndim; k++) {
        to[k] = x.count[k] == y.count[k] ? 1 : shape[k];
        if (to[k] < 0) w->l->failed = true;
    }
    set_input(w, 1, rl_lower_ints(w->l, "shape", y.ndim, to));
}

static void param_norm(writer *w)
{
    for (uint32_t k = 0; k < w->ndim; k++)
        if (w->dim[k].to > w->dim[k].from && label_of(w, w->dim[k].from)->group == 1) {
            set_int(w, "axis", k);
            return;
        }
    w->l->failed = true;
}

/* Factors, or sizes, for every new dim. */
static void param_resize(writer *w)
{
    rl_graph *g = w->l->g;
    const rl_valinfo *s = rl_has(rl_in(w->n, 2)) ? rl_val(g, w->n->in[2]) : NULL;
    const rl_attr *axes = rl_attr_ints(w->n, "axes");
    uint32_t rank = rl_val(g, w->n->in[0])->rank;
    drop_attr(w, "axes");
    if (s && s->data && s->data->nbyte) {
        float *f = rl_new(&g->mem, float, w->ndim);
        for (uint32_t k = 0; k < w->ndim; k++) f[k] = 1;
        for (uint32_t i = 0; i < s->data->nbyte / sizeof *f; i++) {
            float x;
            memcpy(&x, (const char *)s->data->data + i * sizeof x, sizeof x);
            int64_t d = axes ? axes->ints[i] : i;
            if (x != 1.0f) f[dim_of(w, (uint32_t)(d < 0 ? d + rank : d))] = x;
        }
        rl_value v = rl_graph_const(g, rl_graph_fresh_name(g, "scales"), RL_F32, 1, rl_copy(&g->mem, (int64_t[]){w->ndim}, 8), f,
                                    w->ndim * sizeof *f);
        rl_val(g, v)->is_init = true;
        set_input(w, 2, v);
        return;
    }
    rl_dims y;
    rl_dim shape[RL_MAXDIMS];
    operand_dims(w, 1, &y);
    rl_lower_shape(w->l, w->op->operand[1].cls, operand_order(w, 1), &y, shape);
    for (uint32_t k = 0; k < y.ndim; k++)
        if (!rl_dim_known(shape[k])) w->l->failed = true;
    set_input(w, 3, rl_lower_ints(w->l, "sizes", y.ndim, shape));
}

static void parameters(writer *w)
{
    switch (w->cls) {
    case RL_REDUCE: param_reduce(w); break;
    case RL_GLOBALPOOL: param_global_pool(w); break;
    case RL_ARG: case RL_ALONG: case RL_CONCAT: case RL_GATHER: case RL_QDQ: param_axis(w); break;
    case RL_SPLIT: param_split(w); break;
    case RL_SLICE: param_slice(w); break;
    case RL_PAD: param_pad(w); break;
    case RL_TILE: param_tile(w); break;
    case RL_EXPAND: param_expand(w); break;
    case RL_NORM: param_norm(w); break;
    case RL_RESIZE: param_resize(w); break;
    default: break;
    }
}

/* ---- the node ---- */

static void strip(rl_dims *d)
{
    uint32_t k = leading_ones(d);
    d->ndim -= k;
    memmove(d->count, d->count + k, d->ndim);
}

/* Leading dims of size 1 that no input has, the result has not either. */
static void forget_leading_ones(writer *w)
{
    uint32_t rank = 0, k;
    for (uint32_t o = 0; o < w->op->noperand; o++)
        if (!w->op->operand[o].out) rank = RL_MAX(rank, rl_val(w->l->g, w->in[w->op->operand[o].slot])->rank);
    if (w->cls != RL_POINTWISE || rank >= w->ndim) return;
    k = w->ndim - rank;
    memmove(w->dim, w->dim + k, (w->ndim -= k) * sizeof *w->dim);
}

static rl_value operand_value(writer *w, uint32_t o)
{
    const rl_operand *x = &w->op->operand[o];
    uint32_t order = operand_order(w, o);
    rl_dims want;
    operand_dims(w, o, &want);
    uint32_t i = ready(w, o, &want);
    if (i != RL_NONE) return w->l->phys.p[i].v;
    if (broadcasts(w, o)) strip(&want);
    return rl_lower_want(w->l, x->cls, order, &want);
}

static void start_inputs(writer *w)
{
    w->nin = w->n->nin;
    w->in = rl_new(&w->l->now, rl_value, w->nin + 8);
    uint32_t nin = w->nin;
    for (uint32_t i = 0; i < nin; i++) w->in[i] = RL_NOVALUE;
    for (uint32_t i = 0; i < nin; i++) {
        rl_value v = w->n->in[i];
        bool operand = false;
        for (uint32_t o = 0; o < w->op->noperand; o++) operand |= !w->op->operand[o].out && w->op->operand[o].slot == i;
        if (operand || !rl_has(v)) continue;
        w->in[i] = w->n->op == RL_OP_CastLike ? rl_lower_any_form(w->l, v) : rl_lower_member(w->l, v);
    }
}

static void write_node(writer *w)
{
    rl_lower *l = w->l;
    const rl_nodeinfo *old = w->n;
    rl_value out[256];
    rl_dims d[256];
    if (old->nout > RL_LEN(out)) {
        l->failed = true;
        return;
    }
    for (uint32_t i = 0; i < old->nout; i++) out[i] = RL_NOVALUE;
    for (uint32_t o = 0; o < w->op->noperand; o++) {
        const rl_operand *x = &w->op->operand[o];
        if (!x->out) continue;
        operand_dims(w, o, &d[x->slot]);
        out[x->slot] = rl_lower_result(l, x->cls, operand_order(w, o), &d[x->slot], x->tensor);
    }
    rl_str name = old->name, domain = old->domain;
    uint32_t since = old->since, nout = old->nout;
    rl_node n = rl_lower_node(l, w->write_as, name, w->nin, w->in, nout, out);
    rl_nod(l->g, n)->domain = domain;
    rl_nod(l->g, n)->since = since;
    rl_graph_set_attrs(l->g, n, w->attr.p, w->attr.n);
    w->n = rl_nod(l->g, w->op->node);
    for (uint32_t o = 0; o < w->op->noperand; o++) {
        const rl_operand *x = &w->op->operand[o];
        if (x->out) rl_lower_have(l, out[x->slot], x->cls, operand_order(w, o), &d[x->slot]);
    }
}

/* The turns of a Loop or Scan that come first do so even where there is but one. */
static bool place_turns(writer *w)
{
    if (w->op->nlabel < 2 || w->op->label[0].role != RL_T_AXIS || w->op->label[1].group == 0 || dim_of(w, 0) != RL_NONE) return true;
    if (w->ndim == RL_MAXDIMS) return false;
    memmove(w->dim + 1, w->dim, w->ndim++ * sizeof *w->dim);
    w->dim[0] = (span){0, 0, 1};
    return true;
}

bool rl_lower_form(rl_lower *l, rl_oplegal *op, rl_linkform *out)
{
    const rl_config *c = &op->config.p[op->chosen];
    writer w = {.l = l, .op = op, .n = rl_nod(l->g, op->node), .cls = RL_OPAQUE, .token = c->token,
                .ntoken = op->form[c->form].start[RL_MAXGROUP]};
    if (!choose_dims(&w) || !place_turns(&w) || !place_unit_labels(&w)) return false;
    out->form = rl_new(l->tmp, rl_dims, op->noperand);
    for (uint32_t o = 0; o < op->noperand; o++) operand_dims(&w, o, &out->form[o]);
    for (uint32_t i = 0; i < op->nlabel; i++)
        if (op->label[i].dim[0] < 0 || op->label[i].dim[1] < 0) out->axis = dim_of(&w, i);
    return true;
}

/* The model's own configuration of an elementwise op, with its tokens: they lie as the result's atoms do. */
static bool own_config(const rl_lower *l, const rl_oplegal *op, rl_config *c)
{
    uint32_t last = op->noperand - 1, n = op->ntoken;
    uint8_t seq[RL_MAXATOM + 1], *token = rl_new(l->tmp, uint8_t, n + 1);
    if (op->nform == 0 || op->form[0].kind != RL_FORM_PLAIN || op->form[0].start[RL_MAXGROUP] != n) return false;
    for (uint32_t t = 0; t < n; t++) {
        uint32_t k = t;
        if (op->token[t].natom[last] == 0) return false;
        for (; k && op->token[token[k - 1]].atom[last] > op->token[t].atom[last]; k--) token[k] = token[k - 1];
        token[k] = (uint8_t)t;
    }
    *c = (rl_config){0, token, op->config.p[0].charge};
    for (uint32_t o = 0; o < op->noperand; o++)
        if (memcmp(seq, l->p->member[op->operand[o].tensor.i].seq, rl_config_order(op, c, o, seq)) != 0) return false;
    return true;
}

bool rl_lower_adopts(rl_lower *l, rl_oplegal *op)
{
    rl_config *c = &op->config.p[0];
    rl_class cls = rl_op_class(rl_nod(l->g, op->node)->op);
    if (cls != RL_POINTWISE || op->link || (c->form == RL_NONE && !own_config(l, op, c))) return false;
    writer w = {.l = l, .op = op, .n = rl_nod(l->g, op->node), .cls = cls, .token = c->token, .ntoken = op->ntoken};
    return choose_dims(&w) && reshapes_needed(&w) == 0;
}

/* For each place along the label's dim, the place that was there. */
static const int64_t *label_places(const writer *w, uint32_t label, uint32_t o, uint32_t *count)
{
    const rl_cls *c = &w->l->p->cls.p[w->op->operand[o].cls];
    span s = w->dim[label];
    int64_t n = 1, *p, stride[RL_MAXATOM], size[RL_MAXATOM];
    for (uint32_t i = s.from; i < s.to; i++) size[i - s.from] = c->size[w->op->token[w->token[i]].atom[o][0]], n *= size[i - s.from];
    for (uint32_t i = s.from; i < s.to; i++) { /* a token's number says how far in it was */
        stride[i - s.from] = 1;
        for (uint32_t k = s.from; k < s.to; k++)
            if (w->token[k] > w->token[i]) stride[i - s.from] *= size[k - s.from];
    }
    p = rl_new(&w->l->now, int64_t, n);
    for (int64_t x = 0; x < n; x++) {
        int64_t rest = x;
        for (uint32_t i = s.to; i-- > s.from; rest /= size[i - s.from]) p[x] += rest % size[i - s.from] * stride[i - s.from];
    }
    *count = (uint32_t)n;
    return p;
}

/* Stores input `slot` with the elements along dim in the order of the label's channels. */
static void permute_input(writer *w, uint32_t slot, uint32_t dim, uint32_t label, uint32_t o)
{
    uint32_t n;
    const int64_t *p = label_places(w, label, o, &n);
    bool moved = false;
    for (uint32_t i = 0; i < n; i++) moved |= p[i] != i;
    if (moved && rl_has(w->in[slot])) w->in[slot] = rl_graph_permuted(w->l->g, w->in[slot], dim, n, p);
}

/* Operand 0 is x, 1 is y; of a depthwise Conv the channels are one label of both. */
static void conv_weights(writer *w)
{
    bool depthwise = w->op->label[2].role != RL_T_FREE;
    uint32_t made = depthwise ? 1 : 2;
    if (!depthwise) permute_input(w, 1, 1, 1, 0);
    permute_input(w, 1, 0, made, 1);
    if (w->nin > 2) permute_input(w, 2, 0, made, 1);
}

static void plain(rl_lower *l, rl_oplegal *op)
{
    const rl_config *c = &op->config.p[op->chosen];
    const rl_nodeinfo copy = *rl_nod(l->g, op->node); /* g->node may move as nodes are added */
    writer w = {.l = l, .op = op, .n = &copy, .cls = rl_op_class(copy.op), .token = c->token, .write_as = copy.op,
                .ntoken = op->form[c->form].start[RL_MAXGROUP]};
    for (uint32_t i = 0; i < copy.nattr; i++) rl_push(&l->now, w.attr, copy.attr[i]);
    if (!choose_dims(&w) || !place_unit_labels(&w)) l->failed = true;
    if (l->failed) return;
    start_inputs(&w);
    if (copy.op == RL_OP_Conv && !l->failed) conv_weights(&w);
    for (uint32_t o = 0; o < op->noperand && !l->failed; o++)
        if (!op->operand[o].out) w.in[op->operand[o].slot] = operand_value(&w, o);
    if (!l->failed) forget_leading_ones(&w);
    parameters(&w);
    if (!l->failed) write_node(&w);
}

/* ---- the two whose operands do not share one sequence of tokens ---- */

/* Gather of a constant table: the index and the row, each in any order, either first. */
static void table(rl_lower *l, rl_oplegal *op)
{
    const rl_config *c = &op->config.p[op->chosen];
    const rl_form *f = &op->form[c->form];
    uint8_t t[RL_MAXATOM + 1];
    rl_dims x = {0}, y = {0}, i = {0};
    bool row_first = f->seq[1][0] == 1;
    uint8_t nrow = (uint8_t)(f->start[2] - f->start[1]), naxis = f->start[3] > f->start[2] ? op->token[c->token[f->start[2]]].natom[0] : 0;
    uint32_t order[3];
    for (uint32_t o = 0; o < 3; o++) {
        rl_config_order(op, c, o, t);
        order[o] = rl_order_intern(l->p, op->operand[o].cls, t);
    }
    uint32_t at = rl_lower_find(l, op->operand[2].cls, order[2], true);
    if (at != RL_NONE) i = *l->phys.p[at].dims;
    else if (l->p->cls.p[op->operand[2].cls].constant)
        for (uint32_t k = 0; k < l->p->cls.p[op->operand[2].cls].natom; k++) i.count[i.ndim++] = 1;
    else l->failed = true;
    if (l->failed) return;
    if (row_first && nrow) x.count[x.ndim++] = y.count[y.ndim++] = nrow;
    uint32_t axis = x.ndim;
    x.count[x.ndim++] = naxis;
    for (uint32_t k = 0; k < i.ndim; k++) y.count[y.ndim++] = i.count[k];
    if (!row_first && nrow) x.count[x.ndim++] = y.count[y.ndim++] = nrow;
    rl_value in[2] = {rl_lower_want(l, op->operand[0].cls, order[0], &x), rl_lower_want(l, op->operand[2].cls, order[2], &i)};
    rl_value out = rl_lower_result(l, op->operand[1].cls, order[1], &y, op->operand[1].tensor);
    rl_node n = rl_lower_node(l, RL_OP_Gather, rl_nod(l->g, op->node)->name, 2, in, 1, &out);
    rl_attr a = rl_attr_of_int(l->g, "axis", axis);
    rl_graph_set_attrs(l->g, n, &a, 1);
    rl_lower_have(l, out, op->operand[1].cls, order[1], &y);
}

/* The dims of a block reshape's output: blocks as the model has them, other tokens alone. */
static void block_dims(const rl_lower *l, const rl_oplegal *op, const rl_config *c, rl_dims *d)
{
    const rl_operand *y = &op->operand[1];
    const rl_member *m = &l->p->member[y->tensor.i];
    d->ndim = 0;
    for (uint32_t i = 0; i < op->form[c->form].start[RL_MAXGROUP]; i++) {
        const rl_token *t = &op->token[c->token[i]];
        uint32_t left = t->natom[1];
        if (op->label[t->label].role == RL_T_FREE) {
            d->count[d->ndim++] = (uint8_t)left;
            continue;
        }
        for (uint32_t k = (uint32_t)op->label[t->label].dim[1]; left; k++) {
            uint32_t n = m->dimstart[k + 1] - m->dimstart[k];
            if (n) d->count[d->ndim++] = (uint8_t)n;
            left -= n;
        }
    }
}

static void block_reshape(rl_lower *l, rl_oplegal *op)
{
    const rl_config *c = &op->config.p[op->chosen];
    uint8_t t[RL_MAXATOM + 1];
    rl_dims d;
    rl_dim to[RL_MAXDIMS];
    rl_config_order(op, c, 0, t);
    uint32_t xo = rl_order_intern(l->p, op->operand[0].cls, t), at = rl_lower_find(l, op->operand[0].cls, xo, true);
    if (at == RL_NONE) {
        l->failed = true;
        return;
    }
    rl_value x = l->phys.p[at].v;
    rl_config_order(op, c, 1, t);
    uint32_t yo = rl_order_intern(l->p, op->operand[1].cls, t);
    block_dims(l, op, c, &d);
    rl_lower_shape(l, op->operand[1].cls, yo, &d, to);
    rl_value out = rl_lower_result(l, op->operand[1].cls, yo, &d, op->operand[1].tensor);
    rl_lower_reshape(l, rl_nod(l->g, op->node)->name, x, to, d.ndim, out);
    rl_lower_have(l, out, op->operand[1].cls, yo, &d);
}

void rl_lower_op(rl_lower *l, rl_oplegal *op)
{
    rl_class cls = rl_op_class(rl_nod(l->g, op->node)->op);
    rl_formkind kind = op->form[op->config.p[op->chosen].form].kind;
    if (cls == RL_MATMUL || cls == RL_GEMM || kind == RL_FORM_FUSED) rl_lower_matmul(l, op);
    else if (kind == RL_FORM_RUN) rl_lower_run(l, op);
    else if (cls == RL_MOVING) block_reshape(l, op);
    else if (cls == RL_GATHER && op->noperand == 3) table(l, op);
    else plain(l, op);
}
