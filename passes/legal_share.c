/* What an op may do is kept once for all ops that look alike: a network is a few blocks repeated, and labels, tokens and forms take more
 * memory than all else in a plan.
 *
 *   first Relu of f32[1,8,8,64]   labels, tokens and forms are made
 *   second                        made in scratch memory, found to be the same, and those of the first are taken
 *
 * Ops that have equal tokens and forms then have the same pointers to them.  Only the units of labels are each op's own: nobody asks for
 * them once there are tokens, so labels are drafted where they are freed after legal. */
#include "plan.h"

static void put_forms(const rl_oplegal *op, rl_text *t) {
    for (uint32_t i = 0; i < op->ntoken; i++) {
        const rl_label *l = &op->label[op->token[i].label];
        rl_put_number(t, (int64_t)l->role << 32 | l->group);
        rl_put_bytes(t, op->token[i].natom, op->noperand);
        for (uint32_t o = 0; o < op->noperand; o++) rl_put_bytes(t, op->token[i].atom[o], op->token[i].natom[o]);
    }
    for (uint32_t k = 0; k < op->nform; k++) {
        const rl_form *x = &op->form[k];
        rl_put_number(t, (int64_t)x->kind << 32 | x->cost);
        rl_put_number(t, (int64_t)(uintptr_t)x->run);
        rl_put_bytes(t, x->group, op->ntoken);
        rl_put_bytes(t, x->seq, op->noperand * sizeof *x->seq);
        rl_put_bytes(t, x->start, sizeof x->start);
        rl_put_bytes(t, x->member, x->start[RL_MAXGROUP]);
    }
}

static void put_looks(const rl_oplegal *op, rl_text *t) {
    rl_put_number(t, (int64_t)op->noperand << 32 | op->nlabel);
    rl_put_number(t, (int64_t)op->ntoken << 32 | op->nform);
    for (uint32_t o = 0; o < op->noperand; o++) rl_put_bytes(t, &op->operand[o].pin, sizeof op->operand[o].pin);
    for (uint32_t l = 0; l < op->nlabel; l++) {
        rl_put_number(t, (int64_t)op->label[l].role << 32 | op->label[l].group);
        rl_put_bytes(t, op->label[l].dim, op->noperand * sizeof *op->label[l].dim);
    }
    for (uint32_t i = 0; i < op->ntoken; i++) rl_put_bytes(t, &op->token[i].label, sizeof op->token[i].label);
    put_forms(op, t);
}

/* A copy without units. */
static rl_label *keep_labels(rl_arena *mem, const rl_oplegal *op) {
    rl_label *label = rl_new(mem, rl_label, op->nlabel);
    for (uint32_t l = 0; l < op->nlabel; l++) {
        label[l] = (rl_label){.role = op->label[l].role, .group = op->label[l].group, .tail = RL_NONE};
        label[l].dim = rl_copy(mem, op->label[l].dim, op->noperand * sizeof *label->dim);
    }
    return label;
}

typedef struct { const char *p; size_t n; const rl_oplegal *op; } looks;

typedef struct {
    rl_plan *p;
    rl_arena *tmp, now; /* now: of one op */
    rl_text text;
    rl_hash index;
    struct { looks *p; uint32_t n, cap; } look;
} sharer;

/* The first op that looks like this one, NULL: none yet; then *h is where to note it. */
static const rl_oplegal *find(sharer *s, const rl_oplegal *op, uint64_t *h) {
    s->text.n = 0;
    put_looks(op, &s->text);
    *h = rl_hash_bytes(s->text.p, s->text.n) | 1;
    for (uint32_t i; (i = rl_hash_get(&s->index, *h)) != RL_NONE; ++*h) {
        const looks *x = &s->look.p[i];
        if (x->n == s->text.n && rl_same_bytes(x->p, s->text.p, x->n)) return x->op;
    }
    return NULL;
}

static void make(sharer *s, rl_oplegal *op, rl_arena *mem) {
    rl_arena *kept = s->p->mem;
    s->p->mem = mem;
    rl_legal_tokens(s->p, op);
    s->p->mem = kept;
}

static void share(sharer *s, rl_oplegal *op) {
    uint64_t h;
    make(s, op, &s->now);
    const rl_oplegal *first = find(s, op, &h);
    if (first) {
        op->label = first->label;
        op->token = first->token;
        op->form = first->form;
    } else {
        make(s, op, s->p->mem);
        op->label = keep_labels(s->p->mem, op);
        rl_hash_put(&s->index, h, s->look.n);
        rl_push(s->tmp, s->look, ((looks){rl_copy(s->tmp, s->text.p, s->text.n), s->text.n, op}));
    }
    rl_arena_free(&s->now);
}

void rl_legal_share(rl_plan *p) {
    rl_arena tmp;
    rl_arena_init(&tmp, p->g->ctx);
    sharer s = {.p = p, .tmp = &tmp, .text.mem = &tmp, .index.mem = &tmp};
    rl_arena_init(&s.now, p->g->ctx);
    for (uint32_t i = 0; i < p->op.n; i++) {
        rl_legal_operands(p, &p->op.p[i]);
        if (p->op.p[i].nlabel || !p->op.p[i].fixed) share(&s, &p->op.p[i]);
    }
    rl_arena_free(&tmp);
}
