/* Descriptors as text, both ways:  DTYPE[DIMS]@LAYOUT pad=[..] strides=[..] offset=N  (include/relayout.h).
 *
 * What is printed is the shortest of: a tag (tag.h) whose dense strides are the descriptor's; strides, where every axis has one digit;
 * the digits themselves, {size:stride*size:stride,...}.  It reads back as the same digits. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "desc.h"
#include "layout.h"

/* ---- element types ---- */

rl_dtype rl_desc_dtype(const char *s, size_t n) {
    static const struct { const char *name; rl_dtype t; } others[] = {
        {"float32", RL_F32}, {"float", RL_F32},  {"float16", RL_F16}, {"half", RL_F16},   {"float64", RL_F64},   {"double", RL_F64},
        {"bfloat16", RL_BF16}, {"int2", RL_I2},  {"int4", RL_I4},     {"int8", RL_I8},    {"int16", RL_I16},     {"int32", RL_I32},
        {"int64", RL_I64},   {"uint2", RL_U2},   {"uint4", RL_U4},    {"uint8", RL_U8},   {"uint16", RL_U16},    {"uint32", RL_U32},
        {"uint64", RL_U64},  {"complex64", RL_C64}, {"complex128", RL_C128}};
    for (size_t i = 0; i < RL_LEN(others); i++)
        if (strlen(others[i].name) == n && rl_same_bytes(others[i].name, s, n)) return others[i].t;
    return rl_dtype_parse(s, n);
}

/* ---- printing ---- */

typedef struct { char *p; size_t size, n; } sink; /* n: what was wanted, also beyond size */

static void put(sink *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(sink *o, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(o->n < o->size ? o->p + o->n : NULL, o->n < o->size ? o->size - o->n : 0, fmt, ap);
    va_end(ap);
    o->n += n > 0 ? (size_t)n : 0;
}

static void put_list(sink *o, const char *before, const int64_t *x, uint32_t n) {
    put(o, "%s[", before);
    for (uint32_t i = 0; i < n; i++) put(o, "%s%" PRId64, i ? "," : "", x[i]);
    put(o, "]");
}

/* The tag that d's digits have when they are dense: outer parts by stride, then blocks by stride. False: too many. */
static bool tag_of(const rl_desc *d, rl_tag *t) {
    uint8_t order[RL_DESC_DIGITS];
    rl_desc_order(d, order);
    *t = (rl_tag){0};
    for (int blocks = 0; blocks < 2; blocks++) {
        for (uint32_t i = 0; i < d->ndigit; i++) {
            const rl_digit *x = &d->digit[order[i]];
            bool block = order[i] > 0 && x[-1].axis == x->axis;
            if (block != (blocks == 1)) continue;
            if (block && x->size < 2) return false;
            t->axis[t->n] = (uint8_t)x->axis;
            t->block[t->n++] = block ? x->size : 0;
        }
    }
    return true;
}

/* Whether the tag and these padded sizes give d's digits and strides. */
static bool is_tag(const rl_desc *d, const rl_tag *t, const int64_t *pad) {
    rl_desc x;
    if (rl_desc_of_tag(d->dtype, d->rank, d->dim, t, pad, &x, NULL) != RL_OK || x.ndigit != d->ndigit) return false;
    for (uint32_t i = 0; i < d->ndigit; i++)
        if (x.digit[i].size != d->digit[i].size || x.digit[i].stride != d->digit[i].stride) return false;
    return true;
}

static void put_tag(sink *o, const rl_desc *d, const rl_tag *t) {
    uint32_t straight = 0;
    while (straight < t->n && t->axis[straight] == straight) straight++;
    if (straight == t->n && t->n == d->rank) return; /* row-major needs no name */
    put(o, "@");
    for (uint32_t i = 0; i < d->rank; i++) put(o, "%c", (rl_desc_block(d, t->axis[i]) > 1 ? 'A' : 'a') + t->axis[i]);
    for (uint32_t i = d->rank; i < t->n; i++) put(o, "%" PRId64 "%c", t->block[i], 'a' + t->axis[i]);
}

static void put_digits(sink *o, const rl_desc *d) {
    put(o, "@{");
    for (uint32_t i = 0; i < d->ndigit; i++) {
        const rl_digit *x = &d->digit[i];
        put(o, "%s%" PRId64 ":%" PRId64, i == 0 ? "" : x[-1].axis == x->axis ? "*" : ",", x->size, x->stride);
    }
    put(o, "}");
}

size_t rl_desc_print(const rl_desc *d, char *out, size_t size) {
    sink o = {out, size, 0};
    rl_tag t;
    int64_t padded[RL_DESC_RANK], stride[RL_DESC_RANK] = {0};
    bool pads = false, strided = d->ndigit == d->rank;
    for (uint32_t a = 0; a < d->rank; a++) {
        int64_t block = rl_desc_block(d, a);
        padded[a] = rl_desc_padded(d, a);
        if (strided) stride[a] = d->digit[a].stride;
        pads = pads || (block ? (d->dim[a] + block - 1) / block * block : 0) != padded[a];
    }
    bool tagged = tag_of(d, &t) && is_tag(d, &t, padded);
    if (size) *out = 0;
    put(&o, "%s", rl_dtype_name((rl_dtype)d->dtype));
    put_list(&o, "", d->dim, d->rank);
    if (tagged) put_tag(&o, d, &t);
    else if (!strided) put_digits(&o, d);
    if (pads && (tagged || strided)) put_list(&o, " pad=", padded, d->rank);
    if (!tagged && strided) put_list(&o, " strides=", stride, d->rank);
    if (d->offset) put(&o, " offset=%" PRId64, d->offset);
    return o.n;
}

/* ---- reading ---- */

typedef struct {
    const char *text, *s;
    rl_error *e;
} reader;

static rl_status wrong(const reader *r, const char *what) {
    return rl_desc_fail(r->e, RL_EUSAGE, "'%.80s', at column %zu: %s", r->text, (size_t)(r->s - r->text) + 1, what);
}

static bool eat(reader *r, char c) {
    if (*r->s != c) return false;
    r->s++;
    return true;
}

static rl_status read_number(reader *r, int64_t *x) {
    bool minus = eat(r, '-');
    if (*r->s < '0' || *r->s > '9') return wrong(r, "a number is wanted here");
    for (*x = 0; *r->s >= '0' && *r->s <= '9'; r->s++) {
        int64_t digit = minus ? '0' - *r->s : *r->s - '0';
        if (__builtin_mul_overflow(*x, 10, x) || __builtin_add_overflow(*x, digit, x)) return wrong(r, "a number over 64 bits");
    }
    return RL_OK;
}

/* [1,2,3]; [] has none. */
static rl_status read_list(reader *r, int64_t *x, uint32_t *n) {
    *n = 0;
    if (!eat(r, '[')) return wrong(r, "[ is wanted here");
    if (eat(r, ']')) return RL_OK;
    do {
        if (*n == RL_DESC_RANK) return wrong(r, "a layout has at most 8 dims");
        RL_TRY(read_number(r, &x[(*n)++]));
    } while (eat(r, ','));
    return eat(r, ']') ? RL_OK : wrong(r, ", or ] is wanted here");
}

/* {2:576,16:36*4:1} */
static rl_status read_digits(reader *r, rl_desc *d) {
    for (uint32_t a = 0; a < d->rank; a++) {
        if (!eat(r, a ? ',' : '{')) return wrong(r, "each dim needs its digits, size:stride");
        do {
            if (d->ndigit == RL_DESC_DIGITS) return wrong(r, "a layout has at most 24 digits");
            rl_digit *x = &d->digit[d->ndigit++];
            x->axis = a;
            RL_TRY(read_number(r, &x->size));
            if (!eat(r, ':')) return wrong(r, ": and the stride are wanted here");
            RL_TRY(read_number(r, &x->stride));
        } while (eat(r, '*'));
    }
    if (d->rank == 0 && !eat(r, '{')) return wrong(r, "{ is wanted here");
    return eat(r, '}') ? RL_OK : wrong(r, "} is wanted here");
}

/* "ab(cd)->dabc d=2", as a graph edge has it. */
static rl_status read_edge(reader *r, rl_ctx *ctx, rl_desc *d) {
    const rl_layout *l = NULL;
    const char *why = NULL;
    if (RL_PROTECT(ctx)) return rl_desc_fail(r->e, RL_ENOMEM, "out of memory");
    if (!rl_layout_parse(&ctx->mem, &r->s, d->rank, d->dim, &l, &why)) return wrong(r, why);
    return rl_desc_of_layout((rl_dtype)d->dtype, d->rank, d->dim, l, d, r->e);
}

static rl_status read_quoted(reader *r, rl_desc *d) {
    for (uint32_t a = 0; a < d->rank; a++)
        if (d->dim[a] < 0) return rl_desc_fail(r->e, RL_EUSAGE, "the size of axis %u is %lld; no size is negative", a, (long long)d->dim[a]);
    rl_ctx *ctx = rl_ctx_new(0);
    if (!ctx) return rl_desc_fail(r->e, RL_ENOMEM, "out of memory");
    rl_status s = read_edge(r, ctx, d);
    rl_ctx_free(ctx);
    return s;
}

typedef struct { bool pads, strided, offsets; int64_t pad[RL_DESC_RANK], stride[RL_DESC_RANK], offset; } extras;

static rl_status read_extra(reader *r, uint32_t rank, extras *x) {
    static const char *const keys[] = {"pad=", "strides=", "offset="};
    bool *given[] = {&x->pads, &x->strided, &x->offsets};
    uint32_t k = 0, n = rank;
    while (k < RL_LEN(keys) && strncmp(r->s, keys[k], strlen(keys[k])) != 0) k++;
    if (k == RL_LEN(keys)) return wrong(r, "pad=, strides= or offset= is wanted here");
    if (*given[k]) return wrong(r, "this stands twice");
    *given[k] = true;
    r->s += strlen(keys[k]);
    RL_TRY(k == 2 ? read_number(r, &x->offset) : read_list(r, k ? x->stride : x->pad, &n));
    return n == rank ? RL_OK : wrong(r, "pad and strides have one number for each dim");
}

/* The tag's outer parts get the strides; what the tag has of blocks stays dense. */
static void set_strides(rl_desc *d, const int64_t *stride) {
    for (uint32_t a = 0; a < d->rank; a++) d->digit[rl_desc_axis(d, a).first].stride = stride[a];
}

static rl_status read_layout(reader *r, rl_desc *d) {
    rl_tag t;
    extras x = {0};
    const char *row = "contiguous", *why = NULL;
    bool given = eat(r, '@'), quoted = given && *r->s == '"', digits = quoted || (given && *r->s == '{');
    rl_tag_parse(&row, d->rank, &t, &why);
    if (given && (strcmp(r->s, "coo") == 0 || strcmp(r->s, "csr") == 0)) return rl_desc_named(d->dtype, d->rank, d->dim, r->s, NULL, d, r->e);
    if (digits) RL_TRY(quoted ? read_quoted(r, d) : read_digits(r, d));
    else if (given && !rl_tag_parse(&r->s, d->rank, &t, &why)) return wrong(r, why);
    while (eat(r, ' '))
        if (*r->s != ' ' && *r->s) RL_TRY(read_extra(r, d->rank, &x));
    if (*r->s) return wrong(r, "this is left over");
    if (digits && (x.pads || x.strided)) return wrong(r, "digits have their strides and padding in them");
    if (!digits) RL_TRY(rl_desc_of_tag(d->dtype, d->rank, d->dim, &t, x.pads ? x.pad : NULL, d, r->e));
    if (x.strided) set_strides(d, x.stride);
    d->offset = x.offset;
    return rl_desc_check(d, 0, r->e);
}

rl_status rl_desc_parse(const char *text, rl_desc *out, rl_error *e) {
    reader r = {text, text, e};
    rl_desc d = {0};
    RL_WANTS(e, text, out);
    size_t n = strcspn(text, "[");
    d.dtype = (int32_t)rl_desc_dtype(text, n);
    if (!rl_desc_bits(&d)) return wrong(&r, "an element type is wanted here: i8, f32, u4, int8, ...");
    r.s += n;
    RL_TRY(read_list(&r, d.dim, &d.rank));
    RL_TRY(read_layout(&r, &d));
    *out = d;
    return RL_OK;
}
