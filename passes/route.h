/* What route.c and route_ends.c share: moving nodes that hang together, the tensors that enter and leave them, and whose channels
 * each of these has.  See route.c. */
#ifndef RL_ROUTE_H
#define RL_ROUTE_H
#include "movement.h"

/* rigid: its channels keep their order. */
typedef struct { rl_value v; uint32_t base, n; bool rigid; uint32_t npart; } rl_source;
typedef struct { uint32_t source, n; int64_t *channel; rl_value v; } rl_part; /* channels counted over all sources */
typedef struct { rl_value v; bool rigid; const int64_t *channel; uint32_t n; struct { uint32_t *p; uint32_t n, cap; } part; } rl_sink;

typedef struct {
    rl_pass_run *r;
    rl_graph *g;
    rl_maps *maps;
    rl_arena *mem;
    const rl_node *node; /* all moving nodes that hang together, in order */
    uint32_t nnode;
    bool *gone;          /* [node of the graph] it is one of them */
    rl_hash map_of;      /* value -> its place in map, + 1 */
    struct { rl_map *p; uint32_t n, cap; } map;
    struct { rl_source *p; uint32_t n, cap; } source;
    struct { rl_sink *p; uint32_t n, cap; } sink;
    struct { rl_part *p; uint32_t n, cap; } part;
    uint32_t axis;
    rl_shape all;        /* of all sources one behind the other along axis */
} rl_router;

/* Sources, sinks and their channels; false where something between them is more than a choice of channels. */
bool rl_route_ends(rl_router *t);
/* Does the node only move? */
bool rl_route_moves(const rl_graph *g, const rl_nodeinfo *n);
/* How many of its first inputs it moves. */
uint32_t rl_route_inputs(const rl_nodeinfo *n);

#endif
