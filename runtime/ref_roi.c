/* RoiAlign and MaxRoiPool: regions of a feature map, pooled to a grid of bins. Computed in f64. */
#include <math.h>

#include "wide.h"

enum { MOSTSAMPLES = 1 << 24 }; /* in a bin; bins along a dim */

/* Between which two elements of a dim a sample lies, and the share of the second. */
typedef struct { int64_t low, high; double share; bool inside; } sample;
/* A region's samples, n[0] and n[1] for each bin; all channels have the same. */
typedef struct { const sample *y, *x; int64_t n[2]; } grid;

typedef struct {
    const double *x, *box; /* box: rows of `width` numbers */
    const int64_t *image;  /* of each region */
    double *y, scale, shift;
    int64_t width, ch, h, w, bh, bw, ratio;
    bool max, grows;       /* grows: a region is at least 1 by 1 */
    grid *grid;            /* of each region: RoiAlign */
} regions;

/* ---- RoiAlign ---- */

static sample sample_at(double p, int64_t d) {
    if (!(p >= -1 && p <= (double)d)) return (sample){0};
    p = p < 0 ? 0 : p;
    int64_t low = (int64_t)p;
    if (low >= d - 1) return (sample){d - 1, d - 1, 0, true};
    return (sample){low, low + 1, p - (double)low, true};
}

static const sample *samples_of(rl_arena *mem, double from, double bin, int64_t nbin, int64_t n, int64_t d) {
    sample *s = rl_new(mem, sample, nbin * n);
    for (int64_t i = 0; i < nbin; i++)
        for (int64_t k = 0; k < n; k++) s[i * n + k] = sample_at(from + (double)i * bin + ((double)k + 0.5) * bin / (double)n, d);
    return s;
}

/* Of region i; false for too many. */
static bool make_grid(rl_arena *mem, const regions *r, int64_t i) {
    const int64_t bins[2] = {r->bh, r->bw};
    const double *box = r->box + i * r->width;
    double corner[2], bin[2];
    grid *g = &r->grid[i];
    for (int k = 0; k < 2; k++) {
        double from = box[1 - k] * r->scale - r->shift, size = box[3 - k] * r->scale - r->shift - from;
        if (r->grows) size = fmax(size, 1);
        corner[k] = from;
        bin[k] = size / (double)bins[k];
        g->n[k] = r->ratio > 0 ? r->ratio : (int64_t)fmin(fmax(ceil(bin[k]), 0), 1e9);
    }
    if (g->n[0] > MOSTSAMPLES / RL_MAX(g->n[1], 1) || r->bh > MOSTSAMPLES || r->bw > MOSTSAMPLES) return false;
    g->y = samples_of(mem, corner[0], bin[0], bins[0], g->n[0], r->h);
    g->x = samples_of(mem, corner[1], bin[1], bins[1], g->n[1], r->w);
    return true;
}

/* One bin: its samples' mean. */
static double mean_of_bin(const regions *r, const double *plane, const sample *y, const sample *x, const int64_t *n) {
    double sum = 0;
    for (int64_t i = 0; i < n[0]; i++) {
        const double *low = plane + y[i].low * r->w, *high = plane + y[i].high * r->w, fy = y[i].share;
        for (int64_t j = 0; j < n[1]; j++) {
            int64_t x0 = x[j].low, x1 = x[j].high;
            double fx = x[j].share;
            if (y[i].inside && x[j].inside) sum += (1 - fy) * ((1 - fx) * low[x0] + fx * low[x1]) + fy * ((1 - fx) * high[x0] + fx * high[x1]);
        }
    }
    return sum / (double)RL_MAX(n[0] * n[1], 1);
}

/* The largest of its samples' neighbours' weighted values. */
static double most_of_bin(const regions *r, const double *plane, const sample *y, const sample *x, const int64_t *n) {
    double most = n[0] && n[1] ? NAN : 0; /* less than any */
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++) {
            const double *low = plane + y[i].low * r->w, *high = plane + y[i].high * r->w, fy = y[i].share, fx = x[j].share;
            double here = 0;
            if (y[i].inside && x[j].inside)
                here = fmax(fmax((1 - fy) * (1 - fx) * low[x[j].low], (1 - fy) * fx * low[x[j].high]),
                            fmax(fy * (1 - fx) * high[x[j].low], fy * fx * high[x[j].high]));
            most = fmax(most, here);
        }
    return most;
}

static void align_planes(void *arg, int64_t from, int64_t to) {
    const regions *r = arg;
    double (*bin)(const regions *, const double *, const sample *, const sample *, const int64_t *) = r->max ? most_of_bin : mean_of_bin;
    for (int64_t k = from; k < to; k++) {
        const grid *g = &r->grid[k / r->ch];
        const double *x = r->x + (r->image[k / r->ch] * r->ch + k % r->ch) * r->h * r->w;
        for (int64_t i = 0; i < r->bh; i++)
            for (int64_t j = 0; j < r->bw; j++)
                r->y[(k * r->bh + i) * r->bw + j] = bin(r, x, g->y + i * g->n[0], g->x + j * g->n[1], g->n);
    }
}

/* ---- MaxRoiPool ---- */

/* Bins of whole elements: from .. to-1 of bin i of n, in a region that begins at `start` and has `size` elements, cut to 0 .. d. */
static void bin_range(int64_t i, int64_t n, double start, double size, int64_t d, int64_t *from, int64_t *to) {
    double low = floor((double)i * size / (double)n) + start, high = ceil((double)(i + 1) * size / (double)n) + start;
    *from = (int64_t)fmin(fmax(low, 0), (double)d);
    *to = (int64_t)fmin(fmax(high, 0), (double)d);
}

static void max_planes(void *arg, int64_t from, int64_t to) {
    const regions *r = arg;
    for (int64_t k = from; k < to; k++) {
        const double *box = r->box + k / r->ch * r->width + 1, *x = r->x + (r->image[k / r->ch] * r->ch + k % r->ch) * r->h * r->w;
        double x0 = round(box[0] * r->scale), y0 = round(box[1] * r->scale);
        double w = fmax(round(box[2] * r->scale) - x0 + 1, 1), h = fmax(round(box[3] * r->scale) - y0 + 1, 1);
        for (int64_t i = 0; i < r->bh; i++)
            for (int64_t j = 0; j < r->bw; j++) {
                int64_t y1, y2, x1, x2;
                double most = -INFINITY;
                bin_range(i, r->bh, y0, h, r->h, &y1, &y2);
                bin_range(j, r->bw, x0, w, r->w, &x1, &x2);
                for (int64_t p = y1; p < y2; p++)
                    for (int64_t q = x1; q < x2; q++) most = fmax(most, x[p * r->w + q]);
                r->y[(k * r->bh + i) * r->bw + j] = y1 < y2 && x1 < x2 ? most : 0;
            }
    }
}

/* ---- both ---- */

static rl_status run_regions(rl_call *c, regions *r, const rl_tensor *x, int64_t nbox, rl_range_fn *fn) {
    int64_t dim[4] = {nbox, x->dim[1], r->bh, r->bw};
    if (r->bh < 1 || r->bw < 1) return rl_call_fail(c, RL_EMODEL, "%lld by %lld bins", (long long)r->bh, (long long)r->bw);
    for (int64_t i = 0; i < nbox; i++)
        if (r->image[i] < 0 || r->image[i] >= x->dim[0])
            return rl_call_fail(c, RL_EMODEL, "region %lld is of image %lld of %lld", (long long)i, (long long)r->image[i], (long long)x->dim[0]);
    RL_TRY(rl_call_dims(c, 4, dim));
    rl_tensor *y = rl_wide_make(c, 0, rl_call_in(c, 0)->dtype, RL_F64, 4, dim);
    r->x = rl_data(x), r->y = rl_data(y);
    if (rl_numel(y) && (!r->h || !r->w)) return rl_call_fail(c, RL_EMODEL, "an image without elements");
    rl_parallel(c->rt, nbox * r->ch, 1, fn, r);
    rl_wide_done(c, 0, y);
    return RL_OK;
}

rl_status rl_ref_roi_align(rl_call *c) {
    RL_TRY(rl_call_need(c, 3));
    const rl_tensor *x = rl_call_as(c, 0, RL_F64), *box = rl_call_as(c, 1, RL_F64), *image = rl_call_as(c, 2, RL_I64);
    if (x->rank != 4 || box->rank != 2 || box->dim[1] != 4 || image->rank != 1 || image->dim[0] != box->dim[0])
        return rl_call_fail(c, RL_EMODEL, "wants [N,C,H,W], boxes [R,4] and R image numbers");
    bool half = c->node->since >= 16 && !rl_attr_is(c->node, "coordinate_transformation_mode", "output_half_pixel");
    regions r = {.ch = x->dim[1], .h = x->dim[2], .w = x->dim[3], .box = rl_data(box), .image = rl_data(image), .width = 4, .scale = (double)rl_attr_float(c->node, "spatial_scale", 1),
                 .shift = half ? 0.5 : 0, .grows = !half, .bh = rl_attr_int(c->node, "output_height", 1),
                 .bw = rl_attr_int(c->node, "output_width", 1), .ratio = rl_attr_int(c->node, "sampling_ratio", 0),
                 .max = rl_attr_is(c->node, "mode", "max")};
    if (rl_attr_find(c->node, "mode") && !r.max && !rl_attr_is(c->node, "mode", "avg")) return rl_call_fail(c, RL_EMODEL, "an unknown mode");
    if (r.bh < 1 || r.bw < 1) return rl_call_fail(c, RL_EMODEL, "%lld by %lld bins", (long long)r.bh, (long long)r.bw);
    r.grid = rl_new(c->tmp, grid, box->dim[0]);
    for (int64_t i = 0; i < box->dim[0]; i++)
        if (!make_grid(c->tmp, &r, i)) return rl_call_fail(c, RL_ELIMIT, "region %lld has over %d samples in a bin, or bins", (long long)i, MOSTSAMPLES);
    return run_regions(c, &r, x, box->dim[0], align_planes);
}

rl_status rl_ref_max_roi_pool(rl_call *c) {
    const int64_t *bins;
    uint32_t nbin;
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_as(c, 0, RL_F64), *box = rl_call_as(c, 1, RL_F64);
    RL_TRY(rl_call_ints(c, "pooled_shape", RL_NONE, &bins, &nbin));
    if (x->rank != 4 || box->rank != 2 || box->dim[1] != 5 || nbin != 2)
        return rl_call_fail(c, RL_EMODEL, "wants [N,C,H,W], regions [R,5] and two numbers in pooled_shape");
    int64_t *image = rl_new(c->tmp, int64_t, box->dim[0]);
    for (int64_t i = 0; i < box->dim[0]; i++) {
        double of = ((const double *)rl_data(box))[i * 5];
        image[i] = of >= 0 && of < 1e9 ? (int64_t)of : -1;
    }
    regions r = {.ch = x->dim[1], .h = x->dim[2], .w = x->dim[3], .box = rl_data(box), .image = image, .width = 5, .scale = (double)rl_attr_float(c->node, "spatial_scale", 1),
                 .bh = bins[0], .bw = bins[1]};
    return run_regions(c, &r, x, box->dim[0], max_planes);
}
