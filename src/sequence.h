/* Sequences of which constants tell what their elements are, for shape rules and for the pass that does without them. */
#ifndef RL_SEQUENCE_H
#define RL_SEQUENCE_H
#include "ir.h"

enum { RL_SEQUENCE_MOST = 1024 }; /* elements that are told apart */

/* How a SplitToSequence cuts its input: sizes along axis, each at least 1.  keeps: elements have that dim, else all sizes are 1 and it is gone. */
typedef struct { uint32_t axis, n; bool keeps; const int64_t *size; } rl_cuts;

/* size in mem; false where it is not known, or the input's rank is not.
 *   x f32[N,7], split 3, axis 1  ->  n = 3, size = {3,3,1} */
bool rl_sequence_cuts(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem, rl_cuts *c);
/* Which of n elements the constant `at`, a SequenceAt's second input, names; false where none, or it is no constant. */
bool rl_sequence_place(const rl_graph *g, rl_value at, uint32_t n, rl_arena *mem, uint32_t *place);

#endif
