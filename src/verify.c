/* The structural checks of verify.h, one function each.
 *
 * It shares no code with graph.c, which keeps what is checked here: both would make the same mistake. */
#include "verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "permute.h"

typedef struct {
    const rl_graph *g;
    rl_arena tmp;
    uint32_t *place; /* [nnode] position in the order, RL_NONE: not live */
    uint32_t *reads; /* [nval] slots that read it */
} checker;

static const char *text(rl_str s) {
    return s && *s ? s : "?";
}

static rl_status __attribute__((format(printf, 3, 4))) fail_node(const checker *c, rl_node n, const char *fmt, ...) {
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    const rl_nodeinfo *x = rl_nod(c->g, n);
    return rl_fail(c->g->ctx, RL_EINTERNAL, "node %" PRIu32 " '%s' (%s): %s", n.i, text(x->name), text(x->type), what);
}

static rl_status fail_value(const checker *c, uint32_t v, const char *what) {
    return rl_fail(c->g->ctx, RL_EINTERNAL, "value %" PRIu32 " '%s': %s", v, text(c->g->val[v].name), what);
}

/* Every live node once. */
static rl_status check_order(checker *c) {
    const rl_graph *g = c->g;
    memset(c->place, 0xff, g->nnode * sizeof *c->place);
    for (uint32_t k = 0; k < g->order.n; k++) {
        uint32_t n = g->order.p[k].i;
        if (n >= g->nnode) return rl_fail(g->ctx, RL_EINTERNAL, "the order holds node %" PRIu32 " of %" PRIu32, n, g->nnode);
        if (c->place[n] != RL_NONE) return fail_node(c, g->order.p[k], "twice in the order");
        c->place[n] = k;
    }
    return RL_OK;
}

static bool uses(const rl_valinfo *v, rl_node n, uint32_t slot) {
    for (uint32_t i = 0; i < v->nuse; i++)
        if (v->use[i].node.i == n.i && v->use[i].slot == slot) return true;
    return false;
}

/* What the node reads exists, is made before, and knows that it is read.  Long lists of uses are checked from the other
 * side only (check_uses), so that this stays linear. */
static rl_status check_read(const checker *c, rl_node n, uint32_t slot, rl_value v) {
    if (!rl_has(v)) return RL_OK;
    if (v.i >= c->g->nval) return fail_node(c, n, "slot %" PRIu32 " reads value %" PRIu32 " of %" PRIu32, slot, v.i, c->g->nval);
    const rl_valinfo *x = rl_val(c->g, v);
    bool source = x->is_input || x->is_init || x->is_outer;
    c->reads[v.i]++;
    if (x->def.i == RL_NONE && !source) return fail_node(c, n, "reads '%s', which nothing makes", text(x->name));
    if (x->def.i != RL_NONE && (x->def.i >= c->g->nnode || c->place[x->def.i] == RL_NONE))
        return fail_node(c, n, "reads '%s', whose node was removed", text(x->name));
    if (x->def.i != RL_NONE && c->place[x->def.i] >= c->place[n.i])
        return fail_node(c, n, "reads '%s', which is made later", text(x->name));
    if (x->nuse < 64 && !uses(x, n, slot)) return fail_node(c, n, "'%s' does not know its use in slot %" PRIu32, text(x->name), slot);
    return RL_OK;
}

/* Each use stands for a slot that reads the value, and there are as many uses as reads. */
static rl_status check_uses(const checker *c, uint32_t v) {
    const rl_graph *g = c->g;
    const rl_valinfo *x = &g->val[v];
    if (c->reads[v] != x->nuse) return fail_value(c, v, "is read more or less often than it knows");
    for (uint32_t i = 0; i < x->nuse; i++) {
        rl_use u = x->use[i];
        if (u.node.i >= g->nnode || c->place[u.node.i] == RL_NONE) return fail_value(c, v, "is used by a removed node");
        const rl_nodeinfo *n = rl_nod(g, u.node);
        if (u.slot >= n->nin + n->ncap) return fail_value(c, v, "has a use in a slot that does not exist");
        rl_value w = u.slot < n->nin ? n->in[u.slot] : n->cap[u.slot - n->nin];
        if (w.i != v) return fail_value(c, v, "has a use that reads another value");
    }
    return RL_OK;
}

/* The bytes that a shape needs; false when it needs more than memory has. */
static bool bytes_of(const rl_const *t, uint64_t *nbyte) {
    uint64_t n = rl_dtype_bits(t->dtype);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dim[i] < 0 || __builtin_mul_overflow(n, (uint64_t)t->dim[i], &n)) return false;
    *nbyte = n / 8 + (n % 8 != 0);
    return true;
}

static rl_status check_const(const checker *c, uint32_t v, const rl_const *t) {
    const rl_valinfo *x = &c->g->val[v];
    uint64_t want;
    if (t->data && rl_dtype_bits(t->dtype) && (!bytes_of(t, &want) || want != t->nbyte))
        return fail_value(c, v, "a constant whose bytes do not fit its shape");
    if (x->dtype != RL_UNDEF && x->dtype != t->dtype) return fail_value(c, v, "a constant of another type");
    if (x->rank == RL_NORANK) return RL_OK;
    if (x->rank != t->rank) return fail_value(c, v, "a constant of another rank");
    for (uint32_t i = 0; i < x->rank; i++)
        if (rl_dim_known(x->dim[i]) && x->dim[i] != t->dim[i]) return fail_value(c, v, "a constant of another shape");
    return RL_OK;
}

static rl_status check_values(const checker *c) {
    const rl_graph *g = c->g;
    for (uint32_t v = 0; v < g->nval; v++) {
        const rl_valinfo *x = &g->val[v];
        RL_TRY(check_uses(c, v));
        if (x->rank != RL_NORANK && x->rank > 0 && !x->dim) return fail_value(c, v, "has a rank and no dims");
        if (x->data) RL_TRY(check_const(c, v, x->data));
        if (x->is_init && x->def.i != RL_NONE && c->place[x->def.i] != RL_NONE) return fail_value(c, v, "an initializer that a node makes");
        if (x->name && rl_graph_find(g, x->name).i != v) return fail_value(c, v, "is not what its name finds");
    }
    for (uint32_t i = 0; i < g->output.n; i++) {
        const rl_valinfo *x = rl_val(g, g->output.p[i]);
        bool made = x->def.i != RL_NONE && c->place[x->def.i] != RL_NONE;
        if (!made && !x->is_input && !x->is_init && !x->is_outer) return fail_value(c, g->output.p[i].i, "a graph output that nothing makes");
    }
    return RL_OK;
}

static rl_status check_perm(checker *c, rl_node n) {
    const rl_nodeinfo *x = rl_nod(c->g, n);
    const rl_attr *a = rl_attr_ints(x, "perm");
    rl_value in = rl_in(x, 0);
    if (!a || x->op != RL_OP_Transpose) return RL_OK;
    if (!c->g->doubtful && rl_has(in) && rl_val(c->g, in)->rank != RL_NORANK && rl_val(c->g, in)->rank != a->n)
        return fail_node(c, n, "perm of %" PRIu32 " for rank %" PRIu32, a->n, rl_val(c->g, in)->rank);
    return rl_is_permutation(a->ints, a->n, &c->tmp) ? RL_OK : fail_node(c, n, "perm is no permutation");
}

static rl_status check_attrs(checker *c, rl_node n) {
    const rl_nodeinfo *x = rl_nod(c->g, n);
    for (uint32_t i = 0; i < x->nattr; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (x->attr[i].name && x->attr[i].name == x->attr[j].name) return fail_node(c, n, "attribute %s twice", text(x->attr[i].name));
        if (x->attr[i].graph) RL_TRY(rl_verify(x->attr[i].graph));
    }
    return check_perm(c, n);
}

static rl_status check_nodes(checker *c) {
    const rl_graph *g = c->g;
    for (uint32_t k = 0; k < g->order.n; k++) {
        rl_node n = g->order.p[k];
        const rl_nodeinfo *x = rl_nod(g, n);
        for (uint32_t i = 0; i < x->nin; i++) RL_TRY(check_read(c, n, i, x->in[i]));
        for (uint32_t i = 0; i < x->ncap; i++) RL_TRY(check_read(c, n, x->nin + i, x->cap[i]));
        for (uint32_t i = 0; i < x->nout; i++) {
            if (!rl_has(x->out[i])) continue;
            if (x->out[i].i >= g->nval) return fail_node(c, n, "output %" PRIu32 " is no value", i);
            const rl_valinfo *v = rl_val(g, x->out[i]);
            if (v->def.i != n.i || v->port != i) return fail_node(c, n, "output '%s' is made elsewhere", text(v->name));
            if (v->is_input || v->is_outer) return fail_node(c, n, "makes '%s', which comes from outside", text(v->name));
        }
        RL_TRY(check_attrs(c, n));
    }
    return RL_OK;
}

static rl_status check_all(checker *c) {
    RL_TRY(check_order(c));
    RL_TRY(check_nodes(c));
    return check_values(c);
}

rl_status rl_verify(const rl_graph *g) {
    checker c = {.g = g};
    rl_arena_init(&c.tmp, g->ctx);
    c.place = rl_new(&c.tmp, uint32_t, g->nnode);
    c.reads = rl_new(&c.tmp, uint32_t, g->nval);
    rl_status s = check_all(&c);
    rl_arena_free(&c.tmp);
    return s;
}
