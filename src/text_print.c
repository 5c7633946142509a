/* Graphs as text: see text.h.
 *
 * Values get their numbers when they are first printed, definitions before uses, so one counter serves a graph and all its
 * bodies and no number names two values.  Fresh dims (?N) are renumbered the same way: their numbers tell only how many
 * others the context made before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "text.h"

enum { MAXSHOWN = 64 }; /* elements of a constant that is printed whole */

typedef struct scope {
    const rl_graph *g;
    uint32_t *num; /* per value; RL_NONE: not printed yet */
    const struct scope *up;
} scope;

typedef struct {
    rl_text *t;
    rl_arena *tmp;
    bool canonical;
    uint32_t nnum;
    rl_hash fresh; /* 1 + a fresh dim's number -> the one printed */
    int indent;
} printer;

/* ---- words ---- */

static void put_quoted(rl_text *t, const void *s, size_t n) {
    const unsigned char *p = s;
    rl_put(t, "\"");
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '"' || p[i] == '\\') rl_put(t, "\\%c", p[i]);
        else if (p[i] == '\n') rl_put(t, "\\n");
        else if (p[i] < 0x20 || p[i] == 0x7f) rl_put(t, "\\x%02x", p[i]);
        else rl_put_bytes(t, (const char *)&p[i], 1);
    }
    rl_put(t, "\"");
}

/* Bare where it has only letters, digits and the characters of `more`. */
static void put_word(rl_text *t, const char *s, const char *more) {
    bool bare = *s != 0;
    for (const char *c = s; *c; c++)
        bare = bare && ((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || strchr(more, *c));
    if (bare) rl_put_bytes(t, s, strlen(s));
    else put_quoted(t, s, strlen(s));
}

static void put_type(printer *p, const rl_valinfo *v) {
    rl_text x = {.mem = p->tmp};
    if (v->dtype != RL_UNDEF || v->rank != RL_NORANK) {
        rl_put(&x, " %s[", rl_dtype_name(v->dtype));
        if (v->rank == RL_NORANK) rl_put(&x, "...");
        for (uint32_t i = 0; v->rank != RL_NORANK && i < v->rank; i++) {
            if (i) rl_put(&x, ",");
            rl_dim_print(&x, p->t->mem->ctx, v->dim[i]);
        }
        rl_put(&x, "]");
    }
    if (v->layout) {
        rl_put(&x, "@");
        rl_layout_print(&x, v->layout, v->rank, v->dim);
    }
    rl_dim_renumber(p->t, x.p, x.n, &p->fresh);
}

/* The graph around sc where the body's outer value is defined; *v becomes its value there. */
static const scope *defining(const scope *sc, rl_value *v) {
    rl_str name = rl_val(sc->g, *v)->name;
    for (const scope *s = sc->up; s; s = s->up) {
        rl_value x = rl_graph_find(s->g, name);
        if (!rl_has(x) || rl_val(s->g, x)->is_outer) continue;
        *v = x;
        return s;
    }
    return sc;
}

static void put_value(printer *p, const scope *sc, rl_value v) {
    if (!rl_has(v)) {
        rl_put(p->t, "_");
        return;
    }
    rl_put(p->t, "%%");
    if (rl_val(sc->g, v)->is_outer) {
        rl_put(p->t, "^");
        sc = defining(sc, &v);
    }
    const rl_valinfo *x = rl_val(sc->g, v);
    if (!p->canonical && x->name) {
        put_word(p->t, x->name, "_.:/$-");
        return;
    }
    if (sc->num[v.i] == RL_NONE) sc->num[v.i] = p->nnum++;
    rl_put(p->t, p->canonical ? "%u" : "~%u", sc->num[v.i]);
}

static void put_indent(printer *p) {
    rl_put(p->t, "%*s", p->indent * 2, "");
}

/* ---- constants ---- */

/* Float types as double; 0 for others. */
static double float_at(rl_dtype t, const void *p) {
    float f;
    double d;
    uint16_t h;
    switch ((int)t) {
    case RL_F32: memcpy(&f, p, 4); return (double)f;
    case RL_F64: memcpy(&d, p, 8); return d;
    case RL_F16: memcpy(&h, p, 2); return (double)rl_half_float(h);
    case RL_BF16: memcpy(&h, p, 2); return (double)rl_bf16_float(h);
    default: return 0;
    }
}

/* NaNs have bits that a text does not keep. */
static bool has_nan(const rl_const *c, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (isnan(float_at(c->dtype, (const char *)c->data + i * rl_dtype_bits(c->dtype) / 8))) return true;
    return false;
}

static void put_element(rl_text *t, rl_dtype type, const void *p) {
    uint32_t bits = rl_dtype_bits(type);
    uint64_t u = 0;
    char s[32];
    memcpy(&u, p, bits / 8);
    switch ((int)type) {
    case RL_F64: rl_text_put_double(t, float_at(type, p)); break;
    case RL_F32: case RL_F16: case RL_BF16:
        rl_text_shortest(s, type, (float)float_at(type, p));
        rl_put(t, "%s", s);
        break;
    case RL_I8: case RL_I16: case RL_I32: case RL_I64:
        rl_put(t, "%lld", (long long)((int64_t)(u << (64 - bits)) >> (64 - bits)));
        break;
    default: rl_put(t, "%llu", (unsigned long long)u);
    }
}

/* Types whose elements have a text. */
static bool has_numbers(rl_dtype t) {
    return (t >= RL_F32 && t <= RL_U64 && t != RL_STRING) || t == RL_BF16;
}

static size_t count_elements(const rl_const *c) {
    size_t n = 1;
    for (uint32_t i = 0; i < c->rank; i++)
        if (__builtin_mul_overflow(n, (size_t)c->dim[i], &n)) return SIZE_MAX;
    return n;
}

static void put_hex(rl_text *t, const void *s, size_t n) {
    const unsigned char *p = s;
    rl_put(t, "hex\"");
    for (size_t i = 0; i < n; i++) rl_put(t, "%02x", p[i]);
    rl_put(t, "\"");
}

static void put_elements(rl_text *t, const rl_const *c, size_t n) {
    rl_put(t, "{");
    for (size_t i = 0; i < n; i++) {
        if (i) rl_put(t, ",");
        put_element(t, c->dtype, (const char *)c->data + i * rl_dtype_bits(c->dtype) / 8);
    }
    rl_put(t, "}");
}

static void put_data(rl_text *t, const rl_const *c) {
    size_t n = count_elements(c);
    uint64_t seed;
    if (!c->data) {
        rl_put(t, "external");
    } else if (n <= MAXSHOWN && has_numbers(c->dtype) && c->nbyte == n * rl_dtype_bits(c->dtype) / 8 && !has_nan(c, n)) {
        put_elements(t, c, n);
    } else if (n <= MAXSHOWN) {
        put_hex(t, c->data, c->nbyte);
    } else {
        if (!rl_text_seed_of(c->dtype, c->data, c->nbyte, &seed)) seed = rl_hash_bytes(c->data, c->nbyte);
        rl_put(t, "seed=%llu", (unsigned long long)seed);
    }
}

static void put_const_line(printer *p, const scope *sc, rl_value v) {
    const rl_valinfo *x = rl_val(sc->g, v);
    put_indent(p);
    rl_put(p->t, "const ");
    put_value(p, sc, v);
    put_type(p, x);
    rl_put(p->t, " ");
    if (x->data) put_data(p->t, x->data);
    else rl_put(p->t, "external");
    rl_put(p->t, "\n");
}

/* ---- nodes ---- */

static void put_graph(printer *p, const rl_graph *g, const scope *up);

static void put_tensor(rl_text *t, const rl_const *c) {
    rl_put(t, "%s[", rl_dtype_name(c->dtype));
    for (uint32_t i = 0; i < c->rank; i++) rl_put(t, i ? ",%lld" : "%lld", (long long)c->dim[i]);
    rl_put(t, "]");
    put_data(t, c);
}

static void put_list(rl_text *t, const rl_attr *a) {
    if (a->n == 0 && a->kind != RL_ATTR_INTS) rl_put(t, a->kind == RL_ATTR_FLOATS ? "floats" : "strings");
    rl_put(t, "[");
    for (uint32_t i = 0; i < a->n; i++) {
        if (i) rl_put(t, ",");
        if (a->kind == RL_ATTR_INTS) rl_put(t, "%lld", (long long)a->ints[i]);
        else if (a->kind == RL_ATTR_FLOATS) rl_text_put_float(t, a->floats[i]);
        else put_quoted(t, a->strings[i].p, a->strings[i].n);
    }
    rl_put(t, "]");
}

static void put_attr(printer *p, const scope *sc, const rl_attr *a) {
    rl_put(p->t, " ");
    put_word(p->t, a->name, "_.-");
    rl_put(p->t, "=");
    if ((a->kind == RL_ATTR_TENSOR && !a->tensor) || (a->kind == RL_ATTR_GRAPH && !a->graph)) {
        put_hex(p->t, a->raw.p, a->raw.n);
        return;
    }
    switch (a->kind) {
    case RL_ATTR_INT: rl_put(p->t, "%lld", (long long)a->i); break;
    case RL_ATTR_FLOAT: rl_text_put_float(p->t, a->f); break;
    case RL_ATTR_STRING: put_quoted(p->t, a->s.p, a->s.n); break;
    case RL_ATTR_INTS: case RL_ATTR_FLOATS: case RL_ATTR_STRINGS: put_list(p->t, a); break;
    case RL_ATTR_TENSOR: put_tensor(p->t, a->tensor); break;
    case RL_ATTR_GRAPH: put_graph(p, a->graph, sc); break;
    case RL_ATTR_OTHER: put_hex(p->t, a->raw.p, a->raw.n); break;
    }
}

static void put_attrs(printer *p, const scope *sc, const rl_nodeinfo *n) {
    const rl_attr **a = rl_new(p->tmp, const rl_attr *, n->nattr);
    for (uint32_t i = 0; i < n->nattr; i++) {
        uint32_t k = i;
        for (; k && strcmp(a[k - 1]->name, n->attr[i].name) > 0; k--) a[k] = a[k - 1];
        a[k] = &n->attr[i];
    }
    for (uint32_t i = 0; i < n->nattr; i++) put_attr(p, sc, a[i]);
}

static void put_node(printer *p, const scope *sc, rl_node node) {
    const rl_nodeinfo *n = rl_nod(sc->g, node);
    put_indent(p);
    if (!n->nout) rl_put(p->t, "()");
    for (uint32_t i = 0; i < n->nout; i++) {
        if (i) rl_put(p->t, ", ");
        put_value(p, sc, n->out[i]);
        if (rl_has(n->out[i])) put_type(p, rl_val(sc->g, n->out[i]));
    }
    rl_put(p->t, " = ");
    if (n->domain && *n->domain) {
        put_word(p->t, n->domain, "_.-");
        rl_put(p->t, "::");
    }
    put_word(p->t, n->type, "_.-");
    rl_put(p->t, "(");
    for (uint32_t i = 0; i < n->nin; i++) {
        if (i) rl_put(p->t, ", ");
        put_value(p, sc, n->in[i]);
    }
    rl_put(p->t, ")");
    if (!p->canonical && n->name && *n->name) {
        rl_put(p->t, " @name=");
        put_quoted(p->t, n->name, strlen(n->name));
    }
    put_attrs(p, sc, n);
    rl_put(p->t, "\n");
}

/* ---- graphs ---- */

/* A walk from the outputs, each node after those that it reads. */
typedef struct {
    const rl_graph *g;
    bool *seen;
    struct { rl_node node; uint32_t slot; } *stack;
    rl_node *order;
    uint32_t n;
} walk;

static void walk_from(walk *w, rl_node from) {
    uint32_t depth = 0;
    if (from.i == RL_NONE || w->seen[from.i]) return;
    w->seen[from.i] = true;
    w->stack[depth].slot = 0;
    w->stack[depth++].node = from;
    while (depth) {
        rl_node x = w->stack[depth - 1].node;
        const rl_nodeinfo *n = rl_nod(w->g, x);
        if (w->stack[depth - 1].slot == n->nin + n->ncap) {
            w->order[w->n++] = x;
            depth--;
            continue;
        }
        rl_value v = rl_slot_value(n, w->stack[depth - 1].slot++);
        rl_node d = rl_has(v) ? rl_val(w->g, v)->def : RL_NONODE;
        if (d.i == RL_NONE || w->seen[d.i]) continue;
        w->seen[d.i] = true;
        w->stack[depth].slot = 0;
        w->stack[depth++].node = d;
    }
}

static void canonical_order(printer *p, walk *w) {
    const rl_graph *g = w->g;
    w->seen = rl_new(p->tmp, bool, g->nnode);
    w->stack = rl_alloc_array(p->tmp, g->nnode, sizeof *w->stack);
    w->order = rl_new(p->tmp, rl_node, g->nnode);
    for (uint32_t i = 0; i < g->output.n; i++) walk_from(w, rl_val(g, g->output.p[i])->def);
    for (uint32_t i = 0; i < g->order.n; i++) walk_from(w, g->order.p[i]);
}

static void put_const_once(printer *p, const scope *sc, bool *done, rl_value v) {
    if (!rl_has(v) || done[v.i] || !rl_val(sc->g, v)->is_init) return;
    done[v.i] = true;
    put_const_line(p, sc, v);
}

static void put_consts(printer *p, const scope *sc, const walk *w) {
    const rl_graph *g = sc->g;
    bool *done = rl_new(p->tmp, bool, g->nval);
    for (uint32_t i = 0; p->canonical && i < w->n; i++) {
        const rl_nodeinfo *n = rl_nod(g, w->order[i]);
        for (uint32_t s = 0; s < n->nin + n->ncap; s++) put_const_once(p, sc, done, rl_slot_value(n, s));
    }
    for (uint32_t i = 0; p->canonical && i < g->output.n; i++) put_const_once(p, sc, done, g->output.p[i]);
    for (uint32_t i = 0; i < g->init.n; i++) put_const_once(p, sc, done, g->init.p[i]);
}

static int compare_opsets(const void *a, const void *b) {
    return strcmp(((const rl_opset *)a)->domain, ((const rl_opset *)b)->domain);
}

static void put_header(printer *p, const rl_graph *g) {
    rl_put(p->t, "graph");
    if (!p->canonical && g->name && *g->name) {
        rl_put(p->t, " ");
        put_word(p->t, g->name, "_.-");
    }
    rl_opset *o = rl_copy(p->tmp, g->opset.p, g->opset.n * sizeof *o);
    if (g->opset.n) qsort(o, g->opset.n, sizeof *o, compare_opsets);
    for (uint32_t i = 0; i < g->opset.n; i++) {
        rl_put(p->t, " opset");
        if (*o[i].domain && strcmp(o[i].domain, "ai.onnx") != 0) {
            rl_put(p->t, ".");
            put_word(p->t, o[i].domain, "_.-");
        }
        rl_put(p->t, "=%lld", (long long)o[i].version);
    }
    if (!p->canonical && !g->parent && g->ir_version && g->ir_version != RL_TEXT_IR) rl_put(p->t, " ir=%lld", (long long)g->ir_version);
    rl_put(p->t, " {\n");
}

static void put_outputs(printer *p, const scope *sc) {
    const rl_graph *g = sc->g;
    if (!g->output.n) return;
    put_indent(p);
    rl_put(p->t, "out ");
    for (uint32_t i = 0; i < g->output.n; i++) {
        if (i) rl_put(p->t, ", ");
        put_value(p, sc, g->output.p[i]);
    }
    rl_put(p->t, "\n");
}

static void put_graph(printer *p, const rl_graph *g, const scope *up) {
    scope sc = {g, rl_new(p->tmp, uint32_t, g->nval), up};
    walk w = {.g = g, .order = g->order.p, .n = g->order.n};
    memset(sc.num, 0xff, g->nval * sizeof *sc.num);
    if (p->canonical) {
        w.n = 0;
        canonical_order(p, &w);
    }
    put_header(p, g);
    p->indent++;
    for (uint32_t i = 0; i < g->input.n; i++) {
        put_indent(p);
        rl_put(p->t, "in ");
        put_value(p, &sc, g->input.p[i]);
        put_type(p, rl_val(g, g->input.p[i]));
        rl_put(p->t, "\n");
    }
    put_consts(p, &sc, &w);
    for (uint32_t i = 0; i < w.n; i++) put_node(p, &sc, w.order[i]);
    put_outputs(p, &sc);
    p->indent--;
    put_indent(p);
    rl_put(p->t, "}");
}

void rl_text_print(const rl_graph *g, bool canonical, rl_text *out) {
    rl_arena tmp;
    rl_arena_init(&tmp, g->ctx);
    printer p = {.t = out, .tmp = &tmp, .canonical = canonical, .fresh = {.mem = &tmp}};
    put_graph(&p, g, NULL);
    rl_put(out, "\n");
    rl_arena_free(&tmp);
}
