/* Writes a MatMul or Gemm in the form that the configuration names.
 *
 *   (b M K)(b K N) -> (b M N)      MatMul(A, B)            (b K M)(b N K) -> (b N M)      MatMul(B, A)
 *   (L K)(K N) -> (L N)            MatMul(A, B)            (P K Q)(N K)   -> (P N Q)      MatMul(B, A)
 *   (L K) or (K L), (K N) or (N K) -> (L N) or (N L)       Gemm with transA, transB, or the operands swapped
 *   (P K Q)(N K) + (N)             -> (P N Q)              Gemm as MatMul(B, A) and Add
 *   (P Q K)(H K N) + (H N)         -> (P H Q N)            MatMul with each part of the matrix, and of a Gemm Add
 *   FusedMatMul: (b M K)(b K M)(M b K)(K b M) -> (b M N)(b N M) for each operand and the output by itself
 *   QLinearMatMul, MatMulInteger: as MatMul; where B stands first, so do its scale and zero point, and int8 is uint8
 *
 * The two matrix dims of each operand are one dim each; leading dims are taken as an existing tensor has them. */
#include "charge.h"
#include "lower.h"
#include "../src/eval.h"
#include <string.h>

typedef struct {
    rl_lower *l;
    rl_oplegal *op;
    const rl_config *c;
    const rl_form *f;
} writer;

enum { A_, B_, Y_, C_ };

/* Atoms of a group in an operand. */
static uint32_t group_atoms(const writer *w, uint32_t g, uint32_t o) {
    uint32_t n = 0;
    for (uint32_t i = w->f->start[g]; i < w->f->start[g + 1]; i++) n += w->op->token[w->c->token[i]].natom[o];
    return n;
}

static uint32_t order_in(const writer *w, uint32_t o) {
    uint8_t t[RL_MAXATOM + 1];
    rl_config_order(w->op, w->c, o, t);
    return rl_order_intern(w->l->p, w->op->operand[o].cls, t);
}

static uint32_t nseq(const writer *w, uint32_t o) {
    uint32_t n = 0;
    while (n < RL_MAXGROUP && w->f->seq[o][n] != RL_END) n++;
    return n;
}

static void push(rl_dims *d, uint32_t count) {
    if (d->ndim < RL_MAXDIMS) d->count[d->ndim++] = (uint8_t)count;
}

static rl_value want(const writer *w, uint32_t o, const rl_dims *d) {
    return rl_lower_want(w->l, w->op->operand[o].cls, order_in(w, o), d);
}

static void result(const writer *w, rl_op as, const rl_value *in, uint32_t nin, const rl_attr *a, uint32_t na, const rl_dims *y) {
    rl_lower *l = w->l;
    uint32_t order = order_in(w, Y_);
    rl_value out = rl_lower_result(l, w->op->operand[Y_].cls, order, y, w->op->operand[Y_].tensor);
    rl_node n = rl_lower_node(l, as, rl_nod(l->g, w->op->node)->name, nin, in, 1, &out);
    rl_graph_set_attrs(l->g, n, a, na);
    rl_lower_have(l, out, w->op->operand[Y_].cls, order, y);
}

/* ---- Gemm ---- */

/* The third operand, which opsets before 11 require. */
static rl_value zero(rl_lower *l, rl_dtype t) {
    static const int64_t one = 1;
    static const double bits = 0;
    rl_value v = rl_graph_const(l->g, rl_graph_fresh_name(l->g, "rl_zero"), t, 1, &one, &bits, rl_dtype_bits(t) / 8);
    rl_val(l->g, v)->is_init = true;
    return v;
}

static void gemm(const writer *w) {
    rl_lower *l = w->l;
    const rl_nodeinfo old = *rl_nod(l->g, w->op->node);
    uint32_t x = w->f->seq[A_][0] == RL_G_LEAD || w->f->seq[A_][1] == RL_G_LEAD ? A_ : B_, other = A_ + B_ - x;
    rl_value v[2], in[3] = {RL_NOVALUE, RL_NOVALUE, RL_NOVALUE};
    rl_dims d, y = {0};
    for (uint32_t o = A_; o <= B_; o++) {
        d.ndim = 0;
        push(&d, group_atoms(w, w->f->seq[o][0], o));
        push(&d, group_atoms(w, w->f->seq[o][1], o));
        v[o] = want(w, o, &d);
    }
    push(&y, group_atoms(w, w->f->seq[Y_][0], Y_));
    push(&y, group_atoms(w, w->f->seq[Y_][1], Y_));
    bool lead_first = w->f->seq[Y_][0] == RL_G_LEAD;
    uint32_t left = lead_first ? x : other, right = lead_first ? other : x;
    rl_attr a[4];
    uint32_t na = 0, nin = 2;
    if (w->f->seq[left][0] == RL_G_K) a[na++] = rl_attr_of_int(l->g, "transA", 1);
    if (w->f->seq[right][1] == RL_G_K) a[na++] = rl_attr_of_int(l->g, "transB", 1);
    in[0] = v[left];
    in[1] = v[right];
    if (old.op == RL_OP_Gemm) {
        const rl_attr *alpha = rl_attr_find(&old, "alpha"), *beta = rl_attr_find(&old, "beta");
        if (alpha) a[na++] = *alpha;
        if (beta) a[na++] = *beta;
        if (w->op->noperand == 4) {
            d.ndim = 0;
            push(&d, group_atoms(w, w->f->seq[C_][0], C_));
            push(&d, group_atoms(w, w->f->seq[C_][1], C_));
            if (d.count[0] == 0) d = (rl_dims){1, {d.count[1]}};
            in[nin++] = want(w, C_, &d);
        }
    }
    if (nin == 2 && old.since < 11) in[nin++] = zero(l, rl_val(l->g, w->op->operand[A_].tensor)->dtype);
    result(w, RL_OP_Gemm, in, nin, a, na, &y);
}

/* ---- MatMul ---- */

/* Bytes of a constant in the other of int8 and uint8, each 128 more or less; of none: the zero point that it stands for. */
static rl_value retyped(rl_lower *l, rl_value v, rl_dtype to) {
    const rl_const *c = rl_has(v) ? rl_eval_constant(l->g, v) : NULL;
    size_t n = c ? c->nbyte : 1;
    uint8_t *bytes = rl_alloc(&l->g->mem, n);
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)((c ? ((const uint8_t *)c->data)[i] : 0) ^ 0x80);
    const char *stem = rl_has(v) ? rl_val(l->g, v)->name : NULL;
    rl_value made = rl_graph_const(l->g, rl_graph_fresh_name(l->g, stem ? stem : "rl_zero"), to, c ? c->rank : 0, c ? c->dim : NULL, bytes, n);
    rl_val(l->g, made)->is_init = true;
    l->failed |= rl_has(v) && !c;
    return made;
}

/* The inputs of a product of integers that has A and B as in v, B first where `left` is B, with what belongs to each. */
static void scaled_inputs(const writer *w, const rl_nodeinfo *old, const rl_scaled *x, uint32_t left, const rl_value v[2], rl_value *in) {
    rl_lower *l = w->l;
    bool differ = rl_val(l->g, v[A_])->dtype != rl_val(l->g, v[B_])->dtype;
    uint32_t written = left == B_ && differ ? rl_retyped_operand(l->p, w->op) : RL_NONE;
    for (uint32_t i = 0; i < old->nin; i++) {
        bool matrix = i == x->pair[0][A_] || i == x->pair[0][B_];
        in[i] = matrix ? v[i == x->pair[0][B_]] : rl_has(old->in[i]) ? rl_lower_member(l, old->in[i]) : RL_NOVALUE;
    }
    for (uint32_t i = 0; written != RL_NONE && i < x->npair; i += x->npair - 1) { /* the matrix and the zero point */
        rl_value *s = &in[x->pair[i][written]];
        *s = retyped(l, *s, rl_val(l->g, v[1 - written])->dtype);
    }
    for (uint32_t i = 0; i < x->npair; i++) {
        rl_value *a = &in[x->pair[i][0]], *b = &in[x->pair[i][1]], was = *a;
        if (left == B_) *a = *b, *b = was;
    }
}

/* Of the operand `left` and the other, as a MatMul, or the product of integers that it was; of a Gemm with a bias, dims c, and Add. */
static void write_product(const writer *w, uint32_t left, const rl_value v[2], const rl_dims *y, const rl_dims *c) {
    const rl_nodeinfo old = *rl_nod(w->l->g, w->op->node);
    if (w->op->noperand == 4) {
        rl_value in[2] = {v[left], v[1 - left]};
        rl_operand *out = &w->op->operand[Y_];
        rl_value sum[2] = {rl_lower_new(w->l, out->tensor, out->cls, order_in(w, Y_), y), want(w, C_, c)};
        rl_lower_node(w->l, RL_OP_MatMul, rl_graph_fresh_name(w->l->g, "rl_product"), 2, in, 1, sum);
        result(w, RL_OP_Add, sum, 2, NULL, 0, y);
        return;
    }
    const rl_scaled *x = rl_op_scaled(old.op);
    rl_value in[8] = {v[left], v[1 - left], RL_NOVALUE, RL_NOVALUE, RL_NOVALUE, RL_NOVALUE, RL_NOVALUE, RL_NOVALUE};
    uint32_t nin = RL_LEN(in);
    if (x) scaled_inputs(w, &old, x, left, v, in);
    while (!rl_has(in[nin - 1])) nin--;
    result(w, x ? old.op : RL_OP_MatMul, in, nin, NULL, 0, y);
}

static bool known_or_single(const writer *w, uint32_t o, const uint8_t *atom, uint32_t n) {
    uint32_t nsym = 0;
    for (uint32_t i = 0; i < n; i++) nsym += !rl_dim_known(w->l->p->cls.p[w->op->operand[o].cls].size[atom[i]]);
    return nsym < 2;
}

/* Leading dims: as an existing tensor has them when its other dims are the last `tail` counts; else merged. */
static void leading_dims(const writer *w, uint32_t o, const uint32_t *tail, uint32_t ntail, uint32_t nlead, rl_dims *d) {
    uint32_t i = rl_lower_find(w->l, w->op->operand[o].cls, order_in(w, o), w->op->operand[o].pin);
    for (; i != RL_NONE; i = rl_lower_next(w->l, i)) {
        const rl_dims *x = w->l->phys.p[i].dims;
        bool fits = x->ndim > ntail || (x->ndim == ntail && nlead == 0 && ntail >= 2);
        for (uint32_t k = 0; fits && k < ntail; k++) fits = x->count[x->ndim - ntail + k] == tail[k];
        if (!fits) continue;
        *d = *x;
        return;
    }
    uint8_t t[RL_MAXATOM + 1];
    rl_config_order(w->op, w->c, o, t);
    d->ndim = 0;
    uint32_t from = 0;
    for (uint32_t k = 1; k <= nlead; k++) /* a run with two symbolic sizes is cut */
        if (k == nlead || !known_or_single(w, o, t + from, k + 1 - from)) {
            push(d, k - from);
            from = k;
        }
    if (d->ndim == 0) push(d, 0);
    for (uint32_t k = 0; k < ntail; k++) push(d, tail[k]);
}

/* x has leading dims, the other operand is a plain matrix. */
static void with_matrix(const writer *w, uint32_t x, uint32_t matrix, bool matrix_left) {
    const uint8_t *sx = w->f->seq[x];
    uint32_t n = nseq(w, x), tail[2], ntail = 0, nlead = 0, k = 0;
    rl_dims d, m = {0}, y;
    for (uint32_t i = 0; i < n; i++) {
        if (sx[i] == RL_G_K) k = i;
    }
    for (uint32_t i = 0; i < k; i++) nlead += group_atoms(w, sx[i], x);
    for (uint32_t i = k; i < n; i++) tail[ntail++] = group_atoms(w, sx[i], x);
    if (matrix_left && ntail == 1) tail[ntail++] = 0; /* (P K) as columns of one */
    leading_dims(w, x, tail, ntail, nlead, &d);
    if (matrix_left && d.ndim > ntail && nlead == 0) d = (rl_dims){2, {(uint8_t)tail[0], (uint8_t)tail[1]}};
    push(&m, group_atoms(w, w->f->seq[matrix][0], matrix));
    push(&m, group_atoms(w, w->f->seq[matrix][1], matrix));
    uint32_t free_group = w->f->seq[matrix][0] == RL_G_K ? w->f->seq[matrix][1] : w->f->seq[matrix][0];
    rl_value v[2];
    v[x] = want(w, x, &d);
    v[matrix] = want(w, matrix, &m);
    y = d;
    y.count[d.ndim - ntail] = (uint8_t)group_atoms(w, free_group, Y_);
    rl_dims c = {0};
    if (w->op->noperand == 4) push(&c, group_atoms(w, RL_G_N, C_));
    for (uint32_t i = 1; i < ntail; i++) push(&c, 0);
    write_product(w, matrix_left ? matrix : x, v, &y, &c);
}

/* ---- FusedMatMul ---- */

/* The batch dims of operand o, as an existing tensor has them whose other dims are the two of the product. */
static bool batch_dims(const writer *w, uint32_t o, rl_dims *d) {
    const uint8_t *s = w->f->seq[o];
    uint32_t lead = s[0] == RL_G_LEAD ? 0 : 1, before = lead;
    uint32_t i = rl_lower_find(w->l, w->op->operand[o].cls, order_in(w, o), w->op->operand[o].pin);
    for (; i != RL_NONE; i = w->l->phys.p[i].next) {
        const rl_dims *x = w->l->phys.p[i].dims;
        if (x->ndim < 3 || x->count[x->ndim - 1] != group_atoms(w, s[2], o)) continue;
        if (x->count[lead ? 0 : x->ndim - 2] != group_atoms(w, s[lead ? 0 : 1], o)) continue;
        d->ndim = x->ndim - 2;
        memcpy(d->count, x->count + before, d->ndim);
        return true;
    }
    return false;
}

/* The batch dims of A, B and the output: one dim per token, unless all have the same and a tensor shows them. */
static void shared_batch(const writer *w, rl_dims *d) {
    bool same = true;
    for (uint32_t k = w->f->start[RL_G_LEAD]; k < w->f->start[RL_G_LEAD + 1]; k++) {
        const rl_token *t = &w->op->token[w->c->token[k]];
        push(&d[A_], t->natom[A_]);
        push(&d[B_], t->natom[B_]);
        push(&d[Y_], t->natom[Y_]);
        same &= t->natom[A_] && t->natom[B_];
    }
    rl_dims shown;
    if (same && (batch_dims(w, A_, &shown) || batch_dims(w, B_, &shown))) d[A_] = d[B_] = d[Y_] = shown;
}

/* The dims of an operand: its groups in their sequence, the leading ones as in `batch`. */
static rl_dims around(const writer *w, uint32_t o, const rl_dims *batch) {
    rl_dims d = {0};
    for (uint32_t i = 0; i < nseq(w, o); i++) {
        uint32_t g = w->f->seq[o][i];
        if (g != RL_G_LEAD) push(&d, group_atoms(w, g, o));
        for (uint32_t k = 0; g == RL_G_LEAD && k < batch->ndim; k++) push(&d, batch->count[k]);
    }
    return d;
}

static void fused(const writer *w) {
    rl_lower *l = w->l;
    rl_fused as = rl_fused_as(w->f);
    rl_dims batch[3] = {{0}, {0}, {0}}, d[3];
    if (nseq(w, A_) == 3 && nseq(w, B_) == 3) shared_batch(w, batch);
    else {
        uint32_t x = nseq(w, A_) == 3 ? A_ : B_, tail[2] = {group_atoms(w, w->f->seq[x][1], x), group_atoms(w, w->f->seq[x][2], x)};
        uint32_t nlead = group_atoms(w, RL_G_LEAD, x);
        if (nlead) leading_dims(w, x, tail, 2, nlead, &batch[x]);
        if (nlead) batch[x].ndim -= 2;
        batch[Y_] = batch[x];
    }
    for (uint32_t o = A_; o <= Y_; o++) d[o] = around(w, o, &batch[o]);
    rl_value in[2] = {want(w, as.left, &d[as.left]), want(w, 1 - as.left, &d[1 - as.left])};
    rl_attr a[8];
    uint32_t na = 0;
    const rl_attr *alpha = rl_attr_find(rl_nod(l->g, w->op->node), "alpha");
    if (alpha) a[na++] = *alpha;
    if (as.trans_left) a[na++] = rl_attr_of_int(l->g, "transA", 1);
    if (as.trans_right) a[na++] = rl_attr_of_int(l->g, "transB", 1);
    if (as.batch_left) a[na++] = rl_attr_of_int(l->g, "transBatchA", 1);
    if (as.batch_right) a[na++] = rl_attr_of_int(l->g, "transBatchB", 1);
    rl_graph_import(l->g, rl_internz(l->g->ctx, "com.microsoft"), 1);
    result(w, RL_OP_ms_FusedMatMul, in, 2, a, na, &d[Y_]);
}

/* Both have batch atoms: each leading token that not both have is a dim of its own. */
static void batched(const writer *w, bool swapped) {
    uint32_t left = swapped ? B_ : A_, right = swapped ? A_ : B_;
    rl_dims d[3] = {{0}, {0}, {0}};
    uint32_t from = w->f->start[RL_G_LEAD], to = w->f->start[RL_G_LEAD + 1], rows, cols;
    const uint8_t *sl = w->f->seq[left], *sr = w->f->seq[right];
    uint32_t i = rl_lower_find(w->l, w->op->operand[left].cls, order_in(w, left), true);
    bool same = true;
    for (uint32_t k = from; k < to; k++) {
        const rl_token *t = &w->op->token[w->c->token[k]];
        same &= t->natom[A_] && t->natom[B_];
    }
    rows = group_atoms(w, sl[1], left);
    cols = group_atoms(w, sr[2], right);
    uint32_t nk = group_atoms(w, RL_G_K, left);
    bool taken = false;
    for (uint32_t j = 0; j < 2 && same && !taken; j++) { /* as A's tensor has them, or B's */
        uint32_t last[2] = {j ? nk : rows, j ? cols : nk};
        if (j) i = rl_lower_find(w->l, w->op->operand[right].cls, order_in(w, right), true);
        for (; i != RL_NONE && !taken; i = rl_lower_next(w->l, i)) {
            const rl_dims *x = w->l->phys.p[i].dims;
            if (x->ndim < 2 || x->count[x->ndim - 2] != last[0] || x->count[x->ndim - 1] != last[1]) continue;
            for (uint32_t k = 0; k < 3; k++) {
                d[k] = *x;
                d[k].ndim -= 2;
            }
            taken = true;
        }
    }
    for (uint32_t k = from; k < to && !taken; k++) {
        const rl_token *t = &w->op->token[w->c->token[k]];
        push(&d[left], t->natom[left]);
        push(&d[right], t->natom[right]);
        push(&d[Y_], t->natom[Y_]);
    }
    push(&d[left], rows);
    push(&d[left], nk);
    push(&d[right], nk);
    push(&d[right], cols);
    push(&d[Y_], rows);
    push(&d[Y_], cols);
    rl_value v[2];
    v[left] = want(w, left, &d[left]);
    v[right] = want(w, right, &d[right]);
    write_product(w, left, v, &d[Y_], NULL);
}

/* x has leading dims, and behind them one of size 1 for the parts of the matrix. */
static void in_parts(const writer *w, uint32_t x) {
    uint32_t matrix = A_ + B_ - x;
    const uint8_t *sx = w->f->seq[x], *sm = w->f->seq[matrix], *sy = w->f->seq[Y_];
    uint32_t tail[2] = {group_atoms(w, sx[1], x), group_atoms(w, sx[2], x)}, nlead = group_atoms(w, sx[0], x);
    rl_dims lead, d[4] = {{0}, {0}, {0}, {0}};
    leading_dims(w, x, tail, 2, nlead, &lead);
    lead.ndim = nlead ? lead.ndim - 2 : 0;
    d[x] = d[Y_] = lead;
    if (nlead) push(&d[x], 0);
    for (uint32_t i = 0; i < 2; i++) push(&d[x], tail[i]);
    for (uint32_t i = 0; i < 3; i++) push(&d[matrix], group_atoms(w, sm[i], matrix));
    for (uint32_t i = 1; i < 4; i++) push(&d[Y_], group_atoms(w, sy[i], Y_));
    for (uint32_t i = 1; i < 4 && w->op->noperand == 4; i++) push(&d[C_], group_atoms(w, sy[i], C_));
    rl_value v[2];
    v[x] = want(w, x, &d[x]);
    v[matrix] = want(w, matrix, &d[matrix]);
    write_product(w, x, v, &d[Y_], &d[C_]);
}

void rl_lower_matmul(rl_lower *l, rl_oplegal *op) {
    const rl_config *c = &op->config.p[op->chosen];
    writer w = {l, op, c, &op->form[c->form]};
    bool swapped = w.f->kind == RL_FORM_SWAPPED;
    for (uint32_t o = A_; o <= B_; o++) /* what is asked for must exist, or be made now */
        if (op->operand[o].pin) rl_lower_find(l, op->operand[o].cls, order_in(&w, o), true);
    if (l->failed) return;
    if (w.f->kind == RL_FORM_GEMM) gemm(&w);
    else if (w.f->kind == RL_FORM_FUSED) fused(&w);
    else if (w.f->kind == RL_FORM_PARTS) in_parts(&w, w.f->seq[A_][0] == RL_G_LEAD ? A_ : B_);
    else if (nseq(&w, A_) == 3 && nseq(&w, B_) == 3) batched(&w, swapped);
    else if (w.f->seq[A_][0] == RL_G_LEAD) with_matrix(&w, A_, B_, swapped);
    else with_matrix(&w, B_, A_, !swapped);
}
