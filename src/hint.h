/* "did you mean": the known word that is nearest to what was typed.
 *
 *   static const char *const known[] = {"optimize", "stats", "explain"};
 *   rl_hint("optimise", known, 3)     "optimize"
 *   rl_hint("xyz", known, 3)          NULL: none is near */
#ifndef RL_HINT_H
#define RL_HINT_H
#include <stddef.h>

/* Nearest by letters put in, left out, changed or swapped with the next; at most a third of the word's may differ. */
const char *rl_hint(const char *word, const char *const *known, size_t n);

#endif
