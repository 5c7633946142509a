/* Conv, ConvTranspose, DeformConv, Col2Im, CausalConvWithState: all on conv.h. */
#include <math.h>
#include <string.h>

#include "conv.h"
#include "gemm.h"
#include "wide.h"

/* The output's dims: batch, channels, the spatial ones. */
static rl_status make_dims(const rl_call *c, int64_t n, int64_t ch, uint32_t r, const int64_t *spatial, int64_t *dim) {
    dim[0] = n;
    dim[1] = ch;
    for (uint32_t i = 0; i < r; i++) dim[2 + i] = spatial[i];
    return rl_call_dims(c, r + 2, dim);
}

rl_status rl_ref_conv(rl_call *c) {
    int64_t group, dim[RL_RANK];
    rl_window w;
    RL_TRY(rl_call_need(c, 2));
    rl_dtype type = rl_call_in(c, 0)->dtype, t = rl_wide_float(type);
    const rl_tensor *x = rl_call_as(c, 0, t), *k = rl_call_as(c, 1, t);
    RL_TRY(rl_conv_group(c, x, k, &group));
    RL_TRY(rl_window_read(c, x, k->dim + 2, &w));
    RL_TRY(make_dims(c, x->dim[0], k->dim[0], w.r, w.out, dim));
    rl_tensor *y = rl_wide_make(c, 0, type, t, x->rank, dim);
    RL_TRY(rl_conv_bias(c, rl_call_as(c, 2, t), y));
    rl_conv(c, &w, group, x, k, y);
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- ConvTranspose ---- */

rl_status rl_conv_transpose_window(rl_call *c, const rl_tensor *x, const int64_t *kernel, rl_window *w) {
    const int64_t *given, *extra;
    uint32_t ngiven, nextra;
    RL_TRY(rl_window_attrs(c, x->rank - 2, kernel, w));
    RL_TRY(rl_call_ints(c, "output_shape", RL_NONE, &given, &ngiven));
    RL_TRY(rl_call_ints(c, "output_padding", RL_NONE, &extra, &nextra));
    if (ngiven > w->r) given += ngiven - w->r; /* old models give N and C too */
    if ((extra && nextra < w->r) || (given && ngiven < w->r)) return rl_call_fail(c, RL_EMODEL, "attributes for fewer than %u dims", w->r);
    rl_autopad padding = rl_window_padding(c);
    bool more_first = padding != RL_AUTOPAD_SAME_UPPER; /* the formula of opset 1 says the opposite, its text of auto_pad this; so do runtimes */
    for (uint32_t i = 0; i < w->r; i++) {
        int64_t in = x->dim[2 + i], full;
        w->out[i] = in;
        if (in > INT32_MAX || (extra && (extra[i] < 0 || extra[i] > INT32_MAX)) || (given && (given[i] < 0 || given[i] > INT32_MAX)))
            return rl_call_fail(c, RL_ELIMIT, "spatial dim %u of %lld, and what is asked of it", i, (long long)in);
        full = (in - 1) * w->stride[i] + (extra ? extra[i] : 0) + rl_window_reach(w, i);
        w->in[i] = full - w->before[i] - w->after[i];
        if (!given && padding != RL_AUTOPAD_SAME_UPPER && padding != RL_AUTOPAD_SAME_LOWER) continue;
        w->in[i] = given ? given[i] : in * w->stride[i];
        int64_t total = RL_MAX(full - w->in[i], 0);
        w->before[i] = more_first ? total - total / 2 : total / 2;
    }
    return rl_call_dims(c, w->r, w->in);
}

rl_status rl_ref_conv_transpose(rl_call *c) {
    int64_t dim[RL_RANK], group = rl_attr_int(c->node, "group", 1);
    rl_window w;
    RL_TRY(rl_call_need(c, 2));
    rl_dtype type = rl_call_in(c, 0)->dtype, t = rl_wide_float(type);
    const rl_tensor *x = rl_call_as(c, 0, t), *k = rl_call_as(c, 1, t);
    if (x->rank < 3 || k->rank != x->rank || group < 1 || x->dim[1] != k->dim[0] || k->dim[0] % group)
        return rl_call_fail(c, RL_EMODEL, "input and weights do not fit");
    RL_TRY(rl_conv_transpose_window(c, x, k->dim + 2, &w));
    int64_t m = k->dim[1], ch = k->dim[0] / group, taps = rl_product(w.kernel, w.r), small = rl_product(w.out, w.r);
    RL_TRY(rl_call_dims(c, 2, (int64_t[]){m, group}));
    RL_TRY(make_dims(c, x->dim[0], m * group, w.r, w.in, dim));
    rl_tensor *y = rl_wide_make(c, 0, type, t, x->rank, dim), one = *y;
    RL_TRY(rl_conv_bias(c, rl_call_as(c, 2, t), y));
    RL_TRY(rl_call_dims(c, 4, (int64_t[]){group, m, taps, small}));
    rl_tensor *cols = rl_call_temp(c, t, 4, (int64_t[]){group, m, taps, small});
    int64_t *at = rl_new(c->tmp, int64_t, 3 * group), size = rl_dtype_bits(t) / 8;
    for (int64_t i = 0; i < group; i++) at[i] = i * ch * m * taps, at[group + i] = i * ch * small, at[2 * group + i] = i * m * taps * small;
    for (int64_t n = 0; n < x->dim[0]; n++) {
        rl_gemm g = {.type = t, .count = group, .m = m * taps, .n = small, .k = ch, .a = rl_data(k), .am = 1, .ak = m * taps,
                     .b = (const char *)rl_data(x) + n * group * ch * small * size, .bk = small, .bn = 1, .y = rl_data(cols), .ym = small,
                     .aat = at, .bat = at + group, .yat = at + 2 * group};
        memset(rl_data(cols), 0, rl_bytes_of(t, rl_numel(cols)));
        rl_gemm_run(c->rt, &g);
        one.offset = y->offset + n * (rl_numel(y) / y->dim[0]);
        rl_conv_back(c, &w, m * group, rl_data(cols), &one);
    }
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- Col2Im ---- */

rl_status rl_ref_col2im(rl_call *c) {
    const int64_t *image, *block;
    uint32_t r, nblock;
    int64_t dim[RL_RANK];
    rl_window w;
    RL_TRY(rl_call_need(c, 3));
    rl_dtype type = rl_call_in(c, 0)->dtype, t = rl_is_float(type) ? rl_wide_float(type) : RL_I64;
    const rl_tensor *x = rl_call_as(c, 0, t);
    RL_TRY(rl_call_ints(c, NULL, 1, &image, &r));
    RL_TRY(rl_call_ints(c, NULL, 2, &block, &nblock));
    if (x->rank != 3 || r != nblock || r < 1 || r > RL_RANK - 2)
        return rl_call_fail(c, RL_EMODEL, "wants columns of rank 3, and as many block dims as image dims");
    RL_TRY(rl_call_dims(c, r, image));
    RL_TRY(rl_call_dims(c, r, block));
    RL_TRY(rl_window_attrs(c, r, block, &w));
    for (uint32_t i = 0; i < r; i++) {
        int64_t room = image[i] + w.before[i] + w.after[i] - rl_window_reach(&w, i);
        w.in[i] = image[i];
        w.out[i] = room < 0 ? 0 : room / w.stride[i] + 1;
    }
    RL_TRY(rl_call_dims(c, r, w.out));
    int64_t taps = rl_product(block, r);
    if (taps == 0 || x->dim[1] % taps || rl_product(w.out, r) != x->dim[2])
        return rl_call_fail(c, RL_EMODEL, "columns of %lld by %lld are not the blocks of the image", (long long)x->dim[1], (long long)x->dim[2]);
    RL_TRY(make_dims(c, x->dim[0], x->dim[1] / taps, r, image, dim));
    rl_tensor *y = rl_wide_make(c, 0, type, t, r + 2, dim);
    memset(rl_data(y), 0, rl_bytes_of(t, rl_numel(y)));
    rl_conv_back(c, &w, dim[0] * dim[1], rl_data(x), y);
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- DeformConv ---- */

typedef struct {
    rl_window w;
    rl_taps taps;
    int64_t c, in, out, offset_groups;
    const double *x, *offset, *mask; /* of one image; mask NULL: 1 */
    double *cols;
} deform;

/* The image between its elements: linear in each dim, zero outside. */
static double sample(const rl_window *w, const double *x, const double *p) {
    double sum = 0;
    for (uint32_t corner = 0; corner < 1u << w->r; corner++) {
        double weight = 1;
        int64_t at = 0;
        for (uint32_t i = 0; i < w->r; i++) {
            double low = floor(p[i]), share = p[i] - low, place = low + (corner >> i & 1);
            if (!(place >= 0 && place < (double)w->in[i])) weight = 0;
            else at = at * w->in[i] + (int64_t)place, weight *= corner >> i & 1 ? share : 1 - share;
            if (weight == 0) break;
        }
        if (weight != 0) sum += weight * x[at];
    }
    return sum;
}

/* Rows of the patches: tap by tap of channel from .. to-1. */
static void deform_channels(void *arg, int64_t from, int64_t to) {
    const deform *d = arg;
    int64_t place[RL_RANK];
    double p[RL_RANK];
    uint32_t r = d->w.r;
    for (int64_t row = from; row < to; row++) {
        int64_t ch = row / d->taps.n, t = row % d->taps.n, og = ch / (d->c / d->offset_groups) * d->taps.n + t;
        for (int64_t o = 0; o < d->out; o++) {
            int64_t left = o;
            for (uint32_t i = r; i-- > 0; left /= d->w.out[i]) place[i] = left % d->w.out[i];
            for (uint32_t i = 0; i < r; i++)
                p[i] = (double)(place[i] * d->w.stride[i] - d->w.before[i] + d->taps.index[t * r + i] * d->w.dilation[i]) +
                       d->offset[(og * r + i) * d->out + o];
            d->cols[row * d->out + o] = sample(&d->w, d->x + ch * d->in, p) * (d->mask ? d->mask[og * d->out + o] : 1);
        }
    }
}

static rl_status deform_check(const rl_call *c, const deform *d, const rl_tensor *x, const rl_tensor *offset, const rl_tensor *mask) {
    int64_t og = d->offset_groups;
    bool fits = og > 0 && x->dim[1] % og == 0 && offset->rank == x->rank && offset->dim[0] == x->dim[0] && offset->dim[1] == og * d->taps.n * d->w.r &&
                d->w.r < 31;
    if (mask) fits = fits && mask->rank == x->rank && mask->dim[0] == x->dim[0] && mask->dim[1] == og * d->taps.n;
    for (uint32_t i = 0; fits && i < d->w.r; i++) fits = offset->dim[2 + i] == d->w.out[i] && (!mask || mask->dim[2 + i] == d->w.out[i]);
    return fits ? RL_OK : rl_call_fail(c, RL_EMODEL, "offsets or mask do not have the output's shape");
}

rl_status rl_ref_deform_conv(rl_call *c) {
    int64_t group, dim[RL_RANK];
    deform d = {.offset_groups = rl_attr_int(c->node, "offset_group", 1)};
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *x = rl_call_as(c, 0, RL_F64), *k = rl_call_as(c, 1, RL_F64), *offset = rl_call_as(c, 2, RL_F64), *mask = rl_call_as(c, 4, RL_F64);
    RL_TRY(rl_conv_group(c, x, k, &group));
    RL_TRY(rl_window_read(c, x, k->dim + 2, &d.w));
    d.taps = rl_taps_of(c->tmp, &d.w);
    RL_TRY(deform_check(c, &d, x, offset, mask));
    RL_TRY(make_dims(c, x->dim[0], k->dim[0], d.w.r, d.w.out, dim));
    rl_tensor *y = rl_wide_make(c, 0, rl_call_in(c, 0)->dtype, RL_F64, x->rank, dim);
    RL_TRY(rl_conv_bias(c, rl_call_as(c, 3, RL_F64), y));
    d.c = x->dim[1], d.in = rl_product(d.w.in, d.w.r), d.out = rl_product(d.w.out, d.w.r);
    RL_TRY(rl_call_dims(c, 3, (int64_t[]){d.c, d.taps.n, d.out}));
    rl_tensor *cols = rl_call_temp(c, RL_F64, 3, (int64_t[]){d.c, d.taps.n, d.out});
    int64_t m = k->dim[0] / group, depth = k->dim[1] * d.taps.n, *at = rl_new(c->tmp, int64_t, 3 * group);
    for (int64_t i = 0; i < group; i++) at[i] = i * m * depth, at[group + i] = i * depth * d.out, at[2 * group + i] = i * m * d.out;
    d.cols = rl_data(cols);
    for (int64_t n = 0; n < x->dim[0]; n++) {
        d.x = (const double *)rl_data(x) + n * d.c * d.in;
        d.offset = (const double *)rl_data(offset) + n * offset->dim[1] * d.out;
        d.mask = mask ? (const double *)rl_data(mask) + n * mask->dim[1] * d.out : NULL;
        rl_parallel(c->rt, d.c * d.taps.n, RL_MAX(1, 4096 / RL_MAX(d.out, 1)), deform_channels, &d);
        rl_gemm g = {.type = RL_F64, .count = group, .m = m, .n = d.out, .k = depth, .a = rl_data(k), .am = depth, .ak = 1, .b = d.cols,
                     .bk = d.out, .bn = 1, .y = (double *)rl_data(y) + n * k->dim[0] * d.out, .ym = d.out, .aat = at, .bat = at + group,
                     .yat = at + 2 * group};
        rl_gemm_run(c->rt, &g);
    }
    rl_wide_done(c, 0, y);
    return RL_OK;
}

/* ---- CausalConvWithState ---- */

/* [past, x] along the last dim: what the kernel slides over, and whose end is the next state. */
static rl_status with_past(rl_call *c, const rl_tensor *x, const rl_tensor *past, int64_t keep, rl_tensor **all) {
    int64_t dim[3] = {x->dim[0], x->dim[1], x->dim[2] + keep};
    if (past && (past->rank != 3 || past->dim[0] != dim[0] || past->dim[1] != dim[1] || past->dim[2] != keep))
        return rl_call_fail(c, RL_EMODEL, "the past state is not of [%lld,%lld,%lld]", (long long)dim[0], (long long)dim[1], (long long)keep);
    *all = rl_call_temp(c, x->dtype, 3, dim);
    rl_tensor before = rl_view_slice(*all, 2, 0, 1, keep), now = rl_view_slice(*all, 2, keep, 1, x->dim[2]);
    if (past) rl_tensor_move(c->rt, &before, past);
    else rl_fill(c->rt, &before, (uint64_t[]){0});
    rl_tensor_move(c->rt, &now, x);
    return RL_OK;
}

static void silu(void *arg, int64_t from, int64_t to) {
    float *y = arg;
    for (int64_t i = from; i < to; i++) y[i] = y[i] / (1 + expf(-y[i]));
}

rl_status rl_ref_causal_conv(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    rl_dtype type = rl_call_in(c, 0)->dtype;
    const rl_tensor *x = rl_call_as(c, 0, RL_F32), *k = rl_call_as(c, 1, RL_F32);
    if (x->rank != 3 || k->rank != 3 || k->dim[0] != x->dim[1] || k->dim[1] != 1 || k->dim[2] < 1)
        return rl_call_fail(c, RL_EMODEL, "wants an input of [B,C,L] and weights of [C,1,K]");
    int64_t keep = k->dim[2] - 1;
    rl_tensor *all = NULL;
    RL_TRY(with_past(c, x, rl_call_as(c, 3, RL_F32), keep, &all));
    rl_window w = {.r = 1, .in = {all->dim[2]}, .out = {x->dim[2]}, .kernel = {k->dim[2]}, .stride = {1}, .dilation = {1}};
    rl_tensor *y = rl_wide_make(c, 0, type, RL_F32, 3, x->dim), *state = rl_wide_make(c, 1, type, RL_F32, 3, (int64_t[]){x->dim[0], x->dim[1], keep});
    RL_TRY(rl_conv_bias(c, rl_call_as(c, 2, RL_F32), y));
    rl_conv(c, &w, x->dim[1], all, k, y);
    bool swish = rl_attr_is(c->node, "activation", "silu") || rl_attr_is(c->node, "activation", "swish");
    if (!swish && rl_attr_find(c->node, "activation") && !rl_attr_is(c->node, "activation", "none"))
        return rl_call_fail(c, RL_EMODEL, "an unknown activation");
    if (swish) rl_parallel(c->rt, rl_numel(y), 16384, silu, rl_data(y));
    rl_tensor last = rl_view_slice(all, 2, all->dim[2] - keep, 1, keep);
    rl_tensor_move(c->rt, state, &last);
    rl_wide_done(c, 0, y);
    rl_wide_done(c, 1, state);
    return RL_OK;
}
