/* NumPy's .npy files, versions 1 to 3: see values.h.
 *
 *   "\x93NUMPY", major, minor, header length (2 bytes in version 1, else 4), a Python dict as text, the elements
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } */
#include <stdlib.h>
#include <string.h>

#include "values.h"

static const struct { const char *descr; rl_dtype t; } types[] = {
    {"<f4", RL_F32}, {"<f8", RL_F64}, {"<f2", RL_F16}, {"|i1", RL_I8}, {"<i2", RL_I16}, {"<i4", RL_I32}, {"<i8", RL_I64},
    {"|u1", RL_U8}, {"<u2", RL_U16}, {"<u4", RL_U32}, {"<u8", RL_U64}, {"|b1", RL_BOOL}, {"<c8", RL_C64}, {"<c16", RL_C128}};

static rl_status bad(rl_rt *rt, const char *what, const char *why) {
    return rl_fail(rt->ctx, RL_EIO, "%.300s: %s", what, why);
}

/* The text behind 'key': in the header, or NULL. */
static const char *entry(const char *head, const char *key) {
    const char *p = strstr(head, key);
    if (!p) return NULL;
    p += strlen(key);
    while (*p == ' ' || *p == ':') p++;
    return p;
}

static bool parse_shape(const char *p, uint32_t *rank, int64_t *dim) {
    if (!p || *p++ != '(') return false;
    for (*rank = 0; *rank < RL_RANK; (*rank)++) {
        char *end;
        while (*p == ' ' || *p == ',') p++;
        if (*p == ')') return true;
        dim[*rank] = strtoll(p, &end, 10);
        if (end == p || dim[*rank] < 0) return false;
        p = *end == 'L' ? end + 1 : end;
    }
    return false;
}

static rl_dtype parse_type(const char *p) {
    for (size_t i = 0; p && i < RL_LEN(types); i++) {
        size_t n = strlen(types[i].descr);
        if ((*p == '\'' || *p == '"') && strncmp(p + 1, types[i].descr, n) == 0 && p[n + 1] == *p) return types[i].t;
    }
    return RL_UNDEF;
}

/* The header as text, and the elements behind it. */
static bool split(rl_span b, char *head, size_t size, rl_span *data) {
    if (b.n < 12 || !rl_same_bytes(b.p, "\x93NUMPY", 6) || b.p[6] < 1 || b.p[6] > 3) return false;
    size_t at = b.p[6] == 1 ? 10 : 12, n = b.p[8] | (size_t)b.p[9] << 8;
    if (at == 12) n |= (size_t)b.p[10] << 16 | (size_t)b.p[11] << 24;
    if (n >= size || n > b.n - at) return false;
    memcpy(head, b.p + at, n);
    head[n] = 0;
    *data = (rl_span){b.p + at + n, b.n - at - n};
    return true;
}

/* Fortran order: the same bytes as a row-major tensor of the reversed dims. */
static rl_tensor reversed(const rl_tensor *t) {
    int64_t perm[RL_RANK];
    for (uint32_t i = 0; i < t->rank; i++) perm[i] = t->rank - 1 - i;
    return rl_view_transpose(t, perm);
}

rl_status rl_npy_read(rl_rt *rt, const char *what, rl_span bytes, rl_tensor *out) {
    char head[4096];
    rl_span data;
    uint32_t rank;
    int64_t dim[RL_RANK], flip[RL_RANK], numel = 1;
    if (!split(bytes, head, sizeof head, &data)) return bad(rt, what, "not an .npy file");
    rl_dtype t = parse_type(entry(head, "'descr'"));
    const char *order = entry(head, "'fortran_order'");
    if (!t) return bad(rt, what, "an element type that tensors do not have");
    if (!parse_shape(entry(head, "'shape'"), &rank, dim) || !order) return bad(rt, what, "a damaged header");
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(numel, RL_MAX(dim[i], 1), &numel)) return bad(rt, what, "too large");
    for (uint32_t i = 0; i < rank; i++)
        if (dim[i] == 0) numel = 0;
    if (numel > (int64_t)(data.n / (rl_dtype_bits(t) / 8)) || rl_bytes_of(t, numel) != data.n) return bad(rt, what, "its size is not that of its shape");
    bool fortran = strncmp(order, "True", 4) == 0;
    for (uint32_t i = 0; i < rank; i++) flip[i] = dim[rank - 1 - i];
    rl_tensor x = rl_tensor_new(rt, t, rank, fortran ? flip : dim);
    if (data.n) memcpy(x.mem->p, data.p, data.n);
    *out = fortran ? reversed(&x) : x;
    return RL_OK;
}

static const char *descr_of(rl_dtype t) {
    for (size_t i = 0; i < RL_LEN(types); i++)
        if (types[i].t == t) return types[i].descr;
    return NULL;
}

bool rl_npy_print(rl_rt *rt, const rl_tensor *t, rl_text *to) {
    const char *descr = descr_of(t->dtype);
    rl_text head = {.mem = to->mem};
    if (t->kind != RL_TENSOR || !descr) return false;
    rl_put(&head, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < t->rank; i++) rl_put(&head, "%lld,%s", (long long)t->dim[i], i + 1 < t->rank ? " " : "");
    rl_put(&head, "), }");
    while ((10 + head.n + 1) % 64) rl_put(&head, " ");
    rl_put(&head, "\n");
    uint8_t magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)head.n, (uint8_t)(head.n >> 8)};
    rl_put_bytes(to, (const char *)magic, sizeof magic);
    rl_put_bytes(to, head.p, head.n);
    rl_tensor dense = rl_contiguous(rt, t);
    rl_put_bytes(to, rl_data(&dense), rl_bytes_of(t->dtype, rl_numel(t)));
    rl_tensor_drop(&dense);
    return true;
}
