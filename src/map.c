/* Index maps (map.h): making them canonical, cutting, comparing, printing.
 *
 * Offsets are kept as a sum of what is added and one of what is taken off until the end: a dim that is a number cannot be negative. */
#include "map.h"

#include <inttypes.h>
#include <string.h>

typedef struct { rl_dim plus, minus; } balance;

static void add_to(rl_ctx *ctx, balance *b, rl_dim scale, int64_t k) {
    if (k > 0) b->plus = rl_dim_add(ctx, b->plus, rl_dim_mul(ctx, scale, k));
    if (k < 0) b->minus = rl_dim_add(ctx, b->minus, rl_dim_mul(ctx, scale, -k));
}

static rl_dim total(rl_ctx *ctx, const balance *b) {
    return b->minus == 0 ? b->plus : rl_dim_sub(ctx, b->plus, b->minus);
}

/* ---- canonical digits ---- */

typedef struct {
    rl_maps *m;
    rl_mapdigit d[RL_MAP_MAXDIGIT];
    uint32_t n;
    balance offset;
    bool empty, fill, full; /* full: of digits, more than there is room for */
} builder;

/* What two digits of `inner` elements below would add: the table as u[x] + v[y]; false when it is no such sum. */
static bool split_table(const int64_t *t, int64_t n, int64_t inner, int64_t *u, int64_t *v) {
    int64_t row = 0, col = 0, outer = n / inner, at = 0;
    while (at < n && t[at] == RL_MAP_FILL) at++;
    if (at == n) return false;
    row = at / inner, col = at % inner;
    for (int64_t y = 0; y < inner; y++) v[y] = t[row * inner + y] == RL_MAP_FILL ? RL_MAP_FILL : t[row * inner + y] - t[at];
    for (int64_t x = 0; x < outer; x++) u[x] = t[x * inner + col];
    for (int64_t x = 0; x < outer; x++)
        for (int64_t y = 0; y < inner; y++) {
            int64_t sum = u[x] == RL_MAP_FILL || v[y] == RL_MAP_FILL ? RL_MAP_FILL : u[x] + v[y];
            if (t[x * inner + y] != sum) return false;
        }
    return true;
}

static bool cut_digit(rl_maps *m, const rl_mapdigit *d, rl_dim inner, rl_mapdigit *hi, rl_mapdigit *lo) {
    rl_dim outer;
    if (inner == 0 || !rl_dim_div(m->ctx, d->size, inner, &outer)) return false;
    *hi = (rl_mapdigit){outer, d->scale, d->sign, NULL};
    *lo = (rl_mapdigit){inner, d->scale, d->sign, NULL};
    if (!d->tab) {
        hi->scale = rl_dim_mul(m->ctx, d->scale, inner);
        return true;
    }
    int64_t *u = rl_new(m->mem, int64_t, outer), *v = rl_new(m->mem, int64_t, inner);
    hi->tab = u;
    lo->tab = v;
    return split_table(d->tab, d->size, inner, u, v);
}

/* Could two digits, the lower of q elements, stand for the table?  Its first two rows would differ by one number; and what lies in the
 * row of the first element that reads and the column of the last, or the other way round, would read too. */
static bool may_split(const int64_t *t, int64_t q, int64_t first, int64_t last) {
    int64_t a = first / q * q + last % q, b = last / q * q + first % q;
    if (t[a] == RL_MAP_FILL || t[b] == RL_MAP_FILL || t[a] + t[b] != t[first] + t[last]) return false;
    for (int64_t y = 0; y < q; y++)
        if (t[y] != RL_MAP_FILL && t[q + y] != RL_MAP_FILL && t[0] != RL_MAP_FILL && t[q] != RL_MAP_FILL && t[q + y] - t[y] != t[q] - t[0])
            return false;
    return true;
}

static void push(builder *b, const rl_mapdigit *d) {
    if (b->n == RL_MAP_MAXDIGIT) b->full = true;
    else b->d[b->n++] = *d;
}

static bool is_step(const rl_mapdigit *d) {
    for (int64_t x = 0; x < d->size; x++)
        if (d->tab[x] == RL_MAP_FILL || d->tab[x] != x * d->tab[1]) return false;
    return true;
}

/* The table with its first reading element at 0 and without a common factor. */
static void reduce_table(builder *b, rl_mapdigit *d) {
    rl_maps *m = b->m;
    int64_t first = 0, common = 0;
    while (first < d->size && d->tab[first] == RL_MAP_FILL) first++;
    if (first == d->size) {
        b->fill = true;
        return;
    }
    int64_t base = d->tab[first], *t = rl_new(m->mem, int64_t, d->size);
    for (int64_t x = 0; x < d->size; x++) {
        t[x] = d->tab[x] == RL_MAP_FILL ? RL_MAP_FILL : d->tab[x] - base;
        if (t[x] != RL_MAP_FILL && common != 1) common = rl_gcd(t[x], common);
    }
    add_to(m->ctx, &b->offset, d->scale, base);
    d->scale = common ? rl_dim_mul(m->ctx, d->scale, common) : 1;
    for (int64_t x = 0; x < d->size && common > 1; x++)
        if (t[x] != RL_MAP_FILL) t[x] /= common;
    d->tab = t;
}

static void add_digit(builder *b, rl_mapdigit d);

static void add_table(builder *b, rl_mapdigit d) {
    reduce_table(b, &d);
    if (b->fill || d.size == 1) return;
    if (is_step(&d)) {
        d.sign = d.tab[1] < 0 ? -1 : 1;
        if (d.tab[1] == 0) d.scale = 0;
        d.tab = NULL;
        push(b, &d);
        return;
    }
    int64_t first = 0, last = d.size - 1;
    while (d.tab[first] == RL_MAP_FILL) first++;
    while (d.tab[last] == RL_MAP_FILL) last--;
    for (int64_t q = 2; q <= d.size / 2; q++) {
        rl_mapdigit hi, lo;
        if (d.size % q || !may_split(d.tab, q, first, last) || !cut_digit(b->m, &d, q, &hi, &lo)) continue;
        add_digit(b, hi);
        add_digit(b, lo);
        return;
    }
    push(b, &d);
}

static void add_digit(builder *b, rl_mapdigit d) {
    if (d.size == 0) b->empty = true;
    else if (d.tab) add_table(b, d);
    else if (d.size != 1) {
        if (d.scale == 0) d.sign = 1;
        push(b, &d);
    }
}

/* Neighbours that are one longer step. */
static void merge(builder *b) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        rl_mapdigit *lo = &b->d[i], *hi = n ? &b->d[n - 1] : NULL;
        bool one = hi && !hi->tab && !lo->tab && hi->sign == lo->sign && hi->scale == rl_dim_mul(b->m->ctx, lo->scale, lo->size);
        if (!one) b->d[n++] = *lo;
        else *hi = (rl_mapdigit){rl_dim_mul(b->m->ctx, hi->size, lo->size), lo->scale, lo->sign, NULL};
    }
    b->n = n;
}

static rl_map of_builder(const builder *b) {
    rl_map f = {.n = b->n, .offset = total(b->m->ctx, &b->offset)};
    f.digit = rl_copy(b->m->mem, b->d, b->n * sizeof *b->d);
    return f;
}

bool rl_map_make(rl_maps *m, uint32_t n, const rl_mapdigit *d, rl_dim offset, rl_map *out) {
    builder b = {.m = m, .offset = {offset, 0}};
    rl_dim count = 1;
    for (uint32_t i = 0; i < n; i++) {
        count = rl_dim_mul(m->ctx, count, d[i].size);
        add_digit(&b, d[i]);
    }
    if (b.full) return false;
    if (b.empty || b.fill) {
        b.n = 0;
        b.offset = (balance){0, 0};
        push(&b, &(rl_mapdigit){b.empty ? 0 : count, 0, 1, NULL});
    }
    merge(&b);
    *out = of_builder(&b);
    out->fill = b.fill && !b.empty;
    return true;
}

bool rl_map_identity(rl_maps *m, rl_dim n, rl_map *out) {
    return rl_map_make(m, 1, &(rl_mapdigit){n, 1, 1, NULL}, 0, out);
}

bool rl_map_of_table(rl_maps *m, int64_t n, const int64_t *t, rl_map *out) {
    return rl_map_make(m, 1, &(rl_mapdigit){n, 1, 1, t}, 0, out);
}

/* ---- cutting ---- */

bool rl_map_cut(rl_maps *m, const rl_map *f, rl_dim inner, rl_map *out, uint32_t *at) {
    rl_dim rest = inner;
    uint32_t i = f->n;
    *out = *f;
    for (; i > 0 && rest != 1; i--) {
        rl_dim left;
        if (!rl_dim_div(m->ctx, rest, f->digit[i - 1].size, &left)) break;
        rest = left;
    }
    *at = i;
    if (rest == 1) return true;
    rl_mapdigit hi, lo;
    if (i == 0 || !cut_digit(m, &f->digit[i - 1], rest, &hi, &lo)) return false;
    out->digit = rl_new(m->mem, rl_mapdigit, f->n + 1);
    memcpy(out->digit, f->digit, i * sizeof *f->digit);
    memcpy(out->digit + i + 1, f->digit + i, (f->n - i) * sizeof *f->digit);
    out->digit[i - 1] = hi;
    out->digit[i] = lo;
    out->n = f->n + 1;
    return true;
}

/* ---- looking ---- */

rl_dim rl_map_count(const rl_maps *m, const rl_map *f) {
    rl_dim n = 1;
    for (uint32_t i = 0; i < f->n; i++) n = rl_dim_mul(m->ctx, n, f->digit[i].size);
    return n;
}

bool rl_map_is_known(const rl_map *f) {
    for (uint32_t i = 0; i < f->n; i++)
        if (!rl_dim_known(f->digit[i].size) || !rl_dim_known(f->digit[i].scale)) return false;
    return rl_dim_known(f->offset);
}

int64_t rl_map_at(const rl_map *f, int64_t i) {
    int64_t at = f->offset;
    if (f->fill) return RL_MAP_FILL;
    for (uint32_t k = f->n; k-- > 0;) {
        const rl_mapdigit *d = &f->digit[k];
        int64_t x = i % d->size;
        i /= d->size;
        if (d->tab && d->tab[x] == RL_MAP_FILL) return RL_MAP_FILL;
        at += d->scale * (d->tab ? d->tab[x] : d->sign * x);
    }
    return at;
}

void rl_map_list(const rl_map *f, int64_t *out) {
    int64_t n = 1;
    out[0] = f->fill ? RL_MAP_FILL : f->offset;
    for (uint32_t k = f->n; k-- > 0; n *= f->digit[k].size) {
        const rl_mapdigit *d = &f->digit[k];
        for (int64_t x = d->size; x-- > 0;) {
            bool fill = d->tab && d->tab[x] == RL_MAP_FILL;
            int64_t step = fill ? 0 : d->scale * (d->tab ? d->tab[x] : d->sign * x);
            for (int64_t i = 0; i < n; i++) out[x * n + i] = fill || out[i] == RL_MAP_FILL ? RL_MAP_FILL : out[i] + step;
        }
    }
}

bool rl_mapdigit_same(const rl_mapdigit *a, const rl_mapdigit *b) {
    if (a->size != b->size || a->scale != b->scale || a->sign != b->sign || !a->tab != !b->tab) return false;
    return !a->tab || rl_same_bytes(a->tab, b->tab, (size_t)a->size * sizeof *a->tab);
}

static bool same_digits(const rl_map *f, const rl_map *g) {
    if (f->n != g->n || f->offset != g->offset || f->fill != g->fill) return false;
    for (uint32_t i = 0; i < f->n; i++)
        if (!rl_mapdigit_same(&f->digit[i], &g->digit[i])) return false;
    return true;
}

bool rl_map_equal(rl_maps *m, const rl_map *f, const rl_map *g) {
    if (same_digits(f, g)) return true;
    rl_dim n = rl_map_count(m, f);
    if (n != rl_map_count(m, g) || !rl_map_is_known(f) || !rl_map_is_known(g) || n > m->limit || n > m->work) return false;
    m->work -= n;
    for (int64_t i = 0; i < n; i++)
        if (rl_map_at(f, i) != rl_map_at(g, i)) return false;
    return true;
}

bool rl_map_is_identity(const rl_map *f, rl_dim n) {
    if (f->fill || f->offset != 0 || f->n > 1 || n == 0) return false;
    if (f->n == 0) return n == 1;
    return f->digit[0].size == n && !f->digit[0].tab && f->digit[0].scale == 1 && f->digit[0].sign == 1;
}

/* ---- text ---- */

static void print_table(rl_text *t, const rl_mapdigit *d) {
    rl_put(t, "{");
    for (int64_t x = 0; x < d->size; x++) {
        if (x) rl_put(t, ",");
        if (d->tab[x] == RL_MAP_FILL) rl_put(t, "_");
        else rl_put(t, "%" PRId64, d->tab[x]);
    }
    rl_put(t, "}");
}

void rl_map_print(rl_text *t, const rl_ctx *ctx, const rl_map *f) {
    if (f->offset != 0) {
        rl_dim_print(t, ctx, f->offset);
        rl_put(t, f->n ? " + " : "");
    }
    for (uint32_t i = 0; i < f->n; i++) {
        const rl_mapdigit *d = &f->digit[i];
        rl_put(t, i ? " " : "");
        rl_dim_print(t, ctx, d->size);
        rl_put(t, d->sign < 0 ? ":-" : ":");
        if (!d->tab || d->scale != 1) rl_dim_print(t, ctx, d->scale);
        if (d->tab) print_table(t, d);
    }
    if (f->fill) rl_put(t, " fill");
}
