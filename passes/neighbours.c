/* A first fold of the assignment problem (solve.h, rl_problem_fold): dims that lie side by side stay side by side.
 *
 * Atoms that tokens tie together, from value to value, have one role: the batch of a network, the heads of a layer.  Where one role lies right
 * behind another in some order of the model, orders that part the two are often of no use to any op.  The image of such an order has the one atom
 * put beside the other; if the image of every configuration is a configuration that costs no more, these orders go.  rl_problem_fold looks for folds
 * one element after the other and seldom finds all that hang together; here one step moves an atom in all values.  The model as it stands is its own image.
 *
 * Example: a rotary embedding has x[b,s,h,d/2,2].  No op asks for the pairs anywhere but behind d/2: of 120 orders of five atoms, 24 are left. */
#include "bound.h"

/* The atom of a role is put right behind that of another, or before it. */
typedef struct { uint32_t anchor, moves; bool behind; } joint;
typedef struct { uint32_t *beg, *item; } lists; /* of key k: item[beg[k]] .. item[beg[k + 1]] */

typedef struct {
    rl_plan *q;
    const rl_problem *x;
    rl_arena *tmp;
    uint32_t *first, *role; /* [class] where its atoms begin; [atom] */
    lists classes, ops;     /* of each role; of each class */
    rl_hash *config;        /* [op] its configurations, once they are asked for */
    uint32_t **to;          /* [class] what stands in for each order; NULL: itself */
    uint32_t **next;        /* [class] what would, after what is tried; RL_NONE: nothing can; NULL: as before */
    struct { uint32_t *p; uint32_t n, cap; } moved; /* the classes of next */
    uint32_t *seen, look;   /* [op] when it was looked at last */
    uint32_t *image;
} joiner;

/* ---- roles ---- */

static bool has_choice(const joiner *j, uint32_t cls) { return j->x->weight[cls] > 0 && j->x->norder[cls] > 1; }

static void tie_tokens(const joiner *j, const rl_oplegal *op, uint32_t *up) {
    for (uint32_t t = 0; t < op->ntoken; t++) {
        uint32_t tied = RL_NONE;
        for (uint32_t o = 0; o < op->noperand; o++) {
            if (!op->operand[o].pin || op->token[t].natom[o] != 1) continue;
            uint32_t a = rl_root(up, j->first[op->operand[o].cls] + op->token[t].atom[o][0]);
            if (tied == RL_NONE) tied = a;
            else up[a] = tied;
        }
    }
}

/* Above all of the class's atoms. */
static uint32_t above(const rl_cls *c) { return c->cut && c->natom ? c->kept.atom[c->natom - 1] + 1u : c->natom; }

static void find_roles(joiner *j) {
    struct { uint32_t *p; uint32_t n, cap; } role = {0}, cls = {0};
    j->first = rl_new(j->tmp, uint32_t, (size_t)j->q->cls.n + 1);
    for (uint32_t c = 0; c < j->q->cls.n; c++) j->first[c + 1] = j->first[c] + above(&j->q->cls.p[c]);
    uint32_t n = j->first[j->q->cls.n];
    j->role = rl_new(j->tmp, uint32_t, n);
    for (uint32_t a = 0; a < n; a++) j->role[a] = a;
    for (uint32_t o = 0; o < j->x->nop; o++) tie_tokens(j, &j->q->op.p[o], j->role);
    for (uint32_t c = 0; c < j->q->cls.n; c++)
        for (uint32_t a = j->first[c]; a < j->first[c + 1]; a++) {
            j->role[a] = rl_root(j->role, a);
            if (!has_choice(j, c)) continue;
            rl_push(j->tmp, role, j->role[a]);
            rl_push(j->tmp, cls, c);
        }
    j->classes = (lists){rl_sort_by_key(j->tmp, n, role.p, cls.p, cls.n, sizeof *cls.p), cls.p};
}

static void find_ops(joiner *j) {
    struct { uint32_t *p; uint32_t n, cap; } cls = {0}, op = {0};
    uint32_t most = 0;
    for (uint32_t o = 0; o < j->x->nop; o++) {
        most = RL_MAX(most, j->x->op[o].npin);
        for (uint32_t k = 0; k < j->x->op[o].npin; k++) {
            rl_push(j->tmp, cls, j->x->op[o].value[k]);
            rl_push(j->tmp, op, o);
        }
    }
    j->ops = (lists){rl_sort_by_key(j->tmp, j->q->cls.n, cls.p, op.p, op.n, sizeof *op.p), op.p};
    j->seen = rl_new(j->tmp, uint32_t, j->x->nop);
    j->config = rl_new(j->tmp, rl_hash, j->x->nop);
    j->image = rl_new(j->tmp, uint32_t, most);
}

/* ---- one joint ---- */

/* The only atom of a role in a class, or RL_NONE. */
static uint32_t atom_of(const joiner *j, uint32_t cls, uint32_t role) {
    uint32_t found = RL_NONE;
    for (uint32_t a = j->first[cls]; a < j->first[cls + 1]; a++) {
        if (j->role[a] != role) continue;
        if (found != RL_NONE) return RL_NONE;
        found = a - j->first[cls];
    }
    return found;
}

static bool is_left(const joiner *j, uint32_t cls, uint32_t order) { return !j->to[cls] || j->to[cls][order] == order; }

/* The place of the order with atom m beside atom a; RL_NONE where it is none that is left. */
static uint32_t beside(joiner *j, uint32_t cls, uint32_t order, uint32_t a, uint32_t m, bool behind) {
    const rl_cls *c = &j->q->cls.p[cls];
    const uint8_t *from = c->order.p[order].p;
    uint8_t out[UINT8_MAX + 1];
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->natom; i++) {
        if (from[i] == m) continue;
        if (from[i] == a && !behind) out[n++] = (uint8_t)m;
        out[n++] = from[i];
        if (from[i] == a && behind) out[n++] = (uint8_t)m;
    }
    uint32_t k = rl_order_find(j->q, cls, out);
    return k != RL_NONE && is_left(j, cls, k) ? k : RL_NONE;
}

static void move_in(joiner *j, uint32_t cls, const joint *t, rl_arena *mem) {
    uint32_t a = atom_of(j, cls, t->anchor), m = atom_of(j, cls, t->moves), n = j->x->norder[cls];
    if (a == RL_NONE || m == RL_NONE) return;
    j->next[cls] = rl_new(mem, uint32_t, n);
    for (uint32_t o = 0; o < n; o++) j->next[cls][o] = is_left(j, cls, o) ? beside(j, cls, o, a, m, t->behind) : RL_NONE;
    rl_push(j->tmp, j->moved, cls);
}

/* Is the configuration one that is left, with an image that is another? */
static bool moves(joiner *j, const rl_choice *o, uint32_t cfg) {
    const uint32_t *order = o->order + (size_t)cfg * o->npin;
    bool left = true, same = true;
    for (uint32_t k = 0; k < o->npin; k++) {
        const uint32_t *next = j->next[o->value[k]];
        left = left && is_left(j, o->value[k], order[k]);
        j->image[k] = next ? next[order[k]] : order[k];
        same = same && j->image[k] == order[k];
    }
    return left && !same;
}

static bool keeps_first(joiner *j, uint32_t op) { return !moves(j, &j->x->op[op], 0); }

static bool has_images(joiner *j, uint32_t op) {
    const rl_choice *o = &j->x->op[op];
    rl_hash *known = &j->config[op];
    for (uint32_t c = 0; c < o->ncfg; c++) {
        if (!moves(j, o, c)) continue;
        if (!known->mem) *known = rl_config_index(j->tmp, o);
        uint32_t i = rl_config_find(known, o, j->image);
        if (i == RL_NONE || (o->cost && o->cost[i] > o->cost[c])) return false;
    }
    return true;
}

/* Holds it of every op that has a class that is moved? */
static bool all_ops(joiner *j, bool holds(joiner *j, uint32_t op)) {
    j->look++;
    for (uint32_t i = 0; i < j->moved.n; i++) {
        uint32_t c = j->moved.p[i];
        for (uint32_t k = j->ops.beg[c]; k < j->ops.beg[c + 1]; k++) {
            uint32_t op = j->ops.item[k];
            if (j->seen[op] == j->look) continue;
            j->seen[op] = j->look;
            if (!holds(j, op)) return false;
        }
    }
    return true;
}

/* What no configuration holds may have no image. True where some order went. */
static bool settle(joiner *j, uint32_t cls) {
    uint32_t n = j->x->norder[cls];
    bool any = false;
    if (!j->to[cls]) {
        j->to[cls] = rl_new(j->tmp, uint32_t, n);
        for (uint32_t o = 0; o < n; o++) j->to[cls][o] = o;
    }
    for (uint32_t o = 0; o < n; o++) {
        uint32_t image = j->next[cls][j->to[cls][o]];
        if (image == RL_NONE || image == j->to[cls][o]) continue;
        j->to[cls][o] = image;
        any = true;
    }
    return any;
}

static bool try_joint(joiner *j, const joint *t) {
    rl_arena mem;
    rl_arena_init(&mem, j->tmp->ctx);
    j->moved.n = 0;
    for (uint32_t i = j->classes.beg[t->moves]; i < j->classes.beg[t->moves + 1]; i++)
        if (!j->next[j->classes.item[i]]) move_in(j, j->classes.item[i], t, &mem);
    bool good = all_ops(j, keeps_first) && all_ops(j, has_images), any = false;
    for (uint32_t i = 0; i < j->moved.n; i++) {
        any |= good && settle(j, j->moved.p[i]);
        j->next[j->moved.p[i]] = NULL;
    }
    rl_arena_free(&mem);
    return any;
}

/* ---- all ---- */

typedef struct { joint *p; uint32_t n, cap; } joints;

static void add_joint(joiner *j, rl_hash *known, joint t, joints *all) {
    uint64_t key = (((uint64_t)t.anchor << 32 | t.moves) << 1 | t.behind) + 1;
    if (rl_hash_get(known, key) != RL_NONE) return;
    rl_hash_put(known, key, all->n);
    rl_push(j->tmp, *all, t);
}

/* Of what lies side by side in the model as it stands, either may be the one that moves. */
static joints list_joints(joiner *j) {
    joints all = {0};
    rl_hash known = {.mem = j->tmp};
    for (uint32_t o = 0; o < j->x->nop; o++)
        for (uint32_t k = 0; k < j->x->op[o].npin; k++) {
            uint32_t cls = j->x->op[o].value[k];
            if (!has_choice(j, cls)) continue;
            const uint8_t *order = j->q->cls.p[cls].order.p[j->x->op[o].order[k]].p;
            for (uint32_t i = 1; i < j->q->cls.p[cls].natom; i++) {
                uint32_t a = j->role[j->first[cls] + order[i - 1]], b = j->role[j->first[cls] + order[i]];
                if (a == b) continue;
                add_joint(j, &known, (joint){a, b, true}, &all);
                add_joint(j, &known, (joint){b, a, false}, &all);
            }
        }
    return all;
}

void rl_fold_neighbours(rl_plan *q, const rl_problem *x, double deadline, uint32_t **to, rl_arena *tmp) {
    joiner j = {.q = q, .x = x, .tmp = tmp, .to = to, .next = rl_new(tmp, uint32_t *, q->cls.n)};
    find_roles(&j);
    find_ops(&j);
    const joints all = list_joints(&j);
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < all.n && !rl_time_up(tmp->ctx, deadline); i++) any |= try_joint(&j, &all.p[i]);
    }
}
