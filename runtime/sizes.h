/* Numbers for the sizes that the inputs of a model leave open, where nobody gives them.
 *
 *   in x f32[N,3,H,W]; MaxPool by steps of 8 -> p[N,3,floor(H/8),floor(W/8)]; Squeeze axes=[2] -> y[N,3,floor(W/8)]
 *   rl_sizes s = rl_sizes_of(g, mem);            N = 1, H = 1, W = 1
 *   rl_sizes_fit(g, &s);                         N = 1, H = 8, W = 8: p is not empty, and y has as many elements as p
 *
 * Fitting is a search over numbers for one symbol after the other, each tried on the dims of all values, which are known as expressions of the
 * symbols (dim.h): no dim is 0, operands of a pointwise op broadcast, those of a Concat have equal dims, and what only moves data keeps the number of
 * elements.  It takes the first of the numbers after which the fewest of these conditions fail, and smaller ones come first.  What hangs on
 * data is not seen. */
#ifndef RL_SIZES_H
#define RL_SIZES_H
#include "../src/ir.h"

typedef struct {
    rl_str *name;
    bool *fixed;    /* stays as it is */
    uint32_t n;
    rl_hash value;  /* the name's pointer -> number */
} rl_sizes;

/* The symbols that are dims of g's inputs, each 1, in mem. */
rl_sizes rl_sizes_of(const rl_graph *g, rl_arena *mem);
void rl_sizes_set(rl_sizes *s, uint32_t i, uint32_t number);
uint32_t rl_sizes_get(const rl_sizes *s, uint32_t i);
/* Those that are not fixed. */
void rl_sizes_fit(const rl_graph *g, rl_sizes *s);

#endif
