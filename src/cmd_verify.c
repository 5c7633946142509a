/* The command verify. */
#include "cmd.h"

static rl_status compare(rl_line *l, rl_graph *a, rl_graph *b) {
    rl_arena tmp;
    rl_arena_init(&tmp, l->ctx);
    rl_text text = {.mem = &tmp};
    l->run.input = l->inputs.item;
    l->run.ninput = l->inputs.n;
    l->run.progress = rl_show_nodes;
    l->run.user = l;
    rl_status s = rl_verify_models(a, b, &l->run, &text);
    rl_progress(l, NULL);
    if (s == RL_OK) s = rl_write_stdout(l, text.p, text.n);
    rl_arena_free(&tmp);
    return s;
}

rl_status rl_cmd_verify(rl_line *l) {
    rl_graph *a, *b = NULL;
    RL_TRY(rl_line_wants_file(l, "verify"));
    rl_status s = rl_line_read(l, &a);
    if (s == RL_OK) s = rl_line_read_other(l, l->file[1], &b);
    if (s == RL_OK) s = compare(l, a, b);
    rl_graph_free(a);
    rl_graph_free(b);
    return s;
}
