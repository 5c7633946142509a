/* Checks a model's bytes and hands small pieces of them to protobuf-c: see onnx_read.h.
 *
 * The scan goes by protobuf-c's own descriptors, so proto/onnx.proto is the one place that knows the schema. */
#include <string.h>

#include "onnx.pb-c.h"
#include "onnx_read.h"

/* ---- protobuf-c ---- */

static void *arena_alloc(void *arena, size_t n) {
    return rl_alloc(arena, n);
}

static void arena_free(void *arena, void *p) {
    (void)arena, (void)p;
}

ProtobufCAllocator rl_onnx_allocator(rl_arena *mem) {
    return (ProtobufCAllocator){arena_alloc, arena_free, mem};
}

void rl_level_open(rl_level *l, rl_reader *r, rl_graph *g, uint32_t depth) {
    *l = (rl_level){.r = r, .g = g, .depth = depth};
    l->owner = ++r->ctx->nowner;
    rl_arena_init(&l->scratch, r->ctx);
    rl_arena_init(&l->lists, r->ctx);
}

void rl_level_close(rl_level *l) {
    rl_arena_free(&l->scratch);
    rl_arena_free(&l->lists);
}

void rl_level_clean(rl_level *l) {
    if (l->used < SCRATCH) return;
    rl_arena_free(&l->scratch);
    l->used = 0;
}

/* The message's fields whose numbers are in mask, as one message. */
rl_span rl_level_pick(rl_level *l, rl_span s, uint32_t mask) {
    size_t n = 0;
    rl_wire w = rl_wire_of(s);
    for (rl_field f; rl_wire_next(&w, &f);)
        if (f.number < 32 && mask & BIT(f.number)) n += f.all.n;
    l->used += n + 256;
    if (n == s.n) return s;
    uint8_t *to = rl_alloc(&l->scratch, n);
    rl_span out = {to, n};
    w = rl_wire_of(s);
    for (rl_field f; rl_wire_next(&w, &f);) {
        if (f.number >= 32 || !(mask & BIT(f.number))) continue;
        memcpy(to, f.all.p, f.all.n);
        to += f.all.n;
    }
    return out;
}

void *rl_level_unpack(rl_level *l, const ProtobufCMessageDescriptor *d, rl_span s) {
    l->alloc = rl_onnx_allocator(&l->scratch);
    return protobuf_c_message_unpack(d, &l->alloc, s.n, s.p);
}

/* ---- the scan ---- */

static uint32_t wire_type(ProtobufCType t) {
    switch (t) {
    case PROTOBUF_C_TYPE_STRING: case PROTOBUF_C_TYPE_BYTES: case PROTOBUF_C_TYPE_MESSAGE: return RL_WIRE_LEN;
    case PROTOBUF_C_TYPE_FIXED32: case PROTOBUF_C_TYPE_SFIXED32: case PROTOBUF_C_TYPE_FLOAT: return RL_WIRE_32;
    case PROTOBUF_C_TYPE_FIXED64: case PROTOBUF_C_TYPE_SFIXED64: case PROTOBUF_C_TYPE_DOUBLE: return RL_WIRE_64;
    default: return RL_WIRE_VARINT;
    }
}

/* Notes where external data is, also in functions and other parts that stay bytes. */
static void note_location(rl_reader *r, rl_span entry) {
    rl_span key = rl_wire_part(entry, ENTRY_KEY);
    if (key.n == 8 && rl_same_bytes(key.p, "location", 8)) rl_push(r->onnx->mem, r->onnx->location, rl_wire_part(entry, ENTRY_VALUE));
}

static rl_field_kind visit_message(rl_reader *r, const ProtobufCFieldDescriptor *d, const rl_field *f,
                                   const void **child) {
    *child = d->descriptor;
    if (d->descriptor == &onnx__node_proto__descriptor && ++r->nnode > r->opt.max_node) return RL_FIELD_STOP;
    if (d->descriptor == &onnx__tensor_shape_proto__descriptor) r->ndim = 0;
    if (d->descriptor == &onnx__tensor_shape_proto__dimension__descriptor && ++r->ndim > MAX_RANK) return RL_FIELD_STOP;
    if (f->number == TENSOR_EXTERNAL_DATA && d->descriptor == &onnx__string_string_entry_proto__descriptor)
        note_location(r, f->body);
    return d->label == PROTOBUF_C_LABEL_REPEATED ? RL_FIELD_MESSAGE : RL_FIELD_SINGLE;
}

/* protobuf-c's strings end at a zero byte: two names would become one.  Only texts that nobody looks at may have any. */
static bool has_zero(const void *message, const ProtobufCFieldDescriptor *d, rl_span s) {
    return s.n && memchr(s.p, 0, s.n) && message != &onnx__string_string_entry_proto__descriptor
           && strcmp(d->name, "doc_string") != 0;
}

static rl_field_kind visit(void *user, const void *message, const rl_field *f, const void **child) {
    const ProtobufCFieldDescriptor *d = protobuf_c_message_descriptor_get_field(message, f->number);
    if (!d) return RL_FIELD_OTHER;
    uint32_t want = wire_type(d->type);
    if (f->type != want && !(f->type == RL_WIRE_LEN && d->label == PROTOBUF_C_LABEL_REPEATED)) return RL_FIELD_WRONG;
    if (d->type == PROTOBUF_C_TYPE_STRING && has_zero(message, d, f->body)) return RL_FIELD_ZERO;
    return d->type == PROTOBUF_C_TYPE_MESSAGE ? visit_message(user, d, f, child) : RL_FIELD_OTHER;
}

/* A zero byte would end the name for us, but not for others. */
static rl_status check_locations(rl_reader *r) {
    for (uint32_t i = 0; i < r->onnx->location.n; i++) {
        rl_span s = r->onnx->location.p[i];
        if (s.n && memchr(s.p, 0, s.n))
            return rl_fail(r->ctx, RL_EMODEL, "external data '%.100s': a zero byte in its location", s.p);
    }
    return RL_OK;
}

static rl_status scan(rl_reader *r, rl_span bytes, const ProtobufCMessageDescriptor *root) {
    rl_arena tmp;
    rl_arena_init(&tmp, r->ctx);
    rl_wire_fault e = rl_wire_scan(bytes, root, r->opt.max_depth, visit, r, &tmp);
    rl_arena_free(&tmp);
    if (!e.what) return check_locations(r);
    const ProtobufCMessageDescriptor *m = e.message;
    const ProtobufCFieldDescriptor *d = e.number ? protobuf_c_message_descriptor_get_field(m, e.number) : NULL;
    return rl_fail(r->ctx, e.limit ? RL_ELIMIT : RL_EMODEL, "%s: byte %zu, in %s%s%s: %s",
                   e.limit ? "over a limit" : "not an ONNX model", e.at, m->short_name, d ? "." : "", d ? d->name : "",
                   e.what);
}

rl_status rl_onnx_scan(rl_reader *r, rl_span bytes) {
    return scan(r, bytes, &onnx__model_proto__descriptor);
}

rl_status rl_onnx_scan_tensor(rl_reader *r, rl_span bytes) {
    return scan(r, bytes, &onnx__tensor_proto__descriptor);
}

/* ---- names ---- */

rl_span rl_span_of(const char *s) {
    return s ? (rl_span){(const uint8_t *)s, strlen(s)} : (rl_span){0};
}

static rl_status check_name(rl_reader *r, rl_span s) {
    if (s.n <= MAX_NAME) return RL_OK;
    return rl_fail(r->ctx, RL_ELIMIT, "a name of %zu bytes: '%.40s...' (the limit is %d)", s.n, (const char *)s.p, MAX_NAME);
}

rl_status rl_reader_name(rl_reader *r, rl_span s, rl_str *name) {
    RL_TRY(check_name(r, s));
    *name = rl_intern(r->ctx, (const char *)s.p, s.n);
    return RL_OK;
}

rl_status rl_reader_label(rl_reader *r, rl_span s, const char **label) {
    RL_TRY(check_name(r, s));
    char *own = rl_alloc(&r->ctx->mem, s.n + 1);
    memcpy(own, s.p, s.n);
    *label = own;
    return RL_OK;
}

rl_str rl_reader_domain(rl_reader *r, rl_span s) {
    bool standard = s.n == 0 || (s.n == 7 && rl_same_bytes(s.p, "ai.onnx", 7));
    return standard ? rl_internz(r->ctx, "") : rl_intern(r->ctx, (const char *)s.p, s.n);
}
