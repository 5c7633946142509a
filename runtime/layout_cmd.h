/* The commands `layout describe`, `offset`, `convert`, `draw` and `compare`, as functions. They print to stdout; what went wrong is
 * in the context. */
#ifndef RL_LAYOUT_CMD_H
#define RL_LAYOUT_CMD_H
#include "../src/base.h"

/* What was typed; NULL where nothing was. */
typedef struct {
    const char *shape, *dtype, *strides, *pad, *offset, *index, *from, *to, *out;
    const char *arg[2]; /* layouts; of convert the files */
} rl_layoutopt;

rl_status rl_layout_describe(rl_ctx *ctx, const rl_layoutopt *o);
rl_status rl_layout_offset(rl_ctx *ctx, const rl_layoutopt *o);
rl_status rl_layout_convert(rl_ctx *ctx, const rl_layoutopt *o);
rl_status rl_layout_draw(rl_ctx *ctx, const rl_layoutopt *o);
rl_status rl_layout_compare(rl_ctx *ctx, const rl_layoutopt *o);

#endif
