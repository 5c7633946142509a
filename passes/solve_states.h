/* What the frontier (solve_frontier.c) keeps after an op: states, each a sorted set of elements that are paid, and what it cost.
 *
 *   set     {3, 7, 20}            elem[beg[s]] .. elem[beg[s + 1]], rising
 *   table   hash of a set -> its state: two ways to the same set are one state
 *   index   element -> the sets that hold it */
#ifndef RL_SOLVE_STATES_H
#define RL_SOLVE_STATES_H
#include "solve_cover.h"

typedef struct {
    uint32_t n, cap, nelem, capelem;
    int64_t *cost;
    uint64_t *hash;           /* sum of the elements' random words */
    uint64_t *sig;            /* one bit per element, 64 shared by all */
    uint32_t *beg;            /* [n + 1] */
    uint32_t *elem;           /* sorted sets */
    uint32_t *parent, *cfg;   /* parent RL_NONE: merged from several */
    bool *loose;              /* a merged state is among its ancestors: the cost is a bound, not that of a choice */
} rl_states;

/* Makes room for two states more and for nelem elements behind the last. */
void rl_states_reserve(rl_arena *mem, rl_states *f, uint32_t nelem);
void rl_states_copy(rl_arena *mem, rl_states *to, const rl_states *f, uint32_t s); /* appends state s of others; hash and sig stay behind */
static inline uint32_t rl_states_size(const rl_states *f, uint32_t s) { return f->beg[s + 1] - f->beg[s]; }
static inline void rl_states_clear(rl_states *f) { f->n = f->nelem = f->beg[0] = 0; }

/* The union of two sorted sets; returns its size. */
uint32_t rl_set_merge(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb, uint32_t *out);

typedef struct { uint32_t *slot, cap; uint64_t *word; } rl_statetable; /* slot: 1 + state; word: [nelem] random */
void rl_statetable_init(rl_arena *mem, rl_statetable *t, uint32_t nelem);
void rl_statetable_clear(rl_statetable *t);
/* The slot, 0 if none has it, of the set of n elements that stands behind the last state of f; its hash and sig. */
uint32_t *rl_statetable_find(rl_arena *mem, rl_statetable *t, const rl_states *f, uint32_t n, uint64_t *hash, uint64_t *sig);

typedef struct { uint32_t state, next; } rl_holder; /* a state that holds an element; next: 1 + place, 0 at the end */
typedef struct {
    uint32_t *head, *count; /* [nelem] the sets that hold an element, how many */
    struct { rl_holder *p; uint32_t n, cap; } link;
} rl_setindex;
void rl_setindex_add(rl_arena *mem, rl_setindex *x, uint32_t id, const uint32_t *set, uint32_t n);
void rl_setindex_clear(rl_setindex *x, const uint32_t *elem, uint32_t n); /* elem: the elements of all its sets, at least */

#endif
