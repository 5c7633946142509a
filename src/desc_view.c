/* Views: other descriptors of the same buffer, and DirectML's rules for one. Nothing here looks at data. */

#include "desc.h"

static rl_status add_axis(rl_desc *to, const rl_desc *from, uint32_t a, rl_error *e) {
    rl_digits x = rl_desc_axis(from, a);
    RL_TRY(rl_desc_room(to->ndigit + x.n, e));
    uint32_t axis = to->rank++;
    to->dim[axis] = from->dim[a];
    for (uint32_t i = 0; i < x.n; i++) {
        to->digit[to->ndigit] = from->digit[x.first + i];
        to->digit[to->ndigit++].axis = axis;
    }
    return RL_OK;
}

static rl_status add_plain(rl_desc *to, int64_t dim, int64_t stride, rl_error *e) {
    RL_TRY(rl_desc_room(to->ndigit + 1, e));
    to->digit[to->ndigit++] = (rl_digit){to->rank, dim, stride};
    to->dim[to->rank++] = dim;
    return RL_OK;
}

rl_status rl_desc_permute(const rl_desc *d, const uint32_t *perm, rl_desc *out, rl_error *e) {
    RL_WANTS(e, d, out);
    RL_TRY(rl_desc_check(d, 0, e));
    if (d->rank) RL_WANTS(e, perm);
    rl_desc x = {.dtype = d->dtype, .offset = d->offset};
    uint32_t seen = 0;
    for (uint32_t i = 0; i < d->rank; i++) {
        if (perm[i] >= d->rank || seen >> perm[i] & 1)
            return rl_desc_fail(e, RL_EUSAGE, "perm[%u] is %u: no permutation of %u axes", i, perm[i], d->rank);
        seen |= 1u << perm[i];
        RL_TRY(add_axis(&x, d, perm[i], e));
    }
    *out = x;
    return RL_OK;
}

/* The last index that is read, or an error. */
static rl_status check_slice(const rl_desc *d, uint32_t axis, int64_t start, int64_t step, int64_t count, rl_error *e) {
    int64_t last = start;
    if (axis >= d->rank) return rl_desc_fail(e, RL_EUSAGE, "axis %u of a tensor of rank %u", axis, d->rank);
    if (count < 0) return rl_desc_fail(e, RL_EUSAGE, "a slice of %lld elements; no size is negative", (long long)count);
    if (count == 0) return RL_OK;
    if (__builtin_mul_overflow(count - 1, step, &last) || __builtin_add_overflow(start, last, &last) || start < 0 || start >= d->dim[axis] ||
        last < 0 || last >= d->dim[axis])
        return rl_desc_fail(e, RL_EUSAGE, "a slice of axis %u from %lld, %lld by %lld, leaves its %lld elements", axis, (long long)start,
                            (long long)count, (long long)step, (long long)d->dim[axis]);
    return RL_OK;
}

rl_status rl_desc_slice(const rl_desc *d, uint32_t axis, int64_t start, int64_t step, int64_t count, rl_desc *out, rl_error *e) {
    RL_WANTS(e, d, out);
    RL_TRY(rl_desc_check(d, 0, e));
    RL_TRY(check_slice(d, axis, start, step, count, e));
    rl_desc x = *d;
    int64_t low, high;
    rl_digits g = rl_desc_axis(d, axis);
    int64_t block = rl_desc_block(d, axis);
    if (g.n > 1 && (step != 1 || (block && start % block)))
        return rl_desc_fail(e, RL_EUSAGE, "axis %u is split into blocks of %lld: a slice of it starts at a block and has step 1", axis,
                            (long long)block);
    x.dim[axis] = count;
    if (g.n == 1) {
        x.digit[g.first].size = count;
        if (count > 1) x.digit[g.first].stride = rl_mul(x.digit[g.first].stride, step);
    } else {
        x.digit[g.first].size = count && block ? (count - 1) / block + 1 : 0;
    }
    if (count && rl_desc_range(d, &low, &high)) x.offset += rl_desc_step(d, axis, start); /* else it has no places, and any strides */
    *out = x;
    return RL_OK;
}

rl_status rl_desc_expand(const rl_desc *d, uint32_t rank, const int64_t *dim, rl_desc *out, rl_error *e) {
    RL_WANTS(e, d, out);
    RL_TRY(rl_desc_check(d, 0, e));
    if (rank) RL_WANTS(e, dim);
    rl_desc x = {.dtype = d->dtype, .offset = d->offset};
    if (rank > RL_DESC_RANK || rank < d->rank) return rl_desc_fail(e, RL_EUSAGE, "rank %u cannot be expanded to %u", d->rank, rank);
    for (uint32_t i = 0; i < rank; i++) {
        bool fresh = i < rank - d->rank;
        uint32_t a = fresh ? 0 : i - (rank - d->rank);
        if (!fresh && d->dim[a] != dim[i] && d->dim[a] != 1)
            return rl_desc_fail(e, RL_EUSAGE, "axis %u has %lld elements, which do not repeat to %lld", a, (long long)d->dim[a],
                                (long long)dim[i]);
        RL_TRY(fresh || d->dim[a] != dim[i] ? add_plain(&x, dim[i], 0, e) : add_axis(&x, d, a, e));
    }
    RL_TRY(rl_desc_check(&x, 0, e));
    *out = x;
    return RL_OK;
}

/* ---- reshape ---- */

/* The digits in row-major order of the logical tensor, without those of size 1, neighbours joined where one continues the other. */
static uint32_t merged(const rl_desc *d, rl_digit *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->ndigit; i++) {
        rl_digit x = d->digit[i];
        if (x.size == 1) continue;
        if (n && g[n - 1].stride == x.size * x.stride) {
            g[n - 1].size *= x.size;
            g[n - 1].stride = x.stride;
        } else {
            g[n++] = x;
        }
    }
    return n;
}

/* Appends a dim whose elements are the next `dim` inner ones of the merged digits; false when no digits split that way. Digits come
 * innermost first and are turned around by the caller. */
static bool take(rl_digit *g, uint32_t *n, int64_t dim, uint32_t axis, rl_desc *x) {
    while (dim > 1) {
        if (*n == 0 || x->ndigit == RL_DESC_DIGITS) return false;
        rl_digit *last = &g[*n - 1];
        int64_t part = RL_MIN(dim, last->size);
        if (dim % part || last->size % part) return false;
        x->digit[x->ndigit++] = (rl_digit){axis, part, last->stride};
        dim /= part;
        last->size /= part;
        last->stride *= part;
        if (last->size == 1) --*n;
    }
    return true;
}

static void reverse(rl_desc *x) {
    for (uint32_t i = 0; i < x->ndigit / 2; i++) {
        rl_digit y = x->digit[i];
        x->digit[i] = x->digit[x->ndigit - 1 - i];
        x->digit[x->ndigit - 1 - i] = y;
    }
}

rl_status rl_desc_reshape(const rl_desc *d, uint32_t rank, const int64_t *dim, rl_desc *out, rl_error *e) {
    RL_WANTS(e, d, out);
    RL_TRY(rl_desc_check(d, 0, e));
    rl_desc fresh, x = {.dtype = d->dtype, .offset = d->offset, .rank = rank};
    rl_digit g[RL_DESC_DIGITS];
    RL_TRY(rl_desc_strided(d->dtype, rank, dim, NULL, d->offset, &fresh, e));
    if (rl_desc_elements(&fresh) != rl_desc_elements(d))
        return rl_desc_fail(e, RL_EUSAGE, "%lld elements cannot be reshaped to %lld", (long long)rl_desc_elements(d),
                            (long long)rl_desc_elements(&fresh));
    for (uint32_t a = 0; a < d->rank; a++)
        if (rl_desc_padded(d, a) != d->dim[a] && rl_desc_elements(d) > 0)
            return rl_desc_fail(e, RL_EUSAGE, "axis %u is padded: a reshape of it would need a copy", a);
    if (rl_desc_elements(d) == 0) {
        *out = fresh;
        return RL_OK;
    }
    uint32_t n = merged(d, g);
    for (uint32_t i = rank; i-- > 0;) {
        uint32_t before = x.ndigit;
        x.dim[i] = dim[i];
        if (!take(g, &n, dim[i], i, &x))
            return rl_desc_fail(e, RL_EUSAGE, "the elements of axis %u do not lie in the places that a view needs: copy first", i);
        if (x.ndigit > before) continue;
        RL_TRY(rl_desc_room(x.ndigit + 1, e));
        x.digit[x.ndigit++] = (rl_digit){i, 1, n ? g[n - 1].stride : fresh.digit[i].stride};
    }
    reverse(&x);
    *out = x;
    return RL_OK;
}

/* ---- DirectML ---- */

rl_status rl_desc_fill_rank(const rl_desc *d, uint32_t rank, rl_desc *out, rl_error *e) {
    RL_WANTS(e, d, out);
    RL_TRY(rl_desc_check(d, 0, e));
    rl_desc x = {.dtype = d->dtype, .offset = d->offset};
    if (rank > RL_DESC_RANK || rank < d->rank) return rl_desc_fail(e, RL_EUSAGE, "a tensor of rank %u cannot have rank %u", d->rank, rank);
    rl_digit first = d->rank ? d->digit[0] : (rl_digit){0, 1, 1};
    int64_t whole;
    if (__builtin_mul_overflow(RL_MAX(first.size, 1), first.stride, &whole))
        return rl_desc_fail(e, RL_EUSAGE, "sizes and strides overflow 64 bits at axis 0");
    for (uint32_t i = d->rank; i < rank; i++) RL_TRY(add_plain(&x, 1, whole, e));
    for (uint32_t a = 0; a < d->rank; a++) RL_TRY(add_axis(&x, d, a, e));
    *out = x;
    return RL_OK;
}

rl_status rl_desc_check_buffer(const rl_desc *d, int64_t total_bytes, int64_t alignment, int written, rl_error *e) {
    RL_TRY(rl_desc_check(d, written, e));
    if (d->rank < 1 || !rl_desc_is_strided(d))
        return rl_desc_fail(e, RL_EUSAGE, "a buffer tensor has one stride for each dim, and no blocks");
    for (uint32_t a = 0; a < d->rank; a++) {
        if (d->dim[a] == 0) return rl_desc_fail(e, RL_EUSAGE, "axis %u has no elements; a buffer tensor has at least one", a);
        if (d->digit[a].stride < 0)
            return rl_desc_fail(e, RL_EUSAGE, "the stride of axis %u is %lld; a buffer tensor has none below 0", a,
                                (long long)d->digit[a].stride);
    }
    if (total_bytes % 4) return rl_desc_fail(e, RL_EUSAGE, "the buffer has %lld bytes, which is no multiple of 4", (long long)total_bytes);
    if (total_bytes < rl_min_buffer_bytes(d))
        return rl_desc_fail(e, RL_EUSAGE, "the buffer has %lld bytes, the tensor needs %lld", (long long)total_bytes,
                            (long long)rl_min_buffer_bytes(d));
    if (alignment < 0 || (alignment & (alignment - 1)) || (alignment && alignment * 8 < (int64_t)rl_desc_bits(d)))
        return rl_desc_fail(e, RL_EUSAGE, "an alignment of %lld bytes: 0, or a power of two not below the element's size",
                            (long long)alignment);
    return RL_OK;
}
