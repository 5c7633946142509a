/* GridSample, AffineGrid, CenterCropPad. */
#include <string.h>

#include "ref_sample.h"
#include "wide.h"

/* ---- GridSample: summed in f64, places in f32 where the grid is no f64 ---- */

enum { MOSTTAPS = 256 /* elements that make one of the output: 4 for each dim at most */, ROOM = 1024 /* of some points at a time */ };

typedef struct {
    uint32_t r;
    int64_t dim[RL_RANK], n, ch, in, out; /* elements of a plane on both sides */
    rl_grid_mode mode;
    int64_t most, together; /* taps of a point; points at a time */
    const double *grid;
    const void *x; /* of one type with y */
    void *y;
} sampler;

/* All taps of a point, as offsets in a plane and weights. */
static int64_t point_taps(const sampler *s, const double *g, int64_t *at, double *weight) {
    int64_t n = 1;
    at[0] = 0;
    weight[0] = 1;
    for (uint32_t i = 0; i < s->r; i++) {
        int64_t have = 0, old[MOSTTAPS];
        double was[MOSTTAPS];
        memcpy(old, at, (size_t)n * sizeof *at);
        memcpy(was, weight, (size_t)n * sizeof *weight);
        rl_grid_place p = rl_grid_at(&s->mode, g[s->r - 1 - i], s->dim[i]);
        for (int64_t k = 0; k < n; k++)
            for (uint32_t t = 0; t < s->mode.ntap; t++) {
                int64_t index = rl_grid_index(&s->mode, p.base, t, s->dim[i]);
                if (index < 0) continue;
                at[have] = old[k] * s->dim[i] + index;
                weight[have++] = was[k] * rl_grid_weight(&s->mode, p.share, t);
            }
        n = have;
    }
    return n;
}

/* Some points at a time, for all channels. */
#define SAMPLE(S, T)                                                                                                 \
    static void sample_##S(void *arg, int64_t from, int64_t to) {                                                    \
        const sampler *s = arg;                                                                                      \
        int64_t at[ROOM], n[ROOM];                                                                                   \
        double weight[ROOM];                                                                                         \
        for (int64_t k = from, m; k < to; k += m) {                                                                  \
            int64_t image = k / s->out, o = k % s->out;                                                              \
            m = RL_MIN(RL_MIN(s->together, to - k), s->out - o);                                                     \
            for (int64_t p = 0; p < m; p++)                                                                          \
                n[p] = point_taps(s, s->grid + (k + p) * s->r, at + p * s->most, weight + p * s->most);              \
            for (int64_t c = image * s->ch; c < (image + 1) * s->ch; c++) {                                          \
                const T *x = (const T *)s->x + c * s->in;                                                            \
                T *y = (T *)s->y + c * s->out + o;                                                                   \
                for (int64_t p = 0; p < m; p++) {                                                                    \
                    double sum = 0;                                                                                  \
                    for (int64_t t = p * s->most; t < p * s->most + n[p]; t++) sum += weight[t] * (double)x[at[t]];  \
                    y[p] = (T)sum;                                                                                   \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
    }
SAMPLE(f32, float)
SAMPLE(f64, double)

rl_status rl_grid_mode_read(const rl_call *c, rl_grid_mode *m) {
    bool nearest = rl_attr_is(c->node, "mode", "nearest"), cubic = rl_attr_is(c->node, "mode", "cubic") || rl_attr_is(c->node, "mode", "bicubic");
    bool linear = !rl_attr_find(c->node, "mode") || rl_attr_is(c->node, "mode", "linear") || rl_attr_is(c->node, "mode", "bilinear");
    bool border = rl_attr_is(c->node, "padding_mode", "border"), reflection = rl_attr_is(c->node, "padding_mode", "reflection");
    bool zeros = !rl_attr_find(c->node, "padding_mode") || rl_attr_is(c->node, "padding_mode", "zeros");
    if ((!nearest && !cubic && !linear) || (!border && !reflection && !zeros)) return rl_call_fail(c, RL_EMODEL, "an unknown mode");
    *m = (rl_grid_mode){.ntap = nearest ? 1 : cubic ? 4 : 2, .padding = border ? RL_GRID_BORDER : reflection ? RL_GRID_REFLECTION : RL_GRID_ZEROS,
                        .corners = rl_attr_int(c->node, "align_corners", 0) != 0, .single = rl_call_in(c, 1)->dtype != RL_F64};
    return RL_OK;
}

rl_status rl_grid_dims(const rl_call *c, int64_t *dim) {
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *grid = rl_call_in(c, 1);
    if (x->rank < 3 || grid->rank != x->rank || grid->dim[0] != x->dim[0] || grid->dim[x->rank - 1] != x->rank - 2)
        return rl_call_fail(c, RL_EMODEL, "wants [N,C,in...] and a grid [N,out...,%u]", x->rank - 2);
    dim[0] = x->dim[0], dim[1] = x->dim[1];
    for (uint32_t i = 2; i < x->rank; i++) dim[i] = grid->dim[i - 1];
    return rl_call_dims(c, x->rank, dim);
}

static rl_status count_taps(const rl_call *c, sampler *s) {
    s->most = 1;
    for (uint32_t i = 0; i < s->r; i++) s->most = RL_MIN(s->most * s->mode.ntap, MOSTTAPS + 1);
    s->together = ROOM / s->most;
    return s->most <= MOSTTAPS ? RL_OK : rl_call_fail(c, RL_ELIMIT, "mode of so many elements in %u dims", s->r);
}

rl_status rl_ref_grid_sample(rl_call *c) {
    sampler s = {0};
    int64_t dim[RL_RANK] = {0};
    RL_TRY(rl_grid_dims(c, dim));
    rl_dtype t = rl_wide_float(rl_call_in(c, 0)->dtype);
    const rl_tensor *x = rl_call_as(c, 0, t), *grid = rl_call_as(c, 1, RL_F64);
    s.r = x->rank - 2, s.ch = x->dim[1], s.in = s.out = 1;
    RL_TRY(rl_grid_mode_read(c, &s.mode));
    RL_TRY(count_taps(c, &s));
    for (uint32_t i = 0; i < s.r; i++) s.dim[i] = x->dim[2 + i], s.in *= s.dim[i], s.out *= dim[2 + i];
    rl_tensor *y = rl_wide_make(c, 0, rl_call_in(c, 0)->dtype, t, x->rank, dim);
    if (rl_numel(y) && !s.in) return rl_call_fail(c, RL_EMODEL, "an image without elements");
    s.x = rl_data(x), s.grid = rl_data(grid), s.y = rl_data(y);
    if (rl_numel(y)) rl_parallel(c->rt, dim[0] * s.out, 256, t == RL_F64 ? sample_f64 : sample_f32, &s);
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- AffineGrid ---- */

/* Place i of d, from -1 to 1: the elements' centres, or with corners the first and the last element at the ends. */
static double even_place(int64_t i, int64_t d, bool corners) {
    if (!corners) return (2 * (double)i + 1) / (double)d - 1;
    return d > 1 ? 2 * (double)i / (double)(d - 1) - 1 : -1;
}

rl_status rl_ref_affine_grid(rl_call *c) {
    const int64_t *size;
    uint32_t n, r;
    int64_t dim[RL_RANK], count = 1;
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *theta = rl_call_as(c, 0, RL_F64);
    RL_TRY(rl_call_ints(c, NULL, 1, &size, &n));
    r = n - 2;
    if ((n != 4 && n != 5) || theta->rank != 3 || theta->dim[0] != size[0] || theta->dim[1] != r || theta->dim[2] != r + 1)
        return rl_call_fail(c, RL_EMODEL, "wants theta [N,2,3] and 4 sizes, or [N,3,4] and 5");
    dim[0] = size[0], dim[n - 1] = r;
    for (uint32_t i = 0; i < r; i++) dim[1 + i] = size[2 + i];
    RL_TRY(rl_call_dims(c, n, dim));
    rl_tensor *y = rl_wide_make(c, 0, rl_call_in(c, 0)->dtype, RL_F64, n, dim);
    bool corners = rl_attr_int(c->node, "align_corners", 0) != 0;
    for (uint32_t i = 0; i < r; i++) count *= dim[1 + i];
    for (int64_t k = 0; k < rl_numel(y); k++) {
        int64_t point = k / r % count, row = k / r / count * r + k % r;
        const double *t = (const double *)rl_data(theta) + row * (r + 1);
        double sum = t[r];
        for (uint32_t i = 0; i < r; point /= dim[r - i], i++) sum += t[i] * even_place(point % dim[r - i], dim[r - i], corners);
        ((double *)rl_data(y))[k] = sum;
    }
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- CenterCropPad ---- */

rl_status rl_ref_center_crop_pad(rl_call *c) {
    const int64_t *size, *axis;
    uint32_t n, naxis;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0);
    RL_TRY(rl_call_ints(c, NULL, 1, &size, &n));
    RL_TRY(rl_call_ints(c, "axes", RL_NONE, &axis, &naxis));
    if (n != (axis ? naxis : x->rank)) return rl_call_fail(c, RL_EMODEL, "%u sizes for %u axes", n, axis ? naxis : x->rank);
    memcpy(dim, x->dim, sizeof dim);
    for (uint32_t i = 0, a; i < n; i++) {
        RL_TRY(rl_call_axis(c, axis ? axis[i] : i, x->rank, &a));
        dim[a] = size[i];
    }
    RL_TRY(rl_call_dims(c, x->rank, dim));
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, dim), from = *x, to = *y;
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t more = dim[i] - x->dim[i], both = RL_MIN(dim[i], x->dim[i]);
        from = rl_view_slice(&from, i, more < 0 ? -more / 2 : 0, 1, both);
        to = rl_view_slice(&to, i, more > 0 ? more / 2 : 0, 1, both);
    }
    if (x->dtype != RL_STRING) rl_fill(c->rt, y, (uint64_t[2]){0}); /* new strings are empty */
    rl_tensor_move(c->rt, &to, &from);
    return RL_OK;
}
