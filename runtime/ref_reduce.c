/* Reduce*: sums, means, norms, extremes over any set of axes, of any view.
 *
 * The output is made in tiles of a few neighbours.  Where a reduced axis lies closest in memory, each output is a sum along rows;
 * else the tile's outputs are carried side by side while rows of the input are added to them.  So both loops run over contiguous
 * memory where the input is dense, whatever the axes.  Floats are carried in double, integers in 64 bits. */
#include "ref_reduce.h"

#include <math.h>
#include <string.h>

#include "kernels.h"

enum { TILE = 64, LANES = 8 };
typedef enum { ADD, ABS, SQUARE, EXP, MULTIPLY, GREATER, LESS, NSTEP } step;
typedef enum { F32, F64, I64, U64, NTYPE } element; /* what rows are read as; sums are carried in the last three */
static const rl_dtype dtype_of[NTYPE] = {RL_F32, RL_F64, RL_I64, RL_U64};

/* A row into LANES sums, to be added up at the end; a row into as many sums. shift: of EXP. */
typedef void row_fn(void *lane, const void *x, int64_t n, double shift);
typedef void column_fn(void *sum, const void *x, int64_t n, const double *shift);

/* expr: a, what is carried, and v, the element, both of type A; s, the shift */
#define LOOPS(name, S, T, A, expr)                                                                                   \
    static void row_##name##_##S(void *lane, const void *from, int64_t n, double s) {                                \
        const T *x = from;                                                                                           \
        A *y = lane;                                                                                                 \
        int64_t i = 0;                                                                                               \
        (void)s;                                                                                                     \
        for (; i + LANES <= n; i += LANES)                                                                           \
            for (int l = 0; l < LANES; l++) {                                                                        \
                A a = y[l], v = (A)x[i + l];                                                                         \
                y[l] = (expr);                                                                                       \
            }                                                                                                        \
        for (; i < n; i++) {                                                                                         \
            A a = y[0], v = (A)x[i];                                                                                 \
            y[0] = (expr);                                                                                           \
        }                                                                                                            \
    }                                                                                                                \
    static void column_##name##_##S(void *sum, const void *from, int64_t n, const double *shift) {                   \
        const T *x = from;                                                                                           \
        A *y = sum;                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            double s = shift[i];                                                                                     \
            A a = y[i], v = (A)x[i];                                                                                 \
            (void)s;                                                                                                 \
            y[i] = (expr);                                                                                           \
        }                                                                                                            \
    }
#define WRAPS(x) ((int64_t)(x))
#define FLOAT_LOOPS(S, T)                                                                                            \
    LOOPS(add, S, T, double, a + v)                                                                                  \
    LOOPS(abs, S, T, double, a + fabs(v))                                                                            \
    LOOPS(square, S, T, double, a + v * v)                                                                           \
    LOOPS(exp, S, T, double, a + exp(v - s))                                                                         \
    LOOPS(multiply, S, T, double, a *v)                                                                              \
    LOOPS(greater, S, T, double, v > a || v != v ? v : a)                                                            \
    LOOPS(less, S, T, double, v < a || v != v ? v : a)
FLOAT_LOOPS(f32, float)
FLOAT_LOOPS(f64, double)
LOOPS(add, i64, int64_t, int64_t, WRAPS((uint64_t)a + (uint64_t)v))
LOOPS(abs, i64, int64_t, int64_t, WRAPS((uint64_t)a + (v < 0 ? 0 - (uint64_t)v : (uint64_t)v)))
LOOPS(square, i64, int64_t, int64_t, WRAPS((uint64_t)a + (uint64_t)v * (uint64_t)v))
LOOPS(multiply, i64, int64_t, int64_t, WRAPS((uint64_t)a * (uint64_t)v))
LOOPS(greater, i64, int64_t, int64_t, v > a ? v : a)
LOOPS(less, i64, int64_t, int64_t, v < a ? v : a)
LOOPS(add, u64, uint64_t, uint64_t, a + v)
LOOPS(square, u64, uint64_t, uint64_t, a + v * v)
LOOPS(multiply, u64, uint64_t, uint64_t, a *v)
LOOPS(greater, u64, uint64_t, uint64_t, v > a ? v : a)
LOOPS(less, u64, uint64_t, uint64_t, v < a ? v : a)

#define PAIR(name, S) {row_##name##_##S, column_##name##_##S}
static const struct { row_fn *row; column_fn *column; } loops[NSTEP][NTYPE] = {
    [ADD] = {PAIR(add, f32), PAIR(add, f64), PAIR(add, i64), PAIR(add, u64)},
    [ABS] = {PAIR(abs, f32), PAIR(abs, f64), PAIR(abs, i64), PAIR(add, u64)},
    [SQUARE] = {PAIR(square, f32), PAIR(square, f64), PAIR(square, i64), PAIR(square, u64)},
    [EXP] = {PAIR(exp, f32), PAIR(exp, f64), {NULL, NULL}, {NULL, NULL}},
    [MULTIPLY] = {PAIR(multiply, f32), PAIR(multiply, f64), PAIR(multiply, i64), PAIR(multiply, u64)},
    [GREATER] = {PAIR(greater, f32), PAIR(greater, f64), PAIR(greater, i64), PAIR(greater, u64)},
    [LESS] = {PAIR(less, f32), PAIR(less, f64), PAIR(less, i64), PAIR(less, u64)}};

/* ---- the walk ---- */

typedef struct { uint32_t n; int64_t dim[RL_RANK], stride[RL_RANK]; } dims;

typedef union { double f64[TILE]; int64_t i64[TILE]; uint64_t u64[TILE]; float f32[TILE]; } numbers;

typedef struct {
    int op;
    element type, carried;
    const rl_tensor *x, *y; /* y: dense, the kept dims */
    dims kept, reduced;     /* each with the dim of its inner loop last */
    bool by_row, direct;    /* direct: rows are read from memory as they are */
    int64_t count, tiles;   /* elements per output; tiles per row of outputs */
    numbers none;           /* [0]: what a MAX or MIN begins with */
} reduction;

/* Adds a dim, joined with the last one where they lie one after the other. */
static void add_dim(dims *d, int64_t n, int64_t stride) {
    if (n == 1) return;
    if (d->n && d->stride[d->n - 1] == stride * n) {
        d->dim[d->n - 1] *= n;
        d->stride[d->n - 1] = stride;
        return;
    }
    d->dim[d->n] = n;
    d->stride[d->n++] = stride;
}

/* The place of element k, row-major, of the first n dims. */
static int64_t place(const dims *d, uint32_t n, int64_t k) {
    int64_t at = 0;
    for (uint32_t i = n; i-- > 0; k /= d->dim[i]) at += k % d->dim[i] * d->stride[i];
    return at;
}

static int64_t size_of(int64_t x) {
    return x < 0 ? -x : x;
}

/* The dim with the smallest stride goes last. */
static void smallest_last(dims *d) {
    uint32_t best = d->n - 1, last = d->n - 1;
    for (uint32_t i = 0; i < d->n; i++)
        if (size_of(d->stride[i]) < size_of(d->stride[best])) best = i;
    int64_t n = d->dim[best], stride = d->stride[best];
    d->dim[best] = d->dim[last], d->stride[best] = d->stride[last];
    d->dim[last] = n, d->stride[last] = stride;
}

static step step_of(int op) {
    switch (op) {
    case RL_RD_L1: return ABS;
    case RL_RD_L2: case RL_RD_SUM_SQUARE: return SQUARE;
    case RL_RD_LOG_SUM_EXP: return EXP;
    case RL_RD_PROD: return MULTIPLY;
    case RL_RD_MAX: return GREATER;
    case RL_RD_MIN: return LESS;
    default: return ADD;
    }
}

static void begin(const reduction *r, step s, numbers *sum, int64_t n) {
    bool is_float = r->carried == F64;
    for (int64_t i = 0; i < n; i++) {
        if (s == MULTIPLY && is_float) sum->f64[i] = 1;
        else if (s == MULTIPLY) sum->u64[i] = 1;
        else if (s == GREATER && is_float) sum->f64[i] = -(double)INFINITY;
        else if (s == GREATER || s == LESS) sum->u64[i] = r->none.u64[0];
        else sum->u64[i] = 0; /* 0.0 too */
    }
}

/* n elements from `at` on, in the type that the loops read; buffer holds TILE. */
static const void *load(const reduction *r, numbers *buffer, int64_t at, int64_t stride, int64_t n) {
    if (r->direct && (stride == 1 || n == 1)) return (const char *)r->x->mem->p + at * (int64_t)(rl_dtype_bits(r->x->dtype) / 8);
    rl_convert_run((rl_run){dtype_of[r->type], (char *)buffer, 0, 1}, (rl_run){r->x->dtype, r->x->mem->p, at, stride}, n, true);
    return buffer;
}

/* One output of the tile: rows of reduced elements. */
static void pass_rows(const reduction *r, step s, int64_t at, int64_t n, numbers *sum, const double *shift) {
    const dims *d = &r->reduced;
    uint32_t last = d->n - 1;
    int64_t outer = rl_product(d->dim, last), len = d->dim[last], step_in = d->stride[last], most = r->direct && step_in == 1 ? len : TILE;
    int64_t kept_stride = r->kept.n ? r->kept.stride[r->kept.n - 1] : 0;
    for (int64_t j = 0; j < n; j++) {
        numbers lane, buffer;
        begin(r, s, &lane, LANES);
        for (int64_t k = 0; k < outer; k++) {
            int64_t from = at + j * kept_stride + place(d, last, k);
            for (int64_t i = 0; i < len; i += most) {
                int64_t m = RL_MIN(most, len - i);
                loops[s][r->type].row(&lane, load(r, &buffer, from + i * step_in, step_in, m), m, shift[j]);
            }
        }
        step joins = s == ABS || s == SQUARE || s == EXP ? ADD : s;
        for (int l = LANES / 2; l > 0; l /= 2) loops[joins][r->carried].column(&lane.u64[0], &lane.u64[l], l, shift);
        sum->u64[j] = lane.u64[0];
    }
}

/* All outputs of the tile side by side. */
static void pass_columns(const reduction *r, step s, int64_t at, int64_t n, numbers *sum, const double *shift) {
    numbers buffer;
    int64_t stride = r->kept.stride[r->kept.n - 1];
    begin(r, s, sum, n);
    for (int64_t k = 0; k < r->count; k++)
        loops[s][r->type].column(sum, load(r, &buffer, at + place(&r->reduced, r->reduced.n, k), stride, n), n, shift);
}

static void finish(const reduction *r, numbers *sum, int64_t n, const double *shift) {
    for (int64_t i = 0; i < n; i++) {
        double *f = &sum->f64[i];
        switch (r->op) {
        case RL_RD_MEAN:
            if (r->carried == F64) *f /= (double)r->count;
            else if (r->carried == U64) sum->u64[i] = r->count ? sum->u64[i] / (uint64_t)r->count : 0;
            else sum->i64[i] = r->count ? sum->i64[i] / r->count : 0;
            break;
        case RL_RD_L2: *f = sqrt(*f); break;
        case RL_RD_LOG_SUM: *f = log(*f); break;
        case RL_RD_LOG_SUM_EXP: *f = log(*f) + shift[i]; break;
        default: break;
        }
    }
}

static void do_tiles(void *arg, int64_t from, int64_t to) {
    const reduction *r = arg;
    uint32_t outer = r->kept.n ? r->kept.n - 1 : 0;
    int64_t len = r->kept.n ? r->kept.dim[outer] : 1, stride = r->kept.n ? r->kept.stride[outer] : 0;
    for (int64_t t = from; t < to; t++) {
        int64_t row = t / r->tiles, first = t % r->tiles * TILE, n = RL_MIN((int64_t)TILE, len - first);
        int64_t at = r->x->offset + place(&r->kept, outer, row) + first * stride;
        numbers sum;
        double shift[TILE] = {0};
        void (*pass)(const reduction *, step, int64_t, int64_t, numbers *, const double *) = r->by_row ? pass_rows : pass_columns;
        if (r->op == RL_RD_LOG_SUM_EXP) {
            pass(r, GREATER, at, n, &sum, shift);
            for (int64_t i = 0; i < n; i++) shift[i] = isinf(sum.f64[i]) ? 0 : sum.f64[i];
        }
        pass(r, step_of(r->op), at, n, &sum, shift);
        finish(r, &sum, n, shift);
        rl_convert_run((rl_run){r->y->dtype, r->y->mem->p, r->y->offset + row * len + first, 1},
                       (rl_run){dtype_of[r->carried], (char *)&sum, 0, 1}, n, true);
    }
}

/* ---- the op ---- */

/* Of nothing: the extreme of the type. */
static uint64_t extreme(rl_dtype t, bool least) {
    uint32_t bits = rl_dtype_bits(t);
    double inf = least ? -(double)INFINITY : (double)INFINITY;
    uint64_t u;
    memcpy(&u, &inf, sizeof u);
    if (rl_is_float(t)) return u;
    if (t == RL_BOOL) return least ? 0 : 1;
    if (!rl_is_signed(t)) return least ? 0 : UINT64_MAX >> (64 - bits);
    uint64_t top = UINT64_MAX >> (65 - bits);
    return least ? ~top : top;
}

static void choose_types(reduction *r) {
    rl_dtype t = r->x->dtype;
    bool wants_float = r->op == RL_RD_L2 || r->op == RL_RD_LOG_SUM || r->op == RL_RD_LOG_SUM_EXP;
    if (rl_is_float(t)) r->type = t == RL_F64 ? F64 : F32;
    else r->type = wants_float ? F64 : t == RL_U64 ? U64 : I64;
    r->carried = r->type == F32 ? F64 : r->type;
    r->direct = dtype_of[r->type] == t;
    r->none.u64[0] = extreme(t, r->op == RL_RD_MAX);
}

static void run(rl_rt *rt, reduction *r, const bool *is_reduced) {
    for (uint32_t i = 0; i < r->x->rank; i++) add_dim(is_reduced[i] ? &r->reduced : &r->kept, r->x->dim[i], r->x->stride[i]);
    r->count = rl_product(r->reduced.dim, r->reduced.n);
    if (r->reduced.n == 0) r->reduced = (dims){1, {1}, {1}};
    smallest_last(&r->reduced);
    uint32_t k = r->kept.n;
    r->by_row = k == 0 || size_of(r->reduced.stride[r->reduced.n - 1]) < size_of(r->kept.stride[k - 1]);
    int64_t len = k ? r->kept.dim[k - 1] : 1, rows = k ? rl_product(r->kept.dim, k - 1) : 1;
    r->tiles = (len + TILE - 1) / TILE;
    choose_types(r);
    rl_parallel(rt, rows * r->tiles, RL_MAX(1, 16384 / (RL_MIN(len, (int64_t)TILE) * RL_MAX(r->count, 1))), do_tiles, r);
}

rl_status rl_ref_reduce(rl_call *c) {
    const int64_t *axes;
    uint32_t naxis, rank = 0;
    bool is_reduced[RL_RANK] = {false}, keeps = rl_attr_int(c->node, "keepdims", 1) != 0;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    reduction r = {.op = c->arg, .x = rl_call_in(c, 0)};
    uint32_t since = c->arg == RL_RD_SUM ? 13 : 18; /* when the axes became an input */
    RL_TRY(rl_call_ints(c, "axes", c->node->since >= since ? 1 : RL_NONE, &axes, &naxis));
    bool all = naxis == 0 && !rl_attr_int(c->node, "noop_with_empty_axes", 0);
    for (uint32_t i = 0; i < naxis; i++) {
        uint32_t a;
        RL_TRY(rl_call_axis(c, axes[i], r.x->rank, &a));
        is_reduced[a] = true;
    }
    for (uint32_t i = 0; i < r.x->rank; i++) {
        is_reduced[i] |= all;
        if (!is_reduced[i] || keeps) dim[rank++] = is_reduced[i] ? 1 : r.x->dim[i];
    }
    r.y = rl_call_make(c, 0, r.x->dtype, rank, dim);
    if (rl_numel(r.y)) run(c->rt, &r, is_reduced);
    return RL_OK;
}
