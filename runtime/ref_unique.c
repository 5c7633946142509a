/* Unique: of all elements, or of the slices along an axis. */
#include <math.h>
#include <string.h>

#include "element.h"
#include "kernels.h"

typedef struct { rl_dtype type; const void *p; int64_t size; } items; /* item i: elements i*size .. */

static int compare_element(const items *t, int64_t a, int64_t b) {
    if (t->type == RL_STRING) return strcmp(((const rl_str *)t->p)[a], ((const rl_str *)t->p)[b]);
    const uint64_t *u = t->p;
    const int64_t *i = t->p;
    if (t->type == RL_U64) return (u[a] > u[b]) - (u[a] < u[b]);
    if (t->type == RL_I64) return (i[a] > i[b]) - (i[a] < i[b]);
    double x = ((const double *)t->p)[a], y = ((const double *)t->p)[b];
    if (isnan(x) || isnan(y)) return !!isnan(x) - !!isnan(y); /* one value, after all others */
    return (x > y) - (x < y);
}

static int compare_items(const void *arg, int64_t a, int64_t b) {
    const items *t = arg;
    for (int64_t k = 0; k < t->size; k++) {
        int d = compare_element(t, a * t->size + k, b * t->size + k);
        if (d) return d;
    }
    return 0;
}

static int by_number(const void *arg, int64_t a, int64_t b) {
    const int64_t *x = arg;
    return (x[a] > x[b]) - (x[a] < x[b]);
}

/* x with the slices first, dense; x itself, flat, without an axis. */
static const rl_tensor *slices_of(rl_call *c, bool has_axis, uint32_t axis) {
    const rl_tensor *x = rl_call_in(c, 0);
    int64_t perm[RL_RANK], n = rl_numel(x);
    perm[0] = axis;
    for (uint32_t i = 0, k = 1; i < x->rank; i++)
        if (i != axis) perm[k++] = i;
    rl_tensor view = has_axis ? rl_view_transpose(x, perm) : *rl_call_dense(c, 0);
    if (!has_axis) rl_view_reshape(rl_call_dense(c, 0), 1, &n, &view);
    rl_tensor *y = rl_call_temp(c, x->dtype, view.rank, view.dim);
    rl_tensor_move(c->rt, y, &view);
    return y;
}

static void put_ints(rl_call *c, uint32_t output, const int64_t *x, int64_t n) {
    rl_tensor *y = rl_call_make(c, output, RL_I64, 1, &n);
    if (n) memcpy(rl_data(y), x, (size_t)n * sizeof *x);
}

/* group: which distinct item each one is, in the sorted order; first, count: of each group. */
typedef struct { int64_t n, *group, *first, *count; } groups;

static groups group_items(rl_call *c, const items *t, int64_t n) {
    groups g = {0, rl_new(c->tmp, int64_t, n), rl_new(c->tmp, int64_t, n), rl_new(c->tmp, int64_t, n)};
    int64_t *order = rl_new(c->tmp, int64_t, n);
    for (int64_t i = 0; i < n; i++) order[i] = i;
    rl_sort(c->tmp, order, n, compare_items, t);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || compare_items(t, order[i - 1], order[i]) != 0) g.first[g.n++] = order[i];
        g.group[order[i]] = g.n - 1;
        g.count[g.n - 1]++;
    }
    return g;
}

static void put_values(rl_call *c, const rl_tensor *x, const groups *g, const int64_t *order, bool has_axis, uint32_t axis) {
    const rl_tensor *in = rl_call_in(c, 0);
    int64_t dim[RL_RANK], perm[RL_RANK];
    memcpy(dim, in->dim, sizeof dim);
    dim[has_axis ? axis : 0] = g->n;
    rl_tensor *y = rl_call_make(c, 0, in->dtype, has_axis ? in->rank : 1, dim);
    perm[0] = axis;
    for (uint32_t i = 0, k = 1; i < y->rank; i++)
        if (i != axis) perm[k++] = i;
    rl_tensor to = rl_view_transpose(y, perm);
    for (int64_t i = 0; i < g->n; i++) {
        rl_tensor one = rl_view_slice(&to, 0, i, 1, 1), from = rl_view_slice(x, 0, g->first[order[i]], 1, 1);
        rl_tensor_move(c->rt, &one, &from);
    }
}

rl_status rl_ref_unique(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    bool has_axis = rl_attr_find(c->node, "axis") != NULL;
    uint32_t axis = 0;
    if (has_axis) RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    const rl_tensor *x = slices_of(c, has_axis, axis);
    int64_t n = x->dim[0], size = 1;
    for (uint32_t i = 1; i < x->rank; i++) size *= x->dim[i];
    rl_dtype wide = x->dtype == RL_STRING || x->dtype == RL_U64 ? x->dtype : rl_is_float(x->dtype) ? RL_F64 : RL_I64;
    rl_tensor *w = rl_call_temp(c, wide, x->rank, x->dim);
    rl_convert(c->rt, w, x, true);
    groups g = group_items(c, &(items){wide, rl_data(w), size}, n);
    int64_t *order = rl_new(c->tmp, int64_t, g.n), *rank = rl_new(c->tmp, int64_t, g.n), *tmp = rl_new(c->tmp, int64_t, n);
    for (int64_t i = 0; i < g.n; i++) order[i] = i;
    if (!rl_attr_int(c->node, "sorted", 1)) rl_sort(c->tmp, order, g.n, by_number, g.first);
    for (int64_t i = 0; i < g.n; i++) rank[order[i]] = i;
    put_values(c, x, &g, order, has_axis, axis);
    for (int64_t i = 0; i < g.n; i++) tmp[i] = g.first[order[i]];
    put_ints(c, 1, tmp, g.n);
    for (int64_t i = 0; i < g.n; i++) tmp[i] = g.count[order[i]];
    put_ints(c, 3, tmp, g.n);
    for (int64_t i = 0; i < n; i++) tmp[i] = rank[g.group[i]];
    put_ints(c, 2, tmp, n);
    return RL_OK;
}
