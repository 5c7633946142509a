/* Reads the op table, src/ops.def: one row per ONNX operator.
 *
 *   OP( id, "domain", "Type", CLASS, "roles" )
 *
 * id names the enum constant (RL_OP_Relu; com.microsoft ops are prefixed: RL_OP_ms_Gelu).  Rows are sorted by id.
 * CLASS says which orders of dims may meet at the op's operands; legal.c and lower.c have one handler per class:
 *
 *   POINTWISE   every input and output broadcasts together (numpy rules); any order. A dim of sizes that may turn out to be one, or 1, is not cut
 *   EXPAND      Expand: input 0 broadcast to a shape of numbers and sizes of inputs
 *   REDUCE      input 0 loses (or keeps as 1) the dims `axes`; any order
 *   GLOBALPOOL  GlobalAveragePool, GlobalMaxPool, GlobalLpPool: all dims after the first two become 1
 *   ARG         ArgMax, ArgMin: as REDUCE over one dim `axis`, which is a block
 *   ALONG       works along the dim `axis`, which is a block (Softmax, LogSoftmax, Hardmax, CumSum, TopK)
 *   CONCAT SPLIT SLICE PAD TILE GATHER   as named; the dims that change are blocks
 *   ELEMENTS    GatherElements, ScatterElements: along the dim `axis`, which is a block; the other dims of all inputs are those of input 0
 *   ONEHOT      OneHot: the result has a dim `axis` more than input 0, a block
 *   QDQ         QuantizeLinear, DequantizeLinear: per tensor any order, per axis that dim is a block
 *   BATCHNORM   inference, constant parameters; dim 1 is the channel
 *   NORM        LayerNormalization and its kin: dims from `axis` on are normalized and stay last
 *   GEMM        as named
 *   MATMUL      MatMul; and products of integers: with one scale and zero point for each matrix like MatMul, else as ROWS
 *   EINSUM      each operand and the result in any order by itself: its equation names the dims
 *   ROWS        each row of input 0 (its last dim) becomes a row of output 0, by a matrix or a vector that stays: dims before the last in any order
 *   WHOLE       DynamicQuantizeLinear: output 0 like input 0, in any order; the others are one number each, of all elements
 *   POOL        MaxPool, AveragePool, LpPool: the dims that the window moves over are blocks, side by side; where it moves over one, the rest any, else
 *               before or behind them
 *   RESIZE      Resize, Upsample: the resized dims are blocks
 *   MOVE        moves data only, one-to-one: Transpose Reshape Flatten Squeeze Unsqueeze Identity
 *   SHAPE       Shape, Size: looks at dims, not at data
 *   OPAQUE      logical order on every operand; Attention and RotaryEmbedding of [B,heads,S,size] are also written on [B,S,heads*size];
 *               what batch and channels of a Conv or QLinearConv of constant weights are made of comes in any order
 *
 * roles: words `axis=-1` (attribute with its default), `axis@1` (constant input 1), `axes`, `18+axes@1` (from opset 18 on
 * an input), `keepdims=1`.  A later word with a version wins from that version on. */
#ifndef RL_OPS_H
#define RL_OPS_H
#include "ir.h"

typedef enum {
    RL_POINTWISE, RL_EXPAND, RL_REDUCE, RL_GLOBALPOOL, RL_ARG, RL_ALONG, RL_CONCAT, RL_SPLIT, RL_SLICE, RL_PAD, RL_TILE,
    RL_GATHER, RL_ELEMENTS, RL_ONEHOT, RL_QDQ, RL_BATCHNORM, RL_NORM, RL_MATMUL, RL_GEMM, RL_EINSUM, RL_ROWS, RL_WHOLE, RL_POOL, RL_RESIZE, RL_MOVING, RL_SHAPE, RL_OPAQUE
} rl_class;

typedef struct { const char *id, *domain, *type; rl_class cls; const char *roles; } rl_oprow;
extern const rl_oprow rl_optable[RL_NOP];

/* The op of this domain and type; RL_OP_OPAQUE when the table has none, or when the model's version of the domain is outside
 * those that the rows hold for: ai.onnx from 7 on, and up to the newest that was read (schema.h), which also says whether
 * a node is what the op is known to be. rl_op_named: at any version. */
enum { RL_OPSET_OLDEST = 7 };
rl_op rl_op_find(rl_str domain, rl_str type, int64_t version);
rl_op rl_op_named(rl_str domain, rl_str type);
/* A warning where the model's version of ai.onnx is outside those: nothing will be improved. */
void rl_op_warn(const rl_graph *g);
rl_class rl_op_class(rl_op op);

/* The dim that the op works along, from attribute or constant input, made non-negative for input 0's rank.
 * False when it is not constant, or out of range. */
bool rl_op_axis(const rl_graph *g, const rl_nodeinfo *n, uint32_t *axis);
/* Likewise several, sorted, in mem.  *all is set when none are given (then n = 0). False when not constant. */
bool rl_op_axes(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem, const uint32_t **axes, uint32_t *naxes, bool *all);
/* The input that carries the axes at this node's opset, or RL_NONE when an attribute does. */
uint32_t rl_op_axes_input(const rl_nodeinfo *n);
bool rl_op_keepdims(const rl_nodeinfo *n);

/* Only the type of this input is read, not what it holds. */
static inline bool rl_gives_type(const rl_nodeinfo *n, uint32_t slot) {
    return n->op == RL_OP_CastLike && slot == 1;
}

/* The attribute that counts the heads of this input where it is [B,S,heads*size]; NULL: the op has no such form of it, beside
 * [B,heads,S,size] (Attention: q_num_heads of input 0, kv_num_heads of 1 and 2). */
const char *rl_op_heads(rl_op op, uint32_t input);

/* Whether it is a Dropout that may be training: what it drops hangs on each element's place. */
bool rl_op_may_train(const rl_graph *g, const rl_nodeinfo *n);
/* Whether a Slice takes every element from a start to an end that are constants: a dim that keeps its size is whole. */
bool rl_op_slices_runs(const rl_graph *g, const rl_nodeinfo *n, rl_arena *mem);
/* Whether a Resize takes the whole of its input to the sizes that are given, and of a dim that keeps its size each element where it is. */
bool rl_op_stretches(const rl_nodeinfo *n);
/* The input that has the factors of a Resize or an Upsample; RL_NONE: an attribute, before opset 9. */
uint32_t rl_op_scales_slot(const rl_nodeinfo *n);
/* These *count factors, floats that need not be aligned; NULL where it has none, or they are not known. */
const void *rl_op_scales(const rl_graph *g, const rl_nodeinfo *n, uint32_t *count);

/* Whether n, a QuantizeLinear or DequantizeLinear, has one f32 scale for all: that of `other`, which may be n, and its zero point. */
bool rl_op_has_scale_of(const rl_graph *g, const rl_nodeinfo *n, const rl_nodeinfo *other);

/* Has it, in input 1 or 2, a number for each place of this dim of its input? */
bool rl_op_has_scale_of_each(const rl_graph *g, const rl_nodeinfo *n, uint32_t slot, uint32_t dim);

/* How an operand of FusedMatMul lies: transA says that its last two dims are swapped, transBatchA that the first of the two
 * stands before the batch dims.  rl_turned_dim: where its logical dim i (batch dims, rows, columns) of `rank` is. */
typedef struct { bool swapped, batch; } rl_turned;
rl_turned rl_op_turned(const rl_nodeinfo *n, uint32_t input);
uint32_t rl_turned_dim(rl_turned t, uint32_t rank, uint32_t i);

/* What multiplies by weights: the inputs that are the weight and its bias (0: it has none), and those of one element, or of one for each row of the
 * weight (of a convolution, each filter). */
typedef struct { rl_op op; bool is_conv; uint8_t weight, bias, nrow, row[2]; } rl_layer;
/* NULL: it is none. */
const rl_layer *rl_op_layer(rl_op op);
static inline bool rl_op_is_conv(rl_op op) { return rl_op_layer(op) && rl_op_layer(op)->is_conv; }

/* A product of scaled integers: the inputs that belong to A and to B, in pairs, the matrices first; and others.
 *   QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)    pairs 0 3, 1 4, 2 5; others 6, 7 */
typedef struct { rl_op op; uint32_t npair; uint8_t pair[3][2]; uint32_t nother; uint8_t other[2]; } rl_scaled;
/* NULL: it is none. */
const rl_scaled *rl_op_scaled(rl_op op);

#endif
