/* Text to graphs: see text.h.  Recursive descent over the characters; functions answer false once the message is stored.
 *
 * A value may be used before it is defined (by a line further down); what is never defined is an error at its first use, and
 * lines out of order are sorted at the end.  Layouts are read last, when shape inference knows all dims. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "ops.h"
#include "shape.h"
#include "text.h"

enum { MAXNEST = 100 };
static const size_t max_data = (size_t)1 << 32; /* bytes of one constant */

/* A graph being read. */
typedef struct scope {
    rl_graph *g;
    struct scope *up;
    rl_hash unnamed;                                     /* N of %~N -> value */
    struct { const char **p; uint32_t n, cap; } first;   /* per value: where it first stood */
    bool unordered;                                      /* a node reads what a later line makes */
} scope;

typedef struct { rl_graph *g; rl_value v; const char *at; } pending;

typedef struct {
    rl_ctx *ctx;
    rl_arena *tmp;
    const char *file, *start, *end, *s;
    rl_status status;
    uint32_t nest;
    struct { rl_graph **p; uint32_t n, cap; } graphs;  /* all made here, to free them after an error */
    struct { pending *p; uint32_t n, cap; } layouts;
} parser;

/* ---- errors ---- */

static bool fail_at(parser *p, const char *at, const char *what) {
    uint32_t line = 1;
    const char *bol = p->start;
    for (const char *c = p->start; c < at; c++) {
        if (*c != '\n') continue;
        line++;
        bol = c + 1;
    }
    size_t col = (size_t)(at - bol), from = col > 100 ? col - 100 : 0, n = strcspn(bol + from, "\n");
    rl_text shown = {.mem = p->tmp};
    for (size_t i = from; i < from + RL_MIN(n, (size_t)160); i++) rl_put_bytes(&shown, bol[i] == '\t' ? " " : &bol[i], 1);
    p->status = rl_fail(p->ctx, RL_EMODEL, "%s:%u:%zu: %s\n%s\n%*s^", p->file, line, col + 1, what, shown.n ? shown.p : "",
                        (int)(col - from), "");
    return false;
}

static bool fail_name(parser *p, const char *at, const char *fmt, const char *name) {
    rl_text t = {.mem = p->tmp};
    for (const char *c = fmt; *c; c++) {
        if (*c == '$') rl_put_bytes(&t, name, strlen(name));
        else rl_put_bytes(&t, c, 1);
    }
    return fail_at(p, at, t.p);
}

/* ---- words ---- */

static void skip(parser *p) {
    for (;; p->s++) {
        if (*p->s == '#')
            while (*p->s && *p->s != '\n') p->s++;
        if (*p->s != ' ' && *p->s != '\n' && *p->s != '\t' && *p->s != '\r') return;
    }
}

static bool peek(parser *p, char c) {
    skip(p);
    return *p->s == c;
}

static bool take(parser *p, char c) {
    if (!peek(p, c)) return false;
    p->s++;
    return true;
}

static bool want(parser *p, char c) {
    char what[] = "'?' is wanted here";
    what[1] = c;
    return take(p, c) || fail_at(p, p->s, what);
}

static bool alnum(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool word_char(char c, const char *more) {
    return alnum(c) || (c && strchr(more, c));
}

/* The word is next, and no longer one. */
static bool take_word(parser *p, const char *w) {
    size_t n = strlen(w);
    skip(p);
    if (strncmp(p->s, w, n) != 0 || word_char(p->s[n], "_.-")) return false;
    p->s += n;
    return true;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool parse_escape(parser *p, char *c) {
    *c = *p->s++;
    if (*c == 'n') *c = '\n';
    if (*c == 't') *c = '\t';
    if (*c != 'x') return *c != 0 || fail_at(p, p->s - 1, "the text ends in a string");
    int hi = hex_digit(p->s[0]), lo = hi < 0 ? -1 : hex_digit(p->s[1]);
    if (lo < 0) return fail_at(p, p->s, "two hex digits are wanted here");
    *c = (char)(hi * 16 + lo);
    p->s += 2;
    return true;
}

/* "...", with \" \\ \n \t \xNN */
static bool parse_string(parser *p, rl_arena *mem, rl_span *out) {
    rl_text t = {.mem = mem};
    if (!want(p, '"')) return false;
    const char *at = p->s - 1;
    rl_put_bytes(&t, "", 0);
    while (*p->s != '"') {
        char c = *p->s++;
        if (c == '\\' && !parse_escape(p, &c)) return false;
        else if (c == '\n' && p->s[-1] == '\n') return fail_at(p, at, "this string does not end in its line");
        else if (c == 0 && p->s > p->end) return fail_at(p, at, "this string does not end");
        rl_put_bytes(&t, &c, 1);
    }
    p->s++;
    *out = (rl_span){(const uint8_t *)t.p, t.n};
    return true;
}

static bool parse_word(parser *p, const char *more, rl_str *out) {
    rl_span q;
    skip(p);
    if (*p->s == '"') {
        if (!parse_string(p, p->tmp, &q)) return false;
        *out = rl_intern(p->ctx, (const char *)q.p, q.n);
        return true;
    }
    const char *from = p->s;
    while (word_char(*p->s, more)) p->s++;
    if (p->s == from) return fail_at(p, p->s, "a name is wanted here");
    *out = rl_intern(p->ctx, from, (size_t)(p->s - from));
    return true;
}

static bool parse_int(parser *p, int64_t *x) {
    char *end;
    skip(p);
    errno = 0;
    *x = strtoll(p->s, &end, 10);
    if (end == p->s) return fail_at(p, p->s, "an integer is wanted here");
    if (errno) return fail_at(p, p->s, "this integer has more than 64 bits");
    p->s = end;
    return true;
}

static bool parse_uint(parser *p, uint64_t *x) {
    char *end;
    skip(p);
    errno = 0;
    if (*p->s < '0' || *p->s > '9') return fail_at(p, p->s, "a number is wanted here");
    *x = strtoull(p->s, &end, 10);
    if (errno) return fail_at(p, p->s, "this integer has more than 64 bits");
    p->s = end;
    return true;
}

static bool parse_double(parser *p, double *x) {
    char *end;
    skip(p);
    *x = strtod(p->s, &end);
    if (end == p->s) return fail_at(p, p->s, "a number is wanted here");
    p->s = end;
    return true;
}

/* ---- types ---- */

typedef struct { rl_dtype dtype; uint32_t rank; rl_dim dim[64]; const char *layout; } type;

/* A layout's text, read later. */
static bool skip_layout(parser *p) {
    if (*p->s != '"') {
        while (alnum(*p->s)) p->s++;
        return true;
    }
    const char *at = p->s++;
    for (bool name = false; *p->s != '"' || name; p->s++) {
        if (!*p->s || *p->s == '\n') return fail_at(p, at, "this layout does not end");
        if (name && *p->s == '\\' && p->s[1]) p->s++;
        else if (*p->s == '\'') name = !name;
    }
    p->s++;
    return true;
}

static bool parse_dims(parser *p, type *t) {
    skip(p);
    if (strncmp(p->s, "...", 3) == 0) {
        p->s += 3;
        t->rank = RL_NORANK;
        return want(p, ']');
    }
    t->rank = 0;
    if (take(p, ']')) return true;
    do {
        if (t->rank == RL_LEN(t->dim)) return fail_at(p, p->s, "a tensor has at most 64 dims");
        skip(p);
        const char *at = p->s;
        if (!rl_dim_parse(p->ctx, &p->s, &t->dim[t->rank++])) return fail_at(p, at, "a dim is wanted here");
    } while (take(p, ','));
    return want(p, ']');
}

/* Looks like f32[ from here on. */
static bool type_ahead(parser *p) {
    size_t n = 0;
    skip(p);
    while (alnum(p->s[n])) n++;
    return n && p->s[n] == '[';
}

static bool parse_dtype(parser *p, rl_dtype *t) {
    const char *at = p->s;
    while (alnum(*p->s)) p->s++;
    *t = rl_dtype_parse(at, (size_t)(p->s - at));
    if (*t == RL_UNDEF && strncmp(at, "undef[", 6) != 0) return fail_at(p, at, "this is no element type");
    p->s++;
    return true;
}

/* f32[2,N]@acdb, with either part missing. */
static bool parse_type(parser *p, type *t) {
    *t = (type){.rank = RL_NORANK};
    if (type_ahead(p) && (!parse_dtype(p, &t->dtype) || !parse_dims(p, t))) return false;
    if (*p->s != '@') return true;
    t->layout = ++p->s;
    return skip_layout(p);
}

static void set_type(parser *p, scope *sc, rl_value v, const type *t) {
    if (t->dtype != RL_UNDEF || t->rank != RL_NORANK) rl_graph_set_type(sc->g, v, t->dtype, t->rank, t->dim);
    pending x = {sc->g, v, t->layout};
    if (t->layout) rl_push(p->tmp, p->layouts, x);
}

/* ---- values ---- */

static rl_value new_value(parser *p, scope *sc, rl_str name, const char *at) {
    rl_value v = rl_graph_value(sc->g, name);
    while (sc->first.n < sc->g->nval) rl_push(p->tmp, sc->first, at);
    return v;
}

static bool is_defined(const rl_valinfo *x) {
    return x->def.i != RL_NONE || x->is_input || x->is_init || x->is_outer;
}

/* The value in sc that stands for the outer one; every graph between gets one too. */
static bool outer_value(parser *p, scope *sc, rl_str name, const char *at, rl_value *out) {
    if (!sc->up) return fail_name(p, at, "no graph around this one has a value %$", name);
    rl_value there = rl_graph_find(sc->up->g, name);
    if (!rl_has(there) && !outer_value(p, sc->up, name, at, &there)) return false;
    *out = new_value(p, sc, name, at);
    rl_valinfo *x = rl_val(sc->g, *out);
    if (x->is_outer) return true;
    if (is_defined(x)) return fail_name(p, at, "%$ is a value of this graph too", name);
    const rl_valinfo *y = rl_val(sc->up->g, there);
    if (y->rank != RL_NORANK || y->dtype != RL_UNDEF) rl_graph_set_type(sc->g, *out, y->dtype, y->rank, y->dim);
    x->is_outer = true;
    rl_push(&sc->g->mem, sc->g->outer, *out);
    return true;
}

/* %name, %"name", %~3, %^name, _ */
static bool parse_value(parser *p, scope *sc, rl_value *v) {
    rl_str name;
    uint64_t k;
    skip(p);
    const char *at = p->s;
    if (take_word(p, "_")) {
        *v = RL_NOVALUE;
        return true;
    }
    if (*p->s != '%') return fail_at(p, at, "a value (%name or _) is wanted here");
    p->s++;
    if (*p->s == '~') {
        p->s++;
        if (!parse_uint(p, &k)) return false;
        v->i = rl_hash_get(&sc->unnamed, k);
        if (!rl_has(*v)) rl_hash_put(&sc->unnamed, k, (*v = new_value(p, sc, NULL, at)).i);
        return true;
    }
    bool outer = *p->s == '^';
    p->s += outer;
    if (!alnum(*p->s) && !strchr("\"_.:/$-", *p->s)) return fail_at(p, p->s, "a name is wanted here");
    if (!parse_word(p, "_.:/$-", &name)) return false;
    if (outer) return outer_value(p, sc, name, at, v);
    *v = new_value(p, sc, name, at);
    return true;
}

/* A value that this line defines, with its type. */
static bool parse_definition(parser *p, scope *sc, rl_value *v, bool *twice) {
    type t;
    skip(p);
    const char *at = p->s;
    if (!parse_value(p, sc, v)) return false;
    *twice = rl_has(*v) && is_defined(rl_val(sc->g, *v));
    if (!rl_has(*v)) return true;
    if (rl_val(sc->g, *v)->is_outer) return fail_at(p, at, "a value of a graph around this one cannot be defined here");
    if (!parse_type(p, &t)) return false;
    if (rl_val(sc->g, *v)->nuse) sc->unordered = true;
    set_type(p, sc, *v, &t);
    return true;
}

static bool fail_twice(parser *p, const scope *sc, rl_value v, const char *at) {
    rl_str name = rl_val(sc->g, v)->name;
    return fail_name(p, at, "%$ is defined twice", name ? name : "~");
}

/* ---- constants ---- */

typedef struct { rl_dtype t; unsigned char *p; size_t n, nbyte; } data;

/* The number in T's bits; false when it is out of range. */
static bool store_int(rl_dtype t, int64_t x, unsigned char *p) {
    uint32_t bits = rl_dtype_bits(t);
    bool is_signed = t == RL_I8 || t == RL_I16 || t == RL_I32 || t == RL_I64;
    if (t == RL_BOOL && (x < 0 || x > 1)) return false;
    if (is_signed && bits < 64 && (x < -((int64_t)1 << (bits - 1)) || x >> (bits - 1) > 0)) return false;
    if (!is_signed && (x < 0 || (bits < 64 && x >> bits))) return false;
    memcpy(p, &x, bits / 8);
    return true;
}

static void store_float(rl_dtype t, double d, unsigned char *p) {
    float f = (float)d;
    uint16_t h = t == RL_F16 ? rl_float_half(f) : rl_float_bf16(f);
    if (t == RL_F64) memcpy(p, &d, 8);
    else if (t == RL_F32) memcpy(p, &f, 4);
    else memcpy(p, &h, 2);
}

static bool parse_element(parser *p, rl_dtype t, unsigned char *to) {
    double d;
    int64_t x;
    uint64_t u;
    skip(p);
    const char *at = p->s;
    if (t == RL_F32 || t == RL_F64 || t == RL_F16 || t == RL_BF16) {
        if (!parse_double(p, &d)) return false;
        if (t == RL_F32) d = (double)strtof(at, NULL); /* rounded once */
        store_float(t, d, to);
        return true;
    }
    if (t == RL_BOOL && (take_word(p, "true") || take_word(p, "false"))) {
        *to = *at == 't';
        return true;
    }
    if (t == RL_U64) {
        if (!parse_uint(p, &u)) return false;
        memcpy(to, &u, 8);
        return true;
    }
    if (!parse_int(p, &x)) return false;
    return store_int(t, x, to) || fail_at(p, at, "this number does not fit the element type");
}

/* {1,2,3}; one number alone is repeated. */
static bool parse_elements(parser *p, data *d) {
    size_t size = rl_dtype_bits(d->t) / 8, n = 0;
    unsigned char extra[16];
    const char *at = p->s;
    if (!want(p, '{')) return false;
    if (!(d->t >= RL_F32 && d->t <= RL_U64 && d->t != RL_STRING) && d->t != RL_BF16)
        return fail_at(p, at, "elements of this type are written hex\"...\"");
    if (!take(p, '}')) {
        do {
            if (!parse_element(p, d->t, n < d->n ? d->p + n * size : extra)) return false;
            n++;
        } while (take(p, ','));
        if (!want(p, '}')) return false;
    }
    if (n == 1)
        for (; n < d->n; n++) memcpy(d->p + n * size, d->p, size);
    return n == d->n || (d->n == 0 && n <= 1) || fail_at(p, at, "there are more or fewer elements than the type has");
}

static bool parse_hex(parser *p, rl_arena *mem, rl_span *out) {
    const char *at = p->s;
    if (!want(p, '"')) return false;
    size_t n = strcspn(p->s, "\"\n");
    unsigned char *to = rl_new(mem, unsigned char, n / 2);
    for (size_t i = 0; i + 1 < n; i += 2) {
        int hi = hex_digit(p->s[i]), lo = hex_digit(p->s[i + 1]);
        if (hi < 0 || lo < 0) return fail_at(p, p->s + i, "two hex digits are wanted here");
        to[i / 2] = (unsigned char)(hi * 16 + lo);
    }
    if (n % 2 || p->s[n] != '"') return fail_at(p, at, "this needs pairs of hex digits up to a \"");
    p->s += n + 1;
    *out = (rl_span){to, n / 2};
    return true;
}

static bool take_prefix(parser *p, const char *w, char next) {
    size_t n = strlen(w);
    skip(p);
    if (strncmp(p->s, w, n) != 0 || p->s[n] != next) return false;
    p->s += n;
    return true;
}

static bool parse_data(parser *p, data *d) {
    rl_span raw;
    uint64_t seed;
    skip(p);
    const char *at = p->s;
    if (*p->s == '{') return parse_elements(p, d);
    if (take_prefix(p, "seed", '=')) {
        p->s++;
        if (!parse_uint(p, &seed)) return false;
        rl_text_seeded(d->t, seed, d->p, d->nbyte);
        return true;
    }
    if (!take_prefix(p, "hex", '"')) return fail_at(p, at, "{...}, seed=K, hex\"...\" or external is wanted here");
    if (!parse_hex(p, p->tmp, &raw)) return false;
    if (raw.n != d->nbyte) return fail_at(p, at, "these are more or fewer bytes than the type has");
    if (raw.n) memcpy(d->p, raw.p, raw.n);
    return true;
}

static bool count_bytes(parser *p, const type *t, const char *at, data *d) {
    uint32_t bits = rl_dtype_bits(t->dtype);
    d->t = t->dtype;
    d->n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (!rl_dim_known(t->dim[i])) return fail_at(p, at, "a constant needs dims that are numbers");
        if (__builtin_mul_overflow(d->n, (size_t)t->dim[i], &d->n)) return fail_at(p, at, "this constant is too large");
    }
    if (d->n > max_data / 16) return fail_at(p, at, "this constant is too large");
    d->nbyte = (d->n * bits + 7) / 8;
    return true;
}

static bool parse_const_of(parser *p, rl_graph *g, const type *t, const char *at, rl_const **out) {
    data d = {0};
    if (t->rank == RL_NORANK || t->dtype == RL_UNDEF) return fail_at(p, at, "a constant needs a type");
    if (!count_bytes(p, t, at, &d)) return false;
    rl_const *c = *out = rl_new(&g->mem, rl_const, 1);
    *c = (rl_const){t->dtype, t->rank, rl_copy(&g->mem, t->dim, t->rank * sizeof *t->dim), NULL, 0};
    if (take_word(p, "external")) return true;
    if (t->dtype == RL_STRING) return fail_at(p, at, "strings have no text: external");
    d.p = rl_alloc(&g->mem, d.nbyte);
    c->data = d.p;
    c->nbyte = d.nbyte;
    return parse_data(p, &d);
}

static bool parse_const_line(parser *p, scope *sc) {
    rl_const *c;
    rl_value v;
    type t;
    skip(p);
    const char *at = p->s;
    if (!parse_value(p, sc, &v)) return false;
    if (!rl_has(v)) return fail_at(p, at, "a constant needs a name");
    const rl_valinfo *x = rl_val(sc->g, v);
    if (is_defined(x) && !(x->is_input && !x->is_init)) return fail_twice(p, sc, v, at);
    if (!parse_type(p, &t) || !parse_const_of(p, sc->g, &t, at, &c)) return false;
    set_type(p, sc, v, &t);
    rl_val(sc->g, v)->data = c;
    rl_val(sc->g, v)->is_init = true;
    rl_push(&sc->g->mem, sc->g->init, v);
    return true;
}

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
    skip(p);
    if (*p->s == '"') {
        rl_span s;
        if (!parse_string(p, &g->mem, &s)) return false;
        rl_push(&g->mem, l->strings, s);
        a->kind = RL_ATTR_STRINGS;
    } else if (float_ahead(p->s)) {
        double d;
        const char *at = p->s;
        if (!parse_double(p, &d)) return false;
        rl_push(&g->mem, l->floats, strtof(at, NULL));
        a->kind = RL_ATTR_FLOATS;
    } else {
        int64_t x;
        if (!parse_int(p, &x)) return false;
        rl_push(&g->mem, l->ints, x);
        a->kind = RL_ATTR_INTS;
    }
    return true;
}

/* [1,2], [1.0,2.0], ["a"]; the kind of an empty one is set before. */
static bool parse_list(parser *p, rl_graph *g, rl_attr *a) {
    list l = {0};
    const char *at = p->s;
    if (!want(p, '[')) return false;
    if (!take(p, ']')) {
        do
            if (!parse_item(p, g, a, &l)) return false;
        while (take(p, ','));
        if (!want(p, ']')) return false;
    }
    if ((l.ints.n != 0) + (l.floats.n != 0) + (l.strings.n != 0) > 1) return fail_at(p, at, "a list has elements of one kind");
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
    if (!parse_type(p, &t)) return false;
    if (t.layout) return fail_at(p, t.layout, "a tensor attribute has no layout");
    if (!parse_const_of(p, g, &t, at, &c)) return false;
    a->kind = RL_ATTR_TENSOR;
    a->tensor = c;
    return true;
}

static bool parse_number_attr(parser *p, rl_attr *a) {
    double d;
    const char *at = p->s;
    if (!float_ahead(p->s)) {
        a->kind = RL_ATTR_INT;
        return parse_int(p, &a->i);
    }
    a->kind = RL_ATTR_FLOAT;
    if (!parse_double(p, &d)) return false;
    a->f = strtof(at, NULL);
    return true;
}

static bool parse_attr_value(parser *p, scope *sc, rl_attr *a) {
    rl_graph *g = sc->g;
    skip(p);
    if (*p->s == '"') {
        a->kind = RL_ATTR_STRING;
        return parse_string(p, &g->mem, &a->s);
    }
    a->kind = RL_ATTR_INTS;
    if (*p->s == '[') return parse_list(p, g, a);
    if (take_prefix(p, "floats", '[')) {
        a->kind = RL_ATTR_FLOATS;
        return parse_list(p, g, a);
    }
    if (take_prefix(p, "strings", '[')) {
        a->kind = RL_ATTR_STRINGS;
        return parse_list(p, g, a);
    }
    if (take_prefix(p, "hex", '"')) {
        a->kind = RL_ATTR_OTHER;
        return parse_hex(p, &g->mem, &a->raw);
    }
    if (type_ahead(p)) return parse_tensor_attr(p, g, a);
    if (strncmp(p->s, "graph", 5) == 0 && !alnum(p->s[5])) {
        a->kind = RL_ATTR_GRAPH;
        return parse_graph(p, sc, &a->graph);
    }
    return parse_number_attr(p, a);
}

/* name= follows, as after a node's bracket. */
static bool attr_ahead(parser *p) {
    skip(p);
    const char *s = p->s;
    if (*s == '@' || *s == '"') return true;
    while (word_char(*s, "_.-")) s++;
    return s != p->s && *s == '=';
}

typedef struct { rl_attr *p; uint32_t n, cap; } attrs;

static bool parse_attrs(parser *p, scope *sc, attrs *out, rl_str *node_name) {
    while (attr_ahead(p)) {
        rl_attr a = {0};
        const char *at = p->s;
        bool special = take(p, '@');
        if (!parse_word(p, "_.-", &a.name) || !want(p, '=')) return false;
        if (special) {
            if (strcmp(a.name, "name") != 0) return fail_at(p, at, "only @name is known");
            if (!parse_word(p, "_.:/$-", node_name)) return false;
            continue;
        }
        for (uint32_t i = 0; i < out->n; i++)
            if (out->p[i].name == a.name) return fail_at(p, at, "this attribute stands twice");
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
    if (!parse_word(p, "_.-", op)) return false;
    if (p->s[0] != ':' || p->s[1] != ':') return true;
    p->s += 2;
    *domain = *op;
    return parse_word(p, "_.-", op);
}

static bool parse_outputs(parser *p, scope *sc, values *out) {
    if (take(p, '(')) return want(p, ')');
    do {
        rl_value v;
        bool twice;
        skip(p);
        const char *at = p->s;
        if (!parse_definition(p, sc, &v, &twice)) return false;
        for (uint32_t i = 0; i < out->n; i++) twice = twice || (rl_has(v) && rl_same(out->p[i], v));
        if (twice) return fail_twice(p, sc, v, at);
        rl_push(p->tmp, *out, v);
    } while (take(p, ','));
    return true;
}

static bool parse_inputs(parser *p, scope *sc, values *in) {
    if (!want(p, '(')) return false;
    if (take(p, ')')) return true;
    do {
        rl_value v;
        if (!parse_value(p, sc, &v)) return false;
        rl_push(p->tmp, *in, v);
    } while (take(p, ','));
    return want(p, ')');
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
    if (!parse_outputs(p, sc, &out) || !want(p, '=')) return false;
    skip(p);
    const char *at = p->s;
    if (!parse_op(p, &domain, &op) || !parse_inputs(p, sc, &in) || !parse_attrs(p, sc, &a, &name)) return false;
    int64_t version = import(sc, domain);
    bool move = !*domain && strcmp(op, "Move") == 0;
    if (move && (in.n != 1 || out.n != 1)) return fail_at(p, at, "Move has one input and one output");
    rl_node n = rl_graph_add(sc->g, move ? RL_OP_MOVE : rl_op_find(domain, op, version), name, in.n, in.p, out.n, out.p);
    rl_nodeinfo *x = rl_nod(sc->g, n);
    x->domain = domain;
    x->type = op;
    x->since = (uint32_t)version;
    x->origin = sc->g->order.n - 1;
    rl_graph_set_attrs(sc->g, n, a.p, a.n);
    set_captures(p, sc, n, &a);
    sc->unordered |= reads_itself(sc->g, n);
    return true;
}

/* ---- graphs ---- */

static bool parse_input_line(parser *p, scope *sc) {
    do {
        rl_value v;
        bool twice;
        skip(p);
        const char *at = p->s;
        if (!parse_definition(p, sc, &v, &twice)) return false;
        if (!rl_has(v)) return fail_at(p, at, "an input needs a name");
        if (twice) return fail_twice(p, sc, v, at);
        rl_val(sc->g, v)->is_input = true;
        rl_push(&sc->g->mem, sc->g->input, v);
    } while (take(p, ','));
    return true;
}

static bool parse_output_line(parser *p, scope *sc) {
    do {
        rl_value v;
        type t;
        skip(p);
        const char *at = p->s;
        if (!parse_value(p, sc, &v) || !parse_type(p, &t)) return false;
        if (!rl_has(v)) return fail_at(p, at, "an output needs a name");
        if (rl_val(sc->g, v)->rank == RL_NORANK) set_type(p, sc, v, &t);
        rl_val(sc->g, v)->is_output = true;
        rl_push(&sc->g->mem, sc->g->output, v);
    } while (take(p, ','));
    return true;
}

/* opset=17, opset.com.acme=2, ir=8 */
static bool parse_option(parser *p, rl_graph *g) {
    const char *at = p->s;
    rl_str key, domain = rl_internz(p->ctx, "");
    int64_t x;
    if (take_prefix(p, "opset.", '"')) {
        if (!parse_word(p, "", &domain)) return false;
        key = rl_internz(p->ctx, "opset.");
    } else if (!parse_word(p, "_.-", &key)) {
        return false;
    }
    if (!want(p, '=') || !parse_int(p, &x)) return false;
    if (strcmp(key, "ir") == 0) {
        g->ir_version = x;
        return true;
    }
    if (strncmp(key, "opset.", 6) == 0 && key[6]) domain = rl_internz(p->ctx, key + 6);
    else if (strcmp(key, "opset") != 0 && !*domain) return fail_at(p, at, "only opset, opset.DOMAIN and ir are known here");
    if (x < 1 || x > INT32_MAX) return fail_at(p, at, "an opset version is at least 1");
    rl_opset o = {domain, x};
    rl_push(&g->mem, g->opset, o);
    return true;
}

static bool option_ahead(parser *p) {
    skip(p);
    const char *s = p->s;
    while (word_char(*s, "_.-")) s++;
    return s != p->s && (*s == '=' || (*s == '"' && s[-1] == '.'));
}

static bool parse_header(parser *p, scope *sc) {
    rl_str plain = rl_internz(p->ctx, "");
    if (!take_word(p, "graph")) return fail_at(p, p->s, "graph is wanted here");
    if (!peek(p, '{') && !option_ahead(p) && !parse_word(p, "_.-", &sc->g->name)) return false;
    while (!peek(p, '{'))
        if (!parse_option(p, sc->g)) return false;
    if (!sc->up && !sc->g->ir_version) sc->g->ir_version = RL_TEXT_IR;
    if (!sc->up && !rl_opset_of(sc->g, plain)) {
        rl_opset o = {plain, RL_TEXT_OPSET};
        rl_push(&sc->g->mem, sc->g->opset, o);
    }
    return want(p, '{');
}

static bool parse_line(parser *p, scope *sc) {
    if (peek(p, '%') || *p->s == '(' || *p->s == '_') return parse_node(p, sc);
    if (take_word(p, "in")) return parse_input_line(p, sc);
    if (take_word(p, "const")) return parse_const_line(p, sc);
    if (take_word(p, "out")) return parse_output_line(p, sc);
    return fail_at(p, p->s, "in, const, out, a node or } is wanted here");
}

static bool check_defined(parser *p, const scope *sc) {
    for (uint32_t i = 0; i < sc->g->nval; i++) {
        const rl_valinfo *x = &sc->g->val[i];
        if (!is_defined(x)) return fail_name(p, sc->first.p[i], "%$ is not defined", x->name ? x->name : "~");
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
    return fail_at(p, p->s, why.p);
}

static bool parse_graph(parser *p, scope *up, rl_graph **out) {
    scope sc = {.up = up, .unnamed = {.mem = p->tmp}};
    if (++p->nest > MAXNEST) return fail_at(p, p->s, "graphs are nested too deep");
    sc.g = *out = rl_graph_new(p->ctx);
    sc.g->parent = up ? up->g : NULL;
    rl_push(p->tmp, p->graphs, sc.g);
    if (!parse_header(p, &sc)) return false;
    while (!take(p, '}'))
        if (!parse_line(p, &sc)) return false;
    p->nest--;
    return finish_graph(p, &sc);
}

static bool read_layouts(parser *p) {
    for (uint32_t i = 0; i < p->layouts.n; i++) {
        const pending *x = &p->layouts.p[i];
        rl_valinfo *v = rl_val(x->g, x->v);
        const char *s = x->at, *why;
        if (!rl_layout_parse(&x->g->mem, &s, v->rank, v->dim, &v->layout, &why)) return fail_at(p, s, why);
    }
    return true;
}

static bool infer(parser *p, rl_graph *g) {
    p->status = rl_shape_infer(g);
    if (p->status != RL_OK) rl_fail(p->ctx, p->status, "%s: %s", p->file, p->ctx->error);
    return p->status == RL_OK;
}

static bool parse_all(parser *p, rl_graph **g) {
    if (memchr(p->start, 0, (size_t)(p->end - p->start))) return fail_at(p, p->start + strlen(p->start), "a text has no zero bytes");
    if (!parse_graph(p, NULL, g)) return false;
    skip(p);
    if (*p->s) return fail_at(p, p->s, "nothing but comments may follow the graph");
    return infer(p, *g) && read_layouts(p);
}

/* Each body here is in the list itself, so only the arenas are freed. */
static void free_graphs(parser *p) {
    for (uint32_t i = 0; i < p->graphs.n; i++) {
        rl_arena a = p->graphs.p[i]->mem;
        rl_arena_free(&a);
    }
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
