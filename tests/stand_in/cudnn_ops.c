/* The graphs that cuDNN's stand-in does, op after op, by loops over every index: convolutions both ways, ops of one element, pools, normalizations.
 * Not taken, as the real one does not: float32 with two operands after a convolution (tests/unit/gpu_dnn.c asked). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn.h"

typedef struct { int64_t rank, dim[MOST_DIMS], stride[MOST_DIMS], vectors; stand_in_type type; void *p; double value; int by_value; } tensor;
typedef struct { const execution *e; struct { int64_t uid; void *p; } between[MOST_AT]; int n; } work;

static stand_in_type type_of(int t) {
    return t == CUDNN_DATA_DOUBLE ? SI_F64 : t == CUDNN_DATA_HALF ? SI_F16 : t == CUDNN_DATA_BFLOAT16 ? SI_BF16 : t == CUDNN_DATA_INT8 ? SI_I8
         : t == CUDNN_DATA_UINT8 ? SI_U8 : t == CUDNN_DATA_INT32 ? SI_I32 : SI_F32;
}

/* dim[1] counts channels, also where they lie in vectors. */
static tensor read_tensor(const item *d) {
    tensor t = {.vectors = 1};
    const int64_t *dim = item_get(d, CUDNN_ATTR_TENSOR_DIMENSIONS, &t.rank), *stride = item_get(d, CUDNN_ATTR_TENSOR_STRIDES, NULL);
    const int64_t *vectors = item_get(d, CUDNN_ATTR_TENSOR_VECTOR_COUNT, NULL);
    if (vectors) t.vectors = *vectors;
    for (int64_t i = 0; i < t.rank && i < MOST_DIMS; i++) t.dim[i] = dim[i] * (i == 1 ? t.vectors : 1), t.stride[i] = stride[i];
    t.type = type_of(item_int(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT));
    return t;
}

static int64_t count_of(const tensor *t) {
    int64_t n = 1;
    for (int64_t i = 0; i < t->rank; i++) n *= t->dim[i];
    return n;
}

/* Where it lies: given, or made for this execution and dense. */
static tensor place(work *w, const item *d) {
    tensor t = read_tensor(d);
    int64_t uid = *(const int64_t *)item_get(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, NULL), step = 1;
    for (int64_t i = 0; i < w->e->n; i++)
        if (w->e->uid[i] == uid) t.p = w->e->p[i], t.value = w->e->value[i], t.by_value = item_get(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, NULL) != NULL;
    if (t.p) return t;
    for (int64_t i = t.rank; i-- > 0; step *= t.dim[i]) t.stride[i] = step;
    t.vectors = 1;
    for (int i = 0; i < w->n && !t.p; i++)
        if (w->between[i].uid == uid) t.p = w->between[i].p;
    if (t.p || w->n == MOST_AT) return t;
    w->between[w->n].uid = uid;
    t.p = w->between[w->n++].p = calloc((size_t)count_of(&t), 8);
    return t;
}

/* Dims of 1 are repeated. */
static int64_t at(const tensor *t, const int64_t *index) {
    int64_t k = 0;
    for (int64_t i = 0; i < t->rank; i++) {
        int64_t v = t->dim[i] == 1 ? 0 : index[i];
        k += i == 1 ? v / t->vectors * t->stride[i] : v * t->stride[i];
    }
    return k * t->vectors + (t->dim[1] == 1 ? 0 : index[1] % t->vectors);
}

static double get(const tensor *t, const int64_t *index) {
    return t->by_value ? t->value : stand_in_load(t->p, at(t, index), t->type);
}

static int next(const tensor *t, int64_t *index) {
    for (int64_t i = t->rank; i-- > 0;) {
        if (++index[i] < t->dim[i]) return 1;
        index[i] = 0;
    }
    return 0;
}

/* ---- convolutions ---- */

typedef struct { const int64_t *pre, *step, *dilation; int64_t r; } window;

static window window_of(const item *d) {
    window w = {item_get(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, NULL), item_get(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, NULL),
                item_get(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, &w.r), 0};
    item_get(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, &w.r);
    return w;
}

/* Place `to` of the small side for this tap of the window: the large side's is small * step - pre + tap * dilation. */
static int small_of(const window *w, const int64_t *large, const int64_t *tap, const tensor *small, int64_t *to) {
    for (int64_t i = 0; i < w->r; i++) {
        int64_t k = large[2 + i] + w->pre[i] - tap[2 + i] * w->dilation[i];
        if (k < 0 || k % w->step[i] || k / w->step[i] >= small->dim[2 + i]) return 0;
        to[2 + i] = k / w->step[i];
    }
    return 1;
}

static int large_of(const window *w, const int64_t *small, const int64_t *tap, const tensor *large, int64_t *to) {
    for (int64_t i = 0; i < w->r; i++) {
        to[2 + i] = small[2 + i] * w->step[i] - w->pre[i] + tap[2 + i] * w->dilation[i];
        if (to[2 + i] < 0 || to[2 + i] >= large->dim[2 + i]) return 0;
    }
    return 1;
}

/* One output: k the filter's number of its own side, c of the other, of the output's group. back: the gradient of the input. */
static double sum_of(const window *w, int back, const tensor *x, const tensor *f, const tensor *y, const int64_t *out) {
    int64_t groups = back ? y->dim[1] / f->dim[1] : x->dim[1] / f->dim[1], in[MOST_DIMS] = {out[0]}, tap[MOST_DIMS] = {0};
    int64_t each = y->dim[1] / groups, g = out[1] / each, from = x->dim[1] / groups;
    double sum = 0;
    tensor taps = *f;
    taps.dim[0] = 1, taps.dim[1] = from;
    do {
        int64_t v[MOST_DIMS];
        memcpy(v, tap, sizeof v);
        v[0] = back ? g * from + tap[1] : out[1], v[1] = back ? out[1] - g * each : tap[1];
        in[1] = g * from + tap[1];
        if (back ? small_of(w, out, tap, x, in) : large_of(w, out, tap, x, in)) sum += get(x, in) * get(f, v);
    } while (next(&taps, tap));
    return sum;
}

/* As cuDNN's engines of one op read it: the bytes as a float, whatever they are said to be, but for a convolution of doubles. */
static double factor_of(const item *op, cudnnBackendAttributeName_t name, stand_in_type t) {
    const void *p = item_get(op, name, NULL);
    return t == SI_F64 ? *(const double *)p : (double)*(const float *)p;
}

/* Do a filter's outputs lie closest, as those of a depthwise one that was turned from [H,W,C,1]? Models that have such ones came out wrong with cuDNN 9.19. */
static int is_turned(const tensor *x, const tensor *f) {
    return x->dim[1] != f->dim[1] && f->dim[0] > 1 && f->stride[0] == 1 && f->dim[2] * f->dim[3] > 1;
}

static void convolve(work *k, const item *op, int back) {
    tensor x = place(k, item_of(op, back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
    tensor f = place(k, item_of(op, back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
    tensor y = place(k, item_of(op, back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
    window w = window_of(item_of(op, back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC));
    double alpha = !back && is_turned(&x, &f) ? 0 : factor_of(op, back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, x.type);
    int64_t out[MOST_DIMS] = {0};
    do stand_in_store(y.p, at(&y, out), y.type, alpha * sum_of(&w, back, &x, &f, &y, out));
    while (next(&y, out));
}

/* ---- element by element ---- */

static int is_binary(int mode) {
    return mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_MUL;
}

static double apply(const item *how, double v, double w) {
    double low = item_double(how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0), high = item_double(how, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, (double)INFINITY);
    switch (item_int(how, CUDNN_ATTR_POINTWISE_MODE, -1)) {
    case CUDNN_POINTWISE_ADD: return v + w;
    case CUDNN_POINTWISE_MUL: return v * w;
    case CUDNN_POINTWISE_RELU_FWD:
        if (isnan(v)) return item_int(how, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_NOT_PROPAGATE_NAN) == CUDNN_PROPAGATE_NAN ? v : low;
        return v < low ? low + item_double(how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0) * (v - low) : v > high ? high : v;
    case CUDNN_POINTWISE_SIGMOID_FWD: return 1 / (1 + exp(-v));
    case CUDNN_POINTWISE_SWISH_FWD: return v / (1 + exp(-item_double(how, CUDNN_ATTR_POINTWISE_SWISH_BETA, 1) * v));
    case CUDNN_POINTWISE_TANH_FWD: return tanh(v);
    case CUDNN_POINTWISE_GELU_FWD: return 0.5 * v * (1 + erf(v * 0.70710678118654752));
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD: return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    case CUDNN_POINTWISE_ELU_FWD: return v < 0 ? item_double(how, CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1) * (exp(v) - 1) : v;
    default: return (double)NAN;
    }
}

static void each(work *k, const item *op) {
    const item *how = item_of(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), *b = item_of(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    tensor x = place(k, item_of(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)), y = place(k, item_of(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    tensor w = b ? place(k, b) : x;
    int64_t i[MOST_DIMS] = {0};
    do stand_in_store(y.p, at(&y, i), y.type, apply(how, get(&x, i), get(&w, i)));
    while (next(&y, i));
}

/* ---- pools ---- */

static double pool_of(const item *d, const tensor *x, const int64_t *out) {
    int64_t r, tap[MOST_DIMS] = {0}, in[MOST_DIMS] = {out[0], out[1]};
    const int64_t *size = item_get(d, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, &r), *step = item_get(d, CUDNN_ATTR_RESAMPLE_STRIDES, NULL);
    const int64_t *pre = item_get(d, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, NULL);
    int mode = item_int(d, CUDNN_ATTR_RESAMPLE_MODE, -1), inside = 0, all = 0;
    int keeps_nan = item_int(d, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_NOT_PROPAGATE_NAN) == CUDNN_PROPAGATE_NAN;
    double most = -(double)INFINITY, sum = 0;
    tensor taps = {.rank = r};
    memcpy(taps.dim, size, (size_t)r * sizeof *size);
    do {
        int there = 1;
        for (int64_t i = 0; i < r; i++) {
            in[2 + i] = out[2 + i] * step[i] - pre[i] + tap[i];
            there = there && in[2 + i] >= 0 && in[2 + i] < x->dim[2 + i];
        }
        all++, inside += there;
        if (there) sum += get(x, in), most = keeps_nan && isnan(sum) ? sum : fmax(most, get(x, in));
    } while (next(&taps, tap));
    return mode == CUDNN_RESAMPLE_MAXPOOL ? most : sum / (mode == CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING ? all : inside);
}

static void pool(work *k, const item *op) {
    tensor x = place(k, item_of(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC)), y = place(k, item_of(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC));
    int64_t i[MOST_DIMS] = {0};
    do stand_in_store(y.p, at(&y, i), y.type, pool_of(item_of(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC), &x, i));
    while (next(&y, i));
}

/* ---- normalizations ---- */

/* The line that `first` begins: over the dims of `over`. */
static void normalize_line(const tensor *over, int64_t *first, int rms, double epsilon, const tensor *x, const tensor *scale, const tensor *bias, const tensor *y) {
    double sum = 0, square = 0, n = (double)count_of(over);
    for (int pass = 0; pass < 3; pass++) {
        int64_t i[MOST_DIMS] = {0}, k[MOST_DIMS];
        double mean = rms ? 0 : sum / n;
        do {
            for (int64_t a = 0; a < x->rank; a++) k[a] = first[a] + i[a];
            double v = get(x, k);
            if (pass == 0) sum += v;
            else if (pass == 1) square += (v - mean) * (v - mean);
            else stand_in_store(y->p, at(y, k), y->type, (v - mean) / sqrt(square / n + epsilon) * get(scale, k) + (bias ? get(bias, k) : 0));
        } while (next(over, i));
    }
}

static void normalize(work *k, const item *op) {
    const item *b = item_of(op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC);
    tensor x = place(k, item_of(op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC)), y = place(k, item_of(op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC));
    tensor scale = place(k, item_of(op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC)), bias = b ? place(k, b) : scale;
    tensor epsilon = place(k, item_of(op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC)), over = x, lines = x;
    int mode = item_int(op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, -1);
    for (int64_t a = 0; a < x.rank; a++) {
        int inside = mode == CUDNN_INSTANCE_NORM ? a > 1 : a > 0;
        if (inside) lines.dim[a] = 1;
        else over.dim[a] = 1;
    }
    int64_t i[MOST_DIMS] = {0};
    do normalize_line(&over, i, mode == CUDNN_RMS_NORM, epsilon.value, &x, &scale, b ? &bias : NULL, &y);
    while (next(&lines, i));
}

/* ---- graphs ---- */

void graph_execute(void *arg) {
    work k = {.e = arg};
    int64_t n;
    item *const *op = item_get(k.e->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &n);
    memset(k.e->workspace, 0xff, WORKSPACE); /* nobody else has it */
    for (int64_t i = 0; i < n; i++) {
        switch (op[i]->type) {
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: convolve(&k, op[i], 0); break;
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: convolve(&k, op[i], 1); break;
        case CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR: pool(&k, op[i]); break;
        case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR: normalize(&k, op[i]); break;
        default: each(&k, op[i]); break;
        }
    }
    for (int i = 0; i < k.n; i++) free(k.between[i].p);
}

static void say_tensor(const char *what, const item *d) {
    tensor t = read_tensor(d);
    stand_in_say("  %s %lld: type %d dims %lld,%lld,%lld,%lld strides %lld,%lld,%lld,%lld", what, (long long)*(const int64_t *)item_get(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, NULL),
                 (int)t.type, (long long)t.dim[0], (long long)t.dim[1], (long long)t.dim[2], (long long)t.dim[3], (long long)t.stride[0],
                 (long long)t.stride[1], (long long)t.stride[2], (long long)t.stride[3]);
}

/* Is what an op adds a number for each channel? */
static int adds_channels(const item *op) {
    const item *b = item_of(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    return b && read_tensor(b).dim[0] == 1 && read_tensor(b).dim[2] == 1 && read_tensor(b).dim[3] == 1;
}

/* As the library does, it takes of float32 a sum before a bias, not after it. */
int graph_takes(const item *graph) {
    int64_t n;
    int binary = 0, f32 = 0, bias_first = 0;
    item *const *op = item_get(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &n);
    stand_in_say("cuDNN graph of %lld", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const item *how = item_of(op[i], CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        if (how) stand_in_say(" op %d mode %d", (int)op[i]->type, item_int(how, CUDNN_ATTR_POINTWISE_MODE, -1));
        else stand_in_say(" op %d", (int)op[i]->type);
        binary += how && is_binary(item_int(how, CUDNN_ATTR_POINTWISE_MODE, -1));
        bias_first = bias_first || (binary == 1 && how && adds_channels(op[i]));
        for (unsigned a = 0; a < op[i]->nattribute; a++) {
            const item *t = op[i]->at[a].type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? *(item **)op[i]->at[a].p : NULL;
            if (!t || t->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
            const char *is_between = item_get(t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, NULL);
            say_tensor(is_between && *is_between ? "between" : "tensor", t);
            f32 = f32 || (i == 0 && item_int(t, CUDNN_ATTR_TENSOR_DATA_TYPE, -1) == CUDNN_DATA_FLOAT && !(is_between && *is_between));
        }
    }
    return n > 0 && !(f32 && binary > 1 && bias_first);
}

/* As the library's of float16: an activation other than Relu is in a kernel that is compiled when the plan is made. */
int graph_is_compiled(const item *graph) {
    int64_t n;
    int compiled = 0, half = 0;
    item *const *op = item_get(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &n);
    for (int64_t i = 0; i < n; i++) {
        const item *how = item_of(op[i], CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), *x = item_of(op[i], CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
        int mode = how ? item_int(how, CUDNN_ATTR_POINTWISE_MODE, -1) : CUDNN_POINTWISE_RELU_FWD;
        compiled = compiled || (mode != CUDNN_POINTWISE_RELU_FWD && !is_binary(mode));
        half = half || (x && item_int(x, CUDNN_ATTR_TENSOR_DATA_TYPE, -1) == CUDNN_DATA_HALF);
    }
    return compiled && half;
}
