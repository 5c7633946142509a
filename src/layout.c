/* Layouts made canonical, compared, printed and read: see layout.h.
 *
 * Text wants every axis, also those of one element, which have no digit: `expand` puts such an axis back as a digit of size 1
 * at the first place that leaves the letters most in order, so that nhwc looks like nhwc whichever dims are 1. */
#include "layout.h"

#include <string.h>

#include "tag.h"

typedef struct { uint8_t axis, sub; rl_dim size; } digit;
typedef struct { uint32_t n; digit d[RL_MAXDIGIT]; } digits;

/* Drops digit i of n; later pieces of its axis move up. */
static uint32_t drop(digit *d, uint32_t n, uint32_t i) {
    digit gone = d[i];
    n--;
    memmove(&d[i], &d[i + 1], (n - i) * sizeof *d);
    for (uint32_t k = 0; k < n; k++)
        if (d[k].axis == gone.axis && d[k].sub > gone.sub) d[k].sub--;
    return n;
}

static uint32_t canonical(rl_ctx *ctx, digit *d, uint32_t n) {
    for (uint32_t i = 0; i < n;)
        if (d[i].size == 1) n = drop(d, n, i);
        else i++;
    for (uint32_t i = 0; i + 1 < n;) {
        if (d[i].axis == d[i + 1].axis && d[i].sub + 1 == d[i + 1].sub) {
            d[i].size = rl_dim_mul(ctx, d[i].size, d[i + 1].size);
            n = drop(d, n, i + 1);
        } else {
            i++;
        }
    }
    return n;
}

static bool row_major(const digit *d, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        if (d[i].axis <= d[i - 1].axis) return false; /* joined where they could be, so each axis once */
    return true;
}

static const rl_layout *store(rl_arena *mem, digit *d, uint32_t n) {
    n = canonical(mem->ctx, d, n);
    if (row_major(d, n)) return NULL;
    uint8_t *axis = rl_new(mem, uint8_t, n), *sub = rl_new(mem, uint8_t, n);
    rl_dim *size = rl_new(mem, rl_dim, n);
    for (uint32_t i = 0; i < n; i++) {
        axis[i] = d[i].axis;
        sub[i] = d[i].sub;
        size[i] = d[i].size;
    }
    rl_layout *l = rl_new(mem, rl_layout, 1);
    *l = (rl_layout){n, axis, sub, size};
    return l;
}

const rl_layout *rl_layout_make(rl_arena *mem, uint32_t n, const uint8_t *axis, const uint8_t *sub, const rl_dim *size) {
    digit *d = rl_new(mem, digit, n);
    for (uint32_t i = 0; i < n; i++) d[i] = (digit){axis[i], sub[i], size[i]};
    return store(mem, d, n);
}

bool rl_layout_equal(const rl_layout *a, const rl_layout *b) {
    if (a == b) return true;
    if (!a || !b || a->n != b->n) return false;
    return rl_same_bytes(a->axis, b->axis, a->n) && rl_same_bytes(a->sub, b->sub, a->n) &&
           rl_same_bytes(a->size, b->size, a->n * sizeof *a->size);
}

/* ---- printing ---- */

static bool has_axis(const digits *x, uint32_t axis) {
    for (uint32_t i = 0; i < x->n; i++)
        if (x->d[i].axis == axis) return true;
    return false;
}

/* What one more letter at place `at` adds to the number of letters that are followed by a smaller one. */
static int descents(const digits *x, uint32_t at, uint32_t axis) {
    bool left = at > 0, right = at < x->n;
    int now = left && right && x->d[at - 1].axis > x->d[at].axis;
    return (left && x->d[at - 1].axis > axis) + (right && axis > x->d[at].axis) - now;
}

static uint32_t place_for(const digits *x, uint32_t axis) {
    uint32_t best = 0;
    for (uint32_t at = 1; at <= x->n; at++)
        if (descents(x, at, axis) < descents(x, best, axis)) best = at;
    return best;
}

/* The digits with those of axes of one element; false when they are too many for letters. */
static bool expand(const rl_layout *l, uint32_t rank, digits *x) {
    uint32_t n = l ? l->n : 0;
    if (n > RL_MAXDIGIT || rank > RL_MAXDIGIT) return false;
    x->n = n;
    for (uint32_t i = 0; i < n; i++) x->d[i] = (digit){l->axis[i], l->sub[i], l->size[i]};
    for (uint32_t a = 0; a < rank; a++) {
        if (has_axis(x, a)) continue;
        if (x->n == RL_MAXDIGIT) return false;
        uint32_t at = place_for(x, a);
        memmove(&x->d[at + 1], &x->d[at], (x->n - at) * sizeof x->d[0]);
        x->d[at] = (digit){(uint8_t)a, 0, 1};
        x->n++;
    }
    return true;
}

bool rl_layout_is_perm(const rl_layout *l, uint32_t rank, uint32_t *perm) {
    digits x;
    if (!l) {
        for (uint32_t i = 0; i < rank; i++) perm[i] = i;
        return true;
    }
    if (!expand(l, rank, &x) || x.n != rank) return false;
    for (uint32_t i = 0; i < rank; i++) perm[i] = x.d[i].axis;
    return true;
}

/* Whether the digits are each axis's outermost, then blocks of known size, the pieces of each axis in their order. */
static bool is_blocked(const digits *x, uint32_t rank) {
    uint8_t next[RL_MAXDIGIT] = {0};
    if (rank > 26 || x->n < rank) return false;
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->d[i].sub != next[x->d[i].axis]++) return false;
        if (i < rank ? x->d[i].sub != 0 : !rl_dim_known(x->d[i].size)) return false;
    }
    return true;
}

static void print_blocked(rl_text *t, const digits *x, uint32_t rank) {
    for (uint32_t i = 0; i < rank; i++) {
        bool split = false;
        for (uint32_t k = rank; k < x->n; k++) split = split || x->d[k].axis == x->d[i].axis;
        rl_put(t, "%c", (split ? 'A' : 'a') + x->d[i].axis);
    }
    for (uint32_t i = rank; i < x->n; i++) rl_put(t, "%lld%c", (long long)x->d[i].size, 'a' + x->d[i].axis);
}

static char letter(uint32_t i) {
    return (char)(i < 26 ? 'a' + (int)i : 'A' + (int)i - 26);
}

/* Where piece `sub` of the axis stands in memory. */
static uint32_t find_digit(const digits *x, uint32_t axis, uint32_t sub) {
    for (uint32_t i = 0; i < x->n; i++)
        if (x->d[i].axis == axis && x->d[i].sub == sub) return i;
    return RL_NONE;
}

/* The size of the outermost piece can be left out where dividing finds it again. */
static bool derivable(rl_ctx *ctx, const digits *x, uint32_t axis, rl_dim dim) {
    rl_dim rest = 1, q;
    for (uint32_t s = 1, i; (i = find_digit(x, axis, s)) != RL_NONE; s++) rest = rl_dim_mul(ctx, rest, x->d[i].size);
    return rl_dim_div(ctx, dim, rest, &q) && q == x->d[find_digit(x, axis, 0)].size;
}

static void print_general(rl_text *t, const digits *x, uint32_t rank, const rl_dim *dim) {
    char name[RL_MAXDIGIT] = "";
    rl_ctx *ctx = t->mem->ctx;
    uint32_t k = 0;
    rl_put(t, "\"");
    for (uint32_t a = 0; a < rank; a++) {
        bool split = find_digit(x, a, 1) != RL_NONE;
        if (split) rl_put(t, "(");
        for (uint32_t s = 0, i; (i = find_digit(x, a, s)) != RL_NONE; s++) rl_put(t, "%c", name[i] = letter(k++));
        if (split) rl_put(t, ")");
    }
    rl_put(t, "->");
    rl_put_bytes(t, name, x->n);
    for (uint32_t a = 0; a < rank; a++) {
        if (find_digit(x, a, 1) == RL_NONE) continue;
        for (uint32_t s = derivable(ctx, x, a, dim[a]), i; (i = find_digit(x, a, s)) != RL_NONE; s++) {
            rl_put(t, " %c=", name[i]);
            rl_dim_print(t, ctx, x->d[i].size);
        }
    }
    rl_put(t, "\"");
}

void rl_layout_print(rl_text *t, const rl_layout *l, uint32_t rank, const rl_dim *dim) {
    digits x;
    if (!l) return;
    if (!expand(l, rank, &x)) rl_put(t, "?");
    else if (is_blocked(&x, rank)) print_blocked(t, &x, rank);
    else print_general(t, &x, rank, dim);
}

/* ---- reading ---- */

typedef struct {
    rl_ctx *ctx;
    const char *s, *why;
    uint32_t rank;
    const rl_dim *dim;
    digits x;
    bool sized[RL_MAXDIGIT];
} reader;

static bool fail(reader *r, const char *why) {
    r->why = why;
    return false;
}

static bool add_digit(reader *r, uint32_t axis, uint32_t sub, rl_dim size, bool sized) {
    if (r->x.n == RL_MAXDIGIT) return fail(r, "a layout has at most 52 digits");
    r->sized[r->x.n] = sized;
    r->x.d[r->x.n++] = (digit){(uint8_t)axis, (uint8_t)sub, size};
    return true;
}

/* The one digit of each axis whose size is not given gets what the others leave of the dim. */
static bool derive_sizes(reader *r) {
    for (uint32_t a = 0; a < r->rank; a++) {
        rl_dim rest = 1;
        uint32_t open = RL_NONE;
        for (uint32_t i = 0; i < r->x.n; i++) {
            if (r->x.d[i].axis != a) continue;
            if (r->sized[i]) rest = rl_dim_mul(r->ctx, rest, r->x.d[i].size);
            else if (open != RL_NONE) return fail(r, "the sizes of two pieces of an axis are missing");
            else open = i;
        }
        if (open == RL_NONE ? rest != r->dim[a] : !rl_dim_div(r->ctx, r->dim[a], rest, &r->x.d[open].size))
            return fail(r, "the pieces of an axis do not multiply to its dim");
    }
    return true;
}

/* acdb, aBcd16b, nhwc, nChw16c */
static bool read_blocked(reader *r) {
    rl_tag t;
    uint32_t pieces[RL_TAG_MAX] = {0};
    if (!rl_tag_parse(&r->s, r->rank, &t, &r->why)) return false;
    for (uint32_t i = 0; i < t.n; i++)
        if (!add_digit(r, t.axis[i], pieces[t.axis[i]]++, t.block[i], t.block[i] != 0)) return false;
    return true;
}

/* The left side, ab(cd): the digits in logical order; name[i] is digit i's letter. */
static bool read_groups(reader *r, char *name) {
    uint32_t axis = 0;
    for (; *r->s && *r->s != '-'; axis++) {
        bool group = *r->s == '(';
        uint32_t sub = 0;
        if (group) r->s++;
        do {
            if (!rl_is_letter(*r->s)) return fail(r, "a letter is wanted here");
            if (memchr(name, *r->s, r->x.n)) return fail(r, "a letter stands twice");
            if (r->x.n < RL_MAXDIGIT) name[r->x.n] = *r->s;
            if (!add_digit(r, axis, sub++, 0, false)) return false;
            r->s++;
        } while (group && *r->s != ')');
        if (group) r->s++;
    }
    return axis == r->rank || fail(r, "a layout has one letter or bracket for each dim");
}

/* The right side, cabd: place[i] is the digit that is i-th in memory. */
static bool read_places(reader *r, const char *name, uint32_t *place) {
    uint64_t seen = 0;
    for (uint32_t i = 0; i < r->x.n; i++, r->s++) {
        const char *at = rl_is_letter(*r->s) ? memchr(name, *r->s, r->x.n) : NULL;
        if (!at) return fail(r, "both sides of a layout have the same letters");
        place[i] = (uint32_t)(at - name);
        if (seen >> place[i] & 1) return fail(r, "a letter stands twice");
        seen |= (uint64_t)1 << place[i];
    }
    return !rl_is_letter(*r->s) || fail(r, "both sides of a layout have the same letters");
}

static bool read_sizes(reader *r, const char *name) {
    for (;;) {
        while (*r->s == ' ') r->s++;
        if (*r->s == '"') break;
        const char *at = rl_is_letter(*r->s) ? memchr(name, *r->s, r->x.n) : NULL;
        if (!at || r->s[1] != '=') return fail(r, "letter=size is wanted here");
        r->s += 2;
        if (!rl_dim_parse(r->ctx, &r->s, &r->x.d[at - name].size)) return fail(r, "this is no size");
        r->sized[at - name] = true;
    }
    r->s++;
    return true;
}

/* "ab(cd)->cabd d=2" */
static bool read_general(reader *r) {
    char name[RL_MAXDIGIT];
    uint32_t place[RL_MAXDIGIT] = {0};
    digits x;
    r->s++;
    if (!read_groups(r, name)) return false;
    if (r->s[0] != '-' || r->s[1] != '>') return fail(r, "-> is wanted here");
    r->s += 2;
    if (!read_places(r, name, place) || !read_sizes(r, name) || !derive_sizes(r)) return false;
    x = r->x;
    for (uint32_t i = 0; i < x.n; i++) r->x.d[i] = x.d[place[i]];
    return true;
}

bool rl_layout_parse(rl_arena *mem, const char **s, uint32_t rank, const rl_dim *dim, const rl_layout **out, const char **why) {
    reader r = {.ctx = mem->ctx, .s = *s, .rank = rank, .dim = dim};
    bool ok = rank == RL_NORANK ? fail(&r, "a layout needs a known rank")
              : *r.s == '"'     ? read_general(&r)
                                : read_blocked(&r) && derive_sizes(&r);
    *s = r.s;
    *why = r.why;
    if (ok) *out = store(mem, r.x.d, r.x.n);
    return ok;
}

bool rl_layout_parse_perm(rl_arena *mem, const char *s, uint32_t rank, uint32_t *perm, const char **why) {
    const rl_layout *l = NULL;
    rl_dim *dim = rl_new(mem, rl_dim, rank + 1); /* none of one element: nothing is left out */
    for (uint32_t i = 0; i < rank; i++) dim[i] = 65537; /* a prime: nothing can be split */
    if (!rl_layout_parse(mem, &s, rank, dim, &l, why)) return false;
    *why = "whole axes are wanted, once each";
    return !*s && rl_layout_is_perm(l, rank, perm);
}
