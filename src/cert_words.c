/* The words of a certificate's file: see cert_words.h. */
#include "cert_words.h"

rl_status rl_words_refuse(const rl_words *r, const char *what) {
    return rl_fail(r->ctx, RL_EPROOF, "%s:%u: %s", r->file, r->line, what);
}

rl_status rl_words_end(rl_words *r) {
    if (!rl_words_skip(r, "\n")) return rl_words_refuse(r, "more on the line than belongs there, or less, or no line end");
    r->line++;
    return RL_OK;
}

rl_status rl_words_number(rl_words *r, int64_t max, int64_t *x) {
    const char *from = r->p;
    *x = 0;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        int digit = *r->p++ - '0';
        if (*x > (max - digit) / 10 || max < digit) return rl_words_refuse(r, "a number is too large");
        *x = *x * 10 + digit;
    }
    if (r->p == from) return rl_words_refuse(r, "a number is missing");
    return r->p - from > 1 && *from == '0' ? rl_words_refuse(r, "a number has a leading zero") : RL_OK;
}

rl_status rl_words_index(rl_words *r, uint32_t *x) {
    int64_t n = 0;
    RL_TRY(rl_words_number(r, UINT32_MAX - 1, &n));
    *x = (uint32_t)n;
    return RL_OK;
}

rl_status rl_words_next(rl_words *r, int64_t max, int64_t *x) {
    return rl_words_skip(r, " ") ? rl_words_number(r, max, x) : rl_words_refuse(r, "a space and a number are missing");
}

rl_status rl_words_id(rl_words *r, uint32_t want) {
    uint32_t got = 0;
    RL_TRY(rl_words_index(r, &got));
    return got == want ? RL_OK : rl_fail(r->ctx, RL_EPROOF, "%s:%u: number %u, wanted %u", r->file, r->line, got, want);
}

rl_status rl_words_bytes(rl_words *r, rl_bytes *b) {
    while (r->end - r->p > 1 && r->p[0] == ' ' && r->p[1] != '|') {
        int64_t x;
        RL_TRY(rl_words_next(r, 254, &x));
        rl_push(r->mem, *b, (uint8_t)x);
    }
    return RL_OK;
}

rl_status rl_words_array(rl_words *r, uint32_t want, const uint8_t **out) {
    rl_bytes b = {0};
    RL_TRY(rl_words_bytes(r, &b));
    if (b.n != want) return rl_fail(r->ctx, RL_EPROOF, "%s:%u: %u numbers, wanted %u", r->file, r->line, b.n, want);
    *out = b.n ? b.p : rl_new(r->mem, uint8_t, 1);
    return RL_OK;
}

static bool read_hex(rl_words *r, uint32_t *x) {
    *x = 0;
    for (uint32_t i = 0; i < 4; i++, r->p++) {
        static const char digit[] = "0123456789abcdef";
        if (r->p == r->end || !*r->p) return false;
        char c = *r->p >= 'A' && *r->p <= 'F' ? (char)(*r->p + 'a' - 'A') : *r->p;
        const char *at = strchr(digit, c);
        if (!at) return false;
        *x = *x * 16 + (uint32_t)(at - digit);
    }
    return true;
}

static void put_utf8(rl_text *t, uint32_t c) {
    char s[4];
    size_t n = 0;
    if (c < 0x80) s[n++] = (char)c;
    else if (c < 0x800) s[n++] = (char)(0xc0 | c >> 6);
    else if (c < 0x10000) s[n++] = (char)(0xe0 | c >> 12);
    else s[n++] = (char)(0xf0 | c >> 18);
    if (c >= 0x10000) s[n++] = (char)(0x80 | (c >> 12 & 63));
    if (c >= 0x800) s[n++] = (char)(0x80 | (c >> 6 & 63));
    if (c >= 0x80) s[n++] = (char)(0x80 | (c & 63));
    rl_put_bytes(t, s, n);
}

/* What follows a backslash. No character may be 0: names are C strings. */
static bool read_escape(rl_words *r, rl_text *t) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    if (r->p == r->end || !*r->p) return false;
    char e = *r->p++;
    const char *at = strchr(from, e);
    if (at) rl_put_bytes(t, to + (at - from), 1);
    if (at) return true;
    if (e != 'u' || !read_hex(r, &c) || !c || (c >= 0xdc00 && c < 0xe000)) return false;
    if (c >= 0xd800 && c < 0xdc00) {
        if (!rl_words_skip(r, "\\u") || !read_hex(r, &low) || low < 0xdc00 || low >= 0xe000) return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(t, c);
    return true;
}

rl_status rl_words_string(rl_words *r, const char **s) {
    rl_text t = {.mem = r->mem};
    if (!rl_words_skip(r, "\"")) return rl_words_refuse(r, "a string is missing");
    while (r->p < r->end && *r->p != '"' && (unsigned char)*r->p >= 0x20) {
        const char *from = r->p;
        while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (unsigned char)*r->p >= 0x20) r->p++;
        rl_put_bytes(&t, from, (size_t)(r->p - from));
        if (rl_words_skip(r, "\\") && !read_escape(r, &t)) return rl_words_refuse(r, "a string has a bad escape");
    }
    if (!rl_words_skip(r, "\"")) return rl_words_refuse(r, "a string does not end");
    *s = t.p ? t.p : "";
    return RL_OK;
}
