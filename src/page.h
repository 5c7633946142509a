/* The page that `relayout report` writes: one HTML file that needs nothing else, from the files of page/ and the data of one model.
 *
 * The data are one JSON object in a <script type="application/json">, in which every < is written \u003c, so that no name of the model can end
 * it: {"report": docs/report.md, "explain": docs/explain.md, "before": picture, "after": picture or null, "strings": [...]}. */
#ifndef RL_PAGE_H
#define RL_PAGE_H
#include "explain.h"
#include "picture.h"
#include "report.h"

typedef struct {
    const rl_report *report;
    const rl_explanation *explain;
    const rl_picture *before, *after; /* after NULL: the model stays as it is */
} rl_page;
void rl_page_html_text(const rl_page *p, rl_text *t);

#endif
