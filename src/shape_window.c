/* Shape rules of convolution, pooling and resampling. */
#include "shape_rules.h"

#include <math.h>

/* ---- windows: convolution and pooling ---- */

typedef struct {
    uint32_t n; /* spatial dims */
    rl_dim *kernel;
    int64_t *stride, *dilation, *pad, *extra; /* pad: n before, n after; extra: output_padding */
    enum { PAD_GIVEN, PAD_SAME, PAD_VALID } mode;
    bool ceil;
} window;

static rl_status window_ints(const rl_shaper *s, const char *name, uint32_t n, int64_t dflt, int64_t least, int64_t **out) {
    const rl_attr *a = ints_attr(s, name);
    *out = rl_new(s->tmp, int64_t, n);
    if (a && a->n != n) return rl_shape_fail(s, "%s has %u elements, wants %u", name, a->n, n);
    for (uint32_t i = 0; i < n; i++) {
        (*out)[i] = a ? a->ints[i] : dflt;
        if ((*out)[i] < least || (*out)[i] > INT32_MAX) return rl_shape_fail(s, "%s has %lld", name, (long long)(*out)[i]);
    }
    return RL_OK;
}

/* kernel: where there is no attribute kernel_shape, or NULL. */
static rl_status read_window(const rl_shaper *s, uint32_t n, const rl_dim *kernel, window *w) {
    int64_t *k = NULL;
    *w = (window){.n = n, .kernel = new_dims(s, n), .ceil = rl_attr_int(s->n, "ceil_mode", 0) != 0};
    if (ints_attr(s, "kernel_shape")) RL_TRY(window_ints(s, "kernel_shape", n, 1, 0, &k));
    for (uint32_t i = 0; i < n; i++) w->kernel[i] = k ? k[i] : kernel ? kernel[i] : UNKNOWN;
    RL_TRY(window_ints(s, "strides", n, 1, 1, &w->stride));
    RL_TRY(window_ints(s, "dilations", n, 1, 1, &w->dilation));
    RL_TRY(window_ints(s, "output_padding", n, 0, INT32_MIN, &w->extra));
    bool same_pads = rl_attr_is(s->n, "auto_pad", "SAME_UPPER") || rl_attr_is(s->n, "auto_pad", "SAME_LOWER");
    w->mode = same_pads ? PAD_SAME : rl_attr_is(s->n, "auto_pad", "VALID") ? PAD_VALID : PAD_GIVEN;
    return window_ints(s, w->mode == PAD_GIVEN ? "pads" : "", 2 * n, 0, INT32_MIN, &w->pad);
}

/* floor or ceil((in + pads - (dilation*(k-1)+1)) / stride) + 1, and the last window must start inside the tensor or its first
 * padding. */
static rl_dim window_size(const rl_shaper *s, const window *w, uint32_t i, rl_dim in) {
    int64_t k = w->kernel[i], st = w->stride[i], before = w->pad[i], after = w->pad[w->n + i];
    if (w->mode == PAD_SAME) return rl_shape_ceildiv(s, in, st);
    if (!rl_dim_known(k) || k > INT32_MAX) return UNKNOWN;
    int64_t reach = k ? w->dilation[i] * (k - 1) + 1 : 0, c = before + after - reach + st;
    if (rl_dim_known(in) && in + c < 0) return UNKNOWN;
    rl_dim room = rl_shape_offset(s, in, c);
    if (!w->ceil) return rl_shape_floordiv(s, room, st);
    rl_dim out = rl_shape_ceildiv(s, room, st);
    if (rl_dim_known(in) && rl_dim_known(out)) return out > 1 && (out - 1) * st >= in + before ? out - 1 : out;
    return st + after <= reach ? out : UNKNOWN;
}

/* The type of x with its spatial dims put through the window; dims from `first` on are spatial. */
static rl_status set_windows(rl_shaper *s, const rl_valinfo *x, const window *w, uint32_t first, rl_dim channels, rl_dtype t) {
    rl_dim *d = copy_dims(s, x);
    for (uint32_t i = 0; i < w->n; i++) d[first + i] = window_size(s, w, i, x->dim[first + i]);
    d[first == 2 ? 1 : x->rank - 1] = channels;
    return rl_shape_set(s, 0, t, x->rank, d);
}

static rl_status conv_of(rl_shaper *s, uint32_t ix, uint32_t iw, bool last, rl_dtype t) {
    const rl_valinfo *x = input(s, ix), *w = input(s, iw);
    window win;
    rl_dim c;
    RL_TRY(want_least_rank(s, ix, 3));
    if (!ranked(x)) return set_unranked(s, 0, t);
    RL_TRY(want_rank(s, iw, x->rank));
    RL_TRY(read_window(s, x->rank - 2, !last && ranked(w) ? w->dim + 2 : NULL, &win));
    int64_t group = rl_attr_int(s->n, "group", 1);
    rl_dim wanted = !last && ranked(w) && group > 0 ? rl_shape_mul(s, w->dim[1], group) : UNKNOWN;
    if (!last && !rl_shape_unify(s, x->dim[1], wanted, &c))
        return rl_shape_fail(s, "input %u has %lld channels, wants %lld", ix, (long long)x->dim[1], (long long)wanted);
    return set_windows(s, x, &win, last ? 1 : 2, ranked(w) ? w->dim[0] : UNKNOWN, t);
}

rl_status rl_rule_conv(rl_shaper *s) {
    return conv_of(s, 0, 1, false, out_dtype(s, 0));
}

rl_status rl_rule_conv_last(rl_shaper *s) {
    return conv_of(s, 0, 1, true, out_dtype(s, 0));
}

rl_status rl_rule_qlinear_conv(rl_shaper *s) {
    return conv_of(s, 0, 3, rl_attr_int(s->n, "channels_last", 0) != 0, dtype_of(input(s, 7)));
}

/* stride*(in-1) + dilation*(k-1) + 1 - pads + output_padding; or padded to stride*in, where there is that much: else runtimes differ in what there is. */
static rl_dim unwindow_size(const rl_shaper *s, const window *w, uint32_t i, rl_dim in) {
    int64_t k = w->kernel[i];
    if (w->mode == PAD_SAME && w->stride[i] == 1) return in;
    if (!rl_dim_known(k) || k > INT32_MAX) return UNKNOWN;
    int64_t c = w->dilation[i] * (k - 1) + 1 - w->pad[i] - w->pad[w->n + i] + w->extra[i] - w->stride[i];
    if (w->mode == PAD_SAME) return c >= 0 ? rl_shape_mul(s, in, w->stride[i]) : UNKNOWN;
    return rl_shape_offset(s, rl_shape_mul(s, in, w->stride[i]), c);
}

rl_status rl_rule_conv_transpose(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *w = input(s, 1);
    window win;
    RL_TRY(want_least_rank(s, 0, 3));
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(want_rank(s, 1, x->rank));
    RL_TRY(read_window(s, x->rank - 2, ranked(w) ? w->dim + 2 : NULL, &win));
    rl_dim c;
    if (ranked(w) && !rl_shape_unify(s, x->dim[1], w->dim[0], &c))
        return rl_shape_fail(s, "input 0 has %lld channels, wants %lld", (long long)x->dim[1], (long long)w->dim[0]);
    rl_dim *d = copy_dims(s, x);
    int64_t group = rl_attr_int(s->n, "group", 1);
    d[1] = ranked(w) && group > 0 ? rl_shape_mul(s, w->dim[1], group) : UNKNOWN;
    const rl_attr *given = ints_attr(s, "output_shape");
    uint32_t skip = given && given->n >= win.n ? given->n - win.n : 0; /* old models give N and C too */
    for (uint32_t i = 0; i < win.n; i++) {
        d[2 + i] = unwindow_size(s, &win, i, x->dim[2 + i]);
        if (given && skip + i < given->n) d[2 + i] = given->ints[skip + i] >= 0 ? given->ints[skip + i] : UNKNOWN;
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

rl_status rl_rule_causal_conv(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *w = input(s, 1);
    RL_TRY(want_rank(s, 0, 3));
    RL_TRY(want_rank(s, 1, 3));
    RL_TRY(rl_rule_same(s));
    rl_dim d[3] = {dim_at(x, 0), dim_at(x, 1), rl_shape_offset(s, dim_at(w, 2), -1)};
    if (!rl_shape_unify(s, d[1], dim_at(w, 0), &d[1]) || !rl_shape_unify(s, d[0], dim_at(input(s, 3), 0), &d[0]))
        return rl_shape_fail(s, "input 0 and weight or state differ in batch or channels");
    return rl_shape_set(s, 1, dtype_of(x), 3, d);
}

static rl_status pool_of(rl_shaper *s, bool last) {
    const rl_valinfo *x = input(s, 0);
    window w;
    RL_TRY(want_least_rank(s, 0, 3));
    if (!ranked(x)) {
        RL_TRY(set_unranked(s, 1, RL_I64));
        return set_unranked(s, 0, dtype_of(x));
    }
    if (!ints_attr(s, "kernel_shape")) return rl_shape_fail(s, "has no kernel_shape");
    RL_TRY(read_window(s, x->rank - 2, NULL, &w));
    RL_TRY(set_windows(s, x, &w, last ? 1 : 2, x->dim[last ? x->rank - 1 : 1], x->dtype));
    rl_value y = rl_out(s->n, 0);
    return rl_has(y) ? set_like(s, 1, RL_I64, rl_val(s->g, y)) : RL_OK;
}

rl_status rl_rule_pool(rl_shaper *s) {
    return pool_of(s, rl_attr_int(s->n, "channels_last", 0) != 0);
}

rl_status rl_rule_pool_last(rl_shaper *s) {
    return pool_of(s, true);
}

rl_status rl_rule_global_pool(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    bool last = rl_attr_int(s->n, "channels_last", 0) != 0;
    RL_TRY(want_least_rank(s, 0, 2));
    if (!ranked(x)) return rl_rule_same(s);
    rl_dim *d = copy_dims(s, x);
    for (uint32_t i = last ? 1 : 2; i < x->rank - last; i++) d[i] = 1;
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

rl_status rl_rule_max_unpool(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells t;
    window w;
    RL_TRY(want_least_rank(s, 0, 3));
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(read_window(s, x->rank - 2, NULL, &w));
    rl_dim *d = copy_dims(s, x);
    bool known = load(s, 2, &t) && t.n == x->rank;
    RL_TRY(want_rank(s, 1, x->rank));
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!rl_shape_unify(s, d[i], dim_at(input(s, 1), i), &d[i])) return rl_shape_fail(s, "inputs differ in dim %u", i);
        if (input(s, 2)) d[i] = known ? size_of(s, t.cell[i]) : UNKNOWN;
        else if (i >= 2) d[i] = unwindow_size(s, &w, i - 2, d[i]);
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

rl_status rl_rule_col2im(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    rl_cells image, block;
    bool known = load(s, 1, &image);
    uint32_t n = known ? image.n : list_length(s, 1);
    RL_TRY(want_rank(s, 0, 3));
    if (n == RL_NORANK) return set_unranked(s, 0, dtype_of(x));
    rl_dim *d = new_dims(s, n + 2), blocks = 1;
    if (load(s, 2, &block))
        for (uint32_t i = 0; i < block.n; i++) blocks = rl_shape_mul(s, blocks, size_of(s, block.cell[i]));
    else blocks = UNKNOWN;
    if (ranked(x)) d[0] = x->dim[0];
    if (ranked(x) && rl_dim_known(blocks)) d[1] = rl_shape_floordiv(s, x->dim[1], blocks);
    for (uint32_t i = 0; i < n; i++) d[2 + i] = known ? size_of(s, image.cell[i]) : UNKNOWN;
    return rl_shape_set(s, 0, dtype_of(x), n + 2, d);
}

/* ---- resizing ---- */

static rl_dim scaled(const rl_shaper *s, rl_dim d, double f) {
    int64_t num, den;
    if (!(f >= 0 && f < 1e9) || d == UNKNOWN) return UNKNOWN;
    if (f == 1) return d;
    if (rl_dim_known(d)) {
        float r = floorf((float)d * (float)f); /* as onnx computes it */
        return r >= 0 && r < 9e18f ? (rl_dim)r : UNKNOWN;
    }
    return rl_shape_ratio(f, &num, &den) ? rl_shape_floordiv(s, rl_shape_mul(s, d, num), den) : UNKNOWN;
}

/* The axis that list element i is for. */
static rl_status resize_axis(const rl_shaper *s, uint32_t i, uint32_t rank, uint32_t *a) {
    const rl_attr *axes = ints_attr(s, "axes");
    return axis_in(s, axes ? i < axes->n ? axes->ints[i] : INT64_MAX / 2 : i, rank, a);
}

static rl_status resize_scales(rl_shaper *s, const rl_cells *t) {
    const rl_valinfo *x = input(s, 0);
    rl_dim *d = copy_dims(s, x);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t a;
        RL_TRY(resize_axis(s, i, x->rank, &a));
        d[a] = t->cell[i].kind == CELL_FLOAT ? scaled(s, x->dim[a], t->cell[i].f) : UNKNOWN;
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* round(size * least or greatest of sizes[i]/dim[i]), where all are numbers. */
static rl_dim keep_ratio(const rl_shaper *s, const rl_cells *t, rl_dim d) {
    const rl_valinfo *x = input(s, 0);
    bool larger = rl_attr_is(s->n, "keep_aspect_ratio_policy", "not_smaller");
    double best = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t a;
        if (resize_axis(s, i, x->rank, &a) != RL_OK || t->cell[i].kind != CELL_INT || x->dim[a] <= 0) return UNKNOWN;
        double f = (double)t->cell[i].num / (double)x->dim[a];
        if (i == 0 || (larger ? f > best : f < best)) best = f;
    }
    double r = floor((double)d * best + 0.5);
    return rl_dim_known(d) && r >= 0 && r < 9e18 ? (rl_dim)r : UNKNOWN;
}

static rl_status resize_sizes(rl_shaper *s, const rl_cells *t) {
    const rl_valinfo *x = input(s, 0);
    rl_dim *d = copy_dims(s, x);
    bool keep = rl_attr_is(s->n, "keep_aspect_ratio_policy", "not_larger") || rl_attr_is(s->n, "keep_aspect_ratio_policy", "not_smaller");
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t a;
        RL_TRY(resize_axis(s, i, x->rank, &a));
        d[a] = keep ? keep_ratio(s, t, x->dim[a]) : size_of(s, t->cell[i]);
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* Inputs: x, scales (opset 10); x, roi, scales, sizes (later). */
rl_status rl_rule_resize(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    uint32_t at = rl_op_scales_slot(s->n);
    const rl_attr *axes = ints_attr(s, "axes");
    rl_cells t;
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    uint32_t n = axes ? axes->n : x->rank;
    if (at == 2 && load(s, 3, &t) && t.n == n) return resize_sizes(s, &t);
    if (load(s, at, &t) && t.n == n) return resize_scales(s, &t);
    rl_dim *d = axes ? copy_dims(s, x) : new_dims(s, x->rank);
    for (uint32_t i = 0; axes && i < n; i++) {
        uint32_t a;
        RL_TRY(resize_axis(s, i, x->rank, &a));
        d[a] = UNKNOWN;
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

rl_status rl_rule_upsample(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_attr *a = rl_attr_find(s->n, "scales");
    rl_cells t;
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    rl_dim *d = new_dims(s, x->rank);
    if (a && a->kind == RL_ATTR_FLOATS && a->n == x->rank)
        for (uint32_t i = 0; i < x->rank; i++) d[i] = scaled(s, x->dim[i], (double)a->floats[i]);
    else if (load(s, 1, &t) && t.n == x->rank)
        return resize_scales(s, &t);
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

rl_status rl_rule_center_crop_pad(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0);
    const rl_attr *axes = ints_attr(s, "axes");
    rl_cells t;
    if (!ranked(x)) return set_unranked(s, 0, dtype_of(x));
    bool known = load(s, 1, &t);
    rl_dim *d = copy_dims(s, x);
    for (uint32_t i = 0; i < (axes ? axes->n : x->rank); i++) {
        uint32_t a;
        RL_TRY(resize_axis(s, i, x->rank, &a));
        d[a] = known && i < t.n ? size_of(s, t.cell[i]) : UNKNOWN;
    }
    return rl_shape_set(s, 0, x->dtype, x->rank, d);
}

/* Inputs: theta, size (N,C,H,W or N,C,D,H,W). */
rl_status rl_rule_affine_grid(rl_shaper *s) {
    rl_cells t;
    bool known = load(s, 1, &t);
    uint32_t n = known ? t.n : list_length(s, 1);
    if (n != 4 && n != 5) return set_unranked(s, 0, dtype_of(input(s, 0)));
    rl_dim d[5];
    for (uint32_t i = 0; i < n - 1; i++) d[i] = known ? size_of(s, t.cell[i ? i + 1 : 0]) : UNKNOWN;
    d[n - 1] = n - 2;
    return rl_shape_set(s, 0, dtype_of(input(s, 0)), n, d);
}

rl_status rl_rule_grid_sample(rl_shaper *s) {
    const rl_valinfo *x = input(s, 0), *grid = input(s, 1);
    RL_TRY(want_least_rank(s, 0, 3));
    RL_TRY(want_least_rank(s, 1, 3));
    const rl_valinfo *like = ranked(x) ? x : grid;
    if (!ranked(like)) return set_unranked(s, 0, dtype_of(x));
    RL_TRY(want_rank(s, 1, like->rank));
    rl_dim *d = new_dims(s, like->rank);
    for (uint32_t i = 2; i < like->rank; i++) d[i] = dim_at(grid, i - 1);
    if (!rl_shape_unify(s, dim_at(x, 0), dim_at(grid, 0), &d[0])) return rl_shape_fail(s, "inputs differ in dim 0");
    d[1] = dim_at(x, 1);
    return rl_shape_set(s, 0, dtype_of(x), like->rank, d);
}

/* Regions `r` of x, each of size h x w. */
static rl_status set_regions(rl_shaper *s, uint32_t r, rl_dim h, rl_dim w) {
    rl_dim d[4] = {dim_at(input(s, r), 0), dim_at(input(s, 0), 1), h, w};
    RL_TRY(want_rank(s, 0, 4));
    return rl_shape_set(s, 0, dtype_of(input(s, 0)), 4, d);
}

rl_status rl_rule_roi_align(rl_shaper *s) {
    int64_t h = rl_attr_int(s->n, "output_height", 1), w = rl_attr_int(s->n, "output_width", 1);
    RL_TRY(want_rank(s, 1, 2));
    return set_regions(s, 1, h >= 0 ? h : UNKNOWN, w >= 0 ? w : UNKNOWN);
}

rl_status rl_rule_max_roi_pool(rl_shaper *s) {
    const rl_attr *a = ints_attr(s, "pooled_shape");
    bool ok = a && a->n == 2 && a->ints[0] >= 0 && a->ints[1] >= 0;
    RL_TRY(want_rank(s, 1, 2));
    return set_regions(s, 1, ok ? a->ints[0] : UNKNOWN, ok ? a->ints[1] : UNKNOWN);
}

rl_status rl_rule_crop_and_resize(rl_shaper *s) {
    rl_cells t;
    bool ok = load(s, 3, &t) && t.n == 2;
    return set_regions(s, 1, ok ? size_of(s, t.cell[0]) : UNKNOWN, ok ? size_of(s, t.cell[1]) : UNKNOWN);
}

rl_status rl_rule_non_max_suppression(rl_shaper *s) {
    rl_dim d[2] = {UNKNOWN, 3};
    return rl_shape_set(s, 0, RL_I64, 2, d);
}
