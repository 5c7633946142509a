/* Rows that GatherNDs take and ScatterNDs write, for normalize.c, which has an example of each.
 *
 * A GatherND of indices that are constants, or computed of such, takes whole rows, but only of the first dims, so that exporters put a Transpose before it; a Gather takes them
 * along any dim.  So does one of indices that the model computes, if each is a place in the first dim.  One of what no Transpose makes is left as it is.
 *
 * ScatterNDs that write every row, one behind the other, as exporters write x[:, ::2] = a; x[:, 1::2] = b, leave nothing of x: they join what they
 * write, and a Concat does so along any dim. */
#include "normalize.h"

#include <stdlib.h>

#include "../src/eval.h"
#include "../src/ops.h"

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
    return may_take_rows(g, n) && named_rows(g, n, tmp, found) && rl_normal_may_name(g, n) &&
           found->depth < rl_val(g, n->in[0])->rank;
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
static bool takes_places(const rl_graph *g, const rl_nodeinfo *n) {
    if (!gathers_whole(n)) return false;
    const rl_valinfo *x = rl_val(g, n->in[0]), *indices = rl_val(g, n->in[1]);
    if (x->rank == RL_NORANK || indices->rank == RL_NORANK || indices->rank < 2 || indices->dim[indices->rank - 1] != 1) return false;
    uint32_t open = 0;
    for (uint32_t k = 0; k < indices->rank; k++) open += !rl_dim_known(indices->dim[k]) || indices->dim[k] == 0;
    return open <= 1 && rl_normal_may_name(g, n) && comes_of_transpose(g, n->in[0]);
}

static void make_places(rl_graph *g, rl_node old, rl_arena *tmp) {
    rl_nodeinfo was = *rl_nod(g, old);
    uint32_t rank = rl_val(g, was.in[1])->rank - 1;
    rl_dim *dim = rl_copy(tmp, rl_val(g, was.in[1])->dim, rank * sizeof *dim);
    rl_value in[2] = {was.in[0], rl_normal_value(g, rl_normal_name(g, &was, "places", tmp), RL_I64, rank, dim)};
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
    return rl_normal_value(g, name, v->dtype, rank, dim);
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
    all = add_rows(g, was.in[0], found->depth, found->size, rl_normal_name(g, &was, "rows", tmp), tmp);
    if (lead > 1) taken = add_rows(g, was.in[0], found->depth, found->nrow, rl_normal_name(g, &was, "taken", tmp), tmp);
    rl_graph_remove(g, old);
    add_reshape(g, was.in[0], all, rl_val(g, all)->rank, rl_val(g, all)->dim, tmp);
    in[0] = all;
    in[1] = rl_graph_const(g, rl_graph_fresh_name(g, "rl_index"), RL_I64, RL_MIN(lead, 1u), nrow, row, nbyte);
    rl_node n = rl_graph_add(g, RL_OP_Gather, was.name, 2, in, 1, &taken);
    rl_nod(g, n)->origin = was.origin;
    if (lead > 1) add_reshape(g, taken, y, rank, dim, tmp);
}

rl_status rl_normalize_gathers(rl_pass_run *r) {
    rl_graph *g = r->g;
    rows found;
    uint32_t norder = g->order.n, made = 0;
    rl_node *n = rl_copy(r->tmp, g->order.p, norder * sizeof *n);
    for (uint32_t i = 0; i < norder; i++) {
        bool known = takes_rows(g, rl_nod(g, n[i]), r->tmp, &found), computed = !known && takes_places(g, rl_nod(g, n[i]));
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
    return w->n > 1 && tile(w, size) && rl_normal_may_name(g, rl_nod(g, last));
}

static int64_t rows_of(const writing *w) {
    int64_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) n += w->piece[i].nrow;
    return n;
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
        if (rl_normal_has_dims(rl_val(g, in[i]), rank, dim)) continue;
        in[i] = rl_normal_value(g, rl_normal_name(g, &was, rl_normal_numbered("piece", i, tmp), tmp), dtype, rank, dim);
        add_reshape(g, w->piece[i].from, in[i], rank, dim, tmp);
    }
    if (apart) dim[1] = w->step;
    else dim[0] = rows_of(w);
    if (!rl_normal_has_dims(rl_val(g, y), rank, dim)) joined = rl_normal_value(g, rl_normal_name(g, &was, "joined", tmp), dtype, rank, dim);
    const rl_attr axis = rl_attr_of_int(g, "axis", apart);
    rl_node made = rl_graph_add(g, RL_OP_Concat, was.name, w->n, in, 1, &joined);
    rl_graph_set_attrs(g, made, &axis, 1);
    rl_nod(g, made)->origin = was.origin;
    if (!rl_same(joined, y)) add_reshape(g, joined, y, whole, ydim, tmp);
}

rl_status rl_normalize_scatters(rl_pass_run *r) {
    rl_graph *g = r->g;
    compute_indices(g, r->tmp);
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
