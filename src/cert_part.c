/* One component of a certificate as a table to be filled (cert_internal.h).
 *
 * Let V be its values, F(v) the orders that fixed ops name at v, w(v) the weight.  It costs, whatever its ops choose,
 *     sum over v in V of w(v) (|U(v)| - 1)  =  base + sum over elements e that some op names of w(e) - sum of credits
 *     elements  the (v, order) that are not in F(v): those in F(v) are paid from the start
 *     base      sum of w(v) (|F(v)| - 1) over the v with F(v)
 *     credits   w(v) for each other v, one order of which is free; given at the first op taken that names v, as one is then paid
 * What is paid for certain, or named by one op alone, is then taken out, and what is left folded again (cert_settle.c).
 *
 * Components that look alike are proved once: the key has every menu, how the ops share values, and what is known of each value. */
#include "cert_internal.h"

#include <inttypes.h>
#include <string.h>

typedef struct { uint32_t *p; uint32_t n, cap; } words;

typedef struct {
    rl_cert_work *w;
    rl_arena *tmp;
    const rl_cert_part *part;
    uint32_t *menu, nval;         /* [nop] of the part */
    uint32_t *value, *firstop, *lastop; /* [nval] in the order in which the ops name them */
    rl_cert_orders element;       /* owner: the number of the value in the part */
    struct { bool *p; uint32_t n, cap; } paid;
    words key;
} builder;

static rl_cert_key weight_of(const builder *b, uint32_t local) {
    rl_cert_cost w = rl_cert_weight(b->w->c, b->value[local]);
    return rl_cert_key_of(b->w->c, (rl_cert_cost){w.count + b->part->price, w.bytes});
}

/* ---- the key ---- */

static void put_word64(builder *b, int64_t x) {
    rl_push_own(b->tmp, b->key, (uint32_t)(uint64_t)x);
    rl_push_own(b->tmp, b->key, (uint32_t)((uint64_t)x >> 32));
}

static void put_fold(builder *b, const uint16_t *fold, uint32_t nkeep) {
    uint32_t n = fold ? rl_cert_norder(nkeep) : 0;
    rl_push_own(b->tmp, b->key, n);
    for (uint32_t i = 0; i < n; i++) rl_push_own(b->tmp, b->key, fold[i]);
}

/* A value met for the first time: the orders that fixed ops name are elements that are paid. */
static void add_value(builder *b, uint32_t v, uint32_t op) {
    const rl_cert_work *w = b->w;
    uint8_t out[256];
    uint32_t n = 0;
    w->local[v] = b->nval;
    b->value[b->nval] = v;
    b->firstop[b->nval++] = op;
    put_word64(b, w->c->value[v].bytes);
    put_fold(b, w->c->value[v].fold, w->c->value[v].nkeep);
    put_fold(b, w->c->value[v].refold, w->c->value[v].nkeep);
    rl_push_own(b->tmp, b->key, 0);
    uint32_t count = b->key.n - 1;
    for (uint32_t k = w->pinstart[v]; k < w->pinstart[v + 1]; k++) {
        const rl_cert_op *o = &w->c->op[w->where[k].op];
        if (!rl_cert_is_fixed(o)) continue;
        uint32_t natom = rl_cert_restrict(&w->menus, v, o->pin[w->where[k].pin].stands, out), known = b->element.order.n;
        if (rl_cert_intern(&b->element, b->nval - 1, out, natom) != known) continue;
        rl_push_own(b->tmp, b->paid, true);
        n++;
        for (uint32_t a = 0; a < natom; a++) rl_push_own(b->tmp, b->key, out[a]);
    }
    b->key.p[count] = n;
}

/* Conversions of the part as the model stands. */
static int64_t standing(const builder *b) {
    rl_cert_orders all = {.mem = b->tmp};
    const rl_cert_work *w = b->w;
    for (uint32_t i = 0; i < b->nval; i++)
        for (uint32_t k = w->pinstart[b->value[i]]; k < w->pinstart[b->value[i] + 1]; k++)
            rl_cert_intern(&all, i, w->c->op[w->where[k].op].pin[w->where[k].pin].stands, w->c->value[b->value[i]].natom);
    return (int64_t)all.order.n - b->nval;
}

static void put_spans(builder *b) {
    put_word64(b, b->part->conversion);
    rl_push_own(b->tmp, b->key, b->part->nspan);
    for (uint32_t i = 0; i < b->part->nspan; i++) {
        const rl_cert_span *x = &b->part->span[i];
        rl_push_own(b->tmp, b->key, x->nop);
        put_word64(b, x->least);
        rl_push_own(b->tmp, b->key, x->nweigh);
        for (uint32_t k = 0; k < x->nweigh; k++) {
            uint32_t v = x->weigh[k].value, local = b->w->local[v];
            rl_push_own(b->tmp, b->key, local < b->nval && b->value[local] == v ? local : RL_NONE);
            rl_push_own(b->tmp, b->key, x->weigh[k].order);
            put_word64(b, x->weigh[k].weight);
        }
    }
}

/* Lists values and menus, and writes the key. */
static rl_status survey(builder *b) {
    const rl_cert *c = b->w->c;
    put_word64(b, b->part->least.count);
    put_word64(b, b->part->least.bytes);
    put_word64(b, b->part->price);
    for (uint32_t j = 0; j < b->part->nop; j++) {
        const rl_cert_op *op = &c->op[b->part->op[j]];
        RL_TRY(rl_cert_menu_of(&b->w->menus, b->part->op[j], b->part->swaps, &b->menu[j]));
        rl_push_own(b->tmp, b->key, b->menu[j]);
        put_word64(b, rl_cert_unit(c, op));
        for (uint32_t p = 0; p < op->npin; p++) {
            uint32_t v = op->pin[p].value, k = b->w->local[v];
            bool known = k < b->nval && b->value[k] == v;
            rl_push_own(b->tmp, b->key, known ? k : b->nval);
            if (!known) add_value(b, v, j);
            b->lastop[b->w->local[v]] = j;
        }
    }
    put_word64(b, b->part->price ? standing(b) : 0);
    put_spans(b);
    return RL_OK;
}

/* Whether the same was proved before; *h is where to note it. */
static bool proved(const builder *b, uint64_t *h) {
    const rl_cert_work *w = b->w;
    *h = rl_hash_bytes(b->key.p, b->key.n * sizeof *b->key.p);
    for (uint32_t i; (i = rl_hash_get(&w->index, *h)) != RL_NONE; ++*h)
        if (w->proved.p[i].n == b->key.n && rl_same_bytes(w->proved.p[i].key, b->key.p, b->key.n * sizeof *b->key.p)) return true;
    return false;
}

static void note(const builder *b, uint64_t h) {
    rl_cert_work *w = b->w;
    rl_hash_put(&w->index, h, w->proved.n);
    rl_push(w->mem, w->proved, ((struct rl_cert_proved){rl_copy(w->mem, b->key.p, b->key.n * sizeof *b->key.p), b->key.n}));
}

/* ---- the steps ---- */

/* For each op of the part the elements that the orders of its menu are. */
static uint32_t **number_elements(builder *b) {
    uint32_t **map = rl_new(b->tmp, uint32_t *, b->part->nop);
    for (uint32_t j = 0; j < b->part->nop; j++) {
        const rl_cert_op *op = &b->w->c->op[b->part->op[j]];
        const rl_cert_orders *o = &b->w->menus.shape.p[b->menu[j]].menu->orders;
        map[j] = rl_new(b->tmp, uint32_t, o->order.n);
        for (uint32_t i = 0; i < o->order.n; i++) {
            const rl_cert_order *x = &o->order.p[i];
            map[j][i] = rl_cert_intern(&b->element, b->w->local[op->pin[x->owner].value], rl_cert_atoms(x), x->n);
            if (map[j][i] == b->paid.n) rl_push_own(b->tmp, b->paid, false);
        }
    }
    return map;
}

/* ---- folding ---- */

/* The order at a place in the dictionary of n atoms, and the place of an order. */
static void order_at(uint32_t place, uint32_t n, uint8_t *out) {
    uint8_t left[256];
    for (uint32_t i = 0; i < n; i++) left[i] = (uint8_t)i;
    for (uint32_t i = 0, rest = rl_cert_norder(n); i < n; i++) {
        rest /= n - i;
        uint32_t k = place / rest;
        place %= rest;
        out[i] = left[k];
        memmove(left + k, left + k + 1, n - i - k - 1);
    }
}

static uint32_t place_of(const uint8_t *order, uint32_t n) {
    uint32_t place = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t less = 0;
        for (uint32_t j = i + 1; j < n; j++) less += order[j] < order[i];
        place = place * (n - i) + less;
    }
    return place;
}

/* The element that stands in for each, in the first fold or in the second, when what is paid is out.  False where it is none, or in the first an
 * order that a fixed op names would be another. */
static bool find_images(builder *b, bool again, uint32_t *image) {
    uint8_t out[256];
    uint32_t n = b->element.order.n;
    for (uint32_t e = 0; e < n; e++) {
        const rl_cert_order x = b->element.order.p[e];
        const rl_cert_value *v = &b->w->c->value[b->value[x.owner]];
        const uint16_t *fold = again ? v->refold : v->fold;
        image[e] = e;
        if (!fold) continue;
        order_at(fold[place_of(rl_cert_atoms(&x), x.n)], x.n, out);
        image[e] = rl_cert_intern(&b->element, x.owner, out, x.n);
        if (b->element.order.n != n || (!again && b->paid.p[e] && image[e] != e)) return false;
    }
    return true;
}

static bool has_images(const rl_cert_menu *m, const uint32_t *map, const uint32_t *image) {
    for (uint32_t i = 0; i < m->orders.order.n; i++)
        if (image[map[i]] != map[i]) return true;
    return false;
}

static uint64_t at_pin(uint32_t pin, uint32_t element) {
    return (uint64_t)pin << 32 | element;
}

/* stays[k]: configuration k is its own image.  False where the image of one, order by order, is no configuration, or one that is
 * charged more. */
static bool fold_menu(const rl_cert_menu *m, const uint32_t *map, const uint32_t *image, bool *stays, rl_arena *tmp) {
    memset(stays, true, m->ncfg);
    if (!has_images(m, map, image)) return true;
    uint32_t *now = rl_new(tmp, uint32_t, m->npin);
    size_t size = m->npin * sizeof *now;
    rl_hash index = {.mem = tmp}, number = {.mem = tmp}; /* number: of an element among the orders of a pin */
    for (uint32_t i = 0; i < m->orders.order.n; i++) rl_hash_put(&number, at_pin(m->orders.order.p[i].owner, map[i]), i);
    for (uint32_t k = 0; k < m->ncfg; k++) {
        uint64_t h = rl_hash_bytes(m->pick + (size_t)k * m->npin, size);
        while (rl_hash_get(&index, h) != RL_NONE) h++;
        rl_hash_put(&index, h, k);
    }
    for (uint32_t k = 0; k < m->ncfg; k++) {
        const uint32_t *pick = m->pick + (size_t)k * m->npin;
        for (uint32_t p = 0; p < m->npin; p++) now[p] = rl_hash_get(&number, at_pin(p, image[map[pick[p]]]));
        stays[k] = rl_same_bytes(now, pick, size);
        if (stays[k]) continue;
        uint64_t h = rl_hash_bytes(now, size);
        uint32_t i;
        for (; (i = rl_hash_get(&index, h)) != RL_NONE; h++)
            if (rl_same_bytes(m->pick + (size_t)i * m->npin, now, size)) break;
        if (i == RL_NONE || m->tenths[i] > m->tenths[k]) return false;
    }
    return true;
}

/* ---- filling ---- */

/* Sorts n numbers, a few, and drops repetitions. */
static uint32_t sort_set(uint32_t *x, uint32_t n) {
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t e = x[i], k = m;
        while (k > 0 && x[k - 1] > e) k--;
        if (k > 0 && x[k - 1] == e) continue;
        memmove(x + k + 1, x + k, (m++ - k) * sizeof *x);
        x[k] = e;
    }
    return m;
}

static bool fill_step(builder *b, rl_cert_step *s, uint32_t j, const uint32_t *map, const uint32_t *image) {
    const rl_cert_menu *m = b->w->menus.shape.p[b->menu[j]].menu;
    rl_arena tmp;
    rl_arena_init(&tmp, b->w->ctx);
    rl_hash seen = {.mem = &tmp};
    uint32_t *set = rl_new(&tmp, uint32_t, m->npin);
    int64_t unit = rl_cert_unit(b->w->c, &b->w->c->op[b->part->op[j]]);
    s->start = rl_new(b->tmp, uint32_t, (size_t)m->ncfg + 1);
    s->elem = rl_new(b->tmp, uint32_t, (size_t)m->ncfg * m->npin);
    s->own = rl_new(b->tmp, rl_cert_key, m->ncfg);
    bool *stays = rl_new(&tmp, bool, m->ncfg), folds = fold_menu(m, map, image, stays, &tmp);
    for (uint32_t k = 0; k < m->ncfg && folds; k++) {
        uint32_t n = 0;
        if (!stays[k]) continue;
        for (uint32_t p = 0; p < m->npin; p++) {
            uint32_t e = map[m->pick[(size_t)k * m->npin + p]];
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): each element has its place */
            if (!b->paid.p[e]) set[n++] = e;
        }
        rl_cert_add_config(s, &seen, set, sort_set(set, n), (rl_cert_key){m->tenths[k] * unit, 0});
    }
    rl_arena_free(&tmp);
    return folds;
}

static int64_t most_charged(const builder *b, uint32_t j) {
    const rl_cert_menu *m = b->w->menus.shape.p[b->menu[j]].menu;
    int64_t most = 0;
    for (uint32_t k = 0; k < m->ncfg; k++) most = RL_MAX(most, m->tenths[k]);
    return most * rl_cert_unit(b->w->c, &b->w->c->op[b->part->op[j]]);
}

/* What no choice of the table may cost less than: the bound; with a price, and the price of as many conversions as the model has as it stands.  Then
 * what has no more conversions than that takes no less than the bound. */
static bool set_claim(const builder *b, rl_cert_table *t) {
    int64_t paid;
    t->claim = rl_cert_key_of(b->w->c, b->part->least);
    return !__builtin_mul_overflow(b->part->price, b->part->price ? standing(b) : 0, &paid) &&
           !__builtin_add_overflow(t->claim.major, paid, &t->claim.major) && t->claim.major < INT64_MAX / 4;
}

/* Base and credits; false where the sum of all weights, which no sum of costs exceeds, is too large to count with. */
static bool set_costs(const builder *b, rl_cert_table *t, rl_cert_key *weight) {
    rl_cert_key sum = {0};
    uint32_t *nfixed = rl_new(b->tmp, uint32_t, b->nval);
    for (uint32_t e = 0; e < t->nelem; e++) {
        uint32_t v = b->element.order.p[e].owner;
        weight[e] = weight_of(b, v);
        if (__builtin_add_overflow(sum.major, weight[e].major, &sum.major)) return false;
        if (__builtin_add_overflow(sum.minor, weight[e].minor, &sum.minor)) return false;
        nfixed[v] += b->paid.p[e];
        if (nfixed[v] > 1 && b->paid.p[e]) t->base = rl_key_add(t->base, weight[e]);
    }
    for (uint32_t j = 0; j < b->part->nop; j++) /* what is charged: at most 10^6 tenths of 2^42 / 10 */
        if (rl_cert_unit(b->w->c, &b->w->c->op[b->part->op[j]]) && __builtin_add_overflow(sum.major, most_charged(b, j), &sum.major)) return false;
    for (uint32_t v = 0; v < b->nval; v++) {
        rl_cert_key *first = &t->step[b->firstop[v]].credit[0], *last = &t->step[b->lastop[v]].credit[1];
        if (nfixed[v]) continue;
        *first = rl_key_add(*first, weight_of(b, v));
        *last = rl_key_add(*last, weight_of(b, v));
    }
    return RL_MAX(sum.major, sum.minor) < INT64_MAX / 4;
}

static bool settle(builder *b, rl_cert_table *t, uint32_t *image) {
    bool again = false;
    rl_cert_settle(b->tmp, t);
    for (uint32_t v = 0; v < b->nval; v++) again |= b->w->c->value[b->value[v]].refold != NULL;
    if (!again) return true;
    if (!find_images(b, true, image) || !rl_cert_refold(b->tmp, t, image, &b->w->work)) return false;
    rl_cert_settle(b->tmp, t);
    return true;
}

/* For each span the elements that it weighs, also such as nothing names.  NULL: there is one that is no order of a value of the part. */
static const uint32_t *const *weighed(builder *b) {
    const uint32_t **all = rl_new(b->tmp, const uint32_t *, b->part->nspan);
    uint8_t out[256];
    for (uint32_t i = 0; i < b->part->nspan; i++) {
        const rl_cert_span *x = &b->part->span[i];
        uint32_t *e = rl_new(b->tmp, uint32_t, x->nweigh);
        for (uint32_t k = 0; k < x->nweigh; k++) {
            const rl_cert_weigh *w = &x->weigh[k];
            const rl_cert_value *v = &b->w->c->value[w->value];
            uint32_t local = b->w->local[w->value], n = v->keep ? v->nkeep : v->natom;
            if (local >= b->nval || b->value[local] != w->value || w->order >= rl_cert_norder(n)) return NULL;
            order_at(w->order, n, out);
            e[k] = rl_cert_intern(&b->element, local, out, n);
        }
        all[i] = e;
    }
    return all;
}

static rl_cert_verdict fill_spans(builder *b, rl_cert_table *t) {
    rl_cert_work *w = b->w;
    const uint32_t *const *element = weighed(b);
    int64_t most = 0;
    if (!element) return RL_CERT_CHEAPER;
    t->nelem = b->element.order.n;
    rl_cert_key *weight = rl_new(b->tmp, rl_cert_key, t->nelem);
    for (uint32_t e = 0; e < t->nelem; e++) weight[e] = weight_of(b, b->element.order.p[e].owner);
    for (uint32_t v = 0; v < b->nval; v++) most = RL_MAX(most, weight_of(b, v).minor);
    t->weight = weight;
    return rl_cert_spans_fill(b->tmp, b->part, t, element, most, w->maxstate, w->maxwork, &w->work);
}

static rl_status prove(builder *b, uint32_t k) {
    uint32_t **map = number_elements(b), nop = b->part->nop;
    rl_cert_table t = {.nstep = nop, .nelem = b->element.order.n, .step = rl_new(b->tmp, rl_cert_step, nop)};
    bool folds;
    uint32_t *image = rl_new(b->tmp, uint32_t, t.nelem);
    rl_cert_key *weight = rl_new(b->tmp, rl_cert_key, t.nelem), left;
    t.weight = weight;
    if (!set_claim(b, &t) || !set_costs(b, &t, weight)) return rl_fail(b->w->ctx, RL_EPROOF, "proof: component %u: the sum of its weights is too large", k);
    folds = find_images(b, false, image);
    for (uint32_t j = 0; j < nop && folds; j++) folds = fill_step(b, &t.step[j], j, map[j], image);
    if (folds) folds = settle(b, &t, image);
    if (!folds) return rl_fail(b->w->ctx, RL_EPROOF, "proof: component %u: its folds do not take configurations to configurations", k);
    rl_cert_verdict is = b->part->nspan ? fill_spans(b, &t) : rl_cert_table_fill(b->tmp, &t, b->w->maxstate, b->w->maxwork, &b->w->work, &left);
    if (is == RL_CERT_HOLDS) return RL_OK;
    b->w->undecided = b->w->work > b->w->maxwork || is == RL_CERT_TOO_MANY || b->part->nspan; /* spans that do not show a claim do not refute it */
    if (b->w->work > b->w->maxwork)
        return rl_fail(b->w->ctx, RL_EPROOF, "proof: component %u (from op %u on): not decided after %" PRIu64 " comparisons", k, b->part->op[0],
                       b->w->maxwork);
    if (is == RL_CERT_TOO_MANY)
        return rl_fail(b->w->ctx, RL_EPROOF, "proof: component %u (from op %u on): its table would have more than %u states", k, b->part->op[0],
                       b->w->maxstate);
    if (b->part->nspan) return rl_fail(b->w->ctx, RL_EPROOF, "proof: component %u: its spans do not show what it claims", k);
    if (b->w->c->by_time)
        return rl_fail(b->w->ctx, RL_EPROOF, "proof: component %u: a time of %" PRId64 " is not needed: the table ends with %" PRId64 " less", k,
                       b->part->least.count, t.claim.major - left.major);
    rl_cert_cost x = b->w->c->bytes_first ? (rl_cert_cost){left.minor, left.major} : (rl_cert_cost){left.major, left.minor};
    return rl_fail(b->w->ctx, RL_EPROOF, "proof: component %u: %" PRId64 " conversions of %" PRId64 " bytes are not needed: the table "
                   "ends with %" PRId64 " of %" PRId64, k, b->part->least.count, b->part->least.bytes, x.count, x.bytes);
}

/* The steps of a part that was not met before are work, and memory. */
static rl_status count_named(builder *b) {
    rl_cert_work *w = b->w;
    uint64_t n = 0;
    for (uint32_t j = 0; j < b->part->nop; j++) {
        const rl_cert_menu *m = w->menus.shape.p[b->menu[j]].menu;
        n += (uint64_t)m->ncfg * m->npin;
    }
    w->menus.named += n;
    w->undecided = n > RL_CERT_NAMED_ONCE || w->menus.named > RL_CERT_NAMED;
    if (!w->undecided) return RL_OK;
    return rl_fail(w->ctx, RL_EPROOF, "proof: the configurations of the component from op %u on name %" PRIu64 " orders, too many to look at; keep fewer atoms",
                   b->part->op[0], n);
}

rl_status rl_cert_part_check(rl_cert_work *w, uint32_t k) {
    rl_arena tmp;
    uint64_t h;
    const rl_cert_part *part = &w->c->part[k];
    if (!part->least.count && !part->least.bytes) return RL_OK; /* costs are never negative */
    rl_arena_init(&tmp, w->ctx);
    uint32_t npin = 0;
    for (uint32_t j = 0; j < part->nop; j++) npin += w->c->op[part->op[j]].npin;
    builder b = {.w = w, .tmp = &tmp, .part = part, .menu = rl_new(&tmp, uint32_t, part->nop), .value = rl_new(&tmp, uint32_t, npin),
                 .firstop = rl_new(&tmp, uint32_t, npin), .lastop = rl_new(&tmp, uint32_t, npin), .element.mem = &tmp};
    rl_status s = survey(&b);
    w->undecided = s == RL_EPROOF;
    if (s == RL_OK && !proved(&b, &h)) {
        s = count_named(&b);
        if (s == RL_OK) s = prove(&b, k);
        if (s == RL_OK) note(&b, h);
    }
    rl_arena_free(&tmp);
    return s;
}
