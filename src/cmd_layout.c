/* The commands layout describe, offset, convert, draw and compare: runtime/layout_cmd.c carries them out. */
#include "cmd.h"

rl_status rl_cmd_layout(rl_line *l) {
    (void)l;
    return rl_usage_error("layout what? describe, offset, convert, draw or compare");
}

static rl_status layout(rl_line *l, rl_status (*what)(rl_ctx *ctx, const rl_layoutopt *o)) {
    for (int i = 0; i < l->nfile; i++) l->layout.arg[i] = l->file[i];
    l->layout.out = l->out;
    l->in = NULL; /* messages have their own words for it */
    return what(l->ctx, &l->layout);
}

rl_status rl_cmd_layout_describe(rl_line *l) { return layout(l, rl_layout_describe); }
rl_status rl_cmd_layout_offset(rl_line *l) { return layout(l, rl_layout_offset); }
rl_status rl_cmd_layout_convert(rl_line *l) { return layout(l, rl_layout_convert); }
rl_status rl_cmd_layout_draw(rl_line *l) { return layout(l, rl_layout_draw); }
rl_status rl_cmd_layout_compare(rl_line *l) { return layout(l, rl_layout_compare); }
