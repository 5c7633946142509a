/* See model.h: constants, and what nodes read. */
#include "model.h"

#include <string.h>

#include "../../src/text.h"

enum { INPUTS = 6 };

#define BIT(t) (1u << (t))
static const uint32_t without_sign = BIT(RL_U8) | BIT(RL_U16) | BIT(RL_U32) | BIT(RL_U64) | BIT(RL_BOOL);

/* ---- constants ---- */

static void put_number(rl_dtype t, void *p, size_t i, double x) {
    int64_t k = (int64_t)x;
    float f = (float)x;
    uint16_t h = t == RL_BF16 ? rl_float_bf16(f) : rl_float_half(f);
    uint32_t bits = rl_dtype_bits(t);
    uint8_t *to = (uint8_t *)p + i * bits / 8;
    if (bits < 8) *to = (uint8_t)(*to | ((uint64_t)k & ((1u << bits) - 1)) << (i * bits % 8));
    else if (t == RL_F32) memcpy(to, &f, 4);
    else if (t == RL_F64) memcpy(to, &x, 8);
    else if (t == RL_F16 || t == RL_BF16) memcpy(to, &h, 2);
    else memcpy(to, &k, bits / 8); /* little-endian */
}

/* A Constant node between the attributes of the node at work and that node. */
static rl_value add_constant(model *m, const rl_attr *a) {
    rl_attr keep[MODEL_ATTRS];
    uint32_t n = m->nattr;
    memcpy(keep, m->attr, sizeof keep);
    m->attr[0] = *a;
    m->nattr = 1;
    rl_value v = model_add_op(m, RL_OP_Constant, NULL, 0, 1);
    memcpy(m->attr, keep, sizeof keep);
    m->nattr = n;
    return v;
}

static rl_value constant_node(model *m, const rl_const *c) {
    rl_const *copy = rl_copy(&m->g->mem, c, sizeof *c);
    copy->dim = rl_copy(&m->g->mem, c->dim, c->rank * sizeof *c->dim);
    rl_attr a = {.name = rl_internz(m->ctx, "value"), .kind = RL_ATTR_TENSOR, .tensor = copy};
    return add_constant(m, &a);
}

static rl_value constant(model *m, const rl_const *c) {
    return m->as_nodes ? constant_node(m, c) : rl_graph_const(m->g, model_name(m), c->dtype, c->rank, c->dim, c->data, c->nbyte);
}

rl_value model_filled(model *m, rl_dtype t, uint32_t rank, const int64_t *dim, const double *x) {
    size_t n = 1;
    for (uint32_t i = 0; i < rank; i++) n *= (size_t)dim[i];
    size_t nbyte = (n * rl_dtype_bits(t) + 7) / 8;
    uint8_t *p = rl_alloc(&m->g->mem, nbyte + 8);
    for (size_t i = 0; i < n; i++) put_number(t, p, i, x[i]);
    return constant(m, &(rl_const){t, rank, dim, p, nbyte});
}

rl_value model_const(model *m, rl_dtype t, uint32_t rank, const int64_t *dim, int lo, int hi) {
    size_t n = 1;
    for (uint32_t i = 0; i < rank; i++) n *= (size_t)dim[i];
    double *x = rl_new(&m->g->mem, double, n);
    bool is_unsigned = (BIT(t) & without_sign) || t == RL_U4;
    if (is_unsigned && lo < 0) lo = 0;
    if (t == RL_BOOL) lo = 0, hi = 1;
    for (size_t i = 0; i < n; i++) x[i] = lo + (double)(model_number(m) % (uint64_t)(hi - lo + 1));
    return model_filled(m, t, rank, dim, x);
}

rl_value model_ints(model *m, uint32_t n, const int64_t *x) {
    int64_t dim = n;
    return constant(m, &(rl_const){RL_I64, 1, &dim, rl_copy(&m->g->mem, x, n * sizeof *x), n * sizeof *x});
}

rl_value model_scalar(model *m, rl_dtype t, double x) {
    return model_filled(m, t, 0, NULL, &x);
}

static rl_value constant_strings(model *m, uint32_t rank, const rl_dim *dim) {
    static const char *const word[] = {"a", "B b", "", "1", "-2.5", "\xc3\xa9t\xc3\xa9", "the cat"};
    const char *s[MODEL_LARGEST];
    uint32_t n = 1;
    for (uint32_t i = 0; i < rank; i++) n *= (uint32_t)dim[i];
    if (m->opset < 12 || rank > 1 || n > RL_LEN(s)) return RL_NOVALUE;
    for (uint32_t i = 0; i < n; i++) s[i] = word[model_number(m) % RL_LEN(word)];
    if (rank) model_strings(m, "value_strings", n, s);
    else model_string(m, "value_string", s[0]);
    const rl_attr a = m->attr[--m->nattr];
    return add_constant(m, &a);
}

/* ---- values ---- */

static bool fits(const rl_graph *g, const rl_valinfo *x, uint32_t types, uint32_t least, uint32_t most, int flags) {
    bool there = x->is_input || x->is_outer || x->def.i != RL_NONE;
    if (!there || x->dtype == RL_UNDEF || !(types & BIT(x->dtype)) || x->rank == RL_NORANK || x->rank < least || x->rank > most) return false;
    if ((flags & MODEL_MADE) && (x->def.i == RL_NONE || rl_nod(g, x->def)->op == RL_OP_Constant)) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dim[i] == 0 || ((flags & MODEL_SIZED) && !rl_dim_known(x->dim[i]))) return false;
    return true;
}

bool model_fits(const model *m, rl_value v, uint32_t types, uint32_t least, uint32_t most, int flags) {
    return fits(m->g, model_val(m, v), types, least, most, flags);
}

/* What stands in g for a value of `from`, a graph around it. */
static rl_value capture(rl_graph *g, const rl_graph *from, rl_value v) {
    if (g == from) return v;
    const rl_valinfo t = *rl_val(g->parent, capture(g->parent, from, v));
    rl_value here = rl_graph_value(g, t.name);
    rl_valinfo *x = rl_val(g, here);
    if (!x->is_outer) rl_push(&g->mem, g->outer, here);
    x = rl_val(g, here);
    x->is_outer = true;
    x->dtype = t.dtype, x->rank = t.rank, x->dim = t.dim, x->data = t.data, x->elem = t.elem, x->nelem = t.nelem;
    return here;
}

/* The k-th from the end of g's values that fit, around and around; RL_NOVALUE where none does. */
static rl_value choose(model *m, const rl_graph *g, uint32_t types, uint32_t least, uint32_t most, int flags) {
    uint32_t n = 0, k;
    for (uint32_t i = 0; i < g->nval; i++) n += fits(g, &g->val[i], types, least, most, flags);
    if (!n) return RL_NOVALUE;
    k = model_flip(m) ? model_pick(m, RL_MIN(n, 3u)) : model_pick(m, n);
    for (uint32_t i = g->nval; i-- > 0;)
        if (fits(g, &g->val[i], types, least, most, flags) && k-- == 0) return (rl_value){i};
    return RL_NOVALUE;
}

static const struct { const char *name; int64_t size; } symbols[] = {{"N", 2}, {"S", 3}, {"H", 4}, {"W", 6}};

int64_t model_size_of(rl_str symbol) {
    for (size_t i = 0; i < RL_LEN(symbols); i++)
        if (strcmp(symbols[i].name, symbol) == 0) return symbols[i].size;
    return 1;
}

rl_value model_source(model *m, rl_dtype t, uint32_t rank, const rl_dim *dim) {
    bool sized = true;
    for (uint32_t i = 0; i < rank; i++) sized &= rl_dim_known(dim[i]);
    bool only = t == RL_STRING || !sized; /* no constant can be that */
    bool is_input = !m->g->parent && (only || m->ninput == 0 || (m->ninput < INPUTS && model_pick(m, 4)));
    if (!is_input && t == RL_STRING) return constant_strings(m, rank, dim);
    if (!is_input && !sized) return RL_NOVALUE;
    if (!is_input) return model_const(m, t, rank, dim, -4, 4);
    rl_value v = rl_graph_value(m->g, model_name(m));
    rl_graph_set_type(m->g, v, t, rank, dim);
    model_val(m, v)->is_input = true;
    rl_push(&m->g->mem, m->g->input, v);
    m->ninput++;
    return v;
}

static rl_value new_source(model *m, uint32_t types, uint32_t least, uint32_t most, int flags) {
    static const uint8_t sizes[] = {2, 3, 4, 1, 2, 6, 8, 5, 3, 12};
    rl_dim dim[MODEL_RANK];
    rl_dtype t = model_dtype(m, types);
    uint32_t top = RL_MIN(most, 4u) < least ? least : RL_MIN(most, 4u);
    if (t == RL_STRING && m->g->parent) top = RL_MIN(top, RL_MAX(least, 1u));
    uint32_t rank = top - model_pick(m, top - least + 1);
    int64_t n = 1;
    for (uint32_t i = 0; i < rank; i++) {
        bool symbol = m->symbolic && !m->g->parent && !(flags & MODEL_SIZED) && model_pick(m, 3) == 0;
        uint32_t k = model_pick(m, symbol ? RL_LEN(symbols) : RL_LEN(sizes));
        dim[i] = symbol ? rl_dim_symbol(m->ctx, rl_internz(m->ctx, symbols[k].name)) : sizes[k];
        n *= symbol ? MODEL_GUESS : dim[i];
        if (n > MODEL_LARGEST / 4) dim[i] = 1;
    }
    return model_source(m, t, rank, dim);
}

rl_value model_take(model *m, uint32_t types, uint32_t least, uint32_t most, int flags) {
    rl_value v = RL_NOVALUE;
    uint32_t way = model_pick(m, 8);
    if (m->g->parent && way < 3) { /* from around */
        const rl_graph *from = m->g->parent;
        if (from->parent && model_flip(m)) from = from->parent;
        v = choose(m, from, types, least, most, flags & ~MODEL_MADE);
        if (rl_has(v)) return capture(m->g, from, v);
    }
    if (way < 7) v = choose(m, m->g, types, least, most, flags);
    return rl_has(v) ? v : new_source(m, types, least, most, flags & ~MODEL_MADE);
}

rl_dtype model_dtype(model *m, uint32_t types) {
    uint32_t n = (uint32_t)__builtin_popcount(types), k;
    if ((types & BIT(RL_F32)) && model_flip(m)) return RL_F32;
    k = model_pick(m, n);
    for (uint32_t t = 0; t < 32; t++)
        if ((types >> t & 1) && k-- == 0) return (rl_dtype)t;
    return RL_F32;
}

static bool same_dims(const rl_valinfo *a, const rl_valinfo *b) {
    return a->rank == b->rank && (!a->rank || memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0);
}

static bool broadcasts_to(const rl_valinfo *from, const rl_valinfo *to) {
    if (from->rank > to->rank) return false;
    for (uint32_t i = 0; i < from->rank; i++)
        if (from->dim[i] != 1 && from->dim[i] != to->dim[to->rank - from->rank + i]) return false;
    return true;
}

/* A value of x's type for which `test` holds, not always the same one, or x. */
static rl_value choose_beside(model *m, rl_value x, bool (*test)(const rl_valinfo *, const rl_valinfo *)) {
    const rl_graph *g = m->g;
    uint32_t start = model_pick(m, g->nval), most = model_val(m, x)->rank;
    for (uint32_t i = 0; i < g->nval; i++) {
        rl_value v = {(start + i) % g->nval};
        const rl_valinfo *y = rl_val(g, v);
        if (v.i != x.i && fits(g, y, BIT(rl_val(g, x)->dtype), 0, most, 0) && test(y, rl_val(g, x))) return v;
    }
    return x;
}

rl_value model_same(model *m, rl_value x) {
    return choose_beside(m, x, same_dims);
}

rl_value model_part(model *m, rl_dtype t, rl_value x, int lo, int hi) {
    int64_t dim[MODEL_RANK];
    uint32_t rank = model_val(m, x)->rank, k = model_pick(m, rank + 1);
    for (uint32_t i = k; i < rank; i++) {
        rl_dim d = model_dim(m, x, i);
        dim[i - k] = rl_dim_known(d) && model_pick(m, 4) ? d : 1;
    }
    return model_const(m, t, rank - k, dim, lo, hi);
}

rl_value model_like(model *m, rl_value x) {
    bool is_string = model_val(m, x)->dtype == RL_STRING;
    if (!is_string && model_pick(m, 3) == 0) return model_part(m, model_val(m, x)->dtype, x, -4, 4);
    return choose_beside(m, x, broadcasts_to);
}

bool model_known(const model *m, rl_value x, uint32_t i) {
    return rl_dim_known(model_dim(m, x, i));
}

bool model_known_from(const model *m, rl_value x, uint32_t i) {
    bool known = true;
    for (; i < model_val(m, x)->rank; i++) known &= model_known(m, x, i);
    return known;
}

uint32_t model_axis(model *m, rl_value x) {
    return model_pick(m, model_val(m, x)->rank);
}

int64_t model_signed(model *m, uint32_t axis, uint32_t rank) {
    return m->opset >= 11 && model_pick(m, 3) == 0 ? (int64_t)axis - (int64_t)rank : (int64_t)axis;
}
