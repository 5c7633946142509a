/* A recording of a device's in which steps wait for those alone whose results they want (device_run.c).
 *
 *   a = Conv(x)     after nothing
 *   b = Conv(x)     after nothing: side by side with a
 *   c = Relu(a)     after a
 *   y = Add(b, c)   after b and c
 *
 * While it is made no memory is used twice and nothing is written over an input, so that a step comes after those that wrote what it reads, and
 * no others.  Whether that holds is looked at when it is made, from what each step did read and write: the spans of bytes of its inputs, outputs and
 * temporaries.  Sequences, and what bodies read, are the host's: a run with such a copy is not recorded (device.h). */
#ifndef RL_BRANCHES_H
#define RL_BRANCHES_H
#include "exec.h"

typedef struct rl_branches rl_branches;
rl_branches *rl_branches_new(rl_ctx *ctx);
void rl_branches_free(rl_branches *b);
/* Before and after a step's kernel. */
rl_status rl_branches_begin(rl_call *c);
rl_status rl_branches_end(rl_call *c);
/* Do every two steps that touch a byte, one of them to write it, come one after the other? */
bool rl_branches_hold(rl_branches *b);
/* Steps that asked the device for anything, and how many of them come one after the other at most. */
void rl_branches_count(const rl_branches *b, uint32_t *nstep, uint32_t *longest);

/* ---- apart from calls ---- */

/* The step at work reads these bytes, or writes them. */
void rl_branches_note(rl_branches *b, const void *p, size_t nbyte, bool write);
/* The steps that wrote what it was noted to read, but for those that come before another one of these: how many. */
uint32_t rl_branches_before(rl_branches *b, const uint32_t **step);
/* It is done; did: it gets the next number and comes after these, else it is forgotten. */
void rl_branches_done(rl_branches *b, bool did);

#endif
