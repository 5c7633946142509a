/* Index maps (map.h): composing, inverting.
 *
 * Composing reads each digit of the first map as steps within one digit of the second; where such a step would carry into the next
 * digit, or where two of them meet in a table, digits do not suffice and the elements are worked out one by one:
 *
 *   x f32[4,6]  Transpose -> [6,4]  Reshape -> [24]  Slice [1:]     23 elements that no digits describe: a table */
#include "map.h"

#include <string.h>

/* ---- digit by digit ---- */

typedef struct { rl_mapdigit d; uint32_t k; rl_dim unit; } piece; /* a digit of f: `unit` steps of digit k of g; k RL_NONE: moves nothing */

typedef struct {
    rl_maps *m;
    const rl_map *f, *g;
    rl_dim stride[RL_MAP_MAXDIGIT]; /* of each digit of g, in the middle */
    rl_dim at[RL_MAP_MAXDIGIT];     /* where f's offset lies in it */
    uint32_t users[RL_MAP_MAXDIGIT];
    piece p[RL_MAP_MAXDIGIT];
    uint32_t n;
} meeting;

static void find_strides(meeting *c) {
    rl_dim s = 1;
    for (uint32_t k = c->g->n; k-- > 0; s = rl_dim_mul(c->m->ctx, s, c->g->digit[k].size)) c->stride[k] = s;
}

static bool place_offset(meeting *c) {
    rl_dim rest = c->f->offset;
    for (uint32_t k = 0; k < c->g->n; k++) rl_dim_split(c->m->ctx, rest, c->stride[k], &c->at[k], &rest);
    return rest == 0;
}

static bool moves_nothing(const rl_mapdigit *d) {
    for (int64_t x = 0; d->tab && x < d->size; x++)
        if (d->tab[x] != RL_MAP_FILL && d->tab[x] != 0) return false;
    return d->tab || d->scale == 0;
}

/* What digit d adds at x, in its units. */
static int64_t entry(const rl_mapdigit *d, int64_t x) {
    return d->tab ? d->tab[x] : d->sign * x;
}

/* Neighbours that meet in one table of g become one digit, with a table of its own. */
static bool join_pieces(meeting *c, piece *p, const rl_mapdigit *d, rl_dim unit) {
    int64_t n;
    if (!rl_dim_known(p->d.size) || !rl_dim_known(p->unit) || !rl_dim_known(d->size) || !rl_dim_known(unit)) return false;
    if (__builtin_mul_overflow(p->d.size, d->size, &n) || !rl_map_spend(c->m, n)) return false;
    int64_t *t = rl_new(c->m->mem, int64_t, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t hi = entry(&p->d, i / d->size), lo = entry(d, i % d->size);
        t[i] = hi == RL_MAP_FILL || lo == RL_MAP_FILL ? RL_MAP_FILL : p->unit * hi + unit * lo;
    }
    p->d = (rl_mapdigit){n, 1, 1, t};
    p->unit = 1;
    return true;
}

static bool keep(meeting *c, rl_mapdigit d, uint32_t k, rl_dim unit) {
    bool meets = k != RL_NONE && c->g->digit[k].tab && c->n > 0 && c->p[c->n - 1].k == k;
    if (meets && join_pieces(c, &c->p[c->n - 1], &d, unit)) return true;
    if (c->n == RL_MAP_MAXDIGIT) return false;
    c->p[c->n++] = (piece){d, k, unit};
    if (k != RL_NONE) c->users[k]++;
    return true;
}

/* Elements of d that stay within digit k of g, when each moves `unit` of its steps; all of d, or a divisor of its size. */
static rl_dim within(const meeting *c, const rl_mapdigit *d, uint32_t k, rl_dim unit) {
    rl_dim size = c->g->digit[k].size, p, q;
    if (k == 0 || d->tab || rl_dim_mul(c->m->ctx, unit, d->size) == size) return d->size;
    if (rl_dim_known(size) && rl_dim_known(unit) && rl_dim_known(d->size) && rl_mul(unit, d->size - 1) < size) return d->size;
    return rl_dim_div(c->m->ctx, size, unit, &p) && p != 1 && rl_dim_div(c->m->ctx, d->size, p, &q) ? p : d->size;
}

static bool place(meeting *c, rl_mapdigit d) {
    rl_dim unit = 0, outer;
    uint32_t k = 0;
    if (moves_nothing(&d)) return keep(c, d, RL_NONE, 0);
    while (k < c->g->n && !rl_dim_div(c->m->ctx, d.scale, c->stride[k], &unit)) k++;
    if (k == c->g->n) return false;
    rl_dim inner = within(c, &d, k, unit);
    if (inner == d.size) return keep(c, d, k, unit);
    rl_mapdigit lo = {inner, d.scale, d.sign, NULL}, hi = {0, rl_dim_mul(c->m->ctx, d.scale, inner), d.sign, NULL};
    if (!rl_dim_div(c->m->ctx, d.size, inner, &outer)) return false;
    hi.size = outer;
    return place(c, hi) && keep(c, lo, k, unit);
}

/* The least and the most that a digit adds, in its units; the first as a positive number. */
static void reach(rl_ctx *ctx, const rl_mapdigit *d, rl_dim *down, rl_dim *up) {
    int64_t lo = 0, hi = 0;
    *down = *up = 0;
    for (int64_t x = 0; d->tab && x < d->size; x++) {
        if (d->tab[x] == RL_MAP_FILL) continue;
        lo = RL_MIN(lo, d->tab[x]);
        hi = RL_MAX(hi, d->tab[x]);
    }
    if (d->tab) *down = -lo, *up = hi;
    else if (d->sign < 0) *down = rl_dim_sub(ctx, d->size, 1);
    else *up = rl_dim_sub(ctx, d->size, 1);
}

/* No digit of the middle is left at either end. */
static bool carries_nothing(const meeting *c) {
    rl_ctx *ctx = c->m->ctx;
    for (uint32_t k = 0; k < c->g->n; k++) {
        rl_dim low = 0, high = c->at[k], down, up;
        for (uint32_t i = 0; i < c->n; i++) {
            if (c->p[i].k != k) continue;
            reach(ctx, &c->p[i].d, &down, &up);
            low = rl_dim_add(ctx, low, rl_dim_mul(ctx, c->p[i].unit, down));
            high = rl_dim_add(ctx, high, rl_dim_mul(ctx, c->p[i].unit, up));
        }
        if (c->g->digit[k].tab && c->users[k] > 1) return false;
        if (!rl_dim_not_less(ctx, c->at[k], low) || !rl_dim_not_less(ctx, c->g->digit[k].size, rl_dim_add(ctx, high, 1))) return false;
    }
    return true;
}

static int64_t *negated(rl_maps *m, const int64_t *t, int64_t n, int64_t factor) {
    int64_t *r = rl_new(m->mem, int64_t, n);
    for (int64_t x = 0; x < n; x++) r[x] = t[x] == RL_MAP_FILL ? RL_MAP_FILL : t[x] * factor;
    return r;
}

/* The digit that a piece becomes in a step of g. */
static rl_mapdigit through_step(rl_maps *m, const piece *p, const rl_mapdigit *g) {
    rl_mapdigit d = p->d;
    d.scale = rl_dim_mul(m->ctx, g->scale, p->unit);
    if (d.tab && (g->sign < 0 || g->scale == 0)) d.tab = negated(m, d.tab, d.size, g->scale == 0 ? 0 : -1);
    else if (!d.tab && g->sign < 0) d.sign = -d.sign;
    if (d.tab && g->scale == 0) d.scale = 1;
    return d;
}

static bool through_table(rl_maps *m, const piece *p, rl_dim at, const rl_mapdigit *g, rl_mapdigit *d) {
    if (!rl_dim_known(p->d.size) || !rl_dim_known(p->unit) || !rl_dim_known(at)) return false;
    int64_t *t = rl_new(m->mem, int64_t, p->d.size);
    for (int64_t x = 0; x < p->d.size; x++) {
        bool fill = p->d.tab && p->d.tab[x] == RL_MAP_FILL;
        t[x] = fill ? RL_MAP_FILL : g->tab[at + p->unit * entry(&p->d, x)];
    }
    *d = (rl_mapdigit){p->d.size, g->scale, 1, t};
    return true;
}

/* What g reads where f's offset lies; f's digits add to it. A digit of g whose table a digit of f reads is in that one's. */
static bool find_base(const meeting *c, rl_dim *base, bool *fill) {
    rl_ctx *ctx = c->m->ctx;
    rl_dim plus = c->g->offset, minus = 0;
    for (uint32_t k = 0; k < c->g->n; k++) {
        const rl_mapdigit *g = &c->g->digit[k];
        int64_t t = 0;
        if (g->tab && c->users[k]) continue;
        if (g->tab && !rl_dim_known(c->at[k])) return false;
        if (g->tab) t = g->tab[c->at[k]];
        *fill |= t == RL_MAP_FILL;
        if (*fill) return true;
        rl_dim by = rl_dim_mul(ctx, g->scale, g->tab ? (t < 0 ? -t : t) : c->at[k]);
        if (g->tab ? t < 0 : g->sign < 0) minus = rl_dim_add(ctx, minus, by);
        else plus = rl_dim_add(ctx, plus, by);
    }
    *base = minus == 0 ? plus : rl_dim_sub(ctx, plus, minus); /* an element's place: not negative */
    return true;
}

static bool all_fill(rl_maps *m, const rl_map *f, rl_map *out) {
    rl_dim n = rl_map_count(m, f);
    *out = (rl_map){.n = 1, .digit = rl_new(m->mem, rl_mapdigit, 1), .fill = n != 0};
    out->digit[0] = (rl_mapdigit){n, 0, 1, NULL};
    return true;
}

static bool by_digits(rl_maps *m, const rl_map *f, const rl_map *g, rl_map *out) {
    meeting c = {.m = m, .f = f, .g = g};
    rl_mapdigit d[RL_MAP_MAXDIGIT];
    rl_dim base = 0;
    bool fill = false;
    find_strides(&c);
    if (!place_offset(&c)) return false;
    for (uint32_t i = 0; i < f->n; i++)
        if (!place(&c, f->digit[i])) return false;
    if (!carries_nothing(&c) || !find_base(&c, &base, &fill)) return false;
    if (fill) return all_fill(m, f, out);
    for (uint32_t i = 0; i < c.n; i++) {
        const piece *p = &c.p[i];
        if (p->k == RL_NONE) d[i] = p->d;
        else if (!g->digit[p->k].tab) d[i] = through_step(m, p, &g->digit[p->k]);
        else if (!through_table(m, p, c.at[p->k], &g->digit[p->k], &d[i])) return false;
    }
    return rl_map_make(m, c.n, d, base, out);
}

/* ---- element by element ---- */

bool rl_map_spend(rl_maps *m, rl_dim n) {
    if (!rl_dim_known(n) || n > m->limit || n > m->work) return false;
    m->work -= n;
    return true;
}

static bool by_elements(rl_maps *m, const rl_map *f, const rl_map *g, rl_map *out) {
    rl_dim n = rl_map_count(m, f);
    if (!rl_map_is_known(f) || !rl_map_is_known(g) || !rl_map_spend(m, n)) return false;
    int64_t *t = rl_new(m->mem, int64_t, n + 1);
    rl_map_list(f, t);
    for (int64_t i = 0; i < n; i++)
        if (t[i] != RL_MAP_FILL) t[i] = rl_map_at(g, t[i]);
    return rl_map_of_table(m, n, t, out);
}

static rl_map part(const rl_map *f, uint32_t from, uint32_t to) {
    return (rl_map){.n = to - from, .digit = f->digit + from, .offset = f->offset};
}

/* hi's digits, then lo's. */
static bool join(rl_maps *m, const rl_map *hi, const rl_map *lo, rl_map *out) {
    rl_mapdigit d[2 * RL_MAP_MAXDIGIT];
    if (hi->fill || lo->fill) return false;
    memcpy(d, hi->digit, hi->n * sizeof *d);
    memcpy(d + hi->n, lo->digit, lo->n * sizeof *d);
    return rl_map_make(m, hi->n + lo->n, d, rl_dim_add(m->ctx, hi->offset, lo->offset), out);
}

/* Does q divide everything that f adds but by its last digit?  Then f / q reads whole groups of q. */
static bool divide_by(rl_maps *m, const rl_map *f, rl_dim q, rl_map *out) {
    *out = (rl_map){.n = f->n, .digit = rl_new(m->mem, rl_mapdigit, f->n)};
    for (uint32_t i = 0; i < f->n; i++) {
        out->digit[i] = f->digit[i];
        bool last = i + 1 == f->n;
        if (last ? !rl_dim_div(m->ctx, f->digit[i].size, q, &out->digit[i].size)
                 : !rl_dim_div(m->ctx, f->digit[i].scale, q, &out->digit[i].scale)) return false;
    }
    return rl_dim_div(m->ctx, f->offset, q, &out->offset);
}

static rl_dim common(rl_dim a, rl_dim b) {
    while (b) {
        rl_dim t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* The longest run of elements that f always reads together. */
static rl_dim run_of(const rl_map *f) {
    const rl_mapdigit *last = f->n ? &f->digit[f->n - 1] : NULL;
    if (!last || last->tab || last->scale != 1 || last->sign != 1) return 1;
    if (!rl_map_is_known(f)) return last->size;
    rl_dim q = common(last->size, f->offset);
    for (uint32_t i = 0; i + 1 < f->n; i++) q = common(q, f->digit[i].scale);
    return q;
}

/* What f reads in runs is not taken apart, as far as g has a digit border there. */
static bool without_run(rl_maps *m, const rl_map *f, const rl_map *g, rl_map *out) {
    rl_dim q = run_of(f), inner = 1;
    rl_map rows, cut, top, hi;
    uint32_t at = g->n;
    for (uint32_t i = g->n; i-- > 0 && rl_dim_known(q) && rl_dim_known(g->digit[i].size); at = i) {
        rl_dim both = common(q / inner, g->digit[i].size);
        inner *= both;
        if (both != g->digit[i].size || inner == q) break;
    }
    if (!rl_dim_known(q)) inner = q;
    if (inner <= 1 && rl_dim_known(inner)) return false;
    if (!divide_by(m, f, inner, &rows) || !rl_map_cut(m, g, inner, &cut, &at)) return false;
    top = part(&cut, 0, at);
    rl_map low = part(&cut, at, cut.n);
    low.offset = 0;
    if (!rl_map_make(m, rows.n, rows.digit, rows.offset, &rows)) return false;
    return rl_map_compose(m, &rows, &top, &hi) && join(m, &hi, &low, out);
}

/* A first digit of f that walks g's outermost part whole is the same part of the result. */
static bool without_batch(rl_maps *m, const rl_map *f, const rl_map *g, rl_map *out) {
    rl_map cut, lo;
    uint32_t at;
    if (f->n == 0 || f->digit[0].tab || f->digit[0].sign < 0) return false;
    if (f->digit[0].scale == 0 || !rl_map_cut(m, g, f->digit[0].scale, &cut, &at) || at == 0) return false;
    rl_map top = part(&cut, 0, at), low = part(&cut, at, cut.n), rest = part(f, 1, f->n);
    if (rl_map_count(m, &top) != f->digit[0].size) return false;
    top.offset = 0;
    return rl_map_compose(m, &rest, &low, &lo) && join(m, &top, &lo, out);
}

bool rl_map_compose(rl_maps *m, const rl_map *f, const rl_map *g, rl_map *out) {
    rl_dim n = rl_map_count(m, f);
    if (n == 0) return rl_map_identity(m, 0, out);
    if (f->fill || g->fill) return all_fill(m, f, out);
    if (by_digits(m, f, g, out)) return true;
    return without_run(m, f, g, out) || without_batch(m, f, g, out) || by_elements(m, f, g, out);
}

/* ---- inverse ---- */

static void sort_by_scale(rl_ctx *ctx, const rl_map *f, uint32_t *by, rl_dim *guess) {
    for (uint32_t i = 0; i < f->n; i++) {
        guess[i] = rl_dim_guess(ctx, f->digit[i].scale, 1000003);
        uint32_t k = i;
        for (; k > 0 && guess[by[k - 1]] < guess[i]; k--) by[k] = by[k - 1];
        by[k] = i;
    }
}

/* The digit as a permutation of 0 .. size-1 read backwards: p[place in the input] = x. NULL: it is none. */
static const int64_t *inverse_table(rl_maps *m, const rl_mapdigit *d, int64_t *least) {
    int64_t *p = rl_new(m->mem, int64_t, d->size);
    *least = 0;
    for (int64_t x = 0; x < d->size; x++) {
        if (d->tab[x] == RL_MAP_FILL) return NULL;
        *least = RL_MIN(*least, d->tab[x]);
        p[x] = -1;
    }
    for (int64_t x = 0; x < d->size; x++) {
        int64_t to = d->tab[x] - *least;
        if (to >= d->size || p[to] >= 0) return NULL;
        p[to] = x;
    }
    return p;
}

static bool invert_digits(rl_maps *m, const rl_map *f, rl_dim n, rl_map *out) {
    uint32_t by[RL_MAP_MAXDIGIT];
    rl_dim stride[RL_MAP_MAXDIGIT], guess[RL_MAP_MAXDIGIT], below = 1, s = 1, first = 0, start = 0;
    rl_mapdigit d[RL_MAP_MAXDIGIT];
    for (uint32_t i = f->n; i-- > 0; s = rl_dim_mul(m->ctx, s, f->digit[i].size)) stride[i] = s;
    sort_by_scale(m->ctx, f, by, guess);
    for (uint32_t k = f->n; k-- > 0;) {
        const rl_mapdigit *x = &f->digit[by[k]];
        rl_dim back = 0; /* how far before the offset the digit reads */
        int64_t least;
        if (x->scale != below) return false;
        d[k] = (rl_mapdigit){x->size, stride[by[k]], x->sign, NULL};
        if (x->tab) {
            d[k].tab = inverse_table(m, x, &least);
            back = -least;
            if (!d[k].tab) return false;
        } else if (x->sign < 0) {
            back = rl_dim_sub(m->ctx, x->size, 1);
            start = rl_dim_add(m->ctx, start, rl_dim_mul(m->ctx, stride[by[k]], back));
        }
        first = rl_dim_add(m->ctx, first, rl_dim_mul(m->ctx, x->scale, back));
        below = rl_dim_mul(m->ctx, below, x->size);
    }
    return below == n && first == f->offset && rl_map_make(m, f->n, d, start, out);
}

bool rl_map_invert(rl_maps *m, const rl_map *f, rl_dim n, rl_map *out) {
    if (f->fill || rl_map_count(m, f) != n) return false;
    if (n == 0) return rl_map_identity(m, 0, out);
    if (invert_digits(m, f, n, out)) return true;
    if (!rl_map_is_known(f) || !rl_map_spend(m, n)) return false;
    int64_t *t = rl_new(m->mem, int64_t, n);
    for (int64_t i = 0; i < n; i++) t[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = rl_map_at(f, i);
        if (at == RL_MAP_FILL || at >= n || t[at] >= 0) return false;
        t[at] = i;
    }
    return rl_map_of_table(m, n, t, out);
}
