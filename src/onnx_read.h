/* What the reader's files share: the state of reading one model and one graph, and the ways into its messages.
 *
 * Nodes, attributes and tensors, of which there are many, are walked once each, field by field (onnx_parts.c); names are spans of the
 * model until they are interned.  protobuf-c reads what is rare: types, opsets, heads of functions.  It copies every byte it is given,
 * recurses, and makes 100 bytes and more of a few hostile ones.  So it never sees the model: it gets one message at a time, without the
 * parts that are large or not needed (rl_level_pick), and allocates from an arena that is emptied every few of them (rl_level_clean).
 * What is large (raw data, strings, bodies) stays in the mapping.  Include onnx.pb-c.h before this. */
#ifndef RL_ONNX_READ_H
#define RL_ONNX_READ_H
#include "onnx_internal.h"
#include "schema.h"

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
    rl_schema_seen *seen; /* of the main graph's nodes, or NULL */
} rl_reader;

/* One graph being read. */
typedef struct rl_level {
    rl_reader *r;
    rl_graph *g;
    uint32_t depth;       /* bodies around it */
    rl_arena scratch;     /* what protobuf-c makes */
    size_t used;          /* bytes given to protobuf-c since the scratch was empty */
    ProtobufCAllocator alloc;
    rl_arena lists;       /* of what follows: each is filled anew for the next message */
    struct { rl_span *p; uint32_t n, cap; } in, out, attr; /* the node's */
    struct { rl_value *p; uint32_t n, cap; } value;        /* its inputs, then its outputs */
    struct { int64_t *p; uint32_t n, cap; } ints;          /* the attribute's, or the tensor's dims */
    struct { float *p; uint32_t n, cap; } floats;
    bool refers;          /* an attribute of the node stands for one of a function's call */
    uint32_t owner;       /* of the notes on op types: their rl_op */
} rl_level;

/* ---- onnx_unpack.c ---- */

#define BIT(number) (1u << (number))

void rl_level_open(rl_level *l, rl_reader *r, rl_graph *g, uint32_t depth);
void rl_level_close(rl_level *l);
void rl_level_clean(rl_level *l); /* now and then empties the scratch: what was unpacked before may be gone */
/* The message's fields whose numbers are in mask, as one message. */
rl_span rl_level_pick(rl_level *l, rl_span s, uint32_t mask);
ProtobufCAllocator rl_onnx_allocator(rl_arena *mem); /* for protobuf-c: what it makes is in mem */
void *rl_level_unpack(rl_level *l, const ProtobufCMessageDescriptor *d, rl_span s); /* NULL: damaged */
/* Checks the whole tree of messages, and notes external data. */
rl_status rl_onnx_scan(rl_reader *r, rl_span bytes);
rl_status rl_onnx_scan_tensor(rl_reader *r, rl_span bytes); /* of a TensorProto */
rl_status rl_reader_name(rl_reader *r, rl_span s, rl_str *name);
rl_status rl_reader_label(rl_reader *r, rl_span s, const char **label); /* not empty, and not interned: nobody looks for it */
rl_str rl_reader_domain(rl_reader *r, rl_span s); /* "ai.onnx" is "" */
rl_span rl_span_of(const char *s); /* NULL: nothing */

/* ---- onnx_parts.c: spans with p NULL are absent ---- */

typedef struct { rl_span name, type, domain, overload; bool names_dims; } rl_node_parts; /* its lists are the level's */
void rl_parts_of_node(rl_level *l, rl_span bytes, rl_node_parts *p);

/* Which value fields it has, as bits; the last of each that stands once; how many of those that stay where they are. */
typedef struct {
    rl_span name, ref, s, t, g;
    uint32_t type, has, nstring, ngraph;
    int64_t i;
    float f;
} rl_attr_parts;
bool rl_parts_of_attr(rl_level *l, rl_span bytes, rl_attr_parts *a); /* false: damaged */

/* h: all but what. nentry: of external data. */
bool rl_parts_of_tensor(rl_level *l, rl_span bytes, rl_tensor_head *h, rl_span *name, uint32_t *nentry);
rl_status rl_parts_of_external(rl_level *l, rl_span bytes, rl_tensor_head *h);

/* ---- onnx_nodes.c ---- */

rl_status rl_read_node(rl_level *l, rl_span bytes, uint32_t k); /* k: which of its graph's */
rl_status rl_read_attr(rl_level *l, rl_span bytes, rl_attr *to, rl_hash *captured); /* captured: gets what its bodies take from here */
typedef struct { char s[160]; } rl_node_label;
rl_node_label rl_label_node(rl_span name, rl_span type, uint32_t k); /* for messages */

/* ---- onnx_read.c ---- */

rl_status rl_read_graph(rl_reader *r, rl_graph *parent, rl_span bytes, uint32_t depth, rl_graph **out); /* a body */

/* ---- onnx_values.c: each reads one field of a graph ---- */

rl_status rl_read_initializer(rl_level *l, rl_span bytes);
rl_status rl_read_sparse(rl_level *l, rl_span bytes);
rl_status rl_read_sparse_value(rl_level *l, const rl_nodeinfo *n); /* of a Constant */
rl_status rl_read_input(rl_level *l, rl_span bytes);
rl_status rl_read_output(rl_level *l, rl_span bytes);
rl_status rl_read_hint(rl_level *l, rl_span bytes);
/* Reads a TensorProto; kind: what it is in messages; the name goes to *name where wanted. */
rl_status rl_read_tensor(rl_level *l, rl_span bytes, const char *kind, rl_str *name, rl_const *c);
bool rl_read_too_many(rl_span s, uint32_t number, uint32_t max); /* more than max fields of this number */

#endif
