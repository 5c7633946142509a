/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: minus the (log) probability of each target's class, weighted, summed up. */
#include "lines.h"
#include "ref_softmax.h"

/* One loss per target; the targets' weights. */
typedef struct {
    int64_t n, classes, ignored;
    bool ignores;
    const rl_tensor *scores;                /* n rows of classes */
    const double *weight;                   /* NULL: 1 */
    const int64_t *target;
    double *loss, sum, total;               /* sums of the losses and of the weights */
} losses;

static double score(const losses *l, int64_t i, int64_t class) {
    int64_t at = i * l->classes + class;
    return l->scores->dtype == RL_F64 ? ((const double *)rl_data(l->scores))[at] : (double)((const float *)rl_data(l->scores))[at];
}

static rl_status pick(const rl_call *c, losses *l) {
    for (int64_t i = 0; i < l->n; i++) {
        int64_t t = l->target[i];
        l->loss[i] = 0;
        if (l->ignores && t == l->ignored) continue;
        if (t < 0 || t >= l->classes) return rl_call_fail(c, RL_EMODEL, "target %lld of %lld classes", (long long)t, (long long)l->classes);
        double w = l->weight ? l->weight[t] : 1;
        l->loss[i] = -score(l, i, t) * w;
        l->sum += l->loss[i];
        l->total += w;
    }
    return RL_OK;
}

static rl_status check(const rl_call *c, const rl_tensor *x, const rl_tensor *target) {
    if (x->rank < 2 || target->rank + 1 != x->rank || target->dim[0] != x->dim[0])
        return rl_call_fail(c, RL_EMODEL, "scores of rank %u for targets of rank %u", x->rank, target->rank);
    for (uint32_t i = 2; i < x->rank; i++)
        if (x->dim[i] != target->dim[i - 1]) return rl_call_fail(c, RL_EMODEL, "scores and targets differ in dim %u", i);
    const rl_tensor *w = rl_call_in(c, 2);
    if (w && rl_numel(w) != x->dim[1])
        return rl_call_fail(c, RL_EMODEL, "%lld weights for %lld classes", (long long)rl_numel(w), (long long)x->dim[1]);
    return RL_OK;
}

static void give_sum(rl_call *c, rl_dtype t, double x) {
    rl_tensor *y = rl_call_make(c, 0, t, 0, NULL);
    rl_convert_run((rl_run){t, rl_data(y), 0, 1}, (rl_run){RL_F64, (char *)&x, 0, 1}, 1, true);
}

/* arg: the scores go through a log-softmax first, which is output 1. */
rl_status rl_ref_loss(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *target = rl_call_as(c, 1, RL_I64);
    RL_TRY(check(c, x, target));
    rl_dtype wide = rl_wide_float(x->dtype);
    const rl_tensor *lines = rl_lines_of(c, x, 1, wide);
    if (c->arg) {
        rl_tensor *log = rl_lines_make(c, 1, x->dtype, wide, x->rank, x->dim, 1);
        rl_softmax_rows(c->rt, RL_LOG_SOFTMAX, log, lines, x->dim[1]);
        rl_lines_done(c, 1, log, 1);
        lines = log;
    }
    rl_tensor *loss = rl_call_temp(c, RL_F64, target->rank, target->dim);
    losses l = {.n = rl_numel(target), .classes = x->dim[1], .ignores = rl_attr_find(c->node, "ignore_index") != NULL,
                .ignored = rl_attr_int(c->node, "ignore_index", 0), .scores = lines, .target = rl_data(target), .loss = rl_data(loss)};
    if (rl_call_in(c, 2)) l.weight = rl_data(rl_call_as(c, 2, RL_F64));
    RL_TRY(pick(c, &l));
    if (rl_attr_is(c->node, "reduction", "none")) rl_convert(c->rt, rl_call_make(c, 0, x->dtype, target->rank, target->dim), loss, true);
    else give_sum(c, x->dtype, rl_attr_is(c->node, "reduction", "sum") ? l.sum : l.sum / l.total);
    return RL_OK;
}
