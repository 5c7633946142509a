/* The command bench. */
#include <stdio.h>

#include "../runtime/bench.h"
#include "cmd.h"

static void show_runs(void *line, uint32_t done, uint32_t all) {
    char text[64];
    if (all) snprintf(text, sizeof text, "run %u of %u", done, all);
    else snprintf(text, sizeof text, "run %u", done);
    rl_progress(line, text);
}

static rl_status report_bench(rl_line *l, rl_graph *g, const rl_bench *b) {
    rl_text text = {.mem = &g->mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    if (l->json) {
        rl_bench_json(b, l->in, &text);
        RL_TRY(rl_line_write(l, l->json, &text));
        if (rl_is_stdio(l->json)) return RL_OK;
    }
    text.n = 0;
    rl_bench_table(b, &text);
    return rl_write_stdout(l, text.p, text.n);
}

static rl_status bench_graph(rl_line *l, rl_graph *g) {
    rl_bench b;
    RL_TRY(rl_line_check_path(l, l->json));
    RL_TRY(rl_line_read_plan(l, &g->mem));
    rl_line_set_run(l, show_runs);
    rl_status s = rl_bench_model(g, &l->run, &b);
    rl_progress(l, NULL);
    return s == RL_OK ? report_bench(l, g, &b) : s;
}

rl_status rl_cmd_bench(rl_line *l) {
    rl_graph *g;
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = bench_graph(l, g);
    rl_graph_free(g);
    return s;
}
