/* Text of explain.h, and what --node leaves of it. */
#include "explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what --node asks for ---- */

static bool is_word(const char *s, const char *word) { return s && strcmp(s, word) == 0; }

static bool node_is(const rl_exnode *n, const char *word) { return is_word(n->name, word) || is_word(n->output, word); }

static bool path_has(const rl_expath *p, const char *word) {
    for (uint32_t i = 0; i < p->n; i++)
        if (is_word(p->p[i].tensor.name, word) || node_is(&p->p[i].node, word)) return true;
    return false;
}

bool rl_exconversion_has(const rl_exconversion *c, const char *word) {
    bool has = !word || is_word(c->tensor.name, word) || node_is(&c->maker, word);
    for (uint32_t i = 0; i < c->reader.n; i++) has |= word && node_is(&c->reader.p[i], word);
    for (uint32_t i = 0; i < c->demand.n; i++) {
        has |= word && node_is(&c->demand.p[i].node, word);
        for (uint32_t k = 0; k < c->demand.p[i].tensor.n; k++) has |= word && is_word(c->demand.p[i].tensor.p[k].name, word);
    }
    for (uint32_t i = 0; i < c->path.n; i++) has |= word && path_has(&c->path.p[i], word);
    return has;
}

bool rl_extranspose_has(const rl_extranspose *t, const char *word) {
    bool has = !word || node_is(&t->node, word) || path_has(&t->path, word);
    for (uint32_t i = 0; i < t->with.n; i++) has |= word && node_is(&t->with.p[i], word);
    return has;
}

/* ---- text ---- */

static void put_quoted(const char *name, rl_text *t) {
    rl_put(t, "`");
    rl_put_name(t, name ? name : "?");
    rl_put(t, "`");
}

/* A node without a name, by its first output. */
static void put_maker(const rl_exnode *n, rl_text *t) {
    rl_put_name(t, n->op);
    rl_put(t, " that makes ");
    put_quoted(n->output, t);
}

/* A body by its node, without saying where that stands. */
static void put_part(const rl_exbody *b, rl_text *t) {
    rl_put(t, "%s", b->part ? b->part : "function ");
    if (b->part) rl_put(t, " of ");
    if (!b->part) rl_put_name(t, b->of.op);
    else if (b->of.name) put_quoted(b->of.name, t);
    else put_maker(&b->of, t);
}

static void put_body(const rl_exbody *b, rl_text *t) {
    for (; b; b = b->of.body) {
        rl_put(t, " in ");
        put_part(b, t);
    }
}

static void put_node(const rl_exnode *n, rl_text *t) {
    if (!n->op) put_quoted(n->output, t);
    else if (!n->name) put_maker(n, t);
    else {
        put_quoted(n->name, t);
        rl_put(t, " (");
        rl_put_name(t, n->op);
        rl_put(t, ")");
    }
    put_body(n->body, t);
}

static bool is_own(const rl_exbody *b, const rl_exnode *n) {
    const char *a = b->of.output, *o = n->output;
    return b->of.body == n->body && a && o && strcmp(a, o) == 0;
}

/* A tensor beside a node that was named before: its body only where it is another. */
static void put_tensor_of(const rl_extensor *x, const rl_exnode *n, rl_text *t) {
    put_quoted(x->name, t);
    if (x->body == n->body) return;
    if (x->body && is_own(x->body, n)) rl_put(t, " of its %s", x->body->part);
    else if (x->body) put_body(x->body, t);
    else rl_put(t, " outside");
}

static void put_place(const rl_exdemand *d, uint32_t i, rl_text *t) {
    rl_put(t, " in ");
    put_tensor_of(&d->tensor.p[i], &d->node, t);
}

/* "1,2 in `a` with 2,1 in `b`, or 2,1 in `a` with 1,2 in `b`"; of one tensor "1,2 or 2,1 in `a`". */
static void put_needs(const rl_exdemand *d, rl_text *t) {
    uint32_t n = d->tensor.n;
    for (uint32_t i = 0; i < d->need.n; i++) {
        if (i) rl_put(t, "%s", i % n ? " with " : n > 1 ? ", or " : " or ");
        rl_put(t, "%s", d->need.p[i]);
        if (n > 1) put_place(d, i % n, t);
    }
    if (d->more) rl_put(t, "%s or %" PRIu32 " more ways", n > 1 ? "," : "", d->more);
    if (n == 1) put_place(d, 0, t);
    rl_put(t, "\n");
}

/* An input or output of the whole is the graph's or a function's. */
static const char *whose(const rl_extensor *x) { return x->body ? "function" : "graph"; }

static void put_port(const rl_extensor *x, const char *kind, rl_text *t) {
    rl_put(t, "%s %s ", whose(x), kind);
    put_quoted(x->name, t);
}

static void put_demand(const rl_exdemand *d, rl_text *t) {
    rl_put(t, "  ");
    switch (d->what) {
    case RL_EX_INPUT:
        put_port(&d->tensor.p[0], "input", t);
        rl_put(t, " comes in %s\n", d->need.p[0]);
        return;
    case RL_EX_OUTPUT:
        put_port(&d->tensor.p[0], "output", t);
        rl_put(t, " must be in %s\n", d->need.p[0]);
        return;
    case RL_EX_CAPTURED:
        rl_put(t, "a body of ");
        put_node(&d->node, t);
        rl_put(t, " reads ");
        put_tensor_of(&d->tensor.p[0], &d->node, t);
        rl_put(t, " in %s\n", d->need.p[0]);
        return;
    case RL_EX_PARAMETER:
        put_node(&d->node, t);
        rl_put(t, " reads ");
        put_tensor_of(&d->tensor.p[0], &d->node, t);
        rl_put(t, " as a parameter, in %s\n", d->need.p[0]);
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

static void put_short(const rl_exnode *n, rl_text *t) {
    rl_put_name(t, n->name ? n->name : n->op);
    if (n->name) return;
    rl_put(t, "(");
    rl_put_name(t, n->output ? n->output : "?");
    rl_put(t, ")");
}

static bool holds(const rl_exbody *outer, const rl_exbody *b) {
    while (b && b != outer) b = b->of.body;
    return b == outer;
}

static void open_body(const rl_exbody *from, const rl_exbody *to, rl_text *t) {
    if (to == from) return;
    open_body(from, to->of.body, t);
    if (!to->part) return; /* a path never leaves a function */
    rl_put(t, "%s of ", to->part);
    put_short(&to->of, t);
    rl_put(t, " { ");
}

/* Leaves bodies and enters others, up to that of the next node. */
static void go_to(const rl_exbody **at, const rl_exbody *to, bool first, rl_text *t) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): NULL, the model itself, is around all */
    for (; !holds(*at, to); *at = (*at)->of.body) rl_put(t, "%s", (*at)->part ? " }" : "");
    if (!first) rl_put(t, " > ");
    open_body(*at, to, t);
    *at = to;
}

#define MOSTSTEPS 16 /* nodes of a path in text; JSON has all */

/* "a > then_branch of if { b > c } > if > `y`" */
static void put_path(const rl_expath *p, rl_text *t) {
    uint32_t nnode = 0, k = 0;
    const rl_exbody *in = NULL;
    for (uint32_t i = 0; i < p->n; i++) nnode += p->p[i].node.op != NULL;
    rl_put(t, "  %s: ", p->loop ? "loop" : "path");
    if (p->n && !p->p[0].node.op) {
        put_quoted(p->p[0].tensor.name, t);
        rl_put(t, " > ");
    }
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->p[i].node.op) continue;
        uint32_t at = k++;
        bool left_out = nnode > MOSTSTEPS && at >= MOSTSTEPS / 2 && at + MOSTSTEPS / 2 < nnode;
        if (left_out && at == MOSTSTEPS / 2) rl_put(t, " > (%" PRIu32 " nodes)", nnode - MOSTSTEPS);
        if (left_out) continue;
        go_to(&in, p->p[i].node.body, at == 0, t);
        put_short(&p->p[i].node, t);
    }
    go_to(&in, NULL, true, t);
    if (p->n && !p->p[p->n - 1].node.op) {
        rl_put(t, "%s", nnode ? " > " : "");
        put_quoted(p->p[p->n - 1].tensor.name, t);
    }
    rl_put(t, "%s\n", p->loop ? ", in another order than it set out" : "");
}

/* "0,3,1,2" as letters for the dims that the model has: adbc. False: it is of parts of dims. */
static bool letters_of(const char *axes, char *out, size_t size) {
    size_t n = 0;
    for (const char *s = axes; *s && n + 1 < size; s++) {
        char *end;
        unsigned long axis = strtoul(s, &end, 10);
        if (end == s || axis >= 26 || (*end && *end != ',')) return false;
        out[n++] = (char)('a' + axis);
        s = *end ? end : end - 1;
    }
    out[n] = 0;
    return n > 0;
}

/* The option that does it, where its name can stand in quotes. */
static void put_layout_option(const rl_exremedy *r, rl_text *t) {
    const char *option = r->kind == RL_EX_INPUT_LAYOUT ? "input" : "output", *name = r->tensor.name;
    char letters[27];
    if (!r->tensor.body && r->axes && !strpbrk(name, "'=") && letters_of(r->axes, letters, sizeof letters))
        rl_put(t, ": --%s-layout '%s=%s'", option, name, letters);
}

static void put_remedy(const rl_exremedy *r, rl_text *t) {
    rl_put(t, "    ");
    switch (r->kind) {
    case RL_EX_INPUT_LAYOUT:
    case RL_EX_OUTPUT_LAYOUT:
        put_port(&r->tensor, r->kind == RL_EX_INPUT_LAYOUT ? "input" : "output", t);
        rl_put(t, " in %s", r->order ? r->axes : "another order");
        put_layout_option(r, t);
        rl_put(t, "\n");
        return;
    case RL_EX_TARGET_ORDER: rl_put(t, "a target that runs %s in %s: ", r->node.op, r->order ? r->order : "both orders"); break;
    case RL_EX_TARGET_FLAGS: rl_put(t, "a target whose MatMul transposes: "); break;
    case RL_EX_REWRITE: rl_put(t, "a normalization in parts, which take any order (a rewrite that is not there yet): "); break;
    case RL_EX_KERNEL:
        rl_put(t, "an op with ");
        put_tensor_of(&r->tensor, &r->node, t);
        rl_put(t, " in %s%s, in the place of ", r->axes ? "axes " : "", r->axes ? r->axes : "another order");
        break;
    }
    put_node(&r->node, t);
    rl_put(t, "\n");
}

static void put_choice(const rl_exconversion *c, const rl_explanation *x, rl_text *t) {
    if (c->charge.n) rl_put(t, "  nothing forces it: target %s would charge for these forms without it (--target onnx does not)\n", x->target);
    else if (x->unsolved) rl_put(t, "  nothing is known to force it, and it is not proved to be needed\n");
    else rl_put(t, "  nothing forces it: %s\n", x->unchanged ? "the rewritten model was no better" : "without it the model was no better");
    for (uint32_t i = 0; i < c->charge.n; i++) {
        rl_put(t, "    ");
        put_node(&c->charge.p[i].node, t);
        rl_put(t, ": as much as %" PRId64 ".%" PRId64 " conversions\n", c->charge.p[i].tenths / 10, c->charge.p[i].tenths % 10);
    }
}

static void put_why(const rl_exconversion *c, const rl_explanation *x, rl_text *t) {
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

static void put_conversion(const rl_exconversion *c, uint32_t i, const rl_explanation *x, rl_text *t) {
    rl_put(t, "\nconversion %" PRIu32 ": ", i + 1);
    put_quoted(c->tensor.name, t);
    rl_put(t, " %s", c->shape);
    put_body(c->tensor.body, t);
    rl_put(t, ", %" PRId64 " bytes\n  from %s", c->bytes, c->made);
    if (c->maker.op) {
        rl_put(t, ", as made by ");
        put_node(&c->maker, t);
    }
    rl_put(t, ", to %s, for ", c->needed);
    for (uint32_t k = 0; k < c->reader.n; k++) {
        if (k) rl_put(t, ", ");
        put_node(&c->reader.p[k], t);
    }
    if (c->axes_of) {
        rl_put(t, " (axes of ");
        put_quoted(c->axes_of, t);
        rl_put(t, ")");
    }
    rl_put(t, "\n");
    put_why(c, x, t);
}

static void put_transpose(const rl_extranspose *x, rl_text *t) {
    static const char *const fate[] = {
        [RL_EX_UNUSED] = "reaches no output", [RL_EX_FOLDED] = "folded into a constant", [RL_EX_CANCELLED] = "cancelled with ",
        [RL_EX_ABSORBED] = "absorbed by ", [RL_EX_MOVED] = "moved to ", [RL_EX_KEPT] = "stays, as ", [RL_EX_GONE] = "no longer needed",
        [RL_EX_OUTSIDE] = "stays outside of the plan: the axes of its input are of unknown number or sizes, or too many",
        [RL_EX_OPAQUE] = "stays as it is: its opset, or something that it has, is not known of Transpose",
        [RL_EX_CLOSED] = "stays as it is: the body that it stands in is not looked into"};
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

void rl_explain_text(const rl_explanation *x, const char *node, rl_text *t, bool *any) {
    *any = false;
    rl_put(t, "target %s, objective %s: %" PRIu32 " conversion%s\n", x->target, x->objective, x->conversion.n,
           rl_plural(x->conversion.n));
    if (x->unsolved) rl_put(t, "not proved to be the fewest: fewer may do\n");
    if (x->unchanged) rl_put(t, "optimize leaves this model as it is\n");
    else if (x->after < x->conversion.n) rl_put(t, "a second look at the result leaves %" PRId64 " of them\n", x->after);
    for (uint32_t i = 0; i < x->conversion.n; i++) {
        if (!rl_exconversion_has(&x->conversion.p[i], node)) continue;
        put_conversion(&x->conversion.p[i], i, x, t);
        *any = true;
    }
    bool first = true;
    for (uint32_t i = 0; i < x->transpose.n; i++) {
        if (!rl_extranspose_has(&x->transpose.p[i], node)) continue;
        if (first) rl_put(t, "\nTransposes of the model\n");
        put_transpose(&x->transpose.p[i], t);
        *any = true;
        first = false;
    }
}
