/* Permutations of channels or features that constant weights can take in: used by movement.c and route.c, see absorb.c.
 *
 *   rl_absorber a = {.g = g, .tmp = tmp};
 *   if (rl_absorb_in_readers(&a, y, axis, p, n) && rl_absorb_in_maker(&a, v, axis, q, n)) rl_absorb_carry_out(&a);
 *
 * Each notes what would change, and nothing when it answers false. */
#ifndef RL_ABSORB_H
#define RL_ABSORB_H
#include "pass.h"

/* A tensor whose elements stand permuted: place i of what was is at place p[i] now. */
typedef struct { rl_value v; uint32_t axis, n; const int64_t *p; } rl_permuted;
/* Along dim, place to[i] of the new constant is place i of the old one (or, `from`, place i is place to[i] of the old). */
typedef struct { rl_node node; uint32_t slot, dim, n; const int64_t *to; bool from; } rl_absorb_edit;
typedef struct {
    rl_graph *g;
    rl_arena *tmp;
    const bool *gone; /* [node] readers of y that there will not be; NULL: none */
    struct { rl_permuted *p; uint32_t n, cap; } val; /* of one question */
    struct { rl_absorb_edit *p; uint32_t n, cap; } edits;
} rl_absorber;

/* v's readers read  y[.., i, ..] = v[.., p[i], ..]  along `axis`, n long, and shall read v itself.  False where that needs more than other
 * constants. */
bool rl_absorb_in_readers(rl_absorber *a, rl_value y, uint32_t axis, const int64_t *p, uint32_t n);
/* Likewise v's maker shall make y in its place; nobody else may read v. */
bool rl_absorb_in_maker(rl_absorber *a, rl_value v, uint32_t axis, const int64_t *p, uint32_t n);
/* Puts new constants in the place of those that were noted. */
void rl_absorb_carry_out(rl_absorber *a);

#endif
