/* The commands layout describe, offset, convert, draw and compare: runtime/layout_cmd.c carries them out; and layout place. */
#include "../passes/blocks.h"
#include "cmd.h"
#include "shape.h"

rl_status rl_cmd_layout(rl_line *l) {
    (void)l;
    return rl_usage_error(l, "layout what? describe, offset, convert, draw, compare or place");
}

static rl_status layout(rl_line *l, rl_status (*what)(rl_ctx *ctx, const rl_layoutopt *o)) {
    for (int i = 0; i < l->nfile; i++) l->layout.arg[i] = l->file[i];
    l->layout.out = l->out && rl_is_stdio(l->out) ? NULL : l->out;
    l->in = NULL; /* messages have their own words for it */
    return what(l->ctx, &l->layout);
}

rl_status rl_cmd_layout_describe(rl_line *l) { return layout(l, rl_layout_describe); }
rl_status rl_cmd_layout_offset(rl_line *l) { return layout(l, rl_layout_offset); }
rl_status rl_cmd_layout_convert(rl_line *l) { return layout(l, rl_layout_convert); }
rl_status rl_cmd_layout_draw(rl_line *l) { return layout(l, rl_layout_draw); }
rl_status rl_cmd_layout_compare(rl_line *l) { return layout(l, rl_layout_compare); }

static rl_status place(rl_line *l, rl_graph *g) {
    rl_blocks b;
    rl_text t = {.mem = &g->mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    RL_TRY(rl_shape_infer(g));
    RL_TRY(rl_blocks_choose(g, &g->mem, l->pass.time_limit > 0 ? l->pass.time_limit : 5, &b));
    rl_blocks_print(g, &b, &t);
    return rl_write_stdout(l, t.p, t.n);
}

rl_status rl_cmd_layout_place(rl_line *l) {
    rl_graph *g;
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = place(l, g);
    rl_graph_free(g);
    return s;
}
