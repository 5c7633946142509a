/* The moves that are measured, on the CPU (move_cmd.c) and on a device (bench/gpu_moves.c): a dense array of these dims, permuted.
 *
 *   rl_move_case c = rl_move_sized(&rl_move_grid[0], 16 << 20, 4);        transpose: f32[2048,2048], perm 1, 0 */
#ifndef RL_MOVE_GRID_H
#define RL_MOVE_GRID_H
#include <math.h>
#include <stdint.h>

enum { RL_GRID_RANK = 6 };
/* The first dim is what the size asks for. name: as the layouts are called. */
typedef struct { const char *name; uint32_t rank; int64_t dim[RL_GRID_RANK]; uint32_t perm[RL_GRID_RANK]; } rl_move_case;
static const rl_move_case rl_move_grid[] = {
    {"transpose", 2, {0, 0}, {1, 0}}, /* as square as it gets */
    {"transpose-tall", 2, {0, 100}, {1, 0}},
    {"nchw-nhwc-c3", 4, {0, 3, 224, 224}, {0, 2, 3, 1}},
    {"nhwc-nchw-c3", 4, {0, 224, 224, 3}, {0, 3, 1, 2}},
    {"nchw-nhwc-c64", 4, {0, 64, 56, 56}, {0, 2, 3, 1}},
    {"nhwc-nchw-c64", 4, {0, 56, 56, 64}, {0, 3, 1, 2}},
    {"nchw-nChw16c", 5, {0, 4, 16, 28, 28}, {0, 1, 3, 4, 2}}, /* channels as blocks and in a block */
    {"nChw16c-nchw", 5, {0, 4, 28, 28, 16}, {0, 1, 4, 2, 3}},
    {"heads-split", 4, {0, 128, 12, 64}, {0, 2, 1, 3}},
    {"heads-k", 4, {0, 128, 12, 64}, {0, 2, 3, 1}},
    {"windows-nhwc", 6, {0, 4, 7, 4, 7, 96}, {0, 1, 3, 2, 4, 5}},
    {"windows-nchw", 6, {0, 96, 4, 7, 4, 7}, {0, 2, 4, 3, 5, 1}},
    {"pixel-shuffle", 6, {0, 16, 2, 2, 28, 28}, {0, 1, 4, 2, 5, 3}},
};
enum { RL_NMOVE_GRID = sizeof rl_move_grid / sizeof *rl_move_grid };

/* The case with dims that make about nbyte, of elements of `size` bytes. */
static inline rl_move_case rl_move_sized(const rl_move_case *c, int64_t nbyte, int64_t size) {
    rl_move_case x = *c;
    int64_t n = nbyte / size, rest = 1;
    if (x.dim[1] == 0) x.dim[1] = (int64_t)sqrt((double)n);
    for (uint32_t i = 1; i < x.rank; i++) rest *= x.dim[i];
    x.dim[0] = (n + rest - 1) / rest > 1 ? (n + rest - 1) / rest : 1;
    return x;
}

/* The steps of dim perm[i], in what is read (from) and in what is written (to), dense both. */
static inline void rl_move_steps(const rl_move_case *c, int64_t *to, int64_t *from) {
    int64_t stride[RL_GRID_RANK] = {0}, step = 1;
    for (uint32_t i = c->rank; i-- > 0; step *= c->dim[i]) stride[i] = step;
    step = 1;
    for (uint32_t i = c->rank; i-- > 0; step *= c->dim[c->perm[i]]) to[i] = step, from[i] = stride[c->perm[i]];
}

#endif
