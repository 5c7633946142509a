/* The layouts that a GPU has for images, and what ops cost in them, by the table blocks.def: for choices where nothing was measured.
 *
 *   x i8[32,64,56,56] nchw32, 64 channels of 3 by 3 taps, by cuDNN     2000 ns for a launch and the longer of
 *       3.7 10^9 multiplications, 900 of 10^12 a second                 4110 ns
 *       2 * 6.4 MB at 4000 bytes a ns                                   3211 ns
 *
 * An op that does nothing but walk over its values takes a launch and their bytes; so does a conversion. */
#ifndef RL_GPU_COSTS_H
#define RL_GPU_COSTS_H
#include "ir.h"

typedef enum {
#define LAYOUT(name, text, block, images, types) RL_BLOCKS_##name,
#define RATE(type, layout, library, own)
#define MACHINE(bytes, launch)
#include "blocks.def"
#undef LAYOUT
#undef RATE
#undef MACHINE
    RL_NBLOCKS
} rl_blocks_layout;
const char *rl_blocks_name(rl_blocks_layout l);
/* Does a value of this type lie so? */
bool rl_blocks_has(rl_dtype t, rl_blocks_layout l);
/* Of [N,C,H,W], with the lanes that stand for no channel. */
int64_t rl_blocks_bytes(rl_dtype t, const int64_t *dim, rl_blocks_layout l);

/* A convolution, or a transposed one; taps: of its window. */
typedef struct { rl_dtype type, made; const int64_t *x, *y; int64_t group, taps; bool transposed; } rl_blocks_conv;
/* ns, by NVIDIA's library or an own kernel; -1: there is none. */
int64_t rl_blocks_conv_ns(const rl_blocks_conv *c, rl_blocks_layout in, rl_blocks_layout out, bool library);
int64_t rl_blocks_walk_ns(int64_t nbyte);

#endif
