/* The equation of an Einsum, with a letter for each dim:
 *
 *   "bij,bjk"          bij,bjk->ik      not told, the result has the letters that come once, sorted (NumPy: upper case first)
 *   "...ij,...jk->...ik" of ranks 4, 3   abij,bjk->abik: the dims of ... are right-aligned, and get letters that no other dim has
 *
 * A letter that a term has twice is its diagonal. */
#ifndef RL_EQUATION_H
#define RL_EQUATION_H
#include "ir.h"

/* The terms are the inputs, then the result; letter[term][dim]. dots: the letters that ... stands for. */
typedef struct { uint32_t nterm; uint8_t **letter; uint32_t *rank; uint8_t dots[52]; uint32_t ndots; } rl_equation;

/* False where it says nothing, as when a rank is not known, or too many dims to have a letter each. */
bool rl_equation_read(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem, rl_equation *out);
/* Of one operand, of which it only permutes the dims: the perm of the Transpose that it is; in mem. */
bool rl_equation_permutes(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem, const int64_t **perm, uint32_t *rank);
/* Of the letter: does ... stand for it? */
bool rl_equation_is_dots(const rl_equation *e, uint8_t letter);
#endif
