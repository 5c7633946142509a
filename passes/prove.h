/* What prove.c and prove_graph.c share: a certificate in the making. */
#ifndef RL_PROVE_H
#define RL_PROVE_H
#include "plan.h"

typedef struct {
    const rl_plan *p;
    rl_arena *mem;
    uint32_t *value;   /* [ncls] its number in the certificate, RL_NONE */
    uint32_t *op;      /* [nop] likewise */
    uint32_t *operand; /* of the op at hand: the operand of each pin */
    uint8_t *place;    /* and of each token its number in the certificate, RL_END for one that no pin has */
    rl_hash known;     /* tokens of the plan: the first op of the certificate that has them, and so the same forms (legal_share.c) */
    rl_cert c, time;   /* time: the second part */
    rl_hash open;      /* 1 + the number of an open size: how many others the file has before it */
    rl_least *least;      /* [ncomp] the bound */
    const rl_opspans **spans; /* [ncomp] those that show it, or NULL */
    uint32_t *from;       /* [ncomp] of twins the first's: lower bounds that were not tried are before this one in p->lesser */
    bool *dropped, *slow; /* [ncomp] the checker could not decide its bound, or that of its time: it has none */
    bool *arranged[2];    /* [ncomp] of the bound, and of that of times: the ops are not in the sequence of the graph (prove_order.c) */
} rl_prove_maker;

/* With one token at most that a pin has it can only do what the model does. */
static inline bool rl_is_idle(const rl_oplegal *op) {
    uint32_t n = 0;
    for (uint32_t t = 0; t < op->ntoken; t++) {
        bool pinned = false;
        for (uint32_t o = 0; o < op->noperand; o++) pinned |= op->operand[o].pin && op->token[t].natom[o];
        n += pinned;
    }
    return op->fixed || n <= 1;
}

/* What the bound looks at of a value; of none, at all of it. */
static inline void rl_prove_keep(rl_cert_value *v, rl_kept kept) {
    if (!kept.atom) kept = (rl_kept){0};
    v->keep = kept.atom, v->nkeep = kept.n;
    v->fold = kept.fold, v->refold = kept.refold;
}

/* prove_graph.c: m->c.value, with the atoms kept in the bound; m->c.op; what each op is charged and may swap, and the rate; what it swaps under
 * these configurations. */
void rl_prove_values(rl_prove_maker *m);
void rl_prove_ops(rl_prove_maker *m);
void rl_prove_charges(rl_prove_maker *m);
void rl_prove_swaps(rl_prove_maker *m, const uint32_t *cfg);

#endif
