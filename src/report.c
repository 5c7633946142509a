/* Tables and JSON of report.h.  Every number comes in from outside; here it only gets a form. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON ---- */

/* Bytes that are no UTF-8 cannot stand in JSON: each becomes U+FFFD. Returns the length of the character at s. */
static size_t utf8_length(const unsigned char *s) {
    size_t n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    bool overlong = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90);
    bool beyond = (*s == 0xed && s[1] >= 0xa0) || (*s == 0xf4 && s[1] >= 0x90); /* surrogates; above U+10FFFF */
    return n > 1 && (overlong || beyond) ? 0 : n;
}

void rl_report_string(rl_text *t, const char *s) {
    if (!s) {
        rl_put(t, "null");
        return;
    }
    rl_put(t, "\"");
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        size_t n = utf8_length(p);
        if (*p == '"' || *p == '\\') rl_put(t, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f) rl_put(t, "\\u%04x", (unsigned)*p);
        else if (n == 0) rl_put(t, "\\ufffd");
        else rl_put_bytes(t, (const char *)p, n);
        p += n ? n : 1;
    }
    rl_put(t, "\"");
}

static void counts_json(const rl_stats *s, rl_text *t) {
    const char *comma = "{";
#define X(field, name)                                                                                               \
    rl_put(t, "%s\"%s\": %" PRId64, comma, #field, s->field);                                                        \
    comma = ", ";
    RL_STATS_FIELDS(X)
    RL_STATS_BYTES(X)
#undef X
    rl_put(t, "}");
}

static void put_file(rl_text *t, const char *key, const char *path, uint64_t bytes) {
    rl_put(t, "  \"%s\": {\"path\": ", key);
    rl_report_string(t, path);
    rl_put(t, ", \"bytes\": %" PRIu64 "},\n", bytes);
}

static void put_ports(const rl_report *r, rl_text *t) {
    rl_put(t, ",\n  \"interface\": [");
    for (uint32_t i = 0; i < r->nport; i++) {
        rl_put(t, "%s{\"%s\": ", i ? ", " : "", r->port[i].output ? "output" : "input");
        rl_report_string(t, r->port[i].name);
        rl_put(t, ", \"layout\": \"%s\", \"moves\": %s}", r->port[i].order, r->port[i].moves ? "true" : "false");
    }
    rl_put(t, "]");
}

/* Conversions of the chosen layouts that are no Transposes of the result: constant weights took them in, or one node with other movement. */
static int64_t taken_in(const rl_report *r) {
    return RL_MAX(r->conv_after - rl_stats_conversions(&r->after), 0);
}

static void put_choice(const rl_report *r, rl_text *t) {
    rl_put(t, "  \"target\": ");
    rl_report_string(t, r->target);
    rl_put(t, ",\n  \"objective\": ");
    rl_report_string(t, r->objective);
    rl_put(t, ",\n");
}

static void put_proved(const rl_report *r, rl_text *t) {
    rl_put(t, ",\n  \"conversions\": {\"before\": %" PRId64 ", \"after\": %" PRId64 ", \"lower_bound\": %" PRId64, r->conv_before,
           r->conv_after, r->conv_bound);
    rl_put(t, ", \"bytes_lower_bound\": %" PRId64 ", \"proof\": \"%s\", \"taken_in\": %" PRId64, r->bytes_bound, r->proof, taken_in(r));
    rl_put(t, ", \"outside\": %" PRId64, r->outside);
    if (r->nport)
        rl_put(t, ", \"handed_to_caller\": %" PRIu32 ", \"own_interface\": {\"after\": %" PRId64 ", \"lower_bound\": %" PRId64 "}", r->handed,
               r->conv_without, r->bound_without);
    rl_put(t, "}");
    if (r->nport) put_ports(r, t);
    rl_put(t, ",\n  \"proved\": {\"fewest\": %" PRId64 ", \"quick\": %" PRId64 ", \"open\": %" PRId64 ", \"within_percent\": %d", r->shown_fewest,
           r->shown_quick, r->shown_open, r->within);
    rl_put(t, ", \"open_ns\": {\"takes\": %" PRId64 ", \"at_least\": %" PRId64 "}}", r->open_takes, r->open_at_least);
}

void rl_report_json(const rl_report *r, rl_text *t) {
    rl_put(t, "{\n  \"schema\": \"relayout.report/1\",\n  \"tool\": {\"name\": \"relayout\", \"version\": \"%s\"},\n", RL_VERSION);
    put_file(t, "input", r->in, r->in_bytes);
    if (r->out) put_file(t, "output", r->out, r->out_bytes);
    put_choice(r, t);
    rl_put(t, "  \"changed\": %s,\n  \"counts\": {\n    \"before\": ", r->changed ? "true" : "false");
    counts_json(&r->before, t);
    rl_put(t, ",\n    \"after\": ");
    counts_json(&r->after, t);
    rl_put(t, "\n  }");
    put_proved(r, t);
    if (r->time_before)
        rl_put(t, ",\n  \"time_ns\": {\"before\": %" PRId64 ", \"after\": %" PRId64 ", \"lower_bound\": %" PRId64 "}", r->time_before,
               r->time_after, r->time_bound);
    rl_put(t, ",\n  \"checks\": {\"structure\": \"%s\"},\n  \"timings\": {",
           r->changed ? "passed" : "unchanged");
    for (uint32_t i = 0; i < r->ntime; i++) rl_put(t, "\"%s\": %.6f, ", r->time[i].name, r->time[i].seconds);
    rl_put(t, "\"total\": %.6f},\n  \"peak_bytes\": %" PRIu64 "\n}\n", r->total, r->peak_bytes);
}

/* ---- tables ---- */

void rl_report_bytes(char *s, size_t n, int64_t bytes) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double x = (double)bytes;
    size_t u = 0;
    for (; x >= 1024 && u + 1 < RL_LEN(unit); u++) x /= 1024;
    if (u == 0) snprintf(s, n, "%" PRId64 " B", bytes);
    else snprintf(s, n, "%.1f %s", x, unit[u]);
}

static void row(rl_text *t, const char *what, int64_t before, int64_t after) {
    rl_put(t, "%-28s %10" PRId64 " -> %10" PRId64, what, before, after);
    if (before != after) rl_put(t, "  %+" PRId64, after - before);
    rl_put(t, "\n");
}

void rl_report_table(const rl_report *r, rl_text *t) {
    char was[32], now[32];
    row(t, "Transpose", r->before.transposes, r->after.transposes);
    if (r->before.moving != r->before.transposes || r->after.moving != r->after.transposes)
        row(t, "  of which move data", r->before.moving, r->after.moving);
    row(t, "other nodes that move data", rl_stats_others(&r->before), rl_stats_others(&r->after));
    rl_report_bytes(was, sizeof was, r->before.moved_bytes);
    rl_report_bytes(now, sizeof now, r->after.moved_bytes);
    rl_put(t, "%-28s %10s -> %10s\n", "bytes moved by Transposes", was, now);
    if (rl_stats_other_bytes(&r->before) || rl_stats_other_bytes(&r->after)) {
        rl_report_bytes(was, sizeof was, rl_stats_other_bytes(&r->before));
        rl_report_bytes(now, sizeof now, rl_stats_other_bytes(&r->after));
        rl_put(t, "%-28s %10s -> %10s\n", "bytes written by the others", was, now);
    }
    row(t, "conversions needed", r->conv_before, r->conv_after);
    bool optimal = strcmp(r->proof, "optimal") == 0;
    if (optimal && r->conv_bound < r->conv_after && !r->time_before)
        rl_put(t, "%-28s %10s    %10" PRId64 "  (proved; with no more of them than before no choice of layouts is %d %% quicker)\n", "at least", "",
               r->conv_bound, r->within);
    else if (optimal && r->time_before) rl_put(t, "%-28s %10s    %10" PRId64 "  (proved; with no more of them than before no choice of layouts takes less time)\n", "at least", "", r->conv_bound);
    else if (optimal) rl_put(t, "%-28s %10s    %10" PRId64 "  (proved: no choice of layouts has fewer)\n", "minimum", "", r->conv_bound);
    else if (strcmp(r->proof, "gap") == 0) rl_put(t, "%-28s %10s    %10" PRId64 "  (proved; that many may not be reached)\n", "at least", "", r->conv_bound);
    else rl_put(t, "%-28s %10s    %10s  (not proved%s%s)\n", "minimum", "", "?", r->unproved ? ": " : "", r->unproved ? r->unproved : "");
    if (r->outside) rl_put(t, "%-28s %10s    %10" PRId64 "  (Transposes of tensors that no layout is chosen for: nothing is proved of them)\n", "outside of that", "", r->outside);
    if (r->open_takes && !r->time_before)
        rl_put(t, "%-28s %10s    %10" PRId64 "  (of %" PRId64 " conversions, and what their forms are charged)\n%-28s %10s    %10" PRId64
               "  (proved; what reaches it, if anything, moves data in slower ways)\n",
               "ns by the target's table", "", r->open_takes, r->shown_open, "at least", "", r->open_at_least);
    if (taken_in(r)) rl_put(t, "%-28s %10s    %10" PRId64 "  (by weights and other nodes, beyond what layouts can)\n", "taken in", "", taken_in(r));
    for (uint32_t i = 0; i < r->nport; i++) {
        rl_put(t, "%s ", r->port[i].output ? "output" : "input");
        rl_put_name(t, r->port[i].name);
        rl_put(t, ": layout %s%s\n", r->port[i].order, r->port[i].moves ? ", converted by the caller" : "");
    }
    if (r->nport) {
        rl_put(t, "%-28s %10s    %10" PRIu32 "\n", "handed to the caller", "", r->handed);
        rl_put(t, "%-28s %10s    %10" PRId64 "  (solver's minimum %" PRId64 ")\n", "with the model's interface", "", r->conv_without, r->bound_without);
    }
    if (r->time_before) row(t, "ns by the target's table", r->time_before, r->time_after);
    if (!r->changed) rl_put(t, "nothing to improve: the output is the input, %s\n", r->kept ? "byte for byte" : "written anew");
    rl_put(t, "%.3f s\n", r->total);
}

void rl_report_counts(const rl_stats *s, rl_text *t) {
#define X(field, name)                                                                                               \
    if (s->field && strcmp(#field, "moved_bytes") != 0) rl_put(t, "%-32s %10" PRId64 "\n", name, s->field);
    RL_STATS_FIELDS(X)
#undef X
    char bytes[32];
    rl_report_bytes(bytes, sizeof bytes, s->moved_bytes);
    rl_put(t, "%-32s %10s\n", "bytes moved by Transposes", bytes);
#define X(field, name)                                                                                               \
    rl_report_bytes(bytes, sizeof bytes, s->field);                                                                        \
    if (s->field) rl_put(t, "%-32s %10s\n", name, bytes);
    RL_STATS_BYTES(X)
#undef X
}

/* ---- where ---- */

typedef struct { const rl_graph *g; const rl_nodeinfo *n; int64_t bytes; uint32_t place; } moved;
typedef struct { moved *p; uint32_t n, cap; } moves;

static void collect(const rl_graph *g, rl_arena *tmp, moves *m) {
    for (uint32_t i = 0; i < g->order.n; i++) {
        const rl_nodeinfo *n = rl_nod(g, g->order.p[i]);
        for (uint32_t k = 0; k < n->nattr; k++)
            if (n->attr[k].graph) collect(n->attr[k].graph, tmp, m);
        int64_t bytes = rl_transpose_bytes(g, n);
        if (bytes < 0) continue;
        moved x = {g, n, bytes, m->n};
        rl_push(tmp, *m, x);
    }
}

static int larger_first(const void *a, const void *b) {
    const moved *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->place < y->place ? -1 : 1;
}

static moves sorted_moves(const rl_graph *g, rl_arena *tmp) {
    moves m = {0};
    collect(g, tmp, &m);
    if (m.n) qsort(m.p, m.n, sizeof *m.p, larger_first);
    return m;
}

static void put_shape(const moved *m, rl_text *t) {
    const rl_valinfo *x = rl_val(m->g, m->n->in[0]);
    rl_put(t, "[");
    for (uint32_t i = 0; x->rank != RL_NORANK && i < x->rank; i++) {
        if (i) rl_put(t, ",");
        rl_dim_print(t, m->g->ctx, x->dim[i]);
    }
    rl_put(t, x->rank == RL_NORANK ? "?]" : "]");
}

static void put_perm(const moved *m, rl_text *t) {
    const rl_attr *perm = rl_attr_ints(m->n, "perm");
    const rl_valinfo *x = rl_val(m->g, m->n->in[0]);
    uint32_t n = perm ? perm->n : x->rank == RL_NORANK ? 0 : x->rank;
    rl_put(t, "[");
    for (uint32_t i = 0; i < n; i++) rl_put(t, "%s%" PRId64, i ? "," : "", perm ? perm->ints[i] : (int64_t)(n - 1 - i));
    rl_put(t, "]");
}

/* Nodes need no name; the value that one makes has one in every file. */
static const char *node_name(const moved *m) {
    if (m->n->name && *m->n->name) return m->n->name;
    rl_str made = rl_has(rl_out(m->n, 0)) ? rl_val(m->g, m->n->out[0])->name : NULL;
    return made ? made : "?";
}

void rl_report_moves(const rl_graph *g, rl_arena *tmp, rl_text *t) {
    moves m = sorted_moves(g, tmp);
    for (uint32_t i = 0; i < m.n; i++) {
        char bytes[32];
        rl_report_bytes(bytes, sizeof bytes, m.p[i].bytes);
        rl_put(t, "  %10s  ", bytes);
        rl_put_name(t, node_name(&m.p[i]));
        rl_put(t, "  ");
        put_shape(&m.p[i], t);
        rl_put(t, " perm=");
        put_perm(&m.p[i], t);
        rl_put(t, "\n");
    }
}

void rl_report_moves_json(const rl_graph *g, rl_arena *tmp, rl_text *t) {
    moves m = sorted_moves(g, tmp);
    rl_put(t, "[");
    for (uint32_t i = 0; i < m.n; i++) {
        rl_text shape = {.mem = tmp};
        put_shape(&m.p[i], &shape);
        rl_put(t, "%s\n    {\"name\": ", i ? "," : "");
        rl_report_string(t, node_name(&m.p[i]));
        rl_put(t, ", \"bytes\": %" PRId64 ", \"shape\": ", m.p[i].bytes);
        rl_report_string(t, shape.p);
        rl_put(t, ", \"perm\": ");
        put_perm(&m.p[i], t);
        rl_put(t, "}");
    }
    rl_put(t, m.n ? "\n  ]" : "]");
}

void rl_report_stats_json(const rl_report *r, const rl_text *was, const rl_text *now, rl_text *t) {
    rl_put(t, "{\n  \"schema\": \"relayout.stats/1\",\n  \"input\": ");
    rl_report_string(t, r->in);
    rl_put(t, ",\n");
    put_choice(r, t);
    rl_put(t, "  \"counts\": ");
    counts_json(&r->before, t);
    rl_put(t, ",\n  \"needed\": ");
    counts_json(&r->after, t);
    put_proved(r, t);
    rl_put(t, ",\n  \"transposes\": ");
    rl_put_bytes(t, was->p, was->n);
    rl_put(t, ",\n  \"transposes_needed\": ");
    rl_put_bytes(t, now->p, now->n);
    rl_put(t, "\n}\n");
}
