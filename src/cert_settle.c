/* A component's table before it is filled: what needs no table taken out, and folds of what is left (docs/proof.md, section 2).
 *
 *   paid   an element that every configuration of some op names: it joins the base
 *   only   an element that one op alone can name never needs to be remembered: its weight joins the costs of that op's configurations, and of
 *          those that then name the same elements the cheapest will do
 *   fold   a map f of elements to elements of the same value, f(f(e)) = f(e).  An image of configuration c is one of the same op that names
 *          elements of f(c) alone, paid ones left out, and costs no more by itself than c.  If every configuration has one, taking
 *          images for all choices pays for no more elements, so some cheapest choice names only elements that are their own image.
 *
 *   {x y} {x z} {w}: paid x, y named by this op alone     {} costing y's weight, {z}, {w}     with f(w) = z: {} and {z} are left */
#include "cert_internal.h"
#include <string.h>

void rl_cert_add_config(rl_cert_step *s, rl_hash *seen, const uint32_t *set, uint32_t n, rl_cert_key own) {
    uint64_t h = rl_hash_bytes(set, n * sizeof *set);
    for (uint32_t i; (i = rl_hash_get(seen, h)) != RL_NONE; h++) {
        uint32_t m = s->start[i + 1] - s->start[i];
        if (m != n || !rl_same_bytes(s->elem + s->start[i], set, n * sizeof *set)) continue;
        if (rl_key_less(own, s->own[i])) s->own[i] = own;
        return;
    }
    rl_hash_put(seen, h, s->ncfg);
    memmove(s->elem + s->start[s->ncfg], set, n * sizeof *set);
    s->own[s->ncfg++] = own;
    s->start[s->ncfg] = s->start[s->ncfg - 1] + n;
}

/* ---- settling ---- */

/* [nelem] how many steps can name an element; paid: all configurations of some step do. */
typedef struct { uint32_t *nstep; bool *paid; } usage;

static usage usage_of(rl_arena *mem, rl_cert_table *t) {
    usage u = {rl_new(mem, uint32_t, t->nelem), rl_new(mem, bool, t->nelem)};
    uint32_t *n = rl_new(mem, uint32_t, t->nelem), *last = rl_new(mem, uint32_t, t->nelem); /* of the step at hand */
    for (uint32_t j = 0; j < t->nstep; j++) {
        const rl_cert_step *s = &t->step[j];
        for (uint32_t i = 0; i < s->start[s->ncfg]; i++) {
            uint32_t e = s->elem[i];
            if (last[e] != j + 1) {
                last[e] = j + 1;
                n[e] = 0;
                u.nstep[e]++;
            }
            if (++n[e] < s->ncfg || u.paid[e]) continue;
            u.paid[e] = true;
            t->base = rl_key_add(t->base, t->weight[e]);
        }
    }
    return u;
}

/* The step written anew, in place: no set is larger than it was. */
static void settle_step(const rl_cert_table *t, const usage *u, rl_cert_step *s, rl_arena *tmp) {
    rl_hash seen = {.mem = tmp};
    uint32_t ncfg = s->ncfg, from = 0;
    s->ncfg = 0;
    for (uint32_t c = 0; c < ncfg; c++) {
        uint32_t to = s->start[c + 1], n = 0, *set = s->elem + from;
        rl_cert_key own = s->own[c];
        for (; from < to; from++) {
            uint32_t e = s->elem[from];
            if (u->paid[e]) continue;
            if (u->nstep[e] == 1) own = rl_key_add(own, t->weight[e]);
            else set[n++] = e;
        }
        rl_cert_add_config(s, &seen, set, n, own);
    }
}

void rl_cert_settle(rl_arena *mem, rl_cert_table *t) {
    rl_arena tmp, one;
    rl_arena_init(&tmp, mem->ctx);
    rl_arena_init(&one, mem->ctx);
    const usage u = usage_of(&tmp, t);
    for (uint32_t j = 0; j < t->nstep; j++) {
        settle_step(t, &u, &t->step[j], &one);
        rl_arena_free(&one);
    }
    rl_arena_free(&tmp);
}

/* ---- folding again ---- */

typedef struct {
    const uint32_t *image;
    bool *stays;           /* [configurations] made of elements that are their own images */
    uint32_t *head, *next; /* of element e the configurations that stay: user[head[e] - 1], user[next[head[e] - 1] - 1] ... */
    uint32_t *user;
    uint32_t *has, *met;   /* [configurations] how many of its elements the image in hand has; met[0..nmet-1]: those that have some */
    uint32_t *stamp, now;  /* [nelem] e is in the image in hand: stamp[e] == now */
    uint64_t *work;
} folder;

static uint32_t nelem_of(const rl_cert_step *s, uint32_t c) { return s->start[c + 1] - s->start[c]; }

static void list_users(folder *f, const rl_cert_step *s) {
    for (uint32_t i = 0; i < s->start[s->ncfg]; i++) f->head[s->elem[i]] = f->head[f->image[s->elem[i]]] = 0;
    for (uint32_t c = 0; c < s->ncfg; c++) {
        f->stays[c] = true;
        for (uint32_t i = s->start[c]; i < s->start[c + 1]; i++) f->stays[c] &= f->image[s->elem[i]] == s->elem[i];
        for (uint32_t i = s->start[c]; i < s->start[c + 1] && f->stays[c]; i++) {
            f->user[i] = c;
            f->next[i] = f->head[s->elem[i]];
            f->head[s->elem[i]] = i + 1;
        }
    }
}

/* Does one that stays name elements of the image of c alone, and cost no more? */
static bool has_image(folder *f, const rl_cert_step *s, uint32_t c, uint32_t empty) {
    bool found = empty != RL_NONE && !rl_key_less(s->own[c], s->own[empty]);
    uint32_t nmet = 0;
    f->now++;
    for (uint32_t i = s->start[c]; i < s->start[c + 1] && !found; i++) {
        uint32_t d = f->image[s->elem[i]];
        if (f->stamp[d] == f->now) continue;
        f->stamp[d] = f->now;
        for (uint32_t l = f->head[d]; l && !found; l = f->next[l - 1]) {
            uint32_t b = f->user[l - 1];
            ++*f->work;
            if (!f->has[b]) f->met[nmet++] = b;
            found = ++f->has[b] == nelem_of(s, b) && !rl_key_less(s->own[c], s->own[b]);
        }
    }
    for (uint32_t k = 0; k < nmet; k++) f->has[f->met[k]] = 0;
    return found;
}

/* Of the configurations that stay and name nothing the cheapest: all images have what it names.  RL_NONE: there is none. */
static uint32_t find_empty(const folder *f, const rl_cert_step *s) {
    uint32_t best = RL_NONE;
    for (uint32_t c = 0; c < s->ncfg; c++)
        if (f->stays[c] && nelem_of(s, c) == 0 && (best == RL_NONE || rl_key_less(s->own[c], s->own[best]))) best = c;
    return best;
}

static void drop_others(const folder *f, rl_cert_step *s) {
    uint32_t m = 0, n = 0;
    for (uint32_t c = 0; c < s->ncfg; c++) {
        uint32_t from = s->start[c], size = nelem_of(s, c);
        if (!f->stays[c]) continue;
        memmove(s->elem + n, s->elem + from, size * sizeof *s->elem);
        s->own[m] = s->own[c];
        s->start[m++] = n;
        n += size;
    }
    s->ncfg = m;
    s->start[m] = n;
}

static bool refold_step(folder *f, rl_cert_step *s) {
    list_users(f, s);
    const uint32_t empty = find_empty(f, s);
    for (uint32_t c = 0; c < s->ncfg; c++)
        if (!f->stays[c] && !has_image(f, s, c, empty)) return false;
    drop_others(f, s);
    return true;
}

bool rl_cert_refold(rl_arena *mem, rl_cert_table *t, const uint32_t *image, uint64_t *work) {
    uint32_t mostcfg = 0, mostelem = 0;
    for (uint32_t j = 0; j < t->nstep; j++) {
        mostcfg = RL_MAX(mostcfg, t->step[j].ncfg);
        mostelem = RL_MAX(mostelem, t->step[j].start[t->step[j].ncfg]);
    }
    rl_arena tmp;
    rl_arena_init(&tmp, mem->ctx);
    folder f = {.image = image, .work = work};
    f.stays = rl_new(&tmp, bool, mostcfg), f.has = rl_new(&tmp, uint32_t, mostcfg), f.met = rl_new(&tmp, uint32_t, mostcfg);
    f.head = rl_new(&tmp, uint32_t, t->nelem), f.stamp = rl_new(&tmp, uint32_t, t->nelem);
    f.user = rl_new(&tmp, uint32_t, mostelem), f.next = rl_new(&tmp, uint32_t, mostelem);
    bool folds = true;
    for (uint32_t j = 0; j < t->nstep && folds; j++) folds = refold_step(&f, &t->step[j]);
    rl_arena_free(&tmp);
    return folds;
}
