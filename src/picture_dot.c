/* A picture as text for Graphviz; each body is a cluster. */
#include "picture.h"

#include <inttypes.h>

static const char *const fills[] = {"#fde3b3", "#fbc26f", "#f58a3c", "#d9481c", "#9c1c1c"};

/* A backslash of the name's own would start one of Graphviz's escapes. */
static void put_label(rl_text *t, const char *s) {
    for (; s && *s; s++) {
        if (*s == '"' || *s == '\\') rl_put(t, "\\%c", *s);
        else if ((unsigned char)*s < 0x20) rl_put(t, " ");
        else rl_put_bytes(t, s, 1);
    }
}

static void put_node(const rl_picnode *n, uint32_t sheet, uint32_t i, int64_t most, rl_text *t) {
    rl_put(t, "    n%" PRIu32 "_%" PRIu32 " [label=\"", sheet, i);
    put_label(t, n->kind == RL_PIC_NODE ? n->op : n->name);
    if (*n->line) {
        rl_put(t, "\\n");
        put_label(t, n->line);
    }
    rl_put(t, "\"");
    if (n->kind == RL_PIC_NODE && n->name) {
        rl_put(t, ", tooltip=\"");
        put_label(t, n->name);
        rl_put(t, "\"");
    }
    uint32_t heat = n->transpose ? rl_picture_heat(n->bytes, most) : 0;
    if (n->transpose) rl_put(t, ", fillcolor=\"%s\", fontcolor=\"%s\"", fills[heat], heat > 2 ? "white" : "black");
    if (n->kind != RL_PIC_NODE) rl_put(t, ", shape=oval, fillcolor=\"#e6ebf2\"");
    rl_put(t, "];\n");
}

static void put_edges(const rl_sheet *s, uint32_t sheet, rl_text *t) {
    for (uint32_t v = 0; v < s->value.n; v++) {
        const rl_net *n = s->netof[v] == RL_NONE ? NULL : &s->layers.net[s->netof[v]];
        for (uint32_t k = 0; n && k < n->nto; k++) {
            rl_put(t, "    n%" PRIu32 "_%" PRIu32 " -> n%" PRIu32 "_%" PRIu32 " [tooltip=\"", sheet, n->from, sheet, n->to[k]);
            put_label(t, s->value.p[v].name);
            rl_put(t, "\"];\n");
        }
    }
}

void rl_picture_dot(const rl_picture *p, rl_text *t) {
    int64_t most = rl_picture_most(p);
    rl_put(t, "digraph model {\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\", fontsize=11];\n"
              "  edge [color=\"#7a8699\", arrowsize=0.6];\n");
    for (uint32_t i = 0; i < p->n; i++) {
        rl_put(t, "  subgraph %s%" PRIu32 " {\n    label=\"", i ? "cluster_" : "s", i);
        put_label(t, i ? p->p[i].title : "");
        rl_put(t, "\";\n");
        for (uint32_t k = 0; k < p->p[i].node.n; k++) put_node(&p->p[i].node.p[k], i, k, most, t);
        put_edges(&p->p[i], i, t);
        rl_put(t, "  }\n");
    }
    rl_put(t, "}\n");
}
