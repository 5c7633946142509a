/* Sparse tensors (COO and CSR, as PyTorch has them) from and to strided and blocked buffers.
 *
 * The buffer is first made row-major; its elements that are not zero, in that order, are the values, and their indices are the index:
 *
 *     f32[2,3] {0,5,0, 0,0,7}     COO  index {0,1, 1,2} (rows, then columns)   values {5,7}
 *                                 CSR  index {0,1,2, 1,2} (row starts, then columns) */
#include <stdlib.h>
#include <string.h>

#include "convert.h"

typedef struct { rl_desc d; uint8_t *p; uint32_t bits; } dense; /* row-major */

static rl_status make_dense(const rl_desc *d, const void *data, size_t nbyte, dense *x, rl_error *e) {
    RL_TRY(rl_desc_strided(d->dtype, d->rank, d->dim, NULL, 0, &x->d, e));
    size_t n = (size_t)rl_desc_bytes(&x->d);
    x->bits = rl_desc_bits(d);
    x->p = malloc(n + 1);
    if (!x->p) return rl_desc_fail(e, RL_ENOMEM, "out of memory");
    rl_status s = rl_desc_convert(&x->d, x->p, n, d, data, nbyte, e);
    if (s != RL_OK) free(x->p);
    return s;
}

/* The bit of -0 where the type has one: it is a zero too. */
static bool has_minus_zero(int32_t t) {
    return t == RL_F16 || t == RL_BF16 || t == RL_F32 || t == RL_F64 || t == RL_C64 || t == RL_C128 || t == RL_F8E4M3FN || t == RL_F8E5M2 ||
        t == RL_F4E2M1;
}

static bool is_zero(const dense *x, int64_t i) {
    bool sign = has_minus_zero(x->d.dtype), complex = x->d.dtype == RL_C64 || x->d.dtype == RL_C128;
    uint32_t size = x->bits / 8, part = complex ? size / 2 : size;
    if (x->d.dtype == RL_F8E8M0) return false; /* powers of two only */
    if (x->bits < 8) {
        uint32_t per = 8 / x->bits, v = (uint32_t)x->p[(size_t)i / per] >> ((size_t)i % per * x->bits), mask = (1u << (x->bits - sign)) - 1;
        return (v & mask) == 0;
    }
    for (uint32_t k = 0; k < size; k++) /* little-endian: the sign is in the last byte of each part */
        if (x->p[(size_t)i * size + k] & (sign && k % part == part - 1 ? 0x7f : 0xff)) return false;
    return true;
}

rl_status rl_sparse_count(const rl_desc *d, const void *data, size_t nbyte, int64_t *nnz, rl_error *e) {
    dense x;
    RL_WANTS(e, d, nnz);
    *nnz = 0;
    RL_TRY(make_dense(d, data, nbyte, &x, e));
    for (int64_t i = 0; i < rl_desc_elements(d); i++) *nnz += !is_zero(&x, i);
    free(x.p);
    return RL_OK;
}

static void put_index(rl_sparse *s, int64_t k, int64_t element) {
    if (s->kind == RL_CSR) {
        s->index[element / s->dim[1] + 1]++; /* counts, made starts at the end */
        s->index[s->dim[0] + 1 + k] = element % s->dim[1];
        return;
    }
    for (uint32_t a = s->rank; a-- > 0; element /= s->dim[a]) s->index[(int64_t)a * s->nnz + k] = element % s->dim[a];
}

/* Runs of elements that are not zero go to the values as one line each. */
static int64_t collect(const dense *x, rl_sparse *s) {
    int64_t n = 0, all = rl_desc_elements(&x->d);
    for (int64_t i = 0, first; i < all; i++) {
        for (first = i; i < all && !is_zero(x, i); i++)
            if (n + i - first < s->nnz) put_index(s, n + i - first, i);
        if (n + i - first <= s->nnz && i > first) rl_move_line(s->dtype, s->values, n, 1, x->p, first, 1, i - first);
        n += i - first;
    }
    return n;
}

static rl_status check_kind(const rl_sparse *s, rl_error *e) {
    if (s->kind != RL_COO && s->kind != RL_CSR) return rl_desc_fail(e, RL_EUSAGE, "sparse layout %d; there are COO and CSR", (int)s->kind);
    if (s->kind == RL_CSR && s->rank != 2) return rl_desc_fail(e, RL_EUSAGE, "rank %u; CSR is for matrices", s->rank);
    if (s->nnz < 0) return rl_desc_fail(e, RL_EUSAGE, "nnz is %lld; no size is negative", (long long)s->nnz);
    if (s->nnz || s->kind == RL_CSR) RL_WANTS(e, s->index);
    if (s->nnz) RL_WANTS(e, s->values);
    return RL_OK;
}

rl_status rl_to_sparse(const rl_desc *d, const void *data, size_t nbyte, rl_sparse *out, rl_error *e) {
    dense x;
    RL_WANTS(e, d, out);
    out->dtype = d->dtype;
    out->rank = d->rank;
    memcpy(out->dim, d->dim, sizeof out->dim);
    RL_TRY(check_kind(out, e));
    RL_TRY(make_dense(d, data, nbyte, &x, e));
    if (out->kind == RL_CSR) memset(out->index, 0, (size_t)(out->dim[0] + 1) * sizeof *out->index);
    int64_t n = collect(&x, out);
    for (int64_t r = 0; out->kind == RL_CSR && r < out->dim[0]; r++) out->index[r + 1] += out->index[r];
    free(x.p);
    if (n != out->nnz)
        return rl_desc_fail(e, RL_EUSAGE, "nnz is %lld, the tensor has %lld elements that are not zero", (long long)out->nnz, (long long)n);
    return RL_OK;
}

/* ---- back ---- */

/* The row of element k, given that of k - 1. */
static int64_t csr_row(const rl_sparse *s, int64_t k, int64_t row) {
    while (row < s->dim[0] && s->index[row + 1] <= k) row++;
    return row;
}

static rl_status check_starts(const rl_sparse *s, rl_error *e) {
    if (s->kind != RL_CSR) return RL_OK;
    if (s->index[0] != 0 || s->index[s->dim[0]] != s->nnz)
        return rl_desc_fail(e, RL_EUSAGE, "the row starts go from %lld to %lld, not from 0 to nnz = %lld", (long long)s->index[0],
                            (long long)s->index[s->dim[0]], (long long)s->nnz);
    for (int64_t r = 0; r < s->dim[0]; r++)
        if (s->index[r + 1] < s->index[r]) return rl_desc_fail(e, RL_EUSAGE, "the row starts fall after row %lld", (long long)r);
    return RL_OK;
}

/* The index of element k; RL_EUSAGE when out of range, or not after the one before it (*last, row-major). */
static rl_status index_of(const rl_sparse *s, int64_t k, int64_t *row, int64_t *last, int64_t *index, rl_error *e) {
    int64_t at = 0;
    if (s->kind == RL_CSR) {
        index[0] = *row = csr_row(s, k, *row);
        index[1] = s->index[s->dim[0] + 1 + k];
    }
    for (uint32_t a = 0; a < s->rank; a++) {
        if (s->kind == RL_COO) index[a] = s->index[(int64_t)a * s->nnz + k];
        if (index[a] < 0 || index[a] >= s->dim[a])
            return rl_desc_fail(e, RL_EUSAGE, "element %lld has index %lld in axis %u, which has %lld", (long long)k, (long long)index[a],
                                a, (long long)s->dim[a]);
        at = at * s->dim[a] + index[a];
    }
    if (at <= *last)
        return rl_desc_fail(e, RL_EUSAGE, "element %lld is not after the one before it: indices are sorted, and none stands twice",
                            (long long)k);
    *last = at;
    return RL_OK;
}

rl_status rl_from_sparse(const rl_sparse *s, const rl_desc *to, void *out, size_t nout, rl_error *e) {
    int64_t index[RL_DESC_RANK], row = 0, last = -1;
    RL_WANTS(e, s, to);
    RL_TRY(check_kind(s, e));
    RL_TRY(rl_desc_check(to, 1, e));
    if (s->dtype != to->dtype || s->rank != to->rank || !rl_same_bytes(s->dim, to->dim, s->rank * sizeof *s->dim))
        return rl_desc_fail(e, RL_EUSAGE, "the two layouts have not the same dims and element type");
    if (nout < (size_t)rl_desc_bytes(to))
        return rl_desc_fail(e, RL_EUSAGE, "the output buffer has %zu bytes, its layout needs %lld", nout, (long long)rl_desc_bytes(to));
    if (nout) RL_WANTS(e, out);
    RL_TRY(check_starts(s, e));
    for (int64_t k = 0; k < s->nnz; k++) RL_TRY(index_of(s, k, &row, &last, index, e));
    rl_desc_zero(to, out, true);
    row = 0, last = -1;
    for (int64_t k = 0; k < s->nnz; k++) {
        RL_TRY(index_of(s, k, &row, &last, index, e));
        rl_move_line(s->dtype, out, rl_desc_offset(to, index), 1, s->values, k, 1, 1);
    }
    return RL_OK;
}
