/* Tensors of a model as constants: checks that the data is what dims and type want, and finds its bytes.
 *
 * Three forms: raw_data, a typed field (float_data ...), external data.  Raw, external, and float or double data in one packed
 * run are used where they lie in the mapping; such data is not aligned.  Other typed fields hold varints or single values:
 * they are decoded to raw bytes.
 *
 * What dims and type want, in int32_data: one value for each element of 8 or 16 bits, of which the low bits count; one value
 * for each byte of packed 4- and 2-bit elements.  Complex numbers are pairs in float_data and double_data. */
#include "onnx_internal.h"

#include <stdio.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "constants are used as they lie in the file: little-endian"
#endif

enum { MAX_RANK = 1024, LAST_TYPE = 28 };
enum { FLOAT_DATA = 4, INT32_DATA = 5, STRING_DATA = 6, INT64_DATA = 7, RAW_DATA = 9, DOUBLE_DATA = 10, UINT64_DATA = 11 };

static const struct { uint32_t number; const char *name; uint32_t size;
} fields[] = {
    {FLOAT_DATA, "float_data", 4},   {INT32_DATA, "int32_data", 0}, {STRING_DATA, "string_data", 0},
    {INT64_DATA, "int64_data", 0},   {RAW_DATA, "raw_data", 1},     {DOUBLE_DATA, "double_data", 8},
    {UINT64_DATA, "uint64_data", 0},
};

static const char *field_name(uint32_t number) {
    for (size_t i = 0; i < RL_LEN(fields); i++)
        if (fields[i].number == number) return fields[i].name;
    return "?";
}

/* Bytes of one value of a fixed-size field; 0 for varints and strings. */
static uint32_t field_size(uint32_t number) {
    for (size_t i = 0; i < RL_LEN(fields); i++)
        if (fields[i].number == number) return fields[i].size;
    return 0;
}

/* Where values of a type stand when not in raw_data. */
static uint32_t typed_field(int32_t t) {
    switch (t) {
    case RL_F32: case RL_C64: return FLOAT_DATA;
    case RL_F64: case RL_C128: return DOUBLE_DATA;
    case RL_I64: return INT64_DATA;
    case RL_U32: case RL_U64: return UINT64_DATA;
    case RL_STRING: return STRING_DATA;
    default: return INT32_DATA;
    }
}

/* "f32[3,4]", cut where it gets long. */
typedef struct { char s[80]; } type_text;
static type_text type_of(const rl_tensor_head *h) {
    type_text t;
    size_t n = (size_t)snprintf(t.s, sizeof t.s, "%s[", rl_dtype_name((rl_dtype)h->dtype));
    for (size_t i = 0; i < h->rank && n < 56; i++)
        n += (size_t)snprintf(t.s + n, sizeof t.s - n, "%s%lld", i ? "," : "", (long long)h->dim[i]);
    snprintf(t.s + n, sizeof t.s - n, "%s]", n >= 56 ? "..." : "");
    return t;
}

/* ---- dims ---- */

/* The number of elements, and of bytes with `bits` each. */
static rl_status count_elements(rl_ctx *ctx, const rl_tensor_head *h, uint32_t bits, uint64_t *numel, uint64_t *nbyte) {
    if (h->rank > MAX_RANK)
        return rl_fail(ctx, RL_ELIMIT, "%s: rank %zu is over the limit of %d", h->what, h->rank, MAX_RANK);
    int64_t n = 1, b;
    bool zero = false;
    for (size_t i = 0; i < h->rank; i++) {
        if (h->dim[i] < 0) return rl_fail(ctx, RL_EMODEL, "%s: dim %zu is %lld", h->what, i, (long long)h->dim[i]);
        zero |= h->dim[i] == 0;
        if (h->dim[i] && __builtin_mul_overflow(n, h->dim[i], &n)) n = -1;
        if (n < 0) break;
    }
    if (n < 0 || __builtin_mul_overflow(n, (int64_t)RL_MAX(bits, 8u), &b))
        return rl_fail(ctx, RL_EMODEL, "%s: %s has more elements than memory can hold", h->what, type_of(h).s);
    *numel = zero ? 0 : (uint64_t)n;
    *nbyte = (*numel * bits + 7) / 8;
    return RL_OK;
}

/* ---- data in the model ---- */

typedef struct {
    uint32_t number; /* of the field that holds values; 0: none */
    uint32_t nrun;   /* fields of it */
    uint64_t n;      /* values in them */
    rl_span last;    /* the last one's bytes */
} held;

/* How many values a field holds; false: damaged. */
static bool count_values(const rl_field *f, uint64_t *n) {
    *n = 1;
    if (f->type != RL_WIRE_LEN || f->number == STRING_DATA) return true;
    uint32_t size = field_size(f->number);
    if (size) {
        *n = f->body.n / size;
        return f->body.n % size == 0;
    }
    *n = 0;
    for (size_t i = 0; i < f->body.n; i++) *n += f->body.p[i] < 0x80;
    return f->body.n == 0 || f->body.p[f->body.n - 1] < 0x80;
}

static rl_status find_data(rl_ctx *ctx, const rl_tensor_head *h, rl_span bytes, held *d) {
    *d = (held){0};
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        uint64_t n;
        if (f.number < FLOAT_DATA || f.number > UINT64_DATA || f.number == 8) continue;
        if (!count_values(&f, &n)) return rl_fail(ctx, RL_EMODEL, "%s: %s is damaged", h->what, field_name(f.number));
        if (!n) continue;
        if (d->number && d->number != f.number)
            return rl_fail(ctx, RL_EMODEL, "%s: has both %s and %s", h->what, field_name(d->number),
                           field_name(f.number));
        d->number = f.number;
        d->n = f.number == RAW_DATA ? n : d->n + n; /* of single fields the last counts */
        d->last = f.body;
        d->nrun++;
    }
    return RL_OK;
}

/* How many values a typed field must hold. */
static uint64_t values_wanted(int32_t dtype, uint64_t numel, uint64_t nbyte) {
    uint32_t bits = rl_dtype_bits((rl_dtype)dtype);
    if (dtype == RL_C64 || dtype == RL_C128) return numel * 2;
    return bits && bits < 8 ? nbyte : numel;
}

static rl_status check_data(rl_ctx *ctx, const rl_tensor_head *h, const held *d, uint64_t numel, uint64_t nbyte) {
    uint32_t typed = typed_field(h->dtype);
    bool raw = d->number == RAW_DATA;
    if (d->number && (raw ? h->dtype == RL_STRING : d->number != typed))
        return rl_fail(ctx, RL_EMODEL, "%s: %s values in %s, not in %s", h->what, rl_dtype_name((rl_dtype)h->dtype),
                       field_name(d->number), field_name(typed));
    uint64_t want = raw ? nbyte : values_wanted(h->dtype, numel, nbyte);
    if (d->n == want) return RL_OK;
    return rl_fail(ctx, RL_EMODEL, "%s: %s has %llu %s, %s wants %llu", h->what,
                   d->number ? field_name(d->number) : "no data: it", (unsigned long long)d->n,
                   raw ? "bytes" : "values", type_of(h).s, (unsigned long long)want);
}

/* Appends the low `size` bytes of each varint in the run. */
static uint8_t *put_varints(uint8_t *to, rl_span run, size_t size) {
    rl_wire w = rl_wire_of(run);
    for (uint64_t x; w.p < w.end && rl_wire_varint(&w, &x); to += size) memcpy(to, &x, size);
    return to;
}

static const void *decode(rl_arena *mem, rl_span bytes, const held *d, int32_t dtype, uint64_t nbyte) {
    uint8_t *data = rl_alloc(mem, nbyte), *to = data;
    uint32_t bits = rl_dtype_bits((rl_dtype)dtype);
    bool fixed = field_size(d->number) != 0;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number != d->number) continue;
        if (fixed) {
            memcpy(to, f.body.p, f.body.n);
            to += f.body.n;
        } else {
            to = put_varints(to, f.body, RL_MAX(bits / 8, 1u));
        }
    }
    return data;
}

static rl_status read_inline(rl_arena *mem, const rl_tensor_head *h, rl_span bytes, uint64_t numel, rl_const *c) {
    held d;
    RL_TRY(find_data(mem->ctx, h, bytes, &d));
    RL_TRY(check_data(mem->ctx, h, &d, numel, c->nbyte));
    if (h->dtype == RL_STRING) return RL_OK;
    if (d.number && field_size(d.number) && (d.number == RAW_DATA || d.nrun == 1))
        c->data = d.last.p;
    else c->data = decode(mem, bytes, &d, h->dtype, c->nbyte);
    return RL_OK;
}

/* ---- external data ---- */

/* A decimal number without sign. */
static bool number(const char *s, uint64_t *x) {
    *x = 0;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || __builtin_mul_overflow(*x, (uint64_t)10, x)) return false;
        if (__builtin_add_overflow(*x, (uint64_t)(*s - '0'), x)) return false;
    }
    return true;
}

static rl_status find_mapping(struct rl_onnx *o, const rl_tensor_head *h, rl_span *bytes) {
    rl_ctx *ctx = o->mem->ctx;
    rl_str key = rl_internz(ctx, h->location);
    for (const rl_mapping *m = o->mapping; m; m = m->next) {
        if (m->key != key) continue;
        *bytes = m->bytes;
        return RL_OK;
    }
    if (!o->dir)
        return rl_fail(ctx, RL_EIO, "%s: external data '%.200s': the model has no folder to look in", h->what, key);
    rl_mapping *m = rl_new(o->mem, rl_mapping, 1);
    rl_status status = rl_file_map_beneath(ctx, o->dir, key, o->any_external, &m->bytes, &m->id);
    if (status != RL_OK) return rl_fail(ctx, status, "%s: %s", h->what, ctx->error);
    rl_ctx_allow(ctx, m->bytes.n);
    m->key = key;
    m->next = o->mapping;
    o->mapping = m;
    *bytes = m->bytes;
    return RL_OK;
}

static rl_status read_external(struct rl_onnx *o, rl_arena *mem, const rl_tensor_head *h, bool known, rl_const *c) {
    rl_ctx *ctx = mem->ctx;
    uint64_t offset = 0, length = c->nbyte;
    if (!h->location || !*h->location) return rl_fail(ctx, RL_EMODEL, "%s: external data without a location", h->what);
    if (h->offset && !number(h->offset, &offset))
        return rl_fail(ctx, RL_EMODEL, "%s: external data offset '%.40s' is no number", h->what, h->offset);
    if (h->length && !number(h->length, &length))
        return rl_fail(ctx, RL_EMODEL, "%s: external data length '%.40s' is no number", h->what, h->length);
    if (known && length != c->nbyte)
        return rl_fail(ctx, RL_EMODEL, "%s: external data has %llu bytes, %s wants %zu", h->what,
                       (unsigned long long)length, type_of(h).s, c->nbyte);
    rl_span file = {0};
    RL_TRY(find_mapping(o, h, &file));
    if (offset > file.n || length > file.n - offset)
        return rl_fail(ctx, RL_EMODEL, "%s: external data '%.200s': wants %llu bytes from %llu on, the file has %zu",
                       h->what, h->location, (unsigned long long)length, (unsigned long long)offset, file.n);
    if (known) c->data = file.p ? file.p + offset : rl_alloc(mem, 1);
    return RL_OK;
}

/* ---- all forms ---- */

rl_status rl_tensor_read(struct rl_onnx *o, rl_arena *mem, const rl_tensor_head *h, rl_span bytes, rl_const *c) {
    if (h->dtype <= 0 || h->dtype > LAST_TYPE)
        return rl_fail(mem->ctx, RL_EMODEL, "%s: unknown data type %d", h->what, h->dtype);
    uint32_t bits = rl_dtype_bits((rl_dtype)h->dtype);
    bool known = bits != 0 || h->dtype == RL_STRING; /* the 6-bit floats have no layout yet */
    uint64_t numel = 0, nbyte = 0;
    RL_TRY(count_elements(mem->ctx, h, bits, &numel, &nbyte));
    *c = (rl_const){.dtype = known ? (rl_dtype)h->dtype : RL_UNDEF, .rank = (uint32_t)h->rank, .nbyte = nbyte};
    c->dim = rl_copy(mem, h->dim, h->rank * sizeof *h->dim);
    if (h->external) return read_external(o, mem, h, bits != 0, c);
    if (h->segment || !known) return RL_OK;
    return read_inline(mem, h, bytes, numel, c);
}
