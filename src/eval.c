/* The evaluator of eval.h: one function per kind of op, found in evals[].
 *
 * Ops that only move data copy bytes of any type: copy() moves one box of elements with a step per dim on each side.  Ops that
 * compute load whole tensors as doubles or as 64-bit integers, work on those, and store() rounds to the tensor's type; for
 * + - * / and square roots of floats that gives what arithmetic in float gives, as double has more than twice the bits.
 * make() alone decides whether a result may exist: it checks the inferred type of the output and the limits. */
#include "eval.h"

#include <math.h>
#include <string.h>

#include "move.h"
#include "ops.h"

#define MAXRANK 12
#define MAXLOAD (1 << 24) /* elements that one node may work on */
#define WIDE (2 * MAXRANK) /* dims of a walk: Tile has two for each */

typedef struct {
    bool given;
    rl_dtype dtype;
    uint32_t rank;
    int64_t dim[MAXRANK], n; /* n: elements */
    size_t size;             /* bytes of one */
    char *raw;
    double *f;               /* after load(), for floats */
    int64_t *i;              /* ... for the rest */
} tensor;

typedef struct {
    rl_graph *g;
    const rl_nodeinfo *n;
    rl_arena tmp;
    rl_eval_limit *limit;
    tensor *in;
    size_t nbyte;   /* of the inputs */
    int64_t loaded; /* elements that are numbers by now */
} evaluator;

/* ---- tensors ---- */

const rl_const *rl_eval_constant(const rl_graph *g, rl_value v) {
    if (!rl_has(v)) return NULL;
    const rl_valinfo *x = rl_val(g, v);
    if (!x->data || !x->data->data || (x->is_input && g->ir_version >= 4)) return NULL;
    return x->data;
}

static bool is_float(rl_dtype t) {
    return t == RL_F32 || t == RL_F64;
}

static bool computes(rl_dtype t) {
    return is_float(t) || t == RL_BOOL || (t >= RL_U8 && t <= RL_I64);
}

static bool spend(evaluator *e, uint64_t work) {
    if (work > e->limit->work) return false;
    e->limit->work -= work;
    return true;
}

/* False also where an empty tensor's other dims overflow, so that no stride does. */
static bool count(uint32_t rank, const int64_t *dim, int64_t *n) {
    bool empty = false;
    *n = 1;
    for (uint32_t k = 0; k < rank; k++) {
        if (dim[k] < 0 || __builtin_mul_overflow(*n, RL_MAX(dim[k], 1), n)) return false;
        empty |= dim[k] == 0;
    }
    bool ok = *n <= INT64_MAX / 16;
    if (empty) *n = 0;
    return ok;
}

static bool open_input(const rl_const *c, tensor *t) {
    uint32_t bits = rl_dtype_bits(c->dtype);
    if (c->rank > MAXRANK || bits < 8 || bits > 64 || !count(c->rank, c->dim, &t->n)) return false;
    *t = (tensor){.given = true, .dtype = c->dtype, .rank = c->rank, .n = t->n, .size = bits / 8};
    for (uint32_t k = 0; k < c->rank; k++) t->dim[k] = c->dim[k];
    t->raw = (char *)(uintptr_t)c->data; /* only read */
    return c->nbyte == (size_t)t->n * t->size;
}

static bool open_inputs(evaluator *e) {
    e->in = rl_new(&e->tmp, tensor, e->n->nin);
    for (uint32_t i = 0; i < e->n->nin; i++) {
        if (!rl_has(e->n->in[i])) continue;
        const rl_const *c = rl_eval_constant(e->g, e->n->in[i]);
        const rl_valinfo *v = rl_val(e->g, e->n->in[i]);
        if (!c || c->dtype != v->dtype || c->rank != v->rank || !open_input(c, &e->in[i])) return false;
        e->nbyte += c->nbyte;
    }
    return true;
}

/* Input i, or NULL where it is left out. */
static tensor *input(const evaluator *e, uint32_t i) {
    return i < e->n->nin && e->in[i].given ? &e->in[i] : NULL;
}

static bool is_as_inferred(const rl_valinfo *v, rl_dtype t, uint32_t rank, const int64_t *dim) {
    if (v->dtype != t || v->rank != rank) return false;
    for (uint32_t k = 0; k < rank; k++)
        if (v->dim[k] != dim[k]) return false;
    return true;
}

/* Room for output `port`, zeroed; false when it must not be. */
static bool make(evaluator *e, uint32_t port, tensor *out, rl_dtype t, uint32_t rank, const int64_t *dim) {
    int64_t n;
    size_t size = rl_dtype_bits(t) / 8;
    if (rank > MAXRANK || !size || size > 8 || !count(rank, dim, &n)) return false;
    if (!is_as_inferred(rl_val(e->g, e->n->out[port]), t, rank, dim)) return false;
    size_t nbyte = (size_t)n * size;
    if (nbyte > e->limit->one || nbyte > e->limit->all || (nbyte > e->nbyte && nbyte > e->limit->grown)) return false;
    if (!spend(e, (uint64_t)n * 2 + 1)) return false;
    e->limit->all -= nbyte;
    *out = (tensor){.given = true, .dtype = t, .rank = rank, .n = n, .size = size, .raw = rl_alloc(&e->g->mem, nbyte + 1)};
    for (uint32_t k = 0; k < rank; k++) out->dim[k] = dim[k];
    if (!is_float(t)) out->i = computes(t) ? rl_new(&e->tmp, int64_t, n) : NULL;
    else out->f = rl_new(&e->tmp, double, n);
    return true;
}

/* As make, for a result that is only bytes. */
static bool make_raw(evaluator *e, uint32_t port, tensor *out, const tensor *like, uint32_t rank, const int64_t *dim) {
    return make(e, port, out, like->dtype, rank, dim);
}

static int64_t load_int(rl_dtype t, const char *p) {
    union { int8_t i8; uint8_t u8; int16_t i16; uint16_t u16; int32_t i32; int64_t i64; } x = {0};
    memcpy(&x, p, rl_dtype_bits(t) / 8);
    switch (t) {
    case RL_BOOL: return x.u8 != 0;
    case RL_U8: return x.u8;
    case RL_I8: return x.i8;
    case RL_U16: return x.u16;
    case RL_I16: return x.i16;
    case RL_I32: return x.i32;
    default: return x.i64;
    }
}

static double load_float(rl_dtype t, const char *p) {
    float f;
    double d;
    if (t == RL_F64) return memcpy(&d, p, 8), d;
    return memcpy(&f, p, 4), (double)f;
}

/* Makes the elements numbers. */
static bool load(evaluator *e, tensor *t) {
    if (!t || !computes(t->dtype)) return false;
    if (t->f || t->i) return true;
    if (t->n > MAXLOAD - e->loaded || !spend(e, (uint64_t)t->n)) return false;
    e->loaded += t->n;
    if (is_float(t->dtype)) t->f = rl_new(&e->tmp, double, t->n + 1);
    else t->i = rl_new(&e->tmp, int64_t, t->n + 1);
    for (int64_t k = 0; k < t->n; k++) {
        const char *p = t->raw + (size_t)k * t->size;
        if (t->f) t->f[k] = load_float(t->dtype, p);
        else t->i[k] = load_int(t->dtype, p);
    }
    return true;
}

static bool load_as(evaluator *e, uint32_t i, rl_dtype t) {
    tensor *x = input(e, i);
    return x && x->dtype == t && load(e, x);
}

static bool store(tensor *t) {
    for (int64_t k = 0; k < t->n; k++) {
        char *p = t->raw + (size_t)k * t->size;
        float f = t->dtype == RL_F32 ? (float)t->f[k] : 0;
        if (t->dtype == RL_F32) memcpy(p, &f, 4);
        else if (t->f) memcpy(p, &t->f[k], 8);
        else memcpy(p, &t->i[k], t->size); /* little-endian: the low bytes */
    }
    return true;
}

/* Rounds to the precision of type t. */
static double rounded(rl_dtype t, double x) {
    return t == RL_F32 ? (double)(float)x : x;
}

/* ---- walks ---- */

/* Visits a box of elements in row-major order, keeping up to three offsets. */
typedef struct {
    uint32_t rank;
    int64_t dim[WIDE], at[WIDE], step[3][WIDE], off[3];
} walk;

static void advance(walk *w) {
    for (uint32_t k = w->rank; k-- > 0;) {
        for (int j = 0; j < 3; j++) w->off[j] += w->step[j][k];
        if (++w->at[k] < w->dim[k]) return;
        for (int j = 0; j < 3; j++) w->off[j] -= w->step[j][k] * w->dim[k];
        w->at[k] = 0;
    }
}

static void add_dim(walk *w, int64_t dim, int64_t step0, int64_t step1) {
    w->dim[w->rank] = dim;
    w->step[0][w->rank] = step0;
    w->step[1][w->rank++] = step1;
}

static int64_t stride(const tensor *t, uint32_t axis) {
    int64_t n = 1;
    for (uint32_t k = axis + 1; k < t->rank; k++) n *= t->dim[k];
    return n;
}

/* to[off 0] = from[off 1] over the box. */
static void copy(const walk *w, char *to, const char *from, size_t size) {
    rl_nest b = {.to = to, .from = from, .to_at = w->off[0], .from_at = w->off[1], .bits = 8 * (uint32_t)size, .n = w->rank};
    for (uint32_t k = 0; k < w->rank; k++) b.loop[k] = (rl_loop){w->dim[k], w->step[0][k], w->step[1][k]};
    rl_nest_move(&b, NULL);
}

/* Operand j of the walk is t, broadcast. */
static void spread(walk *w, int j, const tensor *t) {
    for (uint32_t k = t->rank, o = w->rank; k-- > 0;) w->step[j][--o] = t->dim[k] == 1 ? 0 : stride(t, k);
}

/* Widens (dim, rank) so that t broadcasts to it; false when it cannot. */
static bool broadcast(uint32_t *rank, int64_t *dim, uint32_t trank, const int64_t *tdim) {
    if (trank > MAXRANK) return false;
    while (*rank < trank) {
        memmove(dim + 1, dim, *rank * sizeof *dim);
        dim[0] = 1;
        ++*rank;
    }
    for (uint32_t k = 0; k < trank; k++) {
        int64_t *d = &dim[*rank - trank + k];
        if (*d != tdim[k] && *d != 1 && tdim[k] != 1) return false;
        if (*d == 1) *d = tdim[k];
    }
    return true;
}

static walk walk_over(const tensor *out) {
    walk w = {.rank = out->rank};
    memcpy(w.dim, out->dim, out->rank * sizeof *out->dim);
    return w;
}

/* ---- parameters ---- */

static bool axis_in(int64_t axis, uint32_t rank, uint32_t *a) {
    if (axis < 0) axis += rank;
    *a = (uint32_t)axis;
    return axis >= 0 && axis < rank;
}

/* The integers of the attribute of this name, or of input `slot`; *p NULL when neither is there. */
static bool ints(evaluator *e, const char *name, uint32_t slot, const int64_t **p, uint32_t *n) {
    const rl_attr *a = name ? rl_attr_find(e->n, name) : NULL;
    tensor *t = slot ? input(e, slot) : NULL;
    *p = NULL;
    *n = 0;
    if (t) {
        if ((t->dtype != RL_I64 && t->dtype != RL_I32) || t->n > 4096 || !load(e, t)) return false;
        *p = t->i;
        *n = (uint32_t)t->n;
    } else if (a) {
        if (a->kind != RL_ATTR_INTS) return false;
        *p = a->ints ? a->ints : rl_new(&e->tmp, int64_t, 1);
        *n = a->n;
    }
    return true;
}

/* Input 0 as a list: a shape. */
static bool shape_input(evaluator *e, uint32_t slot, uint32_t *rank, const int64_t **dim) {
    tensor *t = input(e, slot);
    if (!t || t->dtype != RL_I64 || t->rank != 1 || t->n > MAXRANK || !load(e, t)) return false;
    *rank = (uint32_t)t->n;
    *dim = t->i;
    return true;
}

static bool scalar(evaluator *e, uint32_t slot, int64_t dflt, int64_t *x) {
    tensor *t = input(e, slot);
    *x = dflt;
    if (!t) return true;
    if (t->n != 1 || (t->dtype != RL_I64 && t->dtype != RL_I32) || !load(e, t)) return false;
    *x = t->i[0];
    return true;
}

/* ---- ops that move ---- */

typedef bool eval_fn(evaluator *e, int arg, uint32_t port, tensor *out);

/* The bytes stay where they are. */
static bool eval_view(evaluator *e, int arg, uint32_t port, tensor *out) {
    const rl_valinfo *v = rl_val(e->g, e->n->out[port]);
    tensor *x = input(e, 0);
    int64_t n;
    (void)arg;
    if (port || !x || v->dtype != x->dtype || v->rank > MAXRANK) return false;
    for (uint32_t k = 0; k < v->rank; k++)
        if (!rl_dim_known(v->dim[k])) return false;
    if (!count(v->rank, v->dim, &n) || n != x->n) return false;
    *out = *x;
    out->rank = v->rank;
    for (uint32_t k = 0; k < v->rank; k++) out->dim[k] = v->dim[k];
    return true;
}

static bool eval_transpose(evaluator *e, int arg, uint32_t port, tensor *out) {
    const rl_attr *a = rl_attr_find(e->n, "perm");
    tensor *x = input(e, 0);
    int64_t dim[MAXRANK];
    uint32_t from[MAXRANK], seen = 0;
    (void)arg;
    if (!x || (a && (a->kind != RL_ATTR_INTS || a->n != x->rank))) return false;
    for (uint32_t k = 0; k < x->rank; k++) {
        if (!axis_in(a ? a->ints[k] : (int64_t)(x->rank - 1 - k), x->rank, &from[k]) || (seen >> from[k] & 1)) return false;
        seen |= 1u << from[k];
        dim[k] = x->dim[from[k]];
    }
    if (!make_raw(e, port, out, x, x->rank, dim)) return false;
    walk w = {0};
    for (uint32_t k = 0; k < x->rank; k++) add_dim(&w, dim[k], stride(out, k), stride(x, from[k]));
    copy(&w, out->raw, x->raw, x->size);
    return true;
}

static bool eval_expand(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    uint32_t rank, want;
    const int64_t *shape;
    int64_t dim[MAXRANK + 1];
    (void)arg;
    if (!x || !shape_input(e, 1, &want, &shape)) return false;
    rank = x->rank;
    memcpy(dim, x->dim, sizeof x->dim);
    if (!broadcast(&rank, dim, want, shape) || !make_raw(e, port, out, x, rank, dim)) return false;
    walk w = walk_over(out);
    spread(&w, 0, out);
    spread(&w, 1, x);
    copy(&w, out->raw, x->raw, x->size);
    return true;
}

static bool eval_concat(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *first = input(e, 0);
    int64_t dim[MAXRANK], from = 0;
    uint32_t axis;
    (void)arg;
    if (!first || !rl_attr_find(e->n, "axis") || !axis_in(rl_attr_int(e->n, "axis", 0), first->rank, &axis)) return false;
    memcpy(dim, first->dim, sizeof dim);
    for (uint32_t i = 1; i < e->n->nin; i++) {
        tensor *x = input(e, i);
        if (!x || x->rank != first->rank || x->dtype != first->dtype) return false;
        for (uint32_t k = 0; k < x->rank; k++)
            if (k != axis && x->dim[k] != dim[k]) return false;
        dim[axis] += x->dim[axis];
    }
    if (!make_raw(e, port, out, first, first->rank, dim)) return false;
    for (uint32_t i = 0; i < e->n->nin; i++) {
        tensor *x = input(e, i);
        walk w = {.off = {from * stride(out, axis)}};
        for (uint32_t k = 0; k < x->rank; k++) add_dim(&w, x->dim[k], stride(out, k), stride(x, k));
        copy(&w, out->raw, x->raw, x->size);
        from += x->dim[axis];
    }
    return true;
}

/* out = x[start : : step], of out's dims. */
static void copy_slice(tensor *out, const tensor *x, const int64_t *start, const int64_t *step) {
    walk w = {0};
    for (uint32_t k = 0; k < x->rank; k++) {
        w.off[1] += start[k] * stride(x, k);
        add_dim(&w, out->dim[k], stride(out, k), step[k] * stride(x, k));
    }
    copy(&w, out->raw, x->raw, x->size);
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

static bool eval_slice(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    const int64_t *from, *to, *axes, *steps;
    uint32_t n, nto, naxes, nsteps, a, seen = 0;
    int64_t dim[MAXRANK], start[MAXRANK] = {0}, step[MAXRANK];
    (void)arg;
    if (!x || !ints(e, "starts", 1, &from, &n) || !ints(e, "ends", 2, &to, &nto) || !ints(e, "axes", 3, &axes, &naxes)) return false;
    if (!ints(e, NULL, 4, &steps, &nsteps) || !from || nto != n || (axes && naxes != n) || (steps && nsteps != n)) return false;
    for (uint32_t k = 0; k < x->rank; k++) dim[k] = x->dim[k], step[k] = 1;
    for (uint32_t k = 0; k < n; k++) {
        if (!axis_in(axes ? axes[k] : k, x->rank, &a) || (seen >> a & 1) || (steps && steps[k] == 0)) return false;
        seen |= 1u << a;
        start[a] = from[k];
        step[a] = steps ? steps[k] : 1;
        dim[a] = sliced(x->dim[a], &start[a], to[k], step[a]);
        if (dim[a] <= 1) step[a] = 1; /* a huge one would overflow */
    }
    if (!make_raw(e, port, out, x, x->rank, dim)) return false;
    copy_slice(out, x, start, step);
    return true;
}

static bool eval_split(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    const int64_t *part;
    uint32_t axis, n;
    int64_t dim[MAXRANK], start[MAXRANK] = {0}, step[MAXRANK], sum = 0;
    (void)arg;
    if (!x || !axis_in(rl_attr_int(e->n, "axis", 0), x->rank, &axis) || !ints(e, "split", 1, &part, &n)) return false;
    if (e->n->nout > 256 || (part && n != e->n->nout)) return false;
    int64_t d = x->dim[axis], nout = e->n->nout, each = d / nout + (d % nout != 0);
    for (uint32_t k = 0; k < x->rank; k++) dim[k] = x->dim[k], step[k] = 1;
    for (uint32_t k = 0; k < e->n->nout; k++) {
        int64_t size = part ? part[k] : RL_MIN(each, d - sum);
        if (size < 0 || size > d - sum) return false;
        if (k == port) start[axis] = sum, dim[axis] = size;
        sum += size;
    }
    if (sum != d || !make_raw(e, port, out, x, x->rank, dim)) return false;
    copy_slice(out, x, start, step);
    return true;
}

static bool eval_gather(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0), *at = input(e, 1);
    uint32_t axis, rank = 0;
    int64_t dim[2 * MAXRANK];
    (void)arg;
    if (!x || !at || (at->dtype != RL_I64 && at->dtype != RL_I32) || !axis_in(rl_attr_int(e->n, "axis", 0), x->rank, &axis)) return false;
    for (uint32_t k = 0; k < axis; k++) dim[rank++] = x->dim[k];
    for (uint32_t k = 0; k < at->rank; k++) dim[rank++] = at->dim[k];
    for (uint32_t k = axis + 1; k < x->rank; k++) dim[rank++] = x->dim[k];
    if (!load(e, at) || !make_raw(e, port, out, x, rank, dim)) return false;
    int64_t d = x->dim[axis], inner = stride(x, axis), outer = 1;
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

static bool eval_tile(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    uint32_t n;
    const int64_t *times;
    int64_t dim[MAXRANK] = {0};
    (void)arg;
    if (!x || !shape_input(e, 1, &n, &times) || n != x->rank) return false;
    for (uint32_t k = 0; k < n; k++)
        if (times[k] < 0 || __builtin_mul_overflow(x->dim[k], times[k], &dim[k])) return false;
    if (!make_raw(e, port, out, x, n, dim)) return false;
    if (out->n == 0) return true;
    walk w = {0};
    for (uint32_t k = 0; k < n; k++) {
        add_dim(&w, times[k], x->dim[k] * stride(out, k), 0);
        add_dim(&w, x->dim[k], stride(out, k), stride(x, k));
    }
    copy(&w, out->raw, x->raw, x->size);
    return true;
}

static void fill(tensor *out, const void *one) {
    for (int64_t k = 0; k < out->n; k++) memcpy(out->raw + (size_t)k * out->size, one, out->size);
}

/* What Pad writes: false when it is not known. */
static bool pad_value(evaluator *e, const tensor *x, char *one) {
    tensor *v = input(e, 2);
    float f = rl_attr_float(e->n, "value", 0);
    memset(one, 0, 8);
    if (v && (v->n != 1 || v->dtype != x->dtype)) return false;
    if (v) memcpy(one, v->raw, v->size);
    else if (f != 0 && x->dtype != RL_F32) return false;
    else if (f != 0) memcpy(one, &f, 4);
    return true;
}

static bool eval_pad(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    const int64_t *pads, *axes;
    uint32_t n, naxes, a, seen = 0;
    int64_t dim[MAXRANK];
    char one[8];
    walk w = {0};
    (void)arg;
    if (!x || (rl_attr_find(e->n, "mode") && !rl_attr_is(e->n, "mode", "constant"))) return false;
    if (!ints(e, "pads", 1, &pads, &n) || !ints(e, NULL, 3, &axes, &naxes) || !pads || !pad_value(e, x, one)) return false;
    if (n != 2 * (axes ? naxes : x->rank)) return false;
    int64_t before[MAXRANK] = {0}, after[MAXRANK] = {0};
    for (uint32_t k = 0; k < n / 2; k++) {
        if (!axis_in(axes ? axes[k] : k, x->rank, &a) || (seen >> a & 1)) return false;
        seen |= 1u << a;
        before[a] = pads[k];
        after[a] = pads[n / 2 + k];
        if (before[a] < -x->dim[a] || after[a] < -x->dim[a] || before[a] > INT32_MAX || after[a] > INT32_MAX) return false;
    }
    for (uint32_t k = 0; k < x->rank; k++)
        if ((dim[k] = x->dim[k] + before[k] + after[k]) < 0) return false;
    if (!make_raw(e, port, out, x, x->rank, dim)) return false;
    fill(out, one);
    for (uint32_t k = 0; k < x->rank; k++) {
        add_dim(&w, x->dim[k] + RL_MIN(before[k], 0) + RL_MIN(after[k], 0), stride(out, k), stride(x, k));
        w.off[0] += RL_MAX(before[k], 0) * stride(out, k);
        w.off[1] -= RL_MIN(before[k], 0) * stride(x, k);
    }
    copy(&w, out->raw, x->raw, x->size);
    return true;
}

static bool eval_trilu(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    int64_t diagonal;
    (void)arg;
    if (!x || x->rank < 2 || !scalar(e, 1, 0, &diagonal) || !make_raw(e, port, out, x, x->rank, x->dim)) return false;
    bool upper = rl_attr_int(e->n, "upper", 1) != 0;
    int64_t rows = x->dim[x->rank - 2], cols = x->dim[x->rank - 1];
    diagonal = RL_MAX(-rows - 1, RL_MIN(diagonal, cols + 1));
    for (int64_t k = 0; k < x->n; k++) {
        int64_t over = k % cols - k / cols % rows - diagonal;
        if (upper ? over >= 0 : over <= 0) memcpy(out->raw + (size_t)k * x->size, x->raw + (size_t)k * x->size, x->size);
    }
    return true;
}

static bool eval_fill(evaluator *e, int arg, uint32_t port, tensor *out) {
    const rl_attr *a = rl_attr_find(e->n, "value");
    static const char zero[8];
    uint32_t rank;
    const int64_t *dim;
    (void)arg;
    if (a && (!a->tensor || !a->tensor->data || a->tensor->nbyte != rl_dtype_bits(a->tensor->dtype) / 8)) return false;
    if (!shape_input(e, 0, &rank, &dim) || !make(e, port, out, a ? a->tensor->dtype : RL_F32, rank, dim)) return false;
    fill(out, a ? a->tensor->data : zero);
    return true;
}

static bool eval_where(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *c = input(e, 0), *x = input(e, 1), *y = input(e, 2);
    int64_t dim[MAXRANK + 1];
    uint32_t rank = 0;
    (void)arg;
    if (!c || !x || !y || c->dtype != RL_BOOL || x->dtype != y->dtype) return false;
    if (!broadcast(&rank, dim, c->rank, c->dim) || !broadcast(&rank, dim, x->rank, x->dim) || !broadcast(&rank, dim, y->rank, y->dim)) return false;
    if (!make_raw(e, port, out, x, rank, dim)) return false;
    walk w = walk_over(out);
    spread(&w, 0, c);
    spread(&w, 1, x);
    spread(&w, 2, y);
    for (int64_t k = 0; k < out->n; k++, advance(&w)) {
        const char *from = c->raw[w.off[0]] ? x->raw + (size_t)w.off[1] * x->size : y->raw + (size_t)w.off[2] * x->size;
        memcpy(out->raw + (size_t)k * out->size, from, out->size);
    }
    return true;
}

static bool eval_scatter_nd(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0), *at = input(e, 1), *y = input(e, 2);
    (void)arg;
    if (!x || !at || !y || at->dtype != RL_I64 || at->rank == 0 || y->dtype != x->dtype) return false;
    if (rl_attr_find(e->n, "reduction") && !rl_attr_is(e->n, "reduction", "none")) return false;
    int64_t depth = at->dim[at->rank - 1], rows = 1, run = 1, n;
    if (depth < 1 || depth > (int64_t)x->rank || !load(e, at)) return false;
    for (uint32_t k = 0; k + 1 < at->rank; k++) rows *= at->dim[k];
    for (uint32_t k = (uint32_t)depth; k < x->rank; k++) run *= x->dim[k];
    if (__builtin_mul_overflow(rows, run, &n) || y->n != n || !spend(e, (uint64_t)n)) return false;
    if (!make_raw(e, port, out, x, x->rank, x->dim)) return false;
    memcpy(out->raw, x->raw, (size_t)x->n * x->size);
    for (int64_t r = 0; r < rows; r++) {
        int64_t off = 0;
        for (uint32_t k = 0; k < (uint32_t)depth; k++) {
            int64_t i = at->i[r * depth + k];
            if (i < 0) i += x->dim[k];
            if (i < 0 || i >= x->dim[k]) return false;
            off += i * stride(x, k);
        }
        memcpy(out->raw + (size_t)off * x->size, y->raw + (size_t)(r * run) * x->size, (size_t)run * x->size);
    }
    return true;
}

static bool eval_eye(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    (void)arg;
    if (!x || x->rank != 2) return false;
    rl_dtype t = (rl_dtype)rl_attr_int(e->n, "dtype", (int64_t)x->dtype);
    if (!computes(t) || !make(e, port, out, t, 2, x->dim)) return false;
    int64_t diagonal = rl_attr_int(e->n, "k", 0);
    for (int64_t r = 0; r < x->dim[0]; r++) {
        if (diagonal < -r || diagonal >= x->dim[1] - r) continue;
        if (out->f) out->f[r * x->dim[1] + r + diagonal] = 1;
        else out->i[r * x->dim[1] + r + diagonal] = 1;
    }
    return store(out);
}

/* ---- element by element ---- */

/* A float becomes an integer only where every machine agrees on it. */
static bool cast_float(const tensor *x, tensor *out) {
    double most = out->dtype == RL_I64 ? 9e18 : ldexp(1, (int)(8 * out->size) - 1 + (out->dtype == RL_U8 || out->dtype == RL_U16));
    bool is_signed = out->dtype != RL_U8 && out->dtype != RL_U16;
    for (int64_t k = 0; k < x->n; k++) {
        double v = trunc(x->f[k]);
        if (out->dtype == RL_BOOL) {
            out->i[k] = !(x->f[k] == 0);
        } else {
            if (!(v < most) || !(v >= (is_signed ? -most : 0))) return false;
            out->i[k] = (int64_t)v;
        }
    }
    return true;
}

static bool eval_cast(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    (void)arg;
    if (!x) return false;
    rl_dtype t = e->n->op == RL_OP_Cast ? (rl_dtype)rl_attr_int(e->n, "to", 0) : input(e, 1) ? input(e, 1)->dtype : RL_UNDEF;
    if (t == x->dtype) return eval_view(e, 0, port, out);
    if (!computes(t) || !load(e, x) || !make(e, port, out, t, x->rank, x->dim)) return false;
    if (x->f && out->i && !cast_float(x, out)) return false;
    for (int64_t k = 0; k < x->n; k++) {
        if (x->i && out->i) out->i[k] = t == RL_BOOL ? x->i[k] != 0 : x->i[k];
        else if (x->i) out->f[k] = t == RL_F32 ? (double)(float)x->i[k] : (double)x->i[k];
        else if (out->f) out->f[k] = x->f[k];
    }
    return store(out);
}

typedef enum { ABS, NEG, SIGN, SQRT, EXP, LOG, ERF, TANH, SIGMOID, RELU, RECIPROCAL, SIN, COS, FLOOR, CEIL, ROUND, GELU, GELU_TANH, NOT } unary;

static double apply_float(unary op, double x) {
    switch (op) {
    case ABS: return fabs(x);
    case NEG: return -x;
    case SIGN: return isnan(x) ? x : (x > 0) - (x < 0);
    case SQRT: return sqrt(x);
    case EXP: return exp(x);
    case LOG: return log(x);
    case ERF: return erf(x);
    case TANH: return tanh(x);
    case SIGMOID: return 1 / (1 + exp(-x));
    case RELU: return x < 0 ? 0 : x;
    case RECIPROCAL: return 1 / x;
    case SIN: return sin(x);
    case COS: return cos(x);
    case FLOOR: return floor(x);
    case CEIL: return ceil(x);
    case ROUND: return rint(x);
    case GELU: return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    default: return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    }
}

static int64_t wrap(rl_dtype t, uint64_t x) {
    switch (t) {
    case RL_U8: return (uint8_t)x;
    case RL_I8: return (int8_t)x;
    case RL_U16: return (uint16_t)x;
    case RL_I16: return (int16_t)x;
    case RL_I32: return (int32_t)x;
    default: return (int64_t)x;
    }
}

static bool apply_int(unary op, rl_dtype t, int64_t x, int64_t *r) {
    switch (op) {
    case ABS: *r = x < 0 ? wrap(t, 0 - (uint64_t)x) : x; return t != RL_BOOL;
    case NEG: *r = wrap(t, 0 - (uint64_t)x); return t != RL_BOOL;
    case SIGN: *r = (x > 0) - (x < 0); return t != RL_BOOL;
    case RELU: *r = RL_MAX(x, 0); return t != RL_BOOL;
    case NOT: *r = !x; return t == RL_BOOL;
    default: return false;
    }
}

static bool eval_unary(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    if (!load(e, x) || (x->f && arg == NOT) || !make(e, port, out, x->dtype, x->rank, x->dim)) return false;
    if (arg == GELU && rl_attr_is(e->n, "approximate", "tanh")) arg = GELU_TANH;
    if (x->f && !spend(e, (uint64_t)x->n * 8)) return false;
    for (int64_t k = 0; k < x->n; k++) {
        if (x->f) out->f[k] = apply_float((unary)arg, x->f[k]);
        else if (!apply_int((unary)arg, x->dtype, x->i[k], &out->i[k])) return false;
    }
    return store(out);
}

typedef enum { ADD, SUB, MUL, DIV, POW, MOD, MIN, MAX, EQ, LT, LE, GT, GE, AND, OR, XOR } binary;

static double combine_float(binary op, double a, double b) {
    switch (op) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case DIV: return a / b;
    case POW: return pow(a, b);
    case MOD: return fmod(a, b);
    case MIN: return isnan(a) || a < b ? a : b;
    default: return isnan(a) || a > b ? a : b;
    }
}

static bool power(int64_t a, int64_t b, uint64_t *r) {
    *r = 1;
    if (b < 0) return false;
    for (uint64_t x = (uint64_t)a; b; b >>= 1, x *= x)
        if (b & 1) *r *= x;
    return true;
}

/* a % b, with the divisor's sign unless the node wants the dividend's; INT64_MIN % -1 was refused. */
static int64_t modulo(int64_t a, int64_t b, bool dividend_sign) {
    int64_t r = a % b;
    return r && !dividend_sign && (r < 0) != (b < 0) ? r + b : r;
}

static bool combine_int(const evaluator *e, binary op, rl_dtype t, int64_t a, int64_t b, int64_t *r) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b, p = 0;
    bool ok = true;
    if ((op == DIV || op == MOD) && (b == 0 || (b == -1 && a == INT64_MIN))) return false;
    switch (op) {
    case ADD: p = x + y; break;
    case SUB: p = x - y; break;
    case MUL: p = x * y; break;
    case DIV: p = (uint64_t)(a / b); break;
    case POW: ok = power(a, b, &p); break;
    case MOD: p = (uint64_t)modulo(a, b, rl_attr_int(e->n, "fmod", 0) != 0); break;
    case MIN: p = (uint64_t)RL_MIN(a, b); break;
    case MAX: p = (uint64_t)RL_MAX(a, b); break;
    case AND: p = a && b; break;
    case OR: p = a || b; break;
    default: p = !a != !b;
    }
    *r = wrap(t, p);
    return ok;
}

static bool compares(binary op, const tensor *x, int64_t i, const tensor *y, int64_t j) {
    bool less = x->f ? x->f[i] < y->f[j] : x->i[i] < y->i[j], more = x->f ? x->f[i] > y->f[j] : x->i[i] > y->i[j];
    bool same = x->f ? x->f[i] == y->f[j] : x->i[i] == y->i[j];
    switch (op) {
    case EQ: return same;
    case LT: return less;
    case LE: return less || same;
    case GT: return more;
    default: return more || same;
    }
}

static bool takes(const evaluator *e, binary op, const tensor *x, const tensor *y) {
    bool logical = x->dtype == RL_BOOL;
    if (op == POW) return !logical && (x->f != NULL || y->i != NULL) && y->dtype != RL_BOOL;
    if (x->dtype != y->dtype) return false;
    if (op >= AND) return logical;
    if (op == MOD && x->f) return rl_attr_int(e->n, "fmod", 0) != 0;
    return !logical || op == EQ;
}

static bool combine(evaluator *e, binary op, const tensor *x, const tensor *y, tensor *out) {
    walk w = walk_over(out);
    spread(&w, 0, x);
    spread(&w, 1, y);
    for (int64_t k = 0; k < out->n; k++, advance(&w)) {
        int64_t i = w.off[0], j = w.off[1];
        if (op >= EQ && op <= GE) out->i[k] = compares(op, x, i, y, j);
        else if (x->f) out->f[k] = rounded(out->dtype, combine_float(op, x->f[i], y->f ? y->f[j] : (double)y->i[j]));
        else if (!combine_int(e, op, x->dtype, x->i[i], y->i[j], &out->i[k])) return false;
    }
    return true;
}

/* Two inputs; for Min and Max any number of them. */
static bool eval_binary(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    binary op = (binary)arg;
    int64_t dim[MAXRANK + 1];
    uint32_t rank = 0;
    bool variadic = op == MIN || op == MAX;
    if (!load(e, x) || (e->n->nin != 2 && !variadic) || (e->n->nin == 1 && !takes(e, op, x, x))) return false;
    for (uint32_t i = 0; i < e->n->nin; i++) {
        tensor *y = input(e, i);
        if (!load(e, y) || !broadcast(&rank, dim, y->rank, y->dim) || (i && !takes(e, op, x, y))) return false;
    }
    if (!make(e, port, out, op >= EQ && op <= GE ? RL_BOOL : x->dtype, rank, dim)) return false;
    if (!spend(e, (uint64_t)out->n * 4 * e->n->nin)) return false;
    if (e->n->nin == 1) return memcpy(out->raw, x->raw, (size_t)x->n * x->size), true;
    for (uint32_t i = 1; i < e->n->nin; i++)
        if (!combine(e, op, i == 1 ? x : out, input(e, i), out)) return false;
    return store(out);
}

static bool eval_clip(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    const rl_attr *attr[2] = {rl_attr_find(e->n, "min"), rl_attr_find(e->n, "max")};
    (void)arg;
    if (!load(e, x) || x->dtype == RL_BOOL || !make(e, port, out, x->dtype, x->rank, x->dim)) return false;
    if (x->f) memcpy(out->f, x->f, (size_t)x->n * sizeof *x->f);
    else memcpy(out->i, x->i, (size_t)x->n * sizeof *x->i);
    for (uint32_t i = 0; i < 2; i++) {
        tensor *b = input(e, 1 + i);
        double f = attr[i] ? (double)attr[i]->f : 0;
        if (b && (b->n != 1 || !load_as(e, 1 + i, x->dtype))) return false;
        if (!b && (!attr[i] || !x->f)) continue;
        if (b && b->f) f = b->f[0];
        for (int64_t k = 0; k < x->n; k++) {
            if (x->f) out->f[k] = i ? (out->f[k] > f ? f : out->f[k]) : (out->f[k] < f ? f : out->f[k]);
            else out->i[k] = i ? RL_MIN(out->i[k], b->i[0]) : RL_MAX(out->i[k], b->i[0]);
        }
    }
    return store(out);
}

/* Floats only where start + i * delta is the same computed as a sum: there runtimes agree. */
static bool eval_range(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *a = input(e, 0), *b = input(e, 1), *d = input(e, 2);
    const rl_valinfo *v = rl_val(e->g, e->n->out[port]);
    (void)arg;
    if (!a || !b || !d || a->n != 1 || b->n != 1 || d->n != 1 || b->dtype != a->dtype || d->dtype != a->dtype) return false;
    if (!load(e, a) || !load(e, b) || !load(e, d) || a->dtype == RL_BOOL || v->rank != 1) return false;
    if (a->f ? !(d->f[0] != 0) : d->i[0] == 0) return false;
    double n = a->f ? ceil((b->f[0] - a->f[0]) / d->f[0]) : ceil(((double)b->i[0] - (double)a->i[0]) / (double)d->i[0]);
    if (!(n < 1e7)) return false;
    int64_t dim = n > 0 ? (int64_t)n : 0;
    if (!make(e, port, out, a->dtype, 1, &dim)) return false;
    for (int64_t k = 0; k < dim; k++) {
        if (!a->f) {
            out->i[k] = (int64_t)((uint64_t)a->i[0] + (uint64_t)d->i[0] * (uint64_t)k);
        } else {
            out->f[k] = rounded(a->dtype, a->f[0] + rounded(a->dtype, d->f[0] * (double)k));
            if (k && out->f[k] != rounded(a->dtype, out->f[k - 1] + d->f[0])) return false;
        }
    }
    return store(out);
}

static bool eval_cumsum(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    uint32_t axis;
    (void)arg;
    if (!load(e, x) || x->dtype == RL_BOOL || !rl_op_axis(e->g, e->n, &axis) || !make(e, port, out, x->dtype, x->rank, x->dim)) return false;
    int64_t inner = stride(x, axis), d = x->dim[axis];
    bool back = rl_attr_int(e->n, "reverse", 0) != 0, before = rl_attr_int(e->n, "exclusive", 0) != 0;
    for (int64_t o = 0; o < (d ? x->n / d : 0); o++) {
        double f = 0;
        uint64_t s = 0;
        for (int64_t k = 0; k < d; k++) {
            int64_t at = o / inner * d * inner + (back ? d - 1 - k : k) * inner + o % inner;
            if (x->f && before) out->f[at] = f;
            if (x->i && before) out->i[at] = (int64_t)s;
            if (x->f) f = rounded(x->dtype, f + x->f[at]);
            else s += (uint64_t)x->i[at];
            if (x->f && !before) out->f[at] = f;
            if (x->i && !before) out->i[at] = (int64_t)s;
        }
    }
    return store(out);
}

/* ---- sums ---- */

typedef enum { SUM, MEAN, MOST, LEAST, PROD } reduction;

static void reduce_float(reduction op, double *r, double x, bool first) {
    if (op == MOST || op == LEAST) *r = first ? x : combine_float(op == MOST ? MAX : MIN, *r, x);
    else *r = op == PROD ? (first ? x : *r * x) : *r + x;
}

static void reduce_int(reduction op, rl_dtype t, int64_t *r, int64_t x, bool first) {
    if (first) *r = x;
    else if (op == MOST) *r = RL_MAX(*r, x);
    else if (op == LEAST) *r = RL_MIN(*r, x);
    else *r = wrap(t, op == PROD ? (uint64_t)*r * (uint64_t)x : (uint64_t)*r + (uint64_t)x);
}

static bool eval_reduce(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    const uint32_t *axes;
    uint32_t n, rank = 0;
    bool all, gone[MAXRANK] = {false}, keep = rl_op_keepdims(e->n);
    int64_t dim[MAXRANK];
    if (!load(e, x) || x->dtype == RL_BOOL || (x->i && arg == MEAN) || x->n == 0) return false;
    if (!rl_op_axes(e->g, e->n, &e->tmp, &axes, &n, &all)) return false;
    for (uint32_t k = 0; k < x->rank; k++) gone[k] = all;
    for (uint32_t k = 0; k < n; k++) gone[axes[k]] = true;
    for (uint32_t k = 0; k < x->rank; k++)
        if (!gone[k] || keep) dim[rank++] = gone[k] ? 1 : x->dim[k];
    if (!make(e, port, out, x->dtype, rank, dim) || !spend(e, (uint64_t)x->n * 4)) return false;
    walk w = walk_over(x);
    int64_t step = 1;
    for (uint32_t k = x->rank; k-- > 0;) {
        w.step[0][k] = gone[k] ? 0 : step;
        if (!gone[k]) step *= x->dim[k];
    }
    bool *begun = rl_new(&e->tmp, bool, out->n);
    for (int64_t k = 0; k < x->n; k++, advance(&w)) {
        int64_t at = w.off[0];
        if (x->f) reduce_float((reduction)arg, &out->f[at], x->f[k], !begun[at]);
        else reduce_int((reduction)arg, x->dtype, &out->i[at], x->i[k], !begun[at]);
        begun[at] = true;
    }
    for (int64_t k = 0; k < out->n && arg == MEAN; k++) out->f[k] /= (double)(x->n / out->n);
    return store(out);
}

/* d elements, `step` apart. */
static void softmax(double *to, const double *x, int64_t d, int64_t step, rl_dtype t, bool logarithm) {
    double most = x[0], sum = 0;
    for (int64_t k = 1; k < d; k++) most = x[k * step] > most ? x[k * step] : most;
    for (int64_t k = 0; k < d; k++) sum += to[k * step] = rounded(t, exp(rounded(t, x[k * step] - most)));
    for (int64_t k = 0; k < d; k++)
        to[k * step] = logarithm ? x[k * step] - most - log(sum) : to[k * step] / sum;
}

/* Before opset 13 everything from the axis on is one dim. */
static bool eval_softmax(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0);
    uint32_t axis;
    if (!load(e, x) || !x->f || !rl_op_axis(e->g, e->n, &axis) || !make(e, port, out, x->dtype, x->rank, x->dim)) return false;
    if (x->n == 0) return true;
    if (!spend(e, (uint64_t)x->n * 16)) return false;
    bool flat = e->n->since < 13;
    int64_t step = flat ? 1 : stride(x, axis), d = flat ? x->dim[axis] * stride(x, axis) : x->dim[axis];
    for (int64_t o = 0; o < x->n / d; o++) {
        int64_t at = o / step * d * step + o % step;
        softmax(out->f + at, x->f + at, d, step, x->dtype, arg != 0);
    }
    return store(out);
}

/* t has the dims of x from `axis` on, and nothing more. */
static bool is_tail(const tensor *t, const tensor *x, uint32_t axis) {
    if (t->rank != x->rank - axis) return false;
    return memcmp(t->dim, x->dim + axis, t->rank * sizeof *t->dim) == 0;
}

static bool eval_layer_norm(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = input(e, 0), *scale = input(e, 1), *bias = input(e, 2);
    uint32_t axis;
    double eps = (double)rl_attr_float(e->n, "epsilon", 1e-5f);
    (void)arg;
    if (port || !load(e, x) || !x->f || !scale || !load_as(e, 1, x->dtype) || (bias && !load_as(e, 2, x->dtype))) return false;
    if (!axis_in(rl_attr_int(e->n, "axis", -1), x->rank, &axis) || !is_tail(scale, x, axis) || (bias && !is_tail(bias, x, axis))) return false;
    if (!make(e, port, out, x->dtype, x->rank, x->dim) || !spend(e, (uint64_t)x->n * 8)) return false;
    int64_t d = scale->n;
    for (int64_t at = 0; at < x->n; at += d) {
        double mean = 0, var = 0;
        for (int64_t k = 0; k < d; k++) mean += x->f[at + k] / (double)d;
        for (int64_t k = 0; k < d; k++) var += (x->f[at + k] - mean) * (x->f[at + k] - mean) / (double)d;
        for (int64_t k = 0; k < d; k++)
            out->f[at + k] = (x->f[at + k] - mean) / sqrt(var + eps) * scale->f[k] + (bias ? bias->f[k] : 0);
    }
    return store(out);
}

/* out[m,n] = sum over k of a[m,k] * b[k,n], with any steps. */
typedef struct { int64_t m, k, n, am, ak, bk, bn; } product;

static void multiply(const product *p, const tensor *a, int64_t a0, const tensor *b, int64_t b0, tensor *out, int64_t o0) {
    for (int64_t m = 0; m < p->m; m++)
        for (int64_t k = 0; k < p->k; k++)
            for (int64_t n = 0; n < p->n; n++) {
                int64_t i = a0 + m * p->am + k * p->ak, j = b0 + k * p->bk + n * p->bn, o = o0 + m * p->n + n;
                if (a->f) out->f[o] += a->f[i] * b->f[j];
                else out->i[o] = wrap(out->dtype, (uint64_t)out->i[o] + (uint64_t)a->i[i] * (uint64_t)b->i[j]);
            }
}

/* The multiplications of `times` such products; false when they are too many. */
static bool spend_product(evaluator *e, const product *p, int64_t times) {
    uint64_t work = 2;
    const int64_t by[] = {times, p->m, p->k, p->n};
    for (uint32_t i = 0; i < RL_LEN(by); i++)
        if (__builtin_mul_overflow(work, (uint64_t)by[i], &work)) return false;
    return spend(e, work);
}

/* A vector is a matrix of one row (a) or one column (b), whose dim is not in the result. */
static bool eval_matmul(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *a = input(e, 0), *b = input(e, 1);
    (void)arg;
    if (!load(e, a) || !b || !load_as(e, 1, a->dtype) || a->rank == 0 || b->rank == 0) return false;
    if (!a->f && a->dtype != RL_I32 && a->dtype != RL_I64) return false;
    uint32_t ra = a->rank < 2 ? 2 : a->rank, rb = b->rank < 2 ? 2 : b->rank, batch = 0, rank;
    int64_t K = a->dim[a->rank - 1], N = b->rank < 2 ? 1 : b->dim[b->rank - 1], M = a->rank < 2 ? 1 : a->dim[a->rank - 2];
    int64_t dim[MAXRANK + 3];
    if (b->dim[b->rank < 2 ? 0 : b->rank - 2] != K) return false;
    if (!broadcast(&batch, dim, ra - 2, a->dim) || !broadcast(&batch, dim, rb - 2, b->dim)) return false;
    rank = batch;
    if (a->rank > 1) dim[rank++] = M;
    if (b->rank > 1) dim[rank++] = N;
    product p = {.m = M, .k = K, .n = N, .am = K, .ak = 1, .bk = N, .bn = 1};
    tensor outer = {.rank = batch, .n = 1}, oa = {.rank = ra - 2}, ob = {.rank = rb - 2};
    memcpy(outer.dim, dim, batch * sizeof *dim);
    memcpy(oa.dim, a->dim, oa.rank * sizeof *dim);
    memcpy(ob.dim, b->dim, ob.rank * sizeof *dim);
    if (!count(batch, dim, &outer.n) || !spend_product(e, &p, outer.n) || !make(e, port, out, a->dtype, rank, dim)) return false;
    walk w = walk_over(&outer);
    spread(&w, 0, &oa);
    spread(&w, 1, &ob);
    if (out->n == 0) return true;
    for (int64_t o = 0; o < outer.n; o++, advance(&w)) multiply(&p, a, w.off[0] * M * K, b, w.off[1] * K * N, out, o * M * N);
    return store(out);
}

static bool eval_gemm(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *a = input(e, 0), *b = input(e, 1), *c = input(e, 2);
    bool ta = rl_attr_int(e->n, "transA", 0) != 0, tb = rl_attr_int(e->n, "transB", 0) != 0;
    double alpha = (double)rl_attr_float(e->n, "alpha", 1), beta = (double)rl_attr_float(e->n, "beta", 1);
    (void)arg;
    if (!load(e, a) || !a->f || !load_as(e, 1, a->dtype) || a->rank != 2 || b->rank != 2) return false;
    if (c && (!load_as(e, 2, a->dtype) || c->rank > 2)) return false;
    int64_t m = a->dim[ta], k = a->dim[!ta], n = b->dim[!tb], dim[MAXRANK] = {m, n};
    uint32_t rank = 2;
    if (b->dim[tb] != k || (c && !broadcast(&rank, dim, c->rank, c->dim)) || dim[0] != m || dim[1] != n) return false;
    product p = {m, k, n, ta ? 1 : k, ta ? m : 1, tb ? 1 : n, tb ? k : 1};
    if (!spend_product(e, &p, 1) || !make(e, port, out, a->dtype, 2, dim)) return false;
    multiply(&p, a, 0, b, 0, out, 0);
    walk w = walk_over(out);
    if (c) spread(&w, 0, c);
    for (int64_t i = 0; i < out->n; i++, advance(&w)) out->f[i] = alpha * out->f[i] + (c ? beta * c->f[w.off[0]] : 0);
    return store(out);
}

/* ---- the table ---- */

static const struct { eval_fn *fn; int arg; } evals[RL_NOP] = {
#define ROW(op, ...) [RL_OP_##op] = {__VA_ARGS__}
    ROW(Abs, eval_unary, ABS),
    ROW(Add, eval_binary, ADD),
    ROW(And, eval_binary, AND),
    ROW(Cast, eval_cast, 0),
    ROW(CastLike, eval_cast, 0),
    ROW(Ceil, eval_unary, CEIL),
    ROW(Clip, eval_clip, 0),
    ROW(Concat, eval_concat, 0),
    ROW(ConstantOfShape, eval_fill, 0),
    ROW(Cos, eval_unary, COS),
    ROW(CumSum, eval_cumsum, 0),
    ROW(Div, eval_binary, DIV),
    ROW(Equal, eval_binary, EQ),
    ROW(Erf, eval_unary, ERF),
    ROW(Exp, eval_unary, EXP),
    ROW(Expand, eval_expand, 0),
    ROW(EyeLike, eval_eye, 0),
    ROW(Flatten, eval_view, 0),
    ROW(Floor, eval_unary, FLOOR),
    ROW(Gather, eval_gather, 0),
    ROW(Gelu, eval_unary, GELU),
    ROW(Gemm, eval_gemm, 0),
    ROW(Greater, eval_binary, GT),
    ROW(GreaterOrEqual, eval_binary, GE),
    ROW(Identity, eval_view, 0),
    ROW(LayerNormalization, eval_layer_norm, 0),
    ROW(Less, eval_binary, LT),
    ROW(LessOrEqual, eval_binary, LE),
    ROW(Log, eval_unary, LOG),
    ROW(LogSoftmax, eval_softmax, 1),
    ROW(MatMul, eval_matmul, 0),
    ROW(Max, eval_binary, MAX),
    ROW(Min, eval_binary, MIN),
    ROW(Mod, eval_binary, MOD),
    ROW(Mul, eval_binary, MUL),
    ROW(Neg, eval_unary, NEG),
    ROW(Not, eval_unary, NOT),
    ROW(Or, eval_binary, OR),
    ROW(Pad, eval_pad, 0),
    ROW(Pow, eval_binary, POW),
    ROW(Range, eval_range, 0),
    ROW(Reciprocal, eval_unary, RECIPROCAL),
    ROW(ReduceMax, eval_reduce, MOST),
    ROW(ReduceMean, eval_reduce, MEAN),
    ROW(ReduceMin, eval_reduce, LEAST),
    ROW(ReduceProd, eval_reduce, PROD),
    ROW(ReduceSum, eval_reduce, SUM),
    ROW(Relu, eval_unary, RELU),
    ROW(Reshape, eval_view, 0),
    ROW(Round, eval_unary, ROUND),
    ROW(ScatterND, eval_scatter_nd, 0),
    ROW(Sigmoid, eval_unary, SIGMOID),
    ROW(Sign, eval_unary, SIGN),
    ROW(Sin, eval_unary, SIN),
    ROW(Slice, eval_slice, 0),
    ROW(Softmax, eval_softmax, 0),
    ROW(Split, eval_split, 0),
    ROW(Sqrt, eval_unary, SQRT),
    ROW(Squeeze, eval_view, 0),
    ROW(Sub, eval_binary, SUB),
    ROW(Sum, eval_binary, ADD),
    ROW(Tanh, eval_unary, TANH),
    ROW(Tile, eval_tile, 0),
    ROW(Transpose, eval_transpose, 0),
    ROW(Trilu, eval_trilu, 0),
    ROW(Unsqueeze, eval_view, 0),
    ROW(Where, eval_where, 0),
    ROW(Xor, eval_binary, XOR),
    ROW(ms_Gelu, eval_unary, GELU),
#undef ROW
};

static bool reads_constants(const rl_graph *g, const rl_nodeinfo *n) {
    if ((uint32_t)n->op >= RL_OP_OPAQUE || n->ncap || n->nin == 0 || n->nout == 0) return false;
    for (uint32_t i = 0; i < n->nin; i++)
        if (rl_has(n->in[i]) && !rl_eval_constant(g, n->in[i])) return false;
    return true;
}

static bool is_known(const rl_graph *g, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i]) && rl_val(g, n->out[i])->rank == RL_NORANK) return false;
    return evals[n->op].fn != NULL;
}

static const rl_const *close_output(const evaluator *e, const tensor *t) {
    rl_const *c = rl_new(&e->g->mem, rl_const, 1);
    *c = (rl_const){.dtype = t->dtype, .rank = t->rank, .data = t->raw, .nbyte = (size_t)t->n * t->size};
    c->dim = rl_copy(&e->g->mem, t->dim, t->rank * sizeof *t->dim);
    return c;
}

static bool eval_outputs(evaluator *e) {
    const rl_const **made = rl_new(&e->tmp, const rl_const *, e->n->nout);
    for (uint32_t port = 0; port < e->n->nout; port++) {
        tensor out = {0};
        if (!rl_has(e->n->out[port])) continue;
        if (!evals[e->n->op].fn(e, evals[e->n->op].arg, port, &out)) return false;
        made[port] = close_output(e, &out);
    }
    for (uint32_t port = 0; port < e->n->nout; port++)
        if (made[port]) rl_val(e->g, e->n->out[port])->data = made[port];
    return true;
}

static bool has_results(const rl_graph *g, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i]) && !rl_eval_constant(g, n->out[i])) return false;
    return true;
}

bool rl_eval_node(rl_graph *g, rl_node n, rl_eval_limit *limit) {
    if (!reads_constants(g, rl_nod(g, n))) return false;
    if (has_results(g, rl_nod(g, n))) return true; /* shape.c was first */
    if (!is_known(g, rl_nod(g, n))) return false;
    evaluator e = {.g = g, .n = rl_nod(g, n), .limit = limit};
    rl_arena_init(&e.tmp, g->ctx);
    bool ok = spend(&e, 64) && open_inputs(&e) && eval_outputs(&e);
    rl_arena_free(&e.tmp);
    return ok;
}
