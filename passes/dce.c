/* Remove what nothing reads.
 * Needs: order.  Keeps: order, types.  Breaks: nothing.
 *
 *   a node from which no graph output can be reached goes; so does an initializer that lost its last reader.
 *
 * An initializer that never had a reader stays: it is not ours to tidy.  So does one that is also a graph input: without it
 * the input would have no default.  Bodies that were not opened (flat.h) are left alone; what they capture counts as read. */
#include "pass.h"

static bool feeds_output(const rl_graph *g, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i]) && rl_val(g, n->out[i])->is_output) return true;
    return false;
}

static bool is_read(const rl_graph *g, const rl_nodeinfo *n, const bool *dead) {
    for (uint32_t i = 0; i < n->nout; i++) {
        if (!rl_has(n->out[i])) continue;
        const rl_valinfo *v = rl_val(g, n->out[i]);
        for (uint32_t k = 0; k < v->nuse; k++)
            if (!dead[v->use[k].node.i]) return true;
    }
    return false;
}

static bool has_readers(const rl_graph *g, const rl_nodeinfo *n) {
    for (uint32_t i = 0; i < n->nout; i++)
        if (rl_has(n->out[i]) && rl_val(g, n->out[i])->nuse) return true;
    return false;
}

bool *rl_dead_nodes(const rl_graph *g, rl_arena *mem) {
    uint32_t k = g->order.n;
    for (; k > 0; k--) { /* the last one is a node without readers: what is behind it lives, and mostly there is none */
        const rl_nodeinfo *n = rl_nod(g, g->order.p[k - 1]);
        if (!has_readers(g, n) && !feeds_output(g, n)) break;
    }
    if (k == 0) return NULL;
    bool *dead = rl_new(mem, bool, g->nnode);
    while (k-- > 0) { /* readers first */
        rl_node n = g->order.p[k];
        dead[n.i] = !feeds_output(g, rl_nod(g, n)) && !is_read(g, rl_nod(g, n), dead);
    }
    return dead;
}

static void drop_initializers(rl_graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->init.n; i++) {
        rl_valinfo *v = rl_val(g, g->init.p[i]);
        bool had_reader = v->usecap > 0; /* the array of its uses was made for someone */
        if (v->nuse > 0 || v->is_output || v->is_input || !had_reader) g->init.p[n++] = g->init.p[i];
        else v->is_init = false;
    }
    g->init.n = n;
}

rl_status rl_pass_dce(rl_pass_run *r) {
    const bool *dead = rl_dead_nodes(r->g, r->tmp);
    if (dead) rl_graph_remove_all(r->g, dead);
    drop_initializers(r->g);
    return RL_OK;
}
