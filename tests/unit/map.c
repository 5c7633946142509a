/* map.h: every op and every operation against the elements themselves, over all small sizes; symbols against numbers.
 *
 * A `list` is a tensor written out: its dims, and for each element the place in the input that it came from.  Ops are applied to
 * lists one element at a time, from their definitions; maps must say the same. */
#include "../../src/map.h"

#include <stdlib.h>
#include <string.h>

#include "../../src/text.h"
#include "check.h"

enum { MAXN = 4096, R = 6 };
typedef struct { uint32_t rank; int64_t dim[R]; int64_t n, at[MAXN]; } list;

static int64_t count(const list *x) {
    int64_t n = 1;
    for (uint32_t i = 0; i < x->rank; i++) n *= x->dim[i];
    return n;
}

static void start(list *x, uint32_t rank, const int64_t *dim) {
    x->rank = rank;
    memcpy(x->dim, dim, rank * sizeof *dim);
    x->n = count(x);
    for (int64_t i = 0; i < x->n; i++) x->at[i] = i;
}

static void unravel(const list *x, int64_t i, int64_t *c) {
    for (uint32_t k = x->rank; k-- > 0; i /= x->dim[k]) c[k] = i % x->dim[k];
}

static int64_t ravel(const list *x, const int64_t *c) {
    int64_t i = 0;
    for (uint32_t k = 0; k < x->rank; k++) i = i * x->dim[k] + c[k];
    return i;
}

/* An op on lists: for a place in y, the place in x, or false for fill. */
typedef struct op op;
typedef bool from(const op *o, const list *x, const int64_t *y, int64_t *at);
struct op {
    char name[64];
    uint32_t rank;    /* of y */
    int64_t dim[R], a[R], b[R], step[R], index[64];
    uint32_t axis;
    int64_t n;
    int kind;
};
enum { TRANSPOSE, SLICE, GATHER, TILE, EXPAND, PAD, D2S, CRD, S2D, S2D_CRD, RESHAPE, NKIND };

static bool from_slice(const op *o, const list *x, const int64_t *y, int64_t *at) {
    for (uint32_t i = 0; i < x->rank; i++) at[i] = o->a[i] + o->step[i] * y[i];
    return true;
}

static bool from_transpose(const op *o, const list *x, const int64_t *y, int64_t *at) {
    for (uint32_t i = 0; i < x->rank; i++) at[o->a[i]] = y[i];
    return true;
}

static bool from_gather(const op *o, const list *x, const int64_t *y, int64_t *at) {
    for (uint32_t i = 0; i < x->rank; i++) at[i] = y[i];
    int64_t k = o->index[y[o->axis]];
    at[o->axis] = k < 0 ? k + x->dim[o->axis] : k;
    return true;
}

static bool from_tile(const op *o, const list *x, const int64_t *y, int64_t *at) {
    (void)o;
    for (uint32_t i = 0; i < x->rank; i++) at[i] = x->dim[i] ? y[i] % x->dim[i] : 0;
    return true;
}

static bool from_pad(const op *o, const list *x, const int64_t *y, int64_t *at) {
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t k = y[i] - o->a[i], n = x->dim[i];
        while (k < 0 || k >= n) {
            if (o->n == RL_PAD_CONSTANT) return false;
            if (o->n == RL_PAD_EDGE) k = k < 0 ? 0 : n - 1;
            else if (o->n == RL_PAD_WRAP) k += k < 0 ? n : -n;
            else k = n == 1 ? 0 : k < 0 ? -k : 2 * (n - 1) - k;
        }
        at[i] = k;
    }
    return true;
}

static bool from_depth(const op *o, const list *x, const int64_t *y, int64_t *at) {
    int64_t b = o->n, h = y[2] % b, w = y[3] % b, c = x->dim[1] / (b * b);
    at[0] = y[0];
    at[1] = o->kind == CRD ? (y[1] * b + h) * b + w : (h * b + w) * c + y[1];
    at[2] = y[2] / b;
    at[3] = y[3] / b;
    return true;
}

static bool from_space(const op *o, const list *x, const int64_t *y, int64_t *at) {
    int64_t b = o->n, c = x->dim[1], k = o->kind == S2D_CRD ? y[1] % (b * b) : y[1] / c;
    at[0] = y[0];
    at[1] = o->kind == S2D_CRD ? y[1] / (b * b) : y[1] % c;
    at[2] = y[2] * b + k / b;
    at[3] = y[3] * b + k % b;
    return true;
}

static void apply(const op *o, const list *x, list *y) {
    static from *const row[NKIND] = {[TRANSPOSE] = from_transpose, [SLICE] = from_slice, [GATHER] = from_gather, [TILE] = from_tile,
                                     [EXPAND] = from_tile, [PAD] = from_pad, [D2S] = from_depth, [CRD] = from_depth, [S2D] = from_space, [S2D_CRD] = from_space};
    y->rank = o->rank;
    memcpy(y->dim, o->dim, sizeof y->dim);
    y->n = count(y);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t c[R] = {0}, at[R] = {0};
        unravel(y, i, c);
        if (o->kind == RESHAPE) y->at[i] = x->at[i];
        else y->at[i] = row[o->kind](o, x, c, at) ? x->at[ravel(x, at)] : RL_MAP_FILL;
    }
}

static bool map_of(rl_maps *m, const op *o, const list *x, rl_map *f) {
    int64_t after[R] = {0}, rep[R] = {0};
    for (uint32_t i = 0; i < x->rank; i++) {
        after[i] = o->dim[i] - x->dim[i] - o->a[i];
        rep[i] = o->b[i];
    }
    switch (o->kind) {
    case TRANSPOSE: return rl_map_transpose(m, x->rank, x->dim, o->a, f);
    case SLICE: return rl_map_slice(m, x->rank, x->dim, o->a, o->dim, o->step, f);
    case GATHER: return rl_map_gather(m, x->rank, x->dim, o->axis, o->dim[o->axis], o->index, f);
    case TILE: return rl_map_tile(m, x->rank, x->dim, rep, f);
    case EXPAND: return rl_map_expand(m, x->rank, x->dim, o->rank, o->dim, f);
    case PAD: return rl_map_pad(m, x->rank, x->dim, o->a, after, (rl_pad_mode)o->n, f);
    case D2S: case CRD: return rl_map_depth_to_space(m, x->dim, o->n, o->kind == CRD, f);
    case S2D: case S2D_CRD: return rl_map_space_to_depth(m, x->dim, o->n, o->kind == S2D_CRD, f);
    default: return rl_map_identity(m, x->n, f);
    }
}

/* ---- all small ops on a tensor ---- */

typedef struct { op *p; uint32_t n, cap; } ops;

static op *add(ops *l, int kind, const list *x) {
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        l->p = realloc(l->p, l->cap * sizeof *l->p);
        if (!l->p) abort();
    }
    op *o = &l->p[l->n++];
    *o = (op){.kind = kind, .rank = x->rank};
    memcpy(o->dim, x->dim, sizeof o->dim);
    for (uint32_t i = 0; i < R; i++) o->step[i] = o->b[i] = 1;
    return o;
}

static void add_transposes(ops *l, const list *x) {
    int64_t p[R] = {0, 1, 2, 3, 4, 5};
    for (uint32_t k = 0; x->rank > 1 && k < x->rank - 1; k++)
        for (uint32_t j = k + 1; j < x->rank; j++) {
            op *o = add(l, TRANSPOSE, x);
            memcpy(o->a, p, sizeof p);
            o->a[k] = j, o->a[j] = k; /* a swap */
            for (uint32_t i = 0; i < x->rank; i++) o->dim[i] = x->dim[o->a[i]];
            o = add(l, TRANSPOSE, x);
            for (uint32_t i = 0; i < x->rank; i++) o->a[i] = (i + k + 1) % x->rank, o->dim[i] = x->dim[o->a[i]];
        }
}

static void add_slices(ops *l, const list *x, bool many) {
    for (uint32_t k = 0; k < x->rank; k++)
        for (int64_t a = 0; a < x->dim[k]; a++)
            for (int64_t step = -2; step <= 2; step++) {
                int64_t most = step == 0 ? 0 : step > 0 ? (x->dim[k] - a + step - 1) / step : a / -step + 1;
                for (int64_t n = many ? 0 : most; step && n <= most; n++) {
                    op *o = add(l, SLICE, x);
                    o->a[k] = a, o->step[k] = step, o->dim[k] = n;
                }
            }
}

static void add_gathers(ops *l, const list *x) {
    for (uint32_t k = 0; k < x->rank; k++) {
        int64_t d = x->dim[k];
        if (d == 0) continue;
        for (int64_t kind = 0; kind < 4; kind++) {
            op *o = add(l, GATHER, x);
            o->axis = k;
            o->dim[k] = kind == 3 ? d + 1 : d;
            for (int64_t i = 0; i < o->dim[k]; i++)
                o->index[i] = kind == 0 ? d - 1 - i : kind == 1 ? (i + 1) % d : kind == 2 ? (i * 7 + i / 2) % d - d : i / 2 % d;
        }
    }
}

static void add_pads(ops *l, const list *x) {
    for (uint32_t k = 0; k < x->rank; k++)
        for (int64_t how = 0; how < 4 && x->dim[k] > 0; how++)
            for (int64_t a = -1; a <= 2; a++)
                for (int64_t b = -1; b <= 2; b++) {
                    if (x->dim[k] + a + b < 0 || (how == RL_PAD_REFLECT && x->dim[k] == 1)) continue;
                    op *o = add(l, PAD, x);
                    o->n = how, o->a[k] = a, o->dim[k] += a + b;
                }
}

static void add_repeats(ops *l, const list *x) {
    for (uint32_t k = 0; k < x->rank; k++) {
        op *o = add(l, TILE, x);
        o->b[k] = 2, o->dim[k] *= 2;
        if (x->dim[k] != 1) continue;
        o = add(l, EXPAND, x);
        o->dim[k] = 3;
    }
}

static void add_reshapes(ops *l, const list *x) {
    op *o = add(l, RESHAPE, x);
    o->rank = 1, o->dim[0] = x->n;
    for (int64_t d = 2; d <= 4; d++) {
        if (x->n % d || x->n == 0) continue;
        o = add(l, RESHAPE, x);
        o->rank = 2, o->dim[0] = d, o->dim[1] = x->n / d;
        o = add(l, RESHAPE, x);
        o->rank = 3, o->dim[0] = x->n / d, o->dim[1] = 1, o->dim[2] = d;
    }
}

static void add_blocks(ops *l, const list *x) {
    if (x->rank != 4) return;
    for (int kind = D2S; kind <= S2D_CRD; kind++) {
        bool to_depth = kind == S2D || kind == S2D_CRD;
        if (to_depth ? x->dim[2] % 2 || x->dim[3] % 2 : x->dim[1] % 4) continue;
        op *o = add(l, kind, x);
        o->n = 2;
        int64_t up = to_depth ? 1 : 2, down = to_depth ? 2 : 1;
        o->dim[1] = x->dim[1] * down * down / (up * up);
        o->dim[2] = x->dim[2] * up / down;
        o->dim[3] = x->dim[3] * up / down;
    }
}

static void all_ops(ops *l, const list *x, bool many) {
    l->n = 0;
    add_transposes(l, x);
    add_slices(l, x, many);
    add_gathers(l, x);
    add_repeats(l, x);
    add_reshapes(l, x);
    add_blocks(l, x);
    if (many) add_pads(l, x);
}

static const struct { uint32_t rank; int64_t dim[R]; } shapes[] = {
    {0, {0}}, {1, {1}}, {1, {2}}, {1, {5}}, {1, {6}}, {2, {2, 3}}, {2, {4, 2}}, {2, {1, 4}}, {2, {3, 4}}, {3, {2, 3, 2}}, {3, {2, 2, 3}},
    {3, {4, 1, 3}}, {4, {1, 4, 2, 2}}, {4, {2, 4, 1, 2}}, {5, {2, 1, 2, 3, 2}}, {2, {0, 3}}, {3, {2, 0, 2}},
};

static bool says(const rl_map *f, const list *y) {
    int64_t *all = calloc((size_t)y->n + 1, sizeof *all);
    bool same = all != NULL;
    if (all) rl_map_list(f, all);
    for (int64_t i = 0; i < y->n && same; i++) same = rl_map_at(f, i) == y->at[i] && all[i] == y->at[i];
    free(all);
    return same;
}

static const char *show(rl_ctx *ctx, rl_arena *mem, const rl_map *f) {
    rl_text t = {.mem = mem};
    rl_put(&t, "%s", "");
    rl_map_print(&t, ctx, f);
    return t.p;
}

/* The map of the elements themselves, which knows nothing of how they came about, is the same digits; with fill among the elements,
 * is found equal. */
static bool is_canonical(rl_maps *m, const rl_map *f, const list *y) {
    rl_map g;
    bool fill = false;
    for (int64_t i = 0; i < y->n; i++) fill |= y->at[i] == RL_MAP_FILL;
    if (!rl_map_of_table(m, y->n, y->at, &g) || !rl_map_equal(m, f, &g)) return false;
    return fill || strcmp(show(m->ctx, m->mem, f), show(m->ctx, m->mem, &g)) == 0;
}

#define MAPS(name)                                                                                                   \
    CHECK_CTX(ctx)                                                                                                   \
    rl_arena mem;                                                                                                    \
    rl_arena_init(&mem, ctx);                                                                                        \
    rl_maps name##_ = {ctx, &mem, 1 << 20, INT64_MAX}, *name = &name##_;
#define END_MAPS                                                                                                     \
    rl_arena_free(&mem);                                                                                             \
    rl_ctx_free(ctx);

TEST(every_op) {
    MAPS(m)
    static list x, y;
    ops l = {0};
    uint32_t n = 0;
    for (size_t s = 0; s < RL_LEN(shapes); s++) {
        start(&x, shapes[s].rank, shapes[s].dim);
        all_ops(&l, &x, true);
        for (uint32_t i = 0; i < l.n; i++, n++) {
            rl_map f;
            apply(&l.p[i], &x, &y);
            CHECK(map_of(m, &l.p[i], &x, &f));
            CHECK(rl_map_count(m, &f) == y.n && says(&f, &y) && is_canonical(m, &f, &y));
        }
        rl_arena_free(&mem);
    }
    CHECK(n > 1500);
    free(l.p);
    END_MAPS
}

static void check_inverse(rl_maps *m, const rl_map *f, const list *y, int64_t n) {
    rl_map back, id;
    bool once = y->n == n;
    for (int64_t i = 0; i < y->n && once; i++)
        for (int64_t k = i; k-- > 0 && once;) once = y->at[i] != y->at[k] && y->at[i] != RL_MAP_FILL && y->at[k] != RL_MAP_FILL;
    if (y->n == 1 && y->at[0] == RL_MAP_FILL) once = false;
    CHECK(rl_map_invert(m, f, n, &back) == once);
    if (!once) return;
    for (int64_t i = 0; i < n; i++) CHECK(rl_map_at(&back, y->at[i]) == i);
    CHECK(rl_map_compose(m, f, &back, &id) && (n == 0 || rl_map_is_identity(&id, n)));
}

TEST(every_pair) {
    MAPS(m)
    static list x, y, z;
    ops first = {0}, second = {0};
    uint32_t n = 0;
    for (size_t s = 0; s < RL_LEN(shapes); s++) {
        start(&x, shapes[s].rank, shapes[s].dim);
        all_ops(&first, &x, x.n < 8);
        for (uint32_t i = 0; i < first.n; i++) {
            rl_map g, f, fg;
            apply(&first.p[i], &x, &y);
            all_ops(&second, &y, y.n < 8);
            for (uint32_t k = 0; k < second.n; k++, n++) {
                apply(&second.p[k], &y, &z);
                CHECK(map_of(m, &first.p[i], &x, &g) && map_of(m, &second.p[k], &y, &f) && rl_map_compose(m, &f, &g, &fg));
                CHECK(rl_map_count(m, &fg) == z.n && says(&fg, &z) && is_canonical(m, &fg, &z));
                if (z.n <= 12) check_inverse(m, &fg, &z, x.n);
            }
            rl_arena_free(&mem);
        }
    }
    CHECK(n > 20000);
    free(first.p);
    free(second.p);
    END_MAPS
}

/* One dim of the output kept in part: with the output seen as [outer, size, inner], the `count` of size from `start` on. */
static bool keep_part(rl_maps *m, const rl_map *f, rl_dim size, rl_dim inner, rl_dim start, rl_dim count, rl_map *out) {
    rl_dim outer, row = rl_dim_mul(m->ctx, size, inner);
    rl_map box;
    if (row == 0 || !rl_dim_div(m->ctx, rl_map_count(m, f), row, &outer)) return false;
    rl_mapdigit d[] = {{outer, row, 1, NULL}, {count, inner, 1, NULL}, {inner, 1, 1, NULL}};
    return rl_map_make(m, 3, d, rl_dim_mul(m->ctx, start, inner), &box) && rl_map_compose(m, &box, f, out);
}

/* Slices of x, joined again in any order, along any dim; equal iff the elements are. */
TEST(every_concat) {
    MAPS(m)
    static list x, y;
    for (size_t s = 0; s < RL_LEN(shapes); s++) {
        start(&x, shapes[s].rank, shapes[s].dim);
        for (uint32_t axis = 0; axis < x.rank; axis++)
            for (int64_t a = 0; a <= x.dim[axis]; a++)
                for (int64_t b = 0; b <= x.dim[axis]; b++) {
                    int64_t inner = 1, d = x.dim[axis], size[2] = {d - a, b};
                    rl_map id, part[2], all, same;
                    for (uint32_t i = axis + 1; i < x.rank; i++) inner *= x.dim[i];
                    if (x.n == 0) continue;
                    CHECK(rl_map_identity(m, x.n, &id));
                    CHECK(keep_part(m, &id, d, inner, a, d - a, &part[0]) && keep_part(m, &id, d, inner, 0, b, &part[1]));
                    if (a == d || b == 0) continue;
                    op o = {.kind = GATHER, .rank = x.rank, .axis = axis};
                    memcpy(o.dim, x.dim, sizeof o.dim);
                    o.dim[axis] = d - a + b;
                    for (int64_t i = 0; i < o.dim[axis]; i++) o.index[i] = i < d - a ? a + i : i - (d - a);
                    apply(&o, &x, &y);
                    CHECK(rl_map_concat(m, 2, part, size, inner, &all) && says(&all, &y) && is_canonical(m, &all, &y));
                    CHECK(map_of(m, &o, &x, &same) && rl_map_equal(m, &same, &all));
                    CHECK(rl_map_is_identity(&all, x.n) == (a == b && a == 0));
                }
        rl_arena_free(&mem);
    }
    END_MAPS
}

/* Two inputs, the second behind the first. */
TEST(two_inputs) {
    MAPS(m)
    rl_map f[2], all;
    int64_t size[] = {3, 1};
    CHECK(rl_map_identity(m, 6, &f[0]) && rl_map_identity(m, 2, &f[1])); /* [2,3] and [2,1] */
    f[1].offset = 6;
    CHECK(rl_map_concat(m, 2, f, size, 1, &all));
    CHECK_STR(show(ctx, &mem, &all), "8:{0,1,2,6,3,4,5,7}");
    int64_t rows[] = {2, 1};
    CHECK(rl_map_identity(m, 6, &f[0]) && rl_map_identity(m, 3, &f[1])); /* [2,3] and [1,3] */
    f[1].offset = 6;
    CHECK(rl_map_concat(m, 2, f, rows, 3, &all) && rl_map_is_identity(&all, 9) && !rl_map_is_identity(&all, 10));
    END_MAPS
}

static rl_dim dim_of(rl_ctx *ctx, const char *s) {
    rl_dim d = 0;
    CHECK(rl_dim_parse(ctx, &s, &d));
    return d;
}

TEST(symbols) {
    MAPS(m)
    rl_dim n = dim_of(ctx, "N"), h = dim_of(ctx, "H"), w = dim_of(ctx, "W");
    rl_dim x[] = {n, 6, h, w}, split[] = {n, 2, 3, h, w}, y[] = {n, 3, 2, h, w};
    rl_map f, g, fg, back, t;
    CHECK(rl_map_transpose(m, 5, split, (int64_t[]){0, 2, 1, 3, 4}, &f));
    CHECK(rl_map_gather(m, 4, x, 1, 6, (int64_t[]){0, 3, 1, 4, 2, 5}, &g) && rl_map_equal(m, &f, &g)); /* channel shuffle */
    CHECK(rl_map_transpose(m, 5, y, (int64_t[]){0, 2, 1, 3, 4}, &g) && rl_map_compose(m, &g, &f, &fg) && rl_map_is_identity(&fg, rl_map_count(m, &fg)));
    CHECK(rl_map_invert(m, &f, rl_map_count(m, &f), &back) && rl_map_equal(m, &back, &g));
    CHECK(rl_map_slice(m, 4, x, (rl_dim[]){0, 0, 0, rl_dim_sub(ctx, w, 1)}, x, (int64_t[]){1, 1, 1, -1}, &f)); /* a flip */
    CHECK_STR(show(ctx, &mem, &f), "W-1 + 6*H*N:W W:-1");
    CHECK(rl_map_compose(m, &f, &f, &fg) && rl_map_is_identity(&fg, rl_map_count(m, &fg)));
    CHECK(rl_map_slice(m, 4, x, (rl_dim[]){0, 2, 0, 0}, (rl_dim[]){n, 3, h, w}, (int64_t[]){1, 1, 1, 1}, &f));
    CHECK_STR(show(ctx, &mem, &f), "2*H*W + N:6*H*W 3*H*W:1");
    CHECK(rl_map_slice(m, 4, (rl_dim[]){n, 3, h, w}, (rl_dim[]){0, 1, 0, 0}, (rl_dim[]){n, 1, h, w}, (int64_t[]){1, 1, 1, 1}, &g));
    CHECK(rl_map_compose(m, &g, &f, &fg));
    CHECK_STR(show(ctx, &mem, &fg), "3*H*W + N:6*H*W H*W:1");
    CHECK(rl_map_transpose(m, 4, x, (int64_t[]){0, 2, 3, 1}, &f) && rl_map_transpose(m, 4, (rl_dim[]){n, h, w, 6}, (int64_t[]){0, 3, 1, 2}, &t));
    CHECK(rl_map_compose(m, &t, &f, &fg) && rl_map_is_identity(&fg, rl_map_count(m, &fg)));
    CHECK(rl_map_depth_to_space(m, (rl_dim[]){n, 8, h, w}, 2, true, &f) && rl_map_invert(m, &f, rl_map_count(m, &f), &back));
    CHECK(rl_map_compose(m, &back, &f, &fg) && rl_map_is_identity(&fg, rl_map_count(m, &fg)));
    END_MAPS
}

/* A roll of rows with the batch and the row's elements left alone: nothing is listed but the rows. */
TEST(parts) {
    MAPS(m)
    rl_dim n = dim_of(ctx, "N"), w = dim_of(ctx, "W");
    rl_map id, part[2], roll, f, fg;
    rl_dim size[] = {4, 3};
    CHECK(rl_map_identity(m, rl_dim_mul(ctx, rl_dim_mul(ctx, n, 7), w), &id));
    CHECK(keep_part(m, &id, 7, w, 3, 4, &part[0]) && keep_part(m, &id, 7, w, 0, 3, &part[1]));
    CHECK(rl_map_concat(m, 2, part, size, w, &roll));
    CHECK_STR(show(ctx, &mem, &roll), "3*W + N:7*W 7:W{0,1,2,3,-3,-2,-1} W:1");
    CHECK(keep_part(m, &roll, 7, w, 4, 3, &part[0]) && keep_part(m, &roll, 7, w, 0, 4, &part[1]));
    CHECK(rl_map_concat(m, 2, part, (rl_dim[]){3, 4}, w, &f) && rl_map_is_identity(&f, rl_map_count(m, &id))); /* rolled back */
    m->work = 100;
    CHECK(rl_map_identity(m, 7 * 100000, &id));
    CHECK(keep_part(m, &id, 7, 100000, 3, 4, &part[0]) && keep_part(m, &id, 7, 100000, 0, 3, &part[1]));
    CHECK(rl_map_concat(m, 2, part, size, 100000, &roll) && rl_map_compose(m, &roll, &roll, &fg));
    CHECK_STR(show(ctx, &mem, &fg), "600000 + 7:100000{0,-6,-5,-4,-3,-2,-1} 100000:1");
    END_MAPS
}

int main(void) {
    RUN(every_op);
    RUN(every_pair);
    RUN(every_concat);
    RUN(two_inputs);
    RUN(symbols);
    RUN(parts);
    return check_done();
}
