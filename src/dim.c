/* Symbolic sizes as interned polynomials: see dim.h.
 *
 * A polynomial is a list of terms c * s1 * s2 ..., sorted by degree (highest first), then by the symbols' names (fresh ones by
 * number); a term's symbols are sorted in the same way.  So equal polynomials are equal lists, and printing does not depend on
 * the order in which symbols came up.  Arithmetic works on an rl_dimwork of fixed size on the stack; only a result that is new
 * is stored.  What overflows a coefficient, or the fixed size, becomes a fresh symbol: sound, since it equals nothing.
 *
 * Three kinds of symbols, which never meet even where their names are equal:
 *   NAMED    a dim_param of the model             N, 'a b'
 *   FRESH    unknown                              ?0
 *   FLOOR    floor(p / k), p a polynomial, k > 1  floor((H+1)/2), with p's coefficients in [0, k), so that
 *            floor((H-1)/2)+1 and floor((H+1)/2) are one dim */
#include "dim_internal.h"

#include <string.h>

enum { MAXNAME = 256 };

struct rl_dimtab *rl_dim_table(rl_ctx *ctx) {
    if (ctx->dims) return ctx->dims;
    struct rl_dimtab *t = rl_new(&ctx->mem, struct rl_dimtab, 1);
    for (int i = 0; i < 3; i++) t->bysym[i].mem = &ctx->mem;
    t->bypoly.mem = &ctx->mem;
    return ctx->dims = t;
}

const rl_dimpoly *rl_dim_poly(const rl_ctx *ctx, rl_dim d) {
    return &ctx->dims->poly.p[-(d + 1)];
}

/* ---- polynomials being computed ---- */

/* ?9, then ?11, also within a name, as in min(300|?9): the order that new numbers give them again. */
static int compare_names(const char *x, const char *y) {
    for (; *x && *x == *y; x++, y++) {
        if (*x != '?') continue;
        size_t n = strspn(x + 1, "0123456789"), m = strspn(y + 1, "0123456789");
        if (n != m) return n < m ? -1 : 1;
    }
    return strcmp(x, y);
}

static int compare_symbols(const rl_ctx *ctx, uint32_t a, uint32_t b) {
    if (a == b) return 0;
    const rl_dimsym *x = &ctx->dims->sym.p[a], *y = &ctx->dims->sym.p[b];
    int c = compare_names(x->name, y->name);
    return c ? c : x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : (a < b ? -1 : 1);
}

/* The order of terms: degree down, then names up. */
static int compare_terms(const rl_ctx *ctx, const rl_dimterm *a, const rl_dimterm *b) {
    if (a->nsym != b->nsym) return a->nsym > b->nsym ? -1 : 1;
    for (uint32_t i = 0; i < a->nsym; i++) {
        int c = compare_symbols(ctx, a->sym[i], b->sym[i]);
        if (c) return c;
    }
    return 0;
}

void rl_dim_add_term(const rl_ctx *ctx, rl_dimwork *w, const rl_dimterm *x) {
    uint32_t i = 0;
    int c = 1;
    while (i < w->n && (c = compare_terms(ctx, &w->t[i], x)) < 0) i++;
    if (i < w->n && c == 0) {
        if (__builtin_add_overflow(w->t[i].c, x->c, &w->t[i].c)) w->bad = true;
        if (w->t[i].c) return;
        w->n--;
        memmove(&w->t[i], &w->t[i + 1], (w->n - i) * sizeof(rl_dimterm));
        return;
    }
    if (!x->c) return;
    if (w->n == MAXTERM) {
        w->bad = true;
        return;
    }
    memmove(&w->t[i + 1], &w->t[i], (w->n - i) * sizeof(rl_dimterm));
    w->t[i] = *x;
    w->n++;
}

void rl_dim_add_const(const rl_ctx *ctx, rl_dimwork *w, int64_t c) {
    rl_dimterm x = {.c = c};
    rl_dim_add_term(ctx, w, &x);
}

/* w += f * d */
static void add_dim(const rl_ctx *ctx, rl_dimwork *w, rl_dim d, int64_t f) {
    rl_dimterm x = {.c = d};
    const rl_dimterm *t = rl_dim_known(d) ? &x : rl_dim_poly(ctx, d)->t;
    uint32_t n = rl_dim_known(d) ? 1 : rl_dim_poly(ctx, d)->n;
    for (uint32_t i = 0; i < n; i++) {
        rl_dimterm y = t[i];
        if (__builtin_mul_overflow(y.c, f, &y.c)) w->bad = true;
        rl_dim_add_term(ctx, w, &y);
    }
}

static void multiply_terms(const rl_ctx *ctx, rl_dimwork *w, const rl_dimterm *a, const rl_dimterm *b) {
    rl_dimterm x = {.nsym = a->nsym + b->nsym};
    if (x.nsym > MAXDEGREE || __builtin_mul_overflow(a->c, b->c, &x.c)) {
        w->bad = true;
        return;
    }
    for (uint32_t i = 0, j = 0, k = 0; k < x.nsym; k++)
        x.sym[k] = j == b->nsym || (i < a->nsym && compare_symbols(ctx, a->sym[i], b->sym[j]) <= 0) ? a->sym[i++] : b->sym[j++];
    rl_dim_add_term(ctx, w, &x);
}

void rl_dim_multiply(const rl_ctx *ctx, const rl_dimwork *a, const rl_dimwork *b, rl_dimwork *w) {
    w->n = 0;
    w->bad = a->bad || b->bad;
    for (uint32_t i = 0; i < a->n && !w->bad; i++)
        for (uint32_t j = 0; j < b->n && !w->bad; j++) multiply_terms(ctx, w, &a->t[i], &b->t[j]);
}

/* ---- interning ---- */

static uint64_t hash_terms(const rl_dimterm *t, uint32_t n) {
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x[3] = {h, (uint64_t)t[i].c, rl_hash_bytes(t[i].sym, t[i].nsym * sizeof t[i].sym[0])};
        h = rl_hash_bytes(x, sizeof x);
    }
    return h;
}

static bool equal_terms(const rl_dimterm *a, const rl_dimterm *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (a[i].c != b[i].c || a[i].nsym != b[i].nsym) return false;
        if (!rl_same_bytes(a[i].sym, b[i].sym, a[i].nsym * sizeof a[i].sym[0])) return false;
    }
    return true;
}

static uint32_t intern_poly(rl_ctx *ctx, const rl_dimwork *w) {
    struct rl_dimtab *t = rl_dim_table(ctx);
    uint64_t h = hash_terms(w->t, w->n);
    uint32_t first = rl_hash_get(&t->bypoly, h);
    for (uint32_t i = first; i != RL_NONE; i = t->poly.p[i].next)
        if (t->poly.p[i].n == w->n && equal_terms(t->poly.p[i].t, w->t, w->n)) return i;
    rl_dimpoly p = {w->n, first, rl_copy(&ctx->mem, w->t, w->n * sizeof(rl_dimterm))};
    uint32_t i = t->poly.n;
    rl_push(&ctx->mem, t->poly, p);
    rl_hash_put(&t->bypoly, h, i);
    return i;
}

/* The polynomial as a dim; fresh when it overflowed or is a negative number. */
rl_dim rl_dim_finish(rl_ctx *ctx, const rl_dimwork *w) {
    if (w->bad) return rl_dim_fresh(ctx);
    if (w->n == 0) return 0;
    if (w->n == 1 && w->t[0].nsym == 0) return w->t[0].c >= 0 ? w->t[0].c : rl_dim_fresh(ctx);
    return -1 - (rl_dim)intern_poly(ctx, w);
}

uint32_t rl_dim_intern(rl_ctx *ctx, rl_str name, rl_symkind kind, uint32_t num, int64_t div) {
    struct rl_dimtab *t = rl_dim_table(ctx);
    uint32_t i = rl_hash_get(&t->bysym[kind], (uintptr_t)name);
    if (i != RL_NONE) return i;
    rl_dimsym s = {name, kind, num, div};
    i = t->sym.n;
    rl_push(&ctx->mem, t->sym, s);
    rl_hash_put(&t->bysym[kind], (uintptr_t)name, i);
    return i;
}

static rl_dim dim_of_symbol(rl_ctx *ctx, uint32_t sym) {
    rl_dimwork w;
    w.n = 1;
    w.bad = false;
    w.t[0] = (rl_dimterm){.c = 1, .nsym = 1, .sym = {sym}};
    return rl_dim_finish(ctx, &w);
}

rl_dim rl_dim_symbol(rl_ctx *ctx, rl_str name) {
    return dim_of_symbol(ctx, rl_dim_intern(ctx, name, NAMED, 0, 0));
}

rl_dim rl_dim_fresh(rl_ctx *ctx) {
    struct rl_dimtab *t = rl_dim_table(ctx);
    rl_str name;
    do name = rl_internf(ctx, "?%u", t->nfresh++);
    while (rl_hash_get(&t->bysym[FRESH], (uintptr_t)name) != RL_NONE); /* a text may have named it */
    return dim_of_symbol(ctx, rl_dim_intern(ctx, name, FRESH, 0, 0));
}

/* ---- arithmetic ---- */

void rl_dim_start(rl_dimwork *w) {
    w->n = 0;
    w->bad = false;
}

rl_dim rl_dim_add(rl_ctx *ctx, rl_dim a, rl_dim b) {
    rl_dimwork w;
    rl_dim_start(&w);
    add_dim(ctx, &w, a, 1);
    add_dim(ctx, &w, b, 1);
    return rl_dim_finish(ctx, &w);
}

rl_dim rl_dim_sub(rl_ctx *ctx, rl_dim a, rl_dim b) {
    rl_dimwork w;
    rl_dim_start(&w);
    add_dim(ctx, &w, a, 1);
    add_dim(ctx, &w, b, -1);
    return rl_dim_finish(ctx, &w);
}

rl_dim rl_dim_mul(rl_ctx *ctx, rl_dim a, rl_dim b) {
    rl_dimwork x, y, w;
    if (rl_dim_known(a) && rl_dim_known(b)) {
        rl_dim r;
        return __builtin_mul_overflow(a, b, &r) ? rl_dim_fresh(ctx) : r;
    }
    rl_dim_start(&x);
    rl_dim_start(&y);
    add_dim(ctx, &x, a, 1);
    add_dim(ctx, &y, b, 1);
    rl_dim_multiply(ctx, &x, &y, &w);
    return rl_dim_finish(ctx, &w);
}

rl_dim rl_dim_prod(rl_ctx *ctx, const rl_dim *d, uint32_t n) {
    rl_dim r = 1;
    for (uint32_t i = 0; i < n; i++) r = rl_dim_mul(ctx, r, d[i]);
    return r;
}

/* Takes the symbols and the coefficient of b out of x; false when they are not all in it. */
static bool divide_term(rl_dimterm *x, const rl_dimterm *b) {
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
static void subtract_product(const rl_ctx *ctx, rl_dimwork *x, const rl_dimterm *t, const rl_dimwork *y) {
    rl_dimterm minus = *t;
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
    rl_dimwork x, y, w;
    rl_dim_start(&x);
    rl_dim_start(&y);
    rl_dim_start(&w);
    add_dim(ctx, &x, a, 1);
    add_dim(ctx, &y, b, 1);
    if (y.n == 0 || x.bad || y.bad) return false;
    while (x.n) { /* the order of terms is one of monomials, so the first term of a product is the product of the first ones */
        rl_dimterm t = x.t[0];
        if (!divide_term(&t, &y.t[0])) return false;
        rl_dim_add_term(ctx, &w, &t);
        subtract_product(ctx, &x, &t, &y);
        if (w.bad || x.bad) return false;
    }
    if (w.n == 1 && w.t[0].nsym == 0 && w.t[0].c < 0) return false;
    *q = rl_dim_finish(ctx, &w);
    return true;
}

/* Each of a term's symbols is one of the other's. */
static bool is_part(const rl_dimterm *x, const rl_dimterm *of) {
    rl_dimterm rest = *of, one = *x;
    rest.c = one.c = 1;
    return divide_term(&rest, &one);
}

/* What is taken off must be covered by terms that are not smaller: those with the same symbols and maybe more. */
static bool is_never_negative(rl_dimwork w) {
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
    rl_dimwork w;
    rl_dim_start(&w);
    add_dim(ctx, &w, a, 1);
    add_dim(ctx, &w, b, -1);
    return is_never_negative(w);
}

void rl_dim_split(rl_ctx *ctx, rl_dim a, rl_dim b, rl_dim *q, rl_dim *rest) {
    rl_dimwork x, y, in, out;
    *q = 0;
    *rest = a;
    if (b == 0) return;
    if (rl_dim_known(a) && rl_dim_known(b)) {
        *q = a / b;
        *rest = a % b;
        return;
    }
    rl_dim_start(&x);
    rl_dim_start(&y);
    rl_dim_start(&in);
    rl_dim_start(&out);
    add_dim(ctx, &x, a, 1);
    add_dim(ctx, &y, b, 1);
    if (y.n != 1) return;
    for (uint32_t i = 0; i < x.n; i++) {
        rl_dimterm t = x.t[i];
        if (divide_term(&t, &y.t[0])) rl_dim_add_term(ctx, &in, &t);
        else rl_dim_add_term(ctx, &out, &x.t[i]);
    }
    if (!is_never_negative(out)) {
        rl_dim_add_const(ctx, &in, -1);
        add_dim(ctx, &out, b, 1);
    }
    if (!is_never_negative(in) || !is_never_negative(out)) return;
    *q = rl_dim_finish(ctx, &in);
    *rest = rl_dim_finish(ctx, &out);
}

/* The symbol floor(w / k), w canonical. RL_NONE when its name would be so long that nested ones could exhaust the stack. */
static uint32_t floor_symbol(rl_ctx *ctx, const rl_dimwork *w, int64_t k) {
    rl_text t = {.mem = &ctx->mem};
    bool bare = w->n == 1;
    rl_put(&t, bare ? "floor(" : "floor((");
    rl_dim_print_terms(&t, ctx, w->t, w->n);
    rl_put(&t, bare ? "/%lld)" : ")/%lld)", (long long)k);
    if (t.n > MAXNAME) return RL_NONE;
    rl_str name = rl_intern(ctx, t.p, t.n);
    return rl_dim_intern(ctx, name, FLOOR, intern_poly(ctx, w), k);
}

/* x = floor(p/m) + c alone:  floor(x/k) = floor((p + m*c) / (m*k)).  Replaces x and k where it applies. */
static bool unnest(const rl_ctx *ctx, rl_dimwork *x, int64_t *k) {
    const rl_dimterm *t = x->t;
    if (x->n == 0 || x->n > 2 || t[0].nsym != 1 || t[0].c != 1 || (x->n == 2 && t[1].nsym)) return false;
    const rl_dimsym *s = &ctx->dims->sym.p[t[0].sym[0]];
    int64_t c = x->n == 2 ? t[1].c : 0, mc, mk;
    if (s->kind != FLOOR || __builtin_mul_overflow(s->k, c, &mc) || __builtin_mul_overflow(s->k, *k, &mk)) return false;
    const rl_dimpoly *p = &ctx->dims->poly.p[s->num];
    rl_dim_start(x);
    for (uint32_t i = 0; i < p->n; i++) rl_dim_add_term(ctx, x, &p->t[i]);
    rl_dim_add_const(ctx, x, mc);
    *k = mk;
    return true;
}

/* Splits x = k*q + r, r's coefficients in [0, k). */
static void split_quotient(const rl_ctx *ctx, const rl_dimwork *x, int64_t k, rl_dimwork *q, rl_dimwork *r) {
    rl_dim_start(r);
    for (uint32_t i = 0; i < x->n; i++) {
        rl_dimterm t = x->t[i], u = t;
        t.c = rl_floor_div(u.c, k);
        u.c -= t.c * k;
        rl_dim_add_term(ctx, q, &t);
        rl_dim_add_term(ctx, r, &u);
    }
}

/* Divides r and k by what all of r's coefficients (but the constant) and k have in common. */
static void reduce(rl_dimwork *r, int64_t *k) {
    int64_t g = *k;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->t[i].nsym) g = rl_gcd(g, r->t[i].c);
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

void rl_dim_floor(rl_ctx *ctx, rl_dimwork *x, int64_t k) {
    rl_dimwork q, r;
    if (x->bad) return;
    rl_dim_start(&q);
    do {
        split_quotient(ctx, x, k, &q, &r);
        if (r.n && r.t[0].nsym) reduce(&r, &k);
        *x = r;
    } while (k > 1 && unnest(ctx, x, &k));
    if (r.n && r.t[0].nsym && k > 1) {
        uint32_t sym = floor_symbol(ctx, &r, k);
        rl_dimterm t = {.c = 1, .nsym = 1, .sym = {sym}};
        if (sym == RL_NONE) q.bad = true;
        else rl_dim_add_term(ctx, &q, &t);
    } else if (k == 1) {
        for (uint32_t i = 0; i < r.n; i++) rl_dim_add_term(ctx, &q, &r.t[i]);
    }
    *x = q;
}

rl_dim rl_dim_floordiv(rl_ctx *ctx, rl_dim a, int64_t k) {
    if (k <= 0) return rl_dim_fresh(ctx);
    if (rl_dim_known(a)) return a / k;
    rl_dimwork x;
    rl_dim_start(&x);
    add_dim(ctx, &x, a, 1);
    rl_dim_floor(ctx, &x, k);
    return rl_dim_finish(ctx, &x);
}

rl_dim rl_dim_ceildiv(rl_ctx *ctx, rl_dim a, int64_t k) {
    if (k <= 0) return rl_dim_fresh(ctx);
    if (rl_dim_known(a)) return a / k + (a % k != 0);
    rl_dimwork x;
    rl_dim_start(&x);
    add_dim(ctx, &x, a, 1);
    rl_dim_add_const(ctx, &x, k - 1);
    rl_dim_floor(ctx, &x, k);
    return rl_dim_finish(ctx, &x);
}

rl_str rl_dim_name(const rl_ctx *ctx, rl_dim d) {
    if (rl_dim_known(d)) return NULL;
    const rl_dimpoly *p = rl_dim_poly(ctx, d);
    return p->n == 1 && p->t[0].nsym == 1 && p->t[0].c == 1 ? ctx->dims->sym.p[p->t[0].sym[0]].name : NULL;
}

/* What symbols stand for: the hash's value by name, else the guess. */
typedef struct { const rl_hash *value; int64_t guess; bool guessed; } meaning;

static int64_t eval_terms(const rl_ctx *ctx, const rl_dimterm *t, uint32_t n, meaning *m);

static int64_t eval_symbol(const rl_ctx *ctx, const rl_dimsym *s, meaning *m) {
    if (s->kind == FLOOR) {
        const rl_dimpoly *p = &ctx->dims->poly.p[s->num];
        return rl_floor_div(eval_terms(ctx, p->t, p->n, m), s->k);
    }
    uint32_t x = m->value ? rl_hash_get(m->value, (uint64_t)(uintptr_t)s->name) : RL_NONE;
    m->guessed |= x == RL_NONE;
    return x == RL_NONE ? m->guess : x;
}

static int64_t eval_terms(const rl_ctx *ctx, const rl_dimterm *t, uint32_t n, meaning *m) {
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
    const rl_dimpoly *p = rl_dim_poly(ctx, d);
    return RL_MAX(eval_terms(ctx, p->t, p->n, &m), 0);
}

/* The value where each symbol is least; false where it may be less elsewhere, as of 512-N. */
static bool least_of(const rl_ctx *ctx, const rl_dimpoly *p, int64_t *least) {
    *least = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t x = p->t[i].c, inner;
        if (p->t[i].nsym && x < 0) return false;
        for (uint32_t j = 0; j < p->t[i].nsym; j++) {
            const rl_dimsym *s = &ctx->dims->sym.p[p->t[i].sym[j]];
            if (s->kind == FLOOR && (!least_of(ctx, &ctx->dims->poly.p[s->num], &inner) || inner < 0)) return false;
            x = rl_mul(x, s->kind == FLOOR ? inner / s->k : s->name[0] != '?');
        }
        *least = rl_add(*least, x);
    }
    return true;
}

bool rl_dim_never_negative(const rl_ctx *ctx, rl_dim d) {
    int64_t least = d;
    return (rl_dim_known(d) || least_of(ctx, rl_dim_poly(ctx, d), &least)) && least >= 0;
}

bool rl_dim_eval(const rl_ctx *ctx, rl_dim d, const rl_hash *value, int64_t *x) {
    meaning m = {value, 0, false};
    *x = d;
    if (rl_dim_known(d)) return true;
    const rl_dimpoly *p = rl_dim_poly(ctx, d);
    *x = eval_terms(ctx, p->t, p->n, &m);
    return !m.guessed && *x >= 0;
}
