/* The command explain. */
#include "cmd.h"

static rl_status report_explain(rl_line *l, const rl_explanation *x, rl_arena *mem) {
    rl_text t = {.mem = mem};
    bool any;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (l->json) rl_explain_json(x, l->node, &t, &any);
    else rl_explain_text(x, l->node, &t, &any);
    if (l->node && !any) return rl_fail(l->ctx, RL_EUSAGE, "no conversion or Transpose has to do with a node or tensor '%s'", l->node);
    return l->json ? rl_line_write(l, l->json, &t) : rl_write_stdout(l, t.p, t.n);
}

/* Whether the plan is carried out is known only when it was: one graph is optimized, another explained. */
static rl_status explain_model(rl_line *l, rl_arena *mem) {
    rl_graph *g = NULL, *done;
    rl_outcome o = {0};
    rl_status s = rl_line_read(l, &done);
    if (s == RL_OK) s = rl_optimize(done, &l->pass, &o);
    rl_explanation x = {.path = l->in, .target = l->pass.target, .objective = l->pass.objective, .unchanged = !o.changed, .after = o.conv_after};
    if (s == RL_OK) s = rl_line_read(l, &g);
    if (s == RL_OK) s = rl_explain(g, done, &l->pass, mem, &x);
    if (s == RL_OK) s = report_explain(l, &x, mem);
    rl_graph_free(g);
    rl_graph_free(done);
    return s;
}

rl_status rl_cmd_explain(rl_line *l) {
    rl_arena mem;
    rl_arena_init(&mem, l->ctx);
    rl_status s = explain_model(l, &mem);
    rl_arena_free(&mem);
    return s;
}
