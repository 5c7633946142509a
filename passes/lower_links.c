/* Writes the two ends of an If, Loop or Scan whose bodies take or give tensors in other orders.
 *
 * What a link joins has one form on all sides: the dims chosen where the first of them is read.  Values on the far side are
 * named by the graph that holds them, so a body's input in a new form is a new value, and the old name is free for the tensor that
 * it named, should anyone ask for it.
 *   Loop carries [N,H,W,C]:   x -> Transpose -> Enter -> a' [N,H,W,C] ... z' [N,H,W,C] -> Leave -> y' [N,H,W,C]
 * Inputs that no link changes are asked for as they were, in the region that reads them. */
#include "lower.h"

typedef struct {
    rl_lower *l;
    const rl_control *c;
    bool leave;
    rl_nodeinfo n;       /* a copy: nodes move as others are added */
    rl_value *in, *out;
    bool *in_done, *out_done;
    uint32_t first, nop; /* the links, in the plan */
} end;

static const rl_control *control_of(const rl_lower *l, rl_node n) {
    return &l->g->flat->control.p[l->g->flat->place.p[rl_nod(l->g, n)->origin].control];
}

uint32_t rl_lower_link_origin(const rl_lower *l, const rl_oplegal *op, uint32_t operand) {
    const rl_control *c = control_of(l, op->node);
    const rl_operand *x = &op->operand[operand];
    if (x->body) return l->g->flat->region.p[c->body + x->body - 1].end;
    return rl_nod(l->g, x->out || c->enter.i == RL_NONE ? c->leave : c->enter)->origin;
}

/* Whether the operand is this end's: Enter reads outside and makes inside, Leave the other way round; an If has but a Leave. */
static bool is_mine(const end *e, const rl_operand *x) { return (x->out == (x->body > 0)) != e->leave; }

static rl_dims *form_of(end *e, uint32_t k) {
    rl_linkform *f = &e->l->link[k];
    if (!f->form && !rl_lower_form(e->l, &e->l->p->op.p[k], f)) e->l->failed = true;
    return f->form;
}

/* The link's tensors at this end: makes what is read, and names what is made. */
static void lower_link(end *e, uint32_t k) {
    rl_lower *l = e->l;
    rl_oplegal *op = &l->p->op.p[k];
    uint32_t was = l->origin;
    for (uint32_t o = 0; o < op->noperand && !l->failed; o++) {
        rl_operand x = op->operand[o];
        if (!is_mine(e, &x)) continue;
        rl_dims *form = form_of(e, k);
        if (l->failed) return;
        l->origin = rl_lower_link_origin(l, op, o);
        if (x.out) e->out[x.slot] = rl_lower_result(l, x.cls, rl_lower_order(l, op, o), &form[o], x.tensor);
        else e->in[x.slot] = rl_lower_want(l, x.cls, rl_lower_order(l, op, o), &form[o]);
        (x.out ? e->out_done : e->in_done)[x.slot] = true;
        l->origin = was;
    }
}

static void have_link(end *e, uint32_t k) {
    rl_oplegal *op = &e->l->p->op.p[k];
    for (uint32_t o = 0; o < op->noperand; o++) {
        const rl_operand *x = &op->operand[o];
        if (is_mine(e, x) && x->out) rl_lower_have(e->l, e->out[x->slot], x->cls, rl_lower_order(e->l, op, o), &e->l->link[k].form[o]);
    }
}

/* A body ends in what a node of its own makes: runtimes ask for it. */
static bool ends_body(const rl_lower *l, rl_value v) {
    const rl_valinfo *x = rl_val(l->g, v);
    return x->def.i != RL_NONE && rl_nod(l->g, x->def)->op != RL_OP_ENTER
           && rl_flat_value_region(l->g, v) == rl_flat_region(l->g, l->origin);
}

/* What no link changes; a Leave reads its bodies' values in their own regions. */
static void lower_rest(end *e) {
    rl_lower *l = e->l;
    uint32_t was = l->origin, each = e->leave ? (e->n.nin - 1) / e->c->nbody : 0;
    for (uint32_t i = 0; i < e->n.nin && !l->failed; i++) {
        if (e->in_done[i] || !rl_has(e->n.in[i])) continue;
        if (e->leave && i) l->origin = l->g->flat->region.p[e->c->body + (i - 1) / each].end;
        e->in[i] = rl_lower_member(l, e->n.in[i]);
        if (e->leave && i && !l->failed && !ends_body(l, e->in[i])) e->in[i] = rl_lower_exactly(l, e->n.in[i]);
        l->origin = was;
    }
}

/* The attribute that names the scanned axes of this end's wholes. */
static bool scan_axes(end *e, rl_attr *a) {
    rl_graph *g = e->l->g;
    const rl_nodeinfo *was = rl_nod(g->flat->region.p[e->c->region].g, e->c->node);
    const char *name = e->leave ? "scan_output_axes" : "scan_input_axes";
    const rl_attr *old = rl_attr_ints(was, name);
    uint32_t nstate = (uint32_t)(rl_nod(g, e->c->enter)->nin - (uint32_t)rl_attr_int(was, "num_scan_inputs", 0));
    uint32_t n = (e->leave ? e->n.nout : e->n.nin) - nstate;
    int64_t *x = rl_new(e->l->tmp, int64_t, n + 1);
    bool any = false;
    for (uint32_t i = 0; old && i < n && i < old->n; i++) x[i] = old->ints[i];
    for (uint32_t k = e->first; k < e->first + e->nop; k++) {
        const rl_oplegal *op = &e->l->p->op.p[k];
        for (uint32_t o = 0; o < op->noperand && op->chosen; o++) {
            const rl_operand *v = &op->operand[o];
            if (v->body != 0 || v->out != e->leave || v->slot < nstate) continue;
            any |= x[v->slot - nstate] != e->l->link[k].axis; /* one counted from the end is of the old rank */
            x[v->slot - nstate] = e->l->link[k].axis;
        }
    }
    if (any) *a = rl_attr_of_ints(g, name, x, n);
    return any;
}

static void write_end(end *e, rl_node node) {
    rl_lower *l = e->l;
    rl_attr axes;
    bool same = true, scans = e->c->op == RL_OP_Scan && scan_axes(e, &axes);
    for (uint32_t i = 0; i < e->n.nout; i++) same &= rl_same(e->out[i], e->n.out[i]);
    if (same) {
        for (uint32_t i = 0; i < e->n.nin; i++) rl_graph_set_input(l->g, node, i, e->in[i]);
        rl_push(l->tmp, l->emitted, node);
    } else {
        node = rl_lower_node(l, e->n.op, e->n.name, e->n.nin, e->in, e->n.nout, e->out);
        rl_nod(l->g, node)->since = e->n.since;
    }
    if (scans) rl_graph_set_attrs(l->g, node, &axes, 1);
}

void rl_lower_end(rl_lower *l, rl_node node) {
    end e = {.l = l, .c = control_of(l, node), .leave = rl_nod(l->g, node)->op == RL_OP_LEAVE, .n = *rl_nod(l->g, node)};
    e.in = rl_new(l->tmp, rl_value, e.n.nin);
    e.in_done = rl_new(l->tmp, bool, e.n.nin);
    e.out_done = rl_new(l->tmp, bool, e.n.nout);
    e.out = rl_copy(l->tmp, e.n.out, e.n.nout * sizeof *e.out);
    for (uint32_t i = 0; i < e.n.nin; i++) e.in[i] = RL_NOVALUE;
    e.first = l->p->opof[e.c->leave.i];
    while (e.first + e.nop < l->p->op.n && l->p->op.p[e.first + e.nop].node.i == e.c->leave.i) e.nop++;
    for (uint32_t k = e.first; k < e.first + e.nop && !l->failed; k++)
        if (l->p->op.p[k].chosen) lower_link(&e, k);
    lower_rest(&e);
    if (l->failed) return;
    write_end(&e, node);
    for (uint32_t k = e.first; k < e.first + e.nop; k++)
        if (l->p->op.p[k].chosen) have_link(&e, k);
    for (uint32_t i = 0; i < e.n.nout; i++)
        if (rl_has(e.n.out[i]) && !e.out_done[i]) rl_lower_have_member(l, e.n.out[i]);
}
