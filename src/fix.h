/* Sizes that a model leaves open, given by the user: --dim and --input-shape, rl_options.dims and .input_shapes.
 *
 *   rl_fix_dim(g, "batch=1")               every dim that is the symbol `batch` is 1, in bodies too
 *   rl_fix_shape(g, "x=1,3,224,224")       the input x has this shape; symbols among its dims get their number everywhere
 *
 *   rl_fix_like(g, other)                  the inputs of g have the sizes that other's inputs of the same names have
 *
 * The model that is written says these sizes of its inputs and outputs (g->sized): a result that was made for a batch of one is not
 * to be run with another.  RL_EUSAGE names what does not fit: no such symbol or input, another rank, another size. */
#ifndef RL_FIX_H
#define RL_FIX_H
#include "ir.h"

/* optional: of a second model, which may have no such symbol any more. */
rl_status rl_fix_dim(rl_graph *g, const char *item, bool optional);
rl_status rl_fix_shape(rl_graph *g, const char *item);
void rl_fix_like(rl_graph *g, const rl_graph *other);
/* RL_EUSAGE: no input has the name of n bytes; and which there are. */
rl_status rl_fix_no_input(rl_graph *g, const char *name, int n);

#endif
