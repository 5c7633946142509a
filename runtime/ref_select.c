/* Ops that choose among their input's elements: Trilu, ReverseSequence, Compress, NonZero, NonMaxSuppression; BitCast. */
#include <math.h>
#include <string.h>

#include "element.h"
#include "kernels.h"

rl_status rl_ref_trilu(rl_call *c) {
    int64_t k;
    RL_TRY(rl_call_need(c, 1));
    RL_TRY(rl_call_int(c, 1, 0, &k));
    const rl_tensor *x = rl_call_in(c, 0);
    bool upper = rl_attr_int(c->node, "upper", 1) != 0;
    if (x->rank < 2) return rl_call_fail(c, RL_EMODEL, "rank %u, wants 2 or more", x->rank);
    int64_t m = x->dim[x->rank - 2], n = x->dim[x->rank - 1];
    k = RL_MIN(RL_MAX(k, -m), n);
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    rl_tensor_move(c->rt, y, x);
    if (!rl_numel(y)) return RL_OK;
    size_t size = rl_elem_bits(y->dtype) / 8;
    for (int64_t row = 0; row < rl_numel(y) / n; row++) {
        int64_t first = RL_MIN(RL_MAX(row % m + k + !upper, 0), n); /* of those on the other side */
        char *p = (char *)rl_data(y) + (size_t)(row * n) * size;
        if (upper) memset(p, 0, (size_t)first * size);
        else memset(p + (size_t)first * size, 0, (size_t)(n - first) * size);
    }
    return RL_OK;
}

rl_status rl_ref_reverse_sequence(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    const rl_tensor *x = rl_call_in(c, 0), *len = rl_call_as(c, 1, RL_I64);
    uint32_t batch, time;
    RL_TRY(rl_call_attr_axis(c, "batch_axis", 1, &batch));
    RL_TRY(rl_call_attr_axis(c, "time_axis", 0, &time));
    if (batch == time || rl_numel(len) != x->dim[batch]) return rl_call_fail(c, RL_EMODEL, "axes or lengths do not match the input");
    rl_tensor *y = rl_call_make(c, 0, x->dtype, x->rank, x->dim);
    rl_tensor_move(c->rt, y, x);
    for (int64_t b = 0; b < x->dim[batch]; b++) {
        int64_t n = ((const int64_t *)rl_data(len))[b];
        if (n < 0 || n > x->dim[time]) return rl_call_fail(c, RL_EMODEL, "length %lld is out of range", (long long)n);
        if (n == 0) continue;
        rl_tensor from = rl_view_slice(x, batch, b, 1, 1), to = rl_view_slice(y, batch, b, 1, 1);
        from = rl_view_slice(&from, time, n - 1, -1, n);
        to = rl_view_slice(&to, time, 0, 1, n);
        rl_tensor_move(c->rt, &to, &from);
    }
    return RL_OK;
}

rl_status rl_ref_compress(rl_call *c) {
    RL_TRY(rl_call_need(c, 2));
    rl_tensor x = *rl_call_in(c, 0);
    const rl_tensor *keep = rl_call_as(c, 1, RL_BOOL);
    uint32_t axis = 0;
    if (rl_attr_find(c->node, "axis")) {
        RL_TRY(rl_call_attr_axis(c, "axis", 0, &axis));
    } else {
        int64_t n = rl_numel(&x);
        rl_view_reshape(rl_call_dense(c, 0), 1, &n, &x);
    }
    int64_t dim[RL_RANK], n = 0, at = 0, given = rl_numel(keep);
    if (given > x.dim[axis]) return rl_call_fail(c, RL_EMODEL, "%lld conditions for %lld places", (long long)given, (long long)x.dim[axis]);
    for (int64_t i = 0; i < given; i++) n += rl_is_true(keep, i);
    memcpy(dim, x.dim, sizeof dim);
    dim[axis] = n;
    rl_tensor *y = rl_call_make(c, 0, x.dtype, x.rank, dim);
    for (int64_t i = 0; i < given; i++) {
        if (!rl_is_true(keep, i)) continue;
        rl_tensor to = rl_view_slice(y, axis, at++, 1, 1), from = rl_view_slice(&x, axis, i, 1, 1);
        if (x.rank == 1) rl_put_element(y, to.offset, &x, from.offset);
        else rl_tensor_move(c->rt, &to, &from);
    }
    return RL_OK;
}

rl_status rl_ref_bit_cast(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    rl_tensor x = *rl_call_in(c, 0);
    rl_dtype to = rl_attr_dtype(c->node, "to", RL_UNDEF);
    if (!rl_dtype_bits(to) || rl_dtype_bits(to) != rl_dtype_bits(x.dtype))
        return rl_call_fail(c, RL_EMODEL, "no bit cast from %s to %s", rl_dtype_name(x.dtype), rl_dtype_name(to));
    x.dtype = to;
    rl_call_share(c, 0, x);
    return RL_OK;
}

/* A scalar has no index: its output is [0,n]. */
rl_status rl_ref_non_zero(rl_call *c) {
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_as(c, 0, RL_BOOL);
    int64_t all = rl_numel(x), n = 0, k = 0, at[RL_RANK] = {0};
    for (int64_t i = 0; i < all; i++) n += rl_is_true(x, i);
    int64_t *y = rl_data(rl_call_make(c, 0, RL_I64, 2, (const int64_t[]){x->rank, n}));
    for (int64_t i = 0; i < all; i++) {
        if (rl_is_true(x, i)) {
            for (uint32_t d = 0; d < x->rank; d++) y[d * n + k] = at[d];
            k++;
        }
        rl_next_index(x->rank, x->dim, at);
    }
    return RL_OK;
}

/* ---- NonMaxSuppression ---- */

enum { FEW_BOXES = 64, MOST_STRIPS = 1 << 16 };
typedef struct { float y0, x0, y1, x1; } box;

static box box_of(const float *p, bool centered) {
    if (centered) return (box){p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
    return (box){RL_MIN(p[0], p[2]), RL_MIN(p[1], p[3]), RL_MAX(p[0], p[2]), RL_MAX(p[1], p[3])};
}

static float area(box b) {
    return (b.x1 - b.x0) * (b.y1 - b.y0);
}

static bool overlap(const box *a, const box *b, float most) {
    box both = {RL_MAX(a->y0, b->y0), RL_MAX(a->x0, b->x0), RL_MIN(a->y1, b->y1), RL_MIN(a->x1, b->x1)};
    if (both.x1 <= both.x0 || both.y1 <= both.y0) return false;
    float in = area(both), any = area(*a) + area(*b) - in;
    return in > 0 && area(*a) > 0 && area(*b) > 0 && any > 0 && in / any > most;
}

/* The chosen boxes by the strips of x that they lie in: two boxes overlap only if they share a strip.  A strip is at least as wide as
 * the boxes are on average, so they have at most three entries each, on average. */
typedef struct { box b; uint32_t next; } entry;
typedef struct {
    struct { entry *p; uint32_t n, cap; } entry;
    uint32_t *first, n; /* [strip] its last entry, RL_NONE for none */
    double from, width;
} strips;

/* Of an image's boxes; emptied before each class. */
static strips strips_of(rl_arena *mem, const box *b, int64_t n) {
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) low = fmin(low, b[i].x0), high = fmax(high, b[i].x1), sum += fabs((double)b[i].x1 - (double)b[i].x0);
    strips s = {.n = 1, .from = low, .width = 1};
    if (n > FEW_BOXES && isfinite(low) && isfinite(high) && isfinite(sum) && high > low && sum > 0) {
        s.width = fmax(sum / (double)n, (high - low) / (double)n);
        s.n = (uint32_t)fmin((high - low) / s.width + 1, MOST_STRIPS);
        s.width = fmax(s.width, (high - low) / (double)s.n);
    }
    s.first = rl_new(mem, uint32_t, s.n);
    return s;
}

static void empty(strips *s) {
    s->entry.n = 0;
    memset(s->first, 0xff, s->n * sizeof *s->first);
}

/* Rises with x. */
static uint32_t strip_at(const strips *s, float x) {
    return s->n == 1 ? 0 : (uint32_t)fmin(fmax(((double)x - s->from) / s->width, 0), s->n - 1);
}

static bool overlaps_any(const strips *s, const box *b, float most) {
    for (uint32_t k = strip_at(s, b->x0), end = strip_at(s, b->x1); k <= end; k++)
        for (uint32_t i = s->first[k]; i != RL_NONE; i = s->entry.p[i].next)
            if (overlap(b, &s->entry.p[i].b, most)) return true;
    return false;
}

static void add_box(rl_arena *mem, strips *s, const box *b) {
    for (uint32_t k = strip_at(s, b->x0), end = strip_at(s, b->x1); k <= end; k++) {
        entry e = {*b, s->first[k]};
        s->first[k] = s->entry.n;
        rl_push(mem, s->entry, e);
    }
}

static int by_score(const void *arg, int64_t a, int64_t b) {
    const float *score = arg;
    return score[a] > score[b] ? -1 : score[a] < score[b];
}

typedef struct { int64_t most; float overlap, least; bool has_least, centered; } nms;

/* Of one class: appends the chosen to `chosen`; how many. */
static int64_t choose_boxes(rl_arena *mem, const nms *o, const box *boxes, strips *s, const float *score, int64_t n, int64_t *chosen) {
    int64_t nleft = 0, nchosen = 0, *left = rl_new(mem, int64_t, n);
    for (int64_t i = 0; i < n; i++)
        if (!o->has_least || score[i] > o->least) left[nleft++] = i;
    rl_sort(mem, left, nleft, by_score, score);
    empty(s);
    for (int64_t i = 0; i < nleft && nchosen < o->most; i++) {
        const box *b = &boxes[left[i]];
        if (overlaps_any(s, b, o->overlap)) continue;
        add_box(mem, s, b);
        chosen[nchosen++] = left[i];
    }
    return nchosen;
}

rl_status rl_ref_nms(rl_call *c) {
    double most_overlap, least;
    nms o = {.centered = rl_attr_int(c->node, "center_point_box", 0) != 0, .has_least = rl_call_in(c, 4) != NULL};
    struct { int64_t *p; uint32_t n, cap; } out = {0};
    RL_TRY(rl_call_need(c, 2));
    RL_TRY(rl_call_int(c, 2, 0, &o.most));
    RL_TRY(rl_call_float(c, 3, 0, &most_overlap));
    RL_TRY(rl_call_float(c, 4, 0, &least));
    o.overlap = (float)most_overlap, o.least = (float)least;
    const rl_tensor *boxes = rl_call_as(c, 0, RL_F32), *score = rl_call_as(c, 1, RL_F32);
    if (boxes->rank != 3 || score->rank != 3 || boxes->dim[2] != 4 || boxes->dim[0] != score->dim[0] || boxes->dim[1] != score->dim[2])
        return rl_call_fail(c, RL_EMODEL, "boxes and scores do not match");
    int64_t n = boxes->dim[1], nclass = score->dim[1], *chosen = rl_new(c->tmp, int64_t, n);
    box *image = rl_new(c->tmp, box, n);
    for (int64_t b = 0; b < boxes->dim[0]; b++) {
        const float *at = rl_data(boxes), *of = rl_data(score);
        for (int64_t i = 0; i < n; i++) image[i] = box_of(at + (b * n + i) * 4, o.centered);
        strips s = strips_of(c->tmp, image, n);
        for (int64_t k = 0; k < nclass; k++) {
            int64_t m = choose_boxes(c->tmp, &o, image, &s, of + (b * nclass + k) * n, n, chosen);
            for (int64_t i = 0; i < m; i++) {
                rl_push(c->tmp, out, b);
                rl_push(c->tmp, out, k);
                rl_push(c->tmp, out, chosen[i]);
            }
        }
    }
    rl_tensor *y = rl_call_make(c, 0, RL_I64, 2, (const int64_t[]){out.n / 3, 3});
    if (out.n) memcpy(rl_data(y), out.p, out.n * sizeof *out.p);
    return RL_OK;
}
