/* An Einsum as ops of the plan: one for each operand, and one for the result, each in any order of its dims whatever the others have, as
 * the equation says which dim is which.
 *
 *   Einsum "bhqd,bhkd->bhqk"     x may lie as b q h d; then the equation is "bqhd,bhkd->bhqk"
 *
 * Of two operands runtimes make a product of matrices: they multiply an operand as it lies where its dims are, from the outermost,
 *   the first    those that both have and the result keeps, its own, the summed ones
 *   the second   the same, but the summed ones before its own
 *   the result   those of both, of the first, of the second
 * and transpose it first where they are not. So these are groups of their forms (forms.c), and what else there is is charged (charge.c).
 *
 * Where dims of "..." meet others than of their own size, or 1, the Einsum is fixed: with a letter not all runtimes broadcast them. */
#include "../src/equation.h"
#include "legal_labels.h"

/* Has the term the letter, for more than one element? */
static bool has(const rl_graph *g, const rl_nodeinfo *n, const rl_equation *e, uint32_t term, uint8_t letter) {
    const rl_valinfo *x = rl_val(g, term < n->nin ? n->in[term] : n->out[0]);
    for (uint32_t d = 0; d < e->rank[term]; d++)
        if (e->letter[term][d] == letter && x->dim[d] != 1) return true;
    return false;
}

/* Where the letter stands in the sequence above, in term 0, 1 or the result of two operands. */
static uint32_t group_of(const rl_graph *g, const rl_nodeinfo *n, const rl_equation *e, uint32_t term, uint8_t letter) {
    bool a = has(g, n, e, 0, letter), b = has(g, n, e, 1, letter), kept = has(g, n, e, 2, letter);
    if (a && b) return kept ? 0 : term == 0 ? 2 : 1;
    return term == 2 && b ? 2 : term == 1 ? 2 : 1;
}

/* The op of one operand; a label for each of its dims. */
static bool part(rl_plan *p, rl_node node, const rl_equation *e, uint32_t term, rl_oplegal *out) {
    const rl_nodeinfo *n = rl_nod(p->g, node);
    bool result = term == n->nin;
    *out = (rl_oplegal){.node = node, .part = true, .comp = RL_NONE};
    out->operand = rl_new(p->mem, rl_operand, 1);
    rl_labels b = {.p = p, .g = p->g, .n = n, .op = out, .ok = true};
    rl_labels_operand(&b, result ? 0 : term, result);
    if (!b.ok) return false;
    const rl_valinfo *x = rl_val(p->g, out->operand[0].tensor);
    if (x->dtype == RL_UNDEF) return false;
    for (uint32_t d = 0; d < x->rank && b.ok; d++) {
        if (x->dim[d] == 0) return false; /* a Reshape to a size of 0 means another thing */
        rl_labels_at(&b, rl_labels_add(&b, RL_T_AXIS, n->nin == 2 ? group_of(p->g, n, e, term, e->letter[term][d]) : 0), 0, d);
    }
    out->nlabel = b.nlabel;
    out->label = rl_copy(p->draft, b.label, b.nlabel * sizeof *b.label);
    return b.ok;
}

static bool dots_agree(const rl_graph *g, const rl_nodeinfo *n, const rl_equation *e) {
    rl_dim size[128];
    for (uint32_t i = 0; i < RL_LEN(size); i++) size[i] = 1;
    for (uint32_t i = 0; i < n->nin; i++)
        for (uint32_t d = 0; d < e->rank[i]; d++) {
            rl_dim *s = &size[e->letter[i][d]], x = rl_val(g, n->in[i])->dim[d];
            if (!rl_equation_is_dots(e, e->letter[i][d]) || x == 1) continue;
            if (*s != 1 && *s != x) return false;
            *s = x;
        }
    return true;
}

bool rl_einsum_parts(rl_plan *p, rl_node node) {
    const rl_nodeinfo *n = rl_nod(p->g, node);
    rl_equation e;
    if (rl_op_class(n->op) != RL_EINSUM || n->ncap || !rl_equation_read(p->g, n, p->draft, &e) || !rl_has(n->out[0])) return false;
    if (rl_val(p->g, n->out[0])->rank != e.rank[n->nin] || !dots_agree(p->g, n, &e)) return false;
    uint32_t first = p->op.n;
    for (uint32_t i = 0; i < e.nterm; i++) {
        rl_oplegal op;
        if (!part(p, node, &e, i, &op)) {
            p->op.n = first;
            return false;
        }
        rl_push(p->mem, p->op, op);
    }
    p->opof[node.i] = first;
    return true;
}
