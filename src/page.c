/* Puts the page together: see page.h. */
#include "page.h"

#include <string.h>

#include "carried.h"

static void put_data(const rl_page *p, rl_text *t) {
    rl_text json = {.mem = t->mem};
    rl_picstrings strings = {.mem = t->mem};
    bool any;
    rl_put(&json, "{\"report\":");
    rl_report_json(p->report, &json);
    rl_put(&json, ",\"explain\":");
    rl_explain_json(p->explain, NULL, &json, &any);
    rl_put(&json, ",\"before\":");
    rl_picture_json(p->before, &strings, &json);
    rl_put(&json, ",\"after\":");
    if (p->after) rl_picture_json(p->after, &strings, &json);
    else rl_put(&json, "null");
    rl_put(&json, ",\"strings\":[");
    for (uint32_t i = 0; i < strings.list.n; i++) {
        if (i) rl_put(&json, ",");
        rl_report_string(&json, strings.list.p[i]);
    }
    rl_put(&json, "]}");
    const char *s = json.p;
    for (const char *lt; (lt = strchr(s, '<')) != NULL; s = lt + 1) {
        rl_put_bytes(t, s, (size_t)(lt - s));
        rl_put(t, "\\u003c");
    }
    rl_put(t, "%s", s);
}

/* page.html with what stands for its marks: <!--title-->, <!--css-->, <!--data-->, <!--js-->. */
void rl_page_html_text(const rl_page *p, rl_text *t) {
    const char *s = (const char *)rl_page_html;
    for (const char *mark; (mark = strstr(s, "<!--")) != NULL;) {
        rl_put_bytes(t, s, (size_t)(mark - s));
        mark += 4;
        s = strstr(mark, "-->") + 3;
        if (strncmp(mark, "title", 5) == 0) rl_xml_text(t, p->report->in);
        else if (strncmp(mark, "css", 3) == 0) rl_put_bytes(t, (const char *)rl_page_css, rl_page_css_size);
        else if (strncmp(mark, "data", 4) == 0) put_data(p, t);
        else rl_put_bytes(t, (const char *)rl_page_js, rl_page_js_size);
    }
    rl_put(t, "%s", s);
}
