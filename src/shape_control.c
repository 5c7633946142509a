/* Shape rules of If, Loop and Scan: what holds in every turn of their bodies.
 *
 * A loop's carried values start with the types that enter it; where the body changes a dim, that dim is forgotten and the body
 * inferred again (at most ROUNDS times; then all are forgotten). */
#include "shape_rules.h"

enum { ROUNDS = 3, DEEP = 3 /* bodies this deep are inferred once */ };

static rl_graph *body_of(const rl_shaper *s, const char *name) {
    const rl_attr *a = rl_attr_find(s->n, name);
    return a ? a->graph : NULL;
}

/* What a and b have in common; dims in tmp. */
static rl_type common_type(const rl_shaper *s, rl_type a, rl_type b) {
    rl_type t = {a.dtype == b.dtype ? a.dtype : RL_UNDEF, RL_NORANK, NULL};
    if (a.rank != b.rank || a.rank == RL_NORANK) return t;
    rl_dim *d = rl_new(s->tmp, rl_dim, a.rank);
    for (uint32_t i = 0; i < a.rank; i++) d[i] = a.dim[i] == b.dim[i] ? a.dim[i] : UNKNOWN;
    t.rank = a.rank;
    t.dim = d;
    return t;
}

/* The branch that a constant condition takes, or NULL. */
static rl_graph *taken_branch(const rl_shaper *s, rl_graph *yes, rl_graph *no) {
    rl_cells t;
    if (!load(s, 0, &t) || t.n != 1 || t.cell[0].kind != CELL_INT) return NULL;
    return t.cell[0].num ? yes : no;
}

rl_status rl_rule_if(rl_shaper *s) {
    rl_graph *yes = body_of(s, "then_branch"), *no = body_of(s, "else_branch");
    if (!yes || !no) return rl_shape_fail(s, "has no %s", yes ? "else_branch" : "then_branch");
    RL_TRY(rl_shape_body(s, yes));
    const rl_type *yes_items = s->leaving;
    RL_TRY(rl_shape_body(s, no));
    const rl_type *no_items = s->leaving;
    if (yes->output.n != s->n->nout || no->output.n != s->n->nout)
        return rl_shape_fail(s, "branches have %u and %u outputs, wants %u", yes->output.n, no->output.n, s->n->nout);
    rl_graph *taken = taken_branch(s, yes, no);
    for (uint32_t i = 0; i < s->n->nout; i++) {
        const rl_valinfo *a = rl_val(yes, yes->output.p[i]), *b = rl_val(no, no->output.p[i]);
        if (taken) a = b = rl_val(taken, taken->output.p[i]);
        rl_type t = common_type(s, rl_type_of(a), rl_type_of(b));
        rl_cells content;
        RL_TRY(rl_shape_set(s, i, t.dtype, t.rank, t.dim));
        if (taken && rl_shape_load(s, a, &content)) rl_shape_store(s, i, &content);
        if (taken) rl_shape_share(s, i, a);
        rl_type x = yes_items ? yes_items[i] : RL_NOITEM, y = no_items ? no_items[i] : RL_NOITEM;
        rl_shape_set_item(s, rl_out(s->n, i), taken ? (taken == yes ? x : y) : rl_shape_common_item(s, x, y));
    }
    return RL_OK;
}

/* The types of all values of a body and of the bodies in it, as declared. */
typedef struct snapshot { rl_graph *g; rl_type *type; struct snapshot *next; } snapshot;

static snapshot *save_types(rl_arena *mem, rl_graph *g, snapshot *next) {
    snapshot *p = rl_new(mem, snapshot, 1);
    *p = (snapshot){g, rl_new(mem, rl_type, g->nval), next};
    for (uint32_t i = 0; i < g->nval; i++) p->type[i] = rl_type_of(&g->val[i]);
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; k < g->node[i].nattr; k++)
            if (g->node[i].attr[k].graph) p = save_types(mem, g->node[i].attr[k].graph, p);
    return p;
}

static void restore_types(const snapshot *p) {
    for (; p; p = p->next)
        for (uint32_t i = 0; i < p->g->nval; i++) {
            rl_valinfo *x = &p->g->val[i];
            x->dtype = p->type[i].dtype;
            x->rank = p->type[i].rank;
            x->dim = p->type[i].dim;
        }
}

/* A body that runs repeatedly: body inputs [at, at + n) are carried, from body outputs [out, out + n); fixed: no size
 * changes from turn to turn (Scan), so where two are declared differently they are the same.  open: [n] of which the body does not keep the sizes that it declares, as those of
 * the first turn are where an exporter looked at one.  item: [body's inputs] of sequences that are carried, the types of their elements. */
typedef struct { rl_graph *body; rl_type *in; uint32_t at, out, n; bool fixed, *open; rl_type *item; } repeat;

/* Does the body give carried value i other sizes than it declares, or maybe others?  True when that is news. */
static bool doubt_declared(const rl_shaper *s, const repeat *r, uint32_t i, rl_type out) {
    const rl_valinfo *x = rl_val(r->body, r->body->input.p[r->at + i]);
    const rl_type *in = &r->in[r->at + i];
    bool same = x->rank == out.rank;
    for (uint32_t k = 0; same && x->rank != RL_NORANK && k < x->rank; k++)
        same = x->dim[k] == out.dim[k] || rl_shape_open(s, x->dim[k]) || (in->rank == x->rank && in->dim[k] == x->dim[k]);
    if (r->fixed || r->open[i] || x->rank == RL_NORANK || same) return false;
    return r->open[i] = true;
}

/* Forgets what the body changes of carried type i; true when that is anything. */
static bool forget_change(const rl_shaper *s, const repeat *r, uint32_t i) {
    rl_type *in = &r->in[r->at + i], out = rl_type_of(rl_val(r->body, r->body->output.p[r->out + i]));
    bool changed = doubt_declared(s, r, i, out);
    if (in->rank == RL_NORANK) return changed;
    if (in->rank != out.rank) {
        in->rank = RL_NORANK;
        return true;
    }
    rl_dim *d = rl_new(s->tmp, rl_dim, in->rank);
    for (uint32_t k = 0; k < in->rank; k++) {
        rl_dim a = in->dim[k], b = out.dim[k];
        d[k] = a == b ? a : UNKNOWN;
        if (r->fixed && a != UNKNOWN && !rl_shape_unify(s, a, b, &d[k])) d[k] = UNKNOWN;
        changed |= d[k] != a;
    }
    in->dim = d;
    return changed;
}

static bool forget_changes(const rl_shaper *s, const repeat *r) {
    bool changed = false;
    for (uint32_t i = 0; i < r->n; i++) changed |= forget_change(s, r, i);
    return changed;
}

static bool same_type(rl_type a, rl_type b) {
    bool same = a.dtype == b.dtype && a.rank == b.rank;
    for (uint32_t i = 0; same && a.rank < RL_EMPTY_SEQUENCE && i < a.rank; i++) same = a.dim[i] == b.dim[i];
    return same;
}

/* What a turn puts into carried sequences; a size that is open in the body may be another one in each.  True when it is anything new. */
static bool join_items(rl_shaper *s, const repeat *r) {
    bool changed = false;
    for (uint32_t i = 0; i < r->n; i++) {
        rl_type *in = &r->item[r->at + i], out = s->leaving ? s->leaving[r->out + i] : RL_NOITEM;
        rl_dim *d = rl_new(s->tmp, rl_dim, out.rank < RL_EMPTY_SEQUENCE ? out.rank : 0);
        for (uint32_t k = 0; out.rank < RL_EMPTY_SEQUENCE && k < out.rank; k++) d[k] = out.dim[k] == UNKNOWN || rl_shape_open(s, out.dim[k]) ? UNKNOWN : out.dim[k];
        if (out.rank < RL_EMPTY_SEQUENCE) out.dim = d;
        rl_type t = rl_shape_common_item(s, *in, out);
        changed |= !same_type(t, *in);
        *in = t;
    }
    return changed;
}

static void forget_carried(const repeat *r) {
    for (uint32_t i = 0; i < r->n; i++) {
        r->in[r->at + i].rank = RL_NORANK;
        r->item[r->at + i] = RL_NOITEM;
        r->open[i] = !r->fixed;
    }
}

/* The type of input i in every turn; what the body declares tells more, unless that is open. */
static void set_input(rl_shaper *s, const repeat *r, uint32_t i) {
    rl_graph *b = r->body;
    rl_type t = r->in[i];
    if (i < r->at || i >= r->at + r->n || !r->open[i - r->at]) {
        rl_shape_set_type(s, b, b->input.p[i], t.dtype, t.rank, t.dim);
        return;
    }
    rl_dim *d = rl_new(s->tmp, rl_dim, t.rank == RL_NORANK ? 0 : t.rank);
    for (uint32_t k = 0; t.rank != RL_NORANK && k < t.rank; k++) d[k] = t.dim[k] == UNKNOWN ? rl_dim_fresh(s->ctx) : t.dim[k];
    rl_graph_set_type(b, b->input.p[i], t.dtype == RL_UNDEF ? rl_val(b, b->input.p[i])->dtype : t.dtype, t.rank, d);
}

/* Infers the body; r->in becomes types that hold in every turn. */
static rl_status infer_repeat(rl_shaper *s, repeat *r) {
    rl_graph *b = r->body;
    const snapshot *declared = s->depth < DEEP ? save_types(s->tmp, b, NULL) : NULL;
    bool doubtful = false; /* a contradiction in the first turn stays one, whatever holds in every turn */
    r->open = rl_new(s->tmp, bool, r->n);
    if (!declared) forget_carried(r);
    for (int round = 0;; round++) {
        if (round) restore_types(declared);
        if (round == ROUNDS) forget_carried(r);
        for (uint32_t i = 0; i < b->input.n; i++) set_input(s, r, i);
        s->entering = r->item;
        RL_TRY(rl_shape_body(s, b));
        b->doubtful = doubtful |= b->doubtful;
        bool changed = join_items(s, r);
        if ((!forget_changes(s, r) && !changed) || round == ROUNDS) return RL_OK;
    }
}

/* Output `port` of the node collects output `k` of the body's turns: their type with size `turns` inserted at `axis`, behind
 * `lead` sizes of its own. */
static rl_status set_collected(rl_shaper *s, uint32_t port, const repeat *r, uint32_t k, rl_dim turns, int64_t axis, const rl_dim *lead) {
    const rl_valinfo *x = rl_val(r->body, r->body->output.p[k]);
    if (!ranked(x)) return rl_shape_set(s, port, x->dtype, RL_NORANK, NULL);
    uint32_t rank = x->rank + 1, n = 0;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return rl_shape_fail(s, "axis of output %u is out of range for rank %u", port, rank);
    rl_dim *d = rl_new(s->tmp, rl_dim, rank + 1);
    if (lead) d[n++] = *lead;
    for (uint32_t i = 0; i < rank; i++) {
        rl_dim y = i == axis ? turns : x->dim[i - (i > axis)];
        d[n++] = i != axis && rl_shape_open(s, y) ? UNKNOWN : y;
    }
    return rl_shape_set(s, port, x->dtype, n, d);
}

/* Does the body keep the loop going?  Its condition is constant true, or the one it was given. */
static bool goes_on(const rl_graph *b) {
    const rl_valinfo *c = rl_val(b, b->output.p[0]);
    const rl_nodeinfo *def = c->def.i == RL_NONE ? NULL : rl_nod(b, c->def);
    if (rl_same(b->output.p[0], b->input.p[1])) return true;
    if (def && def->op == RL_OP_Identity && rl_same(rl_in(def, 0), b->input.p[1])) return true;
    return c->data && c->data->data && c->data->nbyte == 1 && *(const char *)c->data->data;
}

static bool is_true(const rl_shaper *s, uint32_t i) {
    rl_cells t;
    return !input(s, i) || (load(s, i, &t) && t.n == 1 && t.cell[0].kind == CELL_INT && t.cell[0].num);
}

static rl_dim loop_turns(const rl_shaper *s, const rl_graph *b) {
    rl_cells t;
    if (!load(s, 0, &t) || t.n != 1 || !is_true(s, 1) || !goes_on(b)) return UNKNOWN;
    return t.cell[0].kind == CELL_INT && t.cell[0].num < 0 ? 0 : size_of(s, t.cell[0]);
}

static rl_type *no_items(const rl_shaper *s, uint32_t n) {
    rl_type *t = rl_new(s->tmp, rl_type, n);
    for (uint32_t i = 0; i < n; i++) t[i] = RL_NOITEM;
    return t;
}

rl_status rl_rule_loop(rl_shaper *s) {
    rl_graph *b = body_of(s, "body");
    uint32_t n = RL_MAX(s->n->nin, 2U) - 2;
    if (!b) return rl_shape_fail(s, "has no body");
    if (b->input.n != n + 2 || b->output.n < n + 1 || b->output.n - 1 < s->n->nout)
        return rl_shape_fail(s, "body has %u inputs and %u outputs, wants %u and %u", b->input.n, b->output.n, n + 2, s->n->nout + 1);
    repeat r = {b, rl_new(s->tmp, rl_type, n + 2), 2, 1, n, false, NULL, no_items(s, n + 2)};
    r.in[0] = (rl_type){RL_I64, 0, NULL};
    r.in[1] = (rl_type){RL_BOOL, 0, NULL};
    for (uint32_t i = 0; i < n; i++) r.in[2 + i] = rl_type_of(input(s, 2 + i));
    for (uint32_t i = 0; i < n; i++) r.item[2 + i] = rl_shape_item(s, rl_in(s->n, 2 + i));
    RL_TRY(infer_repeat(s, &r));
    for (uint32_t i = 0; i < n; i++) rl_shape_set_item(s, rl_out(s->n, i), r.item[2 + i]);
    for (uint32_t i = 0; i < n; i++) RL_TRY(rl_shape_set(s, i, r.in[2 + i].dtype, r.in[2 + i].rank, r.in[2 + i].dim));
    rl_dim turns = n < s->n->nout ? loop_turns(s, b) : UNKNOWN;
    for (uint32_t i = n; i < s->n->nout; i++) RL_TRY(set_collected(s, i, &r, i + 1, turns, 0, NULL));
    return RL_OK;
}

static int64_t list_int(const rl_shaper *s, const char *name, uint32_t i) {
    const rl_attr *a = rl_attr_find(s->n, name);
    return a && a->kind == RL_ATTR_INTS && i < a->n ? a->ints[i] : 0;
}

/* The type of one slice of scan input i; adds to what is known of the number of slices. */
static rl_status scanned_type(rl_shaper *s, uint32_t i, int64_t axis, uint32_t lead, rl_type *t, rl_dim *turns) {
    *t = rl_type_of(input(s, i));
    if (t->rank == RL_NORANK) return RL_OK;
    if (axis < 0) axis += t->rank;
    if (axis < 0 || axis >= t->rank || t->rank <= lead) return rl_shape_fail(s, "input %u has rank %u, wants more", i, t->rank);
    if (!rl_shape_unify(s, *turns, t->dim[axis], turns)) return rl_shape_fail(s, "inputs are scanned along different sizes");
    rl_dim *d = rl_new(s->tmp, rl_dim, t->rank);
    uint32_t n = 0;
    for (uint32_t k = lead; k < t->rank; k++)
        if (k != axis) d[n++] = t->dim[k];
    *t = (rl_type){t->dtype, n, d};
    return RL_OK;
}

/* Opset 8's Scan has sequence_lens before the other inputs, and a batch dim before all others. */
rl_status rl_rule_scan(rl_shaper *s) {
    rl_graph *b = body_of(s, "body");
    uint32_t old = s->n->since < 9, nin = s->n->nin, nout = s->n->nout;
    int64_t m = rl_attr_int(s->n, "num_scan_inputs", 0);
    if (!b || m < 1 || m > nin - RL_MIN(old, nin)) return rl_shape_fail(s, "has no body, or no fitting num_scan_inputs");
    uint32_t n = nin - old - (uint32_t)m;
    if (b->input.n != nin - old || b->output.n != nout || nout < n)
        return rl_shape_fail(s, "body has %u inputs and %u outputs, wants %u and %u", b->input.n, b->output.n, nin - old, nout);
    repeat r = {b, rl_new(s->tmp, rl_type, b->input.n), 0, 0, n, true, NULL, no_items(s, b->input.n)};
    rl_dim turns = UNKNOWN, batch = UNKNOWN;
    for (uint32_t i = 0; i < n; i++) {
        r.in[i] = rl_type_of(input(s, old + i));
        if (!old || r.in[i].rank == RL_NORANK || r.in[i].rank == 0) continue;
        batch = *r.in[i].dim++;
        r.in[i].rank--;
    }
    for (uint32_t i = n; i < b->input.n; i++) {
        const rl_valinfo *x = input(s, old + i);
        if (old && ranked(x) && x->rank) batch = x->dim[0];
        RL_TRY(scanned_type(s, old + i, old ? 1 : list_int(s, "scan_input_axes", i - n), old, &r.in[i], &turns));
    }
    RL_TRY(infer_repeat(s, &r));
    for (uint32_t i = 0; i < n; i++) {
        rl_type t = r.in[i];
        rl_dim *d = rl_new(s->tmp, rl_dim, t.rank == RL_NORANK ? 1 : t.rank + 1);
        d[0] = batch;
        for (uint32_t k = 0; t.rank != RL_NORANK && k < t.rank; k++) d[k + old] = t.dim[k];
        RL_TRY(rl_shape_set(s, i, t.dtype, t.rank == RL_NORANK ? t.rank : t.rank + old, d));
    }
    for (uint32_t i = n; i < nout; i++)
        RL_TRY(set_collected(s, i, &r, i, turns, old ? 0 : list_int(s, "scan_output_axes", i - n), old ? &batch : NULL));
    return RL_OK;
}
