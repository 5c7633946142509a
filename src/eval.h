/* Computes nodes whose inputs are all constants.
 *
 *   rl_eval_limit limit = RL_EVAL_LIMIT;
 *   for each node n in order: if (rl_eval_node(g, n, &limit)) ... the data of its outputs is set
 *
 * Nodes stay in the graph; who wants the result in the file makes it an initializer.  Reshape and its kin share the bytes of
 * what they view.  Results are those of IEEE arithmetic in the type of the tensor, except that sums (MatMul, ReduceSum,
 * Softmax, LayerNormalization) are carried in double and rounded once; so a runtime's may differ in the last bits. */
#ifndef RL_EVAL_H
#define RL_EVAL_H
#include "ir.h"

typedef struct {
    size_t one;    /* bytes of one result */
    size_t grown;  /* ... of one that is larger than its node's inputs together */
    size_t all;    /* bytes of all results; what is used is taken off */
    uint64_t work; /* likewise steps: elements touched, multiplications of products */
    bool spent;    /* a node was refused as too little of the two was left: with more of them it may have a result */
} rl_eval_limit;
#define RL_EVAL_LIMIT {.one = 16u << 20, .grown = 1u << 20, .all = 64u << 20, .work = 200000000}

/* The value's bytes, if nobody can change them: from IR version 4 on a caller may give an input that has a default. */
const rl_const *rl_eval_constant(const rl_graph *g, rl_value v);
/* Sets the data of all outputs of a node of the main graph, unless they have it already; false (and nothing is set) when an input is not constant, the op
 * or a type is not supported, an output's shape was not inferred, or a limit is met. */
bool rl_eval_node(rl_graph *g, rl_node n, rl_eval_limit *limit);

#endif
