/* What the nodes of LSTM, GRU and RNN say: see recurrent.h. */
#include "recurrent.h"

#include <string.h>
#include <strings.h>

/* ---- activations ---- */

static const struct { const char *name; int nparam; double alpha, beta; } acts[ACT_NOP] = {
    [ACT_RELU] = {"Relu", 0, 0, 0}, [ACT_TANH] = {"Tanh", 0, 0, 0}, [ACT_SIGMOID] = {"Sigmoid", 0, 0, 0},
    [ACT_AFFINE] = {"Affine", 2, 1, 0}, [ACT_LEAKY_RELU] = {"LeakyRelu", 1, 0.01f, 0},
    [ACT_THRESHOLDED_RELU] = {"ThresholdedRelu", 1, 1, 0}, [ACT_SCALED_TANH] = {"ScaledTanh", 2, 1, 1},
    [ACT_HARD_SIGMOID] = {"HardSigmoid", 2, 0.2f, 0.5}, [ACT_ELU] = {"Elu", 1, 1, 0}, [ACT_SOFTSIGN] = {"Softsign", 0, 0, 0},
    [ACT_SOFTPLUS] = {"Softplus", 0, 0, 0}};
static const rl_act_kind defaults[][3] = {
    [RL_LSTM] = {ACT_SIGMOID, ACT_TANH, ACT_TANH}, [RL_GRU] = {ACT_SIGMOID, ACT_TANH, ACT_NOP}, [RL_RNN] = {ACT_TANH, ACT_NOP, ACT_NOP}};
static const uint32_t nact[] = {[RL_LSTM] = 3, [RL_GRU] = 2, [RL_RNN] = 1}, ngate[] = {[RL_LSTM] = 4, [RL_GRU] = 3, [RL_RNN] = 1};

static rl_act_kind act_of(rl_span s) {
    for (int k = 0; k < ACT_NOP; k++)
        if (strlen(acts[k].name) == s.n && strncasecmp(acts[k].name, (const char *)s.p, s.n) == 0) return (rl_act_kind)k;
    return ACT_NOP;
}

/* alpha and beta are lists that the functions which have them take from in turn. */
static rl_status read_activations(const rl_call *c, rl_recurrent_node *r) {
    const rl_attr *names = rl_attr_find(c->node, "activations"), *alpha = rl_attr_find(c->node, "activation_alpha"),
                  *beta = rl_attr_find(c->node, "activation_beta");
    uint32_t ndir = r->ndir, n = nact[c->arg], ialpha = 0, ibeta = 0;
    if ((names && names->kind != RL_ATTR_STRINGS) || (alpha && alpha->kind != RL_ATTR_FLOATS) || (beta && beta->kind != RL_ATTR_FLOATS))
        return rl_call_fail(c, RL_EMODEL, "activations that are no names and numbers");
    if (names && names->n != n * ndir) return rl_call_fail(c, RL_EMODEL, "%u activations, wants %u", names->n, n * ndir);
    for (uint32_t i = 0; i < n * ndir; i++) {
        rl_act_kind k = names ? act_of(names->strings[i]) : defaults[c->arg][i % n];
        if (names && k == ACT_NOP)
            return rl_call_fail(c, RL_EMODEL, "activation '%.*s' is not known", (int)names->strings[i].n,
                    (const char *)names->strings[i].p);
        rl_activation *a = &r->act[i / n][i % n];
        *a = (rl_activation){k, acts[k].alpha, acts[k].beta};
        if (acts[k].nparam > 0 && alpha && ialpha < alpha->n) a->alpha = alpha->floats[ialpha++];
        if (acts[k].nparam > 1 && beta && ibeta < beta->n) a->beta = beta->floats[ibeta++];
    }
    return RL_OK;
}

/* ---- dims ---- */

rl_tensor rl_recurrent_view(const rl_recurrent_node *n, uint32_t i, const rl_tensor *t) {
    static const int64_t swap[] = {1, 0, 2}, turn[] = {0, 2, 1};
    bool has_batch = i == 0 || i == 5 || i == 6, is_weight = i == 1 || i == 2;
    if (t->rank == 3 && n->dynamic && is_weight) return rl_view_transpose(t, turn);
    return has_batch && n->batch_first && t->rank == 3 ? rl_view_transpose(t, swap) : *t;
}

static bool has_dims(const rl_call *c, const rl_recurrent_node *n, uint32_t i, uint32_t rank, int64_t a, int64_t b, int64_t d) {
    int64_t want[3] = {a, b, d};
    if (!rl_call_in(c, i)) return true;
    rl_tensor t = rl_recurrent_view(n, i, rl_call_in(c, i));
    return t.rank == rank && rl_same_bytes(t.dim, want, rank * sizeof *want);
}

static rl_status read_dims(const rl_call *c, rl_recurrent_node *n) {
    const rl_tensor *ends = rl_call_in(c, 4);
    rl_tensor x = rl_recurrent_view(n, 0, rl_call_in(c, 0)), r = rl_recurrent_view(n, 2, rl_call_in(c, 2));
    if (x.rank != 3 || rl_call_in(c, 1)->rank != 3 || r.rank != 3) return rl_call_fail(c, RL_EMODEL, "wants an input and weights of rank 3");
    int64_t d = n->ndir, h = n->hidden = r.dim[2], all = h * ngate[c->arg];
    n->length = x.dim[0], n->batch = x.dim[1], n->input = x.dim[2], n->count = ngate[c->arg];
    bool states = has_dims(c, n, 5, 3, d, n->batch, h) && (c->arg != RL_LSTM || (has_dims(c, n, 6, 3, d, n->batch, h) && has_dims(c, n, 7, 2, d, 3 * h, 0)));
    if (!has_dims(c, n, 1, 3, d, all, n->input) || !has_dims(c, n, 2, 3, d, all, h) || !has_dims(c, n, 3, 2, d, 2 * all, 0) || !states)
        return rl_call_fail(c, RL_EMODEL, "weights, biases or states do not fit %lld directions of %lld", (long long)d, (long long)h);
    if (ends && rl_numel(ends) != n->batch)
        return rl_call_fail(c, RL_EMODEL, "%lld lengths for a batch of %lld", (long long)rl_numel(ends), (long long)n->batch);
    return RL_OK;
}

rl_status rl_recurrent_read(const rl_call *c, rl_recurrent_node *n) {
    RL_TRY(rl_call_need(c, 3));
    *n = (rl_recurrent_node){.ndir = rl_attr_is(c->node, "direction", "bidirectional") ? 2 : 1,
                             .batch_first = rl_attr_int(c->node, "layout", 0) != 0,
                             .reverse = rl_attr_is(c->node, "direction", "reverse"),
                             .dynamic = *c->node->domain != 0,
                             .couples = rl_attr_int(c->node, "input_forget", 0) != 0,
                             .linear = c->arg == RL_GRU && rl_attr_int(c->node, "linear_before_reset", 0),
                             .clip = rl_attr_float(c->node, "clip", 0)};
    RL_TRY(read_dims(c, n));
    return read_activations(c, n);
}
