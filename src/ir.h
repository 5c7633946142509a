/* The graph: values joined by nodes, in ONNX's own terms plus a layout on every tensor edge.
 *
 * A value keeps its *logical* axes (ONNX order) for ever; its *layout* says in which order they lie in memory
 * (NULL: row-major, what ONNX means).  Ids, not pointers, name nodes and values: they are stable in dumps, and a pass that
 * needs a fact per value makes a side array `T *x = rl_new(tmp, T, g->nval)`; nothing is added to these structs for one pass.
 *
 * Example, the graph of   y = Relu(x)   by hand:
 *   rl_value x = rl_graph_value(g, rl_internz(ctx, "x")), y = rl_graph_value(g, rl_internz(ctx, "y"));
 *   rl_graph_set_type(g, x, RL_F32, 2, (rl_dim[]){4, 6});
 *   rl_node n = rl_graph_add(g, RL_OP_Relu, "" name, 1, &x, 1, &y);
 *   rl_push(&g->mem, g->input, x);  rl_push(&g->mem, g->output, y);
 *
 * Only graph.c writes def, port and use.  A node's id says nothing about its place: the order of execution is g->order.
 */
#ifndef RL_IR_H
#define RL_IR_H
#include "base.h"
#include "dim.h"
#include "dtype.h"
#include "hash.h"

typedef struct { uint32_t i; } rl_value;
typedef struct { uint32_t i; } rl_node;
#define RL_NOVALUE ((rl_value){RL_NONE}) /* an optional input or output left out */
#define RL_NONODE ((rl_node){RL_NONE})
static inline bool rl_has(rl_value v) { return v.i != RL_NONE; }
static inline bool rl_same(rl_value a, rl_value b) { return a.i == b.i; }

/* A tensor constant: little-endian row-major bytes as in TensorProto.raw_data.  data is NULL where the bytes are not at
 * hand (strings, external data that was not mapped): such a constant is never transformed, only kept. */
typedef struct rl_const {
    rl_dtype dtype;
    uint32_t rank;
    const int64_t *dim;
    const void *data;
    size_t nbyte;
} rl_const;

/* A span of bytes in the model file. */
typedef struct { const uint8_t *p; size_t n; } rl_span;

typedef struct rl_graph rl_graph;

/* ONNX's AttributeProto.AttributeType numbers for those that we decode. */
typedef enum {
    RL_ATTR_FLOAT = 1, RL_ATTR_INT = 2, RL_ATTR_STRING = 3, RL_ATTR_TENSOR = 4, RL_ATTR_GRAPH = 5, RL_ATTR_FLOATS = 6,
    RL_ATTR_INTS = 7, RL_ATTR_STRINGS = 8,
    RL_ATTR_OTHER = 100 /* anything else (lists of graphs, sparse tensors, types, references): only raw is set */
} rl_attr_kind;
typedef struct {
    rl_str name;
    rl_attr_kind kind;
    uint32_t n;              /* elements of floats, ints, strings */
    int64_t i;
    float f;
    rl_span s;               /* a string's bytes; not 0-terminated */
    const int64_t *ints;
    const float *floats;
    const rl_span *strings;
    const rl_const *tensor;
    rl_graph *graph;         /* a body; its outer values are in its `outer` list */
    rl_str ref;              /* in a function: the attribute of its call that this one stands for; else NULL */
    rl_span raw;             /* the AttributeProto as it stood in the file; p NULL when made here */
} rl_attr;

typedef enum {
#define OP(name, ...) RL_OP_##name,
#include "ops.def"
#undef OP
    RL_OP_OPAQUE, /* not in the table: unknown domain, name or version; kept as it is */
    RL_OP_MOVE,   /* a conversion: logical identity, input and output layouts differ (after pass insert only) */
    RL_OP_ENTER,  /* the two ends of an If, Loop or Scan in a graph that holds its bodies' nodes (passes/flat.h) */
    RL_OP_LEAVE,
    RL_NOP
} rl_op;

/* A layout is the order of a tensor's digits in memory, outermost first.  Each logical axis with more than one
 * element is a sequence of digits (sub-axes, outermost first); an axis that nothing splits is one digit.
 * f32[2,3,8] stored channels-last with the 8 split into (4,2), the 2 outermost:
 *   n = 4, axis = {0,2,1,2}, sub = {0,0,0,1}, size = {2,4,3,2}; see layout.h for names and printing. */
typedef struct rl_layout {
    uint32_t n;
    const uint8_t *axis;  /* the logical axis of each digit, in memory order */
    const uint8_t *sub;   /* which digit of that axis: 0 = outermost */
    const rl_dim *size;   /* elements of each digit */
} rl_layout;

/* One element of a small tensor whose contents are known in part: num/den, a symbolic size sym/den, or nothing at all.
 * den is 1 except in float tensors (0.5*N is {.sym = N, .den = 2}). */
typedef struct rl_elem {
    bool known;  /* num / den */
    int64_t num; /* may be negative */
    rl_dim sym;  /* where not known: a dim < 0, or 0 when nothing is known */
    int64_t den; /* > 0 */
} rl_elem;

typedef struct { rl_node node; uint32_t slot; } rl_use; /* slot >= nin: captured by a body of the node */

typedef struct rl_valinfo {
    rl_str name;             /* unique in its graph; NULL until printed or written for values made here */
    rl_dtype dtype;          /* RL_UNDEF: unknown, or not a tensor */
    uint32_t rank;           /* RL_NORANK: unknown, or not a tensor */
    const rl_dim *dim;       /* logical, ONNX order */
    const rl_layout *layout; /* NULL: row-major */
    rl_node def;             /* RL_NONODE: graph input, initializer, outer value */
    uint32_t port;           /* which output of def */
    rl_use *use;
    uint32_t nuse, usecap;
    const rl_const *data;    /* NULL unless constant: initializer, Constant node, or folded */
    const rl_elem *elem;     /* contents of a small tensor, row-major, or NULL: set by shape.c, read by rl_shape_elem */
    rl_span raw;             /* initializer: its TensorProto in the file, p NULL when made here */
    uint32_t nelem;
    bool is_input, is_init, is_output, is_outer; /* is_init: written as an initializer */
} rl_valinfo;
#define RL_NORANK UINT32_MAX

typedef struct rl_nodeinfo {
    rl_op op;
    uint32_t since;            /* opset version of its domain in this model */
    rl_str domain, type;       /* domain "" and "ai.onnx" are both "" */
    const char *name;          /* or NULL; need not be unique, so it is not interned */
    rl_value *in, *out, *cap;  /* cap: values captured by its bodies */
    const rl_attr *attr;
    uint32_t nin, nout, ncap, nattr;
    rl_span raw;               /* the NodeProto as it stood in the file; p NULL when made or changed here */
    uint32_t origin;           /* index in the input model, RL_NONE when made here */
    rl_op bare;                /* of what is opaque only because an attribute is its function's call's: the op; else RL_OP_OPAQUE */
} rl_nodeinfo;

typedef struct { rl_str domain; int64_t version; } rl_opset;
typedef struct { rl_value v; const rl_dim *dim; } rl_sized;
/* Sizes that every run needs equal, and inputs that have others by it now, with their own (passes/alike.c). */
typedef struct { rl_dimrules rules; struct { rl_sized *p; uint32_t n, cap; } input; } rl_alike;
typedef struct { rl_value v; const uint32_t *perm; } rl_turn; /* its dim i is dim perm[i] of what the file has in its place */

struct rl_graph {
    rl_ctx *ctx;
    rl_arena mem;
    rl_arena slots, uses, dims; /* what each node, or value, has one of, one kind beside the other: a walk over all reads no other memory */
    rl_graph *parent;          /* NULL for the main graph */
    rl_str name;
    rl_str domain;             /* of a function; given: its attributes that have a value where a call gives none */
    const rl_attr *given;
    uint32_t ngiven;
    rl_nodeinfo *node;
    uint32_t nnode, nodecap;
    rl_valinfo *val;
    uint32_t nval, valcap;
    struct { rl_value *p; uint32_t n, cap; } input, output, init, outer;
    struct { rl_turn *p; uint32_t n, cap; } turned; /* inputs and outputs that changed their order on request */
    struct { rl_node *p; uint32_t n, cap; } order; /* live nodes in a topological order */
    uint32_t owner;            /* of the notes on its values' names (base.h) */
    rl_hash byname;            /* rl_str pointer -> value, where another graph has the note */
    struct { rl_opset *p; uint32_t n, cap; } opset;
    int64_t ir_version;
    struct rl_onnx *onnx;      /* what onnx_read.c keeps for onnx_write.c; NULL for graphs made from text */
    uint32_t nfresh;           /* for names of new values */
    struct { rl_graph **p; uint32_t n, cap; } function; /* of the main graph: model-local functions; NULL: not understood */
    bool as_read;              /* nothing made it better: the writer takes its bytes, whatever became of it */
    bool closed;               /* no form of its bodies could be written: they were left as they are */
    bool sized;                /* --dim or --input-shape gave a size that was open: inputs and outputs declare it (fix.h) */
    bool doubtful;             /* shape inference let a contradiction pass: in a body, which may never run */
    rl_alike *alike;           /* NULL: no two sizes are equal that do not look it */
    const rl_dtype *rounded;   /* [nrounded] of values that lie as floats in a run: the type that they are rounded to (runtime/halves.c); RL_UNDEF: none */
    uint32_t nrounded;
    struct rl_flat *flat;      /* passes/flat.h; NULL: bodies are attributes, as everywhere else */
    rl_graph *kept;            /* a graph whose memory this one uses: freed with it */
};

rl_graph *rl_graph_new(rl_ctx *ctx);
void rl_graph_free(rl_graph *g);
/* The same without its bodies and functions, for who has them in a list. */
void rl_graph_drop(rl_graph *g);

/* The value of this name, made if there is none. name NULL: a new value without a name. */
rl_value rl_graph_value(rl_graph *g, rl_str name);
rl_value rl_graph_find(const rl_graph *g, rl_str name); /* RL_NOVALUE if none */
rl_value rl_graph_input(const rl_graph *g, rl_str name); /* the graph input of this name, or RL_NOVALUE */
void rl_graph_rename(rl_graph *g, rl_value v, rl_str name); /* in bodies that capture it, too; the name must be free */
void rl_graph_set_type(rl_graph *g, rl_value v, rl_dtype t, uint32_t rank, const rl_dim *dim); /* copies dim */
/* A new constant value; data is kept, not copied. */
rl_value rl_graph_const(rl_graph *g, rl_str name, rl_dtype t, uint32_t rank, const int64_t *dim, const void *data, size_t nbyte);
/* A new constant: place i along dim, which has n, is place from[i] of v's. */
rl_value rl_graph_permuted(rl_graph *g, rl_value v, uint32_t dim, uint32_t n, const int64_t *from);
rl_value rl_graph_const_i64(rl_graph *g, rl_str name, uint32_t n, const int64_t *x); /* 1-D */
void rl_graph_set_constant(rl_graph *g, const rl_nodeinfo *n); /* what a Constant makes, from its one attribute */

/* Appends a node at the end of the order. Copies in and out. The outputs must have no def yet. Of an RL_OP_OPAQUE the caller sets domain,
 * type and since. */
rl_node rl_graph_add(rl_graph *g, rl_op op, const char *name, uint32_t nin, const rl_value *in, uint32_t nout, const rl_value *out);
void rl_graph_set_attrs(rl_graph *g, rl_node n, const rl_attr *attr, uint32_t nattr); /* copies the array */
/* A node of one input whose n numbers are an input of their own from opset 13 on, and an attribute, list, before: a Split's "split", a Squeeze's "axes".
 * more: one attribute besides, or NULL. */
rl_node rl_graph_add_listed(rl_graph *g, rl_op op, const char *name, rl_value x, const char *list, uint32_t n, const int64_t *number, const rl_attr *more,
                            uint32_t nout, const rl_value *out);
void rl_graph_set_input(rl_graph *g, rl_node n, uint32_t slot, rl_value v);
void rl_graph_set_output(rl_graph *g, rl_node n, uint32_t slot, rl_value v); /* v, which nothing defines; what was made there has no def then */
void rl_graph_set_captures(rl_graph *g, rl_node n, const rl_value *v, uint32_t nv);
void rl_graph_replace_uses(rl_graph *g, rl_value old, rl_value now); /* inputs only: no graph outputs, no captures */
void rl_graph_remove(rl_graph *g, rl_node n);  /* takes it out of the order and out of all uses */
void rl_graph_remove_all(rl_graph *g, const bool *dead); /* many at once: each live node with dead[node.i] */
/* graph_order.c: [nnode] from which no graph output can be reached; NULL where there are none. */
bool *rl_dead_nodes(const rl_graph *g, rl_arena *mem);
/* graph_order.c: sorts g->order topologically, ties by origin, then by the present order. RL_EMODEL names a node on a cycle. */
rl_status rl_graph_sort(rl_graph *g);
/* A name nobody uses yet, starting with stem. */
rl_str rl_graph_fresh_name(rl_graph *g, const char *stem);

static inline rl_valinfo *rl_val(const rl_graph *g, rl_value v) { return &g->val[v.i]; }
/* The same dims, as far as is known without running: of known rank, sizes and symbols alike. */
static inline bool rl_same_shape(const rl_valinfo *a, const rl_valinfo *b) {
    return a->rank != RL_NORANK && a->rank == b->rank && rl_same_bytes(a->dim, b->dim, a->rank * sizeof *a->dim);
}
static inline rl_nodeinfo *rl_nod(const rl_graph *g, rl_node n) { return &g->node[n.i]; }
static inline rl_value rl_in(const rl_nodeinfo *n, uint32_t i) { return i < n->nin ? n->in[i] : RL_NOVALUE; }
/* What a use's slot names. */
static inline rl_value rl_slot_value(const rl_nodeinfo *n, uint32_t slot) { return slot < n->nin ? n->in[slot] : n->cap[slot - n->nin]; }
static inline rl_value rl_out(const rl_nodeinfo *n, uint32_t i) { return i < n->nout ? n->out[i] : RL_NOVALUE; }

const rl_attr *rl_attr_find(const rl_nodeinfo *n, const char *name); /* NULL if absent */
bool rl_has_body(const rl_nodeinfo *n); /* an attribute is a graph */
const rl_attr *rl_attr_ints(const rl_nodeinfo *n, const char *name); /* NULL if absent or no list of integers */
bool rl_attr_all(const rl_nodeinfo *n, const char *name, int64_t x); /* each of its integers is x; true where it is absent */
int64_t rl_attr_int(const rl_nodeinfo *n, const char *name, int64_t dflt);
rl_dtype rl_attr_dtype(const rl_nodeinfo *n, const char *name, rl_dtype dflt); /* 0 says nothing; RL_UNDEF where the number is no type's */
float rl_attr_float(const rl_nodeinfo *n, const char *name, float dflt);
bool rl_attr_is(const rl_nodeinfo *n, const char *name, const char *value); /* string attribute equals */
rl_attr rl_attr_of_int(rl_graph *g, const char *name, int64_t x);
rl_attr rl_attr_of_string(rl_graph *g, const char *name, const char *s, size_t n);
rl_attr rl_attr_of_ints(rl_graph *g, const char *name, const int64_t *x, uint32_t n);
/* Of the values in the index that with v's type, dims and bytes, all constants whose bytes are there; RL_NOVALUE: none, and v is to be put at *key. */
rl_value rl_graph_twin(const rl_graph *g, const rl_hash *index, rl_value v, uint64_t *key);
/* The integers of a constant i32/i64 tensor, in mem; false when it is no such constant. */
bool rl_const_ints(const rl_graph *g, rl_value v, rl_arena *mem, const int64_t **x, uint32_t *n);
uint32_t rl_opset_of(const rl_graph *g, rl_str domain); /* 0 if not imported */
void rl_graph_import(rl_graph *g, rl_str domain, int64_t version); /* unless the domain is imported already */

#endif
