/* A Gather of one place that is known as a Slice, which is a view: see fuse.h.
 *
 *   q = Gather(x, 0)  [3,49,1,96] -> [49,1,96]      becomes      q = Squeeze(Slice(x, 0 .. 1)) */
#include "fuse.h"

/* The index, from the front; -1: it is not one that is known, or out of range. */
static int64_t place_of(const rl_graph *g, const rl_nodeinfo *n, uint32_t axis, rl_arena *tmp) {
    const int64_t *at;
    uint32_t count;
    rl_dim dim = rl_val(g, n->in[0])->dim[axis];
    if (!rl_const_ints(g, n->in[1], tmp, &at, &count) || count != 1 || !rl_dim_known(dim) || at[0] < -dim || at[0] >= dim) return -1;
    return at[0] < 0 ? at[0] + dim : at[0];
}

/* Numbers alone: what is made of sizes is the host's. */
static bool takes(const rl_graph *g, const rl_nodeinfo *n) {
    if (n->op != RL_OP_Gather || *n->domain || n->nin != 2 || !rl_has(n->in[0]) || !rl_has(n->in[1]) || n->nout != 1 || !rl_has(n->out[0])) return false;
    const rl_valinfo *x = rl_val(g, n->in[0]), *index = rl_val(g, n->in[1]);
    return !x->data && x->rank != RL_NORANK && x->rank <= RL_RANK && index->rank <= 1 && (x->dtype == RL_F32 || x->dtype == RL_F16 || x->dtype == RL_BF16);
}

static void put_slice(rl_graph *g, rl_node node, uint32_t axis, int64_t at) {
    const rl_nodeinfo n = *rl_nod(g, node);
    const rl_valinfo x = *rl_val(g, n.in[0]);
    int64_t ends[] = {at, at + 1, axis};
    rl_value y = n.out[0], in[4] = {n.in[0]}, cut = y;
    bool squeezes = rl_val(g, n.in[1])->rank == 0;
    rl_dim dim[RL_RANK];
    rl_graph_set_output(g, node, 0, rl_graph_value(g, NULL));
    if (squeezes) {
        for (uint32_t i = 0; i < x.rank; i++) dim[i] = i == axis ? 1 : x.dim[i];
        cut = rl_graph_value(g, NULL);
        rl_graph_set_type(g, cut, x.dtype, x.rank, dim);
    }
    for (uint32_t i = 0; i < 3; i++) in[1 + i] = rl_graph_const_i64(g, NULL, 1, &ends[i]);
    rl_graph_add(g, RL_OP_Slice, n.name, 4, in, 1, &cut);
    if (squeezes) rl_graph_add_listed(g, RL_OP_Squeeze, n.name, cut, "axes", 1, &ends[2], NULL, 1, &y);
}

rl_status rl_slice_one_place(rl_graph *g) {
    rl_arena tmp;
    struct { rl_node *p; uint32_t n, cap; } gone = {0};
    if (rl_opset_of(g, rl_internz(g->ctx, "")) < 10) return RL_OK; /* a Slice has its places as attributes */
    rl_arena_init(&tmp, g->ctx);
    for (uint32_t i = 0, n = g->order.n; i < n; i++) { /* what is added comes behind */
        const rl_node node = g->order.p[i];
        const rl_nodeinfo *info = rl_nod(g, node);
        if (!takes(g, info)) continue;
        int64_t rank = rl_val(g, info->in[0])->rank, axis = rl_attr_int(info, "axis", 0);
        axis = axis < 0 ? axis + rank : axis;
        int64_t at = axis >= 0 && axis < rank ? place_of(g, info, (uint32_t)axis, &tmp) : -1;
        if (at < 0) continue;
        put_slice(g, node, (uint32_t)axis, at);
        rl_push(&tmp, gone, node);
    }
    bool *dead = rl_new(&tmp, bool, g->nnode);
    for (uint32_t i = 0; i < gone.n; i++) dead[gone.p[i].i] = true;
    rl_graph_remove_all(g, dead);
    rl_arena_free(&tmp);
    return gone.n ? rl_graph_sort(g) : RL_OK;
}
