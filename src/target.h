/* Targets: which forms of an op a runtime can run, and what those and conversions cost there.
 *
 * src/targets.def holds the targets that are built in; a file with the same rows describes a user's own:
 *
 *   TARGET( acme, "the ACME accelerator" )              opens a target
 *   LIKE( acme, generic )                               takes over all rows of another; what follows wins
 *   CHARGE( acme, SOFTMAX_OFF_LAST, 0 )                 a form costs so many tenths of a conversion of the op's result
 *   MOVE( acme, RATE, 100000 )                          what a conversion takes: RL_MOVES below
 *   FORM( acme, FUSED_MATMUL, "f32 f16" )               the target has com.microsoft.FusedMatMul for these types
 *   RUN( acme, Conv, nhwc, "f32", "acme::NhwcConv" )    it runs Conv with input 0 and output 0 in this order, under that name
 *
 * Rows are read and printed by the same code whether they are built in or come from a file (rl_targets_parse), so the file
 * that `relayout targets` prints reads as the same table.  Comments are C's. */
#ifndef RL_TARGET_H
#define RL_TARGET_H
#include "ir.h"

/* Forms that may be charged: name, meaning. */
#define RL_CHARGES(X)                                                                                                \
    X(SOFTMAX_OFF_LAST, "Softmax, LogSoftmax or Hardmax with anything after its axis")                               \
    X(REDUCE_OFF_LAST, "a reduction with anything after the dims that it reduces")                                   \
    X(GEMM_TRANS_A, "Gemm that reads its data transposed")                                                           \
    X(GEMM_TRANS_B, "MatMul of two variables as a Gemm that reads the right one transposed; of that")                \
    X(GEMM_TRANS_OUT, "Gemm that makes its result transposed")                                                       \
    X(WEIGHT_LEFT, "MatMul with the weight on the left")                                                             \
    X(LEFT_EVEN, "the same where the columns behind are one atom that 32 divides; 0: as WEIGHT_LEFT")                \
    X(LEFT_NARROW, "and with few columns behind, in a small result, if that is more; divided by these")              \
    X(OF_BYTES, "GEMM_TRANS_A, GEMM_TRANS_OUT and WEIGHT_LEFT where DequantizeLinear makes the weight: on top of it") \
    X(SWAPPED_PRODUCT, "MatMul of two variables as the transposed product")                                          \
    X(CONCAT_LAST, "Concat or Split along the innermost dim, in short pieces")                                       \
    X(RUN_LAST, "Tile, Gather, Concat or Split along the innermost dim, in runs of few elements; divided by these")  \
    X(RUN_ONE, "Concat or Split along the innermost dim, of two or three single elements; 0: as RUN_LAST")           \
    X(EXPAND_LAST, "Expand along the innermost dim, of few times; divided by these")                                 \
    X(REPEAT_LAST, "Expand or Tile along the innermost dim that becomes a Resize: in place of what these are charged") \
    X(ALONG_LAST, "CumSum, or scales of QuantizeLinear or DequantizeLinear, along the innermost dim")                \
    X(RESIZE_OFF_LAST, "Resize with anything after the dims that it resizes")                                        \
    X(ELEMENTS_OFF_LAST, "GatherElements with anything after its axis")                                              \
    X(POOL_OFF_LAST, "a pool over several dims with anything after these")                                           \
    X(POOL_NARROW, "a pool over one dim with few elements innermost; divided by these")                              \
    X(EINSUM_TURNED, "Einsum with an operand or result that its product of matrices has otherwise; of that")         \
    X(FUSED_FLAG, "each flag of a FusedMatMul")

/* What a conversion takes. */
#define RL_MOVES(X)                                                                                                  \
    X(FIXED, "ns of any conversion, whatever it moves")                                                              \
    X(RATE, "bytes in a microsecond, where one group of dims moves past others or the last stays last")               \
    X(OTHER, "tenths: how much longer per byte any other permutation takes")                                         \
    X(INTO_MATMUL, "tenths: of one that swaps the last two groups and that only MatMul reads, on the right")         \
    X(FROM_CONV, "tenths: of a Transpose right behind a Conv that puts the channels last")

/* Forms that only some targets have. FusedMatMul is no portable ONNX. */
#define RL_EXTRAS(X)                                                                                                 \
    X(FUSED_MATMUL, "com.microsoft.FusedMatMul with transA and transB, for these types")                             \
    X(FUSED_BATCH, "and with transBatchA and transBatchB")                                                           \
    X(PARTED_MATMUL, "MatMul with each part of a constant matrix, for these types")

#define X(name, help) RL_##name,
enum { RL_CHARGES(X) RL_NCHARGE };
#undef X
#define X(name, help) RL_MOVE_##name,
enum { RL_MOVES(X) RL_NMOVE };
#undef X
#define X(name, help) RL_EXTRA_##name,
enum { RL_EXTRAS(X) RL_NEXTRA };
#undef X

enum { RL_RUNRANK = 6 };

/* An op that the target runs in an order of its own. */
typedef struct {
    rl_str op;                  /* ONNX's name, domain "" */
    uint32_t rank;
    uint32_t perm[RL_RUNRANK];  /* perm[i]: the logical axis that is i-th in memory; nhwc 0,2,3,1 */
    uint64_t types;             /* bit per rl_dtype of input 0 */
    rl_str domain, type;        /* what it is written as */
    rl_str attr;                /* "", or "name=1": set on the node, or "name=-": left out */
    rl_str order, as;           /* as the row has them */
} rl_target_run;

typedef struct {
    rl_str name, summary;
    int64_t charge[RL_NCHARGE]; /* tenths of a conversion */
    int64_t move[RL_NMOVE];
    uint64_t extra[RL_NEXTRA];  /* bit per rl_dtype */
    struct { rl_target_run *p; uint32_t n, cap; } run;
} rl_target;

typedef struct { rl_target *p; uint32_t n, cap; } rl_targets;

/* The table that is built in, in mem. */
rl_status rl_targets_builtin(rl_arena *mem, rl_targets *all);
/* Reads rows and appends their targets; messages are "file:line: what". */
rl_status rl_targets_parse(rl_arena *mem, const char *file, const char *s, size_t n, rl_targets *all);
void rl_target_print(const rl_target *t, rl_text *out);
/* Is that the path of a file: it has a /, ends in .def, or is no target's name and there? */
bool rl_target_is_file(const char *name);
/* The target of this name, or the last one of the file that `name` is the path of. */
rl_status rl_target_find(rl_arena *mem, const char *name, const rl_target **out);

/* Tenths of the time in which an ordinary conversion moves one byte: what a conversion of so many bytes takes. */
int64_t rl_target_move(const rl_target *t, int64_t bytes, int64_t tenths);
/* The same as ns. */
int64_t rl_target_ns(const rl_target *t, int64_t tenths);
bool rl_target_charges(const rl_target *t); /* any form at all */
bool rl_types_have(uint64_t types, rl_dtype t);
/* Whether the row is about this node, whose input 0 has that type and rank. */
bool rl_run_fits(const rl_target_run *run, const rl_nodeinfo *n, rl_dtype type, uint32_t rank);

#endif
