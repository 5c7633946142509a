/* Conversions of elements that lie one behind the other, between the types that models have many of: loops compiled for the instruction sets that matter.
 *
 *   const rl_number_run *d = rl_number_run_of(RL_F16, RL_F32);       NULL: there is none
 *   d->run(halves, floats, n);                                       what rl_convert_run (number.h) makes of them */
#ifndef RL_NUMBER_RUNS_H
#define RL_NUMBER_RUNS_H
#include "rt.h"

typedef struct {
    rl_dtype to, from;
    size_t to_size, from_size; /* bytes of an element */
    void (*run)(void *y, const void *x, int64_t n);
} rl_number_run;

const rl_number_run *rl_number_run_of(rl_dtype to, rl_dtype from);

#endif
