/* Ops that only move data: they copy bytes of any type (rl_ev_copy). */
#include "eval_internal.h"

#include <string.h>

/* ---- ops that move ---- */

/* The bytes stay where they are. */
bool rl_ev_view(evaluator *e, int arg, uint32_t port, tensor *out) {
    const rl_valinfo *v = rl_val(e->g, e->n->out[port]);
    tensor *x = rl_ev_input(e, 0);
    int64_t n;
    (void)arg;
    if (port || !x || v->dtype != x->dtype || v->rank > MAXRANK) return false;
    for (uint32_t k = 0; k < v->rank; k++)
        if (!rl_dim_known(v->dim[k])) return false;
    if (!rl_ev_count(v->rank, v->dim, &n) || n != x->n) return false;
    *out = *x;
    out->rank = v->rank;
    for (uint32_t k = 0; k < v->rank; k++) out->dim[k] = v->dim[k];
    return true;
}

bool rl_ev_transpose(evaluator *e, int arg, uint32_t port, tensor *out) {
    const rl_attr *a = rl_attr_find(e->n, "perm");
    tensor *x = rl_ev_input(e, 0);
    int64_t dim[MAXRANK];
    uint32_t from[MAXRANK], seen = 0;
    (void)arg;
    if (!x || (a && (a->kind != RL_ATTR_INTS || a->n != x->rank))) return false;
    for (uint32_t k = 0; k < x->rank; k++) {
        if (!rl_ev_axis_in(a ? a->ints[k] : (int64_t)(x->rank - 1 - k), x->rank, &from[k]) || (seen >> from[k] & 1)) return false;
        seen |= 1u << from[k];
        dim[k] = x->dim[from[k]];
    }
    if (!rl_ev_make_raw(e, port, out, x->dtype, x->rank, dim)) return false;
    walk w = {0};
    for (uint32_t k = 0; k < x->rank; k++) rl_ev_add_dim(&w, dim[k], rl_ev_stride(out, k), rl_ev_stride(x, from[k]));
    rl_ev_copy(&w, out->raw, x->raw, x->size);
    return true;
}

bool rl_ev_expand(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    uint32_t rank, want;
    const int64_t *shape;
    int64_t dim[MAXRANK + 1];
    (void)arg;
    if (!x || !rl_ev_shape_input(e, 1, &want, &shape)) return false;
    rank = x->rank;
    memcpy(dim, x->dim, sizeof x->dim);
    if (!rl_ev_broadcast(&rank, dim, want, shape) || !rl_ev_make_raw(e, port, out, x->dtype, rank, dim)) return false;
    walk w = rl_ev_walk_over(out);
    rl_ev_spread(&w, 0, out);
    rl_ev_spread(&w, 1, x);
    rl_ev_copy(&w, out->raw, x->raw, x->size);
    return true;
}

bool rl_ev_concat(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *first = rl_ev_input(e, 0);
    int64_t dim[MAXRANK], from = 0;
    uint32_t axis;
    (void)arg;
    if (!first || !rl_attr_find(e->n, "axis") || !rl_ev_axis_in(rl_attr_int(e->n, "axis", 0), first->rank, &axis)) return false;
    memcpy(dim, first->dim, sizeof dim);
    for (uint32_t i = 1; i < e->n->nin; i++) {
        tensor *x = rl_ev_input(e, i);
        if (!x || x->rank != first->rank || x->dtype != first->dtype) return false;
        for (uint32_t k = 0; k < x->rank; k++)
            if (k != axis && x->dim[k] != dim[k]) return false;
        dim[axis] += x->dim[axis];
    }
    if (!rl_ev_make_raw(e, port, out, first->dtype, first->rank, dim)) return false;
    for (uint32_t i = 0; i < e->n->nin; i++) {
        tensor *x = rl_ev_input(e, i);
        walk w = {.off = {from * rl_ev_stride(out, axis)}};
        for (uint32_t k = 0; k < x->rank; k++) rl_ev_add_dim(&w, x->dim[k], rl_ev_stride(out, k), rl_ev_stride(x, k));
        rl_ev_copy(&w, out->raw, x->raw, x->size);
        from += x->dim[axis];
    }
    return true;
}

/* out = x[start : : step], of out's dims. */
static void copy_slice(tensor *out, const tensor *x, const int64_t *start, const int64_t *step) {
    walk w = {0};
    for (uint32_t k = 0; k < x->rank; k++) {
        w.off[1] += start[k] * rl_ev_stride(x, k);
        rl_ev_add_dim(&w, out->dim[k], rl_ev_stride(out, k), step[k] * rl_ev_stride(x, k));
    }
    rl_ev_copy(&w, out->raw, x->raw, x->size);
}

/* Of a dim d: x[from : to : step] has this many elements, and begins at *from. */
static int64_t sliced(int64_t d, int64_t *from, int64_t to, int64_t step) {
    int64_t a = *from < 0 ? *from + d : *from, b = to < 0 ? (to < -d ? -1 : to + d) : to;
    if (step > 0) {
        a = RL_MAX(RL_MIN(a, d), 0);
        b = RL_MAX(RL_MIN(b, d), 0);
    } else {
        a = RL_MAX(RL_MIN(a, d - 1), 0);
        b = RL_MAX(RL_MIN(b, d - 1), -1);
    }
    *from = a;
    if (d == 0) return 0;
    if (step > 0) return b > a ? (b - a - 1) / step + 1 : 0;
    return a > b ? (int64_t)((uint64_t)(a - b - 1) / (0 - (uint64_t)step)) + 1 : 0;
}

bool rl_ev_slice(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    const int64_t *from, *to, *axes, *steps;
    uint32_t n, nto, naxes, nsteps, a, seen = 0;
    int64_t dim[MAXRANK], start[MAXRANK] = {0}, step[MAXRANK];
    (void)arg;
    if (!x || !rl_ev_ints(e, "starts", 1, &from, &n) || !rl_ev_ints(e, "ends", 2, &to, &nto) || !rl_ev_ints(e, "axes", 3, &axes, &naxes)) return false;
    if (!rl_ev_ints(e, NULL, 4, &steps, &nsteps) || !from || nto != n || (axes && naxes != n) || (steps && nsteps != n)) return false;
    for (uint32_t k = 0; k < x->rank; k++) dim[k] = x->dim[k], step[k] = 1;
    for (uint32_t k = 0; k < n; k++) {
        if (!rl_ev_axis_in(axes ? axes[k] : k, x->rank, &a) || (seen >> a & 1) || (steps && steps[k] == 0)) return false;
        seen |= 1u << a;
        start[a] = from[k];
        step[a] = steps ? steps[k] : 1;
        dim[a] = sliced(x->dim[a], &start[a], to[k], step[a]);
        if (dim[a] <= 1) step[a] = 1; /* a huge one would overflow */
    }
    if (!rl_ev_make_raw(e, port, out, x->dtype, x->rank, dim)) return false;
    copy_slice(out, x, start, step);
    return true;
}

bool rl_ev_split(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    const int64_t *part;
    uint32_t axis, n;
    int64_t dim[MAXRANK], start[MAXRANK] = {0}, step[MAXRANK], sum = 0;
    (void)arg;
    if (!x || !rl_ev_axis_in(rl_attr_int(e->n, "axis", 0), x->rank, &axis) || !rl_ev_ints(e, "split", 1, &part, &n)) return false;
    if (e->n->nout > 256 || (part && n != e->n->nout)) return false;
    int64_t d = x->dim[axis], nout = e->n->nout, each = d / nout + (d % nout != 0);
    for (uint32_t k = 0; k < x->rank; k++) dim[k] = x->dim[k], step[k] = 1;
    for (uint32_t k = 0; k < e->n->nout; k++) {
        int64_t size = part ? part[k] : RL_MIN(each, d - sum);
        if (size < 0 || size > d - sum) return false;
        if (k == port) start[axis] = sum, dim[axis] = size;
        sum += size;
    }
    if (sum != d || !rl_ev_make_raw(e, port, out, x->dtype, x->rank, dim)) return false;
    copy_slice(out, x, start, step);
    return true;
}

bool rl_ev_gather(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0), *at = rl_ev_input(e, 1);
    uint32_t axis, rank = 0;
    int64_t dim[2 * MAXRANK];
    (void)arg;
    if (!x || !at || (at->dtype != RL_I64 && at->dtype != RL_I32) || !rl_ev_axis_in(rl_attr_int(e->n, "axis", 0), x->rank, &axis)) return false;
    for (uint32_t k = 0; k < axis; k++) dim[rank++] = x->dim[k];
    for (uint32_t k = 0; k < at->rank; k++) dim[rank++] = at->dim[k];
    for (uint32_t k = axis + 1; k < x->rank; k++) dim[rank++] = x->dim[k];
    if (!rl_ev_load(e, at) || !rl_ev_make_raw(e, port, out, x->dtype, rank, dim)) return false;
    int64_t d = x->dim[axis], inner = rl_ev_stride(x, axis), outer = 1;
    for (uint32_t k = 0; k < axis; k++) outer *= x->dim[k];
    size_t run = (size_t)inner * x->size;
    if (out->n == 0) return true;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < at->n; k++) {
            int64_t i = at->i[k] < 0 ? at->i[k] + d : at->i[k];
            if (i < 0 || i >= d) return false;
            memcpy(out->raw + (size_t)(o * at->n + k) * run, x->raw + (size_t)(o * d + i) * run, run);
        }
    return true;
}

bool rl_ev_gather_nd(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0), *at = rl_ev_input(e, 1);
    int64_t batch = rl_attr_int(e->n, "batch_dims", 0), depth, batches = 1, rows = 1, dim[2 * MAXRANK];
    uint32_t rank = 0;
    (void)arg;
    if (!x || !at || at->dtype != RL_I64 || at->rank == 0 || batch < 0 || batch >= at->rank) return false;
    depth = at->dim[at->rank - 1];
    if (depth < 1 || batch > x->rank || depth > (int64_t)x->rank - batch || !rl_ev_load(e, at)) return false;
    uint32_t first = (uint32_t)(batch + depth);
    for (uint32_t k = 0; k < batch; k++) {
        if (at->dim[k] != x->dim[k]) return false;
        batches *= x->dim[k];
    }
    for (uint32_t k = (uint32_t)batch; k + 1 < at->rank; k++) rows *= at->dim[k];
    for (uint32_t k = 0; k + 1 < at->rank; k++) dim[rank++] = at->dim[k];
    for (uint32_t k = first; k < x->rank; k++) dim[rank++] = x->dim[k];
    if (!rl_ev_make_raw(e, port, out, x->dtype, rank, dim)) return false;
    if (out->n == 0) return true;
    size_t run = (size_t)rl_ev_stride(x, first - 1) * x->size;
    for (int64_t r = 0; r < batches * rows; r++) {
        int64_t off = batch ? r / rows * rl_ev_stride(x, (uint32_t)batch - 1) : 0;
        for (uint32_t k = 0; k < (uint32_t)depth; k++) {
            int64_t i = at->i[r * depth + k], d = x->dim[batch + k];
            if (i < 0) i += d;
            if (i < 0 || i >= d) return false;
            off += i * rl_ev_stride(x, (uint32_t)batch + k);
        }
        memcpy(out->raw + (size_t)r * run, x->raw + (size_t)off * x->size, run);
    }
    return true;
}

bool rl_ev_tile(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    uint32_t n;
    const int64_t *times;
    int64_t dim[MAXRANK] = {0};
    (void)arg;
    if (!x || !rl_ev_shape_input(e, 1, &n, &times) || n != x->rank) return false;
    for (uint32_t k = 0; k < n; k++)
        if (times[k] < 0 || __builtin_mul_overflow(x->dim[k], times[k], &dim[k])) return false;
    if (!rl_ev_make_raw(e, port, out, x->dtype, n, dim)) return false;
    if (out->n == 0) return true;
    walk w = {0};
    for (uint32_t k = 0; k < n; k++) {
        rl_ev_add_dim(&w, times[k], x->dim[k] * rl_ev_stride(out, k), 0);
        rl_ev_add_dim(&w, x->dim[k], rl_ev_stride(out, k), rl_ev_stride(x, k));
    }
    rl_ev_copy(&w, out->raw, x->raw, x->size);
    return true;
}

static void fill(tensor *out, const void *one) {
    for (int64_t k = 0; k < out->n; k++) memcpy(out->raw + (size_t)k * out->size, one, out->size);
}

/* What Pad writes: false when it is not known. */
static bool pad_value(evaluator *e, const tensor *x, char *one) {
    tensor *v = rl_ev_input(e, 2);
    float f = rl_attr_float(e->n, "value", 0);
    memset(one, 0, 8);
    if (v && (v->n != 1 || v->dtype != x->dtype)) return false;
    if (v) memcpy(one, v->raw, v->size);
    else if (f != 0 && x->dtype != RL_F32) return false;
    else if (f != 0) memcpy(one, &f, 4);
    return true;
}

bool rl_ev_pad(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    const int64_t *pads, *axes;
    uint32_t n, naxes, a, seen = 0;
    int64_t dim[MAXRANK];
    char one[8];
    walk w = {0};
    (void)arg;
    if (!x || (rl_attr_find(e->n, "mode") && !rl_attr_is(e->n, "mode", "constant"))) return false;
    if (!rl_ev_ints(e, "pads", 1, &pads, &n) || !rl_ev_ints(e, NULL, 3, &axes, &naxes) || !pads || !pad_value(e, x, one)) return false;
    if (n != 2 * (axes ? naxes : x->rank)) return false;
    int64_t before[MAXRANK] = {0}, after[MAXRANK] = {0};
    for (uint32_t k = 0; k < n / 2; k++) {
        if (!rl_ev_axis_in(axes ? axes[k] : k, x->rank, &a) || (seen >> a & 1)) return false;
        seen |= 1u << a;
        before[a] = pads[k];
        after[a] = pads[n / 2 + k];
        if (before[a] < -x->dim[a] || after[a] < -x->dim[a] || before[a] > INT32_MAX || after[a] > INT32_MAX) return false;
    }
    for (uint32_t k = 0; k < x->rank; k++)
        if ((dim[k] = x->dim[k] + before[k] + after[k]) < 0) return false;
    if (!rl_ev_make_raw(e, port, out, x->dtype, x->rank, dim)) return false;
    fill(out, one);
    for (uint32_t k = 0; k < x->rank; k++) {
        rl_ev_add_dim(&w, x->dim[k] + RL_MIN(before[k], 0) + RL_MIN(after[k], 0), rl_ev_stride(out, k), rl_ev_stride(x, k));
        w.off[0] += RL_MAX(before[k], 0) * rl_ev_stride(out, k);
        w.off[1] -= RL_MIN(before[k], 0) * rl_ev_stride(x, k);
    }
    rl_ev_copy(&w, out->raw, x->raw, x->size);
    return true;
}

bool rl_ev_trilu(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    int64_t diagonal;
    (void)arg;
    if (!x || x->rank < 2 || !rl_ev_scalar(e, 1, 0, &diagonal) || !rl_ev_make_raw(e, port, out, x->dtype, x->rank, x->dim)) return false;
    bool upper = rl_attr_int(e->n, "upper", 1) != 0;
    int64_t rows = x->dim[x->rank - 2], cols = x->dim[x->rank - 1];
    diagonal = RL_MAX(-rows - 1, RL_MIN(diagonal, cols + 1));
    for (int64_t k = 0; k < x->n; k++) {
        int64_t over = k % cols - k / cols % rows - diagonal;
        if (upper ? over >= 0 : over <= 0) memcpy(out->raw + (size_t)k * x->size, x->raw + (size_t)k * x->size, x->size);
    }
    return true;
}

bool rl_ev_fill(evaluator *e, int arg, uint32_t port, tensor *out) {
    const rl_attr *a = rl_attr_find(e->n, "value");
    static const char zero[8];
    uint32_t rank;
    const int64_t *dim;
    (void)arg;
    if (a && (!a->tensor || !a->tensor->data || a->tensor->nbyte != rl_dtype_bits(a->tensor->dtype) / 8)) return false;
    if (!rl_ev_shape_input(e, 0, &rank, &dim) || !rl_ev_make_raw(e, port, out, a ? a->tensor->dtype : RL_F32, rank, dim)) return false;
    fill(out, a ? a->tensor->data : zero);
    return true;
}

bool rl_ev_where(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *c = rl_ev_input(e, 0), *x = rl_ev_input(e, 1), *y = rl_ev_input(e, 2);
    int64_t dim[MAXRANK + 1];
    uint32_t rank = 0;
    (void)arg;
    if (!c || !x || !y || c->dtype != RL_BOOL || x->dtype != y->dtype) return false;
    if (!rl_ev_broadcast(&rank, dim, c->rank, c->dim) || !rl_ev_broadcast(&rank, dim, x->rank, x->dim) || !rl_ev_broadcast(&rank, dim, y->rank, y->dim)) return false;
    if (!rl_ev_make_raw(e, port, out, x->dtype, rank, dim)) return false;
    walk w = rl_ev_walk_over(out);
    rl_ev_spread(&w, 0, c);
    rl_ev_spread(&w, 1, x);
    rl_ev_spread(&w, 2, y);
    for (int64_t k = 0; k < out->n; k++, rl_ev_advance(&w)) {
        const char *from = c->raw[w.off[0]] ? x->raw + (size_t)w.off[1] * x->size : y->raw + (size_t)w.off[2] * x->size;
        memcpy(out->raw + (size_t)k * out->size, from, out->size);
    }
    return true;
}

bool rl_ev_scatter_nd(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0), *at = rl_ev_input(e, 1), *y = rl_ev_input(e, 2);
    (void)arg;
    if (!x || !at || !y || at->dtype != RL_I64 || at->rank == 0 || y->dtype != x->dtype) return false;
    if (rl_attr_find(e->n, "reduction") && !rl_attr_is(e->n, "reduction", "none")) return false;
    int64_t depth = at->dim[at->rank - 1], rows = 1, run = 1, n;
    if (depth < 1 || depth > (int64_t)x->rank || !rl_ev_load(e, at)) return false;
    for (uint32_t k = 0; k + 1 < at->rank; k++) rows *= at->dim[k];
    for (uint32_t k = (uint32_t)depth; k < x->rank; k++) run *= x->dim[k];
    if (__builtin_mul_overflow(rows, run, &n) || y->n != n || !rl_ev_spend(e, (uint64_t)n)) return false;
    if (!rl_ev_make_raw(e, port, out, x->dtype, x->rank, x->dim)) return false;
    memcpy(out->raw, x->raw, (size_t)x->n * x->size);
    for (int64_t r = 0; r < rows; r++) {
        int64_t off = 0;
        for (uint32_t k = 0; k < (uint32_t)depth; k++) {
            int64_t i = at->i[r * depth + k];
            if (i < 0) i += x->dim[k];
            if (i < 0 || i >= x->dim[k]) return false;
            off += i * rl_ev_stride(x, k);
        }
        memcpy(out->raw + (size_t)off * x->size, y->raw + (size_t)(r * run) * x->size, (size_t)run * x->size);
    }
    return true;
}

bool rl_ev_eye(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    (void)arg;
    if (!x || x->rank != 2) return false;
    rl_dtype t = (rl_dtype)rl_attr_int(e->n, "dtype", (int64_t)x->dtype);
    if (!rl_ev_computes(t) || !rl_ev_make(e, port, out, t, 2, x->dim)) return false;
    int64_t diagonal = rl_attr_int(e->n, "k", 0);
    for (int64_t r = 0; r < x->dim[0]; r++) {
        if (diagonal < -r || diagonal >= x->dim[1] - r) continue;
        if (out->f) out->f[r * x->dim[1] + r + diagonal] = 1;
        else out->i[r * x->dim[1] + r + diagonal] = 1;
    }
    return rl_ev_store(out);
}
