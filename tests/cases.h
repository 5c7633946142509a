/* A text case, as a file of tests/text has it; a line ==== separates cases:
 *
 *   # One sentence: what holds here and why.
 *   pass: normalize,fold               or all: the whole pipeline; nothing: only types are inferred
 *   graph { ... }                      further lines before it: target: objective: disable: time: skip:
 *   same:                              another input with the same result; any number of times
 *   graph { ... }
 *   ----
 *   graph { ... }                      compared as canonical text, so names do not matter and everything else does
 *   stats: moving 3 -> 0, nodes 5 -> 2 fields of rl_stats, before and after
 *   proof: conversions 3 -> 0, bound 0 what the pipeline says of itself
 *   error: message                     in place of ---- and the rest: the message, to the end of the case */
#ifndef CASES_H
#define CASES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAXINPUT = 8 };

typedef struct { const char *p; size_t n; } span;
typedef struct { const char *from, *to; } range; /* in the file; from NULL: not there */

typedef struct {
    span pass, target, objective, disable, time, skip;
    range input[MAXINPUT], expected, stats, proof, error;
    uint32_t ninput, line;
    const char *end;
} testcase;

/* Reads the case at s up to ==== or the end; answers where the next one starts. c->line is the caller's. */
const char *read_case(const char *s, testcase *c);
bool take_key(const char *s, const char *key, span *rest); /* the rest of a line `key: rest` */

#endif
