/* RegexFullMatch, on POSIX's extended regular expressions.
 *
 * ONNX's syntax is RE2's. What both have is translated (\d \w \s and their complements, also in [], \b, (?:...), lazy repeats, which
 * are repeats where the whole text must match); any other escape or group is refused.  The C locale sees bytes: a "." or a
 * negated class is one whole UTF-8 character here, other characters beyond ASCII match themselves. */
#include <regex.h>
#include <string.h>

#include "kernels.h"

typedef struct { const char *s; rl_text *out; } pattern;

static const char *class_of(char x) {
    return x == 'd' ? "0-9" : x == 'w' ? "[:alnum:]_" : x == 's' ? "\t\n\f\r " : NULL;
}

static void put(pattern *p, const char *s) {
    rl_put_bytes(p->out, s, strlen(s));
}

/* One character that is none of `but`: its first byte, and the bytes that continue it. */
static void put_other(pattern *p, const char *but) {
    put(p, "([^\x80-\xbf");
    put(p, but);
    put(p, "][\x80-\xbf]*)");
}

/* After a backslash, outside of []. */
static bool put_escape(pattern *p) {
    char x = *p->s++, lower = (char)(x | 0x20), text[2] = {x, 0};
    const char *members = class_of(lower);
    if (members && x == lower) {
        put(p, "[");
        put(p, members);
        put(p, "]");
    } else if (members) {
        put_other(p, members);
    } else if (x == 'b' || x == 'B') {
        put(p, x == 'b' ? "\\b" : "\\B");
    } else if (x == 'n' || x == 't' || x == 'r') {
        put(p, x == 'n' ? "\n" : x == 't' ? "\t" : "\r");
    } else if (x && strchr(".^$*+?()[]{}|\\", x)) {
        put(p, "\\");
        put(p, text);
    } else if (x && strchr("-/_:;,@#%&=<>!~'\"` ", x)) {
        put(p, text);
    } else {
        return false;
    }
    return true;
}

/* A class: members that POSIX takes to mean something else go where they mean themselves. */
static bool put_class(pattern *p) {
    bool others = *p->s == '^', first = true, dash = false, caret = false, close = false;
    rl_text members = {.mem = p->out->mem};
    p->s += others;
    for (; *p->s && (first || *p->s != ']'); first = false) {
        char x = *p->s++;
        if ((uint8_t)x >= 0x80 || (x == '[' && *p->s == ':')) return false;
        const char *set = NULL;
        if (x == '\\') {
            x = *p->s++;
            set = class_of(x);
            if (!set && (x == 'n' || x == 't' || x == 'r')) x = x == 'n' ? '\n' : x == 't' ? '\t' : '\r';
            else if (!set && (!x || !strchr(".^$*+?()[]{}|\\-/_:;,@#%&=<>!~'\"` ", x))) return false;
        } else if (p->s[0] == '-' && p->s[1] && p->s[1] != ']') { /* a range of plain members */
            char range[4] = {x, '-', p->s[1], 0};
            if (p->s[1] == '\\' || (uint8_t)p->s[1] >= 0x80 || range[2] < x) return false;
            rl_put_bytes(&members, range, 3);
            p->s += 2;
            continue;
        }
        if (set) rl_put_bytes(&members, set, strlen(set));
        else if (x == '-') dash = true;
        else if (x == '^') caret = true;
        else if (x == ']') close = true;
        else rl_put_bytes(&members, &x, 1);
    }
    if (*p->s++ != ']') return false;
    rl_text all = {.mem = p->out->mem};
    rl_put(&all, "%s%.*s%s%s", close ? "]" : "", (int)members.n, members.p ? members.p : "", caret ? "^" : "", dash ? "-" : "");
    if (others) {
        put(p, "([^");
        if (close) put(p, "]");
        put(p, "\x80-\xbf");
        rl_put_bytes(p->out, all.p + close, all.n - close);
        put(p, "][\x80-\xbf]*)");
        return true;
    }
    if (caret && !dash && !close && !members.n) {
        put(p, "\\^");
        return true;
    }
    put(p, "[");
    rl_put_bytes(p->out, all.p, all.n);
    put(p, "]");
    return true;
}

static bool translate(pattern *p) {
    put(p, "^(");
    while (*p->s) {
        char x = *p->s++, text[2] = {x, 0};
        if (x == '\\') {
            if (!put_escape(p)) return false;
        } else if (x == '[') {
            if (!put_class(p)) return false;
        } else if (x == '.') {
            put_other(p, "\n");
        } else if (x == '(' && *p->s == '?') {
            if (p->s[1] != ':') return false;
            put(p, "(");
            p->s += 2;
        } else {
            put(p, text);
            if (strchr("*+?}", x) && *p->s == '?') p->s++; /* lazy */
        }
    }
    put(p, ")$");
    return true;
}

rl_status rl_ref_regex_full_match(rl_call *c) {
    const rl_attr *a = rl_attr_find(c->node, "pattern");
    RL_TRY(rl_call_need(c, 1));
    const rl_tensor *x = rl_call_dense(c, 0);
    rl_text posix = {.mem = c->tmp};
    regex_t re;
    rl_str given = a && a->kind == RL_ATTR_STRING ? rl_intern(c->g->ctx, a->s.n ? (const char *)a->s.p : "", a->s.n) : NULL;
    if (!given) return rl_call_fail(c, RL_EMODEL, "has no pattern");
    pattern p = {given, &posix};
    if (!translate(&p)) return rl_call_fail(c, RL_ELIMIT, "pattern '%.100s' is not one that POSIX can say", given);
    bool *y = rl_data(rl_call_make(c, 0, RL_BOOL, x->rank, x->dim));
    rl_put_bytes(&posix, "", 1);
    if (regcomp(&re, posix.p, REG_EXTENDED | REG_NOSUB) != 0)
        return rl_call_fail(c, RL_EMODEL, "pattern '%.100s' is no regular expression", given);
    for (int64_t i = 0; i < rl_numel(x); i++) y[i] = regexec(&re, ((const rl_str *)rl_data(x))[i], 0, NULL, 0) == 0;
    regfree(&re);
    return RL_OK;
}
