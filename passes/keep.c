/* Which atoms the bound looks at (bound.c): few enough to enumerate every order.
 *
 * Nothing here needs to be right, as any choice gives a valid bound; only the result says how good it was.  First a run that
 * stays together wherever it stands counts as one: its last atom is kept; or one atom of each role, or part, is (keep_roles.c).  Then, class by
 * class, atoms go that tell the fewest of the orders apart that the model itself names (level 0).
 *   orders named at x: [h w c d] [c d h w] [h c d w]      keep h w d: c is always right before d */
#include "keep.h"
#include <string.h>

/* ---- labels ---- */

uint32_t rl_label_of(const rl_atomlabels *l, uint32_t cls, uint32_t atom) {
    uint32_t x = l->at[cls] + atom;
    while (l->up[x] != x) x = l->up[x] = l->up[l->up[x]];
    return x;
}

static void tie_token(rl_atomlabels *l, const rl_oplegal *op, const rl_token *t) {
    uint32_t first = RL_NONE;
    for (uint32_t o = 0; o < op->noperand; o++) {
        if (!op->operand[o].pin || !t->natom[o]) continue;
        if (first == RL_NONE) first = o;
        if (t->natom[o] != t->natom[first]) continue;
        for (uint32_t j = 0; j < t->natom[o]; j++)
            l->up[rl_label_of(l, op->operand[o].cls, t->atom[o][j])] = rl_label_of(l, op->operand[first].cls, t->atom[first][j]);
    }
}

static rl_atomlabels tie_atoms(const rl_plan *p, const bool *open, rl_arena *tmp) {
    rl_atomlabels l = {.at = rl_new(tmp, uint32_t, p->cls.n)};
    for (uint32_t c = 0; c < p->cls.n; c++) {
        l.at[c] = l.n;
        l.n += rl_is_open(&p->cls.p[c], open) ? p->cls.p[c].natom : 0;
    }
    l.up = rl_new(tmp, uint32_t, l.n);
    l.next = rl_new(tmp, uint32_t, l.n);
    for (uint32_t i = 0; i < l.n; i++) l.up[i] = i;
    for (uint32_t k = 0; k < p->op.n; k++) {
        const rl_oplegal *op = &p->op.p[k];
        if (!rl_may_move(op) || !open[op->comp]) continue;
        for (uint32_t t = 0; t < op->ntoken; t++) tie_token(&l, op, &op->token[t]);
    }
    return l;
}

enum { UNSEEN = 0, MIXED = 1, FIRSTLABEL = 2 }; /* of labels.next */

/* Notes for each label which kept label is right behind it, in one order. */
static void note_followers(rl_atomlabels *l, const bool *drop, uint32_t cls, const uint8_t *order, uint32_t natom) {
    uint32_t behind = MIXED;
    for (uint32_t i = natom; i-- > 0;) {
        uint32_t x = rl_label_of(l, cls, order[i]);
        if (drop[l->at[cls] + order[i]]) continue;
        l->next[x] = l->next[x] == UNSEEN || l->next[x] == behind ? behind : MIXED;
        behind = x + FIRSTLABEL;
    }
}

/* A label that the same label follows wherever it stands can go: where the one moves, so does the other. */
static bool glue(rl_atomlabels *l, const rl_plan *p, const bool *open, bool *drop) {
    bool more = false;
    memset(l->next, 0, l->n * sizeof *l->next);
    for (uint32_t c = 0; c < p->cls.n; c++) {
        const rl_cls *k = &p->cls.p[c];
        for (uint32_t q = 0; q < k->order.n && rl_is_open(k, open); q++)
            if (k->order.p[q].level == 0) note_followers(l, drop, c, k->order.p[q].p, k->natom);
    }
    for (uint32_t c = 0; c < p->cls.n; c++)
        for (uint32_t a = 0; a < p->cls.p[c].natom && rl_is_open(&p->cls.p[c], open); a++)
            if (!drop[l->at[c] + a] && l->next[rl_label_of(l, c, a)] >= FIRSTLABEL) more = drop[l->at[c] + a] = true;
    return more;
}

/* ---- one class ---- */

typedef struct { const rl_cls *c; bool drop[RL_MAXATOM]; uint32_t nleft; } keeper;

/* The next kept atom in an order after place i; RL_MAXATOM: none. */
static uint32_t following(const keeper *k, const uint8_t *order, uint32_t i) {
    for (i++; i < k->c->natom; i++)
        if (!k->drop[order[i]]) return order[i];
    return RL_MAXATOM;
}

/* Is the same kept atom right behind this one in every order that the model names? */
static bool is_glued(const keeper *k, uint32_t atom) {
    uint32_t next = RL_NONE;
    for (uint32_t q = 0; q < k->c->order.n; q++) {
        const rl_order *o = &k->c->order.p[q];
        if (o->level) continue;
        uint32_t at = 0;
        while (o->p[at] != atom) at++;
        uint32_t f = following(k, o->p, at);
        if (f == RL_MAXATOM || (next != RL_NONE && next != f)) return false;
        next = f;
    }
    return next != RL_NONE;
}

/* How many different orders the model's own become under the atoms that are left. */
static uint32_t distinct(const keeper *k, rl_arena *tmp) {
    uint32_t size = 16, ndistinct = 0;
    while (size < 2 * k->c->order.n) size *= 2;
    uint64_t *seen = rl_new(tmp, uint64_t, size); /* hashes */
    for (uint32_t q = 0; q < k->c->order.n; q++) {
        uint8_t t[RL_MAXATOM];
        uint32_t n = 0;
        if (k->c->order.p[q].level) continue;
        for (uint32_t i = 0; i < k->c->natom; i++)
            if (!k->drop[k->c->order.p[q].p[i]]) t[n++] = k->c->order.p[q].p[i];
        uint64_t h = rl_hash_bytes(t, n) | 1;
        uint32_t i = (uint32_t)(h >> 8) & (size - 1);
        while (seen[i] && seen[i] != h) i = (i + 1) & (size - 1);
        ndistinct += seen[i] == 0;
        seen[i] = h;
    }
    return ndistinct;
}

static void drop_atom(keeper *k, uint32_t atom) {
    k->drop[atom] = true;
    k->nleft--;
}

/* Drops the atom whose absence leaves most of the model's own orders different; of equal ones that of least rank. */
static void drop_least(keeper *k, const uint32_t *rank, rl_arena *tmp) {
    uint32_t best = RL_NONE, most = 0;
    for (uint32_t a = 0; a < k->c->natom; a++) {
        if (k->drop[a]) continue;
        k->drop[a] = true;
        uint32_t n = distinct(k, tmp);
        k->drop[a] = false;
        if (best == RL_NONE || n > most || (n == most && rank[a] < rank[best])) {
            most = n;
            best = a;
        }
    }
    drop_atom(k, best);
}

/* least_first: those of rank 0 go whatever they tell apart. */
static void keep_class(rl_plan *p, rl_cls *c, const bool *drop, const uint32_t *rank, bool least_first, uint32_t mostkept, rl_arena *tmp) {
    keeper k = {.c = c};
    memcpy(k.drop, drop, c->natom);
    for (uint32_t a = 0; a < c->natom; a++) k.nleft += !drop[a];
    for (uint32_t a = 0; a < c->natom && k.nleft > mostkept; a++)
        if (!k.drop[a] && is_glued(&k, a)) drop_atom(&k, a);
    for (uint32_t a = 0; a < c->natom && k.nleft > mostkept && least_first; a++)
        if (!k.drop[a] && rank[a] == 0) drop_atom(&k, a);
    while (k.nleft > mostkept) drop_least(&k, rank, tmp);
    uint8_t *atom = rl_new(p->mem, uint8_t, c->natom + 1);
    c->kept = (rl_kept){.atom = atom};
    for (uint32_t a = 0; a < c->natom; a++)
        if (!k.drop[a]) atom[c->kept.n++] = (uint8_t)a;
}

/* ---- all classes ---- */

/* What to drop first: a small rank.  A label that only two atoms share (the three of query, key and value), where that is looked at; then, of
 * twins, two atoms of a class that share a label (keys beside queries), the second. */
static void rank_atoms(rl_atomlabels *l, uint32_t cls, uint32_t natom, rl_keepway way, uint32_t *rank) {
    const bool few = way == RL_KEEP_PLAIN || way == RL_KEEP_FULL || way == RL_KEEP_SHARED, twins = way != RL_KEEP_PLAIN && way != RL_KEEP_FULL;
    for (uint32_t a = 0; a < natom; a++) {
        rank[a] = few && l->next[rl_label_of(l, cls, a)] <= 2 ? 0 : 2;
        for (uint32_t b = 0; b < a && twins; b++)
            if (rl_label_of(l, cls, b) == rl_label_of(l, cls, a)) rank[a] = RL_MIN(rank[a], 1u);
    }
}

void rl_bound_keep(rl_plan *p, const bool *open, uint32_t mostkept, rl_keepway way) {
    rl_arena tmp, one;
    rl_arena_init(&tmp, p->g->ctx);
    rl_arena_init(&one, p->g->ctx);
    rl_atomlabels l = tie_atoms(p, open, &tmp);
    bool *drop = rl_new(&tmp, bool, l.n);
    const bool shared = way == RL_KEEP_SHARED, roles = shared || way == RL_KEEP_ROLES || way == RL_KEEP_PARTS;
    if (roles) rl_drop_alike(p, &l, open, way == RL_KEEP_PARTS, drop, &tmp);
    while (way != RL_KEEP_FULL && !roles && glue(&l, p, open, drop)) continue;
    memset(l.next, 0, l.n * sizeof *l.next);
    for (uint32_t c = 0; c < p->cls.n; c++)
        for (uint32_t a = 0; a < p->cls.p[c].natom && rl_is_open(&p->cls.p[c], open); a++) l.next[rl_label_of(&l, c, a)]++;
    for (uint32_t c = 0; c < p->cls.n; c++) {
        if (!rl_is_open(&p->cls.p[c], open)) continue;
        uint32_t rank[RL_MAXATOM] = {0};
        rank_atoms(&l, c, p->cls.p[c].natom, way, rank);
        keep_class(p, &p->cls.p[c], drop + l.at[c], rank, shared, mostkept, &one);
        rl_arena_free(&one);
    }
    rl_arena_free(&tmp);
}

/* Labels are numbered as their first atoms are. */
static uint32_t nth_label(const rl_plan *p, const rl_atomlabels *l, const bool *open, uint32_t n) {
    for (uint32_t c = 0; c < p->cls.n; c++)
        for (uint32_t a = 0; a < p->cls.p[c].natom && rl_is_open(&p->cls.p[c], open); a++)
            if (rl_label_of(l, c, a) == l->at[c] + a && n-- == 0) return l->at[c] + a;
    return RL_NONE;
}

bool rl_bound_keep_more(rl_plan *p, const bool *open, uint32_t n, uint32_t mostkept) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    const rl_atomlabels l = tie_atoms(p, open, &tmp);
    const uint32_t label = nth_label(p, &l, open, n);
    for (uint32_t c = 0; c < p->cls.n && label != RL_NONE; c++) {
        rl_cls *x = &p->cls.p[c];
        if (!rl_is_open(x, open) || !x->kept.atom || x->kept.n >= mostkept) continue;
        uint8_t *atom = rl_new(p->mem, uint8_t, x->natom + 1u);
        rl_kept more = {.atom = atom};
        for (uint32_t a = 0; a < x->natom; a++)
            if (memchr(x->kept.atom, (int)a, x->kept.n) || (rl_label_of(&l, c, a) == label && more.n < mostkept)) atom[more.n++] = (uint8_t)a;
        x->kept = more;
    }
    rl_arena_free(&tmp);
    return label != RL_NONE;
}
