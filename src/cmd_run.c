/* The command run. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"

void rl_show_nodes(void *line, uint32_t done, uint32_t all) {
    char text[64];
    snprintf(text, sizeof text, "node %u of %u", done + 1, all);
    rl_progress(line, text);
}

void rl_line_set_run(rl_line *l, void (*progress)(void *line, uint32_t done, uint32_t all)) {
    l->run.input = l->inputs.item;
    l->run.ninput = l->inputs.n;
    l->run.reference = l->kernels && strcmp(l->kernels, "reference") == 0;
    l->run.progress = progress;
    l->run.user = l;
}

rl_status rl_line_show_run(rl_line *l, rl_status s, const rl_text *text) {
    rl_progress(l, NULL);
    return s == RL_OK ? rl_write_stdout(l, text->p, text->n) : s;
}

static rl_status execute(rl_line *l, rl_graph *g) {
    rl_text text = {.mem = &g->mem};
    rl_line_set_run(l, rl_show_nodes);
    l->run.dump_all = l->dump != NULL;
    RL_TRY(rl_line_read_plan(l, &g->mem));
    return rl_line_show_run(l, rl_run_model(g, &l->run, &text), &text);
}

rl_status rl_cmd_run(rl_line *l) {
    rl_graph *g;
    if (l->dump && !l->run.output_dir) return rl_usage_error(l, "--dump: where to? --output-dir DIR");
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = execute(l, g);
    rl_graph_free(g);
    return s;
}
