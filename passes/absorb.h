/* Permutations of channels or features that constant weights can take in: used by movement.c, see absorb.c. */
#ifndef RL_ABSORB_H
#define RL_ABSORB_H
#include "pass.h"

/* v's readers read  y[.., i, ..] = v[.., p[i], ..]  along `axis`, n long, and shall read v itself.  False, and nothing is changed,
 * where that needs more than other constants; else the constants are changed (which are then new ones). */
bool rl_absorb_in_readers(rl_graph *g, rl_arena *tmp, rl_value y, uint32_t axis, const int64_t *p, uint32_t n);
/* Likewise v's maker shall make y in its place; nobody else may read v. */
bool rl_absorb_in_maker(rl_graph *g, rl_arena *tmp, rl_value v, uint32_t axis, const int64_t *p, uint32_t n);

#endif
