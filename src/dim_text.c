/* Symbolic sizes as text, both ways: see dim.h. */
#include "dim_internal.h"

#include <string.h>

enum { MAXNEST = 60 };

static bool name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool name_char(char c) {
    return name_start(c) || (c >= '0' && c <= '9') || (c && strchr(".:#$~", c));
}

static void print_name(rl_text *t, const rl_dimsym *s) {
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

void rl_dim_print_terms(rl_text *t, const rl_ctx *ctx, const rl_dimterm *x, uint32_t n) {
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
    else rl_dim_print_terms(t, ctx, rl_dim_poly(ctx, d)->t, rl_dim_poly(ctx, d)->n);
}

/* Does a fresh symbol stand at s[i], in a name or not? */
static bool is_fresh(const char *s, size_t i, size_t n, bool named) {
    if (s[i] != '?' || i + 1 == n || s[i + 1] < '0' || s[i + 1] > '9') return false;
    return !named || (i && strchr("(|+-* ", s[i - 1]));
}

/* Names of files begin with no '?': what they have of one inside says nothing.  Those that do are made of sizes, in which the quotes of
 * names have backslashes: one, in such a name inside three, then seven. */
void rl_dim_renumber(rl_text *t, const char *s, size_t n, rl_hash *seen) {
    size_t depth = 0, slashes = 0; /* names around s[i]; backslashes before it */
    bool of_file = false;          /* is the innermost one a file's? */
    for (size_t i = 0; i < n;) {
        if (!of_file && is_fresh(s, i, n, depth)) {
            uint64_t number = 0;
            for (i++; i < n && s[i] >= '0' && s[i] <= '9'; i++) number = number * 10 + (uint64_t)(s[i] - '0');
            uint32_t at = rl_hash_get(seen, number + 1);
            if (at == RL_NONE) rl_hash_put(seen, number + 1, at = seen->n);
            rl_put(t, "?%u", at);
            slashes = 0;
            continue;
        }
        size_t own = (size_t)1 << depth; /* backslashes, and one more, of a quote that a name begins with here */
        if (s[i] == '\'' && depth && slashes % own == own / 2 - 1) depth--, of_file = false;
        else if (s[i] == '\'' && !of_file && slashes % own == own - 1) depth++, of_file = i + 1 == n || s[i + 1] != '?';
        slashes = s[i] == '\\' ? slashes + 1 : 0;
        rl_put_bytes(t, s + i++, 1);
    }
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

static bool parse_sum(rl_ctx *ctx, const char **s, rl_dimwork *w, int nest);

static bool take(const char **s, char c) {
    skip_space(s);
    if (**s != c) return false;
    ++*s;
    return true;
}

/* floor(x/k) and ceil(x/k); *s is behind the opening bracket. */
static bool parse_division(rl_ctx *ctx, const char **s, rl_dimwork *w, int nest, bool up) {
    int64_t k;
    if (!parse_sum(ctx, s, w, nest + 1)) return false;
    if (!take(s, '/')) return false;
    skip_space(s);
    if (!parse_number(s, &k) || k == 0 || !take(s, ')')) return false;
    if (up) rl_dim_add_const(ctx, w, k - 1);
    rl_dim_floor(ctx, w, k);
    return true;
}

static bool parse_symbol(rl_ctx *ctx, const char **s, rl_dimwork *w) {
    const char *p = *s;
    uint32_t sym;
    if (*p == '\'') {
        rl_str name = parse_quoted(ctx, s);
        if (!name) return false;
        sym = rl_dim_intern(ctx, name, NAMED, 0, 0);
    } else if (*p == '?') {
        do p++;
        while (*p >= '0' && *p <= '9');
        if (p == *s + 1) return false;
        sym = rl_dim_intern(ctx, rl_intern(ctx, *s, (size_t)(p - *s)), FRESH, 0, 0);
        *s = p;
    } else {
        if (!name_start(*p)) return false;
        while (name_char(*p)) p++;
        sym = rl_dim_intern(ctx, rl_intern(ctx, *s, (size_t)(p - *s)), NAMED, 0, 0);
        *s = p;
    }
    rl_dimterm t = {.c = 1, .nsym = 1, .sym = {sym}};
    rl_dim_add_term(ctx, w, &t);
    return true;
}

static bool parse_factor(rl_ctx *ctx, const char **s, rl_dimwork *w, int nest) {
    int64_t x;
    rl_dim_start(w);
    skip_space(s);
    if (parse_number(s, &x)) {
        rl_dim_add_const(ctx, w, x);
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

static bool parse_product(rl_ctx *ctx, const char **s, rl_dimwork *w, int nest) {
    if (!parse_factor(ctx, s, w, nest)) return false;
    for (;;) {
        const char *p = *s;
        skip_space(&p);
        if (*p != '*') return true;
        *s = p + 1;
        rl_dimwork x = *w, y;
        if (!parse_factor(ctx, s, &y, nest)) return false;
        rl_dim_multiply(ctx, &x, &y, w);
    }
}

static bool parse_sum(rl_ctx *ctx, const char **s, rl_dimwork *w, int nest) {
    if (nest > MAXNEST) return false;
    rl_dim_start(w);
    for (bool first = true;; first = false) {
        const char *p = *s;
        skip_space(&p);
        bool minus = *p == '-';
        if (!first && *p != '+' && !minus) return true;
        if (minus || !first) *s = p + 1;
        rl_dimwork x;
        if (!parse_product(ctx, s, &x, nest)) return false;
        w->bad = w->bad || x.bad;
        for (uint32_t i = 0; i < x.n; i++) {
            if (minus && __builtin_sub_overflow((int64_t)0, x.t[i].c, &x.t[i].c)) w->bad = true;
            rl_dim_add_term(ctx, w, &x.t[i]);
        }
    }
}

bool rl_dim_parse(rl_ctx *ctx, const char **s, rl_dim *d) {
    rl_dimwork w;
    rl_dim_table(ctx);
    if (!parse_sum(ctx, s, &w, 0) || w.bad) return false;
    if (w.n == 1 && !w.t[0].nsym && w.t[0].c < 0) return false;
    *d = rl_dim_finish(ctx, &w);
    return true;
}
