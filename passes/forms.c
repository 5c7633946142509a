/* What an op permutes, and how: tokens, groups and forms of each op, once its labels are refined (docs/ops.md, docs/proof.md).
 *
 * A label gives tokens, one per atom where it is free, one in all where the op works along it.  A form puts the tokens into groups
 * and says in which sequence the groups lie in each operand; the op may take every permutation inside the groups.
 *   Softmax axis=1 on x[N,C,H,W]   tokens N C H W in one group: 24 configurations
 *   MatMul A[b,M,K] B[b,K,N]       groups b M K N: (b M K)(b K N)(b M N), and the transposed product (b K M)(b N K)(b N M)
 *
 * Needs: labels (legal.c) and members (atoms.c).  Keeps: the graph. */
#include "charge.h"
#include <string.h>

/* ---- tokens ---- */

static void put_token(rl_plan *p, rl_oplegal *op, uint32_t label, uint32_t *n) {
    rl_token *t = &op->token[(*n)++];
    t->label = label;
    t->atom = rl_new(p->mem, uint8_t *, op->noperand);
    t->natom = rl_new(p->mem, uint8_t, op->noperand);
}

/* The atoms that a label has in an operand, as a run of the operand's seq. */
static void label_run(rl_plan *p, const rl_oplegal *op, const rl_label *l, uint32_t o, uint32_t *start, uint32_t *n) {
    const rl_member *m = &p->member[op->operand[o].tensor.i];
    uint32_t leaf[RL_MAXATOM];
    *n = 0;
    *start = 0;
    rl_class cls = rl_op_class(rl_nod(p->g, op->node)->op);
    bool block = (cls == RL_MOVING || cls == RL_GATHER) && l->role == RL_T_AXIS && l->after[o] != RL_NONE; /* of several dims */
    if (l->dim[o] < 0) return;
    *start = m->dimstart[l->dim[o]];
    if (block) {
        *n = m->dimstart[l->after[o]] - *start;
        return;
    }
    if (l->unit[o] == RL_NONE) return;
    if (l->tail != RL_NONE) {
        uint32_t end = m->dimstart[l->dim[o] + 1], ntail = rl_unit_leaves(p, l->tail, leaf, RL_MAXATOM);
        if (l->role == RL_T_FREE) *start = end - ntail;
        *n = l->role == RL_T_FREE ? ntail : end - ntail - *start;
        return;
    }
    if (l->after[o] != RL_NONE) *start += rl_unit_leaves(p, l->after[o], leaf, RL_MAXATOM);
    *n = rl_unit_leaves(p, l->unit[o], leaf, RL_MAXATOM);
}

static void label_tokens(rl_plan *p, rl_oplegal *op, uint32_t label, uint32_t *ntoken) {
    const rl_label *l = &op->label[label];
    bool block = l->role == RL_T_AXIS || l->role == RL_T_PIECES;
    uint32_t first = *ntoken, count = 0, start, n;
    for (uint32_t o = 0; o < op->noperand; o++) {
        label_run(p, op, l, o, &start, &n);
        count = RL_MAX(count, block ? n > 0 : n);
    }
    for (uint32_t i = 0; i < count; i++) put_token(p, op, label, ntoken);
    for (uint32_t o = 0; o < op->noperand && count; o++) {
        label_run(p, op, l, o, &start, &n);
        uint8_t *seq = p->member[op->operand[o].tensor.i].seq;
        for (uint32_t i = 0; i < (block ? 1 : n); i++) {
            op->token[first + i].atom[o] = seq + start + i;
            op->token[first + i].natom[o] = (uint8_t)(block ? n : 1);
        }
    }
}

/* ---- forms ---- */

static rl_form *add_form(rl_plan *p, rl_oplegal *op, rl_formkind kind, int64_t cost) {
    rl_form *f = &op->form[op->nform++];
    *f = (rl_form){.kind = kind, .cost = cost};
    f->group = rl_new(p->mem, uint8_t, op->ntoken + 1);
    f->member = rl_new(p->mem, uint8_t, op->ntoken + 1);
    f->seq = rl_alloc_array(p->mem, op->noperand, sizeof *f->seq);
    for (uint32_t t = 0; t < op->ntoken; t++) f->group[t] = (uint8_t)op->label[op->token[t].label].group;
    return f;
}

static void set_seq(rl_form *f, uint32_t operand, int a, int b, int c) {
    uint8_t *s = f->seq[operand];
    uint32_t n = 0;
    if (a >= 0) s[n++] = (uint8_t)a;
    if (b >= 0) s[n++] = (uint8_t)b;
    if (c >= 0) s[n++] = (uint8_t)c;
    s[n] = RL_END;
}

/* Sorts the tokens by group. */
static void close_form(const rl_oplegal *op, rl_form *f) {
    uint32_t n = 0;
    for (uint32_t g = 0; g < RL_MAXGROUP; g++) {
        f->start[g] = n;
        for (uint32_t t = 0; t < op->ntoken; t++)
            if (f->group[t] == g) f->member[n++] = (uint8_t)t;
    }
    f->start[RL_MAXGROUP] = n;
}

/* The groups in sequence, in all operands. */
static void all_groups(const rl_oplegal *op, rl_form *f) {
    for (uint32_t o = 0; o < op->noperand; o++)
        for (uint8_t g = 0; g < RL_MAXGROUP; g++) f->seq[o][g] = g;
}

void rl_plain_form(rl_plan *p, rl_oplegal *op) {
    op->form = rl_new(p->mem, rl_form, 1);
    rl_form *f = add_form(p, op, RL_FORM_PLAIN, 0);
    all_groups(op, f);
    close_form(op, f);
}

/* Gather of a constant table, operands data, result, index: (axis, row)(index, row) or (row, axis)(row, index). */
static void table_forms(rl_plan *p, rl_oplegal *op) {
    op->form = rl_new(p->mem, rl_form, 2);
    for (int first = 0; first < 2; first++) {
        rl_form *f = add_form(p, op, RL_FORM_PLAIN, 0);
        set_seq(f, 0, first ? 1 : 2, first ? 2 : 1, -1);
        set_seq(f, 1, first ? 1 : 0, first ? 0 : 1, -1);
        set_seq(f, 2, 0, -1, -1);
        close_form(op, f);
    }
}

/* An operand of an Einsum: as its runtime multiplies it, where that is known, and any other way. One by itself is summed along any dims. */
static void einsum_forms(rl_plan *p, rl_oplegal *op) {
    uint32_t nin = rl_nod(p->g, op->node)->nin;
    bool turned = nin > 1 || op->operand[0].out;
    op->form = rl_new(p->mem, rl_form, 2);
    if (nin == 2) {
        rl_form *f = add_form(p, op, RL_FORM_PLAIN, 0);
        set_seq(f, 0, 0, 1, 2);
        close_form(op, f);
    }
    rl_form *f = add_form(p, op, turned ? RL_FORM_TURNED : RL_FORM_PLAIN, turned);
    memset(f->group, 0, op->ntoken);
    set_seq(f, 0, 0, -1, -1);
    close_form(op, f);
}

static bool group_in(const rl_oplegal *op, uint32_t group, uint32_t operand) {
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (op->label[op->token[t].label].group == group && op->token[t].natom[operand]) return true;
    return false;
}

/* Operand 0 is A, 1 is B, 2 is the output. */
enum { A_, B_, Y_ };

static rl_dtype type_of(const rl_plan *p, const rl_oplegal *op) { return rl_val(p->g, op->operand[A_].tensor)->dtype; }

static bool float_type(const rl_plan *p, const rl_oplegal *op) {
    rl_dtype t = type_of(p, op);
    return t == RL_F32 || t == RL_F64 || t == RL_F16 || t == RL_BF16;
}

/* A dim that holds symbolic sizes can be taken apart by a Reshape if all but one of them can be looked up. */
static bool one_dim_will_do(const rl_plan *p, const rl_oplegal *op, const rl_form *f, uint32_t group, uint32_t operand) {
    uint32_t nsym = 0;
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (f->group[t] == group && op->token[t].natom[operand]) {
            rl_dim s = p->cls.p[op->operand[operand].cls].size[op->token[t].atom[operand][0]];
            nsym += !rl_dim_known(s) && !rl_is_input_size(p->g, s);
        }
    return nsym < 2;
}

/* Gemm: x holds the group LEAD and K, the other operand K and `free`; all four ways to lie, and both of a variable other. */
static void gemm_forms(rl_plan *p, rl_oplegal *op, uint32_t x, uint32_t other, uint32_t nfree, bool merge, int64_t cost) {
    for (uint32_t way = 0; way < 8; way++) {
        if (!op->operand[other].pin && (way & 4)) continue;
        rl_form *f = add_form(p, op, RL_FORM_GEMM, cost);
        if (merge) /* everything but K and `free` leads */
            for (uint32_t t = 0; t < op->ntoken; t++)
                if (f->group[t] != RL_G_K && f->group[t] != nfree) f->group[t] = RL_G_LEAD;
        if (way & 1) set_seq(f, x, RL_G_K, RL_G_LEAD, -1);
        else set_seq(f, x, RL_G_LEAD, RL_G_K, -1);
        if (way & 2) set_seq(f, Y_, (int)nfree, RL_G_LEAD, -1);
        else set_seq(f, Y_, RL_G_LEAD, (int)nfree, -1);
        bool weight_first = (x == A_) ? (way & 4) != 0 : (way & 4) == 0;
        if (weight_first) set_seq(f, other, (int)nfree, RL_G_K, -1);
        else set_seq(f, other, RL_G_K, (int)nfree, -1);
        if (op->noperand == 4) memcpy(f->seq[3], f->seq[Y_], RL_MAXGROUP);
        close_form(op, f);
        if (merge && !one_dim_will_do(p, op, f, RL_G_LEAD, Y_)) op->nform--;
    }
}

/* The ways to put the tokens other than K and `free` before or behind K: behind it any of the first MAXLEAD, or, where there are more, any
 * whole dims of the operand (the first MAXLEAD of them). */
enum { MAXLEAD = 6 };
typedef struct { uint8_t token[RL_END], dim[RL_END]; uint32_t n, ndim; } lead_tokens; /* dim: of each token, its number among the op's */

static lead_tokens lead_of(const rl_oplegal *op, uint32_t nfree) {
    lead_tokens l;
    l.n = l.ndim = 0;
    for (uint32_t t = 0, last = RL_NONE; t < op->ntoken; t++) {
        uint32_t g = op->label[op->token[t].label].group;
        if (g == RL_G_K || g == nfree) continue;
        l.ndim += op->token[t].label != last;
        last = op->token[t].label;
        l.dim[l.n] = (uint8_t)(l.ndim - 1);
        l.token[l.n++] = (uint8_t)t;
    }
    return l;
}

static uint32_t first_splits(const lead_tokens *l) { return 1u << RL_MIN(l->n, (uint32_t)MAXLEAD); }
static uint32_t nsplit(const lead_tokens *l) { return first_splits(l) + (l->n > MAXLEAD ? 1u << RL_MIN(l->ndim, (uint32_t)MAXLEAD) : 0); }

/* Does the split put the i-th behind K? */
static bool trails(const lead_tokens *l, uint32_t split, uint32_t i) {
    if (split < first_splits(l)) return i < MAXLEAD && (split >> i & 1);
    return l->dim[i] < MAXLEAD && ((split - first_splits(l)) >> l->dim[i] & 1);
}

/* Is a split of whole dims one of the first tokens, too? */
static bool is_double(const lead_tokens *l, uint32_t split) {
    bool beyond = false;
    for (uint32_t i = MAXLEAD; i < l->n; i++) beyond |= trails(l, split, i);
    return split >= first_splits(l) && !beyond;
}

static void split_lead(const rl_oplegal *op, rl_form *f, uint32_t nfree, const lead_tokens *l, uint32_t split) {
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (f->group[t] != RL_G_K && f->group[t] != nfree) f->group[t] = RL_G_LEAD;
    for (uint32_t i = 0; i < l->n; i++)
        if (trails(l, split, i)) f->group[l->token[i]] = RL_G_TRAIL;
}

/* The 2-D operand `w` on the left: x (P K Q) -> (P free Q); for every split of x's other tokens into P and Q where w is a
 * constant, else with x's own matrix dim as Q (the transposed product). */
static void left_forms(rl_plan *p, rl_oplegal *op, uint32_t x, uint32_t w, uint32_t nfree, int64_t cost) {
    const lead_tokens l = lead_of(op, nfree);
    for (uint32_t set = 0; set < nsplit(&l); set++) {
        bool own = true;
        if (is_double(&l, set)) continue;
        for (uint32_t i = 0; i < l.n; i++) own &= trails(&l, set, i) == (op->label[op->token[l.token[i]].label].group != RL_G_LEAD);
        if (op->operand[w].pin && !own) continue;
        if (set == 0 && w == B_ && !op->operand[w].pin) continue; /* Q empty, and a constant lies as one likes: the plain product */
        rl_form *f = add_form(p, op, w == A_ ? RL_FORM_MATMUL : RL_FORM_SWAPPED, cost);
        split_lead(op, f, nfree, &l, set);
        set_seq(f, x, RL_G_LEAD, RL_G_K, RL_G_TRAIL);
        set_seq(f, w, (int)nfree, RL_G_K, -1);
        set_seq(f, Y_, RL_G_LEAD, (int)nfree, RL_G_TRAIL);
        if (op->noperand == 4) memcpy(f->seq[3], f->seq[Y_], RL_MAXGROUP);
        close_form(op, f);
    }
}

/* A Gemm of constant weights that is MatMul, and Add where it has a bias; of bytes it stays one. */
static bool is_linear(const rl_plan *p, const rl_oplegal *op) {
    const rl_nodeinfo *n = rl_nod(p->g, op->node);
    if (!float_type(p, op) || !op->operand[A_].pin || op->operand[B_].pin) return false;
    if (rl_attr_float(n, "alpha", 1) != 1 || rl_is_of_bytes(p, op)) return false;
    return op->noperand < 4 || (rl_attr_float(n, "beta", 1) == 1 && !op->operand[3].pin && !group_in(op, RL_G_LEAD, 3));
}

/* A product x (P Q K) with a constant matrix w (K H free) as products with each of its parts (H K free): (P H Q free). row, head: bits of the tokens l of
 * x that are Q, and of those that w makes that are H. */
static void parted_form(rl_plan *p, rl_oplegal *op, uint32_t x, uint8_t nfree, const lead_tokens *l, uint32_t row, uint32_t head) {
    uint8_t rows = x == A_ ? RL_G_M : RL_G_N;
    rl_form *f = add_form(p, op, RL_FORM_PARTS, 8);
    for (uint32_t t = 0, k = 0; t < op->ntoken; t++)
        if (f->group[t] == nfree && head >> k++ & 1) f->group[t] = RL_G_TRAIL;
    for (uint32_t k = 0; k < l->n; k++) f->group[l->token[k]] = row >> k & 1 ? rows : RL_G_LEAD;
    set_seq(f, x, RL_G_LEAD, rows, RL_G_K);
    set_seq(f, A_ + B_ - x, RL_G_TRAIL, RL_G_K, nfree);
    memcpy(f->seq[Y_], (uint8_t[]){RL_G_LEAD, RL_G_TRAIL, rows, nfree, RL_END}, 5);
    if (op->noperand == 4) memcpy(f->seq[3], f->seq[Y_], RL_MAXGROUP);
    close_form(op, f);
    if (!one_dim_will_do(p, op, f, rows, Y_)) op->nform--;
}

/* Where x has few tokens, any of them are rows and any of w's first a part; where it has more, up to MAXLEAD, x's own matrix dim, and all of w's but the last. */
enum { MAXPART = 3 };

static void parted_forms(rl_plan *p, rl_oplegal *op, uint32_t x, uint8_t nfree) {
    const lead_tokens l = lead_of(op, nfree);
    uint32_t nmade = 0, own = 0;
    for (uint32_t t = 0; t < op->ntoken; t++) nmade += op->label[op->token[t].label].group == nfree;
    for (uint32_t k = 0; k < l.n; k++) own |= (uint32_t)(op->label[op->token[l.token[k]].label].group != RL_G_LEAD) << k;
    if (nmade < 2) return;
    if (l.n > MAXPART && l.n <= MAXLEAD && own) parted_form(p, op, x, nfree, &l, own, (1u << (nmade - 1)) - 1);
    for (uint32_t row = 1; l.n <= MAXPART && row < 1u << l.n; row++)
        for (uint32_t head = 1; head < 1u << RL_MIN(nmade, (uint32_t)MAXPART) && head + 1 != 1u << nmade; head++) parted_form(p, op, x, nfree, &l, row, head);
}

/* Not of bytes, which a runtime then multiplies as floats. */
static bool may_part(const rl_plan *p, const rl_oplegal *op) {
    return rl_types_have(p->target->extra[RL_EXTRA_PARTED_MATMUL], type_of(p, op)) && op->operand[A_].pin != op->operand[B_].pin && !rl_is_of_bytes(p, op);
}

/* ---- FusedMatMul: each operand and the output swapped or not, the output by exchanging the operands ---- */

/* Operand o of a product of batches, (b rows K) in the way `lie`: bit 0 swaps the matrix, bit 1 puts its first dim before b. */
static void lie_in(rl_form *f, uint32_t o, int rows, uint32_t lie) {
    int first = lie & 1 ? RL_G_K : rows, second = lie & 1 ? rows : RL_G_K;
    if (lie & 2) set_seq(f, o, first, RL_G_LEAD, second);
    else set_seq(f, o, RL_G_LEAD, first, second);
}

static uint32_t bits_in(uint32_t x) { return (x & 1) + (x >> 1 & 1); }

/* Both operands have batch atoms. transBatchA and transBatchB are for operands that have the same. */
static void fused_batched(rl_plan *p, rl_oplegal *op, bool batch_flags) {
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (op->label[op->token[t].label].group == RL_G_LEAD) batch_flags &= op->token[t].natom[A_] && op->token[t].natom[B_];
    uint32_t lies = batch_flags ? 4 : 2;
    for (uint32_t way = 0; way < lies * lies * 2; way++) {
        uint32_t a = way % lies, b = way / lies % lies, swapped = way / lies / lies;
        rl_form *f = add_form(p, op, RL_FORM_FUSED, 1 + bits_in(a) + bits_in(b));
        lie_in(f, A_, RL_G_M, a);
        lie_in(f, B_, RL_G_N, b);
        set_seq(f, Y_, RL_G_LEAD, swapped ? RL_G_N : RL_G_M, swapped ? RL_G_M : RL_G_N);
        close_form(op, f);
    }
}

/* w is a plain matrix: x is (P Q K) or (P K Q) for any split of its other tokens, the output (P Q free) or (P free Q). */
static void fused_matrix(rl_plan *p, rl_oplegal *op, uint32_t x, uint32_t w, uint32_t nfree) {
    const lead_tokens l = lead_of(op, nfree);
    uint32_t nway = op->operand[w].pin ? 8 : 4;
    for (uint32_t i = 0; i < nway * nsplit(&l); i++) {
        uint32_t way = i % nway, set = i / nway;
        if (is_double(&l, set)) continue;
        if (set == 0 && way % 4) continue; /* Q is empty: nothing is swapped */
        rl_form *f = add_form(p, op, RL_FORM_FUSED, 4 + bits_in(way));
        split_lead(op, f, nfree, &l, set);
        set_seq(f, x, RL_G_LEAD, way & 1 ? RL_G_K : RL_G_TRAIL, way & 1 ? RL_G_TRAIL : RL_G_K);
        set_seq(f, Y_, RL_G_LEAD, way & 2 ? (int)nfree : RL_G_TRAIL, way & 2 ? RL_G_TRAIL : (int)nfree);
        bool w_first = (way & 4) != 0;
        set_seq(f, w, w_first ? (int)nfree : RL_G_K, w_first ? RL_G_K : (int)nfree, -1);
        close_form(op, f);
        if (!one_dim_will_do(p, op, f, RL_G_TRAIL, Y_)) op->nform--;
    }
}

static bool may_fuse(const rl_plan *p, const rl_oplegal *op) {
    return rl_types_have(p->target->extra[RL_EXTRA_FUSED_MATMUL], type_of(p, op)) && group_in(op, RL_G_K, A_);
}

static void fused_forms(rl_plan *p, rl_oplegal *op) {
    bool a_batch = group_in(op, RL_G_LEAD, A_), b_batch = group_in(op, RL_G_LEAD, B_);
    if (!may_fuse(p, op)) return;
    if (a_batch && b_batch) fused_batched(p, op, rl_types_have(p->target->extra[RL_EXTRA_FUSED_BATCH], type_of(p, op)));
    else if (b_batch || (!a_batch && !op->operand[A_].pin)) fused_matrix(p, op, B_, A_, RL_G_M);
    else fused_matrix(p, op, A_, B_, RL_G_N);
}

static void matmul_forms(rl_plan *p, rl_oplegal *op) {
    bool a_batch = group_in(op, RL_G_LEAD, A_), b_batch = group_in(op, RL_G_LEAD, B_);
    bool a_var = op->operand[A_].pin, b_var = op->operand[B_].pin;
    rl_form *f;
    if (a_batch && b_batch) {
        f = add_form(p, op, RL_FORM_MATMUL, 0);
        set_seq(f, A_, RL_G_LEAD, RL_G_M, RL_G_K);
        set_seq(f, B_, RL_G_LEAD, RL_G_K, RL_G_N);
        set_seq(f, Y_, RL_G_LEAD, RL_G_M, RL_G_N);
        close_form(op, f);
        f = add_form(p, op, RL_FORM_SWAPPED, 1);
        set_seq(f, A_, RL_G_LEAD, RL_G_K, RL_G_M);
        set_seq(f, B_, RL_G_LEAD, RL_G_N, RL_G_K);
        set_seq(f, Y_, RL_G_LEAD, RL_G_N, RL_G_M);
        close_form(op, f);
        return;
    }
    if (b_batch || (!a_batch && !a_var && b_var)) { /* A is a plain matrix */
        left_forms(p, op, B_, A_, RL_G_M, 0);
        f = add_form(p, op, RL_FORM_SWAPPED, 1);
        for (uint32_t t = 0; t < op->ntoken; t++)
            if (f->group[t] == RL_G_N) f->group[t] = RL_G_LEAD;
        set_seq(f, A_, RL_G_K, RL_G_M, -1);
        set_seq(f, B_, RL_G_LEAD, RL_G_K, -1);
        set_seq(f, Y_, RL_G_LEAD, RL_G_M, -1);
        close_form(op, f);
        if (!a_var && float_type(p, op)) gemm_forms(p, op, B_, A_, RL_G_M, true, 2);
        if (may_part(p, op)) parted_forms(p, op, B_, RL_G_M);
        return;
    }
    f = add_form(p, op, RL_FORM_MATMUL, 0); /* B is a plain matrix: leading atoms of A in any order */
    for (uint32_t t = 0; t < op->ntoken; t++)
        if (f->group[t] == RL_G_M) f->group[t] = RL_G_LEAD;
    set_seq(f, A_, RL_G_LEAD, RL_G_K, -1);
    set_seq(f, B_, RL_G_K, RL_G_N, -1);
    set_seq(f, Y_, RL_G_LEAD, RL_G_N, -1);
    close_form(op, f);
    left_forms(p, op, A_, B_, RL_G_N, 2);
    if (float_type(p, op) && (!b_var || !a_batch)) gemm_forms(p, op, A_, B_, RL_G_N, true, 3);
    if (may_part(p, op)) parted_forms(p, op, A_, RL_G_N);
}

/* onnxruntime has no product of a signed A and an unsigned B, which those of an unsigned A and a signed B, that quantizers write, would become. */
static void drop_exchanged(const rl_plan *p, rl_oplegal *op) {
    uint32_t n = 0;
    if (type_of(p, op) == rl_val(p->g, op->operand[B_].tensor)->dtype || rl_retyped_operand(p, op) != RL_NONE) return;
    for (uint32_t k = 0; k < op->nform; k++)
        if (op->form[k].kind != RL_FORM_SWAPPED) op->form[n++] = op->form[k];
    op->nform = n;
}

/* How many tokens of a group have a size that is not known. */
static uint32_t open_in(const rl_plan *p, const rl_oplegal *op, const rl_form *f, uint32_t group) {
    uint32_t n = 0;
    for (uint32_t t = 0; t < op->ntoken; t++)
        n += f->group[t] == group && op->token[t].natom[0] && !rl_dim_known(p->cls.p[op->operand[0].cls].size[op->token[t].atom[0][0]]);
    return n;
}

/* A pool: (lead window trail), for each split of what the window does not move over.  It is 1 wide over the trail, and over what of the lead two dims, batch and
 * channel, cannot hold.  One that moves over one dim leaves two for that, so that all orders will do. */
static void pool_forms(rl_plan *p, rl_oplegal *op) {
    const lead_tokens l = lead_of(op, RL_G_K);
    uint32_t over = op->ntoken - l.n, nset = over > 1 ? nsplit(&l) : 1;
    op->form = rl_new(p->mem, rl_form, nset);
    for (uint32_t set = 0; set < nset; set++) {
        if (is_double(&l, set)) continue;
        rl_form *f = add_form(p, op, RL_FORM_PLAIN, set > 0);
        split_lead(op, f, RL_G_K, &l, set);
        all_groups(op, f);
        uint32_t lead = RL_MAX(2u, open_in(p, op, f, RL_G_LEAD)), trail = RL_MAX(set > 0, open_in(p, op, f, RL_G_TRAIL));
        if (over == 1 && lead == 2) memset(f->group, RL_G_LEAD, op->ntoken);
        close_form(op, f);
        if (lead + over + trail > 2 + RL_MAXWINDOW) op->nform--;
    }
}

/* An op that demands an order: those that the target's rows name. */
static void run_forms(rl_plan *p, rl_oplegal *op) {
    const rl_nodeinfo *n = rl_nod(p->g, op->node);
    const rl_valinfo *x = rl_val(p->g, op->operand[0].tensor);
    op->form = rl_new(p->mem, rl_form, p->target->run.n + 1);
    for (uint32_t i = 0; i < p->target->run.n; i++) {
        const rl_target_run *run = &p->target->run.p[i];
        if (!rl_run_fits(run, n, x->dtype, x->rank)) continue;
        rl_form *f = add_form(p, op, RL_FORM_RUN, 1);
        f->run = run;
        for (uint32_t o = 0; o < op->noperand; o++)
            for (uint32_t k = 0; k <= run->rank && k < RL_MAXGROUP; k++) f->seq[o][k] = k < run->rank ? (uint8_t)run->perm[k] : RL_END;
        close_form(op, f);
    }
}

/* [B,S,heads,size] in place of [B,heads,S,size], of all but the outputs that have no other form. */
static void heads_form(rl_plan *p, rl_oplegal *op) {
    op->form = rl_new(p->mem, rl_form, 1);
    rl_form *f = add_form(p, op, RL_FORM_HEADS, 1);
    for (uint32_t o = 0; o < op->noperand; o++) {
        memcpy(f->seq[o], rl_operand_turns_heads(&op->operand[o]) ? (uint8_t[]){0, 2, 1, 3, RL_END} : (uint8_t[]){0, 1, 2, 3, RL_END}, 5);
    }
    close_form(op, f);
}

/* Of a product: up to 10 by matmul_forms and gemm_forms, beside one for each split of the lead; in parts one for each split of up to MAXPART tokens on
 * both sides; of FusedMatMul 32, or 8 for each. */
static uint32_t most_forms(const rl_plan *p, const rl_oplegal *op) {
    const lead_tokens a = lead_of(op, RL_G_M), b = lead_of(op, RL_G_N);
    uint32_t split = RL_MAX(nsplit(&a), nsplit(&b));
    return 10 + split + (may_part(p, op) ? 1u << 2 * MAXPART : 0) + (may_fuse(p, op) ? 32 + 8 * split : 0);
}

/* A picker's row stays innermost. */
static void picker_form(rl_plan *p, rl_oplegal *op) {
    uint8_t row[RL_MAXGROUP];
    rl_plain_form(p, op);
    uint32_t n = rl_pick_row(p, op, row);
    for (uint32_t i = 0; i < n; i++) op->form->group[row[i]] = (uint8_t)(n - i);
    close_form(op, op->form);
}

static void op_forms(rl_plan *p, rl_oplegal *op) {
    rl_op kind = rl_nod(p->g, op->node)->op;
    rl_class cls = rl_legal_class(op, kind);
    if (cls == RL_MATMUL || kind == RL_OP_ms_FusedMatMul) {
        op->form = rl_new(p->mem, rl_form, most_forms(p, op));
        if (cls == RL_MATMUL) matmul_forms(p, op);
        if (rl_op_scaled(kind)) drop_exchanged(p, op);
        else fused_forms(p, op);
    } else if (cls == RL_GEMM) {
        op->form = rl_new(p->mem, rl_form, most_forms(p, op));
        gemm_forms(p, op, A_, B_, RL_G_N, false, 0);
        if (!is_linear(p, op)) return;
        if (!p->target->charge[RL_WEIGHT_LEFT]) left_forms(p, op, A_, B_, RL_G_N, 2); /* where that is charged, so would be a second node */
        if (may_part(p, op)) parted_forms(p, op, A_, RL_G_N);
    } else if (op->picks) picker_form(p, op);
    else if (cls == RL_GATHER && rl_is_table(op)) table_forms(p, op);
    else if (op->part) einsum_forms(p, op);
    else if (rl_op_is_conv(kind) && op->label[1].role == RL_T_FREE) rl_plain_form(p, op);
    else if (rl_op_heads(kind, 0)) heads_form(p, op);
    else if (!op->link && (cls == RL_OPAQUE || (cls == RL_POOL && op->label[0].role == RL_T_AXIS))) run_forms(p, op);
    else if (!op->link && cls == RL_POOL) pool_forms(p, op);
    else rl_plain_form(p, op);
}

/* A link or part that is fixed keeps those of its operands that have a class. */
static void fixed_link(const rl_plan *p, rl_oplegal *op) {
    uint32_t n = 0;
    for (uint32_t o = 0; o < op->noperand; o++)
        if (p->member[op->operand[o].tensor.i].cls != RL_NONE) op->operand[n++] = op->operand[o];
    op->noperand = n;
}

/* A fixed op demands the logical order of every tensor that it reads or makes. */
static void fixed_operands(rl_plan *p, rl_oplegal *op) {
    const rl_nodeinfo *n = rl_nod(p->g, op->node);
    op->noperand = 0;
    for (uint32_t i = 0; i < n->nin; i++)
        if (rl_has(n->in[i]) && p->member[n->in[i].i].cls != RL_NONE)
            op->operand[op->noperand++] = (rl_operand){.tensor = n->in[i], .slot = i};
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i]) && p->member[n->out[i].i].cls != RL_NONE)
            op->operand[op->noperand++] = (rl_operand){.tensor = n->out[i], .slot = i, .out = true};
}

/* A batch and channels of one atom each leave a Conv one configuration: it is fixed, as if it had no labels. */
static bool has_no_choice(rl_plan *p, const rl_oplegal *op) {
    uint32_t most = 0, start, n;
    if (op->fixed || op->link || !rl_op_is_conv(rl_nod(p->g, op->node)->op) || op->label[1].role != RL_T_FREE) return false;
    for (uint32_t l = 0; l < op->nlabel; l++)
        for (uint32_t o = 0; op->label[l].role == RL_T_FREE && o < op->noperand; o++) {
            label_run(p, op, &op->label[l], o, &start, &n);
            most = RL_MAX(most, n);
        }
    return most < 2;
}

void rl_legal_operands(rl_plan *p, rl_oplegal *op) {
    for (uint32_t o = 0; o < op->noperand; o++)
        if (p->member[op->operand[o].tensor.i].cls == RL_NONE) op->fixed = true;
    op->fixed = op->fixed || has_no_choice(p, op);
    if (op->fixed && (op->link || op->part)) fixed_link(p, op);
    else if (op->fixed) fixed_operands(p, op);
    op->npin = 0;
    for (uint32_t o = 0; o < op->noperand; o++) {
        op->operand[o].cls = p->member[op->operand[o].tensor.i].cls;
        op->operand[o].pin = !p->cls.p[op->operand[o].cls].constant;
        op->npin += op->operand[o].pin;
    }
    op->picks = p->pick && op->node.i != RL_NONE && p->pick[op->node.i];
    if (op->picks) {
        op->operand[1].pin = false;
        op->npin--;
    }
}

void rl_legal_tokens(rl_plan *p, rl_oplegal *op) {
    op->ntoken = op->nform = 0;
    if (op->fixed) return;
    uint32_t max = 0, n = 0;
    for (uint32_t o = 0; o < op->noperand; o++) max += p->member[op->operand[o].tensor.i].natom;
    op->token = rl_new(p->mem, rl_token, max + op->nlabel + 1);
    for (uint32_t l = 0; l < op->nlabel; l++) label_tokens(p, op, l, &n);
    op->ntoken = n;
    op_forms(p, op);
}
