/* Average pools of one pixel, which only leave out pixels, in the strides of the 1 x 1 convolutions that read them: see fuse.h.
 *
 *   p = Pad(x) by 0 0 .. 1 1            NASNet's reductions: every other pixel, from the second on
 *   s = Slice(p) from 1 1                                s = Slice(x) from 1 1
 *   a = AveragePool(s) 1 x 1, strides 2 2   becomes      p = Pad(s) by 0 0 .. 1 1
 *   y = Conv(a, w) 1 x 1                                 y = Conv(p, w) 1 x 1, strides 2 2
 *
 * A Slice is a view in a run, and the convolution takes the Pad into its own pads (fuse.c). */
#include <string.h>

#include "fuse.h"

/* A window of one pixel, without pads, over r spatial dims; kernel: where the attribute is missing. */
static bool is_one_pixel(const rl_graph *g, const rl_nodeinfo *n, uint32_t r, rl_value kernel) {
    const rl_attr *size = rl_attr_ints(n, "kernel_shape"), *step = rl_attr_ints(n, "strides");
    const rl_valinfo *k = rl_has(kernel) ? rl_val(g, kernel) : NULL;
    if (size ? size->n != r || !rl_attr_all(n, "kernel_shape", 1) : !k || k->rank != r + 2) return false;
    for (uint32_t i = 2; !size && i < r + 2; i++)
        if (k->dim[i] != 1) return false;
    for (uint32_t i = 0; step && i < step->n; i++)
        if (step->ints[i] < 1 || step->ints[i] > INT32_MAX) return false;
    if ((step && step->n != r) || !rl_attr_all(n, "pads", 0) || rl_attr_int(n, "ceil_mode", 0)) return false;
    return !rl_attr_find(n, "auto_pad") || rl_attr_is(n, "auto_pad", "NOTSET") || rl_attr_is(n, "auto_pad", "VALID");
}

static int64_t stride_of(const rl_nodeinfo *n, uint32_t i) {
    const rl_attr *a = rl_attr_ints(n, "strides");
    return a ? a->ints[i] : 1;
}

static bool reads_one_pixel(const rl_graph *g, const rl_use *use, uint32_t r) {
    const rl_nodeinfo *n = rl_nod(g, use->node);
    return n->op == RL_OP_Conv && use->slot == 0 && n->nin >= 2 && is_one_pixel(g, n, r, n->in[1]);
}

static void set_strides(rl_graph *g, rl_node conv, const rl_nodeinfo *pool, uint32_t r, rl_arena *tmp) {
    const rl_nodeinfo *n = rl_nod(g, conv);
    rl_attr *attr = rl_new(tmp, rl_attr, n->nattr + 1);
    int64_t step[RL_RANK];
    uint32_t count = 0;
    for (uint32_t i = 0; i < r; i++) step[i] = stride_of(n, i) * stride_of(pool, i);
    for (uint32_t i = 0; i < n->nattr; i++)
        if (n->attr[i].name != rl_internz(g->ctx, "strides")) attr[count++] = n->attr[i];
    attr[count++] = rl_attr_of_ints(g, "strides", step, r);
    rl_graph_set_attrs(g, conv, attr, count);
}

/* All readers are such convolutions: they read what the pool reads. */
static bool join_pool(rl_graph *g, rl_node node, rl_arena *tmp) {
    const rl_nodeinfo *n = rl_nod(g, node);
    const rl_valinfo *y = rl_val(g, n->out[0]);
    if (y->rank == RL_NORANK || y->rank < 3 || y->rank > RL_RANK || y->is_output || !y->nuse || !is_one_pixel(g, n, y->rank - 2, RL_NOVALUE)) return false;
    for (uint32_t i = 0; i < y->nuse; i++)
        if (!reads_one_pixel(g, &y->use[i], y->rank - 2)) return false;
    for (uint32_t i = 0; i < y->nuse; i++) set_strides(g, y->use[i].node, n, y->rank - 2, tmp);
    rl_graph_replace_uses(g, n->out[0], n->in[0]);
    return true;
}

/* Of dims of x that are all known: from *from on, to the end, one after the other. */
static bool cuts_front(const rl_graph *g, const rl_nodeinfo *n, const rl_valinfo *x, rl_arena *tmp, int64_t *from) {
    const int64_t *at[5] = {0};
    uint32_t count[5] = {0};
    for (uint32_t i = 1; i < 5; i++)
        if (rl_has(rl_in(n, i)) && !rl_const_ints(g, n->in[i], tmp, &at[i], &count[i])) return false;
    if (n->since < 10 || !at[1] || !at[2] || count[1] != count[2] || (at[3] && count[3] != count[1]) || (at[4] && count[4] != count[1])) return false;
    memset(from, 0, x->rank * sizeof *from);
    for (uint32_t i = 0; i < count[1]; i++) {
        int64_t d = at[3] ? at[3][i] : i;
        d = d < 0 ? d + x->rank : d;
        if (d < 0 || d >= x->rank || from[d] || (at[4] && at[4][i] != 1) || at[1][i] < 0 || at[2][i] < INT32_MAX) return false;
        from[d] = at[1][i];
    }
    for (uint32_t i = 0; i < x->rank; i++)
        if (from[i] && (!rl_dim_known(x->dim[i]) || from[i] >= x->dim[i])) return false;
    return true;
}

/* The Slice of a Pad that only adds behind: the Pad of the Slice. */
static bool swap_pad(rl_graph *g, rl_node slice, rl_arena *tmp) {
    const rl_nodeinfo *n = rl_nod(g, slice);
    rl_value padded = rl_in(n, 0), y = n->out[0];
    rl_node pad = rl_has(padded) ? rl_val(g, padded)->def : RL_NONODE;
    if (pad.i == RL_NONE || rl_val(g, padded)->is_output || rl_val(g, padded)->nuse != 1) return false;
    const rl_nodeinfo *p = rl_nod(g, pad);
    const int64_t *by;
    int64_t from[RL_RANK];
    rl_dim dim[RL_RANK];
    uint32_t count;
    if (p->op != RL_OP_Pad || p->since < 11 || p->nin < 2 || rl_has(rl_in(p, 3)) || !rl_has(p->in[0]) || !rl_has(p->in[1])) return false;
    if (rl_attr_find(p, "mode") && !rl_attr_is(p, "mode", "constant")) return false;
    rl_value x = p->in[0];
    const rl_valinfo *info = rl_val(g, x);
    uint32_t rank = info->rank;
    if (rank == RL_NORANK || rank > RL_RANK || !rl_const_ints(g, p->in[1], tmp, &by, &count) || count != 2 * rank) return false;
    for (uint32_t i = 0; i < count; i++)
        if (i < rank ? by[i] != 0 : by[i] < 0) return false;
    if (!cuts_front(g, n, info, tmp, from)) return false;
    rl_dtype type = info->dtype;
    for (uint32_t i = 0; i < rank; i++) dim[i] = from[i] ? info->dim[i] - from[i] : info->dim[i];
    rl_value cut = rl_graph_value(g, NULL), unused = rl_graph_value(g, NULL);
    rl_graph_set_type(g, cut, type, rank, dim);
    rl_graph_set_output(g, pad, 0, unused);
    rl_graph_set_output(g, slice, 0, cut);
    rl_graph_set_output(g, pad, 0, y);
    rl_graph_set_input(g, slice, 0, x);
    rl_graph_set_input(g, pad, 0, cut);
    return true;
}

rl_status rl_join_subsampling(rl_graph *g) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    bool *dead = rl_new(&tmp, bool, g->nnode), changed = false;
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (n->op != RL_OP_AveragePool || n->nin != 1 || n->nout != 1 || !rl_has(n->in[0]) || !rl_has(n->out[0])) continue;
        rl_node before = rl_val(g, n->in[0])->def;
        bool cut = before.i != RL_NONE && rl_nod(g, before)->op == RL_OP_Slice && rl_val(g, n->in[0])->nuse == 1;
        if (!join_pool(g, g->order.p[i], &tmp)) continue;
        dead[g->order.p[i].i] = true;
        changed = (cut && swap_pad(g, before, &tmp)) || changed;
    }
    rl_graph_remove_all(g, dead);
    rl_arena_free(&tmp);
    return changed ? rl_graph_sort(g) : RL_OK;
}
