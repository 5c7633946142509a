/* Moves on the device: which kernel, and its launches.  Plain numbers, no tensors: backend.c has those.
 *
 *   rl_loops l = {.rank = 2, .noperand = 2, .dim = {64, 48}, .step = {{48, 1}, {1, 64}}};          a transpose, written row by row
 *   RL_TRY(rl_gpu_move(g, &l, 32, y, 0, x, 0));                                                    kernel tile4 */
#ifndef RL_CUDA_MOVE_H
#define RL_CUDA_MOVE_H
#include "../src/desc.h"
#include "driver.h"

typedef enum { RL_MOVE_NOTHING, RL_MOVE_BYTES, RL_MOVE_STRIDED, RL_MOVE_PACK, RL_MOVE_TILE, RL_MOVE_WEAVE, RL_MOVE_INTERLEAVE, RL_MOVE_BITS } rl_move_kind;
typedef struct {
    rl_move_kind kind;
    uint32_t size; /* bytes of what one thread moves at a time (STRIDED), of what it reads at a time (PACK), of an element (TILE, WEAVE, INTERLEAVE; 0: 4 bits) */
    uint32_t i, j; /* TILE and WEAVE: the dims that lie closest in what is read and in what is written */
    uint64_t run_i, run_j; /* TILE: these and the dims that follow them there one after the other, a bit each */
    rl_loops loops; /* sorted and merged; STRIDED, PACK: in vectors of `size` */
} rl_move_plan;

/* Operand 0 is written, operand 1 read, steps in elements of `bits` bits; to, from: the addresses of their first elements. */
rl_move_plan rl_move_choose(const rl_loops *l, uint32_t bits, uint64_t to, uint64_t from);

/* The kernel for elements of 1, 2, 4, 8 or 16 bytes of a family that has these in a row. */
rl_gpu_kernel rl_gpu_of_size(rl_gpu_kernel first, uint32_t size);

/* to0 and from0: the first elements. */
rl_status rl_gpu_move(rl_gpu *g, const rl_loops *l, uint32_t bits, void *to, int64_t to0, const void *from, int64_t from0);
/* Moves that do not depend on each other; those that go by `strided`, or are a copy, go by one launch where it takes them. */
typedef struct { rl_loops loops; void *to; int64_t to0; const void *from; int64_t from0; } rl_gpu_part;
rl_status rl_gpu_move_all(rl_gpu *g, uint32_t bits, uint32_t n, const rl_gpu_part *part);
/* value: an element, in its low bits where it is smaller than a byte. l: operand 0. */
rl_status rl_gpu_fill(rl_gpu *g, const rl_loops *l, uint32_t bits, void *to, int64_t to0, const void *value);
/* A conversion as loops, operand 0 what is written; false where it is none: padding, another number type, blocks that do not divide each other. */
bool rl_desc_loops(const rl_desc *to, const rl_desc *from, rl_loops *l);
/* From one buffer to another with its own layout, padding (zeros) and number type. Both on the device, as long as rl_desc_bytes says. */
rl_status rl_gpu_convert(rl_gpu *g, const rl_desc *to, void *out, const rl_desc *from, const void *in);

/* A gather of elements of `bits` bits as one of bytes, where all lies by whole bytes; false: it does not, and nothing is changed. */
bool rl_select_as_bytes(rl_loops *l, rl_p_select *p, uint32_t bits);
/* Gather or scatter of elements of `size` bytes: l and p as params.h says, without the walk and the count, which fit one launch. */
rl_status rl_gpu_select(rl_gpu *g, const rl_loops *l, const rl_p_select *p, uint32_t size);

/* Calls fn for parts of the loops that each fit a launch: dims from `first` on, operand o beginning at[o] elements further. */
typedef rl_status rl_part_fn(void *arg, const rl_loops *l, uint32_t first, const int64_t *at);
rl_status rl_loops_parts(const rl_loops *l, rl_part_fn *fn, void *arg);
/* Blocks for n things of a kernel that goes element by element; for n of one that has a thread each. */
uint32_t rl_gpu_blocks(int64_t n);
uint32_t rl_gpu_thread_blocks(int64_t n);
/* For kernels that go by 16 bytes where they can: *wide says whether (index.h: rl_loops_takes); then the loops count by vectors. Returns the blocks. */
uint32_t rl_gpu_widen(rl_loops *l, uint32_t size, uint32_t nvector, const uint64_t *address, uint32_t *wide);

#endif
