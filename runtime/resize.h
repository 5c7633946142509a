/* How one axis is resized: each place of the output is a weighted sum of a few places of the input.
 *
 *   in 2, out 4, linear, asymmetric, scale 2:   ntap 2,   index 0 1  0 1  1 1  1 1,   weight 1 0  .5 .5  1 0  .5 .5 */
#ifndef RL_RESIZE_H
#define RL_RESIZE_H
#include "kernels.h"

typedef enum { RL_RESIZE_NEAREST, RL_RESIZE_LINEAR, RL_RESIZE_CUBIC } rl_resize_mode;
typedef enum { RL_NEAR_FLOOR, RL_NEAR_CEIL, RL_NEAR_PREFER_FLOOR, RL_NEAR_PREFER_CEIL, RL_NEAR_SIMPLE } rl_nearest;
typedef enum {
    RL_MAP_HALF_PIXEL, RL_MAP_HALF_PIXEL_SYMMETRIC, RL_MAP_PYTORCH_HALF_PIXEL, RL_MAP_ALIGN_CORNERS, RL_MAP_ASYMMETRIC,
    RL_MAP_TF_HALF_PIXEL_FOR_NN, RL_MAP_TF_CROP_AND_RESIZE
} rl_resize_map;

/* The node's attributes. */
typedef struct {
    rl_resize_mode mode;
    rl_nearest nearest;
    rl_resize_map map;
    bool antialias, exclude_outside;
    double cubic_a, extrapolated;
} rl_resize;
rl_status rl_resize_read(const rl_call *c, rl_resize *r);

/* For each axis: the output's size, the scale, the region. x: for its dims. */
typedef struct { int64_t out[RL_RANK]; float scale[RL_RANK], from[RL_RANK], to[RL_RANK]; } rl_resize_sizes;
rl_status rl_resize_sizes_of(rl_call *c, const rl_resize *r, const rl_tensor *x, rl_resize_sizes *s);

typedef struct {
    int64_t in, out, ntap;
    int64_t *index;  /* [out][ntap], within the input */
    double *weight;  /* [out][ntap] */
    bool *outside;   /* [out]: crop_and_resize's place beyond the input; NULL: none */
    bool same;       /* the axis stays as it is */
} rl_resize_axis;
/* from, to: the part of the axis that crop_and_resize takes, 0 and 1 for all of it. RL_ELIMIT where the filter gets too large. */
rl_status rl_resize_plan(rl_call *c, const rl_resize *r, int64_t in, int64_t out, float scale, float from, float to, rl_resize_axis *a);

#endif
