/* Compute what is constant; write it out where that takes nodes away.
 * Needs: order, types, contents (shape.h).  Keeps: order, types, contents.  Breaks: nothing.
 *
 * What constants alone determine gets its data (eval.h), for the passes that follow; the nodes that compute it stay, except:
 *
 *   Shape(x), Gather, Concat -> s {1,12,64}        s becomes an initializer; the nodes go when nobody else reads them
 *   W -> Reshape -> Transpose -> y                 y becomes an initializer: W's bytes, permuted
 *   W -> DequantizeLinear -> Transpose -> y        permuted W -> DequantizeLinear, its axis moved along -> y
 *   W -> Transpose -> MatMul V -> Softmax -> y     y becomes an initializer: a cone of computed constants in which data moves
 *
 * What is written out could be larger than what it is made from.  So of shape arithmetic only 64 elements are; what comes out of
 * a cone is small (64 KiB), or is paid for: by the bytes of the constants that go into it, each byte once, and what they lack by a
 * sixteenth of all constants' bytes, which is there once; or it is equal to another one that is.  A permuted constant never is larger.
 * Equal ones are shared.  The bytes that were permuted stay where someone else reads them.  What cones take to compute has a limit (eval.h); where cones were folded within it others may follow, with a limit of their
 * own, so that not much is left for a second run of the program to find. */
#include "pass.h"

#include <string.h>

#include "../src/eval.h"
#include "../src/ops.h"
#include "../src/permute.h"
#include "movement.h"

#define SMALL 64              /* elements of shape arithmetic */
#define FREE 65536            /* bytes that a computed constant may have without being paid for */
#define PURSE 16              /* the share of all constants that what is written out may have more than they pay for */
#define MAXSTEP (1u << 22)    /* edges of cones walked */
#define MAXROUND 4            /* times that the limit of eval.h is spent on cones */

typedef struct { const rl_const *from, *to; const int64_t *perm; rl_value v; } permuted; /* v: the value that holds `to` */
typedef struct {
    rl_graph *g;
    rl_arena *tmp;
    bool *dead; /* [nnode] */
    struct { rl_value *p; uint32_t n, cap; } made; /* outputs of dead nodes that become initializers */
    struct { permuted *p; uint32_t n, cap; } done;
    struct { rl_node *p; uint32_t n, cap; } transposes;
    rl_hash *written; /* initializers that were made, by their contents */
    size_t *purse;    /* bytes that those of constants may lack, in all */
} folder;

static bool is_integer_or_bool(rl_dtype t) {
    return t == RL_I64 || t == RL_I32 || t == RL_BOOL;
}

static size_t elements(const rl_const *c) {
    size_t n = 1;
    for (uint32_t i = 0; i < c->rank; i++) n *= (size_t)c->dim[i];
    return n;
}

/* ---- shape arithmetic ---- */

/* What a graph or a body ends in stays what a node makes. */
static bool is_result(const rl_graph *g, const rl_valinfo *v) {
    for (uint32_t i = 0; i < v->nuse; i++)
        if (rl_nod(g, v->use[i].node)->op == RL_OP_LEAVE) return true;
    return v->is_output;
}

static bool is_known(const folder *f, const rl_nodeinfo *n) {
    if (n->op == RL_OP_Constant || n->op >= RL_OP_OPAQUE || n->ncap || n->nin == 0) return false;
    for (uint32_t i = 0; i < n->nout; i++) {
        if (!rl_has(n->out[i])) continue;
        const rl_valinfo *v = rl_val(f->g, n->out[i]);
        if (!v->data || !v->data->data || is_result(f->g, v) || !is_integer_or_bool(v->data->dtype) || elements(v->data) > SMALL) return false;
    }
    return n->nout > 0;
}

/* Readers first, so that only what a node that stays reads is written out. */
static void fold_known(folder *f) {
    const rl_graph *g = f->g;
    for (uint32_t k = g->order.n; k-- > 0;) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k]);
        if (!is_known(f, n)) continue;
        f->dead[g->order.p[k].i] = true;
        for (uint32_t i = 0; i < n->nout; i++) {
            const rl_valinfo *v = rl_has(n->out[i]) ? rl_val(g, n->out[i]) : NULL;
            bool read = false;
            for (uint32_t u = 0; v && u < v->nuse; u++) read |= !f->dead[v->use[u].node.i];
            if (read) rl_push(f->tmp, f->made, n->out[i]);
        }
    }
}

/* ---- Transposes of constants ---- */

/* The constant that v is a view of, with v's own dims. */
static const rl_const *source(const folder *f, rl_value v) {
    rl_value s = v;
    while (!rl_eval_constant(f->g, s)) {
        rl_node d = rl_val(f->g, s)->def;
        if (d.i == RL_NONE || !rl_move_is_view(rl_nod(f->g, d)->op) || !rl_has(rl_in(rl_nod(f->g, d), 0))) return NULL;
        s = rl_nod(f->g, d)->in[0];
    }
    const rl_const *c = rl_eval_constant(f->g, s);
    const rl_valinfo *x = rl_val(f->g, v);
    if (x->rank == RL_NORANK || rl_dtype_bits(c->dtype) == 0) return NULL;
    rl_const *view = rl_new(f->tmp, rl_const, 1);
    *view = *c;
    view->rank = x->rank;
    view->dim = x->dim;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!rl_dim_known(x->dim[i])) return NULL;
    return elements(view) == elements(c) ? view : NULL;
}

/* The permutation of a Transpose, or of a default one; false when it is none of this rank. */
static bool perm_of(const rl_nodeinfo *n, uint32_t rank, int64_t *perm) {
    const rl_attr *a = rl_attr_ints(n, "perm");
    uint64_t seen = 0;
    if (rank > RL_PERMUTE_MAXRANK || (a && a->n != rank)) return false;
    for (uint32_t i = 0; i < rank; i++) {
        perm[i] = a ? a->ints[i] : (int64_t)(rank - 1 - i);
        if (perm[i] < 0 || perm[i] >= (int64_t)rank || (seen >> perm[i] & 1)) return false;
        seen |= (uint64_t)1 << perm[i];
    }
    return true;
}

static bool same_const(const rl_const *a, const rl_const *b) {
    return a->data == b->data && a->nbyte == b->nbyte && a->dtype == b->dtype && a->rank == b->rank &&
           rl_same_bytes(a->dim, b->dim, a->rank * sizeof *a->dim);
}

/* The constant with its dims permuted, in the graph's memory. The result holds until the next call. */
static permuted *permute(folder *f, const rl_const *c, const int64_t *perm) {
    for (uint32_t i = 0; i < f->done.n; i++) {
        permuted *d = &f->done.p[i];
        if (same_const(d->from, c) && rl_same_bytes(d->perm, perm, c->rank * sizeof *perm)) return d;
    }
    uint32_t p[RL_PERMUTE_MAXRANK];
    int64_t dim[RL_PERMUTE_MAXRANK];
    for (uint32_t i = 0; i < c->rank; i++) {
        p[i] = (uint32_t)perm[i];
        dim[i] = c->dim[p[i]];
    }
    void *data = rl_alloc(&f->g->mem, RL_MAX(c->nbyte, 1u));
    rl_permute(data, c->data, c->rank, c->dim, p, rl_dtype_bits(c->dtype));
    rl_const *r = rl_new(&f->g->mem, rl_const, 1);
    *r = (rl_const){.dtype = c->dtype, .rank = c->rank, .data = data, .nbyte = c->nbyte};
    r->dim = rl_copy(&f->g->mem, dim, c->rank * sizeof *dim);
    permuted d = {c, r, rl_copy(f->tmp, perm, c->rank * sizeof *perm), RL_NOVALUE};
    rl_push(f->tmp, f->done, d);
    return &f->done.p[f->done.n - 1];
}

static bool is_captured(const rl_graph *g, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    for (uint32_t i = 0; i < x->nuse; i++)
        if (x->use[i].slot >= rl_nod(g, x->use[i].node)->nin) return true;
    return false;
}

static void fold_transpose(folder *f, rl_node n) {
    const rl_nodeinfo *x = rl_nod(f->g, n);
    int64_t perm[RL_PERMUTE_MAXRANK] = {0};
    if (x->op != RL_OP_Transpose || x->nin != 1 || x->nout != 1 || f->dead[n.i] || !rl_has(x->in[0]) || !rl_has(x->out[0])) return;
    if (rl_val(f->g, x->out[0])->is_output) return;
    const rl_const *c = source(f, x->in[0]);
    if (!c || !perm_of(x, c->rank, perm)) return;
    rl_value y = x->out[0];
    permuted *d = permute(f, c, perm);
    f->dead[n.i] = true;
    if (rl_has(d->v) && !is_captured(f->g, y)) {
        rl_graph_replace_uses(f->g, y, d->v);
        return;
    }
    rl_val(f->g, y)->data = d->to; /* now, so that a Transpose further down finds it */
    rl_push(f->tmp, f->made, y);
    if (!rl_has(d->v)) d->v = y;
}

/* ---- the edit for all that become initializers ---- */

static void make_initializers(folder *f) {
    rl_graph *g = f->g;
    uint64_t key;
    rl_graph_remove_all(g, f->dead);
    for (uint32_t i = 0; i < f->made.n; i++) {
        rl_valinfo *v = rl_val(g, f->made.p[i]);
        if (v->nuse == 0) continue; /* every reader went too */
        rl_value twin = rl_graph_twin(g, f->written, f->made.p[i], &key);
        if (rl_has(twin) && !is_captured(g, f->made.p[i])) {
            rl_graph_replace_uses(g, f->made.p[i], twin);
            continue;
        }
        if (!rl_has(twin)) rl_hash_put(f->written, key, f->made.p[i].i);
        v->is_init = true;
        v->raw = (rl_span){0};
        rl_push(&g->mem, g->init, f->made.p[i]);
    }
}

/* ---- DequantizeLinear of a constant ---- */

/* What a Transpose of the node's output would permute: its input alone, or scale and zero point with it where they have a
 * block of the input each. */
static uint32_t permuted_inputs(const folder *f, const rl_nodeinfo *dq) {
    if (rl_attr_int(dq, "block_size", 0) == 0) return 1;
    uint32_t n = dq->nin;
    while (n > 1 && !rl_has(dq->in[n - 1])) n--;
    for (uint32_t i = 1; i < n; i++)
        if (!source(f, dq->in[i])) return 0;
    return n;
}

static rl_node dequantizer(const folder *f, rl_node t) {
    const rl_nodeinfo *x = rl_nod(f->g, t);
    if (x->op != RL_OP_Transpose || x->nin != 1 || !rl_has(x->in[0])) return RL_NONODE;
    const rl_valinfo *v = rl_val(f->g, x->in[0]);
    if (v->def.i == RL_NONE || v->nuse != 1 || v->is_output) return RL_NONODE;
    const rl_nodeinfo *dq = rl_nod(f->g, v->def);
    bool known = (dq->op == RL_OP_DequantizeLinear || dq->op == RL_OP_ms_DequantizeLinear) && dq->nin >= 2 && rl_has(dq->in[1]);
    return known && source(f, dq->in[0]) ? v->def : RL_NONODE;
}

/* The node's attributes with axis moved to where perm puts it. */
static rl_attr *moved_axis(folder *f, const rl_nodeinfo *dq, const int64_t *perm, uint32_t rank, uint32_t *nattr) {
    rl_attr *a = rl_new(f->tmp, rl_attr, dq->nattr + 1);
    uint32_t axis, to = 0, n = 0;
    bool has = rl_op_axis(f->g, dq, &axis); /* not before opset 13; not when a scalar scale has none */
    for (uint32_t i = 0; i < dq->nattr; i++)
        if (!has || !dq->attr[i].name || strcmp(dq->attr[i].name, "axis") != 0) a[n++] = dq->attr[i];
    while (has && to < rank && perm[to] != (int64_t)axis) to++;
    if (has) a[n++] = rl_attr_of_int(f->g, "axis", to);
    *nattr = n;
    return a;
}

static void fold_dequantized(folder *f, rl_node t, rl_node d) {
    rl_graph *g = f->g;
    rl_nodeinfo was = *rl_nod(g, d);
    rl_value y = rl_nod(g, t)->out[0];
    uint32_t nmove = permuted_inputs(f, &was), nattr, rank = rl_val(g, was.in[0])->rank;
    int64_t perm[RL_PERMUTE_MAXRANK] = {0};
    if (nmove == 0 || was.nout != 1 || rank == RL_NORANK || !perm_of(rl_nod(g, t), rank, perm)) return;
    for (uint32_t i = 0; i < nmove; i++)
        if (source(f, was.in[i])->rank != rank) return;
    rl_value *in = rl_copy(f->tmp, was.in, was.nin * sizeof *in);
    for (uint32_t i = 0; i < nmove; i++) {
        const rl_const *c = permute(f, source(f, was.in[i]), perm)->to;
        rl_str name = rl_val(g, was.in[i])->name;
        in[i] = rl_graph_const(g, rl_graph_fresh_name(g, name ? name : "weight"), c->dtype, c->rank, c->dim, c->data, c->nbyte);
    }
    rl_attr *attr = moved_axis(f, &was, perm, rank, &nattr);
    rl_graph_remove(g, t);
    rl_graph_remove(g, d);
    rl_node n = rl_graph_add(g, was.op, was.name, was.nin, in, 1, &y);
    rl_graph_set_attrs(g, n, attr, nattr);
    rl_nod(g, n)->origin = was.origin;
}

static rl_status fold_all_dequantized(folder *f) {
    rl_graph *g = f->g;
    struct { rl_node *p; uint32_t n, cap; } found = {0};
    for (uint32_t i = 0; i < f->transposes.n; i++)
        if (dequantizer(f, f->transposes.p[i]).i != RL_NONE) rl_push(f->tmp, found, f->transposes.p[i]);
    for (uint32_t i = 0; i < found.n; i++) {
        rl_node d = dequantizer(f, found.p[i]);
        if (d.i != RL_NONE) fold_dequantized(f, found.p[i], d);
    }
    return found.n ? rl_graph_sort(g) : RL_OK;
}

/* ---- cones of computed constants ---- */

typedef struct {
    folder *f;
    bool *known;      /* [nnode] computes from constants */
    bool *moves;      /* [nnode] ... and a Transpose that moves data is among what it comes from */
    bool *stuck;      /* [nnode] ... and something that comes from it cannot be written out */
    size_t *left;     /* [nval] bytes of a constant that have not paid for anything */
    rl_hash paid;     /* what was paid for, by its content */
    uint32_t *seen;   /* [nnode] the last walk that came by */
    uint32_t nwalk, nstep;
    struct { rl_node *p; uint32_t n, cap; } stack;
} cones;

static bool is_known_value(const cones *c, rl_value v) {
    rl_node d = rl_has(v) ? rl_val(c->f->g, v)->def : RL_NONODE;
    return d.i != RL_NONE && c->known[d.i];
}

static bool compute(cones *c, rl_eval_limit *limit) {
    rl_graph *g = c->f->g;
    bool any = false;
    for (uint32_t k = 0; k < g->order.n; k++) {
        rl_node n = g->order.p[k];
        const rl_nodeinfo *x = rl_nod(g, n);
        c->known[n.i] = rl_eval_node(g, n, limit);
        if (!c->known[n.i]) continue;
        c->moves[n.i] = rl_transpose_bytes(g, x) > 0;
        for (uint32_t i = 0; i < x->nin; i++) c->moves[n.i] |= is_known_value(c, x->in[i]) && c->moves[rl_val(g, x->in[i])->def.i];
        any |= c->moves[n.i];
    }
    return any;
}

/* The constants that v is computed from, each once. */
static void find_constants(cones *c, rl_value v, rl_value **found, uint32_t *nfound) {
    const rl_graph *g = c->f->g;
    struct { rl_value *p; uint32_t n, cap; } leaf = {0};
    c->nwalk++;
    c->stack.n = 0;
    rl_push(c->f->tmp, c->stack, rl_val(g, v)->def);
    while (c->stack.n) {
        const rl_nodeinfo *x = rl_nod(g, c->stack.p[--c->stack.n]);
        for (uint32_t i = 0; i < x->nin && c->nstep < MAXSTEP; i++, c->nstep++) {
            if (!rl_has(x->in[i]) || rl_gives_type(x, i)) continue;
            rl_node d = rl_val(g, x->in[i])->def;
            if (!is_known_value(c, x->in[i])) rl_push(c->f->tmp, leaf, x->in[i]);
            else if (c->seen[d.i] != c->nwalk) {
                c->seen[d.i] = c->nwalk;
                rl_push(c->f->tmp, c->stack, d);
            }
        }
    }
    *found = leaf.p;
    *nfound = leaf.n;
}

static bool is_paid(cones *c, rl_value v, size_t price) {
    rl_value *leaf;
    uint32_t n;
    find_constants(c, v, &leaf, &n);
    size_t *was = rl_new(c->f->tmp, size_t, n);
    for (uint32_t i = 0; i < n; i++) {
        size_t pays = RL_MIN(price, c->left[leaf[i].i]);
        was[i] = c->left[leaf[i].i];
        c->left[leaf[i].i] -= pays;
        price -= pays;
    }
    if (price <= *c->f->purse) {
        *c->f->purse -= price;
        return true;
    }
    for (uint32_t i = n; i-- > 0;) c->left[leaf[i].i] = was[i]; /* of a leaf that is there twice, what it had first comes last */
    return false;
}

/* Does a node that is not of a cone read it? */
static bool is_read_outside(const cones *c, rl_value v) {
    const rl_valinfo *x = rl_val(c->f->g, v);
    for (uint32_t u = 0; u < x->nuse; u++)
        if (!c->known[x->use[u].node.i]) return true;
    return false;
}

static bool is_stuck(cones *c, rl_value v) {
    const rl_valinfo *x = rl_val(c->f->g, v);
    if (x->is_output) return true;
    for (uint32_t u = 0; u < x->nuse; u++)
        if (c->known[x->use[u].node.i] && c->stuck[x->use[u].node.i]) return true;
    const rl_graph *g = c->f->g;
    uint64_t key;
    if (!is_read_outside(c, v) || x->data->nbyte <= FREE) return false;
    if (rl_has(rl_graph_twin(g, c->f->written, v, &key)) || rl_has(rl_graph_twin(g, &c->paid, v, &key))) return false;
    if (!is_paid(c, v, x->data->nbyte)) return true;
    rl_hash_put(&c->paid, key, v.i);
    return false;
}

/* A Transpose goes where all that comes from it can be written out; with it goes everything down to there.  Is there more to do, as
 * the limit was spent before all was computed? */
static bool fold_cones(folder *f) {
    const rl_graph *g = f->g;
    cones c = {.f = f, .known = rl_new(f->tmp, bool, g->nnode), .moves = rl_new(f->tmp, bool, g->nnode), .paid = {.mem = f->tmp}};
    rl_eval_limit limit = RL_EVAL_LIMIT;
    if (!compute(&c, &limit)) return false;
    c.stuck = rl_new(f->tmp, bool, g->nnode);
    c.seen = rl_new(f->tmp, uint32_t, g->nnode);
    c.left = rl_new(f->tmp, size_t, g->nval);
    for (uint32_t v = 0; v < g->nval; v++) c.left[v] = g->val[v].data ? g->val[v].data->nbyte : 0;
    for (uint32_t k = g->order.n; k-- > 0;) {
        rl_node n = g->order.p[k];
        const rl_nodeinfo *x = rl_nod(g, n);
        for (uint32_t i = 0; i < x->nout && c.moves[n.i] && !c.stuck[n.i]; i++)
            c.stuck[n.i] = rl_has(x->out[i]) && is_stuck(&c, x->out[i]);
    }
    for (uint32_t k = 0; k < g->order.n; k++) {
        rl_node n = g->order.p[k];
        const rl_nodeinfo *x = rl_nod(g, n);
        if (!c.moves[n.i]) continue;
        f->dead[n.i] = !c.stuck[n.i] && rl_transpose_bytes(g, x) > 0;
        for (uint32_t i = 0; i < x->nin; i++) f->dead[n.i] |= is_known_value(&c, x->in[i]) && f->dead[rl_val(g, x->in[i])->def.i];
        for (uint32_t i = 0; i < x->nout && f->dead[n.i]; i++)
            if (rl_has(x->out[i]) && is_read_outside(&c, x->out[i])) rl_push(f->tmp, f->made, x->out[i]);
    }
    make_initializers(f);
    return limit.spent && f->made.n;
}

/* For another look at the graph as it is now; what was written and paid for stays. */
static folder next_round(const folder *f) {
    return (folder){.g = f->g, .tmp = f->tmp, .dead = rl_new(f->tmp, bool, f->g->nnode), .written = f->written, .purse = f->purse};
}

/* Each round has a limit of its own, as a second run of the program would. */
static void fold_all_cones(const folder *all) {
    for (uint32_t round = 0; round < MAXROUND; round++) {
        folder f = next_round(all);
        if (!fold_cones(&f)) return;
    }
}

/* The contents of some small tensors are known only now, as cones were computed: those that hang on what shapes do not, as masks do. */
static void fold_computed(const folder *all) {
    folder f = next_round(all);
    fold_known(&f);
    make_initializers(&f);
}

static size_t constant_bytes(const rl_graph *g) {
    size_t n = 0;
    for (uint32_t i = 0; i < g->init.n; i++) n += rl_val(g, g->init.p[i])->data ? rl_val(g, g->init.p[i])->data->nbyte : 0;
    return n;
}

rl_status rl_pass_fold(rl_pass_run *r) {
    rl_hash written = {.mem = r->tmp};
    size_t purse = constant_bytes(r->g) / PURSE;
    folder f = {.g = r->g, .tmp = r->tmp, .dead = rl_new(r->tmp, bool, r->g->nnode), .written = &written, .purse = &purse};
    for (uint32_t k = 0; k < r->g->order.n; k++)
        if (rl_nod(r->g, r->g->order.p[k])->op == RL_OP_Transpose) rl_push(r->tmp, f.transposes, r->g->order.p[k]);
    fold_known(&f);
    for (uint32_t k = 0; k < f.transposes.n; k++) fold_transpose(&f, f.transposes.p[k]);
    make_initializers(&f);
    RL_TRY(fold_all_dequantized(&f));
    fold_all_cones(&f);
    fold_computed(&f);
    return rl_pass_dce(r);
}
