/* Symbolic sizes as interned polynomials: see dim.h.
 *
 * A polynomial is a list of terms c * s1 * s2 ..., sorted by degree (highest first), then by the symbols' names; a term's
 * symbols are sorted by name.  So equal polynomials are equal lists, and printing does not depend on the order in which
 * symbols came up.  Arithmetic works on a `work` of fixed size on the stack; only a result that is new is stored.  What
 * overflows a coefficient, or the fixed size, becomes a fresh symbol: sound, since it equals nothing.
 *
 * Three kinds of symbols, which never meet even where their names are equal:
 *   NAMED    a dim_param of the model             N, 'a b'
 *   FRESH    unknown                              ?0
 *   FLOOR    floor(p / k), p a polynomial, k > 1  floor((H+1)/2), with p's coefficients in [0, k), so that
 *            floor((H-1)/2)+1 and floor((H+1)/2) are one dim */
#include "dim.h"

#include <stdlib.h>
#include <string.h>

enum { MAXDEGREE = 12, MAXTERM = 32, MAXNEST = 60, MAXNAME = 256 };

typedef enum { NAMED, FRESH, FLOOR } kind;

typedef struct {
    rl_str name;
    kind kind;
    uint32_t num; /* FLOOR: polynomial p */
    int64_t k;    /* FLOOR: the divisor */
} symbol;

typedef struct { int64_t c; uint32_t nsym; uint32_t sym[MAXDEGREE]; } term;
typedef struct { uint32_t n; bool bad; term t[MAXTERM]; } work;
typedef struct { uint32_t n, next; const term *t; } poly; /* next: chain of equal hashes */

struct rl_dimtab {
    struct { symbol *p; uint32_t n, cap; } sym;
    struct { poly *p; uint32_t n, cap; } poly;
    rl_hash bysym[3]; /* by kind: name pointer -> symbol */
    rl_hash bypoly;   /* hash -> first polynomial */
    uint32_t nfresh;
};

static struct rl_dimtab *table(rl_ctx *ctx) {
    if (ctx->dims) return ctx->dims;
    struct rl_dimtab *t = rl_new(&ctx->mem, struct rl_dimtab, 1);
    for (int i = 0; i < 3; i++) t->bysym[i].mem = &ctx->mem;
    t->bypoly.mem = &ctx->mem;
    return ctx->dims = t;
}

static const poly *poly_of(const rl_ctx *ctx, rl_dim d) {
    return &ctx->dims->poly.p[-(d + 1)];
}

/* ---- polynomials being computed ---- */

static int compare_symbols(const rl_ctx *ctx, uint32_t a, uint32_t b) {
    if (a == b) return 0;
    const symbol *x = &ctx->dims->sym.p[a], *y = &ctx->dims->sym.p[b];
    int c = strcmp(x->name, y->name);
    return c ? c : x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : (a < b ? -1 : 1);
}

/* The order of terms: degree down, then names up. */
static int compare_terms(const rl_ctx *ctx, const term *a, const term *b) {
    if (a->nsym != b->nsym) return a->nsym > b->nsym ? -1 : 1;
    for (uint32_t i = 0; i < a->nsym; i++) {
        int c = compare_symbols(ctx, a->sym[i], b->sym[i]);
        if (c) return c;
    }
    return 0;
}

static void add_term(const rl_ctx *ctx, work *w, const term *x) {
    uint32_t i = 0;
    int c = 1;
    while (i < w->n && (c = compare_terms(ctx, &w->t[i], x)) < 0) i++;
    if (i < w->n && c == 0) {
        if (__builtin_add_overflow(w->t[i].c, x->c, &w->t[i].c)) w->bad = true;
        if (w->t[i].c) return;
        w->n--;
        memmove(&w->t[i], &w->t[i + 1], (w->n - i) * sizeof(term));
        return;
    }
    if (!x->c) return;
    if (w->n == MAXTERM) {
        w->bad = true;
        return;
    }
    memmove(&w->t[i + 1], &w->t[i], (w->n - i) * sizeof(term));
    w->t[i] = *x;
    w->n++;
}

static void add_const(const rl_ctx *ctx, work *w, int64_t c) {
    term x = {.c = c};
    add_term(ctx, w, &x);
}

/* w += f * d */
static void add_dim(const rl_ctx *ctx, work *w, rl_dim d, int64_t f) {
    term x = {.c = d};
    const term *t = rl_dim_known(d) ? &x : poly_of(ctx, d)->t;
    uint32_t n = rl_dim_known(d) ? 1 : poly_of(ctx, d)->n;
    for (uint32_t i = 0; i < n; i++) {
        term y = t[i];
        if (__builtin_mul_overflow(y.c, f, &y.c)) w->bad = true;
        add_term(ctx, w, &y);
    }
}

static void multiply_terms(const rl_ctx *ctx, work *w, const term *a, const term *b) {
    term x = {.nsym = a->nsym + b->nsym};
    if (x.nsym > MAXDEGREE || __builtin_mul_overflow(a->c, b->c, &x.c)) {
        w->bad = true;
        return;
    }
    for (uint32_t i = 0, j = 0, k = 0; k < x.nsym; k++)
        x.sym[k] = j == b->nsym || (i < a->nsym && compare_symbols(ctx, a->sym[i], b->sym[j]) <= 0) ? a->sym[i++] : b->sym[j++];
    add_term(ctx, w, &x);
}

static void multiply(const rl_ctx *ctx, const work *a, const work *b, work *w) {
    w->n = 0;
    w->bad = a->bad || b->bad;
    for (uint32_t i = 0; i < a->n && !w->bad; i++)
        for (uint32_t j = 0; j < b->n && !w->bad; j++) multiply_terms(ctx, w, &a->t[i], &b->t[j]);
}

/* ---- interning ---- */

static uint64_t hash_terms(const term *t, uint32_t n) {
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x[3] = {h, (uint64_t)t[i].c, rl_hash_bytes(t[i].sym, t[i].nsym * sizeof t[i].sym[0])};
        h = rl_hash_bytes(x, sizeof x);
    }
    return h;
}

static bool equal_terms(const term *a, const term *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (a[i].c != b[i].c || a[i].nsym != b[i].nsym) return false;
        if (memcmp(a[i].sym, b[i].sym, a[i].nsym * sizeof a[i].sym[0])) return false;
    }
    return true;
}

static uint32_t intern_poly(rl_ctx *ctx, const work *w) {
    struct rl_dimtab *t = table(ctx);
    uint64_t h = hash_terms(w->t, w->n);
    uint32_t first = rl_hash_get(&t->bypoly, h);
    for (uint32_t i = first; i != RL_NONE; i = t->poly.p[i].next)
        if (t->poly.p[i].n == w->n && equal_terms(t->poly.p[i].t, w->t, w->n)) return i;
    poly p = {w->n, first, rl_copy(&ctx->mem, w->t, w->n * sizeof(term))};
    uint32_t i = t->poly.n;
    rl_push(&ctx->mem, t->poly, p);
    rl_hash_put(&t->bypoly, h, i);
    return i;
}

/* The polynomial as a dim; fresh when it overflowed or is a negative number. */
static rl_dim finish(rl_ctx *ctx, const work *w) {
    if (w->bad) return rl_dim_fresh(ctx);
    if (w->n == 0) return 0;
    if (w->n == 1 && w->t[0].nsym == 0) return w->t[0].c >= 0 ? w->t[0].c : rl_dim_fresh(ctx);
    return -1 - (rl_dim)intern_poly(ctx, w);
}

static uint32_t intern_symbol(rl_ctx *ctx, rl_str name, kind k, uint32_t num, int64_t div) {
    struct rl_dimtab *t = table(ctx);
    uint32_t i = rl_hash_get(&t->bysym[k], (uintptr_t)name);
    if (i != RL_NONE) return i;
    symbol s = {name, k, num, div};
    i = t->sym.n;
    rl_push(&ctx->mem, t->sym, s);
    rl_hash_put(&t->bysym[k], (uintptr_t)name, i);
    return i;
}

static rl_dim dim_of_symbol(rl_ctx *ctx, uint32_t sym) {
    work w;
    w.n = 1;
    w.bad = false;
    w.t[0] = (term){.c = 1, .nsym = 1, .sym = {sym}};
    return finish(ctx, &w);
}

rl_dim rl_dim_symbol(rl_ctx *ctx, rl_str name) {
    return dim_of_symbol(ctx, intern_symbol(ctx, name, NAMED, 0, 0));
}

rl_dim rl_dim_fresh(rl_ctx *ctx) {
    struct rl_dimtab *t = table(ctx);
    rl_str name;
    do name = rl_internf(ctx, "?%u", t->nfresh++);
    while (rl_hash_get(&t->bysym[FRESH], (uintptr_t)name) != RL_NONE); /* a text may have named it */
    return dim_of_symbol(ctx, intern_symbol(ctx, name, FRESH, 0, 0));
}

/* ---- arithmetic ---- */

static void start(work *w) {
    w->n = 0;
    w->bad = false;
}

rl_dim rl_dim_add(rl_ctx *ctx, rl_dim a, rl_dim b) {
    work w;
    start(&w);
    add_dim(ctx, &w, a, 1);
    add_dim(ctx, &w, b, 1);
    return finish(ctx, &w);
}

rl_dim rl_dim_sub(rl_ctx *ctx, rl_dim a, rl_dim b) {
    work w;
    start(&w);
    add_dim(ctx, &w, a, 1);
    add_dim(ctx, &w, b, -1);
    return finish(ctx, &w);
}

rl_dim rl_dim_mul(rl_ctx *ctx, rl_dim a, rl_dim b) {
    work x, y, w;
    if (rl_dim_known(a) && rl_dim_known(b)) {
        rl_dim r;
        return __builtin_mul_overflow(a, b, &r) ? rl_dim_fresh(ctx) : r;
    }
    start(&x);
    start(&y);
    add_dim(ctx, &x, a, 1);
    add_dim(ctx, &y, b, 1);
    multiply(ctx, &x, &y, &w);
    return finish(ctx, &w);
}

rl_dim rl_dim_prod(rl_ctx *ctx, const rl_dim *d, uint32_t n) {
    rl_dim r = 1;
    for (uint32_t i = 0; i < n; i++) r = rl_dim_mul(ctx, r, d[i]);
    return r;
}

/* Takes the symbols and the coefficient of b out of x; false when they are not all in it. */
static bool divide_term(term *x, const term *b) {
    if (x->c % b->c) return false;
    if (b->c == -1 && x->c == INT64_MIN) return false;
    x->c /= b->c;
    for (uint32_t j = 0; j < b->nsym; j++) {
        uint32_t i = 0;
        while (i < x->nsym && x->sym[i] != b->sym[j]) i++;
        if (i == x->nsym) return false;
        x->nsym--;
        memmove(&x->sym[i], &x->sym[i + 1], (x->nsym - i) * sizeof x->sym[0]);
    }
    return true;
}

/* x -= t * y */
static void subtract_product(const rl_ctx *ctx, work *x, const term *t, const work *y) {
    term minus = *t;
    if (__builtin_sub_overflow((int64_t)0, t->c, &minus.c)) x->bad = true;
    for (uint32_t i = 0; i < y->n && !x->bad; i++) multiply_terms(ctx, x, &minus, &y->t[i]);
}

bool rl_dim_div(rl_ctx *ctx, rl_dim a, rl_dim b, rl_dim *q) {
    if (b == 0) return false;
    if (a == b || a == 0) {
        *q = a == 0 ? 0 : 1;
        return true;
    }
    if (rl_dim_known(a) && rl_dim_known(b)) {
        *q = a / b;
        return a % b == 0;
    }
    work x, y, w;
    start(&x);
    start(&y);
    start(&w);
    add_dim(ctx, &x, a, 1);
    add_dim(ctx, &y, b, 1);
    if (y.n == 0 || x.bad || y.bad) return false;
    while (x.n) { /* the order of terms is one of monomials, so the first term of a product is the product of the first ones */
        term t = x.t[0];
        if (!divide_term(&t, &y.t[0])) return false;
        add_term(ctx, &w, &t);
        subtract_product(ctx, &x, &t, &y);
        if (w.bad || x.bad) return false;
    }
    if (w.n == 1 && w.t[0].nsym == 0 && w.t[0].c < 0) return false;
    *q = finish(ctx, &w);
    return true;
}

/* Each of a term's symbols is one of the other's. */
static bool is_part(const term *x, const term *of) {
    term rest = *of, one = *x;
    rest.c = one.c = 1;
    return divide_term(&rest, &one);
}

/* What is taken off must be covered by terms that are not smaller: those with the same symbols and maybe more. */
static bool is_never_negative(work w) {
    for (uint32_t i = 0; i < w.n && !w.bad; i++) {
        for (uint32_t k = 0; k < w.n && w.t[i].c < 0; k++) {
            if (w.t[k].c <= 0 || !is_part(&w.t[i], &w.t[k])) continue;
            int64_t both = RL_MIN(w.t[k].c, -RL_MAX(w.t[i].c, -INT64_MAX));
            w.t[i].c += both;
            w.t[k].c -= both;
        }
        if (w.t[i].c < 0) return false;
    }
    return !w.bad;
}

bool rl_dim_not_less(rl_ctx *ctx, rl_dim a, rl_dim b) {
    work w;
    start(&w);
    add_dim(ctx, &w, a, 1);
    add_dim(ctx, &w, b, -1);
    return is_never_negative(w);
}

void rl_dim_split(rl_ctx *ctx, rl_dim a, rl_dim b, rl_dim *q, rl_dim *rest) {
    work x, y, in, out;
    *q = 0;
    *rest = a;
    if (b == 0) return;
    if (rl_dim_known(a) && rl_dim_known(b)) {
        *q = a / b;
        *rest = a % b;
        return;
    }
    start(&x);
    start(&y);
    start(&in);
    start(&out);
    add_dim(ctx, &x, a, 1);
    add_dim(ctx, &y, b, 1);
    if (y.n != 1) return;
    for (uint32_t i = 0; i < x.n; i++) {
        term t = x.t[i];
        if (divide_term(&t, &y.t[0])) add_term(ctx, &in, &t);
        else add_term(ctx, &out, &x.t[i]);
    }
    if (!is_never_negative(out)) {
        add_const(ctx, &in, -1);
        add_dim(ctx, &out, b, 1);
    }
    if (!is_never_negative(in) || !is_never_negative(out)) return;
    *q = finish(ctx, &in);
    *rest = finish(ctx, &out);
}

static int64_t floor_div(int64_t a, int64_t k) {
    return a / k - (a % k < 0);
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

static void print_terms(rl_text *t, const rl_ctx *ctx, const term *x, uint32_t n);

/* The symbol floor(w / k), w canonical. RL_NONE when its name would be so long that nested ones could exhaust the stack. */
static uint32_t floor_symbol(rl_ctx *ctx, const work *w, int64_t k) {
    rl_text t = {.mem = &ctx->mem};
    bool bare = w->n == 1;
    rl_put(&t, bare ? "floor(" : "floor((");
    print_terms(&t, ctx, w->t, w->n);
    rl_put(&t, bare ? "/%lld)" : ")/%lld)", (long long)k);
    if (t.n > MAXNAME) return RL_NONE;
    rl_str name = rl_intern(ctx, t.p, t.n);
    return intern_symbol(ctx, name, FLOOR, intern_poly(ctx, w), k);
}

/* x = floor(p/m) + c alone:  floor(x/k) = floor((p + m*c) / (m*k)).  Replaces x and k where it applies. */
static bool unnest(const rl_ctx *ctx, work *x, int64_t *k) {
    const term *t = x->t;
    if (x->n == 0 || x->n > 2 || t[0].nsym != 1 || t[0].c != 1 || (x->n == 2 && t[1].nsym)) return false;
    const symbol *s = &ctx->dims->sym.p[t[0].sym[0]];
    int64_t c = x->n == 2 ? t[1].c : 0, mc, mk;
    if (s->kind != FLOOR || __builtin_mul_overflow(s->k, c, &mc) || __builtin_mul_overflow(s->k, *k, &mk)) return false;
    const poly *p = &ctx->dims->poly.p[s->num];
    start(x);
    for (uint32_t i = 0; i < p->n; i++) add_term(ctx, x, &p->t[i]);
    add_const(ctx, x, mc);
    *k = mk;
    return true;
}

/* Splits x = k*q + r, r's coefficients in [0, k). */
static void split_quotient(const rl_ctx *ctx, const work *x, int64_t k, work *q, work *r) {
    start(r);
    for (uint32_t i = 0; i < x->n; i++) {
        term t = x->t[i], u = t;
        t.c = floor_div(u.c, k);
        u.c -= t.c * k;
        add_term(ctx, q, &t);
        add_term(ctx, r, &u);
    }
}

/* Divides r and k by what all of r's coefficients (but the constant) and k have in common. */
static void reduce(work *r, int64_t *k) {
    int64_t g = *k;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->t[i].nsym) g = gcd(g, r->t[i].c);
    if (g == 1) return;
    *k /= g;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        r->t[n] = r->t[i];
        r->t[n].c /= g;
        n += r->t[n].c != 0;
    }
    r->n = n;
}

/* x becomes floor(x / k). */
static void floor_work(rl_ctx *ctx, work *x, int64_t k) {
    work q, r;
    if (x->bad) return;
    start(&q);
    do {
        split_quotient(ctx, x, k, &q, &r);
        if (r.n && r.t[0].nsym) reduce(&r, &k);
        *x = r;
    } while (k > 1 && unnest(ctx, x, &k));
    if (r.n && r.t[0].nsym && k > 1) {
        uint32_t sym = floor_symbol(ctx, &r, k);
        term t = {.c = 1, .nsym = 1, .sym = {sym}};
        if (sym == RL_NONE) q.bad = true;
        else add_term(ctx, &q, &t);
    } else if (k == 1) {
        for (uint32_t i = 0; i < r.n; i++) add_term(ctx, &q, &r.t[i]);
    }
    *x = q;
}

rl_dim rl_dim_floordiv(rl_ctx *ctx, rl_dim a, int64_t k) {
    if (k <= 0) return rl_dim_fresh(ctx);
    if (rl_dim_known(a)) return a / k;
    work x;
    start(&x);
    add_dim(ctx, &x, a, 1);
    floor_work(ctx, &x, k);
    return finish(ctx, &x);
}

rl_dim rl_dim_ceildiv(rl_ctx *ctx, rl_dim a, int64_t k) {
    if (k <= 0) return rl_dim_fresh(ctx);
    if (rl_dim_known(a)) return a / k + (a % k != 0);
    work x;
    start(&x);
    add_dim(ctx, &x, a, 1);
    add_const(ctx, &x, k - 1);
    floor_work(ctx, &x, k);
    return finish(ctx, &x);
}

rl_str rl_dim_name(const rl_ctx *ctx, rl_dim d) {
    if (rl_dim_known(d)) return NULL;
    const poly *p = poly_of(ctx, d);
    return p->n == 1 && p->t[0].nsym == 1 && p->t[0].c == 1 ? ctx->dims->sym.p[p->t[0].sym[0]].name : NULL;
}

/* What symbols stand for: the hash's value by name, else the guess. */
typedef struct { const rl_hash *value; int64_t guess; bool guessed; } meaning;

static int64_t eval_terms(const rl_ctx *ctx, const term *t, uint32_t n, meaning *m);

static int64_t eval_symbol(const rl_ctx *ctx, const symbol *s, meaning *m) {
    if (s->kind == FLOOR) {
        const poly *p = &ctx->dims->poly.p[s->num];
        return floor_div(eval_terms(ctx, p->t, p->n, m), s->k);
    }
    uint32_t x = m->value ? rl_hash_get(m->value, (uint64_t)(uintptr_t)s->name) : RL_NONE;
    m->guessed |= x == RL_NONE;
    return x == RL_NONE ? m->guess : x;
}

static int64_t eval_terms(const rl_ctx *ctx, const term *t, uint32_t n, meaning *m) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t x = t[i].c;
        for (uint32_t j = 0; j < t[i].nsym; j++) x = rl_mul(x, eval_symbol(ctx, &ctx->dims->sym.p[t[i].sym[j]], m));
        sum = rl_add(sum, x);
    }
    return sum;
}

int64_t rl_dim_guess(const rl_ctx *ctx, rl_dim d, int64_t guess) {
    meaning m = {NULL, guess, false};
    if (rl_dim_known(d)) return d;
    const poly *p = poly_of(ctx, d);
    return RL_MAX(eval_terms(ctx, p->t, p->n, &m), 0);
}

bool rl_dim_eval(const rl_ctx *ctx, rl_dim d, const rl_hash *value, int64_t *x) {
    meaning m = {value, 0, false};
    *x = d;
    if (rl_dim_known(d)) return true;
    const poly *p = poly_of(ctx, d);
    *x = eval_terms(ctx, p->t, p->n, &m);
    return !m.guessed && *x >= 0;
}

/* ---- text ---- */

static bool name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool name_char(char c) {
    return name_start(c) || (c >= '0' && c <= '9') || (c && strchr(".:#$~", c));
}

static void print_name(rl_text *t, const symbol *s) {
    bool bare = s->kind != NAMED;
    if (!bare && name_start(s->name[0])) {
        bare = true;
        for (const char *c = s->name; *c; c++) bare = bare && name_char(*c);
    }
    if (bare) {
        rl_put_bytes(t, s->name, strlen(s->name));
        return;
    }
    rl_put(t, "'");
    for (const char *c = s->name; *c; c++) {
        if (*c == '\'' || *c == '\\') rl_put(t, "\\%c", *c);
        else if ((unsigned char)*c < 0x20) rl_put(t, "\\x%02x", (unsigned)*c);
        else rl_put_bytes(t, c, 1);
    }
    rl_put(t, "'");
}

static void print_terms(rl_text *t, const rl_ctx *ctx, const term *x, uint32_t n) {
    if (n == 0) rl_put(t, "0");
    for (uint32_t i = 0; i < n; i++) {
        int64_t c = x[i].c;
        if (i && c > 0) rl_put(t, "+");
        if (c == -1 && x[i].nsym) rl_put(t, "-");
        else if (c != 1 || !x[i].nsym) rl_put(t, "%lld%s", (long long)c, x[i].nsym ? "*" : "");
        for (uint32_t j = 0; j < x[i].nsym; j++) {
            if (j) rl_put(t, "*");
            print_name(t, &ctx->dims->sym.p[x[i].sym[j]]);
        }
    }
}

void rl_dim_print(rl_text *t, const rl_ctx *ctx, rl_dim d) {
    if (rl_dim_known(d)) rl_put(t, "%lld", (long long)d);
    else print_terms(t, ctx, poly_of(ctx, d)->t, poly_of(ctx, d)->n);
}

static void skip_space(const char **s) {
    while (**s == ' ') ++*s;
}

static bool parse_number(const char **s, int64_t *x) {
    const char *p = *s;
    if (*p < '0' || *p > '9') return false;
    for (*x = 0; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(*x, 10, x) || __builtin_add_overflow(*x, *p - '0', x)) return false;
    *s = p;
    return true;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* '...' with \' \\ \xNN */
static rl_str parse_quoted(rl_ctx *ctx, const char **s) {
    rl_text t = {.mem = &ctx->mem};
    rl_put(&t, "%s", "");
    const char *p = *s + 1;
    for (; *p && *p != '\'' && *p != '\n'; p++) {
        char c = *p;
        if (c == '\\') {
            c = *++p;
            if (c == 'x') {
                int hi = hex_digit(p[1]), lo = hi < 0 ? -1 : hex_digit(p[2]);
                if (lo < 0 || hi + lo == 0) return NULL;
                c = (char)(hi * 16 + lo);
                p += 2;
            }
            if (!c) return NULL;
        }
        rl_put_bytes(&t, &c, 1);
    }
    if (*p != '\'') return NULL;
    *s = p + 1;
    return rl_intern(ctx, t.p, t.n);
}

static bool parse_sum(rl_ctx *ctx, const char **s, work *w, int nest);

static bool take(const char **s, char c) {
    skip_space(s);
    if (**s != c) return false;
    ++*s;
    return true;
}

/* floor(x/k) and ceil(x/k); *s is behind the opening bracket. */
static bool parse_division(rl_ctx *ctx, const char **s, work *w, int nest, bool up) {
    int64_t k;
    if (!parse_sum(ctx, s, w, nest + 1)) return false;
    if (!take(s, '/')) return false;
    skip_space(s);
    if (!parse_number(s, &k) || k == 0 || !take(s, ')')) return false;
    if (up) add_const(ctx, w, k - 1);
    floor_work(ctx, w, k);
    return true;
}

static bool parse_symbol(rl_ctx *ctx, const char **s, work *w) {
    const char *p = *s;
    uint32_t sym;
    if (*p == '\'') {
        rl_str name = parse_quoted(ctx, s);
        if (!name) return false;
        sym = intern_symbol(ctx, name, NAMED, 0, 0);
    } else if (*p == '?') {
        do p++;
        while (*p >= '0' && *p <= '9');
        if (p == *s + 1) return false;
        sym = intern_symbol(ctx, rl_intern(ctx, *s, (size_t)(p - *s)), FRESH, 0, 0);
        *s = p;
    } else {
        if (!name_start(*p)) return false;
        while (name_char(*p)) p++;
        sym = intern_symbol(ctx, rl_intern(ctx, *s, (size_t)(p - *s)), NAMED, 0, 0);
        *s = p;
    }
    term t = {.c = 1, .nsym = 1, .sym = {sym}};
    add_term(ctx, w, &t);
    return true;
}

static bool parse_factor(rl_ctx *ctx, const char **s, work *w, int nest) {
    int64_t x;
    start(w);
    skip_space(s);
    if (parse_number(s, &x)) {
        add_const(ctx, w, x);
        return true;
    }
    bool down = strncmp(*s, "floor(", 6) == 0, up = strncmp(*s, "ceil(", 5) == 0;
    if (down || up) {
        *s += down ? 6 : 5;
        return parse_division(ctx, s, w, nest, up);
    }
    if (**s != '(') return parse_symbol(ctx, s, w);
    ++*s;
    return parse_sum(ctx, s, w, nest + 1) && take(s, ')');
}

static bool parse_product(rl_ctx *ctx, const char **s, work *w, int nest) {
    if (!parse_factor(ctx, s, w, nest)) return false;
    for (;;) {
        const char *p = *s;
        skip_space(&p);
        if (*p != '*') return true;
        *s = p + 1;
        work x = *w, y;
        if (!parse_factor(ctx, s, &y, nest)) return false;
        multiply(ctx, &x, &y, w);
    }
}

static bool parse_sum(rl_ctx *ctx, const char **s, work *w, int nest) {
    if (nest > MAXNEST) return false;
    start(w);
    for (bool first = true;; first = false) {
        const char *p = *s;
        skip_space(&p);
        bool minus = *p == '-';
        if (!first && *p != '+' && !minus) return true;
        if (minus || !first) *s = p + 1;
        work x;
        if (!parse_product(ctx, s, &x, nest)) return false;
        w->bad = w->bad || x.bad;
        for (uint32_t i = 0; i < x.n; i++) {
            if (minus && __builtin_sub_overflow((int64_t)0, x.t[i].c, &x.t[i].c)) w->bad = true;
            add_term(ctx, w, &x.t[i]);
        }
    }
}

bool rl_dim_parse(rl_ctx *ctx, const char **s, rl_dim *d) {
    work w;
    table(ctx);
    if (!parse_sum(ctx, s, &w, 0) || w.bad) return false;
    if (w.n == 1 && !w.t[0].nsym && w.t[0].c < 0) return false;
    *d = finish(ctx, &w);
    return true;
}
