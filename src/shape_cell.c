/* Cells: see shape_cell.h. */
#include "shape_cell.h"
#include "text.h"

#include <math.h>
#include <string.h>

typedef rl_cell cell;

static const cell none = {.kind = CELL_NONE};

/* ---- reading and writing ---- */

cell rl_cell_decode(rl_dtype t, const char *p) {
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
    case CELL_FLOAT: return rl_dtype_is_c_float(t) && !isnan(c.f) ? c : none;
    case CELL_SYM: return rl_dtype_is_c_float(t) || (c.num == 1 && (t == RL_I64 || t == RL_I32 || t == RL_U64 || t == RL_U32)) ? c : none;
    default: return c;
    }
}

bool rl_cell_count(uint32_t rank, const rl_dim *dim, uint32_t *n) {
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

const rl_const *rl_cell_constant(const rl_shaper *s, const rl_valinfo *v) {
    const rl_graph *top = s->g;
    while (top->parent) top = top->parent;
    if (!v->data || !v->data->data || (v->is_input && v->is_init && top->ir_version >= 4)) return NULL;
    return v->data;
}

static cell of_elem(const rl_elem *e) {
    if (e->known) return e->den == 1 ? of_int(e->num) : none;
    return e->sym ? symbol(e->sym, e->den) : none;
}

bool rl_shape_load(const rl_shaper *s, const rl_valinfo *v, rl_cells *t) {
    const rl_const *c = rl_cell_constant(s, v);
    uint32_t n, bits;
    if ((!c && !v->elem) || !rl_cell_count(v->rank, v->dim, &n)) return false;
    *t = (rl_cells){v->dtype, v->rank, v->dim, n, rl_new(s->tmp, cell, n)};
    if (c) {
        bits = rl_dtype_bits(c->dtype);
        if (c->dtype != v->dtype || bits < 8 || bits > 64 || c->nbyte != (size_t)n * (bits / 8)) return false;
        for (uint32_t i = 0; i < n; i++) t->cell[i] = rl_cell_decode(c->dtype, (const char *)c->data + (size_t)i * (bits / 8));
        return true;
    }
    if (v->nelem != n) return false;
    for (uint32_t i = 0; i < n; i++) {
        t->cell[i] = of_elem(&v->elem[i]);
        if (rl_dtype_is_c_float(v->dtype) && t->cell[i].kind == CELL_INT) t->cell[i] = of_float((double)t->cell[i].num);
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

static void store_data(const rl_shaper *s, rl_valinfo *v, const rl_cells *t) {
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

/* As the sizes of tensors are written (rl_shape_set_type). */
static rl_dim normal(const rl_graph *g, rl_dim d) {
    rl_dim now = g->alike ? rl_dim_normal(g->ctx, &g->alike->rules, d) : d;
    return rl_dim_known(now) ? d : now;
}

void rl_shape_store(rl_shaper *s, uint32_t port, rl_cells *t) {
    rl_value id = rl_out(s->n, port);
    uint32_t n, known = 0, some = 0;
    if (!rl_has(id)) return;
    rl_valinfo *v = rl_val(s->g, id);
    if (v->dtype != t->dtype || !rl_cell_count(v->rank, v->dim, &n) || n != t->n) return;
    for (uint32_t i = 0; i < n; i++) {
        t->cell[i] = settle(t->dtype, t->cell[i]);
        if (t->cell[i].kind == CELL_SYM) t->cell[i].sym = normal(s->g, t->cell[i].sym);
        known += t->cell[i].kind != CELL_NONE && t->cell[i].kind != CELL_SYM;
        some += t->cell[i].kind != CELL_NONE;
    }
    t->rank = v->rank;
    if (known == n) store_data(s, v, t);
    if ((known == n && (rl_dtype_is_c_float(t->dtype) || !computes(t->dtype))) || (!some && n) || n > MAXELEM) return;
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

/* For certain: of 512-N and N-3 it hangs on N. */
static bool not_negative(const rl_shaper *s, cell c) {
    return c.kind == CELL_SYM && rl_dim_never_negative(s->ctx, c.sym);
}

/* Is rounding towards zero rounding down?  It is of H-3 where a window of 3 finds room. */
static bool rounds_down(const rl_shaper *s, cell c) {
    return c.kind == CELL_SYM && rl_dim_guess(s->ctx, c.sym, 1000) > 0;
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
    if (y.known && y.den == 1 && x.den == 1 && not_negative(s, a))
        return y.num < 0 || rl_shape_least(s, x.sym) > y.num ? 1 : 2;
    if (y.known || x.den != 1 || y.den != 1) return 2;
    ratio d = sub_whole(s, x, y);
    return d.ok && d.known ? (d.num < 0 ? -1 : d.num > 0) : 2;
}

/* a >= b where the two may be equal. */
static bool not_less(const rl_shaper *s, cell a, cell b) {
    int o = order(s, a, b);
    return o == 0 || o == 1 || (not_negative(s, a) && b.kind == CELL_INT && a.num == 1 && rl_shape_least(s, a.sym) >= b.num);
}

static bool is_count(const rl_shaper *s, cell c) {
    return c.kind == CELL_INT ? c.num >= 0 : not_negative(s, c);
}

static cell extreme(const rl_shaper *s, binary op, cell a, cell b) {
    if (a.kind == CELL_FLOAT && b.kind == CELL_FLOAT) return of_float(op == MIN ? fmin(a.f, b.f) : fmax(a.f, b.f));
    if (not_less(s, a, b)) return op == MIN ? b : a;
    if (not_less(s, b, a)) return op == MIN ? a : b;
    rl_dim x = size_of(s, a), y = size_of(s, b), d;
    if (x == UNKNOWN || y == UNKNOWN) return none;
    if (op == MIN) return is_count(s, a) && is_count(s, b) ? symbol(rl_shape_min(s, x, y), 1) : none;
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

/* Where it is whole: runtimes round other powers as they like. */
static cell power(double a, double b) {
    double r = b == 0.5 ? sqrt(a) : pow(a, b);
    bool exact = a == floor(a) && r == floor(r) && fabs(r) <= 1 << 24 && (b == 0.5 ? r * r == a : b == floor(b) && b >= 0);
    return exact ? of_float(r) : none;
}

static cell floats(binary op, double a, double b) {
    switch (op) {
    case POW: return power(a, b);
    case ADD: return of_float(a + b);
    case SUB: return of_float(a - b);
    case MUL: return of_float(a * b);
    case DIV: return of_float(a / b);
    default: return none;
    }
}

cell rl_cell_combine(const rl_shaper *s, binary op, cell a, cell b, rl_dtype t) {
    if (op >= AND) return logical(op, a, b);
    if (op == MUL && ((a.kind == CELL_INT && a.num == 0) || (b.kind == CELL_INT && b.num == 0))) return of_int(0);
    if (a.kind == CELL_NONE || b.kind == CELL_NONE || a.kind == CELL_BITS || b.kind == CELL_BITS) return none;
    if (op >= EQ) return compare(s, op, a, b);
    if (op >= MIN) return extreme(s, op, a, b);
    if (op == POW && (a.kind != CELL_FLOAT || b.kind != CELL_FLOAT)) return none;
    if (a.kind == CELL_INT && b.kind == CELL_INT) return integers(op, a.num, b.num, rl_attr_int(s->n, "fmod", 0) != 0);
    if (a.kind == CELL_FLOAT && b.kind == CELL_FLOAT) return floats(op, a.f, b.f);
    ratio x = ratio_of(a), y = ratio_of(b), r;
    bool integer = !rl_dtype_is_c_float(t);
    if (!x.ok || !y.ok || (op >= DIV && a.kind == CELL_SYM && !rounds_down(s, a))) return none;
    if (op <= SUB) r = sum(s, op, x, y);
    else if (op == MUL) r = product(s, x, y);
    else r = op == DIV ? quotient(s, x, y, integer) : remainder_of(s, x, y);
    return to_cell(r, integer);
}

cell rl_cell_rounded(cell c, rl_dtype t) {
    if (c.kind == CELL_FLOAT && t == RL_F32) c.f = (double)(float)c.f;
    return c;
}


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

cell rl_cell_apply(const rl_shaper *s, unary op, cell c, bool integer) {
    if (c.kind == CELL_FLOAT) return apply_float(op, c.f);
    if (c.kind == CELL_INT && op == NOT) return of_int(!c.num);
    if (c.kind == CELL_INT && op == SIGN) return of_int((c.num > 0) - (c.num < 0));
    if (c.kind == CELL_INT && (op == NEG || (op == ABS && c.num < 0))) return integers(SUB, 0, c.num, false);
    if (c.kind == CELL_INT) return op == ABS ? c : none;
    if (c.kind != CELL_SYM) return none;
    if (op == NEG) return to_cell(over(s, scale(s, ratio_of(c), -1), c.num), integer);
    switch (op) {
    case ABS: return not_negative(s, c) ? c : none;
    case FLOOR: return to_cell(whole(rl_shape_floordiv(s, c.sym, c.num)), integer);
    case CEIL: return to_cell(whole(rl_shape_ceildiv(s, c.sym, c.num)), integer);
    default: return none;
    }
}

/* Of a constant of half the size, as converters to it write the factors of a Resize. */
static cell widened(cell c, rl_dtype from) {
    float f = from == RL_F16 ? rl_half_float((uint16_t)c.num) : rl_bf16_float((uint16_t)c.num);
    return isnan(f) ? none : of_float((double)f);
}

cell rl_cell_convert(const rl_shaper *s, cell c, rl_dtype from, rl_dtype to) {
    if (from == to) return c;
    if (c.kind == CELL_BITS && (from == RL_F16 || from == RL_BF16)) c = widened(c, from), from = RL_F32;
    if (c.kind == CELL_BITS || !computes(from) || !computes(to)) return none;
    if (to == RL_BOOL) {
        if (c.kind == CELL_SYM) return rl_shape_least(s, c.sym) > 0 ? of_int(1) : none;
        return c.kind == CELL_NONE ? c : of_int(c.kind == CELL_INT ? c.num != 0 : c.f != 0);
    }
    if (rl_dtype_is_c_float(to)) {
        if (c.kind == CELL_INT) return of_float(to == RL_F32 ? (double)(float)c.num : (double)c.num);
        return rl_cell_rounded(c, to);
    }
    if (c.kind == CELL_FLOAT) return fabs(c.f) < 9e18 ? of_int((int64_t)c.f) : none;
    if (c.kind == CELL_SYM && c.num > 1) return rounds_down(s, c) ? to_cell(whole(rl_shape_floordiv(s, c.sym, c.num)), true) : none;
    return c;
}
