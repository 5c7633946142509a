/* The command verify. */
#include "cmd.h"

static rl_status compare(rl_line *l, rl_graph *a, rl_graph *b) {
    rl_text text = {.mem = &a->mem};
    rl_verify_at at;
    rl_line_set_run(l, rl_show_nodes);
    rl_status s = rl_verify_models_at(a, b, &l->run, &text, &at);
    if (s != RL_OK && at == RL_AT_SECOND) l->in = l->file[1]; /* whom the message is about */
    return rl_line_show_run(l, s, &text);
}

rl_status rl_cmd_verify(rl_line *l) {
    rl_graph *a, *b = NULL;
    rl_status s = rl_line_read(l, &a);
    if (s == RL_OK) s = rl_line_read_other(l, l->file[1], &b);
    if (s == RL_OK) s = compare(l, a, b);
    rl_graph_free(a);
    rl_graph_free(b);
    return s;
}
