/* Layouts: in which order a tensor's digits lie in memory.
 *
 * A digit is a piece of a logical axis.  f32[2,3,8] with nothing split has three digits, one per axis, called a, b, c; the
 * row-major layout is abc, channels-last is acb: c varies slower than b.  With the 8 split into 4*2 there are four,
 * a(2) b(3) c(4) d(2), c and d together the last axis, and memory order c,a,b,d is
 *
 *   n = 4   axis = {2,0,1,2}   sub = {0,0,0,1}   size = {4,2,3,2}          printed  Cab2c
 *
 * A canonical layout has no digit of size 1 (an axis of one element has none), no digit that could be joined with its
 * neighbour in memory (pieces s and s+1 of one axis, side by side), and is NULL when it is row-major.  So two canonical
 * layouts of one type are the same order of memory iff rl_layout_equal.  All functions here return canonical layouts.
 *
 * Text, after the @ of a type; axes are letters, one of one element stands where it disturbs least:
 *   acdb                 whole axes in memory order
 *   aBcd16b              oneDNN: b is split; its outer part stands at B, a block of 16 of it innermost
 *   "ab(cd)->dabc d=2"   anything else: the digits as the logical axes group them, as they lie in memory, and the sizes
 * Read, never printed: the other names of tag.h, nhwc, hwio, nChw8c, NCHW4 and the like. */
#ifndef RL_LAYOUT_H
#define RL_LAYOUT_H
#include "ir.h"

enum { RL_MAXDIGIT = 52 }; /* of a layout that has a text */

/* The canonical layout of these digits, in mem.  NULL: row-major. The sizes of an axis's digits multiply to its dim. */
const rl_layout *rl_layout_make(rl_arena *mem, uint32_t n, const uint8_t *axis, const uint8_t *sub, const rl_dim *size);
/* True when no axis is split: perm[i] is the logical axis that is i-th in memory (nhwc: 0,2,3,1). */
bool rl_layout_is_perm(const rl_layout *l, uint32_t rank, uint32_t *perm);
bool rl_layout_equal(const rl_layout *a, const rl_layout *b);

/* Without the @; nothing for NULL. */
void rl_layout_print(rl_text *t, const rl_layout *l, uint32_t rank, const rl_dim *dim);
/* Reads what stands behind the @, from a text that ends with 0, and moves *s behind it.  False: the text is no layout of
 * this type, *why says why, and *s is where. */
bool rl_layout_parse(rl_arena *mem, const char **s, uint32_t rank, const rl_dim *dim, const rl_layout **out, const char **why);

/* Reads an order of whole axes, nhwc or acdb, to its end: perm[rank] as above, axes of one element in their places, too. */
bool rl_layout_parse_perm(rl_arena *mem, const char *s, uint32_t rank, uint32_t *perm, const char **why);

#endif
