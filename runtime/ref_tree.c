/* ai.onnx.ml's TreeEnsemble. */
#include <float.h>
#include <math.h>

#include "kernels.h"

enum { LESS_EQUAL, LESS, GREATER_EQUAL, GREATER, EQUAL, NOT_EQUAL, MEMBER };
enum { AVERAGE, SUM, LEAST, MOST };

typedef struct {
    int64_t nnode, nleaf, nmember;
    const double *split, *weight, *member;
    const uint8_t *mode;
    const int64_t *feature, *yes, *no, *yes_leaf, *no_leaf, *missing_yes, *target, *root;
    uint32_t nroot;
    int64_t *first_member; /* of a node: where its set starts in member */
    int64_t ntarget, how;
} forest;

static rl_status tensor_as(rl_call *c, const char *name, rl_dtype t, const void **x, int64_t *n) {
    const rl_tensor *a;
    RL_TRY(rl_call_tensor(c, name, &a));
    *x = NULL;
    *n = 0;
    if (!a) return RL_OK;
    if (a->dtype == RL_STRING) return rl_call_fail(c, RL_EMODEL, "attribute '%s' is no tensor of numbers", name);
    rl_tensor *y = rl_call_temp(c, t, a->rank, a->dim);
    rl_convert(c->rt, y, a, true);
    *x = rl_data(y);
    *n = rl_numel(y);
    return RL_OK;
}

/* n integers; left out only where that is allowed. */
static rl_status ints(rl_call *c, const char *name, int64_t n, bool optional, const int64_t **x) {
    uint32_t had;
    RL_TRY(rl_call_ints(c, name, RL_NONE, x, &had));
    if (had == n || (optional && !had)) return RL_OK;
    return rl_call_fail(c, RL_EMODEL, "attribute '%s' has %u elements, wants %lld", name, had, (long long)n);
}

static rl_status read_nodes(rl_call *c, forest *f) {
    int64_t n;
    const void *p;
    RL_TRY(tensor_as(c, "nodes_modes", RL_U8, &p, &f->nnode));
    f->mode = p;
    RL_TRY(tensor_as(c, "nodes_splits", RL_F64, &p, &n));
    f->split = p;
    if (n != f->nnode) return rl_call_fail(c, RL_EMODEL, "as many splits as modes are wanted");
    RL_TRY(tensor_as(c, "leaf_weights", RL_F64, &p, &f->nleaf));
    f->weight = p;
    RL_TRY(tensor_as(c, "membership_values", RL_F64, &p, &f->nmember));
    f->member = p;
    RL_TRY(ints(c, "nodes_featureids", f->nnode, false, &f->feature));
    RL_TRY(ints(c, "nodes_truenodeids", f->nnode, false, &f->yes));
    RL_TRY(ints(c, "nodes_falsenodeids", f->nnode, false, &f->no));
    RL_TRY(ints(c, "nodes_trueleafs", f->nnode, false, &f->yes_leaf));
    RL_TRY(ints(c, "nodes_falseleafs", f->nnode, false, &f->no_leaf));
    RL_TRY(ints(c, "nodes_missing_value_tracks_true", f->nnode, true, &f->missing_yes));
    RL_TRY(ints(c, "leaf_targetids", f->nleaf, false, &f->target));
    return rl_call_ints(c, "tree_roots", RL_NONE, &f->root, &f->nroot);
}

static rl_status check_nodes(rl_call *c, forest *f, int64_t nfeature) {
    int64_t at = 0;
    bool good = f->ntarget >= 0;
    f->first_member = rl_new(c->tmp, int64_t, f->nnode);
    for (int64_t i = 0; i < f->nnode && good; i++) {
        good = f->mode[i] <= MEMBER && f->feature[i] >= 0 && f->feature[i] < nfeature && f->yes[i] >= 0 && f->no[i] >= 0
               && f->yes[i] < (f->yes_leaf[i] ? f->nleaf : f->nnode) && f->no[i] < (f->no_leaf[i] ? f->nleaf : f->nnode);
        if (f->mode[i] != MEMBER) continue;
        f->first_member[i] = at; /* each set ends with a NaN */
        while (at < f->nmember && !isnan(f->member[at])) at++;
        good = good && at++ < f->nmember;
    }
    for (int64_t i = 0; i < f->nleaf && good; i++) good = f->target[i] >= 0 && f->target[i] < f->ntarget;
    for (uint32_t i = 0; i < f->nroot && good; i++) good = f->root[i] >= 0 && f->root[i] < f->nnode;
    return good ? RL_OK : rl_call_fail(c, RL_EMODEL, "a node, leaf or root is out of range");
}

static bool takes_yes(const forest *f, int64_t node, double x) {
    double s = f->split[node];
    if (isnan(x) && f->missing_yes && f->missing_yes[node]) return true;
    switch (f->mode[node]) {
    case LESS_EQUAL: return x <= s;
    case LESS: return x < s;
    case GREATER_EQUAL: return x >= s;
    case GREATER: return x > s;
    case EQUAL: return x == s;
    case NOT_EQUAL: return x != s;
    default: break;
    }
    for (const double *m = f->member + f->first_member[node]; !isnan(*m); m++)
        if (*m == x) return true;
    return false;
}

/* The leaf that x falls to; -1: the tree has a loop. */
static int64_t find_leaf(const forest *f, int64_t node, const double *x) {
    for (int64_t steps = 0; steps < f->nnode; steps++) {
        bool yes = takes_yes(f, node, x[f->feature[node]]);
        int64_t next = yes ? f->yes[node] : f->no[node];
        if (yes ? f->yes_leaf[node] : f->no_leaf[node]) return next;
        node = next;
    }
    return -1;
}

static rl_status vote(rl_call *c, const forest *f, const double *x, double *y) {
    for (uint32_t r = 0; r < f->nroot; r++) {
        int64_t leaf = find_leaf(f, f->root[r], x);
        if (leaf < 0) return rl_call_fail(c, RL_EMODEL, "tree %u has a loop", r);
        double *to = &y[f->target[leaf]], w = f->weight[leaf];
        if (f->how == SUM) *to += w;
        else if (f->how == AVERAGE) *to += w / f->nroot;
        else if (f->how == LEAST) *to = RL_MIN(*to, w);
        else *to = RL_MAX(*to, w);
    }
    return RL_OK;
}

rl_status rl_ref_tree_ensemble(rl_call *c) {
    forest f = {.ntarget = rl_attr_int(c->node, "n_targets", 1), .how = rl_attr_int(c->node, "aggregate_function", SUM)};
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *in = rl_call_in(c, 0), *x = rl_call_as(c, 0, RL_F64);
    if (x->rank != 2) return rl_call_fail(c, RL_EMODEL, "rank %u, wants 2", x->rank);
    if (rl_attr_int(c->node, "post_transform", 0)) return rl_call_fail(c, RL_ELIMIT, "no post_transform runs");
    if (f.how < AVERAGE || f.how > MOST) return rl_call_fail(c, RL_EMODEL, "unknown aggregate_function");
    RL_TRY(read_nodes(c, &f));
    RL_TRY(check_nodes(c, &f, x->dim[1]));
    const int64_t dim[2] = {x->dim[0], f.ntarget};
    RL_TRY(rl_call_dims(c, 2, dim));
    rl_tensor *y = rl_call_make(c, 0, in->dtype, 2, dim), *sum = rl_call_temp(c, RL_F64, 2, dim);
    double largest = in->dtype == RL_F64 ? DBL_MAX : in->dtype == RL_F16 ? 65504 : (double)FLT_MAX;
    double first = f.how == LEAST ? largest : f.how == MOST ? -largest : 0;
    rl_fill(c->rt, sum, &first);
    const double *row = rl_data(x);
    for (int64_t i = 0; i < dim[0]; i++) RL_TRY(vote(c, &f, row + i * x->dim[1], (double *)rl_data(sum) + i * f.ntarget));
    rl_convert(c->rt, y, sum, true);
    return RL_OK;
}
