/* The command dot. */
#include "cmd.h"
#include "picture.h"

static rl_status write_picture(rl_line *l, const rl_picture *p, rl_arena *mem) {
    rl_text t = {.mem = mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (l->svg) rl_picture_svg(&(rl_panel){p, l->in}, 1, &t);
    else rl_picture_dot(p, &t);
    return rl_line_write(l, l->out ? l->out : "-", &t);
}

static rl_status draw_model(rl_line *l, const char *passes, rl_arena *mem) {
    rl_graph *g;
    rl_outcome o;
    rl_picture p;
    const rl_picpart part = {l->node, l->around};
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = rl_run_passes(g, passes, &l->pass, &o);
    if (s == RL_OK) s = rl_picture_of(g, &part, l->svg, mem, &p);
    if (s == RL_OK) s = write_picture(l, &p, mem);
    rl_graph_free(g);
    return s;
}

rl_status rl_cmd_dot(rl_line *l) {
    rl_arena mem;
    char names[256] = "";
    if (l->after && !rl_passes_up_to(l->after, names, sizeof names)) return rl_fail(l->ctx, RL_EUSAGE, "no pass '%s'; see relayout passes", l->after);
    rl_arena_init(&mem, l->ctx);
    rl_status s = draw_model(l, names, &mem);
    rl_arena_free(&mem);
    return s;
}
