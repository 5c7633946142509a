/* Tensors whose elements are places: what only moves data says where it does by moving these (places.c). */
#ifndef RL_PLACES_H
#define RL_PLACES_H
#include <string.h>

#include "exec.h"

enum { RL_FIRST_PLACE = 1 /* the bits of element 0: a pad has none */ };

/* A float tensor of v's dims whose elements are their places, as it lies in this order (NULL: row-major); false: the dims are not known,
 * or too large. */
bool rl_places_number(rl_exec *x, rl_value v, const int64_t *perm, rl_tensor *t);
/* The place in element `at` of a dense t; -1: a pad. */
static inline int64_t rl_place_at(const rl_tensor *t, int64_t at) {
    return (int64_t)((const uint32_t *)rl_data(t))[at] - RL_FIRST_PLACE;
}
/* *view: how t's elements, which are places in x, lie there; false: some are none, or no strides say it. */
bool rl_places_strides(rl_rt *rt, const rl_tensor *t, rl_tensor *view);

#endif
