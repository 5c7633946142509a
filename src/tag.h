/* Tags: the names of layouts, read as letters and blocks.
 *
 *   aBcd16b        axis b is split: its outer part stands at B, a block of 16 of it innermost (oneDNN's letters: a is axis 0)
 *   nChw16c        the same with the letters of a family: n c d h w for data, g o i d h w for weights, t n c, l d i g o ...
 *   OIhw16i16o     ABcd16b16a: blocks stand in the order in which they lie in memory, the last one innermost
 *   NCHW4, CHWN4   MegEngine: a number at the end is a block of channels; aBcd4b, Bcda4b
 *   contiguous, row_major, column_major (any rank), channels_last (rank 4), channels_last_3d (rank 5)
 *
 * As a tag, nChw16c is   n = 5, axis = {0,1,2,3,1}, block = {0,0,0,0,16}:  first each axis once, then the blocks. */
#ifndef RL_TAG_H
#define RL_TAG_H
#include "base.h"

enum { RL_TAG_MAX = 52 };

typedef struct {
    uint32_t n;
    uint8_t axis[RL_TAG_MAX];
    int64_t block[RL_TAG_MAX]; /* 0: what the axis's blocks leave of it */
} rl_tag;

/* Reads the tag at *s for this rank and moves *s behind it. False: *why says why not, and *s is where. */
bool rl_tag_parse(const char **s, uint32_t rank, rl_tag *out, const char **why);

#endif
