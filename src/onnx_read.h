/* What the reader's files share: the state of reading one model and one graph, and the way to protobuf-c.
 *
 * protobuf-c copies every byte it is given, recurses, and makes 100 bytes and more of a few hostile ones.  So it never sees
 * the model: it gets one node, attribute, type or tensor head at a time, without the parts that are large or not needed
 * (rl_level_pick), and allocates from an arena that is emptied every few nodes (rl_level_clean).  What is large (raw data,
 * strings, bodies) is found with rl_wire_next, and stays in the mapping.  Include onnx.pb-c.h before this. */
#ifndef RL_ONNX_READ_H
#define RL_ONNX_READ_H
#include "onnx_internal.h"

enum {
    MAX_NAME = 65536, MAX_RANK = 1024, MAX_DEPTH = 1000, MAX_ATTR = 65536, MAX_EXTERNAL_KEYS = 64, MAX_OPSET = 1024,
    MAX_FUNCTION = 10000, MAX_IR = 14,
    MIN_NODE = 7,   /* bytes of a node with an op_type and an output, its tag included */
    SCRATCH = 65536 /* bytes given to protobuf-c until its arena is emptied */
};

typedef struct {
    rl_ctx *ctx;
    rl_graph *main;
    struct rl_onnx *onnx; /* of the main graph */
    rl_readopt opt;
    uint64_t nnode;       /* in the whole model */
    uint64_t nbody;       /* bodies read so far, and the most that may be */
    uint64_t max_body;
    uint32_t ndim;        /* of the shape that the scanner is in */
} rl_reader;

/* One graph being read. */
typedef struct rl_level {
    rl_reader *r;
    rl_graph *g;
    uint32_t depth;       /* bodies around it */
    rl_arena scratch;     /* what protobuf-c makes */
    size_t used;          /* bytes given to protobuf-c since the scratch was empty */
    ProtobufCAllocator alloc;
    struct rl_level *attr;   /* the same for a node's attributes, emptied while the node's names are still wanted */
} rl_level;

/* ---- onnx_unpack.c ---- */

#define BIT(number) (1u << (number))

void rl_level_open(rl_level *l, rl_reader *r, rl_graph *g, uint32_t depth);
void rl_level_clean(rl_level *l); /* now and then empties the scratch: what was unpacked before may be gone */
/* The message's fields whose numbers are in mask, as one message. */
rl_span rl_level_pick(rl_level *l, rl_span s, uint32_t mask);
void *rl_level_unpack(rl_level *l, const ProtobufCMessageDescriptor *d, rl_span s); /* NULL: damaged */
/* Checks the whole tree of messages, and notes external data. */
rl_status rl_onnx_scan(rl_reader *r, rl_span bytes);
rl_status rl_onnx_scan_tensor(rl_reader *r, rl_span bytes); /* of a TensorProto */
rl_status rl_reader_name(rl_reader *r, const char *s, rl_str *name);
rl_str rl_reader_domain(rl_reader *r, const char *s); /* "ai.onnx" is "" */

/* ---- onnx_values.c: each reads one field of a graph ---- */

rl_status rl_read_initializer(rl_level *l, rl_span bytes);
rl_status rl_read_sparse(rl_level *l, rl_span bytes);
rl_status rl_read_input(rl_level *l, rl_span bytes);
rl_status rl_read_output(rl_level *l, rl_span bytes);
rl_status rl_read_hint(rl_level *l, rl_span bytes);
/* Reads a TensorProto; kind: what it is in messages; the name goes to *name where wanted. */
rl_status rl_read_tensor(rl_level *l, rl_span bytes, const char *kind, rl_str *name, rl_const *c);
void rl_read_const(rl_graph *g, rl_value v, const rl_const *c); /* v is this constant */
bool rl_read_too_many(rl_span s, uint32_t number, uint32_t max); /* more than max fields of this number */

#endif
