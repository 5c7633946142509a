/* What an op's groups of tokens can be permuted to, as the orders known of its classes show them (config_perms.c).
 *
 *   Add x[a b] y[b] -> z[a b], orders known of x: a b, b a        part of x in b a: token b, token a
 *   MatMul with groups M: a b, K: k                               part of x in k b a: of M b a, of K k */
#ifndef RL_CONFIG_PERMS_H
#define RL_CONFIG_PERMS_H
#include "configs.h"

/* level: as of rl_order. */
typedef struct { uint8_t t[RL_MAXATOM]; uint32_t level; } rl_perm;
typedef struct { rl_perm *p; uint32_t n, max; } rl_perms;

/* How the op's tokens lie in the orders of its operands, outermost first: by their first, or last, atoms.  token: of each order; part: the
 * same in a form, group after group.  Each is found once. */
typedef struct {
    const rl_plan *p;
    const rl_oplegal *op;
    const rl_form *form;
    rl_arena *mem;
    struct rl_lying { const uint8_t **token; uint8_t **part; uint32_t norder, npart; } *at; /* [2 * operand + last] of the orders seen so far */
    uint32_t (*begin)[RL_MAXGROUP + 1]; /* [operand] where each group begins in a part */
    uint32_t nchange;                   /* the caller's: counts orders of its classes that became known, or known at a lower level */
    rl_hash bymember;
    struct { struct rl_known { const uint8_t *member; uint32_t nmember, nchange; rl_perms all; } *p; uint32_t n, cap; } known; /* by group */
} rl_sequences;

rl_sequences rl_sequences_of(const rl_plan *p, const rl_oplegal *op, rl_arena *mem);
/* From now on parts are those of this form. */
void rl_sequences_begin(rl_sequences *s, const rl_form *f);

/* The part of a pin in an order of its class; its size, whatever the order. */
const uint8_t *rl_part_of(rl_sequences *s, uint32_t operand, uint32_t order, bool last);
static inline uint32_t rl_part_size(const rl_sequences *s, uint32_t operand) { return s->begin[operand][RL_MAXGROUP]; }
/* Has a token several atoms there?  Else first and last are the same. */
bool rl_is_wide(const rl_oplegal *op, uint32_t operand);

/* All permutations of the form's group g; those that the orders known of the pins show, as they are and completed. */
rl_perms rl_all_perms(rl_sequences *s, uint32_t g);
rl_perms rl_known_perms(rl_sequences *s, uint32_t g);
/* Those of a group's permutations, of `size` tokens each, that show these n tokens in this sequence. */
rl_perms rl_perms_showing(const rl_perms *all, uint32_t size, const uint8_t *part, uint32_t n, rl_arena *mem);
#endif
