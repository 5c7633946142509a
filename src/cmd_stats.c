/* The command stats. */
#include <inttypes.h>

#include "cmd.h"

static void put_stats(const rl_outcome *o, const rl_text *was, const rl_text *now, rl_text *t) {
    rl_report_counts(&o->before, t);
    if (was->n) {
        rl_put(t, "\nTransposes that move data:\n");
        rl_put_bytes(t, was->p, was->n);
    }
    const char *shown = o->proved != RL_PROVED_OPTIMAL ? "not proved" : o->shown.quick ? "proved: with fewer it is not quicker" : "proved";
    rl_put(t, "\nneeded at all: %" PRId64 " of %" PRId64 " (%s)\n", rl_stats_conversions(&o->after), rl_stats_conversions(&o->before), shown);
    if (o->changed && now->n) rl_put_bytes(t, now->p, now->n);
}

static rl_status report_stats(rl_line *l, const rl_outcome *o, const rl_text *was, const rl_text *now, rl_arena *mem) {
    rl_text t = {.mem = mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_report r = {.in = l->in, .target = l->pass.target, .objective = l->pass.objective};
    rl_summarize(o, &l->io, mem, &r);
    if (l->json) rl_report_stats_json(&r, was, o->changed ? now : was, &t);
    else put_stats(o, was, now, &t);
    return l->json ? rl_line_write(l, l->json, &t) : rl_write_stdout(l, t.p, t.n);
}

static rl_status stats_of(rl_line *l, rl_graph *g, rl_arena *mem) {
    rl_outcome o;
    rl_text was, now;
    RL_TRY(rl_optimize_listing(g, &l->pass, l->json, mem, &o, &was, &now));
    return report_stats(l, &o, &was, &now, mem);
}

rl_status rl_cmd_stats(rl_line *l) {
    rl_graph *g;
    rl_arena mem;
    rl_arena_init(&mem, l->ctx);
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = stats_of(l, g, &mem);
    rl_graph_free(g);
    rl_arena_free(&mem);
    return s;
}
