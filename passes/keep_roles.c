/* One atom of each role: what the bound looks at of values with many atoms (bound.c).
 *
 * A dim of 64 that is cut into windows, and elsewhere into pieces of another size, is six atoms of 2.  Most of them are treated alike, and
 * one of those is enough to see a conflict.
 *   role    of an atom in its class: the dims that it lies in.  Atoms have one role that share a dim in every tensor of the class
 *               class [h0 h1 h2 w0 w1 w2 c] of x[8,8,c] and y[4,2,4,2,c]     roles: h0 h1; h2; w0 w1; w2; c
 *   label   atoms that tokens tie together across classes (keep.c): h0 of one class, of the next ...
 * A class keeps few labels, but those that its surroundings keep, too, or else nothing fits together.  Its surroundings are the classes
 * that have its rarest label: those of one stage of a network, or of one block.  Of their labels so many are taken that each role of each of
 * these classes has one: a hitting set, the label that the most roles have first (Johnson 1974), of several the rarest.
 *
 * That may be too few: an order that no class forbids may be forbidden by two that tell different labels apart.  The second way is finer in
 * one dim, and coarser in those like it, since rows and columns meet the same conflicts.
 *   part    labels that have one role in each class of the surroundings        h0 h1; h2; w0 w1; w2; c
 *   home    of a label: the first dim in the graph that it lies in; dims of one class with as many parts are alike: rows, columns
 * One label of each part is taken; of dims that are alike all parts of the first, and one part of each other: h0 h2 w0 c.
 *
 * Nothing here needs to be right: any choice gives a valid bound. */
#include "keep.h"

enum { FEW = 6 }; /* a label that fewer atoms have says nothing of its surroundings */

typedef struct {
    const rl_plan *p;
    const rl_atomlabels *l;
    const bool *open;
    uint64_t *dims;        /* [l.n] a hash of the dims that an atom lies in */
    uint32_t *role, nrole; /* [l.n] the number of an atom's role, over all classes */
    uint32_t *rarest;      /* [ncls] the class's rarest label, RL_NONE */
    bool *met, *taken;     /* of the surroundings in hand: [nrole] some label of the role is taken; [l.n] by label */
    uint32_t *count;       /* [l.n] by label: how many roles that are not met have it */
    uint64_t *part;        /* [l.n] by label: a hash of its part in the surroundings */
    uint32_t *home;        /* [l.n] by label: the number of the first atom of its home */
    uint32_t *nparts;      /* [l.n] by home: how many parts it has in the surroundings */
    uint32_t *homecls;     /* [l.n] by home: its class */
    uint32_t *beg, *cls;   /* the classes of a label: cls[beg[label]] .. cls[beg[label + 1] - 1], one twice if two atoms have it */
} chooser;

static bool is_open(const chooser *k, uint32_t cls) { return rl_is_open(&k->p->cls.p[cls], k->open); }
static uint32_t natoms(const chooser *k, uint32_t cls) { return k->p->cls.p[cls].natom; }
static uint32_t label_of(const chooser *k, uint32_t cls, uint32_t atom) { return rl_label_of(k->l, cls, atom); }
static uint32_t role_of(const chooser *k, uint32_t cls, uint32_t atom) { return k->role[k->l->at[cls] + atom]; }
/* How many atoms have the label. */
static uint32_t size_of(const chooser *k, uint32_t label) { return k->beg[label + 1] - k->beg[label]; }

/* Of two labels, y may be none, the rarer. */
static uint32_t rarer(const chooser *k, uint32_t x, uint32_t y) {
    if (y == RL_NONE || size_of(k, x) < size_of(k, y)) return x;
    return size_of(k, x) == size_of(k, y) ? RL_MIN(x, y) : y;
}

void rl_hash_dims(const rl_plan *p, const bool *open, const uint32_t *at, uint64_t *dims) {
    for (uint32_t v = 0; v < p->g->nval; v++) {
        const rl_member *m = &p->member[v];
        if (m->cls == RL_NONE || !m->seq || !rl_is_open(&p->cls.p[m->cls], open)) continue;
        for (uint32_t i = 0; i < rl_val(p->g, (rl_value){v})->rank; i++)
            for (uint32_t j = m->dimstart[i]; j < m->dimstart[i + 1]; j++) {
                uint64_t *x = &dims[at[m->cls] + m->seq[j]], both[2] = {*x, i};
                *x = rl_hash_bytes(both, sizeof both);
            }
    }
}

static void number_roles(chooser *k, uint32_t cls) {
    uint32_t at = k->l->at[cls];
    for (uint32_t a = 0; a < natoms(k, cls); a++) {
        uint32_t b = 0, x = label_of(k, cls, a);
        while (k->dims[at + b] != k->dims[at + a]) b++;
        k->role[at + a] = b < a ? k->role[at + b] : k->nrole++;
        if (size_of(k, x) >= FEW) k->rarest[cls] = rarer(k, x, k->rarest[cls]);
    }
}

/* The label that the most roles have that are not met, RL_NONE: all are. */
static uint32_t best_label(chooser *k, const uint32_t *cls, uint32_t n) {
    uint32_t best = RL_NONE;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a < natoms(k, cls[i]); a++) k->count[label_of(k, cls[i], a)] = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a < natoms(k, cls[i]); a++) k->count[label_of(k, cls[i], a)] += !k->met[role_of(k, cls[i], a)];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a < natoms(k, cls[i]); a++) {
            uint32_t x = label_of(k, cls[i], a), most = best == RL_NONE ? 0 : k->count[best];
            if (k->count[x] > most) best = x;
            else if (most && k->count[x] == most) best = rarer(k, x, best);
        }
    return best;
}

static void forget(chooser *k, const uint32_t *cls, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a < natoms(k, cls[i]); a++) k->met[role_of(k, cls[i], a)] = k->taken[label_of(k, cls[i], a)] = false;
}

/* One label of each role of these classes. */
static void take_roles(chooser *k, const uint32_t *cls, uint32_t n) {
    for (uint32_t x; (x = best_label(k, cls, n)) != RL_NONE;) {
        k->taken[x] = true;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t a = 0; a < natoms(k, cls[i]); a++)
                if (label_of(k, cls[i], a) == x) k->met[role_of(k, cls[i], a)] = true;
    }
}

typedef struct { uint32_t *p, n, cap; } labels;

/* Labels of these classes, one of each part of each home. */
static labels list_parts(chooser *k, const uint32_t *cls, uint32_t n, rl_arena *tmp) {
    labels all = {0};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a < natoms(k, cls[i]); a++) k->part[label_of(k, cls[i], a)] = k->nparts[k->home[label_of(k, cls[i], a)]] = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a < natoms(k, cls[i]); a++) {
            uint64_t both[2] = {k->dims[k->l->at[cls[i]] + a], cls[i]};
            k->part[label_of(k, cls[i], a)] += rl_hash_bytes(both, sizeof both);
        }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a < natoms(k, cls[i]); a++) {
            uint32_t x = label_of(k, cls[i], a), j = 0;
            while (j < all.n && (k->part[all.p[j]] != k->part[x] || k->home[all.p[j]] != k->home[x])) j++;
            if (j < all.n) continue;
            rl_push(tmp, all, x);
            k->nparts[k->home[x]]++;
        }
    return all;
}

/* Of dims that are alike only the first is taken in all parts. */
static void take_parts(chooser *k, const uint32_t *cls, uint32_t n, rl_arena *tmp) {
    const labels all = list_parts(k, cls, n, tmp);
    for (uint32_t i = 0; i < all.n; i++) {
        uint32_t home = k->home[all.p[i]], nparts = k->nparts[home];
        bool again = false, alike = false;
        for (uint32_t j = 0; j < all.n; j++) {
            uint32_t other = k->home[all.p[j]];
            again |= j < i && other == home;
            alike |= nparts > 1 && other < home && k->homecls[other] == k->homecls[home] && k->nparts[other] == nparts;
        }
        k->taken[all.p[i]] = !(again && alike);
    }
}

/* For the classes whose rarest label this is. */
static void drop_around(chooser *k, uint32_t label, bool parts, bool *drop) {
    const uint32_t *cls = k->cls + k->beg[label], n = size_of(k, label);
    rl_arena tmp;
    rl_arena_init(&tmp, k->p->g->ctx);
    forget(k, cls, n);
    if (parts) take_parts(k, cls, n, &tmp);
    else take_roles(k, cls, n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; k->rarest[cls[i]] == label && a < natoms(k, cls[i]); a++)
            drop[k->l->at[cls[i]] + a] = !k->taken[label_of(k, cls[i], a)];
    rl_arena_free(&tmp);
}

/* A class's atoms are numbered in the sequence of its first tensor. */
static void find_homes(chooser *k) {
    for (uint32_t x = 0; x < k->l->n; x++) k->home[x] = RL_NONE;
    for (uint32_t c = 0; c < k->p->cls.n; c++) {
        if (!is_open(k, c)) continue;
        const rl_value first = k->p->cls.p[c].first;
        const rl_member *m = &k->p->member[first.i];
        for (uint32_t i = 0; i < rl_val(k->p->g, first)->rank; i++)
            for (uint32_t a = m->dimstart[i]; a < m->dimstart[i + 1]; a++) {
                uint32_t *home = &k->home[label_of(k, c, a)], at = k->l->at[c] + m->dimstart[i];
                if (*home == RL_NONE) *home = at;
                k->homecls[at] = c;
            }
    }
}

static void list_classes(chooser *k, rl_arena *tmp) {
    struct { uint32_t *p; uint32_t n, cap; } label = {0}, cls = {0};
    for (uint32_t c = 0; c < k->p->cls.n; c++)
        for (uint32_t a = 0; is_open(k, c) && a < natoms(k, c); a++) {
            rl_push(tmp, label, label_of(k, c, a));
            rl_push(tmp, cls, c);
        }
    k->beg = rl_sort_by_key(tmp, k->l->n, label.p, cls.p, cls.n, sizeof *cls.p);
    k->cls = cls.p;
}

void rl_drop_alike(const rl_plan *p, const rl_atomlabels *l, const bool *open, bool parts, bool *drop, rl_arena *tmp) {
    chooser k = {.p = p, .l = l, .open = open};
    k.dims = rl_new(tmp, uint64_t, l->n);
    k.role = rl_new(tmp, uint32_t, l->n), k.count = rl_new(tmp, uint32_t, l->n), k.rarest = rl_new(tmp, uint32_t, p->cls.n);
    k.met = rl_new(tmp, bool, l->n), k.taken = rl_new(tmp, bool, l->n);
    k.part = rl_new(tmp, uint64_t, l->n), k.home = rl_new(tmp, uint32_t, l->n);
    k.nparts = rl_new(tmp, uint32_t, l->n), k.homecls = rl_new(tmp, uint32_t, l->n);
    bool *done = rl_new(tmp, bool, l->n); /* by label */
    find_homes(&k);
    list_classes(&k, tmp);
    rl_hash_dims(p, open, l->at, k.dims);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        k.rarest[c] = RL_NONE;
        if (is_open(&k, c)) number_roles(&k, c);
    }
    for (uint32_t c = 0; c < p->cls.n; c++) {
        uint32_t x = k.rarest[c];
        if (x == RL_NONE || done[x]) continue;
        done[x] = true;
        drop_around(&k, x, parts, drop);
    }
}
