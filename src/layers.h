/* Places the boxes of a graph in layers, so that every line goes down: what `relayout report` and `relayout dot --svg` draw.
 *
 * A net is one value: the box that makes it and the boxes that read it.  All of them share one line that goes down past the layers
 * between and leaves a branch at each reader, so a mask that forty blocks read is one line, not forty.
 *
 *   rl_box box[] = {{.w = 60, .h = 38}, {.w = 60, .h = 38}, {.w = 40, .h = 38}};      x -> Conv -> Add, x -> Add
 *   rl_net net[] = {{.from = 0, .to = (uint32_t[]){1, 2}, .nto = 2}, {.from = 1, .to = (uint32_t[]){2}, .nto = 1}};
 *   rl_layers l = {.mem = mem, .nbox = 3, .box = box, .nnet = 2, .net = net};
 *   rl_layers_place(&l);       box[i].x, .y: left upper corners;  net[0].path.p: "M.. ..v.." as SVG's <path d> has it
 *
 * The method is Sugiyama's: ranks by longest path (layers.c), order within a layer by sweeps that lessen the crossings
 * (layers_order.c), then places that are as near to what they are joined with as the order allows (layers_x.c). */
#ifndef RL_LAYERS_H
#define RL_LAYERS_H
#include "base.h"

typedef struct {
    int32_t w, h, x, y; /* w, h: given */
    bool fixed;         /* an input of the graph, which belongs to the top: what only other boxes without makers lead to stands beside its readers */
} rl_box;
typedef struct {
    uint32_t from;
    const uint32_t *to; /* each once, each after `from` in the list of boxes */
    uint32_t nto;
    rl_text path;
} rl_net;
typedef struct {
    rl_arena *mem;
    uint32_t nbox, nnet;
    rl_box *box;
    rl_net *net;
    int32_t width, height; /* of the whole */
} rl_layers;

void rl_layers_place(rl_layers *l);

#endif
