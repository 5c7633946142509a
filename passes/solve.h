/* The assignment problem, apart from graphs: choose one configuration per op so that few conversions are needed.
 *
 * Each value v has orders 0 .. norder[v]-1.  Each op has pins (values) and configurations; a configuration names one order
 * for each pin.  U(v) is the set of orders that the chosen configurations name at v; it costs weight[v] * (|U(v)| - 1),
 * and a configuration may cost something of its own:
 *
 *     total = sum over ops of cost[chosen]  +  sum over values of weight[v] * (|U(v)| - 1)
 *
 * Example: value 0 with two orders, an op that can only make order 0, one that takes only order 1: total = weight[0].
 * Costs are int64 and may be huge (count * 2^40 + bytes); sums stay below 2^62 or rl_solve refuses. */
#ifndef RL_SOLVE_H
#define RL_SOLVE_H
#include "../src/base.h"

typedef struct {
    uint32_t npin, ncfg;
    const uint32_t *value; /* [npin]; a value may stand at several pins of one op */
    const uint32_t *order; /* [ncfg * npin]: order[c * npin + p] */
    const int64_t *cost;   /* [ncfg], >= 0; NULL: all 0 */
} rl_choice;

typedef struct {
    uint32_t nval, nop;
    const int64_t *weight;  /* [nval], >= 0 */
    const uint32_t *norder; /* [nval] */
    const rl_choice *op;    /* [nop] */
    const uint32_t *start;  /* [nop] a configuration of each op known to be good (the model as it stands), or NULL */
    int64_t slack;          /* of a component: what is cheaper by no more than that is not sought for long */
    int64_t upper;          /* the least total is known to be no more than that: only what is cheaper is sought.  0: nothing is known */
} rl_problem;

typedef struct {
    uint32_t *cfg;   /* [nop] the configuration chosen for each op */
    int64_t cost;    /* its total, recomputed from the definition */
    int64_t bound;   /* no choice costs less: cost, when optimal (but for the slack of each component); the problem's upper where nothing is cheaper than
                      * that, whatever cfg costs */
    bool optimal;
} rl_solution;

/* The total of an assignment, from the definition. */
int64_t rl_problem_cost(const rl_problem *p, rl_arena *tmp, const uint32_t *cfg);

/* The least total.  Never worse than start.  Stops after `seconds` with the best found and a bound (optimal false).
 * The result is in mem.  RL_EINTERNAL when the problem is malformed or costs could overflow. */
rl_status rl_solve(rl_arena *mem, const rl_problem *p, double seconds, rl_solution *out);
/* The same; where folded, what rl_problem_fold finds is gone from p already, and is not looked for again. */
rl_status rl_solve_folded(rl_arena *mem, const rl_problem *p, bool folded, double seconds, rl_solution *out);

/* A bound by spans (solve_span.c): so many ops, in sequence, cost `least` by themselves, where orders weigh what is said here; those of which nothing is
 * said weigh nothing.  What an order weighs in all spans together is no more than its weight. */
typedef struct { uint32_t value, order; int64_t weight; } rl_weigh;
typedef struct { uint32_t nop, nweigh; int64_t least; rl_weigh *weigh; } rl_opspan;
typedef struct { uint32_t n; rl_opspan *span; int64_t bound, conversion; } rl_opspans; /* bound: of the total; conversion: as of rl_cert_part, or 0 */

/* What spans of any length have in common: the problem as a cover, what is paid whatever is chosen, and the parts of the weights; in mem. */
typedef struct {
    const rl_problem *problem;
    struct rl_cover *cover;
    struct rl_shares *shares; /* NULL before the first spans */
    int64_t base;
    rl_arena *mem;
} rl_spanning;
rl_status rl_span_begin(rl_arena *mem, const rl_problem *p, rl_spanning *x);
/* Spans of about so many ops that have a choice, none where that is one; a bound that is enough.  In mem. */
void rl_solve_spans(rl_arena *mem, rl_spanning *x, uint32_t about, int64_t enough, double deadline, rl_opspans *out);

/* Orders that can stand in for others, everywhere at once: to[v][k] for order k of value v, to[v] NULL where v has no choice.  The image
 * of every configuration, order by order, is a configuration of the same op that costs no more, so some cheapest assignment
 * names only orders that are their own image.  settled: what is paid for certain, or named by one op alone, is out first, and an image is one as
 * a set of orders, which may lack some.  Not sought after the deadline (rl_work_seconds).  to[nval] is the caller's, the rest is
 * in mem. */
rl_status rl_problem_fold(rl_arena *mem, const rl_problem *p, bool settled, double deadline, uint32_t **to);

#endif
