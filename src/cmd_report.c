/* The command report: a model before and after, with the reasons of explain, as a page or a picture. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd.h"
#include "page.h"

typedef struct {
    rl_picpart part;
    rl_picture before, after;
    rl_outcome outcome;
    rl_explanation why;
    size_t in_bytes;
} findings;

static rl_status find_before(rl_line *l, rl_arena *mem, findings *f) {
    rl_graph *g;
    rl_outcome o;
    rl_status s = rl_line_read(l, &g);
    if (s == RL_OK) s = rl_run_passes(g, "", &l->pass, &o);
    if (s == RL_OK) s = rl_picture_of(g, &f->part, true, mem, &f->before);
    rl_graph_free(g);
    return s;
}

/* Of a part that was named only what is still there can be shown after; nothing, where the name is gone. */
static rl_status draw_after(const rl_graph *g, rl_arena *mem, findings *f) {
    rl_status s = rl_picture_of(g, &f->part, true, mem, &f->after);
    if (s != RL_EUSAGE) return s;
    f->after = (rl_picture){0};
    return RL_OK;
}

/* Whether the plan is carried out is known only when it was: one graph is optimized, another explained. */
static rl_status find_after(rl_line *l, rl_arena *mem, findings *f) {
    rl_graph *g = NULL, *done;
    rl_status s = rl_line_read(l, &done);
    if (s == RL_OK) s = rl_optimize(done, &l->pass, &f->outcome);
    if (s == RL_OK && f->outcome.changed) s = draw_after(done, mem, f);
    f->why = (rl_explanation){.path = l->in, .target = l->pass.target, .objective = l->pass.objective, .unchanged = !f->outcome.changed,
                              .after = f->outcome.conv_after};
    if (s == RL_OK) s = rl_line_read(l, &g);
    if (s == RL_OK) f->in_bytes = rl_onnx_bytes(g).n;
    if (s == RL_OK) s = rl_explain(g, done, &l->pass, mem, &f->why);
    rl_graph_free(g);
    rl_graph_free(done);
    return s;
}

static void put_picture(const findings *f, const rl_report *r, rl_text *t) {
    char was[160], now[160];
    snprintf(was, sizeof was, "before: %" PRId64 " Transposes that move data", r->before.moving);
    snprintf(now, sizeof now, "after: %" PRId64 "%s", r->after.moving, r->changed ? "" : ", nothing to improve");
    const rl_panel panel[] = {{&f->before, was}, {&f->after, now}};
    rl_picture_svg(panel, r->changed ? 2 : 1, t);
}

static rl_status write_report(rl_line *l, const findings *f, rl_arena *mem) {
    const rl_interface none = {0};
    rl_text t = {.mem = mem};
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_report r = {.in = l->in, .in_bytes = f->in_bytes, .target = l->pass.target, .objective = l->pass.objective};
    rl_summarize(&f->outcome, &none, mem, &r);
    r.total = rl_seconds() - l->start;
    if (l->svg) put_picture(f, &r, &t);
    else rl_page_html_text(&(rl_page){&r, &f->why, &f->before, r.changed ? &f->after : NULL}, &t);
    return rl_line_write(l, l->out, &t);
}

rl_status rl_cmd_report(rl_line *l) {
    findings f = {.part = {l->node, l->around}};
    rl_arena mem;
    if (!l->out) return rl_usage_error(l, "report: where does the page go? -o OUT");
    rl_arena_init(&mem, l->ctx);
    rl_status s = rl_line_check_path(l, l->out);
    if (s == RL_OK) s = find_before(l, &mem, &f);
    if (s == RL_OK) s = find_after(l, &mem, &f);
    if (s == RL_OK) s = write_report(l, &f, &mem);
    rl_arena_free(&mem);
    return s;
}
