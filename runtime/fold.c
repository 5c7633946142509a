/* DepthToSpace as the way in which a convolution by direct loops (direct.h) writes its channels: see fuse.h.
 *
 *   y = Conv(x, w)                  [1, 12, 64, 64]         one step: each pixel's 12 channels are written as 2 x 2 pixels of 3,
 *   z = DepthToSpace(y) blocks of 2 [1, 3, 128, 128]        in two runs of 6 floats.  Of the mode CRD the weights' order changes
 *   r = Clip(z)                                             r = DepthToSpace(Clip(y)), so that the convolution has that, too */
#include <string.h>

#include "fast.h"
#include "fast_conv.h"
#include "fuse.h"
#include "kernels_fast.h"

/* ---- past what is done to each element ---- */

/* Position in the order of the node that alone reads v, if it does the same to each of its elements; RL_NONE: there is none. */
static uint32_t find_unary(const rl_graph *g, const uint32_t *at, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    if (x->is_output || x->nuse != 1 || x->use[0].slot != 0) return RL_NONE;
    const rl_nodeinfo *n = rl_nod(g, x->use[0].node);
    const rl_kernel *k = rl_kernel_find(&rl_backend_fast, n);
    bool fits = k && k->fn == rl_fast_unary && n->nin && n->nout == 1 && rl_has(n->out[0]) && !n->ncap;
    return fits && rl_val(g, n->out[0])->dtype == x->dtype ? at[x->use[0].node.i] : RL_NONE;
}

/* y = fold(x), z = unary(y)  ->  u = unary(x), z = fold(u) */
static void swap(rl_graph *g, rl_node fold, rl_node unary) {
    rl_dim dim[RL_RANK];
    rl_value x = rl_nod(g, fold)->in[0], z = rl_nod(g, unary)->out[0], u = rl_graph_value(g, NULL);
    const rl_valinfo *from = rl_val(g, x);
    uint32_t rank = from->rank;
    rl_dtype type = from->dtype;
    memcpy(dim, from->dim, rank * sizeof *dim);
    rl_graph_set_type(g, u, type, rank, dim);
    rl_graph_set_input(g, unary, 0, x);
    rl_graph_set_output(g, unary, 0, u);
    rl_graph_set_input(g, fold, 0, u);
    rl_graph_set_output(g, fold, 0, z);
}

static bool is_folded_conv(const rl_graph *g, const rl_nodeinfo *n) {
    if (n->op != RL_OP_DepthToSpace || n->nin != 1 || n->nout != 1 || !rl_has(n->in[0]) || !rl_has(n->out[0])) return false;
    rl_node def = rl_val(g, n->in[0])->def;
    return rl_val(g, n->in[0])->rank == 4 && def.i != RL_NONE && rl_nod(g, def)->op == RL_OP_Conv;
}

void rl_sink_folds(rl_graph *g) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    uint32_t *at = rl_new(&tmp, uint32_t, g->nnode);
    for (uint32_t i = 0; i < g->order.n; i++) at[g->order.p[i].i] = i;
    for (uint32_t i = g->order.n; i-- > 0;) { /* the last first: `at` is right of what comes before */
        rl_node fold = g->order.p[i];
        if (!is_folded_conv(g, rl_nod(g, fold))) continue;
        for (uint32_t from = i, to; (to = find_unary(g, at, rl_nod(g, fold)->out[0])) != RL_NONE; from = to) {
            swap(g, fold, g->order.p[to]);
            for (uint32_t k = from; k < to; k++) g->order.p[k] = g->order.p[k + 1], at[g->order.p[k].i] = k;
            g->order.p[to] = fold, at[fold.i] = to;
        }
    }
    rl_arena_free(&tmp);
}

/* ---- one step ---- */

static const rl_kernel kernel = {.types = RL_T(RL_F32), .fn = rl_fast_conv_fold};

/* Blocks that the channels of x can be, all of whose dims are known but perhaps the batch; false: they cannot. */
static bool read_fold(const rl_graph *g, const rl_nodeinfo *n, rl_fold *f) {
    const rl_valinfo *x = rl_val(g, n->in[0]);
    *f = (rl_fold){rl_attr_int(n, "blocksize", 0), rl_attr_is(n, "mode", "CRD")};
    if (n->op != RL_OP_DepthToSpace || x->rank != 4 || x->dtype != RL_F32) return false; /* SpaceToDepth has the same kernel */
    for (uint32_t i = 1; i < 4; i++)
        if (!rl_dim_known(x->dim[i]) || x->dim[i] < 1) return false;
    return f->block > 0 && f->block <= x->dim[1] && x->dim[1] % (f->block * f->block) == 0;
}

/* The convolution stands where the other stood. */
static void join(rl_exec *x, rl_step *conv, rl_step *fold, const rl_fold *f) {
    rl_nodeinfo *n = rl_copy(&x->g->mem, conv->info, sizeof *n);
    rl_node node = fold->node;
    n->out = fold->info->out;
    *fold = *conv;
    fold->node = node;
    fold->info = n;
    fold->fold = rl_copy(&x->g->mem, f, sizeof *f);
    rl_run_by(x, fold, &kernel);
    conv->info = NULL;
}

static void join_at(rl_exec *x, const rl_readers *of, rl_step *s) {
    rl_fold f;
    if (rl_step_fn(s) != rl_fast_conv || !rl_direct_takes_pieces(x, s, false) || rl_attr_int(s->info, "group", 1) > 1) return;
    rl_step *to = rl_only_reader(x, of, s->info->out[0], rl_ref_depth_space);
    if (to && !to->native && read_fold(x->g, to->info, &f)) join(x, s, to, &f);
}

void rl_join_folds(rl_exec *x) {
    rl_join_each(x, join_at);
}
