/* The restricted plan of bound.c: the open components alone, with the atoms that their classes keep.
 *
 * Tokens and forms lose what is not kept.  Ops that share theirs in the plan (legal_share.c), and whose classes keep the same atoms,
 * share what is left.
 *
 * Needs: cls.kept.  Keeps: the plan that it is made of. */
#include "bound.h"
#include "charge.h"
#include <string.h>

static bool is_kept(const rl_cls *c, uint8_t atom) { return !c->kept.atom || memchr(c->kept.atom, atom, c->kept.n) != NULL; }

static uint8_t kept_of(const rl_cls *c, const uint8_t *atom, uint32_t n, uint8_t *out) {
    uint8_t m = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_kept(c, atom[i])) out[m++] = atom[i];
    return m;
}

static void restrict_member(rl_plan *q, const rl_plan *p, rl_value v) {
    rl_member *m = &q->member[v.i];
    if (m->seq) return; /* done */
    *m = p->member[v.i];
    m->seq = rl_new(q->mem, uint8_t, m->natom + 1);
    m->natom = kept_of(&p->cls.p[m->cls], p->member[v.i].seq, p->member[v.i].natom, m->seq);
}

static void restrict_tokens(rl_plan *q, const rl_plan *p, rl_oplegal *op) {
    const rl_token *was = op->token;
    op->token = rl_new(q->mem, rl_token, op->ntoken);
    for (uint32_t t = 0; t < op->ntoken; t++) {
        op->token[t] = (rl_token){was[t].label, rl_new(q->mem, uint8_t *, op->noperand), rl_new(q->mem, uint8_t, op->noperand)};
        for (uint32_t o = 0; o < op->noperand; o++) {
            op->token[t].atom[o] = rl_new(q->mem, uint8_t, was[t].natom[o] + 1u);
            op->token[t].natom[o] = kept_of(&p->cls.p[op->operand[o].cls], was[t].atom[o], was[t].natom[o], op->token[t].atom[o]);
        }
    }
}

static bool has_pin_atoms(const rl_oplegal *op, uint32_t token) {
    for (uint32_t o = 0; o < op->noperand; o++)
        if (op->operand[o].pin && op->token[token].natom[o]) return true;
    return false;
}

/* Do two forms of an op say the same of the tokens that they have? */
static bool are_alike(const rl_oplegal *op, const rl_form *a, const rl_form *b) {
    return a->kind == b->kind && a->cost == b->cost && a->run == b->run && rl_same_bytes(a->start, b->start, sizeof a->start) &&
           rl_same_bytes(a->member, b->member, a->start[RL_MAXGROUP]) && rl_same_bytes(a->seq, b->seq, op->noperand * sizeof *a->seq);
}

/* Forms without the tokens that no pin shows any more; of those that this leaves alike one. Returns for each which it is now. */
static uint32_t *restrict_forms(rl_plan *q, rl_oplegal *op) {
    const rl_form *was = op->form;
    uint32_t nform = op->nform, *now = rl_new(q->mem, uint32_t, nform + 1);
    op->form = rl_copy(q->mem, was, nform * sizeof *was);
    op->nform = 0;
    for (uint32_t f = 0; f < nform; f++) {
        rl_form *form = &op->form[op->nform];
        uint32_t n = 0, at = 0, i = 0;
        *form = was[f];
        form->member = rl_new(q->mem, uint8_t, op->ntoken + 1);
        for (uint32_t g = 0; g < RL_MAXGROUP; g++) {
            form->start[g] = n;
            for (; at < was[f].start[g + 1]; at++)
                if (has_pin_atoms(op, was[f].member[at])) form->member[n++] = was[f].member[at];
        }
        form->start[RL_MAXGROUP] = n;
        while (!are_alike(op, &op->form[i], form)) i++;
        op->nform += i == op->nform;
        now[f] = i;
    }
    return now;
}

/* Of forms that are one now the least. */
static void restrict_charges(rl_plan *q, rl_oplegal *op, const uint32_t *now) {
    const rl_charges *was = op->charges;
    if (!was || !was->form) return;
    rl_charges *x = rl_copy(q->mem, was, sizeof *x);
    x->nform = 0;
    x->form = rl_new(q->mem, int64_t, was->nform + 1);
    for (uint32_t f = 0; f < was->nform; f++) {
        bool first = now[f] == x->nform;
        x->form[now[f]] = first ? was->form[f] : RL_MIN(x->form[now[f]], was->form[f]);
        x->nform += first;
    }
    op->charges = x;
}

/* Those made so far: key, the plan's tokens and the atoms kept of each operand. */
typedef struct { const char *key; size_t n; rl_token *token; rl_form *form; uint32_t nform, *now; } table;
typedef struct {
    rl_arena *tmp;
    rl_text key;
    rl_hash index;
    struct { table *p; uint32_t n, cap; } made;
} tables;

static void put_key(const rl_plan *p, const rl_oplegal *op, rl_text *key) {
    key->n = 0;
    rl_put_bytes(key, (const char *)&op->token, sizeof op->token);
    for (uint32_t o = 0; o < op->noperand; o++) {
        const rl_kept *kept = &p->cls.p[op->operand[o].cls].kept;
        uint8_t n = kept->atom ? (uint8_t)kept->n : UINT8_MAX;
        rl_put_bytes(key, (const char *)&n, 1);
        if (kept->atom) rl_put_bytes(key, (const char *)kept->atom, kept->n);
    }
}

static void restrict_table(tables *t, rl_plan *q, const rl_plan *p, rl_oplegal *op) {
    put_key(p, op, &t->key);
    uint64_t h = rl_hash_bytes(t->key.p, t->key.n) | 1;
    for (uint32_t i; (i = rl_hash_get(&t->index, h)) != RL_NONE; h++) {
        const table *x = &t->made.p[i];
        if (x->n != t->key.n || !rl_same_bytes(x->key, t->key.p, x->n)) continue;
        op->token = x->token;
        op->form = x->form;
        op->nform = x->nform;
        restrict_charges(q, op, x->now);
        return;
    }
    restrict_tokens(q, p, op);
    uint32_t *now = restrict_forms(q, op);
    if (q->taken) rl_take_in(q, op);
    restrict_charges(q, op, now);
    rl_hash_put(&t->index, h, t->made.n);
    rl_push(t->tmp, t->made, ((table){rl_copy(t->tmp, t->key.p, t->key.n), t->key.n, op->token, op->form, op->nform, now}));
}

static void restrict_op(tables *t, rl_plan *q, const rl_plan *p, rl_oplegal *op) {
    op->config.p = NULL;
    op->pinorder.p = NULL;
    op->config.n = op->config.cap = op->pinorder.n = op->pinorder.cap = 0;
    for (uint32_t o = 0; o < op->noperand; o++) restrict_member(q, p, op->operand[o].tensor);
    if (!op->fixed) restrict_table(t, q, p, op);
}

/* The class in q: as in p, but without orders, and with the atoms that are kept. */
static void restrict_class(rl_plan *q, const rl_plan *p, uint32_t c) {
    rl_cls *k = &q->cls.p[c];
    if (k->size) return; /* done */
    *k = p->cls.p[c];
    k->like = c;
    k->order.p = NULL;
    k->order.n = k->order.cap = 0;
    k->index = NULL;
    k->cut = k->kept.atom && k->kept.n < k->natom;
    if (k->kept.atom) k->natom = k->kept.n;
}

static void restrict_ops(const rl_plan *p, const bool *open, rl_plan *q, rl_arena *tmp) {
    tables t = {.tmp = tmp, .key.mem = tmp, .index.mem = tmp};
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->op.n; i++) n += rl_touches(p, &p->op.p[i], open);
    q->op.p = rl_new(q->mem, rl_oplegal, n);
    q->op.n = 0;
    q->op.cap = n;
    for (uint32_t i = 0; i < p->op.n; i++) {
        rl_oplegal op = p->op.p[i];
        if (!rl_touches(p, &op, open)) continue;
        for (uint32_t o = 0; o < op.noperand; o++) restrict_class(q, p, op.operand[o].cls);
        restrict_op(&t, q, p, &op);
        rl_push(q->mem, q->op, op);
    }
}

bool rl_restrict_plan(const rl_plan *p, const bool *open, bool by_time, rl_plan *q, rl_arena *mem) {
    rl_arena tmp;
    *q = *p;
    q->mem = mem;
    q->restricted = true;
    q->taken = by_time && p->swaps;
    q->cls.p = rl_new(mem, rl_cls, p->cls.n);
    q->member = rl_new(mem, rl_member, p->g->nval);
    rl_arena_init(&tmp, p->g->ctx);
    restrict_ops(p, open, q, &tmp);
    rl_arena_free(&tmp);
    bool all = rl_every_config(q, &tmp);
    rl_arena_free(&tmp);
    return all;
}
