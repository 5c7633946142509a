/* What movement.c, movement_forms.c, movement_write.c and route.c share: a cone of nodes that only move one tensor, and the forms that could
 * stand for it. */
#ifndef RL_MOVEMENT_H
#define RL_MOVEMENT_H
#include "pass.h"
#include "../src/map.h"

enum { RL_CONE_MAX = 40, RL_FORM_RANK = 12 };

/* What nodes cost. bytes: of what the moving ones write; index: of index tensors that are new. */
typedef struct { int64_t nodes, bytes, index, turned, transposes, depth_space, others, gathers; } rl_movecost; /* turned: bytes of Transposes; others: gathers too */

typedef enum {
    RL_FORM_NOTHING, RL_FORM_SLICE, RL_FORM_RESIZE, RL_FORM_GATHER, RL_FORM_TRANSPOSE, RL_FORM_DEPTH_TO_SPACE, RL_FORM_SPACE_TO_DEPTH
} rl_formkind;

typedef struct { uint32_t rank; rl_dim dim[RL_FORM_RANK]; } rl_shape;

/* x, reshaped to `before`, through one node that makes `after`, reshaped to y's own dims; reshapes that change nothing are left
 * out.  RL_FORM_NOTHING: no node, or one Reshape. */
typedef struct {
    rl_formkind kind;
    rl_shape before, after;
    /* Slice: starts, ends and steps; Resize: a has how often each element of a dim comes; Transpose: a is perm; DepthToSpace,
     * SpaceToDepth: a[0] block, a[1] mode CRD */
    int64_t a[RL_FORM_RANK], b[RL_FORM_RANK], step[RL_FORM_RANK];
    uint32_t axis, nindex;
    const int64_t *index; /* Gather */
    rl_shape indexdim;
    rl_movecost cost;
} rl_form;

/* The tensor y is the elements of x that `map` says.  views: other dims that x has on the way, without moving. */
typedef struct {
    rl_maps *maps;
    rl_graph *g;
    rl_value x, y;
    rl_map map;
    rl_shape view[RL_CONE_MAX];
    uint32_t nview;
    rl_movecost old; /* of the nodes that would go */
} rl_moved;

/* The best form of this kind, with its cost; false when there is none. */
bool rl_form_find(const rl_moved *v, rl_formkind kind, rl_form *f);
/* Is y (dims [.., n, ..]) what `base` makes of x, but for a permutation along one dim: y[i] = base(x)[p[i]]?  base is NOTHING (x has y's
 * dims) or SPACE_TO_DEPTH. */
bool rl_form_permuted(const rl_moved *v, rl_formkind base, rl_form *f, uint32_t *axis, const int64_t **p, uint32_t *n);
/* Writes the form, y's maker having been removed. origin: place of the new nodes. */
void rl_form_write(const rl_moved *v, const rl_form *f, uint32_t origin);

/* movement.c, for route.c: does the op only move data (or nothing)?  Adds what a node costs.  What a Concat reads, its inputs' maps known. */
bool rl_move_is(rl_op op);
bool rl_move_is_view(rl_op op);
void rl_move_add_cost(const rl_graph *g, rl_node n, rl_movecost *c);
bool rl_move_join(rl_maps *m, const rl_graph *g, const rl_nodeinfo *concat, const rl_map *part, rl_map *out);
/* route.c: what goes between layers through all moving nodes that hang together, once more with the fewest of them; true where
 * something changed. */
bool rl_route(rl_pass_run *r, rl_maps *maps);

/* movement_memo.c: what no form can stand for is not tried again where it looks the same. */
typedef struct { rl_text key; rl_hash index; struct { rl_text *p; uint32_t n, cap; } all; } rl_move_memo; /* all in key.mem */
bool rl_move_is_hopeless(rl_move_memo *m, const rl_moved *v, bool plain); /* plain: Transposes and views alone */
void rl_move_note_hopeless(rl_move_memo *m);                              /* of what was asked last */

/* movement_forms.c.  The places along `axis` of a tensor of dims s that the map reads, when that is all that it does. */
bool rl_form_index(rl_maps *m, const rl_map *map, const rl_shape *s, uint32_t axis, const int64_t **index, uint32_t *n);
/* Fills in the cost; false when a Reshape that is needed cannot be written. */
bool rl_form_priced(const rl_moved *v, rl_form *f);
/* movement_resize.c.  pays: is it quicker than the nodes that cost `old`? */
bool rl_form_resize(const rl_moved *v, rl_form *f);
bool rl_form_resize_pays(const rl_form *f, const rl_movecost *old);
/* For movement_write.c. */
bool rl_form_shape_of(const rl_graph *g, rl_value v, rl_shape *s); /* false: more dims than a form has room for */
bool rl_form_same_shape(const rl_shape *a, const rl_shape *b);
/* The numbers of a Reshape between these dims; false where it cannot be written with constants. */
bool rl_form_reshape_target(const rl_shape *from, const rl_shape *to, int64_t *out);
bool rl_form_keeps_name(const rl_graph *g, rl_value y); /* a graph output, or read by a body: it cannot become another value */

#endif
