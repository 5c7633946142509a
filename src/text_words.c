/* Errors, words and numbers of the text form: see text_internal.h. */
#include "text_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

bool rl_text_fail_at(parser *p, const char *at, const char *what) {
    uint32_t line = 1;
    const char *bol = p->start;
    for (const char *c = p->start; c < at; c++) {
        if (*c != '\n') continue;
        line++;
        bol = c + 1;
    }
    size_t col = (size_t)(at - bol), from = col > 100 ? col - 100 : 0, n = strcspn(bol + from, "\n");
    char shown[161];
    snprintf(shown, sizeof shown, "%.*s", (int)RL_MIN(n, sizeof shown - 1), bol + from);
    for (char *c = shown; *c; c++)
        if (*c == '\t') *c = ' ';
    rl_text quote = {.mem = p->tmp};
    rl_put_name(&quote, shown);
    p->status = rl_fail(p->ctx, RL_EMODEL, "%s:%u:%zu: %s", p->file, line, col + 1, what);
    size_t used = strlen(p->ctx->error); /* rl_fail's is one line */
    snprintf(p->ctx->error + used, sizeof p->ctx->error - used, "\n%s\n%*s^", quote.p, (int)(col - from), "");
    return false;
}

bool rl_text_fail_name(parser *p, const char *at, const char *fmt, const char *name) {
    rl_text t = {.mem = p->tmp};
    for (const char *c = fmt; *c; c++) {
        if (*c == '$') rl_put_bytes(&t, name, strlen(name));
        else rl_put_bytes(&t, c, 1);
    }
    return rl_text_fail_at(p, at, t.p);
}

/* ---- words ---- */

void rl_text_skip(parser *p) {
    for (;; p->s++) {
        if (*p->s == '#')
            while (*p->s && *p->s != '\n') p->s++;
        if (*p->s != ' ' && *p->s != '\n' && *p->s != '\t' && *p->s != '\r') return;
    }
}

bool rl_text_peek(parser *p, char c) {
    rl_text_skip(p);
    return *p->s == c;
}

bool rl_text_take(parser *p, char c) {
    if (!rl_text_peek(p, c)) return false;
    p->s++;
    return true;
}

bool rl_text_want(parser *p, char c) {
    char what[] = "'?' is wanted here";
    what[1] = c;
    return rl_text_take(p, c) || rl_text_fail_at(p, p->s, what);
}

bool rl_text_alnum(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool rl_text_word_char(char c, const char *more) {
    return rl_text_alnum(c) || (c && strchr(more, c));
}

bool rl_text_take_word(parser *p, const char *w) {
    size_t n = strlen(w);
    rl_text_skip(p);
    if (strncmp(p->s, w, n) != 0 || rl_text_word_char(p->s[n], "_.-")) return false;
    p->s += n;
    return true;
}

int rl_text_hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool parse_escape(parser *p, char *c) {
    *c = *p->s++;
    if (*c == 'n') *c = '\n';
    if (*c == 't') *c = '\t';
    if (*c != 'x') return *c != 0 || rl_text_fail_at(p, p->s - 1, "the text ends in a string");
    int hi = rl_text_hex_digit(p->s[0]), lo = hi < 0 ? -1 : rl_text_hex_digit(p->s[1]);
    if (lo < 0) return rl_text_fail_at(p, p->s, "two hex digits are wanted here");
    *c = (char)(hi * 16 + lo);
    p->s += 2;
    return true;
}

bool rl_text_parse_string(parser *p, rl_arena *mem, rl_span *out) {
    rl_text t = {.mem = mem};
    if (!rl_text_want(p, '"')) return false;
    const char *at = p->s - 1;
    rl_put_bytes(&t, "", 0);
    while (*p->s != '"') {
        char c = *p->s++;
        if (c == '\\' && !parse_escape(p, &c)) return false;
        else if (c == '\n' && p->s[-1] == '\n') return rl_text_fail_at(p, at, "this string does not end in its line");
        else if (c == 0 && p->s > p->end) return rl_text_fail_at(p, at, "this string does not end");
        rl_put_bytes(&t, &c, 1);
    }
    p->s++;
    *out = (rl_span){(const uint8_t *)t.p, t.n};
    return true;
}

bool rl_text_parse_word(parser *p, const char *more, rl_str *out) {
    rl_span q;
    rl_text_skip(p);
    if (*p->s == '"') {
        if (!rl_text_parse_string(p, p->tmp, &q)) return false;
        *out = rl_intern(p->ctx, (const char *)q.p, q.n);
        return true;
    }
    const char *from = p->s;
    while (rl_text_word_char(*p->s, more)) p->s++;
    if (p->s == from) return rl_text_fail_at(p, p->s, "a name is wanted here");
    *out = rl_intern(p->ctx, from, (size_t)(p->s - from));
    return true;
}

bool rl_text_parse_int(parser *p, int64_t *x) {
    char *end;
    rl_text_skip(p);
    errno = 0;
    *x = strtoll(p->s, &end, 10);
    if (end == p->s) return rl_text_fail_at(p, p->s, "an integer is wanted here");
    if (errno) return rl_text_fail_at(p, p->s, "this integer has more than 64 bits");
    p->s = end;
    return true;
}

bool rl_text_parse_uint(parser *p, uint64_t *x) {
    char *end;
    rl_text_skip(p);
    errno = 0;
    if (*p->s < '0' || *p->s > '9') return rl_text_fail_at(p, p->s, "a number is wanted here");
    *x = strtoull(p->s, &end, 10);
    if (errno) return rl_text_fail_at(p, p->s, "this integer has more than 64 bits");
    p->s = end;
    return true;
}

bool rl_text_parse_double(parser *p, double *x) {
    char *end;
    rl_text_skip(p);
    *x = strtod(p->s, &end);
    if (end == p->s) return rl_text_fail_at(p, p->s, "a number is wanted here");
    p->s = end;
    return true;
}
