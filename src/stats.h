/* The numbers that relayout reports about a model, each recomputed from the graph alone: no pass counts for itself.
 *
 * Counted are nodes by what they are called, in the main graph and in every body.  Integer tensors of up to 64 elements are
 * shape arithmetic: a node that makes nothing else is counted in `nodes` alone, unless it is a Transpose.
 *
 *   rl_stats s;  rl_stats_of(g, &s);
 *   s.transposes == 9 && s.moving == 7      two of the nine only move dims of size 1: the bytes stay where they are
 */
#ifndef RL_STATS_H
#define RL_STATS_H
#include "ir.h"

/* field, name in tables.  transposes holds moving; the rest up to matmuls are the other nodes that move data. */
#define RL_STATS_FIELDS(X)                                                                                           \
    X(transposes, "Transpose")                                                                                       \
    X(moving, "Transpose that moves data")                                                                           \
    X(gathers, "Gather, GatherElements, GatherND")                                                                   \
    X(scatters, "ScatterElements, ScatterND")                                                                        \
    X(slices, "Slice")                                                                                               \
    X(splits, "Split")                                                                                               \
    X(concats, "Concat")                                                                                             \
    X(pads, "Pad")                                                                                                   \
    X(tiles, "Tile")                                                                                                 \
    X(expands, "Expand")                                                                                             \
    X(depth_space, "DepthToSpace, SpaceToDepth")                                                                     \
    X(einsums, "Einsum")                                                                                             \
    X(matmuls, "MatMul by a permutation")                                                                            \
    X(views, "Reshape, Squeeze, Unsqueeze, ...")                                                                     \
    X(nodes, "all nodes")                                                                                            \
    X(moved_bytes, "bytes moved by Transposes")

/* Bytes of what the other nodes that move data write, by kind. */
#define RL_STATS_BYTES(X)                                                                                            \
    X(gather_bytes, "bytes written by Gather")                                                                       \
    X(scatter_bytes, "bytes written by Scatter")                                                                     \
    X(slice_bytes, "bytes written by Slice")                                                                         \
    X(split_bytes, "bytes written by Split")                                                                         \
    X(concat_bytes, "bytes written by Concat")                                                                       \
    X(pad_bytes, "bytes written by Pad")                                                                             \
    X(tile_bytes, "bytes written by Tile")                                                                           \
    X(expand_bytes, "bytes written by Expand")                                                                       \
    X(depth_space_bytes, "bytes written by DepthToSpace")                                                            \
    X(einsum_bytes, "bytes written by Einsum")

typedef struct {
#define X(field, name) int64_t field;
    RL_STATS_FIELDS(X)
    RL_STATS_BYTES(X)
#undef X
    int64_t turning; /* of the Einsums: those that are Transposes that move data, by another name */
} rl_stats;

/* Types and shapes must have been inferred.  Bytes take every unknown dim as RL_STATS_GUESS, and count as often as the body around them runs. */
#define RL_STATS_GUESS 64
void rl_stats_of(const rl_graph *g, rl_stats *s);

/* How often a Loop's body runs that is reached `times` times: trips is the Loop's input 0, a constant; else that is guessed, as of a Scan's (RL_NOVALUE). */
int64_t rl_stats_turns(const rl_graph *g, rl_value trips, int64_t times);

void rl_stats_add(rl_stats *to, const rl_stats *s);

/* The conversions that a graph has as nodes of its own: Transposes that move data, whatever they are called. */
static inline int64_t rl_stats_conversions(const rl_stats *s) { return s->moving + s->turning; }

/* All nodes that move data, except Transposes. */
int64_t rl_stats_others(const rl_stats *s);

/* The bytes that they write. */
int64_t rl_stats_other_bytes(const rl_stats *s);

/* How many elements n dims make, with every unknown one taken as RL_STATS_GUESS. */
int64_t rl_stats_count(const rl_ctx *ctx, const rl_dim *dim, uint32_t n);

/* The bytes of `count` elements; 8 for a string. */
int64_t rl_stats_size(rl_dtype t, int64_t count);

/* The bytes of v; 0 where the rank is unknown. */
int64_t rl_stats_bytes(const rl_graph *g, rl_value v);

/* True when the Transpose n moves bytes, as far as known: false when it only moves dims of size 1. */
bool rl_transpose_moves(const rl_graph *g, const rl_nodeinfo *n);

/* How many of the Transposes that move data, whatever they are called, and that an output hangs on, do so in a second step: what they read one such makes for them alone of
 * such nodes, but for its shape, and for a QuantizeLinear and DequantizeLinear of one scale. Where a target charges, two may be quicker than the one that they come to. */
int64_t rl_stats_steps(const rl_graph *g);

/* The bytes that it moves; -1 when n is no Transpose, or moves none. */
int64_t rl_transpose_bytes(const rl_graph *g, const rl_nodeinfo *n);

/* The bytes that a node writes which moves data: of a Transpose those that it moves, of others (Slice, Concat ...) those of their
 * outputs.  -1 for all other nodes, views and shape arithmetic among them. */
int64_t rl_moved_bytes(const rl_graph *g, const rl_nodeinfo *n);

#endif
