/* The list of spans that a written model is: see onnx_writer.h. */
#include <string.h>

#include "onnx_writer.h"

void rl_writer_put(rl_writer *w, const void *p, size_t n) {
    if (!n) return;
    rl_span *last = w->chunk.n ? &w->chunk.p[w->chunk.n - 1] : NULL;
    w->total += n;
    if (last && last->p && last->p + last->n == (const uint8_t *)p) last->n += n;
    else /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): rl_push makes room */
        rl_push(w->mem, w->chunk, ((rl_span){p, n}));
}

void rl_writer_span(rl_writer *w, rl_span s) {
    rl_writer_put(w, s.p, s.n);
}

void rl_writer_len(rl_writer *w, uint32_t number, rl_span body) {
    uint8_t head[16];
    uint32_t n = rl_wire_put_len(head, number, body.n);
    rl_writer_put(w, rl_copy(w->mem, head, n), n);
    rl_writer_span(w, body);
}

void rl_writer_text(rl_writer *w, uint32_t number, const char *s) {
    rl_writer_len(w, number, (rl_span){(const uint8_t *)s, strlen(s)});
}

rl_opened rl_writer_open(rl_writer *w, uint32_t number) {
    rl_opened o = {w->chunk.n, number, w->total};
    rl_push(w->mem, w->chunk, ((rl_span){0}));
    return o;
}

void rl_writer_close(rl_writer *w, rl_opened o) {
    uint8_t head[16];
    uint32_t n = rl_wire_put_len(head, o.number, w->total - o.start);
    w->chunk.p[o.chunk] = (rl_span){rl_copy(w->mem, head, n), n};
    w->total += n;
}

void rl_writer_others(rl_writer *w, rl_span s, uint64_t mask) {
    rl_wire r = rl_wire_of(s);
    for (rl_field f; rl_wire_next(&r, &f);)
        if (f.number >= 64 || !(mask >> f.number & 1)) rl_writer_span(w, f.all);
}
