/* Pictures of a buffer: its cells in memory order, each with the row-major position of the element that lies there, as MegEngine's
 * documents draw NCHW, NHWC, NCHW4 and CHWN4.  A line holds whole inner blocks, up to 16 cells; of long lines and of many lines only
 * the first and the last are drawn.  Text and SVG are two ways to write the same cells. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "desc.h"

enum { LINE = 16, LINES = 12, FIRST = 10, MOST = 1 << 20, EMPTY = -1, CROWDED = -2 };

typedef struct {
    const rl_desc *d;
    int64_t n, width, inner; /* cells in all, per line, per inner block */
    int64_t *cell;           /* the element's position; EMPTY padding or gap; CROWDED several elements */
    int digits;              /* of the longest number */
    rl_text t;
} picture;

/* How many cells the innermost digits fill without a gap, up to `most`; *inner: the innermost alone. */
static int64_t line_width(const rl_desc *d, int64_t most, int64_t *inner) {
    uint8_t order[RL_DESC_DIGITS];
    int64_t width = 1;
    rl_desc_order(d, order);
    *inner = 0;
    for (uint32_t i = d->ndigit; i-- > 0;) {
        const rl_digit *x = &d->digit[order[i]];
        if (x->size == 1 || x->stride == 0) continue;
        if (x->stride != width || (*inner && width * x->size > most)) break;
        width *= x->size;
        if (!*inner) *inner = width;
    }
    if (!*inner) *inner = 1;
    return width;
}

static void fill(picture *p) {
    int64_t index[RL_DESC_RANK] = {0}, all = rl_desc_elements(p->d);
    for (int64_t i = 0; i < p->n; i++) p->cell[i] = EMPTY;
    for (int64_t k = 0; k < all; k++) {
        int64_t *c = &p->cell[rl_desc_offset(p->d, index)];
        *c = *c == EMPTY ? k : CROWDED;
        for (uint32_t a = p->d->rank; a-- > 0;) {
            if (++index[a] < p->d->dim[a]) break;
            index[a] = 0;
        }
    }
    p->digits = 1;
    for (int64_t x = all - 1; x > 9; x /= 10) p->digits++;
}

/* The k-th of n things when only the first and the last are drawn: -1 stands for what is left out, -2 for the end. */
static int64_t shown(int64_t k, int64_t n, int64_t most, int64_t first) {
    if (n <= most) return k < n ? k : -2;
    return k < first ? k : k == first ? -1 : k == first + 1 ? n - 1 : -2;
}

static void put_cell(picture *p, int64_t x) {
    if (x >= 0) rl_put(&p->t, "%0*" PRId64, p->digits, x);
    else rl_put(&p->t, "%*s", p->digits, x == EMPTY ? "-" : "*");
}

/* The cells of a line; a | between inner blocks. */
static void text_line(picture *p, int64_t from) {
    int64_t n = RL_MIN(p->width, p->n - from);
    rl_put(&p->t, "%8" PRId64 "  ", from);
    for (int64_t k = 0, i; (i = shown(k, n, LINE, LINE - 2)) != -2; k++) {
        if (i == -1) rl_put(&p->t, "... ");
        else if (i > 0 && i % p->inner == 0) rl_put(&p->t, "| ");
        if (i >= 0) {
            put_cell(p, p->cell[from + i]);
            rl_put(&p->t, "%s", shown(k + 1, n, LINE, LINE - 2) == -2 ? "\n" : " ");
        }
    }
}

static void draw_text(picture *p) {
    int64_t lines = (p->n + p->width - 1) / p->width;
    for (int64_t k = 0, i; (i = shown(k, lines, LINES, FIRST)) != -2; k++) {
        if (i == -1) rl_put(&p->t, "     ...\n");
        else text_line(p, i * p->width);
    }
}

/* The colour tells the index of axis 1 (axis 0 of a vector): in the documents' pictures, the channel. */
static const char *colour(const picture *p, int64_t x) {
    static const char *const colours[] = {"#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc", "#d9d2e9", "#fce5cd", "#d0e0e3", "#ead1dc"};
    int64_t below = 1;
    if (x < 0) return "#eeeeee";
    for (uint32_t a = p->d->rank; a-- > 2;) below *= p->d->dim[a];
    return colours[p->d->rank > 1 ? x / below % p->d->dim[1] % (int64_t)RL_LEN(colours) : x % (int64_t)RL_LEN(colours)];
}

static void svg_box(picture *p, int64_t x, int64_t y, int64_t cell) {
    rl_put(&p->t, "<rect x='%" PRId64 "' y='%" PRId64 "' width='36' height='18' fill='%s' stroke='#666'/>", x, y, colour(p, cell));
    rl_put(&p->t, "<text x='%" PRId64 "' y='%" PRId64 "'>", x + 18, y + 13);
    if (cell >= 0) put_cell(p, cell);
    else rl_put(&p->t, "%s", cell == CROWDED ? "*" : "");
    rl_put(&p->t, "</text>\n");
}

static void svg_line(picture *p, int64_t from, int64_t y) {
    int64_t n = RL_MIN(p->width, p->n - from), x = 60;
    rl_put(&p->t, "<text x='25' y='%" PRId64 "'>%" PRId64 "</text>\n", y + 13, from);
    for (int64_t k = 0, i; (i = shown(k, n, LINE, LINE - 2)) != -2; k++, x += 36) {
        if (i > 0 && i % p->inner == 0) x += 6;
        if (i >= 0) svg_box(p, x, y, p->cell[from + i]);
        else rl_put(&p->t, "<text x='%" PRId64 "' y='%" PRId64 "'>...</text>\n", x + 18, y + 13);
    }
}

static void draw_svg(picture *p) {
    int64_t lines = (p->n + p->width - 1) / p->width, y = 4;
    int64_t cells = RL_MIN(RL_MIN(p->width, p->n), LINE), drawn = RL_MIN(lines, LINES);
    rl_put(&p->t, "<svg xmlns='http://www.w3.org/2000/svg' width='%" PRId64 "' height='%" PRId64 "' ",
           70 + cells * 36 + cells / p->inner * 6, drawn * 22 + 8);
    rl_put(&p->t, "font-family='monospace' font-size='11' text-anchor='middle'>\n");
    for (int64_t k = 0, i; (i = shown(k, lines, LINES, FIRST)) != -2; k++, y += 22) {
        if (i == -1) rl_put(&p->t, "<text x='25' y='%" PRId64 "'>...</text>\n", y + 13);
        else svg_line(p, i * p->width, y);
    }
    rl_put(&p->t, "</svg>\n");
}

static rl_status draw(rl_ctx *ctx, const rl_desc *d, bool svg, char **out) {
    rl_arena mem;
    int64_t low, high;
    if (RL_PROTECT(ctx)) return RL_ENOMEM;
    rl_arena_init(&mem, ctx);
    picture p = {.d = d, .t = {.mem = &mem}, .n = rl_desc_range(d, &low, &high) ? high + 1 : 0};
    if (p.n > MOST || rl_desc_elements(d) > MOST)
        return rl_fail(ctx, RL_ELIMIT, "a picture of %" PRId64 " elements; at most %d are drawn", RL_MAX(p.n, rl_desc_elements(d)), MOST);
    p.cell = rl_new(&mem, int64_t, p.n + 1);
    p.width = RL_MAX(line_width(d, LINE, &p.inner), 1);
    fill(&p);
    rl_put(&p.t, "%s", "");
    if (svg) draw_svg(&p);
    else draw_text(&p);
    *out = malloc(p.t.n + 1);
    if (!*out) return rl_fail(ctx, RL_ENOMEM, "out of memory");
    memcpy(*out, p.t.p, p.t.n);
    (*out)[p.t.n] = 0;
    return RL_OK;
}

rl_status rl_desc_draw(const rl_desc *d, const char *as, char **out, rl_error *e) {
    if (out) *out = NULL;
    RL_WANTS(e, d, as, out);
    bool svg = strcmp(as, "svg") == 0;
    if (!svg && strcmp(as, "text") != 0) return rl_desc_fail(e, RL_EUSAGE, "a picture is text or svg, not '%.40s'", as);
    RL_TRY(rl_desc_check(d, 0, e));
    rl_ctx *ctx = rl_ctx_new(0);
    if (!ctx) return rl_desc_fail(e, RL_ENOMEM, "out of memory");
    rl_status s = draw(ctx, d, svg, out);
    if (s != RL_OK) rl_desc_fail(e, s, "%.200s", ctx->error);
    rl_ctx_free(ctx);
    return s;
}
