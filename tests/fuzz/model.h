/* Models from bytes: model_make turns any bytes into a valid ONNX model of 1 to 60 nodes over the whole op table, every opset that
 * the table holds for (7 to 28), with mixed types, symbolic sizes, bodies that capture, quantized pairs and data in other files.
 *
 *   bytes 0 .. 7      of the whole: opset, target, objective, symbolic sizes, constants as nodes or foreign ops, IR version,
 *                     data outside, inputs
 *   8 more each       a node: two bytes say which op, six what it takes and how; what needs more goes on with numbers that
 *                     these eight give, so that a change of one record changes one node, and what reads it
 *
 * The model ends where the bytes do: short inputs are small models.  Types and sizes of what a node may read come from the shape
 * rules (src/shape.h), which must accept every node that a recipe makes.
 *
 * A recipe makes one node, or a few, or none where nothing fits.  For an op with an attribute `by` and an operand of the same type:
 *
 *   void model_op_shift(model *m, const model_row *r) {
 *       rl_value x = model_take(m, r->types, 0, 4, 0);       a value of such a type with 0 to 4 dims; made where there is none
 *       if (!rl_has(x)) return;
 *       model_int(m, "by", model_pick(m, 3));                0, 1 or 2
 *       model_add(m, r, (rl_value[]){x, model_like(m, x)}, 2, 1);
 *   }
 *
 * and its row in model_ops.def: GEN(Shift, 13, 28, F | I, shift, 0): from opset 13 on, floats and signed integers.  Of the rows of
 * one op the last that holds for the opset counts.  A new op fails the test of the table until it has a row. */
#ifndef FUZZ_MODEL_H
#define FUZZ_MODEL_H
#include "../../src/ir.h"
#include "fuzz.h"

enum { MODEL_HEADER = 8, MODEL_RECORD = 8, MODEL_NODES = 60, MODEL_RANK = 6, MODEL_ATTRS = 12,
       MODEL_LARGEST = 2048 /* elements of a tensor */, MODEL_GUESS = 6 /* a symbol, at most */ };

typedef struct model {
    rl_ctx *ctx;
    rl_graph *g;                   /* where nodes go: the main graph, or the body that is being made */
    const uint8_t *p;              /* the bytes; n of them, those from `at` on not yet used */
    size_t n, at;
    uint8_t record[MODEL_RECORD];  /* of the node at work; used: so many bytes */
    uint32_t used;
    uint64_t state;                /* what follows them */
    uint32_t opset, nname, nnode, ninput, depth;
    bool symbolic, as_nodes, foreign; /* sizes may be symbols; constants are nodes; ops without a kernel here */
    rl_attr attr[MODEL_ATTRS];     /* of the next node */
    uint32_t nattr;
    bool constant;                 /* see model_choices */
    rl_node last;                  /* the node added last; RL_NONODE where it was taken back */
} model;

typedef struct model_row model_row;
typedef void model_recipe(model *m, const model_row *r);
struct model_row {
    rl_op op;
    uint32_t since, until, types; /* opsets; bits of rl_dtype */
    model_recipe *make;
    int arg;
};

/* The options of the whole, which the first bytes say. */
typedef struct {
    const char *target, *objective;
    bool outside;  /* write its constants to another file */
    bool constant; /* an If has a constant condition: a rewrite may lay more constants bare */
    uint64_t seed; /* of the inputs */
} model_choices;

/* The model of these bytes; never NULL. It lives as long as ctx. Jumps where memory runs out (base.h). */
rl_graph *model_make(rl_ctx *ctx, const uint8_t *p, size_t n, model_choices *c);
extern const model_row model_rows[];
extern const uint32_t model_nrow;
/* The size that a symbol of such a model stands for when it runs. */
int64_t model_size_of(rl_str symbol);

/* ---- choices ---- */
uint32_t model_pick(model *m, uint32_t n);         /* 0 .. n-1 */
uint64_t model_number(model *m);                   /* one of the record's, whatever that has left */
static inline bool model_flip(model *m) { return model_pick(m, 2); }
bool model_step(model *m);                         /* makes the next node; false: there are no more bytes */
void model_body_nodes(model *m, uint32_t n);       /* n of them, for a body; the record at work stays */

/* ---- values ---- */
enum { MODEL_SIZED = 1 /* every dim is a number */, MODEL_MADE = 2 /* by a node of this graph */ };
static inline rl_valinfo *model_val(const model *m, rl_value v) { return rl_val(m->g, v); }
bool model_fits(const model *m, rl_value v, uint32_t types, uint32_t least, uint32_t most, int flags);
/* RL_NOVALUE: there is none, and none can be made here (a constant string in an old body). */
rl_value model_take(model *m, uint32_t types, uint32_t least, uint32_t most, int flags);
/* An input or a constant of these dims. */
rl_value model_source(model *m, rl_dtype t, uint32_t rank, const rl_dim *dim);
/* Something that has x's type and broadcasts with x to x's shape: x, another value, a constant. */
rl_value model_like(model *m, rl_value x);
/* Another value of x's type and dims, or x. */
rl_value model_same(model *m, rl_value x);
rl_value model_const(model *m, rl_dtype t, uint32_t rank, const int64_t *dim, int lo, int hi); /* whole numbers lo .. hi */
rl_value model_filled(model *m, rl_dtype t, uint32_t rank, const int64_t *dim, const double *x); /* these numbers */
rl_value model_ints(model *m, uint32_t n, const int64_t *x); /* i64[n] */
rl_value model_scalar(model *m, rl_dtype t, double x);
/* A constant of this type that broadcasts with x to x's shape: trailing dims of x, or 1. */
rl_value model_part(model *m, rl_dtype t, rl_value x, int lo, int hi);
rl_dtype model_dtype(model *m, uint32_t types);    /* one of them */
uint32_t model_axis(model *m, rl_value x);         /* of its dims, which are at least one */
/* A number for it, now and then counted from the end. */
int64_t model_signed(model *m, uint32_t axis, uint32_t rank);
/* Is dim i of x a number?  All from dim i on? */
bool model_known(const model *m, rl_value x, uint32_t i);
bool model_known_from(const model *m, rl_value x, uint32_t i);
static inline rl_dim model_dim(const model *m, rl_value v, uint32_t i) { return rl_val(m->g, v)->dim[i]; }

/* ---- nodes ---- */
rl_str model_name(model *m);                       /* a new one */
void model_int(model *m, const char *name, int64_t x);
void model_float(model *m, const char *name, double x);
void model_string(model *m, const char *name, const char *s);
void model_strings(model *m, const char *name, uint32_t n, const char *const *s);
void model_list(model *m, const char *name, uint32_t n, const int64_t *x);
void model_body(model *m, const char *name, rl_graph *body);
/* Output 0, or RL_NOVALUE where the node made something too large and was taken back. Inputs left out at the end are none. */
rl_value model_add(model *m, const model_row *r, const rl_value *in, uint32_t nin, uint32_t nout);
rl_value model_add_op(model *m, rl_op op, const rl_value *in, uint32_t nin, uint32_t nout);
/* Taken back also where the shape rules refuse it: for ops of other domains, whose rules are not ONNX's. */
rl_value model_try(model *m, const model_row *r, const rl_value *in, uint32_t nin, uint32_t nout);

#define GEN(op, since, until, types, recipe, arg) model_recipe model_op_##recipe;
#include "model_ops.def"
#undef GEN

#endif
