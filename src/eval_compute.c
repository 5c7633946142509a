/* Ops that compute: they load whole tensors as doubles or as 64-bit integers, work on those, and rl_ev_store rounds to the tensor's
 * type; for + - * / and square roots of floats that gives what arithmetic in float gives, as double has more than twice the bits. */
#include "eval_internal.h"

#include <math.h>
#include <string.h>

/* ---- element by element ---- */

/* A float becomes an integer only where every machine agrees on it. */
static bool cast_float(const tensor *x, tensor *out) {
    double most = ldexp(1, (int)(8 * out->size) - 1 + (out->dtype == RL_U8 || out->dtype == RL_U16));
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

bool rl_ev_cast(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    (void)arg;
    if (!x) return false;
    rl_dtype t = e->n->op == RL_OP_Cast ? rl_attr_dtype(e->n, "to", RL_UNDEF) : rl_val(e->g, e->n->in[1])->dtype;
    if (t == x->dtype) return rl_ev_view(e, 0, port, out);
    if (!rl_ev_computes(t) || !rl_ev_load(e, x) || !rl_ev_make(e, port, out, t, x->rank, x->dim)) return false;
    if (x->f && out->i && !cast_float(x, out)) return false;
    for (int64_t k = 0; k < x->n; k++) {
        if (x->i && out->i) out->i[k] = t == RL_BOOL ? x->i[k] != 0 : x->i[k];
        else if (x->i) out->f[k] = t == RL_F32 ? (double)(float)x->i[k] : (double)x->i[k];
        else if (x->f && out->f) out->f[k] = x->f[k];
    }
    return rl_ev_store(out);
}

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

bool rl_ev_unary(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    if (!rl_ev_load(e, x) || (x->f && arg == NOT) || !rl_ev_make(e, port, out, x->dtype, x->rank, x->dim)) return false;
    if (arg == GELU && rl_attr_is(e->n, "approximate", "tanh")) arg = GELU_TANH;
    if (x->f && !rl_ev_spend(e, (uint64_t)x->n * 8)) return false;
    for (int64_t k = 0; k < x->n; k++) {
        if (x->f) out->f[k] = apply_float((unary)arg, x->f[k]);
        else if (!apply_int((unary)arg, x->dtype, x->i[k], &out->i[k])) return false;
    }
    return rl_ev_store(out);
}

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
    walk w = rl_ev_walk_over(out);
    rl_ev_spread(&w, 0, x);
    rl_ev_spread(&w, 1, y);
    for (int64_t k = 0; k < out->n; k++, rl_ev_advance(&w)) {
        int64_t i = w.off[0], j = w.off[1];
        if (op >= EQ && op <= GE) out->i[k] = compares(op, x, i, y, j);
        else if (x->f) out->f[k] = rl_ev_rounded(out->dtype, combine_float(op, x->f[i], y->f ? y->f[j] : (double)y->i[j]));
        else if (!combine_int(e, op, x->dtype, x->i[i], y->i[j], &out->i[k])) return false;
    }
    return true;
}

/* Two inputs; for Min and Max any number of them. */
bool rl_ev_binary(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    binary op = (binary)arg;
    int64_t dim[MAXRANK + 1];
    uint32_t rank = 0;
    bool variadic = op == MIN || op == MAX;
    if (!rl_ev_load(e, x) || (e->n->nin != 2 && !variadic) || (e->n->nin == 1 && !takes(e, op, x, x))) return false;
    for (uint32_t i = 0; i < e->n->nin; i++) {
        tensor *y = rl_ev_input(e, i);
        if (!rl_ev_load(e, y) || !rl_ev_broadcast(&rank, dim, y->rank, y->dim) || (i && !takes(e, op, x, y))) return false;
    }
    if (!rl_ev_make(e, port, out, op >= EQ && op <= GE ? RL_BOOL : x->dtype, rank, dim)) return false;
    if (!rl_ev_spend(e, (uint64_t)out->n * 4 * e->n->nin)) return false;
    if (e->n->nin == 1) return memcpy(out->raw, x->raw, (size_t)x->n * x->size), true;
    for (uint32_t i = 1; i < e->n->nin; i++)
        if (!combine(e, op, i == 1 ? x : out, rl_ev_input(e, i), out)) return false;
    return rl_ev_store(out);
}

bool rl_ev_clip(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    const rl_attr *attr[2] = {rl_attr_find(e->n, "min"), rl_attr_find(e->n, "max")};
    (void)arg;
    if (!rl_ev_load(e, x) || x->dtype == RL_BOOL || !rl_ev_make(e, port, out, x->dtype, x->rank, x->dim)) return false;
    if (x->f) memcpy(out->f, x->f, (size_t)x->n * sizeof *x->f);
    else memcpy(out->i, x->i, (size_t)x->n * sizeof *x->i);
    for (uint32_t i = 0; i < 2; i++) {
        tensor *b = rl_ev_input(e, 1 + i);
        double f = attr[i] ? (double)attr[i]->f : 0;
        if (b && (b->n != 1 || !rl_ev_load_as(e, 1 + i, x->dtype))) return false;
        if (!b && (!attr[i] || !x->f)) continue;
        if (b && b->f) f = b->f[0];
        for (int64_t k = 0; k < x->n; k++) {
            if (x->f) out->f[k] = i ? (out->f[k] > f ? f : out->f[k]) : (out->f[k] < f ? f : out->f[k]);
            else out->i[k] = i ? RL_MIN(out->i[k], b->i[0]) : RL_MAX(out->i[k], b->i[0]);
        }
    }
    return rl_ev_store(out);
}

/* Floats only where start + i * delta is the same computed as a sum: there runtimes agree. */
bool rl_ev_range(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *a = rl_ev_input(e, 0), *b = rl_ev_input(e, 1), *d = rl_ev_input(e, 2);
    const rl_valinfo *v = rl_val(e->g, e->n->out[port]);
    (void)arg;
    if (!a || !b || !d || a->n != 1 || b->n != 1 || d->n != 1 || b->dtype != a->dtype || d->dtype != a->dtype) return false;
    if (!rl_ev_load(e, a) || !rl_ev_load(e, b) || !rl_ev_load(e, d) || a->dtype == RL_BOOL || v->rank != 1) return false;
    if (a->f ? !(d->f[0] != 0) : d->i[0] == 0) return false;
    double n = a->f ? ceil((b->f[0] - a->f[0]) / d->f[0]) : ceil(((double)b->i[0] - (double)a->i[0]) / (double)d->i[0]);
    if (!(n < 1e7)) return false;
    int64_t dim = n > 0 ? (int64_t)n : 0;
    if (!rl_ev_make(e, port, out, a->dtype, 1, &dim)) return false;
    for (int64_t k = 0; k < dim; k++) {
        if (!a->f) {
            out->i[k] = (int64_t)((uint64_t)a->i[0] + (uint64_t)d->i[0] * (uint64_t)k);
        } else {
            out->f[k] = rl_ev_rounded(a->dtype, a->f[0] + rl_ev_rounded(a->dtype, d->f[0] * (double)k));
            if (k && out->f[k] != rl_ev_rounded(a->dtype, out->f[k - 1] + d->f[0])) return false;
        }
    }
    return rl_ev_store(out);
}

bool rl_ev_cumsum(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    uint32_t axis;
    (void)arg;
    if (!rl_ev_load(e, x) || x->dtype == RL_BOOL || !rl_op_axis(e->g, e->n, &axis) || !rl_ev_make(e, port, out, x->dtype, x->rank, x->dim)) return false;
    int64_t inner = rl_ev_stride(x, axis), d = x->dim[axis];
    bool back = rl_attr_int(e->n, "reverse", 0) != 0, before = rl_attr_int(e->n, "exclusive", 0) != 0;
    for (int64_t o = 0; o < (d ? x->n / d : 0); o++) {
        double f = 0;
        uint64_t s = 0;
        for (int64_t k = 0; k < d; k++) {
            int64_t at = o / inner * d * inner + (back ? d - 1 - k : k) * inner + o % inner;
            if (x->f && before) out->f[at] = f;
            if (x->i && before) out->i[at] = (int64_t)s;
            if (x->f) f = rl_ev_rounded(x->dtype, f + x->f[at]);
            else if (x->i) s += (uint64_t)x->i[at];
            if (x->f && !before) out->f[at] = f;
            if (x->i && !before) out->i[at] = (int64_t)s;
        }
    }
    return rl_ev_store(out);
}

/* ---- sums ---- */

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

bool rl_ev_reduce(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    const uint32_t *axes;
    uint32_t n, rank = 0;
    bool all, gone[MAXRANK] = {false}, keep = rl_op_keepdims(e->n);
    int64_t dim[MAXRANK];
    if (!rl_ev_load(e, x) || x->dtype == RL_BOOL || (x->i && arg == MEAN) || x->n == 0) return false;
    if (!rl_op_axes(e->g, e->n, &e->tmp, &axes, &n, &all)) return false;
    for (uint32_t k = 0; k < x->rank; k++) gone[k] = all;
    for (uint32_t k = 0; k < n; k++) gone[axes[k]] = true;
    for (uint32_t k = 0; k < x->rank; k++)
        if (!gone[k] || keep) dim[rank++] = gone[k] ? 1 : x->dim[k];
    if (!rl_ev_make(e, port, out, x->dtype, rank, dim) || !rl_ev_spend(e, (uint64_t)x->n * 4)) return false;
    walk w = rl_ev_walk_over(x);
    int64_t step = 1;
    for (uint32_t k = x->rank; k-- > 0;) {
        w.step[0][k] = gone[k] ? 0 : step;
        if (!gone[k]) step *= x->dim[k];
    }
    bool *begun = rl_new(&e->tmp, bool, out->n);
    for (int64_t k = 0; k < x->n; k++, rl_ev_advance(&w)) {
        int64_t at = w.off[0];
        if (x->f) reduce_float((reduction)arg, &out->f[at], x->f[k], !begun[at]);
        else if (x->i) reduce_int((reduction)arg, x->dtype, &out->i[at], x->i[k], !begun[at]);
        begun[at] = true;
    }
    int64_t each = out->n ? x->n / out->n : 0;
    for (int64_t k = 0; k < out->n && arg == MEAN; k++) out->f[k] /= (double)each;
    return rl_ev_store(out);
}

/* d elements, `step` apart. */
static void softmax(double *to, const double *x, int64_t d, int64_t step, rl_dtype t, bool logarithm) {
    double most = x[0], sum = 0;
    for (int64_t k = 1; k < d; k++) most = x[k * step] > most ? x[k * step] : most;
    for (int64_t k = 0; k < d; k++) sum += to[k * step] = rl_ev_rounded(t, exp(rl_ev_rounded(t, x[k * step] - most)));
    for (int64_t k = 0; k < d; k++)
        to[k * step] = logarithm ? x[k * step] - most - log(sum) : to[k * step] / sum;
}

/* Before opset 13 everything from the axis on is one dim. */
bool rl_ev_softmax(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0);
    uint32_t axis;
    if (!rl_ev_load(e, x) || !x->f || !rl_op_axis(e->g, e->n, &axis) || !rl_ev_make(e, port, out, x->dtype, x->rank, x->dim)) return false;
    if (x->n == 0) return true;
    if (!rl_ev_spend(e, (uint64_t)x->n * 16)) return false;
    bool flat = e->n->since < 13;
    int64_t step = flat ? 1 : rl_ev_stride(x, axis), d = flat ? x->dim[axis] * rl_ev_stride(x, axis) : x->dim[axis];
    for (int64_t o = 0; o < x->n / d; o++) {
        int64_t at = o / step * d * step + o % step;
        softmax(out->f + at, x->f + at, d, step, x->dtype, arg != 0);
    }
    return rl_ev_store(out);
}

/* t has the dims of x from `axis` on, and nothing more. */
static bool is_tail(const tensor *t, const tensor *x, uint32_t axis) {
    if (t->rank != x->rank - axis) return false;
    return rl_same_bytes(t->dim, x->dim + axis, t->rank * sizeof *t->dim);
}

bool rl_ev_layer_norm(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *x = rl_ev_input(e, 0), *scale = rl_ev_input(e, 1), *bias = rl_ev_input(e, 2);
    uint32_t axis;
    double eps = (double)rl_attr_float(e->n, "epsilon", 1e-5f);
    (void)arg;
    if (port || !rl_ev_load(e, x) || !x->f || !scale || !rl_ev_load_as(e, 1, x->dtype) || (bias && !rl_ev_load_as(e, 2, x->dtype))) return false;
    if (!rl_ev_axis_in(rl_attr_int(e->n, "axis", -1), x->rank, &axis) || !is_tail(scale, x, axis) || (bias && !is_tail(bias, x, axis))) return false;
    if (!rl_ev_make(e, port, out, x->dtype, x->rank, x->dim) || !rl_ev_spend(e, (uint64_t)x->n * 8)) return false;
    int64_t d = scale->n;
    for (int64_t at = 0; at < x->n; at += d) {
        double mean = 0, var = 0;
        for (int64_t k = 0; k < d; k++) mean += x->f[at + k] / (double)d;
        for (int64_t k = 0; k < d; k++) var += (x->f[at + k] - mean) * (x->f[at + k] - mean) / (double)d;
        for (int64_t k = 0; k < d; k++)
            out->f[at + k] = (x->f[at + k] - mean) / sqrt(var + eps) * scale->f[k] + (bias ? bias->f[k] : 0);
    }
    return rl_ev_store(out);
}

/* out[m,n] = sum over k of a[m,k] * b[k,n], with any steps. */
typedef struct { int64_t m, k, n, am, ak, bk, bn; } product;

static void multiply(const product *p, const tensor *a, int64_t a0, const tensor *b, int64_t b0, tensor *out, int64_t o0) {
    for (int64_t m = 0; m < p->m; m++)
        for (int64_t k = 0; k < p->k; k++) {
            int64_t i = a0 + m * p->am + k * p->ak, j = b0 + k * p->bk, o = o0 + m * p->n;
            const double x = a->f ? a->f[i] : 0;
            for (int64_t n = 0; n < p->n && a->f; n++) out->f[o + n] += x * b->f[j + n * p->bn];
            for (int64_t n = 0; n < p->n && !a->f; n++)
                out->i[o + n] = wrap(out->dtype, (uint64_t)out->i[o + n] + (uint64_t)a->i[i] * (uint64_t)b->i[j + n * p->bn]);
        }
}

/* The multiplications of `times` such products; false when they are too many. */
static bool spend_product(evaluator *e, const product *p, int64_t times) {
    uint64_t work = 2;
    const int64_t by[] = {times, p->m, p->k, p->n};
    for (uint32_t i = 0; i < RL_LEN(by); i++)
        if (__builtin_mul_overflow(work, (uint64_t)by[i], &work)) return false;
    return rl_ev_spend(e, work);
}

/* A vector is a matrix of one row (a) or one column (b), whose dim is not in the result. */
bool rl_ev_matmul(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *a = rl_ev_input(e, 0), *b = rl_ev_input(e, 1);
    (void)arg;
    if (!rl_ev_load(e, a) || !b || !rl_ev_load_as(e, 1, a->dtype) || a->rank == 0 || b->rank == 0) return false;
    if (!a->f && a->dtype != RL_I32 && a->dtype != RL_I64) return false;
    uint32_t ra = a->rank < 2 ? 2 : a->rank, rb = b->rank < 2 ? 2 : b->rank, batch = 0, rank;
    int64_t K = a->dim[a->rank - 1], N = b->rank < 2 ? 1 : b->dim[b->rank - 1], M = a->rank < 2 ? 1 : a->dim[a->rank - 2];
    int64_t dim[MAXRANK + 3];
    if (b->dim[b->rank < 2 ? 0 : b->rank - 2] != K) return false;
    if (!rl_ev_broadcast(&batch, dim, ra - 2, a->dim) || !rl_ev_broadcast(&batch, dim, rb - 2, b->dim)) return false;
    rank = batch;
    if (a->rank > 1) dim[rank++] = M;
    if (b->rank > 1) dim[rank++] = N;
    product p = {.m = M, .k = K, .n = N, .am = K, .ak = 1, .bk = N, .bn = 1};
    tensor outer = {.rank = batch, .n = 1}, oa = {.rank = ra - 2}, ob = {.rank = rb - 2};
    memcpy(outer.dim, dim, batch * sizeof *dim);
    memcpy(oa.dim, a->dim, oa.rank * sizeof *dim);
    memcpy(ob.dim, b->dim, ob.rank * sizeof *dim);
    if (!rl_ev_count(batch, dim, &outer.n) || !spend_product(e, &p, outer.n) || !rl_ev_make(e, port, out, a->dtype, rank, dim)) return false;
    walk w = rl_ev_walk_over(&outer);
    rl_ev_spread(&w, 0, &oa);
    rl_ev_spread(&w, 1, &ob);
    if (out->n == 0) return true;
    for (int64_t o = 0; o < outer.n; o++, rl_ev_advance(&w)) multiply(&p, a, w.off[0] * M * K, b, w.off[1] * K * N, out, o * M * N);
    return rl_ev_store(out);
}

bool rl_ev_gemm(evaluator *e, int arg, uint32_t port, tensor *out) {
    tensor *a = rl_ev_input(e, 0), *b = rl_ev_input(e, 1), *c = rl_ev_input(e, 2);
    bool ta = rl_attr_int(e->n, "transA", 0) != 0, tb = rl_attr_int(e->n, "transB", 0) != 0;
    double alpha = (double)rl_attr_float(e->n, "alpha", 1), beta = (double)rl_attr_float(e->n, "beta", 1);
    (void)arg;
    if (!rl_ev_load(e, a) || !a->f || !rl_ev_load_as(e, 1, a->dtype) || a->rank != 2 || b->rank != 2) return false;
    if (c && (!rl_ev_load_as(e, 2, a->dtype) || c->rank > 2)) return false;
    int64_t m = a->dim[ta], k = a->dim[!ta], n = b->dim[!tb], dim[MAXRANK] = {m, n};
    uint32_t rank = 2;
    if (b->dim[tb] != k || (c && !rl_ev_broadcast(&rank, dim, c->rank, c->dim)) || dim[0] != m || dim[1] != n) return false;
    product p = {m, k, n, ta ? 1 : k, ta ? m : 1, tb ? 1 : n, tb ? k : 1};
    if (!spend_product(e, &p, 1) || !rl_ev_make(e, port, out, a->dtype, 2, dim)) return false;
    multiply(&p, a, 0, b, 0, out, 0);
    walk w = rl_ev_walk_over(out);
    if (c) rl_ev_spread(&w, 0, c);
    for (int64_t i = 0; i < out->n; i++, rl_ev_advance(&w)) out->f[i] = alpha * out->f[i] + (c ? beta * c->f[w.off[0]] : 0);
    return rl_ev_store(out);
}
