/* The configurations of ops that look alike and whose classes know the same orders are the same, so they are enumerated once: a network is a
 * few blocks repeated.
 *
 *   looks   what an op is, as bytes (put_op); ops with equal bytes have one number
 *   list    the orders known of a class, with their levels; classes with equal lists have one number, and one array
 *   result  by (looks, the lists of the pins): configurations, and the lists that the classes have then
 *
 * Arrays that others may share are never written to: what an op adds to goes into a copy first. */
#include "configs.h"

typedef struct { const char *p; size_t n; } looks;
typedef struct { rl_order *p; uint32_t n, natom, known; } list;
typedef struct {
    const uint32_t *key, *after; /* the key's words; [npin] the lists then */
    uint32_t nkey, nconfig, npinorder;
    rl_config *config;
    uint32_t *pinorder;
} result;

struct rl_memo {
    rl_plan *p;
    rl_arena *tmp, now;     /* now: of one op */
    uint32_t *looks, *list; /* [nop], [ncls] 1 + its number; 0: not known yet */
    rl_hash bylooks, bylist, bykey;
    struct { looks *p; uint32_t n, cap; } look;
    struct { list *p; uint32_t n, cap; } lists;
    struct { result *p; uint32_t n, cap; } result;
    rl_text text;
};

/* ---- looks ---- */

static void put_operand(const rl_plan *p, const rl_oplegal *op, uint32_t o, rl_text *t) {
    const rl_operand *x = &op->operand[o];
    const rl_member *m = &p->member[x->tensor.i];
    uint32_t same = 0; /* the first pin on its class */
    while (same < o && !(op->operand[same].pin && op->operand[same].cls == x->cls)) same++;
    rl_put_number(t, (int64_t)x->slot << 32 | x->body);
    rl_put_number(t, (int64_t)((uint64_t)(x->pin ? same : RL_NONE) << 32 | m->natom << 1 | x->out));
    rl_put_bytes(t, m->seq, m->natom);
}

static void put_charges(const rl_oplegal *op, rl_text *out) {
    const rl_charges *x = op->charges;
    rl_put_number(out, (int64_t)x->rule << 32 | x->tenths);
    if (x->form) rl_put_bytes(out, x->form, x->nform * sizeof *x->form);
    else rl_put_bytes(out, x->marked, op->ntoken);
}

/* Everything that configurations and their charges depend on, but for the orders known of the classes. */
static void put_op(const rl_plan *p, const rl_oplegal *op, rl_text *out) {
    rl_put_number(out, op->node.i == RL_NONE ? -1 - (int64_t)op->demand : (int64_t)rl_nod(p->g, op->node)->op);
    rl_put_number(out, (int64_t)op->ntoken << 32 | op->nform << 16 | op->noperand);
    if (op->charges) put_charges(op, out);
    for (uint32_t o = 0; o < op->noperand; o++) put_operand(p, op, o, out);
    rl_put_number(out, (int64_t)(uintptr_t)op->token); /* alike: the same (legal_share.c) */
    rl_put_number(out, (int64_t)(uintptr_t)op->form);
}

uint32_t rl_memo_looks(rl_memo *m, uint32_t op) {
    if (m->looks[op]) return m->looks[op];
    m->text.n = 0;
    put_op(m->p, &m->p->op.p[op], &m->text);
    uint64_t h = rl_hash_bytes(m->text.p, m->text.n) | 1;
    for (uint32_t i; (i = rl_hash_get(&m->bylooks, h)) != RL_NONE; h++)
        if (m->look.p[i].n == m->text.n && rl_same_bytes(m->look.p[i].p, m->text.p, m->text.n)) return m->looks[op] = i + 1;
    rl_hash_put(&m->bylooks, h, m->look.n);
    rl_push(m->tmp, m->look, ((looks){rl_copy(m->tmp, m->text.p, m->text.n), m->text.n}));
    return m->looks[op] = m->look.n;
}

/* ---- lists ---- */

static bool has_list(const rl_cls *c, const list *l) {
    if (c->order.n != l->n || c->natom != l->natom) return false;
    for (uint32_t i = 0; i < l->n && c->order.p != l->p; i++)
        if (c->order.p[i].level != l->p[i].level || !rl_same_bytes(c->order.p[i].p, l->p[i].p, l->natom)) return false;
    return true;
}

static void take_list(rl_memo *m, uint32_t cls, uint32_t number) {
    rl_cls *c = &m->p->cls.p[cls];
    const list *l = &m->lists.p[number - 1];
    m->list[cls] = number;
    if (c->order.p == l->p) return;
    c->order.p = l->p;
    c->order.n = c->order.cap = l->n;
    c->index = NULL;
}

static uint32_t list_of(rl_memo *m, uint32_t cls) {
    const rl_cls *c = &m->p->cls.p[cls];
    if (m->list[cls]) return m->list[cls];
    uint64_t h = c->natom;
    for (uint32_t i = 0; i < c->order.n; i++) h = h * UINT64_C(0x9e3779b97f4a7c15) + rl_hash_bytes(c->order.p[i].p, c->natom) + c->order.p[i].level;
    for (uint32_t i; (i = rl_hash_get(&m->bylist, h |= 1)) != RL_NONE; h += 2) {
        if (!has_list(c, &m->lists.p[i])) continue;
        take_list(m, cls, i + 1);
        return i + 1;
    }
    list l = {c->order.p, c->order.n, c->natom, 0};
    for (uint32_t i = 0; i < l.n; i++) l.known += RL_MAXLEVEL + 1 - l.p[i].level;
    rl_hash_put(&m->bylist, h, m->lists.n);
    rl_push(m->tmp, m->lists, l);
    return m->list[cls] = m->lists.n;
}

uint32_t rl_memo_known(rl_memo *m, uint32_t cls) {
    uint32_t number = list_of(m, cls);
    return m->lists.p[number - 1].known;
}

/* ---- results ---- */

static uint32_t key_of(rl_memo *m, uint32_t op, bool full, uint32_t maxlevel, uint32_t *key) {
    const rl_oplegal *x = &m->p->op.p[op];
    uint32_t n = 0;
    key[n++] = rl_memo_looks(m, op);
    key[n++] = maxlevel << 1 | full;
    for (uint32_t o = 0; o < x->noperand; o++)
        if (x->operand[o].pin) key[n++] = list_of(m, x->operand[o].cls);
    return n;
}

static void take_result(rl_memo *m, rl_oplegal *op, const result *r) {
    RL_EACH_PIN(op, o, pin) take_list(m, op->operand[o].cls, r->after[pin]);
    op->config.p = r->config;
    op->config.n = op->config.cap = r->nconfig;
    op->pinorder.p = r->pinorder;
    op->pinorder.n = op->pinorder.cap = r->npinorder;
}

/* Enumerates, into arrays that nobody has. */
static void make_result(rl_memo *m, rl_oplegal *op, bool full, uint32_t maxlevel) {
    for (uint32_t o = 0; o < op->noperand; o++) {
        rl_cls *c = &m->p->cls.p[op->operand[o].cls];
        if (!op->operand[o].pin || !m->list[op->operand[o].cls]) continue;
        c->order.p = rl_copy(m->p->mem, c->order.p, c->order.n * sizeof *c->order.p);
        c->order.cap = c->order.n;
        m->list[op->operand[o].cls] = 0;
    }
    op->config.p = NULL;
    op->pinorder.p = NULL;
    op->config.n = op->config.cap = op->pinorder.n = op->pinorder.cap = 0;
    rl_op_configs(m->p, op, full, maxlevel, &m->now);
    rl_arena_free(&m->now);
}

void rl_memo_configs(rl_memo *m, uint32_t k, bool full, uint32_t maxlevel) {
    rl_oplegal *op = &m->p->op.p[k];
    uint32_t *key = rl_new(&m->now, uint32_t, op->npin + 2), nkey = key_of(m, k, full, maxlevel, key);
    uint64_t h = rl_hash_bytes(key, nkey * sizeof *key) | 1;
    for (uint32_t i; (i = rl_hash_get(&m->bykey, h)) != RL_NONE; h++)
        if (m->result.p[i].nkey == nkey && rl_same_bytes(m->result.p[i].key, key, nkey * sizeof *key)) {
            take_result(m, op, &m->result.p[i]);
            rl_arena_free(&m->now);
            return;
        }
    result r = {.key = rl_copy(m->tmp, key, nkey * sizeof *key), .nkey = nkey};
    make_result(m, op, full, maxlevel);
    uint32_t *after = rl_new(m->tmp, uint32_t, op->npin + 1);
    RL_EACH_PIN(op, o, pin) after[pin] = list_of(m, op->operand[o].cls);
    r.after = after;
    r.config = op->config.p;
    r.nconfig = op->config.n;
    r.pinorder = op->pinorder.p;
    r.npinorder = op->pinorder.n;
    rl_hash_put(&m->bykey, h, m->result.n);
    rl_push(m->tmp, m->result, r);
}

rl_memo *rl_memo_new(rl_plan *p, rl_arena *tmp) {
    rl_memo *m = rl_new(tmp, rl_memo, 1);
    *m = (rl_memo){.p = p, .tmp = tmp, .bylooks.mem = tmp, .bylist.mem = tmp, .bykey.mem = tmp, .text.mem = tmp};
    rl_arena_init(&m->now, p->g->ctx);
    m->looks = rl_new(tmp, uint32_t, p->op.n);
    m->list = rl_new(tmp, uint32_t, p->cls.n);
    return m;
}
