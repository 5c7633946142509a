/* Steps over protobuf fields and checks trees of messages: see wire.h.
 *
 * The scanner's stack holds one entry per open message, at most max_depth; so hostile nesting costs neither C stack nor
 * memory.  Groups (types 3 and 4) are no part of ONNX, and protobuf-c does not know them: they count as damage. */
#include "wire.h"

#include <string.h>

bool rl_wire_varint(rl_wire *w, uint64_t *x) {
    uint64_t v = 0;
    if (w->p < w->end && *w->p < 0x80) { /* most are one byte */
        *x = *w->p++;
        return true;
    }
    for (uint32_t shift = 0; shift < 70 && w->p < w->end; shift += 7) {
        uint8_t b = *w->p++;
        if (shift < 64) v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *x = v;
            return true;
        }
    }
    w->bad = true;
    return false;
}

/* The value after a tag. */
static bool read_value(rl_wire *w, rl_field *f) {
    size_t left, n;
    f->body = (rl_span){w->p, 0};
    switch (f->type) {
    case RL_WIRE_VARINT:
        if (!rl_wire_varint(w, &f->value)) return false;
        f->body.n = (size_t)(w->p - f->body.p);
        return true;
    case RL_WIRE_LEN:
        if (!rl_wire_varint(w, &f->value)) return false;
        f->body.p = w->p;
        n = (size_t)RL_MIN(f->value, (uint64_t)SIZE_MAX);
        break;
    case RL_WIRE_64: n = 8; break;
    case RL_WIRE_32: n = 4; break;
    default: return false;
    }
    left = (size_t)(w->end - w->p);
    if (n > left) return false;
    if (f->type != RL_WIRE_LEN) {
        f->value = 0;
        memcpy(&f->value, w->p, n);
    }
    f->body.n = n;
    w->p += n;
    return true;
}

bool rl_wire_next_any(rl_wire *w, rl_field *f) {
    if (w->bad || w->p >= w->end) return false;
    const uint8_t *start = w->p;
    uint64_t tag;
    *f = (rl_field){0};
    bool ok = rl_wire_varint(w, &tag) && tag >> 3 && tag <= UINT32_MAX;
    if (ok) {
        f->number = (uint32_t)(tag >> 3);
        f->type = (uint32_t)(tag & 7);
        ok = read_value(w, f);
    }
    if (!ok) {
        w->bad = true;
        w->p = start;
        return false;
    }
    f->all = (rl_span){start, (size_t)(w->p - start)};
    return true;
}

rl_span rl_wire_part(rl_span message, uint32_t number) {
    rl_span part = {0};
    rl_wire w = rl_wire_of(message);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == number && f.type == RL_WIRE_LEN) part = f.body;
    return part;
}

typedef struct {
    rl_wire w;
    const void *message;
    uint32_t seen; /* bits of the single fields that were there, by number */
} level;

static rl_wire_fault fault(const char *what, const uint8_t *at, rl_span s, const level *l, uint32_t number,
                           bool limit) {
    return (rl_wire_fault){what, (size_t)(at - s.p), l->message, number, limit};
}

/* Why rl_wire_next failed at w->p. */
static const char *damage(const rl_field *f) {
    if (!f->number) return "no field starts here";
    if (f->type == 3 || f->type == 4 || f->type > 5) return "a field of an unknown wire type";
    return "a field that passes the end of its message";
}

rl_wire_fault rl_wire_scan(rl_span s, const void *root, uint32_t max_depth, rl_wire_visit *visit, void *user,
                           rl_arena *mem) {
    level *stack = rl_new(mem, level, max_depth + 1);
    uint32_t depth = 1;
    stack[1] = (level){rl_wire_of(s), root, 0};
    while (depth) {
        level *l = &stack[depth];
        rl_field f;
        if (!rl_wire_next(&l->w, &f)) {
            if (l->w.bad) return fault(damage(&f), l->w.p, s, l, f.number, false);
            depth--;
            continue;
        }
        const void *child = NULL;
        switch (visit(user, l->message, &f, &child)) {
        case RL_FIELD_OTHER: break;
        case RL_FIELD_WRONG: return fault("a field of the wrong wire type", f.all.p, s, l, f.number, false);
        case RL_FIELD_ZERO: return fault("a name with a zero byte", f.all.p, s, l, f.number, false);
        case RL_FIELD_STOP: return fault("too many of these", f.all.p, s, l, f.number, true);
        case RL_FIELD_SINGLE:
            if (f.number < 32 && l->seen >> f.number & 1)
                return fault("a second one of what may stand once", f.all.p, s, l, f.number, false);
            if (f.number < 32) l->seen |= 1u << f.number;
            /* fall through */
        case RL_FIELD_MESSAGE:
            if (depth == max_depth)
                return fault("messages nested deeper than the limit", f.all.p, s, l, f.number, true);
            stack[++depth] = (level){rl_wire_of(f.body), child, 0};
        }
    }
    return (rl_wire_fault){0};
}

/* At most 10 bytes; returns how many. */
static uint32_t put_varint(uint8_t *p, uint64_t x) {
    uint32_t n = 0;
    for (; x >= 0x80; x >>= 7) p[n++] = (uint8_t)(x | 0x80);
    p[n++] = (uint8_t)x;
    return n;
}

uint32_t rl_wire_put_len(uint8_t *p, uint32_t number, uint64_t nbyte) {
    uint32_t n = put_varint(p, (uint64_t)number << 3 | RL_WIRE_LEN);
    return n + put_varint(p + n, nbyte);
}

void rl_wire_add_varint(rl_text *t, uint32_t number, uint64_t x) {
    uint8_t b[20];
    uint32_t n = put_varint(b, number << 3 | RL_WIRE_VARINT);
    n += put_varint(b + n, x);
    rl_put_bytes(t, (const char *)b, n);
}

void rl_wire_add_block(rl_text *t, uint32_t number, const void *p, size_t n) {
    uint8_t b[15];
    rl_put_bytes(t, (const char *)b, rl_wire_put_len(b, number, n));
    if (n) rl_put_bytes(t, p, n);
}
