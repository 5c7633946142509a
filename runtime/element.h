/* Element by element: for ops whose places are computed, one index at a time.
 *
 *   int64_t i[RL_RANK] = {0};
 *   if (rl_numel(x))
 *       do rl_put_element(y, rl_place(y, i), x, rl_place(x, i)); while (rl_next_index(x->rank, x->dim, i));      y = x */
#ifndef RL_ELEMENT_H
#define RL_ELEMENT_H
#include "number.h"
#include "rt.h"

/* The place of an element, in elements from the storage's start: for rl_put_element and rl_run.at. */
static inline int64_t rl_place(const rl_tensor *t, const int64_t *index) {
    int64_t at = t->offset;
    for (uint32_t i = 0; i < t->rank; i++) at += index[i] * t->stride[i];
    return at;
}

/* The next index, row-major; false, and all 0 again, after the last. */
static inline bool rl_next_index(uint32_t rank, const int64_t *dim, int64_t *index) {
    for (uint32_t i = rank; i-- > 0;) {
        if (++index[i] < dim[i]) return true;
        index[i] = 0;
    }
    return false;
}

/* Element `at` of to = element k of from; types of the same size. */
void rl_put_element(const rl_tensor *to, int64_t at, const rl_tensor *from, int64_t k);

typedef enum { RL_PUT, RL_ADD, RL_MUL, RL_LEAST, RL_MOST } rl_combine;
/* Element `at` of to = it combined with element k of from, of the same number type; rounded to the type once. */
void rl_combine_element(rl_combine how, const rl_tensor *to, int64_t at, const rl_tensor *from, int64_t k);

/* GatherElements and ScatterElements: each element of index (i64) is a place along the axis of data; its own place says the other coordinates there, and
 * where its element of other is. That goes into data, combined with what is there, or comes from data. RL_EMODEL where an index is out of range, or a
 * dim of index larger than data's; all have one rank, not 0. */
rl_status rl_move_indexed(const rl_call *c, const rl_tensor *index, uint32_t axis, const rl_tensor *data, const rl_tensor *other, bool into, rl_combine how);

/* Sorts n numbers; what compares equal keeps its order. The order is the same for the same input everywhere. */
typedef int rl_compare_fn(const void *arg, int64_t a, int64_t b);
void rl_sort(rl_arena *tmp, int64_t *x, int64_t n, rl_compare_fn *compare, const void *arg);

/* *i made non-negative; RL_EMODEL unless it names one of n places. */
rl_status rl_call_place(const rl_call *c, int64_t *i, int64_t n);
/* Input i, of one element whatever its rank; NULL where it is left out. */
rl_status rl_call_one(const rl_call *c, uint32_t i, const rl_tensor **t);
/* The one number in input i; `dflt` where it is left out. */
rl_status rl_call_int(rl_call *c, uint32_t i, int64_t dflt, int64_t *x);
rl_status rl_call_float(rl_call *c, uint32_t i, double dflt, double *x);

#endif
