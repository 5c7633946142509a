/* Remove what nothing reads.
 * Needs: order.  Keeps: order, types.  Breaks: nothing.
 *
 *   a node from which no graph output can be reached goes; so does an initializer that lost its last reader.
 *
 * An initializer that never had a reader stays: it is not ours to tidy.  So does one that is also a graph input: without it
 * the input would have no default.  Bodies that were not opened (flat.h) are left alone; what they capture counts as read. */
#include "pass.h"

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
