/* See model_run.h. */
#include "model_run.h"

#include <math.h>
#include <string.h>

#include "../../runtime/kernels.h"
#include "../../runtime/run_cmd.h"
#include "../../src/fix.h"
#include "model.h"

enum { SHAKEN = 4, MARGIN = 16 };

typedef struct {
    rl_rt *rt;
    rl_graph *g[2];
    uint64_t seed, state;
    bool foreign;
    model_ran ran;
} pair;

static uint64_t next_number(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Binary digits of the type's numbers; 0: no float. */
static int digits_of(rl_dtype t) {
    return t == RL_F32 ? 24 : t == RL_F64 ? 53 : t == RL_F16 ? 11 : t == RL_BF16 ? 8 : 0;
}

/* ---- inputs ---- */

static void random_strings(const pair *p, uint64_t *state, rl_tensor *t) {
    static const char *const word[] = {"a", "B b", "", "1", "-2.5", "the cat"};
    rl_str *s = rl_data(t);
    for (int64_t i = 0; i < rl_numel(t); i++) s[i] = rl_internz(p->rt->ctx, word[next_number(state) % RL_LEN(word)]);
}

static rl_tensor random_input(const pair *p, const rl_valinfo *x, uint64_t *state) {
    int64_t dim[RL_RANK];
    for (uint32_t i = 0; i < x->rank; i++) dim[i] = rl_dim_known(x->dim[i]) ? x->dim[i] : model_size_of(rl_dim_name(p->rt->ctx, x->dim[i]));
    rl_tensor t = rl_tensor_new(p->rt, x->dtype, x->rank, dim);
    if (x->dtype == RL_STRING) {
        random_strings(p, state, &t);
        return t;
    }
    rl_tensor wide = rl_tensor_new(p->rt, RL_F64, x->rank, dim);
    double *v = rl_data(&wide), least = digits_of(x->dtype) || x->dtype == RL_I8 || x->dtype == RL_I32 || x->dtype == RL_I64 ? -4 : 0;
    double unit = digits_of(x->dtype) && p->seed % 2 ? 0.25 : 1;
    uint64_t most = x->dtype == RL_BOOL ? 2 : 9;
    for (int64_t i = 0; i < rl_numel(&wide); i++) v[i] = unit * (least + (double)(next_number(state) % most));
    rl_convert(p->rt, &t, &wide, true);
    rl_tensor_drop(&wide);
    return t;
}

static rl_tensor *make_inputs(const pair *p, const rl_graph *g) {
    rl_tensor *in = rl_new(&p->g[0]->mem, rl_tensor, g->input.n + 1);
    for (uint32_t i = 0; i < g->input.n; i++) {
        const rl_valinfo *x = rl_val(g, g->input.p[i]);
        uint64_t state = p->seed ^ rl_hash_bytes(x->name, strlen(x->name));
        in[i] = random_input(p, x, &state);
    }
    return in;
}

/* ---- differences ---- */

/* Infinity as the largest number: a rounding may end at either. */
static double bounded(rl_dtype t, double x) {
    double most = t == RL_F16 ? 65504 : t == RL_F32 || t == RL_BF16 ? 0x1p128 : INFINITY;
    return isinf(x) ? copysign(most, x) : x;
}

/* The largest difference, infinite where one is no number or of another kind; *size becomes the largest finite number of a. */
static double difference(rl_rt *rt, const rl_tensor *a, const rl_tensor *b, double *size) {
    double worst = 0;
    if (a->kind != b->kind || a->dtype != b->dtype || (a->kind != RL_ABSENT && !rl_same_dims(a, b))) return INFINITY;
    if (a->kind != RL_TENSOR) return 0;
    rl_tensor x = a->dtype == RL_STRING ? rl_contiguous(rt, a) : rl_tensor_new(rt, RL_F64, a->rank, a->dim);
    rl_tensor y = a->dtype == RL_STRING ? rl_contiguous(rt, b) : rl_tensor_new(rt, RL_F64, a->rank, a->dim);
    if (a->dtype != RL_STRING) rl_convert(rt, &x, a, true), rl_convert(rt, &y, b, true);
    for (int64_t i = 0; i < rl_numel(&x); i++) {
        if (a->dtype == RL_STRING) {
            if (((rl_str *)rl_data(&x))[i] != ((rl_str *)rl_data(&y))[i]) worst = INFINITY;
            continue;
        }
        double u = bounded(a->dtype, ((double *)rl_data(&x))[i]), v = bounded(a->dtype, ((double *)rl_data(&y))[i]);
        if (isfinite(u)) *size = fmax(*size, fabs(u));
        if (u == v || (isnan(u) && isnan(v))) continue;
        worst = isfinite(u) && isfinite(v) ? fmax(worst, fabs(u - v)) : INFINITY;
    }
    rl_tensor_drop(&x);
    rl_tensor_drop(&y);
    return worst;
}

/* What rounding once may make of numbers of this size. */
static double rounding(rl_dtype t, double size) {
    return digits_of(t) ? ldexp(size, 1 - digits_of(t)) : 0;
}

/* ---- running ---- */

/* Changes what is not exact in its last digits. */
static rl_status shake(void *user, const rl_graph *g, rl_value v, const rl_tensor *t) {
    pair *p = user;
    int digits = t->kind == RL_TENSOR ? digits_of(t->dtype) : 0;
    (void)g, (void)v;
    if (!digits || t->mem->borrowed || (t->mem->base && t->mem->base->borrowed)) return RL_OK;
    rl_tensor wide = rl_tensor_new(p->rt, RL_F64, t->rank, t->dim);
    rl_convert(p->rt, &wide, t, true);
    double *x = rl_data(&wide);
    for (int64_t i = 0; i < rl_numel(&wide); i++) {
        bool exact = !isfinite(x[i]) || (x[i] == rint(x[i]) && fabs(x[i]) < ldexp(1, digits - 1));
        double by = (double)(int64_t)next_number(&p->state) * 0x1p-62; /* -2 .. 2 */
        if (!exact) x[i] += by * ldexp(fabs(x[i]), 1 - digits);
    }
    rl_convert(p->rt, t, &wide, true);
    rl_tensor_drop(&wide);
    return RL_OK;
}

static rl_status run(pair *p, uint32_t which, rl_tensor *out) {
    rl_exec *x;
    rl_graph *g = p->g[which];
    RL_TRY(rl_exec_new(p->rt, g, &x));
    return rl_exec_run(x, make_inputs(p, g), out);
}

/* The most that an output of a changes when a is shaken; and its rounding. */
static rl_status noise_of(pair *p, const rl_tensor *a, double *noise) {
    uint32_t n = p->g[0]->output.n;
    rl_tensor *out = rl_new(&p->g[0]->mem, rl_tensor, n + 1);
    p->rt->watch = shake;
    p->rt->user = p;
    for (uint32_t k = 0; k < SHAKEN; k++) {
        p->state = p->seed + k;
        rl_status s = run(p, 0, out);
        for (uint32_t i = 0; i < n; i++) {
            double size = 0, d = s == RL_OK ? difference(p->rt, &a[i], &out[i], &size) : INFINITY;
            noise[i] = fmax(noise[i], fmax(d, rounding(a[i].dtype, size)));
        }
    }
    p->rt->watch = NULL;
    return RL_OK;
}

static rl_status judge(pair *p, const rl_tensor *a, const rl_tensor *b) {
    uint32_t n = p->g[0]->output.n;
    double *noise = NULL, size = 0;
    for (uint32_t i = 0; i < n; i++) {
        double d = difference(p->rt, &a[i], &b[i], &size);
        if (d <= 0) continue;
        if (!noise) {
            noise = rl_new(&p->g[0]->mem, double, n);
            RL_TRY(noise_of(p, a, noise));
        }
        bool whole = !digits_of(a[i].dtype); /* one jump of these is as good as another */
        if (whole ? noise[i] > 0 : d <= MARGIN * noise[i]) continue;
        rl_str name = rl_val(p->g[0], p->g[0]->output.p[i])->name;
        return rl_fail(p->rt->ctx, RL_EDIFFER, "output '%.100s' (%s): differs by %g, rounding makes %g", name,
                       rl_dtype_name(a[i].dtype), d, noise[i]);
    }
    return RL_OK;
}

static rl_status run_pair(rl_rt *rt, rl_graph *g, const rl_runopt *o, void *arg) {
    pair *p = arg;
    (void)o;
    p->rt = rt;
    p->ran = MODEL_NOT_RUN;
    rl_tensor *a = rl_new(&g->mem, rl_tensor, g->output.n + 1), *b = rl_new(&g->mem, rl_tensor, g->output.n + 1);
    if (p->g[0]->output.n != p->g[1]->output.n || p->g[0]->input.n != p->g[1]->input.n)
        return rl_fail(g->ctx, RL_EDIFFER, "another interface");
    if (run(p, 0, a) != RL_OK) return RL_OK;
    rl_status s = run(p, 1, b);
    if (s == RL_ELIMIT && p->foreign) return RL_OK;
    if (s != RL_OK) return s;
    p->ran = MODEL_RAN;
    return judge(p, a, b);
}

rl_status model_compare(rl_graph *a, rl_graph *b, uint64_t seed, bool foreign, model_ran *ran) {
    pair p = {.g = {a, b}, .seed = seed, .foreign = foreign};
    rl_status s = rl_with_rt(a, &(rl_runopt){.reference = true}, false, run_pair, &p);
    *ran = p.ran;
    return s;
}
