/* The contents of small tensors: constants, and numbers that depend on symbolic sizes.
 *
 * After a node's types are inferred, and where its outputs are small, folds[] computes their elements as cells: an integer, a
 * float, a symbolic size divided by a number, raw bytes (types that nothing is computed in, but that may move), or nothing
 * known.  A tensor all known becomes rl_valinfo.data; one known in part rl_valinfo.elem (integers get both).
 * A constant of any size that only gets another shape is data with the same bytes.
 *   Shape(f32[N,3,H,W]) = {N,3,H,W};  Gather 2 = H;  Cast to f32 = H;  Mul 0.5 = H/2;  Floor = floor(H/2)
 * Symbolic sizes are taken to be positive.  Float results are rounded to their type after each operation, as a runtime does. */
#include "shape_internal.h"

#include <math.h>
#include <string.h>

typedef rl_cell cell;

static const cell none = {.kind = CELL_NONE};

static cell of_int(int64_t x) {
    return (cell){.kind = CELL_INT, .num = x};
}

static cell of_float(double x) {
    return (cell){.kind = CELL_FLOAT, .f = x};
}

static bool is_float(rl_dtype t) {
    return t == RL_F32 || t == RL_F64;
}

/* Types whose elements are numbers to compute with; others only move. */
static bool computes(rl_dtype t) {
    return is_float(t) || t == RL_BOOL || (t >= RL_U8 && t <= RL_I64) || t == RL_U32 || t == RL_U64;
}

static cell symbol(rl_dim d, int64_t den) {
    if (d == UNKNOWN) return none;
    return (cell){.kind = CELL_SYM, .sym = d, .num = den};
}

/* ---- reading and writing ---- */

static cell decode(rl_dtype t, const char *p) {
    union { int8_t i8; uint8_t u8; int16_t i16; uint16_t u16; int32_t i32; uint32_t u32; int64_t i64; uint64_t u64; float f; double d; } x = {0};
    memcpy(&x, p, rl_dtype_bits(t) / 8);
    switch (t) {
    case RL_BOOL: return of_int(x.u8 != 0);
    case RL_U8: return of_int(x.u8);
    case RL_I8: return of_int(x.i8);
    case RL_U16: return of_int(x.u16);
    case RL_I16: return of_int(x.i16);
    case RL_U32: return of_int(x.u32);
    case RL_I32: return of_int(x.i32);
    case RL_I64: return of_int(x.i64);
    case RL_F32: if (!isnan(x.f)) return of_float((double)x.f); break;
    case RL_F64: if (!isnan(x.d)) return of_float(x.d); break;
    case RL_U64: if (x.u64 <= INT64_MAX) return of_int((int64_t)x.u64); break;
    default: break;
    }
    return (cell){.kind = CELL_BITS, .num = x.i64};
}

/* Does integer x fit type t? */
static bool fits(rl_dtype t, int64_t x) {
    switch (t) {
    case RL_BOOL: return x == 0 || x == 1;
    case RL_U8: return x >= 0 && x <= UINT8_MAX;
    case RL_I8: return x >= INT8_MIN && x <= INT8_MAX;
    case RL_U16: return x >= 0 && x <= UINT16_MAX;
    case RL_I16: return x >= INT16_MIN && x <= INT16_MAX;
    case RL_U32: return x >= 0 && x <= UINT32_MAX;
    case RL_I32: return x >= INT32_MIN && x <= INT32_MAX;
    case RL_U64: return x >= 0;
    default: return t == RL_I64;
    }
}

static void encode(rl_dtype t, cell c, char *p) {
    float f = (float)c.f;
    if (c.kind == CELL_FLOAT && t == RL_F32) memcpy(p, &f, 4);
    else if (c.kind == CELL_FLOAT) memcpy(p, &c.f, 8);
    else memcpy(p, &c.num, rl_dtype_bits(t) / 8); /* little-endian */
}

/* The cell as one of type t can be: NONE where it is not. */
static cell settle(rl_dtype t, cell c) {
    switch (c.kind) {
    case CELL_INT: return fits(t, c.num) ? c : none;
    case CELL_FLOAT: return is_float(t) && !isnan(c.f) ? c : none;
    case CELL_SYM: return is_float(t) || (c.num == 1 && (t == RL_I64 || t == RL_I32 || t == RL_U64 || t == RL_U32)) ? c : none;
    default: return c;
    }
}

/* The number of elements; false when it is not known, or more than MAXCELL. */
static bool count(uint32_t rank, const rl_dim *dim, uint32_t *n) {
    int64_t r = 1;
    bool empty = false;
    if (rank == RL_NORANK) return false;
    for (uint32_t i = 0; i < rank; i++) {
        if (!rl_dim_known(dim[i]) || dim[i] > MAXCELL / r) return false;
        if (dim[i] == 0) empty = true;
        else r *= dim[i];
    }
    *n = empty ? 0 : (uint32_t)r;
    return true;
}

/* An initializer that is a graph input too may be replaced by the caller (IR version 4 on). */
static const rl_const *constant_of(const rl_shaper *s, const rl_valinfo *v) {
    const rl_graph *top = s->g;
    while (top->parent) top = top->parent;
    if (!v->data || !v->data->data || (v->is_input && v->is_init && top->ir_version >= 4)) return NULL;
    return v->data;
}

static cell of_elem(const rl_elem *e) {
    if (e->known) return e->den == 1 ? of_int(e->num) : none;
    return e->sym ? symbol(e->sym, e->den) : none;
}

bool rl_shape_load(const rl_shaper *s, const rl_valinfo *v, rl_tensor *t) {
    const rl_const *c = constant_of(s, v);
    uint32_t n, bits;
    if ((!c && !v->elem) || !count(v->rank, v->dim, &n)) return false;
    *t = (rl_tensor){v->dtype, v->rank, v->dim, n, rl_new(s->tmp, cell, n)};
    if (c) {
        bits = rl_dtype_bits(c->dtype);
        if (c->dtype != v->dtype || bits < 8 || bits > 64 || c->nbyte != (size_t)n * (bits / 8)) return false;
        for (uint32_t i = 0; i < n; i++) t->cell[i] = decode(c->dtype, (const char *)c->data + (size_t)i * (bits / 8));
        return true;
    }
    if (v->nelem != n) return false;
    for (uint32_t i = 0; i < n; i++) {
        t->cell[i] = of_elem(&v->elem[i]);
        if (is_float(v->dtype) && t->cell[i].kind == CELL_INT) t->cell[i] = of_float((double)t->cell[i].num);
    }
    return true;
}

bool rl_shape_ratio(double f, int64_t *num, int64_t *den) {
    for (*den = 1; *den <= 65536; *den *= 2) {
        double x = f * (double)*den;
        if (!(fabs(x) <= 1e15)) return false; /* NaN too */
        *num = (int64_t)x;
        if ((double)*num == x) return true;
    }
    return false;
}

static void store_data(const rl_shaper *s, rl_valinfo *v, const rl_tensor *t) {
    uint32_t size = rl_dtype_bits(t->dtype) / 8;
    if (!size || (size_t)t->n * size > MAXBYTE) return;
    rl_const *c = rl_new(&s->g->mem, rl_const, 1);
    char *p = rl_alloc(&s->g->mem, (size_t)t->n * size);
    for (uint32_t i = 0; i < t->n; i++) encode(t->dtype, t->cell[i], p + (size_t)i * size);
    *c = (rl_const){t->dtype, t->rank, v->dim, p, (size_t)t->n * size};
    v->data = c;
}

static rl_elem to_elem(cell c) {
    int64_t num, den;
    if (c.kind == CELL_INT) return (rl_elem){.known = true, .num = c.num, .den = 1};
    if (c.kind == CELL_SYM) return (rl_elem){.sym = c.sym, .den = c.num};
    if (c.kind == CELL_FLOAT && rl_shape_ratio(c.f, &num, &den) && den == 1) return (rl_elem){.known = true, .num = num, .den = 1};
    return (rl_elem){.den = 1};
}

void rl_shape_store(rl_shaper *s, uint32_t port, rl_tensor *t) {
    rl_value id = rl_out(s->n, port);
    uint32_t n, known = 0, some = 0;
    if (!rl_has(id)) return;
    rl_valinfo *v = rl_val(s->g, id);
    if (v->dtype != t->dtype || !count(v->rank, v->dim, &n) || n != t->n) return;
    for (uint32_t i = 0; i < n; i++) {
        t->cell[i] = settle(t->dtype, t->cell[i]);
        known += t->cell[i].kind != CELL_NONE && t->cell[i].kind != CELL_SYM;
        some += t->cell[i].kind != CELL_NONE;
    }
    t->rank = v->rank;
    if (known == n) store_data(s, v, t);
    if ((known == n && (is_float(t->dtype) || !computes(t->dtype))) || (!some && n) || n > MAXELEM) return;
    rl_elem *e = rl_new(&s->g->mem, rl_elem, n);
    for (uint32_t i = 0; i < n; i++) e[i] = to_elem(t->cell[i]);
    v->elem = e;
    v->nelem = n;
}

/* ---- numbers and symbols ---- */

/* num/den or sym/den */
typedef struct { bool ok, known; int64_t num; rl_dim sym; int64_t den; } ratio;

static ratio ratio_of(cell c) {
    ratio r = {.ok = true, .known = c.kind != CELL_SYM, .den = 1};
    if (c.kind == CELL_INT) r.num = c.num;
    else if (c.kind == CELL_FLOAT) r.ok = rl_shape_ratio(c.f, &r.num, &r.den);
    else if (c.kind == CELL_SYM) r.sym = c.sym, r.den = c.num;
    else r.ok = false;
    return r;
}

static ratio bad(void) {
    return (ratio){.ok = false};
}

static ratio whole(rl_dim d) {
    if (d == UNKNOWN) return bad();
    return rl_dim_known(d) ? (ratio){.ok = true, .known = true, .num = d, .den = 1} : (ratio){.ok = true, .sym = d, .den = 1};
}

/* The operands' den are 1 in these three. */
static ratio add_whole(const rl_shaper *s, ratio a, ratio b) {
    ratio r = {.ok = true, .known = true, .den = 1};
    if (a.known && b.known) r.ok = !__builtin_add_overflow(a.num, b.num, &r.num);
    else if (a.known) r = whole(rl_shape_offset(s, b.sym, a.num));
    else if (b.known) r = whole(rl_shape_offset(s, a.sym, b.num));
    else r = whole(rl_shape_add(s, a.sym, b.sym));
    return r;
}

static ratio sub_whole(const rl_shaper *s, ratio a, ratio b) {
    ratio r = {.ok = true, .known = true, .den = 1};
    if (a.known && b.known) {
        r.ok = !__builtin_sub_overflow(a.num, b.num, &r.num);
        return r;
    }
    if (b.known) return b.num == INT64_MIN ? bad() : whole(rl_shape_offset(s, a.sym, -b.num));
    if (a.known && a.num < 0) return a.num == INT64_MIN ? bad() : whole(rl_shape_sub(s, 0, rl_shape_offset(s, b.sym, -a.num)));
    rl_dim back = a.known ? UNKNOWN : rl_shape_sub(s, b.sym, a.sym);
    if (back >= 0) {
        r.num = -back;
        return r;
    }
    return whole(rl_shape_sub(s, a.known ? a.num : a.sym, b.sym));
}

static ratio mul_whole(const rl_shaper *s, ratio a, ratio b) {
    ratio r = {.ok = true, .known = true, .den = 1};
    if (a.known && b.known) {
        r.ok = !__builtin_mul_overflow(a.num, b.num, &r.num);
        return r;
    }
    if (a.known) return mul_whole(s, b, a);
    if (!b.known) return whole(rl_shape_mul(s, a.sym, b.sym));
    if (b.num >= 0) return whole(rl_shape_mul(s, a.sym, b.num));
    return b.num == INT64_MIN ? bad() : whole(rl_shape_sub(s, 0, rl_shape_mul(s, a.sym, -b.num)));
}

/* r / den, den taken out where it divides. */
static ratio over(const rl_shaper *s, ratio r, int64_t den) {
    rl_dim q;
    if (!r.ok || den <= 0) return bad();
    if (den > 1 && !r.known && rl_dim_div(s->ctx, r.sym, den, &q)) return whole(q);
    if (den > 1 && r.known && r.num % den == 0) r.num /= den, den = 1;
    r.den = den;
    return r;
}

static ratio scale(const rl_shaper *s, ratio a, int64_t k) {
    a.den = 1;
    return mul_whole(s, a, (ratio){.ok = true, .known = true, .num = k, .den = 1});
}

typedef enum { ADD, SUB, MUL, DIV, MOD, MIN, MAX, EQ, LT, LE, GT, GE, AND, OR, XOR } binary;

/* a op b over a common denominator. */
static ratio sum(const rl_shaper *s, binary op, ratio a, ratio b) {
    int64_t den;
    if (__builtin_mul_overflow(a.den, b.den, &den)) return bad();
    ratio x = scale(s, a, b.den), y = scale(s, b, a.den);
    if (!x.ok || !y.ok) return bad();
    return over(s, op == ADD ? add_whole(s, x, y) : sub_whole(s, x, y), den);
}

static ratio product(const rl_shaper *s, ratio a, ratio b) {
    int64_t den;
    if (__builtin_mul_overflow(a.den, b.den, &den)) return bad();
    a.den = b.den = 1;
    return over(s, mul_whole(s, a, b), den);
}

/* Integers: towards zero, and symbols are positive.  Floats: exact, or nothing. */
static ratio quotient(const rl_shaper *s, ratio a, ratio b, bool integer) {
    rl_dim q;
    int64_t den;
    if (b.known && b.num <= 0) return bad();
    if (!a.known && !b.known) {
        if (a.den != 1 || b.den != 1) return bad();
        if (rl_dim_div(s->ctx, a.sym, b.sym, &q)) return whole(q);
        return integer ? whole(rl_shape_derived(s, "div", a.sym, b.sym)) : bad();
    }
    if (!b.known) return bad();
    if (integer) return whole(rl_shape_floordiv(s, a.sym, b.num));
    ratio x = scale(s, a, b.den);
    return __builtin_mul_overflow(a.den, b.num, &den) ? bad() : over(s, x, den);
}

static ratio remainder_of(const rl_shaper *s, ratio a, ratio b) {
    if (a.known || !b.known || b.num <= 0 || a.den != 1 || b.den != 1) return bad();
    ratio q = whole(rl_shape_floordiv(s, a.sym, b.num));
    return q.ok ? sub_whole(s, a, scale(s, q, b.num)) : bad();
}

static cell to_cell(ratio r, bool integer) {
    if (!r.ok) return none;
    if (!r.known) return symbol(r.sym, r.den);
    return integer ? of_int(r.num) : of_float((double)r.num / (double)r.den);
}

/* ---- one element ---- */

static bool positive(const rl_shaper *s, cell c) {
    return c.kind == CELL_SYM && is_size(s, c.sym);
}

/* -1, 0, 1: the order of a and b; 2: not known. */
static int order(const rl_shaper *s, cell a, cell b) {
    if (a.kind == CELL_INT && b.kind == CELL_INT) return a.num < b.num ? -1 : a.num > b.num;
    if (a.kind == CELL_FLOAT && b.kind == CELL_FLOAT) return a.f < b.f ? -1 : a.f > b.f;
    if (a.kind == CELL_SYM && b.kind == CELL_SYM && a.sym == b.sym && a.num == b.num) return 0;
    ratio x = ratio_of(a), y = ratio_of(b);
    if (!x.ok || !y.ok || (x.known && y.known)) return 2;
    if (x.known) {
        int o = order(s, b, a);
        return o == 2 ? 2 : -o;
    }
    if (y.known && y.den == 1 && x.den == 1 && positive(s, a))
        return y.num < 0 || rl_shape_least(s, x.sym) > y.num ? 1 : 2;
    if (y.known || x.den != 1 || y.den != 1) return 2;
    ratio d = sub_whole(s, x, y);
    return d.ok && d.known ? (d.num < 0 ? -1 : d.num > 0) : 2;
}

/* a >= b where the two may be equal. */
static bool not_less(const rl_shaper *s, cell a, cell b) {
    int o = order(s, a, b);
    return o == 0 || o == 1 || (a.kind == CELL_SYM && b.kind == CELL_INT && a.num == 1 && rl_shape_least(s, a.sym) >= b.num);
}

static cell extreme(const rl_shaper *s, binary op, cell a, cell b) {
    if (a.kind == CELL_FLOAT && b.kind == CELL_FLOAT) return of_float(op == MIN ? fmin(a.f, b.f) : fmax(a.f, b.f));
    if (not_less(s, a, b)) return op == MIN ? b : a;
    if (not_less(s, b, a)) return op == MIN ? a : b;
    rl_dim x = size_of(s, a), y = size_of(s, b), d;
    if (x == UNKNOWN || y == UNKNOWN) return none;
    if (op == MIN) return symbol(rl_shape_min(s, x, y), 1);
    if (rl_dim_known(x) || rl_dim_known(y)) return symbol(rl_shape_derived(s, "most", x, y), 1);
    return rl_shape_broadcast(s, x, y, &d) ? symbol(d, 1) : none;
}

static cell compare(const rl_shaper *s, binary op, cell a, cell b) {
    int o = order(s, a, b);
    switch (op) {
    case EQ: return o == 2 ? none : of_int(o == 0);
    case LT: return o == 2 ? (not_less(s, a, b) ? of_int(0) : none) : of_int(o < 0);
    case GT: return o == 2 ? (not_less(s, b, a) ? of_int(0) : none) : of_int(o > 0);
    case LE: return o == 2 ? (not_less(s, b, a) ? of_int(1) : none) : of_int(o <= 0);
    default: return o == 2 ? (not_less(s, a, b) ? of_int(1) : none) : of_int(o >= 0);
    }
}

static cell logical(binary op, cell a, cell b) {
    bool x = a.kind == CELL_INT, y = b.kind == CELL_INT;
    if (op == AND && ((x && !a.num) || (y && !b.num))) return of_int(0);
    if (op == OR && ((x && a.num) || (y && b.num))) return of_int(1);
    if (!x || !y) return none;
    return of_int(op == AND ? a.num && b.num : op == OR ? a.num || b.num : !a.num != !b.num);
}

static cell integers(binary op, int64_t a, int64_t b, bool c_remainder) {
    int64_t r = 0;
    bool ok = true;
    if ((op == DIV || op == MOD) && (b == 0 || (b == -1 && a == INT64_MIN))) return none;
    switch (op) {
    case ADD: ok = !__builtin_add_overflow(a, b, &r); break;
    case SUB: ok = !__builtin_sub_overflow(a, b, &r); break;
    case MUL: ok = !__builtin_mul_overflow(a, b, &r); break;
    case DIV: r = a / b; break;
    default: r = a % b; if (r && !c_remainder && (r < 0) != (b < 0)) r += b;
    }
    return ok ? of_int(r) : none;
}

static cell floats(binary op, double a, double b) {
    switch (op) {
    case ADD: return of_float(a + b);
    case SUB: return of_float(a - b);
    case MUL: return of_float(a * b);
    case DIV: return of_float(a / b);
    default: return none;
    }
}

static cell combine(const rl_shaper *s, binary op, cell a, cell b, rl_dtype t) {
    if (op >= AND) return logical(op, a, b);
    if (op == MUL && ((a.kind == CELL_INT && a.num == 0) || (b.kind == CELL_INT && b.num == 0))) return of_int(0);
    if (a.kind == CELL_NONE || b.kind == CELL_NONE || a.kind == CELL_BITS || b.kind == CELL_BITS) return none;
    if (op >= EQ) return compare(s, op, a, b);
    if (op >= MIN) return extreme(s, op, a, b);
    if (a.kind == CELL_INT && b.kind == CELL_INT) return integers(op, a.num, b.num, rl_attr_int(s->n, "fmod", 0) != 0);
    if (a.kind == CELL_FLOAT && b.kind == CELL_FLOAT) return floats(op, a.f, b.f);
    ratio x = ratio_of(a), y = ratio_of(b), r;
    bool integer = !is_float(t);
    if (!x.ok || !y.ok || (op >= DIV && a.kind == CELL_SYM && !positive(s, a))) return none;
    if (op <= SUB) r = sum(s, op, x, y);
    else if (op == MUL) r = product(s, x, y);
    else r = op == DIV ? quotient(s, x, y, integer) : remainder_of(s, x, y);
    return to_cell(r, integer);
}

/* Rounds to the precision of type t. */
static cell rounded(cell c, rl_dtype t) {
    if (c.kind == CELL_FLOAT && t == RL_F32) c.f = (double)(float)c.f;
    return c;
}

typedef enum { NEG, ABS, FLOOR, CEIL, ROUND, SQRT, RECIPROCAL, SIGN, NOT } unary;

static cell apply_float(unary op, double x) {
    switch (op) {
    case NEG: return of_float(-x);
    case ABS: return of_float(fabs(x));
    case FLOOR: return of_float(floor(x));
    case CEIL: return of_float(ceil(x));
    case ROUND: return of_float(rint(x));
    case SQRT: return x >= 0 ? of_float(sqrt(x)) : none;
    case RECIPROCAL: return of_float(1 / x);
    case SIGN: return of_float((x > 0) - (x < 0));
    default: return none;
    }
}

static cell apply(const rl_shaper *s, unary op, cell c, bool integer) {
    if (c.kind == CELL_FLOAT) return apply_float(op, c.f);
    if (c.kind == CELL_INT && op == NOT) return of_int(!c.num);
    if (c.kind == CELL_INT && op == SIGN) return of_int((c.num > 0) - (c.num < 0));
    if (c.kind == CELL_INT && (op == NEG || (op == ABS && c.num < 0))) return integers(SUB, 0, c.num, false);
    if (c.kind == CELL_INT) return op == ABS ? c : none;
    if (c.kind != CELL_SYM) return none;
    if (op == NEG) return to_cell(over(s, scale(s, ratio_of(c), -1), c.num), integer);
    if (!positive(s, c)) return none;
    switch (op) {
    case ABS: return c;
    case FLOOR: return to_cell(whole(rl_shape_floordiv(s, c.sym, c.num)), integer);
    case CEIL: return to_cell(whole(rl_shape_ceildiv(s, c.sym, c.num)), integer);
    default: return none;
    }
}

static cell convert(const rl_shaper *s, cell c, rl_dtype from, rl_dtype to) {
    if (from == to) return c;
    if (c.kind == CELL_BITS || !computes(from) || !computes(to)) return none;
    if (to == RL_BOOL) {
        if (c.kind == CELL_SYM) return rl_shape_least(s, c.sym) > 0 ? of_int(1) : none;
        return c.kind == CELL_NONE ? c : of_int(c.kind == CELL_INT ? c.num != 0 : c.f != 0);
    }
    if (is_float(to)) {
        if (c.kind == CELL_INT) return of_float(to == RL_F32 ? (double)(float)c.num : (double)c.num);
        return rounded(c, to);
    }
    if (c.kind == CELL_FLOAT) return fabs(c.f) < 9e18 ? of_int((int64_t)c.f) : none;
    if (c.kind == CELL_SYM && c.num > 1) return positive(s, c) ? to_cell(whole(rl_shape_floordiv(s, c.sym, c.num)), true) : none;
    return c;
}

/* ---- whole tensors ---- */

/* Fills out, whose type is that of output `port`; false when nothing can be told. */
typedef bool fold_fn(rl_shaper *s, int arg, uint32_t port, rl_tensor *out);

/* Does t broadcast to out?  Where out's dims were declared, not inferred, it may not. */
static bool spreads(const rl_tensor *out, const rl_tensor *t) {
    if (t->rank > out->rank || (t->n == 0 && out->n)) return false;
    for (uint32_t k = 0; k < t->rank; k++)
        if (t->dim[k] != 1 && t->dim[k] != out->dim[out->rank - t->rank + k]) return false;
    return true;
}

/* Where element i of `out` lies in `in`, which broadcasts to it. */
static uint32_t broadcast_index(const rl_tensor *out, const rl_tensor *in, uint32_t i) {
    uint32_t at = 0, step = 1;
    for (uint32_t k = out->rank, j = in->rank; j-- > 0 && k-- > 0;) {
        uint32_t d = (uint32_t)out->dim[k], x = i % d;
        i /= d;
        if (in->dim[j] != 1) at += x * step;
        step *= (uint32_t)in->dim[j];
    }
    return at;
}

static uint32_t stride_of(const rl_tensor *t, uint32_t axis) {
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

static bool fold_copy(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
    (void)arg;
    if (port || !load(s, 0, &x) || x.n != out->n || x.dtype != out->dtype) return false;
    out->cell = x.cell;
    return true;
}

static bool fold_cast(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
    (void)arg, (void)port;
    if (!load(s, 0, &x) || x.n != out->n) return false;
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = convert(s, x.cell[i], x.dtype, out->dtype);
    return true;
}

static bool fold_unary(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
    (void)port;
    if (!load(s, 0, &x) || x.n != out->n || !computes(x.dtype)) return false;
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = rounded(apply(s, (unary)arg, x.cell[i], !is_float(out->dtype)), out->dtype);
    return true;
}

/* Sum, Min, Max have any number of inputs. */
static bool fold_binary(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x, y;
    (void)port;
    if (s->n->nin == 0 || !load(s, 0, &x) || !computes(x.dtype) || !spreads(out, &x)) return false;
    if (s->n->nin > 2 && is_float(x.dtype) && arg == ADD) return false; /* the order of the sum is not fixed */
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = x.cell[broadcast_index(out, &x, i)];
    for (uint32_t k = 1; k < s->n->nin; k++) {
        if (!load(s, k, &y) || y.dtype != x.dtype || !spreads(out, &y)) return false;
        for (uint32_t i = 0; i < out->n; i++)
            out->cell[i] = rounded(combine(s, (binary)arg, out->cell[i], y.cell[broadcast_index(out, &y, i)], x.dtype), x.dtype);
    }
    return true;
}

static bool same_cell(cell a, cell b) {
    if (a.kind != b.kind || a.kind == CELL_NONE) return false;
    return a.kind == CELL_FLOAT ? a.f == b.f && signbit(a.f) == signbit(b.f) : a.num == b.num && a.sym == b.sym;
}

static bool fold_where(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor c, x, y;
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

static bool fold_expand(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
    (void)arg, (void)port;
    if (!load(s, 0, &x) || !spreads(out, &x)) return false;
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = x.cell[broadcast_index(out, &x, i)];
    return true;
}

static bool fold_tile(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
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

static bool fold_transpose(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
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

static bool fold_concat(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    uint32_t axis, from = 0;
    (void)arg, (void)port;
    if (!axis_in(rl_attr_int(s->n, "axis", 1), out->rank, &axis)) return false;
    uint32_t inner = stride_of(out, axis), row = inner * (uint32_t)out->dim[axis];
    for (uint32_t k = 0; k < s->n->nin; k++) {
        const rl_valinfo *v = input(s, k);
        rl_tensor x;
        uint32_t n;
        if (!v || v->rank != out->rank || !count(v->rank, v->dim, &n)) return false;
        uint32_t part = inner * (uint32_t)v->dim[axis];
        if (part > row - from || (n && (!part || n % part || n / part * row > out->n))) return false; /* a declared size was wrong */
        if (load(s, k, &x))
            for (uint32_t i = 0; i < x.n; i++) out->cell[i / part * row + from + i % part] = x.cell[i];
        from += part;
    }
    return from == row;
}

static bool fold_split(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
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
    rl_tensor t;
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

static bool fold_slice(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
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

static bool fold_gather(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x, at;
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

static bool fold_shape(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    const rl_valinfo *x = input(s, 0);
    (void)arg, (void)port;
    if (!x || x->rank == RL_NORANK) return false;
    int64_t a = rl_attr_int(s->n, "start", 0);
    if (a < 0) a += x->rank;
    a = RL_MAX(0, RL_MIN(a, x->rank));
    for (uint32_t i = 0; i < out->n && a + i < x->rank; i++) {
        rl_dim d = x->dim[a + i];
        out->cell[i] = rl_dim_known(d) ? of_int(d) : symbol(d, 1);
    }
    return true;
}

static bool fold_size(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    const rl_valinfo *x = input(s, 0);
    (void)arg, (void)port;
    if (!x || x->rank == RL_NORANK || out->n != 1) return false;
    out->cell[0] = to_cell(whole(rl_shape_prod(s, x->dim, x->rank)), true);
    return true;
}

static bool fold_fill(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    const rl_attr *a = rl_attr_find(s->n, "value");
    uint32_t bits = rl_dtype_bits(out->dtype);
    cell c = of_float(0);
    (void)arg, (void)port;
    if (a) {
        if (!a->tensor || !a->tensor->data || bits < 8 || bits > 64 || a->tensor->nbyte != bits / 8) return false;
        c = decode(out->dtype, a->tensor->data);
    }
    for (uint32_t i = 0; i < out->n; i++) out->cell[i] = c;
    return true;
}

static bool fold_range(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor a, d;
    (void)arg, (void)port;
    if (is_float(out->dtype) || !load(s, 0, &a) || a.n != 1) return false;
    cell step = of_int(1);
    if (input(s, 2)) {
        if (!load(s, 2, &d) || d.n != 1) return false;
        step = d.cell[0];
    }
    for (uint32_t i = 0; i < out->n; i++)
        out->cell[i] = combine(s, ADD, a.cell[0], combine(s, MUL, step, of_int(i), out->dtype), out->dtype);
    return true;
}

/* Integers over the axes given: op over all elements that meet in one of out's. */
static bool fold_reduce(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
    const int64_t *axes = NULL;
    uint32_t n = 0, a;
    (void)port;
    if (!load(s, 0, &x) || is_float(x.dtype) || !computes(x.dtype) || x.n == 0) return false;
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
        out->cell[at] = begun[at] ? combine(s, (binary)arg, out->cell[at], x.cell[i], x.dtype) : x.cell[i];
        begun[at] = true;
    }
    return true;
}

static bool fold_non_zero(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
    rl_tensor x;
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
static bool fold_constant(rl_shaper *s, int arg, uint32_t port, rl_tensor *out) {
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
    ROW(Or, fold_binary, OR),
    ROW(Range, fold_range, 0),
    ROW(Reciprocal, fold_unary, RECIPROCAL),
    ROW(ReduceMax, fold_reduce, MAX),
    ROW(ReduceMin, fold_reduce, MIN),
    ROW(ReduceProd, fold_reduce, MUL),
    ROW(ReduceSum, fold_reduce, ADD),
    ROW(Reshape, fold_copy, 0),
    ROW(Round, fold_unary, ROUND),
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

/* A constant of any size that only gets another shape: the same bytes. */
static bool share_constant(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_const *c = x ? constant_of(s, x) : NULL;
    rl_value y = rl_out(s->n, 0);
    if (!c || !rl_has(y)) return false;
    rl_valinfo *v = rl_val(s->g, y);
    uint32_t small;
    if (v->rank == RL_NORANK || v->dtype != c->dtype || (count(v->rank, v->dim, &small) && small <= MAXELEM)) return false;
    rl_dim n = rl_shape_prod(s, c->dim, c->rank), m = rl_shape_prod(s, v->dim, v->rank);
    if (!rl_dim_known(n) || n != m) return false;
    rl_const *p = rl_new(&s->g->mem, rl_const, 1);
    *p = (rl_const){c->dtype, v->rank, v->dim, c->data, c->nbyte};
    v->data = p;
    return true;
}

static bool is_known(const rl_shaper *s, uint32_t i) {
    const rl_valinfo *x = input(s, i);
    return x && (x->elem || constant_of(s, x));
}

/* Whether enough of the inputs may be known: of most ops the first must be. */
static bool may_fold(const rl_shaper *s, fold_fn *fn) {
    if (fn == fold_constant || fn == fold_fill || fn == fold_shape || fn == fold_size || is_known(s, 0)) return true;
    if (fn != fold_concat && fn != fold_where) return false;
    for (uint32_t i = 1; i < s->n->nin; i++)
        if (is_known(s, i)) return true;
    return false;
}

/* The nodes of a real model mostly compute on tensors that are large or not known: those return at once. */
void rl_shape_fold(rl_shaper *s) {
    fold_fn *fn = folds[s->n->op].fn;
    if (!fn || !may_fold(s, fn) || (fn == fold_copy && share_constant(s))) return;
    for (uint32_t port = 0; port < s->n->nout; port++) {
        if (!rl_has(s->n->out[port]) || (port && fn != fold_split)) continue;
        const rl_valinfo *v = rl_val(s->g, s->n->out[port]);
        rl_tensor out = {.dtype = v->dtype, .rank = v->rank, .dim = v->dim};
        if (v->dtype == RL_UNDEF || !count(v->rank, v->dim, &out.n)) continue;
        out.cell = rl_new(s->tmp, cell, out.n);
        if (fn(s, folds[s->n->op].arg, port, &out)) rl_shape_store(s, port, &out);
    }
}
