/* A component where two layouts meet: a bound that a flow proves (docs/proof.md, section 2).  Nothing here comes from the solver.
 *
 * Each op of the table has one configuration or two.  Of the two one is called a, the other b, so that no element is named by an a of one
 * op and by a b of another.  A flow of cost goes from the elements that b's name, through ops, to the elements that a's name:
 *
 *     source -> element of b's -> op -> element of a's -> sink
 *
 * At most an element's weight goes through it; at most what b costs by itself enters an op at once, and at most what a costs leaves it.  Whatever
 * an op chooses, it pays for one of its sides, and so for what goes through it there; no element is paid for more than it takes:
 * so no assignment costs less than the flow.  The largest flow is the least cost (Ford and Fulkerson 1956, Lawler 1973).
 *
 * The flow is found by shortest paths (Dinitz 1970) and then looked at once more: what it proves does not hang on how it was found. */
#include "cert_internal.h"

enum { SOURCE, SINK, NODES }; /* then the ops, then the elements */
enum { NOBODY, A, B };

typedef struct { uint32_t from, to, next; rl_cert_key room, flow; bool limited; } arc; /* of pairs of opposite ones: a and a ^ 1 */

typedef struct {
    rl_arena *mem;
    const rl_cert_table *t;
    uint8_t *a;    /* [nstep] the configuration called a */
    uint8_t *side; /* [nelem] who names it */
    bool *paid;    /* [nelem] named whatever is chosen */
    struct { arc *p; uint32_t n, cap; } arcs;
    uint32_t nnode, *head, *at, *level, *list, *path; /* [nnode] */
    uint64_t work, maxwork;
} network;

/* ---- what is paid for certain, and the two sides ---- */

static bool names(const rl_cert_step *s, uint32_t cfg, uint32_t e) {
    for (uint32_t k = s->start[cfg]; k < s->start[cfg + 1]; k++)
        if (s->elem[k] == e) return true;
    return false;
}

/* Marks what is paid whatever is chosen, and adds it up, less the credits.  False where an op has more than two configurations. */
static bool pay_certain(network *n, rl_cert_key *sum) {
    const rl_cert_table *t = n->t;
    *sum = t->base;
    for (uint32_t j = 0; j < t->nstep; j++) {
        const rl_cert_step *s = &t->step[j];
        if (s->ncfg < 1 || s->ncfg > 2) return false;
        *sum = rl_key_sub(*sum, s->credit[0]);
        if (s->ncfg == 1) *sum = rl_key_add(*sum, s->own[0]);
        for (uint32_t k = 0; k < s->start[1]; k++) {
            uint32_t e = s->elem[k];
            if (n->paid[e] || (s->ncfg == 2 && !names(s, 1, e))) continue;
            n->paid[e] = true;
            *sum = rl_key_add(*sum, t->weight[e]);
        }
    }
    return true;
}

/* The (op, configuration) pairs that name each element: p[beg[e]] .. p[beg[e + 1]]. */
typedef struct { uint32_t *beg; struct namer { uint32_t op, cfg; } *p; } namers;

static namers namers_of(const network *n) {
    const rl_cert_table *t = n->t;
    struct { struct namer *p; uint32_t n, cap; } at = {0};
    struct { uint32_t *p; uint32_t n, cap; } elem = {0};
    for (uint32_t j = 0; j < t->nstep; j++)
        for (uint32_t c = 0; c < t->step[j].ncfg; c++)
            for (uint32_t k = t->step[j].start[c]; k < t->step[j].start[c + 1]; k++) {
                rl_push(n->mem, elem, t->step[j].elem[k]);
                rl_push(n->mem, at, ((struct namer){j, c}));
            }
    return (namers){rl_sort_by_key(n->mem, t->nelem, elem.p, at.p, at.n, sizeof *at.p), at.p};
}

/* Calls the configurations of the op's neighbours as its own ask for, and puts those on the stack that had no names. */
static bool name_neighbours(network *n, const namers *x, uint32_t op, bool *known, uint32_t *stack, uint32_t *height) {
    const rl_cert_step *s = &n->t->step[op];
    for (uint32_t k = 0; k < s->start[2]; k++) {
        uint32_t e = s->elem[k];
        uint8_t side = (k >= s->start[1]) == n->a[op] ? A : B;
        if (n->paid[e] || n->side[e] == side) continue;
        if (n->side[e]) return false;
        n->side[e] = side;
        for (uint32_t i = x->beg[e]; i < x->beg[e + 1]; i++) {
            uint32_t o = x->p[i].op;
            uint8_t a = (uint8_t)(side == A ? x->p[i].cfg : 1 - x->p[i].cfg);
            if (known[o] && n->a[o] != a) return false;
            if (known[o]) continue;
            known[o] = true;
            n->a[o] = a;
            stack[(*height)++] = o;
        }
    }
    return true;
}

static bool name_sides(network *n) {
    const rl_cert_table *t = n->t;
    namers x = namers_of(n);
    bool *known = rl_new(n->mem, bool, t->nstep);
    uint32_t *stack = rl_new(n->mem, uint32_t, t->nstep), height = 0;
    for (uint32_t j = 0; j < t->nstep; j++) {
        if (known[j] || t->step[j].ncfg < 2) continue;
        known[j] = true;
        stack[height++] = j;
        while (height) {
            uint32_t o = stack[--height];
            if (!name_neighbours(n, &x, o, known, stack, &height)) return false;
        }
    }
    return true;
}

/* ---- the network ---- */

/* room NULL: no limit. */
static void add_arc(network *n, uint32_t from, uint32_t to, const rl_cert_key *room) {
    arc x = {from, to, n->head[from], {0, 0}, {0, 0}, room != NULL}, y = {to, from, n->head[to], {0, 0}, {0, 0}, true};
    if (room) x.room = *room;
    n->head[from] = n->arcs.n;
    rl_push(n->mem, n->arcs, x);
    n->head[to] = n->arcs.n;
    rl_push(n->mem, n->arcs, y);
}

static void make_network(network *n) {
    const rl_cert_table *t = n->t;
    uint32_t **field[] = {&n->head, &n->at, &n->level, &n->list, &n->path};
    n->nnode = NODES + t->nstep + t->nelem;
    for (uint32_t i = 0; i < RL_LEN(field); i++) *field[i] = rl_new(n->mem, uint32_t, n->nnode);
    for (uint32_t v = 0; v < n->nnode; v++) n->head[v] = RL_NONE;
    for (uint32_t j = 0; j < t->nstep; j++) {
        const rl_cert_step *s = &t->step[j];
        uint32_t op = NODES + j;
        if (s->ncfg < 2) continue;
        add_arc(n, op, SINK, &s->own[n->a[j]]);
        add_arc(n, SOURCE, op, &s->own[1 - n->a[j]]);
        for (uint32_t k = 0; k < s->start[2]; k++) {
            uint32_t e = NODES + t->nstep + s->elem[k];
            if (n->paid[s->elem[k]]) continue;
            if (n->side[s->elem[k]] == A) add_arc(n, op, e, NULL);
            else add_arc(n, e, op, NULL);
        }
    }
    for (uint32_t e = 0; e < t->nelem; e++) {
        uint32_t node = NODES + t->nstep + e;
        if (n->side[e] == A) add_arc(n, node, SINK, &t->weight[e]);
        if (n->side[e] == B) add_arc(n, SOURCE, node, &t->weight[e]);
    }
}

/* ---- the flow ---- */

static bool has_room(const arc *x) { return !x->limited || rl_key_less(x->flow, x->room); }

/* level: 1 + the distance from the source over arcs with room; 0: none leads there. */
static bool reach(network *n) {
    uint32_t first = 0, last = 0;
    for (uint32_t v = 0; v < n->nnode; v++) n->level[v] = 0;
    n->level[SOURCE] = 1;
    n->list[last++] = SOURCE;
    while (first < last) {
        uint32_t v = n->list[first++];
        for (uint32_t i = n->head[v]; i != RL_NONE; i = n->arcs.p[i].next, n->work++) {
            const arc *x = &n->arcs.p[i];
            if (n->level[x->to] || !has_room(x)) continue;
            n->level[x->to] = n->level[v] + 1;
            n->list[last++] = x->to;
        }
    }
    return n->level[SINK] != 0;
}

/* As much as the path has room for; returns the place in it of the first arc that is then full. */
static uint32_t send(network *n, uint32_t length) {
    uint32_t full = 0;
    rl_cert_key least = {INT64_MAX, 0};
    for (uint32_t k = 0; k < length; k++) {
        const arc *x = &n->arcs.p[n->path[k]];
        rl_cert_key room = rl_key_sub(x->room, x->flow);
        if (!x->limited || !rl_key_less(room, least)) continue;
        least = room;
        full = k;
    }
    for (uint32_t k = 0; k < length; k++) {
        arc *x = &n->arcs.p[n->path[k]], *y = &n->arcs.p[n->path[k] ^ 1];
        x->flow = rl_key_add(x->flow, least);
        y->flow = rl_key_sub(y->flow, least);
    }
    n->work += length;
    return full;
}

/* Along shortest paths, until each of them has a full arc. */
static void send_all(network *n) {
    uint32_t v = SOURCE, length = 0;
    for (uint32_t i = 0; i < n->nnode; i++) n->at[i] = n->head[i];
    while (n->work <= n->maxwork) {
        if (v == SINK) {
            length = send(n, length);
            v = n->arcs.p[n->path[length]].from;
        }
        uint32_t i = n->at[v];
        for (; i != RL_NONE; i = n->arcs.p[i].next, n->work++)
            if (n->level[n->arcs.p[i].to] == n->level[v] + 1 && has_room(&n->arcs.p[i])) break;
        n->at[v] = i;
        if (i != RL_NONE) {
            n->path[length++] = i;
            v = n->arcs.p[i].to;
        } else if (v == SOURCE) {
            return;
        } else {
            i = n->path[--length];
            v = n->arcs.p[i].from;
            n->at[v] = n->arcs.p[i].next;
        }
    }
}

/* Nothing below 0 or beyond its room, and what enters an op or an element leaves it.  Then *sum is what leaves the source. */
static bool is_flow(const network *n, rl_cert_key *sum) {
    rl_cert_key *out = rl_new(n->mem, rl_cert_key, n->nnode);
    for (uint32_t i = 0; i < n->arcs.n; i += 2) {
        const arc *x = &n->arcs.p[i];
        if (rl_key_less(x->flow, (rl_cert_key){0, 0}) || (x->limited && rl_key_less(x->room, x->flow))) return false;
        out[x->from] = rl_key_add(out[x->from], x->flow);
        out[x->to] = rl_key_sub(out[x->to], x->flow);
    }
    for (uint32_t v = NODES; v < n->nnode; v++)
        if (out[v].major || out[v].minor) return false;
    *sum = out[SOURCE];
    return true;
}

rl_cert_verdict rl_cert_flow(rl_arena *mem, const rl_cert_table *t, uint64_t maxwork, uint64_t *work, rl_cert_key *left) {
    network n = {.mem = mem, .t = t, .work = *work, .maxwork = maxwork};
    rl_cert_key certain, flow;
    n.a = rl_new(mem, uint8_t, t->nstep);
    n.side = rl_new(mem, uint8_t, t->nelem);
    n.paid = rl_new(mem, bool, t->nelem);
    if (!pay_certain(&n, &certain) || !name_sides(&n)) return RL_CERT_TOO_MANY;
    make_network(&n);
    while (n.work <= maxwork && reach(&n)) send_all(&n);
    *work = n.work;
    if (n.work > maxwork || !is_flow(&n, &flow)) return RL_CERT_TOO_MANY;
    *left = rl_key_add(certain, flow);
    return rl_key_less(*left, t->claim) ? RL_CERT_CHEAPER : RL_CERT_HOLDS;
}
