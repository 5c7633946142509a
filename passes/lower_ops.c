/* Writes one op in another order of its dims: lower_form.c chooses them, lower_params.c renames its parameters. */
#include "lower_form.h"
#include <string.h>

/* ---- the node ---- */

static void strip(rl_dims *d) {
    uint32_t k = rl_dims_leading_ones(d);
    d->ndim -= k;
    memmove(d->count, d->count + k, d->ndim);
}

/* Leading dims of size 1 that no input has, the result has not either. */
static void forget_leading_ones(rl_opwriter *w) {
    uint32_t rank = 0, k;
    for (uint32_t o = 0; o < w->op->noperand; o++)
        if (!w->op->operand[o].out) rank = RL_MAX(rank, rl_val(w->l->g, w->in[w->op->operand[o].slot])->rank);
    if (w->cls != RL_POINTWISE || rank >= w->ndim) return;
    k = w->ndim - rank;
    memmove(w->dim, w->dim + k, (w->ndim -= k) * sizeof *w->dim);
}

static rl_value operand_value(rl_opwriter *w, uint32_t o) {
    const rl_operand *x = &w->op->operand[o];
    uint32_t order = rl_opwriter_order(w, o);
    rl_dims want;
    rl_opwriter_dims(w, o, &want);
    uint32_t i = rl_opwriter_ready(w, o, &want);
    if (i != RL_NONE) return w->l->phys.p[i].v;
    if (rl_opwriter_broadcasts(w, o) && !w->whole) strip(&want);
    return rl_lower_want(w->l, x->cls, order, &want);
}

static void start_inputs(rl_opwriter *w) {
    w->nin = w->n->nin;
    w->in = rl_new(&w->l->now, rl_value, w->nin + 8);
    uint32_t nin = w->nin;
    for (uint32_t i = 0; i < nin; i++) w->in[i] = RL_NOVALUE;
    for (uint32_t i = 0; i < nin; i++) {
        rl_value v = w->n->in[i];
        bool operand = false;
        for (uint32_t o = 0; o < w->op->noperand; o++) operand |= !w->op->operand[o].out && w->op->operand[o].slot == i;
        if (operand || !rl_has(v)) continue;
        w->in[i] = rl_gives_type(w->n, i) ? rl_lower_any_form(w->l, v) : rl_lower_member(w->l, v);
    }
}

static void write_node(rl_opwriter *w) {
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
        rl_opwriter_dims(w, o, &d[x->slot]);
        out[x->slot] = rl_lower_result(l, x->cls, rl_opwriter_order(w, o), &d[x->slot], x->tensor);
    }
    const char *name = old->name;
    rl_str domain = old->domain;
    uint32_t since = old->since, nout = old->nout;
    while (!rl_has(out[nout - 1])) nout--; /* nobody reads the rest */
    rl_node n = rl_lower_node(l, w->write_as, name, w->nin, w->in, nout, out);
    rl_nod(l->g, n)->domain = domain;
    rl_nod(l->g, n)->since = since;
    rl_graph_set_attrs(l->g, n, w->attr.p, w->attr.n);
    w->n = rl_nod(l->g, w->op->node);
    for (uint32_t o = 0; o < w->op->noperand; o++) {
        const rl_operand *x = &w->op->operand[o];
        if (x->out) rl_lower_have(l, out[x->slot], x->cls, rl_opwriter_order(w, o), &d[x->slot]);
    }
}

/* The turns of a Loop or Scan that come first do so even where there is but one. */
static bool place_turns(rl_opwriter *w) {
    if (w->op->nlabel < 2 || w->op->label[0].role != RL_T_AXIS || w->op->label[1].group == 0 || rl_opwriter_dim(w, 0) != RL_NONE) return true;
    if (w->ndim == RL_MAXDIMS) return false;
    memmove(w->dim + 1, w->dim, w->ndim++ * sizeof *w->dim);
    w->dim[0] = (rl_dimspan){0, 0, 1};
    return true;
}

bool rl_lower_form(rl_lower *l, rl_oplegal *op, rl_linkform *out) {
    const rl_config *c = &op->config.p[op->chosen];
    rl_opwriter w = {.l = l, .op = op, .n = rl_nod(l->g, op->node), .cls = RL_OPAQUE, .token = c->token,
                .ntoken = op->form[c->form].start[RL_MAXGROUP]};
    if (!rl_opwriter_choose_dims(&w) || !place_turns(&w) || !rl_opwriter_place_labels(&w)) return false;
    out->form = rl_new(l->tmp, rl_dims, op->noperand);
    for (uint32_t o = 0; o < op->noperand; o++) rl_opwriter_dims(&w, o, &out->form[o]);
    for (uint32_t i = 0; i < op->nlabel; i++)
        if (op->label[i].dim[0] < 0 || op->label[i].dim[1] < 0) out->axis = rl_opwriter_dim(&w, i);
    return true;
}

/* The model's own configuration of an elementwise op, with its tokens: they lie as the result's atoms do. */
static bool own_config(const rl_lower *l, const rl_oplegal *op, rl_config *c) {
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
        if (!rl_same_bytes(seq, l->p->member[op->operand[o].tensor.i].seq, rl_config_order(op, c, o, seq))) return false;
    return true;
}

bool rl_lower_adopts(rl_lower *l, rl_oplegal *op) {
    rl_config *c = &op->config.p[0];
    rl_class cls = rl_op_class(rl_nod(l->g, op->node)->op);
    if (cls != RL_POINTWISE || op->link || (c->form == RL_NONE && !own_config(l, op, c))) return false;
    rl_opwriter w = {.l = l, .op = op, .n = rl_nod(l->g, op->node), .cls = cls, .token = c->token, .ntoken = op->ntoken};
    return rl_opwriter_choose_dims(&w) && rl_opwriter_reshapes(&w) == 0;
}

/* The places along a label's dim that were where its places are now; n 0: each is where it was. */
typedef struct { uint32_t n; const int64_t *p; } places;

static places label_places(const rl_opwriter *w, uint32_t label, uint32_t o) {
    const rl_cls *c = &w->l->p->cls.p[w->op->operand[o].cls];
    rl_dimspan s = w->dim[label];
    int64_t n = 1, *p, stride[RL_MAXATOM], size[RL_MAXATOM];
    bool moved = false;
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
        moved |= p[x] != x;
    }
    return (places){moved ? (uint32_t)n : 0, p};
}

/* v with the elements along dim in another order; what a DequantizeLinear makes of constants comes from another one. */
static rl_value permuted(rl_lower *l, rl_value v, uint32_t dim, const places *to) {
    rl_graph *g = l->g;
    if (rl_val(g, v)->data) return rl_graph_permuted(g, v, dim, to->n, to->p);
    const rl_valinfo x = *rl_val(g, v);
    const rl_nodeinfo old = *rl_nod(g, x.def);
    rl_value in[3], y = rl_graph_value(g, rl_graph_fresh_name(g, x.name ? x.name : "rl"));
    rl_graph_set_type(g, y, x.dtype, x.rank, x.dim);
    for (uint32_t i = 0; i < old.nin; i++) {
        bool along = i == 0 || rl_op_has_scale_of_each(g, &old, i, dim);
        in[i] = along ? rl_graph_permuted(g, old.in[i], i == 0 ? dim : 0, to->n, to->p) : old.in[i];
    }
    rl_node made = rl_lower_node(l, old.op, rl_graph_fresh_name(g, "rl_dequantize"), old.nin, in, 1, &y);
    rl_nod(g, made)->since = old.since;
    rl_graph_set_attrs(g, made, old.attr, old.nattr);
    return y;
}

/* Stores input `slot` with the elements along dim in the order of channels; one element is there for all. */
static void permute_input(rl_opwriter *w, uint32_t slot, uint32_t dim, const places *to) {
    if (to->n == 0 || slot >= w->nin || !rl_has(w->in[slot])) return;
    const rl_valinfo *v = rl_val(w->l->g, w->in[slot]);
    if (v->rank > 0 && v->dim[dim] != 1) w->in[slot] = permuted(w->l, w->in[slot], dim, to);
}

/* Operand 0 is x, 1 is y; of a depthwise Conv the channels are one label of both. */
static void conv_weights(rl_opwriter *w) {
    const rl_layer *of = rl_op_layer(w->n->op);
    bool depthwise = w->op->label[2].role != RL_T_FREE;
    places read = label_places(w, 1, 0), made = label_places(w, depthwise ? 1 : 2, 1);
    if (!depthwise) permute_input(w, of->weight, 1, &read);
    permute_input(w, of->weight, 0, &made);
    permute_input(w, of->bias, 0, &made);
    for (uint32_t i = 0; i < of->nrow; i++) permute_input(w, of->row[i], 0, &made);
}

static void plain(rl_lower *l, rl_oplegal *op) {
    const rl_config *c = &op->config.p[op->chosen];
    const rl_nodeinfo copy = *rl_nod(l->g, op->node); /* g->node may move as nodes are added */
    rl_opwriter w = {.l = l, .op = op, .n = &copy, .cls = rl_legal_class(op, copy.op), .token = c->token, .write_as = copy.op,
                .ntoken = op->form[c->form].start[RL_MAXGROUP]};
    for (uint32_t i = 0; i < copy.nattr; i++) rl_push(&l->now, w.attr, copy.attr[i]);
    if (!rl_opwriter_choose_dims(&w) || !rl_opwriter_place_labels(&w)) l->failed = true;
    if (l->failed) return;
    start_inputs(&w);
    if (rl_op_is_conv(copy.op) && !l->failed) conv_weights(&w);
    for (uint32_t o = 0; o < op->noperand && !l->failed; o++)
        if (!op->operand[o].out) w.in[op->operand[o].slot] = operand_value(&w, o);
    if (!l->failed) forget_leading_ones(&w);
    rl_opwriter_parameters(&w);
    if (!l->failed) write_node(&w);
}

/* ---- the two whose operands do not share one sequence of tokens ---- */

/* Gather of a constant table: the index and the row, each in any order, either first. */
static void table(rl_lower *l, rl_oplegal *op) {
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
static void block_dims(const rl_lower *l, const rl_oplegal *op, const rl_config *c, rl_dims *d) {
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

static void block_reshape(rl_lower *l, rl_oplegal *op) {
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

void rl_lower_op(rl_lower *l, rl_oplegal *op) {
    rl_class cls = rl_legal_class(op, rl_nod(l->g, op->node)->op);
    if (op->part) {
        rl_lower_einsum(l, op);
        return;
    }
    rl_formkind kind = op->form[op->config.p[op->chosen].form].kind;
    if (cls == RL_MATMUL || cls == RL_GEMM || kind == RL_FORM_FUSED) rl_lower_matmul(l, op);
    else if (kind == RL_FORM_RUN) rl_lower_run(l, op);
    else if (kind == RL_FORM_HEADS) rl_lower_heads(l, op);
    else if (cls == RL_MOVING) block_reshape(l, op);
    else if (cls == RL_GATHER && rl_is_table(op)) table(l, op);
    else plain(l, op);
}
