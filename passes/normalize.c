/* Give movement its own name.
 * Needs: order, types.  Keeps: order, types.  Breaks: nothing.
 *
 *   x -> Einsum "nhwc->nchw" -> y      becomes   x -> Transpose perm=[0,3,1,2] -> y
 *   x[1,8,13] -> Resize to 1,8,13 -> y becomes   x -> Identity -> y
 *   x f32 -> Cast to f32 -> y         becomes   x -> Identity -> y
 *   x, e[2,0,4] -> Concat axis=1 -> y becomes   x -> Identity -> y
 *   x[6,6,N] -> GatherND {{1,0},{2,1}} -> y becomes   x -> Reshape [36,N] -> Gather {6,13} -> y[2,N]
 *   x[6,N], a, b -> ScatterND {0,2,4} of a, then {1,3,5} of b -> y becomes   a, b -> Reshape [3,1,N] -> Concat axis=1 -> Reshape -> y
 *
 * An equation of one operand whose output has each of its letters once only moves data.  An ellipsis stands for the dims
 * that the letters leave over; without "->" the output is the letters in alphabetical order, as in NumPy.
 *
 * A GatherND of indices that are constants, or computed of such, takes whole rows, but only of the first dims, so that exporters put a Transpose before it; a Gather takes them
 * along any dim.  So does one of indices that the model computes, if each is a place in the first dim.  One of what no Transpose makes is left as it is.
 *
 * ScatterNDs that write every row, one behind the other, as exporters write x[:, ::2] = a; x[:, 1::2] = b, leave nothing of x: they join what they
 * write, and a Concat does so along any dim.
 *
 * Nothing else needs a new name: the layout passes read Reshape, Squeeze, Unsqueeze, Flatten and Identity as they are, and
 * see themselves that a Transpose of dims of size 1 moves nothing.  DepthToSpace and SpaceToDepth stay: runtimes have one
 * kernel for them, and Reshape, Transpose, Reshape would count the same.
 *
 * Nodes that reach no output are dropped first, so that they demand nothing. */
#include "pass.h"

#include <stdlib.h>
#include <string.h>

#include "../src/equation.h"
#include "../src/eval.h"
#include "../src/ops.h"

static bool is_permutation(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp, const int64_t **perm, uint32_t *rank) {
    rl_equation e;
    if (n->op != RL_OP_Einsum || n->nin != 1 || !rl_equation_read(g, n, tmp, &e) || e.rank[0] != e.rank[1]) return false;
    int64_t *p = rl_new(tmp, int64_t, e.rank[1] + 1);
    for (uint32_t i = 0; i < e.rank[1]; i++) /* as many letters, none twice in the result: none twice in the input */
        p[i] = (const uint8_t *)memchr(e.letter[0], e.letter[1][i], e.rank[0]) - e.letter[0];
    *perm = p;
    *rank = e.rank[1];
    return true;
}

static void make_transpose(rl_graph *g, rl_node old, const int64_t *perm, uint32_t rank) {
    rl_nodeinfo was = *rl_nod(g, old);
    rl_value x = was.in[0], y = was.out[0];
    rl_graph_remove(g, old);
    rl_node t = rl_graph_add(g, RL_OP_Transpose, was.name, 1, &x, 1, &y);
    rl_attr a = rl_attr_of_ints(g, "perm", perm, rank);
    rl_graph_set_attrs(g, t, &a, 1);
    rl_nod(g, t)->origin = was.origin;
}

rl_status rl_normalize_einsums(rl_pass_run *r) {
    rl_graph *g = r->g;
    struct { rl_node *p; uint32_t n, cap; } found = {0};
    const int64_t *perm;
    uint32_t rank;
    for (uint32_t i = 0; i < g->order.n; i++)
        if (is_permutation(g, rl_nod(g, g->order.p[i]), r->tmp, &perm, &rank)) rl_push(r->tmp, found, g->order.p[i]);
    for (uint32_t i = 0; i < found.n; i++)
        if (is_permutation(g, rl_nod(g, found.p[i]), r->tmp, &perm, &rank)) make_transpose(g, found.p[i], perm, rank);
    return found.n ? rl_graph_sort(g) : RL_OK;
}

/* A Resize to the sizes that its input has reads every element where it is, whatever its mode. */
static bool resizes_nothing(const rl_graph *g, const rl_nodeinfo *n) {
    if (n->op != RL_OP_Resize || n->since < 11 || n->nout != 1 || !rl_has(rl_in(n, 0)) || !rl_has(rl_in(n, 3))) return false;
    if (!rl_op_stretches(n)) return false;
    const rl_valinfo *x = rl_val(g, n->in[0]), *y = rl_val(g, n->out[0]);
    if (x->rank == RL_NORANK || x->rank != y->rank || x->dtype == RL_UNDEF || x->dtype != y->dtype) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!rl_dim_known(x->dim[i]) || x->dim[i] == 0 || x->dim[i] != y->dim[i]) return false;
    return true;
}

static bool casts_nothing(const rl_graph *g, const rl_nodeinfo *n) {
    if (n->op != RL_OP_Cast || n->nout != 1 || !rl_has(rl_in(n, 0))) return false;
    rl_dtype x = rl_val(g, n->in[0])->dtype;
    return x != RL_UNDEF && x == rl_attr_dtype(n, "to", RL_UNDEF);
}

static rl_status copies(rl_pass_run *r) {
    rl_graph *g = r->g;
    struct { rl_node *p; uint32_t n, cap; } found = {0};
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (resizes_nothing(g, n) || casts_nothing(g, n)) rl_push(r->tmp, found, g->order.p[i]);
    }
    for (uint32_t i = 0; i < found.n; i++) {
        rl_nodeinfo was = *rl_nod(g, found.p[i]);
        rl_value x = was.in[0], y = was.out[0];
        rl_graph_remove(g, found.p[i]);
        rl_node same = rl_graph_add(g, RL_OP_Identity, was.name, 1, &x, 1, &y);
        rl_nod(g, same)->origin = was.origin;
    }
    return found.n ? rl_graph_sort(g) : RL_OK;
}

/* ---- pieces without elements ---- */

static bool joins(const rl_valinfo *piece, const rl_valinfo *y, uint32_t axis) {
    if (piece->rank != y->rank || piece->dtype != y->dtype) return false;
    for (uint32_t d = 0; d < y->rank; d++)
        if (d != axis && piece->dim[d] != y->dim[d]) return false;
    return true;
}

/* The inputs of a Concat that have elements, in tmp; 0: all have, or none has, or something is not known. */
static uint32_t full_pieces(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp, rl_value **in) {
    uint32_t axis, nfull = 0;
    if (n->op != RL_OP_Concat || n->nout != 1 || !rl_has(n->out[0]) || !rl_has(rl_in(n, 0)) || !rl_op_axis(g, n, &axis)) return 0;
    const rl_valinfo *y = rl_val(g, n->out[0]);
    if (y->rank == RL_NORANK || y->dtype == RL_UNDEF) return 0;
    *in = rl_new(tmp, rl_value, n->nin);
    for (uint32_t i = 0; i < n->nin; i++) {
        if (!rl_has(n->in[i]) || !joins(rl_val(g, n->in[i]), y, axis)) return 0;
        if (rl_val(g, n->in[i])->dim[axis] != 0) (*in)[nfull++] = n->in[i];
    }
    if (nfull == 1 && rl_val(g, (*in)[0])->dim[axis] != y->dim[axis]) return 0;
    return nfull < n->nin ? nfull : 0;
}

/* Half-rotated attention heads pass on the rest of each head, which has no elements where all of it is rotated. */
static rl_status pieces(rl_pass_run *r) {
    rl_graph *g = r->g;
    struct { rl_node *p; uint32_t n, cap; } found = {0};
    rl_value *in;
    for (uint32_t i = 0; i < g->order.n; i++)
        if (full_pieces(g, rl_nod(g, g->order.p[i]), r->tmp, &in)) rl_push(r->tmp, found, g->order.p[i]);
    for (uint32_t i = 0; i < found.n; i++) {
        rl_nodeinfo was = *rl_nod(g, found.p[i]);
        uint32_t n = full_pieces(g, &was, r->tmp, &in);
        rl_value y = was.out[0];
        rl_graph_remove(g, found.p[i]);
        rl_node made = rl_graph_add(g, n == 1 ? RL_OP_Identity : RL_OP_Concat, was.name, n, in, 1, &y);
        if (n > 1) rl_graph_set_attrs(g, made, was.attr, was.nattr);
        rl_nod(g, made)->origin = was.origin;
    }
    return found.n ? rl_graph_sort(g) : RL_OK;
}

/* ---- rows ---- */

static bool is_made_by(const rl_graph *g, rl_value v, rl_op op) {
    rl_node def = rl_val(g, v)->def;
    return def.i != RL_NONE && rl_nod(g, def)->op == op;
}

/* What a GatherND takes: rows of x as [size, the dims from `depth` on]. */
typedef struct { int64_t size; uint32_t depth, nrow; const int64_t *row; } rows;

/* Each row's number, of its place in every dim. */
static bool number_rows(const rl_valinfo *x, const int64_t *at, rows *found, rl_arena *tmp) {
    int64_t *row = rl_new(tmp, int64_t, found->nrow + 1);
    for (uint32_t i = 0; i < found->nrow; i++)
        for (uint32_t k = 0; k < found->depth; k++) {
            int64_t place = at[i * found->depth + k], n = x->dim[k];
            if (place < -n || place >= n) return false;
            row[i] = row[i] * n + (place < 0 ? place + n : place);
        }
    found->row = row;
    return true;
}

/* The second checker knows them by these names. */
static rl_str rows_name(const rl_graph *g, const rl_nodeinfo *n, const char *which, rl_arena *tmp) {
    rl_text t = {.mem = tmp};
    rl_put(&t, "%s_%s", rl_val(g, n->out[0])->name, which);
    return rl_internz(g->ctx, t.p);
}

static bool may_name(const rl_graph *g, const rl_nodeinfo *n, const char *which, rl_arena *tmp) {
    return rl_val(g, n->out[0])->name && !rl_has(rl_graph_find(g, rows_name(g, n, which, tmp)));
}

static bool gathers_whole(const rl_nodeinfo *n) { return n->op == RL_OP_GatherND && rl_attr_int(n, "batch_dims", 0) == 0; }

static bool may_take_rows(const rl_graph *g, const rl_nodeinfo *n) { return gathers_whole(n) && is_made_by(g, n->in[0], RL_OP_Transpose); }

static bool writes_all(const rl_nodeinfo *n) {
    return n->op == RL_OP_ScatterND && (rl_attr_is(n, "reduction", "none") || rl_attr_find(n, "reduction") == NULL);
}

/* Indices that constants lead to: exporters write a grid of places as sums and broadcasts of ranges. */
static void compute_indices(rl_graph *g, rl_arena *tmp) {
    bool *wanted = rl_new(tmp, bool, g->nnode), any = false;
    for (uint32_t i = g->order.n; i-- > 0;) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        bool takes = may_take_rows(g, n) || writes_all(n);
        for (uint32_t k = takes; k < n->nin && (takes || wanted[g->order.p[i].i]); k++) {
            rl_node def = rl_has(n->in[k]) && !rl_eval_constant(g, n->in[k]) ? rl_val(g, n->in[k])->def : RL_NONODE;
            if (def.i != RL_NONE) any = wanted[def.i] = true;
        }
    }
    rl_eval_limit limit = {.one = 1u << 22, .grown = 1u << 22, .all = 1u << 24, .work = 1u << 24};
    for (uint32_t i = 0; i < g->order.n && any; i++)
        if (wanted[g->order.p[i].i]) rl_eval_node(g, g->order.p[i], &limit);
}

/* The rows of input 0 that constant indices, input 1, name. */
static bool named_rows(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp, rows *found) {
    const int64_t *at;
    uint32_t nat, open = 0;
    const rl_valinfo *x = rl_val(g, n->in[0]), *indices = rl_val(g, n->in[1]);
    if (!rl_eval_constant(g, n->in[1]) || !rl_const_ints(g, n->in[1], tmp, &at, &nat) || nat == 0 || x->rank == RL_NORANK || indices->rank == 0) return false;
    *found = (rows){.size = 1, .depth = (uint32_t)indices->dim[indices->rank - 1]};
    found->nrow = nat / found->depth;
    if (found->depth > x->rank) return false;
    for (uint32_t k = 0; k < x->rank; k++) {
        if (!rl_dim_known(x->dim[k]) ? k < found->depth || ++open > 1 : x->dim[k] == 0) return false;
        if (k < found->depth && (found->size = rl_mul(found->size, x->dim[k])) == INT64_MAX) return false;
    }
    return number_rows(x, at, found, tmp);
}

static bool takes_rows(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp, rows *found) {
    return may_take_rows(g, n) && named_rows(g, n, tmp, found) && may_name(g, n, "rows", tmp) && may_name(g, n, "taken", tmp) &&
           found->depth < rl_val(g, n->in[0])->rank;
}

static rl_value add_value(rl_graph *g, rl_str name, rl_dtype dtype, uint32_t rank, const rl_dim *dim) {
    rl_value v = rl_graph_value(g, name);
    rl_graph_set_type(g, v, dtype, rank, dim);
    return v;
}

/* v as y, of these sizes; one that is not known is what is left. */
static void add_reshape(rl_graph *g, rl_value v, rl_value y, uint32_t rank, const rl_dim *dim, rl_arena *tmp) {
    int64_t *size = rl_new(tmp, int64_t, rank);
    for (uint32_t k = 0; k < rank; k++) size[k] = rl_dim_known(dim[k]) ? dim[k] : -1;
    rl_value in[2] = {v, rl_graph_const_i64(g, rl_graph_fresh_name(g, "rl_sizes"), rank, size)};
    rl_graph_add(g, RL_OP_Reshape, NULL, 2, in, 1, &y);
}

static bool comes_of_transpose(const rl_graph *g, rl_value v) {
    for (rl_node def = rl_val(g, v)->def; def.i != RL_NONE; def = rl_val(g, rl_nod(g, def)->in[0])->def)
        if (rl_op_class(rl_nod(g, def)->op) != RL_MOVING) return false;
        else if (rl_nod(g, def)->op == RL_OP_Transpose) return true;
    return false;
}

/* A GatherND whose index vectors have one element: a Gather of the first dim. */
static bool takes_places(const rl_graph *g, const rl_nodeinfo *n, rl_arena *tmp) {
    if (!gathers_whole(n)) return false;
    const rl_valinfo *x = rl_val(g, n->in[0]), *indices = rl_val(g, n->in[1]);
    if (x->rank == RL_NORANK || indices->rank == RL_NORANK || indices->rank < 2 || indices->dim[indices->rank - 1] != 1) return false;
    uint32_t open = 0;
    for (uint32_t k = 0; k < indices->rank; k++) open += !rl_dim_known(indices->dim[k]) || indices->dim[k] == 0;
    return open <= 1 && may_name(g, n, "places", tmp) && comes_of_transpose(g, n->in[0]);
}

static void make_places(rl_graph *g, rl_node old, rl_arena *tmp) {
    rl_nodeinfo was = *rl_nod(g, old);
    uint32_t rank = rl_val(g, was.in[1])->rank - 1;
    rl_dim *dim = rl_copy(tmp, rl_val(g, was.in[1])->dim, rank * sizeof *dim);
    rl_value in[2] = {was.in[0], add_value(g, rows_name(g, &was, "places", tmp), RL_I64, rank, dim)};
    rl_graph_remove(g, old);
    add_reshape(g, was.in[1], in[1], rank, dim, tmp);
    rl_nod(g, rl_graph_add(g, RL_OP_Gather, was.name, 2, in, 1, &was.out[0]))->origin = was.origin;
}

/* So many rows of x, with nothing that makes them. */
static rl_value add_rows(rl_graph *g, rl_value x, uint32_t depth, int64_t nrow, rl_str name, rl_arena *tmp) {
    const rl_valinfo *v = rl_val(g, x);
    uint32_t rank = v->rank - depth + 1;
    rl_dim *dim = rl_new(tmp, rl_dim, rank);
    for (uint32_t k = 0; k < rank; k++) dim[k] = k == 0 ? nrow : v->dim[k + depth - 1];
    return add_value(g, name, v->dtype, rank, dim);
}

/* An index of several dims becomes one of one dim, along which the layout passes let data lie as it likes, and a Reshape. */
static void make_gather(rl_graph *g, rl_node old, const rows *found, rl_arena *tmp) {
    rl_nodeinfo was = *rl_nod(g, old);
    const rl_valinfo *x = rl_val(g, was.in[0]), *indices = rl_val(g, was.in[1]);
    uint32_t lead = indices->rank - 1, rank = lead + x->rank - found->depth;
    rl_dim *dim = rl_new(tmp, rl_dim, rank);
    for (uint32_t k = 0; k < rank; k++) dim[k] = k < lead ? indices->dim[k] : x->dim[k - lead + found->depth];
    size_t nbyte = found->nrow * sizeof *found->row;
    const int64_t count = found->nrow, *row = rl_copy(&g->mem, found->row, nbyte), *nrow = rl_copy(&g->mem, &count, sizeof count);
    rl_value y = was.out[0], all, taken = y, in[2];
    all = add_rows(g, was.in[0], found->depth, found->size, rows_name(g, &was, "rows", tmp), tmp);
    if (lead > 1) taken = add_rows(g, was.in[0], found->depth, found->nrow, rows_name(g, &was, "taken", tmp), tmp);
    rl_graph_remove(g, old);
    add_reshape(g, was.in[0], all, rl_val(g, all)->rank, rl_val(g, all)->dim, tmp);
    in[0] = all;
    in[1] = rl_graph_const(g, rl_graph_fresh_name(g, "rl_index"), RL_I64, RL_MIN(lead, 1u), nrow, row, nbyte);
    rl_node n = rl_graph_add(g, RL_OP_Gather, was.name, 2, in, 1, &taken);
    rl_nod(g, n)->origin = was.origin;
    if (lead > 1) add_reshape(g, taken, y, rank, dim, tmp);
}

static rl_status gathers(rl_pass_run *r) {
    rl_graph *g = r->g;
    rows found;
    uint32_t norder = g->order.n, made = 0;
    rl_node *n = rl_copy(r->tmp, g->order.p, norder * sizeof *n);
    for (uint32_t i = 0; i < norder; i++) {
        bool known = takes_rows(g, rl_nod(g, n[i]), r->tmp, &found), computed = !known && takes_places(g, rl_nod(g, n[i]), r->tmp);
        if (known) make_gather(g, n[i], &found, r->tmp);
        else if (computed) make_places(g, n[i], r->tmp);
        made += known || computed;
    }
    return made ? rl_graph_sort(g) : RL_OK;
}

/* ---- rows that are written ---- */

/* Of one ScatterND of a chain: what it writes, and its rows, from `first` on. */
typedef struct { rl_value from; int64_t first, nrow; } written;

/* What the last ScatterNDs of a chain write: all rows, each once. step 1: one piece behind the other; else every step-th row is of one piece. */
enum { MAXWRITTEN = 16 };
typedef struct { written piece[MAXWRITTEN]; uint32_t n, depth; int64_t step; } writing;

/* The first of rows that lie so far apart; -1: they do not. */
static int64_t first_row(const rows *r, int64_t step) {
    for (uint32_t i = 1; i < r->nrow; i++)
        if (r->row[i] != r->row[0] + i * step) return -1;
    return r->row[0];
}

static int by_first(const void *a, const void *b) {
    int64_t x = ((const written *)a)->first, y = ((const written *)b)->first;
    return (x > y) - (x < y);
}

/* Do the pieces, in the sequence of their first rows, make the whole? */
static bool tile(writing *w, int64_t size) {
    qsort(w->piece, w->n, sizeof *w->piece, by_first);
    int64_t next = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->piece[i].first != next || (w->step > 1 && w->piece[i].nrow * w->step != size)) return false;
        next += w->step > 1 ? 1 : w->piece[i].nrow;
    }
    return next == (w->step > 1 ? w->step : size);
}

static const char *piece_name(uint32_t i, rl_arena *tmp) {
    rl_text t = {.mem = tmp};
    rl_put(&t, "piece%u", i);
    return t.p;
}

/* Has what is written the sizes that rows of x at these indices have? */
static bool fits(const rl_valinfo *x, const rl_valinfo *indices, const rl_valinfo *update) {
    uint32_t lead = indices->rank - 1, depth = (uint32_t)indices->dim[lead];
    if (update->dtype != x->dtype || update->rank != lead + x->rank - depth) return false;
    return rl_same_bytes(update->dim, indices->dim, lead * sizeof *x->dim) && rl_same_bytes(update->dim + lead, x->dim + depth, (x->rank - depth) * sizeof *x->dim);
}

/* By several nodes: what one writes alone is movement of one tensor (movement.c). */
static bool writes_every_row(const rl_graph *g, rl_node last, rl_arena *tmp, writing *w) {
    rows r;
    int64_t left = -1, size = 0;
    *w = (writing){.step = 1};
    for (rl_node at = last; left != 0; at = rl_val(g, rl_nod(g, at)->in[0])->def) {
        if (at.i == RL_NONE) return false;
        const rl_nodeinfo *n = rl_nod(g, at);
        if (!writes_all(n) || w->n == MAXWRITTEN || !named_rows(g, n, tmp, &r) || (w->n && r.depth != w->depth)) return false;
        if (!w->n) {
            left = size = r.size;
            w->step = r.nrow > 1 ? r.row[1] - r.row[0] : 1;
            w->depth = r.depth;
        }
        int64_t first = w->step > 0 ? first_row(&r, w->step) : -1;
        if (first < 0 || !fits(rl_val(g, n->in[0]), rl_val(g, n->in[1]), rl_val(g, n->in[2]))) return false;
        w->piece[w->n++] = (written){.from = n->in[2], .first = first, .nrow = r.nrow};
        left -= r.nrow;
        if (left < 0) return false;
    }
    bool ok = w->n > 1 && tile(w, size) && may_name(g, rl_nod(g, last), "joined", tmp);
    for (uint32_t i = 0; ok && i < w->n; i++) ok = may_name(g, rl_nod(g, last), piece_name(i, tmp), tmp);
    return ok;
}

static int64_t rows_of(const writing *w) {
    int64_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) n += w->piece[i].nrow;
    return n;
}

static bool has_dims(const rl_valinfo *v, uint32_t rank, const rl_dim *dim) {
    return v->rank == rank && rl_same_bytes(v->dim, dim, rank * sizeof *dim);
}

static void make_concat(rl_graph *g, rl_node last, const writing *w, rl_arena *tmp) {
    rl_nodeinfo was = *rl_nod(g, last);
    const rl_valinfo *x = rl_val(g, was.in[0]);
    uint32_t apart = w->step > 1, rest = x->rank - w->depth, rank = 1 + apart + rest, whole = x->rank;
    rl_dtype dtype = x->dtype;
    rl_dim *dim = rl_new(tmp, rl_dim, rank), *ydim = rl_copy(tmp, x->dim, whole * sizeof *ydim);
    for (uint32_t k = 0; k < rest; k++) dim[1 + apart + k] = ydim[w->depth + k];
    rl_value y = was.out[0], in[MAXWRITTEN], joined = y;
    rl_graph_remove(g, last);
    for (uint32_t i = 0; i < w->n; i++) {
        dim[0] = w->piece[i].nrow;
        if (apart) dim[1] = 1;
        in[i] = w->piece[i].from;
        if (has_dims(rl_val(g, in[i]), rank, dim)) continue;
        in[i] = add_value(g, rows_name(g, &was, piece_name(i, tmp), tmp), dtype, rank, dim);
        add_reshape(g, w->piece[i].from, in[i], rank, dim, tmp);
    }
    if (apart) dim[1] = w->step;
    else dim[0] = rows_of(w);
    if (!has_dims(rl_val(g, y), rank, dim)) joined = add_value(g, rows_name(g, &was, "joined", tmp), dtype, rank, dim);
    const rl_attr axis = rl_attr_of_int(g, "axis", apart);
    rl_node made = rl_graph_add(g, RL_OP_Concat, was.name, w->n, in, 1, &joined);
    rl_graph_set_attrs(g, made, &axis, 1);
    rl_nod(g, made)->origin = was.origin;
    if (!rl_same(joined, y)) add_reshape(g, joined, y, whole, ydim, tmp);
}

static rl_status scatters(rl_pass_run *r) {
    rl_graph *g = r->g;
    writing w;
    uint32_t norder = g->order.n, made = 0;
    rl_node *n = rl_copy(r->tmp, g->order.p, norder * sizeof *n);
    for (uint32_t i = norder; i-- > 0;) {
        if (!writes_every_row(g, n[i], r->tmp, &w)) continue;
        make_concat(g, n[i], &w, r->tmp);
        made++;
    }
    return made ? rl_graph_sort(g) : RL_OK;
}

rl_status rl_pass_normalize(rl_pass_run *r) {
    RL_TRY(pieces(r));
    compute_indices(r->g, r->tmp);
    RL_TRY(scatters(r));
    RL_TRY(rl_pass_dce(r));
    RL_TRY(rl_normalize_einsums(r));
    RL_TRY(gathers(r));
    return copies(r);
}
