/* The command run. */
#include <string.h>

#include "cmd.h"

static rl_status execute(rl_line *l, rl_graph *g) {
    rl_arena tmp;
    rl_arena_init(&tmp, l->ctx);
    rl_text text = {.mem = &tmp};
    l->run.input = l->inputs.item;
    l->run.ninput = l->inputs.n;
    l->run.dump_all = l->dump != NULL;
    l->run.reference = l->kernels && strcmp(l->kernels, "reference") == 0;
    rl_status s = rl_run_model(g, &l->run, &text);
    if (s == RL_OK) s = rl_write_stdout(l, text.p, text.n);
    rl_arena_free(&tmp);
    return s;
}

rl_status rl_cmd_run(rl_line *l) {
    rl_graph *g;
    RL_TRY(rl_line_wants_file(l, "run"));
    if (l->dump && !l->run.output_dir) return rl_usage_error("--dump: where to? --output-dir DIR");
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = execute(l, g);
    rl_graph_free(g);
    return s;
}
