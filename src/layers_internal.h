/* What the three files of layers.h share: items in layers, and the links between one layer and the next. */
#ifndef RL_LAYERS_INTERNAL_H
#define RL_LAYERS_INTERNAL_H
#include "layers.h"

enum { RL_LAYER_GAP = 22, RL_LAYER_MARGIN = 16 }; /* pixels between neighbours, around the whole */

/* A box, or a place where a net passes a layer. */
typedef struct {
    uint32_t rank, pos; /* pos: in its layer, from the left */
    bool box;
    double w, x;        /* x: its middle */
} rl_item;

typedef struct { uint32_t *start, *item; } rl_joined; /* of item i: item[start[i]] .. item[start[i + 1]] */

typedef struct {
    rl_layers *l;
    rl_arena *mem;
    uint32_t nitem, nrank;
    rl_item *item;          /* the boxes first */
    uint32_t *chain;        /* [nnet] the first of its items; the net is cut where there is none (RL_NONE) and more than one rank between */
    uint32_t *start, *order; /* layer r: order[start[r]] .. order[start[r + 1]] */
    rl_joined up, down;
} rl_placing;

void rl_layers_order(rl_placing *p); /* fills in pos and order */
void rl_layers_x(rl_placing *p);     /* fills in x */

#endif
