/* The protobuf wire format: what onnx_read.c and onnx_write.c do before and beside protobuf-c.
 *
 * A message is a row of fields, each a tag (number << 3 | type) and a value.  rl_wire_next steps over one message's fields
 * without looking inside them:
 *
 *   rl_wire w = rl_wire_of(span);
 *   for (rl_field f; rl_wire_next(&w, &f);)
 *       if (f.number == 7 && f.type == RL_WIRE_LEN) use(f.body);
 *   if (w.bad) ...                                  the bytes from w.p on are no field
 *
 * rl_wire_scan walks a whole tree of messages without recursion and refuses what would hurt later: damaged fields, lengths that
 * pass the end, known fields of a wrong type, too many levels.  After it, everything inside may be read without checks. */
#ifndef RL_WIRE_H
#define RL_WIRE_H
#include "ir.h"

enum { RL_WIRE_VARINT = 0, RL_WIRE_64 = 1, RL_WIRE_LEN = 2, RL_WIRE_32 = 5 };

typedef struct { const uint8_t *p, *end; bool bad; } rl_wire;

typedef struct {
    uint32_t number;
    uint32_t type;
    uint64_t value; /* varint and fixed types */
    rl_span body;   /* the value's bytes; of RL_WIRE_LEN those after the length */
    rl_span all;    /* the whole field, tag included */
} rl_field;

static inline rl_wire rl_wire_of(rl_span s) { return (rl_wire){s.p, s.p ? s.p + s.n : s.p, false}; }
bool rl_wire_next_any(rl_wire *w, rl_field *f);

/* False at the end, and with w->bad set at damage.  Most fields have a tag of one byte, and a length of one or two or a number below 128:
 * those are read here. */
static inline bool rl_wire_next(rl_wire *w, rl_field *f) {
    const uint8_t *p = w->p;
    size_t left = (size_t)(w->end - p);
    if (w->bad || left < 3 || *p < 8 || *p >= 0x80) return rl_wire_next_any(w, f);
    uint32_t type = *p & 7, head = p[1] < 0x80 ? 2 : 3;
    size_t x = head == 2 ? p[1] : (p[1] & 0x7fu) | (size_t)p[2] << 7, n = type == RL_WIRE_LEN ? head + x : head;
    if ((type != RL_WIRE_LEN && type != RL_WIRE_VARINT) || (head == 3 && p[2] >= 0x80) || n > left) return rl_wire_next_any(w, f);
    *f = (rl_field){(uint32_t)*p >> 3, type, x, {p + 1, head - 1}, {p, n}};
    if (type == RL_WIRE_LEN) f->body = (rl_span){p + head, x};
    w->p = p + n;
    return true;
}
bool rl_wire_varint(rl_wire *w, uint64_t *x);
/* The bytes of the message's last field of this number; p NULL: it has none. */
rl_span rl_wire_part(rl_span message, uint32_t number);

/* What the scanner asks about each field: message is the schema's entry of the message it stands in. A SINGLE message may
 * stand there once: protobuf would merge a second one into it, in time quadratic in their number. */
typedef enum { RL_FIELD_OTHER, RL_FIELD_MESSAGE, RL_FIELD_SINGLE, RL_FIELD_WRONG, RL_FIELD_ZERO, RL_FIELD_STOP } rl_field_kind;
typedef rl_field_kind rl_wire_visit(void *user, const void *message, const rl_field *f, const void **child);

typedef struct {
    const char *what;    /* NULL: the tree is sound */
    size_t at;           /* byte */
    const void *message; /* the schema's entry of the message where it happened */
    uint32_t number;     /* field, 0 if unknown */
    bool limit;          /* sound so far, but over a limit */
} rl_wire_fault;

/* Checks the tree under s; root: the schema's entry of its root; mem: for a stack of max_depth entries. */
rl_wire_fault rl_wire_scan(rl_span s, const void *root, uint32_t max_depth, rl_wire_visit *visit, void *user, rl_arena *mem);

/* Encoders: each returns how many bytes it wrote. */
uint32_t rl_wire_put_len(uint8_t *p, uint32_t number, uint64_t nbyte);      /* at most 15: tag and length */

/* The same at the end of t: a whole field. */
void rl_wire_add_varint(rl_text *t, uint32_t number, uint64_t x);
void rl_wire_add_block(rl_text *t, uint32_t number, const void *p, size_t n);

#endif
