/* What profile found, as JSON and as a table. */
#include <inttypes.h>

#include "../src/report.h"
#include "native_profile.h"

static void put_lay(const rl_probe *b, uint32_t lay, rl_text *t) {
    rl_put(t, "\"");
    rl_lay_put(&b->lay.p[lay], t);
    rl_put(t, "\"");
}

static void put_op(const rl_profile *p, uint32_t i, rl_text *t) {
    const rl_probe *b = &p->probe;
    const rl_probe_op *o = &b->op.p[i];
    rl_put(t, "%s\n    {\"op\": \"%s\", \"name\": ", i ? "," : "", o->type);
    rl_report_string(t, o->name);
    rl_put(t, ", \"step\": %d, \"pins\": [", o->outside ? -1 : (int)o->step);
    for (uint32_t k = 0; k < o->npin; k++) rl_put(t, "%s[%u, \"%s\"]", k ? ", " : "", o->pin[k].v.i, o->pin[k].out ? "out" : "in");
    rl_put(t, "], \"chosen\": %u, \"configurations\": [", p->chosen[i]);
    for (uint32_t c = 0; c < o->cfg.n; c++) {
        rl_put(t, "%s{\"ns\": %" PRId64 ", \"kernel\": ", c ? ", " : "", o->cfg.p[c].ns);
        rl_report_string(t, o->cfg.p[c].impl);
        rl_put(t, ", \"layouts\": [");
        for (uint32_t k = 0; k < o->npin; k++) {
            if (k) rl_put(t, ", ");
            put_lay(b, o->cfg.p[c].lay[k], t);
        }
        rl_put(t, "], \"plain\": %s}", o->cfg.p[c].plain ? "true" : "false");
    }
    rl_put(t, "]}");
}

void rl_profile_json(const rl_profile *p, const char *model, rl_text *t) {
    const rl_probe *b = &p->probe;
    rl_put(t, "{\n  \"schema\": \"relayout.profile/1\",\n  \"model\": ");
    rl_report_string(t, model);
    rl_put(t, ",\n  \"fast\": %s", p->fast ? "true" : "false");
    if (p->fast) {
        rl_put(t, ",\n  \"machine\": ");
        rl_report_string(t, p->machine);
        rl_put(t, ",\n  \"measured\": %u,\n  \"known\": %u,\n  \"fixed_ns\": %" PRId64 ",\n  \"whole_ns\": %" PRId64 ",\n",
               b->measured, b->known, b->fixed, p->whole);
        rl_put(t, "  \"predicted_ns\": %" PRId64 ",\n  \"bound_ns\": %" PRId64 ",\n  \"optimal\": %s,\n  \"checked\": %s,\n", p->predicted, p->bound,
               p->optimal ? "true" : "false", p->checked ? "true" : "false");
        rl_put(t, "  \"as_is\": %s,\n", p->as_is ? "true" : "false");
        rl_put(t, "  \"blocked\": %u,\n  \"moves\": %u,\n  \"runs\": %u,\n", p->nblocked, p->nmove, p->compared);
        rl_put(t, "  \"plan_ms\": %.6g,\n  \"plan_min_ms\": %.6g,\n  \"default_ms\": %.6g,\n  \"default_min_ms\": %.6g,\n", p->plan_ms, p->plan_least_ms,
               p->default_ms, p->default_least_ms);
        rl_put(t, "  \"ops\": [");
        for (uint32_t i = 0; i < b->op.n; i++) put_op(p, i, t);
        rl_put(t, "\n  ],\n  \"reorders\": [");
        for (uint32_t i = 0; i < b->move.n; i++) {
            const rl_probe_move *m = &b->move.p[i];
            rl_put(t, "%s\n    [%u, ", i ? "," : "", m->value);
            put_lay(b, m->from, t);
            rl_put(t, ", ");
            put_lay(b, m->to, t);
            rl_put(t, ", %" PRId64 "]", m->ns);
        }
        rl_put(t, "\n  ]");
    }
    rl_put(t, "\n}\n");
}

void rl_profile_table(const rl_profile *p, rl_text *t) {
    const rl_probe *b = &p->probe;
    rl_put(t, "on %s\n", p->machine);
    rl_put(t, "%u costs measured, %u known before; %u ops, of which %u outputs in blocks; %u moves\n", b->measured, b->known, b->op.n, p->nblocked, p->nmove);
    rl_put(t, "predicted %.3f ms, %s", (double)p->predicted * 1e-6, p->optimal ? "the least there is for these costs" : "and ");
    if (!p->optimal) rl_put(t, "no choice takes less than %.3f ms", (double)p->bound * 1e-6);
    rl_put(t, "\nwith the plan    median %.3f ms, least %.3f ms of %u runs\n", p->plan_ms, p->plan_least_ms, p->compared);
    rl_put(t, "without a plan   median %.3f ms, least %.3f ms\n\n", p->default_ms, p->default_least_ms);
    rl_put(t, "%-22s %10s  %-28s %s\n", "op", "us", "kernel", "layouts");
    for (uint32_t i = 0; i < b->op.n; i++) {
        const rl_probe_op *o = &b->op.p[i];
        const rl_probe_cfg *c = &o->cfg.p[p->chosen[i]];
        if (o->outside) continue;
        rl_put(t, "%-22.22s %10.1f  %-28.28s ", o->type, (double)c->ns * 1e-3, c->impl);
        for (uint32_t k = 0; k < o->npin; k++) {
            rl_put(t, k && o->pin[k].out && !o->pin[k - 1].out ? " > " : k ? " " : "");
            rl_lay_put(&b->lay.p[c->lay[k]], t);
        }
        rl_put(t, "\n");
    }
}
