/* Text to graphs: see text.h.  Recursive descent over the characters; functions answer false once the message is stored.
 *
 * A value may be used before it is defined (by a line further down); what is never defined is an error at its first use, and
 * lines out of order are sorted at the end.  Layouts are read last, when shape inference knows all dims. */
#include "text_internal.h"

#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "ops.h"
#include "schema.h"
#include "shape.h"

enum { MAXNEST = 100 };

/* ---- attributes ---- */

static bool parse_graph(parser *p, scope *up, rl_graph **out);

/* A number that is written with a point, an exponent, inf or nan. */
static bool float_ahead(const char *s) {
    if (*s == '-' || *s == '+') s++;
    if (strncmp(s, "inf", 3) == 0 || strncmp(s, "nan", 3) == 0) return true;
    while (*s >= '0' && *s <= '9') s++;
    return *s == '.' || *s == 'e' || *s == 'E';
}

typedef struct {
    struct { int64_t *p; uint32_t n, cap; } ints;
    struct { float *p; uint32_t n, cap; } floats;
    struct { rl_span *p; uint32_t n, cap; } strings;
} list;

static bool parse_item(parser *p, rl_graph *g, rl_attr *a, list *l) {
    rl_text_skip(p);
    if (*p->s == '"') {
        rl_span s;
        if (!rl_text_parse_string(p, &g->mem, &s)) return false;
        rl_push(&g->mem, l->strings, s);
        a->kind = RL_ATTR_STRINGS;
    } else if (float_ahead(p->s)) {
        double d;
        const char *at = p->s;
        if (!rl_text_parse_double(p, &d)) return false;
        rl_push(&g->mem, l->floats, strtof(at, NULL));
        a->kind = RL_ATTR_FLOATS;
    } else {
        int64_t x;
        if (!rl_text_parse_int(p, &x)) return false;
        rl_push(&g->mem, l->ints, x);
        a->kind = RL_ATTR_INTS;
    }
    return true;
}

/* [1,2], [1.0,2.0], ["a"]; the kind of an empty one is set before. */
static bool parse_list(parser *p, rl_graph *g, rl_attr *a) {
    list l = {0};
    const char *at = p->s;
    if (!rl_text_want(p, '[')) return false;
    if (!rl_text_take(p, ']')) {
        do
            if (!parse_item(p, g, a, &l)) return false;
        while (rl_text_take(p, ','));
        if (!rl_text_want(p, ']')) return false;
    }
    if ((l.ints.n != 0) + (l.floats.n != 0) + (l.strings.n != 0) > 1) return rl_text_fail_at(p, at, "a list has elements of one kind");
    a->n = l.ints.n + l.floats.n + l.strings.n;
    a->ints = l.ints.p;
    a->floats = l.floats.p;
    a->strings = l.strings.p;
    return true;
}

static bool parse_tensor_attr(parser *p, rl_graph *g, rl_attr *a) {
    type t;
    rl_const *c;
    const char *at = p->s;
    if (!rl_text_parse_type(p, &t)) return false;
    if (t.layout) return rl_text_fail_at(p, t.layout, "a tensor attribute has no layout");
    if (!rl_text_parse_const_of(p, g, &t, at, &c)) return false;
    a->kind = RL_ATTR_TENSOR;
    a->tensor = c;
    return true;
}

static bool parse_number_attr(parser *p, rl_attr *a) {
    double d;
    const char *at = p->s;
    if (!float_ahead(p->s)) {
        a->kind = RL_ATTR_INT;
        return rl_text_parse_int(p, &a->i);
    }
    a->kind = RL_ATTR_FLOAT;
    if (!rl_text_parse_double(p, &d)) return false;
    a->f = strtof(at, NULL);
    return true;
}

static bool parse_attr_value(parser *p, scope *sc, rl_attr *a) {
    rl_graph *g = sc->g;
    rl_text_skip(p);
    if (*p->s == '"') {
        a->kind = RL_ATTR_STRING;
        return rl_text_parse_string(p, &g->mem, &a->s);
    }
    a->kind = RL_ATTR_INTS;
    if (*p->s == '[') return parse_list(p, g, a);
    if (rl_text_take_prefix(p, "floats", '[')) {
        a->kind = RL_ATTR_FLOATS;
        return parse_list(p, g, a);
    }
    if (rl_text_take_prefix(p, "strings", '[')) {
        a->kind = RL_ATTR_STRINGS;
        return parse_list(p, g, a);
    }
    if (rl_text_take_prefix(p, "hex", '"')) {
        a->kind = RL_ATTR_OTHER;
        return rl_text_parse_hex(p, &g->mem, &a->raw);
    }
    if (rl_text_type_ahead(p)) return parse_tensor_attr(p, g, a);
    if (strncmp(p->s, "graph", 5) == 0 && !rl_text_alnum(p->s[5])) {
        a->kind = RL_ATTR_GRAPH;
        return parse_graph(p, sc, &a->graph);
    }
    return parse_number_attr(p, a);
}

/* name= follows, as after a node's bracket. */
static bool attr_ahead(parser *p) {
    rl_text_skip(p);
    const char *s = p->s;
    if (*s == '@' || *s == '"') return true;
    while (rl_text_word_char(*s, "_.-")) s++;
    return s != p->s && *s == '=';
}

typedef struct { rl_attr *p; uint32_t n, cap; } attrs;

static bool parse_attrs(parser *p, scope *sc, attrs *out, rl_str *node_name) {
    while (attr_ahead(p)) {
        rl_attr a = {0};
        const char *at = p->s;
        bool special = rl_text_take(p, '@');
        if (!rl_text_parse_word(p, "_.-", &a.name) || !rl_text_want(p, '=')) return false;
        if (special) {
            if (strcmp(a.name, "name") != 0) return rl_text_fail_at(p, at, "only @name is known");
            if (!rl_text_parse_word(p, "_.:/$-", node_name)) return false;
            continue;
        }
        for (uint32_t i = 0; i < out->n; i++)
            if (out->p[i].name == a.name) return rl_text_fail_at(p, at, "this attribute stands twice");
        if (!parse_attr_value(p, sc, &a)) return false;
        rl_push(p->tmp, *out, a);
    }
    return true;
}

/* ---- nodes ---- */

typedef struct { rl_value *p; uint32_t n, cap; } values;

/* What the bodies capture from this graph. */
static void set_captures(parser *p, scope *sc, rl_node n, const attrs *a) {
    values cap = {0};
    for (uint32_t i = 0; i < a->n; i++) {
        const rl_graph *b = a->p[i].graph;
        for (uint32_t k = 0; b && k < b->outer.n; k++) {
            rl_value v = rl_graph_find(sc->g, rl_val(b, b->outer.p[k])->name);
            bool old = false;
            for (uint32_t j = 0; j < cap.n; j++) old = old || rl_same(cap.p[j], v);
            if (!old) rl_push(p->tmp, cap, v);
        }
    }
    if (cap.n) rl_graph_set_captures(sc->g, n, cap.p, cap.n);
}

/* A domain that the header does not import is imported at version 1. */
static int64_t import(scope *sc, rl_str domain) {
    scope *top = sc;
    while (top->up) top = top->up;
    if (!rl_opset_of(top->g, domain)) {
        rl_opset o = {domain, *domain ? 1 : RL_TEXT_OPSET};
        rl_push(&top->g->mem, top->g->opset, o);
    }
    return rl_opset_of(top->g, domain);
}

/* com.acme::Thing */
static bool parse_op(parser *p, rl_str *domain, rl_str *op) {
    *domain = rl_internz(p->ctx, "");
    if (!rl_text_parse_word(p, "_.-", op)) return false;
    if (p->s[0] != ':' || p->s[1] != ':') return true;
    p->s += 2;
    *domain = *op;
    return rl_text_parse_word(p, "_.-", op);
}

static bool parse_outputs(parser *p, scope *sc, values *out) {
    if (rl_text_take(p, '(')) return rl_text_want(p, ')');
    do {
        rl_value v;
        bool twice;
        rl_text_skip(p);
        const char *at = p->s;
        if (!rl_text_parse_definition(p, sc, &v, &twice)) return false;
        for (uint32_t i = 0; i < out->n; i++) twice = twice || (rl_has(v) && rl_same(out->p[i], v));
        if (twice) return rl_text_fail_twice(p, sc, v, at);
        rl_push(p->tmp, *out, v);
    } while (rl_text_take(p, ','));
    return true;
}

static bool parse_inputs(parser *p, scope *sc, values *in) {
    if (!rl_text_want(p, '(')) return false;
    if (rl_text_take(p, ')')) return true;
    do {
        rl_value v;
        if (!rl_text_parse_value(p, sc, &v)) return false;
        rl_push(p->tmp, *in, v);
    } while (rl_text_take(p, ','));
    return rl_text_want(p, ')');
}

/* Sorting finds it. */
static bool reads_itself(const rl_graph *g, rl_node n) {
    const rl_nodeinfo *x = rl_nod(g, n);
    for (uint32_t i = 0; i < x->nout; i++) {
        const rl_valinfo *v = rl_has(x->out[i]) ? rl_val(g, x->out[i]) : NULL;
        for (uint32_t k = 0; v && k < v->nuse; k++)
            if (v->use[k].node.i == n.i) return true;
    }
    return false;
}

static bool parse_node(parser *p, scope *sc) {
    values out = {0}, in = {0};
    attrs a = {0};
    rl_str domain, op, name = rl_internz(p->ctx, "");
    if (!parse_outputs(p, sc, &out) || !rl_text_want(p, '=')) return false;
    rl_text_skip(p);
    const char *at = p->s;
    if (!parse_op(p, &domain, &op) || !parse_inputs(p, sc, &in) || !parse_attrs(p, sc, &a, &name)) return false;
    int64_t version = import(sc, domain);
    bool move = !*domain && strcmp(op, "Move") == 0;
    if (move && (in.n != 1 || out.n != 1)) return rl_text_fail_at(p, at, "Move has one input and one output");
    rl_node n = rl_graph_add(sc->g, move ? RL_OP_MOVE : rl_op_find(domain, op, version), name, in.n, in.p, out.n, out.p);
    rl_nodeinfo *x = rl_nod(sc->g, n);
    x->domain = domain;
    x->type = op;
    x->since = (uint32_t)version;
    x->origin = sc->g->order.n - 1;
    rl_graph_set_attrs(sc->g, n, a.p, a.n);
    rl_text why = {.mem = &sc->g->mem};
    if (!move) x->op = rl_schema_op(x->op, x, NULL, &why);
    if (why.n) return rl_text_fail_at(p, at, why.p);
    set_captures(p, sc, n, &a);
    sc->unordered |= reads_itself(sc->g, n);
    return true;
}

/* ---- graphs ---- */

static bool parse_input_line(parser *p, scope *sc) {
    do {
        rl_value v;
        bool twice;
        rl_text_skip(p);
        const char *at = p->s;
        if (!rl_text_parse_definition(p, sc, &v, &twice)) return false;
        if (!rl_has(v)) return rl_text_fail_at(p, at, "an input needs a name");
        if (twice) return rl_text_fail_twice(p, sc, v, at);
        rl_val(sc->g, v)->is_input = true;
        rl_push(&sc->g->mem, sc->g->input, v);
    } while (rl_text_take(p, ','));
    return true;
}

static bool parse_output_line(parser *p, scope *sc) {
    do {
        rl_value v;
        type t;
        rl_text_skip(p);
        const char *at = p->s;
        if (!rl_text_parse_value(p, sc, &v) || !rl_text_parse_type(p, &t)) return false;
        if (!rl_has(v)) return rl_text_fail_at(p, at, "an output needs a name");
        if (rl_val(sc->g, v)->rank == RL_NORANK) rl_text_set_type(p, sc, v, &t);
        rl_val(sc->g, v)->is_output = true;
        rl_push(&sc->g->mem, sc->g->output, v);
    } while (rl_text_take(p, ','));
    return true;
}

/* opset=17, opset.com.acme=2, ir=8 */
static bool parse_option(parser *p, rl_graph *g) {
    const char *at = p->s;
    rl_str key, domain = rl_internz(p->ctx, "");
    int64_t x;
    if (rl_text_take_prefix(p, "opset.", '"')) {
        if (!rl_text_parse_word(p, "", &domain)) return false;
        key = rl_internz(p->ctx, "opset.");
    } else if (!rl_text_parse_word(p, "_.-", &key)) {
        return false;
    }
    if (!rl_text_want(p, '=') || !rl_text_parse_int(p, &x)) return false;
    if (strcmp(key, "ir") == 0) {
        g->ir_version = x;
        return true;
    }
    if (strncmp(key, "opset.", 6) == 0 && key[6]) domain = rl_internz(p->ctx, key + 6);
    else if (strcmp(key, "opset") != 0 && !*domain) return rl_text_fail_at(p, at, "only opset, opset.DOMAIN and ir are known here");
    if (x < 1 || x > INT32_MAX) return rl_text_fail_at(p, at, "an opset version is at least 1");
    rl_opset o = {domain, x};
    rl_push(&g->mem, g->opset, o);
    return true;
}

static bool option_ahead(parser *p) {
    rl_text_skip(p);
    const char *s = p->s;
    while (rl_text_word_char(*s, "_.-")) s++;
    return s != p->s && (*s == '=' || (*s == '"' && s[-1] == '.'));
}

static bool parse_header(parser *p, scope *sc) {
    rl_str plain = rl_internz(p->ctx, "");
    if (!rl_text_take_word(p, "graph")) return rl_text_fail_at(p, p->s, "graph is wanted here");
    if (!rl_text_peek(p, '{') && !option_ahead(p) && !rl_text_parse_word(p, "_.-", &sc->g->name)) return false;
    while (!rl_text_peek(p, '{'))
        if (!parse_option(p, sc->g)) return false;
    if (!sc->up && !sc->g->ir_version) sc->g->ir_version = RL_TEXT_IR;
    if (!sc->up && !rl_opset_of(sc->g, plain)) {
        rl_opset o = {plain, RL_TEXT_OPSET};
        rl_push(&sc->g->mem, sc->g->opset, o);
    }
    return rl_text_want(p, '{');
}

static bool parse_line(parser *p, scope *sc) {
    if (rl_text_peek(p, '%') || *p->s == '(' || *p->s == '_') return parse_node(p, sc);
    if (rl_text_take_word(p, "in")) return parse_input_line(p, sc);
    if (rl_text_take_word(p, "const")) return rl_text_parse_const_line(p, sc);
    if (rl_text_take_word(p, "out")) return parse_output_line(p, sc);
    return rl_text_fail_at(p, p->s, "in, const, out, a node or } is wanted here");
}

static bool check_defined(parser *p, const scope *sc) {
    for (uint32_t i = 0; i < sc->g->nval; i++) {
        const rl_valinfo *x = &sc->g->val[i];
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): each value has the place where it was named first */
        if (!rl_text_is_defined(x)) return rl_text_fail_name(p, sc->first.p[i], "%$ is not defined", x->name ? x->name : "~");
    }
    return true;
}

static bool finish_graph(parser *p, scope *sc) {
    if (!check_defined(p, sc)) return false;
    if (!sc->unordered) return true;
    p->status = rl_graph_sort(sc->g);
    if (p->status == RL_OK) return true;
    rl_text why = {.mem = p->tmp};
    rl_put(&why, "%s", p->ctx->error);
    return rl_text_fail_at(p, p->s, why.p);
}

static bool parse_graph(parser *p, scope *up, rl_graph **out) {
    scope sc = {.up = up, .unnamed = {.mem = p->tmp}};
    if (++p->nest > MAXNEST) return rl_text_fail_at(p, p->s, "graphs are nested too deep");
    sc.g = *out = rl_graph_new(p->ctx);
    sc.g->parent = up ? up->g : NULL;
    rl_push(p->tmp, p->graphs, sc.g);
    if (!parse_header(p, &sc)) return false;
    while (!rl_text_take(p, '}'))
        if (!parse_line(p, &sc)) return false;
    p->nest--;
    return finish_graph(p, &sc);
}

static bool read_layouts(parser *p) {
    for (uint32_t i = 0; i < p->layouts.n; i++) {
        const pending *x = &p->layouts.p[i];
        rl_valinfo *v = rl_val(x->g, x->v);
        const char *s = x->at, *why;
        if (!rl_layout_parse(&x->g->mem, &s, v->rank, v->dim, &v->layout, &why)) return rl_text_fail_at(p, s, why);
    }
    return true;
}

static bool infer(parser *p, rl_graph *g) {
    p->status = rl_shape_infer(g);
    if (p->status != RL_OK) rl_fail(p->ctx, p->status, "%s: %s", p->file, p->ctx->error);
    return p->status == RL_OK;
}

static bool parse_all(parser *p, rl_graph **g) {
    if (memchr(p->start, 0, (size_t)(p->end - p->start))) return rl_text_fail_at(p, p->start + strlen(p->start), "a text has no zero bytes");
    if (!parse_graph(p, NULL, g)) return false;
    rl_text_skip(p);
    if (*p->s) return rl_text_fail_at(p, p->s, "nothing but comments may follow the graph");
    return infer(p, *g) && read_layouts(p);
}

/* Each body here is in the list itself, so each is freed without its own. */
static void free_graphs(parser *p) {
    for (uint32_t i = 0; i < p->graphs.n; i++)
        rl_graph_drop(p->graphs.p[i]);
}

rl_status rl_text_parse(rl_ctx *ctx, const char *file, const char *s, size_t n, rl_graph **g) {
    rl_arena tmp;
    rl_arena_init(&tmp, ctx);
    char *copy = rl_alloc_array(&tmp, n + 1, 1);
    if (n) memcpy(copy, s, n);
    parser p = {.ctx = ctx, .tmp = &tmp, .file = file, .start = copy, .end = copy + n, .s = copy};
    rl_graph *out = NULL;
    bool ok = parse_all(&p, &out);
    if (ok) *g = out;
    else free_graphs(&p);
    rl_arena_free(&tmp);
    return ok ? RL_OK : p.status;
}
