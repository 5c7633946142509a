/* Cones that look alike (movement.c): a network is a few blocks repeated, and what cannot be folded in the first of them cannot be folded
 * in the others.  Two look alike when all that the finders of forms read of them is the same, byte by byte: the map, the dims and type of
 * x and y, the views, what the nodes cost. */
#include "movement.h"

enum { LONGEST = 1 << 14 }; /* bytes of what is remembered: tables can be large */

static void put_number(rl_move_memo *m, int64_t x) { rl_put_number(&m->key, x); }

static void put_value(rl_move_memo *m, const rl_graph *g, rl_value v) {
    const rl_valinfo *x = rl_val(g, v);
    put_number(m, x->dtype);
    put_number(m, x->rank);
    if (x->rank != RL_NORANK && x->rank) rl_put_bytes(&m->key, x->dim, x->rank * sizeof *x->dim);
}

static void put_map(rl_move_memo *m, const rl_map *map) {
    put_number(m, map->n);
    put_number(m, map->offset);
    put_number(m, map->fill);
    for (uint32_t i = 0; i < map->n; i++) {
        const rl_mapdigit *d = &map->digit[i];
        put_number(m, d->size);
        put_number(m, d->scale);
        put_number(m, d->tab ? 0 : d->sign);
        if (d->tab) rl_put_bytes(&m->key, d->tab, (size_t)d->size * sizeof *d->tab);
    }
}

bool rl_move_is_hopeless(rl_move_memo *m, const rl_moved *v, bool plain) {
    m->key.n = 0;
    put_number(m, plain);
    put_value(m, v->g, v->x);
    put_value(m, v->g, v->y);
    put_number(m, rl_form_keeps_name(v->g, v->y));
    rl_put_bytes(&m->key, &v->old, sizeof v->old);
    put_map(m, &v->map);
    for (uint32_t i = 0; i < v->nview; i++) {
        put_number(m, v->view[i].rank);
        if (v->view[i].rank) rl_put_bytes(&m->key, v->view[i].dim, v->view[i].rank * sizeof *v->view[i].dim);
    }
    uint64_t h = rl_hash_bytes(m->key.p, m->key.n);
    for (uint32_t i; (i = rl_hash_get(&m->index, h)) != RL_NONE; h++)
        if (m->all.p[i].n == m->key.n && rl_same_bytes(m->all.p[i].p, m->key.p, m->key.n)) return true;
    return false;
}

void rl_move_note_hopeless(rl_move_memo *m) {
    if (m->key.n > LONGEST) return;
    uint64_t h = rl_hash_bytes(m->key.p, m->key.n);
    while (rl_hash_get(&m->index, h) != RL_NONE) h++;
    rl_hash_put(&m->index, h, m->all.n);
    rl_push(m->key.mem, m->all, ((rl_text){m->key.mem, rl_copy(m->key.mem, m->key.p, m->key.n), m->key.n, m->key.n}));
}
