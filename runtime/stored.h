/* Constants as a model stores them: as tensors of the runtime. */
#ifndef RL_STORED_H
#define RL_STORED_H
#include "rt.h"

/* Numbers stay where they are; strings: the elements of a tensor of strings, of any other NULL. */
rl_tensor rl_tensor_of_const(rl_rt *rt, const rl_const *c, const rl_span *strings);
/* Fills y, a dense tensor of what the SparseTensorProto in `bytes` says of its type and sizes. name: for messages. */
rl_status rl_sparse_fill(rl_rt *rt, rl_graph *g, rl_span bytes, const char *name, rl_tensor *y);

#endif
