/* Charges: see charge.h.  A charge depends on where the op's tokens lie in its first operand, so the model as it stands is
 * charged by the same rules as any other configuration. */
#include "charge.h"
#include <string.h>

enum {
    SHORT_RUN = 1024, /* bytes: what starting a copy takes is then a fifth of a Transpose of them */
    FEW = 16,         /* elements, or times that one comes: it is then half of one; columns that a product has at once */
    ROW = 32,         /* bytes: what moves two groups past rows of as many takes no longer than two conversions; of fewer, three times one */
    NEAR = 4,         /* times that an element comes: a Resize then takes no longer than a Transpose */
    WORD = 4,         /* bytes: rows of fewer take as long as one where each is moved by itself */
    ONES = 3,         /* pieces of one element: of four and more a Transpose is made by vectors, and they are not */
    VECTOR = 32,      /* columns that a product computes at a time */
    WIDE = 4,         /* elements: a pool computes as many at once */
    LARGE = 16384,    /* bytes: of a smaller result FIXED is too much of a Transpose, and no part of what the runs take */
};

/* The op's tokens as they lie in an operand, outermost first. Returns how many. */
static uint32_t lie(const rl_plan *p, const rl_oplegal *op, const rl_config *c, uint32_t operand, const rl_token **out) {
    uint8_t order[RL_MAXATOM + 1];
    const uint8_t *o = order;
    uint32_t n = 0, natom;
    if (c->form == RL_NONE) {
        const rl_member *m = &p->member[op->operand[operand].tensor.i];
        o = m->seq;
        natom = m->natom;
    } else natom = rl_config_order(op, c, operand, order);
    for (uint32_t i = 0; i < natom;) {
        uint32_t t = 0;
        while (t < op->ntoken && !(op->token[t].natom[operand] && op->token[t].atom[operand][0] == o[i])) t++;
        if (t == op->ntoken) return 0;
        out[n++] = &op->token[t];
        i += op->token[t].natom[operand];
    }
    return n;
}

static rl_role role_of(const rl_oplegal *op, const rl_token *t) { return op->label[t->label].role; }

static bool is_dequantized(const rl_plan *p, const rl_operand *x) {
    rl_node def = rl_val(p->g, x->tensor)->def;
    while (def.i != RL_NONE && p->moving[def.i]) def = rl_val(p->g, rl_nod(p->g, def)->in[0])->def;
    return def.i != RL_NONE && strcmp(rl_nod(p->g, def)->type, "DequantizeLinear") == 0; /* blocks of it, too, which no row of ops.def has */
}

bool rl_is_of_bytes(const rl_plan *p, const rl_oplegal *op) {
    const rl_operand *a = &op->operand[0], *b = &op->operand[1];
    return (a->pin || b->pin) && is_dequantized(p, a->pin ? b : a);
}

uint32_t rl_charged_class(const rl_plan *p, const rl_oplegal *op) {
    rl_class c = op->node.i == RL_NONE ? RL_OPAQUE : rl_op_class(rl_nod(p->g, op->node)->op);
    if ((c == RL_MATMUL || c == RL_GEMM) && rl_is_of_bytes(p, op)) return op->operand[2].cls; /* not a Gemm's bias: what is lost goes with the result */
    bool first = c == RL_CONCAT || c == RL_SPLIT || c == RL_TILE || c == RL_EXPAND;
    return op->operand[first ? 0 : c == RL_QDQ || c == RL_ELEMENTS ? 1 : op->noperand - 1].cls;
}

/* How many elements the token has in an operand; unknown sizes are guessed. */
static int64_t elements(const rl_plan *p, const rl_oplegal *op, const rl_token *t, uint32_t operand) {
    int64_t n = 1;
    for (uint32_t i = 0; i < t->natom[operand]; i++)
        n = rl_mul(n, rl_dim_guess(p->g->ctx, p->cls.p[op->operand[operand].cls].size[t->atom[operand][i]], RL_STATS_GUESS));
    return n;
}

/* How many elements the op copies at a time where the token of its axis, or of the equal pieces of a Concat, lies innermost; 0: it does not copy. */
static int64_t run_of(const rl_plan *p, const rl_oplegal *op, const rl_token *t) {
    if (role_of(op, t) == RL_T_PIECES) return 1;
    switch (rl_op_class(rl_nod(p->g, op->node)->op)) {
    case RL_TILE: return elements(p, op, t, 1); /* operands: the result, what is repeated */
    case RL_GATHER: return 1;
    case RL_CONCAT: case RL_SPLIT: return RL_MAX(1, elements(p, op, t, 0) / RL_MAX(op->noperand - 1, 1u)); /* on the average */
    default: return 0;
    }
}

static int64_t bytes_of(const rl_plan *p, const rl_cls *c, int64_t bits) {
    return rl_mul(rl_stats_count(p->g->ctx, c->size, c->natom), bits) / 8;
}

/* Is it a dim of the result that the op repeats elements along, but for dims of size 1? */
static bool is_repeated(const rl_oplegal *op, uint32_t label) {
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (op->token[t].label == label && op->token[t].natom[1]) return false;
    return true;
}

/* How often each element comes, one after the other, where the token lies innermost and is none of what is repeated; dims side by side lie so. */
static int64_t times_of(const rl_plan *p, const rl_oplegal *op, const rl_token *t) {
    uint32_t from = t->label, to = t->label;
    int64_t n = 1;
    while (from > 0 && is_repeated(op, from - 1)) from--;
    while (to + 1 < op->nlabel && is_repeated(op, to + 1)) to++;
    for (uint32_t k = 0; k < op->ntoken; k++)
        if (op->token[k].label >= from && op->token[k].label <= to) n = rl_mul(n, elements(p, op, &op->token[k], 0));
    return n;
}

/* Does one of its kind, that repeats few times, make what it reads, in any shape?  *viewed: in another. */
static bool repeats_again(const rl_plan *p, const rl_oplegal *op, bool *viewed) {
    rl_value v = op->operand[1].tensor;
    rl_node def = rl_val(p->g, v)->def;
    for (*viewed = false; def.i != RL_NONE && rl_op_class(rl_nod(p->g, def)->op) == RL_MOVING; *viewed = true)
        def = rl_val(p->g, v = rl_nod(p->g, def)->in[0])->def;
    rl_class c = def.i == RL_NONE ? RL_OPAQUE : rl_op_class(rl_nod(p->g, def)->op);
    if ((c != RL_EXPAND && c != RL_TILE) || p->member[v.i].cls == RL_NONE || p->member[rl_nod(p->g, def)->in[0].i].cls == RL_NONE) return false;
    const rl_cls *y = &p->cls.p[p->member[v.i].cls], *x = &p->cls.p[p->member[rl_nod(p->g, def)->in[0].i].cls];
    return bytes_of(p, y, 8) <= rl_mul(NEAR, bytes_of(p, x, 8));
}

/* It and another of its kind before it, or it alone, repeat along two dims of an image, and movement.c makes a Resize to the nearest of them
 * (movement_resize.c). times: along one of the dims. */
static bool becomes_resize(const rl_plan *p, const rl_oplegal *op, int64_t times) {
    const rl_valinfo *x = rl_val(p->g, op->operand[1].tensor);
    bool viewed, two = repeats_again(p, op, &viewed);
    int64_t all = 1;
    for (uint32_t k = 0; k < op->ntoken; k++)
        if (op->token[k].natom[1] == 0) all = rl_mul(all, elements(p, op, &op->token[k], 0));
    two |= all > times && all <= rl_mul(times, NEAR);
    return two && viewed && times <= NEAR && x->dtype == RL_F32 && rl_opset_of(p->g, rl_internz(p->g->ctx, "")) >= 11;
}

/* Of an Expand or Tile; operands: the result, what is repeated. */
static int64_t charge_repeats(const rl_plan *p, const rl_oplegal *op, const rl_token *t) {
    const int64_t *charge = p->target->charge;
    int64_t times = RL_MAX(1, times_of(p, op, t)), tenths = charge[RL_RUN_LAST];
    if (rl_op_class(rl_nod(p->g, op->node)->op) == RL_EXPAND) tenths = times < FEW ? charge[RL_EXPAND_LAST] / times : 0;
    return becomes_resize(p, op, times) ? RL_MIN(tenths, charge[RL_REPEAT_LAST]) : tenths;
}

/* Of a Concat or Split of few pieces: does each have one element there? */
static bool is_of_ones(const rl_plan *p, const rl_oplegal *op, const rl_token *t) {
    rl_class c = rl_op_class(rl_nod(p->g, op->node)->op);
    return (c == RL_CONCAT || c == RL_SPLIT) && op->noperand <= 1 + ONES && (role_of(op, t) == RL_T_PIECES || elements(p, op, t, 0) < op->noperand);
}

/* Is it one of few elements that a pool takes the window as one wide over? */
static bool is_narrow(const rl_plan *p, const rl_oplegal *op, const rl_token *t) {
    if (rl_op_class(rl_nod(p->g, op->node)->op) != RL_POOL || t->natom[0] == 0 || role_of(op, t) != RL_T_FREE) return false;
    rl_dim size = p->cls.p[op->operand[0].cls].size[t->atom[0][0]];
    return rl_dim_known(size) && size < WIDE;
}

/* Tenths that the op is charged where the token lies innermost in operand 0. */
static int64_t charge_last(const rl_plan *p, const rl_oplegal *op, const rl_token *t) {
    const int64_t *charge = p->target->charge;
    rl_op kind = rl_nod(p->g, op->node)->op;
    rl_class cls = rl_op_class(kind);
    bool repeats = (cls == RL_EXPAND || cls == RL_TILE) && t->natom[0] && t->natom[1] == 0;
    bool pieces = cls == RL_CONCAT && t->natom[0] && role_of(op, t) == RL_T_PIECES;
    bool narrow = is_narrow(p, op, t);
    if (!repeats && !pieces && !narrow && (t->natom[0] == 0 || role_of(op, t) != RL_T_AXIS)) return 0;
    int64_t run = run_of(p, op, t), bits = rl_dtype_bits(rl_val(p->g, op->operand[0].tensor)->dtype), tenths = 0;
    if (bytes_of(p, &p->cls.p[rl_charged_class(p, op)], bits) >= LARGE) {
        if (repeats) tenths = charge_repeats(p, op, t);
        else if (narrow) tenths = charge[RL_POOL_NARROW] / elements(p, op, t, 0);
        else if (cls == RL_QDQ || kind == RL_OP_CumSum || kind == RL_OP_CumProd) tenths = charge[RL_ALONG_LAST];
        else if (run && run < FEW) tenths = charge[charge[RL_RUN_ONE] && is_of_ones(p, op, t) ? RL_RUN_ONE : RL_RUN_LAST] / run;
    }
    if (!pieces && (cls == RL_CONCAT || cls == RL_SPLIT) && rl_mul(run, bits / 8) < SHORT_RUN) tenths = RL_MAX(tenths, charge[RL_CONCAT_LAST]);
    return tenths;
}

/* Without atoms in K nothing is transposed: a vector lies the same either way. */
static bool has_depth(const rl_oplegal *op) {
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (op->label[op->token[t].label].group == RL_G_K) return true;
    return false;
}

static bool holds(const uint8_t *seq, uint8_t group) {
    for (uint32_t i = 0; i < RL_MAXGROUP && seq[i] != RL_END; i++)
        if (seq[i] == group) return true;
    return false;
}

rl_fused rl_fused_as(const rl_form *f) {
    rl_fused x = {.left = holds(f->seq[0], f->seq[2][1]) ? 0 : 1};
    const uint8_t *l = f->seq[x.left], *r = f->seq[1 - x.left];
    x.batch_left = l[1] == RL_G_LEAD;
    x.batch_right = r[1] == RL_G_LEAD;
    x.trans_left = l[l[0] == RL_G_LEAD ? 1 : 0] == RL_G_K;
    x.trans_right = r[r[0] == RL_G_LEAD ? 1 : 0] != RL_G_K;
    x.nflag = (uint32_t)x.batch_left + x.batch_right + x.trans_left + x.trans_right;
    return x;
}

/* Of a product with the weight on the left: how many columns it has at a time; 0: none of its own, or not known. *one: they are of one atom. */
static int64_t columns(const rl_plan *p, const rl_oplegal *op, const rl_form *f, bool *one) {
    const uint8_t *seq = f->seq[2];
    uint32_t last = 0;
    int64_t n = 0;
    *one = true;
    while (last + 1 < RL_MAXGROUP && seq[last + 1] != RL_END) last++;
    for (uint32_t t = 0; t < op->ntoken; t++)
        for (uint32_t i = 0; f->group[t] == seq[last] && i < op->token[t].natom[2]; i++) {
            rl_dim size = p->cls.p[op->operand[2].cls].size[op->token[t].atom[2][i]];
            if (!rl_dim_known(size)) return 0;
            *one = n == 0;
            n = rl_mul(RL_MAX(n, 1), size);
        }
    return n;
}

/* Few columns are seen where the conversions, small ones, take FIXED in any case. */
static int64_t charge_left(const rl_plan *p, const rl_oplegal *op, const rl_form *f) {
    const int64_t *charge = p->target->charge;
    bool one;
    int64_t n = columns(p, op, f, &one), bits = rl_dtype_bits(rl_val(p->g, op->operand[2].tensor)->dtype);
    bool narrow = n && n < FEW && bytes_of(p, &p->cls.p[op->operand[2].cls], bits) < LARGE;
    bool even = n && one && n % VECTOR == 0 && charge[RL_LEFT_EVEN];
    return RL_MAX(charge[even ? RL_LEFT_EVEN : RL_WEIGHT_LEFT], narrow ? charge[RL_LEFT_NARROW] / n : 0);
}

/* The right operand, read transposed, is put in order anew each time: tenths of its own conversion, as tenths of the result's. */
static int64_t charge_right(const rl_plan *p, const rl_oplegal *op, const rl_form *f, uint32_t right) {
    if (f->seq[right][0] == RL_G_K || rl_nod(p->g, op->node)->op != RL_OP_MatMul) return 0;
    int64_t all = rl_mul(p->target->charge[RL_GEMM_TRANS_B], bytes_of(p, &p->cls.p[op->operand[right].cls], 8));
    return all / RL_MAX(1, bytes_of(p, &p->cls.p[op->operand[2].cls], 8));
}

static int64_t form_of_product(const rl_plan *p, const rl_oplegal *op, const rl_config *c) {
    const int64_t *charge = p->target->charge;
    bool two = op->operand[0].pin && op->operand[1].pin;
    if (!has_depth(op)) return 0;
    if (c->form == RL_NONE) {
        const rl_nodeinfo *n = rl_nod(p->g, op->node);
        rl_turned a = rl_op_turned(n, 0), b = rl_op_turned(n, 1);
        if (n->op == RL_OP_ms_FusedMatMul) return charge[RL_FUSED_FLAG] * (a.swapped + a.batch + b.swapped + b.batch);
        if (n->op != RL_OP_Gemm) return 0;
        if (op->operand[0].pin) return a.swapped ? charge[RL_GEMM_TRANS_A] : 0;
        return (b.swapped ? 0 : charge[RL_GEMM_TRANS_A]) + charge[RL_GEMM_TRANS_OUT]; /* the data stands on the right */
    }
    const rl_form *f = &op->form[c->form];
    if (f->untaken) f = f->untaken;
    if (f->kind == RL_FORM_FUSED) return charge[RL_FUSED_FLAG] * rl_fused_as(f).nflag;
    if (f->kind == RL_FORM_GEMM) {
        if (two) { /* either may stand first */
            uint32_t x = holds(f->seq[0], f->seq[2][0]) ? 0 : 1;
            return (f->seq[x][0] == RL_G_K ? charge[RL_GEMM_TRANS_A] : 0) + charge_right(p, op, f, 1 - x);
        }
        uint32_t x = op->operand[0].pin ? 0 : 1; /* the data; its rows come first in the result, or last */
        return (f->seq[x][0] == RL_G_K ? charge[RL_GEMM_TRANS_A] : 0) + (holds(f->seq[x], f->seq[2][0]) ? 0 : charge[RL_GEMM_TRANS_OUT]);
    }
    if (f->kind != RL_FORM_SWAPPED) return 0;
    return two ? charge[RL_SWAPPED_PRODUCT] : charge_left(p, op, f);
}

static int64_t product(const rl_plan *p, const rl_oplegal *op, const rl_config *c) {
    int64_t tenths = form_of_product(p, op, c);
    bool two = op->operand[0].pin && op->operand[1].pin;
    if (rl_op_scaled(rl_nod(p->g, op->node)->op)) return tenths && !two ? tenths + p->target->charge[RL_OF_BYTES] : tenths;
    if (!rl_is_of_bytes(p, op) || !has_depth(op)) return tenths;
    bool other = tenths > 0;
    if (two) { /* a MatMul; swapped, where both are */
        const rl_form *f = c->form == RL_NONE ? NULL : op->form[c->form].untaken ? op->form[c->form].untaken : &op->form[c->form];
        other = f && rl_nod(p->g, op->node)->op == RL_OP_MatMul && f->kind != RL_FORM_MATMUL &&
                (f->kind != RL_FORM_SWAPPED || !is_dequantized(p, &op->operand[0]));
    }
    return other ? tenths + p->target->charge[RL_OF_BYTES] : tenths;
}

/* With a dim of size 1 among those that it turns a runtime no longer sees one group of them move. Written anew there is none (lower_einsum.c). */
static bool turns_ones(const rl_plan *p, const rl_oplegal *op) {
    const rl_valinfo *x = rl_val(p->g, op->operand[0].tensor);
    bool any = false;
    for (uint32_t d = 0; d < x->rank; d++) any |= x->dim[d] == 1;
    return any && bytes_of(p, &p->cls.p[op->operand[0].cls], rl_dtype_bits(x->dtype)) >= LARGE;
}

/* Of two operands each is multiplied with its groups in sequence; of others nothing is known but how the model has them. */
static int64_t einsum(const rl_plan *p, const rl_oplegal *op, const rl_config *c) {
    const rl_token *t[RL_MAXATOM];
    bool turned = c->form != RL_NONE && op->form[c->form].kind == RL_FORM_TURNED;
    uint32_t n = c->form == RL_NONE && rl_nod(p->g, op->node)->nin == 2 ? lie(p, op, c, 0, t) : 0;
    for (uint32_t i = 1; i < n; i++) turned |= op->label[t[i]->label].group < op->label[t[i - 1]->label].group;
    int64_t tenths = turned ? p->target->charge[RL_EINSUM_TURNED] : 0;
    return c->form == RL_NONE && tenths && turns_ones(p, op) ? tenths * p->target->move[RL_MOVE_OTHER] / 10 : tenths;
}

static bool is_product(const rl_oplegal *op, rl_op kind) {
    rl_class cls = rl_legal_class(op, kind);
    return cls == RL_MATMUL || cls == RL_GEMM || kind == RL_OP_ms_FusedMatMul;
}

/* Marked: what the op would copy in short runs, or work along. Of several tokens that it may be charged for, the least. */
static void charge_by_last(const rl_plan *p, const rl_oplegal *op, rl_charges *x) {
    for (uint32_t t = 0; t < op->ntoken; t++) {
        int64_t tenths = charge_last(p, op, &op->token[t]);
        x->marked[t] = tenths > 0;
        if (tenths) x->tenths = x->tenths ? RL_MIN(x->tenths, tenths) : tenths;
    }
}

static void charge_after(const rl_oplegal *op, int64_t tenths, rl_role role, rl_charges *x) {
    x->rule = RL_CERT_AFTER;
    x->tenths = tenths;
    for (uint32_t t = 0; t < op->ntoken; t++) x->marked[t] = op->token[t].natom[0] && role_of(op, &op->token[t]) == role;
}

static int64_t charge_form(const rl_plan *p, const rl_oplegal *op, uint32_t form) {
    const rl_config c = {form, NULL, 0};
    return op->part ? einsum(p, op, &c) : product(p, op, &c);
}

static void charge_forms(const rl_plan *p, const rl_oplegal *op, rl_charges *x) {
    x->rule = RL_CERT_FORMS;
    x->tenths = charge_form(p, op, RL_NONE);
    x->nform = op->nform;
    x->form = rl_new(p->mem, int64_t, op->nform + 1);
    for (uint32_t f = 0; f < op->nform; f++) x->form[f] = charge_form(p, op, f);
}

/* How many dims a pool moves over. */
static uint32_t windows(const rl_oplegal *op) {
    uint32_t n = 0;
    for (uint32_t t = 0; t < op->ntoken; t++) n += role_of(op, &op->token[t]) == RL_T_AXIS;
    return n;
}

static void charge_op(const rl_plan *p, const rl_oplegal *op, rl_charges *x) {
    const int64_t *charge = p->target->charge;
    rl_op kind = rl_nod(p->g, op->node)->op;
    rl_class cls = rl_op_class(kind);
    bool pinned = op->operand[0].pin;
    *x = (rl_charges){.rule = RL_CERT_LAST, .marked = rl_new(p->mem, bool, op->ntoken)};
    if (op->part || (is_product(op, kind) && (pinned || op->operand[1].pin))) charge_forms(p, op, x);
    else if (!pinned) return; /* what is computed from constants alone reads them as it likes */
    else if (cls == RL_REDUCE) charge_after(op, charge[RL_REDUCE_OFF_LAST], RL_T_REDUCED, x);
    else if (kind == RL_OP_Softmax || kind == RL_OP_LogSoftmax || kind == RL_OP_Hardmax || kind == RL_OP_ms_QLinearSoftmax)
        charge_after(op, charge[RL_SOFTMAX_OFF_LAST], RL_T_AXIS, x);
    else if (kind == RL_OP_GatherElements) charge_after(op, charge[RL_ELEMENTS_OFF_LAST], RL_T_AXIS, x);
    else if (cls == RL_POOL && windows(op) > 1) charge_after(op, charge[RL_POOL_OFF_LAST], RL_T_AXIS, x);
    else if (cls == RL_RESIZE) charge_after(op, charge[RL_RESIZE_OFF_LAST], RL_T_AXIS, x);
    else charge_by_last(p, op, x);
}

void rl_charge_all(rl_plan *p) {
    rl_charges x;
    for (uint32_t k = 0; k < p->op.n; k++) {
        rl_oplegal *op = &p->op.p[k];
        if (op->fixed || op->ntoken < 2 || op->node.i == RL_NONE) continue;
        charge_op(p, op, &x);
        int64_t most = x.tenths;
        for (uint32_t f = 0; f < x.nform; f++) most = RL_MAX(most, x.form[f]);
        if (most) op->charges = rl_copy(p->mem, &x, sizeof x);
    }
}

int64_t rl_config_charge(const rl_plan *p, const rl_oplegal *op, const rl_config *c) {
    const rl_charges *x = op->charges;
    if (!x) return 0;
    if (x->rule == RL_CERT_FORMS) {
        if (c->form == RL_NONE) return x->tenths;
        const rl_form *f = op->form[c->form].untaken;
        return x->form[f ? (uint32_t)(f - op->form) : c->form];
    }
    const rl_token *t[RL_MAXATOM];
    uint32_t n = lie(p, op, c, 0, t);
    if (x->rule == RL_CERT_LAST) /* atoms that are gone may lie behind any other */
        return n && !p->cls.p[op->operand[0].cls].cut && x->marked[t[n - 1] - op->token] ? x->tenths : 0;
    bool seen = false, after = false;
    for (uint32_t i = 0; i < n; i++) {
        bool marked = x->marked[t[i] - op->token];
        after |= seen && !marked;
        seen |= marked;
    }
    return after ? x->tenths : 0;
}

int64_t rl_move_time(const rl_plan *p, uint32_t cls) { return RL_MAX(1, rl_target_move(p->target, p->cls.p[cls].bytes, 10)); }

int64_t rl_charge_unit(const rl_plan *p, const rl_oplegal *op) {
    return op->noperand ? rl_move_time(p, rl_charged_class(p, op)) / 10 : 0;
}

int64_t rl_charge_time(const rl_plan *p, const rl_oplegal *op, uint32_t i) { return op->config.p[i].charge * rl_charge_unit(p, op); }

/* Whether taking one run of atoms out leaves the others in place. */
static bool one_group_moves(const uint8_t *place, uint32_t n) {
    for (uint32_t skip = 0; skip < n; skip++) {
        uint32_t last = 0;
        bool ascending = true;
        for (uint32_t i = 0; i < n; i++) {
            if (i == skip) continue;
            ascending &= place[i] >= last;
            last = place[i];
        }
        if (ascending) return true;
    }
    return false;
}

static bool last_two_swap(const uint8_t *place, uint32_t n) {
    for (uint32_t i = 1; i + 2 < n; i++)
        if (place[i] < place[i - 1]) return false;
    return n >= 2 && place[n - 1] < place[n - 2] && (n == 2 || (place[n - 1] > place[n - 3] && place[n - 2] > place[n - 3]));
}

/* Bytes that stay side by side: of the innermost atoms that both orders have in the same places. */
static int64_t row_bytes(const rl_plan *p, const rl_cls *c, const uint8_t *from, const uint8_t *to) {
    int64_t n = 1;
    for (uint32_t i = c->natom; i-- > 0 && from[i] == to[i];) n = rl_mul(n, rl_dim_guess(p->g->ctx, c->size[from[i]], RL_STATS_GUESS));
    return rl_mul(n, (int64_t)rl_dtype_bits(rl_val(p->g, c->first)->dtype)) / 8;
}

int64_t rl_move_cost(const rl_plan *p, const rl_cls *c, const uint8_t *from, const uint8_t *to, bool only_matmul, bool from_conv) {
    uint8_t at[RL_MAXATOM], run[RL_MAXATOM];
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->natom; i++) at[to[i]] = (uint8_t)i;
    for (uint32_t i = 0; i < c->natom; i++) /* one entry per run that moves together */
        if (i == 0 || at[from[i]] != at[from[i - 1]] + 1) run[n++] = at[from[i]];
    const int64_t *move = p->target->move;
    int64_t row = row_bytes(p, c, from, to);
    bool ordinary = one_group_moves(run, n) || row >= ROW;
    int64_t tenths = ordinary ? 10 : move[RL_MOVE_OTHER], bytes = c->bytes;
    if (!ordinary && row > 0 && row < WORD) bytes = rl_mul(bytes, WORD / row);
    bool taken = only_matmul && last_two_swap(run, n);
    if (taken) tenths = move[RL_MOVE_INTO_MATMUL];
    if (from_conv) tenths = RL_MIN(tenths, move[RL_MOVE_FROM_CONV]);
    return n <= 1 || tenths == 0 ? 0 : rl_target_move(p->target, bytes, tenths);
}
