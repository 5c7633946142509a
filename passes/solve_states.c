/* States and sets of the frontier: see solve_states.h. */
#include "solve_states.h"
#include <string.h>

void rl_states_reserve(rl_arena *mem, rl_states *f, uint32_t nelem) {
    if (f->n + 2 > f->cap) {
        uint32_t cap = f->cap ? f->cap * 2 : 256;
        f->cost = rl_grow(mem, f->cost, f->cap, cap, sizeof *f->cost);
        f->hash = rl_grow(mem, f->hash, f->cap, cap, sizeof *f->hash);
        f->sig = rl_grow(mem, f->sig, f->cap, cap, sizeof *f->sig);
        f->beg = rl_grow(mem, f->beg, f->cap, cap, sizeof *f->beg);
        f->parent = rl_grow(mem, f->parent, f->cap, cap, sizeof *f->parent);
        f->cfg = rl_grow(mem, f->cfg, f->cap, cap, sizeof *f->cfg);
        f->loose = rl_grow(mem, f->loose, f->cap, cap, sizeof *f->loose);
        f->cap = cap;
    }
    if (nelem >= f->capelem - f->nelem) {
        uint32_t cap = RL_MAX(f->capelem * 2, f->nelem + nelem + 1024);
        f->elem = rl_grow(mem, f->elem, f->capelem, cap, sizeof *f->elem);
        f->capelem = cap;
    }
}

void rl_states_copy(rl_arena *mem, rl_states *to, const rl_states *f, uint32_t s) {
    uint32_t n = rl_states_size(f, s);
    rl_states_reserve(mem, to, n);
    memcpy(to->elem + to->nelem, f->elem + f->beg[s], n * sizeof *to->elem);
    to->nelem += n;
    to->cost[to->n] = f->cost[s];
    to->parent[to->n] = f->parent[s];
    to->cfg[to->n] = f->cfg[s];
    to->loose[to->n] = f->loose[s];
    to->beg[++to->n] = to->nelem;
}

uint32_t rl_set_merge(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb, uint32_t *out) {
    uint32_t i = 0, j = 0, n = 0;
    while (i < na && j < nb) {
        uint32_t x = a[i], y = b[j];
        out[n++] = RL_MIN(x, y);
        i += x <= y;
        j += y <= x;
    }
    while (i < na) out[n++] = a[i++];
    while (j < nb) out[n++] = b[j++];
    return n;
}

/* ---- the table ---- */

static uint64_t random_word(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

void rl_statetable_init(rl_arena *mem, rl_statetable *t, uint32_t nelem) {
    t->word = rl_new(mem, uint64_t, nelem);
    for (uint32_t e = 0; e < nelem; e++) t->word[e] = random_word(e);
    t->cap = 1024;
    t->slot = rl_new(mem, uint32_t, t->cap);
}

void rl_statetable_clear(rl_statetable *t) {
    memset(t->slot, 0, t->cap * sizeof *t->slot);
}

static void grow(rl_arena *mem, rl_statetable *t, const rl_states *f) {
    t->cap *= 2;
    t->slot = rl_new(mem, uint32_t, t->cap);
    for (uint32_t s = 0; s < f->n; s++) {
        uint32_t i = (uint32_t)(f->hash[s] >> 32) & (t->cap - 1);
        while (t->slot[i]) i = (i + 1) & (t->cap - 1);
        t->slot[i] = s + 1;
    }
}

uint32_t *rl_statetable_find(rl_arena *mem, rl_statetable *t, const rl_states *f, uint32_t n, uint64_t *hash, uint64_t *sig) {
    const uint32_t *set = f->elem + f->nelem;
    if (f->n * 2 >= t->cap) grow(mem, t, f);
    uint64_t h = 0, g = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t w = t->word[set[i]];
        h += w;
        g |= UINT64_C(1) << (w & 63);
    }
    uint32_t i = (uint32_t)(h >> 32) & (t->cap - 1);
    for (uint32_t s; (s = t->slot[i]) != 0; i = (i + 1) & (t->cap - 1))
        if (f->hash[s - 1] == h && rl_states_size(f, s - 1) == n && rl_same_bytes(f->elem + f->beg[s - 1], set, n * sizeof *set)) break;
    *hash = h;
    *sig = g;
    return &t->slot[i];
}

/* ---- the index ---- */

void rl_setindex_add(rl_arena *mem, rl_setindex *x, uint32_t id, const uint32_t *set, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        rl_push(mem, x->link, ((rl_holder){id, x->head[set[i]]}));
        x->head[set[i]] = x->link.n;
        x->count[set[i]]++;
    }
}

void rl_setindex_clear(rl_setindex *x, const uint32_t *elem, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) x->head[elem[i]] = x->count[elem[i]] = 0;
    x->link.n = 0;
}
