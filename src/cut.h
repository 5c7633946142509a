/* A model with some of its nodes: what `reduce` tries.
 *
 *   x -> A -> a -> B -> b -> C -> y          B kept:      a -> B -> b         a is an input now, b an output
 *                                            B bypassed:  x -> A -> a -> C -> y
 *
 * Works on the file's own bytes: what is kept stays as it stands there, unknown fields too.  A value that a kept node reads and none
 * makes becomes an input, with the type that inference gave it; one that a kept node makes and only others read becomes an output.
 * Initializers that nobody reads any more go. */
#ifndef RL_CUT_H
#define RL_CUT_H
#include "ir.h"

typedef enum { RL_CUT_KEEP, RL_CUT_DROP, RL_CUT_BYPASS } rl_cut;

/* May the node be bypassed: has it one output that is used, of the type and shape of input 0?  g: read from the file, shapes inferred. */
bool rl_cut_can_bypass(const rl_graph *g, uint32_t origin);
/* cut: [node as numbered in the file].  The new model's bytes, in mem; false: there is none (no output, an input of no known type). */
bool rl_cut_model(const rl_graph *g, rl_span model, const rl_cut *cut, rl_arena *mem, rl_text *out);

#endif
