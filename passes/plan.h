/* What the layout passes know: atoms, values, the legal configurations of each op, and the choice among them.
 *
 * Words of the problem, as used here:
 *   unit    a node of the refinement forest: a dim, or a part of one.  Units that must agree are united; a unit that a
 *           Reshape cuts gets two children (outer, inner).
 *   atom    a leaf of that forest inside one tensor.
 *   class   all tensors joined by one-to-one movement (Transpose, Reshape ...): one "value" of the problem.  Its atoms are
 *           numbered 0 .. natom-1 in the row-major order of its first tensor, and every member lists the same atoms in its
 *           own row-major order:
 *               x f32[2,3,4]                     atoms 0 1 2, seq(x) = 0 1 2
 *               y = Transpose(x) perm=[2,0,1]    seq(y) = 2 0 1
 *               z = Reshape(y) [4,6]             seq(z) = 2 0 1, the second dim holds two atoms
 *   order   a permutation of a class's atoms: a way to lay the class out in memory.
 *   token   what an op permutes: one atom in each operand that has it, or a block (the whole dim that it works along).
 *   group   tokens that stay together; a form says, for each operand, in which sequence the groups lie.
 *
 * A configuration is a form and a permutation of each group.  MatMul A[b,M,K] B[b,K,N] has groups b M K N and the form
 * (b M K)(b K N)(b M N) among others; Relu has one group and one form. */
#ifndef RL_PLAN_H
#define RL_PLAN_H
#include "flat.h"
#include "solve.h"
#include "../src/cert.h"
#include "../src/ops.h"

typedef struct { rl_dim size; uint32_t parent, outer, inner, weight; } rl_unit; /* parent, weight: union-find; outer RL_NONE: leaf */
typedef struct { uint32_t unit; rl_unit old; } rl_undo;

/* One tensor in terms of atoms. */
typedef struct {
    uint32_t cls;         /* RL_NONE: no tensor of known rank */
    uint32_t natom;
    uint32_t *unit;       /* [rank] root unit of each dim, RL_NONE for size 1; while legal runs */
    uint8_t *dimstart;    /* [rank + 1] dim i holds atoms dimstart[i] .. dimstart[i+1] of seq */
    uint8_t *seq;         /* [natom] class atoms in this tensor's row-major order */
} rl_member;

/* level: how far the order is from those that the model itself uses (candidates.c). */
typedef struct { const uint8_t *p; uint32_t level; } rl_order;

/* An order of a class, by itself. */
typedef struct { uint32_t cls, natom; const uint8_t *order; } rl_naming;
typedef struct rl_namings { rl_naming *p; uint32_t n, cap; } rl_namings;

/* What the bound looks at of a class (bound.c). */
typedef struct {
    uint32_t n;
    const uint8_t *atom;  /* [n] ascending; NULL: all atoms */
    const uint16_t *fold; /* [n!] which order of these can stand in for each, by their places in the dictionary; NULL: itself */
    const uint16_t *refold; /* the same, of what is left of that when what is paid for certain is out */
} rl_kept;

typedef struct {
    rl_dim *size;         /* [natom] */
    uint32_t natom;
    rl_value first;       /* the tensor that an op, or the graph's input, made */
    bool constant;        /* first is a constant whose bytes can be permuted */
    bool cut;             /* of a restricted plan: some atoms are gone */
    int64_t bytes;        /* of one copy, as often as its body runs; symbols and turns guessed */
    uint32_t comp;        /* component; RL_NONE before rl_candidates */
    uint32_t like;        /* the class whose candidates it has: the same place in the first of the components that look alike; mostly itself */
    struct { rl_order *p; uint32_t n, cap; } order; /* candidates */
    rl_hash *index;       /* hash of an order -> its place; NULL: there are few */
    rl_kept kept;
} rl_cls;

/* How one of the op's own dims takes part in it. */
typedef enum {
    RL_T_FREE,    /* carried along */
    RL_T_AXIS,    /* the op works along it: a block */
    RL_T_PIECES,  /* Split, Concat of equal pieces: the index of the piece, a block in the whole only */
    RL_T_REDUCED, /* in the input only */
} rl_role;

typedef struct {
    rl_value tensor;
    uint32_t slot; /* input or output index at the node */
    bool out, pin; /* pin: takes part in the assignment (not constant) */
    uint32_t cls;
    uint32_t body; /* of a link: 1 + the body of its If, Loop or Scan that makes or reads it; 0: outside */
} rl_operand;
/* Of an op on heads (rl_op_heads): has it a form with the heads behind the sequence? A cache, and the scores, have not. */
static inline bool rl_operand_turns_heads(const rl_operand *x) { return !x->out || x->slot == 0; }

/* A dim of the op: where it lies in each operand. */
typedef struct {
    rl_role role;
    uint32_t group;
    int32_t *dim;     /* [operand] -1: absent */
    uint32_t *unit;   /* [operand] the unit whose leaves it has there, RL_NONE: size 1 or absent */
    uint32_t *after;  /* [operand] a unit of the same dim that lies before it, RL_NONE */
    uint32_t tail;    /* a unit of the same dim that lies after it; of a free label: the unit that it is. RL_NONE */
} rl_label;

typedef struct {
    uint32_t label;
    uint8_t **atom;  /* [operand] class atoms of the token there */
    uint8_t *natom;  /* [operand] how many; 0: absent */
} rl_token;

/* Groups of a MatMul or Gemm; other ops number theirs from the outermost. */
enum { RL_G_LEAD, RL_G_M, RL_G_K, RL_G_N, RL_G_TRAIL };
#define RL_MAXGROUP 6
/* Dims of a pool's window that runtimes have kernels for. */
#define RL_MAXWINDOW 3
#define RL_END 255

typedef enum {
    RL_FORM_PLAIN,   /* the op as it is, dims permuted */
    RL_FORM_TURNED,  /* of an Einsum's operand: any order, from which the runtime transposes */
    RL_FORM_MATMUL,  /* MatMul(A, B) */
    RL_FORM_SWAPPED, /* MatMul(B, A): the transposed product, or the weight on the left */
    RL_FORM_PARTS,   /* MatMul with each part of a constant matrix, as a batch */
    RL_FORM_GEMM,    /* Gemm, transposing as the operands lie */
    RL_FORM_RUN,     /* an op that demands an order, in the one of form.run */
    RL_FORM_HEADS,   /* Attention and its kin, with the heads behind the sequence: written as 3-D */
    RL_FORM_FUSED,   /* FusedMatMul, transposing as the operands lie: targets that have it (target.h) */
} rl_formkind;

typedef struct rl_form {
    rl_formkind kind;
    uint8_t *group;                  /* [ntoken] */
    uint8_t *member;                 /* [ntoken] tokens sorted by group */
    uint32_t start[RL_MAXGROUP + 1]; /* group g: member[start[g]] .. member[start[g + 1]] */
    uint8_t (*seq)[RL_MAXGROUP];     /* [operand] its groups, outermost first, then RL_END */
    int64_t cost;
    const rl_target_run *run;               /* RL_FORM_RUN: the target's row */
    const struct rl_form *untaken;   /* of a product that takes a swap of an operand in: the form that it then has (taken.c); else NULL */
} rl_form;

/* What an op is charged beside conversions, in tenths, as the certificate says it (docs/proof.md): FORMS: form k form[k], as it stands `tenths`; AFTER:
 * `tenths` where something else lies after a marked token; LAST: where a marked token lies innermost. Both at operand 0. */
typedef struct {
    rl_cert_rule rule;
    int64_t tenths;
    uint32_t nform; /* without those that take swaps in: these are charged as what they are untaken */
    int64_t *form;  /* [nform] */
    bool *marked;   /* [ntoken] */
} rl_charges;

/* token: the permutations of all groups, group after group, as in form.start */
/* charge: what the target asks for it, in tenths of a conversion (charge.h). */
typedef struct { uint32_t form; const uint8_t *token; int64_t charge; } rl_config;

typedef struct {
    rl_node node;          /* RL_NONODE: a demand from outside */
    rl_cert_kind demand;   /* which, then */
    bool fixed;            /* one configuration only */
    bool picks;            /* its result is made anew in another order (pick.c), and no pin */
    bool link;             /* one of several of a Leave: what crosses the border of its bodies (links.c) */
    bool part;             /* one of several of an Einsum: one of its operands, or the result (legal_einsum.c) */
    uint32_t noperand, nlabel, ntoken, nform;
    rl_operand *operand;
    rl_label *label; /* these three shared by ops that look alike (legal_share.c) */
    rl_token *token;
    rl_form *form;
    const rl_charges *charges; /* NULL: it is charged nothing */
    uint32_t comp, like;   /* like: the op whose candidates it has, as of classes */
    struct { rl_config *p; uint32_t n, cap; } config; /* [0] is the model as it stands */
    struct { uint32_t *p; uint32_t n, cap; } pinorder; /* [config * npin] */
    uint32_t npin;
    uint32_t chosen;
} rl_oplegal;

/* Each operand o that has a pin, the i-th of these:   RL_EACH_PIN(op, o, i) weigh(op->operand[o].cls, rl_pin_order(op, op->chosen, i)); */
#define RL_EACH_PIN(op, o, i) \
    for (uint32_t o = 0, i = 0; o < (op)->noperand; i += (op)->operand[o].pin, o++) \
        if (!(op)->operand[o].pin) { \
        } else

/* The order that a configuration names at a pin, of those of the operand's class. */
static inline uint32_t rl_pin_order(const rl_oplegal *op, uint32_t config, uint32_t pin) { return op->pinorder.p[config * op->npin + pin]; }

/* Is the node's input an operand? Else it is a parameter. */
static inline bool rl_is_operand(const rl_oplegal *op, uint32_t slot) {
    for (uint32_t o = 0; o < op->noperand; o++)
        if (!op->operand[o].out && op->operand[o].slot == slot) return true;
    return false;
}

/* Of a Gather: are its operands a constant table's, x, y, index? Else they are x, then the index if it is computed or of several dims, then y. */
static inline bool rl_is_table(const rl_oplegal *op) { return op->noperand == 3 && op->operand[1].out; }

/* As what the node is treated: a product of scaled integers of which B is no operand as one on rows (legal_products.c). */
static inline rl_class rl_legal_class(const rl_oplegal *op, rl_op kind) {
    return rl_op_scaled(kind) && op->noperand == 2 ? RL_ROWS : rl_op_class(kind);
}

/* legal_products.c: of a product of integers that have two types, the operand that can have the other's, as its bytes and its zero point are constants:
 * 128 more or less of both. RL_NONE: neither. */
uint32_t rl_retyped_operand(const rl_plan *p, const rl_oplegal *op);

typedef struct { int64_t count, bytes; } rl_least; /* conversions, and the bytes that they move */
/* A bound of a component, and what is kept for it; kept: [ncls], of the component's classes only. */
struct rl_lesser { uint32_t comp; rl_least least; const rl_kept *kept; const rl_opspans *spans; };

/* No assignment of the component that has no more conversions than the model as it stands takes less time than `bound`, the best known; price:
 * what a conversion is charged beyond its time to show it, 0: none at all takes less (price.c). */
typedef struct { bool known, swaps; int64_t bound, price; const rl_opspans *spans; } rl_quick;

struct rl_plan {
    rl_graph *g;
    rl_arena *mem;
    rl_arena *draft;         /* what only legal needs: units, and labels that have some */
    struct { rl_unit *p; uint32_t n, cap; } unit;
    struct { rl_undo *p; uint32_t n, cap; } trail; /* what the match under way has changed (atoms.c) */
    rl_member *member;       /* [nval] */
    struct { rl_cls *p; uint32_t n, cap; } cls;
    struct { rl_oplegal *p; uint32_t n, cap; } op;
    uint32_t *opof;          /* [nnode] its rl_oplegal (of a Leave or an Einsum the first), RL_NONE for movement inside a class */
    bool *moving;            /* [nnode] movement inside a class */
    const bool *pick;        /* [nnode] ops whose result may come in any order (pick.c), or NULL */
    const rl_interface *io;  /* inputs and outputs whose order is free, or NULL */
    const rl_target *target; /* which forms there are, and what they cost */
    uint32_t ncomp;
    bool *full;              /* [ncomp] every configuration is a candidate */
    bool *folded;            /* [ncomp] all were folded, and the cheapest choice is among what was left (candidates_fold.c) */
    const struct rl_saved *left; /* what was left */
    const rl_kept *whole;    /* [ncls] all atoms, and what was folded, as the certificate has it */
    rl_least *least;         /* [ncomp] what no choice can beat (bound.c) */
    const rl_opspans **spans; /* [ncomp] those that show it (bound_span.c), or NULL */
    struct { struct rl_lesser *p; uint32_t n, cap; } lesser; /* and what else is known, as the best bound may take too long to check: the last of a component first */
    bool *unproved;          /* [ncomp] and the cheapest known costs more */
    rl_namings lifted;       /* of components that are unproved: the orders to start from when candidates are collected again (lift.c) */
    bool large;              /* many candidates in all: once is enough */
    bool *active;            /* [ncomp] the model as it stands does not cost 0 there */
    bool *swaps;             /* [ncomp] by time products take swaps in there (taken.c), or NULL */
    bool taken;              /* and that is in the configurations, of a restricted plan or a copy */
    bool restricted;         /* made by bound.c: what is charged is the least that any completion is */
    rl_quick *quick;         /* [ncomp] what is known of their times, or NULL (price.c) */
    rl_kept *timed;          /* [ncls] what the bound on times looks at, or NULL */
    uint32_t *twin;          /* [ncomp] of the active ones that look alike the first (twins.c) */
};

/* atoms.c */
rl_status rl_plan_atoms(rl_plan *p);
/* A constant, or a constant that is only dequantized: then the stored bytes are permuted and DequantizeLinear stays. */
bool rl_can_permute_bytes(const rl_graph *g, const rl_valinfo *v);
/* links.c: the ops of a Leave. */
void rl_links(rl_plan *p, rl_node leave);
/* The leaves of a dim's unit. */
uint32_t rl_unit_leaves(rl_plan *p, uint32_t root, uint32_t *out, uint32_t max);
/* Makes two sequences of units agree, splitting where one divides the other. False, and nothing changed, if they cannot. */
bool rl_units_match(rl_plan *p, const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb);
uint32_t rl_unit_new(rl_plan *p, rl_dim size);

/* legal.c, before refinement: labels of a node; links its dims. */
void rl_legal_link(rl_plan *p, rl_node n);
/* legal_pieces.c, after refinement: Split and Concat of unequal pieces whose innermost atoms agree: only what lies outside of them is a
 * block ("common inner part"). */
void rl_legal_inner(rl_plan *p, uint32_t op);
/* legal_einsum.c: an op for each operand of an Einsum, and for the result. False: the node is fixed. */
bool rl_einsum_parts(rl_plan *p, rl_node node);
/* forms.c: operands, with their classes, once atoms are known; tokens and forms of op, in p->mem. */
void rl_legal_operands(rl_plan *p, rl_oplegal *op);
void rl_legal_tokens(rl_plan *p, rl_oplegal *op);
/* legal_share.c: both, for all ops, which share what is alike. */
void rl_legal_share(rl_plan *p);
void rl_plain_form(rl_plan *p, rl_oplegal *op);
/* interface.c: a graph input or output in any order of its dims. */
bool rl_port_is_free(const rl_plan *p, rl_value v, bool output);
void rl_port_op(rl_plan *p, rl_value v);
/* pick.c: tokens of the row that a picker copies, innermost first; 0: there is none. */
uint32_t rl_pick_row(const rl_plan *p, const rl_oplegal *op, uint8_t *token);
/* The op that makes its result anew. */
void rl_pick_result(rl_plan *p, const rl_oplegal *picker);
/* Whether a dim of a graph input has this size, so that it can be looked up. */
bool rl_is_input_size(const rl_graph *g, rl_dim d);
/* Dims that only Reshape groups cannot match: a block reshape. */
bool rl_is_reshaping(const rl_graph *g, const rl_nodeinfo *n);

/* The atoms of one operand, outermost first, under a configuration. Returns how many. */
uint32_t rl_config_order(const rl_oplegal *op, const rl_config *c, uint32_t operand, uint8_t *out);
/* candidates.c: the configurations of every op, config 0 first: the model as it stands.  extra: [ncls] what components must have in
 * common, beside their looks, to be twins; by_time: where forms are charged that the model has, others are candidates, too. */
void rl_candidates(rl_plan *p, const int64_t *extra, bool by_time);
/* The candidates of the components chosen once more: every configuration, where these are not too many, or what p->lifted leads to.  False
 * where there is nothing new. */
bool rl_candidates_widen(rl_plan *p, const bool *chosen);

/* candidates_saved.c: candidates put aside, in mem. */
typedef struct rl_saved rl_saved;
const rl_saved *rl_candidates_save(const rl_plan *p, rl_arena *mem);
/* Those of some components (NULL: all) as they were. */
void rl_candidates_restore(rl_plan *p, const rl_saved *x, const bool *comp);
/* Those of the folded components as they were, and with them the configurations that cfg names of those that go; cfg names the same ones then.  optimal:
 * none is cheaper than cfg; else p->folded is none any more. */
void rl_candidates_unfold(rl_plan *p, const rl_saved *x, bool optimal, uint32_t *cfg);
/* candidates_fold.c: all configurations that a fold leaves, in components where these are few.  plain: charges do not count.  Sets p->folded, and returns
 * what was there before, in mem; NULL, and nothing done, where no component is small enough. */
const rl_saved *rl_candidates_fold(rl_plan *p, bool plain, rl_arena *mem);
/* All of them, of a plan whose atoms may have been restricted, and that has none yet.  False where one op has too many. */
bool rl_every_config(rl_plan *p, rl_arena *tmp);
/* Has the op a choice at all? */
bool rl_may_move(const rl_oplegal *op);
void rl_logical_configs(rl_plan *p); /* only configuration 0 of each op: the model as it stands */
/* demands.c: the ops that graph inputs and outputs, captured values and plain reads are. */
void rl_outside_demands(rl_plan *p);
/* assign.c: demands from outside, and the model as it stands; after legal, in the place of assign. */
void rl_plan_stand(rl_plan *p);
/* ns that the conversions and charged forms of the model as it stands take, less those for `saved` bytes that it need not move. The plan is of no use
 * after it. */
int64_t rl_plan_time(rl_plan *p, int64_t saved);
/* The place of an order in its class, added if new. */
uint32_t rl_order_find(rl_plan *p, uint32_t cls, const uint8_t *order); /* its place, RL_NONE if it is not known */
uint32_t rl_order_intern(rl_plan *p, uint32_t cls, const uint8_t *order); /* level 0 when new */

/* bound.c: [ncls + 1] how many orders the classes before each have; so start[c] + order numbers the orders of all. */
uint32_t *rl_order_starts(const rl_plan *p, rl_arena *mem);
/* price.c: the configurations that were chosen. */
uint32_t *rl_plan_chosen(const rl_plan *p, rl_arena *mem);
/* What each component costs under some configurations. */
void rl_plan_costs(const rl_plan *p, const uint32_t *cfg, rl_least *cost, rl_arena *tmp);
/* What no choice can beat.  cfg: the cheapest known; optimal: over the candidates, in exact costs; lift: look for better candidates, too. */
rl_status rl_bound(rl_plan *p, const uint32_t *cfg, bool optimal, bool bytes_first, bool lift, double limit);
/* The same again of what is unproved, now that a cheaper choice may be known; finer: with more atoms. */
rl_status rl_bound_again(rl_plan *p, const uint32_t *cfg, bool optimal, bool bytes_first, bool finer, double limit);

/* price.c: p->quick, where the configurations are not those of the fewest conversions; exact: of all, as high as it can be had.  found: [nop] cfg, and of
 * components where others were met that take less time, and have no more conversions than the model as it stands, the quickest of these. */
rl_status rl_bound_quick(rl_plan *p, const uint32_t *cfg, bool exact, double limit, uint32_t *found);
/* Whether cfg has components that neither p->least nor p->quick (exact: p->quick) shows to be good, and which: [ncomp]. */
bool rl_any_slow(const rl_plan *p, const uint32_t *cfg, bool exact, bool *slow, rl_arena *tmp);

#define RL_MAXATOM 24
#endif
