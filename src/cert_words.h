/* The words of a certificate's file, from which cert_read.c reads its lines: numbers, strings, fixed text.
 *
 * Strict, so that a certificate has one spelling only: single spaces, numbers without leading zeros.  What does not belong there is
 * RL_EPROOF, "FILE:LINE: what". */
#ifndef RL_CERT_WORDS_H
#define RL_CERT_WORDS_H
#include "base.h"

typedef struct {
    rl_ctx *ctx;
    rl_arena *mem;       /* of strings and arrays read */
    const char *file;    /* its name, for messages */
    const char *p, *end; /* what is left of the text */
    uint32_t line;       /* from 1 */
} rl_words;

typedef struct { uint8_t *p; uint32_t n, cap; } rl_bytes;

/* Steps over the text if it comes next. */
static inline bool rl_words_skip(rl_words *r, const char *text) {
    size_t n = strlen(text);
    if ((size_t)(r->end - r->p) < n || !rl_same_bytes(r->p, text, n)) return false;
    r->p += n;
    return true;
}

rl_status rl_words_refuse(const rl_words *r, const char *what);
rl_status rl_words_end(rl_words *r); /* the end of a line */
/* A number from 0 to max; one below RL_NONE; a space and a number. */
rl_status rl_words_number(rl_words *r, int64_t max, int64_t *x);
rl_status rl_words_index(rl_words *r, uint32_t *x);
rl_status rl_words_next(rl_words *r, int64_t max, int64_t *x);
rl_status rl_words_id(rl_words *r, uint32_t want); /* the number that says how many lines of this kind came before */
rl_status rl_words_bytes(rl_words *r, rl_bytes *b); /* numbers to 254, each after a space, up to a line end or a bar */
rl_status rl_words_array(rl_words *r, uint32_t want, const uint8_t **out); /* the same, as many as wanted */
rl_status rl_words_string(rl_words *r, const char **s); /* in quotes, with JSON's escapes */

#endif
