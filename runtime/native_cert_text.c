/* The certificate of a plan as text: see native_cert.h. */
#include <inttypes.h>
#include <string.h>

#include "native_cert.h"

/* ---- out ---- */

static void put_op(const rl_profile *p, uint32_t i, rl_text *t) {
    const rl_probe_op *o = &p->probe.op.p[i];
    if (o->step == RL_NONE) rl_put(t, "op - %s\n", o->type);
    else rl_put(t, "%s %u %s\n", o->outside ? "outside" : "op", o->step, o->type);
    for (uint32_t k = 0; k < o->npin; k++) rl_put(t, "pin %s %u\n", o->pin[k].out ? "out" : "in", o->pin[k].v.i);
    for (uint32_t c = 0; c < o->cfg.n; c++) {
        rl_put(t, "cfg %" PRId64, o->cfg.p[c].ns);
        for (uint32_t k = 0; k < o->npin; k++) rl_put(t, " %u", o->cfg.p[c].lay[k]);
        rl_put(t, o->cfg.p[c].plain ? " plain\n" : "\n");
    }
    rl_put(t, "chosen %u\n", p->chosen[i]);
}

void rl_plan_cert_print(const rl_profile *p, rl_text *t) {
    const rl_probe *b = &p->probe;
    const char *graph = strstr(p->plan.p, "\ngraph ") + 1, *end = strchr(graph, '\n');
    rl_put(t, RL_PLAN_CERT_HEAD "machine %s\n%.*s\nfixed %" PRId64 "\nlayouts", p->machine, (int)(end - graph), graph, b->fixed);
    for (uint32_t i = 0; i < b->lay.n; i++) {
        rl_put(t, " ");
        rl_lay_put(&b->lay.p[i], t);
    }
    rl_put(t, "\n");
    for (uint32_t i = 0; i < b->op.n; i++) put_op(p, i, t);
    for (uint32_t i = 0; i < b->move.n; i++) {
        const rl_probe_move *m = &b->move.p[i];
        if (m->from != m->to) rl_put(t, "move %u %u %u %" PRId64 "\n", m->value, m->from, m->to, m->ns);
    }
    for (uint32_t i = 0; i < p->drop.n; i++) rl_put(t, "drop %u %u %u\n", p->drop.p[i].op, p->drop.p[i].cfg, p->drop.p[i].by);
    rl_put(t, "claim %" PRId64 "\nend\n", p->predicted);
}

/* ---- in ---- */

enum { MOSTLAYS = 64, MOSTVALUE = 1 << 24 };
#define MOSTNS (INT64_C(1) << 52)

typedef struct {
    rl_ctx *ctx;
    rl_arena *mem;
    const char *p, *end;
    uint32_t line;
    rl_plan_cert *c;
} reader;

static rl_status refuse(const reader *r, const char *what) {
    return rl_fail(r->ctx, RL_EPROOF, "the plan's certificate, line %u: %s", r->line, what);
}

/* Steps over the text if it comes next. */
static bool skip(reader *r, const char *text) {
    size_t n = strlen(text);
    if ((size_t)(r->end - r->p) < n || !rl_same_bytes(r->p, text, n)) return false;
    for (const char *s = text; *s; s++) r->line += *s == '\n';
    r->p += n;
    return true;
}

/* A number from least to most, in decimal as it is printed. */
static rl_status number(reader *r, int64_t least, int64_t most, int64_t *x) {
    bool minus = least < 0 && skip(r, "-");
    const char *from = r->p;
    *x = 0;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9' && r->p - from < 18) *x = *x * 10 + (*r->p++ - '0');
    if (r->p == from || (*from == '0' && r->p - from > 1) || (minus && !*x)) return refuse(r, "a number is missing, or not as it is printed");
    if (minus) *x = -*x;
    return *x < least || *x > most ? refuse(r, "a number is out of range") : RL_OK;
}

static rl_status index_below(reader *r, uint32_t n, uint32_t *x) {
    int64_t i = 0;
    if (!n) return refuse(r, "a number of nothing");
    RL_TRY(number(r, 0, (int64_t)n - 1, &i));
    *x = (uint32_t)i;
    return RL_OK;
}

/* What is left of the line. */
static rl_status rest(reader *r, const char **s) {
    const char *nl = memchr(r->p, '\n', (size_t)(r->end - r->p));
    if (!nl || nl == r->p || memchr(r->p, 0, (size_t)(nl - r->p))) return refuse(r, "the line says nothing, or does not end");
    char *to = rl_new(r->mem, char, (size_t)(nl - r->p) + 1);
    memcpy(to, r->p, (size_t)(nl - r->p));
    r->p = nl;
    *s = to;
    return RL_OK;
}

static rl_status line_end(reader *r) {
    return skip(r, "\n") ? RL_OK : refuse(r, "more than belongs there, or less");
}

static rl_status read_layouts(reader *r) {
    struct { rl_lay *p; uint32_t n, cap; } lay = {0};
    if (!skip(r, "layouts")) return refuse(r, "\"layouts\" is missing");
    while (skip(r, " ") && lay.n < MOSTLAYS) {
        rl_lay l;
        const char *from = r->p;
        while (r->p < r->end && *r->p > ' ') r->p++;
        if (!rl_lay_parse(from, (size_t)(r->p - from), &l)) return refuse(r, "no layout");
        for (uint32_t i = 0; i < lay.n; i++)
            if (rl_lay_same(&lay.p[i], &l)) return refuse(r, "a layout twice");
        rl_push(r->mem, lay, l);
    }
    r->c->lay = lay.p, r->c->nlay = lay.n;
    return line_end(r);
}

static rl_status read_config(reader *r, uint32_t npin, rl_plan_cert_config *cfg) {
    uint32_t *lay = rl_new(r->mem, uint32_t, npin + 1u);
    cfg->lay = lay;
    RL_TRY(number(r, 0, MOSTNS, &cfg->ns));
    for (uint32_t k = 0; k < npin; k++) RL_TRY(skip(r, " ") ? index_below(r, r->c->nlay, &lay[k]) : refuse(r, "a layout is missing"));
    cfg->plain = skip(r, " plain");
    return line_end(r);
}

static rl_status read_op(reader *r, rl_plan_cert_op *o) {
    struct { rl_plan_cert_pin *p; uint32_t n, cap; } pin = {0};
    struct { rl_plan_cert_config *p; uint32_t n, cap; } cfg = {0};
    o->step = RL_NONE;
    if (o->outside || !skip(r, "-")) RL_TRY(index_below(r, RL_NONE, &o->step));
    o->outside = o->outside || o->step == RL_NONE;
    if (!skip(r, " ")) return refuse(r, "the op has no type");
    RL_TRY(rest(r, &o->type));
    RL_TRY(line_end(r));
    while (skip(r, "pin ")) {
        rl_plan_cert_pin e = {.out = skip(r, "out ")};
        if (!e.out && !skip(r, "in ")) return refuse(r, "a pin is in or out");
        RL_TRY(index_below(r, MOSTVALUE, &e.value));
        RL_TRY(line_end(r));
        r->c->nvalue = RL_MAX(r->c->nvalue, e.value + 1);
        rl_push(r->mem, pin, e);
    }
    while (skip(r, "cfg ")) {
        rl_plan_cert_config x;
        RL_TRY(read_config(r, pin.n, &x));
        rl_push(r->mem, cfg, x);
    }
    o->pin = pin.p, o->npin = pin.n, o->cfg = cfg.p, o->ncfg = cfg.n;
    if (!skip(r, "chosen ")) return refuse(r, "\"chosen\" is missing");
    RL_TRY(index_below(r, cfg.n, &o->chosen));
    return line_end(r);
}

static rl_status read_move(reader *r, rl_plan_cert_move *m) {
    RL_TRY(index_below(r, r->c->nvalue, &m->value));
    if (!skip(r, " ")) return refuse(r, "a layout is missing");
    RL_TRY(index_below(r, r->c->nlay, &m->from));
    if (!skip(r, " ")) return refuse(r, "a layout is missing");
    RL_TRY(index_below(r, r->c->nlay, &m->to));
    if (!skip(r, " ")) return refuse(r, "a time is missing");
    RL_TRY(number(r, 0, MOSTNS, &m->ns));
    return line_end(r);
}

static rl_status read_drop(reader *r, const rl_plan_cert_op *op, uint32_t nop, rl_profile_drop *d) {
    RL_TRY(index_below(r, nop, &d->op));
    if (!skip(r, " ")) return refuse(r, "a configuration is missing");
    RL_TRY(index_below(r, op[d->op].ncfg, &d->cfg));
    if (!skip(r, " ")) return refuse(r, "a configuration is missing");
    RL_TRY(index_below(r, op[d->op].ncfg, &d->by));
    return line_end(r);
}

static rl_status read_head(reader *r) {
    if (!skip(r, RL_PLAN_CERT_HEAD)) return refuse(r, "it does not start as one");
    if (!skip(r, "machine ")) return refuse(r, "\"machine\" is missing");
    RL_TRY(rest(r, &r->c->machine));
    if (!skip(r, "\ngraph ")) return refuse(r, "\"graph\" is missing");
    RL_TRY(rest(r, &r->c->graph));
    if (!skip(r, "\nfixed ")) return refuse(r, "\"fixed\" is missing");
    RL_TRY(number(r, -MOSTNS, MOSTNS, &r->c->fixed));
    RL_TRY(line_end(r));
    return read_layouts(r);
}

rl_status rl_plan_cert_parse(rl_ctx *ctx, rl_arena *mem, const char *text, size_t n, rl_plan_cert *c) {
    reader r = {ctx, mem, text, text + n, 1, c};
    struct { rl_plan_cert_op *p; uint32_t n, cap; } op = {0};
    struct { rl_plan_cert_move *p; uint32_t n, cap; } move = {0};
    struct { rl_profile_drop *p; uint32_t n, cap; } drop = {0};
    *c = (rl_plan_cert){0};
    RL_TRY(read_head(&r));
    for (bool outside = false; (outside = skip(&r, "outside ")) || skip(&r, "op ");) {
        rl_plan_cert_op x = {.outside = outside};
        RL_TRY(read_op(&r, &x));
        rl_push(mem, op, x);
    }
    while (skip(&r, "move ")) {
        rl_plan_cert_move x;
        RL_TRY(read_move(&r, &x));
        rl_push(mem, move, x);
    }
    while (skip(&r, "drop ")) {
        rl_profile_drop x;
        RL_TRY(read_drop(&r, op.p, op.n, &x));
        rl_push(mem, drop, x);
    }
    c->op = op.p, c->nop = op.n, c->move = move.p, c->nmove = move.n, c->drop = drop.p, c->ndrop = drop.n;
    if (!skip(&r, "claim ")) return refuse(&r, "\"claim\" is missing");
    RL_TRY(number(&r, -MOSTNS, MOSTNS, &c->claim));
    if (!skip(&r, "\nend\n") || r.p != r.end) return refuse(&r, "\"end\" is missing, or not the last line");
    return RL_OK;
}

/* ---- the plan ---- */

void rl_plan_cert_plan(const rl_plan_cert *c, rl_text *t) {
    rl_put(t, "relayout-plan 1\nmachine %s\ngraph %s\npredicted %" PRId64 "\n", c->machine, c->graph, c->claim);
    for (uint32_t i = 0; i < c->nop; i++) {
        const rl_plan_cert_op *o = &c->op[i];
        bool arrow = false;
        if (o->outside) continue;
        rl_put(t, "op %u %s", o->step, o->type);
        for (uint32_t k = 0; k < o->npin; k++) {
            if (o->pin[k].out && !arrow) rl_put(t, " >"), arrow = true;
            rl_put(t, " ");
            rl_lay_put(&c->lay[o->cfg[o->chosen].lay[k]], t);
        }
        rl_put(t, o->cfg[o->chosen].plain ? " plain\n" : "\n");
    }
    rl_put(t, "end\n");
}
