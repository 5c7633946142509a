/* Why conversions stay (src/explain.h says what comes out): how the parts of the analysis share their facts.
 *
 * In the plan that assign chose, (class, order) is a *place* if some op names that order at that class.  Each class has one
 * place that its maker names; every further place is one conversion.  To explain the conversion to place b of a class made at
 * place a, a and b are taken for one place that can have one order only, and all other places may have any order of their
 * own: the other conversions stay allowed where they are.  If the count was least, no choice of configurations fits any more
 * (else it would save a conversion).  So some ops around the joined place exclude each other: the *conflict*, made small by
 * leaving out what is not needed.
 *
 *   c(Conv) ---(y, NCHW)=(y, NHWC)--- l(LayerNormalization)     c names NCHW only, l only what has C last
 */
#ifndef RL_PASS_EXPLAIN_H
#define RL_PASS_EXPLAIN_H
#include "../src/explain.h"
#include "plan.h"

typedef struct { uint32_t op, operand, pin; } rl_expin;
typedef struct {
    uint32_t cls, order;
    uint32_t slot;            /* of its first order, in arrays that have one entry per place and order */
    bool made;
    uint32_t first, npin;     /* its pins */
    uint32_t conversion;      /* its place in the list of conversions, RL_NONE: the made one */
} rl_explace;

typedef struct { uint32_t *p; uint32_t n, cap; } rl_exids;
typedef struct { uint32_t op, pin, next; } rl_exmeeting; /* op: its number in the conflict; next: RL_NONE at the end */
typedef struct { uint32_t place, base; } rl_exjoin; /* the conversion to `place` from `base`, the made place of its class */

typedef struct {
    rl_plan *p;
    rl_graph *g;
    rl_arena *mem;            /* of results */
    rl_arena *tmp;            /* of facts about the plan */
    rl_arena *now;            /* of one conversion */
    const uint32_t *cfg;      /* [nop] */
    struct { rl_explace *p; uint32_t n, cap; } place;
    uint32_t **at;            /* [op][pin] place */
    rl_expin *pin;
    uint32_t nslot;
    uint32_t *base;           /* [class] made place, RL_NONE */
    struct { rl_exjoin *p; uint32_t n, cap; } join;
    /* The pins of the conflict that is looked at, by place: a list from `meeting`. */
    struct { rl_exmeeting *p; uint32_t n, cap; } meet;
    uint32_t *meeting;        /* [place] the first of meet, RL_NONE */
    const char **type;        /* [origin] op types of the model as read */
    uint32_t ntype;
    const rl_exbody *function; /* that the graph is; NULL: the main graph */
    const rl_exbody **body;   /* [region] once asked for; of region 0 `function` */
    uint32_t first;           /* conversions of other graphs before those of this one */
} rl_explainer;

/* The conflict of a conversion: ops, nearest first. */
typedef struct { rl_exids op; bool smallest; } rl_exconflict;
typedef enum { RL_EX_CLASH, RL_EX_FITS, RL_EX_UNDECIDED } rl_exverdict;

/* explain_search.c */
typedef struct rl_exsearch rl_exsearch;
rl_exsearch *rl_exsearch_new(rl_explainer *x);
rl_exverdict rl_exsearch_conflict(rl_exsearch *s, rl_exjoin j, rl_exconflict *out);
/* Configurations in place of an op's own. */
typedef struct { uint32_t op, n; const uint32_t *row; } rl_exrelax; /* row[n * npin]; n 0: the op is left out */
/* Whether the steps for the conversion at hand, or for all of them, are used up: what was not decided then is not known. */
bool rl_exsearch_exhausted(const rl_exsearch *s);
/* Whether the conflict's ops clash with one of them relaxed.  Where they fit, order[i] is what the i-th of `place` has then,
 * RL_NONE where that is open. */
rl_exverdict rl_exsearch_relaxed(rl_exsearch *s, rl_exjoin j, const rl_exids *op, const rl_exrelax *r, const uint32_t *place,
                                 uint32_t nplace, uint32_t *order);
/* All ops that are joined to the conversion by places. */
void rl_exsearch_reach(rl_exsearch *s, rl_exjoin j, rl_exids *out);

/* explain_names.c: in the words of the model as read.  The two ends of an If, Loop or Scan (flat.h) are that node. */
rl_exnode rl_exnode_of(const rl_explainer *x, rl_node n);
/* A node of a graph that is not the plan's: the body, or the graph (NULL). */
rl_exnode rl_exnode_in(const rl_graph *g, const rl_nodeinfo *n, const rl_exbody *body);
rl_extensor rl_extensor_of(const rl_explainer *x, rl_value v);
bool rl_exnode_same(const rl_exnode *a, const rl_exnode *b);
bool rl_extensor_same(const rl_extensor *a, const rl_extensor *b);
bool rl_exnode_is_end(const rl_explainer *x, rl_node n);
/* The place in the plan of the first of the ops that stand for the node; RL_NONE. Those of the ends of an If, Loop or Scan follow each
 * other, with the one node. */
uint32_t rl_exnode_ops(const rl_explainer *x, rl_node n);

/* explain_path.c */
void rl_exstep_tensor(const rl_explainer *x, rl_expath *path, rl_value v);
void rl_exstep_node(const rl_explainer *x, rl_expath *path, rl_node n);
/* The node of an op; of a demand from outside the node that reads the tensor so, RL_NONODE for an input or output. */
rl_node rl_exnode_at(const rl_explainer *x, uint32_t op, rl_exwhat *what);
void rl_explain_paths(const rl_explainer *x, rl_exjoin j, const rl_exids *op, rl_exconversion *out);

/* explain_words.c: names of atoms, spread from one tensor through the ops of a conflict. */
typedef struct {
    const rl_explainer *x;
    rl_value ref;
    bool letters;
    rl_hash name;             /* class << 8 | atom -> dim | piece << 8 */
    uint32_t npiece[256];
} rl_exnames;
void rl_exnames_seed(const rl_explainer *x, rl_exjoin j, const rl_exids *op, rl_value fallback, rl_exnames *out);
void rl_exnames_of_tensor(const rl_explainer *x, rl_value v, rl_exnames *out);
const char *rl_exwords(const rl_exnames *k, uint32_t cls, const uint8_t *order, uint32_t n);
bool rl_is_spatial(const rl_nodeinfo *n);
void rl_explain_demands(rl_explainer *x, rl_exsearch *s, rl_exjoin j, const rl_exids *op, const rl_exnames *names, rl_exconversion *out);
/* The pins of an op that meet another pin of the conflict. */
bool rl_expin_meets(const rl_explainer *x, rl_exjoin j, uint32_t k, uint32_t pin);

/* explain_remedy.c */
/* Whether an op that takes any order is part of the conflict only because not all its configurations were considered. */
bool rl_exop_limited(rl_explainer *x, rl_exsearch *s, rl_exjoin j, const rl_exids *op, uint32_t k);
void rl_explain_remedies(rl_explainer *x, rl_exsearch *s, rl_exjoin j, const rl_exids *op, const rl_exnames *names, rl_exconversion *out);

/* explain_solve.c: RL_EINTERNAL where the solver of solve.h finds that the ops fit after all. */
rl_status rl_explain_confirm(rl_explainer *x, rl_exjoin j, const rl_exids *op);
/* The forms that are charged for where the conversion is left out, though nothing forces it. */
rl_status rl_explain_charges(rl_explainer *x, rl_exsearch *s, rl_exjoin j, rl_exconversion *out);

/* explain_removed.c: a Transpose of the model as read, before any pass. out RL_NOVALUE: in a body that stays closed. */
typedef struct { rl_exnode node; rl_value out; bool unused; } rl_exoriginal;
void rl_explain_transposes(const rl_explainer *x, const rl_exoriginal *t, uint32_t nt, rl_explanation *out);

#endif
