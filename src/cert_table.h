/* A pass over the ops of a component, and what its files share (cert_table.c, cert_step.c, cert_select.c, cert_share.c).
 *
 *   cert_table.c   passes to and fro, until one decides
 *   cert_step.c    from the states before an op to those after it
 *   cert_select.c  which of them stay, and what is merged
 *   cert_share.c   what the ops to come cost at least
 *
 * Positions count ops in the direction of the pass: position 0 is the first op, or backward the last. */
#ifndef RL_CERT_TABLE_H
#define RL_CERT_TABLE_H
#include "cert_internal.h"

/* States: sets of elements, rising, one after another. */
typedef struct {
    uint32_t n, cap;
    size_t nelem, capelem;
    rl_cert_key *cost;
    uint64_t *hash; /* sum of its elements' words */
    size_t *beg;    /* [n + 1] */
    uint32_t *elem;
} rl_layer_sets;

typedef struct { rl_cert_key cost; uint32_t size, id; } rl_rank;

/* Which sets have an element. */
typedef struct {
    uint32_t *head, *count; /* [nelem] 1 + the first link, how many */
    struct { struct rl_link { uint32_t set, next; } *p; uint32_t n, cap; } link;
} rl_holders;

/* cert_share.c: of each step the elements that it may name, elem[beg[i]] .. elem[beg[i + 1]], and its part of their weight; what it costs at
 * least; what 1 of major counts. */
typedef struct { uint32_t *beg, *elem; int64_t *part, *least, major; } rl_cert_shares;
/* For passes in one direction; proposed: with more effort, or from those of the other direction (NULL: there are none).  False where the costs are too
 * large for it. */
bool rl_cert_share(rl_arena *mem, const rl_cert_table *t, bool backward, bool proposed, const rl_cert_shares *from, rl_cert_shares *s, uint64_t maxwork,
                   uint64_t *work);

/* The steps not taken yet: their parts, [nelem], and what they cost at least, credit included. */
typedef struct { const rl_cert_shares *s; bool backward; int64_t *part, least; } rl_cert_rest;
void rl_rest_begin(rl_cert_rest *r, rl_arena *mem, const rl_cert_table *t, const rl_cert_shares *s, bool backward);
/* Before any is taken: is less missing to the claim than what one element may weigh?  Then few states are below it, and it is better not to merge them. */
bool rl_rest_is_close(const rl_cert_rest *r, const rl_cert_table *t);
void rl_rest_take(rl_cert_rest *r, const rl_cert_table *t, uint32_t step);
/* Does a state of this cost and set, with the rest, reach the claim? */
bool rl_rest_reaches(const rl_cert_rest *r, const rl_cert_table *t, const uint32_t *set, uint32_t n, rl_cert_key cost);
enum { RL_CERT_NSHARE = 2 };

/* The op being taken. */
typedef struct {
    const rl_cert_step *s;
    rl_cert_key *full, *dying; /* [ncfg] with everything new; of that, what no later op can name */
    uint32_t *head, *user;     /* element k of the op: user[head[k]] .. user[head[k + 1]] are the configurations that name it */
    uint32_t *slot;            /* [nelem] 1 + its k, 0: not named by the op */
    uint32_t *name, nname;     /* the op's elements */
    rl_rank *bydying;
    rl_cert_key *got, *gotdying; /* [ncfg] what the state has of it */
    uint32_t *touched, ntouched;
    bool *hit;                   /* [ncfg] is in touched */
} rl_cert_view;

typedef struct {
    rl_arena *mem;
    const rl_cert_table *t;
    bool backward;
    uint32_t pos, cap;   /* cap: states that may stay after an op */
    uint32_t *last;      /* [nelem] the last position whose op can name it */
    uint64_t *word;      /* [nelem] random */
    rl_cert_key *ahead;  /* [nstep + 1] what the ops from this position on must pay */
    rl_layer_sets cur, next;
    uint32_t *table, tablecap;
    rl_cert_view op;
    uint32_t *stay, nstay;  /* of the state being expanded: what a later op can name */
    uint32_t *live;         /* the same of a configuration */
    uint64_t *mark, stamp;  /* [nelem] e is marked: mark[e] == stamp */
    rl_rank *order;
    uint32_t *asked, ordercap; /* [states] the last state that was compared with it, + 1 */
    rl_holders kept, guides;
    const rl_layer_sets *guide; /* the other direction's states that meet this position's, or NULL */
    rl_cert_key meet;           /* what the costs of both have too much or too little */
    rl_cert_key *shared;        /* [guide's states] */
    uint32_t *sharing, sharecap;
    rl_cert_rest rest[RL_CERT_NSHARE]; /* [nshare] */
    uint32_t nshare;
    bool merged;
    uint64_t work, maxwork; /* configurations tried and states compared so far, by all passes of all tables; the most there may be */
} rl_filler;

static inline uint32_t rl_layer_size(const rl_layer_sets *f, uint32_t s) { return (uint32_t)(f->beg[s + 1] - f->beg[s]); }
static inline const rl_cert_step *rl_step_at(const rl_filler *d, uint32_t pos) {
    return &d->t->step[d->backward ? d->t->nstep - 1 - pos : pos];
}
static inline rl_cert_key rl_credit_at(const rl_filler *d, uint32_t pos) {
    return rl_step_at(d, pos)->credit[d->backward];
}

/* What is being done is given up, and what it has made so far means nothing. */
static inline bool rl_filler_spent(const rl_filler *d) { return d->work > d->maxwork; }

/* Room for one more set of up to nelem elements. */
void rl_layer_reserve(rl_arena *mem, rl_layer_sets *f, size_t nelem);
void rl_layer_empty(rl_layer_sets *f);
int rl_rank_compare(const void *a, const void *b); /* cheap first, of equal cost the larger first */

/* Takes the op at d->pos: from d->cur to d->next.  False where that makes more than `most` states, or these have more elements than
 * `mostelem`, or the work is spent. */
bool rl_step_take(rl_filler *d, uint32_t most, size_t mostelem);
/* Moves the states of d->next that must be looked at to d->cur; merges some if they are more than d->cap. */
void rl_step_select(rl_filler *d);
/* Merges d->cur to half as many; false where it has one state only.  d->next is lost. */
bool rl_step_shrink(rl_filler *d);
#endif
