/* What the files lower*.c share: tensors that exist in the output, by (class, order), and how to get one more.
 *
 * A phys is a tensor of the output model: the atoms of its class in some order, grouped into dims.  counts {1,0,2} is a dim of
 * one atom, a dim of size 1, a dim of two atoms. */
#ifndef RL_LOWER_H
#define RL_LOWER_H
#include "plan.h"

#define RL_MAXDIMS 32

typedef struct {
    uint32_t ndim;
    uint8_t count[RL_MAXDIMS];
} rl_dims;

typedef struct {
    rl_value v;
    uint32_t cls, order;
    uint32_t region; /* of a flat graph: where it can be read */
    uint32_t next;   /* of the same class and order */
    uint32_t other;  /* of the first of an order: the first of the class's next order */
    const rl_dims *dims; /* in rl_lower.dims */
} rl_phys;

/* A constant that was written, permuted. */
typedef struct { const rl_const *src; const uint8_t *order; uint32_t natom; rl_value v; } rl_stored;

/* A 1-D tensor of sizes that was written; key: [2 * how many] is it a symbol?, and the number or size. */
typedef struct { rl_value v; uint32_t region, nkey; const int64_t *key; } rl_written_sizes;

/* The form of each operand of a link, and the dim of the one label that not all of them have. */
typedef struct { rl_dims *form; uint32_t axis; } rl_linkform;

typedef struct {
    rl_plan *p;
    rl_graph *g;
    rl_arena *tmp, now;          /* now: of the node being written */
    struct { rl_phys *p; uint32_t n, cap; } phys;
    struct { const rl_dims **p; uint32_t n, cap; } dims; /* each once: there are few */
    rl_hash bydims;
    struct { rl_written_sizes *p; uint32_t n, cap; } sizes;
    rl_hash bysizes;
    uint32_t *head;              /* [class] its first phys; from there by `other`, in the sequence of their making */
    bool *defined;               /* [value of the input] exists in the output under its own name */
    rl_node *def;                /* [value of the input] its node in the input */
    uint32_t *home;              /* [value of the input] its region in the input */
    struct { rl_stored *p; uint32_t n, cap; } kept;
    rl_hash stored;              /* of kept, by what was permuted how */
    rl_hash computed;            /* values whose constants nodes computed, each content once */
    struct { rl_node *p; uint32_t n, cap; } emitted;
    uint32_t origin;             /* of the node being written: says in which region new nodes stand */
    rl_hash wanted;              /* (class, order) -> the innermost region that holds all ops that ask for it */
    rl_linkform *link;           /* [op] of links, once chosen */
    uint32_t nval;               /* values of the input */
    bool cheaper;   /* an Einsum was written in a form that is charged less than its own */
    uint32_t depth;
    bool failed;                 /* a form that cannot be written: the model stays as it is */
} rl_lower;

/* Of wanted. */
static inline uint64_t rl_lower_key(uint32_t cls, uint32_t order) { return ((uint64_t)cls << 24 | order) + 1; }
/* There without a node; other values that no node makes were left by an earlier rewrite. */
static inline bool rl_stands_alone(const rl_valinfo *v) { return v->is_input || v->is_init || v->is_outer; }

/* The op's order of an operand, in the configuration chosen. */
uint32_t rl_lower_order(rl_lower *l, const rl_oplegal *op, uint32_t operand);
/* The tensor of the input model itself or one equal to it in form; made if need be. */
rl_value rl_lower_member(rl_lower *l, rl_value t);
/* The same, if it needs nothing new: RL_NOVALUE if it does. */
rl_value rl_lower_present(rl_lower *l, rl_value t);
/* The order in which the tensor's class has the tensor of the input. */
uint32_t rl_lower_member_order(rl_lower *l, rl_value t);
/* One with the same elements, for those who only ask for its type or how many there are. */
rl_value rl_lower_any_form(rl_lower *l, rl_value t);
/* The tensor under its own name. */
rl_value rl_lower_exactly(rl_lower *l, rl_value t);
/* A tensor of this class, order and dims. */
rl_value rl_lower_want(rl_lower *l, uint32_t cls, uint32_t order, const rl_dims *d);
/* Notes that a tensor of the input exists as it was. */
void rl_lower_have_member(rl_lower *l, rl_value t);
/* Notes that v now exists. */
void rl_lower_have(rl_lower *l, rl_value v, uint32_t cls, uint32_t order, const rl_dims *d);
/* First phys of (class, order) that can be read here, RL_NONE if none; converts when `make`. */
uint32_t rl_lower_find(rl_lower *l, uint32_t cls, uint32_t order, bool make);
/* Of what a picker (pick.c) has made: only the order that it is made anew in is there from now on. */
void rl_lower_picked(rl_lower *l, const rl_oplegal *picker);
/* The next one; RL_NONE after the last. */
uint32_t rl_lower_next(const rl_lower *l, uint32_t phys);
/* A value to hold what an op makes in this order and form: the tensor of the input that looks so, if free, else a new one. */
rl_value rl_lower_result(rl_lower *l, uint32_t cls, uint32_t order, const rl_dims *d, rl_value like);
/* Adds a node at the place of the node being written; or gives one just added that place. */
rl_node rl_lower_place(rl_lower *l, rl_node n);
rl_node rl_lower_node(rl_lower *l, rl_op op, const char *name, uint32_t nin, const rl_value *in, uint32_t nout, const rl_value *out);
rl_value rl_lower_ints(rl_lower *l, const char *stem, uint32_t n, const int64_t *x);
/* The sizes as a 1-D int64 tensor; false when a symbol stands nowhere. */
bool rl_lower_sizes(rl_lower *l, const rl_dim *d, uint32_t n, rl_value *out);
/* x with sizes that may be symbolic, out: a Reshape, or where it wants sizes that are known only in a run, and the one shape is the other with dims of 1, a
 * Squeeze or Unsqueeze; l->failed when it cannot be written. */
void rl_lower_reshape(rl_lower *l, const char *name, rl_value x, const rl_dim *to, uint32_t n, rl_value out);
/* The atoms of a class, outermost first, in this order. */
static inline const uint8_t *rl_lower_atoms(const rl_lower *l, uint32_t cls, uint32_t order) { return l->p->cls.p[cls].order.p[order].p; }
/* A new value, of the element type of another and named after it. */
rl_value rl_lower_new(rl_lower *l, rl_value like, uint32_t cls, uint32_t order, const rl_dims *d);
/* A phys in other dims: a Reshape; into RL_NOVALUE: a new value. */
rl_value rl_lower_regroup(rl_lower *l, uint32_t phys, const rl_dims *d, rl_value into);
/* lower_constants.c: a constant class in this order and form, named after `like`. */
rl_value rl_lower_constant(rl_lower *l, rl_value like, uint32_t cls, uint32_t order, const rl_dims *d);
void rl_lower_shape(const rl_lower *l, uint32_t cls, uint32_t order, const rl_dims *d, rl_dim *out);
bool rl_dims_equal(const rl_dims *a, const rl_dims *b);
void rl_member_dims(const rl_member *m, uint32_t rank, rl_dims *d);

/* lower_ops.c: writes a node whose configuration is not the model's own. */
void rl_lower_op(rl_lower *l, rl_oplegal *op);
/* An elementwise op whose inputs are all there in one form, though not in the model's: rl_lower_op will add no Reshape.
 *   x[1,4,1,1] = Conv(..)  t[1,1,1,4] = Transpose(x)  y = Sigmoid(t)   ->   y[1,4,1,1] = Sigmoid(x) */
bool rl_lower_adopts(rl_lower *l, rl_oplegal *op);
/* The form in which a link's tensors need as few Reshapes as can be. False: there is none. */
bool rl_lower_form(rl_lower *l, rl_oplegal *op, rl_linkform *out);
/* lower_links.c: the two ends of an If, Loop or Scan. */
void rl_lower_end(rl_lower *l, rl_node node);
/* The origin at which an operand of a link is read or made. */
uint32_t rl_lower_link_origin(const rl_lower *l, const rl_oplegal *op, uint32_t operand);
/* lower_run.c: in an order of the target's, under the name that its row gives. */
void rl_lower_run(rl_lower *l, rl_oplegal *op);
/* One dim for each group of the operand's tokens, in the sequence of the chosen form; one without atoms has size 1. The order that it is. */
uint32_t rl_lower_groups(rl_lower *l, const rl_oplegal *op, uint32_t operand, rl_dims *d);
/* lower_heads.c: Attention of 3-D operands. */
void rl_lower_heads(rl_lower *l, rl_oplegal *op);
/* lower_einsum.c; part: the first of the node's */
void rl_lower_einsum(rl_lower *l, const rl_oplegal *part);
/* lower_matmul.c */
void rl_lower_matmul(rl_lower *l, rl_oplegal *op);
#endif
