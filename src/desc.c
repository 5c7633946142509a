/* Descriptors: made, checked, measured, compared. */
#include "desc.h"

#include <stdio.h>
#include <string.h>

rl_status (rl_desc_fail)(rl_error *e, rl_status status, const char *fmt, ...) {
    va_list ap;
    if (!e) return status;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return status;
}

rl_status rl_desc_wants(rl_error *e, const char *names, const void *const *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!p[i]) return rl_desc_fail(e, RL_EUSAGE, n > 1 ? "one of these is NULL: %s" : "%s is NULL", names);
    return RL_OK;
}

/* ---- parts ---- */

rl_digits rl_desc_axis(const rl_desc *d, uint32_t a) {
    rl_digits x = {0, 0};
    while (x.first < d->ndigit && d->digit[x.first].axis < a) x.first++;
    while (x.first + x.n < d->ndigit && d->digit[x.first + x.n].axis == a) x.n++;
    return x;
}

int64_t rl_desc_padded(const rl_desc *d, uint32_t a) {
    rl_digits x = rl_desc_axis(d, a);
    int64_t p = 1;
    for (uint32_t i = 0; i < x.n; i++) p *= d->digit[x.first + i].size;
    return p;
}

int64_t rl_desc_block(const rl_desc *d, uint32_t a) {
    rl_digits x = rl_desc_axis(d, a);
    int64_t p = 1;
    for (uint32_t i = 1; i < x.n; i++) p *= d->digit[x.first + i].size;
    return p;
}

int64_t rl_desc_step(const rl_desc *d, uint32_t a, int64_t i) {
    if (i == 0) return 0;
    rl_digits x = rl_desc_axis(d, a);
    int64_t at = 0;
    for (uint32_t k = x.n; k-- > 1; i /= d->digit[x.first + k].size) at += i % d->digit[x.first + k].size * d->digit[x.first + k].stride;
    return at + i * d->digit[x.first].stride;
}

bool rl_desc_is_strided(const rl_desc *d) {
    if (d->ndigit != d->rank) return false;
    for (uint32_t a = 0; a < d->rank; a++)
        if (d->digit[a].size != d->dim[a]) return false;
    return true;
}

rl_status rl_desc_room(uint32_t n, rl_error *e) {
    return n <= RL_DESC_DIGITS ? RL_OK : rl_desc_fail(e, RL_ELIMIT, "a layout has at most %d digits", RL_DESC_DIGITS);
}

bool rl_desc_range(const rl_desc *d, int64_t *low, int64_t *high) {
    *low = *high = d->offset;
    for (uint32_t i = 0; i < d->ndigit; i++)
        if (d->digit[i].size == 0) return false;
    for (uint32_t i = 0; i < d->ndigit; i++) {
        int64_t reach = (d->digit[i].size - 1) * d->digit[i].stride;
        *(reach < 0 ? low : high) += reach;
    }
    return true;
}

void rl_desc_order(const rl_desc *d, uint8_t *order) {
    for (uint32_t i = 0; i < d->ndigit; i++) {
        uint32_t k = i;
        const rl_digit *x = &d->digit[i];
        for (; k > 0; k--) {
            const rl_digit *y = &d->digit[order[k - 1]];
            if (y->stride > x->stride || (y->stride == x->stride && (y->size > 1 || x->size <= 1))) break;
            order[k] = order[k - 1];
        }
        order[k] = (uint8_t)i;
    }
}

/* ---- making ---- */

static rl_status start(int32_t dtype, uint32_t rank, const int64_t *dim, rl_desc *d, rl_error *e) {
    *d = (rl_desc){.dtype = dtype, .rank = rank};
    if (rank > RL_DESC_RANK) return rl_desc_fail(e, RL_EUSAGE, "the rank is %u; a layout has at most %d dims", rank, RL_DESC_RANK);
    if (rank && !dim) return rl_desc_fail(e, RL_EUSAGE, "dim is NULL, and the rank %u", rank);
    if (rank) memcpy(d->dim, dim, rank * sizeof *dim);
    return RL_OK;
}

rl_status rl_desc_strided(int32_t dtype, uint32_t rank, const int64_t *dim, const int64_t *stride, int64_t offset, rl_desc *out,
                          rl_error *e) {
    rl_desc d;
    const char *s = "contiguous", *why;
    rl_tag t;
    RL_WANTS(e, out);
    RL_TRY(start(dtype, rank, dim, &d, e));
    if (!stride) {
        rl_tag_parse(&s, rank, &t, &why);
        RL_TRY(rl_desc_of_tag(dtype, rank, dim, &t, NULL, &d, e));
    }
    d.ndigit = rank;
    d.offset = offset;
    for (uint32_t a = 0; stride && a < rank; a++) d.digit[a] = (rl_digit){a, dim[a], stride[a]};
    RL_TRY(rl_desc_check(&d, 0, e));
    *out = d;
    return RL_OK;
}

/* The digits by axis: the outer part, which takes what the blocks and the padding leave, then the blocks; stride not set yet.
 * place[i] is where digit i of the tag went. */
static rl_status place_digits(rl_desc *d, const rl_tag *t, const int64_t *pad, uint8_t *place, rl_error *e) {
    for (uint32_t a = 0; a < d->rank; a++) {
        int64_t block = 1, least = RL_MAX(d->dim[a], pad ? pad[a] : 0);
        uint32_t outer = d->ndigit;
        for (uint32_t i = 0; i < t->n; i++) {
            if (t->axis[i] != a) continue;
            RL_TRY(rl_desc_room(d->ndigit + 1, e));
            place[i] = (uint8_t)d->ndigit;
            d->digit[d->ndigit++] = (rl_digit){a, t->block[i], 0};
            if (t->block[i] && __builtin_mul_overflow(block, t->block[i], &block))
                return rl_desc_fail(e, RL_EUSAGE, "the blocks of axis %u overflow", a);
        }
        if (pad && pad[a] < d->dim[a])
            return rl_desc_fail(e, RL_EUSAGE, "axis %u is padded to %lld, which is less than its %lld", a, (long long)pad[a],
                                (long long)d->dim[a]);
        d->digit[outer].size = least <= 0 ? least : (least - 1) / block + 1;
    }
    return RL_OK;
}

rl_status rl_desc_of_tag(int32_t dtype, uint32_t rank, const int64_t *dim, const rl_tag *t, const int64_t *pad, rl_desc *out, rl_error *e) {
    rl_desc d;
    uint8_t place[RL_TAG_MAX] = {0};
    int64_t step = 1;
    RL_TRY(start(dtype, rank, dim, &d, e));
    RL_TRY(place_digits(&d, t, pad, place, e));
    for (uint32_t i = t->n; i-- > 0;) {
        rl_digit *x = &d.digit[place[i]];
        x->stride = step;
        if (__builtin_mul_overflow(step, RL_MAX(x->size, 1), &step))
            return rl_desc_fail(e, RL_EUSAGE, "the sizes multiply to more than 64 bits hold");
    }
    RL_TRY(rl_desc_check(&d, 0, e));
    *out = d;
    return RL_OK;
}

rl_status rl_desc_named(int32_t dtype, uint32_t rank, const int64_t *dim, const char *name, const int64_t *pad, rl_desc *out, rl_error *e) {
    const char *s = name, *why = NULL;
    rl_tag t;
    RL_WANTS(e, name, out);
    if (strcmp(name, "coo") == 0 || strcmp(name, "csr") == 0)
        return rl_desc_fail(e, RL_EUSAGE, "'%s' is a sparse layout, which has indices instead of strides; convert it with rl_from_sparse",
                            name);
    if (!rl_tag_parse(&s, rank, &t, &why)) return rl_desc_fail(e, RL_EUSAGE, "'%.60s' at rank %u: %s", name, rank, why);
    if (*s) return rl_desc_fail(e, RL_EUSAGE, "'%.60s': '%.60s' is left over", name, s);
    return rl_desc_of_tag(dtype, rank, dim, &t, pad, out, e);
}

/* Piece `sub` of axis a in memory order, or RL_NONE. */
static uint32_t find_piece(const rl_layout *l, uint32_t a, uint32_t sub) {
    for (uint32_t i = 0; i < l->n; i++)
        if (l->axis[i] == a && l->sub[i] == sub) return i;
    return RL_NONE;
}

rl_status rl_desc_of_layout(rl_dtype t, uint32_t rank, const rl_dim *dim, const rl_layout *l, rl_desc *out, rl_error *e) {
    rl_desc d;
    for (uint32_t a = 0; a < rank; a++)
        if (!rl_dim_known(dim[a])) return rl_desc_fail(e, RL_ELIMIT, "the size of axis %u is not a number", a);
    if (!l) return rl_desc_strided((int32_t)t, rank, dim, NULL, 0, out, e);
    RL_TRY(start((int32_t)t, rank, dim, &d, e));
    RL_TRY(rl_desc_room(l->n + rank, e));
    for (uint32_t a = 0; a < rank; a++) {
        uint32_t first = d.ndigit;
        for (uint32_t sub = 0, i; (i = find_piece(l, a, sub)) != RL_NONE; sub++) {
            int64_t step = 1;
            for (uint32_t k = i + 1; k < l->n; k++)
                if (__builtin_mul_overflow(step, RL_MAX(l->size[k], 1), &step))
                    return rl_desc_fail(e, RL_ELIMIT, "the sizes overflow 64 bits");
            d.digit[d.ndigit++] = (rl_digit){a, l->size[i], step};
        }
        if (d.ndigit == first) d.digit[d.ndigit++] = (rl_digit){a, 1, 1};
    }
    RL_TRY(rl_desc_check(&d, 0, e));
    *out = d;
    return RL_OK;
}

/* ---- checking ---- */

/* The digits are grouped by axis, and those of each count to its dim at least. */
static rl_status check_digits(const rl_desc *d, rl_error *e) {
    uint32_t i = 0;
    for (uint32_t a = 0; a < d->rank; a++) {
        int64_t count = 1;
        uint32_t first = i;
        if (d->dim[a] < 0) return rl_desc_fail(e, RL_EUSAGE, "the size of axis %u is %lld; no size is negative", a, (long long)d->dim[a]);
        for (; i < d->ndigit && d->digit[i].axis == a; i++) {
            if (d->digit[i].size < 0)
                return rl_desc_fail(e, RL_EUSAGE, "a digit of axis %u has the size %lld; no size is negative", a,
                                    (long long)d->digit[i].size);
            if (__builtin_mul_overflow(count, d->digit[i].size, &count))
                return rl_desc_fail(e, RL_EUSAGE, "the digits of axis %u overflow 64 bits", a);
        }
        if (first == i) return rl_desc_fail(e, RL_EUSAGE, "axis %u has no digit", a);
        if (count < d->dim[a])
            return rl_desc_fail(e, RL_EUSAGE, "the digits of axis %u count to %lld, its dim is %lld", a, (long long)count,
                                (long long)d->dim[a]);
    }
    return i == d->ndigit ? RL_OK : rl_desc_fail(e, RL_EUSAGE, "digit %u belongs to axis %u, out of order or beyond rank %u", i,
                                                 d->digit[i].axis, d->rank);
}

/* Every bit that an element may lie at has a number that fits. */
static rl_status check_reach(const rl_desc *d, rl_error *e) {
    int64_t low = d->offset, high = low, all = (int64_t)rl_desc_bits(d), x;
    bool empty = false;
    for (uint32_t i = 0; i < d->ndigit; i++) {
        empty = empty || d->digit[i].size == 0;
        if (__builtin_mul_overflow(all, RL_MAX(d->digit[i].size, 1), &all))
            return rl_desc_fail(e, RL_EUSAGE, "the sizes multiply to more bits than 64 bits count");
    }
    for (uint32_t i = 0; !empty && i < d->ndigit; i++) {
        bool over = __builtin_mul_overflow(d->digit[i].size - 1, d->digit[i].stride, &x);
        over = over || (x < 0 ? __builtin_add_overflow(low, x, &low) : __builtin_add_overflow(high, x, &high));
        if (over) return rl_desc_fail(e, RL_EUSAGE, "sizes and strides overflow 64 bits at axis %u", d->digit[i].axis);
    }
    if (low < 0) return rl_desc_fail(e, RL_EUSAGE, "an element would lie at %lld, before the buffer", (long long)low);
    if (high > (INT64_MAX - 64) / (int64_t)rl_desc_bits(d) - 1)
        return rl_desc_fail(e, RL_EUSAGE, "the buffer has more bits than 64 bits count");
    return RL_OK;
}

rl_status rl_desc_check(const rl_desc *d, int written, rl_error *e) {
    RL_WANTS(e, d);
    if (d->rank > RL_DESC_RANK) return rl_desc_fail(e, RL_EUSAGE, "the rank is %u; a layout has at most %d dims", d->rank, RL_DESC_RANK);
    if (d->ndigit > RL_DESC_DIGITS) return rl_desc_fail(e, RL_EUSAGE, "%u digits; a layout has at most %d", d->ndigit, RL_DESC_DIGITS);
    if (!rl_desc_bits(d)) return rl_desc_fail(e, RL_EUSAGE, "elements of type %s have no size", rl_dtype_name((rl_dtype)d->dtype));
    RL_TRY(check_digits(d, e));
    RL_TRY(check_reach(d, e));
    int overlaps = written ? rl_desc_overlaps(d) : 0;
    if (overlaps > 0) return rl_desc_fail(e, RL_EUSAGE, "elements overlap: two indices have the same place, which cannot be written");
    if (overlaps < 0) return rl_desc_fail(e, RL_ELIMIT, "elements may overlap: the strides are too entangled to decide");
    return RL_OK;
}

/* ---- measuring ---- */

int64_t rl_desc_offset(const rl_desc *d, const int64_t *index) {
    int64_t at = d->offset;
    for (uint32_t a = 0; a < d->rank; a++) at += rl_desc_step(d, a, index[a]);
    return at;
}

uint32_t rl_desc_bits(const rl_desc *d) {
    return d->dtype < 0 ? 0 : rl_dtype_bits((rl_dtype)d->dtype);
}

int64_t rl_desc_elements(const rl_desc *d) {
    int64_t n = 1;
    for (uint32_t a = 0; a < d->rank; a++) n *= d->dim[a];
    return n;
}

int64_t rl_desc_bytes(const rl_desc *d) {
    int64_t low, high;
    return rl_desc_range(d, &low, &high) ? ((high + 1) * (int64_t)rl_desc_bits(d) + 7) / 8 : 0;
}

int64_t rl_min_buffer_bytes(const rl_desc *d) {
    return (rl_desc_bytes(d) + 3) & ~(int64_t)3;
}
