/* What the files share that bound the assignment problem from below (bound.c): its exact costs, the atoms that a bound looks at, folds, spans, and what
 * becomes of its choice (lift.c). */
#ifndef RL_BOUND_H
#define RL_BOUND_H
#include "plan.h"

/* One conversion of v costs (1 << up) + bytes / unit by count, (bytes / unit << up) + 1 by bytes.  Not exact: bytes are rounded down. */
/* price, not NULL: costs are times, and [component] what a conversion costs beside its time; as rl_least.count. */
typedef struct { int64_t unit; uint32_t up; bool bytes_first, exact; const int64_t *price; } rl_bound_scale;

/* As many bits as the whole part of x >= 0 has. */
uint32_t rl_bits_of(double x);

/* The op's configurations as the solver has them; value is in mem. */
rl_choice rl_op_choice(const rl_oplegal *op, const int64_t *cost, rl_arena *mem);

/* The problem of the ops in q; values of components that are not open cost nothing. In q->mem. */
void rl_bound_problem(const rl_plan *q, const rl_bound_scale *s, const bool *open, rl_problem *out);

/* A search for bounds, from attempt to attempt. */
typedef struct {
    rl_plan *p;
    rl_bound_scale scale;
    bool *open;           /* [ncomp] not proven yet */
    const rl_least *known; /* [ncomp] a bound that is enough: what the assignment costs */
    const rl_least *full;  /* [ncomp] the least, if the candidates are all configurations; NULL: not known */
    bool *settled;        /* [ncomp] some attempt has been solved */
    const rl_opspans **spans; /* [ncomp] of the attempt: those that show its bound, or NULL */
    bool *wide;           /* [ncomp] some class has so many atoms that only some attempts are for it */
    rl_hash tried;        /* what was kept, of which components */
    double deadline, folding; /* folding: what that of the last attempt took */
    rl_arena *tmp;
} rl_prover;

/* Leaves p->least of what is settled, and cls.kept. */
rl_prover rl_prover_of(rl_plan *p, bool *open, double limit, rl_arena *tmp);
rl_status rl_prover_run(rl_prover *v);

/* bound_restrict.c: the open components alone, restricted to the atoms that are kept, with every configuration; what they do not touch is
 * left empty.  In mem.  False when an op still has too many configurations. */
bool rl_restrict_plan(const rl_plan *p, const bool *open, bool by_time, rl_plan *q, rl_arena *mem);

/* bound_span.c: the ops of each component of restricted plan q, in sequence (an op with pins on several is in each), and its classes: those of component k
 * are cls[clsbeg[k]] .. cls[clsbeg[k + 1] - 1].  place: [ncls] of a class among them; was: [nop] of an op in the plan p that q was made of. */
typedef struct { uint32_t *opbeg, *op, *clsbeg, *cls, *place, *was; } rl_members;
rl_members rl_members_of(const rl_plan *q, const rl_plan *p, const bool *open, rl_arena *mem);

/* A bound of an open component by spans; problem: that of restricted plan q, whose members m are.  *spans is in v->p->mem; in it an
 * order is its place in the dictionary of the atoms kept, and nop the place in v->p->op where a span ends.  False, where there is none. */
bool rl_bound_by_spans(rl_prover *v, const rl_plan *q, const rl_problem *problem, uint32_t comp, const rl_members *m, rl_least *least,
                       const rl_opspans **spans);
/* So many conversions and bytes as one weight, by which they are compared. */
int64_t rl_bound_weight(const rl_bound_scale *s, rl_least x);

/* Has the op a pin on one of these components? */
bool rl_touches(const rl_plan *p, const rl_oplegal *op, const bool *comp);

/* price.c: what each component takes under some configurations, charges and prices (NULL: none) included, as rl_least.count; as bytes its
 * conversions. */
void rl_plan_times(const rl_plan *p, const uint32_t *cfg, const int64_t *price, rl_least *time, rl_arena *tmp);

/* lift.c: costs for a problem of restricted plan q, in q->mem, that tell its optima apart: of those of least cost the one that strays least
 * from the model as it stands.  False, and nothing changed, where the sums would not fit. */
bool rl_lift_costs(const rl_plan *q, rl_problem *problem);
/* Sets p->lifted: the orders that the configurations qcfg of the restricted plan q name at the classes of open components, as orders of all
 * atoms, with those that cfg names in p; if one of the former is new. */
void rl_lift(rl_plan *p, const uint32_t *cfg, const rl_plan *q, const uint32_t *qcfg, const bool *open);

/* keep.c: sets cls.kept of the open components, at most mostkept atoms each.  Class by class, and of atoms that seem equally useless first
 * the one that few others are tied to (PLAIN), or the second of two alike (TWINS, ROLES, PARTS).  Before that atoms go that stand behind the
 * same one in all orders that the model names (PLAIN, TWINS), or all but one of each role, of each part (ROLES, PARTS: keep_roles.c); none for FULL: a
 * charge may hang on one of them.  SHARED: as ROLES, but what only two atoms share (the three of query, key and value) goes before anything that is
 * shared by more, useless or not. */
typedef enum { RL_KEEP_PLAIN, RL_KEEP_TWINS, RL_KEEP_ROLES, RL_KEEP_SHARED, RL_KEEP_PARTS, RL_KEEP_FULL } rl_keepway;
void rl_bound_keep(rl_plan *p, const bool *open, uint32_t mostkept, rl_keepway way);
/* Adds to what is kept the atoms of the n-th label, in classes that keep less than mostkept.  False: there are no more labels. */
bool rl_bound_keep_more(rl_plan *p, const bool *open, uint32_t n, uint32_t mostkept);

/* bound_fold.c.  to: [ncls] for each order of a class of q the one that stands in for it, or NULL, as rl_problem_fold gives it.
 * drop: leaves the folds that the certificate can have; true where that is all of them.  apply: leaves the configurations that are their own
 * image; place[o][i]: where the i-th was.  note: as kept.fold, and again (or NULL) as kept.refold, of the classes of p that are open; noted: the former, as it was noted of the same
 * restriction. */
bool rl_fold_drop(const rl_plan *q, const rl_problem *p, uint32_t **to, rl_arena *tmp);
void rl_fold_apply(rl_arena *mem, rl_problem *p, uint32_t *const *to, uint32_t **place);
void rl_fold_note(rl_plan *p, const rl_plan *q, const bool *open, uint32_t *const *to, uint32_t *const *again);
void rl_fold_noted(const rl_plan *q, uint32_t **to, rl_arena *tmp);
/* The orders of a class of which atoms are kept by their places in the dictionary, for each the one that stands in for it; in mem.  NULL where each stands
 * for itself. */
const uint16_t *rl_fold_places(const rl_cls *x, const uint32_t *to, rl_arena *mem);
uint32_t rl_fold_leaves(const rl_problem *p, uint32_t *const *to); /* how many configurations are their own image */
/* Two folds, one after the other, become one: to. */
void rl_fold_then(const rl_plan *q, uint32_t **to, uint32_t *const *next);
/* The place in the dictionary of an order of n atoms, among all of them. */
uint32_t rl_order_place(const uint8_t *order, uint32_t n);
/* Which configuration of an op names these orders, pin by pin: an index of all, in mem; its place, RL_NONE if none does. */
rl_hash rl_config_index(rl_arena *mem, const rl_choice *o);
uint32_t rl_config_find(const rl_hash *index, const rl_choice *o, const uint32_t *order);

/* neighbours.c: a fold of the restricted plan's problem x that keeps atoms side by side, where rl_problem_fold would be long in finding it.  to: [ncls], all
 * NULL before.  Configuration 0 is its own image. */
void rl_fold_neighbours(rl_plan *q, const rl_problem *x, double deadline, uint32_t **to, rl_arena *tmp);
#endif
