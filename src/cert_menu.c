/* Orders as numbers, and the menu of an op: all its restricted configurations (docs/proof.md, sections 1 and 2).
 *
 * A configuration of the restricted problem is what is left of one when every order loses the atoms that are not kept.  Tokens without
 * a kept atom at any pin then make no difference and are left out; the others are permuted in all ways within their groups.
 *   tokens N C H W in one group, of which H is kept at no pin:  3! configurations, and the one that stands
 * Ops with the same menu are recognized by a key: everything that the enumeration reads, atoms named by their places. */
#include "cert_internal.h"

#include <string.h>

enum { FEW = 8 };

static bool is_order(const rl_cert_order *x, uint32_t owner, const uint8_t *order, uint32_t n) {
    return x->owner == owner && x->n == n && rl_same_bytes(rl_cert_atoms(x), order, n);
}

uint32_t rl_cert_intern(rl_cert_orders *o, uint32_t owner, const uint8_t *order, uint32_t n) {
    if (!o->index.mem) {
        o->index.mem = o->mem;
        o->few.p = rl_new(o->mem, struct rl_cert_few, o->few.n = o->few.cap = o->nowner);
        o->order.p = rl_new(o->mem, rl_cert_order, o->order.cap = o->nowner + o->nowner / 4);
    }
    while (o->few.n <= owner) rl_push_own(o->mem, o->few, ((struct rl_cert_few){0, 0}));
    struct rl_cert_few *few = &o->few.p[owner];
    for (uint32_t i = few->first; i; i = o->order.p[i - 1].next)
        if (is_order(&o->order.p[i - 1], owner, order, n)) return i - 1;
    rl_cert_order x = {.owner = owner, .n = n, .next = few->first};
    if (few->n < FEW) {
        few->n++;
        few->first = o->order.n + 1;
    } else {
        uint64_t h = rl_hash_bytes(order, n) + owner * UINT64_C(0x9e3779b97f4a7c15);
        for (uint32_t i; (i = rl_hash_get(&o->index, h)) != RL_NONE; h++)
            if (is_order(&o->order.p[i], owner, order, n)) return i;
        rl_hash_put(&o->index, h, o->order.n);
    }
    if (n > RL_CERT_SHORT) x.p = rl_copy(o->mem, order, n);
    else if (n) memcpy(x.atom, order, n);
    rl_push_own(o->mem, o->order, x);
    return o->order.n - 1;
}

static uint8_t place_of(const rl_cert_menus *m, uint32_t value, uint8_t atom) {
    return m->place[value] ? m->place[value][atom] : atom;
}

/* The atoms kept of a sequence of n, by their places. */
static uint32_t restrict_atoms(const rl_cert_menus *m, uint32_t value, const uint8_t *atom, uint32_t n, uint8_t *out) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t x = place_of(m, value, atom[i]);
        if (x != RL_CERT_GONE) out[k++] = x;
    }
    return k;
}

uint32_t rl_cert_restrict(const rl_cert_menus *m, uint32_t value, const uint8_t *order, uint8_t *out) {
    return restrict_atoms(m, value, order, m->c->value[value].natom, out);
}

/* ---- one op after restriction ---- */

/* at[t * npin + p]: the atoms of token t at pin p, by their places; seq and group as in rl_cert_form. */
typedef struct {
    uint32_t npin, ntoken;
    struct run { const uint8_t *p; uint8_t n; } *at;
    uint8_t *token; /* [ntoken] the op's tokens that are left */
} slim;

static void put_byte(rl_text *b, uint8_t x) {
    rl_put_bytes(b, &x, 1);
}

/* How many, and they. */
static void put_run(rl_text *b, const uint8_t *p, uint32_t n) {
    put_byte(b, (uint8_t)n);
    if (n) rl_put_bytes(b, p, n);
}

static void put_number(rl_text *b, uint32_t x) {
    rl_put_bytes(b, &x, sizeof x);
}

static slim slim_op(rl_arena *tmp, const rl_cert_menus *m, const rl_cert_op *op) {
    slim s = {.npin = op->npin, .at = rl_new(tmp, struct run, (size_t)op->npin * op->ntoken), .token = rl_new(tmp, uint8_t, op->ntoken)};
    uint8_t out[256];
    for (uint32_t t = 0; t < op->ntoken; t++) {
        struct run *at = s.at + (size_t)s.ntoken * s.npin;
        bool any = false;
        for (uint32_t p = 0; p < op->npin; p++) {
            uint32_t n = restrict_atoms(m, op->pin[p].value, op->token[t].at[p], op->token[t].n[p], out);
            at[p] = (struct run){n ? rl_copy(tmp, out, n) : NULL, (uint8_t)n};
            any |= n > 0;
        }
        if (any) s.token[s.ntoken++] = (uint8_t)t;
    }
    return s;
}

static bool group_at(const slim *s, const rl_cert_form *f, uint8_t group, uint32_t pin) {
    for (uint32_t t = 0; t < s->ntoken; t++)
        if (f->group[s->token[t]] == group && s->at[(size_t)t * s->npin + pin].n) return true;
    return false;
}

/* Was no atom left out at pin 0? */
static bool is_whole(const rl_cert_menus *m, const rl_cert_op *op) {
    const rl_cert_value *v = &m->c->value[op->pin[0].value];
    return !v->keep || v->nkeep == v->natom;
}

static void put_charge(rl_text *b, const rl_cert_menus *m, const rl_cert_op *op, const slim *s) {
    const rl_cert_charge *x = &op->charge;
    put_byte(b, (uint8_t)x->rule);
    if (x->rule == RL_CERT_FREE) return;
    put_byte(b, is_whole(m, op));
    put_number(b, (uint32_t)x->tenths);
    for (uint32_t k = 0; k < op->nform && x->rule == RL_CERT_FORMS; k++) put_number(b, (uint32_t)x->form[k]);
    for (uint32_t t = 0; t < s->ntoken && x->rule != RL_CERT_FORMS; t++) put_byte(b, x->marked[s->token[t]]);
}

/* Everything that the menu depends on; which groups are the last two, also where nothing is left of them. */
static void put_shape(rl_text *b, const rl_cert_menus *m, const rl_cert_op *op, const slim *s, const bool *swaps) {
    uint8_t out[256];
    put_byte(b, swaps != NULL);
    for (uint32_t p = 0; swaps && p < s->npin; p++) put_byte(b, swaps[p]);
    put_number(b, s->npin);
    put_number(b, s->ntoken);
    put_number(b, op->nform);
    for (uint32_t p = 0; p < s->npin; p++) put_run(b, out, rl_cert_restrict(m, op->pin[p].value, op->pin[p].stands, out));
    for (uint32_t i = 0; i < s->ntoken * s->npin; i++) put_run(b, s->at[i].p, s->at[i].n);
    for (uint32_t k = 0; k < op->nform; k++) {
        const rl_cert_form *f = &op->form[k];
        for (uint32_t t = 0; t < s->ntoken; t++) put_byte(b, f->group[s->token[t]]);
        for (uint32_t p = 0; p < s->npin; p++) {
            uint32_t n = 0;
            for (uint32_t i = f->start[p]; i < f->start[p + 1]; i++)
                if (swaps || group_at(s, f, f->seq[i], p)) out[n++] = f->seq[i];
            put_run(b, out, n);
        }
    }
    if (m->c->by_time) put_charge(b, m, op, s);
}

/* ---- enumeration ---- */

typedef struct {
    rl_arena *mem;
    const rl_cert_op *op;
    const slim *s;
    rl_cert_menu *menu;
    rl_hash seen;
    struct { uint32_t *p; uint32_t n, cap; } pick;
    struct { int64_t *p; uint32_t n, cap; } tenths;
    uint32_t *now; /* [npin] */
    bool by_time, whole;
    uint8_t lie[256]; /* the tokens at pin 0, and how many */
    uint32_t nlie;
} lister;

/* Adds the configuration in l->now; one that is there is charged the less. */
static void add_config(lister *l, uint32_t form) {
    int64_t tenths = l->by_time ? rl_cert_tenths(l->op, form, l->lie, l->nlie, l->whole) : 0;
    uint32_t npin = l->menu->npin;
    uint64_t h = rl_hash_bytes(l->now, npin * sizeof *l->now);
    for (uint32_t i; (i = rl_hash_get(&l->seen, h)) != RL_NONE; h++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): configuration i was added */
        if (rl_same_bytes(l->pick.p + (size_t)i * npin, l->now, npin * sizeof *l->now)) {
            l->tenths.p[i] = RL_MIN(l->tenths.p[i], tenths);
            return;
        }
    rl_hash_put(&l->seen, h, l->menu->ncfg++);
    rl_push(l->mem, l->tenths, tenths);
    for (uint32_t p = 0; p < npin; p++) rl_push(l->mem, l->pick, l->now[p]);
}

/* The next permutation in lexicographic order; after the last one the first, and false. */
static bool next_permutation(uint8_t *t, uint32_t n) {
    uint32_t i = n, j = n;
    if (n < 2) return false;
    for (i = n - 1; i > 0 && t[i - 1] > t[i]; i--) continue;
    for (uint32_t a = i, b = n - 1; a < b; a++, b--) {
        uint8_t x = t[a];
        t[a] = t[b];
        t[b] = x;
    }
    if (i == 0) return false;
    for (j = i; t[j] < t[i - 1]; j++) continue;
    uint8_t x = t[j];
    t[j] = t[i - 1];
    t[i - 1] = x;
    return true;
}

/* The tokens sorted by group: member[begin[g]] .. member[begin[g + 1]]. */
static void sort_tokens(const slim *s, const rl_cert_form *f, uint8_t *member, uint32_t *begin) {
    memset(begin, 0, 257 * sizeof *begin);
    for (uint32_t t = 0; t < s->ntoken; t++) begin[f->group[s->token[t]] + 1]++;
    for (uint32_t g = 0; g < 256; g++) begin[g + 1] += begin[g];
    uint32_t at[256];
    memcpy(at, begin, sizeof at);
    for (uint32_t t = 0; t < s->ntoken; t++) member[at[f->group[s->token[t]]]++] = (uint8_t)t;
}

static void name_orders(lister *l, const rl_cert_form *f, const uint8_t *member, const uint32_t *begin, uint32_t swap) {
    uint8_t out[256];
    l->nlie = 0;
    for (uint32_t p = 0; p < l->menu->npin; p++) {
        uint32_t n = 0;
        for (uint32_t k = f->start[p]; k < f->start[p + 1]; k++) {
            uint8_t g = f->seq[rl_cert_place_of(f, p, k, p < 32 && swap >> p & 1)];
            for (uint32_t i = begin[g]; i < begin[g + 1u]; i++) {
                const struct run *r = &l->s->at[(size_t)member[i] * l->s->npin + p];
                for (uint32_t j = 0; j < r->n; j++) out[n++] = r->p[j];
                if (p == 0 && r->n) l->lie[l->nlie++] = l->s->token[member[i]];
            }
        }
        l->now[p] = rl_cert_intern(&l->menu->orders, p, out, n);
    }
}

/* swap: pins where the last two groups are swapped, as bits. */
static void list_form(lister *l, uint32_t form, uint32_t swap) {
    const rl_cert_form *f = &l->op->form[form];
    uint8_t member[256];
    uint32_t begin[257], g;
    sort_tokens(l->s, f, member, begin);
    do {
        name_orders(l, f, member, begin, swap);
        add_config(l, form);
        for (g = 0; g < 256 && !next_permutation(member + begin[g], begin[g + 1] - begin[g]); g++) continue;
    } while (g < 256);
}

/* The tokens at pin 0 as it stands, by the atoms that are kept: where the others lie is not in the key. */
static void list_standing(lister *l, const uint8_t *order, uint32_t n) {
    l->nlie = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = 0; t < l->s->ntoken; t++) {
            const struct run *r = &l->s->at[(size_t)t * l->s->npin];
            bool here = r->n && memchr(r->p, order[i], r->n) != NULL;
            if (here && (l->nlie == 0 || l->lie[l->nlie - 1] != l->s->token[t])) l->lie[l->nlie++] = l->s->token[t];
        }
}

static uint32_t bits_of(const rl_cert_op *op, const bool *swaps) {
    uint32_t bits = 0;
    for (uint32_t p = 0; swaps && p < op->npin; p++) bits |= (uint32_t)swaps[p] << p;
    return bits;
}

/* How many configurations the forms have, counted with repetition; at most `limit` + 1. */
static uint64_t count_configs(const slim *s, const rl_cert_op *op, uint32_t swaps, uint64_t limit) {
    uint64_t total = 1;
    for (uint32_t k = 0; k < op->nform && total <= limit; k++) {
        uint64_t n = UINT64_C(1) << __builtin_popcount(swaps);
        uint32_t size[256] = {0};
        for (uint32_t t = 0; t < s->ntoken && n <= limit; t++) n *= ++size[op->form[k].group[s->token[t]]];
        total += n;
    }
    return RL_MIN(total, limit + 1);
}

static rl_cert_menu *list_all(rl_cert_menus *m, const rl_cert_op *op, const slim *s, uint32_t swaps) {
    rl_arena tmp;
    rl_arena_init(&tmp, m->mem->ctx);
    rl_cert_menu *menu = rl_new(m->mem, rl_cert_menu, 1);
    *menu = (rl_cert_menu){.npin = op->npin, .orders.mem = m->mem};
    lister l = {.mem = &tmp, .op = op, .s = s, .menu = menu, .seen.mem = &tmp, .now = rl_new(&tmp, uint32_t, op->npin),
                .by_time = m->c->by_time, .whole = op->npin > 0 && is_whole(m, op)};
    uint8_t out[256];
    for (uint32_t p = 0; p < op->npin; p++) {
        uint32_t n = rl_cert_restrict(m, op->pin[p].value, op->pin[p].stands, out);
        l.now[p] = rl_cert_intern(&menu->orders, p, out, n);
        if (p == 0) list_standing(&l, out, n);
    }
    add_config(&l, RL_NONE);
    for (uint32_t k = 0; k < op->nform; k++)
        for (uint32_t x = 0, more = 1; more; more = x = (x - swaps) & swaps) list_form(&l, k, x); /* all subsets */
    menu->pick = rl_copy(m->mem, l.pick.p, l.pick.n * sizeof *l.pick.p);
    menu->tenths = rl_copy(m->mem, l.tenths.p, l.tenths.n * sizeof *l.tenths.p);
    rl_arena_free(&tmp);
    return menu;
}

rl_status rl_cert_menu_of(rl_cert_menus *m, uint32_t i, bool may_swap, uint32_t *id) {
    const rl_cert_op *op = &m->c->op[i];
    const bool *swaps = m->c->by_time && may_swap ? op->swaps : NULL;
    rl_arena tmp;
    rl_arena_init(&tmp, m->mem->ctx);
    slim s = slim_op(&tmp, m, op);
    rl_text key = {.mem = &tmp};
    put_shape(&key, m, op, &s, swaps);
    uint64_t h = rl_hash_bytes(key.p, key.n);
    for (; (*id = rl_hash_get(&m->index, h)) != RL_NONE; h++)
        if (m->shape.p[*id].n == (uint32_t)key.n && rl_same_bytes(m->shape.p[*id].key, key.p, key.n)) break;
    bool known = *id != RL_NONE;
    uint64_t n = known ? 0 : count_configs(&s, op, bits_of(op, swaps), m->limit);
    bool fits = n <= m->limit && (m->named += n * op->npin) <= RL_CERT_NAMED;
    if (!known && fits) {
        *id = m->shape.n;
        rl_hash_put(&m->index, h, *id);
        rl_push(m->mem, m->shape, ((struct rl_cert_shape){rl_copy(m->mem, key.p, key.n), (uint32_t)key.n, list_all(m, op, &s, bits_of(op, swaps))}));
    }
    rl_arena_free(&tmp);
    if (fits) return RL_OK;
    if (n <= m->limit)
        return rl_fail(m->mem->ctx, RL_EPROOF, "proof: op %u \"%s\": with it all configurations name more than %d orders; keep fewer atoms", i,
                       op->name, RL_CERT_NAMED);
    return rl_fail(m->mem->ctx, RL_EPROOF, "proof: op %u \"%s\": more than %u configurations; keep fewer atoms", i, op->name, m->limit);
}

void rl_cert_write_order(const rl_cert_op *op, uint32_t form, const uint8_t *perm, uint32_t pin, bool swap, uint8_t *out) {
    const rl_cert_form *f = &op->form[form];
    uint32_t n = 0;
    for (uint32_t k = f->start[pin]; k < f->start[pin + 1]; k++)
        for (uint32_t i = 0; i < op->ntoken; i++) {
            const rl_cert_token *t = &op->token[perm[i]];
            if (f->group[perm[i]] != f->seq[rl_cert_place_of(f, pin, k, swap)] || !t->n[pin]) continue;
            memcpy(out + n, t->at[pin], t->n[pin]);
            n += t->n[pin];
        }
}
