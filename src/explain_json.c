/* JSON of explain.h; docs/explain.md describes it. */
#include "explain.h"

#include <inttypes.h>

#include "report.h"

static void put_key(rl_text *t, const char *key, const char *value) {
    rl_put(t, "\"%s\": ", key);
    rl_report_string(t, value);
}

static void json_body(const rl_exbody *b, rl_text *t);

static void json_node(const rl_exnode *n, rl_text *t) {
    if (!n->op && !n->output) {
        rl_put(t, "null");
        return;
    }
    rl_put(t, "{");
    put_key(t, "name", n->name);
    rl_put(t, ", ");
    put_key(t, "op", n->op);
    rl_put(t, ", ");
    put_key(t, "output", n->output);
    json_body(n->body, t);
    rl_put(t, "}");
}

/* A further member, of what is not in the main graph. */
static void json_body(const rl_exbody *b, rl_text *t) {
    if (!b) return;
    rl_put(t, ", \"body\": {");
    put_key(t, b->part ? "attribute" : "function", b->part ? b->part : b->of.op);
    rl_put(t, ", ");
    if (!b->part) put_key(t, "domain", b->of.name);
    else {
        rl_put(t, "\"of\": ");
        json_node(&b->of, t);
    }
    rl_put(t, "}");
}

static void json_tensor(const rl_extensor *x, rl_text *t) {
    rl_put(t, "{");
    put_key(t, "tensor", x->name);
    json_body(x->body, t);
    rl_put(t, "}");
}

static void json_path(const rl_expath *p, rl_text *t) {
    rl_put(t, "[");
    for (uint32_t i = 0; i < p->n; i++) {
        rl_put(t, "%s", i ? ", " : "");
        if (p->p[i].node.op) json_node(&p->p[i].node, t);
        else json_tensor(&p->p[i].tensor, t);
    }
    rl_put(t, "]");
}

/* The same tensors with their bodies, where one has such. */
static void json_places(const rl_exdemand *d, rl_text *t) {
    bool any = false;
    for (uint32_t i = 0; i < d->tensor.n; i++) any |= d->tensor.p[i].body != NULL;
    if (!any) return;
    rl_put(t, ", \"places\": [");
    for (uint32_t i = 0; i < d->tensor.n; i++) {
        if (i) rl_put(t, ", ");
        json_tensor(&d->tensor.p[i], t);
    }
    rl_put(t, "]");
}

static void json_demand(const rl_exdemand *d, rl_text *t) {
    static const char *const what[] = {"input", "output", "captured", "parameter", "fixed", "form", "considered"};
    rl_put(t, "{");
    put_key(t, "what", what[d->what]);
    rl_put(t, ", \"node\": ");
    json_node(&d->node, t);
    rl_put(t, ", \"tensors\": [");
    for (uint32_t i = 0; i < d->tensor.n; i++) {
        if (i) rl_put(t, ", ");
        rl_report_string(t, d->tensor.p[i].name);
    }
    rl_put(t, "]");
    json_places(d, t);
    rl_put(t, ", \"ways\": [");
    for (uint32_t i = 0, of = 0; i < d->need.n; i++) {
        rl_put(t, "%s", of ? ", " : i ? "], [" : "[");
        rl_report_string(t, d->need.p[i]);
        if (++of == d->tensor.n) of = 0;
    }
    rl_put(t, "%s], \"more_ways\": %" PRIu32 "}", d->need.n ? "]" : "", d->more);
}

static void json_remedy(const rl_exremedy *r, rl_text *t) {
    static const char *const kind[] = {"input-layout", "output-layout", "target-order", "target-flags", "rewrite", "kernel"};
    rl_put(t, "{");
    put_key(t, "kind", kind[r->kind]);
    rl_put(t, ", \"node\": ");
    json_node(&r->node, t);
    rl_put(t, ", ");
    put_key(t, "tensor", r->tensor.name);
    json_body(r->tensor.body, t);
    rl_put(t, ", ");
    put_key(t, "order", r->order);
    rl_put(t, ", ");
    put_key(t, "axes", r->axes);
    rl_put(t, "}");
}

/* A member that is a list: f prints each item. */
#define JSON_LIST(t, key, list, f)                                                                                   \
    do {                                                                                                             \
        rl_put(t, ",\n     \"%s\": [", key);                                                                         \
        for (uint32_t i_ = 0; i_ < (list).n; i_++) {                                                                 \
            if (i_) rl_put(t, ",\n       ");                                                                         \
            f(&(list).p[i_], t);                                                                                     \
        }                                                                                                            \
        rl_put(t, "]");                                                                                              \
    } while (0)

static void json_way(const rl_expath *p, rl_text *t) {
    rl_put(t, "{\"loop\": %s, \"steps\": ", p->loop ? "true" : "false");
    json_path(p, t);
    rl_put(t, "}");
}

static void json_charge(const rl_excharge *c, rl_text *t) {
    rl_put(t, "{\"tenths\": %" PRId64 ", \"node\": ", c->tenths);
    json_node(&c->node, t);
    rl_put(t, "}");
}

static void json_conversion(const rl_exconversion *c, uint32_t i, rl_text *t) {
    static const char *const reason[] = {"pair", "together", "choice", "open"};
    rl_put(t, "{\"id\": %" PRIu32 ", ", i + 1);
    put_key(t, "tensor", c->tensor.name);
    json_body(c->tensor.body, t);
    rl_put(t, ", ");
    put_key(t, "shape", c->shape);
    rl_put(t, ", \"bytes\": %" PRId64 ",\n     ", c->bytes);
    put_key(t, "made", c->made);
    rl_put(t, ", ");
    put_key(t, "needed", c->needed);
    rl_put(t, ", ");
    put_key(t, "axes_of", c->axes_of);
    rl_put(t, ",\n     \"maker\": ");
    json_node(&c->maker, t);
    JSON_LIST(t, "readers", c->reader, json_node);
    rl_put(t, ",\n     ");
    put_key(t, "reason", reason[c->reason]);
    rl_put(t, ", \"smallest\": %s", c->smallest ? "true" : "false");
    JSON_LIST(t, "demands", c->demand, json_demand);
    JSON_LIST(t, "paths", c->path, json_way);
    JSON_LIST(t, "removed_by", c->remedy, json_remedy);
    JSON_LIST(t, "charges", c->charge, json_charge);
    rl_put(t, "}");
}

static void json_transpose(const rl_extranspose *x, rl_text *t) {
    static const char *const fate[] = {"unused", "folded", "cancelled", "absorbed", "moved", "kept", "not-needed", "outside", "unknown", "closed"};
    rl_put(t, "{\"node\": ");
    json_node(&x->node, t);
    rl_put(t, ", ");
    put_key(t, "fate", fate[x->fate]);
    JSON_LIST(t, "with", x->with, json_node);
    rl_put(t, ", ");
    put_key(t, "form", x->form);
    rl_put(t, ", \"conversions\": [");
    for (uint32_t i = 0; i < x->conversion.n; i++) rl_put(t, "%s%" PRIu32, i ? ", " : "", x->conversion.p[i] + 1);
    rl_put(t, "], \"path\": ");
    json_path(&x->path, t);
    rl_put(t, "}");
}

void rl_explain_json(const rl_explanation *x, const char *node, rl_text *t, bool *any) {
    const char *comma = "";
    *any = false;
    rl_put(t, "{\n  \"schema\": \"relayout.explain/1\",\n  ");
    put_key(t, "input", x->path);
    rl_put(t, ",\n  ");
    put_key(t, "target", x->target);
    rl_put(t, ",\n  ");
    put_key(t, "objective", x->objective);
    rl_put(t, ",\n  \"changed\": %s,\n  \"solved\": %s,\n  \"conversions_after\": %" PRId64 ",\n  \"conversions\": [", x->unchanged ? "false" : "true",
           x->unsolved ? "false" : "true", x->after);
    for (uint32_t i = 0; i < x->conversion.n; i++) {
        if (!rl_exconversion_has(&x->conversion.p[i], node)) continue;
        rl_put(t, "%s\n    ", comma);
        json_conversion(&x->conversion.p[i], i, t);
        comma = ",";
        *any = true;
    }
    rl_put(t, "%s],\n  \"transposes\": [", *comma ? "\n  " : "");
    comma = "";
    for (uint32_t i = 0; i < x->transpose.n; i++) {
        if (!rl_extranspose_has(&x->transpose.p[i], node)) continue;
        rl_put(t, "%s\n    ", comma);
        json_transpose(&x->transpose.p[i], t);
        comma = ",";
        *any = true;
    }
    rl_put(t, "%s]\n}\n", *comma ? "\n  " : "");
}
