/* What shape.c, shape_fold.c and the rules (shape_rules.h) share; nobody else includes this.
 *
 * shape.c walks the nodes.  For each it calls the op's rule, by the table in shape_ops.c, which reads the types of the inputs and
 * gives those of the outputs by rl_shape_set; then shape_fold.c computes the outputs' contents where they are small.
 * A rule writes UNKNOWN for a dim it cannot tell; rl_shape_set puts the declared size or a fresh symbol in its place,
 * so no value ever holds UNKNOWN.  Every rule must work when the inputs' types are unknown. */
#ifndef RL_SHAPE_INTERNAL_H
#define RL_SHAPE_INTERNAL_H
#include "ops.h"
#include "shape.h"

#define UNKNOWN INT64_MIN /* of rl_dim, within rules only */

enum {
    MAXCELL = 1024,   /* elements of a tensor whose contents rules and folding look at */
    MAXELEM = 64,     /* elements of a tensor that may hold symbols */
    MAXBYTE = 4096,   /* of a folded constant */
};

static inline rl_type rl_type_of(const rl_valinfo *x) {
    return x ? (rl_type){x->dtype, x->rank, x->dim} : (rl_type){RL_UNDEF, RL_NORANK, NULL};
}

/* The node at hand. */
typedef struct rl_shaper {
    rl_graph *g;
    rl_ctx *ctx;
    rl_arena *tmp;          /* emptied between nodes */
    rl_arena *keep;         /* emptied after the graph */
    const struct rl_shaper *outer; /* of a body: that of the graph around it */
    const rl_nodeinfo *n;
    rl_type *item;          /* by value: the type of a sequence's or optional's elements; NULL until one is made */
    const rl_type *entering; /* the same of the inputs of the body that is inferred next; NULL: of none */
    rl_type *leaving;       /* and of the outputs of the one that was inferred last, in tmp */
    rl_dtype dtype;         /* from the op's row: the output's type, RL_UNDEF for that of input 0 */
    uint32_t depth;         /* how many bodies deep */
    rl_shape_caller *caller; /* or NULL */
    const rl_hash *given;   /* by name: unknown sizes of the model's inputs */
    bool lenient;           /* a contradiction is no error, as it is none in a body, which may never run: a declared size, which may
                               be wrong, has stood in for one that no rule could tell */
} rl_shaper;

typedef rl_status rl_rule(rl_shaper *s);
typedef struct { rl_rule *rule; rl_dtype dtype; } rl_rulerow;
extern const rl_rulerow rl_shape_rules[RL_NOP];

/* One element of a tensor that folding works on. */
typedef struct {
    enum { CELL_NONE, CELL_INT, CELL_SYM, CELL_FLOAT, CELL_BITS } kind;
    int64_t num; /* INT: the number; SYM: the divisor (> 0); BITS: the element's bytes, for types nothing is computed in */
    rl_dim sym;  /* SYM: the dividend */
    double f;    /* FLOAT */
} rl_cell;
typedef struct { rl_dtype dtype; uint32_t rank; const int64_t *dim; uint32_t n; rl_cell *cell; } rl_cells;

/* What is known of elements of which nothing is, and the rank of those of a sequence that has none. */
#define RL_NOITEM ((rl_type){RL_UNDEF, RL_NORANK, NULL})
#define RL_EMPTY_SEQUENCE (RL_NORANK - 1)

/* ---- shape.c ---- */

rl_status rl_shape_fail(const rl_shaper *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Gives output `port` its type: dtype RL_UNDEF, rank RL_NORANK and dims UNKNOWN leave what is declared. */
rl_status rl_shape_set(rl_shaper *s, uint32_t port, rl_dtype dtype, uint32_t rank, const rl_dim *dim);
/* The type of the elements of a sequence or optional; RL_NOITEM where nothing is known, or it is a tensor. */
rl_type rl_shape_item(const rl_shaper *s, rl_value v);
void rl_shape_set_item(rl_shaper *s, rl_value v, rl_type t);
/* What the elements of two sequences have in common, with dims in tmp; those of an empty one are of any type. */
rl_type rl_shape_common_item(const rl_shaper *s, rl_type a, rl_type b);
/* a op b of numbers and symbols; UNKNOWN where an operand is, or where the result overflows or is negative. */
rl_dim rl_shape_add(const rl_shaper *s, rl_dim a, rl_dim b);
rl_dim rl_shape_sub(const rl_shaper *s, rl_dim a, rl_dim b);
rl_dim rl_shape_mul(const rl_shaper *s, rl_dim a, rl_dim b);
rl_dim rl_shape_prod(const rl_shaper *s, const rl_dim *dim, uint32_t n);
rl_dim rl_shape_floordiv(const rl_shaper *s, rl_dim a, int64_t k);
rl_dim rl_shape_ceildiv(const rl_shaper *s, rl_dim a, int64_t k);
rl_dim rl_shape_offset(const rl_shaper *s, rl_dim a, int64_t c); /* a + c, c of either sign */
/* The symbol "?name(a|b)": an unknown size, but the same wherever name, a and b are. UNKNOWN when that gets too long. */
rl_dim rl_shape_derived(const rl_shaper *s, const char *name, rl_dim a, rl_dim b);
/* The smaller one. Sizes named by symbols are taken to be at least 1. */
rl_dim rl_shape_min(const rl_shaper *s, rl_dim a, rl_dim b);
int64_t rl_shape_least(const rl_shaper *s, rl_dim d); /* a number that d is not less than */
/* The size that sizes a and b broadcast to; false when they cannot. */
bool rl_shape_broadcast(const rl_shaper *s, rl_dim a, rl_dim b, rl_dim *d);
/* The better known of two sizes that must be equal; false when they are not. */
bool rl_shape_unify(const rl_shaper *s, rl_dim a, rl_dim b, rl_dim *d);

bool rl_shape_open(const rl_shaper *s, rl_dim d); /* is a size part of d that no rule could tell, nor an input has? */
/* Infers a body, whose outer values have what is known of them outside. */
rl_status rl_shape_body(rl_shaper *s, rl_graph *body);
/* Gives a value of graph g its type, as rl_shape_set does. */
void rl_shape_set_type(rl_shaper *s, rl_graph *g, rl_value v, rl_dtype dtype, uint32_t rank, const rl_dim *dim);

/* ---- shape_cell.c, shape_fold.c ---- */

/* f = num / den exactly, with a small den; false when it is no such number. */
bool rl_shape_ratio(double f, int64_t *num, int64_t *den);
/* The contents of a value, in s->tmp; false when it is not small, or nothing of it is known. */
bool rl_shape_load(const rl_shaper *s, const rl_valinfo *v, rl_cells *t);
/* Gives output `port` these contents, as far as they are known; t's type must be the output's. */
void rl_shape_store(rl_shaper *s, uint32_t port, rl_cells *t);
/* Output `port` is x, a constant of more than MAXELEM elements that at most gets another shape: the same bytes. */
bool rl_shape_share(const rl_shaper *s, uint32_t port, const rl_valinfo *x);
/* The contents of the node's outputs, where its inputs tell. */
void rl_shape_fold(rl_shaper *s, rl_node n); /* n: s->n */

/* ---- short forms ---- */

/* The input's value; NULL when it is left out. */
static inline const rl_valinfo *input(const rl_shaper *s, uint32_t i) {
    rl_value v = rl_in(s->n, i);
    return rl_has(v) ? rl_val(s->g, v) : NULL;
}

static inline bool ranked(const rl_valinfo *v) {
    return v && v->rank != RL_NORANK;
}

static inline rl_dtype dtype_of(const rl_valinfo *v) {
    return v ? v->dtype : RL_UNDEF;
}

static inline bool load(const rl_shaper *s, uint32_t i, rl_cells *t) {
    const rl_valinfo *v = input(s, i);
    return v && rl_shape_load(s, v, t);
}

/* Can the expression be a size?  -N cannot; 512-N and N-1 are taken to be. */
static inline bool is_size(const rl_shaper *s, rl_dim d) {
    return rl_dim_guess(s->ctx, d, 1000) > 0 || rl_dim_guess(s->ctx, d, 1) > 0;
}

/* A cell as a size: UNKNOWN when it is none. */
static inline rl_dim size_of(const rl_shaper *s, rl_cell c) {
    if (c.kind == CELL_INT && c.num >= 0) return c.num;
    return c.kind == CELL_SYM && c.num == 1 && is_size(s, c.sym) ? c.sym : UNKNOWN;
}

#endif
