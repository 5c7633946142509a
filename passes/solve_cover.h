/* The assignment problem as a cover: the form in which it is reduced and solved.
 *
 * An element is an (order, value) pair.  Choosing a configuration asks for a small set of elements; each element asked for by
 * anyone is paid once:
 *
 *     total = base + sum over ops of cost[chosen] + sum over elements that a chosen configuration holds of weight
 *
 * This equals the total of solve.h when base starts at minus the weight of each value touched (its first order is free).
 * What solve.h calls a forced order is an element that every configuration of some op holds: it is paid for certain, so it
 * disappears here, as does an element that only one op can ask for (its weight moves into that op's costs). */
#ifndef RL_SOLVE_COVER_H
#define RL_SOLVE_COVER_H
#include "../src/hash.h"
#include "solve.h"

/* The configurations of one op.  The sets are sorted, `width` slots each, filled up with RL_NONE. */
typedef struct {
    uint32_t ncfg, width;
    uint32_t *elem; /* [ncfg * width] */
    int64_t *cost;  /* [ncfg] >= 0 */
    uint32_t *orig; /* [ncfg] the configuration of the rl_choice */
} rl_bundle;

/* The set of configuration c. */
static inline uint32_t *rl_bundle_set(const rl_bundle *b, uint32_t c) { return b->elem + (size_t)c * b->width; }

typedef struct rl_cover {
    uint32_t nop, nelem, nval;
    rl_bundle *op;
    int64_t *weight; /* [nelem] > 0 */
    uint32_t *value; /* [nelem] */
    int64_t base, slack; /* solve.h */
    int64_t upper;       /* only what is cheaper is sought; INT64_MAX: whatever there is */
} rl_cover;

/* A choice for each op of a cover; cost and bound are without base.  proven: but for the slack none costs less. */
typedef struct { uint32_t *cfg; int64_t cost, bound; bool proven; } rl_cover_choice;

/* solve.c: the cover of a problem, whose element first(v) + k is order k of value v; the least total of a cover, which is of no use then; folded: as
 * rl_solve_folded. */
rl_status rl_cover_of(rl_arena *mem, const rl_problem *p, rl_cover *out);
rl_cover_choice rl_cover_solve(rl_arena *mem, rl_cover *p, bool folded, double deadline);

/* solve_reduce.c: shrinks p in place without losing every optimum.  Ops left with one configuration hold no elements. */
void rl_cover_reduce(rl_arena *mem, rl_cover *p);
/* The same without dominance: what is paid for certain, or private, is taken out. */
void rl_cover_settle(rl_arena *mem, rl_cover *p);

/* solve_fold.c: removes configurations that others stand in for, in at most about `budget` steps, until the deadline.  Returns how many elements
 * are gone; if any, reduce again.  map, if not NULL: [nelem] the element that stands in for each. */
uint32_t rl_cover_fold(rl_arena *mem, rl_cover *p, uint64_t budget, double deadline, uint32_t *map);

/* solve_round.c: p to the nearest multiples of twice the slack, in mem; orig: the places in p.  off: by how much at least a choice then costs more in p.  False
 * where that is p. */
bool rl_cover_round(rl_arena *mem, const rl_cover *p, rl_cover *out, int64_t *off);
/* Op by op the configuration that adds least, until none is better.  Returns the total. */
int64_t rl_cover_improve(rl_arena *mem, const rl_cover *p, uint32_t *cfg);

/* solve_order.c: orders in which to take the ops of a component, narrowest first in the sense of that file; returns how many.
 * And a narrower one than `best`, with more effort. */
enum { RL_MAXARRANGE = 4 };
typedef struct { uint32_t *seq; double width; } rl_arrangement;
uint32_t rl_arrange(rl_arena *mem, const rl_cover *p, rl_arrangement out[RL_MAXARRANGE]);
rl_arrangement rl_arrange_better(rl_arena *mem, const rl_cover *p, rl_arrangement best, double deadline);

/* solve_share.c: each op's part of the weight of the elements that it may ask for, and the bound that follows from these. */
typedef struct rl_shares {
    uint32_t *beg, *elem; /* of each op: elem[beg[o]] .. elem[beg[o + 1]] */
    int64_t *part;        /* beside elem */
    int64_t *least;       /* [nop] cost and parts of the op's cheapest configuration; parts are small where op is late in seq */
    int64_t bound;        /* their sum: no choice costs less */
} rl_shares;
/* descend: with more effort. from: those of another order to begin with, or NULL. */
rl_shares rl_share_out(rl_arena *mem, const rl_cover *p, const uint32_t *seq, bool descend, const rl_shares *from, int64_t enough, double deadline);

/* The ops not passed yet. */
typedef struct { const rl_shares *s; int64_t *part, least; } rl_rest; /* [nelem] their parts together; the sum of their least */
rl_rest rl_rest_start(rl_arena *mem, const rl_cover *p, const rl_shares *s); /* all */
void rl_rest_pass(rl_rest *r, uint32_t op);
/* What they cost at least where a set of elements is paid. */
int64_t rl_rest_of(const rl_rest *r, const uint32_t *set, uint32_t n);

/* solve_frontier.c: the states after each op of an order; [i]: ops seq[0..i] are done. */
typedef struct { uint32_t n, *beg, *elem; int64_t *cost, least; } rl_layer;
enum { RL_MAXSHARE = 2 };

typedef struct {
    const uint32_t *seq;     /* the order of the ops */
    uint32_t cap;            /* most states after one op */
    uint32_t extra;          /* states over the cap that may be kept, in the whole run */
    bool relax;              /* over the cap, merge states; otherwise drop the worst */
    int64_t upper;           /* a total that is known: only better ones are of interest */
    const rl_layer *guide;   /* layers of a run over the reversed order, or NULL */
    const rl_shares *shares; /* [nshare] those of seq */
    uint32_t nshare;         /* at most RL_MAXSHARE */
    bool record;             /* give the layers, for use as a guide */
    double deadline;         /* after it, go on with a few states only */
} rl_cover_run;

typedef struct {
    bool found;              /* cost and cfg are a solution with cost < upper */
    int64_t cost;
    int64_t bound;           /* no solution costs less than min(bound, upper) */
    uint32_t *cfg;
    rl_layer *layer;
} rl_run_result;

rl_run_result rl_frontier_run(rl_arena *mem, const rl_cover *p, const rl_cover_run *run);

/* solve_cut.c: the least total of one component, in polynomial time, where each op has two configurations and they can be told apart as that
 * file says.  False, and choice as it was, where not, or where the deadline (rl_work_seconds) came first. */
bool rl_component_cut(rl_arena *mem, const rl_cover *p, double deadline, rl_cover_choice *choice);

/* solve_search.c: the least total of one component, or that it is not below upper; bound == cost when proven.  try is one quick run; solve goes on from its
 * result until the total is proven or the deadline (rl_work_seconds) is over. */
rl_cover_choice rl_component_try(rl_arena *mem, const rl_cover *p, double deadline);
void rl_component_solve(rl_arena *mem, const rl_cover *p, double deadline, rl_cover_choice *choice);

#endif
