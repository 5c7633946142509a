/* Is this graph one that the rest may rely on?  Run after every pass when asked to, and once before a model is written. */
#ifndef RL_VERIFY_H
#define RL_VERIFY_H
#include "ir.h"

/* RL_EINTERNAL naming the node or value, and what is wrong, else RL_OK.  Checked, in g and in its bodies:
 *   defs and uses  each value is made once, by the node and output that it says; its uses are the inputs that read it
 *   order          every live node once, after the nodes that it reads
 *   names          no two values of a graph share one, and byname finds it
 *   types          a rank has its dims, a constant's bytes are as many as its shape needs
 *   attributes     none is there twice, a Transpose's perm is a permutation of its input's rank */
rl_status rl_verify(const rl_graph *g);

#endif
