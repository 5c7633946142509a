/* What the files of the evaluator share (eval.h); nobody else includes this.
 *
 * eval.c has the table of ops and goes over a node's outputs; eval_tensor.c opens, makes, loads and walks over tensors; eval_move.c has
 * the ops that only move data, eval_compute.c those that compute. */
#ifndef RL_EVAL_INTERNAL_H
#define RL_EVAL_INTERNAL_H
#include "eval.h"
#include "ops.h"

#define MAXRANK 12
#define MAXLOAD (1 << 24) /* elements that one node may work on */
#define WIDE (2 * MAXRANK) /* dims of a walk: Tile has two for each */

typedef struct {
    bool given;
    rl_dtype dtype;
    uint32_t rank;
    int64_t dim[MAXRANK], n; /* n: elements */
    size_t size;             /* bytes of one */
    char *raw;
    double *f;               /* after rl_ev_load, for floats */
    int64_t *i;              /* ... for the rest */
} tensor;

typedef struct {
    rl_graph *g;
    const rl_nodeinfo *n;
    rl_arena tmp;
    rl_eval_limit *limit;
    tensor *in;
    size_t nbyte;   /* of the inputs */
    int64_t loaded; /* elements that are numbers by now */
} evaluator;

/* Visits a box of elements in row-major order, keeping up to three offsets. */
typedef struct {
    uint32_t rank;
    int64_t dim[WIDE], at[WIDE], step[3][WIDE], off[3];
} walk;

typedef enum { ABS, NEG, SIGN, SQRT, EXP, LOG, ERF, TANH, SIGMOID, RELU, RECIPROCAL, SIN, COS, FLOOR, CEIL, ROUND, GELU, GELU_TANH, NOT } unary;
typedef enum { ADD, SUB, MUL, DIV, POW, MOD, MIN, MAX, EQ, LT, LE, GT, GE, AND, OR, XOR } binary;
typedef enum { SUM, MEAN, MOST, LEAST, PROD } reduction;

/* ---- eval_tensor.c ---- */

/* Types whose elements are numbers to compute with. */
bool rl_ev_computes(rl_dtype t);
/* Takes so many steps off the limit; false when there are no more. */
bool rl_ev_spend(evaluator *e, uint64_t work);
/* The number of elements; false where it is too large, also where an empty tensor's other dims overflow, so that no stride does. */
bool rl_ev_count(uint32_t rank, const int64_t *dim, int64_t *n);
/* All inputs, as bytes. */
bool rl_ev_open_inputs(evaluator *e);
/* Input i, or NULL where it is left out. */
tensor *rl_ev_input(const evaluator *e, uint32_t i);
/* Room for output `port`, zeroed, as bytes and as numbers; false when it must not be. */
bool rl_ev_make(evaluator *e, uint32_t port, tensor *out, rl_dtype t, uint32_t rank, const int64_t *dim);
/* The same as bytes alone: for what only moves elements. */
bool rl_ev_make_raw(evaluator *e, uint32_t port, tensor *out, rl_dtype t, uint32_t rank, const int64_t *dim);
/* Makes the elements numbers. */
bool rl_ev_load(evaluator *e, tensor *t);
/* The same of input i; false also where it is of another type. */
bool rl_ev_load_as(evaluator *e, uint32_t i, rl_dtype t);
/* The numbers as bytes of the tensor's type. Always true. */
bool rl_ev_store(tensor *t);
/* Rounds to the precision of type t. */
double rl_ev_rounded(rl_dtype t, double x);
/* To the next element. */
void rl_ev_advance(walk *w);
/* One more dim, inside of those that are there. */
void rl_ev_add_dim(walk *w, int64_t dim, int64_t step0, int64_t step1);
/* In elements, of a dense tensor. */
int64_t rl_ev_stride(const tensor *t, uint32_t axis);
/* to[off 0] = from[off 1] over the box. */
void rl_ev_copy(const walk *w, char *to, const char *from, size_t size);
/* Operand j of the walk is t, broadcast. */
void rl_ev_spread(walk *w, int j, const tensor *t);
/* Widens (dim, rank) so that t broadcasts to it; false when it cannot. */
bool rl_ev_broadcast(uint32_t *rank, int64_t *dim, uint32_t trank, const int64_t *tdim);
/* Over all of a tensor's places; the steps are 0. */
walk rl_ev_walk_over(const tensor *out);
/* A negative axis counts from the end; false when there is no such axis. */
bool rl_ev_axis_in(int64_t axis, uint32_t rank, uint32_t *a);
/* The integers of the attribute of this name, or of input `slot`; *p NULL when neither is there. */
bool rl_ev_ints(evaluator *e, const char *name, uint32_t slot, const int64_t **p, uint32_t *n);
/* An input as a list: a shape. */
bool rl_ev_shape_input(evaluator *e, uint32_t slot, uint32_t *rank, const int64_t **dim);
/* An input of one integer; dflt when it is left out. */
bool rl_ev_scalar(evaluator *e, uint32_t slot, int64_t dflt, int64_t *x);

/* ---- the ops: output `port` of the node, false where it cannot be computed ---- */

typedef bool eval_fn(evaluator *e, int arg, uint32_t port, tensor *out);
eval_fn rl_ev_view, rl_ev_transpose, rl_ev_expand, rl_ev_concat, rl_ev_slice, rl_ev_split, rl_ev_gather, rl_ev_gather_nd, rl_ev_tile,
    rl_ev_pad, rl_ev_trilu, rl_ev_fill, rl_ev_where, rl_ev_scatter_nd, rl_ev_eye, rl_ev_cast, rl_ev_unary, rl_ev_binary,
    rl_ev_clip, rl_ev_range, rl_ev_cumsum, rl_ev_reduce, rl_ev_softmax, rl_ev_layer_norm, rl_ev_matmul, rl_ev_gemm;

#endif
