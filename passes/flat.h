/* One graph that holds the nodes of all bodies, so that every pass sees body and caller as one problem.
 *
 * An If, Loop or Scan becomes two nodes with its bodies' nodes between them:
 *
 *   y, s = Loop(n, c, x) body=graph {                 i, d, a, t = Enter(n, c, x)
 *     in i, d, a                                      b = Relu(a)
 *     b = Relu(a)                            ->       z = Add(b, w)
 *     z = Add(b, ^w)                                  y, s = Leave(t, d, b, z)
 *     out d, b, z }
 *
 * Enter reads what the node reads and makes what the body starts from; Leave reads what the bodies end in and makes what the node
 * makes; the token t holds them together.  An If has no Enter: its Leave reads the condition, then the outputs of
 * then_branch, then those of else_branch.  A captured value is simply the outer value.
 *
 * Each node stands in a region: 0 is the graph itself, every body has one, counted as the graph is walked: the branches of an If are 1
 * and 2, what is in them comes after.  A value whose name is taken goes by name#region here.  A value can be read in its own region and in those
 * inside it; a constant everywhere, since where it is stored is decided when the bodies are written back.  The region of a
 * node is that of its origin, which passes hand on to the nodes that they make: so no pass but lower needs to know.
 *
 * Left as they are, bodies and all: nodes of other ops, and those whose bodies have inputs or outputs that do not fit, types that
 * contradict each other (such a body may never run), or a result or constant with the name of a value outside (which ONNX forbids; a body's
 * input may hide one, as Paddle's do).  A graph without bodies is its own flat form. */
#ifndef RL_FLAT_H
#define RL_FLAT_H
#include "pass.h"

typedef struct {
    rl_graph *g;
    uint32_t parent;  /* region around it; of region 0 RL_NONE */
    uint32_t control; /* whose body it is */
    uint32_t end;     /* an origin in it that comes after those of all its nodes */
    bool repeats;     /* a body of Loop or Scan */
} rl_region;

typedef struct {
    rl_op op;         /* If, Loop, Scan */
    uint32_t region;  /* where it stands */
    rl_node node;     /* in that region's own graph */
    rl_node enter, leave; /* as first made; enter RL_NONODE for If */
    uint32_t body, nbody; /* its bodies' regions: body, body + 1 */
} rl_control;

/* What an origin says of a node. */
typedef struct { uint32_t region, control; rl_node node; } rl_place;
typedef struct { uint32_t region; rl_value v; } rl_home;

typedef struct rl_flat {
    struct { rl_region *p; uint32_t n, cap; } region;
    struct { rl_control *p; uint32_t n, cap; } control;
    struct { rl_place *p; uint32_t n, cap; } place;
    rl_home *home;    /* [nval] of the values that there were at first */
    uint32_t nval, nnode;
} rl_flat;

/* The flat form of g (types inferred); g itself when it has no bodies to open.  Freed with g. */
rl_graph *rl_flat_make(rl_graph *g);
/* The same, also of a graph without bodies: what is tried on it is forgotten, or written back. */
rl_graph *rl_flat_copy(rl_graph *g);
/* Writes what became of a flat graph back to the graphs that it was made from. */
rl_status rl_flat_write_back(rl_graph *flat, rl_arena *tmp);
/* The graph that a flat one was made from; any other is its own. */
rl_graph *rl_flat_main(rl_graph *g);

/* Do types contradict each other in g or a body in it?  Such a body stays closed. */
bool rl_flat_doubtful(const rl_graph *g);

/* A result or constant of the body that has the name of a value around it: only an input may. */
bool rl_flat_hides(const rl_graph *body, rl_value v);

/* The graph itself gives the value: not one around it, and it is not the name of what a pass took away. */
static inline bool rl_flat_is_own(const rl_valinfo *x) { return x->def.i != RL_NONE || x->is_input || x->is_init; }

/* All of these answer 0 and true for a graph that is not flat. */
uint32_t rl_flat_region(const rl_graph *g, uint32_t origin);
uint32_t rl_flat_value_region(const rl_graph *g, rl_value v);
bool rl_flat_within(const rl_graph *g, uint32_t inner, uint32_t outer); /* or the same */
uint32_t rl_flat_common(const rl_graph *g, uint32_t a, uint32_t b);     /* the innermost region that holds both */
/* The same node's place seen from a region around it: the origin of the If, Loop or Scan there that it is inside of. */
uint32_t rl_flat_step_out(const rl_graph *g, uint32_t origin, uint32_t region);
/* How often what stands in the region runs for each run of the graph, as a guess. */
int64_t rl_flat_turns(const rl_graph *g, uint32_t region);

#endif
