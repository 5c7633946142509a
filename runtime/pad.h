/* What a Pad does, for the CPU and for devices (ref_copy.c). */
#ifndef RL_PAD_H
#define RL_PAD_H
#include "../src/map.h"
#include "rt.h"

typedef struct {
    rl_pad_mode mode;
    rl_tensor from;          /* a view of x, without what negative pads cut */
    int64_t before[RL_RANK]; /* places in front of that */
    int64_t dim[RL_RANK];    /* the output's */
} rl_pad_op;
/* x: input 0, wherever it lies */
rl_status rl_pad_read(rl_call *c, const rl_tensor *x, rl_pad_op *p);
/* The element around it: dense, on the host, of input 0's type. */
rl_status rl_pad_value(rl_call *c, rl_tensor **value);

#endif
