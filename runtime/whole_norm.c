/* GroupNormalization of one group as PyTorch's exporter writes it:
 *
 *   r = Reshape(x)                            x [n, c, h, w], r [n, 1, c h w]
 *   i = InstanceNormalization(r, scale, bias) of one number each
 *   y = Reshape(i)                            [n, c, h, w]
 *
 * One step: means do not depend on the order of what they are of, so x may lie in any, and y lies as it does. The Reshapes would copy what is
 * channels-last, twice. */
#include "fuse.h"
#include "kernels_fast.h"

static bool is_one_number(const rl_exec *x, rl_value v) {
    const rl_tensor *t = rl_has(v) ? &x->constant[v.i] : NULL;
    return t && t->kind == RL_TENSOR && t->dtype == RL_F32 && t->rank == 1 && t->dim[0] == 1;
}

/* x and y have the same dims, and w has that many of a batch, of one channel each. None is 0. */
static bool is_whole(const rl_exec *x, rl_value from, rl_value middle, rl_value to) {
    const rl_valinfo *v = rl_val(x->g, from), *w = rl_val(x->g, middle), *y = rl_val(x->g, to);
    if (v->rank == RL_NORANK || v->rank < 2 || v->rank > RL_RANK || v->rank != y->rank || v->dtype != RL_F32) return false;
    for (uint32_t i = 0; i < v->rank; i++)
        if (v->dim[i] == 0 || v->dim[i] != y->dim[i]) return false;
    return w->rank != RL_NORANK && w->rank > 2 && w->dim[0] == v->dim[0] && w->dim[1] == 1;
}

static const rl_kernel kernel = {.types = RL_T(RL_F32), .fn = rl_fast_whole_norm};

static void join_at(rl_exec *x, const rl_readers *of, rl_step *first) {
    if (rl_step_fn(first) != rl_ref_reshape) return;
    rl_step *norm = rl_only_reader(x, of, first->info->out[0], rl_fast_instance_norm);
    rl_step *last = norm ? rl_only_reader(x, of, norm->info->out[0], rl_ref_reshape) : NULL;
    if (!last || !is_one_number(x, rl_in(norm->info, 1)) || !is_one_number(x, rl_in(norm->info, 2))) return;
    if (!is_whole(x, first->info->in[0], norm->info->in[0], last->info->out[0])) return;
    rl_nodeinfo *n = rl_copy(&x->g->mem, norm->info, sizeof *n);
    n->in = rl_copy(&x->g->mem, n->in, n->nin * sizeof *n->in);
    n->in[0] = first->info->in[0];
    n->out = last->info->out;
    last->info = n;
    rl_run_by(x, last, &kernel);
    first->info = norm->info = NULL;
}

void rl_join_whole_norms(rl_exec *x) {
    rl_join_each(x, join_at);
}
