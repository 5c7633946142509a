/* Layouts with blocks of channels for the values of a network, chosen for a GPU by the exact solver (solve.h): which convolution runs in NCHW4, NCHW32,
 * CHWN4, NHWC ..., and where a value is converted.  What layouts and ops cost is a table,
 * src/blocks.def; nothing of it was measured.
 *
 *   x i8[32,64,56,56]  nchw
 *   y = QLinearConv(x)     nchw32      x is converted once, nchw -> nchw32
 *   z = QLinearConv(y)     nchw32      nothing between them
 *
 * The model is not changed: the choice is what a runtime with these kernels would be told. */
#ifndef RL_BLOCKS_H
#define RL_BLOCKS_H
#include "../src/gpu_costs.h"
#include "../src/text.h"

typedef struct { rl_node node; rl_blocks_layout layout; } rl_blocks_op;        /* of its output and the inputs with its dims */
typedef struct { rl_value value; rl_blocks_layout from, to; } rl_blocks_move;
typedef struct {
    uint32_t nop, nmove;
    const rl_blocks_op *op;     /* ops with a choice, in the graph's order */
    const rl_blocks_move *move;
    int64_t ns, bound, rows_ns; /* estimated; bound == ns where it is the least; all in nchw */
    bool optimal;
} rl_blocks;

/* Shapes are inferred, dims of images known (others stay nchw). */
rl_status rl_blocks_choose(const rl_graph *g, rl_arena *mem, double seconds, rl_blocks *out);
/* What one op costs there, in ns; -1: it does not run there. For tests. */
int64_t rl_blocks_cost(const rl_graph *g, const rl_nodeinfo *n, rl_blocks_layout l);
int64_t rl_blocks_move_cost(const rl_graph *g, rl_value v);
void rl_blocks_print(const rl_graph *g, const rl_blocks *b, rl_text *t);

#endif
