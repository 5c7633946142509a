/* When two descriptors mean the same bytes, and when two elements of one share a place.
 *
 * Offsets add up over the axes, so two descriptors place all elements alike iff their offsets are equal and each axis adds the same
 * for every index.  What an axis adds is made canonical: digits of size 1 and those beyond the dim go, a digit that continues its
 * inner neighbour (stride = size * stride) is joined with it, and the outermost counts just to the dim.  What is left is determined
 * by the offsets alone: the innermost stride is that of index 1, its size ends where the offset first breaks the line, and so on. */
#include "desc.h"

#include <string.h>

typedef struct { uint32_t n; struct { int64_t size, stride; } digit[RL_DESC_DIGITS]; } line; /* innermost first */

static line canonical(const rl_desc *d, uint32_t a) {
    rl_digits x = rl_desc_axis(d, a);
    line l = {0};
    int64_t count = 1, below = 1; /* what the digits so far count to, and without the last one kept */
    for (uint32_t k = x.n; k-- > 0 && count < d->dim[a];) {
        const rl_digit *g = &d->digit[x.first + k];
        if (g->size != 1 && l.n && g->stride == l.digit[l.n - 1].size * l.digit[l.n - 1].stride) {
            l.digit[l.n - 1].size *= g->size;
        } else if (g->size != 1) {
            below = count;
            l.digit[l.n].size = g->size;
            l.digit[l.n++].stride = g->stride;
        }
        count *= g->size;
    }
    if (l.n) l.digit[l.n - 1].size = (d->dim[a] - 1) / below + 1;
    return l;
}

static bool same_axis(const rl_desc *a, const rl_desc *b, uint32_t axis) {
    line x = canonical(a, axis), y = canonical(b, axis);
    if (x.n != y.n) return false;
    for (uint32_t i = 0; i < x.n; i++)
        if (x.digit[i].size != y.digit[i].size || x.digit[i].stride != y.digit[i].stride) return false;
    return true;
}

static bool same_type(const rl_desc *a, const rl_desc *b) {
    return a->dtype == b->dtype && a->rank == b->rank && rl_same_bytes(a->dim, b->dim, a->rank * sizeof *a->dim);
}

static bool same_places(const rl_desc *a, const rl_desc *b) {
    if (rl_desc_elements(a) == 0) return true;
    for (uint32_t i = 0; i < a->rank; i++)
        if (!same_axis(a, b, i)) return false;
    return a->offset == b->offset;
}

int rl_desc_equal(const rl_desc *a, const rl_desc *b) {
    return same_type(a, b) && same_places(a, b) && rl_desc_bytes(a) == rl_desc_bytes(b);
}

/* ---- overlap ---- */

/* Two indices share a place iff some differences, not all 0, of the digits (each |x| < size) have strides that add up to 0. Looked
 * for with the largest stride first, as long as what is left can still bring the sum back to 0. */
typedef struct {
    uint32_t n;
    int64_t size[RL_DESC_DIGITS], stride[RL_DESC_DIGITS]; /* strides not negative: mirroring a digit changes no difference */
    int64_t reach[RL_DESC_DIGITS + 1];                    /* what digits i.. can add at most */
    int64_t budget;
} search;

static bool find_zero(search *s, uint32_t i, int64_t sum, bool any) {
    if (s->budget-- <= 0) return false;
    if (i == s->n) return any && sum == 0;
    int64_t step = s->stride[i], most = s->size[i] - 1, rest = s->reach[i + 1];
    if (step == 0) return true;
    int64_t low = RL_MAX(-most, -rl_floor_div(rest + sum, step)), high = RL_MIN(most, rl_floor_div(rest - sum, step));
    if (!any) low = RL_MAX(low, 0); /* the mirror image is the same pair */
    for (int64_t x = low; x <= high && s->budget > 0; x++)
        if (find_zero(s, i + 1, sum + x * step, any || x != 0)) return true;
    return false;
}

int rl_desc_overlaps(const rl_desc *d) {
    search s;
    int64_t low, high;
    if (!rl_desc_range(d, &low, &high)) return 0;
    s.n = 0, s.budget = 1 << 20;
    for (uint32_t i = 0; i < d->ndigit; i++) {
        int64_t size = d->digit[i].size, stride = d->digit[i].stride;
        uint32_t k = s.n;
        if (size == 1) continue;
        if (stride < 0) stride = -stride;
        for (; k && s.stride[k - 1] < stride; k--) s.size[k] = s.size[k - 1], s.stride[k] = s.stride[k - 1];
        s.size[k] = size, s.stride[k] = stride;
        s.n++;
    }
    s.reach[s.n] = 0;
    bool nested = true; /* each digit steps over all that those after it can add */
    for (uint32_t i = s.n; i-- > 0;) {
        s.reach[i] = s.reach[i + 1] + (s.size[i] - 1) * s.stride[i];
        nested = nested && s.stride[i] > s.reach[i + 1];
    }
    if (nested) return 0;
    bool found = find_zero(&s, 0, 0, false);
    return found ? 1 : s.budget > 0 ? 0 : -1;
}

/* ---- comparing ---- */

static int64_t bytes_of(const rl_desc *d, int64_t elements) {
    return (elements * (int64_t)rl_desc_bits(d) + 7) / 8;
}

/* b's padding, as far as a has not the same. */
static int64_t padding_of(const rl_desc *a, const rl_desc *b) {
    int64_t padded = 1;
    bool alike = true;
    for (uint32_t i = 0; i < b->rank; i++) {
        padded *= rl_desc_padded(b, i);
        alike = alike && rl_desc_padded(a, i) == rl_desc_padded(b, i);
    }
    return alike && same_places(a, b) ? 0 : bytes_of(b, padded) - bytes_of(b, rl_desc_elements(b));
}

rl_status rl_desc_compare(const rl_desc *a, const rl_desc *b, rl_comparison *out, rl_error *e) {
    RL_WANTS(e, a, b, out);
    RL_TRY(rl_desc_check(a, 0, e));
    RL_TRY(rl_desc_check(b, 0, e));
    if (!same_type(a, b)) return rl_desc_fail(e, RL_EUSAGE, "the two have not the same dims and element type: nothing to compare");
    *out = (rl_comparison){.relation = RL_SAME, .select_axis = -1};
    if (rl_desc_equal(a, b)) return RL_OK;
    out->relation = same_places(a, b) && rl_desc_bytes(b) <= rl_desc_bytes(a) ? RL_VIEW : RL_COPY;
    out->padding_bytes = padding_of(a, b);
    if (out->relation == RL_VIEW) return RL_OK;
    out->moved_bytes = bytes_of(b, rl_desc_elements(b));
    out->select_axis = rl_desc_select(a, b, NULL);
    return RL_OK;
}

/* The one axis that the two place differently, if all others are placed alike. */
static uint32_t differing_axis(const rl_desc *a, const rl_desc *b) {
    uint32_t axis = RL_NONE;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (same_axis(a, b, i)) continue;
        if (axis != RL_NONE) return RL_NONE;
        axis = i;
    }
    return axis;
}

/* The places 0, unit, 2 unit, ... of the axis. */
static int64_t unit_of(const rl_desc *d, uint32_t axis) {
    line l = canonical(d, axis);
    int64_t unit = 0;
    for (uint32_t i = 0; i < l.n; i++) unit = rl_gcd(unit, l.digit[i].stride);
    return unit;
}

enum { MOSTSELECT = 1 << 24 }; /* longer axes are not looked at */

/* index, filled; false where the places of the two are not the same ones, or not 0, unit, 2 unit, ... */
static bool find_index(rl_ctx *ctx, const rl_desc *a, const rl_desc *b, uint32_t axis, int64_t *index) {
    int64_t n = a->dim[axis], unit = unit_of(a, axis);
    if (unit == 0 || unit_of(b, axis) != unit || RL_PROTECT(ctx)) return false;
    int64_t *source = rl_new(&ctx->mem, int64_t, n);
    uint8_t *seen = rl_new(&ctx->mem, uint8_t, n); /* 1: as a place of b, 2: of a */
    for (int64_t i = 0; i < n; i++) {
        int64_t from = rl_desc_step(a, axis, i) / unit, to = rl_desc_step(b, axis, i) / unit;
        if (from < 0 || from >= n || to < 0 || to >= n || seen[to] & 1 || seen[from] & 2) return false;
        seen[to] |= 1;
        seen[from] |= 2;
        source[to] = from;
    }
    if (index) memcpy(index, source, (size_t)n * sizeof *index);
    return true;
}

int32_t rl_desc_select(const rl_desc *a, const rl_desc *b, int64_t *index) {
    if (!same_type(a, b) || a->offset != b->offset || rl_desc_elements(a) == 0) return -1;
    uint32_t axis = differing_axis(a, b);
    if (axis == RL_NONE || a->dim[axis] > MOSTSELECT) return -1;
    rl_ctx *ctx = rl_ctx_new(0);
    bool found = ctx && find_index(ctx, a, b, axis, index);
    rl_ctx_free(ctx);
    return found ? (int32_t)axis : -1;
}
