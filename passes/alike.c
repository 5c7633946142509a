/* Sizes that every run of the model needs equal, though they were computed in different ways: inference takes them for one.
 *
 *   x[N,H,W,16] -> MaxPool -> Resize by 2 -> u[N,2*floor(H/2),2*floor(W/2),16]      Concat(x, u) axis=3 runs for an even image alone,
 *                                                                                 so H is 2*floor(H/2) wherever it stands
 *
 * The inputs of a Concat have the same sizes off its axis, and those of a MatMul along what is summed: of scores[B,N,?max(M|N)], to which a
 * mask[M] was added, and v[B,N,64] the last size is N.  Nodes in bodies may never run, and those that no output hangs on are taken away by runtimes:
 * neither says anything.  Nor do the calls of functions, whose types are found elsewhere (functions.h).
 *
 * While the passes run, the model's inputs have the sizes that this gives; they get their own back. */

#include "../src/shape.h"
#include "pass.h"

enum { ROUNDS = 8 };

static bool concat_axis(const rl_graph *g, const rl_nodeinfo *n, uint32_t *axis) {
    if (n->op != RL_OP_Concat || n->nin == 0 || rl_val(g, n->in[0])->rank == RL_NORANK) return false;
    int64_t a = rl_attr_int(n, "axis", 1), rank = rl_val(g, n->in[0])->rank;
    *axis = (uint32_t)(a < 0 ? a + rank : a);
    return a >= -rank && a < rank;
}

static bool equate_concat(rl_graph *g, const rl_nodeinfo *n, rl_dimrules *r) {
    const rl_valinfo *x = rl_val(g, n->in[0]);
    uint32_t axis;
    bool any = false;
    if (!concat_axis(g, n, &axis)) return false;
    for (uint32_t k = 1; k < n->nin; k++) {
        const rl_valinfo *y = rl_val(g, n->in[k]);
        for (uint32_t d = 0; y->rank == x->rank && d < x->rank; d++)
            if (d != axis && x->dim[d] != y->dim[d]) any |= rl_dim_equate(g->ctx, &g->mem, r, x->dim[d], y->dim[d]);
    }
    return any;
}

/* The last dim of the left operand, and of the right one the one before the last, if there are two. */
static bool equate_matmul(rl_graph *g, const rl_nodeinfo *n, rl_dimrules *r) {
    if (n->op != RL_OP_MatMul || n->nin != 2 || !rl_has(n->in[0]) || !rl_has(n->in[1])) return false;
    const rl_valinfo *x = rl_val(g, n->in[0]), *y = rl_val(g, n->in[1]);
    if (x->rank == RL_NORANK || y->rank == RL_NORANK || x->rank == 0 || y->rank == 0) return false;
    rl_dim a = x->dim[x->rank - 1], b = y->dim[y->rank - 1 - (y->rank > 1)];
    return a != b && rl_dim_equate(g->ctx, &g->mem, r, a, b);
}

/* Takes a size for another where a node says so; true where one does. */
static bool equate_all(rl_graph *g, rl_dimrules *r, rl_arena *tmp) {
    const bool *dead = rl_dead_nodes(g, tmp);
    bool any = false;
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        if (!dead || !dead[g->order.p[i].i]) any |= equate_concat(g, n, r) || equate_matmul(g, n, r);
    }
    return any;
}

static void write_inputs(rl_graph *g) {
    for (uint32_t i = 0; i < g->input.n; i++) {
        const rl_valinfo *x = rl_val(g, g->input.p[i]);
        if (x->rank == RL_NORANK || x->rank == 0) continue;
        rl_sized was = {g->input.p[i], rl_copy(&g->mem, x->dim, x->rank * sizeof *x->dim)};
        rl_dim *dim = rl_copy(&g->mem, x->dim, x->rank * sizeof *dim);
        for (uint32_t d = 0; d < x->rank; d++) dim[d] = rl_dim_normal(g->ctx, &g->alike->rules, dim[d]);
        if (rl_same_bytes(dim, was.dim, x->rank * sizeof *dim)) continue;
        rl_push(&g->mem, g->alike->input, was);
        rl_graph_set_type(g, was.v, x->dtype, x->rank, dim);
    }
}

static void restore_inputs(rl_graph *g) {
    for (uint32_t i = 0; i < g->alike->input.n; i++) {
        const rl_sized *was = &g->alike->input.p[i];
        rl_graph_set_type(g, was->v, rl_val(g, was->v)->dtype, rl_val(g, was->v)->rank, was->dim);
    }
    g->alike->input.n = 0;
}

rl_status rl_alike_restore(rl_graph *g) {
    if (!g->alike) return RL_OK;
    restore_inputs(g);
    g->alike = NULL;
    rl_status s = rl_shape_infer(g);
    if (s == RL_OK || !g->as_read) return s;
    g->ctx->error[0] = 0; /* given up half-written: its bytes are those of the file */
    return RL_OK;
}

rl_status rl_alike_infer(rl_graph *g, rl_arena *tmp) {
    RL_TRY(rl_alike_restore(g));
    RL_TRY(rl_shape_infer(g));
    for (uint32_t round = 0; round < ROUNDS && !g->function.n && !g->doubtful; round++) {
        rl_dimrules rules = g->alike ? g->alike->rules : (rl_dimrules){0};
        if (!equate_all(g, &rules, tmp)) break;
        if (g->alike) restore_inputs(g);
        else g->alike = rl_new(&g->mem, rl_alike, 1);
        g->alike->rules = rules;
        write_inputs(g);
        if (rl_shape_infer(g) == RL_OK && !g->doubtful) continue;
        g->ctx->error[0] = 0; /* sizes that contradict each other: then the model never runs, and stays what it is */
        return rl_alike_restore(g);
    }
    return RL_OK;
}
