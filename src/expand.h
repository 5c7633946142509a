/* Model-local functions: which one a node calls, and calls written out as the nodes of what they call; the same of branches.
 *
 *   y = local::F(x) axis=1      F(a) -> (b) { t = Relu(a); b = Softmax(t) axis=@axis }      ->      t_1 = Relu(x);  y = Softmax(t_1) axis=1
 */
#ifndef RL_EXPAND_H
#define RL_EXPAND_H
#include "ir.h"

/* The functions of a model by what calls them.  overloaded: two have the name and the domain, and a call does not tell which is meant. */
typedef struct {
    const rl_graph *main;
    rl_hash byname;   /* of a function's name: the first that has it */
    uint32_t *next;   /* [function.n] another of that name, RL_NONE */
    bool *overloaded; /* [function.n] */
} rl_callees;

/* Functions that could not be read are none. */
rl_callees rl_callees_of(const rl_graph *main, rl_arena *mem);
/* The number of the function that a node calls, the first of several; RL_NONE. */
uint32_t rl_callee(const rl_callees *c, const rl_nodeinfo *n);

/* Writes out all calls in g, a main graph, and its bodies, also those that this brings: attributes that stand for one of the call, attributes
 * with a default, inputs and outputs that are left out, and the opsets that the function imports.  What runs is the same; g can no longer be
 * written as the model that was read.  RL_EMODEL: a function calls itself, has no such call, or is overloaded; RL_ELIMIT: there are too many nodes. */
rl_status rl_expand_calls(rl_graph *g);

/* Writes out the branch that each If takes whose condition is a constant, in g and its bodies: what it computed may show that the other one does not fit
 * (PyTorch squeezes a dim in one of two branches), and runtimes look at both. any: there was one; types are to be inferred again. */
rl_status rl_expand_branches(rl_graph *g, bool *any);

#endif
