/* Fourier transforms, windows, the mel matrix, determinants.  All compute in f64. */
#include "ref_signal.h"

#include <math.h>
#include <string.h>

#include "element.h"
#include "lines.h"

static const double PI = 3.14159265358979323846;

typedef struct { double re, im; } complex_number;

/* ---- one transform ---- */

enum { PRIME = 31 /* larger prime factors go by a convolution */ };

/* root: e^(-2*pi*i*k/n) (forward) or its conjugate; tmp: n elements. */
typedef struct transform transform;
struct transform {
    int64_t n;
    bool inverse;
    complex_number *root, *in, *out, *tmp;
    transform *wide;                /* the convolution's, of a power of two; NULL: there is none */
    complex_number *chirp, *filter; /* [n] e^(-pi*i*k*k/n), [wide->n] what its conjugate becomes, / wide->n */
};

static int64_t factor_of(int64_t n) {
    int64_t p = 2;
    while (p * p <= n && n % p) p++;
    return n % p ? n : p;
}

static bool is_smooth(int64_t n) {
    for (int64_t p; n > 1; n /= p)
        if ((p = factor_of(n)) > PRIME) return false;
    return true;
}

static complex_number unit(double angle, bool inverse) {
    return (complex_number){cos(angle), inverse ? sin(angle) : -sin(angle)};
}

static complex_number times(complex_number a, complex_number b) {
    return (complex_number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static transform *transform_alloc(rl_call *c, int64_t n, bool inverse) {
    transform *f = rl_new(c->tmp, transform, 1);
    *f = (transform){.n = n, .inverse = inverse, .root = rl_new(c->tmp, complex_number, 4 * n + 1)};
    f->in = f->root + n, f->out = f->in + n, f->tmp = f->out + n;
    for (int64_t k = 0; k < n && is_smooth(n); k++) f->root[k] = unit(2 * PI * (double)k / (double)n, inverse);
    return f;
}

/* Two or four transforms of m, one behind the other, as one; w: from a root to the next. */
static void join_two(const transform *f, complex_number *out, int64_t m, int64_t w) {
    for (int64_t k = 0; k < m; k++) {
        complex_number a = out[k], b = times(f->root[k * w], out[m + k]);
        out[k] = (complex_number){a.re + b.re, a.im + b.im};
        out[m + k] = (complex_number){a.re - b.re, a.im - b.im};
    }
}

static void join_four(const transform *f, complex_number *out, int64_t m, int64_t w) {
    double turn = f->inverse ? -1 : 1;
    for (int64_t k = 0; k < m; k++) {
        complex_number a = out[k], b = times(f->root[k * w], out[m + k]), c = times(f->root[2 * k * w], out[2 * m + k]), d = times(f->root[3 * k * w], out[3 * m + k]);
        complex_number even = {a.re + c.re, a.im + c.im}, less = {a.re - c.re, a.im - c.im};
        complex_number odd = {b.re + d.re, b.im + d.im}, aside = {turn * (b.im - d.im), turn * (d.re - b.re)};
        out[k] = (complex_number){even.re + odd.re, even.im + odd.im};
        out[m + k] = (complex_number){less.re + aside.re, less.im + aside.im};
        out[2 * m + k] = (complex_number){even.re - odd.re, even.im - odd.im};
        out[3 * m + k] = (complex_number){less.re - aside.re, less.im - aside.im};
    }
}

/* p transforms of m, one behind the other, as one. */
static void join_many(const transform *f, complex_number *out, int64_t p, int64_t m, int64_t w) {
    int64_t n = p * m;
    for (int64_t k = 0; k < m; k++) {
        for (int64_t r = 0; r < p; r++) f->tmp[r] = out[r * m + k];
        for (int64_t q = 0; q < p; q++) {
            complex_number sum = {0, 0};
            int64_t at = 0, turn = (k + q * m) % n;
            for (int64_t r = 0; r < p; r++, at = at + turn >= n ? at + turn - n : at + turn) {
                complex_number term = times(f->root[at * w], f->tmp[r]);
                sum.re += term.re, sum.im += term.im;
            }
            out[q * m + k] = sum;
        }
    }
}

/* out[n] = the transform of in[0], in[step], ...: by fours, or by the smallest prime factor p of n, as p transforms of n/p and one of p for each
 * of their elements. */
static void fft(const transform *f, const complex_number *in, int64_t step, complex_number *out, int64_t n) {
    int64_t p = n % 4 ? factor_of(n) : 4, m = n / p;
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    for (int64_t r = 0; r < p; r++) {
        if (m == 1) out[r] = in[r * step];
        else fft(f, in + r * step, step * p, out + r * m, m);
    }
    if (p == 2) join_two(f, out, m, f->n / n);
    else if (p == 4) join_four(f, out, m, f->n / n);
    else join_many(f, out, p, m, f->n / n);
}

/* Bluestein's: j k = (j j + k k - (k - j)(k - j)) / 2, so that the sum over j is a convolution with a chirp between two products with it. */
static transform *transform_new(rl_call *c, int64_t n, bool inverse) {
    transform *f = transform_alloc(c, n, inverse), *w;
    int64_t wide = 1;
    if (is_smooth(n)) return f;
    while (wide < 2 * n - 1) wide *= 2;
    w = f->wide = transform_alloc(c, wide, false);
    f->chirp = rl_new(c->tmp, complex_number, n + wide);
    f->filter = f->chirp + n;
    memset(w->in, 0, (size_t)wide * sizeof *w->in);
    for (int64_t k = 0, square = 0; k < n; k++, square = (square + 2 * k - 1) % (2 * n)) {
        f->chirp[k] = unit(PI * (double)square / (double)n, inverse);
        w->in[k] = w->in[k ? wide - k : 0] = (complex_number){f->chirp[k].re / (double)wide, -f->chirp[k].im / (double)wide};
    }
    fft(w, w->in, 1, f->filter, wide);
    return f;
}

/* out = the transform of in. The inverse of the wide one is the conjugate of the conjugate's. */
static void run_transform(const transform *f) {
    const transform *w = f->wide;
    if (!w) {
        fft(f, f->in, 1, f->out, f->n);
        return;
    }
    for (int64_t k = 0; k < w->n; k++) w->in[k] = k < f->n ? times(f->chirp[k], f->in[k]) : (complex_number){0, 0};
    fft(w, w->in, 1, w->out, w->n);
    for (int64_t k = 0; k < w->n; k++) {
        complex_number z = times(f->filter[k], w->out[k]);
        w->in[k] = (complex_number){z.re, -z.im};
    }
    fft(w, w->in, 1, w->out, w->n);
    for (int64_t k = 0; k < f->n; k++) f->out[k] = times(f->chirp[k], (complex_number){w->out[k].re, -w->out[k].im});
}

/* ---- DFT ---- */

/* A signal of n numbers of `parts` doubles, cut or filled with zeros to the transform's length. */
static void load_signal(const transform *f, const double *x, int64_t n, int64_t parts) {
    for (int64_t i = 0; i < f->n; i++) {
        f->in[i].re = i < n ? x[i * parts] : 0;
        f->in[i].im = i < n && parts == 2 ? x[i * parts + 1] : 0;
    }
}

/* Half of the spectrum of a real signal made whole. */
static void mirror(const transform *f) {
    int64_t n = f->n;
    if (n) f->in[0].im = 0;
    for (int64_t k = 1; k <= n / 2; k++) {
        if (2 * k == n) f->in[k].im = 0;
        f->in[n - k] = (complex_number){f->in[k].re, -f->in[k].im};
    }
}

static void store_spectrum(const transform *f, double *y, int64_t n, int64_t parts, double scale) {
    for (int64_t i = 0; i < n; i++) {
        y[i * parts] = f->out[i].re * scale;
        if (parts == 2) y[i * parts + 1] = f->out[i].im * scale;
    }
}

/* From attribute or input: before opset 20 and since. */
static rl_status dft_axis(rl_call *c, uint32_t rank, uint32_t *axis) {
    int64_t at = rl_attr_int(c->node, "axis", c->node->since >= 20 ? -2 : 1);
    const int64_t *given;
    uint32_t n;
    if (c->node->since >= 20) {
        RL_TRY(rl_call_ints(c, NULL, 2, &given, &n));
        if (n == 1) at = *given;
    }
    RL_TRY(rl_call_axis(c, at, rank, axis));
    return *axis + 1 < rank ? RL_OK : rl_call_fail(c, RL_EMODEL, "the axis is that of real and imaginary parts");
}

/* axis moved to just before the last, or back. */
static rl_tensor moved(const rl_tensor *t, uint32_t axis, bool back) {
    int64_t perm[RL_RANK];
    uint32_t last = t->rank - 2;
    for (uint32_t i = 0; i < t->rank; i++) {
        perm[i] = i;
        if (i > last) continue;
        if (back) perm[i] = i < axis ? i : i == axis ? last : i - 1;
        else perm[i] = i == last ? axis : i < axis ? i : i + 1;
    }
    return rl_view_transpose(t, perm);
}

static rl_status one_integer(rl_call *c, uint32_t slot, int64_t *x) {
    const int64_t *p;
    uint32_t n;
    RL_TRY(rl_call_ints(c, NULL, slot, &p, &n));
    if (n > 1) return rl_call_fail(c, RL_EMODEL, "input %u has %u elements, wants 1", slot, n);
    if (n) *x = *p;
    return RL_OK;
}

rl_status rl_ref_dft(rl_call *c) {
    uint32_t axis;
    int64_t dim[RL_RANK];
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    bool inverse = rl_attr_int(c->node, "inverse", 0) != 0, onesided = rl_attr_int(c->node, "onesided", 0) != 0;
    if (x->rank < 2 || x->dim[x->rank - 1] < 1 || x->dim[x->rank - 1] > 2)
        return rl_call_fail(c, RL_EMODEL, "wants real or complex numbers in the last dim");
    RL_TRY(dft_axis(c, x->rank, &axis));
    int64_t n = x->dim[axis], parts = x->dim[x->rank - 1], len = inverse && onesided ? 2 * (n - 1) : n;
    RL_TRY(one_integer(c, 1, &len));
    if (len < 1) return rl_call_fail(c, RL_EMODEL, "a transform of length %lld", (long long)len);
    memcpy(dim, x->dim, sizeof dim);
    dim[axis] = onesided && !inverse ? len / 2 + 1 : len;
    dim[x->rank - 1] = onesided && inverse ? 1 : 2;
    RL_TRY(rl_call_dims(c, x->rank, dim));
    rl_tensor view = moved(x, axis, false), *y = rl_call_make(c, 0, x->dtype, x->rank, dim), target = moved(y, axis, false);
    const double *from = rl_data(rl_dense_as(c, &view, RL_F64));
    rl_tensor *wide = rl_call_temp(c, RL_F64, target.rank, target.dim);
    double *to = rl_data(wide), scale = inverse ? 1 / (double)len : 1;
    const transform *f = transform_new(c, len, inverse);
    int64_t most = dim[axis], made = dim[x->rank - 1], rows = rl_numel(y) / (most * made);
    for (int64_t r = 0; r < rows; r++) {
        load_signal(f, from + r * n * parts, n, parts);
        if (inverse && onesided) mirror(f);
        run_transform(f);
        store_spectrum(f, to + r * most * made, most, made, scale);
    }
    rl_convert(c->rt, &target, wide, true);
    return RL_OK;
}

rl_status rl_ref_stft(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *window = rl_call_as(c, 2, RL_F64);
    int64_t step = 0, len, parts;
    if (x->rank < 2 || x->rank > 3) return rl_call_fail(c, RL_EMODEL, "a signal of rank %u", x->rank);
    int64_t n = x->dim[1];
    len = window ? rl_numel(window) : n;
    parts = x->rank == 3 ? x->dim[2] : 1;
    RL_TRY(one_integer(c, 1, &step));
    RL_TRY(one_integer(c, 3, &len));
    if (step < 1 || len < 1 || len > n || parts < 1 || parts > 2)
        return rl_call_fail(c, RL_EMODEL, "frames of %lld by steps of %lld in a signal of %lld", (long long)len, (long long)step,
                (long long)n);
    if (window && rl_numel(window) != len)
        return rl_call_fail(c, RL_EMODEL, "a window of %lld for frames of %lld", (long long)rl_numel(window), (long long)len);
    int64_t bins = rl_attr_int(c->node, "onesided", 1) ? len / 2 + 1 : len, frames = 1 + (n - len) / step;
    int64_t dim[4] = {x->dim[0], frames, bins, 2};
    rl_tensor *wide = rl_call_temp(c, RL_F64, 4, dim);
    const double *from = rl_data(rl_dense_as(c, x, RL_F64)), *w = window ? rl_data(window) : NULL;
    double *to = rl_data(wide);
    const transform *f = transform_new(c, len, false);
    for (int64_t r = 0; r < dim[0] * frames; r++) {
        load_signal(f, from + (r / frames * n + r % frames * step) * parts, len, parts);
        for (int64_t i = 0; w && i < len; i++) f->in[i].re *= w[i], f->in[i].im *= w[i];
        run_transform(f);
        store_spectrum(f, to + r * bins * 2, bins, 2, 1);
    }
    rl_convert(c->rt, rl_call_make(c, 0, x->dtype, 4, dim), wide, true);
    return RL_OK;
}

/* ---- windows ---- */

rl_status rl_ref_window(rl_call *c) {
    int64_t n = 0;
    const double turn = 2 * PI;
    RL_TRY(rl_call_need(c, 1));
    RL_TRY(one_integer(c, 0, &n));
    RL_TRY(rl_call_dims(c, 1, &n));
    double over = (double)(rl_attr_int(c->node, "periodic", 1) ? n : n - 1);
    rl_dtype t = (rl_dtype)rl_attr_int(c->node, "output_datatype", RL_F32);
    if (!rl_is_float(t) && !rl_is_integer(t)) return rl_call_fail(c, RL_EMODEL, "output_datatype %d is no number", (int)t);
    rl_tensor *wide = rl_call_temp(c, RL_F64, 1, &n);
    double *y = rl_data(wide);
    for (int64_t i = 0; i < n; i++) {
        double at = turn * (double)i / over;
        if (c->arg == RL_WINDOW_HANN) y[i] = (1 - cos(at)) / 2;
        else if (c->arg == RL_WINDOW_HAMMING) y[i] = 25.0 / 46 - 21.0 / 46 * cos(at);
        else y[i] = 0.42 - 0.5 * cos(at) + 0.08 * cos(2 * at);
    }
    rl_convert(c->rt, rl_call_make(c, 0, t, 1, &n), wide, true);
    return RL_OK;
}

static double hertz_to_mel(double x) { return 2595 * log1p(x / 700) / log(10); }
static double mel_to_hertz(double x) { return 700 * expm1(x / 2595 * log(10)); }

/* Triangles between three neighbouring edges, the edges equally spaced in mel. */
rl_status rl_ref_mel(rl_call *c) {
    double v[5];
    RL_TRY(rl_call_need(c, 5));
    for (uint32_t i = 0; i < 5; i++) RL_TRY(rl_call_float(c, i, 0, &v[i]));
    if (!(v[0] >= 0 && v[0] < 1e9 && v[1] >= 0 && v[1] < 1e9))
        return rl_call_fail(c, RL_EMODEL, "%g bins of a transform of %g", v[0], v[1]);
    int64_t bins = (int64_t)v[0], dim[2] = {(int64_t)v[1] / 2 + 1, bins};
    rl_dtype made = (rl_dtype)rl_attr_int(c->node, "output_datatype", RL_F32);
    if (!rl_is_float(made) && !rl_is_integer(made)) return rl_call_fail(c, RL_EMODEL, "output_datatype %d is no number", (int)made);
    RL_TRY(rl_call_dims(c, 2, dim));
    rl_tensor *wide = rl_call_temp(c, RL_F64, 2, dim);
    double *y = rl_data(wide), low = hertz_to_mel(v[3]), step = (hertz_to_mel(v[4]) - low) / (double)(bins + 2);
    int64_t *edge = rl_new(c->tmp, int64_t, bins + 2);
    memset(y, 0, rl_bytes_of(RL_F64, rl_numel(wide)));
    for (int64_t i = 0; i < bins + 2; i++) {
        double at = floor((v[1] + 1) * mel_to_hertz((double)i * step + low) / v[2]);
        if (!(at >= 0 && at < (double)dim[0])) return rl_call_fail(c, RL_EMODEL, "an edge lies beyond the spectrum");
        edge[i] = (int64_t)at;
    }
    for (int64_t i = 0; i < bins; i++) {
        int64_t left = edge[i], centre = edge[i + 1], right = edge[i + 2];
        if (left == centre) y[centre * bins + i] = 1;
        for (int64_t j = left; left < centre && j <= centre; j++) y[j * bins + i] = (double)(j - left) / (double)(centre - left);
        for (int64_t j = centre; j < right; j++) y[j * bins + i] = (double)(right - j) / (double)(right - centre);
    }
    rl_convert(c->rt, rl_call_make(c, 0, made, 2, dim), wide, true);
    return RL_OK;
}

/* ---- Det ---- */

/* Gauss' elimination with the largest pivot of each column; a is overwritten. */
static double determinant(double *a, int64_t n) {
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        if (a[best * n + k] == 0) return 0;
        for (int64_t j = 0; best != k && j < n; j++) {
            double t = a[k * n + j];
            a[k * n + j] = a[best * n + j], a[best * n + j] = t;
        }
        det *= best == k ? a[k * n + k] : -a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double by = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++) a[i * n + j] -= by * a[k * n + j];
        }
    }
    return det;
}

rl_status rl_ref_det(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_in(c, 0);
    if (x->rank < 2 || x->dim[x->rank - 1] != x->dim[x->rank - 2]) return rl_call_fail(c, RL_EMODEL, "wants square matrices");
    int64_t n = x->dim[x->rank - 1];
    rl_tensor *copy = rl_call_temp(c, RL_F64, x->rank, x->dim), *wide = rl_call_temp(c, RL_F64, x->rank - 2, x->dim);
    rl_convert(c->rt, copy, x, true);
    for (int64_t i = 0; i < rl_numel(wide); i++) ((double *)rl_data(wide))[i] = determinant((double *)rl_data(copy) + i * n * n, n);
    rl_convert(c->rt, rl_call_make(c, 0, x->dtype, x->rank - 2, x->dim), wide, true);
    return RL_OK;
}
