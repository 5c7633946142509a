/* A picture as JSON, as short as it can be and still be read: see page/report.js, which does.
 *
 *   {"title": T, "width": W, "height": H,
 *    "nodes": [[kind, x, y, w, h, op, name, line, attrs, bytes, transpose, [in ...], [out ...], [[attr, sheet] ...]] ...],
 *    "values": [[name, type, constant, path] ...]}
 *
 * op, name, line, attrs, attr, title and type are places in the list of strings, -1 where there is none; path is SVG's, "" where nothing is drawn. */
#include "picture.h"

#include <inttypes.h>

static int64_t place_of(rl_picstrings *s, const char *text) {
    if (!text) return -1;
    const char *one = rl_internz(s->mem->ctx, text);
    uint64_t key = (uint64_t)(uintptr_t)one;
    uint32_t at = rl_hash_get(&s->index, key);
    if (at != RL_NONE) return at;
    s->index.mem = s->mem;
    rl_hash_put(&s->index, key, s->list.n);
    rl_push(s->mem, s->list, one);
    return s->list.n - 1;
}

static void put_places(const uint32_t *p, uint32_t n, rl_text *t) {
    rl_put(t, "[");
    for (uint32_t i = 0; i < n; i++) rl_put(t, "%s%d", i ? "," : "", p[i] == RL_NONE ? -1 : (int)p[i]);
    rl_put(t, "],");
}

static void put_node(const rl_picnode *n, const rl_box *b, rl_picstrings *s, rl_text *t) {
    rl_put(t, "[%d,%d,%d,%d,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,", n->kind, b->x, b->y, b->w, b->h, place_of(s, n->op),
           place_of(s, n->name), place_of(s, n->line), place_of(s, n->attrs), n->bytes, n->transpose);
    put_places(n->in, n->nin, t);
    put_places(n->out, n->nout, t);
    rl_put(t, "[");
    for (uint32_t i = 0; i < n->nbody; i++) rl_put(t, "%s[%" PRId64 ",%" PRIu32 "]", i ? "," : "", place_of(s, n->body[i].attr), n->body[i].sheet);
    rl_put(t, "]]");
}

static void put_sheet(const rl_sheet *x, rl_picstrings *s, rl_text *t) {
    rl_put(t, "{\"title\":%" PRId64 ",\"width\":%d,\"height\":%d,\"nodes\":[", place_of(s, x->title), x->layers.width, x->layers.height);
    for (uint32_t i = 0; i < x->node.n; i++) {
        rl_put(t, i ? ",\n" : "\n");
        put_node(&x->node.p[i], &x->layers.box[i], s, t);
    }
    rl_put(t, "],\"values\":[");
    for (uint32_t i = 0; i < x->value.n; i++) {
        const rl_picvalue *v = &x->value.p[i];
        const rl_net *n = x->netof[i] == RL_NONE ? NULL : &x->layers.net[x->netof[i]];
        rl_put(t, "%s[%" PRId64 ",%" PRId64 ",%d,\"%s\"]", i ? ",\n" : "\n", place_of(s, v->name), place_of(s, v->type), v->constant,
               n && n->path.n ? n->path.p : "");
    }
    rl_put(t, "]}");
}

void rl_picture_json(const rl_picture *p, rl_picstrings *s, rl_text *t) {
    rl_put(t, "[");
    for (uint32_t i = 0; i < p->n; i++) {
        if (i) rl_put(t, ",");
        put_sheet(&p->p[i], s, t);
    }
    rl_put(t, "]");
}
