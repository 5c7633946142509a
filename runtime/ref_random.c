/* Random numbers: the Mersenne Twister MT19937 with a seed, as NumPy's RandomState(seed) has it, so that seeded nodes give what the
 * ONNX reference evaluator gives.  A node without a seed takes the run's next number as its seed: every run gives the same. */
#include <math.h>

#include "kernels.h"

enum { MT_N = 624, MT_M = 397 };
typedef struct { uint32_t key[MT_N], at; double second; bool has_second; } twister;

static void twister_start(twister *m, uint32_t seed) {
    *m = (twister){.at = MT_N};
    for (uint32_t i = 0; i < MT_N; i++) {
        m->key[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + i + 1;
    }
}

static void twister_next_block(twister *m) {
    for (uint32_t i = 0; i < MT_N; i++) {
        uint32_t y = (m->key[i] & 0x80000000u) | (m->key[(i + 1) % MT_N] & 0x7fffffffu);
        m->key[i] = m->key[(i + MT_M) % MT_N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    m->at = 0;
}

static uint32_t twister_bits(twister *m) {
    if (m->at == MT_N) twister_next_block(m);
    uint32_t y = m->key[m->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

static double uniform(twister *m) {
    uint32_t a = twister_bits(m) >> 5, b = twister_bits(m) >> 6;
    return (a * 67108864.0 + b) / 9007199254740992.0;
}

/* Two at a time, by the polar method. */
static double normal(twister *m) {
    double x, y, r;
    m->has_second = !m->has_second;
    if (!m->has_second) return m->second;
    do {
        x = 2 * uniform(m) - 1;
        y = 2 * uniform(m) - 1;
        r = x * x + y * y;
    } while (r >= 1 || r == 0);
    double f = sqrt(-2 * log(r) / r);
    m->second = f * x;
    return f * y;
}

/* The seed attribute is a float, Dropout's an integer. */
static void start(const rl_call *c, twister *m) {
    const rl_attr *a = rl_attr_find(c->node, "seed");
    double f = a && a->kind == RL_ATTR_FLOAT ? (double)a->f : 0;
    int64_t seed = a && a->kind == RL_ATTR_INT ? a->i : fabs(f) < 0x1p62 ? (int64_t)f : 0;
    twister_start(m, (uint32_t)(a ? (uint64_t)seed : c->rt->random++));
}

/* ---- Random* ---- */

static rl_status fill_random(rl_call *c, rl_dtype t, uint32_t rank, const int64_t *dim) {
    twister m;
    const rl_nodeinfo *n = c->node;
    double scale = rl_attr_float(n, "scale", 1), mean = rl_attr_float(n, "mean", 0), low = rl_attr_float(n, "low", 0),
           high = rl_attr_float(n, "high", 1);
    if (!(RL_T(t) & RL_FLOATS)) return rl_call_fail(c, RL_ELIMIT, "no random numbers of type %s", rl_dtype_name(t));
    rl_tensor *y = rl_call_make(c, 0, t, rank, dim), *wide = rl_call_temp(c, RL_F64, rank, dim);
    double *x = rl_data(wide);
    start(c, &m);
    for (int64_t i = 0, count = rl_numel(wide); i < count; i++) x[i] = c->arg ? normal(&m) * scale + mean : uniform(&m) * (high - low) + low;
    rl_convert(c->rt, y, wide, true);
    return RL_OK;
}

rl_status rl_ref_random(rl_call *c) {
    const int64_t *dim;
    uint32_t rank;
    RL_TRY(rl_call_ints(c, "shape", RL_NONE, &dim, &rank));
    RL_TRY(rl_call_dims(c, rank, dim));
    return fill_random(c, rl_attr_dtype(c->node, "dtype", RL_F32), rank, dim);
}

static rl_dtype type_like(const rl_call *c) {
    return rl_attr_dtype(c->node, "dtype", rl_call_in(c, 0)->dtype);
}

rl_status rl_ref_random_like(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    return fill_random(c, type_like(c), rl_call_in(c, 0)->rank, rl_call_in(c, 0)->dim);
}

/* ---- draws ---- */

/* NumPy's binomial(1, p), which inverts the smaller of p and 1-p. */
static bool coin(twister *m, double p) {
    double x = uniform(m);
    return p <= 0.5 ? x > 1 - p : x <= p;
}

rl_status rl_ref_bernoulli(rl_call *c) {
    twister m;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_as(c, 0, RL_F64);
    rl_dtype t = type_like(c);
    if (!(RL_T(t) & (RL_NUMBERS | RL_T(RL_BOOL)))) return rl_call_fail(c, RL_ELIMIT, "no draws of type %s", rl_dtype_name(t));
    rl_tensor *y = rl_call_make(c, 0, t, x->rank, x->dim), *draw = rl_call_temp(c, RL_BOOL, x->rank, x->dim);
    start(c, &m);
    for (int64_t i = 0, n = rl_numel(x); i < n; i++) ((bool *)rl_data(draw))[i] = coin(&m, ((const double *)rl_data(x))[i]);
    rl_convert(c->rt, y, draw, true);
    return RL_OK;
}

/* The class whose part of the probabilities' sum a uniform number falls in; x: logarithms, not normalized. */
static int64_t draw_class(twister *m, const double *x, int64_t n, double most, double sum) {
    double left = uniform(m) * sum;
    int64_t k = 0;
    for (; k + 1 < n; k++) {
        left -= exp(x[k] - most);
        if (left < 0) break;
    }
    return k;
}

rl_status rl_ref_multinomial(rl_call *c) {
    twister m;
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_as(c, 0, RL_F64);
    rl_dtype t = rl_attr_dtype(c->node, "dtype", RL_I32);
    int64_t nsample = rl_attr_int(c->node, "sample_size", 1);
    if (x->rank != 2 || x->dim[1] < 1 || nsample < 1) return rl_call_fail(c, RL_EMODEL, "wants rows of classes and samples");
    if (t != RL_I32 && t != RL_I64) return rl_call_fail(c, RL_EMODEL, "no draws of type %s", rl_dtype_name(t));
    const int64_t dim[2] = {x->dim[0], nsample};
    RL_TRY(rl_call_dims(c, 2, dim));
    rl_tensor *y = rl_call_make(c, 0, t, 2, dim), *draw = rl_call_temp(c, RL_I64, 2, dim);
    start(c, &m);
    for (int64_t b = 0; b < dim[0]; b++) {
        const double *row = (const double *)rl_data(x) + b * x->dim[1];
        double most = row[0], sum = 0;
        for (int64_t k = 1; k < x->dim[1]; k++) most = RL_MAX(most, row[k]);
        for (int64_t k = 0; k < x->dim[1]; k++) sum += exp(row[k] - most);
        for (int64_t i = 0; i < nsample; i++) ((int64_t *)rl_data(draw))[b * nsample + i] = draw_class(&m, row, x->dim[1], most, sum);
    }
    rl_convert(c->rt, y, draw, true);
    return RL_OK;
}

/* ---- Dropout ---- */

static void put_mask(rl_call *c, const bool *kept) {
    const rl_tensor *x = rl_call_in(c, 0);
    bool one = true;
    rl_tensor *mask = rl_call_make(c, 1, c->node->since < 10 ? x->dtype : RL_BOOL, x->rank, x->dim), all;
    rl_tensor t = rl_tensor_borrow(c->rt, RL_BOOL, kept ? x->rank : 0, x->dim, kept ? kept : &one, kept ? (size_t)rl_numel(x) : 1);
    rl_view_expand(&t, mask->rank, mask->dim, &all);
    rl_convert(c->rt, mask, &all, true);
    rl_tensor_drop(&t);
}

static rl_status drop_some(rl_call *c, double ratio) {
    twister m;
    const rl_tensor *x = rl_call_in(c, 0);
    rl_tensor *wide = rl_call_temp(c, RL_F64, x->rank, x->dim), *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    bool *kept = rl_new(c->tmp, bool, rl_numel(x));
    double *p = rl_data(wide);
    if (!(ratio >= 0 && ratio < 1)) return rl_call_fail(c, RL_EMODEL, "a ratio of %g", ratio);
    start(c, &m);
    rl_convert(c->rt, wide, x, true);
    for (int64_t i = 0, n = rl_numel(x); i < n; i++) {
        kept[i] = uniform(&m) >= ratio;
        p[i] = kept[i] ? p[i] / (1 - ratio) : 0;
    }
    rl_convert(c->rt, y, wide, true);
    if (rl_call_wants(c, 1)) put_mask(c, kept);
    return RL_OK;
}

/* Without training the output is the input, and the mask is all true. Before opset 7 it trains unless the node says otherwise. */
rl_status rl_ref_dropout(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *training = rl_call_as(c, 2, RL_BOOL), *ratio = rl_call_as(c, 1, RL_F64);
    if ((training && !rl_numel(training)) || (ratio && !rl_numel(ratio))) return rl_call_fail(c, RL_EMODEL, "an empty ratio or mode");
    double r = ratio ? *(const double *)rl_data(ratio) : (double)rl_attr_float(c->node, "ratio", 0.5f);
    bool trains = c->node->since < 7 ? !rl_attr_int(c->node, "is_test", 0) : training && rl_is_true(training, 0);
    if (trains && r != 0) return drop_some(c, r);
    rl_call_share(c, 0, *rl_call_in(c, 0));
    if (rl_call_wants(c, 1)) put_mask(c, NULL);
    return RL_OK;
}
