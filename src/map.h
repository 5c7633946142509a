/* Index maps: which element of the input each element of the output is.
 *
 * Whatever only moves data (Transpose, Slice, Gather with constant indices, Tile, Pad ...) is a function from the output's
 * row-major position to the input's.  Written down as mixed-radix digits, outermost first: digit i takes size[i] values, the sizes
 * multiply to the output's elements, and
 *
 *   position in the input = offset + the sum over digits of what digit i adds:
 *       sign * scale * x        an even step (scale 0: the same element again, as Expand does)
 *       scale * tab[x]          a table, for what no step says; RL_MAP_FILL: nothing is read there, the element is the fill value
 *
 *   x f32[2,3,4]  Transpose perm=[2,0,1]     4:1 2:12 3:4        (size:scale)
 *   x f32[6]      Slice [4:0:-2]             4 + 2:-2
 *   x f32[2,4]    Gather axis=1 {3,0,0,1}    3 + 2:4 4:{0,-3,-3,-2}
 *   x f32[3]      Pad {1,1}                  5:{_,0,1,2,_}
 *
 * Sizes and scales may be symbolic (dim.h), tables are numbers.  Several inputs lie one behind the other: what a Concat reads from its
 * second input has the first one's elements added.
 *
 * Every map that comes from here is canonical: no digit of one element; no table that a step says, or that can be cut in two; no
 * two neighbours that are one longer step; a table's first element that reads is 0 and its elements have no common factor.  Equal maps
 * then have equal digits, unless fill lies across them (then rl_map_equal looks at the elements).
 *
 * What digits cannot say (the composition of a merged axis with one that cuts across it) is worked out element by element,
 * then made canonical; only what cannot be told apart from the rest by digits, and no more than `limit` elements at a time.  With
 * symbols inside such a part there is no result.  */
#ifndef RL_MAP_H
#define RL_MAP_H
#include "ir.h"

#define RL_MAP_FILL INT64_MIN
enum { RL_MAP_MAXDIGIT = 40 };

typedef struct {
    rl_dim size, scale;
    int sign;           /* 1 or -1; 1 with a table */
    const int64_t *tab; /* NULL: a step */
} rl_mapdigit;

typedef struct {
    uint32_t n;
    rl_mapdigit *digit;
    rl_dim offset;
    bool fill; /* no element reads anything: one digit, of scale 0 */
} rl_map;

/* Where maps are made.  work: elements that may still be worked out one by one; it goes down. */
typedef struct { rl_ctx *ctx; rl_arena *mem; int64_t limit, work; } rl_maps;

/* The canonical map of these digits; false when there are too many. A table need not begin with 0. */
bool rl_map_make(rl_maps *m, uint32_t n, const rl_mapdigit *d, rl_dim offset, rl_map *out);
bool rl_map_identity(rl_maps *m, rl_dim n, rl_map *out);
/* element i of the output is element t[i] of the input */
bool rl_map_of_table(rl_maps *m, int64_t n, const int64_t *t, rl_map *out);

rl_dim rl_map_count(const rl_maps *m, const rl_map *f); /* elements of the output */
/* Exact, except that with symbols or beyond the limit two maps with fill may be equal and not be found so. */
bool rl_map_equal(rl_maps *m, const rl_map *f, const rl_map *g);
bool rl_map_is_identity(const rl_map *f, rl_dim n); /* of n elements: all of the input, in order */
/* The input's position for element i of the output; RL_MAP_FILL. All sizes, scales and the offset must be numbers. */
int64_t rl_map_at(const rl_map *f, int64_t i);
/* The same of all i, in sequence: out has room for as many, one at least. */
void rl_map_list(const rl_map *f, int64_t *out);
bool rl_map_is_known(const rl_map *f);

/* f: output -> middle, g: middle -> input; gives output -> input. */
bool rl_map_compose(rl_maps *m, const rl_map *f, const rl_map *g, rl_map *out);
/* For a map that reads each of the input's n elements exactly once: input -> output. */
bool rl_map_invert(rl_maps *m, const rl_map *f, rl_dim n, rl_map *out);
/* Outputs [outer, size[i], inner] of all maps, joined along the middle. */
bool rl_map_concat(rl_maps *m, uint32_t n, const rl_map *f, const rl_dim *size, rl_dim inner, rl_map *out);
/* Cuts the digits so that those from *at on have `inner` elements together (no longer canonical); false when no digit can be
 * cut there. */
bool rl_map_cut(rl_maps *m, const rl_map *f, rl_dim inner, rl_map *out, uint32_t *at);

bool rl_mapdigit_same(const rl_mapdigit *a, const rl_mapdigit *b);
/* Takes n elements off what may be worked out one by one; false when that is more than there is, or no number. */
bool rl_map_spend(rl_maps *m, rl_dim n);
void rl_map_print(rl_text *t, const rl_ctx *ctx, const rl_map *f);

/* What output `port` of a node takes from its input *slot.  False when the node computes, when a parameter that matters is not
 * constant, or where a symbol stands in the way.  Concat is not one map (see rl_map_concat). */
bool rl_map_of_node(rl_maps *m, const rl_graph *g, const rl_nodeinfo *n, uint32_t port, uint32_t *slot, rl_map *out);

/* The same from parameters.  x: the input's dims. */
bool rl_map_transpose(rl_maps *m, uint32_t rank, const rl_dim *x, const int64_t *perm, rl_map *out);
/* Per dim of x: first element, elements, step. */
bool rl_map_slice(rl_maps *m, uint32_t rank, const rl_dim *x, const rl_dim *start, const rl_dim *count, const int64_t *step, rl_map *out);
/* index[n]: along axis, any of -size .. size-1. */
bool rl_map_gather(rl_maps *m, uint32_t rank, const rl_dim *x, uint32_t axis, int64_t n, const int64_t *index, rl_map *out);
/* Broadcast x to y's dims; ranks may differ. */
bool rl_map_expand(rl_maps *m, uint32_t xrank, const rl_dim *x, uint32_t rank, const rl_dim *y, rl_map *out);
bool rl_map_tile(rl_maps *m, uint32_t rank, const rl_dim *x, const int64_t *repeat, rl_map *out);
typedef enum { RL_PAD_CONSTANT, RL_PAD_REFLECT, RL_PAD_EDGE, RL_PAD_WRAP } rl_pad_mode;
/* What a Pad has for its mode; false: another word. */
bool rl_pad_mode_of(const rl_nodeinfo *n, rl_pad_mode *mode);
/* Elements added (or, negative, taken away) before and after each dim. */
bool rl_map_pad(rl_maps *m, uint32_t rank, const rl_dim *x, const int64_t *before, const int64_t *after, rl_pad_mode how, rl_map *out);
/* x is [N,C,H,W]; columns first: ONNX's mode CRD. */
bool rl_map_depth_to_space(rl_maps *m, const rl_dim *x, int64_t block, bool columns_first, rl_map *out);
bool rl_map_space_to_depth(rl_maps *m, const rl_dim *x, int64_t block, bool columns_first, rl_map *out);

#endif
