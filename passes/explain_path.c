/* Paths in the model as the user knows it: the movement nodes between the ops of a conflict come back in.
 *
 * Ops and places of a conflict form a graph.  A breadth-first tree from the maker's side gives one path to each of its ends; where
 * ways meet again there is one path more, a loop.  Within a class two tensors are joined through the movement that makes both:
 *   y -> Transpose a -> u,  y -> Reshape b -> w        from u to w: u, a, y, b, w */
#include "explain.h"

#include <string.h>

void rl_exstep_tensor(const rl_explainer *x, rl_expath *path, rl_value v) {
    rl_extensor t = rl_extensor_of(x, v);
    if (path->n && !path->p[path->n - 1].node.op && rl_extensor_same(&path->p[path->n - 1].tensor, &t)) return;
    rl_push(x->mem, *path, ((rl_exstep){.tensor = t}));
}

void rl_exstep_node(const rl_explainer *x, rl_expath *path, rl_node n) {
    rl_push(x->mem, *path, ((rl_exstep){.node = rl_exnode_of(x, n)}));
}

/* ---- inside a class ---- */

/* The tensor that movement makes v from; RL_NOVALUE at the class's first. */
static rl_value before(const rl_explainer *x, rl_value v) {
    rl_node d = rl_val(x->g, v)->def;
    return d.i != RL_NONE && x->p->moving[d.i] ? rl_nod(x->g, d)->in[0] : RL_NOVALUE;
}

static uint32_t depth_of(const rl_explainer *x, rl_value v) {
    uint32_t n = 0;
    for (; rl_has(v = before(x, v)); n++) {}
    return n;
}

/* From tensor a, which is there already, to tensor b of the same class. */
static void through_class(const rl_explainer *x, rl_expath *path, rl_value a, rl_value b) {
    rl_exids down = {0};
    uint32_t da = depth_of(x, a), db = depth_of(x, b);
    while (!rl_same(a, b)) {
        bool up = da >= db;
        if (up) {
            rl_exstep_node(x, path, rl_val(x->g, a)->def);
            rl_exstep_tensor(x, path, a = before(x, a));
            da--;
        }
        if (!up || (da < db && !rl_same(a, b))) {
            rl_push(x->now, down, b.i);
            b = before(x, b);
            db--;
        }
    }
    while (down.n) {
        rl_value v = {down.p[--down.n]};
        rl_exstep_node(x, path, rl_val(x->g, v)->def);
        rl_exstep_tensor(x, path, v);
    }
}

/* ---- the graph of a conflict ---- */

/* How a walk came to an op: by `pin` of it, from `frompin` of op number `from`. */
typedef struct { uint32_t from, frompin, pin; bool reached; } arrival;
typedef struct {
    const rl_explainer *x;
    rl_exjoin join;
    const rl_exids *op;
    arrival *in;     /* [op->n] */
    rl_exids order;  /* places in op->p, nearest the root first */
    bool *inner;     /* [op->n] a path goes on from here */
    bool *looped;    /* [op->n] a loop goes through it */
} tree;

static uint32_t joined(const tree *t, uint32_t i, uint32_t pin) {
    uint32_t place = t->x->at[t->op->p[i]][pin];
    return place == t->join.place ? t->join.base : place;
}

static uint32_t npin(const tree *t, uint32_t i) { return t->x->p->op.p[t->op->p[i]].npin; }

static rl_value tensor_at(const rl_explainer *x, uint32_t op, uint32_t pin) {
    const rl_oplegal *k = &x->p->op.p[op];
    uint32_t n = 0;
    for (uint32_t o = 0; o < k->noperand; o++)
        if (k->operand[o].pin && n++ == pin) return k->operand[o].tensor;
    return RL_NOVALUE;
}

static void grow(tree *t, uint32_t root) {
    t->in[root].reached = true;
    rl_push(t->x->now, t->order, root);
    for (uint32_t head = 0; head < t->order.n; head++) {
        uint32_t i = t->order.p[head];
        for (uint32_t a = 0; a < npin(t, i); a++)
            for (uint32_t m = t->x->meeting[joined(t, i, a)]; m != RL_NONE; m = t->x->meet.p[m].next) {
                rl_exmeeting b = t->x->meet.p[m];
                if (t->in[b.op].reached) continue;
                t->in[b.op] = (arrival){i, a, b.pin, true};
                t->inner[i] = true;
                rl_push(t->x->now, t->order, b.op);
            }
    }
}

static void step_op(const tree *t, rl_expath *path, uint32_t i) {
    rl_exwhat what;
    rl_node n = rl_exnode_at(t->x, t->op->p[i], &what);
    if (n.i != RL_NONE) rl_exstep_node(t->x, path, n);
}

static void step_between(const tree *t, rl_expath *path, uint32_t i, uint32_t a, uint32_t j, uint32_t b) {
    rl_value from = tensor_at(t->x, t->op->p[i], a), to = tensor_at(t->x, t->op->p[j], b);
    rl_exstep_tensor(t->x, path, from);
    through_class(t->x, path, from, to);
}

/* Down the tree from op `from`, an ancestor, to op i; both included. */
static void descend(const tree *t, rl_expath *path, uint32_t from, uint32_t i) {
    rl_exids way = {0};
    for (; i != from; i = t->in[i].from) rl_push(t->x->now, way, i);
    step_op(t, path, from);
    while (way.n) {
        uint32_t j = way.p[--way.n];
        step_between(t, path, t->in[j].from, t->in[j].frompin, j, t->in[j].pin);
        step_op(t, path, j);
    }
}

static void climb(const tree *t, rl_expath *path, uint32_t i, uint32_t to) {
    for (; i != to; i = t->in[i].from) {
        step_between(t, path, i, t->in[i].pin, t->in[i].from, t->in[i].frompin);
        step_op(t, path, t->in[i].from);
    }
}

static bool above(const tree *t, uint32_t a, uint32_t i) {
    uint32_t root = t->order.p[0];
    for (; i != a; i = t->in[i].from)
        if (i == root) return false;
    return true;
}

/* From the lowest op that is above both, down to i, over to j, and back up. */
static void add_loop(const tree *t, rl_exconversion *out, uint32_t i, uint32_t a, uint32_t j, uint32_t b) {
    rl_expath path = {.loop = true};
    uint32_t top = i;
    while (!above(t, top, j)) top = t->in[top].from;
    for (uint32_t k = i; k != top; k = t->in[k].from) t->looped[k] = true;
    for (uint32_t k = j; k != top; k = t->in[k].from) t->looped[k] = true;
    descend(t, &path, top, i);
    step_between(t, &path, i, a, j, b);
    step_op(t, &path, j);
    climb(t, &path, j, top);
    rl_push(t->x->mem, out->path, path);
}

static bool same_tensor(const tree *t, uint32_t i, uint32_t a, uint32_t b) {
    return rl_same(tensor_at(t->x, t->op->p[i], a), tensor_at(t->x, t->op->p[i], b));
}

/* The first pin of each op at each place is in the tree or closes a loop; each pair of ops closes at most one per place. */
static void add_loops(const tree *t, rl_exconversion *out) {
    rl_hash opener = {.mem = t->x->now}; /* place -> the earliest op there: its place in the order << 8 | its pin */
    for (uint32_t m = 0; m < t->order.n; m++) {
        uint32_t i = t->order.p[m];
        for (uint32_t a = 0; a < npin(t, i); a++) {
            uint64_t key = (uint64_t)joined(t, i, a) + 1;
            if (m && joined(t, i, a) == joined(t, i, t->in[i].pin)) {
                if (!same_tensor(t, i, a, t->in[i].pin)) add_loop(t, out, i, t->in[i].pin, i, a);
                continue;
            }
            uint32_t first = rl_hash_get(&opener, key);
            if (first == RL_NONE) {
                if (m < 1u << 24 && a < 256) rl_hash_put(&opener, key, m << 8 | a);
                continue;
            }
            uint32_t j = t->order.p[first >> 8], b = first & 255;
            if (j != i || !same_tensor(t, i, a, b)) add_loop(t, out, j, b, i, a);
        }
    }
}

/* The op that makes the joined value, else the nearest. */
static uint32_t root_of(const rl_explainer *x, rl_exjoin j, const rl_exids *op) {
    const rl_explace *v = &x->place.p[j.base];
    for (uint32_t i = 0; i < op->n; i++)
        for (uint32_t k = 0; k < v->npin; k++) {
            const rl_expin *pin = &x->pin[v->first + k];
            if (pin->op == op->p[i] && x->p->op.p[pin->op].operand[pin->operand].out) return i;
        }
    return 0;
}

/* The farthest op on the maker's side, so that a plain chain is one path from end to end. */
static uint32_t far_end(tree *t, uint32_t from) {
    grow(t, from);
    uint32_t end = from, first = RL_NONE;
    for (uint32_t k = 1; k < t->order.n; k++) {
        uint32_t i = t->order.p[k], up = i;
        while (t->in[up].from != from) up = t->in[up].from;
        if (first == RL_NONE) first = up;
        if (t->inner[i]) continue;
        bool behind = joined(t, from, t->in[up].frompin) != t->join.base; /* away from the conversion */
        if (behind) end = i;
    }
    return end;
}

void rl_explain_paths(const rl_explainer *x, rl_exjoin j, const rl_exids *op, rl_exconversion *out) {
    tree t = {.x = x, .join = j, .op = op};
    if (!op->n) return;
    t.in = rl_new(x->now, arrival, op->n);
    t.inner = rl_new(x->now, bool, op->n);
    uint32_t root = far_end(&t, root_of(x, j, op));
    t.looped = rl_new(x->now, bool, op->n);
    memset(t.in, 0, op->n * sizeof *t.in);
    memset(t.inner, 0, op->n * sizeof *t.inner);
    t.order.n = 0;
    grow(&t, root);
    add_loops(&t, out);
    for (uint32_t k = 1; k < t.order.n; k++) {
        uint32_t i = t.order.p[k];
        if (t.inner[i] || t.looped[i]) continue;
        rl_expath path = {0};
        descend(&t, &path, root, i);
        rl_push(x->mem, out->path, path);
    }
}
