/* Single elements, and sorting: see element.h. */
#include "element.h"

#include <math.h>
#include <string.h>

void rl_put_element(const rl_tensor *to, int64_t at, const rl_tensor *from, int64_t k) {
    uint32_t bits = rl_elem_bits(to->dtype);
    char *p = to->mem->p;
    const char *q = from->mem->p;
    switch (bits) {
    case 8: p[at] = q[k]; break;
    case 16: memcpy(p + at * 2, q + k * 2, 2); break;
    case 32: memcpy(p + at * 4, q + k * 4, 4); break;
    case 64: memcpy(p + at * 8, q + k * 8, 8); break;
    case 128: memcpy(p + at * 16, q + k * 16, 16); break;
    default: rl_set_bits(p, at, bits, rl_get_bits(q, k, bits)); break;
    }
}

/* ---- combining ---- */

static double combine_floats(rl_combine how, double a, double b) {
    if (how == RL_ADD) return a + b;
    if (how == RL_MUL) return a * b;
    if (isnan(a) || isnan(b)) return NAN;
    return (how == RL_LEAST) == (b < a) ? b : a;
}

/* Sums and products wrap: the same bits for signed and unsigned. */
static uint64_t combine_integers(rl_combine how, uint64_t a, uint64_t b, bool is_signed) {
    if (how == RL_ADD) return a + b;
    if (how == RL_MUL) return a * b;
    bool less = is_signed ? (int64_t)b < (int64_t)a : b < a;
    return (how == RL_LEAST) == less ? b : a;
}

static void load(const rl_tensor *t, int64_t at, rl_dtype wide, void *x) {
    if (rl_converts(t->dtype)) {
        rl_convert_run((rl_run){wide, x, 0, 1}, (rl_run){t->dtype, t->mem->p, at, 1}, 1, true);
        return;
    }
    t->mem->rt->no_number = true;
    memset(x, 0, rl_dtype_bits(wide) / 8);
}

static void store(const rl_tensor *t, int64_t at, rl_dtype wide, void *x) {
    if (!rl_converts(t->dtype)) t->mem->rt->no_number = true;
    else rl_convert_run((rl_run){t->dtype, t->mem->p, at, 1}, (rl_run){wide, x, 0, 1}, 1, true);
}

void rl_combine_element(rl_combine how, const rl_tensor *to, int64_t at, const rl_tensor *from, int64_t k) {
    if (how == RL_PUT) {
        rl_put_element(to, at, from, k);
        return;
    }
    if (rl_is_float(to->dtype)) {
        double a, b;
        load(to, at, RL_F64, &a);
        load(from, k, RL_F64, &b);
        a = combine_floats(how, a, b);
        store(to, at, RL_F64, &a);
        return;
    }
    rl_dtype wide = to->dtype == RL_U64 ? RL_U64 : RL_I64;
    uint64_t a, b;
    load(to, at, wide, &a);
    load(from, k, wide, &b);
    a = combine_integers(how, a, b, wide == RL_I64);
    store(to, at, wide, &a);
}

/* ---- places that an index names ---- */

/* A line: the elements of data at the places along the axis, which is `size` long, and those of other, `beside` the first of them. */
typedef struct {
    const rl_tensor *data, *other;
    const int64_t *place;
    int64_t n, size, line, stride, along, beside, step; /* stride: of the axis; along, step: from one to the next in data and in other */
} indexed;

static inline int64_t place_in(const indexed *m, int64_t k) {
    int64_t to = m->place[k];
    return m->line + (to < 0 ? to + m->size : to) * m->stride + k * m->along;
}

/* Is there one that names no place? By the first bit, without a branch for each. */
static bool leaves(const indexed *m) {
    uint64_t outside = 0, size = (uint64_t)m->size;
    for (int64_t k = 0; k < m->n; k++) outside |= ((uint64_t)m->place[k] + size) | (size - 1 - (uint64_t)m->place[k]);
    return outside >> 63;
}

#define COPY(bits)                                                                                                   \
    case bits: {                                                                                                     \
        uint##bits##_t *p = m.data->mem->p, *q = (uint##bits##_t *)m.other->mem->p + m.beside;                       \
        if (into)                                                                                                    \
            for (int64_t k = 0; k < m.n; k++) p[place_in(&m, k)] = q[k * m.step];                                    \
        else                                                                                                         \
            for (int64_t k = 0; k < m.n; k++) q[k * m.step] = p[place_in(&m, k)];                                    \
        break;                                                                                                       \
    }

static void copy_indexed(indexed m, bool into) {
    switch (rl_elem_bits(m.data->dtype)) {
    COPY(8)
    COPY(16)
    COPY(32)
    COPY(64)
    default:
        for (int64_t k = 0; k < m.n; k++) {
            int64_t beside = m.beside + k * m.step;
            if (into) rl_put_element(m.data, place_in(&m, k), m.other, beside);
            else rl_put_element(m.other, beside, m.data, place_in(&m, k));
        }
    }
}

#define COMBINE(T)                                                                                                   \
    {                                                                                                                \
        T *p = m.data->mem->p;                                                                                       \
        const T *q = (const T *)m.other->mem->p + m.beside;                                                          \
        for (int64_t k = 0; k < m.n; k++) {                                                                          \
            int64_t at = place_in(&m, k);                                                                            \
            p[at] = (T)combine_floats(how, (double)p[at], (double)q[k * m.step]);                                    \
        }                                                                                                            \
    }

static void combine_indexed(indexed m, rl_combine how) {
    if (m.data->dtype == RL_F32) COMBINE(float)
    else if (m.data->dtype == RL_F64) COMBINE(double)
    else
        for (int64_t k = 0; k < m.n; k++) rl_combine_element(how, m.data, place_in(&m, k), m.other, m.beside + k * m.step);
}

rl_status rl_move_indexed(const rl_call *c, const rl_tensor *index, uint32_t axis, const rl_tensor *data, const rl_tensor *other, bool into, rl_combine how) {
    uint32_t last = index->rank - 1;
    int64_t at[RL_RANK] = {0}, n = rl_numel(index);
    indexed m = {data, other, rl_data(index), index->dim[last], data->dim[axis], 0, data->stride[axis], axis == last ? 0 : data->stride[last], 0, other->stride[last]};
    for (uint32_t i = 0; i < data->rank; i++)
        if (i != axis && index->dim[i] > data->dim[i]) return rl_call_fail(c, RL_EMODEL, "dim %u of the indices is larger than the data's", i);
    for (int64_t k = 0; k < n; k += m.n, m.place += m.n) {
        bool wrong = leaves(&m);
        for (int64_t j = 0; wrong && j < m.n; j++) {
            int64_t to = m.place[j];
            RL_TRY(rl_call_place(c, &to, m.size));
        }
        m.line = rl_place(data, at) - at[axis] * m.stride, m.beside = rl_place(other, at);
        if (how == RL_PUT) copy_indexed(m, into);
        else combine_indexed(m, how);
        rl_next_index(last, index->dim, at);
    }
    return RL_OK;
}

/* ---- sorting ---- */

static void merge(int64_t *to, const int64_t *x, int64_t nx, const int64_t *y, int64_t ny, rl_compare_fn *compare, const void *arg) {
    while (nx && ny) {
        bool right = compare(arg, *x, *y) > 0;
        *to++ = right ? *y : *x;
        if (right) y++, ny--;
        else x++, nx--;
    }
    if (nx) memcpy(to, x, (size_t)nx * sizeof *x);
    if (ny) memcpy(to, y, (size_t)ny * sizeof *y);
}

void rl_sort(rl_arena *tmp, int64_t *x, int64_t n, rl_compare_fn *compare, const void *arg) {
    if (n < 2) return;
    int64_t *from = x, *to = rl_new(tmp, int64_t, n);
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t mid = RL_MIN(i + width, n), end = RL_MIN(i + 2 * width, n);
            merge(to + i, from + i, mid - i, from + mid, end - mid, compare, arg);
        }
        int64_t *swap = from;
        from = to, to = swap;
    }
    if (from != x) memcpy(x, from, (size_t)n * sizeof *x);
}

/* ---- numbers from inputs ---- */

rl_status rl_call_place(const rl_call *c, int64_t *i, int64_t n) {
    if (*i < -n || *i >= n) return rl_call_fail(c, RL_EMODEL, "index %lld is out of range of %lld", (long long)*i, (long long)n);
    if (*i < 0) *i += n;
    return RL_OK;
}

rl_status rl_call_one(const rl_call *c, uint32_t i, const rl_tensor **t) {
    *t = rl_call_in(c, i);
    if (*t && ((*t)->kind != RL_TENSOR || rl_numel(*t) != 1)) return rl_call_fail(c, RL_EMODEL, "input %u is not one number", i);
    return RL_OK;
}

static rl_status one_number(rl_call *c, uint32_t i, rl_dtype t, const void **x) {
    const rl_tensor *y;
    RL_TRY(rl_call_one(c, i, &y));
    *x = y ? rl_data(rl_call_as(c, i, t)) : NULL;
    return RL_OK;
}

rl_status rl_call_int(rl_call *c, uint32_t i, int64_t dflt, int64_t *x) {
    const void *p;
    RL_TRY(one_number(c, i, RL_I64, &p));
    *x = p ? *(const int64_t *)p : dflt;
    return RL_OK;
}

rl_status rl_call_float(rl_call *c, uint32_t i, double dflt, double *x) {
    const void *p;
    RL_TRY(one_number(c, i, RL_F64, &p));
    *x = p ? *(const double *)p : dflt;
    return RL_OK;
}
