/* A component whose ops have two configurations each, as where only two layouts meet: its least total is a minimum cut (solve_cover.h).
 *
 * Call one configuration of each op near and the other far, so that each element is asked for by near ones alone, or by far ones alone.
 * (That fails where Transposes around a cycle do not cancel; then nothing is done here.)  The ops on the source's side of a cut take
 * their near configuration, and what is cut is what they pay:
 *
 *     op     -- cost of near --> sink        source -- cost of far --> op
 *     op     -- no limit --> element -- weight --> sink         an element that near configurations ask for
 *     source -- weight --> element -- no limit --> op           one that far configurations ask for
 *
 * Example: a convolution that makes {x in NCHW}, a Relu that takes {x in NCHW} or {x in NHWC}, and an op that takes {x in NHWC}: the first
 * and the last are no ops here, as they have one configuration; the Relu's elements are paid, and nothing is left to cut.
 *
 * Lawler, "Cutsets and partitions of hypergraphs", Networks 3 (1973); the flow by Dinitz's algorithm (1970), whose number of phases does
 * not depend on the weights. */
#include "solve_cover.h"

enum { SOURCE, SINK, NODES }; /* then the ops, then the elements */
#define NO_LIMIT (INT64_C(1) << 62)

typedef struct { uint32_t to, next; int64_t room; } arc; /* arcs come in pairs: a and a ^ 1 are opposite */

typedef struct {
    rl_arena *mem;
    const rl_cover *p;
    uint8_t *near; /* [nop] its near configuration */
    struct { arc *p; uint32_t n, cap; } arc;
    uint32_t nnode, *head, *at, *level, *queue, *path; /* [nnode]; at: the arc to go on with */
} network;

/* ---- near and far ---- */

enum { UNKNOWN, NEAR, FAR };

/* The (op, configuration) pairs that ask for each element. */
typedef struct { uint32_t *beg; struct asker { uint32_t op, cfg; } *p; } askers;

static askers askers_of(rl_arena *mem, const rl_cover *p) {
    struct { struct asker *p; uint32_t n, cap; } at = {0};
    struct { uint32_t *p; uint32_t n, cap; } elem = {0};
    for (uint32_t o = 0; o < p->nop; o++)
        for (size_t k = 0; k < (size_t)p->op[o].ncfg * p->op[o].width; k++) {
            if (p->op[o].elem[k] == RL_NONE) continue;
            rl_push(mem, elem, p->op[o].elem[k]);
            rl_push(mem, at, ((struct asker){o, (uint32_t)(k / p->op[o].width)}));
        }
    return (askers){rl_sort_by_key(mem, p->nelem, elem.p, at.p, at.n, sizeof *at.p), at.p};
}

/* Sets near and side[element]; false where there is no such naming. */
static bool name_sides(network *n, uint8_t *side) {
    const rl_cover *p = n->p;
    askers x = askers_of(n->mem, p);
    bool *known = rl_new(n->mem, bool, p->nop);
    uint32_t *stack = rl_new(n->mem, uint32_t, p->nop);
    for (uint32_t first = 0; first < p->nop; first++) {
        uint32_t height = 0;
        if (known[first]) continue;
        known[first] = true;
        stack[height++] = first;
        while (height) {
            uint32_t o = stack[--height];
            const rl_bundle *b = &p->op[o];
            for (uint32_t k = 0; k < 2 * b->width; k++) {
                uint32_t e = b->elem[k];
                if (e == RL_NONE) continue;
                uint8_t s = k / b->width == n->near[o] ? NEAR : FAR;
                if (side[e] == s) continue;
                if (side[e] != UNKNOWN) return false;
                side[e] = s;
                for (uint32_t i = x.beg[e]; i < x.beg[e + 1]; i++) {
                    struct asker a = x.p[i];
                    uint8_t near = (uint8_t)(s == NEAR ? a.cfg : 1 - a.cfg);
                    if (known[a.op] && n->near[a.op] != near) return false;
                    n->near[a.op] = near;
                    if (!known[a.op]) stack[height++] = a.op;
                    known[a.op] = true;
                }
            }
        }
    }
    return true;
}

/* ---- the network ---- */

static void add_arc(network *n, uint32_t from, uint32_t to, int64_t room) {
    if (room == 0) return;
    rl_push(n->mem, n->arc, ((arc){to, n->head[from], room}));
    n->head[from] = n->arc.n - 1;
    rl_push(n->mem, n->arc, ((arc){from, n->head[to], 0}));
    n->head[to] = n->arc.n - 1;
}

static void make_network(network *n, const uint8_t *side) {
    const rl_cover *p = n->p;
    n->nnode = NODES + p->nop + p->nelem;
    uint32_t **field[] = {&n->head, &n->at, &n->level, &n->queue, &n->path};
    for (uint32_t i = 0; i < RL_LEN(field); i++) *field[i] = rl_new(n->mem, uint32_t, n->nnode);
    for (uint32_t v = 0; v < n->nnode; v++) n->head[v] = RL_NONE;
    for (uint32_t o = 0; o < p->nop; o++) {
        const rl_bundle *b = &p->op[o];
        add_arc(n, NODES + o, SINK, b->cost[n->near[o]]);
        add_arc(n, SOURCE, NODES + o, b->cost[1 - n->near[o]]);
        for (uint32_t k = 0; k < 2 * b->width; k++) {
            uint32_t e = b->elem[k], node = NODES + p->nop + e;
            if (e != RL_NONE) add_arc(n, side[e] == NEAR ? NODES + o : node, side[e] == NEAR ? node : NODES + o, NO_LIMIT);
        }
    }
    for (uint32_t e = 0; e < p->nelem; e++) {
        uint32_t node = NODES + p->nop + e;
        if (side[e] != UNKNOWN) add_arc(n, side[e] == NEAR ? node : SOURCE, side[e] == NEAR ? SINK : node, p->weight[e]);
    }
}

/* ---- the flow ---- */

/* level: 1 + the distance from the source by arcs with room; 0: not reached. */
static bool reach(network *n) {
    uint32_t head = 0, tail = 0;
    for (uint32_t v = 0; v < n->nnode; v++) n->level[v] = 0;
    n->level[SOURCE] = 1;
    n->queue[tail++] = SOURCE;
    while (head < tail) {
        uint32_t v = n->queue[head++];
        for (uint32_t a = n->head[v]; a != RL_NONE; a = n->arc.p[a].next) {
            const arc *x = &n->arc.p[a];
            if (!x->room || n->level[x->to]) continue;
            n->level[x->to] = n->level[v] + 1;
            n->queue[tail++] = x->to;
        }
    }
    return n->level[SINK] != 0;
}

/* Sends what the path can take; returns the place in it of the first arc that is then full. */
static uint32_t send(network *n, uint32_t length, int64_t *sent) {
    uint32_t full = 0;
    for (uint32_t k = 1; k < length; k++)
        if (n->arc.p[n->path[k]].room < n->arc.p[n->path[full]].room) full = k;
    int64_t least = n->arc.p[n->path[full]].room;
    for (uint32_t k = 0; k < length; k++) {
        n->arc.p[n->path[k]].room -= least;
        n->arc.p[n->path[k] ^ 1].room += least;
    }
    *sent += least;
    return full;
}

/* Sends along shortest paths until each has a full arc. */
static int64_t block(network *n) {
    int64_t sent = 0;
    for (uint32_t v = 0; v < n->nnode; v++) n->at[v] = n->head[v];
    for (uint32_t v = SOURCE, length = 0;;) {
        if (v == SINK) {
            length = send(n, length, &sent);
            v = n->arc.p[n->path[length] ^ 1].to;
        }
        uint32_t a = n->at[v];
        while (a != RL_NONE && (!n->arc.p[a].room || n->level[n->arc.p[a].to] != n->level[v] + 1)) a = n->arc.p[a].next;
        n->at[v] = a;
        if (a != RL_NONE) {
            n->path[length++] = a;
            v = n->arc.p[a].to;
        } else if (v == SOURCE) {
            return sent;
        } else {
            a = n->path[--length];
            v = n->arc.p[a ^ 1].to;
            n->at[v] = n->arc.p[a].next;
        }
    }
}

bool rl_component_cut(rl_arena *mem, const rl_cover *p, double deadline, rl_cover_choice *choice) {
    for (uint32_t o = 0; o < p->nop; o++)
        if (p->op[o].ncfg != 2) return false;
    rl_arena tmp;
    rl_arena_init(&tmp, mem->ctx);
    network n = {.mem = &tmp, .p = p, .near = rl_new(&tmp, uint8_t, p->nop)};
    uint8_t *side = rl_new(&tmp, uint8_t, p->nelem);
    bool done = name_sides(&n, side);
    if (done) make_network(&n, side);
    int64_t flow = 0;
    while (done && reach(&n)) {
        flow += block(&n);
        done = !rl_time_up(mem->ctx, deadline);
    }
    for (uint32_t o = 0; done && o < p->nop; o++) choice->cfg[o] = n.level[NODES + o] ? n.near[o] : 1u - n.near[o];
    if (done) choice->cost = choice->bound = flow;
    rl_arena_free(&tmp);
    return done;
}
