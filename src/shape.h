/* Types and shapes: what is known of every value before anything runs.
 *
 * Fills dtype, rank and dim of every value it can, with symbolic dims (dim.h), and folds the shape arithmetic that exporters
 * emit: a small integer tensor whose contents are known as numbers or symbolic sizes gets them in rl_valinfo.elem
 * (Shape of f32[N,3,H,W] has elem = {N,3,H,W}), and a value computed from constants alone, small enough, gets data.
 *   Reshape to [0,-1] of f32[N,3,H,W]  ->  f32[N,3*H*W]
 * Each unknown dim is a fresh symbol; an unknown rank stays RL_NORANK; both are never errors.  Declared types (value_info,
 * graph outputs) fill what inference cannot, all of them or, where one of them contradicts it, none.  Elements of a contradictory model: RL_EMODEL naming node and tensor. */
#ifndef RL_SHAPE_H
#define RL_SHAPE_H
#include "ir.h"

typedef struct { rl_dtype dtype; uint32_t rank; const rl_dim *dim; } rl_type; /* RL_UNDEF, RL_NORANK: not known */

/* Who knows what calls of functions make. */
typedef struct rl_shape_caller rl_shape_caller;
struct rl_shape_caller {
    /* The types of the outputs of n, a node of g or of a body in it; NULL: n is no call, or nothing is known. */
    const rl_type *(*made)(rl_shape_caller *c, const rl_graph *g, const rl_nodeinfo *n);
};

/* Infers everything in g and its bodies, in g->order. */
rl_status rl_shape_infer(rl_graph *g);
/* The same where calls make what the caller says. */
rl_status rl_shape_infer_calls(rl_graph *g, rl_shape_caller *c);
/* Element i of a small tensor, from its data (i32, i64) or elem; false when nothing is known of it.
 *   elem {N,3} of Shape(x):  i=1 -> {.known = true, .num = 3, .den = 1};  i=0 -> {.known = false, .sym = N, .den = 1} */
bool rl_shape_elem(const rl_graph *g, rl_value v, uint32_t i, rl_elem *e);
/* Infers the outputs of one node from its inputs (for nodes that passes make). */
rl_status rl_shape_node(rl_graph *g, rl_node n);

#endif
