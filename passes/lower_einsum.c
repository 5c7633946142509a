/* Writes an Einsum with its operands and its result in the orders chosen: the letters of the equation follow.
 *
 *   Einsum(x[B,H,Q,D], y[B,H,K,D]) "bhqd,bhkd->bhqk"    ->    Einsum(x[B,Q,H,D], y[B,H,K,D]) "bqhd,bhkd->bhqk"
 *
 * Dims of size 1 are left out: onnxruntime puts them behind all others, and then transposes element by element. */
#include "../src/equation.h"
#include "lower.h"

typedef struct {
    rl_lower *l;
    rl_equation e;
    rl_text text;
} writer;

/* The order that a part has, the dims of it, and their letters. */
static uint32_t put_term(writer *w, const rl_oplegal *op, uint32_t term, rl_dims *d) {
    const rl_operand *x = &op->operand[0];
    uint32_t order = op->chosen ? rl_lower_order(w->l, op, 0) : rl_lower_member_order(w->l, x->tensor);
    const uint8_t *atom = rl_lower_atoms(w->l, x->cls, order);
    d->ndim = 0;
    for (uint32_t i = 0; i < w->l->p->cls.p[x->cls].natom; i += d->count[d->ndim++]) {
        uint32_t t = 0;
        while (op->token[t].atom[0][0] != atom[i]) t++; /* one begins there */
        d->count[d->ndim] = op->token[t].natom[0];
        rl_put(&w->text, "%c", w->e.letter[term][op->label[op->token[t].label].dim[0]]);
    }
    return order;
}

static rl_value input(writer *w, const rl_oplegal *op, uint32_t term) {
    rl_dims d;
    if (term) rl_put(&w->text, ",");
    if (op->ntoken) {
        uint32_t order = put_term(w, op, term, &d);
        return rl_lower_want(w->l, op->operand[0].cls, order, &d);
    }
    rl_put_bytes(&w->text, (const char *)w->e.letter[term], w->e.rank[term]);
    return rl_lower_member(w->l, op->operand[0].tensor);
}

void rl_lower_einsum(rl_lower *l, const rl_oplegal *part) {
    const rl_nodeinfo old = *rl_nod(l->g, part->node);
    writer w = {.l = l, .text.mem = &l->now};
    rl_dims d;
    if (!rl_equation_read(l->g, &old, &l->now, &w.e) || part[old.nin].fixed) l->failed = true; /* too many atoms of the result */
    if (l->failed) return;
    for (uint32_t i = 0; i <= old.nin; i++)
        if (part[i].config.n) l->cheaper |= part[i].config.p[part[i].chosen].charge < part[i].config.p[0].charge;
    rl_value *in = rl_new(&l->now, rl_value, old.nin);
    for (uint32_t i = 0; i < old.nin && !l->failed; i++) in[i] = input(&w, &part[i], i);
    rl_put(&w.text, "->");
    const rl_operand *y = &part[old.nin].operand[0];
    uint32_t order = put_term(&w, &part[old.nin], old.nin, &d);
    if (l->failed) return;
    rl_value out = rl_lower_result(l, y->cls, order, &d, y->tensor);
    rl_node n = rl_lower_node(l, old.op, old.name, old.nin, in, 1, &out);
    rl_nod(l->g, n)->since = old.since;
    rl_attr a = rl_attr_of_string(l->g, "equation", w.text.p, w.text.n);
    rl_graph_set_attrs(l->g, n, &a, 1);
    rl_lower_have(l, out, y->cls, order, &d);
}
