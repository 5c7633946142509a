/* Resize and Upsample: axis by axis, by the plans of resize.h. */
#include <math.h>
#include <string.h>

#include "fast.h"
#include "resize.h"
#include "wide.h"

/* What one axis' pass works on: x[outer][in][inner] to y[outer][out][inner]. */
typedef struct {
    const rl_resize_axis *a;
    const void *x;
    void *y;
    int64_t inner, size; /* bytes of an element */
    double extrapolated;
    const void *fill;    /* the same in the tensor's own type */
} pass;

/* Row i of y[outer*out]: elements that lie together. */
#define BLEND(T)                                                                                                     \
    static void blend_##T(void *arg, int64_t from, int64_t to) {                                                     \
        const pass *p = arg;                                                                                         \
        const rl_resize_axis *a = p->a;                                                                              \
        for (int64_t i = from; i < to; i++) {                                                                        \
            const T *x = (const T *)p->x + i / a->out * a->in * p->inner;                                            \
            const int64_t *index = a->index + i % a->out * a->ntap;                                                  \
            const double *weight = a->weight + i % a->out * a->ntap;                                                 \
            T *y = (T *)p->y + i * p->inner;                                                                         \
            if (a->outside && a->outside[i % a->out]) {                                                              \
                for (int64_t j = 0; j < p->inner; j++) y[j] = (T)p->extrapolated;                                    \
                continue;                                                                                            \
            }                                                                                                        \
            const T *first = x + index[0] * p->inner, *next = x + index[1] * p->inner; /* blends have taps in pairs */    \
            T w0 = (T)weight[0], w1 = (T)weight[1];                                                                  \
            for (int64_t j = 0; j < p->inner; j++) y[j] = first[j] * w0 + next[j] * w1;                              \
            for (int64_t t = 2; t < a->ntap; t++) {                                                                  \
                T w = (T)weight[t];                                                                                  \
                const T *row = x + index[t] * p->inner;                                                              \
                for (int64_t j = 0; j < p->inner; j++) y[j] += row[j] * w;                                           \
            }                                                                                                        \
        }                                                                                                            \
    }
BLEND(float)
BLEND(double)

/* The same where the axis lies together itself, inner = 1: whole lines, y[outer]. */
#define BLEND_LINE(T)                                                                                                \
    static void blend_line_##T(void *arg, int64_t from, int64_t to) {                                                \
        const pass *p = arg;                                                                                         \
        const rl_resize_axis *a = p->a;                                                                              \
        for (int64_t i = from; i < to; i++) {                                                                        \
            const T *x = (const T *)p->x + i * a->in;                                                                \
            T *y = (T *)p->y + i * a->out;                                                                           \
            for (int64_t o = 0; o < a->out; o++) {                                                                   \
                const int64_t *index = a->index + o * a->ntap;                                                       \
                const double *weight = a->weight + o * a->ntap;                                                      \
                T sum = 0;                                                                                           \
                for (int64_t t = 0; t < a->ntap; t++) sum += x[index[t]] * (T)weight[t];                             \
                y[o] = a->outside && a->outside[o] ? (T)p->extrapolated : sum;                                       \
            }                                                                                                        \
        }                                                                                                            \
    }
BLEND_LINE(float)
BLEND_LINE(double)

/* The nearest element, whatever its type. */
static void pick(void *arg, int64_t from, int64_t to) {
    const pass *p = arg;
    const rl_resize_axis *a = p->a;
    int64_t row = p->inner * p->size;
    for (int64_t i = from; i < to; i++) {
        const char *x = (const char *)p->x + (i / a->out * a->in + a->index[i % a->out]) * row;
        char *y = (char *)p->y + i * row;
        if (a->outside && a->outside[i % a->out])
            for (int64_t j = 0; j < p->inner; j++) memcpy(y + j * p->size, p->fill, (size_t)p->size);
        else memcpy(y, x, (size_t)row);
    }
}

/* The same where the axis lies together itself. */
#define PICK_LINE(T)                                                                                                 \
    static void pick_line_##T(void *arg, int64_t from, int64_t to) {                                                 \
        const pass *p = arg;                                                                                         \
        const rl_resize_axis *a = p->a;                                                                              \
        for (int64_t i = from; i < to; i++) {                                                                        \
            const T *x = (const T *)p->x + i * a->in;                                                                \
            T *y = (T *)p->y + i * a->out;                                                                           \
            for (int64_t o = 0; o < a->out; o++) y[o] = a->outside && a->outside[o] ? *(const T *)p->fill : x[a->index[o]]; \
        }                                                                                                            \
    }
PICK_LINE(uint8_t)
PICK_LINE(uint16_t)
PICK_LINE(uint32_t)
PICK_LINE(uint64_t)

/* NULL: elements of this size have no lines. */
static rl_range_fn *pick_line_of(int64_t size) {
    return size == 1 ? pick_line_uint8_t : size == 2 ? pick_line_uint16_t : size == 4 ? pick_line_uint32_t : size == 8 ? pick_line_uint64_t : NULL;
}

/* The axes that change, in the order of least work: those that get smaller come first, and the slow ones, innermost, where there is least. */
static uint32_t order_axes(const rl_resize_axis *axis, uint32_t rank, uint32_t order[RL_RANK]) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (!axis[i].same && axis[i].out < axis[i].in) order[n++] = i;
    for (uint32_t i = rank; i-- > 0;)
        if (!axis[i].same && axis[i].out >= axis[i].in) order[n++] = i;
    return n;
}

static rl_status run_passes(rl_call *c, const rl_resize *r, const rl_resize_axis *axis, const rl_tensor *x, const rl_tensor *y) {
    rl_tensor value = rl_tensor_borrow(c->rt, RL_F64, 0, NULL, &r->extrapolated, sizeof r->extrapolated), now = *x;
    uint64_t fill[2] = {0};
    rl_tensor fill_view = rl_tensor_borrow(c->rt, y->dtype, 0, NULL, fill, sizeof fill);
    if (y->dtype != RL_STRING) rl_convert(c->rt, &fill_view, &value, true);
    else memcpy(fill, &(rl_str){rl_internz(c->g->ctx, "")}, sizeof(rl_str));
    rl_tensor_drop(&value);
    rl_tensor_drop(&fill_view);
    uint32_t order[RL_RANK], n = order_axes(axis, x->rank, order);
    if (!n) rl_tensor_move(c->rt, y, x);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = order[k];
        int64_t outer = 1, inner = 1, dim[RL_RANK];
        memcpy(dim, now.dim, sizeof dim);
        dim[i] = axis[i].out;
        RL_TRY(rl_call_dims(c, x->rank, dim));
        const rl_tensor *to = k == n - 1 ? y : rl_call_temp(c, x->dtype, x->rank, dim);
        for (uint32_t d = 0; d < x->rank; d++) *(d < i ? &outer : &inner) *= d == i ? 1 : dim[d];
        pass p = {&axis[i], rl_data(&now), rl_data(to), inner, rl_elem_bits(x->dtype) / 8, r->extrapolated, fill};
        bool picks = r->mode == RL_RESIZE_NEAREST, wide = x->dtype == RL_F64;
        rl_range_fn *line = picks ? pick_line_of(p.size) : wide ? blend_line_double : blend_line_float;
        bool lines = inner == 1 && line;
        rl_range_fn *fn = lines ? line : picks ? pick : wide ? blend_double : blend_float;
        int64_t work = inner * axis[i].ntap * (lines ? dim[i] : 1);
        rl_parallel(c->rt, lines ? outer : outer * dim[i], RL_MAX(1, 16384 / RL_MAX(work, 1)), fn, &p);
        now = *to;
    }
    return RL_OK;
}

/* ---- sizes ---- */

/* The axis that element i of a list is for. */
static rl_status axis_of(rl_call *c, uint32_t i, uint32_t rank, uint32_t *a) {
    const int64_t *axes;
    uint32_t n;
    RL_TRY(rl_call_ints(c, "axes", RL_NONE, &axes, &n));
    return rl_call_axis(c, axes && i < n ? axes[i] : i, rank, a);
}

static rl_status by_scales(rl_call *c, const rl_tensor *x, const float *scale, uint32_t n, rl_resize_sizes *s) {
    for (uint32_t i = 0, a; i < n; i++) {
        RL_TRY(axis_of(c, i, x->rank, &a));
        float out = floorf((float)x->dim[a] * scale[i]);
        if (!(scale[i] > 0 && out < 9e18f)) return rl_call_fail(c, RL_EMODEL, "scale %u is %g", i, (double)scale[i]);
        s->scale[a] = scale[i];
        s->out[a] = scale[i] == 1 ? x->dim[a] : (int64_t)out;
    }
    return RL_OK;
}

static rl_status by_sizes(rl_call *c, const rl_tensor *x, const int64_t *size, uint32_t n, rl_resize_sizes *s) {
    bool least = rl_attr_is(c->node, "keep_aspect_ratio_policy", "not_larger"), most = rl_attr_is(c->node, "keep_aspect_ratio_policy", "not_smaller");
    double best = 0;
    if (!least && !most && rl_attr_find(c->node, "keep_aspect_ratio_policy") && !rl_attr_is(c->node, "keep_aspect_ratio_policy", "stretch"))
        return rl_call_fail(c, RL_EMODEL, "an unknown keep_aspect_ratio_policy");
    for (uint32_t i = 0, a; i < n; i++) {
        RL_TRY(axis_of(c, i, x->rank, &a));
        if (size[i] < 0 || (size[i] && !x->dim[a])) return rl_call_fail(c, RL_EMODEL, "size %u is %lld", i, (long long)size[i]);
        double scale = size[i] == x->dim[a] ? 1 : (double)size[i] / (double)x->dim[a];
        if (i == 0 || (least ? scale < best : scale > best)) best = scale;
        s->scale[a] = (float)scale;
        s->out[a] = size[i];
    }
    for (uint32_t i = 0, a; (least || most) && i < n; i++) {
        RL_TRY(axis_of(c, i, x->rank, &a));
        double out = floor(best * (double)x->dim[a] + 0.5);
        if (!(out < 9e18)) return rl_call_fail(c, RL_EMODEL, "a size of %g", out);
        s->scale[a] = (float)best;
        s->out[a] = (int64_t)out;
    }
    return RL_OK;
}

/* crop_and_resize's region: starts of all axes, then ends. */
static rl_status read_region(rl_call *c, const rl_tensor *x, uint32_t n, rl_resize_sizes *s) {
    const rl_tensor *roi = rl_call_as(c, 1, RL_F32);
    if (!roi || rl_numel(roi) != 2 * (int64_t)n) return rl_call_fail(c, RL_EMODEL, "roi does not have %u elements", 2 * n);
    for (uint32_t i = 0, a; i < n; i++) {
        RL_TRY(axis_of(c, i, x->rank, &a));
        s->from[a] = ((const float *)rl_data(roi))[i];
        s->to[a] = ((const float *)rl_data(roi))[n + i];
    }
    return RL_OK;
}

/* Upsample's scales: attributes of its first two versions. */
static rl_status attr_scales(rl_call *c, const rl_tensor *x, rl_resize_sizes *s) {
    const rl_attr *a = rl_attr_find(c->node, "scales");
    float scale[4] = {1, 1, rl_attr_float(c->node, "height_scale", 1), rl_attr_float(c->node, "width_scale", 1)};
    if (a && a->kind == RL_ATTR_FLOATS && a->n == x->rank) return by_scales(c, x, a->floats, a->n, s);
    if (a || x->rank != 4) return rl_call_fail(c, RL_EMODEL, "no scale for each of %u dims", x->rank);
    return by_scales(c, x, scale, 4, s);
}

rl_status rl_resize_sizes_of(rl_call *c, const rl_resize *r, const rl_tensor *x, rl_resize_sizes *s) {
    const int64_t *axes, *size;
    uint32_t n, nsize;
    for (uint32_t i = 0; i < x->rank; i++) s->out[i] = x->dim[i], s->scale[i] = s->to[i] = 1, s->from[i] = 0;
    if (c->arg && c->node->since < 9) return attr_scales(c, x, s);
    bool old = c->node->since < 11;
    RL_TRY(rl_call_ints(c, "axes", RL_NONE, &axes, &n));
    if (!rl_attr_find(c->node, "axes")) n = x->rank;
    RL_TRY(rl_call_ints(c, NULL, old ? RL_NONE : 3, &size, &nsize));
    const rl_tensor *scale = rl_call_as(c, old ? 1 : 2, RL_F32);
    if (nsize ? nsize != n : !scale || rl_numel(scale) != n) return rl_call_fail(c, RL_EMODEL, "wants %u sizes or scales", n);
    RL_TRY(nsize ? by_sizes(c, x, size, n, s) : by_scales(c, x, rl_data(scale), n, s));
    return r->map == RL_MAP_TF_CROP_AND_RESIZE ? read_region(c, x, n, s) : RL_OK;
}

/* ---- the op: arg 1 is Upsample ---- */

/* Whole numbers are cut to their type's range first. */
static void clamp_to(const rl_tensor *y, rl_dtype t) {
    double bits = rl_dtype_bits(t), most = ldexp(1, (int)bits - rl_is_signed(t)) - 1, least = rl_is_signed(t) ? -most - 1 : 0;
    double *p = rl_data(y);
    for (int64_t i = 0; i < rl_numel(y); i++) p[i] = p[i] < least ? least : p[i] > most ? most : p[i];
}

/* With fast kernels the output lies as the input does, and the passes see both in that order: channels-last, they blend rows of channels. */
static rl_status resize_in_order(rl_call *c, const rl_resize *r, const rl_resize_axis *axis, const int64_t *dim, const int64_t *perm) {
    const rl_tensor *x = rl_call_in(c, 0), *y = rl_call_make_in(c, 0, x->dtype, x->rank, dim, perm);
    rl_tensor from = rl_view_transpose(x, perm), to = rl_view_transpose(y, perm);
    rl_resize_axis turned[RL_RANK] = {0};
    for (uint32_t i = 0; i < x->rank; i++) turned[i] = axis[perm[i]];
    return rl_numel(y) ? run_passes(c, r, turned, &from, &to) : RL_OK;
}

rl_status rl_ref_resize(rl_call *c) {
    rl_resize r;
    rl_resize_sizes s;
    rl_resize_axis axis[RL_RANK] = {0};
    int64_t perm[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    rl_dtype type = rl_call_in(c, 0)->dtype;
    RL_TRY(rl_resize_read(c, &r));
    bool blends = r.mode != RL_RESIZE_NEAREST;
    if (blends && !rl_is_float(type) && (!rl_is_integer(type) || rl_dtype_bits(type) > 32))
        return rl_call_fail(c, RL_ELIMIT, "no means of type %s", rl_dtype_name(type));
    if (!blends && r.antialias) return rl_call_fail(c, RL_EMODEL, "antialias of mode nearest");
    rl_dtype t = !blends ? type : rl_is_float(type) ? rl_wide_float(type) : RL_F64;
    const rl_tensor *given = rl_call_in(c, 0);
    RL_TRY(rl_resize_sizes_of(c, &r, given, &s));
    RL_TRY(rl_call_dims(c, given->rank, s.out));
    for (uint32_t i = 0; i < given->rank; i++) RL_TRY(rl_resize_plan(c, &r, given->dim[i], s.out[i], s.scale[i], s.from[i], s.to[i], &axis[i]));
    if (type == t && rl_memory_order(rl_call_in(c, 0), perm) && c->rt->fast) return resize_in_order(c, &r, axis, s.out, perm);
    const rl_tensor *x = rl_call_as(c, 0, t);
    rl_tensor *y = rl_wide_make(c, 0, type, t, x->rank, s.out);
    if (rl_numel(y)) RL_TRY(run_passes(c, &r, axis, x, y));
    if (blends && rl_is_integer(type)) clamp_to(y, type);
    rl_wide_done(c, 0, y);
    return RL_OK;
}
