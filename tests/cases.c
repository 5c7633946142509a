/* Reading text cases: see cases.h. */
#include "cases.h"

#include <string.h>

#include "../src/base.h"

static const char *next_line(const char *s) {
    s += strcspn(s, "\n");
    return *s ? s + 1 : s;
}

static bool is_line(const char *s, const char *word) {
    size_t n = strlen(word);
    return strncmp(s, word, n) == 0 && (s[n] == '\n' || s[n] == 0 || s[n] == '\r');
}

bool take_key(const char *s, const char *key, span *rest) {
    size_t n = strlen(key);
    if (strncmp(s, key, n) != 0 || s[n] != ':') return false;
    s += n + 1;
    s += strspn(s, " ");
    *rest = (span){s, strcspn(s, "\r\n")};
    return true;
}

static bool take_option(const char *s, testcase *c) {
    return take_key(s, "pass", &c->pass) || take_key(s, "target", &c->target) || take_key(s, "objective", &c->objective) ||
           take_key(s, "disable", &c->disable) || take_key(s, "time", &c->time) || take_key(s, "skip", &c->skip);
}

static bool is_blank(const char *s) {
    s += strspn(s, " \t\r");
    return *s == '\n' || *s == 0 || *s == '#';
}

static range *next_input(testcase *c) {
    uint32_t i = c->ninput++;
    return &c->input[RL_MIN(i, (uint32_t)MAXINPUT - 1)];
}

/* The section that a separator line opens, or NULL for a line of text. */
static range *opened(const char *s, testcase *c) {
    span rest;
    if (is_line(s, "----")) return &c->expected;
    if (take_key(s, "stats", &rest)) return &c->stats;
    if (take_key(s, "proof", &rest)) return &c->proof;
    if (take_key(s, "error", &rest)) return &c->error;
    return is_line(s, "same:") ? next_input(c) : NULL;
}

const char *read_case(const char *s, testcase *c) {
    range *open = NULL;
    for (; *s && !is_line(s, "===="); s = next_line(s)) {
        range *r = open == &c->error ? NULL : opened(s, c);
        if (r) {
            open = r;
            bool own_line = r == &c->stats || r == &c->proof || r == &c->error;
            r->from = own_line ? s : next_line(s);
        } else if (!open && !take_option(s, c) && !is_blank(s)) {
            open = next_input(c);
            open->from = s;
        }
        if (open) open->to = next_line(s);
        if (open == &c->stats || open == &c->proof) open = NULL;
    }
    c->end = s;
    return is_line(s, "====") ? next_line(s) : s;
}
