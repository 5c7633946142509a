/* The command `layout`: see include/relayout.h for what layouts are, docs/layouts.md for what it prints.
 *
 * A layout is given as a name (NCHW4, aBcd16b) with --shape and --dtype, or whole: 'i8[2,64,3,3]@NCHW4 offset=5'.  Options and name
 * are put together to the whole text, so there is one reader.  `convert` reads the bytes of a buffer, or an .npy file; with a name that
 * only permutes, the file's dims are those of the name's letters in their order (an array of shape N,H,W,C is --from nhwc). */
#include "layout_cmd.h"

#include <getopt.h>
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
    const char *shape, *dtype, *strides, *pad, *offset, *index, *from, *to, *out;
    const char *arg[2];
    int narg;
} line;

typedef struct { const char *name, *usage, *help; int narg; rl_status (*run)(line *l); } command;

static rl_status describe(line *l);
static rl_status offset(line *l);
static rl_status convert(line *l);
static rl_status draw(line *l);
static rl_status compare(line *l);

static const command commands[] = {
    {"describe", "LAYOUT", "sizes, strides, blocks, bytes", 1, describe},
    {"offset", "LAYOUT --index I,J,..", "where an element lies", 1, offset},
    {"convert", "IN OUT --from LAYOUT --to LAYOUT", "copy a buffer (or an .npy file) to another layout", 2, convert},
    {"draw", "LAYOUT [--to text|svg] [-o FILE]", "the buffer in memory order", 1, draw},
    {"compare", "LAYOUT LAYOUT", "same bytes, a view, or a copy, and of how much", 2, compare},
};

enum { O_SHAPE = 256, O_DTYPE, O_STRIDES, O_PAD, O_OFFSET, O_INDEX, O_FROM, O_TO };
static const struct option options[] = {
    {"shape", required_argument, NULL, O_SHAPE},     {"dtype", required_argument, NULL, O_DTYPE},
    {"strides", required_argument, NULL, O_STRIDES}, {"pad", required_argument, NULL, O_PAD},
    {"offset", required_argument, NULL, O_OFFSET},   {"index", required_argument, NULL, O_INDEX},
    {"from", required_argument, NULL, O_FROM},       {"to", required_argument, NULL, O_TO},
    {"output", required_argument, NULL, 'o'},        {"help", no_argument, NULL, 'h'},
    {0}};

static void help(void) {
    printf("usage: relayout layout COMMAND ...\n\n");
    for (size_t i = 0; i < RL_LEN(commands); i++) printf("  %-9s %-34s %s\n", commands[i].name, commands[i].usage, commands[i].help);
    printf("\nLAYOUT is a name (NCHW, nhwc, NCHW4, nChw16c, aBcd16b, OIhw16i16o, channels_last, ...) with\n"
           "  --shape N,N,..     the logical sizes, in the order N C H W, O I H W, a b c d\n"
           "  --dtype T          f32 (default), int8, u4, ...\n"
           "  --strides N,N,..   elements between steps of each axis, instead of packed\n"
           "  --pad N,N,..       sizes to count to at least\n"
           "  --offset N         the element where index 0 lies\n"
           "or a whole text: 'i8[2,64,3,3]@NCHW4', 'f32[2,3] strides=[5,1] offset=4'.\n");
}

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
    if (l->pad) rl_put(&t, " pad=[%s]", l->pad);
    if (l->strides) rl_put(&t, " strides=[%s]", l->strides);
    if (l->offset) rl_put(&t, " offset=%s", l->offset);
    return failed(l, rl_desc_parse(t.p, d, &l->e));
}

static rl_status layout_arg(line *l, int i, rl_desc *d) {
    return parse_layout(l, l->arg[i], l->shape, l->dtype, d);
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
    const char *s = l->index;
    if (!s) return rl_fail(l->ctx, RL_EUSAGE, "of which element? --index I,J,..");
    for (uint32_t a = 0; a < d->rank; a++) {
        char *end;
        index[a] = strtoll(s, &end, 10);
        if (end == s || *end != (a + 1 < d->rank ? ',' : 0))
            return rl_fail(l->ctx, RL_EUSAGE, "--index '%s' is not %u numbers", l->index, d->rank);
        if (index[a] < 0 || index[a] >= d->dim[a])
            return rl_fail(l->ctx, RL_EUSAGE, "index %" PRId64 " of axis %u, which has %" PRId64 " elements", index[a], a, d->dim[a]);
        s = end + 1;
    }
    return RL_OK;
}

static rl_status offset(line *l) {
    rl_desc d;
    int64_t index[RL_DESC_RANK];
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
    RL_TRY(layout_arg(l, 0, &d));
    RL_TRY(failed(l, rl_desc_draw(&d, l->to ? l->to : "text", &picture, &l->e)));
    rl_status s = RL_OK;
    if (l->out) s = rl_file_write(l->ctx, l->out, picture, strlen(picture));
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
    const char *s = l->from, *why = NULL;
    rl_tag tag;
    int64_t dim[RL_DESC_RANK], stride[RL_DESC_RANK];
    if (t->rank > RL_DESC_RANK) return rl_fail(l->ctx, RL_ELIMIT, "%s: rank %u; a layout has at most 8 dims", l->arg[0], t->rank);
    if (!rl_tag_parse(&s, t->rank, &tag, &why)) return rl_fail(l->ctx, RL_EUSAGE, "'%s' at rank %u: %s", l->from, t->rank, why);
    if (tag.n != t->rank || *s) return rl_fail(l->ctx, RL_EUSAGE, "'%s' has blocks: which sizes does it stand for? --shape N,N,..", l->from);
    for (uint32_t i = 0; i < t->rank; i++) {
        dim[tag.axis[i]] = t->dim[i];
        stride[tag.axis[i]] = t->stride[i];
    }
    return failed(l, rl_desc_strided((int32_t)t->dtype, t->rank, dim, stride, t->offset, d, &l->e));
}

/* The input's bytes and what they are. */
static rl_status read_input(line *l, rl_rt *rt, rl_span file, rl_desc *d, rl_tensor *t, rl_span *bytes) {
    *bytes = file;
    if (is_npy(l->arg[0])) {
        RL_TRY(rl_npy_read(rt, l->arg[0], file, t));
        *bytes = (rl_span){t->mem->p, t->mem->nbyte};
        if (!l->shape && !strchr(l->from, '[')) return of_array(l, t, d);
    }
    RL_TRY(parse_layout(l, l->from, l->shape, l->dtype ? l->dtype : t->mem ? rl_dtype_name(t->dtype) : NULL, d));
    if (bytes->n < (size_t)rl_desc_bytes(d))
        return rl_fail(l->ctx, RL_EUSAGE, "%s has %zu bytes, %s needs %" PRId64, l->arg[0], bytes->n, name_of(l, d), rl_desc_bytes(d));
    return RL_OK;
}

/* The output's layout: its name with the input's sizes and type. */
static rl_status output_layout(line *l, const rl_desc *from, rl_desc *d) {
    rl_text shape = {.mem = &l->mem};
    l->strides = l->pad = l->offset = NULL; /* those were the input's */
    rl_put(&shape, "%s", "");
    for (uint32_t a = 0; a < from->rank; a++) rl_put(&shape, "%s%" PRId64, a ? "," : "", from->dim[a]);
    return parse_layout(l, l->to, shape.p, rl_dtype_name((rl_dtype)from->dtype), d);
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
    return ok ? rl_file_write(l->ctx, l->arg[1], t.p, t.n) : rl_fail(l->ctx, RL_EUSAGE, "%s does not fit an .npy file: write raw bytes",
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
    RL_TRY(is_npy(l->arg[1]) ? write_array(l, rt, &to, out, n) : rl_file_write(l->ctx, l->arg[1], out, n));
    printf("%s -> %s, %zu bytes\n", name_of(l, &from), name_of(l, &to), n);
    return RL_OK;
}

static rl_status convert(line *l) {
    rl_span file;
    if (!l->from || !l->to) return rl_fail(l->ctx, RL_EUSAGE, "convert needs --from LAYOUT and --to LAYOUT");
    RL_TRY(rl_file_map(l->ctx, l->arg[0], (uint64_t)1 << 40, &file));
    rl_rt *rt = rl_rt_new(l->ctx, &rl_backend_cpu, 1);
    rl_status s = rt ? convert_file(l, rt, file) : rl_fail(l->ctx, RL_ENOMEM, "out of memory");
    rl_rt_free(rt);
    rl_file_unmap(file);
    return s;
}

/* ---- the command line ---- */

static rl_status parse(line *l, int argc, char **argv) {
    argv[0] = (char[]){"relayout layout"};
    optind = 1;
    for (int key; (key = getopt_long(argc, argv, "o:h", options, NULL)) != -1;) {
        const char **const to[] = {&l->shape, &l->dtype, &l->strides, &l->pad, &l->offset, &l->index, &l->from, &l->to};
        if (key == 'o') l->out = optarg;
        else if (key >= O_SHAPE) *to[key - O_SHAPE] = optarg;
        else return RL_EUSAGE; /* getopt has said what is wrong */
    }
    for (; optind < argc; optind++) {
        if (l->narg == (int)RL_LEN(l->arg)) return rl_fail(l->ctx, RL_EUSAGE, "what is '%s'?", argv[optind]);
        l->arg[l->narg++] = argv[optind];
    }
    return RL_OK;
}

static rl_status run(line *l, const command *c, int argc, char **argv) {
    if (RL_PROTECT(l->ctx)) return RL_ENOMEM;
    rl_arena_init(&l->mem, l->ctx);
    RL_TRY(parse(l, argc, argv));
    if (l->narg != c->narg) return rl_fail(l->ctx, RL_EUSAGE, "usage: relayout layout %s %s", c->name, c->usage);
    return c->run(l);
}

rl_status rl_layout_command(int argc, char **argv) {
    line l = {0};
    const command *c = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0) continue;
        help();
        return RL_OK;
    }
    for (size_t i = 0; argc > 1 && i < RL_LEN(commands); i++)
        if (strcmp(commands[i].name, argv[1]) == 0) c = &commands[i];
    if (!c) {
        fprintf(stderr, "relayout: layout what? describe, offset, convert, draw or compare; see relayout layout --help\n");
        return RL_EUSAGE;
    }
    l.ctx = rl_ctx_new(0);
    if (!l.ctx) return RL_ENOMEM;
    rl_status s = run(&l, c, argc - 1, argv + 1);
    if (s == RL_OK && fflush(stdout) != 0) s = rl_fail(l.ctx, RL_EIO, "stdout cannot be written");
    if (s != RL_OK && l.ctx->error[0]) fprintf(stderr, "relayout: %s\n", l.ctx->error);
    rl_ctx_free(l.ctx);
    return s;
}
