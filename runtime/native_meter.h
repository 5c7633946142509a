/* What native_probe.c measures with: the time of a kernel in some layouts, or of a move, as it would be in a run of the model.
 *
 *   rl_meter m = {.x = x};
 *   rl_meter_config(&m, &call, pin, npin, lay, native, false, &row)     row.impl: the kernel, NULL where there is no optimized one
 *
 * Before each run of a kernel as many bytes are read as the model has weights and values, then the kernel's inputs: so its weights and code are
 * as far away as the rest of the model leaves them. */
#ifndef RL_NATIVE_METER_H
#define RL_NATIVE_METER_H
#include "native_probe.h"

typedef struct {
    rl_exec *x;
    bool table;     /* nothing is timed, costs are a table's */
    int64_t bar;    /* ns; a kernel that takes more is run once; 0: none */
    rl_tensor cold; /* the bytes that are read between; made when first needed */
    unsigned sink;
} rl_meter;

/* What a cost depends on, as a number: the op, what is joined to it, sizes, layouts. lay: of the pins; those of outputs count where they are chosen. */
uint64_t rl_meter_key(const rl_call *c, const rl_pin *pin, uint32_t npin, const rl_lay *lay, bool chosen, bool table);
uint64_t rl_meter_move_key(const rl_meter *m, const rl_tensor *shape, const rl_lay *from, const rl_lay *to);
/* The inputs of the call for another that is to leave them as they are: constants, and copies of what describes the others, which no kernel
 * takes for a value that ends here (rl_call_make_over). */
const rl_tensor **rl_meter_inputs(const rl_call *c);
/* Runs the step so and fills in the row; impl NULL where there is no optimized kernel (accept: that is taken too), or it fails. */
rl_status rl_meter_config(rl_meter *m, rl_call *c, const rl_pin *pin, uint32_t npin, const rl_lay *lay, rl_native *n, bool accept, rl_cost_row *row);
/* The dims of output 0, from a run of the step as it is; ns: what that takes by the table, NULL: is not asked. */
rl_status rl_meter_plain(const rl_call *c, rl_tensor *y, int64_t *ns);
int64_t rl_meter_move(rl_meter *m, const rl_tensor *shape, const rl_lay *from, const rl_lay *to);

#endif
