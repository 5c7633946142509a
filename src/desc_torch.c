/* PyTorch's memory formats as rules on sizes and strides.
 *
 * A tensor has no field "format": is_contiguous, suggest_memory_format and the layout of an op's result are computed from strides,
 * and where a size is 1 its stride means nothing and two formats fit.  PyTorch breaks these ties in fixed ways, kept here as they are:
 * contiguous is asked before channels_last; a result follows its operands' strides, sorted with an insertion sort that leaves alone
 * what is ambiguous.  tests/python/test_layout_torch.py compares with torch. */
#include <string.h>

#include "desc.h"

static const uint8_t last2d[] = {1, 3, 2, 0}, last3d[] = {1, 4, 3, 2, 0}; /* axes, innermost first */

static int64_t stride_of(const rl_desc *d, uint32_t a) {
    return d->digit[a].stride;
}

/* The axes in the format's order, innermost first; false: the format has another rank. */
static bool order_of(rl_memory_format f, uint32_t rank, uint8_t *order) {
    for (uint32_t i = 0; i < rank; i++) order[i] = (uint8_t)(rank - 1 - i);
    if (f == RL_CHANNELS_LAST) memcpy(order, last2d, rank == 4 ? 4 : 0);
    if (f == RL_CHANNELS_LAST_3D) memcpy(order, last3d, rank == 5 ? 5 : 0);
    return f == RL_CONTIGUOUS || (f == RL_CHANNELS_LAST && rank == 4) || (f == RL_CHANNELS_LAST_3D && rank == 5);
}

int rl_is_contiguous(const rl_desc *d, rl_memory_format f) {
    uint8_t order[RL_DESC_RANK];
    int64_t want = 1;
    if (!rl_desc_is_strided(d) || !order_of(f, d->rank, order)) return 0;
    if (f == RL_CONTIGUOUS && rl_desc_elements(d) == 0) return 1;
    for (uint32_t i = 0; i < d->rank; i++) {
        uint32_t a = order[i];
        if (d->dim[a] == 1) continue;
        if (stride_of(d, a) != want) return 0;
        want *= d->dim[a];
    }
    return 1;
}

/* Dense in some order of the axes; sizes 0 and 1 are skipped. */
static bool dense_in_some_order(const rl_desc *d) {
    uint8_t perm[RL_DESC_RANK];
    int64_t want = 1;
    if (d->rank == 1) return d->dim[0] <= 1 || stride_of(d, 0) == 1;
    for (uint32_t i = 0; i < d->rank; i++) { /* those below 2 last, the others by stride */
        uint32_t k = i;
        for (; k > 0; k--) {
            uint32_t y = perm[k - 1];
            bool before = d->dim[y] < 2 ? d->dim[i] < 2 : d->dim[i] < 2 || stride_of(d, y) <= stride_of(d, i);
            if (before) break;
            perm[k] = (uint8_t)y;
        }
        perm[k] = (uint8_t)i;
    }
    for (uint32_t i = 0; i < d->rank; i++) {
        if (d->dim[perm[i]] < 2) return true;
        if (stride_of(d, perm[i]) != want) return false;
        want *= d->dim[perm[i]];
    }
    return true;
}

int rl_desc_is_dense(const rl_desc *d) {
    if (!rl_desc_is_strided(d)) return 0;
    return rl_is_contiguous(d, RL_CONTIGUOUS) || rl_is_contiguous(d, RL_CHANNELS_LAST) || rl_is_contiguous(d, RL_CHANNELS_LAST_3D) ||
        dense_in_some_order(d);
}

/* Strides that grow in the format's order. Ties are decided for contiguous: a channel stride of 0, and N111 and N11W. */
static bool looks_like(const rl_desc *d, rl_memory_format f) {
    uint8_t order[RL_DESC_RANK];
    int64_t least = 0;
    if (!order_of(f, d->rank, order) || rl_desc_elements(d) == 0 || stride_of(d, 1) == 0) return false;
    for (uint32_t i = 0; i < d->rank; i++) {
        uint32_t a = order[i];
        if (stride_of(d, a) < least) return false;
        if (a == 0 && least == stride_of(d, 1)) return false;
        least = stride_of(d, a) * d->dim[a];
    }
    return true;
}

rl_memory_format rl_suggest_format(const rl_desc *d) {
    if (!rl_desc_is_strided(d)) return RL_CONTIGUOUS;
    if (looks_like(d, RL_CHANNELS_LAST)) return RL_CHANNELS_LAST;
    return looks_like(d, RL_CHANNELS_LAST_3D) ? RL_CHANNELS_LAST_3D : RL_CONTIGUOUS;
}

/* Packed strides with the axes in this order, innermost first.  Where a size is 0 nothing lies anywhere, but strides are written all
 * the same: it counts as 1 in row-major order and in a clone, and makes the strides outside it 0 elsewhere (as torch has it). */
static void pack(rl_desc *d, const uint8_t *order, bool clone) {
    int64_t step = 1;
    bool row_major = true;
    d->offset = 0;
    for (uint32_t i = 0; i < d->rank; i++) row_major = row_major && order[i] == d->rank - 1 - i;
    for (uint32_t i = 0; i < d->rank; i++) {
        d->digit[order[i]].stride = step;
        step = rl_mul(step, clone || row_major ? RL_MAX(d->dim[order[i]], 1) : d->dim[order[i]]);
    }
}

/* ---- results of ops ---- */

/* Operand k's stride of axis a of the result; 0 where it is broadcast there. */
static int64_t aligned(const rl_desc *in, const rl_desc *out, uint32_t a) {
    uint32_t lead = out->rank - in->rank;
    if (a < lead || (in->dim[a - lead] == 1 && out->dim[a] != 1)) return 0;
    return stride_of(in, a - lead);
}

/* 1: axis x belongs outside y, -1: inside, 0: nothing says. The first operand that has an opinion wins. */
static int compare_axes(uint32_t n, const rl_desc *in, const rl_desc *out, uint32_t x, uint32_t y) {
    for (uint32_t k = 0; k < n; k++) {
        int64_t sx = aligned(&in[k], out, x), sy = aligned(&in[k], out, y);
        if (sx == 0 || sy == 0) continue;
        if (sx != sy) return sx < sy ? -1 : 1;
        if (out->dim[x] > out->dim[y]) return 1;
    }
    return 0;
}

/* Innermost first: row-major, and then sorted with what the strides say. */
static void sort_axes(uint32_t n, const rl_desc *in, const rl_desc *out, uint8_t *perm) {
    for (uint32_t i = 0; i < out->rank; i++) perm[i] = (uint8_t)(out->rank - 1 - i);
    for (uint32_t i = 1; i < out->rank; i++) {
        uint32_t at = i;
        for (uint32_t k = i; k-- > 0;) {
            int c = compare_axes(n, in, out, perm[k], perm[at]);
            if (c < 0) break;
            if (c == 0) continue;
            uint8_t other = perm[k];
            perm[k] = perm[at];
            perm[at] = other;
            at = k;
        }
    }
}

static rl_status broadcast(uint32_t n, const rl_desc *in, rl_desc *out, rl_error *e) {
    *out = (rl_desc){.dtype = in[0].dtype};
    for (uint32_t k = 0; k < n; k++) {
        if (!rl_desc_is_strided(&in[k]))
            return rl_desc_fail(e, RL_EUSAGE, "operand %u has blocks or padding; the rules are for sizes and strides", k);
        out->rank = RL_MAX(out->rank, in[k].rank);
    }
    for (uint32_t a = 0; a < out->rank; a++) {
        out->dim[a] = 1;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t lead = out->rank - in[k].rank;
            if (a < lead || in[k].dim[a - lead] == 1) continue;
            if (out->dim[a] != 1 && out->dim[a] != in[k].dim[a - lead])
                return rl_desc_fail(e, RL_EUSAGE, "axis %u has %lld and %lld elements: the operands do not broadcast", a,
                                    (long long)out->dim[a], (long long)in[k].dim[a - lead]);
            out->dim[a] = in[k].dim[a - lead];
        }
    }
    out->ndigit = out->rank;
    for (uint32_t a = 0; a < out->rank; a++) out->digit[a] = (rl_digit){a, out->dim[a], 0};
    return RL_OK;
}

static bool all_have_shape(uint32_t n, const rl_desc *in, const rl_desc *out) {
    for (uint32_t k = 0; k < n; k++)
        if (in[k].rank != out->rank || !rl_same_bytes(in[k].dim, out->dim, out->rank * sizeof *out->dim)) return false;
    return true;
}

static bool all_contiguous(uint32_t n, const rl_desc *in, rl_memory_format f) {
    for (uint32_t k = 0; k < n; k++)
        if (!rl_is_contiguous(&in[k], f)) return false;
    return true;
}

static bool all_dense_alike(uint32_t n, const rl_desc *in) {
    for (uint32_t k = 0; k < n; k++) {
        if (!rl_desc_is_dense(&in[k])) return false;
        for (uint32_t a = 0; a < in[k].rank; a++)
            if (stride_of(&in[k], a) != stride_of(&in[0], a)) return false;
    }
    return true;
}

rl_status rl_propagate(uint32_t n, const rl_desc *in, rl_desc *out, rl_error *e) {
    uint8_t order[RL_DESC_RANK] = {0};
    if (n == 0) return rl_desc_fail(e, RL_EUSAGE, "no operands");
    RL_WANTS(e, in, out);
    for (uint32_t k = 0; k < n; k++) RL_TRY(rl_desc_check(&in[k], 0, e));
    RL_TRY(broadcast(n, in, out, e));
    bool alike = all_have_shape(n, in, out);
    if (alike && all_contiguous(n, in, RL_CONTIGUOUS)) order_of(RL_CONTIGUOUS, out->rank, order);
    else if (alike && all_contiguous(n, in, RL_CHANNELS_LAST)) order_of(RL_CHANNELS_LAST, out->rank, order);
    else sort_axes(n, in, out, order);
    pack(out, order, false);
    if (alike && !all_contiguous(n, in, RL_CONTIGUOUS) && !all_contiguous(n, in, RL_CHANNELS_LAST) && all_dense_alike(n, in))
        for (uint32_t a = 0; a < out->rank; a++) out->digit[a].stride = stride_of(&in[0], a);
    return rl_desc_check(out, 0, e);
}

rl_status rl_to_format(const rl_desc *x, rl_memory_format f, rl_desc *out, int *copies, rl_error *e) {
    uint8_t order[RL_DESC_RANK] = {0};
    RL_WANTS(e, x, out, copies);
    RL_TRY(rl_desc_check(x, 0, e));
    rl_desc d = *x;
    if (!rl_desc_is_strided(x)) return rl_desc_fail(e, RL_EUSAGE, "a layout with blocks or padding has no memory format");
    if (f != RL_PRESERVE && !order_of(f, x->rank, order))
        return rl_desc_fail(e, RL_EUSAGE, "rank %u; channels_last is for 4 dims, channels_last_3d for 5", x->rank);
    *copies = f != RL_PRESERVE && !rl_is_contiguous(x, f);
    if (f == RL_PRESERVE) {
        sort_axes(1, x, x, order);
        d.offset = 0;
    }
    if (f == RL_PRESERVE ? !rl_desc_is_dense(x) : *copies) pack(&d, order, f == RL_PRESERVE);
    *out = d;
    return rl_desc_check(out, 0, e);
}
