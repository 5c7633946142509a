/* Which orders each op may take (docs/ops.md).
 *
 * An op is described by labels, its own dims, each attached to a dim of each operand that has it:
 *   Add x[N,C,H] y[C,1]       labels N, C, H;  y has C and, as size 1, H
 *   Softmax x axis=1          labels N, C (axis), H
 *   MatMul A[b,M,K] B[K,N]    labels b, M, K, N
 * Free labels are linked: their dims are refined alike.  After refinement forms.c makes tokens of them.  An op that no rule
 * understands is fixed: logical order on every operand.
 *
 * One rule per class of ops.def (legal_labels.def); the facts of one op are nowhere else.
 * Needs: shapes.  Keeps: the graph. */
#include "charge.h"
#include "legal_labels.h"

static void (*const rule[])(rl_labels *) = {
#define LABELS(class, rule) [class] = rl_label_##rule,
#include "legal_labels.def"
#undef LABELS
};

bool rl_is_input_size(const rl_graph *g, rl_dim d) {
    for (uint32_t i = 0; i < g->input.n; i++) {
        const rl_valinfo *x = rl_val(g, g->input.p[i]);
        for (uint32_t k = 0; x->rank != RL_NORANK && k < x->rank; k++)
            if (x->dim[k] == d) return true;
    }
    return false;
}

/* Free dims of all operands agree and are refined alike. */
static bool link_labels(rl_labels *b) {
    for (uint32_t l = 0; l < b->nlabel; l++) {
        const rl_label *x = &b->label[l];
        if (x->role == RL_T_AXIS) continue;
        uint32_t first = RL_NONE;
        for (uint32_t o = 0; o < b->op->noperand; o++) {
            if (x->unit[o] == RL_NONE) continue;
            if (first == RL_NONE) first = x->unit[o];
            else if (b->p->unit.p[first].size != b->p->unit.p[x->unit[o]].size) return false;
            else if (!rl_units_match(b->p, &first, 1, &x->unit[o], 1)) return false;
        }
    }
    return true;
}

/* A symbolic dim of an input that meets no equal dim may turn out to be 1 and broadcast: such an op is fixed. */
static bool sizes_agree(const rl_labels *b) {
    for (uint32_t l = 0; l < b->nlabel; l++)
        if (b->label[l].role == RL_T_FREE && !rl_labels_agree(b, l)) return false;
    return true;
}

/* Types are known, and no operand is empty (a Reshape to a size of 0 means another thing), but for variables of pointwise ops. */
static bool all_inputs_known(const rl_labels *b) {
    for (uint32_t i = 0; i < b->op->noperand; i++) {
        const rl_valinfo *x = rl_val(b->g, b->op->operand[i].tensor);
        if (x->dtype == RL_UNDEF) return false;
        for (uint32_t d = 0; d < x->rank && (x->data || rl_op_class(b->n->op) != RL_POINTWISE); d++)
            if (x->dim[d] == 0) return false;
    }
    return true;
}

void rl_legal_link(rl_plan *p, rl_node node) {
    const rl_nodeinfo *n = rl_nod(p->g, node);
    if (n->op == RL_OP_LEAVE) rl_links(p, node);
    if (n->op == RL_OP_LEAVE || n->op == RL_OP_ENTER || rl_einsum_parts(p, node)) return;
    rl_oplegal op = {.node = node, .comp = RL_NONE};
    op.operand = rl_new(p->mem, rl_operand, n->nin + n->nout + 1);
    rl_labels b = {.p = p, .g = p->g, .n = n, .op = &op, .ok = true};
    rl_class cls = rl_op_class(n->op);
    if ((uint32_t)cls < RL_LEN(rule) && rule[cls] && n->ncap == 0) rule[cls](&b);
    else b.ok = false;
    if (b.ok && !(all_inputs_known(&b) && sizes_agree(&b) && link_labels(&b))) b.ok = false;
    op.fixed = !b.ok;
    if (op.fixed) {
        op.noperand = 0;
        b.nlabel = 0;
    }
    op.nlabel = b.nlabel;
    op.label = rl_copy(p->draft, b.label, b.nlabel * sizeof *b.label);
    p->opof[node.i] = p->op.n;
    rl_push(p->mem, p->op, op);
}

static rl_status make_plan(rl_plan *p) {
    RL_TRY(rl_plan_atoms(p));
    rl_legal_share(p);
    rl_charge_all(p);
    return RL_OK;
}

rl_status rl_pass_legal(rl_pass_run *r) {
    rl_plan *p = r->plan = rl_new(r->tmp, rl_plan, 1);
    rl_arena draft;
    rl_arena_init(&draft, r->g->ctx);
    p->g = r->g;
    p->mem = r->tmp;
    p->draft = &draft;
    p->target = r->target;
    p->io = r->io;
    p->pick = r->pick;
    rl_status s = make_plan(p);
    rl_arena_free(&draft);
    p->draft = NULL;
    p->unit.p = NULL;
    p->trail.p = NULL;
    return s;
}
