/* Buffers of the caller's that graph inputs are read from and outputs written to, where they are: a descriptor (src/desc.h) says how
 * the elements lie there.
 *
 *   x  f32[1,3,2,2] strides=[16,1,8,4]   channels last, a fourth one left out: a view of the buffer, nothing is copied
 *   x  f32[4,1000] strides=[0,1]          one row for four: likewise
 *   x  f32[1,20,7,7]@nChw16c              blocks are no strides: made row-major first
 *   y  f32[1,10]                          packed: the kernel that makes y writes it there; so do kernels that work channels-last
 *                                         where it is packed so
 *   y  f32[4,10] strides=[16,1]           made row-major, then moved there; the gaps stay as they are
 *   y  f32[1,20,7,7]@nChw16c              likewise, and the padding becomes zeros */
#ifndef RL_CONTRACT_H
#define RL_CONTRACT_H
#include "../src/desc.h"
#include "rt.h"

typedef struct { rl_desc layout; void *p; size_t nbyte; } rl_buffer; /* p NULL: none */

/* RL_EUSAGE unless the buffer holds what the layout says; written: also unless each element has its own place. */
rl_status rl_buffer_check(rl_ctx *ctx, const char *name, const rl_buffer *b, bool written);
/* A tensor of the buffer's elements. */
rl_status rl_buffer_read(rl_rt *rt, const rl_buffer *b, rl_tensor *out);
/* The same as a place to make them in, RL_ABSENT where it has blocks. */
rl_tensor rl_buffer_place(rl_rt *rt, const rl_buffer *b);
/* t's elements to the buffer; nothing to do where they are there. RL_EUSAGE: other sizes or another type. */
rl_status rl_buffer_write(rl_rt *rt, const char *name, const rl_buffer *b, const rl_tensor *t);

#endif
