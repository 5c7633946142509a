/* ai.onnx.preview.training: one step of Adagrad, Adam, Momentum for each of a node's tensors.
 *
 * Inputs are the rate R, the step number T, then all tensors X, all gradients G, and one or two groups of states; outputs are the
 * groups without G.  All is computed in f64 and rounded once. */
#include <math.h>

#include "element.h"
#include "kernels.h"

typedef struct {
    double rate, step, alpha, beta, epsilon, norm, norm_post, decay;
    bool nesterov;
} settings;

typedef void step_fn(const settings *s, double *x, double g, double *v, double *h);

static void adagrad(const settings *s, double *x, double g, double *h, double *unused) {
    (void)unused;
    g += s->norm * *x;
    *h += g * g;
    *x -= s->rate / (1 + s->step * s->decay) * g / (sqrt(*h) + s->epsilon);
}

static void adam(const settings *s, double *x, double g, double *v, double *h) {
    double rate = s->rate;
    g += s->norm * *x;
    *v = s->alpha * *v + (1 - s->alpha) * g;
    *h = s->beta * *h + (1 - s->beta) * g * g;
    if (s->step > 0) rate *= sqrt(1 - pow(s->beta, s->step)) / (1 - pow(s->alpha, s->step));
    *x = (1 - s->norm_post) * (*x - rate * *v / (sqrt(*h) + s->epsilon));
}

static void momentum(const settings *s, double *x, double g, double *v, double *unused) {
    (void)unused;
    g += s->norm * *x;
    *v = s->alpha * *v + (s->step > 0 ? s->beta : 1) * g;
    *x -= s->rate * (s->nesterov ? g + s->alpha * *v : *v);
}

/* Tensor i of n. group: X, G and the states. */
static rl_status step_tensor(rl_call *c, const settings *s, step_fn *fn, uint32_t i, uint32_t n, uint32_t ngroup) {
    rl_tensor *t[4];
    double unused = 0, *p[4] = {NULL, NULL, NULL, &unused};
    for (uint32_t k = 0; k < ngroup; k++) {
        const rl_tensor *in = rl_call_as(c, 2 + k * n + i, RL_F64);
        if (!rl_same_dims(in, rl_call_in(c, 2 + i))) return rl_call_fail(c, RL_EMODEL, "input %u has another shape", 2 + k * n + i);
        t[k] = rl_call_temp(c, RL_F64, in->rank, in->dim);
        rl_tensor_move(c->rt, t[k], in);
        p[k] = rl_data(t[k]);
    }
    for (int64_t e = 0; e < rl_numel(t[0]); e++) fn(s, &p[0][e], p[1][e], &p[2][e], ngroup == 4 ? &p[3][e] : &unused);
    for (uint32_t k = 0, out = 0; k < ngroup; k++) {
        if (k == 1) continue;
        rl_tensor *y = rl_call_make(c, out++ * n + i, rl_call_in(c, 2 + k * n + i)->dtype, t[k]->rank, t[k]->dim);
        rl_convert(c->rt, y, t[k], true);
    }
    return RL_OK;
}

static rl_status train(rl_call *c, step_fn *fn, uint32_t ngroup, float alpha, float beta) {
    const rl_nodeinfo *n = c->node;
    settings s = {.alpha = (double)rl_attr_float(n, "alpha", alpha), .beta = (double)rl_attr_float(n, "beta", beta),
                  .epsilon = (double)rl_attr_float(n, "epsilon", 1e-6f), .norm = (double)rl_attr_float(n, "norm_coefficient", 0),
                  .norm_post = (double)rl_attr_float(n, "norm_coefficient_post", 0), .decay = (double)rl_attr_float(n, "decay_factor", 0),
                  .nesterov = rl_attr_is(n, "mode", "nesterov")};
    RL_TRY(rl_call_need(c, c->nin));
    uint32_t count = c->nin > 2 ? (c->nin - 2) / ngroup : 0;
    if (!count || c->nin != 2 + count * ngroup || c->nout != count * (ngroup - 1))
        return rl_call_fail(c, RL_EMODEL, "%u inputs and %u outputs", c->nin, c->nout);
    RL_TRY(rl_call_float(c, 0, 0, &s.rate));
    RL_TRY(rl_call_float(c, 1, 0, &s.step));
    for (uint32_t i = 0; i < count; i++) RL_TRY(step_tensor(c, &s, fn, i, count, ngroup));
    return RL_OK;
}

rl_status rl_ref_adagrad(rl_call *c) {
    return train(c, adagrad, 3, 0, 0);
}

rl_status rl_ref_adam(rl_call *c) {
    return train(c, adam, 4, 0.9f, 0.999f);
}

rl_status rl_ref_momentum(rl_call *c) {
    return train(c, momentum, 3, 0, 0);
}
