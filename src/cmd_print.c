/* The command print. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "text.h"

static rl_status print_graph(rl_line *l, const rl_graph *g) {
    rl_arena tmp;
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&tmp, l->ctx);
    rl_text t = {.mem = &tmp};
    rl_text_print(g, l->canonical, &t);
    rl_status s = rl_write_stdout(l, t.p, t.n);
    rl_arena_free(&tmp);
    return s;
}

static const char *const pass_names[] = {
#define PASS(name, summary) #name,
#include "../passes/passes.def"
#undef PASS
};

bool rl_passes_up_to(const char *last, char *names, size_t size) {
    names[0] = 0;
    for (size_t i = 0; i < RL_LEN(pass_names); i++) {
        size_t n = strlen(names);
        snprintf(names + n, size - n, "%s%s", n ? "," : "", pass_names[i]);
        if (strcmp(pass_names[i], last) == 0) return true;
    }
    return false;
}

rl_status rl_cmd_print(rl_line *l) {
    rl_graph *g;
    rl_outcome o;
    char names[256] = "";
    if (l->after && !rl_passes_up_to(l->after, names, sizeof names)) return rl_fail(l->ctx, RL_EUSAGE, "no pass '%s'; see relayout passes", l->after);
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = rl_run_passes(g, names, &l->pass, &o);
    if (s == RL_OK) s = print_graph(l, g);
    rl_graph_free(g);
    return s;
}
