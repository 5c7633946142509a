/* The commands `layout ...`: see include/relayout.h for what layouts are, docs/layouts.md for what it prints.
 *
 * A layout is given as a name (NCHW4, aBcd16b) with --shape and --dtype, or whole: 'i8[2,64,3,3]@NCHW4 offset=5'.  Options and name
 * are put together to the whole text, so there is one reader.  `convert` reads the bytes of a buffer, or an .npy file; with a name that
 * only permutes, the file's dims are those of the name's letters in their order (an array of shape N,H,W,C is --from nhwc). */
#include "layout_cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/onnx_internal.h"
#include "convert.h"
#include "values.h"

typedef struct {
    rl_ctx *ctx;
    rl_arena mem;
    rl_error e;
    rl_layoutopt o;
} line;

/* ---- reading what the user said ---- */

static rl_status failed(line *l, rl_status s) {
    return l->e.text[0] ? rl_fail(l->ctx, s, "%s", l->e.text) : s;
}

/* The text that name and options stand for; shape: in place of --shape. */
static rl_status parse_layout(line *l, const char *name, const char *shape, const char *dtype, rl_desc *d) {
    rl_text t = {.mem = &l->mem};
    if (strchr(name, '[')) return failed(l, rl_desc_parse(name, d, &l->e));
    if (!shape) return rl_fail(l->ctx, RL_EUSAGE, "'%s' of which sizes? --shape N,N,..", name);
    rl_put(&t, "%s[%s]@%s", dtype ? dtype : "f32", shape, name);
    if (l->o.pad) rl_put(&t, " pad=[%s]", l->o.pad);
    if (l->o.strides) rl_put(&t, " strides=[%s]", l->o.strides);
    if (l->o.offset) rl_put(&t, " offset=%s", l->o.offset);
    return failed(l, rl_desc_parse(t.p, d, &l->e));
}

/* Options that what was named has already, for all of the n layouts: they would be left out without a word. */
static rl_status check_options(line *l, const char *const *name, int n) {
    const rl_layoutopt *o = &l->o;
    const char *const given[][2] = {{"shape", o->shape}, {"dtype", o->dtype}, {"strides", o->strides}, {"pad", o->pad}, {"offset", o->offset}};
    for (int i = 0; i < n; i++)
        if (!strchr(name[i], '[')) return RL_OK;
    for (size_t i = 0; i < RL_LEN(given); i++)
        if (given[i][1]) return rl_fail(l->ctx, RL_EUSAGE, "--%s goes with a layout's name, and '%.200s' has all", given[i][0], name[0]);
    return RL_OK;
}

static rl_status layout_arg(line *l, int i, rl_desc *d) {
    return parse_layout(l, l->o.arg[i], l->o.shape, l->o.dtype, d);
}

static const char *name_of(line *l, const rl_desc *d) {
    size_t n = rl_desc_print(d, NULL, 0) + 1;
    char *s = rl_alloc(&l->mem, n);
    rl_desc_print(d, s, n);
    return s;
}

/* Elements as bytes, with the half and quarter bytes of small types. */
static const char *bytes_of(line *l, const rl_desc *d, int64_t elements) {
    rl_text t = {.mem = &l->mem};
    int64_t bits;
    if (__builtin_mul_overflow(elements, (int64_t)rl_desc_bits(d), &bits) || bits % 8)
        rl_put(&t, "%.9g", (double)elements * rl_desc_bits(d) / 8);
    else rl_put(&t, "%" PRId64, bits / 8);
    return t.p;
}

/* ---- describe ---- */

static void put_axis(line *l, const rl_desc *d, uint32_t a) {
    rl_digits x = rl_desc_axis(d, a);
    const rl_digit *g = &d->digit[x.first];
    printf("%4u %8" PRId64 " %8" PRId64 " %8" PRId64 " %10" PRId64 " %10s", a, d->dim[a], rl_desc_padded(d, a), rl_desc_block(d, a),
           g->stride, bytes_of(l, d, g->stride));
    for (uint32_t i = 1; i < x.n; i++) printf("%s%" PRId64 " of %" PRId64, i == 1 ? "  in a block: " : ", ", g[i].size, g[i].stride);
    printf("\n");
}

static void put_formats(const rl_desc *d) {
    static const char *const names[] = {"contiguous", "channels_last", "channels_last_3d"};
    if (!rl_desc_is_strided(d)) return;
    printf("contiguous as:");
    bool any = false;
    for (int f = RL_CONTIGUOUS; f <= RL_CHANNELS_LAST_3D; f++) {
        if (!rl_is_contiguous(d, (rl_memory_format)f)) continue;
        printf(" %s", names[f]);
        any = true;
    }
    printf("%s; suggested: %s%s\n", any ? "" : " nothing", names[rl_suggest_format(d)], rl_desc_is_dense(d) ? "; dense" : "");
}

static rl_status describe(line *l) {
    rl_desc d;
    RL_TRY(check_options(l, l->o.arg, 1));
    RL_TRY(layout_arg(l, 0, &d));
    int64_t padded = 1, elements = rl_desc_elements(&d);
    for (uint32_t a = 0; a < d.rank; a++) padded *= rl_desc_padded(&d, a);
    printf("%s\n", name_of(l, &d));
    printf("axis     size   padded    block     stride      bytes\n");
    for (uint32_t a = 0; a < d.rank; a++) put_axis(l, &d, a);
    printf("elements: %" PRId64 ", padding: %" PRId64 "; bytes: %" PRId64 ", minimum buffer: %" PRId64 "\n", elements, padded - elements,
           rl_desc_bytes(&d), rl_min_buffer_bytes(&d));
    put_formats(&d);
    int overlaps = rl_desc_overlaps(&d);
    if (overlaps) printf("%s\n", overlaps > 0 ? "elements overlap: can be read, not written" : "elements may overlap");
    return RL_OK;
}

/* ---- offset ---- */

static rl_status parse_index(line *l, const rl_desc *d, int64_t *index) {
    const char *s = l->o.index;
    if (!s) return rl_fail(l->ctx, RL_EUSAGE, "of which element? --index I,J,..");
    for (uint32_t a = 0; a < d->rank; a++) {
        char *end;
        index[a] = strtoll(s, &end, 10);
        if (end == s || *end != (a + 1 < d->rank ? ',' : 0))
            return rl_fail(l->ctx, RL_EUSAGE, "--index '%s' is not %u numbers", l->o.index, d->rank);
        if (index[a] < 0 || index[a] >= d->dim[a])
            return rl_fail(l->ctx, RL_EUSAGE, "index %" PRId64 " of axis %u, which has %" PRId64 " elements", index[a], a, d->dim[a]);
        s = end + 1;
    }
    return RL_OK;
}

static rl_status offset(line *l) {
    rl_desc d;
    int64_t index[RL_DESC_RANK];
    RL_TRY(check_options(l, l->o.arg, 1));
    RL_TRY(layout_arg(l, 0, &d));
    RL_TRY(parse_index(l, &d, index));
    int64_t at = rl_desc_offset(&d, index), bit = at * (int64_t)rl_desc_bits(&d);
    printf("element %" PRId64 ", byte %" PRId64, at, bit / 8);
    if (rl_desc_bits(&d) < 8) printf(", bits %" PRId64 " to %" PRId64, bit % 8, bit % 8 + rl_desc_bits(&d) - 1);
    printf("\n");
    return RL_OK;
}

/* ---- compare ---- */

static rl_status compare(line *l) {
    rl_desc a, b;
    rl_comparison x;
    RL_TRY(check_options(l, l->o.arg, 2));
    RL_TRY(layout_arg(l, 0, &a));
    RL_TRY(layout_arg(l, 1, &b));
    RL_TRY(failed(l, rl_desc_compare(&a, &b, &x, &l->e)));
    printf("%s\n%s\n", name_of(l, &a), name_of(l, &b));
    if (x.relation == RL_SAME) printf("same bytes: nothing to convert\n");
    if (x.relation == RL_VIEW) printf("view: the first buffer can be used as the second, no bytes move\n");
    if (x.relation == RL_COPY)
        printf("copy: %" PRId64 " bytes move, %" PRId64 " bytes of padding are zeroed\n", x.moved_bytes, x.padding_bytes);
    if (x.select_axis < 0) return RL_OK;
    int64_t *index = rl_new(&l->mem, int64_t, a.dim[x.select_axis]);
    rl_desc_select(&a, &b, index);
    printf("as index_select on axis %d, index", x.select_axis);
    for (int64_t i = 0; i < a.dim[x.select_axis]; i++) printf("%c%" PRId64, i ? ',' : ' ', index[i]);
    printf("\n");
    return RL_OK;
}

/* ---- draw ---- */

static rl_status draw(line *l) {
    rl_desc d;
    char *picture;
    RL_TRY(check_options(l, l->o.arg, 1));
    RL_TRY(layout_arg(l, 0, &d));
    RL_TRY(failed(l, rl_desc_draw(&d, l->o.to ? l->o.to : "text", &picture, &l->e)));
    rl_status s = RL_OK;
    if (l->o.out) s = rl_file_write(l->ctx, l->o.out, picture, strlen(picture));
    else fputs(picture, stdout);
    rl_free(picture);
    return s;
}

/* ---- convert ---- */

static bool is_npy(const char *path) {
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npy") == 0;
}

/* An array's dims and strides as the descriptor that --from says they are: axis tag.axis[i] is the array's dim i. */
static rl_status of_array(line *l, const rl_tensor *t, rl_desc *d) {
    const char *s = l->o.from, *why = NULL;
    rl_tag tag;
    int64_t dim[RL_DESC_RANK], stride[RL_DESC_RANK];
    if (t->rank > RL_DESC_RANK) return rl_fail(l->ctx, RL_ELIMIT, "%s: rank %u; a layout has at most 8 dims", l->o.arg[0], t->rank);
    if (!rl_tag_parse(&s, t->rank, &tag, &why)) return rl_fail(l->ctx, RL_EUSAGE, "'%s' at rank %u: %s", l->o.from, t->rank, why);
    if (tag.n != t->rank || *s) return rl_fail(l->ctx, RL_EUSAGE, "'%s' has blocks: which sizes does it stand for? --shape N,N,..", l->o.from);
    for (uint32_t i = 0; i < t->rank; i++) {
        dim[tag.axis[i]] = t->dim[i];
        stride[tag.axis[i]] = t->stride[i];
    }
    return failed(l, rl_desc_strided((int32_t)t->dtype, t->rank, dim, stride, t->offset, d, &l->e));
}

/* Bytes to where one more step of the outermost digit would begin: rows with gaps end so. */
static size_t most_bytes(const rl_desc *d) {
    int64_t most = rl_min_buffer_bytes(d), end, bits;
    for (uint32_t i = 0; i < d->ndigit; i++)
        if (!__builtin_mul_overflow(d->digit[i].size, d->digit[i].stride, &end) && !__builtin_add_overflow(end, d->offset, &end)
            && !__builtin_mul_overflow(end, (int64_t)rl_desc_bits(d), &bits)) most = RL_MAX(most, bits / 8);
    return (size_t)most;
}

/* The input's bytes and what they are. */
static rl_status read_input(line *l, rl_rt *rt, rl_span file, rl_desc *d, rl_tensor *t, rl_span *bytes) {
    *bytes = file;
    if (is_npy(l->o.arg[0])) {
        RL_TRY(rl_npy_read(rt, l->o.arg[0], file, t));
        *bytes = (rl_span){t->mem->p, t->mem->nbyte};
        if (!l->o.shape && !strchr(l->o.from, '[')) return of_array(l, t, d);
    }
    RL_TRY(parse_layout(l, l->o.from, l->o.shape, l->o.dtype ? l->o.dtype : t->mem ? rl_dtype_name(t->dtype) : NULL, d));
    if (bytes->n < (size_t)rl_desc_bytes(d) || bytes->n > most_bytes(d))
        return rl_fail(l->ctx, RL_EUSAGE, "%s has %zu bytes, %s needs %" PRId64, l->o.arg[0], bytes->n, name_of(l, d), rl_desc_bytes(d));
    return RL_OK;
}

/* The output's layout: its name with the input's sizes and type. */
static rl_status output_layout(line *l, const rl_desc *from, rl_desc *d) {
    rl_text shape = {.mem = &l->mem};
    l->o.strides = l->o.pad = l->o.offset = NULL; /* those were the input's */
    rl_put(&shape, "%s", "");
    for (uint32_t a = 0; a < from->rank; a++) rl_put(&shape, "%s%" PRId64, a ? "," : "", from->dim[a]);
    return parse_layout(l, l->o.to, shape.p, rl_dtype_name((rl_dtype)from->dtype), d);
}

/* An array whose dims are the digits in memory order; only for buffers without gaps. */
static rl_status write_array(line *l, rl_rt *rt, const rl_desc *d, const void *p, size_t n) {
    uint8_t order[RL_DESC_DIGITS];
    int64_t dim[RL_DESC_DIGITS], step = 1;
    rl_text t = {.mem = &l->mem};
    rl_desc_order(d, order);
    for (uint32_t i = d->ndigit; i-- > 0; step *= dim[i]) {
        dim[i] = d->digit[order[i]].size;
        if (dim[i] != 1 && d->digit[order[i]].stride != step)
            return rl_fail(l->ctx, RL_EUSAGE, "%s has gaps, which an .npy file has not: write raw bytes", name_of(l, d));
    }
    rl_tensor x = rl_tensor_borrow(rt, (rl_dtype)d->dtype, d->ndigit, dim, p, n);
    bool ok = d->offset == 0 && rl_npy_print(rt, &x, &t);
    rl_tensor_drop(&x);
    return ok ? rl_file_write(l->ctx, l->o.arg[1], t.p, t.n) : rl_fail(l->ctx, RL_EUSAGE, "%s does not fit an .npy file: write raw bytes",
                                                                     name_of(l, d));
}

static rl_status convert_file(line *l, rl_rt *rt, rl_span file) {
    rl_desc from, to;
    rl_tensor t = {0};
    rl_span in;
    RL_TRY(read_input(l, rt, file, &from, &t, &in));
    RL_TRY(output_layout(l, &from, &to));
    size_t n = (size_t)rl_desc_bytes(&to);
    void *out = rl_alloc(&l->mem, n + 1);
    RL_TRY(failed(l, rl_desc_convert(&to, out, n, &from, in.p, in.n, &l->e)));
    rl_tensor_drop(&t);
    RL_TRY(is_npy(l->o.arg[1]) ? write_array(l, rt, &to, out, n) : rl_file_write(l->ctx, l->o.arg[1], out, n));
    printf("%s -> %s, %zu bytes\n", name_of(l, &from), name_of(l, &to), n);
    return RL_OK;
}

static rl_status convert(line *l) {
    rl_span file;
    if (!l->o.from || !l->o.to) return rl_fail(l->ctx, RL_EUSAGE, "convert needs --from LAYOUT and --to LAYOUT");
    RL_TRY(check_options(l, &l->o.from, 1));
    RL_TRY(rl_file_map(l->ctx, l->o.arg[0], (uint64_t)1 << 40, &file, NULL));
    rl_rt *rt = rl_rt_new(l->ctx, &rl_backend_cpu, 1);
    rl_status s = rt ? convert_file(l, rt, file) : rl_fail(l->ctx, RL_ENOMEM, "out of memory");
    rl_rt_free(rt);
    rl_file_unmap(file);
    return s;
}

/* ---- entries ---- */

static rl_status protected(line *l, rl_status (*what)(line *l)) {
    return RL_PROTECT(l->ctx) ? RL_ENOMEM : what(l);
}

static rl_status run(rl_ctx *ctx, const rl_layoutopt *o, rl_status (*what)(line *l)) {
    line l = {.ctx = ctx, .o = *o};
    rl_arena_init(&l.mem, ctx);
    rl_status s = protected(&l, what);
    rl_arena_free(&l.mem);
    return s;
}

rl_status rl_layout_describe(rl_ctx *ctx, const rl_layoutopt *o) { return run(ctx, o, describe); }
rl_status rl_layout_offset(rl_ctx *ctx, const rl_layoutopt *o) { return run(ctx, o, offset); }
rl_status rl_layout_convert(rl_ctx *ctx, const rl_layoutopt *o) { return run(ctx, o, convert); }
rl_status rl_layout_draw(rl_ctx *ctx, const rl_layoutopt *o) { return run(ctx, o, draw); }
rl_status rl_layout_compare(rl_ctx *ctx, const rl_layoutopt *o) { return run(ctx, o, compare); }
