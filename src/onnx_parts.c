/* One walk over a node's, an attribute's or a tensor's fields: see onnx_read.h.
 *
 * The scan (onnx_unpack.c) has seen these bytes: fields are whole, of the type that the schema says or packed, and names have no zero bytes.
 * Of what may stand once the last counts, as in protobuf-c. */
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx_read.h"

/* ---- nodes ---- */

enum { MANY = 65536 }; /* a length at which a list that doubles is full */

/* Room for all names of the node at once: lists that go on doubling leave as much behind as they hold. */
static void make_room(rl_level *l, rl_span bytes) {
    uint32_t nin = 0, nout = 0;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) nin += f.number == NODE_INPUT, nout += f.number == NODE_OUTPUT;
    if (nin > l->in.cap) l->in.p = rl_grow(&l->lists, l->in.p, l->in.n, nin, sizeof *l->in.p), l->in.cap = nin;
    if (nout > l->out.cap) l->out.p = rl_grow(&l->lists, l->out.p, l->out.n, nout, sizeof *l->out.p), l->out.cap = nout;
}

void rl_parts_of_node(rl_level *l, rl_span bytes, rl_node_parts *p) {
    *p = (rl_node_parts){0};
    l->in.n = l->out.n = l->attr.n = 0;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        switch (f.number) {
        case NODE_INPUT:
            if (l->in.n == MANY && l->in.cap == MANY) make_room(l, bytes); /* there is one more, so once */
            rl_push(&l->lists, l->in, f.body);
            break;
        case NODE_OUTPUT:
            if (l->out.n == MANY && l->out.cap == MANY) make_room(l, bytes);
            rl_push(&l->lists, l->out, f.body);
            break;
        case NODE_NAME: p->name = f.body; break;
        case NODE_OP_TYPE: p->type = f.body; break;
        case NODE_ATTRIBUTE: rl_push(&l->lists, l->attr, f.body); break;
        case NODE_DOMAIN: p->domain = f.body; break;
        case NODE_OVERLOAD: p->overload = f.body; break;
        case NODE_DEVICES: p->names_dims |= rl_read_too_many(f.body, DEVICES_SHARDING, 0); break;
        default: break;
        }
    }
}

/* ---- attributes ---- */

/* One value of a repeated field, or a packed run of them. */
static bool add_ints(rl_level *l, const rl_field *f) {
    if (f->type != RL_WIRE_LEN) {
        rl_push(&l->lists, l->ints, (int64_t)f->value);
        return true;
    }
    rl_wire w = rl_wire_of(f->body);
    uint64_t x;
    while (w.p < w.end) {
        if (!rl_wire_varint(&w, &x)) return false;
        rl_push(&l->lists, l->ints, (int64_t)x);
    }
    return true;
}

static float float_of(const void *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}

static bool add_floats(rl_level *l, const rl_field *f) {
    for (size_t i = 0; i + 4 <= f->body.n; i += 4) rl_push(&l->lists, l->floats, float_of(f->body.p + i));
    return f->body.n % 4 == 0;
}

bool rl_parts_of_attr(rl_level *l, rl_span bytes, rl_attr_parts *a) {
    static const uint32_t values = BIT(ATTR_F) | BIT(ATTR_I) | BIT(ATTR_S) | BIT(ATTR_T) | BIT(ATTR_G) | BIT(ATTR_FLOATS) | BIT(ATTR_INTS)
                                   | BIT(ATTR_STRINGS) | BIT(ATTR_TENSORS) | BIT(ATTR_GRAPHS) | BIT(ATTR_TP) | BIT(ATTR_TYPE_PROTOS)
                                   | BIT(ATTR_SPARSE) | BIT(ATTR_SPARSES);
    bool ok = true;
    *a = (rl_attr_parts){0};
    l->ints.n = l->floats.n = 0;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        switch (f.number) {
        case ATTR_NAME: a->name = f.body; break;
        case ATTR_REF_NAME: a->ref = f.body; l->refers |= f.body.n != 0; break;
        case ATTR_TYPE: a->type = (uint32_t)f.value; break;
        case ATTR_F: a->f = float_of(f.body.p); break;
        case ATTR_I: a->i = (int64_t)f.value; break;
        case ATTR_S: a->s = f.body; break;
        case ATTR_T: a->t = f.body; break;
        case ATTR_G: a->g = f.body; break;
        case ATTR_FLOATS: ok &= add_floats(l, &f); break;
        case ATTR_INTS: ok &= add_ints(l, &f); break;
        case ATTR_STRINGS: a->nstring++; break;
        case ATTR_GRAPHS: a->ngraph++; break;
        default: break;
        }
        if (f.number < 32) a->has |= BIT(f.number) & values;
    }
    return ok;
}

/* ---- tensors ---- */

/* A string for those who want a zero at its end. */
static const char *text_of(rl_level *l, rl_span s) {
    char *t = rl_alloc(&l->scratch, s.n + 1);
    l->used += s.n + 256;
    if (s.n) memcpy(t, s.p, s.n);
    return t;
}

static rl_status read_entry(rl_level *l, rl_span bytes, rl_tensor_head *h) {
    rl_span key = rl_wire_part(bytes, ENTRY_KEY), value = rl_wire_part(bytes, ENTRY_VALUE);
    if (!key.p || !value.p) return RL_OK;
    const char *name = text_of(l, key);
    const char **to = strcmp(name, "location") == 0 ? &h->location
                    : strcmp(name, "offset") == 0   ? &h->offset
                    : strcmp(name, "length") == 0   ? &h->length
                                                    : NULL;
    if (!to) return RL_OK;
    if (*to) return rl_fail(l->r->ctx, RL_EMODEL, "%s: external data has two entries '%.40s'", h->what, name);
    *to = text_of(l, value);
    return RL_OK;
}

rl_status rl_parts_of_external(rl_level *l, rl_span bytes, rl_tensor_head *h) {
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number == TENSOR_EXTERNAL_DATA) RL_TRY(read_entry(l, f.body, h));
    return RL_OK;
}

bool rl_parts_of_tensor(rl_level *l, rl_span bytes, rl_tensor_head *h, rl_span *name, uint32_t *nentry) {
    bool ok = true;
    *h = (rl_tensor_head){0};
    *name = (rl_span){0};
    *nentry = 0;
    l->ints.n = 0;
    rl_wire w = rl_wire_of(bytes);
    for (rl_field f; rl_wire_next(&w, &f);) {
        switch (f.number) {
        case TENSOR_DIMS: ok &= add_ints(l, &f); break;
        case TENSOR_DATA_TYPE: h->dtype = (int32_t)(uint32_t)f.value; break;
        case TENSOR_SEGMENT: h->segment = true; break;
        case TENSOR_NAME: *name = f.body; break;
        case TENSOR_EXTERNAL_DATA: ++*nentry; break;
        case TENSOR_DATA_LOCATION: h->external = (int32_t)(uint32_t)f.value == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL; break;
        default: break;
        }
    }
    h->dim = l->ints.p;
    h->rank = l->ints.n;
    return ok;
}
