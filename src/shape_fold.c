/* The contents of small tensors: constants, and numbers that depend on symbolic sizes.
 *
 * After a node's types are inferred, and where its outputs are small, folds[] computes their elements as cells (shape_cell.h).
 * A tensor all known becomes rl_valinfo.data; one known in part rl_valinfo.elem (integers get both).
 * A constant of any size that only gets another shape is data with the same bytes.
 *   Shape(f32[N,3,H,W]) = {N,3,H,W};  Gather 2 = H;  Cast to f32 = H;  Mul 0.5 = H/2;  Floor = floor(H/2) */
#include "shape_cell.h"

#include <math.h>

#include "eval.h"

typedef rl_cell cell;

static const cell none = {.kind = CELL_NONE};

/* Fills out, whose type is that of output `port`; false when nothing can be told. */
typedef bool fold_fn(rl_shaper *s, int arg, uint32_t port, rl_cells *out);

/* Does t broadcast to out?  Where out's dims were declared, not inferred, it may not. */
static bool spreads(const rl_cells *out, const rl_cells *t) {
    if (t->rank > out->rank || (t->n == 0 && out->n)) return false;
    for (uint32_t k = 0; k < t->rank; k++)
        if (t->dim[k] != 1 && t->dim[k] != out->dim[out->rank - t->rank + k]) return false;
    return true;
}

/* Where element i of `out` lies in `in`, which broadcasts to it. */
static uint32_t broadcast_index(const rl_cells *out, const rl_cells *in, uint32_t i) {
    uint32_t at = 0, step = 1;
    for (uint32_t k = out->rank, j = in->rank; j-- > 0 && k-- > 0;) {
        uint32_t d = (uint32_t)out->dim[k], x = i % d;
        i /= d;
        if (in->dim[j] != 1) at += x * step;
        step *= (uint32_t)in->dim[j];
    }
    return at;
}

static uint32_t stride_of(const rl_cells *t, uint32_t axis) {
    uint32_t n = 1;
    for (uint32_t k = axis + 1; k < t->rank; k++) n *= (uint32_t)t->dim[k];
    return n;
}

/* axis as an index into t's dims; false when it is none. */
static bool axis_in(int64_t axis, uint32_t rank, uint32_t *a) {
    if (axis < 0) axis += rank;
    *a = (uint32_t)axis;
    return axis >= 0 && axis < rank;
}

static bool fold_copy(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    (void)arg;
    if (port || !load(s, 0, &x) || x.n != out->n || x.dtype != out->dtype) return false;
    out->cell = x.cell;
    return true;
}

static bool fold_cast(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    (void)arg, (void)port;
    if (!load(s, 0, &x) || x.n != out->n) return false;
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = rl_cell_convert(s, x.cell[i], x.dtype, out->dtype);
    return true;
}

static bool fold_unary(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    (void)port;
    if (!load(s, 0, &x) || x.n != out->n || !computes(x.dtype)) return false;
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = rl_cell_rounded(rl_cell_apply(s, (unary)arg, x.cell[i], !rl_dtype_is_c_float(out->dtype)), out->dtype);
    return true;
}

/* Sum, Min, Max have any number of inputs. */
static bool fold_binary(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x, y;
    (void)port;
    if (s->n->nin == 0 || !load(s, 0, &x) || !computes(x.dtype) || !spreads(out, &x)) return false;
    if (s->n->nin > 2 && rl_dtype_is_c_float(x.dtype) && arg == ADD) return false; /* the order of the sum is not fixed */
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = x.cell[broadcast_index(out, &x, i)];
    for (uint32_t k = 1; k < s->n->nin; k++) {
        if (!load(s, k, &y) || y.dtype != x.dtype || !spreads(out, &y)) return false;
        for (uint32_t i = 0; i < out->n; i++)
            out->cell[i] = rl_cell_rounded(rl_cell_combine(s, (binary)arg, out->cell[i], y.cell[broadcast_index(out, &y, i)], x.dtype), x.dtype);
    }
    return true;
}

static bool same_cell(cell a, cell b) {
    if (a.kind != b.kind || a.kind == CELL_NONE) return false;
    return a.kind == CELL_FLOAT ? a.f == b.f && signbit(a.f) == signbit(b.f) : a.num == b.num && a.sym == b.sym;
}

static bool fold_where(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells c, x, y;
    (void)arg, (void)port;
    bool has_c = load(s, 0, &c), has_x = load(s, 1, &x), has_y = load(s, 2, &y);
    if (!has_c && (!has_x || !has_y)) return false;
    if ((has_c && !spreads(out, &c)) || (has_x && !spreads(out, &x)) || (has_y && !spreads(out, &y))) return false;
    for (uint32_t i = 0; i < out->n; i++) {
        cell a = has_x ? x.cell[broadcast_index(out, &x, i)] : none, b = has_y ? y.cell[broadcast_index(out, &y, i)] : none;
        cell t = has_c ? c.cell[broadcast_index(out, &c, i)] : none;
        out->cell[i] = t.kind == CELL_INT ? (t.num ? a : b) : same_cell(a, b) ? a : none;
    }
    return true;
}

static bool fold_expand(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    (void)arg, (void)port;
    if (!load(s, 0, &x) || !spreads(out, &x)) return false;
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = x.cell[broadcast_index(out, &x, i)];
    return true;
}

static bool fold_tile(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    (void)arg, (void)port;
    if (!load(s, 0, &x) || x.rank != out->rank || (x.n == 0 && out->n)) return false;
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t at = 0;
        for (uint32_t k = 0; k < out->rank; k++) {
            uint32_t pos = i / stride_of(out, k) % (uint32_t)out->dim[k];
            at += pos % (uint32_t)x.dim[k] * stride_of(&x, k);
        }
        out->cell[i] = x.cell[at];
    }
    return true;
}

static bool fold_transpose(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    const rl_attr *perm = rl_attr_ints(s->n, "perm");
    (void)arg, (void)port;
    if (!load(s, 0, &x) || x.rank != out->rank) return false;
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t at = 0, rest = i;
        for (uint32_t k = out->rank; k-- > 0;) {
            uint32_t a = out->rank - 1 - k;
            if (perm) axis_in(perm->ints[k], x.rank, &a);
            if (out->dim[k] != x.dim[a]) return false; /* a declared shape may say otherwise */
            at += rest % (uint32_t)out->dim[k] * stride_of(&x, a);
            rest /= (uint32_t)out->dim[k];
        }
        out->cell[i] = x.cell[at];
    }
    return true;
}

static bool fold_concat(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    uint32_t axis, from = 0;
    (void)arg, (void)port;
    if (!axis_in(rl_attr_int(s->n, "axis", 1), out->rank, &axis)) return false;
    uint32_t inner = stride_of(out, axis), row = inner * (uint32_t)out->dim[axis];
    for (uint32_t k = 0; k < s->n->nin; k++) {
        const rl_valinfo *v = input(s, k);
        rl_cells x;
        uint32_t n;
        if (!v || v->rank != out->rank || !rl_cell_count(v->rank, v->dim, &n)) return false;
        uint32_t part = inner * (uint32_t)v->dim[axis];
        if (part > row - from || (n && (!part || n % part || n / part * row > out->n))) return false; /* a declared size was wrong */
        if (load(s, k, &x))
            for (uint32_t i = 0; i < x.n; i++) out->cell[i / part * row + from + i % part] = x.cell[i];
        from += part;
    }
    return from == row;
}

static bool fold_split(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    uint32_t axis, from = 0;
    (void)arg;
    if (s->n->nout > MAXELEM || !load(s, 0, &x) || out->rank != x.rank) return false;
    if (!axis_in(rl_attr_int(s->n, "axis", 0), x.rank, &axis)) return false;
    for (uint32_t k = 0; k < port; k++) {
        if (!rl_has(s->n->out[k])) return false;
        const rl_valinfo *v = rl_val(s->g, s->n->out[k]);
        if (v->rank != x.rank || !rl_dim_known(v->dim[axis]) || v->dim[axis] > MAXCELL) return false;
        from += (uint32_t)v->dim[axis];
    }
    uint32_t inner = stride_of(&x, axis), part = inner * (uint32_t)out->dim[axis], row = inner * (uint32_t)x.dim[axis];
    if (from + out->dim[axis] > x.dim[axis]) return false;
    for (uint32_t k = 0; k < x.rank; k++)
        if (k != axis && out->dim[k] != x.dim[k]) return false; /* a declared shape may say otherwise */
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = x.cell[i / part * row + from * inner + i % part];
    return true;
}

/* Integers of attribute `name` or input `slot`. */
static bool int_list(const rl_shaper *s, const char *name, uint32_t slot, const int64_t **p, uint32_t *n) {
    const rl_attr *a = name ? rl_attr_find(s->n, name) : NULL;
    rl_cells t;
    if (a) {
        *p = a->ints;
        *n = a->n;
        return a->kind == RL_ATTR_INTS;
    }
    if (!load(s, slot, &t)) return false;
    int64_t *x = rl_new(s->tmp, int64_t, t.n);
    for (uint32_t i = 0; i < t.n; i++) {
        if (t.cell[i].kind != CELL_INT) return false;
        x[i] = t.cell[i].num;
    }
    *p = x;
    *n = t.n;
    return true;
}

static bool fold_slice(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    const int64_t *from, *axes = NULL, *steps = NULL;
    uint32_t n, m, a;
    (void)arg, (void)port;
    if (!load(s, 0, &x) || x.rank != out->rank || !int_list(s, "starts", 1, &from, &n)) return false;
    if ((rl_attr_find(s->n, "axes") || input(s, 3)) && (!int_list(s, "axes", 3, &axes, &m) || m != n)) return false;
    if (input(s, 4) && (!int_list(s, NULL, 4, &steps, &m) || m != n)) return false;
    int64_t *start = rl_new(s->tmp, int64_t, x.rank), *step = rl_new(s->tmp, int64_t, x.rank);
    for (uint32_t k = 0; k < x.rank; k++) step[k] = 1;
    for (uint32_t k = 0; k < n; k++) {
        if (!axis_in(axes ? axes[k] : k, x.rank, &a)) return false;
        int64_t d = x.dim[a], b = from[k] < 0 ? from[k] + d : from[k];
        step[a] = steps ? RL_MAX(RL_MIN(steps[k], MAXCELL), -MAXCELL) : 1; /* what is beyond the last element is */
        start[a] = RL_MAX(RL_MIN(b, step[a] < 0 ? d - 1 : d), 0);
    }
    for (uint32_t i = 0; i < out->n; i++) {
        int64_t at = 0;
        for (uint32_t k = 0; k < x.rank; k++) {
            int64_t place = start[k] + (out->dim[k] > 1 ? i / stride_of(out, k) % (uint32_t)out->dim[k] * step[k] : 0);
            if (place < 0 || place >= x.dim[k]) return false; /* a declared shape may say otherwise */
            at += place * stride_of(&x, k);
        }
        out->cell[i] = x.cell[at];
    }
    return true;
}

static bool fold_gather(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x, at;
    uint32_t axis;
    (void)arg, (void)port;
    if (!load(s, 0, &x) || !load(s, 1, &at) || !axis_in(rl_attr_int(s->n, "axis", 0), x.rank, &axis)) return false;
    uint32_t inner = stride_of(&x, axis);
    int64_t d = x.dim[axis];
    if (out->n && (d == 0 || (int64_t)out->n != x.n / d * at.n)) return false; /* a declared shape may say otherwise */
    for (uint32_t i = 0; i < out->n; i++) {
        cell c = at.cell[i / inner % at.n];
        if (c.kind != CELL_INT || c.num < -d || c.num >= d) continue;
        uint32_t k = (uint32_t)(c.num < 0 ? c.num + d : c.num);
        out->cell[i] = x.cell[(i / inner / at.n * (uint32_t)d + k) * inner + i % inner];
    }
    return true;
}

/* Along the last axis: how an exporter writes "repeat that dim". */
static bool fold_one_hot(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells at, value;
    (void)arg, (void)port;
    if (!load(s, 0, &at) || !load(s, 2, &value) || value.n != 2 || out->rank == 0 || rl_attr_int(s->n, "axis", -1) != -1) return false;
    int64_t depth = out->dim[out->rank - 1];
    if ((int64_t)out->n != depth * at.n) return false; /* a declared shape may say otherwise */
    for (uint32_t i = 0; i < out->n; i++) {
        cell c = at.cell[i / depth];
        if (c.kind == CELL_INT) out->cell[i] = value.cell[(c.num < 0 ? c.num + depth : c.num) == (int64_t)i % depth];
    }
    return true;
}

/* A list with some numbers put in other ones' place: how an exporter writes sizes of which one is a tensor's. */
static bool fold_scatter(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x, at, now;
    (void)arg, (void)port;
    if (!load(s, 0, &x) || !load(s, 1, &at) || !load(s, 2, &now) || x.rank != 1 || at.n != now.n || out->n != x.n) return false;
    if (rl_attr_find(s->n, "reduction") && !rl_attr_is(s->n, "reduction", "none")) return false;
    memcpy(out->cell, x.cell, x.n * sizeof *x.cell);
    for (uint32_t i = 0; i < at.n; i++) {
        cell c = at.cell[i];
        if (c.kind != CELL_INT || c.num < -x.dim[0] || c.num >= x.dim[0]) return false;
        out->cell[c.num < 0 ? c.num + x.dim[0] : c.num] = now.cell[i];
    }
    return true;
}

static bool fold_shape(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    const rl_valinfo *x = input(s, 0);
    (void)arg, (void)port;
    if (!x || x->rank == RL_NORANK) return false;
    int64_t a = rl_attr_int(s->n, "start", 0);
    if (a < 0) a += x->rank;
    a = RL_MAX(0, RL_MIN(a, x->rank));
    for (uint32_t i = 0; i < out->n && a + i < x->rank; i++) {
        rl_dim d = x->dim[a + i];
        out->cell[i] = of_dim(d);
    }
    return true;
}

static bool fold_size(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    const rl_valinfo *x = input(s, 0);
    (void)arg, (void)port;
    if (!x || x->rank == RL_NORANK || out->n != 1) return false;
    out->cell[0] = of_dim(rl_shape_prod(s, x->dim, x->rank));
    return true;
}

static bool fold_fill(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    const rl_attr *a = rl_attr_find(s->n, "value");
    uint32_t bits = rl_dtype_bits(out->dtype);
    cell c = of_float(0);
    (void)arg, (void)port;
    if (a) {
        if (!a->tensor || !a->tensor->data || bits < 8 || bits > 64 || a->tensor->nbyte != bits / 8) return false;
        c = rl_cell_decode(out->dtype, a->tensor->data);
    }
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = c;
    return true;
}

static bool fold_range(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells a, d;
    (void)arg, (void)port;
    if (rl_dtype_is_c_float(out->dtype) || !load(s, 0, &a) || a.n != 1) return false;
    cell step = of_int(1);
    if (input(s, 2)) {
        if (!load(s, 2, &d) || d.n != 1) return false;
        step = d.cell[0];
    }
    for (uint32_t i = 0; i < out->n; i++)
        out->cell[i] = rl_cell_combine(s, ADD, a.cell[0], rl_cell_combine(s, MUL, step, of_int(i), out->dtype), out->dtype);
    return true;
}

/* Integers over the axes given: op over all elements that meet in one of out's. */
static bool fold_reduce(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    const int64_t *axes = NULL;
    uint32_t n = 0, a;
    (void)port;
    if (!load(s, 0, &x) || rl_dtype_is_c_float(x.dtype) || !computes(x.dtype) || x.n == 0) return false;
    if ((rl_attr_find(s->n, "axes") || input(s, 1)) && !int_list(s, "axes", 1, &axes, &n)) return false;
    if (n == 0 && rl_attr_int(s->n, "noop_with_empty_axes", 0)) return fold_copy(s, 0, 0, out);
    bool *gone = rl_new(s->tmp, bool, x.rank), *begun = rl_new(s->tmp, bool, out->n);
    for (uint32_t k = 0; k < x.rank; k++) gone[k] = n == 0;
    for (uint32_t k = 0; k < n; k++) {
        if (!axis_in(axes[k], x.rank, &a)) return false;
        gone[a] = true;
    }
    for (uint32_t i = 0; i < x.n; i++) {
        uint32_t at = 0, step = 1, rest = i;
        for (uint32_t k = x.rank; k-- > 0; rest /= (uint32_t)x.dim[k]) {
            if (gone[k]) continue;
            at += rest % (uint32_t)x.dim[k] * step;
            step *= (uint32_t)x.dim[k];
        }
        if (at >= out->n) return false;
        out->cell[at] = begun[at] ? rl_cell_combine(s, (binary)arg, out->cell[at], x.cell[i], x.dtype) : x.cell[i];
        begun[at] = true;
    }
    return true;
}

static bool fold_non_zero(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    rl_cells x;
    uint32_t found = 0;
    (void)arg, (void)port;
    if (!load(s, 0, &x) || out->rank != 2 || out->dim[0] != x.rank) return false;
    for (uint32_t i = 0; i < x.n; i++) {
        if (x.cell[i].kind != CELL_INT && x.cell[i].kind != CELL_FLOAT) return false;
        if (x.cell[i].kind == CELL_INT ? x.cell[i].num == 0 : x.cell[i].f == 0) continue;
        if (found >= out->dim[1]) return false;
        for (uint32_t k = 0; k < x.rank; k++)
            out->cell[k * (uint32_t)out->dim[1] + found] = of_int(i / stride_of(&x, k) % (uint32_t)x.dim[k]);
        found++;
    }
    return found == out->dim[1];
}

/* Where the reader left the bytes of a Constant out: numbers written as attributes. */
static bool fold_constant(rl_shaper *s, int arg, uint32_t port, rl_cells *out) {
    (void)arg;
    if (rl_val(s->g, s->n->out[port])->data || s->n->nattr == 0) return false;
    const rl_attr *a = &s->n->attr[0];
    if (a->kind == RL_ATTR_INT && out->n == 1) out->cell[0] = of_int(a->i);
    else if (a->kind == RL_ATTR_FLOAT && out->n == 1) out->cell[0] = of_float((double)a->f);
    else if (a->kind != RL_ATTR_INTS && a->kind != RL_ATTR_FLOATS) return false;
    for (uint32_t i = 0; i < out->n && i < a->n; i++)
        out->cell[i] = a->kind == RL_ATTR_INTS ? of_int(a->ints[i]) : of_float((double)a->floats[i]);
    return true;
}

static const struct { fold_fn *fn; int arg; } folds[RL_NOP] = {
#define ROW(op, fn, arg) [RL_OP_##op] = {fn, arg}
    ROW(Abs, fold_unary, ABS),
    ROW(Add, fold_binary, ADD),
    ROW(And, fold_binary, AND),
    ROW(Cast, fold_cast, 0),
    ROW(CastLike, fold_cast, 0),
    ROW(Ceil, fold_unary, CEIL),
    ROW(Concat, fold_concat, 0),
    ROW(Constant, fold_constant, 0),
    ROW(ConstantOfShape, fold_fill, 0),
    ROW(Div, fold_binary, DIV),
    ROW(Equal, fold_binary, EQ),
    ROW(Expand, fold_expand, 0),
    ROW(Flatten, fold_copy, 0),
    ROW(Floor, fold_unary, FLOOR),
    ROW(Gather, fold_gather, 0),
    ROW(Greater, fold_binary, GT),
    ROW(GreaterOrEqual, fold_binary, GE),
    ROW(Identity, fold_copy, 0),
    ROW(Less, fold_binary, LT),
    ROW(LessOrEqual, fold_binary, LE),
    ROW(Max, fold_binary, MAX),
    ROW(Min, fold_binary, MIN),
    ROW(Mod, fold_binary, MOD),
    ROW(Mul, fold_binary, MUL),
    ROW(Neg, fold_unary, NEG),
    ROW(NonZero, fold_non_zero, 0),
    ROW(Not, fold_unary, NOT),
    ROW(OneHot, fold_one_hot, 0),
    ROW(Or, fold_binary, OR),
    ROW(Pow, fold_binary, POW),
    ROW(Range, fold_range, 0),
    ROW(Reciprocal, fold_unary, RECIPROCAL),
    ROW(ReduceMax, fold_reduce, MAX),
    ROW(ReduceMin, fold_reduce, MIN),
    ROW(ReduceProd, fold_reduce, MUL),
    ROW(ReduceSum, fold_reduce, ADD),
    ROW(Reshape, fold_copy, 0),
    ROW(Round, fold_unary, ROUND),
    ROW(Scatter, fold_scatter, 0),
    ROW(ScatterElements, fold_scatter, 0),
    ROW(Shape, fold_shape, 0),
    ROW(Sign, fold_unary, SIGN),
    ROW(Size, fold_size, 0),
    ROW(Slice, fold_slice, 0),
    ROW(Split, fold_split, 0),
    ROW(Sqrt, fold_unary, SQRT),
    ROW(Squeeze, fold_copy, 0),
    ROW(Sub, fold_binary, SUB),
    ROW(Sum, fold_binary, ADD),
    ROW(Tile, fold_tile, 0),
    ROW(Transpose, fold_transpose, 0),
    ROW(Unsqueeze, fold_copy, 0),
    ROW(Where, fold_where, 0),
    ROW(Xor, fold_binary, XOR),
#undef ROW
};

bool rl_shape_share(const rl_shaper *s, uint32_t port, const rl_valinfo *x) {
    const rl_const *c = x ? rl_cell_constant(s, x) : NULL;
    rl_value y = rl_out(s->n, port);
    if (!c || !rl_has(y)) return false;
    rl_valinfo *v = rl_val(s->g, y);
    uint32_t small;
    if (v->rank == RL_NORANK || v->dtype != c->dtype || (rl_cell_count(v->rank, v->dim, &small) && small <= MAXELEM)) return false;
    rl_dim n = rl_shape_prod(s, c->dim, c->rank), m = rl_shape_prod(s, v->dim, v->rank);
    if (!rl_dim_known(n) || n != m) return false;
    rl_const *p = rl_new(&s->g->mem, rl_const, 1);
    *p = (rl_const){c->dtype, v->rank, v->dim, c->data, c->nbyte};
    v->data = p;
    return true;
}

static bool is_known(const rl_shaper *s, uint32_t i) {
    const rl_valinfo *x = input(s, i);
    return x && (x->elem || rl_cell_constant(s, x));
}

/* Whether enough of the inputs may be known: of most ops the first must be. */
static bool may_fold(const rl_shaper *s, fold_fn *fn) {
    if (fn == fold_constant || fn == fold_fill || fn == fold_shape || fn == fold_size || is_known(s, 0)) return true;
    if (fn != fold_concat && fn != fold_where) return false;
    for (uint32_t i = 1; i < s->n->nin; i++)
        if (is_known(s, i)) return true;
    return false;
}

/* Ops without a fold, at least of floats, that round nothing: their results are a runtime's to the last bit. */
static bool only_chooses(rl_op op) {
    return op == RL_OP_Clip || op == RL_OP_ReduceMax || op == RL_OP_ReduceMin;
}

/* What the folds leave of numbers that only come from constants: sizes that were computed in floats, say. */
static void compute(const rl_shaper *s, rl_node n) {
    uint32_t small;
    if (s->depth || !only_chooses(s->n->op) || !is_known(s, 0)) return;
    for (uint32_t i = 0; i < s->n->nout; i++) {
        const rl_valinfo *v = rl_has(s->n->out[i]) ? rl_val(s->g, s->n->out[i]) : NULL;
        if (v && (v->data || v->rank > 1 || !rl_cell_count(v->rank, v->dim, &small) || small > MAXELEM)) return;
    }
    rl_eval_node(s->g, n, &(rl_eval_limit)RL_EVAL_LIMIT);
}

static void fold_cells(rl_shaper *s, fold_fn *fn) {
    for (uint32_t port = 0; port < s->n->nout; port++) {
        if (!rl_has(s->n->out[port]) || (port && fn != fold_split)) continue;
        const rl_valinfo *v = rl_val(s->g, s->n->out[port]);
        rl_cells out = {.dtype = v->dtype, .rank = v->rank, .dim = v->dim};
        if (v->dtype == RL_UNDEF || !rl_cell_count(v->rank, v->dim, &out.n)) continue;
        out.cell = rl_new(s->tmp, cell, out.n);
        if (fn(s, folds[s->n->op].arg, port, &out)) rl_shape_store(s, port, &out);
    }
}

/* The nodes of a real model mostly compute on tensors that are large or not known: those return at once. */
void rl_shape_fold(rl_shaper *s, rl_node n) {
    fold_fn *fn = folds[s->n->op].fn;
    if (fn && may_fold(s, fn) && !(fn == fold_copy && rl_shape_share(s, 0, input(s, 0)))) fold_cells(s, fn);
    compute(s, n);
}
