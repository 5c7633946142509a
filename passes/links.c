/* What crosses the border of a body, as ops of the plan: so a layout may go through an If, Loop or Scan like through a Relu.
 *
 *   If     output k:             (then, else, y) lie alike
 *   Loop   carried value k:      (x, input of the body, output of the body, y) lie alike, from the first turn to the last, or to none
 *          scan output k:        (output of the body, y) lie alike, y with the turns before everything else
 *   Scan   state k:              as a Loop's carried value
 *          scan input, output k: (slice, whole) lie alike, the whole with the scanned axis first where the model has it so, since
 *                                runtimes transpose for any other; else anywhere
 *
 * A dim that has the same size in all of them is free, and refined alike; one that has not (a carried value that grows, branches
 * that make different sizes) is a block.  What else the node reads and makes (condition, trip count, anything of Scan before
 * opset 9) is one more op, in logical order.
 *
 * Needs: the units of atoms.c.  Keeps: the graph. */
#include "plan.h"

enum { MAXOPERAND = 4 };

typedef struct {
    rl_plan *p;
    const rl_control *c;
    const rl_nodeinfo *enter, *leave; /* enter NULL: an If */
    rl_node node;
    bool *linked;                     /* [tensor slots of both, as in `slots`] */
    rl_oplegal op;
} linker;

static void start(linker *l) {
    l->op = (rl_oplegal){.node = l->node, .link = true, .comp = RL_NONE};
    l->op.operand = rl_new(l->p->mem, rl_operand, MAXOPERAND);
}

/* What is read outside or made inside a body is Enter's, the rest is Leave's. */
static const rl_nodeinfo *end_of(const linker *l, bool out, uint32_t body) { return out == (body > 0) ? l->enter : l->leave; }

static bool *mark(linker *l, bool out, uint32_t body, uint32_t slot) {
    uint32_t at = slot;
    if (end_of(l, out, body) == l->leave) at += l->enter ? l->enter->nin + l->enter->nout : 0;
    if (out) at += end_of(l, out, body)->nin;
    return &l->linked[at];
}

/* False when the tensor is left out, or nothing is known of it. */
static bool add(linker *l, bool out, uint32_t body, uint32_t slot) {
    const rl_nodeinfo *n = end_of(l, out, body);
    rl_value v = out ? rl_out(n, slot) : rl_in(n, slot);
    if (!rl_has(v)) return out; /* an output that nobody reads */
    const rl_valinfo *x = rl_val(l->p->g, v);
    if (x->rank == RL_NORANK || x->rank > RL_MAXATOM || x->dtype == RL_UNDEF) return false;
    l->op.operand[l->op.noperand++] = (rl_operand){.tensor = v, .slot = slot, .out = out, .body = body};
    return true;
}

/* A label for the dim that each operand has at dim[operand], -1: it has none. */
static void label(linker *l, const int32_t *dim, uint32_t group, bool axis) {
    rl_plan *p = l->p;
    rl_label *x = &l->op.label[l->op.nlabel++];
    uint32_t n = l->op.noperand, first = RL_NONE;
    bool alike = !axis;
    *x = (rl_label){.role = RL_T_FREE, .group = group, .tail = RL_NONE};
    x->dim = rl_copy(p->draft, dim, n * sizeof *dim);
    x->unit = rl_new(p->draft, uint32_t, n);
    x->after = rl_new(p->draft, uint32_t, n);
    for (uint32_t o = 0; o < n; o++) {
        x->after[o] = RL_NONE;
        x->unit[o] = dim[o] < 0 ? RL_NONE : p->member[l->op.operand[o].tensor.i].unit[dim[o]];
        if (o == 0) first = x->unit[0];
        rl_dim a = first == RL_NONE ? 1 : p->unit.p[first].size, b = x->unit[o] == RL_NONE ? 1 : p->unit.p[x->unit[o]].size;
        alike &= a == b;
    }
    for (uint32_t o = 1; o < n && alike && first != RL_NONE; o++) alike = rl_units_match(p, &first, 1, &x->unit[o], 1);
    if (!alike) x->role = RL_T_AXIS;
}

/* No operand is empty: a Reshape to a size of 0 means another thing. */
static bool none_empty(const linker *l) {
    for (uint32_t o = 0; o < l->op.noperand; o++) {
        const rl_valinfo *x = rl_val(l->p->g, l->op.operand[o].tensor);
        for (uint32_t d = 0; d < x->rank; d++)
            if (x->dim[d] == 0) return false;
    }
    return true;
}

static void push(linker *l) {
    for (uint32_t o = 0; o < l->op.noperand; o++) {
        const rl_operand *x = &l->op.operand[o];
        *mark(l, x->out, x->body, x->slot) = true;
    }
    rl_push(l->p->mem, l->p->op, l->op);
}

/* All operands have the same dims. */
static void link_alike(linker *l, bool ok) {
    uint32_t rank = ok ? rl_val(l->p->g, l->op.operand[0].tensor)->rank : 0;
    for (uint32_t o = 1; o < l->op.noperand && ok; o++) ok = rl_val(l->p->g, l->op.operand[o].tensor)->rank == rank;
    if (!ok || !none_empty(l)) return;
    l->op.label = rl_new(l->p->draft, rl_label, rank + 1);
    for (uint32_t d = 0; d < rank; d++) {
        int32_t dim[MAXOPERAND] = {(int32_t)d, (int32_t)d, (int32_t)d, (int32_t)d};
        label(l, dim, 0, false);
    }
    push(l);
}

/* Operand `whole` has a dim that the other has not; if it is the first, it stays so. */
static void link_stacked(linker *l, bool ok, uint32_t whole, int64_t axis) {
    if (!ok || l->op.noperand < 2) return;
    uint32_t rank = rl_val(l->p->g, l->op.operand[whole].tensor)->rank;
    if (rl_val(l->p->g, l->op.operand[1 - whole].tensor)->rank + 1 != rank || !none_empty(l)) return;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return;
    l->op.label = rl_new(l->p->draft, rl_label, rank);
    for (int32_t d = 0; d < (int32_t)rank; d++) {
        int32_t dim[2];
        dim[whole] = d;
        dim[1 - whole] = d == axis ? -1 : d - (d > axis);
        label(l, dim, axis == 0 && d != axis ? 1 : 0, d == axis);
    }
    push(l);
}

static void link_if(linker *l) {
    uint32_t each = (l->leave->nin - 1) / 2;
    for (uint32_t k = 0; k < l->leave->nout; k++) {
        start(l);
        bool ok = add(l, false, 1, 1 + k) && add(l, false, 2, 1 + each + k) && add(l, true, 0, k);
        link_alike(l, ok);
    }
}

static void link_loop(linker *l) {
    uint32_t n = l->enter->nin - 2;
    for (uint32_t k = 0; k < n; k++) {
        start(l);
        bool ok = add(l, false, 0, 2 + k) && add(l, true, 1, 2 + k) && add(l, false, 1, 2 + k) && add(l, true, 0, k);
        link_alike(l, ok);
    }
    for (uint32_t k = n; k < l->leave->nout; k++) {
        start(l);
        bool ok = add(l, false, 1, 2 + k) && add(l, true, 0, k);
        link_stacked(l, ok, 1, 0);
    }
}

static int64_t axis_of(const linker *l, const char *name, uint32_t i) {
    const rl_attr *a = rl_attr_find(rl_nod(l->p->g->flat->region.p[l->c->region].g, l->c->node), name);
    return a && a->kind == RL_ATTR_INTS && i < a->n ? a->ints[i] : 0;
}

static void link_scan(linker *l) {
    const rl_nodeinfo *was = rl_nod(l->p->g->flat->region.p[l->c->region].g, l->c->node);
    int64_t nscan = rl_attr_int(was, "num_scan_inputs", 0);
    if (was->since < 9 || nscan < 0 || nscan > l->enter->nin) return;
    uint32_t n = l->enter->nin - (uint32_t)nscan;
    for (uint32_t k = 0; k < n; k++) {
        start(l);
        bool ok = add(l, false, 0, k) && add(l, true, 1, k) && add(l, false, 1, 1 + k) && add(l, true, 0, k);
        link_alike(l, ok);
    }
    for (uint32_t k = n; k < l->enter->nin; k++) {
        start(l);
        bool ok = add(l, false, 0, k) && add(l, true, 1, k);
        link_stacked(l, ok, 0, axis_of(l, "scan_input_axes", k - n));
    }
    for (uint32_t k = n; k < l->leave->nout; k++) {
        start(l);
        bool ok = add(l, false, 1, 1 + k) && add(l, true, 0, k);
        link_stacked(l, ok, 1, axis_of(l, "scan_output_axes", k - n));
    }
}

/* What no link took: logical order. */
static void link_rest(linker *l) {
    uint32_t each = (l->leave->nin - 1) / l->c->nbody, max = l->leave->nin + l->leave->nout;
    if (l->enter) max += l->enter->nin + l->enter->nout;
    l->op = (rl_oplegal){.node = l->node, .link = true, .fixed = true, .comp = RL_NONE};
    l->op.operand = rl_new(l->p->mem, rl_operand, max);
    for (uint32_t i = 0; l->enter && i < l->enter->nin; i++)
        if (!*mark(l, false, 0, i)) add(l, false, 0, i);
    for (uint32_t i = 0; l->enter && i < l->enter->nout; i++)
        if (!*mark(l, true, 1, i)) add(l, true, 1, i);
    for (uint32_t i = l->enter ? 1 : 0; i < l->leave->nin; i++) {
        uint32_t body = i ? 1 + (i - 1) / each : 1; /* an If's condition is read outside: nothing of it is ever converted */
        if (!*mark(l, false, body, i)) add(l, false, body, i);
    }
    for (uint32_t i = 0; i < l->leave->nout; i++)
        if (!*mark(l, true, 0, i)) add(l, true, 0, i);
    rl_push(l->p->mem, l->p->op, l->op);
}

void rl_links(rl_plan *p, rl_node leave) {
    const rl_graph *g = p->g;
    linker l = {.p = p, .leave = rl_nod(g, leave), .node = leave};
    l.c = &g->flat->control.p[g->flat->place.p[l.leave->origin].control];
    if (l.c->op != RL_OP_If) l.enter = rl_nod(g, rl_val(g, l.leave->in[0])->def);
    uint32_t slots = l.leave->nin + l.leave->nout + (l.enter ? l.enter->nin + l.enter->nout : 0);
    l.linked = rl_new(p->draft, bool, slots + 1);
    p->opof[leave.i] = p->op.n;
    if (l.c->op == RL_OP_If) link_if(&l);
    else if (l.c->op == RL_OP_Loop) link_loop(&l);
    else link_scan(&l);
    link_rest(&l);
}
