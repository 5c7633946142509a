/* Sorting a graph's nodes (ir.h): each after those that make what it reads, else as they stood in the input model. And those that no output hangs on. */
#include "ir.h"

#include <string.h>

/* The nodes whose inputs are all ready, least (origin, place) first: a binary heap. */
typedef struct { const rl_graph *g; const uint32_t *place; rl_node *p; uint32_t n; } ready;

static bool before(const ready *h, rl_node a, rl_node b) {
    uint32_t x = rl_nod(h->g, a)->origin, y = rl_nod(h->g, b)->origin;
    return x != y ? x < y : h->place[a.i] < h->place[b.i];
}

static void push_ready(ready *h, rl_node x) {
    uint32_t i = h->n++;
    for (; i && before(h, x, h->p[(i - 1) / 2]); i = (i - 1) / 2) h->p[i] = h->p[(i - 1) / 2];
    h->p[i] = x;
}

static rl_node pop_ready(ready *h) {
    rl_node top = h->p[0], x = h->p[--h->n];
    uint32_t i = 0;
    for (uint32_t c; (c = 2 * i + 1) < h->n; i = c) {
        if (c + 1 < h->n && before(h, h->p[c + 1], h->p[c])) c++;
        if (!before(h, h->p[c], x)) break;
        h->p[i] = h->p[c];
    }
    h->p[i] = x;
    return top;
}

static rl_node def_of(const rl_graph *g, rl_value v) {
    return rl_has(v) ? rl_val(g, v)->def : RL_NONODE;
}

/* How many slots of the node read what nodes make. */
static uint32_t count_waits(const rl_graph *g, rl_node n) {
    const rl_nodeinfo *x = rl_nod(g, n);
    uint32_t k = 0;
    for (uint32_t s = 0; s < x->nin + x->ncap; s++) k += def_of(g, rl_slot_value(x, s)).i != RL_NONE;
    return k;
}

/* From any node that waits, every step back to one that it waits for stays among those that wait: soon one comes twice. */
static rl_status fail_cycle(rl_graph *g, const uint32_t *waits, bool *seen) {
    rl_node n = {0};
    for (uint32_t i = 0; i < g->order.n; i++)
        if (waits[g->order.p[i].i]) n = g->order.p[i];
    while (!seen[n.i]) {
        seen[n.i] = true;
        const rl_nodeinfo *x = rl_nod(g, n);
        for (uint32_t s = 0; s < x->nin + x->ncap; s++) {
            rl_node d = def_of(g, rl_slot_value(x, s));
            if (d.i == RL_NONE || !waits[d.i]) continue;
            n = d;
            break;
        }
    }
    const rl_nodeinfo *x = rl_nod(g, n);
    return rl_fail(g->ctx, RL_EMODEL, "node '%s' (%s): is on a cycle: an input depends on its own output",
                   x->name ? x->name : "", x->type);
}

static void release_uses(const rl_graph *g, rl_node n, uint32_t *waits, ready *h) {
    const rl_nodeinfo *x = rl_nod(g, n);
    for (uint32_t k = 0; k < x->nout; k++) {
        if (!rl_has(x->out[k])) continue;
        const rl_valinfo *v = rl_val(g, x->out[k]);
        for (uint32_t u = 0; u < v->nuse; u++)
            if (--waits[v->use[u].node.i] == 0) push_ready(h, v->use[u].node);
    }
}

/* Would sorting change nothing?  place: [nnode] 0; what is still 0 when it is read is made later, or by a node that is not live. */
static bool is_sorted(const rl_graph *g, uint32_t *place) {
    uint32_t origin = 0;
    for (uint32_t i = 0; i < g->order.n; i++) {
        rl_node n = g->order.p[i];
        const rl_nodeinfo *x = rl_nod(g, n);
        for (uint32_t s = 0; s < x->nin + x->ncap; s++) {
            rl_node d = def_of(g, rl_slot_value(x, s));
            if (d.i != RL_NONE && !place[d.i]) return false;
        }
        if (x->origin < origin) return false;
        origin = x->origin;
        place[n.i] = i + 1;
    }
    return true;
}

static rl_status sort_order(rl_graph *g, rl_arena *tmp) {
    uint32_t *place = rl_new(tmp, uint32_t, g->nnode), n = 0;
    if (is_sorted(g, place)) return RL_OK;
    uint32_t *waits = rl_new(tmp, uint32_t, g->nnode);
    rl_node *sorted = rl_new(tmp, rl_node, g->order.n);
    ready h = {g, place, rl_new(tmp, rl_node, g->order.n), 0};
    for (uint32_t i = 0; i < g->order.n; i++) {
        rl_node x = g->order.p[i];
        place[x.i] = i;
        waits[x.i] = count_waits(g, x);
        if (!waits[x.i]) push_ready(&h, x);
    }
    while (h.n) {
        rl_node x = pop_ready(&h);
        sorted[n++] = x;
        release_uses(g, x, waits, &h);
    }
    if (n < g->order.n) return fail_cycle(g, waits, rl_new(tmp, bool, g->nnode));
    if (n) memcpy(g->order.p, sorted, n * sizeof *sorted);
    return RL_OK;
}

rl_status rl_graph_sort(rl_graph *g) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    rl_status s = sort_order(g, &tmp);
    rl_arena_free(&tmp);
    return s;
}

/* ---- what no output hangs on ---- */

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
