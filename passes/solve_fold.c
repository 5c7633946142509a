/* Folding the cover (solve_cover.h): elements that another can stand in for, everywhere at once.
 *
 * A fold is a map f of elements to elements of the same value, with f(f(e)) = f(e), such that every configuration c of every op
 * has an image c' in that op with elements(c') within f(elements(c)) and cost(c') <= cost(c).  Replacing each choice by its
 * image never costs more, so all configurations that hold an element with f(e) != e can go.  (Retraction to a smaller core;
 * substitutability of values in constraint networks, Freuder 1991, for many variables together.)
 *
 * Example: an order that no op needs, [b,a,c], is folded onto [a,b,c] in all tensors that are tied together; what is left are
 * the orders that some op asks for, carried through the others.
 *
 * Folds are found greedily: assume e -> d, look for an image of each configuration that holds e; where the best one differs in
 * other elements too, these must be mapped as well; until nothing is open, or no image exists.  A pair met in a failed attempt
 * is not tried again; and where a configuration would have no image whatever else is mapped, the pair is hopeless: no attempt goes
 * there any more, and pairs that needed it may be hopeless, too (arc consistency, Mackworth 1977, only where attempts fail). */
#include "solve_cover.h"
#include <string.h>

enum { STEPS_A_LOOK = 1 << 14 }; /* steps from one look at the clock to the next */

typedef struct { uint32_t op, slot; } touch;
typedef struct { uint8_t *bit; rl_hash many; } pairset; /* a bit for each pair; or, where there are too many, those that are in it */

typedef struct {
    rl_cover *p;
    uint64_t budget;             /* steps left; none after the deadline */
    double deadline;
    uint32_t *touchbeg;          /* [nelem + 1] */
    touch *touch;                /* the ops that have an element, and its place there */
    uint32_t **holdbeg, **hold;  /* [op] the configurations that hold each element */
    uint32_t *map;               /* [nelem] */
    bool *folded;                /* [nelem] mapped for good: its configurations are gone */
    bool *target;                /* [nelem] something is mapped to it, or an image needs it */
    bool *stays;                 /* [nelem] all configurations of some op hold it: no image can do without it */
    struct { struct mapped { uint32_t elem, by, op, cfg; } *p; uint32_t n, cap; } mapped; /* by: for which, as this configuration's image needs it; RL_NONE: the first */
    struct { uint32_t *p; uint32_t n, cap; } targets;
    rl_arena *mem;
    uint64_t *pairbeg;           /* [nval] of each value the pairs of its elements, one after the other; NULL: too many */
    uint32_t *among, *count;     /* [nelem] the element's place among those of its value; [nval] how many there are */
    pairset failed, hopeless;    /* mapped in an attempt that failed; in no fold */
    struct { uint32_t *elem, *image, *open, n; } now; /* the configuration that an image is looked for; open: value of an element that may still be mapped */
} folder;

static bool holds(const rl_bundle *b, uint32_t c, uint32_t e) {
    const uint32_t *s = rl_bundle_set(b, c);
    for (uint32_t i = 0; i < b->width; i++)
        if (s[i] == e) return true;
    return false;
}

/* ---- pairs of elements of one value ---- */

enum { MANYPAIRS = 1 << 26 };

static void count_pairs(rl_arena *mem, folder *f) {
    const rl_cover *p = f->p;
    uint64_t n = 0;
    f->pairbeg = rl_new(mem, uint64_t, p->nval);
    f->among = rl_new(mem, uint32_t, p->nelem);
    f->count = rl_new(mem, uint32_t, p->nval);
    for (uint32_t e = 0; e < p->nelem; e++) f->among[e] = f->count[p->value[e]]++;
    for (uint32_t v = 0; v < p->nval; v++) {
        f->pairbeg[v] = n;
        n += (uint64_t)f->count[v] * f->count[v];
    }
    if (n > MANYPAIRS) f->pairbeg = NULL;
    for (pairset *const *set = (pairset *[]){&f->failed, &f->hopeless, NULL}; *set; set++) {
        (*set)->many.mem = mem;
        if (f->pairbeg) (*set)->bit = rl_new(mem, uint8_t, n / 8 + 1);
    }
}

static uint64_t pair_key(const folder *f, uint32_t e, uint32_t d) {
    uint32_t v = f->p->value[e];
    if (!f->pairbeg) return (uint64_t)e << 32 | d;
    return f->pairbeg[v] + (uint64_t)f->among[e] * f->count[v] + f->among[d];
}

static bool has_pair(const folder *f, const pairset *set, uint32_t e, uint32_t d) {
    uint64_t k = pair_key(f, e, d);
    return f->pairbeg ? set->bit[k / 8] >> k % 8 & 1 : rl_hash_get(&set->many, k) != RL_NONE;
}

static void add_pair(const folder *f, pairset *set, uint32_t e, uint32_t d) {
    uint64_t k = pair_key(f, e, d);
    if (f->pairbeg) set->bit[k / 8] |= (uint8_t)(1u << k % 8);
    else rl_hash_put(&set->many, k, 1);
}

/* ---- images ---- */

/* Is d among the images of the elements of configuration c? */
static bool covers(const folder *f, const rl_bundle *b, uint32_t c, uint32_t d) {
    const uint32_t *s = rl_bundle_set(b, c);
    for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++)
        if (f->map[s[i]] == d) return true;
    return false;
}

/* The element of c that could be mapped to d, given that c2 is to be the image of c; RL_NONE if there is none. */
static uint32_t preimage(const folder *f, const rl_bundle *b, uint32_t c, uint32_t c2, uint32_t d) {
    const uint32_t *s = rl_bundle_set(b, c);
    for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++) {
        uint32_t e = s[i];
        if (f->p->value[e] == f->p->value[d] && f->map[e] == e && !f->target[e] && !holds(b, c2, e) && !has_pair(f, &f->hopeless, e, d)) return e;
    }
    return RL_NONE;
}

/* What distance asks about configuration c. */
static void look_at(folder *f, const rl_bundle *b, uint32_t c) {
    const uint32_t *s = rl_bundle_set(b, c);
    f->now.n = 0;
    for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++) {
        uint32_t e = s[i], k = f->now.n++;
        f->now.elem[k] = e;
        f->now.image[k] = f->map[e];
        f->now.open[k] = f->map[e] == e && !f->target[e] ? f->p->value[e] : RL_NONE;
    }
}

static bool is_image(const folder *f, uint32_t d) {
    for (uint32_t k = 0; k < f->now.n; k++)
        if (f->now.image[k] == d) return true;
    return false;
}

static bool has_preimage(const folder *f, const rl_bundle *b, uint32_t c2, uint32_t d) {
    for (uint32_t k = 0; k < f->now.n; k++)
        if (f->now.open[k] == f->p->value[d] && !holds(b, c2, f->now.elem[k]) && !has_pair(f, &f->hopeless, f->now.elem[k], d)) return true;
    return false;
}

/* How many more elements must be mapped for c2 to be the image of the configuration looked at; RL_NONE if it cannot be, or if that is not
 * below least. */
static uint32_t distance(const folder *f, const rl_bundle *b, uint32_t c2, uint32_t least) {
    const uint32_t *s = rl_bundle_set(b, c2);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++) {
        uint32_t d = s[i];
        if (f->map[d] != d) return RL_NONE;
        if (is_image(f, d)) continue;
        if (++n >= least || !has_preimage(f, b, c2, d)) return RL_NONE;
    }
    return n;
}

static void set_map(folder *f, struct mapped m, uint32_t d) {
    f->map[m.elem] = d;
    rl_push(f->mem, f->mapped, m);
    if (f->target[d]) return;
    f->target[d] = true;
    rl_push(f->mem, f->targets, d);
}

static void take_step(folder *f) {
    f->budget -= f->budget > 0;
    if (f->budget % STEPS_A_LOOK == 0 && rl_time_up(f->mem->ctx, f->deadline)) f->budget = 0;
}

static uint32_t slot_in(const folder *f, uint32_t elem, uint32_t op) {
    for (uint32_t k = f->touchbeg[elem]; k < f->touchbeg[elem + 1]; k++)
        if (f->touch[k].op == op) return f->touch[k].slot;
    return RL_NONE;
}

/* The configurations that may be an image where an element is in this slot: those that hold it, all where the op does not have it. */
typedef struct { const uint32_t *cfg; uint32_t from, to; } span; /* cfg[from] .. cfg[to - 1]; NULL: from .. to - 1 */

static span images_with(const folder *f, uint32_t op, uint32_t slot) {
    if (slot == RL_NONE) return (span){NULL, 0, f->p->op[op].ncfg};
    return (span){f->hold[op], f->holdbeg[op][slot], f->holdbeg[op][slot + 1]};
}

/* Finds an image of configuration c of the op, which holds the i-th that was mapped; maps what that needs. */
static bool find_image(folder *f, uint32_t i, uint32_t op, uint32_t c, const span *s) {
    const rl_bundle *b = &f->p->op[op];
    uint32_t best = RL_NONE, least = RL_NONE;
    look_at(f, b, c);
    for (uint32_t k = s->from; k < s->to && least; k++) {
        uint32_t c2 = s->cfg ? s->cfg[k] : k, n = b->cost[c2] > b->cost[c] ? RL_NONE : distance(f, b, c2, least);
        take_step(f);
        if (n < least) least = n, best = c2;
    }
    if (best == RL_NONE) return false;
    for (const uint32_t *d = rl_bundle_set(b, best), *end = d + b->width; d < end && *d != RL_NONE; d++) {
        if (covers(f, b, c, *d)) continue;
        uint32_t e = preimage(f, b, c, best, *d);
        if (e == RL_NONE) return false;
        set_map(f, (struct mapped){e, i, op, c}, *d);
    }
    return true;
}

/* ---- what no fold can have ---- */

/* Does configuration c hold an element of an earlier fold? */
static bool is_gone(const folder *f, uint32_t op, uint32_t c) {
    const uint32_t *s = rl_bundle_set(&f->p->op[op], c);
    for (uint32_t i = 0; i < f->p->op[op].width && s[i] != RL_NONE; i++)
        if (f->folded[s[i]]) return true;
    return false;
}

/* Could c2 be the image of c, if x goes to y, and everything else where it may? */
static bool could_be_image(const folder *f, const rl_bundle *b, uint32_t c, uint32_t c2, uint32_t x, uint32_t y) {
    const uint32_t *from = rl_bundle_set(b, c), *to = rl_bundle_set(b, c2);
    for (uint32_t i = 0; i < b->width && to[i] != RL_NONE; i++) {
        uint32_t d = to[i];
        if (f->folded[d]) return false;
        bool found = d == y || (d != x && holds(b, c, d));
        for (uint32_t k = 0; k < b->width && from[k] != RL_NONE && !found; k++) {
            uint32_t e = from[k];
            found = e != x && f->p->value[e] == f->p->value[d] && !holds(b, c2, e) && !has_pair(f, &f->hopeless, e, d);
        }
        if (!found) return false;
    }
    return true;
}

static bool could_have_image(folder *f, uint32_t op, uint32_t c, uint32_t x, uint32_t y) {
    const rl_bundle *b = &f->p->op[op];
    const span s = images_with(f, op, slot_in(f, y, op));
    for (uint32_t i = s.from; i < s.to; i++) {
        uint32_t c2 = s.cfg ? s.cfg[i] : i;
        take_step(f);
        if (b->cost[c2] <= b->cost[c] && could_be_image(f, b, c, c2, x, y)) return true;
    }
    return false;
}

/* Configuration c of the op has no image where the i-th that was mapped is.  If it could not have one, no fold that leaves it maps so, and what the
 * mapping was for may have lost its last image with it, and so on. */
static void note_hopeless(folder *f, uint32_t i, uint32_t op, uint32_t c) {
    while (i != RL_NONE) {
        struct mapped m = f->mapped.p[i];
        if (could_have_image(f, op, c, m.elem, f->map[m.elem])) return;
        add_pair(f, &f->hopeless, m.elem, f->map[m.elem]);
        i = m.by, op = m.op, c = m.cfg;
    }
}

/* ---- one fold ---- */

/* Maps what the i-th that was mapped leads to at one op. */
static bool follow(folder *f, uint32_t i, touch t) {
    uint32_t x = f->mapped.p[i].elem;
    const span s = images_with(f, t.op, slot_in(f, f->map[x], t.op));
    for (uint32_t j = f->holdbeg[t.op][t.slot]; j < f->holdbeg[t.op][t.slot + 1]; j++) {
        uint32_t c = f->hold[t.op][j];
        if (!f->budget) return false;
        if (is_gone(f, t.op, c) || find_image(f, i, t.op, c, &s)) continue;
        note_hopeless(f, i, t.op, c);
        return false;
    }
    return true;
}

/* Tries the fold that e -> d leads to.  On failure nothing is mapped. */
static bool attempt(folder *f, uint32_t e, uint32_t d) {
    bool good = true;
    f->mapped.n = f->targets.n = 0;
    set_map(f, (struct mapped){e, RL_NONE, 0, 0}, d);
    for (uint32_t i = 0; i < f->mapped.n && good; i++) {
        uint32_t x = f->mapped.p[i].elem;
        for (uint32_t k = f->touchbeg[x]; k < f->touchbeg[x + 1] && good; k++) good = follow(f, i, f->touch[k]);
    }
    for (uint32_t i = 0; i < f->mapped.n && good; i++) f->folded[f->mapped.p[i].elem] = true;
    for (uint32_t i = 0; i < f->mapped.n && !good; i++) {
        uint32_t x = f->mapped.p[i].elem;
        add_pair(f, &f->failed, x, f->map[x]);
        f->map[x] = x;
    }
    for (uint32_t i = 0; i < f->targets.n; i++) f->target[f->targets.p[i]] = false;
    return good;
}

/* ---- setting up ---- */

static void index_op(rl_arena *mem, folder *f, uint32_t op, uint32_t *slot, uint32_t *local) {
    const rl_bundle *b = &f->p->op[op];
    size_t size = (size_t)b->ncfg * b->width;
    uint32_t n = 0, at = 0;
    for (size_t k = 0; k < size; k++)
        if (b->elem[k] != RL_NONE && !slot[b->elem[k]]) {
            local[n] = b->elem[k];
            slot[b->elem[k]] = ++n;
        }
    uint32_t *beg = f->holdbeg[op] = rl_new(mem, uint32_t, n + 1), *hold = f->hold[op] = rl_new(mem, uint32_t, size);
    for (size_t k = 0; k < size; k++)
        if (b->elem[k] != RL_NONE) beg[slot[b->elem[k]] - 1]++;
    for (uint32_t k = 0; k < n; k++) {
        f->stays[local[k]] |= beg[k] == b->ncfg;
        at = beg[k] += at;
    }
    beg[n] = at;
    for (uint32_t c = b->ncfg; c-- > 0;) {
        const uint32_t *s = rl_bundle_set(b, c);
        for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++) hold[--beg[slot[s[i]] - 1]] = c;
    }
    for (uint32_t k = 0; k < n; k++) {
        f->touch[--f->touchbeg[local[k]]] = (touch){op, k};
        slot[local[k]] = 0;
    }
}

static void index_all(rl_arena *mem, folder *f) {
    const rl_cover *p = f->p;
    uint32_t *seen = rl_new(mem, uint32_t, p->nelem), total = 0;
    size_t most = 0;
    for (uint32_t o = 0; o < p->nop; o++) {
        size_t size = (size_t)p->op[o].ncfg * p->op[o].width;
        most = RL_MAX(most, size);
        for (size_t k = 0; k < size; k++) {
            uint32_t e = p->op[o].elem[k];
            if (e == RL_NONE || seen[e] == o + 1) continue;
            seen[e] = o + 1;
            f->touchbeg[e]++;
            total++;
        }
    }
    uint32_t at = 0;
    for (uint32_t e = 0; e < p->nelem; e++) at = f->touchbeg[e] += at;
    f->touchbeg[p->nelem] = at;
    f->touch = rl_new(mem, touch, total);
    uint32_t *slot = rl_new(mem, uint32_t, p->nelem), *local = rl_new(mem, uint32_t, most);
    for (uint32_t o = p->nop; o-- > 0;) index_op(mem, f, o, slot, local);
}

/* The elements of each value that some op has: elem[beg[v] .. beg[v+1]-1].  Returns beg. */
static const uint32_t *by_value(rl_arena *mem, const folder *f, uint32_t *elem) {
    const rl_cover *p = f->p;
    uint32_t *value = rl_new(mem, uint32_t, p->nelem), n = 0;
    for (uint32_t e = 0; e < p->nelem; e++) {
        if (f->touchbeg[e + 1] == f->touchbeg[e]) continue;
        value[n] = p->value[e];
        elem[n++] = e;
    }
    return rl_sort_by_key(mem, p->nval, value, elem, n, sizeof *elem);
}

/* Removes the configurations that hold an element which was folded. */
static void drop_folded(folder *f) {
    for (uint32_t o = 0; o < f->p->nop; o++) {
        rl_bundle *b = &f->p->op[o];
        uint32_t n = 0;
        for (uint32_t c = 0; c < b->ncfg; c++) {
            const uint32_t *s = rl_bundle_set(b, c);
            bool gone = false;
            for (uint32_t i = 0; i < b->width && s[i] != RL_NONE; i++) gone |= f->map[s[i]] != s[i];
            if (gone) continue;
            memmove(b->elem + (size_t)n * b->width, s, b->width * sizeof *s);
            b->cost[n] = b->cost[c];
            b->orig[n++] = b->orig[c];
        }
        b->ncfg = n;
    }
}

uint32_t rl_cover_fold(rl_arena *mem, rl_cover *p, uint64_t budget, double deadline, uint32_t *map) {
    rl_arena tmp;
    rl_arena_init(&tmp, mem->ctx);
    folder f = {.p = p, .budget = budget, .deadline = deadline, .mem = &tmp};
    uint32_t widest = 0;
    f.touchbeg = rl_new(&tmp, uint32_t, (size_t)p->nelem + 1);
    f.holdbeg = rl_new(&tmp, uint32_t *, p->nop);
    f.hold = rl_new(&tmp, uint32_t *, p->nop);
    f.map = rl_new(&tmp, uint32_t, p->nelem);
    f.target = rl_new(&tmp, bool, p->nelem);
    f.folded = rl_new(&tmp, bool, p->nelem);
    f.stays = rl_new(&tmp, bool, p->nelem);
    for (uint32_t e = 0; e < p->nelem; e++) f.map[e] = e;
    for (uint32_t o = 0; o < p->nop; o++) widest = RL_MAX(widest, p->op[o].width);
    f.now.elem = rl_new(&tmp, uint32_t, widest);
    f.now.image = rl_new(&tmp, uint32_t, widest);
    f.now.open = rl_new(&tmp, uint32_t, widest);
    count_pairs(&tmp, &f);
    index_all(&tmp, &f);
    uint32_t *elem = rl_new(&tmp, uint32_t, p->nelem), nfold = 0;
    const uint32_t *beg = by_value(&tmp, &f, elem);
    for (uint32_t v = 0; v < p->nval && f.budget; v++)
        for (uint32_t i = beg[v + 1]; i-- > beg[v] && f.budget;) {
            uint32_t e = elem[i];
            for (uint32_t j = beg[v]; j < beg[v + 1] && f.map[e] == e && !f.stays[e] && f.budget; j++) {
                uint32_t d = elem[j];
                if (d != e && f.map[d] == d && !has_pair(&f, &f.failed, e, d) && !has_pair(&f, &f.hopeless, e, d) && attempt(&f, e, d))
                    nfold += f.mapped.n;
            }
        }
    drop_folded(&f);
    for (uint32_t e = 0; e < p->nelem && map; e++) /* what stood in for others may have been folded after them */
        for (map[e] = f.map[e]; f.map[map[e]] != map[e];) map[e] = f.map[map[e]];
    rl_arena_free(&tmp);
    return nfold;
}
