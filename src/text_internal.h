/* What the files of the text reader share (text.h); nobody else includes this.
 *
 * text_words.c reads words and numbers, text_values.c types, values and constants, text_parse.c attributes, nodes and graphs.  A function
 * answers false once the message is stored: RL_EMODEL with the place in the text. */
#ifndef RL_TEXT_INTERNAL_H
#define RL_TEXT_INTERNAL_H
#include "text.h"

/* A graph being read. */
typedef struct scope {
    rl_graph *g;
    struct scope *up;
    rl_hash unnamed;                                     /* N of %~N -> value */
    struct { const char **p; uint32_t n, cap; } first;   /* per value: where it first stood */
    bool unordered;                                      /* a node reads what a later line makes */
} scope;

typedef struct { rl_graph *g; rl_value v; const char *at; } pending;

typedef struct {
    rl_ctx *ctx;
    rl_arena *tmp;
    const char *file, *start, *end, *s;
    rl_status status;
    uint32_t nest;
    struct { rl_graph **p; uint32_t n, cap; } graphs;  /* all made here, to free them after an error */
    struct { pending *p; uint32_t n, cap; } layouts;
} parser;

typedef struct { rl_dtype dtype; uint32_t rank; rl_dim dim[64]; const char *layout; } type;

/* ---- text_words.c ---- */

/* Stores the message with the line that `at` is in; answers false. In rl_text_fail_name a $ in fmt stands for the name. */
bool rl_text_fail_at(parser *p, const char *at, const char *what);
bool rl_text_fail_name(parser *p, const char *at, const char *fmt, const char *name);
/* Past spaces, line ends and comments. */
void rl_text_skip(parser *p);
/* Is c next, after what is skipped? take: and goes past it; want: an error where it is not. */
bool rl_text_peek(parser *p, char c);
bool rl_text_take(parser *p, char c);
bool rl_text_want(parser *p, char c);
bool rl_text_alnum(char c);
/* Of a word: letters, digits and those in `more`. */
bool rl_text_word_char(char c, const char *more);
/* The word is next, and no longer one. */
bool rl_text_take_word(parser *p, const char *w);
/* Its value; -1: it is none. */
int rl_text_hex_digit(char c);
/* "...", with \" \\ \n \t \xNN */
bool rl_text_parse_string(parser *p, rl_arena *mem, rl_span *out);
bool rl_text_parse_word(parser *p, const char *more, rl_str *out);
bool rl_text_parse_int(parser *p, int64_t *x);
bool rl_text_parse_uint(parser *p, uint64_t *x);
bool rl_text_parse_double(parser *p, double *x);

/* ---- text_values.c ---- */

/* Looks like f32[ from here on. */
bool rl_text_type_ahead(parser *p);
/* f32[2,N]@acdb, with either part missing. */
bool rl_text_parse_type(parser *p, type *t);
void rl_text_set_type(parser *p, scope *sc, rl_value v, const type *t);
bool rl_text_is_defined(const rl_valinfo *x);
/* %name, %"name", %~3, %^name, _ */
bool rl_text_parse_value(parser *p, scope *sc, rl_value *v);
/* A value that this line defines, with its type. */
bool rl_text_parse_definition(parser *p, scope *sc, rl_value *v, bool *twice);
/* The error for a value that two lines define. */
bool rl_text_fail_twice(parser *p, const scope *sc, rl_value v, const char *at);
bool rl_text_parse_hex(parser *p, rl_arena *mem, rl_span *out);
bool rl_text_take_prefix(parser *p, const char *w, char next);
/* The contents of a constant of type t, as {1,2}, seed=N, hex"..." or external. */
bool rl_text_parse_const_of(parser *p, rl_graph *g, const type *t, const char *at, rl_const **out);
bool rl_text_parse_const_line(parser *p, scope *sc);

#endif
