/* Types, values and constants of the text form: see text_internal.h. */
#include "text_internal.h"

#include <stdlib.h>
#include <string.h>

static const size_t max_data = (size_t)1 << 32; /* bytes of one constant */

/* ---- types ---- */

/* A layout's text, read later. */
static bool skip_layout(parser *p) {
    if (*p->s != '"') {
        while (rl_text_alnum(*p->s)) p->s++;
        return true;
    }
    const char *at = p->s++;
    for (bool name = false; *p->s != '"' || name; p->s++) {
        if (!*p->s || *p->s == '\n') return rl_text_fail_at(p, at, "this layout does not end");
        if (name && *p->s == '\\' && p->s[1]) p->s++;
        else if (*p->s == '\'') name = !name;
    }
    p->s++;
    return true;
}

static bool parse_dims(parser *p, type *t) {
    rl_text_skip(p);
    if (strncmp(p->s, "...", 3) == 0) {
        p->s += 3;
        t->rank = RL_NORANK;
        return rl_text_want(p, ']');
    }
    t->rank = 0;
    if (rl_text_take(p, ']')) return true;
    do {
        if (t->rank == RL_LEN(t->dim)) return rl_text_fail_at(p, p->s, "a tensor has at most 64 dims");
        rl_text_skip(p);
        const char *at = p->s;
        if (!rl_dim_parse(p->ctx, &p->s, &t->dim[t->rank++])) return rl_text_fail_at(p, at, "a dim is wanted here");
    } while (rl_text_take(p, ','));
    return rl_text_want(p, ']');
}

bool rl_text_type_ahead(parser *p) {
    size_t n = 0;
    rl_text_skip(p);
    while (rl_text_alnum(p->s[n])) n++;
    return n && p->s[n] == '[';
}

static bool parse_dtype(parser *p, rl_dtype *t) {
    const char *at = p->s;
    while (rl_text_alnum(*p->s)) p->s++;
    *t = rl_dtype_parse(at, (size_t)(p->s - at));
    if (*t == RL_UNDEF && strncmp(at, "undef[", 6) != 0) return rl_text_fail_at(p, at, "this is no element type");
    p->s++;
    return true;
}

bool rl_text_parse_type(parser *p, type *t) {
    *t = (type){.rank = RL_NORANK};
    if (rl_text_type_ahead(p) && (!parse_dtype(p, &t->dtype) || !parse_dims(p, t))) return false;
    if (*p->s != '@') return true;
    t->layout = ++p->s;
    return skip_layout(p);
}

void rl_text_set_type(parser *p, scope *sc, rl_value v, const type *t) {
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

bool rl_text_is_defined(const rl_valinfo *x) {
    return x->def.i != RL_NONE || x->is_input || x->is_init || x->is_outer;
}

/* The value in sc that stands for the outer one; every graph between gets one too. */
static bool outer_value(parser *p, scope *sc, rl_str name, const char *at, rl_value *out) {
    if (!sc->up) return rl_text_fail_name(p, at, "no graph around this one has a value %$", name);
    rl_value there = rl_graph_find(sc->up->g, name);
    if (!rl_has(there) && !outer_value(p, sc->up, name, at, &there)) return false;
    *out = new_value(p, sc, name, at);
    rl_valinfo *x = rl_val(sc->g, *out);
    if (x->is_outer) return true;
    if (rl_text_is_defined(x)) return rl_text_fail_name(p, at, "%$ is a value of this graph too", name);
    const rl_valinfo *y = rl_val(sc->up->g, there);
    if (y->rank != RL_NORANK || y->dtype != RL_UNDEF) rl_graph_set_type(sc->g, *out, y->dtype, y->rank, y->dim);
    x->is_outer = true;
    rl_push(&sc->g->mem, sc->g->outer, *out);
    return true;
}

bool rl_text_parse_value(parser *p, scope *sc, rl_value *v) {
    rl_str name;
    uint64_t k;
    rl_text_skip(p);
    const char *at = p->s;
    if (rl_text_take_word(p, "_")) {
        *v = RL_NOVALUE;
        return true;
    }
    if (*p->s != '%') return rl_text_fail_at(p, at, "a value (%name or _) is wanted here");
    p->s++;
    if (*p->s == '~') {
        p->s++;
        if (!rl_text_parse_uint(p, &k)) return false;
        v->i = rl_hash_get(&sc->unnamed, k);
        if (!rl_has(*v)) rl_hash_put(&sc->unnamed, k, (*v = new_value(p, sc, NULL, at)).i);
        return true;
    }
    bool outer = *p->s == '^';
    p->s += outer;
    if (!rl_text_alnum(*p->s) && !strchr("\"_.:/$-", *p->s)) return rl_text_fail_at(p, p->s, "a name is wanted here");
    if (!rl_text_parse_word(p, "_.:/$-", &name)) return false;
    if (outer) return outer_value(p, sc, name, at, v);
    *v = new_value(p, sc, name, at);
    return true;
}

bool rl_text_parse_definition(parser *p, scope *sc, rl_value *v, bool *twice) {
    type t;
    rl_text_skip(p);
    const char *at = p->s;
    if (!rl_text_parse_value(p, sc, v)) return false;
    *twice = rl_has(*v) && rl_text_is_defined(rl_val(sc->g, *v));
    if (!rl_has(*v)) return true;
    if (rl_val(sc->g, *v)->is_outer) return rl_text_fail_at(p, at, "a value of a graph around this one cannot be defined here");
    if (!rl_text_parse_type(p, &t)) return false;
    if (rl_val(sc->g, *v)->nuse) sc->unordered = true;
    rl_text_set_type(p, sc, *v, &t);
    return true;
}

bool rl_text_fail_twice(parser *p, const scope *sc, rl_value v, const char *at) {
    rl_str name = rl_val(sc->g, v)->name;
    return rl_text_fail_name(p, at, "%$ is defined twice", name ? name : "~");
}

/* ---- constants ---- */

typedef struct { rl_dtype t; unsigned char *p; size_t n, nbyte; } data;

/* The number in T's bits; false when it is out of range. */
static bool store_int(rl_dtype t, int64_t x, unsigned char *p) {
    uint32_t bits = rl_dtype_bits(t);
    bool is_signed = t == RL_I8 || t == RL_I16 || t == RL_I32 || t == RL_I64;
    if (t == RL_BOOL && (x < 0 || x > 1)) return false;
    if (is_signed && bits < 64 && (x < -((int64_t)1 << (bits - 1)) || x >> (bits - 1) > 0)) return false;
    if (!is_signed && (x < 0 || (bits < 64 && (uint64_t)x >> bits))) return false;
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
    rl_text_skip(p);
    const char *at = p->s;
    if (t == RL_F32 || t == RL_F64 || t == RL_F16 || t == RL_BF16) {
        if (!rl_text_parse_double(p, &d)) return false;
        if (t == RL_F32) d = (double)strtof(at, NULL); /* rounded once */
        store_float(t, d, to);
        return true;
    }
    if (t == RL_BOOL && (rl_text_take_word(p, "true") || rl_text_take_word(p, "false"))) {
        *to = *at == 't';
        return true;
    }
    if (t == RL_U64) {
        if (!rl_text_parse_uint(p, &u)) return false;
        memcpy(to, &u, 8);
        return true;
    }
    if (!rl_text_parse_int(p, &x)) return false;
    return store_int(t, x, to) || rl_text_fail_at(p, at, "this number does not fit the element type");
}

/* {1,2,3}; one number alone is repeated. */
static bool parse_elements(parser *p, data *d) {
    size_t size = rl_dtype_bits(d->t) / 8, n = 0;
    unsigned char extra[16] = {0}; /* an element beyond the type's, which only counts */
    const char *at = p->s;
    if (!rl_text_want(p, '{')) return false;
    if (!(d->t >= RL_F32 && d->t <= RL_U64 && d->t != RL_STRING) && d->t != RL_BF16)
        return rl_text_fail_at(p, at, "elements of this type are written hex\"...\"");
    if (!rl_text_take(p, '}')) {
        do {
            if (!parse_element(p, d->t, n < d->n ? d->p + n * size : extra)) return false;
            n++;
        } while (rl_text_take(p, ','));
        if (!rl_text_want(p, '}')) return false;
    }
    if (n == 1)
        for (; n < d->n; n++) memcpy(d->p + n * size, d->p, size);
    return n == d->n || (d->n == 0 && n <= 1) || rl_text_fail_at(p, at, "there are more or fewer elements than the type has");
}

bool rl_text_parse_hex(parser *p, rl_arena *mem, rl_span *out) {
    const char *at = p->s;
    if (!rl_text_want(p, '"')) return false;
    size_t n = strcspn(p->s, "\"\n");
    unsigned char *to = rl_new(mem, unsigned char, n / 2);
    for (size_t i = 0; i + 1 < n; i += 2) {
        int hi = rl_text_hex_digit(p->s[i]), lo = rl_text_hex_digit(p->s[i + 1]);
        if (hi < 0 || lo < 0) return rl_text_fail_at(p, p->s + i, "two hex digits are wanted here");
        to[i / 2] = (unsigned char)(hi * 16 + lo);
    }
    if (n % 2 || p->s[n] != '"') return rl_text_fail_at(p, at, "this needs pairs of hex digits up to a \"");
    p->s += n + 1;
    *out = (rl_span){to, n / 2};
    return true;
}

bool rl_text_take_prefix(parser *p, const char *w, char next) {
    size_t n = strlen(w);
    rl_text_skip(p);
    if (strncmp(p->s, w, n) != 0 || p->s[n] != next) return false;
    p->s += n;
    return true;
}

static bool parse_data(parser *p, data *d) {
    rl_span raw = {0};
    uint64_t seed;
    rl_text_skip(p);
    const char *at = p->s;
    if (*p->s == '{') return parse_elements(p, d);
    if (rl_text_take_prefix(p, "seed", '=')) {
        p->s++;
        if (!rl_text_parse_uint(p, &seed)) return false;
        rl_text_seeded(d->t, seed, d->p, d->nbyte);
        return true;
    }
    if (!rl_text_take_prefix(p, "hex", '"')) return rl_text_fail_at(p, at, "{...}, seed=K, hex\"...\" or external is wanted here");
    if (!rl_text_parse_hex(p, p->tmp, &raw)) return false;
    if (raw.n != d->nbyte) return rl_text_fail_at(p, at, "these are more or fewer bytes than the type has");
    if (raw.n) memcpy(d->p, raw.p, raw.n);
    return true;
}

static bool count_bytes(parser *p, const type *t, const char *at, data *d) {
    uint32_t bits = rl_dtype_bits(t->dtype);
    d->t = t->dtype;
    d->n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (!rl_dim_known(t->dim[i])) return rl_text_fail_at(p, at, "a constant needs dims that are numbers");
        if (__builtin_mul_overflow(d->n, (size_t)t->dim[i], &d->n)) return rl_text_fail_at(p, at, "this constant is too large");
    }
    if (d->n > max_data / 16) return rl_text_fail_at(p, at, "this constant is too large");
    d->nbyte = (d->n * bits + 7) / 8;
    return true;
}

bool rl_text_parse_const_of(parser *p, rl_graph *g, const type *t, const char *at, rl_const **out) {
    data d = {0};
    if (t->rank == RL_NORANK || t->dtype == RL_UNDEF) return rl_text_fail_at(p, at, "a constant needs a type");
    if (!count_bytes(p, t, at, &d)) return false;
    rl_const *c = *out = rl_new(&g->mem, rl_const, 1);
    *c = (rl_const){t->dtype, t->rank, rl_copy(&g->mem, t->dim, t->rank * sizeof *t->dim), NULL, 0};
    if (rl_text_take_word(p, "external")) return true;
    if (t->dtype == RL_STRING) return rl_text_fail_at(p, at, "strings have no text: external");
    d.p = rl_alloc(&g->mem, d.nbyte);
    c->data = d.p;
    c->nbyte = d.nbyte;
    return parse_data(p, &d);
}

bool rl_text_parse_const_line(parser *p, scope *sc) {
    rl_const *c = NULL;
    rl_value v = RL_NOVALUE;
    type t;
    rl_text_skip(p);
    const char *at = p->s;
    if (!rl_text_parse_value(p, sc, &v)) return false;
    if (!rl_has(v)) return rl_text_fail_at(p, at, "a constant needs a name");
    const rl_valinfo *x = rl_val(sc->g, v);
    if (rl_text_is_defined(x) && !(x->is_input && !x->is_init)) return rl_text_fail_twice(p, sc, v, at);
    if (!rl_text_parse_type(p, &t) || !rl_text_parse_const_of(p, sc->g, &t, at, &c)) return false;
    rl_text_set_type(p, sc, v, &t);
    rl_val(sc->g, v)->data = c;
    rl_val(sc->g, v)->is_init = true;
    rl_push(&sc->g->mem, sc->g->init, v);
    return true;
}
