/* Index maps (map.h) of ONNX's ops that move data: first from sizes and numbers, then from nodes. */
#include "map.h"

#include <string.h>

#include "ops.h"

enum { MAXRANK = 16, MAXTABLE = 1 << 20 };
#define MOST (INT64_MAX / 8) /* indices of a table: sums and differences of them fit */

static void strides_of(rl_ctx *ctx, uint32_t rank, const rl_dim *x, rl_dim *stride) {
    rl_dim s = 1;
    for (uint32_t i = rank; i-- > 0; s = rl_dim_mul(ctx, s, x[i])) stride[i] = s;
}

bool rl_map_transpose(rl_maps *m, uint32_t rank, const rl_dim *x, const int64_t *perm, rl_map *out) {
    rl_dim stride[MAXRANK];
    rl_mapdigit d[MAXRANK];
    if (rank > MAXRANK) return false;
    strides_of(m->ctx, rank, x, stride);
    for (uint32_t i = 0; i < rank; i++) d[i] = (rl_mapdigit){x[perm[i]], stride[perm[i]], 1, NULL};
    return rl_map_make(m, rank, d, 0, out);
}

bool rl_map_slice(rl_maps *m, uint32_t rank, const rl_dim *x, const rl_dim *start, const rl_dim *count, const int64_t *step, rl_map *out) {
    rl_dim stride[MAXRANK], offset = 0;
    rl_mapdigit d[MAXRANK];
    if (rank > MAXRANK) return false;
    strides_of(m->ctx, rank, x, stride);
    for (uint32_t i = 0; i < rank; i++) {
        if (step[i] == 0 || step[i] == INT64_MIN) return false;
        d[i] = (rl_mapdigit){count[i], rl_dim_mul(m->ctx, stride[i], step[i] < 0 ? -step[i] : step[i]), step[i] < 0 ? -1 : 1, NULL};
        offset = rl_dim_add(m->ctx, offset, rl_dim_mul(m->ctx, stride[i], start[i]));
    }
    return rl_map_make(m, rank, d, offset, out);
}

bool rl_map_gather(rl_maps *m, uint32_t rank, const rl_dim *x, uint32_t axis, int64_t n, const int64_t *index, rl_map *out) {
    if (axis >= rank || !rl_dim_known(x[axis]) || x[axis] > MOST) return false;
    rl_dim outer = rl_dim_prod(m->ctx, x, axis), inner = rl_dim_prod(m->ctx, x + axis + 1, rank - axis - 1);
    int64_t *t = rl_new(m->mem, int64_t, n);
    for (int64_t i = 0; i < n; i++) {
        t[i] = index[i] < 0 ? index[i] + x[axis] : index[i];
        if (t[i] < 0 || t[i] >= x[axis]) return false;
    }
    rl_mapdigit d[] = {{outer, rl_dim_mul(m->ctx, x[axis], inner), 1, NULL}, {n, inner, 1, t}, {inner, 1, 1, NULL}};
    return rl_map_make(m, 3, d, 0, out);
}

bool rl_map_expand(rl_maps *m, uint32_t xrank, const rl_dim *x, uint32_t rank, const rl_dim *y, rl_map *out) {
    rl_dim stride[MAXRANK];
    rl_mapdigit d[MAXRANK];
    if (rank > MAXRANK || xrank > rank) return false;
    strides_of(m->ctx, xrank, x, stride);
    for (uint32_t i = 0; i < rank; i++) {
        bool has = i + xrank >= rank;
        uint32_t k = has ? i + xrank - rank : 0;
        if (has && x[k] != y[i] && x[k] != 1) return false;
        d[i] = (rl_mapdigit){y[i], has && x[k] == y[i] ? stride[k] : 0, 1, NULL};
    }
    return rl_map_make(m, rank, d, 0, out);
}

bool rl_map_tile(rl_maps *m, uint32_t rank, const rl_dim *x, const int64_t *repeat, rl_map *out) {
    rl_dim stride[MAXRANK];
    rl_mapdigit d[2 * MAXRANK];
    if (rank > MAXRANK) return false;
    strides_of(m->ctx, rank, x, stride);
    for (uint32_t i = 0; i < rank; i++) {
        if (repeat[i] < 0) return false;
        d[2 * i] = (rl_mapdigit){repeat[i], 0, 1, NULL};
        d[2 * i + 1] = (rl_mapdigit){x[i], stride[i], 1, NULL};
    }
    return rl_map_make(m, 2 * rank, d, 0, out);
}

/* Where element i of a padded dim of n elements comes from. */
static int64_t padded(int64_t i, int64_t n, rl_pad_mode how) {
    if (i >= 0 && i < n) return i;
    if (how == RL_PAD_CONSTANT || n == 0) return RL_MAP_FILL;
    if (how == RL_PAD_EDGE) return i < 0 ? 0 : n - 1;
    if (how == RL_PAD_WRAP) return (i % n + n) % n;
    if (n == 1) return 0;
    int64_t period = 2 * (n - 1), k = (i % period + period) % period;
    return k < n ? k : period - k;
}

bool rl_map_pad(rl_maps *m, uint32_t rank, const rl_dim *x, const int64_t *before, const int64_t *after, rl_pad_mode how, rl_map *out) {
    rl_dim stride[MAXRANK];
    rl_mapdigit d[MAXRANK];
    if (rank > MAXRANK) return false;
    strides_of(m->ctx, rank, x, stride);
    for (uint32_t i = 0; i < rank; i++) {
        d[i] = (rl_mapdigit){x[i], stride[i], 1, NULL};
        if (before[i] == 0 && after[i] == 0) continue;
        int64_t n;
        if (!rl_dim_known(x[i]) || __builtin_add_overflow(x[i], before[i], &n) || __builtin_add_overflow(n, after[i], &n)) return false;
        if (n < 0 || n > MAXTABLE) return false;
        int64_t *t = rl_new(m->mem, int64_t, n);
        for (int64_t k = 0; k < n; k++) t[k] = padded(k - before[i], x[i], how);
        d[i] = (rl_mapdigit){n, stride[i], 1, t};
    }
    return rl_map_make(m, rank, d, 0, out);
}

bool rl_map_depth_to_space(rl_maps *m, const rl_dim *x, int64_t b, bool columns_first, rl_map *out) {
    rl_dim c, h = x[2], w = x[3], plane = rl_dim_mul(m->ctx, h, w);
    if (b <= 0 || b > 65535 || !rl_dim_div(m->ctx, x[1], b * b, &c)) return false;
    rl_dim each = rl_dim_mul(m->ctx, plane, columns_first ? b * b : 1);       /* from one output channel to the next */
    rl_dim col = rl_dim_mul(m->ctx, plane, columns_first ? 1 : c), row = rl_dim_mul(m->ctx, col, b);
    rl_mapdigit d[] = {{x[0], rl_dim_mul(m->ctx, x[1], plane), 1, NULL}, {c, each, 1, NULL}, {h, w, 1, NULL},
                    {b, row, 1, NULL}, {w, 1, 1, NULL}, {b, col, 1, NULL}};
    return rl_map_make(m, 6, d, 0, out);
}

bool rl_map_space_to_depth(rl_maps *m, const rl_dim *x, int64_t b, bool columns_first, rl_map *out) {
    rl_dim h, w, row = x[3], plane = rl_dim_mul(m->ctx, x[2], x[3]);
    if (b <= 0 || b > 65535 || !rl_dim_div(m->ctx, x[2], b, &h) || !rl_dim_div(m->ctx, x[3], b, &w)) return false;
    rl_mapdigit image = {x[0], rl_dim_mul(m->ctx, x[1], plane), 1, NULL}, channel = {x[1], plane, 1, NULL}, in_row = {b, row, 1, NULL},
                in_col = {b, 1, 1, NULL};
    rl_mapdigit d[] = {image, in_row, in_col, channel, {h, rl_dim_mul(m->ctx, row, b), 1, NULL}, {w, b, 1, NULL}};
    if (columns_first) d[1] = channel, d[2] = in_row, d[3] = in_col;
    return rl_map_make(m, 6, d, 0, out);
}

/* ---- nodes ---- */

typedef struct { rl_maps *m; const rl_graph *g; const rl_nodeinfo *n; const rl_valinfo *x, *y; rl_map *out; } reader;

/* Constant integers: an attribute, or an input. n: how many there must be, RL_NONE: any number. */
static bool ints_of(const reader *r, const char *attr, uint32_t input, uint32_t n, const int64_t **p, uint32_t *count) {
    const rl_attr *a = attr ? rl_attr_find(r->n, attr) : NULL;
    if (a && a->kind == RL_ATTR_INTS) {
        *p = a->ints;
        *count = a->n;
    } else {
        rl_value v = rl_in(r->n, input);
        if (!rl_has(v) || !rl_val(r->g, v)->data || !rl_const_ints(r->g, v, r->m->mem, p, count)) return false;
        if (rl_val(r->g, v)->is_input) return false; /* a default that a caller may change */
    }
    return n == RL_NONE || *count == n;
}

static bool given(const reader *r, uint32_t input) {
    return rl_has(rl_in(r->n, input));
}

static bool axes_of(const reader *r, const char *attr, uint32_t input, uint32_t n, uint32_t *axis) {
    const int64_t *p;
    uint32_t count, seen = 0;
    bool none = !rl_attr_find(r->n, attr) && !given(r, input);
    if (!none && !ints_of(r, attr, input, n, &p, &count)) return false;
    if (n > r->x->rank) return false;
    for (uint32_t i = 0; i < n; i++) {
        int64_t a = none ? (int64_t)i : p[i] < 0 ? p[i] + (int64_t)r->x->rank : p[i];
        if (a < 0 || a >= (int64_t)r->x->rank || (seen >> a & 1)) return false;
        seen |= 1u << a;
        axis[i] = (uint32_t)a;
    }
    return true;
}

static bool view(reader *r) {
    rl_dim n = rl_dim_prod(r->m->ctx, r->x->dim, r->x->rank);
    return n == rl_dim_prod(r->m->ctx, r->y->dim, r->y->rank) && rl_map_identity(r->m, n, r->out);
}

static bool transpose(reader *r) {
    const rl_attr *a = rl_attr_ints(r->n, "perm");
    int64_t perm[MAXRANK];
    uint32_t rank = r->x->rank;
    if (rank > MAXRANK || (a && a->n != rank)) return false;
    for (uint32_t i = 0; i < rank; i++) perm[i] = a ? a->ints[i] : (int64_t)(rank - 1 - i);
    for (uint32_t i = 0; i < rank; i++)
        if (perm[i] < 0 || perm[i] >= (int64_t)rank) return false;
    return rl_map_transpose(r->m, rank, r->x->dim, perm, r->out);
}

/* One dim of a Slice.  What is clamped depends on the size: with a symbol there, only from an end, or from a place that is one. */
static bool slice_dim(const reader *r, uint32_t axis, int64_t from, int64_t step, rl_dim *start) {
    rl_dim d = r->x->dim[axis];
    if (!rl_dim_known(d)) {
        if (from >= 0 && step > 0) *start = from;
        else if (step == -1 && (from == -1 || from >= INT32_MAX) && r->y->dim[axis] == d) *start = rl_dim_sub(r->m->ctx, d, 1);
        else return false;
        return true;
    }
    if (from < 0) from += d;
    if (from < 0 && step < 0) return false; /* runtimes differ */
    *start = step > 0 ? RL_MIN(RL_MAX(from, 0), d) : RL_MIN(RL_MAX(from, 0), RL_MAX(d - 1, 0));
    return rl_dim_known(r->y->dim[axis]);
}

static bool slice(reader *r) {
    const int64_t *from, *to, *by = NULL;
    uint32_t n, nto, nby, axis[MAXRANK], rank = r->x->rank;
    rl_dim start[MAXRANK];
    int64_t step[MAXRANK];
    if (rank > MAXRANK || r->y->rank != rank) return false;
    if (!ints_of(r, "starts", 1, RL_NONE, &from, &n) || n > rank || !ints_of(r, "ends", 2, n, &to, &nto)) return false;
    if (!axes_of(r, "axes", 3, n, axis) || (given(r, 4) && !ints_of(r, NULL, 4, n, &by, &nby))) return false;
    for (uint32_t i = 0; i < rank; i++) start[i] = 0, step[i] = 1;
    for (uint32_t i = 0; i < n; i++) {
        step[axis[i]] = by ? by[i] : 1;
        if (!slice_dim(r, axis[i], from[i], step[axis[i]], &start[axis[i]])) return false;
    }
    return rl_map_slice(r->m, rank, r->x->dim, start, r->y->dim, step, r->out);
}

static bool split(reader *r, uint32_t port) {
    uint32_t axis, rank = r->x->rank;
    rl_dim start[MAXRANK] = {0};
    int64_t step[MAXRANK];
    if (rank > MAXRANK || r->y->rank != rank || !rl_op_axis(r->g, r->n, &axis)) return false;
    for (uint32_t i = 0; i < rank; i++) step[i] = 1;
    for (uint32_t i = 0; i < port; i++) {
        const rl_valinfo *before = rl_has(r->n->out[i]) ? rl_val(r->g, r->n->out[i]) : NULL;
        if (!before || before->rank != rank || !rl_dim_known(before->dim[axis])) return false;
        start[axis] = rl_dim_add(r->m->ctx, start[axis], before->dim[axis]);
    }
    return rl_map_slice(r->m, rank, r->x->dim, start, r->y->dim, step, r->out);
}

static bool gather(reader *r) {
    const int64_t *index;
    uint32_t n, axis;
    return rl_op_axis(r->g, r->n, &axis) && ints_of(r, NULL, 1, RL_NONE, &index, &n) &&
           rl_map_gather(r->m, r->x->rank, r->x->dim, axis, n, index, r->out);
}

static bool tile(reader *r) {
    const int64_t *repeat;
    uint32_t n;
    return ints_of(r, NULL, 1, r->x->rank, &repeat, &n) && rl_map_tile(r->m, r->x->rank, r->x->dim, repeat, r->out);
}

bool rl_pad_mode_of(const rl_nodeinfo *n, rl_pad_mode *mode) {
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    *mode = RL_PAD_CONSTANT;
    for (uint32_t i = 0; i < RL_LEN(names); i++) {
        if (!rl_attr_is(n, "mode", names[i])) continue;
        *mode = (rl_pad_mode)i;
        return true;
    }
    return !rl_attr_find(n, "mode");
}

static bool pad(reader *r) {
    rl_pad_mode mode;
    int64_t before[MAXRANK] = {0}, after[MAXRANK] = {0};
    const int64_t *p;
    uint32_t n, axis[MAXRANK], rank = r->x->rank, few = rank;
    if (!rl_pad_mode_of(r->n, &mode) || rank > MAXRANK || !ints_of(r, "pads", 1, RL_NONE, &p, &n) || n % 2) return false;
    if (given(r, 3)) few = n / 2;
    if (n != 2 * few || !axes_of(r, "axes", 3, few, axis)) return false;
    for (uint32_t i = 0; i < few; i++) before[axis[i]] = p[i], after[axis[i]] = p[few + i];
    return rl_map_pad(r->m, rank, r->x->dim, before, after, mode, r->out);
}

static bool depth_space(reader *r) {
    int64_t block = rl_attr_int(r->n, "blocksize", 0);
    bool crd = rl_attr_is(r->n, "mode", "CRD");
    if (r->x->rank != 4 || r->y->rank != 4) return false;
    if (r->n->op == RL_OP_SpaceToDepth) return rl_map_space_to_depth(r->m, r->x->dim, block, crd, r->out);
    return rl_map_depth_to_space(r->m, r->x->dim, block, crd, r->out);
}

/* Rows of updates over rows of data.  A map of the one input that the result reads: data (nothing is written) or updates
 * (everything is). */
static bool scatter(reader *r, uint32_t *slot) {
    const int64_t *index;
    uint32_t n, rank = r->x->rank;
    const rl_valinfo *at = given(r, 1) ? rl_val(r->g, r->n->in[1]) : NULL, *up = given(r, 2) ? rl_val(r->g, r->n->in[2]) : NULL;
    const rl_attr *how = rl_attr_find(r->n, "reduction");
    if (!at || !up || at->rank == RL_NORANK || at->rank == 0 || (how && !rl_attr_is(r->n, "reduction", "none"))) return false;
    rl_dim k = at->dim[at->rank - 1], row, rows = 1;
    if (!rl_dim_known(k) || k < 1 || k > rank || !ints_of(r, NULL, 1, RL_NONE, &index, &n)) return false;
    for (uint32_t i = 0; i < k; i++) rows = rl_dim_mul(r->m->ctx, rows, r->x->dim[i]);
    row = rl_dim_prod(r->m->ctx, r->x->dim + k, rank - (uint32_t)k);
    if (!rl_dim_known(rows) || rows > MAXTABLE) return false;
    int64_t *t = rl_new(r->m->mem, int64_t, rows);
    for (int64_t i = 0; i < rows; i++) t[i] = -1;
    for (uint32_t i = 0; i + k <= n; i += (uint32_t)k) {
        int64_t to = 0;
        for (uint32_t j = 0; j < k; j++) {
            int64_t c = index[i + j] < 0 ? index[i + j] + r->x->dim[j] : index[i + j];
            if (c < 0 || c >= r->x->dim[j]) return false;
            to = to * r->x->dim[j] + c;
        }
        t[to] = i / k;
    }
    *slot = 2;
    for (int64_t i = 0; i < rows; i++)
        if (t[i] < 0) return false;
    rl_mapdigit d[] = {{rows, row, 1, t}, {row, 1, 1, NULL}};
    return rl_map_make(r->m, 2, d, 0, r->out);
}

bool rl_map_of_node(rl_maps *m, const rl_graph *g, const rl_nodeinfo *n, uint32_t port, uint32_t *slot, rl_map *out) {
    if (port >= n->nout || !rl_has(n->out[port]) || !rl_has(rl_in(n, 0)) || n->ncap) return false;
    reader r = {m, g, n, rl_val(g, n->in[0]), rl_val(g, n->out[port]), out};
    *slot = 0;
    if (r.x->rank == RL_NORANK || r.y->rank == RL_NORANK) return false;
    switch (n->op) {
    case RL_OP_Identity: case RL_OP_Reshape: case RL_OP_Flatten: case RL_OP_Squeeze: case RL_OP_Unsqueeze: return view(&r);
    case RL_OP_Transpose: return transpose(&r);
    case RL_OP_Slice: return slice(&r);
    case RL_OP_Split: return split(&r, port);
    case RL_OP_Gather: return gather(&r);
    case RL_OP_Expand: return rl_map_expand(m, r.x->rank, r.x->dim, r.y->rank, r.y->dim, out);
    case RL_OP_Tile: return tile(&r);
    case RL_OP_Pad: return pad(&r);
    case RL_OP_DepthToSpace: case RL_OP_SpaceToDepth: return depth_space(&r);
    case RL_OP_ScatterND: return scatter(&r, slot);
    default: return false;
    }
}
