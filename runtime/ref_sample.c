/* GridSample, AffineGrid, CenterCropPad. */
#include <math.h>
#include <string.h>

#include "wide.h"

/* ---- GridSample: computed in f64, places in f32 where the grid is no f64 ---- */

typedef enum { ZEROS, BORDER, REFLECTION } padding;
enum { MOSTTAPS = 256 }; /* elements that make one of the output: 4 for each dim at most */

typedef struct {
    uint32_t r;
    int64_t dim[RL_RANK], n, ch, in, out, ntap; /* elements of a plane on both sides; taps per dim */
    bool corners, single;
    padding padding;
    const double *x, *grid;
    double *y;
} sampler;

static double reflect(double p, double low, double high) {
    double range = high - low, over = p < low ? low - p : p - high;
    if (over <= 0) return p;
    if (range <= 0) return low;
    double turns = floor(over / range), rest = over - turns * range;
    bool from_low = (p < low) == (fmod(turns, 2) == 0);
    return from_low ? low + rest : high - rest;
}

static int64_t clamp(double p, int64_t d) {
    return p > 0 ? (int64_t)fmin(p, (double)(d - 1)) : 0;
}

/* Which element of d tap place p means; -1: none. */
static int64_t tap_index(const sampler *s, double p, int64_t d) {
    double low = s->corners ? 0 : -0.5;
    if (s->padding == ZEROS) return p >= 0 && p < (double)d ? (int64_t)p : -1;
    return clamp(s->padding == REFLECTION ? trunc(reflect(p, low, (double)d - 1 - low)) : p, d);
}

static void cubic_weights(double x, double *w) {
    const double a = -0.75;
    double y = 1 - x;
    w[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
    w[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
    w[2] = ((a + 2) * y - (a + 3)) * y * y + 1;
    w[3] = ((a * (y + 1) - 5 * a) * (y + 1) + 8 * a) * (y + 1) - 4 * a;
}

/* The taps of one dim for grid coordinate g, from -1 to 1. */
static void dim_taps(const sampler *s, double g, int64_t d, int64_t *index, double *w) {
    double low = s->corners ? 0 : -0.5, high = (double)d - 1 - low;
    double p = s->corners ? (g + 1) / 2 * (double)(d - 1) : ((g + 1) * (double)d - 1) / 2;
    if (s->single) p = (double)(float)p;
    if (s->ntap == 1) p = rint(p);
    if (!(p >= low && p <= high) && s->ntap < 4) { /* cubic: only its taps are brought back, as PyTorch does */
        if (s->padding == BORDER) p = (double)clamp(p, d);
        if (s->padding == REFLECTION) p = reflect(p, low, high);
    }
    if (!(fabs(p) < 1e9)) p = -9; /* all taps outside; also what is no number */
    double base = floor(p), share = p - base;
    if (s->ntap == 1) w[0] = 1;
    else if (s->ntap == 2) w[0] = 1 - share, w[1] = share;
    else cubic_weights(share, w);
    for (int64_t t = 0; t < s->ntap; t++) index[t] = tap_index(s, base + (double)(s->ntap == 4 ? t - 1 : t), d);
}

/* All taps of a point, as offsets in a plane and weights. */
static int64_t point_taps(const sampler *s, const double *g, int64_t *at, double *weight) {
    int64_t n = 1, index[4] = {0};
    double w[4] = {0};
    at[0] = 0;
    weight[0] = 1;
    for (uint32_t i = 0; i < s->r; i++) {
        int64_t have = 0, old[MOSTTAPS];
        double was[MOSTTAPS];
        memcpy(old, at, (size_t)n * sizeof *at);
        memcpy(was, weight, (size_t)n * sizeof *weight);
        dim_taps(s, g[s->r - 1 - i], s->dim[i], index, w);
        for (int64_t k = 0; k < n; k++)
            for (int64_t t = 0; t < s->ntap; t++) {
                if (index[t] < 0) continue;
                at[have] = old[k] * s->dim[i] + index[t];
                weight[have++] = was[k] * w[t];
            }
        n = have;
    }
    return n;
}

static void sample_points(void *arg, int64_t from, int64_t to) {
    const sampler *s = arg;
    int64_t at[MOSTTAPS];
    double weight[MOSTTAPS];
    for (int64_t k = from; k < to; k++) {
        int64_t image = k / s->out, o = k % s->out, n = point_taps(s, s->grid + k * s->r, at, weight);
        for (int64_t c = 0; c < s->ch; c++) {
            const double *x = s->x + (image * s->ch + c) * s->in;
            double sum = 0;
            for (int64_t t = 0; t < n; t++) sum += weight[t] * x[at[t]];
            s->y[(image * s->ch + c) * s->out + o] = sum;
        }
    }
}

static rl_status sampler_modes(const rl_call *c, sampler *s) {
    bool nearest = rl_attr_is(c->node, "mode", "nearest"), cubic = rl_attr_is(c->node, "mode", "cubic") || rl_attr_is(c->node, "mode", "bicubic");
    bool linear = !rl_attr_find(c->node, "mode") || rl_attr_is(c->node, "mode", "linear") || rl_attr_is(c->node, "mode", "bilinear");
    bool border = rl_attr_is(c->node, "padding_mode", "border"), reflection = rl_attr_is(c->node, "padding_mode", "reflection");
    bool zeros = !rl_attr_find(c->node, "padding_mode") || rl_attr_is(c->node, "padding_mode", "zeros");
    if ((!nearest && !cubic && !linear) || (!border && !reflection && !zeros)) return rl_call_fail(c, RL_EMODEL, "an unknown mode");
    s->ntap = nearest ? 1 : cubic ? 4 : 2;
    s->padding = border ? BORDER : reflection ? REFLECTION : ZEROS;
    s->corners = rl_attr_int(c->node, "align_corners", 0) != 0;
    int64_t taps = 1;
    for (uint32_t i = 0; i < s->r; i++) taps = RL_MIN(taps * s->ntap, MOSTTAPS + 1);
    return taps <= MOSTTAPS ? RL_OK : rl_call_fail(c, RL_ELIMIT, "mode of so many elements in %u dims", s->r);
}

rl_status rl_ref_grid_sample(rl_call *c) {
    sampler s = {0};
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_as(c, 0, RL_F64), *grid = rl_call_as(c, 1, RL_F64);
    if (x->rank < 3 || grid->rank != x->rank || grid->dim[0] != x->dim[0] || grid->dim[x->rank - 1] != x->rank - 2)
        return rl_call_fail(c, RL_EMODEL, "wants [N,C,in...] and a grid [N,out...,%u]", x->rank - 2);
    s.r = x->rank - 2, s.ch = x->dim[1], s.in = s.out = 1;
    RL_TRY(sampler_modes(c, &s));
    dim[0] = x->dim[0], dim[1] = x->dim[1];
    for (uint32_t i = 0; i < s.r; i++) {
        s.dim[i] = x->dim[2 + i], dim[2 + i] = grid->dim[1 + i];
        s.in *= s.dim[i], s.out *= dim[2 + i];
    }
    RL_TRY(rl_call_dims(c, x->rank, dim));
    rl_tensor *y = rl_wide_make(c, 0, rl_call_in(c, 0)->dtype, RL_F64, x->rank, dim);
    if (rl_numel(y) && !s.in) return rl_call_fail(c, RL_EMODEL, "an image without elements");
    s.single = rl_call_in(c, 1)->dtype != RL_F64;
    s.x = rl_data(x), s.grid = rl_data(grid), s.y = rl_data(y);
    if (rl_numel(y)) rl_parallel(c->rt, dim[0] * s.out, 256, sample_points, &s);
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
