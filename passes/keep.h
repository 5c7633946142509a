/* What keep.c and keep_roles.c share: atoms that belong together, from class to class.
 *
 *   Add x[h w c] + y[h w c], MatMul x[h w c] . w -> z[h w d]     labels: h of x, y and z, w of all three, c of x and y, d */
#ifndef RL_KEEP_H
#define RL_KEEP_H
#include "bound.h"

/* Atoms that tokens tie together across values share a label.  Atom a of a class in an open component has number at[class] + a. */
typedef struct { uint32_t *at, n, *up, *next; } rl_atomlabels; /* at: [ncls]; up, next: [n] */

uint32_t rl_label_of(const rl_atomlabels *l, uint32_t cls, uint32_t atom);

/* Does the class have labels? */
static inline bool rl_is_open(const rl_cls *c, const bool *open) { return !c->constant && open[c->comp]; }

/* keep_roles.c: sets drop of all atoms of a class but one, at least, of each role there, or part. drop[i]: atom number i. */
void rl_drop_alike(const rl_plan *p, const rl_atomlabels *l, const bool *open, bool parts, bool *drop, rl_arena *tmp);

/* For each atom of the open classes a hash of the dims that it lies in, over all tensors of its class: atoms of one role have the same.
 * at, dims: as at of rl_atomlabels; dims: zero. */
void rl_hash_dims(const rl_plan *p, const bool *open, const uint32_t *at, uint64_t *dims);

#endif
