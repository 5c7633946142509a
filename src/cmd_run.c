/* The command run. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"

void rl_show_nodes(void *line, uint32_t done, uint32_t all) {
    char text[64];
    snprintf(text, sizeof text, "node %u of %u", done + 1, all);
    rl_progress(line, text);
}

static rl_status execute(rl_line *l, rl_graph *g) {
    rl_arena tmp;
    rl_arena_init(&tmp, l->ctx);
    rl_text text = {.mem = &tmp};
    l->run.input = l->inputs.item;
    l->run.ninput = l->inputs.n;
    l->run.dump_all = l->dump != NULL;
    l->run.reference = l->kernels && strcmp(l->kernels, "reference") == 0;
    l->run.progress = rl_show_nodes;
    l->run.user = l;
    RL_TRY(rl_line_read_plan(l, &tmp));
    rl_status s = rl_run_model(g, &l->run, &text);
    rl_progress(l, NULL);
    if (s == RL_OK) s = rl_write_stdout(l, text.p, text.n);
    rl_arena_free(&tmp);
    return s;
}

rl_status rl_cmd_run(rl_line *l) {
    rl_graph *g;
    RL_TRY(rl_line_wants_file(l, "run"));
    if (l->dump && !l->run.output_dir) return rl_usage_error(l, "--dump: where to? --output-dir DIR");
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = execute(l, g);
    rl_graph_free(g);
    return s;
}
