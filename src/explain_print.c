/* Text and JSON of explain.h. */
#include "explain.h"

#include <inttypes.h>
#include <string.h>

#include "report.h"

/* ---- what --node asks for ---- */

static bool is_word(const char *s, const char *word) { return s && strcmp(s, word) == 0; }

static bool node_is(const rl_exnode *n, const char *word) { return is_word(n->name, word) || is_word(n->output, word); }

static bool path_has(const rl_expath *p, const char *word)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (is_word(p->p[i].tensor, word) || node_is(&p->p[i].node, word)) return true;
    return false;
}

static bool conversion_has(const rl_exconversion *c, const char *word)
{
    bool has = !word || is_word(c->tensor, word) || node_is(&c->maker, word);
    for (uint32_t i = 0; i < c->reader.n; i++) has |= word && node_is(&c->reader.p[i], word);
    for (uint32_t i = 0; i < c->demand.n; i++) {
        has |= word && node_is(&c->demand.p[i].node, word);
        for (uint32_t k = 0; k < c->demand.p[i].tensor.n; k++) has |= word && is_word(c->demand.p[i].tensor.p[k], word);
    }
    for (uint32_t i = 0; i < c->path.n; i++) has |= word && path_has(&c->path.p[i], word);
    return has;
}

static bool transpose_has(const rl_extranspose *t, const char *word)
{
    bool has = !word || node_is(&t->node, word) || path_has(&t->path, word);
    for (uint32_t i = 0; i < t->with.n; i++) has |= word && node_is(&t->with.p[i], word);
    return has;
}

/* ---- text ---- */

static void put_node(const rl_exnode *n, rl_text *t)
{
    if (!n->op) rl_put(t, "`%s`", n->output ? n->output : "?");
    else if (n->name) rl_put(t, "`%s` (%s)", n->name, n->op);
    else rl_put(t, "%s that makes `%s`", n->op, n->output ? n->output : "?");
}

/* "1,2 in `a` with 2,1 in `b`, or 2,1 in `a` with 1,2 in `b`"; of one tensor "1,2 or 2,1 in `a`". */
static void put_needs(const rl_exdemand *d, rl_text *t)
{
    uint32_t n = d->tensor.n;
    for (uint32_t i = 0; i < d->need.n; i++) {
        if (i) rl_put(t, "%s", i % n ? " with " : n > 1 ? ", or " : " or ");
        rl_put(t, "%s", d->need.p[i]);
        if (n > 1) rl_put(t, " in `%s`", d->tensor.p[i % n]);
    }
    if (d->more) rl_put(t, "%s or %" PRIu32 " more ways", n > 1 ? "," : "", d->more);
    if (n == 1) rl_put(t, " in `%s`", d->tensor.p[0]);
    rl_put(t, "\n");
}

static void put_demand(const rl_exdemand *d, rl_text *t)
{
    rl_put(t, "  ");
    switch (d->what) {
    case RL_EX_INPUT: rl_put(t, "graph input `%s` comes in %s\n", d->tensor.p[0], d->need.p[0]); return;
    case RL_EX_OUTPUT: rl_put(t, "graph output `%s` must be in %s\n", d->tensor.p[0], d->need.p[0]); return;
    case RL_EX_CAPTURED:
        rl_put(t, "a body of ");
        put_node(&d->node, t);
        rl_put(t, " reads `%s` in %s\n", d->tensor.p[0], d->need.p[0]);
        return;
    case RL_EX_PARAMETER:
        put_node(&d->node, t);
        rl_put(t, " reads `%s` as a parameter, in %s\n", d->tensor.p[0], d->need.p[0]);
        return;
    case RL_EX_CONSIDERED:
        put_node(&d->node, t);
        rl_put(t, " takes any order, but not all of them were considered\n");
        return;
    case RL_EX_FIXED:
    case RL_EX_FORM:
        put_node(&d->node, t);
        rl_put(t, " needs ");
        put_needs(d, t);
        return;
    }
}

static void put_step(const rl_exnode *n, rl_text *t)
{
    if (n->name) rl_put(t, "%s", n->name);
    else rl_put(t, "%s(%s)", n->op, n->output ? n->output : "?");
}

#define MOSTSTEPS 16 /* nodes of a path in text; JSON has all */

static void put_path(const rl_expath *p, rl_text *t)
{
    uint32_t nnode = 0, k = 0;
    for (uint32_t i = 0; i < p->n; i++) nnode += p->p[i].node.op != NULL;
    rl_put(t, "  %s: ", p->loop ? "loop" : "path");
    if (p->n && !p->p[0].node.op) rl_put(t, "`%s` > ", p->p[0].tensor);
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->p[i].node.op) continue;
        uint32_t at = k++;
        bool left_out = nnode > MOSTSTEPS && at >= MOSTSTEPS / 2 && at + MOSTSTEPS / 2 < nnode;
        if (left_out && at == MOSTSTEPS / 2) rl_put(t, " > (%" PRIu32 " nodes)", nnode - MOSTSTEPS);
        if (left_out) continue;
        if (at) rl_put(t, " > ");
        put_step(&p->p[i].node, t);
    }
    if (p->n && !p->p[p->n - 1].node.op) rl_put(t, "%s`%s`", nnode ? " > " : "", p->p[p->n - 1].tensor);
    rl_put(t, "%s\n", p->loop ? ", in another order than it set out" : "");
}

static void put_remedy(const rl_exremedy *r, rl_text *t)
{
    rl_put(t, "    ");
    switch (r->kind) {
    case RL_EX_INPUT_LAYOUT: rl_put(t, "graph input `%s` in %s\n", r->tensor, r->order ? r->axes : "another order"); return;
    case RL_EX_OUTPUT_LAYOUT: rl_put(t, "graph output `%s` in %s\n", r->tensor, r->order ? r->axes : "another order"); return;
    case RL_EX_TARGET_ORDER: rl_put(t, "a target that runs %s in %s: ", r->node.op, r->order ? r->order : "both orders"); break;
    case RL_EX_TARGET_FLAGS: rl_put(t, "a target whose MatMul transposes: "); break;
    case RL_EX_REWRITE: rl_put(t, "a normalization in parts, which take any order (a rewrite that is not there yet): "); break;
    case RL_EX_KERNEL: rl_put(t, "an op with `%s` in axes %s, in the place of ", r->tensor, r->axes ? r->axes : "in another order"); break;
    }
    put_node(&r->node, t);
    rl_put(t, "\n");
}

static void put_choice(const rl_exconversion *c, const rl_explanation *x, rl_text *t)
{
    if (c->charge.n) rl_put(t, "  nothing forces it: target %s would charge for these forms without it (--target onnx does not)\n", x->target);
    else if (x->unsolved) rl_put(t, "  nothing forces it: the solver's time was up\n");
    else rl_put(t, "  nothing forces it: %s\n", x->unchanged ? "the rewritten model was no better" : "without it the model was no better");
    for (uint32_t i = 0; i < c->charge.n; i++) {
        rl_put(t, "    ");
        put_node(&c->charge.p[i].node, t);
        rl_put(t, ": as much as %" PRId64 ".%" PRId64 " conversions\n", c->charge.p[i].tenths / 10, c->charge.p[i].tenths % 10);
    }
}

static void put_why(const rl_exconversion *c, const rl_explanation *x, rl_text *t)
{
    if (c->reason == RL_EX_OPEN) rl_put(t, "  no reason was found within the limits of the search\n");
    if (c->reason == RL_EX_CHOICE) put_choice(c, x, t);
    if (c->reason == RL_EX_TOGETHER) rl_put(t, "  these together allow no order%s:\n", c->demand.n ? "" : " on the ways below");
    for (uint32_t i = 0; i < c->demand.n; i++) put_demand(&c->demand.p[i], t);
    for (uint32_t i = 0; i < c->path.n; i++) put_path(&c->path.p[i], t);
    if (c->reason == RL_EX_PAIR) rl_put(t, "  every op between them keeps the order\n");
    if (c->path.n && !c->smallest) rl_put(t, "  (perhaps not all of these are needed)\n");
    bool explained = c->reason == RL_EX_PAIR || c->reason == RL_EX_TOGETHER;
    if (explained) rl_put(t, c->remedy.n ? "  would be removed by any of\n" : "  no single change that relayout knows of would remove it\n");
    for (uint32_t i = 0; i < c->remedy.n; i++) put_remedy(&c->remedy.p[i], t);
}

static void put_conversion(const rl_exconversion *c, uint32_t i, const rl_explanation *x, rl_text *t)
{
    rl_put(t, "\nconversion %" PRIu32 ": `%s` %s, %" PRId64 " bytes\n  from %s", i + 1, c->tensor, c->shape, c->bytes, c->made);
    if (c->maker.op) {
        rl_put(t, ", as made by ");
        put_node(&c->maker, t);
    }
    rl_put(t, ", to %s, for ", c->needed);
    for (uint32_t k = 0; k < c->reader.n; k++) {
        if (k) rl_put(t, ", ");
        put_node(&c->reader.p[k], t);
    }
    if (c->axes_of) rl_put(t, " (axes of `%s`)", c->axes_of);
    rl_put(t, "\n");
    put_why(c, x, t);
}

static void put_transpose(const rl_extranspose *x, rl_text *t)
{
    static const char *const fate[] = {
        [RL_EX_UNUSED] = "reaches no output", [RL_EX_FOLDED] = "folded into a constant", [RL_EX_CANCELLED] = "cancelled with ",
        [RL_EX_ABSORBED] = "absorbed by ", [RL_EX_MOVED] = "moved to ", [RL_EX_KEPT] = "stays, as ", [RL_EX_GONE] = "no longer needed"};
    rl_put(t, "  ");
    put_node(&x->node, t);
    rl_put(t, ": %s", fate[x->fate]);
    for (uint32_t i = 0; i < x->with.n; i++) {
        if (i) rl_put(t, ", ");
        put_node(&x->with.p[i], t);
    }
    if (x->form) rl_put(t, ", which becomes %s", x->form);
    for (uint32_t i = 0; i < x->conversion.n; i++) rl_put(t, "%s%" PRIu32, i ? ", " : "conversion ", x->conversion.p[i] + 1);
    rl_put(t, "\n");
}

void rl_explain_text(const rl_explanation *x, const char *node, rl_text *t, bool *any)
{
    *any = false;
    rl_put(t, "target %s, objective %s: %" PRIu32 " conversion%s\n", x->target, x->objective, x->conversion.n,
           x->conversion.n == 1 ? "" : "s");
    if (x->unsolved) rl_put(t, "the solver's time was up: fewer may do\n");
    if (x->unchanged) rl_put(t, "optimize leaves this model as it is\n");
    else if (x->after < x->conversion.n) rl_put(t, "a second look at the result leaves %" PRId64 " of them\n", x->after);
    for (uint32_t i = 0; i < x->conversion.n; i++) {
        if (!conversion_has(&x->conversion.p[i], node)) continue;
        put_conversion(&x->conversion.p[i], i, x, t);
        *any = true;
    }
    bool first = true;
    for (uint32_t i = 0; i < x->transpose.n; i++) {
        if (!transpose_has(&x->transpose.p[i], node)) continue;
        if (first) rl_put(t, "\nTransposes of the model\n");
        put_transpose(&x->transpose.p[i], t);
        *any = true;
        first = false;
    }
}

/* ---- JSON ---- */

static void put_key(rl_text *t, const char *key, const char *value)
{
    rl_put(t, "\"%s\": ", key);
    rl_report_string(t, value);
}

static void json_node(const rl_exnode *n, rl_text *t)
{
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
    rl_put(t, "}");
}

static void json_path(const rl_expath *p, rl_text *t)
{
    rl_put(t, "[");
    for (uint32_t i = 0; i < p->n; i++) {
        rl_put(t, "%s", i ? ", " : "");
        if (p->p[i].node.op) json_node(&p->p[i].node, t);
        else {
            rl_put(t, "{");
            put_key(t, "tensor", p->p[i].tensor);
            rl_put(t, "}");
        }
    }
    rl_put(t, "]");
}

static void json_demand(const rl_exdemand *d, rl_text *t)
{
    static const char *const what[] = {"input", "output", "captured", "parameter", "fixed", "form", "considered"};
    rl_put(t, "{");
    put_key(t, "what", what[d->what]);
    rl_put(t, ", \"node\": ");
    json_node(&d->node, t);
    rl_put(t, ", \"tensors\": [");
    for (uint32_t i = 0; i < d->tensor.n; i++) {
        if (i) rl_put(t, ", ");
        rl_report_string(t, d->tensor.p[i]);
    }
    rl_put(t, "], \"ways\": [");
    for (uint32_t i = 0; i < d->need.n; i++) {
        rl_put(t, "%s", i % d->tensor.n ? ", " : i ? "], [" : "[");
        rl_report_string(t, d->need.p[i]);
    }
    rl_put(t, "%s], \"more_ways\": %" PRIu32 "}", d->need.n ? "]" : "", d->more);
}

static void json_remedy(const rl_exremedy *r, rl_text *t)
{
    static const char *const kind[] = {"input-layout", "output-layout", "target-order", "target-flags", "rewrite", "kernel"};
    rl_put(t, "{");
    put_key(t, "kind", kind[r->kind]);
    rl_put(t, ", \"node\": ");
    json_node(&r->node, t);
    rl_put(t, ", ");
    put_key(t, "tensor", r->tensor);
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

static void json_way(const rl_expath *p, rl_text *t)
{
    rl_put(t, "{\"loop\": %s, \"steps\": ", p->loop ? "true" : "false");
    json_path(p, t);
    rl_put(t, "}");
}

static void json_charge(const rl_excharge *c, rl_text *t)
{
    rl_put(t, "{\"tenths\": %" PRId64 ", \"node\": ", c->tenths);
    json_node(&c->node, t);
    rl_put(t, "}");
}

static void json_conversion(const rl_exconversion *c, uint32_t i, rl_text *t)
{
    static const char *const reason[] = {"pair", "together", "choice", "open"};
    rl_put(t, "{\"id\": %" PRIu32 ", ", i + 1);
    put_key(t, "tensor", c->tensor);
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

static void json_transpose(const rl_extranspose *x, rl_text *t)
{
    static const char *const fate[] = {"unused", "folded", "cancelled", "absorbed", "moved", "kept", "not-needed"};
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

void rl_explain_json(const rl_explanation *x, const char *node, rl_text *t, bool *any)
{
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
        if (!conversion_has(&x->conversion.p[i], node)) continue;
        rl_put(t, "%s\n    ", comma);
        json_conversion(&x->conversion.p[i], i, t);
        comma = ",";
        *any = true;
    }
    rl_put(t, "%s],\n  \"transposes\": [", *comma ? "\n  " : "");
    comma = "";
    for (uint32_t i = 0; i < x->transpose.n; i++) {
        if (!transpose_has(&x->transpose.p[i], node)) continue;
        rl_put(t, "%s\n    ", comma);
        json_transpose(&x->transpose.p[i], t);
        comma = ",";
        *any = true;
    }
    rl_put(t, "%s]\n}\n", *comma ? "\n  " : "");
}
