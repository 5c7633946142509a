/* Tensors of the evaluator, walks over them, and parameters of ops: see eval_internal.h. */
#include "eval_internal.h"

#include <string.h>

#include "move.h"

/* ---- tensors ---- */

const rl_const *rl_eval_constant(const rl_graph *g, rl_value v) {
    if (!rl_has(v)) return NULL;
    const rl_valinfo *x = rl_val(g, v);
    if (!x->data || !x->data->data || (x->is_input && g->ir_version >= 4)) return NULL;
    return x->data;
}

bool rl_ev_computes(rl_dtype t) {
    return rl_dtype_is_c_float(t) || t == RL_BOOL || (t >= RL_U8 && t <= RL_I64);
}

bool rl_ev_spend(evaluator *e, uint64_t work) {
    if (work > e->limit->work) return !(e->limit->spent = true);
    e->limit->work -= work;
    return true;
}

bool rl_ev_count(uint32_t rank, const int64_t *dim, int64_t *n) {
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
    if (c->rank > MAXRANK || bits < 8 || bits > 64 || !rl_ev_count(c->rank, c->dim, &t->n)) return false;
    *t = (tensor){.given = true, .dtype = c->dtype, .rank = c->rank, .n = t->n, .size = bits / 8};
    for (uint32_t k = 0; k < c->rank; k++) t->dim[k] = c->dim[k];
    t->raw = (char *)(uintptr_t)c->data; /* only read */
    return c->nbyte == (size_t)t->n * t->size;
}

bool rl_ev_open_inputs(evaluator *e) {
    e->in = rl_new(&e->tmp, tensor, e->n->nin);
    for (uint32_t i = 0; i < e->n->nin; i++) {
        if (!rl_has(e->n->in[i]) || rl_gives_type(e->n, i)) continue;
        const rl_const *c = rl_eval_constant(e->g, e->n->in[i]);
        const rl_valinfo *v = rl_val(e->g, e->n->in[i]);
        if (!c || c->dtype != v->dtype || c->rank != v->rank || !open_input(c, &e->in[i])) return false;
        e->nbyte += c->nbyte;
    }
    return true;
}

tensor *rl_ev_input(const evaluator *e, uint32_t i) {
    return i < e->n->nin && e->in[i].given ? &e->in[i] : NULL;
}

static bool is_as_inferred(const rl_valinfo *v, rl_dtype t, uint32_t rank, const int64_t *dim) {
    if (v->dtype != t || v->rank != rank) return false;
    for (uint32_t k = 0; k < rank; k++)
        if (v->dim[k] != dim[k]) return false;
    return true;
}

bool rl_ev_make_raw(evaluator *e, uint32_t port, tensor *out, rl_dtype t, uint32_t rank, const int64_t *dim) {
    int64_t n;
    size_t size = rl_dtype_bits(t) / 8;
    if (rank > MAXRANK || !size || size > 8 || !rl_ev_count(rank, dim, &n)) return false;
    if (!is_as_inferred(rl_val(e->g, e->n->out[port]), t, rank, dim)) return false;
    size_t nbyte = (size_t)n * size;
    if (nbyte > e->limit->one || (nbyte > e->nbyte && nbyte > e->limit->grown)) return false;
    if (nbyte > e->limit->all) return !(e->limit->spent = true);
    if (!rl_ev_spend(e, (uint64_t)n * 2 + 1)) return false;
    e->limit->all -= nbyte;
    *out = (tensor){.given = true, .dtype = t, .rank = rank, .n = n, .size = size, .raw = rl_alloc(&e->g->mem, nbyte + 1)};
    for (uint32_t k = 0; k < rank; k++) out->dim[k] = dim[k];
    return true;
}

bool rl_ev_make(evaluator *e, uint32_t port, tensor *out, rl_dtype t, uint32_t rank, const int64_t *dim) {
    if (!rl_ev_make_raw(e, port, out, t, rank, dim)) return false;
    if (rl_dtype_is_c_float(t)) out->f = rl_new(&e->tmp, double, out->n);
    else if (rl_ev_computes(t)) out->i = rl_new(&e->tmp, int64_t, out->n);
    return true;
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

bool rl_ev_load(evaluator *e, tensor *t) {
    if (!t || !rl_ev_computes(t->dtype)) return false;
    if (t->f || t->i) return true;
    if (t->n > MAXLOAD - e->loaded || !rl_ev_spend(e, (uint64_t)t->n)) return false;
    e->loaded += t->n;
    if (rl_dtype_is_c_float(t->dtype)) t->f = rl_new(&e->tmp, double, t->n + 1);
    else t->i = rl_new(&e->tmp, int64_t, t->n + 1);
    for (int64_t k = 0; k < t->n; k++) {
        const char *p = t->raw + (size_t)k * t->size;
        if (t->f) t->f[k] = load_float(t->dtype, p);
        else t->i[k] = load_int(t->dtype, p);
    }
    return true;
}

bool rl_ev_load_as(evaluator *e, uint32_t i, rl_dtype t) {
    tensor *x = rl_ev_input(e, i);
    return x && x->dtype == t && rl_ev_load(e, x);
}

bool rl_ev_store(tensor *t) {
    for (int64_t k = 0; k < t->n; k++) {
        char *p = t->raw + (size_t)k * t->size;
        float f = t->dtype == RL_F32 ? (float)t->f[k] : 0;
        if (t->dtype == RL_F32) memcpy(p, &f, 4);
        else if (t->f) memcpy(p, &t->f[k], 8);
        else memcpy(p, &t->i[k], t->size); /* little-endian: the low bytes */
    }
    return true;
}

double rl_ev_rounded(rl_dtype t, double x) {
    return t == RL_F32 ? (double)(float)x : x;
}

/* ---- walks ---- */

void rl_ev_advance(walk *w) {
    for (uint32_t k = w->rank; k-- > 0;) {
        for (int j = 0; j < 3; j++) w->off[j] += w->step[j][k];
        if (++w->at[k] < w->dim[k]) return;
        for (int j = 0; j < 3; j++) w->off[j] -= w->step[j][k] * w->dim[k];
        w->at[k] = 0;
    }
}

void rl_ev_add_dim(walk *w, int64_t dim, int64_t step0, int64_t step1) {
    w->dim[w->rank] = dim;
    w->step[0][w->rank] = step0;
    w->step[1][w->rank++] = step1;
}

int64_t rl_ev_stride(const tensor *t, uint32_t axis) {
    int64_t n = 1;
    for (uint32_t k = axis + 1; k < t->rank; k++) n *= t->dim[k];
    return n;
}

void rl_ev_copy(const walk *w, char *to, const char *from, size_t size) {
    rl_nest b = {.to = to, .from = from, .to_at = w->off[0], .from_at = w->off[1], .bits = 8 * (uint32_t)size, .n = w->rank};
    for (uint32_t k = 0; k < w->rank; k++) b.loop[k] = (rl_loop){w->dim[k], w->step[0][k], w->step[1][k]};
    rl_nest_move(&b, NULL);
}

void rl_ev_spread(walk *w, int j, const tensor *t) {
    for (uint32_t k = t->rank, o = w->rank; k-- > 0;) w->step[j][--o] = t->dim[k] == 1 ? 0 : rl_ev_stride(t, k);
}

bool rl_ev_broadcast(uint32_t *rank, int64_t *dim, uint32_t trank, const int64_t *tdim) {
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

walk rl_ev_walk_over(const tensor *out) {
    walk w = {.rank = out->rank};
    memcpy(w.dim, out->dim, out->rank * sizeof *out->dim);
    return w;
}

/* ---- parameters ---- */

bool rl_ev_axis_in(int64_t axis, uint32_t rank, uint32_t *a) {
    if (axis < 0) axis += rank;
    *a = (uint32_t)axis;
    return axis >= 0 && axis < rank;
}

bool rl_ev_ints(evaluator *e, const char *name, uint32_t slot, const int64_t **p, uint32_t *n) {
    const rl_attr *a = name ? rl_attr_find(e->n, name) : NULL;
    tensor *t = slot ? rl_ev_input(e, slot) : NULL;
    *p = NULL;
    *n = 0;
    if (t) {
        if ((t->dtype != RL_I64 && t->dtype != RL_I32) || t->n > 4096 || !rl_ev_load(e, t)) return false;
        *p = t->i;
        *n = (uint32_t)t->n;
    } else if (a) {
        if (a->kind != RL_ATTR_INTS) return false;
        *p = a->ints ? a->ints : rl_new(&e->tmp, int64_t, 1);
        *n = a->n;
    }
    return true;
}

bool rl_ev_shape_input(evaluator *e, uint32_t slot, uint32_t *rank, const int64_t **dim) {
    tensor *t = rl_ev_input(e, slot);
    if (!t || t->dtype != RL_I64 || t->rank != 1 || t->n > MAXRANK || !rl_ev_load(e, t)) return false;
    *rank = (uint32_t)t->n;
    *dim = t->i;
    return true;
}

bool rl_ev_scalar(evaluator *e, uint32_t slot, int64_t dflt, int64_t *x) {
    tensor *t = rl_ev_input(e, slot);
    *x = dflt;
    if (!t) return true;
    if (t->n != 1 || (t->dtype != RL_I64 && t->dtype != RL_I32) || !rl_ev_load(e, t)) return false;
    *x = t->i[0];
    return true;
}
