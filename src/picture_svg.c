/* A picture as SVG: the sheets below each other, pictures side by side.  The style sheet inside follows the viewer's scheme, so that it is
 * readable on a dark page, too. */
#include "picture.h"

#include <inttypes.h>

#include "report.h"

enum { HEAD = 34, TITLE = 26, LEGEND = 40, LEAST = 430 };

static const char style[] =
    "text{font:600 12px system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif;fill:#1c2430;text-anchor:middle}"
    ".l{font-weight:400;font-size:10px;fill:#5a6678}.t{font-size:15px;text-anchor:start}.s{font-weight:400;font-size:11px;text-anchor:start;fill:#5a6678}"
    "rect{fill:#fff;stroke:#b8c1cf}.i{fill:#e8edf5}.d{stroke:#d9822b;stroke-width:1.5}path{fill:none;stroke:#9aa6b8;stroke-width:1.2}"
    ".h0{fill:#fde3b3}.h1{fill:#fbc26f}.h2{fill:#f58a3c}.h3{fill:#d9481c}.h4{fill:#9c1c1c}.h0,.h1,.h2,.h3,.h4{stroke:none}"
    "text.k,.k.l{fill:#3a1d00}text.w,.w.l{fill:#fff}.bg{fill:#fbfcfe;stroke:none}"
    "@media (prefers-color-scheme:dark){.bg{fill:#12161d}text{fill:#e6eaf0}.l,.s{fill:#98a4b5}rect{fill:#1d232d;stroke:#445063}.i{fill:#27303d}"
    "path{stroke:#5c6879}}";

void rl_xml_text(rl_text *t, const char *s) {
    rl_text utf8 = {.mem = t->mem};
    rl_report_string(&utf8, s ? s : ""); /* what is no UTF-8 is U+FFFD there; quotes and backslashes have a backslash, controls are \u.... */
    for (size_t i = 1; i + 1 < utf8.n; i++) {
        char c = utf8.p[i];
        if (c == '\\' && utf8.p[i + 1] == 'u') {
            bool known = i + 5 < utf8.n && (utf8.p[i + 2] == 'f');
            rl_put(t, known ? "\xef\xbf\xbd" : " ");
            i += 5;
            continue;
        }
        if (c == '\\') c = utf8.p[++i];
        if (c == '<') rl_put(t, "&lt;");
        else if (c == '>') rl_put(t, "&gt;");
        else if (c == '&') rl_put(t, "&amp;");
        else if (c == '"') rl_put(t, "&quot;");
        else rl_put_bytes(t, &c, 1);
    }
}

static void put_box(const rl_picnode *n, const rl_box *b, int64_t most, rl_text *t) {
    uint32_t heat = n->transpose ? rl_picture_heat(n->bytes, most) : 0;
    const char *ink = !n->transpose ? "" : heat > 2 ? " w" : " k";
    char bytes[32];
    rl_put(t, "<g><title>");
    rl_xml_text(t, n->name ? n->name : n->op);
    if (n->bytes >= 0) {
        rl_report_bytes(bytes, sizeof bytes, n->bytes);
        rl_put(t, " · %s moved", bytes);
    }
    rl_put(t, "</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\"", b->x, b->y, b->w, b->h, n->kind == RL_PIC_NODE ? 5 : 13);
    if (n->transpose) rl_put(t, " class=\"h%" PRIu32 "\"", heat);
    else if (n->kind != RL_PIC_NODE) rl_put(t, " class=\"i\"");
    else if (n->bytes >= 0) rl_put(t, " class=\"d\"");
    rl_put(t, "/><text x=\"%d\" y=\"%d\" class=\"%s\">", b->x + b->w / 2, b->y + (b->h < 38 ? 17 : 16), *ink ? ink + 1 : "");
    rl_xml_text(t, n->kind == RL_PIC_NODE ? n->op : n->name);
    rl_put(t, "</text>");
    if (*n->line) {
        rl_put(t, "<text x=\"%d\" y=\"%d\" class=\"l%s\">", b->x + b->w / 2, b->y + 30, ink);
        rl_xml_text(t, n->line);
        rl_put(t, "</text>");
    }
    rl_put(t, "</g>\n");
}

static void put_sheet(const rl_sheet *s, int64_t most, rl_text *t) {
    for (uint32_t i = 0; i < s->layers.nnet; i++)
        if (s->layers.net[i].path.n) rl_put(t, "<path d=\"%s\"/>\n", s->layers.net[i].path.p);
    for (uint32_t i = 0; i < s->node.n; i++) put_box(&s->node.p[i], &s->layers.box[i], most, t);
}

static int32_t panel_width(const rl_picture *p) {
    int32_t w = LEAST;
    for (uint32_t i = 0; i < p->n; i++) w = RL_MAX(w, p->p[i].layers.width);
    return w;
}

static int32_t panel_height(const rl_picture *p) {
    int32_t h = HEAD;
    for (uint32_t i = 0; i < p->n; i++) h += p->p[i].layers.height + (i ? TITLE : 0);
    return h;
}

static void put_panel(const rl_panel *p, int64_t most, int32_t x, rl_text *t) {
    int32_t y = HEAD, wide = panel_width(p->picture);
    rl_put(t, "<text class=\"t\" x=\"%d\" y=\"24\">", x + 16);
    rl_xml_text(t, p->title);
    rl_put(t, "</text>\n");
    for (uint32_t i = 0; i < p->picture->n; i++) {
        const rl_sheet *s = &p->picture->p[i];
        if (i) {
            rl_put(t, "<text class=\"s\" x=\"%d\" y=\"%d\">", x + 16, y + 18);
            rl_xml_text(t, s->title);
            rl_put(t, "</text>\n");
            y += TITLE;
        }
        rl_put(t, "<g transform=\"translate(%d %d)\">\n", x + (wide - s->layers.width) / 2, y);
        put_sheet(s, most, t);
        rl_put(t, "</g>\n");
        y += s->layers.height;
    }
}

static void put_legend(int64_t most, int32_t y, rl_text *t) {
    char bytes[32];
    rl_put(t, "<text class=\"s\" x=\"16\" y=\"%d\">bytes moved by a Transpose:</text>\n", y + 12);
    for (uint32_t h = 0; h < 5; h++) rl_put(t, "<rect x=\"%u\" y=\"%d\" width=\"22\" height=\"12\" class=\"h%u\"/>\n", 190 + 24 * h, y + 2, h);
    rl_report_bytes(bytes, sizeof bytes, most);
    rl_put(t, "<text class=\"s\" x=\"318\" y=\"%d\">up to %s</text>\n", y + 12, bytes);
}

void rl_picture_svg(const rl_panel *panel, uint32_t n, rl_text *t) {
    int32_t wide = 0, tall = 0, x = 0;
    int64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        wide += panel_width(panel[i].picture);
        tall = RL_MAX(tall, panel_height(panel[i].picture));
        most = RL_MAX(most, rl_picture_most(panel[i].picture));
    }
    tall += most ? LEGEND : 0;
    rl_put(t, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n<style>%s</style>\n"
              "<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n", wide, tall, wide, tall, style);
    for (uint32_t i = 0; i < n; i++) {
        put_panel(&panel[i], most, x, t);
        x += panel_width(panel[i].picture);
    }
    if (most) put_legend(most, tall - LEGEND + 10, t);
    rl_put(t, "</svg>\n");
}
